/* Records behind hints, by one thread: every size of key and value into every other, stale and
 * invented hints, cells that are used again, generations that run out, memory that cannot be had,
 * and all of it at random against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "store/record_state.h"
#include "store/tree.h"
#include "support/store_fixture.h"

struct shelf {
    struct fixture fixture;
    struct store_thread *thread;
    struct records *records;
    uint64_t buffer[STORE_INLINE_MAX / 8];
};

static const struct store_config plain = {.seed = 5};

static void shelf_open(struct shelf *s, const struct store_config *config)
{
    fixture_open(&s->fixture, config);
    s->thread = s->fixture.thread;
    assert_int_equal(records_create(s->fixture.store, s->thread, &s->records), HK_OK);
}

static uint64_t put_record(struct shelf *s, struct bytes key, struct bytes value)
{
    uint64_t hint = 0;
    assert_int_equal(record_create(s->records, s->thread, key, value, &hint), HK_OK);
    assert_int_not_equal(hint, 0);
    return hint;
}

static void expect_record(struct shelf *s, uint64_t hint, struct bytes key, struct bytes value)
{
    struct bytes found;
    assert_int_equal(
        record_read(s->records, s->thread, hint, key, s->buffer, sizeof(s->buffer), &found), HK_OK);
    assert_true(bytes_equal(found, value));
    assert_true(record_is(s->records, hint, key));
}

static void expect_stale(struct shelf *s, uint64_t hint, struct bytes key)
{
    struct bytes found;
    assert_int_equal(
        record_read(s->records, s->thread, hint, key, s->buffer, sizeof(s->buffer), &found),
        HK_ERR_NOTFOUND);
    assert_false(record_is(s->records, hint, key));
    assert_int_equal(record_write(s->records, s->thread, hint, key, text("x")), HK_ERR_NOTFOUND);
    assert_int_equal(record_free(s->records, s->thread, hint, key), HK_ERR_NOTFOUND);
}

static struct record_stats shelf_stats(const struct shelf *s)
{
    struct record_stats stats;
    records_stats(s->records, &stats);
    return stats;
}

static void test_answers(void **state)
{
    (void)state;
    struct shelf s;
    struct bytes found;
    shelf_open(&s, &plain);
    uint64_t a = put_record(&s, text("a"), text("one")), b = put_record(&s, text("b"), text("two"));
    expect_record(&s, a, text("a"), text("one"));
    expect_record(&s, b, text("b"), text("two"));
    /* The right hint, another key. */
    expect_stale(&s, a, text("b"));
    expect_stale(&s, a, text("aa"));
    expect_stale(&s, 0, text("a"));

    assert_int_equal(record_write(s.records, s.thread, a, text("a"), text("")), HK_OK);
    expect_record(&s, a, text("a"), text(""));
    assert_int_equal(record_write(s.records, s.thread, a, text("a"), text("0123456789")), HK_OK);
    assert_int_equal(record_read(s.records, s.thread, a, text("a"), s.buffer, 8, &found),
                     HK_ERR_TOOBIG);
    assert_int_equal(found.n, 10);
    assert_int_equal(record_free(s.records, s.thread, a, text("a")), HK_OK);
    expect_stale(&s, a, text("a"));
    expect_record(&s, b, text("b"), text("two"));
    fixture_close(&s.fixture);
}

static void test_bounds(void **state)
{
    (void)state;
    static uint8_t big[STORE_KEY_MAX + 1];
    struct shelf s;
    uint64_t hint;
    struct store_config config = {.seed = 5, .value_bytes_max = 5000};
    shelf_open(&s, &config);
    struct bytes none = bytes_of(NULL, 0), key = text("k"), over = bytes_of(big, 5001);
    assert_int_equal(record_create(s.records, s.thread, none, key, &hint), HK_ERR_INVALID);
    assert_int_equal(
        record_create(s.records, s.thread, bytes_of(big, STORE_KEY_MAX + 1), key, &hint),
        HK_ERR_TOOBIG);
    assert_int_equal(record_create(s.records, s.thread, key, over, &hint), HK_ERR_TOOBIG);
    hint = put_record(&s, key, bytes_of(big, 5000));
    assert_int_equal(record_write(s.records, s.thread, hint, key, over), HK_ERR_TOOBIG);
    expect_record(&s, hint, key, bytes_of(big, 5000));
    fixture_close(&s.fixture);
}

/* Every size of value becomes every other, behind keys of every size; then all blobs come back. */
static void test_sizes(void **state)
{
    (void)state;
    static const uint32_t keys[] = {1, 7, 8, 9, 127, 128, 129, 1000, STORE_KEY_MAX};
    static const uint32_t values[] = {0, 1, 8, 16, 17, 40, 41, 900, 1023, 1024, 1025, 200000};
    enum { KEYS = sizeof(keys) / sizeof(keys[0]), VALUES = sizeof(values) / sizeof(values[0]) };
    static uint8_t key_at[STORE_KEY_MAX], at[200000 + VALUES];
    struct shelf s;
    shelf_open(&s, &plain);
    uint64_t empty = stats_of(&s.fixture).bytes_used;
    for (uint32_t i = 0; i < sizeof(at); i++) {
        at[i] = (uint8_t)(i * 7 + i / 256);
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        memset(key_at, (int)k, keys[k]);
        struct bytes key = bytes_of(key_at, keys[k]);
        for (uint32_t i = 0; i < VALUES; i++) {
            uint64_t hint = put_record(&s, key, bytes_of(at, values[i]));
            expect_record(&s, hint, key, bytes_of(at, values[i]));
            for (uint32_t j = 0; j < VALUES; j++) {
                struct bytes value = bytes_of(at + j, values[j]);
                assert_int_equal(record_write(s.records, s.thread, hint, key, value), HK_OK);
                expect_record(&s, hint, key, value);
            }
            assert_int_equal(record_free(s.records, s.thread, hint, key), HK_OK);
            expect_stale(&s, hint, key);
            store_quiescent(s.thread);
        }
    }
    settle(&s.fixture);
    struct record_stats stats = shelf_stats(&s);
    assert_int_equal(stats.records, 0);
    /* What is left are the slabs and the page that numbers them. */
    assert_int_equal(stats_of(&s.fixture).bytes_used,
                     empty + stats.slabs * RECORD_SLAB_BYTES + sizeof(struct record_page));
    fixture_close(&s.fixture);
}

static void test_the_largest_value(void **state)
{
    (void)state;
    struct shelf s;
    shelf_open(&s, &plain);
    uint8_t *at = calloc(1, STORE_VALUE_MAX);
    assert_non_null(at);
    at[STORE_VALUE_MAX - 1] = 9;
    struct bytes value = bytes_of(at, STORE_VALUE_MAX);
    uint64_t hint = put_record(&s, text("k"), value);
    expect_record(&s, hint, text("k"), value);
    free(at);
    assert_int_equal(record_free(s.records, s.thread, hint, text("k")), HK_OK);
    fixture_close(&s.fixture);
}

/* A cell that is used again answers neither for its old key nor, by the old hint, for its new. */
static void test_cells_are_used_again(void **state)
{
    (void)state;
    struct shelf s;
    shelf_open(&s, &plain);
    uint64_t old = put_record(&s, text("first"), text("1"));
    _Atomic uint64_t *lock = record_lock(s.records, old);
    assert_int_equal(atomic_load(lock), 0);
    atomic_store(lock, 77);
    assert_int_equal(record_free(s.records, s.thread, old, text("first")), HK_OK);
    uint64_t now = put_record(&s, text("other"), text("2"));
    assert_int_equal(hint_slot(now), hint_slot(old));
    assert_int_equal(hint_generation(now), hint_generation(old) + 1);
    expect_stale(&s, old, text("first"));
    expect_stale(&s, old, text("other"));
    expect_stale(&s, now, text("first"));
    expect_record(&s, now, text("other"), text("2"));
    /* The lock is its users' alone. */
    assert_ptr_equal(record_lock(s.records, now), lock);
    assert_int_equal(atomic_load(lock), 77);
    /* The same key again, in another life. */
    assert_int_equal(record_free(s.records, s.thread, now, text("other")), HK_OK);
    uint64_t third = put_record(&s, text("first"), text("3"));
    expect_stale(&s, old, text("first"));
    expect_record(&s, third, text("first"), text("3"));
    fixture_close(&s.fixture);
}

static void test_generations_run_out(void **state)
{
    (void)state;
    struct shelf s;
    struct record_cell cell;
    shelf_open(&s, &plain);
    uint64_t first = put_record(&s, text("k"), text("1"));
    assert_int_equal(record_free(s.records, s.thread, first, text("k")), HK_OK);
    assert_true(record_cell_at(s.records, hint_slot(first), &cell));
    atomic_store(&cell.record->version, (uint64_t)(RECORD_GENERATION_MAX - 1)
                                            << VERSION_GENERATION_AT);
    uint64_t last = put_record(&s, text("k"), text("2"));
    assert_int_equal(hint_slot(last), hint_slot(first));
    assert_int_equal(hint_generation(last), RECORD_GENERATION_MAX);
    expect_record(&s, last, text("k"), text("2"));
    assert_int_equal(record_free(s.records, s.thread, last, text("k")), HK_OK);
    assert_int_equal(shelf_stats(&s).spent, 1);
    uint64_t next = put_record(&s, text("k"), text("3"));
    assert_int_not_equal(hint_slot(next), hint_slot(first));
    expect_stale(&s, first, text("k"));
    expect_stale(&s, last, text("k"));
    fixture_close(&s.fixture);
}

/* The count of a version comes round without touching what stands above it. */
static void test_counts_come_round(void **state)
{
    (void)state;
    struct shelf s;
    struct record_cell cell;
    shelf_open(&s, &plain);
    uint64_t hint = put_record(&s, text("k"), text("1"));
    assert_true(record_cell_at(s.records, hint_slot(hint), &cell));
    uint64_t version = atomic_load(&cell.record->version);
    atomic_store(&cell.record->version, version | (VERSION_LIVE - VERSION_STEP));
    assert_int_equal(record_write(s.records, s.thread, hint, text("k"), text("2")), HK_OK);
    expect_record(&s, hint, text("k"), text("2"));
    assert_int_equal(version_generation(atomic_load(&cell.record->version)), 1);
    fixture_close(&s.fixture);
}

/* Hints come from other machines: any of them answers for the right key, or not at all. */
static void test_invented_hints(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct shelf s;
    struct random r;
    static uint64_t hints[N];
    uint8_t at[8];
    random_init(&r, 21);
    shelf_open(&s, &plain);
    for (uint64_t i = 0; i < N; i++) {
        put_u64(at, i);
        hints[i] = put_record(&s, bytes_of(at, 8), bytes_of(s.buffer, (uint32_t)(i % 900)));
    }
    for (uint32_t i = 0; i < 300000; i++) {
        uint64_t which = random_below(&r, N), hint = random_next(&r);
        switch (i % 4) {
        case 0:
            hint >>= random_below(&r, 64);
            break;
        case 1:
            hint = hints[which] ^ (uint64_t)1 << random_below(&r, 64);
            break;
        case 2:
            hint = hints[random_below(&r, N)];
            break;
        default:
            break;
        }
        put_u64(at, which);
        struct bytes found;
        int err = record_read(s.records, s.thread, hint, bytes_of(at, 8), s.buffer,
                              sizeof(s.buffer), &found);
        assert_int_equal(err, hint == hints[which] ? HK_OK : HK_ERR_NOTFOUND);
        record_prefetch(s.records, hint, hint % 2 != 0);
        _Atomic uint64_t *lock = record_lock(s.records, hint);
        assert_true(lock == NULL || atomic_load(lock) == 0);
    }
    fixture_close(&s.fixture);
}

/* ---- Memory that cannot be had ---- */

static void allow(struct shelf *s, uint64_t bytes)
{
    struct memory *memory = &s->fixture.store->memory;
    struct memory_cache *cache = &s->thread->memory;
    atomic_fetch_sub(&memory->granted, cache->grant);
    cache->grant = 0;
    memory->max = bytes == UINT64_MAX ? UINT64_MAX : atomic_load(&memory->granted) + bytes;
    memory->grant_bytes = 0;
}

static void test_no_memory_at_every_point(void **state)
{
    (void)state;
    static uint8_t key_at[300], at[3000];
    struct shelf s;
    struct records *records;
    uint32_t refused = 0;
    shelf_open(&s, &plain);
    uint64_t empty = stats_of(&s.fixture).bytes_used, hint = 0, bytes;
    struct bytes key = bytes_of(key_at, 300), value = bytes_of(at, 3000);
    for (bytes = 0;; bytes += 8) {
        allow(&s, bytes);
        int err = record_create(s.records, s.thread, key, value, &hint);
        if (err == HK_OK) {
            break;
        }
        assert_int_equal(err, HK_ERR_NOMEM);
        assert_int_equal(shelf_stats(&s).records, 0);
        /* A page, once there, stays. */
        uint64_t used = stats_of(&s.fixture).bytes_used;
        assert_true(used == empty || used == empty + sizeof(struct record_page));
        refused++;
    }
    assert_true(refused > (RECORD_SLAB_BYTES + 3300u) / 8u);
    expect_record(&s, hint, key, value);
    at[0] = 1;
    for (bytes = 0;; bytes += 8) {
        allow(&s, bytes);
        int err = record_write(s.records, s.thread, hint, key, value);
        if (err == HK_OK) {
            break;
        }
        assert_int_equal(err, HK_ERR_NOMEM);
        at[0] = 0;
        expect_record(&s, hint, key, value);
        at[0] = 1;
    }
    assert_true(bytes >= 3000);
    expect_record(&s, hint, key, value);
    allow(&s, 0);
    /* What stays in the cell, and the end of a record, need none. */
    assert_int_equal(record_write(s.records, s.thread, hint, key, text("short")), HK_OK);
    expect_record(&s, hint, key, text("short"));
    assert_int_equal(record_free(s.records, s.thread, hint, key), HK_OK);
    for (bytes = 0;; bytes += 1024) {
        allow(&s, bytes);
        int err = records_create(s.fixture.store, s.thread, &records);
        if (err == HK_OK) {
            break;
        }
        assert_int_equal(err, HK_ERR_NOMEM);
    }
    assert_true(bytes > sizeof(struct record_page));
    allow(&s, UINT64_MAX);
    fixture_close(&s.fixture);
}

/* ---- At random ---- */

enum { SLOTS = 400, OPERATIONS = 60000, OLD = 1000 };

struct model {
    uint64_t hint; /* 0: none */
    uint8_t fill;
    uint32_t bytes;
};

static struct bytes model_key(uint8_t *at, uint32_t i)
{
    uint32_t n = i % 9 == 4 ? 200 : 8 + i % 2 * 4;
    memset(at, 0, n);
    put_u32(at, i);
    return bytes_of(at, n);
}

static struct bytes model_value(uint8_t *at, const struct model *m)
{
    memset(at, m->fill, m->bytes);
    return bytes_of(at, m->bytes);
}

/* The index leads from keys to hints; stale hints of all kinds are tried beside. */
static void test_with_the_index_at_random(void **state)
{
    (void)state;
    static struct model models[SLOTS];
    static uint64_t old_hint[OLD];
    static uint32_t old_key[OLD];
    static uint8_t key_at[200], at[4000];
    struct shelf s;
    struct tree *tree;
    struct random r;
    uint64_t seed = 4;
    random_init(&r, seed);
    print_message("seed %llu\n", (unsigned long long)seed);
    shelf_open(&s, &plain);
    assert_int_equal(tree_create(s.fixture.store, s.thread, &tree), HK_OK);
    for (uint32_t i = 0; i < OPERATIONS; i++) {
        uint32_t k = (uint32_t)random_below(&r, SLOTS), o = (uint32_t)random_below(&r, OLD);
        struct model *m = &models[k];
        struct bytes key = model_key(key_at, k);
        uint64_t hint = 0;
        int err = tree_find(tree, s.thread, key, &hint);
        assert_int_equal(err, m->hint == 0 ? HK_ERR_NOTFOUND : HK_OK);
        assert_int_equal(hint, m->hint);
        if (m->hint != 0) {
            expect_record(&s, hint, key, model_value(at, m));
        }
        bool change = random_chance(&r, 400000);
        if (m->hint == 0 || change) {
            m->fill = (uint8_t)i;
            m->bytes = (uint32_t)random_below(&r, i % 10 == 0 ? sizeof(at) : 60);
        }
        if (m->hint == 0) {
            m->hint = put_record(&s, key, model_value(at, m));
            assert_int_equal(tree_insert(tree, s.thread, key, m->hint, NULL), HK_OK);
        } else if (change) {
            struct bytes value = model_value(at, m);
            assert_int_equal(record_write(s.records, s.thread, m->hint, key, value), HK_OK);
        } else {
            assert_int_equal(tree_delete(tree, s.thread, key, NULL), HK_OK);
            assert_int_equal(record_free(s.records, s.thread, m->hint, key), HK_OK);
            old_hint[o] = m->hint;
            old_key[o] = k;
            m->hint = 0;
        }
        o = (uint32_t)random_below(&r, OLD);
        expect_stale(&s, old_hint[o], model_key(key_at, old_key[o]));
        store_quiescent(s.thread);
    }
    assert_null(tree_check(tree));
    tree_destroy(tree, s.thread);
    fixture_close(&s.fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_the_largest_value),
        cmocka_unit_test(test_cells_are_used_again),
        cmocka_unit_test(test_generations_run_out),
        cmocka_unit_test(test_counts_come_round),
        cmocka_unit_test(test_invented_hints),
        cmocka_unit_test(test_no_memory_at_every_point),
        cmocka_unit_test(test_with_the_index_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
