/* What an answer says, in terms of a history. */
#ifndef HORKOS_SIM_UNDERSTAND_H
#define HORKOS_SIM_UNDERSTAND_H

#include "engine/op.h"
#include "sim/client.h"

/* Fills in what the answer adds to op->h, which may turn it into another kind: a conditional write
 * that says which value stood in its way was a read. NULL, or what is wrong with the answer. */
const char *understand(struct machine *machine, struct sim_op *op, const struct answer *answer);

#endif
