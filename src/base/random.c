#include "base/random.h"

#include "base/assert.h"

static uint64_t splitmix64(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint64_t rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void random_init(struct random *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        r->s[i] = splitmix64(&seed);
    }
}

uint64_t random_next(struct random *r)
{
    uint64_t result = rotate_left(r->s[1] * 5, 7) * 9;
    uint64_t t = r->s[1] << 17;
    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = rotate_left(r->s[3], 45);
    return result;
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
