/* The background walk of worker 0: keys that a change of view left without a coordinator are
 * replayed, tombstones are reported, values past their deadline are deleted by the one member that
 * their hash designates, or by their home or owner where they have one. It passes over each store
 * once in sweep_us, in small steps. */
#include "node/own.h"

#include <string.h>

#include "base/assert.h"

#define STEP_US 1000u    /* between two steps, at the least */
#define STEP_BUCKETS 64u /* buckets a step, when the store is small enough for that */
#define STEP_BUCKETS_MAX 1024u
#define OWN_CALLS_MAX 256u /* deletions of expired values under way */

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct sweep *sweep = context;
    int64_t expired_ms = 0;
    if ((meta->flags & KEY_DEADLINE) != 0 && value.n >= 8 && get_u64(value.at) <= sweep->wall_ms) {
        expired_ms = (int64_t)get_u64(value.at);
    }
    bool wanted =
        expired_ms != 0 || (meta->flags & KEY_READABLE) == 0 || (meta->flags & KEY_TOMBSTONE) != 0;
    if (sweep->owned) {
        /* Nothing is left half done, tombstones are own_walk.c's, and the owner deletes. */
        wanted = expired_ms != 0 && (meta->flags & ZEUS_OWNED) != 0;
    }
    wanted = wanted && !sweep->brought;
    if (!wanted || sweep->keys_n == SWEEP_KEYS_MAX || key.n > SWEEP_BYTES - sweep->bytes_n) {
        return; /* what finds no room waits for the next pass */
    }
    sweep->keys[sweep->keys_n++] = (struct sweep_key){
        .hash = hash, .at = sweep->bytes_n, .n = key.n, .expired_ms = expired_ms};
    if (key.n > 0) {
        memcpy(sweep->bytes + sweep->bytes_n, key.at, key.n);
    }
    sweep->bytes_n += key.n;
}

/* One member acts for a key where one suffices; the others would only repeat it. */
static bool designated(const struct worker *w, uint64_t portable)
{
    uint32_t members = nodeset_count(w->view.operational);
    nodeset below = w->view.operational & (nodeset_of(w->node->config.self) - 1);
    return members > 0 && portable % members == nodeset_count(below);
}

static void expire(struct worker *w, struct bytes key, uint64_t hash, int64_t deadline_ms)
{
    struct request request = {
        .session = SESSION_NONE,
        .op = {.kind = OP_EXPIRED, .space = w->sweep.space, .key = key, .number = deadline_ms},
    };
    /* Clients come first: what finds no room is met again in the next pass. */
    if (w->calls_free_n > w->node->config.calls_max / 2 && w->own_calls < OWN_CALLS_MAX) {
        w->own_calls++;
        call_take(w, &request, hash);
    }
}

static void treat(struct worker *w, const struct sweep_key *k)
{
    struct sweep *sweep = &w->sweep;
    const struct space *space = &w->node->spaces[sweep->space];
    struct bytes key = bytes_of(sweep->bytes + k->at, k->n);
    uint64_t portable = portable_hash(w, key);
    bool homed = space->homed;
    if (sweep->owned) {
        expire(w, key, k->hash, k->expired_ms);
        return;
    }
    if (k->expired_ms != 0) {
        /* Of a key that has a home only that one deletes it. */
        if (homed ? slot_home_is(homes_of(space, key), w->node->config.self)
                  : designated(w, portable)) {
            expire(w, key, k->hash, k->expired_ms);
        }
        return;
    }
    if (sweep->soon && !homed && !designated(w, portable)) {
        return; /* the first pass after a change of view is shared out */
    }
    struct step s;
    step_init(w, &s, sweep->space, EV_SWEEP);
    s.event.key_hash = portable;
    s.key = key;
    s.hash = k->hash;
    step_key(w, &s);
}

static void sweep_next_space(struct worker *w)
{
    struct sweep *sweep = &w->sweep;
    sweep->cursor = 0;
    while (++sweep->space < SPACES_MAX) {
        if (w->node->spaces[sweep->space].ops != NULL) {
            return;
        }
    }
    sweep->space = w->node->first_space;
    sweep->soon = false;
}

void sweep_restart(struct worker *w)
{
    w->sweep.cursor = 0;
    w->sweep.space = w->node->first_space;
    w->sweep.soon = true;
    w->sweep.due_us = w->now_us;
}

/* How many buckets now, and when to go on, so that a pass takes about sweep_us. */
static uint32_t pace(struct worker *w, struct store *store)
{
    struct sweep *sweep = &w->sweep;
    struct store_stats stats;
    store_stats(store, &stats);
    uint64_t pass_us = w->node->config.sweep_us;
    uint64_t steps = stats.buckets / STEP_BUCKETS + 1;
    uint64_t pause_us = pass_us / steps;
    uint64_t buckets = STEP_BUCKETS;
    if (pause_us < STEP_US) {
        pause_us = STEP_US;
        buckets = stats.buckets * STEP_US / pass_us + 1;
    }
    if (sweep->soon) {
        pause_us = STEP_US;
        buckets = STEP_BUCKETS_MAX;
    }
    sweep->due_us = w->now_us + pause_us;
    return (uint32_t)(buckets < STEP_BUCKETS_MAX ? buckets : STEP_BUCKETS_MAX);
}

void sweep_poll(struct worker *w)
{
    struct sweep *sweep = &w->sweep;
    if (!w->operational || w->now_us < sweep->due_us) {
        return;
    }
    const struct space *space = &w->node->spaces[sweep->space];
    uint32_t buckets = pace(w, space->store);
    sweep->keys_n = 0;
    sweep->bytes_n = 0;
    sweep->wall_ms = w->wall_ms;
    sweep->owned = space->directory != NULL;
    sweep->brought = space->brought != NULL;
    do {
        sweep->cursor =
            store_walk(space->store, w->threads[sweep->space], sweep->cursor, visit, sweep);
        buckets--;
    } while (sweep->cursor != 0 && buckets > 0 && sweep->keys_n < SWEEP_KEYS_MAX);
    for (uint32_t i = 0; i < sweep->keys_n; i++) {
        treat(w, &sweep->keys[i]);
    }
    if (sweep->cursor == 0) {
        sweep_next_space(w);
    }
}

uint64_t sweep_deadline(const struct worker *w)
{
    return w->operational ? w->sweep.due_us : UINT64_MAX;
}
