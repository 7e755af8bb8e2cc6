/* Everybody who writes one key in a closed loop gets his turn: sessions of a worker, and nodes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_cluster.h"

#define NODES 3u
#define SESSIONS 4u

struct crowd {
    uint32_t sessions[NODES][SESSIONS];
    bool busy[NODES][SESSIONS];
    uint32_t turn[NODES];
    uint64_t done[NODES][SESSIONS];
    bool over; /* what is still under way ends with an error */
};

/* The session that was answered last asks again first, as a benchmark's free list would have it. */
static bool ask(void *context, uint32_t node, uint32_t worker, struct request *request_out)
{
    struct crowd *crowd = context;
    (void)worker;
    for (uint32_t i = 0; i < SESSIONS; i++) {
        uint32_t s = (crowd->turn[node] + i) % SESSIONS;
        if (!crowd->busy[node][s]) {
            crowd->busy[node][s] = true;
            *request_out = (struct request){
                .session = crowd->sessions[node][s],
                .tag = s,
                .op = {.kind = OP_SET, .key = bytes_of("k", 1), .value = bytes_of("v", 1)},
            };
            return true;
        }
    }
    return false;
}

static void hear(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct crowd *crowd = context;
    (void)worker;
    assert_true(crowd->over || reply->answer.kind == ANSWER_OK);
    crowd->busy[node][reply->tag] = false;
    crowd->turn[node] = (uint32_t)reply->tag;
    crowd->done[node][reply->tag]++;
}

static void nobody_starves_at_a_popular_key(void **state)
{
    (void)state;
    static struct crowd crowd;
    struct cluster_config config = {
        .nodes = NODES,
        .workers = {1, 1, 1},
        .hermes = {.mlt_us = 10000, .grace_us = 2000000},
        .seed = 5,
        .client = {&crowd, ask, hear},
    };
    uint64_t all = 0;
    memset(&crowd, 0, sizeof crowd);
    memset(crowd.busy, 1, sizeof crowd.busy); /* nobody asks yet */
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    for (uint32_t n = 0; n < NODES; n++) {
        for (uint32_t s = 0; s < SESSIONS; s++) {
            assert_int_equal(
                worker_session_open(node_worker(cluster_node(c, n), 0), &crowd.sessions[n][s]),
                HK_OK);
        }
    }
    memset(crowd.busy, 0, sizeof crowd.busy);
    for (uint32_t i = 0; i < 20000; i++) {
        cluster_step(c, 5);
    }
    for (uint32_t n = 0; n < NODES; n++) {
        for (uint32_t s = 0; s < SESSIONS; s++) {
            all += crowd.done[n][s];
        }
    }
    assert_true(all > 1000);
    for (uint32_t n = 0; n < NODES; n++) {
        for (uint32_t s = 0; s < SESSIONS; s++) {
            assert_true(crowd.done[n][s] > all / (NODES * SESSIONS) / 10);
        }
    }
    crowd.over = true;
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_starves_at_a_popular_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
