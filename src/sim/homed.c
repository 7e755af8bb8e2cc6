#include "sim/homed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/slot.h"
#include "engine/galene/galene.h"
#include "sim/world.h"

/* Keys that are looked at after each poll. */
#define LOOK_KEYS 2u

bool homed_on(const struct world *world)
{
    return (world->setup.engine->traits & (ENGINE_HOMED | ENGINE_TABLES)) != 0;
}

void homed_deinit(struct homed *homed)
{
    free(homed->at);
    free(homed->born);
}

static struct bytes key_bytes(const struct world *world, uint32_t key)
{
    const struct sim_key *k = &world->clients.keys[key];
    return bytes_of(k->bytes, k->n);
}

/* ---- Slots that are given up ---- */

static struct emptying *latest_of(struct world *world, uint32_t key, bool traded)
{
    struct homed *homed = &world->homed;
    for (size_t i = homed->n; i-- > 0;) {
        struct emptying *e = &homed->at[i];
        if (e->key == key && e->traded == traded && e->life == world->lives_n - 1) {
            return e;
        }
    }
    return NULL;
}

static void open_emptying(struct world *world, uint32_t key, bool traded, uint64_t map,
                          uint64_t begin_us)
{
    struct homed *homed = &world->homed;
    if (homed->n == homed->capacity) {
        homed->capacity = homed->capacity == 0 ? 64 : 2 * homed->capacity;
        homed->at = realloc(homed->at, homed->capacity * sizeof *homed->at);
        HK_ASSERT(homed->at != NULL);
    }
    homed->at[homed->n++] = (struct emptying){.key = key,
                                              .traded = traded,
                                              .life = world->lives_n - 1,
                                              .from_map = map,
                                              .begin_us = begin_us};
    if (!traded) {
        crowd_forget_key(world, key);
    }
}

/* Nodes that lag show what others have left behind; versions tell. born: the newest map when the
 * key was first seen. */
static void note_home(struct machine *m, uint32_t key, bool traded, uint64_t map, uint64_t born)
{
    struct world *world = m->world;
    const struct trade_key *k = &world->traders.keys[traded ? key : 0];
    struct bytes bytes = traded ? bytes_of(k->bytes, k->n) : key_bytes(world, key);
    struct slot_home home = node_home(m->node, 0, slot_of_key(bytes));
    struct emptying *last = latest_of(world, key, traded);
    bool open = last != NULL && last->end_us == 0;
    uint64_t until = last != NULL ? last->until_map : born;
    if (home.state == HOME_EMPTYING && !open && map > until) {
        open_emptying(world, key, traded, map, 2 * m->poll_step);
    } else if ((home.state == HOME_STABLE || home.state == HOME_MOVING) && open &&
               map > last->from_map) {
        last->until_map = map;
        last->end_us = 2 * world->step + 1;
    }
}

static void note_keys(struct world *world)
{
    struct homed *homed = &world->homed;
    if (homed->life != world->lives_n - 1) {
        homed->life = world->lives_n - 1;
        homed->newest = 0;
        homed->born_n = 0;
    }
    if (homed->born_capacity < world->clients.keys_n) {
        homed->born_capacity = 2 * world->clients.keys_n;
        homed->born = realloc(homed->born, homed->born_capacity * sizeof *homed->born);
        HK_ASSERT(homed->born != NULL);
    }
    while (homed->born_n < world->clients.keys_n) {
        homed->born[homed->born_n++] = homed->newest;
    }
}

static void note_map(struct machine *m)
{
    struct world *world = m->world;
    struct homed *homed = &world->homed;
    uint64_t map = node_map_version(m->node, 0);
    uint32_t traded = traders_on(world) ? world->setup.traded + world->setup.accounts : 0;
    if (homed->map[m->place] == map && homed->nonce[m->place] == m->nonce) {
        return;
    }
    homed->map[m->place] = map;
    homed->nonce[m->place] = m->nonce;
    trace_note(&world->trace, map);
    trace_line(world, "node %u has map %" PRIu64 ".%" PRIu64, m->id, map >> 32, map & UINT32_MAX);
    for (uint32_t key = 0; key < world->clients.keys_n; key++) {
        note_home(m, key, false, map, homed->born[key]);
    }
    for (uint32_t key = 0; key < traded; key++) {
        note_home(m, key, true, map, 0);
    }
    homed->newest = map > homed->newest ? map : homed->newest;
}

bool homed_window(const struct world *world, uint32_t key, uint32_t life, uint32_t i,
                  uint64_t *begin_us_out, uint64_t *end_us_out)
{
    for (size_t at = 0; at < world->homed.n; at++) {
        const struct emptying *e = &world->homed.at[at];
        if (e->traded && e->key == key && e->life == life && i-- == 0) {
            *begin_us_out = e->begin_us;
            *end_us_out = e->end_us;
            return true;
        }
    }
    return false;
}

uint64_t homed_money_us(const struct world *world, uint32_t life)
{
    uint64_t from_us = UINT64_MAX;
    for (size_t i = 0; i < world->homed.n; i++) {
        const struct emptying *e = &world->homed.at[i];
        if (e->traded && e->key >= world->setup.traded && e->life == life &&
            e->begin_us < from_us) {
            from_us = e->begin_us;
        }
    }
    return from_us;
}

bool homed_emptied(const struct world *world, uint32_t key, uint32_t life)
{
    for (size_t i = 0; i < world->homed.n; i++) {
        const struct emptying *e = &world->homed.at[i];
        if (!e->traded && e->key == key && e->life == life) {
            return true;
        }
    }
    return false;
}

size_t homed_deletions(const struct world *world, uint32_t life, uint32_t client,
                       struct history_op *ops_out)
{
    size_t n = 0;
    for (size_t i = 0; i < world->homed.n; i++) {
        const struct emptying *e = &world->homed.at[i];
        if (!e->traded && e->life == life) {
            ops_out[n++] = (struct history_op){
                .begin_us = e->begin_us,
                .end_us = e->end_us,
                .key = e->key,
                .in = HISTORY_ABSENT,
                .expected = HISTORY_ABSENT,
                .out = HISTORY_ABSENT,
                .client = client,
                .kind = HISTORY_DELETE,
                .outcome = e->end_us == 0 ? HISTORY_UNKNOWN : HISTORY_OK,
                .ok = e->end_us != 0,
            };
        }
    }
    return n;
}

/* ---- What a key looks like on all nodes ---- */

/* What a node would answer for a key: nothing, or as its home, or as one of its caches. */
struct sight {
    bool readable;
    bool cached;
    bool lost;
    uint16_t generation;
    uint64_t ts;
    uint64_t value_hash;
    uint8_t flags;
};

static struct sight see(const struct machine *m, struct bytes key)
{
    _Alignas(8) uint8_t buffer[STORE_INLINE_MAX];
    struct store_value value = {0};
    struct sight sight = {0};
    struct store *store = node_store(m->node, 0);
    store_online(m->eye);
    int err =
        store_read(store, m->eye, key, store_hash(store, key), buffer, STORE_INLINE_MAX, &value);
    if (err == HK_OK && value.found) {
        sight.readable = (value.meta.flags & KEY_READABLE) != 0;
        sight.cached = value.meta.state != GALENE_HOME;
        sight.lost = value.meta.state == GALENE_LOST;
        sight.generation = value.meta.aux;
        sight.ts = value.meta.ts;
        sight.flags = value.meta.flags & KEY_VALUE_FLAGS;
        sight.value_hash = hash_bytes(&m->world->trace.secret, value.value);
    } else {
        struct slot_home home = node_home(m->node, 0, slot_of_key(key));
        sight.readable = home.home == m->id && home.state == HOME_STABLE;
    }
    store_quiescent(m->eye);
    store_offline(m->eye);
    return sight;
}

/* Whether the node may answer at all: it is a member, and has a lease. */
static bool may_answer(const struct world *world, const struct view *view, const struct machine *m)
{
    return m->node != NULL && view_operational(view, m->id, m->nonce) &&
           machine_clock(m, world->now_us) < world->ghost.lease_until_us[m->place];
}

static void compare_sights(struct world *world, uint32_t key, uint8_t a, const struct sight *mine,
                           uint8_t b, const struct sight *its)
{
    if (!mine->cached || !its->cached) {
        world_violation(world, "nodes %u and %u both answer for key %" PRIu32 ", %s", a, b, key,
                        mine->cached || its->cached ? "cached at one of them only" : "uncached");
    } else if (mine->ts != its->ts || mine->flags != its->flags ||
               mine->value_hash != its->value_hash || mine->generation != its->generation) {
        world_violation(world,
                        "nodes %u and %u have key %" PRIu32 " cached with versions %" PRIu64
                        " and %" PRIu64 " of generations %u and %u, and both are readable",
                        a, b, key, stamp_version(mine->ts), stamp_version(its->ts),
                        mine->generation, its->generation);
    }
}

static void look_at_key(struct world *world, uint32_t key)
{
    const struct view *view = ghost_newest(world);
    struct sight first = {0};
    uint8_t who = NODE_NONE;
    for (uint8_t i = 0; view != NULL && i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        if (!may_answer(world, view, m)) {
            continue;
        }
        struct sight sight = see(m, key_bytes(world, key));
        if (!sight.readable) {
            continue;
        }
        if (who != NODE_NONE) {
            compare_sights(world, key, who, &first, m->id, &sight);
            return;
        }
        first = sight;
        who = m->id;
    }
}

/* Rows are under locks, and no other node has any of them. */
static void look_at_slot(struct world *world, uint32_t key)
{
    const struct view *view = ghost_newest(world);
    uint32_t slot = slot_of_key(key_bytes(world, key));
    uint8_t who = NODE_NONE;
    for (uint8_t i = 0; view != NULL && i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        struct slot_home home = {0};
        if (may_answer(world, view, m)) {
            home = node_home(m->node, 0, slot);
        }
        if (home.state != HOME_STABLE || home.home != m->id) {
            continue;
        }
        if (who != NODE_NONE) {
            world_violation(world, "nodes %u and %u both have key %" PRIu32, who, m->id, key);
            return;
        }
        who = m->id;
    }
}

void homed_polled(struct machine *m, uint32_t worker)
{
    struct world *world = m->world;
    struct homed *homed = &world->homed;
    if (!homed_on(world)) {
        return;
    }
    note_keys(world);
    if (worker == 0 && !machine_is_zombie(m)) {
        note_map(m);
    }
    if ((world->setup.engine->traits & ENGINE_TABLES) != 0) {
        look_at_slot(world, world->clients.shared[world->step % world->setup.keys]);
        return;
    }
    for (uint32_t i = 0; i < LOOK_KEYS && world->clients.keys_n > 0; i++) {
        homed->next_key = (homed->next_key + 1) % world->clients.keys_n;
        look_at_key(world, homed->next_key);
    }
    look_at_key(world, world->clients.shared[world->step % world->setup.keys]);
}

bool homed_key_lost(const struct world *world, uint32_t key)
{
    if ((world->setup.engine->traits & ENGINE_TABLES) != 0) {
        return false;
    }
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        if (m->node != NULL && see(m, key_bytes(world, key)).lost) {
            return true;
        }
    }
    return false;
}

/* ---- Slots ---- */

const char *homed_unsettled(const struct machine *m)
{
    uint32_t shares[NODES_MAX] = {0};
    if (node_map_version(m->node, 0) == 0) {
        return "has no map of slots";
    }
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home = node_home(m->node, 0, i);
        if (home.state != HOME_STABLE) {
            return home.state == HOME_LOST ? "knows of lost slots" : "knows of moving slots";
        }
        shares[home.home]++;
    }
    uint32_t least = HASH_SLOTS;
    uint32_t most = 0;
    for (nodeset rest = m->world->operator.wanted; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (m->world->setup.roles[node] == NODE_ROLE_COMPUTE) {
            continue;
        }
        uint32_t share = shares[node];
        least = share < least ? share : least;
        most = share > most ? share : most;
    }
    return most - least > 1 ? "knows of uneven shares of slots" : NULL;
}

static bool knows_lost(const struct machine *m)
{
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        if (node_home(m->node, 0, i).state == HOME_LOST) {
            return true;
        }
    }
    return false;
}

/* Some member has not heard yet which slots the newest view has lost. */
static bool maps_are_old(const struct world *world, const struct view *newest)
{
    for (uint8_t i = 0; newest != NULL && i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        if (m->node != NULL && view_operational(newest, i, m->nonce) &&
            node_map_version(m->node, 0) >> 32 < newest->epoch /* its upper half */) {
            return true;
        }
    }
    return false;
}

bool homed_look(struct world *world)
{
    struct homed *homed = &world->homed;
    const struct view *newest = ghost_newest(world);
    struct machine *who = NULL;
    uint64_t lease_us = world->setup.lease_us;
    for (uint8_t i = 0; newest != NULL && i < world->setup.machines; i++) {
        struct machine *m = &world->machines[i];
        if (may_answer(world, newest, m) && m->state == MACHINE_UP && m->busy == 0 &&
            m->trap == TRAP_NONE && knows_lost(m)) {
            who = m;
        }
    }
    if (who == NULL) {
        homed->lost_us = 0;
        return world->phase != PHASE_SAFETY && maps_are_old(world, newest);
    }
    if (homed->lost_us == 0) {
        homed->lost_us = world->now_us;
        homed->order_us = world->now_us + random_between(&world->chance_faults, 0, 2 * lease_us);
    }
    if (world->now_us >= homed->order_us || world->phase != PHASE_SAFETY) {
        trace_line(world, "the operator gives up lost slots, at node %u", who->id);
        worker_empty_lost(node_worker(who->node, 0), 0);
        machine_notice(who, 0);
        homed->order_us = world->now_us + 2 * lease_us;
    }
    return true;
}
