/* The set of states that a search has visited, each kept as a fingerprint of 128 bits. Two states
 * that share one would make the search skip the second, and so refuse what it should accept; with
 * the largest bound, 50 million states, the chance is about 4e-24 a key. */
#ifndef HORKOS_CHECK_SEEN_H
#define HORKOS_CHECK_SEEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fingerprint {
    uint64_t low;
    uint64_t high;
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
    f.high = z ^ (z >> 31);
    return f;
}

static inline struct fingerprint fingerprint_xor(struct fingerprint a, struct fingerprint b)
{
    return (struct fingerprint){a.low ^ b.low, a.high ^ b.high};
}

struct seen {
    struct fingerprint *slots; /* open addressing; all zero bits: empty */
    size_t slots_n;
    size_t n;
};

enum seen_result {
    SEEN_NEW,
    SEEN_BEFORE,
    SEEN_NOMEM,
};

/* An empty set holds no memory yet. */
void seen_init(struct seen *s);
void seen_deinit(struct seen *s);
enum seen_result seen_add(struct seen *s, struct fingerprint f);

#endif
