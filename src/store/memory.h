/* The store's memory and its account. Everything that counts against memory_max is charged here;
 * what a thread takes it charges to a grant of its own, so that the shared total is touched once
 * for many allocations. */
#ifndef HORKOS_STORE_MEMORY_H
#define HORKOS_STORE_MEMORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "store/slab.h"
#include "store/spin.h"

/* Up to which limit an allocation may go. */
enum memory_limit {
    MEMORY_NORMAL,   /* memory_max */
    MEMORY_HEADROOM, /* memory_max and a tenth of it and 1 MiB */
};

#define MEMORY_HEADROOM_BYTES (1024u * 1024u)
#define MEMORY_GRANT_MAX 65536u

struct memory {
    uint64_t max; /* UINT64_MAX: no limit */
    uint64_t max_headroom;
    uint64_t grant_bytes;

    _Alignas(64) _Atomic uint64_t granted; /* to threads, spent or not */
    _Atomic int64_t used_by_closed;        /* what threads used that are gone */

    _Alignas(64) struct spin large_lock;
    struct list_link large; /* every large allocation, so that all can be freed in the end */
    _Atomic uint64_t large_bytes;

    struct slab_pool slabs;
};

/* One thread's part. */
struct memory_cache {
    struct memory *memory;
    uint64_t grant;       /* charged to the shared total and not spent */
    _Atomic int64_t used; /* bytes in use: this thread writes it, statistics read it; below 0 if it
                             frees what others took */
    struct slab_cache slabs;
};

/* max 0: no limit. */
void memory_init(struct memory *memory, uint64_t max);
/* Frees all, in use or not. */
void memory_deinit(struct memory *memory);

void memory_cache_init(struct memory_cache *cache, struct memory *memory);
/* Gives cached cells and the grant back. */
void memory_cache_close(struct memory_cache *cache);

/* What an allocation of bytes is charged with. */
size_t memory_charge_of(size_t bytes);

/* bytes of uninitialised memory, 8-byte aligned (64 if it is a slab class that is a multiple of
 * 64); 0 counts as 1. NULL past the limit, or when the operating system gives no more. */
void *memory_take(struct memory_cache *cache, size_t bytes, enum memory_limit limit);
/* bytes as they were taken. By any thread. */
void memory_give(struct memory_cache *cache, void *at, size_t bytes);

/* One more owner of an allocation above SLAB_CELL_MAX: memory_give and memory_deinit leave it as it
 * is, and no longer charged, until every owner has let go, on any thread. */
void memory_own(void *at);
void memory_disown(void *at);

/* Charges bytes that are not memory_take's (the index), and takes a charge back. */
bool memory_charge(struct memory_cache *cache, uint64_t bytes, enum memory_limit limit);
void memory_discharge(struct memory_cache *cache, uint64_t bytes);

#endif
