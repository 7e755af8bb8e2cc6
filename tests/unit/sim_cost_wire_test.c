/* The arithmetic of the cost model's network. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sim/cost_machine.h"
#include "sim/cost_wire.h"

/* A byte takes 1 ns, a packet at least 50 ns in a card and 100 ns in a port. */
static struct cost_wire wire_make(void)
{
    return (struct cost_wire){.limits = {.link_bytes_per_s = 1e9,
                                         .card_packets_per_s = 20e6,
                                         .switch_packets_per_s = 10e6,
                                         .packet_bytes_max = 1000,
                                         .packet_header_bytes = 10,
                                         .inline_bytes = 100,
                                         .latency_ns = 500,
                                         .fetch_ns = 300,
                                         .switch_ns = 20}};
}

static void test_packets(void **state)
{
    (void)state;
    struct cost_wire w = wire_make();
    assert_int_equal(cost_wire_packets(&w.limits, 1), 1);
    assert_int_equal(cost_wire_packets(&w.limits, 1000), 1);
    assert_int_equal(cost_wire_packets(&w.limits, 1001), 2);
    assert_int_equal(cost_wire_packets(&w.limits, 60000), 60);
}

static void test_queue(void **state)
{
    (void)state;
    struct cost_queue q = {0, 0};
    /* Empty: it has passed when its last byte is there. */
    assert_int_equal(cost_queue_pass(&q, 1000, 100), 1000);
    /* Behind something: its own time after that. */
    assert_int_equal(cost_queue_pass(&q, 1000, 100), 1100);
    assert_int_equal(cost_queue_pass(&q, 1050, 100), 1200);
    /* The queue has run empty meanwhile. */
    assert_int_equal(cost_queue_pass(&q, 5000, 100), 5000);
    assert_int_equal(q.busy_ps, 400);
}

static void test_small_frame_alone(void **state)
{
    (void)state;
    struct cost_wire w = wire_make();
    /* 40 bytes and a header take 50 ns by bytes and by packets; the port is 100 ns apart from the
     * next, but lets the first pass at once. */
    uint64_t at = cost_wire_leave(&w, 0, 40, 1000000);
    assert_int_equal(at, 1000000 + 1000 * (50 + 500 + 20));
    assert_int_equal(cost_wire_arrive(&w, 1, 40, at), at);
    assert_int_equal(w.packets, 1);
    assert_int_equal(w.bytes, 50);
}

static void test_large_frame_is_fetched_and_cut_through(void **state)
{
    (void)state;
    struct cost_wire w = wire_make();
    /* 2500 bytes in three packets: 2530 ns, once, and the fetch. */
    uint64_t at = cost_wire_leave(&w, 0, 2500, 0);
    assert_int_equal(at, 1000 * (2530 + 500 + 300 + 20));
    assert_int_equal(cost_wire_arrive(&w, 1, 2500, at), at);
    assert_int_equal(w.bytes, 2530);
}

static void test_port_is_the_bottleneck_of_small_packets(void **state)
{
    (void)state;
    struct cost_wire w = wire_make();
    uint64_t first = cost_wire_leave(&w, 0, 40, 0);
    uint64_t second = cost_wire_leave(&w, 0, 40, 0);
    uint64_t third = cost_wire_leave(&w, 0, 40, 0);
    assert_int_equal(second - first, 100000);
    assert_int_equal(third - second, 100000);
}

static void test_incast_queues_at_the_target(void **state)
{
    (void)state;
    struct cost_wire w = wire_make();
    uint64_t a = cost_wire_leave(&w, 0, 990, 0);
    uint64_t b = cost_wire_leave(&w, 1, 990, 0);
    assert_int_equal(a, b); /* two senders do not hinder each other ... */
    assert_int_equal(cost_wire_arrive(&w, 2, 990, a), a);
    assert_int_equal(cost_wire_arrive(&w, 2, 990, b), a + 1000000); /* ... until they meet */
}

/* At full load and with nothing but reads, a modelled core is as fast as the paper's. */
static void test_scale_meets_read_only(void **state)
{
    (void)state;
    const struct cost_machine *m = &cost_infiniband;
    struct cost_cpu uniform = cost_scale(m, &cost_measured, false);
    struct cost_cpu skewed = cost_scale(m, &cost_measured, true);
    double per_core = 1e9 * m->threads_per_core;
    double at_uniform = per_core / (uniform.read + uniform.read_miss + uniform.poll / m->window);
    double at_skewed = per_core / (skewed.read + skewed.read_miss + skewed.poll / m->window);
    assert_true(at_uniform > 0.999 * m->reads_uniform && at_uniform < 1.001 * m->reads_uniform);
    assert_true(at_skewed > 0.999 * m->reads_skewed && at_skewed < 1.001 * m->reads_skewed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packets),
        cmocka_unit_test(test_queue),
        cmocka_unit_test(test_small_frame_alone),
        cmocka_unit_test(test_large_frame_is_fetched_and_cut_through),
        cmocka_unit_test(test_port_is_the_bottleneck_of_small_packets),
        cmocka_unit_test(test_incast_queues_at_the_target),
        cmocka_unit_test(test_scale_meets_read_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
