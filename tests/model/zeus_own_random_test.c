/* Random executions of up to five ownership machines over one object: requests of all types at
 * once, commits, transactions that hold the object, lanes at any pace, views adopted node by node,
 * processes that crash in any state, come back empty, are sent entries and serve again. At any time
 * there is at most one owner, it has every committed version, nobody reads an old one, and the
 * owner's readers have the data; when the faults end everything settles, and all know the same.
 *
 * OWN_SEEDS and OWN_FROM in the environment choose the seeds, for longer searches; in a build with
 * HK_MUTANTS OWN_OFF switches off the rule of that number. OWN_TRACE=1 prints every step. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/zeus_own_rig.h"

#define SEEDS 6000u
#define ACTIONS 300u

static struct own_rig rig; /* too large for the stack of a sanitizer build */

/* What a run is about: how often, in a million, which kind of thing happens. */
struct mood {
    uint32_t view, want, commit;
    bool scarce; /* records are */
    bool few;    /* serve at times */
};

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static uint8_t some_node(struct own_rig *r)
{
    return (uint8_t)random_below(&r->random, r->n);
}

static void act_want(struct own_rig *r)
{
    static const enum own_type types[] = {OWN_OWNER,  OWN_OWNER, OWN_OWNER,  OWN_READER,
                                          OWN_READER, OWN_TRIM,  OWN_DEGREE, OWN_DESTROY};
    uint8_t node = some_node(r);
    const struct own_rig_node *n = &r->nodes[node];
    enum own_type type = types[random_below(&r->random, sizeof types / sizeof types[0])];
    struct own_vector v = own_masked(&n->entry.vector, &n->view);
    uint8_t target = type == OWN_TRIM ? nodeset_first(v.readers) : NODE_NONE;
    bool lost = type == OWN_DESTROY && arb_replicas(&v) == 0;
    if (own_rig_serves(r, node) && !lost && (type != OWN_TRIM || v.readers != 0)) {
        own_rig_want(r, node, type, target);
        own_rig_epoch(r, node);
    }
}

/* Whether somebody knows of the object without that node: a directory node that has all entries, or
 * a replica. */
static bool is_known_without(const struct own_rig *r, uint8_t node)
{
    const struct view *view = own_rig_newest(r);
    bool known = (own_drivers(view, r->hash) & ~nodeset_of(node)) != 0;
    for (uint8_t i = 0; i < r->n; i++) {
        const struct own_rig_node *n = &r->nodes[i];
        bool lives = i != node && !n->crashed && nodeset_has(view->live, i) &&
                     own_rig_born(view, i) == own_rig_born(&n->view, i);
        known = known || (lives && n->have && !n->shut && n->busy.state == OWN_VALID);
    }
    return known;
}

/* A majority serves throughout: whoever is being sent entries counts as if it were dead. Where few
 * serve a majority lives, and one of it serves. */
static bool may_lose(const struct own_rig *r, uint8_t node, bool few)
{
    const struct view *view = own_rig_newest(r);
    uint32_t serving = nodeset_count(view->operational & ~nodeset_of(node));
    if (!few) {
        return 2 * serving > r->n;
    }
    return serving > 0 && 2 * (nodeset_count(view->live) - 1) > r->n && is_known_without(r, node);
}

static void act_view(struct own_rig *r, bool few)
{
    const struct view *view = own_rig_newest(r);
    uint8_t node = some_node(r);
    if (r->nviews + 1 + OWN_RIG_NODES >= OWN_RIG_VIEWS) {
        return;
    }
    if (!nodeset_has(view->live, node)) {
        own_rig_admit(r, node);
    } else if (!nodeset_has(view->operational, node)) {
        if (!own_rig_promote(r, node) && random_chance(&r->random, 200000) &&
            may_lose(r, node, few)) {
            own_rig_crash(r, node);
            own_rig_drop(r, node);
        }
    } else if (may_lose(r, node, few)) {
        if (random_chance(&r->random, 800000)) {
            own_rig_crash(r, node);
        }
        own_rig_drop(r, node);
    }
}

static void act_commit(struct own_rig *r)
{
    for (uint8_t i = 0; i < r->n; i++) {
        if (random_chance(&r->random, 300000) && own_rig_serves(r, i)) {
            own_rig_lock(r, i, !r->nodes[i].locked && random_chance(&r->random, 300000));
        }
        (void)own_rig_commit(r, i, random_chance(&r->random, 250000));
    }
}

/* A node that has no record left for the object refuses what needs one. */
static void act_record(struct own_rig *r, uint8_t node, const struct mood *mood)
{
    struct own_rig_node *n = &r->nodes[node];
    n->recordless =
        !n->recordless && mood->scarce && own_idle(&n->busy) && random_chance(&r->random, 300000);
}

static void act(struct own_rig *r, const struct mood *mood)
{
    uint32_t dice = (uint32_t)random_below(&r->random, 1000000);
    if (dice < mood->view) {
        act_view(r, mood->few);
        return;
    }
    if ((dice -= mood->view) < mood->want) {
        act_want(r);
        return;
    }
    if ((dice -= mood->want) < mood->commit) {
        act_commit(r);
        return;
    }
    switch (random_below(&r->random, 16)) {
    case 0:
    case 1:
        own_rig_adopt(r, some_node(r));
        break;
    case 2:
        (void)own_rig_timers(r);
        break;
    case 3:
        act_record(r, some_node(r), mood);
        break;
    default:
        (void)own_rig_run_one(r);
    }
}

struct totals {
    uint64_t counts[OWN_COUNTERS];
    uint64_t commits, dones, destroyed, lost;
};

/* NULL, or what went wrong. */
static const char *run(uint64_t seed)
{
    static const struct mood moods[] = {
        {.view = 0, .want = 60000, .commit = 60000},
        {.view = 0, .want = 200000, .commit = 30000},
        {.view = 15000, .want = 60000, .commit = 60000},
        {.view = 40000, .want = 100000, .commit = 40000},
        {.view = 25000, .want = 100000, .commit = 40000, .scarce = true},
        {.view = 40000, .want = 60000, .commit = 40000, .few = true},
    };
    struct own_rig *r = &rig;
    uint64_t off = number("OWN_OFF", OWN_RULES);
    own_rig_init(r, (uint8_t)(3 + seed % 3), seed, off < OWN_RULES ? 1ull << off : 0, seed);
    r->trace = number("OWN_TRACE", 0) != 0;
    r->chiefs = seed % 2 == 0;
    for (uint8_t i = 0; i < OWN_RIG_NODES; i++) {
        r->nodes[i].waited = (uint16_t)random_below(&r->random, 40);
    }
    const struct mood *mood = &moods[seed / 3 % (sizeof moods / sizeof moods[0])];
    for (uint32_t i = 0; i < ACTIONS && r->wrong == NULL; i++) {
        act(r, mood);
    }
    return r->wrong != NULL ? r->wrong : own_rig_verdict(r);
}

static void add(struct totals *t, const struct own_rig *r)
{
    for (uint32_t i = 0; i < OWN_COUNTERS; i++) {
        t->counts[i] += r->counts[i];
    }
    t->commits += r->values;
    const struct view *view = own_rig_newest(r);
    const struct own_entry *e = &r->nodes[nodeset_first(own_drivers(view, r->hash))].entry;
    struct own_vector v = own_masked(&e->vector, view);
    t->destroyed += e->ts == 0;
    t->lost += e->ts != 0 && arb_replicas(&v) == 0;
    for (uint8_t i = 0; i < r->n; i++) {
        t->dones += r->nodes[i].dones;
    }
}

static void test_random(void **state)
{
    (void)state;
    uint64_t from = number("OWN_FROM", 1);
    uint64_t seeds = number("OWN_SEEDS", SEEDS);
    struct totals t = {.commits = 0};
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        const char *wrong = run(seed);
        if (wrong != NULL) {
            printf("seed %llu: %s\n", (unsigned long long)seed, wrong);
            own_rig_print(&rig);
        }
        assert_null(wrong);
        add(&t, &rig);
    }
    print_message(
        "requests %llu commits %llu moves %llu reads %llu nacks %llu deferred %llu "
        "replays %llu stale %llu; destroyed %llu lost %llu\n",
        (unsigned long long)t.dones, (unsigned long long)t.commits,
        (unsigned long long)t.counts[OWN_MOVES], (unsigned long long)t.counts[OWN_READS],
        (unsigned long long)t.counts[OWN_NACKS], (unsigned long long)t.counts[OWN_DEFERRED],
        (unsigned long long)t.counts[OWN_REPLAYS], (unsigned long long)t.counts[OWN_STALE],
        (unsigned long long)t.destroyed, (unsigned long long)t.lost);
    /* Executions in which little happens would prove little. */
    assert_true(seeds < 1000 || (t.dones > 4 * seeds && t.commits > 4 * seeds));
    assert_true(seeds < 1000 || (t.counts[OWN_MOVES] > seeds && t.counts[OWN_READS] > seeds / 2 &&
                                 t.counts[OWN_DEFERRED] > seeds / 10));
    assert_true(seeds < 1000 ||
                (t.counts[OWN_REPLAYS] > seeds / 4 && t.counts[OWN_STALE] > 0 && t.destroyed > 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
