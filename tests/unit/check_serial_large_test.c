/* Histories of transactions as long as a campaign's: the checker must stay fast, and find the one
 * thing that is wrong and nothing larger around it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <string.h>

#include "support/check_txns.h"

#define TXNS 100000u
#define OPS 4u

static void generate(struct txns *t, const struct txns_generate *g, uint64_t seed)
{
    struct random r;
    random_init(&r, seed);
    txns_init(t, g->recording, (size_t)g->txns + 8, (size_t)(g->txns + 8) * g->ops,
              g->recording == TXN_LISTS ? (size_t)g->txns * 200 : 0);
    txns_generate(&r, g, t);
}

static void expect(const struct txns *t, enum txn_level level, enum check_result expected,
                   const char *title)
{
    struct txn_report report;
    enum check_result result = check_transactions(&t->history, level, &report);
    if (result != expected || strncmp(report.text, title, strlen(title)) != 0) {
        fail_msg("%d, not %d: %s", result, expected, report.text);
    }
    if (expected == CHECK_ACCEPTED) {
        /* A few edges for each, whatever overlaps. */
        assert_true(report.edges < (size_t)TXNS * 4 * OPS);
        assert_true(report.nodes <= (size_t)TXNS * 4);
    }
}

static void test_versions(void **state)
{
    (void)state;
    struct txns t;
    generate(&t,
             &(struct txns_generate){.recording = TXN_VERSIONS,
                                     .txns = TXNS,
                                     .clients = 50,
                                     .keys = 1000,
                                     .ops = OPS,
                                     .length_us = 100,
                                     .aborted_ppm = 50000,
                                     .unknown_ppm = 10000},
             1);
    expect(&t, TXN_SERIALIZABLE, CHECK_ACCEPTED, "");
    expect(&t, TXN_SESSION_SERIALIZABLE, CHECK_ACCEPTED, "");
    expect(&t, TXN_STRICT_SERIALIZABLE, CHECK_ACCEPTED, "");
    /* The last transaction of all did not see the first write of a key. */
    uint64_t last_us = 0;
    for (size_t i = 0; i < t.history.n; i++) {
        last_us = t.txns[i].end_us > last_us ? t.txns[i].end_us : last_us;
    }
    txns_add(&t, last_us + 1, last_us + 2, 60, "r7=0");
    expect(&t, TXN_SERIALIZABLE, CHECK_ACCEPTED, "");
    expect(&t, TXN_STRICT_SERIALIZABLE, CHECK_REFUSED,
           "G-single-realtime (stale read): a cycle of 2 transactions");
    txns_add(&t, last_us + 1, last_us + 2, 61, "r5000=0 w5001=1@1");
    txns_add(&t, last_us + 1, last_us + 2, 62, "r5001=0 w5000=1@1");
    expect(&t, TXN_SERIALIZABLE, CHECK_REFUSED, "G2 (write skew): a cycle of 2 transactions");
    txns_deinit(&t);
}

static void test_lists(void **state)
{
    (void)state;
    struct txns t;
    generate(&t,
             &(struct txns_generate){.recording = TXN_LISTS,
                                     .txns = TXNS,
                                     .clients = 50,
                                     .keys = 5,
                                     .keys_from = 100,
                                     .ops = OPS,
                                     .length_us = 100,
                                     .aborted_ppm = 50000,
                                     .unknown_ppm = 10000},
             2);
    expect(&t, TXN_SERIALIZABLE, CHECK_ACCEPTED, "");
    expect(&t, TXN_SESSION_SERIALIZABLE, CHECK_ACCEPTED, "");
    expect(&t, TXN_STRICT_SERIALIZABLE, CHECK_ACCEPTED, "");
    txns_deinit(&t);
}

/* One list of which nobody reads the end: as many elements come after it as reads before them. */
static void test_tail(void **state)
{
    (void)state;
    struct txns t;
    txns_init(&t, TXN_LISTS, TXNS, TXNS, 1);
    for (uint32_t i = 0; i < TXNS / 2; i++) {
        txns_add(&t, 2 * i, 2 * i + 1, i, "r7=[]");
        struct txn *txn = txns_add(&t, TXNS + 2 * i, TXNS + 2 * i + 1, i, "w7=1");
        t.ops[txn->ops - t.ops].value = i + 1;
    }
    expect(&t, TXN_STRICT_SERIALIZABLE, CHECK_ACCEPTED, "");
    t.txns[0].begin_us = 3 * TXNS;
    t.txns[0].end_us = 3 * TXNS;
    expect(&t, TXN_SERIALIZABLE, CHECK_ACCEPTED, "");
    expect(&t, TXN_STRICT_SERIALIZABLE, CHECK_REFUSED,
           "G-single-realtime (stale read): a cycle of 2 transactions");
    txns_deinit(&t);
}

/* A store that does not isolate at all: one huge knot, in which a short cycle is still found. */
static void test_knot(void **state)
{
    (void)state;
    struct txns t;
    generate(&t,
             &(struct txns_generate){.recording = TXN_VERSIONS,
                                     .store = TXNS_SNAPSHOT,
                                     .txns = TXNS,
                                     .clients = 50,
                                     .keys = 100,
                                     .ops = OPS,
                                     .length_us = 100},
             3);
    struct txn_report report;
    assert_int_equal(check_transactions(&t.history, TXN_STRICT_SERIALIZABLE, &report),
                     CHECK_REFUSED);
    assert_int_equal(report.anomaly, TXN_G_SINGLE);
    assert_int_equal(report.cycle_n, 2);
    txns_deinit(&t);
}

/* A cycle through everything: it is found, and its report is cut. */
static void test_long_cycle(void **state)
{
    (void)state;
    struct txns t;
    txns_init(&t, TXN_VERSIONS, TXNS, (size_t)TXNS * 2, 0);
    for (uint32_t i = 0; i < TXNS; i++) {
        struct txn *txn = txns_add(&t, 0, 9, i, "r1=1@1 w2=1@1");
        struct txn_op *ops = &t.ops[txn->ops - t.ops];
        ops[0].key = i;
        ops[1].key = (i + 1) % TXNS;
    }
    struct txn_report report;
    assert_int_equal(check_transactions(&t.history, TXN_SERIALIZABLE, &report), CHECK_REFUSED);
    assert_int_equal(report.anomaly, TXN_G1C);
    assert_int_equal(report.cycle_n, TXNS);
    size_t n = strlen(report.text);
    assert_true(n < sizeof report.text);
    assert_string_equal(report.text + n - 4, "...\n");
    txns_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),   cmocka_unit_test(test_lists),
        cmocka_unit_test(test_tail),       cmocka_unit_test(test_knot),
        cmocka_unit_test(test_long_cycle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
