#include "load/keys.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/mix.h"

#define DRAWS 400000u
#define RANKS 200u

/* Pearson's sum over the ranks below RANKS and the rest together; its mean is the number of cells
 * less one, its standard deviation the root of twice that. */
static double chi_square(uint64_t n, double exponent, uint64_t seed)
{
    static uint64_t seen[RANKS + 1];
    memset(seen, 0, sizeof seen);
    struct zipf z;
    struct random r;
    zipf_init(&z, n, exponent);
    random_init(&r, seed);
    for (uint32_t i = 0; i < DRAWS; i++) {
        uint64_t rank = zipf_draw(&z, &r);
        assert_in_range(rank, 1, n);
        seen[rank <= RANKS ? rank - 1 : RANKS]++;
    }
    double sum = zipf_sum(&z), chi = 0.0, rest = 1.0;
    uint64_t cells = n < RANKS ? n : RANKS;
    for (uint64_t rank = 1; rank <= cells; rank++) {
        double p = zipf_probability(&z, rank, sum);
        double expected = p * DRAWS, off = (double)seen[rank - 1] - expected;
        chi += off * off / expected;
        rest -= p;
    }
    if (n > RANKS) {
        double expected = rest * DRAWS, off = (double)seen[RANKS] - expected;
        chi += off * off / expected;
        cells++;
    }
    double freedom = (double)cells - 1.0;
    return (chi - freedom) / sqrt(2.0 * freedom);
}

static void test_zipf_is_exact(void **state)
{
    (void)state;
    static const double exponents[] = {0.2, 0.5, 0.9, 0.99, 1.0, 1.01, 1.5, 3.0};
    for (size_t i = 0; i < sizeof exponents / sizeof exponents[0]; i++) {
        assert_true(fabs(chi_square(1000000, exponents[i] < 1.5 ? exponents[i] : 1.2, i)) < 5.0);
        assert_true(fabs(chi_square(150, exponents[i] < 1.5 ? exponents[i] : 1.2, i + 50)) < 5.0);
        assert_true(fabs(chi_square(7, exponents[i], i + 100)) < 5.0);
    }
    struct zipf one;
    struct random r;
    random_init(&r, 1);
    zipf_init(&one, 1, 0.99);
    assert_int_equal(zipf_draw(&one, &r), 1);
}

static void test_a_wrong_exponent_is_noticed(void **state)
{
    (void)state;
    struct zipf z;
    zipf_init(&z, 1000, 0.99);
    double right = zipf_probability(&z, 1, zipf_sum(&z));
    zipf_init(&z, 1000, 0.90);
    double wrong = zipf_probability(&z, 1, zipf_sum(&z));
    /* In units of the deviation that the most popular rank's count has: the test above sees it. */
    assert_true(fabs(right - wrong) * DRAWS / sqrt(right * DRAWS) > 20.0);
}

static void test_probabilities_sum_to_one(void **state)
{
    (void)state;
    struct zipf z;
    zipf_init(&z, 5000, 0.99);
    double sum = zipf_sum(&z), all = 0.0;
    for (uint64_t rank = 1; rank <= 5000; rank++) {
        all += zipf_probability(&z, rank, sum);
    }
    assert_true(fabs(all - 1.0) < 1e-9);
}

static void test_harmonic_numbers(void **state)
{
    (void)state;
    static const double exponents[] = {0.2, 0.9, 0.99, 1.0, 1.01, 2.0};
    static const uint64_t ns[] = {1, 2, 1000, 1023, 1024, 1025, 1026, 5000, 3000000};
    for (size_t i = 0; i < sizeof exponents / sizeof exponents[0]; i++) {
        for (size_t k = 0; k < sizeof ns / sizeof ns[0]; k++) {
            struct zipf z;
            zipf_init(&z, ns[k], exponents[i]);
            double sum = zipf_sum(&z);
            assert_true(fabs(zipf_harmonic(ns[k], exponents[i]) / sum - 1.0) < 1e-13);
        }
    }
    assert_true(zipf_harmonic(0, 0.99) == 0.0);
    assert_true(zipf_harmonic(2, 1.0) == 1.5);
    /* 1 + 1/4 + 1/9 + ... is pi^2 / 6; what lies beyond n is 1/n less half of its square. */
    assert_true(fabs(zipf_harmonic(1000000, 2.0) + 1e-6 - 0.5e-12 - 1.6449340668482264) < 1e-14);
}

/* A plain addition of all 250 million powers gives the same six digits. */
static void test_hit_rates(void **state)
{
    (void)state;
    assert_true(fabs(zipf_hit_rate(250000, 250000000, 0.90) - 0.422422) < 1e-6);
    assert_true(fabs(zipf_hit_rate(250000, 250000000, 0.99) - 0.630370) < 1e-6);
    assert_true(fabs(zipf_hit_rate(250000, 250000000, 1.01) - 0.675419) < 1e-6);
    assert_true(zipf_hit_rate(0, 1000, 0.99) == 0.0);
    assert_true(zipf_hit_rate(1000, 1000, 0.99) == 1.0);
    assert_true(fabs(zipf_hit_rate(1, 2, 1.0) - 2.0 / 3.0) < 1e-15);
}

static void test_scattering_is_a_bijection(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 65536, 65537, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct keys keys;
        struct keys_config config = {.n = sizes[i], .exponent = 0.99, .scramble = true, .seed = i};
        keys_init(&keys, &config);
        uint8_t *seen = calloc(sizes[i], 1);
        assert_non_null(seen);
        uint64_t fixed = 0;
        for (uint64_t rank = 0; rank < sizes[i]; rank++) {
            uint64_t key = keys_of_rank(&keys, rank);
            assert_in_range(key, 0, sizes[i] - 1);
            assert_int_equal(seen[key], 0);
            seen[key] = 1;
            fixed += key == rank;
        }
        assert_true(sizes[i] < 1000 || fixed < 20);
        free(seen);
    }
}

static void test_keys(void **state)
{
    (void)state;
    struct keys plain, scattered, same;
    struct keys_config config = {.n = 1000, .exponent = 0.99};
    keys_init(&plain, &config);
    config.scramble = true;
    config.seed = 5;
    keys_init(&scattered, &config);
    keys_init(&same, &config);
    struct random r;
    random_init(&r, 9);
    uint32_t first = 0, popular = 0, uniform = 0;
    for (uint32_t i = 0; i < 100000; i++) {
        first += keys_draw(&plain, &r) == 0;
        popular += keys_draw(&scattered, &r) == keys_of_rank(&same, 0);
    }
    /* 1 / H(1000, 0.99) = 0.129 */
    assert_in_range(first, 12400, 13400);
    assert_in_range(popular, 12400, 13400);
    config.exponent = 0.0;
    keys_init(&plain, &config);
    for (uint32_t i = 0; i < 100000; i++) {
        uniform += keys_draw(&plain, &r) < 500;
    }
    assert_in_range(uniform, 49000, 51000);
}

/* A tenth of a percent of the keys stands for all of 250 millions. */
static void test_fold(void **state)
{
    (void)state;
    enum { KEYS = 50000, WHOLE = 100, HOT_KEYS = 1000, COUNT = 400000 };
    struct keys keys;
    struct keys_config config = {
        .n = KEYS,
        .exponent = 0.99,
        .fold = {.ranks = 250000000, .whole = WHOLE, .hot = 250000, .hot_keys = HOT_KEYS}};
    keys_init(&keys, &config);
    static uint32_t seen[KEYS];
    memset(seen, 0, sizeof seen);
    struct random r;
    random_init(&r, 3);
    for (uint32_t i = 0; i < COUNT; i++) {
        uint64_t key = keys_draw(&keys, &r);
        assert_in_range(key, 0, KEYS - 1);
        seen[key]++;
    }
    double h = zipf_harmonic(250000000, 0.99);
    uint32_t hot = 0, most_of_the_rest = 0, least_hot = COUNT;
    for (uint32_t k = 0; k < KEYS; k++) {
        if (k < HOT_KEYS) {
            hot += seen[k];
            least_hot = seen[k] < least_hot ? seen[k] : least_hot;
        } else {
            most_of_the_rest = seen[k] > most_of_the_rest ? seen[k] : most_of_the_rest;
        }
    }
    assert_true(fabs(hot / (double)COUNT - zipf_hit_rate(250000, 250000000, 0.99)) < 0.004);
    assert_true(fabs(seen[0] * h / COUNT - 1) < 0.03);
    /* What is cached there stands out here as well: a sketch finds it. */
    assert_true(least_hot > most_of_the_rest);
}

static void test_parse(void **state)
{
    (void)state;
    double exponent = -1.0;
    assert_true(keys_parse("uniform", &exponent));
    assert_true(exponent == 0.0);
    assert_true(keys_parse("zipf:0.99", &exponent));
    assert_true(exponent == 0.99);
    static const char *const bad[] = {"",        "zipf",     "zipf:",    "zipf:0",   "zipf:-1",
                                      "zipf:1x", "zipf:nan", "zipf:inf", "zipf:1e9", "Uniform"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(keys_parse(bad[i], &exponent));
    }
}

static void test_mix(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 4);
    struct mix mix = {.writes = 20.0, .rmws = 5.0};
    uint32_t seen[LOAD_KINDS] = {0};
    for (uint32_t i = 0; i < 100000; i++) {
        seen[mix_draw(&mix, &r)]++;
    }
    assert_in_range(seen[LOAD_WRITE], 19500, 20500);
    assert_in_range(seen[LOAD_RMW], 4700, 5300);
    struct mix reads = {0.0, 0.0}, writes = {100.0, 0.0}, rmws = {0.0, 100.0};
    for (uint32_t i = 0; i < 10000; i++) {
        assert_int_equal(mix_draw(&reads, &r), LOAD_READ);
        assert_int_equal(mix_draw(&writes, &r), LOAD_WRITE);
        assert_int_equal(mix_draw(&rmws, &r), LOAD_RMW);
    }
}

static void test_schedule(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 8);
    struct schedule s;
    schedule_init(&s, 1e6, true, 500, &r);
    assert_int_equal(schedule_due_ns(&s), 1500);
    schedule_advance(&s, &r);
    assert_int_equal(schedule_due_ns(&s), 2500);
    schedule_init(&s, 1e6, false, 0, &r);
    uint64_t last = 0;
    double squares = 0.0;
    for (uint32_t i = 0; i < 100000; i++) {
        uint64_t due = schedule_due_ns(&s);
        assert_true(due >= last);
        squares += (double)(due - last) * (double)(due - last);
        last = due;
        schedule_advance(&s, &r);
    }
    /* Mean 1,000 ns; the mean square of an exponential gap is twice the square of its mean. */
    assert_in_range(last, 98500000, 101500000);
    assert_true(fabs(squares / 100000 / 1e6 - 2.0) < 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_zipf_is_exact),
        cmocka_unit_test(test_a_wrong_exponent_is_noticed),
        cmocka_unit_test(test_probabilities_sum_to_one),
        cmocka_unit_test(test_harmonic_numbers),
        cmocka_unit_test(test_hit_rates),
        cmocka_unit_test(test_scattering_is_a_bijection),
        cmocka_unit_test(test_keys),
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_mix),
        cmocka_unit_test(test_schedule),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
