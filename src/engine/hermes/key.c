/* Hermes, the key machine: dispatcher, coordinator and replays.
 *
 * Source: [H] 4.2.2 (protocol), 4.3.3 (message loss, views, joining), 4.3.5 (RMWs), 4.3.6
 * (asynchronous reads); docs/protocols/hermes.md has the fault model, the rules by number, the
 * deviations D1 to D16 with the execution that makes each necessary, and the whole table, which is
 * printed from table.c.
 *
 *   step of the thesis          action of the specification    function
 *   C_TS, C_INV                 Issue, Retry                   c_update
 *   C_ACK, C_VAL                LastAck, TurnValid             c_last_ack, turn_valid
 *   C_RMW-abort                 TurnValid (lost)               turn_valid (FLOW_CODE_LOST)
 *   C_RMW-replay, m-update      Adopt, Again                   c_view
 *   retransmission (mlt)        Resend                         c_resend
 *   write replay                Replay                         replay
 *   its end                     ReplayDone                     r_last_ack
 *   F_INV, F_ACK, F_RMW-ACK     RecvInv                        follower.c
 *   F_VAL                       RecvVal                        follower.c
 *   -                           Ask ... Forget                 forget.c
 *
 * Invariants (hermes_check in hermes.c asserts those of one key):
 *   I1  A key is readable exactly in Valid.
 *   I2  Valid: no update is pending. Write: the pending update's ts is the stored ts. Trans: an own
 *       plain write is pending, below the stored ts. Invalid: none is, or a lost one.
 *   I3  ts, value, RMW flag and first flag change together.
 *   I4  A slot of kind FLOW_UPDATE is closed by one outcome, sent by the step that cleared
 *       key_meta.owner. So the slot that owner names has not been reused, and a FLOW_UPDATE slot
 *       that owner does not name has its outcome on the way and does nothing.
 *   I5  If a node is Valid at ts then every live member of its view stored ts at some time, or has
 *       seen it forgotten since.
 *
 *            c_update            overtaken (plain)
 *   Valid ------------> Write ---------------------> Trans
 *     ^ ^  last ACK, VAL  |                            | last ACK of the overtaken write
 *     | +-----------------+  overtaken (special)       v
 *     |                   +------------------------> Invalid <--- INV above, in any state
 *     |  VAL, all ACKs (O3), Valid answer              | replay (Trans too)
 *     +--------------------------------------------- Replay
 */
#include "engine/hermes/machine.h"

/* ---- Helpers of all parts ---- */

void hermes_drop(struct effects *fx, enum engine_drop why)
{
    effects_add(fx, EFF_DROP)->code = (uint8_t)why;
}

bool hermes_admitted(const struct event *event, struct effects *fx)
{
    const struct hermes_config *config = event->config;
    const struct msg *msg = event->msg;
    uint32_t epoch = event->view->epoch;
    if (msg->epoch != epoch && rule_on(config, HERMES_RULE_EPOCH)) {
        hermes_drop(fx, msg->epoch < epoch ? ENGINE_DROP_EPOCH_OLD : ENGINE_DROP_EPOCH_NEW);
        if (msg->epoch < epoch) {
            effects_add(fx, EFF_BEHIND)->to = event->from;
        }
        return false;
    }
    if (!nodeset_has(event->view->live, event->from)) {
        hermes_drop(fx, ENGINE_DROP_SENDER);
        return false;
    }
    return true;
}

enum hermes_state hermes_invalid_state(const struct key_meta *meta)
{
    return meta->owner != 0 && !pending_special(meta) ? HERMES_TRANS : HERMES_INVALID;
}

bool hermes_orphaned(const struct key_step *s)
{
    if (!rule_on(s->config, HERMES_RULE_REPLAY)) {
        return false;
    }
    if (!rule_on(s->config, HERMES_RULE_CID_TRIGGER)) {
        return !nodeset_has(s->view->live, (uint8_t)s->meta->aux);
    }
    if (!rule_on(s->config, HERMES_RULE_CID)) {
        return !nodeset_has(s->view->live, (uint8_t)(stamp_cid(s->meta->ts) - 1));
    }
    return view_cid_owner(s->view, stamp_cid(s->meta->ts)) == NODE_NONE;
}

void hermes_end_pending(struct key_step *s, uint8_t outcome)
{
    struct effect *e = effects_add(s->fx, EFF_FLOW);
    e->code = outcome;
    e->slot = s->meta->owner;
    s->meta->owner = 0;
    s->meta->flags &= (uint8_t)~KEY_SPECIAL;
}

void hermes_turn_valid(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool own = meta->state == HERMES_WRITE;
    if (meta->owner != 0) {
        /* Rules 4, 6b, 10: a higher ts committed, so an overtaken write took its place just before
         * it, and an overtaken RMW can never commit. */
        uint8_t beaten = pending_special(meta) ? FLOW_CODE_LOST : FLOW_CODE_OVERTAKEN;
        hermes_end_pending(s, own ? FLOW_CODE_DONE : beaten);
    }
    meta->aux = 0;
    hermes_set_state(meta, s->config, HERMES_VALID);
    if ((meta->flags & KEY_WAITERS) != 0) {
        meta->flags &= (uint8_t)~KEY_WAITERS;
        effects_add(s->fx, EFF_WAKE);
    }
}

/* The flags of a message that carries the stored value. */
static uint8_t stored_flags(const struct key_meta *meta)
{
    return (uint8_t)(((meta->flags & KEY_RMW) != 0 ? HERMES_F_RMW : 0) |
                     ((meta->flags & KEY_FIRST) != 0 ? HERMES_F_FIRST : 0));
}

/* [H] O3 for the stored update: plain writes that are no first updates (rule 7). */
static bool acks_to_all(const struct key_step *s)
{
    bool covered =
        (s->meta->flags & (KEY_RMW | KEY_FIRST)) == 0 || !rule_on(s->config, HERMES_RULE_O3_WRITES);
    return s->config->ack_to_all && covered && o3_possible(s->view);
}

/* The stored value as an INV that asks everybody in `set` to acknowledge to `slot`. */
static void send_inv(struct key_step *s, nodeset set, const struct slot *slot)
{
    if (set == 0) {
        return;
    }
    struct effect *e = effects_add(s->fx, EFF_BCAST);
    e->code = HERMES_INV;
    e->flags = stored_flags(s->meta);
    if (slot->kind == FLOW_UPDATE && acks_to_all(s)) {
        e->flags |= HERMES_F_ACK_ALL;
    }
    e->with = EFF_VALUE;
    e->set = set;
    e->slot = slot->ref;
    e->gen = slot->gen;
    e->ts = s->meta->ts;
}

void hermes_send_answer(struct key_step *s, uint8_t to)
{
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->code = HERMES_INV;
    e->flags = stored_flags(s->meta) | HERMES_F_ANSWER;
    if (s->meta->state == HERMES_VALID && rule_on(s->config, HERMES_RULE_ANSWER_VALID)) {
        e->flags |= HERMES_F_VALID;
    }
    e->with = EFF_VALUE;
    e->to = to;
    e->ts = s->meta->ts;
}

void hermes_tell_mine(struct key_step *s, uint8_t code)
{
    struct effect *e = effects_add(s->fx, EFF_FLOW);
    e->code = code;
    e->slot = s->mine->ref;
    e->gen = s->mine->gen;
}

static void send_val(struct key_step *s)
{
    if (others_of(s->event) != 0) {
        struct effect *e = effects_add(s->fx, EFF_BCAST);
        e->code = HERMES_VAL;
        e->set = others_of(s->event);
        e->ts = s->meta->ts;
    }
}

/* The INV of the flow that this step is for, to those that have not acknowledged it. */
static void send_again(struct key_step *s)
{
    if (hermes_acks_complete(s->mine, s->event)) {
        hermes_tell_mine(s, FLOW_CODE_NUDGE); /* the node may have held the completion back */
    } else {
        send_inv(s, others_of(s->event) & ~s->mine->acked, s->mine);
    }
}

/* ---- Replays ([H] 4.2.2 "Write replays") ---- */

void hermes_replay(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    if (meta->state != HERMES_INVALID && meta->state != HERMES_TRANS) {
        return;
    }
    if (!rule_on(s->config, HERMES_RULE_REPLAY) ||
        (meta->state == HERMES_TRANS && !rule_on(s->config, HERMES_RULE_TRANS_REPLAY))) {
        return;
    }
    if (others_of(s->event) == 0) {
        hermes_turn_valid(s); /* every live member has it: this one */
        return;
    }
    if (s->spare == NULL || s->spare->kind != FLOW_FREE) {
        return; /* no room: the next timer tries again */
    }
    hermes_slot_open(s->spare, FLOW_REPLAY, meta->ts, s->event);
    hermes_set_state(meta, s->config, HERMES_REPLAY);
    send_inv(s, others_of(s->event), s->spare);
}

/* C_ACK, C_VAL of a replay. */
static void r_last_ack(struct key_step *s)
{
    send_val(s);
    hermes_tell_mine(s, FLOW_CODE_GONE);
    hermes_turn_valid(s);
}

static void replay_flow(struct key_step *s)
{
    bool complete = hermes_acks_complete(s->mine, s->event);
    if (s->meta->state != HERMES_REPLAY || s->meta->ts != s->mine->ts) {
        hermes_tell_mine(s, FLOW_CODE_GONE);
    } else if (s->event->code != KEY_CODE_COMPLETE) {
        send_again(s);
    } else if (complete) {
        r_last_ack(s);
    }
}

/* ---- Coordinator ---- */

/* C_TS: a write adds 2 to the version and an RMW 1, so that a write beats the RMWs that it races
 * with ([H] 4.3.5). The c_id is one of this incarnation's ([H] O1; rule 8). */
static uint64_t c_ts(const struct key_step *s)
{
    const struct event *event = s->event;
    uint64_t step = !event->rmw && rule_on(s->config, HERMES_RULE_STEP) ? 2 : 1;
    uint64_t version = stamp_version(s->meta->ts) + step;
    HK_ASSERT(version < 1ull << (64 - STAMP_CID_BITS));
    if (!rule_on(s->config, HERMES_RULE_CID)) {
        return stamp_make(version, event->self + 1u);
    }
    const struct view_member *member = &s->view->members[event->self];
    HK_ASSERT(member->cid_count > 0);
    return stamp_make(version, member->cid_first + (uint32_t)(event->random % member->cid_count));
}

static void park(struct key_step *s)
{
    effects_add(s->fx, EFF_PARK);
    s->meta->flags |= KEY_WAITERS;
    if (hermes_orphaned(s)) {
        hermes_replay(s);
    }
}

/* C_TS, C_INV. The value's own flags are the node's to set: it made the value. */
static void c_update(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    if ((meta->flags & KEY_READABLE) == 0) {
        park(s);
        return;
    }
    HK_ASSERT(s->spare != NULL && s->spare->kind == FLOW_FREE);
    bool first = meta->ts == 0 && rule_on(s->config, HERMES_RULE_FIRST);
    meta->ts = c_ts(s);
    meta->owner = s->spare->ref;
    meta->aux = rule_on(s->config, HERMES_RULE_CID_TRIGGER) ? 0 : s->event->self;
    meta->flags &= (uint8_t) ~(KEY_RMW | KEY_FIRST | KEY_SPECIAL | KEY_REPORTED);
    if (s->event->rmw) {
        meta->flags |= KEY_RMW | KEY_SPECIAL;
    }
    if (first) {
        meta->flags |= KEY_FIRST | KEY_SPECIAL;
    }
    hermes_slot_open(s->spare, FLOW_UPDATE, meta->ts, s->event);
    s->spare->aux[SLOT_FLAGS] = meta->flags & (KEY_RMW | KEY_FIRST);
    hermes_set_state(meta, s->config, HERMES_WRITE);
    effects_add(s->fx, EFF_APPLY);
    if (others_of(s->event) == 0) {
        hermes_turn_valid(s);
        return;
    }
    send_inv(s, others_of(s->event), s->spare);
}

/* C_ACK, C_VAL. A lost update is never completed by ACKs (rule 6b). */
static void c_last_ack(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    if (meta->state == HERMES_WRITE) {
        /* Under O3 the followers have gathered the ACKs themselves, unless some were sent again. */
        if (!acks_to_all(s) || (s->mine->flags & SLOT_RESENT) != 0) {
            send_val(s);
        }
        hermes_turn_valid(s);
    } else if (!pending_special(meta)) {
        /* Overtaken, but every live member had it: it is ordered before the update that overtook
         * it, with which it overlapped. No VAL ([H] O2). */
        hermes_end_pending(s, FLOW_CODE_DONE);
        if (meta->state == HERMES_TRANS) {
            hermes_set_state(meta, s->config, HERMES_INVALID);
        }
    }
}

/* The deadline of the pending update passed. An overtaken or lost update is never sent again
 * (rule 5): what is replayed is the newer ts that the key holds. */
static void c_resend(struct key_step *s)
{
    if (s->meta->state == HERMES_WRITE) {
        send_again(s);
        return;
    }
    if (!rule_on(s->config, HERMES_RULE_NO_STALE)) {
        /* The fault to be shown: the old ts leaves once more. */
        struct key_meta now = *s->meta;
        s->meta->ts = s->mine->ts;
        s->meta->flags &= (uint8_t) ~(KEY_RMW | KEY_FIRST);
        s->meta->flags |= s->mine->aux[SLOT_FLAGS];
        send_inv(s, others_of(s->event), s->mine);
        *s->meta = now;
        return;
    }
    hermes_replay(s);
}

/* C_RMW-replay, for every update: the view changed, all ACKs are void (rule 5), the update is sent
 * again in the new epoch under its old ts. */
static void c_view(struct key_step *s)
{
    if (s->meta->state == HERMES_WRITE || !rule_on(s->config, HERMES_RULE_NO_STALE)) {
        c_resend(s);
    } else if (hermes_orphaned(s) || others_of(s->event) == 0) {
        hermes_replay(s);
    }
}

static void update_flow(struct key_step *s)
{
    if (s->meta->owner != s->mine->ref) {
        return; /* I4: the outcome is on its way to the slot */
    }
    switch (s->event->code) {
    case KEY_CODE_COMPLETE:
        if (hermes_acks_complete(s->mine, s->event)) {
            c_last_ack(s);
        }
        break;
    case KEY_CODE_RESEND:
        c_resend(s);
        break;
    case KEY_CODE_VIEW:
        c_view(s);
        break;
    default:
        HK_ASSERT(false && "a code that no flow sends");
    }
}

/* ---- Dispatcher ---- */

static void key_flow(struct key_step *s)
{
    switch (s->mine->kind) {
    case FLOW_UPDATE:
        update_flow(s);
        break;
    case FLOW_REPLAY:
        replay_flow(s);
        break;
    case FLOW_COLLECT:
        hermes_forget_flow(s);
        break;
    default:
        HK_ASSERT(false && "a flow that has no key");
    }
}

static void key_sweep(struct key_step *s)
{
    switch ((enum hermes_state)s->meta->state) {
    case HERMES_VALID:
        hermes_forget_sweep(s);
        break;
    case HERMES_INVALID:
    case HERMES_TRANS:
        /* Nobody reads a tombstone, so nobody would notice that its VAL was lost; and until every
         * member is Valid at it, it cannot be forgotten. */
        if (hermes_orphaned(s) || (s->meta->flags & KEY_TOMBSTONE) != 0) {
            hermes_replay(s);
        }
        break;
    case HERMES_WRITE:
    case HERMES_REPLAY:
    case HERMES_STATES:
        break;
    }
}

static void key_message(struct key_step *s)
{
    switch ((enum hermes_kind)s->event->msg->kind) {
    case HERMES_INV:
    case HERMES_ACK_ALL:
    case HERMES_VAL:
    case HERMES_ITEM:
        hermes_follower_message(s);
        break;
    case HERMES_FORGET_ASK:
    case HERMES_FORGET:
        hermes_forget_message(s);
        break;
    case HERMES_ACK:
    case HERMES_CHECK:
    case HERMES_CHECK_OK:
    case HERMES_FORGET_REPORT:
    case HERMES_KIND_END:
        HK_ASSERT(false && "a message for a flow");
    }
}

void hermes_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
                const struct event *event, struct effects *fx)
{
    (void)ext;
    struct key_step s = {.meta = meta,
                         .mine = mine,
                         .spare = spare,
                         .event = event,
                         .view = event->view,
                         .config = event->config,
                         .worker = event->worker,
                         .fx = fx};
    switch (event->kind) {
    case EV_READ:
        HK_ASSERT((meta->flags & KEY_READABLE) == 0);
        park(&s);
        break;
    case EV_UPDATE:
        c_update(&s);
        break;
    case EV_MSG:
        key_message(&s);
        break;
    case EV_TIMER:
        hermes_replay(&s);
        break;
    case EV_FLOW:
        key_flow(&s);
        break;
    case EV_SWEEP:
        key_sweep(&s);
        break;
    case EV_VIEW:
    case EV_KEY:
    case EV_FLUSH:
    case EV_HOT:
    case EV_MOVE:
    case EV_SLOTS:
        HK_ASSERT(false && "an event of flows");
    }
}
