/* Random executions of three to five machines over one key: messages lost, duplicated, reordered;
 * crashes; views learned at different times; new incarnations that join as shadows; timers at any
 * moment; tombstones that are forgotten. Every step is judged by the specification's properties;
 * at the end everything is delivered and every operation must have been decided.
 *
 * HERMES_SEEDS and HERMES_FROM in the environment choose the seeds, for longer searches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/hermes_rig.h"

#define SEEDS 4000u
#define ACTIONS_MAX 160u

static struct rig rig; /* too large for the stack of a sanitizer build */

struct profile {
    uint8_t nodes;
    bool ack_to_all;
    bool views;
    bool tombstones;
    bool joins; /* many */
    uint32_t updates_max;
    uint32_t lose_ppm;
    uint32_t copy_ppm;
};

static uint8_t some_node(struct rig *r)
{
    return (uint8_t)random_below(&r->random, r->n);
}

static bool has_shadows(const struct view *view)
{
    return view->live != view->operational;
}

static void act_deliver(struct rig *r, const struct profile *p)
{
    uint32_t start = (uint32_t)random_below(&r->random, RIG_MESSAGES);
    for (uint32_t i = 0; i < RIG_MESSAGES; i++) {
        int at = (int)((start + i) % RIG_MESSAGES);
        if (!r->bag[at].used) {
            continue;
        }
        if (random_chance(&r->random, p->lose_ppm)) {
            r->bag[at].used = false;
        } else {
            rig_deliver(r, at, random_chance(&r->random, p->copy_ppm));
        }
        return;
    }
}

static void act_update(struct rig *r, const struct profile *p)
{
    uint8_t node = some_node(r);
    struct rig_node *n = &r->nodes[node];
    if (n->again != 0) {
        rig_again(r, node);
        return;
    }
    if (!rig_leased(r, node) || r->nupdates >= 2 + p->updates_max) {
        return;
    }
    if (!rig_readable(r, node)) {
        rig_park(r, node);
        return;
    }
    bool nil = n->value == 0 || r->updates[n->value].kind == RIG_DELETE;
    uint64_t which = random_below(&r->random, 8);
    enum rig_kind kind = which < 4 ? RIG_WRITE : RIG_RMW;
    if (p->tombstones && !nil && which < 6) {
        kind = RIG_DELETE;
    }
    (void)rig_update(r, node, kind);
}

static void act_timer(struct rig *r)
{
    uint8_t node = some_node(r);
    uint32_t slot = 1 + (uint32_t)random_below(&r->random, 6);
    switch (random_below(&r->random, 4)) {
    case 0:
        rig_prod(r, node);
        break;
    case 1:
        rig_sweep(r, node);
        break;
    default:
        rig_timer_slot(r, node, slot);
        break;
    }
}

static void act_time(struct rig *r, const struct profile *p)
{
    if (p->tombstones) {
        /* Enough for a grace, but not always; and not everybody sweeps. */
        rig_advance(r, random_between(&r->random, RIG_GRACE_US / 2, 2 * RIG_GRACE_US));
        for (uint8_t i = 0; i < r->n; i++) {
            if (random_chance(&r->random, 700000)) {
                rig_sweep(r, i);
            }
        }
        return;
    }
    uint64_t us = random_chance(&r->random, 100000)
                      ? random_between(&r->random, RIG_GRACE_US / 2, 2 * RIG_GRACE_US)
                      : random_below(&r->random, RIG_MLT_US);
    rig_advance(r, us);
}

static void act_drop(struct rig *r, uint8_t node)
{
    const struct view *view = rig_newest(r);
    nodeset rest = view->operational & ~nodeset_of(node);
    if (nodeset_has(view->live, node) && nodeset_majority(rest, view->configured)) {
        rig_drop(r, node);
    }
}

/* Joins of a node whose last incarnation is gone: admitted, copied, promoted. */
static void act_join(struct rig *r)
{
    const struct view *view = rig_newest(r);
    uint8_t node = some_node(r);
    struct rig_node *n = &r->nodes[node];
    if (!nodeset_has(view->live, node)) {
        if (!has_shadows(view)) {
            rig_admit(r, node);
        }
    } else if (!nodeset_has(view->operational, node) && !n->crashed) {
        if (n->copied) {
            rig_promote(r, node);
        } else {
            rig_chunk(r, some_node(r), node);
        }
    }
}

static void act_view(struct rig *r)
{
    uint8_t node = some_node(r);
    if (r->nviews + 8 > RIG_VIEWS) {
        rig_adopt(r, node);
        return;
    }
    switch (random_below(&r->random, 16)) {
    case 0:
        rig_crash(r, node);
        break;
    case 1:
        act_drop(r, node);
        break;
    case 2:
    case 3:
    case 4:
    case 5:
        act_join(r);
        break;
    case 6:
    case 7: {
        uint32_t epoch = r->nodes[node].view.epoch + 1;
        if (epoch <= r->nviews) {
            rig_adopt_epoch(r, node, epoch);
        }
        break;
    }
    default:
        rig_adopt(r, node);
        break;
    }
}

/* Somebody leaves, is admitted again, copies while updates go on. */
static void act_joins(struct rig *r)
{
    uint8_t node = some_node(r);
    if (r->nviews + 8 > RIG_VIEWS || random_chance(&r->random, 600000)) {
        rig_adopt(r, node);
    } else if (random_chance(&r->random, 300000)) {
        act_drop(r, node);
    } else {
        act_join(r);
    }
}

static void act(struct rig *r, const struct profile *p)
{
    uint64_t which = random_below(&r->random, p->joins ? 130 : p->tombstones ? 115 : 100);
    if (which >= 115) {
        act_joins(r);
    } else if (which >= 100) {
        act_time(r, p);
    } else if (which < 58) {
        act_deliver(r, p);
    } else if (which < 72) {
        act_update(r, p);
    } else if (which < 80) {
        act_timer(r);
    } else if (which < 84) {
        act_time(r, p);
    } else if (which < 92) {
        if (p->views) {
            act_view(r);
        }
    } else if (which < 96) {
        rig_mail(r, some_node(r));
    } else {
        rig_nudge(r, some_node(r));
    }
}

/* Faults end: crashed nodes are dropped and dropped nodes are gone; shadows copy and are promoted
 * or, if nobody can donate in time, dropped too. */
static void heal(struct rig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        if (r->nodes[i].crashed && nodeset_has(rig_newest(r)->live, i)) {
            rig_drop(r, i);
        } else if (!nodeset_has(rig_newest(r)->live, i)) {
            rig_crash(r, i);
        }
    }
    for (uint8_t i = 0; i < r->n; i++) {
        rig_adopt(r, i);
    }
    for (uint8_t i = 0; i < r->n; i++) {
        const struct view *view = rig_newest(r);
        if (!nodeset_has(view->live, i) || nodeset_has(view->operational, i)) {
            continue;
        }
        uint8_t donor = nodeset_first(view->operational);
        rig_chunk(r, donor, i);
        rig_pass(r, donor, i, HERMES_ITEM, 0);
        rig_pass(r, donor, i, 0, 0);
        if (r->nodes[i].copied) {
            rig_promote(r, i);
        } else {
            rig_drop(r, i);
        }
    }
}

/* Whether a node died as the view stands: then only few can still crash. */
static bool majority_alive(const struct rig *r)
{
    const struct view *view = rig_newest(r);
    nodeset alive = 0;
    for (uint8_t i = 0; i < r->n; i++) {
        alive |= !r->nodes[i].crashed && nodeset_has(view->operational, i) ? nodeset_of(i) : 0;
    }
    return nodeset_majority(alive, view->configured);
}

static const struct profile profiles[] = {
    {.nodes = 3, .updates_max = 6, .lose_ppm = 50000, .copy_ppm = 100000},
    {.nodes = 3, .views = true, .updates_max = 8, .lose_ppm = 50000, .copy_ppm = 100000},
    {.nodes = 3, .views = true, .tombstones = true, .updates_max = 10, .copy_ppm = 50000},
    {.nodes = 3, .views = true, .tombstones = true, .joins = true, .updates_max = 10},
    {.nodes = 3, .views = true, .joins = true, .updates_max = 8, .lose_ppm = 20000},
    {.nodes = 5, .views = true, .updates_max = 10, .lose_ppm = 20000, .copy_ppm = 50000},
    {.nodes = 3, .ack_to_all = true, .updates_max = 8, .copy_ppm = 100000},
    {.nodes = 5,
     .ack_to_all = true,
     .views = true,
     .tombstones = true,
     .updates_max = 10,
     .lose_ppm = 20000,
     .copy_ppm = 50000},
};
#define PROFILES (sizeof profiles / sizeof profiles[0])

struct totals {
    uint64_t steps, views, updates, done, forgotten, first;
};

/* A tombstone that nobody touches is forgotten by all in the end. */
static bool forgets(struct rig *r, struct totals *totals)
{
    uint32_t value = r->nodes[nodeset_first(rig_newest(r)->live)].value;
    if (value == 0 || r->updates[value].kind != RIG_DELETE || has_shadows(rig_newest(r))) {
        return true;
    }
    for (uint32_t round = 0; round < 40; round++) {
        rig_advance(r, RIG_GRACE_US / 2);
        uint32_t left = 0;
        for (uint8_t i = 0; i < r->n; i++) {
            rig_sweep(r, i);
        }
        if (!rig_settle(r)) {
            return false;
        }
        for (uint8_t i = 0; i < r->n; i++) {
            bool live = nodeset_has(rig_newest(r)->live, i);
            left += live && r->nodes[i].meta.ts != 0;
        }
        if (left == 0) {
            totals->forgotten++;
            return true;
        }
    }
    return false;
}

static const char *run(uint64_t seed, uint64_t rules_off, struct totals *totals)
{
    struct rig *r = &rig;
    const struct profile *p = &profiles[seed % PROFILES];
    uint64_t turn = seed / PROFILES;
    enum rig_start start = p->tombstones   ? (enum rig_start)(turn % 4)
                           : turn % 5 == 1 ? RIG_START_NOTHING
                                           : RIG_START_VALUE;
    rig_init(r, p->nodes, start, rules_off, seed);
    r->config.ack_to_all = p->ack_to_all;
    r->mail_waits = random_chance(&r->random, 500000);
    r->gate = random_chance(&r->random, 300000);
    if (p->joins && start == RIG_START_FORGETTING) {
        rig_drop(r, 2);
        rig_admit(r, 2);
        rig_adopt(r, 0);
        rig_adopt(r, 1);
    }
    uint32_t actions = (uint32_t)random_between(&r->random, 20, ACTIONS_MAX);
    for (uint32_t i = 0; i < actions && r->violation == NULL; i++) {
        if (!majority_alive(r)) {
            break;
        }
        act(r, p);
    }
    const char *outcome = r->violation;
    if (outcome == NULL && majority_alive(r)) {
        heal(r);
        if (!rig_settle(r)) {
            outcome = r->violation != NULL ? r->violation : "does not settle";
        } else if (!forgets(r, totals)) {
            outcome = r->violation != NULL ? r->violation : "does not forget";
        }
    }
    totals->steps += r->steps;
    totals->views += r->nviews - 1;
    totals->updates += r->nupdates - 2;
    totals->done += r->ndone;
    return outcome;
}

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static void test_random(void **state)
{
    (void)state;
    uint64_t from = number("HERMES_FROM", 1);
    uint64_t seeds = number("HERMES_SEEDS", SEEDS);
    struct totals totals = {0};
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        const char *outcome = run(seed, number("HERMES_OFF", 0), &totals);
        if (outcome != NULL) {
            printf("seed %llu: %s\n", (unsigned long long)seed, outcome);
            rig_print(&rig);
            fail();
        }
    }
    printf("%llu seeds, %llu steps, %llu updates (%llu done), %llu views, %llu forgotten\n",
           (unsigned long long)seeds, (unsigned long long)totals.steps,
           (unsigned long long)totals.updates, (unsigned long long)totals.done,
           (unsigned long long)totals.views, (unsigned long long)totals.forgotten);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
