/* Reading: no lock, no write to a shared line (docs/STORE.md, S1 to S4). */
#include "store/state.h"

void store_prefetch_bucket(const struct store *store, uint64_t hash)
{
    const struct index *index = &store->index;
    __builtin_prefetch(index_bucket(index, index_number(hash, index_buckets(index))));
}

/* The first object in the hash's bucket whose tag fits: mostly the key's, never followed further
 * than that. NULL when there is none. */
static const struct object *read_candidate(const struct index *index, uint64_t hash)
{
    const struct bucket *b = index_bucket(index, index_number(hash, index_buckets(index)));
    uint64_t tag = index_tag(hash);
    for (uint32_t i = 0; i < BUCKET_ENTRIES; i++) {
        uint64_t entry = bucket_entry(b, i);
        if ((entry & 0xffffu) == tag) {
            return entry_object(entry);
        }
    }
    return NULL;
}

static void prefetch_candidate(const struct object *o)
{
    __builtin_prefetch(o);
    if ((uintptr_t)o % 64u != 0) {
        __builtin_prefetch((const uint8_t *)o + 64);
    }
}

void store_prefetch_object(const struct store *store, uint64_t hash)
{
    const struct object *o = read_candidate(&store->index, hash);
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

#ifndef READ_AHEAD
#define READ_AHEAD 16u
#endif
void store_read_batch(const struct store *store, struct store_thread *thread, uint32_t n,
                      const struct bytes *keys, const uint64_t *hashes, void *const *buffers,
                      uint32_t capacity, struct store_value *values_out, int *errs_out)
{
    const struct object *candidates[READ_AHEAD];
    check_reader(store, thread);
    for (uint32_t i = 0; i < n + 2 * READ_AHEAD; i++) {
        if (i < n) {
            store_prefetch_bucket(store, hashes[i]);
        }
        if (i >= 2 * READ_AHEAD && i < n + 2 * READ_AHEAD) {
            uint32_t j = i - 2 * READ_AHEAD;
            const struct object *o = candidates[j % READ_AHEAD];
            if (o != NULL && object_has_key(o, keys[j])) {
                enum object_answer answer = object_read(o, buffers[j], capacity, &values_out[j]);
                if (answer != OBJECT_RETIRED) {
                    errs_out[j] = read_answer(answer);
                    goto next;
                }
            }
            errs_out[j] = store_read(store, thread, keys[j], hashes[j], buffers[j], capacity,
                                     &values_out[j]);
        }
        next:
        if (i >= READ_AHEAD && i < n + READ_AHEAD) {
            uint32_t j = i - READ_AHEAD;
            const struct object *o = read_candidate(&store->index, hashes[j]);
            if (o != NULL) {
                prefetch_candidate(o);
            }
            candidates[j % READ_AHEAD] = o;
        }
    }
}
