/* The cost model of the one-sided baselines: the same each time, no faster than the network allows,
 * and as slow under contention as transactions that abort are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "sim/cost_machine.h"
#include "sim/cost_onesided.h"

static struct cost_one_result result, other;

static struct cost_one_setup setup_of(enum one_policy policy, uint32_t writes_ppm)
{
    return (struct cost_one_setup){
        .wire = cost_infiniband.wire,
        .config = {.policy = (uint8_t)policy, .value_words = 2, .value_more = 6},
        .computes = 2,
        .memories = 2,
        .threads = 8,
        .requests = 8,
        .writes_ppm = writes_ppm,
        .keys = {.n = 20000, .exponent = 0.9, .scramble = true, .seed = 1},
        .cache = 0.08,
        .warm_ns = 300000,
        .run_ns = 3000000,
        .seed = 1,
    };
}

static void runs_are_the_same(void **state)
{
    (void)state;
    struct cost_one_setup setup = setup_of(ONE_WAIT_DIE, 500000);
    assert_int_equal(cost_one_run(&setup, &result), HK_OK);
    assert_int_equal(cost_one_run(&setup, &other), HK_OK);
    assert_true(result.committed > 100);
    assert_memory_equal(&result, &other, sizeof result);
    setup.seed = 2;
    assert_int_equal(cost_one_run(&setup, &other), HK_OK);
    assert_memory_not_equal(&result, &other, sizeof result);
}

static void readers_pay_for_round_trips(void **state)
{
    (void)state;
    struct cost_one_setup setup = setup_of(ONE_NO_WAIT, 0);
    assert_int_equal(cost_one_run(&setup, &result), HK_OK);
    assert_int_equal(result.aborted, 0);
    /* Eight requests and the locks' release: at least nine round trips. */
    uint64_t trip_ns = 2 * (setup.wire.latency_ns + setup.wire.switch_ns);
    assert_true(result.latency.min >= 9 * trip_ns);
    assert_true(result.batches >= 9 * result.committed);
    /* At once: the longest walk alone counts. */
    setup.config.overlap = true;
    assert_int_equal(cost_one_run(&setup, &other), HK_OK);
    assert_true(other.latency.min >= 2 * trip_ns);
    assert_true(histogram_percentile(&other.latency, 500000) * 2 <
                histogram_percentile(&result.latency, 500000));
    /* Without a cache every request walks from the root. */
    setup.config.overlap = false;
    setup.cache = 0;
    assert_int_equal(cost_one_run(&setup, &other), HK_OK);
    assert_true(other.txns_per_s * 2 < result.txns_per_s);
    assert_true(other.bytes / other.committed > 2 * (result.bytes / result.committed));
}

static void contention_aborts(void **state)
{
    (void)state;
    for (uint32_t policy = 0; policy < ONE_POLICIES; policy++) {
        struct cost_one_setup setup = setup_of((enum one_policy)policy, 500000);
        assert_int_equal(cost_one_run(&setup, &result), HK_OK);
        setup.writes_ppm = 0;
        assert_int_equal(cost_one_run(&setup, &other), HK_OK);
        assert_true(result.aborted > 0);
        assert_true(result.txns_per_s < other.txns_per_s);
    }
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct cost_one_setup setup = setup_of(ONE_NO_WAIT, 0);
    setup.requests = ONE_REQUESTS_MAX + 1;
    assert_int_equal(cost_one_run(&setup, &result), HK_ERR_INVALID);
    setup = setup_of(ONE_NO_WAIT, 0);
    setup.keys.n = 15;
    assert_int_equal(cost_one_run(&setup, &result), HK_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_the_same),
        cmocka_unit_test(readers_pay_for_round_trips),
        cmocka_unit_test(contention_aborts),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
