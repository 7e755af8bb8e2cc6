/* Walking the keys of a space for clients (KEYS, SCAN, RANDOMKEY): what exists, by buckets. */
#include "node/own.h"

#define WALK_BUCKETS_MAX 16u /* visited by one call when they turn out to be empty */

struct walk {
    worker_key_fn *emit;
    void *context;
    const struct space *space;
    uint8_t self;
    uint64_t wall_ms;
    uint32_t emitted;
};

/* Where keys have homes each is told of by its home. While it moves both say that they have it, for
 * nobody knows which of them has it already. */
static bool at_home(const struct walk *walk, struct bytes key)
{
    if (!walk->space->homed) {
        return true;
    }
    struct slot_home home = homes_of(walk->space, key);
    return slot_home_is(home, walk->self) || (home.state == HOME_MOVING && home.to == walk->self);
}

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct walk *walk = context;
    struct op_state state;
    (void)hash;
    if (op_state_from_stored(value, meta->flags, &state) != HK_OK || !state.present ||
        op_state_expired(&state, walk->wall_ms) || !at_home(walk, key) ||
        (walk->space->directory != NULL && (meta->flags & ZEUS_OWNED) == 0)) {
        return;
    }
    walk->emitted++;
    walk->emit(walk->context, key);
}

uint64_t worker_walk(struct worker *w, uint32_t space, uint64_t cursor, worker_key_fn *emit,
                     void *context)
{
    if (space >= SPACES_MAX || w->threads[space] == NULL) {
        return 0;
    }
    struct walk walk = {
        .emit = emit,
        .context = context,
        .space = &w->node->spaces[space],
        .self = w->node->config.self,
        .wall_ms = w->node->env.wall_ms(w->node->env.context),
    };
    struct store *store = w->node->spaces[space].store;
    uint32_t buckets = 0;
    do {
        cursor = store_walk(store, w->threads[space], cursor, visit, &walk);
        buckets++;
    } while (cursor != 0 && walk.emitted == 0 && buckets < WALK_BUCKETS_MAX);
    return cursor;
}
