/* The worker-wide flow of a space on worker 0, and the log of those engines that keep one: entries
 * are kept, taken (they step their keys), trimmed, and sent to members that lack them. What is
 * ready here worker 0 tells the other workers. */
#include "engine/lotus/lotus.h"
#include "node/internal.h"

#include "base/assert.h"

#define FLUSHES_MAX 64u          /* EV_FLUSH in one poll; what is left waits for the next */
#define TAKE_BYTES (8u << 20)    /* of entries in one go */
#define TAKE_AGAIN_US 1000u      /* memory refused an entry's value */
#define WAITS_FOREVER UINT64_MAX /* nothing is left to be taken */

static uint8_t lowest(uint32_t spaces)
{
    return (uint8_t)__builtin_ctz(spaces);
}

/* ---- The log's effects ---- */

static void keep(struct worker *w, const struct effect *e, const struct msg *msg)
{
    struct log *log = &w->node->spaces[msg->space].log;
    struct msg entry = *msg;
    entry.kind = e->code;
    entry.flags = e->flags;
    entry.ts = e->ts;
    entry.arg = e->set;
    HK_ASSERT(e->ts == log->last + 1);
    log_keep(log, &entry);
}

/* Steps the keys of up to BURST_MAX entries, whose cache misses overlap. How many were taken; fewer
 * than n: memory refused the next one's value. */
static uint32_t take_burst(struct worker *w, uint8_t index, uint32_t n, uint64_t *bytes)
{
    struct space *space = &w->node->spaces[index];
    struct msg msgs[BURST_MAX];
    uint64_t hashes[BURST_MAX];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t used;
        struct bytes entry = log_bytes(&space->log, space->log.taken + 1 + i);
        int err = msg_decode(entry, &msgs[i], &used);
        HK_ASSERT(err == HK_OK);
        hashes[i] = store_hash(space->store, msgs[i].key);
        store_prefetch_bucket(space->store, hashes[i]);
        *bytes += used;
    }
    for (uint32_t i = 0; i < n && n > 1; i++) {
        store_prefetch_object(space->store, hashes[i]);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (input_step(w, &msgs[i], hashes[i], w->node->config.self) != HK_OK) {
            return i;
        }
        space->log.taken++;
    }
    return n;
}

static void take(struct worker *w, uint8_t index, uint64_t until)
{
    struct space *space = &w->node->spaces[index];
    struct log *log = &space->log;
    uint64_t bytes = 0;
    HK_ASSERT(until <= log->last);
    space->take_due_us = WAITS_FOREVER;
    while (log->taken < until) {
        uint64_t left = until - log->taken;
        uint32_t n = left < BURST_MAX ? (uint32_t)left : BURST_MAX;
        if (take_burst(w, index, n, &bytes) < n) {
            space->take_due_us = w->now_us + TAKE_AGAIN_US;
            break;
        }
        if (bytes >= TAKE_BYTES && log->taken < until) {
            space->take_due_us = w->now_us;
            break;
        }
    }
    /* release: pairs with the acquire in ordered_taken; the keys have their values. */
    atomic_store_explicit(&space->taken, log->taken, memory_order_release);
}

static void trim(struct worker *w, uint8_t index, uint64_t entry)
{
    struct space *space = &w->node->spaces[index];
    log_trim(&space->log, entry);
    atomic_store_explicit(&space->taken, space->log.taken, memory_order_release);
}

static void send_kept(struct worker *w, uint8_t index, const struct effect *e)
{
    const struct log *log = &w->node->spaces[index].log;
    for (uint32_t i = 0; i < e->slot; i++) {
        struct bytes entry = log_bytes(log, e->ts + i);
        for (nodeset rest = e->set; rest != 0; rest &= rest - 1) {
            output_kept(w, index, nodeset_first(rest), entry, e->code);
        }
    }
}

/* ---- Steps ---- */

static void carry_out(struct worker *w, uint8_t index, const struct event *event,
                      const struct effects *fx)
{
    struct bytes key = event->msg != NULL ? event->msg->key : bytes_of(NULL, 0);
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        switch ((enum eff_kind)e->kind) {
        case EFF_SEND:
        case EFF_BCAST:
            step_send(w, index, e, key);
            break;
        case EFF_DROP:
        case EFF_BEHIND:
            step_ignored(w, e, event->from);
            break;
        case EFF_KEEP:
            keep(w, e, event->msg);
            break;
        case EFF_TAKE:
            take(w, index, e->ts);
            break;
        case EFF_TRIM:
            trim(w, index, e->ts);
            break;
        case EFF_SEND_KEPT:
            send_kept(w, index, e);
            break;
        case EFF_HOME:
            homes_set(w, index, e);
            break;
        case EFF_LEFT:
            atomic_store_explicit(&w->node->spaces[index].left, true, memory_order_release);
            break;
        case EFF_HOLD:
        case EFF_LATER:
        case EFF_LOST:
        case EFF_APPLY:
        case EFF_FORGET:
        case EFF_PARK:
        case EFF_WAKE:
        case EFF_KEY:
        case EFF_FLOW:
        case EFF_REPLY:
        case EFF_CLOSE:
        case EFF_ISSUE:
        case EFF_ASK:
            HK_ASSERT(false && "an effect of keys and slots");
        }
    }
}

/* Whether the step had effects. */
static bool step_wide(struct worker *w, uint8_t index, enum ev_kind kind, const struct msg *msg,
                      uint8_t from)
{
    const struct space *space = &w->node->spaces[index];
    struct step s;
    step_init(w, &s, index, kind);
    s.event.msg = msg;
    s.event.from = from;
    s.event.taken = space->log.taken;
    s.event.log_bytes = log_size(&space->log);
    s.event.role = w->node->config.role;
    if (msg != NULL) {
        s.event.key_hash = portable_hash(w, msg->key);
    }
    struct effects fx;
    fx.n = 0;
    w->stats.flow_steps++;
    space->ops->flow(NULL, &s.event, &fx);
    carry_out(w, index, &s.event, &fx);
    return fx.n > 0;
}

void step_worker(struct worker *w, const struct msg *msg, uint8_t from)
{
    if (w->node->spaces[msg->space].moves != NULL && msg->kind >= LOTUS_MSG_ROWS) {
        lotus_move_message(w, msg, from);
        return;
    }
    (void)step_wide(w, msg->space, EV_MSG, msg, from);
}

void ordered_view(struct worker *w)
{
    for (uint32_t rest = w->node->wide; rest != 0; rest &= rest - 1) {
        (void)step_wide(w, lowest(rest), EV_VIEW, NULL, NODE_NONE);
    }
}

void ordered_slots(struct worker *w, uint8_t index, enum slots_code code, uint64_t ts)
{
    struct space *space = &w->node->spaces[index];
    struct step s;
    HK_ASSERT(w->index == 0 && space->homes != NULL);
    step_init(w, &s, index, EV_SLOTS);
    s.event.code = (uint8_t)code;
    s.event.ts = ts;
    s.event.role = w->node->config.role;
    struct effects fx;
    fx.n = 0;
    w->stats.flow_steps++;
    space->ops->flow(NULL, &s.event, &fx);
    carry_out(w, index, &s.event, &fx);
    if (w->view.epoch != 0) {
        space->take_due_us = w->now_us; /* EV_FLUSH follows, and what was sent leaves, at once */
    }
}

/* ---- Being ready ---- */

static void publish_ready(struct worker *w, uint8_t index)
{
    struct node *n = w->node;
    struct space *space = &n->spaces[index];
    uint32_t epoch = w->view.epoch;
    if (space->ops->ready == NULL || !space->ops->ready(w->engine_state[index]) ||
        atomic_load_explicit(&space->ready_epoch, memory_order_relaxed) == epoch) {
        return;
    }
    if (w->operational) {
        atomic_store_explicit(&space->serves, true, memory_order_release);
    }
    /* release: pairs with the acquire in ordered_look; outcomes of what was taken are mailed. */
    atomic_store_explicit(&space->ready_epoch, epoch, memory_order_release);
    for (uint32_t i = 0; i < n->config.workers; i++) {
        worker_poke(&n->workers[i]);
    }
}

void ordered_flush(struct worker *w)
{
    for (uint32_t rest = w->view.epoch != 0 ? w->node->wide : 0; rest != 0; rest &= rest - 1) {
        uint8_t i = lowest(rest);
        struct space *space = &w->node->spaces[i];
        uint32_t times = 0;
        space->take_due_us = WAITS_FOREVER;
        while (times < FLUSHES_MAX && step_wide(w, i, EV_FLUSH, NULL, NODE_NONE) &&
               space->take_due_us == WAITS_FOREVER) {
            times++;
        }
        if (times == FLUSHES_MAX) {
            space->take_due_us = w->now_us;
        }
        publish_ready(w, i);
    }
}

uint64_t ordered_deadline(const struct worker *w)
{
    uint64_t due = WAITS_FOREVER;
    for (uint32_t rest = w->node->wide; rest != 0; rest &= rest - 1) {
        uint64_t space_due = w->node->spaces[lowest(rest)].take_due_us;
        due = space_due < due ? space_due : due;
    }
    return due;
}

bool ordered_all_ready(const struct node *n, uint32_t epoch)
{
    for (uint32_t rest = n->gated; rest != 0; rest &= rest - 1) {
        if (atomic_load_explicit(&n->spaces[lowest(rest)].ready_epoch, memory_order_acquire) !=
            epoch) {
            return false;
        }
    }
    return true;
}

/* ---- Every worker ---- */

uint64_t ordered_taken(const struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    /* acquire: pairs with the release in take. */
    return w->index == 0 ? space->log.taken
                         : atomic_load_explicit(&space->taken, memory_order_acquire);
}

bool ordered_serves(const struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    return space->ops->ready == NULL || atomic_load_explicit(&space->serves, memory_order_acquire);
}

bool ordered_issues(const struct worker *w, uint8_t index)
{
    const struct node *n = w->node;
    const struct engine_ops *ops = n->spaces[index].ops;
    /* A worker that is still in an older epoch takes what a member that is gone has to say, which
     * may drop the entry that this one writes (docs/protocols/galene.md, L9). */
    bool all = (ops->traits & ENGINE_HOMED) == 0 ||
               atomic_load_explicit(&n->adopted, memory_order_acquire) == w->view.epoch;
    return ops->ready == NULL || (w->ready_told[index] == w->view.epoch && all);
}

uint32_t ordered_look(const struct worker *w)
{
    uint32_t spaces = 0;
    for (uint32_t rest = w->node->gated; rest != 0; rest &= rest - 1) {
        uint8_t i = lowest(rest);
        if (w->ready_told[i] != w->view.epoch &&
            atomic_load_explicit(&w->node->spaces[i].ready_epoch, memory_order_acquire) ==
                w->view.epoch) {
            spaces |= 1u << i;
        }
    }
    return spaces;
}

void ordered_tell(struct worker *w, uint32_t spaces)
{
    uint32_t n = 0;
    list_each(link, &w->flows)
    {
        const struct flow *f = list_entry(link, struct flow, link);
        if ((spaces >> f->space & 1) != 0) {
            w->adopt[n++] = (struct nudge){.ref = f->slot.ref, .gen = f->slot.gen};
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        struct flow *f = flow_of_ref(w, w->adopt[i].ref);
        if (f != NULL && f->slot.gen == w->adopt[i].gen) {
            step_flow(w, f, EV_KEY, FLOW_CODE_READY, NULL, NODE_NONE);
        }
    }
    for (; spaces != 0; spaces &= spaces - 1) {
        w->ready_told[lowest(spaces)] = w->view.epoch;
    }
}
