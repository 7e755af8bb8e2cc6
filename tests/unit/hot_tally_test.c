#include "hot/tally.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hot/plan.h"
#include "support/hot_exact.h"

static struct hot_tally *make(uint32_t entries, uint32_t key_bytes)
{
    struct hot_tally *t = malloc(sizeof *t + hot_tally_bytes(entries, key_bytes));
    assert_non_null(t);
    hot_tally_init(t, t + 1, entries, key_bytes);
    return t;
}

static struct bytes key_of(uint32_t i)
{
    static uint8_t at[4];
    put_u32(at, i);
    return bytes_of(at, 4);
}

static void add(struct hot_tally *t, uint32_t i, uint32_t count, uint32_t error)
{
    hot_tally_add(t, key_of(i), i, count, error);
}

static struct hot_rate rate_of(const struct hot_tally *t, uint32_t i)
{
    struct hot_rate r;
    assert_true(hot_tally_find(t, key_of(i), i, &r));
    return r;
}

#define assert_about(a, b) assert_true((a) - (b) < 1e-9 && (b) - (a) < 1e-9)

static void lists_add_up(void **state)
{
    (void)state;
    struct hot_tally *t = make(8, 64);
    hot_tally_list(t, 2, 3);
    add(t, 1, 10, 4);
    add(t, 2, 5, 0);
    hot_tally_list(t, 0.5, 8);
    add(t, 2, 20, 10);
    add(t, 3, 9, 9);
    struct hot_rate r = rate_of(t, 1);
    assert_about(r.least, 12);
    assert_about(r.most, 20 + 4); /* the second list may have missed 8 at half weight */
    r = rate_of(t, 2);
    assert_about(r.least, 15);
    assert_about(r.most, 20);
    r = rate_of(t, 3);
    assert_about(r.least, 0);
    assert_about(r.most, 4.5 + 6);
    assert_false(hot_tally_find(t, key_of(4), 4, &r));
    hot_tally_clear(t);
    assert_false(hot_tally_find(t, key_of(1), 1, &r));
    free(t);
}

/* Whatever another node sends: nothing counts twice, is negative, or takes more room. */
static void nonsense_has_its_bounds(void **state)
{
    (void)state;
    struct hot_tally *t = make(4, 16);
    hot_tally_list(t, 1, 7);
    add(t, 1, 10, 4);
    add(t, 1, 10, 4); /* twice */
    add(t, 2, 5, 6);  /* more error than count */
    struct hot_rate r = rate_of(t, 1);
    assert_about(r.least, 6);
    assert_about(r.most, 10);
    assert_about(rate_of(t, 2).least, 0);
    add(t, 3, UINT32_MAX, 0);
    add(t, 4, 1, 0);
    add(t, 5, 100, 0); /* no room */
    assert_false(hot_tally_find(t, key_of(5), 5, &r));
    assert_int_equal(t->refused, 1);
    assert_int_equal(t->used, 4);
    add(t, 4, 1, 0); /* known ones still count in the next list */
    hot_tally_list(t, 1, 0);
    add(t, 4, 3, 0);
    assert_about(rate_of(t, 4).least, 4);
    hot_tally_clear(t);
    hot_tally_list(t, 1, 0);
    hot_tally_add(t, bytes_of("0123456789abcdefg", 17), 1, 1, 0); /* longer than all keys may be */
    assert_int_equal(t->used, 0);
    hot_tally_add(t, bytes_of("0123456789abcdef", 16), 1, 1, 0);
    hot_tally_add(t, bytes_of(NULL, 0), 2, 1, 0);
    assert_int_equal(t->used, 2);
    free(t);
}

static uint64_t rehash(const void *context, struct bytes key)
{
    const uint64_t *factor = context;
    return (get_u32(key.at + key.n - 4) + 1) * *factor;
}

/* One stream over several sketches, each with hashes of its own: the tally's bounds hold for the
 * whole stream, also when lists are cut off. */
static void bounds_hold_for_all_sketches_together(void **state)
{
    (void)state;
    struct random random;
    struct exact *e = malloc(sizeof *e);
    assert_non_null(e);
    random_init(&random, 11);
    for (uint32_t most = 20; most <= 200; most += 60) {
        struct hot_sketch s[3];
        void *memory[3];
        exact_init(e, 1000, 12, UINT64_MAX);
        for (uint32_t i = 0; i < 3; i++) {
            memory[i] = malloc(hot_sketch_bytes(100 + i, 4000));
            assert_non_null(memory[i]);
            hot_sketch_init(&s[i], memory[i], 100 + i, 4000);
        }
        for (uint32_t i = 0; i < 20000; i++) {
            exact_add(e, &s[random_below(&random, 3)], exact_draw(e, &random));
        }
        struct hot_tally *t = make(400, 8000);
        uint64_t factor = 0x9e3779b97f4a7c15u;
        for (uint32_t i = 0; i < 3; i++) {
            hot_tally_sketch(t, &s[i], 1, most, rehash, &factor);
            free(memory[i]);
        }
        for (uint32_t i = 0; i < e->keys; i++) {
            struct hot_rate r;
            struct bytes key = exact_key(e, i);
            if (hot_tally_find(t, key, rehash(&factor, key), &r)) {
                assert_true(r.least <= e->f[i] && e->f[i] <= r.most);
            }
        }
        assert_int_equal(t->refused, 0);
        assert_true(t->used >= most);
        free(t);
    }
    free(e);
}

static int by_score(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return x[0] != y[0] ? (x[0] < y[0] ? 1 : -1) : x[1] < y[1] ? -1 : 1;
}

static void ranking_is_sorting(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 13);
    struct hot_tally *t = make(300, 2000);
    for (uint32_t round = 0; round < 300; round++) {
        double naive[300][2];
        uint32_t n = (uint32_t)random_below(&random, 300);
        uint32_t k = (uint32_t)random_below(&random, 320);
        struct hot_ranking ranking = {
            .least = (double)random_below(&random, 20), .bonus = 1.5, .slack = 2};
        uint32_t ranked = 0;
        hot_tally_clear(t);
        for (uint32_t i = 0; i < n; i++) {
            if (random_chance(&random, 300000)) {
                hot_tally_mark(t, key_of(i), i);
            }
        }
        hot_tally_list(t, 1, 0);
        for (uint32_t i = 0; i < n; i++) {
            add(t, i, (uint32_t)random_below(&random, 50), (uint32_t)random_below(&random, 10));
        }
        assert_int_equal(t->used, n);
        for (uint32_t i = 0; i < n; i++) {
            struct hot_rate r = hot_tally_at(t, i);
            if (r.marked || r.least >= ranking.least) {
                naive[ranked][0] = r.marked ? r.least * 1.5 + 2 : r.least;
                naive[ranked++][1] = i;
            }
        }
        qsort(naive, ranked, sizeof naive[0], by_score);
        uint32_t got = hot_tally_rank(t, k, &ranking);
        assert_int_equal(got, k < ranked ? k : ranked);
        uint32_t chosen = 0;
        for (uint32_t i = 0; i < got; i++) {
            struct hot_rate r = hot_tally_ranked(t, i);
            struct hot_rate expected = hot_tally_at(t, (uint32_t)naive[i][1]);
            assert_true(bytes_equal(r.key, expected.key));
            assert_true(hot_tally_chosen(t, (uint32_t)naive[i][1]));
        }
        for (uint32_t i = 0; i < n; i++) {
            chosen += hot_tally_chosen(t, i);
        }
        assert_int_equal(chosen, got);
    }
    free(t);
}

/* ---- Plans ---- */

static uint32_t plan(struct hot_tally *t, uint32_t keys_max, struct hot_change *changes)
{
    uint32_t n = hot_plan(t, keys_max, 1, changes, 1000);
    bool enter = false;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(changes[i].enter || !enter); /* who leaves goes first */
        enter = changes[i].enter;
    }
    return n;
}

static void mark(struct hot_tally *t, uint32_t i)
{
    hot_tally_mark(t, key_of(i), i);
}

static void the_hottest_enter_an_empty_set(void **state)
{
    (void)state;
    struct hot_change changes[1000];
    struct hot_tally *t = make(100, 1000);
    hot_tally_list(t, 1, 0);
    for (uint32_t i = 0; i < 50; i++) {
        add(t, i, i, 0);
    }
    assert_int_equal(plan(t, 10, changes), 10);
    for (uint32_t i = 0; i < 10; i++) {
        assert_true(changes[i].enter);
        assert_int_equal(changes[i].hash, 49 - i);
        assert_int_equal(get_u32(changes[i].key.at), 49 - i);
    }
    /* What was sampled once is not hot, although there is room. */
    assert_int_equal(plan(t, 100, changes), 48);
    assert_int_equal(hot_plan(t, 100, 1, changes, 5), 5);
    assert_int_equal(plan(t, 0, changes), 0);
    free(t);
}

static void nothing_leaves_while_there_is_room(void **state)
{
    (void)state;
    struct hot_change changes[1000];
    struct hot_tally *t = make(100, 1000);
    mark(t, 1);
    mark(t, 2);
    hot_tally_list(t, 1, 0);
    add(t, 3, 100, 0);
    add(t, 4, 200, 0);
    assert_int_equal(plan(t, 4, changes), 2);
    assert_int_equal(changes[0].hash, 4);
    assert_int_equal(changes[1].hash, 3);
    /* With less room the coldest one does. */
    hot_tally_list(t, 1, 0);
    add(t, 2, 50, 0);
    assert_int_equal(plan(t, 3, changes), 3);
    assert_false(changes[0].enter);
    assert_int_equal(changes[0].hash, 1);
    assert_int_equal(plan(t, 1, changes), 3);
    assert_false(changes[0].enter);
    assert_false(changes[1].enter);
    assert_int_equal(changes[2].hash, 4);
    free(t);
}

static void only_clearly_hotter_keys_displace(void **state)
{
    (void)state;
    struct hot_change changes[1000];
    struct hot_tally *t = make(100, 1000);
    mark(t, 1);
    hot_tally_list(t, 1, 0);
    add(t, 1, 100, 0);
    add(t, 2, 129, 0);
    assert_int_equal(plan(t, 1, changes), 0); /* 100 * 1.25 + 4 */
    add(t, 3, 130, 0);
    assert_int_equal(plan(t, 1, changes), 2);
    assert_int_equal(changes[0].hash, 1);
    assert_int_equal(changes[1].hash, 3);
    /* Certain is only what is above the error. */
    hot_tally_clear(t);
    mark(t, 1);
    hot_tally_list(t, 1, 0);
    add(t, 1, 100, 0);
    add(t, 2, 1000, 900);
    assert_int_equal(plan(t, 1, changes), 0);
    free(t);
}

static void draw_list(struct hot_tally *t, struct exact *e, struct random *random, uint32_t shift)
{
    uint32_t count[EXACT_KEYS] = {0};
    for (uint32_t i = 0; i < 30000; i++) {
        count[exact_draw(e, random)]++;
    }
    hot_tally_list(t, 1, 0);
    for (uint32_t i = 0; i < e->keys; i++) {
        add(t, i + shift, count[i], 0);
    }
}

/* Counts what differs between the best of this tally and those of the one before. */
static uint32_t naive_changes(struct hot_tally *t, bool *best)
{
    struct hot_ranking ranking = {.bonus = 1};
    uint32_t n = hot_tally_rank(t, 100, &ranking);
    bool now[2 * EXACT_KEYS] = {false};
    uint32_t changes = 0;
    for (uint32_t i = 0; i < n; i++) {
        now[hot_tally_ranked(t, i).hash] = true;
    }
    for (uint32_t i = 0; i < 2 * EXACT_KEYS; i++) {
        changes += now[i] != best[i];
        best[i] = now[i];
    }
    return changes;
}

/* The same popularity, sampled anew, changes little; another one changes all. */
static void a_set_follows_popularity_and_not_chance(void **state)
{
    (void)state;
    struct hot_change changes[1000];
    struct random random;
    bool in[2 * EXACT_KEYS] = {false};
    bool best[2 * EXACT_KEYS] = {false};
    struct exact *e = malloc(sizeof *e);
    struct hot_tally *t = make(8000, 40000);
    assert_non_null(e);
    random_init(&random, 17);
    exact_init(e, 1000, 8, UINT64_MAX);
    uint32_t moved = 0;
    uint32_t naive = 0;
    for (uint32_t epoch = 0; epoch < 22; epoch++) {
        hot_tally_clear(t);
        for (uint32_t i = 0; i < 2 * EXACT_KEYS; i++) {
            if (in[i]) {
                mark(t, i);
            }
        }
        draw_list(t, e, &random, epoch < 21 ? 0 : 2000);
        uint32_t n = plan(t, 100, changes);
        if (epoch == 0 || epoch == 21) {
            assert_int_equal(n, epoch == 0 ? 100 : 200);
        } else {
            moved += n;
        }
        for (uint32_t i = 0; i < n; i++) {
            assert_int_not_equal(in[changes[i].hash], changes[i].enter);
            in[changes[i].hash] = changes[i].enter;
        }
        uint32_t without = naive_changes(t, best);
        naive += epoch > 0 && epoch < 21 ? without : 0;
    }
    print_message("%u changes in 20 epochs; %u without hysteresis\n", moved, naive);
    assert_true(moved < naive / 4);
    free(t);
    free(e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_add_up),
        cmocka_unit_test(nonsense_has_its_bounds),
        cmocka_unit_test(bounds_hold_for_all_sketches_together),
        cmocka_unit_test(ranking_is_sorting),
        cmocka_unit_test(the_hottest_enter_an_empty_set),
        cmocka_unit_test(nothing_leaves_while_there_is_room),
        cmocka_unit_test(only_clearly_hotter_keys_displace),
        cmocka_unit_test(a_set_follows_popularity_and_not_chance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
