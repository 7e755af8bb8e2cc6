/* Several threads on one store, from a tiny index: writers that overwrite in place, replace by
 * other sizes and by blobs, remove and insert again; readers, one key at a time and in batches,
 * that check each value against its timestamp and never see a key go back; a walker that must meet
 * every key that was there all along. Bounded in work: writers do a fixed number of steps, the
 * others go on until the writers are done and they have done their share.
 *
 * The value and all metadata of a key are functions of the key and the timestamp, so that any mix
 * of two writes shows. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/assert.h"
#include "base/random.h"
#include "store/store.h"

#define WRITERS 2u
#define READERS 2u
#define THREADS (WRITERS + READERS + 1u)
#define HOT 12u       /* changed all the time */
#define STABLE 400u   /* always there, changed now and then; HOT of them are the hot ones */
#define REMOVABLE 64u /* come and go */
#define SHARED (STABLE + REMOVABLE)
#define FRESH 12000u /* inserted by each writer, to make the index grow */
#define STEPS 60000u /* of each writer */
#define SHARE 3000u  /* batches of each reader, at least */
#define BLOB_BYTES 3000u

struct shared {
    struct store *store;
    uint64_t ts[SHARED];               /* of the last write; under the lock of the key's bucket */
    _Atomic uint64_t fresh_n[WRITERS]; /* fresh keys below it are there and stay */
    _Atomic uint32_t writers_left;
    _Atomic uint32_t started;
};

struct worker {
    struct shared *shared;
    struct store_thread *thread;
    struct random random;
    uint32_t number; /* among the workers of its kind */
    uint64_t seen[SHARED];
    uint8_t met[STABLE];
    uint64_t walks;
};

static uint64_t mix(uint64_t id, uint64_t ts, uint64_t i)
{
    uint64_t x = (id * 0x9e3779b97f4a7c15u) ^ (ts * 0xd1b54a32d192ed03u) ^ i;
    return x ^ x >> 29;
}

/* Sizes by timestamp: mostly two that share a cell class, now and then others and blobs. */
static uint32_t value_bytes_of(uint64_t id, uint64_t ts)
{
    switch (ts % 16) {
    case 3:
        return 100;
    case 7:
        return id % 8 == 0 ? BLOB_BYTES : 8;
    case 11:
        return STORE_INLINE_MAX - 3;
    case 12:
        return 0;
    default:
        return ts % 2 == 0 ? 32 : 29;
    }
}

static struct key_meta meta_of(uint64_t id, uint64_t ts)
{
    uint64_t x = mix(id, ts, 99);
    return (struct key_meta){
        .ts = ts,
        .owner = (uint32_t)x,
        .state = (uint8_t)(x >> 32),
        .flags = (uint8_t)(x >> 40),
        .aux = (uint16_t)(x >> 48),
    };
}

static struct bytes value_make(uint8_t *at, uint64_t id, uint64_t ts)
{
    uint32_t n = value_bytes_of(id, ts);
    for (uint32_t i = 0; i < n; i += 8) {
        uint64_t word = mix(id, ts, i);
        memcpy(at + i, &word, n - i < 8 ? n - i : 8);
    }
    return bytes_of(at, n);
}

/* Keys of 8 and of 12 bytes. */
static struct bytes key_make(uint8_t *at, uint64_t id)
{
    put_u64(at, id);
    put_u32(at + 8, (uint32_t)id);
    return bytes_of(at, id % 3 == 0 ? 12 : 8);
}

static uint64_t fresh_id(uint32_t writer, uint64_t i)
{
    return SHARED + i * WRITERS + writer;
}

static void check_value(uint64_t id, const struct key_meta *meta, struct bytes value)
{
    struct key_meta expected = meta_of(id, meta->ts);
    HK_ASSERT(memcmp(meta, &expected, sizeof(expected)) == 0);
    HK_ASSERT(value.n == value_bytes_of(id, meta->ts));
    for (uint32_t i = 0; i < value.n; i += 8) {
        uint64_t word = mix(id, meta->ts, i);
        HK_ASSERT(memcmp(value.at + i, &word, value.n - i < 8 ? value.n - i : 8) == 0);
    }
}

/* ---- Writers ---- */

static void write_shared(struct worker *w, uint64_t id)
{
    struct shared *s = w->shared;
    uint8_t key[12], value[BLOB_BYTES];
    struct bytes k = key_make(key, id);
    struct store_ref ref;
    store_lock(s->store, w->thread, k, store_hash(s->store, k), &ref);
    HK_ASSERT(id >= STABLE || ref.object != NULL);
    if (ref.object != NULL) {
        struct key_meta meta = store_meta(&ref);
        uint64_t buffer[STORE_INLINE_MAX / 8];
        HK_ASSERT(meta.ts == s->ts[id]);
        check_value(id, &meta, store_value_of(&ref, buffer, sizeof(buffer)));
    }
    if (id >= STABLE && ref.object != NULL && random_chance(&w->random, 400000)) {
        store_remove(&ref);
    } else {
        uint64_t ts = ++s->ts[id];
        struct key_meta meta = meta_of(id, ts);
        HK_ASSERT(store_set(&ref, &meta, value_make(value, id, ts), false) == HK_OK);
    }
    store_unlock(&ref);
}

static void write_fresh(struct worker *w, uint64_t id, bool present)
{
    struct shared *s = w->shared;
    uint8_t key[12], value[BLOB_BYTES];
    struct bytes k = key_make(key, id);
    struct store_ref ref;
    store_lock(s->store, w->thread, k, store_hash(s->store, k), &ref);
    if (present) {
        struct key_meta meta = meta_of(id, 2);
        HK_ASSERT(ref.object == NULL);
        HK_ASSERT(store_set(&ref, &meta, value_make(value, id, 2), true) == HK_OK);
    } else {
        HK_ASSERT(ref.object != NULL);
        store_remove(&ref);
    }
    store_unlock(&ref);
}

static void *writer(void *argument)
{
    struct worker *w = argument;
    struct shared *s = w->shared;
    uint64_t fresh = 0;
    for (uint32_t step = 0; step < STEPS; step++) {
        if (fresh < FRESH && step % (STEPS / FRESH) == 0) {
            /* Every other one is taken away again, which packs chains. */
            write_fresh(w, fresh_id(w->number, fresh), true);
            if (fresh % 2 == 1) {
                write_fresh(w, fresh_id(w->number, fresh), false);
            }
            fresh++;
            atomic_store_explicit(&s->fresh_n[w->number], fresh, memory_order_release);
        }
        uint64_t what = random_below(&w->random, 10);
        write_shared(w, what < 5   ? random_below(&w->random, HOT)
                        : what < 8 ? STABLE + random_below(&w->random, REMOVABLE)
                                   : random_below(&w->random, STABLE));
        if (step % 16 == 0) {
            store_quiescent(w->thread);
        }
    }
    atomic_fetch_sub_explicit(&s->writers_left, 1, memory_order_release);
    return NULL;
}

/* ---- Readers ---- */

static uint64_t reader_pick(struct worker *w)
{
    struct shared *s = w->shared;
    uint64_t what = random_below(&w->random, 10);
    if (what < 5) {
        return random_below(&w->random, HOT);
    }
    if (what < 7) {
        return STABLE + random_below(&w->random, REMOVABLE);
    }
    if (what < 9) {
        return random_below(&w->random, STABLE);
    }
    uint32_t of = (uint32_t)random_below(&w->random, WRITERS);
    uint64_t n = atomic_load_explicit(&s->fresh_n[of], memory_order_acquire);
    return n == 0 ? 0 : fresh_id(of, random_below(&w->random, n));
}

static void reader_check(struct worker *w, uint64_t id, int err, const struct store_value *v)
{
    HK_ASSERT(err == HK_OK);
    bool may_be_absent = id >= STABLE;
    if (id >= SHARED) {
        may_be_absent = (id - SHARED) / WRITERS % 2 == 1;
        HK_ASSERT(v->found == !may_be_absent);
    }
    HK_ASSERT(v->found || may_be_absent);
    if (v->found) {
        check_value(id, &v->meta, v->value);
        if (id < SHARED) {
            HK_ASSERT(v->meta.ts >= w->seen[id]);
            w->seen[id] = v->meta.ts;
        }
    }
}

static void *reader(void *argument)
{
    struct worker *w = argument;
    struct shared *s = w->shared;
    static _Thread_local uint64_t space[STORE_BATCH_MAX][STORE_INLINE_MAX / 8];
    uint8_t at[STORE_BATCH_MAX][12];
    uint64_t ids[STORE_BATCH_MAX], hashes[STORE_BATCH_MAX];
    struct bytes keys[STORE_BATCH_MAX];
    void *buffers[STORE_BATCH_MAX];
    struct store_value values[STORE_BATCH_MAX];
    int errs[STORE_BATCH_MAX];
    for (uint32_t i = 0;
         i < SHARE || atomic_load_explicit(&s->writers_left, memory_order_acquire) > 0; i++) {
        for (uint32_t j = 0; j < STORE_BATCH_MAX; j++) {
            ids[j] = reader_pick(w);
            keys[j] = key_make(at[j], ids[j]);
            hashes[j] = store_hash(s->store, keys[j]);
            buffers[j] = space[j];
        }
        if (i % 2 == 0) {
            store_read_batch(s->store, w->thread, STORE_BATCH_MAX, keys, hashes, buffers,
                             sizeof(space[0]), values, errs);
        } else {
            for (uint32_t j = 0; j < STORE_BATCH_MAX; j++) {
                errs[j] = store_read(s->store, w->thread, keys[j], hashes[j], buffers[j],
                                     sizeof(space[0]), &values[j]);
            }
        }
        for (uint32_t j = 0; j < STORE_BATCH_MAX; j++) {
            reader_check(w, ids[j], errs[j], &values[j]);
        }
        if (i % 64 == 63) {
            store_offline(w->thread);
            /* Long enough for the others to reclaim while nobody waits for this one. */
            for (uint32_t j = 0; j < 20; j++) {
                sched_yield();
            }
            store_online(w->thread);
        } else {
            store_quiescent(w->thread);
        }
    }
    return NULL;
}

/* ---- The walker ---- */

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct worker *w = context;
    uint64_t id = get_u64(key.at);
    HK_ASSERT(hash == store_hash(w->shared->store, key));
    check_value(id, meta, value);
    if (id < STABLE) {
        w->met[id] = 1;
    }
}

static void *walker(void *argument)
{
    struct worker *w = argument;
    struct shared *s = w->shared;
    do {
        memset(w->met, 0, sizeof(w->met));
        uint64_t cursor = 0;
        do {
            cursor = store_walk(s->store, w->thread, cursor, visit, w);
            store_quiescent(w->thread);
        } while (cursor != 0);
        for (uint32_t i = 0; i < STABLE; i++) {
            HK_ASSERT(w->met[i]);
        }
        w->walks++;
        struct store_stats stats;
        store_stats(s->store, &stats);
    } while (atomic_load_explicit(&s->writers_left, memory_order_acquire) > 0);
    return NULL;
}

/* ---- The test ---- */

/* Each thread uses its registration from start to end, and gives it back itself. */
static void *run_worker(struct worker *w, void *(*body)(void *))
{
    HK_ASSERT(store_thread_register(w->shared->store, &w->thread) == HK_OK);
    /* All start together, or the first is done before the last begins. */
    atomic_fetch_add(&w->shared->started, 1);
    while (atomic_load(&w->shared->started) < THREADS) {
        sched_yield();
    }
    body(w);
    store_thread_unregister(w->thread);
    return NULL;
}

static void *start_writer(void *w)
{
    return run_worker(w, writer);
}

static void *start_reader(void *w)
{
    return run_worker(w, reader);
}

static void *start_walker(void *w)
{
    return run_worker(w, walker);
}

static void insert_stable(struct worker *w)
{
    struct shared *s = w->shared;
    HK_ASSERT(store_thread_register(s->store, &w->thread) == HK_OK);
    for (uint64_t id = 0; id < STABLE; id++) {
        uint8_t key[12], value[BLOB_BYTES];
        struct bytes k = key_make(key, id);
        struct store_ref ref;
        store_lock(s->store, w->thread, k, store_hash(s->store, k), &ref);
        struct key_meta meta = meta_of(id, ++s->ts[id]);
        HK_ASSERT(store_set(&ref, &meta, value_make(value, id, s->ts[id]), false) == HK_OK);
        store_unlock(&ref);
    }
    store_thread_unregister(w->thread);
}

/* All that the threads retired is freed in the end, by a thread that retired nothing. */
static void check_nothing_is_left(struct shared *s)
{
    struct store_thread *t;
    HK_ASSERT(store_thread_register(s->store, &t) == HK_OK);
    for (uint32_t i = 0; i < 100000; i++) {
        store_quiescent(t);
    }
    struct store_stats stats;
    store_stats(s->store, &stats);
    assert_int_equal(stats.retired_bytes, 0);
    assert_true(stats.buckets > 2 * FRESH / 16);
    print_message("%llu keys, %llu buckets, %llu overflow buckets\n",
                  (unsigned long long)stats.keys, (unsigned long long)stats.buckets,
                  (unsigned long long)stats.overflow_buckets);
    store_thread_unregister(t);
}

static void test_threads(void **state)
{
    (void)state;
    static struct shared shared;
    static struct worker workers[THREADS];
    uint64_t seed = 7;
    struct store_config config = {.seed = seed};
    assert_int_equal(store_create(&config, &shared.store), HK_OK);
    atomic_store(&shared.writers_left, WRITERS);
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].shared = &shared;
        random_init(&workers[i].random, seed + i);
    }
    insert_stable(&workers[0]);

    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].number = i < WRITERS ? i : i - WRITERS;
        void *(*start)(void *) = i < WRITERS             ? start_writer
                                 : i < WRITERS + READERS ? start_reader
                                                         : start_walker;
        assert_int_equal(pthread_create(&threads[i], NULL, start, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(workers[THREADS - 1].walks > 0);
    check_nothing_is_left(&shared);
    store_destroy(shared.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
