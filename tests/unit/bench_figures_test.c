/* Figures of a run, spreads and ratios. */
#include "bench/figures.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct bench_run run;
static double figures[BENCH_FIGURES];

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

static void empty_run(void)
{
    memset(&run, 0, sizeof run);
    for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
        histogram_init(&run.latency_ns[kind]);
    }
}

static void test_every_figure_has_its_own_name(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < BENCH_FIGURES; i++) {
        assert_non_null(bench_figure_name(i));
        for (uint32_t j = 0; j < i; j++) {
            assert_string_not_equal(bench_figure_name(i), bench_figure_name(j));
        }
    }
    assert_string_equal(bench_figure_name(bench_figure_latency(0, LATENCY_P9999)), "p9999_us");
    assert_string_equal(bench_figure_name(bench_figure_latency(1 + LOAD_WRITE, LATENCY_P50)),
                        "writes_p50_us");
}

static void test_figures(void **state)
{
    (void)state;
    empty_run();
    run.seconds = 2.0;
    run.cpu_seconds = 1.0;
    run.ops[LOAD_READ] = 800;
    run.ops[LOAD_WRITE] = 150;
    run.ops[LOAD_RMW] = 50;
    run.reads_passed = 8;
    run.node.messages_out = 1200;
    run.node.frames_out = 100;
    run.node.bytes_out = 50000;
    run.node.parked = 10;
    run.node.asks = 4;
    run.nodes = 4;
    run.node_seconds[0] = run.node_seconds[1] = run.node_seconds[3] = 0.2;
    run.node_seconds[2] = 0.4;
    histogram_record_n(&run.latency_ns[LOAD_READ], 1000, 800);
    histogram_record_n(&run.latency_ns[LOAD_WRITE], 50000, 150);
    histogram_record_n(&run.latency_ns[LOAD_RMW], 60000, 50);
    bench_figures_of(&run, figures);
    assert_true(near(figures[FIGURE_OPS_PER_S], 500.0));
    assert_true(near(figures[FIGURE_CPU_NS_PER_OP], 1e6));
    assert_true(isnan(figures[FIGURE_CPU_NS_PER_UPDATE]));
    assert_true(near(figures[FIGURE_MESSAGES_PER_OP], 1.2));
    assert_true(near(figures[FIGURE_MESSAGES_PER_UPDATE], 6.0));
    assert_true(near(figures[FIGURE_FRAMES_PER_OP], 0.1));
    assert_true(near(figures[FIGURE_BYTES_PER_OP], 50.0));
    assert_true(near(figures[FIGURE_READS_PASSED], 0.01));
    assert_true(near(figures[FIGURE_READS_REMOTE], 0.005));
    assert_true(near(figures[FIGURE_BUSIEST_NODE], 1.6));
    /* The busiest node had 0.4 of the second of CPU time. */
    assert_true(near(figures[FIGURE_OPS_PER_S_APART], 1000 / 0.4));
    assert_true(near(figures[FIGURE_PARKED], 0.01));
    assert_true(isnan(figures[FIGURE_HIT_RATE]) && isnan(figures[FIGURE_FORWARDED]));
    run.homed = true;
    run.hits = 650;
    run.node.misses = 280;
    bench_figures_of(&run, figures);
    assert_true(near(figures[FIGURE_HIT_RATE], 0.65) && near(figures[FIGURE_FORWARDED], 0.28));
    double p50 = figures[bench_figure_latency(0, LATENCY_P50)];
    double p99 = figures[bench_figure_latency(0, LATENCY_P99)];
    assert_true(p50 >= 1.0 && p50 < 1.02);
    assert_true(p99 >= 60.0 && p99 < 61.0);
    double write = figures[bench_figure_latency(1 + LOAD_WRITE, LATENCY_P9999)];
    assert_true(write >= 50.0 && write < 51.0);
    assert_true(near(figures[bench_figure_latency(0, LATENCY_MEAN)], 11.3));
}

static void test_what_there_is_none_of(void **state)
{
    (void)state;
    empty_run();
    run.seconds = 1.0;
    run.cpu_seconds = 1e-3;
    run.ops[LOAD_WRITE] = 1000;
    histogram_record_n(&run.latency_ns[LOAD_WRITE], 2000, 1000);
    bench_figures_of(&run, figures);
    assert_true(near(figures[FIGURE_CPU_NS_PER_UPDATE], 1000.0));
    assert_true(isnan(figures[FIGURE_READS_PASSED]));
    assert_true(isnan(figures[FIGURE_BUSIEST_NODE]));
    assert_true(isnan(figures[FIGURE_OPS_PER_S_APART]));
    assert_true(isnan(figures[bench_figure_latency(1 + LOAD_READ, LATENCY_P50)]));
    empty_run();
    run.seconds = 1.0;
    bench_figures_of(&run, figures);
    assert_true(figures[FIGURE_OPS_PER_S] == 0.0);
    assert_true(isnan(figures[FIGURE_CPU_NS_PER_OP]));
    assert_true(isnan(figures[bench_figure_latency(0, LATENCY_P50)]));
}

static void test_spreads(void **state)
{
    (void)state;
    const double odd[] = {5.0, 1.0, 3.0}, even[] = {4.0, 1.0, 2.0, 10.0};
    const double holes[] = {NAN, 2.0, NAN}, none[] = {NAN};
    struct bench_spread s = bench_spread_of(odd, 3);
    assert_true(s.median == 3.0 && s.min == 1.0 && s.max == 5.0);
    s = bench_spread_of(even, 4);
    assert_true(s.median == 3.0 && s.min == 1.0 && s.max == 10.0);
    s = bench_spread_of(holes, 3);
    assert_true(s.median == 2.0 && s.min == 2.0 && s.max == 2.0);
    s = bench_spread_of(none, 1);
    assert_true(isnan(s.median) && isnan(s.min) && isnan(s.max));
}

/* The median of the ratios, not the ratio of the medians. */
static void test_ratios(void **state)
{
    (void)state;
    const double a[] = {10.0, 40.0, 30.0}, b[] = {10.0, 10.0, 0.0};
    struct bench_spread s = bench_ratio_of(a, b, 2);
    assert_true(s.median == 2.5 && s.min == 1.0 && s.max == 4.0);
    s = bench_ratio_of(a, b, 3); /* a division by nothing says nothing */
    assert_true(s.median == 2.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_figure_has_its_own_name),
        cmocka_unit_test(test_figures),
        cmocka_unit_test(test_what_there_is_none_of),
        cmocka_unit_test(test_spreads),
        cmocka_unit_test(test_ratios),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
