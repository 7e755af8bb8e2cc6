/* Real nodes whose engine asks for order: Hermes with message-loss timeouts so long that it sends
 * nothing again by itself. What completes, completes because lanes brought it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_cluster.h"

static const struct hermes_config patient = {.mlt_us = 3600000000u, .grace_us = 7200000000u};

static struct engine_ops ordered_ops(void)
{
    struct engine_ops ops = hermes_ops;
    ops.port_needs = PORT_ORDERED;
    return ops;
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct cluster_config config_of(const struct engine_ops *ops)
{
    return (struct cluster_config){
        .nodes = 3, .workers = {1, 2, 4}, .ops = ops, .hermes = patient, .seed = 3};
}

static struct node_stats stats_of(struct cluster *c, uint32_t node)
{
    struct node_stats stats;
    node_stats(cluster_node(c, node), &stats);
    return stats;
}

static void add_up(struct cluster *c, uint32_t from, uint32_t to)
{
    for (uint32_t i = from; i < to; i++) {
        struct op op = {.kind = OP_ADD, .key = text("n"), .number = 1};
        struct cluster_answer a = cluster_call(c, i % 3, &op);
        assert_int_equal(a.kind, ANSWER_NUMBER);
        assert_int_equal(a.number, i + 1);
    }
}

static uint64_t epoch_of(struct cluster *c, uint32_t node)
{
    struct node_status status;
    node_status(cluster_node(c, node), cluster_now(c), &status);
    return status.view.epoch;
}

static void writes_cross_a_bad_network(void **state)
{
    (void)state;
    struct engine_ops ops = ordered_ops();
    struct cluster_config config = config_of(&ops);
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    uint64_t epoch = epoch_of(c, 0);
    cluster_disturb(c, (struct cluster_faults){.lost = 100, .doubled = 200, .hasty = 300});
    add_up(c, 0, 500);
    assert_int_equal(epoch_of(c, 0), epoch);
    struct node_stats stats = stats_of(c, 0);
    assert_true(stats.lane_again > 0 && stats.lane_duplicates > 0 && stats.lane_early > 0);
    assert_int_equal(stats.node_drops[NODE_DROP_LANE], 0);
    cluster_destroy(c);
}

static void lanes_end_with_an_incarnation(void **state)
{
    (void)state;
    struct engine_ops ops = ordered_ops();
    struct cluster_config config = config_of(&ops);
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    cluster_disturb(c, (struct cluster_faults){.lost = 50, .doubled = 50, .hasty = 100});
    for (uint32_t round = 0; round < 4; round++) {
        add_up(c, 60 * round, 60 * round + 30);
        uint32_t victim = round % 3;
        cluster_kill(c, victim);
        uint32_t node = (victim + 1) % 3;
        for (uint32_t i = 60 * round + 30; i < 60 * round + 60; i++) {
            struct op op = {.kind = OP_ADD, .key = text("n"), .number = 1};
            assert_int_equal(cluster_call(c, node, &op).number, i + 1);
        }
        cluster_restart(c, victim);
        cluster_until(c, cluster_serving, NULL, 10000000);
    }
    cluster_destroy(c);
}

static void large_values_travel_in_lanes(void **state)
{
    (void)state;
    struct engine_ops ops = ordered_ops();
    struct cluster_config config = config_of(&ops);
    config.gives = true;
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    static char big[900000];
    memset(big, 'b', sizeof big);
    cluster_disturb(c, (struct cluster_faults){.lost = 200, .doubled = 100, .hasty = 100});
    for (uint32_t i = 0; i < 6; i++) {
        struct op op = {.kind = OP_SET, .key = text("big"), .value = bytes_of(big, sizeof big - i)};
        assert_int_equal(cluster_call(c, i % 3, &op).kind, ANSWER_OK);
        struct op length = {.kind = OP_STRLEN, .key = text("big")};
        assert_int_equal(cluster_call(c, (i + 1) % 3, &length).number, sizeof big - i);
    }
    assert_true(cluster_given(c) > 0);
    cluster_destroy(c);
}

/* ---- A crowd that writes without waiting for each other ---- */

#define CROWD 24u
#define CROWD_VALUE 300000u

struct crowd {
    struct cluster *cluster;
    uint32_t worker; /* of node 0 */
    uint32_t sessions[CROWD];
    uint32_t asked, answered;
    uint32_t value_bytes;
    char keys[CROWD][8];
    char *value;
};

static bool crowd_request(void *context, uint32_t node, uint32_t worker,
                          struct request *request_out)
{
    struct crowd *crowd = context;
    if (node != 0 || worker != crowd->worker || crowd->asked == CROWD || crowd->value == NULL) {
        return false;
    }
    struct worker *w = node_worker(cluster_node(crowd->cluster, 0), worker);
    uint32_t i = crowd->asked++;
    assert_int_equal(worker_session_open(w, &crowd->sessions[i]), HK_OK);
    snprintf(crowd->keys[i], sizeof crowd->keys[i], "k%u", i);
    *request_out = (struct request){
        .session = crowd->sessions[i],
        .op = {.kind = OP_SET,
               .key = text(crowd->keys[i]),
               .value = bytes_of(crowd->value, crowd->value_bytes)},
    };
    return true;
}

static void crowd_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    (void)node;
    (void)worker;
    assert_int_equal(reply->answer.kind, ANSWER_OK);
    ((struct crowd *)context)->answered++;
}

static bool crowd_done(struct cluster *c, void *context)
{
    (void)c;
    return ((struct crowd *)context)->answered == CROWD;
}

static char *crowd_value(uint32_t n)
{
    char *value = malloc(n);
    assert_non_null(value);
    memset(value, 'v', n);
    return value;
}

/* A connection breaks: what was in flight is lost, and comes again when it is back. */
static void a_break_loses_nothing(void **state)
{
    (void)state;
    struct engine_ops ops = ordered_ops();
    struct crowd crowd = {.value_bytes = 2000};
    struct cluster_config config = config_of(&ops);
    config.sessions_max = 64;
    config.client =
        (struct cluster_client){.context = &crowd, .request = crowd_request, .reply = crowd_reply};
    struct cluster *c = crowd.cluster = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    uint64_t epoch = epoch_of(c, 0);
    cluster_cut(c, 0, 1, true);
    cluster_cut(c, 1, 0, true);
    crowd.value = crowd_value(2000);
    for (uint32_t i = 0; i < 30; i++) {
        cluster_step(c, 1000);
    }
    assert_int_equal(crowd.asked, CROWD);
    assert_int_equal(crowd.answered, 0);
    cluster_cut(c, 0, 1, false);
    cluster_cut(c, 1, 0, false);
    cluster_until(c, crowd_done, &crowd, 60000);
    assert_int_equal(epoch_of(c, 0), epoch);
    free(crowd.value);
    cluster_destroy(c);
}

static void new_updates_wait_while_much_is_unacknowledged(void **state)
{
    (void)state;
    struct engine_ops ops = ordered_ops();
    struct crowd crowd = {.value_bytes = CROWD_VALUE};
    struct cluster_config config = config_of(&ops);
    config.sessions_max = 64;
    config.client =
        (struct cluster_client){.context = &crowd, .request = crowd_request, .reply = crowd_reply};
    struct cluster *c = crowd.cluster = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    cluster_stall(c, 2, 0, true);
    crowd.value = crowd_value(CROWD_VALUE);
    for (uint32_t i = 0; i < 40; i++) {
        cluster_step(c, 1000);
    }
    assert_int_equal(crowd.asked, CROWD);
    assert_int_equal(crowd.answered, 0);
    uint64_t begun = stats_of(c, 0).updates;
    assert_true(begun >= 10 && begun < 20);
    cluster_stall(c, 2, 0, false);
    cluster_until(c, crowd_done, &crowd, 1000000);
    free(crowd.value);
    cluster_destroy(c);
}

/* Where the port keeps the order nobody sends again, so what comes before its view is kept however
 * much it is. */
static void an_ordered_port_needs_no_lanes(void **state)
{
    (void)state;
    struct engine_ops ops = ordered_ops();
    struct crowd crowd = {.value_bytes = 20000, .worker = 1};
    struct cluster_config config = config_of(&ops);
    config.nodes = 4;
    memcpy(config.workers, (uint32_t[]){2, 2, 2, 2}, 4 * sizeof(uint32_t));
    config.ordered = true;
    config.sessions_max = 64;
    config.client =
        (struct cluster_client){.context = &crowd, .request = crowd_request, .reply = crowd_reply};
    struct cluster *c = crowd.cluster = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    uint64_t epoch = epoch_of(c, 0);
    cluster_kill(c, 3);
    for (uint32_t i = 0; i < 190; i++) {
        cluster_step(c, 1000);
    }
    assert_int_equal(epoch_of(c, 0), epoch);
    cluster_stall(c, 2, 1, true);
    for (uint32_t i = 0; i < 200 && epoch_of(c, 0) == epoch; i++) {
        cluster_step(c, 1000);
    }
    assert_true(epoch_of(c, 0) > epoch);
    crowd.value = crowd_value(20000);
    for (uint32_t i = 0; i < 10; i++) {
        cluster_step(c, 1000);
    }
    assert_int_equal(crowd.asked, CROWD);
    assert_int_equal(crowd.answered, 0);
    cluster_stall(c, 2, 1, false);
    cluster_until(c, crowd_done, &crowd, 20000);
    struct node_stats stats = stats_of(c, 2);
    assert_int_equal(stats.node_drops[NODE_DROP_EARLY], 0);
    assert_int_equal(stats.lane_early + stats_of(c, 0).lane_again, 0);
    free(crowd.value);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(writes_cross_a_bad_network),
        cmocka_unit_test(a_break_loses_nothing),
        cmocka_unit_test(lanes_end_with_an_incarnation),
        cmocka_unit_test(large_values_travel_in_lanes),
        cmocka_unit_test(new_updates_wait_while_much_is_unacknowledged),
        cmocka_unit_test(an_ordered_port_needs_no_lanes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
