/* The cost model of co-partitioned memory: the same each time, and what each cache must cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "sim/cost_partitioned.h"

static struct cost_part_result result, other;

static struct cost_part_setup setup_of(enum cost_part_cache cache, uint32_t writes_ppm)
{
    return (struct cost_part_setup){
        .wire = cost_infiniband.wire,
        .cache = (uint8_t)cache,
        .computes = 2,
        .memories = 2,
        .threads = 4,
        .memory_threads = 2,
        .requests = 16,
        .writes_ppm = writes_ppm,
        .keys = 100000,
        .exponent = 0.9,
        .cache_bytes = 200000,
        .warm_ns = 20000000,
        .run_ns = 5000000,
        .seed = 1,
    };
}

static void runs_are_the_same(void **state)
{
    (void)state;
    for (uint32_t cache = 0; cache < COST_PART_CACHES; cache++) {
        struct cost_part_setup setup = setup_of((enum cost_part_cache)cache, 500000);
        assert_int_equal(cost_part_run(&setup, &result), HK_OK);
        assert_int_equal(cost_part_run(&setup, &other), HK_OK);
        assert_true(result.committed > 100);
        assert_memory_equal(&result, &other, sizeof result);
    }
}

static void what_is_cached_costs_no_message(void **state)
{
    (void)state;
    for (uint32_t cache = 0; cache < COST_PART_CACHES; cache++) {
        struct cost_part_setup setup = setup_of((enum cost_part_cache)cache, 500000);
        assert_int_equal(cost_part_run(&setup, &result), HK_OK);
        assert_true(result.misses > 0 && result.written_back > 0 && result.messages > 0);
        setup.cache_bytes = 64u << 20; /* all of it fits */
        setup.warm_ns = 400000000;
        assert_int_equal(cost_part_run(&setup, &other), HK_OK);
        assert_true(other.misses * 50 < other.hits);
        assert_int_equal(other.written_back, 0);
        assert_true(other.txns_per_s > 3 * result.txns_per_s);
    }
}

static void a_message_asks_for_all_that_is_missed(void **state)
{
    (void)state;
    struct cost_part_setup setup = setup_of(COST_PART_RECORDS, 0);
    assert_int_equal(cost_part_run(&setup, &result), HK_OK);
    /* One to each of two servers, at the most. */
    assert_true(result.messages <= 2 * (result.committed + 8));
    assert_true(result.misses > 2 * result.messages);
    setup.cache = COST_PART_NODES;
    assert_int_equal(cost_part_run(&setup, &other), HK_OK);
    assert_true(other.messages + 8 >= other.misses);
    assert_true(other.bytes / other.committed > 2 * (result.bytes / result.committed));
    assert_int_equal(other.written_back, 0);
    assert_true(other.memory_busy_most <= 0 && result.memory_busy_most > 0);
}

static void nonsense_is_refused(void **state)
{
    (void)state;
    struct cost_part_setup setup = setup_of(COST_PART_RECORDS, 0);
    setup.requests = 33;
    assert_int_equal(cost_part_run(&setup, &result), HK_ERR_INVALID);
    setup = setup_of(COST_PART_CACHES, 0);
    assert_int_equal(cost_part_run(&setup, &result), HK_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_are_the_same),
        cmocka_unit_test(what_is_cached_costs_no_message),
        cmocka_unit_test(a_message_asks_for_all_that_is_missed),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
