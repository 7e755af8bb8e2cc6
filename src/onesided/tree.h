/* A B+-tree of 64-bit keys on one-sided verbs, after Sherman (and, with small nodes, Deft): nodes
 * are read by compute servers, which keep copies of inner nodes, and written under a lock word in
 * the node. Ours, not theirs; docs/ONE_SIDED.md says what is the same. Reads are correct: version,
 * data, version, in that order.
 *
 * Machines: a step returns false when it has appended verbs to a posting and wants to be called
 * again when that is done, true when it is over. Several may share a posting. */
#ifndef HORKOS_ONESIDED_TREE_H
#define HORKOS_ONESIDED_TREE_H

#include "net/verbs.h"

#define ONE_NODE_WORDS_MAX 128u
#define ONE_LEVELS_MAX 12u

enum one_word {              /* of a node */
                ONE_VERSION, /* odd: it is being written */
                ONE_LOCK,    /* 1: somebody changes it */
                ONE_SHAPE,   /* level << 32 | entries */
                ONE_LOW,     /* keys in it are >= low ... */
                ONE_HIGH,    /* ... and < high; UINT64_MAX: no bound */
                ONE_NEXT,    /* its right neighbour; 0: none */
                ONE_SLOTS    /* key, value: a leaf's in any order, an inner node's ascending */
};

/* Where a tree is: the word that holds the root's address, and how large nodes are. */
struct one_tree {
    remote root;            /* the word */
    uint32_t node_words;    /* 128: 1 KB, as Sherman; 32: 256 B, as Deft's segments */
    uint32_t nodes;         /* memory servers, over which nodes are spread */
    remote bump[NODES_MAX]; /* at each server the word that says how many bytes are in use */
};
static inline uint32_t one_fanout(const struct one_tree *tree)
{
    return (tree->node_words - ONE_SLOTS) / 2;
}

/* Lays out an empty tree in fresh memory, and fills it with n ascending keys (below UINT64_MAX)
 * and their values: before anything runs. Leaves take `fill` of their slots (0 < fill <= 1).
 * Bytes 0 .. first - 1 of each server stay the caller's (first >= 64, a multiple of 8). */
void one_tree_build(struct one_tree *tree, const struct memory *memory, uint32_t node_words,
                    uint64_t first, const uint64_t *keys, const uint64_t *values, uint64_t n,
                    double fill);
/* Room at a server, before anything runs. */
remote one_tree_take(const struct one_tree *tree, const struct memory *memory, uint32_t node,
                     uint64_t bytes);
/* How many nodes there are, by level; returns the levels. */
uint32_t one_tree_count(const struct one_tree *tree, const struct memory *memory,
                        uint64_t nodes_out[ONE_LEVELS_MAX]);

/* ---- Copies of inner nodes at a compute server ---- */

struct one_cache; /* of one thread, or of threads that step one after the other */

/* nodes_max: copies that it keeps, the least frequently used leave; 0: it keeps none. NULL: no
 * memory. */
struct one_cache *one_cache_new(const struct one_tree *tree, uint64_t nodes_max);
void one_cache_free(struct one_cache *cache);
struct one_cache_stats {
    uint64_t hits, misses, stale;
};
struct one_cache_stats one_cache_stats(const struct one_cache *cache);

/* ---- Machines ---- */

enum one_walk_state { ONE_WALK_BEGIN, ONE_WALK_ROOT, ONE_WALK_NODE, ONE_WALK_DONE };

/* From the root to the node of a level that covers a key. */
struct one_walk {
    uint64_t key;
    uint32_t level; /* that it goes to: 0 is a leaf */
    uint8_t state;
    bool fresh;             /* copies are not believed: one was stale */
    bool found;             /* out, of a leaf: the key is there, ... */
    remote at;              /* out: the node */
    uint64_t value;         /* ... and its value */
    uint64_t before, after; /* versions */
    uint64_t root;
    uint32_t root_level;               /* of the node that was read first */
    uint64_t node[ONE_NODE_WORDS_MAX]; /* out: a consistent copy */
};
void one_walk_begin(struct one_walk *walk, uint64_t key, uint32_t level);
bool one_walk_step(struct one_walk *walk, const struct one_tree *tree, struct one_cache *cache,
                   struct posting *p);

enum one_insert_state {
    ONE_INSERT_WALK,
    ONE_INSERT_LOCK,
    ONE_INSERT_WRITE,
    ONE_INSERT_ROOM, /* of a split: memory for the new node ... */
    ONE_INSERT_SPLIT,
    ONE_INSERT_ROOT, /* ... and for a new root */
    ONE_INSERT_GROW,
    ONE_INSERT_UNLOCK,
    ONE_INSERT_DONE
};

/* Puts a key and its value into the node of a level; splits as needed, upwards. */
struct one_insert {
    struct one_walk walk;
    uint64_t key, value;
    uint32_t level;
    uint8_t state;
    bool exists;       /* out: the key was there already (level 0), and stays as it is */
    bool split;        /* what is put now is the separator of a split */
    uint32_t first;    /* number of the first verb of what was posted last */
    uint32_t turn;     /* of servers, for new nodes */
    uint64_t words[4]; /* versions and the unlocked word, while they are written */
    remote fresh;
    uint64_t right[ONE_NODE_WORDS_MAX];
};
void one_insert_begin(struct one_insert *insert, uint64_t key, uint64_t value);
/* done: the posting to which the step before has appended. */
bool one_insert_step(struct one_insert *insert, const struct one_tree *tree,
                     struct one_cache *cache, const struct posting *done, struct posting *p);

#endif
