/* Galene, the key machine: how a key enters the hot set and leaves it, moves to another home, and
 * is rescued when the node that would have made it Valid is gone. The tables E, L, V and D of
 * docs/protocols/galene.md. */
#include "engine/galene/machine.h"

static bool rule(const struct key_step *s, enum galene_rule which)
{
    return galene_rule_on(s->config, which);
}

/* Opens the spare slot as what owner names. */
static void begin(struct key_step *s, enum galene_flow kind, nodeset want)
{
    galene_slot_open(s->spare, kind, s, want);
    s->meta->owner = s->spare->ref;
}

static struct effect *bcast_for(struct key_step *s, const struct slot *slot, nodeset set,
                                enum galene_kind kind)
{
    struct effect *e = galene_bcast(s, set, kind);
    e->slot = slot->ref;
    e->gen = slot->gen;
    return e;
}

/* L7: the home that wanted it to leave is gone. (A slot is lost as well when the node dies that it
 * was moving to; then its home still says what becomes of the key.) */
bool galene_leaving(struct key_step *s)
{
    const struct slot_home *home = &s->event->home;
    if (home->state == HOME_LOST && !nodeset_has(s->view->live, home->home)) {
        s->meta->flags &= (uint8_t)~KEY_LEAVING;
    }
    return (s->meta->flags & KEY_LEAVING) != 0 && rule(s, GALENE_RULE_LEAVING);
}

/* Of the hot set's epoch that the event is about; never 0, which is no generation. */
static uint16_t generation_of(const struct event *event)
{
    return (uint16_t)(event->ts % UINT16_MAX + 1);
}

/* ---- Entering, at the home ---- */

/* E4. */
static void entered(struct key_step *s)
{
    nodeset others = galene_others(s->event);
    galene_set_state(s, GALENE_VALID);
    if (others != 0) {
        struct effect *e = galene_bcast(s, others, GALENE_UPD);
        e->ts = s->meta->ts;
        e->with = EFF_VALUE;
    }
}

/* E1. */
static void enter(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    nodeset others = galene_others(s->event);
    meta->aux = generation_of(s->event);
    meta->flags |= KEY_KEEPER;
    if (others == 0) {
        galene_set_state(s, GALENE_VALID);
        return;
    }
    begin(s, GALENE_FLOW_ENTER, others);
    galene_set_state(s, GALENE_ENTERING);
    bcast_for(s, s->spare, others, GALENE_ENTER)->ts = meta->ts;
    if (!rule(s, GALENE_RULE_ENTER_ALL)) {
        galene_end(s, FLOW_CODE_GONE);
        entered(s);
    }
}

/* ---- Leaving, at the home ---- */

/* L6. What is lost stays so, at the home alone. */
static void left(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    if ((meta->flags & KEY_TOMBSTONE) != 0 && meta->state != GALENE_LOST) {
        galene_forget(s, FLOW_CODE_GONE);
        return;
    }
    galene_end(s, FLOW_CODE_GONE);
    meta->aux = 0;
    meta->flags &= (uint8_t) ~(KEY_LEAVING | KEY_ASKING | KEY_KEEPER);
    if (meta->state != GALENE_LOST) {
        galene_set_state(s, GALENE_HOME);
    } else {
        galene_wake(s);
    }
}

/* L1; in a slot that is the spare one, or was another flow's. */
static void leave(struct key_step *s, struct slot *slot)
{
    struct key_meta *meta = s->meta;
    nodeset others = galene_others(s->event);
    if (others == 0) {
        left(s);
        return;
    }
    galene_slot_open(slot, GALENE_FLOW_LEAVE, s, others);
    meta->owner = slot->ref;
    slot->ts = 0;
    slot->deadline_us = s->event->now_us + s->config->retry_us + 1;
    meta->flags |= KEY_LEAVING;
    bcast_for(s, slot, others, GALENE_LEAVE);
}

/* L4: all have reported. */
static void reported(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool newest = meta->state == GALENE_VALID && meta->ts >= s->mine->ts;
    bool lost = meta->state == GALENE_LOST && meta->ts > s->mine->ts;
    if (!newest && !lost && rule(s, GALENE_RULE_REPORTED)) {
        return; /* the flow looks again */
    }
    struct galene_aux aux = galene_aux_get(s->mine);
    aux.want &= galene_others(s->event);
    galene_aux_set(s->mine, aux);
    s->mine->state = LEAVE_DROPS;
    s->mine->acked = 0;
    s->mine->deadline_us = 0;
    if (!lost) {
        galene_set_state(s, GALENE_DROPPING);
    }
    if (aux.want != 0) {
        bcast_for(s, s->mine, aux.want, GALENE_DROP);
    }
    if (aux.want == 0 || !rule(s, GALENE_RULE_DROPPED_ALL)) {
        left(s);
    }
}

/* ---- EV_HOT ---- */

static void later(struct key_step *s)
{
    effects_add(s->fx, EFF_LATER);
}

/* Valid or Lost. Only who let it enter may let it leave: the map of a node that was the home may be
 * old, and the new home have let it enter meanwhile. */
static void leave_cached(struct key_step *s)
{
    if ((s->meta->flags & KEY_KEEPER) == 0 && rule(s, GALENE_RULE_KEEPER)) {
        return;
    }
    if (s->meta->owner == 0) {
        leave(s, s->spare);
    } else {
        s->meta->flags |= KEY_LEAVING; /* no own write gets ahead of the next try */
        later(s);
    }
}

/* E5: a cached key of an older generation: some member may lack its entry. It leaves; when the
 * event comes again it enters. */
static void hot_enter(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    switch ((enum galene_state)meta->state) {
    case GALENE_HOME:
        enter(s);
        break;
    case GALENE_VALID:
    case GALENE_INVALID:
    case GALENE_WRITE:
        if (meta->aux == generation_of(s->event)) {
            meta->flags &= (uint8_t)~KEY_LEAVING;
            break;
        }
        if (meta->state != GALENE_VALID) {
            later(s);
        } else if (rule(s, GALENE_RULE_REENTER) || meta->owner != 0) {
            leave_cached(s);
        } else {
            begin(s, GALENE_FLOW_ENTER, galene_others(s->event));
            bcast_for(s, s->spare, galene_others(s->event), GALENE_ENTER)->ts = meta->ts;
        }
        break;
    case GALENE_ENTERING:
    case GALENE_DROPPING:
    case GALENE_MOVING:
        later(s);
        break;
    case GALENE_NONE:
    case GALENE_LOST:
    case GALENE_STATES:
        break;
    }
}

static void hot_leave(struct key_step *s)
{
    switch ((enum galene_state)s->meta->state) {
    case GALENE_VALID:
    case GALENE_LOST:
        if (galene_cached(s->meta)) {
            leave_cached(s);
        }
        break;
    case GALENE_INVALID:
    case GALENE_WRITE:
    case GALENE_ENTERING:
    case GALENE_DROPPING:
    case GALENE_MOVING:
        later(s);
        break;
    case GALENE_NONE:
    case GALENE_HOME:
    case GALENE_STATES:
        break;
    }
}

void galene_hot(struct key_step *s)
{
    const struct slot_home *home = &s->event->home;
    if (home->home != s->self || home->state == HOME_LOST || home->state == HOME_EMPTYING) {
        return;
    }
    if (home->state != HOME_STABLE) {
        later(s); /* M6 */
    } else if (s->event->code == HOT_ENTER) {
        hot_enter(s);
    } else {
        hot_leave(s);
    }
}

/* ---- EV_MOVE ---- */

/* V1. */
static void move_plain(struct key_step *s, uint8_t to)
{
    begin(s, GALENE_FLOW_MOVE, nodeset_of(to));
    struct effect *e = galene_send(s, to, GALENE_ITEM);
    e->ts = s->meta->ts;
    e->slot = s->spare->ref;
    e->gen = s->spare->gen;
    if (s->meta->state == GALENE_LOST) {
        e->flags = GALENE_F_LOST;
    } else {
        e->with = EFF_VALUE;
    }
    if (rule(s, GALENE_RULE_MOVE_STALL)) {
        galene_set_state(s, GALENE_MOVING);
    }
}

/* V8. What would make or take an entry somewhere after it was emptied there ends first. */
static void empty(struct key_step *s)
{
    if (s->meta->state == GALENE_ENTERING || s->meta->state == GALENE_MOVING) {
        later(s);
    } else if (s->meta->state != GALENE_NONE) {
        galene_forget(s, FLOW_CODE_LOST);
    }
}

void galene_move(struct key_step *s)
{
    const struct slot_home *home = &s->event->home;
    if (home->state == HOME_EMPTYING) {
        empty(s);
        return;
    }
    if (home->state != HOME_MOVING || home->home != s->self) {
        return;
    }
    if (!nodeset_has(galene_others(s->event), home->to)) {
        later(s); /* this worker does not know it yet, or any more */
        return;
    }
    switch ((enum galene_state)s->meta->state) {
    case GALENE_HOME:
        move_plain(s, home->to);
        break;
    case GALENE_VALID:
        leave_cached(s); /* V4 */
        break;
    case GALENE_LOST:
        if (galene_cached(s->meta)) {
            leave_cached(s);
        } else {
            move_plain(s, home->to);
        }
        break;
    case GALENE_INVALID:
    case GALENE_WRITE:
    case GALENE_ENTERING:
    case GALENE_DROPPING:
    case GALENE_MOVING:
        later(s);
        break;
    case GALENE_NONE:
    case GALENE_STATES:
        break;
    }
}

/* ---- Orphans ---- */

/* A c_id that was not handed out yet belongs to a member of a view that another worker of this node
 * knows already. */
bool galene_is_dead(const struct key_step *s, uint64_t ts)
{
    uint32_t cid = stamp_cid(ts);
    return cid < s->view->next_cid && view_cid_owner(s->view, cid) == NODE_NONE;
}

bool galene_orphaned(const struct key_step *s)
{
    return s->meta->state == GALENE_INVALID &&
           (galene_is_dead(s, s->meta->ts) || s->event->home.state == HOME_LOST);
}

void galene_rescue(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    nodeset others = galene_others(s->event);
    if (!rule(s, GALENE_RULE_RESCUE) || (meta->flags & KEY_ASKING) != 0) {
        return;
    }
    if (others == 0) {
        if (galene_orphaned(s)) {
            galene_set_state(s, GALENE_LOST);
        }
        return;
    }
    if (s->spare == NULL || s->spare->kind != GALENE_FLOW_FREE) {
        return;
    }
    meta->flags |= KEY_ASKING;
    galene_slot_open(s->spare, GALENE_FLOW_RESCUE, s, others);
    s->spare->deadline_us = s->event->now_us + s->config->rescue_us + 1;
    bcast_for(s, s->spare, others, GALENE_QUERY)->ts = meta->ts;
}

void galene_ask_home(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    nodeset home = nodeset_of(s->event->home.home) & galene_others(s->event);
    if ((meta->flags & (KEY_ASKING | KEY_KEEPER)) != 0 || home == 0 ||
        s->event->home.state != HOME_LOST || s->spare == NULL ||
        s->spare->kind != GALENE_FLOW_FREE) {
        return;
    }
    meta->flags |= KEY_ASKING;
    galene_slot_open(s->spare, GALENE_FLOW_RESCUE, s, home);
    s->spare->flags = SLOT_HOME;
    s->spare->deadline_us = s->event->now_us + s->config->rescue_us + 1;
    bcast_for(s, s->spare, home, GALENE_QUERY)->ts = meta->ts;
}

static void rescue_flow(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool same = galene_cached(meta) && meta->aux == galene_aux_get(s->mine).generation;
    bool open = same && (meta->state == GALENE_INVALID || meta->state == GALENE_LOST);
    if (same) {
        meta->flags &= (uint8_t)~KEY_ASKING;
    }
    if (same && s->event->code == KEY_CODE_UNWANTED) {
        meta->flags &= (uint8_t)~KEY_LEAVING;
        galene_wake(s);
    } else if (open && s->event->code == KEY_CODE_NEWER && s->mine->ts > meta->ts) {
        meta->ts = s->mine->ts;
        galene_set_state(s, GALENE_INVALID);
    } else if (open && s->event->code == KEY_CODE_COMPLETE && s->mine->ts == meta->ts &&
               galene_orphaned(s)) {
        galene_set_state(s, GALENE_LOST);
    }
    galene_tell_mine(s, FLOW_CODE_GONE);
}

/* ---- What the flows of a home say ---- */

static void move_flow(struct key_step *s)
{
    bool dead = s->event->code == KEY_CODE_ABORT;
    if (dead && !rule(s, GALENE_RULE_MOVE_DEAD)) {
        galene_end(s, FLOW_CODE_GONE);
        galene_set_state(s, GALENE_HOME);
        return;
    }
    /* V3, V7. */
    galene_forget(s, FLOW_CODE_GONE);
}

void galene_stay_flow(struct key_step *s)
{
    enum galene_flow kind = (enum galene_flow)s->mine->kind;
    bool complete = s->event->code == KEY_CODE_COMPLETE && galene_complete(s->mine, s->event);
    if (kind == GALENE_FLOW_RESCUE) {
        rescue_flow(s);
        return;
    }
    if (s->meta->owner != s->mine->ref) {
        return; /* its end is on the way */
    }
    if (kind == GALENE_FLOW_MOVE) {
        move_flow(s);
    } else if (complete && kind == GALENE_FLOW_ENTER) {
        galene_end(s, FLOW_CODE_GONE);
        entered(s);
    } else if (complete && kind == GALENE_FLOW_LEAVE) {
        if (s->mine->state == LEAVE_REPORTS) {
            reported(s);
        } else {
            left(s);
        }
    }
}

/* ---- The others ---- */

/* E2, E3. */
static void take_enter(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    const struct msg *m = s->event->msg;
    if (meta->state != GALENE_NONE && !galene_cached(meta)) {
        galene_drop(s->fx, ENGINE_DROP_STALE);
        return;
    }
    if (!galene_same_stay(s)) {
        galene_end(s, FLOW_CODE_LOST);
        effects_add(s->fx, EFF_APPLY);
        meta->ts = m->ts;
        meta->aux = (uint16_t)m->arg;
        meta->flags &= KEY_WAITERS;
        galene_set_state(s, GALENE_INVALID);
    } else if (m->ts > meta->ts) {
        meta->ts = m->ts;
        galene_set_state(s, GALENE_INVALID);
    }
    galene_answer(s, GALENE_ACK);
}

/* L2, L3. */
static void take_leave(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool idle = meta->owner == 0 && (meta->state == GALENE_VALID || meta->state == GALENE_LOST);
    if (!galene_same_stay(s)) {
        galene_answer(s, GALENE_REPORT);
        return;
    }
    meta->flags |= KEY_LEAVING;
    if (idle || !rule(s, GALENE_RULE_REPORT_IDLE)) {
        struct effect *e = galene_answer(s, GALENE_REPORT);
        e->ts = meta->state == GALENE_VALID ? meta->ts : 0;
    }
}

/* L5. */
static void take_drop(struct key_step *s)
{
    if (galene_same_stay(s)) {
        galene_forget(s, FLOW_CODE_LOST);
    }
    galene_answer(s, GALENE_ACK);
}

/* V2. */
static void take_item(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    if (meta->state == GALENE_NONE) {
        meta->ts = s->event->msg->ts;
        effects_add(s->fx, EFF_APPLY);
        galene_set_state(s,
                         (s->event->msg->flags & GALENE_F_LOST) != 0 ? GALENE_LOST : GALENE_HOME);
    }
    galene_answer(s, GALENE_ACK);
}

/* D3. Who will make the asker Valid anyway says nothing. */
static void take_query(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    const struct msg *m = s->event->msg;
    bool stays =
        galene_cached(meta) || meta->state == GALENE_ENTERING || meta->state == GALENE_DROPPING;
    bool same = stays && meta->aux == m->arg;
    bool at_ts = same && meta->ts == m->ts;
    bool has = meta->state == GALENE_VALID || meta->state == GALENE_DROPPING ||
               !rule(s, GALENE_RULE_RESCUE_VALID);
    if (at_ts && has) {
        struct effect *e = galene_send(s, s->event->from, GALENE_UPD);
        e->ts = meta->ts;
        e->set = meta->aux;
        e->with = EFF_VALUE;
        return;
    }
    if (at_ts && (meta->state == GALENE_WRITE || meta->state == GALENE_ENTERING)) {
        return;
    }
    struct effect *e = galene_answer(s, GALENE_NOPE);
    e->flags = same ? 0 : GALENE_F_ABSENT;
    if (same && meta->ts > m->ts) {
        e->flags = GALENE_F_HIGHER;
        e->ts = meta->ts;
    }
}

void galene_stay_message(struct key_step *s)
{
    switch ((enum galene_kind)s->event->msg->kind) {
    case GALENE_ENTER:
        take_enter(s);
        break;
    case GALENE_LEAVE:
        take_leave(s);
        break;
    case GALENE_DROP:
        take_drop(s);
        break;
    case GALENE_ITEM:
        take_item(s);
        break;
    case GALENE_QUERY:
        take_query(s);
        break;
    case GALENE_INV:
    case GALENE_ACK:
    case GALENE_UPD:
    case GALENE_REPORT:
    case GALENE_NOPE:
    case GALENE_KEY_END:
        HK_ASSERT(false && "not about a stay");
    }
}
