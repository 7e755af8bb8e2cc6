/* Histories as long as the simulator's: the checkers must stay fast, agree with each other and
 * find the one thing that is wrong. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdlib.h>

#include "support/check_histories.h"

#define KIND(k) (1u << (k))
#define ALL_KINDS (KIND(HISTORY_GETSET + 1) - 1)
#define EVERY_KIND (KIND(HISTORY_TTL + 1) - 1)
#define READ_WRITE (KIND(HISTORY_READ) | KIND(HISTORY_WRITE))

/* A search that needs more has lost one of the things that make it fast. */
#define STATES_MAX 50000u

struct fixture {
    struct history history;
    struct random random;
};

static void begin(struct fixture *f, const struct generate *g, uint64_t seed)
{
    random_init(&f->random, seed);
    f->history.n = g->ops;
    f->history.ops = calloc(g->ops, sizeof *f->history.ops);
    assert_non_null(f->history.ops);
    generate_history(&f->random, g, f->history.ops);
}

static void end(struct fixture *f)
{
    free(f->history.ops);
}

static void expect(struct fixture *f, uint64_t seed, enum check_result expected)
{
    struct check_report report;
    enum check_result result = check_linearizable(&f->history, STATES_MAX, &report);
    if (result != expected) {
        fail_msg("seed %" PRIu64 ": %d, not %d; %s", seed, result, expected, report.text);
    }
}

/* Makes one read, at least as late as the middle, return what a write long before left. */
static void make_stale(struct fixture *f)
{
    struct history_op *ops = f->history.ops;
    size_t n = f->history.n;
    size_t old = 0;
    while (ops[old].kind != HISTORY_WRITE || ops[old].outcome != HISTORY_OK) {
        old++;
    }
    size_t read = n / 2 + (size_t)random_below(&f->random, n / 4);
    while (ops[read].kind != HISTORY_READ || ops[read].outcome != HISTORY_OK) {
        read++;
        assert_true(read < n);
    }
    ops[read].out = ops[old].in;
}

static void run_registers(const struct generate *g, uint64_t seeds)
{
    struct check_report report;
    for (uint64_t seed = 0; seed < seeds; seed++) {
        struct fixture f;
        begin(&f, g, seed);
        assert_int_equal(check_registers(&f.history, &report), CHECK_ACCEPTED);
        expect(&f, seed, CHECK_ACCEPTED);
        make_stale(&f);
        assert_int_equal(check_registers(&f.history, &report), CHECK_REFUSED);
        expect(&f, seed, CHECK_REFUSED);
        end(&f);
    }
}

static void test_registers(void **state)
{
    (void)state;
    struct generate g = {
        .ops = 1000, .clients = 8, .keys = 1, .kinds = READ_WRITE, .length_us = 100};
    run_registers(&g, 20);
    g.unknown_ppm = 50000;
    run_registers(&g, 20);
    g.clients = 30;
    run_registers(&g, 20);
}

static void test_small_changes(void **state)
{
    (void)state;
    const struct generate g = {.ops = 300,
                               .clients = 8,
                               .keys = 1,
                               .kinds = READ_WRITE,
                               .length_us = 100,
                               .unknown_ppm = 50000};
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct fixture f;
        begin(&f, &g, seed);
        corrupt_history(&f.random, &g, &f.history);
        struct check_report report;
        expect(&f, seed, check_registers(&f.history, &report));
        end(&f);
    }
}

static void run_kinds(const struct generate *g, uint64_t seeds)
{
    for (uint64_t seed = 0; seed < seeds; seed++) {
        struct fixture f;
        begin(&f, g, seed);
        expect(&f, seed, CHECK_ACCEPTED);
        /* Nothing makes this value, though among counters only a search can tell. */
        struct history_op *op = &f.history.ops[f.history.n / 2];
        while (op->kind != HISTORY_READ || op->outcome != HISTORY_OK) {
            op++;
        }
        op->out = 123456789;
        expect(&f, seed, CHECK_REFUSED);
        end(&f);
    }
}

static void test_all_kinds(void **state)
{
    (void)state;
    struct generate g = {
        .ops = 1000, .clients = 8, .keys = 1, .values = 5, .kinds = ALL_KINDS, .length_us = 100};
    run_kinds(&g, 10);
    g.kinds &= ~KIND(HISTORY_ADD);
    g.unknown_ppm = 50000;
    run_kinds(&g, 10);
    g.values = 0;
    run_kinds(&g, 10);
}

/* Each value comes and goes, many writes overlap, and there are unknown ones of every kind. */
static void test_crowd(void **state)
{
    (void)state;
    const struct generate g = {.ops = 1000,
                               .clients = 20,
                               .keys = 1,
                               .values = 3,
                               .kinds = ALL_KINDS & ~KIND(HISTORY_ADD),
                               .length_us = 100,
                               .unknown_ppm = 50000};
    for (uint64_t seed = 0; seed < 40; seed++) {
        struct fixture f;
        begin(&f, &g, seed);
        expect(&f, seed, CHECK_ACCEPTED);
        end(&f);
    }
}

static void test_counter(void **state)
{
    (void)state;
    const struct generate g = {.ops = 1000,
                               .clients = 8,
                               .keys = 1,
                               .values = 2,
                               .kinds = KIND(HISTORY_ADD) | KIND(HISTORY_READ),
                               .length_us = 100,
                               .unknown_ppm = 50000};
    run_kinds(&g, 10);
}

/* Numbers are added to values that are far apart, with many ADDs of unknown outcome. */
static void test_added_values(void **state)
{
    (void)state;
    const struct generate g = {.ops = 500,
                               .clients = 8,
                               .keys = 1,
                               .value_gap = 1000,
                               .kinds = ALL_KINDS,
                               .length_us = 100,
                               .unknown_ppm = 50000};
    run_kinds(&g, 10);
}

/* Every kind, on one key, with deadlines that are reached. */
static void test_deadlines(void **state)
{
    (void)state;
    struct generate g = {.ops = 1000,
                         .clients = 8,
                         .keys = 1,
                         .kinds = EVERY_KIND & ~KIND(HISTORY_ADD),
                         .length_us = 100,
                         .unknown_ppm = 50000,
                         .deadline_ppm = 300000};
    run_kinds(&g, 10);
    g.values = 3;
    run_kinds(&g, 10);
    g.values = 0;
    g.value_gap = 1000;
    g.kinds = EVERY_KIND;
    g.ops = 500;
    run_kinds(&g, 10);
}

static void test_many_keys(void **state)
{
    (void)state;
    const struct generate g = {.ops = 100000,
                               .clients = 50,
                               .keys = 64,
                               .kinds = READ_WRITE,
                               .length_us = 100,
                               .unknown_ppm = 1000};
    run_registers(&g, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers), cmocka_unit_test(test_small_changes),
        cmocka_unit_test(test_all_kinds), cmocka_unit_test(test_crowd),
        cmocka_unit_test(test_counter),   cmocka_unit_test(test_added_values),
        cmocka_unit_test(test_deadlines), cmocka_unit_test(test_many_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
