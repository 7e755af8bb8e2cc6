/* What a node keeps of a space's map of slots where those move as wholes (ENGINE_TABLES): a summary
 * for ranges (lotus_map.c), and what is on its way (lotus_move.c). Only these two include it. */
#ifndef HORKOS_NODE_LOTUS_MOVE_H
#define HORKOS_NODE_LOTUS_MOVE_H

#include "node/lotus.h"

#define LOTUS_SLOT_WORDS (HASH_SLOTS / 64u)

/* A set of slots. */
struct lotus_slots {
    uint64_t words[LOTUS_SLOT_WORDS];
    uint32_t n;
};

static inline bool lotus_slots_has(const struct lotus_slots *s, uint32_t slot)
{
    return (s->words[slot / 64] >> slot % 64 & 1) != 0;
}

static inline void lotus_slots_add(struct lotus_slots *s, uint32_t slot)
{
    s->n += !lotus_slots_has(s, slot);
    s->words[slot / 64] |= (uint64_t)1 << slot % 64;
}

static inline void lotus_slots_drop(struct lotus_slots *s, uint32_t slot)
{
    s->n -= lotus_slots_has(s, slot);
    s->words[slot / 64] &= ~((uint64_t)1 << slot % 64);
}

struct lotus_moves {
    /* What the newest complete map says. Worker 0 writes it while `changes` is odd; the others read
     * until that is the same, and even, before and after: their acquire of `changes` pairs with the
     * writer's release. */
    _Atomic uint64_t changes;
    _Atomic uint64_t version; /* 0: there is none */
    _Atomic uint64_t servers; /* nodeset: who has slots */
    _Atomic uint32_t lost;    /* a slot that is lost; HASH_SLOTS: none is */
    _Atomic bool rest;        /* every slot is stable, or lost */
    /* Rows may be here of slots that are at home elsewhere. */
    _Atomic bool foreign_any;

    /* Worker 0's. */
    uint64_t pass_version;      /* of the map when the pass began */
    uint64_t done_version;      /* of the newest map under which nothing was left to do */
    bool moving, emptying;      /* what the pass is for */
    struct lotus_slots foreign; /* those slots */
    struct lotus_slots sent;    /* slots that move from here, of which all is at their next home */
    struct lotus_slots going;   /* of a pass: slots that move from here, and were not sent */
};

#endif
