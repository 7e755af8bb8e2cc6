/* The world around the machines of the rig: views, maps, time, and how it all ends. */
#include "support/galene_rig.h"

#include <stdio.h>
#include <string.h>

const struct view *rig_newest(const struct rig *r)
{
    return &r->views[r->nviews - 1];
}

const struct rig_map *rig_truth(const struct rig *r)
{
    return &r->maps[r->nmaps - 1];
}

/* ---- The key ---- */

bool rig_wholly_in(const struct rig *r, uint8_t node, uint32_t epoch)
{
    for (uint8_t w = 0; w < r->workers; w++) {
        if (r->nodes[node].workers[w].view.epoch != epoch) {
            return false;
        }
    }
    return !r->nodes[node].crashed;
}

static bool may_begin(const struct rig *r, uint8_t node, uint8_t worker)
{
    const struct rig_worker *w = &r->nodes[node].workers[worker];
    bool room = false;
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        room = room || w->slots[i].kind == GALENE_FLOW_FREE;
    }
    return room && rig_wholly_in(r, node, w->view.epoch) && rig_issues(r, node, worker) &&
           nodeset_has(w->view.live, node);
}

bool rig_hot(struct rig *r, uint8_t node, uint8_t worker, enum hot_code code, uint32_t generation)
{
    if (!may_begin(r, node, worker)) {
        return false;
    }
    struct event event = rig_event(r, node, worker, EV_HOT);
    event.code = (uint8_t)code;
    event.ts = generation;
    rig_key_step(r, node, worker, &event, 0, 0, 0);
    return true;
}

bool rig_move(struct rig *r, uint8_t node, uint8_t worker)
{
    if (!may_begin(r, node, worker)) {
        return false;
    }
    struct event event = rig_event(r, node, worker, EV_MOVE);
    rig_key_step(r, node, worker, &event, 0, 0, 0);
    return true;
}

void rig_sweep(struct rig *r, uint8_t node, uint8_t worker)
{
    const struct rig_worker *w = &r->nodes[node].workers[worker];
    if (!r->nodes[node].crashed && nodeset_has(w->view.operational, node) &&
        r->nodes[node].meta.state != GALENE_NONE) {
        struct event event = rig_event(r, node, worker, EV_SWEEP);
        rig_key_step(r, node, worker, &event, 0, 0, 0);
    }
}

bool rig_timers(struct rig *r)
{
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < (uint32_t)r->n * r->workers * RIG_SLOTS; i++) {
        const struct rig_node *n = &r->nodes[i / RIG_SLOTS / r->workers];
        uint64_t due = n->workers[i / RIG_SLOTS % r->workers].slots[i % RIG_SLOTS].deadline_us;
        next = !n->crashed && due != 0 && due < next ? due : next;
    }
    if (next == UINT64_MAX) {
        return false;
    }
    r->now_us = next > r->now_us ? next : r->now_us;
    for (uint8_t node = 0; node < r->n; node++) {
        for (uint8_t worker = 0; worker < r->workers && !r->nodes[node].crashed; worker++) {
            struct slot *slots = r->nodes[node].workers[worker].slots;
            for (uint32_t i = 1; i < RIG_SLOTS; i++) {
                if (slots[i].deadline_us != 0 && slots[i].deadline_us <= r->now_us) {
                    rig_flow_step(r, node, worker, i, EV_TIMER, 0, NULL, NODE_NONE, 0);
                }
            }
        }
    }
    return true;
}

/* ---- Maps ---- */

static void announce(struct rig *r, struct slot_home home)
{
    HK_ASSERT(r->nmaps < RIG_MAPS);
    r->maps[r->nmaps++] = (struct rig_map){.home = home, .epoch = rig_newest(r)->epoch};
}

/* M1. */
static void announce_epoch(struct rig *r)
{
    struct slot_home home = rig_truth(r)->home;
    const struct view *now = rig_newest(r);
    const struct view *before = &r->views[r->nviews - 2];
    bool gone = rig_born(now, home.home) != rig_born(before, home.home) ||
                (home.state == HOME_MOVING && rig_born(now, home.to) != rig_born(before, home.to));
    if ((home.state == HOME_STABLE || home.state == HOME_MOVING) && gone) {
        home.to = NODE_NONE;
        home.state = HOME_LOST;
    }
    announce(r, home);
}

static void look_ready(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    for (uint8_t w = 0; w < r->workers; w++) {
        if (n->workers[w].view.epoch == r->maps[n->map].epoch) {
            n->workers[w].ready = n->workers[w].view.epoch;
        }
    }
}

void rig_learn(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    uint32_t epoch = n->workers[0].view.epoch;
    if (n->crashed || !nodeset_has(rig_newest(r)->live, node) ||
        rig_born(&n->workers[0].view, node) != rig_born(rig_newest(r), node)) {
        return;
    }
    if (n->map + 1 < r->nmaps && r->maps[n->map + 1].epoch <= epoch) {
        n->map++;
    }
    look_ready(r, node);
}

static bool moving_from(const struct rig *r, uint8_t node)
{
    return r->nodes[node].map + 1 == r->nmaps;
}

bool rig_map_move(struct rig *r, uint8_t to)
{
    struct slot_home home = rig_truth(r)->home;
    if (home.state != HOME_STABLE || home.home == to ||
        !nodeset_has(rig_newest(r)->operational, to)) {
        return false;
    }
    home.to = to;
    home.state = HOME_MOVING;
    announce(r, home);
    return true;
}

bool rig_map_moved(struct rig *r)
{
    struct slot_home home = rig_truth(r)->home;
    const struct rig_node *n = &r->nodes[home.home];
    if (home.state != HOME_MOVING || !moving_from(r, home.home) || n->crashed ||
        n->meta.state != GALENE_NONE) {
        return false;
    }
    announce(r, (struct slot_home){.home = home.to, .to = NODE_NONE, .state = HOME_STABLE});
    return true;
}

bool rig_map_empty(struct rig *r)
{
    struct slot_home home = rig_truth(r)->home;
    if (home.state != HOME_LOST) {
        return false;
    }
    home.state = HOME_EMPTYING;
    announce(r, home);
    r->emptying = rig_op_new(r, RIG_DELETE, 0, 0);
    r->ops[r->emptying].wait = RIG_ISSUED;
    return true;
}

bool rig_map_purged(struct rig *r, uint8_t to)
{
    struct slot_home home = rig_truth(r)->home;
    if (home.state != HOME_EMPTYING || !nodeset_has(rig_newest(r)->operational, to)) {
        return false;
    }
    for (nodeset rest = rig_newest(r)->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (r->nodes[node].meta.state != GALENE_NONE || r->nodes[node].map + 1 != r->nmaps) {
            return false;
        }
    }
    rig_op_end(r, r->emptying, HISTORY_OK, 0);
    r->emptying = 0;
    announce(r, (struct slot_home){.home = to, .to = NODE_NONE, .state = HOME_STABLE});
    return true;
}

/* ---- Views ---- */

static struct view *next_view(struct rig *r)
{
    HK_ASSERT(r->nviews < RIG_VIEWS);
    struct view *view = &r->views[r->nviews++];
    *view = r->views[r->nviews - 2];
    view->epoch++;
    return view;
}

void rig_drop(struct rig *r, uint8_t node)
{
    struct view *view = next_view(r);
    view->live &= ~nodeset_of(node);
    view->operational &= ~nodeset_of(node);
    view->members[node] = (struct view_member){.nonce = 0};
    announce_epoch(r);
}

static void member_new(struct view *view, uint8_t node)
{
    view->members[node] = (struct view_member){.nonce = 1,
                                               .admitted = view->epoch,
                                               .cid_first = view->next_cid,
                                               .cid_count = 3,
                                               .role = VIEW_ROLE_OPERATIONAL};
    view->next_cid += 3;
    view->live |= nodeset_of(node);
    view->operational |= nodeset_of(node);
}

/* Operations of the node's clients, and those of others that it has taken up. */
static void forget_operations(struct rig *r, uint8_t node)
{
    for (uint32_t i = 1; i < r->nops; i++) {
        struct rig_op *op = &r->ops[i];
        if (op->wait == RIG_OVER || op->wait == RIG_AWAY || i == r->emptying) {
            continue;
        }
        if (op->at == node && op->wait == RIG_ISSUED) {
            rig_op_end(r, i, HISTORY_UNKNOWN, 0);
        } else if (op->at == node && (op->node == node || op->kind != RIG_READ)) {
            rig_op_end(r, i, op->node == node ? HISTORY_FAILED : HISTORY_UNKNOWN, 0);
        } else if (op->at == node && r->nodes[op->node].crashed) {
            rig_op_end(r, i, HISTORY_FAILED, 0);
        } else if (op->at == node) {
            op->at = op->node; /* a read begins anew */
            op->handed = false;
            op->wait = RIG_READY;
        }
    }
}

static void node_new(struct rig *r, uint8_t node, const struct view *view)
{
    struct rig_node *n = &r->nodes[node];
    forget_operations(r, node);
    memset(n, 0, sizeof *n);
    n->meta = galene_ops.blank;
    for (uint8_t w = 0; w < r->workers; w++) {
        n->workers[w].view = *view;
        for (uint32_t i = 1; i < RIG_SLOTS; i++) {
            n->workers[w].slots[i] = (struct slot){.ref = slot_ref(w, i), .gen = 1};
        }
    }
}

void rig_admit(struct rig *r, uint8_t node)
{
    struct view *view = next_view(r);
    member_new(view, node);
    node_new(r, node, view);
    announce_epoch(r);
    r->nodes[node].map = r->nmaps - 1;
    look_ready(r, node);
}

void rig_adopt(struct rig *r, uint8_t node, uint8_t worker)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    const struct view *view = rig_newest(r);
    if (r->nodes[node].crashed || view->epoch <= w->view.epoch || !nodeset_has(view->live, node) ||
        rig_born(view, node) != rig_born(&w->view, node)) {
        return;
    }
    w->view = *view;
    look_ready(r, node);
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        if (w->slots[i].kind != GALENE_FLOW_FREE) {
            rig_flow_step(r, node, worker, i, EV_VIEW, 0, NULL, NODE_NONE, 0);
        }
    }
}

void rig_adopt_all(struct rig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        for (uint8_t w = 0; w < r->workers; w++) {
            rig_adopt(r, i, w);
        }
        for (uint32_t k = 0; k < r->nmaps; k++) {
            rig_learn(r, i);
        }
    }
}

void rig_crash(struct rig *r, uint8_t node)
{
    r->nodes[node].crashed = true;
    forget_operations(r, node);
}

/* ---- Whole runs ---- */

void rig_init(struct rig *r, uint8_t n, uint8_t workers, bool empty, uint64_t rules_off,
              uint64_t seed)
{
    memset(r, 0, sizeof *r);
    HK_ASSERT(n <= RIG_NODES && workers <= RIG_WORKERS);
    r->n = n;
    r->workers = workers;
    r->now_us = 1000000;
    r->config = (struct galene_config){.retry_us = 1000, .rescue_us = 5000, .rules_off = rules_off};
    random_init(&r->random, seed);
    r->nops = 1;
    uint32_t first = rig_op_new(r, RIG_WRITE, 0, 0);
    rig_op_end(r, first, empty ? HISTORY_FAILED : HISTORY_OK, 0);
    struct view *view = &r->views[0];
    r->nviews = 1;
    view->epoch = 1;
    view->next_cid = 1;
    for (uint8_t i = 0; i < n; i++) {
        member_new(view, i);
        view->configured |= nodeset_of(i);
    }
    r->nmaps = 1;
    announce(r, (struct slot_home){.home = 0, .to = NODE_NONE, .state = HOME_STABLE});
    for (uint8_t i = 0; i < n; i++) {
        node_new(r, i, view);
        r->nodes[i].map = 1;
        look_ready(r, i);
    }
    if (!empty) {
        r->nodes[0].value = first;
        r->nodes[0].meta =
            (struct key_meta){.ts = stamp_make(1, 1), .state = GALENE_HOME, .flags = KEY_READABLE};
    }
}

void rig_run(struct rig *r)
{
    for (uint32_t round = 0; round < 64; round++) {
        while (rig_run_one(r)) {
        }
        bool ready = false;
        for (uint32_t i = 1; i < r->nops; i++) {
            if (r->ops[i].wait == RIG_READY || r->ops[i].wait == RIG_AWAY) {
                rig_push(r, i);
                ready = true;
            }
        }
        if (!ready) {
            break;
        }
    }
}

static const char *unsettled(const struct rig *r)
{
    const struct view *view = rig_newest(r);
    struct slot_home home = rig_truth(r)->home;
    const struct rig_node *valid = NULL;
    const struct rig_node *plain = NULL;
    bool lost = home.state == HOME_LOST;
    bool died = r->nviews > 1;
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        const struct rig_node *n = &r->nodes[nodeset_first(rest)];
        switch ((enum galene_state)n->meta.state) {
        case GALENE_NONE:
            break;
        case GALENE_HOME:
            if (plain != NULL || (!lost && n != &r->nodes[home.home])) {
                return "plain at two nodes, or not at the home";
            }
            plain = n;
            break;
        case GALENE_VALID:
            if (valid != NULL && (valid->meta.ts != n->meta.ts || valid->value != n->value ||
                                  valid->meta.aux != n->meta.aux)) {
                if (!died) {
                    return "Valid with two values";
                }
            }
            valid = n;
            break;
        case GALENE_LOST:
            if (!died) {
                return "lost, although nobody died";
            }
            break;
        case GALENE_ENTERING:
        case GALENE_INVALID:
        case GALENE_WRITE:
        case GALENE_DROPPING:
        case GALENE_MOVING:
        case GALENE_STATES:
            return "a key that waits";
        }
        for (uint32_t i = 0; i < r->workers * RIG_SLOTS; i++) {
            if (n->workers[i / RIG_SLOTS].slots[i % RIG_SLOTS].kind != GALENE_FLOW_FREE) {
                return "a flow that waits";
            }
        }
    }
    for (uint32_t i = 1; i < r->nops; i++) {
        if (r->ops[i].wait != RIG_OVER && i != r->emptying) {
            return "an operation that waits";
        }
    }
    return plain != NULL && valid != NULL ? "plain and cached" : NULL;
}

static void end_moves(struct rig *r)
{
    struct slot_home home = rig_truth(r)->home;
    for (uint8_t i = 0; i < r->n; i++) {
        if (home.state == HOME_EMPTYING || (home.state == HOME_MOVING && home.home == i)) {
            (void)rig_move(r, i, (uint8_t)(r->steps % r->workers));
        }
    }
    (void)rig_map_moved(r);
    (void)rig_map_purged(r, nodeset_first(rig_newest(r)->operational));
    for (uint8_t i = 0; i < r->n; i++) {
        rig_learn(r, i);
    }
}

const char *rig_settle(struct rig *r)
{
    const char *why = NULL;
    rig_adopt_all(r);
    for (uint8_t i = 0; i < r->n; i++) {
        if (!nodeset_has(rig_newest(r)->live, i)) {
            rig_crash(r, i); /* it was dropped and ends, or has ended */
        }
    }
    for (uint32_t round = 0; round < 40; round++) {
        rig_run(r);
        why = unsettled(r);
        enum home_state state = (enum home_state)rig_truth(r)->home.state;
        if (why == NULL && (state == HOME_STABLE || state == HOME_LOST)) {
            return NULL;
        }
        end_moves(r);
        rig_run(r);
        if (round % 3 == 1) {
            (void)rig_timers(r);
        }
        for (uint8_t i = 0; i < r->n; i++) {
            rig_sweep(r, i, (uint8_t)(round % r->workers));
        }
        rig_run(r);
        for (uint32_t i = 1; i < r->nops; i++) {
            if (r->ops[i].wait == RIG_PARKED) {
                rig_push(r, i);
            }
        }
    }
    return why != NULL ? why : "a slot that does not come to rest";
}

bool rig_sound(struct rig *r)
{
    struct history history = {.ops = &r->history[1], .n = r->nops - 1};
    struct check_report report;
    for (uint32_t i = 1; i < r->nops; i++) {
        HK_ASSERT(history_op_invalid(&r->history[i]) == NULL);
    }
    return check_linearizable(&history, 0, &report) == CHECK_ACCEPTED;
}

void rig_print(const struct rig *r)
{
    const struct view *view = rig_newest(r);
    struct slot_home home = rig_truth(r)->home;
    printf("epoch %u live %llx home %u to %u state %u\n", view->epoch,
           (unsigned long long)view->live, home.home, home.to, home.state);
    for (uint8_t i = 0; i < r->n; i++) {
        const struct rig_node *n = &r->nodes[i];
        printf("node %u%s epochs %u %u map %u of %u: %s value %u ts %llu.%u generation %u flags %x "
               "owner %x\n",
               i, n->crashed ? " crashed" : "", n->workers[0].view.epoch, n->workers[1].view.epoch,
               n->map, r->nmaps - 1, galene_state_names[n->meta.state], n->value,
               (unsigned long long)stamp_version(n->meta.ts), stamp_cid(n->meta.ts), n->meta.aux,
               n->meta.flags, n->meta.owner);
        for (uint32_t s = 0; s < r->workers * RIG_SLOTS; s++) {
            const struct slot *slot = &n->workers[s / RIG_SLOTS].slots[s % RIG_SLOTS];
            if (slot->kind != GALENE_FLOW_FREE) {
                printf("    slot %u.%u kind %u state %u acked %llx want %llx deadline %lld\n",
                       s / RIG_SLOTS, s % RIG_SLOTS, slot->kind, slot->state,
                       (unsigned long long)slot->acked,
                       (unsigned long long)galene_aux_get(slot).want,
                       (long long)(slot->deadline_us - r->now_us));
            }
        }
    }
    for (uint32_t i = 1; i < r->nops; i++) {
        char text[128];
        (void)history_op_print(&r->history[i], text, sizeof text);
        printf("%u of %u at %u.%u wait %u%s: %s\n", i, r->ops[i].node, r->ops[i].at,
               r->ops[i].worker, r->ops[i].wait, r->ops[i].lost ? " lost" : "", text);
    }
}
