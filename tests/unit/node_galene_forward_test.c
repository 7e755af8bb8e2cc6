/* Galene's nodes answer for each other: what is cached nowhere is done at its home. In virtual
 * time; the hot set is of no concern here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/slot.h"
#include "engine/galene/galene.h"
#include "node/read.h"
#include "support/node_cluster.h"
#include "support/node_operations.h"

static const struct galene_config galene = {.retry_us = 2000, .rescue_us = 50000};

static struct cluster_config config_of(const uint32_t workers[3], bool ordered, bool exclusive)
{
    struct cluster_config config = {
        .nodes = 3,
        .ops = &galene_ops,
        .engine = &galene,
        .ordered = ordered,
        .hot = {.off = true, .exclusive = exclusive},
        .seed = 11,
    };
    memcpy(config.workers, workers, 3 * sizeof *workers);
    return config;
}

static struct cluster *serve(const struct cluster_config *config)
{
    struct cluster *c = cluster_create(config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    return c;
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct cluster_answer run(struct cluster *c, uint32_t node, struct op op, const char *key)
{
    op.key = text(key);
    return cluster_call(c, node, &op);
}

static struct node_stats stats_of(struct cluster *c, uint32_t node)
{
    struct node_stats stats;
    node_stats(cluster_node(c, node), &stats);
    return stats;
}

static void every_operation_from_every_node(void **state)
{
    (void)state;
    static const uint32_t shapes[3][3] = {{1, 1, 1}, {2, 2, 2}, {3, 1, 2}};
    for (uint32_t i = 0; i < 12; i++) {
        struct cluster_config config = config_of(shapes[i % 3], i % 2 != 0, i >= 6);
        struct cluster *c = serve(&config);
        for (uint32_t k = 0; k < 12; k++) {
            char key[16];
            snprintf(key, sizeof key, "key%u", k);
            cluster_every_operation(c, 3, key);
        }
        uint64_t misses = 0;
        for (uint32_t n = 0; n < 3; n++) {
            struct node_stats s = stats_of(c, n);
            struct store_stats store;
            store_stats(node_store(cluster_node(c, n), 0), &store);
            misses += s.misses;
            assert_int_equal(s.hits, 0);
            assert_int_equal(store.keys, 0); /* and no tombstone is left: nobody else had them */
            assert_int_equal(store.tombstones, 0);
        }
        assert_true(misses > 12 * 40 / 2);
        cluster_destroy(c);
    }
}

static void large_values_travel_both_ways(void **state)
{
    (void)state;
    static char big[700000];
    memset(big, 'x', sizeof big);
    for (int ordered = 0; ordered < 2; ordered++) {
        struct cluster_config config = config_of((const uint32_t[]){2, 1, 2}, ordered != 0, false);
        struct cluster *c = serve(&config);
        for (uint32_t i = 0; i < 6; i++) {
            char key[16];
            snprintf(key, sizeof key, "big%u", i);
            struct op op = {.kind = OP_SET, .value = bytes_of(big, sizeof big)};
            struct op append = {.kind = OP_APPEND, .value = text("yz")};
            assert_int_equal(run(c, i % 3, op, key).kind, ANSWER_OK);
            assert_int_equal(run(c, (i + 1) % 3, append, key).number, sizeof big + 2);
            assert_int_equal(run(c, (i + 2) % 3, (struct op){.kind = OP_GET}, key).n,
                             sizeof big + 2);
        }
        cluster_destroy(c);
    }
}

static bool survivors_serve(struct cluster *c, void *context)
{
    return cluster_serving(c, context);
}

/* What only the dead node had is lost, and says so; all else is as it was. */
static void a_dead_home_loses_its_slots(void **state)
{
    (void)state;
    struct cluster_config config = config_of((const uint32_t[]){2, 2, 2}, false, false);
    struct cluster *c = serve(&config);
    struct slot_home homes[HASH_SLOTS];
    uint64_t version;
    assert_true(node_homes(cluster_node(c, 0), 0, homes, &version));
    char key[16];
    for (uint32_t i = 0; i < 60; i++) {
        snprintf(key, sizeof key, "d%u", i);
        struct op op = {.kind = OP_ADD, .number = i};
        assert_int_equal(run(c, i % 3, op, key).number, i);
    }
    cluster_kill(c, 1);
    cluster_until(c, survivors_serve, NULL, 10000000);
    uint32_t lost = 0;
    for (uint32_t i = 0; i < 60; i++) {
        snprintf(key, sizeof key, "d%u", i);
        struct op op = {.kind = i % 4 == 0 ? OP_GET : OP_ADD};
        struct cluster_answer a = run(c, i % 2 * 2, op, key);
        if (homes[slot_of_key(text(key))].home == 1) {
            assert_int_equal(a.kind, ANSWER_ERROR);
            assert_int_equal(a.number, HK_ERR_LOSTSLOT);
            lost++;
        } else if (op.kind == OP_ADD) {
            assert_int_equal(a.number, i);
        } else {
            assert_int_equal(a.kind, ANSWER_VALUE);
        }
    }
    assert_true(lost > 5 && lost < 55);
    assert_int_equal(stats_of(c, 0).lost_slot + stats_of(c, 2).lost_slot, lost);
    cluster_destroy(c);
}

/* A reader on another thread knows what is here; whether a key is somewhere else only a worker can
 * tell, and in a space where one worker touches a key it may not look. */
static void readers_ask_for_what_is_elsewhere(void **state)
{
    (void)state;
    for (int exclusive = 0; exclusive < 2; exclusive++) {
        struct cluster_config config =
            config_of((const uint32_t[]){2, 2, 2}, false, exclusive != 0);
        struct cluster *c = serve(&config);
        struct node_reader *reader;
        assert_int_equal(node_reader_open(cluster_node(c, 0), &reader), HK_OK);
        uint32_t found = 0;
        for (uint32_t i = 0; i < 30; i++) {
            char key[16];
            snprintf(key, sizeof key, "r%u", i);
            struct node_read read = {.key = text(key)};
            node_read(reader, 0, cluster_now(c), 1, &read);
            assert_int_equal(read.answer, NODE_READ_ASK); /* absent here: is it anywhere? */
            struct op op = {.kind = OP_SET, .value = text("v")};
            assert_int_equal(run(c, i % 3, op, key).kind, ANSWER_OK);
            node_read(reader, 0, cluster_now(c), 1, &read);
            found += read.answer == NODE_READ_FOUND;
            assert_true(read.answer != NODE_READ_ABSENT);
        }
        assert_true(exclusive != 0 ? found == 0 : found > 3 && found < 27);
        node_reader_close(reader);
        cluster_destroy(c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_from_every_node),
        cmocka_unit_test(large_values_travel_both_ways),
        cmocka_unit_test(a_dead_home_loses_its_slots),
        cmocka_unit_test(readers_ask_for_what_is_elsewhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
