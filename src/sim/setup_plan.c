/* The fault plan of a seed. */
#include "base/assert.h"
#include "sim/setup_internal.h"

const char *const fault_cue_names[CUES] = {
    [CUE_NONE] = "none", [CUE_PREPARE] = "prepare", [CUE_ACCEPT] = "accept", [CUE_VIEW] = "view",
    [CUE_DROP] = "drop", [CUE_ADMIT] = "admit",     [CUE_JOINT] = "joint",   [CUE_CHUNK] = "chunk",
};

/* How often each timed kind is drawn, against the others that are allowed. */
static const uint32_t weights[SIM_FAULTS] = {
    [SIM_FAULT_STORM] = 1,    [SIM_FAULT_ONEWAY] = 2, [SIM_FAULT_PARTITION] = 2,
    [SIM_FAULT_BRIDGE] = 2,   [SIM_FAULT_CRASH] = 6,  [SIM_FAULT_PAUSE] = 4,
    [SIM_FAULT_STALL] = 1,    [SIM_FAULT_SLOW] = 1,   [SIM_FAULT_LEAVE] = 2,
    [SIM_FAULT_ZOMBIE] = 2,   [SIM_FAULT_LATE] = 1,   [SIM_FAULT_CLOCK] = 1,
    [SIM_FAULT_DRIFT] = 6,    [SIM_FAULT_RESIZE] = 3, [SIM_FAULT_MAJORITY] = 1,
    [SIM_FAULT_BLACKOUT] = 1,
};

/* Each seed has more of some kinds than of others. */
void setup_draw_weights(struct drawing *d)
{
    static const uint32_t factors[] = {1, 1, 2, 8};
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        uint32_t factor = PICK(d, factors);
        d->weight[i] = allowed(d, (enum sim_fault)i) ? factor * weights[i] : 0;
    }
}

static enum sim_fault draw_timed_kind(struct drawing *d)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        sum += allowed(d, (enum sim_fault)i) ? d->weight[i] : 0;
    }
    if (sum == 0) {
        return SIM_FAULTS;
    }
    uint64_t at = random_below(&d->random, sum);
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        uint32_t weight = allowed(d, (enum sim_fault)i) ? d->weight[i] : 0;
        if (at < weight) {
            return (enum sim_fault)i;
        }
        at -= weight;
    }
    HK_ASSERT(false);
    return SIM_FAULTS;
}

/* Short ones test timers, long ones views. */
static uint64_t draw_duration(struct drawing *d)
{
    uint64_t lease_us = d->setup->lease_us;
    switch (between(d, 0, 5)) {
    case 0:
        return between(d, 500, 4 * d->setup->mlt_us);
    case 1:
        return between(d, lease_us / 4, lease_us);
    default:
        return between(d, lease_us, 3 * lease_us);
    }
}

static nodeset draw_side(struct drawing *d)
{
    uint32_t n = d->setup->nodes;
    nodeset all = ((nodeset)1 << n) - 1;
    nodeset side;
    do {
        side = random_next(&d->random) & all;
    } while (side == 0 || side == all);
    return side;
}

/* The operator's order: one node more, one less, or any other set that is not too small. */
static void draw_resize(struct drawing *d, struct fault *f)
{
    struct setup *s = d->setup;
    if (s->machines == s->nodes) {
        uint32_t room = SIM_NODES_MAX - s->nodes;
        uint32_t spares = (uint32_t)between(d, 1, 2);
        s->machines += spares < room ? spares : room;
    }
    nodeset all = ((nodeset)1 << s->machines) - 1;
    nodeset one = nodeset_of((uint8_t)random_below(&d->random, s->machines));
    nodeset spare = all & ~(((nodeset)1 << s->nodes) - 1);
    nodeset any = random_next(&d->random) & all;
    switch (between(d, 0, 3)) {
    case 0:
        f->adds = chance(d, 700) ? spare : one;
        break;
    case 1:
        f->removes = one;
        break;
    default:
        f->adds = any;
        f->removes = all & ~any;
    }
}

static void draw_clock_step(struct drawing *d, struct fault *f)
{
    struct setup *s = d->setup;
    f->lasts_us = 0;
    if (f->kind == SIM_FAULT_DRIFT) {
        f->step_us = between(d, s->margin_us, 5 * s->lease_us);
        return;
    }
    f->step_us = between(d, 1, s->margin_us * 4 / 10);
    for (const struct fault *other = s->plan; other < f; other++) {
        if (other->kind == SIM_FAULT_CLOCK && other->node == f->node) {
            f->step_us = 0; /* the margin covers one */
        }
    }
}

/* How long a fault lasts and whom it concerns, where that differs from kind to kind. */
static void draw_particulars(struct drawing *d, struct fault *f)
{
    struct setup *s = d->setup;
    switch ((uint32_t)f->kind) {
    case SIM_FAULT_ONEWAY:
        f->side = chance(d, 500) ? nodeset_of(f->other) : ((nodeset)1 << s->nodes) - 1;
        f->side &= ~nodeset_of(f->node);
        break;
    case SIM_FAULT_CRASH:
    case SIM_FAULT_LEAVE:
        f->lasts_us = between(d, 100, chance(d, 500) ? s->lease_us / 4 : 2 * s->lease_us);
        break;
    case SIM_FAULT_ZOMBIE:
        f->lasts_us = between(d, 2 * s->lease_us, 4 * s->lease_us);
        break;
    case SIM_FAULT_LATE:
        f->at_us = 0;
        f->lasts_us = between(d, s->heartbeat_us, 3 * s->lease_us);
        break;
    case SIM_FAULT_RESIZE:
        draw_resize(d, f);
        break;
    case SIM_FAULT_MAJORITY:
    case SIM_FAULT_BLACKOUT:
        /* After so long the operator gives an order; before, nobody may serve. */
        f->lasts_us = between(d, 2 * s->lease_us, 4 * s->lease_us);
        s->horizon_us += 4 * s->lease_us;
        break;
    case SIM_FAULT_CLOCK:
    case SIM_FAULT_DRIFT:
        draw_clock_step(d, f);
        break;
    default:
        break;
    }
}

static void draw_fault(struct drawing *d, enum sim_fault kind, struct fault *f)
{
    struct setup *s = d->setup;
    *f = (struct fault){.kind = kind};
    f->node = (uint8_t)random_below(&d->random, s->nodes);
    f->other = (uint8_t)((f->node + 1 + random_below(&d->random, s->nodes - 1)) % s->nodes);
    f->at_us = between(d, chance(d, 100) ? 0 : s->lease_us / 2, s->horizon_us * 3 / 4);
    if (d->latest_us > 0 && chance(d, 350)) {
        /* Some faults come soon after another one: what one leaves open, the other may break. */
        f->at_us = d->latest_us + between(d, 0, s->lease_us * 3 / 2);
    }
    d->latest_us = f->at_us;
    f->lasts_us = draw_duration(d);
    f->worker = (uint8_t)random_below(&d->random, s->workers_of[f->node]);
    f->mid = chance(d, 700);
    f->stale = chance(d, 300);
    f->within = chance(d, 500);
    f->outwards = chance(d, 500);
    f->deaf = kind == SIM_FAULT_ZOMBIE && chance(d, 300);
    f->reboot = chance(d, 300);
    f->permille = (uint32_t)between(d, 0, 1000);
    f->factor = (uint32_t)between(d, 5, 300);
    f->side = draw_side(d);
    enum fault_cue cue = (enum fault_cue)between(d, CUE_NONE + 1, CUES - 1);
    f->cue = chance(d, 200) ? cue : CUE_NONE;
    f->after_us = chance(d, 500) ? between(d, 0, 300) : between(d, 0, 2 * s->heartbeat_us);
    draw_particulars(d, f);
    if (kind == SIM_FAULT_LATE) {
        f->cue = CUE_NONE;
    }
}

struct fault *setup_add_fault(struct drawing *d, enum sim_fault kind)
{
    struct setup *s = d->setup;
    HK_ASSERT(s->plan_n < PLAN_MAX);
    struct fault *f = &s->plan[s->plan_n++];
    draw_fault(d, kind, f);
    d->drawn |= 1u << kind;
    return f;
}

/* What an old process says that goes on too late matters most to those who hear it, and not the
 * others who replaced it. */
static void draw_bridge_around(struct drawing *d, const struct fault *zombie)
{
    struct setup *s = d->setup;
    if (!allowed(d, SIM_FAULT_BRIDGE) || !chance(d, 600)) {
        return;
    }
    struct fault *f = setup_add_fault(d, SIM_FAULT_BRIDGE);
    f->node = (uint8_t)((zombie->node + 1) % s->nodes);
    f->other = (uint8_t)((zombie->node + 2) % s->nodes);
    f->at_us = zombie->at_us + between(d, s->lease_us, zombie->lasts_us);
    f->lasts_us = 3 * s->lease_us;
    f->cue = CUE_NONE;
}

/* The kinds after which everything is different happen once. */
static void draw_once(struct drawing *d, enum sim_fault kind)
{
    if (kind == SIM_FAULT_MAJORITY || kind == SIM_FAULT_BLACKOUT) {
        d->weight[kind] = 0;
    }
}

/* A rolling upgrade: one node after the other leaves and comes back. */
static void draw_upgrades(struct drawing *d)
{
    struct setup *s = d->setup;
    bool wanted = chance(d, 400);
    if (!s->versions || !wanted || !allowed(d, SIM_FAULT_LEAVE) ||
        s->plan_n + s->nodes > PLAN_MAX) {
        return;
    }
    for (uint8_t i = 0; i < s->nodes; i++) {
        struct fault *f = setup_add_fault(d, SIM_FAULT_LEAVE);
        f->node = i;
        f->cue = CUE_NONE;
        f->at_us = (i + 1) * s->lease_us;
        f->lasts_us = between(d, 100, s->lease_us / 4);
    }
}

void setup_draw_plan(struct drawing *d)
{
    struct setup *s = d->setup;
    uint32_t n = (uint32_t)between(d, 1, 3 + s->nodes / 2);
    if (chance(d, 100)) {
        n += (uint32_t)between(d, 2, 6);
    }
    if (s->nodes < 2) {
        return;
    }
    s->horizon_us = s->lease_us * between(d, 4, 6) + s->lease_us * n;
    for (uint32_t i = 0; i < n && s->plan_n < PLAN_MAX - SCENARIO_MAX; i++) {
        enum sim_fault kind = draw_timed_kind(d);
        if (kind == SIM_FAULTS) {
            break;
        }
        (void)setup_add_fault(d, kind);
        draw_once(d, kind);
        if (kind == SIM_FAULT_ZOMBIE && s->plan_n < PLAN_MAX && s->nodes > 2) {
            draw_bridge_around(d, &s->plan[s->plan_n - 1]);
        }
    }
    if (s->plan_n + SCENARIO_MAX <= PLAN_MAX) {
        setup_draw_scenario(d);
    }
    draw_upgrades(d);
}
