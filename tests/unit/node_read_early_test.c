/* Reads of what this node's transactions have committed and what is not replicated yet: by whom,
 * and what is said about it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node/engines.h"
#include "node/read.h"
#include "support/node_cluster.h"

#define SECOND 1000000u

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct node_read look(struct cluster *c, struct node_reader *r, const char *key, bool early)
{
    struct node_read read = {.key = text(key), .answer = 99};
    (early ? node_read_early : node_read)(r, 0, cluster_now(c), 1, &read);
    return read;
}

static void check(struct cluster *c, struct node_reader *r, const char *key, const char *value)
{
    struct node_read read = look(c, r, key, true);
    assert_int_equal(read.answer, NODE_READ_FOUND);
    assert_true(read.early && read.owned && read.version != 0);
    assert_true(bytes_equal(read.value, text(value)));
    assert_int_equal(look(c, r, key, false).answer, NODE_READ_ASK);
}

/* A transaction has read "k" and written "w" and "gone"; nobody else hears of it. */
static void test_early(void **state)
{
    (void)state;
    struct cluster_config config = {
        .nodes = 3, .workers = {2, 2, 2}, .ops = &zeus_ops, .engine = &zeus, .seed = 7};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10 * SECOND);
    const char *const keys[] = {"k", "w", "gone"};
    for (uint32_t i = 0; i < 3; i++) {
        struct op set = {.kind = OP_SET, .key = text(keys[i]), .value = text("old")};
        assert_int_equal(cluster_call(c, 0, &set).kind, ANSWER_OK);
    }
    struct node_reader *own = NULL;
    struct node_reader *other = NULL;
    struct node_reader *nobodys = NULL;
    assert_int_equal(node_reader_open(cluster_node(c, 0), &own), HK_OK);
    assert_int_equal(node_reader_open(cluster_node(c, 0), &other), HK_OK);
    assert_int_equal(node_reader_open(cluster_node(c, 0), &nobodys), HK_OK);
    node_reader_worker(own, 0);
    node_reader_worker(other, 1);
    assert_int_equal(look(c, own, "k", true).answer, NODE_READ_FOUND);
    assert_false(look(c, own, "k", true).early);

    for (uint32_t to = 1; to <= 2; to++) {
        cluster_cut(c, 0, to, true);
    }
    struct op ops[3] = {{.kind = OP_GET, .key = text("k")},
                        {.kind = OP_SET, .key = text("w"), .value = text("new")},
                        {.kind = OP_DELETE, .key = text("gone")}};
    struct txn_request txn = {.ops = ops, .ops_n = 3};
    cluster_begin(c, 0, 0, &ops[0], &txn);
    for (uint32_t i = 0; i < 20; i++) {
        cluster_step(c, 10);
    }
    check(c, own, "k", "old");
    check(c, own, "w", "new");
    struct node_read gone = look(c, own, "gone", true);
    assert_int_equal(gone.answer, NODE_READ_ABSENT);
    assert_true(gone.early);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(look(c, other, keys[i], true).answer, NODE_READ_ASK);
        assert_int_equal(look(c, nobodys, keys[i], true).answer, NODE_READ_ASK);
        assert_false(look(c, other, keys[i], true).early);
    }

    for (uint32_t to = 1; to <= 2; to++) {
        cluster_cut(c, 0, to, false);
    }
    assert_int_equal(cluster_end(c).kind, ANSWER_OK);
    assert_int_equal(look(c, own, "w", true).answer, NODE_READ_FOUND);
    assert_false(look(c, own, "w", true).early);
    assert_int_equal(look(c, other, "w", true).answer, NODE_READ_FOUND);
    node_reader_close(own);
    node_reader_close(other);
    node_reader_close(nobodys);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
