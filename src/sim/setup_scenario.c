/* Compositions of faults. Each is the beginning of an execution that breaks a promise if one rule
 * of the view protocol is left out (docs/protocols/view.md); drawn one by one, its parts meet too
 * seldom. Times are drawn around those that the execution needs. */
#include "sim/setup_internal.h"

static struct fault *add(struct drawing *d, enum sim_fault kind, uint64_t at_us, uint64_t lasts_us)
{
    struct fault *f = setup_add_fault(d, kind);
    f->at_us = at_us;
    f->lasts_us = lasts_us;
    f->cue = CUE_NONE;
    f->mid = false;
    return f;
}

static struct fault *add_cued(struct drawing *d, enum sim_fault kind, uint64_t at_us,
                              uint64_t lasts_us, enum fault_cue cue, uint64_t after_us)
{
    struct fault *f = add(d, kind, at_us, lasts_us);
    f->cue = cue;
    f->after_us = after_us;
    return f;
}

/* A different node each time. */
static void shuffle(struct drawing *d, uint8_t nodes[SIM_NODES_MAX])
{
    for (uint8_t i = 0; i < d->setup->nodes; i++) {
        uint64_t at = random_below(&d->random, i + 1u);
        nodes[i] = i;
        nodes[i] = nodes[at];
        nodes[at] = i;
    }
}

static uint64_t begin_us(struct drawing *d)
{
    return between(d, d->setup->lease_us, d->setup->horizon_us / 2);
}

/* Whoever suspects late leaves time for what happens meanwhile. */
static void suspect_late(struct drawing *d)
{
    if (chance(d, 700)) {
        d->setup->suspect_us = d->setup->lease_us * between(d, 60, 95) / 100;
    }
}

/* Rule 4, the zombie granter: a node is cut off when its fellow has been replaced; the old process
 * of that one goes on, is still heard, and grants. */
static void draw_old_granter(struct drawing *d)
{
    static const enum fault_cue cues[] = {CUE_DROP, CUE_ADMIT, CUE_VIEW};
    struct setup *s = d->setup;
    uint64_t at_us = begin_us(d);
    uint8_t nodes[SIM_NODES_MAX];
    shuffle(d, nodes);
    struct fault *zombie =
        add(d, SIM_FAULT_ZOMBIE, at_us, between(d, s->lease_us * 21 / 20, s->lease_us * 5 / 2));
    zombie->node = nodes[0];
    zombie->deaf = chance(d, 800);
    zombie->side = nodeset_of(nodes[1]);
    uint64_t soon_us = between(d, 0, chance(d, 500) ? 2 * s->heartbeat_us : s->lease_us / 2);
    uint64_t after_us = chance(d, 500) ? 0 : soon_us;
    struct fault *cut = add_cued(d, SIM_FAULT_PARTITION, at_us + between(d, 0, s->lease_us),
                                 3 * s->lease_us, PICK(d, cues), after_us);
    cut->side = nodeset_of(nodes[1]);
    if (s->nodes > 4 && chance(d, 300)) {
        cut->side |= nodeset_of(nodes[2]);
    }
    cut->spares_old = true;
}

/* Rule 6, joint majorities: two old nodes serve by the word of one that stays, while the others
 * that stay have not heard them for long enough to owe them nothing. */
static void draw_split_change(struct drawing *d)
{
    struct setup *s = d->setup;
    uint64_t at_us = begin_us(d);
    uint8_t nodes[SIM_NODES_MAX];
    shuffle(d, nodes);
    suspect_late(d);
    uint32_t leave_n = s->nodes - 3;
    leave_n = leave_n > 2 ? 2 : leave_n;
    nodeset leavers = 0;
    for (uint32_t i = 0; i < leave_n; i++) {
        leavers |= nodeset_of(nodes[i]);
    }
    struct fault *resize = add(d, SIM_FAULT_RESIZE, at_us, s->lease_us);
    resize->adds = 0;
    resize->removes = leavers;
    uint64_t early_us = between(d, s->margin_us / 2, s->suspect_us);
    uint32_t deaf_n = (s->nodes - leave_n) / 2 + 1;
    for (uint32_t i = 0; i < deaf_n; i++) {
        struct fault *deaf = add(d, SIM_FAULT_ONEWAY, at_us - early_us, 4 * s->lease_us);
        deaf->node = nodes[leave_n + i];
        deaf->outwards = false;
        deaf->side = leavers;
    }
    add_cued(d, SIM_FAULT_PARTITION, at_us - early_us, 3 * s->lease_us, CUE_JOINT, 0)->side =
        leavers;
}

/* Rule 3, the wait after admission: what its predecessor granted, a newcomer does not know. */
static void draw_quick_return(struct drawing *d)
{
    struct setup *s = d->setup;
    uint64_t at_us = begin_us(d);
    uint8_t nodes[SIM_NODES_MAX];
    shuffle(d, nodes);
    suspect_late(d);
    uint8_t victim = nodes[0];
    uint32_t deaf_n = (s->nodes - 1) / 2;
    for (uint32_t i = 0; i < deaf_n; i++) {
        struct fault *deaf = add(d, SIM_FAULT_BRIDGE, at_us, 3 * s->lease_us);
        deaf->node = victim;
        deaf->other = nodes[2 + i];
    }
    uint64_t most_us = s->suspect_us > s->margin_us ? s->suspect_us : s->margin_us;
    uint64_t early_us = between(d, s->margin_us / 2, most_us / 2);
    enum sim_fault how =
        (d->permitted >> SIM_FAULT_LEAVE & 1u) != 0 ? SIM_FAULT_LEAVE : SIM_FAULT_CRASH;
    struct fault *leaves = add(d, how, at_us + early_us, between(d, 100, 3000));
    leaves->node = nodes[1];
    leaves->reboot = chance(d, 300);
    add_cued(d, SIM_FAULT_PARTITION, at_us + early_us / 2, 3 * s->lease_us, CUE_DROP, 0)->side =
        nodeset_of(victim);
}

/* Rule 5: one process is replaced while the first view is being accepted, and two others do not
 * hear each other. */
static void draw_first_view(struct drawing *d)
{
    struct setup *s = d->setup;
    uint8_t nodes[SIM_NODES_MAX];
    shuffle(d, nodes);
    suspect_late(d);
    uint64_t round_us = 4 * (s->weather.base_us + s->weather.jitter_us) + 100;
    struct fault *crash =
        add_cued(d, SIM_FAULT_CRASH, 0, between(d, 100, 3000), CUE_ACCEPT, between(d, 0, round_us));
    crash->node = nodes[0];
    struct fault *cut = add_cued(d, SIM_FAULT_BRIDGE, 0, between(d, s->heartbeat_us, s->lease_us),
                                 CUE_ACCEPT, chance(d, 700) ? 0 : between(d, 0, round_us));
    cut->node = nodes[1];
    cut->other = nodes[2];
}

/* Rule 9: a donor, one of whose workers is in the middle of a poll of the old epoch, while an
 * update comes from a node that learns of the new one late. */
static void draw_split_donor(struct drawing *d)
{
    struct setup *s = d->setup;
    uint8_t nodes[SIM_NODES_MAX];
    uint64_t at_us = begin_us(d);
    shuffle(d, nodes);
    struct fault *crash = add(d, SIM_FAULT_CRASH, at_us, between(d, 100, 3000));
    crash->node = nodes[0];
    uint64_t short_us = between(d, 200, s->heartbeat_us);
    for (uint32_t i = 1; i < s->nodes && i < 4; i++) {
        struct fault *held = add_cued(d, SIM_FAULT_STALL, at_us, short_us, CUE_ACCEPT, 0);
        held->node = nodes[i];
        held->worker = (uint8_t)(s->workers_of[nodes[i]] - 1);
        held->within = true;
    }
    struct fault *cut = add_cued(d, SIM_FAULT_ONEWAY, at_us, short_us, CUE_ADMIT, 0);
    cut->node = nodes[1];
    cut->outwards = true;
    cut->side = nodeset_of(nodes[2]);
}

#define KIND(name) (1u << SIM_FAULT_##name)

void setup_draw_scenario(struct drawing *d)
{
    static const struct {
        void (*draw)(struct drawing *d);
        uint32_t kinds;
        uint32_t nodes_least;
    } scenarios[] = {
        {draw_old_granter, KIND(ZOMBIE) | KIND(PARTITION), 3},
        {draw_split_change, KIND(RESIZE) | KIND(ONEWAY) | KIND(PARTITION), 5},
        {draw_quick_return, KIND(CRASH) | KIND(BRIDGE) | KIND(PARTITION), 5},
        {draw_first_view, KIND(CRASH) | KIND(BRIDGE), 3},
        {draw_split_donor, KIND(CRASH) | KIND(STALL) | KIND(ONEWAY), 3},
    };
    const uint32_t n = sizeof scenarios / sizeof scenarios[0];
    uint32_t fitting[sizeof scenarios / sizeof scenarios[0]];
    uint32_t fitting_n = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool fits = (d->permitted & scenarios[i].kinds) == scenarios[i].kinds;
        if (fits && d->setup->nodes >= scenarios[i].nodes_least) {
            fitting[fitting_n++] = i;
        }
    }
    bool wanted = chance(d, 350);
    if (wanted && fitting_n > 0) {
        scenarios[fitting[random_below(&d->random, fitting_n)]].draw(d);
    }
}
