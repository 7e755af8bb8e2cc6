/* Histories of transactions that have names: the anomalies of Adya's thesis and of Elle, and
 * histories that only look like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/check_txns.h"

/* A history under construction; all tests share the way it begins and ends. */
static struct txns begin(enum txn_recording recording)
{
    struct txns t;
    txns_init(&t, recording, 10, 64, 256);
    return t;
}

static struct txn_report check_at(struct txns *t, enum txn_level level, enum check_result expected)
{
    struct txn_report report;
    enum check_result result = check_transactions(&t->history, level, &report);
    if (result != expected) {
        txn_history_print(&t->history, stderr);
        fail_msg("level %d: %d, not %d: %s", level, result, expected, report.text);
    }
    assert_int_equal(txns_brute_accepts(&t->history, level), expected == CHECK_ACCEPTED);
    return report;
}

static void accept(struct txns *t)
{
    (void)check_at(t, TXN_SERIALIZABLE, CHECK_ACCEPTED);
    (void)check_at(t, TXN_SESSION_SERIALIZABLE, CHECK_ACCEPTED);
    (void)check_at(t, TXN_STRICT_SERIALIZABLE, CHECK_ACCEPTED);
    txns_deinit(t);
}

/* Refused at every level, for this reason. */
static void refuse(struct txns *t, enum txn_anomaly anomaly, size_t cycle_n, const char *title)
{
    for (int level = TXN_SERIALIZABLE; level <= TXN_STRICT_SERIALIZABLE; level++) {
        struct txn_report report = check_at(t, (enum txn_level)level, CHECK_REFUSED);
        if (strncmp(report.text, title, strlen(title)) != 0) {
            fail_msg("not %s: %s", title, report.text);
        }
        assert_int_equal(report.anomaly, anomaly);
        assert_int_equal(report.needs, TXN_SERIALIZABLE);
        assert_int_equal(report.cycle_n, cycle_n);
    }
    txns_deinit(t);
}

/* Serializable; refused at one level, where the order of sessions or of time counts. */
static void refuse_only(struct txns *t, enum txn_level level, enum txn_anomaly anomaly,
                        const char *title)
{
    (void)check_at(t, TXN_SERIALIZABLE, CHECK_ACCEPTED);
    struct txn_report report = check_at(t, level, CHECK_REFUSED);
    if (strncmp(report.text, title, strlen(title)) != 0) {
        fail_msg("not %s: %s", title, report.text);
    }
    assert_int_equal(report.anomaly, anomaly);
    assert_int_equal(report.needs, level);
    txns_deinit(t);
}

static void test_accepted(void **state)
{
    (void)state;
    struct txns t = begin(TXN_VERSIONS);
    accept(&t);

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "r1=0 w1=10@1 r1=10@1");
    txns_add(&t, 2, 3, 2, "r1=10@1 w1=11@4 w2=12@1");
    txns_add(&t, 4, 5, 1, "r1=11@4 r2=12@1 r3=0");
    accept(&t);

    t = begin(TXN_LISTS);
    txns_add(&t, 0, 1, 1, "r1=[] w1=10 r1=[10] w1=11 r1=[10 11]");
    txns_add(&t, 2, 3, 2, "r1=[10 11] w1=12");
    txns_add(&t, 4, 5, 1, "r1=[10 11 12] r2=[]");
    accept(&t);

    /* A read-only transaction takes place before a write that ended earlier than it began to run:
     * both were in flight. */
    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 5, 1, "w1=10@1 w2=11@1");
    txns_add(&t, 1, 9, 2, "r1=0 r2=0");
    txns_add(&t, 2, 7, 3, "r1=10@1 r2=11@1");
    accept(&t);
}

static void test_single_answers(void **state)
{
    (void)state;
    struct txns t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "r1=7@3");
    refuse(&t, TXN_GARBAGE_READ, 1, "garbage read: key 1: nobody wrote 7");

    t = begin(TXN_LISTS);
    txns_add_as(&t, TXN_ABORTED, 0, 1, 1, "w1=10");
    txns_add(&t, 2, 3, 2, "r1=[10]");
    refuse(&t, TXN_ABORTED_READ, 2, "G1a (aborted read)");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 9, 1, "w1=10@1 w1=11@2");
    txns_add(&t, 1, 2, 2, "r1=10@1");
    refuse(&t, TXN_INTERMEDIATE_READ, 2, "G1b (intermediate read)");

    t = begin(TXN_LISTS);
    txns_add(&t, 0, 9, 1, "w1=10 w1=11");
    txns_add(&t, 1, 2, 2, "r1=[10]");
    txns_add(&t, 10, 12, 2, "r1=[10 11]");
    refuse(&t, TXN_INTERMEDIATE_READ, 2, "G1b (intermediate read)");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w1=10@1 r1=0");
    refuse(&t, TXN_INTERNAL, 1, "internal inconsistency");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "r1=10@1 w1=10@1");
    refuse(&t, TXN_INTERNAL, 1, "internal inconsistency: key 1: 10 was read before");

    /* A read that cannot be repeated. */
    t = begin(TXN_LISTS);
    txns_add(&t, 0, 9, 1, "r1=[] r1=[10]");
    txns_add(&t, 1, 2, 2, "w1=10");
    refuse(&t, TXN_INTERNAL, 1, "internal inconsistency");

    /* Another's element got behind the own one. */
    t = begin(TXN_LISTS);
    txns_add(&t, 0, 9, 1, "w1=10 r1=[10 11]");
    txns_add(&t, 1, 2, 2, "w1=11");
    refuse(&t, TXN_INTERNAL, 1, "internal inconsistency");

    t = begin(TXN_LISTS);
    txns_add(&t, 0, 1, 1, "w1=10");
    txns_add(&t, 2, 3, 2, "r1=[10 10]");
    refuse(&t, TXN_DUPLICATE_ELEMENTS, 1, "duplicate elements");

    t = begin(TXN_LISTS);
    txns_add(&t, 0, 1, 1, "w1=10");
    txns_add(&t, 0, 1, 2, "w1=11");
    txns_add(&t, 2, 3, 3, "r1=[10 11]");
    txns_add(&t, 2, 3, 4, "r1=[11]");
    refuse(&t, TXN_INCOMPATIBLE_ORDER, 2, "incompatible order");

    /* Two transactions each saw their own element in the same place. */
    t = begin(TXN_LISTS);
    txns_add(&t, 0, 9, 1, "w1=10 r1=[10]");
    txns_add(&t, 0, 9, 2, "w1=11 r1=[11]");
    refuse(&t, TXN_INCOMPATIBLE_ORDER, 2, "incompatible order");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w1=10@1");
    txns_add(&t, 0, 1, 2, "w1=11@1");
    refuse(&t, TXN_INCOMPATIBLE_ORDER, 2, "incompatible order: key 1: version 1");
}

static void test_cycles(void **state)
{
    (void)state;
    struct txns t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 9, 1, "w1=10@1 w2=11@2");
    txns_add(&t, 0, 9, 2, "w1=20@2 w2=21@1");
    refuse(&t, TXN_G0, 2, "G0 (dirty write): a cycle of 2 transactions");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 9, 1, "w1=10@1 r2=20@1");
    txns_add(&t, 0, 9, 2, "w2=20@1 r1=10@1");
    refuse(&t, TXN_G1C, 2, "G1c (circular information flow): a cycle of 2 transactions");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w1=10@1");
    txns_add(&t, 2, 9, 2, "r1=10@1 w1=20@2");
    txns_add(&t, 2, 9, 3, "r1=10@1 w1=30@3");
    refuse(&t, TXN_G_SINGLE, 2, "G-single (lost update): a cycle of 2 transactions");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 9, 1, "r1=0 r2=21@1");
    txns_add(&t, 0, 9, 2, "w1=20@1 w2=21@1");
    refuse(&t, TXN_G_SINGLE, 2, "G-single (read skew): a cycle of 2 transactions");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 9, 1, "r1=0 r2=0 w1=10@1");
    txns_add(&t, 0, 9, 2, "r1=0 r2=0 w2=20@1");
    refuse(&t, TXN_G2, 2, "G2 (write skew): a cycle of 2 transactions");

    /* Fekete, O'Neil and O'Neil, "A Read-Only Transaction Anomaly Under Snapshot Isolation". */
    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 9, 1, "r1=0 r2=0 w1=10@1");
    txns_add(&t, 1, 2, 2, "r2=0 w2=20@1");
    txns_add(&t, 3, 4, 3, "r1=0 r2=20@1");
    refuse(&t, TXN_G2, 3, "G2: a cycle of 3 transactions");

    /* Two updates of a list, neither of which anybody saw: whichever was first is lost. */
    t = begin(TXN_LISTS);
    txns_add(&t, 0, 9, 1, "r1=[] w1=10");
    txns_add(&t, 0, 9, 2, "r1=[] w1=20");
    refuse(&t, TXN_G2, 2, "G2 (lost update): a cycle of 2 transactions");

    /* The long fork: two readers see two writes in two orders. */
    t = begin(TXN_LISTS);
    txns_add(&t, 0, 9, 1, "w1=10");
    txns_add(&t, 0, 9, 2, "w2=20");
    txns_add(&t, 0, 9, 3, "r1=[10] r2=[]");
    txns_add(&t, 0, 9, 4, "r1=[] r2=[20]");
    refuse(&t, TXN_G2, 4, "G2: a cycle of 4 transactions");
}

static void test_sessions_and_time(void **state)
{
    (void)state;
    struct txns t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w1=10@1");
    txns_add(&t, 2, 3, 2, "r1=0");
    refuse_only(&t, TXN_STRICT_SERIALIZABLE, TXN_G_SINGLE, "G-single-realtime (stale read)");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w1=10@1");
    txns_add(&t, 1, 3, 2, "r1=0");
    accept(&t);

    /* An append that nobody ever saw: lost, as one that began later does not find it. */
    t = begin(TXN_LISTS);
    txns_add(&t, 0, 1, 1, "w1=10");
    txns_add(&t, 2, 3, 2, "r1=[]");
    refuse_only(&t, TXN_STRICT_SERIALIZABLE, TXN_G_SINGLE, "G-single-realtime (stale read)");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w1=10@1");
    txns_add(&t, 2, 3, 1, "r1=0");
    refuse_only(&t, TXN_SESSION_SERIALIZABLE, TXN_G_SINGLE, "G-single-process (stale read)");

    /* The versions go against time, though no read tells. */
    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w1=10@2");
    txns_add(&t, 2, 3, 2, "w1=20@1");
    refuse_only(&t, TXN_STRICT_SERIALIZABLE, TXN_G0, "G0-realtime (dirty write)");

    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "r1=10@1");
    txns_add(&t, 2, 3, 2, "w1=10@1");
    refuse_only(&t, TXN_STRICT_SERIALIZABLE, TXN_G1C, "G1c-realtime (circular information flow)");

    /* Time counts through others that have nothing to do with it. */
    t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 2, 1, "w1=10@1");
    txns_add(&t, 3, 5, 2, "w2=20@1");
    txns_add(&t, 4, 7, 3, "r3=0");
    txns_add(&t, 6, 9, 4, "r1=0 r2=20@1");
    refuse_only(&t, TXN_STRICT_SERIALIZABLE, TXN_G_SINGLE, "G-single-realtime (stale read)");
}

static void test_unknown(void **state)
{
    (void)state;
    struct txns t = begin(TXN_VERSIONS);
    txns_add_as(&t, TXN_UNKNOWN, 0, 0, 1, "w1=10 w2=11");
    txns_add(&t, 2, 3, 2, "r1=0");
    txns_add(&t, 4, 5, 2, "r1=10@1");
    accept(&t);

    t = begin(TXN_LISTS);
    txns_add_as(&t, TXN_UNKNOWN, 0, 0, 1, "w1=10 w2=11");
    txns_add(&t, 2, 3, 2, "r1=[] r2=[]");
    accept(&t);

    /* Seen in one list, so it took effect as a whole. */
    t = begin(TXN_LISTS);
    txns_add_as(&t, TXN_UNKNOWN, 0, 0, 1, "w1=10 w2=11");
    txns_add(&t, 2, 3, 2, "r1=[10] r2=[]");
    refuse(&t, TXN_G_SINGLE, 2, "G-single (read skew)");

    t = begin(TXN_LISTS);
    txns_add_as(&t, TXN_UNKNOWN, 9, 9, 1, "w1=10");
    txns_add(&t, 2, 3, 2, "r1=[10]");
    refuse_only(&t, TXN_STRICT_SERIALIZABLE, TXN_G1C, "G1c-realtime");

    /* The client went on before its transaction took effect. */
    t = begin(TXN_VERSIONS);
    txns_add_as(&t, TXN_UNKNOWN, 0, 0, 1, "w1=10");
    txns_add(&t, 1, 2, 1, "r1=0");
    txns_add(&t, 3, 4, 2, "r1=10@1");
    accept(&t);

    /* Only a read knows the version, and puts the write before one that was read earlier. */
    t = begin(TXN_VERSIONS);
    txns_add_as(&t, TXN_UNKNOWN, 0, 0, 1, "w1=10");
    txns_add(&t, 1, 2, 2, "w1=20@2");
    txns_add(&t, 3, 4, 2, "r1=20@2");
    txns_add(&t, 5, 6, 3, "r1=10@1");
    refuse_only(&t, TXN_STRICT_SERIALIZABLE, TXN_G_SINGLE, "G-single-realtime (stale read)");
}

static void test_reports(void **state)
{
    (void)state;
    struct txn_report report;
    struct txns t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w7=10@1");
    txns_add(&t, 2, 9, 2, "r7=10@1 w7=20@2");
    txns_add(&t, 3, 9, 3, "r7=10@1 w7=30@3");
    assert_int_equal(check_transactions(&t.history, TXN_STRICT_SERIALIZABLE, &report),
                     CHECK_REFUSED);
    assert_string_equal(report.text,
                        "G-single (lost update): a cycle of 2 transactions:\n"
                        "  T1 2..9 client 2: read 7 -> 10 (version 1), write 7 = 20 (version 2)\n"
                        "  T2 3..9 client 3: read 7 -> 10 (version 1), write 7 = 30 (version 3)\n"
                        "T1 wrote key 7 before T2 did (ww)\n"
                        "T2 read key 7 as it was before T1 wrote it (rw)\n");
    assert_int_equal(report.cycle[0], 1);
    assert_int_equal(report.cycle[1], 2);
    txns_deinit(&t);

    t = begin(TXN_LISTS);
    txns_add_as(&t, TXN_UNKNOWN, 0, 0, 1, "w7=10 r7");
    txns_add(&t, 0, 3, 1, "w7=11");
    txns_add(&t, 4, 5, 2, "r7=[10]");
    assert_int_equal(check_transactions(&t.history, TXN_STRICT_SERIALIZABLE, &report),
                     CHECK_REFUSED);
    assert_string_equal(report.text, "G-single-realtime (stale read): a cycle of 2 transactions:\n"
                                     "  T1 0..3 client 1: append 7 11\n"
                                     "  T2 4..5 client 2: read 7 -> [10]\n"
                                     "T1 ended at 3, before T2 began at 4\n"
                                     "T2 read key 7 as it was before T1 wrote it (rw)\n");
    char line[200];
    (void)txn_print(&t.history, 0, line, sizeof line);
    assert_string_equal(line, "T0 0.. client 1 (outcome unknown): append 7 10, read 7");
    assert_int_equal(txn_print(&t.history, 2, line, 6), strlen("T2 4..5 client 2: read 7 -> [10]"));
    assert_string_equal(line, "T2 4.");
    txns_deinit(&t);

    assert_string_equal(txn_anomaly_name(TXN_G1C), "G1c");
    assert_string_equal(txn_anomaly_name((enum txn_anomaly)99), "?");
}

static void test_unsound(void **state)
{
    (void)state;
    struct txn_report report;
    struct txns t = begin(TXN_VERSIONS);
    txns_add(&t, 0, 1, 1, "w7=10@1");
    txns_add(&t, 2, 3, 1, "w7=10@2");
    assert_int_equal(check_transactions(&t.history, TXN_SERIALIZABLE, &report), CHECK_TOO_HARD);
    assert_string_equal(report.text, "key 7: 10 is written twice\n");
    txns_deinit(&t);

    t = begin(TXN_VERSIONS);
    struct txn *txn = txns_add(&t, 1, 2, 1, "w7=10");
    assert_int_equal(check_transactions(&t.history, TXN_SERIALIZABLE, &report), CHECK_TOO_HARD);
    assert_string_equal(report.text, "key 7: T0 committed a write of no version\n");
    assert_null(txn_invalid(txn, TXN_VERSIONS));
    txn->end_us = 0;
    assert_non_null(txn_invalid(txn, TXN_VERSIONS));
    txn->outcome = TXN_UNKNOWN;
    assert_null(txn_invalid(txn, TXN_VERSIONS));
    txn->outcome = 3;
    assert_non_null(txn_invalid(txn, TXN_VERSIONS));
    assert_non_null(txn_invalid(txns_add(&t, 0, UINT64_MAX, 1, ""), TXN_VERSIONS));
    assert_non_null(txn_invalid(txns_add(&t, 0, 1, 1, "w7=0"), TXN_VERSIONS));
    assert_non_null(txn_invalid(txns_add(&t, 0, 1, 1, "r7=5"), TXN_VERSIONS));
    assert_null(txn_invalid(txns_add(&t, 0, 1, 1, "r7=[1 2]"), TXN_LISTS));
    txns_deinit(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted), cmocka_unit_test(test_single_answers),
        cmocka_unit_test(test_cycles),   cmocka_unit_test(test_sessions_and_time),
        cmocka_unit_test(test_unknown),  cmocka_unit_test(test_reports),
        cmocka_unit_test(test_unsound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
