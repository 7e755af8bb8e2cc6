#include "support/zeus_commit_rig.h"

#include <string.h>

#include "base/assert.h"
#include "base/meta.h"
#include "engine/zeus/commit_rules.h"

static void fail(struct crig *r, const char *why)
{
    r->why = r->why == NULL ? why : r->why;
}

static struct commit_context context(struct crig *r, uint8_t node, uint8_t worker)
{
    return (struct commit_context){
        .view = &r->nodes[node].workers[worker].view, .config = &r->config, .self = node};
}

const struct view *crig_newest(const struct crig *r)
{
    return &r->views[r->nviews - 1];
}

bool crig_live(const struct crig *r, uint8_t node)
{
    return !r->nodes[node].crashed && nodeset_has(crig_newest(r)->live, node) &&
           crig_newest(r)->members[node].admitted == r->nodes[node].born;
}

static nodeset masked(const struct view *view, nodeset nodes, uint32_t epoch)
{
    nodeset out = 0;
    for (nodeset rest = nodes & view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        out |= view->members[node].admitted <= epoch ? nodeset_of(node) : 0;
    }
    return out;
}

nodeset crig_holders(const struct crig *r, uint32_t object)
{
    const struct crig_vector *v = &r->vectors[object];
    return masked(crig_newest(r), v->readers | nodeset_of(v->owner), v->epoch);
}

/* ---- Messages ---- */

static void push(struct crig *r, uint8_t from, uint8_t worker, nodeset to,
                 struct crig_message message)
{
    for (nodeset rest = to; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        struct crig_lane *lane = &r->lanes[from][node][worker];
        HK_ASSERT(node != from && lane->n < CRIG_LANE);
        message.epoch = r->nodes[from].workers[worker].view.epoch;
        message.from_born = r->nodes[from].born;
        message.to_born = r->nodes[from].workers[worker].view.members[node].admitted;
        lane->messages[(lane->first + lane->n++) % CRIG_LANE] = message;
    }
}

void crig_lose(struct crig *r, uint8_t from, uint8_t to, uint8_t worker, uint32_t keep)
{
    struct crig_lane *lane = &r->lanes[from][to][worker];
    lane->n = lane->n < keep ? lane->n : keep;
}

/* ---- Effects ---- */

/* The slot's objects turn VALID. */
static void validate(struct crig *r, uint8_t node, const struct crig_stored *stored)
{
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        struct crig_replica *replica = &r->nodes[node].objects[o];
        if ((stored->objects >> o & 1) != 0 && replica->have && replica->state != CRIG_VALID &&
            commit_validates(&r->config, replica->version, r->txns[stored->txn].version[o])) {
            replica->state = CRIG_VALID;
        }
    }
}

static void apply(struct crig *r, uint8_t node, struct crig_stored *stored)
{
    const struct crig_txn *txn = &r->txns[stored->txn];
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        struct crig_replica *replica = &r->nodes[node].objects[o];
        if ((stored->objects >> o & 1) == 0) {
            continue;
        }
        if (!replica->have) {
            stored->objects &= commit_rule_on(&r->config, COMMIT_RULE_WHOLE) ? ~0u : ~(1u << o);
        } else if (commit_takes(&r->config, replica->version, txn->version[o])) {
            replica->version = txn->version[o];
            replica->value = stored->txn;
            replica->state = CRIG_INVALID;
        }
    }
}

static void tell(struct crig *r, uint8_t node, uint32_t txn)
{
    if (crig_live(r, node) && !r->txns[txn].told) { /* else its lease is over */
        r->txns[txn].told = true;
        r->txns[txn].end = r->clock++;
        r->told++;
    }
}

static void effects(struct crig *r, uint8_t node, uint8_t worker, struct crig_pipe *p,
                    const struct commit_effects *fx, const struct crig_message *m)
{
    bool own = p == &r->nodes[node].workers[worker].own;
    struct commit_context cx = context(r, node, worker);
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct commit_effect *e = &fx->e[i];
        struct crig_stored *stored = &p->stored[e->slot % COMMIT_SLOTS];
        struct crig_message out = {.name = p->pipe.name, .inv.slot = e->slot};
        switch ((enum commit_fx)e->kind) {
        case COMMIT_FX_INV:
            out.kind = COMMIT_MSG_INV;
            out.inv = commit_inv_of(&p->pipe, e->slot);
            out.txn = stored->txn;
            out.objects = stored->objects;
            push(r, node, worker, e->to, out);
            r->replays += !own;
            break;
        case COMMIT_FX_ACK:
            out.kind = COMMIT_MSG_ACK;
            push(r, node, worker, e->to, out);
            break;
        case COMMIT_FX_VAL:
            out.kind = COMMIT_MSG_VAL;
            push(r, node, worker, e->to, out);
            break;
        case COMMIT_FX_DONE:
            validate(r, node, stored);
            if (own) {
                tell(r, node, stored->txn);
            }
            break;
        case COMMIT_FX_APPLY:
            *stored = (struct crig_stored){.txn = m->txn, .objects = m->objects};
            apply(r, node, stored);
            break;
        case COMMIT_FX_DROP:
            validate(r, node, stored);
            break;
        case COMMIT_FX_BEHIND:
            break;
        }
    }
    commit_check(&p->pipe, &cx);
}

static bool nothing_of_the_dead(const struct crig_worker *w)
{
    for (uint32_t i = 0; i < CRIG_PIPES; i++) {
        const struct crig_pipe *p = &w->followed[i];
        if (p->used && p->pipe.dead && !commit_pipe_empty(&p->pipe)) {
            return false;
        }
    }
    return true;
}

static void note_recovered(struct crig *r, struct crig_worker *w)
{
    if (nothing_of_the_dead(w) || !commit_rule_on(&r->config, COMMIT_RULE_RECOVERED)) {
        w->recovered = w->view.epoch;
    }
}

/* ---- Deliveries ---- */

static bool same_name(const struct commit_name *a, const struct commit_name *b)
{
    return a->pipe == b->pipe && a->admitted == b->admitted && a->node == b->node;
}

static struct crig_pipe *find(struct crig_worker *w, const struct commit_name *name, bool make)
{
    struct crig_pipe *unused = NULL;
    if (same_name(&w->own.pipe.name, name)) {
        return &w->own;
    }
    for (uint32_t i = 0; i < CRIG_PIPES; i++) {
        struct crig_pipe *p = &w->followed[i];
        if (p->used && same_name(&p->pipe.name, name)) {
            return p;
        }
        unused = unused == NULL && !p->used ? p : unused;
    }
    if (!make) {
        return NULL;
    }
    HK_ASSERT(unused != NULL);
    unused->used = true;
    commit_pipe_init(&unused->pipe, name);
    return unused;
}

static void take(struct crig *r, uint8_t from, uint8_t to, uint8_t worker,
                 const struct crig_message *m)
{
    struct crig_worker *w = &r->nodes[to].workers[worker];
    struct commit_context cx = context(r, to, worker);
    struct commit_effects fx = {.n = 0};
    bool alive = m->epoch == w->view.epoch && w->view.members[from].admitted == m->from_born;
    struct crig_pipe *p = find(w, &m->name, m->kind == COMMIT_MSG_INV);
    if (p == NULL) {
        if (m->kind == COMMIT_MSG_ACK && alive && commit_rule_on(&r->config, COMMIT_RULE_AGAIN)) {
            push(r, to, worker, nodeset_of(from),
                 (struct crig_message){
                     .kind = COMMIT_MSG_VAL, .name = m->name, .inv.slot = m->inv.slot});
        }
        return;
    }
    switch (m->kind) {
    case COMMIT_MSG_INV:
        (void)commit_inv(&p->pipe, &cx, from, &m->inv, alive, &fx);
        break;
    case COMMIT_MSG_ACK:
        commit_ack(&p->pipe, &cx, from, m->inv.slot, alive, &fx);
        break;
    case COMMIT_MSG_VAL:
        commit_val(&p->pipe, &cx, m->inv.slot, alive, &fx);
        break;
    case COMMIT_MSG_END:
        break;
    }
    effects(r, to, worker, p, &fx, m);
    note_recovered(r, w);
}

bool crig_deliver(struct crig *r, uint8_t from, uint8_t to, uint8_t worker)
{
    struct crig_lane *lane = &r->lanes[from][to][worker];
    if (lane->n == 0) {
        return false;
    }
    struct crig_message m = lane->messages[lane->first];
    struct crig_node *node = &r->nodes[to];
    if (!node->crashed && m.to_born == node->born && m.epoch > node->workers[worker].view.epoch) {
        return false;
    }
    lane->first = (lane->first + 1) % CRIG_LANE;
    lane->n--;
    r->deliveries++;
    r->clock++;
    if (!node->crashed && m.to_born == node->born) {
        take(r, from, to, worker, &m);
    }
    return true;
}

void crig_pass(struct crig *r, uint8_t from, uint8_t to, uint8_t worker, enum commit_kind kind)
{
    const struct crig_lane *lane = &r->lanes[from][to][worker];
    HK_ASSERT(lane->n > 0 && lane->messages[lane->first].kind == kind);
    bool delivered = crig_deliver(r, from, to, worker);
    HK_ASSERT(delivered);
}

bool crig_run_one(struct crig *r)
{
    uint32_t all = CRIG_NODES * CRIG_NODES * CRIG_WORKERS;
    uint32_t start = (uint32_t)random_below(&r->random, all);
    for (uint32_t i = 0; i < all; i++) {
        uint32_t at = (start + i) % all;
        uint32_t nodes = at / CRIG_WORKERS;
        if (crig_deliver(r, (uint8_t)(nodes / CRIG_NODES), (uint8_t)(nodes % CRIG_NODES),
                         (uint8_t)(at % CRIG_WORKERS))) {
            return true;
        }
    }
    return false;
}

void crig_run(struct crig *r)
{
    while (crig_run_one(r)) {
    }
}

/* ---- Clients ---- */

static uint32_t begin_txn(struct crig *r, uint8_t node, uint8_t worker, uint32_t reads)
{
    uint32_t id = ++r->ntxns;
    HK_ASSERT(id < CRIG_TXNS);
    struct crig_txn *t = &r->txns[id];
    *t = (struct crig_txn){.node = node,
                           .worker = worker,
                           .born = r->nodes[node].born,
                           .reads = reads,
                           .begin = r->clock++};
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        t->seen[o] = r->nodes[node].objects[o].value;
        t->seen_version[o] = r->nodes[node].objects[o].version;
    }
    return id;
}

/* C12: a transaction under way has read it, of another pipeline than `worker`'s. */
static bool is_read(const struct crig *r, uint8_t node, uint32_t worker, uint32_t object)
{
    for (uint32_t w = 0; w < CRIG_WORKERS; w++) {
        const struct crig_node *n = &r->nodes[node];
        if (w != worker && n->objects[object].read[w] >= n->workers[w].own.pipe.first) {
            return commit_rule_on(&r->config, COMMIT_RULE_READ);
        }
    }
    return false;
}

/* Whether the node's worker may use the object in a transaction that writes. */
static bool usable(struct crig *r, uint8_t node, uint8_t worker, uint32_t object, bool write)
{
    const struct crig_vector *v = &r->vectors[object];
    const struct crig_replica *replica = &r->nodes[node].objects[object];
    if (v->owner != node || r->nodes[node].born > v->epoch ||
        (write && is_read(r, node, worker, object))) {
        return false;
    }
    return replica->state == CRIG_VALID ||
           (replica->state == CRIG_WRITE && commit_may_touch(&r->config, replica->pipe, worker));
}

uint32_t crig_commit(struct crig *r, uint8_t node, uint8_t worker, uint32_t writes, uint32_t reads)
{
    struct crig_worker *w = &r->nodes[node].workers[worker];
    struct commit_context cx = context(r, node, worker);
    struct commit_effects fx = {.n = 0};
    nodeset followers = 0;
    if (!crig_live(r, node) || !commit_room(&w->own.pipe) || r->ntxns + 1 >= CRIG_TXNS) {
        return 0;
    }
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        bool write = (writes >> o & 1) != 0;
        if (((writes | reads) >> o & 1) != 0 && !usable(r, node, worker, o, write)) {
            return 0;
        }
    }
    uint32_t id = begin_txn(r, node, worker, writes | reads);
    struct crig_txn *t = &r->txns[id];
    t->writes = writes;
    t->slot = w->own.pipe.next;
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        struct crig_replica *replica = &r->nodes[node].objects[o];
        if ((writes >> o & 1) == 0) {
            replica->read[worker] = (reads >> o & 1) != 0 ? t->slot : replica->read[worker];
            continue;
        }
        t->version[o] =
            stamp_make(stamp_version(replica->version) + 1, r->nodes[node].born * 8 + node + 1u);
        *replica = (struct crig_replica){.version = t->version[o],
                                         .value = id,
                                         .state = CRIG_WRITE,
                                         .pipe = worker,
                                         .have = true};
        followers |= masked(&w->view, r->vectors[o].readers, r->vectors[o].epoch);
    }
    w->own.stored[t->slot % COMMIT_SLOTS] = (struct crig_stored){.txn = id, .objects = writes};
    uint64_t slot = commit_begin(&w->own.pipe, &cx, followers, &fx);
    HK_ASSERT(slot == t->slot);
    if (!commit_rule_on(&r->config, COMMIT_RULE_DURABLE)) {
        tell(r, node, id);
    }
    effects(r, node, worker, &w->own, &fx, NULL);
    return id;
}

uint32_t crig_read(struct crig *r, uint8_t node, uint32_t objects)
{
    if (!crig_live(r, node) || r->ntxns + 1 >= CRIG_TXNS) {
        return 0;
    }
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        const struct crig_replica *replica = &r->nodes[node].objects[o];
        if ((objects >> o & 1) != 0 && (!replica->have || replica->state != CRIG_VALID ||
                                        !nodeset_has(crig_holders(r, o), node))) {
            return 0;
        }
    }
    uint32_t id = begin_txn(r, node, 0, objects);
    r->txns[id].told = true;
    r->txns[id].end = r->clock++;
    return id;
}

/* ---- Members ---- */

void crig_init(struct crig *r, uint8_t n, uint64_t rules_off, uint64_t seed)
{
    memset(r, 0, sizeof(*r));
    r->config.rules_off = rules_off;
    r->n = n;
    r->clock = 1;
    random_init(&r->random, seed);
    struct view *view = &r->views[r->nviews++];
    *view = (struct view){.generation = 1, .epoch = 1, .next_cid = 1};
    for (uint8_t i = 0; i < n; i++) {
        view->configured |= nodeset_of(i);
        view->members[i] =
            (struct view_member){.nonce = 1, .admitted = 1, .role = VIEW_ROLE_OPERATIONAL};
    }
    view->live = view->operational = view->configured;
    for (uint8_t i = 0; i < n; i++) {
        r->nodes[i].born = 1;
        for (uint8_t w = 0; w < CRIG_WORKERS; w++) {
            struct commit_name name = {.pipe = w, .admitted = 1, .node = i};
            commit_pipe_init(&r->nodes[i].workers[w].own.pipe, &name);
            crig_adopt(r, i, w);
        }
    }
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        uint8_t owner = (uint8_t)(o % n);
        crig_place(r, o, owner, view->live & ~nodeset_of(owner));
    }
}

void crig_place(struct crig *r, uint32_t object, uint8_t owner, nodeset readers)
{
    r->vectors[object] = (struct crig_vector){.readers = readers, .epoch = 1, .owner = owner};
    for (uint8_t i = 0; i < r->n; i++) {
        r->nodes[i].objects[object] =
            (struct crig_replica){.have = i == owner || nodeset_has(readers, i)};
    }
}

void crig_adopt(struct crig *r, uint8_t node, uint8_t worker)
{
    struct crig_worker *w = &r->nodes[node].workers[worker];
    if (r->nodes[node].crashed || w->view.epoch == crig_newest(r)->epoch ||
        crig_newest(r)->members[node].admitted != r->nodes[node].born) {
        return;
    }
    w->view = *crig_newest(r);
    struct commit_context cx = context(r, node, worker);
    for (uint32_t i = 0; i <= CRIG_PIPES; i++) {
        struct crig_pipe *p = i == CRIG_PIPES ? &w->own : &w->followed[i];
        if (p->used || p == &w->own) {
            struct commit_effects fx = {.n = 0};
            commit_view(&p->pipe, &cx, &fx);
            effects(r, node, worker, p, &fx, NULL);
        }
    }
    note_recovered(r, w);
}

void crig_adopt_all(struct crig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        for (uint8_t w = 0; w < CRIG_WORKERS; w++) {
            crig_adopt(r, i, w);
        }
    }
}

void crig_crash(struct crig *r, uint8_t node)
{
    r->nodes[node].crashed = true;
}

static struct view *next_view(struct crig *r)
{
    HK_ASSERT(r->nviews < CRIG_VIEWS);
    struct view *view = &r->views[r->nviews++];
    *view = r->views[r->nviews - 2];
    view->epoch++;
    return view;
}

void crig_drop(struct crig *r, uint8_t node)
{
    struct view *view = next_view(r);
    view->live &= ~nodeset_of(node);
    view->operational &= ~nodeset_of(node);
    view->members[node] = (struct view_member){0};
}

void crig_admit(struct crig *r, uint8_t node)
{
    struct view *view = next_view(r);
    view->live |= nodeset_of(node);
    view->operational |= nodeset_of(node);
    view->members[node] = (struct view_member){
        .nonce = view->epoch, .admitted = view->epoch, .role = VIEW_ROLE_OPERATIONAL};
    struct crig_node *n = &r->nodes[node];
    memset(n, 0, sizeof(*n));
    n->born = view->epoch;
    for (uint8_t w = 0; w < CRIG_WORKERS; w++) {
        struct commit_name name = {.pipe = w, .admitted = view->epoch, .node = node};
        commit_pipe_init(&n->workers[w].own.pipe, &name);
        crig_adopt(r, node, w);
    }
}

void crig_forget(struct crig *r, uint8_t node, uint8_t worker)
{
    for (uint32_t i = 0; i < CRIG_PIPES; i++) {
        struct crig_pipe *p = &r->nodes[node].workers[worker].followed[i];
        p->used = p->used && !commit_pipe_empty(&p->pipe);
    }
}

/* ---- Ownership ---- */

bool crig_recovered(const struct crig *r)
{
    const struct view *view = crig_newest(r);
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        for (uint8_t w = 0; w < CRIG_WORKERS; w++) {
            const struct crig_worker *worker = &r->nodes[node].workers[w];
            if (!crig_live(r, node) || worker->view.epoch != view->epoch ||
                worker->recovered != view->epoch) {
                return false;
            }
        }
    }
    return true;
}

/* Whether the owner lives, what it has is committed, and who read it is done. */
static bool owner_free(const struct crig *r, uint32_t object)
{
    uint8_t owner = r->vectors[object].owner;
    return nodeset_has(crig_holders(r, object), owner) && crig_live(r, owner) &&
           r->nodes[owner].objects[object].state == CRIG_VALID &&
           !is_read(r, owner, CRIG_WORKERS, object);
}

static void copy_to(struct crig *r, uint32_t object, uint8_t to)
{
    struct crig_replica *replica = &r->nodes[to].objects[object];
    *replica = r->nodes[r->vectors[object].owner].objects[object];
    memset(replica->read, 0, sizeof(replica->read));
}

bool crig_move(struct crig *r, uint32_t object, uint8_t to)
{
    struct crig_vector *v = &r->vectors[object];
    if (!crig_recovered(r) || !owner_free(r, object) || !crig_live(r, to) || v->owner == to) {
        return false;
    }
    copy_to(r, object, to);
    *v = (struct crig_vector){.readers = crig_holders(r, object) & ~nodeset_of(to),
                              .epoch = crig_newest(r)->epoch,
                              .owner = to};
    r->moves++;
    return true;
}

bool crig_take_over(struct crig *r, uint32_t object, uint8_t to)
{
    struct crig_vector *v = &r->vectors[object];
    nodeset holders = crig_holders(r, object);
    if (!crig_recovered(r) || nodeset_has(holders, v->owner) || !nodeset_has(holders, to)) {
        return false;
    }
    *v = (struct crig_vector){
        .readers = holders & ~nodeset_of(to), .epoch = crig_newest(r)->epoch, .owner = to};
    r->nodes[to].objects[object].state = CRIG_VALID;
    r->takeovers++;
    return true;
}

bool crig_add_reader(struct crig *r, uint32_t object, uint8_t node)
{
    struct crig_vector *v = &r->vectors[object];
    nodeset holders = crig_holders(r, object);
    if (!crig_recovered(r) || !owner_free(r, object) || !crig_live(r, node) ||
        nodeset_has(holders, node)) {
        return false;
    }
    copy_to(r, object, node);
    v->readers = (holders & ~nodeset_of(v->owner)) | nodeset_of(node);
    v->epoch = crig_newest(r)->epoch;
    return true;
}

/* ---- The end ---- */

const char *crig_settle(struct crig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        if (r->nodes[i].crashed && nodeset_has(crig_newest(r)->live, i)) {
            crig_drop(r, i);
        }
    }
    crig_adopt_all(r);
    crig_run(r);
    if (!crig_recovered(r)) {
        fail(r, "somebody has not recovered");
    }
    for (uint8_t i = 0; i < r->n; i++) {
        for (uint8_t w = 0; crig_live(r, i) && w < CRIG_WORKERS; w++) {
            const struct crig_worker *worker = &r->nodes[i].workers[w];
            if (!commit_pipe_empty(&worker->own.pipe)) {
                fail(r, "a pipeline is stuck");
            }
            for (uint32_t p = 0; p < CRIG_PIPES; p++) {
                if (worker->followed[p].used && !commit_pipe_empty(&worker->followed[p].pipe)) {
                    fail(r, "something is stored for ever");
                }
            }
        }
    }
    for (uint8_t i = 0; i < r->n; i++) {
        for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
            (void)crig_read(r, i, 1u << o);
        }
        for (uint32_t set = 1; set < 1u << CRIG_OBJECTS; set++) {
            (void)crig_read(r, i, set);
        }
    }
    const char *why = crig_judge(r);
    return r->why != NULL ? r->why : why;
}
