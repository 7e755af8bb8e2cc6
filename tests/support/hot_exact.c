#include "support/hot_exact.h"

#include <math.h>

#include "base/assert.h"

void exact_init(struct exact *e, uint32_t keys, uint32_t key_n_max, uint64_t hash_mask)
{
    HK_ASSERT(keys <= EXACT_KEYS && key_n_max >= 4 && key_n_max <= EXACT_KEY_MAX);
    memset(e, 0, sizeof *e);
    e->keys = keys;
    e->key_n_max = key_n_max;
    e->hash_mask = hash_mask;
}

static uint64_t mixed(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

struct bytes exact_key(struct exact *e, uint32_t i)
{
    uint32_t n = 4 + (uint32_t)(mixed(i) % (e->key_n_max - 3));
    memset(e->key, 'x', n);
    put_u32(e->key + n - 4, i);
    return bytes_of(e->key, n);
}

uint64_t exact_hash(const struct exact *e, uint32_t i)
{
    return mixed(i + 1) & e->hash_mask;
}

uint32_t exact_draw(const struct exact *e, struct random *random)
{
    double u = (double)(random_next(random) >> 11) * 0x1p-53;
    uint32_t i = (uint32_t)pow((double)e->keys, u) - 1;
    return i < e->keys ? i : e->keys - 1;
}

void exact_add(struct exact *e, struct hot_sketch *s, uint32_t i)
{
    e->f[i] += 1;
    e->total += 1;
    hot_sketch_add(s, exact_key(e, i), exact_hash(e, i));
}

void exact_decay(struct exact *e, struct hot_sketch *s)
{
    for (uint32_t i = 0; i < e->keys; i++) {
        e->f[i] /= 2;
    }
    e->total /= 2;
    hot_sketch_decay(s);
}
