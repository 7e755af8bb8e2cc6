/* Deterministic pseudo-random numbers (xoshiro256**, seeded through splitmix64; Blackman and
 * Vigna). The state belongs to the caller: randomness is a parameter everywhere. Not for keys. */
#ifndef HORKOS_BASE_RANDOM_H
#define HORKOS_BASE_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct random {
    uint64_t s[4];
};

void random_init(struct random *r, uint64_t seed);

static inline uint64_t random_rotate_left(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

/* Inline, for every step of a machine draws one. */
static inline uint64_t random_next(struct random *r)
{
    uint64_t result = random_rotate_left(r->s[1] * 5, 7) * 9;
    uint64_t t = r->s[1] << 17;
    r->s[2] ^= r->s[0];
    r->s[3] ^= r->s[1];
    r->s[1] ^= r->s[2];
    r->s[0] ^= r->s[3];
    r->s[2] ^= t;
    r->s[3] = random_rotate_left(r->s[3], 45);
    return result;
}

/* Uniform in [0, n); n > 0. Without modulo bias. */
uint64_t random_below(struct random *r, uint64_t n);
/* Uniform in [low, high], both included; low <= high. */
uint64_t random_between(struct random *r, uint64_t low, uint64_t high);
/* True with probability ppm / 1,000,000. */
bool random_chance(struct random *r, uint32_t ppm);

#endif
