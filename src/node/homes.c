/* Which node is the home of which slot, as the engine of a space last said (engine_has_map):
 * decided on worker 0, looked at by all. */
#include "node/lotus.h"
#include "node/internal.h"

#include <stdlib.h>

#include "base/assert.h"

int homes_init(struct space *space)
{
    if (!engine_has_map(space->ops)) {
        return HK_OK;
    }
    space->homes = calloc(HASH_SLOTS, sizeof *space->homes);
    if (space->homes == NULL) {
        return HK_ERR_NOMEM;
    }
    uint32_t nobody = slot_home_pack((struct slot_home){.home = NODE_NONE, .to = NODE_NONE});
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        atomic_store_explicit(&space->homes[i], nobody, memory_order_relaxed);
    }
    return (space->ops->traits & ENGINE_TABLES) != 0 ? lotus_map_init(space) : HK_OK;
}

void homes_deinit(struct space *space)
{
    lotus_map_deinit(space);
    free(space->homes);
    space->homes = NULL;
}

void homes_set(struct worker *w, uint8_t index, const struct effect *e)
{
    struct space *space = &w->node->spaces[index];
    HK_ASSERT(space->homes != NULL && e->gen < HASH_SLOTS && e->slot <= HASH_SLOTS - e->gen);
    for (uint32_t i = e->gen; i < e->gen + e->slot; i++) {
        if (space->moves != NULL) {
            uint32_t before = atomic_load_explicit(&space->homes[i], memory_order_relaxed);
            lotus_map_changes(w, index, i, slot_home_unpack(before),
                              slot_home_unpack((uint32_t)e->set));
        }
        atomic_store_explicit(&space->homes[i], (uint32_t)e->set, memory_order_release);
    }
    bool nobody = (e->flags & HOME_FX_NOBODY) != 0;
    atomic_store_explicit(&space->no_taker, nobody, memory_order_relaxed);
    if (space->moves != NULL &&
        e->ts != atomic_load_explicit(&space->map_version, memory_order_relaxed)) {
        lotus_map_told(w, index, e->ts);
    }
    atomic_store_explicit(&space->map_version, e->ts, memory_order_release);
}

struct slot_home homes_of(const struct space *space, struct bytes key)
{
    return slot_home_unpack(
        atomic_load_explicit(&space->homes[slot_of_key(key)], memory_order_acquire));
}

void worker_hand_over(struct worker *control)
{
    if (control->node->owned != 0) {
        own_leave(control);
    }
    for (uint8_t i = 0; i < SPACES_MAX; i++) {
        if (control->node->spaces[i].homes != NULL) {
            ordered_slots(control, i, SLOTS_LEAVE, 0);
        }
    }
    lotus_home_leave(control);
}

bool node_handed_over(const struct node *node)
{
    /* acquire: pairs with the release in own_leave.c. */
    if (node->owned != 0 && !atomic_load_explicit(&node->spared, memory_order_acquire)) {
        return false;
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct space *space = &node->spaces[i];
        if (space->homes != NULL && !atomic_load_explicit(&space->left, memory_order_acquire)) {
            return false;
        }
    }
    return lotus_home_left(node);
}

void worker_empty_lost(struct worker *control, uint32_t space)
{
    HK_ASSERT(space < SPACES_MAX);
    if (control->node->spaces[space].directory != NULL) {
        /* Every node gives up those of which it is the one to say so. */
        struct msg m = {
            .space = (uint8_t)space, .kind = MSG_OWN_EMPTY, .epoch = control->view.epoch};
        output_values(control, control->view.live, 0, &m, NULL);
        return;
    }
    HK_ASSERT(control->node->spaces[space].homes != NULL);
    ordered_slots(control, (uint8_t)space, SLOTS_EMPTY, 0);
}

bool node_homes(const struct node *node, uint32_t index, struct slot_home *homes_out,
                uint64_t *version_out)
{
    if (index >= SPACES_MAX || node->spaces[index].homes == NULL) {
        return false;
    }
    const struct space *space = &node->spaces[index];
    *version_out = atomic_load_explicit(&space->map_version, memory_order_acquire);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        homes_out[i] =
            slot_home_unpack(atomic_load_explicit(&space->homes[i], memory_order_acquire));
    }
    return true;
}

struct slot_home node_home(const struct node *node, uint32_t space, uint32_t slot)
{
    HK_ASSERT(node->spaces[space].homes != NULL && slot < HASH_SLOTS);
    return slot_home_unpack(
        atomic_load_explicit(&node->spaces[space].homes[slot], memory_order_acquire));
}

uint64_t node_map_version(const struct node *node, uint32_t space)
{
    return atomic_load_explicit(&node->spaces[space].map_version, memory_order_acquire);
}

bool node_no_taker(const struct node *node, uint32_t space)
{
    /* acquire: a map of this version says it, or a later one; pairs with homes_set's release. */
    return atomic_load_explicit(&node->spaces[space].map_version, memory_order_acquire) != 0 &&
           atomic_load_explicit(&node->spaces[space].no_taker, memory_order_relaxed);
}

bool homes_rest(struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home =
            slot_home_unpack(atomic_load_explicit(&space->homes[i], memory_order_relaxed));
        if (home.state != HOME_STABLE && home.state != HOME_LOST) {
            return false;
        }
    }
    return space->ops->quiet == NULL || space->ops->quiet(w->engine_state[index]);
}
