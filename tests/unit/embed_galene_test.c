/* The public API on nodes whose space has homes (engine galene): a thread reads what its node has,
 * and everything else goes by a worker to the key's home. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/embed_cluster.h"

#define NODES 3u
#define KEYS 48u

static struct embed_cluster cluster;
static struct hk_session *at[NODES];

static int open_three(void **state)
{
    (void)state;
    embed_cluster_open_engine(&cluster, NODES, 2, "galene");
    for (uint32_t i = 0; i < NODES; i++) {
        at[i] = embed_cluster_session(&cluster, i);
    }
    return 0;
}

static int close_three(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < NODES; i++) {
        hk_session_close(at[i]);
    }
    embed_cluster_close(&cluster);
    return 0;
}

static const char *name(const char *prefix, uint32_t i)
{
    static char names[8][24];
    static uint32_t next;
    char *key = names[next++ % 8];
    snprintf(key, sizeof names[0], "%s%u", prefix, i);
    return key;
}

static void assert_get(uint32_t node, const char *key, const char *value)
{
    char buffer[64];
    size_t n = 99;
    assert_int_equal(hk_get(at[node], hk_text(key), buffer, sizeof buffer, &n), HK_OK);
    assert_int_equal(n, strlen(value));
    assert_memory_equal(buffer, value, n);
}

static void values_are_found_from_every_node(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < KEYS; i++) {
        const char *key = name("v", i);
        for (uint32_t n = 0; n < NODES; n++) {
            assert_int_equal(hk_get(at[n], hk_text(key), NULL, 0, NULL), HK_ERR_NOTFOUND);
        }
        assert_int_equal(hk_put(at[i % NODES], hk_text(key), hk_text(key), NULL), HK_OK);
        for (uint32_t n = 0; n < NODES; n++) {
            assert_get(n, key, key);
        }
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        const char *key = name("v", i);
        uint32_t n = (i + 1) % NODES;
        assert_int_equal(hk_compare_and_set(at[n], hk_text(key), hk_text(key), hk_text("2"), NULL),
                         HK_OK);
        assert_int_equal(hk_compare_and_set(at[0], hk_text(key), hk_text(key), hk_text("3"), NULL),
                         HK_ERR_CONDITION);
        int64_t sum = 0;
        assert_int_equal(hk_add(at[(i + 2) % NODES], hk_text(key), 5, &sum), HK_OK);
        assert_int_equal(sum, 7);
        assert_get(i % NODES, key, "7");
        assert_int_equal(hk_delete(at[n], hk_text(key)), HK_OK);
        assert_int_equal(hk_delete(at[0], hk_text(key)), HK_ERR_NOTFOUND);
        assert_int_equal(hk_get(at[i % NODES], hk_text(key), NULL, 0, NULL), HK_ERR_NOTFOUND);
    }
}

static void large_values_come_back(void **state)
{
    (void)state;
    size_t size = 3000000;
    char *value = malloc(size);
    char *back = malloc(size);
    assert_true(value != NULL && back != NULL);
    for (size_t i = 0; i < size; i++) {
        value[i] = (char)(i * 31 % 251);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        size_t n = 0;
        const char *key = name("large", i);
        assert_int_equal(hk_put(at[0], hk_text(key), hk_bytes(value, size), NULL), HK_OK);
        for (uint32_t k = 0; k < NODES; k++) {
            memset(back, 0, size);
            assert_int_equal(hk_get(at[k], hk_text(key), back, size, &n), HK_OK);
            assert_int_equal(n, size);
            assert_memory_equal(back, value, size);
        }
    }
    free(value);
    free(back);
}

static void batches_read_from_all_homes(void **state)
{
    (void)state;
    static char keys[KEYS][16];
    static char values[KEYS][16];
    static struct hk_read reads[KEYS];
    for (uint32_t i = 0; i < KEYS; i++) {
        snprintf(keys[i], sizeof keys[i], "batch%u", i);
        if (i % 3 != 0) {
            assert_int_equal(hk_put(at[i % NODES], hk_text(keys[i]), hk_text(keys[i]), NULL),
                             HK_OK);
        }
    }
    for (uint32_t n = 0; n < NODES; n++) {
        for (uint32_t i = 0; i < KEYS; i++) {
            reads[i] = (struct hk_read){
                .key = hk_text(keys[i]), .value = values[i], .capacity = sizeof values[i]};
            memset(values[i], 0, sizeof values[i]);
        }
        assert_int_equal(hk_get_batch(at[n], reads, KEYS), HK_OK);
        for (uint32_t i = 0; i < KEYS; i++) {
            assert_int_equal(reads[i].err, i % 3 != 0 ? HK_OK : HK_ERR_NOTFOUND);
            assert_string_equal(values[i], i % 3 != 0 ? keys[i] : "");
        }
    }
}

static void hear(void *context, const struct hk_result *result)
{
    int64_t *sum = context;
    assert_int_equal(result->err, HK_OK);
    *sum = result->number;
}

/* Updates in flight: those on one key in their order, and a read behind them sees them all. */
static void updates_in_flight_keep_the_order_of_a_key(void **state)
{
    (void)state;
    int64_t sums[8] = {0};
    for (uint32_t i = 0; i < 800; i++) {
        const char *key = name("flight", i % 8);
        int err = hk_add_async(at[1], hk_text(key), 1, hear, &sums[i % 8]);
        if (err == HK_ERR_FULL) {
            assert_int_equal(hk_session_wait(at[1], EMBED_BOUND_MS), HK_OK);
            (void)hk_session_poll(at[1], 16);
            i--;
            continue;
        }
        assert_int_equal(err, HK_OK);
        if (i % 100 == 50) {
            assert_get(1, key, name("", i / 8 + 1));
        }
    }
    while (hk_session_in_flight(at[1]) > 0) {
        assert_int_equal(hk_session_wait(at[1], EMBED_BOUND_MS), HK_OK);
        (void)hk_session_poll(at[1], UINT32_MAX);
    }
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(sums[i], 100);
        assert_get(2, name("flight", i), "100");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_found_from_every_node),
        cmocka_unit_test(large_values_come_back),
        cmocka_unit_test(batches_read_from_all_homes),
        cmocka_unit_test(updates_in_flight_keep_the_order_of_a_key),
    };
    return cmocka_run_group_tests(tests, open_three, close_three);
}
