/* Makes a run that violates something smaller, as long as it violates the same: fewer kinds of
 * faults, fewer entries of the fault plan, fewer clients, keys and operations, an earlier end. */
#ifndef HORKOS_SIM_SHRINK_H
#define HORKOS_SIM_SHRINK_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sim.h"

/* What is known of a run that was tried. */
#define SHRINK_RULE_BYTES 200u
struct shrink_outcome {
    bool violates;
    char rule[SHRINK_RULE_BYTES]; /* what: equal for violations of the same kind */
    bool history;                 /* it is a history that was refused */
    uint64_t steps;
    uint32_t plan_n;
    uint32_t drawn;
};

/* Runs the seed; the process may end on the way, if the callee sees to it. */
typedef void shrink_run_fn(void *context, const struct sim_config *config, uint64_t seed,
                           struct shrink_outcome *outcome_out);

struct shrink {
    struct sim_config config; /* the smallest that still violates */
    uint64_t seed;
    struct shrink_outcome first; /* of the configuration as it was given */
    struct shrink_outcome outcome;
    uint32_t runs; /* that were tried */
};

/* The outcome of a run in this process. */
void shrink_note(const struct sim_result *result, struct shrink_outcome *outcome_out);

/* Tries at most runs_max runs, and none once `enough` (which may be NULL) says so. False: the seed
 * violates nothing. */
bool shrink_run(struct shrink *shrink, const struct sim_config *config, uint64_t seed,
                shrink_run_fn *run, bool (*enough)(void *context), void *context,
                uint32_t runs_max);

/* The options beside --replay SEED that give the run, as the command line takes them: each begins
 * with a space. */
void shrink_options(const struct sim_config *config, struct text *to);

#endif
