/* The structs behind store.h, for the files of this folder only. */
#ifndef HORKOS_STORE_STATE_H
#define HORKOS_STORE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/assert.h"
#include "store/epoch.h"
#include "store/index.h"
#include "store/memory.h"
#include "store/retire.h"
#include "store/spin.h"
#include "store/store.h"

_Static_assert(STORE_THREADS_MAX <= EPOCH_SLOTS_MAX, "a slot for each thread");

/* Owned by one thread; counters are read by store_stats. */
struct store_thread {
    _Alignas(64) struct store *store;
    uint32_t slot;    /* in store->epoch */
    bool locked;      /* holds a bucket's lock: at most one */
    bool grow_due;    /* keys were folded in: look at growth after the unlock */
    int32_t unfolded; /* keys inserted less removed, not yet in index.keys */
    uint64_t looks;   /* reads and locks */
    _Atomic int64_t keys;
    _Atomic int64_t tombstones;
    struct retire retire;
    struct memory_cache memory;
};

struct store {
    struct index index;
    struct epoch epoch;
    struct memory memory;
    struct retire_orphans orphans;

    uint32_t value_bytes_max;
    _Atomic int64_t keys_by_closed; /* what threads counted that are gone */
    _Atomic int64_t tombstones_by_closed;

    struct spin threads_lock;
    struct store_thread *threads[STORE_THREADS_MAX]; /* by slot; NULL: free */
};

/* Adds to a counter that only this thread writes. */
static inline void thread_count(_Atomic int64_t *counter, int64_t n)
{
    /* relaxed: one writer; readers want no more than a number. */
    int64_t value = atomic_load_explicit(counter, memory_order_relaxed);
    atomic_store_explicit(counter, value + n, memory_order_relaxed);
}

/* Makes the keys that this thread inserted and removed known to growth. */
static inline void thread_fold_keys(struct store_thread *t)
{
    /* relaxed: an estimate. */
    atomic_fetch_add_explicit(&t->store->index.keys, t->unfolded, memory_order_relaxed);
    t->unfolded = 0;
}

#endif
