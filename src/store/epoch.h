/* Quiescent states: when nobody can still read what was unlinked. The argument is docs/STORE.md,
 * S6. Threads are slots 0 .. EPOCH_SLOTS_MAX - 1; a slot is used by one thread at a time. */
#ifndef HORKOS_STORE_EPOCH_H
#define HORKOS_STORE_EPOCH_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EPOCH_SLOTS_MAX 256u

/* 0: the thread is offline, it can reach nothing. */
struct epoch_slot {
    _Alignas(64) _Atomic uint64_t announced;
};

struct epoch {
    _Alignas(64) _Atomic uint64_t now;     /* starts at 1; changed by read-modify-writes only */
    _Alignas(64) _Atomic uint32_t slots_n; /* slots from here on were never used */
    struct epoch_slot slots[EPOCH_SLOTS_MAX];
};

static inline void epoch_init(struct epoch *e)
{
    atomic_init(&e->now, 1);
    atomic_init(&e->slots_n, 0);
    for (uint32_t i = 0; i < EPOCH_SLOTS_MAX; i++) {
        atomic_init(&e->slots[i].announced, 0);
    }
}

/* The thread may now reach whatever is linked. Before its first use of a slot: i < slots_n. */
static inline void epoch_online(struct epoch *e, uint32_t slot)
{
    /* release, and then the read-modify-write: either a sealing thread's epoch_seal comes later and
     * finds this slot online at 1, or it came earlier and this one sees what it unlinked. */
    atomic_store_explicit(&e->slots[slot].announced, 1, memory_order_release);
    /* acq_rel: pairs with the one in epoch_seal, both ways. */
    uint64_t now = atomic_fetch_add_explicit(&e->now, 0, memory_order_acq_rel);
    /* release: pairs with the acquire in epoch_passed. */
    atomic_store_explicit(&e->slots[slot].announced, now, memory_order_release);
}

/* The thread holds no pointer any more, and gets none before epoch_online. */
static inline void epoch_offline(struct epoch *e, uint32_t slot)
{
    /* release: pairs with the acquire in epoch_passed; all earlier reads are done. */
    atomic_store_explicit(&e->slots[slot].announced, 0, memory_order_release);
}

static inline bool epoch_is_online(const struct epoch *e, uint32_t slot)
{
    /* relaxed: asked by the slot's own thread. */
    return atomic_load_explicit(&e->slots[slot].announced, memory_order_relaxed) != 0;
}

/* The thread, online, holds no pointer. */
static inline void epoch_quiescent(struct epoch *e, uint32_t slot)
{
    _Atomic uint64_t *announced = &e->slots[slot].announced;
    /* acquire: pairs with the release in epoch_seal; the thread finds nothing unlinked before. */
    uint64_t now = atomic_load_explicit(&e->now, memory_order_acquire);
    /* relaxed: the thread's own word; written only if it changes, so that the line stays shared. */
    if (atomic_load_explicit(announced, memory_order_relaxed) != now) {
        /* release: pairs with the acquire in epoch_passed; all earlier reads are done. */
        atomic_store_explicit(announced, now, memory_order_release);
    }
}

/* After unlinking: the stamp that every online thread must announce before the memory is free. */
static inline uint64_t epoch_seal(struct epoch *e)
{
    /* acq_rel: release pairs with the acquire in epoch_quiescent and epoch_online, acquire with the
     * release in epoch_online. */
    return atomic_fetch_add_explicit(&e->now, 1, memory_order_acq_rel) + 1;
}

/* Whether every online thread announced stamp or later. */
static inline bool epoch_passed(const struct epoch *e, uint64_t stamp)
{
    /* acquire: pairs with the release that made room for a slot. A slot that this misses came
     * online after the seal: its slots_n was raised before its epoch_online. */
    uint32_t n = atomic_load_explicit(&e->slots_n, memory_order_acquire);
    for (uint32_t i = 0; i < n; i++) {
        /* acquire: pairs with the releases in epoch_quiescent and epoch_offline. */
        uint64_t announced = atomic_load_explicit(&e->slots[i].announced, memory_order_acquire);
        if (announced != 0 && announced < stamp) {
            return false;
        }
    }
    return true;
}

#endif
