/* The hash slots of a space whose keys have homes (docs/GALENE.md), for INFO, HORKOS SLOTS and
 * HORKOS STATUS: counted, and written as JSON. Pure but for memory. */
#ifndef HORKOS_SERVER_SLOTS_H
#define HORKOS_SERVER_SLOTS_H

#include <stdint.h>

#include <jansson.h>

#include "base/nodeset.h"
#include "base/slot.h"

struct slots_sum {
    uint32_t homed[NODES_MAX]; /* slots of which the node is the home, moving ones included */
    uint32_t gives[NODES_MAX]; /* of those, the ones that go to another node ... */
    uint32_t gets[NODES_MAX];  /* ... and the ones that come */
    uint32_t by_state[HOME_GIVEN + 1];
};

/* homes: HASH_SLOTS of them. */
void slots_sum(const struct slot_home *homes, struct slots_sum *sum_out);

/* "none", "stable", "moving", "lost", "emptying", "given". */
const char *slots_state_name(uint8_t state);

/* {"slots": {"stable": n, "moving": n, ...}, "nodes": [{"id", "slots", "gives", "gets"}, ...],
 * "runs": [{"from", "to", "state", "home", "next"}, ...]}. A node is listed if a slot names it.
 * NULL without memory. */
json_t *slots_json(const struct slot_home *homes);
/* {"stable": n, ...} */
json_t *slots_states_json(const struct slots_sum *sum);

#endif
