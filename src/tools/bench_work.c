/* `horkos bench --workload`: see bench_work_options.c for its command line. */
#include "tools/bench_work.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "node/engines.h"
#include "tools/commands.h"

struct session {
    struct bench_work_options options;
    struct bench_cluster *clusters[BENCH_DESIGNS_MAX];
    struct bench_work_series *series; /* one for each design */
    struct bench_run *run;
};

bool bench_work_asked(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--workload") == 0 || strncmp(argv[i], "--workload=", 11) == 0) {
            return true;
        }
    }
    return false;
}

static int make_clusters(struct session *s)
{
    const struct bench_work_options *o = &s->options;
    for (uint32_t i = 0; i < o->designs_n; i++) {
        struct bench_config config = o->config;
        const char *why = NULL;
        config.engine = bench_protocol_engine(o->designs[i].protocol);
        config.lotus = o->designs[i].lotus;
        config.work = &o->work;
        if (bench_cluster_create(&config, &s->clusters[i], &why) != HK_OK) {
            fprintf(stderr, "horkos bench: no cluster of %s: %s\n", o->designs[i].name, why);
            return STATUS_FAILED;
        }
    }
    return STATUS_OK;
}

static void keep(struct bench_work_series *series, uint32_t run, const struct bench_run *result)
{
    double figures[WORK_FIGURES];
    work_figures_of(result, figures);
    for (uint32_t i = 0; i < WORK_FIGURES; i++) {
        series->figures[i][run] = figures[i];
    }
    series->txns += result->ops[LOAD_READ] + result->ops[LOAD_WRITE];
    series->failed += result->failed;
    series->refused += result->refused;
    series->frames_dropped += result->frames_dropped;
    series->view_changes += result->view_changes;
}

/* All in turn, every second round backwards: whatever slows the machine down slows all. */
static void run_all(struct session *s)
{
    const struct bench_work_options *o = &s->options;
    for (uint32_t run = 0; run < o->runs; run++) {
        for (uint32_t i = 0; i < o->designs_n; i++) {
            uint32_t design = run % 2 == 0 ? i : o->designs_n - 1 - i;
            bench_cluster_run(s->clusters[design], o->warmup, o->seconds, s->run);
            keep(&s->series[design], run, s->run);
        }
    }
}

/* A measurement of transactions that fail is none. */
static int judge(const struct session *s)
{
    int status = STATUS_OK;
    for (uint32_t i = 0; i < s->options.designs_n; i++) {
        const struct bench_work_series *x = &s->series[i];
        const char *name = s->options.designs[i].name;
        if (x->failed > 0 || x->frames_dropped > 0 || x->view_changes > 0 || x->txns == 0) {
            fprintf(stderr,
                    "horkos bench: %s: of %" PRIu64 " transactions %" PRIu64
                    " failed or did not end; %" PRIu64 " frames were dropped, and the view "
                    "changed %" PRIu64 " times\n",
                    name, x->txns, x->failed, x->frames_dropped, x->view_changes);
            status = STATUS_FAILED;
        }
    }
    return status;
}

static int measure(struct session *s)
{
    struct bench_machine machine;
    int status = make_clusters(s);
    if (status != STATUS_OK) {
        return status;
    }
    run_all(s);
    bench_machine_read(&machine);
    struct bench_work_report report = {
        .options = &s->options,
        .series = s->series,
        .machine = &machine,
        .work = bench_cluster_work(s->clusters[0]),
    };
    if (!s->options.json) {
        bench_work_text(&report, stdout);
    } else if (bench_work_json(&report, stdout) != HK_OK) {
        fprintf(stderr, "horkos bench: out of memory\n");
        return STATUS_FAILED;
    }
    fflush(stdout);
    return judge(s);
}

int bench_work_command(int argc, char **argv)
{
    struct session s;
    bool help = false;
    memset(&s, 0, sizeof s);
    int status = bench_work_options_parse(argc, argv, &s.options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    s.run = malloc(sizeof *s.run);
    s.series = calloc(s.options.designs_n, sizeof *s.series);
    if (s.run != NULL && s.series != NULL) {
        status = measure(&s);
    } else {
        fprintf(stderr, "horkos bench: out of memory\n");
        status = STATUS_FAILED;
    }
    for (uint32_t i = 0; i < s.options.designs_n; i++) {
        bench_cluster_destroy(s.clusters[i]);
    }
    free(s.series);
    free(s.run);
    return status;
}
