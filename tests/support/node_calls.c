#include "support/node_calls.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define START_US 10000000u

struct bytes calls_text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

struct cluster_config calls_config(uint32_t nodes, uint32_t workers, const struct engine_ops *ops,
                                   const void *engine)
{
    struct cluster_config config = {
        .nodes = nodes, .ops = ops, .engine = engine, .seed = 5 + nodes};
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = workers;
    }
    return config;
}

struct cluster *calls_start(const struct cluster_config *config)
{
    struct cluster *c = cluster_create(config);
    cluster_until(c, cluster_serving, NULL, START_US);
    return c;
}

struct cluster_answer calls_run(struct cluster *c, uint32_t node, uint8_t kind, const char *key,
                                const char *value)
{
    struct op op = {.kind = kind, .key = calls_text(key), .value = calls_text(value)};
    return cluster_call_at(c, node, node % cluster_workers(c, node), &op);
}

void calls_read(struct cluster *c, uint32_t node, const char *key, const char *value)
{
    struct cluster_answer a = calls_run(c, node, OP_GET, key, "");
    assert_int_equal(a.kind, value == NULL ? ANSWER_NIL : ANSWER_VALUE);
    if (value != NULL) {
        assert_int_equal(a.n, strlen(value));
        assert_memory_equal(a.value, value, a.n);
    }
}

struct cluster_txn_answer calls_transact(struct cluster *c, uint32_t node, const struct op *ops,
                                         uint32_t ops_n, uint32_t flags)
{
    struct txn_request txn = {.ops = ops, .ops_n = ops_n, .flags = flags};
    return cluster_transact(c, node, 0, &txn);
}

uint64_t calls_sum(struct cluster *c, uint32_t nodes, size_t offset)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < nodes; i++) {
        struct node_stats s;
        node_stats(cluster_node(c, i), &s);
        sum += *(const uint64_t *)(const void *)((const char *)&s + offset);
    }
    return sum;
}
