/* The index below the store: where hashes go as it grows, and long chains of keys that all fall
 * into one bucket, as they are filled, packed and split. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/random.h"
#include "store/index.h"
#include "store/store.h"
#include "support/store_fixture.h"

static void test_numbers_cover_all_buckets_and_splits_move_one_way(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 1);
    for (uint64_t n = 64; n < 600; n++) {
        uint8_t hit[600] = {0};
        for (uint32_t i = 0; i < 20000; i++) {
            uint64_t hash = random_next(&r);
            uint64_t number = index_number(hash, n), next = index_number(hash, n + 1);
            assert_true(number < n);
            hit[number] = 1;
            /* Growing by one bucket moves hashes to the new one only, and from one only. */
            uint64_t power = (uint64_t)1 << (63 - __builtin_clzll(n));
            assert_true(next == number || (next == n && number == n - power));
            /* The depth is how many bits of the hash the number is made of. */
            uint32_t depth = index_depth(hash, n);
            assert_int_equal(number, hash & (((uint64_t)1 << depth) - 1));
        }
        uint32_t hits = 0;
        for (uint64_t i = 0; i < n; i++) {
            hits += hit[i];
        }
        assert_int_equal(hits, n);
    }
    assert_int_equal(index_number(UINT64_MAX, 1), 0);
}

static void test_entries_keep_tag_and_address(void **state)
{
    (void)state;
    for (uint64_t address = 8; address < (uint64_t)1 << 48; address *= 3) {
        const struct object *o = (const struct object *)(uintptr_t)(address & ~(uint64_t)7);
        uint64_t entry = entry_make(o, 0xabcd000000000000u);
        assert_ptr_equal(entry_object(entry), o);
        assert_int_equal(entry & ENTRY_TAG_MASK, index_tag(0xabcd000000000000u));
    }
    assert_int_not_equal(index_tag(0), 0);
}

#define CHAIN 60u

/* Keys whose hashes have the same lower 12 bits stay together through six doublings. */
static void find_colliding(const struct fixture *f, uint64_t *keys, uint32_t n)
{
    uint64_t found = 0;
    for (uint64_t i = 1; found < n; i++) {
        if ((store_hash(f->store, bytes_of(&i, 8)) & 0xfff) == 0xabc) {
            keys[found++] = i;
        }
    }
}

static void check(struct fixture *f, const uint64_t *keys, const uint8_t *there)
{
    for (uint32_t i = 0; i < CHAIN; i++) {
        if (there[i]) {
            expect(f, bytes_of(&keys[i], 8), keys[i], bytes_of(&keys[i], 8));
        } else {
            expect_absent(f, bytes_of(&keys[i], 8));
        }
    }
}

static void test_long_chains_fill_and_pack(void **state)
{
    (void)state;
    struct fixture f;
    struct random r;
    struct store_config config = {.seed = 77};
    uint64_t keys[CHAIN];
    uint8_t there[CHAIN] = {0};
    random_init(&r, 3);
    fixture_open(&f, &config);
    find_colliding(&f, keys, CHAIN);
    for (uint32_t step = 0, n = 0; step < 4000; step++) {
        uint32_t i = (uint32_t)random_below(&r, CHAIN);
        /* Sometimes it fills up, sometimes it empties. */
        bool fill = random_below(&r, 10) < (step / 500 % 2 == 0 ? 8u : 2u);
        if (fill && !there[i]) {
            must_put(&f, bytes_of(&keys[i], 8), keys[i], bytes_of(&keys[i], 8));
            there[i] = 1;
            n++;
        } else if (!fill && there[i]) {
            drop(&f, bytes_of(&keys[i], 8));
            there[i] = 0;
            n--;
        }
        /* Packed: as few overflow buckets as will do. */
        uint32_t expected = n <= BUCKET_ENTRIES ? 0 : (n - 1) / BUCKET_ENTRIES;
        assert_int_equal(stats_of(&f).overflow_buckets, expected);
        if (step % 20 == 0) {
            check(&f, keys, there);
            settle(&f);
        }
    }
    fixture_close(&f);
}

static void test_long_chains_move_whole_when_their_bucket_splits(void **state)
{
    (void)state;
    struct fixture f;
    struct store_config config = {.seed = 78};
    uint64_t keys[CHAIN];
    uint8_t there[CHAIN];
    memset(there, 1, sizeof(there));
    fixture_open(&f, &config);
    find_colliding(&f, keys, CHAIN);
    for (uint32_t i = 0; i < CHAIN; i++) {
        must_put(&f, bytes_of(&keys[i], 8), keys[i], bytes_of(&keys[i], 8));
    }
    /* Until the lower 13 bits count, and the chain is split in the middle. */
    uint64_t seen = 0;
    for (uint64_t i = 1; stats_of(&f).buckets <= 10000; i++) {
        uint64_t other = i << 40;
        must_put(&f, bytes_of(&other, 8), 1, bytes_of(&other, 8));
        if (stats_of(&f).buckets >= seen + 61) {
            seen = stats_of(&f).buckets;
            check(&f, keys, there);
        }
    }
    for (uint32_t i = 0; i < CHAIN; i++) {
        drop(&f, bytes_of(&keys[i], 8));
        there[i] = 0;
    }
    check(&f, keys, there);
    fixture_close(&f);
}

static void test_expected_keys_size_the_first_index(void **state)
{
    (void)state;
    static const uint64_t expected[] = {0, 1, 1000, 70000, 131072, 1000000, 3000001};
    for (uint32_t i = 0; i < 7; i++) {
        struct fixture f;
        struct store_config config = {.keys_expected = expected[i]};
        fixture_open(&f, &config);
        uint64_t buckets = stats_of(&f).buckets;
        assert_true(buckets >= expected[i] / 8 && buckets <= expected[i] + 64);
        for (uint64_t k = 0; k < 5000; k++) {
            must_put(&f, bytes_of(&k, 8), k, bytes_of(&k, 8));
        }
        for (uint64_t k = 0; k < 5000; k++) {
            expect(&f, bytes_of(&k, 8), k, bytes_of(&k, 8));
        }
        assert_true(stats_of(&f).buckets == buckets || buckets < 5000);
        fixture_close(&f);
    }
}

static void test_growth_past_the_first_segments(void **state)
{
    (void)state;
    struct fixture f;
    struct store_config config = {.seed = 5};
    fixture_open(&f, &config);
    uint64_t n = 0;
    while (stats_of(&f).buckets <= 2 * INDEX_CHUNK_BUCKETS + 100) {
        for (uint64_t end = n + 1000; n < end; n++) {
            must_put(&f, bytes_of(&n, 8), n, bytes_of(&n, 8));
        }
    }
    for (uint64_t i = 0; i < n; i++) {
        expect(&f, bytes_of(&i, 8), i, bytes_of(&i, 8));
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_cover_all_buckets_and_splits_move_one_way),
        cmocka_unit_test(test_entries_keep_tag_and_address),
        cmocka_unit_test(test_long_chains_fill_and_pack),
        cmocka_unit_test(test_long_chains_move_whole_when_their_bucket_splits),
        cmocka_unit_test(test_expected_keys_size_the_first_index),
        cmocka_unit_test(test_growth_past_the_first_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
