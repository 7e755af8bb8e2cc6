/* Transactions in the cost model: what exists at first has all its replicas, what does not leave
 * its home costs what it must, and the same seed gives the same figures. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/zeus/commit.h"
#include "node/engines.h"
#include "sim/cost_cluster.h"

#define NODES 4u
#define WORKERS 2u
#define DEGREE 3u
#define WINDOW 4u

static union engines_config config;

static struct cost_setup setup_of(const struct engine_ops *ops, const struct work_config *work)
{
    engines_configure(ops, &(struct engines_options){.mlt_us = 10000, .degree = DEGREE}, &config);
    return (struct cost_setup){.machine = &cost_infiniband,
                               .engine = ops,
                               .engine_config = &config,
                               .nodes = NODES,
                               .workers = WORKERS,
                               .window_most = WINDOW,
                               .work = work,
                               .degree = DEGREE,
                               .seed = 5};
}

static struct work_config small(enum work_kind kind, double remote)
{
    struct work_config work = work_defaults(kind);
    work.objects = kind == WORK_TATP ? 128 : 512;
    work.hot = 128;
    work.value_bytes = 64;
    work.requests = 4;
    work.remote = remote;
    return work;
}

static struct cost_cluster *make(const struct engine_ops *engine, enum work_kind kind,
                                 double remote)
{
    struct work_config work = small(kind, remote);
    struct cost_setup setup = setup_of(engine, &work);
    struct cost_cluster *c = NULL;
    assert_int_equal(cost_cluster_create(&setup, &c), HK_OK);
    return c;
}

static void run(struct cost_cluster *c, struct cost_result *r)
{
    struct cost_load load = {.warm_ns = 500000, .run_ns = 2000000, .seed = 3};
    cost_cluster_run(c, &load, r);
    assert_int_equal(r->failed, 0);
    assert_true(r->reads + r->writes > 100);
}

static void test_every_workload_runs_with_both(void **state)
{
    static const struct engine_ops *const engines[] = {&zeus_ops, &occ_ops};
    static struct cost_result r;
    (void)state;
    for (uint32_t kind = 0; kind < WORK_REMOTE_KINDS; kind++) {
        for (uint32_t e = 0; e < 2; e++) {
            struct cost_cluster *c = make(engines[e], (enum work_kind)kind, 10);
            run(c, &r);
            assert_true(r.remote > 0);
            cost_cluster_destroy(c);
        }
    }
}

/* Two compute and two memory servers; every row is far from where it is asked for. */
static struct cost_cluster *make_lotus_slow(enum lock_policy policy, enum work_kind kind,
                                            double memory_slow)
{
    struct work_config work = small(kind, -1);
    work.columns = 1;
    struct cost_setup setup = setup_of(&lotus_ops, &work);
    struct cost_cluster *c = NULL;
    engines_configure(
        &lotus_ops,
        &(struct engines_options){
            .lotus = {.lock.policy = (uint8_t)policy, .tries_max = 256, .locks_max = 1u << 14}},
        &config);
    setup.degree = 1;
    setup.memory = 2;
    setup.memory_slow = memory_slow;
    assert_int_equal(cost_cluster_create(&setup, &c), HK_OK);
    return c;
}

static struct cost_cluster *make_lotus(enum lock_policy policy, enum work_kind kind)
{
    return make_lotus_slow(policy, kind, 0);
}

static double late_us(const struct cost_result *r)
{
    struct histogram all = r->read;
    histogram_merge(&all, &r->write);
    return (double)histogram_percentile(&all, 990000) / 1000;
}

static void test_memory_servers_have_the_rows(void **state)
{
    static struct cost_result r;
    (void)state;
    struct cost_cluster *c = make_lotus(LOCK_WOUND_WAIT, WORK_YCSB_C);
    run(c, &r);
    double rows = 4.0 * (double)(r.reads + r.writes);
    assert_true(fabs((double)r.node.home_items / rows - 1) < 0.02);
    assert_int_equal(r.node.home_written, 0);
    assert_true(r.node.home_read >= r.node.home_items);
    assert_true(r.compute_frames > 0 && r.compute_frames < r.frames);
    double all = 0;
    for (uint32_t i = 0; i < COST_PARTS; i++) {
        assert_true(r.memory_ns[i] > 0);
        all += r.memory_ns[i];
    }
    /* What is charged in parts is what keeps the memory servers busy. */
    assert_true(fabs(all * 1e-9 / (r.seconds * 2 * WORKERS * r.memory_busy) - 1) < 0.01);
    cost_cluster_destroy(c);
}

/* Slower memory servers take longer for each row, and compute servers do not. */
static void test_slow_memory_servers(void **state)
{
    static struct cost_result once, slow;
    (void)state;
    struct cost_cluster *c = make_lotus_slow(LOCK_WOUND_WAIT, WORK_YCSB_C, 1);
    run(c, &once);
    cost_cluster_destroy(c);
    c = make_lotus_slow(LOCK_WOUND_WAIT, WORK_YCSB_C, 4);
    run(c, &slow);
    cost_cluster_destroy(c);
    double lock_ns = once.memory_ns[COST_LOCK] / (double)once.node.home_items;
    double slow_ns = slow.memory_ns[COST_LOCK] / (double)slow.node.home_items;
    assert_true(lock_ns > 0 && fabs(slow_ns / lock_ns / 4 - 1) < 0.01);
    assert_true(slow.ops_per_s < once.ops_per_s);
    assert_true(slow.memory_busy > once.memory_busy);
    /* Half of the workers each: what compute servers did for a transaction. */
    double compute = (2 * once.cpu_busy - once.memory_busy) / once.ops_per_s;
    double beside = (2 * slow.cpu_busy - slow.memory_busy) / slow.ops_per_s;
    assert_true(compute > 0 && beside < 1.2 * compute);
    c = make_lotus(LOCK_WOUND_WAIT, WORK_YCSB_C);
    run(c, &slow);
    assert_memory_equal(&slow, &once, sizeof once);
    cost_cluster_destroy(c);
}

/* Who is refused stands back for microseconds, not for a tick of the timers' wheel. */
static void test_pauses_are_short(void **state)
{
    static struct cost_result r;
    (void)state;
    for (uint32_t policy = 0; policy < LOCK_POLICIES; policy++) {
        struct cost_cluster *c = make_lotus((enum lock_policy)policy, WORK_YCSB_A);
        run(c, &r);
        assert_true(r.node.txn_aborts > 10);
        assert_true(late_us(&r) < 700);
        assert_true(r.ops_per_s > 200000);
        cost_cluster_destroy(c);
    }
}

/* A transaction of several steps is one, from its first to its last. */
static void test_steps_are_one_transaction(void **state)
{
    static struct cost_result r;
    (void)state;
    struct work_config work = work_defaults(WORK_TPCC);
    work.objects = 128;
    work.warehouses = 1;
    work.customers = 30;
    struct cost_setup setup = setup_of(&lotus_ops, &work);
    struct cost_cluster *c = NULL;
    engines_configure(&lotus_ops, &(struct engines_options){.lotus = {.tries_max = 256}}, &config);
    setup.degree = 1;
    assert_int_equal(cost_cluster_create(&setup, &c), HK_OK);
    run(c, &r);
    assert_true((double)r.node.lotus_transactions > 1.8 * (double)(r.reads + r.writes));
    cost_cluster_destroy(c);
}

/* Where nothing is remote nothing moves, and what is written goes to DEGREE - 1 followers. */
static void test_at_home_nothing_moves(void **state)
{
    static struct cost_result r;
    (void)state;
    struct cost_cluster *c = make(&zeus_ops, WORK_SMALLBANK, 0);
    run(c, &r);
    assert_int_equal(r.remote, 0);
    assert_int_equal(r.node.own_counts[OWN_MOVES], 0);
    uint64_t invs = r.node.owned_messages[COMMIT_MSG_INV];
    double each = (double)invs / (double)r.writes;
    assert_true(each > 0.95 * (DEGREE - 1) && each < 1.05 * (DEGREE - 1));
    cost_cluster_destroy(c);
}

/* The statically sharded design asks backups once for each transaction that writes at home. */
static void test_the_baseline_at_home(void **state)
{
    static struct cost_result r;
    (void)state;
    struct cost_cluster *c = make(&occ_ops, WORK_SMALLBANK, 0);
    run(c, &r);
    assert_int_equal(r.node.own_counts[OWN_MOVES], 0);
    double each = (double)r.messages / (double)r.writes;
    assert_true(each > 0.95 * 2 * (DEGREE - 1) && each < 1.05 * 2 * (DEGREE - 1));
    cost_cluster_destroy(c);
}

/* The part that is remote can be set anew, and what is remote moves. */
static void test_more_become_remote(void **state)
{
    static struct cost_result r;
    (void)state;
    struct cost_cluster *c = make(&zeus_ops, WORK_YCSB, 0);
    run(c, &r);
    assert_int_equal(r.remote, 0);
    uint64_t before = r.reads + r.writes;
    assert_int_equal(cost_cluster_remote(c, 100), HK_OK);
    run(c, &r);
    assert_int_equal(r.remote, r.reads + r.writes);
    assert_true(r.node.own_counts[OWN_MOVES] > 0);
    assert_true(r.reads + r.writes < before);
    assert_int_equal(cost_cluster_remote(c, 0), HK_OK);
    run(c, &r); /* brings home what had left */
    run(c, &r);
    assert_int_equal(r.remote, 0);
    cost_cluster_destroy(c);
}

static void test_the_seed_decides(void **state)
{
    static struct cost_result a, b;
    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        struct cost_cluster *c = make(&zeus_ops, WORK_TATP, 5);
        run(c, i == 0 ? &a : &b);
        cost_cluster_destroy(c);
    }
    assert_memory_equal(&a, &b, sizeof a);
}

static void test_what_cannot_be_is_refused(void **state)
{
    (void)state;
    struct work_config work = small(WORK_VOTER, 0);
    struct cost_setup setup = setup_of(&hermes_ops, &work);
    struct cost_cluster *c = NULL;
    assert_int_equal(cost_cluster_create(&setup, &c), HK_ERR_INVALID);
    setup = setup_of(&zeus_ops, &work);
    setup.degree = NODES + 1;
    assert_int_equal(cost_cluster_create(&setup, &c), HK_ERR_INVALID);
    setup.degree = DEGREE;
    work.objects = 1;
    assert_int_equal(cost_cluster_create(&setup, &c), HK_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_workload_runs_with_both),
        cmocka_unit_test(test_memory_servers_have_the_rows),
        cmocka_unit_test(test_slow_memory_servers),
        cmocka_unit_test(test_pauses_are_short),
        cmocka_unit_test(test_steps_are_one_transaction),
        cmocka_unit_test(test_at_home_nothing_moves),
        cmocka_unit_test(test_the_baseline_at_home),
        cmocka_unit_test(test_more_become_remote),
        cmocka_unit_test(test_the_seed_decides),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
