#include "tools/bench_report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define NUMBER_BYTES 32u

/* Three digits that count, and a prefix: 1.23 M, 845 k, 12.3. */
static const char *number(double x, char to[NUMBER_BYTES])
{
    static const struct {
        double unit;
        const char *suffix;
    } units[] = {{1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
    const char *suffix = "";
    double shown = x;
    if (isnan(x)) {
        snprintf(to, NUMBER_BYTES, "-");
        return to;
    }
    for (uint32_t i = 0; i < 3; i++) {
        if (fabs(x) >= 9995.0 && fabs(x) >= units[i].unit) {
            shown = x / units[i].unit;
            suffix = units[i].suffix;
            break;
        }
    }
    int digits = fabs(shown) >= 99.95 ? 0 : fabs(shown) >= 9.995 ? 1 : 2;
    snprintf(to, NUMBER_BYTES, "%.*f%s", digits, shown, suffix);
    return to;
}

static void print_setting(const struct bench_options *o, FILE *to)
{
    const struct bench_config *c = &o->config;
    char rate[NUMBER_BYTES];
    fprintf(to, "%u nodes of %u worker%s over %s, ", c->nodes, c->workers,
            c->workers == 1 ? "" : "s", bench_port_names[c->port]);
    fprintf(to, c->threads ? "a thread each\n" : "all run by one thread in turn\n");
    fprintf(to, "%" PRIu64 " keys of %u + %u bytes, ", c->keys.n, c->key_bytes, c->value_bytes);
    if (c->keys.exponent > 0.0) {
        fprintf(to, "zipf %g%s; ", c->keys.exponent, c->keys.scramble ? "" : " not scrambled");
    } else {
        fprintf(to, "uniform; ");
    }
    fprintf(to, "%g %% writes, %g %% RMWs", c->mix.writes, c->mix.rmws);
    fprintf(to, "; reads: %s%s\n", bench_read_path_names[c->read_path],
            c->async_reads ? ", asynchronous" : "");
    if (c->rate > 0.0) {
        fprintf(to, "open loop of %s operations a second, at most %u in flight a worker",
                number(c->rate, rate), c->in_flight);
    } else {
        fprintf(to, "closed loop, %u operations in flight a worker", c->in_flight);
    }
    fprintf(to, "; %u run%s of %g s after %g s\n", o->runs, o->runs == 1 ? "" : "s", o->seconds,
            o->warmup);
}

/* What the nodes cache, and what the best choice of keys would give. */
static void print_cache(const struct bench_options *o, const struct engine_ops *engine, FILE *to)
{
    struct bench_config config = o->config;
    config.engine = engine;
    double best = bench_hit_rate(&config);
    if (isnan(best)) {
        return;
    }
    fprintf(to, "  mode %s", bench_mode_names[o->mode]);
    if (bench_cache_keys(&config) > 0) {
        fprintf(to, ", a cache of %" PRIu64 " keys: the most popular ones take %.4f",
                bench_cache_keys(&config), best);
    }
    fprintf(to, "\n");
}

static const struct {
    uint32_t figure;
    const char *text;
} rows[] = {
    {FIGURE_OPS_PER_S, "operations a second"},
    {FIGURE_CPU_NS_PER_OP, "CPU ns an operation"},
    {FIGURE_BUSIEST_NODE, "busiest node's load (1: all alike)"},
    {FIGURE_OPS_PER_S_APART, "operations a second if apart"},
    {FIGURE_MESSAGES_PER_OP, "messages an operation"},
    {FIGURE_FRAMES_PER_OP, "frames an operation"},
    {FIGURE_BYTES_PER_OP, "bytes an operation"},
    {FIGURE_READS_REMOTE, "reads that asked another node"},
    {FIGURE_READS_PASSED, "direct reads left to the node"},
    {FIGURE_HIT_RATE, "part of keys that all nodes have"},
    {FIGURE_FORWARDED, "part sent to another node"},
    {FIGURE_PARKED, "waits for a key an operation"},
};

static const char *const groups[BENCH_GROUPS] = {"all", "reads", "writes", "rmws"};

/* Nothing to say, for none of the runs. */
static bool empty(const struct bench_series *s, uint32_t figure, uint32_t runs)
{
    struct bench_spread x = bench_spread_of(s->figures[figure], runs);
    return isnan(x.median) ||
           ((figure == FIGURE_READS_PASSED || figure == FIGURE_READS_REMOTE) && x.max == 0.0);
}

static void print_row(const struct bench_series *s, uint32_t figure, const char *text,
                      uint32_t runs, FILE *to)
{
    char median[NUMBER_BYTES], min[NUMBER_BYTES], max[NUMBER_BYTES];
    struct bench_spread x = bench_spread_of(s->figures[figure], runs);
    if (!empty(s, figure, runs)) {
        fprintf(to, "  %-34s %10s %10s %10s\n", text, number(x.median, median), number(x.min, min),
                number(x.max, max));
    }
}

static void print_latencies(const struct bench_report *r, const struct bench_series *s, FILE *to)
{
    static const char *const columns[LATENCY_MEAN] = {"p50", "p99", "p99.9", "p99.99"};
    fprintf(to, "  %-34s", "latency in us, median of runs");
    for (uint32_t i = 0; i < LATENCY_MEAN; i++) {
        fprintf(to, " %10s", columns[i]);
    }
    fprintf(to, "\n");
    for (uint32_t group = 0; group < BENCH_GROUPS; group++) {
        if (empty(s, bench_figure_latency(group, LATENCY_P50), r->options->runs)) {
            continue;
        }
        fprintf(to, "    %-32s", groups[group]);
        for (uint32_t i = 0; i < LATENCY_MEAN; i++) {
            char text[NUMBER_BYTES];
            uint32_t figure = bench_figure_latency(group, (enum bench_latency)i);
            fprintf(to, " %10s",
                    number(bench_spread_of(s->figures[figure], r->options->runs).median, text));
        }
        fprintf(to, "\n");
    }
}

static void print_series(const struct bench_report *r, uint32_t engine, FILE *to)
{
    const struct bench_series *s = &r->series[engine];
    fprintf(to, "\n%-36s %10s %10s %10s\n", r->options->engines[engine]->name, "median", "least",
            "most");
    print_cache(r->options, r->options->engines[engine], to);
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        print_row(s, rows[i].figure, rows[i].text, r->options->runs, to);
    }
    print_latencies(r, s, to);
    if (s->refused > 0) {
        fprintf(to, "  %" PRIu64 " operations were refused: others were faster too often\n",
                s->refused);
    }
}

static void print_ratio(const struct bench_report *r, uint32_t figure, const char *text, FILE *to)
{
    fprintf(to, "  %-34s", text);
    for (uint32_t i = 1; i < r->options->engines_n; i++) {
        char cell[64];
        struct bench_spread x = bench_ratio_of(r->series[0].figures[figure],
                                               r->series[i].figures[figure], r->options->runs);
        if (isnan(x.median)) {
            snprintf(cell, sizeof cell, "-");
        } else {
            snprintf(cell, sizeof cell, "%.2f (%.2f .. %.2f)", x.median, x.min, x.max);
        }
        fprintf(to, " %24s", cell);
    }
    fprintf(to, "\n");
}

/* Of the first engine to each other one. */
static void print_ratios(const struct bench_report *r, FILE *to)
{
    static const struct {
        uint32_t figure;
        const char *text;
    } compared[] = {
        {FIGURE_OPS_PER_S, "operations a second"},
        {FIGURE_CPU_NS_PER_OP, "CPU time an operation"},
        {FIGURE_OPS_PER_S_APART, "operations a second if apart"},
        {FIGURE_MESSAGES_PER_OP, "messages an operation"},
        {FIGURE_BYTES_PER_OP, "bytes an operation"},
        {FIGURE_LATENCY + LATENCY_P50, "latency, p50"},
        {FIGURE_LATENCY + LATENCY_P99, "latency, p99"},
    };
    char title[32];
    fprintf(to, "\n%-36s", "ratios: median (least .. most)");
    for (uint32_t i = 1; i < r->options->engines_n; i++) {
        snprintf(title, sizeof title, "%.14s / %.14s", r->options->engines[0]->name,
                 r->options->engines[i]->name);
        fprintf(to, " %24s", title);
    }
    fprintf(to, "\n");
    for (uint32_t i = 0; i < sizeof compared / sizeof compared[0]; i++) {
        print_ratio(r, compared[i].figure, compared[i].text, to);
    }
}

static void print_reads(const char *what, const struct bench_probe_reads *reads, FILE *to)
{
    char text[NUMBER_BYTES];
    fprintf(to, "  dependent pair reads a second, %-8s %10s\n", what,
            number(reads->dependent_pairs, text));
    if (!isnan(reads->direct)) {
        fprintf(to, "  direct reads a second, %-16s %10s  (%.2f of it)\n", what,
                number(reads->direct, text), reads->direct / reads->dependent_pairs);
    }
}

static void print_probe(const struct bench_report *r, FILE *to)
{
    const struct bench_probe *p = r->probe;
    fprintf(to, "\nthis machine, one thread\n");
    print_reads("uniform", &p->uniform, to);
    if (r->options->config.keys.exponent > 0.0) {
        print_reads("zipf", &p->load, to);
    }
    fprintf(to, "  ring round trip, two threads / one %9.0f / %.0f ns\n", p->ring_round_trip_ns,
            p->ring_round_trip_alone_ns);
    fprintf(to, "  loopback TCP round trip            %9.0f ns\n", p->loopback_round_trip_ns);
    fprintf(to, "  system call, clock read            %9.0f, %.0f ns\n", p->system_call_ns,
            p->clock_read_ns);
}

void bench_report_text(const struct bench_report *r, FILE *to)
{
    fprintf(to, "%s, %u cores, %s\n", r->machine->model, r->machine->cores, r->machine->kernel);
    print_setting(r->options, to);
    for (uint32_t i = 0; i < r->options->engines_n; i++) {
        print_series(r, i, to);
    }
    if (r->options->engines_n > 1) {
        print_ratios(r, to);
    }
    if (r->probe != NULL) {
        print_probe(r, to);
    }
}
