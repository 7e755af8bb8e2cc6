/* Keys that change their home while clients are served: a node joins, one leaves, one dies; every
 * answer is right, no key is lost that need not be, and what is lost says so until the operator
 * gives it up. Engine galene, in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/slot.h"
#include "engine/galene/galene.h"
#include "support/node_cluster.h"

#define NODES 4u
#define KEYS 1800u
#define DEPTH 8u /* operations that a client has under way */

static const struct galene_config galene = {.retry_us = 2000, .rescue_us = 20000};

/* ---- Clients: one a worker. A key is one client's alone, which knows what it holds. ---- */

struct key {
    char name[16];
    uint32_t value; /* as written last; 0: absent */
    uint32_t next;  /* being written; 0: nothing is */
    bool busy;
};

struct client {
    uint32_t session;
    uint32_t under_way;
    bool open;
};

struct load {
    struct cluster *cluster;
    struct random random;
    uint32_t workers;
    nodeset nodes; /* whose clients ask for something */
    struct client clients[NODES][CLUSTER_WORKERS_MAX];
    struct key keys[KEYS];
    char values[KEYS][16];
    uint64_t answers, errors;
    uint32_t flows; /* of a worker; 0: as usual */
    bool lost;      /* HK_ERR_LOSTSLOT is right */
    uint64_t lost_answers;
};

static struct load load;

static bool client_request(void *context, uint32_t node, uint32_t worker,
                           struct request *request_out)
{
    struct load *l = context;
    if (!nodeset_has(l->nodes, (uint8_t)node) || node == 3) {
        return false;
    }
    struct client *client = &l->clients[node][worker];
    struct worker *w = node_worker(cluster_node(l->cluster, node), worker);
    if (!client->open) {
        assert_int_equal(worker_session_open(w, &client->session), HK_OK);
        client->open = true;
    }
    if (client->under_way == DEPTH || !worker_session_ready(w, client->session)) {
        return false;
    }
    uint32_t k = (uint32_t)random_below(&l->random, KEYS / (3 * l->workers)) * 3 * l->workers +
                 node * l->workers + worker;
    struct key *key = &l->keys[k];
    if (key->busy) {
        return false;
    }
    key->busy = true;
    client->under_way++;
    struct op op = {.kind = OP_GET, .key = bytes_of(key->name, (uint32_t)strlen(key->name))};
    uint64_t what = random_below(&l->random, 10);
    if (what < 4) {
        key->next = (uint32_t)(l->answers + 1);
        op.kind = OP_SET;
        int n = snprintf(l->values[k], sizeof l->values[k], "%u", key->next);
        op.value = bytes_of(l->values[k], (uint32_t)n);
    } else if (what == 4) {
        op.kind = OP_DELETE;
    } else if (what == 5) {
        op.kind = OP_ADD;
        op.number = 1;
    }
    *request_out =
        (struct request){.session = client->session, .tag = (uint64_t)op.kind << 32 | k, .op = op};
    return true;
}

static void judge(struct load *l, struct key *key, uint8_t kind, const struct reply *reply)
{
    char want[16];
    int n = snprintf(want, sizeof want, "%u", key->value);
    if (kind == OP_GET && key->value == 0) {
        assert_int_equal(reply->answer.kind, ANSWER_NIL);
    } else if (kind == OP_GET) {
        assert_int_equal(reply->answer.kind, ANSWER_VALUE);
        assert_int_equal(reply->answer.value.n, n);
        assert_memory_equal(reply->answer.value.at, want, (size_t)n);
    } else if (kind == OP_SET) {
        assert_int_equal(reply->answer.kind, ANSWER_OK);
        key->value = key->next;
    } else if (kind == OP_DELETE) {
        assert_int_equal(reply->answer.kind, ANSWER_NUMBER);
        assert_int_equal(reply->answer.number, key->value != 0);
        key->value = 0;
    } else {
        assert_int_equal(reply->answer.kind, ANSWER_NUMBER);
        assert_int_equal(reply->answer.number, (int64_t)key->value + 1);
        key->value++;
    }
    (void)l;
}

static void client_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct load *l = context;
    struct key *key = &l->keys[(uint32_t)reply->tag];
    uint8_t kind = (uint8_t)(reply->tag >> 32);
    l->clients[node][worker].under_way--;
    key->busy = false;
    l->answers++;
    if (reply->answer.kind == ANSWER_ERROR) {
        l->errors++;
        if (l->lost && reply->answer.number == HK_ERR_LOSTSLOT) {
            l->lost_answers++;
            return;
        }
        print_error("node %u: error %d for %s at %llu us\n", node, (int)reply->answer.number,
                    key->name, (unsigned long long)cluster_now(l->cluster));
        fail();
    }
    judge(l, key, kind, reply);
}

static void adjust(struct node_config *config, uint32_t node)
{
    (void)node;
    config->calls_max = 256;
    config->flows_max = load.flows != 0 ? load.flows : config->flows_max;
}

static void begin(uint32_t nodes, uint32_t workers, uint32_t flows, uint64_t seed)
{
    struct cluster_config config = {
        .nodes = nodes,
        .ops = &galene_ops,
        .engine = &galene,
        .client = {.context = &load, .request = client_request, .reply = client_reply},
        .adjust = adjust,
        .hot = {.off = true},
        .seed = seed};
    memset(&load, 0, sizeof load);
    load.workers = workers;
    load.flows = flows;
    random_init(&load.random, seed);
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = workers;
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        snprintf(load.keys[k].name, sizeof load.keys[k].name, "key:%u", k);
    }
    load.cluster = cluster_create(&config);
    cluster_until(load.cluster, cluster_serving, NULL, 5000000);
}

static void run(uint64_t us)
{
    for (uint64_t t = 0; t < us; t += 100) {
        cluster_step(load.cluster, 100);
    }
}

/* Lets everything that is under way end. */
static void rest(void)
{
    nodeset nodes = load.nodes;
    load.nodes = 0;
    run(300000);
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint32_t k = 0; k < load.workers; k++) {
            assert_true(!nodeset_has(nodes, (uint8_t)i) || load.clients[i][k].under_way == 0);
        }
    }
    load.nodes = nodes;
}

/* ---- What maps say ---- */

static struct slot_home homes[HASH_SLOTS];

static uint32_t count(uint32_t node, uint8_t state, uint8_t home)
{
    uint64_t version;
    uint32_t n = 0;
    assert_true(node_homes(cluster_node(load.cluster, node), 0, homes, &version));
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        n += homes[i].state == state && (home == NODE_NONE || homes[i].home == home);
    }
    return n;
}

/* Every slot is stable on every live node's map, and each of these nodes has its share. */
static bool even(nodeset among)
{
    for (uint32_t i = 0; i < NODES; i++) {
        for (uint8_t home = 0; home < NODES && cluster_alive(load.cluster, i); home++) {
            uint32_t n = count(i, HOME_STABLE, home);
            uint32_t share = nodeset_has(among, home) ? HASH_SLOTS / nodeset_count(among) : 0;
            if (n != share && (share == 0 || n != share + 1)) {
                return false;
            }
        }
    }
    return true;
}

static void until_even(nodeset among, uint64_t bound_us)
{
    uint64_t until_us = cluster_now(load.cluster) + bound_us;
    while (!even(among)) {
        assert_true(cluster_now(load.cluster) < until_us);
        run(5000);
    }
}

/* Which node has the key's entry: exactly its home. */
static void keys_are_at_home(void)
{
    uint64_t version;
    for (uint32_t i = 0; i < NODES; i++) {
        if (!cluster_alive(load.cluster, i)) {
            continue;
        }
        struct node *node = cluster_node(load.cluster, i);
        struct store *store = node_store(node, 0);
        assert_true(node_homes(node, 0, homes, &version));
        for (uint32_t k = 0; k < KEYS; k++) {
            struct bytes name = bytes_of(load.keys[k].name, (uint32_t)strlen(load.keys[k].name));
            struct store_ref ref;
            store_lock(store, worker_store_thread(node_worker(node, 0), 0), name,
                       store_hash(store, name), &ref);
            bool has = ref.object != NULL;
            store_unlock(&ref);
            assert_int_equal(has, load.keys[k].value != 0 && homes[slot_of_key(name)].home == i);
        }
    }
}

static struct node_stats stats_of(uint32_t node)
{
    struct node_stats stats;
    node_stats(cluster_node(load.cluster, node), &stats);
    return stats;
}

/* ---- Tests ---- */

static void joins_and_leaves(uint32_t workers, uint32_t flows, uint64_t seed)
{
    begin(4, workers, flows, seed);
    struct cluster *c = load.cluster;
    until_even(15, 1000000);
    /* Before it holds anything node 3 dies, and comes back with the cluster's keys elsewhere. */
    cluster_kill(c, 3);
    load.lost = true;
    run(2000000);
    assert_int_equal(count(0, HOME_LOST, NODE_NONE), HASH_SLOTS / 4);
    worker_empty_lost(node_worker(cluster_node(c, 1), 0), 0);
    until_even(7, 2000000);
    load.lost = false;
    load.nodes = 7;
    run(500000);
    rest();
    keys_are_at_home();

    /* A fourth node becomes the home of its share while clients are served. */
    uint64_t answers = load.answers;
    cluster_restart(c, 3);
    until_even(15, 5000000);
    assert_true(load.answers > answers + 1000);
    uint64_t moved = stats_of(0).moves + stats_of(1).moves + stats_of(2).moves;
    assert_true(moved > KEYS / 10 && moved < KEYS);
    assert_int_equal(stats_of(3).chunks_in, 0);
    run(100000);
    rest();
    keys_are_at_home();

    /* One gives everything away, and leaves. */
    answers = load.answers;
    worker_hand_over(node_worker(cluster_node(c, 1), 0));
    until_even(13, 5000000);
    run(20000);
    assert_true(node_handed_over(cluster_node(c, 1)));
    assert_true(load.answers > answers + 1000);
    rest();
    load.nodes = 5;
    worker_leave(node_worker(cluster_node(c, 1), 0));
    run(1000000);
    assert_false(cluster_alive(c, 1));
    assert_int_equal(count(0, HOME_LOST, NODE_NONE), 0);
    rest();
    keys_are_at_home();
    cluster_destroy(c);
}

static void one_worker(void **state)
{
    (void)state;
    joins_and_leaves(1, 0, 1);
}

static void two_workers(void **state)
{
    (void)state;
    joins_and_leaves(2, 0, 2);
}

/* The mover leaves most of them to clients. */
static void few_flows(void **state)
{
    (void)state;
    joins_and_leaves(2, 8, 4);
}

/* A node dies: on every node its slots, and only they, say so; emptied they serve as absent. */
static void crash(void **state)
{
    (void)state;
    begin(3, 2, 0, 3);
    struct cluster *c = load.cluster;
    until_even(7, 1000000);
    load.nodes = 7;
    run(500000);
    rest();
    keys_are_at_home();
    struct slot_home before[HASH_SLOTS];
    uint64_t version;
    assert_true(node_homes(cluster_node(c, 0), 0, before, &version));
    load.nodes = 3;
    cluster_kill(c, 2);
    load.lost = true;
    load.nodes = 0;
    run(2000000);
    for (uint32_t node = 0; node < 2; node++) {
        assert_int_equal(count(node, HOME_LOST, 2), HASH_SLOTS / 3);
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        struct bytes name = bytes_of(load.keys[k].name, (uint32_t)strlen(load.keys[k].name));
        if (before[slot_of_key(name)].home == 2) {
            load.keys[k].value = 0; /* what it will be when it has been given up */
        }
    }
    load.nodes = 3;
    run(200000);
    assert_true(load.lost_answers > 100);
    rest();
    worker_empty_lost(node_worker(cluster_node(c, 1), 0), 0);
    until_even(3, 2000000);
    rest();
    load.lost = false;
    run(300000);
    rest();
    keys_are_at_home();
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_worker),
        cmocka_unit_test(two_workers),
        cmocka_unit_test(few_flows),
        cmocka_unit_test(crash),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
