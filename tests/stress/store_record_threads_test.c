/* Records and the index together, by several threads. Writers create, overwrite and free records
 * of their own keys, whose cells are soon used again for others; shared records are overwritten by
 * all writers, each under the record's lock word. Readers go by hints from the index and by hints
 * that may long be stale. A value tells its key and a sequence number that only grows, and all its
 * bytes follow from the two, so that a value of another key, of an older time, or of two writes
 * shows. */
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
#include "store/record.h"
#include "store/tree.h"

#define WRITERS 2u
#define READERS 2u
#define THREADS (WRITERS + READERS)
#define IDS 600u
#define SHARED 8u /* the first ids; they are always there */
#define STEPS 200000u
#define SHARE 2000u /* reads of each reader, at least */
#define KEY_BYTES 160u
#define VALUE_BYTES 3000u

struct library {
    struct store *store;
    struct tree *tree;
    struct records *records;
    _Atomic uint64_t hints[IDS]; /* of now or earlier */
    uint64_t sequences[SHARED];  /* each guarded by the record's lock word */
    _Atomic uint32_t started;
    _Atomic uint32_t writers_left;
};

struct worker {
    struct library *library;
    struct store_thread *thread;
    struct random random;
    uint32_t number;
    uint64_t sequence[IDS]; /* writers: of own keys; readers: the highest seen */
    uint64_t own[IDS];      /* hints of own keys; 0: none */
    uint64_t found, stale;
};

static struct bytes key_make(uint8_t *at, uint64_t id)
{
    uint32_t n = id % 11 == 3 ? KEY_BYTES : 8;
    memset(at, (int)id, n);
    put_u64(at, id);
    return bytes_of(at, n);
}

static struct bytes value_make(uint64_t *at, uint64_t id, uint64_t sequence)
{
    uint32_t n = sequence % 29 == 0 ? VALUE_BYTES : sequence % 7 == 0 ? 200 : 32;
    at[0] = id;
    at[1] = sequence;
    for (uint32_t i = 2; i < n / 8u; i++) {
        at[i] = (id << 40) ^ sequence * 0x9e3779b97f4a7c15u ^ i;
    }
    return bytes_of(at, n);
}

static uint64_t check_value(uint64_t id, struct bytes value)
{
    uint64_t expected[VALUE_BYTES / 8], sequence = get_u64(value.at + 8);
    HK_ASSERT(get_u64(value.at) == id);
    HK_ASSERT(bytes_equal(value, value_make(expected, id, sequence)));
    return sequence;
}

/* ---- Lock words: 0 free, else a thread ---- */

static bool lock_record(struct worker *w, uint64_t hint, struct bytes key)
{
    _Atomic uint64_t *lock = record_lock(w->library->records, hint);
    HK_ASSERT(lock != NULL);
    uint64_t nobody = 0;
    while (!atomic_compare_exchange_weak_explicit(lock, &nobody, w->number + 1u,
                                                  memory_order_acquire, memory_order_relaxed)) {
        nobody = 0;
        sched_yield();
    }
    if (record_is(w->library->records, hint, key)) {
        return true;
    }
    atomic_store_explicit(lock, 0, memory_order_release);
    return false;
}

static void unlock_record(struct worker *w, uint64_t hint)
{
    _Atomic uint64_t *lock = record_lock(w->library->records, hint);
    HK_ASSERT(atomic_load_explicit(lock, memory_order_relaxed) == w->number + 1u);
    atomic_store_explicit(lock, 0, memory_order_release);
}

/* ---- Writers ---- */

static void write_shared(struct worker *w, uint64_t id)
{
    struct library *l = w->library;
    uint8_t key_at[KEY_BYTES];
    uint64_t value_at[VALUE_BYTES / 8], hint;
    struct bytes key = key_make(key_at, id);
    HK_ASSERT(tree_find(l->tree, w->thread, key, &hint) == HK_OK);
    HK_ASSERT(lock_record(w, hint, key));
    struct bytes value = value_make(value_at, id, ++l->sequences[id]);
    HK_ASSERT(record_write(l->records, w->thread, hint, key, value) == HK_OK);
    unlock_record(w, hint);
}

static void write_own(struct worker *w, uint64_t id)
{
    struct library *l = w->library;
    uint8_t key_at[KEY_BYTES];
    uint64_t value_at[VALUE_BYTES / 8], hint = 0;
    struct bytes key = key_make(key_at, id);
    if (w->own[id] != 0 && random_chance(&w->random, 400000)) {
        HK_ASSERT(tree_delete(l->tree, w->thread, key, &hint) == HK_OK && hint == w->own[id]);
        HK_ASSERT(record_free(l->records, w->thread, hint, key) == HK_OK);
        HK_ASSERT(record_free(l->records, w->thread, hint, key) == HK_ERR_NOTFOUND);
        w->own[id] = 0;
        return;
    }
    struct bytes value = value_make(value_at, id, ++w->sequence[id]);
    if (w->own[id] != 0) {
        HK_ASSERT(record_write(l->records, w->thread, w->own[id], key, value) == HK_OK);
        return;
    }
    HK_ASSERT(record_create(l->records, w->thread, key, value, &hint) == HK_OK);
    HK_ASSERT(tree_insert(l->tree, w->thread, key, hint, NULL) == HK_OK);
    w->own[id] = hint;
    /* relaxed: a hint may be stale or early. */
    atomic_store_explicit(&l->hints[id], hint, memory_order_relaxed);
}

/* Takes the lock of a cell by a hint that may be stale, and lets go of it. */
static void try_lock(struct worker *w, uint64_t id)
{
    uint8_t key_at[KEY_BYTES];
    uint64_t hint = atomic_load_explicit(&w->library->hints[id], memory_order_relaxed);
    if (hint != 0 && lock_record(w, hint, key_make(key_at, id))) {
        unlock_record(w, hint);
    }
}

static void write_all(struct worker *w)
{
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t id = random_below(&w->random, IDS);
        if (step % 8 == 0) {
            write_shared(w, id % SHARED);
        } else if (id >= SHARED && id % WRITERS == w->number) {
            write_own(w, id);
        } else if (id >= SHARED) {
            try_lock(w, id);
        }
        if (step % 16 == 0) {
            store_quiescent(w->thread);
        }
    }
    atomic_fetch_sub_explicit(&w->library->writers_left, 1, memory_order_release);
}

/* ---- Readers ---- */

static void read_one(struct worker *w)
{
    struct library *l = w->library;
    uint64_t id = random_below(&w->random, IDS), hint, buffer[STORE_INLINE_MAX / 8];
    uint8_t key_at[KEY_BYTES];
    struct bytes key = key_make(key_at, id), value;
    bool cached = id >= SHARED && random_chance(&w->random, 500000);
    if (cached) {
        hint = atomic_load_explicit(&l->hints[id], memory_order_relaxed);
    } else if (tree_find(l->tree, w->thread, key, &hint) != HK_OK) {
        HK_ASSERT(id >= SHARED);
        return;
    }
    int err = record_read(l->records, w->thread, hint, key, buffer, sizeof(buffer), &value);
    HK_ASSERT(err == HK_OK || (err == HK_ERR_NOTFOUND && id >= SHARED));
    if (err != HK_OK) {
        w->stale++;
        return;
    }
    uint64_t sequence = check_value(id, value);
    HK_ASSERT(sequence >= w->sequence[id]);
    w->sequence[id] = sequence;
    w->found++;
}

static void read_all(struct worker *w)
{
    for (uint32_t i = 0;
         i < SHARE || atomic_load_explicit(&w->library->writers_left, memory_order_acquire) > 0;
         i++) {
        read_one(w);
        if (i % 16 == 0) {
            store_quiescent(w->thread);
        }
    }
}

/* ---- The test ---- */

static void *run_worker(void *argument)
{
    struct worker *w = argument;
    HK_ASSERT(store_thread_register(w->library->store, &w->thread) == HK_OK);
    atomic_fetch_add(&w->library->started, 1);
    while (atomic_load(&w->library->started) < THREADS) {
        sched_yield();
    }
    if (w->number < WRITERS) {
        write_all(w);
    } else {
        read_all(w);
    }
    store_thread_unregister(w->thread);
    return NULL;
}

static void create_shared(struct library *l, struct store_thread *t)
{
    for (uint64_t id = 0; id < SHARED; id++) {
        uint8_t key_at[KEY_BYTES];
        uint64_t value_at[VALUE_BYTES / 8], hint;
        struct bytes key = key_make(key_at, id), value = value_make(value_at, id, 0);
        HK_ASSERT(record_create(l->records, t, key, value, &hint) == HK_OK);
        HK_ASSERT(tree_insert(l->tree, t, key, hint, NULL) == HK_OK);
    }
}

/* Each key has the last value that was written, or none; when all are gone, so are the blobs. */
static void check_end(struct library *l, struct store_thread *t, const struct worker *workers)
{
    uint64_t records = 0;
    assert_null(tree_check(l->tree));
    for (uint64_t id = 0; id < IDS; id++) {
        uint8_t key_at[KEY_BYTES];
        uint64_t hint = 0, buffer[STORE_INLINE_MAX / 8];
        struct bytes key = key_make(key_at, id), value;
        const struct worker *w = &workers[id % WRITERS];
        int err = tree_delete(l->tree, t, key, &hint);
        assert_int_equal(err, id < SHARED || w->own[id] != 0 ? HK_OK : HK_ERR_NOTFOUND);
        if (err == HK_OK) {
            records++;
            assert_int_equal(record_read(l->records, t, hint, key, buffer, sizeof(buffer), &value),
                             HK_OK);
            assert_int_equal(check_value(id, value),
                             id < SHARED ? l->sequences[id] : w->sequence[id]);
            assert_int_equal(record_free(l->records, t, hint, key), HK_OK);
        }
    }
    struct record_stats stats;
    records_stats(l->records, &stats);
    assert_int_equal(stats.records, 0);
    assert_true(records > IDS / 4);
    struct store_stats memory;
    for (uint32_t i = 0; i < 10000; i++) {
        store_quiescent(t);
    }
    store_stats(l->store, &memory);
    assert_int_equal(memory.retired_bytes, 0);
}

static void test_threads(void **state)
{
    (void)state;
    static struct library l;
    static struct worker workers[THREADS];
    struct store_config config = {.seed = 3};
    struct store_thread *t;
    assert_int_equal(store_create(&config, &l.store), HK_OK);
    assert_int_equal(store_thread_register(l.store, &t), HK_OK);
    assert_int_equal(tree_create(l.store, t, &l.tree), HK_OK);
    assert_int_equal(records_create(l.store, t, &l.records), HK_OK);
    create_shared(&l, t);
    store_offline(t);
    atomic_store(&l.writers_left, WRITERS);
    pthread_t threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i].library = &l;
        workers[i].number = i;
        random_init(&workers[i].random, config.seed * 100u + i);
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (uint32_t i = WRITERS; i < THREADS; i++) {
        print_message("%llu reads, %llu stale hints\n", (unsigned long long)workers[i].found,
                      (unsigned long long)workers[i].stale);
        assert_true(workers[i].found > 0 && workers[i].stale > 0);
    }
    store_online(t);
    check_end(&l, t, workers);
    store_thread_unregister(t);
    store_destroy(l.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
