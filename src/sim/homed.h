/* Engines whose keys have homes (ENGINE_HOMED): what somebody who sees all nodes at once may demand
 * of them, and what becomes of the histories of keys whose home is lost.
 *
 * A node that dies takes the keys with it that it was the home of; nobody answers for them until
 * the operator gives their slots up. That empties the keys, once, between the moment at which the
 * first node knows of it and the moment at which the first one takes the slot for somebody's again:
 * for the history a deletion that nobody asked for. */
#ifndef HORKOS_SIM_HOMED_H
#define HORKOS_SIM_HOMED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/history.h"
#include "sim/machine.h"
#include "sim/text.h"

struct world;

/* A key's slot was given up. */
struct emptying {
    uint32_t key; /* of a client, or of traders */
    bool traded;
    uint32_t life;                /* of the world, in which it began */
    uint64_t from_map, until_map; /* versions of the maps that said so, and that it was over; 0 */
    uint64_t begin_us, end_us;    /* in a history's time; end 0: not over */
};

struct homed {
    uint32_t life;   /* of the world, which the next three are about */
    uint64_t newest; /* the highest version of a map that any node had */
    uint64_t *born;  /* by key: newest when it was first seen. What lagging nodes still show of
                        older maps says nothing about it */
    uint32_t born_n, born_capacity;
    struct emptying *at; /* by their beginning */
    size_t n, capacity;
    uint64_t map[MACHINES_MAX];   /* version of the last map that was looked at, ... */
    uint64_t nonce[MACHINES_MAX]; /* ... of this process */
    uint32_t next_key;            /* that is looked at */
    uint64_t lost_us;             /* when slots were first seen lost; 0: none are */
    uint64_t order_us;            /* then the operator gives them up, again and again */
};

/* ENGINE_HOMED, and ENGINE_TABLES, whose rows have homes as well. */
bool homed_on(const struct world *world);
void homed_deinit(struct homed *homed);
/* After each poll of the machine: keeps its map, and looks at a few keys on all nodes: at most one
 * node answers for a key that is not cached; what is cached and readable is the same everywhere. */
void homed_polled(struct machine *machine, uint32_t worker);
/* Whether the key's slot was ever given up in that life. */
bool homed_emptied(const struct world *world, uint32_t key, uint32_t life);
/* The deletions of that life, as operations of the client with that number; returns how many.
 * ops_out: as many as world->homed.n. */
size_t homed_deletions(const struct world *world, uint32_t life, uint32_t client,
                       struct history_op *ops_out);
/* When a traded key of that life was emptied for the i-th time, by its beginnings: false: it was
 * not. end_us 0: not over. */
bool homed_window(const struct world *world, uint32_t key, uint32_t life, uint32_t i,
                  uint64_t *begin_us_out, uint64_t *end_us_out);
/* From when on the bank's books say nothing in that life; UINT64_MAX: never. */
uint64_t homed_money_us(const struct world *world, uint32_t life);
/* Whether some machine holds the key as one whose newest value died with its writer: nobody can say
 * what it is, until somebody writes it. */
bool homed_key_lost(const struct world *world, uint32_t key);
/* NULL, or what is not as it should be once all faults are over: every slot has a home, and members
 * have equal shares. */
const char *homed_unsettled(const struct machine *machine);
/* The operator looks for lost slots, waits a while, and gives them up. True: there are some, or,
 * once the faults are over, a member may yet hear of some. */
bool homed_look(struct world *world);

#endif
