#include "support/craq_rig.h"

#include <stdio.h>
#include <string.h>

/* ---- Small helpers ---- */

static uint32_t born(const struct view *view, uint8_t node)
{
    return view->members[node].admitted;
}

const struct view *rig_newest(const struct rig *r)
{
    return &r->views[r->nviews - 1];
}

static bool is_nil(const struct rig *r, uint32_t value)
{
    return value == 0 || r->ops[value].kind == RIG_DELETE;
}

/* Values are the numbers of the operations that wrote them. */
static int64_t number_of(const struct rig *r, uint32_t value)
{
    return is_nil(r, value) ? HISTORY_ABSENT : (int64_t)value;
}

bool rig_can_serve(const struct rig *r, uint8_t node, uint8_t worker)
{
    const struct rig_node *n = &r->nodes[node];
    const struct view *mine = &n->workers[worker].view;
    /* A view without a node is decided only when its lease has ended. */
    return !n->crashed && nodeset_has(rig_newest(r)->operational, node) &&
           nodeset_has(mine->operational, node) && born(mine, node) == born(rig_newest(r), node);
}

static struct event event_of(struct rig *r, uint8_t node, uint8_t worker, enum ev_kind kind)
{
    return (struct event){.kind = kind,
                          .from = NODE_NONE,
                          .self = node,
                          .now_us = r->now_us,
                          .random = random_next(&r->random),
                          .view = &r->nodes[node].workers[worker].view,
                          .config = &r->config};
}

/* ---- The history ---- */

static void history_begin(struct rig *r, uint32_t id)
{
    const struct rig_op *op = &r->ops[id];
    static const uint8_t kinds[] = {[RIG_READ] = HISTORY_READ,
                                    [RIG_WRITE] = HISTORY_WRITE,
                                    [RIG_DELETE] = HISTORY_DELETE,
                                    [RIG_RMW] = HISTORY_GETSET};
    bool input = op->kind == RIG_WRITE || op->kind == RIG_RMW;
    r->history[id] = (struct history_op){.begin_us = ++r->clock,
                                         .key = 1,
                                         .in = input ? (int64_t)id : HISTORY_ABSENT,
                                         .expected = HISTORY_ABSENT,
                                         .out = HISTORY_ABSENT,
                                         .client = id,
                                         .kind = kinds[op->kind],
                                         .outcome = HISTORY_UNKNOWN};
}

static void op_end(struct rig *r, uint32_t id, enum history_outcome outcome, int64_t out)
{
    struct rig_op *op = &r->ops[id];
    HK_ASSERT(op->open);
    op->open = false;
    op->parked = false;
    op->slot = 0;
    op->done = outcome == HISTORY_OK;
    op->out = out;
    struct history_op *h = &r->history[id];
    h->end_us = ++r->clock;
    h->outcome = (uint8_t)outcome;
    if (outcome == HISTORY_OK && (op->kind == RIG_READ || op->kind == RIG_RMW)) {
        h->out = out;
    }
}

/* ---- Effects ---- */

static void flow_step(struct rig *r, uint8_t node, uint8_t worker, uint32_t slot,
                      const struct event *event, uint32_t value);
static void try_op(struct rig *r, uint32_t id);

static uint8_t value_flags(const struct rig *r, uint32_t value)
{
    return is_nil(r, value) ? KEY_TOMBSTONE : 0;
}

static void lane_add(struct rig_lane *lane, const struct rig_message *m)
{
    HK_ASSERT(lane->n < RIG_LANE);
    lane->messages[(lane->first + lane->n++) % RIG_LANE] = *m;
}

static void emit(struct rig *r, uint8_t node, uint8_t worker, const struct effect *e,
                 uint32_t value)
{
    static const uint8_t bytes[8];
    const struct view *view = &r->nodes[node].workers[worker].view;
    struct msg msg = {.kind = e->code,
                      .flags = e->flags,
                      .slot = e->slot,
                      .gen = e->gen,
                      .epoch = view->epoch,
                      .ts = e->ts,
                      .arg = e->set};
    if ((e->with & EFF_NO_KEY) == 0) {
        msg.key = bytes_of("k", 1);
    }
    bool carries = (e->with & (EFF_VALUE | EFF_PAYLOAD)) != 0;
    if (carries) {
        msg.vflags = value_flags(r, value);
        msg.value = bytes_of(bytes, msg.vflags != 0 ? 0 : sizeof bytes);
    }
    const char *invalid = craq_ops.msg_invalid(&msg);
    HK_ASSERT(invalid == NULL || r->config.rules_off != 0);
    if (invalid != NULL) {
        return; /* its receiver would not take it */
    }
    HK_ASSERT(e->to < r->n && e->to != node);
    uint8_t target = craq_ops.route(&msg) == ROUTE_SLOT ? slot_ref_worker(msg.slot) : worker;
    struct rig_message m = {.msg = msg,
                            .value = carries ? value : 0,
                            .from_born = born(view, node),
                            .to_born = born(view, e->to)};
    lane_add(&r->lanes[node][worker][e->to][target % r->workers], &m);
}

static void wake(struct rig *r, uint8_t node)
{
    for (uint32_t i = 1; i < r->nops; i++) {
        if (r->ops[i].open && r->ops[i].parked && r->ops[i].node == node) {
            r->ops[i].parked = false;
            try_op(r, i);
        }
    }
}

static void tell_flow(struct rig *r, uint8_t node, const struct effect *e)
{
    uint8_t worker = slot_ref_worker(e->slot);
    uint32_t index = slot_ref_index(e->slot);
    if (worker >= r->workers || index == 0 || index >= RIG_SLOTS ||
        r->nodes[node].workers[worker].slots[index].kind == CRAQ_FLOW_FREE ||
        r->nodes[node].workers[worker].slots[index].gen != e->gen) {
        r->stray++;
        return;
    }
    struct event event = event_of(r, node, worker, EV_KEY);
    event.code = e->code;
    event.ts = e->ts;
    flow_step(r, node, worker, index, &event, 0);
}

static bool has(const struct effects *fx, enum eff_kind kind)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        if (fx->e[i].kind == kind) {
            return true;
        }
    }
    return false;
}

static void after_key(struct rig *r, uint8_t node, const struct effects *fx)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        if (e->kind == EFF_WAKE) {
            wake(r, node);
        } else if (e->kind == EFF_FLOW) {
            tell_flow(r, node, e);
        } else if (e->kind == EFF_DROP) {
            r->drops[e->code]++;
        }
    }
}

static uint32_t free_slot(const struct rig_worker *w)
{
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        if (w->slots[i].kind == CRAQ_FLOW_FREE) {
            return i;
        }
    }
    return 0;
}

/* payload: the operation whose value the event brings; op: the operation that steps, or 0. */
static void key_step(struct rig *r, uint8_t node, uint8_t worker, const struct event *event,
                     uint32_t payload, uint32_t op)
{
    struct rig_node *n = &r->nodes[node];
    struct rig_worker *w = &n->workers[worker];
    uint32_t spare = event->kind == EV_MSG ? 0 : free_slot(w);
    struct effects fx = {.n = 0};
    struct key_meta meta = n->meta;
    r->steps++;
    craq_ops.key(&meta, NULL, NULL, spare != 0 ? &w->slots[spare] : NULL, event, &fx);
    if (has(&fx, EFF_APPLY)) {
        if (event->kind == EV_MSG && n->refuses) {
            r->refused++;
            return; /* nothing of this step happened */
        }
        n->value = payload;
        meta.flags = (uint8_t)((meta.flags & ~KEY_VALUE_FLAGS) | value_flags(r, payload));
    }
    n->meta = meta;
    craq_ops.check(&n->meta, NULL);
    for (uint32_t i = 0; i < fx.n; i++) {
        if (fx.e[i].kind == EFF_SEND) {
            bool own = (fx.e[i].with & EFF_VALUE) != 0;
            emit(r, node, worker, &fx.e[i], own ? n->value : payload);
        }
    }
    if (op != 0 && (has(&fx, EFF_ISSUE) || has(&fx, EFF_ASK))) {
        HK_ASSERT(spare != 0 && w->slots[spare].kind != CRAQ_FLOW_FREE);
        w->op[spare] = op;
        r->ops[op].slot = spare;
    } else {
        HK_ASSERT(spare == 0 || w->slots[spare].kind == CRAQ_FLOW_FREE);
        if (op != 0) {
            r->ops[op].parked = true; /* the engine says so, or the node tries again soon */
        }
    }
    after_key(r, node, &fx);
}

static void flow_ends(struct rig *r, uint8_t node, uint8_t worker, uint32_t slot,
                      enum reply_code code, uint32_t value)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    uint32_t id = w->op[slot];
    struct rig_op *op = &r->ops[id];
    if (id == 0 || !op->open) {
        return;
    }
    w->op[slot] = 0;
    op->slot = 0;
    bool may_say = rig_can_serve(r, node, worker);
    switch (code) {
    case REPLY_DONE:
        op_end(r, id, may_say ? HISTORY_OK : HISTORY_UNKNOWN, number_of(r, op->base));
        break;
    case REPLY_VALUE:
        if (may_say) {
            op_end(r, id, HISTORY_OK, number_of(r, value));
        } else {
            op_end(r, id, HISTORY_FAILED, 0);
        }
        break;
    case REPLY_LOST:
    case REPLY_AGAIN:
        op->parked = true; /* tried again later */
        break;
    case REPLY_UNKNOWN:
        op_end(r, id, HISTORY_UNKNOWN, 0);
        break;
    case REPLY_OVERTAKEN:
        HK_ASSERT(false && "CRAQ does not say so");
    }
}

static void close_slot(struct rig_worker *w, uint32_t slot)
{
    uint32_t ref = w->slots[slot].ref;
    uint32_t gen = w->slots[slot].gen + 1;
    w->slots[slot] = (struct slot){.ref = ref, .gen = gen};
}

static void flow_step(struct rig *r, uint8_t node, uint8_t worker, uint32_t slot,
                      const struct event *event, uint32_t value)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    struct effects fx = {.n = 0};
    r->steps++;
    craq_ops.flow(&w->slots[slot], event, &fx);
    enum reply_code code = REPLY_DONE;
    bool ends = false;
    for (uint32_t i = 0; i < fx.n; i++) {
        if (fx.e[i].kind == EFF_REPLY) {
            code = (enum reply_code)fx.e[i].code;
            ends = true;
        } else if (fx.e[i].kind == EFF_DROP) {
            r->drops[fx.e[i].code]++;
        }
    }
    if (ends) {
        flow_ends(r, node, worker, slot, code, value);
    }
    if (has(&fx, EFF_CLOSE)) {
        close_slot(w, slot);
    }
}

/* ---- Clients ---- */

static void try_op(struct rig *r, uint32_t id)
{
    struct rig_op *op = &r->ops[id];
    struct rig_node *n = &r->nodes[op->node];
    if (!rig_can_serve(r, op->node, op->worker)) {
        op_end(r, id, HISTORY_FAILED, 0);
        return;
    }
    bool readable = (n->meta.flags & KEY_READABLE) != 0;
    op->tries++;
    if (op->kind == RIG_READ && readable) {
        op_end(r, id, HISTORY_OK, number_of(r, n->value));
        return;
    }
    if (free_slot(&n->workers[op->worker]) == 0) {
        op->parked = true;
        return;
    }
    struct event event =
        event_of(r, op->node, op->worker, op->kind == RIG_READ ? EV_READ : EV_UPDATE);
    event.rmw = op->kind == RIG_RMW;
    op->base = n->value;
    key_step(r, op->node, op->worker, &event, id, id);
}

uint32_t rig_do(struct rig *r, uint8_t node, uint8_t worker, enum rig_kind kind)
{
    HK_ASSERT(r->nops < RIG_OPS);
    uint32_t id = r->nops++;
    r->ops[id] = (struct rig_op){.kind = kind, .node = node, .worker = worker, .open = true};
    history_begin(r, id);
    try_op(r, id);
    return id;
}

void rig_prod(struct rig *r, uint32_t id)
{
    struct rig_op *op = &r->ops[id];
    if (!op->open || !op->parked || r->nodes[op->node].crashed) {
        return;
    }
    struct event event = event_of(r, op->node, op->worker, EV_TIMER);
    key_step(r, op->node, op->worker, &event, 0, 0);
    if (op->open && op->parked) {
        op->parked = false;
        try_op(r, id);
    }
}

uint32_t rig_seen(const struct rig *r, uint32_t id)
{
    HK_ASSERT(r->ops[id].done);
    return r->ops[id].out == HISTORY_ABSENT ? 0 : (uint32_t)r->ops[id].out;
}

/* ---- Lanes ---- */

static void adopt_epoch(struct rig *r, uint8_t node, uint8_t worker, uint32_t epoch);

static void route(struct rig *r, uint8_t from, uint8_t to, uint8_t tw, const struct rig_message *m)
{
    struct rig_worker *w = &r->nodes[to].workers[tw];
    struct event event = event_of(r, to, tw, EV_MSG);
    bool member = nodeset_has(w->view.live, from) && born(&w->view, from) == m->from_born;
    event.from = member ? from : NODE_NONE;
    event.msg = &m->msg;
    if (craq_ops.route(&m->msg) == ROUTE_KEY) {
        key_step(r, to, tw, &event, m->value, 0);
        return;
    }
    uint32_t index = slot_ref_index(m->msg.slot);
    if (w->slots[index].kind != CRAQ_FLOW_FREE && w->slots[index].gen == m->msg.gen) {
        flow_step(r, to, tw, index, &event, m->value);
    } else {
        r->stray++;
    }
}

bool rig_deliver(struct rig *r, uint8_t from, uint8_t fw, uint8_t to, uint8_t tw)
{
    struct rig_lane *lane = &r->lanes[from][fw][to][tw];
    if (lane->n == 0) {
        return false;
    }
    struct rig_message m = lane->messages[lane->first];
    const struct rig_node *n = &r->nodes[to];
    bool same = !n->crashed && born(&n->workers[tw].view, to) == m.to_born;
    if (same && m.msg.epoch > n->workers[tw].view.epoch) {
        return false; /* lanes deliver epoch by epoch */
    }
    lane->first = (lane->first + 1) % RIG_LANE;
    lane->n--;
    if (same && m.msg.kind == CRAQ_ANSWER) {
        /* It comes in a later poll than the question left in: that one begins with adopting what
         * other workers of the node have adopted. */
        adopt_epoch(r, to, tw, r->nodes[to].published);
    }
    if (same) {
        uint32_t refused = r->refused;
        route(r, from, to, tw, &m);
        if (m.msg.kind == CRAQ_ITEM && m.msg.epoch == n->workers[tw].view.epoch &&
            r->refused == refused) {
            r->nodes[to].copied = true; /* else the chunk has to come again */
        }
    }
    return true;
}

void rig_pass(struct rig *r, uint8_t from, uint8_t to, enum craq_kind kind)
{
    const struct rig_lane *lane = &r->lanes[from][0][to][0];
    HK_ASSERT(lane->n > 0 && lane->messages[lane->first].msg.kind == kind);
    bool delivered = rig_deliver(r, from, 0, to, 0);
    HK_ASSERT(delivered);
}

static bool deliver_nth(struct rig *r, uint32_t nth)
{
    uint8_t fw = (uint8_t)(nth % r->workers);
    uint8_t tw = (uint8_t)(nth / r->workers % r->workers);
    uint8_t from = (uint8_t)(nth / r->workers / r->workers % r->n);
    uint8_t to = (uint8_t)(nth / r->workers / r->workers / r->n % r->n);
    return rig_deliver(r, from, fw, to, tw);
}

bool rig_run_one(struct rig *r)
{
    uint32_t all = (uint32_t)r->n * r->n * r->workers * r->workers;
    uint32_t first = (uint32_t)random_below(&r->random, all);
    for (uint32_t i = 0; i < all; i++) {
        if (deliver_nth(r, (first + i) % all)) {
            return true;
        }
    }
    return false;
}

void rig_run(struct rig *r)
{
    while (rig_run_one(r)) {
    }
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
}

static void member_new(struct view *view, uint8_t node, uint8_t role)
{
    view->members[node] = (struct view_member){.nonce = 1, .admitted = view->epoch, .role = role};
    view->live |= nodeset_of(node);
}

static void forget_operations(struct rig *r, uint8_t node)
{
    for (uint32_t i = 1; i < r->nops; i++) {
        if (r->ops[i].open && r->ops[i].node == node) {
            bool issued = r->ops[i].slot != 0;
            op_end(r, i, issued ? HISTORY_UNKNOWN : HISTORY_FAILED, 0);
        }
    }
}

static void node_new(struct rig *r, uint8_t node, const struct view *view)
{
    struct rig_node *n = &r->nodes[node];
    forget_operations(r, node);
    memset(n, 0, sizeof *n);
    n->meta = craq_ops.blank;
    n->published = view->epoch;
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
    member_new(view, node, VIEW_ROLE_SHADOW);
    node_new(r, node, view);
}

static bool wholly_in(const struct rig *r, uint8_t node, uint32_t epoch)
{
    for (uint8_t w = 0; w < r->workers; w++) {
        if (r->nodes[node].workers[w].view.epoch != epoch) {
            return false;
        }
    }
    return !r->nodes[node].crashed;
}

bool rig_promote(struct rig *r, uint8_t node)
{
    const struct view *newest = rig_newest(r);
    if (!nodeset_has(craq_shadows(newest), node) || !r->nodes[node].copied ||
        !wholly_in(r, node, newest->epoch)) {
        return false;
    }
    struct view *view = next_view(r);
    view->members[node].role = VIEW_ROLE_OPERATIONAL;
    view->operational |= nodeset_of(node);
    return true;
}

static void adopt_epoch(struct rig *r, uint8_t node, uint8_t worker, uint32_t epoch)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    const struct view *view = &r->views[epoch - 1];
    if (r->nodes[node].crashed || view->epoch <= w->view.epoch || !nodeset_has(view->live, node) ||
        born(view, node) != born(&w->view, node)) {
        return;
    }
    w->view = *view;
    if (epoch > r->nodes[node].published) {
        r->nodes[node].published = epoch;
    }
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        if (w->slots[i].kind != CRAQ_FLOW_FREE) {
            struct event event = event_of(r, node, worker, EV_VIEW);
            flow_step(r, node, worker, i, &event, 0);
        }
    }
}

void rig_adopt(struct rig *r, uint8_t node, uint8_t worker)
{
    adopt_epoch(r, node, worker, rig_newest(r)->epoch);
}

void rig_adopt_all(struct rig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        for (uint8_t w = 0; w < r->workers; w++) {
            rig_adopt(r, i, w);
        }
    }
}

void rig_crash(struct rig *r, uint8_t node)
{
    r->nodes[node].crashed = true;
    forget_operations(r, node);
}

bool rig_chunk(struct rig *r, uint8_t donor, uint8_t shadow)
{
    static const uint8_t bytes[8];
    struct rig_node *d = &r->nodes[donor];
    const struct view *view = &d->workers[0].view;
    if (!nodeset_has(view->operational, donor) || !nodeset_has(craq_shadows(view), shadow) ||
        !wholly_in(r, donor, view->epoch) || !wholly_in(r, shadow, view->epoch) ||
        born(&r->nodes[shadow].workers[0].view, shadow) != born(view, shadow)) {
        return false;
    }
    if (d->meta.ts != 0) {
        struct rig_message m = {.value = d->value, .from_born = born(view, donor)};
        m.msg = (struct msg){.epoch = view->epoch, .ts = d->meta.ts, .key = bytes_of("k", 1)};
        craq_ops.item(&d->meta, &m.msg);
        m.msg.vflags = value_flags(r, d->value);
        m.msg.value = bytes_of(bytes, m.msg.vflags != 0 ? 0 : sizeof bytes);
        HK_ASSERT(craq_ops.msg_invalid(&m.msg) == NULL);
        m.to_born = born(view, shadow);
        lane_add(&r->lanes[donor][0][shadow][0], &m);
    } else {
        r->nodes[shadow].copied = true;
    }
    return true;
}

void rig_sweep(struct rig *r, uint8_t node)
{
    const struct rig_worker *w = &r->nodes[node].workers[0];
    if (!r->nodes[node].crashed && nodeset_has(w->view.operational, node) &&
        r->nodes[node].meta.ts != 0) {
        struct event event = event_of(r, node, 0, EV_SWEEP);
        key_step(r, node, 0, &event, 0, 0);
    }
}

void rig_timers(struct rig *r)
{
    r->now_us += r->config.retry_us;
    for (uint8_t node = 0; node < r->n; node++) {
        for (uint8_t worker = 0; worker < r->workers && !r->nodes[node].crashed; worker++) {
            const struct rig_worker *w = &r->nodes[node].workers[worker];
            for (uint32_t i = 1; i < RIG_SLOTS; i++) {
                if (w->slots[i].deadline_us != 0 && w->slots[i].deadline_us <= r->now_us) {
                    struct event event = event_of(r, node, worker, EV_TIMER);
                    flow_step(r, node, worker, i, &event, 0);
                }
            }
        }
    }
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
    r->config =
        (struct craq_config){.retry_us = 1000, .give_up_us = 1000000000, .rules_off = rules_off};
    random_init(&r->random, seed);
    r->nops = 2;
    r->ops[1] = (struct rig_op){.kind = RIG_WRITE};
    history_begin(r, 1);
    r->history[1].outcome = empty ? HISTORY_FAILED : HISTORY_OK;
    r->history[1].end_us = ++r->clock;
    struct view *view = &r->views[0];
    r->nviews = 1;
    view->epoch = 1;
    for (uint8_t i = 0; i < n; i++) {
        member_new(view, i, VIEW_ROLE_OPERATIONAL);
        view->configured |= nodeset_of(i);
        view->operational |= nodeset_of(i);
    }
    for (uint8_t i = 0; i < n; i++) {
        node_new(r, i, view);
        if (!empty) {
            r->nodes[i].value = 1;
            r->nodes[i].meta.ts = craq_ts(1, 1);
            r->nodes[i].meta.flags = KEY_READABLE;
        }
    }
}

static bool settled(const struct rig *r)
{
    const struct view *view = rig_newest(r);
    uint8_t one = nodeset_first(view->operational);
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        const struct rig_node *n = &r->nodes[nodeset_first(rest)];
        if (n->meta.state != CRAQ_CLEAN || n->meta.ts != r->nodes[one].meta.ts ||
            n->value != r->nodes[one].value) {
            return false;
        }
    }
    for (uint32_t i = 1; i < r->nops; i++) {
        if (r->ops[i].open) {
            return false;
        }
    }
    return true;
}

bool rig_settle(struct rig *r)
{
    rig_adopt_all(r);
    for (uint8_t i = 0; i < r->n; i++) {
        if (!nodeset_has(rig_newest(r)->live, i)) {
            rig_crash(r, i); /* it was dropped and ends, or has ended */
        }
    }
    for (uint32_t round = 0; round < 32; round++) {
        rig_run(r);
        if (settled(r)) {
            return true;
        }
        /* What was refused for memory has lost its client: only time ends that. */
        r->now_us += r->refused > 0 && round > 8 ? r->config.give_up_us : 0;
        rig_timers(r);
        for (uint8_t i = 0; i < r->n; i++) {
            rig_sweep(r, i);
            if (!r->nodes[i].copied) {
                (void)rig_chunk(r, craq_head(rig_newest(r)), i);
            }
            if (rig_promote(r, i)) {
                rig_adopt_all(r); /* a shadow sweeps nothing */
            }
        }
        rig_run(r);
        for (uint32_t i = 1; i < r->nops; i++) {
            rig_prod(r, i);
        }
    }
    return false;
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
    printf("epoch %u live %llx operational %llx\n", view->epoch, (unsigned long long)view->live,
           (unsigned long long)view->operational);
    for (uint8_t i = 0; i < r->n; i++) {
        const struct rig_node *n = &r->nodes[i];
        printf("node %u%s epochs %u %u %s value %u ts %u.%llu aux %u flags %x\n", i,
               n->crashed ? " crashed" : "", n->workers[0].view.epoch, n->workers[1].view.epoch,
               craq_state_names[n->meta.state], n->value, craq_ts_epoch(n->meta.ts),
               (unsigned long long)(n->meta.ts & CRAQ_NUMBER_MAX), n->meta.aux, n->meta.flags);
    }
    for (uint32_t i = 1; i < r->nops; i++) {
        char text[128];
        (void)history_op_print(&r->history[i], text, sizeof text);
        printf("%u at %u.%u: %s%s\n", i, r->ops[i].node, r->ops[i].worker, text,
               r->ops[i].open ? " (open)" : "");
    }
}
