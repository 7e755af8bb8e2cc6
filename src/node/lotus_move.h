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

/* Rows for another node, packed: at most one message of them is on its way at a time. */
struct lotus_parcel {
    uint8_t *rows;
    uint32_t n; /* bytes */
    uint32_t rows_n;
    uint32_t capacity;
    bool sent;
    uint64_t number;  /* of the message that is on its way */
    uint64_t nonce;   /* of the process that it goes to */
    uint64_t wait_us; /* not all were taken: the rest not before */
    uint64_t told;    /* pass that has told it which versions are forgotten here (N8) */
};

struct lotus_moves {
    /* What the newest complete map says. Worker 0 writes it while `changes` is odd; the others read
     * until that is the same, and even, before and after: their acquire of `changes` pairs with the
     * writer's release. */
    _Atomic uint64_t changes;
    _Atomic uint64_t version; /* 0: there is none */
    _Atomic uint64_t servers; /* nodeset: who has slots */
    _Atomic uint32_t lost;    /* a slot that is lost; HASH_SLOTS: none is */
    _Atomic bool rest;        /* every slot is stable, or lost */
    _Atomic bool foreign_any; /* foreign.n > 0 */
    _Atomic uint64_t wounds;  /* lotus_move_wounds */

    /* Worker 0's. */
    struct lotus_slots foreign; /* slots that are at home elsewhere, of which rows may be here */
    struct lotus_slots sent;    /* slots that move from here, of which all is at their next home */
    struct lotus_slots going;   /* of a pass: slots that move from here, and were not sent */
    struct lotus_slots purge;   /* of a pass: the foreign ones as it began */
    nodeset targets;            /* of a pass: where slots go */
    uint64_t pass_version;      /* of the map when the pass began */
    uint64_t done_version;      /* of the newest map under which nothing was left to do */
    uint64_t said_version;      /* of the map under which all that moves was sent, as was said */
    uint64_t due_us;
    uint64_t since_us; /* the pass began */
    uint64_t numbers;  /* of ROWS so far */
    bool passing;
    bool moving, emptying; /* what the pass is for */
    bool again;            /* something could not be removed: another pass */
    bool walked;           /* to the end of the index */
    bool begun;            /* the walk has come to `at` */
    uint8_t *at;           /* the last key that was looked at */
    uint32_t at_n;
    uint32_t at_capacity;
    struct lotus_parcel *parcels[NODES_MAX]; /* made when first needed */
};

#endif
