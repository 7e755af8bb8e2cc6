/* What the process around a node asks about homes, and orders: node_homes, worker_hand_over,
 * worker_empty_lost. The engine is a test's (support/node_homed.h), which carries orders out at
 * once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/slot.h"
#include "support/node_cluster.h"
#include "support/node_homed.h"

static struct homed_config homed;
static uint32_t leaves, empties;

/* What the operator wants is done with the next map; a member that leaves has given everything to
 * node 0. */
static void flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    if (event->kind != EV_SLOTS) {
        homed_ops.flow(mine, event, fx);
        return;
    }
    if (event->code == SLOTS_EMPTY) {
        empties++;
        return;
    }
    assert_int_equal(event->code, SLOTS_LEAVE);
    leaves++;
    homed_all(&homed, event->self, (struct slot_home){0, NODE_NONE, HOME_STABLE});
    (void)effects_add(fx, EFF_LEFT);
}

static struct cluster *cluster_of(const struct engine_ops *ops)
{
    struct cluster_config config = {.nodes = 3,
                                    .workers = {2, 1, 1},
                                    .ops = ops,
                                    .engine = &homed,
                                    .hot = {.off = true},
                                    .seed = 3};
    leaves = empties = 0;
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 5000000);
    return c;
}

static void slots_as_the_map_says(void **state)
{
    static struct slot_home homes[HASH_SLOTS];
    uint64_t version = 0;
    (void)state;
    homed_even(&homed, 3);
    struct cluster *c = cluster_of(&homed_ops);
    cluster_step(c, 100);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t own = 0;
        assert_true(node_homes(cluster_node(c, i), 0, homes, &version));
        assert_int_equal(version, homed.maps[i].version);
        for (uint32_t slot = 0; slot < HASH_SLOTS; slot++) {
            assert_memory_equal(&homes[slot], &homed.maps[i].slots[slot], sizeof homes[slot]);
            own += slot_home_is(homes[slot], (uint8_t)i);
        }
        assert_true(own == HASH_SLOTS / 3 || own == HASH_SLOTS / 3 + 1);
        assert_false(node_handed_over(cluster_node(c, i)));
    }
    /* There is no such space, now or ever. */
    assert_false(node_homes(cluster_node(c, 0), 1, homes, &version));
    assert_false(node_homes(cluster_node(c, 0), SPACES_MAX, homes, &version));
    cluster_destroy(c);
}

static void orders_reach_the_engine(void **state)
{
    static struct slot_home homes[HASH_SLOTS];
    struct engine_ops ops = homed_ops;
    uint64_t version = 0;
    (void)state;
    ops.flow = flow;
    homed_even(&homed, 3);
    struct cluster *c = cluster_of(&ops);
    struct node *node = cluster_node(c, 1);
    struct worker *control = node_worker(node, 0);
    worker_hand_over(control);
    assert_int_equal(leaves, 1);
    /* The node wants to be polled at once, so that the engine can go on. */
    assert_true(worker_deadline(control) <= cluster_now(c));
    assert_true(node_handed_over(node));
    cluster_step(c, 100);
    cluster_step(c, 100);
    assert_true(worker_deadline(control) > cluster_now(c));
    assert_true(node_homes(node, 0, homes, &version));
    for (uint32_t slot = 0; slot < HASH_SLOTS; slot++) {
        assert_false(slot_home_is(homes[slot], 1));
    }
    assert_false(node_handed_over(cluster_node(c, 0)));
    worker_empty_lost(node_worker(cluster_node(c, 0), 0), 0);
    assert_int_equal(empties, 1);
    cluster_destroy(c);
}

/* Where every node has all keys nothing is to be handed over. */
static void nothing_to_hand_over(void **state)
{
    static struct slot_home homes[HASH_SLOTS];
    uint64_t version = 0;
    (void)state;
    struct cluster_config config = {.nodes = 1, .workers = {1}, .seed = 3};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 5000000);
    assert_true(node_handed_over(cluster_node(c, 0)));
    worker_hand_over(node_worker(cluster_node(c, 0), 0));
    assert_false(node_homes(cluster_node(c, 0), 0, homes, &version));
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_as_the_map_says),
        cmocka_unit_test(orders_reach_the_engine),
        cmocka_unit_test(nothing_to_hand_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
