/* Which key an operation is on: a distribution of ranks, and where the ranks lie among the keys. */
#ifndef HORKOS_LOAD_KEYS_H
#define HORKOS_LOAD_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "load/zipf.h"

/* Fewer keys than ranks, for a model of a system whose keys do not fit here: the `whole` most
 * popular ranks have a key of their own, the others up to `hot` share the rest of the first
 * hot_keys keys, and all beyond share the remaining keys. So the popularity of the most popular
 * keys is the large system's, and so is the hit rate of a cache of hot_keys keys beside one of
 * `hot` keys there. */
struct keys_fold {
    uint64_t ranks;                /* 0: as many as there are keys, and nothing is folded */
    uint64_t whole, hot, hot_keys; /* whole < hot_keys < n; hot_keys <= hot < ranks */
};

struct keys_config {
    uint64_t n;      /* keys 0 .. n - 1 */
    double exponent; /* of Zipf's law; 0: uniform */
    bool scramble;   /* popular keys are scattered; otherwise key 0 is the most popular one */
    uint64_t seed;   /* of the scattering: the same for all who shall agree on which key is hot */
    struct keys_fold fold; /* exponent > 0 only */
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
/* The key of a rank (0 is the most popular): a bijection of 0 .. n - 1. With a fold, ranks are
 * those of the keys that it leaves. */
uint64_t keys_of_rank(const struct keys *keys, uint64_t rank);

/* "uniform" or "zipf:A" with A > 0. False: text is neither. */
bool keys_parse(const char *text, double *exponent_out);

#endif
