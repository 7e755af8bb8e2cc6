/* The index in co-partitioned memory as `horkos bench` runs it: transactions end, none is lost, and
 * what a cache holds is not asked for. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "bench/dex.h"

static struct bench_dex_config config_of(uint32_t requests, uint32_t writes_ppm, bool reads_first)
{
    return (struct bench_dex_config){
        .memories = 2,
        .computes = 2,
        .in_flight = 16,
        .requests = requests,
        .writes_ppm = writes_ppm,
        .reads_first = reads_first,
        .keys = {.n = 3000, .exponent = 0.9, .scramble = true, .seed = 1},
        .cache = 0.2,
        .seed = 1,
    };
}

static struct bench_onesided_run run;
static struct dex_stats stats;

static void play(const struct bench_dex_config *config)
{
    int err;
    struct bench_dex *b = bench_dex_open(config, &err);
    assert_non_null(b);
    assert_int_equal(err, HK_OK);
    /* How much gets done is the machine's matter; that all of it is right is not. */
    do {
        bench_dex_run(b, 0.01, 0.05, &run, &stats);
    } while (run.committed[0] + run.committed[1] < 100);
    assert_true(bench_dex_settle(b));
    bench_dex_close(b);
}

static void transactions_end(void **state)
{
    static const uint32_t requests[] = {1, 8, 32};
    (void)state;
    for (uint32_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        for (uint32_t kind = 0; kind < 3; kind++) { /* C, A, F */
            struct bench_dex_config config =
                config_of(requests[i], kind == 0 ? 0 : 500000, kind == 2);
            play(&config);
            assert_int_equal(run.aborted, 0);
            assert_int_equal(run.committed[1] > 0, kind > 0);
            assert_int_equal(run.latency[0].count, run.committed[0]);
            assert_int_equal(run.latency[1].count, run.committed[1]);
            assert_true(stats.misses > 0 && stats.misses < stats.hits);
            assert_true(run.count.verbs[VERB_READ] >= stats.misses / 2);
            assert_int_equal(run.count.verbs[VERB_WRITE] > 0, kind > 0);
            assert_int_equal(run.count.verbs[VERB_CAS] + run.count.verbs[VERB_FAA], 0);
        }
    }
}

static void a_cache_of_all_misses_nothing(void **state)
{
    (void)state;
    struct bench_dex_config config = config_of(4, 500000, true);
    config.cache = 8.0; /* sets are filled unevenly */
    int err;
    struct bench_dex *b = bench_dex_open(&config, &err);
    assert_non_null(b);
    do {
        bench_dex_run(b, 0.01, 0.05, &run, &stats);
    } while (run.committed[1] == 0 || stats.misses > 0);
    assert_int_equal(run.count.bytes, 0);
    assert_true(bench_dex_settle(b));
    bench_dex_close(b);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct bench_dex_config config = config_of(0, 0, false);
    int err = HK_OK;
    assert_null(bench_dex_open(&config, &err));
    assert_int_equal(err, HK_ERR_INVALID);
    config = config_of(1, 0, false);
    config.cache = 0.0;
    err = HK_OK;
    assert_null(bench_dex_open(&config, &err));
    assert_int_equal(err, HK_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transactions_end),
        cmocka_unit_test(a_cache_of_all_misses_nothing),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
