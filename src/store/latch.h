/* The version word of a node under optimistic lock coupling: readers look at it before and after,
 * writers lock it if it is still what they saw (docs/ORDERED_INDEX.md, 2).
 *
 * What it guards are atomics that readers load with acquire and the holder stores with release. */
#ifndef HORKOS_STORE_LATCH_H
#define HORKOS_STORE_LATCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/spin.h"

#define LATCH_LOCKED ((uint64_t)1)
#define LATCH_OBSOLETE ((uint64_t)2)
#define LATCH_STEP ((uint64_t)4)

struct latch {
    _Atomic uint64_t word; /* bit 0 locked, bit 1 obsolete, the rest a version */
};

static inline void latch_init(struct latch *l)
{
    atomic_init(&l->word, 0);
}

/* Waits until nobody holds the latch. false: obsolete, and so for ever. */
static inline bool latch_read(const struct latch *l, uint64_t *seen_out)
{
    uint32_t turns = 0;
    for (;;) {
        /* acquire: pairs with the releases of latch_unlock; all that the holder wrote is visible.
         */
        uint64_t word = atomic_load_explicit(&l->word, memory_order_acquire);
        if (__builtin_expect((word & (LATCH_LOCKED | LATCH_OBSOLETE)) == 0, 1)) {
            *seen_out = word;
            return true;
        }
        if ((word & LATCH_OBSOLETE) != 0) {
            return false;
        }
        spin_wait(&turns);
    }
}

/* Whether all that was loaded (acquire) since latch_read was of the version seen. */
static inline bool latch_same(const struct latch *l, uint64_t seen)
{
    /* relaxed: the acquires of the data keep it behind them. */
    return __builtin_expect(atomic_load_explicit(&l->word, memory_order_relaxed) == seen, 1);
}

/* Locks, if nothing has changed since seen. Never waits. */
static inline bool latch_lock(struct latch *l, uint64_t seen)
{
    /* acquire: pairs with the release in latch_unlock. The holder's data are stores with release,
     * so that who sees one of them sees the lock. */
    return atomic_compare_exchange_strong_explicit(&l->word, &seen, seen | LATCH_LOCKED,
                                                   memory_order_acquire, memory_order_relaxed);
}

/* The holder has changed something. */
static inline void latch_unlock(struct latch *l, uint64_t seen)
{
    /* release: pairs with the acquire in latch_read. */
    atomic_store_explicit(&l->word, seen + LATCH_STEP, memory_order_release);
}

/* The holder has changed nothing: who read under seen goes on. */
static inline void latch_unlock_unchanged(struct latch *l, uint64_t seen)
{
    /* release: as above. */
    atomic_store_explicit(&l->word, seen, memory_order_release);
}

/* The holder has unlinked the node. */
static inline void latch_unlock_obsolete(struct latch *l, uint64_t seen)
{
    /* release: who finds it obsolete finds the tree without it. */
    atomic_store_explicit(&l->word, (seen + LATCH_STEP) | LATCH_OBSOLETE, memory_order_release);
}

#endif
