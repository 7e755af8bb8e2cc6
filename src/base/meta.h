/* What every module knows of a key besides its bytes: its timestamp and the state that a protocol
 * keeps for it. Lives in base because store, wire and engines share it and may not include each
 * other. */
#ifndef HORKOS_BASE_META_H
#define HORKOS_BASE_META_H

#include <stdbool.h>
#include <stdint.h>

/* Logical timestamp <version, c_id> ([H] 4.2.2): version in the upper 44 bits, c_id in the lower
 * 20, so that the lexicographic order is the order of integers. 0 is "no update ever". */
#define STAMP_CID_BITS 20u
#define STAMP_CID_MAX ((1u << STAMP_CID_BITS) - 1u)

static inline uint64_t stamp_make(uint64_t version, uint32_t cid)
{
    return version << STAMP_CID_BITS | (cid & STAMP_CID_MAX);
}

static inline uint64_t stamp_version(uint64_t ts)
{
    return ts >> STAMP_CID_BITS;
}

static inline uint32_t stamp_cid(uint64_t ts)
{
    return (uint32_t)(ts & STAMP_CID_MAX);
}

/* Reference to a slot (a flow: a pending update, a replay, ...): worker in the upper 8 bits, index
 * in the lower 24. Index 0 of every worker is never used, so 0 means "none". */
#define SLOT_INDEX_BITS 24u
#define SLOT_INDEX_MAX ((1u << SLOT_INDEX_BITS) - 1u)

static inline uint32_t slot_ref(uint8_t worker, uint32_t index)
{
    return (uint32_t)worker << SLOT_INDEX_BITS | index;
}

static inline uint8_t slot_ref_worker(uint32_t ref)
{
    return (uint8_t)(ref >> SLOT_INDEX_BITS);
}

static inline uint32_t slot_ref_index(uint32_t ref)
{
    return ref & SLOT_INDEX_MAX;
}

/* Bits of key_meta.flags. The lower half means the same to all; the upper half is the engine's. */
enum key_flag {
    KEY_READABLE = 1 << 0,  /* a read may answer the stored value: the read path's only question */
    KEY_TOMBSTONE = 1 << 1, /* the value says "deleted"; it has no bytes */
    KEY_DEADLINE = 1 << 2,  /* the value's first 8 bytes are its expiry, ms since 1970 */
    KEY_WAITERS = 1 << 3,   /* some worker holds operations that wait for this key */
    KEY_ENGINE_0 = 1 << 4,
    KEY_ENGINE_1 = 1 << 5,
    KEY_ENGINE_2 = 1 << 6,
    KEY_ENGINE_3 = 1 << 7,
};
/* The flags that describe the value and travel with it. */
#define KEY_VALUE_FLAGS (KEY_TOMBSTONE | KEY_DEADLINE)

struct key_meta {
    uint64_t ts;    /* of the stored value */
    uint32_t owner; /* slot of this node's own pending update; 0: none */
    uint8_t state;  /* the engine's */
    uint8_t flags;  /* enum key_flag */
    uint16_t aux;   /* the engine's */
};
_Static_assert(sizeof(struct key_meta) == 16, "fits the object header");

#endif
