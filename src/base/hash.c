#include "base/hash.h"

#include "base/random.h"

_Static_assert(HASH_SECRET_BYTES >= XXH3_SECRET_SIZE_MIN, "what XXH3 asks for");
_Static_assert(HASH_SECRET_BYTES % 8 == 0, "made of whole random words");

void hash_secret_init(struct hash_secret *secret, uint64_t seed)
{
    struct random r;
    random_init(&r, seed);
    for (uint32_t i = 0; i < HASH_SECRET_BYTES; i += 8) {
        put_u64(secret->at + i, random_next(&r));
    }
}

uint64_t hash_long(const struct hash_secret *secret, struct bytes bytes)
{
    return XXH3_64bits_withSecret(bytes.at, bytes.n, secret->at, HASH_SECRET_BYTES);
}
