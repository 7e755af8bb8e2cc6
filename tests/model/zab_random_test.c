/* ZAB under random schedules, crashes, views and joins: everybody takes one order, nothing that was
 * acknowledged is lost, sessions see their program order, and everything ends when faults end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support/zab_rig.h"

static struct rig rig;

struct profile {
    uint8_t nodes;
    uint32_t steps;
    bool faults;
    bool lockstep;
    bool collide;
    uint64_t log_bytes;
};

struct sums {
    uint64_t entries, reads, refusals, stills, views;
};

static void run(const struct profile *p, uint64_t seed, struct sums *sums)
{
    struct rig *r = &rig;
    rig_init(r, p->nodes, 0, seed);
    r->config.lockstep = p->lockstep;
    r->config.log_bytes = p->log_bytes;
    r->collide = p->collide;
    for (uint32_t i = 0; i < p->steps && r->violation == NULL; i++) {
        rig_random_step(r, p->faults);
    }
    bool still = false;
    if (r->violation == NULL) {
        rig_end_faults(r);
        bool settled = rig_settle(r);
        still = rig_stands_still(r);
        if (!settled && !still && r->violation == NULL) {
            r->violation = "it did not end";
        }
    }
    if (r->violation != NULL) {
        print_error("seed %llu: %s after %llu deliveries\n", (unsigned long long)seed, r->violation,
                    (unsigned long long)r->steps);
    }
    assert_null(r->violation);
    sums->entries += r->norder;
    sums->reads += r->reads;
    sums->refusals += r->refusals;
    sums->stills += still;
    sums->views += r->nviews;
}

static void runs(const struct profile *p, uint64_t seeds, struct sums *sums)
{
    const char *more = getenv("HORKOS_ZAB_SEEDS");
    seeds = more != NULL ? strtoull(more, NULL, 10) : seeds;
    *sums = (struct sums){0};
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        run(p, seed, sums);
    }
    print_message("%llu entries, %llu reads, %llu lost, %llu views, %llu stood still\n",
                  (unsigned long long)sums->entries, (unsigned long long)sums->reads,
                  (unsigned long long)sums->refusals, (unsigned long long)sums->views,
                  (unsigned long long)sums->stills);
}

static void without_faults(void **state)
{
    (void)state;
    struct profile p = {.nodes = 3, .steps = 3000};
    struct sums sums;
    runs(&p, 60, &sums);
    assert_true(sums.entries > 1000 && sums.reads > 1000 && sums.refusals > 100);
    assert_int_equal(sums.stills, 0);
}

static void with_faults(void **state)
{
    (void)state;
    struct profile p = {.nodes = 3, .steps = 8000, .faults = true};
    struct sums sums;
    runs(&p, 200, &sums);
    assert_true(sums.entries > 1000 && sums.views > 1000);
}

static void five_with_faults(void **state)
{
    (void)state;
    struct profile p = {.nodes = 5, .steps = 16000, .faults = true};
    struct sums sums;
    runs(&p, 150, &sums);
    assert_true(sums.entries > 1000 && sums.views > 1000);
}

static void little_room(void **state)
{
    (void)state;
    struct profile p = {
        .nodes = 3, .steps = 8000, .faults = true, .log_bytes = 6 * RIG_ENTRY_BYTES};
    struct sums sums;
    runs(&p, 150, &sums);
    assert_true(sums.entries > 1000 && sums.refusals > 1000);
}

static void shared_places(void **state)
{
    (void)state;
    struct profile p = {.nodes = 3, .steps = 8000, .faults = true, .collide = true};
    struct sums sums;
    runs(&p, 100, &sums);
    assert_true(sums.entries > 1000);
}

static void lockstep(void **state)
{
    (void)state;
    struct profile p = {.nodes = 3, .steps = 8000, .faults = true, .lockstep = true};
    struct sums sums;
    runs(&p, 150, &sums);
    assert_true(sums.entries > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults),   cmocka_unit_test(with_faults),
        cmocka_unit_test(five_with_faults), cmocka_unit_test(little_room),
        cmocka_unit_test(shared_places),    cmocka_unit_test(lockstep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
