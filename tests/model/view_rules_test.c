/* For each rule of the view protocol the execution that it forbids, driven by hand step by step.
 * A scenario tells whether the fault was seen. With all rules on it must not be; in HK_MUTANTS
 * builds it must be as soon as the rule is switched off, which shows that the scenario would
 * notice. docs/protocols/view.md tells each story. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/view_cluster.h"
#include "view/rules.h"

#define KIND(k) (1u << VIEW_MSG_##k)
#define BEATS KIND(HEARTBEAT)
#define LEASE_US 1000000u
#define TURN_US 20000u /* the back-off of the second in rank */

static struct view_cluster cluster;

/* n nodes in one view, all leased; then by hand. Process i is node i's first one. */
static struct view_cluster *formed(uint32_t n, uint64_t rules_off)
{
    struct view_cluster *c = &cluster;
    view_cluster_init(c, n, 1);
    c->config.lease_us = LEASE_US;
    c->config.margin_us = 50000;
    c->config.heartbeat_us = TURN_US / 2;
    c->config.suspect_us = 900000;
    c->rules_off = rules_off;
    for (uint8_t i = 0; i < n; i++) {
        (void)view_cluster_start(c, i);
    }
    view_cluster_run(c, c->now + 100000);
    assert_true(view_cluster_settled(c));
    assert_int_equal(c->decided_n, 1);
    view_cluster_by_hand(c);
    return c;
}

/* Longer than any grant. Nobody runs meanwhile, so nobody is suspected for being silent. */
static void grants_run_out(struct view_cluster *c)
{
    c->now += LEASE_US + LEASE_US / 10;
}

/* The process sends heartbeats, to everybody. */
static void beat(struct view_cluster *c, uint32_t process)
{
    uint64_t due = c->process[process].machine.heartbeat_at_us;
    c->now = c->now > due ? c->now : due;
    view_cluster_tick(c, process);
}

static void suspect(struct view_cluster *c, uint32_t process, uint8_t node)
{
    view_cluster_event(c, process, (struct view_event){.kind = VIEW_EVENT_SUSPECT, .node = node});
}

/* The second in rank waits its turn. */
static void its_turn(struct view_cluster *c, uint32_t process)
{
    c->now += TURN_US;
    view_cluster_tick(c, process);
}

static void tell_view(struct view_cluster *c, uint32_t from, uint32_t to)
{
    view_cluster_event(c, from,
                       (struct view_event){.kind = VIEW_EVENT_HINT, .node = c->process[to].node});
    assert_int_not_equal(view_cluster_deliver(c, from, to, KIND(VIEW)), 0);
}

static void phase_one(struct view_cluster *c, uint32_t proposer, uint32_t acceptor)
{
    (void)view_cluster_deliver(c, proposer, acceptor, KIND(PREPARE));
    (void)view_cluster_deliver(c, acceptor, proposer, KIND(PROMISE) | KIND(REFUSE));
}

/* The acceptance itself, not its answer. */
static void phase_two(struct view_cluster *c, uint32_t proposer, uint32_t acceptor)
{
    (void)view_cluster_deliver(c, proposer, acceptor, KIND(ACCEPT));
}

static void answer(struct view_cluster *c, uint32_t acceptor, uint32_t proposer)
{
    (void)view_cluster_deliver(c, acceptor, proposer, KIND(ACCEPTED));
}

/* Proposer and acceptor decide what the proposer has begun; the proposer learns it. */
static void decide(struct view_cluster *c, uint32_t proposer, uint32_t acceptor)
{
    phase_one(c, proposer, acceptor);
    phase_two(c, proposer, acceptor);
    answer(c, acceptor, proposer);
}

/* The same, when a third process is to be kept: the proposer must have heard its promise too. */
static void decide_keeping(struct view_cluster *c, uint32_t proposer, uint32_t acceptor,
                           uint32_t kept)
{
    phase_one(c, proposer, kept);
    decide(c, proposer, acceptor);
}

static void lease_by(struct view_cluster *c, uint32_t holder, uint32_t granter)
{
    beat(c, holder);
    (void)view_cluster_deliver(c, holder, granter, BEATS);
    (void)view_cluster_deliver(c, granter, holder, KIND(GRANT));
}

/* 1. Promises say nothing about leases: node 2 holds one when the others accept a view without. */
static bool drops_a_leased_member(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    lease_by(c, 2, 1);
    assert_true(view_cluster_leased(c, 2));
    suspect(c, 0, 2);
    decide(c, 0, 1);
    if (c->violation != NULL) {
        return true;
    }
    assert_int_equal(c->decided_n, 1);
    /* Both hold the request until their grants have run out, then accept by themselves. */
    grants_run_out(c);
    view_cluster_tick(c, 0);
    view_cluster_tick(c, 1);
    answer(c, 1, 0);
    assert_int_equal(c->decided_n, 2);
    return c->violation != NULL;
}

/* 2. A - B - C with A - C cut: both ends renew through B, who must not renew for ever. */
static bool bridge_blocks_the_drop(uint64_t off)
{
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 3);
    c->rules_off = off;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    view_cluster_run(c, c->now + 100000);
    assert_int_equal(c->decided_n, 1);
    view_cluster_cut(c, 0, 2, true);
    view_cluster_run(c, c->now + 30 * c->config.lease_us);
    assert_null(c->violation);
    return c->decided_n == 1;
}

/* 3. Amnesia: process 1 votes for a view, restarts, and its successor votes for another one. */
static bool votes_twice(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    grants_run_out(c);
    suspect(c, 0, 2);
    phase_one(c, 0, 1);
    phase_two(c, 0, 1);
    assert_int_equal(c->decided_n, 2);
    view_cluster_crash(c, 1);
    uint32_t successor = view_cluster_start(c, 1);
    tell_view(c, 2, successor);
    suspect(c, 2, 0);
    its_turn(c, 2);
    decide(c, 2, successor);
    return c->violation != NULL;
}

/* 3. Amnesia: process 1 votes for a view without node 2, restarts, and its successor, who still
 * believes in the view before, gives node 2 a lease. */
static bool stranger_grants(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    grants_run_out(c);
    suspect(c, 0, 2);
    decide(c, 0, 1);
    assert_int_equal(c->decided_n, 2);
    view_cluster_crash(c, 1);
    uint32_t successor = view_cluster_start(c, 1);
    tell_view(c, 2, successor);
    lease_by(c, 2, successor);
    return c->violation != NULL;
}

/* Node 1's process stops (or is only paused), its successor asks to join, and processes 0 and 2
 * decide the view that replaces it. Only 0 and the successor learn of it. */
static uint32_t replace_node_1(struct view_cluster *c, bool paused)
{
    c->process[1].paused = paused;
    c->process[1].alive = paused;
    uint32_t successor = view_cluster_start(c, 1);
    tell_view(c, 0, successor);
    beat(c, successor);
    assert_int_equal(view_cluster_deliver(c, successor, 0, BEATS), 1);
    its_turn(c, 0);
    decide(c, 0, 2);
    assert_int_equal(c->decided_n, 2);
    assert_int_equal(view_cluster_deliver(c, 0, successor, KIND(VIEW)), 1);
    assert_true(view_has(&c->decided[1], 1, c->process[successor].machine.config.nonce));
    return successor;
}

/* 3. A successor does not know what its predecessor granted: it must wait until that has run out
 * before it helps to drop anybody. */
static bool forgotten_grant(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    grants_run_out(c);
    lease_by(c, 2, 1);
    assert_true(view_cluster_leased(c, 2));
    uint32_t successor = replace_node_1(c, false);
    assert_true(view_cluster_leased(c, 2));
    suspect(c, 0, 2);
    decide(c, 0, successor);
    if (c->violation != NULL) {
        return true;
    }
    assert_int_equal(c->decided_n, 2);
    grants_run_out(c);
    view_cluster_tick(c, successor);
    answer(c, successor, 0);
    assert_int_equal(c->decided_n, 3);
    return c->violation != NULL;
}

/* Nodes 0 and 1 (its successor) go on to a view without node 2. */
static void drop_node_2(struct view_cluster *c, uint32_t successor)
{
    grants_run_out(c);
    suspect(c, 0, 2);
    decide(c, 0, successor);
    assert_int_equal(c->decided_n, 3);
    (void)view_cluster_lose(c, CLUSTER_ALL, CLUSTER_ALL, UINT32_MAX);
}

/* 4. The zombie granter: node 2 accepted the view that replaces process 1 but did not learn it;
 * process 1 resumes and grants; with node 2's grant to itself that is a majority. */
static bool zombie_grants(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    grants_run_out(c);
    drop_node_2(c, replace_node_1(c, true));
    c->process[1].paused = false;
    lease_by(c, 2, 1);
    return c->violation != NULL;
}

/* 4. The same, but node 2 did learn the view that replaces process 1. */
static bool zombie_of_an_older_view_grants(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    grants_run_out(c);
    uint32_t successor = replace_node_1(c, true);
    assert_int_equal(view_cluster_deliver(c, 0, 2, KIND(VIEW)), 1);
    drop_node_2(c, successor);
    c->process[1].paused = false;
    lease_by(c, 2, 1);
    return c->violation != NULL;
}

/* 4. A grant to the old process of node 2 arrives at its successor, whom nobody then waits for. */
static bool grant_to_predecessor(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    uint32_t old = 2;
    grants_run_out(c);
    uint32_t successor = view_cluster_start(c, 2);
    tell_view(c, 1, successor);
    beat(c, successor);
    assert_int_equal(view_cluster_deliver(c, successor, 1, BEATS), 1);
    its_turn(c, 1);
    decide_keeping(c, 1, old, 0);
    assert_int_equal(c->decided_n, 2);
    tell_view(c, 1, successor);

    view_cluster_event(c, successor, (struct view_event){.kind = VIEW_EVENT_ADOPTED, .epoch = 2});
    view_cluster_event(c, successor, (struct view_event){.kind = VIEW_EVENT_COPIED});
    beat(c, successor);
    assert_int_equal(view_cluster_deliver(c, successor, 1, BEATS), 1);
    its_turn(c, 1);
    decide(c, 1, successor);
    assert_int_equal(c->decided_n, 3);
    tell_view(c, 1, successor);
    (void)view_cluster_lose(c, CLUSTER_ALL, CLUSTER_ALL, UINT32_MAX);

    /* Node 0 knows only the first view, in which the old process is a member. */
    grants_run_out(c);
    beat(c, old);
    beat(c, successor);
    (void)view_cluster_deliver(c, old, 0, BEATS);
    assert_int_equal(view_cluster_deliver(c, 0, successor, KIND(GRANT)), 1);
    tell_view(c, 1, 0);
    suspect(c, 1, 2);
    its_turn(c, 1);
    decide(c, 1, 0);
    assert_int_equal(c->decided_n, 4);
    return c->violation != NULL;
}

/* 4. Nobody waits for a member's grant to itself: when it accepts a view without itself, its lease
 * must end. */
static bool accepts_its_own_drop(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    grants_run_out(c);
    lease_by(c, 2, 1);
    assert_true(view_cluster_leased(c, 2));
    suspect(c, 0, 2);
    decide_keeping(c, 0, 2, 1);
    assert_int_equal(c->decided_n, 2);
    return c->violation != NULL;
}

static struct view_cluster *fresh(uint64_t off)
{
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 5);
    c->rules_off = off;
    c->manual = true;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    return c;
}

static void beats_between(struct view_cluster *c, uint32_t a, uint32_t b)
{
    (void)view_cluster_deliver(c, a, b, BEATS);
    (void)view_cluster_deliver(c, b, a, BEATS);
}

/* 5. A majority accepts a first view, one of them restarts and forms another with the third. */
static bool two_first_views(uint64_t off)
{
    struct view_cluster *c = fresh(off);
    for (uint32_t i = 0; i < 3; i++) {
        beat(c, i);
    }
    beats_between(c, 1, 2);
    beats_between(c, 0, 1);
    beats_between(c, 0, 2);
    (void)view_cluster_lose(c, 1, CLUSTER_ALL, KIND(PREPARE));
    phase_one(c, 0, 2);
    phase_one(c, 0, 1);
    phase_two(c, 0, 1);
    (void)view_cluster_lose(c, CLUSTER_ALL, CLUSTER_ALL, UINT32_MAX);
    view_cluster_crash(c, 1);
    uint32_t successor = view_cluster_start(c, 1);
    beat(c, successor);
    beats_between(c, 2, successor);
    /* The first proposer is silent for a while, then node 2's turn has come. */
    c->now += 4 * c->config.heartbeat_us;
    view_cluster_tick(c, 2);
    (void)view_cluster_lose(c, 2, CLUSTER_ALL, BEATS);
    c->now += c->config.heartbeat_us;
    view_cluster_tick(c, 2);
    c->now += c->config.heartbeat_us;
    view_cluster_tick(c, 2);
    phase_one(c, 2, successor);
    phase_two(c, 2, successor);
    if (c->violation != NULL) {
        return true;
    }
    /* With everybody asked, what node 0 accepted shows up; the successor accepts that view too,
     * though it lists its predecessor: otherwise a crash at this point would block for ever. */
    phase_one(c, 2, 0);
    phase_two(c, 2, 0);
    phase_two(c, 2, successor);
    assert_int_equal(c->decided_n, 1);
    assert_true(view_has(&c->decided[0], 1, c->process[1].machine.config.nonce));
    return c->violation != NULL;
}

/* 5. After a cut of all power nobody may pretend that this is a new cluster. */
static bool forms_over_kept_state(uint64_t off)
{
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 9);
    c->rules_off = off;
    for (uint8_t i = 0; i < 3; i++) {
        c->node[i].kept_generation = 77;
        c->node[i].kept_epoch = 4;
        (void)view_cluster_start(c, i);
    }
    view_cluster_run(c, c->now + 500000);
    assert_null(c->violation);
    return c->decided_n > 0;
}

/* 6. Five nodes become three. Node 0 holds a lease by 0, 1 and 2 in the view of five; 3 and 4 are a
 * majority of the three, but may not drop it alone. */
static bool drops_by_the_new_majority_alone(uint64_t off)
{
    struct view_cluster *c = formed(5, off);
    grants_run_out(c);
    beat(c, 0);
    for (uint32_t granter = 1; granter <= 2; granter++) {
        (void)view_cluster_deliver(c, 0, granter, BEATS);
        (void)view_cluster_deliver(c, granter, 0, KIND(GRANT));
    }
    assert_true(view_cluster_leased(c, 0));
    view_cluster_event(c, 3, (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = 0x1c});
    phase_one(c, 3, 4);
    phase_one(c, 3, 2);
    phase_two(c, 3, 4);
    phase_two(c, 3, 2);
    answer(c, 4, 3);
    answer(c, 2, 3);
    assert_int_equal(c->decided_n, 2);
    assert_int_equal(c->decided[1].configured, 0x1c);
    assert_int_equal(c->decided[1].configured_old, 0x1f);
    for (uint32_t i = 1; i <= 4; i++) {
        assert_int_equal(view_cluster_deliver(c, 3, i, KIND(VIEW)), i != 3);
    }
    suspect(c, 3, 0);
    its_turn(c, 3);
    /* All who are kept promise; only the new set's majority accepts. */
    phase_one(c, 3, 1);
    phase_one(c, 3, 2);
    decide(c, 3, 4);
    return c->violation != NULL;
}

/* 7. Of five nodes two are gone; dropping a third would leave a view that no majority holds. */
static bool drops_below_a_majority(uint64_t off)
{
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 5, 11);
    c->rules_off = off;
    for (uint8_t i = 0; i < 5; i++) {
        (void)view_cluster_start(c, i);
    }
    view_cluster_run(c, c->now + 100000);
    view_cluster_crash(c, 3);
    view_cluster_crash(c, 4);
    view_cluster_run(c, c->now + 500000);
    assert_null(c->violation);
    assert_int_equal(view_cluster_machine(c, 0)->view.live, 0x07);
    suspect(c, 0, 2);
    view_cluster_run(c, c->now + 50000);
    suspect(c, 0, 2);
    view_cluster_run(c, c->now + 300000);
    return c->violation != NULL;
}

/* 7. Process 1 accepted the next view, which may be decided: it must not confirm its own. */
static bool confirms_a_view_that_is_over(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    grants_run_out(c);
    assert_true(view_confirms(&c->process[1].machine, 1));
    suspect(c, 0, 2);
    phase_one(c, 0, 1);
    phase_two(c, 0, 1);
    assert_int_equal(c->decided_n, 2);
    assert_int_equal(c->process[1].machine.view.epoch, 1);
    return view_confirms(&c->process[1].machine, 1);
}

/* 8. Node 2 was dropped but lives; it learns so, and must not come back with its old store. */
static bool stays_after_its_drop(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    uint64_t nonce = c->process[2].machine.config.nonce;
    grants_run_out(c);
    suspect(c, 0, 2);
    decide(c, 0, 1);
    tell_view(c, 0, 1);
    tell_view(c, 0, 2);
    if (!view_rule_in(off, VIEW_RULE_WIPE)) {
        beat(c, 2);
        assert_int_equal(view_cluster_deliver(c, 2, 0, BEATS), 1);
        decide(c, 0, 1);
    }
    assert_true(c->process[2].wiped == view_rule_in(off, VIEW_RULE_WIPE));
    const struct view *last = &c->decided[c->decided_n - 1];
    return view_has(last, 2, nonce) && last->epoch == 3;
}

/* 8. A late heartbeat of the dropped process is taken for a request to join; it is admitted again
 * and never learns that it was out, though its store missed what was written meanwhile. */
static bool comes_back_unawares(uint64_t off)
{
    struct view_cluster *c = formed(3, off);
    uint64_t nonce = c->process[2].machine.config.nonce;
    grants_run_out(c);
    beat(c, 2);
    suspect(c, 0, 2);
    decide(c, 0, 1);
    assert_int_equal(c->decided_n, 2);
    (void)view_cluster_lose(c, 0, 2, KIND(VIEW));
    tell_view(c, 0, 1);
    assert_int_equal(view_cluster_deliver(c, 2, 0, BEATS), 1);
    (void)view_cluster_lose(c, 0, 2, KIND(VIEW));
    decide(c, 0, 1);
    tell_view(c, 0, 2);
    const struct view *last = &c->decided[c->decided_n - 1];
    return view_has(last, 2, nonce) && !c->process[2].wiped;
}

/* 9. A shadow whose workers are in different epochs must not be promoted. */
static bool promoted_before_it_adopted(uint64_t off)
{
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 13);
    c->rules_off = off;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    view_cluster_run(c, c->now + 100000);
    view_cluster_crash(c, 2);
    uint32_t successor = view_cluster_start(c, 2);
    c->process[successor].stuck = true;
    view_cluster_run(c, c->now + 1000000);
    const struct view *last = &c->decided[c->decided_n - 1];
    assert_true(view_has(last, 2, c->process[successor].machine.config.nonce));
    return c->violation != NULL;
}

/* 10. A process with a wedged worker answers nobody, so it must not keep its lease. */
static bool wedged_keeps_its_lease(uint64_t off)
{
    struct view_cluster *c = &cluster;
    view_cluster_init(c, 3, 17);
    c->rules_off = off;
    for (uint8_t i = 0; i < 3; i++) {
        (void)view_cluster_start(c, i);
    }
    view_cluster_run(c, c->now + 100000);
    view_cluster_wedge(c, 1, true);
    view_cluster_run(c, c->now + 2 * c->config.lease_us);
    return c->violation != NULL;
}

static uint64_t rule_bit(enum view_rule rule)
{
    return (uint64_t)1 << rule;
}

static void check(bool (*fault_seen)(uint64_t off), uint64_t rules)
{
    assert_false(fault_seen(0));
    if (VIEW_RULES_SWITCHABLE) {
        assert_true(fault_seen(rules));
    }
}

#define RULE_TEST(name, scenario, rule)                                                            \
    static void name(void **state)                                                                 \
    {                                                                                              \
        (void)state;                                                                               \
        check(scenario, rule_bit(rule));                                                           \
    }

RULE_TEST(rule_1_grants_first, drops_a_leased_member, VIEW_RULE_GRANTS_FIRST)
RULE_TEST(rule_2_promise_drops, bridge_blocks_the_drop, VIEW_RULE_PROMISE_DROPS)
RULE_TEST(rule_3_members_vote, votes_twice, VIEW_RULE_MEMBERS_VOTE)
RULE_TEST(rule_3_admission_wait, forgotten_grant, VIEW_RULE_ADMISSION_WAIT)
RULE_TEST(rule_4_grant_epoch, zombie_grants, VIEW_RULE_GRANT_EPOCH)
RULE_TEST(rule_4_grant_incarnation, grant_to_predecessor, VIEW_RULE_GRANT_INCARNATION)
RULE_TEST(rule_4_grant_members, zombie_of_an_older_view_grants, VIEW_RULE_GRANT_MEMBERS)
RULE_TEST(rule_4_accept_ends_lease, accepts_its_own_drop, VIEW_RULE_ACCEPT_ENDS_LEASE)
RULE_TEST(rule_5_first_view_all, two_first_views, VIEW_RULE_FIRST_VIEW_ALL)
RULE_TEST(rule_5_kept_state, forms_over_kept_state, VIEW_RULE_KEPT_STATE)
RULE_TEST(rule_6_joint_majority, drops_by_the_new_majority_alone, VIEW_RULE_JOINT_MAJORITY)
RULE_TEST(rule_7_live_majority, drops_below_a_majority, VIEW_RULE_LIVE_MAJORITY)
RULE_TEST(rule_7_confirm, confirms_a_view_that_is_over, VIEW_RULE_CONFIRM)
RULE_TEST(rule_8_wipe, stays_after_its_drop, VIEW_RULE_WIPE)
RULE_TEST(rule_8_no_readmit, comes_back_unawares, VIEW_RULE_NO_READMIT)
RULE_TEST(rule_9_adopted, promoted_before_it_adopted, VIEW_RULE_ADOPTED)
RULE_TEST(rule_10_healthy, wedged_keeps_its_lease, VIEW_RULE_HEALTHY)

/* For safety alone this rule is covered by the one that counts only grants of members of the own
 * view: each of the two suffices, and without both the fault is there. */
static void rule_3_members_grant(void **state)
{
    (void)state;
    uint64_t pair = rule_bit(VIEW_RULE_MEMBERS_GRANT) | rule_bit(VIEW_RULE_GRANT_MEMBERS);
    check(stranger_grants, pair);
    if (VIEW_RULES_SWITCHABLE) {
        assert_false(stranger_grants(rule_bit(VIEW_RULE_MEMBERS_GRANT)));
        assert_false(stranger_grants(rule_bit(VIEW_RULE_GRANT_MEMBERS)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_1_grants_first),
        cmocka_unit_test(rule_2_promise_drops),
        cmocka_unit_test(rule_3_members_vote),
        cmocka_unit_test(rule_3_members_grant),
        cmocka_unit_test(rule_3_admission_wait),
        cmocka_unit_test(rule_4_grant_epoch),
        cmocka_unit_test(rule_4_grant_incarnation),
        cmocka_unit_test(rule_4_grant_members),
        cmocka_unit_test(rule_4_accept_ends_lease),
        cmocka_unit_test(rule_5_first_view_all),
        cmocka_unit_test(rule_5_kept_state),
        cmocka_unit_test(rule_6_joint_majority),
        cmocka_unit_test(rule_7_live_majority),
        cmocka_unit_test(rule_7_confirm),
        cmocka_unit_test(rule_8_wipe),
        cmocka_unit_test(rule_8_no_readmit),
        cmocka_unit_test(rule_9_adopted),
        cmocka_unit_test(rule_10_healthy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
