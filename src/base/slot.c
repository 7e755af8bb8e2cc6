#include "base/slot.h"

#include <string.h>

/* What four bits at the upper end add: small, and quick enough for the bytes of a key. */
static const uint16_t nibbles[16] = {
    0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5, 0x60c6, 0x70e7,
    0x8108, 0x9129, 0xa14a, 0xb16b, 0xc18c, 0xd1ad, 0xe1ce, 0xf1ef,
};

static uint16_t step_nibble(uint16_t crc)
{
    return (uint16_t)(crc << 4) ^ nibbles[crc >> 12];
}

uint16_t slot_crc16(struct bytes b)
{
    uint16_t crc = 0;
    for (uint32_t i = 0; i < b.n; i++) {
        crc ^= (uint16_t)(b.at[i] << 8);
        crc = step_nibble(step_nibble(crc));
    }
    return crc;
}

uint16_t slot_of_key(struct bytes key)
{
    const uint8_t *open = key.n > 0 ? memchr(key.at, '{', key.n) : NULL;
    if (open != NULL) {
        uint32_t rest = key.n - (uint32_t)(open + 1 - key.at);
        const uint8_t *close = rest > 0 ? memchr(open + 1, '}', rest) : NULL;
        if (close != NULL && close > open + 1) {
            key = bytes_of(open + 1, (uint32_t)(close - open - 1));
        }
    }
    return slot_crc16(key) % HASH_SLOTS;
}
