/* Hash slots: which part of a space's keys a key belongs to, and who is the home of such a part.
 * The slots are those of Redis Cluster, so clients and tools that compute them agree with us. */
#ifndef HORKOS_BASE_SLOT_H
#define HORKOS_BASE_SLOT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define HASH_SLOTS 16384u

/* CRC16 (XMODEM: polynomial 0x1021, start 0) of the bytes. */
uint16_t slot_crc16(struct bytes b);
/* The slot of a key, 0 .. HASH_SLOTS - 1: CRC16 of the key, or of what stands between its first '{'
 * and the next '}' if that is not empty, modulo HASH_SLOTS. */
uint16_t slot_of_key(struct bytes key);

enum home_state {
    HOME_NONE = 0, /* there is no map yet, or nobody who could be a home */
    HOME_STABLE,   /* the home alone decides */
    HOME_MOVING,   /* keys go one by one from home to `to`, and home is the gate; or, where slots
                      move as wholes, all of it goes there, and is at home until it is there */
    HOME_LOST,     /* the home is gone */
    HOME_EMPTYING, /* given up: everybody removes what he has of it */
    HOME_GIVEN,    /* the home has got all of it, and serves it when everybody knows */
};

struct slot_home {
    uint8_t home; /* NODE_NONE: nobody */
    uint8_t to;   /* HOME_MOVING: the next home; else NODE_NONE */
    uint8_t state;
};

static inline uint32_t slot_home_pack(struct slot_home h)
{
    return (uint32_t)h.home | (uint32_t)h.to << 8 | (uint32_t)h.state << 16;
}

static inline struct slot_home slot_home_unpack(uint32_t packed)
{
    return (struct slot_home){
        .home = (uint8_t)packed, .to = (uint8_t)(packed >> 8), .state = (uint8_t)(packed >> 16)};
}

/* Whether that node acts as the home: it is, and the slot is not lost. */
static inline bool slot_home_is(struct slot_home h, uint8_t node)
{
    return h.home == node && (h.state == HOME_STABLE || h.state == HOME_MOVING);
}

#endif
