/* What several sketches know, taken together: lists of keys with their counts, of workers or of
 * nodes, become one list with rates. A list may have been cut off: its floor says what may be
 * missing.
 *
 * Lists come from other nodes: their contents may be anything. A key that comes twice in one list
 * counts once, and what finds no room is left out (`refused`).
 *
 * A tally lives in memory that its creator gives, and belongs to one thread at a time. */
#ifndef HORKOS_HOT_TALLY_H
#define HORKOS_HOT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "hot/sketch.h"

#define HOT_ENTRIES_MAX (1u << 24)

struct hot_entry;

/* Caller's memory; its members are the tally's. */
struct hot_tally {
    uint64_t refused; /* keys for which there was no room */
    uint32_t entries;
    uint32_t used;
    uint32_t key_bytes;
    uint32_t end;  /* of the keys' bytes */
    uint32_t mask; /* of the index */
    uint32_t list; /* lists so far */
    double weight; /* of the current one ... */
    double floor;  /* ... and its floor, weighted */
    double floors; /* of all lists */
    struct hot_entry *entry;
    uint32_t *order;
    uint32_t *index;
    uint8_t *keys;
};

/* One key of all lists. */
struct hot_rate {
    struct bytes key; /* the tally's: good until it is cleared */
    uint64_t hash;
    double most;  /* no list says more than this in sum, what may be missing included ... */
    double least; /* ... and they say at least this */
    bool marked;
};

size_t hot_tally_bytes(uint32_t entries, uint32_t key_bytes);
/* Empty. memory: as many bytes, at a multiple of 8; the caller's, and stays where it is. entries: 1
 * to HOT_ENTRIES_MAX; key_bytes: up to HOT_KEY_BYTES_MAX. */
void hot_tally_init(struct hot_tally *t, void *memory, uint32_t entries, uint32_t key_bytes);
void hot_tally_clear(struct hot_tally *t);

/* The key is there from now on, if there is room, and marked. */
void hot_tally_mark(struct hot_tally *t, struct bytes key, uint64_t hash);

/* Begins a list. weight: what a count of 1 means, above 0 and finite; floor: what a key that is not
 * in it may have been counted at most. */
void hot_tally_list(struct hot_tally *t, double weight, uint32_t floor);
/* One key of that list; error <= count, or it is taken for count. hash: of the key's bytes, the
 * same function for all lists. */
void hot_tally_add(struct hot_tally *t, struct bytes key, uint64_t hash, uint32_t count,
                   uint32_t error);
/* The same with bounds that are known already; least is finite and not negative. */
void hot_tally_add_rate(struct hot_tally *t, struct bytes key, uint64_t hash, double least,
                        double most);
/* A list that is a whole sketch, or its first `most` keys. rehash: for sketches whose hashes are
 * not those of the tally; NULL: they are. */
void hot_tally_sketch(struct hot_tally *t, const struct hot_sketch *s, double weight, uint32_t most,
                      uint64_t (*rehash)(const void *context, struct bytes key),
                      const void *context);

bool hot_tally_find(const struct hot_tally *t, struct bytes key, uint64_t hash,
                    struct hot_rate *rate_out);
/* The entry number i, below `used`, in the order in which they came. */
struct hot_rate hot_tally_at(const struct hot_tally *t, uint32_t i);

/* Entries are ranked by what is certain of them: a key that has just come into a sketch carries the
 * error of the one that went, which says nothing of it. */
struct hot_ranking {
    double least; /* entries that are not marked and have less than this are left out */
    double bonus; /* what is certain of a marked one counts so many times, ... */
    double slack; /* ... and this much more */
};
/* Puts the k best entries in order; equal ones as they came. Returns how many there are, at most k;
 * hot_tally_ranked gives them, best first, until the next ranking. */
uint32_t hot_tally_rank(struct hot_tally *t, uint32_t k, const struct hot_ranking *ranking);
/* Whether entry i is one of them. */
bool hot_tally_chosen(const struct hot_tally *t, uint32_t i);
struct hot_rate hot_tally_ranked(const struct hot_tally *t, uint32_t i);

#endif
