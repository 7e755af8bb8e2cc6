/* What a peer may send that holds the cluster's key and does not follow the protocol: a mistaken
 * build, or worse. Each such message is ignored, counted by its reason, and changes nothing but
 * that count; configurations that cannot work are refused with words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/view_cluster.h"

static struct view_cluster cluster;

/* Three nodes in view 1, all leased, if `formed`; else just started. */
static struct view_machine *node_zero(bool formed)
{
    view_cluster_init(&cluster, 3, 1);
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(&cluster, i);
    }
    if (formed) {
        view_cluster_run(&cluster, cluster.now + 2000000);
        assert_true(view_cluster_settled(&cluster));
    }
    view_cluster_by_hand(&cluster);
    return view_cluster_machine(&cluster, 0);
}

static uint64_t nonce_of(uint8_t node)
{
    return view_cluster_machine(&cluster, node)->config.nonce;
}

/* A message of node 1's present process in the cluster's generation. */
static struct view_event from_one(const struct view_machine *m, const struct view_msg *msg)
{
    return (struct view_event){.kind = VIEW_EVENT_MESSAGE,
                               .now_us = m->now_us,
                               .node = 1,
                               .nonce = nonce_of(1),
                               .generation = m->view.generation,
                               .msg = msg};
}

static struct view_ballot ballot_of_one(uint64_t round)
{
    return (struct view_ballot){.round = round, .nonce = nonce_of(1), .node = 1};
}

/* The event is ignored for this reason, sends nothing, and leaves the rest of the machine alone. */
static void assert_ignored(struct view_machine *m, const struct view_event *event,
                           enum view_ignored why)
{
    static struct view_machine before;
    static struct view_effects fx;
    memcpy(&before, m, sizeof before);
    fx.n = 0;
    view_step(m, event, &fx);
    assert_int_equal(view_ignored_count(m, why), before.ignored[why] + 1);
    assert_int_equal(fx.n, 0);
    before.ignored[why]++;
    assert_memory_equal(m, &before, sizeof before);
}

static void test_strangers(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    struct view_msg msg = {.kind = VIEW_MSG_ASK, .epoch = 1};
    struct view_event event = from_one(m, &msg);
    event.node = 0;
    assert_ignored(m, &event, VIEW_IGNORED_GENERATION);
    event.node = NODES_MAX;
    assert_ignored(m, &event, VIEW_IGNORED_GENERATION);
    event.node = 1;
    event.nonce = 0;
    assert_ignored(m, &event, VIEW_IGNORED_GENERATION);
}

static void test_unknown_kind(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    struct view_msg msg = {.kind = 77, .epoch = 1};
    struct view_event event = from_one(m, &msg);
    assert_ignored(m, &event, VIEW_IGNORED_INVALID);
    assert_string_equal(view_msg_name(77), "?");
    assert_string_equal(view_msg_name(VIEW_MSG_REFUSE), "REFUSE");
    assert_non_null(view_msg_invalid(&msg));
}

/* A ballot names its proposer; nobody proposes in somebody else's name. */
static void test_foreign_ballot(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    struct view_msg msg = {.kind = VIEW_MSG_PREPARE, .epoch = 1};
    msg.prepare = (struct view_prepare){.ballot = ballot_of_one(9), .instance = 2};
    msg.prepare.ballot.node = 2;
    struct view_event event = from_one(m, &msg);
    assert_ignored(m, &event, VIEW_IGNORED_INVALID);
}

/* A grant answers a heartbeat that was sent. */
static void test_grant_from_the_future(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    struct view_msg msg = {.kind = VIEW_MSG_GRANT, .epoch = 1};
    msg.grant = (struct view_grant){.holder = m->config.nonce,
                                    .sent_us = m->heartbeat_sent_us + 1,
                                    .lease_us = m->config.lease_us};
    struct view_event event = from_one(m, &msg);
    assert_ignored(m, &event, VIEW_IGNORED_INVALID);
    msg.grant.sent_us = m->heartbeat_sent_us;
    msg.grant.lease_us = m->config.margin_us;
    assert_ignored(m, &event, VIEW_IGNORED_INVALID);
}

/* A first view is of exactly those whom every file names. */
static void test_first_view_of_others(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(false);
    struct view_msg msg = {.kind = VIEW_MSG_PREPARE};
    msg.prepare = (struct view_prepare){
        .ballot = ballot_of_one(9), .configured = nodeset_of(0) | nodeset_of(1), .instance = 1};
    struct view_event event = from_one(m, &msg);
    static struct view_effects fx;
    view_step(m, &event, &fx);
    assert_int_equal(view_ignored_count(m, VIEW_IGNORED_INVALID), 1);
    assert_true(view_ballot_none(&m->acceptor.promised));
}

/* A process with a lease has a majority's word, so nothing needs to be recovered. */
static void test_recover_of_the_living(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    assert_true(m->now_us < view_lease_until(m));
    struct view_msg msg = {.kind = VIEW_MSG_PREPARE, .epoch = 1};
    msg.prepare = (struct view_prepare){.ballot = ballot_of_one(9),
                                        .configured = nodeset_of(0) | nodeset_of(1),
                                        .instance = 2,
                                        .flags = VIEW_PREPARE_RECOVER};
    struct view_event event = from_one(m, &msg);
    assert_ignored(m, &event, VIEW_IGNORED_OPERATOR);
}

/* A next view that hands out c_ids once more is accepted by nobody. */
static void test_value_that_cannot_follow(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    struct view_msg msg = {.kind = VIEW_MSG_ACCEPT, .epoch = 1};
    msg.accept.ballot = ballot_of_one(9);
    msg.accept.instance = 2;
    msg.accept.view = m->view;
    msg.accept.view.epoch = 2;
    msg.accept.view.next_cid = m->view.next_cid - 1;
    assert_non_null(view_succession_invalid(&m->view, &msg.accept.view));
    struct view_event event = from_one(m, &msg);
    assert_ignored(m, &event, VIEW_IGNORED_INVALID);
}

/* Only members vote; a promise of somebody else is no promise. */
static void test_promise_of_a_stranger(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    static struct view_effects fx;
    struct view_event suspect = {.kind = VIEW_EVENT_SUSPECT, .now_us = m->now_us, .node = 2};
    view_step(m, &suspect, &fx);
    assert_int_equal(m->proposer.phase, VIEW_PHASE_PREPARE);
    struct view_msg msg = {.kind = VIEW_MSG_PROMISE, .epoch = 1};
    msg.promise.ballot = m->proposer.ballot;
    msg.promise.instance = 2;
    struct view_event event = from_one(m, &msg);
    event.nonce = nonce_of(1) + 1;
    assert_ignored(m, &event, VIEW_IGNORED_VOTER);
}

/* Views of a generation that does not continue this one come from another cluster. */
static void test_view_of_another_cluster(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    struct view_msg msg = {.kind = VIEW_MSG_VIEW, .epoch = 2};
    msg.view = m->view;
    msg.view.epoch = 2;
    msg.view.generation = m->view.generation + 1;
    struct view_event event = from_one(m, &msg);
    static struct view_effects fx;
    view_step(m, &event, &fx);
    assert_int_equal(view_ignored_count(m, VIEW_IGNORED_GENERATION), 1);
    assert_int_equal(m->view.epoch, 1);
}

/* Rule 8: a process that was dropped and let in again missed what was written in between. */
static void test_let_in_again_unknowingly(void **state)
{
    (void)state;
    struct view_machine *m = node_zero(true);
    struct view_msg msg = {.kind = VIEW_MSG_VIEW, .epoch = 3};
    msg.view = m->view;
    msg.view.epoch = 3;
    msg.view.members[0].admitted = 3;
    msg.view.members[0].cid_first = m->view.next_cid;
    msg.view.next_cid = m->view.next_cid + m->view.members[0].cid_count;
    assert_null(view_invalid(&msg.view));
    struct view_event event = from_one(m, &msg);
    static struct view_effects fx;
    view_step(m, &event, &fx);
    assert_int_equal(fx.n, 1);
    assert_int_equal(fx.e[0].kind, VIEW_EFFECT_WIPE);
}

static void test_configurations(void **state)
{
    (void)state;
    struct view_config good = node_zero(false)->config;
    assert_null(view_config_invalid(&good));
    struct view_config bad = good;
    bad.nonce = 0;
    assert_non_null(view_config_invalid(&bad));
    bad = good;
    bad.margin_us = bad.lease_us;
    assert_non_null(view_config_invalid(&bad));
    bad = good;
    bad.heartbeat_us = bad.suspect_us;
    assert_non_null(view_config_invalid(&bad));
    bad = good;
    bad.cids_per_member = 0;
    assert_non_null(view_config_invalid(&bad));
    bad = good;
    bad.kept_epoch = 7;
    bad.kept_generation = 0;
    assert_non_null(view_config_invalid(&bad));
}

static void test_names(void **state)
{
    (void)state;
    for (int s = VIEW_STATUS_FORMING; s <= VIEW_STATUS_LOST; s++) {
        const char *name = view_status_name((enum view_status)s);
        assert_true(strlen(name) > 3);
        for (int other = VIEW_STATUS_FORMING; other < s; other++) {
            assert_string_not_equal(name, view_status_name((enum view_status)other));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strangers),
        cmocka_unit_test(test_unknown_kind),
        cmocka_unit_test(test_foreign_ballot),
        cmocka_unit_test(test_grant_from_the_future),
        cmocka_unit_test(test_first_view_of_others),
        cmocka_unit_test(test_recover_of_the_living),
        cmocka_unit_test(test_value_that_cannot_follow),
        cmocka_unit_test(test_promise_of_a_stranger),
        cmocka_unit_test(test_view_of_another_cluster),
        cmocka_unit_test(test_let_in_again_unknowingly),
        cmocka_unit_test(test_configurations),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
