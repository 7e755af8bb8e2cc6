/* An engine whose keys have homes and nothing else: no cache, no protocol, and each node's map is
 * what the test says, so that maps may be old, wrong, or tell of a slot that is moving. For the
 * tests of forwarding; in virtual time. */
#ifndef HORKOS_TESTS_SUPPORT_NODE_HOMED_H
#define HORKOS_TESTS_SUPPORT_NODE_HOMED_H

#include "base/slot.h"
#include "engine/engine.h"

#define HOMED_NODES_MAX 5u

struct homed_map {
    uint64_t version; /* taken up when it changes */
    struct slot_home slots[HASH_SLOTS];
};

/* The engine's configuration; large: static, or from the heap. */
struct homed_config {
    struct homed_map maps[HOMED_NODES_MAX]; /* by node */
    uint64_t delay_us;                      /* so long an update takes at the home */
};

extern const struct engine_ops homed_ops;

/* Every node's map: the first part of the slots has its home at node 0, and so on. */
void homed_even(struct homed_config *config, uint32_t nodes);
/* In one node's map all slots are like that; version + 1. */
void homed_all(struct homed_config *config, uint32_t node, struct slot_home home);

#endif
