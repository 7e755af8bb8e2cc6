/* Lotus on real nodes under contention: money stays the same, whoever dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/slot.h"
#include "engine/lotus/lotus.h"
#include "support/node_bank.h"
#include "support/node_calls.h"

#define SECOND 1000000u

/* What configurations there are, one after the other: policies, and every way to cut messages. */
static struct lotus_config variant(uint32_t i)
{
    return (struct lotus_config){
        .lock.policy = (uint8_t)(i % LOCK_POLICIES),
        .one_trip_off = (i & 1) != 0,
        .one_at_a_time = (i & 2) != 0,
        .hints_off = (i & 4) != 0,
    };
}
#define VARIANTS 6u

/* ---- Money ---- */

static bool idle(struct cluster *c, void *bank)
{
    (void)c;
    return bank_idle(bank);
}

/* A cluster with clients on every worker of every node, who begin. */
static struct cluster *open_bank(struct bank *bank, struct cluster_config *config)
{
    config->client = bank_client(bank);
    struct cluster *c = calls_start(config);
    for (uint32_t i = 0; i < config->nodes; i++) {
        bank_open(bank, c, i);
    }
    bank_fill(bank, c);
    bank_run(bank, true);
    return c;
}

static void run(struct cluster *c, uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        cluster_step(c, 20);
    }
}

static struct bank_counts close_bank(struct bank *bank, struct cluster *c)
{
    bank_run(bank, false);
    cluster_until(c, idle, bank, 20 * SECOND);
    struct bank_counts counts = bank_counts(bank);
    assert_true(counts.done > 50);
    assert_true(counts.audits > 3);
    return counts;
}

static void transfer(struct cluster_config *config, uint64_t seed)
{
    const struct lotus_config *lotus = config->engine;
    struct bank_config bank_config = {.accounts = 12,
                                      .clients = lotus->across ? 6 : 3,
                                      .audits = 100,
                                      .local = 300,
                                      .seed = seed};
    struct bank *bank = bank_create(&bank_config);
    config->seed += seed;
    struct cluster *c = open_bank(bank, config);
    if (!config->ordered) {
        cluster_disturb(c, (struct cluster_faults){.lost = 20, .doubled = 20, .hasty = 20});
    }
    run(c, 4000);
    struct bank_counts counts = close_bank(bank, c);
    assert_int_equal(counts.unknown + counts.unavailable + counts.lost + counts.busy, 0);
    assert_true(counts.conflicts > 0);
    assert_true(CALLS_SUM(c, config->nodes, txn_aborts) > 10);
    assert_int_equal(CALLS_SUM(c, config->nodes, lotus_batched) > 0, lotus->across);
    cluster_destroy(c);
    bank_destroy(bank);
}

static void money_stays_the_same(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 9; i++) {
        struct lotus_config lotus = variant(i);
        lotus.across = i % 3 != 2;
        struct cluster_config config =
            calls_config(i % 4 == 3 ? 5 : 3, 1 + i / 3 % 2, &lotus_ops, &lotus);
        config.ordered = i % 2 == 0;
        if (i >= 7) {
            config.workers[1] = 3; /* nodes need not have as many */
            config.workers[2] = 1;
        }
        transfer(&config, i + 1);
    }
}

/* ---- Deaths ---- */

static void compute_only(struct node_config *config, uint32_t node)
{
    config->role = node == 2 ? NODE_ROLE_COMPUTE : NODE_ROLE_BOTH;
}

static bool holds_slots(struct cluster *c, uint8_t home)
{
    for (uint32_t slot = 0; slot < HASH_SLOTS; slot++) {
        struct slot_home h = node_home(cluster_node(c, 0), 0, slot);
        if (h.home == home || h.state != HOME_STABLE) {
            return true;
        }
    }
    return false;
}

/* The survivors are in a view of two. */
static bool dropped(struct cluster *c, void *context)
{
    struct node_status status;
    (void)context;
    node_status(cluster_node(c, 0), cluster_now(c), &status);
    return nodeset_count(status.view.live) == 2 && status.epoch_adopted == status.view.epoch;
}

/* A compute server dies in the midst of whatever it does: what it had prepared ends everywhere as
 * it ends anywhere, nobody is locked out, and nobody else hears an error. */
static void a_compute_server_dies(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct lotus_config lotus = {.lock.policy = (uint8_t)(seed % LOCK_POLICIES),
                                     .one_trip_off = true};
        struct bank_config bank_config = {
            .accounts = 10, .clients = 3, .audits = 100, .seed = seed};
        struct bank *bank = bank_create(&bank_config);
        struct cluster_config config = calls_config(3, 1 + seed % 2, &lotus_ops, &lotus);
        config.adjust = compute_only;
        config.seed += seed;
        struct cluster *c = open_bank(bank, &config);
        assert_false(holds_slots(c, 2));
        for (uint32_t i = 0; i < 2; i++) {
            run(c, 1500 + 7 * (uint32_t)seed);
            cluster_kill(c, 2);
            bank_forget(bank, 2);
            cluster_until(c, dropped, NULL, 5 * SECOND);
            cluster_restart(c, 2);
            cluster_until(c, cluster_serving, NULL, 10 * SECOND);
            bank_open(bank, c, 2);
        }
        struct bank_counts counts = close_bank(bank, c);
        assert_int_equal(counts.lost + counts.busy + counts.unknown, 0);
        assert_int_equal(CALLS_SUM(c, 3, home_doubts), 0);
        cluster_destroy(c);
        bank_destroy(bank);
    }
}

/* A memory server dies: who needs its rows hears so, the others go on; and what a transaction has
 * changed at several is there everywhere, or nowhere. */
static void a_memory_server_dies(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 3; seed++) {
        struct lotus_config lotus = {.lock.policy = (uint8_t)(seed % LOCK_POLICIES)};
        struct bank_config bank_config = {
            .accounts = 12, .clients = 3, .audits = 100, .seed = seed};
        struct bank *bank = bank_create(&bank_config);
        struct cluster_config config = calls_config(3, 1 + seed % 2, &lotus_ops, &lotus);
        config.seed += seed;
        struct cluster *c = open_bank(bank, &config);
        run(c, 3000 + 11 * (uint32_t)seed);
        cluster_kill(c, 1);
        bank_forget(bank, 1);
        cluster_until(c, dropped, NULL, 5 * SECOND);
        run(c, 500);
        struct bank_counts counts = close_bank(bank, c);
        assert_true(counts.lost > 0);
        assert_int_equal(counts.busy, 0); /* nobody waits for the dead until his time is over */
        assert_int_equal(CALLS_SUM(c, 1, home_doubts), 0);
        uint32_t lost = 0;
        for (uint32_t slot = 0; slot < HASH_SLOTS; slot++) {
            lost += node_home(cluster_node(c, 0), 0, slot).state == HOME_LOST;
        }
        assert_true(lost > 0);
        cluster_destroy(c);
        bank_destroy(bank);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(money_stays_the_same),
        cmocka_unit_test(a_compute_server_dies),
        cmocka_unit_test(a_memory_server_dies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
