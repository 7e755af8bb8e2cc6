/* CRAQ on real nodes in virtual time: what clients are promised, and what peers may not break. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/craq/craq.h"
#include "support/node_cluster.h"

static const struct craq_config craq = {.retry_us = 500, .give_up_us = 3000000};

static struct cluster *start(uint32_t nodes, uint32_t w0, uint32_t w1, uint32_t w2)
{
    struct cluster_config config = {
        .nodes = nodes, .workers = {w0, w1, w2}, .ops = &craq_ops, .engine = &craq, .seed = 11};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    return c;
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static struct cluster_answer set(struct cluster *c, uint32_t node, const char *key,
                                 const char *value)
{
    struct op op = {.kind = OP_SET, .key = text(key), .value = text(value)};
    return cluster_call(c, node, &op);
}

static struct cluster_answer get(struct cluster *c, uint32_t node, const char *key)
{
    struct op op = {.kind = OP_GET, .key = text(key)};
    return cluster_call(c, node, &op);
}

static struct cluster_answer add(struct cluster *c, uint32_t node, const char *key)
{
    struct op op = {.kind = OP_ADD, .key = text(key), .number = 1};
    return cluster_call(c, node, &op);
}

static void assert_value(struct cluster_answer a, const char *expected)
{
    assert_int_equal(a.kind, ANSWER_VALUE);
    assert_int_equal(a.n, strlen(expected));
    assert_memory_equal(a.value, expected, a.n);
}

static void use(struct cluster *c, uint32_t nodes)
{
    uint64_t version = 0;
    for (uint32_t i = 0; i < 12; i++) {
        char value[16];
        snprintf(value, sizeof value, "v%u", i);
        struct cluster_answer a = set(c, i % nodes, "a", value);
        assert_int_equal(a.kind, ANSWER_OK);
        assert_true(a.version > version);
        version = a.version;
        for (uint32_t k = 0; k < nodes; k++) {
            a = get(c, (i + k) % nodes, "a");
            assert_value(a, value);
            assert_int_equal(a.version, version);
        }
    }
    for (uint32_t i = 1; i <= 30; i++) {
        assert_int_equal(add(c, i % nodes, "n").number, i);
    }
    struct op del = {.kind = OP_DELETE, .key = text("n")};
    assert_int_equal(cluster_call(c, nodes - 1, &del).number, 1);
    assert_int_equal(cluster_call(c, 0, &del).number, 0);
    struct op blind = {.kind = OP_DELETE, .flags = OPF_BLIND, .key = text("a")};
    assert_int_equal(cluster_call(c, nodes / 2, &blind).kind, ANSWER_OK);
    for (uint32_t k = 0; k < nodes; k++) {
        assert_int_equal(get(c, k, "a").kind, ANSWER_NIL);
        assert_int_equal(get(c, k, "nothing").version, 0);
    }
    assert_int_equal(add(c, nodes - 1, "n").number, 1);
}

static void chains_of_all_lengths(void **state)
{
    (void)state;
    for (uint32_t nodes = 1; nodes <= 3; nodes++) {
        struct cluster *c = start(nodes, 1, 1, 1);
        use(c, nodes);
        cluster_destroy(c);
    }
}

static void nodes_of_different_sizes(void **state)
{
    (void)state;
    struct cluster *c = start(3, 4, 1, 2);
    use(c, 3);
    cluster_destroy(c);
}

static void values_expire(void **state)
{
    (void)state;
    struct cluster *c = start(3, 1, 2, 1);
    struct op op = {.kind = OP_SET,
                    .flags = OPF_DEADLINE,
                    .key = text("t"),
                    .value = text("soon"),
                    .number = (int64_t)*cluster_wall_ms(c) + 1000};
    assert_int_equal(cluster_call(c, 1, &op).kind, ANSWER_OK);
    assert_value(get(c, 2, "t"), "soon");
    *cluster_wall_ms(c) += 1000;
    assert_int_equal(get(c, 2, "t").kind, ANSWER_NIL);
    assert_int_equal(get(c, 0, "t").kind, ANSWER_NIL);
    cluster_destroy(c);
}

static void large_values_pass_down(void **state)
{
    (void)state;
    static uint8_t value[3000000 / 4];
    struct cluster *c = start(3, 1, 1, 1);
    struct op op = {.kind = OP_SET, .key = text("l"), .value = bytes_of(value, sizeof value)};
    struct op length = {.kind = OP_STRLEN, .key = text("l")};
    for (uint32_t i = 0; i < 3; i++) {
        memset(value, 'a' + (int)i, sizeof value);
        op.value.n--;
        assert_int_equal(cluster_call(c, i, &op).kind, ANSWER_OK);
        for (uint32_t k = 0; k < 3; k++) {
            assert_int_equal(cluster_call(c, k, &length).number, op.value.n);
        }
    }
    cluster_destroy(c);
}

static bool so_many_serve(struct cluster *c, void *context)
{
    struct node_status status;
    uint32_t *nodes = context;
    node_status(cluster_node(c, 0), cluster_now(c), &status);
    return nodeset_count(status.view.operational) == *nodes && status.status == VIEW_STATUS_SERVING;
}

/* The head of the chain dies and comes back, and so does its end. */
static void the_chain_mends(void **state)
{
    (void)state;
    struct cluster *c = start(3, 1, 1, 1);
    assert_int_equal(set(c, 1, "k", "before").kind, ANSWER_OK);
    cluster_kill(c, 2);
    uint32_t two = 2;
    cluster_until(c, so_many_serve, &two, 10000000);
    assert_value(get(c, 0, "k"), "before");
    assert_int_equal(set(c, 1, "k", "meanwhile").kind, ANSWER_OK);
    cluster_restart(c, 2);
    cluster_until(c, cluster_serving, NULL, 20000000);
    assert_value(get(c, 2, "k"), "meanwhile");
    cluster_kill(c, 0);
    assert_value(get(c, 1, "k"), "meanwhile");
    cluster_restart(c, 0);
    cluster_until(c, cluster_serving, NULL, 20000000);
    assert_int_equal(set(c, 2, "k", "after").kind, ANSWER_OK);
    for (uint32_t i = 0; i < 3; i++) {
        assert_value(get(c, i, "k"), "after");
    }
    cluster_destroy(c);
}

/* Asynchronous reads need an engine that can confirm them. */
static void asynchronous_reads_are_refused(void **state)
{
    (void)state;
    struct env env = {.context = NULL};
    struct node *node = NULL;
    struct node_config config = {.workers = 1,
                                 .view = {.nonce = 1,
                                          .configured = 1,
                                          .lease_us = 200000,
                                          .margin_us = 20000,
                                          .heartbeat_us = 40000,
                                          .suspect_us = 120000,
                                          .cids_per_member = 4}};
    config.spaces[0] = (struct space_config){
        .ops = &craq_ops, .engine = &craq, .async_reads = true, .store = {.value_bytes_max = 1024}};
    assert_int_equal(node_create(&config, &env, 1, &node), HK_ERR_INVALID);
    config.spaces[0].async_reads = false;
    assert_int_equal(node_create(&config, &env, 1, &node), HK_OK);
    node_destroy(node);
}

/* ---- An engine that repeats and invents outcomes, as a hostile peer's ACKs would ---- */

static void noisy_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
                      const struct event *event, struct effects *fx)
{
    craq_ops.key(meta, ext, mine, spare, event, fx);
    uint32_t n = fx->n;
    for (uint32_t i = 0; i < n; i++) {
        if (fx->e[i].kind == EFF_FLOW) {
            struct effect real = fx->e[i];
            *effects_add(fx, EFF_FLOW) = real;
            struct effect *other = effects_add(fx, EFF_FLOW);
            *other = real;
            other->gen = real.gen + 1; /* whoever has the slot next */
            other = effects_add(fx, EFF_FLOW);
            *other = real;
            other->slot = slot_ref(63, 1);
            *effects_add(fx, EFF_FLOW) = real;
        }
    }
}

struct writer {
    uint32_t session;
    uint32_t sent;
    uint32_t done;
    char key[8];
};

#define WRITES 2000u

static bool writer_request(void *context, uint32_t node, uint32_t worker,
                           struct request *request_out)
{
    struct writer *w = context;
    if (node != 1 || worker != 3 || w->session == SESSION_NONE || w->sent == WRITES ||
        w->sent - w->done >= 64) {
        return false;
    }
    snprintf(w->key, sizeof w->key, "%u", w->sent % 100);
    *request_out = (struct request){
        .session = w->session,
        .tag = w->sent++,
        .op = {.kind = OP_SET, .key = text(w->key), .value = text("v")},
    };
    return true;
}

static void writer_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct writer *w = context;
    assert_true(node == 1 && worker == 3);
    assert_int_equal(reply->tag, w->done);
    assert_int_equal(reply->answer.kind, ANSWER_OK);
    w->done++;
}

static bool all_written(struct cluster *c, void *context)
{
    (void)c;
    return ((struct writer *)context)->done == WRITES;
}

/* Outcomes come to worker 3 by mail of worker 0, each three times, with others that are wrong. */
static void outcomes_are_taken_once(void **state)
{
    (void)state;
    struct engine_ops noisy = craq_ops;
    noisy.key = noisy_key;
    struct writer writer = {.session = SESSION_NONE};
    struct cluster_config config = {
        .nodes = 3,
        .workers = {1, 4, 1},
        .ops = &noisy,
        .engine = &craq,
        .client = {.context = &writer, .request = writer_request, .reply = writer_reply},
        .seed = 12};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    uint32_t session = SESSION_NONE;
    assert_int_equal(worker_session_open(node_worker(cluster_node(c, 1), 3), &session), HK_OK);
    writer.session = session;
    cluster_until(c, all_written, &writer, 100000000);
    struct node_stats stats;
    node_stats(cluster_node(c, 1), &stats);
    assert_true(stats.engine_drops[ENGINE_DROP_SLOT] >= WRITES);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_of_all_lengths),   cmocka_unit_test(nodes_of_different_sizes),
        cmocka_unit_test(values_expire),           cmocka_unit_test(large_values_pass_down),
        cmocka_unit_test(the_chain_mends),         cmocka_unit_test(asynchronous_reads_are_refused),
        cmocka_unit_test(outcomes_are_taken_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
