/* Money stays the same while nodes die and come back, and views change. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "support/node_bank.h"

#define SECOND 1000000u
#define CRASH_SEEDS 4u

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
        struct bank_cluster m = bank_cluster_open(nodes, 1 + (uint32_t)seed % 3, &config);
        for (uint32_t round = 0; round < 3; round++) {
            uint32_t victim = (uint32_t)(seed + round) % nodes;
            bank_cluster_run(&m, 500 + 37 * (uint32_t)seed);
            bank_forget(m.bank, victim);
            cluster_kill(m.cluster, victim);
            cluster_until(m.cluster, serves, NULL, 10 * SECOND);
            bank_cluster_run(&m, 1000);
            cluster_restart(m.cluster, victim);
            cluster_until(m.cluster, serves, NULL, 20 * SECOND);
            bank_open(m.bank, m.cluster, victim);
            struct bank_counts before = bank_counts(m.bank);
            bank_cluster_run(&m, 2500);
            struct bank_counts after = bank_counts(m.bank);
            assert_true(after.done > before.done + 20 && after.audits > before.audits);
        }
        bank_cluster_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_money_outlives_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
