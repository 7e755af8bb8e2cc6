/* A node of the ordered index: its layout, search in it, and the changes of one node. Layout and
 * memory order are argued in docs/ORDERED_INDEX.md, 1 and 2. For the files of tree.h only.
 *
 * Functions that only read may run beside a writer; what they say then counts only if the node's
 * latch is still what it was (latch_same). Functions that write need the latch. */
#ifndef HORKOS_STORE_TREE_NODE_H
#define HORKOS_STORE_TREE_NODE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "store/latch.h"
#include "store/object.h"
#include "store/tree.h"

struct tree_node {
    struct blob retired; /* a node is retired as a blob is */
    struct latch latch;
    _Atomic uint64_t shape;
    _Atomic uint64_t link; /* of a leaf: the next one; of an inner node: its leftmost child */
    _Atomic uint64_t low;  /* addresses of boundaries (struct blob), 0: none */
    _Atomic uint64_t high;
    uint64_t unused;
    _Atomic uint64_t words[TREE_NODE_WORDS];
};
_Static_assert(sizeof(struct tree_node) == TREE_NODE_BYTES, "one slab cell");
_Static_assert(offsetof(struct tree_node, words) == 64, "slots begin at a cache line");

#define TREE_SLOT_WORDS 2u
#define TREE_SLOTS_MAX (TREE_NODE_WORDS / TREE_SLOT_WORDS)
#define TREE_HEAD_BYTES 4u

/* Words that the largest inline key takes, slot included. */
#define TREE_CELL_WORDS_MAX (TREE_SLOT_WORDS + (TREE_KEY_INLINE - TREE_HEAD_BYTES + 7u) / 8u)
_Static_assert(TREE_NODE_WORDS >= 8u * TREE_CELL_WORDS_MAX, "every node has several children");

/* ---- Shape: one word ---- */

#define SHAPE_FIELD_BITS 12u
#define SHAPE_LEVEL_BITS 6u
#define SHAPE_PREFIX_AT (3u * SHAPE_FIELD_BITS + SHAPE_LEVEL_BITS)
_Static_assert(TREE_NODE_WORDS < 1u << SHAPE_FIELD_BITS, "word numbers fit");

static inline uint64_t shape_make(uint32_t count, uint32_t heap, uint32_t dead, uint32_t level,
                                  uint32_t prefix)
{
    return (uint64_t)count | (uint64_t)heap << SHAPE_FIELD_BITS |
           (uint64_t)dead << (2u * SHAPE_FIELD_BITS) | (uint64_t)level << (3u * SHAPE_FIELD_BITS) |
           (uint64_t)prefix << SHAPE_PREFIX_AT;
}

static inline uint32_t shape_field(uint64_t shape, uint32_t at, uint32_t bits)
{
    return (uint32_t)(shape >> at) & ((1u << bits) - 1u);
}

/* Slots. Every shape that was ever stored has a count within the node. */
static inline uint32_t shape_count(uint64_t shape)
{
    return shape_field(shape, 0, SHAPE_FIELD_BITS);
}

/* The heap is words heap .. TREE_NODE_WORDS - 1. */
static inline uint32_t shape_heap(uint64_t shape)
{
    return shape_field(shape, SHAPE_FIELD_BITS, SHAPE_FIELD_BITS);
}

/* Words of the heap that no slot uses any more. */
static inline uint32_t shape_dead(uint64_t shape)
{
    return shape_field(shape, 2u * SHAPE_FIELD_BITS, SHAPE_FIELD_BITS);
}

/* 0: a leaf. */
static inline uint32_t shape_level(uint64_t shape)
{
    return shape_field(shape, 3u * SHAPE_FIELD_BITS, SHAPE_LEVEL_BITS);
}

static inline uint32_t shape_prefix(uint64_t shape)
{
    return (uint32_t)(shape >> SHAPE_PREFIX_AT);
}

/* Words between the slots and the heap. */
static inline uint32_t shape_gap(uint64_t shape)
{
    return shape_heap(shape) - TREE_SLOT_WORDS * shape_count(shape);
}

/* Words that are in use. */
static inline uint32_t shape_used(uint64_t shape)
{
    return TREE_NODE_WORDS - shape_gap(shape) - shape_dead(shape);
}

/* ---- The key word of a slot ---- */

#define CELL_LENGTH_AT 15u
#define CELL_LENGTH_BITS 17u
#define CELL_HEAD_AT 32u
_Static_assert(STORE_KEY_MAX < 1u << CELL_LENGTH_BITS, "a key's length fits");
_Static_assert(TREE_NODE_WORDS < 1u << CELL_LENGTH_AT, "an offset fits");

static inline uint64_t cell_make(uint32_t head, uint32_t length, uint32_t offset)
{
    return (uint64_t)head << CELL_HEAD_AT | (uint64_t)length << CELL_LENGTH_AT | offset;
}

static inline uint32_t cell_head(uint64_t cell)
{
    return (uint32_t)(cell >> CELL_HEAD_AT);
}

static inline uint32_t cell_length(uint64_t cell)
{
    return shape_field(cell, CELL_LENGTH_AT, CELL_LENGTH_BITS);
}

static inline uint32_t cell_offset(uint64_t cell)
{
    return shape_field(cell, 0, CELL_LENGTH_AT);
}

/* Words of the heap for a key of that length in a node with that prefix. */
static inline uint32_t cell_rest_words(uint32_t length, uint32_t prefix)
{
    if (length > TREE_KEY_INLINE) {
        return 1;
    }
    uint32_t known = prefix + TREE_HEAD_BYTES;
    return length > known ? (length - known + 7u) / 8u : 0;
}

/* Eight bytes of the key from at on, as a number; zeros behind its end. */
static inline uint64_t key_word(struct bytes key, uint32_t at)
{
    uint64_t word = 0;
    if (at + 8u <= key.n) {
        memcpy(&word, key.at + at, 8);
    } else if (at < key.n) {
        memcpy(&word, key.at + at, key.n - at);
    }
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

/* The four bytes behind the prefix. */
static inline uint32_t key_head(struct bytes key, uint32_t prefix)
{
    return (uint32_t)(key_word(key, prefix) >> 32);
}

/* ---- Words ---- */

static inline uint64_t word_get(const _Atomic uint64_t *word)
{
    /* acquire: pairs with word_put; who sees a later write's word sees its latch locked. */
    return atomic_load_explicit(word, memory_order_acquire);
}

static inline void word_put(_Atomic uint64_t *word, uint64_t v)
{
    /* release: pairs with word_get. */
    atomic_store_explicit(word, v, memory_order_release);
}

static inline struct tree_node *node_at(uint64_t address)
{
    return (struct tree_node *)(uintptr_t)address;
}

static inline uint64_t node_address(const struct tree_node *n)
{
    return (uint64_t)(uintptr_t)n;
}

/* The bytes of a boundary or of a long key; at is NULL for 0. The address must have been checked.
 */
static inline struct bytes blob_bytes(uint64_t address)
{
    if (address == 0) {
        return bytes_of(NULL, 0);
    }
    struct blob *blob = (struct blob *)(uintptr_t)address;
    return bytes_of(blob_at(blob), (uint32_t)blob->bytes);
}

/* Under the latch, or afterwards checked: an inner node's child, -1 being the leftmost. */
static inline uint64_t node_child(const struct tree_node *n, int32_t i)
{
    return i < 0 ? word_get(&n->link) : word_get(&n->words[TREE_SLOT_WORDS * (uint32_t)i + 1u]);
}

/* ---- Search ---- */

struct node_place {
    uint32_t at; /* the first slot whose key is not less */
    bool equal;  /* it is the key */
};

/* false: the node is no longer what was seen (true does not say that it is). The key lies between
 * the node's fences, if the node is what was seen. */
bool node_search(const struct tree_node *n, uint64_t seen, uint64_t shape, struct bytes key,
                 struct node_place *place_out);

/* ---- Changing one node, under its latch ---- */

/* A key as a node keeps it: blob is its owner out of line, for keys over TREE_KEY_INLINE; else 0.
 */
struct tree_item {
    struct bytes key;
    uint64_t value;
    uint64_t blob;
};

/* All items of up to two nodes, with a separator between them, with whole keys. */
#define TREE_IMAGE_ITEMS (2u * TREE_SLOTS_MAX + 1u)
struct tree_image {
    uint32_t n;
    uint32_t used; /* of bytes */
    struct tree_item items[TREE_IMAGE_ITEMS];
    uint8_t bytes[TREE_IMAGE_ITEMS * TREE_KEY_INLINE];
};

/* Whether a key of that length finds room; packed: once the heap is packed. */
bool node_has_room(uint64_t shape, uint32_t length, bool packed);
/* There is room (not packed). */
void node_insert(struct tree_node *n, uint32_t at, const struct tree_item *item);
/* Returns the blob of the removed key, or 0. */
uint64_t node_remove(struct tree_node *n, uint32_t at);
/* The item in a slot; its key is copied to space (TREE_KEY_INLINE bytes) if it is inline. */
struct tree_item node_item(const struct tree_node *n, uint32_t at, uint8_t *space);

/* Appends. */
void image_add(struct tree_image *image, const struct tree_item *item);
void image_add_node(struct tree_image *image, const struct tree_node *n);
/* Words that items from .. to - 1 take under a prefix. */
uint32_t image_words(const struct tree_image *image, uint32_t from, uint32_t to, uint32_t prefix);
/* Makes items from .. to - 1 all that the node holds. They fit. The keys of the image may not be
 * the node's. */
void node_fill(struct tree_node *n, const struct tree_image *image, uint32_t from, uint32_t to,
               uint32_t level, uint32_t prefix);
/* The same items, no dead words. */
void node_pack(struct tree_node *n);

/* ---- Decoding a copy ---- */

/* The key of slot i of a copied (and checked) node, whose low fence is low. */
struct bytes copy_key(const uint64_t *words, uint64_t shape, struct bytes low, uint32_t i,
                      uint8_t *space);

/* How many bytes two fences have in common; 0 if either is none. */
uint32_t fences_prefix(struct bytes low, struct bytes high);

/* memcmp's order, a prefix before what it begins: below, equal to or above 0. */

#endif
