/* Lotus on workers that are threads: the locks of one memory server are taken by several workers,
 * of several nodes. Money stays the same, and everybody gets somewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "engine/lotus/lotus.h"
#include "support/node_bank.h"

#define TRANSFERS 600u
#define SECONDS 120u

static void run_with(uint32_t nodes, uint32_t workers, const struct lotus_config *config)
{
    struct lotus_config lotus = *config;
    enum lock_policy policy = (enum lock_policy)lotus.lock.policy;
    struct bank_config bank = {
        .accounts = 10, .clients = 4, .audits = 50, .seed = 3 + (uint64_t)policy};
    struct cluster_config cluster = {.nodes = nodes,
                                     .ops = &lotus_ops,
                                     .engine = &lotus,
                                     .ordered = nodes % 2 == 0,
                                     .lease_us = 2000000,
                                     .seed = 3};
    for (uint32_t i = 0; i < nodes; i++) {
        cluster.workers[i] = workers;
    }
    struct bank_counts counts = bank_threads(&cluster, &bank, TRANSFERS, SECONDS);
    assert_true(counts.audits > 5);
    assert_int_equal(counts.busy + counts.unknown + counts.lost, 0);
}

static void run(uint32_t nodes, uint32_t workers, enum lock_policy policy, bool across)
{
    struct lotus_config lotus = {.lock.policy = (uint8_t)policy, .across = across};
    run_with(nodes, workers, &lotus);
}

static void workers_of_one_node(void **state)
{
    (void)state;
    for (uint32_t policy = 0; policy < LOCK_POLICIES; policy++) {
        run(1, 4, (enum lock_policy)policy, false);
    }
}

static void nodes_and_workers(void **state)
{
    (void)state;
    for (uint32_t policy = 0; policy < LOCK_POLICIES; policy++) {
        run(2 + policy % 2, 2, (enum lock_policy)policy, policy == LOCK_WOUND_WAIT);
    }
}

/* Homes have no room: every account goes to another node when nobody has its lock. */
static void accounts_are_far(void **state)
{
    (void)state;
    for (uint32_t policy = 0; policy < LOCK_POLICIES; policy++) {
        struct lotus_config lotus = {.lock.policy = (uint8_t)policy, .near_max = 1, .far_min = 1};
        run_with(2 + policy % 2, 2, &lotus);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(workers_of_one_node),
        cmocka_unit_test(nodes_and_workers),
        cmocka_unit_test(accounts_are_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
