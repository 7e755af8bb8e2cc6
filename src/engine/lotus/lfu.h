/* Which of many things stay near when there is no room for all ([L] 5): sets of a few places, of a
 * full set the least frequently used makes room, and what was used long ago counts less. Pure. The
 * caches that servers keep, and those of the cost models, are these. */
#ifndef HORKOS_ENGINE_LOTUS_LFU_H
#define HORKOS_ENGINE_LOTUS_LFU_H

#include <stdint.h>

#define LFU_WAYS 8u /* places of a set */

struct lfu_place {
    uint64_t key;
    uint64_t value; /* 0: a free place */
    uint32_t uses;  /* since it came, halved each time that its set makes room */
    uint32_t mark;  /* the user's; 0 when it comes */
};

/* The place of a set (LFU_WAYS places) that has that key; NULL: none has. */
struct lfu_place *lfu_find(struct lfu_place *set, uint64_t key);
/* The same, and it counts as a use. */
struct lfu_place *lfu_use(struct lfu_place *set, uint64_t key);
/* A key that the set does not have comes, used once, with a value that is not 0. *left_out: what
 * made room; its value is 0 if a place was free. */
struct lfu_place *lfu_admit(struct lfu_place *set, uint64_t key, uint64_t value,
                            struct lfu_place *left_out);

#endif
