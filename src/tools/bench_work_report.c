/* What `horkos bench --workload` prints. */
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "bench/figures.h"
#include "tools/bench_work.h"

static const struct {
    uint32_t figure;
    const char *text;
} rows[] = {
    {WORK_TXNS_PER_S, "transactions a second"},
    {WORK_TXNS_PER_S_APART, "transactions a second if apart"},
    {WORK_CPU_NS_PER_TXN, "CPU ns a transaction"},
    {WORK_WRITES, "part that may write"},
    {WORK_REMOTE, "part with objects of other nodes"},
    {WORK_COMPUTE_CPU_NS_PER_TXN, "CPU ns of compute servers"},
    {WORK_MEMORY_CPU_NS_PER_TXN, "CPU ns of memory servers"},
    {WORK_STEPS_PER_TXN, "steps a transaction"},
    {WORK_AGAIN_PER_TXN, "begun again, a transaction"},
    {WORK_TRIES_PER_TXN, "tries a transaction"},
    {WORK_ABORTS_PER_TXN, "tries in vain a transaction"},
    {WORK_REFUSED_PER_TXN, "given up, a transaction"},
    {WORK_ONE_TRIP, "part of tries that are one trip"},
    {WORK_REQUESTS_PER_MESSAGE, "rows and ranges a message"},
    {WORK_REQUESTS_PER_FRAME, "rows and ranges a frame"},
    {WORK_ROWS_PER_TXN, "rows and ranges a transaction"},
    {WORK_WAITS_PER_TXN, "waits for locks a transaction"},
    {WORK_HINTS_GOOD, "part of them with a good hint"},
    {WORK_HINTS_STALE, "part of them with a stale hint"},
    {WORK_MOVES_PER_TXN, "moves a transaction"},
    {WORK_MOVES_PER_S, "moves a second"},
    {WORK_READERS_PER_TXN, "added replicas a transaction"},
    {WORK_NACKS_PER_MOVE, "NACKs a move"},
    {WORK_MESSAGES_PER_MOVE, "messages a move"},
    {WORK_MESSAGES_PER_COMMIT, "messages a commit"},
    {WORK_CACHE_HITS, "found in the cache"},
    {WORK_MESSAGES_PER_TXN, "messages a transaction"},
    {WORK_FRAMES_PER_TXN, "frames a transaction"},
    {WORK_BYTES_PER_TXN, "bytes a transaction"},
    {WORK_P50_US, "latency in us, p50"},
    {WORK_P99_US, "latency in us, p99"},
    {WORK_P999_US, "latency in us, p99.9"},
    {WORK_P9999_US, "latency in us, p99.99"},
    {WORK_WRITES_P50_US, "latency of writes in us, p50"},
    {WORK_WRITES_P99_US, "latency of writes in us, p99"},
};

static void print_setting(const struct bench_work_report *r, FILE *to)
{
    const struct bench_work_options *o = r->options;
    const struct bench_config *c = &o->config;
    fprintf(to, "%s, %u cores, %s\n", r->machine->model, r->machine->cores, r->machine->kernel);
    fprintf(to, "%s: %u objects a node; ", work_kind_names[o->work.kind], o->work.objects);
    if (o->partitioned) {
        fprintf(to, "co-partitioned, none remote\n");
    } else if (o->work.remote >= 0.0) {
        fprintf(to, "%g %% remote\n", o->work.remote);
    } else {
        fprintf(to, "remote by nature\n");
    }
    fprintf(to, "%u nodes of %u worker%s over %s, %s; ", c->nodes, c->workers,
            c->workers == 1 ? "" : "s", bench_port_names[c->port],
            c->threads ? "a thread each" : "all run by one thread in turn");
    if (o->protocols[BENCH_ZEUS] || o->protocols[BENCH_STATIC]) {
        fprintf(to, "%u replicas%s; ", c->degree, o->protocols[BENCH_LOTUS] ? " (lotus: one)" : "");
    }
    if (c->memory > 0) {
        fprintf(to, "%u of the nodes are memory servers; ", c->memory);
    }
    fprintf(to, "%u in flight a worker; %u run%s of %g s after %g s\n", c->in_flight, o->runs,
            o->runs == 1 ? "" : "s", o->seconds, o->warmup);
}

static void print_types(const struct bench_work_report *r, const struct bench_work_series *s,
                        FILE *to)
{
    fprintf(to, "  %-34s %12s %12s %12s\n", "transaction", "share", "success", "by its rules");
    for (uint32_t i = 0; i < work_types(r->work); i++) {
        fprintf(to, "    %-32s %12.4f %12.4f %12.4f\n", work_type_name(r->work, i),
                bench_spread_of(s->figures[WORK_SHARE + i], r->options->runs).median,
                bench_spread_of(s->figures[WORK_SUCCESS + i], r->options->runs).median,
                work_type_success(r->work, i));
    }
}

/* The first design over another one. */
static void print_ratios(const struct bench_work_report *r, uint32_t over, FILE *to)
{
    static const uint32_t compared[] = {WORK_TXNS_PER_S_APART, WORK_CPU_NS_PER_TXN,
                                        WORK_MESSAGES_PER_TXN, WORK_BYTES_PER_TXN,
                                        WORK_P50_US,           WORK_P99_US};
    char title[80];
    snprintf(title, sizeof title, "%s / %s", r->options->designs[0].name,
             r->options->designs[over].name);
    fprintf(to, "\n%-36s %12s %12s %12s\n", title, "median", "least", "most");
    for (uint32_t i = 0; i < sizeof compared / sizeof compared[0]; i++) {
        struct bench_spread x =
            bench_ratio_of(r->series[0].figures[compared[i]], r->series[over].figures[compared[i]],
                           r->options->runs);
        fprintf(to, "  %-34s %12.3f %12.3f %12.3f\n", work_figure_name(compared[i]), x.median,
                x.min, x.max);
    }
}

void bench_work_text(const struct bench_work_report *r, FILE *to)
{
    print_setting(r, to);
    for (uint32_t d = 0; d < r->options->designs_n; d++) {
        const struct bench_work_series *s = &r->series[d];
        fprintf(to, "\n%-36s %12s %12s %12s\n", r->options->designs[d].name, "median", "least",
                "most");
        for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct bench_spread x = bench_spread_of(s->figures[rows[i].figure], r->options->runs);
            if (!isnan(x.median)) {
                fprintf(to, "  %-34s %12.6g %12.6g %12.6g\n", rows[i].text, x.median, x.min, x.max);
            }
        }
        print_types(r, s, to);
        if (s->refused > 0) {
            fprintf(to, "  %" PRIu64 " were given up: others were faster too often\n", s->refused);
        }
    }
    for (uint32_t d = 1; d < r->options->designs_n; d++) {
        print_ratios(r, d, to);
    }
}

/* ---- JSON ---- */

/* JSON has no NAN. */
static json_t *number(double x)
{
    return isnan(x) || isinf(x) ? json_null() : json_real(x);
}

static json_t *spread(struct bench_spread x)
{
    return json_pack("{s:o, s:o, s:o}", "median", number(x.median), "min", number(x.min), "max",
                     number(x.max));
}

static json_t *config_json(const struct bench_work_options *o)
{
    const struct bench_config *c = &o->config;
    json_t *config = json_pack("{s:s, s:i, s:i, s:i, s:s, s:b, s:i, s:i, s:o}", "workload",
                               work_kind_names[o->work.kind], "nodes", (int)c->nodes, "workers",
                               (int)c->workers, "replicas", (int)c->degree, "port",
                               bench_port_names[c->port], "threads", c->threads, "in_flight",
                               (int)c->in_flight, "objects", (int)o->work.objects, "remote_percent",
                               o->work.remote >= 0.0 ? json_real(o->work.remote) : json_null());
    json_t *more = json_pack("{s:i, s:i, s:f, s:f, s:f, s:i, s:i, s:f, s:f, s:i, s:I}", "hot",
                             (int)o->work.hot, "requests", (int)o->work.requests, "theta",
                             o->work.theta, "writes_percent", o->work.writes, "handovers_percent",
                             o->work.handovers, "value_bytes", (int)o->work.value_bytes, "shift",
                             (int)o->work.shift, "seconds", o->seconds, "warmup_seconds", o->warmup,
                             "runs", (int)o->runs, "seed", (json_int_t)c->seed);
    (void)json_object_update(config, more);
    json_decref(more);
    more = json_pack("{s:i, s:b, s:i, s:i, s:i, s:i}", "columns", (int)o->work.columns,
                     "neighbours", o->work.neighbours, "scan", (int)o->work.scan, "warehouses",
                     (int)o->work.warehouses, "customers", (int)o->work.customers, "memory_servers",
                     (int)c->memory);
    (void)json_object_set_new(more, "partitioned", json_boolean(o->partitioned));
    (void)json_object_set_new(more, "cache_percent",
                              o->cache > 0.0 ? json_real(o->cache) : json_null());
    (void)json_object_update(config, more);
    json_decref(more);
    return config;
}

static json_t *types_json(const struct bench_work_report *r, const struct bench_work_series *s)
{
    json_t *types = json_object();
    for (uint32_t i = 0; i < work_types(r->work); i++) {
        json_t *type = json_pack(
            "{s:o, s:o, s:o}", "share",
            number(bench_spread_of(s->figures[WORK_SHARE + i], r->options->runs).median), "success",
            number(bench_spread_of(s->figures[WORK_SUCCESS + i], r->options->runs).median),
            "success_by_rules", number(work_type_success(r->work, i)));
        (void)json_object_set_new(types, work_type_name(r->work, i), type);
    }
    return types;
}

/* The medians by their names; min and max of all runs under "spread". */
static json_t *series_json(const struct bench_work_report *r, const struct bench_work_series *s)
{
    json_t *series = json_object(), *spreads = json_object();
    for (uint32_t i = 0; i < WORK_SUCCESS; i++) {
        struct bench_spread x = bench_spread_of(s->figures[i], r->options->runs);
        (void)json_object_set_new(series, work_figure_name(i), number(x.median));
        (void)json_object_set_new(spreads, work_figure_name(i), spread(x));
    }
    (void)json_object_set_new(series, "txns", json_integer((json_int_t)s->txns));
    (void)json_object_set_new(series, "failed", json_integer((json_int_t)s->failed));
    (void)json_object_set_new(series, "refused", json_integer((json_int_t)s->refused));
    (void)json_object_set_new(series, "types", types_json(r, s));
    (void)json_object_set_new(series, "spread", spreads);
    return series;
}

/* Of each design but the first one: the first one's figures over its own. */
static json_t *ratios_json(const struct bench_work_report *r)
{
    json_t *all = json_object();
    for (uint32_t d = 1; d < r->options->designs_n; d++) {
        json_t *ratios = json_object();
        for (uint32_t i = 0; i < WORK_SUCCESS; i++) {
            (void)json_object_set_new(
                ratios, work_figure_name(i),
                spread(bench_ratio_of(r->series[0].figures[i], r->series[d].figures[i],
                                      r->options->runs)));
        }
        (void)json_object_set_new(all, r->options->designs[d].name, ratios);
    }
    return all;
}

int bench_work_json(const struct bench_work_report *r, FILE *to)
{
    json_t *all = json_object(), *designs = json_object();
    (void)json_object_set_new(all, "machine",
                              json_pack("{s:s, s:i, s:s}", "model", r->machine->model, "cores",
                                        (int)r->machine->cores, "kernel", r->machine->kernel));
    (void)json_object_set_new(all, "config", config_json(r->options));
    for (uint32_t d = 0; d < r->options->designs_n; d++) {
        (void)json_object_set_new(designs, r->options->designs[d].name,
                                  series_json(r, &r->series[d]));
    }
    (void)json_object_set_new(all, "designs", designs);
    if (r->options->designs_n > 1) {
        (void)json_object_set_new(all, "ratios", ratios_json(r));
    }
    int failed = json_dumpf(all, to, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0;
    json_decref(all);
    fputc('\n', to);
    return failed ? HK_ERR_NOMEM : HK_OK;
}
