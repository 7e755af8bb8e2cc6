/* Carries a fault plan out. */
#ifndef HORKOS_SIM_FAULTS_H
#define HORKOS_SIM_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine.h"

struct world;

enum fault_phase {
    FAULT_WAITING,
    FAULT_CUED,    /* its time has come, and it waits for its cue */
    FAULT_TRAPPED, /* it befalls its node at the next poll that puts something out */
    FAULT_ACTIVE,
    FAULT_OVER,
    FAULT_SKIPPED, /* it would have taken the majority away */
};

struct fault_run {
    enum fault_phase phase;
    bool cued;         /* its cue has come, or is waited for no longer */
    uint32_t deferred; /* how often it was put off */
    uint8_t place;     /* ZOMBIE: where the old process is ... */
    uint64_t nonce;    /* ... and which; LEAVE: the process that hands its keys over ... */
    uint64_t until_us; /* ... until then at the latest */
};

/* Puts the plan's entries into the world's heap, and starts all nodes that do not start late. */
void faults_init(struct world *world);
void fault_begin(struct world *world, uint32_t fault);
/* The moment that some faults wait for. */
void faults_cue(struct world *world, enum fault_cue cue);
/* Whether any of them waits. */
bool faults_listen(const struct world *world);
/* It did not come in time: the fault begins without it. */
void fault_cue_timeout(struct world *world, uint32_t fault);
void fault_end(struct world *world, uint32_t fault);
/* The machine has polled, with outputs that are not out yet, and its trap snaps. True if the
 * machine stopped or holds its outputs now. */
bool fault_snap(struct machine *machine);
/* Whether a process that hands its keys over may leave now. */
void fault_hand_over(struct world *world, uint32_t fault);
/* The machine's process has left in good order: it ends, and the fault goes on. */
void fault_left(struct machine *machine);
/* No poll came in time: it befalls the node between two polls. */
void fault_trap_timeout(struct world *world, uint32_t fault);
/* Ends all that is active, and starts what is down. */
void faults_heal(struct world *world);

#endif
