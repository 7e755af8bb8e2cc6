#include "bench/work_figures.h"

#include <math.h>

#include "base/assert.h"
#include "engine/zeus/commit.h"

static const char *const names[WORK_SUCCESS] = {
    [WORK_TXNS_PER_S] = "txns_per_s",
    [WORK_CPU_NS_PER_TXN] = "cpu_ns_per_txn",
    [WORK_TXNS_PER_S_APART] = "txns_per_s_apart",
    [WORK_COMPUTE_CPU_NS_PER_TXN] = "compute_cpu_ns_per_txn",
    [WORK_MEMORY_CPU_NS_PER_TXN] = "memory_cpu_ns_per_txn",
    [WORK_STEPS_PER_TXN] = "steps_per_txn",
    [WORK_AGAIN_PER_TXN] = "again_per_txn",
    [WORK_TRIES_PER_TXN] = "tries_per_txn",
    [WORK_WRITES] = "writes",
    [WORK_REMOTE] = "remote",
    [WORK_ABORTS_PER_TXN] = "aborts_per_txn",
    [WORK_REFUSED_PER_TXN] = "refused_per_txn",
    [WORK_REQUESTS_PER_MESSAGE] = "requests_per_message",
    [WORK_REQUESTS_PER_FRAME] = "requests_per_frame",
    [WORK_ONE_TRIP] = "one_trip",
    [WORK_ROWS_PER_TXN] = "rows_per_txn",
    [WORK_WAITS_PER_TXN] = "waits_per_txn",
    [WORK_HINTS] = "hints",
    [WORK_HINTS_GOOD] = "hints_good",
    [WORK_HINTS_STALE] = "hints_stale",
    [WORK_CACHE_HITS] = "cache_hits",
    [WORK_MOVES_PER_TXN] = "moves_per_txn",
    [WORK_MOVES_PER_S] = "moves_per_s",
    [WORK_READERS_PER_TXN] = "readers_per_txn",
    [WORK_NACKS_PER_MOVE] = "nacks_per_move",
    [WORK_MESSAGES_PER_MOVE] = "messages_per_move",
    [WORK_MESSAGES_PER_COMMIT] = "messages_per_commit",
    [WORK_MESSAGES_PER_TXN] = "messages_per_txn",
    [WORK_FRAMES_PER_TXN] = "frames_per_txn",
    [WORK_BYTES_PER_TXN] = "bytes_per_txn",
    [WORK_P50_US] = "p50_us",
    [WORK_P99_US] = "p99_us",
    [WORK_P999_US] = "p999_us",
    [WORK_P9999_US] = "p9999_us",
    [WORK_MEAN_US] = "mean_us",
    [WORK_WRITES_P50_US] = "writes_p50_us",
    [WORK_WRITES_P99_US] = "writes_p99_us",
};

const char *work_figure_name(uint32_t figure)
{
    HK_ASSERT(figure < WORK_FIGURES);
    return figure < WORK_SUCCESS ? names[figure] : NULL;
}

static double part(double of, double all)
{
    return all > 0.0 ? of / all : NAN;
}

static double percentile(const struct histogram *h, uint32_t ppm)
{
    return h->count > 0 ? (double)histogram_percentile(h, ppm) * 1e-3 : NAN;
}

static void owned_figures(const struct bench_run *r, double txns, double out[WORK_FIGURES])
{
    const struct node_stats *n = &r->node;
    double moves = (double)n->own_counts[OWN_MOVES], reads = (double)n->own_counts[OWN_READS];
    double own = 0.0, commit = 0.0;
    for (uint32_t kind = 0; kind < OWNED_KINDS; kind++) {
        *(kind < COMMIT_MSG_INV ? &own : &commit) += (double)n->owned_messages[kind];
    }
    out[WORK_MOVES_PER_TXN] = part(moves, txns);
    out[WORK_MOVES_PER_S] = part(moves, r->seconds);
    out[WORK_READERS_PER_TXN] = part(reads, txns);
    out[WORK_NACKS_PER_MOVE] = part((double)n->own_counts[OWN_NACKS], moves + reads);
    out[WORK_MESSAGES_PER_MOVE] = part(own, moves + reads);
    out[WORK_MESSAGES_PER_COMMIT] = part(commit, (double)n->txn_commits);
}

static void tables_figures(const struct bench_run *r, double txns, double out[WORK_FIGURES])
{
    const struct node_stats *n = &r->node;
    double items = (double)n->home_items, hints = (double)n->home_hints;
    double again = part((double)r->again, txns);
    out[WORK_TRIES_PER_TXN] = part((double)n->lotus_tries, (double)n->lotus_transactions) + again;
    out[WORK_REQUESTS_PER_MESSAGE] = part(items, (double)(n->home_executes + n->home_wholes));
    out[WORK_ONE_TRIP] = part((double)n->lotus_whole, (double)n->lotus_tries);
    out[WORK_ROWS_PER_TXN] = part(items, txns);
    out[WORK_WAITS_PER_TXN] = part((double)n->home_waits, txns);
    out[WORK_HINTS] = part(hints, items);
    out[WORK_HINTS_GOOD] = part((double)n->home_hints_good, items);
    out[WORK_HINTS_STALE] = part(hints - (double)n->home_hints_good, items);
    if (r->memory > 0) {
        double others = (double)n->lotus_requests - (double)(n->home_executes + n->home_wholes);
        out[WORK_REQUESTS_PER_FRAME] = part(items + others, (double)r->compute_frames);
    }
}

static double busiest(const struct bench_run *r)
{
    double most = 0.0, all = 0.0;
    for (uint32_t i = 0; i < r->nodes; i++) {
        most = fmax(most, r->node_seconds[i]);
        all += r->node_seconds[i];
    }
    return part(most * r->nodes, all);
}

/* The CPU time of memory servers and of the others: by the time that their workers' rounds took. */
static void servers_figures(const struct bench_run *r, double txns, double out[WORK_FIGURES])
{
    double memory = 0.0, all = 0.0;
    for (uint32_t i = 0; i < r->nodes; i++) {
        memory += i >= r->nodes - r->memory ? r->node_seconds[i] : 0.0;
        all += r->node_seconds[i];
    }
    if (r->memory > 0 && all > 0.0) {
        double ns = part(r->cpu_seconds * 1e9, txns);
        out[WORK_MEMORY_CPU_NS_PER_TXN] = ns * memory / all;
        out[WORK_COMPUTE_CPU_NS_PER_TXN] = ns * (all - memory) / all;
    }
}

void work_figures_of(const struct bench_run *run, double out[WORK_FIGURES])
{
    const struct bench_run *r = run;
    struct histogram all;
    double writes = (double)r->ops[LOAD_WRITE], txns = (double)r->ops[LOAD_READ] + writes;
    double aborts = (double)(r->node.txn_aborts + r->node.txn_retries);
    for (uint32_t i = 0; i < WORK_FIGURES; i++) {
        out[i] = NAN;
    }
    out[WORK_TXNS_PER_S] = part(txns, r->seconds);
    out[WORK_CPU_NS_PER_TXN] = part(r->cpu_seconds * 1e9, txns);
    out[WORK_TXNS_PER_S_APART] = part(txns * r->nodes, r->cpu_seconds * busiest(r));
    out[WORK_WRITES] = part(writes, txns);
    out[WORK_REMOTE] = part((double)r->remote, txns);
    out[WORK_ABORTS_PER_TXN] = part(aborts, txns);
    out[WORK_TRIES_PER_TXN] = 1.0 + part(aborts + (double)r->again, txns);
    out[WORK_STEPS_PER_TXN] = part((double)r->steps, txns);
    out[WORK_AGAIN_PER_TXN] = part((double)r->again, txns);
    servers_figures(r, txns, out);
    out[WORK_REFUSED_PER_TXN] = part((double)r->refused, txns);
    out[WORK_CACHE_HITS] = part((double)r->cache_hits, (double)r->cache_looks);
    if (r->owned) {
        owned_figures(r, txns, out);
    }
    if (r->tables) {
        tables_figures(r, txns, out);
    }
    out[WORK_MESSAGES_PER_TXN] = part((double)r->node.messages_out, txns);
    out[WORK_FRAMES_PER_TXN] = part((double)r->node.frames_out, txns);
    out[WORK_BYTES_PER_TXN] = part((double)r->node.bytes_out, txns);
    histogram_init(&all);
    for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
        histogram_merge(&all, &r->latency_ns[kind]);
    }
    out[WORK_P50_US] = percentile(&all, 500000);
    out[WORK_P99_US] = percentile(&all, 990000);
    out[WORK_P999_US] = percentile(&all, 999000);
    out[WORK_P9999_US] = percentile(&all, 999900);
    out[WORK_MEAN_US] = all.count > 0 ? histogram_mean(&all) * 1e-3 : NAN;
    out[WORK_WRITES_P50_US] = percentile(&r->latency_ns[LOAD_WRITE], 500000);
    out[WORK_WRITES_P99_US] = percentile(&r->latency_ns[LOAD_WRITE], 990000);
    for (uint32_t i = 0; i < WORK_TYPES_MAX; i++) {
        out[WORK_SUCCESS + i] = part((double)r->succeeded[i], (double)r->txns[i]);
        out[WORK_SHARE + i] = part((double)r->txns[i], txns);
    }
}
