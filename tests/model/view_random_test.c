/* Random runs of the view protocol under faults: in every step agreement, lease safety and live
 * majorities hold (tests/support/view_cluster.h checks them); and when the faults end, the cluster
 * settles in one view with all nodes and stays there. Every run follows from its seed.
 *
 * VIEW_SEED=n runs that seed alone and tells what happens in it; VIEW_RUNS=n sets how many. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/view_cluster.h"
#include "view/steps.h"

static struct view_cluster cluster;
static bool telling;
/* In cautious runs a paused process counts as gone, so that never more than a minority is. */
static bool cautious;

#define TELL(...)                                                                                  \
    do {                                                                                           \
        if (telling) {                                                                             \
            printf("%8lu ", (unsigned long)cluster.now);                                           \
            printf(__VA_ARGS__);                                                                   \
            printf("\n");                                                                          \
        }                                                                                          \
    } while (0)

enum outcome { SETTLED, RECOVERED, LOST, UNSETTLED, UNSTABLE, VIOLATED, OUTCOMES };
static const char *const outcome_names[] = {"settled",   "lost but recovered", "lost",
                                            "unsettled", "unstable",           "violated"};

static struct cluster_process *newest(struct view_cluster *c, uint8_t node)
{
    return &c->process[c->node[node].current];
}

static bool view_can_go_on(const struct view_cluster *c, const struct view *view, uint32_t except)
{
    nodeset alive = 0;
    for (uint32_t i = 0; i < c->processes; i++) {
        const struct cluster_process *p = &c->process[i];
        bool runs = p->alive && !p->machine.leaving && !(cautious && p->paused);
        if (i != except && runs && view_has(view, p->node, p->machine.config.nonce)) {
            alive |= nodeset_of(p->node);
        }
    }
    return view_majority(view, alive) && (alive & view->operational) != 0;
}

/* Whether enough members still run, without `except`, of the last view that some process holds and
 * of the last that is decided: else the group is lost for good, as it must be. (A view that two of
 * three accepted is decided, but with one of them crashes the only proof of it.) */
static bool can_go_on(const struct view_cluster *c, uint32_t except)
{
    const struct view *held = NULL;
    for (uint32_t i = 0; i < c->processes; i++) {
        const struct view *view = &c->process[i].machine.view;
        if (i != except && c->process[i].alive && view->epoch > 0 &&
            (held == NULL || view->epoch > held->epoch)) {
            held = view;
        }
    }
    if (c->decided_n == 0) {
        return true;
    }
    return held != NULL && view_can_go_on(c, held, except) &&
           view_can_go_on(c, &c->decided[c->decided_n - 1], except);
}

static void crash(struct view_cluster *c, uint8_t node)
{
    uint32_t i = c->node[node].current;
    if (!c->process[i].alive || !can_go_on(c, i)) {
        return;
    }
    TELL("crash %u", node);
    view_cluster_crash(c, i);
    c->node[node].restart_at = c->now + random_below(&c->random, 250000);
}

static void pause_or_resume(struct view_cluster *c, uint8_t node)
{
    struct cluster_process *p = newest(c, node);
    if (!p->alive || (cautious && !p->paused && !can_go_on(c, c->node[node].current))) {
        return;
    }
    p->paused = !p->paused;
    p->tick_at = c->now;
    TELL("%s %u", p->paused ? "pause" : "resume", node);
}

/* A paused process whose node is started anew: when it resumes, there are two of them. */
static void succeed(struct view_cluster *c, uint8_t node)
{
    struct cluster_process *p = newest(c, node);
    if (!p->alive || !p->paused || !can_go_on(c, c->node[node].current)) {
        return;
    }
    TELL("successor of paused %u", node);
    (void)view_cluster_start(c, node);
}

static void zombie_resume(struct view_cluster *c)
{
    for (uint32_t i = 0; i < c->processes; i++) {
        struct cluster_process *p = &c->process[i];
        if (p->alive && p->paused && c->node[p->node].current != i) {
            TELL("old process of %u resumes", p->node);
            p->paused = false;
            p->tick_at = c->now;
            return;
        }
    }
}

static void network_change(struct view_cluster *c)
{
    struct random *r = &c->random;
    c->loss_ppm = random_chance(r, 500000) ? (uint32_t)random_below(r, 250000) : 0;
    c->twice_ppm = random_chance(r, 500000) ? (uint32_t)random_below(r, 100000) : 0;
    c->slow_ppm = random_chance(r, 500000) ? (uint32_t)random_below(r, 100000) : 0;
    c->slow_us_max = (uint32_t)random_below(r, 200000);
    c->delay_us_max = 1 + (uint32_t)random_below(r, 4000);
}

/* Only in clusters of five, and never to fewer than three. */
static void configure(struct view_cluster *c, uint8_t node, nodeset configured)
{
    if (c->nodes < 5 || nodeset_count(configured) < 3) {
        return;
    }
    TELL("%u configures %lx", node, (unsigned long)configured);
    view_cluster_event(c, c->node[node].current,
                       (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = configured});
}

static void fault_one(struct view_cluster *c)
{
    struct random *r = &c->random;
    uint8_t a = (uint8_t)random_below(r, c->nodes);
    uint8_t b = (uint8_t)random_below(r, c->nodes);

    switch (random_below(r, 17)) {
    case 0:
    case 1:
        crash(c, a);
        break;
    case 2:
    case 3:
    case 4:
        pause_or_resume(c, a);
        break;
    case 5:
        succeed(c, a);
        break;
    case 6:
        zombie_resume(c);
        break;
    case 7:
    case 8:
        TELL("cut %u - %u", a, b);
        view_cluster_cut(c, a, b, a != b);
        break;
    case 9:
        TELL("cut %u -> %u", a, b);
        c->cut[a] |= nodeset_of(b) & ~nodeset_of(a);
        break;
    case 10:
    case 11:
        TELL("mend");
        view_cluster_mend(c);
        break;
    case 12:
        network_change(c);
        break;
    case 13:
        TELL("%u suspects %u", a, b);
        view_cluster_event(c, c->node[a].current,
                           (struct view_event){.kind = VIEW_EVENT_SUSPECT, .node = b});
        break;
    case 14:
        view_cluster_wedge(c, c->node[a].current, !newest(c, a)->wedged);
        TELL("wedged %u: %d", a, newest(c, a)->wedged);
        break;
    case 15:
        configure(c, a, random_below(r, (uint64_t)1 << c->nodes));
        break;
    default:
        if (can_go_on(c, c->node[a].current)) {
            TELL("%u leaves", a);
            view_cluster_event(c, c->node[a].current,
                               (struct view_event){.kind = VIEW_EVENT_LEAVE});
        }
        break;
    }
}

/* The faults that the subtler rules are about: old processes beside their successors, restarts
 * that forget, links that work one way. */
static void fault_subtle(struct view_cluster *c)
{
    struct random *r = &c->random;
    uint8_t a = (uint8_t)random_below(r, c->nodes);
    uint8_t b = (uint8_t)random_below(r, c->nodes);

    switch (random_below(r, 8)) {
    case 0:
        crash(c, a);
        if (!newest(c, a)->alive) {
            c->node[a].restart_at = c->now + random_below(r, 3000);
        }
        break;
    case 1:
        pause_or_resume(c, a);
        break;
    case 2:
        if (newest(c, a)->alive && !newest(c, a)->paused) {
            pause_or_resume(c, a);
        }
        succeed(c, a);
        break;
    case 3:
        zombie_resume(c);
        break;
    case 4:
    case 5:
        TELL("cut %u -> %u", a, b);
        c->cut[a] |= nodeset_of(b) & ~nodeset_of(a);
        break;
    case 6:
        TELL("mend %u -> %u", a, b);
        c->cut[a] &= ~nodeset_of(b);
        break;
    default:
        TELL("%u suspects %u", a, b);
        view_cluster_event(c, c->node[a].current,
                           (struct view_event){.kind = VIEW_EVENT_SUSPECT, .node = b});
        break;
    }
}

static void faults_end(struct view_cluster *c)
{
    TELL("faults end");
    view_cluster_mend(c);
    c->loss_ppm = c->twice_ppm = c->slow_ppm = 0;
    c->delay_us_max = 1000;
    for (uint32_t i = 0; i < c->processes; i++) {
        struct cluster_process *p = &c->process[i];
        bool current = c->node[p->node].current == i;
        p->alive = p->alive && current;
        p->paused = false;
        p->wedged = false;
        p->tick_at = c->now;
    }
    for (uint8_t i = 0; i < c->nodes; i++) {
        struct cluster_process *p = newest(c, i);
        if (p->alive && p->machine.leaving) {
            p->alive = false;
        }
        if (!p->alive) {
            c->node[i].restart_at = c->now;
        }
    }
}

static void tell_views(const struct view_cluster *c, uint32_t *told)
{
    for (; *told < c->decided_n; (*told)++) {
        const struct view *v = &c->decided[*told];
        TELL("decided at %lu: epoch %u live %lx operational %lx",
             (unsigned long)c->decided_at[*told], v->epoch, (unsigned long)v->live,
             (unsigned long)v->operational);
    }
}

static void tell_processes(const struct view_cluster *c)
{
    for (uint32_t i = 0; i < c->processes; i++) {
        const struct cluster_process *p = &c->process[i];
        const struct view_machine *m = &p->machine;
        if (!p->alive) {
            continue;
        }
        nodeset suspected = 0, fresh = 0;
        for (uint8_t n = 0; n < c->nodes; n++) {
            suspected |= view_suspected(m, n) ? nodeset_of(n) : 0;
            fresh |= view_candidate_fresh(m, n) ? nodeset_of(n) : 0;
        }
        TELL("process %u of %u: epoch %u live %lx operational %lx member %d lease %ld phase %s "
             "round "
             "%lu promised %lu by %u quiet %ld accepted %lu live %lx held %lu suspects %lx "
             "candidates %lx copied %d adopted %u status %s",
             i, p->node, m->view.epoch, (unsigned long)m->view.live,
             (unsigned long)m->view.operational, view_self_member(m),
             (long)(m->lease_until_us - m->now_us),
             view_phase_name((enum view_phase)m->proposer.phase),
             (unsigned long)m->proposer.ballot.round, (unsigned long)m->acceptor.promised.round,
             m->acceptor.promised.node, (long)(m->acceptor.quiet_until_us - m->now_us),
             (unsigned long)m->acceptor.accepted.round,
             (unsigned long)m->acceptor.accepted_view.live, (unsigned long)m->acceptor.held.round,
             (unsigned long)suspected, (unsigned long)fresh, m->copied, m->adopted,
             view_status_name(view_status(m, m->now_us)));
    }
}

/* The operator takes a lost group over from the member that knows most, if one that serves is
 * left, with all others of its view that still run. */
static bool recover(struct view_cluster *c)
{
    uint32_t best = UINT32_MAX;
    nodeset survivors = 0;
    for (uint32_t i = 0; i < c->processes; i++) {
        const struct view_machine *m = &c->process[i].machine;
        if (c->process[i].alive && view_operational(&m->view, m->config.self, m->config.nonce) &&
            (best == UINT32_MAX || m->view.epoch > c->process[best].machine.view.epoch)) {
            best = i;
        }
    }
    if (best == UINT32_MAX) {
        return false;
    }
    const struct view *view = &c->process[best].machine.view;
    const struct view_acceptor *bound = NULL;
    for (uint32_t i = 0; i < c->processes; i++) {
        const struct cluster_process *p = &c->process[i];
        const struct view_acceptor *a = &p->machine.acceptor;
        if (!p->alive || !view_has(view, p->node, p->machine.config.nonce)) {
            continue;
        }
        survivors |= nodeset_of(p->node);
        if (p->machine.view.epoch == view->epoch && !view_ballot_none(&a->accepted) &&
            (bound == NULL || view_ballot_compare(&a->accepted, &bound->accepted) > 0)) {
            bound = a;
        }
    }
    /* Whoever an accepted view drops may lack what was written in it, so it does not count. */
    nodeset stale = bound != NULL ? view_dropped(view, &bound->accepted_view) : 0;
    if ((survivors & view->operational & ~stale) == 0) {
        return false;
    }
    TELL("recover %lx on %u", (unsigned long)survivors, c->process[best].node);
    view_cluster_event(c, best,
                       (struct view_event){.kind = VIEW_EVENT_RECOVER, .configured = survivors});
    /* The order waits for one lease before it is carried out. */
    view_cluster_run(c, c->now + 300000 + c->config.lease_us);
    return true;
}

static bool settled_in_full(const struct view_cluster *c)
{
    return view_cluster_settled(c) &&
           c->process[c->node[0].current].machine.view.configured == c->config.configured &&
           c->process[c->node[0].current].machine.view.configured_old == 0;
}

static void configure_in_full(struct view_cluster *c)
{
    for (uint8_t i = 0; i < c->nodes; i++) {
        view_cluster_event(
            c, c->node[i].current,
            (struct view_event){.kind = VIEW_EVENT_CONFIGURE, .configured = c->config.configured});
    }
}

static enum outcome run(uint64_t seed, uint64_t rules_off, uint32_t *views_out)
{
    static const uint32_t sizes[] = {5, 3, 3, 5, 3, 3, 4, 3, 3, 7, 2, 3, 5};
    struct view_cluster *c = &cluster;
    uint32_t told = 0;

    cautious = seed % 8 < 6;
    view_cluster_init(c, sizes[seed % (sizeof sizes / sizeof sizes[0])], seed);
    c->rules_off = rules_off;
    for (uint8_t i = 0; i < c->nodes; i++) {
        c->node[i].clock_offset_us = (int64_t)random_below(&c->random, 1000000);
        c->node[i].clock_rate_ppm = (int64_t)random_below(&c->random, 20001) - 10000;
        (void)view_cluster_start(c, i);
    }
    if (random_chance(&c->random, 800000)) {
        view_cluster_run(c, c->now + 150000);
    }
    uint32_t faults = 5 + (uint32_t)random_below(&c->random, 25);
    for (uint32_t i = 0; i < faults && c->violation == NULL; i++) {
        if (seed % 2 == 0) {
            fault_one(c);
            view_cluster_run(c, c->now + random_below(&c->random, 80000));
        } else {
            fault_subtle(c);
            view_cluster_run(c, c->now + random_below(&c->random, 40000));
        }
        tell_views(c, &told);
    }
    faults_end(c);
    view_cluster_run(c, c->now + 300000);
    tell_views(c, &told);
    bool lost = c->violation == NULL && !view_cluster_settled(c) && !can_go_on(c, UINT32_MAX);
    if (lost && !recover(c)) {
        *views_out = c->decided_n;
        return LOST;
    }
    for (uint32_t i = 0; i < 20 && c->violation == NULL; i++) {
        if (settled_in_full(c)) {
            break;
        }
        configure_in_full(c);
        view_cluster_run(c, c->now + 100000);
        tell_views(c, &told);
    }
    *views_out = c->decided_n;
    if (c->violation != NULL) {
        return VIOLATED;
    }
    if (!settled_in_full(c)) {
        tell_processes(c);
        return UNSETTLED;
    }
    uint32_t views = c->decided_n;
    view_cluster_run(c, c->now + 300000);
    tell_views(c, &told);
    if (c->decided_n != views || !view_cluster_settled(c)) {
        return UNSTABLE;
    }
    return lost ? RECOVERED : SETTLED;
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);
    return value != NULL ? strtoull(value, NULL, 0) : otherwise;
}

static void faults_break_nothing(void **state)
{
    (void)state;
    uint64_t seed = from_environment("VIEW_SEED", 0);
    uint64_t runs = from_environment("VIEW_RUNS", 1500);
    uint32_t count[OUTCOMES] = {0};
    uint64_t views = 0, steps = 0;

    telling = seed != 0;
    for (uint64_t i = seed != 0 ? seed : 1; i <= (seed != 0 ? seed : runs); i++) {
        uint32_t some;
        enum outcome outcome = run(i, 0, &some);
        count[outcome]++;
        views += some;
        steps += cluster.steps;
        if (telling || outcome > LOST) {
            print_message("seed %lu: %s %s\n", (unsigned long)i, outcome_names[outcome],
                          cluster.violation != NULL ? cluster.violation : "");
        }
    }
    for (uint32_t i = 0; i < OUTCOMES; i++) {
        print_message("%u %s, ", count[i], outcome_names[i]);
    }
    print_message("%lu views, %lu steps\n", (unsigned long)views, (unsigned long)steps);
    assert_int_equal(count[VIOLATED], 0);
    assert_int_equal(count[UNSETTLED], 0);
    assert_int_equal(count[UNSTABLE], 0);
    /* A run that loses its data for good shows little, so there must be few of these. */
    assert_true(seed != 0 || count[LOST] * 20 <= runs);
}

/* Within how many runs each rule that is switched off must show. 0: only the steered executions of
 * view_rules_test.c show it; chance does not line up the old process, the lost message and the
 * restart that it takes. */
static const uint32_t runs_to_catch[VIEW_RULES] = {
    [VIEW_RULE_GRANTS_FIRST] = 20,   [VIEW_RULE_PROMISE_DROPS] = 60,
    [VIEW_RULE_MEMBERS_VOTE] = 20,   [VIEW_RULE_GRANT_INCARNATION] = 1000,
    [VIEW_RULE_KEPT_STATE] = 2000,   [VIEW_RULE_ACCEPT_ENDS_LEASE] = 80,
    [VIEW_RULE_LIVE_MAJORITY] = 200, [VIEW_RULE_CONFIRM] = 20,
    [VIEW_RULE_WIPE] = 20,           [VIEW_RULE_ADOPTED] = 1500,
    [VIEW_RULE_HEALTHY] = 40,
};

static void mutants_are_caught(void **state)
{
    (void)state;
    if (!VIEW_RULES_SWITCHABLE) {
        skip();
    }
    for (unsigned rule = 0; rule < VIEW_RULES; rule++) {
        uint32_t some, i = 0;
        enum outcome outcome = SETTLED;
        while (i < runs_to_catch[rule] && outcome <= LOST) {
            outcome = run(++i, (uint64_t)1 << rule, &some);
        }
        if (runs_to_catch[rule] != 0) {
            print_message("%s: %s in run %u, %s\n", view_rule_names[rule], outcome_names[outcome],
                          i, cluster.violation != NULL ? cluster.violation : "it never settled");
            assert_true(outcome > LOST);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(faults_break_nothing),
        cmocka_unit_test(mutants_are_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
