/* A worker's poll: mail, frames, control, requests, timers, operations that can go on, background
 * work, then everything leaves. No system call, no lock but buckets'. */
#include "node/lotus.h"
#include "node/own.h"

#include "base/assert.h"

/* Operations that go on between two messages. */
#define READY_MAX 64u

/* ---- Mail, sleeping and waking ---- */

void worker_poke(struct worker *w)
{
    /* Pairs with worker_sleep: either the poster sees "asleep", or the sleeper sees the mail. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_exchange_explicit(&w->asleep, false, memory_order_seq_cst)) {
        w->node->env.wake(w->node->env.context, w->index);
    }
}

void worker_post(struct worker *from, uint32_t to, const struct mail *mail)
{
    struct worker *w = &from->node->workers[to];
    if (mail->kind == MAIL_FLOW) {
        /* Room for every flow of that worker, and each has one outcome (struct flow, claim): it
         * cannot be full. */
        bool pushed = ring_mpsc_push(&w->mail, mail);
        HK_ASSERT(pushed);
    } else if (!ring_mpsc_push(&w->wakes, mail)) {
        atomic_store_explicit(&w->wake_all, true, memory_order_release);
    }
    worker_poke(w);
}

void worker_nudge(struct worker *w, const struct flow *f)
{
    if (w->nudges < w->node->config.flows_max) {
        w->nudge[w->nudges++] = (struct nudge){.ref = f->slot.ref, .gen = f->slot.gen};
    }
}

static bool has_mail(struct worker *w)
{
    return !ring_mpsc_empty(&w->mail) || !ring_mpsc_empty(&w->wakes) ||
           atomic_load_explicit(&w->wake_all, memory_order_acquire) ||
           atomic_load_explicit(&w->ping, memory_order_acquire) ||
           atomic_load_explicit(&w->node->published_epoch, memory_order_acquire) != w->view.epoch ||
           aside_wanted(w) || ordered_look(w) != 0 || own_epoch_wanted(w) || own_freed_wanted(w) ||
           (w->lotus != NULL && lotus_home_wanted(w)) || (w->index == 0 && control_wanted(w));
}

bool worker_sleep(struct worker *w)
{
    atomic_exchange_explicit(&w->asleep, true, memory_order_seq_cst);
    atomic_thread_fence(memory_order_seq_cst);
    if (has_mail(w)) {
        atomic_store_explicit(&w->asleep, false, memory_order_relaxed);
        return false;
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (w->threads[i] != NULL) {
            store_offline(w->threads[i]);
        }
        if (w->directories[i] != NULL) {
            store_offline(w->directories[i]);
        }
    }
    return true;
}

void worker_awake(struct worker *w)
{
    atomic_store_explicit(&w->asleep, false, memory_order_relaxed);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (w->threads[i] != NULL) {
            store_online(w->threads[i]);
        }
        if (w->directories[i] != NULL) {
            store_online(w->directories[i]);
        }
    }
}

bool worker_full(const struct worker *w)
{
    return atomic_load_explicit(&w->node->out_of_memory, memory_order_relaxed);
}

/* ---- The parts of a poll ---- */

static uint32_t take_mail(struct worker *w, uint32_t max)
{
    uint32_t n = 0;
    struct mail mail;
    uint32_t ready = ordered_look(w);
    if (atomic_exchange_explicit(&w->wake_all, false, memory_order_acquire)) {
        call_wake_all(w);
        n++;
    }
    while (n < max && ring_mpsc_pop(&w->wakes, &mail)) {
        call_wake(w, mail.space, mail.hash);
        n++;
    }
    for (uint32_t i = 0; i < max && ring_mpsc_pop(&w->mail, &mail); i++) {
        step_mail(w, &mail);
        n++;
    }
    if (ready != 0 && ring_mpsc_drained(&w->mail)) {
        ordered_tell(w, ready);
        n++;
    }
    return n + aside_take(w, max);
}

/* Of a request's key, or of the first keys of a transaction, the bucket comes to the cache, or what
 * the bucket leads to. Where objects have owners, the same of their entries. */
static void fetch_keys(const struct node *n, const struct request *request, uint64_t hash,
                       bool objects)
{
    const struct store *store = n->spaces[request->op.space].store;
    const struct store *directory = n->spaces[request->op.space].directory;
    uint32_t keys = request->committed != NULL        ? 0
                    : request->txn == NULL            ? 1
                    : request->txn->ops_n < BURST_MAX ? request->txn->ops_n
                                                      : BURST_MAX;
    for (uint32_t i = 0; i < keys; i++) {
        uint64_t h = request->txn == NULL ? hash : store_hash(store, request->txn->ops[i].key);
        if (objects) {
            store_prefetch_object(store, h);
        } else {
            store_prefetch_bucket(store, h);
        }
        if (directory != NULL && objects) {
            store_prefetch_object(directory, h);
        } else if (directory != NULL) {
            store_prefetch_bucket(directory, h);
        }
    }
}

/* Requests come in bursts as messages do: their keys are fetched together. */
static uint32_t take_burst(struct worker *w, uint32_t max)
{
    struct node *n = w->node;
    struct request requests[BURST_MAX];
    uint64_t hashes[BURST_MAX];
    uint32_t count = 0;
    requests[0].committed = NULL;
    while (count < max && count < BURST_MAX && count < w->calls_free_n &&
           n->env.request(n->env.context, w->index, &requests[count])) {
        const struct op *op = &requests[count].op;
        HK_ASSERT(requests[count].session < n->config.sessions_max);
        hashes[count] = 0;
        if (op->space < SPACES_MAX && n->spaces[op->space].ops != NULL) {
            if (requests[count].txn == NULL && requests[count].committed == NULL) {
                hashes[count] = store_hash(n->spaces[op->space].store, op->key);
            }
            fetch_keys(n, &requests[count], hashes[count], false);
        }
        if (++count < BURST_MAX) {
            requests[count].committed = NULL;
        }
    }
    for (uint32_t i = 0; i < count && count > 1; i++) {
        uint8_t space = requests[i].op.space;
        if (space < SPACES_MAX && n->spaces[space].ops != NULL) {
            fetch_keys(n, &requests[i], hashes[i], true);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        call_take(w, &requests[i], hashes[i]);
    }
    return count;
}

static uint32_t take_requests(struct worker *w, uint32_t max)
{
    uint32_t count = 0;
    uint32_t burst = BURST_MAX;
    while (burst == BURST_MAX && count < max && w->moved < MOVED_MAX) {
        burst = take_burst(w, max - count);
        count += burst;
    }
    return count;
}

static void flow_timer(struct worker *w, struct flow *f)
{
    if (f->check && list_empty(&f->checking)) {
        flow_close(w, f); /* its reads have been answered otherwise */
        return;
    }
    if (f->call != NULL && f->call->gated) {
        /* Gating has a bound: two sessions may gate each other when messages were lost. */
        f->call->gated = false;
        f->call->ungated = true;
        uint32_t gen = f->slot.gen;
        step_flow(w, f, EV_KEY, FLOW_CODE_NUDGE, NULL, NODE_NONE);
        if (!f->used || f->slot.gen != gen) {
            return;
        }
    }
    step_flow(w, f, EV_TIMER, 0, NULL, NODE_NONE);
}

static uint32_t take_timers(struct worker *w, uint32_t max)
{
    uint32_t n = 0;
    struct timer *t;
    wheel_advance(&w->wheel, w->now_us);
    while (n < max && (n == 0 || w->moved < MOVED_MAX) && (t = wheel_take(&w->wheel)) != NULL) {
        if (t->kind == TIMER_CALL) {
            call_timer(w, list_entry(t, struct call, timer));
        } else if (t->kind == TIMER_FLOW) {
            flow_timer(w, list_entry(t, struct flow, timer));
        } else if (t->kind == TIMER_OWN) {
            own_timer(w, t);
        } else {
            lanes_timer(w, t);
        }
        n++;
    }
    return n;
}

static uint32_t run_ready(struct worker *w, uint32_t max)
{
    uint32_t n = 0;
    struct list_link *link;
    while (n < max && w->moved < MOVED_MAX && (link = list_pop_front(&w->ready)) != NULL) {
        call_run(w, list_entry(link, struct call, link));
        n++;
    }
    return n;
}

static void run_nudges(struct worker *w)
{
    for (uint32_t i = 0; i < w->nudges; i++) {
        struct flow *f = flow_of_ref(w, w->nudge[i].ref);
        if (f != NULL && f->slot.gen == w->nudge[i].gen) {
            step_flow(w, f, EV_KEY, FLOW_CODE_NUDGE, NULL, NODE_NONE);
        }
    }
    w->nudges = 0;
}

void worker_run_ready(struct worker *w)
{
    if (!list_empty(&w->ready)) {
        (void)run_ready(w, READY_MAX);
    }
}

/* Who was woken goes first, or newcomers would always be faster. */
static uint32_t run_operations(struct worker *w, uint32_t max)
{
    uint32_t n = run_ready(w, max);
    n += take_requests(w, max);
    n += take_timers(w, max);
    n += run_ready(w, max);
    return n;
}

static void refresh_lease(struct worker *w)
{
    /* acquire: pairs with publish_lease. */
    w->lease_until_us = atomic_load_explicit(&w->node->lease_until_us, memory_order_acquire);
}

static void background(struct worker *w)
{
    input_self(w);
    if (w->index == 0) {
        transfer_poll(w);
        sweep_poll(w);
        move_poll(w);
        lotus_move_poll(w);
        hot_poll(w);
        hot_epoch_poll(w);
    }
    for (uint32_t i = 0; i < SPACES_MAX && !list_empty(&w->checking); i++) {
        flow_check_reads(w);
    }
}

/* Counters are nobody's signal: relaxed, and only those that changed. */
static void publish_stats(struct worker *w)
{
    const uint64_t *now = (const uint64_t *)(const void *)&w->stats;
    uint64_t *told = (uint64_t *)(void *)&w->stats_told;
    for (size_t i = 0; i < sizeof w->stats / sizeof *now; i++) {
        if (now[i] != told[i]) {
            told[i] = now[i];
            atomic_store_explicit(&w->published[i], now[i], memory_order_relaxed);
        }
    }
}

const struct node_stats *worker_stats(const struct worker *w)
{
    return &w->stats;
}

struct poll_result worker_poll(struct worker *w, uint64_t now_us, uint32_t max_events)
{
    struct poll_result result = {0, 0};
    HK_ASSERT(max_events > 0);
    w->now_us = now_us;
    w->moved = 0;
    w->wall_ms = w->node->env.wall_ms(w->node->env.context);
    atomic_store_explicit(&w->ping, false, memory_order_relaxed);
    control_adopt(w);
    refresh_lease(w);
    result.events += take_mail(w, max_events);
    result.events += input_frames(w, max_events);
    bool moved_much = w->moved >= MOVED_MAX;
    /* Operations have a measure of their own: a flood of frames shall not stop them. */
    w->moved = 0;
    if (w->index == 0) {
        control_poll(w);
    }
    /* The lease that is read next may be of a view that was published meanwhile. */
    control_adopt(w);
    refresh_lease(w);
    result.events += run_operations(w, max_events);
    run_nudges(w);
    background(w);
    if (w->index == 0) {
        ordered_flush(w);
    }
    if (w->node->owned != 0) {
        own_poll(w);
        txn_poll(w);
    }
    moved_much = moved_much || w->moved >= MOVED_MAX;
    if (w->lotus != NULL) {
        lotus_home_poll(w);
        lotus_poll(w);
    }
    output_flush(w);
    publish_stats(w);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (w->threads[i] != NULL) {
            store_quiescent(w->threads[i]);
        }
        if (w->directories[i] != NULL) {
            store_quiescent(w->directories[i]);
        }
    }
    if (w->index == 0) {
        result.flags |= (w->node->wipe ? POLL_WIPE : 0u) | (w->node->left ? POLL_LEFT : 0u);
    }
    w->unfinished = moved_much || w->moved >= MOVED_MAX;
    result.flags |= w->unfinished ? POLL_LONG : 0u;
    atomic_fetch_add_explicit(&w->progress, 1, memory_order_relaxed);
    return result;
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t worker_deadline(const struct worker *w)
{
    const struct node *n = w->node;
    bool confirm = !list_empty(&w->checking) && !list_empty(&w->flows_free);
    if (!list_empty(&w->ready) || confirm || w->self.body > 0 || w->nudges > 0 || w->unfinished ||
        w->aside_pending != 0 || ordered_look(w) != 0) {
        return w->now_us;
    }
    uint64_t due = wheel_deadline(&w->wheel);
    if (n->owned != 0) {
        due = sooner(due, sooner(own_deadline(w), txn_deadline(w)));
    }
    if (w->lotus != NULL) {
        due = sooner(due, sooner(lotus_deadline(w), lotus_home_deadline(w)));
    }
    if (w->index == 0) {
        if (n->wipe || n->left) {
            return w->now_us; /* whoever runs the node has to hear of it */
        }
        due = sooner(due, control_deadline(w));
        due = sooner(due, transfer_deadline(w));
        due = sooner(due, sweep_deadline(w));
        due = sooner(due, move_deadline(w));
        due = sooner(due, lotus_move_deadline(w));
        due = sooner(due, ordered_deadline(w));
        due = sooner(due, hot_deadline(w));
        due = sooner(due, hot_epoch_deadline(w));
    }
    return due;
}
