/* The invariants at rest, T1 to T8 of docs/ORDERED_INDEX.md. */
#include "store/tree_state.h"

struct check {
    const struct tree_node *leaf; /* the last one met; NULL before the first */
    uint64_t keys, leaves, inners;
};

static const char *check_latch(const struct latch *latch)
{
    /* relaxed: nobody else is here. */
    uint64_t word = atomic_load_explicit(&latch->word, memory_order_relaxed);
    return (word & (LATCH_LOCKED | LATCH_OBSOLETE)) != 0 ? "T7: a latch is locked or obsolete"
                                                         : NULL;
}

/* The rests of the keys lie in the heap, apart, and with the dead words make it up. */
static const char *check_heap(const struct tree_node *n)
{
    uint64_t shape = word_get(&n->shape);
    uint32_t count = shape_count(shape), heap = shape_heap(shape);
    bool taken[TREE_NODE_WORDS] = {false};
    if (heap > TREE_NODE_WORDS || TREE_SLOT_WORDS * count > heap) {
        return "T3: slots and heap overlap";
    }
    uint32_t live = 0;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t cell = word_get(&n->words[TREE_SLOT_WORDS * i]);
        uint32_t words = cell_rest_words(cell_length(cell), shape_prefix(shape));
        uint32_t offset = cell_offset(cell);
        if (words > 0 && (offset < heap || offset + words > TREE_NODE_WORDS)) {
            return "T3: the rest of a key is not in the heap";
        }
        for (uint32_t j = 0; j < words; j++) {
            if (taken[offset + j]) {
                return "T3: the rests of two keys overlap";
            }
            taken[offset + j] = true;
        }
        live += words;
    }
    return live + shape_dead(shape) != TREE_NODE_WORDS - heap
               ? "T3: used and dead words are not the heap"
               : NULL;
}

static const char *check_keys(const struct tree_node *n, struct bytes low, struct bytes high)
{
    uint64_t shape = word_get(&n->shape);
    uint32_t count = shape_count(shape);
    uint8_t space[2][TREE_KEY_INLINE];
    struct bytes before = low;
    if (shape_prefix(shape) != fences_prefix(low, high)) {
        return "T2: the prefix is not what the fences have in common";
    }
    for (uint32_t i = 0; i < count; i++) {
        struct bytes key = node_item(n, i, space[i % 2u]).key;
        int order = before.at == NULL ? -1 : bytes_compare(before, key);
        /* A leaf's first key may be its low fence. */
        if (order > 0 || (order == 0 && (i > 0 || shape_level(shape) > 0))) {
            return "T1: keys are out of order";
        }
        before = key;
    }
    if (high.at != NULL && before.at != NULL && bytes_compare(before, high) >= 0) {
        return "T1: a key is not below the high fence";
    }
    return NULL;
}

static const char *check_leaf(const struct tree_node *n, struct check *c)
{
    if (c->leaf != NULL && word_get(&c->leaf->link) != node_address(n)) {
        return "T5: a link leads past a leaf";
    }
    c->leaf = n;
    c->leaves++;
    c->keys += shape_count(word_get(&n->shape));
    return NULL;
}

static const char *check_node(const struct tree_node *n, uint32_t level, uint64_t low,
                              uint64_t high, struct check *c);

static const char *check_children(const struct tree_node *n, uint32_t level, struct check *c)
{
    int32_t count = (int32_t)shape_count(word_get(&n->shape));
    uint64_t low = word_get(&n->low);
    for (int32_t i = -1; i < count; i++) {
        uint64_t high = word_get(&n->high);
        if (i + 1 < count) {
            uint8_t space[TREE_KEY_INLINE];
            struct tree_item separator = node_item(n, (uint32_t)(i + 1), space);
            high = word_get(&node_at(separator.value)->low);
            if (high == 0 || !bytes_equal(separator.key, blob_bytes(high)) ||
                (separator.blob != 0 && separator.blob != high)) {
                return "T4: a separator is not its child's low fence";
            }
        }
        const char *broken = check_node(node_at(node_child(n, i)), level - 1u, low, high, c);
        if (broken != NULL) {
            return broken;
        }
        low = high;
    }
    c->inners++;
    return NULL;
}

static const char *check_node(const struct tree_node *n, uint32_t level, uint64_t low,
                              uint64_t high, struct check *c)
{
    if (shape_level(word_get(&n->shape)) != level) {
        return "T4: a child is on another level";
    }
    if (word_get(&n->low) != low || word_get(&n->high) != high) {
        return "T8: neighbours do not share their boundary";
    }
    const char *broken = check_latch(&n->latch);
    if (broken == NULL) {
        broken = check_heap(n);
    }
    if (broken == NULL) {
        broken = check_keys(n, blob_bytes(low), blob_bytes(high));
    }
    if (broken != NULL) {
        return broken;
    }
    return level == 0 ? check_leaf(n, c) : check_children(n, level, c);
}

const char *tree_check(const struct tree *tree)
{
    const struct tree_node *root = node_at(word_get(&tree->root));
    struct check c = {0};
    const char *broken = check_latch(&tree->latch);
    if (broken == NULL) {
        broken = check_node(root, shape_level(word_get(&root->shape)), 0, 0, &c);
    }
    if (broken != NULL) {
        return broken;
    }
    if (word_get(&c.leaf->link) != 0) {
        return "T5: the last leaf has a link";
    }
    struct tree_stats stats;
    tree_stats(tree, &stats);
    if (stats.keys != c.keys || stats.leaves != c.leaves || stats.inners != c.inners) {
        return "T6: a counter is wrong";
    }
    return NULL;
}
