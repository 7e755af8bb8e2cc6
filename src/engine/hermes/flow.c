/* Hermes, the flow machine: ACK sets and timers of pending updates and replays ([H] 4.3.3), the
 * confirmation of asynchronous reads ([H] 4.3.6), the reports of a tombstone's holders. */
#include "engine/hermes/machine.h"

#include <string.h>

#define BACK_OFF_SHIFT_MAX 5u
#define TRIES_MAX 250u

/* ---- Slots ---- */

/* [H] 4.3.3: the message-loss timeout, doubled at each try; jitter keeps replays of several
 * followers apart. */
static uint64_t deadline_after(const struct event *event, uint32_t tries)
{
    const struct hermes_config *config = event->config;
    uint64_t mlt_us = config->mlt_us > 0 ? config->mlt_us : 1;
    uint32_t shift = tries < BACK_OFF_SHIFT_MAX ? tries : BACK_OFF_SHIFT_MAX;
    return event->now_us + (mlt_us << shift) + event->random % (mlt_us / 4 + 1);
}

void hermes_slot_open(struct slot *slot, enum hermes_flow kind, uint64_t ts,
                      const struct event *event)
{
    slot->ts = ts;
    slot->acked = 0;
    slot->deadline_us = deadline_after(event, 0);
    slot->epoch = event->view->epoch;
    slot->kind = (uint8_t)kind;
    slot->state = 0;
    slot->tries = 0;
    slot->flags = 0;
    memset(slot->aux, 0, sizeof slot->aux);
}

bool hermes_acks_complete(const struct slot *slot, const struct event *event)
{
    const struct hermes_config *config = event->config;
    nodeset others = others_of(event);
    if (slot->epoch != event->view->epoch) {
        return false; /* this worker is about to step it with EV_VIEW */
    }
    if (!rule_on(config, HERMES_RULE_ALL_ACKS)) {
        return view_majority(event->view, slot->acked | nodeset_of(event->self));
    }
    if (!rule_on(config, HERMES_RULE_ACK_SET)) {
        return slot->aux[SLOT_COUNT] >= nodeset_count(others);
    }
    return nodeset_within(others, slot->acked);
}

static void step_key(struct effects *fx, uint8_t code)
{
    effects_add(fx, EFF_KEY)->code = code;
}

static void close_slot(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (mine->kind == FLOW_COLLECT) {
        struct hermes_worker *worker = event->worker;
        HK_ASSERT(worker->collects > 0);
        worker->collects--;
    }
    mine->kind = FLOW_FREE;
    mine->deadline_us = 0;
    effects_add(fx, EFF_CLOSE);
}

static void reply(struct slot *mine, const struct event *event, struct effects *fx,
                  enum reply_code code)
{
    effects_add(fx, EFF_REPLY)->code = (uint8_t)code;
    close_slot(mine, event, fx);
}

/* ---- Asynchronous reads ([H] 4.3.6) ---- */

static void ask_epoch(const struct slot *mine, const struct event *event, struct effects *fx)
{
    nodeset silent = others_of(event) & ~mine->acked;
    if (silent == 0) {
        return;
    }
    struct effect *e = effects_add(fx, EFF_BCAST);
    e->code = HERMES_CHECK;
    e->with = EFF_NO_KEY;
    e->set = silent;
    e->slot = mine->ref;
    e->gen = mine->gen;
}

/* The majority is of the configured nodes, so that it meets the one that decides the next view;
 * this node counts if it still confirms its epoch, now, after the reads. */
static bool confirmed(const struct slot *mine, const struct event *event)
{
    nodeset self = event->confirms ? nodeset_of(event->self) : 0;
    return view_majority(event->view, mine->acked | self) ||
           !rule_on(event->config, HERMES_RULE_CHECK);
}

static void check_open(struct slot *mine, const struct event *event, struct effects *fx)
{
    hermes_slot_open(mine, FLOW_CHECK, 0, event);
    if (confirmed(mine, event)) {
        reply(mine, event, fx, REPLY_DONE);
    } else {
        ask_epoch(mine, event, fx);
    }
}

/* The flow machine without a slot: a member is asked for its epoch. */
static void check_asked(const struct event *event, struct effects *fx)
{
    HK_ASSERT(event->kind == EV_MSG && event->msg->kind == HERMES_CHECK);
    if (!hermes_admitted(event, fx) || !event->confirms) {
        return; /* an accepted value for the next epoch: silence */
    }
    struct effect *e = effects_add(fx, EFF_SEND);
    e->code = HERMES_CHECK_OK;
    e->to = event->from;
    e->with = EFF_NO_KEY;
    e->slot = event->msg->slot;
    e->gen = event->msg->gen;
}

/* ---- Answers to flows ---- */

static bool answers(const struct slot *mine, const struct event *event)
{
    const struct msg *msg = event->msg;
    bool kind =
        (msg->kind == HERMES_ACK && (mine->kind == FLOW_UPDATE || mine->kind == FLOW_REPLAY)) ||
        (msg->kind == HERMES_CHECK_OK && mine->kind == FLOW_CHECK) ||
        (msg->kind == HERMES_FORGET_REPORT && mine->kind == FLOW_COLLECT);
    bool ts = msg->ts == mine->ts || !rule_on(event->config, HERMES_RULE_ACK_TS);
    bool epoch = msg->epoch == mine->epoch || !rule_on(event->config, HERMES_RULE_EPOCH);
    return kind && ts && epoch;
}

static void flow_message(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (!hermes_admitted(event, fx)) {
        return;
    }
    if (!answers(mine, event)) {
        hermes_drop(fx, ENGINE_DROP_SLOT);
        return;
    }
    bool before = hermes_acks_complete(mine, event);
    mine->acked |= nodeset_of(event->from);
    if (mine->aux[SLOT_COUNT] < UINT8_MAX) {
        mine->aux[SLOT_COUNT]++;
    }
    if (mine->kind == FLOW_CHECK) {
        if (confirmed(mine, event)) {
            reply(mine, event, fx, REPLY_DONE);
        }
    } else if (!before && hermes_acks_complete(mine, event)) {
        step_key(fx, KEY_CODE_COMPLETE);
    }
}

/* ---- Time, views, and what the key machine says ---- */

static void flow_timer(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (mine->kind == FLOW_COLLECT) {
        close_slot(mine, event, fx); /* a later sweep asks anew */
        return;
    }
    if (mine->tries < TRIES_MAX) {
        mine->tries++;
    }
    mine->flags |= SLOT_RESENT;
    mine->deadline_us = deadline_after(event, mine->tries);
    if (mine->kind == FLOW_CHECK) {
        ask_epoch(mine, event, fx);
    } else {
        step_key(fx, KEY_CODE_RESEND);
    }
}

static void flow_view(struct slot *mine, const struct event *event, struct effects *fx)
{
    switch (mine->kind) {
    case FLOW_CHECK:
        reply(mine, event, fx, REPLY_LOST); /* the reads were of the old epoch: read again */
        break;
    case FLOW_COLLECT:
        close_slot(mine, event, fx);
        break;
    default:
        if (rule_on(event->config, HERMES_RULE_ACK_RESET)) {
            mine->acked = 0;
            mine->aux[SLOT_COUNT] = 0;
        }
        mine->epoch = event->view->epoch;
        mine->tries = 0;
        mine->flags |= SLOT_RESENT;
        mine->deadline_us = deadline_after(event, 0);
        step_key(fx, KEY_CODE_VIEW);
        break;
    }
}

static void flow_told(struct slot *mine, const struct event *event, struct effects *fx)
{
    switch (event->code) {
    case FLOW_CODE_NUDGE:
        if (mine->kind != FLOW_CHECK && hermes_acks_complete(mine, event)) {
            step_key(fx, KEY_CODE_COMPLETE);
        }
        break;
    case FLOW_CODE_DONE:
        reply(mine, event, fx, REPLY_DONE);
        break;
    case FLOW_CODE_OVERTAKEN:
        reply(mine, event, fx, REPLY_OVERTAKEN);
        break;
    case FLOW_CODE_LOST:
        reply(mine, event, fx, REPLY_LOST);
        break;
    case FLOW_CODE_GONE:
        close_slot(mine, event, fx);
        break;
    default:
        HK_ASSERT(false && "a code that no key machine sends");
    }
}

void hermes_flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (mine == NULL) {
        check_asked(event, fx);
        return;
    }
    switch (event->kind) {
    case EV_READ:
        check_open(mine, event, fx);
        break;
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
