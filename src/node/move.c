/* The mover of worker 0: takes the keys of slots that have another home by the map, or that are
 * being emptied, one by one to where they belong (docs/protocols/slots.md). It passes over
 * the store in small steps, so that clients are served meanwhile, until a pass finds nothing; then
 * the map machine hears that, with the version of the map under which the pass began. */
#include "node/internal.h"

#include <string.h>

#include "base/assert.h"

#define STEP_US 500u      /* between two steps, at the least */
#define STEP_BUCKETS 512u /* of a step, and SWEEP_KEYS_MAX keys */
#define OPEN_MAX 256u     /* keys that are on their way at a time */
#define AGAIN_US 5000u    /* between two passes, when there is nothing to do but to wait */

struct visit {
    const struct space *space;
    struct sweep *keys; /* the sweep's memory: it is used by one at a time */
    uint32_t most;      /* keys */
    bool over;          /* something found no room */
    uint8_t self;
};

static bool concerned(struct slot_home home, uint8_t self)
{
    return home.state == HOME_EMPTYING || (home.state == HOME_MOVING && home.home == self);
}

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct visit *v = context;
    struct sweep *keys = v->keys;
    (void)meta;
    (void)value;
    if (!concerned(homes_of(v->space, key), v->self)) {
        return;
    }
    if (keys->keys_n == v->most || key.n > SWEEP_BYTES - keys->bytes_n) {
        v->over = true;
        return;
    }
    keys->keys[keys->keys_n++] = (struct sweep_key){.hash = hash, .at = keys->bytes_n, .n = key.n};
    if (key.n > 0) {
        memcpy(keys->bytes + keys->bytes_n, key.at, key.n);
    }
    keys->bytes_n += key.n;
}

/* Whether the map has anything to do for this node that it has not said to be done. */
static bool wanted(const struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    return space->homed && ordered_issues(w, index) &&
           atomic_load_explicit(&space->map_version, memory_order_relaxed) !=
               space->mover.done_version;
}

/* How many more keys may be on their way now. */
static uint32_t room(const struct worker *w, uint8_t index)
{
    const struct space *space = &w->node->spaces[index];
    uint32_t flows = w->node->config.flows_max / 4 + 1;
    uint32_t most = flows < OPEN_MAX ? flows : OPEN_MAX;
    return space->mover.open >= most || (space->lanes && lanes_clogged(w))
               ? 0
               : most - space->mover.open;
}

static void begin(struct worker *w, struct space *space)
{
    struct mover *m = &space->mover;
    uint8_t self = w->node->config.self;
    m->moving = 0;
    m->emptying = 0;
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home home =
            slot_home_unpack(atomic_load_explicit(&space->homes[i], memory_order_relaxed));
        m->moving += home.state == HOME_MOVING && home.home == self;
        m->emptying += home.state == HOME_EMPTYING;
    }
    m->version = atomic_load_explicit(&space->map_version, memory_order_relaxed);
    if (m->moving + m->emptying == 0) {
        m->done_version = m->version;
        return;
    }
    m->passing = true;
    m->found = false;
    m->begun = false;
    m->cursor = 0;
}

/* Whether a key may go to its new home now: not if that has no memory. */
static bool may_move(const struct worker *w, struct slot_home home)
{
    nodeset full = atomic_load_explicit(&w->node->full, memory_order_relaxed);
    return home.state != HOME_MOVING || !nodeset_has(full, home.to);
}

static void treat(struct worker *w, uint8_t index, const struct sweep_key *k)
{
    struct space *space = &w->node->spaces[index];
    struct mover *m = &space->mover;
    struct bytes key = bytes_of(w->sweep.bytes + k->at, k->n);
    struct slot_home home = homes_of(space, key);
    if (!concerned(home, w->node->config.self) || !may_move(w, home)) {
        m->found = true;
        return;
    }
    m->open++; /* its end may come before step_move returns */
    enum step_word word = step_move(w, index, key, k->hash);
    if (word != STEP_BEGUN) {
        m->open--;
    }
    w->stats.purged += home.state == HOME_EMPTYING;
    /* A key that is cached, and handed over, stays. */
    m->found |= word != STEP_NOTHING || home.state == HOME_EMPTYING;
    m->begun |= word == STEP_BEGUN || home.state == HOME_EMPTYING;
}

void move_done(struct worker *w, const struct flow *f)
{
    struct mover *m = &w->node->spaces[f->space].mover;
    HK_ASSERT(w->index == 0 && m->open > 0);
    m->open--;
    w->stats.moves++;
}

static void finish(struct worker *w, uint8_t index)
{
    struct mover *m = &w->node->spaces[index].mover;
    m->passing = false;
    w->stats.move_passes++;
    if (m->found) {
        m->due_us = w->now_us + (m->begun ? STEP_US : AGAIN_US);
        return;
    }
    m->done_version = m->version;
    if (m->moving > 0) {
        ordered_slots(w, index, SLOTS_MOVED, m->version);
    }
    if (m->emptying > 0) {
        ordered_slots(w, index, SLOTS_PURGED, m->version);
    }
}

static void step(struct worker *w, uint8_t index)
{
    struct space *space = &w->node->spaces[index];
    struct mover *m = &space->mover;
    m->due_us = w->now_us + STEP_US;
    if (!m->passing) {
        begin(w, space);
    }
    if (!m->passing) {
        return;
    }
    struct visit v = {.space = space, .keys = &w->sweep, .self = w->node->config.self};
    uint32_t buckets = STEP_BUCKETS;
    v.most = room(w, index) < SWEEP_KEYS_MAX ? room(w, index) : SWEEP_KEYS_MAX;
    w->sweep.keys_n = 0;
    w->sweep.bytes_n = 0;
    do {
        m->cursor = store_walk(space->store, w->threads[index], m->cursor, visit, &v);
        buckets--;
    } while (m->cursor != 0 && buckets > 0 && w->sweep.keys_n < v.most);
    m->found |= v.over;
    for (uint32_t i = 0; i < w->sweep.keys_n; i++) {
        treat(w, index, &w->sweep.keys[i]);
    }
    if (m->cursor == 0) {
        finish(w, index);
    }
}

void move_poll(struct worker *w)
{
    for (uint8_t i = 0; i < SPACES_MAX; i++) {
        if (wanted(w, i) && w->now_us >= w->node->spaces[i].mover.due_us && room(w, i) > 0) {
            step(w, i);
        }
    }
}

/* What it waits for beside the time comes with a poll. */
uint64_t move_deadline(const struct worker *w)
{
    uint64_t due = UINT64_MAX;
    for (uint8_t i = 0; i < SPACES_MAX; i++) {
        uint64_t space_due = w->node->spaces[i].mover.due_us;
        if (wanted(w, i) && room(w, i) > 0 && space_due < due) {
            due = space_due;
        }
    }
    return due;
}
