/* Transactions of sessions on real nodes: what single operations and lists of them do wherever they
 * run, that money stays the same while nodes die and views change, and that a session's order
 * holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "node/engines.h"
#include "support/node_bank.h"

#define SECOND 1000000u

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct cluster_config config_of(uint32_t nodes, uint32_t workers)
{
    struct cluster_config config = {
        .nodes = nodes, .ops = &zeus_ops, .engine = &zeus, .seed = 5 + nodes};
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = workers;
    }
    return config;
}

static struct cluster *start(uint32_t nodes, uint32_t workers)
{
    struct cluster_config config = config_of(nodes, workers);
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10 * SECOND);
    return c;
}

static struct cluster_answer call(struct cluster *c, uint32_t node, uint8_t kind, const char *key,
                                  const char *value)
{
    struct op op = {.kind = kind, .key = text(key), .value = text(value)};
    return cluster_call(c, node, &op);
}

static void holds(struct cluster *c, uint32_t node, const char *key, const char *value)
{
    struct cluster_answer a = call(c, node, OP_GET, key, "");
    if (value == NULL) {
        assert_int_equal(a.kind, ANSWER_NIL);
        assert_int_equal(a.version, 0);
        return;
    }
    assert_int_equal(a.kind, ANSWER_VALUE);
    assert_int_equal(a.n, strlen(value));
    assert_memory_equal(a.value, value, a.n);
    assert_true(a.version != 0);
}

/* ---- Single operations ---- */

static void test_single_operations(void **state)
{
    static const uint32_t nodes[] = {1, 2, 3, 5};
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t n = nodes[i];
        struct cluster *c = start(n, 1 + i % 2);
        holds(c, 0, "k", NULL);
        assert_int_equal(call(c, 0, OP_SET, "k", "one").kind, ANSWER_OK);
        for (uint32_t at = 0; at < n; at++) {
            holds(c, at, "k", "one");
        }
        struct cluster_answer a = call(c, n - 1, OP_APPEND, "k", "+two");
        assert_int_equal(a.kind, ANSWER_NUMBER);
        assert_int_equal(a.number, 7);
        uint64_t version = a.version;
        for (uint32_t at = 0; at < n; at++) {
            holds(c, at, "k", "one+two");
            assert_int_equal(call(c, at, OP_GET, "k", "").version, version);
        }
        assert_int_equal(call(c, 0, OP_DELETE, "k", "").number, 1);
        holds(c, n - 1, "k", NULL);
        assert_int_equal(call(c, n / 2, OP_DELETE, "k", "").number, 0);
        cluster_destroy(c);
    }
}

/* Who creates an object and dies as soon as the client has its answer takes nothing along (R15),
 * nor do two of five that die one after the other. */
static void test_written_is_replicated(void **state)
{
    (void)state;
    for (uint32_t n = 3; n <= 5; n += 2) {
        for (uint32_t workers = 1; workers <= 2; workers++) {
            struct cluster *c = start(n, workers);
            char key[2] = "a";
            for (; key[0] <= 'h'; key[0]++) {
                assert_int_equal(call(c, 0, OP_SET, key, "here").kind, ANSWER_OK);
            }
            cluster_kill(c, 0);
            if (n == 5) {
                cluster_kill(c, 1);
            }
            for (key[0] = 'a'; key[0] <= 'h'; key[0]++) {
                holds(c, n - 1, key, "here");
                holds(c, n - 2, key, "here");
            }
            cluster_destroy(c);
        }
    }
}

#ifdef HK_MUTANTS
/* Without R15 the answer comes when nobody else has it. */
static void test_written_alone_is_lost(void **state)
{
    (void)state;
    static const struct zeus_config hasty = {
        .own = {.backoff_us = 200, .rules_off = UINT64_C(1) << OWN_RULE_ENOUGH}};
    struct cluster_config config = config_of(3, 1);
    config.engine = &hasty;
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10 * SECOND);
    assert_int_equal(call(c, 0, OP_SET, "a", "here").kind, ANSWER_OK);
    cluster_kill(c, 0);
    assert_int_equal(call(c, 1, OP_GET, "a", "").kind, ANSWER_NIL);
    cluster_destroy(c);
}
#endif

/* ---- Lists ---- */

static struct cluster_txn_answer transact(struct cluster *c, uint32_t node, const struct op *ops,
                                          uint32_t ops_n, uint32_t flags)
{
    struct txn_request txn = {.ops = ops, .ops_n = ops_n, .flags = flags};
    return cluster_transact(c, node, 0, &txn);
}

static void refuses(struct cluster_txn_answer a, int err)
{
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.number, err);
}

/* More objects than a transaction may touch, by fewer operations than it may have; and ranges where
 * there are no tables. */
static void test_refused(void **state)
{
    (void)state;
    static struct op ops[TXN_OBJECTS_MAX / 2 + 1];
    static char keys[2 * (TXN_OBJECTS_MAX / 2 + 1)][8];
    struct cluster *c = start(1, 1);
    for (uint32_t i = 0; i < TXN_OBJECTS_MAX / 2 + 1; i++) {
        (void)snprintf(keys[2 * i], sizeof keys[0], "%u", 2 * i);
        (void)snprintf(keys[2 * i + 1], sizeof keys[0], "%u", 2 * i + 1);
        ops[i] = (struct op){
            .kind = TXN_OP_COPY, .key = text(keys[2 * i]), .arg = text(keys[2 * i + 1])};
    }
    refuses(transact(c, 0, ops, TXN_OBJECTS_MAX / 2 + 1, 0), HK_ERR_TOOBIG);
    const struct op range = {.kind = TXN_OP_RANGE};
    refuses(transact(c, 0, &range, 1, 0), HK_ERR_INVALID);
    const struct txn_watch watch = {.range = true};
    const struct txn_request watched = {.watches = &watch, .watches_n = 1};
    refuses(cluster_transact(c, 0, 0, &watched), HK_ERR_INVALID);
    cluster_destroy(c);
}

static void test_lists(void **state)
{
    (void)state;
    struct cluster *c = start(3, 2);
    struct op set[] = {{.kind = OP_SET, .key = text("a"), .value = text("1")},
                       {.kind = OP_SET, .key = text("b"), .value = text("2")},
                       {.kind = OP_ADD, .key = text("a"), .number = 10},
                       {.kind = OP_GET, .key = text("b")}};
    struct cluster_txn_answer a = transact(c, 0, set, 4, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_int_equal(a.n, 4);
    assert_int_equal(a.answers[2].number, 11);
    assert_memory_equal(a.answers[3].value, "2", 1);
    assert_true(a.answers[0].version != 0 && a.answers[0].version == a.answers[2].version);
    holds(c, 1, "a", "11");
    holds(c, 2, "b", "2");

    struct op rename[] = {{.kind = TXN_OP_RENAME, .key = text("a"), .arg = text("c")},
                          {.kind = TXN_OP_COPY, .key = text("c"), .arg = text("d")}};
    a = transact(c, 1, rename, 2, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_int_equal(a.answers[0].kind, ANSWER_OK);
    assert_int_equal(a.answers[1].number, 1);
    for (uint32_t i = 0; i < 3; i++) {
        holds(c, i, "a", NULL);
        holds(c, i, "c", "11");
        holds(c, i, "d", "11");
    }

    struct op nx[] = {{.kind = OP_SET, .flags = OPF_NX, .key = text("e"), .value = text("5")},
                      {.kind = OP_SET, .flags = OPF_NX, .key = text("b"), .value = text("5")}};
    a = transact(c, 2, nx, 2, TXN_ALL);
    assert_int_equal(a.kind, ANSWER_NUMBER);
    assert_int_equal(a.number, 0);
    holds(c, 0, "e", NULL);
    holds(c, 0, "b", "2");

    struct op reads[] = {{.kind = OP_GET, .key = text("b")},
                         {.kind = OP_GET, .key = text("nothing")},
                         {.kind = OP_EXISTS, .key = text("c")}};
    a = transact(c, 1, reads, 3, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_memory_equal(a.answers[0].value, "2", 1);
    assert_int_equal(a.answers[1].kind, ANSWER_NIL);
    assert_int_equal(a.answers[1].version, 0);
    assert_int_equal(a.answers[2].number, 1);

    struct op bad[] = {{.kind = OP_KINDS + 9, .key = text("b")}};
    a = transact(c, 1, bad, 1, 0);
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.number, HK_ERR_INVALID);
    cluster_destroy(c);
}

static void test_watches(void **state)
{
    (void)state;
    struct cluster *c = start(3, 1);
    assert_int_equal(call(c, 0, OP_SET, "w", "1").kind, ANSWER_OK);
    struct txn_watch watches[] = {
        {.key = text("w"), .version = call(c, 1, OP_GET, "w", "").version},
        {.key = text("none"), .version = call(c, 1, OP_GET, "none", "").version}};
    struct op op = {.kind = OP_SET, .key = text("x"), .value = text("1")};
    struct txn_request txn = {.ops = &op, .ops_n = 1, .watches = watches, .watches_n = 2};
    assert_int_equal(watches[1].version, 0);
    assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_OK);
    assert_int_equal(cluster_transact(c, 2, 0, &txn).kind, ANSWER_OK);
    assert_int_equal(call(c, 2, OP_SET, "none", "1").kind, ANSWER_OK);
    op.value = text("2");
    assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_NIL);
    holds(c, 0, "x", "1");
    assert_int_equal(call(c, 2, OP_DELETE, "none", "").number, 1);
    assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_OK);
    assert_int_equal(call(c, 2, OP_SET, "w", "1").kind, ANSWER_OK);
    assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_NIL);
    holds(c, 0, "x", "2");
    cluster_destroy(c);
}

static void test_acquire(void **state)
{
    (void)state;
    struct cluster *c = start(3, 1);
    struct op ops[] = {{.kind = OP_GET, .key = text("a")}, {.kind = OP_GET, .key = text("b")}};
    struct cluster_txn_answer a = transact(c, 2, ops, 2, TXN_ACQUIRE);
    assert_int_equal(a.kind, ANSWER_OK);
    struct node_stats before, after;
    node_stats(cluster_node(c, 2), &before);
    assert_int_equal(call(c, 2, OP_SET, "a", "1").kind, ANSWER_OK);
    assert_int_equal(call(c, 2, OP_SET, "b", "1").kind, ANSWER_OK);
    node_stats(cluster_node(c, 2), &after);
    assert_int_equal(after.own_wants, before.own_wants);
    assert_int_equal(after.txn_commits, before.txn_commits + 2);
    cluster_destroy(c);
}

static void test_expiry(void **state)
{
    (void)state;
    struct cluster *c = start(3, 1);
    uint64_t deadline = *cluster_wall_ms(c) + 50;
    struct op set = {.kind = OP_SET,
                     .flags = OPF_DEADLINE,
                     .key = text("k"),
                     .value = text("v"),
                     .number = (int64_t)deadline};
    assert_int_equal(cluster_call(c, 0, &set).kind, ANSWER_OK);
    holds(c, 1, "k", "v");
    for (uint32_t i = 0; i < 600; i++) {
        cluster_step(c, 100);
    }
    holds(c, 0, "k", NULL);
    holds(c, 1, "k", NULL);
    struct op nx = {.kind = OP_SET, .flags = OPF_NX, .key = text("k"), .value = text("w")};
    assert_int_equal(cluster_call(c, 2, &nx).kind, ANSWER_OK);
    holds(c, 1, "k", "w");
    set.number = (int64_t)*cluster_wall_ms(c) + 50;
    assert_int_equal(cluster_call(c, 0, &set).kind, ANSWER_OK);
    struct node_stats before, after;
    node_stats(cluster_node(c, 0), &before);
    for (uint32_t i = 0; i < 30000; i++) {
        cluster_step(c, 100);
    }
    node_stats(cluster_node(c, 0), &after);
    assert_true(after.txn_commits > before.txn_commits); /* the sweep has deleted it */
    cluster_destroy(c);
}

/* ---- Money ---- */

static void test_money_everywhere(void **state)
{
    static const uint32_t nodes[] = {1, 2, 3, 5, 3, 3};
    static const uint32_t workers[] = {1, 1, 1, 1, 2, 4};
    (void)state;
    for (uint32_t i = 0; i < 6; i++) {
        struct bank_config config = {
            .accounts = 12, .clients = 3, .audits = 100, .local = 500, .seed = 40 + i};
        struct bank_cluster m = bank_cluster_open(nodes[i], workers[i], &config);
        bank_cluster_run(&m, 6000);
        struct bank_counts counts = bank_counts(m.bank);
        print_message("%u nodes, %u workers: %lu transfers, %lu conflicts, %lu audits, %lu busy\n",
                      nodes[i], workers[i], (unsigned long)counts.done,
                      (unsigned long)counts.conflicts, (unsigned long)counts.audits,
                      (unsigned long)counts.busy);
        assert_true(counts.done > 200 && counts.audits > 20);
        assert_int_equal(counts.busy + counts.unknown + counts.unavailable, 0);
        bank_cluster_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_operations),
        cmocka_unit_test(test_written_is_replicated),
#ifdef HK_MUTANTS
        cmocka_unit_test(test_written_alone_is_lost),
#endif
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_watches),
        cmocka_unit_test(test_acquire),
        cmocka_unit_test(test_expiry),
        cmocka_unit_test(test_money_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
