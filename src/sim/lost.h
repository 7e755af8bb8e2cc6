/* Objects whose replicas are all gone (ENGINE_OWNED): everybody answers that they are lost until
 * the operator gives them up. That empties them, some time after the last replica went: for the
 * history of a client's key a deletion that nobody asked for; what deals saw of a traded key counts
 * up to there; and when an account is emptied, the bank's money is known no more.
 *
 * A process that the operator told to leave, and that says that it may go, has no last replica
 * (docs/protocols/zeus.md, R18). */
#ifndef HORKOS_SIM_LOST_H
#define HORKOS_SIM_LOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "check/history.h"
#include "sim/trader.h"

struct world;

/* What was last seen of a key. */
struct lost_key {
    nodeset holders;  /* members that had it, when any had */
    uint64_t held_us; /* in a history's time: somebody had it then; 0: nobody was ever seen to */
    bool lost;        /* nobody has it now */
    bool ever;        /* it was lost once */
};

/* The operator gave it up, perhaps: it may have been emptied at any time from here on. */
struct given_up {
    uint32_t key; /* a client's key, or a trader's */
    uint32_t life;
    bool traded;
    uint64_t begin_us; /* in a history's time */
};

struct losses {
    struct lost_key *keys; /* clients', by key */
    uint32_t keys_capacity;
    struct lost_key traded[TRADED_MAX + ACCOUNTS_MAX];
    struct given_up *at;
    size_t n, capacity;
    uint64_t first_us; /* when something was first seen lost; 0: nothing is */
    uint64_t order_us; /* then the operator gives it up, again and again */
    uint32_t ordered;  /* the life in which there was an order, and 1 */
};

void lost_deinit(struct world *world);
/* All data is gone. */
void lost_forget(struct world *world);
/* Looks at one key, by the numbers of owned_key. */
void lost_note(struct world *world, uint32_t key);
/* A machine whose node has handed over what it has is about to be told to leave. */
void lost_check_leave(struct world *world, const struct machine *m);
/* As homed_look. */
bool lost_look(struct world *world);
bool lost_any(const struct world *world);
/* Whether the key, by the numbers of owned_key, was ever lost. */
bool lost_ever(const struct world *world, uint32_t key);
/* As homed_emptied and homed_deletions; the latter has no more than world->losses.n. */
bool lost_emptied(const struct world *world, uint32_t key, uint32_t life);
size_t lost_deletions(const struct world *world, uint32_t life, uint32_t client,
                      struct history_op *ops_out);
/* From when on what deals of that life see of a traded key says nothing; UINT64_MAX: never. */
uint64_t lost_traded_us(const struct world *world, uint32_t key, uint32_t life);
/* The same of the bank's books. */
uint64_t lost_money_us(const struct world *world, uint32_t life);

#endif
