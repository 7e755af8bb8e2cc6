/* Random executions of up to four Galene machines of one or two workers over one key: lanes deliver
 * at any pace, views are adopted worker by worker and maps node by node, processes crash and join
 * anew, the key enters the hot set and leaves it, its slot moves, is lost, and is given out again.
 * What the clients saw must be linearizable; at the end all is delivered, no key and no operation
 * waits, and a key is either plain at its home or Valid wherever it is cached (or lost, if somebody
 * died).
 *
 * GALENE_SEEDS and GALENE_FROM in the environment choose the seeds, for longer searches; in a build
 * with HK_MUTANTS GALENE_OFF switches off the rule of that number, which must be found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/galene_rig.h"

#define SEEDS 3000u
#define ACTIONS 260u
#define OPS_MAX 48u

static struct rig rig; /* too large for the stack of a sanitizer build */

/* What a run is about: how often, in a million, which kind of thing happens. */
struct mood {
    uint32_t view, map, hot, operation;
};

static uint64_t number(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static uint8_t some_node(struct rig *r)
{
    return (uint8_t)random_below(&r->random, r->n);
}

static uint8_t some_worker(struct rig *r)
{
    return (uint8_t)random_below(&r->random, r->workers);
}

static void act_operation(struct rig *r)
{
    static const enum rig_kind kinds[] = {RIG_READ,  RIG_READ, RIG_READ, RIG_READ,  RIG_WRITE,
                                          RIG_WRITE, RIG_RMW,  RIG_RMW,  RIG_DELETE};
    uint8_t node = some_node(r);
    uint8_t worker = some_worker(r);
    enum rig_kind kind = kinds[random_below(&r->random, sizeof kinds / sizeof kinds[0])];
    if (r->nops < OPS_MAX && rig_can_serve(r, node, worker)) {
        (void)rig_do(r, node, worker, kind);
    }
}

static void act_view(struct rig *r)
{
    const struct view *view = rig_newest(r);
    uint8_t node = some_node(r);
    if (r->nviews + 1 >= RIG_VIEWS || r->nmaps + 24 >= RIG_MAPS) {
        return;
    }
    if (nodeset_has(view->live, node)) {
        if ((view->operational & ~nodeset_of(node)) != 0) {
            if (random_chance(&r->random, 700000)) {
                rig_crash(r, node);
            }
            rig_drop(r, node);
        }
    } else {
        rig_admit(r, node);
    }
}

static void act_map(struct rig *r)
{
    uint8_t node = some_node(r);
    if (r->nmaps + 16 >= RIG_MAPS) {
        return;
    }
    switch (random_below(&r->random, 8)) {
    case 0:
        (void)rig_map_move(r, node);
        break;
    case 1:
    case 2:
        (void)rig_map_moved(r);
        break;
    case 3:
        if (r->nops + 8 < RIG_OPS && random_chance(&r->random, 400000)) {
            (void)rig_map_empty(r);
        }
        break;
    case 4:
        (void)rig_map_purged(r, node);
        break;
    default:
        (void)rig_move(r, rig_truth(r)->home.state == HOME_MOVING ? rig_truth(r)->home.home : node,
                       some_worker(r));
    }
}

static void act_hot(struct rig *r)
{
    uint8_t node = rig_truth(r)->home.home;
    uint32_t choice = (uint32_t)random_below(&r->random, 6);
    if (choice < 3) {
        r->generation += random_chance(&r->random, 300000);
        (void)rig_hot(r, node, some_worker(r), HOT_ENTER, r->generation);
    } else if (choice < 5) {
        (void)rig_hot(r, node, some_worker(r), HOT_LEAVE, 0);
    } else {
        (void)rig_hot(r, some_node(r), some_worker(r), HOT_ENTER, ++r->generation);
    }
}

static void act(struct rig *r, const struct mood *mood)
{
    uint32_t dice = (uint32_t)random_below(&r->random, 1000000);
    uint8_t node = some_node(r);
    if (dice < mood->view) {
        act_view(r);
        return;
    }
    if ((dice -= mood->view) < mood->map) {
        act_map(r);
        return;
    }
    if ((dice -= mood->map) < mood->hot) {
        act_hot(r);
        return;
    }
    if ((dice -= mood->hot) < mood->operation) {
        act_operation(r);
        return;
    }
    switch (random_below(&r->random, 12)) {
    case 0:
        rig_adopt(r, node, some_worker(r));
        break;
    case 1:
        rig_learn(r, node);
        break;
    case 2:
    case 3:
        rig_push(r, (uint32_t)(1 + random_below(&r->random, r->nops - 1)));
        break;
    case 4:
        rig_sweep(r, node, some_worker(r));
        break;
    case 5:
        (void)rig_timers(r);
        break;
    default:
        (void)rig_run_one(r);
    }
}

/* NULL, or what went wrong. */
static const char *run(uint64_t seed)
{
    static const struct mood moods[] = {
        {.view = 0, .map = 0, .hot = 20000, .operation = 200000},
        {.view = 0, .map = 0, .hot = 120000, .operation = 200000},
        {.view = 0, .map = 120000, .hot = 60000, .operation = 200000},
        {.view = 20000, .map = 0, .hot = 60000, .operation = 200000},
        {.view = 30000, .map = 80000, .hot = 60000, .operation = 180000},
    };
    struct rig *r = &rig;
    uint8_t nodes = (uint8_t)(1 + seed % RIG_NODES);
    uint8_t workers = (uint8_t)(1 + seed / RIG_NODES % RIG_WORKERS);
    uint64_t off = number("GALENE_OFF", GALENE_RULES);
    rig_init(r, nodes, workers, seed % 7 == 0, off < GALENE_RULES ? 1ull << off : 0, seed);
    const struct mood *mood = &moods[seed % (sizeof moods / sizeof moods[0])];
    for (uint32_t i = 0; i < ACTIONS; i++) {
        act(r, mood);
    }
    const char *wrong = rig_settle(r);
    if (wrong != NULL) {
        return wrong;
    }
    for (nodeset rest = rig_newest(r)->operational; rest != 0; rest &= rest - 1) {
        (void)rig_do(r, nodeset_first(rest), 0, RIG_READ);
    }
    wrong = rig_settle(r);
    if (wrong != NULL) {
        return wrong;
    }
    return rig_sound(r) ? NULL : "the history is not linearizable";
}

static void test_random(void **state)
{
    (void)state;
    uint64_t from = number("GALENE_FROM", 1);
    uint64_t seeds = number("GALENE_SEEDS", SEEDS);
    uint64_t done = 0, unknown = 0, lost = 0, entered = 0, left = 0, moved = 0, rescued = 0;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        const char *wrong = run(seed);
        if (wrong != NULL) {
            printf("seed %llu: %s\n", (unsigned long long)seed, wrong);
            rig_print(&rig);
        }
        assert_null(wrong);
        for (uint32_t i = 2; i < rig.nops; i++) {
            done += rig.ops[i].done;
            lost += rig.ops[i].lost;
            unknown += rig.history[i].outcome == HISTORY_UNKNOWN;
        }
        entered += rig.entered;
        left += rig.left;
        moved += rig.moved;
        rescued += rig.rescued;
    }
    print_message(
        "done %llu unknown %llu lost %llu entered %llu left %llu moved %llu rescued %llu\n",
        (unsigned long long)done, (unsigned long long)unknown, (unsigned long long)lost,
        (unsigned long long)entered, (unsigned long long)left, (unsigned long long)moved,
        (unsigned long long)rescued);
    /* Executions in which little happens would prove little. */
    assert_true(seeds < 100 || done > 15 * seeds);
    assert_true(seeds < 1000 || (unknown > 100 && lost > 100 && rescued > 0));
    assert_true(seeds < 1000 || (entered > seeds / 2 && left > seeds / 8 && moved > seeds / 20));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
