/* The record of mutants and of what shows each, tests/sim/mutants.txt: one in a line,
 *   RULE sim NODES SEED [OPTION...]  a seed of the simulator, with options of `horkos sim`
 *   RULE explore CONFIG [STATES]     a configuration of the explorer, and how many states it needs
 *   FLIP test PROGRAM                a test program, which must fail with the operator flipped
 * What follows # is a comment. */
#ifndef HORKOS_TOOLS_MUTANT_RECORD_H
#define HORKOS_TOOLS_MUTANT_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/text.h"
#include "tools/mutant_trial.h"

/* STATUS_OK; STATUS_USAGE after an error message. The trials, *n_out of them, are malloced. */
int mutant_records_read(const char *path, struct mutant_trial **trials_out, uint32_t *n_out);
/* The line that records how the trial showed its mutant, without a newline. */
void mutant_record_write(const struct mutant_trial *trial, const struct mutant_outcome *outcome,
                         struct text *to);

#endif
