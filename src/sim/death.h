/* Deaths of processes at chosen moments of the two machines of Zeus: a case names a role in what is
 * going on, a state of the tables in docs/protocols/zeus.md and zeus-commit.md, and the request
 * that it is about. The first process that is found there after a poll is killed on the spot, when
 * none, some or all of what the poll put out has left.
 * Some states are only reached after another death: a replay needs a coordinator, or a requester,
 * that is dead. Such a case names who dies first, likewise. */
#ifndef HORKOS_SIM_DEATH_H
#define HORKOS_SIM_DEATH_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/machine.h"

struct world;

#define DEATH_NAME_BYTES 48u

/* 1 .. death_cases(): sim_config.death. */
uint32_t death_cases(void);
/* "driver drive OWNER", "coordinator SENT", ... */
void death_name(uint32_t which, char name_out[DEATH_NAME_BYTES]);
/* 0: there is no such case. */
uint32_t death_find(const char *name);
/* The case that comes to pass before it; 0: none does. */
uint32_t death_before(uint32_t which);
/* Nodes of a cluster that is large enough for it. */
uint32_t death_nodes(uint32_t which);

struct death {
    bool done;
    uint32_t next; /* the case that is waited for: the one before first */
    uint32_t left; /* occasions that are let pass first */
    /* What was seen of a machine's keys after its last poll, for what has just ended. */
    struct death_memory *memory;
    struct pipes_look pipes[MACHINES_MAX];
};

void death_init(struct world *world);
void death_deinit(struct world *world);
/* The machine has polled, and its outputs are not out yet. True: it was killed. */
bool death_strikes(struct machine *machine);

#endif
