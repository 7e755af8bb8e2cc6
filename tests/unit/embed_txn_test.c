/* Transactions of the public API: on a node alone what each call answers, and on three nodes that
 * they are all or nothing whoever owns what. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "support/embed_cluster.h"
#include "support/embed_money.h"

static struct embed_cluster cluster;
static struct hk_session *s; /* of node 0 */

static int open_nodes(uint32_t nodes)
{
    embed_cluster_open_engine(&cluster, nodes, 2, "zeus");
    s = embed_cluster_session(&cluster, 0);
    return 0;
}

static int open_one(void **state)
{
    (void)state;
    return open_nodes(1);
}

static int open_three(void **state)
{
    (void)state;
    return open_nodes(3);
}

static int close_all(void **state)
{
    (void)state;
    hk_session_close(s);
    embed_cluster_close(&cluster);
    return 0;
}

static struct hk_txn *begin_in(struct hk_session *session, uint32_t flags)
{
    const struct hk_txn_options options = {.flags = flags, .timeout_ms = EMBED_BOUND_MS};
    struct hk_txn *t = NULL;
    assert_int_equal(hk_txn_begin(session, &options, &t), HK_OK);
    return t;
}

static struct hk_txn *begin(void)
{
    return begin_in(s, 0);
}

static int put(struct hk_txn *t, const char *key, const char *value)
{
    return hk_txn_put(t, hk_text(key), hk_text(value), NULL);
}

static void check_value(int err, const char *buffer, size_t n, const char *value)
{
    assert_int_equal(err, value != NULL ? HK_OK : HK_ERR_NOTFOUND);
    assert_int_equal(n, value != NULL ? strlen(value) : 0);
    assert_memory_equal(buffer, value != NULL ? value : "", n);
}

static void assert_sees(struct hk_txn *t, const char *key, const char *value)
{
    char buffer[64];
    size_t n = 99;
    int err = hk_txn_get(t, hk_text(key), buffer, sizeof buffer, &n);
    check_value(err, buffer, n, value);
}

static void assert_is(struct hk_session *session, const char *key, const char *value)
{
    char buffer[64];
    size_t n = 99;
    int err = hk_get(session, hk_text(key), buffer, sizeof buffer, &n);
    check_value(err, buffer, n, value);
}

/* ---- One node ---- */

static void writes_are_private_until_the_commit(void **state)
{
    (void)state;
    assert_int_equal(hk_put(s, hk_text("a"), hk_text("old"), NULL), HK_OK);
    struct hk_txn *t = begin();
    assert_sees(t, "a", "old");
    assert_int_equal(put(t, "a", "new"), HK_OK);
    assert_int_equal(put(t, "b", "first"), HK_OK);
    assert_sees(t, "a", "new");
    assert_sees(t, "b", "first");
    assert_is(s, "a", "old");
    assert_is(s, "b", NULL);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    assert_is(s, "a", "new");
    assert_is(s, "b", "first");

    t = begin();
    assert_int_equal(hk_txn_delete(t, hk_text("a")), HK_OK);
    assert_int_equal(hk_txn_delete(t, hk_text("nothing")), HK_OK);
    assert_sees(t, "a", NULL);
    assert_int_equal(put(t, "b", "second"), HK_OK);
    assert_int_equal(put(t, "b", ""), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    assert_is(s, "a", NULL);
    assert_is(s, "b", "");

    t = begin();
    assert_int_equal(put(t, "b", "third"), HK_OK);
    hk_txn_abort(t);
    assert_is(s, "b", "");
}

static void reads_stay_as_they_were(void **state)
{
    (void)state;
    assert_int_equal(hk_put(s, hk_text("r"), hk_text("1"), NULL), HK_OK);
    struct hk_txn *t = begin();
    assert_sees(t, "r", "1");
    assert_int_equal(hk_put(s, hk_text("r"), hk_text("2"), NULL), HK_OK);
    assert_sees(t, "r", "1");
    assert_int_equal(put(t, "x", "of no effect"), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_ERR_ABORTED);
    assert_is(s, "x", NULL);
    assert_is(s, "r", "2");
}

/* What was absent counts as well, and what was deleted and set anew. */
static void absence_is_watched(void **state)
{
    (void)state;
    struct hk_txn *t = begin();
    assert_sees(t, "absent", NULL);
    assert_int_equal(hk_put(s, hk_text("absent"), hk_text("1"), NULL), HK_OK);
    assert_int_equal(put(t, "y", "1"), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_ERR_ABORTED);

    t = begin();
    assert_sees(t, "absent", "1");
    assert_int_equal(hk_delete(s, hk_text("absent")), HK_OK);
    assert_int_equal(hk_put(s, hk_text("absent"), hk_text("1"), NULL), HK_OK);
    assert_int_equal(put(t, "y", "1"), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_ERR_ABORTED);
    assert_is(s, "y", NULL);
}

/* Values that were never there together are not shown. */
static void no_mixtures(void **state)
{
    (void)state;
    char value;
    size_t n;
    assert_int_equal(hk_put(s, hk_text("m1"), hk_text("1"), NULL), HK_OK);
    assert_int_equal(hk_put(s, hk_text("m2"), hk_text("1"), NULL), HK_OK);
    struct hk_txn *t = begin_in(s, HK_TXN_READ_ONLY);
    assert_sees(t, "m1", "1");
    struct hk_txn *other = begin();
    assert_int_equal(put(other, "m1", "2"), HK_OK);
    assert_int_equal(put(other, "m2", "2"), HK_OK);
    assert_int_equal(hk_txn_commit(other), HK_OK);
    assert_int_equal(hk_txn_get(t, hk_text("m2"), &value, 1, &n), HK_ERR_ABORTED);
    assert_int_equal(hk_txn_get(t, hk_text("m1"), &value, 1, &n), HK_ERR_ABORTED);
    assert_int_equal(hk_txn_commit(t), HK_ERR_ABORTED);
}

static void read_only_transactions_read(void **state)
{
    (void)state;
    assert_int_equal(hk_put(s, hk_text("o1"), hk_text("1"), NULL), HK_OK);
    assert_int_equal(hk_put(s, hk_text("o2"), hk_text("2"), NULL), HK_OK);
    struct hk_txn *t = begin_in(s, HK_TXN_READ_ONLY);
    assert_sees(t, "o1", "1");
    assert_sees(t, "o2", "2");
    assert_int_equal(put(t, "o1", "3"), HK_ERR_INVALID);
    assert_int_equal(hk_txn_delete(t, hk_text("o1")), HK_ERR_INVALID);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    t = begin_in(s, HK_TXN_READ_ONLY);
    assert_sees(t, "o1", "1");
    assert_sees(t, "no such key", NULL);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    t = begin_in(s, HK_TXN_READ_ONLY);
    assert_sees(t, "o1", "1");
    assert_sees(t, "no such key", NULL);
    assert_int_equal(hk_put(s, hk_text("no such key"), hk_text("2"), NULL), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_ERR_ABORTED);
    assert_int_equal(hk_txn_commit(begin()), HK_OK); /* of nothing */
}

static void done(void *context, const struct hk_result *result)
{
    int *errs = context;
    errs[result->err == HK_OK ? 0 : 1]++;
    assert_true(result->err == HK_OK || result->err == HK_ERR_ABORTED);
}

static void commit_async(struct hk_txn *t, int *errs)
{
    int err = hk_txn_commit_async(t, done, errs);
    while (err == HK_ERR_FULL) {
        assert_int_equal(hk_session_wait(s, EMBED_BOUND_MS), HK_OK);
        (void)hk_session_poll(s, UINT32_MAX);
        err = hk_txn_commit_async(t, done, errs);
    }
    assert_int_equal(err, HK_OK);
}

static void commits_that_do_not_wait(void **state)
{
    (void)state;
    int errs[2] = {0};
    for (int i = 0; i < 200; i++) {
        char key[16];
        struct hk_txn *t = begin();
        (void)snprintf(key, sizeof key, "async %d", i);
        assert_int_equal(put(t, key, "1"), HK_OK);
        assert_int_equal(put(t, "async last", key), HK_OK);
        commit_async(t, errs);
    }
    assert_is(s, "async last", "async 199"); /* in their order, and before this read */
    assert_int_equal(hk_txn_fence(s, EMBED_BOUND_MS), HK_OK);
    assert_int_equal(errs[0], 200);
    assert_int_equal(hk_session_in_flight(s), 0);
    struct hk_txn *t = begin_in(s, HK_TXN_READ_ONLY);
    assert_sees(t, "async 7", "1");
    commit_async(t, errs);
    assert_int_equal(hk_session_poll(s, 10), 1);
    assert_int_equal(errs[0], 201);
}

/* Each reads what the one before it writes, which is under way. */
static void commits_that_build_on_each_other(void **state)
{
    (void)state;
    int errs[2] = {0};
    char value[32];
    size_t n = 0;
    for (int i = 0; i < 20; i++) {
        struct hk_txn *t = begin();
        int err = hk_txn_get(t, hk_text("chain"), value, sizeof value, &n);
        assert_int_equal(err, i > 0 ? HK_OK : HK_ERR_NOTFOUND);
        assert_int_equal(n, i);
        value[n] = '+';
        assert_int_equal(hk_txn_put(t, hk_text("chain"), hk_bytes(value, n + 1), NULL), HK_OK);
        commit_async(t, errs);
    }
    assert_int_equal(hk_txn_fence(s, EMBED_BOUND_MS), HK_OK);
    assert_int_equal(errs[0], 20);
    assert_int_equal(errs[1], 0);
    assert_is(s, "chain", "++++++++++++++++++++");
}

/* All read one key, which is bound to each until it is replicated. */
static void commits_that_read_the_same(void **state)
{
    (void)state;
    int errs[2] = {0};
    assert_int_equal(hk_put(s, hk_text("common"), hk_text("1"), NULL), HK_OK);
    for (int i = 0; i < 50; i++) {
        char key[16];
        struct hk_txn *t = begin();
        (void)snprintf(key, sizeof key, "out %d", i);
        assert_sees(t, "common", "1");
        assert_int_equal(put(t, key, "1"), HK_OK);
        commit_async(t, errs);
        t = begin_in(s, HK_TXN_READ_ONLY);
        assert_sees(t, "common", "1");
        assert_sees(t, key, "1");
        assert_int_equal(hk_txn_commit(t), HK_OK);
    }
    assert_int_equal(hk_txn_fence(s, EMBED_BOUND_MS), HK_OK);
    assert_int_equal(errs[0], 50);
}

static void values_of_any_size(void **state)
{
    (void)state;
    size_t size = 300000;
    char *value = malloc(size);
    char *back = malloc(size);
    size_t n = 0;
    assert_non_null(value);
    assert_non_null(back);
    memset(value, 'v', size);
    struct hk_txn *t = begin();
    assert_int_equal(hk_txn_put(t, hk_text("large"), hk_bytes(value, size), NULL), HK_OK);
    assert_int_equal(hk_txn_get(t, hk_text("large"), back, 3, &n), HK_ERR_TOOBIG);
    assert_int_equal(n, size);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    t = begin();
    assert_int_equal(hk_txn_get(t, hk_text("large"), NULL, 0, &n), HK_ERR_TOOBIG);
    assert_int_equal(hk_txn_get(t, hk_text("large"), back, size, &n), HK_OK);
    assert_int_equal(n, size);
    assert_memory_equal(value, back, size);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    free(value);
    free(back);
}

static void keys_expire(void **state)
{
    (void)state;
    const struct hk_put_options brief = {.ttl_ms = 1};
    const struct hk_put_options keep = {.flags = HK_PUT_KEEP_TTL};
    const struct hk_put_options if_absent = {.flags = HK_PUT_IF_ABSENT};
    struct hk_txn *t = begin();
    assert_int_equal(hk_txn_put(t, hk_text("brief"), hk_text("1"), &brief), HK_OK);
    assert_int_equal(hk_txn_put(t, hk_text("brief"), hk_text("2"), &keep), HK_OK);
    assert_int_equal(hk_txn_put(t, hk_text("brief"), hk_text("3"), &if_absent), HK_ERR_INVALID);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    uint64_t until_us = clock_boot_us() + EMBED_BOUND_MS * 1000ull;
    int err;
    do {
        char value;
        err = hk_get(s, hk_text("brief"), &value, 1, NULL);
    } while (err == HK_OK && clock_boot_us() < until_us);
    assert_int_equal(err, HK_ERR_NOTFOUND);
    t = begin();
    assert_sees(t, "brief", NULL);
    assert_int_equal(put(t, "brief", "again"), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    assert_is(s, "brief", "again");
}

static void put_many(struct hk_txn *t, const char *value)
{
    char key[16];
    for (uint32_t i = 0; i < HK_TXN_KEYS_MAX; i++) {
        (void)snprintf(key, sizeof key, "many %u", i);
        assert_int_equal(put(t, key, value), HK_OK);
    }
}

static void many_keys(void **state)
{
    (void)state;
    struct hk_txn *t = begin();
    char key[16];
    put_many(t, "1");
    assert_int_equal(put(t, "one more", "1"), HK_ERR_FULL);
    assert_int_equal(hk_txn_commit(t), HK_ERR_FULL);
    t = begin();
    put_many(t, "2");
    assert_int_equal(hk_txn_commit(t), HK_OK);
    t = begin_in(s, HK_TXN_READ_ONLY);
    for (uint32_t i = 0; i < HK_TXN_KEYS_MAX; i++) {
        (void)snprintf(key, sizeof key, "many %u", i);
        assert_sees(t, key, "2");
    }
    assert_int_equal(hk_txn_commit(t), HK_OK);
}

static void what_makes_no_sense(void **state)
{
    (void)state;
    struct hk_txn *t;
    const struct hk_txn_options unknown = {.flags = 2};
    assert_int_equal(hk_txn_begin(NULL, NULL, &t), HK_ERR_INVALID);
    assert_int_equal(hk_txn_begin(s, NULL, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_txn_begin(s, &unknown, &t), HK_ERR_INVALID);
    hk_session_space(s, 3);
    assert_int_equal(hk_txn_begin(s, NULL, &t), HK_ERR_INVALID);
    hk_session_space(s, 0);
    assert_int_equal(hk_txn_commit(NULL), HK_ERR_INVALID);
    assert_int_equal(hk_txn_commit_async(NULL, NULL, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_txn_fence(NULL, 0), HK_ERR_INVALID);
    assert_int_equal(hk_txn_run(s, NULL, NULL, NULL), HK_ERR_INVALID);
    hk_txn_abort(NULL);
    t = begin();
    assert_int_equal(hk_txn_get(NULL, hk_text("k"), NULL, 0, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_txn_get(t, hk_text("k"), NULL, 1, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_txn_get(t, hk_bytes(NULL, 1), NULL, 0, NULL), HK_ERR_INVALID);
    assert_int_equal(hk_txn_put(t, hk_bytes("", HK_KEY_MAX + 1), hk_text(""), NULL), HK_ERR_TOOBIG);
    assert_int_equal(hk_txn_put(t, hk_text("k"), hk_bytes("", HK_VALUE_MAX + 1), NULL),
                     HK_ERR_TOOBIG);
    assert_int_equal(hk_txn_put(NULL, hk_text("k"), hk_text(""), NULL), HK_ERR_INVALID);
    assert_int_equal(hk_txn_delete(NULL, hk_text("k")), HK_ERR_INVALID);
    /* None of this has ended it. */
    assert_int_equal(put(t, "k", "1"), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_OK);
}

/* ---- Three nodes ---- */

#define ACCOUNTS 8u
#define MONEY 1000

static void check_total(struct hk_session *session)
{
    const struct hk_txn_options options = {.flags = HK_TXN_READ_ONLY, .timeout_ms = EMBED_BOUND_MS};
    struct embed_total total = {.accounts = ACCOUNTS};
    assert_int_equal(hk_txn_run(session, &options, embed_money_add_up, &total), HK_OK);
    assert_int_equal(total.money, (int)ACCOUNTS * MONEY);
}

static void money_is_conserved(void **state)
{
    (void)state;
    const struct hk_txn_options options = {.timeout_ms = EMBED_BOUND_MS};
    struct hk_session *sessions[3] = {s, embed_cluster_session(&cluster, 1),
                                      embed_cluster_session(&cluster, 2)};
    for (uint32_t i = 0; i < ACCOUNTS; i++) {
        struct hk_txn *t = begin_in(sessions[i % 3], 0);
        assert_int_equal(embed_money_write(t, i, MONEY), HK_OK);
        assert_int_equal(hk_txn_commit(t), HK_OK);
    }
    for (uint32_t i = 0; i < 120; i++) {
        struct embed_payment p = {
            .from = i % ACCOUNTS, .to = (i * 5 + 1) % ACCOUNTS, .amount = (int)i};
        if (p.from != p.to) {
            assert_int_equal(hk_txn_run(sessions[i % 3], &options, embed_money_pay, &p), HK_OK);
            check_total(sessions[(i + 1) % 3]);
        }
    }
    hk_session_close(sessions[1]);
    hk_session_close(sessions[2]);
}

/* Another node writes between two tries. */
struct contest {
    struct hk_session *other;
    uint32_t tries;
};

static int contested(struct hk_txn *t, void *context)
{
    struct contest *c = context;
    char value[16];
    size_t n = 0;
    int err = hk_txn_get(t, hk_text("contested"), value, sizeof value, &n);
    if (err != HK_OK && err != HK_ERR_NOTFOUND) {
        return err;
    }
    if (c->tries++ == 0) {
        assert_int_equal(hk_put(c->other, hk_text("contested"), hk_text("theirs"), NULL), HK_OK);
    }
    return hk_txn_put(t, hk_text("contested"), hk_text("ours"), NULL);
}

static int gives_up(struct hk_txn *t, void *context)
{
    (void)context;
    assert_int_equal(put(t, "given up", "1"), HK_OK);
    return 42;
}

static void run_tries_again(void **state)
{
    (void)state;
    const struct hk_txn_options options = {.timeout_ms = EMBED_BOUND_MS};
    struct contest c = {.other = embed_cluster_session(&cluster, 1)};
    assert_int_equal(hk_txn_run(s, &options, contested, &c), HK_OK);
    assert_true(c.tries > 1);
    assert_is(c.other, "contested", "ours");
    assert_int_equal(hk_txn_run(s, &options, gives_up, NULL), 42);
    assert_is(s, "given up", NULL);
    hk_session_close(c.other);
}

/* What another node has is brought here, large values too. */
static void reads_from_afar(void **state)
{
    (void)state;
    struct hk_session *other = embed_cluster_session(&cluster, 2);
    size_t size = 200000;
    char *value = malloc(size);
    size_t n;
    assert_non_null(value);
    memset(value, 'x', size);
    assert_int_equal(hk_put(other, hk_text("far"), hk_bytes(value, size), NULL), HK_OK);
    memset(value, 'y', size);
    struct hk_txn *t = begin_in(s, HK_TXN_READ_ONLY);
    assert_int_equal(hk_txn_get(t, hk_text("far"), value, size, &n), HK_OK);
    assert_int_equal(n, size);
    assert_true(value[0] == 'x' && value[size - 1] == 'x');
    assert_sees(t, "far and absent", NULL);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    t = begin();
    assert_sees(t, "far and absent", NULL);
    assert_int_equal(hk_txn_delete(t, hk_text("far")), HK_OK);
    assert_int_equal(hk_txn_commit(t), HK_OK);
    assert_is(other, "far", NULL);
    free(value);
    hk_session_close(other);
}

/* A transaction whose time is over has done nothing. */
static void time_is_over(void **state)
{
    (void)state;
    const struct hk_txn_options brief = {.timeout_ms = 1};
    struct hk_txn *t;
    assert_int_equal(hk_txn_begin(s, &brief, &t), HK_OK);
    uint64_t until_us = clock_boot_us() + 2000;
    while (clock_boot_us() < until_us) {
    }
    assert_int_equal(put(t, "too late", "1"), HK_ERR_TIMEOUT);
    assert_int_equal(put(t, "too late", "1"), HK_ERR_TIMEOUT);
    assert_int_equal(hk_txn_commit(t), HK_ERR_TIMEOUT);
    assert_is(s, "too late", NULL);
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(writes_are_private_until_the_commit),
        cmocka_unit_test(reads_stay_as_they_were),
        cmocka_unit_test(absence_is_watched),
        cmocka_unit_test(no_mixtures),
        cmocka_unit_test(read_only_transactions_read),
        cmocka_unit_test(commits_that_do_not_wait),
        cmocka_unit_test(commits_that_build_on_each_other),
        cmocka_unit_test(commits_that_read_the_same),
        cmocka_unit_test(values_of_any_size),
        cmocka_unit_test(keys_expire),
        cmocka_unit_test(many_keys),
        cmocka_unit_test(what_makes_no_sense),
    };
    const struct CMUnitTest three[] = {
        cmocka_unit_test(money_is_conserved),
        cmocka_unit_test(commits_that_do_not_wait),
        cmocka_unit_test(commits_that_build_on_each_other),
        cmocka_unit_test(commits_that_read_the_same),
        cmocka_unit_test(run_tries_again),
        cmocka_unit_test(reads_from_afar),
        cmocka_unit_test(time_is_over),
    };
    int failed = cmocka_run_group_tests(alone, open_one, close_all);
    return failed + cmocka_run_group_tests(three, open_three, close_all);
}
