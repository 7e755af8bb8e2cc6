/* The key machine of CRAQ ([H] 4.1; docs/protocols/craq.md has the rules and the table). One value
 * a key is stored, the newest: clean if it is known to be committed, dirty while it is on its way.
 *
 * I1  A clean value was stored, or was below what was stored, at every member of the chain.
 * I2  What commits later has a higher timestamp than any clean value, at every member.
 * I3  Timestamps are given by one head an epoch, above everything that it stores. */
#include "engine/craq/machine.h"

struct key_step {
    struct key_meta *meta;
    struct slot *spare;
    const struct event *event;
    const struct view *view;
    const struct craq_config *config;
    struct effects *fx;
    uint8_t self;
};

static bool rule(const struct key_step *s, enum craq_rule which)
{
    return craq_rule_on(s->config, which);
}

/* ---- Where this node stands ---- */

static bool is_head(const struct key_step *s)
{
    return craq_head(s->view) == s->self;
}

static bool is_last(const struct key_step *s)
{
    uint8_t last = rule(s, CRAQ_RULE_END) ? craq_last(s->view) : craq_read_tail(s->view);
    return last == s->self;
}

/* ---- State ---- */

static void set_clean(struct key_step *s)
{
    struct key_meta *meta = s->meta;
    bool waiters = (meta->flags & KEY_WAITERS) != 0;
    meta->state = CRAQ_CLEAN;
    meta->flags = (uint8_t)((meta->flags & ~(KEY_SEEN | KEY_WAITERS)) | KEY_READABLE);
    if (waiters) {
        effects_add(s->fx, EFF_WAKE);
    }
}

static void set_dirty(struct key_step *s, uint32_t epoch)
{
    struct key_meta *meta = s->meta;
    meta->state = CRAQ_DIRTY;
    meta->flags &= (uint8_t)~KEY_SEEN;
    if (rule(s, CRAQ_RULE_READ_CLEAN)) {
        meta->flags &= (uint8_t)~KEY_READABLE;
    }
    meta->aux = (uint16_t)epoch;
}

static void store(struct key_step *s, uint64_t ts)
{
    s->meta->ts = ts;
    effects_add(s->fx, EFF_APPLY);
}

/* Dirty, and what was sent for it was sent in an older epoch (of which 16 bits are known). */
static bool is_stale(const struct key_step *s)
{
    int16_t older = (int16_t)(uint16_t)(s->view->epoch - s->meta->aux);
    return s->meta->state == CRAQ_DIRTY && older > 0;
}

/* Another worker of this node is in a newer epoch, and has stored a value of it: this worker has
 * nothing to say about the key any more. */
static bool is_late(const struct key_step *s)
{
    return craq_ts_epoch(s->meta->ts) > s->view->epoch;
}

static void park(struct key_step *s)
{
    if ((s->meta->flags & KEY_READABLE) == 0) {
        s->meta->flags |= KEY_WAITERS;
    }
    effects_add(s->fx, EFF_PARK);
}

/* ---- Messages out ---- */

/* Whose update a WRITE or an ACK is about; slot 0: nobody waits for it. */
struct origin {
    uint8_t node;
    uint32_t slot;
    uint32_t gen;
};

static const struct origin nobody = {0, 0, 0};

static struct effect *send(struct key_step *s, uint8_t to, enum craq_kind kind)
{
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->to = to;
    e->code = (uint8_t)kind;
    return e;
}

static void set_origin(struct effect *e, const struct origin *o)
{
    e->slot = o->slot;
    e->gen = o->gen;
    e->set = o->node;
}

static void send_write(struct key_step *s, uint64_t ts, const struct origin *o, uint8_t with)
{
    struct effect *e = send(s, craq_next(s->view, s->self), CRAQ_WRITE);
    e->with = with;
    e->ts = ts;
    set_origin(e, o);
}

static void send_ack_up(struct key_step *s, uint64_t ts, const struct origin *o)
{
    uint8_t previous = craq_previous(s->view, s->self);
    if (previous != NODE_NONE) {
        struct effect *e = send(s, previous, CRAQ_ACK);
        e->ts = ts;
        set_origin(e, o);
    }
}

static void tell_origin(struct key_step *s, uint64_t ts, const struct origin *o)
{
    if (o->slot != 0 && o->node == s->self) {
        struct effect *e = effects_add(s->fx, EFF_FLOW);
        e->code = CRAQ_CODE_DONE;
        e->slot = o->slot;
        e->gen = o->gen;
        e->ts = ts;
    }
}

/* The end of the chain has the update: it is committed. */
static void commit(struct key_step *s, uint64_t ts, const struct origin *o)
{
    if (s->meta->ts == ts) {
        set_clean(s);
    }
    send_ack_up(s, ts, o);
    tell_origin(s, ts, o);
}

/* ---- The head ---- */

/* Rule 8: the timestamp of the next update; 0: this worker may give none. */
static uint64_t next_ts(const struct key_step *s)
{
    uint32_t epoch = s->view->epoch;
    uint64_t ts = s->meta->ts;
    if (!rule(s, CRAQ_RULE_TS_EPOCH) && ts != 0) {
        return ts + 1;
    }
    if (is_late(s)) {
        return rule(s, CRAQ_RULE_LATE_HEAD) ? 0 : craq_ts(epoch, 1); /* rule 9 */
    }
    if (epoch > CRAQ_EPOCH_MAX || ts == craq_ts(epoch, CRAQ_NUMBER_MAX)) {
        return 0;
    }
    return craq_ts_epoch(ts) == epoch ? ts + 1 : craq_ts(epoch, 1);
}

/* Orders the event's payload. */
static void take_up(struct key_step *s, uint64_t ts, const struct origin *o)
{
    store(s, ts);
    if (is_last(s)) {
        commit(s, ts, o);
    } else {
        set_dirty(s, s->view->epoch);
        send_write(s, ts, o, EFF_PAYLOAD);
    }
}

/* The head sends what it stores through the chain, once more. */
static void send_again(struct key_step *s)
{
    if (is_last(s)) {
        commit(s, s->meta->ts, &nobody); /* the chain is this node */
        return;
    }
    if (s->meta->state == CRAQ_DIRTY) {
        set_dirty(s, s->view->epoch);
    }
    send_write(s, s->meta->ts, &nobody, EFF_VALUE);
}

/* Rule 4: what an older epoch left dirty is the head's to order again. */
static void repair(struct key_step *s, bool again)
{
    if (!rule(s, CRAQ_RULE_REPAIR)) {
        return;
    }
    if (!rule(s, CRAQ_RULE_NOT_DECLARED) && is_last(s)) {
        commit(s, s->meta->ts, &nobody);
    } else if (is_head(s)) {
        send_again(s);
    } else {
        struct effect *e = send(s, craq_head(s->view), CRAQ_REPAIR);
        e->with = EFF_VALUE;
        e->ts = s->meta->ts;
        e->flags = again ? CRAQ_F_AGAIN : 0;
        set_dirty(s, s->view->epoch);
    }
}

/* ---- Clients ---- */

static void open_slot(struct key_step *s, enum craq_flow kind)
{
    s->spare->kind = (uint8_t)kind;
    s->spare->ts = 0;
    s->spare->epoch = s->view->epoch;
    s->spare->deadline_us = s->event->now_us + s->config->give_up_us;
}

static void read_dirty(struct key_step *s)
{
    bool ask = craq_shadows(s->view) == 0 && craq_read_tail(s->view) != s->self;
    if (is_stale(s)) {
        repair(s, false);
    } else if (ask && s->spare != NULL && s->meta->state == CRAQ_DIRTY) {
        open_slot(s, CRAQ_FLOW_ASK);
        effects_add(s->fx, EFF_ASK);
        struct effect *e = send(s, craq_read_tail(s->view), CRAQ_QUERY);
        e->slot = s->spare->ref;
        e->gen = s->spare->gen;
        return;
    }
    park(s);
}

static void update(struct key_step *s)
{
    const struct event *event = s->event;
    if (event->rmw && (s->meta->flags & KEY_READABLE) == 0) {
        if (is_stale(s)) {
            repair(s, false);
        }
        park(s);
        return;
    }
    struct origin o = {.node = s->self, .slot = s->spare->ref, .gen = s->spare->gen};
    if (is_head(s)) {
        uint64_t ts = next_ts(s);
        if (ts != 0) {
            open_slot(s, CRAQ_FLOW_UPDATE);
            effects_add(s->fx, EFF_ISSUE);
            take_up(s, ts, &o);
        }
        return; /* without a timestamp: the node tries again soon */
    }
    if (is_late(s)) {
        return;
    }
    open_slot(s, CRAQ_FLOW_UPDATE);
    effects_add(s->fx, EFF_ISSUE);
    struct effect *e = send(s, craq_head(s->view), CRAQ_FORWARD);
    e->with = EFF_PAYLOAD;
    e->slot = o.slot;
    e->gen = o.gen;
    if (event->rmw) {
        e->flags = CRAQ_F_RMW;
        e->ts = s->meta->ts;
    }
}

/* A parked operation has waited long. */
static void waited(struct key_step *s)
{
    if (is_stale(s)) {
        repair(s, false);
    } else if (s->meta->state == CRAQ_CLEAN) {
        effects_add(s->fx, EFF_WAKE);
    }
}

/* Rule 13: what two passes of the sweep meet dirty, and nothing has been heard of in between, was
 * lost for want of memory. */
static void sweep(struct key_step *s)
{
    if (s->meta->state == CRAQ_CLEAN || is_late(s)) {
        return;
    }
    if (is_stale(s)) {
        repair(s, false);
    } else if ((s->meta->flags & KEY_SEEN) == 0) {
        s->meta->flags |= KEY_SEEN;
    } else if (rule(s, CRAQ_RULE_AGAIN)) {
        repair(s, true);
    }
}

/* ---- Messages in ---- */

static void forward(struct key_step *s)
{
    const struct msg *m = s->event->msg;
    if (!is_head(s)) {
        craq_drop(s->fx, ENGINE_DROP_SENDER);
        return;
    }
    bool rmw = (m->flags & CRAQ_F_RMW) != 0 && rule(s, CRAQ_RULE_CONDITION);
    uint64_t ts = rmw && m->ts != s->meta->ts ? 0 : next_ts(s);
    struct origin o = {.node = s->event->from, .slot = m->slot, .gen = m->gen};
    if (ts != 0) {
        take_up(s, ts, &o);
        return;
    }
    struct effect *e = send(s, o.node, CRAQ_LOST);
    e->with = EFF_NO_KEY;
    e->slot = o.slot;
    e->gen = o.gen;
}

static void write(struct key_step *s)
{
    const struct msg *m = s->event->msg;
    struct origin o = {.node = (uint8_t)m->arg, .slot = m->slot, .gen = m->gen};
    if (s->event->from != craq_previous(s->view, s->self)) {
        craq_drop(s->fx, ENGINE_DROP_SENDER);
        return;
    }
    if (is_late(s) && rule(s, CRAQ_RULE_LATE_WRITE)) {
        craq_drop(s->fx, ENGINE_DROP_STALE);
        return;
    }
    if (m->ts > s->meta->ts || !rule(s, CRAQ_RULE_HIGHER)) {
        store(s, m->ts);
        if (!is_last(s)) {
            set_dirty(s, s->view->epoch);
        }
    } else if (m->ts == s->meta->ts && s->meta->state == CRAQ_DIRTY) {
        set_dirty(s, s->view->epoch);
    }
    if (is_last(s)) {
        commit(s, m->ts, &o);
    }
    if (craq_last(s->view) != s->self) {
        send_write(s, m->ts, &o, EFF_PAYLOAD);
    }
}

static void ack(struct key_step *s)
{
    const struct msg *m = s->event->msg;
    struct origin o = {.node = (uint8_t)m->arg, .slot = m->slot, .gen = m->gen};
    bool hop = (m->flags & CRAQ_F_HOP) != 0;
    uint8_t from = craq_last(s->view) == s->self ? NODE_NONE : craq_next(s->view, s->self);
    from = hop ? craq_head(s->view) : from;
    if (s->event->from != from && rule(s, CRAQ_RULE_END)) {
        craq_drop(s->fx, ENGINE_DROP_SENDER);
        return;
    }
    if (m->ts > s->meta->ts) {
        craq_drop(s->fx, ENGINE_DROP_STALE);
        return;
    }
    bool same = m->ts == s->meta->ts || !rule(s, CRAQ_RULE_ACK_TS);
    if (same && s->meta->state == CRAQ_DIRTY) {
        set_clean(s);
    }
    if (!hop) {
        send_ack_up(s, m->ts, &o);
    }
    tell_origin(s, m->ts, &o);
}

static void query(struct key_step *s)
{
    const struct msg *m = s->event->msg;
    struct effect *e = send(s, s->event->from, CRAQ_ANSWER);
    e->with = EFF_NO_KEY;
    e->slot = m->slot;
    e->gen = m->gen;
    bool dirty = s->meta->state == CRAQ_DIRTY && rule(s, CRAQ_RULE_QUERY_CLEAN);
    if (dirty || is_late(s)) {
        e->flags = CRAQ_F_BUSY;
        if (is_stale(s)) {
            repair(s, false);
        }
    } else if (s->meta->ts != 0) {
        e->with |= EFF_VALUE;
        e->ts = s->meta->ts;
    }
}

static void take_repair(struct key_step *s)
{
    const struct msg *m = s->event->msg;
    if (!is_head(s)) {
        craq_drop(s->fx, ENGINE_DROP_SENDER);
    } else if (!rule(s, CRAQ_RULE_REPAIR_TS) && m->ts != s->meta->ts) {
        take_up(s, next_ts(s), &nobody);
    } else if (m->ts > s->meta->ts) {
        take_up(s, m->ts, &nobody);
    } else if (m->ts == s->meta->ts && s->meta->state == CRAQ_CLEAN) {
        struct effect *e = send(s, s->event->from, CRAQ_ACK);
        e->flags = CRAQ_F_HOP;
        e->ts = m->ts;
    } else if (is_stale(s) || ((m->flags & CRAQ_F_AGAIN) != 0 && !is_late(s))) {
        send_again(s);
    }
}

static void item(struct key_step *s)
{
    const struct msg *m = s->event->msg;
    bool clean = (m->flags & CRAQ_F_CLEAN) != 0 || !rule(s, CRAQ_RULE_CHUNK_STATE);
    if (m->ts > s->meta->ts || !rule(s, CRAQ_RULE_CHUNK_HIGHER)) {
        store(s, m->ts);
        if (clean) {
            set_clean(s);
        } else {
            /* Whether a WRITE of this epoch follows nobody can tell: it counts as left over. */
            set_dirty(s, s->view->epoch - 1);
        }
    } else if (m->ts == s->meta->ts && clean && s->meta->state == CRAQ_DIRTY) {
        set_clean(s);
    }
}

static void message(struct key_step *s)
{
    if (!craq_admitted(s->event, s->fx)) {
        return;
    }
    switch ((enum craq_kind)s->event->msg->kind) {
    case CRAQ_FORWARD:
        forward(s);
        break;
    case CRAQ_WRITE:
        write(s);
        break;
    case CRAQ_ACK:
        ack(s);
        break;
    case CRAQ_QUERY:
        query(s);
        break;
    case CRAQ_REPAIR:
        take_repair(s);
        break;
    case CRAQ_ITEM:
        item(s);
        break;
    case CRAQ_LOST:
    case CRAQ_ANSWER:
    case CRAQ_KIND_END:
        HK_ASSERT(false && "goes to a flow");
    }
}

void craq_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
              const struct event *event, struct effects *fx)
{
    (void)ext;
    (void)mine;
    struct key_step s = {.meta = meta,
                         .spare = spare,
                         .event = event,
                         .view = event->view,
                         .config = event->config,
                         .fx = fx,
                         .self = event->self};
    switch (event->kind) {
    case EV_READ:
        read_dirty(&s);
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
    case EV_SWEEP:
        sweep(&s);
        break;
    case EV_VIEW:
    case EV_FLOW:
    case EV_KEY:
    case EV_FLUSH:
    case EV_HOT:
    case EV_MOVE:
    case EV_SLOTS:
        break;
    }
}
