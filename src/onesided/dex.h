/* A B+-tree in co-partitioned memory, after DEX as [L] 7.9 describes it: a compute server has its
 * part of the keys to itself and caches nodes of 1 KB, leaves included, which it reads with one
 * READ and, when a changed one makes room, writes back whole. Ours, not theirs; docs/ONE_SIDED.md
 * says what is the same and why reads are right. Machines, as tree.h has them, over net/verbs.h.
 *
 * Threads. All operations of one partition step one after the other. */
#ifndef HORKOS_ONESIDED_DEX_H
#define HORKOS_ONESIDED_DEX_H

#include "base/list.h"
#include "onesided/tree.h"
#include "onesided/ways.h"

#define DEX_NODE_BYTES (8u * ONE_NODE_WORDS_MAX)
#define DEX_COPY_BYTES (DEX_NODE_BYTES + 32u) /* of a cache: a node, and what leads to it */
#define DEX_OUT 4u                            /* nodes of an operation that are being written */

struct dex_stats {
    uint64_t hits, misses; /* nodes that were looked for in the cache */
    uint64_t written_back;
    uint64_t waits; /* a node was on its way, for another operation */
};

/* What a compute server knows of its partition. */
struct dex {
    remote root;
    struct ways ways;
    uint64_t *nodes;          /* by number of place */
    struct list_link leaving; /* struct dex_out: written back, not known to have arrived */
    remote next[NODES_MAX], end[NODES_MAX]; /* room for new nodes at each memory server */
    uint32_t memories, turn;
    struct dex_stats stats;
};

/* A tree that one_tree_build has laid out, with nodes of ONE_NODE_WORDS_MAX, becomes the
 * partition's: nobody else goes near it any more. room: bytes for new nodes that are taken from
 * each memory server. cache_bytes: of at least 8 nodes. False: no memory here. */
bool dex_open(struct dex *dex, const struct one_tree *tree, const struct memory *memory,
              uint64_t room, uint64_t cache_bytes);
void dex_close(struct dex *dex);

enum dex_kind { DEX_GET, DEX_PUT };

struct dex_out {
    struct list_link link;
    remote at;
    uint64_t node[ONE_NODE_WORDS_MAX];
};

struct dex_op {
    struct dex *dex;
    uint64_t key;   /* below UINT64_MAX */
    uint64_t value; /* PUT: the new one; out, GET: what was found */
    uint8_t kind;
    bool found; /* out: the key was there */
    bool full;  /* out: PUT needs a new node, and there is no room: nothing has changed */
    /* The machine's. */
    bool over;
    struct way *coming; /* the node that it reads */
    remote at;
    uint32_t level; /* into which it puts */
    uint64_t put_key, put_value;
    uint64_t word; /* what a look in between brings */
    uint32_t outs;
    struct dex_out out[DEX_OUT];
};

void dex_begin(struct dex_op *op, struct dex *dex, enum dex_kind kind, uint64_t key,
               uint64_t value);
/* False: it has posted, and is to be called when that is done. True: it is over. */
bool dex_step(struct dex_op *op, struct posting *p);
/* Writes changed nodes, as many as the posting has room for; no operation may run until that is
 * done. True: there are none. */
bool dex_flush(struct dex *dex, struct posting *p);

#endif
