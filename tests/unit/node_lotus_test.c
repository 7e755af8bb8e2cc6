/* Lotus on real nodes: operations give what they do elsewhere, wherever they run and however their
 * messages are cut; ranges see no phantoms. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/lotus/lotus.h"
#include "support/node_calls.h"

/* What configurations there are, one after the other: policies, and every way to cut messages. */
static struct lotus_config variant(uint32_t i)
{
    return (struct lotus_config){
        .lock.policy = (uint8_t)(i % LOCK_POLICIES),
        .one_trip_off = (i & 1) != 0,
        .one_at_a_time = (i & 2) != 0,
        .hints_off = (i & 4) != 0,
    };
}
#define VARIANTS 6u

static struct cluster *start(uint32_t nodes, uint32_t workers, const struct lotus_config *lotus)
{
    struct cluster_config config = calls_config(nodes, workers, &lotus_ops, lotus);
    return calls_start(&config);
}

/* ---- Single keys ---- */

static void single_operations_anywhere(void **state)
{
    static const uint32_t nodes[VARIANTS] = {1, 2, 3, 5, 3, 2};
    (void)state;
    for (uint32_t i = 0; i < VARIANTS; i++) {
        uint32_t n = nodes[i];
        struct lotus_config lotus = variant(i);
        struct cluster *c = start(n, 1 + i % 2, &lotus);
        for (uint32_t k = 0; k < 8; k++) {
            char key[16];
            (void)snprintf(key, sizeof key, "key-%u", k);
            calls_read(c, 0, key, NULL);
            assert_int_equal(calls_run(c, k % n, OP_SET, key, "one").kind, ANSWER_OK);
            assert_int_equal(calls_run(c, (k + 1) % n, OP_APPEND, key, "+two").number, 7);
            for (uint32_t at = 0; at < n; at++) {
                calls_read(c, at, key, "one+two");
            }
            assert_int_equal(calls_run(c, (k + 2) % n, OP_DELETE, key, "").number, 1);
            assert_int_equal(calls_run(c, k % n, OP_DELETE, key, "").number, 0);
            calls_read(c, (k + 1) % n, key, NULL);
        }
        assert_int_equal(CALLS_SUM(c, n, lotus_whole) == 0, lotus.one_trip_off);
        assert_true(CALLS_SUM(c, n, lotus_transactions) >= 8 * 5);
        cluster_destroy(c);
    }
}

static void values_large_and_too_large(void **state)
{
    (void)state;
    static char big[(1u << 20) + 1];
    struct lotus_config lotus = {.lock.policy = LOCK_WAIT_DIE};
    struct cluster *c = start(3, 1, &lotus);
    memset(big, 'x', sizeof big);
    for (uint32_t k = 0; k < 6; k++) {
        char key[16];
        (void)snprintf(key, sizeof key, "key-%u", k);
        struct op set = {.kind = OP_SET, .key = calls_text(key), .value = bytes_of(big, 1u << 20)};
        assert_int_equal(cluster_call(c, k % 3, &set).kind, ANSWER_OK);
        assert_int_equal(calls_run(c, (k + 1) % 3, OP_STRLEN, key, "").number, 1 << 20);
        struct cluster_answer a = calls_run(c, k % 3, OP_APPEND, key, "y");
        assert_int_equal(a.kind, ANSWER_ERROR);
        assert_int_equal(a.number, HK_ERR_TOOBIG);
        set.value = bytes_of(big, sizeof big);
        a = cluster_call(c, k % 3, &set);
        assert_int_equal(a.number, HK_ERR_TOOBIG);
        assert_int_equal(calls_run(c, (k + 2) % 3, OP_STRLEN, key, "").number, 1 << 20);
    }
    cluster_destroy(c);
}

/* ---- Lists of operations ---- */

static void lists(struct cluster *c, uint32_t nodes)
{
    struct op set[] = {{.kind = OP_SET, .key = calls_text("a"), .value = calls_text("1")},
                       {.kind = OP_SET, .key = calls_text("b"), .value = calls_text("2")},
                       {.kind = OP_SET, .key = calls_text("c"), .value = calls_text("3")},
                       {.kind = OP_APPEND, .key = calls_text("a"), .value = calls_text("0")}};
    struct cluster_txn_answer a = calls_transact(c, 0, set, 4, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_int_equal(a.n, 4);
    assert_int_equal(a.answers[3].number, 2);
    assert_true(a.answers[0].version != 0 && a.answers[0].version == a.answers[3].version);
    for (uint32_t at = 0; at < nodes; at++) {
        calls_read(c, at, "a", "10");
        calls_read(c, at, "c", "3");
    }
    /* One that does not apply undoes all, and lets go of all, what is new included. */
    struct op nx[] = {
        {.kind = OP_SET, .key = calls_text("d"), .value = calls_text("4"), .flags = OPF_NX},
        {.kind = OP_SET, .key = calls_text("e"), .value = calls_text("5"), .flags = OPF_NX},
        {.kind = OP_SET, .key = calls_text("b"), .value = calls_text("9"), .flags = OPF_NX}};
    a = calls_transact(c, 1 % nodes, nx, 3, TXN_ALL);
    assert_int_equal(a.kind, ANSWER_NUMBER);
    calls_read(c, 2 % nodes, "d", NULL);
    calls_read(c, 0, "e", NULL);
    assert_int_equal(calls_run(c, 2 % nodes, OP_SET, "d", "x").kind, ANSWER_OK);
    struct op some[] = {
        {.kind = OP_SET, .key = calls_text("a"), .value = calls_text("7")},
        {.kind = OP_DELETE, .key = calls_text("nothing")},
        {.kind = OP_SET, .key = calls_text("c"), .value = calls_text("8"), .flags = OPF_NX},
        {.kind = TXN_OP_COPY, .key = calls_text("b"), .arg = calls_text("copy")},
        {.kind = TXN_OP_RENAME, .key = calls_text("d"), .arg = calls_text("moved")}};
    a = calls_transact(c, 2 % nodes, some, 5, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_int_equal(a.answers[1].number, 0);
    assert_int_equal(a.answers[2].kind, ANSWER_NIL);
    assert_int_equal(a.answers[3].number, 1);
    assert_int_equal(a.answers[4].kind, ANSWER_OK);
    for (uint32_t at = 0; at < nodes; at++) {
        calls_read(c, at, "copy", "2");
        calls_read(c, at, "moved", "x");
        calls_read(c, at, "d", NULL);
        assert_int_equal(calls_run(c, at, OP_SET, "c", "again").kind, ANSWER_OK);
        assert_int_equal(calls_run(c, at, OP_SET, "nothing", "now").kind, ANSWER_OK);
    }
}

static void lists_over_several_servers(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < VARIANTS; i++) {
        struct lotus_config lotus = variant(i);
        uint32_t nodes = i % 2 == 0 ? 3 : 5;
        struct cluster *c = start(nodes, 1 + i % 2, &lotus);
        lists(c, nodes);
        cluster_destroy(c);
    }
}

static void watches_hold_or_not(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct lotus_config lotus = variant(i);
        struct cluster *c = start(3, 1, &lotus);
        struct op get[] = {{.kind = OP_GET, .key = calls_text("a")},
                           {.kind = OP_GET, .key = calls_text("b")}};
        assert_int_equal(calls_run(c, 0, OP_SET, "a", "1").kind, ANSWER_OK);
        struct cluster_txn_answer seen = calls_transact(c, 0, get, 2, TXN_ABSENCE);
        assert_int_equal(seen.kind, ANSWER_OK);
        assert_int_equal(seen.answers[1].version, TXN_ABSENT);
        struct txn_watch watches[] = {{.key = calls_text("a"), .version = seen.answers[0].version},
                                      {.key = calls_text("b"), .version = seen.answers[1].version}};
        struct op set = {.kind = OP_SET, .key = calls_text("sum"), .value = calls_text("1")};
        struct txn_request txn = {.ops = &set, .ops_n = 1, .watches = watches, .watches_n = 2};
        assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_OK);
        assert_int_equal(calls_run(c, 2, OP_SET, "b", "2").kind, ANSWER_OK);
        set.value = calls_text("2");
        assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_NIL);
        /* It has come and gone: not what was seen. */
        assert_int_equal(calls_run(c, 2, OP_DELETE, "b", "").number, 1);
        assert_int_equal(cluster_transact(c, 0, 0, &txn).kind, ANSWER_NIL);
        watches[1].version = 0;
        assert_int_equal(cluster_transact(c, 0, 0, &txn).kind, ANSWER_OK);
        assert_int_equal(calls_run(c, 2, OP_SET, "a", "1").kind, ANSWER_OK);
        assert_int_equal(cluster_transact(c, 0, 0, &txn).kind, ANSWER_NIL);
        calls_read(c, 2, "sum", "2");
        cluster_destroy(c);
    }
}

/* ---- Ranges ---- */

/* The keys of a range's answer, with blanks between them. */
static const char *keys_of(const struct cluster_op_answer *a)
{
    static char out[512];
    struct bytes rest = bytes_of(a->value, a->n), key, value;
    size_t n = 0;
    assert_int_equal(a->kind, ANSWER_PAIRS);
    int64_t pairs = 0;
    while (txn_pair_take(&rest, &key, &value)) {
        n += (size_t)snprintf(out + n, sizeof out - n, n > 0 ? " %.*s" : "%.*s", (int)key.n,
                              (const char *)key.at);
        pairs++;
    }
    assert_int_equal(rest.n, 0);
    assert_int_equal(pairs, a->number);
    out[n] = 0;
    return out;
}

static struct op range_of(uint8_t kind, const char *from, const char *to, int64_t limit,
                          uint16_t flags)
{
    return (struct op){.kind = kind,
                       .key = calls_text(from),
                       .arg = calls_text(to),
                       .number = limit,
                       .flags = flags};
}

static void fill_rows(struct cluster *c, uint32_t nodes, const char *prefix)
{
    for (uint32_t i = 0; i < 20; i++) {
        char key[24];
        (void)snprintf(key, sizeof key, "%s%02u", prefix, i);
        assert_int_equal(calls_run(c, i % nodes, OP_SET, key, key).kind, ANSWER_OK);
    }
}

static void ranges(struct cluster *c, uint32_t nodes, const char *p)
{
    char from[24], to[24], third[24], want[128];
    fill_rows(c, nodes, p);
    (void)snprintf(from, sizeof from, "%s02", p);
    (void)snprintf(to, sizeof to, "%s07", p);
    (void)snprintf(third, sizeof third, "%s03", p);
    struct op ops[] = {range_of(TXN_OP_RANGE, from, to, 0, 0),
                       range_of(TXN_OP_RANGE, from, to, 2, 0),
                       range_of(TXN_OP_RANGE, from, to, 2, TXN_OPF_REVERSE),
                       range_of(TXN_OP_RANGE_COUNT, from, to, 0, 0),
                       {.kind = OP_DELETE, .key = calls_text(third)},
                       range_of(TXN_OP_RANGE, from, to, 2, 0),
                       range_of(TXN_OP_RANGE_COUNT, from, to, 0, 0)};
    struct cluster_txn_answer a = calls_transact(c, nodes - 1, ops, 7, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    (void)snprintf(want, sizeof want, "%s02 %s03 %s04 %s05 %s06", p, p, p, p, p);
    assert_string_equal(keys_of(&a.answers[0]), want);
    (void)snprintf(want, sizeof want, "%s02 %s03", p, p);
    assert_string_equal(keys_of(&a.answers[1]), want);
    (void)snprintf(want, sizeof want, "%s06 %s05", p, p);
    assert_string_equal(keys_of(&a.answers[2]), want);
    assert_int_equal(a.answers[3].number, 5);
    (void)snprintf(want, sizeof want, "%s02 %s04", p, p);
    assert_string_equal(keys_of(&a.answers[5]), want);
    assert_int_equal(a.answers[6].number, 4);
    struct op remove[] = {range_of(TXN_OP_RANGE_DELETE, from, to, 3, 0),
                          range_of(TXN_OP_RANGE, from, to, 1, 0)};
    a = calls_transact(c, 0, remove, 2, 0);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_int_equal(a.answers[0].number, 3);
    (void)snprintf(want, sizeof want, "%s06", p);
    assert_string_equal(keys_of(&a.answers[1]), want);
    calls_read(c, 0, third, NULL);
}

static void ranges_over_all_servers(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < VARIANTS; i++) {
        struct lotus_config lotus = variant(i);
        uint32_t nodes = 1 + i % 3;
        struct cluster *c = start(nodes, 1 + i % 2, &lotus);
        ranges(c, nodes, "row-");
        ranges(c, nodes, "{tag}:"); /* at one server */
        struct op all = range_of(TXN_OP_RANGE_COUNT, "", "", 0, 0);
        assert_int_equal(calls_transact(c, 0, &all, 1, 0).answers[0].number, 2 * 16);
        cluster_destroy(c);
    }
}

/* A range that is watched: nothing may come into it. */
static void phantoms_end_watched_ranges(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct lotus_config lotus = variant(i);
        struct cluster *c = start(3, 1, &lotus);
        fill_rows(c, 3, "row-");
        struct op look = range_of(TXN_OP_RANGE, "row-05", "row-09", 0, 0);
        uint64_t version = calls_transact(c, 0, &look, 1, 0).answers[0].version;
        assert_true(version != 0);
        struct txn_watch watch = {
            .key = look.key, .end = look.arg, .range = true, .version = version};
        struct op set = {.kind = OP_SET, .key = calls_text("sum"), .value = calls_text("1")};
        struct txn_request txn = {.ops = &set, .ops_n = 1, .watches = &watch, .watches_n = 1};
        assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_OK);
        assert_int_equal(calls_run(c, 2, OP_SET, "row-03", "else").kind, ANSWER_OK);
        assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_OK);
        assert_int_equal(calls_run(c, 2, OP_SET, "row-05x", "new").kind, ANSWER_OK);
        assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_NIL);
        assert_int_equal(calls_run(c, 2, OP_DELETE, "row-05x", "").number, 1);
        assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_OK);
        assert_int_equal(calls_run(c, 2, OP_SET, "row-07", "other").kind, ANSWER_OK);
        assert_int_equal(cluster_transact(c, 1, 0, &txn).kind, ANSWER_NIL);
        cluster_destroy(c);
    }
}

/* Rows whose deadline has passed count nowhere, however many stand in front. */
static void expired_rows_are_absent(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct lotus_config lotus = variant(i);
        struct cluster *c = start(3, 1, &lotus);
        fill_rows(c, 3, "row-");
        for (uint32_t k = 0; k < 10; k++) {
            char key[24];
            (void)snprintf(key, sizeof key, "row-%02u", k);
            struct op op = {.kind = OP_EXPIRE,
                            .key = calls_text(key),
                            .number = (int64_t)*cluster_wall_ms(c) + 1000};
            assert_int_equal(cluster_call(c, k % 3, &op).number, 1);
        }
        cluster_calendar(c, 2000);
        struct op ops[] = {range_of(TXN_OP_RANGE, "row-", "row-99", 2, 0),
                           range_of(TXN_OP_RANGE_COUNT, "", "", 0, 0),
                           {.kind = OP_GET, .key = calls_text("row-07")}};
        struct cluster_txn_answer a = calls_transact(c, i % 3, ops, 3, 0);
        assert_string_equal(keys_of(&a.answers[0]), "row-10 row-11");
        assert_int_equal(a.answers[1].number, 10);
        assert_int_equal(a.answers[2].kind, ANSWER_NIL);
        /* Nobody finds them afterwards whose calendar is behind. */
        cluster_calendar(c, -2000);
        calls_read(c, (i + 1) % 3, "row-07", NULL);
        cluster_destroy(c);
    }
}

static void note_hot(void *context, struct bytes key, uint64_t rate)
{
    uint64_t *rates = context;
    assert_true(key.n == 1 && key.at[0] >= 'a' && key.at[0] <= 'c');
    rates[key.at[0] - 'a'] = rate;
}

/* HOTKEYS: one operation for each key of a list, as for a command over one. */
static void keys_of_lists_are_counted(void **state)
{
    struct lotus_config lotus = {.lock.policy = LOCK_WOUND_WAIT};
    struct cluster_config config = calls_config(2, 1, &lotus_ops, &lotus);
    uint64_t rates[3] = {0};
    (void)state;
    config.hot.sample = 1;
    struct cluster *c = calls_start(&config);
    struct op ops[] = {{.kind = OP_GET, .key = calls_text("a")},
                       {.kind = OP_GET, .key = calls_text("b")}};
    for (uint32_t i = 0; i < 100; i++) {
        assert_int_equal(calls_transact(c, 0, ops, 2, 0).kind, ANSWER_OK);
        (void)calls_run(c, 0, OP_GET, "c", "");
    }
    assert_int_equal(node_hotkeys(cluster_node(c, 0), 0, cluster_now(c), 10, note_hot, rates),
                     HK_OK);
    assert_true(rates[2] > 0);
    assert_int_equal(rates[0], rates[2]);
    assert_int_equal(rates[1], rates[2]);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(single_operations_anywhere), cmocka_unit_test(values_large_and_too_large),
        cmocka_unit_test(lists_over_several_servers), cmocka_unit_test(watches_hold_or_not),
        cmocka_unit_test(ranges_over_all_servers),    cmocka_unit_test(phantoms_end_watched_ranges),
        cmocka_unit_test(expired_rows_are_absent),    cmocka_unit_test(keys_of_lists_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
