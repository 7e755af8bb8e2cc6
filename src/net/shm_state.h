/* What the two halves of an end share: records in the ring. For shm*.c and their tests only.
 *
 * A record is a word (length of its body in the lower half, kind in the upper), the body, and
 * nothing up to the next multiple of 8. It never goes across the ring's end: what is left there is
 * a record of the kind PAD. Always: released <= head <= the other's tail <= released + ring_bytes;
 * head_seen <= the other's head <= published <= tail <= head_seen + ring_bytes. */
#ifndef HORKOS_NET_SHM_STATE_H
#define HORKOS_NET_SHM_STATE_H

#include "net/shm.h"

#define SHM_RECORD_HEADER 8u
#define SHM_TAIL_END 1u /* in a tail: nothing follows */

enum shm_kind {
    SHM_PAD = 1,
    SHM_FRAME_WHOLE, /* a whole frame */
    SHM_FIRST,       /* the first shm_small_max bytes of a larger frame */
    SHM_NEXT,        /* the next as many, or what is left */
};

static inline uint64_t shm_word(enum shm_kind kind, uint32_t bytes)
{
    return (uint64_t)kind << 32 | bytes;
}

static inline uint64_t shm_record_bytes(uint32_t body_bytes)
{
    return SHM_RECORD_HEADER + (((uint64_t)body_bytes + 7u) & ~(uint64_t)7u);
}

/* Whether the side sleeps and waits for what has just been made visible by a sequentially
 * consistent store; its flags are taken, so of several such stores one answers true. */
static inline bool shm_take_sleeper(struct shm_side *side, uint32_t bit)
{
    /* Pairs with shm_sleep. */
    return (atomic_load(&side->sleep) & bit) != 0 && (atomic_exchange(&side->sleep, 0) & bit) != 0;
}

/* Notes how far the other side has read what was sent. False: at fault. */
bool shm_see_head(struct shm *shm);
void shm_out_clear(struct shm *shm);
void shm_in_clear(struct shm *shm);
bool shm_out_waits(const struct shm *shm);

#endif
