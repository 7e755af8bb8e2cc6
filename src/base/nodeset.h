/* Sets of configured nodes: bit i stands for the node whose id is i. */
#ifndef HORKOS_BASE_NODESET_H
#define HORKOS_BASE_NODESET_H

#include <stdbool.h>
#include <stdint.h>

#define NODES_MAX 64u
#define NODE_NONE UINT8_MAX

typedef uint64_t nodeset; /* an integer with a meaning, not a struct: compares with == */

static inline nodeset nodeset_of(uint8_t node)
{
    return (nodeset)1 << (node & 63u);
}

static inline bool nodeset_has(nodeset s, uint8_t node)
{
    return node < NODES_MAX && (s & nodeset_of(node)) != 0;
}

static inline uint32_t nodeset_count(nodeset s)
{
    /* Sets are small; the compiler's builtin would call its run-time library. */
    uint32_t n = 0;
    for (; s != 0; s &= s - 1) {
        n++;
    }
    return n;
}

/* Whether every member of inner is in outer. */
static inline bool nodeset_within(nodeset inner, nodeset outer)
{
    return (inner & ~outer) == 0;
}

/* The lowest id in s, NODE_NONE for the empty set. */
static inline uint8_t nodeset_first(nodeset s)
{
    return s == 0 ? NODE_NONE : (uint8_t)__builtin_ctzll(s);
}

/* Whether part holds more than half of the nodes of whole. */
static inline bool nodeset_majority(nodeset part, nodeset whole)
{
    return 2 * nodeset_count(part & whole) > nodeset_count(whole);
}

#endif
