#include "bench/onesided.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"
#include "onesided/records.h"

#define IN_FLIGHT_MAX 65536u
#define CLOCK_EVERY 64u /* steps between two looks at the clock */

struct flight {
    struct one_txn txn;
    struct posting post, done;
    uint64_t begun_ns, due_ns;
    bool running;
};

/* A compute server's new keys, by number. */
struct fresh {
    struct one_room room;
    remote first[NODES_MAX]; /* of the room */
    uint64_t drawn, there;   /* there: all below it are of transactions that have ended */
    bool *ended;
};

struct bench_onesided {
    struct bench_onesided_config config;
    struct one_records records;
    struct bench_verbs ports;
    struct one_server servers[NODES_MAX];
    struct fresh fresh[NODES_MAX];
    struct keys keys;
    struct random random;
    struct flight *flights;
    uint32_t flights_n;
    uint64_t age, now_ns;
    uint64_t missing;               /* reads that did not find a key that is there */
    uint64_t written;               /* by all transactions that were ready */
    bool settles;                   /* nothing begins any more */
    struct bench_onesided_run *run; /* NULL: nothing is counted */
};

static uint64_t read_ns(clockid_t clock)
{
    struct timespec t;
    int err = clock_gettime(clock, &t);
    HK_ASSERT(err == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool sound(const struct bench_onesided_config *c)
{
    return c->memories > 0 && c->memories <= NODES_MAX && c->computes > 0 &&
           c->memories + c->computes <= NODES_MAX && c->in_flight > 0 &&
           (uint64_t)c->computes * c->in_flight <= IN_FLIGHT_MAX && c->requests > 0 &&
           c->requests <= ONE_REQUESTS_MAX && c->keys.n >= 2 * (uint64_t)c->requests &&
           (c->inserts == 0 || (c->keys.n % c->computes == 0 && !c->keys.scramble &&
                                c->keys.n / c->computes >= 2 * (uint64_t)c->requests)) &&
           c->config.value_words > 0 && c->config.value_words <= ONE_VALUE_WORDS_MAX &&
           c->config.value_more == 0;
}

static bool open_fresh(struct bench_onesided *b, uint32_t compute)
{
    struct fresh *f = &b->fresh[compute];
    one_room_open(&f->room, &b->records, b->config.config.value_words, b->config.inserts);
    memcpy(f->first, f->room.next, sizeof f->first);
    f->ended = calloc(b->config.inserts, sizeof *f->ended);
    return f->ended != NULL;
}

static bool open_all(struct bench_onesided *b)
{
    const struct bench_onesided_config *c = &b->config;
    bool there =
        c->inserts == 0
            ? one_records_open(&b->records, c->memories, c->keys.n, c->config.value_words, 0, true)
            : one_records_open_runs(&b->records, c->memories, c->keys.n, c->config.value_words,
                                    c->computes, (uint64_t)c->inserts * c->computes);
    if (!there || bench_verbs_open(&b->ports, &b->records.memory, c->computes) != HK_OK) {
        return false;
    }
    for (uint32_t i = 0; i < c->computes; i++) {
        if (!one_server_open(&b->servers[i], &b->records, c->cache) ||
            (c->inserts > 0 && !open_fresh(b, i))) {
            return false;
        }
    }
    b->flights_n = c->computes * c->in_flight;
    b->flights = calloc(b->flights_n, sizeof *b->flights);
    for (uint32_t i = 0; b->flights != NULL && i < b->flights_n; i++) {
        struct one_server *server = &b->servers[i % c->computes];
        b->flights[i].txn = (struct one_txn){.config = &c->config,
                                             .tree = &b->records.tree,
                                             .cache = server->cache,
                                             .hints = &server->hints,
                                             .random = &b->random};
        if (c->inserts > 0) {
            b->flights[i].txn.room = &b->fresh[i % c->computes].room;
        }
    }
    return b->flights != NULL;
}

struct bench_onesided *bench_onesided_open(const struct bench_onesided_config *config, int *err_out)
{
    struct bench_onesided *b = sound(config) ? calloc(1, sizeof *b) : NULL;
    *err_out = sound(config) ? HK_ERR_NOMEM : HK_ERR_INVALID;
    if (b == NULL) {
        return NULL;
    }
    b->config = *config;
    random_init(&b->random, config->seed);
    keys_init(&b->keys, &config->keys);
    if (!open_all(b)) {
        bench_onesided_close(b);
        return NULL;
    }
    *err_out = HK_OK;
    return b;
}

void bench_onesided_close(struct bench_onesided *b)
{
    for (uint32_t i = 0; i < b->config.computes; i++) {
        one_server_close(&b->servers[i]);
        free(b->fresh[i].ended);
    }
    bench_verbs_close(&b->ports);
    one_records_close(&b->records);
    free(b->flights);
    free(b);
}

/* ---- Workload D: the keys of a compute server are a run (one_run_key) ---- */

static uint64_t draw_latest(struct bench_onesided *b)
{
    uint32_t computes = b->config.computes;
    uint64_t each = b->config.keys.n / computes, home = random_below(&b->random, computes);
    uint64_t id = each - 1 - keys_draw(&b->keys, &b->random) / computes + b->fresh[home].there;
    return one_run_key(home, id);
}

static void draw_latest_txn(struct bench_onesided *b, struct flight *f, uint32_t compute)
{
    uint64_t each = b->config.keys.n / b->config.computes;
    struct fresh *fresh = &b->fresh[compute];
    struct one_request *r = f->txn.requests;
    for (uint32_t i = 0, at = 0; i < b->config.requests; i += at == i) {
        r[i].write = random_chance(&b->random, b->config.writes_ppm);
        bool insert = r[i].write && fresh->drawn < b->config.inserts;
        r[i].key = insert ? one_run_key(compute, each + fresh->drawn++) : draw_latest(b);
        for (at = 0; at < i && r[at].key != r[i].key; at++) {
        }
    }
    one_txn_begin(&f->txn, ++b->age, b->config.requests);
}

/* Its new keys may be read by others now. */
static void end_latest_txn(struct bench_onesided *b, const struct flight *f)
{
    uint64_t each = b->config.keys.n / b->config.computes;
    for (uint32_t i = 0; i < f->txn.n; i++) {
        const struct one_request *r = &f->txn.requests[i];
        struct fresh *fresh = &b->fresh[r->key >> 32];
        if (r->write && (uint32_t)r->key >= each) {
            fresh->ended[(uint32_t)r->key - each] = true;
        }
        while (fresh->there < fresh->drawn && fresh->ended[fresh->there]) {
            fresh->there++;
        }
    }
}

/* ---- Transactions ---- */

static void begin(struct bench_onesided *b, struct flight *f)
{
    if (b->config.inserts > 0) {
        draw_latest_txn(b, f, (uint32_t)(f - b->flights) % b->config.computes);
    } else {
        one_txn_draw(&f->txn, ++b->age, b->config.requests, b->config.writes_ppm, &b->keys);
    }
    f->begun_ns = b->now_ns;
    f->running = true;
}

static void end(struct bench_onesided *b, struct flight *f)
{
    HK_ASSERT(!f->txn.absent && !f->txn.full);
    if (b->config.inserts > 0) {
        end_latest_txn(b, f);
    }
    f->running = false;
    bool writes = false;
    for (uint32_t i = 0; i < f->txn.n; i++) {
        writes = writes || f->txn.requests[i].write;
    }
    if (b->run != NULL) {
        b->run->committed[writes]++;
        b->run->aborted += f->txn.tries;
        histogram_record(&b->run->latency[writes], b->now_ns - f->begun_ns);
    }
}

static void count_up(struct bench_onesided *b, struct one_txn *txn)
{
    for (uint32_t i = 0; i < txn->n; i++) {
        txn->requests[i].record[ONE_RECORD_HEAD] += txn->requests[i].write;
        b->written += txn->requests[i].write;
        b->missing += txn->requests[i].ghost && !txn->requests[i].write;
    }
}

/* One batch of verbs of one transaction: posted by the step before, done now. */
static void turn(struct bench_onesided *b, struct flight *f)
{
    if (f->due_ns > b->now_ns || (b->settles && !f->running)) {
        return;
    }
    uint32_t compute = (uint32_t)(f - b->flights) % b->config.computes;
    bench_verbs_run(&b->ports, compute, &f->post, b->run != NULL ? &b->run->count : NULL);
    struct posting *done = &f->done;
    done->n = f->post.n;
    memcpy(done->verbs, f->post.verbs, f->post.n * sizeof *f->post.verbs);
    f->post.n = 0;
    f->post.delay_ns = 0;
    enum one_step step = ONE_FINISHED;
    while (step != ONE_POSTED) {
        if (!f->running) {
            begin(b, f);
        }
        step = one_txn_step(&f->txn, done, &f->post);
        if (step == ONE_READY) {
            count_up(b, &f->txn);
        }
        if (step == ONE_FINISHED) {
            end(b, f);
            if (b->settles) {
                return;
            }
        }
    }
    f->due_ns = f->post.delay_ns == 0 ? 0 : b->now_ns + f->post.delay_ns;
}

static void run_for(struct bench_onesided *b, double seconds)
{
    b->now_ns = read_ns(CLOCK_MONOTONIC);
    uint64_t until_ns = b->now_ns + (uint64_t)(seconds * 1e9);
    uint32_t next = 0;
    while (b->now_ns < until_ns) {
        for (uint32_t i = 0; i < CLOCK_EVERY; i++) {
            turn(b, &b->flights[next]);
            next = next + 1 < b->flights_n ? next + 1 : 0;
        }
        b->now_ns = read_ns(CLOCK_MONOTONIC);
    }
}

void bench_onesided_run(struct bench_onesided *b, double warmup_s, double seconds,
                        struct bench_onesided_run *run_out)
{
    memset(run_out, 0, sizeof *run_out);
    histogram_init(&run_out->latency[0]);
    histogram_init(&run_out->latency[1]);
    b->run = NULL;
    run_for(b, warmup_s);
    b->run = run_out;
    uint64_t cpu_ns = read_ns(CLOCK_THREAD_CPUTIME_ID), ns = read_ns(CLOCK_MONOTONIC);
    run_for(b, seconds);
    run_out->cpu_ns = (double)(read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    run_out->seconds = (double)(read_ns(CLOCK_MONOTONIC) - ns) / 1e9;
    b->run = NULL;
}

static bool any_runs(const struct bench_onesided *b)
{
    for (uint32_t i = 0; i < b->flights_n; i++) {
        if (b->flights[i].running) {
            return true;
        }
    }
    return false;
}

static void add_record(const struct bench_onesided *b, remote at, uint64_t *sum, uint64_t *locked)
{
    const struct memory *memory = &b->records.memory;
    uint64_t lock = atomic_load_explicit(memory_word(memory, at), memory_order_relaxed);
    *locked += (lock & ~ONE_LOCK_AGE) != 0;
    *sum +=
        atomic_load_explicit(memory_word(memory, at + 8u * ONE_RECORD_HEAD), memory_order_relaxed);
}

bool bench_onesided_settle(struct bench_onesided *b)
{
    const struct bench_onesided_config *c = &b->config;
    uint64_t sum = 0, locked = 0;
    b->settles = true;
    while (any_runs(b)) {
        b->now_ns = read_ns(CLOCK_MONOTONIC);
        for (uint32_t i = 0; i < b->flights_n; i++) {
            turn(b, &b->flights[i]);
        }
    }
    for (uint64_t i = 0; i < c->keys.n; i++) {
        add_record(b, one_record_at(c->memories, c->config.value_words, i), &sum, &locked);
    }
    for (uint32_t i = 0; c->inserts > 0 && i < c->computes; i++) {
        const struct fresh *f = &b->fresh[i];
        for (uint32_t j = 0; j < c->memories; j++) {
            for (remote at = f->first[j]; at < f->room.next[j]; at += f->room.record_bytes) {
                add_record(b, at, &sum, &locked);
            }
        }
    }
    return sum == b->written && locked == 0 && b->missing == 0;
}
