#include "hot/sketch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/hot_exact.h"

#define GUARD 64u

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

/* A sketch between guards, which must stay as they are. */
struct fenced {
    struct hot_sketch s;
    uint8_t *memory;
    size_t bytes;
};

static void fence(struct fenced *f, uint32_t counters, uint32_t key_bytes)
{
    f->bytes = hot_sketch_bytes(counters, key_bytes);
    f->memory = malloc(f->bytes + 2 * GUARD);
    assert_non_null(f->memory);
    memset(f->memory, 0xa5, f->bytes + 2 * GUARD);
    hot_sketch_init(&f->s, f->memory + GUARD, counters, key_bytes);
}

static void unfence(struct fenced *f)
{
    for (uint32_t i = 0; i < GUARD; i++) {
        assert_int_equal(f->memory[i], 0xa5);
        assert_int_equal(f->memory[GUARD + f->bytes + i], 0xa5);
    }
    free(f->memory);
}

static void an_empty_one_knows_nothing(void **state)
{
    (void)state;
    struct fenced f;
    struct hot_count c;
    uint32_t at = HOT_FIRST;
    fence(&f, 8, 256);
    assert_false(hot_sketch_next(&f.s, &at, &c));
    assert_false(hot_sketch_find(&f.s, text("a"), 1, &c));
    assert_int_equal(hot_sketch_floor(&f.s), 0);
    assert_int_equal(hot_sketch_cut(&f.s, 3), 0);
    hot_sketch_decay(&f.s);
    hot_sketch_check(&f.s);
    unfence(&f);
}

static void counts_are_exact_while_all_keys_fit(void **state)
{
    (void)state;
    struct fenced f;
    fence(&f, 8, 512);
    for (uint32_t i = 0; i < 7; i++) {
        hot_sketch_add(&f.s, text(i < 4 ? "a" : i < 6 ? "b" : "c"), i < 4 ? 1 : i < 6 ? 2 : 3);
    }
    hot_sketch_add(&f.s, bytes_of(NULL, 0), 4); /* the empty key is one as well */
    hot_sketch_add(&f.s, bytes_of(NULL, 0), 4);
    hot_sketch_add(&f.s, bytes_of(NULL, 0), 4);
    const char *keys[] = {"a", "", "b", "c"};
    struct hot_count c;
    uint32_t at = HOT_FIRST;
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(hot_sketch_next(&f.s, &at, &c));
        assert_true(bytes_equal(c.key, text(keys[i])));
        assert_int_equal(c.count, 4 - i);
        assert_int_equal(c.error, 0);
        assert_int_equal(hot_sketch_cut(&f.s, i), 4 - i);
    }
    assert_false(hot_sketch_next(&f.s, &at, &c));
    assert_int_equal(hot_sketch_cut(&f.s, 4), 0);
    assert_int_equal(f.s.total, 10);
    hot_sketch_check(&f.s);
    hot_sketch_reset(&f.s);
    hot_sketch_check(&f.s);
    assert_false(hot_sketch_find(&f.s, text("a"), 1, &c));
    unfence(&f);
}

static void the_smallest_goes_and_its_count_is_the_error(void **state)
{
    (void)state;
    struct fenced f;
    struct hot_count c;
    fence(&f, 2, 256);
    hot_sketch_add(&f.s, text("a"), 1);
    hot_sketch_add(&f.s, text("a"), 1);
    hot_sketch_add(&f.s, text("a"), 1);
    hot_sketch_add(&f.s, text("b"), 2);
    hot_sketch_add(&f.s, text("b"), 2);
    hot_sketch_add(&f.s, text("c"), 3);
    assert_false(hot_sketch_find(&f.s, text("b"), 2, &c));
    assert_true(hot_sketch_find(&f.s, text("c"), 3, &c));
    assert_int_equal(c.count, 3);
    assert_int_equal(c.error, 2);
    assert_int_equal(hot_sketch_floor(&f.s), 2);
    hot_sketch_check(&f.s);
    unfence(&f);
}

/* All that sketch.h says holds, for every key. */
static void judge(struct exact *e, const struct hot_sketch *s, uint32_t least_kept)
{
    hot_sketch_check(s);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < e->keys; i++) {
        struct hot_count c;
        if (hot_sketch_find(s, exact_key(e, i), exact_hash(e, i), &c)) {
            kept++;
            assert_true(e->f[i] <= c.count);
            assert_true(e->f[i] >= (double)c.count - c.error);
        } else {
            assert_true(e->f[i] <= hot_sketch_floor(s));
        }
    }
    assert_int_equal(kept, s->used);
    assert_true(hot_sketch_floor(s) <= e->total / least_kept + 1);
    uint32_t at = HOT_FIRST;
    uint32_t before = UINT32_MAX;
    struct hot_count c;
    uint32_t n = 0;
    for (; hot_sketch_next(s, &at, &c); n++) {
        assert_true(c.count <= before);
        before = c.count;
    }
    assert_int_equal(n, s->used);
}

static void differential(uint64_t seed)
{
    struct random random;
    random_init(&random, seed);
    struct exact *e = malloc(sizeof *e);
    assert_non_null(e);
    struct fenced f;
    uint32_t counters = (uint32_t)random_between(&random, 1, 200);
    uint32_t key_max =
        random_chance(&random, 500000) ? 8 : (uint32_t)random_between(&random, 4, 250);
    uint64_t mask = random_chance(&random, 300000) ? 3 : UINT64_MAX;
    uint32_t key_bytes = (uint32_t)random_between(&random, 2200, 20000);
    exact_init(e, (uint32_t)random_between(&random, 1, 2000), key_max, mask);
    fence(&f, counters, key_bytes);
    /* So many keys are kept whenever one goes, whatever their lengths. */
    uint32_t least = key_bytes / (8 + ((key_max + 7) & ~7u)) - 1;
    least = least < counters ? least : counters;
    for (uint32_t i = 1; i <= 4000; i++) {
        uint32_t key = random_chance(&random, 100000) ? (uint32_t)random_below(&random, e->keys)
                                                      : exact_draw(e, &random);
        exact_add(e, &f.s, key);
        if (random_chance(&random, 1000)) {
            exact_decay(e, &f.s);
        }
        if (random_chance(&random, 200)) {
            exact_init(e, e->keys, key_max, mask);
            hot_sketch_reset(&f.s);
        }
        if (i % 500 == 0) {
            judge(e, &f.s, least);
        }
    }
    assert_int_equal(f.s.refused, 0);
    unfence(&f);
    free(e);
}

static void bounds_hold_against_exact_counts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 200; seed++) {
        differential(seed);
    }
}

static void frequent_keys_are_always_kept(void **state)
{
    (void)state;
    struct exact *e = malloc(sizeof *e);
    assert_non_null(e);
    struct fenced f;
    struct random random;
    random_init(&random, 7);
    exact_init(e, 4000, 16, UINT64_MAX);
    fence(&f, 100, 100 * 24);
    for (uint32_t i = 0; i < 100000; i++) {
        exact_add(e, &f.s, exact_draw(e, &random));
    }
    uint32_t frequent = 0;
    for (uint32_t i = 0; i < e->keys; i++) {
        struct hot_count c;
        if (e->f[i] > e->total / 100) {
            frequent++;
            assert_true(hot_sketch_find(&f.s, exact_key(e, i), exact_hash(e, i), &c));
        }
    }
    assert_in_range(frequent, 5, 40);
    assert_true(hot_sketch_floor(&f.s) <= 1000);
    assert_true(f.s.evicted > 10000);
    unfence(&f);
    free(e);
}

static void what_is_long_ago_matters_less(void **state)
{
    (void)state;
    struct fenced f;
    struct hot_count c;
    fence(&f, 4, 256);
    for (uint32_t i = 0; i < 100; i++) {
        hot_sketch_add(&f.s, text("old"), 1);
    }
    hot_sketch_decay(&f.s);
    hot_sketch_decay(&f.s);
    for (uint32_t i = 0; i < 26; i++) {
        hot_sketch_add(&f.s, text("new"), 2);
    }
    uint32_t at = HOT_FIRST;
    assert_true(hot_sketch_next(&f.s, &at, &c));
    assert_true(bytes_equal(c.key, text("new")));
    assert_true(hot_sketch_next(&f.s, &at, &c));
    assert_int_equal(c.count, 25);
    assert_int_equal(c.error, 0);
    for (uint32_t i = 0; i < 64; i++) {
        hot_sketch_decay(&f.s); /* both end in the same bucket */
    }
    hot_sketch_check(&f.s);
    assert_true(hot_sketch_find(&f.s, text("old"), 1, &c));
    assert_int_equal(c.count, 1);
    assert_int_equal(c.error, 1);
    unfence(&f);
}

/* Long keys cannot clear a sketch, and all keys together stay within their bytes. */
static void long_keys_have_their_bounds(void **state)
{
    (void)state;
    struct fenced f;
    struct hot_count c;
    static uint8_t key[65536];
    struct random random;
    random_init(&random, 3);
    fence(&f, 64, 4096);
    for (uint32_t i = 0; i < 50; i++) {
        hot_sketch_add(&f.s, text("hot"), 1);
    }
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t n = (uint32_t)random_between(&random, 100, i % 2 == 0 ? 504 : sizeof key);
        put_u32(key, i);
        hot_sketch_add(&f.s, bytes_of(key, n), random_next(&random));
        if (i % 40 == 0) {
            hot_sketch_add(&f.s, text("hot"), 1);
        }
        assert_true(f.s.live <= 4096);
        assert_true(f.s.used <= 64);
    }
    hot_sketch_check(&f.s);
    assert_true(hot_sketch_find(&f.s, text("hot"), 1, &c));
    assert_true(f.s.refused > 9000);
    /* The longest that is kept: an eighth, its head included. */
    hot_sketch_add(&f.s, bytes_of(key, 4096 / HOT_KEY_SHARE - 8), 77);
    assert_true(hot_sketch_find(&f.s, bytes_of(key, 4096 / HOT_KEY_SHARE - 8), 77, &c));
    uint64_t refused = f.s.refused;
    hot_sketch_add(&f.s, bytes_of(key, 4096 / HOT_KEY_SHARE - 7), 78);
    assert_int_equal(f.s.refused, refused + 1);
    unfence(&f);
}

/* Keys that collide in all bits of their hashes are told apart by their bytes. */
static void equal_hashes_are_no_equal_keys(void **state)
{
    (void)state;
    struct fenced f;
    struct exact *e = malloc(sizeof *e);
    assert_non_null(e);
    struct random random;
    random_init(&random, 5);
    exact_init(e, 300, 8, 0);
    fence(&f, 50, 2000);
    for (uint32_t i = 0; i < 5000; i++) {
        exact_add(e, &f.s, exact_draw(e, &random));
    }
    judge(e, &f.s, 50);
    unfence(&f);
    free(e);
}

/* The worst order: each key comes once, all counters change for every one. */
static void keys_that_come_once_leave_no_trace(void **state)
{
    (void)state;
    struct fenced f;
    struct hot_count c;
    uint8_t key[8];
    fence(&f, 32, 1024);
    for (uint64_t i = 0; i < 100000; i++) {
        put_u64(key, i);
        hot_sketch_add(&f.s, bytes_of(key, 8), i * 0x9e3779b97f4a7c15u);
        if (i % 20 == 0) {
            hot_sketch_add(&f.s, text("hot"), 12345);
        }
    }
    hot_sketch_check(&f.s);
    assert_true(hot_sketch_find(&f.s, text("hot"), 12345, &c));
    assert_true(c.count >= 5000);
    assert_true(c.count - c.error >= 4900);
    assert_true(hot_sketch_floor(&f.s) <= f.s.total / 32);
    unfence(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_knows_nothing),
        cmocka_unit_test(counts_are_exact_while_all_keys_fit),
        cmocka_unit_test(the_smallest_goes_and_its_count_is_the_error),
        cmocka_unit_test(bounds_hold_against_exact_counts),
        cmocka_unit_test(frequent_keys_are_always_kept),
        cmocka_unit_test(what_is_long_ago_matters_less),
        cmocka_unit_test(long_keys_have_their_bounds),
        cmocka_unit_test(equal_hashes_are_no_equal_keys),
        cmocka_unit_test(keys_that_come_once_leave_no_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
