/* Many clients at once, in virtual time: updates that wait for one key, and writers that fill the
 * memory faster than the view protocol ticks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_cluster.h"

#define SESSIONS_MAX 200u

static const struct hermes_config hermes = {.mlt_us = 10000, .grace_us = 2000000};

struct crowd {
    uint32_t sessions_n;
    uint32_t sessions[SESSIONS_MAX];
    uint32_t each;  /* requests a session, all at once */
    uint32_t given; /* so far */
    bool flaky;     /* what node 0 sends to node 1 is lost in every other step */
    bool fill;      /* SET of new keys with large values; else ADD 1 to one key */
    uint64_t step_us;
    uint32_t a_poll; /* requests that a poll gets at most */
    uint32_t left_of_poll;
    uint32_t done, busy, full, unknown, other;
    char keys[256][24]; /* good until the poll is over */
    uint8_t value[16384];
};

static bool crowd_request(void *context, uint32_t node, uint32_t worker,
                          struct request *request_out)
{
    struct crowd *crowd = context;
    (void)worker;
    if (node != 0 || crowd->given == crowd->sessions_n * crowd->each || crowd->left_of_poll == 0) {
        return false;
    }
    struct op op = {.kind = OP_ADD, .number = 1};
    char *key = crowd->keys[crowd->given % 256];
    snprintf(key, sizeof crowd->keys[0], "hot");
    if (crowd->fill) {
        snprintf(key, sizeof crowd->keys[0], "key-%u", crowd->given);
        op = (struct op){.kind = OP_SET, .value = bytes_of(crowd->value, sizeof crowd->value)};
    }
    op.key = bytes_of(key, (uint32_t)strlen(key));
    uint32_t session = crowd->sessions[crowd->given % crowd->sessions_n];
    *request_out = (struct request){.session = session, .tag = crowd->given++, .op = op};
    crowd->left_of_poll--;
    return true;
}

static void crowd_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct crowd *crowd = context;
    (void)node;
    (void)worker;
    if (reply->answer.kind != ANSWER_ERROR) {
        crowd->done++;
    } else if (reply->answer.number == HK_ERR_BUSY) {
        crowd->busy++;
    } else if (reply->answer.number == HK_ERR_NOMEM) {
        crowd->full++;
    } else if (reply->answer.number == HK_ERR_UNKNOWN) {
        crowd->unknown++;
    } else {
        crowd->other++;
    }
}

static struct cluster *gather(struct crowd *crowd, uint64_t memory_max, uint32_t lease_us)
{
    struct cluster_config config = {
        .nodes = 3,
        .workers = {1, 1, 1},
        .hermes = hermes,
        .lease_us = lease_us,
        .memory_max_last = memory_max,
        .sessions_max = crowd->sessions_n,
        .client = {.context = crowd, .request = crowd_request, .reply = crowd_reply},
        .seed = 7};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 20000000);
    for (uint32_t i = 0; i < crowd->sessions_n; i++) {
        assert_int_equal(
            worker_session_open(node_worker(cluster_node(c, 0), 0), &crowd->sessions[i]), HK_OK);
    }
    return c;
}

static void run(struct cluster *c, struct crowd *crowd, uint64_t bound_us)
{
    uint64_t until = cluster_now(c) + bound_us;
    uint32_t answers = 0;
    uint32_t steps = 0;
    while (answers < crowd->sessions_n * crowd->each) {
        assert_true(cluster_now(c) < until);
        crowd->left_of_poll = crowd->a_poll;
        cluster_cut(c, 0, 1, crowd->flaky && steps++ % 2 != 0);
        cluster_step(c, crowd->step_us);
        answers = crowd->done + crowd->busy + crowd->full + crowd->unknown + crowd->other;
    }
}

static int64_t counter(struct cluster *c)
{
    struct store_value v;
    uint8_t buffer[STORE_INLINE_MAX];
    struct store *store = node_store(cluster_node(c, 0), 0);
    struct bytes key = bytes_of("hot", 3);
    struct store_thread *thread = worker_store_thread(node_worker(cluster_node(c, 0), 0), 0);
    store_online(thread);
    int err = store_read(store, thread, key, store_hash(store, key), buffer, sizeof buffer, &v);
    assert_int_equal(err, HK_OK);
    assert_true(v.found);
    char text[24] = "";
    memcpy(text, v.value.at, v.value.n);
    long long number = 0;
    assert_int_equal(sscanf(text, "%lld", &number), 1);
    return number;
}

/* Each completed update wakes one that waits, and not all of them. */
static void one_waiting_update_is_woken(void **state)
{
    (void)state;
    struct crowd crowd = {.sessions_n = 200, .each = 1, .step_us = 1000, .a_poll = 16};
    struct cluster *c = gather(&crowd, 0, 0);
    run(c, &crowd, 20000000);
    struct node_stats stats = {0};
    node_stats(cluster_node(c, 0), &stats);
    assert_int_equal(crowd.done, 200);
    assert_true(stats.parked < 3 * 200);
    assert_int_equal(counter(c), 200);
    cluster_destroy(c);
}

/* More updates of one key than its round trips allow in the time that an answer may take: those
 * that never ran are refused, and none of them ends unknown. */
static void waiting_too_long_changes_nothing(void **state)
{
    (void)state;
    static struct crowd crowd = {
        .sessions_n = 200, .each = 2, .flaky = true, .step_us = 40000, .a_poll = 16};
    struct cluster *c = gather(&crowd, 0, 2000000);
    run(c, &crowd, 60000000);
    assert_int_equal(crowd.unknown, 0);
    assert_int_equal(crowd.other, 0);
    assert_true(crowd.busy > 0);
    assert_int_equal(counter(c), crowd.done);
    cluster_destroy(c);
}

static void epoch_is_first(struct cluster *c)
{
    for (uint32_t i = 0; i < 3; i++) {
        struct node_status status;
        node_status(cluster_node(c, i), cluster_now(c), &status);
        assert_int_equal(status.view.epoch, 1);
    }
}

/* A writer that could fill the headroom many times between two ticks is refused in time, so that no
 * follower ever lacks the memory for what was acknowledged. */
static void full_memory_is_noticed_at_once(void **state)
{
    (void)state;
    static struct crowd crowd = {
        .sessions_n = 16, .each = 200, .fill = true, .step_us = 1000, .a_poll = 16};
    struct cluster *c = gather(&crowd, 8u << 20, 3000000);
    run(c, &crowd, 60000000);
    assert_true(crowd.full > 0);
    assert_true(crowd.done > 100);
    assert_int_equal(crowd.unknown, 0);
    assert_int_equal(crowd.other, 0);
    for (uint32_t i = 0; i < 3; i++) {
        struct node_stats stats = {0};
        node_stats(cluster_node(c, i), &stats);
        assert_int_equal(stats.node_drops[NODE_DROP_MEMORY], 0);
    }
    epoch_is_first(c);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_waiting_update_is_woken),
        cmocka_unit_test(waiting_too_long_changes_nothing),
        cmocka_unit_test(full_memory_is_noticed_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
