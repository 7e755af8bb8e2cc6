#include "support/homes_rig.h"

#include <string.h>

#include "base/assert.h"

static void violate(struct homes_rig *r, const char *what)
{
    if (r->violation == NULL) {
        r->violation = what;
    }
}

static uint32_t draw(struct homes_rig *r, uint32_t n)
{
    return (uint32_t)(random_next(&r->random) % n);
}

static const struct view *newest(const struct homes_rig *r)
{
    return &r->views[r->nviews - 1];
}

static struct slot_home home_at(const struct homes_node *n, uint32_t slot)
{
    return slot_home_unpack(n->table[slot]);
}

/* Where slots move as wholes its messages have other numbers, as in an engine beside others. */
struct homes_config homes_rig_config(const struct homes_rig *r, uint8_t node)
{
    return (struct homes_config){
        .first_kind = r->whole ? 14 : 32,
        .compute = nodeset_has(r->computers, node),
        .whole = r->whole,
        .rules_off = r->rules_off,
    };
}

/* ---- Lanes ---- */

static struct homes_packet *put(struct homes_rig *r, uint8_t from, uint8_t to)
{
    struct homes_lane *lane = &r->lanes[from][to];
    if (lane->tail - lane->head == HOMES_LANE) {
        violate(r, "a lane is full");
        return NULL;
    }
    struct homes_packet *p = &lane->packets[lane->tail++ % HOMES_LANE];
    *p = (struct homes_packet){.from_born = r->nodes[from].born,
                               .to_born = r->nodes[from].view.members[to].admitted};
    return p;
}

static void send(struct homes_rig *r, uint8_t from, uint8_t to, const struct effect *e,
                 uint64_t arg)
{
    struct homes_packet *p = put(r, from, to);
    if (p == NULL) {
        return;
    }
    p->msg = (struct msg){.kind = e->code,
                          .flags = e->flags,
                          .slot = e->slot,
                          .gen = e->gen,
                          .epoch = r->nodes[from].view.epoch,
                          .ts = e->ts,
                          .arg = arg};
    struct homes_config config = homes_rig_config(r, from);
    const char *why = homes_msg_invalid(&p->msg, &config);
    if (why != NULL) {
        violate(r, why);
    }
}

/* ---- Steps of the machine ---- */

static void take_home(struct homes_rig *r, struct homes_node *n, const struct effect *e)
{
    struct slot_home h = slot_home_unpack((uint32_t)e->set);
    HK_ASSERT(e->gen < HASH_SLOTS && e->slot <= HASH_SLOTS - e->gen);
    for (uint32_t i = e->gen; i < e->gen + e->slot; i++) {
        r->moves += h.state == HOME_MOVING && n->table[i] != e->set;
        r->lost += h.state == HOME_LOST && n->table[i] != e->set;
        r->empties += h.state == HOME_EMPTYING && n->table[i] != e->set;
        n->table[i] = (uint32_t)e->set;
        r->had[i] |= h.home < NODES_MAX ? nodeset_of(h.home) : 0;
        r->had[i] |= h.state == HOME_MOVING && !r->whole ? nodeset_of(h.to) : 0;
    }
    if (e->ts < n->map_version && r->rules_off == 0) {
        violate(r, "a node is told an older map");
    }
    n->map_version = e->ts;
}

/* S11: no move begins while the hot set changes; nothing moved when it began to. */
static void judge_hot(struct homes_rig *r, const struct homes_node *n)
{
    if (n->homes.hot && n->homes.moving && n->hot_epoch == n->view.epoch) {
        violate(r, "a move begins while the hot set changes");
    }
}

/* Whether it may leave although it is a home: there was nobody who could take over. */
static bool is_home(const struct homes_node *n, uint8_t self)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home h = slot_home_unpack(n->homes.map[i]);
        if (h.home == self && h.state != HOME_LOST) {
            return true;
        }
    }
    return false;
}

/* What the operator gives up in this step holds nothing from now on. */
static void note_given_up(struct homes_rig *r, const struct homes *h)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        if (slot_home_unpack(h->map[i]).state == HOME_LOST) {
            r->truth[i] = 0;
        }
    }
}

static bool step(struct homes_rig *r, uint8_t self, struct event *event)
{
    struct homes_node *n = &r->nodes[self];
    struct effects fx;
    fx.n = 0;
    event->self = self;
    event->view = &n->view;
    r->steps++;
    if (event->kind == EV_FLUSH && n->homes.phase >= HOMES_ANNOUNCE && n->homes.empty) {
        note_given_up(r, &n->homes);
    }
    struct homes_config config = homes_rig_config(r, self);
    homes_step(&n->homes, event, &config, &fx);
    judge_hot(r, n);
    for (uint32_t i = 0; i < fx.n; i++) {
        const struct effect *e = &fx.e[i];
        if (e->kind == EFF_SEND) {
            send(r, self, e->to, e, e->set);
        } else if (e->kind == EFF_BCAST) {
            for (nodeset rest = e->set; rest != 0; rest &= rest - 1) {
                send(r, self, nodeset_first(rest), e, 0);
            }
        } else if (e->kind == EFF_HOME) {
            take_home(r, n, e);
        } else if (e->kind == EFF_LEFT) {
            n->left = true;
            n->alone = is_home(n, self);
            r->leaves++;
        } else {
            HK_ASSERT(e->kind == EFF_DROP || e->kind == EFF_BEHIND);
        }
    }
    if (homes_ready(&n->homes) && nodeset_has(n->view.operational, self)) {
        n->serves = true;
    }
    return fx.n > 0;
}

bool homes_rig_flush(struct homes_rig *r, uint8_t node, uint32_t times)
{
    bool any = false;
    for (uint32_t i = 0; i < times; i++) {
        struct event event = {.kind = EV_FLUSH};
        if (!step(r, node, &event)) {
            break;
        }
        any = true;
    }
    return any;
}

void homes_rig_say(struct homes_rig *r, uint8_t node, enum slots_code code, uint64_t ts)
{
    struct event event = {.kind = EV_SLOTS, .code = (uint8_t)code, .ts = ts};
    (void)step(r, node, &event);
}

/* ---- Operations ---- */

/* Whether the process is a member of the newest view that serves: others have no lease. */
static bool may_act(const struct homes_rig *r, uint8_t node)
{
    const struct homes_node *n = &r->nodes[node];
    const struct view *v = newest(r);
    return n->alive && n->serves && nodeset_has(v->operational, node) &&
           v->members[node].admitted == n->born;
}

/* Whoever answers must hold what was written last. */
static void answer(struct homes_rig *r, uint8_t node, uint32_t slot, bool write)
{
    struct homes_node *n = &r->nodes[node];
    if (n->holds[slot] != r->truth[slot]) {
        violate(r, n->holds[slot] == 0 ? "nil instead of a value" : "a stale value");
    } else if (write && homes_ready(&n->homes)) {
        n->holds[slot] = ++r->writes;
        r->truth[slot] = r->writes;
    }
}

/* by_version: of the map by which it was handed on; 0: it was not. */
static void operate(struct homes_rig *r, uint8_t node, uint32_t slot, uint64_t by_version,
                    bool write)
{
    struct homes_node *n = &r->nodes[node];
    struct slot_home h = home_at(n, slot);
    bool given_up = h.state == HOME_LOST || h.state == HOME_EMPTYING || h.state == HOME_NONE;
    if (!may_act(r, node) || given_up) {
        return;
    }
    if (r->whole) {
        if (h.state == HOME_STABLE && h.home == node) {
            answer(r, node, slot, write);
        }
    } else if (n->holds[slot] != 0 || (h.state == HOME_STABLE && h.home == node) ||
               (n->map_version < by_version && h.home != node)) {
        answer(r, node, slot, write);
    } else if (h.state == HOME_MOVING && h.home == node && nodeset_has(n->view.live, h.to)) {
        struct homes_packet *p = put(r, node, h.to);
        if (p != NULL) {
            p->call = true;
            p->slot = slot;
            p->by_version = n->map_version;
            p->msg.epoch = n->view.epoch;
            r->handed++;
        }
    }
}

bool homes_rig_deliver(struct homes_rig *r, uint8_t from, uint8_t to)
{
    struct homes_lane *lane = &r->lanes[from][to];
    struct homes_node *n = &r->nodes[to];
    if (lane->head == lane->tail) {
        return false;
    }
    struct homes_packet *p = &lane->packets[lane->head % HOMES_LANE];
    bool stands = n->alive && p->to_born == n->born &&
                  (!r->nodes[from].alive || p->from_born == r->nodes[from].born);
    if (stands && p->msg.epoch > n->view.epoch) {
        return false; /* waits until its epoch is adopted */
    }
    lane->head++;
    if (stands && p->call) {
        operate(r, to, p->slot, p->by_version, draw(r, 2) == 0);
    } else if (stands) {
        struct event event = {.kind = EV_MSG, .from = from, .msg = &p->msg};
        (void)step(r, to, &event);
    }
    return true;
}

/* ---- The mover ---- */

/* A slot that moves as a whole: the old home keeps what it has until the map says that it is
 * elsewhere. Whether there was anything to be done. */
static bool move_whole(struct homes_rig *r, uint8_t node, uint32_t slot)
{
    struct homes_node *n = &r->nodes[node];
    struct slot_home h = home_at(n, slot);
    if (h.state == HOME_MOVING && h.home == node) {
        struct homes_node *to = &r->nodes[h.to];
        bool has =
            to->alive && to->view.epoch == n->view.epoch && to->table[slot] == n->table[slot];
        bool had = has && to->holds[slot] == n->holds[slot];
        to->holds[slot] = has ? n->holds[slot] : to->holds[slot];
        return !had;
    }
    bool other = h.home != node && (h.state == HOME_STABLE || h.state == HOME_GIVEN ||
                                    (h.state == HOME_MOVING && h.to != node));
    bool found = other && n->holds[slot] != 0;
    n->holds[slot] = other ? 0 : n->holds[slot];
    return found;
}

static bool move_one(struct homes_rig *r, uint8_t node, uint32_t slot)
{
    struct homes_node *n = &r->nodes[node];
    struct slot_home h = home_at(n, slot);
    if (h.state == HOME_EMPTYING) {
        bool found = n->holds[slot] != 0;
        n->holds[slot] = 0;
        return found;
    }
    if (r->whole) {
        return move_whole(r, node, slot);
    }
    if (h.state != HOME_MOVING || h.home != node || n->holds[slot] == 0) {
        return false;
    }
    struct homes_node *to = &r->nodes[h.to];
    if (to->alive && to->view.epoch == n->view.epoch) {
        if (to->holds[slot] != 0) {
            violate(r, "a key is at both ends of a move");
        }
        to->holds[slot] = n->holds[slot];
        n->holds[slot] = 0;
    }
    return true;
}

static bool has_work(const struct homes_rig *r, const struct homes_node *n, uint8_t node,
                     uint32_t *moving_out, uint32_t *emptying_out)
{
    uint32_t left = 0;
    *moving_out = 0;
    *emptying_out = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home h = home_at(n, i);
        *moving_out += h.state == HOME_MOVING && h.home == node;
        *emptying_out += h.state == HOME_EMPTYING;
        left += r->whole && n->holds[i] != 0 && h.home != node;
    }
    return *moving_out + *emptying_out + left > 0;
}

/* A part of a pass. Whether anything was done. */
bool homes_rig_move(struct homes_rig *r, uint8_t node, uint32_t slots)
{
    struct homes_node *n = &r->nodes[node];
    uint32_t moves;
    uint32_t empties;
    if (!n->alive || !homes_ready(&n->homes)) {
        return false;
    }
    if (!n->passing) {
        if (n->said_version == n->map_version || !has_work(r, n, node, &moves, &empties)) {
            return false;
        }
        n->passing = true;
        n->found = false;
        n->cursor = 0;
        n->pass_version = n->map_version;
    }
    for (; slots > 0 && n->cursor < HASH_SLOTS; slots--, n->cursor++) {
        n->found |= move_one(r, node, n->cursor);
    }
    if (n->cursor < HASH_SLOTS) {
        return true;
    }
    n->passing = false;
    if (!n->found) {
        (void)has_work(r, n, node, &moves, &empties);
        n->said_version = n->pass_version;
        if (moves > 0) {
            homes_rig_say(r, node, SLOTS_MOVED, n->pass_version);
        }
        if (empties > 0) {
            homes_rig_say(r, node, SLOTS_PURGED, n->pass_version);
        }
    }
    return true;
}

/* ---- Views ---- */

static void end_process(struct homes_rig *r, uint8_t node)
{
    struct homes_node *n = &r->nodes[node];
    if (!n->alive) {
        return;
    }
    n->alive = false;
    bool holds = false;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        /* What it holds of a lost slot nobody can ask for. */
        holds |= n->holds[i] != 0 && n->holds[i] == r->truth[i] &&
                 home_at(n, i).state != HOME_LOST && home_at(n, i).state != HOME_EMPTYING &&
                 (!r->whole || home_at(n, i).home == node);
    }
    if (n->left && !n->alone && holds) {
        violate(r, "a member that was told that it may leave holds keys");
    }
    if (!n->left || n->alone) {
        r->died |= nodeset_of(node);
    }
    memset(n->holds, 0, sizeof n->holds);
}

static void adopt(struct homes_rig *r, uint8_t node, const struct view *view)
{
    struct homes_node *n = &r->nodes[node];
    if (!n->alive || view->epoch <= n->view.epoch || !nodeset_has(view->live, node)) {
        return;
    }
    n->view = *view;
    n->passing = false;
    struct event event = {.kind = EV_VIEW};
    (void)step(r, node, &event);
}

static void begin_process(struct homes_rig *r, uint8_t node, uint32_t epoch)
{
    struct homes_node *n = &r->nodes[node];
    memset(n, 0, sizeof *n);
    n->alive = true;
    n->born = epoch;
    for (uint32_t i = 0; i < HOMES_NODES; i++) {
        struct homes_lane *out = &r->lanes[node][i];
        struct homes_lane *in = &r->lanes[i][node];
        out->head = out->tail;
        in->head = in->tail;
    }
}

void homes_rig_view(struct homes_rig *r, nodeset drops, nodeset admits, nodeset promotes)
{
    if (r->nviews == HOMES_VIEWS) {
        return;
    }
    struct view v = *newest(r);
    v.epoch++;
    for (uint8_t i = 0; i < HOMES_NODES; i++) {
        if (nodeset_has(drops, i)) {
            end_process(r, i);
            v.members[i] = (struct view_member){.nonce = 0};
        }
        if (nodeset_has(admits, i)) {
            begin_process(r, i, v.epoch);
            v.members[i] = (struct view_member){.admitted = v.epoch, .role = VIEW_ROLE_SHADOW};
        }
    }
    v.live = (v.live & ~drops) | admits;
    v.operational = (v.operational & ~drops) | promotes;
    r->views[r->nviews++] = v;
}

/* Shadows that are in the newest epoch. */
static nodeset promotable(const struct homes_rig *r)
{
    nodeset set = 0;
    const struct view *v = newest(r);
    for (nodeset rest = v->live & ~v->operational; rest != 0; rest &= rest - 1) {
        const struct homes_node *n = &r->nodes[nodeset_first(rest)];
        bool ready = n->alive && n->view.epoch == v->epoch && homes_ready(&n->homes);
        set |= ready ? nodeset_of(nodeset_first(rest)) : 0;
    }
    return set;
}

static void random_view(struct homes_rig *r)
{
    const struct view *v = newest(r);
    if (r->nviews > HOMES_VIEWS - 8) {
        return; /* room for those that end the run */
    }
    nodeset all = nodeset_of(HOMES_NODES) - 1;
    nodeset drops = 0;
    nodeset alive = 0;
    for (uint8_t i = 0; i < HOMES_NODES; i++) {
        alive |= r->nodes[i].alive ? nodeset_of(i) : 0;
    }
    for (uint32_t i = draw(r, 3); i > 0; i--) {
        uint8_t node = (uint8_t)draw(r, HOMES_NODES);
        bool dead = !r->nodes[node].alive || r->nodes[node].left || draw(r, 3) == 0;
        nodeset left = v->live & ~drops & ~nodeset_of(node);
        if (nodeset_has(v->live, node) && dead && view_majority(v, left & alive) &&
            (left & v->operational & alive) != 0) {
            drops |= nodeset_of(node);
        }
    }
    nodeset admits = 0;
    if (draw(r, 2) == 0) {
        admits = nodeset_of((uint8_t)draw(r, HOMES_NODES)) & all & ~v->live;
    }
    nodeset promotes = draw(r, 2) == 0 ? promotable(r) & ~drops : 0;
    if ((drops | admits | promotes) != 0) {
        homes_rig_view(r, drops, admits, promotes);
    }
}

/* A crash: found out by a later view. The rest must stay a majority. */
static void crash(struct homes_rig *r)
{
    uint8_t node = (uint8_t)draw(r, HOMES_NODES);
    const struct view *v = newest(r);
    nodeset left = 0;
    for (uint8_t i = 0; i < HOMES_NODES; i++) {
        left |= r->nodes[i].alive && i != node ? nodeset_of(i) : 0;
    }
    if (view_majority(v, v->live & left) && (v->operational & left) != 0) {
        end_process(r, node);
    }
}

void homes_rig_adopt(struct homes_rig *r, uint8_t node)
{
    adopt(r, node, newest(r));
}

void homes_rig_write(struct homes_rig *r, uint8_t node)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        if (home_at(&r->nodes[node], i).home == node) {
            operate(r, node, i, 0, true);
        }
    }
}

/* ---- Judging ---- */

static bool moving(const uint32_t *map)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        if (slot_home_unpack(map[i]).state == HOME_MOVING) {
            return true;
        }
    }
    return false;
}

static void judge_homes(struct homes_rig *r)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        uint32_t homes = 0;
        for (uint8_t node = 0; node < HOMES_NODES; node++) {
            struct slot_home h = home_at(&r->nodes[node], i);
            homes += may_act(r, node) && h.state == HOME_STABLE && h.home == node;
        }
        if (homes > 1) {
            violate(r, "two nodes act as home of a slot");
        }
    }
}

static void judge_quiet(struct homes_rig *r, uint8_t leader)
{
    const struct homes_node *l = &r->nodes[leader];
    if (!l->alive || !homes_quiet(&l->homes)) {
        return;
    }
    for (uint8_t node = 0; node < HOMES_NODES; node++) {
        const struct homes_node *n = &r->nodes[node];
        if (n->alive && n->view.epoch == l->view.epoch && moving(n->table)) {
            violate(r, "the leader says that nothing moves, and something does");
        }
    }
}

/* ---- Random steps ---- */

void homes_rig_init(struct homes_rig *r, uint32_t n, uint64_t rules_off, uint64_t seed)
{
    memset(r, 0, sizeof *r);
    random_init(&r->random, seed);
    r->rules_off = rules_off;
    struct view *v = &r->views[r->nviews++];
    v->epoch = 1;
    v->configured = nodeset_of(HOMES_NODES) - 1;
    n = n != 0 ? n : 3 + draw(r, HOMES_NODES - 2);
    for (uint8_t i = 0; i < n; i++) {
        v->live |= nodeset_of(i);
        v->members[i] = (struct view_member){.admitted = 1, .role = VIEW_ROLE_OPERATIONAL};
        begin_process(r, i, 1);
    }
    v->operational = v->live;
}

static void random_slots(struct homes_rig *r, uint8_t node)
{
    uint32_t what = draw(r, 100);
    struct homes_node *n = &r->nodes[node];
    if (what < 40) {
        if (n->homes.hot) {
            homes_rig_say(r, node, SLOTS_HOT, 0);
        } else if (homes_quiet(&n->homes)) {
            judge_quiet(r, node);
            n->hot_epoch = n->view.epoch;
            homes_rig_say(r, node, SLOTS_HOT, 1);
        }
    } else if (what < 46) {
        homes_rig_say(r, node, SLOTS_EMPTY, 0);
    } else if (what < 50) {
        homes_rig_say(r, node, SLOTS_LEAVE, 0);
    }
}

void homes_rig_step(struct homes_rig *r)
{
    uint8_t node = (uint8_t)draw(r, HOMES_NODES);
    uint32_t what = draw(r, 1000);
    bool alive = r->nodes[node].alive;
    if (what < 500) {
        (void)homes_rig_deliver(r, (uint8_t)draw(r, HOMES_NODES), node);
    } else if (what < 700 && alive) {
        (void)homes_rig_flush(r, node, 1 + draw(r, 3));
    } else if (what < 850 && alive) {
        (void)homes_rig_move(r, node, 1 + draw(r, 2 * HASH_SLOTS));
    } else if (what < 900 && alive) {
        for (uint32_t i = draw(r, 97); i < HASH_SLOTS; i += 97) {
            operate(r, node, i, 0, draw(r, 2) == 0);
        }
    } else if (what < 940) {
        uint32_t from = r->nodes[node].view.epoch; /* view i has epoch i + 1 */
        if (from < r->nviews) {
            adopt(r, node, draw(r, 2) == 0 ? &r->views[from] : newest(r));
        }
    } else if (what < 950 && alive) {
        random_slots(r, node);
    } else if (what < 956) {
        random_view(r);
    } else if (what < 958) {
        crash(r);
    } else if (what < 968) {
        judge_homes(r);
        judge_quiet(r, node);
    }
}

/* ---- The end ---- */

static bool progress(struct homes_rig *r)
{
    bool any = false;
    for (uint8_t i = 0; i < HOMES_NODES; i++) {
        if (!r->nodes[i].alive) {
            continue;
        }
        if (r->nodes[i].view.epoch < newest(r)->epoch) {
            adopt(r, i, newest(r));
            any = true;
        }
        for (uint8_t from = 0; from < HOMES_NODES; from++) {
            any |= homes_rig_deliver(r, from, i);
        }
        any |= homes_rig_flush(r, i, 64);
        any |= homes_rig_move(r, i, HASH_SLOTS);
    }
    return any;
}

void homes_rig_exhaust(struct homes_rig *r)
{
    for (uint32_t i = 0; i < 20000 && r->violation == NULL; i++) {
        if (!progress(r)) {
            return;
        }
    }
    violate(r, "it does not end");
}

static nodeset stayers(const struct homes_rig *r)
{
    nodeset stay = 0;
    for (nodeset rest = newest(r)->operational; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        bool takes = !r->nodes[node].homes.leaving && !nodeset_has(r->computers, node);
        stay |= takes ? nodeset_of(node) : 0;
    }
    return stay;
}

static void judge_shares(struct homes_rig *r, const uint32_t *table)
{
    uint32_t has[HOMES_NODES] = {0};
    uint32_t least = HASH_SLOTS;
    uint32_t most = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home h = slot_home_unpack(table[i]);
        if (h.state == HOME_STABLE) {
            has[h.home]++;
        } else if (h.state != HOME_LOST && (h.state != HOME_NONE || stayers(r) != 0)) {
            violate(r, "a slot moves, or is emptied, for ever");
        }
    }
    nodeset stay = stayers(r);
    for (nodeset rest = newest(r)->live & ~stay; rest != 0 && stay != 0; rest &= rest - 1) {
        const struct homes_node *n = &r->nodes[nodeset_first(rest)];
        if (has[nodeset_first(rest)] != 0 || (n->homes.leaving && !n->left)) {
            violate(r, "a member that leaves, or does not serve, is a home");
        }
    }
    for (nodeset rest = stay; rest != 0; rest &= rest - 1) {
        uint32_t n = has[nodeset_first(rest)];
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    if (stay != 0 && most - least > 1) {
        violate(r, "shares are not even");
    }
}

static void judge_end(struct homes_rig *r)
{
    const struct view *v = newest(r);
    const struct homes_node *first = &r->nodes[nodeset_first(v->live)];
    for (nodeset rest = v->live; rest != 0; rest &= rest - 1) {
        const struct homes_node *n = &r->nodes[nodeset_first(rest)];
        if (!homes_ready(&n->homes) || n->map_version != first->map_version ||
            memcmp(n->table, first->table, sizeof n->table) != 0) {
            violate(r, "maps differ in the end");
        }
    }
    judge_shares(r, first->table);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home h = home_at(first, i);
        if (h.state == HOME_LOST && (r->had[i] & r->died) == 0) {
            violate(r, "a slot is lost although nobody who had it is gone");
        }
        for (nodeset rest = v->live; rest != 0; rest &= rest - 1) {
            uint8_t node = nodeset_first(rest);
            uint32_t holds = r->nodes[node].holds[i];
            if (h.state == HOME_STABLE && holds != (node == h.home ? r->truth[i] : 0)) {
                violate(r, "in the end a home lacks a key, or another has it");
            }
        }
    }
}

void homes_rig_settle(struct homes_rig *r)
{
    nodeset dead = 0;
    for (nodeset rest = newest(r)->live; rest != 0; rest &= rest - 1) {
        dead |= r->nodes[nodeset_first(rest)].alive ? 0 : nodeset_of(nodeset_first(rest));
    }
    if (dead != 0) {
        homes_rig_view(r, dead, 0, 0);
    }
    for (uint8_t i = 0; i < HOMES_NODES; i++) {
        if (r->nodes[i].homes.hot) {
            homes_rig_say(r, i, SLOTS_HOT, 0);
        }
    }
    homes_rig_exhaust(r);
    if (r->violation == NULL && promotable(r) != 0) {
        homes_rig_view(r, 0, 0, promotable(r));
        homes_rig_exhaust(r);
    }
    if (r->violation == NULL) {
        judge_end(r);
    }
}

void homes_rig_empty(struct homes_rig *r)
{
    homes_rig_say(r, nodeset_first(newest(r)->live), SLOTS_EMPTY, 0);
    homes_rig_exhaust(r);
    if (r->violation != NULL) {
        return;
    }
    judge_end(r);
    const struct homes_node *n = &r->nodes[nodeset_first(newest(r)->live)];
    bool somebody = stayers(r) != 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        if (somebody && home_at(n, i).state == HOME_LOST) {
            violate(r, "a slot is lost although the operator gave it up");
        }
    }
}
