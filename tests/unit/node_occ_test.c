/* The statically sharded baseline on real nodes: operations give what they do elsewhere, wherever
 * they run; money stays the same; and what is locked is let go. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "node/engines.h"
#include "support/node_bank.h"
#include "support/node_calls.h"

#define SECOND 1000000u

static const struct occ_config three = {.degree = 3}, one = {.degree = 1};

static struct cluster *start(uint32_t nodes, const struct occ_config *occ)
{
    struct cluster_config config = calls_config(nodes, 2, &occ_ops, occ);
    return calls_start(&config);
}

static void single_operations_anywhere(void **state)
{
    static const uint32_t nodes[] = {1, 2, 3, 5};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t n = nodes[i];
        struct cluster *c = start(n, i % 2 == 0 ? &three : &one);
        for (uint32_t k = 0; k < 8; k++) {
            char key[16];
            (void)snprintf(key, sizeof key, "key-%u", k);
            calls_read(c, 0, key, NULL);
            assert_int_equal(calls_run(c, k % n, OP_SET, key, "one").kind, ANSWER_OK);
            assert_int_equal(calls_run(c, (k + 1) % n, OP_APPEND, key, "+two").number, 7);
            for (uint32_t at = 0; at < n; at++) {
                calls_read(c, at, key, "one+two");
            }
            assert_int_equal(calls_run(c, k % n, OP_DELETE, key, "").number, 1);
            calls_read(c, (k + 2) % n, key, NULL);
            assert_int_equal(calls_run(c, k % n, OP_DELETE, key, "").number, 0);
        }
        cluster_destroy(c);
    }
}

static void lists_over_several_homes(void **state)
{
    (void)state;
    struct cluster *c = start(3, &three);
    struct op set[] = {{.kind = OP_SET, .key = calls_text("a"), .value = calls_text("1")},
                       {.kind = OP_SET, .key = calls_text("b"), .value = calls_text("2")},
                       {.kind = OP_SET, .key = calls_text("c"), .value = calls_text("3")},
                       {.kind = OP_ADD, .key = calls_text("a"), .number = 10},
                       {.kind = OP_GET, .key = calls_text("b")}};
    struct cluster_txn_answer a = calls_transact(c, 0, set, 5, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_int_equal(a.answers[3].number, 11);
    assert_int_equal(a.answers[4].kind, ANSWER_VALUE);
    for (uint32_t at = 0; at < 3; at++) {
        calls_read(c, at, "a", "11");
        calls_read(c, at, "c", "3");
    }
    /* One that does not apply undoes all, and lets go of all, what is new included. */
    struct op nx[] = {
        {.kind = OP_SET, .key = calls_text("d"), .value = calls_text("4"), .flags = OPF_NX},
        {.kind = OP_SET, .key = calls_text("e"), .value = calls_text("5"), .flags = OPF_NX},
        {.kind = OP_SET, .key = calls_text("b"), .value = calls_text("9"), .flags = OPF_NX}};
    a = calls_transact(c, 1, nx, 3, TXN_ALL);
    assert_int_equal(a.kind, ANSWER_NUMBER);
    calls_read(c, 2, "d", NULL);
    calls_read(c, 0, "e", NULL);
    assert_int_equal(calls_run(c, 2, OP_SET, "d", "x").kind, ANSWER_OK);
    /* Locked, and not written: let go at the home as well. */
    struct op some[] = {
        {.kind = OP_SET, .key = calls_text("a"), .value = calls_text("7")},
        {.kind = OP_DELETE, .key = calls_text("nothing")},
        {.kind = OP_SET, .key = calls_text("c"), .value = calls_text("8"), .flags = OPF_NX},
        {.kind = TXN_OP_COPY, .key = calls_text("b"), .arg = calls_text("copy")}};
    a = calls_transact(c, 2, some, 4, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_int_equal(a.answers[1].number, 0);
    assert_int_equal(a.answers[2].kind, ANSWER_NIL);
    assert_int_equal(a.answers[3].number, 1);
    for (uint32_t at = 0; at < 3; at++) {
        calls_read(c, at, "copy", "2");
        assert_int_equal(calls_run(c, at, OP_SET, "c", "again").kind, ANSWER_OK);
        assert_int_equal(calls_run(c, at, OP_SET, "nothing", "now").kind, ANSWER_OK);
    }
    cluster_destroy(c);
}

/* ---- Money ---- */

struct value {
    uint32_t n;
    char at[16];
};

static struct value stored(struct cluster *c, uint32_t node, struct bytes key)
{
    struct store *store = node_store(cluster_node(c, node), 0);
    struct store_thread *thread = worker_store_thread(node_worker(cluster_node(c, node), 0), 0);
    uint64_t buffer[STORE_INLINE_MAX / 8];
    struct store_value v;
    struct value out = {0};
    assert_int_equal(
        store_read(store, thread, key, store_hash(store, key), buffer, sizeof buffer, &v), HK_OK);
    assert_true(v.found);
    assert_int_equal(v.meta.owner, 0); /* not locked */
    assert_in_range(v.value.n, 1, sizeof out.at);
    out.n = v.value.n;
    memcpy(out.at, v.value.at, v.value.n);
    return out;
}

static bool idle(struct cluster *c, void *bank)
{
    (void)c;
    return bank_idle(bank);
}

static void transfer(uint32_t nodes, uint32_t workers, bool ordered, uint64_t seed)
{
    struct bank_config bank_config = {
        .accounts = 12, .clients = 3, .audits = 100, .local = 300, .seed = seed};
    struct bank *bank = bank_create(&bank_config);
    struct cluster_config config = calls_config(nodes, workers, &occ_ops, &three);
    config.client = bank_client(bank);
    config.ordered = ordered;
    struct cluster *c = calls_start(&config);
    for (uint32_t i = 0; i < nodes; i++) {
        bank_open(bank, c, i);
    }
    bank_fill(bank, c);
    bank_run(bank, true);
    if (!ordered) {
        cluster_disturb(c, (struct cluster_faults){.lost = 20, .doubled = 20, .hasty = 20});
    }
    for (uint32_t i = 0; i < 20000; i++) {
        cluster_step(c, 20);
    }
    bank_run(bank, false);
    cluster_until(c, idle, bank, 20 * SECOND);
    struct bank_counts counts = bank_counts(bank);
    assert_int_equal(counts.unknown + counts.unavailable, 0);
    assert_true(counts.done > 100);
    assert_true(counts.audits > 10);
    assert_true(counts.conflicts > 0);
    assert_true(CALLS_SUM(c, nodes, txn_aborts) > 10);
    /* The last COMMITs are on their way: then home and backups agree. */
    for (uint32_t i = 0; i < 2000; i++) {
        cluster_step(c, 200);
    }
    for (uint32_t i = 0; i < bank_config.accounts && nodes <= 3; i++) {
        char key[24];
        (void)snprintf(key, sizeof key, "account-%u", i);
        struct value first = stored(c, 0, calls_text(key));
        for (uint32_t at = 1; at < nodes; at++) {
            struct value other = stored(c, at, calls_text(key));
            assert_int_equal(other.n, first.n);
            assert_memory_equal(other.at, first.at, first.n);
        }
    }
    cluster_destroy(c);
    bank_destroy(bank);
}

static void money_stays_the_same(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        transfer(3, 1 + seed % 2, seed % 2 == 0, seed);
        transfer(5, 1, seed % 2 != 0, seed);
        transfer(2, 2, true, seed);
    }
}

/* Whoever asks while the view changes hears that nobody knows; afterwards the rest goes on. */
static void a_change_of_view_ends_what_is_under_way(void **state)
{
    (void)state;
    struct bank_config bank_config = {
        .accounts = 12, .clients = 3, .audits = 0, .local = 0, .seed = 3};
    struct bank *bank = bank_create(&bank_config);
    struct cluster_config config = calls_config(3, 1, &occ_ops, &three);
    config.client = bank_client(bank);
    struct cluster *c = calls_start(&config);
    for (uint32_t i = 0; i < 3; i++) {
        bank_open(bank, c, i);
    }
    bank_fill(bank, c);
    bank_run(bank, true);
    for (uint32_t i = 0; i < 200; i++) {
        cluster_step(c, 20);
    }
    bank_run(bank, false);
    cluster_kill(c, 2);
    bank_forget(bank, 2);
    cluster_until(c, idle, bank, 20 * SECOND);
    struct bank_counts counts = bank_counts(bank);
    assert_true(counts.done > 0);
    assert_true(counts.unknown + counts.unavailable + counts.busy > 0);
    cluster_destroy(c);
    bank_destroy(bank);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_operations_anywhere),
        cmocka_unit_test(lists_over_several_homes),
        cmocka_unit_test(money_stays_the_same),
        cmocka_unit_test(a_change_of_view_ends_what_is_under_way),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
