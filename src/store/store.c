#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#include "store/state.h"

/* Objects and blobs are addressed in 32-bit lengths, and blobs fit the account. */
_Static_assert(STORE_VALUE_MAX < UINT32_MAX, "a value's length fits struct bytes");

/* Both structs have members aligned to cache lines. */
static void *allocate_zeroed(size_t bytes)
{
    size_t rounded = (bytes + 63u) & ~(size_t)63u;
    void *at = aligned_alloc(64, rounded);
    if (at != NULL) {
        memset(at, 0, rounded);
    }
    return at;
}

int store_create(const struct store_config *config, struct store **store_out)
{
    struct store *store = allocate_zeroed(sizeof(*store));
    if (store == NULL) {
        return HK_ERR_NOMEM;
    }
    int err = index_init(&store->index, config->keys_expected, config->seed);
    if (err != HK_OK) {
        free(store);
        return err;
    }
    epoch_init(&store->epoch);
    memory_init(&store->memory, config->memory_max);
    if (config->force_any) {
        store->memory.max_headroom = UINT64_MAX;
    }
    spin_init(&store->orphans.lock);
    spin_init(&store->threads_lock);
    store->value_bytes_max =
        config->value_bytes_max == 0 || config->value_bytes_max > STORE_VALUE_MAX
            ? STORE_VALUE_MAX
            : config->value_bytes_max;

    uint64_t index_bytes = index_buckets(&store->index) * sizeof(struct bucket);
    atomic_init(&store->memory.granted, index_bytes);
    atomic_init(&store->memory.used_by_closed, (int64_t)index_bytes);
    *store_out = store;
    return HK_OK;
}

void store_destroy(struct store *store)
{
    if (store == NULL) {
        return;
    }
    for (uint32_t i = 0; i < STORE_THREADS_MAX; i++) {
        free(store->threads[i]);
    }
    memory_deinit(&store->memory);
    index_deinit(&store->index);
    free(store);
}

int store_thread_register(struct store *store, struct store_thread **thread_out)
{
    struct store_thread *t = allocate_zeroed(sizeof(*t));
    if (t == NULL) {
        return HK_ERR_NOMEM;
    }
    t->store = store;
    memory_cache_init(&t->memory, &store->memory);

    spin_lock(&store->threads_lock);
    uint32_t slot = 0;
    while (slot < STORE_THREADS_MAX && store->threads[slot] != NULL) {
        slot++;
    }
    if (slot == STORE_THREADS_MAX) {
        spin_unlock(&store->threads_lock);
        free(t);
        return HK_ERR_FULL;
    }
    t->slot = slot;
    store->threads[slot] = t;
    /* relaxed: under the lock. */
    if (slot >= atomic_load_explicit(&store->epoch.slots_n, memory_order_relaxed)) {
        /* release: pairs with the acquire in epoch_passed; precedes epoch_online. */
        atomic_store_explicit(&store->epoch.slots_n, slot + 1, memory_order_release);
    }
    spin_unlock(&store->threads_lock);

    epoch_online(&store->epoch, slot);
    *thread_out = t;
    return HK_OK;
}

void store_thread_unregister(struct store_thread *thread)
{
    struct store *store = thread->store;
    HK_ASSERT(!thread->locked);
    epoch_offline(&store->epoch, thread->slot);
    thread_fold_keys(thread);
    retire_close(&thread->retire, &store->orphans);
    memory_cache_close(&thread->memory);

    spin_lock(&store->threads_lock);
    /* relaxed: statistics are summed under the same lock. */
    atomic_fetch_add_explicit(&store->keys_by_closed,
                              atomic_load_explicit(&thread->keys, memory_order_relaxed),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&store->tombstones_by_closed,
                              atomic_load_explicit(&thread->tombstones, memory_order_relaxed),
                              memory_order_relaxed);
    store->threads[thread->slot] = NULL;
    spin_unlock(&store->threads_lock);
    free(thread);
}

void store_quiescent(struct store_thread *thread)
{
    struct store *store = thread->store;
    HK_CHECK(!thread->locked);
    HK_CHECK(epoch_is_online(&store->epoch, thread->slot));
    epoch_quiescent(&store->epoch, thread->slot);
    retire_poll(&thread->retire, &store->orphans, &store->epoch, thread->slot, &thread->memory);
}

void store_quiescent_reader(struct store_thread *thread)
{
    HK_CHECK(!thread->locked);
    HK_CHECK(epoch_is_online(&thread->store->epoch, thread->slot));
    epoch_quiescent(&thread->store->epoch, thread->slot);
}

uint64_t store_thread_epoch(const struct store_thread *thread)
{
    /* relaxed: the thread's own word. What was unlinked after it announced this is not freed before
     * it announces a later one. */
    return atomic_load_explicit(&thread->store->epoch.slots[thread->slot].announced,
                                memory_order_relaxed);
}

void store_offline(struct store_thread *thread)
{
    struct store *store = thread->store;
    HK_CHECK(!thread->locked);
    if (!epoch_is_online(&store->epoch, thread->slot)) {
        return;
    }
    /* Whatever can be freed is not left lying while the thread sleeps; the rest is for others. */
    store_quiescent(thread);
    epoch_offline(&store->epoch, thread->slot);
    retire_close(&thread->retire, &store->orphans);
}

void store_online(struct store_thread *thread)
{
    struct store *store = thread->store;
    if (!epoch_is_online(&store->epoch, thread->slot)) {
        epoch_online(&store->epoch, thread->slot);
    }
}

uint64_t store_thread_looks(const struct store_thread *thread)
{
    return thread->looks;
}

uint64_t store_hash(const struct store *store, struct bytes key)
{
    return hash_bytes(&store->index.secret, key);
}

void *store_alloc(struct store_thread *thread, size_t bytes, bool force)
{
    return memory_take(&thread->memory, bytes, force ? MEMORY_HEADROOM : MEMORY_NORMAL);
}

void store_free(struct store_thread *thread, void *at, size_t bytes)
{
    if (at != NULL) {
        memory_give(&thread->memory, at, bytes);
    }
}

static uint64_t not_negative(int64_t n)
{
    return n > 0 ? (uint64_t)n : 0;
}

void store_stats(const struct store *store, struct store_stats *stats_out)
{
    /* relaxed throughout: each number is right by itself. The lock keeps the threads' memory. */
    struct spin *lock = (struct spin *)(uintptr_t)&store->threads_lock;
    spin_lock(lock);
    int64_t keys = atomic_load_explicit(&store->keys_by_closed, memory_order_relaxed);
    int64_t tombstones = atomic_load_explicit(&store->tombstones_by_closed, memory_order_relaxed);
    int64_t used = atomic_load_explicit(&store->memory.used_by_closed, memory_order_relaxed);
    int64_t retired = atomic_load_explicit(&store->orphans.bytes, memory_order_relaxed);
    for (uint32_t i = 0; i < STORE_THREADS_MAX; i++) {
        const struct store_thread *t = store->threads[i];
        if (t != NULL) {
            keys += atomic_load_explicit(&t->keys, memory_order_relaxed);
            tombstones += atomic_load_explicit(&t->tombstones, memory_order_relaxed);
            used += atomic_load_explicit(&t->memory.used, memory_order_relaxed);
            retired += atomic_load_explicit(&t->retire.bytes, memory_order_relaxed);
        }
    }
    spin_unlock(lock);

    uint64_t buckets = index_buckets(&store->index);
    *stats_out = (struct store_stats){
        .keys = not_negative(keys),
        .tombstones = not_negative(tombstones),
        .bytes_used = not_negative(used),
        .bytes_mapped =
            buckets * sizeof(struct bucket) +
            atomic_load_explicit(&store->memory.slabs.span_bytes, memory_order_relaxed) +
            atomic_load_explicit(&store->memory.large_bytes, memory_order_relaxed),
        .buckets = buckets,
        .overflow_buckets = atomic_load_explicit(&store->index.overflow_n, memory_order_relaxed),
        .retired_bytes = not_negative(retired),
    };
}
