/* `horkos bench`: see bench_options.c for its command line. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "tools/bench_report.h"
#include "tools/bench_resp.h"
#include "tools/bench_work.h"
#include "tools/commands.h"

struct session {
    struct bench_options options;
    struct bench_cluster *clusters[BENCH_ENGINES_MAX];
    struct bench_series series[BENCH_ENGINES_MAX];
    struct bench_run *run;
    bool tells; /* standard error is a terminal */
    uint64_t told_us;
    uint32_t engine; /* whose keys are being written */
};

/* ---- A line that says how far it is ---- */

static void tell(struct session *s, const char *text)
{
    if (s->tells) {
        fprintf(stderr, "\r%-70s", text);
    }
}

static void end_of_telling(struct session *s)
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
    snprintf(text, sizeof text, "%s: %" PRIu64 " of %" PRIu64 " keys written",
             s->options.engines[s->engine]->name, done, all);
    tell(s, text);
}

/* ---- Measuring ---- */

static int make_clusters(struct session *s)
{
    for (uint32_t i = 0; i < s->options.engines_n; i++) {
        struct bench_config config = s->options.config;
        const char *why = NULL;
        config.engine = s->options.engines[i];
        config.progress = tell_filling;
        config.context = s;
        s->engine = i;
        if (bench_cluster_create(&config, &s->clusters[i], &why) != HK_OK) {
            end_of_telling(s);
            fprintf(stderr, "horkos bench: no cluster of %s: %s\n", config.engine->name, why);
            return STATUS_FAILED;
        }
    }
    return STATUS_OK;
}

static void keep(struct bench_series *series, uint32_t run, const struct bench_run *result)
{
    double figures[BENCH_FIGURES];
    bench_figures_of(result, figures);
    for (uint32_t i = 0; i < BENCH_FIGURES; i++) {
        series->figures[i][run] = figures[i];
    }
    for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
        series->ops += result->ops[kind];
    }
    series->failed += result->failed;
    series->refused += result->refused;
    series->frames_dropped += result->frames_dropped;
    series->view_changes += result->view_changes;
}

/* One engine after the other in each round, every second round backwards: whatever slows the
 * machine down for a while slows all of them down. */
static void run_all(struct session *s)
{
    const struct bench_options *o = &s->options;
    for (uint32_t run = 0; run < o->runs; run++) {
        for (uint32_t i = 0; i < o->engines_n; i++) {
            uint32_t engine = run % 2 == 0 ? i : o->engines_n - 1 - i;
            char text[80];
            snprintf(text, sizeof text, "%s: run %" PRIu32 " of %" PRIu32, o->engines[engine]->name,
                     run + 1, o->runs);
            tell(s, text);
            bench_cluster_run(s->clusters[engine], o->warmup, o->seconds, s->run);
            keep(&s->series[engine], run, s->run);
        }
    }
}

/* A measurement of operations that fail is none. */
static int judge(const struct session *s)
{
    int status = STATUS_OK;
    for (uint32_t i = 0; i < s->options.engines_n; i++) {
        const struct bench_series *series = &s->series[i];
        const char *name = s->options.engines[i]->name;
        if (series->failed > 0) {
            fprintf(stderr, "horkos bench: %s: %" PRIu64 " operations failed or did not end\n",
                    name, series->failed);
            status = STATUS_FAILED;
        }
        if (series->frames_dropped > 0) {
            fprintf(stderr, "horkos bench: %s: the links had no room for %" PRIu64 " frames\n",
                    name, series->frames_dropped);
            status = STATUS_FAILED;
        }
        if (series->view_changes > 0) {
            fprintf(stderr,
                    "horkos bench: %s: the view changed while it was measured; this machine held "
                    "a node up for seconds\n",
                    name);
            status = STATUS_FAILED;
        }
        if (series->ops == 0) {
            fprintf(stderr, "horkos bench: %s: nothing was done in %g seconds\n", name,
                    s->options.seconds);
            status = STATUS_FAILED;
        }
    }
    return status;
}

static int measure(struct session *s)
{
    struct bench_probe probe;
    struct bench_machine machine;
    int status = make_clusters(s);
    if (status != STATUS_OK) {
        return status;
    }
    run_all(s);
    if (s->options.probe) {
        tell(s, "this machine's limits");
        int err = bench_probe(s->clusters[0], &probe);
        if (err != HK_OK) {
            end_of_telling(s);
            fprintf(stderr, "horkos bench: --probe failed: %s\n", hk_err_text(err));
            return STATUS_FAILED;
        }
    }
    end_of_telling(s);
    bench_machine_read(&machine);
    struct bench_report report = {
        .options = &s->options,
        .series = s->series,
        .machine = &machine,
        .probe = s->options.probe ? &probe : NULL,
    };
    if (!s->options.json) {
        bench_report_text(&report, stdout);
    } else if (bench_report_json(&report, stdout) != HK_OK) {
        fprintf(stderr, "horkos bench: out of memory\n");
        return STATUS_FAILED;
    }
    fflush(stdout);
    return judge(s);
}

static bool allocate(struct session *s)
{
    s->run = malloc(sizeof *s->run);
    bool good = s->run != NULL;
    for (uint32_t i = 0; i < s->options.engines_n; i++) {
        s->series[i].figures = calloc(BENCH_FIGURES, sizeof *s->series[i].figures);
        good = good && s->series[i].figures != NULL;
    }
    return good;
}

int bench_command(int argc, char **argv)
{
    struct session s;
    bool help = false;
    memset(&s, 0, sizeof s);
    if (bench_resp_asked(argc, argv)) {
        return bench_resp_command(argc, argv);
    }
    if (bench_work_asked(argc, argv)) {
        return bench_work_command(argc, argv);
    }
    int status = bench_options_parse(argc, argv, &s.options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    s.tells = isatty(STDERR_FILENO) == 1;
    if (allocate(&s)) {
        status = measure(&s);
    } else {
        fprintf(stderr, "horkos bench: out of memory\n");
        status = STATUS_FAILED;
    }
    for (uint32_t i = 0; i < s.options.engines_n; i++) {
        bench_cluster_destroy(s.clusters[i]);
        free(s.series[i].figures);
    }
    free(s.run);
    return status;
}
