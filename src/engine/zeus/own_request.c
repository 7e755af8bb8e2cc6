/* Ownership, this member's own request: sent to a driver, counted, applied first (R7), granted. */
#include "engine/zeus/own_machine.h"

#include <stddef.h>

#define CHIEF_TRIES 4u /* the last of so many goes to any driver */

static nodeset own_bit(const struct arb *a)
{
    return nodeset_of(a->event->self);
}

static bool open_request(const struct arb *a)
{
    return a->busy != NULL && a->busy->mine.type != OWN_NONE;
}

/* Whether this member has what the request is for. */
static bool has(const struct arb *a, const struct own_request *q)
{
    struct own_vector v = arb_masked(a, &a->entry->vector);
    uint8_t self = a->event->self;
    if (!a->have || arb_pending(a)) {
        return false;
    }
    return (q->type == OWN_OWNER && v.owner == self) ||
           (q->type == OWN_READER && nodeset_has(arb_replicas(&v), self));
}

static void forget_acks(struct own_busy *b)
{
    b->mine_ts = 0;
    b->mine_before = (struct own_vector){.owner = 0};
    b->mine_acked = 0;
    b->mine_data = 0;
    b->mine_best = 0;
    b->best_owner = false;
}

/* The tombstone that was not destroyed can be written again. */
static void thaw(struct arb *a)
{
    struct own_vector v = arb_masked(a, &a->entry->vector);
    if (a->have && v.owner == a->event->self && !arb_pending(a)) {
        arb_emit(a, OWN_FX_GRANT, OWN_OWNER);
    }
}

static void done(struct arb *a, uint8_t code)
{
    struct own_busy *b = a->busy;
    if (b != NULL) {
        if (b->mine.type == OWN_DESTROY && code != 0) {
            thaw(a);
        }
        forget_acks(b);
        b->mine = (struct own_request){.type = OWN_NONE};
        b->mine_epoch = 0;
        b->mine_due_us = 0;
        b->driver = 0;
        b->tries = 0;
        b->waits = false;
    }
    arb_emit(a, OWN_FX_DONE, code);
}

/* ---- Sending ---- */

static uint8_t some(nodeset set, uint64_t random)
{
    uint64_t skip = random % nodeset_count(set);
    for (; skip > 0; skip--) {
        set &= set - 1;
    }
    return nodeset_first(set);
}

/* The first try goes to this member if it may drive: a hop less. Where others want the object too,
 * all go to the chief, who lets the oldest go first (R19); now and then to another, if that one has
 * no room. */
static uint8_t driver_of(const struct arb *a, nodeset drivers)
{
    const struct own_event *event = a->event;
    uint8_t tries = a->busy->tries;
    nodeset chief = event->chief & drivers;
    if (tries == 0 && !event->contended && nodeset_has(drivers, event->self)) {
        return event->self;
    }
    return chief != 0 && tries % CHIEF_TRIES != CHIEF_TRIES - 1 ? nodeset_first(chief)
                                                                : some(drivers, event->random);
}

static void send_req(struct arb *a)
{
    const struct own_event *event = a->event;
    struct own_busy *b = a->busy;
    struct own_vector v = arb_masked(a, &a->entry->vector);
    bool all = !arb_rule(a, OWN_RULE_SHADOW);
    nodeset drivers = (all ? event->directory : event->drivers) & event->view->live;
    forget_acks(b);
    b->mine_epoch = event->view->epoch;
    if (drivers == 0) {
        b->waits = true;
        b->mine_due_us = arb_later(a, b->tries);
        return;
    }
    b->driver = driver_of(a, drivers);
    b->waits = false;
    b->mine_due_us = 0;
    b->mine.waited = event->waited;
    b->mine.has_data = a->have && !b->shut && nodeset_has(arb_replicas(&v), event->self);
    arb_send(a, nodeset_of(b->driver), OWN_MSG_REQ, 0)->request = b->mine;
}

static void send_again(struct arb *a)
{
    if (has(a, &a->busy->mine)) {
        done(a, 0);
        return;
    }
    a->busy->mine.retry++;
    send_req(a);
}

/* What only the owner may ask for (or, of DESTROY, anybody once the object is lost). */
static bool may_ask(const struct arb *a, const struct own_request *want)
{
    struct own_vector v = arb_masked(a, &a->entry->vector);
    bool owner = v.owner == a->event->self && a->have;
    switch ((enum own_type)want->type) {
    case OWN_OWNER:
    case OWN_READER:
        return true;
    case OWN_TRIM:
        return owner && nodeset_has(v.readers, want->target);
    case OWN_DEGREE:
        return owner;
    case OWN_DESTROY:
        return owner ? a->event->data.tombstone && !a->event->data.busy : arb_replicas(&v) == 0;
    case OWN_NONE:
    case OWN_TYPES:
        break;
    }
    return false;
}

void arb_want(struct arb *a, const struct own_request *want)
{
    const struct own_event *event = a->event;
    struct own_busy *b = a->busy;
    if (open_request(a)) {
        return;
    }
    if (b == NULL || has(a, want) || !may_ask(a, want)) {
        uint8_t why = has(a, want) ? 0 : b == NULL ? OWN_NACK_BUSY : OWN_NACK_MOOT;
        done(a, why);
        return;
    }
    b->mine = (struct own_request){.seq = ++*event->seq,
                                   .type = want->type,
                                   .requester = event->self,
                                   .target = want->type == OWN_TRIM ? want->target : NODE_NONE,
                                   .degree = want->type == OWN_DEGREE ? want->degree : 0,
                                   .create = want->type == OWN_OWNER && want->create,
                                   .admitted = event->view->members[event->self].admitted};
    b->mine_epoch = event->view->epoch;
    b->tries = 0;
    if (want->type == OWN_DESTROY && a->have) {
        /* Nobody may write it from now on: it would be destroyed with what was written. */
        arb_emit(a, OWN_FX_REVOKE, 0);
        arb_raise(event->clock, stamp_version(event->data.version)); /* R13 */
    }
    if (arb_settled(a)) {
        send_req(a);
    } else {
        b->waits = true;
    }
}

/* ---- Applying ---- */

static bool moves(const struct own_request *q)
{
    return q->type == OWN_OWNER || q->type == OWN_READER;
}

/* It is this member's: applied here first, then everywhere. */
static void apply(struct arb *a, uint64_t ts, const struct own_vector *before,
                  const struct own_request *q, uint64_t kept_version)
{
    const struct own_data *data = &a->event->data;
    nodeset others = (arb_expected(a, before, q) | nodeset_of(a->event->from)) & ~own_bit(a);
    if (moves(q) && arb_creates(a, before)) {
        uint64_t version = arb_rule(a, OWN_RULE_CLOCK) ? *a->event->clock + 1 : 1;
        arb_emit(a, OWN_FX_INSTALL, 0)->ts = stamp_make(version, 0);
        a->have = true;
    } else if (moves(q) && kept_version != 0 &&
               (!data->have || data->version < kept_version ||
                !arb_rule(a, OWN_RULE_HIGHEST_DATA))) {
        arb_emit(a, OWN_FX_INSTALL, 0)->ts = kept_version;
        a->have = true;
    }
    struct own_vector after = arb_after(a, before, q);
    struct own_request applied = *q;
    arb_take(a, ts, &after, q->type == OWN_DESTROY);
    struct own_body *body = arb_send(a, others, OWN_MSG_VAL, ts);
    if (body != NULL) {
        body->vector = after;
        body->request = applied;
    }
    if (moves(&applied)) {
        arb_emit(a, OWN_FX_COUNT, applied.type == OWN_OWNER ? OWN_MOVES : OWN_READS);
    }
}

static void complete(struct arb *a)
{
    struct own_busy *b = a->busy;
    struct own_request q = b->mine;
    struct own_vector before = b->mine_before;
    struct own_vector masked = arb_masked(a, &before);
    nodeset expected = arb_expected(a, &before, &q);
    if (!arb_rule(a, OWN_RULE_OWNER_ACK) && masked.owner != NODE_NONE) {
        expected &= ~nodeset_of(masked.owner);
    }
    if (!arb_rule(a, OWN_RULE_TRIM_ACK) && q.type == OWN_TRIM) {
        expected &= ~nodeset_of(q.target);
    }
    nodeset directory = a->event->directory & a->event->view->live;
    if (!arb_rule(a, OWN_RULE_ALL_ACKS) && nodeset_majority(b->mine_acked, directory)) {
        expected &= ~directory | nodeset_of(masked.owner);
    }
    if (!nodeset_within(expected, b->mine_acked)) {
        return;
    }
    bool needs = moves(&q) && !arb_creates(a, &before) && !(q.has_data && a->have);
    if (needs && b->mine_data == 0) {
        /* It was a replica when it asked, and is none any more: the driver makes another request of
         * it. (Nobody sent data, of an object that somebody has: no correct member does that.) */
        b->tries = b->tries < UINT8_MAX ? (uint8_t)(b->tries + 1) : b->tries;
        b->waits = true;
        b->mine_due_us = arb_later(a, q.has_data ? 0 : b->tries);
        forget_acks(b);
        return;
    }
    apply(a, b->mine_ts, &before, &q, b->mine_data == 0 ? 0 : b->mine_best);
    done(a, 0);
}

/* ---- Answers ---- */

static bool is_mine(const struct arb *a)
{
    return open_request(a) && arb_same(&a->busy->mine, &a->body->request);
}

/* R5. */
static bool better(const struct arb *a)
{
    const struct own_busy *b = a->busy;
    const struct own_body *body = a->body;
    return b->mine_data == 0 || !arb_rule(a, OWN_RULE_HIGHEST_DATA) ||
           body->version > b->mine_best ||
           (body->version == b->mine_best && body->owner && !b->best_owner);
}

void arb_want_ack(struct arb *a)
{
    const struct own_body *body = a->body;
    struct own_busy *b = a->busy;
    if (!a->event->alive && arb_rule(a, OWN_RULE_EPOCH)) {
        arb_emit(a, OWN_FX_BEHIND, 0);
        return;
    }
    if (!is_mine(a) || b->waits || body->request.retry != b->mine.retry ||
        body->request.type != b->mine.type ||
        (b->mine_ts != 0 && b->mine_ts != a->event->msg->ts)) {
        return;
    }
    if (a->event->msg->ts <= a->entry->ts) {
        return;
    }
    if (b->mine_ts == 0) {
        b->mine_ts = a->event->msg->ts;
        b->mine_before = body->vector;
        b->mine.has_data = body->request.has_data;
    }
    b->mine_acked |= nodeset_of(a->event->from);
    if (body->value && better(a)) {
        arb_emit(a, OWN_FX_KEEP, 0)->ts = body->version;
        b->mine_best = body->version;
        b->best_owner = body->owner;
        b->acked = b->best != 0 ? 0 : b->acked; /* a replay has to ask again: one value is kept */
        b->best = 0;
    }
    b->mine_data |= body->value ? nodeset_of(a->event->from) : 0;
    complete(a);
}

/* Beaten (the NACK names what was given up), or refused by another driver than the chief: that one
 * lets it wait for its turn, so it needs no pause. */
static bool goes_to_chief(const struct arb *a)
{
    const struct own_event *event = a->event;
    const struct own_busy *b = a->busy;
    nodeset chief = event->chief & event->drivers & event->view->live;
    bool first = b->tries == 0 && b->driver != nodeset_first(chief);
    return chief != 0 && (first || event->msg->ts != 0) && arb_settled(a);
}

void arb_want_nack(struct arb *a)
{
    struct own_busy *b = a->busy;
    if (!a->event->alive || !is_mine(a) || b->waits || a->body->request.retry != b->mine.retry) {
        return;
    }
    arb_emit(a, OWN_FX_COUNT, OWN_NACKS);
    switch ((enum own_nack)a->body->nack) {
    case OWN_NACK_BUSY:
    case OWN_NACK_EPOCH:
        if (a->body->nack == OWN_NACK_BUSY && goes_to_chief(a)) {
            b->tries = 1;
            send_again(a);
            break;
        }
        forget_acks(b);
        b->waits = true;
        b->mine_due_us = arb_later(a, b->tries);
        b->tries = b->tries < UINT8_MAX ? (uint8_t)(b->tries + 1) : b->tries;
        break;
    case OWN_NACK_NONE:
    case OWN_NACK_LOST:
        done(a, a->body->nack);
        break;
    case OWN_NACK_MOOT:
        done(a, has(a, &b->mine) ? 0 : OWN_NACK_MOOT);
        break;
    }
}

/* A replay tells that the arbitration is won. It ends a request that waits for its turn, too. */
void arb_want_resp(struct arb *a)
{
    const struct own_event *event = a->event;
    const struct own_body *body = a->body;
    struct own_request q = body->request;
    uint64_t ts = event->msg->ts;
    if (!event->alive) {
        arb_emit(a, OWN_FX_BEHIND, 0);
        return;
    }
    if (q.requester != event->self || !arb_requester_lives(a, &q) || a->busy == NULL) {
        return;
    }
    if (a->entry->ts >= ts) {
        if (arb_rule(a, OWN_RULE_RESP_AGAIN)) {
            arb_tell(a, nodeset_of(event->from));
        }
        return;
    }
    bool mine = is_mine(a);
    if (!mine && a->entry->ts == 0 && stamp_version(ts) <= *event->forgot) {
        return; /* over and forgotten: no correct member still has it to say */
    }
    bool lost = moves(&q) && arb_lost(a, &body->vector);
    bool needs = moves(&q) && !lost && !arb_creates(a, &body->vector) && !(q.has_data && a->have);
    if (needs && !body->value && !a->have) {
        return; /* no correct member says so without the data; it asks again */
    }
    if (body->value) {
        arb_emit(a, OWN_FX_KEEP, 0)->ts = body->version;
    }
    apply(a, ts, &body->vector, &q, body->value ? body->version : 0);
    if (mine) {
        done(a, lost ? OWN_NACK_LOST : 0);
    }
}

/* ---- Views and time ---- */

void arb_want_view(struct arb *a)
{
    struct own_busy *b = a->busy;
    if (!open_request(a)) {
        return;
    }
    forget_acks(b);
    b->mine_epoch = a->event->view->epoch;
    b->waits = true;
    b->mine_due_us = 0;
    if (!arb_rule(a, OWN_RULE_ONCE)) {
        send_again(a);
    }
}

void arb_want_go(struct arb *a)
{
    struct own_busy *b = a->busy;
    if (!open_request(a) || !b->waits || b->mine_due_us > a->event->now_us) {
        return;
    }
    if (arb_settled(a)) {
        send_again(a);
    } else {
        b->mine_due_us = 0; /* all SETTLED will say when */
    }
}

void arb_want_look(struct arb *a)
{
    if (open_request(a) && a->busy->waits && has(a, &a->busy->mine)) {
        done(a, 0);
    }
}
