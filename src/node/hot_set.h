/* The hot set as its leader knows it: keys, the generation of each one's stay, and what is being
 * done about it. Worker 0's. */
#ifndef HORKOS_NODE_HOT_SET_H
#define HORKOS_NODE_HOT_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"

struct hot_key {
    struct list_link link; /* in a list of what is to be done, or in none */
    uint64_t hash;         /* in the space's store */
    uint64_t gen;          /* of its stay; while it enters: of the coming one */
    uint64_t due_us;       /* when its home is asked again */
    uint32_t tries;
    uint32_t n;
    uint8_t code; /* enum hot_code: what is being done */
    uint8_t bytes[];
};

struct hot_set {
    struct hot_key **at; /* by hash, linear probing */
    uint32_t mask;
    uint32_t n;
};

static inline struct bytes hot_key_bytes(const struct hot_key *k)
{
    return bytes_of(k->bytes, k->n);
}

/* Empty; nothing is allocated before the first key comes. */
void hot_set_init(struct hot_set *s);
/* Frees all keys, whatever lists they are in. */
void hot_set_clear(struct hot_set *s);
struct hot_key *hot_set_find(const struct hot_set *s, struct bytes key, uint64_t hash);
/* A key that is not there, in no list. NULL: no memory. */
struct hot_key *hot_set_add(struct hot_set *s, struct bytes key, uint64_t hash);
/* Takes it out of its list and frees it. */
void hot_set_remove(struct hot_set *s, struct hot_key *k);

/* Visits all keys; the body may not add or remove any. */
#define hot_set_each(k, s)                                                                         \
    for (uint32_t k##_at = 0; (s)->at != NULL && k##_at <= (s)->mask; k##_at++)                    \
        for (struct hot_key *k = (s)->at[k##_at]; k != NULL; k = NULL)

#endif
