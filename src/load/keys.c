#include "load/keys.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define ROUNDS 4u
#define EXPONENT_MAX 10.0

void keys_init(struct keys *keys, const struct keys_config *config)
{
    HK_ASSERT(config->n > 0 && config->exponent >= 0.0);
    memset(keys, 0, sizeof *keys);
    keys->config = *config;
    const struct keys_fold *f = &config->fold;
    HK_ASSERT(f->ranks == 0 ||
              (config->exponent > 0.0 && f->whole < f->hot_keys && f->hot_keys < config->n &&
               f->hot_keys <= f->hot && f->hot < f->ranks));
    if (config->exponent > 0.0) {
        zipf_init(&keys->zipf, f->ranks > 0 ? f->ranks : config->n, config->exponent);
    }
    keys->half_bits = 1;
    while (keys->half_bits < 32 && (config->n - 1) >> (2 * keys->half_bits) != 0) {
        keys->half_bits++;
    }
    keys->mask = ((uint64_t)1 << keys->half_bits) - 1;
    struct random random;
    random_init(&random, config->seed);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        keys->secrets[i] = random_next(&random);
    }
}

static uint64_t mix(uint64_t x)
{
    x ^= x >> 31;
    x *= 0x7fb5d329728ea185u;
    x ^= x >> 27;
    x *= 0x81dadef4bc2dd44du;
    return x ^ x >> 33;
}

/* A Feistel network is a bijection whatever its rounds do. */
static uint64_t permute(const struct keys *keys, uint64_t x)
{
    uint64_t left = x >> keys->half_bits, right = x & keys->mask;
    for (uint32_t i = 0; i < ROUNDS; i++) {
        uint64_t next = left ^ (mix(right + keys->secrets[i]) & keys->mask);
        left = right;
        right = next;
    }
    return left << keys->half_bits | right;
}

uint64_t keys_of_rank(const struct keys *keys, uint64_t rank)
{
    HK_ASSERT(rank < keys->config.n);
    if (!keys->config.scramble) {
        return rank;
    }
    /* What falls outside is sent on until it falls inside, which is a bijection of the inside. The
     * domain is at most four times as large. */
    uint64_t x = rank;
    do {
        x = permute(keys, x);
    } while (x >= keys->config.n);
    return x;
}

/* The rank of the key that stands for a rank of the large system. */
static uint64_t fold(const struct keys *keys, uint64_t rank)
{
    const struct keys_fold *f = &keys->config.fold;
    if (f->ranks == 0 || rank < f->whole) {
        return rank;
    }
    if (rank < f->hot) {
        return f->whole + (rank - f->whole) % (f->hot_keys - f->whole);
    }
    return f->hot_keys + (rank - f->hot) % (keys->config.n - f->hot_keys);
}

uint64_t keys_draw(const struct keys *keys, struct random *random)
{
    if (keys->config.exponent > 0.0) {
        return keys_of_rank(keys, fold(keys, zipf_draw(&keys->zipf, random) - 1));
    }
    return random_below(random, keys->config.n);
}

bool keys_parse(const char *text, double *exponent_out)
{
    if (strcmp(text, "uniform") == 0) {
        *exponent_out = 0.0;
        return true;
    }
    if (strncmp(text, "zipf:", 5) != 0 || text[5] < '0' || text[5] > '9') {
        return false;
    }
    char *end;
    double exponent = strtod(text + 5, &end);
    if (*end != '\0' || !(exponent > 0.0) || exponent > EXPONENT_MAX) {
        return false;
    }
    *exponent_out = exponent;
    return true;
}
