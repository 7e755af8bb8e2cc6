/* Transactions that a thread beside the workers commits (node/commit_here.h): here the test's own,
 * between two polls, so that every state of a commit can be looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/zeus/zeus.h"
#include "node/engines.h"
#include "node/read.h"
#include "support/node_desk.h"

#define SECOND 1000000u

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static struct desk desk;
static struct cluster *c;
static struct node_reader *reader;

static void open_with(uint32_t nodes)
{
    struct cluster_config config = {.nodes = nodes, .ops = &zeus_ops, .engine = &zeus, .seed = 11};
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = 1;
    }
    desk_start(&desk, &config);
    c = desk.cluster;
    assert_int_equal(node_reader_open(cluster_node(c, 0), &reader), HK_OK);
    node_reader_worker(reader, 0);
}

static void close_all(void)
{
    if (reader != NULL) {
        node_reader_close(reader);
        reader = NULL;
    }
    cluster_destroy(c);
}

static uint32_t hand(const struct request *request)
{
    return desk_hand(&desk, 0, desk.sessions[0], request);
}

static struct answer answer_to(uint32_t tag)
{
    return desk_answer(&desk, tag);
}

/* Through the worker. */
static void set(const char *key, const char *value)
{
    struct request request = {.op = desk_set(key, value)};
    assert_int_equal(answer_to(hand(&request)).kind, ANSWER_OK);
}

static struct node_read look(const char *key)
{
    struct node_read read = {.key = desk_text(key)};
    node_read_early(reader, 0, cluster_now(c), 1, &read);
    return read;
}

static void holds(const char *key, const char *value, bool early)
{
    struct node_read read = look(key);
    assert_int_equal(read.answer, NODE_READ_FOUND);
    assert_int_equal(read.early, early);
    assert_int_equal(read.value.n, strlen(value));
    assert_memory_equal(read.value.at, value, read.value.n);
}

static void holds_at(uint32_t node, const char *key, const char *value)
{
    desk_until(&desk, node, key, value);
}

static bool is_owner(struct cluster *cluster, void *context)
{
    (void)cluster;
    return desk_owns(&desk, 0, context);
}

/* Through the worker, and then nothing is under way over the key: on three nodes its last replica
 * comes behind the first write. */
static void set_everywhere(char *key, const char *value)
{
    set(key, value);
    holds_at(1, key, value);
    holds_at(2, key, value);
    cluster_until(c, is_owner, key, SECOND);
}

/* A transaction that reads some keys as they are, and sets others. */
#define KEYS_MAX 8u
struct attempt {
    struct node_commit_key keys[KEYS_MAX];
    struct op ops[KEYS_MAX];
    uint32_t n;
    struct node_committed committed;
};

static void reads(struct attempt *a, const char *key, uint64_t version)
{
    a->keys[a->n++] =
        (struct node_commit_key){.key = desk_text(key), .watched = true, .version = version};
}

static void writes(struct attempt *a, const char *key, const char *value)
{
    a->ops[a->n] = desk_set(key, value);
    a->keys[a->n] = (struct node_commit_key){.key = desk_text(key), .op = &a->ops[a->n]};
    a->n++;
}

static enum node_commit_answer commit(struct attempt *a)
{
    return node_commit(reader, 0, cluster_now(c), a->n, a->keys, &a->committed);
}

static uint32_t hand_commit(struct attempt *a)
{
    struct request request = {.committed = &a->committed};
    return hand(&request);
}

/* ---- One node ---- */

static void test_alone(void **state)
{
    (void)state;
    open_with(1);
    set("a", "1");
    set("b", "2");
    uint64_t a = look("a").version;
    uint64_t b = look("b").version;
    struct attempt both = {.n = 0};
    reads(&both, "b", b);
    writes(&both, "a", "one");
    assert_int_equal(commit(&both), NODE_COMMIT_DONE);
    holds("a", "one", false);
    holds("b", "2", false);
    assert_true(look("a").version > a);
    assert_int_equal(look("b").version, b);

    /* What was read is not so any more. */
    struct attempt late = {.n = 0};
    reads(&late, "a", a);
    writes(&late, "b", "no");
    assert_int_equal(commit(&late), NODE_COMMIT_CONFLICT);
    holds("b", "2", false);

    /* A key that nobody has, and one that was absent when it was read: a worker knows more. */
    struct attempt absent = {.n = 0};
    writes(&absent, "b", "no");
    writes(&absent, "c", "no");
    assert_int_equal(commit(&absent), NODE_COMMIT_ASK);
    struct attempt gone = {.n = 0};
    reads(&gone, "b", 0);
    assert_int_equal(commit(&gone), NODE_COMMIT_ASK);
    holds("b", "2", false);

    /* And the worker finds all as it should be. */
    set("b", "22");
    set("a", "11");
    holds("a", "11", false);
    holds("b", "22", false);
    close_all();
}

static void test_deadlines(void **state)
{
    (void)state;
    open_with(1);
    uint64_t *wall = cluster_wall_ms(c);
    struct request timed = {.op = desk_set("k", "old")};
    timed.op.flags = OPF_DEADLINE;
    timed.op.number = (int64_t)(*wall + 1000);
    assert_int_equal(answer_to(hand(&timed)).kind, ANSWER_OK);
    struct attempt keeps = {.n = 0};
    writes(&keeps, "k", "new");
    keeps.ops[0].flags = OPF_KEEPTTL;
    assert_int_equal(commit(&keeps), NODE_COMMIT_DONE);
    holds("k", "new", false);
    *wall += 1000;
    assert_int_equal(look("k").answer, NODE_READ_ASK);
    struct attempt late = {.n = 0};
    writes(&late, "k", "late");
    assert_int_equal(commit(&late), NODE_COMMIT_ASK);
    close_all();
}

/* ---- Three nodes ---- */

static void test_slot(void **state)
{
    (void)state;
    open_with(3);
    set_everywhere("a", "1");
    set_everywhere("b", "2");
    set_everywhere("c", "3");
    struct attempt first = {.n = 0};
    reads(&first, "b", look("b").version);
    writes(&first, "a", "one");
    assert_int_equal(commit(&first), NODE_COMMIT_SLOT);

    /* To its own pipeline it is there, to nobody else. */
    struct node_read read = {.key = desk_text("a")};
    node_read(reader, 0, cluster_now(c), 1, &read);
    assert_int_equal(read.answer, NODE_READ_ASK);
    holds("a", "one", true);
    holds("b", "2", true);
    struct attempt second = {.n = 0};
    reads(&second, "a", look("a").version);
    writes(&second, "b", "two");
    assert_int_equal(commit(&second), NODE_COMMIT_SLOT);
    assert_int_equal(second.committed.slot, first.committed.slot + 1);

    uint32_t tag = hand_commit(&first);
    assert_int_equal(hand_commit(&second), tag + 1);
    struct request other = {.op = desk_set("a", "through the worker")};
    uint32_t behind = hand(&other);
    assert_int_equal(answer_to(behind).kind, ANSWER_OK);
    assert_int_equal(desk.answers[tag].kind, ANSWER_OK);
    assert_int_equal(desk.answers[tag + 1].kind, ANSWER_OK);
    assert_int_equal(desk.order[desk.order_n - 1], behind);
    holds_at(1, "b", "two");
    holds_at(2, "b", "two");
    holds_at(1, "a", "through the worker");
    struct node_stats stats;
    node_stats(cluster_node(c, 0), &stats);
    assert_int_equal(stats.txn_commits_ahead, 2);
    close_all();
}

/* A transaction of the worker meets what a caller has committed: it comes when that is done. */
static void test_worker_waits(void **state)
{
    (void)state;
    open_with(3);
    set_everywhere("a", "1");
    struct attempt first = {.n = 0};
    writes(&first, "a", "one");
    assert_int_equal(commit(&first), NODE_COMMIT_SLOT);
    struct request other = {
        .op = {.kind = OP_APPEND, .key = desk_text("a"), .value = desk_text("+")}};
    uint32_t before = hand(&other);
    for (uint32_t i = 0; i < 20; i++) {
        cluster_step(c, 100);
    }
    assert_false(desk.answered[before]);

    /* Now somebody waits, and nobody passes it. */
    struct attempt second = {.n = 0};
    writes(&second, "a", "two");
    assert_int_equal(commit(&second), NODE_COMMIT_ASK);
    close_all();
}

/* The same from another session, whose order is its own. */
static void test_worker_goes_on(void **state)
{
    (void)state;
    open_with(3);
    set_everywhere("a", "1");
    struct attempt first = {.n = 0};
    writes(&first, "a", "one");
    assert_int_equal(commit(&first), NODE_COMMIT_SLOT);
    struct request other = {
        .op = {.kind = OP_APPEND, .key = desk_text("a"), .value = desk_text("+")}};
    uint32_t waits = desk_hand(&desk, 0, desk_session(&desk, 0), &other);
    cluster_step(c, 100);
    assert_false(desk.answered[waits]);
    uint32_t tag = hand_commit(&first);
    assert_int_equal(answer_to(waits).kind, ANSWER_NUMBER);
    assert_true(desk.answered[tag]);
    holds_at(1, "a", "one+");
    close_all();
}

static void test_full(void **state)
{
    (void)state;
    open_with(3);
    set_everywhere("a", "1");
    static struct attempt attempts[COMMIT_SLOTS];
    for (uint32_t i = 0; i < COMMIT_SLOTS; i++) {
        attempts[i] = (struct attempt){.n = 0};
        writes(&attempts[i], "a", "x");
        assert_int_equal(commit(&attempts[i]), NODE_COMMIT_SLOT);
        (void)hand_commit(&attempts[i]);
    }
    struct attempt more = {.n = 0};
    writes(&more, "a", "more");
    assert_int_equal(commit(&more), NODE_COMMIT_ASK);
    assert_int_equal(answer_to(desk.n - 1).kind, ANSWER_OK);
    assert_int_equal(commit(&more), NODE_COMMIT_SLOT);
    assert_int_equal(answer_to(hand_commit(&more)).kind, ANSWER_OK);
    holds_at(2, "a", "more");
    close_all();
}

/* ---- Owners, views, ends ---- */

/* A follower dies before it has acknowledged: the slot is done without it. Then another caller goes
 * on with the same pipeline. */
static void test_follower_dies(void **state)
{
    (void)state;
    open_with(3);
    set_everywhere("a", "1");
    struct attempt first = {.n = 0};
    writes(&first, "a", "one");
    assert_int_equal(commit(&first), NODE_COMMIT_SLOT);
    cluster_kill(c, 1);
    assert_int_equal(answer_to(hand_commit(&first)).kind, ANSWER_OK);
    holds_at(2, "a", "one");
    node_reader_close(reader);
    assert_int_equal(node_reader_open(cluster_node(c, 0), &reader), HK_OK);
    node_reader_worker(reader, 0);
    cluster_until(c, is_owner, "a", SECOND);
    struct attempt second = {.n = 0};
    writes(&second, "a", "two");
    assert_int_equal(commit(&second), NODE_COMMIT_SLOT);
    assert_int_equal(second.committed.slot, first.committed.slot + 1);
    assert_int_equal(answer_to(hand_commit(&second)).kind, ANSWER_OK);
    holds_at(2, "a", "two");
    close_all();
}

/* The coordinator dies when its followers have the R-INV: they finish it. */
static void test_coordinator_dies(void **state)
{
    (void)state;
    open_with(3);
    set_everywhere("a", "1");
    set_everywhere("b", "2");
    struct attempt first = {.n = 0};
    writes(&first, "a", "one");
    writes(&first, "b", "two");
    assert_int_equal(commit(&first), NODE_COMMIT_SLOT);
    (void)hand_commit(&first);
    cluster_step(c, 1);
    cluster_step(c, 1);
    node_reader_close(reader);
    reader = NULL;
    cluster_kill(c, 0);
    holds_at(1, "a", "one");
    holds_at(2, "b", "two");
    close_all();
}

/* Handed to the node that came after the one which committed it. */
static void test_another_node(void **state)
{
    (void)state;
    open_with(1);
    set("a", "1");
    struct attempt first = {.n = 0};
    writes(&first, "a", "one");
    assert_int_equal(commit(&first), NODE_COMMIT_DONE);
    first.committed = (struct node_committed){.nonce = cluster_nonce(c, 0) + 1, .inv_n = 1};
    struct answer answer = answer_to(hand_commit(&first));
    assert_int_equal(answer.kind, ANSWER_ERROR);
    assert_int_equal(answer.number, HK_ERR_UNKNOWN);
    close_all();
}

/* Without a lease nothing is committed; nor what this node reads only. */
static void test_not_here(void **state)
{
    (void)state;
    open_with(3);
    set_everywhere("a", "1");
    struct node_reader *mine = reader;
    assert_int_equal(node_reader_open(cluster_node(c, 1), &reader), HK_OK);
    node_reader_worker(reader, 0);
    struct attempt other = {.n = 0};
    writes(&other, "a", "no");
    assert_int_equal(commit(&other), NODE_COMMIT_ASK);
    node_reader_close(reader);
    reader = mine;
    assert_int_equal(
        node_commit(reader, 0, cluster_now(c) + 60 * SECOND, 1, other.keys, &other.committed),
        NODE_COMMIT_ASK);
    assert_int_equal(commit(&other), NODE_COMMIT_SLOT);
    assert_int_equal(answer_to(hand_commit(&other)).kind, ANSWER_OK);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone),          cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_slot),           cmocka_unit_test(test_worker_waits),
        cmocka_unit_test(test_worker_goes_on), cmocka_unit_test(test_full),
        cmocka_unit_test(test_follower_dies),  cmocka_unit_test(test_coordinator_dies),
        cmocka_unit_test(test_another_node),   cmocka_unit_test(test_not_here),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
