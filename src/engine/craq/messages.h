/* The messages of CRAQ: which fields of struct msg each kind uses, and what makes one invalid. The
 * kinds and flags are bytes on the wire: they keep their numbers. */
#ifndef HORKOS_ENGINE_CRAQ_MESSAGES_H
#define HORKOS_ENGINE_CRAQ_MESSAGES_H

#include "engine/craq/craq.h"
#include "engine/engine.h"

/* Every message carries the epoch of its sender. "slot" is the pair slot and gen of an update's or
 * a read's flow; WRITE and ACK name its node in arg, or carry no slot and arg 0 (a repair). */
enum craq_kind {
    CRAQ_FORWARD = 1, /* to the head: key, value, slot, ts: of the value that it was computed on
                         (CRAQ_F_RMW, 0: there was none) */
    CRAQ_WRITE,       /* down the chain: key, value, ts, slot, arg */
    CRAQ_ACK,         /* up the chain: key, ts, slot, arg: "committed" */
    CRAQ_LOST,        /* head to origin: slot: "not ordered, and never will be" */
    CRAQ_QUERY,       /* to the read tail: key, slot */
    CRAQ_ANSWER,      /* to who asked: slot, ts, value; ts 0: no entry */
    CRAQ_REPAIR,      /* to the head: key, value, ts: "dirty here since an older epoch" */
    CRAQ_ITEM,        /* key, value, ts: a stored item, copied by a joining node */
    CRAQ_KIND_END,
};

enum craq_msg_flag {
    CRAQ_F_RMW = 1 << 0,   /* FORWARD: only on the value with ts */
    CRAQ_F_BUSY = 1 << 1,  /* ANSWER: the key is dirty here too */
    CRAQ_F_CLEAN = 1 << 2, /* ITEM: committed */
    CRAQ_F_HOP = 1 << 3,   /* ACK: for the receiver alone, it goes no further */
    CRAQ_F_AGAIN = 1 << 4, /* REPAIR: although it went through the chain in this epoch */
};

/* A timestamp is the epoch whose head ordered the update (24 bits), then a number that rises within
 * the epoch (40 bits). */
#define CRAQ_NUMBER_BITS 40u
#define CRAQ_NUMBER_MAX ((1ull << CRAQ_NUMBER_BITS) - 1u)
#define CRAQ_EPOCH_MAX ((1u << 24) - 1u)

static inline uint64_t craq_ts(uint32_t epoch, uint64_t number)
{
    return (uint64_t)epoch << CRAQ_NUMBER_BITS | number;
}

static inline uint32_t craq_ts_epoch(uint64_t ts)
{
    return (uint32_t)(ts >> CRAQ_NUMBER_BITS);
}

extern const char *const craq_kind_names[CRAQ_KIND_END];

/* engine_ops.route and engine_ops.msg_invalid. */
enum engine_route craq_route(const struct msg *msg);
const char *craq_msg_invalid(const struct msg *msg);

#endif
