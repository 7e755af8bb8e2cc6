/* What many runs amount to, as text and as JSON. */
#ifndef HORKOS_SIM_REPORT_H
#define HORKOS_SIM_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/sim.h"

#define REPORT_FINDINGS_MAX 64u

/* A smaller run that violates the same. */
struct sim_shrunk {
    uint32_t runs;          /* that were tried for it */
    struct text command;    /* that gives it again */
    struct text report;     /* of that run */
    struct history history; /* the shortest that is refused; empty: it is not about a history */
};

void sim_shrunk_deinit(struct sim_shrunk *shrunk);

struct sim_finding {
    uint64_t seed;
    enum sim_verdict verdict;
    struct text text;
    struct sim_shrunk shrunk; /* runs is 0: it was not tried */
};

struct sim_report {
    struct sim_config config;
    uint64_t from;
    uint64_t seeds; /* that were run */
    uint64_t verdicts[SIM_VERDICTS];
    struct sim_stats sum;
    uint64_t least_ops_ok;      /* of one run */
    uint64_t least_fault_kinds; /* of one run */
    uint64_t hash;              /* of all runs in their order */
    uint64_t twice;             /* seeds that ran twice ... */
    uint64_t twice_other;       /* ... and differed */
    /* Runs that were not sound, the first ones; but a violation takes the place of another one that
     * is none. */
    struct sim_finding findings[REPORT_FINDINGS_MAX];
    uint32_t findings_n;
    uint32_t latest; /* where the finding is that was added last */
};

void sim_report_init(struct sim_report *report, const struct sim_config *config, uint64_t from);
void sim_report_deinit(struct sim_report *report);
void sim_report_add(struct sim_report *report, uint64_t seed, const struct sim_result *result);
/* The process that ran the seed died: a failed assertion, say. */
void sim_report_add_death(struct sim_report *report, uint64_t seed, const char *how);
/* Of the seed that was added last, which violates something. The report takes over what shrunk
 * holds. */
void sim_report_add_shrunk(struct sim_report *report, struct sim_shrunk *shrunk);
/* The seed that was added last ran a second time. */
void sim_report_add_twice(struct sim_report *report, uint64_t seed, bool same);
void sim_report_text(const struct sim_report *report, double wall_seconds, FILE *to);
void sim_report_json(const struct sim_report *report, double wall_seconds, FILE *to);
/* Whether nothing was violated, and no second run differed. */
bool sim_report_sound(const struct sim_report *report);

#endif
