/* Copies of nodes: what the files of tree*.c share. Nobody else includes it. */
#ifndef HORKOS_ONESIDED_TREE_NODE_H
#define HORKOS_ONESIDED_TREE_NODE_H

#include "onesided/tree.h"

static inline uint32_t one_level(const uint64_t *node)
{
    return (uint32_t)(node[ONE_SHAPE] >> 32);
}
static inline uint32_t one_count(const uint64_t *node)
{
    return (uint32_t)node[ONE_SHAPE];
}
static inline uint64_t one_shape(uint32_t level, uint32_t count)
{
    return (uint64_t)level << 32 | count;
}
static inline bool one_covers(const uint64_t *node, uint64_t key)
{
    return key >= node[ONE_LOW] && key < node[ONE_HIGH];
}

bool one_leaf_find(const uint64_t *node, uint64_t key, uint64_t *value_out);
/* The child of an inner node that covers the key; the node covers it. */
remote one_child(const uint64_t *node, uint64_t key);
/* Puts an entry where the order wants it; there is room. */
void one_inner_put(uint64_t *node, uint64_t key, uint64_t value);
/* The same of a node of any level, its shape included. */
void one_node_put(uint64_t *node, uint64_t key, uint64_t value);
/* A full node gives its upper half to right, which is at `at`; returns the lowest key of right. */
uint64_t one_split(uint64_t *node, uint64_t *right, remote at);

/* ---- cache.c ---- */
/* A copy; NULL: there is none. */
const uint64_t *one_cache_find(struct one_cache *cache, remote at);
void one_cache_put(struct one_cache *cache, remote at, const uint64_t *node);
/* Where the root was; 0: not known. */
remote one_cache_root(const struct one_cache *cache);
void one_cache_set_root(struct one_cache *cache, remote root);
/* A copy was wrong. */
void one_cache_stale(struct one_cache *cache);

#endif
