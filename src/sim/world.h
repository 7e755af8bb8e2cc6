/* A world: machines, network, clients and faults under one virtual time. Its only thread takes the
 * earliest entry out of a heap, lets it happen, and goes on. */
#ifndef HORKOS_SIM_WORLD_H
#define HORKOS_SIM_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "sim/client.h"
#include "sim/death.h"
#include "sim/faults.h"
#include "sim/ghost.h"
#include "sim/heap.h"
#include "sim/homed.h"
#include "sim/lost.h"
#include "sim/machine.h"
#include "sim/network.h"
#include "sim/operator.h"
#include "sim/owned.h"
#include "sim/setup.h"
#include "sim/sim.h"
#include "sim/trace.h"
#include "sim/trader.h"

/* Kinds of entries of the heap. */
enum happening {
    HAPPENS_POLL,            /* a: node, b: worker */
    HAPPENS_ARRIVAL,         /* a: node, what: the parcel */
    HAPPENS_ACT,             /* a: client */
    HAPPENS_IMPATIENCE,      /* a: operation */
    HAPPENS_TRADE,           /* a: trader */
    HAPPENS_DEAL_IMPATIENCE, /* a: deal */
    HAPPENS_ROUND,           /* a: operations for each client */
    HAPPENS_FAULT,           /* a: fault begins */
    HAPPENS_TRAP_TIMEOUT,    /* a: fault */
    HAPPENS_FAULT_END,       /* a: fault */
    HAPPENS_CUE_TIMEOUT,     /* a: fault */
    HAPPENS_RETURN,          /* a: node */
    HAPPENS_HAND_OVER,       /* a: fault */
    HAPPENS_OPERATOR,        /* the operator looks around */
    HAPPENS_HEALING,         /* faults end */
    HAPPENS_LOOK,            /* is everything well? (after faults have ended) */
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
    uint64_t healed_us;               /* when faults ended */
    uint64_t dark_us;                 /* when all power failed at the end */
    uint64_t lives[SIM_PLAN_MAX + 1]; /* the steps at which the cluster began, always empty: its
                                         histories have nothing to do with each other */
    uint32_t lives_n;
    uint64_t whole_since_us; /* all nodes have served in one view since then; NEVER: they do not */
    uint64_t
        settled_us; /* when that had lasted, and no frame was left from before; NEVER: not yet */
    struct heap heap;
    struct network network;
    struct machine machines[MACHINES_MAX]; /* by node id; then zombies */
    struct operator operator;
    struct clients clients;
    struct traders traders;
    struct fault_run faults[PLAN_MAX];
    struct ghost ghost;
    struct homed homed;
    struct owned owned;
    struct losses losses;
    struct death death;
    struct trace trace;
    /* Streams of chance of their own, so that what one part draws does not shift the others. */
    struct random chance_network, chance_schedule, chance_clients, chance_machines, chance_faults;
    struct random chance_traders;
};

/* Lets the world go on from within a poll of the machine's worker, which is held up meanwhile,
 * until the given time at the earliest. */
void world_hold_up(struct world *world, struct machine *machine, uint32_t worker);
/* Plans something; at_us may be now, not earlier. */
void world_plan(struct world *world, uint64_t at_us, enum happening kind, uint32_t a, uint32_t b,
                uint32_t token, void *what);
/* The first violation of a run is the one that is reported; the run ends. */
void world_violation(struct world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The run ends with another verdict, which a violation overrules. */
void world_end(struct world *world, enum sim_verdict verdict, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline bool world_broken(const struct world *world)
{
    return world->result->verdict != SIM_SOUND;
}
/* All data is gone: what comes is another history. */
void world_new_life(struct world *world);
void world_befell(struct world *world, enum sim_fault kind);

#endif
