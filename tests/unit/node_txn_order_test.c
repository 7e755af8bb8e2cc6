/* What a session can rely on where objects have owners: its commands take effect in their order,
 * however many are under way and whoever owns what; and what happens at the bounds: slots of the
 * pipeline, and memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"
#include "node/txn_internal.h"
#include "support/node_cluster.h"

#define COMMANDS 400u
#define KEYS 8u
#define SECOND 1000000u

static const struct zeus_config zeus = {.own = {.backoff_us = 200}};

/* One session at each of some nodes: it counts a register of its own up, reads others, and looks
 * at its own. */
struct line {
    uint32_t session;
    uint32_t sent;
    uint32_t answered;
    uint32_t written; /* the last value that it asked to be written */
    uint32_t expected[COMMANDS];
    char values[COMMANDS][16];
    bool open;
};

struct lines {
    struct line lines[CLUSTER_NODES_MAX];
    struct random random;
    uint32_t commands;
    uint32_t depth;
    char own[CLUSTER_NODES_MAX][8];
    char keys[KEYS][8];
    uint32_t most_slots;
    bool writes; /* nothing else */
    struct cluster *cluster;
};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static bool next(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    struct lines *all = context;
    struct line *l = &all->lines[node];
    if (worker != 0 || !l->open || l->sent == all->commands ||
        l->sent - l->answered >= all->depth) {
        return false;
    }
    uint32_t i = l->sent++;
    *out = (struct request){.session = l->session, .tag = i};
    l->expected[i] = UINT32_MAX;
    switch (all->writes ? 2 : random_below(&all->random, 4)) {
    case 0:
        out->op = (struct op){.kind = OP_GET, .key = text(all->own[node])};
        l->expected[i] = l->written;
        break;
    case 1:
        out->op = (struct op){
            .kind = OP_ADD, .key = text(all->keys[random_below(&all->random, KEYS)]), .number = 1};
        break;
    default:
        l->written = i + 1;
        (void)snprintf(l->values[i], sizeof l->values[i], "%u", l->written);
        out->op =
            (struct op){.kind = OP_SET, .key = text(all->own[node]), .value = text(l->values[i])};
        break;
    }
    return true;
}

static void heard(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct lines *all = context;
    struct line *l = &all->lines[node];
    (void)worker;
    assert_int_equal(reply->tag, l->answered);
    uint32_t expected = l->expected[l->answered++];
    assert_int_not_equal(reply->answer.kind, ANSWER_ERROR);
    if (expected == 0) {
        assert_int_equal(reply->answer.kind, ANSWER_NIL);
    } else if (expected != UINT32_MAX) {
        char wanted[16];
        int n = snprintf(wanted, sizeof wanted, "%u", expected);
        assert_int_equal(reply->answer.kind, ANSWER_VALUE);
        assert_int_equal(reply->answer.value.n, n);
        assert_memory_equal(reply->answer.value.at, wanted, (size_t)n);
    }
}

static void allow_more(struct node_config *config, uint32_t node)
{
    (void)node;
    config->calls_max = 1024;
    config->session_calls_max = 512;
}

static void start(struct lines *all, uint32_t nodes, uint32_t commands, uint32_t depth,
                  uint64_t seed)
{
    memset(all, 0, sizeof *all);
    random_init(&all->random, seed);
    all->commands = commands;
    all->depth = depth;
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        (void)snprintf(all->own[i], sizeof all->own[i], "own%u", i);
    }
    for (uint32_t i = 0; i < KEYS; i++) {
        (void)snprintf(all->keys[i], sizeof all->keys[i], "k%u", i);
    }
    struct cluster_config config = {.nodes = nodes,
                                    .ops = &zeus_ops,
                                    .engine = &zeus,
                                    .client = {all, next, heard},
                                    .adjust = allow_more,
                                    .seed = seed};
    for (uint32_t i = 0; i < nodes; i++) {
        config.workers[i] = 1;
    }
    all->cluster = cluster_create(&config);
    cluster_until(all->cluster, cluster_serving, NULL, 10 * SECOND);
}

static void open_line(struct lines *all, uint32_t node)
{
    struct worker *w = node_worker(cluster_node(all->cluster, node), 0);
    assert_int_equal(worker_session_open(w, &all->lines[node].session), HK_OK);
    all->lines[node].open = true;
}

static bool all_answered(struct cluster *c, void *context)
{
    struct lines *all = context;
    const struct txns *txns = node_worker(cluster_node(c, 0), 0)->txns;
    const struct commit_pipe *pipe = &txns->spaces[0]->own[0]->commit;
    uint32_t slots = (uint32_t)(pipe->next - pipe->first);
    all->most_slots = slots > all->most_slots ? slots : all->most_slots;
    for (uint32_t i = 0; i < CLUSTER_NODES_MAX; i++) {
        if (all->lines[i].open && all->lines[i].answered < all->commands) {
            return false;
        }
    }
    return true;
}

static void test_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 5; seed++) {
        struct lines all;
        start(&all, 3, 200, 30, seed);
        for (uint32_t i = 0; i < 3; i++) {
            open_line(&all, i);
        }
        cluster_until(all.cluster, all_answered, &all, 20 * SECOND);
        cluster_destroy(all.cluster);
    }
}

/* Followers are silent for a while: as many commits as the pipeline has slots are under way, then
 * the rest waits, and all are answered in the end. */
static void test_slots_are_bounded(void **state)
{
    (void)state;
    struct lines all;
    start(&all, 3, 1, 1, 9);
    all.writes = true;
    open_line(&all, 0);
    cluster_until(all.cluster, all_answered, &all, 20 * SECOND);
    all.commands = COMMANDS;
    all.depth = 300;
    for (uint32_t round = 0; round < 30; round++) {
        cluster_stall(all.cluster, 1, 0, round % 3 == 0);
        cluster_stall(all.cluster, 2, 0, round % 3 == 0);
        for (uint32_t i = 0; i < 200; i++) {
            cluster_step(all.cluster, 100);
        }
        (void)all_answered(all.cluster, &all);
    }
    cluster_until(all.cluster, all_answered, &all, 20 * SECOND);
    assert_int_equal(all.most_slots, COMMIT_SLOTS);
    cluster_destroy(all.cluster);
}

/* ---- Workers of one node ---- */

/* Worker 0's client keeps its pipeline full of writes of one object; worker 1's wants to write it
 * too, one at a time. */
struct hammer {
    uint32_t sessions[2];
    uint32_t open[2];
    uint32_t done[2];
    bool on;
};

static bool hammer_request(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    struct hammer *h = context;
    if (node != 0 || worker > 1 || !h->on || h->open[worker] == (worker == 0 ? 200u : 1u)) {
        return false;
    }
    h->open[worker]++;
    *out = (struct request){.session = h->sessions[worker],
                            .op = {.kind = OP_ADD, .key = text("hot"), .number = 1}};
    return true;
}

static void hammer_heard(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct hammer *h = context;
    (void)node;
    assert_int_equal(reply->answer.kind, ANSWER_NUMBER);
    h->open[worker]--;
    h->done[worker]++;
    assert_int_equal(reply->answer.number <= h->done[0] + h->done[1] + 201, true);
}

static bool hammer_still(struct cluster *c, void *context)
{
    struct hammer *h = context;
    (void)c;
    return h->open[0] + h->open[1] == 0;
}

static void test_nobody_starves(void **state)
{
    (void)state;
    struct hammer h = {.on = false};
    struct cluster_config config = {.nodes = 3,
                                    .workers = {2, 1, 1},
                                    .ops = &zeus_ops,
                                    .engine = &zeus,
                                    .client = {&h, hammer_request, hammer_heard},
                                    .adjust = allow_more,
                                    .seed = 8};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10 * SECOND);
    for (uint32_t i = 0; i < 2; i++) {
        int err = worker_session_open(node_worker(cluster_node(c, 0), i), &h.sessions[i]);
        assert_int_equal(err, HK_OK);
    }
    h.on = true;
    for (uint32_t i = 0; i < 2000; i++) {
        cluster_step(c, 100);
    }
    h.on = false;
    /* A turn of worker 1's waits for the commits under way, not for those behind them. */
    assert_true(h.done[0] > 2000 && h.done[1] > 100);
    cluster_until(c, hammer_still, &h, SECOND);
    cluster_destroy(c);
}

/* ---- Memory ---- */

static void test_memory_is_bounded(void **state)
{
    static char value[8192];
    (void)state;
    struct cluster_config config = {.nodes = 3,
                                    .workers = {1, 1, 1},
                                    .ops = &zeus_ops,
                                    .engine = &zeus,
                                    .memory_max = 4u << 20,
                                    .memory_max_last = 2u << 20,
                                    .seed = 4};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10 * SECOND);
    uint32_t n = 0;
    struct cluster_answer a = {.kind = ANSWER_OK};
    char key[16];
    memset(value, 'x', sizeof value);
    while (a.kind == ANSWER_OK && n < 1000) {
        (void)snprintf(key, sizeof key, "m%u", n);
        struct op set = {.kind = OP_SET, .key = text(key), .value = bytes_of(value, sizeof value)};
        a = cluster_call(c, 0, &set);
        n += a.kind == ANSWER_OK;
    }
    assert_int_equal(a.kind, ANSWER_ERROR);
    assert_int_equal(a.number, HK_ERR_NOMEM);
    assert_true(n > 50 && n < 600);
    for (uint32_t i = 0; i < n; i++) {
        (void)snprintf(key, sizeof key, "m%u", i);
        struct op remove = {.kind = OP_DELETE, .key = text(key)};
        a = cluster_call(c, 1, &remove);
        assert_int_equal(a.number, 1);
    }
    for (uint32_t i = 0; i < 2000; i++) {
        cluster_step(c, 1000);
    }
    struct op set = {.kind = OP_SET, .key = text("m0"), .value = bytes_of(value, sizeof value)};
    assert_int_equal(cluster_call(c, 2, &set).kind, ANSWER_OK);
    cluster_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_slots_are_bounded),
        cmocka_unit_test(test_nobody_starves),
        cmocka_unit_test(test_memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
