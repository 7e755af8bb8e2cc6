/* What clients ask for: draws operations and builds them. */
#ifndef HORKOS_SIM_WORKLOAD_H
#define HORKOS_SIM_WORKLOAD_H

#include <stdint.h>

#include "sim/client.h"

struct world;

/* Adds a key; returns its index. */
uint32_t workload_add_key(struct world *world, enum key_class class);
/* The outcome of one more update of the key is unknown. After some of them clients turn to a new
 * key, because each doubles what a checker must consider. */
void workload_doubt(struct world *world, uint32_t key);
/* Draws the client's next operation into a new sim_op, ready to be queued; returns its index. */
uint32_t workload_draw(struct world *world, struct client *client);
/* A read of the given key. */
uint32_t workload_read(struct world *world, struct client *client, uint32_t key);
/* What the answer says in terms of the history: fills in ok and out of op->h. NULL, or what is
 * wrong with it. */
const char *workload_understand(struct world *world, struct sim_op *op,
                                const struct answer *answer);

#endif
