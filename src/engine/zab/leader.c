/* ZAB, the leader: the lowest operational member of the view. It first brings everybody level with
 * the longest log, then orders what is forwarded to it. */
#include "engine/zab/machine.h"

#include <string.h>

#define GROUPS_MAX 6u /* of members that are sent the same, in one step */

static bool self_is(const struct zab_step *s, uint8_t node)
{
    return node == s->event->self;
}

static void note_self(struct zab_step *s)
{
    struct zab_member *me = &s->worker->members[s->event->self];
    me->logged = s->worker->last;
    me->sent = s->worker->last;
    me->taken = s->event->taken;
    me->level = s->worker->level_epoch;
    me->fresh = !s->worker->started;
}

/* ---- A new epoch: nobody proposes before everybody's state is known ---- */

/* Rule 6. A member that was level in epoch E knows all that was committed before; what was
 * committed since was logged by a majority of the members of that time. So if those who are members
 * since E are a majority of the nodes configured then, one of them has it. Fewer are left when
 * members died before what they had was passed on: more failures at once than a majority survives.
 * Then this space stands still rather than forget an acknowledged update, until the operator says,
 * by a new generation, that nobody else is left. */
static bool majority_then(const struct zab_step *s, uint32_t level, nodeset since)
{
    const struct zab_worker *w = s->worker;
    if (w->level_epoch != level) {
        return view_majority(s->view, since);
    }
    /* Whoever committed then had a majority of both sets, so one of either meets it. */
    return nodeset_majority(since, w->level_configured) ||
           (w->level_old != 0 && nodeset_majority(since, w->level_old));
}

static bool witnessed(const struct zab_step *s)
{
    uint32_t level = 1;
    nodeset since = 0;
    for (nodeset rest = s->view->live; rest != 0; rest &= rest - 1) {
        const struct zab_member *m = &s->worker->members[nodeset_first(rest)];
        level = m->level > level ? m->level : level;
    }
    for (nodeset rest = s->view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        since |= s->view->members[node].admitted <= level ? nodeset_of(node) : 0;
    }
    /* Whoever led E and was the leader ever since has logged whatever was committed since. */
    bool led = s->worker->led_epoch != 0 && s->worker->led_epoch == level;
    return level < s->worker->serving_since || majority_then(s, level, since) || led ||
           !zab_rule_on(s->config, ZAB_RULE_WITNESSES);
}

/* The member with the longest log. */
static uint8_t longest(const struct zab_step *s)
{
    uint8_t best = s->event->self;
    for (nodeset rest = s->worker->heard; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (s->worker->members[node].logged > s->worker->members[best].logged) {
            best = node;
        }
    }
    return best;
}

/* Rule 11: what every member that has a log has taken is in every chunk that anybody donates from
 * now on. */
static uint64_t lowest_taken(const struct zab_step *s)
{
    uint64_t lowest = UINT64_MAX;
    for (nodeset rest = s->worker->heard; rest != 0; rest &= rest - 1) {
        const struct zab_member *m = &s->worker->members[nodeset_first(rest)];
        if (!m->fresh) {
            lowest = zab_lower(lowest, m->taken);
        }
    }
    return lowest == UINT64_MAX ? 0 : lowest;
}

static void start_members(struct zab_step *s, nodeset set, uint64_t base)
{
    struct effect *e = effects_add(s->fx, EFF_BCAST);
    e->code = ZAB_START;
    e->with = EFF_NO_KEY;
    e->set = set;
    e->ts = base;
    for (nodeset rest = set; rest != 0; rest &= rest - 1) {
        struct zab_member *m = &s->worker->members[nodeset_first(rest)];
        m->logged = base;
        m->taken = base;
        m->fresh = false;
    }
}

/* Members without a log: those of the first view begin at the beginning, shadows behind what chunks
 * bring. */
static void start_fresh(struct zab_step *s)
{
    nodeset first = 0;
    nodeset shadows = 0;
    for (nodeset rest = s->view->live & s->worker->heard; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (s->worker->members[node].fresh && !self_is(s, node)) {
            bool serves = nodeset_has(s->view->operational, node);
            *(serves ? &first : &shadows) |= nodeset_of(node);
        }
    }
    uint64_t base = zab_rule_on(s->config, ZAB_RULE_BASE) ? lowest_taken(s) : s->worker->last;
    if (first != 0) {
        start_members(s, first, 0);
    }
    if (shadows != 0) {
        start_members(s, shadows, base);
    }
}

/* The leader has all that any member had. */
static void lead(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    w->phase = ZAB_LEAD;
    w->led_epoch = s->view->epoch;
    w->floor = w->last;
    w->proposed = w->last;
    w->synced = 0;
    note_self(s);
    start_fresh(s);
    for (nodeset rest = s->view->live; rest != 0; rest &= rest - 1) {
        struct zab_member *m = &w->members[nodeset_first(rest)];
        m->sent = zab_rule_on(s->config, ZAB_RULE_LEVEL) ? m->logged : w->last;
        /* What somebody has taken is committed. */
        w->commit = zab_higher(w->commit, zab_lower(m->taken, w->last));
    }
    zab_level(s, w->floor);
}

static void fetch(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    uint64_t end = w->members[w->fetch_from].logged;
    w->phase = ZAB_FETCHING;
    w->fetch_end = zab_lower(end, w->last + ZAB_WINDOW);
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->code = ZAB_FETCH;
    e->to = w->fetch_from;
    e->with = EFF_NO_KEY;
    e->ts = w->last + 1;
    e->set = w->fetch_end;
}

static void fetch_or_lead(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    bool more = w->members[w->fetch_from].logged > w->last;
    if (more && zab_rule_on(s->config, ZAB_RULE_LONGEST)) {
        fetch(s);
    } else {
        lead(s);
    }
}

/* Rule 4. */
static void try_lead(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    bool all = nodeset_within(s->view->live, w->heard);
    if (!all &&
        (zab_rule_on(s->config, ZAB_RULE_ALL_STATES) || !view_majority(s->view, w->heard))) {
        return;
    }
    note_self(s);
    if (!witnessed(s)) {
        return;
    }
    if (!w->started) {
        zab_start(s, 0); /* an operational member that never was level: of the first view */
    }
    w->fetch_from = longest(s);
    fetch_or_lead(s);
}

void zab_leader_view(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    w->phase = ZAB_GATHER;
    w->heard = nodeset_of(s->event->self);
    memset(w->members, 0, sizeof w->members);
    memset(w->rounds, 0, sizeof w->rounds);
    try_lead(s);
}

static void on_state(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    const struct msg *msg = s->event->msg;
    if (w->phase != ZAB_GATHER || nodeset_has(w->heard, s->event->from)) {
        zab_drop(s->fx, ENGINE_DROP_STALE);
        return;
    }
    w->heard |= nodeset_of(s->event->from);
    w->members[s->event->from] = (struct zab_member){
        .logged = msg->ts,
        .taken = msg->arg,
        .level = msg->gen,
        .fresh = (msg->flags & ZAB_F_FRESH) != 0,
    };
    try_lead(s);
}

/* ---- Leading ---- */

static void refuse(struct zab_step *s, uint8_t flags)
{
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->code = ZAB_REFUSED;
    e->flags = flags;
    e->to = s->event->from;
    e->with = EFF_NO_KEY;
    e->slot = s->event->msg->slot;
    e->gen = s->event->msg->gen;
}

/* Rule 8. Keys that share a place of the table make a condition fail that holds; but the node that
 * tries again has taken more by then, and what it has taken counts. Entries from before this epoch
 * need not be in the table: whoever forwards is ready, so it has taken them. */
static bool condition_holds(const struct zab_step *s)
{
    return s->worker->newest[s->event->key_hash % ZAB_TABLE] <= s->event->msg->ts ||
           !zab_rule_on(s->config, ZAB_RULE_CONDITION);
}

static void on_forward(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    const struct msg *msg = s->event->msg;
    uint32_t *round = &w->rounds[s->event->from][slot_ref_worker(msg->slot)];
    if (w->phase != ZAB_LEAD) {
        refuse(s, 0); /* nobody who is level takes another for the leader; so nobody forwards yet */
    } else if (msg->arg != *round && zab_rule_on(s->config, ZAB_RULE_ROUND)) {
        refuse(s, 0);
    } else if (s->event->log_bytes >= zab_log_bytes(s->config)) {
        *round += 1;
        refuse(s, ZAB_F_ROUND);
    } else if ((msg->flags & ZAB_F_RMW) != 0 && !condition_holds(s)) {
        refuse(s, 0);
    } else {
        zab_keep(s, w->last + 1, s->event->from);
        w->newest[s->event->key_hash % ZAB_TABLE] = w->last;
    }
}

static void on_ack(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    const struct msg *msg = s->event->msg;
    struct zab_member *m = &w->members[s->event->from];
    if (w->phase != ZAB_LEAD || (zab_rule_on(s->config, ZAB_RULE_ALL_STATES) &&
                                 (msg->ts > m->sent || msg->arg > w->commit))) {
        zab_drop(s->fx, ENGINE_DROP_INVALID);
        return;
    }
    m->logged = zab_higher(m->logged, msg->ts);
    m->taken = zab_higher(m->taken, msg->arg);
}

/* What the longest log has beyond this one. */
static void on_fetched(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    const struct msg *msg = s->event->msg;
    if (w->phase != ZAB_FETCHING || s->event->from != w->fetch_from || msg->ts != w->last + 1) {
        zab_drop(s->fx, ENGINE_DROP_INVALID);
        return;
    }
    zab_keep(s, msg->ts, msg->flags);
    if (w->last == w->fetch_end) {
        fetch_or_lead(s);
    }
}

void zab_leader_message(struct zab_step *s)
{
    switch ((enum zab_kind)s->event->msg->kind) {
    case ZAB_FORWARD:
        on_forward(s);
        break;
    case ZAB_ACK:
        on_ack(s);
        break;
    case ZAB_STATE:
        on_state(s);
        break;
    case ZAB_PROPOSE:
        on_fetched(s);
        break;
    case ZAB_COMMIT:
    case ZAB_FETCH:
    case ZAB_START:
    case ZAB_SYNCED:
        zab_drop(s->fx, ENGINE_DROP_SENDER); /* a leader's word, and that is this node */
        break;
    case ZAB_REFUSED:
    case ZAB_ITEM:
    case ZAB_KIND_END:
        HK_ASSERT(false && "a message for slots and keys");
    }
}

/* ---- At the end of a poll: commit, propose, tell ---- */

static nodeset that_logged(const struct zab_step *s, uint64_t entry)
{
    nodeset set = 0;
    for (nodeset rest = s->view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        set |= s->worker->members[node].logged >= entry ? nodeset_of(node) : 0;
    }
    return set;
}

/* Rule 2: the highest entry that a majority of the configured nodes has logged; in lockstep, every
 * live member. */
static uint64_t committed(const struct zab_step *s)
{
    const struct zab_worker *w = s->worker;
    uint64_t best = w->commit;
    if (!zab_rule_on(s->config, ZAB_RULE_MAJORITY)) {
        return w->last;
    }
    for (nodeset rest = s->view->live; rest != 0; rest &= rest - 1) {
        uint64_t entry = zab_lower(w->members[nodeset_first(rest)].logged, w->last);
        if (entry > best) {
            nodeset set = that_logged(s, entry);
            bool enough = s->config->lockstep ? set == s->view->live : view_majority(s->view, set);
            best = enough ? entry : best;
        }
    }
    return best;
}

/* Rule 10. */
static uint64_t trimmable(const struct zab_step *s)
{
    uint64_t lowest = s->event->taken;
    if (!zab_rule_on(s->config, ZAB_RULE_TRIM_ALL)) {
        return lowest;
    }
    for (nodeset rest = s->view->live; rest != 0; rest &= rest - 1) {
        lowest = zab_lower(lowest, s->worker->members[nodeset_first(rest)].taken);
    }
    return lowest;
}

static void tell_commit(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    nodeset others = s->view->live & ~nodeset_of(s->event->self);
    if (w->commit > w->told_commit || zab_lags(s, w->told_trim, w->trim)) {
        w->told_commit = w->commit;
        w->told_trim = w->trim;
        if (others != 0) {
            struct effect *e = effects_add(s->fx, EFF_BCAST);
            e->code = ZAB_COMMIT;
            e->with = EFF_NO_KEY;
            e->set = others;
            e->ts = w->commit;
            /* The log's bound keeps the difference small. */
            e->slot = (uint32_t)zab_lower(w->commit - w->trim, UINT32_MAX);
        }
    }
}

/* Rule 14: the end of the batch that may be proposed now. */
static uint64_t batch_end(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    if (!s->config->lockstep) {
        return w->last;
    }
    if (w->commit >= w->proposed || !zab_rule_on(s->config, ZAB_RULE_ROUNDS)) {
        w->proposed = w->last;
    }
    return w->proposed;
}

/* How far a member may be sent entries now. */
static uint64_t reach(const struct zab_member *m, uint64_t end)
{
    return zab_higher(m->sent, zab_lower(end, m->logged + ZAB_WINDOW));
}

/* Members that stand at the same entry are sent the same in one go, which is the rule. */
static void propose(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    uint64_t end = batch_end(s);
    nodeset left = s->view->live & ~nodeset_of(s->event->self);
    for (uint32_t groups = 0; left != 0 && groups < GROUPS_MAX;) {
        uint64_t sent = w->members[nodeset_first(left)].sent;
        uint64_t to = reach(&w->members[nodeset_first(left)], end);
        nodeset same = 0;
        for (nodeset rest = left; rest != 0; rest &= rest - 1) {
            struct zab_member *m = &w->members[nodeset_first(rest)];
            if (m->sent == sent && reach(m, end) == to) {
                same |= nodeset_of(nodeset_first(rest));
                m->sent = to;
            }
        }
        left &= ~same;
        if (to > sent) {
            struct effect *e = effects_add(s->fx, EFF_SEND_KEPT);
            e->code = ZAB_PROPOSE;
            e->set = same;
            e->ts = sent + 1;
            e->slot = (uint32_t)(to - sent);
            groups++;
        }
    }
}

static void tell_synced(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    nodeset due = 0;
    for (nodeset rest = s->view->live & ~nodeset_of(s->event->self) & ~w->synced; rest != 0;
         rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        due |= w->members[node].sent >= w->floor ? nodeset_of(node) : 0;
    }
    if (due != 0) {
        w->synced |= due;
        struct effect *e = effects_add(s->fx, EFF_BCAST);
        e->code = ZAB_SYNCED;
        e->with = EFF_NO_KEY;
        e->set = due;
        e->ts = w->floor;
    }
}

void zab_leader_flush(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    if (w->phase != ZAB_LEAD) {
        zab_take(s); /* what was known to be committed before */
        return;
    }
    note_self(s);
    w->commit = committed(s);
    zab_take(s);
    zab_trim(s, trimmable(s));
    tell_commit(s);
    propose(s);
    tell_synced(s);
}
