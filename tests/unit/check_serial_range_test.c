/* Histories with ranges, inserts and erasures: phantoms by name, and what only looks like one; then
 * thousands of random ones, on which the checker must agree with trying every order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "support/check_txns.h"

static struct txns begin(void)
{
    struct txns t;
    txns_init(&t, TXN_VERSIONS, 10, 128, 8);
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
    (void)check_at(t, TXN_STRICT_SERIALIZABLE, CHECK_ACCEPTED);
    txns_deinit(t);
}

static void refuse(struct txns *t, enum txn_anomaly anomaly, const char *title)
{
    for (int level = TXN_SERIALIZABLE; level <= TXN_STRICT_SERIALIZABLE; level++) {
        struct txn_report report = check_at(t, (enum txn_level)level, CHECK_REFUSED);
        if (strncmp(report.text, title, strlen(title)) != 0) {
            fail_msg("not %s: %s", title, report.text);
        }
        assert_int_equal(report.anomaly, anomaly);
        assert_int_equal(report.needs, TXN_SERIALIZABLE);
    }
    txns_deinit(t);
}

static void refuse_in_time(struct txns *t, const char *title)
{
    (void)check_at(t, TXN_SERIALIZABLE, CHECK_ACCEPTED);
    struct txn_report report = check_at(t, TXN_STRICT_SERIALIZABLE, CHECK_REFUSED);
    if (strncmp(report.text, title, strlen(title)) != 0) {
        fail_msg("not %s: %s", title, report.text);
    }
    txns_deinit(t);
}

static void test_sound(void **state)
{
    (void)state;
    struct txns t = begin();
    txns_add(&t, 0, 1, 1, "s0-4={} w1=10@1 w3=11@1 s0-4={1:10 3:11}");
    txns_add(&t, 2, 3, 2, "s0-4={1:10 3:11} e1 s0-4={3:11} r1=0");
    txns_add(&t, 4, 5, 1, "s0-4={3:11} s0-3={} r1=0 w1=12@5");
    txns_add(&t, 6, 7, 1, "s1-4={1:12 3:11} s0-4<1={1:12} s0-4>1={3:11}");
    accept(&t);

    /* What lies behind the limit was not looked at. */
    t = begin();
    txns_add(&t, 0, 1, 1, "w1=10@1 w3=11@1");
    txns_add(&t, 2, 3, 2, "s0-4<1={1:10}");
    txns_add(&t, 4, 5, 3, "s0-4>1={3:11}");
    accept(&t);

    /* Two that are under way: the range comes first, though it ends last. */
    t = begin();
    txns_add(&t, 0, 9, 1, "s0-4={}");
    txns_add(&t, 1, 2, 2, "w2=10@1");
    accept(&t);

    /* A row that its transaction made and erased was never there. */
    t = begin();
    txns_add(&t, 0, 1, 1, "r2=0 w2=10@1 e2");
    txns_add(&t, 2, 3, 2, "s0-4={}");
    txns_add(&t, 4, 5, 2, "w2=11@1");
    accept(&t);
}

static void test_phantoms(void **state)
{
    (void)state;
    /* The same range twice, and a row came between. */
    struct txns t = begin();
    txns_add(&t, 0, 9, 1, "s0-4={} s0-4={2:10}");
    txns_add(&t, 1, 2, 2, "w2=10@1");
    refuse(&t, TXN_INTERNAL, "internal inconsistency: key 2");

    /* Two counts and two inserts: each would have seen the other. */
    t = begin();
    txns_add(&t, 0, 9, 1, "s0-4={} w1=10@1");
    txns_add(&t, 1, 8, 2, "s0-4={} w2=11@1");
    refuse(&t, TXN_G2, "G2 (phantom): a cycle of 2 transactions");

    /* One range finds the first of two rows, the other only the second. */
    t = begin();
    txns_add(&t, 0, 9, 1, "w1=10@1");
    txns_add(&t, 0, 9, 2, "w2=11@1");
    txns_add(&t, 0, 9, 3, "s0-4={1:10}");
    txns_add(&t, 0, 9, 4, "s0-4={2:11}");
    refuse(&t, TXN_G2, "G2 (phantom): a cycle of 4 transactions");

    /* Half of a transaction's rows. */
    t = begin();
    txns_add(&t, 0, 9, 1, "w1=10@1 w2=11@1");
    txns_add(&t, 0, 9, 2, "s0-4={2:11}");
    refuse(&t, TXN_G_SINGLE, "G-single (phantom): a cycle of 2 transactions");

    /* The same, where the range is long over its limit from the other side. */
    t = begin();
    txns_add(&t, 0, 9, 1, "w1=10@1 w2=11@1");
    txns_add(&t, 0, 9, 2, "s0-4>2={2:11}");
    refuse(&t, TXN_G_SINGLE, "G-single (phantom)");

    /* Behind the limit of a range, but found by a point read. */
    t = begin();
    txns_add(&t, 0, 9, 1, "w1=10@1 w2=11@1");
    txns_add(&t, 0, 9, 2, "s0-3<1={2:11}");
    refuse(&t, TXN_G_SINGLE, "G-single (phantom)");

    /* What nobody wrote, and what was not committed. */
    t = begin();
    txns_add(&t, 0, 9, 2, "s0-3={2:11}");
    refuse(&t, TXN_GARBAGE_READ, "garbage read: key 2");
    t = begin();
    txns_add_as(&t, TXN_ABORTED, 0, 1, 1, "w2=11@1");
    txns_add(&t, 0, 9, 2, "s0-3={2:11}");
    refuse(&t, TXN_ABORTED_READ, "G1a");

    /* A range that ends before a row that had been committed when it began. */
    t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add(&t, 2, 3, 2, "s0-4={}");
    refuse_in_time(&t, "G-single-realtime (stale read)");
}

static void test_erasures(void **state)
{
    (void)state;
    /* An erased row comes back. */
    struct txns t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add(&t, 2, 3, 1, "r2=11@1 e2");
    txns_add(&t, 4, 5, 2, "s0-4={2:11}");
    refuse_in_time(&t, "G-single-realtime");

    /* A row is not there, though it was only erased later. */
    t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add(&t, 2, 3, 2, "s0-4={}");
    txns_add(&t, 4, 5, 1, "r2=11@1 e2");
    refuse_in_time(&t, "G1c-realtime");

    /* Two erase the same row. */
    t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add(&t, 2, 9, 1, "r2=11@1 e2");
    txns_add(&t, 2, 9, 2, "r2=11@1 e2");
    refuse(&t, TXN_G_SINGLE, "G-single (lost update)");

    /* Absent twice, of two erasures, between which it was there: each read saw its own. */
    t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add(&t, 0, 20, 1, "r2=11@1 e2");
    txns_add(&t, 0, 20, 2, "r2=0 w2=12@5");
    txns_add(&t, 0, 20, 1, "r2=12@5 e2 w1=13@1");
    txns_add(&t, 0, 20, 3, "r2=0 r1=0");
    txns_add(&t, 0, 20, 3, "r2=0 r1=13@1");
    accept(&t);

    /* The first of these two erasures is what the reader must have seen, for it did not see what
     * the insertion behind it wrote elsewhere; but it saw what the second erasure wrote. */
    t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add(&t, 2, 20, 1, "r2=11@1 e2");
    txns_add(&t, 2, 20, 2, "r2=0 w2=12@5 w3=14@1");
    txns_add(&t, 2, 20, 1, "r2=12@5 e2 w1=13@1");
    txns_add(&t, 2, 20, 3, "r2=0 r3=0 r1=13@1");
    refuse(&t, TXN_G_SINGLE, "G-single");

    /* Absence that is between two erasures says that the key came back between. */
    t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add(&t, 2, 3, 1, "r2=11@1 e2");
    txns_add(&t, 4, 5, 2, "r2=0 w2=12@5");
    txns_add(&t, 6, 7, 2, "s0-4={}");
    txns_add(&t, 8, 9, 2, "r2=12@5 e2");
    refuse_in_time(&t, "G1c-realtime");
}

/* An erasure of unknown outcome explains an absence, and nothing else. */
static void test_unknown(void **state)
{
    (void)state;
    struct txns t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add_as(&t, TXN_UNKNOWN, 2, 0, 1, "e2");
    txns_add(&t, 4, 5, 2, "s0-4={}");
    accept(&t);

    t = begin();
    txns_add(&t, 0, 1, 1, "w2=11@1");
    txns_add(&t, 2, 3, 2, "s0-4={}");
    txns_add_as(&t, TXN_UNKNOWN, 4, 0, 1, "e2");
    refuse_in_time(&t, "G-single-realtime");

    /* A write whose version only a range saw. */
    t = begin();
    txns_add_as(&t, TXN_UNKNOWN, 0, 0, 1, "w2=11 w3=12");
    txns_add(&t, 4, 5, 2, "s0-3={2:11}");
    accept(&t);
}

static void test_invalid(void **state)
{
    (void)state;
    struct txn_found found[] = {{2, 10}, {1, 11}};
    struct txn_op op = {.kind = TXN_RANGE, .key = 0, .end = 4, .found = found, .found_n = 2};
    struct txn txn = {.ops = &op, .ops_n = 1, .begin_us = 1, .end_us = 2};
    assert_non_null(strstr(txn_invalid(&txn, TXN_VERSIONS), "not in order"));
    found[1].key = 3;
    assert_null(txn_invalid(&txn, TXN_VERSIONS));
    assert_non_null(txn_invalid(&txn, TXN_LISTS));
    op.limit = 1;
    assert_non_null(strstr(txn_invalid(&txn, TXN_VERSIONS), "more than it may"));
    op.limit = 2;
    op.end = 3;
    assert_non_null(strstr(txn_invalid(&txn, TXN_VERSIONS), "not in it"));
    op.key = 4;
    assert_non_null(strstr(txn_invalid(&txn, TXN_VERSIONS), "before it begins"));
    op = (struct txn_op){.kind = TXN_ERASE, .value = 3};
    assert_non_null(strstr(txn_invalid(&txn, TXN_VERSIONS), "has a number"));
    char line[200];
    op = (struct txn_op){
        .kind = TXN_RANGE, .end = 4, .limit = 2, .reverse = true, .found = found, .found_n = 2};
    struct txn_history history = {.txns = &txn, .n = 1, .recording = TXN_VERSIONS};
    (void)txn_print(&history, 0, line, sizeof line);
    assert_string_equal(line, "T0 1..2 client 0: range 0..4 last 2 -> {2=10 3=11}");
}

/* ---- Random ones ---- */

#define KEYS 3u
#define TXNS 6u

struct model {
    uint64_t value[KEYS], version[KEYS];
};

static void model_op(struct random *r, struct txns *t, struct txn_op *op, struct model *m)
{
    uint64_t key = random_below(r, KEYS);
    op->key = key;
    switch (random_below(r, 5)) {
    case 0:
        op->kind = TXN_READ;
        op->value = m->value[key];
        op->version = op->value == 0 ? 0 : m->version[key];
        return;
    case 1:
    case 2:
        op->kind = TXN_RANGE;
        op->end = key + 1 + random_below(r, KEYS - key);
        op->reverse = random_chance(r, 500000);
        op->limit = (uint32_t)random_below(r, 3);
        op->found = &t->found[t->found_n];
        for (uint64_t k = op->key; k < op->end; k++) {
            if (m->value[k] != 0) {
                t->found[t->found_n + op->found_n++] = (struct txn_found){k, m->value[k]};
            }
        }
        if (op->limit != 0 && op->found_n > op->limit) {
            op->found += op->reverse ? op->found_n - op->limit : 0;
            op->found_n = op->limit;
        }
        t->found_n += KEYS;
        return;
    default:
        op->kind = m->value[key] != 0 && random_chance(r, 500000) ? TXN_ERASE : TXN_WRITE;
    }
}

/* Transactions one after the other; each reads what it is going to erase. */
static void generate(struct random *r, struct txns *t, struct model *m)
{
    uint64_t clock = 10;
    for (uint32_t i = 0; i < TXNS; i++) {
        struct txn *txn =
            txns_add(t, clock - random_below(r, 8), clock + random_below(r, 8), i, "");
        uint32_t ops = 1 + (uint32_t)random_below(r, 3);
        bool wrote[KEYS] = {false};
        for (uint32_t j = 0; j < ops; j++) {
            struct txn_op *op = &t->ops[t->ops_n++];
            *op = (struct txn_op){0};
            model_op(r, t, op, m);
            if ((op->kind == TXN_ERASE || op->kind == TXN_WRITE) && wrote[op->key]) {
                op->kind = TXN_READ;
                op->value = m->value[op->key];
                op->version = op->value == 0 ? 0 : m->version[op->key];
            }
            if (op->kind == TXN_ERASE) {
                *op = (struct txn_op){.kind = TXN_READ,
                                      .key = op->key,
                                      .value = m->value[op->key],
                                      .version = m->version[op->key]};
                txn->ops_n++;
                op = &t->ops[t->ops_n++];
                *op = (struct txn_op){.kind = TXN_ERASE, .key = op[-1].key};
                m->value[op->key] = 0;
                wrote[op->key] = true;
            } else if (op->kind == TXN_WRITE) {
                op->value = 100 * (i + 1) + j;
                op->version = m->version[op->key] + 1;
                m->value[op->key] = op->value;
                m->version[op->key] = op->version;
                wrote[op->key] = true;
            }
            txn->ops_n++;
        }
        clock += 4;
    }
}

/* Another moment of the store is shown: what a key held before or after. */
static void corrupt(struct random *r, struct txns *t)
{
    struct txn_op *op = &t->ops[random_below(r, t->ops_n)];
    struct txn *txn = &t->txns[random_below(r, t->history.n)];
    switch (random_below(r, 3)) {
    case 0:
        if (op->kind == TXN_RANGE && op->found_n > 0) {
            op->found_n--;
            op->limit = 0;
        }
        return;
    case 1:
        txn->begin_us += 12;
        txn->end_us += 12;
        return;
    default:
        if (op->kind == TXN_READ) {
            op->value = op->version = 0;
        }
    }
}

static bool erases_unread(const struct txns *t)
{
    for (size_t i = 0; i < t->ops_n; i++) {
        if (t->ops[i].kind == TXN_ERASE && t->ops[i - 1].value == 0) {
            return true;
        }
    }
    return false;
}

static void test_random(void **state)
{
    (void)state;
    uint32_t accepted = 0;
    uint32_t refused = 0;
    for (uint64_t seed = 0; seed < 40000; seed++) {
        struct random r;
        random_init(&r, seed);
        struct txns t;
        struct model m = {.value = {0}};
        txns_init(&t, TXN_VERSIONS, TXNS, 64, 1);
        generate(&r, &t, &m);
        for (uint64_t changes = random_below(&r, 3); changes > 0; changes--) {
            corrupt(&r, &t);
        }
        for (int level = TXN_SERIALIZABLE; level <= TXN_STRICT_SERIALIZABLE; level++) {
            struct txn_report report;
            bool accepts = txns_brute_accepts(&t.history, (enum txn_level)level);
            enum check_result result =
                check_transactions(&t.history, (enum txn_level)level, &report);
            if (erases_unread(&t)) {
                continue; /* no recorder writes this down */
            }
            if (result != (accepts ? CHECK_ACCEPTED : CHECK_REFUSED)) {
                txn_history_print(&t.history, stderr);
                fail_msg("seed %" PRIu64 " level %d: brute force says %d, not %d: %s", seed, level,
                         accepts, result, report.text);
            }
            accepted += accepts;
            refused += !accepts;
        }
        txns_deinit(&t);
    }
    assert_true(accepted > 20000);
    assert_true(refused > 8000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound),    cmocka_unit_test(test_phantoms),
        cmocka_unit_test(test_erasures), cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_invalid),  cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
