/* Every workload on real nodes, with both designs: nothing fails, all succeed as the rules say. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/work_figures.h"
#include "node/engines.h"

/* least: transactions that the figures are of. */
static void measure_some(enum work_kind kind, const struct engine_ops *engine, double remote,
                         uint64_t least, double figures[WORK_FIGURES])
{
    struct work_config work = work_defaults(kind);
    work.workers = 2;
    work.objects = 400;
    work.hot = 40;
    work.customers = work.customers > 0 ? 30 : 0;
    work.remote = remote;
    const struct bench_config config = {
        .engine = engine,
        .nodes = 3,
        .workers = 2,
        .port = BENCH_SHM,
        .read_path = BENCH_READ_NODE,
        .keys = {.n = 1},
        .key_bytes = WORK_KEY_BYTES,
        .in_flight = 8,
        .work = &work,
        .degree = 3,
        .seed = 1,
    };
    struct bench_cluster *c = NULL;
    const char *why = NULL;
    struct bench_run *run = malloc(sizeof *run);
    assert_non_null(run);
    if (bench_cluster_create(&config, &c, &why) != 0) {
        fail_msg("%s", why);
    }
    uint64_t txns = 0, of_types = 0;
    /* As long as it takes on a machine that has other work. */
    for (double seconds = 0.1; txns <= least && seconds < 100.0; seconds *= 2.0) {
        bench_cluster_run(c, 0.02, seconds, run);
        txns = run->ops[LOAD_READ] + run->ops[LOAD_WRITE];
        assert_int_equal(run->failed, 0);
        assert_int_equal(run->view_changes, 0);
    }
    work_figures_of(run, figures);
    assert_true(txns > least);
    /* Of those that ended only what was in flight when the run began may have had tries before. */
    double before = config.nodes * config.workers * config.in_flight;
    assert_true(!run->tables ||
                figures[WORK_TRIES_PER_TXN] * (double)txns >= (double)txns - before);
    for (uint32_t i = 0; i < work_types(bench_cluster_work(c)); i++) {
        double expected = work_type_success(bench_cluster_work(c), i), n = (double)run->txns[i];
        of_types += run->txns[i];
        if (n > 0.0) {
            double off = fabs(figures[WORK_SUCCESS + i] - expected);
            assert_true(off < 0.06 + 5.0 * sqrt(expected * (1.0 - expected) / n));
        }
    }
    assert_int_equal(of_types, txns);
    bench_cluster_destroy(c);
    free(run);
}

static void measure(enum work_kind kind, const struct engine_ops *engine, double remote,
                    double figures[WORK_FIGURES])
{
    measure_some(kind, engine, remote, 100, figures);
}

static void with(enum work_kind kind)
{
    double zeus[WORK_FIGURES], sharded[WORK_FIGURES], tables[WORK_FIGURES];
    measure(kind, &lotus_ops, 10.0, tables);
    assert_true(tables[WORK_REMOTE] > 0.0 && isnan(tables[WORK_MOVES_PER_TXN]));
    assert_true(tables[WORK_REQUESTS_PER_MESSAGE] >= 1.0);
    assert_true(tables[WORK_ONE_TRIP] > 0.5 && tables[WORK_HINTS_GOOD] >= 0.0);
    measure(kind, &zeus_ops, 0.0, zeus);
    assert_true(zeus[WORK_REMOTE] == 0.0);
    measure(kind, &zeus_ops, 10.0, zeus);
    measure(kind, &occ_ops, 10.0, sharded);
    assert_true(zeus[WORK_REMOTE] > 0.0 && sharded[WORK_REMOTE] > 0.0);
    assert_true(zeus[WORK_MOVES_PER_TXN] > 0.0 && isnan(sharded[WORK_MOVES_PER_TXN]));
    assert_true(zeus[WORK_MESSAGES_PER_COMMIT] > 0.0);
    assert_true(sharded[WORK_MESSAGES_PER_TXN] > 0.0);
}

/* All objects of an owner have the same followers, so no slot waits for the one before. */
static void pipelines_are_kept_full(void **state)
{
    (void)state;
    struct work_config work = work_defaults(WORK_YCSB);
    work.nodes = 5;
    work.objects = 300;
    work.requests = 1;
    work.writes = 100.0;
    work.theta = 0.0;
    const struct bench_config config = {
        .engine = &zeus_ops,
        .nodes = 5,
        .workers = 1,
        .port = BENCH_SHM,
        .read_path = BENCH_READ_NODE,
        .keys = {.n = 1},
        .key_bytes = WORK_KEY_BYTES,
        .in_flight = 32,
        .work = &work,
        .degree = 3,
        .seed = 1,
    };
    struct bench_cluster *c = NULL;
    const char *why = NULL;
    double figures[WORK_FIGURES];
    struct bench_run *run = malloc(sizeof *run);
    assert_non_null(run);
    assert_int_equal(bench_cluster_create(&config, &c, &why), 0);
    /* What is under way at both ends, 32 of each node, is to say nothing. */
    for (double seconds = 0.2; seconds < 100.0; seconds *= 2.0) {
        bench_cluster_run(c, 0.1, seconds, run);
        assert_int_equal(run->failed, 0);
        if (run->node.txn_commits > 30000) {
            break;
        }
    }
    assert_true(run->node.txn_commits > 30000);
    work_figures_of(run, figures);
    /* Two R-INVs, and R-ACK and R-VAL of many slots at once. */
    assert_true(figures[WORK_MESSAGES_PER_COMMIT] > 1.99);
    assert_true(figures[WORK_MESSAGES_PER_COMMIT] < 2.5);
    bench_cluster_destroy(c);
    free(run);
}

static void handovers(void **state)
{
    (void)state;
    with(WORK_HANDOVERS);
}

static void smallbank(void **state)
{
    (void)state;
    with(WORK_SMALLBANK);
}

static void tatp(void **state)
{
    (void)state;
    with(WORK_TATP);
}

static void voter(void **state)
{
    (void)state;
    with(WORK_VOTER);
}

static void ycsb(void **state)
{
    (void)state;
    with(WORK_YCSB);
}

/* What has no home. */
static void core_workloads(void **state)
{
    (void)state;
    double figures[WORK_FIGURES];
    for (enum work_kind kind = WORK_YCSB_A; kind <= WORK_YCSB_F; kind++) {
        measure(kind, &lotus_ops, -1.0, figures);
        assert_true(figures[WORK_REMOTE] > 0.5);
        assert_true(kind == WORK_YCSB_E || figures[WORK_REQUESTS_PER_MESSAGE] > 2.0);
    }
}

static void tpcc(void **state)
{
    (void)state;
    double figures[WORK_FIGURES];
    measure_some(WORK_TPCC, &lotus_ops, -1.0, 1000, figures);
    assert_true(figures[WORK_STEPS_PER_TXN] > 2.0);
    /* Payments and orders by far most: their rows are nearly all at home. */
    assert_true(figures[WORK_ONE_TRIP] > 0.7);
    assert_true(figures[WORK_REMOTE] > 0.02 && figures[WORK_REMOTE] < 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handovers), cmocka_unit_test(smallbank),
        cmocka_unit_test(tatp),      cmocka_unit_test(voter),
        cmocka_unit_test(ycsb),      cmocka_unit_test(core_workloads),
        cmocka_unit_test(tpcc),      cmocka_unit_test(pipelines_are_kept_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
