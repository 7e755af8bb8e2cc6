/* The index in co-partitioned memory (src/onesided/dex.h) on this machine: YCSB A, B and C, single
 * requests with values of 8 bytes, over caches of several sizes ([L] 7.9), its verbs over ports in
 * shared memory. Every compute server has its own part of the keys. Prints, per operation: CPU
 * time, nodes found in the cache, READs (with looks at nodes that are on their way for another
 * operation), nodes written back, bytes both ways. All but the time is the same on every machine.
 *
 *   bench_dex_bench [keys of a compute server, 1000000] [operations of each, 1000000] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "bench/verbs.h"
#include "load/keys.h"
#include "onesided/dex.h"

#define COMPUTES 2u
#define MEMORIES 2u
#define IN_FLIGHT 16u
#define FIRST 64u
#define THETA 0.9

static struct memory memory;
static struct bench_verbs ports;
static struct one_tree trees[COMPUTES];
static struct keys keys;

static uint64_t cpu_ns(void)
{
    struct timespec t;
    int err = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    HK_ASSERT(err == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void build(uint64_t n)
{
    uint64_t part = (n * 32 / MEMORIES + (1u << 16)) & ~UINT64_C(1023);
    uint64_t *sorted = malloc(n * sizeof *sorted);
    bool there = sorted != NULL && memory_expose(&memory, MEMORIES, FIRST + COMPUTES * part);
    HK_ASSERT(there);
    for (uint64_t i = 0; i < n; i++) {
        sorted[i] = i;
    }
    for (uint32_t c = 0; c < COMPUTES; c++) {
        one_tree_build(&trees[c], &memory, ONE_NODE_WORDS_MAX, FIRST + c * part, sorted, sorted, n,
                       0.7);
    }
    free(sorted);
    int err = bench_verbs_open(&ports, &memory, COMPUTES);
    HK_ASSERT(err == 0);
}

/* Operations of one compute server, IN_FLIGHT at a time. */
static void run(struct dex *dex, uint32_t compute, uint32_t writes_ppm, uint64_t operations,
                struct bench_verbs_count *count)
{
    static struct dex_op ops[IN_FLIGHT];
    static struct posting postings[IN_FLIGHT];
    struct random random;
    random_init(&random, 1 + compute);
    uint64_t done = 0, begun = 0;
    bool runs[IN_FLIGHT] = {false};
    for (uint32_t i = 0; done < operations; i = (i + 1) % IN_FLIGHT) {
        if (!runs[i] && begun < operations) {
            bool put = random_chance(&random, writes_ppm);
            dex_begin(&ops[i], dex, put ? DEX_PUT : DEX_GET, keys_draw(&keys, &random), begun++);
            postings[i].n = 0;
            runs[i] = true;
        } else if (!runs[i]) {
            continue;
        }
        if (postings[i].n > 0) {
            bench_verbs_run(&ports, compute, &postings[i], count);
            postings[i].n = 0;
        }
        if (dex_step(&ops[i], &postings[i])) {
            HK_ASSERT(ops[i].found);
            runs[i] = false;
            done++;
        }
    }
}

static void measure(char name, uint32_t writes_ppm, double part, uint64_t operations)
{
    struct bench_verbs_count count = {.batches = 0};
    struct dex_stats sum = {.hits = 0};
    uint64_t nodes[ONE_LEVELS_MAX], all = 0, ns = 0;
    for (uint32_t c = 0; c < COMPUTES; c++) {
        struct dex dex;
        all = 0;
        for (uint32_t i = one_tree_count(&trees[c], &memory, nodes); i-- > 0;) {
            all += nodes[i];
        }
        bool there = dex_open(&dex, &trees[c], &memory, 0,
                              (uint64_t)(part * (double)(all * DEX_NODE_BYTES)));
        HK_ASSERT(there);
        run(&dex, c, writes_ppm, operations, NULL); /* warms it */
        struct dex_stats before = dex.stats;
        uint64_t from = cpu_ns();
        run(&dex, c, writes_ppm, operations, &count);
        ns += cpu_ns() - from;
        sum.hits += dex.stats.hits - before.hits;
        sum.misses += dex.stats.misses - before.misses;
        sum.written_back += dex.stats.written_back - before.written_back;
        dex_close(&dex);
    }
    double ops = (double)(COMPUTES * operations);
    printf(
        "ycsb-%c  cache %5.1f %%  %7.0f ns  hit %5.2f %%  reads %.3f  written %.3f  bytes %.0f\n",
        name, part * 100, (double)ns / ops,
        100.0 * (double)(sum.hits - sum.misses) / (double)sum.hits,
        (double)count.verbs[VERB_READ] / ops, (double)sum.written_back / ops,
        (double)count.bytes / ops);
}

int main(int argc, char **argv)
{
    static const double parts[] = {0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28};
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    uint64_t operations = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
    struct keys_config config = {.n = n, .exponent = THETA, .scramble = true, .seed = 1};
    if (n < 1000 || operations == 0) {
        (void)fprintf(stderr, "usage: bench_dex_bench [KEYS] [OPERATIONS]\n");
        return 2;
    }
    keys_init(&keys, &config);
    build(n);
    for (uint32_t w = 0; w < 3; w++) {
        static const uint32_t writes[] = {500000, 50000, 0};
        for (uint32_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
            measure("abc"[w], writes[w], parts[i], operations);
        }
    }
    bench_verbs_close(&ports);
    memory_close(&memory);
    return 0;
}
