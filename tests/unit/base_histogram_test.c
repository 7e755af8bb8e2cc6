#include "base/histogram.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/random.h"

static struct histogram h, other;

static void test_ranges_cover_all_numbers_without_gap(void **state)
{
    (void)state;
    assert_int_equal(histogram_range_low(0), 0);
    for (uint32_t i = 0; i < HISTOGRAM_RANGES; i++) {
        uint64_t low = histogram_range_low(i), high = histogram_range_high(i);
        assert_true(low <= high);
        assert_int_equal(histogram_range_of(low), i);
        assert_int_equal(histogram_range_of(high), i);
        assert_true((high - low) <= low / HISTOGRAM_STEPS);
        if (i + 1 < HISTOGRAM_RANGES) {
            assert_int_equal(histogram_range_low(i + 1), high + 1);
        } else {
            assert_true(high == UINT64_MAX);
        }
    }
}

static void test_empty(void **state)
{
    (void)state;
    histogram_init(&h);
    assert_int_equal(h.count, 0);
    assert_int_equal(histogram_percentile(&h, 500000), 0);
    assert_true(histogram_mean(&h) == 0.0);
}

static void test_small_values_are_exact(void **state)
{
    (void)state;
    histogram_init(&h);
    for (uint64_t i = 1; i <= 50; i++) {
        histogram_record(&h, i);
    }
    assert_int_equal(histogram_percentile(&h, 0), 1);
    assert_int_equal(histogram_percentile(&h, 20000), 1);
    assert_int_equal(histogram_percentile(&h, 20001), 2);
    assert_int_equal(histogram_percentile(&h, 500000), 25);
    assert_int_equal(histogram_percentile(&h, 980000), 49);
    assert_int_equal(histogram_percentile(&h, 1000000), 50);
    assert_true(histogram_mean(&h) == 25.5);
    assert_int_equal(h.min, 1);
    assert_int_equal(h.max, 50);
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void test_percentiles_against_sorting(void **state)
{
    (void)state;
    static uint64_t values[20000];
    struct random r;
    random_init(&r, 4);
    histogram_init(&h);
    for (uint32_t i = 0; i < 20000; i++) {
        values[i] = random_next(&r) >> random_below(&r, 64);
        histogram_record(&h, values[i]);
    }
    qsort(values, 20000, sizeof(values[0]), compare);
    for (uint32_t ppm = 50; ppm <= 1000000; ppm += 50) {
        uint64_t exact = values[(uint64_t)ppm * 20000 / 1000000 - 1];
        uint64_t answer = histogram_percentile(&h, ppm);
        assert_true(answer >= exact && answer - exact <= exact / HISTOGRAM_STEPS);
    }
    assert_true(histogram_percentile(&h, 1000000) == values[19999]);
}

static void test_merging_is_recording_all(void **state)
{
    (void)state;
    static struct histogram both;
    struct random r;
    random_init(&r, 5);
    histogram_init(&h);
    histogram_init(&other);
    histogram_init(&both);
    for (uint32_t i = 0; i < 1000; i++) {
        uint64_t v = random_next(&r) >> 20;
        histogram_record_n(i % 3 == 0 ? &h : &other, v, i % 5);
        for (uint32_t j = 0; j < i % 5; j++) {
            histogram_record(&both, v);
        }
    }
    histogram_merge(&h, &other);
    assert_memory_equal(&h, &both, sizeof(h));
}

static void test_counts_beyond_32_bits(void **state)
{
    (void)state;
    histogram_init(&h);
    histogram_record_n(&h, 10, (uint64_t)1 << 60);
    histogram_record_n(&h, 20, (uint64_t)1 << 60);
    assert_int_equal(histogram_percentile(&h, 500000), 10);
    assert_int_equal(histogram_percentile(&h, 500001), 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranges_cover_all_numbers_without_gap),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_small_values_are_exact),
        cmocka_unit_test(test_percentiles_against_sorting),
        cmocka_unit_test(test_merging_is_recording_all),
        cmocka_unit_test(test_counts_beyond_32_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
