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
/* Switches rule i off in runs of this configuration. */
void mutant_switch_off(uint32_t i, struct sim_config *config);
/* mutants_count() if there is no such rule. */
uint32_t mutant_find(const char *name);
/* Why this simulator is not expected to notice that rule i is off; NULL if it must. */
const char *mutant_survives(uint32_t i);

#endif
