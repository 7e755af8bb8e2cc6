#include "store/slab.h"

#include <stdbool.h>
#include <string.h>

#include "base/assert.h"
#include "store/pages.h"

/* AddressSanitizer is told which cells are free, so that it finds uses after the grace period. */
#if defined(__SANITIZE_ADDRESS__)
#define SLAB_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SLAB_ASAN 1
#endif
#endif
#ifdef SLAB_ASAN
#include <sanitizer/asan_interface.h>
#define SLAB_POISON(at, n) ASAN_POISON_MEMORY_REGION((at), (n))
#define SLAB_UNPOISON(at, n) ASAN_UNPOISON_MEMORY_REGION((at), (n))
#else
#define SLAB_POISON(at, n) ((void)(at), (void)(n))
#define SLAB_UNPOISON(at, n) ((void)(at), (void)(n))
#endif

/* At the start of every span. Under the lock of its class, or, while it serves no class, of the
 * pool. */
struct slab_span {
    struct list_link link; /* in its class's spans while it has cells to give, or in free_spans */
    void *first;           /* cells that came back, linked through their first word */
    uint32_t class;
    uint32_t out;    /* cells taken and not back */
    uint32_t fresh;  /* where cells were never cut: an offset into the span */
    uint32_t listed; /* whether link is in the class's list */
};
#define SLAB_HEADER_BYTES 64u
_Static_assert(sizeof(struct slab_span) <= SLAB_HEADER_BYTES, "cells start at a cache line");
_Static_assert(SLAB_SPAN_BYTES / SLAB_CELL_MAX >= 8, "little of a span is lost to large classes");

/* Cells that move between a cache and the pool at once; a cache holds twice as many at most. */
#define SLAB_BATCH_BYTES 8192u
#define SLAB_BATCH_MAX 64u

static uint32_t slab_batch(uint32_t class)
{
    uint32_t n = SLAB_BATCH_BYTES / slab_class_bytes(class);
    return n > SLAB_BATCH_MAX ? SLAB_BATCH_MAX : n < 1u ? 1u : n;
}

static void *cell_next(const void *cell)
{
    void *next;
    memcpy(&next, cell, sizeof(next));
    return next;
}

static void cell_link(void *cell, void *next)
{
    memcpy(cell, &next, sizeof(next));
}

static struct slab_span *slab_span_of(void *cell)
{
    return (struct slab_span *)((uintptr_t)cell & ~(uintptr_t)(SLAB_SPAN_BYTES - 1u));
}

void slab_pool_init(struct slab_pool *pool)
{
    memset(pool, 0, sizeof(*pool));
    for (uint32_t i = 0; i < SLAB_CLASSES; i++) {
        HK_ASSERT(slab_class_of(slab_class_bytes(i)) == i);
        spin_init(&pool->classes[i].lock);
        list_init(&pool->classes[i].spans);
    }
    spin_init(&pool->lock);
    list_init(&pool->free_spans);
}

void slab_pool_deinit(struct slab_pool *pool)
{
    for (uint32_t i = 0; i < pool->regions_n; i++) {
        SLAB_UNPOISON(pool->regions[i].at, pool->regions[i].bytes);
        pages_unmap(pool->regions[i].at, pool->regions[i].bytes);
    }
    pool->regions_n = 0;
}

/* Under pool->lock. */
static bool slab_map_region(struct slab_pool *pool)
{
    if (pool->regions_n == SLAB_REGIONS_MAX) {
        return false;
    }
    size_t bytes = SLAB_REGION_BYTES_MIN;
    for (uint32_t i = 0; i < pool->regions_n && bytes < SLAB_REGION_BYTES_MAX; i++) {
        bytes *= 2;
    }
    /* Small stores (there are thousands in a simulation) stay on small pages. */
    bool huge = pool->regions_n > 0;
    uint8_t *at = pages_map(bytes, huge ? PAGES_HUGE_BYTES : SLAB_SPAN_BYTES, huge);
    if (at == NULL) {
        return false;
    }
    pool->regions[pool->regions_n++] = (struct slab_region){at, bytes};
    pool->region_used = 0;
    return true;
}

/* Under pool->lock. */
static void *slab_cut_span(struct slab_pool *pool)
{
    if (pool->regions_n == 0 || pool->region_used == pool->regions[pool->regions_n - 1].bytes) {
        if (!slab_map_region(pool)) {
            return NULL;
        }
    }
    void *at = pool->regions[pool->regions_n - 1].at + pool->region_used;
    pool->region_used += SLAB_SPAN_BYTES;
    /* relaxed: a statistic. */
    atomic_fetch_add_explicit(&pool->span_bytes, SLAB_SPAN_BYTES, memory_order_relaxed);
    return at;
}

void *slab_take_span(struct slab_pool *pool)
{
    spin_lock(&pool->lock);
    void *at = slab_cut_span(pool);
    spin_unlock(&pool->lock);
    return at;
}

/* Under the class's lock. */
static struct slab_span *slab_add_span(struct slab_pool *pool, uint32_t class)
{
    spin_lock(&pool->lock);
    struct list_link *link = list_pop_front(&pool->free_spans);
    struct slab_span *span = link != NULL ? list_entry(link, struct slab_span, link)
                                          : (struct slab_span *)slab_cut_span(pool);
    spin_unlock(&pool->lock);
    if (span == NULL) {
        return NULL;
    }
    *span = (struct slab_span){.class = class, .fresh = SLAB_HEADER_BYTES, .listed = 1};
    list_push_front(&pool->classes[class].spans, &span->link);
    return span;
}

/* Takes one cell of a span that has one; takes the span off its list with the last. */
static void *slab_span_take(struct slab_span *span, uint32_t bytes)
{
    void *cell = span->first;
    if (cell != NULL) {
        SLAB_UNPOISON(cell, bytes);
        span->first = cell_next(cell);
    } else {
        cell = (uint8_t *)span + span->fresh;
        span->fresh += bytes;
    }
    span->out++;
    if (span->first == NULL && span->fresh + bytes > SLAB_SPAN_BYTES) {
        list_remove(&span->link);
        span->listed = 0;
    }
    return cell;
}

/* Under the class's lock. A span whose cells are all back may serve another class, unless it is the
 * only one with cells to give: then it would soon be fetched again. */
static void slab_span_give(struct slab_pool *pool, struct slab_span *span, void *cell)
{
    struct slab_class *shared = &pool->classes[span->class];
    cell_link(cell, span->first);
    span->first = cell;
    span->out--;
    SLAB_POISON(cell, slab_class_bytes(span->class));
    if (!span->listed) {
        list_push_front(&shared->spans, &span->link);
        span->listed = 1;
    }
    if (span->out == 0 && span->link.next != span->link.prev) {
        list_remove(&span->link);
        span->listed = 0;
        SLAB_UNPOISON((uint8_t *)span + SLAB_HEADER_BYTES, SLAB_SPAN_BYTES - SLAB_HEADER_BYTES);
        spin_lock(&pool->lock);
        list_push_front(&pool->free_spans, &span->link);
        spin_unlock(&pool->lock);
    }
}

/* Moves a batch from the pool to the cache; fewer, or none, when memory runs out. */
static void slab_refill(struct slab_cache *cache, uint32_t class)
{
    struct slab_class *shared = &cache->pool->classes[class];
    struct slab_bin *bin = &cache->bins[class];
    uint32_t bytes = slab_class_bytes(class);
    uint32_t want = slab_batch(class);
    void **last = &bin->first;
    spin_lock(&shared->lock);
    while (bin->n < want) {
        struct slab_span *span;
        if (!list_empty(&shared->spans)) {
            span = list_entry(shared->spans.next, struct slab_span, link);
        } else {
            span = slab_add_span(cache->pool, class);
            if (span == NULL) {
                break;
            }
        }
        /* In the order of addresses, so that cells which are used together lie together. */
        void *cell = slab_span_take(span, bytes);
        *last = cell;
        last = (void **)cell;
        bin->n++;
    }
    *last = NULL;
    spin_unlock(&shared->lock);
}

/* Moves n cells from the cache to the pool. */
static void slab_drain(struct slab_cache *cache, uint32_t class, uint32_t n)
{
    struct slab_class *shared = &cache->pool->classes[class];
    struct slab_bin *bin = &cache->bins[class];
    spin_lock(&shared->lock);
    for (uint32_t i = 0; i < n; i++) {
        void *cell = bin->first;
        SLAB_UNPOISON(cell, slab_class_bytes(class));
        bin->first = cell_next(cell);
        bin->n--;
        slab_span_give(cache->pool, slab_span_of(cell), cell);
    }
    spin_unlock(&shared->lock);
}

void slab_cache_init(struct slab_cache *cache, struct slab_pool *pool)
{
    memset(cache, 0, sizeof(*cache));
    cache->pool = pool;
}

void slab_cache_flush(struct slab_cache *cache)
{
    for (uint32_t i = 0; i < SLAB_CLASSES; i++) {
        if (cache->bins[i].n > 0) {
            slab_drain(cache, i, cache->bins[i].n);
        }
    }
}

void *slab_take(struct slab_cache *cache, uint32_t class)
{
    struct slab_bin *bin = &cache->bins[class];
    if (bin->n == 0) {
        slab_refill(cache, class);
        if (bin->n == 0) {
            return NULL;
        }
    }
    void *cell = bin->first;
    SLAB_UNPOISON(cell, slab_class_bytes(class));
    bin->first = cell_next(cell);
    bin->n--;
    return cell;
}

void slab_give(struct slab_cache *cache, uint32_t class, void *cell)
{
    HK_CHECK(slab_span_of(cell)->class == class);
    struct slab_bin *bin = &cache->bins[class];
    uint32_t batch = slab_batch(class);
    if (bin->n >= 2 * batch) {
        slab_drain(cache, class, batch);
    }
#ifdef HK_DEBUG
    memset(cell, 0xdb, slab_class_bytes(class));
#endif
    cell_link(cell, bin->first);
    bin->first = cell;
    bin->n++;
    SLAB_POISON(cell, slab_class_bytes(class));
}
