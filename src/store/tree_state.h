/* The structs behind tree.h, and the descent, for the files of the ordered index only. */
#ifndef HORKOS_STORE_TREE_STATE_H
#define HORKOS_STORE_TREE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/latch.h"
#include "store/state.h"
#include "store/tree.h"
#include "store/tree_node.h"

/* Threads spread over these, so that they seldom write the same line. */
#define TREE_COUNTS 16u

struct tree_counts {
    _Alignas(64) _Atomic int64_t keys;
    _Atomic int64_t leaves;
    _Atomic int64_t inners;
};

struct tree {
    struct store *store;
    struct latch latch;    /* of root */
    _Atomic uint64_t root; /* the address of a node; its fences are none */
    struct tree_counts counts[TREE_COUNTS];
};

static inline struct tree_counts *tree_counts_of(struct tree *tree,
                                                 const struct store_thread *thread)
{
    return &tree->counts[thread->slot % TREE_COUNTS];
}

static inline void tree_count(_Atomic int64_t *counter, int64_t n)
{
    /* relaxed: a statistic, which several threads may share. */
    atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Which child a descent takes for a key. */
enum tree_towards {
    TREE_AT_MOST, /* the one that covers the key */
    TREE_BELOW,   /* the one that covers what is just below the key */
    TREE_LAST,    /* the last; there is no key */
};

/* A node, and where it hangs, as they were at one moment. */
struct tree_place {
    struct tree_node *node;
    uint64_t seen; /* of its latch */
    uint64_t shape;
    struct tree_node *parent; /* NULL: node is the root */
    struct latch *parent_latch;
    uint64_t parent_seen;
    int32_t index; /* of node in parent, -1 being the leftmost child; -1 for the root */
};

/* The root. false: it has changed meanwhile. */
bool tree_enter(const struct tree *tree, struct tree_place *place_out);
/* From an inner node to a child. false: something has changed meanwhile. */
bool tree_step(struct tree_place *place, struct bytes key, enum tree_towards towards);
/* Goes down to a level, beginning again as often as it takes. false: the root is below it. */
bool tree_descend(const struct tree *tree, struct bytes key, enum tree_towards towards,
                  uint32_t level, struct tree_place *place_out);

/* Makes sure that the leaf of a key has room for it, at the moment when it is done. HK_ERR_NOMEM.
 */
int tree_make_room(struct tree *tree, struct store_thread *thread, struct bytes key)
    __attribute__((warn_unused_result));
/* Merges what is nearly empty on the way to a key. */
void tree_shrink(struct tree *tree, struct store_thread *thread, struct bytes key);

/* Whether so little is left in a node that it should be merged. */
#define TREE_UNDERFULL (TREE_NODE_WORDS / 4u)
static inline bool tree_is_underfull(uint64_t shape)
{
    return shape_used(shape) < TREE_UNDERFULL;
}

/* A new node, in nobody's reach; NULL past the memory limit. */
struct tree_node *tree_node_create(struct store_thread *thread, uint64_t low, uint64_t high,
                                   uint64_t link);

#endif
