/* Which keys of a stream are the most frequent ones, in memory that does not depend on how many
 * keys there are: Space-Saving (A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of
 * frequent and top-k elements in data streams", 2005) over their stream summary, so that counting
 * a key takes constant time. docs/HOTSET.md tells what is made of it.
 *
 * What holds at any moment, f being how often a key was counted (halved by each decay since):
 *   - a key that is kept:      count - error <= f <= count;
 *   - a key that is not:       f <= hot_sketch_floor (unless it is too long to be kept);
 *   - floor <= total / n, if n keys were kept, or more, whenever one had to go: as many as there
 *     are counters, unless the keys' bytes are short. Decays round up, and may add 1.
 *
 * A sketch lives in memory that its creator gives, allocates nothing, and belongs to one thread at
 * a time. Keys and hashes come from clients: whatever they are, time and memory stay bounded. Who
 * can choose keys whose hashes collide makes searches long, so hashes are keyed (base/hash.h). */
#ifndef HORKOS_HOT_SKETCH_H
#define HORKOS_HOT_SKETCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

#define HOT_COUNTERS_MAX (1u << 24)
#define HOT_KEY_BYTES_MIN 256u
#define HOT_KEY_BYTES_MAX (1u << 30)
/* The longest key takes a share of all keys' bytes: a few long ones cannot clear a sketch. */
#define HOT_KEY_SHARE 8u

struct hot_counter;
struct hot_bucket;

/* Caller's memory; its members are the sketch's. */
struct hot_sketch {
    uint64_t total;   /* keys counted; halved by decays */
    uint64_t refused; /* keys that were too long to be kept */
    uint64_t evicted; /* keys that had to go for others */
    uint32_t counters;
    uint32_t used;
    uint32_t floor;
    uint32_t key_bytes; /* that the keys which are kept may have, their heads included */
    uint32_t live;      /* that they have */
    uint32_t end;       /* of the log of keys, twice key_bytes long */
    uint32_t mask;      /* of the index */
    uint32_t lowest;    /* bucket */
    uint32_t highest;
    uint32_t free_counter;
    uint32_t free_bucket;
    struct hot_counter *counter;
    struct hot_bucket *bucket;
    uint32_t *index;
    uint8_t *log;
};

/* What is known of one key. */
struct hot_count {
    struct bytes key; /* the sketch's: good until it changes */
    uint64_t hash;
    uint32_t count; /* at most so often, ... */
    uint32_t error; /* ... and less than that by no more than this */
};

/* The memory that a sketch of 1 to HOT_COUNTERS_MAX counters needs, and HOT_KEY_BYTES_MIN to _MAX
 * bytes of keys (each takes 8 more, and is rounded up to 8). */
size_t hot_sketch_bytes(uint32_t counters, uint32_t key_bytes);
/* Empty. memory: as many bytes, at a multiple of 8; the caller's, and stays where it is. */
void hot_sketch_init(struct hot_sketch *s, void *memory, uint32_t counters, uint32_t key_bytes);
void hot_sketch_reset(struct hot_sketch *s);

/* Counts a key once. hash: of its bytes, the same function for all keys of a sketch. A key that is
 * longer than key_bytes / HOT_KEY_SHARE is not kept: `refused` counts it. */
void hot_sketch_add(struct hot_sketch *s, struct bytes key, uint64_t hash);
/* Halves all counts: what was long ago matters less. Takes as many steps as there are keys. */
void hot_sketch_decay(struct hot_sketch *s);

/* How often a key that is not kept may have been counted at most. */
uint32_t hot_sketch_floor(const struct hot_sketch *s);
/* The same for a key that is not among the first `most` of hot_sketch_next's walk. */
uint32_t hot_sketch_cut(const struct hot_sketch *s, uint32_t most);
/* What is known of a key; false: it is not kept. */
bool hot_sketch_find(const struct hot_sketch *s, struct bytes key, uint64_t hash,
                     struct hot_count *count_out);

/* The keys from the most frequent one down: *at is HOT_FIRST first, and belongs to the walk. False
 * at the end. The sketch does not change meanwhile. */
#define HOT_FIRST UINT32_MAX
bool hot_sketch_next(const struct hot_sketch *s, uint32_t *at, struct hot_count *count_out);

/* Asserts that all parts of a sketch agree. For tests: looks at everything. */
void hot_sketch_check(const struct hot_sketch *s);

#endif
