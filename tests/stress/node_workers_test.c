/* Nodes with several workers, a thread each: mailboxes, waiters, replacement of objects, growth of
 * the index, and a change of view in the middle. Meant for the thread sanitizer. Clients count what
 * they were told, so that a lost or doubled update shows as a wrong sum. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"
#include "engine/zab/zab.h"
#include "support/node_cluster.h"

#define COUNTERS 8u
#define NODES 3u
#define WORKERS 4u
#define WINDOW 8u     /* requests in flight of a session */
#define UPDATES 1500u /* of each worker in each half */

enum what { WHAT_ADD, WHAT_READ, WHAT_WRITE, WHAT_NEW };

struct pending {
    uint8_t what;
    uint8_t counter;
    bool used;
    int64_t floor; /* no read may answer less: what was acknowledged before it began */
};

/* One client: a session on one worker. Touched by that worker's thread only. */
struct client {
    struct stress *stress;
    struct random random;
    uint32_t session;
    bool open;
    uint32_t in_flight;
    uint32_t sent;
    uint64_t next_tag;
    int64_t told[COUNTERS]; /* the highest number that it was answered */
    struct pending pending[WINDOW];
    char keys[WINDOW][64]; /* of the requests in flight */
    uint8_t values[WINDOW][4096];
};

struct stress {
    struct cluster *cluster;
    struct client clients[NODES][WORKERS];
    bool sequential; /* a read need not show what others were told */
    _Atomic int64_t acknowledged[COUNTERS];
    _Atomic int64_t unknown[COUNTERS];
    _Atomic uint64_t answers;
    _Atomic uint64_t wanted;
    _Atomic uint64_t quota;
    _Atomic bool failed;
    _Atomic nodeset live[NODES]; /* of the view that the node's idle control worker saw last */
    pthread_mutex_t lock;
    pthread_cond_t reached;
};

static struct pending *slot_of(struct client *c, uint64_t tag)
{
    return &c->pending[tag % WINDOW];
}

static void signal_reached(struct stress *s)
{
    pthread_mutex_lock(&s->lock);
    pthread_cond_signal(&s->reached);
    pthread_mutex_unlock(&s->lock);
}

static void note_view(struct stress *s, uint32_t node)
{
    struct node_status status;
    node_status(cluster_node(s->cluster, node), clock_boot_us(), &status);
    if (atomic_exchange(&s->live[node], status.view.live) != status.view.live) {
        signal_reached(s);
    }
}

static bool next_request(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    struct stress *s = context;
    struct client *c = &s->clients[node][worker];
    if (c->sent >= atomic_load(&s->quota)) {
        if (worker == 0) {
            note_view(s, node);
        }
        return false;
    }
    if (c->in_flight == WINDOW) {
        return false;
    }
    if (!c->open) {
        int err =
            worker_session_open(node_worker(cluster_node(s->cluster, node), worker), &c->session);
        c->open = err == HK_OK;
        if (!c->open) {
            return false;
        }
    }
    uint64_t tag = c->next_tag;
    struct pending *p = slot_of(c, tag);
    if (p->used) {
        return false;
    }
    c->next_tag++;
    c->sent++;
    c->in_flight++;
    *p = (struct pending){.used = true, .what = (uint8_t)random_below(&c->random, 4)};
    p->counter = (uint8_t)random_below(&c->random, COUNTERS);
    *out = (struct request){.session = c->session, .tag = tag};
    p->floor = s->sequential ? c->told[p->counter] : atomic_load(&s->acknowledged[p->counter]);
    char *key = c->keys[tag % WINDOW];
    uint8_t *value = c->values[tag % WINDOW];
    int n = 0;
    switch ((enum what)p->what) {
    case WHAT_ADD:
        n = snprintf(key, sizeof c->keys[0], "counter%u", p->counter);
        out->op = (struct op){.kind = OP_ADD, .number = 1};
        break;
    case WHAT_READ:
        n = snprintf(key, sizeof c->keys[0], "counter%u", p->counter);
        out->op = (struct op){.kind = OP_GET};
        break;
    case WHAT_WRITE: {
        /* Lengths on both sides of what is kept inline: in place, swapped, out of line. */
        uint32_t length = 1 + (uint32_t)random_below(&c->random, sizeof c->values[0]);
        memset(value, 'a' + (int)(length % 26), length);
        n = snprintf(key, sizeof c->keys[0], "value%u", (unsigned)random_below(&c->random, 16));
        out->op = (struct op){.kind = OP_SET, .value = bytes_of(value, length)};
        break;
    }
    case WHAT_NEW:
        n = snprintf(key, sizeof c->keys[0], "new-%u-%u-%llu", node, worker,
                     (unsigned long long)tag);
        out->op = (struct op){.kind = OP_SET, .value = bytes_of("x", 1)};
        break;
    }
    out->op.key = bytes_of(key, (uint32_t)n);
    return true;
}

static void note_told(struct client *c, uint8_t counter, int64_t number)
{
    c->told[counter] = number > c->told[counter] ? number : c->told[counter];
}

static void check_read(struct stress *s, struct client *c, const struct pending *p,
                       const struct answer *a)
{
    char digits[32] = "0";
    if (a->kind == ANSWER_VALUE && a->value.n < sizeof digits) {
        memcpy(digits, a->value.at, a->value.n);
        digits[a->value.n] = '\0';
    }
    int64_t seen = strtoll(digits, NULL, 10);
    if (seen < p->floor) {
        fprintf(stderr, "counter %u: read %lld after %lld was acknowledged\n", p->counter,
                (long long)seen, (long long)p->floor);
        atomic_store(&s->failed, true);
    }
    note_told(c, p->counter, seen);
}

static void take_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct stress *s = context;
    struct client *c = &s->clients[node][worker];
    struct pending *p = slot_of(c, reply->tag);
    const struct answer *a = &reply->answer;
    if (!p->used) {
        atomic_store(&s->failed, true);
        return;
    }
    if (p->what == WHAT_ADD) {
        if (a->kind == ANSWER_NUMBER) {
            if (a->number <= p->floor) {
                fprintf(stderr, "counter %u: counted to %lld after %lld\n", p->counter,
                        (long long)a->number, (long long)p->floor);
                atomic_store(&s->failed, true);
            }
            atomic_fetch_add(&s->acknowledged[p->counter], 1);
            note_told(c, p->counter, a->number);
        } else if (a->kind == ANSWER_ERROR && a->number == HK_ERR_UNKNOWN) {
            atomic_fetch_add(&s->unknown[p->counter], 1);
        }
    } else if (p->what == WHAT_READ && a->kind != ANSWER_ERROR) {
        check_read(s, c, p, a);
    }
    p->used = false;
    c->in_flight--;
    if (atomic_fetch_add(&s->answers, 1) + 1 >= atomic_load(&s->wanted)) {
        signal_reached(s);
    }
}

static struct timespec patience(void)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 200;
    return until;
}

static void wait_for_answers(struct stress *s, uint64_t answers)
{
    struct timespec until = patience();
    pthread_mutex_lock(&s->lock);
    atomic_store(&s->wanted, answers);
    int err = 0;
    while (atomic_load(&s->answers) < answers && err == 0) {
        err = pthread_cond_timedwait(&s->reached, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    assert_int_equal(err, 0); /* no progress */
}

/* Who needs only a majority may have answered everything before the dead node's lease ended. */
static void wait_for_view(struct stress *s, uint32_t node, nodeset live)
{
    struct timespec until = patience();
    pthread_mutex_lock(&s->lock);
    int err = 0;
    while (atomic_load(&s->live[node]) != live && err == 0) {
        err = pthread_cond_timedwait(&s->reached, &s->lock, &until);
    }
    pthread_mutex_unlock(&s->lock);
    assert_int_equal(err, 0); /* no such view */
}

static int64_t final_value(struct stress *s, uint32_t node, uint32_t counter)
{
    char key[32];
    uint64_t buffer[STORE_INLINE_MAX / 8];
    struct store_value v;
    struct store *store = node_store(cluster_node(s->cluster, node), 0);
    struct store_thread *thread =
        worker_store_thread(node_worker(cluster_node(s->cluster, node), 0), 0);
    int n = snprintf(key, sizeof key, "counter%u", counter);
    struct bytes k = bytes_of(key, (uint32_t)n);
    assert_int_equal(store_read(store, thread, k, store_hash(store, k), buffer, sizeof buffer, &v),
                     HK_OK);
    if (!v.found) {
        return 0;
    }
    char digits[32] = {0};
    memcpy(digits, v.value.at, v.value.n < 31 ? v.value.n : 31);
    return strtoll(digits, NULL, 10);
}

static uint32_t workers_of(uint32_t node)
{
    return node == 2 ? 2 : WORKERS;
}

/* One of the nodes dies in the middle. */
static void run(const struct engine_ops *ops, const void *engine, uint32_t dead)
{
    uint32_t all = 2 * WORKERS + 2;
    uint32_t rest = all - workers_of(dead);
    uint32_t alive = dead == 1 ? 0 : 1;
    nodeset live = (nodeset)7 & ~((nodeset)1 << dead);
    struct stress *s = calloc(1, sizeof *s);
    assert_non_null(s);
    struct cluster_config config = {
        .nodes = NODES,
        .workers = {workers_of(0), workers_of(1), workers_of(2)},
        .ops = ops,
        .engine = engine,
        .lease_us = 2000000,
        .client = {s, next_request, take_reply},
        .seed = 11,
    };
    s->sequential = (ops->traits & ENGINE_READS_FOLLOW) != 0;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->reached, NULL);
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t k = 0; k < WORKERS; k++) {
            s->clients[i][k].stress = s;
            random_init(&s->clients[i][k].random, i * 100 + k);
        }
    }
    s->cluster = cluster_create(&config);
    atomic_store(&s->quota, UPDATES);
    cluster_threads(s->cluster);
    wait_for_answers(s, (uint64_t)all * UPDATES);
    /* A node's process dies: a view without it, while the others are busy. */
    cluster_halt(s->cluster, dead);
    atomic_store(&s->quota, 2 * UPDATES);
    wait_for_answers(s, (uint64_t)(all + rest) * UPDATES);
    wait_for_view(s, alive, live);
    cluster_join(s->cluster);
    assert_false(atomic_load(&s->failed));
    struct node_status status;
    node_status(cluster_node(s->cluster, alive), clock_boot_us(), &status);
    assert_int_equal(status.view.live, live);
    assert_true(status.view.epoch >= 2);
    for (uint32_t k = 0; k < COUNTERS; k++) {
        int64_t low = atomic_load(&s->acknowledged[k]);
        int64_t high = low + atomic_load(&s->unknown[k]);
        int64_t value = final_value(s, alive, k);
        assert_true(value >= low && value <= high);
    }
    struct store_stats stats;
    store_stats(node_store(cluster_node(s->cluster, alive), 0), &stats);
    assert_true(stats.keys > 2000); /* the index grew meanwhile */
    cluster_destroy(s->cluster);
    pthread_cond_destroy(&s->reached);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void updates_are_neither_lost_nor_doubled(void **state)
{
    (void)state;
    struct hermes_config hermes = {.mlt_us = 50000, .grace_us = 10000000};
    run(&hermes_ops, &hermes, 2);
}

static void nor_by_zab(void **state)
{
    (void)state;
    struct zab_config zab = {.lockstep = false};
    run(&zab_ops, &zab, 2);
}

static void nor_when_its_leader_dies(void **state)
{
    (void)state;
    struct zab_config zab = {.lockstep = false};
    run(&zab_ops, &zab, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_are_neither_lost_nor_doubled),
        cmocka_unit_test(nor_by_zab),
        cmocka_unit_test(nor_when_its_leader_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
