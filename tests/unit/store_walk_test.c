/* Walking: everything that is there all along is visited, whatever grows or goes meanwhile. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/random.h"
#include "store/store.h"
#include "support/store_fixture.h"

#define KEYS 6000u

struct visits {
    const struct fixture *f;
    uint32_t times[KEYS];
    uint32_t others;
};

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct visits *v = context;
    assert_int_equal(key.n, 8);
    uint64_t i = get_u64(key.at);
    assert_int_equal(hash, store_hash(v->f->store, key));
    assert_int_equal(meta->ts, i + 1);
    assert_int_equal(value.n, i % 40 * 50);
    if (i < KEYS) {
        v->times[i]++;
    } else {
        v->others++;
    }
}

static void insert(struct fixture *f, uint64_t i)
{
    static const uint8_t value[2000];
    must_put(f, bytes_of(&i, 8), i + 1, bytes_of(value, (uint32_t)(i % 40 * 50)));
}

/* A whole walk; the number of calls it took. */
static uint32_t walk(struct fixture *f, struct visits *v)
{
    memset(v, 0, sizeof(*v));
    v->f = f;
    uint64_t cursor = 0;
    uint32_t calls = 0;
    do {
        cursor = store_walk(f->store, f->thread, cursor, visit, v);
        calls++;
    } while (cursor != 0);
    return calls;
}

static void test_every_entry_once_while_nothing_changes(void **state)
{
    (void)state;
    static struct visits v;
    struct fixture f;
    struct store_config config = {.seed = 1};
    fixture_open(&f, &config);
    assert_int_equal(walk(&f, &v), stats_of(&f).buckets);
    /* Through many numbers of buckets, powers of two among them. */
    for (uint64_t i = 0; i < KEYS; i++) {
        insert(&f, i);
        if (i % 97 == 0 || (i < 300 && i % 5 == 0)) {
            assert_int_equal(walk(&f, &v), stats_of(&f).buckets);
            for (uint64_t j = 0; j < KEYS; j++) {
                assert_int_equal(v.times[j], j <= i);
            }
        }
    }
    fixture_close(&f);
}

static void test_what_stays_is_visited_while_the_index_grows(void **state)
{
    (void)state;
    static struct visits v;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct fixture f;
        struct store_config config = {.seed = seed};
        fixture_open(&f, &config);
        for (uint64_t i = 0; i < 300; i++) {
            insert(&f, i);
        }
        uint64_t before = stats_of(&f).buckets;
        memset(&v, 0, sizeof(v));
        v.f = &f;
        uint64_t cursor = 0, next = KEYS;
        do {
            cursor = store_walk(f.store, f.thread, cursor, visit, &v);
            for (uint32_t i = 0; i < seed * 2 && next < 5 * KEYS; i++) {
                insert(&f, next++);
            }
        } while (cursor != 0);
        assert_true(seed < 2 || stats_of(&f).buckets > before);
        for (uint64_t i = 0; i < 300; i++) {
            assert_int_equal(v.times[i], 1);
        }
        fixture_close(&f);
    }
}

static void test_what_stays_is_visited_while_others_go(void **state)
{
    (void)state;
    static struct visits v;
    struct fixture f;
    struct store_config config = {.seed = 1};
    struct random r;
    random_init(&r, 9);
    fixture_open(&f, &config);
    for (uint64_t i = 0; i < KEYS; i++) {
        insert(&f, i);
    }
    memset(&v, 0, sizeof(v));
    v.f = &f;
    uint64_t cursor = 0;
    do {
        cursor = store_walk(f.store, f.thread, cursor, visit, &v);
        for (uint32_t i = 0; i < 4; i++) {
            uint64_t odd = random_below(&r, KEYS) | 1u;
            drop(&f, bytes_of(&odd, 8));
        }
    } while (cursor != 0);
    for (uint64_t i = 0; i < KEYS; i += 2) {
        assert_int_equal(v.times[i], 1);
    }
    fixture_close(&f);
}

static void test_any_cursor_ends(void **state)
{
    (void)state;
    static struct visits v;
    struct fixture f;
    struct random r;
    struct store_config config = {.seed = 1};
    random_init(&r, 5);
    fixture_open(&f, &config);
    for (uint64_t i = 0; i < 2000; i++) {
        insert(&f, i);
    }
    v.f = &f;
    for (uint32_t round = 0; round < 50; round++) {
        uint64_t cursor = round == 0 ? UINT64_MAX : random_next(&r);
        uint32_t calls = 0;
        do {
            cursor = store_walk(f.store, f.thread, cursor, visit, &v);
            calls++;
        } while (cursor != 0);
        assert_true(calls <= stats_of(&f).buckets);
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_entry_once_while_nothing_changes),
        cmocka_unit_test(test_what_stays_is_visited_while_the_index_grows),
        cmocka_unit_test(test_what_stays_is_visited_while_others_go),
        cmocka_unit_test(test_any_cursor_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
