/* The map of memory servers as nodes see it: who has slots by the nodes' roles, what ranges ask of
 * all slots together, and a cluster without any memory server. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/slot.h"
#include "engine/lotus/lotus.h"
#include "node/lotus.h"
#include "support/node_cluster.h"

#define BOUND_US 20000000u

static struct lotus_config lotus;
static uint8_t roles[CLUSTER_NODES_MAX];

static void adjust(struct node_config *config, uint32_t node)
{
    config->role = roles[node];
}

static struct cluster *cluster_of(uint32_t nodes)
{
    struct cluster_config config = {.nodes = nodes,
                                    .workers = {2, 1, 1, 1, 1},
                                    .ops = &lotus_ops,
                                    .engine = &lotus,
                                    .hot = {.off = true},
                                    .adjust = adjust,
                                    .seed = 5};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, BOUND_US);
    return c;
}

/* By a node's map: how many slots are in that state, with that home. */
static uint32_t count(struct cluster *c, uint32_t node, enum home_state state, uint8_t home)
{
    static struct slot_home homes[HASH_SLOTS];
    uint64_t version;
    uint32_t n = 0;
    assert_true(node_homes(cluster_node(c, node), 0, homes, &version));
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        n += homes[i].state == state && homes[i].home == home;
    }
    return n;
}

struct share {
    uint32_t node; /* by whose map */
    uint8_t home;
    uint32_t slots;
};

static bool has_share(struct cluster *c, void *context)
{
    const struct share *s = context;
    return count(c, s->node, HOME_STABLE, s->home) == s->slots;
}

static void until_share(struct cluster *c, struct share share)
{
    cluster_until(c, has_share, &share, BOUND_US);
}

static const struct worker *control(struct cluster *c, uint32_t node)
{
    return node_worker(cluster_node(c, node), 0);
}

static struct cluster_answer get(struct cluster *c, uint32_t node, const char *key)
{
    struct op op = {.kind = OP_GET, .key = bytes_of(key, (uint32_t)strlen(key))};
    return cluster_call(c, node, &op);
}

static void refused_for_roles(struct cluster *c, uint32_t node)
{
    struct cluster_answer a = get(c, node, "k");
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.number, HK_ERR_ROLE);
    struct op op = {.kind = TXN_OP_RANGE};
    struct txn_request txn = {.ops = &op, .ops_n = 1};
    struct cluster_txn_answer t = cluster_transact(c, node, 0, &txn);
    assert_int_equal(t.kind, ANSWER_ERROR);
    assert_int_equal(t.number, HK_ERR_ROLE);
}

static void memory_servers_have_the_slots(void **state)
{
    (void)state;
    memcpy(roles, (uint8_t[]){NODE_ROLE_COMPUTE, NODE_ROLE_BOTH, NODE_ROLE_MEMORY}, 3);
    struct cluster *c = cluster_of(3);
    for (uint32_t node = 0; node < 3; node++) {
        nodeset servers = 0;
        uint64_t version = 0;
        uint32_t lost = UINT32_MAX;
        until_share(c, (struct share){node, 1, HASH_SLOTS / 2});
        assert_int_equal(count(c, node, HOME_STABLE, 2), HASH_SLOTS / 2);
        assert_true(lotus_servers(control(c, node), 0, &servers, &version, &lost));
        assert_int_equal(servers, nodeset_of(1) | nodeset_of(2));
        assert_int_equal(version, node_map_version(cluster_node(c, node), 0));
        assert_int_equal(lost, UINT32_MAX);
        for (uint32_t slot = 0; slot < HASH_SLOTS; slot++) {
            uint8_t home = NODE_NONE;
            assert_int_equal(lotus_where(control(c, node), 0, slot, &home), LOTUS_AT);
            assert_true(home == 1 || home == 2);
            assert_int_equal(lotus_here(control(c, node), 0, slot), home == node);
        }
    }
    assert_int_equal(get(c, 0, "k").kind, ANSWER_NIL);
    assert_int_equal(get(c, 1, "k").kind, ANSWER_NIL);
    refused_for_roles(c, 2);
    cluster_destroy(c);
}

/* A memory server dies: its slots are lost, and ranges hear which; the operator gives them up. */
static void lost_with_their_server(void **state)
{
    (void)state;
    memcpy(roles, (uint8_t[]){NODE_ROLE_BOTH, NODE_ROLE_BOTH, NODE_ROLE_COMPUTE}, 3);
    struct cluster *c = cluster_of(3);
    until_share(c, (struct share){0, 1, HASH_SLOTS / 2});
    cluster_kill(c, 1);
    for (uint32_t i = 0; i < 200000 && count(c, 0, HOME_LOST, 1) == 0; i++) {
        cluster_step(c, 50);
    }
    assert_int_equal(count(c, 0, HOME_LOST, 1), HASH_SLOTS / 2);
    nodeset servers;
    uint64_t version;
    uint32_t lost = UINT32_MAX;
    uint8_t home = NODE_NONE;
    assert_false(lotus_servers(control(c, 0), 0, &servers, &version, &lost));
    assert_true(lost < HASH_SLOTS);
    assert_int_equal(lotus_where(control(c, 0), 0, lost, &home), LOTUS_LOST);
    assert_false(lotus_here(control(c, 0), 0, lost));
    worker_empty_lost(node_worker(cluster_node(c, 0), 0), 0);
    until_share(c, (struct share){0, 0, HASH_SLOTS});
    until_share(c, (struct share){2, 0, HASH_SLOTS});
    assert_true(lotus_servers(control(c, 0), 0, &servers, &version, &lost));
    assert_int_equal(servers, nodeset_of(0));
    cluster_destroy(c);
}

static bool no_taker(struct cluster *c, void *context)
{
    bool wanted = *(const bool *)context;
    return node_no_taker(cluster_node(c, 0), 0) == wanted &&
           node_no_taker(cluster_node(c, 1), 0) == wanted;
}

/* The only memory server dies: the others' maps say that nobody could have its slots, until a
 * process is back that could. */
static void lost_and_nobody_takes_it(void **state)
{
    (void)state;
    bool wanted = true;
    memcpy(roles, (uint8_t[]){NODE_ROLE_COMPUTE, NODE_ROLE_COMPUTE, NODE_ROLE_MEMORY}, 3);
    struct cluster *c = cluster_of(3);
    until_share(c, (struct share){0, 2, HASH_SLOTS});
    assert_false(node_no_taker(cluster_node(c, 0), 0));
    cluster_kill(c, 2);
    cluster_until(c, no_taker, &wanted, BOUND_US);
    assert_int_equal(count(c, 1, HOME_LOST, 2), HASH_SLOTS);
    cluster_restart(c, 2);
    wanted = false;
    cluster_until(c, no_taker, &wanted, BOUND_US);
    assert_int_equal(count(c, 1, HOME_LOST, 2), HASH_SLOTS);
    worker_empty_lost(node_worker(cluster_node(c, 1), 0), 0);
    until_share(c, (struct share){0, 2, HASH_SLOTS});
    cluster_destroy(c);
}

/* All compute: they serve, and no slot is anybody's. A memory server comes and gets them all. */
static void nobody_has_memory(void **state)
{
    (void)state;
    memset(roles, NODE_ROLE_COMPUTE, sizeof roles);
    roles[2] = NODE_ROLE_MEMORY;
    struct cluster *c = cluster_of(3);
    /* The one that has slots dies before there is anything in them, and stays away. */
    until_share(c, (struct share){0, 2, HASH_SLOTS});
    cluster_destroy(c);
    roles[2] = NODE_ROLE_COMPUTE;
    c = cluster_of(3);
    nodeset servers;
    uint64_t version = 0;
    uint32_t lost = UINT32_MAX;
    uint8_t home = NODE_NONE;
    assert_int_equal(count(c, 0, HOME_NONE, NODE_NONE), HASH_SLOTS);
    assert_int_not_equal(node_map_version(cluster_node(c, 0), 0), 0);
    assert_false(lotus_servers(control(c, 0), 0, &servers, &version, &lost));
    assert_int_equal(lost, UINT32_MAX);
    assert_int_equal(lotus_where(control(c, 0), 0, 7, &home), LOTUS_NOBODY);
    refused_for_roles(c, 0);
    cluster_kill(c, 1);
    roles[1] = NODE_ROLE_BOTH;
    cluster_restart(c, 1);
    until_share(c, (struct share){0, 1, HASH_SLOTS});
    until_share(c, (struct share){2, 1, HASH_SLOTS});
    assert_true(lotus_servers(control(c, 2), 0, &servers, &version, &lost));
    assert_int_equal(servers, nodeset_of(1));
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_servers_have_the_slots),
        cmocka_unit_test(lost_with_their_server),
        cmocka_unit_test(lost_and_nobody_takes_it),
        cmocka_unit_test(nobody_has_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
