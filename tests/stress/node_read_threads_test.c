/* Readers on threads of their own beside a node's workers. Meant for the thread sanitizer: no
 * reader sees a counter go back, nor behind what was acknowledged before it looked, while objects
 * are replaced, the index grows and readers go offline and online. Meanwhile everybody's samples of
 * hot keys are taken together. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/err.h"
#include "node/read.h"
#include "support/node_cluster.h"

#define KEYS 16u
#define WRITES 6000u
#define READERS 3u
#define NODES 2u
#define LEASE_US 20000000u /* nobody is to be suspected on a busy machine */

/* A value is its number, repeated until it has its length: a mix of two shows. */
struct writer {
    struct cluster *cluster;
    uint32_t session;
    bool open;
    bool in_flight;
    uint32_t sent;
    uint32_t key;
    uint64_t numbers[KEYS];
    _Atomic uint64_t acknowledged[KEYS];
    _Atomic uint32_t content; /* readers that have found what they look for */
    _Atomic bool done;
    pthread_mutex_t lock;
    pthread_cond_t over;
    uint64_t value[400];
    char name[32];
};

static uint32_t name_of(char *name, size_t size, uint32_t key)
{
    return (uint32_t)snprintf(name, size, "key-%u", key);
}

static void finish(struct writer *w)
{
    pthread_mutex_lock(&w->lock);
    atomic_store(&w->done, true);
    pthread_cond_signal(&w->over);
    pthread_mutex_unlock(&w->lock);
}

/* Not before every reader has got somewhere: a thread may begin late. */
static bool enough(const struct writer *w)
{
    return w->sent >= WRITES && atomic_load(&w->content) == READERS;
}

static bool next_request(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    struct writer *w = context;
    if (node != 0 || worker != 0 || w->in_flight || atomic_load(&w->done)) {
        return false;
    }
    if (!w->open) {
        w->open =
            worker_session_open(node_worker(cluster_node(w->cluster, 0), 0), &w->session) == HK_OK;
        return false;
    }
    w->key = w->sent % KEYS;
    uint64_t number = w->numbers[w->key] + 1;
    uint32_t words = 1 + (uint32_t)(number * 37u % 400u);
    for (uint32_t i = 0; i < words; i++) {
        w->value[i] = number;
    }
    uint32_t n = name_of(w->name, sizeof w->name, w->key);
    *out = (struct request){.session = w->session,
                            .op = {.kind = OP_SET,
                                   .key = bytes_of(w->name, n),
                                   .value = bytes_of(w->value, words * 8)}};
    w->in_flight = true;
    w->sent++;
    return true;
}

static void take_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct writer *w = context;
    (void)node;
    (void)worker;
    w->in_flight = false;
    if (reply->answer.kind == ANSWER_OK) {
        atomic_store_explicit(&w->acknowledged[w->key], ++w->numbers[w->key], memory_order_release);
    } else {
        w->numbers[w->key]++; /* it may have happened: numbers only grow */
    }
    if (enough(w)) {
        finish(w);
    }
}

struct looker {
    struct writer *writer;
    uint32_t node;
    pthread_t thread;
    uint64_t found;
    uint64_t faults;
    uint64_t hot;
};

static void look(struct looker *l, const struct node_read *read, uint64_t floor, uint64_t *seen)
{
    if (read->answer == NODE_READ_ASK) {
        return;
    }
    uint64_t number = 0;
    if (read->answer == NODE_READ_FOUND) {
        l->found++;
        number = get_u64(read->value.at);
        for (uint32_t i = 0; i < read->value.n; i += 8) {
            l->faults += get_u64(read->value.at + i) != number;
        }
        l->faults += read->value.n != 8 * (1 + number * 37u % 400u);
    }
    l->faults += number < floor || number < *seen;
    *seen = number;
}

static void hot(void *context, struct bytes key, uint64_t rate)
{
    struct looker *l = context;
    l->hot++;
    l->faults += rate == 0 || key.n < 5 || memcmp(key.at, "key-", 4) != 0;
}

static void *reader_main(void *argument)
{
    struct looker *l = argument;
    struct writer *w = l->writer;
    struct node_reader *r = NULL;
    uint64_t seen[KEYS] = {0};
    char names[KEYS][32];
    bool content = false;
    assert_int_equal(node_reader_open(cluster_node(w->cluster, l->node), &r), HK_OK);
    for (uint64_t round = 0; !atomic_load(&w->done); round++) {
        struct node_read reads[KEYS];
        uint64_t floors[KEYS];
        uint32_t n = round % 3 == 0 ? 1 : KEYS;
        for (uint32_t i = 0; i < n; i++) {
            reads[i].key = bytes_of(names[i], name_of(names[i], sizeof names[i], i));
            floors[i] = atomic_load_explicit(&w->acknowledged[i], memory_order_acquire);
        }
        node_read(r, 0, clock_boot_us(), n, reads);
        for (uint32_t i = 0; i < n; i++) {
            look(l, &reads[i], floors[i], &seen[i]);
        }
        if (!content && l->found > 0 && l->hot > 0) {
            content = true;
            atomic_fetch_add(&w->content, 1);
        }
        if (round % 100 == 99) {
            l->faults += node_hotkeys(cluster_node(w->cluster, l->node), 0, clock_boot_us(), KEYS,
                                      hot, l) != HK_OK;
            node_reader_offline(r);
            node_reader_online(r);
        }
        if (round % 1000 == 999) {
            node_reader_close(r);
            assert_int_equal(node_reader_open(cluster_node(w->cluster, l->node), &r), HK_OK);
        }
    }
    node_reader_close(r);
    return NULL;
}

static void readers_see_what_was_acknowledged(void **state)
{
    (void)state;
    static struct writer w;
    pthread_mutex_init(&w.lock, NULL);
    pthread_cond_init(&w.over, NULL);
    struct cluster_config config = {
        .nodes = NODES,
        .workers = {2, 2},
        .hermes = {.mlt_us = 50000, .grace_us = 10000000},
        .lease_us = LEASE_US,
        .hot = {.sample = 1, .epoch_us = 2000},
        .seed = 3,
        .client = {.context = &w, .request = next_request, .reply = take_reply}};
    w.cluster = cluster_create(&config);
    struct looker lookers[READERS] = {{.node = 0}, {.node = 1}, {.node = 1}};
    cluster_threads(w.cluster);
    for (uint32_t i = 0; i < READERS; i++) {
        lookers[i].writer = &w;
        assert_int_equal(pthread_create(&lookers[i].thread, NULL, reader_main, &lookers[i]), 0);
    }
    pthread_mutex_lock(&w.lock);
    while (!atomic_load(&w.done)) {
        pthread_cond_wait(&w.over, &w.lock);
    }
    pthread_mutex_unlock(&w.lock);
    for (uint32_t i = 0; i < READERS; i++) {
        pthread_join(lookers[i].thread, NULL);
        assert_int_equal(lookers[i].faults, 0);
        assert_true(lookers[i].found > 0);
        assert_true(lookers[i].hot > 0);
    }
    cluster_join(w.cluster);
    cluster_destroy(w.cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_see_what_was_acknowledged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
