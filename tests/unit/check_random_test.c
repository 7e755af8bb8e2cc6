/* Thousands of small random histories, on which the checkers must agree with trying every order;
 * half of them come from a real register as they are, half with something changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "support/check_histories.h"

#define OPS_MAX 10

#define KIND(k) (1u << (k))
#define ALL_KINDS (KIND(HISTORY_GETSET + 1) - 1)
#define EVERY_KIND (KIND(HISTORY_TTL + 1) - 1)
#define READ_WRITE (KIND(HISTORY_READ) | KIND(HISTORY_WRITE))
#define NO_ADD (ALL_KINDS & ~KIND(HISTORY_ADD))

struct tally {
    uint32_t accepted;
    uint32_t refused;
};

static void show(const char *what, uint64_t seed, const struct history *history)
{
    print_error("%s, seed %" PRIu64 ":\n", what, seed);
    history_print(history, stderr);
}

/* One history; the seed alone decides what it is. */
static void run_one(const struct generate *g, uint64_t seed, struct tally *tally)
{
    struct random r;
    random_init(&r, seed);
    struct history_op ops[OPS_MAX];
    struct history history = {ops, g->ops};
    generate_history(&r, g, ops);
    bool sound = seed % 2 == 0;
    for (uint64_t changes = sound ? 0 : 1 + random_below(&r, 4); changes > 0; changes--) {
        corrupt_history(&r, g, &history);
    }
    bool accepts = brute_accepts(&history);
    if (sound && !accepts) {
        show("brute force refuses what a register did", seed, &history);
        fail();
    }
    enum check_result expected = accepts ? CHECK_ACCEPTED : CHECK_REFUSED;
    struct check_report report;
    if (check_linearizable(&history, 0, &report) != expected) {
        show("check_linearizable is wrong", seed, &history);
        fail_msg("brute force says %d; %s", accepts, report.text);
    }
    enum check_result registers = check_registers(&history, &report);
    bool may_not_know = g->values != 0 || g->kinds != READ_WRITE || g->deadline_ppm != 0;
    if (registers != expected && !(may_not_know && registers == CHECK_TOO_HARD)) {
        show("check_registers is wrong", seed, &history);
        fail_msg("brute force says %d; %s", accepts, report.text);
    }
    tally->accepted += !sound && accepts;
    tally->refused += !accepts;
}

static void run_many(struct generate g, uint32_t ops_min, uint64_t seeds)
{
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < seeds; seed++) {
        g.ops = ops_min + (uint32_t)(seed / 2 % (OPS_MAX + 1 - ops_min));
        run_one(&g, seed, &tally);
    }
    /* A test in which nothing is refused, or everything that was changed, shows little. */
    assert_true(tally.accepted > seeds / 20);
    assert_true(tally.refused > seeds / 20);
}

static void test_registers(void **state)
{
    (void)state;
    run_many((struct generate){.clients = 3,
                               .keys = 1,
                               .kinds = READ_WRITE,
                               .length_us = 8,
                               .unknown_ppm = 150000,
                               .failed_ppm = 50000},
             4, 10000);
}

static void test_registers_of_keys(void **state)
{
    (void)state;
    run_many(
        (struct generate){
            .clients = 4, .keys = 2, .kinds = READ_WRITE, .length_us = 20, .unknown_ppm = 100000},
        5, 5000);
}

/* Few values make the same value come and go, so that much more is possible. */
static void test_few_values(void **state)
{
    (void)state;
    run_many((struct generate){.clients = 3,
                               .keys = 1,
                               .values = 3,
                               .kinds = READ_WRITE | KIND(HISTORY_DELETE),
                               .length_us = 6,
                               .unknown_ppm = 150000},
             5, 10000);
}

static void test_all_kinds(void **state)
{
    (void)state;
    struct generate g = {.clients = 3,
                         .keys = 1,
                         .values = 3,
                         .kinds = ALL_KINDS,
                         .length_us = 6,
                         .unknown_ppm = 200000,
                         .failed_ppm = 50000};
    run_many(g, 4, 8000);
    g.keys = 2;
    run_many(g, 6, 4000);
}

static void test_no_add(void **state)
{
    (void)state;
    struct generate g = {.clients = 4,
                         .keys = 1,
                         .values = 4,
                         .kinds = NO_ADD,
                         .length_us = 12,
                         .unknown_ppm = 300000};
    run_many(g, 5, 8000);
    g.values = 0;
    run_many(g, 5, 10000);
}

/* Conditions that did not hold are why a write nobody reads can matter. */
static void test_conditions(void **state)
{
    (void)state;
    run_many((struct generate){.clients = 4,
                               .keys = 1,
                               .values = 3,
                               .kinds = READ_WRITE | KIND(HISTORY_SET_IF) |
                                        KIND(HISTORY_SET_ABSENT) | KIND(HISTORY_DELETE_IF),
                               .length_us = 10,
                               .unknown_ppm = 350000},
             5, 10000);
}

static void test_counters(void **state)
{
    (void)state;
    struct generate g = {.clients = 4,
                         .keys = 1,
                         .values = 3,
                         .kinds = KIND(HISTORY_ADD) | KIND(HISTORY_READ),
                         .length_us = 12,
                         .unknown_ppm = 300000};
    run_many(g, 4, 8000);
    g.kinds |= KIND(HISTORY_DELETE) | KIND(HISTORY_WRITE) | KIND(HISTORY_SET_ABSENT);
    run_many(g, 4, 10000);
}

/* Some of the gaps are too wide for the ADDs of unknown outcome in the history, some are not. */
static void test_families(void **state)
{
    (void)state;
    struct generate g = {.clients = 4,
                         .keys = 1,
                         .values = 3,
                         .value_gap = 3,
                         .kinds = ALL_KINDS,
                         .length_us = 10,
                         .unknown_ppm = 300000};
    run_many(g, 4, 8000);
    g.kinds = READ_WRITE | KIND(HISTORY_ADD);
    run_many(g, 4, 8000);
    g.kinds |= KIND(HISTORY_DELETE) | KIND(HISTORY_SET_IF);
    run_many(g, 4, 10000);
}

/* Deadlines that are reached, kept, removed and named twice. */
static void test_deadlines(void **state)
{
    (void)state;
    struct generate g = {.clients = 3,
                         .keys = 1,
                         .kinds = READ_WRITE,
                         .length_us = 8,
                         .unknown_ppm = 150000,
                         .deadline_ppm = 600000};
    run_many(g, 4, 10000);
    g.kinds |= KIND(HISTORY_EXPIRE) | KIND(HISTORY_PERSIST) | KIND(HISTORY_TTL);
    run_many(g, 4, 10000);
    g.values = 2;
    g.kinds |= KIND(HISTORY_SET_IF) | KIND(HISTORY_SET_ABSENT) | KIND(HISTORY_DELETE_PRESENT);
    run_many(g, 4, 10000);
    g.kinds |= KIND(HISTORY_ADD) | KIND(HISTORY_SET_PRESENT) | KIND(HISTORY_GETEX);
    g.unknown_ppm = 350000;
    run_many(g, 4, 8000);
}

static void test_every_kind(void **state)
{
    (void)state;
    struct generate g = {.clients = 3,
                         .keys = 1,
                         .values = 3,
                         .kinds = EVERY_KIND,
                         .length_us = 6,
                         .unknown_ppm = 200000,
                         .failed_ppm = 50000,
                         .deadline_ppm = 300000};
    run_many(g, 4, 10000);
    g.values = 0;
    g.unknown_ppm = 350000;
    run_many(g, 5, 10000);
    g.keys = 2;
    run_many(g, 6, 4000);
    g.kinds &= ~KIND(HISTORY_EXPIRE);
    g.deadline_ppm = 0;
    run_many(g, 5, 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),  cmocka_unit_test(test_registers_of_keys),
        cmocka_unit_test(test_few_values), cmocka_unit_test(test_all_kinds),
        cmocka_unit_test(test_no_add),     cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_counters),   cmocka_unit_test(test_families),
        cmocka_unit_test(test_deadlines),  cmocka_unit_test(test_every_kind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
