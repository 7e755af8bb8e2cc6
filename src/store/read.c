/* Reading: no lock, no write to a shared line (docs/STORE.md, S1 to S4). */
#include "store/state.h"

void store_prefetch_bucket(const struct store *store, uint64_t hash)
{
    const struct index *index = &store->index;
    __builtin_prefetch(index_bucket(index, index_number(hash, index_buckets(index))));
}

static inline const struct bucket *read_bucket(const struct index *index, uint64_t hash, uint64_t n)
{
    return index_bucket(index, index_number(hash, n));
}

/* The first object in the bucket whose tag fits: mostly the key's, never followed further than
 * that. NULL when there is none. */
static inline const struct object *read_candidate(const struct bucket *b, uint64_t hash)
{
    return entry_object(bucket_pick(b, index_tag(hash)));
}

/* The line where the object starts, and the one where an object of some tens of bytes ends. */
static inline void prefetch_candidate(const struct object *o)
{
    __builtin_prefetch(o);
    if ((uintptr_t)o % 64u != 0) {
        __builtin_prefetch((const uint8_t *)o + 64);
    }
}

void store_prefetch_object(const struct store *store, uint64_t hash)
{
    const struct index *index = &store->index;
    const struct object *o = read_candidate(read_bucket(index, hash, index_buckets(index)), hash);
    if (o != NULL) {
        prefetch_candidate(o);
    }
}

static int read_answer(enum object_answer answer)
{
    return answer == OBJECT_TOOBIG ? HK_ERR_TOOBIG : HK_OK;
}

/* The thread's announced epoch is what keeps the objects from being reclaimed. */
static void check_reader(const struct store *store, const struct store_thread *thread,
                         uint32_t capacity)
{
    (void)store;
    (void)thread;
    (void)capacity;
    HK_CHECK(capacity % 8 == 0);
    HK_CHECK(thread->store == store);
    HK_CHECK(epoch_is_online(&store->epoch, thread->slot));
}

int store_read(const struct store *store, struct store_thread *thread, struct bytes key,
               uint64_t hash, void *buffer, uint32_t capacity, struct store_value *value_out)
{
    check_reader(store, thread, capacity);
    thread->looks++;
    for (;;) {
        const struct object *o = index_find(&store->index, key, hash);
        if (o == NULL) {
            *value_out = (struct store_value){.found = false};
            return HK_OK;
        }
        enum object_answer answer = object_read(o, buffer, capacity, value_out);
        if (answer != OBJECT_RETIRED) {
            return read_answer(answer);
        }
    }
}

/* A batch goes through four stages, READ_GROUP lookups at a time: while the objects of one group
 * are read, those of the next and the buckets of a third are on their way, 16 lines together, and
 * now and then an overflow bucket. Prefetches are issued in loops of their own: one that misses the
 * TLB is not done before its page walk is, and only what follows closely overlaps with that. */
#define READ_GROUP 8u

struct read_batch {
    const struct store *store;
    struct store_thread *thread;
    const struct bytes *keys;
    const uint64_t *hashes;
    void *const *buffers;
    uint32_t n;
    uint32_t capacity;
    struct store_value *values;
    int *errs;
    const struct bucket *buckets[STORE_BATCH_MAX];
    const struct object *candidates[STORE_BATCH_MAX];
};

static inline uint32_t group_end(const struct read_batch *r, uint32_t first)
{
    return first + READ_GROUP < r->n ? first + READ_GROUP : r->n;
}

static inline void batch_buckets(struct read_batch *r, uint32_t first)
{
    uint32_t end = group_end(r, first);
    uint64_t n = index_buckets(&r->store->index);
    for (uint32_t i = first; i < end; i++) {
        r->buckets[i] = read_bucket(&r->store->index, r->hashes[i], n);
    }
    for (uint32_t i = first; i < end; i++) {
        __builtin_prefetch(r->buckets[i]);
    }
}

/* Candidates that stand in the first bucket. A bucket that was split meanwhile has none, or still
 * the right one. */
static inline void batch_candidates(struct read_batch *r, uint32_t first)
{
    uint32_t end = group_end(r, first);
    for (uint32_t i = first; i < end; i++) {
        r->candidates[i] = read_candidate(r->buckets[i], r->hashes[i]);
    }
    for (uint32_t i = first; i < end; i++) {
        if (__builtin_expect(r->candidates[i] != NULL, 1)) {
            prefetch_candidate(r->candidates[i]);
        } else {
            r->buckets[i] = head_next(bucket_head(r->buckets[i]));
            __builtin_prefetch(r->buckets[i]);
        }
    }
}

/* Candidates of those that had none, in the first overflow bucket. */
static inline void batch_overflow(struct read_batch *r, uint32_t first)
{
    uint32_t end = group_end(r, first);
    for (uint32_t i = first; i < end; i++) {
        if (__builtin_expect(r->candidates[i] == NULL && r->buckets[i] != NULL, 0)) {
            r->candidates[i] = read_candidate(r->buckets[i], r->hashes[i]);
            __builtin_prefetch(r->candidates[i]);
        }
    }
}

/* What the candidate does not answer is read from the start. */
static inline void batch_objects(struct read_batch *r, uint32_t first)
{
    uint32_t end = group_end(r, first);
    for (uint32_t i = first; i < end; i++) {
        const struct object *o = r->candidates[i];
        if (__builtin_expect(o != NULL && object_has_key(o, r->keys[i]), 1)) {
            enum object_answer answer = object_read(o, r->buffers[i], r->capacity, &r->values[i]);
            if (__builtin_expect(answer != OBJECT_RETIRED, 1)) {
                r->errs[i] = read_answer(answer);
                continue;
            }
        }
        r->errs[i] = store_read(r->store, r->thread, r->keys[i], r->hashes[i], r->buffers[i],
                                r->capacity, &r->values[i]);
    }
}

void store_read_batch(const struct store *store, struct store_thread *thread, uint32_t n,
                      const struct bytes *keys, const uint64_t *hashes, void *const *buffers,
                      uint32_t capacity, struct store_value *values_out, int *errs_out)
{
    struct read_batch r;
    check_reader(store, thread, capacity);
    HK_ASSERT(n <= STORE_BATCH_MAX);
    r.store = store;
    r.thread = thread;
    r.keys = keys;
    r.hashes = hashes;
    r.buffers = buffers;
    r.n = n;
    r.capacity = capacity;
    r.values = values_out;
    r.errs = errs_out;
    for (uint32_t i = 0; i < n + 3 * READ_GROUP; i += READ_GROUP) {
        if (i < n) {
            batch_buckets(&r, i);
        }
        if (i >= READ_GROUP && i - READ_GROUP < n) {
            batch_candidates(&r, i - READ_GROUP);
        }
        if (i >= 2 * READ_GROUP && i - 2 * READ_GROUP < n) {
            batch_overflow(&r, i - 2 * READ_GROUP);
        }
        if (i >= 3 * READ_GROUP) {
            batch_objects(&r, i - 3 * READ_GROUP);
        }
    }
}
