/* Ownership, recovery ([Z] 5.4.1): changes of view, and arb-replay by whoever was left Invalid. */
#include "engine/zeus/own_machine.h"

#include <stddef.h>

static void replay(struct arb *a)
{
    struct own_busy *b = a->busy;
    uint8_t self = a->event->self;
    nodeset expected = arb_expected(a, &b->before, &b->request);
    b->state = OWN_INVALID;
    b->epoch = a->event->view->epoch;
    b->replays = true;
    b->replay_due_us = arb_later(a, 6);
    arb_emit(a, OWN_FX_COUNT, OWN_REPLAYS);
    struct own_body *body =
        arb_send(a, expected & ~b->acked & ~nodeset_of(self), OWN_MSG_INV, b->ts);
    if (body != NULL) {
        body->vector = b->before;
        body->request = b->request;
        body->replay = true;
    }
    if (nodeset_has(expected & ~b->acked, self)) {
        arb_answer(a, self, true);
    }
}

void arb_view(struct arb *a)
{
    struct own_busy *b = a->busy;
    if (b == NULL) {
        return;
    }
    if (arb_pending(a)) {
        b->state = OWN_INVALID;
        b->acked = 0;
        b->beaten = 0;
        b->best = 0;
        b->owes = false;
        b->replays = false;
        b->stale = true;
        b->replay_due_us = 0;
    }
    arb_want_view(a);
    arb_go(a);
}

void arb_go(struct arb *a)
{
    struct own_busy *b = a->busy;
    bool may = a->event->recovered || !arb_rule(a, OWN_RULE_REPLAY_WAITS);
    if (arb_pending(a) && b->stale && !b->replays && may && arb_rule(a, OWN_RULE_REPLAY)) {
        replay(a);
    }
    arb_want_go(a);
}

void arb_timer(struct arb *a)
{
    struct own_busy *b = a->busy;
    if (arb_pending(a) && b->replay_due_us != 0 && b->replay_due_us <= a->event->now_us) {
        b->replay_due_us = 0;
        if (b->stale && arb_rule(a, OWN_RULE_REPLAY)) {
            replay(a);
        }
    }
    arb_want_go(a);
}

/* The creation of an object whose requester is dead. Nobody else has it, and nothing that was
 * written to it was answered (R15): it never was. Of degree 1 it may have been written and is
 * lost. */
static bool unborn(const struct arb *a)
{
    const struct own_busy *b = a->busy;
    return b->request.type == OWN_OWNER && arb_creates(a, &b->before) &&
           !arb_requester_lives(a, &b->request) && a->event->config->degree != 1;
}

/* All have acknowledged: the requester, if it lives, is to apply first (R7). */
static void won(struct arb *a)
{
    struct own_busy *b = a->busy;
    const struct own_data *data = &a->event->data;
    nodeset expected = arb_expected(a, &b->before, &b->request);
    struct own_request q = b->request;
    uint64_t ts = b->ts;
    if (!arb_requester_lives(a, &q) || !arb_rule(a, OWN_RULE_FIRST)) {
        if (unborn(a)) {
            q.type = OWN_DESTROY;
            q.create = false;
        }
        struct own_vector after = arb_after(a, &b->before, &q);
        arb_take(a, ts, &after, q.type == OWN_DESTROY);
        struct own_body *body =
            arb_send(a, expected & ~nodeset_of(a->event->self), OWN_MSG_VAL, ts);
        if (body != NULL) {
            body->vector = after;
            body->request = q;
        }
        return;
    }
    struct own_body *body = arb_send(a, nodeset_of(q.requester), OWN_MSG_RESP, ts);
    bool moves = q.type == OWN_OWNER || q.type == OWN_READER;
    struct own_vector masked = arb_masked(a, &b->before);
    bool mine = data->have && nodeset_has(arb_replicas(&masked), a->event->self) &&
                q.requester != a->event->self;
    body->vector = b->before;
    body->request = q;
    body->value = moves && !q.has_data && (b->best != 0 || mine);
    body->version = !body->value ? 0 : b->best != 0 ? b->best : data->version;
}

void arb_replay_ack(struct arb *a)
{
    const struct own_body *body = a->body;
    const struct own_data *data = &a->event->data;
    struct own_busy *b = a->busy;
    if (!a->event->alive && arb_rule(a, OWN_RULE_EPOCH)) {
        arb_emit(a, OWN_FX_BEHIND, 0);
        return;
    }
    if (!arb_pending(a) || !b->replays || a->event->msg->ts != b->ts) {
        return;
    }
    uint64_t known = data->have && data->version > b->best ? data->version : b->best;
    if (body->value && (body->version > known || !arb_rule(a, OWN_RULE_HIGHEST_DATA))) {
        if (b->mine_data != 0) {
            return; /* one value is kept: the replay asks again later */
        }
        arb_emit(a, OWN_FX_KEEP, 0)->ts = body->version;
        b->best = body->version;
    }
    b->acked |= nodeset_of(a->event->from);
    if (nodeset_within(arb_expected(a, &b->before, &b->request), b->acked)) {
        won(a);
    }
}

/* Who knows all objects knows nothing of this one: it has been destroyed, or never came to be. */
void arb_replay_nack(struct arb *a)
{
    const struct own_event *event = a->event;
    struct own_busy *b = a->busy;
    if (!event->alive || a->body->nack != OWN_NACK_EPOCH || !arb_pending(a) || !b->replays ||
        event->msg->ts != b->ts || !nodeset_has(event->drivers, event->from)) {
        return;
    }
    uint64_t ts = b->ts;
    arb_settle_pending(a);
    arb_bury(a, ts);
}
