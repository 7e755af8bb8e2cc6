/* One attempt to notice a mutant: some seeds of the simulator, or one configuration of the
 * explorer, or a test program, in processes of their own. Only what a checker, an invariant or an
 * assertion of the code under test says counts as noticed, or that a run does not end; a crash, or
 * an assertion of the checking code itself, shows nothing. */
#ifndef HORKOS_TOOLS_MUTANT_TRIAL_H
#define HORKOS_TOOLS_MUTANT_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "explore/explore.h"
#include "sim/sim.h"

#define MUTANT_HOW_BYTES 200u
#define MUTANT_TEST_BYTES 64u

enum mutant_end {
    MUTANT_MISSED,
    MUTANT_HISTORY,   /* a checker refused a history */
    MUTANT_INVARIANT, /* something that must hold at every moment did not */
    MUTANT_ASSERTION, /* the same, said by an assertion of the code under test */
    MUTANT_LIVENESS,  /* what must happen in the end did not, within its bound of virtual time */
    MUTANT_LOOP,      /* a step did not end within its bound of processor time */
    MUTANT_TEST,      /* a test program failed */
    MUTANT_CRASH,     /* shows nothing */
    MUTANT_ENDS
};
extern const char *const mutant_end_names[MUTANT_ENDS];

struct mutant_trial {
    uint32_t mutant;                      /* mutants_count(): the code as it is */
    char test[MUTANT_TEST_BYTES];         /* the name of the test program; "": none */
    const struct explore_config *explore; /* NULL: the simulator, or a test */
    uint64_t states_max;                  /* the explorer's bound */
    struct sim_config sim;                /* ... without the mutant */
    uint64_t from;
    uint64_t seeds;
};

struct mutant_outcome {
    enum mutant_end end;
    uint64_t seed;      /* simulator: that showed it */
    uint32_t depth;     /* explorer: steps of the shortest execution */
    uint64_t ran;       /* seeds that came to an end, or states */
    uint32_t uncounted; /* runs that crashed */
    uint32_t stranded;  /* seeds that came to an end that proves nothing */
    char how[MUTANT_HOW_BYTES];
};

/* Whether such an end means that the mutant was noticed. */
bool mutant_noticed(enum mutant_end end);
/* False, after an error message: there is no process or memory to be had. */
bool mutant_try(const struct mutant_trial *trial, struct mutant_outcome *outcome_out);

#endif
