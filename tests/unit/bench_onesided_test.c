/* The one-sided baselines on this machine: transactions end, and cost what the policy makes them
 * cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "bench/onesided.h"

static struct bench_onesided_config config_of(enum one_policy policy, uint32_t writes_ppm)
{
    return (struct bench_onesided_config){
        .config = {.policy = (uint8_t)policy, .value_words = 16},
        .memories = 3,
        .computes = 2,
        .in_flight = 16,
        .requests = 8,
        .writes_ppm = writes_ppm,
        .keys = {.n = 4000, .exponent = 0.9, .scramble = true, .seed = 1},
        .cache = 0.08,
        .seed = 1,
    };
}

static void transactions_end(void **state)
{
    static struct bench_onesided_run run;
    (void)state;
    for (uint32_t policy = 0; policy < ONE_POLICIES; policy++) {
        for (uint32_t writes = 0; writes < 2; writes++) {
            struct bench_onesided_config config =
                config_of((enum one_policy)policy, 500000 * writes);
            int err;
            struct bench_onesided *b = bench_onesided_open(&config, &err);
            assert_non_null(b);
            assert_int_equal(err, HK_OK);
            uint64_t committed;
            do { /* however slow the machine is */
                bench_onesided_run(b, 0.01, 0.1, &run);
                committed = run.committed[0] + run.committed[1];
            } while (committed <= 100);
            assert_int_equal(run.latency[0].count + run.latency[1].count, committed);
            assert_true(writes == 1 ? run.committed[1] > run.committed[0] : run.committed[1] == 0);
            assert_true(run.cpu_ns > 0 && run.seconds >= 0.1);
            /* A lock and a read for each request, and something to release them. */
            assert_true(run.count.verbs[VERB_READ] >= 8 * (committed - 32));
            assert_true(run.count.verbs[VERB_CAS] + run.count.verbs[VERB_FAA] >=
                        16 * (committed - 32));
            assert_int_equal(run.count.verbs[VERB_WRITE] > 0, writes);
            if (writes == 0) {
                assert_int_equal(run.aborted, 0);
            }
            assert_true(bench_onesided_settle(b)); /* no write of any was lost */
            bench_onesided_close(b);
        }
    }
}

/* Also when the keys have run out. */
static void what_is_inserted_is_there(void **state)
{
    static const uint32_t inserts[] = {3, 200, 20000};
    static struct bench_onesided_run run;
    (void)state;
    for (uint32_t i = 0; i < 2 * sizeof inserts / sizeof inserts[0]; i++) {
        struct bench_onesided_config config = config_of((enum one_policy)(i % 2), 200000);
        config.keys.scramble = false;
        config.inserts = inserts[i / 2];
        config.config.overlap = i % 4 == 0;
        int err;
        struct bench_onesided *b = bench_onesided_open(&config, &err);
        assert_non_null(b);
        do {
            bench_onesided_run(b, 0.01, 0.05, &run);
        } while (run.committed[1] < 50);
        assert_true(bench_onesided_settle(b));
        bench_onesided_close(b);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct bench_onesided_config config = config_of(ONE_NO_WAIT, 0);
    int err = HK_OK;
    config.requests = 0;
    assert_null(bench_onesided_open(&config, &err));
    assert_int_equal(err, HK_ERR_INVALID);
    config = config_of(ONE_NO_WAIT, 0);
    config.inserts = 10; /* popular keys are scattered, the latest are not */
    assert_null(bench_onesided_open(&config, &err));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transactions_end),
        cmocka_unit_test(what_is_inserted_is_there),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
