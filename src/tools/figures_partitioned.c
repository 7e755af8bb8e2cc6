/* [L] figures 14 to 17b: co-partitioned memory, a cache of records beside one of index nodes. */
#include "base/err.h"
#include "sim/cost_partitioned.h"
#include "tools/figures_onesided.h"

#define KEYS 20000000u
#define QUICK_KEYS 200000u
#define WARM_NS 60000000u
#define RUN_NS 10000000u
#define QUICK_WARM_NS 2000000u
#define QUICK_RUN_NS 500000u
#define MACHINE_THREADS 48u /* of which memory servers take theirs */
#define MILLION 1e6
#define KILO 1000.0
#define PERCENT 100.0
/* Bytes of the index for a key: 16 of each entry, in leaves that are as full as random insertion
 * leaves them. */
#define KEY_BYTES (16 / 0.7)

static const char *const curves[COST_PART_CACHES][3] = {
    [COST_PART_RECORDS] = {"records A", "records B", "records C"},
    [COST_PART_NODES] = {"nodes A", "nodes B", "nodes C"}};

struct wish {
    uint8_t cache;
    uint32_t workload;
    uint32_t threads, memory_threads;
    double part; /* the cache's, of the index */
};

static bool play(struct figure_run *run, const struct wish *wish, struct cost_part_result *result)
{
    bool quick = run->options->quick;
    uint64_t keys = quick ? QUICK_KEYS : KEYS;
    struct cost_part_setup setup = {
        .wire = cost_disaggregated.wire,
        .cache = wish->cache,
        .computes = LOTUS_MACHINES,
        .memories = LOTUS_MACHINES,
        .threads = wish->threads,
        .memory_threads = wish->memory_threads,
        .requests = LOTUS_REQUESTS,
        .writes_ppm = lotus_writes_ppm[wish->workload],
        .keys = keys,
        .exponent = LOTUS_EXPONENT,
        .cache_bytes = (uint64_t)(wish->part * (double)keys * KEY_BYTES),
        .warm_ns = quick ? QUICK_WARM_NS : WARM_NS,
        .run_ns = quick ? QUICK_RUN_NS : RUN_NS,
        .seed = run->options->seed,
    };
    figure_progress(run, "%s, %u threads, cache %.0f %%", curves[wish->cache][wish->workload],
                    wish->threads, wish->part * PERCENT);
    int err = cost_part_run(&setup, result);
    if (err != HK_OK && run->err == HK_OK) {
        run->err = err;
    }
    return err == HK_OK;
}

static struct cost_part_result result;

void figure_part_threads(struct figure_run *run)
{
    static const uint32_t threads[] = {1, 4, 8, 16, 32, 40};
    for (uint8_t cache = 0; cache < COST_PART_CACHES; cache++) {
        for (uint32_t workload = 0; workload < 3; workload++) {
            for (uint32_t i = 0; i < sizeof threads / sizeof *threads; i++) {
                struct wish wish = {cache, workload, threads[i], LOTUS_MEMORY_THREADS, LOTUS_CACHE};
                if (!play(run, &wish, &result)) {
                    return;
                }
                figure_add(run, threads[i], result.txns_per_s / MILLION, "%s",
                           curves[cache][workload]);
            }
        }
    }
}

/* The workload is the place on the axis. */
void figure_part_traffic(struct figure_run *run)
{
    for (uint8_t cache = 0; cache < COST_PART_CACHES; cache++) {
        for (uint32_t workload = 0; workload < 3; workload++) {
            struct wish wish = {cache, workload, LOTUS_THREADS, LOTUS_MEMORY_THREADS, LOTUS_CACHE};
            if (!play(run, &wish, &result) || result.committed == 0) {
                return;
            }
            figure_add(run, workload, (double)result.bytes / (double)result.committed / KILO, "%s",
                       cost_part_names[cache]);
        }
    }
}

void figure_part_cache(struct figure_run *run)
{
    static const double parts[] = {0.02, 0.04, 0.08, 0.16, 0.32, 0.64};
    for (uint8_t cache = 0; cache < COST_PART_CACHES; cache++) {
        for (uint32_t workload = 0; workload < 3; workload += 2) {
            for (uint32_t i = 0; i < sizeof parts / sizeof *parts; i++) {
                struct wish wish = {cache, workload, LOTUS_THREADS, LOTUS_MEMORY_THREADS, parts[i]};
                if (!play(run, &wish, &result)) {
                    return;
                }
                figure_add(run, parts[i] * PERCENT, result.txns_per_s / MILLION, "%s",
                           curves[cache][workload]);
            }
        }
    }
}

/* What memory servers take of a machine's threads its compute server does not have. */
void figure_part_memory(struct figure_run *run)
{
    static const uint32_t memory[] = {1, 2, 4, 8, 16};
    for (uint8_t cache = 0; cache < COST_PART_CACHES; cache++) {
        for (uint32_t i = 0; i < sizeof memory / sizeof *memory; i++) {
            struct wish wish = {cache, 1, MACHINE_THREADS - memory[i], memory[i], LOTUS_CACHE};
            if (!play(run, &wish, &result)) {
                return;
            }
            figure_add(run, memory[i], result.txns_per_s / MILLION, "%s", curves[cache][1]);
        }
    }
}
