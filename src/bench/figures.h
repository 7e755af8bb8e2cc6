/* What is reported of runs: figures of one run, their spread over several, and ratios of two
 * engines that ran in turn. Pure. */
#ifndef HORKOS_BENCH_FIGURES_H
#define HORKOS_BENCH_FIGURES_H

#include "bench/bench.h"

/* Latencies come in groups: of all operations, then of each kind. */
enum bench_latency {
    LATENCY_P50,
    LATENCY_P99,
    LATENCY_P999,
    LATENCY_P9999,
    LATENCY_MEAN,
    LATENCIES
};
#define BENCH_GROUPS (1u + LOAD_KINDS)

enum bench_figure {
    FIGURE_OPS_PER_S,
    FIGURE_CPU_NS_PER_OP,
    FIGURE_CPU_NS_PER_UPDATE, /* all of the CPU time, if there is nothing but updates */
    FIGURE_BUSIEST_NODE,      /* its part of the time of all nodes, times their number */
    FIGURE_OPS_PER_S_APART,   /* if each node had a processor, the busiest one's at its limit */
    FIGURE_MESSAGES_PER_OP,   /* between nodes, as all of them sent */
    FIGURE_MESSAGES_PER_UPDATE,
    FIGURE_KEY_STEPS_PER_OP, /* of the engine's machines, on all nodes */
    FIGURE_FLOW_STEPS_PER_OP,
    FIGURE_FRAMES_PER_OP,
    FIGURE_BYTES_PER_OP, /* of frames, without what the links add */
    FIGURE_READS_REMOTE, /* the part of the reads for which another node was asked */
    FIGURE_READS_PASSED, /* the part of the direct reads that was left to the node */
    FIGURE_HIT_RATE,     /* the part of the operations on keys that all nodes have */
    FIGURE_FORWARDED,    /* the part that another node was sent for its home */
    FIGURE_PARKED,       /* operations that waited for a key, for each operation */
    FIGURE_LATENCY,      /* in us; the first of BENCH_GROUPS * LATENCIES */
    BENCH_FIGURES = FIGURE_LATENCY + BENCH_GROUPS * LATENCIES
};

/* "ops_per_s", ..., "p50_us", ..., "reads_p50_us", ... */
const char *bench_figure_name(uint32_t figure);
static inline uint32_t bench_figure_latency(uint32_t group, enum bench_latency latency)
{
    return FIGURE_LATENCY + group * LATENCIES + (uint32_t)latency;
}

/* A figure that means nothing for this run is NAN. */
void bench_figures_of(const struct bench_run *run, double figures_out[BENCH_FIGURES]);

struct bench_spread {
    double median, min, max; /* NAN: no value was a number */
};
/* Of n values, those aside that are NAN. The median of an even number is the mean of the middle
 * two. */
struct bench_spread bench_spread_of(const double *values, uint32_t n);
/* Of a[i] / b[i]: what ran one after the other is compared, so that a disturbance that lasts meets
 * both. */
struct bench_spread bench_ratio_of(const double *a, const double *b, uint32_t n);

#endif
