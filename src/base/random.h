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
uint64_t random_next(struct random *r);
/* Uniform in [0, n); n > 0. Without modulo bias. */
uint64_t random_below(struct random *r, uint64_t n);
/* Uniform in [low, high], both included; low <= high. */
uint64_t random_between(struct random *r, uint64_t low, uint64_t high);
/* True with probability ppm / 1,000,000. */
bool random_chance(struct random *r, uint32_t ppm);

#endif
