/* Cursors: private copies of leaves, one after the other (docs/ORDERED_INDEX.md, 4). */
#include <string.h>

#include "base/assert.h"
#include "store/tree_state.h"

/* Copies the words in use, the fences and the link. false: they are not of one version. */
static bool copy_leaf(struct tree_cursor *c, const struct tree_node *n, uint64_t seen)
{
    uint64_t shape = word_get(&n->shape);
    uint32_t slots_end = TREE_SLOT_WORDS * shape_count(shape);
    for (uint32_t i = 0; i < slots_end && i < TREE_NODE_WORDS; i++) {
        c->words[i] = word_get(&n->words[i]);
    }
    for (uint32_t i = shape_heap(shape); i < TREE_NODE_WORDS; i++) {
        c->words[i] = word_get(&n->words[i]);
    }
    uint64_t low = word_get(&n->low), high = word_get(&n->high);
    c->shape = shape;
    c->link = word_get(&n->link);
    if (!latch_same(&n->latch, seen)) {
        return false;
    }
    c->low = blob_bytes(low);
    c->high = blob_bytes(high);
    c->leaf = n;
    c->seen = seen;
    return true;
}

/* Descends to a leaf, copies it, and finds key in it. */
static void copy_leaf_of(struct tree_cursor *c, struct bytes key, enum tree_towards towards,
                         struct node_place *place_out)
{
    for (uint32_t turns = 0;; spin_wait(&turns)) {
        struct tree_place leaf;
        (void)tree_descend(c->tree, key, towards, 0, &leaf);
        if (towards != TREE_LAST &&
            !node_search(leaf.node, leaf.seen, leaf.shape, key, place_out)) {
            continue;
        }
        if (copy_leaf(c, leaf.node, leaf.seen)) {
            return;
        }
    }
}

void tree_seek(const struct tree *tree, struct store_thread *thread, struct bytes from,
               bool exclusive, enum tree_direction direction, struct tree_cursor *cursor_out)
{
    HK_CHECK(epoch_is_online(&tree->store->epoch, thread->slot));
    (void)thread;
    struct tree_cursor *c = cursor_out;
    struct node_place place = {0, false};
    c->tree = tree;
    c->direction = direction;
    c->ended = false;
    c->moved = false;
    if (direction == TREE_FORWARDS) {
        /* Nothing is below the empty key, so it is where the first leaf begins. */
        copy_leaf_of(c, from, TREE_AT_MOST, &place);
        c->at = place.at + (place.equal && exclusive ? 1u : 0u);
    } else if (from.n == 0) {
        copy_leaf_of(c, from, TREE_LAST, &place);
        c->at = shape_count(c->shape);
    } else {
        copy_leaf_of(c, from, exclusive ? TREE_BELOW : TREE_AT_MOST, &place);
        c->at = place.at + (place.equal && !exclusive ? 1u : 0u);
    }
}

/* The leaf behind the copied one, by its link if it is still there. false: there is none. */
static bool go_forwards(struct tree_cursor *c)
{
    if (c->high.at == NULL) {
        return false;
    }
    struct bytes fence = c->high;
    const struct tree_node *next = node_at(c->link);
    uint64_t seen;
    c->at = 0;
    /* Its low fence is the copied leaf's high fence, as long as it lives. */
    if (latch_read(&next->latch, &seen) && copy_leaf(c, next, seen)) {
        return true;
    }
    struct node_place place = {0, false};
    copy_leaf_of(c, fence, TREE_AT_MOST, &place);
    c->at = place.at;
    return true;
}

static bool go_backwards(struct tree_cursor *c)
{
    if (c->low.at == NULL) {
        return false;
    }
    struct node_place place = {0, false};
    copy_leaf_of(c, c->low, TREE_BELOW, &place);
    c->at = place.at;
    return true;
}

bool tree_next(struct tree_cursor *cursor, struct bytes *key_out, uint64_t *hint_out)
{
    struct tree_cursor *c = cursor;
    bool forwards = c->direction == TREE_FORWARDS;
    /* A leaf may have nothing to give and not be the last. */
    c->moved = false;
    while (!c->ended && c->at == (forwards ? shape_count(c->shape) : 0)) {
        c->ended = !(forwards ? go_forwards(c) : go_backwards(c));
        c->moved |= !c->ended;
    }
    if (c->ended) {
        return false;
    }
    uint32_t i = forwards ? c->at++ : --c->at;
    *key_out = copy_key(c->words, c->shape, c->low, i, c->key);
    *hint_out = c->words[TREE_SLOT_WORDS * i + 1u];
    return true;
}

bool tree_holds(const struct tree_cursor *cursor)
{
    const struct tree_node *leaf = cursor->leaf;
    return !cursor->moved && latch_same(&leaf->latch, cursor->seen);
}

bool tree_peek(const struct tree_cursor *cursor, uint32_t ahead, uint64_t *hint_out)
{
    const struct tree_cursor *c = cursor;
    bool forwards = c->direction == TREE_FORWARDS;
    uint32_t left = forwards ? shape_count(c->shape) - c->at : c->at;
    if (c->ended || ahead >= left) {
        return false;
    }
    uint32_t i = forwards ? c->at + ahead : c->at - 1u - ahead;
    *hint_out = c->words[TREE_SLOT_WORDS * i + 1u];
    return true;
}
