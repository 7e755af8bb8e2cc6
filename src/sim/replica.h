/* Compares the stores of all nodes, entry by entry. */
#ifndef HORKOS_SIM_REPLICA_H
#define HORKOS_SIM_REPLICA_H

#include <stdbool.h>

#include "sim/text.h"

struct world;

/* Whether all nodes hold the same keys with the same timestamps, flags and values, all readable;
 * tombstones may be missing, and must be where they go soon (in gentle runs). If not, why_out says
 * where they differ. */
bool replicas_equal(struct world *world, struct text *why_out);

#endif
