/* Who gets which slots: pure functions of a map and of who may take. */
#include "engine/homes/internal.h"

#include <string.h>

static uint32_t stable(uint8_t node)
{
    return slot_home_pack((struct slot_home){.home = node, .to = NODE_NONE, .state = HOME_STABLE});
}

/* The node that has the slot, or will have it; NODE_NONE: it is nobody's. */
static uint8_t owner(struct slot_home h)
{
    switch (h.state) {
    case HOME_STABLE:
    case HOME_EMPTYING:
    case HOME_GIVEN:
        return h.home;
    case HOME_MOVING:
        return h.to;
    default:
        return NODE_NONE;
    }
}

struct shares {
    uint32_t has[NODES_MAX];
    uint32_t shall[NODES_MAX];
    uint32_t lost;
};

static void count(struct shares *sh, const uint32_t *map)
{
    memset(sh, 0, sizeof *sh);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        uint8_t node = owner(slot_home_unpack(map[i]));
        if (node < NODES_MAX) {
            sh->has[node]++;
        } else {
            sh->lost++;
        }
    }
}

/* Even shares of so many slots; those that have most get the ones that do not divide. */
static void share_out(struct shares *sh, nodeset takers, uint32_t slots)
{
    uint32_t n = nodeset_count(takers);
    nodeset more = 0;
    for (uint32_t i = 0; i < slots % n; i++) {
        uint8_t best = NODE_NONE;
        for (nodeset rest = takers & ~more; rest != 0; rest &= rest - 1) {
            uint8_t node = nodeset_first(rest);
            best = best == NODE_NONE || sh->has[node] > sh->has[best] ? node : best;
        }
        more |= nodeset_of(best);
    }
    for (nodeset rest = takers; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        sh->shall[node] = slots / n + nodeset_has(more, node);
    }
}

/* A taker that has less than it shall have. */
static uint8_t in_need(const struct shares *sh, nodeset takers)
{
    for (nodeset rest = takers; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (sh->has[node] < sh->shall[node]) {
            return node;
        }
    }
    return NODE_NONE;
}

void homes_deal(uint32_t *map, nodeset takers)
{
    struct shares sh;
    memset(&sh, 0, sizeof sh);
    if (takers == 0) {
        for (uint32_t i = 0; i < HASH_SLOTS; i++) {
            map[i] = slot_home_pack((struct slot_home){.home = NODE_NONE, .to = NODE_NONE});
        }
        return;
    }
    share_out(&sh, takers, HASH_SLOTS);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        uint8_t node = in_need(&sh, takers);
        map[i] = stable(node);
        sh.has[node]++;
    }
}

bool homes_empty(uint32_t *map, enum home_state state, nodeset takers)
{
    struct shares sh;
    bool any = false;
    if (takers == 0) {
        return false;
    }
    count(&sh, map);
    if (sh.lost == 0) {
        return false;
    }
    share_out(&sh, takers, HASH_SLOTS);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        if (slot_home_unpack(map[i]).state != state) {
            continue;
        }
        uint8_t node = in_need(&sh, takers);
        if (node == NODE_NONE) {
            node = nodeset_first(takers); /* somebody who may not take has more than his share */
        }
        map[i] = slot_home_pack(
            (struct slot_home){.home = node, .to = NODE_NONE, .state = HOME_EMPTYING});
        sh.has[node]++;
        any = true;
    }
    return any;
}

bool homes_even(uint32_t map[HASH_SLOTS], nodeset takers)
{
    if (takers == 0) {
        return false;
    }
    struct shares sh;
    uint32_t moves[NODES_MAX] = {0};
    bool any = false;
    count(&sh, map);
    share_out(&sh, takers, HASH_SLOTS - sh.lost);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home h = slot_home_unpack(map[i]);
        if (h.state != HOME_STABLE || sh.has[h.home] <= sh.shall[h.home] ||
            moves[h.home] == HOMES_MOVES_MAX) {
            continue;
        }
        uint8_t to = in_need(&sh, takers);
        if (to == NODE_NONE) {
            break;
        }
        sh.has[h.home]--;
        sh.has[to]++;
        moves[h.home]++;
        map[i] = slot_home_pack((struct slot_home){.home = h.home, .to = to, .state = HOME_MOVING});
        any = true;
    }
    return any;
}
