#include "engine/lotus/lfu.h"

#include <stddef.h>

#include "base/assert.h"

struct lfu_place *lfu_find(struct lfu_place *set, uint64_t key)
{
    for (uint32_t i = 0; i < LFU_WAYS; i++) {
        if (set[i].value != 0 && set[i].key == key) {
            return &set[i];
        }
    }
    return NULL;
}

struct lfu_place *lfu_use(struct lfu_place *set, uint64_t key)
{
    struct lfu_place *p = lfu_find(set, key);
    if (p != NULL) {
        p->uses += p->uses < UINT32_MAX;
    }
    return p;
}

/* A free place, or that of the least frequently used; then the others of the set have aged, or one
 * that was popular once would stay for ever. */
static struct lfu_place *make_room(struct lfu_place *set)
{
    struct lfu_place *least = &set[0];
    for (uint32_t i = 0; i < LFU_WAYS; i++) {
        if (set[i].value == 0) {
            return &set[i];
        }
        least = set[i].uses < least->uses ? &set[i] : least;
    }
    for (uint32_t i = 0; i < LFU_WAYS; i++) {
        set[i].uses /= 2;
    }
    return least;
}

struct lfu_place *lfu_admit(struct lfu_place *set, uint64_t key, uint64_t value,
                            struct lfu_place *left_out)
{
    HK_CHECK(value != 0 && lfu_find(set, key) == NULL);
    struct lfu_place *p = make_room(set);
    *left_out = *p;
    *p = (struct lfu_place){.key = key, .value = value, .uses = 1};
    return p;
}
