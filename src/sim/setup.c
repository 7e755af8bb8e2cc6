#include "sim/setup.h"

#include <string.h>

#include "base/assert.h"
#include "node/engines.h"
#include "sim/setup_internal.h"
#include "sim/trader.h"

const char *const sim_fault_names[SIM_FAULTS] = {
    [SIM_FAULT_LOSS] = "loss",         [SIM_FAULT_DUPLICATE] = "duplicate",
    [SIM_FAULT_REORDER] = "reorder",   [SIM_FAULT_DELAY] = "delay",
    [SIM_FAULT_CORRUPT] = "corrupt",   [SIM_FAULT_STORM] = "storm",
    [SIM_FAULT_ONEWAY] = "oneway",     [SIM_FAULT_PARTITION] = "partition",
    [SIM_FAULT_BRIDGE] = "bridge",     [SIM_FAULT_CRASH] = "crash",
    [SIM_FAULT_PAUSE] = "pause",       [SIM_FAULT_STALL] = "stall",
    [SIM_FAULT_SLOW] = "slow",         [SIM_FAULT_LEAVE] = "leave",
    [SIM_FAULT_ZOMBIE] = "zombie",     [SIM_FAULT_LATE] = "late",
    [SIM_FAULT_CLOCK] = "clock",       [SIM_FAULT_DRIFT] = "drift",
    [SIM_FAULT_RESIZE] = "resize",     [SIM_FAULT_MAJORITY] = "majority",
    [SIM_FAULT_BLACKOUT] = "blackout", [SIM_FAULT_VERSIONS] = "versions",
};

/* A swarm: most seeds leave out some kinds of fault altogether and have much of others, since what
 * always happens together hides what happens alone. */
static void draw_swarm(struct drawing *d)
{
    static const uint32_t shares[] = {300, 500, 700, 1000};
    uint32_t share = PICK(d, shares);
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        bool picked = chance(d, share);
        if (!picked && (d->permitted & (d->permitted - 1)) != 0) {
            d->allowed &= ~(1u << i);
        }
    }
    /* A seed without any is one that tests little. */
    d->allowed = d->allowed == 0 ? d->permitted : d->allowed;
}

/* Some runs have no frame that lives long, so that tombstones are forgotten soon and often. */
static void draw_gentle(struct drawing *d)
{
    static const enum sim_fault lasting[] = {SIM_FAULT_STORM, SIM_FAULT_PAUSE, SIM_FAULT_STALL,
                                             SIM_FAULT_SLOW, SIM_FAULT_ZOMBIE};
    d->setup->gentle = chance(d, 300);
    for (size_t i = 0; d->setup->gentle && i < sizeof lasting / sizeof lasting[0]; i++) {
        d->allowed &= ~(1u << lasting[i]);
        d->permitted &= ~(1u << lasting[i]);
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
    if (chance(d, 150)) {
        /* Slow to suspect: much can happen while a member is silent. */
        s->suspect_us = s->lease_us * between(d, 60, 95) / 100;
    }
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
    bool may = force ? (d->permitted >> kind & 1u) != 0 : allowed(d, kind) && chance(d, 700);
    if (!may) {
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
        d->drawn |= 1u << SIM_FAULT_LOSS;
        w->loss_ppm = (uint32_t)between(d, 20000, 150000);
    }
    if (allowed(d, SIM_FAULT_REORDER)) {
        d->drawn |= 1u << SIM_FAULT_REORDER;
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
 * (lease - margin) / (1 - r) < lease / (1 + r), which r = margin / lease / 2 just fails. Where
 * clocks step as well, rates take half of the margin and the one step of each clock less than the
 * rest. */
static int64_t draw_rate_limit(struct drawing *d)
{
    struct setup *s = d->setup;
    int64_t limit_ppm = (int64_t)(s->margin_us * 1000000 / s->lease_us / 2 * 95 / 100);
    bool steps = chance(d, 300);
    if (!s->clocks_differ || !steps) {
        d->weight[SIM_FAULT_CLOCK] = 0;
        return limit_ppm;
    }
    return limit_ppm / 2;
}

/* What no margin covers. Nothing in a run may depend on it, so these have no leases. */
#define DRIFT_PPM_MAX 100000

static void draw_clocks(struct drawing *d)
{
    struct setup *s = d->setup;
    s->clocks_differ = allowed(d, SIM_FAULT_CLOCK) && chance(d, 800);
    s->drift = allowed(d, SIM_FAULT_DRIFT) && s->async;
    s->drift = s->drift && chance(d, 700);
    d->weight[SIM_FAULT_DRIFT] *= s->drift;
    int64_t limit_ppm = draw_rate_limit(d);
    d->drawn |= s->clocks_differ ? 1u << SIM_FAULT_CLOCK : 0;
    d->drawn |= s->drift ? 1u << SIM_FAULT_DRIFT : 0;
    for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
        struct setup_clock *c = &s->clocks[i];
        uint64_t kind = between(d, 0, 3);
        int64_t most = kind == 0 ? 100 : limit_ppm;
        int64_t within = kind == 1   ? limit_ppm
                         : kind == 2 ? -limit_ppm
                                     : (int64_t)between(d, 0, 2 * (uint64_t)most) - most;
        int64_t beyond = (int64_t)between(d, 0, 2 * DRIFT_PPM_MAX) - DRIFT_PPM_MAX;
        static const int64_t walls[] = {0, 3, -40, 1000, -1000, 3600000};
        int64_t wall_ms = PICK(d, walls);
        c->offset_us = (int64_t)between(d, 1000000, 1000000000);
        c->jump_ms = PICK(d, walls);
        c->jump_at_us = between(d, 0, 10 * s->lease_us);
        c->wall_ms = s->clocks_differ ? wall_ms : 0;
        c->jump_ms = s->clocks_differ ? c->jump_ms : 0;
        c->rate_ppm = s->drift ? (int32_t)beyond : s->clocks_differ ? (int32_t)within : 0;
    }
}

/* A rolling upgrade: some nodes know more versions of the frames than others. */
static void draw_versions(struct drawing *d)
{
    struct setup *s = d->setup;
    s->versions = allowed(d, SIM_FAULT_VERSIONS) && chance(d, 700);
    d->drawn |= s->versions ? 1u << SIM_FAULT_VERSIONS : 0;
    for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
        bool newer = chance(d, 500);
        s->version_max[i] = s->versions && newer ? 2 : 1;
    }
}

/* No frame may live longer than the grace of tombstones: one that is held back by a process that
 * stands still counts with the time that it stands still. */
static void draw_grace(struct drawing *d)
{
    struct setup *s = d->setup;
    const struct weather *w = &s->weather;
    uint64_t steps_us = 0;
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
        steps_us += f->step_us;
    }
    s->life_us = life_us;
    s->grace_us = 2 * life_us + steps_us + between(d, 1000, s->gentle ? 5000 : 50000);
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

/* Nodes need not have the same number of workers. */
static void draw_workers(struct drawing *d, uint32_t wanted)
{
    struct setup *s = d->setup;
    uint32_t drawn = (uint32_t)between(d, 1, SIM_WORKERS_MAX);
    bool differ = chance(d, 300);
    for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
        uint32_t other = (uint32_t)between(d, 1, SIM_WORKERS_MAX);
        s->workers_of[i] = wanted != 0 ? wanted : differ ? other : drawn;
        s->workers = s->workers_of[i] > s->workers ? s->workers_of[i] : s->workers;
    }
}

/* Fewer clients and keys than were drawn: another run, that may show the same. */
static void make_smaller(const struct sim_config *config, struct setup *s)
{
    if (config->clients_max != 0 && s->clients > config->clients_max) {
        s->clients = config->clients_max;
    }
    if (config->clients_max != 0 && s->traders > config->clients_max) {
        s->traders = config->clients_max;
    }
    if (config->keys_max != 0 && s->traded > config->keys_max) {
        s->traded = config->keys_max;
    }
    if (config->keys_max != 0 && s->keys > config->keys_max) {
        s->keys = config->keys_max;
        s->registers = s->registers > s->keys ? s->keys : s->registers;
        uint32_t rest = s->keys - s->registers;
        s->counters = s->counters > rest ? rest : s->counters;
    }
}

/* What is left out has been drawn all the same. */
static void leave_out(const struct sim_config *config, struct setup *s)
{
    struct weather *w = &s->weather;
    uint32_t *ppm[SIM_FAULTS] = {
        [SIM_FAULT_LOSS] = &w->loss_ppm,       [SIM_FAULT_DUPLICATE] = &w->duplicate_ppm,
        [SIM_FAULT_REORDER] = &w->reorder_ppm, [SIM_FAULT_DELAY] = &w->spike_ppm,
        [SIM_FAULT_CORRUPT] = &w->corrupt_ppm,
    };
    s->drawn &= ~config->faults_skip;
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        bool skipped = (config->faults_skip >> i & 1u) != 0;
        if (skipped && ppm[i] != NULL) {
            *ppm[i] = 0;
        }
    }
    for (uint32_t i = 0; i < s->plan_n; i++) {
        s->plan[i].off = (config->plan_skip >> i & 1u) != 0 ||
                         (config->faults_skip >> s->plan[i].kind & 1u) != 0;
    }
    uint32_t clocks = 1u << SIM_FAULT_CLOCK | 1u << SIM_FAULT_DRIFT;
    for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
        if ((s->drawn & clocks) == 0) {
            s->clocks[i] = (struct setup_clock){.offset_us = s->clocks[i].offset_us};
        }
        if ((config->faults_skip & 1u << SIM_FAULT_DRIFT) != 0 && s->drift) {
            s->clocks[i].rate_ppm = 0;
        }
        if ((s->drawn & 1u << SIM_FAULT_VERSIONS) == 0) {
            s->version_max[i] = 1;
        }
    }
    s->clocks_differ = (s->drawn & 1u << SIM_FAULT_CLOCK) != 0;
    s->drift = (s->drawn & 1u << SIM_FAULT_DRIFT) != 0;
    s->versions = (s->drawn & 1u << SIM_FAULT_VERSIONS) != 0;
}

/* What the seed draws, it draws for all engines. */
static void choose_engine(const struct sim_config *config, struct setup *s)
{
    s->engine = config->engine == NULL ? &hermes_ops : engines_find(config->engine);
    HK_ASSERT(s->engine != NULL);
    s->sequential = (s->engine->traits & ENGINE_READS_FOLLOW) != 0;
    if (s->engine != &hermes_ops) {
        HK_ASSERT(config->o3 != SIM_ON && config->async != SIM_ON);
        s->o3 = false;
        s->async = false;
    }
}

/* Chance of its own: what other engines draw stays as it is. */
static void draw_homed(struct drawing *d)
{
    static const uint32_t caches[] = {1, 1, 2, 3, 8};
    static const uint32_t samples[] = {1, 1, 2, 4};
    static const uint32_t misses[] = {0, 1, 2, 8};
    struct setup *s = d->setup;
    struct drawing own = {.setup = s};
    if ((s->engine->traits & ENGINE_HOMED) == 0) {
        return;
    }
    random_init(&own.random, s->seed ^ 0x6a1e7eu);
    s->hot = (struct hot_config){
        .off = chance(&own, 80),
        .cache_keys = PICK(&own, caches),
        .epoch_us = between(&own, s->lease_us / 40, s->lease_us / 3),
        .sample = PICK(&own, samples),
        .misses_max = PICK(&own, misses),
    };
    s->hot.exclusive = s->hot.off && chance(&own, 500);
    s->favour_us = s->hot.epoch_us * between(&own, 1, 6);
    s->skew_permille = (uint32_t)between(&own, 300, 900);
}

/* Chance of its own, as with homes. */
static void draw_owned(struct drawing *d, bool trade)
{
    static const uint32_t keys[] = {1, 2, 2, 3, 4, 8};
    static const uint32_t windows[] = {1, 1, 2, 4, WINDOW_MAX};
    struct setup *s = d->setup;
    struct drawing own = {.setup = s};
    if ((s->engine->traits & ENGINE_OWNED) == 0 && !trade) {
        return;
    }
    random_init(&own.random, s->seed ^ 0x2e05u);
    s->traders = s->nodes * (uint32_t)between(&own, 1, 2);
    s->traders = s->traders > TRADERS_MAX ? TRADERS_MAX : s->traders;
    s->traded = PICK(&own, keys);
    s->accounts = (uint32_t)between(&own, 2, ACCOUNTS_MAX);
    s->trade_window = PICK(&own, windows);
    uint32_t deals = (uint32_t)between(&own, 100, 300);
    s->round_deals = 1 + deals / (s->traders * s->rounds_n);
    /* So many that no minority of crashes takes all replicas of an object. */
    uint64_t least = (s->nodes - 1) / 2 + 1;
    bool few = chance(&own, 600);
    s->owned = (struct owned_config){
        .busy_max = chance(&own, 850) ? 96 : (uint32_t)between(&own, 24, 48),
        .quantum_us = (uint32_t)between(&own, 1, 300),
        .quantum_most_us = (uint32_t)between(&own, 300, 3000),
        .window_us = (uint32_t)between(&own, 1000, 20000),
        .grace_us = between(&own, 2000, 60000),
        .walk_us = between(&own, 2000, 40000),
    };
    s->degree = few ? (uint8_t)between(&own, least, s->nodes) : 0;
}

/* What a table needs before it has rows. */
#define TABLE_BYTES UINT64_C(2000000)

/* Chance of its own, as with homes. Few keys contend, more leave gaps. */
static void draw_tables(struct drawing *d, const struct sim_config *config)
{
    static const uint32_t keys[] = {2, 3, 4, 6, 8, 12, TRADED_MAX};
    static const uint32_t windows[] = {1, 1, 2, 4, WINDOW_MAX};
    struct setup *s = d->setup;
    struct drawing own = {.setup = s};
    if ((s->engine->traits & ENGINE_TABLES) == 0) {
        return;
    }
    random_init(&own.random, s->seed ^ 0x107u);
    s->traders = s->nodes * (uint32_t)between(&own, 1, 3);
    s->traders = s->traders > TRADERS_MAX ? TRADERS_MAX : s->traders;
    s->traded = PICK(&own, keys);
    s->accounts = (uint32_t)between(&own, 2, ACCOUNTS_MAX);
    s->trade_window = PICK(&own, windows);
    s->trade_tag = chance(&own, 250);
    uint32_t deals = (uint32_t)between(&own, 100, 400);
    s->round_deals = 1 + deals / (s->traders * s->rounds_n);
    s->lotus = (struct lotus_config){
        .lock.policy = (uint8_t)random_below(&own.random, LOCK_POLICIES),
        .one_at_a_time = chance(&own, 100),
        .one_trip_off = chance(&own, 200),
        .hints_off = chance(&own, 200),
        .across = chance(&own, 300),
        .hints_max = chance(&own, 500) ? 64 : (uint32_t)between(&own, 1, 8),
        .tries_max = chance(&own, 850) ? 128 : (uint32_t)between(&own, 4, 16),
        .locks_max = 4096,
        .lease_us = between(&own, s->lease_us / 2, 4 * s->lease_us),
        .grace_us = between(&own, 500, s->lease_us),
    };
    s->memory_max += s->memory_max > 0 ? TABLE_BYTES : 0;
    /* A quorum of memory servers is not needed, but one is. */
    bool roles = chance(&own, 300);
    uint32_t server = (uint32_t)random_below(&own.random, s->nodes);
    for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
        bool computes = chance(&own, 400);
        s->roles[i] = roles && computes && i != server ? NODE_ROLE_COMPUTE : NODE_ROLE_BOTH;
    }
    if (config->near) {
        /* Everybody owns, and keeps for the others. */
        random_init(&own.random, s->seed ^ 0xfa4u);
        s->lotus.near_max = between(&own, 1, 1000);
        s->lotus.far_min = 1;
        memset(s->roles, NODE_ROLE_BOTH, sizeof s->roles);
    }
    if (config->policy > 0) {
        s->lotus.lock.policy = (uint8_t)(config->policy - 1);
    }
}

void setup_draw(const struct sim_config *config, uint64_t seed, struct setup *setup_out)
{
    HK_ASSERT(config->nodes >= 1 && config->nodes <= SIM_NODES_MAX);
    HK_ASSERT(config->workers <= SIM_WORKERS_MAX);
    *setup_out = (struct setup){.seed = seed, .nodes = config->nodes, .machines = config->nodes};
    struct setup *s = setup_out;
    struct drawing d = {.permitted = config->faults, .allowed = config->faults, .setup = s};
    random_init(&d.random, seed);
    draw_swarm(&d);
    setup_draw_weights(&d);
    draw_workers(&d, config->workers);
    uint32_t ops = (uint32_t)between(&d, 300, 500);
    s->ops = config->ops == 0 ? ops : config->ops;
    s->o3 = choose(&d, config->o3, 300);
    s->async = choose(&d, config->async, allowed(&d, SIM_FAULT_DRIFT) ? 300 : 200);
    choose_engine(config, s);
    draw_gentle(&d);
    draw_protocol(&d);
    s->horizon_us = 6 * s->lease_us;
    draw_weather(&d);
    draw_wild(&d);
    draw_links(&d);
    draw_clocks(&d);
    draw_versions(&d);
    setup_draw_plan(&d);
    draw_more_weather(&d);
    draw_grace(&d);
    draw_clients(&d);
    draw_rounds(&d);
    draw_homed(&d);
    draw_owned(&d, config->trade);
    draw_tables(&d, config);
    s->blackout = chance(&d, 100);
    s->liveness_us = 60 * s->lease_us + 4 * s->answer_us;
    s->drawn = d.drawn;
    leave_out(config, s);
    make_smaller(config, s);
}
