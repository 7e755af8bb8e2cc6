/* Rules of the node that hold back what a process may not say any more. Each is also tried switched
 * off, in the builds that can. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/node_cluster.h"

static const struct hermes_config hermes = {.mlt_us = 10000, .grace_us = 2000000};

static struct bytes text(const char *s)
{
    return bytes_of(s, (uint32_t)strlen(s));
}

/* ---- "Done" is said only under a lease ---- */

/* One client at worker 1 of node 0, which sets a key once. */
struct writer {
    uint32_t session;
    bool asked;
    bool answered;
    bool applied;
    enum hk_err err;
};

static bool writer_request(void *context, uint32_t node, uint32_t worker,
                           struct request *request_out)
{
    struct writer *writer = context;
    if (node != 0 || worker != 1 || !writer->asked) {
        return false;
    }
    writer->asked = false;
    *request_out = (struct request){
        .session = writer->session,
        .op = {.kind = OP_SET, .key = text("key"), .value = text("value")},
    };
    return true;
}

static void writer_reply(void *context, uint32_t node, uint32_t worker, const struct reply *reply)
{
    struct writer *writer = context;
    (void)node;
    (void)worker;
    writer->answered = true;
    writer->applied = reply->answer.kind != ANSWER_ERROR;
    writer->err = writer->applied ? HK_OK : (enum hk_err)reply->answer.number;
}

static bool is_leased(struct cluster *c, uint32_t node)
{
    struct node_status s;
    node_status(cluster_node(c, node), cluster_now(c), &s);
    return s.lease_until_us > cluster_now(c);
}

static void hear(struct cluster *c, uint32_t node, bool hears)
{
    for (uint32_t from = 0; from < 3; from++) {
        cluster_cut(c, from, node, !hears && from != node);
    }
}

/* Worker 0 of node 0, which would renew the lease, stalls, and acknowledgements of worker 1's
 * update are lost until the lease has run out. Then they arrive, before the others, who waited
 * longer, drop node 0. Whether it says that the update is done. */
static bool done_is_said_without_a_lease(uint64_t rules_off)
{
    struct writer writer = {.asked = false};
    struct cluster_config config = {.nodes = 3,
                                    .workers = {2, 1, 1},
                                    .hermes = {.mlt_us = 2000, .grace_us = 2000000},
                                    .rules_off = rules_off,
                                    .client = {&writer, writer_request, writer_reply},
                                    .seed = 5};
    struct cluster *c = cluster_create(&config);
    cluster_until(c, cluster_serving, NULL, 10000000);
    assert_int_equal(worker_session_open(node_worker(cluster_node(c, 0), 1), &writer.session),
                     HK_OK);
    cluster_stall(c, 0, 0, true);
    hear(c, 0, false);
    writer.asked = true;
    for (uint32_t i = 0; i < 10000 && is_leased(c, 0); i++) {
        cluster_step(c, 100);
    }
    assert_false(is_leased(c, 0));
    assert_false(writer.answered);
    hear(c, 0, true);
    for (uint32_t i = 0; i < 1000 && !writer.answered; i++) {
        cluster_step(c, 100);
    }
    assert_true(writer.answered);
    assert_false(is_leased(c, 0));
    assert_true(writer.applied || writer.err == HK_ERR_UNKNOWN);
    cluster_destroy(c);
    return writer.applied;
}

static void lease_answer(void **state)
{
    (void)state;
    assert_false(done_is_said_without_a_lease(0));
#ifdef HK_MUTANTS
    assert_true(done_is_said_without_a_lease((uint64_t)1 << NODE_RULE_LEASE_ANSWER));
#endif
}

/* ---- Donors answer only when all their workers are in the epoch ---- */

static bool is_shadow_somewhere(struct cluster *c, void *context)
{
    struct node_status s;
    (void)context;
    node_status(cluster_node(c, 2), cluster_now(c), &s);
    return nodeset_has(s.view.live, 2) && !nodeset_has(s.view.operational, 2);
}

/* Node 2 comes back; one worker of each donor stalls before the view that lets it in, and so may
 * yet take up updates that leave it out. Whether the newcomer gets chunks. */
static bool chunks_come_too_early(uint64_t rules_off)
{
    struct cluster_config config = {
        .nodes = 3, .workers = {2, 2, 1}, .hermes = hermes, .rules_off = rules_off, .seed = 5};
    struct cluster *c = cluster_create(&config);
    struct op op = {.kind = OP_SET, .key = text("key"), .value = text("value")};
    cluster_until(c, cluster_serving, NULL, 10000000);
    (void)cluster_call(c, 0, &op);
    cluster_kill(c, 2);
    cluster_until(c, cluster_serving, NULL, 10000000);
    cluster_restart(c, 2);
    uint32_t epoch = 0;
    struct node_stats stats;
    struct node_status s;
    node_status(cluster_node(c, 0), cluster_now(c), &s);
    epoch = s.view.epoch;
    cluster_stall(c, 0, 1, true);
    cluster_stall(c, 1, 1, true);
    cluster_until(c, is_shadow_somewhere, NULL, 10000000);
    for (uint32_t i = 0; i < 200; i++) {
        cluster_step(c, 100);
    }
    node_status(cluster_node(c, 0), cluster_now(c), &s);
    assert_int_equal(s.view.epoch, epoch + 1);
    assert_int_equal(s.epoch_adopted, epoch);
    node_stats(cluster_node(c, 2), &stats);
    cluster_stall(c, 0, 1, false);
    cluster_stall(c, 1, 1, false);
    cluster_until(c, cluster_serving, NULL, 10000000);
    cluster_destroy(c);
    return stats.chunks_in > 0;
}

static void donor_epoch(void **state)
{
    (void)state;
    assert_false(chunks_come_too_early(0));
#ifdef HK_MUTANTS
    assert_true(chunks_come_too_early((uint64_t)1 << NODE_RULE_DONOR_EPOCH));
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lease_answer),
        cmocka_unit_test(donor_epoch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
