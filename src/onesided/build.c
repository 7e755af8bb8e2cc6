/* Trees are laid out before anything runs: bottom up, level by level. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "onesided/tree_node.h"

static void store_word(const struct memory *memory, remote at, uint64_t value)
{
    atomic_store_explicit(memory_word(memory, at), value, memory_order_release);
}

static uint64_t load_word(const struct memory *memory, remote at)
{
    return atomic_load_explicit(memory_word(memory, at), memory_order_acquire);
}

remote one_tree_take(const struct one_tree *tree, const struct memory *memory, uint32_t node,
                     uint64_t bytes)
{
    uint64_t at = load_word(memory, tree->bump[node]);
    HK_ASSERT((bytes & 7u) == 0 && at + bytes <= memory->regions[node].bytes);
    store_word(memory, tree->bump[node], at + bytes);
    return remote_of(node, at);
}

/* A level under construction: nodes in order, each at the next server. */
struct builder {
    const struct one_tree *tree;
    const struct memory *memory;
    uint32_t level, turn;
    uint32_t most;  /* entries of a node */
    uint64_t *lows; /* of the nodes that are finished, and where they are */
    uint64_t *ats;
    uint64_t n;
    uint64_t node[ONE_NODE_WORDS_MAX];
    remote at;
};

static void open_node(struct builder *b, uint64_t low)
{
    memset(b->node, 0, sizeof b->node);
    b->node[ONE_SHAPE] = one_shape(b->level, 0);
    b->node[ONE_LOW] = low;
    b->node[ONE_HIGH] = UINT64_MAX;
    b->at = one_tree_take(b->tree, b->memory, b->turn, 8u * b->tree->node_words);
    b->turn = (b->turn + 1) % b->tree->nodes;
}

static void close_node(struct builder *b)
{
    for (uint32_t i = 0; i < b->tree->node_words; i++) {
        store_word(b->memory, b->at + 8u * i, b->node[i]);
    }
    b->lows[b->n] = b->node[ONE_LOW];
    b->ats[b->n++] = b->at;
}

static void add(struct builder *b, uint64_t key, uint64_t value)
{
    if (one_count(b->node) == b->most) {
        struct builder full = *b;
        open_node(b, key);
        full.node[ONE_HIGH] = key;
        full.node[ONE_NEXT] = b->at;
        uint64_t node[ONE_NODE_WORDS_MAX];
        remote at = b->at;
        memcpy(node, b->node, sizeof node);
        memcpy(b->node, full.node, sizeof node);
        b->at = full.at;
        close_node(b);
        memcpy(b->node, node, sizeof node);
        b->at = at;
    }
    one_node_put(b->node, key, value);
}

void one_tree_build(struct one_tree *tree, const struct memory *memory, uint32_t node_words,
                    uint64_t first, const uint64_t *keys, const uint64_t *values, uint64_t n,
                    double fill)
{
    HK_ASSERT(node_words >= 16 && node_words <= ONE_NODE_WORDS_MAX && first >= 64 && n > 0);
    *tree = (struct one_tree){.node_words = node_words, .nodes = memory->nodes};
    tree->root = remote_of(0, first);
    for (uint32_t i = 0; i < memory->nodes; i++) {
        tree->bump[i] = remote_of(i, first + 8);
        store_word(memory, tree->bump[i], first + 64);
    }
    struct builder b = {.tree = tree, .memory = memory};
    uint32_t fanout = one_fanout(tree);
    uint32_t most = (uint32_t)((double)fanout * fill);
    most = most < 2 ? 2 : most;
    uint64_t nodes_max = n / most + 2;
    b.lows = malloc(nodes_max * sizeof *b.lows);
    b.ats = malloc(nodes_max * sizeof *b.ats);
    uint64_t *below_lows = malloc(nodes_max * sizeof *below_lows);
    uint64_t *below_ats = malloc(nodes_max * sizeof *below_ats);
    HK_ASSERT(b.lows != NULL && b.ats != NULL && below_lows != NULL && below_ats != NULL);
    for (;;) {
        b.n = 0;
        b.most = most;
        open_node(&b, 0);
        for (uint64_t i = 0; i < n; i++) {
            add(&b, keys[i], values[i]);
        }
        close_node(&b);
        if (b.n == 1) {
            break;
        }
        n = b.n;
        memcpy(below_lows, b.lows, n * sizeof *b.lows);
        memcpy(below_ats, b.ats, n * sizeof *b.ats);
        keys = below_lows;
        values = below_ats;
        b.level++;
    }
    store_word(memory, tree->root, b.ats[0]);
    free(b.lows);
    free(b.ats);
    free(below_lows);
    free(below_ats);
}

uint32_t one_tree_count(const struct one_tree *tree, const struct memory *memory,
                        uint64_t nodes_out[ONE_LEVELS_MAX])
{
    remote first = load_word(memory, tree->root);
    uint32_t levels = (uint32_t)(load_word(memory, first + 8u * ONE_SHAPE) >> 32) + 1;
    for (uint32_t level = levels; level-- > 0;) {
        nodes_out[level] = 0;
        for (remote at = first; at != 0; at = load_word(memory, at + 8u * ONE_NEXT)) {
            nodes_out[level]++;
        }
        first = load_word(memory, first + 8u * (ONE_SLOTS + 1));
    }
    return levels;
}
