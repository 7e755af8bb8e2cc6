/* Objects that all nodes want all the time: nobody starves, the oldest goes first, across nodes and
 * across the requests of one piece of work. In virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "engine/zeus/zeus.h"
#include "support/node_cluster.h"

#define SECOND 1000000u
#define ACCOUNTS_MAX 16u
#define CLIENTS_MAX 4u

static const struct zeus_config zeus = {.own = {.backoff_us = 500}};

struct client {
    uint32_t session;
    bool waits;
    uint64_t since_us;
    struct op ops[2];
    struct txn_request txn;
};

/* Clients who move money between accounts, one transfer after the other. */
static struct crowd {
    struct cluster *cluster;
    struct random random;
    uint32_t accounts;
    uint32_t clients; /* a worker */
    bool runs;
    char keys[ACCOUNTS_MAX][24];
    struct client at[CLUSTER_NODES_MAX][CLUSTER_WORKERS_MAX][CLIENTS_MAX];
    uint64_t done[CLUSTER_NODES_MAX];
    uint64_t refused;
    uint64_t longest_us;
} crowd;

static struct bytes key_of(uint32_t account)
{
    return bytes_of(crowd.keys[account], (uint32_t)strlen(crowd.keys[account]));
}

static bool ask(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    (void)context;
    for (uint32_t i = 0; crowd.runs && i < crowd.clients; i++) {
        struct client *c = &crowd.at[node][worker][i];
        if (c->waits) {
            continue;
        }
        uint32_t from = (uint32_t)random_below(&crowd.random, crowd.accounts);
        uint32_t to =
            (from + 1 + (uint32_t)random_below(&crowd.random, crowd.accounts - 1)) % crowd.accounts;
        c->ops[0] = (struct op){.kind = OP_ADD, .key = key_of(from), .number = -1};
        c->ops[1] = (struct op){.kind = OP_ADD, .key = key_of(to), .number = 1};
        c->txn = (struct txn_request){.ops = c->ops, .ops_n = 2, .flags = TXN_ALL};
        c->since_us = cluster_now(crowd.cluster);
        c->waits = true;
        *out = (struct request){.session = c->session, .tag = i, .txn = &c->txn};
        return true;
    }
    return false;
}

static void answered(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct client *c = &crowd.at[node][worker][reply->tag];
    uint64_t took_us = cluster_now(crowd.cluster) - c->since_us;
    (void)context;
    c->waits = false;
    crowd.refused += reply->answer.kind != ANSWER_OK;
    crowd.done[node]++;
    crowd.longest_us = took_us > crowd.longest_us ? took_us : crowd.longest_us;
}

static bool all_idle(struct cluster *c, void *context)
{
    (void)c;
    (void)context;
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        for (uint32_t k = 0; k < CLUSTER_WORKERS_MAX; k++) {
            for (uint32_t j = 0; j < CLIENTS_MAX; j++) {
                if (crowd.at[i][k][j].waits) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void gather(uint32_t nodes, uint32_t workers, uint32_t accounts, uint32_t clients)
{
    struct cluster_config config = {.nodes = nodes,
                                    .ops = &zeus_ops,
                                    .engine = &zeus,
                                    .seed = 7,
                                    .client = {.request = ask, .reply = answered}};
    memset(&crowd, 0, sizeof crowd);
    random_init(&crowd.random, 7);
    crowd.accounts = accounts;
    crowd.clients = clients;
    for (uint32_t i = 0; i < accounts; i++) {
        (void)snprintf(crowd.keys[i], sizeof crowd.keys[i], "account-%u", i);
    }
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = workers;
    }
    crowd.cluster = cluster_create(&config);
    cluster_until(crowd.cluster, cluster_serving, NULL, 10 * SECOND);
    for (uint32_t i = 0; i < nodes; i++) {
        for (uint32_t k = 0; k < workers; k++) {
            for (uint32_t j = 0; j < clients; j++) {
                assert_int_equal(worker_session_open(node_worker(cluster_node(crowd.cluster, i), k),
                                                     &crowd.at[i][k][j].session),
                                 HK_OK);
            }
        }
    }
}

static void test_nobody_starves(void **state)
{
    static const struct {
        uint32_t nodes, workers, accounts, clients;
    } rows[] = {{3, 1, 6, 1}, {3, 1, 6, 2}, {3, 1, 2, 2},
                {3, 2, 6, 4}, {5, 1, 6, 2}, {5, 2, 12, 4}};
    (void)state;
    for (uint32_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gather(rows[i].nodes, rows[i].workers, rows[i].accounts, rows[i].clients);
        crowd.runs = true;
        for (uint32_t k = 0; k < 25000; k++) {
            cluster_step(crowd.cluster, 20);
        }
        crowd.runs = false;
        cluster_until(crowd.cluster, all_idle, NULL, SECOND);
        uint64_t least = UINT64_MAX;
        uint64_t all = 0;
        for (uint32_t k = 0; k < rows[i].nodes; k++) {
            least = crowd.done[k] < least ? crowd.done[k] : least;
            all += crowd.done[k];
        }
        print_message("%u nodes, %u workers, %u clients each, %u accounts: %lu transfers, %lu by "
                      "the least node, the longest %lu us\n",
                      rows[i].nodes, rows[i].workers, rows[i].clients, rows[i].accounts,
                      (unsigned long)all, (unsigned long)least, (unsigned long)crowd.longest_us);
        assert_int_equal(crowd.refused, 0);
        assert_true(crowd.longest_us < 100000);
        assert_true(all > 1000 && least * 2 * rows[i].nodes > all);
        cluster_destroy(crowd.cluster);
    }
}

/* ---- The oldest goes first ---- */

/* One write each of nodes 1 to 4, asked for when the test says so. */
static struct script {
    bool asks[CLUSTER_NODES_MAX];
    uint32_t session[CLUSTER_NODES_MAX];
    uint64_t since_us[CLUSTER_NODES_MAX];
    uint8_t order[CLUSTER_NODES_MAX];
    uint32_t n;
} script;

static bool ask_once(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    (void)context;
    (void)worker;
    if (!script.asks[node]) {
        return false;
    }
    script.asks[node] = false;
    *out = (struct request){
        .session = script.session[node],
        .since_us = script.since_us[node],
        .op = {.kind = OP_SET, .key = bytes_of("k", 1), .value = bytes_of("v", 1)}};
    return true;
}

static void note(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    (void)context;
    (void)worker;
    assert_int_equal(reply->answer.kind, ANSWER_OK);
    script.order[script.n++] = (uint8_t)node;
}

static void long_quantum(struct node_config *config, uint32_t node)
{
    (void)node;
    config->spaces[0].owned.quantum_us = config->spaces[0].owned.quantum_most_us = 20000;
}

static bool all_done(struct cluster *c, void *context)
{
    (void)c;
    return script.n == *(const uint32_t *)context;
}

/* Nodes 1 to 4 ask one after the other, while node 0 keeps the object for its quantum. The first is
 * pending; of the others, who say since when they have wanted it, the oldest comes next. */
static void test_the_oldest_is_next(void **state)
{
    static const uint32_t ages_us[3][CLUSTER_NODES_MAX] = {
        {0, 0, 30000, 60000, 90000}, {0, 0, 90000, 60000, 30000}, {0, 0, 60000, 90000, 30000}};
    static const uint8_t orders[3][CLUSTER_NODES_MAX] = {
        {0, 1, 4, 3, 2}, {0, 1, 2, 3, 4}, {0, 1, 3, 2, 4}};
    (void)state;
    for (uint32_t k = 0; k < 3; k++) {
        struct cluster_config config = {.nodes = 5,
                                        .ops = &zeus_ops,
                                        .engine = &zeus,
                                        .seed = k + 1,
                                        .adjust = long_quantum,
                                        .client = {.request = ask_once, .reply = note}};
        memset(&script, 0, sizeof script);
        for (uint32_t i = 0; i < 5; i++) {
            config.workers[i] = 1;
        }
        struct cluster *c = cluster_create(&config);
        cluster_until(c, cluster_serving, NULL, 10 * SECOND);
        for (uint32_t i = 0; i < 5; i++) {
            assert_int_equal(
                worker_session_open(node_worker(cluster_node(c, i), 0), &script.session[i]), HK_OK);
        }
        for (uint32_t i = 0; i < 5; i++) {
            uint32_t first = 1;
            script.since_us[i] = cluster_now(c) - ages_us[k][i];
            script.asks[i] = true;
            if (i == 0) {
                cluster_until(c, all_done, &first, SECOND);
            }
            for (uint32_t s = 0; s < 20; s++) {
                cluster_step(c, 20);
            }
        }
        uint32_t all = 5;
        cluster_until(c, all_done, &all, SECOND);
        assert_memory_equal(script.order, orders[k], 5);
        cluster_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_starves),
        cmocka_unit_test(test_the_oldest_is_next),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
