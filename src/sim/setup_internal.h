/* What the files of setup share while a seed is drawn. Nobody else includes it. */
#ifndef HORKOS_SIM_SETUP_INTERNAL_H
#define HORKOS_SIM_SETUP_INTERNAL_H

#include "base/random.h"
#include "sim/setup.h"

struct drawing {
    struct random random;
    uint32_t permitted; /* kinds of fault that the caller permits */
    uint32_t allowed;   /* of these, those that the seed has picked: no run has all it could have */
    uint32_t weight[SIM_FAULTS]; /* how often each timed kind is drawn, against the others */
    uint32_t drawn;              /* kinds that will */
    uint64_t latest_us;          /* when the fault that was drawn last begins */
    struct setup *setup;
};

#define PICK(d, list) ((list)[random_below(&(d)->random, sizeof(list) / sizeof((list)[0]))])

static inline uint64_t between(struct drawing *d, uint64_t low, uint64_t high)
{
    return random_between(&d->random, low, high);
}

static inline bool chance(struct drawing *d, uint32_t permille)
{
    return random_chance(&d->random, 1000 * permille);
}

static inline bool allowed(const struct drawing *d, enum sim_fault kind)
{
    return (d->allowed >> kind & 1u) != 0;
}

/* ---- setup_plan.c ---- */
void setup_draw_weights(struct drawing *d);
/* The fault plan, the spare machines that it needs, and when faults end. */
void setup_draw_plan(struct drawing *d);
/* Appends an entry of that kind, with everything drawn. */
struct fault *setup_add_fault(struct drawing *d, enum sim_fault kind);

/* ---- setup_scenario.c ---- */
/* At most SCENARIO_MAX entries that belong together; seldom any. */
#define SCENARIO_MAX 6u
void setup_draw_scenario(struct drawing *d);

#endif
