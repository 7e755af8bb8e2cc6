#include "bench/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static const char *const names[BENCH_FIGURES] = {
    [FIGURE_OPS_PER_S] = "ops_per_s",
    [FIGURE_CPU_NS_PER_OP] = "cpu_ns_per_op",
    [FIGURE_CPU_NS_PER_UPDATE] = "cpu_ns_per_update",
    [FIGURE_BUSIEST_NODE] = "busiest_node",
    [FIGURE_OPS_PER_S_APART] = "ops_per_s_apart",
    [FIGURE_MESSAGES_PER_OP] = "messages_per_op",
    [FIGURE_MESSAGES_PER_UPDATE] = "messages_per_update",
    [FIGURE_KEY_STEPS_PER_OP] = "key_steps_per_op",
    [FIGURE_FLOW_STEPS_PER_OP] = "flow_steps_per_op",
    [FIGURE_FRAMES_PER_OP] = "frames_per_op",
    [FIGURE_BYTES_PER_OP] = "bytes_per_op",
    [FIGURE_READS_REMOTE] = "reads_remote",
    [FIGURE_READS_PASSED] = "reads_passed",
    [FIGURE_HIT_RATE] = "hit_rate",
    [FIGURE_FORWARDED] = "forwarded",
    [FIGURE_PARKED] = "parked_per_op",
#define GROUP(i, prefix)                                                                           \
    [FIGURE_LATENCY + (i)*LATENCIES +                                                              \
        LATENCY_P50] = prefix "p50_us",                                                            \
        [FIGURE_LATENCY + (i)*LATENCIES + LATENCY_P99] = prefix "p99_us",                          \
        [FIGURE_LATENCY + (i)*LATENCIES + LATENCY_P999] = prefix "p999_us",                        \
        [FIGURE_LATENCY + (i)*LATENCIES + LATENCY_P9999] = prefix "p9999_us",                      \
        [FIGURE_LATENCY + (i)*LATENCIES + LATENCY_MEAN] = prefix "mean_us"
    GROUP(0, ""),
    GROUP(1 + LOAD_READ, "reads_"),
    GROUP(1 + LOAD_WRITE, "writes_"),
    GROUP(1 + LOAD_RMW, "rmws_"),
#undef GROUP
};

const char *bench_figure_name(uint32_t figure)
{
    HK_ASSERT(figure < BENCH_FIGURES);
    return names[figure];
}

static double part(double of, double all)
{
    return all > 0.0 ? of / all : NAN;
}

static void latencies(const struct histogram *h, double out[LATENCIES])
{
    static const uint32_t ppm[] = {
        [LATENCY_P50] = 500000,
        [LATENCY_P99] = 990000,
        [LATENCY_P999] = 999000,
        [LATENCY_P9999] = 999900,
    };
    for (uint32_t i = 0; i < LATENCY_MEAN; i++) {
        out[i] = h->count > 0 ? (double)histogram_percentile(h, ppm[i]) * 1e-3 : NAN;
    }
    out[LATENCY_MEAN] = h->count > 0 ? histogram_mean(h) * 1e-3 : NAN;
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

void bench_figures_of(const struct bench_run *run, double out[BENCH_FIGURES])
{
    const struct bench_run *r = run;
    struct histogram all;
    double updates = (double)(r->ops[LOAD_WRITE] + r->ops[LOAD_RMW]);
    double ops = (double)r->ops[LOAD_READ] + updates;
    double messages = (double)r->node.messages_out;
    out[FIGURE_OPS_PER_S] = part(ops, r->seconds);
    out[FIGURE_CPU_NS_PER_OP] = part(r->cpu_seconds * 1e9, ops);
    out[FIGURE_CPU_NS_PER_UPDATE] =
        r->ops[LOAD_READ] == 0 ? part(r->cpu_seconds * 1e9, updates) : NAN;
    out[FIGURE_BUSIEST_NODE] = busiest(r);
    out[FIGURE_OPS_PER_S_APART] = part(ops * r->nodes, r->cpu_seconds * busiest(r));
    out[FIGURE_MESSAGES_PER_OP] = part(messages, ops);
    out[FIGURE_MESSAGES_PER_UPDATE] = part(messages, updates);
    out[FIGURE_KEY_STEPS_PER_OP] = part((double)r->node.key_steps, ops);
    out[FIGURE_FLOW_STEPS_PER_OP] = part((double)r->node.flow_steps, ops);
    out[FIGURE_FRAMES_PER_OP] = part((double)r->node.frames_out, ops);
    out[FIGURE_BYTES_PER_OP] = part((double)r->node.bytes_out, ops);
    out[FIGURE_READS_REMOTE] = part((double)r->node.asks, (double)r->ops[LOAD_READ]);
    out[FIGURE_READS_PASSED] = part((double)r->reads_passed, (double)r->ops[LOAD_READ]);
    out[FIGURE_HIT_RATE] = r->homed ? part((double)r->hits, ops) : NAN;
    out[FIGURE_FORWARDED] = r->homed ? part((double)r->node.misses, ops) : NAN;
    out[FIGURE_PARKED] = part((double)r->node.parked, ops);
    histogram_init(&all);
    for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
        histogram_merge(&all, &r->latency_ns[kind]);
        latencies(&r->latency_ns[kind], out + bench_figure_latency(1 + kind, LATENCY_P50));
    }
    latencies(&all, out + bench_figure_latency(0, LATENCY_P50));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define VALUES_MAX 1000u

struct bench_spread bench_spread_of(const double *values, uint32_t n)
{
    double sorted[VALUES_MAX];
    uint32_t count = 0;
    HK_ASSERT(n <= VALUES_MAX);
    for (uint32_t i = 0; i < n; i++) {
        if (!isnan(values[i])) {
            sorted[count++] = values[i];
        }
    }
    if (count == 0) {
        return (struct bench_spread){NAN, NAN, NAN};
    }
    qsort(sorted, count, sizeof sorted[0], compare);
    double middle = sorted[count / 2];
    return (struct bench_spread){
        .median = count % 2 == 1 ? middle : (sorted[count / 2 - 1] + middle) / 2.0,
        .min = sorted[0],
        .max = sorted[count - 1],
    };
}

struct bench_spread bench_ratio_of(const double *a, const double *b, uint32_t n)
{
    double ratios[VALUES_MAX];
    HK_ASSERT(n <= VALUES_MAX);
    for (uint32_t i = 0; i < n; i++) {
        ratios[i] = b[i] > 0.0 ? a[i] / b[i] : NAN;
    }
    return bench_spread_of(ratios, n);
}
