/* A small cluster of real nodes that keep a space with ZAB, in virtual time: one log, worker 0's
 * worker-wide flow, messages between workers, changes of the leader, joining. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/zab/zab.h"
#include "support/node_cluster.h"

static struct zab_config zab;

static struct cluster *cluster(uint32_t nodes, const uint32_t *workers, bool ordered)
{
    struct cluster_config config = {
        .nodes = nodes, .ops = &zab_ops, .engine = &zab, .ordered = ordered, .seed = 5};
    memcpy(config.workers, workers, nodes * sizeof *workers);
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    return c;
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct cluster_answer set(struct cluster *c, uint32_t node, const char *key,
                                 const char *value)
{
    struct op op = {.kind = OP_SET, .key = text(key), .value = text(value)};
    return cluster_call(c, node, &op);
}

static struct cluster_answer get(struct cluster *c, uint32_t node, const char *key)
{
    struct op op = {.kind = OP_GET, .key = text(key)};
    return cluster_call(c, node, &op);
}

static struct cluster_answer add(struct cluster *c, uint32_t node, const char *key)
{
    struct op op = {.kind = OP_ADD, .key = text(key), .number = 1};
    return cluster_call(c, node, &op);
}

static void assert_value(struct cluster_answer a, const char *expected)
{
    assert_int_equal(a.kind, ANSWER_VALUE);
    assert_int_equal(a.n, strlen(expected));
    assert_memory_equal(a.value, expected, a.n);
}

static void steps(struct cluster *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cluster_step(c, 100);
    }
}

static void exercise(struct cluster *c, uint32_t nodes)
{
    uint64_t before = 0;
    for (uint32_t i = 0; i < 4 * nodes; i++) {
        char value[16];
        snprintf(value, sizeof value, "v%u", i);
        struct cluster_answer a = set(c, i % nodes, "a", value);
        assert_int_equal(a.kind, ANSWER_OK);
        assert_true(a.version > before); /* the number of its entry */
        before = a.version;
        assert_value(get(c, i % nodes, "a"), value); /* its own write, at once */
        steps(c, 50);
        for (uint32_t k = 0; k < nodes; k++) {
            assert_value(get(c, k, "a"), value);
        }
    }
    for (uint32_t i = 0; i < 6 * nodes; i++) {
        struct cluster_answer a = add(c, i % nodes, "n");
        assert_int_equal(a.kind, ANSWER_NUMBER);
        assert_int_equal(a.number, i + 1);
    }
    struct op del = {.kind = OP_DELETE, .key = text("n")};
    assert_int_equal(cluster_call(c, 1, &del).number, 1);
    steps(c, 50);
    assert_int_equal(get(c, 0, "n").kind, ANSWER_NIL);
    assert_int_equal(add(c, 0, "n").number, 1);
    struct op blind = {.kind = OP_DELETE, .flags = OPF_BLIND, .key = text("n")};
    assert_int_equal(cluster_call(c, 2, &blind).kind, ANSWER_OK);
    struct store_stats stats;
    steps(c, 50);
    for (uint32_t i = 0; i < nodes; i++) {
        store_stats(node_store(cluster_node(c, i), 0), &stats);
        assert_int_equal(stats.keys, 1);
        assert_int_equal(stats.tombstones, 0);
    }
}

static void one_worker(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        struct cluster *c = cluster(3, (const uint32_t[]){1, 1, 1}, ordered != 0);
        exercise(c, 3);
        cluster_destroy(c);
    }
}

/* The client is on worker 0; the workers beside it adopt, sleep and wake all the same. */
static void several_workers(void **state)
{
    (void)state;
    struct cluster *c = cluster(3, (const uint32_t[]){2, 3, 1}, false);
    exercise(c, 3);
    cluster_destroy(c);
}

static void in_lockstep(void **state)
{
    (void)state;
    zab.lockstep = true;
    struct cluster *c = cluster(3, (const uint32_t[]){1, 2, 1}, false);
    exercise(c, 3);
    cluster_destroy(c);
    zab.lockstep = false;
}

static void large_values_travel(void **state)
{
    (void)state;
    static char big[300000];
    struct cluster *c = cluster(3, (const uint32_t[]){2, 2, 2}, false);
    memset(big, 'x', sizeof big);
    struct op op = {.kind = OP_SET, .key = text("big"), .value = bytes_of(big, sizeof big)};
    assert_int_equal(cluster_call(c, 0, &op).kind, ANSWER_OK);
    steps(c, 100);
    struct op append = {.kind = OP_APPEND, .key = text("big"), .value = text("yz")};
    assert_int_equal(cluster_call(c, 1, &append).number, sizeof big + 2);
    steps(c, 100);
    struct op len = {.kind = OP_STRLEN, .key = text("big")};
    assert_int_equal(cluster_call(c, 2, &len).number, sizeof big + 2);
    cluster_destroy(c);
}

/* The leader dies, another leads; it comes back, copies, and leads again. */
static void the_leader_dies_and_comes_back(void **state)
{
    (void)state;
    struct cluster *c = cluster(3, (const uint32_t[]){2, 2, 2}, false);
    for (uint32_t i = 0; i < 200; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", i);
        assert_int_equal(set(c, i % 3, key, key).kind, ANSWER_OK);
    }
    for (uint32_t dead = 0; dead < 3; dead++) {
        cluster_kill(c, dead);
        uint64_t before = cluster_now(c);
        struct cluster_answer a = set(c, (dead + 1) % 3, "k7", "new");
        assert_int_equal(a.kind, ANSWER_OK);
        assert_true(cluster_now(c) - before < 600000);
        assert_int_equal(set(c, (dead + 2) % 3, "k8", "new").kind, ANSWER_OK);
        struct op del = {.kind = OP_DELETE, .key = text("k9")};
        assert_int_equal(cluster_call(c, (dead + 1) % 3, &del).kind, ANSWER_NUMBER);
        cluster_restart(c, dead);
        cluster_until(c, cluster_serving, NULL, 10000000);
        steps(c, 100);
        assert_value(get(c, dead, "k7"), "new");
        assert_int_equal(get(c, dead, "k9").kind, ANSWER_NIL);
        for (uint32_t i = 10; i < 200; i++) {
            char key[16];
            snprintf(key, sizeof key, "k%u", i);
            assert_value(get(c, dead, key), key);
        }
        assert_int_equal(set(c, dead, "k9", "again").kind, ANSWER_OK);
    }
    cluster_destroy(c);
}

static void a_minority_refuses(void **state)
{
    (void)state;
    struct cluster *c = cluster(3, (const uint32_t[]){1, 1, 1}, false);
    assert_int_equal(set(c, 0, "a", "1").kind, ANSWER_OK);
    cluster_kill(c, 0);
    cluster_kill(c, 1);
    struct cluster_answer a = set(c, 2, "a", "2");
    assert_int_equal(a.kind, ANSWER_ERROR);
    for (int i = 0; i < 20; i++) {
        cluster_step(c, 100000);
    }
    assert_int_equal(get(c, 2, "a").number, HK_ERR_UNAVAILABLE);
    cluster_destroy(c);
}

/* A log that holds little: all goes on, more slowly, also while a member does not keep up. */
static void a_full_log_refuses_for_a_while(void **state)
{
    (void)state;
    zab.log_bytes = 4096;
    struct cluster *c = cluster(3, (const uint32_t[]){1, 1, 1}, false);
    static char value[1000];
    memset(value, 'y', sizeof value);
    for (uint32_t i = 0; i < 100; i++) {
        char key[16];
        snprintf(key, sizeof key, "k%u", i);
        struct op op = {.kind = OP_SET, .key = text(key), .value = bytes_of(value, sizeof value)};
        assert_int_equal(cluster_call(c, i % 3, &op).kind, ANSWER_OK);
        if (i == 50) {
            cluster_stall(c, 2, 0, true);
            for (uint32_t k = 0; k < 20; k++) {
                (void)cluster_call(c, 0, &op);
            }
            cluster_stall(c, 2, 0, false);
            cluster_until(c, cluster_serving, NULL, 20000000);
        }
    }
    cluster_destroy(c);
    zab.log_bytes = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker),
        cmocka_unit_test(several_workers),
        cmocka_unit_test(in_lockstep),
        cmocka_unit_test(large_values_travel),
        cmocka_unit_test(the_leader_dies_and_comes_back),
        cmocka_unit_test(a_minority_refuses),
        cmocka_unit_test(a_full_log_refuses_for_a_while),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
