/* The cost model's cluster: it serves, it obeys its limits, and it depends on nothing but its
 * seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/galene/messages.h"
#include "node/engines.h"
#include "sim/cost_cluster.h"

static union engines_config config;

static struct cost_cluster *cluster_with(const char *engine, uint32_t nodes, uint32_t workers,
                                         uint64_t keys, uint32_t frame_messages_max)
{
    struct cost_cluster *c;
    const struct engine_ops *ops = engines_find(engine);
    engines_configure(ops, &(struct engines_options){.mlt_us = 10000, .grace_us = 10000000},
                      &config);
    struct cost_setup setup = {.machine = &cost_infiniband,
                               .engine = ops,
                               .engine_config = &config,
                               .nodes = nodes,
                               .workers = workers,
                               .keys = keys,
                               .value_bytes = 32,
                               .frame_messages_max = frame_messages_max,
                               .seed = 7};
    assert_int_equal(cost_cluster_create(&setup, &c), HK_OK);
    return c;
}

static struct cost_cluster *cluster_of(const char *engine, uint32_t nodes, uint32_t workers,
                                       uint64_t keys)
{
    return cluster_with(engine, nodes, workers, keys, 0);
}

static struct cost_cluster *cluster_make(uint32_t nodes, uint32_t workers, uint64_t keys)
{
    return cluster_of("hermes", nodes, workers, keys);
}

static struct cost_result run(struct cost_cluster *c, uint32_t writes_ppm, double exponent)
{
    struct cost_load load = {.writes_ppm = writes_ppm,
                             .exponent = exponent,
                             .warm_ns = 100000,
                             .run_ns = 1000000,
                             .seed = 11};
    struct cost_result r;
    cost_cluster_run(c, &load, &r);
    assert_int_equal(r.failed, 0);
    return r;
}

static void test_reads_alone_meet_the_calibration(void **state)
{
    (void)state;
    struct cost_cluster *c = cluster_make(3, 4, 2000);
    struct cost_result r = run(c, 0, 0);
    double expected = 3 * 4 * cost_infiniband.reads_uniform / cost_infiniband.threads_per_core;
    assert_true(r.ops_per_s > 0.97 * expected && r.ops_per_s < 1.03 * expected);
    assert_int_equal(r.messages, 0);
    assert_true(r.cpu_busy > 0.99);
    r = run(c, 0, 0.99);
    expected = 3 * 4 * cost_infiniband.reads_skewed / cost_infiniband.threads_per_core;
    assert_true(r.ops_per_s > 0.97 * expected && r.ops_per_s < 1.03 * expected);
    cost_cluster_destroy(c);
}

static void test_writes_cost_what_they_do(void **state)
{
    (void)state;
    /* So many keys that updates hardly ever meet. */
    struct cost_cluster *c = cluster_make(3, 4, 100000);
    struct cost_result reads = run(c, 0, 0);
    struct cost_result some = run(c, 50000, 0);
    struct cost_result all = run(c, 1000000, 0);
    assert_true(reads.ops_per_s > some.ops_per_s && some.ops_per_s > 2 * all.ops_per_s);
    assert_true(all.reads < 20); /* that the run before has left waiting */
    /* INV, ACK, VAL for two followers; some operations are in flight at both ends of the run. */
    double messages = (double)all.messages / (double)all.writes;
    assert_true(messages > 5.5 && messages < 6.5);
    /* A write takes at least a round trip. */
    assert_true(all.write.min >= 2 * cost_infiniband.wire.latency_ns);
    cost_cluster_destroy(c);
}

/* Of three nodes an update of CRAQ costs two WRITEs, two ACKs, and a FORWARD unless the head is its
 * origin. What there is beyond that are the questions to the tail and its answers: few where keys
 * are uniform, many where some are always dirty. */
static void test_questions_to_the_tail_are_messages(void **state)
{
    (void)state;
    struct cost_cluster *c = cluster_of("craq", 3, 2, 100000);
    struct cost_result r = run(c, 200000, 0);
    double apart = (double)r.messages / (double)r.writes;
    assert_true(apart > 4.4 && apart < 5.0);
    cost_cluster_destroy(c);
    c = cluster_of("craq", 3, 2, 20);
    r = run(c, 200000, 0);
    double crowded = (double)r.messages / (double)r.writes;
    assert_true(crowded > apart + 1);
    /* A read that asks waits for a way there and back. */
    assert_true(histogram_percentile(&r.read, 990000) > 2 * cost_infiniband.wire.latency_ns);
    cost_cluster_destroy(c);
}

static void test_messages_in_frames_of_their_own(void **state)
{
    (void)state;
    double per_frame[2];
    for (uint32_t most = 0; most <= 1; most++) {
        struct cost_cluster *c = cluster_with("hermes", 3, 4, 100000, most);
        struct cost_result r = run(c, 1000000, 0);
        per_frame[most] = (double)r.messages / (double)r.frames;
        cost_cluster_destroy(c);
    }
    assert_true(per_frame[0] > 3);
    assert_true(per_frame[1] > 0.99 && per_frame[1] <= 1); /* heartbeats are no messages */
}

static struct cost_cluster *hot_make(const struct cost_machine *machine, struct hot_config hot,
                                     uint32_t frame_messages_max)
{
    struct cost_cluster *c;
    const struct engine_ops *ops = engines_find("galene");
    engines_configure(ops, &(struct engines_options){.mlt_us = 10000, .grace_us = 10000000},
                      &config);
    struct cost_setup setup = {.machine = machine,
                               .engine = ops,
                               .engine_config = &config,
                               .nodes = 3,
                               .workers = 4,
                               .keys = 20000,
                               .value_bytes = 32,
                               .hot = hot,
                               .frame_messages_max = frame_messages_max,
                               .seed = 7};
    assert_int_equal(cost_cluster_create(&setup, &c), HK_OK);
    return c;
}

static struct cost_cluster *homed_make(const struct cost_machine *machine, bool exclusive,
                                       uint32_t frame_messages_max)
{
    return hot_make(machine, (struct hot_config){.off = true, .exclusive = exclusive},
                    frame_messages_max);
}

/* Keys that have homes: two of three requests leave their node, and come back with an answer. */
static void test_keys_with_homes(void **state)
{
    (void)state;
    struct cost_cluster *c = homed_make(&cost_infiniband, false, 1);
    struct cost_result r = run(c, 100000, 0);
    double all = (double)(r.reads + r.writes);
    double misses = (double)r.node.misses / all;
    assert_true(misses > 0.64 && misses < 0.69);
    double messages = (double)r.messages / (double)r.node.misses;
    assert_true(messages > 1.95 && messages < 2.05);
    double at_home = (double)(r.node.at_home + r.node.misses) / all;
    assert_true(at_home > 0.98 && at_home < 1.02);
    assert_int_equal(r.node.hits, 0);
    cost_cluster_destroy(c);
}

/* Where one worker alone touches a key, 11 of 12 requests go to another worker, and the one with
 * the most popular key is what limits all. */
static void test_one_worker_a_key(void **state)
{
    (void)state;
    struct cost_cluster *c = homed_make(&cost_infiniband, true, 1);
    struct cost_result r = run(c, 0, 0);
    double elsewhere = (double)r.node.misses / (double)r.reads;
    assert_true(elsewhere > 0.89 && elsewhere < 0.94);
    struct cost_result skewed = run(c, 0, 1.5);
    cost_cluster_destroy(c);
    c = homed_make(&cost_infiniband, false, 1);
    struct cost_result shared = run(c, 0, 1.5);
    assert_true(skewed.cpu_busy_most > 0.99 && skewed.ops_per_s < 0.7 * shared.ops_per_s);
    cost_cluster_destroy(c);
}

/* Whatever is cached the nodes have found themselves. A write of a cached key is two INVs, ACKs and
 * UPDs; misses are two messages as ever. */
static void test_the_hottest_keys_are_cached(void **state)
{
    (void)state;
    struct hot_config hot = {.cache_keys = 64, .epoch_us = 2000, .sample = 1};
    struct cost_cluster *c = hot_make(&cost_infiniband, hot, 1);
    struct cost_result r;
    for (uint32_t i = 0; i < 16; i++) {
        r = run(c, 0, 0.99);
    }
    double hits = (double)r.node.hits / (double)r.reads;
    double best = zipf_hit_rate(64, 20000, 0.99);
    assert_true(hits > best - 0.04 && hits < best + 0.01);
    struct cost_result writes = run(c, 50000, 0.99);
    uint64_t invs = writes.node.homed_messages[GALENE_INV];
    double of_hits =
        (double)writes.writes * (double)writes.node.hits / (double)(writes.reads + writes.writes);
    assert_true((double)invs > 1.6 * of_hits && (double)invs < 2.4 * of_hits);
    double acks = (double)writes.node.homed_messages[GALENE_ACK] / (double)invs;
    double upds = (double)writes.node.homed_messages[GALENE_UPD] / (double)invs;
    assert_true(acks > 0.8 && acks < 1.2 && upds > 0.7 && upds < 1.2);
    assert_true(writes.ops_per_s < r.ops_per_s);
    cost_cluster_destroy(c);
}

/* Clients that begin several requests at once fill packets. */
static void test_batches_fill_packets(void **state)
{
    (void)state;
    double filled[2];
    struct cost_machine machine = cost_share(&cost_infiniband, 4);
    for (uint32_t i = 0; i < 2; i++) {
        struct cost_cluster *c = homed_make(&machine, false, 0);
        struct cost_load load = {
            .batch = i == 0 ? 0 : 24, .warm_ns = 100000, .run_ns = 1000000, .seed = 11};
        struct cost_result r;
        cost_cluster_run(c, &load, &r);
        filled[i] = (double)r.messages / (double)r.packets;
        assert_int_equal(r.failed, 0);
        cost_cluster_destroy(c);
    }
    assert_true(filled[1] > 5 && filled[1] > 1.5 * filled[0]);
}

static void test_same_seed_same_result(void **state)
{
    (void)state;
    struct cost_result results[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct cost_cluster *c = cluster_make(3, 3, 1000);
        (void)run(c, 10000, 0);
        results[i] = run(c, 200000, 0.99);
        cost_cluster_destroy(c);
    }
    assert_memory_equal(&results[0], &results[1], sizeof results[0]);
    assert_true(results[0].writes > 0 && results[0].reads > 0);
}

static void test_crash_stops_writes_for_a_lease(void **state)
{
    (void)state;
    struct cost_cluster *c = cluster_make(3, 2, 500);
    struct cost_load load = {
        .writes_ppm = 500000, .window = 4, .run_ns = 1000000000, .slice_ns = 10000000, .seed = 3};
    /* Few operations: this is about the view, not about speed. */
    struct cost_result before = run(c, 500000, 0);
    assert_true(before.writes > 0);
    static struct cost_result r;
    cost_cluster_crash(c, 2);
    load.run_ns = 20000000;
    cost_cluster_run(c, &load, &r);
    uint64_t at_once = r.writes;
    load.run_ns = 600000000;
    load.warm_ns = 0;
    load.slice_ns = 0;
    load.window = 1;
    cost_cluster_run(c, &load, &r);
    assert_true(at_once < 20000); /* no write ends any more ... */
    load.run_ns = 1000000;
    cost_cluster_run(c, &load, &r);
    assert_true(r.writes > 100); /* ... until the dead one has been dropped */
    assert_int_equal(r.failed, 0);
    cost_cluster_destroy(c);
}

static void test_bounds(void **state)
{
    (void)state;
    struct cost_cluster *c;
    struct cost_setup setup = {.machine = &cost_infiniband,
                               .engine = engines_find("hermes"),
                               .engine_config = &config,
                               .nodes = 3,
                               .workers = 65,
                               .keys = 10,
                               .value_bytes = 32};
    assert_int_equal(cost_cluster_create(&setup, &c), HK_ERR_INVALID);
    setup.workers = 1;
    setup.window_most = COST_WINDOW_MAX + 1;
    assert_int_equal(cost_cluster_create(&setup, &c), HK_ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads_alone_meet_the_calibration),
        cmocka_unit_test(test_writes_cost_what_they_do),
        cmocka_unit_test(test_questions_to_the_tail_are_messages),
        cmocka_unit_test(test_messages_in_frames_of_their_own),
        cmocka_unit_test(test_keys_with_homes),
        cmocka_unit_test(test_one_worker_a_key),
        cmocka_unit_test(test_the_hottest_keys_are_cached),
        cmocka_unit_test(test_batches_fill_packets),
        cmocka_unit_test(test_same_seed_same_result),
        cmocka_unit_test(test_crash_stops_writes_for_a_lease),
        cmocka_unit_test(test_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
