/* The hash index: cache-line buckets that point to objects, found without locks, grown by linear
 * hashing one bucket at a time. Layout and memory order: docs/STORE.md, 1 and S2 to S5. */
#ifndef HORKOS_STORE_INDEX_H
#define HORKOS_STORE_INDEX_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/hash.h"
#include "store/memory.h"
#include "store/object.h"
#include "store/spin.h"

#define BUCKET_ENTRIES 7u

struct bucket {
    _Alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t entry[BUCKET_ENTRIES];
};
_Static_assert(sizeof(struct bucket) == 64, "one cache line");

/* The head: address of the next overflow bucket / 64, the lock, the version. In an overflow bucket
 * the lock bit says that it is free: it lies in the pool, and its address bits link the pool. */
#define HEAD_NEXT_BITS 42u
#define HEAD_NEXT_MASK (((uint64_t)1 << HEAD_NEXT_BITS) - 1u)
#define HEAD_LOCK ((uint64_t)1 << HEAD_NEXT_BITS)
#define HEAD_FREE HEAD_LOCK
#define HEAD_VERSION_ONE (HEAD_LOCK << 1)
#define HEAD_VERSION_MASK (~(HEAD_LOCK | HEAD_NEXT_MASK))

/* An entry: tag and address. */
#define ENTRY_TAG_BITS 16u
#define ENTRY_TAG_MASK (((uint64_t)1 << ENTRY_TAG_BITS) - 1u)

/* Keys a bucket, on average, above which the index grows, in halves. More saves memory, and costs
 * reads a second cache line more often. */
#define INDEX_KEYS_PER_TWO_BUCKETS 7u

#define INDEX_BUCKETS_MIN 64u
/* Buckets are found through a directory of chunks, which costs one load that hits the cache;
 * working out the segment takes longer. */
#define INDEX_CHUNK_LOG2 15u
#define INDEX_CHUNK_BUCKETS (1u << INDEX_CHUNK_LOG2)
#define INDEX_CHUNK_BYTES (INDEX_CHUNK_BUCKETS * 64u)
#define INDEX_CHUNKS_MAX (1u << 17)
/* Each segment is as large as all before it. */
#define INDEX_SEGMENTS_MAX 24u

struct index_segment {
    void *at;
    size_t bytes;
};

struct index {
    /* Read by every lookup, changed only by growth. */
    _Alignas(64) _Atomic uint64_t buckets_n;
    /* Address of each chunk less 64 times the number of its first bucket, so that one addition
     * finds a bucket. */
    _Atomic uintptr_t *chunks;
    struct hash_secret secret;

    /* Keys in the index, folded in by threads every few keys. */
    _Alignas(64) _Atomic int64_t keys;

    /* Growth. */
    _Alignas(64) struct spin grow_lock;
    uint32_t chunks_n; /* chunks that are mapped */
    uint32_t segments_n;
    struct index_segment segments[INDEX_SEGMENTS_MAX];

    /* Overflow buckets. */
    _Alignas(64) struct spin overflow_lock;
    struct bucket *overflow_free;
    uint8_t *overflow_fresh; /* the part of the last span that was never cut */
    uint8_t *overflow_end;
    _Atomic uint64_t overflow_n; /* in use; written under the lock, read by statistics */
};

/* Never 0, the tag of an empty entry. */
static inline uint64_t index_tag(uint64_t hash)
{
    return hash >> (64u - ENTRY_TAG_BITS) | 1u;
}

static inline uint64_t entry_make(const struct object *o, uint64_t hash)
{
    return (uint64_t)(uintptr_t)o << ENTRY_TAG_BITS | index_tag(hash);
}

static inline struct object *entry_object(uint64_t entry)
{
    return (struct object *)(uintptr_t)(entry >> ENTRY_TAG_BITS);
}

static inline struct bucket *head_next(uint64_t head)
{
    return (struct bucket *)(uintptr_t)((head & HEAD_NEXT_MASK) << 6);
}

/* The bucket number of a hash among n > 0 buckets. */
static inline uint64_t index_number(uint64_t hash, uint64_t n)
{
    uint64_t mask = UINT64_MAX >> __builtin_clzll(n);
    uint64_t i = hash & mask;
    /* Drops the upper bit if i is not below n; a branch here could not be predicted. */
    return i & ~((0u - (uint64_t)(i >= n)) & (mask ^ mask >> 1));
}

/* A bucket below the buckets_n that the caller loaded. */
static inline struct bucket *index_bucket(const struct index *index, uint64_t number)
{
    /* relaxed: stored before the buckets_n that covers it, whose load was an acquire. */
    uintptr_t at =
        atomic_load_explicit(&index->chunks[number >> INDEX_CHUNK_LOG2], memory_order_relaxed);
    return (struct bucket *)(at + (uintptr_t)(number * sizeof(struct bucket)));
}

static inline uint64_t index_buckets(const struct index *index)
{
    /* acquire: pairs with the release in index_split; the buckets it counts are filled. */
    return atomic_load_explicit(&index->buckets_n, memory_order_acquire);
}

static inline uint64_t bucket_head(const struct bucket *b)
{
    /* acquire: pairs with the releases of bucket_set_head. */
    return atomic_load_explicit(&b->head, memory_order_acquire);
}

static inline uint64_t bucket_entry(const struct bucket *b, uint32_t i)
{
    /* acquire: pairs with the release in bucket_set_entry; the object, or what made the entry go,
     * is visible. */
    return atomic_load_explicit(&b->entry[i], memory_order_acquire);
}

/* e if it has the tag, else other. */
static inline uint64_t entry_pick(uint64_t e, uint64_t tag, uint64_t other)
{
    return (e & ENTRY_TAG_MASK) == tag ? e : other;
}

/* The bucket's first entry with the tag, 0 if there is none. All are compared, without a branch:
 * which of them it is cannot be predicted. */
static inline uint64_t bucket_pick(const struct bucket *b, uint64_t tag)
{
    uint64_t e = entry_pick(bucket_entry(b, 6), tag, 0);
    e = entry_pick(bucket_entry(b, 5), tag, e);
    e = entry_pick(bucket_entry(b, 4), tag, e);
    e = entry_pick(bucket_entry(b, 3), tag, e);
    e = entry_pick(bucket_entry(b, 2), tag, e);
    e = entry_pick(bucket_entry(b, 1), tag, e);
    return entry_pick(bucket_entry(b, 0), tag, e);
}
_Static_assert(BUCKET_ENTRIES == 7, "bucket_pick looks at all of them");

/* The key's object, or NULL: a consistent "absent" (S4). Lock-free. The object stays good until the
 * thread's next quiescent state. */
struct object *index_search(const struct index *index, struct bytes key, uint64_t hash);

/* The same; nearly every key is the first of its bucket with its tag. */
static inline struct object *index_find(const struct index *index, struct bytes key, uint64_t hash)
{
    const struct bucket *b = index_bucket(index, index_number(hash, index_buckets(index)));
    struct object *o = entry_object(bucket_pick(b, index_tag(hash)));
    if (__builtin_expect(o != NULL && object_has_key(o, key), 1)) {
        return o;
    }
    return index_search(index, key, hash);
}

/* HK_ERR_NOMEM when the first segment cannot be had. Its buckets are the caller's to charge. */
int index_init(struct index *index, uint64_t keys_expected, uint64_t seed)
    __attribute__((warn_unused_result));
void index_deinit(struct index *index);

/* ---- Changing ---- */

/* One try for a bucket's lock. */
static inline bool bucket_try_lock(struct bucket *b)
{
    /* relaxed: only the exchange counts. */
    uint64_t head = atomic_load_explicit(&b->head, memory_order_relaxed);
    return (head & HEAD_LOCK) == 0 &&
           /* acquire: pairs with the release in index_unlock. */
           atomic_compare_exchange_weak_explicit(&b->head, &head, head | HEAD_LOCK,
                                                 memory_order_acquire, memory_order_relaxed);
}

static inline void index_unlock(struct bucket *first)
{
    /* relaxed: only the lock's holder writes the word. */
    uint64_t head = atomic_load_explicit(&first->head, memory_order_relaxed);
    /* release: pairs with the acquires in bucket_try_lock and bucket_head. */
    atomic_store_explicit(&first->head, head & ~HEAD_LOCK, memory_order_release);
}

/* The part of index_lock for a bucket that is not to be had at once. */
struct bucket *index_lock_wait(struct index *index, uint64_t hash);

/* Locks the bucket chain of a hash and returns its first bucket. */
static inline struct bucket *index_lock(struct index *index, uint64_t hash)
{
    uint64_t n = index_buckets(index);
    struct bucket *b = index_bucket(index, index_number(hash, n));
    if (__builtin_expect(bucket_try_lock(b), 1)) {
        /* A split in between may have moved the key; from here on none can. */
        if (__builtin_expect(index_buckets(index) == n, 1)) {
            return b;
        }
        index_unlock(b);
    }
    return index_lock_wait(index, hash);
}

/* The entry of a key in a locked chain, or NULL. */
_Atomic uint64_t *index_locate(struct bucket *first, struct bytes key, uint64_t hash);

/* The object of a key in a locked chain, or NULL; nearly every key is the first with its tag. */
static inline struct object *index_find_locked(struct bucket *first, struct bytes key,
                                               uint64_t hash)
{
    struct object *o = entry_object(bucket_pick(first, index_tag(hash)));
    if (__builtin_expect(o != NULL && object_has_key(o, key), 1)) {
        return o;
    }
    _Atomic uint64_t *entry = index_locate(first, key, hash);
    /* relaxed: under the lock. */
    return entry == NULL ? NULL : entry_object(atomic_load_explicit(entry, memory_order_relaxed));
}

/* An empty entry in a locked chain; adds an overflow bucket if all are taken. NULL when memory for
 * that cannot be had: nothing changed. */
_Atomic uint64_t *index_room(struct index *index, struct memory_cache *cache, struct bucket *first,
                             enum memory_limit limit);

/* Points an entry of a locked chain to an object that is filled. */
void index_point(_Atomic uint64_t *entry, const struct object *o, uint64_t hash);

/* Empties an entry of a locked chain, and packs the chain. */
void index_clear(struct index *index, struct memory_cache *cache, struct bucket *first,
                 _Atomic uint64_t *entry);

/* Splits buckets until there are enough for the keys, at most steps of them. The caller holds no
 * bucket's lock. */
void index_grow(struct index *index, struct memory_cache *cache, uint32_t steps);

/* How many of a hash's lower bits the number of its bucket fixes, with n buckets. */
uint32_t index_depth(uint64_t hash, uint64_t n);

#endif
