#include "tools/bench_resp.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/clock.h"
#include "base/err.h"
#include "bench/figures.h"
#include "tools/bench_resp_options.h"
#include "tools/commands.h"

/* More than this part of its threads' time, and the client may have been the limit. */
#define CLIENT_SHARE_MAX 0.9

enum figure {
    FIGURE_OPS,
    FIGURE_CPU,
    FIGURE_CLIENT_CPU,
    FIGURE_CLIENT_SHARE,
    FIGURE_SERVERS_SHARE,
    FIGURE_P50,
    FIGURE_P99,
    FIGURE_P999,
    FIGURE_P9999,
    FIGURE_MEAN,
    FIGURE_READS_P50,
    FIGURE_READS_P99,
    FIGURE_WRITES_P50,
    FIGURE_WRITES_P99,
    FIGURES
};

static const struct {
    const char *name;
    const char *text; /* for people */
} figures[FIGURES] = {
    [FIGURE_OPS] = {"ops_per_s", "requests a second"},
    [FIGURE_CPU] = {"cpu_ns_per_op", "servers' CPU time for a request, ns"},
    [FIGURE_CLIENT_CPU] = {"client_cpu_ns_per_op", "this program's, ns"},
    [FIGURE_CLIENT_SHARE] = {"client_share", "part of this program's threads that was busy"},
    [FIGURE_SERVERS_SHARE] = {"servers_share", "processors that the servers kept busy"},
    [FIGURE_P50] = {"p50_us", "latency, median, us"},
    [FIGURE_P99] = {"p99_us", "99 %"},
    [FIGURE_P999] = {"p999_us", "99.9 %"},
    [FIGURE_P9999] = {"p9999_us", "99.99 %"},
    [FIGURE_MEAN] = {"mean_us", "mean"},
    [FIGURE_READS_P50] = {"reads_p50_us", "reads, median"},
    [FIGURE_READS_P99] = {"reads_p99_us", "reads, 99 %"},
    [FIGURE_WRITES_P50] = {"writes_p50_us", "writes, median"},
    [FIGURE_WRITES_P99] = {"writes_p99_us", "writes, 99 %"},
};

struct session {
    struct bench_resp_options options;
    struct resp_load *load;
    double (*values)[BENCH_RESP_RUNS_MAX]; /* FIGURES rows */
    uint64_t ops, failed, missing;
    bool tells; /* standard error is a terminal */
    uint64_t told_us;
    char why[600];
};

bool bench_resp_asked(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--resp") == 0 || strncmp(argv[i], "--resp=", 7) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- A line that says how far it is ---- */

static void tell(const struct session *s, const char *text)
{
    if (s->tells) {
        fprintf(stderr, "\r%-70s", text);
    }
}

static void end_of_telling(const struct session *s)
{
    if (s->tells) {
        fprintf(stderr, "\r%70s\r", "");
    }
}

static void tell_filling(void *context, uint64_t done, uint64_t all)
{
    struct session *s = context;
    char text[80];
    uint64_t now_us = clock_boot_us();
    if (now_us - s->told_us < 100000) {
        return;
    }
    s->told_us = now_us;
    snprintf(text, sizeof text, "%" PRIu64 " of %" PRIu64 " keys written", done, all);
    tell(s, text);
}

/* ---- Figures ---- */

static double latency_us(const struct histogram *h, uint32_t ppm)
{
    return h->count > 0 ? (double)histogram_percentile(h, ppm) / 1e3 : (double)NAN;
}

static void keep(struct session *s, uint32_t index, const struct resp_run *run)
{
    struct histogram all = run->latency_ns[LOAD_READ];
    const struct histogram *reads = &run->latency_ns[LOAD_READ];
    const struct histogram *writes = &run->latency_ns[LOAD_WRITE];
    uint64_t ops = run->ops[LOAD_READ] + run->ops[LOAD_WRITE];
    double n = ops > 0 ? (double)ops : (double)NAN;
    histogram_merge(&all, writes);
    const double values[FIGURES] = {
        [FIGURE_OPS] = (double)ops / run->seconds,
        [FIGURE_CPU] = run->servers_cpu_seconds * 1e9 / n,
        [FIGURE_CLIENT_CPU] = run->client_cpu_seconds * 1e9 / n,
        [FIGURE_CLIENT_SHARE] =
            run->client_cpu_seconds / run->seconds / (double)s->options.config.threads,
        [FIGURE_SERVERS_SHARE] = run->servers_cpu_seconds / run->seconds,
        [FIGURE_P50] = latency_us(&all, 500000),
        [FIGURE_P99] = latency_us(&all, 990000),
        [FIGURE_P999] = latency_us(&all, 999000),
        [FIGURE_P9999] = latency_us(&all, 999900),
        [FIGURE_MEAN] = all.count > 0 ? histogram_mean(&all) / 1e3 : (double)NAN,
        [FIGURE_READS_P50] = latency_us(reads, 500000),
        [FIGURE_READS_P99] = latency_us(reads, 990000),
        [FIGURE_WRITES_P50] = latency_us(writes, 500000),
        [FIGURE_WRITES_P99] = latency_us(writes, 990000),
    };
    for (uint32_t i = 0; i < FIGURES; i++) {
        s->values[i][index] = values[i];
    }
    s->ops += ops;
    s->failed += run->failed;
    s->missing += run->missing;
}

/* ---- What is printed ---- */

static struct bench_spread spread_of(const struct session *s, uint32_t figure)
{
    return bench_spread_of(s->values[figure], s->options.runs);
}

static void print_text(const struct session *s)
{
    printf("%-46s %12s %12s %12s\n", "", "median", "least", "most");
    for (uint32_t i = 0; i < FIGURES; i++) {
        struct bench_spread spread = spread_of(s, i);
        if (!isnan(spread.median)) {
            int digits = spread.median < 10.0 ? 2 : spread.median < 1000.0 ? 1 : 0;
            printf("%-46s %12.*f %12.*f %12.*f\n", figures[i].text, digits, spread.median, digits,
                   spread.min, digits, spread.max);
        }
    }
}

static json_t *settings(const struct session *s)
{
    const struct resp_load_config *c = &s->options.config;
    json_t *all = json_object();
    json_t *servers = json_array();
    for (uint32_t i = 0; i < c->servers_n; i++) {
        json_array_append_new(servers, json_string(c->servers[i]));
    }
    json_object_set_new(all, "resp", servers);
    json_object_set_new(all, "connections", json_integer(c->connections));
    json_object_set_new(all, "pipeline", json_integer(c->pipeline));
    json_object_set_new(all, "threads", json_integer(c->threads));
    json_object_set_new(all, "keys", json_integer((json_int_t)c->keys.n));
    json_object_set_new(all, "key_bytes", json_integer(RESP_LOAD_KEY_BYTES));
    json_object_set_new(all, "value_bytes", json_integer(c->value_bytes));
    json_object_set_new(all, "writes", json_real(c->mix.writes));
    json_object_set_new(all, "wait", json_integer(c->wait_replicas));
    json_object_set_new(all, "zipf", json_real(c->keys.exponent));
    json_object_set_new(all, "rate", json_real(c->rate));
    json_object_set_new(all, "seconds", json_real(s->options.seconds));
    json_object_set_new(all, "warmup", json_real(s->options.warmup));
    json_object_set_new(all, "runs", json_integer(s->options.runs));
    json_object_set_new(all, "seed", json_integer((json_int_t)c->seed));
    return all;
}

/* HK_ERR_NOMEM. */
static int print_json(const struct session *s)
{
    json_t *all = json_object();
    json_t *spreads = json_object();
    json_object_set_new(all, "settings", settings(s));
    for (uint32_t i = 0; i < FIGURES; i++) {
        struct bench_spread spread = spread_of(s, i);
        if (!isnan(spread.median)) {
            json_object_set_new(all, figures[i].name, json_real(spread.median));
            json_object_set_new(spreads, figures[i].name,
                                json_pack("{s:f,s:f}", "min", spread.min, "max", spread.max));
        }
    }
    json_object_set_new(all, "spread", spreads);
    json_object_set_new(all, "ops", json_integer((json_int_t)s->ops));
    json_object_set_new(all, "failed", json_integer((json_int_t)s->failed));
    json_object_set_new(all, "missing", json_integer((json_int_t)s->missing));
    int err = json_dumpf(all, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(8));
    json_decref(all);
    printf("\n");
    return err == 0 ? HK_OK : HK_ERR_NOMEM;
}

/* A measurement of requests that fail is none; one of the client is another one than was asked
 * for. */
static int judge(const struct session *s)
{
    double share = spread_of(s, FIGURE_CLIENT_SHARE).median;
    if (s->options.config.rate == 0.0 && share > CLIENT_SHARE_MAX) {
        fprintf(stderr,
                "horkos bench: warning: this program's threads were busy for %.0f %% of the time, "
                "so the throughput may be theirs and not the server's; try --threads %u, or trust "
                "the CPU time for a request alone (--pids)\n",
                share * 100.0, s->options.config.threads + 1);
    }
    if (s->missing > 0) {
        fprintf(stderr, "horkos bench: %" PRIu64 " reads found no key\n", s->missing);
    }
    if (s->failed > 0) {
        fprintf(stderr, "horkos bench: %" PRIu64 " requests failed, the first with: %s\n",
                s->failed, resp_load_error(s->load));
        return STATUS_FAILED;
    }
    if (s->ops == 0) {
        fprintf(stderr, "horkos bench: nothing was done in %g seconds\n", s->options.seconds);
        return STATUS_FAILED;
    }
    return STATUS_OK;
}

static int measure(struct session *s, struct resp_run *run)
{
    struct bench_resp_options *o = &s->options;
    o->config.progress = tell_filling;
    o->config.context = s;
    int err = resp_load_create(&o->config, s->why, sizeof s->why, &s->load);
    for (uint32_t i = 0; i < o->runs && err == HK_OK; i++) {
        char text[80];
        snprintf(text, sizeof text, "run %" PRIu32 " of %" PRIu32, i + 1, o->runs);
        tell(s, text);
        err = resp_load_run(s->load, o->warmup, o->seconds, run, s->why, sizeof s->why);
        keep(s, i, run);
    }
    end_of_telling(s);
    if (err != HK_OK) {
        fprintf(stderr, "horkos bench: %s\n", s->why);
        return STATUS_FAILED;
    }
    if (!o->json) {
        print_text(s);
    } else if (print_json(s) != HK_OK) {
        fprintf(stderr, "horkos bench: out of memory\n");
        return STATUS_FAILED;
    }
    fflush(stdout);
    return judge(s);
}

int bench_resp_command(int argc, char **argv)
{
    struct session *s = calloc(1, sizeof *s);
    struct resp_run *run = malloc(sizeof *run);
    bool help = false;
    int status = STATUS_FAILED;
    if (s != NULL) {
        s->values = calloc(FIGURES, sizeof *s->values);
    }
    if (s == NULL || s->values == NULL || run == NULL) {
        fprintf(stderr, "horkos bench: out of memory\n");
    } else {
        status = bench_resp_options_parse(argc, argv, &s->options, &help);
        s->tells = isatty(STDERR_FILENO) == 1;
        if (status == STATUS_OK && !help) {
            status = measure(s, run);
        }
        resp_load_destroy(s->load);
    }
    if (s != NULL) {
        free(s->values);
    }
    free(s);
    free(run);
    return status;
}
