#include "sim/setup.h"

#include <string.h>

#include "base/assert.h"
#include "base/random.h"

const char *const sim_fault_names[SIM_FAULTS] = {
    [SIM_FAULT_LOSS] = "loss",       [SIM_FAULT_DUPLICATE] = "duplicate",
    [SIM_FAULT_REORDER] = "reorder", [SIM_FAULT_DELAY] = "delay",
    [SIM_FAULT_CORRUPT] = "corrupt", [SIM_FAULT_STORM] = "storm",
    [SIM_FAULT_ONEWAY] = "oneway",   [SIM_FAULT_PARTITION] = "partition",
    [SIM_FAULT_BRIDGE] = "bridge",   [SIM_FAULT_CRASH] = "crash",
    [SIM_FAULT_PAUSE] = "pause",     [SIM_FAULT_STALL] = "stall",
    [SIM_FAULT_SLOW] = "slow",       [SIM_FAULT_LEAVE] = "leave",
    [SIM_FAULT_ZOMBIE] = "zombie",   [SIM_FAULT_LATE] = "late",
    [SIM_FAULT_CLOCK] = "clock",
};

/* How often each timed kind is drawn, against the others that are allowed. */
static const uint32_t weights[SIM_FAULTS] = {
    [SIM_FAULT_STORM] = 1,  [SIM_FAULT_ONEWAY] = 2, [SIM_FAULT_PARTITION] = 2,
    [SIM_FAULT_BRIDGE] = 2, [SIM_FAULT_CRASH] = 6,  [SIM_FAULT_PAUSE] = 4,
    [SIM_FAULT_STALL] = 1,  [SIM_FAULT_SLOW] = 1,   [SIM_FAULT_LEAVE] = 2,
    [SIM_FAULT_ZOMBIE] = 2, [SIM_FAULT_LATE] = 1,
};

struct drawing {
    struct random random;
    uint32_t allowed;   /* kinds of fault that may happen */
    uint32_t drawn;     /* kinds that will */
    uint64_t latest_us; /* when the fault that was drawn last begins */
    struct setup *setup;
};

#define PICK(d, list) ((list)[random_below(&(d)->random, sizeof(list) / sizeof((list)[0]))])

static uint64_t between(struct drawing *d, uint64_t low, uint64_t high)
{
    return random_between(&d->random, low, high);
}

static bool chance(struct drawing *d, uint32_t permille)
{
    return random_chance(&d->random, 1000 * permille);
}

static bool allowed(const struct drawing *d, enum sim_fault kind)
{
    return (d->allowed >> kind & 1u) != 0;
}

/* Some runs have no frame that lives long, so that tombstones are forgotten soon and often. */
static void draw_gentle(struct drawing *d)
{
    static const enum sim_fault lasting[] = {SIM_FAULT_STORM, SIM_FAULT_PAUSE, SIM_FAULT_STALL,
                                             SIM_FAULT_SLOW, SIM_FAULT_ZOMBIE};
    d->setup->gentle = chance(d, 300);
    for (size_t i = 0; d->setup->gentle && i < sizeof lasting / sizeof lasting[0]; i++) {
        d->allowed &= ~(1u << lasting[i]);
    }
}

static void draw_protocol(struct drawing *d)
{
    struct setup *s = d->setup;
    static const uint64_t leases[] = {150000, 150000, 300000, 500000};
    static const uint64_t mlts[] = {1000, 2000, 5000, 10000, 20000};
    static const uint32_t events[] = {1, 4, 16, 64};
    static const uint32_t chunks[] = {64, 200, 1024, 4096, 65536};
    s->lease_us = PICK(d, leases);
    s->margin_us = s->lease_us / between(d, 5, 20);
    s->heartbeat_us = s->lease_us / between(d, 5, 12);
    s->suspect_us = s->heartbeat_us * between(d, 2, 4);
    s->mlt_us = PICK(d, mlts);
    s->parked_us = s->mlt_us * between(d, 1, 3);
    s->answer_us = s->lease_us * between(d, 4, 12);
    s->no_lease_us = chance(d, 500) ? 0 : between(d, 1000, s->lease_us);
    s->sweep_us = s->gentle ? between(d, 2000, 20000) : between(d, 20000, 1000000);
    s->max_events = PICK(d, events);
    s->calls_max = chance(d, 900) ? 96 : (uint32_t)between(d, 4, 16);
    s->flows_max = chance(d, 900) ? 96 : (uint32_t)between(d, 4, 16);
    s->chunk_bytes = PICK(d, chunks);
    s->rmw_tries_max = chance(d, 700) ? 0 : (uint32_t)between(d, 1, 4);
    s->cids = (uint16_t)between(d, 1, 4);
    s->poll_gap_us = between(d, 1, 6);
}

/* Parts per million; zero if the kind is not allowed or not drawn. */
static uint32_t draw_intensity(struct drawing *d, enum sim_fault kind, bool force)
{
    static const uint32_t intensities[] = {3000, 6000, 20000, 80000};
    if (!allowed(d, kind) || (!force && !chance(d, 500))) {
        return 0;
    }
    d->drawn |= 1u << kind;
    return PICK(d, intensities);
}

static void draw_weather(struct drawing *d)
{
    struct weather *w = &d->setup->weather;
    static const uint64_t bases[] = {2, 5, 20, 50, 100, 200};
    w->base_us = PICK(d, bases);
    w->jitter_us = w->base_us * between(d, 0, 4);
    w->loss_ppm = draw_intensity(d, SIM_FAULT_LOSS, false);
    w->duplicate_ppm = draw_intensity(d, SIM_FAULT_DUPLICATE, false);
    w->reorder_ppm = draw_intensity(d, SIM_FAULT_REORDER, false);
    w->corrupt_ppm = draw_intensity(d, SIM_FAULT_CORRUPT, false);
    w->spike_ppm = draw_intensity(d, SIM_FAULT_DELAY, false);
    w->late_us = between(d, w->base_us, 20 * w->base_us + 5000);
    const uint64_t spikes[] = {2000, 20000, d->setup->lease_us / 2, 2 * d->setup->lease_us};
    w->spike_us = d->setup->gentle ? spikes[0] : PICK(d, spikes);
}

/* Some networks are wild: frames overtake each other all the time, at the pace of the protocol. */
static void draw_wild(struct drawing *d)
{
    struct weather *w = &d->setup->weather;
    if (!chance(d, 300)) {
        return;
    }
    if (allowed(d, SIM_FAULT_LOSS)) {
        w->loss_ppm = (uint32_t)between(d, 20000, 150000);
    }
    if (allowed(d, SIM_FAULT_REORDER)) {
        w->reorder_ppm = (uint32_t)between(d, 100000, 500000);
    }
    w->late_us = between(d, w->base_us, 40 * w->base_us);
}

/* Some clusters have links of very different lengths: then one node is far ahead of another. */
static void draw_links(struct drawing *d)
{
    static const uint8_t factors[] = {1, 1, 1, 3, 10, 40};
    struct weather *w = &d->setup->weather;
    bool differ = chance(d, 400);
    for (uint32_t from = 0; from < SIM_NODES_MAX; from++) {
        for (uint32_t to = 0; to < SIM_NODES_MAX; to++) {
            uint8_t factor = PICK(d, factors);
            /* Not so long that nobody ever hears a heartbeat in time. */
            bool short_enough = factor * (w->base_us + w->jitter_us) < d->setup->suspect_us / 3;
            w->slowness[from][to] = differ && short_enough ? factor : 1;
        }
    }
}

/* Every run is to meet at least three kinds of fault, as far as that many are allowed; and what is
 * drawn does not always befall somebody. */
static void draw_more_weather(struct drawing *d)
{
    static const enum sim_fault kinds[] = {SIM_FAULT_LOSS, SIM_FAULT_REORDER, SIM_FAULT_DUPLICATE,
                                           SIM_FAULT_DELAY, SIM_FAULT_CORRUPT};
    struct weather *w = &d->setup->weather;
    uint32_t *ppm[] = {&w->loss_ppm, &w->reorder_ppm, &w->duplicate_ppm, &w->spike_ppm,
                       &w->corrupt_ppm};
    uint32_t n = 0;
    for (size_t i = 0; i < 5; i++) {
        n += *ppm[i] > 0;
    }
    for (size_t i = 0; i < 5 && n < 3; i++) {
        if (*ppm[i] == 0) {
            *ppm[i] = draw_intensity(d, kinds[i], true);
            n += *ppm[i] > 0;
        }
    }
}

/* A lease of lease - margin by the slowest clock must end before a grant of lease by the fastest:
 * (lease - margin) / (1 - r) < lease / (1 + r), which r = margin / lease / 2 just fails. */
static void draw_clocks(struct drawing *d)
{
    struct setup *s = d->setup;
    int64_t limit_ppm = (int64_t)(s->margin_us * 1000000 / s->lease_us / 2 * 95 / 100);
    s->clocks_differ = allowed(d, SIM_FAULT_CLOCK) && chance(d, 700);
    if (s->clocks_differ) {
        d->drawn |= 1u << SIM_FAULT_CLOCK;
    }
    for (uint32_t i = 0; i < s->nodes; i++) {
        struct setup_clock *c = &s->clocks[i];
        c->offset_us = (int64_t)between(d, 1000000, 1000000000);
        if (!s->clocks_differ) {
            continue;
        }
        uint64_t kind = between(d, 0, 3);
        int64_t most = kind == 0 ? 100 : limit_ppm;
        c->rate_ppm = kind == 1   ? (int32_t)limit_ppm
                      : kind == 2 ? (int32_t)-limit_ppm
                                  : (int32_t)((int64_t)between(d, 0, 2 * (uint64_t)most) - most);
        static const int64_t walls[] = {0, 3, -40, 1000, -1000, 3600000};
        c->wall_ms = PICK(d, walls);
        c->jump_ms = PICK(d, walls);
        c->jump_at_us = between(d, 0, 10 * s->lease_us);
    }
}

static enum sim_fault draw_timed_kind(struct drawing *d)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        sum += allowed(d, (enum sim_fault)i) ? weights[i] : 0;
    }
    if (sum == 0) {
        return SIM_FAULTS;
    }
    uint64_t at = random_below(&d->random, sum);
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        uint32_t weight = allowed(d, (enum sim_fault)i) ? weights[i] : 0;
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
    f->worker = (uint8_t)random_below(&d->random, s->workers);
    f->mid = chance(d, 700);
    f->stale = chance(d, 300);
    f->outwards = chance(d, 500);
    f->reboot = chance(d, 300);
    f->permille = (uint32_t)between(d, 0, 1000);
    f->factor = (uint32_t)between(d, 5, 300);
    f->side = draw_side(d);
    if (kind == SIM_FAULT_ONEWAY) {
        f->side = chance(d, 500) ? nodeset_of(f->other) : ((nodeset)1 << s->nodes) - 1;
        f->side &= ~nodeset_of(f->node);
    } else if (kind == SIM_FAULT_CRASH || kind == SIM_FAULT_LEAVE) {
        f->lasts_us = between(d, 100, chance(d, 500) ? s->lease_us / 4 : 2 * s->lease_us);
    } else if (kind == SIM_FAULT_ZOMBIE) {
        f->lasts_us = between(d, 2 * s->lease_us, 4 * s->lease_us);
    } else if (kind == SIM_FAULT_LATE) {
        f->at_us = 0;
        f->lasts_us = between(d, s->heartbeat_us, 3 * s->lease_us);
    }
}

/* What an old process says that goes on too late matters most to those who hear it, and not the
 * others who replaced it. */
static void draw_bridge_around(struct drawing *d, const struct fault *zombie)
{
    struct setup *s = d->setup;
    if (!allowed(d, SIM_FAULT_BRIDGE) || !chance(d, 600)) {
        return;
    }
    struct fault *f = &s->plan[s->plan_n++];
    draw_fault(d, SIM_FAULT_BRIDGE, f);
    f->node = (uint8_t)((zombie->node + 1) % s->nodes);
    f->other = (uint8_t)((zombie->node + 2) % s->nodes);
    f->at_us = zombie->at_us + between(d, s->lease_us, zombie->lasts_us);
    f->lasts_us = 3 * s->lease_us;
}

static void draw_plan(struct drawing *d)
{
    struct setup *s = d->setup;
    uint32_t n = (uint32_t)between(d, 1, 3 + s->nodes / 2);
    if (s->nodes < 2) {
        return;
    }
    s->horizon_us = s->lease_us * between(d, 4, 6) + s->lease_us * n;
    for (uint32_t i = 0; i < n && s->plan_n < PLAN_MAX; i++) {
        enum sim_fault kind = draw_timed_kind(d);
        if (kind == SIM_FAULTS) {
            break;
        }
        draw_fault(d, kind, &s->plan[s->plan_n++]);
        d->drawn |= 1u << kind;
        if (kind == SIM_FAULT_ZOMBIE && s->plan_n < PLAN_MAX && s->nodes > 2) {
            draw_bridge_around(d, &s->plan[s->plan_n - 1]);
        }
    }
}

/* No frame may live longer than the grace of tombstones: one that is held back by a process that
 * stands still counts with the time that it stands still. */
static void draw_grace(struct drawing *d)
{
    struct setup *s = d->setup;
    const struct weather *w = &s->weather;
    uint64_t life_us = 40 * (w->base_us + w->jitter_us) + 2 * w->late_us + w->spike_us;
    for (uint32_t i = 0; i < s->plan_n; i++) {
        const struct fault *f = &s->plan[i];
        if (f->kind == SIM_FAULT_PAUSE || f->kind == SIM_FAULT_STALL ||
            f->kind == SIM_FAULT_ZOMBIE) {
            life_us += f->lasts_us;
        } else if (f->kind == SIM_FAULT_STORM) {
            life_us += s->lease_us;
        } else if (f->kind == SIM_FAULT_SLOW) {
            life_us += 100 * f->factor;
        }
    }
    s->life_us = life_us;
    s->grace_us = 2 * life_us + between(d, 1000, s->gentle ? 5000 : 50000);
}

static void add_round(struct drawing *d, uint64_t at_us, uint64_t spread_us)
{
    struct setup *s = d->setup;
    if (s->rounds_n < ROUNDS_MAX) {
        uint64_t early_us = between(d, 0, spread_us);
        s->rounds[s->rounds_n++] =
            (at_us > early_us ? at_us - early_us : 0) + between(d, 0, spread_us);
    }
}

/* Operations come in rounds, so that they meet each other and the faults. */
static void draw_rounds(struct drawing *d)
{
    struct setup *s = d->setup;
    for (uint32_t i = 0; i < s->plan_n; i++) {
        add_round(d, s->plan[i].at_us, 300);
        add_round(d, s->plan[i].at_us + between(d, 0, s->plan[i].lasts_us), 1000);
        add_round(d, s->plan[i].at_us + s->plan[i].lasts_us, 1000);
    }
    uint64_t n = between(d, 8, 24);
    for (uint64_t i = 0; i < n; i++) {
        add_round(d, between(d, s->lease_us / 4, s->horizon_us), 1000);
    }
    s->round_ops = 1 + s->ops / (s->clients * s->rounds_n);
}

static void draw_mix(struct drawing *d)
{
    struct mix *m = &d->setup->mix;
    m->read = (uint32_t)between(d, 20, 60);
    m->write = (uint32_t)between(d, 5, 30);
    m->erase = (uint32_t)between(d, 0, d->setup->gentle ? 25 : 8);
    m->erase_if = (uint32_t)between(d, 0, 5);
    m->set_if = (uint32_t)between(d, 0, 20);
    m->set_absent = (uint32_t)between(d, 0, 8);
    m->add = (uint32_t)between(d, 0, 30);
    m->getset = (uint32_t)between(d, 0, 10);
    if (chance(d, 250)) {
        /* A duel: few keys, and much that depends on what others do. */
        d->setup->keys = (uint32_t)between(d, 1, 2);
        d->setup->registers = 0;
        d->setup->counters = (uint32_t)between(d, 0, d->setup->keys);
        m->read = 20;
        m->set_if += 10;
        m->add += 10;
        m->getset += 10;
    }
}

static void draw_clients(struct drawing *d)
{
    struct setup *s = d->setup;
    static const uint64_t thinks[] = {0, 20, 200, 3000};
    static const uint32_t windows[] = {1, 2, 4, WINDOW_MAX};
    s->clients = s->nodes * (uint32_t)between(d, 1, 3);
    s->clients = s->clients > CLIENTS_MAX ? CLIENTS_MAX : s->clients;
    s->think_us = PICK(d, thinks);
    s->window_max = PICK(d, windows);
    /* The checkers' work grows with what is under way at the same time. */
    while (s->window_max > 1 && s->clients * s->window_max > 36) {
        s->window_max /= 2;
    }
    s->keys = (uint32_t)between(d, 1, KEYS_MAX);
    s->registers = (uint32_t)between(d, 0, s->keys);
    s->counters = (uint32_t)between(d, 0, s->keys - s->registers);
    s->skew_permille = (uint32_t)between(d, 0, 800);
    s->private_permille = (uint32_t)between(d, 0, 300);
    s->extra_permille = chance(d, 300) ? (uint32_t)between(d, 20, 200) : 0;
    s->filler_keys = chance(d, 400) ? (uint32_t)between(d, 1, 60) : 0;
    s->filler_bytes = 300;
    s->value_profile = (uint32_t)between(d, 0, 2);
    if (chance(d, 120)) {
        /* Too little memory for all: writes are refused, by all members alike. */
        s->memory_max = between(d, 40000, 150000);
        s->filler_keys = (uint32_t)between(d, 30, 60);
        s->filler_bytes = 4000;
    }
    draw_mix(d);
}

static bool choose(struct drawing *d, enum sim_choice choice, uint32_t permille)
{
    bool drawn = chance(d, permille); /* drawn in any case, so that a choice changes nothing else */
    return choice == SIM_DRAWN ? drawn : choice == SIM_ON;
}

void setup_draw(const struct sim_config *config, uint64_t seed, struct setup *setup_out)
{
    HK_ASSERT(config->nodes >= 1 && config->nodes <= SIM_NODES_MAX);
    HK_ASSERT(config->workers <= SIM_WORKERS_MAX);
    *setup_out = (struct setup){.seed = seed, .nodes = config->nodes};
    struct setup *s = setup_out;
    struct drawing d = {.allowed = config->faults, .setup = s};
    random_init(&d.random, seed);
    uint32_t workers = (uint32_t)between(&d, 1, SIM_WORKERS_MAX);
    s->workers = config->workers == 0 ? workers : config->workers;
    uint32_t ops = (uint32_t)between(&d, 300, 500);
    s->ops = config->ops == 0 ? ops : config->ops;
    s->o3 = choose(&d, config->o3, 300);
    s->async = choose(&d, config->async, 200);
    draw_gentle(&d);
    draw_protocol(&d);
    s->horizon_us = 6 * s->lease_us;
    draw_weather(&d);
    draw_wild(&d);
    draw_links(&d);
    draw_clocks(&d);
    draw_plan(&d);
    draw_more_weather(&d);
    draw_grace(&d);
    draw_clients(&d);
    draw_rounds(&d);
    s->blackout = chance(&d, 100);
    s->liveness_us = 60 * s->lease_us + 4 * s->answer_us;
}
