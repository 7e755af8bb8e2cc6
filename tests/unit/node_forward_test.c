/* Operations on keys whose home is another node: forwarded, sent on, handed, answered once. The
 * engine is a test's (support/node_homed.h), so that every node's map is what the test says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/slot.h"
#include "support/node_cluster.h"
#include "support/node_homed.h"
#include "support/node_operations.h"

#define NOBODY UINT8_MAX

static struct homed_config homed;

/* ---- A client that asks for much at once ---- */

#define ASKED_MAX 4096u

struct asked {
    uint32_t node, worker, session;
    struct op op;
    char key[16];
    char value[16];
    uint32_t answers;
    uint32_t order; /* which answer of all it was, from 1 on */
    struct answer answer;
    char text[64];
    uint64_t version;
};

static struct asked asked[ASKED_MAX];
static uint32_t asked_n;
static uint32_t answered_n;

static bool client_request(void *context, uint32_t node, uint32_t worker,
                           struct request *request_out)
{
    struct cluster *c = *(struct cluster **)context;
    static uint32_t next[CLUSTER_NODES_MAX][CLUSTER_WORKERS_MAX];
    if (asked_n == 0) {
        memset(next, 0, sizeof next);
        return false;
    }
    for (uint32_t *i = &next[node][worker]; *i < asked_n; (*i)++) {
        struct asked *a = &asked[*i];
        if (a->node != node || a->worker != worker) {
            continue;
        }
        if (!worker_session_ready(node_worker(cluster_node(c, node), worker), a->session)) {
            return false;
        }
        *request_out = (struct request){.session = a->session, .tag = (*i)++, .op = a->op};
        return true;
    }
    return false;
}

static void client_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    (void)context;
    struct asked *a = &asked[reply->tag];
    assert_true(reply->tag < asked_n);
    assert_int_equal(a->node, node);
    assert_int_equal(a->worker, worker);
    assert_int_equal(a->session, reply->session);
    a->answers++;
    a->order = ++answered_n;
    a->answer = reply->answer;
    a->version = reply->version;
    uint32_t n = reply->answer.value.n < sizeof a->text - 1 ? reply->answer.value.n
                                                            : (uint32_t)sizeof a->text - 1;
    if (n > 0) {
        memcpy(a->text, reply->answer.value.at, n);
    }
    a->text[n] = 0;
}

static struct cluster *the_cluster; /* the client's context */

/* ---- Making clusters ---- */

struct shape {
    uint32_t nodes;
    uint32_t workers;
    uint32_t misses_max;
    bool crowd; /* the client above, not cluster_call */
    bool ordered;
    bool exclusive;
    uint64_t rules_off;
    void (*adjust)(struct node_config *config, uint32_t node);
};

static void steps(struct cluster *c, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        cluster_step(c, 100);
    }
}

static struct cluster *cluster_of(struct shape shape)
{
    struct cluster_config config = {
        .nodes = shape.nodes,
        .ops = &homed_ops,
        .engine = &homed,
        .ordered = shape.ordered,
        .hot = {.misses_max = shape.misses_max, .exclusive = shape.exclusive},
        .adjust = shape.adjust,
        .rules_off = shape.rules_off,
        .seed = 7,
    };
    memset(&homed, 0, sizeof homed);
    homed_even(&homed, shape.nodes);
    for (uint32_t i = 0; i < shape.nodes; i++) {
        config.workers[i] = shape.workers;
    }
    asked_n = 0;
    answered_n = 0;
    memset(asked, 0, sizeof asked);
    if (shape.crowd) {
        config.client = (struct cluster_client){
            .context = &the_cluster, .request = client_request, .reply = client_reply};
    }
    struct cluster *c = cluster_create(&config);
    the_cluster = c;
    cluster_until(c, cluster_serving, NULL, 10000000);
    steps(c, 50);
    return c;
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

/* A key whose home is that node by the even map. */
static const char *key_at(uint32_t node, uint32_t nodes, uint32_t which)
{
    static char key[16];
    for (uint32_t i = 0;; i++) {
        snprintf(key, sizeof key, "k%u", i);
        if (slot_of_key(text(key)) * nodes / HASH_SLOTS == node && which-- == 0) {
            return key;
        }
    }
}

static struct node_stats stats_of(struct cluster *c, uint32_t node)
{
    struct node_stats stats;
    node_stats(cluster_node(c, node), &stats);
    return stats;
}

static uint64_t keys_of(struct cluster *c, uint32_t node)
{
    struct store_stats stats;
    store_stats(node_store(cluster_node(c, node), 0), &stats);
    return stats.keys;
}

/* ---- Asking much at once ---- */

static uint32_t session_at(struct cluster *c, uint32_t node, uint32_t worker)
{
    uint32_t session;
    assert_int_equal(worker_session_open(node_worker(cluster_node(c, node), worker), &session),
                     HK_OK);
    return session;
}

static struct asked *ask(uint32_t node, uint32_t worker, uint32_t session, struct op op,
                         const char *key)
{
    struct asked *a = &asked[asked_n];
    assert_true(asked_n < ASKED_MAX);
    *a = (struct asked){.node = node, .worker = worker, .session = session, .op = op};
    snprintf(a->key, sizeof a->key, "%s", key);
    a->op.key = text(a->key);
    if (op.value.n > 0 && op.value.n < sizeof a->value) {
        memcpy(a->value, op.value.at, op.value.n);
        a->op.value = bytes_of(a->value, op.value.n);
    }
    asked_n++;
    return a;
}

static bool all_answered(struct cluster *c, void *context)
{
    (void)c;
    (void)context;
    return answered_n >= asked_n;
}

static void assert_answered_once(void)
{
    for (uint32_t i = 0; i < asked_n; i++) {
        assert_int_equal(asked[i].answers, 1);
    }
}

static struct op op_add(int64_t number)
{
    return (struct op){.kind = OP_ADD, .number = number};
}

static struct op op_set(const char *value)
{
    return (struct op){.kind = OP_SET, .value = text(value)};
}

static const struct op op_get = {.kind = OP_GET};

/* ---- Tests: everything from everywhere ---- */

static struct cluster_answer run(struct cluster *c, uint32_t node, struct op op, const char *key)
{
    op.key = text(key);
    return cluster_call(c, node, &op);
}

static void assert_value(struct cluster_answer a, const char *expected)
{
    assert_int_equal(a.kind, ANSWER_VALUE);
    assert_int_equal(a.n, strlen(expected));
    assert_memory_equal(a.value, expected, a.n);
}

static void assert_number(struct cluster_answer a, int64_t expected)
{
    assert_int_equal(a.kind, ANSWER_NUMBER);
    assert_int_equal(a.number, expected);
}

static void assert_error(struct cluster_answer a, int err)
{
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.number, err);
    assert_int_equal(a.version, 0);
}

static void every_operation_from_every_node(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        struct cluster *c = cluster_of((struct shape){
            .nodes = 3, .workers = 1 + i % 2, .ordered = i >= 2, .exclusive = i == 3});
        for (uint32_t home = 0; home < 3; home++) {
            for (uint32_t which = 0; which < 3; which++) {
                cluster_every_operation(c, 3, key_at(home, 3, which));
            }
        }
        cluster_destroy(c);
    }
}

/* Only the home has an entry, and what it does is what its own clients would see. */
static void only_the_home_keeps_keys(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 2});
    for (uint32_t i = 0; i < 60; i++) {
        char key[16];
        snprintf(key, sizeof key, "n%u", i);
        assert_number(run(c, i % 3, op_add(1), key), 1);
        assert_number(run(c, (i + 1) % 3, op_add(1), key), 2);
    }
    uint64_t sum = 0;
    for (uint32_t n = 0; n < 3; n++) {
        struct node_stats s = stats_of(c, n);
        sum += keys_of(c, n);
        assert_true(keys_of(c, n) > 10);
        assert_int_equal(s.misses + s.at_home, 40);
        assert_int_equal(s.misses, s.answers_in);
        assert_int_equal(s.misses, s.call_messages);
        assert_int_equal(s.forwarded_in, s.answer_messages);
        assert_int_equal(s.hits + s.sent_on + s.handed + s.answers_late, 0);
    }
    assert_int_equal(sum, 60);
    cluster_destroy(c);
}

static void large_values_travel_both_ways(void **state)
{
    (void)state;
    static char big[300000];
    memset(big, 'x', sizeof big);
    for (int ordered = 0; ordered < 2; ordered++) {
        struct cluster *c =
            cluster_of((struct shape){.nodes = 3, .workers = 2, .ordered = ordered != 0});
        const char *key = key_at(2, 3, 0);
        struct op op = {.kind = OP_SET, .value = bytes_of(big, sizeof big)};
        assert_int_equal(run(c, 0, op, key).kind, ANSWER_OK);
        op.flags = OPF_IFEQ | OPF_GET;
        op.arg = op.value;
        op.value = bytes_of(big, sizeof big - 1);
        assert_int_equal(run(c, 1, op, key).n, sizeof big);
        struct cluster_answer a = run(c, 0, op_get, key);
        assert_int_equal(a.kind, ANSWER_VALUE);
        assert_int_equal(a.n, sizeof big - 1);
        cluster_destroy(c);
    }
}

/* ---- Pipelines ---- */

static void pipelines_keep_the_order_of_a_key(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 2, .crowd = true});
    uint32_t sessions[3][2];
    char value[2] = "a";
    for (uint32_t n = 0; n < 3; n++) {
        for (uint32_t w = 0; w < 2; w++) {
            sessions[n][w] = session_at(c, n, w);
        }
    }
    for (uint32_t i = 0; i < 20; i++) {
        for (uint32_t n = 0; n < 3; n++) {
            for (uint32_t w = 0; w < 2; w++) {
                char key[16];
                value[0] = (char)('a' + i);
                snprintf(key, sizeof key, "p%u%u%u", n, w, i % 2);
                struct op append = {.kind = OP_APPEND, .value = bytes_of(value, 1)};
                (void)ask(n, w, sessions[n][w], append, key);
                (void)ask(n, w, sessions[n][w], op_add(1), "sum");
                (void)ask(n, w, sessions[n][w], op_get, key);
            }
        }
    }
    cluster_until(c, all_answered, NULL, 10000000);
    assert_answered_once();
    uint32_t last[3][2] = {{0}};
    int64_t sum = 0;
    for (uint32_t i = 0; i < asked_n; i++) {
        const struct asked *a = &asked[i];
        assert_true(a->order > last[a->node][a->worker]); /* answers in their order */
        last[a->node][a->worker] = a->order;
        uint32_t length = i / 18 / 2 + 1;
        if (a->op.kind == OP_APPEND) {
            assert_int_equal(a->answer.number, length);
        } else if (a->op.kind == OP_GET) {
            assert_int_equal(strlen(a->text), length);
            assert_int_equal(a->text[length - 1], 'a' + (char)(i / 18));
        } else {
            sum = a->answer.number > sum ? a->answer.number : sum;
        }
    }
    assert_int_equal(sum, 120);
    cluster_destroy(c);
}

/* Frames of lanes are lost, doubled and late: each call is executed once all the same. */
static void calls_are_executed_once(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 2, .crowd = true});
    cluster_disturb(c, (struct cluster_faults){.lost = 100, .doubled = 200, .hasty = 200});
    for (uint32_t n = 0; n < 3; n++) {
        uint32_t session = session_at(c, n, n % 2);
        for (uint32_t i = 0; i < 100; i++) {
            char key[16];
            snprintf(key, sizeof key, "s%u", i % 5);
            (void)ask(n, n % 2, session, op_add(1), key);
        }
    }
    cluster_until(c, all_answered, NULL, 20000000);
    assert_answered_once();
    bool seen[5][61] = {{false}};
    for (uint32_t i = 0; i < asked_n; i++) {
        assert_int_equal(asked[i].answer.kind, ANSWER_NUMBER);
        bool *cell = &seen[i % 5][asked[i].answer.number];
        assert_false(*cell);
        *cell = true;
    }
    cluster_destroy(c);
}

/* ---- Credits ---- */

static void calls_beyond_the_credits_wait_in_order(void **state)
{
    (void)state;
    struct cluster *c =
        cluster_of((struct shape){.nodes = 3, .workers = 1, .crowd = true, .misses_max = 4});
    homed.delay_us = 3000;
    uint32_t session = session_at(c, 0, 0);
    for (uint32_t i = 0; i < 20; i++) {
        (void)ask(0, 0, session, op_set("x"), key_at(1, 3, i));
    }
    uint64_t before = stats_of(c, 0).call_messages;
    steps(c, 10);
    assert_int_equal(stats_of(c, 0).call_messages - before, 4);
    assert_int_equal(stats_of(c, 0).credit_waits, 16);
    /* Another home has credits of its own. */
    struct asked *other = ask(0, 0, session_at(c, 0, 0), op_get, key_at(2, 3, 0));
    steps(c, 10);
    assert_int_equal(other->answers, 1);
    cluster_until(c, all_answered, NULL, 1000000);
    assert_answered_once();
    assert_int_equal(stats_of(c, 0).call_messages - before, 21);
    assert_int_equal(stats_of(c, 1).credit_excess, 0);
    /* In the order of asking: the home's versions are of its own clock, so look at the steps. */
    for (uint32_t i = 1; i < 20; i++) {
        assert_int_equal(asked[i].answer.kind, ANSWER_OK);
    }
    cluster_destroy(c);
}

static void misers_home(struct node_config *config, uint32_t node)
{
    config->spaces[0].hot.misses_max = node == 1 ? 2 : 16;
}

/* A node that sends more than its home allows is told "again": bounded memory there, and the calls
 * are done all the same. */
static void what_exceeds_the_credits_is_tried_again(void **state)
{
    (void)state;
    struct cluster *c =
        cluster_of((struct shape){.nodes = 3, .workers = 1, .crowd = true, .adjust = misers_home});
    homed.delay_us = 1000;
    uint32_t session = session_at(c, 0, 0);
    for (uint32_t i = 0; i < 16; i++) {
        (void)ask(0, 0, session, op_add(1), key_at(1, 3, i));
    }
    cluster_until(c, all_answered, NULL, 2000000);
    assert_answered_once();
    for (uint32_t i = 0; i < asked_n; i++) {
        assert_int_equal(asked[i].answer.number, 1);
    }
    assert_true(stats_of(c, 1).credit_excess > 0);
    assert_int_equal(stats_of(c, 1).credit_excess, stats_of(c, 0).answers_again);
    assert_int_equal(stats_of(c, 1).forwarded_in, 16);
    cluster_destroy(c);
}

/* ---- Ends ---- */

static bool only_survivors(struct cluster *c, void *context)
{
    return cluster_serving(c, context);
}

static void lose_slots(struct cluster *c, uint32_t nodes, uint32_t dead)
{
    for (uint32_t n = 0; n < nodes; n++) {
        struct homed_map *map = &homed.maps[n];
        map->version++;
        for (uint32_t i = 0; i < HASH_SLOTS; i++) {
            if (map->slots[i].home == dead) {
                map->slots[i] =
                    (struct slot_home){.home = NOBODY, .to = NOBODY, .state = HOME_LOST};
            }
        }
    }
    steps(c, 20);
}

/* F2. Updates that the dead home may have executed are unknown; reads start anew, and find the slot
 * lost; calls that were not sent yet too. */
static void a_dead_home_leaves_updates_unknown(void **state)
{
    (void)state;
    struct cluster *c =
        cluster_of((struct shape){.nodes = 3, .workers = 1, .crowd = true, .misses_max = 4});
    homed.delay_us = 60000000;
    uint32_t session = session_at(c, 0, 0);
    for (uint32_t i = 0; i < 3; i++) {
        (void)ask(0, 0, session, op_set("x"), key_at(1, 3, i));
    }
    steps(c, 10);
    cluster_kill(c, 1);
    (void)ask(0, 0, session_at(c, 0, 0), op_get, key_at(1, 3, 9));
    for (uint32_t i = 10; i < 14; i++) {
        (void)ask(0, 0, session_at(c, 0, 0), op_set("x"), key_at(1, 3, i));
    }
    steps(c, 10);
    assert_int_equal(answered_n, 0);
    cluster_until(c, only_survivors, NULL, 5000000);
    steps(c, 10);
    lose_slots(c, 3, 1);
    cluster_until(c, all_answered, NULL, 1000000);
    assert_answered_once();
    for (uint32_t i = 0; i < asked_n; i++) {
        assert_int_equal(asked[i].answer.kind, ANSWER_ERROR);
        bool lost = i == 3 || i >= 4; /* the read, and what had no credit */
        assert_int_equal(asked[i].answer.number, lost ? HK_ERR_LOSTSLOT : HK_ERR_UNKNOWN);
    }
    assert_int_equal(stats_of(c, 0).lost_slot, 5);
    homed.delay_us = 0;
    struct asked *a = ask(0, 0, session, op_set("y"), key_at(2, 3, 0));
    cluster_until(c, all_answered, NULL, 1000000);
    assert_int_equal(a->answer.kind, ANSWER_OK);
    cluster_destroy(c);
}

static void patient_home(struct node_config *config, uint32_t node)
{
    config->answer_us = node == 1 ? 20000000 : 5000000;
}

/* The client does not wait for ever. The answer that comes later gives its credit back, and is
 * nobody's. */
static void a_slow_home_times_out(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){
        .nodes = 3, .workers = 2, .crowd = true, .misses_max = 3, .adjust = patient_home});
    uint64_t before = stats_of(c, 0).answers_in;
    homed.delay_us = 7000000;
    for (uint32_t i = 0; i < 3; i++) {
        (void)ask(0, 1, session_at(c, 0, 1), op_set("x"), key_at(1, 3, i));
    }
    struct asked *waits = ask(0, 1, session_at(c, 0, 1), op_get, key_at(1, 3, 3));
    cluster_until(c, all_answered, NULL, 6000000);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(asked[i].answer.number, HK_ERR_UNKNOWN);
    }
    assert_int_equal(waits->answer.number, HK_ERR_BUSY); /* it was not even sent */
    assert_int_equal(stats_of(c, 0).unknown, 3);
    assert_int_equal(stats_of(c, 0).answers_in, before);
    /* No credit is free before. */
    struct asked *next = ask(0, 1, session_at(c, 0, 1), op_get, key_at(1, 3, 0));
    steps(c, 1000);
    assert_int_equal(next->answers, 0);
    cluster_until(c, all_answered, NULL, 3000000);
    assert_string_equal(next->text, "x");
    steps(c, 20);
    assert_int_equal(stats_of(c, 0).answers_in, before + 4);
    assert_answered_once();
    cluster_destroy(c);
}

static void closed_sessions_are_not_answered(void **state)
{
    (void)state;
    struct cluster *c =
        cluster_of((struct shape){.nodes = 3, .workers = 1, .crowd = true, .misses_max = 2});
    homed.delay_us = 5000;
    uint32_t session = session_at(c, 0, 0);
    for (uint32_t i = 0; i < 5; i++) {
        (void)ask(0, 0, session, op_set("x"), key_at(1, 3, i));
    }
    steps(c, 10);
    worker_session_close(node_worker(cluster_node(c, 0), 0), session);
    steps(c, 200);
    assert_int_equal(answered_n, 0);
    assert_int_equal(keys_of(c, 1), 2); /* those that had been sent */
    homed.delay_us = 0;
    asked_n = 0;
    steps(c, 1); /* the client begins anew */
    session = session_at(c, 0, 0);
    for (uint32_t i = 0; i < 6; i++) {
        (void)ask(0, 0, session, op_add(1), key_at(1, 3, 20 + i));
    }
    cluster_until(c, all_answered, NULL, 1000000);
    assert_answered_once();
    cluster_destroy(c);
}

static void destroyed_nodes_answer_once(void **state)
{
    (void)state;
    struct cluster *c =
        cluster_of((struct shape){.nodes = 3, .workers = 1, .crowd = true, .misses_max = 2});
    homed.delay_us = 50000;
    uint32_t session = session_at(c, 0, 0);
    uint32_t other = session_at(c, 0, 0);
    (void)ask(0, 0, session, op_set("x"), key_at(1, 3, 0));
    (void)ask(0, 0, session, op_set("x"), key_at(1, 3, 1));
    (void)ask(0, 0, session, op_set("x"), key_at(1, 3, 2)); /* waits for a credit */
    (void)ask(0, 0, other, op_add(1), key_at(1, 3, 0));     /* as well */
    steps(c, 10);
    cluster_destroy(c); /* the homes are destroyed with calls of others as well */
    assert_answered_once();
    assert_int_equal(asked[0].answer.number, HK_ERR_UNKNOWN);
    assert_int_equal(asked[1].answer.number, HK_ERR_UNKNOWN);
    assert_int_equal(asked[2].answer.number, HK_ERR_UNAVAILABLE);
    assert_int_equal(asked[3].answer.number, HK_ERR_UNAVAILABLE);
}

/* The origin dies: what it had asked for is executed, or not, and nobody is told. */
static void a_dead_origin_leaves_nothing_behind(void **state)
{
    (void)state;
    struct cluster *c =
        cluster_of((struct shape){.nodes = 3, .workers = 1, .crowd = true, .misses_max = 4});
    homed.delay_us = 3000000;
    uint32_t session = session_at(c, 0, 0);
    for (uint32_t i = 0; i < 4; i++) {
        (void)ask(0, 0, session, op_set("x"), key_at(1, 3, i));
    }
    steps(c, 10);
    cluster_kill(c, 0);
    cluster_until(c, only_survivors, NULL, 5000000);
    steps(c, 30000);
    assert_int_equal(stats_of(c, 1).answer_messages, 0);
    assert_int_equal(keys_of(c, 1), 4);
    cluster_destroy(c);
}

/* ---- Maps that differ ---- */

static struct slot_home stable(uint32_t home)
{
    return (struct slot_home){.home = (uint8_t)home, .to = NOBODY, .state = HOME_STABLE};
}

static struct slot_home moving(uint32_t home, uint32_t to)
{
    return (struct slot_home){.home = (uint8_t)home, .to = (uint8_t)to, .state = HOME_MOVING};
}

/* F1. */
static void who_is_not_the_home_sends_on(void **state)
{
    (void)state;
    for (int ordered = 0; ordered < 2; ordered++) {
        struct cluster *c =
            cluster_of((struct shape){.nodes = 4, .workers = 2, .ordered = ordered != 0});
        homed_all(&homed, 0, stable(1));
        homed_all(&homed, 1, stable(2));
        homed_all(&homed, 2, stable(3));
        homed_all(&homed, 3, stable(3));
        steps(c, 20);
        cluster_every_operation(c, 3, "far");
        assert_int_equal(keys_of(c, 0) + keys_of(c, 1) + keys_of(c, 2), 0);
        assert_true(stats_of(c, 1).sent_on > 0);
        assert_true(stats_of(c, 2).sent_on > 0);
        assert_int_equal(stats_of(c, 0).answers_late, 0);
        cluster_destroy(c);
    }
}

/* Two nodes that take each other for the home: calls go round, and wait, until the maps agree. */
static void calls_do_not_go_round_for_ever(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 1, .crowd = true});
    homed_all(&homed, 0, stable(1));
    homed_all(&homed, 1, stable(2));
    homed_all(&homed, 2, stable(1));
    steps(c, 20);
    struct asked *a = ask(0, 0, session_at(c, 0, 0), op_add(1), "round");
    struct asked *b = ask(1, 0, session_at(c, 1, 0), op_add(1), "round");
    struct asked *r = ask(2, 0, session_at(c, 2, 0), op_get, "round");
    steps(c, 200);
    assert_int_equal(answered_n, 0);
    assert_true(stats_of(c, 0).answers_again > 2);
    assert_true(stats_of(c, 0).answers_again < 20); /* it waits between two tries */
    homed_all(&homed, 1, stable(1));
    cluster_until(c, all_answered, NULL, 1000000);
    assert_int_equal(a->answer.number + b->answer.number, 3);
    assert_true(r->answer.kind != ANSWER_ERROR);
    cluster_destroy(c);
}

/* The origin knows who has its call, and gives it up when that node is gone. */
static void the_last_holder_dies(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 4, .workers = 1, .crowd = true});
    homed_all(&homed, 0, stable(1));
    homed_all(&homed, 1, stable(2));
    homed_all(&homed, 2, stable(2));
    homed.delay_us = 60000000;
    steps(c, 20);
    struct asked *a = ask(0, 0, session_at(c, 0, 0), op_add(1), "held");
    steps(c, 20);
    assert_int_equal(stats_of(c, 1).sent_on, 1);
    cluster_kill(c, 2);
    cluster_until(c, all_answered, NULL, 2000000); /* long before its time is over */
    assert_int_equal(a->answer.number, HK_ERR_UNKNOWN);
    cluster_destroy(c);
}

/* F3: what the old home has not any more is executed at the new one, whose map is older. */
static void the_old_home_hands_on(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 2});
    for (uint32_t n = 0; n < 3; n++) {
        homed_all(&homed, n, stable(0));
    }
    steps(c, 20);
    assert_number(run(c, 1, op_add(1), "stays"), 1);
    for (uint32_t later = 0; later < 2; later++) {
        homed_all(&homed, later, moving(0, 2));
        steps(c, 20);
        for (uint32_t n = 0; n < 2; n++) {
            assert_number(run(c, n, op_add(1), "stays"), 2 + 2 * later + n);
            assert_number(run(c, n, op_add(1), "goes"), 1 + 2 * later + n);
        }
        assert_int_equal(run(c, 1, op_get, "absent").kind, ANSWER_NIL);
    }
    assert_int_equal(keys_of(c, 0), 1);
    assert_int_equal(keys_of(c, 2), 1);
    /* At the new home itself: its map sends it to the old one, which hands it back. */
    assert_number(run(c, 2, op_add(1), "goes"), 5);
    assert_number(run(c, 2, op_add(1), "stays"), 6);
    assert_number(run(c, 2, op_add(1), "another"), 1);
    assert_true(stats_of(c, 0).handed >= 7);
    /* It has entries of its own, which it answers from. */
    assert_int_equal(keys_of(c, 2), 2);
    cluster_destroy(c);
}

/* Whether there are two copies: an old home that makes an entry although the key may have moved. */
static bool the_old_home_keeps_one(uint64_t rules_off)
{
    struct cluster *c =
        cluster_of((struct shape){.nodes = 3, .workers = 1, .rules_off = rules_off});
    homed_all(&homed, 2, stable(2)); /* it has got the key, and knows the next map already */
    homed_all(&homed, 0, moving(0, 2));
    steps(c, 20);
    assert_number(run(c, 2, op_add(1), "gone"), 1);
    int64_t sum = run(c, 0, op_add(1), "gone").number;
    cluster_destroy(c);
    return sum != 2;
}

/* A handed call that comes when the key has moved on: the map here is newer, and right. */
static bool a_handed_call_beats_a_newer_map(uint64_t rules_off)
{
    struct cluster *c =
        cluster_of((struct shape){.nodes = 3, .workers = 1, .rules_off = rules_off});
    homed_all(&homed, 0, moving(0, 1));
    homed.maps[1].version = 50;
    homed_all(&homed, 1, stable(2));
    homed_all(&homed, 2, stable(2));
    steps(c, 20);
    assert_number(run(c, 0, op_add(1), "on"), 1);
    bool beats = keys_of(c, 1) != 0;
    assert_int_equal(keys_of(c, 2), beats ? 0 : 1);
    assert_int_equal(stats_of(c, 1).sent_on, beats ? 0 : 1);
    cluster_destroy(c);
    return beats;
}

/* F2: the holder has sent the call on and dies before the origin hears of it. */
static bool an_update_is_done_twice(uint64_t rules_off)
{
    struct cluster *c =
        cluster_of((struct shape){.nodes = 4, .workers = 1, .crowd = true, .rules_off = rules_off});
    homed_all(&homed, 0, stable(1));
    homed_all(&homed, 1, stable(2));
    homed_all(&homed, 2, stable(2));
    homed.delay_us = 1500000;
    steps(c, 20);
    struct asked *a = ask(0, 0, session_at(c, 0, 0), op_add(1), "twice");
    cluster_cut(c, 1, 0, true);
    steps(c, 20);
    assert_int_equal(stats_of(c, 1).sent_on, 1);
    cluster_kill(c, 1);
    homed_all(&homed, 0, stable(2));
    cluster_until(c, all_answered, NULL, 4000000);
    bool again = a->answer.kind == ANSWER_NUMBER;
    assert_int_equal(a->answer.number, again ? 2 : HK_ERR_UNKNOWN);
    cluster_destroy(c);
    return again;
}

static void rules_hold(void **state)
{
    (void)state;
    assert_false(the_old_home_keeps_one(0));
    assert_false(a_handed_call_beats_a_newer_map(0));
    assert_false(an_update_is_done_twice(0));
#ifdef HK_MUTANTS
    assert_true(the_old_home_keeps_one((uint64_t)1 << NODE_RULE_MOVING_GATE));
    assert_true(a_handed_call_beats_a_newer_map((uint64_t)1 << NODE_RULE_HANDED_MAP));
    assert_true(an_update_is_done_twice((uint64_t)1 << NODE_RULE_FORWARD_ONCE));
#endif
}

static void lost_slots_say_so(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 1});
    struct slot_home lost = {.home = NOBODY, .to = NOBODY, .state = HOME_LOST};
    assert_number(run(c, 0, op_add(1), key_at(0, 3, 0)), 1);
    for (uint32_t n = 0; n < 3; n++) {
        lost.state = n == 2 ? HOME_EMPTYING : HOME_LOST;
        homed_all(&homed, n, lost);
        steps(c, 20);
        assert_error(run(c, n, op_get, key_at(0, 3, 1)), HK_ERR_LOSTSLOT);
        assert_error(run(c, n, op_set("x"), key_at(2, 3, 0)), HK_ERR_LOSTSLOT);
    }
    assert_value(run(c, 0, op_get, key_at(0, 3, 0)), "1"); /* an entry is an entry */
    /* By another node's map the home is here, by this node's it is lost. */
    homed_all(&homed, 1, stable(2));
    steps(c, 20);
    assert_error(run(c, 1, op_set("x"), key_at(2, 3, 0)), HK_ERR_LOSTSLOT);
    assert_int_equal(stats_of(c, 1).lost_slot, 3);
    cluster_destroy(c);
}

static void without_a_map_calls_wait(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 1, .crowd = true});
    homed_all(&homed, 0, (struct slot_home){.home = NOBODY, .to = NOBODY, .state = HOME_NONE});
    steps(c, 20);
    struct asked *a = ask(0, 0, session_at(c, 0, 0), op_add(1), "early");
    steps(c, 100);
    assert_int_equal(answered_n, 0);
    homed_all(&homed, 0, stable(0));
    cluster_until(c, all_answered, NULL, 1000000);
    assert_int_equal(a->answer.number, 1);
    cluster_destroy(c);
}

/* ---- One worker a key ---- */

static uint64_t key_steps(struct cluster *c, uint32_t node, uint32_t worker)
{
    return worker_stats(node_worker(cluster_node(c, node), worker))->key_steps;
}

static void one_worker_touches_a_key(void **state)
{
    (void)state;
    for (uint32_t differ = 0; differ < 2; differ++) {
        struct cluster_config config = {.nodes = 3,
                                        .workers = {4, differ != 0 ? 3 : 4, 4},
                                        .ops = &homed_ops,
                                        .engine = &homed,
                                        .hot = {.exclusive = true, .off = true},
                                        .seed = 3};
        memset(&homed, 0, sizeof homed);
        homed_even(&homed, 3);
        struct cluster *c = cluster_create(&config);
        cluster_until(c, cluster_serving, NULL, 10000000);
        steps(c, 50);
        uint32_t busy[4] = {0};
        for (uint32_t which = 0; which < 40; which++) {
            const char *key = key_at(1, 3, which);
            uint64_t before[4];
            for (uint32_t k = 0; k < config.workers[1]; k++) {
                before[k] = key_steps(c, 1, k);
            }
            for (uint32_t i = 0; i < 12; i++) {
                struct op add = op_add(1);
                add.key = text(key);
                uint32_t worker = i % config.workers[i % 3];
                assert_number(cluster_call_at(c, i % 3, worker, &add), i + 1);
                struct op get = {.kind = OP_GET, .key = text(key)};
                assert_int_equal(cluster_call_at(c, i % 3, worker, &get).kind, ANSWER_VALUE);
            }
            uint32_t touched = 0;
            for (uint32_t k = 0; k < config.workers[1]; k++) {
                bool steps_here = key_steps(c, 1, k) > before[k];
                touched += steps_here;
                busy[k] += steps_here;
            }
            assert_int_equal(touched, 1);
        }
        for (uint32_t k = 0; k < config.workers[1]; k++) {
            assert_true(busy[k] >= 3); /* all of them have keys */
        }
        cluster_destroy(c);
    }
}

/* ---- The rest of the node, where keys have homes ---- */

static void count_key(void *context, struct bytes key)
{
    uint32_t *counts = context;
    assert_true(key.n == 2 && key.at[0] == 'w');
    counts[key.at[1] - 'a']++;
}

static void walk_all(struct cluster *c, uint32_t *counts)
{
    for (uint32_t n = 0; n < 3; n++) {
        uint64_t cursor = 0;
        do {
            cursor = worker_walk(node_worker(cluster_node(c, n), 0), 0, cursor, count_key, counts);
        } while (cursor != 0);
    }
}

static void walks_tell_each_key_at_its_home(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 1});
    char key[3] = "wa";
    for (uint32_t i = 0; i < 26; i++) {
        key[1] = (char)('a' + i);
        assert_int_equal(run(c, i % 3, op_set("x"), key).kind, ANSWER_OK);
    }
    uint32_t counts[26] = {0};
    walk_all(c, counts);
    for (uint32_t i = 0; i < 26; i++) {
        assert_int_equal(counts[i], 1);
    }
    /* Half of the way: every key is told of by whoever may have it. */
    uint64_t at_0 = keys_of(c, 0);
    for (uint32_t n = 0; n < 3; n++) {
        homed_all(&homed, n, moving(0, 1));
    }
    steps(c, 20);
    memset(counts, 0, sizeof counts);
    walk_all(c, counts);
    uint64_t told = 0;
    for (uint32_t i = 0; i < 26; i++) {
        told += counts[i];
    }
    assert_int_equal(told, at_0 + keys_of(c, 1));
    cluster_destroy(c);
}

static uint64_t tombstones_of(struct cluster *c, uint32_t node)
{
    struct store_stats stats;
    store_stats(node_store(cluster_node(c, node), 0), &stats);
    return stats.tombstones;
}

/* Values past their deadline are deleted by their home, whatever their hash designates. */
static void the_home_deletes_what_expired(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 1});
    struct op op = op_set("x");
    op.flags = OPF_DEADLINE;
    op.number = (int64_t)(*cluster_wall_ms(c) + 3000);
    for (uint32_t i = 0; i < 30; i++) {
        assert_int_equal(run(c, i % 3, op, key_at(i % 2, 3, i)).kind, ANSWER_OK);
    }
    steps(c, 60000);
    assert_int_equal(tombstones_of(c, 0), 15);
    assert_int_equal(tombstones_of(c, 1), 15);
    /* Not where the map says that the home is elsewhere. */
    op.number = (int64_t)(*cluster_wall_ms(c) + 100);
    assert_int_equal(run(c, 1, op, key_at(1, 3, 100)).kind, ANSWER_OK);
    homed_all(&homed, 1, stable(0));
    steps(c, 30000);
    assert_int_equal(tombstones_of(c, 1), 15);
    cluster_destroy(c);
}

/* A full member refuses what its own home would take, and nobody else does. */
static void a_full_home_refuses_for_itself(void **state)
{
    (void)state;
    static char block[4000];
    struct cluster_config config = {.nodes = 3,
                                    .workers = {1, 1, 1},
                                    .ops = &homed_ops,
                                    .engine = &homed,
                                    .memory_max = 64u << 20,
                                    .memory_max_last = 2u << 20,
                                    .seed = 4};
    memset(&homed, 0, sizeof homed);
    homed_even(&homed, 3);
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    steps(c, 50);
    struct op op = {.kind = OP_SET, .value = bytes_of(block, sizeof block)};
    uint32_t taken = 0;
    while (run(c, 0, op, key_at(2, 3, taken)).kind == ANSWER_OK) {
        taken++;
        assert_true(taken < 1000);
    }
    assert_true(taken > 100);
    steps(c, 100);
    assert_error(run(c, 0, op, key_at(2, 3, taken)), HK_ERR_NOMEM);
    assert_error(run(c, 2, op, key_at(2, 3, taken)), HK_ERR_NOMEM);
    for (uint32_t n = 0; n < 3; n++) {
        assert_int_equal(run(c, n, op, key_at(1, 3, n)).kind, ANSWER_OK);
        assert_int_equal(run(c, n, op, key_at(0, 3, n)).kind, ANSWER_OK);
    }
    struct op del = {.kind = OP_DELETE};
    assert_number(run(c, 1, del, key_at(2, 3, 0)), 1);
    cluster_destroy(c);
}

/* ---- Hostile peers ---- */

static void inject(struct cluster *c, uint32_t from, uint32_t to, const struct msg *msgs,
                   uint32_t n)
{
    static uint8_t out[65536];
    struct node_status status;
    node_status(cluster_node(c, from), cluster_now(c), &status);
    uint32_t body = 0;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(FRAME_HEADER + body + msg_size(&msgs[i]) <= sizeof out);
        msg_encode(&msgs[i], out + FRAME_HEADER + body);
        body += msg_size(&msgs[i]);
    }
    struct frame f = {.version = FRAME_VERSION,
                      .kind = FRAME_BATCH,
                      .source = (uint8_t)from,
                      .target = (uint8_t)to,
                      .epoch = status.view.epoch,
                      .cluster = 77,
                      .generation = status.view.generation,
                      .nonce = cluster_nonce(c, from),
                      .target_nonce = cluster_nonce(c, to),
                      .bare = true,
                      .body = {.n = body}};
    uint32_t bytes = frame_seal(&f, out);
    cluster_inject(c, to, 0, bytes_of(out, bytes));
}

static struct msg call_from(struct cluster *c, uint32_t node, uint8_t kind, uint32_t slot)
{
    return (struct msg){.kind = MSG_CALL,
                        .slot = slot,
                        .gen = 1,
                        .arg = (uint32_t)cluster_nonce(c, node) | (uint64_t)kind << 32 |
                               (uint64_t)node << 40,
                        .key = text("hostile"),
                        .value = text("v")};
}

static void hostile_messages_do_no_harm(void **state)
{
    (void)state;
    struct cluster *c = cluster_of((struct shape){.nodes = 3, .workers = 2, .ordered = true});
    homed_all(&homed, 0, stable(0));
    steps(c, 20);
    struct msg m[8];
    uint64_t drops = stats_of(c, 0).node_drops[NODE_DROP_MESSAGE];
    for (uint32_t i = 0; i < 8; i++) {
        m[i] = call_from(c, 1, OP_SET, slot_ref(0, 1));
    }
    m[0].flags = 0x80;                              /* no such flag */
    m[1].arg |= 0xffull << 32;                      /* no such operation */
    m[2].flags = 0x10;                              /* an argument that is cut */
    m[3].space = 9;                                 /* no such space */
    m[4].arg ^= 1;                                  /* another process */
    m[5] = call_from(c, 0, OP_SET, slot_ref(9, 1)); /* for a worker that this node has not */
    m[6].arg |= (uint64_t)OPF_GT << 48;             /* flags that mean nothing: an answer says so */
    m[7] = call_from(c, 1, OP_SET, slot_ref(77, 1)); /* no worker anywhere */
    inject(c, 1, 0, m, 8);
    steps(c, 20);
    struct node_stats s = stats_of(c, 0);
    assert_int_equal(s.node_drops[NODE_DROP_MESSAGE] - drops, 3);
    assert_int_equal(s.node_drops[NODE_DROP_SPACE], 1);
    assert_int_equal(s.node_drops[NODE_DROP_SENDER], 3);
    assert_int_equal(s.forwarded_in, 0);
    assert_int_equal(s.answer_messages, 1);
    assert_int_equal(stats_of(c, 1).answers_late, 1);
    assert_int_equal(keys_of(c, 0), 0);
    /* Answers to nothing. */
    struct msg answers[6] = {
        {.kind = MSG_ANSWER, .slot = slot_ref(0, 1), .gen = 1},
        {.kind = MSG_ANSWER, .slot = slot_ref(0, 1 << 23), .gen = 1},
        {.kind = MSG_ANSWER, .slot = 0, .gen = 1},
        {.kind = MSG_ANSWER, .slot = slot_ref(1, 1), .gen = 1},
        {.kind = MSG_ANSWER, .slot = slot_ref(0, 1), .gen = 1, .flags = 9, .arg = 2 | 1 << 8},
        {.kind = MSG_ANSWER, .slot = slot_ref(0, 1), .gen = 1, .flags = 7},
    };
    inject(c, 1, 0, answers, 6);
    steps(c, 20);
    assert_int_equal(stats_of(c, 0).answers_late, 5);
    assert_int_equal(stats_of(c, 0).node_drops[NODE_DROP_MESSAGE] - drops, 4);
    /* A flood: what exceeds the credits of that worker is refused, and memory is not touched. */
    homed.delay_us = 100000;
    for (uint32_t round = 0; round < 100; round++) {
        for (uint32_t i = 0; i < 8; i++) {
            m[i] = call_from(c, 1, OP_SET, slot_ref(0, 1));
        }
        inject(c, 1, 0, m, 8);
    }
    steps(c, 100);
    s = stats_of(c, 0);
    assert_int_equal(s.forwarded_in, 256);
    assert_int_equal(s.credit_excess, 544);
    assert_number(run(c, 2, op_add(1), key_at(1, 3, 0)), 1);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_operation_from_every_node),
        cmocka_unit_test(only_the_home_keeps_keys),
        cmocka_unit_test(large_values_travel_both_ways),
        cmocka_unit_test(pipelines_keep_the_order_of_a_key),
        cmocka_unit_test(calls_are_executed_once),
        cmocka_unit_test(calls_beyond_the_credits_wait_in_order),
        cmocka_unit_test(what_exceeds_the_credits_is_tried_again),
        cmocka_unit_test(a_dead_home_leaves_updates_unknown),
        cmocka_unit_test(a_slow_home_times_out),
        cmocka_unit_test(closed_sessions_are_not_answered),
        cmocka_unit_test(destroyed_nodes_answer_once),
        cmocka_unit_test(a_dead_origin_leaves_nothing_behind),
        cmocka_unit_test(who_is_not_the_home_sends_on),
        cmocka_unit_test(calls_do_not_go_round_for_ever),
        cmocka_unit_test(the_last_holder_dies),
        cmocka_unit_test(the_old_home_hands_on),
        cmocka_unit_test(rules_hold),
        cmocka_unit_test(lost_slots_say_so),
        cmocka_unit_test(without_a_map_calls_wait),
        cmocka_unit_test(one_worker_touches_a_key),
        cmocka_unit_test(walks_tell_each_key_at_its_home),
        cmocka_unit_test(the_home_deletes_what_expired),
        cmocka_unit_test(a_full_home_refuses_for_itself),
        cmocka_unit_test(hostile_messages_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
