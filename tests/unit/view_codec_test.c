/* The encoding of views and view messages: what was encoded decodes to the same bytes, what no
 * encoder writes is refused, and the checks give their reasons. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/random.h"
#include "view/message.h"

/* Nodes 0, 2 and 63 live, of them 2 a shadow; node 5 configured but out. */
static struct view sample(void)
{
    struct view view = {
        .generation = 0x1122334455667788u,
        .generation_old = 7,
        .epoch = 9,
        .next_cid = 100,
        .configured = nodeset_of(0) | nodeset_of(2) | nodeset_of(5) | nodeset_of(63),
        .live = nodeset_of(0) | nodeset_of(2) | nodeset_of(63),
        .operational = nodeset_of(0) | nodeset_of(63),
    };
    view.members[0] = (struct view_member){
        .nonce = 11, .admitted = 1, .cid_first = 1, .cid_count = 4, .role = VIEW_ROLE_OPERATIONAL};
    view.members[2] = (struct view_member){
        .nonce = 12, .admitted = 9, .cid_first = 60, .cid_count = 40, .role = VIEW_ROLE_SHADOW};
    view.members[63] = (struct view_member){.nonce = UINT64_MAX,
                                            .admitted = 3,
                                            .cid_first = 5,
                                            .cid_count = 1,
                                            .role = VIEW_ROLE_OPERATIONAL};
    return view;
}

/* Who was admitted first, not who has the lowest id; shadows do not count. */
static void test_the_senior_was_admitted_first(void **state)
{
    (void)state;
    struct view view = sample();
    assert_int_equal(view_senior(&view), 0);
    view.members[0].admitted = 8; /* it came back */
    assert_int_equal(view_senior(&view), 63);
    view.members[2].admitted = 1;
    assert_int_equal(view_senior(&view), 63);
    view.members[63].admitted = 8;
    assert_int_equal(view_senior(&view), 0);
    view.operational = 0;
    assert_int_equal(view_senior(&view), NODE_NONE);
}

static struct view_ballot ballot(uint64_t round)
{
    return (struct view_ballot){.round = round, .nonce = 99, .node = 63};
}

static struct view_msg message(enum view_msg_kind kind)
{
    struct view_msg msg;
    memset(&msg, 0, sizeof msg);
    msg.kind = (uint8_t)kind;
    msg.epoch = 8;
    switch (kind) {
    case VIEW_MSG_HEARTBEAT:
        msg.heartbeat = (struct view_heartbeat){.sent_us = 123456789,
                                                .heard = 0x0f,
                                                .configured = 0xff,
                                                .kept_generation = 3,
                                                .kept_epoch = 4,
                                                .admitted = 2,
                                                .flags = VIEW_HEARTBEAT_COPIED};
        break;
    case VIEW_MSG_GRANT:
        msg.grant = (struct view_grant){.holder = 5, .sent_us = 6, .lease_us = 500000};
        break;
    case VIEW_MSG_VIEW:
        msg.epoch = 9;
        msg.view = sample();
        break;
    case VIEW_MSG_ASK:
        break;
    case VIEW_MSG_PREPARE:
        msg.prepare = (struct view_prepare){.ballot = ballot(3), .drops = 4, .instance = 9};
        break;
    case VIEW_MSG_PROMISE:
        msg.promise.ballot = ballot(3);
        msg.promise.accepted = ballot(2);
        msg.promise.instance = 9;
        msg.promise.view = sample();
        break;
    case VIEW_MSG_ACCEPT:
        msg.accept.ballot = ballot(3);
        msg.accept.instance = 9;
        msg.accept.view = sample();
        break;
    case VIEW_MSG_ACCEPTED:
        msg.accepted.ballot = ballot(3);
        msg.accepted.instance = 9;
        break;
    case VIEW_MSG_REFUSE:
        msg.refuse.ballot = ballot(3);
        msg.refuse.promised = ballot(4);
        msg.refuse.instance = 9;
        break;
    }
    return msg;
}

#define KINDS_FIRST VIEW_MSG_HEARTBEAT
#define KINDS_LAST VIEW_MSG_REFUSE

static void views_survive(void **state)
{
    (void)state;
    uint8_t bytes[VIEW_ENCODED_MAX];
    struct view in = sample(), out;
    uint32_t used = 0;
    assert_null(view_invalid(&in));
    uint32_t n = view_encode(&in, bytes);
    assert_int_equal(view_decode(bytes_of(bytes, n), &out, &used), HK_OK);
    assert_int_equal(used, n);
    assert_memory_equal(&in, &out, sizeof in);
    for (uint32_t less = 0; less < n; less++) {
        assert_int_equal(view_decode(bytes_of(bytes, less), &out, &used), HK_ERR_CORRUPT);
    }
    /* Trailing bytes belong to whatever contains the view. */
    assert_int_equal(view_decode(bytes_of(bytes, n + 5), &out, &used), HK_OK);
    assert_int_equal(used, n);
}

/* 64 members fill the largest view. */
static void the_largest_view_fits(void **state)
{
    (void)state;
    uint8_t bytes[VIEW_ENCODED_MAX];
    struct view in = {.generation = 1, .epoch = 1, .next_cid = 1, .configured = ~(nodeset)0};
    struct view out;
    uint32_t used;
    in.live = in.operational = in.configured;
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        in.members[i] = (struct view_member){.nonce = 1000u + i,
                                             .admitted = 1,
                                             .cid_first = in.next_cid,
                                             .cid_count = 300,
                                             .role = VIEW_ROLE_OPERATIONAL};
        in.next_cid += 300;
    }
    assert_null(view_invalid(&in));
    uint32_t n = view_encode(&in, bytes);
    assert_true(n <= VIEW_ENCODED_MAX);
    assert_int_equal(view_decode(bytes_of(bytes, n), &out, &used), HK_OK);
    assert_memory_equal(&in, &out, sizeof in);
    assert_int_equal(view_cid_owner(&in, 1), 0);
    assert_int_equal(view_cid_owner(&in, 300), 0);
    assert_int_equal(view_cid_owner(&in, 301), 1);
    assert_int_equal(view_cid_owner(&in, 64 * 300), 63);
    assert_int_equal(view_cid_owner(&in, 64 * 300 + 1), NODE_NONE);
    assert_int_equal(view_cid_owner(&in, 0), NODE_NONE);
}

static void invalid_views_are_refused(void **state)
{
    (void)state;
    const struct view good = sample();
    struct view bad;
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        bad = good;                                                                                \
        change;                                                                                    \
        assert_non_null(view_invalid(&bad));                                                       \
    } while (0)
    REFUSED(bad.epoch = 0);
    REFUSED(bad.generation = 0);
    REFUSED(bad.generation_old = bad.generation);
    REFUSED(bad.next_cid = VIEW_CIDS_MAX + 1);
    REFUSED(bad.configured = 0);
    REFUSED(bad.configured_old = bad.configured);
    REFUSED(bad.configured &= ~nodeset_of(2));
    REFUSED(bad.operational = 0);
    REFUSED(bad.operational |= nodeset_of(2));
    REFUSED(bad.operational |= nodeset_of(5));
    REFUSED(bad.members[5].nonce = 1);
    REFUSED(bad.members[0].nonce = 0);
    REFUSED(bad.members[0].admitted = 0);
    REFUSED(bad.members[0].admitted = 10);
    REFUSED(bad.members[0].cid_count = 0);
    REFUSED(bad.members[0].cid_first = 0);
    REFUSED(bad.members[0].cid_count = 5); /* overlaps node 63's */
    REFUSED(bad.members[2].cid_count = 41);
    REFUSED(bad.members[2].cid_first = UINT32_MAX);
    REFUSED(bad.members[0].role = VIEW_ROLE_NONE);
    REFUSED(bad.members[0].role = 3);
    REFUSED(bad.members[0].reserved[4] = 1);
#undef REFUSED
}

static void majorities_count_both_configured_sets(void **state)
{
    (void)state;
    struct view view = sample();
    assert_true(view_majority(&view, view.live));
    assert_false(view_majority(&view, nodeset_of(0) | nodeset_of(2)));
    view.configured_old = nodeset_of(5);
    assert_false(view_majority(&view, view.live));
    assert_true(view_majority(&view, view.live | nodeset_of(5)));
}

static void succession_is_checked(void **state)
{
    (void)state;
    const struct view base = sample();
    struct view good = base, bad;
    good.epoch++;
    good.members[2].role = VIEW_ROLE_OPERATIONAL;
    good.operational |= nodeset_of(2);
    good.live |= nodeset_of(5);
    good.members[5] = (struct view_member){
        .nonce = 77, .admitted = 10, .cid_first = 100, .cid_count = 4, .role = VIEW_ROLE_SHADOW};
    good.next_cid = 104;
    assert_null(view_invalid(&good));
    assert_null(view_succession_invalid(&base, &good));
    assert_int_equal(view_dropped(&base, &good), 0);
#define REFUSED(change)                                                                            \
    do {                                                                                           \
        bad = good;                                                                                \
        change;                                                                                    \
        assert_non_null(view_succession_invalid(&base, &bad));                                     \
    } while (0)
    REFUSED(bad.epoch++);
    REFUSED(bad.generation++);
    REFUSED(bad.generation_old++);
    REFUSED(bad.next_cid = 99);
    REFUSED(bad.configured |= nodeset_of(6));
    REFUSED(bad.members[5].admitted = 9);
    REFUSED(bad.members[5].cid_first = 99);
    REFUSED(bad.members[5].role = VIEW_ROLE_OPERATIONAL);
    REFUSED(bad.members[0].cid_first = 2);
    REFUSED(bad.members[0].role = VIEW_ROLE_SHADOW);
    REFUSED(bad.members[0].nonce++);
#undef REFUSED
    bad = good;
    bad.configured_old = base.configured;
    bad.configured |= nodeset_of(6);
    assert_null(view_succession_invalid(&base, &bad));
    /* The same node with another process was dropped, though the node is live. */
    bad = good;
    bad.members[0].nonce = 13;
    assert_int_equal(view_dropped(&base, &bad), nodeset_of(0));
    /* Recover ends the generation, and names it. */
    bad = base;
    bad.epoch++;
    bad.generation = 1;
    assert_non_null(view_succession_invalid(&base, &bad));
    bad.generation_old = base.generation;
    assert_null(view_succession_invalid(&base, &bad));
}

static void messages_survive(void **state)
{
    (void)state;
    uint8_t bytes[VIEW_MSG_ENCODED_MAX + 1];
    for (enum view_msg_kind kind = KINDS_FIRST; kind <= KINDS_LAST; kind++) {
        struct view_msg in = message(kind), out;
        assert_null(view_msg_invalid(&in));
        uint32_t n = view_msg_encode(&in, bytes);
        assert_true(n <= VIEW_MSG_ENCODED_MAX);
        assert_int_equal(view_msg_decode(bytes_of(bytes, n), &out), HK_OK);
        assert_memory_equal(&in, &out, sizeof in);
        for (uint32_t less = 0; less < n; less++) {
            assert_int_equal(view_msg_decode(bytes_of(bytes, less), &out), HK_ERR_CORRUPT);
        }
        bytes[n] = 0;
        assert_int_equal(view_msg_decode(bytes_of(bytes, n + 1), &out), HK_ERR_CORRUPT);
    }
}

static void a_promise_may_have_accepted_nothing(void **state)
{
    (void)state;
    uint8_t bytes[VIEW_MSG_ENCODED_MAX];
    struct view_msg in = message(VIEW_MSG_PROMISE), out;
    memset(&in.promise.accepted, 0, sizeof in.promise.accepted);
    memset(&in.promise.view, 0, sizeof in.promise.view);
    assert_null(view_msg_invalid(&in));
    uint32_t n = view_msg_encode(&in, bytes);
    assert_true(n < 64);
    assert_int_equal(view_msg_decode(bytes_of(bytes, n), &out), HK_OK);
    assert_memory_equal(&in, &out, sizeof in);
}

static void invalid_messages_are_refused(void **state)
{
    (void)state;
    struct view_msg bad;
#define REFUSED(kind, change)                                                                      \
    do {                                                                                           \
        bad = message(kind);                                                                       \
        change;                                                                                    \
        assert_non_null(view_msg_invalid(&bad));                                                   \
    } while (0)
    REFUSED(VIEW_MSG_ASK, bad.kind = 0);
    REFUSED(VIEW_MSG_ASK, bad.kind = KINDS_LAST + 1);
    REFUSED(VIEW_MSG_HEARTBEAT, bad.heartbeat.sent_us = 0);
    REFUSED(VIEW_MSG_HEARTBEAT, bad.heartbeat.flags = 8);
    REFUSED(VIEW_MSG_HEARTBEAT, bad.heartbeat.kept_epoch = 0);
    REFUSED(VIEW_MSG_HEARTBEAT, bad.heartbeat.configured = 0);
    REFUSED(VIEW_MSG_HEARTBEAT, bad.heartbeat.admitted = 9);
    REFUSED(VIEW_MSG_HEARTBEAT, bad.heartbeat.admitted = 0); /* copied, but no member */
    REFUSED(VIEW_MSG_GRANT, bad.grant.holder = 0);
    REFUSED(VIEW_MSG_GRANT, bad.grant.sent_us = 0);
    REFUSED(VIEW_MSG_GRANT, bad.grant.lease_us = 0);
    REFUSED(VIEW_MSG_VIEW, bad.epoch = 8);
    REFUSED(VIEW_MSG_VIEW, bad.view.operational = 0);
    REFUSED(VIEW_MSG_PREPARE, bad.prepare.ballot.round = 0);
    REFUSED(VIEW_MSG_PREPARE, bad.prepare.ballot.round = UINT64_MAX);
    REFUSED(VIEW_MSG_PREPARE, bad.prepare.ballot.node = NODES_MAX);
    REFUSED(VIEW_MSG_PREPARE, bad.prepare.instance = 0);
    REFUSED(VIEW_MSG_PREPARE, bad.prepare.instance = 1); /* names no configured nodes */
    REFUSED(VIEW_MSG_PREPARE, bad.prepare.configured = 1);
    REFUSED(VIEW_MSG_PREPARE, bad.prepare.flags = VIEW_PREPARE_RECOVER);
    REFUSED(VIEW_MSG_PREPARE, bad.prepare.flags = 4);
    REFUSED(VIEW_MSG_PROMISE, bad.promise.accepted.nonce = 0);
    REFUSED(VIEW_MSG_PROMISE, bad.promise.accepted.round = 0);
    REFUSED(VIEW_MSG_PROMISE, bad.promise.view.epoch = 8);
    REFUSED(VIEW_MSG_ACCEPT, bad.accept.view.epoch = 10);
    REFUSED(VIEW_MSG_ACCEPT, bad.accept.ballot.nonce = 0);
    REFUSED(VIEW_MSG_ACCEPTED, bad.accepted.instance = 0);
    REFUSED(VIEW_MSG_REFUSE, bad.refuse.promised.round = 0);
#undef REFUSED
}

/* Changed bytes are refused, or are the encoding of something else that is valid. */
static void changed_bytes_never_confuse(void **state)
{
    (void)state;
    uint8_t bytes[VIEW_MSG_ENCODED_MAX], again[VIEW_MSG_ENCODED_MAX];
    struct random random;
    random_init(&random, 1);
    for (enum view_msg_kind kind = KINDS_FIRST; kind <= KINDS_LAST; kind++) {
        for (uint32_t i = 0; i < 3000; i++) {
            struct view_msg msg = message(kind);
            uint32_t n = view_msg_encode(&msg, bytes);
            for (uint64_t j = random_between(&random, 1, 4); j > 0; j--) {
                bytes[random_below(&random, n)] ^= (uint8_t)(1u << random_below(&random, 8));
            }
            if (view_msg_decode(bytes_of(bytes, n), &msg) == HK_OK) {
                assert_null(view_msg_invalid(&msg));
                assert_int_equal(view_msg_encode(&msg, again), n);
                assert_memory_equal(bytes, again, n);
            }
        }
    }
}

static void ballots_order(void **state)
{
    (void)state;
    struct view_ballot a = ballot(3), b = ballot(3);
    assert_int_equal(view_ballot_compare(&a, &b), 0);
    b.nonce++;
    assert_true(view_ballot_compare(&a, &b) < 0);
    a.node = 62;
    a.nonce = 1000;
    assert_true(view_ballot_compare(&a, &b) < 0);
    a.round++;
    assert_true(view_ballot_compare(&a, &b) > 0);
    assert_true(view_ballot_none(&(struct view_ballot){0}));
    for (enum view_msg_kind kind = KINDS_FIRST; kind <= KINDS_LAST; kind++) {
        assert_string_not_equal(view_msg_name((uint8_t)kind), "?");
    }
    assert_string_equal(view_msg_name(200), "?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_senior_was_admitted_first),
        cmocka_unit_test(views_survive),
        cmocka_unit_test(the_largest_view_fits),
        cmocka_unit_test(invalid_views_are_refused),
        cmocka_unit_test(majorities_count_both_configured_sets),
        cmocka_unit_test(succession_is_checked),
        cmocka_unit_test(messages_survive),
        cmocka_unit_test(a_promise_may_have_accepted_nothing),
        cmocka_unit_test(invalid_messages_are_refused),
        cmocka_unit_test(changed_bytes_never_confuse),
        cmocka_unit_test(ballots_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
