/* Galene, the flow machine: who has answered a write, an entry, a leave, a move, a question. */
#include "engine/galene/machine.h"

static bool rule(const struct event *event, enum galene_rule which)
{
    return galene_rule_on(event->config, which);
}

void galene_drop(struct effects *fx, enum engine_drop why)
{
    effects_add(fx, EFF_DROP)->code = (uint8_t)why;
}

/* Lanes lose nothing, so what a live member said in an older epoch still counts. */
bool galene_admitted(const struct event *event, struct effects *fx)
{
    if (event->from == NODE_NONE || !nodeset_has(event->view->live, event->from)) {
        galene_drop(fx, ENGINE_DROP_SENDER);
        return false;
    }
    if (event->msg->epoch > event->view->epoch) {
        galene_drop(fx, ENGINE_DROP_EPOCH_NEW);
        return false;
    }
    return true;
}

/* Members of the view that were members, as the same process, in the epoch of the slot. */
static nodeset stayed(const struct slot *slot, const struct view *view)
{
    nodeset set = 0;
    for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (view->members[node].admitted <= slot->epoch) {
            set |= nodeset_of(node);
        }
    }
    return set;
}

/* Who has to answer, and has not. */
static nodeset owed(const struct slot *slot, const struct event *event)
{
    nodeset others = galene_others(event);
    nodeset want = slot->kind == GALENE_FLOW_WRITE ? others : galene_aux_get(slot).want;
    return want & others & ~slot->acked;
}

bool galene_complete(const struct slot *slot, const struct event *event)
{
    if (slot->kind == GALENE_FLOW_WRITE && !rule(event, GALENE_RULE_ALL_ACKS)) {
        return view_majority(event->view, slot->acked | nodeset_of(event->self));
    }
    /* In another epoch this worker is about to step it with EV_VIEW. */
    return slot->epoch == event->view->epoch && owed(slot, event) == 0;
}

static void step_key(struct effects *fx, uint8_t code)
{
    effects_add(fx, EFF_KEY)->code = code;
}

static void close_slot(struct slot *mine, struct effects *fx)
{
    mine->kind = GALENE_FLOW_FREE;
    mine->deadline_us = 0;
    effects_add(fx, EFF_CLOSE);
}

static void ask(const struct slot *mine, struct effects *fx, nodeset set, enum galene_kind kind)
{
    if (set == 0) {
        return;
    }
    struct effect *e = effects_add(fx, EFF_BCAST);
    e->code = (uint8_t)kind;
    e->set = set;
    e->slot = mine->ref;
    e->gen = mine->gen;
    e->arg = galene_aux_get(mine).generation;
    if (kind == GALENE_INV) {
        e->ts = mine->ts;
        e->flags = (mine->flags & SLOT_RMW) != 0 ? GALENE_F_RMW : 0;
    }
}

static bool reports(const struct slot *mine)
{
    return mine->kind == GALENE_FLOW_LEAVE && mine->state == LEAVE_REPORTS;
}

/* ---- Answers ---- */

static bool answers(const struct slot *mine, const struct msg *msg)
{
    switch ((enum galene_flow)mine->kind) {
    case GALENE_FLOW_WRITE:
    case GALENE_FLOW_ENTER:
    case GALENE_FLOW_MOVE:
        return msg->kind == GALENE_ACK;
    case GALENE_FLOW_LEAVE:
        return msg->kind == (reports(mine) ? GALENE_REPORT : GALENE_ACK);
    case GALENE_FLOW_RESCUE:
        return msg->kind == GALENE_NOPE;
    case GALENE_FLOW_FREE:
    case GALENE_FLOW_PLAIN:
        break;
    }
    return false;
}

/* An ACK that names a higher timestamp: an RMW is lost; a write is the loser, if the key did not
 * know. */
static void refused(struct slot *mine, const struct event *event, struct effects *fx)
{
    struct galene_aux aux = galene_aux_get(mine);
    if (mine->kind != GALENE_FLOW_WRITE || event->msg->ts <= mine->ts) {
        galene_drop(fx, ENGINE_DROP_SLOT); /* of an INV before this one's last */
        return;
    }
    aux.known = event->msg->ts;
    galene_aux_set(mine, aux);
    mine->acked |= nodeset_of(event->from);
    step_key(fx, KEY_CODE_HIGHER);
    if ((mine->flags & SLOT_RMW) == 0 && galene_complete(mine, event)) {
        step_key(fx, KEY_CODE_COMPLETE);
    }
}

static void flow_message(struct slot *mine, const struct event *event, struct effects *fx)
{
    const struct msg *msg = event->msg;
    if (!galene_admitted(event, fx)) {
        return;
    }
    bool stale = mine->kind == GALENE_FLOW_WRITE && (msg->flags & GALENE_F_HIGHER) == 0 &&
                 msg->ts != mine->ts;
    if (!answers(mine, msg) || stale || !nodeset_has(owed(mine, event), event->from)) {
        galene_drop(fx, ENGINE_DROP_SLOT);
        return;
    }
    if ((msg->flags & GALENE_F_HIGHER) != 0 && msg->kind == GALENE_ACK) {
        refused(mine, event, fx);
        return;
    }
    if (mine->kind == GALENE_FLOW_RESCUE && (mine->flags & SLOT_HOME) != 0) {
        bool absent = (msg->flags & GALENE_F_ABSENT) != 0;
        step_key(fx, absent ? KEY_CODE_UNWANTED : KEY_CODE_ABORT);
        return;
    }
    if ((msg->flags & GALENE_F_HIGHER) != 0) {
        mine->ts = msg->ts;
        step_key(fx, KEY_CODE_NEWER);
        return;
    }
    if (msg->kind == GALENE_REPORT && msg->ts > mine->ts) {
        mine->ts = msg->ts;
    }
    mine->acked |= nodeset_of(event->from);
    bool early = mine->kind == GALENE_FLOW_RESCUE && !rule(event, GALENE_RULE_RESCUE_ALL);
    if (early || galene_complete(mine, event)) {
        step_key(fx, KEY_CODE_COMPLETE);
    }
}

/* ---- Time and views ---- */

static void flow_timer(struct slot *mine, const struct event *event, struct effects *fx)
{
    const struct galene_config *config = event->config;
    if (mine->kind == GALENE_FLOW_RESCUE) {
        step_key(fx, KEY_CODE_ABORT);
    } else if (reports(mine)) {
        mine->deadline_us = event->now_us + config->retry_us + 1;
        ask(mine, fx, owed(mine, event), GALENE_LEAVE);
        if (galene_complete(mine, event)) {
            step_key(fx, KEY_CODE_COMPLETE);
        }
    } else {
        mine->deadline_us = 0;
    }
}

static void flow_view(struct slot *mine, const struct event *event, struct effects *fx)
{
    nodeset same = stayed(mine, event->view) & ~nodeset_of(event->self);
    nodeset fresh = galene_others(event) & ~same;
    bool write = mine->kind == GALENE_FLOW_WRITE;
    struct galene_aux aux = galene_aux_get(mine);
    mine->acked &= same;
    if (!write) {
        aux.want &= same;
        galene_aux_set(mine, aux);
    }
    mine->epoch = event->view->epoch;
    if (mine->kind == GALENE_FLOW_RESCUE || (mine->kind == GALENE_FLOW_MOVE && aux.want == 0)) {
        step_key(fx, KEY_CODE_ABORT);
        return;
    }
    if (write && rule(event, GALENE_RULE_NEWCOMERS)) {
        ask(mine, fx, fresh, GALENE_INV); /* K5 */
    } else if (write) {
        mine->acked |= fresh;
    }
    if (reports(mine)) {
        /* L8: what somebody who is gone has reported may be gone with him. */
        mine->acked = 0;
        mine->ts = 0;
        ask(mine, fx, owed(mine, event), GALENE_LEAVE);
    }
    if (galene_complete(mine, event)) {
        step_key(fx, KEY_CODE_COMPLETE);
    }
}

static void flow_told(struct slot *mine, const struct event *event, struct effects *fx)
{
    switch (event->code) {
    case FLOW_CODE_NUDGE:
        if (galene_complete(mine, event)) {
            step_key(fx, KEY_CODE_COMPLETE);
        }
        break;
    case FLOW_CODE_READY:
        break;
    case FLOW_CODE_DONE:
    case FLOW_CODE_LOST:
        effects_add(fx, EFF_REPLY)->code = event->code == FLOW_CODE_DONE ? REPLY_DONE : REPLY_LOST;
        close_slot(mine, fx);
        break;
    case FLOW_CODE_GONE:
        close_slot(mine, fx);
        break;
    default:
        HK_ASSERT(false && "a code that no key machine sends");
    }
}

void galene_flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (mine == NULL) {
        struct galene_worker *worker = event->worker;
        const struct galene_config *config = event->config;
        if (event->kind != EV_MSG || galene_admitted(event, fx)) {
            const struct homes_config homes = {
                .first_kind = GALENE_HOMES_FIRST,
                .rules_off = config->rules_off >> GALENE_RULES,
            };
            homes_step(&worker->homes, event, &homes, fx);
        }
        return;
    }
    switch (event->kind) {
    case EV_MSG:
        flow_message(mine, event, fx);
        break;
    case EV_TIMER:
        flow_timer(mine, event, fx);
        break;
    case EV_VIEW:
        flow_view(mine, event, fx);
        break;
    case EV_KEY:
        flow_told(mine, event, fx);
        break;
    case EV_READ:
    case EV_UPDATE:
    case EV_FLOW:
    case EV_SWEEP:
    case EV_FLUSH:
    case EV_HOT:
    case EV_MOVE:
    case EV_SLOTS:
        HK_ASSERT(false && "an event of keys");
    }
}
