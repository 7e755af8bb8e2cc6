/* Memory servers whose workers are threads: clients of several nodes contend for few rows, and an
 * operator lists locks and ends tries all the while. Money stays the same, everybody gets
 * somewhere, and in the end no lock is left. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "engine/lotus/lotus.h"
#include "support/node_bank.h"

#define TRANSFERS 1500u
#define SECONDS 120u

struct warden {
    struct cluster *cluster;
    uint32_t nodes;
    _Atomic bool stop;
    uint64_t seen, killed, id;
};

static void see(void *context, const struct node_lock *lock)
{
    struct warden *o = context;
    o->seen++;
    o->id = lock->id;
}

/* Few tries last so long that they are seen. */
static void *operate(void *argument)
{
    struct warden *o = argument;
    for (uint64_t i = 0; !atomic_load(&o->stop); i++) {
        struct node *node = cluster_node(o->cluster, (uint32_t)(i % o->nodes));
        o->id = 0;
        if (node_locks(node, 0, 64, see, o) != HK_OK) {
            break;
        }
        if (o->id != 0) {
            o->killed += node_kill(node, 0, o->id) == HK_OK;
        }
    }
    return NULL;
}

static void count(void *context, const struct node_lock *lock)
{
    (void)lock;
    ++*(uint64_t *)context;
}

static void run(uint32_t nodes, uint32_t workers, const struct lotus_config *lotus,
                const struct bank_config *config)
{
    struct bank *bank = bank_create(config);
    struct cluster_config cluster = {.nodes = nodes,
                                     .ops = &lotus_ops,
                                     .engine = lotus,
                                     .ordered = nodes % 2 == 0,
                                     .lease_us = 2000000,
                                     .client = bank_client(bank),
                                     .seed = config->seed};
    for (uint32_t i = 0; i < nodes; i++) {
        cluster.workers[i] = workers;
    }
    struct cluster *c = cluster_create(&cluster);
    cluster_until(c, cluster_serving, NULL, 100000000);
    for (uint32_t i = 0; i < nodes; i++) {
        bank_open(bank, c, i);
    }
    bank_fill(bank, c);
    for (uint32_t i = 0; i < 100; i++) {
        cluster_step(c, 1000); /* nothing is on its way when the clock jumps to the real one */
    }
    struct warden o = {.cluster = c, .nodes = nodes};
    pthread_t thread;
    bank_run(bank, true);
    cluster_threads(c);
    assert_int_equal(pthread_create(&thread, NULL, operate, &o), 0);
    bank_await(bank, TRANSFERS, SECONDS);
    atomic_store(&o.stop, true);
    pthread_join(thread, NULL);
    cluster_join(c);
    struct bank_counts counts = bank_counts(bank);
    print_message("%s, %u nodes, %u workers: %lu transfers, %lu audits, %lu busy; %lu locks seen, "
                  "%lu tries ended\n",
                  lock_policy_names[lotus->lock.policy], nodes, workers, (unsigned long)counts.done,
                  (unsigned long)counts.audits, (unsigned long)counts.busy, (unsigned long)o.seen,
                  (unsigned long)o.killed);
    assert_true(counts.audits > 5);
    assert_int_equal(counts.busy + counts.unknown, 0);
    for (uint32_t i = 0; i < nodes; i++) {
        uint64_t left = 0;
        assert_int_equal(node_locks(cluster_node(c, i), 0, 1000, count, &left), HK_OK);
        assert_int_equal(left, 0);
    }
    cluster_destroy(c);
    bank_destroy(bank);
}

static void test_workers_of_one_node(void **state)
{
    (void)state;
    for (uint8_t policy = 0; policy < LOCK_POLICIES; policy++) {
        struct bank_config config = {.accounts = 6, .clients = 4, .audits = 100, .seed = 3};
        struct lotus_config lotus = {.lock.policy = policy};
        run(1, 4, &lotus, &config);
    }
}

static void test_nodes_and_workers(void **state)
{
    (void)state;
    for (uint8_t policy = 0; policy < LOCK_POLICIES; policy++) {
        struct bank_config config = {.accounts = 20, .clients = 3, .audits = 50, .seed = 4};
        struct lotus_config lotus = {.lock.policy = policy};
        run(3, 2, &lotus, &config);
    }
}

static void test_ordered_port(void **state)
{
    (void)state;
    struct bank_config config = {.accounts = 20, .clients = 3, .audits = 50, .seed = 5};
    struct lotus_config lotus = {.lock.policy = LOCK_WOUND_WAIT, .one_trip_off = true};
    run(2, 2, &lotus, &config);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_of_one_node),
        cmocka_unit_test(test_nodes_and_workers),
        cmocka_unit_test(test_ordered_port),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
