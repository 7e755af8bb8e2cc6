#include "store/index.h"

#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "store/pages.h"

/* Mapped at once and touched as it is needed. */
#define INDEX_DIRECTORY_BYTES (INDEX_CHUNKS_MAX * sizeof(_Atomic uintptr_t))

/* ---- Segments ---- */

/* Maps a segment of that many chunks behind those that are. */
static bool segment_map(struct index *index, uint32_t chunks, bool huge)
{
    if (index->segments_n == INDEX_SEGMENTS_MAX || chunks > INDEX_CHUNKS_MAX - index->chunks_n) {
        return false;
    }
    size_t bytes = (size_t)chunks * INDEX_CHUNK_BYTES;
    uint8_t *at = pages_map(bytes, huge ? PAGES_HUGE_BYTES : PAGES_SMALL_BYTES, huge);
    if (at == NULL) {
        return false;
    }
    index->segments[index->segments_n++] = (struct index_segment){at, bytes};
    for (uint32_t i = 0; i < chunks; i++) {
        /* The chunk's address less its offset from bucket 0: for the first segment, that is where
         * bucket 0 lies. */
        uintptr_t offset = (uintptr_t)index->chunks_n * INDEX_CHUNK_BYTES;
        uintptr_t chunk = (uintptr_t)at + (uintptr_t)i * INDEX_CHUNK_BYTES;
        /* relaxed: published with the buckets_n that covers it. */
        atomic_store_explicit(&index->chunks[index->chunks_n++], chunk - offset,
                              memory_order_relaxed);
    }
    return true;
}

int index_init(struct index *index, uint64_t keys_expected, uint64_t seed)
{
    memset(index, 0, sizeof(*index));
    hash_secret_init(&index->secret, seed);
    spin_init(&index->grow_lock);
    spin_init(&index->overflow_lock);

    uint64_t n = keys_expected / INDEX_KEYS_PER_TWO_BUCKETS * 2u;
    n = n < INDEX_BUCKETS_MIN ? INDEX_BUCKETS_MIN : n;
    uint64_t chunks = (n + INDEX_CHUNK_BUCKETS - 1u) / INDEX_CHUNK_BUCKETS;
    index->chunks = pages_map(INDEX_DIRECTORY_BYTES, PAGES_SMALL_BYTES, false);
    if (index->chunks == NULL || chunks > INDEX_CHUNKS_MAX ||
        !segment_map(index, (uint32_t)chunks, n >= INDEX_CHUNK_BUCKETS)) {
        index_deinit(index);
        return HK_ERR_NOMEM;
    }
    atomic_init(&index->buckets_n, n);
    return HK_OK;
}

void index_deinit(struct index *index)
{
    for (uint32_t i = 0; i < index->segments_n; i++) {
        pages_unmap(index->segments[i].at, index->segments[i].bytes);
    }
    if (index->chunks != NULL) {
        pages_unmap(index->chunks, INDEX_DIRECTORY_BYTES);
    }
}

/* ---- Words of a bucket, under the chain's lock ---- */

static void bucket_set_head(struct bucket *b, uint64_t head)
{
    /* release: pairs with the acquire in bucket_head; what the head leads to, and what moved before
     * the version changed, is visible. */
    atomic_store_explicit(&b->head, head, memory_order_release);
}

static void bucket_set_entry(_Atomic uint64_t *entry, uint64_t value)
{
    /* release: pairs with the acquire in bucket_entry. */
    atomic_store_explicit(entry, value, memory_order_release);
}

/* Only the lock's holder writes the words that these read. */
static uint64_t own_head(const struct bucket *b)
{
    return atomic_load_explicit(&b->head, memory_order_relaxed);
}

static uint64_t own_entry(const _Atomic uint64_t *entry)
{
    return atomic_load_explicit(entry, memory_order_relaxed);
}

static uint64_t head_with_next(uint64_t head, const struct bucket *next)
{
    return (head & ~HEAD_NEXT_MASK) | (uint64_t)(uintptr_t)next >> 6;
}

/* A place in a chain. */
struct chain_at {
    struct bucket *bucket; /* NULL: past the end */
    uint32_t i;
};

static struct chain_at chain_start(struct bucket *first)
{
    return (struct chain_at){first, 0};
}

static void chain_step(struct chain_at *at)
{
    if (++at->i == BUCKET_ENTRIES) {
        at->bucket = head_next(own_head(at->bucket));
        at->i = 0;
    }
}

static _Atomic uint64_t *chain_entry(const struct chain_at *at)
{
    return &at->bucket->entry[at->i];
}

/* ---- Overflow buckets ---- */

/* An empty bucket that is in no chain. */
static struct bucket *overflow_take(struct index *index, struct memory_cache *cache,
                                    enum memory_limit limit)
{
    if (!memory_charge(cache, sizeof(struct bucket), limit)) {
        return NULL;
    }
    spin_lock(&index->overflow_lock);
    struct bucket *b = index->overflow_free;
    if (b != NULL) {
        index->overflow_free = head_next(own_head(b));
    } else {
        if (index->overflow_fresh == index->overflow_end) {
            uint8_t *span = slab_take_span(&cache->memory->slabs);
            if (span != NULL) {
                index->overflow_fresh = span;
                index->overflow_end = span + SLAB_SPAN_BYTES;
            }
        }
        if (index->overflow_fresh != index->overflow_end) {
            b = (struct bucket *)(void *)index->overflow_fresh;
            index->overflow_fresh += sizeof(struct bucket);
        }
    }
    if (b != NULL) {
        bucket_set_head(b, 0);
        /* relaxed: a statistic. */
        atomic_fetch_add_explicit(&index->overflow_n, 1, memory_order_relaxed);
    }
    spin_unlock(&index->overflow_lock);
    if (b == NULL) {
        memory_discharge(cache, sizeof(struct bucket));
    }
    return b;
}

/* The bucket is empty and unlinked; readers may still be in it. */
static void overflow_give(struct index *index, struct memory_cache *cache, struct bucket *b)
{
    spin_lock(&index->overflow_lock);
    bucket_set_head(b, head_with_next(HEAD_FREE, index->overflow_free));
    index->overflow_free = b;
    atomic_fetch_sub_explicit(&index->overflow_n, 1, memory_order_relaxed);
    spin_unlock(&index->overflow_lock);
    memory_discharge(cache, sizeof(struct bucket));
}

/* ---- Finding without a lock ---- */

static struct object *chain_search(const struct bucket *first, uint64_t head, struct bytes key,
                                   uint64_t tag)
{
    for (const struct bucket *b = first;;) {
        for (uint32_t i = 0; i < BUCKET_ENTRIES; i++) {
            uint64_t entry = bucket_entry(b, i);
            if ((entry & ENTRY_TAG_MASK) == tag && object_has_key(entry_object(entry), key)) {
                return entry_object(entry);
            }
        }
        b = head_next(head);
        if (b == NULL) {
            return NULL;
        }
        head = bucket_head(b);
        if ((head & HEAD_FREE) != 0) {
            return NULL; /* it left the chain, and the version says so */
        }
    }
}

struct object *index_search(const struct index *index, struct bytes key, uint64_t hash)
{
    for (;;) {
        uint64_t number = index_number(hash, index_buckets(index));
        const struct bucket *first = index_bucket(index, number);
        uint64_t head = bucket_head(first);
        struct object *o = chain_search(first, head, key, index_tag(hash));
        if (o != NULL) {
            return o;
        }
        if (((bucket_head(first) ^ head) & HEAD_VERSION_MASK) == 0 &&
            index_number(hash, index_buckets(index)) == number) {
            return NULL;
        }
    }
}

/* ---- The lock ---- */

static void bucket_lock(struct bucket *b)
{
    uint32_t turns = 0;
    while (!bucket_try_lock(b)) {
        spin_wait(&turns);
    }
}

struct bucket *index_lock_wait(struct index *index, uint64_t hash)
{
    for (;;) {
        uint64_t number = index_number(hash, index_buckets(index));
        struct bucket *b = index_bucket(index, number);
        bucket_lock(b);
        /* As in index_lock. */
        if (index_number(hash, index_buckets(index)) == number) {
            return b;
        }
        index_unlock(b);
    }
}

/* ---- Entries ---- */

/* The entries of a bucket that have the tag, one bit each; without a branch, as bucket_pick. */
static uint32_t bucket_matches(const struct bucket *b, uint64_t tag)
{
    uint32_t matches = 0;
    for (uint32_t i = 0; i < BUCKET_ENTRIES; i++) {
        matches |= (uint32_t)((own_entry(&b->entry[i]) & ENTRY_TAG_MASK) == tag) << i;
    }
    return matches;
}

_Atomic uint64_t *index_locate(struct bucket *first, struct bytes key, uint64_t hash)
{
    uint64_t tag = index_tag(hash);
    for (struct bucket *b = first; b != NULL; b = head_next(own_head(b))) {
        for (uint32_t m = bucket_matches(b, tag); m != 0; m &= m - 1u) {
            _Atomic uint64_t *entry = &b->entry[(uint32_t)__builtin_ctz(m)];
            if (object_has_key(entry_object(own_entry(entry)), key)) {
                return entry;
            }
        }
    }
    return NULL;
}

_Atomic uint64_t *index_room(struct index *index, struct memory_cache *cache, struct bucket *first,
                             enum memory_limit limit)
{
    struct bucket *last = first;
    for (struct chain_at at = chain_start(first); at.bucket != NULL; chain_step(&at)) {
        if (own_entry(chain_entry(&at)) == 0) {
            return chain_entry(&at);
        }
        last = at.bucket;
    }
    struct bucket *b = overflow_take(index, cache, limit);
    if (b == NULL) {
        return NULL;
    }
    bucket_set_head(last, head_with_next(own_head(last), b));
    return &b->entry[0];
}

void index_point(_Atomic uint64_t *entry, const struct object *o, uint64_t hash)
{
    bucket_set_entry(entry, entry_make(o, hash));
}

/* Moves the chain's entries to its front and gives the buckets that this empties to the pool (S4).
 * Copy, version, clear: in this order a reader that misses an entry on its way finds the version
 * changed. */
static void chain_pack(struct index *index, struct memory_cache *cache, struct bucket *first)
{
    if (head_next(own_head(first)) == NULL) {
        return;
    }
    uint32_t kept = 0;
    for (struct chain_at at = chain_start(first); at.bucket != NULL; chain_step(&at)) {
        kept += own_entry(chain_entry(&at)) != 0;
    }
    struct chain_at hole = chain_start(first), from = chain_start(first);
    for (uint32_t i = 0; i < kept; i++) {
        chain_step(&from);
    }
    struct chain_at tail = from;
    for (; from.bucket != NULL; chain_step(&from)) {
        uint64_t entry = own_entry(chain_entry(&from));
        if (entry != 0) {
            while (own_entry(chain_entry(&hole)) != 0) {
                chain_step(&hole);
            }
            bucket_set_entry(chain_entry(&hole), entry);
        }
    }

    bucket_set_head(first, own_head(first) + HEAD_VERSION_ONE);

    for (; tail.bucket != NULL; chain_step(&tail)) {
        if (own_entry(chain_entry(&tail)) != 0) {
            bucket_set_entry(chain_entry(&tail), 0);
        }
    }
    /* The last bucket to keep; the first stays even when it is empty. */
    struct bucket *last = first;
    for (uint32_t seen = BUCKET_ENTRIES; seen < kept; seen += BUCKET_ENTRIES) {
        last = head_next(own_head(last));
    }
    struct bucket *b = head_next(own_head(last));
    bucket_set_head(last, head_with_next(own_head(last), NULL));
    while (b != NULL) {
        struct bucket *next = head_next(own_head(b));
        overflow_give(index, cache, b);
        b = next;
    }
}

void index_clear(struct index *index, struct memory_cache *cache, struct bucket *first,
                 _Atomic uint64_t *entry)
{
    bucket_set_entry(entry, 0);
    chain_pack(index, cache, first);
}

/* ---- Growth ---- */

uint32_t index_depth(uint64_t hash, uint64_t n)
{
    uint32_t level = 63u - (uint32_t)__builtin_clzll(n);
    uint64_t low = hash & (((uint64_t)1 << level) - 1u);
    /* Buckets below n - 2^level were split in this round. */
    return low < n - ((uint64_t)1 << level) ? level + 1u : level;
}

/* Copies the entries of a locked chain whose keys belong to the bucket number of n + 1 buckets to
 * target, a chain that nobody can reach yet, in their order. False when memory ran out. */
static bool split_copy(struct index *index, struct memory_cache *cache, struct bucket *source,
                       struct bucket *target, uint64_t number)
{
    /* The objects' cache misses overlap. */
    for (struct chain_at at = chain_start(source); at.bucket != NULL; chain_step(&at)) {
        __builtin_prefetch(entry_object(own_entry(chain_entry(&at))));
    }
    for (struct chain_at at = chain_start(source); at.bucket != NULL; chain_step(&at)) {
        uint64_t entry = own_entry(chain_entry(&at));
        if (entry == 0) {
            continue;
        }
        uint64_t hash = hash_bytes(&index->secret, object_key(entry_object(entry)));
        if (index_number(hash, number + 1u) != number) {
            continue;
        }
        _Atomic uint64_t *place = index_room(index, cache, target, MEMORY_NORMAL);
        if (place == NULL) {
            return false;
        }
        bucket_set_entry(place, entry);
    }
    return true;
}

/* Empties a chain that nobody can reach. */
static void split_undo(struct index *index, struct memory_cache *cache, struct bucket *target)
{
    for (struct chain_at at = chain_start(target); at.bucket != NULL; chain_step(&at)) {
        bucket_set_entry(chain_entry(&at), 0);
    }
    chain_pack(index, cache, target);
    bucket_set_head(target, 0);
}

/* Splits one bucket. Under the grow lock. False when memory ran out. */
static bool index_split(struct index *index, struct memory_cache *cache)
{
    uint64_t n = index_buckets(index);
    if (n >> INDEX_CHUNK_LOG2 == index->chunks_n && !segment_map(index, index->chunks_n, true)) {
        return false;
    }
    if (!memory_charge(cache, sizeof(struct bucket), MEMORY_NORMAL)) {
        return false;
    }
    uint64_t level = 63u - (uint32_t)__builtin_clzll(n);
    struct bucket *source = index_bucket(index, n - ((uint64_t)1 << level));
    struct bucket *target = index_bucket(index, n);

    bucket_lock(source);
    /* Nobody reaches target before buckets_n says so; writers then wait for its lock. */
    bucket_set_head(target, HEAD_LOCK);
    if (!split_copy(index, cache, source, target, n)) {
        split_undo(index, cache, target);
        index_unlock(source);
        memory_discharge(cache, sizeof(struct bucket));
        return false;
    }
    /* release: pairs with the acquire in index_buckets. From here on target is found; only now may
     * its entries leave source. */
    atomic_store_explicit(&index->buckets_n, n + 1u, memory_order_release);

    struct chain_at moved = chain_start(target);
    for (struct chain_at at = chain_start(source); at.bucket != NULL; chain_step(&at)) {
        uint64_t entry = own_entry(chain_entry(&at));
        if (entry != 0 && moved.bucket != NULL && entry == own_entry(chain_entry(&moved))) {
            bucket_set_entry(chain_entry(&at), 0);
            chain_step(&moved);
        }
    }
    chain_pack(index, cache, source);
    index_unlock(target);
    index_unlock(source);
    return true;
}

void index_grow(struct index *index, struct memory_cache *cache, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        uint64_t n = index_buckets(index);
        /* relaxed: an estimate. */
        int64_t keys = atomic_load_explicit(&index->keys, memory_order_relaxed);
        if (keys <= 0 || (uint64_t)keys * 2u <= n * INDEX_KEYS_PER_TWO_BUCKETS) {
            return;
        }
        if (!spin_try(&index->grow_lock)) {
            return;
        }
        bool split = index_split(index, cache);
        spin_unlock(&index->grow_lock);
        if (!split) {
            return;
        }
    }
}
