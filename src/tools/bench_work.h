/* `horkos bench --workload`: transactions of a workload, with Zeus and with the statically sharded
 * baseline. */
#ifndef HORKOS_TOOLS_BENCH_WORK_H
#define HORKOS_TOOLS_BENCH_WORK_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/machine.h"
#include "bench/work_figures.h"

#define BENCH_WORK_RUNS_MAX 100u

enum bench_design {
    BENCH_DESIGN_ZEUS,   /* objects move to where transactions need them */
    BENCH_DESIGN_STATIC, /* transactions go to their objects */
    BENCH_DESIGNS
};
extern const char *const bench_design_names[BENCH_DESIGNS];

struct bench_work_options {
    struct work_config work;
    struct bench_config config; /* but for engine and work */
    enum bench_design designs[BENCH_DESIGNS];
    uint32_t designs_n; /* two: the first is compared with the second */
    double seconds, warmup;
    uint32_t runs;
    bool json;
};

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. */
int bench_work_options_parse(int argc, char **argv, struct bench_work_options *options_out,
                             bool *help_out);

/* Of one design: the figures of all runs. */
struct bench_work_series {
    double figures[WORK_FIGURES][BENCH_WORK_RUNS_MAX];
    uint64_t txns, failed, refused, frames_dropped, view_changes;
};

struct bench_work_report {
    const struct bench_work_options *options;
    const struct bench_work_series *series; /* one for each design */
    const struct bench_machine *machine;
    const struct work *work; /* names its types */
};
void bench_work_text(const struct bench_work_report *report, FILE *to);
/* HK_ERR_NOMEM. */
int bench_work_json(const struct bench_work_report *report, FILE *to)
    __attribute__((warn_unused_result));

/* Whether the command line is for it. */
bool bench_work_asked(int argc, char **argv);
int bench_work_command(int argc, char **argv);

#endif
