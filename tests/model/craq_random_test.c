/* Random executions of up to four CRAQ machines of one or two workers over one key: lanes deliver
 * at any pace, views are adopted worker by worker, processes crash and join anew, memory is
 * refused, timers run at any moment. What the clients saw must be linearizable; at the end all is
 * delivered, all members must hold the same and every operation must have ended.
 *
 * CRAQ_SEEDS and CRAQ_FROM in the environment choose the seeds, for longer searches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/craq_rig.h"

#define SEEDS 3000u
#define ACTIONS 140u
#define OPS_MAX 40u

static struct rig rig; /* too large for the stack of a sanitizer build */

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
    static const enum rig_kind kinds[] = {RIG_READ,  RIG_READ, RIG_READ, RIG_WRITE,
                                          RIG_WRITE, RIG_RMW,  RIG_RMW,  RIG_DELETE};
    uint8_t node = some_node(r);
    uint8_t worker = some_worker(r);
    enum rig_kind kind = kinds[random_below(&r->random, sizeof kinds / sizeof kinds[0])];
    uint32_t busy = 0;
    for (uint32_t i = 1; i < RIG_SLOTS; i++) {
        busy += r->nodes[node].workers[worker].slots[i].kind != CRAQ_FLOW_FREE;
    }
    if (r->nops < OPS_MAX && busy + 1 < RIG_SLOTS && rig_can_serve(r, node, worker)) {
        (void)rig_do(r, node, worker, kind);
    }
}

static void act_view(struct rig *r)
{
    const struct view *view = rig_newest(r);
    uint8_t node = some_node(r);
    if (r->nviews + RIG_NODES >= RIG_VIEWS) {
        return;
    }
    switch (random_below(&r->random, 4)) {
    case 0:
        if (nodeset_has(view->live, node) && (view->operational & ~nodeset_of(node)) != 0) {
            if (random_chance(&r->random, 500000)) {
                rig_crash(r, node);
            }
            rig_drop(r, node);
        }
        break;
    case 1:
        if (!nodeset_has(view->live, node)) {
            rig_admit(r, node);
        }
        break;
    case 2:
        (void)rig_chunk(r, some_node(r), node);
        break;
    default:
        (void)rig_promote(r, node);
    }
}

static void act(struct rig *r, uint32_t view_ppm)
{
    if (random_chance(&r->random, view_ppm)) {
        act_view(r);
        return;
    }
    uint8_t node = some_node(r);
    switch (random_below(&r->random, 16)) {
    case 0:
    case 1:
    case 2:
    case 3:
        act_operation(r);
        break;
    case 4:
    case 5:
        rig_adopt(r, node, some_worker(r));
        break;
    case 6:
        rig_prod(r, (uint32_t)random_below(&r->random, r->nops));
        break;
    case 7:
        rig_sweep(r, node);
        break;
    case 8:
        rig_timers(r);
        break;
    case 9:
        r->nodes[node].refuses = random_chance(&r->random, 100000);
        break;
    default:
        (void)rig_run_one(r);
    }
}

/* NULL, or what went wrong. */
static const char *run(uint64_t seed)
{
    struct rig *r = &rig;
    uint8_t nodes = (uint8_t)(1 + seed % RIG_NODES);
    uint8_t workers = (uint8_t)(1 + seed / RIG_NODES % RIG_WORKERS);
    rig_init(r, nodes, workers, seed % 3 == 0, 0, seed);
    uint32_t view_ppm = seed % 5 == 0 ? 0 : seed % 5 == 1 ? 250000 : 60000;
    for (uint32_t i = 0; i < ACTIONS; i++) {
        act(r, view_ppm);
    }
    for (uint8_t i = 0; i < r->n; i++) {
        r->nodes[i].refuses = false;
    }
    if (!rig_settle(r)) {
        return "it does not settle";
    }
    nodeset rest = rig_newest(r)->operational;
    for (; rest != 0; rest &= rest - 1) {
        (void)rig_do(r, nodeset_first(rest), 0, RIG_READ);
    }
    return rig_sound(r) ? NULL : "the history is not linearizable";
}

static void test_random(void **state)
{
    (void)state;
    uint64_t from = number("CRAQ_FROM", 1);
    uint64_t seeds = number("CRAQ_SEEDS", SEEDS);
    uint64_t done = 0;
    uint64_t unknown = 0;
    for (uint64_t seed = from; seed < from + seeds; seed++) {
        const char *wrong = run(seed);
        if (wrong != NULL) {
            printf("seed %llu: %s\n", (unsigned long long)seed, wrong);
            rig_print(&rig);
        }
        assert_null(wrong);
        for (uint32_t i = 2; i < rig.nops; i++) {
            done += rig.ops[i].done;
            unknown += rig.history[i].outcome == HISTORY_UNKNOWN;
        }
    }
    /* Executions in which little happens would prove little. */
    assert_true(done > 10 * seeds);
    assert_true(seeds < 100 || unknown > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
