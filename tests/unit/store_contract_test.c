/* Each sentence of store.h that one thread can check. Several registered threads take turns where
 * it is about what one of them holds while another writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "store/object.h"
#include "store/store.h"
#include "support/store_fixture.h"

static const struct store_config plain = {.seed = 42};

static uint8_t *pattern(uint32_t n, uint8_t start)
{
    uint8_t *at = malloc(n + 1u);
    assert_non_null(at);
    for (uint32_t i = 0; i < n; i++) {
        at[i] = (uint8_t)(start + i * 7u);
    }
    return at;
}

static void test_object_of_8_and_32_bytes_is_one_line(void **state)
{
    (void)state;
    assert_int_equal(sizeof(struct object), 24);
    assert_int_equal(object_bytes(8, 32), 64);
    struct fixture f;
    fixture_open(&f, &plain);
    for (uint64_t i = 0; i < 1000; i++) {
        uint8_t value[32] = {0};
        struct bytes key = bytes_of(&i, 8);
        must_put(&f, key, i, bytes_of(value, sizeof(value)));
        struct store_ref ref;
        store_lock(f.store, f.thread, key, store_hash(f.store, key), &ref);
        assert_int_equal((uintptr_t)ref.object % 64, 0);
        store_unlock(&ref);
    }
    fixture_close(&f);
}

static void test_create_refuses_an_index_that_cannot_be(void **state)
{
    (void)state;
    struct store *store;
    struct store_config config = {.keys_expected = (uint64_t)1 << 60};
    assert_int_equal(store_create(&config, &store), HK_ERR_NOMEM);
}

static void test_threads_are_bounded_and_their_places_used_again(void **state)
{
    (void)state;
    struct store *store;
    struct store_thread *threads[STORE_THREADS_MAX], *one_more;
    assert_int_equal(store_create(&plain, &store), HK_OK);
    for (uint32_t i = 0; i < STORE_THREADS_MAX; i++) {
        assert_int_equal(store_thread_register(store, &threads[i]), HK_OK);
    }
    assert_int_equal(store_thread_register(store, &one_more), HK_ERR_FULL);
    store_thread_unregister(threads[7]);
    assert_int_equal(store_thread_register(store, &threads[7]), HK_OK);
    assert_int_equal(store_thread_register(store, &one_more), HK_ERR_FULL);
    /* Threads that are still registered go with the store. */
    store_destroy(store);
}

static void test_looks_are_counted(void **state)
{
    (void)state;
    struct fixture f;
    struct store_ref ref;
    struct store_value v;
    uint64_t buffer[STORE_INLINE_MAX / 8];
    struct bytes key = bytes_of("key", 3);
    fixture_open(&f, &plain);
    uint64_t before = store_thread_looks(f.thread);
    store_lock(f.store, f.thread, key, store_hash(f.store, key), &ref);
    store_unlock(&ref);
    assert_int_equal(store_thread_looks(f.thread), before + 1);
    assert_int_equal(
        store_read(f.store, f.thread, key, store_hash(f.store, key), buffer, STORE_INLINE_MAX, &v),
        HK_OK);
    assert_int_equal(store_thread_looks(f.thread), before + 2);
    fixture_close(&f);
}

static void test_hash_is_the_stores_own(void **state)
{
    (void)state;
    struct fixture f, g, h;
    struct store_config other = {.seed = 43};
    fixture_open(&f, &plain);
    fixture_open(&g, &plain);
    fixture_open(&h, &other);
    static const uint8_t bytes[300] = {1, 2, 3};
    uint32_t same = 0;
    for (uint32_t n = 0; n <= sizeof(bytes); n++) {
        struct bytes key = bytes_of(bytes, n);
        assert_int_equal(store_hash(f.store, key), store_hash(f.store, key));
        assert_int_equal(store_hash(f.store, key), store_hash(g.store, key));
        same += store_hash(f.store, key) == store_hash(h.store, key);
    }
    assert_int_equal(same, 0);
    fixture_close(&f);
    fixture_close(&g);
    fixture_close(&h);
}

static void test_read_answers_what_was_set(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    struct bytes key = text("key");
    expect_absent(&f, key);
    must_put(&f, key, 5, text("value"));
    expect(&f, key, 5, text("value"));
    expect_absent(&f, text("ke"));
    expect_absent(&f, text("key "));
    must_put(&f, key, 6, text(""));
    expect(&f, key, 6, text(""));
    must_put(&f, key, 7, text("another value, that is longer"));
    expect(&f, key, 7, text("another value, that is longer"));
    drop(&f, key);
    expect_absent(&f, key);
    drop(&f, key);
    must_put(&f, key, 8, text("again"));
    expect(&f, key, 8, text("again"));
    fixture_close(&f);
}

static void test_keys_may_be_any_bytes_up_to_the_maximum(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    uint8_t *bytes = pattern(STORE_KEY_MAX + 1, 0);
    static const uint32_t lengths[] = {0,  1,   2,    7,     8,     9,     15,           16,
                                       17, 255, 1023, 32767, 32768, 65535, STORE_KEY_MAX};
    uint32_t n = sizeof(lengths) / sizeof(lengths[0]);
    for (uint32_t i = 0; i < n; i++) {
        must_put(&f, bytes_of(bytes, lengths[i]), i + 1, bytes_of(&lengths[i], 4));
    }
    for (uint32_t i = 0; i < n; i++) {
        expect(&f, bytes_of(bytes, lengths[i]), i + 1, bytes_of(&lengths[i], 4));
    }
    assert_int_equal(stats_of(&f).keys, n);

    struct bytes too_long = bytes_of(bytes, STORE_KEY_MAX + 1);
    assert_int_equal(put(&f, too_long, 1, text("x"), true), HK_ERR_TOOBIG);
    expect_absent(&f, too_long);
    for (uint32_t i = 0; i < n; i++) {
        drop(&f, bytes_of(bytes, lengths[i]));
    }
    assert_int_equal(stats_of(&f).keys, 0);
    free(bytes);
    fixture_close(&f);
}

static void test_values_may_be_any_bytes_up_to_the_maximum(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    uint8_t *bytes = pattern(STORE_VALUE_MAX + 1, 9);
    static const uint32_t lengths[] = {0,     1,     7,     8,     1016,           1023,
                                       1024,  1025,  32751, 32752, 32753,          65536,
                                       99999, 32768, 70000, 0,     STORE_VALUE_MAX};
    for (uint32_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        must_put(&f, text("key"), i + 1, bytes_of(bytes + 1, lengths[i]));
        expect(&f, text("key"), i + 1, bytes_of(bytes + 1, lengths[i]));
        settle(&f);
    }
    struct bytes too_big = bytes_of(bytes, STORE_VALUE_MAX + 1);
    assert_int_equal(put(&f, text("key"), 99, too_big, true), HK_ERR_TOOBIG);
    assert_int_equal(get(&f, text("key")).meta.ts, 17);
    assert_int_equal(put(&f, text("other"), 99, too_big, true), HK_ERR_TOOBIG);
    expect_absent(&f, text("other"));
    free(bytes);
    fixture_close(&f);
}

static void test_configured_maximum_of_values(void **state)
{
    (void)state;
    struct fixture f;
    struct store_config config = {.value_bytes_max = 10};
    fixture_open(&f, &config);
    must_put(&f, text("key"), 1, text("0123456789"));
    assert_int_equal(put(&f, text("key"), 2, text("0123456789x"), true), HK_ERR_TOOBIG);
    expect(&f, text("key"), 1, text("0123456789"));
    fixture_close(&f);
}

static void test_read_into_a_small_buffer(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    uint8_t *bytes = pattern(5000, 1);
    must_put(&f, text("inline"), 3, bytes_of(bytes, 33));
    must_put(&f, text("blob"), 4, bytes_of(bytes, 5000));
    struct store_value v;
    uint64_t hash = store_hash(f.store, text("inline"));
    assert_int_equal(store_read(f.store, f.thread, text("inline"), hash, f.buffer, 32, &v),
                     HK_ERR_TOOBIG);
    assert_true(v.found);
    assert_int_equal(v.value.n, 33);
    assert_int_equal(v.meta.ts, 3);
    assert_int_equal(store_read(f.store, f.thread, text("inline"), hash, f.buffer, 40, &v), HK_OK);
    assert_true(bytes_equal(v.value, bytes_of(bytes, 33)));
    assert_ptr_equal(v.value.at, f.buffer);

    /* What is out of line needs no buffer: it is returned in place. */
    hash = store_hash(f.store, text("blob"));
    assert_int_equal(store_read(f.store, f.thread, text("blob"), hash, NULL, 0, &v), HK_OK);
    assert_true(bytes_equal(v.value, bytes_of(bytes, 5000)));
    free(bytes);
    fixture_close(&f);
}

static void test_metadata_alone(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    must_put(&f, text("key"), 1, text("value"));
    struct key_meta meta = {.ts = UINT64_MAX,
                            .owner = 0xdeadbeef,
                            .state = 0xab,
                            .flags = KEY_TOMBSTONE | KEY_ENGINE_3,
                            .aux = 0x1234};
    struct store_ref ref;
    store_lock(f.store, f.thread, text("key"), store_hash(f.store, text("key")), &ref);
    store_set_meta(&ref, &meta);
    struct key_meta now = store_meta(&ref);
    assert_memory_equal(&now, &meta, sizeof(meta));
    assert_true(bytes_equal(store_value_of(&ref, f.buffer, sizeof(f.buffer)), text("value")));
    store_unlock(&ref);
    struct store_value v = get(&f, text("key"));
    assert_memory_equal(&v.meta, &meta, sizeof(meta));
    assert_true(bytes_equal(v.value, text("value")));
    fixture_close(&f);
}

static void test_a_value_may_be_set_from_itself(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    uint8_t *bytes = pattern(3000, 1);
    struct key_meta meta = stamp(2);
    struct store_ref ref;
    /* Every new length: the same class, a smaller one, from a blob to inline and to a blob. */
    static const uint32_t from[] = {64, 1000, 3000, 3000}, offset[] = {3, 1, 5, 1},
                          to[] = {57, 40, 900, 2000};
    for (uint32_t i = 0; i < 4; i++) {
        must_put(&f, text("key"), 1, bytes_of(bytes, from[i]));
        store_lock(f.store, f.thread, text("key"), store_hash(f.store, text("key")), &ref);
        struct bytes value = store_value_of(&ref, f.buffer, sizeof(f.buffer));
        assert_int_equal(store_set(&ref, &meta, bytes_of(value.at + offset[i], to[i]), false),
                         HK_OK);
        store_unlock(&ref);
        expect(&f, text("key"), 2, bytes_of(bytes + offset[i], to[i]));
    }
    free(bytes);
    fixture_close(&f);
}

static void test_several_steps_under_one_lock(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    struct key_meta meta = stamp(1);
    struct store_ref ref;
    store_lock(f.store, f.thread, text("key"), store_hash(f.store, text("key")), &ref);
    assert_null(ref.object);
    store_remove(&ref);
    assert_int_equal(store_set(&ref, &meta, text("one"), false), HK_OK);
    assert_non_null(ref.object);
    assert_int_equal(store_set(&ref, &meta, text("a longer one, replaced"), false), HK_OK);
    assert_int_equal(store_set(&ref, &meta, text("in a smaller"), false), HK_OK);
    assert_true(
        bytes_equal(store_value_of(&ref, f.buffer, sizeof(f.buffer)), text("in a smaller")));
    store_remove(&ref);
    assert_null(ref.object);
    assert_int_equal(store_set(&ref, &meta, text("back"), false), HK_OK);
    store_unlock(&ref);
    expect(&f, text("key"), 1, text("back"));
    fixture_close(&f);
}

static void test_batch(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    static uint64_t space[STORE_BATCH_MAX][STORE_INLINE_MAX / 8];
    uint8_t *bytes = pattern(4000, 3);
    uint64_t names[STORE_BATCH_MAX], hashes[STORE_BATCH_MAX];
    struct bytes keys[STORE_BATCH_MAX];
    void *buffers[STORE_BATCH_MAX];
    struct store_value values[STORE_BATCH_MAX];
    int errs[STORE_BATCH_MAX];
    for (uint32_t n = 0; n <= STORE_BATCH_MAX; n++) {
        for (uint32_t i = 0; i < n; i++) {
            names[i] = i % 50;
            keys[i] = bytes_of(&names[i], 8);
            hashes[i] = store_hash(f.store, keys[i]);
            buffers[i] = space[i];
            uint32_t length = i % 50 % 7 == 0 ? 4000 : i % 50 * 20;
            if (i % 50 % 3 != 0) {
                must_put(&f, keys[i], i % 50, bytes_of(bytes, length));
            }
        }
        store_read_batch(f.store, f.thread, n, keys, hashes, buffers, 512, values, errs);
        for (uint32_t i = 0; i < n; i++) {
            uint32_t name = i % 50, length = name % 7 == 0 ? 4000 : name * 20;
            assert_int_equal(values[i].found, name % 3 != 0);
            bool too_big = values[i].found && length > 512 && length <= STORE_INLINE_MAX;
            assert_int_equal(errs[i], too_big ? HK_ERR_TOOBIG : HK_OK);
            if (values[i].found) {
                assert_int_equal(values[i].meta.ts, name);
                assert_int_equal(values[i].value.n, length);
                assert_true(too_big || bytes_equal(values[i].value, bytes_of(bytes, length)));
            }
        }
    }
    free(bytes);
    fixture_close(&f);
}

static void test_prefetching_changes_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    must_put(&f, text("key"), 1, text("value"));
    for (uint64_t hash = 1; hash != 0; hash <<= 1) {
        store_prefetch_bucket(f.store, hash);
        store_prefetch_object(f.store, hash);
    }
    store_prefetch_object(f.store, store_hash(f.store, text("key")));
    expect(&f, text("key"), 1, text("value"));
    fixture_close(&f);
}

/* ---- Reclamation ---- */

static void test_a_view_stays_good_until_its_thread_is_quiescent(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    uint8_t *bytes = pattern(100009, 1);
    static const uint32_t lengths[] = {2000, 100000};
    for (uint32_t i = 0; i < 2; i++) {
        struct bytes key = text("key");
        f.thread = f.threads[0];
        must_put(&f, key, 1, bytes_of(bytes, lengths[i]));
        settle(&f);
        struct store_value view = get(&f, key);
        /* Another thread replaces, removes and writes again, and is quiescent all the time. */
        f.thread = f.threads[1];
        for (uint32_t j = 0; j < 100; j++) {
            must_put(&f, key, 2, bytes_of(bytes + 9, lengths[i]));
            drop(&f, key);
            store_quiescent(f.threads[1]);
            store_quiescent(f.threads[2]);
        }
        assert_true(bytes_equal(view.value, bytes_of(bytes, lengths[i])));
        assert_true(stats_of(&f).retired_bytes >= lengths[i]);
        settle(&f);
        assert_int_equal(stats_of(&f).retired_bytes, 0);
    }
    free(bytes);
    fixture_close(&f);
}

static void *hold(struct fixture *f, struct bytes key, struct bytes *value_out)
{
    struct store_ref ref;
    store_lock(f->store, f->thread, key, store_hash(f->store, key), &ref);
    *value_out = store_value_of(&ref, NULL, 0);
    void *held = store_hold(&ref);
    store_unlock(&ref);
    return held;
}

static void test_a_held_value_outlives_key_and_store(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    uint8_t *bytes = pattern(200009, 1);
    struct bytes large = bytes_of(bytes, 200000), small = bytes_of(bytes, 40), at;
    must_put(&f, text("small"), 1, small);
    assert_null(hold(&f, text("small"), &at));
    must_put(&f, text("cell"), 1, bytes_of(bytes, 8000));
    assert_null(hold(&f, text("cell"), &at));

    void *held[4];
    struct bytes values[4];
    must_put(&f, text("replaced"), 1, large);
    held[0] = hold(&f, text("replaced"), &values[0]);
    held[1] = hold(&f, text("replaced"), &values[1]); /* twice */
    must_put(&f, text("replaced"), 2, bytes_of(bytes + 9, 200000));
    must_put(&f, text("removed"), 1, large);
    held[2] = hold(&f, text("removed"), &values[2]);
    drop(&f, text("removed"));
    must_put(&f, text("kept"), 1, large);
    held[3] = hold(&f, text("kept"), &values[3]);
    settle(&f);
    assert_int_equal(stats_of(&f).retired_bytes, 0);
    store_release(held[1]);
    expect(&f, text("replaced"), 2, bytes_of(bytes + 9, 200000));
    fixture_close(&f);
    for (uint32_t i = 0; i < 4; i++) {
        assert_non_null(held[i]);
        if (i != 1) {
            assert_true(bytes_equal(values[i], large));
            store_release(held[i]);
        }
    }
    free(bytes);
}

static void test_a_thread_offline_delays_nobody(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    store_offline(f.threads[1]);
    store_offline(f.threads[2]);
    store_offline(f.threads[2]);
    for (uint32_t i = 0; i < 100; i++) {
        must_put(&f, text("key"), i, bytes_of(f.buffer, i));
        store_quiescent(f.threads[0]);
        assert_int_equal(stats_of(&f).retired_bytes, 0);
    }
    store_online(f.threads[1]);
    must_put(&f, text("key"), 100, bytes_of(f.buffer, 200));
    store_quiescent(f.threads[0]);
    store_quiescent(f.threads[0]);
    assert_true(stats_of(&f).retired_bytes > 0);
    store_online(f.threads[2]);
    store_online(f.threads[2]);
    settle(&f);
    assert_int_equal(stats_of(&f).retired_bytes, 0);

    /* What it retired is reclaimed while it sleeps. */
    f.thread = f.threads[1];
    must_put(&f, text("key"), 101, bytes_of(f.buffer, 300));
    store_offline(f.threads[1]);
    assert_true(stats_of(&f).retired_bytes > 0);
    store_quiescent(f.threads[0]);
    store_quiescent(f.threads[2]);
    store_quiescent(f.threads[0]);
    assert_int_equal(stats_of(&f).retired_bytes, 0);
    store_online(f.threads[1]);
    fixture_close(&f);
}

static void test_what_a_thread_leaves_behind_is_reclaimed_by_others(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    struct store_thread *gone;
    assert_int_equal(store_thread_register(f.store, &gone), HK_OK);
    f.thread = gone;
    for (uint32_t i = 0; i < 100; i++) {
        must_put(&f, text("key"), i, bytes_of(f.buffer, i));
    }
    assert_true(stats_of(&f).retired_bytes > 0);
    store_thread_unregister(gone);
    assert_true(stats_of(&f).retired_bytes > 0);
    f.thread = f.threads[0];
    settle(&f);
    assert_int_equal(stats_of(&f).retired_bytes, 0);
    assert_int_equal(stats_of(&f).keys, 1);
    fixture_close(&f);
}

/* ---- Statistics ---- */

static void test_statistics_count_keys_and_tombstones(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &plain);
    struct key_meta dead = {.ts = 9, .flags = KEY_TOMBSTONE}, live = stamp(10);
    struct store_stats empty = stats_of(&f);
    assert_int_equal(empty.keys, 0);
    assert_int_equal(empty.bytes_used, empty.buckets * 64);
    for (uint32_t i = 0; i < 30; i++) {
        /* Counted by one thread and taken away by another. */
        f.thread = f.threads[i % FIXTURE_THREADS];
        struct store_ref ref;
        struct bytes key = bytes_of(&i, 4);
        store_lock(f.store, f.thread, key, store_hash(f.store, key), &ref);
        assert_int_equal(store_set(&ref, &dead, text(""), false), HK_OK);
        store_unlock(&ref);
    }
    assert_int_equal(stats_of(&f).keys, 30);
    assert_int_equal(stats_of(&f).tombstones, 30);
    assert_int_equal(stats_of(&f).bytes_used, empty.bytes_used + 30 * 32);
    f.thread = f.threads[0];
    for (uint32_t i = 0; i < 30; i++) {
        struct store_ref ref;
        struct bytes key = bytes_of(&i, 4);
        store_lock(f.store, f.thread, key, store_hash(f.store, key), &ref);
        if (i % 3 == 0) {
            store_remove(&ref);
        } else if (i % 3 == 1) {
            store_set_meta(&ref, &live);
        } else {
            assert_int_equal(store_set(&ref, &live, text("value"), false), HK_OK);
        }
        store_unlock(&ref);
    }
    settle(&f);
    struct store_stats end = stats_of(&f);
    assert_int_equal(end.keys, 20);
    assert_int_equal(end.tombstones, 0);
    assert_int_equal(end.bytes_used, empty.bytes_used + 10 * 32 + 10 * 40);
    assert_true(end.bytes_mapped >= end.bytes_used);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_object_of_8_and_32_bytes_is_one_line),
        cmocka_unit_test(test_create_refuses_an_index_that_cannot_be),
        cmocka_unit_test(test_threads_are_bounded_and_their_places_used_again),
        cmocka_unit_test(test_looks_are_counted),
        cmocka_unit_test(test_hash_is_the_stores_own),
        cmocka_unit_test(test_read_answers_what_was_set),
        cmocka_unit_test(test_keys_may_be_any_bytes_up_to_the_maximum),
        cmocka_unit_test(test_values_may_be_any_bytes_up_to_the_maximum),
        cmocka_unit_test(test_configured_maximum_of_values),
        cmocka_unit_test(test_read_into_a_small_buffer),
        cmocka_unit_test(test_metadata_alone),
        cmocka_unit_test(test_a_value_may_be_set_from_itself),
        cmocka_unit_test(test_several_steps_under_one_lock),
        cmocka_unit_test(test_batch),
        cmocka_unit_test(test_prefetching_changes_nothing),
        cmocka_unit_test(test_a_view_stays_good_until_its_thread_is_quiescent),
        cmocka_unit_test(test_a_held_value_outlives_key_and_store),
        cmocka_unit_test(test_a_thread_offline_delays_nobody),
        cmocka_unit_test(test_what_a_thread_leaves_behind_is_reclaimed_by_others),
        cmocka_unit_test(test_statistics_count_keys_and_tombstones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
