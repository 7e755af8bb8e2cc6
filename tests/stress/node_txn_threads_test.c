/* Transactions on workers that are threads: several workers of a node contend for the same objects,
 * and several nodes. Money stays the same, and everybody gets somewhere. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "node/engines.h"
#include "support/node_bank.h"

#define TRANSFERS 1000u
#define SECONDS 120u
#define LEASE_US 20000000u /* nobody is to be suspected on a busy machine */

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static void run(uint32_t nodes, uint32_t workers, const struct bank_config *config)
{
    struct cluster_config cluster = {.nodes = nodes,
                                     .ops = &zeus_ops,
                                     .engine = &zeus,
                                     .ordered = nodes % 2 == 0,
                                     .lease_us = LEASE_US,
                                     .seed = config->seed};
    for (uint32_t i = 0; i < nodes; i++) {
        cluster.workers[i] = workers;
    }
    struct bank_counts counts = bank_threads(&cluster, config, TRANSFERS, SECONDS);
    assert_true(counts.audits > 5);
    assert_int_equal(counts.busy + counts.unknown, 0);
}

static void test_workers_of_one_node(void **state)
{
    (void)state;
    struct bank_config config = {.accounts = 6, .clients = 4, .audits = 100, .seed = 3};
    run(1, 4, &config);
}

static void test_nodes_and_workers(void **state)
{
    (void)state;
    struct bank_config config = {
        .accounts = 20, .clients = 3, .audits = 50, .local = 700, .seed = 4};
    run(3, 2, &config);
}

static void test_ordered_port(void **state)
{
    (void)state;
    struct bank_config config = {
        .accounts = 20, .clients = 3, .audits = 50, .local = 900, .seed = 5};
    run(2, 2, &config);
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
