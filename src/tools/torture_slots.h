/* The operator of a space whose keys have homes: when a node is gone, the slots that it was the
 * home of are lost, and stay so until somebody gives them up. That empties their keys, which the
 * histories and the bank must know. */
#ifndef HORKOS_TOOLS_TORTURE_SLOTS_H
#define HORKOS_TOOLS_TORTURE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "tools/torture_cluster.h"
#include "tools/torture_bank.h"
#include "tools/torture_keys.h"

struct torture_slots {
    struct torture_cluster *cluster;
    struct torture_keys *keys;
    struct torture_bank *bank;
    struct random random;
    uint64_t due_us; /* when the operator gives them up; 0: nothing was lost lately */
    uint64_t orders;
    bool calm;
    bool no_memory; /* for what the histories must know */
};

void torture_slots_init(struct torture_slots *slots, const struct torture_options *options,
                        struct torture_cluster *cluster, struct torture_keys *keys,
                        struct torture_bank *bank);
/* Faults are over: nobody waits any longer. */
void torture_slots_calm(struct torture_slots *slots);
/* Gives lost slots up when it is time. Call it often. */
void torture_slots_step(struct torture_slots *slots, uint64_t now_us);

#endif
