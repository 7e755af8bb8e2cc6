/* Ownership ([Z] 5.4; docs/protocols/zeus.md): the dispatcher, the directory, the mask, and what a
 * request makes of a vector. */
#include "engine/zeus/own.h"

#include <stddef.h>
#include <string.h>

#include "engine/zeus/own_machine.h"

const char *const own_state_names[] = {
    [OWN_VALID] = "Valid", [OWN_INVALID] = "Invalid", [OWN_DRIVE] = "Drive"};

const char *const own_kind_names[OWN_MSG_END] = {
    [OWN_MSG_REQ] = "REQ",         [OWN_MSG_INV] = "INV",       [OWN_MSG_ACK] = "ACK",
    [OWN_MSG_NACK] = "NACK",       [OWN_MSG_VAL] = "VAL",       [OWN_MSG_RESP] = "RESP",
    [OWN_MSG_INVITE] = "INVITE",   [OWN_MSG_ENTRY] = "ENTRY",   [OWN_MSG_RECOVERED] = "RECOVERED",
    [OWN_MSG_SETTLED] = "SETTLED", [OWN_MSG_PUSHED] = "PUSHED",
};

const char *const own_rule_names[OWN_RULES] = {
    [OWN_RULE_RESULT] = "result",
    [OWN_RULE_OWNER_ACK] = "owner_ack",
    [OWN_RULE_ALL_ACKS] = "all_acks",
    [OWN_RULE_TRIM_ACK] = "trim_ack",
    [OWN_RULE_ONCE] = "once",
    [OWN_RULE_PENDING] = "pending",
    [OWN_RULE_HIGHEST_DATA] = "highest_data",
    [OWN_RULE_VALID_DRIVES] = "valid_drives",
    [OWN_RULE_HIGHER_INV] = "higher_inv",
    [OWN_RULE_FIRST] = "first",
    [OWN_RULE_REPLAY_WAITS] = "replay_waits",
    [OWN_RULE_REPLAY] = "replay",
    [OWN_RULE_STALE] = "stale",
    [OWN_RULE_EPOCH] = "epoch",
    [OWN_RULE_MASK] = "mask",
    [OWN_RULE_SHADOW] = "shadow",
    [OWN_RULE_CLOCK] = "clock",
    [OWN_RULE_RESP_AGAIN] = "resp_again",
    [OWN_RULE_ENOUGH] = "enough",
    [OWN_RULE_FRESH] = "fresh",
};

/* ---- Directory ---- */

/* The finalizer of splitmix64: every bit of the result depends on all of both. */
static uint64_t score(uint64_t hash, uint8_t node)
{
    uint64_t x = hash + 0x9e3779b97f4a7c15u * (node + 1u);
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* The d nodes of the set with the highest scores; of equal ones the lower ids. */
static nodeset highest(nodeset set, uint64_t hash)
{
    uint32_t minority = (nodeset_count(set) - 1) / 2;
    uint32_t d = minority + 1 > 3 ? minority + 1 : 3;
    nodeset chosen = 0;
    for (uint32_t i = 0; i < d && chosen != set; i++) {
        uint8_t best = NODE_NONE;
        for (nodeset rest = set & ~chosen; rest != 0; rest &= rest - 1) {
            uint8_t node = nodeset_first(rest);
            if (best == NODE_NONE || score(hash, node) > score(hash, best)) {
                best = node;
            }
        }
        chosen |= nodeset_of(best);
    }
    return chosen;
}

nodeset own_directory(const struct view *view, uint64_t portable_hash)
{
    nodeset old = view->configured_old == 0 ? 0 : highest(view->configured_old, portable_hash);
    return old | (view->configured == 0 ? 0 : highest(view->configured, portable_hash));
}

nodeset own_drivers(const struct view *view, uint64_t portable_hash)
{
    nodeset set = view->configured_old != 0 ? view->configured_old : view->configured;
    return set == 0 ? 0 : highest(set, portable_hash) & view->operational;
}

/* A reader's entry may be old. Where no directory node serves that has one, nobody else may be
 * left who knows of the object: its readers speak, and the latest of them knows all others. */
nodeset own_pushes(const struct view *view, const struct view *base, uint64_t portable_hash,
                   uint8_t self, const struct own_vector *masked)
{
    nodeset directory = own_directory(view, portable_hash);
    nodeset old = own_directory(base, portable_hash);
    nodeset fresh = view->live & ~view->operational;
    bool reader = nodeset_has(masked->readers, self) && (old & view->operational) == 0;
    if (!nodeset_has(directory | old, self) && masked->owner != self && !reader) {
        return 0;
    }
    return directory & (fresh | ~old) & view->live & ~nodeset_of(self);
}

nodeset own_chief(nodeset drivers, uint64_t portable_hash)
{
    nodeset chief = 0;
    for (nodeset rest = drivers; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (chief == 0 || score(portable_hash, node) > score(portable_hash, nodeset_first(chief))) {
            chief = nodeset_of(node);
        }
    }
    return chief;
}

/* ---- Vectors ---- */

static bool counts(const struct view *view, uint8_t node, uint32_t epoch)
{
    return nodeset_has(view->live, node) && view->members[node].admitted <= epoch;
}

static struct own_vector mask(const struct own_vector *vector, const struct view *view,
                              uint32_t epoch)
{
    struct own_vector masked = {.epoch = view->epoch, .degree = vector->degree};
    for (nodeset rest = vector->readers & view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        masked.readers |= counts(view, node, epoch) ? nodeset_of(node) : 0;
    }
    masked.owner = counts(view, vector->owner, epoch) ? vector->owner : NODE_NONE;
    masked.readers &= ~(masked.owner == NODE_NONE ? 0 : nodeset_of(masked.owner));
    return masked;
}

struct own_vector own_masked(const struct own_vector *vector, const struct view *view)
{
    return mask(vector, view, vector->epoch);
}

struct own_vector arb_masked(const struct arb *a, const struct own_vector *vector)
{
    bool all = !arb_rule(a, OWN_RULE_MASK) && vector->epoch != 0;
    return mask(vector, a->event->view, all ? UINT32_MAX : vector->epoch);
}

nodeset arb_replicas(const struct own_vector *masked)
{
    return masked->readers | (masked->owner == NODE_NONE ? 0 : nodeset_of(masked->owner));
}

bool arb_creates(const struct arb *a, const struct own_vector *before)
{
    struct own_vector v = arb_masked(a, before);
    bool nobody = before->owner == NODE_NONE || (before->degree & OWN_FRESH) != 0;
    return nobody && before->readers == 0 && arb_replicas(&v) == 0;
}

/* Whether R15 keeps whoever creates an object from writing it alone. */
static bool is_written_by_several(const struct arb *a)
{
    return a->event->config->degree != 1 && nodeset_count(a->event->view->configured) >= 3 &&
           arb_rule(a, OWN_RULE_FRESH);
}

bool arb_lost(const struct arb *a, const struct own_vector *before)
{
    struct own_vector v = arb_masked(a, before);
    return !arb_creates(a, before) && arb_replicas(&v) == 0;
}

bool arb_requester_lives(const struct arb *a, const struct own_request *request)
{
    const struct view *view = a->event->view;
    return nodeset_has(view->live, request->requester) &&
           view->members[request->requester].admitted == request->admitted;
}

bool arb_same(const struct own_request *a, const struct own_request *b)
{
    return a->seq == b->seq && a->requester == b->requester && a->admitted == b->admitted;
}

nodeset arb_expected(const struct arb *a, const struct own_vector *before,
                     const struct own_request *request)
{
    const struct view *view = a->event->view;
    struct own_vector v = arb_masked(a, before);
    nodeset set = a->event->directory & view->live;
    bool moves = request->type == OWN_OWNER || request->type == OWN_READER;
    if (v.owner != NODE_NONE) {
        set |= nodeset_of(v.owner);
    } else if (moves && !request->has_data && (v.readers & set) == 0 && v.readers != 0) {
        set |= nodeset_of(nodeset_first(v.readers));
    }
    if (request->type == OWN_TRIM && nodeset_has(v.readers, request->target)) {
        set |= nodeset_of(request->target);
    }
    if (request->type == OWN_DESTROY) {
        set |= v.readers;
    }
    return set;
}

struct own_vector arb_after(const struct arb *a, const struct own_vector *before,
                            const struct own_request *request)
{
    struct own_vector v = arb_masked(a, before);
    bool lives = arb_requester_lives(a, request) && !arb_lost(a, before);
    bool fresh = arb_creates(a, before) ? is_written_by_several(a) : (v.degree & OWN_FRESH) != 0;
    nodeset requester = nodeset_of(request->requester);
    switch ((enum own_type)request->type) {
    case OWN_OWNER:
        v.readers |= v.owner == NODE_NONE ? 0 : nodeset_of(v.owner);
        v.owner = lives ? request->requester : NODE_NONE;
        v.readers &= ~(lives ? requester : 0);
        break;
    case OWN_READER:
        v.readers |= lives && v.owner != request->requester ? requester : 0;
        break;
    case OWN_TRIM:
        v.readers &= ~nodeset_of(request->target);
        break;
    case OWN_DEGREE:
        v.degree = request->degree;
        break;
    case OWN_DESTROY:
        v = (struct own_vector){.owner = NODE_NONE, .epoch = v.epoch};
        break;
    case OWN_NONE:
    case OWN_TYPES:
        break;
    }
    v.degree = own_degree_of(&v);
    v.degree |= fresh && v.readers == 0 && request->type != OWN_DESTROY ? OWN_FRESH : 0;
    return v;
}

/* ---- Small helpers ---- */

struct own_effect *arb_emit(struct arb *a, enum own_fx kind, uint8_t code)
{
    HK_ASSERT(a->fx->n < OWN_EFFECTS_MAX);
    struct own_effect *e = &a->fx->e[a->fx->n++];
    *e = (struct own_effect){.kind = (uint8_t)kind, .code = code};
    return e;
}

struct own_body *arb_send(struct arb *a, nodeset to, enum own_kind kind, uint64_t ts)
{
    if (to == 0) {
        return NULL;
    }
    struct own_effect *e = arb_emit(a, OWN_FX_SEND, (uint8_t)kind);
    e->to = to;
    e->ts = ts;
    e->body.vector.owner = NODE_NONE;
    return &e->body;
}

void arb_raise(uint64_t *clock, uint64_t version)
{
    *clock = version > *clock ? version : *clock;
}

bool arb_pending(const struct arb *a)
{
    return a->busy != NULL && a->busy->state != OWN_VALID;
}

bool arb_settled(const struct arb *a)
{
    return (a->event->recovered && a->event->settled) || !arb_rule(a, OWN_RULE_ONCE);
}

uint64_t arb_later(const struct arb *a, uint32_t tries)
{
    uint32_t doublings = tries < 6 ? tries : 6;
    uint64_t span = (uint64_t)(a->event->config->backoff_us + 1) << doublings;
    return a->event->now_us + span / 2 + a->event->random % span;
}

bool own_idle(const struct own_busy *busy)
{
    return busy->state == OWN_VALID && busy->mine.type == OWN_NONE;
}

/* ---- The step ---- */

static void step_message(struct arb *a)
{
    const struct msg *msg = a->event->msg;
    struct own_body body;
    own_body_decode(msg, &body);
    a->body = &body;
    if (!nodeset_has(a->event->view->live, a->event->from) || msg->epoch > a->event->view->epoch) {
        return;
    }
    arb_raise(a->event->clock, msg->arg);
    arb_raise(a->event->clock, stamp_version(msg->ts));
    switch ((enum own_kind)msg->kind) {
    case OWN_MSG_REQ:
        arb_req(a);
        break;
    case OWN_MSG_INV:
        arb_inv(a);
        break;
    case OWN_MSG_ACK:
        if (body.replay) {
            arb_replay_ack(a);
        } else {
            arb_want_ack(a);
        }
        break;
    case OWN_MSG_NACK:
        if (body.replay) {
            arb_replay_nack(a);
        } else {
            arb_want_nack(a);
        }
        break;
    case OWN_MSG_VAL:
        arb_val(a);
        break;
    case OWN_MSG_RESP:
        arb_want_resp(a);
        break;
    case OWN_MSG_INVITE:
        if (a->busy != NULL && a->event->alive) {
            arb_want(a, &body.request);
        }
        break;
    case OWN_MSG_ENTRY:
        arb_known(a);
        break;
    case OWN_MSG_RECOVERED:
    case OWN_MSG_SETTLED:
    case OWN_MSG_PUSHED:
    case OWN_MSG_END:
        break;
    }
    a->body = NULL;
}

static void set_due(struct own_busy *busy)
{
    uint64_t replay = busy->state == OWN_VALID ? 0 : busy->replay_due_us;
    uint64_t mine = busy->mine.type == OWN_NONE ? 0 : busy->mine_due_us;
    bool first = replay != 0 && (mine == 0 || replay < mine);
    busy->due_us = first ? replay : mine;
}

void own_step(struct own_entry *entry, struct own_busy *busy, const struct own_event *event,
              struct own_effects *fx)
{
    struct arb a = {
        .entry = entry, .busy = busy, .event = event, .fx = fx, .have = event->data.have};
    fx->n = 0;
    switch (event->kind) {
    case OWN_EV_WANT:
        arb_want(&a, &event->want);
        break;
    case OWN_EV_MSG:
        step_message(&a);
        break;
    case OWN_EV_FREE:
        arb_freed(&a);
        break;
    case OWN_EV_VIEW:
        arb_view(&a);
        break;
    case OWN_EV_GO:
        arb_go(&a);
        break;
    case OWN_EV_TIMER:
        arb_timer(&a);
        break;
    case OWN_EV_LOOK:
        arb_look(&a);
        break;
    }
    if (busy != NULL) {
        arb_want_look(&a);
        set_due(busy);
    }
}

/* ---- Invariants ---- */

void own_check(const struct own_entry *entry, const struct own_busy *busy,
               const struct own_data *data, const struct view *view, uint8_t self)
{
    static const struct own_vector nothing;
    HK_ASSERT(entry->ts != 0 || memcmp(&entry->vector, &nothing, sizeof nothing) == 0);
    HK_ASSERT(!nodeset_has(entry->vector.readers, entry->vector.owner) || entry->ts == 0);
    HK_ASSERT(entry->vector.epoch <= view->epoch);
    if (busy == NULL) {
        return;
    }
    bool pending = busy->state != OWN_VALID;
    HK_ASSERT(busy->state <= OWN_DRIVE && pending == (busy->ts != 0));
    HK_ASSERT(pending || (!busy->owes && !busy->replays && !busy->stale));
    HK_ASSERT(!pending || busy->ts > entry->ts);
    HK_ASSERT(!pending || busy->epoch <= view->epoch);
    HK_ASSERT(busy->state != OWN_DRIVE || (!busy->stale && busy->epoch == view->epoch));
    HK_ASSERT(busy->mine.type < OWN_TYPES);
    HK_ASSERT(busy->mine.type == OWN_NONE ||
              (busy->mine.requester == self && busy->mine_epoch == view->epoch));
    HK_ASSERT(busy->mine_ts != 0 || busy->mine_acked == 0);
    HK_ASSERT(nodeset_within(busy->mine_data, busy->mine_acked));
    struct own_vector v = own_masked(&entry->vector, view);
    bool replica = v.owner == self || nodeset_has(v.readers, self);
    HK_ASSERT(!replica || data->have || pending);
}
