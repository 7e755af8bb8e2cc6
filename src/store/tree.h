/* An ordered index: a B+-tree from keys (bytes, in the order of memcmp, a prefix before what it
 * begins) to 64-bit hints, under optimistic lock coupling. docs/ORDERED_INDEX.md says how.
 *
 * Threads. Any number, each with its store_thread, online. Every function takes effect at one
 * moment; a scan does so leaf by leaf. Nobody waits for a latch while holding one.
 *
 * Memory is the store's, and counts against its memory_max; what is unlinked is reclaimed by its
 * epochs (store_quiescent).
 *
 * Bounds. Keys of 1 to STORE_KEY_MAX bytes: others are HK_ERR_INVALID and HK_ERR_TOOBIG. */
#ifndef HORKOS_STORE_TREE_H
#define HORKOS_STORE_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "store/store.h"

struct tree;

/* HK_ERR_NOMEM. */
int tree_create(struct store *store, struct store_thread *thread, struct tree **tree_out)
    __attribute__((warn_unused_result));
/* Nobody else uses the tree any more, nor holds a cursor. store_destroy frees trees as well. */
void tree_destroy(struct tree *tree, struct store_thread *thread);

/* HK_ERR_NOTFOUND: the key was not there. */
int tree_find(const struct tree *tree, struct store_thread *thread, struct bytes key,
              uint64_t *hint_out) __attribute__((warn_unused_result));

/* HK_ERR_CONDITION: the key is there already, with *found_out as its hint. HK_ERR_NOMEM: nothing
 * changed. found_out may be NULL. */
int tree_insert(struct tree *tree, struct store_thread *thread, struct bytes key, uint64_t hint,
                uint64_t *found_out) __attribute__((warn_unused_result));

/* Gives the key another hint. HK_ERR_NOTFOUND: nothing changed. old_out may be NULL. */
int tree_update(struct tree *tree, struct store_thread *thread, struct bytes key, uint64_t hint,
                uint64_t *old_out) __attribute__((warn_unused_result));

/* HK_ERR_NOTFOUND: nothing changed. Needs no memory. old_out may be NULL. */
int tree_delete(struct tree *tree, struct store_thread *thread, struct bytes key, uint64_t *old_out)
    __attribute__((warn_unused_result));

/* ---- Scans ---- */

#define TREE_NODE_BYTES 2048u
#define TREE_NODE_WORDS ((TREE_NODE_BYTES - 64u) / 8u)
/* Longer keys are kept out of line. */
#define TREE_KEY_INLINE 128u

enum tree_direction { TREE_FORWARDS, TREE_BACKWARDS };

/* A private copy of one leaf. The caller fills nothing in itself. */
struct tree_cursor {
    const struct tree *tree;
    enum tree_direction direction;
    bool ended;
    bool moved;       /* the last tree_next went on to another leaf */
    const void *leaf; /* what the copy is of, and of which version */
    uint64_t seen;
    uint32_t at;      /* slots before it are done (backwards: from it on) */
    uint64_t shape;   /* of the copy, as are those below */
    uint64_t link;    /* the next leaf */
    struct bytes low; /* fences; at is NULL where there is none */
    struct bytes high;
    uint8_t key[TREE_KEY_INLINE];
    uint64_t words[TREE_NODE_WORDS];
};

/* Begins at from: forwards with the first key that is not less, backwards with the last that is not
 * greater; exclusive leaves out from itself. An empty from begins at that direction's start. The
 * cursor ends with the thread's next store_quiescent; to go on after that, seek from the last key,
 * exclusive. */
void tree_seek(const struct tree *tree, struct store_thread *thread, struct bytes from,
               bool exclusive, enum tree_direction direction, struct tree_cursor *cursor_out);

/* The next key in the direction, and its hint; false at the end. key_out is good until the next
 * call for the same cursor. */
bool tree_next(struct tree_cursor *cursor, struct bytes *key_out, uint64_t *hint_out);

/* Whether the last tree_next would still give what it gave (the end, too): nothing has come or gone
 * in its leaf. false: not known, since it has, or since the leaf is another than that of the key
 * before. */
bool tree_holds(const struct tree_cursor *cursor);

/* The hint that tree_next will give after that many others, as far as the copy goes: what it names
 * can be on its way before it is asked for. false: not known yet. */
bool tree_peek(const struct tree_cursor *cursor, uint32_t ahead, uint64_t *hint_out);

/* ---- What is there ---- */

struct tree_stats {
    uint64_t keys;
    uint64_t leaves;
    uint64_t inners; /* inner nodes */
    uint32_t levels; /* 1: the root is a leaf */
};
/* Sums counters; approximate while others write. */
void tree_stats(const struct tree *tree, struct tree_stats *stats_out);

/* Walks the whole tree while nobody else is in it. NULL, or which invariant is broken (T1 to T8 of
 * docs/ORDERED_INDEX.md). */
const char *tree_check(const struct tree *tree);

#endif
