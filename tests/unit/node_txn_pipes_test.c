/* Pipelines of one worker: commits with different followers go side by side, unless they belong
 * together by a session or by an object (docs/protocols/zeus-commit.md, In the node). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "engine/zeus/zeus.h"
#include "node/engines.h"
#include "support/node_desk.h"

#define NODES 5u
#define SECOND 1000000u

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static struct desk desk;
static struct cluster *c;

/* Which of the others have the key, at that value. */
static nodeset who_holds(const char *key, const char *value)
{
    nodeset there = 0;
    for (uint32_t i = 1; i < NODES; i++) {
        there |= desk_holds(&desk, i, key, value) ? nodeset_of((uint8_t)i) : 0;
    }
    return there;
}

static uint32_t begin(uint32_t node, uint32_t session, const char *key, const char *value)
{
    struct request request = {.op = desk_set(key, value)};
    return desk_hand(&desk, node, session, &request);
}

static void pass(uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        cluster_step(c, 100);
    }
}

/* Nothing is under way over the key any more: it has its replicas, and this node owns it. */
static void settle(uint32_t node, const char *key, const char *value)
{
    for (uint32_t i = 0; nodeset_count(who_holds(key, value)) < 2 || !desk_owns(&desk, node, key);
         i++) {
        assert_true(i < 5000);
        cluster_step(c, 1000);
    }
}

/* Node 0 owns "a" and "b", which have different readers: it has made the one, and the other came
 * from node 3. *slow_out: a reader of "a" that has no "b"; *quick_out: the other way round. */
static void open_with_two(uint8_t *slow_out, uint8_t *quick_out)
{
    struct cluster_config config = {.nodes = NODES, .ops = &zeus_ops, .engine = &zeus, .seed = 3};
    for (uint32_t i = 0; i < NODES; i++) {
        config.workers[i] = 1;
    }
    desk_start(&desk, &config);
    c = desk.cluster;
    (void)desk_answer(&desk, begin(0, desk.sessions[0], "a", "1"));
    (void)desk_answer(&desk, begin(3, desk.sessions[3], "b", "1"));
    settle(3, "b", "1");
    (void)desk_answer(&desk, begin(0, desk.sessions[0], "b", "2"));
    settle(0, "a", "1");
    settle(0, "b", "2");
    nodeset a = who_holds("a", "1");
    nodeset b = who_holds("b", "2");
    assert_true((a & ~b) != 0 && (b & ~a) != 0);
    *slow_out = nodeset_first(a & ~b);
    *quick_out = nodeset_first(b & ~a);
}

/* The readers of "a" do not acknowledge; nobody's commit over "b" waits for them. */
static void test_side_by_side(void **state)
{
    uint8_t slow, quick;
    (void)state;
    open_with_two(&slow, &quick);
    cluster_stall(c, slow, 0, true);
    uint32_t first = begin(0, desk.sessions[0], "a", "new");
    pass(3);
    uint32_t second = begin(0, desk_session(&desk, 0), "b", "new");
    pass(30);
    assert_true(desk.answered[second]);
    assert_false(desk.answered[first]);
    assert_true(desk_holds(&desk, quick, "b", "new"));
    cluster_stall(c, slow, 0, false);
    assert_int_equal(desk_answer(&desk, first).kind, ANSWER_OK);
    desk_until(&desk, slow, "a", "new");
    cluster_destroy(c);
}

/* Of one session the second does not take effect anywhere before the first has. */
static void test_session(void **state)
{
    uint8_t slow, quick;
    (void)state;
    open_with_two(&slow, &quick);
    cluster_stall(c, slow, 0, true);
    uint32_t first = begin(0, desk.sessions[0], "a", "new");
    uint32_t second = begin(0, desk.sessions[0], "b", "new");
    pass(30);
    assert_false(desk.answered[first] || desk.answered[second]);
    assert_true(desk_holds(&desk, quick, "b", "2"));
    cluster_stall(c, slow, 0, false);
    assert_int_equal(desk_answer(&desk, second).kind, ANSWER_OK);
    assert_true(desk.answered[first]);
    desk_until(&desk, quick, "b", "new");
    cluster_destroy(c);
}

/* C4: what reads an object whose commit is under way comes behind that, in its pipeline. */
static void test_object(void **state)
{
    uint8_t slow, quick;
    (void)state;
    open_with_two(&slow, &quick);
    cluster_stall(c, slow, 0, true);
    uint32_t first = begin(0, desk.sessions[0], "a", "new");
    pass(3);
    struct op ops[] = {{.kind = OP_GET, .key = desk_text("a")}, desk_set("b", "after a")};
    struct txn_request txn = {.ops = ops, .ops_n = 2};
    struct request both = {.txn = &txn};
    uint32_t second = desk_hand(&desk, 0, desk_session(&desk, 0), &both);
    pass(30);
    assert_false(desk.answered[first] || desk.answered[second]);
    assert_true(desk_holds(&desk, quick, "b", "2"));
    cluster_stall(c, slow, 0, false);
    assert_int_equal(desk_answer(&desk, second).kind, ANSWER_OK);
    assert_true(desk.answered[first]);
    desk_until(&desk, quick, "b", "after a");
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_session),
        cmocka_unit_test(test_object),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
