/* Galene with a thread a worker: clients at every worker of three nodes add to the same keys, most
 * of which have their home elsewhere, in pipelines deeper than the credits. Nothing is lost, and
 * nothing is done twice. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "engine/galene/galene.h"
#include "support/node_cluster.h"

static const struct galene_config galene = {.retry_us = 2000, .rescue_us = 50000};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

#define KEYS 40u
#define EACH 3000u /* of a client */
#define DEPTH 16u  /* of a pipeline */
#define CLIENTS 2u /* a worker */
#define WORKERS 6u
#define LEASE_US 20000000u /* nobody is to be suspected on a busy machine */

struct crowd {
    uint32_t sessions[3][2][CLIENTS];
    uint32_t asked[3][2][CLIENTS];
    uint32_t open[3][2][CLIENTS];
    _Atomic uint32_t answered;
    pthread_mutex_t lock;
    pthread_cond_t all;
    _Atomic uint32_t failed;
    _Atomic uint64_t sums[KEYS];   /* of what was added, by the answers */
    _Atomic int64_t highest[KEYS]; /* sums that were answered */
    char keys[KEYS][8];
};

static bool crowd_request(void *context, uint32_t node, uint32_t worker,
                          struct request *request_out)
{
    struct crowd *crowd = context;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        uint32_t *asked = &crowd->asked[node][worker][i];
        if (*asked == EACH || crowd->open[node][worker][i] == DEPTH) {
            continue;
        }
        uint32_t which = (*asked * 7 + i) % KEYS;
        bool adds = *asked % 3 != 0;
        *request_out = (struct request){
            .session = crowd->sessions[node][worker][i],
            .tag = which | (uint64_t)i << 32 | (uint64_t)adds << 40,
            .op = {.kind = adds ? OP_ADD : OP_GET, .key = text(crowd->keys[which]), .number = 1}};
        (*asked)++;
        crowd->open[node][worker][i]++;
        return true;
    }
    return false;
}

static void crowd_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct crowd *crowd = context;
    uint32_t which = (uint32_t)reply->tag;
    uint32_t client = (uint32_t)(reply->tag >> 32) & 0xffu;
    bool adds = reply->tag >> 40 != 0;
    crowd->open[node][worker][client]--;
    if (reply->answer.kind == ANSWER_ERROR) {
        atomic_fetch_add(&crowd->failed, 1);
    } else if (adds) {
        assert_int_equal(reply->answer.kind, ANSWER_NUMBER);
        atomic_fetch_add(&crowd->sums[which], 1);
        int64_t seen = atomic_load(&crowd->highest[which]);
        while (seen < reply->answer.number &&
               !atomic_compare_exchange_weak(&crowd->highest[which], &seen, reply->answer.number)) {
        }
    }
    if (atomic_fetch_add(&crowd->answered, 1) + 1 == WORKERS * CLIENTS * EACH) {
        pthread_mutex_lock(&crowd->lock);
        pthread_cond_signal(&crowd->all);
        pthread_mutex_unlock(&crowd->lock);
    }
}

static void wait_for_all(struct crowd *crowd)
{
    struct timespec until;
    int err = 0;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 200;
    pthread_mutex_lock(&crowd->lock);
    while (atomic_load(&crowd->answered) < WORKERS * CLIENTS * EACH && err == 0) {
        err = pthread_cond_timedwait(&crowd->all, &crowd->lock, &until);
    }
    pthread_mutex_unlock(&crowd->lock);
    assert_int_equal(err, 0); /* no progress */
}

static void everybody_adds(bool exclusive, bool ordered)
{
    struct crowd *crowd = calloc(1, sizeof *crowd);
    assert_non_null(crowd);
    pthread_mutex_init(&crowd->lock, NULL);
    pthread_cond_init(&crowd->all, NULL);
    struct cluster_config config = {
        .nodes = 3,
        .workers = {2, 2, 2},
        .ops = &galene_ops,
        .engine = &galene,
        .ordered = ordered,
        .lease_us = LEASE_US,
        .hot = {.off = true, .exclusive = exclusive, .misses_max = 8},
        .client = {.context = crowd, .request = crowd_request, .reply = crowd_reply},
        .seed = 12,
    };
    for (uint32_t i = 0; i < KEYS; i++) {
        snprintf(crowd->keys[i], sizeof crowd->keys[i], "k%u", i);
    }
    struct cluster *c = cluster_create(&config);
    for (uint32_t n = 0; n < 3; n++) {
        for (uint32_t k = 0; k < 2; k++) {
            for (uint32_t i = 0; i < CLIENTS; i++) {
                crowd->asked[n][k][i] = EACH; /* not before all serve */
                int err = worker_session_open(node_worker(cluster_node(c, n), k),
                                              &crowd->sessions[n][k][i]);
                assert_int_equal(err, HK_OK);
            }
        }
    }
    cluster_until(c, cluster_serving, NULL, 10000000);
    memset(crowd->asked, 0, sizeof crowd->asked);
    cluster_threads(c);
    wait_for_all(crowd);
    cluster_join(c);
    assert_int_equal(atomic_load(&crowd->failed), 0);
    uint64_t all = 0;
    for (uint32_t i = 0; i < KEYS; i++) {
        assert_int_equal(atomic_load(&crowd->highest[i]), atomic_load(&crowd->sums[i]));
        all += atomic_load(&crowd->sums[i]);
    }
    assert_int_equal(all, WORKERS * CLIENTS * EACH * 2 / 3);
    cluster_destroy(c);
    pthread_mutex_destroy(&crowd->lock);
    pthread_cond_destroy(&crowd->all);
    free(crowd);
}

static void threads_add_at_the_homes(void **state)
{
    (void)state;
    everybody_adds(false, true);
}

static void threads_add_where_one_worker_touches_a_key(void **state)
{
    (void)state;
    everybody_adds(true, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_add_at_the_homes),
        cmocka_unit_test(threads_add_where_one_worker_touches_a_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
