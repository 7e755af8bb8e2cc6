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

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static void run(uint32_t nodes, uint32_t workers, const struct bank_config *config)
{
    struct bank *bank = bank_create(config);
    struct cluster_config cluster = {.nodes = nodes,
                                     .ops = &zeus_ops,
                                     .engine = &zeus,
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
    bank_run(bank, true);
    cluster_threads(c);
    bank_await(bank, TRANSFERS, SECONDS);
    cluster_join(c);
    struct bank_counts counts = bank_counts(bank);
    print_message("%u nodes, %u workers: %lu transfers, %lu conflicts, %lu audits, %lu busy\n",
                  nodes, workers, (unsigned long)counts.done, (unsigned long)counts.conflicts,
                  (unsigned long)counts.audits, (unsigned long)counts.busy);
    assert_true(counts.audits > 5);
    assert_int_equal(counts.busy + counts.unknown, 0);
    cluster_destroy(c);
    bank_destroy(bank);
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
