/* The states that a search has visited: the set of returned steps in the order and the value, kept
 * as a fingerprint of 96 bits, and which steps of unknown outcome were used to get there. Those
 * need never be used, so whatever can follow a state can follow one with the same fingerprint and
 * fewer of them; a state is new only if no such state was visited.
 *
 * Two states that share a fingerprint by chance would make the search skip the second, and so
 * refuse what it should accept. With the largest bound, 50 million states, the chance is about
 * 2e-14 a key. */
#ifndef HORKOS_CHECK_SEEN_H
#define HORKOS_CHECK_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fingerprint {
    uint64_t low;
    uint32_t high;
};

/* A number's own random-looking fingerprint. That of a set is the XOR of its members', so adding
 * and removing a member costs the same, whatever the size of the set (Zobrist's hashing). */
static inline struct fingerprint fingerprint_of(uint64_t number)
{
    struct fingerprint f;
    uint64_t z = (2 * number + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    f.low = z ^ (z >> 31);
    z = (2 * number + 2) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    f.high = (uint32_t)(z ^ (z >> 31));
    return f;
}

static inline struct fingerprint fingerprint_xor(struct fingerprint a, struct fingerprint b)
{
    return (struct fingerprint){a.low ^ b.low, a.high ^ b.high};
}

/* There can be many, so the fingerprint stands here without padding. */
struct seen_slot {
    uint64_t low;
    uint32_t high;
    uint32_t head; /* of its records: a number from 1; 0: the slot is empty */
};
_Static_assert(sizeof(struct seen_slot) == 16, "four to a cache line");

struct seen {
    size_t words;            /* of the bits that say which unknown steps were used */
    struct seen_slot *slots; /* open addressing */
    size_t slots_n;
    size_t slots_used;
    uint64_t *records; /* each: the number of the next record or 0, then the bits */
    size_t records_n;
    size_t records_max;
};

enum seen_result {
    SEEN_NEW,
    SEEN_BEFORE,
    SEEN_NOMEM,
};

/* An empty set holds no memory yet. */
void seen_init(struct seen *s, size_t words);
void seen_deinit(struct seen *s);
/* used has s->words words; bit i is for unknown step i. */
enum seen_result seen_add(struct seen *s, struct fingerprint f, const uint64_t *used);

#endif
