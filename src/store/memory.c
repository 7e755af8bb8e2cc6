#include "store/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* Before every large allocation. */
struct memory_large {
    struct list_link link;
    _Atomic uint64_t owners;
    uint64_t unused;
};
#define MEMORY_LARGE_HEADER 32u
_Static_assert(sizeof(struct memory_large) == MEMORY_LARGE_HEADER, "keeps the alignment");

void memory_init(struct memory *memory, uint64_t max)
{
    memset(memory, 0, sizeof(*memory));
    memory->max = max == 0 ? UINT64_MAX : max;
    uint64_t headroom = max / 10u + MEMORY_HEADROOM_BYTES;
    memory->max_headroom =
        memory->max > UINT64_MAX - headroom ? UINT64_MAX : memory->max + headroom;
    /* Unspent grants keep others from what the limit allows: small limits, small grants. */
    uint64_t share = memory->max / 512u;
    memory->grant_bytes = share < MEMORY_GRANT_MAX ? share : MEMORY_GRANT_MAX;
    spin_init(&memory->large_lock);
    list_init(&memory->large);
    slab_pool_init(&memory->slabs);
}

static struct memory_large *large_of(void *at)
{
    return (struct memory_large *)((uint8_t *)at - MEMORY_LARGE_HEADER);
}

static void large_disown(struct memory_large *large)
{
    /* acq_rel: what the other owners read, they have read before the memory is used again. */
    if (atomic_fetch_sub_explicit(&large->owners, 1, memory_order_acq_rel) == 1) {
        free(large);
    }
}

void memory_deinit(struct memory *memory)
{
    struct list_link *link;
    while ((link = list_pop_front(&memory->large)) != NULL) {
        large_disown(list_entry(link, struct memory_large, link));
    }
    slab_pool_deinit(&memory->slabs);
}

void memory_cache_init(struct memory_cache *cache, struct memory *memory)
{
    cache->memory = memory;
    cache->grant = 0;
    atomic_init(&cache->used, 0);
    slab_cache_init(&cache->slabs, &memory->slabs);
}

void memory_cache_close(struct memory_cache *cache)
{
    struct memory *memory = cache->memory;
    slab_cache_flush(&cache->slabs);
    /* relaxed throughout the account: the numbers publish no memory. */
    atomic_fetch_sub_explicit(&memory->granted, cache->grant, memory_order_relaxed);
    cache->grant = 0;
    int64_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    atomic_store_explicit(&cache->used, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&memory->used_by_closed, used, memory_order_relaxed);
}

static void memory_count(struct memory_cache *cache, int64_t bytes)
{
    /* relaxed: this thread is the only writer. */
    int64_t used = atomic_load_explicit(&cache->used, memory_order_relaxed);
    atomic_store_explicit(&cache->used, used + bytes, memory_order_relaxed);
}

/* Gets a grant that covers bytes: with something to spare, or near the limit exactly. */
static bool memory_grant(struct memory_cache *cache, uint64_t bytes, enum memory_limit limit)
{
    struct memory *memory = cache->memory;
    uint64_t max = limit == MEMORY_HEADROOM ? memory->max_headroom : memory->max;
    uint64_t missing = bytes - cache->grant;
    uint64_t granted = atomic_load_explicit(&memory->granted, memory_order_relaxed);
    uint64_t ask;
    do {
        ask = missing + memory->grant_bytes;
        if (granted + ask > memory->max) {
            ask = missing;
        }
        if (granted + ask > max) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&memory->granted, &granted, granted + ask,
                                                    memory_order_relaxed, memory_order_relaxed));
    cache->grant += ask;
    return true;
}

/* What was freed while the total was above the limit must not be spent again as if it were
 * below. */
static void memory_return_above_limit(struct memory_cache *cache)
{
    struct memory *memory = cache->memory;
    if (cache->grant > 0 &&
        atomic_load_explicit(&memory->granted, memory_order_relaxed) > memory->max) {
        atomic_fetch_sub_explicit(&memory->granted, cache->grant, memory_order_relaxed);
        cache->grant = 0;
    }
}

bool memory_charge(struct memory_cache *cache, uint64_t bytes, enum memory_limit limit)
{
    if (limit == MEMORY_NORMAL) {
        memory_return_above_limit(cache);
    }
    if (cache->grant < bytes && !memory_grant(cache, bytes, limit)) {
        return false;
    }
    cache->grant -= bytes;
    memory_count(cache, (int64_t)bytes);
    return true;
}

void memory_discharge(struct memory_cache *cache, uint64_t bytes)
{
    struct memory *memory = cache->memory;
    cache->grant += bytes;
    memory_count(cache, -(int64_t)bytes);
    if (cache->grant > 2 * memory->grant_bytes) {
        uint64_t back = cache->grant - memory->grant_bytes;
        atomic_fetch_sub_explicit(&memory->granted, back, memory_order_relaxed);
        cache->grant -= back;
    }
}

size_t memory_charge_of(size_t bytes)
{
    if (bytes <= SLAB_CELL_MAX) {
        return slab_class_bytes(slab_class_of(bytes == 0 ? 1 : bytes));
    }
    return (bytes + MEMORY_LARGE_HEADER + 15u) & ~(size_t)15u;
}

static void *memory_take_large(struct memory *memory, size_t charge)
{
    struct memory_large *large = malloc(charge);
    if (large == NULL) {
        return NULL;
    }
    atomic_init(&large->owners, 1);
    spin_lock(&memory->large_lock);
    list_push_back(&memory->large, &large->link);
    spin_unlock(&memory->large_lock);
    /* relaxed: a statistic. */
    atomic_fetch_add_explicit(&memory->large_bytes, charge, memory_order_relaxed);
    return (uint8_t *)large + MEMORY_LARGE_HEADER;
}

static void memory_give_large(struct memory *memory, void *at, size_t charge)
{
    struct memory_large *large = large_of(at);
    spin_lock(&memory->large_lock);
    list_remove(&large->link);
    spin_unlock(&memory->large_lock);
    large_disown(large);
    atomic_fetch_sub_explicit(&memory->large_bytes, charge, memory_order_relaxed);
}

void memory_own(void *at)
{
    /* relaxed: whoever asks is an owner, or keeps one from letting go. */
    atomic_fetch_add_explicit(&large_of(at)->owners, 1, memory_order_relaxed);
}

void memory_disown(void *at)
{
    large_disown(large_of(at));
}

void *memory_take(struct memory_cache *cache, size_t bytes, enum memory_limit limit)
{
    bytes = bytes == 0 ? 1 : bytes;
    size_t charge = memory_charge_of(bytes);
    if (charge < bytes || !memory_charge(cache, charge, limit)) {
        return NULL;
    }
    void *at = bytes <= SLAB_CELL_MAX ? slab_take(&cache->slabs, slab_class_of(bytes))
                                      : memory_take_large(cache->memory, charge);
    if (at == NULL) {
        memory_discharge(cache, charge);
    }
    return at;
}

void memory_give(struct memory_cache *cache, void *at, size_t bytes)
{
    bytes = bytes == 0 ? 1 : bytes;
    size_t charge = memory_charge_of(bytes);
    if (bytes <= SLAB_CELL_MAX) {
        slab_give(&cache->slabs, slab_class_of(bytes), at);
    } else {
        memory_give_large(cache->memory, at, charge);
    }
    memory_discharge(cache, charge);
}
