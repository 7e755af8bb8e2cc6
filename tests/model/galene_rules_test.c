/* Each rule of docs/protocols/galene.md by the execution that breaks without it: machines driven by
 * hand, message by message. With the rule nothing may go wrong; in a build with HK_MUTANTS the same
 * execution with the rule switched off must show the fault.
 *
 * Node 0 is the home and has the key. What another worker of a node sends travels in a lane of its
 * own: that is how messages of one node pass each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "support/galene_rig.h"

static struct rig rig;

static struct rig *begin(uint8_t n, uint8_t workers, uint64_t rules_off)
{
    rig_init(&rig, n, workers, false, rules_off, 1);
    return &rig;
}

static void hot(struct rig *r, uint8_t node, enum hot_code code)
{
    bool taken = rig_hot(r, node, 0, code, ++r->generation);
    assert_true(taken);
}

/* The key is cached on all nodes. */
static struct rig *cached(uint8_t n, uint8_t workers, uint64_t rules_off)
{
    struct rig *r = begin(n, workers, rules_off);
    hot(r, 0, HOT_ENTER);
    rig_run(r);
    for (uint8_t i = 0; i < n; i++) {
        assert_int_equal(r->nodes[i].meta.state, GALENE_VALID);
    }
    return r;
}

static void read_everywhere(struct rig *r)
{
    for (nodeset rest = rig_newest(r)->operational; rest != 0; rest &= rest - 1) {
        (void)rig_do(r, nodeset_first(rest), 0, RIG_READ);
    }
}

/* NULL, or what went wrong. */
static const char *verdict(struct rig *r)
{
    if (!rig_sound(r)) {
        return "not linearizable";
    }
    const char *why = rig_settle(r);
    if (why != NULL) {
        return why;
    }
    read_everywhere(r);
    why = rig_settle(r);
    if (why != NULL) {
        return why;
    }
    return rig_sound(r) ? NULL : "not linearizable in the end";
}

static void crash_and_drop(struct rig *r, uint8_t node)
{
    rig_crash(r, node);
    rig_drop(r, node);
}

/* ---- Reads and writes of cached keys ---- */

/* Two writes at once: the one that loses comes to the winner. */
static const char *run_two_writes(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    (void)rig_do(r, 2, 0, RIG_WRITE);
    rig_pass(r, 1, 0, 2, GALENE_INV);
    return verdict(r);
}

/* The winner has ended when the loser has all its ACKs. */
static const char *run_overtaken(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    uint32_t winner = rig_do(r, 2, 0, RIG_WRITE);
    rig_pass(r, 2, 0, 1, GALENE_INV);
    rig_pass(r, 2, 0, 0, GALENE_INV);
    rig_pass(r, 1, 0, 2, GALENE_INV);
    rig_pass(r, 1, 0, 2, GALENE_ACK);
    rig_pass(r, 0, 0, 2, GALENE_ACK);
    assert_true(r->ops[winner].done);
    (void)rig_do(r, 2, 0, RIG_READ);
    rig_run(r);
    (void)rig_do(r, 1, 0, RIG_READ);
    return verdict(r);
}

/* Everybody hears of the update that worker 0 of node 1 has issued, and acknowledges it. */
static void acknowledge(struct rig *r)
{
    rig_pass(r, 1, 0, 0, GALENE_INV);
    rig_pass(r, 1, 0, 2, GALENE_INV);
    rig_pass(r, 0, 0, 1, GALENE_ACK);
    rig_pass(r, 2, 0, 1, GALENE_ACK);
}

static const char *run_all_acks(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    rig_pass(r, 1, 0, 0, GALENE_INV);
    rig_pass(r, 0, 0, 1, GALENE_ACK);
    (void)rig_do(r, 2, 0, RIG_READ);
    return verdict(r);
}

/* Each of two writes comes to the other's writer. */
static const char *run_higher(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    (void)rig_do(r, 2, 0, RIG_WRITE);
    rig_pass(r, 1, 0, 2, GALENE_INV);
    rig_pass(r, 2, 0, 1, GALENE_INV);
    return verdict(r);
}

/* The writer has ended, its UPD is on the way. */
static const char *run_read_valid(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    uint32_t w = rig_do(r, 1, 0, RIG_WRITE);
    acknowledge(r);
    assert_true(r->ops[w].done);
    (void)rig_do(r, 2, 0, RIG_READ);
    return verdict(r);
}

/* An RMW beats a write that it has not seen, and that completes as if it stood before. */
static const char *run_rmw_step(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    (void)rig_do(r, 2, 0, RIG_RMW);
    return verdict(r);
}

/* Two RMWs that were computed on the same value: the lower one has all its ACKs first. */
static const char *run_nack(uint64_t off)
{
    struct rig *r = cached(3, 2, off);
    (void)rig_do(r, 1, 0, RIG_RMW);
    (void)rig_do(r, 2, 1, RIG_RMW);
    rig_pass(r, 1, 0, 2, GALENE_INV);
    rig_pass(r, 1, 0, 0, GALENE_INV);
    rig_pass(r, 0, 0, 1, GALENE_ACK);
    rig_pass(r, 2, 0, 1, GALENE_ACK);
    return verdict(r);
}

/* A write has ended while a higher one was under way, which ends when an RMW on the first has begun
 * that beats it. */
static const char *run_named(uint64_t off)
{
    struct rig *r = cached(3, 2, off);
    uint32_t w = rig_do(r, 1, 0, RIG_WRITE);
    (void)rig_do(r, 2, 1, RIG_DELETE);
    acknowledge(r);
    assert_true(r->ops[w].done);
    (void)rig_do(r, 1, 0, RIG_RMW);
    for (uint8_t i = 0; i < 2; i++) {
        rig_pass(r, 2, 1, i, GALENE_INV);
        rig_pass(r, i, 1, 2, GALENE_ACK);
    }
    (void)rig_do(r, 2, 0, RIG_READ);
    return verdict(r);
}

/* The key enters in a view with a newcomer, and a worker that has not heard of it writes. */
static const char *run_newcomers(uint64_t off)
{
    struct rig *r = begin(3, 2, off);
    crash_and_drop(r, 2);
    rig_admit(r, 2);
    for (uint8_t w = 0; w < 2; w++) {
        rig_adopt(r, 0, w);
    }
    rig_learn(r, 0);
    rig_learn(r, 0);
    rig_adopt(r, 1, 0);
    hot(r, 0, HOT_ENTER);
    rig_run(r);
    assert_int_equal(r->nodes[1].meta.state, GALENE_VALID);
    assert_int_equal(r->nodes[2].meta.state, GALENE_VALID);
    uint32_t w = rig_do(r, 1, 1, RIG_WRITE);
    assert_int_equal(r->ops[w].wait, RIG_ISSUED);
    rig_pass(r, 1, 1, 0, GALENE_INV);
    rig_adopt(r, 1, 1);
    rig_pass(r, 0, 1, 1, GALENE_ACK);
    (void)rig_do(r, 2, 0, RIG_READ);
    return verdict(r);
}

/* The UPD of a write comes after the INV, and the end, of the next one. */
static const char *run_upd_ts(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    (void)rig_do(r, 1, 0, RIG_WRITE);
    acknowledge(r);
    rig_pass(r, 1, 0, 2, GALENE_UPD);
    uint32_t w = rig_do(r, 2, 0, RIG_WRITE);
    rig_pass(r, 2, 0, 0, GALENE_INV);
    rig_pass(r, 2, 0, 1, GALENE_INV);
    rig_pass(r, 0, 0, 2, GALENE_ACK);
    rig_pass(r, 1, 0, 2, GALENE_ACK);
    assert_true(r->ops[w].done);
    rig_pass(r, 1, 0, 0, GALENE_UPD);
    (void)rig_do(r, 0, 0, RIG_READ);
    return verdict(r);
}

/* All that worker 0 of the nodes has to say. */
static void run_workers_0(struct rig *r)
{
    bool some = true;
    while (some) {
        some = false;
        for (uint32_t i = 0; i < (uint32_t)r->n * r->n; i++) {
            some = rig_deliver(r, (uint8_t)(i / r->n), 0, (uint8_t)(i % r->n), 0) || some;
        }
    }
}

/* An UPD of an older stay in the hot set, at a timestamp that was given once more after the key had
 * been deleted. */
static const char *run_upd_generation(uint64_t off)
{
    struct rig *r = begin(2, 2, off);
    uint64_t ts = r->nodes[0].meta.ts;
    bool taken = rig_hot(r, 0, 1, HOT_ENTER, ++r->generation);
    assert_true(taken);
    rig_pass(r, 0, 1, 1, GALENE_ENTER);
    rig_pass(r, 1, 1, 0, GALENE_ACK);
    assert_int_equal(r->nodes[0].meta.state, GALENE_VALID); /* the UPD stays on the way */
    hot(r, 0, HOT_LEAVE);
    rig_sweep(r, 1, 0);
    run_workers_0(r);
    (void)rig_timers(r);
    run_workers_0(r);
    assert_int_equal(r->nodes[0].meta.state, GALENE_HOME);
    do {
        (void)rig_do(r, 0, 0, RIG_DELETE);
        (void)rig_do(r, 0, 0, RIG_WRITE);
    } while (r->nodes[0].meta.ts != ts);
    hot(r, 0, HOT_ENTER);
    rig_pass(r, 0, 0, 1, GALENE_ENTER);
    rig_pass(r, 0, 1, 1, GALENE_UPD);
    (void)rig_do(r, 1, 0, RIG_READ);
    return verdict(r);
}

/* An INV of an older stay, by a writer who is dead, comes to a worker that does not know that. */
static const char *run_inv_generation(uint64_t off)
{
    struct rig *r = cached(3, 2, off);
    (void)rig_do(r, 2, 1, RIG_WRITE);
    crash_and_drop(r, 2);
    rig_adopt(r, 0, 0);
    rig_adopt(r, 0, 1);
    rig_adopt(r, 1, 0);
    rig_learn(r, 0);
    rig_learn(r, 1);
    hot(r, 0, HOT_LEAVE);
    run_workers_0(r);
    assert_int_equal(r->nodes[0].meta.state, GALENE_HOME);
    hot(r, 0, HOT_ENTER);
    run_workers_0(r);
    rig_pass(r, 2, 1, 1, GALENE_INV);
    uint32_t read = rig_do(r, 1, 0, RIG_READ);
    const char *why = verdict(r);
    return why != NULL || r->ops[read].done ? why : "lost, although nothing was";
}

/* The incarnation before had the same c_ids, and left a write unfinished. */
static const char *run_cid(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    (void)rig_do(r, 2, 0, RIG_WRITE);
    rig_pass(r, 2, 0, 1, GALENE_INV);
    crash_and_drop(r, 2);
    return verdict(r);
}

/* ---- Entering and leaving ---- */

/* What another worker of the home writes meanwhile passes the entry. */
static const char *run_enter_all(uint64_t off)
{
    struct rig *r = begin(3, 2, off);
    hot(r, 0, HOT_ENTER);
    (void)rig_do(r, 0, 1, RIG_WRITE);
    for (uint8_t to = 1; to < 3; to++) {
        if (r->lanes[0][1][to][1].n > 0) {
            rig_pass(r, 0, 1, to, GALENE_INV);
            rig_pass(r, to, 1, 0, GALENE_ACK);
        }
    }
    rig_run(r);
    (void)rig_do(r, 1, 0, RIG_READ);
    return verdict(r);
}

/* A node with a write under way is asked to leave; the INV is slower than the answer. */
static const char *run_report_idle(uint64_t off)
{
    struct rig *r = cached(2, 2, off);
    (void)rig_do(r, 1, 1, RIG_WRITE);
    hot(r, 0, HOT_LEAVE);
    rig_pass(r, 0, 0, 1, GALENE_LEAVE);
    if (r->lanes[1][0][0][0].n > 0) {
        rig_pass(r, 1, 0, 0, GALENE_REPORT);
    }
    rig_pass(r, 1, 1, 0, GALENE_INV);
    rig_pass(r, 0, 1, 1, GALENE_ACK);
    return verdict(r);
}

/* A node writes after it has reported. */
static const char *run_leaving(uint64_t off)
{
    struct rig *r = cached(2, 2, off);
    hot(r, 0, HOT_LEAVE);
    rig_pass(r, 0, 0, 1, GALENE_LEAVE);
    rig_pass(r, 1, 0, 0, GALENE_REPORT);
    uint32_t w = rig_do(r, 1, 1, RIG_WRITE);
    if (r->ops[w].wait == RIG_ISSUED) {
        rig_pass(r, 1, 1, 0, GALENE_INV);
        rig_pass(r, 0, 1, 1, GALENE_ACK);
    }
    return verdict(r);
}

/* The writer has ended and reports; its UPD is slower. */
static const char *run_reported(uint64_t off)
{
    struct rig *r = cached(2, 2, off);
    hot(r, 0, HOT_LEAVE);
    (void)rig_do(r, 1, 1, RIG_WRITE);
    rig_pass(r, 1, 1, 0, GALENE_INV);
    rig_pass(r, 0, 1, 1, GALENE_ACK);
    run_workers_0(r);
    (void)rig_do(r, 0, 0, RIG_READ);
    return verdict(r);
}

/* The home writes while a cache still answers. */
static const char *run_dropped_all(uint64_t off)
{
    struct rig *r = cached(2, 1, off);
    hot(r, 0, HOT_LEAVE);
    rig_pass(r, 0, 0, 1, GALENE_LEAVE);
    rig_pass(r, 1, 0, 0, GALENE_REPORT);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    (void)rig_do(r, 1, 0, RIG_READ);
    return verdict(r);
}

/* A newcomer has ACKed the INV of a write under way, of which the home has not heard. */
static const char *run_reenter(uint64_t off)
{
    struct rig *r = cached(3, 2, off);
    crash_and_drop(r, 2);
    rig_adopt_all(r);
    rig_admit(r, 2);
    rig_adopt_all(r);
    (void)rig_do(r, 1, 1, RIG_WRITE);
    rig_pass(r, 1, 1, 2, GALENE_INV);
    rig_pass(r, 2, 1, 1, GALENE_ACK);
    hot(r, 0, HOT_ENTER);
    run_workers_0(r);
    rig_pass(r, 1, 1, 0, GALENE_INV);
    rig_pass(r, 0, 1, 1, GALENE_ACK);
    (void)rig_do(r, 2, 0, RIG_READ);
    return verdict(r);
}

/* ---- Moving ---- */

static void learn_everything(struct rig *r, uint8_t node)
{
    for (uint32_t i = 0; i < r->nmaps; i++) {
        rig_learn(r, node);
    }
}

static void start_move(struct rig *r, uint8_t to)
{
    bool moves = rig_map_move(r, to);
    assert_true(moves);
    learn_everything(r, 0);
    moves = rig_move(r, 0, 0);
    assert_true(moves && r->nodes[0].begun);
}

/* A node that was the home until now does not know that the new one has let the key enter. */
static const char *run_keeper(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    start_move(r, 1);
    rig_run(r);
    bool moved = rig_map_moved(r);
    assert_true(moved);
    learn_everything(r, 1);
    learn_everything(r, 2);
    hot(r, 1, HOT_ENTER);
    rig_run(r);
    assert_int_equal(r->nodes[0].meta.state, GALENE_VALID);
    moved = rig_move(r, 0, 0);
    assert_true(moved);
    rig_run(r);
    (void)rig_timers(r);
    rig_run(r);
    learn_everything(r, 0);
    (void)rig_do(r, 1, 0, RIG_READ);
    return verdict(r);
}

/* The old home takes a write while the key is on its way. */
static const char *run_move_stall(uint64_t off)
{
    struct rig *r = begin(2, 1, off);
    start_move(r, 1);
    (void)rig_do(r, 0, 0, RIG_WRITE);
    rig_run(r);
    (void)rig_do(r, 1, 0, RIG_READ);
    return verdict(r);
}

/* The new home has taken a write and dies; the old one does not know that it had the key. */
static const char *run_move_dead(uint64_t off)
{
    struct rig *r = begin(3, 1, off);
    start_move(r, 1);
    rig_pass(r, 0, 0, 1, GALENE_ITEM);
    uint32_t w = rig_do(r, 1, 0, RIG_WRITE);
    assert_true(r->ops[w].done);
    crash_and_drop(r, 1);
    rig_adopt_all(r);
    (void)rig_do(r, 0, 0, RIG_READ);
    return verdict(r);
}

/* ---- Orphans ---- */

static const char *run_rescue(uint64_t off)
{
    struct rig *r = cached(3, 1, off);
    (void)rig_do(r, 2, 0, RIG_WRITE);
    rig_pass(r, 2, 0, 1, GALENE_INV);
    crash_and_drop(r, 2);
    return verdict(r);
}

/* Of three who are left one has the value, and is asked last. */
static const char *run_rescue_all(uint64_t off)
{
    struct rig *r = cached(4, 1, off);
    uint32_t w = rig_do(r, 3, 0, RIG_WRITE);
    for (uint8_t i = 0; i < 3; i++) {
        rig_pass(r, 3, 0, i, GALENE_INV);
        rig_pass(r, i, 0, 3, GALENE_ACK);
    }
    assert_true(r->ops[w].done);
    rig_pass(r, 3, 0, 1, GALENE_UPD);
    crash_and_drop(r, 3);
    rig_adopt_all(r);
    uint32_t read = rig_do(r, 0, 0, RIG_READ);
    rig_pass(r, 0, 0, 2, GALENE_QUERY);
    rig_pass(r, 2, 0, 0, GALENE_NOPE);
    rig_push(r, read);
    const char *why = verdict(r);
    return why != NULL || r->ops[read].done ? why : "lost, although somebody has it";
}

/* Nobody has the dead writer's value, and somebody not even the one before it. */
static const char *run_rescue_valid(uint64_t off)
{
    struct rig *r = cached(3, 2, off);
    uint32_t w = rig_do(r, 2, 0, RIG_WRITE);
    for (uint8_t i = 0; i < 2; i++) {
        rig_pass(r, 2, 0, i, GALENE_INV);
        rig_pass(r, i, 0, 2, GALENE_ACK);
    }
    assert_true(r->ops[w].done);
    (void)rig_do(r, 2, 1, RIG_WRITE);
    for (uint8_t i = 0; i < 2; i++) {
        rig_pass(r, 2, 1, i, GALENE_INV);
    }
    crash_and_drop(r, 2);
    rig_adopt_all(r);
    (void)rig_do(r, 0, 0, RIG_READ);
    return verdict(r);
}

static void judge(enum galene_rule rule, const char *(*run)(uint64_t))
{
    const char *wrong = run(0);
    if (wrong != NULL) {
        print_error("%s: %s\n", galene_rule_names[rule], wrong);
        rig_print(&rig);
    }
    assert_null(wrong);
#ifdef HK_MUTANTS
    assert_non_null(run(1ull << rule));
#endif
}

struct row {
    enum galene_rule rule;
    const char *(*run)(uint64_t);
};

/* One for every rule, in their order. */
static const struct row rows[GALENE_RULES] = {
    {GALENE_RULE_ACK_ALWAYS, run_two_writes},
    {GALENE_RULE_LOSER_DONE, run_two_writes},
    {GALENE_RULE_OVERTAKEN, run_overtaken},
    {GALENE_RULE_ALL_ACKS, run_all_acks},
    {GALENE_RULE_HIGHER, run_higher},
    {GALENE_RULE_READ_VALID, run_read_valid},
    {GALENE_RULE_RMW_STEP, run_rmw_step},
    {GALENE_RULE_NACK, run_nack},
    {GALENE_RULE_NAMED, run_named},
    {GALENE_RULE_NEWCOMERS, run_newcomers},
    {GALENE_RULE_UPD_TS, run_upd_ts},
    {GALENE_RULE_UPD_GENERATION, run_upd_generation},
    {GALENE_RULE_INV_GENERATION, run_inv_generation},
    {GALENE_RULE_CID, run_cid},
    {GALENE_RULE_ENTER_ALL, run_enter_all},
    {GALENE_RULE_REPORT_IDLE, run_report_idle},
    {GALENE_RULE_LEAVING, run_leaving},
    {GALENE_RULE_REPORTED, run_reported},
    {GALENE_RULE_DROPPED_ALL, run_dropped_all},
    {GALENE_RULE_REENTER, run_reenter},
    {GALENE_RULE_KEEPER, run_keeper},
    {GALENE_RULE_MOVE_STALL, run_move_stall},
    {GALENE_RULE_MOVE_DEAD, run_move_dead},
    {GALENE_RULE_RESCUE, run_rescue},
    {GALENE_RULE_RESCUE_ALL, run_rescue_all},
    {GALENE_RULE_RESCUE_VALID, run_rescue_valid},
};

static void test_rule(void **state)
{
    const struct row *row = *state;
    judge(row->rule, row->run);
}

int main(void)
{
    struct CMUnitTest tests[GALENE_RULES];
    for (uint32_t i = 0; i < GALENE_RULES; i++) {
        if (rows[i].rule != (enum galene_rule)i || rows[i].run == NULL) {
            return 1; /* a rule without a test */
        }
        tests[i] = (struct CMUnitTest){.name = galene_rule_names[i],
                                       .test_func = test_rule,
                                       .initial_state = (void *)(uintptr_t)&rows[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
