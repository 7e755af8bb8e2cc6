#include "node/hot_set.h"

#include <stdlib.h>

#include "base/assert.h"

#define CELLS_MIN 64u

void hot_set_init(struct hot_set *s)
{
    *s = (struct hot_set){.at = NULL};
}

void hot_set_clear(struct hot_set *s)
{
    for (uint32_t i = 0; s->at != NULL && i <= s->mask; i++) {
        free(s->at[i]);
    }
    free(s->at);
    hot_set_init(s);
}

/* Where the key stands, or would be put. */
static uint32_t cell_of(const struct hot_set *s, struct bytes key, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & s->mask;
    while (s->at[i] != NULL &&
           (s->at[i]->hash != hash || !bytes_equal(hot_key_bytes(s->at[i]), key))) {
        i = (i + 1) & s->mask;
    }
    return i;
}

struct hot_key *hot_set_find(const struct hot_set *s, struct bytes key, uint64_t hash)
{
    return s->at == NULL ? NULL : s->at[cell_of(s, key, hash)];
}

/* At most half of the cells are taken. */
static bool grow(struct hot_set *s)
{
    uint32_t cells = s->at == NULL ? CELLS_MIN : 2 * (s->mask + 1);
    struct hot_set bigger = {.at = calloc(cells, sizeof(struct hot_key *)), .mask = cells - 1};
    if (bigger.at == NULL) {
        return false;
    }
    for (uint32_t i = 0; s->at != NULL && i <= s->mask; i++) {
        struct hot_key *k = s->at[i];
        if (k != NULL) {
            bigger.at[cell_of(&bigger, hot_key_bytes(k), k->hash)] = k;
        }
    }
    free(s->at);
    s->at = bigger.at;
    s->mask = bigger.mask;
    return true;
}

struct hot_key *hot_set_add(struct hot_set *s, struct bytes key, uint64_t hash)
{
    if ((s->at == NULL || 2 * (s->n + 1) > s->mask) && !grow(s)) {
        return NULL;
    }
    struct hot_key *k = malloc(sizeof *k + key.n);
    if (k == NULL) {
        return NULL;
    }
    *k = (struct hot_key){.hash = hash, .n = key.n};
    list_init(&k->link);
    if (key.n > 0) {
        memcpy(k->bytes, key.at, key.n);
    }
    uint32_t i = cell_of(s, key, hash);
    HK_ASSERT(s->at[i] == NULL);
    s->at[i] = k;
    s->n++;
    return k;
}

void hot_set_remove(struct hot_set *s, struct hot_key *k)
{
    uint32_t gap = cell_of(s, hot_key_bytes(k), k->hash);
    HK_ASSERT(s->at[gap] == k);
    for (uint32_t i = (gap + 1) & s->mask; s->at[i] != NULL; i = (i + 1) & s->mask) {
        uint32_t wanted = (uint32_t)s->at[i]->hash & s->mask;
        if (((i - wanted) & s->mask) >= ((i - gap) & s->mask)) {
            s->at[gap] = s->at[i];
            gap = i;
        }
    }
    s->at[gap] = NULL;
    s->n--;
    list_remove(&k->link);
    free(k);
}
