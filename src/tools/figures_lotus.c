/* The figures of [L] 7: throughput, latency, traffic and the memory servers' time of YCSB in
 * transactions, with each policy and with the one-sided baselines, on four compute and four memory
 * servers. A point is played once, whichever figures show it. */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "tools/figures_onesided.h"

#define COMPUTES 4u
#define MEMORIES 4u
/* A thread of [L]'s compute servers has one transaction at a time: a worker here has so many of
 * them in flight as there are threads for each of the memory server's, at the most 40 / 8. */
#define WORKERS 8u
#define THREADS_MOST 40u
#define THREADS_MACHINE 48u /* of both servers */
#define GROUP_THREADS 8u    /* of a batch group ([L] 6.2) */
#define REQUESTS 16u
#define REQUESTS_LONG 32u
#define VALUE_BYTES 1000u
/* 100 million records by their popularity on 81,920: the most popular ones have their own, those
 * that 128 MB of hints reach share half of the others. */
#define RECORDS_A_NODE 20480u
#define RANKS 100000000u
#define RANKS_WHOLE 4096u
#define RANKS_HINTED 4000000u
#define RECORDS_HINTED 40960u
#define HINTS_MAX 40960u
/* Caches fill while a cluster warms up. The later ones of its points only let the threads that were
 * added come into step, and all but the last are for throughput, which needs fewer transactions
 * than a 99.9th percentile does. */
#define WARM_NS 100000000u
#define SETTLE_NS 10000000u
#define RUN_NS 50000000u
#define RUN_NS_THROUGHPUT 20000000u
#define NS_PER_MS 1000000u
#define QUICK_WARM_NS 2000000u
#define QUICK_RUN_NS 4000000u
#define QUICK_RECORDS 1024u
#define QUICK_WORKERS 2u

/* What Lotus consists of, one after the other ([L] 7.7). */
enum increment { VANILLA, CACHING, INSIDE, ACROSS, INCREMENTS };

struct design {
    const char *name;
    bool one_sided; /* played by its own model (cost_onesided.h) */
    uint8_t policy; /* enum lock_policy, enum one_policy */
};
static const struct design designs[] = {
    {"lotus no_wait", false, LOCK_NO_WAIT},       {"lotus wait_die", false, LOCK_WAIT_DIE},
    {"lotus wound_wait", false, LOCK_WOUND_WAIT}, {"one-sided no_wait", true, ONE_NO_WAIT},
    {"one-sided wait_die", true, ONE_WAIT_DIE},
};
#define DESIGNS (sizeof designs / sizeof designs[0])
#define LOTUSES 3u /* the first ones */
#define WOUND_WAIT 2u
#define BASELINE 3u /* what figure 8 compares with */

struct spot {
    enum work_kind kind;
    size_t design;
    enum increment increment;
    uint32_t requests;
    uint32_t threads; /* of a compute server */
    uint32_t workers; /* of a memory server */
    uint32_t slow;    /* so many times as long memory servers take, whatever their workers; 0: once,
                         with the workers that they have */
};

/* Percentiles beside the mean. */
static const uint32_t ppms[] = {950000, 990000, 999000, 999900};
#define PPMS (sizeof ppms / sizeof ppms[0])

struct point {
    struct spot spot;
    double ktxns; /* thousand transactions a second */
    double mean_ms, ms[PPMS];
    double kb;          /* on the network, a transaction, without its records */
    double per_message; /* rows that one message asks for */
    double per_frame;   /* rows, PREPAREs, COMMITs and ABORTs of a compute server's frame */
    double tries, hints;
    double rows, waits; /* locks that memory servers were asked for, those that waited; a commit */
    double busy, parts[COST_PARTS];
    double compute_busy;
};

/* What was played: the same points are wanted by several figures of a run. */
#define POINTS_MAX 512u
static struct {
    struct point points[POINTS_MAX];
    uint32_t n;
    const struct figures_options *options;
} played;

/* ---- Playing ---- */

/* Of a machine's 48 threads those of its memory server: the compute server's time is no limit. */
static struct cost_machine machine_of(const struct spot *at)
{
    struct cost_machine m = cost_disaggregated;
    m.workers = at->workers;
    return m;
}

static struct figure_wish wish_of(const struct figure_run *run, const struct spot *at,
                                  const struct work_config *work,
                                  const struct cost_machine *machine)
{
    bool quick = run->options->quick;
    return (struct figure_wish){
        .machine = machine,
        .engine = &lotus_ops,
        .nodes = COMPUTES + MEMORIES,
        .workers = quick && at->workers > QUICK_WORKERS ? QUICK_WORKERS : at->workers,
        .window_most = at->workers == WORKERS ? THREADS_MOST / WORKERS : at->threads / at->workers,
        .frame_messages_max = at->increment < ACROSS ? 1 : 0,
        .work = work,
        .degree = 1,
        .memory = MEMORIES,
        .memory_slow = (double)at->slow * at->workers / WORKERS,
        .lotus = {.lock.policy = designs[at->design].policy,
                  .hints_off = at->increment < CACHING,
                  .one_at_a_time = at->increment < INSIDE,
                  .across = at->increment == ACROSS,
                  .hints_max = HINTS_MAX,
                  .tries_max = 1024,
                  .locks_max = 1u << 16},
    };
}

static struct work_config records_of(const struct figure_run *run, const struct spot *at)
{
    struct work_config work = work_defaults(at->kind);
    bool quick = run->options->quick;
    work.requests = at->requests;
    work.value_bytes = VALUE_BYTES;
    work.objects = quick ? QUICK_RECORDS : RECORDS_A_NODE;
    if (!quick) {
        work.fold = (struct keys_fold){
            .ranks = RANKS, .whole = RANKS_WHOLE, .hot = RANKS_HINTED, .hot_keys = RECORDS_HINTED};
    }
    return work;
}

/* Traffic as [L] 7.5 counts it: without the records of transactions that committed, one way for
 * what is read, and for what is written both ways. */
static double traffic_kb(const struct spot *at, const struct cost_result *r, double txns)
{
    double records = at->requests * (1.0 + work_defaults(at->kind).writes / 100.0);
    double kb = (double)r->bytes / txns / 1000.0 - records * VALUE_BYTES / 1000.0;
    return kb > 0 ? kb : 0;
}

static void sum_up(const struct spot *at, const struct cost_result *r, struct point *p)
{
    double txns = (double)(r->reads + r->writes), parts = 0;
    const struct node_stats *n = &r->node;
    struct histogram all = r->read;
    histogram_merge(&all, &r->write);
    /* There are as many memory servers as compute servers. */
    _Static_assert(MEMORIES == COMPUTES, "half of all workers");
    *p = (struct point){.spot = *at,
                        .ktxns = r->ops_per_s / 1e3,
                        .busy = 100 * r->memory_busy,
                        .compute_busy = 100 * (2 * r->cpu_busy - r->memory_busy)};
    if (txns == 0) {
        return;
    }
    p->mean_ms = histogram_mean(&all) * 1e-6;
    for (size_t i = 0; i < PPMS; i++) {
        p->ms[i] = (double)histogram_percentile(&all, ppms[i]) * 1e-6;
    }
    p->kb = traffic_kb(at, r, txns);
    double messages = (double)(n->home_executes + n->home_wholes);
    p->per_message = (double)n->home_items / messages;
    p->per_frame =
        ((double)n->home_items + (double)n->lotus_requests - messages) / (double)r->compute_frames;
    p->tries = (double)n->lotus_tries / (double)n->lotus_transactions;
    p->rows = (double)n->home_items / txns;
    p->waits = (double)n->home_waits / txns;
    p->hints = 100 * (double)n->home_hints_good / (double)n->home_items;
    for (uint32_t i = 0; i < COST_PARTS; i++) {
        parts += r->memory_ns[i];
    }
    for (uint32_t i = 0; i < COST_PARTS; i++) {
        p->parts[i] = 100 * r->memory_ns[i] / parts;
    }
}

static void sum_up_one_sided(const struct spot *at, const struct cost_one_result *r,
                             struct point *p)
{
    double txns = (double)r->committed;
    *p = (struct point){.spot = *at,
                        .ktxns = r->txns_per_s / 1e3,
                        .per_message = NAN,
                        .per_frame = NAN,
                        .hints = NAN,
                        .busy = NAN};
    if (txns == 0) {
        return;
    }
    p->mean_ms = histogram_mean(&r->latency) * 1e-6;
    for (size_t i = 0; i < PPMS; i++) {
        p->ms[i] = (double)histogram_percentile(&r->latency, ppms[i]) * 1e-6;
    }
    p->kb = (double)r->bytes / txns / 1000.0;
    p->tries = 1.0 + (double)r->aborted / txns;
}

static bool same(const struct spot *a, const struct spot *b)
{
    return a->kind == b->kind && a->design == b->design && a->increment == b->increment &&
           a->requests == b->requests && a->threads == b->threads && a->workers == b->workers &&
           a->slow == b->slow;
}

static const struct point *found(const struct figure_run *run, const struct spot *at)
{
    if (played.options != run->options) {
        played.n = 0;
        played.options = run->options;
    }
    for (uint32_t i = 0; i < played.n; i++) {
        if (same(&played.points[i].spot, at)) {
            return &played.points[i];
        }
    }
    return NULL;
}

static void play_one_sided(struct figure_run *run, struct spot at, const uint32_t *threads,
                           size_t n)
{
    static struct cost_one_result r;
    for (size_t i = 0; i < n && played.n < POINTS_MAX; i++) {
        at.threads = threads[i];
        struct one_sided one = {.policy = designs[at.design].policy,
                                .workload = (uint32_t)(at.kind - WORK_YCSB_A),
                                .threads = threads[i],
                                .requests = at.requests};
        if (found(run, &at) == NULL && one_sided_play(run, &one, &r)) {
            sum_up_one_sided(&at, &r, &played.points[played.n++]);
        }
    }
}

/* One cluster, at as many threads as are wanted, the fewest first. Percentiles are shown of the
 * last. */
static void play(struct figure_run *run, struct spot at, const uint32_t *threads, size_t n)
{
    static struct cost_result r;
    struct figure_cluster cluster;
    bool quick = run->options->quick, missing = false;
    for (size_t i = 0; i < n; i++) {
        at.threads = threads[i];
        missing = missing || found(run, &at) == NULL;
    }
    if (!missing || run->err != HK_OK) {
        return;
    }
    if (designs[at.design].one_sided) {
        play_one_sided(run, at, threads, n);
        return;
    }
    struct work_config work = records_of(run, &at);
    const struct cost_machine machine = machine_of(&at);
    struct figure_wish wish = wish_of(run, &at, &work, &machine);
    figure_progress(run, "%s, %s, %u requests, filling", work_kind_names[at.kind],
                    designs[at.design].name, at.requests);
    if (!figure_open(run, &wish, &cluster)) {
        return;
    }
    for (size_t i = 0; i < n && played.n < POINTS_MAX; i++) {
        at.threads = threads[i];
        struct cost_load load = {.window = threads[i] / at.workers,
                                 .warm_ns = quick    ? QUICK_WARM_NS
                                            : i == 0 ? WARM_NS
                                                     : SETTLE_NS,
                                 .run_ns = quick        ? QUICK_RUN_NS
                                           : i + 1 == n ? RUN_NS
                                                        : RUN_NS_THROUGHPUT,
                                 .seed = run->options->seed};
        figure_progress(run, "%s, %s, %u requests, %u threads", work_kind_names[at.kind],
                        designs[at.design].name, at.requests, at.threads);
        cost_cluster_run(cluster.cluster, &load, &r);
        if (found(run, &at) == NULL) {
            r.ops_per_s *= cluster.scale;
            sum_up(&at, &r, &played.points[played.n++]);
        }
    }
    figure_close(&cluster);
}

/* The point, played if need be; all zero after an error. */
static struct point point_of(struct figure_run *run, struct spot at)
{
    play(run, at, &at.threads, 1);
    const struct point *p = found(run, &at);
    return p != NULL ? *p : (struct point){.spot = at};
}

static struct spot spot_of(enum work_kind kind, size_t design)
{
    return (struct spot){.kind = kind,
                         .design = design,
                         .increment = ACROSS,
                         .requests = REQUESTS,
                         .threads = THREADS_MOST,
                         .workers = WORKERS};
}

/* What a table's caption says: how much was played, and for how long. */
static void note(struct figure_run *run)
{
    bool quick = run->options->quick;
    snprintf(run->note, sizeof run->note,
             "%u compute and %u memory servers of %u workers; 100 million records folded onto %u; "
             "Lotus warmed up for %u ms, measured for %u.",
             COMPUTES, MEMORIES, quick ? QUICK_WORKERS : WORKERS,
             COMPUTES * (quick ? QUICK_RECORDS : RECORDS_A_NODE),
             (quick ? QUICK_WARM_NS : WARM_NS) / NS_PER_MS,
             (quick ? QUICK_RUN_NS : RUN_NS) / NS_PER_MS);
}

static void note_threads(struct figure_run *run)
{
    note(run);
    if (!run->options->quick) {
        size_t n = strlen(run->note);
        snprintf(run->note + n, sizeof run->note - n,
                 " Below %u threads %u ms; %u ms between points.", THREADS_MOST,
                 RUN_NS_THROUGHPUT / NS_PER_MS, SETTLE_NS / NS_PER_MS);
    }
}

/* ---- Figure 5: threads ---- */

static void by_threads(struct figure_run *run, enum work_kind kind)
{
    static const uint32_t threads[] = {8, 16, 24, 32, THREADS_MOST};
    note_threads(run);
    for (size_t d = 0; d < DESIGNS; d++) {
        play(run, spot_of(kind, d), threads, sizeof threads / sizeof threads[0]);
    }
    for (size_t d = 0; d < DESIGNS && run->err == HK_OK; d++) {
        for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) {
            struct spot at = spot_of(kind, d);
            at.threads = threads[i];
            const struct point *p = found(run, &at);
            if (p == NULL) {
                continue;
            }
            const char *name = designs[d].name;
            figure_add(run, threads[i], p->ktxns, "%s", name);
            figure_add(run, threads[i], p->tries, "= %s tries", name);
            if (!designs[d].one_sided) {
                figure_add(run, threads[i], p->hints, "= %s good hints (%%)", name);
                figure_add(run, threads[i], p->busy, "= %s memory servers busy (%%)", name);
                figure_add(run, threads[i], p->rows, "= %s rows asked for a commit", name);
                figure_add(run, threads[i], p->waits, "= %s of them waited", name);
            }
        }
    }
}

void figure_lotus_threads_a(struct figure_run *run)
{
    by_threads(run, WORK_YCSB_A);
}

void figure_lotus_threads_b(struct figure_run *run)
{
    by_threads(run, WORK_YCSB_B);
}

void figure_lotus_threads_c(struct figure_run *run)
{
    by_threads(run, WORK_YCSB_C);
}

/* ---- Figures 6 and 9: latency ---- */

static void add_latency(struct figure_run *run, const struct point *p, const char *name)
{
    for (size_t i = 0; i < PPMS; i++) {
        figure_add(run, ppms[i] / 1e4, p->ms[i], "%s", name);
    }
    figure_add(run, ppms[0] / 1e4, p->mean_ms, "= %s mean", name);
    figure_add(run, ppms[0] / 1e4, p->tries, "= %s tries", name);
}

static void by_percentile(struct figure_run *run, enum work_kind kind, uint32_t requests)
{
    note(run);
    for (size_t d = 0; d < DESIGNS; d++) {
        struct spot at = spot_of(kind, d);
        at.requests = requests;
        struct point p = point_of(run, at);
        add_latency(run, &p, designs[d].name);
    }
}

void figure_lotus_latency_a(struct figure_run *run)
{
    by_percentile(run, WORK_YCSB_A, REQUESTS);
}

void figure_lotus_latency_b(struct figure_run *run)
{
    by_percentile(run, WORK_YCSB_B, REQUESTS);
}

void figure_lotus_latency_c(struct figure_run *run)
{
    by_percentile(run, WORK_YCSB_C, REQUESTS);
}

void figure_lotus_latency_4(struct figure_run *run)
{
    by_percentile(run, WORK_YCSB_A, 4);
}

void figure_lotus_latency_32(struct figure_run *run)
{
    by_percentile(run, WORK_YCSB_A, REQUESTS_LONG);
}

/* ---- Figure 7: traffic ---- */

void figure_lotus_traffic(struct figure_run *run)
{
    static const enum work_kind kinds[] = {WORK_YCSB_C, WORK_YCSB_A};
    note(run);
    for (size_t d = 0; d < DESIGNS; d++) {
        for (size_t i = 0; i < 2; i++) {
            struct point p = point_of(run, spot_of(kinds[i], d));
            figure_add(run, work_defaults(kinds[i]).writes, p.kb, "%s", designs[d].name);
        }
    }
}

/* ---- Figure 8 and table 1: requests of a transaction ---- */

static const uint32_t lengths[] = {1, 2, 4, 8, REQUESTS, REQUESTS_LONG};
#define LENGTHS (sizeof lengths / sizeof lengths[0])

static void by_length(struct figure_run *run, enum work_kind kind)
{
    note(run);
    for (size_t d = 0; d < DESIGNS; d++) {
        for (size_t i = 0; i < LENGTHS; i++) {
            struct spot at = spot_of(kind, d);
            at.requests = lengths[i];
            struct point p = point_of(run, at);
            figure_add(run, lengths[i], p.ktxns, "%s", designs[d].name);
            figure_add(run, lengths[i], p.tries, "= %s tries", designs[d].name);
        }
    }
    for (size_t d = 0; d < DESIGNS; d++) {
        for (size_t i = 0; i < LENGTHS; i++) {
            double ours = 0, base = 0;
            if (figure_find(run, designs[d].name, lengths[i], &ours) &&
                figure_find(run, designs[BASELINE].name, lengths[i], &base) && base > 0) {
                figure_add(run, lengths[i], ours / base, "= %s, relative", designs[d].name);
            }
        }
    }
}

void figure_lotus_length_a(struct figure_run *run)
{
    by_length(run, WORK_YCSB_A);
}

void figure_lotus_length_b(struct figure_run *run)
{
    by_length(run, WORK_YCSB_B);
}

void figure_lotus_length_c(struct figure_run *run)
{
    by_length(run, WORK_YCSB_C);
}

void figure_lotus_per_message(struct figure_run *run)
{
    static const enum work_kind kinds[] = {WORK_YCSB_A, WORK_YCSB_B, WORK_YCSB_C};
    static const char *const names[] = {"A", "B", "C"};
    note(run);
    for (size_t k = 0; k < 3; k++) {
        for (size_t i = 0; i < LENGTHS; i++) {
            struct spot at = spot_of(kinds[k], WOUND_WAIT);
            at.requests = lengths[i];
            struct point p = point_of(run, at);
            figure_add(run, lengths[i], p.per_frame, "%s", names[k]);
            figure_add(run, lengths[i], p.per_message, "= %s rows a message", names[k]);
        }
    }
}

/* ---- Figures 10 to 12: what Lotus consists of ---- */

static void by_increment(struct figure_run *run, enum work_kind kind, bool latency)
{
    note(run);
    for (size_t d = 0; d < LOTUSES; d++) {
        for (uint32_t i = 0; i < INCREMENTS; i++) {
            struct spot at = spot_of(kind, d);
            const char *name = designs[d].name;
            at.increment = (enum increment)i;
            struct point p = point_of(run, at);
            if (!latency) {
                figure_add(run, i, p.ktxns, "%s", name);
                figure_add(run, i, p.tries, "= %s tries", name);
                figure_add(run, i, p.hints, "= %s good hints (%%)", name);
                continue;
            }
            figure_add(run, i, p.ms[2], "%s p99.9", name);
            figure_add(run, i, p.mean_ms, "%s mean", name);
            figure_add(run, i, p.ms[0], "= %s p95", name);
            figure_add(run, i, p.ms[1], "= %s p99", name);
            figure_add(run, i, p.ms[3], "= %s p99.99", name);
        }
    }
}

void figure_lotus_increments_a(struct figure_run *run)
{
    by_increment(run, WORK_YCSB_A, false);
}

void figure_lotus_increments_c(struct figure_run *run)
{
    by_increment(run, WORK_YCSB_C, false);
}

void figure_lotus_increments_latency_a(struct figure_run *run)
{
    by_increment(run, WORK_YCSB_A, true);
}

void figure_lotus_increments_latency_c(struct figure_run *run)
{
    by_increment(run, WORK_YCSB_C, true);
}

/* What batches across transactions add where a worker's transactions are as many as [L]'s groups
 * have threads, and memory servers are slower than this model's. */
static void by_slowness(struct figure_run *run, enum work_kind kind, size_t design)
{
    static const uint32_t slow[] = {1, 2, 4, 8};
    char name[FIGURE_SERIES_BYTES / 2];
    snprintf(name, sizeof name, "%c %s", "ABC"[kind - WORK_YCSB_A], designs[design].name);
    for (size_t i = 0; i < sizeof slow / sizeof slow[0]; i++) {
        struct spot at = spot_of(kind, design);
        at.workers = THREADS_MOST / GROUP_THREADS;
        at.slow = slow[i];
        struct point across = point_of(run, at);
        at.increment = INSIDE;
        struct point inside = point_of(run, at);
        if (run->err != HK_OK || inside.ktxns <= 0) {
            return;
        }
        figure_add(run, slow[i], across.ktxns / inside.ktxns, "%s", name);
        figure_add(run, slow[i], inside.ktxns, "= %s inside", name);
        figure_add(run, slow[i], inside.busy, "= %s memory busy (%%)", name);
        figure_add(run, slow[i], inside.compute_busy, "= %s compute busy (%%)", name);
        figure_add(run, slow[i], across.busy, "= %s memory busy across", name);
        figure_add(run, slow[i], inside.tries, "= %s tries inside", name);
        figure_add(run, slow[i], across.tries, "= %s tries across", name);
        figure_add(run, slow[i], inside.per_frame, "= %s a frame inside", name);
        figure_add(run, slow[i], across.per_frame, "= %s a frame across", name);
    }
}

void figure_lotus_groups(struct figure_run *run)
{
    snprintf(run->note, sizeof run->note,
             "%u workers a compute server with %u transactions in flight each; memory servers take "
             "as long as %u workers would, times x.",
             THREADS_MOST / GROUP_THREADS, GROUP_THREADS, WORKERS);
    for (size_t d = 0; d < LOTUSES; d++) {
        by_slowness(run, WORK_YCSB_A, d);
    }
    by_slowness(run, WORK_YCSB_C, WOUND_WAIT);
}

static void by_part(struct figure_run *run, enum work_kind kind)
{
    static const char *const names[COST_PARTS] = {[COST_NETWORK] = "network",
                                                  [COST_LOCK] = "lock",
                                                  [COST_INDEX] = "index",
                                                  [COST_DATA] = "data",
                                                  [COST_OTHER] = "auxiliary"};
    note(run);
    for (uint32_t part = 0; part < COST_PARTS; part++) {
        for (uint32_t i = 0; i < INCREMENTS; i++) {
            struct spot at = spot_of(kind, WOUND_WAIT);
            at.increment = (enum increment)i;
            struct point p = point_of(run, at);
            figure_add(run, i, p.parts[part], "%s", names[part]);
            if (part == 0) {
                figure_add(run, i, p.busy, "= memory servers busy (%%)");
            }
        }
    }
}

void figure_lotus_parts_a(struct figure_run *run)
{
    by_part(run, WORK_YCSB_A);
}

void figure_lotus_parts_c(struct figure_run *run)
{
    by_part(run, WORK_YCSB_C);
}

/* ---- Figure 17a: threads of the memory servers ---- */

void figure_lotus_memory(struct figure_run *run)
{
    static const uint32_t workers[] = {1, 2, 4, WORKERS, 16};
    snprintf(run->note, sizeof run->note,
             "%u machines of %u threads; those that are not the memory server's are the compute "
             "server's.",
             COMPUTES, THREADS_MACHINE);
    for (size_t d = 0; d < DESIGNS; d++) {
        for (size_t i = 0; i < sizeof workers / sizeof workers[0]; i++) {
            struct spot at = spot_of(WORK_YCSB_B, d);
            const char *name = designs[d].name;
            /* Verbs need no thread there: the baseline keeps its best arrangement. */
            at.workers = designs[d].one_sided ? 1 : workers[i];
            at.threads = THREADS_MACHINE - at.workers;
            struct point p = point_of(run, at);
            figure_add(run, workers[i], p.ktxns, "%s", name);
            if (!designs[d].one_sided) {
                figure_add(run, workers[i], p.tries, "= %s tries", name);
                figure_add(run, workers[i], p.busy, "= %s memory servers busy (%%)", name);
            }
        }
    }
}
