/* Slots that move from node to node and back while clients of several workers, a thread each, write
 * their keys. Meant for the thread sanitizer: worker 0 changes the map and walks the store, the
 * others decide by the map what to make of a key that is not there. Each client counts in keys of
 * its own, so that a lost, doubled or forgotten update shows at once. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"
#include "base/slot.h"
#include "engine/galene/galene.h"
#include "engine/lotus/lotus.h"
#include "support/node_cluster.h"

#define NODES 3u
#define WORKERS 3u
#define KEYS 200u  /* of each client */
#define WINDOW 12u /* operations of a client under way, each on another key */

static const struct galene_config galene = {.retry_us = 2000, .rescue_us = 20000};
static const struct lotus_config lotus = {.lock.policy = LOCK_WOUND_WAIT, .tries_max = 512};

struct key {
    char name[24];
    int64_t value; /* 0: absent */
    uint8_t busy;  /* with an operation of this kind + 1 */
};

/* A session on one worker. Touched by that worker's thread only. */
struct client {
    struct random random;
    uint32_t session;
    uint32_t under_way;
    bool open;
    struct key keys[KEYS];
};

static struct {
    struct cluster *cluster;
    struct client clients[NODES][WORKERS];
    _Atomic uint64_t answers;
    _Atomic uint64_t wrong;
    pthread_mutex_t lock;
    pthread_cond_t some; /* answers have come */
} load = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};

static bool client_request(void *context, uint32_t node, uint32_t worker,
                           struct request *request_out)
{
    (void)context;
    struct client *c = &load.clients[node][worker];
    struct worker *w = node_worker(cluster_node(load.cluster, node), worker);
    if (c->under_way == WINDOW) {
        return false;
    }
    if (!c->open) {
        if (worker_session_open(w, &c->session) != HK_OK) {
            return false;
        }
        c->open = true;
    }
    struct key *key = &c->keys[random_below(&c->random, KEYS)];
    if (key->busy != 0 || !worker_session_ready(w, c->session)) {
        return false;
    }
    static const uint8_t kinds[] = {OP_ADD, OP_ADD, OP_GET, OP_DELETE};
    uint8_t kind = kinds[random_below(&c->random, sizeof kinds)];
    key->busy = (uint8_t)(kind + 1);
    c->under_way++;
    *request_out = (struct request){.session = c->session,
                                    .tag = (uint64_t)(key - c->keys),
                                    .op = {.kind = kind,
                                           .key = bytes_of(key->name, (uint32_t)strlen(key->name)),
                                           .number = kind == OP_ADD}};
    return true;
}

static bool right(struct key *key, uint8_t kind, const struct answer *a)
{
    char text[24];
    if (kind == OP_ADD) {
        return a->kind == ANSWER_NUMBER && a->number == ++key->value;
    }
    if (kind == OP_DELETE) {
        bool was = key->value != 0;
        key->value = 0;
        return a->kind == ANSWER_NUMBER && a->number == was;
    }
    int n = snprintf(text, sizeof text, "%lld", (long long)key->value);
    return key->value == 0 ? a->kind == ANSWER_NIL
                           : a->kind == ANSWER_VALUE && a->value.n == (uint32_t)n &&
                                 memcmp(a->value.at, text, (size_t)n) == 0;
}

static void client_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    (void)context;
    struct client *c = &load.clients[node][worker];
    struct key *key = &c->keys[reply->tag];
    uint8_t kind = (uint8_t)(key->busy - 1);
    key->busy = 0;
    c->under_way--;
    if (!right(key, kind, &reply->answer)) {
        print_error("node %u worker %u key %s: operation %u answered kind %u number %lld\n", node,
                    worker, key->name, kind, reply->answer.kind, (long long)reply->answer.number);
        atomic_fetch_add(&load.wrong, 1);
    }
    if (atomic_fetch_add(&load.answers, 1) % 256 == 0 || atomic_load(&load.wrong) > 0) {
        pthread_mutex_lock(&load.lock);
        pthread_cond_signal(&load.some);
        pthread_mutex_unlock(&load.lock);
    }
}

static void adjust(struct node_config *config, uint32_t node)
{
    (void)node;
    config->calls_max = 1024;
}

static bool reached(uint64_t answers, bool over)
{
    return atomic_load(&load.wrong) > 0 ||
           (atomic_load(&load.answers) >= answers &&
            (!over || node_handed_over(cluster_node(load.cluster, 1))));
}

/* Until so many more answers have come, and, if wanted, node 1 has given everything away. */
static void wait_for(uint64_t answers, bool over)
{
    struct timespec until;
    int err = 0;
    answers += atomic_load(&load.answers);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 200;
    pthread_mutex_lock(&load.lock);
    while (!reached(answers, over) && err == 0) {
        err = pthread_cond_timedwait(&load.some, &load.lock, &until);
    }
    pthread_mutex_unlock(&load.lock);
    assert_int_equal(err, 0); /* no progress */
    assert_int_equal(atomic_load(&load.wrong), 0);
}

static void slots_move_under_threads(const struct engine_ops *ops, const void *engine)
{
    struct cluster_config config = {.nodes = NODES,
                                    .workers = {WORKERS, WORKERS, WORKERS},
                                    .ops = ops,
                                    .engine = engine,
                                    .lease_us =
                                        20000000, /* nobody is to be suspected on a busy machine */
                                    .client = {.request = client_request, .reply = client_reply},
                                    .adjust = adjust,
                                    .hot = {.off = true},
                                    .seed = 5};
    memset(load.clients, 0, sizeof load.clients);
    atomic_store(&load.answers, 0);
    for (uint32_t n = 0; n < NODES; n++) {
        for (uint32_t w = 0; w < WORKERS; w++) {
            struct client *c = &load.clients[n][w];
            random_init(&c->random, n * WORKERS + w + 1);
            for (uint32_t k = 0; k < KEYS; k++) {
                snprintf(c->keys[k].name, sizeof c->keys[k].name, "%u:%u:%u", n, w, k);
            }
        }
    }
    load.cluster = cluster_create(&config);
    cluster_threads(load.cluster);
    wait_for(10000, false);
    cluster_order(load.cluster, 1, worker_hand_over);
    wait_for(10000, true);
    wait_for(5000, false);
    cluster_join(load.cluster);
    struct node_stats stats;
    node_stats(cluster_node(load.cluster, 1), &stats);
    assert_true(stats.moves > 100);
    cluster_destroy(load.cluster);
}

/* Key by key. */
static void keys_move_under_threads(void **state)
{
    (void)state;
    slots_move_under_threads(&galene_ops, &galene);
}

/* Slot by slot, under locks. */
static void tables_move_under_threads(void **state)
{
    (void)state;
    slots_move_under_threads(&lotus_ops, &lotus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_move_under_threads),
        cmocka_unit_test(tables_move_under_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
