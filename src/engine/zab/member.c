/* ZAB, every member: the log, what is committed, being level with the others.
 *
 * Source: [H] 4.4.2; docs/protocols/zab.md has the fault model, the rules by number with the
 * execution that breaks without each, and the tables.
 *
 *   step of the thesis                               function
 *   a write is propagated to the leader              key_update (update.c)
 *   the leader serializes ...                        on_forward (leader.c)
 *   ... and proposes by broadcasting                 propose (leader.c)
 *   followers send ACKs                              follower_flush
 *   a majority: the leader commits ...               committed (leader.c)
 *   ... and broadcasts commits                       zab_leader_flush
 *   an entry is applied                              key_take (update.c)
 *   local reads, once the client's last write
 *   has been applied                                 ENGINE_READS_FOLLOW (node/session.c)
 *   recovery of [187]: the new leader takes over
 *   what may be committed                            try_lead (leader.c)
 *
 * Invariants:
 *   I1  trim <= event.taken <= commit <= last.
 *   I2  The logs of a view's members are prefixes of the longest of them.
 *   I3  Nobody proposes in an epoch unless it has all that any live member had logged before.
 *   I4  A committed entry is in the log of a member that the next view keeps.
 *   I5  What two nodes have taken, one's is a prefix of the other's.
 *
 *                    a state is missing            states of all, own log is the longest
 *   EV_VIEW: leader -------------------> GATHER ------------------------------> LEAD
 *                                           |                                    ^
 *                                           |  a member has more                 | has it all
 *                                           +-------------------------> FETCHING +
 *   EV_VIEW: others -------------------> FOLLOW
 */
#include "engine/zab/machine.h"

const char *const zab_phase_names[ZAB_PHASES] = {
    [ZAB_OUT] = "Out",           [ZAB_FOLLOW] = "Follow", [ZAB_GATHER] = "Gather",
    [ZAB_FETCHING] = "Fetching", [ZAB_LEAD] = "Lead",
};

/* ---- The log ---- */

void zab_keep(struct zab_step *s, uint64_t entry, uint8_t origin)
{
    HK_ASSERT(entry == s->worker->last + 1);
    struct effect *e = effects_add(s->fx, EFF_KEEP);
    e->code = ZAB_PROPOSE;
    e->flags = origin;
    e->ts = entry;
    s->worker->last = entry;
}

void zab_start(struct zab_step *s, uint64_t base)
{
    struct zab_worker *w = s->worker;
    w->started = true;
    w->last = base;
    w->commit = base;
    w->trim = base;
    w->told_last = base;
    w->told_taken = base;
    effects_add(s->fx, EFF_TRIM)->ts = base;
}

void zab_take(struct zab_step *s)
{
    if (s->event->taken < s->worker->commit) {
        effects_add(s->fx, EFF_TAKE)->ts = s->worker->commit;
    }
}

/* Never beyond what this node has taken itself. */
void zab_trim(struct zab_step *s, uint64_t trim)
{
    trim = zab_lower(trim, s->event->taken);
    if (trim > s->worker->trim) {
        s->worker->trim = trim;
        effects_add(s->fx, EFF_TRIM)->ts = trim;
    }
}

void zab_level(struct zab_step *s, uint64_t last)
{
    s->worker->level_epoch = s->view->epoch;
    s->worker->level_last = last;
    s->worker->level_configured = s->view->configured;
    s->worker->level_old = s->view->configured_old;
}

/* Rule 13. */
static void look_if_ready(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    bool took = s->event->taken >= w->level_last || !zab_rule_on(s->config, ZAB_RULE_READY);
    if (w->epoch != 0 && w->level_epoch == w->epoch && took) {
        w->ready_epoch = w->epoch;
    }
}

bool zab_ready(const void *worker)
{
    const struct zab_worker *w = worker;
    return w->epoch != 0 && w->ready_epoch == w->epoch;
}

/* ---- A follower ---- */

/* FIFO lanes and rule 5 leave no other number than the next one. */
static void on_propose(struct zab_step *s)
{
    const struct msg *msg = s->event->msg;
    struct zab_worker *w = s->worker;
    if (!w->started || msg->ts > w->last + 1) {
        zab_drop(s->fx, ENGINE_DROP_INVALID);
    } else if (msg->ts <= w->last) {
        zab_drop(s->fx, ENGINE_DROP_STALE);
    } else {
        zab_keep(s, msg->ts, msg->flags);
        if (!zab_rule_on(s->config, ZAB_RULE_COMMITTED)) {
            w->commit = w->last; /* the fault to be shown */
        }
    }
}

static void on_commit(struct zab_step *s)
{
    const struct msg *msg = s->event->msg;
    struct zab_worker *w = s->worker;
    if (!w->started) {
        zab_drop(s->fx, ENGINE_DROP_INVALID);
        return;
    }
    w->told_commit = zab_higher(w->told_commit, msg->ts);
    w->told_trim = zab_higher(w->told_trim, msg->ts - msg->slot);
}

static void on_start(struct zab_step *s)
{
    if (s->worker->started) {
        zab_drop(s->fx, ENGINE_DROP_STALE);
    } else {
        zab_start(s, s->event->msg->ts);
    }
}

static void on_synced(struct zab_step *s)
{
    if (!s->worker->started || s->event->msg->ts > s->worker->last) {
        zab_drop(s->fx, ENGINE_DROP_INVALID);
    } else {
        zab_level(s, s->event->msg->ts);
    }
}

/* A new leader lacks what this member has. */
static void on_fetch(struct zab_step *s)
{
    const struct msg *msg = s->event->msg;
    const struct zab_worker *w = s->worker;
    if (msg->ts <= w->trim || msg->arg > w->last || msg->arg - msg->ts >= UINT32_MAX) {
        zab_drop(s->fx, ENGINE_DROP_INVALID);
        return;
    }
    struct effect *e = effects_add(s->fx, EFF_SEND_KEPT);
    e->code = ZAB_PROPOSE;
    e->ts = msg->ts;
    e->slot = (uint32_t)(msg->arg - msg->ts + 1);
    e->set = nodeset_of(s->event->from);
}

/* One acknowledgement a poll, cumulative. That more was taken only lets the leader trim. */
static void follower_flush(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    if (!w->started) {
        return;
    }
    /* A member that is being brought level hears of commits before it has the entries. */
    w->commit = zab_higher(w->commit, zab_lower(w->told_commit, w->last));
    zab_take(s);
    zab_trim(s, w->told_trim);
    uint64_t taken = s->event->taken;
    if (w->last != w->told_last || zab_lags(s, w->told_taken, taken)) {
        struct effect *e = effects_add(s->fx, EFF_SEND);
        e->code = ZAB_ACK;
        e->to = zab_leader(s->view);
        e->with = EFF_NO_KEY;
        e->ts = w->last;
        e->set = taken;
        w->told_last = w->last;
        w->told_taken = taken;
    }
}

static void follower_message(struct zab_step *s)
{
    const struct event *event = s->event;
    enum zab_kind kind = (enum zab_kind)event->msg->kind;
    if (event->from != zab_leader(s->view)) {
        zab_drop(s->fx, ENGINE_DROP_SENDER);
        return;
    }
    switch (kind) {
    case ZAB_PROPOSE:
        on_propose(s);
        break;
    case ZAB_COMMIT:
        on_commit(s);
        break;
    case ZAB_FETCH:
        on_fetch(s);
        break;
    case ZAB_START:
        on_start(s);
        break;
    case ZAB_SYNCED:
        on_synced(s);
        break;
    case ZAB_FORWARD:
    case ZAB_ACK:
    case ZAB_STATE:
        zab_drop(s->fx, ENGINE_DROP_INVALID); /* whoever sent it takes this node for the leader */
        break;
    case ZAB_REFUSED:
    case ZAB_ITEM:
    case ZAB_KIND_END:
        HK_ASSERT(false && "a message for slots and keys");
    }
}

/* ---- Views ---- */

static void send_state(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    struct effect *e = effects_add(s->fx, EFF_SEND);
    e->code = ZAB_STATE;
    e->to = zab_leader(s->view);
    e->with = EFF_NO_KEY;
    e->flags = w->started ? 0 : ZAB_F_FRESH;
    e->ts = w->last;
    e->set = s->event->taken;
    e->gen = w->level_epoch;
    w->told_last = w->last;
    w->told_taken = s->event->taken;
}

static void on_view(struct zab_step *s)
{
    struct zab_worker *w = s->worker;
    const struct view *view = s->view;
    if (view->epoch != w->epoch + 1 || zab_leader(view) != s->event->self) {
        w->led_epoch = 0; /* somebody else leads, or may have led in an epoch that was skipped */
    }
    w->epoch = view->epoch;
    w->told_commit = 0;
    w->told_trim = 0;
    if (w->generation != view->generation) {
        w->generation = view->generation;
        w->serving_since = view->epoch;
    }
    if (!nodeset_has(view->live, s->event->self)) {
        w->phase = ZAB_OUT;
    } else if (zab_leader(view) == s->event->self) {
        zab_leader_view(s);
    } else {
        w->phase = ZAB_FOLLOW;
        send_state(s);
    }
}

/* ---- Dispatcher ---- */

static void worker_flow(struct zab_step *s)
{
    bool follows = s->worker->phase == ZAB_FOLLOW;
    switch (s->event->kind) {
    case EV_VIEW:
        on_view(s);
        break;
    case EV_MSG:
        if (!zab_admitted(s->event, s->fx)) {
            return;
        }
        if (s->worker->epoch != s->view->epoch) {
            zab_drop(s->fx, ENGINE_DROP_EPOCH_NEW);
        } else if (follows) {
            follower_message(s);
        } else {
            zab_leader_message(s);
        }
        break;
    case EV_FLUSH:
        if (s->worker->phase == ZAB_OUT) {
            return;
        }
        if (follows) {
            follower_flush(s);
        } else {
            zab_leader_flush(s);
        }
        look_if_ready(s);
        break;
    case EV_READ:
    case EV_UPDATE:
    case EV_TIMER:
    case EV_FLOW:
    case EV_KEY:
    case EV_SWEEP:
    case EV_HOT:
    case EV_MOVE:
    case EV_SLOTS:
        HK_ASSERT(false && "an event of keys and slots");
    }
}

void zab_flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (mine != NULL) {
        zab_slot_flow(mine, event, fx);
        return;
    }
    struct zab_step s = {.event = event,
                         .view = event->view,
                         .config = event->config,
                         .worker = event->worker,
                         .fx = fx};
    worker_flow(&s);
}
