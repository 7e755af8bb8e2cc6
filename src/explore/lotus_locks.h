/* Lotus's lock table over all small programs: each of a few transactions asks for a few locks in
 * some order, holds them, prepares and releases; all combinations of programs, each in all
 * interleavings, over engine/lotus/lock.h. Not for other folders, but the tests. */
#ifndef HORKOS_EXPLORE_LOTUS_LOCKS_H
#define HORKOS_EXPLORE_LOTUS_LOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/lotus/lock.h"
#include "explore/search.h"

struct locks_setup {
    uint8_t policy; /* enum lock_policy */
    uint8_t txns;   /* 2 or 3; the first is the oldest */
    uint8_t locks;  /* 2 or 3 */
    uint8_t asks;   /* of a program, at most */
    bool shared;    /* S as well as X */
    bool again;     /* a program may ask for the same lock twice: upgrades */
    bool servers;   /* each lock is on a memory server of its own: a wounded transaction that waits
                       on another one does not learn it. Else all are on one */
};

struct locks_count {
    uint32_t programs; /* combinations */
    uint32_t stuck;    /* of them, those of which an interleaving ends in waiting for ever */
    uint32_t broken;   /* ... or breaks an invariant, counted only if invariants are judged */
};

/* invariants: judged, beside waiting for ever; a combination ends at the first thing found.
 * result_out: states, steps and seconds of all together; the first violation's trace. */
struct locks_count locks_search(const struct locks_setup *setup, uint64_t rules_off,
                                bool invariants, const struct search_bounds *bounds,
                                struct search_result *result_out);

#endif
