/* Transactions and ranges go on while memory servers come and go, and slots move between them:
 * money stays the same, every range meets each row once, and what was written is there. */
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

#define SECOND 1000000u
#define NODES 4u
#define ALL (nodeset_of(NODES) - 1)
#define ROWS 100u

static struct lotus_config lotus;

static struct cluster_config config_of(uint64_t seed, enum lock_policy policy)
{
    lotus = (struct lotus_config){.lock.policy = (uint8_t)policy, .tries_max = 256};
    return (struct cluster_config){.nodes = NODES,
                                   .workers = {2, 2, 2, 2},
                                   .ordered = seed % 2 == 0,
                                   .ops = &lotus_ops,
                                   .engine = &lotus,
                                   .seed = seed};
}

static uint32_t slots_of(struct cluster *c, uint32_t by, uint8_t home)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home h = node_home(cluster_node(c, by), 0, i);
        n += h.state == HOME_STABLE && h.home == home;
    }
    return n;
}

static bool last_has_share(struct cluster *c, void *context)
{
    (void)context;
    return slots_of(c, 0, NODES - 1) == HASH_SLOTS / NODES;
}

static bool last_is_free(struct cluster *c, void *context)
{
    (void)context;
    return node_handed_over(cluster_node(c, NODES - 1));
}

static bool last_is_out(struct cluster *c, void *context)
{
    struct node_status status;
    (void)context;
    node_status(cluster_node(c, 0), cluster_now(c), &status);
    return !nodeset_has(status.view.live, NODES - 1);
}

static uint64_t moves(struct cluster *c)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < NODES - 1; i++) {
        struct node_stats stats;
        node_stats(cluster_node(c, i), &stats);
        n += stats.moves;
    }
    return n;
}

/* ---- Money ---- */

static bool busy_enough(struct cluster *c, void *bank)
{
    (void)c;
    return bank_counts(bank).done > 100;
}

static bool idle(struct cluster *c, void *bank)
{
    (void)c;
    return bank_idle(bank);
}

static void money(uint64_t seed, enum lock_policy policy)
{
    struct bank_config bank_config = {
        .accounts = 16, .clients = 2, .audits = 100, .local = 300, .seed = seed};
    struct bank *bank = bank_create(&bank_config);
    struct cluster_config config = config_of(seed, policy);
    config.client = bank_client(bank);
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10 * SECOND);
    cluster_until(c, last_has_share, NULL, 10 * SECOND);
    for (uint32_t i = 0; i < NODES - 1; i++) {
        bank_open(bank, c, i);
    }
    bank_fill(bank, c);
    bank_run(bank, true);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 200; i++) {
            cluster_step(c, 50);
        }
        worker_hand_over(node_worker(cluster_node(c, NODES - 1), 0));
        cluster_until(c, last_is_free, NULL, 30 * SECOND);
        for (uint32_t i = 0; i < 400; i++) {
            cluster_step(c, 50); /* as a server that leaves: what was asked of it is answered */
        }
        cluster_kill(c, NODES - 1);
        cluster_until(c, last_is_out, NULL, 30 * SECOND);
        cluster_restart(c, NODES - 1);
        cluster_until(c, last_has_share, NULL, 30 * SECOND);
    }
    cluster_until(c, busy_enough, bank, 20 * SECOND);
    bank_run(bank, false);
    cluster_until(c, idle, bank, 20 * SECOND);
    struct bank_counts counts = bank_counts(bank);
    assert_int_equal(counts.lost, 0);
    assert_true(counts.audits > 10);
    assert_true(moves(c) >= 3);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        assert_int_equal(node_home(cluster_node(c, 0), 0, i).state, HOME_STABLE);
    }
    cluster_destroy(c);
    bank_destroy(bank);
}

static void money_stays_while_slots_move(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 2 * LOCK_POLICIES; i++) {
        money(i + 1, (enum lock_policy)(i % LOCK_POLICIES));
    }
}

/* ---- Ranges ---- */

struct rows {
    struct cluster *c;
    uint32_t version[ROWS]; /* of each: what was written last; 0: absent */
    uint32_t present, writes, ranges, refused;
};

static struct bytes key_of(uint32_t i, char key[16])
{
    return bytes_of(key, (uint32_t)snprintf(key, 16, "row-%03u", i));
}

/* Refused where the view changes under it: nothing happened, or a read did. */
static bool is_refused(struct rows *r, uint8_t kind, int64_t number)
{
    if (kind != ANSWER_ERROR) {
        return false;
    }
    r->refused++;
    assert_true(number == HK_ERR_UNAVAILABLE || number == HK_ERR_BUSY || number == HK_ERR_UNKNOWN);
    return true;
}

static void write_row(struct rows *r, uint32_t at, uint32_t i)
{
    char key[16];
    char value[16];
    uint32_t next = r->writes + 1;
    bool remove = r->version[i] != 0 && next % 5 == 0;
    struct op op = {.kind = remove ? OP_DELETE : OP_SET, .key = key_of(i, key)};
    if (!remove) {
        op.value = bytes_of(value, (uint32_t)snprintf(value, sizeof value, "%u", next));
    }
    struct cluster_answer a;
    do {
        a = cluster_call(r->c, at, &op);
    } while (is_refused(r, a.kind, a.number)); /* the same once more is the same */
    r->writes = next;
    r->present += (uint32_t)!remove - (r->version[i] != 0);
    r->version[i] = remove ? 0 : next;
}

/* All rows are counted once, and one is what it was written. */
static void look(struct rows *r, uint32_t at, uint32_t i)
{
    char key[16];
    char value[16];
    struct op ops[] = {
        {.kind = TXN_OP_RANGE_COUNT, .key = bytes_of("row-", 4), .arg = bytes_of("row.", 4)},
        {.kind = OP_GET, .key = key_of(i, key)}};
    struct txn_request txn = {.ops = ops, .ops_n = 2};
    struct cluster_txn_answer a = cluster_transact(r->c, at, 0, &txn);
    if (is_refused(r, a.kind, a.number)) {
        return;
    }
    r->ranges++;
    assert_int_equal(a.answers[0].number, r->present);
    uint32_t n = (uint32_t)snprintf(value, sizeof value, "%u", r->version[i]);
    assert_int_equal(a.answers[1].kind, r->version[i] != 0 ? ANSWER_VALUE : ANSWER_NIL);
    assert_true(r->version[i] == 0 ||
                (a.answers[1].n == n && memcmp(a.answers[1].value, value, n) == 0));
}

static void work(struct rows *r, uint64_t *random)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    uint32_t draw = (uint32_t)(*random >> 33);
    uint32_t at = draw % (NODES - 1);
    if (draw % 4 == 0) {
        look(r, at, draw / 16 % ROWS);
    } else {
        write_row(r, at, draw / 16 % ROWS);
    }
}

static void until(struct rows *r, uint64_t *random, bool (*done)(struct cluster *c, void *context))
{
    uint64_t end = cluster_now(r->c) + 60 * SECOND;
    while (!done(r->c, NULL)) {
        assert_true(cluster_now(r->c) < end);
        work(r, random);
    }
}

static void ranges(uint64_t seed, enum lock_policy policy)
{
    static struct rows rows;
    uint64_t random = seed;
    struct cluster_config config = config_of(seed, policy);
    rows = (struct rows){.c = cluster_create(&config)};
    struct cluster *c = rows.c;
    cluster_until(c, cluster_serving, NULL, 10 * SECOND);
    cluster_until(c, last_has_share, NULL, 10 * SECOND);
    for (uint32_t round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < 100; i++) {
            work(&rows, &random);
        }
        worker_hand_over(node_worker(cluster_node(c, NODES - 1), 0));
        until(&rows, &random, last_is_free);
        cluster_kill(c, NODES - 1);
        until(&rows, &random, last_is_out);
        cluster_restart(c, NODES - 1);
        until(&rows, &random, last_has_share);
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        look(&rows, i % NODES, i);
    }
    assert_true(rows.ranges > 50 && rows.refused < rows.ranges);
    assert_true(moves(c) > ROWS / 8);
    cluster_destroy(c);
}

static void ranges_while_slots_move(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < LOCK_POLICIES; i++) {
        ranges(i + 1, (enum lock_policy)i);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(money_stays_while_slots_move),
        cmocka_unit_test(ranges_while_slots_move),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
