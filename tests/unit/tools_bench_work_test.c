/* The command line of `horkos bench --workload`. */
#include "tools/bench_work.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tools/commands.h"

static struct bench_work_options o;

static int parse(const char *line)
{
    static char text[512];
    char *argv[64];
    int argc = 0;
    bool help = false;
    snprintf(text, sizeof text, "bench %s", line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        argv[argc++] = word;
    }
    argv[argc] = NULL;
    return bench_work_options_parse(argc, argv, &o, &help);
}

static void defaults_are_the_workloads(void **state)
{
    (void)state;
    assert_int_equal(parse("--workload smallbank"), STATUS_OK);
    assert_int_equal(o.work.kind, WORK_SMALLBANK);
    assert_int_equal(o.work.hot, 4000);
    assert_true(o.work.remote < 0.0);
    assert_int_equal(o.designs_n, 1);
    assert_int_equal(o.designs[0].protocol, BENCH_ZEUS);
    assert_int_equal(o.config.in_flight, 64);
    assert_int_equal(o.config.degree, 3);
    assert_int_equal(parse("--workload=ycsb --nodes 2"), STATUS_OK);
    assert_int_equal(o.work.requests, 16);
    assert_int_equal(o.config.degree, 2);
}

static void every_option(void **state)
{
    (void)state;
    assert_int_equal(parse("--workload ycsb --mode static --remote 20 --objects 5000 "
                           "--requests 8 --theta 0.5 --writes 10 --value 64 --nodes 5 --workers 2 "
                           "--replicas 2 --port tcp --threads --in-flight 9 --seconds 0.5 "
                           "--warmup 0 --runs 7 --seed 4 --json"),
                     STATUS_OK);
    assert_int_equal(o.designs_n, 1);
    assert_int_equal(o.designs[0].protocol, BENCH_STATIC);
    assert_true(o.work.remote == 20.0 && o.work.theta == 0.5 && o.work.writes == 10.0);
    assert_int_equal(o.work.objects, 5000);
    assert_int_equal(o.work.requests, 8);
    assert_int_equal(o.work.value_bytes, 64);
    assert_int_equal(o.work.nodes, 5);
    assert_int_equal(o.work.workers, 2);
    assert_int_equal(o.work.seed, 4);
    assert_int_equal(o.config.degree, 2);
    assert_int_equal(o.config.port, BENCH_TCP);
    assert_true(o.config.threads && o.json);
    assert_int_equal(o.config.in_flight, 9);
    assert_int_equal(o.runs, 7);
    assert_int_equal(parse("--workload voter --shift 7 --compare --cooperative"), STATUS_OK);
    assert_int_equal(o.work.shift, 7);
    assert_int_equal(o.designs_n, 2);
    assert_int_equal(parse("--workload handovers --handovers 2.5"), STATUS_OK);
    assert_true(o.work.handovers == 2.5);
    assert_int_equal(parse("--workload smallbank --hot 10"), STATUS_OK);
    assert_int_equal(o.work.hot, 10);
}

static void samples_are_of_one_cluster(void **state)
{
    (void)state;
    assert_int_equal(parse("--workload ycsb-a --cc no_wait --samples at"), STATUS_OK);
    assert_string_equal(o.samples, "at");
    assert_int_equal(parse("--workload ycsb-a --samples at --threads"), STATUS_USAGE);
    assert_int_equal(parse("--workload ycsb-a --cc no_wait,wait_die --samples at"), STATUS_USAGE);
    assert_int_equal(parse("--workload ycsb-a --cc one_sided_no_wait --samples at"), STATUS_USAGE);
    assert_int_equal(parse("--workload ycsb-a --samples"), STATUS_USAGE);
}

static void assert_names(const char *const *names)
{
    uint32_t n = 0;
    for (; names[n] != NULL; n++) {
        assert_true(n < o.designs_n);
        assert_string_equal(o.designs[n].name, names[n]);
    }
    assert_int_equal(o.designs_n, n);
}

static void lotus_is_many_designs(void **state)
{
    (void)state;
    assert_int_equal(parse("--workload tpcc"), STATUS_OK);
    assert_names((const char *const[]){"lotus", NULL});
    assert_int_equal(o.designs[0].lotus.lock.policy, LOCK_WOUND_WAIT);
    assert_int_equal(o.config.in_flight, 4);
    assert_int_equal(parse("--workload ycsb-a --engine lotus,zeus,static"), STATUS_OK);
    assert_names((const char *const[]){"lotus", "zeus", "static", NULL});
    assert_int_equal(parse("--workload ycsb-b --cc no_wait,wait_die,wound_wait --no-hints "
                           "--one-at-a-time --across --payload 200 --columns 2 --neighbours"),
                     STATUS_OK);
    assert_names(
        (const char *const[]){"lotus-wound_wait", "lotus-wait_die", "lotus-no_wait", NULL});
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(o.designs[i].lotus.hints_off && o.designs[i].lotus.one_at_a_time &&
                    o.designs[i].lotus.across);
        assert_int_equal(o.designs[i].lotus.lock.policy, LOCK_WOUND_WAIT - i);
    }
    assert_true(o.work.value_bytes == 200 && o.work.columns == 2 && o.work.neighbours);
    assert_int_equal(parse("--workload ycsb-e --scan 50 --cc wait_die --increments"), STATUS_OK);
    assert_int_equal(o.work.scan, 50);
    assert_names((const char *const[]){"lotus-vanilla", "lotus-hints", "lotus-inside",
                                       "lotus-across", NULL});
    assert_true(o.designs[0].lotus.hints_off && o.designs[0].lotus.one_at_a_time);
    assert_true(!o.designs[1].lotus.hints_off && o.designs[1].lotus.one_at_a_time);
    assert_true(!o.designs[2].lotus.one_at_a_time && !o.designs[2].lotus.across);
    assert_true(o.designs[3].lotus.across);
    assert_int_equal(parse("--workload ycsb-c --engine lotus --nodes 6 --memory 2"), STATUS_OK);
    assert_int_equal(o.work.nodes, 4);
    assert_int_equal(o.config.memory, 2);
    assert_int_equal(parse("--workload tpcc --warehouses 5 --customers 60 --objects 300"),
                     STATUS_OK);
    assert_true(o.work.warehouses == 5 && o.work.customers == 60 && o.work.objects == 300);
}

static void one_sided_baselines_are_designs(void **state)
{
    (void)state;
    assert_int_equal(parse("--workload ycsb-a --cc one_sided_wait_die"), STATUS_OK);
    assert_names((const char *const[]){"one_sided_wait_die", NULL});
    assert_int_equal(o.designs[0].protocol, BENCH_ONE_SIDED);
    assert_int_equal(o.designs[0].one_sided, ONE_WAIT_DIE);
    assert_int_equal(parse("--workload ycsb-b --cc wait_die,one_sided_no_wait,one_sided_wait_die "
                           "--overlap --memory 1"),
                     STATUS_OK);
    assert_names((const char *const[]){"lotus", "one_sided_no_wait", "one_sided_wait_die", NULL});
    assert_true(o.overlap && o.config.memory == 1);
    assert_int_equal(parse("--workload ycsb-f --cc one_sided_no_wait"), STATUS_OK);
    assert_int_equal(parse("--workload ycsb-d --cc one_sided_no_wait"), STATUS_OK);
    assert_int_equal(parse("--workload ycsb-e --cc one_sided_no_wait"), STATUS_USAGE);
    assert_int_equal(parse("--workload smallbank --cc one_sided_no_wait"), STATUS_USAGE);
    assert_int_equal(parse("--workload ycsb-a --cc one_sided_no_wait --threads"), STATUS_USAGE);
    assert_int_equal(parse("--workload ycsb-a --cc wait_die --overlap"), STATUS_USAGE);
}

static void co_partitioned_memory(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "--workload ycsb-a --partitioned",
        "--workload ycsb-a --cc dex",
        "--workload ycsb-a --partitioned --cc no_wait --nodes 1",
        "--workload ycsb-a --partitioned --cc no_wait --overlap",
        "--workload ycsb-a --partitioned --cc no_wait --increments",
        "--workload ycsb-d --partitioned --cc no_wait",
        "--workload ycsb-a --partitioned --engine zeus",
        "--workload ycsb-a --partitioned --cc dex,one_sided_no_wait",
        "--workload ycsb-d --partitioned --cc dex",
        "--workload ycsb-e --partitioned --cc dex",
        "--workload tatp --partitioned --cc dex",
        "--workload ycsb-a --partitioned --cc dex --payload 16",
        "--workload ycsb-a --partitioned --cc dex --columns 2",
        "--workload ycsb-a --partitioned --cc dex --threads",
        "--workload ycsb-a --partitioned --cc dex --port tcp",
        "--workload ycsb-a --partitioned --cc dex --replicas 1",
        "--workload ycsb-a --partitioned --cc dex --overlap",
        "--workload ycsb-a --partitioned --cc dex --no-hints",
        "--workload ycsb-a --partitioned --cc dex --across",
        "--workload ycsb-a --partitioned --cc dex --increments",
        "--workload ycsb-a --partitioned --cc dex --memory 3",
        "--workload ycsb-a --partitioned --cc dex --cache 0",
        "--workload ycsb-a --partitioned --cc dex --samples at",
        "--workload ycsb-a --cc no_wait --cache 5",
        "--workload ycsb-a --cache 5",
        "--workload ycsb-a --cc one_sided_no_wait,no_wait --no-hints --cache 5",
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(parse(wrong[i]), STATUS_USAGE);
    }
    assert_int_equal(parse("--workload ycsb-b --partitioned --cc dex"), STATUS_OK);
    assert_names((const char *const[]){"dex", NULL});
    assert_int_equal(o.designs[0].protocol, BENCH_DEX);
    assert_true(o.partitioned && o.work.value_bytes == 8 && o.work.requests == 1);
    assert_true(o.cache == 0.0);
    assert_int_equal(parse("--workload ycsb-f --cc dex --partitioned --requests 4 --cache 32.5 "
                           "--nodes 4 --memory 1"),
                     STATUS_OK);
    assert_true(o.cache == 32.5 && o.work.requests == 4 && o.work.nodes == 3);
    assert_int_equal(parse("--workload ycsb-a --cc one_sided_no_wait --cache 5"), STATUS_OK);
    assert_true(o.cache == 5.0 && !o.work.partitioned);
    assert_int_equal(parse("--workload ycsb-a --partitioned --cc dex,no_wait"), STATUS_OK);
    assert_names((const char *const[]){"lotus", "dex", NULL});
    assert_true(o.work.partitioned);
    assert_int_equal(parse("--workload ycsb-c --partitioned --engine lotus --cache 5"), STATUS_OK);
    assert_names((const char *const[]){"lotus", NULL});
    assert_int_equal(o.designs[0].lotus.lock.policy, LOCK_WOUND_WAIT);
}

static void what_is_wrong_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "--workload tpcc --engine zeus",
        "--workload ycsb-e --engine lotus,static",
        "--workload tpcc --warehouses 201",
        "--workload ycsb-a --remote 5",
        "--workload ycsb-a --requests 33",
        "--workload ycsb-a --columns 0",
        "--workload ycsb-a --engine lotus,",
        "--workload ycsb-a --engine lotus,lotus",
        "--workload ycsb-a --cc two_phase",
        "--workload ycsb-a --engine zeus --cc no_wait",
        "--workload ycsb-a --engine lotus,zeus --memory 1",
        "--workload ycsb-a --memory 3",
        "--workload ycsb-a --increments --across",
        "--workload",
        "--workload tatp --engine hermes",
        "--workload tatp --mode base",
        "--workload tatp --remote 101",
        "--workload tatp --remote -1",
        "--workload tatp --nodes 3 --replicas 4",
        "--workload tatp --replicas 0",
        "--workload smallbank --hot 200000",
        "--workload ycsb --requests 33",
        "--workload ycsb extra",
        "--workload ycsb --keys 5",
        "--workload tatp --objects 64 --workers 2",
    };
    for (uint32_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(parse(wrong[i]), STATUS_USAGE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_the_workloads),      cmocka_unit_test(every_option),
        cmocka_unit_test(samples_are_of_one_cluster),      cmocka_unit_test(lotus_is_many_designs),
        cmocka_unit_test(one_sided_baselines_are_designs), cmocka_unit_test(co_partitioned_memory),
        cmocka_unit_test(what_is_wrong_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
