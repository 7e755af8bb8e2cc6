/* Exact counts of small sets of numbered keys, and the keys: what sketches are held against. */
#ifndef HORKOS_TESTS_SUPPORT_HOT_EXACT_H
#define HORKOS_TESTS_SUPPORT_HOT_EXACT_H

#include <stdint.h>

#include "base/bytes.h"
#include "base/random.h"
#include "hot/sketch.h"

#define EXACT_KEYS 4096u
#define EXACT_KEY_MAX 300u

struct exact {
    uint32_t keys;
    uint32_t key_n_max; /* lengths vary from 4 to this */
    uint64_t hash_mask; /* ~0: good hashes; fewer bits: they collide */
    double f[EXACT_KEYS];
    double total;
    uint8_t key[EXACT_KEY_MAX];
};

void exact_init(struct exact *e, uint32_t keys, uint32_t key_n_max, uint64_t hash_mask);
/* Key number i; good until the next call. */
struct bytes exact_key(struct exact *e, uint32_t i);
uint64_t exact_hash(const struct exact *e, uint32_t i);
/* A number whose frequency falls with it: about 1 / i. */
uint32_t exact_draw(const struct exact *e, struct random *random);
/* Counts key i here and in the sketch. */
void exact_add(struct exact *e, struct hot_sketch *s, uint32_t i);
void exact_decay(struct exact *e, struct hot_sketch *s);

#endif
