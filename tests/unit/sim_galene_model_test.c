/* The analytical model by hand, and at its limits. */
#include "sim/galene_model.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "load/zipf.h"

static bool near(double a, double b, double relative)
{
    return fabs(a - b) <= relative * fabs(b);
}

/* 9 servers, 65 % hits, 1 % writes, B_RR 116, B_G 181, 21.5 Gb/s. */
static const struct galene_model paper = {
    .nodes = 9,
    .hit_rate = 0.65,
    .write_ratio = 0.01,
    .request_reply_bytes = 116,
    .write_bytes = 181,
    .bytes_per_s = 21.5e9 / 8,
};

static void test_equations_by_hand(void **state)
{
    (void)state;
    /* 0.35 x 8/9 x 116 */
    assert_true(near(galene_miss_traffic(&paper), 36.088889, 1e-7));
    /* 0.65 x 0.01 x 8 x 181 */
    assert_true(near(galene_write_traffic(&paper), 9.412, 1e-12));
    /* 9 x 2,687,500,000 / 45.500889 */
    assert_true(near(galene_throughput(&paper), 531.583e6, 1e-5));
    /* 8/9 x 116 */
    assert_true(near(galene_uniform_traffic(&paper), 103.111111, 1e-7));
    /* 9 x 2,687,500,000 / 103.111111 */
    assert_true(near(galene_uniform_throughput(&paper), 234.577e6, 1e-5));
}

static void test_sizes_by_hand(void **state)
{
    (void)state;
    struct galene_sizes s = {.header = 34, .key = 8, .value = 40, .timestamp = 5};
    assert_true(galene_request_reply_bytes(&s) == 34 + 8 + 34 + 40);
    assert_true(galene_write_bytes(&s) == (34 + 8 + 5) + (34 + 8 + 5) + (34 + 8 + 5 + 40));
}

static void test_without_hits(void **state)
{
    (void)state;
    struct galene_model m = paper;
    m.hit_rate = 0;
    for (m.write_ratio = 0; m.write_ratio <= 1; m.write_ratio += 0.25) {
        assert_true(galene_write_traffic(&m) == 0);
        assert_true(near(galene_throughput(&m), galene_uniform_throughput(&m), 1e-12));
    }
    assert_true(galene_writes_at(&m, 1e6) == INFINITY);
}

static void test_without_writes(void **state)
{
    (void)state;
    struct galene_model m = paper;
    m.write_ratio = 0;
    assert_true(galene_write_traffic(&m) == 0);
    /* Misses alone: 1 / (1 - h) times as fast as Uniform. */
    assert_true(near(galene_throughput(&m), galene_uniform_throughput(&m) / 0.35, 1e-12));
    m.hit_rate = 1;
    assert_true(galene_throughput(&m) == INFINITY);
}

static void test_one_server(void **state)
{
    (void)state;
    struct galene_model m = paper;
    m.nodes = 1;
    m.write_ratio = 1;
    assert_true(galene_miss_traffic(&m) == 0 && galene_write_traffic(&m) == 0);
    assert_true(galene_throughput(&m) == INFINITY);
    assert_true(galene_uniform_throughput(&m) == INFINITY);
    assert_true(galene_writes_at(&m, 1e6) == INFINITY);
}

static void test_break_even(void **state)
{
    (void)state;
    struct galene_model m = paper;
    assert_true(near(galene_break_even(&m), 116.0 / (9 * 181), 1e-12));
    for (m.hit_rate = 0.1; m.hit_rate < 1; m.hit_rate += 0.2) {
        for (m.nodes = 2; m.nodes <= 128; m.nodes *= 4) {
            m.write_ratio = galene_break_even(&m);
            assert_true(near(galene_throughput(&m), galene_uniform_throughput(&m), 1e-9));
            assert_true(
                near(galene_writes_at(&m, galene_uniform_throughput(&m)), m.write_ratio, 1e-9));
            m.write_ratio *= 1.01;
            assert_true(galene_throughput(&m) < galene_uniform_throughput(&m));
            m.write_ratio *= 0.98;
            assert_true(galene_throughput(&m) > galene_uniform_throughput(&m));
        }
    }
    /* Faster than reads alone: never. */
    m = paper;
    m.write_ratio = 0;
    assert_true(galene_writes_at(&m, 1.01 * galene_throughput(&m)) < 0);
}

/* With even shares, one request a packet and packets as the limit, the extension is the equations
 * again: 21.5 Gb/s of packets as they are on average. */
static void test_limits_agree_with_the_equations(void **state)
{
    (void)state;
    struct galene_network network = galene_paper_network();
    struct galene_model m = paper;
    struct galene_load load = {.nodes = 9, .hottest = 1.0 / 9, .coalesced = 1};
    bool by_packets = false;
    assert_true(near(galene_limited(&load, &galene_paper_sizes, &network, &by_packets),
                     galene_uniform_throughput(&m), 1e-9));
    assert_true(by_packets);
    load.hit_rate = m.hit_rate;
    m.write_ratio = 0;
    assert_true(near(galene_limited(&load, &galene_paper_sizes, &network, NULL),
                     galene_throughput(&m), 1e-9));
    /* Bytes of both directions together are the equations' traffic. */
    load.write_ratio = m.write_ratio = 0.05;
    struct galene_passes out = galene_out(&load, &galene_paper_sizes);
    struct galene_passes in = galene_in(&load, &galene_paper_sizes);
    double both = galene_miss_traffic(&m) + galene_write_traffic(&m);
    assert_true(near((galene_bytes(&out) + galene_bytes(&in)) * 9 / 2, both, 1e-9));
}

static void test_hottest_server_by_hand(void **state)
{
    (void)state;
    /* Two servers; the hot one has all keys: it sends a reply to half of all requests and asks
     * nothing; without a cache. */
    struct galene_load load = {.nodes = 2, .hottest = 1, .coalesced = 1};
    struct galene_sizes s = {.header = 10, .key = 2, .value = 30, .timestamp = 1};
    struct galene_passes out = galene_out(&load, &s);
    struct galene_passes in = galene_in(&load, &s);
    assert_true(out.packets == 0.5 && in.packets == 0.5);
    assert_true(galene_bytes(&out) == 0.5 * 40 && galene_bytes(&in) == 0.5 * 12);
    bool by_packets = true;
    struct galene_network network = {.bytes_per_s = 1000, .packets_per_s = 1000};
    assert_true(galene_limited(&load, &s, &network, &by_packets) == 1000 / 20.0);
    assert_false(by_packets);
    /* Writes send the value the other way. */
    load.write_ratio = 1;
    in = galene_in(&load, &s);
    assert_true(galene_bytes(&in) == 0.5 * 42);
    /* Ten a packet. */
    load.coalesced = 10;
    in = galene_in(&load, &s);
    assert_true(near(galene_bytes(&in), 0.5 * 33, 1e-12) && near(in.packets, 0.05, 1e-12));
    /* Hits write to everybody. */
    load.hit_rate = 1;
    out = galene_out(&load, &s);
    assert_true(out.packets == 1.5 && out.inv == 6.5 && out.ack == 6.5 && out.upd == 21.5);
}

static void test_shares(void **state)
{
    (void)state;
    double shares[128], same[128], other[128];
    galene_shares(1000000, 1000000, 0.99, 7, 128, shares);
    galene_shares(1000000, 1000000, 0.99, 7, 128, same);
    galene_shares(1000000, 1000000, 0.99, 8, 128, other);
    double sum = 0;
    bool differs = false;
    for (uint32_t i = 0; i < 128; i++) {
        sum += shares[i];
        assert_true(shares[i] == same[i]);
        differs = differs || shares[i] != other[i];
    }
    assert_true(differs && near(sum, 1, 1e-9));
    /* The hottest server has the hottest key, 1 of H, and something of the rest. */
    double first = 1 / zipf_harmonic(1000000, 0.99);
    assert_true(galene_most(shares, 128) > first && galene_most(shares, 128) < first + 0.03);
    /* Placing fewer keys one by one changes little. */
    galene_shares(1000000, 100000, 0.99, 7, 128, same);
    assert_true(near(galene_most(same, 128), galene_most(shares, 128), 0.01));
    galene_shares(1000, 10, 0.99, 7, 1, same);
    assert_true(near(same[0], 1, 1e-12));
}

/* What thesis 3.1 says of 128 servers, with all 250 million keys and one million placed singly. */
static void test_hottest_of_128(void **state)
{
    (void)state;
    double shares[128], sum = 0;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        galene_shares(GALENE_PAPER_KEYS, 1000000, 0.99, seed, 128, shares);
        double most = galene_most(shares, 128) * 128;
        assert_true(most > 6 && most < 8.5);
        sum += most;
    }
    assert_true(sum / 5 > 6.5 && sum / 5 < 7.5);
}

static void test_paper_hit_rates(void **state)
{
    (void)state;
    assert_true(galene_paper_hit_rate(0.90) == 0.46);
    assert_true(galene_paper_hit_rate(0.99) == 0.65);
    assert_true(galene_paper_hit_rate(1.01) == 0.69);
    for (uint32_t i = 0; i < 3; i++) {
        static const double exponents[] = {0.90, 0.99, 1.01};
        uint64_t cached = galene_paper_cached(exponents[i]);
        double rate = zipf_hit_rate(cached, GALENE_PAPER_KEYS, exponents[i]);
        assert_true(near(rate, galene_paper_hit_rate(exponents[i]), 1e-5));
        assert_in_range(cached, 330000, 480000);
    }
    assert_true(near(galene_paper_hit_rate(0.8), zipf_hit_rate(250000, 250000000, 0.8), 1e-12));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equations_by_hand),
        cmocka_unit_test(test_sizes_by_hand),
        cmocka_unit_test(test_without_hits),
        cmocka_unit_test(test_without_writes),
        cmocka_unit_test(test_one_server),
        cmocka_unit_test(test_break_even),
        cmocka_unit_test(test_limits_agree_with_the_equations),
        cmocka_unit_test(test_hottest_server_by_hand),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_hottest_of_128),
        cmocka_unit_test(test_paper_hit_rates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
