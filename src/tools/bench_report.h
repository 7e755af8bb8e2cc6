/* What `horkos bench` prints. */
#ifndef HORKOS_TOOLS_BENCH_REPORT_H
#define HORKOS_TOOLS_BENCH_REPORT_H

#include <stdio.h>

#include "bench/figures.h"
#include "bench/machine.h"
#include "bench/probe.h"
#include "tools/bench_options.h"

/* Of one engine: the figures of all runs, figure by figure. */
struct bench_series {
    double (*figures)[BENCH_RUNS_MAX]; /* BENCH_FIGURES rows of options.runs values */
    uint64_t ops;                      /* of all runs */
    uint64_t failed;
    uint64_t refused;
    uint64_t frames_dropped;
    uint64_t view_changes;
};

struct bench_report {
    const struct bench_options *options;
    const struct bench_series *series; /* one for each engine */
    const struct bench_machine *machine;
    const struct bench_probe *probe; /* NULL: not asked for */
};

void bench_report_text(const struct bench_report *report, FILE *to);
/* HK_ERR_NOMEM. */
int bench_report_json(const struct bench_report *report, FILE *to)
    __attribute__((warn_unused_result));

#endif
