/* Ownership, the arbiter: who drives a request, who acknowledges it, and what a vector that counts
 * makes of this member. */
#include "engine/zeus/own_machine.h"

#include <stddef.h>

/* ---- What counts ---- */

void arb_settle_pending(struct arb *a)
{
    struct own_busy *b = a->busy;
    b->ts = 0;
    b->before = (struct own_vector){.owner = 0};
    b->request = (struct own_request){.type = OWN_NONE};
    b->acked = 0;
    b->beaten = 0;
    b->best = 0;
    b->epoch = 0;
    b->state = OWN_VALID;
    b->owes = false;
    b->to_replayer = false;
    b->replays = false;
    b->stale = false;
    b->to = 0;
    b->replay_due_us = 0;
}

void arb_forget(struct arb *a, uint64_t ts)
{
    const struct own_data *data = &a->event->data;
    arb_raise(a->event->forgot, stamp_version(ts));
    arb_raise(a->event->clock, stamp_version(ts));
    *a->entry = (struct own_entry){.ts = 0};
    if (data->have) {
        arb_raise(a->event->clock, stamp_version(data->version));
        arb_emit(a, OWN_FX_DROP, 0);
        a->have = false;
    }
    if (a->busy != NULL) {
        a->busy->shut = false;
    }
}

/* A new directory node, which may not have heard of the object yet. */
static bool learns(const struct arb *a)
{
    return nodeset_has(a->event->directory, a->event->self) &&
           !nodeset_has(a->event->drivers, a->event->self);
}

/* An entry that was sent before its sender heard of the end may still be under way. */
void arb_bury(struct arb *a, uint64_t ts)
{
    arb_forget(a, ts);
    if (learns(a)) {
        a->entry->ts = ts;
        a->entry->vector = (struct own_vector){
            .owner = NODE_NONE, .degree = OWN_FRESH, .epoch = a->event->view->epoch};
    }
}

void arb_look(struct arb *a)
{
    const struct own_event *event = a->event;
    bool open = a->busy != NULL && !own_idle(a->busy);
    struct own_vector v = arb_masked(a, &a->entry->vector);
    if (a->entry->ts == 0 || open || !arb_settled(a) || a->have ||
        nodeset_has(arb_replicas(&v), event->self)) {
        return;
    }
    bool nothing = (a->entry->vector.degree & OWN_FRESH) != 0 && arb_creates(a, &a->entry->vector);
    if (!nodeset_has(event->directory, event->self) ||
        (nothing && nodeset_has(event->drivers, event->self))) {
        arb_forget(a, a->entry->ts);
    }
}

void arb_take(struct arb *a, uint64_t ts, const struct own_vector *vector, bool destroyed)
{
    nodeset beaten = 0;
    if (arb_pending(a) && a->busy->ts <= ts) {
        beaten = a->busy->beaten & a->event->view->live;
        arb_settle_pending(a);
    }
    if (destroyed) {
        arb_bury(a, ts);
        return;
    }
    a->entry->ts = ts;
    a->entry->vector = *vector;
    if (arb_pending(a)) {
        return; /* something later is going on, whose end will say what this member is */
    }
    if (beaten != 0) {
        arb_tell(a, beaten);
    }
    uint8_t self = a->event->self;
    struct own_vector v = arb_masked(a, vector);
    bool replica = v.owner == self || nodeset_has(v.readers, self);
    if (!replica && !nodeset_has(a->event->directory, self)) {
        arb_forget(a, ts);
        return;
    }
    if (!replica && a->have) {
        arb_emit(a, OWN_FX_DROP, 0);
        a->have = false;
    }
    bool frozen = a->busy != NULL && a->busy->mine.type == OWN_DESTROY && v.owner == self;
    if (replica && a->have && !frozen) {
        arb_emit(a, OWN_FX_GRANT, v.owner == self ? OWN_OWNER : OWN_READER);
    }
    if (a->busy != NULL && a->busy->shut) {
        a->busy->shut = false;
        if (replica && a->have) {
            arb_emit(a, OWN_FX_OPEN, 0);
        }
    }
}

/* ---- Acknowledging ---- */

static bool is_owner(const struct arb *a, const struct own_vector *vector)
{
    return arb_masked(a, vector).owner == a->event->self;
}

/* Whether nothing may change the data while the request is under way. */
static bool freezes(uint8_t type)
{
    return type == OWN_OWNER || type == OWN_READER || type == OWN_DESTROY;
}

/* A reader sends its copy only if nobody owns the object: all copies are equal then (R8). */
static bool sends_value(const struct arb *a, const struct own_request *q)
{
    struct own_vector v = arb_masked(a, &a->busy->before);
    uint8_t self = a->event->self;
    bool moves = q->type == OWN_OWNER || q->type == OWN_READER;
    bool source = v.owner == self || (v.owner == NODE_NONE && nodeset_has(v.readers, self)) ||
                  (!arb_rule(a, OWN_RULE_HIGHEST_DATA) && nodeset_has(v.readers, self));
    return moves && source && a->event->data.have && !q->has_data && q->requester != self;
}

static void send_ack(struct arb *a, uint8_t to, bool to_replayer)
{
    const struct own_busy *b = a->busy;
    const struct own_data *data = &a->event->data;
    struct own_body *body = arb_send(a, nodeset_of(to), OWN_MSG_ACK, b->ts);
    body->vector = b->before;
    body->request = b->request;
    body->replay = to_replayer;
    body->owner = is_owner(a, &b->before);
    body->data = data->have;
    body->version = data->have ? data->version : 0;
    body->value = sends_value(a, &b->request);
}

void arb_answer(struct arb *a, uint8_t to, bool to_replayer)
{
    struct own_busy *b = a->busy;
    if (is_owner(a, &b->before) && a->event->data.busy && freezes(b->request.type) &&
        arb_rule(a, OWN_RULE_PENDING)) {
        b->owes = true;
        b->to = to;
        b->to_replayer = to_replayer;
        arb_emit(a, OWN_FX_COUNT, OWN_DEFERRED);
        return;
    }
    b->owes = false;
    send_ack(a, to, to_replayer);
}

void arb_freed(struct arb *a)
{
    if (a->busy == NULL || !a->busy->owes || a->event->data.busy) {
        return;
    }
    a->busy->owes = false;
    if (nodeset_has(a->event->view->live, a->busy->to)) {
        send_ack(a, a->busy->to, a->busy->to_replayer);
    }
}

/* ---- Driving ---- */

static void nack(struct arb *a, uint8_t to, const struct own_request *q, uint64_t ts,
                 enum own_nack why)
{
    if (!nodeset_has(a->event->view->live, to)) {
        return;
    }
    struct own_body *body = arb_send(a, nodeset_of(to), OWN_MSG_NACK, ts);
    body->request = *q;
    body->nack = (uint8_t)why;
}

/* Whoever drives a request that is beaten tells its requester, and, when the other has ended, those
 * who got its INV and may get nothing of the other: all but the directory and the owner. */
static void give_up(struct arb *a, const struct own_request *by)
{
    struct own_busy *b = a->busy;
    if (b->state != OWN_DRIVE || arb_same(&b->request, by)) {
        return;
    }
    struct own_vector v = arb_masked(a, &b->before);
    nodeset owner = v.owner == NODE_NONE ? 0 : nodeset_of(v.owner);
    b->beaten |= arb_expected(a, &b->before, &b->request) & ~(a->event->directory | owner);
    nack(a, b->request.requester, &b->request, b->ts, OWN_NACK_BUSY);
}

/* The request is pending here from now on. */
static void begin(struct arb *a, uint64_t ts, const struct own_vector *before,
                  const struct own_request *q, enum own_state state)
{
    struct own_busy *b = a->busy;
    uint8_t self = a->event->self;
    nodeset beaten = b->beaten;
    arb_settle_pending(a);
    b->beaten = beaten;
    b->ts = ts;
    b->before = *before;
    b->request = *q;
    b->state = (uint8_t)state;
    b->epoch = a->event->view->epoch;
    if (freezes(q->type) && (is_owner(a, before) || is_owner(a, &a->entry->vector))) {
        arb_emit(a, OWN_FX_REVOKE, 0);
    }
    /* It may lose its data without knowing: others go on as soon as it has ACKed. */
    bool loses = (q->type == OWN_TRIM && q->target == self) ||
                 (q->type == OWN_DESTROY && q->requester != self);
    if (loses && a->have) {
        arb_emit(a, OWN_FX_SHUT, 0);
        b->shut = true;
    }
}

/* Why the request cannot be, by the entry; 0: it can. */
static uint8_t judge(const struct arb *a, const struct own_request *q)
{
    const struct view *view = a->event->view;
    struct own_vector v = arb_masked(a, &a->entry->vector);
    nodeset replicas = arb_replicas(&v);
    bool owner = v.owner == q->requester;
    bool fresh = (a->entry->vector.degree & OWN_FRESH) != 0 && arb_creates(a, &a->entry->vector);
    if (a->entry->ts == 0 || (fresh && q->type != OWN_DESTROY)) { /* R17 */
        return q->type == OWN_OWNER && q->create ? 0 : OWN_NACK_NONE;
    }
    switch ((enum own_type)q->type) {
    case OWN_OWNER:
        return replicas == 0 ? OWN_NACK_LOST : owner ? OWN_NACK_MOOT : 0;
    case OWN_READER:
        return replicas == 0                         ? OWN_NACK_LOST
               : nodeset_has(replicas, q->requester) ? OWN_NACK_MOOT
                                                     : 0;
    case OWN_TRIM:
        return owner && nodeset_has(v.readers, q->target) ? 0 : OWN_NACK_MOOT;
    case OWN_DEGREE:
        return owner && own_degree_of(&v) != q->degree ? 0 : OWN_NACK_MOOT;
    case OWN_DESTROY:
        /* An ENTRY that is under way to who joins would bring the object back. */
        return (owner || replicas == 0) && view->live == view->operational &&
                       view->configured_old == 0
                   ? 0
                   : OWN_NACK_MOOT;
    case OWN_NONE:
    case OWN_TYPES:
        break;
    }
    return OWN_NACK_MOOT;
}

/* Timestamp above all that is known here. A retry leaves room: the clock of who refused it has gone
 * on meanwhile; and who has waited longer leaves more: of two that are driven at once it shall be
 * the one that wins (R19). 0: there is none. */
static uint64_t next_ts(struct arb *a, const struct own_request *q)
{
    uint64_t version = *a->event->clock;
    uint64_t room = (q->retry < 1024 ? 16u * q->retry : 16u * 1024u) + q->waited;
    arb_raise(&version, stamp_version(a->entry->ts));
    arb_raise(&version, stamp_version(a->busy->ts));
    version += 1 + room;
    if (version > OWN_VERSION_MAX) {
        return 0;
    }
    arb_raise(a->event->clock, version);
    return stamp_make(version, a->event->self);
}

static void drive(struct arb *a, struct own_request q)
{
    struct own_busy *b = a->busy;
    uint8_t self = a->event->self;
    bool again = arb_pending(a) && arb_same(&b->request, &q);
    struct own_vector before = again ? b->before : arb_masked(a, &a->entry->vector);
    uint64_t ts = next_ts(a, &q);
    if (ts == 0) {
        nack(a, q.requester, &q, 0, OWN_NACK_BUSY);
        return;
    }
    struct own_vector masked = arb_masked(a, &before);
    q.has_data = q.has_data && nodeset_has(arb_replicas(&masked), q.requester);
    begin(a, ts, &before, &q, OWN_DRIVE);
    struct own_body *body =
        arb_send(a, arb_expected(a, &before, &q) & ~nodeset_of(self), OWN_MSG_INV, ts);
    if (body != NULL) {
        body->vector = before;
        body->request = q;
    }
    arb_answer(a, q.requester, false);
}

void arb_req(struct arb *a)
{
    const struct own_event *event = a->event;
    const struct own_request *q = &a->body->request;
    if (!event->alive) {
        arb_emit(a, OWN_FX_BEHIND, 0);
        return;
    }
    if (q->requester != event->from || !arb_requester_lives(a, q)) {
        return;
    }
    bool drives = arb_rule(a, OWN_RULE_SHADOW) ? nodeset_has(event->drivers, event->self)
                                               : nodeset_has(event->directory, event->self);
    bool again = arb_pending(a) && arb_same(&a->busy->request, q) && !a->busy->stale;
    bool taken = arb_pending(a) && !again && arb_rule(a, OWN_RULE_VALID_DRIVES);
    if (again && q->retry <= a->busy->request.retry) {
        return; /* it is under way */
    }
    if (a->busy == NULL || !drives || !arb_settled(a) || taken) {
        nack(a, q->requester, q, 0, OWN_NACK_BUSY);
        return;
    }
    uint8_t why = again ? 0 : judge(a, q);
    if (why != 0) {
        nack(a, q->requester, q, 0, (enum own_nack)why);
        return;
    }
    drive(a, *q);
}

/* ---- INV ---- */

/* Whether the object of this message may have been forgotten here (R13). */
static bool forgotten(const struct arb *a, uint64_t ts)
{
    return a->entry->ts == 0 && !arb_pending(a) && stamp_version(ts) <= *a->event->forgot &&
           arb_rule(a, OWN_RULE_CLOCK);
}

/* The ACK of who has nothing and keeps nothing. If it took the request, two that the directory's
 * word does not count of would replay to each other for ever what the others have forgotten. */
static void ack_blank(struct arb *a)
{
    struct own_body *body = arb_send(a, nodeset_of(a->event->from), OWN_MSG_ACK, a->event->msg->ts);
    body->vector = a->body->vector;
    body->request = a->body->request;
    body->replay = true;
}

void arb_tell(struct arb *a, nodeset to)
{
    struct own_body *body = arb_send(a, to, OWN_MSG_VAL, a->entry->ts);
    body->vector = a->entry->vector;
}

/* Whether the INV is of the past here; then it has been answered. */
static bool old_news(struct arb *a)
{
    const struct own_event *event = a->event;
    uint64_t ts = event->msg->ts;
    if (a->entry->ts != 0 && ts <= a->entry->ts) {
        if (ts == a->entry->ts || arb_rule(a, OWN_RULE_STALE)) {
            arb_tell(a, nodeset_of(event->from));
        }
        arb_emit(a, OWN_FX_COUNT, OWN_STALE);
        return true;
    }
    if (!forgotten(a, ts)) {
        return false;
    }
    if (!a->body->replay) {
        nack(a, a->body->request.requester, &a->body->request, ts, OWN_NACK_EPOCH);
        return true;
    }
    if (!nodeset_has(event->drivers, event->self)) {
        ack_blank(a);
        return true;
    }
    nack(a, event->from, &a->body->request, ts, OWN_NACK_EPOCH);
    a->fx->e[a->fx->n - 1].body.replay = true;
    return true;
}

void arb_inv(struct arb *a)
{
    const struct own_event *event = a->event;
    const struct own_request *q = &a->body->request;
    struct own_busy *b = a->busy;
    uint64_t ts = event->msg->ts;
    bool replay = a->body->replay;
    uint8_t to = replay ? event->from : q->requester;
    if (!event->alive && arb_rule(a, OWN_RULE_EPOCH)) {
        arb_emit(a, OWN_FX_BEHIND, 0);
        return;
    }
    if (old_news(a)) {
        return;
    }
    if (b == NULL) {
        if (!replay) {
            nack(a, to, q, ts, OWN_NACK_BUSY);
        }
        return;
    }
    if (!nodeset_has(event->view->live, to)) {
        return;
    }
    if (arb_pending(a) && ts < b->ts && arb_rule(a, OWN_RULE_HIGHER_INV)) {
        return; /* what is pending here comes to the sender as well, or its replay asks again */
    }
    if (!arb_pending(a) || ts > b->ts || (ts < b->ts && !arb_rule(a, OWN_RULE_HIGHER_INV))) {
        give_up(a, q);
        begin(a, ts, &a->body->vector, q, OWN_INVALID);
        b->stale = replay;
        b->replay_due_us = replay ? arb_later(a, 4) : 0;
    } else if (ts == b->ts) {
        b->request.retry = q->retry > b->request.retry ? q->retry : b->request.retry;
        b->epoch = event->view->epoch;
    }
    arb_answer(a, to, replay);
}

/* ---- VAL, ENTRY ---- */

static bool concerns(const struct arb *a, const struct own_vector *vector)
{
    uint8_t self = a->event->self;
    struct own_vector v = arb_masked(a, vector);
    return nodeset_has(a->event->directory, self) || nodeset_has(arb_replicas(&v), self) ||
           a->entry->ts != 0 || a->have || arb_pending(a);
}

void arb_val(struct arb *a)
{
    uint64_t ts = a->event->msg->ts;
    struct own_vector vector = a->body->vector;
    if ((a->entry->ts != 0 && ts <= a->entry->ts) || (forgotten(a, ts) && !learns(a)) ||
        !concerns(a, &vector) || (arb_pending(a) && ts < a->busy->ts)) {
        return;
    }
    if (arb_pending(a) && ts != a->busy->ts) {
        give_up(a, &a->body->request);
    }
    if (!arb_rule(a, OWN_RULE_RESULT) && arb_pending(a) && ts == a->busy->ts) {
        vector = arb_after(a, &a->busy->before, &a->busy->request);
    }
    arb_take(a, ts, &vector, a->body->request.type == OWN_DESTROY);
}

void arb_known(struct arb *a)
{
    uint64_t ts = a->event->msg->ts;
    bool late = forgotten(a, ts) && !learns(a);
    if (ts <= a->entry->ts || late || !concerns(a, &a->body->vector)) {
        return;
    }
    arb_take(a, ts, &a->body->vector, false);
}
