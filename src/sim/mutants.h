/* What a HK_MUTANTS build can do wrong, by name: rules that it can switch off, "view:wipe",
 * "hermes:epoch", "node:lease", and operators that it can flip,
 * "flip:view/acceptor.c:busy:2:||". A simulator that does not notice proves nothing. */
#ifndef HORKOS_SIM_MUTANTS_H
#define HORKOS_SIM_MUTANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sim.h"

#define MUTANT_NAME_BYTES 96u

uint32_t mutants_count(void);
/* The name of rule i, 0 <= i < mutants_count(). */
void mutant_name(uint32_t i, char name_out[MUTANT_NAME_BYTES]);
/* The engine whose rule or operator i is; NULL: it is no engine's. */
const char *mutant_engine(uint32_t i);
/* Switches rule i off in runs of this configuration, if it is not of another engine. */
void mutant_switch_off(uint32_t i, struct sim_config *config);
/* mutants_count() if there is no such rule. */
uint32_t mutant_find(const char *name);
/* Why nothing is expected to notice that rule i is off, in a few words (docs/TESTING.md has the
 * arguments); NULL if something must. */
const char *mutant_survives(uint32_t i);

/* Where to look first. */
struct mutant_hint {
    const char *name;
    enum sim_choice o3;    /* SIM_DRAWN: as the seed draws it */
    enum sim_choice async; /* likewise */
    uint32_t faults;       /* 0: all */
    const char *explore;   /* a configuration of the explorer, or NULL ... */
    uint64_t states;       /* ... and how many states of it; 0: as always */
};
/* NULL: anywhere. */
const struct mutant_hint *mutant_hint(uint32_t i);

#endif
