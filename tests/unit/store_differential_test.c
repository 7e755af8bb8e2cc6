/* The store against a plain array that does the same: tens of thousands of random operations from a
 * tiny index, with keys and values of every kind of size. A failure prints the seed; give it as the
 * first argument to run that sequence again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "store/store.h"

#define KEYS 3000u
#define OPERATIONS 60000u
#define VALUE_MAX (300u * 1024u)

struct model_entry {
    bool exists;
    struct key_meta meta;
    uint32_t value_bytes;
    uint64_t value_seed;
};

struct world {
    struct random random;
    struct store *store;
    struct store_thread *thread;
    struct model_entry model[KEYS];
    uint8_t seen[KEYS];
    uint8_t key[STORE_KEY_MAX];
    uint8_t value[VALUE_MAX];
    uint8_t expected[VALUE_MAX];
};

static uint64_t first_seed;

/* Key i: nothing for 0, else i and a pattern; lengths around every boundary that matters. */
static struct bytes key_of(struct world *w, uint32_t i)
{
    if (i == 0) {
        return bytes_of(NULL, 0);
    }
    uint32_t n = i < 2900 ? 4 + i % 61 : i < 2990 ? 200 + i * 7 % 900 : 30000 + i % 10 * 3948;
    n = n > STORE_KEY_MAX ? STORE_KEY_MAX : n;
    memset(w->key, (int)(i % 251), n);
    put_u32(w->key, i);
    return bytes_of(w->key, n);
}

static void fill(uint8_t *at, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (uint8_t)(seed >> (i % 8 * 8)) ^ (uint8_t)(i / 8);
    }
}

static uint32_t random_value_bytes(struct random *r)
{
    switch (random_below(r, 16)) {
    case 0:
        return 0;
    case 1:
        return (uint32_t)random_between(r, STORE_INLINE_MAX - 9, STORE_INLINE_MAX + 9);
    case 2:
        return (uint32_t)random_between(r, 1000, 9000);
    case 3:
        return random_chance(r, 100000) ? (uint32_t)random_between(r, 32000, VALUE_MAX)
                                        : (uint32_t)random_between(r, 32700, 32800);
    default:
        return (uint32_t)random_between(r, 1, 300);
    }
}

static struct key_meta random_meta(struct random *r)
{
    return (struct key_meta){
        .ts = random_next(r),
        .owner = (uint32_t)random_next(r),
        .state = (uint8_t)random_next(r),
        .flags = (uint8_t)random_next(r),
        .aux = (uint16_t)random_next(r),
    };
}

static void check_value(struct world *w, uint32_t i, const struct key_meta *meta,
                        struct bytes value)
{
    const struct model_entry *e = &w->model[i];
    assert_memory_equal(meta, &e->meta, sizeof(*meta));
    assert_int_equal(value.n, e->value_bytes);
    fill(w->expected, e->value_bytes, e->value_seed);
    assert_memory_equal(value.at, w->expected, e->value_bytes);
}

static void do_read(struct world *w, uint32_t i)
{
    uint64_t buffer[STORE_INLINE_MAX / 8];
    uint32_t capacity = random_chance(&w->random, 100000) ? 64 : sizeof(buffer);
    struct store_value value;
    struct bytes key = key_of(w, i);
    int err =
        store_read(w->store, w->thread, key, store_hash(w->store, key), buffer, capacity, &value);
    const struct model_entry *e = &w->model[i];
    assert_int_equal(value.found, e->exists);
    if (!e->exists) {
        assert_int_equal(err, HK_OK);
    } else if (e->value_bytes <= STORE_INLINE_MAX && e->value_bytes > capacity) {
        assert_int_equal(err, HK_ERR_TOOBIG);
        assert_int_equal(value.value.n, e->value_bytes);
        assert_memory_equal(&value.meta, &e->meta, sizeof(e->meta));
    } else {
        assert_int_equal(err, HK_OK);
        check_value(w, i, &value.meta, value.value);
    }
}

static void do_read_batch(struct world *w)
{
    static uint8_t copies[STORE_BATCH_MAX][2000];
    static uint64_t space[STORE_BATCH_MAX][STORE_INLINE_MAX / 8];
    struct bytes keys[STORE_BATCH_MAX];
    uint64_t hashes[STORE_BATCH_MAX];
    void *buffers[STORE_BATCH_MAX];
    struct store_value values[STORE_BATCH_MAX];
    uint32_t ids[STORE_BATCH_MAX];
    int errs[STORE_BATCH_MAX];
    uint32_t n = (uint32_t)random_between(&w->random, 0, STORE_BATCH_MAX);
    for (uint32_t i = 0; i < n; i++) {
        ids[i] = (uint32_t)random_below(&w->random, 2990);
        struct bytes key = key_of(w, ids[i]);
        if (key.n > 0) {
            memcpy(copies[i], key.at, key.n);
        }
        keys[i] = bytes_of(copies[i], key.n);
        hashes[i] = store_hash(w->store, keys[i]);
        buffers[i] = space[i];
    }
    store_read_batch(w->store, w->thread, n, keys, hashes, buffers, sizeof(space[0]), values, errs);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(errs[i], HK_OK);
        assert_int_equal(values[i].found, w->model[ids[i]].exists);
        if (values[i].found) {
            check_value(w, ids[i], &values[i].meta, values[i].value);
        }
    }
}

/* One or several steps on one key under one lock. */
static void do_change(struct world *w, uint32_t i)
{
    struct model_entry *e = &w->model[i];
    struct bytes key = key_of(w, i);
    struct store_ref ref;
    store_lock(w->store, w->thread, key, store_hash(w->store, key), &ref);
    for (uint64_t steps = random_between(&w->random, 1, 3); steps > 0; steps--) {
        assert_int_equal(ref.object != NULL, e->exists);
        if (e->exists) {
            struct key_meta meta = store_meta(&ref);
            uint64_t buffer[STORE_INLINE_MAX / 8];
            check_value(w, i, &meta, store_value_of(&ref, buffer, sizeof(buffer)));
        }
        uint64_t what = random_below(&w->random, 10);
        if (what < 6) {
            e->meta = random_meta(&w->random);
            e->exists = true;
            e->value_bytes = random_value_bytes(&w->random);
            e->value_seed = random_next(&w->random);
            fill(w->value, e->value_bytes, e->value_seed);
            bool force = random_chance(&w->random, 500000);
            assert_int_equal(store_set(&ref, &e->meta, bytes_of(w->value, e->value_bytes), force),
                             HK_OK);
        } else if (what < 8 && e->exists) {
            e->meta = random_meta(&w->random);
            store_set_meta(&ref, &e->meta);
        } else if (what == 8 || steps > 2) {
            store_remove(&ref);
            e->exists = false;
            assert_null(ref.object);
        }
    }
    store_unlock(&ref);
}

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct world *w = context;
    uint32_t i = key.n == 0 ? 0 : get_u32(key.at);
    assert_true(i < KEYS);
    assert_true(bytes_equal(key, key_of(w, i)));
    assert_int_equal(hash, store_hash(w->store, key));
    assert_true(w->model[i].exists);
    assert_int_equal(w->seen[i], 0);
    w->seen[i] = 1;
    check_value(w, i, meta, value);
}

static void do_walk(struct world *w)
{
    memset(w->seen, 0, sizeof(w->seen));
    uint64_t cursor = 0;
    do {
        cursor = store_walk(w->store, w->thread, cursor, visit, w);
    } while (cursor != 0);
    uint64_t keys = 0, tombstones = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(w->seen[i], w->model[i].exists);
        keys += w->model[i].exists;
        tombstones += w->model[i].exists && (w->model[i].meta.flags & KEY_TOMBSTONE) != 0;
    }
    struct store_stats stats;
    store_stats(w->store, &stats);
    assert_int_equal(stats.keys, keys);
    assert_int_equal(stats.tombstones, tombstones);
}

static void run(uint64_t seed)
{
    print_message("seed %llu\n", (unsigned long long)seed);
    static struct world world;
    struct world *w = &world;
    memset(w, 0, sizeof(*w));
    random_init(&w->random, seed);
    struct store_config config = {.seed = seed};
    assert_int_equal(store_create(&config, &w->store), HK_OK);
    assert_int_equal(store_thread_register(w->store, &w->thread), HK_OK);
    struct store_stats start;
    store_stats(w->store, &start);

    for (uint32_t i = 0; i < OPERATIONS; i++) {
        /* Few keys at first, so that some are changed often while others come late. */
        uint32_t keys = 64 + (uint32_t)((uint64_t)i * (KEYS - 64) / OPERATIONS);
        uint32_t key = (uint32_t)random_below(&w->random, keys);
        uint64_t what = random_below(&w->random, 1000);
        if (what < 500) {
            do_change(w, key);
        } else if (what < 900) {
            do_read(w, key);
        } else if (what < 998) {
            do_read_batch(w);
        } else {
            do_walk(w);
        }
        if (random_chance(&w->random, 100000)) {
            store_quiescent(w->thread);
        }
    }

    struct store_stats end;
    store_stats(w->store, &end);
    assert_true(end.buckets > start.buckets);
    /* Whatever was charged for keys is given back with them. */
    for (uint32_t i = 0; i < KEYS; i++) {
        struct bytes key = key_of(w, i);
        struct store_ref ref;
        store_lock(w->store, w->thread, key, store_hash(w->store, key), &ref);
        store_remove(&ref);
        store_unlock(&ref);
    }
    for (uint32_t i = 0; i < 100; i++) {
        store_quiescent(w->thread);
    }
    store_stats(w->store, &end);
    assert_int_equal(end.keys, 0);
    assert_int_equal(end.tombstones, 0);
    assert_int_equal(end.retired_bytes, 0);
    assert_int_equal(end.overflow_buckets, 0);
    assert_int_equal(end.bytes_used, end.buckets * 64);
    store_thread_unregister(w->thread);
    store_destroy(w->store);
}

static void test_differential(void **state)
{
    (void)state;
    run(first_seed);
    run(first_seed + 1);
}

int main(int argc, char **argv)
{
    first_seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 20240601;
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_differential)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
