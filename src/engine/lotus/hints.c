#include "engine/lotus/hints.h"

#include <string.h>

#include "base/assert.h"

static uint32_t sets_for(uint32_t most)
{
    uint32_t sets = 1;
    while (sets <= most / LFU_WAYS / 2) {
        sets *= 2;
    }
    return sets;
}

size_t hints_bytes(uint32_t most)
{
    return (size_t)sets_for(most) * LFU_WAYS * sizeof(struct lfu_place);
}

void hints_init(struct hints *h, void *memory, uint32_t most)
{
    memset(memory, 0, hints_bytes(most));
    *h = (struct hints){.places = memory, .sets = sets_for(most)};
}

static struct lfu_place *set_of(const struct hints *h, uint64_t hash)
{
    return &h->places[(hash & (h->sets - 1)) * LFU_WAYS];
}

void hints_prefetch(const struct hints *h, uint64_t hash)
{
    const uint8_t *set = (const uint8_t *)set_of(h, hash);
    for (uint32_t at = 0; at < LFU_WAYS * sizeof(struct lfu_place); at += 64u) {
        __builtin_prefetch(set + at);
    }
}

uint64_t hints_find(struct hints *h, uint64_t hash)
{
    const struct lfu_place *p = lfu_use(set_of(h, hash), hash);
    return p == NULL ? 0 : p->value;
}

void hints_set(struct hints *h, uint64_t hash, uint64_t hint)
{
    struct lfu_place *p = lfu_find(set_of(h, hash), hash), left;
    if (hint == 0 && p != NULL) {
        HK_ASSERT(h->kept > 0);
        h->kept--;
        *p = (struct lfu_place){.value = 0};
    } else if (hint != 0 && p != NULL) {
        p->value = hint;
    } else if (hint != 0) {
        (void)lfu_admit(set_of(h, hash), hash, hint, &left);
        h->kept += left.value == 0;
    }
}
