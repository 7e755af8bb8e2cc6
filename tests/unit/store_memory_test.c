/* The account and its limits, the slabs below it, and that operations in steady state ask neither
 * malloc nor the operating system for memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/random.h"
#include "store/memory.h"
#include "store/slab.h"
#include "store/store.h"
#include "support/store_fixture.h"

/* ---- Every request for memory is counted, where no sanitizer has its own ---- */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define COUNTS_REQUESTS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define COUNTS_REQUESTS 0
#endif
#endif
#ifndef COUNTS_REQUESTS
#define COUNTS_REQUESTS 1
#endif

static uint64_t requests;

#if COUNTS_REQUESTS
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

void *malloc(size_t bytes)
{
    requests++;
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    requests++;
    return __libc_calloc(n, bytes);
}

void *realloc(void *at, size_t bytes)
{
    requests++;
    return __libc_realloc(at, bytes);
}

void *aligned_alloc(size_t align, size_t bytes)
{
    requests++;
    return __libc_memalign(align, bytes);
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    requests++;
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}
#endif

/* ---- Size classes ---- */

static void test_classes_waste_little(void **state)
{
    (void)state;
    for (uint32_t n = 1; n <= SLAB_CELL_MAX; n++) {
        uint32_t class = slab_class_of(n), bytes = slab_class_bytes(class);
        assert_true(class < SLAB_CLASSES);
        assert_true(bytes >= n && bytes % 8 == 0);
        assert_true(n <= 256 ? bytes < n + 8 : (bytes - n) * 8 < n);
        assert_true(class == 0 || slab_class_bytes(class - 1) < n);
    }
    assert_int_equal(slab_class_of(SLAB_CELL_MAX), SLAB_CLASSES - 1);
    assert_int_equal(slab_class_bytes(slab_class_of(64)), 64);
}

static void test_large_allocations_are_charged_with_their_header(void **state)
{
    (void)state;
    assert_int_equal(memory_charge_of(0), 8);
    assert_int_equal(memory_charge_of(SLAB_CELL_MAX), SLAB_CELL_MAX);
    assert_int_equal(memory_charge_of(SLAB_CELL_MAX + 1), SLAB_CELL_MAX + 48);
    assert_int_equal(memory_charge_of(1 << 20), (1 << 20) + 32);
}

/* ---- Steady state ---- */

/* Values of all kinds that are not malloc's, over the same keys again and again. */
static void churn(struct fixture *f, struct random *r, uint32_t operations)
{
    static uint8_t value[20000];
    for (uint32_t i = 0; i < operations; i++) {
        uint64_t name = random_below(r, 2000);
        struct bytes key = bytes_of(&name, 8);
        uint64_t what = random_below(r, 10);
        f->thread = f->threads[random_below(r, FIXTURE_THREADS)];
        if (what < 6) {
            uint32_t n = what == 0 ? 1100 + (uint32_t)name * 4 : 10 + (uint32_t)name % 300 * 3;
            must_put(f, key, i, bytes_of(value, what < 3 ? n : n / 2));
        } else if (what < 7) {
            drop(f, key);
        } else {
            (void)get(f, key);
        }
        if (i % 16 == 0) {
            for (uint32_t j = 0; j < FIXTURE_THREADS; j++) {
                store_quiescent(f->threads[j]);
            }
        }
    }
}

static void test_steady_state_asks_for_no_memory(void **state)
{
    (void)state;
    if (!COUNTS_REQUESTS) {
        skip();
    }
    struct fixture f;
    struct random r;
    struct store_config config = {.seed = 3};
    random_init(&r, 11);
    fixture_open(&f, &config);
    churn(&f, &r, 100000);
    uint64_t before = requests, mapped = stats_of(&f).bytes_mapped;
    churn(&f, &r, 100000);
    assert_int_equal(requests, before);
    /* Free spans found their use among the classes; few new ones were cut. */
    assert_true(stats_of(&f).bytes_mapped <= mapped + mapped / 10);
    fixture_close(&f);
}

static void test_counting_works(void **state)
{
    (void)state;
    if (!COUNTS_REQUESTS) {
        skip();
    }
    struct fixture f;
    struct store_config config = {.seed = 3};
    uint64_t before = requests;
    fixture_open(&f, &config);
    assert_true(requests > before);
    before = requests;
    static uint8_t value[100000];
    must_put(&f, text("large"), 1, bytes_of(value, sizeof(value)));
    assert_true(requests > before);
    fixture_close(&f);
}

static void test_what_one_thread_frees_another_uses(void **state)
{
    (void)state;
    struct fixture f;
    struct store_config config = {.seed = 3};
    fixture_open(&f, &config);
    uint8_t value[200] = {0};
    uint64_t mapped = 0;
    for (uint32_t round = 0; round < 50; round++) {
        f.thread = f.threads[0];
        for (uint64_t i = 0; i < 5000; i++) {
            must_put(&f, bytes_of(&i, 8), i, bytes_of(value, sizeof(value)));
        }
        f.thread = f.threads[1];
        for (uint64_t i = 0; i < 5000; i++) {
            drop(&f, bytes_of(&i, 8));
            store_quiescent(f.threads[1]);
        }
        settle(&f);
        mapped = round == 1 ? stats_of(&f).bytes_mapped : mapped;
    }
    assert_int_equal(stats_of(&f).bytes_mapped, mapped);
    fixture_close(&f);
}

static void test_memory_of_one_class_serves_another(void **state)
{
    (void)state;
    struct fixture f;
    struct store_config config = {.seed = 3};
    fixture_open(&f, &config);
    static uint8_t value[1000];
    uint64_t mapped = 0;
    for (uint32_t n = 8; n <= sizeof(value); n *= 5) {
        uint64_t keys = 8000000 / (n + 32);
        for (uint64_t i = 0; i < keys; i++) {
            must_put(&f, bytes_of(&i, 8), i, bytes_of(value, n));
        }
        for (uint64_t i = 0; i < keys; i++) {
            drop(&f, bytes_of(&i, 8));
        }
        for (uint32_t i = 0; i < keys / 100; i++) {
            settle(&f);
        }
        assert_int_equal(stats_of(&f).retired_bytes, 0);
        mapped = mapped == 0 ? stats_of(&f).bytes_mapped : mapped;
    }
    /* Four times as much without. */
    assert_true(stats_of(&f).bytes_mapped < mapped + mapped / 2);
    fixture_close(&f);
}

/* ---- The limit ---- */

#define LIMIT (4u * 1024u * 1024u)
static const struct store_config limited = {.memory_max = LIMIT, .seed = 3};

/* Inserts until it is refused; the number of keys that are in. */
static uint64_t insert_until_refused(struct fixture *f, uint64_t from, uint32_t bytes, bool force)
{
    static uint8_t value[5000];
    for (uint64_t i = from;; i++) {
        int err = put(f, bytes_of(&i, 8), i, bytes_of(value, bytes), force);
        if (err != HK_OK) {
            assert_int_equal(err, HK_ERR_NOMEM);
            expect_absent(f, bytes_of(&i, 8));
            return i;
        }
        assert_true(i - from < LIMIT / 32);
    }
}

static void test_inserts_stop_at_the_limit(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 32, 500, 1500, 5000};
    for (uint32_t i = 0; i < 5; i++) {
        struct fixture f;
        fixture_open(&f, &limited);
        uint64_t n = insert_until_refused(&f, 0, sizes[i], false);
        struct store_stats full = stats_of(&f);
        assert_int_equal(full.keys, n);
        assert_true(full.bytes_used <= LIMIT);
        assert_true(full.bytes_used > LIMIT - LIMIT / 100 - 5000);
        /* What was refused took nothing. */
        static const uint8_t more[6000];
        assert_int_equal(put(&f, text("one more"), 1, bytes_of(more, sizeof(more)), false),
                         HK_ERR_NOMEM);
        assert_int_equal(stats_of(&f).bytes_used, full.bytes_used);
        fixture_close(&f);
    }
}

static void test_full_store_takes_what_does_not_grow(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &limited);
    uint8_t value[1500] = {7};
    uint64_t n = insert_until_refused(&f, 0, 500, false);
    for (uint64_t i = 0; i < n; i++) {
        /* In place, smaller, and refused because larger, leaving the old one. */
        must_put(&f, bytes_of(&i, 8), 1, bytes_of(value, 500));
        must_put(&f, bytes_of(&i, 8), 2, bytes_of(value, 400));
        settle(&f);
    }
    n = insert_until_refused(&f, n, 400, false);
    assert_int_equal(put(&f, bytes_of(&(uint64_t){0}, 8), 3, bytes_of(value, 1000), false),
                     HK_ERR_NOMEM);
    assert_int_equal(put(&f, bytes_of(&(uint64_t){0}, 8), 3, bytes_of(value, 1500), false),
                     HK_ERR_NOMEM);
    expect(&f, bytes_of(&(uint64_t){0}, 8), 2, bytes_of(value, 400));
    fixture_close(&f);
}

static void test_full_store_replaces_blobs_of_the_same_size(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &limited);
    static uint8_t value[2000];
    uint64_t n = insert_until_refused(&f, 0, 2000, false);
    for (uint64_t i = 0; i < n; i++) {
        must_put(&f, bytes_of(&i, 8), 5, bytes_of(value, 2000));
        settle(&f);
    }
    assert_true(stats_of(&f).bytes_used <= LIMIT);
    fixture_close(&f);
}

static void test_force_has_a_headroom_that_ends_too(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &limited);
    uint64_t n = insert_until_refused(&f, 0, 100, false);
    uint64_t forced = insert_until_refused(&f, n, 100, true);
    struct store_stats full = stats_of(&f);
    uint64_t end = LIMIT + LIMIT / 10 + 1024 * 1024;
    assert_true(forced > n);
    assert_true(full.bytes_used <= end && full.bytes_used > end - end / 100);
    assert_null(store_alloc(f.thread, 200, true));
    assert_int_equal(put(&f, bytes_of(&forced, 8), 1, text("x"), false), HK_ERR_NOMEM);

    /* Above the limit, what is freed is not there for others before all is below the limit. */
    drop(&f, bytes_of(&n, 8));
    settle(&f);
    assert_int_equal(put(&f, bytes_of(&n, 8), 1, text("x"), false), HK_ERR_NOMEM);
    for (uint64_t i = 0; i < forced; i++) {
        drop(&f, bytes_of(&i, 8));
    }
    for (uint32_t i = 0; i < 1000; i++) {
        settle(&f);
    }
    assert_int_equal(stats_of(&f).bytes_used, stats_of(&f).buckets * 64);
    must_put(&f, bytes_of(&n, 8), 1, text("x"));
    fixture_close(&f);
}

static void test_room_that_was_freed_is_used_again(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &limited);
    uint64_t n = insert_until_refused(&f, 0, 50, false);
    for (uint32_t round = 0; round < 3; round++) {
        f.thread = f.threads[round % FIXTURE_THREADS];
        for (uint64_t i = 0; i < n; i += 2) {
            drop(&f, bytes_of(&i, 8));
        }
        settle(&f);
        uint64_t before = stats_of(&f).keys;
        f.thread = f.threads[(round + 1) % FIXTURE_THREADS];
        uint64_t next = insert_until_refused(&f, n * (round + 2), 50, false);
        /* All but what lies in grants of other threads. */
        assert_true(next - n * (round + 2) > n / 2 - n / 20);
        for (uint64_t i = n * (round + 2); i < next; i++) {
            drop(&f, bytes_of(&i, 8));
        }
        settle(&f);
        for (uint64_t i = 0; i < n; i += 2) {
            assert_int_equal(put(&f, bytes_of(&i, 8), 1, bytes_of(f.buffer, 50), true), HK_OK);
        }
        settle(&f);
        assert_int_equal(stats_of(&f).keys, before + (n + 1) / 2);
    }
    fixture_close(&f);
}

/* A write that gets the first thing that it needs, and not the second, gives the first back. */
static void test_writes_fail_whole(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &limited);
    static uint8_t value[2000], long_key[500];
    (void)insert_until_refused(&f, 0, 0, false);
    drop(&f, bytes_of(&(uint64_t){5}, 8));
    settle(&f);
    /* There is room for one object, but not for an overflow bucket: that is refused to keys whose
     * bucket is full, a few in a hundred. */
    struct store_stats before = stats_of(&f);
    uint64_t key = (uint64_t)1 << 40;
    while (put(&f, bytes_of(&key, 8), 1, bytes_of(value, 0), false) == HK_OK) {
        drop(&f, bytes_of(&key, 8));
        settle(&f);
        assert_int_equal(stats_of(&f).bytes_used, before.bytes_used);
        key++;
        assert_true(key < ((uint64_t)1 << 40) + 10000);
    }
    expect_absent(&f, bytes_of(&key, 8));
    assert_int_equal(stats_of(&f).bytes_used, before.bytes_used);
    assert_int_equal(stats_of(&f).keys, before.keys);

    /* The same with a blob and an object: there is room for the blob alone. */
    for (uint64_t i = 0; i < 70; i++) {
        drop(&f, bytes_of(&i, 8));
    }
    settle(&f);
    before = stats_of(&f);
    assert_int_equal(put(&f, bytes_of(long_key, 500), 1, bytes_of(value, 2000), false),
                     HK_ERR_NOMEM);
    expect_absent(&f, bytes_of(long_key, 500));
    assert_int_equal(stats_of(&f).bytes_used, before.bytes_used);
    fixture_close(&f);
}

static void test_an_index_alone_may_be_over_the_limit(void **state)
{
    (void)state;
    struct fixture f;
    struct store_config config = {.memory_max = 4096, .keys_expected = 100000};
    fixture_open(&f, &config);
    assert_int_equal(put(&f, text("key"), 1, text("value"), false), HK_ERR_NOMEM);
    expect_absent(&f, text("key"));
    fixture_close(&f);
}

/* ---- Scratch memory ---- */

static void test_scratch_memory(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, &limited);
    uint64_t before = stats_of(&f).bytes_used;
    static const size_t sizes[] = {0, 1, 24, 1000, SLAB_CELL_MAX, SLAB_CELL_MAX + 1, 1000000};
    void *at[7];
    for (uint32_t i = 0; i < 7; i++) {
        at[i] = store_alloc(f.threads[0], sizes[i], true);
        assert_non_null(at[i]);
        assert_int_equal((uintptr_t)at[i] % 8, 0);
        memset(at[i], 0xff, sizes[i]);
    }
    assert_true(stats_of(&f).bytes_used >= before + 1000000 + 2 * SLAB_CELL_MAX);
    assert_null(store_alloc(f.threads[0], 8u << 20, true));
    for (uint32_t i = 0; i < 7; i++) {
        store_free(f.threads[1], at[i], sizes[i]);
    }
    store_free(f.threads[1], NULL, 100);
    assert_int_equal(stats_of(&f).bytes_used, before);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes_waste_little),
        cmocka_unit_test(test_large_allocations_are_charged_with_their_header),
        cmocka_unit_test(test_counting_works),
        cmocka_unit_test(test_steady_state_asks_for_no_memory),
        cmocka_unit_test(test_what_one_thread_frees_another_uses),
        cmocka_unit_test(test_memory_of_one_class_serves_another),
        cmocka_unit_test(test_inserts_stop_at_the_limit),
        cmocka_unit_test(test_full_store_takes_what_does_not_grow),
        cmocka_unit_test(test_full_store_replaces_blobs_of_the_same_size),
        cmocka_unit_test(test_force_has_a_headroom_that_ends_too),
        cmocka_unit_test(test_room_that_was_freed_is_used_again),
        cmocka_unit_test(test_writes_fail_whole),
        cmocka_unit_test(test_an_index_alone_may_be_over_the_limit),
        cmocka_unit_test(test_scratch_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
