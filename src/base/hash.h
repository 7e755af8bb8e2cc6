/* Keyed 64-bit hashes of bytes (XXH3 with a secret of its own). Who does not know the secret cannot
 * choose keys that collide; whoever can watch timings for long enough may learn it, so it guards
 * against floods and proves nothing. */
#ifndef HORKOS_BASE_HASH_H
#define HORKOS_BASE_HASH_H

#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/bytes.h"

#define HASH_SECRET_BYTES 192u

struct hash_secret {
    uint8_t at[HASH_SECRET_BYTES];
};

/* The same seed gives the same secret, on every machine. */
void hash_secret_init(struct hash_secret *secret, uint64_t seed);

/* The part of hash_bytes for more than HASH_SHORT_MAX bytes. */
#define HASH_SHORT_MAX 16u
uint64_t hash_long(const struct hash_secret *secret, struct bytes bytes);

/* All 64 bits are equally good. Any length, also 0. Inline for short keys only: a call of the whole
 * function takes longer than the hash of 8 bytes. */
static inline uint64_t hash_bytes(const struct hash_secret *secret, struct bytes bytes)
{
    if (bytes.n > HASH_SHORT_MAX) {
        return hash_long(secret, bytes);
    }
    return XXH3_64bits_withSecret(bytes.at, bytes.n, secret->at, HASH_SECRET_BYTES);
}

#endif
