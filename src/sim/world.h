/* A world: machines, network, clients and faults under one virtual time. Its only thread takes the
 * earliest entry out of a heap, lets it happen, and goes on. */
#ifndef HORKOS_SIM_WORLD_H
#define HORKOS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "sim/client.h"
#include "sim/faults.h"
#include "sim/ghost.h"
#include "sim/heap.h"
#include "sim/machine.h"
#include "sim/network.h"
#include "sim/setup.h"
#include "sim/sim.h"
#include "sim/trace.h"

/* Kinds of entries of the heap. */
enum happening {
    HAPPENS_POLL,         /* a: node, b: worker */
    HAPPENS_ARRIVAL,      /* a: node, what: the parcel */
    HAPPENS_ACT,          /* a: client */
    HAPPENS_IMPATIENCE,   /* a: operation */
    HAPPENS_ROUND,        /* a: operations for each client */
    HAPPENS_FAULT,        /* a: fault begins */
    HAPPENS_TRAP_TIMEOUT, /* a: fault */
    HAPPENS_FAULT_END,    /* a: fault */
    HAPPENS_HEALING,      /* faults end */
    HAPPENS_LOOK,         /* is everything well? (after faults have ended) */
};

/* Safety first, under faults; then everything has to become well. */
enum phase {
    PHASE_SAFETY,
    PHASE_CALM,     /* all nodes come back, every client makes progress */
    PHASE_DRAIN,    /* nothing new; what is under way ends */
    PHASE_READ,     /* every key is read at every node */
    PHASE_EQUAL,    /* replicas become equal */
    PHASE_BLACKOUT, /* all nodes lost their power, and must not take it for a first start */
    PHASE_OVER,
};

struct world {
    const struct sim_config *config;
    struct setup setup;
    struct sim_result *result;
    uint64_t now_us;
    uint64_t step; /* rises with each entry that is taken out of the heap */
    enum phase phase;
    uint64_t healed_us;      /* when faults ended */
    uint64_t dark_us;        /* when all power failed */
    uint64_t whole_since_us; /* all nodes have served in one view since then; NEVER: they do not */
    uint64_t
        settled_us; /* when that had lasted, and no frame was left from before; NEVER: not yet */
    struct heap heap;
    struct network network;
    struct machine machines[MACHINES_MAX]; /* by node id; then zombies */
    struct clients clients;
    struct fault_run faults[PLAN_MAX];
    struct ghost ghost;
    struct trace trace;
    /* Streams of chance of their own, so that what one part draws does not shift the others. */
    struct random chance_network, chance_schedule, chance_clients, chance_machines, chance_faults;
};

/* Plans something; at_us may be now, not earlier. */
void world_plan(struct world *world, uint64_t at_us, enum happening kind, uint32_t a, uint32_t b,
                uint32_t token, void *what);
/* The first violation of a run is the one that is reported; the run ends. */
void world_violation(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline bool world_broken(const struct world *world)
{
    return world->result->verdict != SIM_SOUND;
}
void world_befell(struct world *world, enum sim_fault kind);

#endif
