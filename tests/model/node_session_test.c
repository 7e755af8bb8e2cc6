/* A connection's commands: their order on one key, the barrier of an RMW, the order in which
 * answers leave and in which updates become readable. Each rule is also tried switched off, in the
 * build that can do that, and then the same scenario must show the fault. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_cluster.h"

#define COMMANDS_MAX 64u

/* Sends its commands as one pipeline on worker 0 of node 0, and notes the answers. */
struct pipeline {
    struct cluster *cluster;
    struct op ops[COMMANDS_MAX];
    uint32_t n;
    uint32_t sent;
    uint32_t answered;
    uint64_t tags[COMMANDS_MAX];
    struct answer answers[COMMANDS_MAX];
    char values[COMMANDS_MAX][32];
    uint32_t session;
    uint32_t node; /* whose worker 0 gets the commands */
    bool open;
};

static bool next_request(void *context, uint32_t node, uint32_t worker, struct request *out)
{
    struct pipeline *p = context;
    if (node != p->node || worker != 0 || !p->open || p->sent == p->n) {
        return false;
    }
    *out = (struct request){.session = p->session, .tag = p->sent, .op = p->ops[p->sent]};
    p->sent++;
    return true;
}

static void take_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct pipeline *p = context;
    uint32_t i = p->answered++;
    (void)node;
    (void)worker;
    assert_true(i < COMMANDS_MAX);
    p->tags[i] = reply->tag;
    p->answers[i] = reply->answer;
    if (reply->answer.value.n > 0 && reply->answer.value.n < sizeof p->values[i]) {
        memcpy(p->values[i], reply->answer.value.at, reply->answer.value.n);
    }
}

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

static void start(struct pipeline *p, uint64_t rules_off)
{
    memset(p, 0, sizeof *p);
    struct cluster_config config = {
        .nodes = 3,
        .workers = {1, 1, 1},
        .hermes = {.mlt_us = 10000, .grace_us = 2000000},
        .rules_off = rules_off,
        .client = {p, next_request, take_reply},
        .seed = 3,
    };
    p->cluster = cluster_create(&config);
    cluster_until(p->cluster, cluster_serving, NULL, 10000000);
    assert_int_equal(worker_session_open(node_worker(cluster_node(p->cluster, 0), 0), &p->session),
                     HK_OK);
    p->open = true;
}

static bool all_answered(struct cluster *c, void *context)
{
    const struct pipeline *p = context;
    (void)c;
    return p->answered == p->n;
}

static void run(struct pipeline *p)
{
    cluster_until(p->cluster, all_answered, p, 10000000);
}

static void command(struct pipeline *p, struct op op)
{
    p->ops[p->n++] = op;
}

/* What a node holds for a key: its state's readability and value, looked at from outside. */
static bool readable(struct pipeline *p, uint32_t node, const char *key, const char *value)
{
    uint64_t buffer[STORE_INLINE_MAX / 8];
    struct store_value v;
    struct store *store = node_store(cluster_node(p->cluster, node), 0);
    struct store_thread *thread =
        worker_store_thread(node_worker(cluster_node(p->cluster, node), 0), 0);
    struct bytes k = text(key);
    assert_int_equal(store_read(store, thread, k, store_hash(store, k), buffer, sizeof buffer, &v),
                     HK_OK);
    return v.found && (v.meta.flags & KEY_READABLE) != 0 && bytes_equal(v.value, text(value));
}

/* ---- Scenarios: each returns whether the fault was seen ---- */

static bool answers_out_of_order(uint64_t rules_off)
{
    struct pipeline p;
    bool fault = false;
    start(&p, rules_off);
    /* The write waits for two acknowledgements, the read of another key for nobody. */
    command(&p, (struct op){.kind = OP_SET, .key = text("a"), .value = text("1")});
    command(&p, (struct op){.kind = OP_GET, .key = text("b")});
    command(&p, (struct op){.kind = OP_GET, .key = text("a")});
    run(&p);
    for (uint32_t i = 0; i < 3; i++) {
        fault |= p.tags[i] != i;
    }
    fault |= p.answers[2].kind != ANSWER_VALUE;
    cluster_destroy(p.cluster);
    return fault;
}

static bool same_key_out_of_order(uint64_t rules_off)
{
    struct pipeline p;
    start(&p, rules_off);
    command(&p, (struct op){.kind = OP_SET, .key = text("a"), .value = text("1")});
    run(&p);
    /* The second command of the pair meets a key that the first has made unreadable; a third one
     * that is no read must not slip in between them. */
    command(&p, (struct op){.kind = OP_SET, .key = text("a"), .value = text("2")});
    command(&p, (struct op){.kind = OP_GETSET, .key = text("a"), .value = text("3")});
    command(&p, (struct op){.kind = OP_GETSET, .key = text("a"), .value = text("4")});
    run(&p);
    bool fault = strcmp(p.values[2], "2") != 0 || strcmp(p.values[3], "3") != 0;
    cluster_destroy(p.cluster);
    return fault;
}

/* Rule 13: while an RMW is undecided, a later update of its session must not be issued: it could
 * take effect although the RMW before it never does. Node 2 hears nothing, so the RMW waits. */
static bool update_passes_an_rmw(uint64_t rules_off)
{
    struct pipeline p;
    start(&p, rules_off);
    command(&p, (struct op){.kind = OP_SET, .key = text("n"), .value = text("5")});
    command(&p, (struct op){.kind = OP_SET, .key = text("b"), .value = text("old")});
    run(&p);
    cluster_cut(p.cluster, 0, 2, true);
    command(&p, (struct op){.kind = OP_ADD, .key = text("n"), .number = 1});
    command(&p, (struct op){.kind = OP_SET, .key = text("b"), .value = text("new")});
    for (int i = 0; i < 50; i++) {
        cluster_step(p.cluster, 100);
    }
    bool undecided = p.answered == 2;
    bool fault = undecided && !readable(&p, 0, "b", "old"); /* issued: no longer readable */
    assert_true(undecided);
    cluster_cut(p.cluster, 0, 2, false);
    run(&p);
    assert_int_equal(p.answers[2].number, 6);
    cluster_destroy(p.cluster);
    return fault;
}

/* Two plain writes may be in flight together, but the later becomes readable after the earlier. */
static void a_pipeline_becomes_visible_in_order(void **state)
{
    (void)state;
    struct pipeline p;
    start(&p, 0);
    command(&p, (struct op){.kind = OP_SET, .key = text("a"), .value = text("0")});
    command(&p, (struct op){.kind = OP_SET, .key = text("b"), .value = text("0")});
    run(&p);
    command(&p, (struct op){.kind = OP_SET, .key = text("a"), .value = text("1")});
    command(&p, (struct op){.kind = OP_SET, .key = text("b"), .value = text("1")});
    while (p.answered < p.n) {
        cluster_step(p.cluster, 10);
        for (uint32_t i = 0; i < 3; i++) {
            if (readable(&p, i, "b", "1")) {
                for (uint32_t k = 0; k < 3; k++) {
                    assert_false(readable(&p, k, "a", "0"));
                }
            }
        }
    }
    cluster_destroy(p.cluster);
}

/* Behind an RMW the pipeline flows again: its updates are issued together, not one a round trip. */
static void a_pipeline_flows_again_behind_an_rmw(void **state)
{
    (void)state;
    static char keys[COMMANDS_MAX][8];
    struct pipeline p;
    uint32_t steps = 0;
    start(&p, 0);
    for (uint32_t i = 1; i < COMMANDS_MAX; i++) {
        snprintf(keys[i], sizeof keys[i], "k%u", i);
    }
    p.n = 0;
    command(&p, (struct op){.kind = OP_ADD, .key = text("n"), .number = 1});
    for (uint32_t i = 1; i < COMMANDS_MAX; i++) {
        command(&p, (struct op){.kind = OP_SET, .key = text(keys[i]), .value = text("v")});
    }
    for (; p.answered < p.n; steps++) {
        cluster_step(p.cluster, 100);
    }
    assert_in_range(steps, 1, COMMANDS_MAX / 2);
    cluster_destroy(p.cluster);
}

/* Keys that a dead coordinator left invalid are replayed; updates of them then compute on what was
 * replayed, each once. */
static void updates_follow_what_was_replayed(void **state)
{
    (void)state;
    static const char *const keys[] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    struct pipeline p;
    start(&p, 0);
    for (uint32_t i = 0; i < 8; i++) {
        command(&p, (struct op){.kind = OP_SET, .key = text(keys[i]), .value = text("5")});
    }
    run(&p);
    cluster_cut(p.cluster, 1, 0, true);
    cluster_cut(p.cluster, 2, 0, true);
    for (uint32_t i = 0; i < 8; i++) {
        command(&p, (struct op){.kind = OP_SET, .key = text(keys[i]), .value = text("7")});
    }
    for (int i = 0; i < 20; i++) {
        cluster_step(p.cluster, 100);
    }
    assert_int_equal(p.answered, 8);
    cluster_kill(p.cluster, 0);
    cluster_until(p.cluster, cluster_serving, NULL, 10000000);
    p.n = p.sent = p.answered = 0;
    p.node = 1;
    assert_int_equal(worker_session_open(node_worker(cluster_node(p.cluster, 1), 0), &p.session),
                     HK_OK);
    for (uint32_t i = 0; i < 8; i++) {
        command(&p, (struct op){.kind = OP_ADD, .key = text(keys[i]), .number = 1});
    }
    run(&p);
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(p.answers[i].kind, ANSWER_NUMBER);
        assert_int_equal(p.answers[i].number, 8);
    }
    cluster_destroy(p.cluster);
}

static void closing_a_session_leaves_its_updates(void **state)
{
    (void)state;
    struct pipeline p;
    start(&p, 0);
    cluster_cut(p.cluster, 0, 2, true);
    command(&p, (struct op){.kind = OP_SET, .key = text("a"), .value = text("1")});
    command(&p, (struct op){.kind = OP_ADD, .key = text("n"), .number = 1});
    command(&p, (struct op){.kind = OP_GET, .key = text("a")});
    for (int i = 0; i < 20; i++) {
        cluster_step(p.cluster, 100);
    }
    worker_session_close(node_worker(cluster_node(p.cluster, 0), 0), p.session);
    cluster_cut(p.cluster, 0, 2, false);
    for (int i = 0; i < 1000 && !readable(&p, 2, "a", "1"); i++) {
        cluster_step(p.cluster, 1000);
    }
    assert_true(readable(&p, 2, "a", "1"));
    assert_int_equal(p.answered, 0);
    cluster_destroy(p.cluster);
}

/* ---- Rules on, and off ---- */

static void answers_leave_in_order(void **state)
{
    (void)state;
    assert_false(answers_out_of_order(0));
}

static void one_keys_commands_take_effect_in_order(void **state)
{
    (void)state;
    assert_false(same_key_out_of_order(0));
}

static void an_rmw_is_a_barrier(void **state)
{
    (void)state;
    assert_false(update_passes_an_rmw(0));
#ifdef HK_MUTANTS
    assert_true(update_passes_an_rmw((uint64_t)1 << NODE_RULE_BARRIER));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_leave_in_order),
        cmocka_unit_test(one_keys_commands_take_effect_in_order),
        cmocka_unit_test(an_rmw_is_a_barrier),
        cmocka_unit_test(a_pipeline_becomes_visible_in_order),
        cmocka_unit_test(a_pipeline_flows_again_behind_an_rmw),
        cmocka_unit_test(updates_follow_what_was_replayed),
        cmocka_unit_test(closing_a_session_leaves_its_updates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
