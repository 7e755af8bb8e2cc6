/* Each rule of ownership (docs/protocols/zeus.md) by the execution that breaks without it: machines
 * driven by hand, message by message. With the rule nothing may go wrong; in a build with
 * HK_MUTANTS the same execution with the rule switched off must show the fault.
 *
 * Nodes 0, 1, 2 are the directory. A directory node drives its own requests; who drives another's
 * is drawn, so those executions try seeds until it is the one that they need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/zeus_own_rig.h"

static struct own_rig rig;

/* Five nodes; one owns the object, which has been written, and some read it. */
static struct own_rig *place(uint64_t off, uint64_t seed, uint8_t owner, nodeset readers)
{
    struct own_rig *r = &rig;
    own_rig_place(r, off, seed, owner, readers);
    return r;
}

/* The same, and a node has asked for something: its REQ is on the way to this driver. */
static struct own_rig *asked(uint64_t off, uint8_t owner, nodeset readers, uint8_t node,
                             enum own_type type, uint8_t target, uint8_t driver)
{
    struct own_rig *r = NULL;
    for (uint64_t seed = 1; seed < 100; seed++) {
        r = place(off, seed, owner, readers);
        own_rig_want(r, node, type, target);
        if (r->nodes[node].busy.driver == driver) {
            break;
        }
    }
    assert_int_equal(r->nodes[node].busy.driver, driver);
    own_rig_pass(r, node, driver, OWN_MSG_REQ);
    return r;
}

static void invite(struct own_rig *r, uint8_t driver, nodeset to)
{
    for (; to != 0; to &= to - 1) {
        own_rig_pass(r, driver, nodeset_first(to), OWN_MSG_INV);
    }
}

static void acknowledge(struct own_rig *r, nodeset from, uint8_t requester)
{
    for (; from != 0; from &= from - 1) {
        own_rig_pass(r, nodeset_first(from), requester, OWN_MSG_ACK);
    }
}

/* A directory node becomes the owner; the VALs are on the way. */
static void take_over(struct own_rig *r, uint8_t node, nodeset arbiters)
{
    own_rig_want(r, node, OWN_OWNER, NODE_NONE);
    own_rig_pass(r, node, node, OWN_MSG_REQ);
    invite(r, node, arbiters & ~nodeset_of(node));
    acknowledge(r, arbiters, node);
    assert_true(r->nodes[node].owned);
}

static void crash_and_drop(struct own_rig *r, uint8_t node)
{
    own_rig_crash(r, node);
    own_rig_drop(r, node);
}

static void adopt(struct own_rig *r, nodeset set)
{
    for (; set != 0; set &= set - 1) {
        own_rig_adopt(r, nodeset_first(set));
    }
}

/* R1. The old owner, the only replica, dies when the new one has applied. Who hears of it after the
 * change of view would take the object for lost, if it worked the vector out itself. */
static const char *run_result(uint64_t off)
{
    struct own_rig *r = place(off, 1, 3, 0);
    take_over(r, 0, 0xf);
    own_rig_pass(r, 0, 1, OWN_MSG_VAL);
    crash_and_drop(r, 3);
    own_rig_adopt(r, 2);
    own_rig_pass(r, 0, 2, OWN_MSG_VAL);
    return own_rig_verdict(r);
}

/* R2. The owner has not heard that a reader wants to own, which has all other ACKs. */
static const char *run_owner_ack(uint64_t off)
{
    struct own_rig *r = asked(off, 3, 1, 0, OWN_OWNER, NODE_NONE, 0);
    invite(r, 0, 6);
    acknowledge(r, 7, 0);
    return own_rig_verdict(r);
}

/* R2. Two readers want to own; each has a majority of the directory, and the owner. */
static const char *run_all_acks(uint64_t off)
{
    struct own_rig *r = asked(off, 3, 3, 0, OWN_OWNER, NODE_NONE, 0);
    own_rig_want(r, 1, OWN_OWNER, NODE_NONE);
    own_rig_pass(r, 1, 1, OWN_MSG_REQ);
    invite(r, 0, 0xc);
    acknowledge(r, 0xd, 0);
    invite(r, 1, 0xc);
    acknowledge(r, 0xe, 1);
    return own_rig_verdict(r);
}

/* R2. A reader that is trimmed, and does not know yet, while the owner goes on. */
static const char *run_trim_ack(uint64_t off)
{
    struct own_rig *r = asked(off, 3, 0x10, 3, OWN_TRIM, 4, 1);
    invite(r, 1, 0xd);
    acknowledge(r, 0xf, 3);
    (void)own_rig_commit(r, 3, false);
    return own_rig_verdict(r);
}

/* The owner has sent its last commit to one of two readers, the one that is no directory node. */
static void commit_in_part(struct own_rig *r)
{
    (void)own_rig_commit(r, 3, false);
    own_rig_pass(r, 3, 4, OWN_RIG_R_INV);
}

/* R3, R10. Who asks again at once, in an epoch whose commits are not recovered, gets a copy that is
 * overtaken by a replay. */
static const char *run_once(uint64_t off)
{
    struct own_rig *r = place(off, 1, 3, 0x12);
    commit_in_part(r);
    own_rig_want(r, 0, OWN_OWNER, NODE_NONE);
    crash_and_drop(r, 3);
    adopt(r, 7);
    own_rig_run_among(r, 7, OWN_RIG_OBJECT);
    return own_rig_verdict(r);
}

/* R4. A transaction that holds the object commits when another node has been granted it. */
static const char *run_pending(uint64_t off)
{
    struct own_rig *r = place(off, 1, 3, 0);
    own_rig_lock(r, 3, true);
    own_rig_want(r, 0, OWN_OWNER, NODE_NONE);
    own_rig_run_among(r, 0xf, OWN_RIG_OBJECT);
    (void)own_rig_commit(r, 3, false);
    return own_rig_verdict(r);
}

/* R5: the data race of the public specification. A reader ACKs with its copy, the owner commits and
 * ACKs with the new one, and the reader's ACK is the last to come. */
static const char *run_highest_data(uint64_t off)
{
    struct own_rig *r = asked(off, 3, 2, 4, OWN_OWNER, NODE_NONE, 2);
    invite(r, 2, 2);
    uint64_t before = r->reliable;
    (void)own_rig_commit(r, 3, false);
    own_rig_run_among(r, 0xa, OWN_RIG_REST);
    assert_true(r->reliable > before);
    invite(r, 2, 9);
    acknowledge(r, 0xd, 4);
    acknowledge(r, 2, 4);
    return own_rig_verdict(r);
}

/* R6. Who has ACKed another's request drives its own from the same vector. */
static const char *run_valid_drives(uint64_t off)
{
    struct own_rig *r = asked(off, 3, 2, 4, OWN_OWNER, NODE_NONE, 0);
    invite(r, 0, 2);
    own_rig_want(r, 1, OWN_OWNER, NODE_NONE);
    own_rig_pass(r, 1, 1, OWN_MSG_REQ);
    invite(r, 0, 0xc);
    acknowledge(r, 0xf, 4);
    assert_true(r->nodes[4].owned);
    return own_rig_verdict(r);
}

/* R6. The lower of two requests is ACKed as well: both win. */
static const char *run_higher_inv(uint64_t off)
{
    struct own_rig *r = asked(off, 3, 2, 4, OWN_OWNER, NODE_NONE, 0);
    own_rig_want(r, 1, OWN_OWNER, NODE_NONE);
    own_rig_pass(r, 1, 1, OWN_MSG_REQ);
    assert_true(r->nodes[1].busy.ts > r->nodes[0].busy.ts);
    invite(r, 1, 0xc);
    acknowledge(r, 0xe, 1);
    invite(r, 0, 0xe);
    for (uint8_t i = 0; i < 4; i++) {
        (void)own_rig_deliver(r, i, 4, OWN_RIG_OBJECT);
    }
    invite(r, 1, 1);
    own_rig_pass(r, 0, 1, OWN_MSG_ACK);
    return own_rig_verdict(r);
}

/* The driver dies when all others have its INV, and the requester no ACK. */
static struct own_rig *orphaned(uint64_t off)
{
    struct own_rig *r = asked(off, 3, 0, 4, OWN_OWNER, NODE_NONE, 0);
    invite(r, 0, 0xe);
    crash_and_drop(r, 0);
    return r;
}

/* R7. Arbiters that apply it before the requester does name an owner that does not know. */
static const char *run_first(uint64_t off)
{
    struct own_rig *r = orphaned(off);
    return own_rig_verdict(r);
}

/* R8. A replay before the dead owner's commits are: the new owner gets a copy that is overtaken. */
static const char *run_replay_waits(uint64_t off)
{
    struct own_rig *r = place(off, 1, 3, 0x12);
    commit_in_part(r);
    own_rig_want(r, 0, OWN_OWNER, NODE_NONE);
    own_rig_pass(r, 0, 0, OWN_MSG_REQ);
    invite(r, 0, 6);
    crash_and_drop(r, 3);
    adopt(r, 7);
    own_rig_run_among(r, 7, OWN_RIG_OBJECT);
    return own_rig_verdict(r);
}

static const char *run_replay(uint64_t off)
{
    struct own_rig *r = orphaned(off);
    return own_rig_verdict(r);
}

/* R9. The old owner misses the VAL, as the new one dies; another has followed meanwhile. */
static const char *run_stale(uint64_t off)
{
    struct own_rig *r = place(off, 1, 3, 0);
    take_over(r, 0, 0xf);
    own_rig_pass(r, 0, 1, OWN_MSG_VAL);
    own_rig_pass(r, 0, 2, OWN_MSG_VAL);
    take_over(r, 1, 7);
    own_rig_run_among(r, 7, OWN_RIG_OBJECT);
    crash_and_drop(r, 0);
    return own_rig_verdict(r);
}

/* Delivers what was sent before the last view. */
static void old_messages(struct own_rig *r, uint8_t from, uint8_t to)
{
    const struct own_rig_lane *lane = &r->lanes[from][to][OWN_RIG_OBJECT];
    while (lane->n > 0 && lane->messages[lane->first].epoch < own_rig_newest(r)->epoch) {
        bool delivered = own_rig_deliver(r, from, to, OWN_RIG_OBJECT);
        assert_true(delivered);
    }
}

/* Two requests are left over. In the first new epoch the owner ACKs node 1's replay, then takes
 * node 2's, which dies; in the next one the old ACK comes first. */
static const char *run_epoch(uint64_t off)
{
    struct own_rig *r = asked(off, 0, 0, 3, OWN_OWNER, NODE_NONE, 2);
    own_rig_want(r, 1, OWN_OWNER, NODE_NONE);
    own_rig_pass(r, 1, 1, OWN_MSG_REQ);
    assert_true(r->nodes[1].busy.ts < r->nodes[2].busy.ts);
    invite(r, 1, 1);
    crash_and_drop(r, 4);
    adopt(r, 0xf);
    own_rig_run_among(r, 0xf, OWN_RIG_REST);
    own_rig_pass(r, 1, 0, OWN_MSG_INV);
    old_messages(r, 2, 0);
    own_rig_pass(r, 2, 0, OWN_MSG_INV);
    crash_and_drop(r, 2);
    adopt(r, 0xb);
    own_rig_run_among(r, 0xb, OWN_RIG_REST);
    old_messages(r, 0, 1);
    own_rig_run_among(r, 2, OWN_RIG_OBJECT);
    own_rig_lock(r, 1, true); /* if it is the owner now */
    own_rig_run_among(r, 3, OWN_RIG_OBJECT);
    (void)own_rig_deliver(r, 0, 3, OWN_RIG_OBJECT);
    (void)own_rig_commit(r, 3, false);
    (void)own_rig_commit(r, 1, false);
    return own_rig_verdict(r);
}

/* The reader has come back, empty. */
static const char *run_mask(uint64_t off)
{
    struct own_rig *r = place(off, 1, 3, 0x10);
    crash_and_drop(r, 4);
    own_rig_adopt_all(r);
    own_rig_run(r);
    own_rig_admit(r, 4);
    own_rig_adopt_all(r);
    own_rig_run(r);
    bool promoted = own_rig_promote(r, 4);
    assert_true(promoted);
    own_rig_adopt_all(r);
    own_rig_run(r);
    own_rig_want(r, 0, OWN_OWNER, NODE_NONE);
    own_rig_run(r);
    return own_rig_verdict(r);
}

/* R11. A directory node that has not been sent the entry is asked. */
static const char *run_shadow(uint64_t off)
{
    struct own_rig *r = NULL;
    for (uint64_t seed = 1; seed < 100; seed++) {
        r = place(off, seed, 3, 0);
        crash_and_drop(r, 1);
        own_rig_adopt_all(r);
        own_rig_run(r);
        own_rig_admit(r, 1);
        own_rig_adopt_all(r);
        own_rig_run_among(r, 0x1f, OWN_RIG_REST);
        own_rig_want(r, 4, OWN_OWNER, NODE_NONE);
        if (r->nodes[4].busy.driver == 1) {
            break;
        }
    }
    own_rig_run_among(r, 0x12, OWN_RIG_OBJECT);
    own_rig_run_among(r, 0x17, OWN_RIG_OBJECT);
    return own_rig_verdict(r);
}

/* R13. An object that was destroyed begins anew, below the versions of its former life. */
static const char *run_clock(uint64_t off)
{
    struct own_rig *r = place(off, 1, 3, 0x10);
    for (uint32_t i = 0; i < 5; i++) {
        (void)own_rig_commit(r, 3, i == 4);
    }
    own_rig_run(r);
    own_rig_want(r, 3, OWN_DESTROY, NODE_NONE);
    own_rig_run(r);
    for (uint8_t i = 0; i < 5; i++) {
        assert_false(r->nodes[i].have || r->nodes[i].entry.ts != 0);
    }
    own_rig_want(r, 4, OWN_OWNER, NODE_NONE);
    own_rig_run(r);
    assert_true(r->nodes[4].owned);
    return own_rig_verdict(r);
}

/* A requester that has applied, and whose VALs nobody got, is told by those who replay. */
static const char *run_resp_again(uint64_t off)
{
    struct own_rig *r = asked(off, 3, 0, 4, OWN_OWNER, NODE_NONE, 0);
    invite(r, 0, 0xe);
    acknowledge(r, 0xf, 4);
    assert_true(r->nodes[4].owned);
    for (uint8_t i = 0; i < 4; i++) {
        own_rig_lose(r, 4, i);
    }
    crash_and_drop(r, 0);
    return own_rig_verdict(r);
}

/* An owner that has just created the object, and is no directory node, dies with it. */
static struct own_rig *created(uint64_t off, uint32_t commits)
{
    struct own_rig *r = &rig;
    own_rig_init(r, 5, 0, off, 1);
    r->config.degree = 0;
    own_rig_want(r, 4, OWN_OWNER, NODE_NONE);
    own_rig_run(r);
    assert_true(r->nodes[4].owned);
    for (uint32_t i = 0; i < commits; i++) {
        assert_true(own_rig_commit(r, 4, false) != 0);
    }
    own_rig_run(r);
    crash_and_drop(r, 4);
    own_rig_adopt_all(r);
    own_rig_run(r);
    own_rig_want(r, 3, OWN_OWNER, NODE_NONE);
    return r;
}

/* R15. What it wrote alone a client was told of. */
static const char *run_enough(uint64_t off)
{
    return own_rig_verdict(created(off, 3));
}

/* R17. It wrote nothing that anybody was told of. */
static const char *run_fresh(uint64_t off)
{
    struct own_rig *r = created(off, 1);
    const char *wrong = own_rig_verdict(r);
    return wrong != NULL ? wrong : r->nodes[3].owned ? NULL : "what never was is lost";
}

static void judge(enum own_rule rule, const char *(*run)(uint64_t))
{
    const char *wrong = run(0);
    if (wrong != NULL) {
        print_error("%s: %s\n", own_rule_names[rule], wrong);
        own_rig_print(&rig);
    }
    assert_null(wrong);
#ifdef HK_MUTANTS
    wrong = run(1ull << rule);
    assert_non_null(wrong);
    print_message("%s: %s\n", own_rule_names[rule], wrong);
#endif
}

struct row {
    enum own_rule rule;
    const char *(*run)(uint64_t);
};

/* One for every rule, in their order. */
static const struct row rows[OWN_RULES] = {
    {OWN_RULE_RESULT, run_result},
    {OWN_RULE_OWNER_ACK, run_owner_ack},
    {OWN_RULE_ALL_ACKS, run_all_acks},
    {OWN_RULE_TRIM_ACK, run_trim_ack},
    {OWN_RULE_ONCE, run_once},
    {OWN_RULE_PENDING, run_pending},
    {OWN_RULE_HIGHEST_DATA, run_highest_data},
    {OWN_RULE_VALID_DRIVES, run_valid_drives},
    {OWN_RULE_HIGHER_INV, run_higher_inv},
    {OWN_RULE_FIRST, run_first},
    {OWN_RULE_REPLAY_WAITS, run_replay_waits},
    {OWN_RULE_REPLAY, run_replay},
    {OWN_RULE_STALE, run_stale},
    {OWN_RULE_EPOCH, run_epoch},
    {OWN_RULE_MASK, run_mask},
    {OWN_RULE_SHADOW, run_shadow},
    {OWN_RULE_CLOCK, run_clock},
    {OWN_RULE_RESP_AGAIN, run_resp_again},
    {OWN_RULE_ENOUGH, run_enough},
    {OWN_RULE_FRESH, run_fresh},
};

static void test_rule(void **state)
{
    const struct row *row = *state;
    judge(row->rule, row->run);
}

int main(void)
{
    struct CMUnitTest tests[OWN_RULES];
    for (uint32_t i = 0; i < OWN_RULES; i++) {
        if (rows[i].rule != (enum own_rule)i || rows[i].run == NULL) {
            return 1; /* a rule without a test */
        }
        tests[i] = (struct CMUnitTest){.name = own_rule_names[i],
                                       .test_func = test_rule,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
