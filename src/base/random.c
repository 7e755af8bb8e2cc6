#include "base/random.h"

#include "base/assert.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

void random_init(struct random *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        r->s[i] = splitmix64(&seed);
    }
}

uint64_t random_below(struct random *r, uint64_t n)
{
    HK_ASSERT(n > 0);
    /* Numbers below 2^64 mod n are drawn again, so that every residue is equally likely. */
    uint64_t skip = (0 - n) % n;
    uint64_t x;
    do {
        x = random_next(r);
    } while (x < skip);
    return x % n;
}

uint64_t random_between(struct random *r, uint64_t low, uint64_t high)
{
    HK_ASSERT(low <= high);
    if (low == 0 && high == UINT64_MAX) {
        return random_next(r);
    }
    return low + random_below(r, high - low + 1);
}

bool random_chance(struct random *r, uint32_t ppm)
{
    return random_below(r, 1000000) < ppm;
}
