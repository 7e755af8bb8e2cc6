/* Walking the keys of a space for clients (KEYS, SCAN, RANDOMKEY): what exists, by buckets. */
#include "node/internal.h"

#define WALK_BUCKETS_MAX 16u /* visited by one call when they turn out to be empty */

struct walk {
    worker_key_fn *emit;
    void *context;
    uint64_t wall_ms;
    uint32_t emitted;
};

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct walk *walk = context;
    struct op_state state;
    (void)hash;
    if (op_state_from_stored(value, meta->flags, &state) != HK_OK || !state.present ||
        op_state_expired(&state, walk->wall_ms)) {
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
