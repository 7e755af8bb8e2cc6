/* Cells of memory by size class. A pool is shared by all threads of a store; each thread takes from
 * and gives to its own cache, which exchanges batches with the pool, so that memory which one
 * thread frees serves another.
 *
 * A cell may be given back only when no thread can still read it (see epoch.h): its first bytes
 * become a link, and its span may serve another class later. */
#ifndef HORKOS_STORE_SLAB_H
#define HORKOS_STORE_SLAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/list.h"
#include "store/spin.h"

#define SLAB_CELL_MAX 32768u
#define SLAB_SPAN_BYTES (256u * 1024u)

/* 8-byte steps up to 256 (32 classes), then 8 steps to each of the 7 doublings up to
 * SLAB_CELL_MAX. */
#define SLAB_FINE_MAX 256u
#define SLAB_FINE_CLASSES (SLAB_FINE_MAX / 8u)
#define SLAB_CLASSES (SLAB_FINE_CLASSES + 7u * 8u)

/* Regions double from 2 MiB up to 1 GiB: together more than half a terabyte. */
#define SLAB_REGION_BYTES_MIN (2u * 1024u * 1024u)
#define SLAB_REGION_BYTES_MAX (1024u * 1024u * 1024u)
#define SLAB_REGIONS_MAX 600u

/* The class of the smallest cell that holds bytes; 0 < bytes <= SLAB_CELL_MAX. */
static inline uint32_t slab_class_of(size_t bytes)
{
    if (bytes <= SLAB_FINE_MAX) {
        return (uint32_t)((bytes + 7u) / 8u - 1u);
    }
    /* 2^power < bytes <= 2^(power + 1) */
    uint32_t power = 31u - (uint32_t)__builtin_clz((uint32_t)bytes - 1u);
    uint32_t step_log2 = power - 3u;
    uint32_t steps = ((uint32_t)bytes - (1u << power) + (1u << step_log2) - 1u) >> step_log2;
    return SLAB_FINE_CLASSES + (power - 8u) * 8u + steps - 1u;
}

static inline uint32_t slab_class_bytes(uint32_t class)
{
    if (class < SLAB_FINE_CLASSES) {
        return (class + 1u) * 8u;
    }
    uint32_t above = class - SLAB_FINE_CLASSES;
    uint32_t power = 8u + above / 8u;
    return (1u << power) + ((above % 8u + 1u) << (power - 3u));
}

/* One class's shared part: the spans that have cells to give. */
struct slab_class {
    _Alignas(64) struct spin lock;
    struct list_link spans;
};

struct slab_region {
    uint8_t *at;
    size_t bytes;
};

struct slab_pool {
    struct slab_class classes[SLAB_CLASSES];

    _Alignas(64) struct spin lock; /* of what follows; taken inside a class's lock */
    struct list_link free_spans;
    uint32_t regions_n;
    size_t region_used; /* of the last region */
    struct slab_region regions[SLAB_REGIONS_MAX];
    _Atomic uint64_t span_bytes; /* of all spans ever cut; written under lock, read by statistics */
};

struct slab_bin {
    void *first; /* free cells, linked through their first word */
    uint32_t n;
};

struct slab_cache {
    struct slab_pool *pool;
    struct slab_bin bins[SLAB_CLASSES];
};

void slab_pool_init(struct slab_pool *pool);
/* Gives all memory back to the operating system, whether cells are in use or not. */
void slab_pool_deinit(struct slab_pool *pool);

void slab_cache_init(struct slab_cache *cache, struct slab_pool *pool);
/* Gives all cached cells to the pool. */
void slab_cache_flush(struct slab_cache *cache);

/* A cell of uninitialised memory, 8-byte aligned, and aligned to 64 if the class's size is a
 * multiple of 64. NULL when the operating system gives no more. */
void *slab_take(struct slab_cache *cache, uint32_t class);
/* By any thread, into its own cache. */
void slab_give(struct slab_cache *cache, uint32_t class, void *cell);

/* A whole span for uses of its own, never given back before slab_pool_deinit. */
void *slab_take_span(struct slab_pool *pool);

#endif
