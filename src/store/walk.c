/* Walking all entries, in the order of reversed hash bits (docs/STORE.md, 4). */
#include "store/state.h"

static uint64_t reverse_bits(uint64_t x)
{
    x = (x >> 1 & 0x5555555555555555u) | (x & 0x5555555555555555u) << 1;
    x = (x >> 2 & 0x3333333333333333u) | (x & 0x3333333333333333u) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0fu) | (x & 0x0f0f0f0f0f0f0f0fu) << 4;
    return __builtin_bswap64(x);
}

static void visit_chain(const struct index *index, const struct bucket *b, store_visit_fn *visit,
                        void *context)
{
    while (b != NULL) {
        for (uint32_t i = 0; i < BUCKET_ENTRIES; i++) {
            uint64_t entry = bucket_entry(b, i);
            if (entry == 0) {
                continue;
            }
            const struct object *o = entry_object(entry);
            struct bytes key = object_key(o);
            struct key_meta meta = object_meta(o);
            visit(context, key, hash_bytes(&index->secret, key), &meta, object_value(o));
        }
        b = head_next(bucket_head(b));
    }
}

uint64_t store_walk(struct store *store, struct store_thread *thread, uint64_t cursor,
                    store_visit_fn *visit, void *context)
{
    struct index *index = &store->index;
    HK_ASSERT(!thread->locked);
    thread->locked = true;
    uint64_t hash = reverse_bits(cursor);
    struct bucket *first = index_lock(index, hash);
    /* Splits of this bucket wait for its lock, so its depth stands; those of others do not change
     * it. */
    uint32_t depth = index_depth(hash, index_buckets(index));
    visit_chain(index, first, visit, context);
    index_unlock(first);
    thread->locked = false;

    /* The end of the interval that the bucket covers; 0 after the last. */
    uint64_t interval = (uint64_t)1 << (64u - depth);
    return (cursor & ~(interval - 1u)) + interval;
}
