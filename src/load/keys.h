/* Which key an operation is on: a distribution of ranks, and where the ranks lie among the keys. */
#ifndef HORKOS_LOAD_KEYS_H
#define HORKOS_LOAD_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "load/zipf.h"

struct keys_config {
    uint64_t n;      /* keys 0 .. n - 1 */
    double exponent; /* of Zipf's law; 0: uniform */
    bool scramble;   /* popular keys are scattered; otherwise key 0 is the most popular one */
    uint64_t seed;   /* of the scattering: the same for all who shall agree on which key is hot */
};

struct keys {
    struct keys_config config;
    struct zipf zipf;
    uint64_t mask;      /* of half_bits bits */
    uint32_t half_bits; /* the scattering is a Feistel network over numbers of twice as many */
    uint64_t secrets[4];
};

/* n > 0; exponent >= 0. */
void keys_init(struct keys *keys, const struct keys_config *config);
/* 0 .. n - 1. */
uint64_t keys_draw(const struct keys *keys, struct random *random);
/* The key of a rank (0 is the most popular): a bijection of 0 .. n - 1. */
uint64_t keys_of_rank(const struct keys *keys, uint64_t rank);

/* "uniform" or "zipf:A" with A > 0. False: text is neither. */
bool keys_parse(const char *text, double *exponent_out);

#endif
