/* Money stays the same while nodes die and come back, and views change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "node/engines.h"
#include "support/node_bank.h"

#define SECOND 1000000u
#define CRASH_SEEDS 4u

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

static struct cluster_config config_of(uint32_t nodes, uint32_t workers)
{
    struct cluster_config config = {
        .nodes = nodes, .ops = &zeus_ops, .engine = &zeus, .seed = 5 + nodes};
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = workers;
    }
    return config;
}

/* ---- Money ---- */

struct money {
    struct bank *bank;
    struct cluster *cluster;
};

static struct money open_bank(uint32_t nodes, uint32_t workers, const struct bank_config *config)
{
    struct money m = {.bank = bank_create(config)};
    struct cluster_config cluster = config_of(nodes, workers);
    cluster.client = bank_client(m.bank);
    cluster.seed = config->seed;
    m.cluster = cluster_create(&cluster);
    cluster_until(m.cluster, cluster_serving, NULL, 10 * SECOND);
    for (uint32_t i = 0; i < nodes; i++) {
        bank_open(m.bank, m.cluster, i);
    }
    bank_fill(m.bank, m.cluster);
    bank_run(m.bank, true);
    return m;
}

static bool is_idle(struct cluster *c, void *context)
{
    (void)c;
    return bank_idle(context);
}

/* No new requests; everything that is under way is answered; then all is added up once more. */
static void close_bank(struct money *m)
{
    bank_run(m->bank, false);
    cluster_until(m->cluster, is_idle, m->bank, 20 * SECOND);
    cluster_destroy(m->cluster);
    bank_destroy(m->bank);
}

static void run_for(struct money *m, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        cluster_step(m->cluster, 50);
    }
}

static bool serves(struct cluster *c, void *context)
{
    return cluster_serving(c, context);
}

static void test_money_outlives_crashes(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < CRASH_SEEDS; seed++) {
        uint32_t nodes = seed % 2 == 0 ? 3 : 5;
        struct bank_config config = {
            .accounts = 12, .clients = 3, .audits = 100, .local = 500, .seed = 70 + seed};
        struct money m = open_bank(nodes, 1 + (uint32_t)seed % 3, &config);
        for (uint32_t round = 0; round < 3; round++) {
            uint32_t victim = (uint32_t)(seed + round) % nodes;
            run_for(&m, 500 + 37 * (uint32_t)seed);
            bank_forget(m.bank, victim);
            cluster_kill(m.cluster, victim);
            cluster_until(m.cluster, serves, NULL, 10 * SECOND);
            run_for(&m, 1000);
            cluster_restart(m.cluster, victim);
            cluster_until(m.cluster, serves, NULL, 20 * SECOND);
            bank_open(m.bank, m.cluster, victim);
            struct bank_counts before = bank_counts(m.bank);
            run_for(&m, 2500);
            struct bank_counts after = bank_counts(m.bank);
            assert_true(after.done > before.done + 20 && after.audits > before.audits);
        }
        close_bank(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_money_outlives_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
