/* Thousands of small random histories of transactions, on which the checker must agree with trying
 * every order: of stores that isolate well or badly, as they are and with something changed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>

#include "support/check_txns.h"

#define TXNS_MAX 7

struct tally {
    uint32_t accepted;
    uint32_t refused;
    uint32_t anomalies[TXN_G2 + 1];
    uint32_t needs[TXN_STRICT_SERIALIZABLE + 1];
};

static void show(const char *what, uint64_t seed, enum txn_level level, const struct txns *t)
{
    print_error("%s, seed %" PRIu64 ", level %d:\n", what, seed, level);
    txn_history_print(&t->history, stderr);
}

/* Compares at one level. sound: the store was right, so that it must be accepted. */
static void run_level(const struct txns *t, uint64_t seed, enum txn_level level, bool sound,
                      struct tally *tally)
{
    bool accepts = txns_brute_accepts(&t->history, level);
    if (sound && !accepts) {
        show("brute force refuses what a store did", seed, level, t);
        fail();
    }
    struct txn_report report;
    enum check_result result = check_transactions(&t->history, level, &report);
    if (result != (accepts ? CHECK_ACCEPTED : CHECK_REFUSED)) {
        show("check_transactions is wrong", seed, level, t);
        fail_msg("brute force says %d, not %d; %s", accepts, result, report.text);
    }
    assert_int_equal(report.text[0] == '\0', accepts);
    assert_int_equal(report.anomaly == TXN_NONE, accepts);
    assert_true(accepts || report.cycle_n > 0);
    if (!accepts) {
        bool by_order = txns_brute_accepts(&t->history, TXN_SERIALIZABLE);
        assert_int_equal(report.needs, by_order ? level : TXN_SERIALIZABLE);
    }
    tally->accepted += !sound && accepts;
    tally->refused += !accepts;
    tally->anomalies[report.anomaly]++;
    tally->needs[report.needs] += !accepts;
}

/* One history; the seed alone decides what it is. */
static void run_one(struct txns_generate g, uint64_t seed, struct tally *tally)
{
    struct random r;
    random_init(&r, seed);
    struct txns t;
    txns_init(&t, g.recording, TXNS_MAX, 64, 2000);
    g.txns = 2 + (uint32_t)random_below(&r, TXNS_MAX - 1);
    txns_generate(&r, &g, &t);
    bool changed = seed % 2 == 1;
    for (uint64_t changes = changed ? 1 + random_below(&r, 3) : 0; changes > 0; changes--) {
        txns_corrupt(&r, &t);
    }
    bool sound = !changed && g.store == TXNS_ATOMIC;
    run_level(&t, seed, TXN_STRICT_SERIALIZABLE, sound, tally);
    run_level(&t, seed, TXN_SESSION_SERIALIZABLE, sound, tally);
    run_level(&t, seed, TXN_SERIALIZABLE, sound, tally);
    txns_deinit(&t);
}

static struct tally run_many(struct txns_generate g, uint64_t seeds)
{
    struct tally tally = {0};
    for (uint64_t seed = 0; seed < seeds; seed++) {
        run_one(g, seed, &tally);
    }
    /* A test in which nothing is refused, or everything that was changed, shows little. */
    assert_true(tally.accepted > seeds / 10);
    assert_true(tally.refused > seeds / 10);
    return tally;
}

static void run_stores(struct txns_generate g)
{
    struct tally all = {0};
    for (g.store = TXNS_ATOMIC; g.store <= TXNS_LOOSE; g.store++) {
        struct tally tally = run_many(g, 6000);
        for (size_t i = 0; i < sizeof all.anomalies / sizeof all.anomalies[0]; i++) {
            all.anomalies[i] += tally.anomalies[i];
        }
        for (size_t i = 0; i < sizeof all.needs / sizeof all.needs[0]; i++) {
            all.needs[i] += tally.needs[i];
        }
    }
    for (int i = TXN_GARBAGE_READ; i <= TXN_G2; i++) {
        bool lists_only = i == TXN_DUPLICATE_ELEMENTS;
        if (!lists_only || g.recording == TXN_LISTS) {
            assert_true(all.anomalies[i] > 50);
        }
    }
    assert_true(all.needs[TXN_SESSION_SERIALIZABLE] > 200);
    assert_true(all.needs[TXN_STRICT_SERIALIZABLE] > 200);
}

static void test_versions(void **state)
{
    (void)state;
    run_stores((struct txns_generate){.recording = TXN_VERSIONS,
                                      .clients = 3,
                                      .keys = 3,
                                      .ops = 4,
                                      .length_us = 20,
                                      .aborted_ppm = 100000,
                                      .unknown_ppm = 150000});
}

static void test_lists(void **state)
{
    (void)state;
    run_stores((struct txns_generate){.recording = TXN_LISTS,
                                      .clients = 3,
                                      .keys = 2,
                                      .ops = 4,
                                      .length_us = 20,
                                      .aborted_ppm = 100000,
                                      .unknown_ppm = 150000});
}

/* Few reads leave many elements that no list shows. */
static void test_short(void **state)
{
    (void)state;
    struct txns_generate g = {.clients = 4,
                              .keys = 2,
                              .ops = 2,
                              .length_us = 10,
                              .aborted_ppm = 50000,
                              .unknown_ppm = 300000};
    for (g.recording = TXN_VERSIONS; g.recording <= TXN_LISTS; g.recording++) {
        g.store = TXNS_LATE;
        (void)run_many(g, 8000);
        g.store = TXNS_SNAPSHOT;
        (void)run_many(g, 8000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
