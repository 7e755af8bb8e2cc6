/* The mover of worker 0 where slots move as wholes (docs/protocols/lotus.md, "Moving partitions"):
 * what of this node's map it has to do, it does, and tells the map machine, with the version of the
 * map under which it began. */
#include "node/lotus_move.h"

#include "base/assert.h"

static struct slot_home home_of(const struct space *space, uint32_t slot)
{
    return slot_home_unpack(atomic_load_explicit(&space->homes[slot], memory_order_relaxed));
}

/* Whether the map has anything to do for this node that it has not said to be done. */
static bool wanted(const struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    return space->moves != NULL && ordered_issues(w, index) &&
           atomic_load_explicit(&space->map_version, memory_order_relaxed) !=
               space->moves->done_version;
}

static void begin(struct worker *w, struct space *space)
{
    struct lotus_moves *m = space->moves;
    m->moving = false;
    m->emptying = false;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home = home_of(space, i);
        m->moving = m->moving || (home.state == HOME_MOVING && home.home == w->node->config.self);
        m->emptying = m->emptying || home.state == HOME_EMPTYING;
    }
    m->pass_version = atomic_load_explicit(&space->map_version, memory_order_relaxed);
}

static void finish(struct worker *w, uint8_t index)
{
    struct lotus_moves *m = w->node->spaces[index].moves;
    m->done_version = m->pass_version;
    if (m->moving) {
        ordered_slots(w, index, SLOTS_MOVED, m->pass_version);
    }
    if (m->emptying) {
        ordered_slots(w, index, SLOTS_PURGED, m->pass_version);
    }
}

void lotus_move_poll(struct worker *w)
{
    for (uint8_t i = 0; i < SPACES_MAX; i++) {
        if (wanted(w, i)) {
            begin(w, &w->node->spaces[i]);
            finish(w, i);
        }
    }
}

uint64_t lotus_move_deadline(const struct worker *w)
{
    for (uint8_t i = 0; i < SPACES_MAX; i++) {
        if (wanted(w, i)) {
            return w->now_us;
        }
    }
    return UINT64_MAX;
}
