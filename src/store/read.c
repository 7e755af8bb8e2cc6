/* Reading: no lock, no write to a shared line (docs/STORE.md, S1 to S4). */
#include "store/state.h"

void store_prefetch_bucket(const struct store *store, uint64_t hash)
{
    const struct index *index = &store->index;
    __builtin_prefetch(index_bucket(index, index_number(hash, index_buckets(index))));
}

static const struct bucket *read_bucket(const struct index *index, uint64_t hash, uint64_t n)
{
    return index_bucket(index, index_number(hash, n));
}

/* The first object in the bucket whose tag fits: mostly the key's, never followed further than
 * that. NULL when there is none. */
static const struct object *read_candidate(const struct bucket *b, uint64_t hash)
{
    uint32_t matches = bucket_matches(b, index_tag(hash));
    return matches == 0 ? NULL : entry_object(bucket_entry(b, (uint32_t)__builtin_ctz(matches)));
}

/* The line where the object starts, and the one where an object of some tens of bytes ends. */
static void prefetch_candidate(const struct object *o)
{
    __builtin_prefetch(o);
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
static void check_reader(const struct store *store, const struct store_thread *thread)
{
    (void)store;
    (void)thread;
    HK_CHECK(thread->store == store);
    HK_CHECK(epoch_is_online(&store->epoch, thread->slot));
}

int store_read(const struct store *store, struct store_thread *thread, struct bytes key,
               uint64_t hash, void *buffer, uint32_t capacity, struct store_value *value_out)
{
    check_reader(store, thread);
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

#ifndef READ_GROUP
#define READ_GROUP 16u
#endif
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

static inline void batch_candidates(struct read_batch *r, uint32_t first)
{
    uint32_t end = group_end(r, first);
    for (uint32_t i = first; i < end; i++) {
        r->candidates[i] = read_candidate(r->buckets[i], r->hashes[i]);
    }
    for (uint32_t i = first; i < end; i++) {
        prefetch_candidate(r->candidates[i]);
    }
}

static inline __attribute__((always_inline)) void batch_object(struct read_batch *r, uint32_t i)
{
    const struct object *o = r->candidates[i];
    if (__builtin_expect(o != NULL && object_has_key(o, r->keys[i]), 1)) {
        enum object_answer answer = object_read(o, r->buffers[i], r->capacity, &r->values[i]);
        r->errs[i] = read_answer(answer);
        if (__builtin_expect(answer != OBJECT_RETIRED, 1)) {
            return;
        }
    }
    r->errs[i] = store_read(r->store, r->thread, r->keys[i], r->hashes[i], r->buffers[i],
                            r->capacity, &r->values[i]);
}

void store_read_batch(const struct store *store, struct store_thread *thread, uint32_t n,
                      const struct bytes *keys, const uint64_t *hashes, void *const *buffers,
                      uint32_t capacity, struct store_value *values_out, int *errs_out)
{
    struct read_batch r;
    check_reader(store, thread);
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
    for (uint32_t i = 0; i < n + 2 * READ_GROUP; i += READ_GROUP) {
        if (i < n) {
            batch_buckets(&r, i);
        }
        if (i >= READ_GROUP && i < n + READ_GROUP) {
            batch_candidates(&r, i - READ_GROUP);
        }
        if (i >= 2 * READ_GROUP) {
            for (uint32_t j = i - 2 * READ_GROUP; j < group_end(&r, i - 2 * READ_GROUP); j++) {
                batch_object(&r, j);
            }
        }
    }
}
