/* Objects in memory: a hash index of cache-line buckets over slab-allocated objects, read without
 * locks and without writes to shared lines ([G] 3.6: CRCW, seqlocks), changed under the lock of a
 * key's bucket.
 *
 * Threads. Every thread that touches a store registers once and passes its store_thread. Pointers
 * into the store (views of values) stay good until that thread's next store_quiescent; what others
 * replace or remove meanwhile is reclaimed only after every online thread was quiescent.
 *
 * Growth. The index grows by linear hashing, one bucket at a time, on the threads that insert.
 * Nothing stops for it.
 *
 * Bounds. Keys up to STORE_KEY_MAX bytes, values up to the configured maximum (at most
 * STORE_VALUE_MAX). Past memory_max an insert or a larger value answers HK_ERR_NOMEM. */
#ifndef HORKOS_STORE_STORE_H
#define HORKOS_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "base/meta.h"

#define STORE_KEY_MAX 65536u
#define STORE_VALUE_MAX (64u * 1024u * 1024u + 64u)
#define STORE_THREADS_MAX 256u
#define STORE_BATCH_MAX 64u

struct store;
struct store_thread;
struct object;

struct store_config {
    uint64_t memory_max;      /* bytes for objects and index together; 0: no limit */
    uint64_t keys_expected;   /* sizes the first index; growth takes over from there; 0: small */
    uint32_t value_bytes_max; /* 0: STORE_VALUE_MAX */
    uint64_t seed;            /* secret of the key hash: different for each process */
    bool force_any;           /* a forced write or allocation is never refused at a limit: for
                                 protocols that send nothing twice */
};

/* HK_ERR_NOMEM when the first index cannot be had. */
int store_create(const struct store_config *config, struct store **store_out)
    __attribute__((warn_unused_result));
void store_destroy(struct store *store);

/* HK_ERR_FULL when STORE_THREADS_MAX threads are registered. */
int store_thread_register(struct store *store, struct store_thread **thread_out)
    __attribute__((warn_unused_result));
void store_thread_unregister(struct store_thread *thread);
/* The thread holds no pointer into the store. Called once a batch; reclaims what is due. */
void store_quiescent(struct store_thread *thread);
/* The same for a thread that only reads: it reclaims nothing, neither its own (it has none) nor
 * what others left. Writes only when somebody has retired something since. */
void store_quiescent_reader(struct store_thread *thread);
/* The thread sleeps (holds no pointer, delays nobody), and wakes. What it retired others
 * reclaim. */
void store_offline(struct store_thread *thread);
void store_online(struct store_thread *thread);
/* As long as it is the same, pointers into the store are good that were when it was asked for. On
 * its own thread. */
uint64_t store_thread_epoch(const struct store_thread *thread);
/* How often this thread has looked for a key: reads that are no batch, and locks. For who prices
 * what a node does. On its own thread, or while that does nothing. */
uint64_t store_thread_looks(const struct store_thread *thread);

/* Hash of a key under the store's secret. The same for all calls of one store. */
uint64_t store_hash(const struct store *store, struct bytes key);
/* Brings the index bucket, then (called later) the candidate object, towards the cache. */
void store_prefetch_bucket(const struct store *store, uint64_t hash);
void store_prefetch_object(const struct store *store, uint64_t hash);

/* ---- Reading: no lock ---- */

struct store_value {
    struct key_meta meta; /* a consistent snapshot together with the value */
    struct bytes value;   /* in buffer, or in an immutable blob; good until store_quiescent */
    bool found;           /* an entry exists (it may be a tombstone, or not readable) */
};

/* Reads a key: one seqlock read. Values up to capacity bytes are copied into buffer (8-byte
 * aligned; capacity a multiple of 8); values that are kept out of line are returned in place.
 * HK_ERR_TOOBIG when an inline value is longer than capacity: value.n then says how long. A
 * capacity of STORE_INLINE_MAX always suffices. */
#define STORE_INLINE_MAX 1024u
int store_read(const struct store *store, struct store_thread *thread, struct bytes key,
               uint64_t hash, void *buffer, uint32_t capacity, struct store_value *value_out)
    __attribute__((warn_unused_result));

/* Up to STORE_BATCH_MAX reads with their cache misses overlapped, 16 in flight; buffers[i] as in
 * store_read. The longer the batch, the less of it waits for the first and the last misses: 64 are
 * read half as fast again as four times 16. */
void store_read_batch(const struct store *store, struct store_thread *thread, uint32_t n,
                      const struct bytes *keys, const uint64_t *hashes, void *const *buffers,
                      uint32_t capacity, struct store_value *values_out, int *errs_out);

/* ---- Changing: under the lock of the key's bucket ---- */

/* A locked bucket, and the key's object in it. The caller fills nothing in itself. */
struct store_ref {
    struct store *store;
    struct store_thread *thread;
    struct bytes key;
    uint64_t hash;
    void *bucket;
    struct object *object; /* NULL: the key has no entry */
};

/* Locks the key's bucket (a spin lock: hold it for a step, never across a wait) and finds the key.
 * key must stay good until store_unlock. One thread holds at most one lock. */
void store_lock(struct store *store, struct store_thread *thread, struct bytes key, uint64_t hash,
                struct store_ref *ref_out);
void store_unlock(struct store_ref *ref);

/* The locked object's metadata, and its value in place (good until it is set again or the lock is
 * released, or, when out of line, until store_quiescent). Both need ref->object. store_set may be
 * given a piece of it. buffer and capacity are not used: nothing has to be copied. */
struct key_meta store_meta(const struct store_ref *ref);
struct bytes store_value_of(const struct store_ref *ref, void *buffer, uint32_t capacity);

/* Keeps a large value, as store_value_of gives it, as it is until store_release, whatever becomes
 * of the key or the store meanwhile; it is not counted once the store has let go. NULL: the value
 * has no memory of its own; copy it. */
void *store_hold(const struct store_ref *ref) __attribute__((warn_unused_result));
/* Any thread. */
void store_release(void *hold);

/* Publishes new metadata for the locked object; readers see old or new, never a mix. */
void store_set_meta(struct store_ref *ref, const struct key_meta *meta);

/* Publishes metadata and value together: in place, by a swapped object, or by a new entry.
 * Errors leave everything as it was: HK_ERR_NOMEM, HK_ERR_TOOBIG. force lets a follower's write
 * use the headroom above memory_max (what one node applies, all do), or with store_config.force_any
 * whatever there is. */
int store_set(struct store_ref *ref, const struct key_meta *meta, struct bytes value, bool force)
    __attribute__((warn_unused_result));

/* Removes the locked key's entry; afterwards ref->object is NULL. */
void store_remove(struct store_ref *ref);

/* ---- Walking ---- */

/* Visits every entry of the bucket that cursor names, under its lock, and returns the next cursor;
 * 0 is both the start and the end. Every entry that exists during the whole walk is visited at
 * least once, also while the index grows; some may be visited twice. Cursors are in the order of
 * reversed hash bits, so growth never moves unvisited entries behind the cursor.
 * The visitor may not change the store. */
typedef void store_visit_fn(void *context, struct bytes key, uint64_t hash,
                            const struct key_meta *meta, struct bytes value);
uint64_t store_walk(struct store *store, struct store_thread *thread, uint64_t cursor,
                    store_visit_fn *visit, void *context);

/* ---- Scratch memory for the shell: from the same slabs and accounts, freed by the same thread
 * or any other; alignment 8. NULL past memory_max, or
 * with force past its headroom. ---- */
void *store_alloc(struct store_thread *thread, size_t bytes, bool force);
void store_free(struct store_thread *thread, void *at, size_t bytes);

struct store_stats {
    uint64_t keys; /* entries, tombstones included */
    uint64_t tombstones;
    uint64_t bytes_used;   /* cells in use (rounded to their class) and index */
    uint64_t bytes_mapped; /* taken from the operating system: buckets, spans, large allocations */
    uint64_t buckets;
    uint64_t overflow_buckets;
    uint64_t retired_bytes; /* replaced, not yet reclaimed */
};
/* Sums per-thread counters; approximate while others write. */
void store_stats(const struct store *store, struct store_stats *stats_out);

#endif
