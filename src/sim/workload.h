/* What clients ask for: draws operations and builds them. */
#ifndef HORKOS_SIM_WORKLOAD_H
#define HORKOS_SIM_WORKLOAD_H

#include <stdint.h>

#include "sim/client.h"

struct world;

/* The keys that there are from the beginning. */
void workload_add_keys(struct world *world);
/* Adds a key; returns its index. */
uint32_t workload_add_key(struct world *world, enum key_class class);
/* The outcome of one more update of the key is unknown. After some of them clients turn to a new
 * key, because each doubles what a checker must consider. */
void workload_doubt(struct world *world, uint32_t key);
/* Draws the client's next command into new operations, ready to be queued: as many as the first one
 * has parts, one after the other. Returns the index of the first. */
uint32_t workload_draw(struct world *world, struct client *client);
/* A read of the given key. */
uint32_t workload_read(struct world *world, struct client *client, uint32_t key);

#endif
