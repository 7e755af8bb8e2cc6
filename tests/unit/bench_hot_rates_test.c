/* The hit rate of the keys that a sketch picks is the computed one, within a point. */
#include "bench/hot_rates.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/err.h"

static struct hot_rates measure(struct hot_rates_config config)
{
    struct hot_rates rates;
    config.seed = config.seed != 0 ? config.seed : 1;
    config.sample = config.sample != 0 ? config.sample : 1;
    assert_int_equal(hot_rates_measure(&config, &rates), HK_OK);
    print_message("exponent %.2f, %u counters, 1 in %u: %.4f, computed %.4f (by count %.4f)\n",
                  config.exponent, config.counters, config.sample, rates.picked, rates.best,
                  rates.by_count);
    assert_true(rates.picked <= rates.best + 1e-9 && rates.by_count <= rates.best + 1e-9);
    return rates;
}

static void a_million_keys_within_a_point(void **state)
{
    (void)state;
    /* The sums are those of the first thousand and of a million terms. */
    static const double computed[] = {0.3464, 0.5021, 0.5380};
    static const double exponents[] = {0.90, 0.99, 1.01};
    for (uint32_t i = 0; i < 3; i++) {
        struct hot_rates r = measure((struct hot_rates_config){.keys = 1000000,
                                                               .exponent = exponents[i],
                                                               .cache = 1000,
                                                               .counters = 8000,
                                                               .samples = 1000000});
        assert_true(fabs(r.best - computed[i]) < 0.0001);
        assert_true(r.picked > r.best - 0.01);
    }
}

/* That the stream is sampled changes nothing. */
static void a_sampled_stream_is_a_stream(void **state)
{
    (void)state;
    struct hot_rates_config config = {
        .keys = 1000000, .exponent = 0.99, .cache = 1000, .counters = 8000, .samples = 300000};
    struct hot_rates all = measure(config);
    config.sample = 16;
    struct hot_rates sampled = measure(config);
    assert_true(sampled.picked > sampled.best - 0.01);
    assert_true(fabs(sampled.picked - all.picked) < 0.005);
}

/* The fewer counters, the more the sketch guesses; what is certain is the better guess. */
static void too_few_counters_show(void **state)
{
    (void)state;
    struct hot_rates_config config = {
        .keys = 1000000, .exponent = 0.99, .cache = 1000, .counters = 1000, .samples = 500000};
    double before = 0;
    for (; config.counters <= 8000; config.counters *= 2) {
        struct hot_rates r = measure(config);
        assert_true(r.picked > before + 0.005);
        assert_true(r.picked >= r.by_count - 1e-9);
        before = r.picked;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_keys_within_a_point),
        cmocka_unit_test(a_sampled_stream_is_a_stream),
        cmocka_unit_test(too_few_counters_show),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
