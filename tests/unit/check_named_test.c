/* Histories that have names: each is a mistake a store can make, or something that only looks like
 * one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/check_histories.h"

#define OPS_MAX 10

/* Runs all judges that can decide the history, which must agree. */
static void judge(const char *name, enum check_result expected, const struct history_op *ops,
                  size_t n)
{
    struct history_op copy[OPS_MAX];
    assert_true(n <= OPS_MAX);
    memcpy(copy, ops, n * sizeof *ops);
    struct history history = {copy, n};
    struct check_report report;
    if (check_linearizable(&history, 0, &report) != expected) {
        print_error("%s:\n", name);
        history_print(&history, stderr);
        fail_msg("check_linearizable is wrong: %s", report.text);
    }
    assert_int_equal(report.text[0] == '\0', expected == CHECK_ACCEPTED);
    assert_int_equal(brute_accepts(&history), expected == CHECK_ACCEPTED);
    enum check_result registers = check_registers(&history, &report);
    if (registers != expected && registers != CHECK_TOO_HARD) {
        print_error("%s:\n", name);
        history_print(&history, stderr);
        fail_msg("check_registers is wrong: %s", report.text);
    }
}

#define JUDGE(name, expected, ...)                                                                 \
    do {                                                                                           \
        const struct history_op ops_[] = {__VA_ARGS__};                                            \
        judge(name, expected, ops_, sizeof ops_ / sizeof ops_[0]);                                 \
    } while (0)
#define ACCEPT(name, ...) JUDGE(name, CHECK_ACCEPTED, __VA_ARGS__)
#define REFUSE(name, ...) JUDGE(name, CHECK_REFUSED, __VA_ARGS__)

static void test_reads(void **state)
{
    (void)state;
    ACCEPT("one read of an absent key", op_read(0, 1, ABSENT));
    ACCEPT("read after write", op_write(0, 1, 5), op_read(2, 3, 5));
    REFUSE("stale read", op_write(0, 1, 1), op_write(2, 3, 2), op_read(4, 5, 1));
    REFUSE("absent after a write", op_write(0, 1, 1), op_read(2, 3, ABSENT));
    REFUSE("a value never written", op_write(0, 1, 1), op_read(2, 3, 7));
    REFUSE("a value not yet written", op_read(0, 1, 1), op_write(2, 3, 1));
    REFUSE("the value goes back", op_write(0, 1, 1), op_write(2, 9, 2), op_read(3, 4, 2),
           op_read(5, 6, 1));
    ACCEPT("old, then new, while the write goes on", op_write(0, 1, 1), op_write(2, 9, 2),
           op_read(3, 4, 1), op_read(5, 6, 2));
    REFUSE("new, then old, by different readers", op_write(0, 1, 1), op_write(2, 20, 2),
           op_read(3, 10, 2), op_read(11, 19, 1));
    ACCEPT("new and old by overlapping readers", op_write(0, 1, 1), op_write(2, 20, 2),
           op_read(3, 12, 2), op_read(11, 19, 1));
    ACCEPT("equal times are concurrent", op_write(0, 5, 1), op_read(5, 6, ABSENT));
    ACCEPT("all at one moment", op_write(3, 3, 1), op_read(3, 3, ABSENT), op_write(3, 3, 2),
           op_read(3, 3, 1));
    REFUSE("two readers see two writes in two orders", op_write(0, 9, 1), op_write(0, 9, 2),
           op_read(10, 19, 1), op_read(10, 19, 2));
    REFUSE("each of two concurrent writes read after the other", op_write(0, 3, 1),
           op_write(0, 3, 2), op_read(4, 5, 1), op_read(6, 7, 2));
    REFUSE("one value around another's whole life", op_write(0, 1, 1), op_write(2, 3, 2),
           op_read(2, 3, 2), op_read(4, 5, 1));
    ACCEPT("nothing happened", op_failed(op_write(0, 1, 1)));
}

static void test_keys(void **state)
{
    (void)state;
    ACCEPT("keys do not mix", op_of_key(op_write(0, 1, 1), 1), op_of_key(op_write(2, 3, 2), 2),
           op_of_key(op_read(4, 5, 1), 1), op_of_key(op_read(4, 5, 2), 2),
           op_of_key(op_read(4, 5, ABSENT), 3));
    REFUSE("one of two keys is stale", op_of_key(op_write(0, 1, 1), 1),
           op_of_key(op_write(0, 1, 1), 2), op_of_key(op_read(2, 3, 1), 1),
           op_of_key(op_read(2, 3, ABSENT), 2));
}

static void test_unknown_writes(void **state)
{
    (void)state;
    ACCEPT("seen at once", op_unknown(op_write(0, 0, 1)), op_read(1, 2, 1));
    ACCEPT("seen late", op_unknown(op_write(0, 0, 1)), op_read(5, 6, ABSENT), op_write(7, 8, 2),
           op_read(9, 10, 2), op_read(11, 12, 1));
    ACCEPT("never seen", op_unknown(op_write(0, 0, 1)), op_read(5, 6, ABSENT));
    REFUSE("seen, then not", op_unknown(op_write(0, 0, 1)), op_read(1, 2, 1),
           op_read(3, 4, ABSENT));
    REFUSE("seen, overwritten, seen again", op_unknown(op_write(0, 0, 1)), op_read(1, 2, 1),
           op_write(3, 4, 2), op_read(5, 6, 2), op_read(7, 8, 1));
    REFUSE("seen before it was sent", op_read(0, 1, 1), op_unknown(op_write(2, 2, 1)));
    REFUSE("a failed write seen", op_failed(op_write(0, 1, 1)), op_read(2, 3, 1));
    ACCEPT("a failed write tried again", op_failed(op_write(0, 1, 1)), op_write(2, 3, 1),
           op_read(4, 5, 1));
    ACCEPT("a lost read says nothing", op_write(0, 1, 1), op_unknown(op_read(2, 3, 9)),
           op_read(4, 5, 1));
    REFUSE("two unknown writes seen in both orders", op_unknown(op_write(0, 0, 1)),
           op_unknown(op_write(0, 0, 2)), op_read(1, 2, 1), op_read(3, 4, 2), op_read(5, 6, 1));
}

static void test_conditions(void **state)
{
    (void)state;
    ACCEPT("a chain of SET_IF", op_write(0, 1, 1), op_set_if(2, 3, 1, 2, true),
           op_set_if(4, 5, 2, 3, true), op_set_if(6, 7, 2, 4, false), op_read(8, 9, 3));
    REFUSE("lost update: two SET_IF succeed over the same value", op_write(0, 1, 1),
           op_set_if(2, 9, 1, 2, true), op_set_if(2, 9, 1, 3, true));
    ACCEPT("two SET_IF, and the value came back between", op_write(0, 1, 1),
           op_set_if(2, 9, 1, 2, true), op_set_if(2, 9, 1, 3, true), op_write(2, 9, 1));
    REFUSE("a SET_IF that had to hold did not", op_write(0, 1, 1), op_set_if(2, 3, 1, 2, false));
    ACCEPT("a SET_IF did not hold, as an unknown write came between", op_write(0, 1, 1),
           op_unknown(op_write(0, 0, 7)), op_set_if(2, 3, 1, 2, false));
    REFUSE("the same, but the value is there again", op_write(0, 1, 1),
           op_unknown(op_write(0, 0, 7)), op_set_if(2, 3, 1, 2, false), op_read(4, 5, 1));
    ACCEPT("SET_IF of an absent key", op_set_if(0, 1, ABSENT, 2, true), op_read(2, 3, 2));
    REFUSE("NX twice", op_set_absent(0, 9, 1, true), op_set_absent(0, 9, 2, true));
    ACCEPT("NX, delete, NX", op_set_absent(0, 9, 1, true), op_set_absent(0, 9, 2, true),
           op_delete(0, 9));
    REFUSE("NX failed on an absent key", op_set_absent(0, 1, 1, false));
    ACCEPT("NX failed because an unknown one had won", op_unknown(op_set_absent(0, 0, 1, false)),
           op_set_absent(1, 2, 2, false), op_read(3, 4, 1));
    REFUSE("NX failed because an unknown one had won, which is not seen",
           op_unknown(op_set_absent(0, 0, 1, false)), op_set_absent(1, 2, 2, false),
           op_read(3, 4, ABSENT));
    ACCEPT("unknown SET_IFs in a chain", op_write(0, 1, 1),
           op_unknown(op_set_if(2, 2, 1, 2, false)), op_unknown(op_set_if(2, 2, 2, 3, false)),
           op_read(4, 5, 3));
    REFUSE("a chain with a link missing", op_write(0, 1, 1),
           op_unknown(op_set_if(2, 2, 1, 2, false)), op_unknown(op_set_if(2, 2, 4, 3, false)),
           op_read(4, 5, 3));
}

static void test_deletes(void **state)
{
    (void)state;
    ACCEPT("written, deleted, gone", op_write(0, 1, 1), op_delete(2, 3), op_read(4, 5, ABSENT));
    REFUSE("a deleted value rises again", op_write(0, 1, 1), op_delete(2, 3), op_read(4, 5, ABSENT),
           op_read(6, 7, 1));
    REFUSE("a delete is lost", op_write(0, 1, 1), op_delete(2, 3), op_read(4, 5, 1));
    ACCEPT("an unknown delete works late", op_write(0, 1, 1), op_unknown(op_delete(2, 2)),
           op_read(4, 5, 1), op_read(6, 7, ABSENT));
    REFUSE("an unknown delete works twice", op_write(0, 1, 1), op_unknown(op_delete(2, 2)),
           op_read(4, 5, ABSENT), op_write(6, 7, 2), op_read(8, 9, ABSENT));
    REFUSE("DELETE_IF succeeds twice", op_write(0, 1, 1), op_delete_if(2, 9, 1, true),
           op_delete_if(2, 9, 1, true));
    ACCEPT("DELETE_IF of another value", op_write(0, 1, 1), op_delete_if(2, 3, 2, false),
           op_read(4, 5, 1));
}

static void test_counters(void **state)
{
    (void)state;
    ACCEPT("absent counts as 0", op_add(0, 1, 3, 3), op_add(2, 3, -1, 2), op_read(4, 5, 2));
    REFUSE("an ADD counts twice", op_add(0, 1, 1, 1), op_add(2, 3, 1, 3), op_read(4, 5, 3));
    REFUSE("two ADDs return the same", op_add(0, 9, 1, 1), op_add(0, 9, 1, 1));
    ACCEPT("an unknown ADD counted", op_add(0, 1, 1, 1), op_unknown(op_add(2, 2, 1, 0)),
           op_add(4, 5, 1, 3));
    REFUSE("an unknown ADD counted twice", op_add(0, 1, 1, 1), op_unknown(op_add(2, 2, 1, 0)),
           op_add(4, 5, 1, 4));
    REFUSE("an unknown ADD counted, then not", op_unknown(op_add(0, 0, 1, 0)), op_add(1, 2, 1, 2),
           op_add(3, 4, 1, 2));
    ACCEPT("ADD of 0 makes a key", op_add(0, 1, 0, 0), op_set_absent(2, 3, 1, false));
    ACCEPT("ADD over a number written", op_write(0, 1, 0), op_add(2, 3, 2, 2));
    REFUSE("an ADD beyond the largest number", op_write(0, 1, INT64_MAX),
           op_add(2, 3, 1, INT64_MIN));
    REFUSE("an ADD from beyond the least number", op_add(0, 1, INT64_MAX, -3));
    ACCEPT("an unknown ADD does not fit", op_write(0, 1, INT64_MAX), op_unknown(op_add(2, 2, 1, 0)),
           op_read(3, 4, INT64_MAX));
    REFUSE("an unknown ADD does not reach the number that means absent",
           op_write(0, 1, INT64_MIN + 1), op_unknown(op_add(2, 2, -1, 0)), op_read(3, 4, ABSENT));
    ACCEPT("GETSET hands values on", op_getset(0, 9, 1, ABSENT), op_getset(0, 9, 2, 1),
           op_getset(0, 9, 3, 2), op_read(10, 11, 3));
    REFUSE("two GETSETs take the same value", op_write(0, 1, 1), op_getset(2, 9, 2, 1),
           op_getset(2, 9, 3, 1));
    ACCEPT("GETSET of the same value", op_write(0, 1, 1), op_getset(2, 3, 1, 1),
           op_getset(4, 5, 2, 1));
}

static struct history_op op_expire(uint64_t begin_us, uint64_t end_us, uint64_t deadline,
                                   uint64_t not_before_us, bool ok)
{
    return op_until(op_of(HISTORY_EXPIRE, begin_us, end_us, ABSENT, ABSENT, ABSENT, ok), deadline,
                    not_before_us);
}

static struct history_op op_persist(uint64_t begin_us, uint64_t end_us, bool ok)
{
    return op_of(HISTORY_PERSIST, begin_us, end_us, ABSENT, ABSENT, ABSENT, ok);
}

/* deadline: the one seen; 0 with an out of 1: one of unknown name. */
static struct history_op op_ttl(uint64_t begin_us, uint64_t end_us, int64_t out, uint64_t deadline)
{
    return op_until(op_of(HISTORY_TTL, begin_us, end_us, ABSENT, ABSENT, out, false), deadline, 0);
}

static void test_expiry(void **state)
{
    (void)state;
    ACCEPT("gone when its deadline may have come", op_until(op_write(0, 1, 1), 7, 5),
           op_read(4, 5, ABSENT));
    REFUSE("gone too early", op_until(op_write(0, 1, 1), 7, 6), op_read(4, 5, ABSENT));
    ACCEPT("not yet gone", op_until(op_write(0, 1, 1), 7, 5), op_read(90, 95, 1));
    REFUSE("an expired value rises again", op_until(op_write(0, 1, 1), 7, 5), op_read(6, 7, ABSENT),
           op_read(8, 9, 1));
    REFUSE("it expires twice", op_until(op_write(0, 1, 1), 7, 5), op_read(6, 7, ABSENT),
           op_write(8, 9, 2), op_read(10, 11, ABSENT));
    REFUSE("an expiry hits the value that came after", op_until(op_write(0, 1, 1), 7, 5),
           op_write(2, 3, 2), op_read(6, 7, ABSENT));
    ACCEPT("an expired key is free for NX", op_until(op_write(0, 1, 1), 7, 5),
           op_set_absent(6, 7, 2, true), op_read(8, 9, 2));
    ACCEPT("an unknown write expired unseen", op_write(0, 1, 1),
           op_until(op_unknown(op_write(2, 2, 2)), 7, 5), op_read(6, 7, ABSENT));
    REFUSE("the same, before the deadline", op_write(0, 1, 1),
           op_until(op_unknown(op_write(2, 2, 2)), 7, 8), op_read(6, 7, ABSENT));
    struct history_op late = op_until(op_write(0, 1, 1), 7, 5);
    late.not_after_us = 10;
    ACCEPT("seen at the last moment", late, op_read(10, 15, 1));
    REFUSE("seen when it must be gone", late, op_read(11, 15, 1));
    REFUSE("a condition sees it when it must be gone", late, op_set_absent(11, 15, 2, false));
    ACCEPT("written over when it must be gone", late, op_write(11, 15, 2), op_read(16, 17, 2));
    REFUSE("kept when it must be gone", late, op_until(op_write(11, 15, 2), HISTORY_KEEP, 0),
           op_ttl(16, 17, 1, 7));
}

static void test_deadlines(void **state)
{
    (void)state;
    struct history_op kept = op_until(op_write(2, 3, 2), HISTORY_KEEP, 0);
    ACCEPT("EXPIRE, then gone", op_write(0, 1, 1), op_expire(2, 3, 7, 5, true),
           op_read(6, 7, ABSENT));
    REFUSE("EXPIRE of nothing says it did", op_expire(2, 3, 7, 5, true));
    ACCEPT("EXPIRE of nothing", op_expire(2, 3, 7, 5, false), op_write(4, 5, 1), op_read(6, 7, 1));
    REFUSE("EXPIRE had no effect, yet the key expires", op_expire(0, 1, 7, 2, false),
           op_write(2, 3, 1), op_read(6, 7, ABSENT));
    REFUSE("expired after PERSIST", op_until(op_write(0, 1, 1), 7, 5), op_persist(2, 3, true),
           op_read(6, 7, ABSENT));
    REFUSE("PERSIST of a key without a deadline says it did", op_write(0, 1, 1),
           op_persist(2, 3, true));
    ACCEPT("PERSIST of a key without a deadline", op_write(0, 1, 1), op_persist(2, 3, false));
    REFUSE("PERSIST missed the deadline", op_until(op_write(0, 1, 1), 7, 5),
           op_persist(2, 3, false));
    ACCEPT("PERSIST was too late", op_until(op_write(0, 1, 1), 7, 5), op_persist(6, 7, false),
           op_read(8, 9, ABSENT));
    ACCEPT("a deadline is kept", op_until(op_write(0, 1, 1), 7, 5), kept, op_ttl(4, 4, 1, 7),
           op_read(6, 7, ABSENT));
    REFUSE("a deadline that was kept is gone", op_until(op_write(0, 1, 1), 7, 9), kept,
           op_ttl(4, 5, 0, 0));
    REFUSE("a deadline that was written over is there", op_until(op_write(0, 1, 1), 7, 9),
           op_write(2, 3, 2), op_ttl(4, 5, 1, 7));
    REFUSE("a deadline that nobody set", op_write(0, 1, 1), op_ttl(2, 3, 1, 7));
    REFUSE("another deadline than the one set", op_until(op_write(0, 1, 1), 7, 9),
           op_until(op_unknown(op_write(9, 9, 2)), 8, 20), op_ttl(2, 3, 1, 8));
    ACCEPT("a deadline of unknown name", op_until(op_write(0, 1, 1), 7, 9), op_ttl(2, 3, 1, 0));
    ACCEPT("TTL of a key without a deadline", op_write(0, 1, 1), op_ttl(2, 3, 0, 0));
    ACCEPT("TTL of no key", op_ttl(2, 3, ABSENT, 0));
    ACCEPT("ADD keeps the deadline", op_until(op_write(0, 1, 1), 7, 9), op_add(2, 3, 2, 3),
           op_ttl(4, 5, 1, 7));
    ACCEPT("GETEX takes the deadline away", op_until(op_write(0, 1, 1), 7, 9),
           op_of(HISTORY_GETEX, 2, 3, ABSENT, ABSENT, 1, false), op_ttl(4, 5, 0, 0));
    REFUSE("GETEX took the deadline away", op_until(op_write(0, 1, 1), 7, 5),
           op_of(HISTORY_GETEX, 2, 3, ABSENT, ABSENT, 1, false), op_read(9, 10, ABSENT));
}

static void test_presence(void **state)
{
    (void)state;
    const int64_t no = ABSENT;
    ACCEPT("XX of a key", op_write(0, 1, 1), op_of(HISTORY_SET_PRESENT, 2, 3, 2, no, no, true),
           op_read(4, 5, 2));
    REFUSE("XX of nothing", op_of(HISTORY_SET_PRESENT, 2, 3, 2, no, no, true));
    REFUSE("XX of a key does nothing", op_write(0, 1, 1),
           op_of(HISTORY_SET_PRESENT, 2, 3, 2, no, no, false));
    ACCEPT("one of two DELs finds the key", op_write(0, 1, 1),
           op_of(HISTORY_DELETE_PRESENT, 2, 9, no, no, no, true),
           op_of(HISTORY_DELETE_PRESENT, 2, 9, no, no, no, false));
    REFUSE("two DELs find the key", op_write(0, 1, 1),
           op_of(HISTORY_DELETE_PRESENT, 2, 9, no, no, no, true),
           op_of(HISTORY_DELETE_PRESENT, 2, 9, no, no, no, true));
    REFUSE("two GETDELs take the value", op_write(0, 1, 1),
           op_of(HISTORY_GETDEL, 2, 9, no, no, 1, false),
           op_of(HISTORY_GETDEL, 2, 9, no, no, 1, false));
    REFUSE("EXISTS of a deleted key", op_write(0, 1, 1), op_delete(2, 3),
           op_of(HISTORY_EXISTS, 4, 5, no, no, no, true));
    ACCEPT("appended twice", op_write(0, 1, 1), op_of(HISTORY_RMW, 2, 9, 2, 1, no, false),
           op_of(HISTORY_RMW, 2, 9, 3, 2, no, false), op_read(10, 11, 3));
    REFUSE("two appended to the same text", op_write(0, 1, 1),
           op_of(HISTORY_RMW, 2, 9, 2, 1, no, false), op_of(HISTORY_RMW, 2, 9, 3, 1, no, false));
    ACCEPT("one appended, perhaps", op_write(0, 1, 1),
           op_unknown(op_of(HISTORY_RMW, 2, 2, 2, 1, no, false)), op_read(4, 5, 1),
           op_read(6, 7, 2));
}

static void test_limits(void **state)
{
    (void)state;
    struct check_report report;
    struct history none = {NULL, 0};
    assert_int_equal(check_linearizable(&none, 0, &report), CHECK_ACCEPTED);
    assert_int_equal(check_registers(&none, &report), CHECK_ACCEPTED);

    struct history_op twice[] = {op_write(0, 1, 1), op_write(2, 3, 1)};
    assert_int_equal(check_registers(&(struct history){twice, 2}, &report), CHECK_TOO_HARD);
    assert_int_equal(report.key, 1);
    struct history_op kinds[] = {op_write(0, 1, 1), op_delete(2, 3)};
    assert_int_equal(check_registers(&(struct history){kinds, 2}, &report), CHECK_TOO_HARD);
    /* A refused key says more than one that is too hard, whichever comes first. */
    struct history_op mixed[] = {op_delete(2, 3), op_of_key(op_read(0, 1, 7), 2)};
    assert_int_equal(check_registers(&(struct history){mixed, 2}, &report), CHECK_REFUSED);
    assert_int_equal(report.key, 2);

    struct history_op hard[] = {op_write(0, 9, 1), op_write(0, 9, 2), op_write(0, 9, 3),
                                op_read(10, 11, 1), op_read(12, 13, 2)};
    assert_int_equal(check_linearizable(&(struct history){hard, 5}, 1, &report), CHECK_TOO_HARD);
    assert_int_equal(report.states, 1);
    assert_non_null(strstr(report.text, "gave up after 1 states"));
    assert_int_equal(check_linearizable(&(struct history){hard, 5}, 0, &report), CHECK_REFUSED);
}

static void test_reports(void **state)
{
    (void)state;
    struct check_report report;
    struct history_op stale[] = {op_write(0, 1, 1), op_write(2, 3, 2), op_read(4, 5, 2),
                                 op_read(6, 7, 1)};
    struct history history = {stale, 4};
    assert_int_equal(check_linearizable(&history, 0, &report), CHECK_REFUSED);
    assert_int_equal(report.key, 1);
    assert_string_equal(report.text,
                        "key 1: no order explains all of the 4 operations; the best places 1\n"
                        "the last that changed the value:\n"
                        "  0..1 client 1 key 1: WRITE 1\n"
                        "then the value is 1\n"
                        "still to see this value, which none can restore:\n"
                        "  6..7 client 1 key 1: READ -> 1\n"
                        "and none of these can be next:\n"
                        "  2..3 client 1 key 1: WRITE 2\n");
    assert_int_equal(check_registers(&history, &report), CHECK_REFUSED);
    assert_string_equal(report.text, "key 1: two values must each be there before the other is:\n"
                                     "value 1:\n"
                                     "  0..1 client 1 key 1: WRITE 1\n"
                                     "  6..7 client 1 key 1: READ -> 1\n"
                                     "value 2:\n"
                                     "  2..3 client 1 key 1: WRITE 2\n"
                                     "  4..5 client 1 key 1: READ -> 2\n");
}

static void test_report_of_expiry(void **state)
{
    (void)state;
    struct check_report report;
    struct history_op gone[] = {op_until(op_write(0, 1, 1), 7, 3), op_read(4, 5, ABSENT),
                                op_set_absent(6, 7, 2, false)};
    assert_int_equal(check_linearizable(&(struct history){gone, 3}, 0, &report), CHECK_REFUSED);
    assert_string_equal(report.text,
                        "key 1: no order explains all of the 3 operations; the best places 2\n"
                        "the last that changed the value:\n"
                        "  0..1 client 1 key 1: WRITE 1 until 7\n"
                        "  the value expired\n"
                        "then the key is absent\n"
                        "and none of these can be next:\n"
                        "  6..7 client 1 key 1: SET_ABSENT 2 -> false\n");
    gone[0].not_before_us = 9;
    assert_int_equal(check_linearizable(&(struct history){gone, 3}, 0, &report), CHECK_REFUSED);
    assert_non_null(strstr(report.text, "then the value is 1 until 7\n"));
}

static void test_report_is_cut(void **state)
{
    (void)state;
    struct check_report report;
    struct history_op wide[OPS_MAX];
    uint64_t far = UINT64_MAX - 100;
    for (int i = 0; i < OPS_MAX; i++) {
        wide[i] = op_set_if(far, far + 9, INT64_MIN + 1, INT64_MAX - i, i > 0);
        wide[i].key = UINT64_MAX;
    }
    wide[0].kind = HISTORY_WRITE;
    wide[0].in = INT64_MIN + 1;
    assert_int_equal(check_linearizable(&(struct history){wide, OPS_MAX}, 0, &report),
                     CHECK_REFUSED);
    size_t n = strlen(report.text);
    assert_true(n < sizeof report.text);
    assert_int_equal(report.text[n - 1], '\n');
}

static void test_print(void **state)
{
    (void)state;
    char line[128];
    struct history_op op = op_set_if(12, 40, ABSENT, -2, false);
    size_t length = history_op_print(&op, line, sizeof line);
    assert_int_equal(length, strlen(line));
    assert_string_equal(line, "12..40 client 1 key 1: SET_IF absent to -2 -> false");
    op = op_unknown(op_add(7, 7, 3, 0));
    (void)history_op_print(&op, line, sizeof line);
    assert_string_equal(line, "7.. client 1 key 1: ADD 3 (outcome unknown)");
    op = op_read(1, 2, ABSENT);
    assert_int_equal(history_op_print(&op, line, 9), 35);
    assert_string_equal(line, "1..2 cli");
    op = op_until(op_set_if(12, 40, 1, 2, true), 70, 60);
    (void)history_op_print(&op, line, sizeof line);
    assert_string_equal(line, "12..40 client 1 key 1: SET_IF 1 to 2 until 70 -> true");
    op = op_until(op_write(1, 2, 3), HISTORY_KEEP, 0);
    (void)history_op_print(&op, line, sizeof line);
    assert_string_equal(line, "1..2 client 1 key 1: WRITE 3 keeping");
    op = op_ttl(1, 2, 1, 70);
    (void)history_op_print(&op, line, sizeof line);
    assert_string_equal(line, "1..2 client 1 key 1: TTL -> until 70");
    op = op_ttl(1, 2, 0, 0);
    (void)history_op_print(&op, line, sizeof line);
    assert_string_equal(line, "1..2 client 1 key 1: TTL -> none");
    assert_string_equal(history_kind_name(HISTORY_GETSET), "GETSET");
    assert_string_equal(history_kind_name(200), "?");
}

static void test_invalid(void **state)
{
    (void)state;
    struct history_op op = op_write(0, 1, 1);
    assert_null(history_op_invalid(&op));
    op = op_write(2, 1, 1);
    assert_non_null(history_op_invalid(&op));
    op = op_unknown(op);
    assert_null(history_op_invalid(&op));
    op = op_write(0, 1, ABSENT);
    assert_non_null(history_op_invalid(&op));
    op = op_write(0, UINT64_MAX, 1);
    assert_non_null(history_op_invalid(&op));
    op = op_delete_if(0, 1, 4, true);
    assert_null(history_op_invalid(&op));
    op.in = 3;
    assert_non_null(history_op_invalid(&op));
    op = op_until(op_write(0, 1, 1), 7, 5);
    assert_null(history_op_invalid(&op));
    op.not_after_us = 4;
    assert_non_null(history_op_invalid(&op));
    op = op_until(op_read(0, 1, 1), 7, 5);
    assert_non_null(history_op_invalid(&op));
    op = op_expire(0, 1, 0, 0, true);
    assert_non_null(history_op_invalid(&op));
    op = op_expire(0, 1, HISTORY_KEEP, 0, true);
    assert_non_null(history_op_invalid(&op));
    op = op_ttl(0, 1, 0, 7);
    assert_non_null(history_op_invalid(&op));
    op = op_until(op_add(0, 1, 1, 1), HISTORY_KEEP, 0);
    assert_non_null(history_op_invalid(&op));
    op = op_read(0, 1, 1);
    op.kind = 99;
    assert_non_null(history_op_invalid(&op));
    op = op_read(0, 1, 1);
    op.outcome = 3;
    assert_non_null(history_op_invalid(&op));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),          cmocka_unit_test(test_keys),
        cmocka_unit_test(test_unknown_writes), cmocka_unit_test(test_conditions),
        cmocka_unit_test(test_deletes),        cmocka_unit_test(test_counters),
        cmocka_unit_test(test_expiry),         cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_presence),       cmocka_unit_test(test_report_of_expiry),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_reports),
        cmocka_unit_test(test_report_is_cut),  cmocka_unit_test(test_print),
        cmocka_unit_test(test_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
