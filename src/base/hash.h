/* Keyed 64-bit hashes of bytes (XXH3 with a secret of its own). Who does not know the secret cannot
 * choose keys that collide; whoever can watch timings for long enough may learn it, so it guards
 * against floods and proves nothing. */
#ifndef HORKOS_BASE_HASH_H
#define HORKOS_BASE_HASH_H

#include <stdint.h>

#include "base/bytes.h"

#define HASH_SECRET_BYTES 192u

struct hash_secret {
    uint8_t at[HASH_SECRET_BYTES];
};

/* The same seed gives the same secret, on every machine. */
void hash_secret_init(struct hash_secret *secret, uint64_t seed);

/* All 64 bits are equally good. Any length, also 0. */
uint64_t hash_bytes(const struct hash_secret *secret, struct bytes bytes);

#endif
