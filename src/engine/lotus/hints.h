/* Hints that a coordinator keeps of rows at memory servers ([L] 5.2): by the hash of their key, the
 * least frequently used make room, and what was used long ago counts less. Pure. A hint is only a
 * shortcut: the server looks whether it is right before it uses it, so that two keys with one hash,
 * or an old hint, cost a look-up and nothing else. */
#ifndef HORKOS_ENGINE_LOTUS_HINTS_H
#define HORKOS_ENGINE_LOTUS_HINTS_H

#include <stddef.h>
#include <stdint.h>

#include "engine/lotus/lfu.h"

struct hints {
    struct lfu_place *places; /* caller's memory; sets of LFU_WAYS: a hash, its hint */
    uint32_t sets;            /* a power of two */
    uint32_t kept;            /* places that are not free */
};

/* Memory for at most so many hints (at least LFU_WAYS are kept). */
size_t hints_bytes(uint32_t most);
void hints_init(struct hints *h, void *memory, uint32_t most);
/* Brings what hints_find will look at towards the cache. */
void hints_prefetch(const struct hints *h, uint64_t hash);
/* 0: there is none. */
uint64_t hints_find(struct hints *h, uint64_t hash);
/* The right one, as a server said; 0: forgets it. */
void hints_set(struct hints *h, uint64_t hash, uint64_t hint);

#endif
