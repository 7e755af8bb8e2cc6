/* Each rule of docs/protocols/zeus-commit.md by the execution that breaks without it: machines
 * driven by hand, message by message. With the rule nothing may go wrong; in a build with
 * HK_MUTANTS the same execution with the rule switched off must show the fault.
 *
 * Node 0 coordinates; its followers are 1 and 2. Unless said otherwise worker 0 does it all. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/zeus_commit_rig.h"

#define A 1u /* objects */
#define B 2u
#define NODE_1 2u /* sets of nodes */
#define NODE_2 4u

static struct crig rig;

/* Node 0 owns all objects, and all others read them. */
static struct crig *begin(uint8_t n, uint64_t rules_off)
{
    crig_init(&rig, n, rules_off, 1);
    for (uint32_t o = 0; o < CRIG_OBJECTS; o++) {
        crig_place(&rig, o, 0, rig.views[0].live & ~(nodeset)1);
    }
    return &rig;
}

static uint32_t commit(struct crig *r, uint32_t writes, uint32_t reads)
{
    uint32_t txn = crig_commit(r, 0, 0, writes, reads);
    assert_int_not_equal(txn, 0);
    return txn;
}

/* The follower takes an R-INV, and its R-ACK comes back. */
static void acknowledge(struct crig *r, uint8_t follower)
{
    crig_pass(r, 0, follower, 0, COMMIT_MSG_INV);
    crig_pass(r, follower, 0, 0, COMMIT_MSG_ACK);
}

/* What the node has sent to the other and has not come is lost. */
static void die(struct crig *r, uint8_t node)
{
    crig_crash(r, node);
    for (uint8_t to = 0; to < r->n; to++) {
        for (uint8_t w = 0; w < CRIG_WORKERS; w++) {
            crig_lose(r, node, to, w, 0);
        }
    }
}

static void crash_and_drop(struct crig *r, uint8_t node)
{
    crig_crash(r, node);
    crig_drop(r, node);
}

static void adopt(struct crig *r, uint8_t node)
{
    for (uint8_t w = 0; w < CRIG_WORKERS; w++) {
        crig_adopt(r, node, w);
    }
}

/* The follower has adopted the next view when the R-VAL of the one before comes. */
static const char *run_val_any_epoch(uint64_t off)
{
    struct crig *r = begin(4, off);
    (void)commit(r, A, A);
    for (uint8_t i = 1; i <= 3; i++) {
        acknowledge(r, i);
    }
    crash_and_drop(r, 3);
    adopt(r, 1);
    crig_pass(r, 0, 1, 0, COMMIT_MSG_VAL);
    return crig_settle(r);
}

/* A follower dies that replayed, and comes back, when its last message arrives: of the dead
 * coordinator's transaction nothing is left elsewhere. */
static const char *run_inv_epoch(uint64_t off)
{
    struct crig *r = begin(4, off);
    (void)commit(r, A, A);
    crig_pass(r, 0, 1, 0, COMMIT_MSG_INV);
    die(r, 0);
    crig_drop(r, 0);
    crig_adopt_all(r);
    crig_crash(r, 1);
    crig_lose(r, 1, 3, 0, 0);
    crig_drop(r, 1);
    crig_admit(r, 1);
    adopt(r, 2);
    crig_pass(r, 1, 2, 0, COMMIT_MSG_INV);
    return crig_settle(r);
}

/* The coordinator's R-INV arrives at one follower when it is no member any more. */
static const char *run_inv_member(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, A, A);
    crig_lose(r, 0, 1, 0, 0);
    crash_and_drop(r, 0);
    crig_adopt_all(r);
    crig_pass(r, 0, 2, 0, COMMIT_MSG_INV);
    return crig_settle(r);
}

/* The second transaction read what the first wrote, and another node follows it. */
static const char *run_partial(uint64_t off)
{
    struct crig *r = begin(3, off);
    crig_place(r, 0, 0, NODE_1);
    crig_place(r, 1, 0, NODE_2);
    (void)commit(r, A, A);
    (void)commit(r, B, A | B);
    (void)crig_deliver(r, 0, 2, 0);
    die(r, 0);
    return crig_settle(r);
}

/* The same between two pipelines of a node. */
static const char *run_own_pipe(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, A, A);
    (void)crig_commit(r, 0, 1, B, A | B);
    for (uint8_t i = 1; i <= 2; i++) {
        (void)crig_deliver(r, 0, i, 1);
        (void)crig_deliver(r, i, 0, 1);
    }
    die(r, 0);
    return crig_settle(r);
}

static const char *run_durable(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, A, A);
    die(r, 0);
    return crig_settle(r);
}

/* One follower holds one of the objects, and alone knows the transaction. */
static const char *run_whole(uint64_t off)
{
    struct crig *r = begin(3, off);
    crig_place(r, 0, 0, NODE_1);
    crig_place(r, 1, 0, NODE_2);
    (void)commit(r, A | B, A | B);
    crig_pass(r, 0, 1, 0, COMMIT_MSG_INV);
    die(r, 0);
    return crig_settle(r);
}

/* The object has moved and was written again when a follower, who missed the R-VAL, replays. */
static const char *run_version(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, A, A);
    acknowledge(r, 1);
    acknowledge(r, 2);
    crig_pass(r, 0, 2, 0, COMMIT_MSG_VAL);
    bool moved = crig_move(r, 0, 2);
    assert_true(moved);
    assert_int_not_equal(crig_commit(r, 2, 0, A, A), 0);
    die(r, 0);
    crig_forget(r, 2, 0);
    return crig_settle(r);
}

/* The R-VAL of the first of two writes of an object comes behind the second R-INV; who has that
 * dies with its coordinator. */
static const char *run_val_version(uint64_t off)
{
    struct crig *r = begin(5, off);
    crig_place(r, 0, 0, NODE_1 | NODE_2);
    (void)commit(r, A, A);
    (void)commit(r, A, A);
    acknowledge(r, 1);
    acknowledge(r, 1);
    acknowledge(r, 2);
    crig_pass(r, 0, 1, 0, COMMIT_MSG_VAL);
    (void)crig_read(r, 1, A);
    die(r, 0);
    die(r, 1);
    return crig_settle(r);
}

static const char *run_all_acks(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, A, A);
    acknowledge(r, 1);
    (void)crig_read(r, 2, A);
    return crig_settle(r);
}

static const char *run_replay(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, A, A);
    crig_pass(r, 0, 1, 0, COMMIT_MSG_INV);
    die(r, 0);
    return crig_settle(r);
}

/* A follower replays two transactions that the other has not, and dies when the first message that
 * it sent was acknowledged. */
static const char *run_order(uint64_t off)
{
    struct crig *r = begin(5, off);
    crig_place(r, 0, 0, NODE_1 | NODE_2);
    crig_place(r, 1, 0, NODE_1 | NODE_2);
    (void)commit(r, A, A);
    (void)commit(r, B, A | B);
    crig_pass(r, 0, 1, 0, COMMIT_MSG_INV);
    crig_pass(r, 0, 1, 0, COMMIT_MSG_INV);
    die(r, 0);
    crig_drop(r, 0);
    crig_adopt_all(r);
    crig_pass(r, 1, 2, 0, COMMIT_MSG_INV);
    crig_pass(r, 2, 1, 0, COMMIT_MSG_ACK);
    die(r, 1);
    return crig_settle(r);
}

static const char *run_mask(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, A, A);
    acknowledge(r, 1);
    die(r, 2);
    return crig_settle(r);
}

/* Another node takes the object over and writes it before a follower has replayed a transaction
 * that the new owner does not know. */
static const char *run_recovered(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, A | B, A | B);
    crig_pass(r, 0, 1, 0, COMMIT_MSG_INV);
    die(r, 0);
    crig_drop(r, 0);
    crig_adopt_all(r);
    if (crig_take_over(r, 0, 2)) {
        assert_int_not_equal(crig_commit(r, 2, 0, A, A), 0);
    }
    return crig_settle(r);
}

/* Three followers replay. One is done with it and tells the two others, of whom one forgets the
 * pipeline; then the third's R-INV comes to it. */
static const char *run_again(uint64_t off)
{
    struct crig *r = begin(4, off);
    (void)commit(r, A, A);
    for (uint8_t i = 1; i <= 3; i++) {
        crig_pass(r, 0, i, 0, COMMIT_MSG_INV);
    }
    die(r, 0);
    crig_drop(r, 0);
    crig_adopt_all(r);
    for (uint8_t i = 1; i <= 3; i += 2) {
        crig_pass(r, 2, i, 0, COMMIT_MSG_INV);
        crig_pass(r, i, 2, 0, COMMIT_MSG_INV);
        crig_pass(r, i, 2, 0, COMMIT_MSG_ACK);
    }
    for (uint8_t i = 1; i <= 3; i += 2) {
        crig_pass(r, 2, i, 0, COMMIT_MSG_ACK);
        crig_pass(r, 2, i, 0, COMMIT_MSG_VAL);
    }
    crig_forget(r, 1, 0);
    crig_pass(r, 3, 1, 0, COMMIT_MSG_INV);
    return crig_settle(r);
}

/* A transaction of another pipeline writes what this one has read, and is done first: who sees it
 * sees the object that this one writes as it was before. */
static const char *run_read(uint64_t off)
{
    struct crig *r = begin(3, off);
    (void)commit(r, B, A | B);
    (void)crig_commit(r, 0, 1, A, A);
    for (uint8_t i = 1; i <= 2; i++) {
        (void)crig_deliver(r, 0, i, 1);
        (void)crig_deliver(r, i, 0, 1);
    }
    (void)crig_deliver(r, 0, 1, 1);
    assert_int_not_equal(crig_read(r, 1, A | B), 0);
    return crig_settle(r);
}

static void judge(enum commit_rule rule, const char *(*run)(uint64_t))
{
    const char *wrong = run(0);
    if (wrong != NULL) {
        print_error("%s: %s\n", commit_rule_names[rule], wrong);
        crig_print(&rig);
    }
    assert_null(wrong);
#ifdef HK_MUTANTS
    wrong = run(1ull << rule);
    assert_non_null(wrong);
    print_message("without %s: %.60s\n", commit_rule_names[rule], wrong);
#endif
}

struct row {
    enum commit_rule rule;
    const char *(*run)(uint64_t);
};

/* One for every rule, in their order. */
static const struct row rows[COMMIT_RULES] = {
    {COMMIT_RULE_VAL_ANY_EPOCH, run_val_any_epoch},
    {COMMIT_RULE_INV_EPOCH, run_inv_epoch},
    {COMMIT_RULE_INV_MEMBER, run_inv_member},
    {COMMIT_RULE_PARTIAL, run_partial},
    {COMMIT_RULE_OWN_PIPE, run_own_pipe},
    {COMMIT_RULE_DURABLE, run_durable},
    {COMMIT_RULE_WHOLE, run_whole},
    {COMMIT_RULE_VERSION, run_version},
    {COMMIT_RULE_VAL_VERSION, run_val_version},
    {COMMIT_RULE_ALL_ACKS, run_all_acks},
    {COMMIT_RULE_REPLAY, run_replay},
    {COMMIT_RULE_ORDER, run_order},
    {COMMIT_RULE_MASK, run_mask},
    {COMMIT_RULE_RECOVERED, run_recovered},
    {COMMIT_RULE_AGAIN, run_again},
    {COMMIT_RULE_READ, run_read},
};

static void test_rule(void **state)
{
    const struct row *row = *state;
    judge(row->rule, row->run);
}

int main(void)
{
    struct CMUnitTest tests[COMMIT_RULES];
    for (uint32_t i = 0; i < COMMIT_RULES; i++) {
        if (rows[i].rule != (enum commit_rule)i || rows[i].run == NULL) {
            return 1; /* a rule without a test */
        }
        tests[i] = (struct CMUnitTest){.name = commit_rule_names[i],
                                       .test_func = test_rule,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
