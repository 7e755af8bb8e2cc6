#include "store/tree.h"

#include <string.h>

#include "base/assert.h"
#include "store/tree_state.h"

/* A key that may be in a tree. */
static int tree_key_invalid(struct bytes key)
{
    return key.n == 0 ? HK_ERR_INVALID : key.n > STORE_KEY_MAX ? HK_ERR_TOOBIG : HK_OK;
}

static void store_out(uint64_t *out, uint64_t v)
{
    if (out != NULL) {
        *out = v;
    }
}

/* ---- Life ---- */

struct tree_node *tree_node_create(struct store_thread *thread, uint64_t low, uint64_t high,
                                   uint64_t link)
{
    struct tree_node *n = memory_take(&thread->memory, sizeof(*n), MEMORY_NORMAL);
    if (n == NULL) {
        return NULL;
    }
    n->retired = (struct blob){.link = 0, .bytes = sizeof(*n) - sizeof(struct blob)};
    latch_init(&n->latch);
    atomic_init(&n->shape, shape_make(0, TREE_NODE_WORDS, 0, 0, 0));
    atomic_init(&n->link, link);
    atomic_init(&n->low, low);
    atomic_init(&n->high, high);
    n->unused = 0;
    return n;
}

int tree_create(struct store *store, struct store_thread *thread, struct tree **tree_out)
{
    struct tree *tree = memory_take(&thread->memory, sizeof(*tree), MEMORY_NORMAL);
    if (tree == NULL) {
        return HK_ERR_NOMEM;
    }
    struct tree_node *root = tree_node_create(thread, 0, 0, 0);
    if (root == NULL) {
        memory_give(&thread->memory, tree, sizeof(*tree));
        return HK_ERR_NOMEM;
    }
    memset(tree, 0, sizeof(*tree));
    tree->store = store;
    latch_init(&tree->latch);
    atomic_init(&tree->root, node_address(root));
    tree_count(&tree_counts_of(tree, thread)->leaves, 1);
    *tree_out = tree;
    return HK_OK;
}

static void give_blob(struct store_thread *thread, uint64_t address)
{
    if (address != 0) {
        struct blob *blob = (struct blob *)(uintptr_t)address;
        memory_give(&thread->memory, blob, blob_allocated(blob->bytes));
    }
}

/* As deep as the tree is high. A leaf gives its low fence, so that each boundary is given once. */
static void give_nodes(struct store_thread *thread, struct tree_node *n)
{
    uint64_t shape = word_get(&n->shape);
    int32_t count = (int32_t)shape_count(shape);
    if (shape_level(shape) > 0) {
        for (int32_t i = -1; i < count; i++) {
            give_nodes(thread, node_at(node_child(n, i)));
        }
    } else {
        for (int32_t i = 0; i < count; i++) {
            uint8_t space[TREE_KEY_INLINE];
            give_blob(thread, node_item(n, (uint32_t)i, space).blob);
        }
        give_blob(thread, word_get(&n->low));
    }
    memory_give(&thread->memory, n, sizeof(*n));
}

void tree_destroy(struct tree *tree, struct store_thread *thread)
{
    if (tree == NULL) {
        return;
    }
    give_nodes(thread, node_at(word_get(&tree->root)));
    memory_give(&thread->memory, tree, sizeof(*tree));
}

/* ---- Descent ---- */

bool tree_enter(const struct tree *tree, struct tree_place *place_out)
{
    struct latch *latch = (struct latch *)(uintptr_t)&tree->latch;
    struct tree_place p = {.parent_latch = latch, .index = -1};
    if (!latch_read(latch, &p.parent_seen)) {
        return false;
    }
    p.node = node_at(word_get(&tree->root));
    /* Before the node is looked at: it was the root, so it is there. */
    if (!latch_same(latch, p.parent_seen) || !latch_read(&p.node->latch, &p.seen)) {
        return false;
    }
    p.shape = word_get(&p.node->shape);
    *place_out = p;
    /* And at that version it still is. */
    return latch_same(latch, p.parent_seen);
}

static bool choose_child(const struct tree_place *place, struct bytes key,
                         enum tree_towards towards, int32_t *index_out)
{
    if (towards == TREE_LAST) {
        *index_out = (int32_t)shape_count(place->shape) - 1;
        return true;
    }
    struct node_place found;
    if (!node_search(place->node, place->seen, place->shape, key, &found)) {
        return false;
    }
    *index_out = (int32_t)found.at - (found.equal && towards == TREE_AT_MOST ? 0 : 1);
    return true;
}

bool tree_step(struct tree_place *place, struct bytes key, enum tree_towards towards)
{
    struct tree_place p = {
        .parent = place->node, .parent_latch = &place->node->latch, .parent_seen = place->seen};
    if (!choose_child(place, key, towards, &p.index)) {
        return false;
    }
    p.node = node_at(node_child(place->node, p.index));
    if (!latch_same(p.parent_latch, p.parent_seen) || !latch_read(&p.node->latch, &p.seen)) {
        return false;
    }
    p.shape = word_get(&p.node->shape);
    *place = p;
    return latch_same(p.parent_latch, p.parent_seen);
}

/* One attempt of tree_descend. */
static bool descend_once(const struct tree *tree, struct bytes key, enum tree_towards towards,
                         uint32_t level, struct tree_place *place_out)
{
    if (!tree_enter(tree, place_out)) {
        return false;
    }
    while (shape_level(place_out->shape) > level) {
        if (!tree_step(place_out, key, towards)) {
            return false;
        }
    }
    return true;
}

bool tree_descend(const struct tree *tree, struct bytes key, enum tree_towards towards,
                  uint32_t level, struct tree_place *place_out)
{
    uint32_t turns = 0;
    while (!descend_once(tree, key, towards, level, place_out)) {
        spin_wait(&turns);
    }
    return shape_level(place_out->shape) == level;
}

/* The leaf of a key, and where the key is in it or would be; not yet checked. */
static bool find_leaf(const struct tree *tree, struct bytes key, struct tree_place *leaf_out,
                      struct node_place *place_out)
{
    return descend_once(tree, key, TREE_AT_MOST, 0, leaf_out) &&
           node_search(leaf_out->node, leaf_out->seen, leaf_out->shape, key, place_out);
}

/* The same, with the leaf locked. */
static void lock_leaf(const struct tree *tree, struct bytes key, struct tree_place *leaf_out,
                      struct node_place *place_out)
{
    uint32_t turns = 0;
    while (!find_leaf(tree, key, leaf_out, place_out) ||
           !latch_lock(&leaf_out->node->latch, leaf_out->seen)) {
        spin_wait(&turns);
    }
}

/* ---- The contract ---- */

int tree_find(const struct tree *tree, struct store_thread *thread, struct bytes key,
              uint64_t *hint_out)
{
    HK_CHECK(epoch_is_online(&tree->store->epoch, thread->slot));
    (void)thread;
    int err = tree_key_invalid(key);
    if (err != HK_OK) {
        return err;
    }
    struct tree_place leaf;
    struct node_place place;
    for (uint32_t turns = 0;; spin_wait(&turns)) {
        if (!find_leaf(tree, key, &leaf, &place)) {
            continue;
        }
        uint64_t hint = place.equal ? node_child(leaf.node, (int32_t)place.at) : 0;
        if (latch_same(&leaf.node->latch, leaf.seen)) {
            *hint_out = hint;
            return place.equal ? HK_OK : HK_ERR_NOTFOUND;
        }
    }
}

/* The owner of a key that is kept out of line; 0 for a short one. */
static int key_blob_create(struct store_thread *thread, struct bytes key, uint64_t *blob_out)
{
    *blob_out = 0;
    if (key.n <= TREE_KEY_INLINE) {
        return HK_OK;
    }
    struct blob *blob = memory_take(&thread->memory, blob_allocated(key.n), MEMORY_NORMAL);
    if (blob == NULL) {
        return HK_ERR_NOMEM;
    }
    *blob = (struct blob){.bytes = key.n};
    memcpy(blob_at(blob), key.at, key.n);
    *blob_out = (uint64_t)(uintptr_t)blob;
    return HK_OK;
}

/* Into a leaf with room, even if only its dead words make it. */
static void insert_here(struct tree *tree, struct store_thread *thread, struct tree_place *leaf,
                        uint32_t at, const struct tree_item *item)
{
    if (!node_has_room(leaf->shape, item->key.n, false)) {
        node_pack(leaf->node);
    }
    node_insert(leaf->node, at, item);
    latch_unlock(&leaf->node->latch, leaf->seen);
    tree_count(&tree_counts_of(tree, thread)->keys, 1);
}

int tree_insert(struct tree *tree, struct store_thread *thread, struct bytes key, uint64_t hint,
                uint64_t *found_out)
{
    HK_CHECK(epoch_is_online(&tree->store->epoch, thread->slot));
    int err = tree_key_invalid(key);
    if (err != HK_OK) {
        return err;
    }
    struct tree_item item = {.key = key, .value = hint};
    err = key_blob_create(thread, key, &item.blob);
    while (err == HK_OK) {
        struct tree_place leaf;
        struct node_place place;
        lock_leaf(tree, key, &leaf, &place);
        if (place.equal) {
            store_out(found_out, node_child(leaf.node, (int32_t)place.at));
            latch_unlock_unchanged(&leaf.node->latch, leaf.seen);
            err = HK_ERR_CONDITION;
        } else if (node_has_room(leaf.shape, key.n, true)) {
            insert_here(tree, thread, &leaf, place.at, &item);
            return HK_OK;
        } else {
            latch_unlock_unchanged(&leaf.node->latch, leaf.seen);
            err = tree_make_room(tree, thread, key);
        }
    }
    give_blob(thread, item.blob);
    return err;
}

int tree_update(struct tree *tree, struct store_thread *thread, struct bytes key, uint64_t hint,
                uint64_t *old_out)
{
    HK_CHECK(epoch_is_online(&tree->store->epoch, thread->slot));
    (void)thread;
    int err = tree_key_invalid(key);
    if (err != HK_OK) {
        return err;
    }
    struct tree_place leaf;
    struct node_place place;
    lock_leaf(tree, key, &leaf, &place);
    if (!place.equal) {
        latch_unlock_unchanged(&leaf.node->latch, leaf.seen);
        return HK_ERR_NOTFOUND;
    }
    store_out(old_out, node_child(leaf.node, (int32_t)place.at));
    word_put(&leaf.node->words[TREE_SLOT_WORDS * place.at + 1u], hint);
    latch_unlock(&leaf.node->latch, leaf.seen);
    return HK_OK;
}

int tree_delete(struct tree *tree, struct store_thread *thread, struct bytes key, uint64_t *old_out)
{
    HK_CHECK(epoch_is_online(&tree->store->epoch, thread->slot));
    int err = tree_key_invalid(key);
    if (err != HK_OK) {
        return err;
    }
    struct tree_place leaf;
    struct node_place place;
    lock_leaf(tree, key, &leaf, &place);
    if (!place.equal) {
        latch_unlock_unchanged(&leaf.node->latch, leaf.seen);
        return HK_ERR_NOTFOUND;
    }
    store_out(old_out, node_child(leaf.node, (int32_t)place.at));
    uint64_t blob = node_remove(leaf.node, place.at);
    bool underfull = tree_is_underfull(word_get(&leaf.node->shape));
    latch_unlock(&leaf.node->latch, leaf.seen);
    tree_count(&tree_counts_of(tree, thread)->keys, -1);
    if (blob != 0) {
        retire_blob(&thread->retire, (struct blob *)(uintptr_t)blob);
    }
    if (underfull && leaf.parent != NULL) {
        tree_shrink(tree, thread, key);
    }
    return HK_OK;
}

/* ---- Statistics ---- */

void tree_stats(const struct tree *tree, struct tree_stats *stats_out)
{
    int64_t keys = 0, leaves = 0, inners = 0;
    for (uint32_t i = 0; i < TREE_COUNTS; i++) {
        /* relaxed: each number is right by itself. */
        const struct tree_counts *c = &tree->counts[i];
        keys += atomic_load_explicit(&c->keys, memory_order_relaxed);
        leaves += atomic_load_explicit(&c->leaves, memory_order_relaxed);
        inners += atomic_load_explicit(&c->inners, memory_order_relaxed);
    }
    struct tree_place root;
    uint32_t turns = 0;
    while (!tree_enter(tree, &root)) {
        spin_wait(&turns);
    }
    *stats_out = (struct tree_stats){
        .keys = keys > 0 ? (uint64_t)keys : 0,
        .leaves = leaves > 0 ? (uint64_t)leaves : 0,
        .inners = inners > 0 ? (uint64_t)inners : 0,
        .levels = shape_level(root.shape) + 1u,
    };
}
