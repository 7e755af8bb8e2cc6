/* Galene, the key machine: plain keys at their home, reads and writes of cached keys ([G] 3.5).
 * docs/protocols/galene.md has the rules and tables; how keys come and go is in stay.c.
 *
 * I1  A key is readable exactly in Home and Valid, and then its value is the newest.
 * I2  owner names a flow that has not ended: in Write, Entering, Dropping and Moving always; in
 *     Valid, Invalid and Lost an own write that was overtaken, or at the home a leave. The step
 *     that clears owner tells the flow its end, so the flow's slot is not reused before.
 * I3  In Write, ts is the pending write's, and the stored value an older one: nobody has the new
 *     one but the flow that owner names. */
#include "engine/galene/machine.h"

static bool rule(const struct key_step *s, enum galene_rule which)
{
    return galene_rule_on(s->config, which);
}

/* ---- State ---- */

bool galene_cached(const struct key_meta *meta)
{
    return meta->state == GALENE_VALID || meta->state == GALENE_INVALID ||
           meta->state == GALENE_WRITE || (meta->state == GALENE_LOST && meta->aux != 0);
}

bool galene_same_stay(const struct key_step *s)
{
    return galene_cached(s->meta) && s->meta->aux == s->event->msg->arg;
}

void galene_wake(struct key_step *s)
{
    if ((s->meta->flags & KEY_WAITERS) != 0) {
        s->meta->flags &= (uint8_t)~KEY_WAITERS;
        effects_add(s->fx, EFF_WAKE);
    }
}

static bool readable_in(const struct key_step *s, enum galene_state state)
{
    return state == GALENE_HOME || state == GALENE_VALID ||
           (state == GALENE_INVALID && !rule(s, GALENE_RULE_READ_VALID));
}

void galene_set_state(struct key_step *s, enum galene_state next)
{
    struct key_meta *meta = s->meta;
    meta->state = (uint8_t)next;
    if (readable_in(s, next)) {
        meta->flags |= KEY_READABLE;
    } else {
        meta->flags &= (uint8_t)~KEY_READABLE;
    }
    if (next == GALENE_HOME || next == GALENE_VALID) {
        meta->flags &= (uint8_t)~KEY_ASKING;
        galene_wake(s);
    } else if (next == GALENE_LOST) {
        galene_wake(s); /* to hear that */
    }
}

static void tell(struct key_step *s, uint32_t ref, uint8_t code)
{
    struct effect *e = effects_add(s->fx, EFF_FLOW);
    e->code = code;
    e->slot = ref;
}

void galene_tell_mine(struct key_step *s, uint8_t code)
{
    tell(s, s->mine->ref, code);
}

void galene_end(struct key_step *s, uint8_t outcome)
{
    if (s->meta->owner != 0) {
        tell(s, s->meta->owner, outcome);
        s->meta->owner = 0;
        s->meta->flags &= (uint8_t)~KEY_RMW;
    }
}

void galene_forget(struct key_step *s, uint8_t outcome)
{
    galene_end(s, outcome);
    galene_wake(s);
    effects_add(s->fx, EFF_FORGET);
}

static void park(struct key_step *s)
{
    effects_add(s->fx, EFF_PARK);
    s->meta->flags |= KEY_WAITERS;
    if (galene_orphaned(s)) {
        galene_rescue(s);
    }
}

/* ---- Messages out ---- */

struct effect *galene_send(struct key_step *s, uint8_t to, enum galene_kind kind)
{
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->to = to;
    e->code = (uint8_t)kind;
    return e;
}

struct effect *galene_bcast(struct key_step *s, nodeset set, enum galene_kind kind)
{
    struct effect *e = effects_add(s->fx, EFF_BCAST);
    e->set = set;
    e->code = (uint8_t)kind;
    e->arg = s->meta->aux;
    return e;
}

struct effect *galene_answer(struct key_step *s, enum galene_kind kind)
{
    struct effect *e = galene_send(s, s->event->from, kind);
    e->with = EFF_NO_KEY;
    e->slot = s->event->msg->slot;
    e->gen = s->event->msg->gen;
    return e;
}

void galene_slot_open(struct slot *slot, enum galene_flow kind, const struct key_step *s,
                      nodeset want)
{
    slot->kind = (uint8_t)kind;
    slot->state = 0;
    slot->flags = 0;
    slot->tries = 0;
    slot->ts = s->meta->ts;
    slot->acked = 0;
    slot->deadline_us = 0;
    slot->epoch = s->view->epoch;
    galene_aux_set(slot, (struct galene_aux){.want = want, .generation = s->meta->aux});
}

/* ---- Updates ---- */

/* K8. */
static uint64_t next_ts(const struct key_step *s, uint64_t step)
{
    const struct event *event = s->event;
    const struct view_member *member = &s->view->members[event->self];
    uint64_t version = stamp_version(s->meta->ts) + step;
    uint32_t cid = event->self + 1u;
    if (rule(s, GALENE_RULE_CID)) {
        HK_ASSERT(member->cid_count > 0);
        cid = member->cid_first + (uint32_t)(event->random % member->cid_count);
    }
    HK_ASSERT(version <= GALENE_VERSION_MAX);
    return stamp_make(version, cid);
}

/* At the home: stored and done. A deleted key has no entry; absent is what its home says of it. */
static void update_plain(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool gone = (s->event->vflags & KEY_TOMBSTONE) != 0;
    bool nothing = gone && meta->state == GALENE_NONE;
    meta->ts = nothing ? meta->ts : next_ts(s, 1); /* there is no entry that could have one */
    galene_slot_open(s->spare, GALENE_FLOW_PLAIN, s, 0);
    effects_add(s->fx, EFF_ISSUE);
    tell(s, s->spare->ref, FLOW_CODE_DONE);
    if (nothing) {
        return;
    }
    if (gone) {
        effects_add(s->fx, EFF_FORGET);
        return;
    }
    effects_add(s->fx, EFF_APPLY);
    if (meta->state == GALENE_NONE || meta->state == GALENE_LOST) {
        galene_set_state(s, GALENE_HOME);
    }
}

static void send_inv(struct key_step *s, const struct slot *slot)
{
    nodeset others = galene_others(s->event);
    if (others != 0) {
        struct effect *e = galene_bcast(s, others, GALENE_INV);
        e->ts = slot->ts;
        e->slot = slot->ref;
        e->gen = slot->gen;
        e->flags = (slot->flags & SLOT_RMW) != 0 ? GALENE_F_RMW : 0;
    }
}

/* 3, K4. In Lost this heals the key: the value does not depend on the one that is gone. */
static void issue_write(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    nodeset others = galene_others(s->event);
    meta->ts = next_ts(s, s->event->rmw && rule(s, GALENE_RULE_RMW_STEP) ? 1 : 2);
    meta->flags &= (uint8_t) ~(KEY_RMW | KEY_ASKING);
    galene_slot_open(s->spare, GALENE_FLOW_WRITE, s, others);
    if (others == 0) {
        effects_add(s->fx, EFF_ISSUE);
        effects_add(s->fx, EFF_APPLY);
        tell(s, s->spare->ref, FLOW_CODE_DONE);
        galene_set_state(s, GALENE_VALID);
        return;
    }
    meta->owner = s->spare->ref;
    if (s->event->rmw) {
        meta->flags |= KEY_RMW;
        s->spare->flags = SLOT_RMW;
    }
    effects_add(s->fx, EFF_HOLD);
    galene_set_state(s, GALENE_WRITE);
    send_inv(s, s->spare);
}

static bool given_up(const struct key_step *s)
{
    return s->event->home.state == HOME_EMPTYING;
}

/* A key without an entry, somewhere where it is not absent. */
static void missing(struct key_step *s)
{
    if (s->event->home.state == HOME_LOST || given_up(s)) {
        effects_add(s->fx, EFF_LOST);
    }
}

static void update(struct key_step *s)
{
    const struct event *event = s->event;
    bool alone = event->home.home == s->self && event->home.state == HOME_STABLE;
    bool computed = !event->rmw || (s->meta->flags & KEY_READABLE) != 0;
    bool free = s->meta->owner == 0 && !galene_leaving(s);
    if (given_up(s)) {
        effects_add(s->fx, EFF_LOST);
        return;
    }
    switch ((enum galene_state)s->meta->state) {
    case GALENE_NONE:
        /* While the slot moves, what is not here is the new home's. */
        if (alone || event->handed) {
            update_plain(s);
        } else {
            missing(s);
        }
        break;
    case GALENE_HOME:
        update_plain(s);
        break;
    case GALENE_LOST:
        if (!computed) {
            effects_add(s->fx, EFF_LOST);
        } else if (!galene_cached(s->meta)) {
            update_plain(s);
        } else if (free) {
            issue_write(s);
        } else {
            park(s);
        }
        break;
    case GALENE_VALID:
        if (free && computed) {
            issue_write(s);
        } else {
            park(s);
        }
        break;
    case GALENE_ENTERING:
    case GALENE_INVALID:
    case GALENE_WRITE:
    case GALENE_DROPPING:
    case GALENE_MOVING:
        park(s);
        break;
    case GALENE_STATES:
        HK_ASSERT(false);
    }
}

static void read(struct key_step *s)
{
    if (s->meta->state == GALENE_NONE) {
        missing(s);
    } else if (s->meta->state == GALENE_LOST || given_up(s)) {
        effects_add(s->fx, EFF_LOST);
    } else {
        park(s);
    }
}

/* ---- The coordinator of a write ---- */

/* 7 and 8. */
static void write_complete(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool won = meta->state == GALENE_WRITE && meta->ts == s->mine->ts;
    bool rmw = (meta->flags & KEY_RMW) != 0;
    if (!galene_complete(s->mine, s->event)) {
        return;
    }
    if (won || !rule(s, GALENE_RULE_OVERTAKEN)) {
        nodeset others = galene_others(s->event);
        meta->ts = s->mine->ts;
        effects_add(s->fx, EFF_APPLY);
        galene_end(s, FLOW_CODE_DONE);
        galene_set_state(s, GALENE_VALID);
        if (others != 0) {
            struct effect *e = galene_bcast(s, others, GALENE_UPD);
            e->ts = meta->ts;
            e->with = EFF_PAYLOAD;
        }
        return;
    }
    if (!rule(s, GALENE_RULE_LOSER_DONE)) {
        return;
    }
    galene_end(s, rmw ? FLOW_CODE_LOST : FLOW_CODE_DONE);
    if (meta->state == GALENE_VALID) {
        galene_wake(s); /* updates wait for the end of this one */
    }
}

/* 9: what beats it becomes known here by an answer, not by its INV. An RMW never takes effect then.
 * A write is the loser, unless what beats it is a dead member's, which nobody will complete: it
 * goes above it. */
static void write_refused(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    uint64_t known = galene_aux_get(s->mine).known;
    bool rmw = (meta->flags & KEY_RMW) != 0;
    if (meta->state == GALENE_WRITE && known > meta->ts && !rmw && galene_is_dead(s, known)) {
        meta->ts = known;
        meta->ts = next_ts(s, 2);
        s->mine->ts = meta->ts;
        s->mine->acked = 0;
        send_inv(s, s->mine);
        return;
    }
    if (known > meta->ts) {
        meta->ts = known;
        galene_set_state(s, GALENE_INVALID);
    } else if (rmw && meta->state == GALENE_WRITE) {
        galene_set_state(s, GALENE_INVALID); /* no correct member says so */
    }
    if (rmw) {
        galene_end(s, FLOW_CODE_LOST);
        if (meta->state == GALENE_VALID) {
            galene_wake(s);
        }
    }
}

static void write_flow(struct key_step *s)
{
    if (s->meta->owner != s->mine->ref) {
        return; /* its end is on the way */
    }
    if (s->event->code == KEY_CODE_COMPLETE) {
        write_complete(s);
    } else if (s->event->code == KEY_CODE_HIGHER) {
        write_refused(s);
    }
}

/* ---- Followers ---- */

/* 4 to 6. */
static void take_inv(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    const struct msg *m = s->event->msg;
    bool same =
        galene_same_stay(s) || (galene_cached(meta) && !rule(s, GALENE_RULE_INV_GENERATION));
    bool rmw = (m->flags & GALENE_F_RMW) != 0;
    bool higher = m->ts > meta->ts || !rule(s, GALENE_RULE_HIGHER);
    struct effect *e;
    if (same && !higher && !rule(s, GALENE_RULE_ACK_ALWAYS)) {
        return;
    }
    if (same && higher) {
        meta->ts = m->ts;
        galene_set_state(s, GALENE_INVALID);
    } else if (same && m->ts < meta->ts && rule(s, rmw ? GALENE_RULE_NACK : GALENE_RULE_NAMED)) {
        e = galene_answer(s, GALENE_ACK);
        e->flags = GALENE_F_HIGHER;
        e->ts = meta->ts;
        return;
    }
    e = galene_answer(s, GALENE_ACK);
    e->ts = m->ts;
}

/* 10. */
static void take_upd(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    const struct msg *m = s->event->msg;
    bool same =
        galene_same_stay(s) || (galene_cached(meta) && !rule(s, GALENE_RULE_UPD_GENERATION));
    bool at_ts = m->ts == meta->ts || !rule(s, GALENE_RULE_UPD_TS);
    if (!same || !at_ts || (meta->state != GALENE_INVALID && meta->state != GALENE_LOST)) {
        galene_drop(s->fx, ENGINE_DROP_STALE);
        return;
    }
    effects_add(s->fx, EFF_APPLY);
    galene_set_state(s, GALENE_VALID);
}

static void message(struct key_step *s)
{
    if (!galene_admitted(s->event, s->fx)) {
        return;
    }
    switch ((enum galene_kind)s->event->msg->kind) {
    case GALENE_INV:
        take_inv(s);
        break;
    case GALENE_UPD:
        take_upd(s);
        break;
    case GALENE_ENTER:
    case GALENE_LEAVE:
    case GALENE_DROP:
    case GALENE_ITEM:
    case GALENE_QUERY:
        galene_stay_message(s);
        break;
    case GALENE_ACK:
    case GALENE_REPORT:
    case GALENE_NOPE:
    case GALENE_KEY_END:
        HK_ASSERT(false && "goes to a flow");
    }
}

/* ---- Time ---- */

/* A parked operation has waited long. */
static void waited(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool settled = meta->state == GALENE_VALID || meta->state == GALENE_LOST;
    if (settled && meta->owner == 0 && (meta->flags & KEY_KEEPER) != 0) {
        meta->flags &= (uint8_t)~KEY_LEAVING; /* who wanted it to leave did not come again */
    }
    bool leaving = settled && galene_leaving(s);
    bool busy = meta->state == GALENE_VALID && (meta->owner != 0 || leaving);
    if (leaving && meta->owner == 0) {
        galene_ask_home(s); /* L7 */
    }
    if (meta->state == GALENE_INVALID) {
        galene_rescue(s);
    } else if (meta->state == GALENE_NONE || meta->state == GALENE_HOME ||
               meta->state == GALENE_LOST || (meta->state == GALENE_VALID && !busy)) {
        meta->flags &= (uint8_t)~KEY_WAITERS;
        effects_add(s->fx, EFF_WAKE);
    }
}

static void sweep(struct key_step *s)
{
    if (s->meta->state == GALENE_INVALID ||
        (s->meta->state == GALENE_LOST && galene_cached(s->meta))) {
        galene_rescue(s);
    }
}

void galene_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
                const struct event *event, struct effects *fx)
{
    (void)ext;
    struct key_step s = {.meta = meta,
                         .mine = mine,
                         .spare = spare,
                         .event = event,
                         .view = event->view,
                         .config = event->config,
                         .fx = fx,
                         .self = event->self};
    switch (event->kind) {
    case EV_READ:
        read(&s);
        break;
    case EV_UPDATE:
        update(&s);
        break;
    case EV_MSG:
        message(&s);
        break;
    case EV_TIMER:
        waited(&s);
        break;
    case EV_FLOW:
        if (mine->kind == GALENE_FLOW_WRITE) {
            write_flow(&s);
        } else {
            galene_stay_flow(&s);
        }
        break;
    case EV_SWEEP:
        sweep(&s);
        break;
    case EV_HOT:
        galene_hot(&s);
        break;
    case EV_MOVE:
        galene_move(&s);
        break;
    case EV_VIEW:
    case EV_KEY:
    case EV_FLUSH:
    case EV_SLOTS:
        HK_ASSERT(false && "an event of flows");
    }
}
