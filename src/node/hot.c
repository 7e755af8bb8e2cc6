/* Which keys this node's clients ask for the most (docs/HOTSET.md). Every thread that takes
 * operations, a worker or a reader, counts a random sample of them in a sketch of its own. Worker 0
 * halves all counts once an epoch; whoever wants to know takes the sketches together.
 *
 * A sampling thread never waits: while somebody looks at its sketch, a sample is lost. */
#include "node/internal.h"

#include <stdlib.h>

#include "base/assert.h"
#include "hot/tally.h"

#define KEY_BYTES_EACH 32u /* of a sketch, a counter */
#define COUNTERS_EACH 8u
#define COUNTERS_MAX (1u << 20)
#define WINDOW_MIN_US 1000u
/* So many times as many keys of each sketch are looked at as are asked for: the keys of one worker
 * may be others than those of the next. */
#define CANDIDATES 4u

/* ---- Sampling ---- */

static uint32_t gap(struct hot_sampler *h)
{
    return 1 + (uint32_t)random_below(&h->random, 2 * (uint64_t)h->sample - 1);
}

void hot_take(struct hot_sampler *h, struct bytes key, uint64_t hash, uint64_t now_us)
{
    h->left = gap(h);
    if (!spin_try(&h->lock)) {
        return;
    }
    if (h->since_us == 0) {
        h->since_us = now_us;
    }
    hot_sketch_add(&h->sketch, key, hash);
    spin_unlock(&h->lock);
}

struct hot_sampler *hot_open(struct node *n, uint8_t space, uint32_t thread, uint32_t sample,
                             uint32_t counters)
{
    struct hot_sampler *h = aligned_alloc(64, sizeof *h);
    void *memory = malloc(hot_sketch_bytes(counters, counters * KEY_BYTES_EACH));
    if (h == NULL || memory == NULL) {
        free(h);
        free(memory);
        return NULL;
    }
    memset(h, 0, sizeof *h);
    spin_init(&h->lock);
    random_init(&h->random, n->config.seed + 0x10000u * space + thread);
    hot_sketch_init(&h->sketch, memory, counters, counters * KEY_BYTES_EACH);
    h->memory = memory;
    h->space = space;
    h->sample = sample;
    h->left = gap(h);
    spin_lock(&n->hot_lock);
    list_push_back(&n->samplers, &h->link);
    spin_unlock(&n->hot_lock);
    return h;
}

void hot_close(struct node *n, struct hot_sampler *h)
{
    if (h == NULL) {
        return;
    }
    spin_lock(&n->hot_lock);
    list_remove(&h->link);
    spin_unlock(&n->hot_lock);
    free(h->memory);
    free(h);
}

/* ---- Time ---- */

/* Counts are sums over all time, in which an epoch weighs a quarter of the next one; so is the time
 * in which they were counted. With halves, a key that is twice as hot as another was before would
 * not be seen to be so after one epoch. */
static void decay(struct node *n, uint8_t space, uint64_t now_us)
{
    spin_lock(&n->hot_lock);
    list_each(link, &n->samplers)
    {
        struct hot_sampler *h = list_entry(link, struct hot_sampler, link);
        if (h->space != space) {
            continue;
        }
        spin_lock(&h->lock);
        if (h->since_us != 0 && now_us > h->since_us) {
            h->window_us = (h->window_us + (now_us - h->since_us)) / 4;
            h->since_us = now_us;
            hot_sketch_decay(&h->sketch);
            hot_sketch_decay(&h->sketch);
        }
        spin_unlock(&h->lock);
    }
    spin_unlock(&n->hot_lock);
}

/* A sampler of the space that has fewer counters; NULL: none has. Under hot_lock. */
static struct hot_sampler *small_sampler(struct node *n, uint8_t space, uint32_t counters)
{
    list_each(link, &n->samplers)
    {
        struct hot_sampler *h = list_entry(link, struct hot_sampler, link);
        if (h->space == space && h->sketch.counters < counters) {
            return h;
        }
    }
    return NULL;
}

/* Gives such a sampler more: false if there is none, or no memory. It starts anew: the cache grows
 * rarely. */
static bool grow_one(struct node *n, uint8_t space, uint32_t counters)
{
    spin_lock(&n->hot_lock);
    bool any = small_sampler(n, space, counters) != NULL;
    spin_unlock(&n->hot_lock);
    uint32_t key_bytes = counters * KEY_BYTES_EACH;
    void *memory = any ? malloc(hot_sketch_bytes(counters, key_bytes)) : NULL;
    if (memory == NULL) {
        return false;
    }
    struct hot_sketch sketch;
    hot_sketch_init(&sketch, memory, counters, key_bytes);
    spin_lock(&n->hot_lock);
    struct hot_sampler *h = small_sampler(n, space, counters);
    if (h != NULL) {
        spin_lock(&h->lock);
        void *old = h->memory;
        h->memory = memory;
        h->sketch = sketch;
        h->window_us = 0;
        h->since_us = 0;
        spin_unlock(&h->lock);
        memory = old;
    }
    spin_unlock(&n->hot_lock);
    free(memory);
    return h != NULL;
}

/* Eight counters for each key that may be hot (docs/HOTSET.md), as far as memory's bound lets. */
static void grow(struct node *n, uint8_t space)
{
    uint64_t counters = HOT_COUNTERS;
    while (counters < (uint64_t)COUNTERS_EACH * n->spaces[space].hot_keys &&
           counters < COUNTERS_MAX) {
        counters *= 2;
    }
    while (counters > HOT_COUNTERS && grow_one(n, space, (uint32_t)counters)) {
    }
}

void hot_age(struct worker *w, uint8_t space, uint64_t next_us)
{
    decay(w->node, space, w->now_us);
    grow(w->node, space);
    w->node->spaces[space].decay_due_us = w->now_us + next_us;
}

void hot_poll(struct worker *w)
{
    struct node *n = w->node;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct space *space = &n->spaces[i];
        if (space->ops != NULL && w->now_us >= space->decay_due_us) {
            hot_age(w, (uint8_t)i, n->config.spaces[i].hot.epoch_us);
        }
    }
}

uint64_t hot_deadline(const struct worker *w)
{
    uint64_t due = UINT64_MAX;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct space *space = &w->node->spaces[i];
        if (space->ops != NULL && space->decay_due_us < due) {
            due = space->decay_due_us;
        }
    }
    return due;
}

/* ---- Taking the sketches together ---- */

/* What one count of the sketch means, in operations a second. */
static double weight(const struct hot_sampler *h, uint64_t now_us)
{
    uint64_t window_us = h->window_us + (now_us > h->since_us ? now_us - h->since_us : 0);
    window_us = window_us > WINDOW_MIN_US ? window_us : WINDOW_MIN_US;
    return 1e6 * h->sample / (double)window_us;
}

void hot_tally_samplers(struct node *n, uint8_t space, uint64_t now_us, uint32_t most,
                        struct hot_tally *t)
{
    spin_lock(&n->hot_lock);
    list_each(link, &n->samplers)
    {
        struct hot_sampler *h = list_entry(link, struct hot_sampler, link);
        if (h->space != space) {
            continue;
        }
        spin_lock(&h->lock);
        if (h->since_us != 0) {
            /* Hashes are those of the space's store, the same for all of them. */
            hot_tally_sketch(t, &h->sketch, weight(h, now_us), most, NULL, NULL);
        }
        spin_unlock(&h->lock);
    }
    spin_unlock(&n->hot_lock);
}

uint32_t hot_samplers(struct node *n, uint8_t space)
{
    uint32_t count = 0;
    spin_lock(&n->hot_lock);
    list_each(link, &n->samplers)
    {
        count += list_entry(link, struct hot_sampler, link)->space == space;
    }
    spin_unlock(&n->hot_lock);
    return count;
}

int node_hotkeys(struct node *n, uint32_t space, uint64_t now_us, uint32_t count,
                 node_hotkey_fn *emit, void *context)
{
    if (space >= SPACES_MAX || n->spaces[space].ops == NULL || count > NODE_HOTKEYS_MAX) {
        return HK_ERR_INVALID;
    }
    uint32_t most = CANDIDATES * count;
    uint32_t entries = hot_samplers(n, (uint8_t)space) * most;
    if (entries == 0) {
        return HK_OK;
    }
    struct hot_tally t;
    void *memory = malloc(hot_tally_bytes(entries, entries * KEY_BYTES_EACH));
    if (memory == NULL) {
        return HK_ERR_NOMEM;
    }
    hot_tally_init(&t, memory, entries, entries * KEY_BYTES_EACH);
    hot_tally_samplers(n, (uint8_t)space, now_us, most, &t);
    struct hot_ranking ranking = {.least = 0, .bonus = 1};
    uint32_t found = hot_tally_rank(&t, count, &ranking);
    for (uint32_t i = 0; i < found; i++) {
        struct hot_rate r = hot_tally_ranked(&t, i);
        if (r.least > 0) {
            emit(context, r.key, (uint64_t)(r.least + 0.5));
        }
    }
    free(memory);
    return HK_OK;
}
