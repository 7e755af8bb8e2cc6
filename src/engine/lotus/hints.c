#include "engine/lotus/hints.h"

#include <string.h>

#include "base/assert.h"

static uint32_t sets_for(uint32_t most)
{
    uint32_t sets = 1;
    while (sets <= most / HINTS_WAYS / 2) {
        sets *= 2;
    }
    return sets;
}

size_t hints_bytes(uint32_t most)
{
    return (size_t)sets_for(most) * HINTS_WAYS * sizeof(struct hint);
}

void hints_init(struct hints *h, void *memory, uint32_t most)
{
    memset(memory, 0, hints_bytes(most));
    *h = (struct hints){.places = memory, .sets = sets_for(most)};
}

static struct hint *set_of(const struct hints *h, uint64_t hash)
{
    return &h->places[(hash & (h->sets - 1)) * HINTS_WAYS];
}

static struct hint *place_of(const struct hints *h, uint64_t hash)
{
    struct hint *set = set_of(h, hash);
    for (uint32_t i = 0; i < HINTS_WAYS; i++) {
        if (set[i].hint != 0 && set[i].hash == hash) {
            return &set[i];
        }
    }
    return NULL;
}

uint64_t hints_find(struct hints *h, uint64_t hash)
{
    struct hint *p = place_of(h, hash);
    if (p == NULL) {
        return 0;
    }
    p->uses += p->uses < UINT32_MAX;
    return p->hint;
}

/* A free place, or that of the least frequently used; then the others of the set have aged, or one
 * that was popular once would stay for ever. */
static struct hint *make_room(struct hints *h, uint64_t hash)
{
    struct hint *set = set_of(h, hash);
    struct hint *least = &set[0];
    for (uint32_t i = 0; i < HINTS_WAYS; i++) {
        if (set[i].hint == 0) {
            h->kept++;
            return &set[i];
        }
        least = set[i].uses < least->uses ? &set[i] : least;
    }
    for (uint32_t i = 0; i < HINTS_WAYS; i++) {
        set[i].uses /= 2;
    }
    return least;
}

void hints_set(struct hints *h, uint64_t hash, uint64_t hint)
{
    struct hint *p = place_of(h, hash);
    if (hint == 0 && p != NULL) {
        HK_ASSERT(h->kept > 0);
        h->kept--;
        *p = (struct hint){.hint = 0};
    } else if (hint != 0) {
        if (p == NULL) {
            p = make_room(h, hash);
            *p = (struct hint){.hash = hash, .uses = 1};
        }
        p->hint = hint;
    }
}
