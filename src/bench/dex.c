#include "bench/dex.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"

#define IN_FLIGHT_MAX 65536u
#define CLOCK_EVERY 64u /* turns between two looks at the clock */
#define FIRST 64u       /* bytes of a memory server below the trees */
#define FILL 0.7        /* of leaves, as random insertion leaves them */
#define VALUE_SHIFT 32u

struct flight {
    struct dex_op op;
    struct posting post;
    struct {
        uint64_t key;
        bool write;
    } requests[ONE_REQUESTS_MAX]; /* ascending */
    uint32_t locked, at;          /* of them: locked, and done */
    uint32_t compute;
    uint64_t begun_ns, due_ns;
    bool running;
    bool busy;  /* op has begun */
    bool reads; /* op is the read before a write */
};

struct bench_dex {
    struct bench_dex_config config;
    struct memory memory;
    struct bench_verbs ports;
    struct one_tree trees[NODES_MAX];
    struct dex dexes[NODES_MAX];
    int32_t *locks[NODES_MAX]; /* by key: -1 exclusively, else how many share it */
    bool locking;
    struct keys keys;
    struct random random;
    struct flight *flights;
    uint32_t flights_n;
    uint32_t number; /* of the value that is written next */
    uint64_t now_ns;
    uint64_t counted, wrong; /* writes of reads_first; operations that found what cannot be */
    bool settles;
    struct bench_onesided_run *run; /* NULL: nothing is counted */
};

static uint64_t read_ns(clockid_t clock)
{
    struct timespec t;
    int err = clock_gettime(clock, &t);
    HK_ASSERT(err == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static bool sound(const struct bench_dex_config *c)
{
    return c->memories > 0 && c->memories <= NODES_MAX && c->computes > 0 &&
           c->memories + c->computes <= NODES_MAX && c->in_flight > 0 &&
           (uint64_t)c->computes * c->in_flight <= IN_FLIGHT_MAX && c->requests > 0 &&
           c->requests <= ONE_REQUESTS_MAX && c->keys.n >= 2 * (uint64_t)c->requests &&
           c->keys.n <= (UINT64_C(1) << VALUE_SHIFT) && c->cache > 0.0;
}

/* ---- Opening ---- */

/* A tree for each compute server. */
static bool build(struct bench_dex *b)
{
    const struct bench_dex_config *c = &b->config;
    uint64_t n = c->keys.n;
    uint64_t part = (n * 32 / c->memories + (1u << 16)) & ~UINT64_C(1023);
    uint64_t *keys = malloc(n * sizeof *keys), *values = malloc(n * sizeof *values);
    bool there = keys != NULL && values != NULL &&
                 memory_expose(&b->memory, c->memories, FIRST + c->computes * part);
    for (uint64_t i = 0; there && i < n; i++) {
        keys[i] = i;
        values[i] = i << VALUE_SHIFT;
    }
    for (uint32_t i = 0; there && i < c->computes; i++) {
        one_tree_build(&b->trees[i], &b->memory, ONE_NODE_WORDS_MAX, FIRST + i * part, keys, values,
                       n, FILL);
    }
    free(keys);
    free(values);
    return there;
}

static bool open_server(struct bench_dex *b, uint32_t compute)
{
    const struct bench_dex_config *c = &b->config;
    uint64_t nodes[ONE_LEVELS_MAX], all = 0;
    for (uint32_t i = one_tree_count(&b->trees[compute], &b->memory, nodes); i-- > 0;) {
        all += nodes[i];
    }
    b->locks[compute] = b->locking ? calloc(c->keys.n, sizeof *b->locks[compute]) : NULL;
    return dex_open(&b->dexes[compute], &b->trees[compute], &b->memory, 0,
                    (uint64_t)(c->cache * (double)(all * DEX_NODE_BYTES))) &&
           (!b->locking || b->locks[compute] != NULL);
}

static int open_all(struct bench_dex *b)
{
    const struct bench_dex_config *c = &b->config;
    b->locking = c->requests > 1 || c->reads_first;
    if (!build(b)) {
        return HK_ERR_NOMEM;
    }
    int err = bench_verbs_open(&b->ports, &b->memory, c->computes);
    for (uint32_t i = 0; err == HK_OK && i < c->computes; i++) {
        err = open_server(b, i) ? HK_OK : HK_ERR_NOMEM;
    }
    b->flights_n = c->computes * c->in_flight;
    b->flights = calloc(b->flights_n, sizeof *b->flights);
    for (uint32_t i = 0; b->flights != NULL && i < b->flights_n; i++) {
        b->flights[i].compute = i % c->computes;
    }
    return err == HK_OK && b->flights == NULL ? HK_ERR_NOMEM : err;
}

struct bench_dex *bench_dex_open(const struct bench_dex_config *config, int *err_out)
{
    struct bench_dex *b = sound(config) ? calloc(1, sizeof *b) : NULL;
    *err_out = sound(config) ? HK_ERR_NOMEM : HK_ERR_INVALID;
    if (b == NULL) {
        return NULL;
    }
    b->config = *config;
    random_init(&b->random, config->seed);
    keys_init(&b->keys, &config->keys);
    *err_out = open_all(b);
    if (*err_out != HK_OK) {
        bench_dex_close(b);
        return NULL;
    }
    return b;
}

void bench_dex_close(struct bench_dex *b)
{
    for (uint32_t i = 0; i < b->config.computes; i++) {
        dex_close(&b->dexes[i]);
        free(b->locks[i]);
    }
    bench_verbs_close(&b->ports);
    memory_close(&b->memory);
    free(b->flights);
    free(b);
}

/* ---- Transactions ---- */

/* Keeps requests in the order of their keys. False: it has one for this key. */
static bool put_in(struct flight *f, uint32_t n, uint64_t key, bool write)
{
    uint32_t at = n;
    while (at > 0 && f->requests[at - 1].key > key) {
        at--;
    }
    if (at > 0 && f->requests[at - 1].key == key) {
        return false;
    }
    memmove(&f->requests[at + 1], &f->requests[at], (n - at) * sizeof f->requests[0]);
    f->requests[at].key = key;
    f->requests[at].write = write;
    return true;
}

static void begin(struct bench_dex *b, struct flight *f)
{
    for (uint32_t i = 0; i < b->config.requests;) {
        uint64_t key = keys_draw(&b->keys, &b->random);
        i += put_in(f, i, key, random_chance(&b->random, b->config.writes_ppm));
    }
    f->at = 0;
    f->locked = b->locking ? 0 : b->config.requests;
    f->begun_ns = b->now_ns;
    f->running = true;
    f->busy = false;
    f->reads = false;
}

/* All locks, in the order of keys. False: another has one of them; it is looked for again. */
static bool lock_all(struct bench_dex *b, struct flight *f)
{
    for (; f->locked < b->config.requests; f->locked++) {
        int32_t *lock = &b->locks[f->compute][f->requests[f->locked].key];
        bool write = f->requests[f->locked].write;
        if (*lock < 0 || (write && *lock > 0)) {
            return false;
        }
        *lock += write ? -1 : 1;
    }
    return true;
}

static void end(struct bench_dex *b, struct flight *f)
{
    bool writes = false;
    for (uint32_t i = 0; i < b->config.requests; i++) {
        writes = writes || f->requests[i].write;
        if (b->locking) {
            b->locks[f->compute][f->requests[i].key] += f->requests[i].write ? 1 : -1;
        }
    }
    f->running = false;
    if (b->run != NULL) {
        b->run->committed[writes]++;
        histogram_record(&b->run->latency[writes], b->now_ns - f->begun_ns);
    }
}

/* The operation of the present request; of a write that reads first, the read is one of its own. */
static void begin_op(struct bench_dex *b, struct flight *f, uint64_t read)
{
    uint64_t key = f->requests[f->at].key;
    bool put = f->requests[f->at].write && (f->reads || !b->config.reads_first);
    f->reads = f->requests[f->at].write && !put;
    uint64_t value = b->config.reads_first ? read + 1 : key << VALUE_SHIFT | b->number++;
    dex_begin(&f->op, &b->dexes[f->compute], put ? DEX_PUT : DEX_GET, key, value);
    f->busy = true;
}

static void end_op(struct bench_dex *b, struct flight *f)
{
    b->wrong += !f->op.found || f->op.value >> VALUE_SHIFT != f->op.key;
    if (f->reads) {
        begin_op(b, f, f->op.value);
        return;
    }
    b->counted += f->op.kind == DEX_PUT;
    f->busy = false;
    f->at++;
}

/* What was posted is done now; then it goes as far as it gets, up to its transaction's end. */
static void turn(struct bench_dex *b, struct flight *f)
{
    if (f->due_ns > b->now_ns || (b->settles && !f->running)) {
        return;
    }
    if (f->post.n > 0) {
        bench_verbs_run(&b->ports, f->compute, &f->post, b->run != NULL ? &b->run->count : NULL);
        f->post.n = 0;
        f->post.delay_ns = 0;
    }
    if (!f->running) {
        begin(b, f);
    }
    if (!lock_all(b, f)) {
        return;
    }
    while (f->at < b->config.requests) {
        if (!f->busy) {
            begin_op(b, f, 0);
        }
        if (!dex_step(&f->op, &f->post)) {
            f->due_ns = f->post.delay_ns == 0 ? 0 : b->now_ns + f->post.delay_ns;
            return;
        }
        end_op(b, f);
    }
    end(b, f);
}

/* ---- Runs ---- */

static void run_for(struct bench_dex *b, double seconds)
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

static struct dex_stats all_stats(const struct bench_dex *b)
{
    struct dex_stats sum = {.hits = 0};
    for (uint32_t i = 0; i < b->config.computes; i++) {
        const struct dex_stats *s = &b->dexes[i].stats;
        sum.hits += s->hits;
        sum.misses += s->misses;
        sum.written_back += s->written_back;
        sum.waits += s->waits;
    }
    return sum;
}

void bench_dex_run(struct bench_dex *b, double warmup_s, double seconds,
                   struct bench_onesided_run *run_out, struct dex_stats *stats_out)
{
    memset(run_out, 0, sizeof *run_out);
    histogram_init(&run_out->latency[0]);
    histogram_init(&run_out->latency[1]);
    b->run = NULL;
    run_for(b, warmup_s);
    b->run = run_out;
    struct dex_stats before = all_stats(b);
    uint64_t cpu_ns = read_ns(CLOCK_THREAD_CPUTIME_ID), ns = read_ns(CLOCK_MONOTONIC);
    run_for(b, seconds);
    run_out->cpu_ns = (double)(read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
    run_out->seconds = (double)(read_ns(CLOCK_MONOTONIC) - ns) / 1e9;
    b->run = NULL;
    *stats_out = all_stats(b);
    stats_out->hits -= before.hits;
    stats_out->misses -= before.misses;
    stats_out->written_back -= before.written_back;
    stats_out->waits -= before.waits;
}

static bool any_runs(const struct bench_dex *b)
{
    for (uint32_t i = 0; i < b->flights_n; i++) {
        if (b->flights[i].running) {
            return true;
        }
    }
    return false;
}

static uint64_t number_of(struct bench_dex *b, uint32_t compute, uint64_t key)
{
    struct flight *f = &b->flights[0];
    f->post.n = 0;
    dex_begin(&f->op, &b->dexes[compute], DEX_GET, key, 0);
    while (!dex_step(&f->op, &f->post)) {
        bench_verbs_run(&b->ports, compute, &f->post, NULL);
        f->post.n = 0;
    }
    b->wrong += !f->op.found || f->op.value >> VALUE_SHIFT != key;
    return f->op.value & ((UINT64_C(1) << VALUE_SHIFT) - 1);
}

bool bench_dex_settle(struct bench_dex *b)
{
    uint64_t sum = 0, locked = 0;
    b->settles = true;
    while (any_runs(b)) {
        b->now_ns = read_ns(CLOCK_MONOTONIC);
        for (uint32_t i = 0; i < b->flights_n; i++) {
            turn(b, &b->flights[i]);
        }
    }
    for (uint32_t i = 0; i < b->config.computes; i++) {
        for (uint64_t key = 0; key < b->config.keys.n; key++) {
            sum += number_of(b, i, key);
            locked += b->locking && b->locks[i][key] != 0;
        }
    }
    return b->wrong == 0 && locked == 0 && (!b->config.reads_first || sum == b->counted);
}
