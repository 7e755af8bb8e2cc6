/* Each rule of docs/protocols/zab.md by an execution that breaks without it: with the rule nothing
 * may go wrong; in a build with HK_MUTANTS the same with the rule switched off must show the fault.
 * Where the fault needs no more than bad luck, a few random schedules find it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/zab_rig.h"

static struct rig rig;

static struct rig *begin(uint8_t n, uint64_t rules_off)
{
    rig_init(&rig, n, rules_off, 1);
    return &rig;
}

static const char *verdict(const struct rig *r, bool good, const char *fault)
{
    return r->violation != NULL ? r->violation : good ? NULL : fault;
}

/* An update at the leader, node 0, up to its proposal. */
static uint32_t propose(struct rig *r, enum rig_kind kind, uint8_t key)
{
    uint32_t id = rig_update(r, 0, 0, 0, kind, key);
    assert_int_not_equal(id, 0);
    rig_pass(r, 0, 0);
    rig_flush(r, 0);
    return id;
}

static void acknowledge(struct rig *r, uint8_t node)
{
    rig_pass(r, 0, node);
    rig_flush(r, node);
    rig_pass(r, node, 0);
}

static void crash_all(struct rig *r, nodeset nodes)
{
    for (nodeset rest = nodes; rest != 0; rest &= rest - 1) {
        rig_crash(r, nodeset_first(rest));
    }
    rig_view(r, nodes, 0, 0);
}

/* What the survivors write takes the numbers of what they do not know. */
static const char *write_on(struct rig *r, uint8_t node)
{
    rig_run(r);
    (void)rig_update(r, node, 0, 0, RIG_WRITE, 1);
    bool settled = rig_settle(r) || rig_stands_still(r);
    return verdict(r, settled, "it did not end");
}

struct hunt {
    uint8_t nodes;
    bool faults, lockstep;
    uint64_t log_bytes;
};

static const char *hunt(uint64_t off, const struct hunt *h)
{
    for (uint64_t seed = 1; seed <= 25; seed++) {
        struct rig *r = &rig;
        rig_init(r, h->nodes, off, seed);
        r->config.lockstep = h->lockstep;
        r->config.log_bytes = h->log_bytes;
        for (uint32_t i = 0; i < 9000 && r->violation == NULL; i++) {
            rig_random_step(r, h->faults);
        }
        if (r->violation == NULL) {
            rig_end_faults(r);
            bool settled = rig_settle(r) || rig_stands_still(r);
            r->violation = verdict(r, settled, "it did not end");
        }
        if (r->violation != NULL) {
            return r->violation;
        }
    }
    return NULL;
}

static const struct hunt three = {.nodes = 3, .faults = true};
static const struct hunt calm = {.nodes = 3};
static const struct hunt narrow = {.nodes = 3, .log_bytes = 6 * RIG_ENTRY_BYTES};

/* ---- The rules ---- */

static const char *epoch(uint64_t off)
{
    return hunt(off, &three);
}

/* The leader commits what nobody else has, says so, and dies. */
static const char *majority(uint64_t off)
{
    struct rig *r = begin(3, off);
    (void)propose(r, RIG_WRITE, 0);
    crash_all(r, nodeset_of(0));
    return write_on(r, 1);
}

/* Node 1 alone is sent an entry, and shows it. */
static const char *committed(uint64_t off)
{
    struct rig *r = begin(5, off);
    (void)propose(r, RIG_WRITE, 0);
    acknowledge(r, 1);
    crash_all(r, nodeset_of(0) | nodeset_of(1));
    return write_on(r, 2);
}

static const char *all_states(uint64_t off)
{
    return hunt(off, &three);
}

/* Nodes 0 and 2 have committed; node 1 leads next. */
static const char *longest(uint64_t off)
{
    struct rig *r = begin(3, off);
    (void)propose(r, RIG_WRITE, 0);
    acknowledge(r, 2);
    rig_flush(r, 0);
    crash_all(r, nodeset_of(0));
    return write_on(r, 1);
}

/* Node 2 lacks what 0 and 1 have, and gets the next entry first. */
static const char *level(uint64_t off)
{
    struct rig *r = begin(3, off);
    (void)propose(r, RIG_WRITE, 0);
    acknowledge(r, 1);
    rig_flush(r, 0);
    rig_view(r, 0, 0, 0); /* what was on its way to node 2 is of the old epoch */
    rig_adopt(r, 2);
    return write_on(r, 0);
}

/* Two of three have it; both die before they passed it on. */
static const char *witnesses(uint64_t off)
{
    struct rig *r = begin(3, off);
    (void)propose(r, RIG_WRITE, 0);
    acknowledge(r, 1);
    rig_flush(r, 0);
    assert_int_equal(r->norder, 1);
    rig_crash(r, 1);
    rig_view(r, nodeset_of(1), nodeset_of(1), 0);
    crash_all(r, nodeset_of(0));
    const char *why = write_on(r, 2);
    if (off == 0) {
        assert_true(rig_stands_still(r));
    }
    return why;
}

/* The operator's word ends the stillness. */
static void a_new_generation_goes_on(void **state)
{
    (void)state;
    assert_null(witnesses(0));
    struct rig *r = &rig;
    rig_view(r, 0, 0, 0);
    r->views[r->nviews - 1].generation = 8;
    rig_run(r);
    assert_false(rig_stands_still(r));
    assert_true(rig_may_read(r, 2));
}

/* One survivor of three, as the operator says; then the configured set grows to three again. */
static void a_configured_set_may_grow(void **state)
{
    (void)state;
    struct rig *r = begin(3, 0);
    (void)propose(r, RIG_WRITE, 0);
    rig_run(r);
    rig_crash(r, 0);
    rig_crash(r, 1);
    struct view *alone = &r->views[r->nviews++];
    *alone = r->views[r->nviews - 2];
    alone->epoch++;
    alone->generation = 8;
    alone->configured = nodeset_of(2);
    alone->live = nodeset_of(2);
    alone->operational = nodeset_of(2);
    memset(&alone->members[0], 0, 2 * sizeof alone->members[0]);
    assert_true(rig_settle(r));
    rig_view(r, 0, nodeset_of(0) | nodeset_of(1), 0);
    struct view *grown = &r->views[r->nviews - 1];
    grown->configured = 7;
    grown->configured_old = nodeset_of(2);
    (void)rig_update(r, 2, 0, 0, RIG_WRITE, 0);
    assert_true(rig_settle(r));
    assert_int_equal(r->norder, 2);
}

/* The leader alone is left of those who know, and it has logged all that it committed. */
static void a_leader_knows_what_it_committed(void **state)
{
    (void)state;
    struct rig *r = begin(3, 0);
    (void)propose(r, RIG_WRITE, 0);
    acknowledge(r, 1);
    rig_flush(r, 0);
    rig_crash(r, 1);
    rig_view(r, nodeset_of(1), nodeset_of(1), 0);
    rig_adopt(r, 0);
    crash_all(r, nodeset_of(2));
    assert_null(write_on(r, 0));
    assert_false(rig_stands_still(r));
    assert_int_equal(r->norder, 2);
}

static const char *lost_ready(uint64_t off)
{
    return hunt(off, &three);
}

static const char *condition(uint64_t off)
{
    return hunt(off, &calm);
}

static const char *rounds_of_refusals(uint64_t off)
{
    return hunt(off, &narrow);
}

/* Node 2 of 5 is behind; what it lacks is gone when the leader dies. */
static const char *trim_all(uint64_t off)
{
    struct rig *r = begin(5, off);
    r->config.log_bytes = 2 * RIG_ENTRY_BYTES; /* nothing lags */
    (void)propose(r, RIG_WRITE, 0);
    for (uint8_t i = 1; i < 5; i++) {
        if (i != 2) {
            acknowledge(r, i);
        }
    }
    for (uint32_t round = 0; round < 3; round++) {
        rig_flush(r, 0);
        for (uint8_t i = 1; i < 5; i++) {
            if (i != 2) {
                acknowledge(r, i);
            }
        }
    }
    rig_view(r, 0, 0, 0);
    rig_adopt(r, 2);
    crash_all(r, nodeset_of(0));
    return write_on(r, 1);
}

/* Only the leader has the entry at which a shadow's log begins. */
static const char *base(uint64_t off)
{
    struct rig *r = begin(5, off);
    (void)propose(r, RIG_WRITE, 0);
    rig_run(r);
    (void)propose(r, RIG_WRITE, 0);
    rig_crash(r, 4);
    rig_view(r, nodeset_of(4), nodeset_of(4), 0);
    for (uint8_t i = 0; i < 5; i++) {
        rig_adopt(r, i);
    }
    for (uint8_t i = 1; i < 5; i++) {
        rig_pass(r, i, 0);
    }
    rig_pass(r, 0, 4); /* START, and no more */
    crash_all(r, nodeset_of(0));
    return write_on(r, 1);
}

/* A shadow that is ready, and an item on its way to it that is older than what it takes next. */
static const char *old_item(struct rig *r, enum rig_kind kind)
{
    (void)propose(r, RIG_WRITE, 0);
    rig_run(r);
    rig_crash(r, 2);
    rig_view(r, nodeset_of(2), nodeset_of(2), 0);
    rig_run(r);
    assert_true(rig_chunk(r, 1, 2, 0));
    (void)propose(r, kind, 0);
    acknowledge(r, 1);
    rig_flush(r, 0);
    acknowledge(r, 2);
    rig_pass(r, 1, 2);
    for (uint8_t key = 1; key < RIG_KEYS; key++) {
        assert_true(rig_chunk(r, 1, 2, key));
    }
    rig_run(r);
    rig_view(r, 0, 0, nodeset_of(2));
    bool settled = rig_settle(r);
    rig_sweep(r, 2, 0);
    (void)rig_read(r, 2, 0, 0, 0);
    return verdict(r, settled, "a copied value came back");
}

static const char *tombstones(uint64_t off)
{
    return old_item(begin(3, off), RIG_DELETE);
}

static const char *item_newer(uint64_t off)
{
    return old_item(begin(3, off), RIG_WRITE);
}

/* Copied from a donor that is ahead, promoted, read before it has taken what lies between. */
static const char *ready(uint64_t off)
{
    struct rig *r = begin(3, off);
    rig_crash(r, 2);
    rig_view(r, nodeset_of(2), nodeset_of(2), 0);
    rig_run(r);
    for (uint8_t key = 1; key < RIG_KEYS; key++) {
        assert_true(rig_chunk(r, 1, 2, key));
    }
    (void)propose(r, RIG_WRITE, 1); /* entry 1: the chunk of key 1 has left */
    (void)rig_update(r, 0, 0, 1, RIG_WRITE, 0);
    rig_pass(r, 0, 0);
    rig_flush(r, 0);
    acknowledge(r, 1);
    rig_flush(r, 0);
    acknowledge(r, 1);
    assert_true(rig_chunk(r, 1, 2, 0)); /* entry 2 */
    rig_pass(r, 1, 2);
    rig_view(r, 0, 0, nodeset_of(2));
    rig_adopt(r, 2);
    (void)rig_read(r, 2, 0, 0, 0);
    bool settled = rig_settle(r);
    assert_true(settled || off != 0);
    return verdict(r, rig_read(r, 2, 0, 0, 1), "it never serves");
}

static const char *lockstep_rounds(uint64_t off)
{
    struct rig *r = begin(3, off);
    r->config.lockstep = true;
    (void)propose(r, RIG_WRITE, 0);
    (void)rig_update(r, 0, 0, 1, RIG_WRITE, 1);
    rig_pass(r, 0, 0);
    rig_flush(r, 0);
    acknowledge(r, 1);
    rig_flush(r, 0);
    assert_int_equal(r->norder, off == 0 ? 0 : r->norder); /* a majority is not enough */
    uint32_t proposed = 0;
    const struct rig_lane *lane = &r->lanes[0][0][2][0];
    for (uint32_t i = lane->head; i < lane->tail; i++) {
        proposed += lane->packets[i % RIG_LANE].msg.kind == ZAB_PROPOSE;
    }
    bool settled = rig_settle(r);
    assert_int_equal(r->norder, 2);
    return verdict(r, settled && proposed == 1, "a batch left before the last was delivered");
}

/* ---- Running them ---- */

struct rule_case {
    enum zab_rule rule;
    const char *(*run)(uint64_t rules_off);
};

static const struct rule_case cases[ZAB_RULES] = {
    {ZAB_RULE_EPOCH, epoch},           {ZAB_RULE_MAJORITY, majority},
    {ZAB_RULE_COMMITTED, committed},   {ZAB_RULE_ALL_STATES, all_states},
    {ZAB_RULE_LONGEST, longest},       {ZAB_RULE_LEVEL, level},
    {ZAB_RULE_WITNESSES, witnesses},   {ZAB_RULE_LOST_READY, lost_ready},
    {ZAB_RULE_CONDITION, condition},   {ZAB_RULE_ROUND, rounds_of_refusals},
    {ZAB_RULE_TRIM_ALL, trim_all},     {ZAB_RULE_BASE, base},
    {ZAB_RULE_TOMBSTONES, tombstones}, {ZAB_RULE_ITEM_NEWER, item_newer},
    {ZAB_RULE_READY, ready},           {ZAB_RULE_ROUNDS, lockstep_rounds},
};

static void test_rule(void **state)
{
    const struct rule_case *c = *state;
    const char *with = c->run(0);
    if (with != NULL) {
        print_error("with the rule: %s\n", with);
    }
    assert_null(with);
#ifdef HK_MUTANTS
    const char *without = c->run(1ull << c->rule);
    assert_non_null(without);
    print_message("without %s: %s\n", zab_rule_names[c->rule], without);
#endif
}

int main(void)
{
    struct CMUnitTest tests[ZAB_RULES + 3];
    for (uint32_t i = 0; i < ZAB_RULES; i++) {
        tests[i] = (struct CMUnitTest){.name = zab_rule_names[cases[i].rule],
                                       .test_func = test_rule,
                                       .initial_state = (void *)(uintptr_t)&cases[i]};
    }
    tests[ZAB_RULES] = (struct CMUnitTest)cmocka_unit_test(a_new_generation_goes_on);
    tests[ZAB_RULES + 1] = (struct CMUnitTest)cmocka_unit_test(a_configured_set_may_grow);
    tests[ZAB_RULES + 2] = (struct CMUnitTest)cmocka_unit_test(a_leader_knows_what_it_committed);
    return _cmocka_run_group_tests("zab_rules", tests, ZAB_RULES + 3, NULL, NULL);
}
