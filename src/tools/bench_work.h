/* `horkos bench --workload`: transactions of a workload, with Zeus, with the statically sharded
 * baseline, and with Lotus in each of its configurations. */
#ifndef HORKOS_TOOLS_BENCH_WORK_H
#define HORKOS_TOOLS_BENCH_WORK_H

#include <stdbool.h>
#include <stdio.h>

#include "bench/dex.h"
#include "bench/machine.h"
#include "bench/onesided.h"
#include "bench/work_figures.h"
#include "node/engines.h"

#define BENCH_WORK_RUNS_MAX 100u

#define BENCH_DESIGNS_MAX 24u

/* --cc: the lock table's policies, then the one-sided baselines', then those of --partitioned. */
#define BENCH_PARTITIONED_POLICIES (LOCK_POLICIES + ONE_POLICIES)
#define BENCH_POLICY_DEX BENCH_PARTITIONED_POLICIES
#define BENCH_POLICIES (BENCH_POLICY_DEX + 1)

enum bench_protocol {
    BENCH_ZEUS,      /* objects move to where transactions need them */
    BENCH_STATIC,    /* transactions go to their objects, and are validated */
    BENCH_LOTUS,     /* transactions ask for rows and locks of memory servers */
    BENCH_ONE_SIDED, /* the one-sided baselines, of --cc alone */
    BENCH_DEX,       /* the index in co-partitioned memory, of --cc alone */
    BENCH_PROTOCOLS
};
extern const char *const bench_protocol_names[BENCH_PROTOCOLS];

/* What a cluster is made with; of lotus each configuration that was asked for is one. */
struct bench_design {
    char name[32];
    enum bench_protocol protocol;
    struct lotus_config lotus;
    uint8_t one_sided; /* enum one_policy */
};
/* NULL: it has none of ours. */
const struct engine_ops *bench_protocol_engine(enum bench_protocol protocol);

struct bench_work_options {
    struct work_config work;
    struct bench_config config;      /* but for engine and work */
    bool protocols[BENCH_PROTOCOLS]; /* that were asked for */
    bool policies[BENCH_POLICIES];   /* --cc */
    bool overlap;                    /* one-sided: all requests of a transaction at once */
    bool partitioned; /* every compute server has its own keys, and transactions of these */
    double cache;     /* one-sided, dex: a compute server's, percent of the index; 0: 8 */
    struct lotus_config lotus; /* but for the policy */
    bool increments; /* lotus: with nothing of hints and batches, then with one more each time */
    struct bench_design designs[BENCH_DESIGNS_MAX];
    uint32_t designs_n; /* more than one: the first is compared with the others */
    double seconds, warmup;
    uint32_t runs;
    const char *samples; /* a file for them; NULL: none. The command line's */
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
