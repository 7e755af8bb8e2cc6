/* What exists nowhere: reading it moves nothing, of several such objects a transaction sees one
 * moment, and WATCH knows of what came and went. In virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/zeus/zeus.h"
#include "support/node_cluster.h"

#define SECOND 1000000u

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct cluster *start(uint32_t nodes, uint32_t workers)
{
    struct cluster_config config = {.nodes = nodes, .ops = &zeus_ops, .engine = &zeus, .seed = 3};
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = workers;
    }
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10 * SECOND);
    return c;
}

static uint8_t call(struct cluster *c, uint32_t node, uint8_t kind, const char *key)
{
    struct op op = {.kind = kind, .key = text(key), .value = text(kind == OP_SET ? "v" : "")};
    return cluster_call(c, node, &op).kind;
}

static uint64_t moves(struct cluster *c, uint32_t nodes)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        struct node_stats stats;
        node_stats(cluster_node(c, i), &stats);
        n += stats.own_counts[OWN_MOVES];
    }
    return n;
}

static void test_reading_moves_nothing(void **state)
{
    static const uint32_t nodes[] = {1, 3, 5, 5};
    (void)state;
    for (uint32_t k = 0; k < 4; k++) {
        struct cluster *c = start(nodes[k], k == 3 ? 2 : 1);
        assert_int_equal(call(c, 0, OP_SET, "there"), ANSWER_OK);
        uint64_t before = moves(c, nodes[k]);
        struct op ops[] = {{.kind = OP_GET, .key = text("nowhere")},
                           {.kind = OP_GET, .key = text("there")},
                           {.kind = OP_GET, .key = text("nor here")},
                           {.kind = OP_EXISTS, .key = text("nor there")}};
        for (uint32_t i = 0; i < 2 * nodes[k]; i++) {
            struct txn_request txn = {.ops = ops, .ops_n = 2 + i % 3};
            struct cluster_txn_answer a = cluster_transact(c, i % nodes[k], 0, &txn);
            assert_int_equal(a.kind, ANSWER_OK);
            assert_int_equal(a.answers[0].kind, ANSWER_NIL);
            assert_int_equal(a.answers[1].kind, ANSWER_VALUE);
            assert_true(txn.ops_n < 3 || a.answers[2].kind == ANSWER_NIL);
            assert_true(txn.ops_n < 4 || a.answers[3].number == 0);
        }
        assert_int_equal(moves(c, nodes[k]), before);
        cluster_destroy(c);
    }
}

/* ---- One moment ---- */

/* Node 0 creates and deletes two objects in transactions, both at once, or one for the other; they
 * are soon forgotten. The others read both, and something that is always there. */
static struct world {
    struct random random;
    bool runs;
    uint32_t session[CLUSTER_NODES_MAX];
    bool waits[CLUSTER_NODES_MAX];
    bool first;  /* node 0 writes "always", and nobody else does anything yet */
    bool writes; /* what node 0 does next */
    bool either; /* the second object is there when the first is not */
    char keys[2][24];
    struct op ops[CLUSTER_NODES_MAX][3];
    struct txn_request txn[CLUSTER_NODES_MAX];
    uint64_t due_us[CLUSTER_NODES_MAX];
    uint32_t pause_us; /* of readers, at the most */
    struct cluster *cluster;
    uint64_t none, both;
} world;

static bool ask(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    struct op *ops = world.ops[node];
    (void)context;
    if (!world.runs || world.waits[node] || worker != 0) {
        return false;
    }
    if (cluster_now(world.cluster) < world.due_us[node] || (node != 0 && world.first)) {
        return false;
    }
    for (uint32_t i = 0; i < 2; i++) {
        ops[i] = (struct op){.kind = OP_GET, .key = text(world.keys[i])};
        if (node == 0) {
            bool sets = world.writes != (world.either && i == 1);
            ops[i].kind = sets ? OP_SET : OP_DELETE;
            ops[i].value = sets ? text("v") : bytes_of(NULL, 0);
        }
    }
    ops[2] = (struct op){.kind = OP_GET, .key = text("always")};
    if (node == 0) {
        ops[2] = (struct op){.kind = OP_SET, .key = text("always"), .value = text("v")};
    }
    world.txn[node] = (struct txn_request){.ops = ops, .ops_n = node == 0 && !world.first ? 2 : 3};
    world.waits[node] = true;
    *out = (struct request){.session = world.session[node], .txn = &world.txn[node]};
    return true;
}

static void heard(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    (void)context;
    (void)worker;
    world.waits[node] = false;
    if (node == 0) {
        assert_int_equal(reply->answer.kind, ANSWER_OK);
        world.writes = !world.writes;
        world.first = false;
        /* Now and then so long that both are forgotten. */
        uint32_t most =
            (world.writes || world.either) && random_below(&world.random, 2) == 0 ? 50000 : 300;
        world.due_us[0] = cluster_now(world.cluster) + random_below(&world.random, most);
        return;
    }
    world.due_us[node] = cluster_now(world.cluster) + random_below(&world.random, world.pause_us);
    if (reply->answer.kind == ANSWER_OK) {
        bool same = reply->answers[0].kind == reply->answers[1].kind;
        assert_true(same != world.either);
        assert_int_equal(reply->answers[2].kind, ANSWER_VALUE);
        world.none += reply->answers[0].kind == ANSWER_NIL;
        world.both += reply->answers[0].kind == ANSWER_VALUE;
    }
}

static void forgetful(struct node_config *config, uint32_t node)
{
    (void)node;
    config->spaces[0].owned.grace_us = 10000;
    config->spaces[0].owned.walk_us = 2000;
}

static bool is_idle(struct cluster *c, void *context)
{
    (void)c;
    (void)context;
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        if (world.waits[i]) {
            return false;
        }
    }
    return true;
}

static void test_several_are_absent_at_one_moment(void **state)
{
    uint64_t destroyed = 0;
    uint64_t none = 0;
    uint64_t both = 0;
    (void)state;
    for (uint32_t seed = 1; seed <= 4; seed++) {
        uint32_t nodes = seed % 2 == 0 ? 3 : 5;
        struct cluster_config config = {.nodes = nodes,
                                        .ops = &zeus_ops,
                                        .engine = &zeus,
                                        .seed = seed,
                                        .adjust = forgetful,
                                        .client = {.request = ask, .reply = heard}};
        memset(&world, 0, sizeof world);
        random_init(&world.random, seed);
        /* A reader that keeps no replica becomes one for a while: the pair is not idle. */
        world.pause_us = nodes == 3 ? 50 : 20000;
        (void)snprintf(world.keys[0], sizeof world.keys[0], "one %u", seed);
        (void)snprintf(world.keys[1], sizeof world.keys[1], "two %u", seed);
        for (uint32_t i = 0; i < nodes; i++) {
            config.workers[i] = 1 + seed / 2 % 2;
        }
        struct cluster *c = world.cluster = cluster_create(&config);
        cluster_until(c, cluster_serving, NULL, 10 * SECOND);
        for (uint32_t i = 0; i < nodes; i++) {
            assert_int_equal(
                worker_session_open(node_worker(cluster_node(c, i), 0), &world.session[i]), HK_OK);
        }
        world.either = seed > 2;
        world.writes = world.first = world.runs = true;
        for (uint32_t i = 0; i < 20000; i++) {
            cluster_step(c, 25);
        }
        world.runs = false;
        cluster_until(c, is_idle, NULL, SECOND);
        for (uint32_t i = 0; i < nodes; i++) {
            struct node_stats stats;
            node_stats(cluster_node(c, i), &stats);
            destroyed += stats.own_destroyed;
        }
        print_message("%u nodes: none %lu times, both %lu; %lu forgotten\n", nodes,
                      (unsigned long)world.none, (unsigned long)world.both,
                      (unsigned long)destroyed);
        none += world.none;
        both += world.both;
        cluster_destroy(c);
    }
    assert_true(none > 100 && both > 100 && destroyed > 10);
}

/* ---- WATCH ---- */

static uint64_t absence(struct cluster *c, uint32_t node, const char *key)
{
    struct op op = {.kind = OP_EXISTS, .key = text(key)};
    struct txn_request txn = {.ops = &op, .ops_n = 1, .flags = TXN_ABSENCE};
    struct cluster_txn_answer a = cluster_transact(c, node, 0, &txn);
    assert_int_equal(a.kind, ANSWER_OK);
    assert_int_equal(a.answers[0].number, 0);
    return a.answers[0].version;
}

/* Sets another key if what was seen of this one still holds. */
static uint8_t claim(struct cluster *c, uint32_t node, const char *key, uint64_t version)
{
    struct op op = {.kind = OP_SET, .key = text("claimed"), .value = text("v")};
    struct txn_watch watch = {.key = text(key), .version = version};
    struct txn_request txn = {.ops = &op, .ops_n = 1, .watches = &watch, .watches_n = 1};
    return cluster_transact(c, node, 0, &txn).kind;
}

static void test_what_came_and_went_has_changed(void **state)
{
    (void)state;
    struct cluster *c = start(3, 1);
    uint64_t seen = absence(c, 0, "w");
    assert_int_equal(seen, TXN_ABSENT);
    assert_int_equal(claim(c, 0, "w", seen), ANSWER_OK); /* which creates it, and writes nothing */
    assert_int_equal(claim(c, 1, "w", seen), ANSWER_OK);
    assert_int_equal(call(c, 1, OP_SET, "w"), ANSWER_OK);
    assert_int_equal(claim(c, 0, "w", seen), ANSWER_NIL);
    assert_int_equal(call(c, 2, OP_DELETE, "w"), ANSWER_NUMBER);
    assert_int_equal(claim(c, 0, "w", seen), ANSWER_NIL);
    assert_int_equal(claim(c, 0, "w", 0), ANSWER_OK); /* any absence does */

    for (uint32_t i = 0; i < 3; i++) {
        seen = absence(c, i, "w");
        assert_true(seen > TXN_ABSENT);
        assert_int_equal(claim(c, (i + 1) % 3, "w", seen), ANSWER_OK);
        assert_int_equal(call(c, 1, OP_SET, "w"), ANSWER_OK);
        assert_int_equal(call(c, 0, OP_DELETE, "w"), ANSWER_NUMBER);
        assert_int_equal(claim(c, 2, "w", seen), ANSWER_NIL);
    }
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reading_moves_nothing),
        cmocka_unit_test(test_several_are_absent_at_one_moment),
        cmocka_unit_test(test_what_came_and_went_has_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
