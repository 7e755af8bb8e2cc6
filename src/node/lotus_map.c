/* Which memory server has which slot, as every worker of this node sees it. The map itself is that
 * of every engine that has one (homes.c): worker 0 writes it. What ranges ask of all slots together
 * stands in a summary, so that nobody walks 16,384 entries for one of them. */
#include "node/lotus_move.h"

#include <stdlib.h>

#include "base/assert.h"

int lotus_map_init(struct space *space)
{
    struct lotus_moves *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return HK_ERR_NOMEM;
    }
    atomic_init(&m->lost, HASH_SLOTS);
    space->moves = m;
    return HK_OK;
}

void lotus_map_deinit(struct space *space)
{
    if (space->moves != NULL) {
        lotus_move_deinit(space->moves);
    }
    free(space->moves);
    space->moves = NULL;
}

/* ---- Worker 0: the map changes ---- */

/* Whether rows of the slot that are here belong here, or are coming here. */
static bool belongs(struct slot_home home, uint8_t self)
{
    return (home.home == self && home.state != HOME_EMPTYING) ||
           (home.state == HOME_MOVING && home.to == self);
}

void lotus_map_changes(struct worker *w, uint8_t index, uint32_t slot, struct slot_home before,
                       struct slot_home after)
{
    struct lotus_moves *m = w->node->spaces[index].moves;
    uint8_t self = w->node->config.self;
    if (before.state == HOME_MOVING && slot_home_pack(before) != slot_home_pack(after)) {
        lotus_slots_drop(&m->sent, slot);
        lotus_slots_drop(&m->going, slot);
    }
    if (belongs(before, self) && !belongs(after, self)) {
        lotus_slots_add(&m->foreign, slot);
        /* release: pairs with the acquire in lotus_servers; the map says it afterwards. */
        atomic_store_explicit(&m->foreign_any, true, memory_order_release);
    }
}

void lotus_map_told(struct worker *w, uint8_t index, uint64_t version)
{
    const struct space *space = &w->node->spaces[index];
    struct lotus_moves *m = space->moves;
    nodeset servers = 0;
    uint32_t lost = HASH_SLOTS;
    bool rest = true;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home =
            slot_home_unpack(atomic_load_explicit(&space->homes[i], memory_order_relaxed));
        lost = home.state == HOME_LOST ? i : lost;
        rest = rest && (home.state == HOME_STABLE || home.state == HOME_LOST);
        servers |= home.state == HOME_STABLE ? nodeset_of(home.home) : 0;
    }
    atomic_fetch_add_explicit(&m->changes, 1, memory_order_acq_rel);
    atomic_store_explicit(&m->version, version, memory_order_release);
    atomic_store_explicit(&m->servers, servers, memory_order_release);
    atomic_store_explicit(&m->lost, lost, memory_order_release);
    atomic_store_explicit(&m->rest, rest, memory_order_release);
    atomic_fetch_add_explicit(&m->changes, 1, memory_order_release);
}

/* ---- Any worker ---- */

static struct slot_home home_of(const struct worker *w, uint8_t index, uint32_t slot)
{
    HK_ASSERT(slot < HASH_SLOTS);
    return slot_home_unpack(
        atomic_load_explicit(&w->node->spaces[index].homes[slot], memory_order_acquire));
}

enum lotus_where lotus_where(const struct worker *w, uint8_t space, uint32_t slot,
                             uint8_t *node_out)
{
    struct slot_home home = home_of(w, space, slot);
    switch ((enum home_state)home.state) {
    case HOME_STABLE:
    case HOME_MOVING:
    case HOME_GIVEN:
        *node_out = home.home;
        return LOTUS_AT;
    case HOME_LOST:
        return LOTUS_LOST;
    case HOME_NONE:
        return node_map_version(w->node, space) != 0 ? LOTUS_NOBODY : LOTUS_WAIT;
    case HOME_EMPTYING:
        break;
    }
    return LOTUS_WAIT;
}

bool lotus_servers(const struct worker *w, uint8_t space, nodeset *servers_out,
                   uint64_t *version_out, uint32_t *lost_out)
{
    const struct lotus_moves *m = w->node->spaces[space].moves;
    bool left = lotus_rule_on(w->node->spaces[space].engine, LOTUS_RULE_MOVE_LEFT);
    uint64_t before;
    uint32_t lost;
    bool rest;
    do {
        before = atomic_load_explicit(&m->changes, memory_order_acquire);
        *version_out = atomic_load_explicit(&m->version, memory_order_acquire);
        *servers_out = atomic_load_explicit(&m->servers, memory_order_acquire);
        lost = atomic_load_explicit(&m->lost, memory_order_acquire);
        rest = atomic_load_explicit(&m->rest, memory_order_acquire);
    } while ((before & 1) != 0 ||
             atomic_load_explicit(&m->changes, memory_order_acquire) != before);
    if (lost != HASH_SLOTS) {
        *lost_out = lost;
    }
    return *version_out != 0 && lost == HASH_SLOTS && rest &&
           !(left && atomic_load_explicit(&m->foreign_any, memory_order_acquire));
}

bool lotus_stays(const struct worker *w, uint8_t space, uint32_t slot)
{
    struct slot_home home = home_of(w, space, slot);
    uint8_t self = w->node->config.self;
    return home.state == HOME_MOVING
               ? home.to == self
               : home.home == self && home.state != HOME_EMPTYING && home.state != HOME_LOST;
}

bool lotus_here(const struct worker *w, uint8_t space, uint32_t slot)
{
    struct slot_home home = home_of(w, space, slot);
    return home.state == HOME_STABLE && home.home == w->node->config.self &&
           ordered_serves(w, space);
}
