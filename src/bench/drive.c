/* A round of a worker: operations are taken from what was drawn in advance, local reads answered in
 * batches on the spot, everything else handed to the node, which is polled; then what came of it is
 * booked. */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "bench/internal.h"

/* A thread without work looks for so long before it sleeps. */
#define SPIN_NS 50000u
/* An arrival that is nearer than this is waited for awake. */
#define NEAR_NS 200000u
/* Offers of connections are looked for once in so many rounds. */
#define ADOPT_ROUNDS 256u
/* More sessions than the load needs make the first writing of all keys short. */
#define FILL_SESSIONS 256u

uint64_t bench_clock_ns(void)
{
    struct timespec t;
    int err = clock_gettime(CLOCK_BOOTTIME, &t);
    HK_ASSERT(err == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t now_us(const struct bench_worker *w)
{
    return (w->now_ns - w->cluster->pauses_ns) / 1000u;
}

/* ---- Making and unmaking ---- */

static uint32_t sessions_of(const struct bench_config *c)
{
    return c->in_flight > FILL_SESSIONS ? c->in_flight : FILL_SESSIONS;
}

static int open_sessions(struct bench_worker *w)
{
    const struct bench_config *c = &w->cluster->config;
    uint32_t n = sessions_of(c);
    w->sessions = calloc(n, sizeof *w->sessions);
    w->key_memory = calloc(n, c->key_bytes);
    w->read_keys = calloc(NODE_READ_MAX, c->key_bytes);
    w->free = calloc(4u * (size_t)n, sizeof *w->free);
    if (w->sessions == NULL || w->key_memory == NULL || w->read_keys == NULL || w->free == NULL) {
        return HK_ERR_NOMEM;
    }
    w->queue = w->free + n;
    w->done = w->queue + n;
    w->more = w->done + n;
    for (uint32_t i = 0; i < n; i++) {
        int err = worker_session_open(w->worker, &w->sessions[i].id);
        if (err != HK_OK) {
            return err;
        }
        w->sessions[i].key = w->key_memory + (size_t)i * c->key_bytes;
        w->free[w->free_n++] = i;
    }
    if (w->cluster->work != NULL && drive_work_open(w) != HK_OK) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < NODE_READ_MAX; i++) {
        w->reads[i].key = bytes_of(w->read_keys + (size_t)i * c->key_bytes, c->key_bytes);
    }
    return HK_OK;
}

int drive_open(struct bench_worker *w)
{
    struct bench_cluster *c = w->cluster;
    w->worker = node_worker(c->nodes[w->node].node, w->index);
    w->fill_next = c->work != NULL ? 0 : w->number;
    random_init(&w->random, c->config.seed * 31u + w->number);
    int err = c->work != NULL ? HK_OK : drawn_init(&w->drawn, &c->config, w->number);
    if (err == HK_OK) {
        err = open_sessions(w);
    }
    if (err == HK_OK && c->work == NULL && c->config.read_path == BENCH_READ_DIRECT) {
        err = node_reader_open(c->nodes[w->node].node, &w->reader);
    }
    if (w->reader != NULL) {
        node_reader_follow(w->reader); /* a session has one operation at a time */
    }
    return err;
}

void drive_close_reader(struct bench_worker *w)
{
    if (w->reader != NULL) {
        node_reader_close(w->reader);
        w->reader = NULL;
    }
}

void drive_close(struct bench_worker *w)
{
    drawn_deinit(&w->drawn);
    free(w->sessions);
    free(w->key_memory);
    free(w->read_keys);
    free(w->free);
    free(w->txn_memory);
    w->sessions = NULL;
}

/* ---- Booking ---- */

static void publish(struct bench_worker *w)
{
    /* relaxed: who measures reads each figure on its own. */
    for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
        atomic_store_explicit(&w->counters.ops[kind], w->ops[kind], memory_order_relaxed);
    }
    atomic_store_explicit(&w->counters.failed, w->failed, memory_order_relaxed);
    atomic_store_explicit(&w->counters.refused, w->refused, memory_order_relaxed);
    atomic_store_explicit(&w->counters.passed, w->passed, memory_order_relaxed);
    atomic_store_explicit(&w->counters.hits, w->hits, memory_order_relaxed);
    atomic_store_explicit(&w->counters.filled, w->filled, memory_order_relaxed);
    atomic_store_explicit(&w->counters.dropped, w->dropped, memory_order_relaxed);
    atomic_store_explicit(&w->counters.remote, w->remote, memory_order_relaxed);
    atomic_store_explicit(&w->counters.steps, w->steps, memory_order_relaxed);
    atomic_store_explicit(&w->counters.again, w->again, memory_order_relaxed);
    for (uint32_t i = 0; w->cluster->work != NULL && i < WORK_TYPES_MAX; i++) {
        atomic_store_explicit(&w->counters.txns[i], w->txns[i], memory_order_relaxed);
        atomic_store_explicit(&w->counters.succeeded[i], w->succeeded[i], memory_order_relaxed);
    }
    uint64_t in_flight = sessions_of(&w->cluster->config) - w->free_n;
    /* release: whoever finds nothing in flight may stop polling. */
    atomic_store_explicit(&w->counters.in_flight, in_flight, memory_order_release);
}

/* An operation ends with the poll that answered it, not within: one look at the clock for all. */
static void book_done(struct bench_worker *w)
{
    for (uint32_t i = 0; i < w->done_n; i++) {
        struct bench_session *s = &w->sessions[w->done[i]];
        if (s->txn != NULL && !s->fills) {
            drive_work_book(w, s);
        }
        if (w->phase == PHASE_FILL) {
            w->filled++;
        } else if (s->refused) {
            w->refused++;
        } else {
            w->ops[s->kind]++;
            histogram_record(&w->latency_ns[s->kind], w->now_ns - s->start_ns);
        }
        w->free[w->free_n++] = w->done[i];
    }
    w->done_n = 0;
}

static void begin_run(struct bench_worker *w, uint32_t run)
{
    w->run = run;
    for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
        histogram_init(&w->latency_ns[kind]);
    }
}

/* Arrivals begin anew: nobody shall make up for a pause. */
static void begin_phase(struct bench_worker *w, enum bench_phase phase)
{
    const struct bench_config *c = &w->cluster->config;
    w->phase = phase;
    if (phase == PHASE_LOAD && c->rate > 0.0) {
        w->schedule_base_ns = w->now_ns;
        schedule_init(&w->schedule, c->rate / w->cluster->workers_n, c->even, 0, &w->random);
    }
}

/* ---- Drawing ---- */

static void write_key(const struct bench_worker *w, uint64_t key, uint8_t *to)
{
    (void)w; /* bytes beyond the eighth stay zero */
    put_u64(to, key);
}

static void queue_session(struct bench_worker *w, enum load_kind kind, uint64_t key,
                          uint64_t start_ns)
{
    uint32_t i = w->free[--w->free_n];
    struct bench_session *s = &w->sessions[i];
    s->kind = (uint8_t)kind;
    s->start_ns = start_ns;
    write_key(w, key, s->key);
    w->queue[w->queue_n++] = i;
}

/* The reads of the batch, on this thread. What the store alone cannot answer takes a session, of
 * which there are enough. */
static void read_batch(struct bench_worker *w)
{
    uint32_t n = w->batch_n, answered = 0;
    w->batch_n = 0;
    if (n == 0) {
        return;
    }
    uint64_t begun_ns = w->now_ns;
    node_read(w->reader, 0, now_us(w), n, w->reads);
    w->now_ns = bench_clock_ns();
    bool open = w->cluster->config.rate > 0.0;
    for (uint32_t i = 0; i < n; i++) {
        const struct node_read *r = &w->reads[i];
        if (r->answer == NODE_READ_ASK) {
            w->passed++;
            queue_session(w, LOAD_READ, get_u64(r->key.at), w->read_starts[i]);
            continue;
        }
        w->failed += r->answer != NODE_READ_FOUND || r->value.n != w->cluster->config.value_bytes;
        w->hits += r->cached;
        answered++;
        if (open) {
            histogram_record(&w->latency_ns[LOAD_READ], w->now_ns - w->read_starts[i]);
        }
    }
    if (!open) {
        histogram_record_n(&w->latency_ns[LOAD_READ], w->now_ns - begun_ns, answered);
    }
    w->ops[LOAD_READ] += answered;
}

static void draw_read(struct bench_worker *w, uint64_t key, uint64_t start_ns)
{
    uint32_t i = w->batch_n++;
    write_key(w, key, w->read_keys + (size_t)i * w->cluster->config.key_bytes);
    w->read_starts[i] = start_ns;
}

/* When the next operation begins or was meant to; false: it is not due yet. */
static bool arrival(struct bench_worker *w, uint64_t *start_ns_out)
{
    if (w->cluster->config.rate == 0.0) {
        *start_ns_out = w->now_ns;
        return true;
    }
    uint64_t due_ns = w->schedule_base_ns + schedule_due_ns(&w->schedule);
    if (due_ns > w->now_ns) {
        return false;
    }
    schedule_advance(&w->schedule, &w->random);
    *start_ns_out = due_ns;
    return true;
}

/* A read that waits in the batch may still need a session. */
static bool session_left(const struct bench_worker *w)
{
    uint32_t spare = sessions_of(&w->cluster->config) - w->cluster->config.in_flight;
    return w->free_n > spare + w->batch_n;
}

/* Transactions take a session each, whether they write or not. */
static uint32_t draw_work(struct bench_worker *w, bool fills)
{
    uint32_t drawn = 0;
    uint64_t start_ns = w->now_ns;
    while (drawn < ROUND_OPS && w->free_n > 0 &&
           (fills || (session_left(w) && arrival(w, &start_ns)))) {
        uint32_t i = w->free[w->free_n - 1];
        struct bench_session *s = &w->sessions[i];
        s->start_ns = start_ns;
        s->since_us = now_us(w);
        s->fills = fills;
        if (!fills) {
            drive_work_draw(w, s);
        } else if (!drive_work_fill(w, s)) {
            break;
        }
        w->free_n--;
        w->queue[w->queue_n++] = i;
        drawn++;
    }
    return drawn;
}

static uint32_t draw_load(struct bench_worker *w)
{
    uint32_t drawn = 0;
    uint64_t start_ns;
    if (w->cluster->work != NULL) {
        return draw_work(w, false);
    }
    while (drawn < ROUND_OPS && session_left(w) && arrival(w, &start_ns)) {
        enum load_kind kind;
        uint64_t key = drawn_next(&w->drawn, &kind);
        drawn++;
        if (kind != LOAD_READ || w->reader == NULL) {
            queue_session(w, kind, key, start_ns);
            continue;
        }
        draw_read(w, key, start_ns);
        if (w->batch_n == NODE_READ_MAX || !session_left(w)) {
            read_batch(w);
        }
    }
    read_batch(w);
    return drawn;
}

static uint32_t draw_fill(struct bench_worker *w)
{
    uint32_t drawn = 0;
    if (w->cluster->work != NULL) {
        return draw_work(w, true);
    }
    while (drawn < ROUND_OPS && w->free_n > 0 && w->fill_next < w->cluster->config.keys.n) {
        queue_session(w, LOAD_WRITE, w->fill_next, w->now_ns);
        w->fill_next += w->cluster->workers_n;
        drawn++;
    }
    return drawn;
}

/* ---- What the node asks ---- */

bool drive_request(struct bench_worker *w, struct request *request_out)
{
    static const uint8_t kinds[LOAD_KINDS] = {
        [LOAD_READ] = OP_GET, [LOAD_WRITE] = OP_SET, [LOAD_RMW] = OP_GETSET};
    if (w->queue_at == w->queue_n) {
        return false;
    }
    uint32_t i = w->queue[w->queue_at++];
    struct bench_session *s = &w->sessions[i];
    const struct bench_config *c = &w->cluster->config;
    if (s->txn != NULL) {
        drive_work_request(w, s, request_out);
        request_out->tag = i;
        return true;
    }
    *request_out = (struct request){
        .session = s->id,
        .tag = i,
        .op = {.kind = kinds[s->kind], .key = bytes_of(s->key, c->key_bytes)},
    };
    if (s->kind != LOAD_READ) {
        request_out->op.value = bytes_of(w->cluster->value, c->value_bytes);
    }
    return true;
}

void drive_reply(struct bench_worker *w, const struct reply *reply)
{
    const struct answer *a = &reply->answer;
    struct bench_session *s = &w->sessions[reply->tag];
    bool value = s->kind != LOAD_WRITE;
    /* Others were faster too often: that is no fault, and no operation that was done. */
    s->refused = w->phase != PHASE_FILL && a->kind == ANSWER_ERROR && a->number == HK_ERR_BUSY;
    if (s->txn != NULL) {
        enum drive_answer is = drive_work_reply(w, s, reply);
        w->failed += is == DRIVE_FAILED;
        if (is == DRIVE_STEP) {
            w->more[w->more_n++] = (uint32_t)reply->tag;
        } else {
            w->done[w->done_n++] = (uint32_t)reply->tag;
        }
        return;
    }
    w->failed += s->refused ? false
                 : value ? a->kind != ANSWER_VALUE || a->value.n != w->cluster->config.value_bytes
                         : a->kind != ANSWER_OK;
    w->done[w->done_n++] = (uint32_t)reply->tag;
}

/* ---- A round ---- */

/* What the node has not taken moves to the front, so that the queue always has room; behind it come
 * transactions with another step. */
static void settle_queue(struct bench_worker *w)
{
    uint32_t left = w->queue_n - w->queue_at;
    memmove(w->queue, w->queue + w->queue_at, left * sizeof *w->queue);
    memcpy(w->queue + left, w->more, w->more_n * sizeof *w->more);
    w->queue_at = 0;
    w->queue_n = left + w->more_n;
    w->more_n = 0;
}

static uint32_t draw(struct bench_worker *w)
{
    const struct bench_config *c = &w->cluster->config;
    if (w->node >= c->nodes - c->memory) {
        return 0; /* a memory server runs no transactions */
    }
    switch (w->phase) {
    case PHASE_FILL:
        return draw_fill(w);
    case PHASE_LOAD:
        return draw_load(w);
    case PHASE_FORM:
    case PHASE_DRAIN:
    case PHASE_PAUSED:
    case PHASE_STOP:
        return 0;
    }
    return 0;
}

bool drive_round(struct bench_worker *w)
{
    struct bench_cluster *c = w->cluster;
    /* acquire: pairs with the release in crew.c; times have been set before the phase was. */
    enum bench_phase phase =
        (enum bench_phase)atomic_load_explicit(&c->phase, memory_order_acquire);
    uint32_t run = atomic_load_explicit(&c->run, memory_order_relaxed);
    w->begun_ns = w->now_ns = bench_clock_ns();
    if (phase != w->phase) {
        begin_phase(w, phase);
    }
    if (run != w->run) {
        begin_run(w, run);
    }
    if (phase == PHASE_FORM || w->rounds++ % ADOPT_ROUNDS == 0) {
        port_adopt(w->port);
    }
    uint32_t drawn = draw(w);
    struct poll_result result = worker_poll(w->worker, now_us(w), POLL_EVENTS);
    /* A node that is out serves nothing any more: the run fails, and says why. */
    w->dropped = w->dropped || (result.flags & POLL_WIPE) != 0;
    port_flush(w->port);
    settle_queue(w);
    bool busy = drawn > 0 || result.events > 0 || w->queue_n > 0;
    if (w->done_n > 0) {
        w->now_ns = bench_clock_ns();
        book_done(w);
    }
    if (c->hub == NULL) {
        (void)loop_poll(w->loop, 0);
    }
    publish(w);
    if (busy) {
        w->busy_ns = w->now_ns;
    }
    return busy;
}

/* ---- Nothing to do ---- */

static uint64_t nothing_before_ns(const struct bench_worker *w)
{
    uint64_t due_us = worker_deadline(w->worker);
    uint64_t due_ns =
        due_us < UINT64_MAX / 2000u ? due_us * 1000u + w->cluster->pauses_ns : UINT64_MAX;
    if (w->phase == PHASE_LOAD && w->cluster->config.rate > 0.0 && session_left(w)) {
        uint64_t arrival_ns = w->schedule_base_ns + schedule_due_ns(&w->schedule);
        due_ns = arrival_ns < due_ns ? arrival_ns : due_ns;
    }
    return due_ns;
}

void drive_idle(struct bench_worker *w)
{
    /* The caller of a paused or resumed cluster is heard within this time. */
    const uint64_t longest_us = 20000;
    w->now_ns = bench_clock_ns();
    uint64_t due_ns = nothing_before_ns(w);
    if (w->now_ns - w->busy_ns < SPIN_NS || due_ns < w->now_ns + NEAR_NS) {
        if (w->cluster->yields) {
            (void)sched_yield();
        }
        return;
    }
    uint64_t wait_us =
        due_ns == UINT64_MAX ? longest_us : (due_ns - w->now_ns - NEAR_NS / 2) / 1000;
    if (!worker_sleep(w->worker)) {
        return;
    }
    if (w->reader != NULL) {
        node_reader_offline(w->reader);
    }
    (void)loop_poll(w->loop, wait_us < longest_us ? wait_us : longest_us);
    if (w->reader != NULL) {
        node_reader_online(w->reader);
    }
    worker_awake(w->worker);
}
