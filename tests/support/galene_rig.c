#include "support/galene_rig.h"

#include <stdio.h>
#include <string.h>

/* ---- Small helpers ---- */

static bool is_nil(const struct rig *r, uint32_t value)
{
    return value == 0 || r->ops[value].kind == RIG_DELETE;
}

/* Values are the numbers of the operations that wrote them. */
static int64_t number_of(const struct rig *r, uint32_t value)
{
    return is_nil(r, value) ? HISTORY_ABSENT : (int64_t)value;
}

static struct slot_home home_of(const struct rig *r, uint8_t node)
{
    return r->maps[r->nodes[node].map].home;
}

bool rig_can_serve(const struct rig *r, uint8_t node, uint8_t worker)
{
    const struct rig_node *n = &r->nodes[node];
    const struct view *mine = &n->workers[worker].view;
    const struct view *newest = rig_newest(r);
    /* A view without a node is decided only when its lease has ended. */
    return !n->crashed && nodeset_has(newest->operational, node) &&
           nodeset_has(mine->operational, node) && n->map != 0 &&
           rig_born(mine, node) == rig_born(newest, node);
}

bool rig_issues(const struct rig *r, uint8_t node, uint8_t worker)
{
    const struct rig_worker *w = &r->nodes[node].workers[worker];
    for (uint8_t i = 0; i < r->workers; i++) {
        if (r->nodes[node].workers[i].view.epoch < w->view.epoch) {
            return false;
        }
    }
    return w->ready == w->view.epoch;
}

struct event rig_event(struct rig *r, uint8_t node, uint8_t worker, enum ev_kind kind)
{
    return (struct event){.kind = kind,
                          .from = NODE_NONE,
                          .self = node,
                          .now_us = r->now_us,
                          .random = random_next(&r->random),
                          .home = home_of(r, node),
                          .view = &r->nodes[node].workers[worker].view,
                          .config = &r->config};
}

/* ---- The history ---- */

uint32_t rig_op_new(struct rig *r, enum rig_kind kind, uint8_t node, uint8_t worker)
{
    static const uint8_t kinds[] = {[RIG_READ] = HISTORY_READ,
                                    [RIG_WRITE] = HISTORY_WRITE,
                                    [RIG_DELETE] = HISTORY_DELETE,
                                    [RIG_RMW] = HISTORY_GETSET};
    HK_ASSERT(r->nops < RIG_OPS);
    uint32_t id = r->nops++;
    r->ops[id] = (struct rig_op){
        .kind = kind, .wait = RIG_READY, .node = node, .at = node, .worker = worker};
    bool input = kind == RIG_WRITE || kind == RIG_RMW;
    r->history[id] = (struct history_op){.begin_us = ++r->clock,
                                         .key = 1,
                                         .in = input ? (int64_t)id : HISTORY_ABSENT,
                                         .expected = HISTORY_ABSENT,
                                         .out = HISTORY_ABSENT,
                                         .client = id,
                                         .kind = kinds[kind],
                                         .outcome = HISTORY_UNKNOWN};
    return id;
}

void rig_op_end(struct rig *r, uint32_t id, enum history_outcome outcome, int64_t out)
{
    struct rig_op *op = &r->ops[id];
    HK_ASSERT(op->wait != RIG_OVER);
    op->wait = RIG_OVER;
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

static void lane_add(struct rig_lane *lane, const struct rig_message *m)
{
    HK_ASSERT(lane->n < RIG_LANE);
    lane->messages[(lane->first + lane->n++) % RIG_LANE] = *m;
}

static void emit_to(struct rig *r, uint8_t node, uint8_t worker, uint8_t to, struct msg msg,
                    uint32_t value)
{
    const struct view *view = &r->nodes[node].workers[worker].view;
    HK_ASSERT(to < r->n && to != node);
    const char *invalid = galene_msg_invalid(&msg);
    HK_ASSERT(invalid == NULL || r->config.rules_off != 0);
    if (invalid != NULL) {
        return; /* its receiver would not take it */
    }
    uint8_t target = galene_route(&msg) == ROUTE_SLOT ? slot_ref_worker(msg.slot) : worker;
    struct rig_message m = {.msg = msg,
                            .value = value,
                            .from_born = rig_born(view, node),
                            .to_born = rig_born(view, to)};
    lane_add(&r->lanes[node][worker][to][target % r->workers], &m);
}

static void emit(struct rig *r, uint8_t node, uint8_t worker, const struct effect *e,
                 uint32_t value)
{
    static const uint8_t bytes[8];
    struct msg msg = {.kind = e->code,
                      .flags = e->flags,
                      .slot = e->slot,
                      .gen = e->gen,
                      .epoch = r->nodes[node].workers[worker].view.epoch,
                      .ts = e->ts,
                      .arg = e->kind == EFF_BCAST ? e->arg : e->set};
    if ((e->with & EFF_NO_KEY) == 0) {
        msg.key = bytes_of("k", 1);
    }
    bool carries = (e->with & (EFF_VALUE | EFF_PAYLOAD)) != 0;
    if (carries) {
        msg.vflags = is_nil(r, value) ? KEY_TOMBSTONE : 0;
        msg.value = bytes_of(bytes, msg.vflags != 0 ? 0 : sizeof bytes);
    }
    if (e->kind == EFF_SEND) {
        emit_to(r, node, worker, e->to, msg, carries ? value : 0);
        return;
    }
    for (nodeset rest = e->set; rest != 0; rest &= rest - 1) {
        emit_to(r, node, worker, nodeset_first(rest), msg, carries ? value : 0);
    }
}

static void wake(struct rig *r, uint8_t node)
{
    for (uint32_t i = 1; i < r->nops; i++) {
        if (r->ops[i].wait == RIG_PARKED && r->ops[i].at == node) {
            r->ops[i].wait = RIG_READY;
        }
    }
}

static void tell_flow(struct rig *r, uint8_t node, uint8_t worker, const struct effect *e)
{
    uint8_t owner = slot_ref_worker(e->slot);
    uint32_t index = slot_ref_index(e->slot);
    struct rig_node *n = &r->nodes[node];
    HK_ASSERT(owner < r->workers && index != 0 && index < RIG_SLOTS);
    HK_ASSERT(n->workers[owner].slots[index].kind != GALENE_FLOW_FREE);
    if (owner != worker) {
        HK_ASSERT(n->nmails < RIG_MAILS);
        n->mails[n->nmails++] =
            (struct rig_mail){.worker = owner, .code = e->code, .slot = index, .ts = e->ts};
        return;
    }
    rig_flow_step(r, node, worker, index, EV_KEY, e->code, NULL, NODE_NONE, e->ts);
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

static uint32_t free_slot(const struct rig_worker *w)
{
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        if (w->slots[i].kind == GALENE_FLOW_FREE) {
            return i;
        }
    }
    return 0;
}

static void count(struct rig *r, const struct key_meta *before, const struct rig_node *n,
                  const struct event *event)
{
    bool valid = n->meta.state == GALENE_VALID;
    r->entered += before->state == GALENE_ENTERING && valid;
    r->left += before->state == GALENE_DROPPING && n->meta.state == GALENE_HOME;
    r->moved += event->kind == EV_MSG && event->msg->kind == GALENE_ITEM;
    r->rescued += event->kind == EV_MSG && event->msg->kind == GALENE_UPD && valid &&
                  (before->flags & KEY_ASKING) != 0;
}

/* What stands in the store after the step. */
static void publish(struct rig *r, struct rig_node *n, const struct key_meta *meta,
                    const struct effects *fx, uint32_t payload)
{
    struct key_meta before = n->meta;
    if (has(fx, EFF_FORGET)) {
        n->meta = galene_ops.blank;
        n->value = 0;
        return;
    }
    n->meta = *meta;
    if (has(fx, EFF_APPLY)) {
        n->value = payload;
        n->meta.flags &= (uint8_t)~KEY_VALUE_FLAGS;
        n->meta.flags |= payload != 0 && is_nil(r, payload) ? KEY_TOMBSTONE : 0;
    }
    if (n->meta.state == GALENE_NONE) {
        HK_ASSERT(memcmp(&before, &n->meta, sizeof before) == 0);
    } else {
        galene_ops.check(&n->meta, NULL);
    }
}

static void op_after_step(struct rig *r, uint32_t op, const struct effects *fx, uint32_t spare,
                          struct rig_worker *w)
{
    if (op == 0) {
        return;
    }
    if (has(fx, EFF_LOST)) {
        r->ops[op].lost = true;
        rig_op_end(r, op, HISTORY_FAILED, 0);
    } else if (has(fx, EFF_ISSUE) || has(fx, EFF_HOLD)) {
        HK_ASSERT(spare != 0 && w->slots[spare].kind != GALENE_FLOW_FREE);
        w->op[spare] = op;
        r->ops[op].slot = spare;
        r->ops[op].wait = RIG_ISSUED;
    } else {
        r->ops[op].wait = has(fx, EFF_PARK) ? RIG_PARKED : RIG_READY;
    }
}

/* payload: the operation whose value the event brings; op: the operation that steps, or 0; mine:
 * the slot on whose behalf, or 0. */
void rig_key_step(struct rig *r, uint8_t node, uint8_t worker, struct event *event,
                  uint32_t payload, uint32_t op, uint32_t mine)
{
    struct rig_node *n = &r->nodes[node];
    struct rig_worker *w = &n->workers[worker];
    uint32_t spare = event->kind == EV_MSG ? 0 : free_slot(w);
    struct effects fx = {.n = 0};
    struct key_meta meta = n->meta;
    struct key_meta before = meta;
    r->steps++;
    event->vflags = payload != 0 && is_nil(r, payload) ? KEY_TOMBSTONE : 0;
    galene_ops.key(&meta, NULL, mine != 0 ? &w->slots[mine] : NULL,
                   spare != 0 ? &w->slots[spare] : NULL, event, &fx);
    publish(r, n, &meta, &fx, payload);
    count(r, &before, n, event);
    n->begun = spare != 0 && w->slots[spare].kind != GALENE_FLOW_FREE;
    n->later = has(&fx, EFF_LATER);
    if (has(&fx, EFF_HOLD)) {
        w->held[spare] = payload;
    }
    for (uint32_t i = 0; i < fx.n; i++) {
        const struct effect *e = &fx.e[i];
        if (e->kind == EFF_SEND || e->kind == EFF_BCAST) {
            emit(r, node, worker, e, (e->with & EFF_VALUE) != 0 ? n->value : payload);
        }
    }
    op_after_step(r, op, &fx, spare, w);
    bool begun = n->begun;
    bool later = n->later;
    for (uint32_t i = 0; i < fx.n; i++) {
        const struct effect *e = &fx.e[i];
        if (e->kind == EFF_WAKE) {
            wake(r, node);
        } else if (e->kind == EFF_FLOW) {
            tell_flow(r, node, worker, e);
        } else if (e->kind == EFF_DROP) {
            r->drops[e->code]++;
        }
    }
    n->begun = begun;
    n->later = later;
}

static void flow_ends(struct rig *r, uint8_t node, uint8_t worker, uint32_t slot,
                      enum reply_code code)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    uint32_t id = w->op[slot];
    struct rig_op *op = &r->ops[id];
    w->op[slot] = 0;
    if (id == 0 || op->wait != RIG_ISSUED) {
        return;
    }
    op->slot = 0;
    if (code == REPLY_LOST) {
        op->wait = RIG_READY;
        return;
    }
    HK_ASSERT(code == REPLY_DONE);
    bool may_say = rig_can_serve(r, node, worker);
    rig_op_end(r, id, may_say ? HISTORY_OK : HISTORY_UNKNOWN, number_of(r, op->base));
}

void rig_flow_step(struct rig *r, uint8_t node, uint8_t worker, uint32_t slot, enum ev_kind kind,
                   uint8_t code, const struct rig_message *m, uint8_t from, uint64_t ts)
{
    struct rig_worker *w = &r->nodes[node].workers[worker];
    struct slot *mine = &w->slots[slot];
    uint32_t gen = mine->gen;
    struct effects fx = {.n = 0};
    struct event event = rig_event(r, node, worker, kind);
    event.code = code;
    event.ts = ts;
    event.from = from;
    event.msg = m != NULL ? &m->msg : NULL;
    r->steps++;
    galene_ops.flow(mine, &event, &fx);
    for (uint32_t i = 0; i < fx.n; i++) {
        const struct effect *e = &fx.e[i];
        if (e->kind == EFF_SEND || e->kind == EFF_BCAST) {
            emit(r, node, worker, e, 0);
        } else if (e->kind == EFF_KEY) {
            struct event step = rig_event(r, node, worker, EV_FLOW);
            step.code = e->code;
            rig_key_step(r, node, worker, &step, w->held[slot], 0, slot);
            if (mine->kind == GALENE_FLOW_FREE || mine->gen != gen) {
                return;
            }
        } else if (e->kind == EFF_REPLY) {
            flow_ends(r, node, worker, slot, (enum reply_code)e->code);
        } else if (e->kind == EFF_CLOSE) {
            *mine = (struct slot){.ref = mine->ref, .gen = gen + 1};
            w->held[slot] = 0;
            w->op[slot] = 0;
        } else if (e->kind == EFF_DROP) {
            r->drops[e->code]++;
        }
    }
}

/* ---- Clients ---- */

static void send_on(struct rig *r, struct rig_op *op, uint8_t to, bool handed)
{
    const struct view *view = &r->nodes[op->at].workers[op->worker].view;
    if (op->hops >= 3 || !nodeset_has(view->live, to)) {
        op->hops = 0; /* it waits for a map that knows better */
        return;
    }
    op->hops++;
    op->handed = handed;
    op->handed_version = r->nodes[op->at].map;
    op->to_born = rig_born(view, to);
    op->at = to;
    op->wait = RIG_AWAY;
}

static void step_op(struct rig *r, uint32_t id, bool payload)
{
    struct rig_op *op = &r->ops[id];
    bool read = op->kind == RIG_READ;
    struct rig_node *n = &r->nodes[op->at];
    struct event event = rig_event(r, op->at, op->worker, read ? EV_READ : EV_UPDATE);
    if (free_slot(&n->workers[op->worker]) == 0 || (!read && !rig_issues(r, op->at, op->worker))) {
        return; /* tried again later */
    }
    event.rmw = op->kind == RIG_RMW;
    event.handed = op->handed && r->nodes[op->at].map <= op->handed_version;
    op->base = n->value;
    rig_key_step(r, op->at, op->worker, &event, payload ? id : 0, id, 0);
}

/* The key has no entry where the operation is. */
static void try_missing(struct rig *r, uint32_t id)
{
    struct rig_op *op = &r->ops[id];
    struct slot_home home = home_of(r, op->at);
    bool handed = op->handed && r->nodes[op->at].map <= op->handed_version;
    if (handed || (home.home == op->at && home.state == HOME_STABLE)) {
        if (op->kind == RIG_READ || op->kind == RIG_DELETE) {
            rig_op_end(r, id, HISTORY_OK, HISTORY_ABSENT);
        } else {
            step_op(r, id, true);
        }
    } else if (home.state == HOME_LOST || home.state == HOME_EMPTYING) {
        step_op(r, id, false);
    } else if (home.home != op->at) {
        send_on(r, op, home.home, false);
    } else {
        send_on(r, op, home.to, true);
    }
}

static void try_op(struct rig *r, uint32_t id)
{
    struct rig_op *op = &r->ops[id];
    const struct rig_node *n = &r->nodes[op->at];
    if (!rig_can_serve(r, op->at, op->worker)) {
        return;
    }
    op->tries++;
    if (n->meta.state == GALENE_NONE) {
        try_missing(r, id);
        return;
    }
    bool readable = (n->meta.flags & KEY_READABLE) != 0;
    if (op->kind == RIG_READ && readable) {
        rig_op_end(r, id, HISTORY_OK, number_of(r, n->value));
    } else {
        step_op(r, id, readable || op->kind == RIG_WRITE || op->kind == RIG_DELETE);
    }
}

uint32_t rig_do(struct rig *r, uint8_t node, uint8_t worker, enum rig_kind kind)
{
    uint32_t id = rig_op_new(r, kind, node, worker);
    try_op(r, id);
    return id;
}

/* Where it was going nobody is who was there. A read begins anew where its client is. */
static void never_arrives(struct rig *r, uint32_t id)
{
    struct rig_op *op = &r->ops[id];
    if (op->kind != RIG_READ || r->nodes[op->node].crashed) {
        rig_op_end(r, id, HISTORY_UNKNOWN, 0);
        return;
    }
    op->at = op->node;
    op->handed = false;
    op->wait = RIG_READY;
}

void rig_push(struct rig *r, uint32_t id)
{
    struct rig_op *op = &r->ops[id];
    if (op->wait == RIG_AWAY) {
        const struct rig_node *n = &r->nodes[op->at];
        const struct view *newest = rig_newest(r);
        if (n->crashed || rig_born(newest, op->at) != op->to_born) {
            never_arrives(r, id);
        } else {
            op->wait = RIG_READY;
        }
    } else if (op->wait == RIG_PARKED) {
        struct event event = rig_event(r, op->at, op->worker, EV_TIMER);
        rig_key_step(r, op->at, op->worker, &event, 0, 0, 0);
    }
    if (op->wait == RIG_READY) {
        try_op(r, id);
    }
}

uint32_t rig_seen(const struct rig *r, uint32_t id)
{
    HK_ASSERT(r->ops[id].done);
    return r->ops[id].out == HISTORY_ABSENT ? 0 : (uint32_t)r->ops[id].out;
}

/* ---- Lanes and mail ---- */

static void route(struct rig *r, uint8_t from, uint8_t to, uint8_t tw, const struct rig_message *m)
{
    struct rig_worker *w = &r->nodes[to].workers[tw];
    bool member = nodeset_has(w->view.live, from) && rig_born(&w->view, from) == m->from_born;
    uint8_t sender = member ? from : NODE_NONE;
    if (galene_route(&m->msg) == ROUTE_KEY) {
        struct event event = rig_event(r, to, tw, EV_MSG);
        event.from = sender;
        event.msg = &m->msg;
        rig_key_step(r, to, tw, &event, m->value, 0, 0);
        return;
    }
    uint32_t index = slot_ref_index(m->msg.slot);
    if (w->slots[index].kind != GALENE_FLOW_FREE && w->slots[index].gen == m->msg.gen) {
        rig_flow_step(r, to, tw, index, EV_MSG, 0, m, sender, 0);
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
    bool same = !n->crashed && rig_born(&n->workers[tw].view, to) == m.to_born;
    if (same && m.msg.epoch > n->workers[tw].view.epoch) {
        return false; /* lanes deliver epoch by epoch */
    }
    lane->first = (lane->first + 1) % RIG_LANE;
    lane->n--;
    if (same) {
        route(r, from, to, tw, &m);
    }
    return true;
}

void rig_pass(struct rig *r, uint8_t from, uint8_t fw, uint8_t to, enum galene_kind kind)
{
    for (uint8_t tw = 0; tw < r->workers; tw++) {
        const struct rig_lane *lane = &r->lanes[from][fw][to][tw];
        if (lane->n > 0 && lane->messages[lane->first].msg.kind == kind) {
            bool delivered = rig_deliver(r, from, fw, to, tw);
            HK_ASSERT(delivered);
            return;
        }
    }
    HK_ASSERT(false && "no such message");
}

bool rig_mail(struct rig *r, uint8_t node)
{
    struct rig_node *n = &r->nodes[node];
    if (n->nmails == 0 || n->crashed) {
        return false;
    }
    struct rig_mail mail = n->mails[0];
    n->nmails--;
    memmove(&n->mails[0], &n->mails[1], n->nmails * sizeof mail);
    rig_flow_step(r, node, mail.worker, mail.slot, EV_KEY, mail.code, NULL, NODE_NONE, mail.ts);
    return true;
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
    if (rig_mail(r, (uint8_t)(first % r->n))) {
        return true;
    }
    for (uint32_t i = 0; i < all; i++) {
        if (deliver_nth(r, (first + i) % all)) {
            return true;
        }
    }
    for (uint8_t i = 0; i < r->n; i++) {
        if (rig_mail(r, i)) {
            return true;
        }
    }
    return false;
}
