/* Changes of more than one node: splits, merges, the root's growth and collapse
 * (docs/ORDERED_INDEX.md, 3). Latches are locked from the parent down and from left to right, each
 * only if it is what was seen; who fails unlocks what it has and begins at the root again. */
#include <string.h>

#include "base/assert.h"
#include "store/tree_state.h"

static struct tree_image *image_reset(struct tree_image *image)
{
    image->n = 0;
    image->used = 0;
    return image;
}

/* A boundary as the separator of an inner node. */
static struct tree_item separator_item(uint64_t boundary, uint64_t child)
{
    struct bytes key = blob_bytes(boundary);
    return (struct tree_item){
        .key = key, .value = child, .blob = key.n > TREE_KEY_INLINE ? boundary : 0};
}

/* ---- Splits ---- */

/* What a split needs, all of it there before anything is written. */
struct split {
    struct tree *tree;
    struct store_thread *thread;
    struct tree_place *place; /* the node, full; it and the parent's latch are locked */
    uint32_t level;
    struct tree_node *right;
    struct tree_node *root; /* if the node was the root */
    uint64_t boundary;
    uint32_t left_n;     /* items that stay */
    uint32_t right_from; /* items that go, from here */
};

static void split_unlock(const struct split *s, bool changed)
{
    void (*unlock)(struct latch *, uint64_t) = changed ? latch_unlock : latch_unlock_unchanged;
    unlock(&s->place->node->latch, s->place->seen);
    unlock(s->place->parent_latch, s->place->parent_seen);
}

/* right's fences and link are for split_finish. */
static int split_take_nodes(struct split *s)
{
    struct memory_cache *memory = &s->thread->memory;
    s->right = tree_node_create(s->thread, 0, 0, 0);
    if (s->right == NULL) {
        return HK_ERR_NOMEM;
    }
    if (s->place->parent == NULL) {
        s->root = tree_node_create(s->thread, 0, 0, node_address(s->place->node));
        if (s->root == NULL) {
            memory_give(memory, s->right, sizeof(*s->right));
            return HK_ERR_NOMEM;
        }
    }
    return HK_OK;
}

/* The new node becomes a child beside the old one. */
static void split_link(const struct split *s)
{
    struct tree *tree = s->tree;
    struct tree_item item = separator_item(s->boundary, node_address(s->right));
    struct tree_node *parent = s->place->parent;
    if (parent == NULL) {
        struct tree_image one;
        image_add(image_reset(&one), &item);
        node_fill(s->root, &one, 0, 1, s->level + 1u, 0);
        word_put(&tree->root, node_address(s->root));
        tree_count(&tree_counts_of(tree, s->thread)->inners, 1);
        return;
    }
    if (!node_has_room(word_get(&parent->shape), item.key.n, false)) {
        node_pack(parent);
    }
    node_insert(parent, (uint32_t)(s->place->index + 1), &item);
}

/* The items go to their halves; nothing can fail any more. link is the right node's. */
static void split_finish(const struct split *s, const struct tree_image *image, uint64_t link)
{
    struct tree_node *left = s->place->node, *right = s->right;
    uint64_t high = word_get(&left->high);
    struct bytes fence = blob_bytes(s->boundary);
    word_put(&right->low, s->boundary);
    word_put(&right->high, high);
    word_put(&right->link, link);
    node_fill(right, image, s->right_from, image->n, s->level,
              fences_prefix(fence, blob_bytes(high)));
    word_put(&left->high, s->boundary);
    node_fill(left, image, 0, s->left_n, s->level,
              fences_prefix(blob_bytes(word_get(&left->low)), fence));
    if (s->level == 0) {
        word_put(&left->link, node_address(right));
    }
    split_link(s);
    struct tree_counts *counts = tree_counts_of(s->tree, s->thread);
    tree_count(s->level == 0 ? &counts->leaves : &counts->inners, 1);
    split_unlock(s, true);
}

/* How many items make up half of the words: 1 .. n - 1. */
static uint32_t image_half(const struct tree_image *image, uint32_t prefix)
{
    uint32_t half = image_words(image, 0, image->n, prefix) / 2u, words = 0, i = 0;
    while (i < image->n - 1u && (i == 0 || words < half)) {
        words += image_words(image, i, i + 1u, prefix);
        i++;
    }
    return i;
}

/* The shortest key s with left < s <= right, as a blob; 0 past the memory limit. */
static uint64_t boundary_create(struct store_thread *thread, struct bytes left, struct bytes right)
{
    uint32_t n = fences_prefix(left, right) + 1u;
    HK_ASSERT(n <= right.n);
    struct blob *blob = memory_take(&thread->memory, blob_allocated(n), MEMORY_NORMAL);
    if (blob == NULL) {
        return 0;
    }
    *blob = (struct blob){.bytes = n};
    memcpy(blob_at(blob), right.at, n);
    return (uint64_t)(uintptr_t)blob;
}

/* key is what there is no room for. An insertion behind all keys moves none of them. */
static int split_leaf(struct split *s, struct bytes key)
{
    struct tree_node *n = s->place->node;
    struct tree_image image;
    image_add_node(image_reset(&image), n);
    HK_ASSERT(image.n >= 2u);
    bool behind = bytes_compare(image.items[image.n - 1u].key, key) < 0;
    s->left_n = behind ? image.n : image_half(&image, shape_prefix(s->place->shape));
    s->right_from = s->left_n;
    int err = split_take_nodes(s);
    if (err == HK_OK) {
        s->boundary = boundary_create(s->thread, image.items[s->left_n - 1u].key,
                                      behind ? key : image.items[s->left_n].key);
        if (s->boundary == 0) {
            memory_give(&s->thread->memory, s->right, sizeof(*s->right));
            if (s->root != NULL) {
                memory_give(&s->thread->memory, s->root, sizeof(*s->root));
            }
            err = HK_ERR_NOMEM;
        }
    }
    if (err != HK_OK) {
        split_unlock(s, false);
        return err;
    }
    split_finish(s, &image, word_get(&n->link));
    return HK_OK;
}

/* The middle separator moves up; its child becomes the leftmost one of the right node, and that
 * child's low fence is the separator's boundary. */
static int split_inner(struct split *s)
{
    struct tree_image image;
    image_add_node(image_reset(&image), s->place->node);
    HK_ASSERT(image.n >= 3u);
    uint32_t middle = image_half(&image, shape_prefix(s->place->shape));
    middle = middle < image.n - 2u ? middle : image.n - 2u;
    s->left_n = middle;
    s->right_from = middle + 1u;
    uint64_t child = image.items[middle].value;
    s->boundary = word_get(&node_at(child)->low);
    int err = split_take_nodes(s);
    if (err != HK_OK) {
        split_unlock(s, false);
        return err;
    }
    split_finish(s, &image, child);
    return HK_OK;
}

/* A separator of any length finds room. */
static bool inner_has_room(uint64_t shape)
{
    return node_has_room(shape, TREE_KEY_INLINE, true) &&
           node_has_room(shape, TREE_KEY_INLINE + 1u, true);
}

/* Goes down until a node has no room. false: something has changed meanwhile. */
static bool find_full(const struct tree *tree, struct bytes key, struct tree_place *place_out)
{
    if (!tree_enter(tree, place_out)) {
        return false;
    }
    while (shape_level(place_out->shape) > 0 && inner_has_room(place_out->shape)) {
        if (!tree_step(place_out, key, TREE_AT_MOST)) {
            return false;
        }
    }
    return true;
}

static bool lock_with_parent(const struct tree_place *p)
{
    if (!latch_lock(p->parent_latch, p->parent_seen)) {
        return false;
    }
    if (!latch_lock(&p->node->latch, p->seen)) {
        latch_unlock_unchanged(p->parent_latch, p->parent_seen);
        return false;
    }
    return true;
}

int tree_make_room(struct tree *tree, struct store_thread *thread, struct bytes key)
{
    for (uint32_t turns = 0;; spin_wait(&turns)) {
        struct tree_place p;
        if (!find_full(tree, key, &p)) {
            continue;
        }
        uint32_t level = shape_level(p.shape);
        if (level == 0 && node_has_room(p.shape, key.n, true)) {
            return HK_OK;
        }
        if (!lock_with_parent(&p)) {
            continue;
        }
        struct split s = {.tree = tree, .thread = thread, .place = &p, .level = level};
        int err = level == 0 ? split_leaf(&s, key) : split_inner(&s);
        if (err != HK_OK || level == 0) {
            return err;
        }
    }
}

/* ---- Merges ---- */

enum shrunk {
    SHRUNK_MERGED,
    SHRUNK_NOTHING, /* there is nothing to merge, or it would not fit */
    SHRUNK_ALONE,   /* the node is its parent's only child */
    SHRUNK_TOP,     /* the node is the root */
    SHRUNK_CHANGED, /* look again */
};

/* Two neighbours below one parent. */
struct pair {
    struct tree *tree;
    struct store_thread *thread;
    struct tree_node *parent, *left, *right;
    uint64_t parent_seen, left_seen, right_seen;
    uint32_t level;
    uint32_t right_index; /* in parent */
};

static void pair_unlock_unchanged(const struct pair *m)
{
    latch_unlock_unchanged(&m->right->latch, m->right_seen);
    latch_unlock_unchanged(&m->left->latch, m->left_seen);
    latch_unlock_unchanged(&m->parent->latch, m->parent_seen);
}

static bool pair_lock(const struct pair *m)
{
    if (!latch_lock(&m->parent->latch, m->parent_seen)) {
        return false;
    }
    if (!latch_lock(&m->left->latch, m->left_seen)) {
        latch_unlock_unchanged(&m->parent->latch, m->parent_seen);
        return false;
    }
    if (!latch_lock(&m->right->latch, m->right_seen)) {
        latch_unlock_unchanged(&m->left->latch, m->left_seen);
        latch_unlock_unchanged(&m->parent->latch, m->parent_seen);
        return false;
    }
    return true;
}

/* Words that the two may take together: some must be left for insertions, unless one is empty and
 * would stay for nothing. */
static uint32_t pair_limit(const struct pair *m)
{
    bool empty =
        shape_count(word_get(&m->left->shape)) == 0 || shape_count(word_get(&m->right->shape)) == 0;
    return empty ? TREE_NODE_WORDS : TREE_NODE_WORDS / 4u * 3u;
}

/* The pair is locked, and fits. */
static void pair_join(const struct pair *m, const struct tree_image *image, uint32_t prefix)
{
    struct tree_counts *counts = tree_counts_of(m->tree, m->thread);
    uint64_t boundary = word_get(&m->right->low);
    word_put(&m->left->high, word_get(&m->right->high));
    if (m->level == 0) {
        word_put(&m->left->link, word_get(&m->right->link));
    }
    node_fill(m->left, image, 0, image->n, m->level, prefix);
    (void)node_remove(m->parent, m->right_index);
    latch_unlock_obsolete(&m->right->latch, m->right_seen);
    latch_unlock(&m->left->latch, m->left_seen);
    latch_unlock(&m->parent->latch, m->parent_seen);
    retire_blob(&m->thread->retire, &m->right->retired);
    if (m->level == 0) {
        /* Nothing else names it: the two were below one parent. */
        retire_blob(&m->thread->retire, (struct blob *)(uintptr_t)boundary);
    }
    tree_count(m->level == 0 ? &counts->leaves : &counts->inners, -1);
}

static enum shrunk pair_merge(const struct pair *m)
{
    uint32_t used = shape_used(word_get(&m->left->shape)) + shape_used(word_get(&m->right->shape));
    if (used > TREE_NODE_WORDS) {
        /* A shorter prefix would only make it more. */
        return SHRUNK_NOTHING;
    }
    if (!pair_lock(m)) {
        return SHRUNK_CHANGED;
    }
    struct tree_image image;
    image_add_node(image_reset(&image), m->left);
    if (m->level > 0) {
        struct tree_item middle =
            separator_item(word_get(&m->right->low), word_get(&m->right->link));
        image_add(&image, &middle);
    }
    image_add_node(&image, m->right);
    uint32_t prefix =
        fences_prefix(blob_bytes(word_get(&m->left->low)), blob_bytes(word_get(&m->right->high)));
    if (image_words(&image, 0, image.n, prefix) > pair_limit(m)) {
        pair_unlock_unchanged(m);
        return SHRUNK_NOTHING;
    }
    pair_join(m, &image, prefix);
    return SHRUNK_MERGED;
}

/* Merges the node at p with its neighbour of that index in the parent. */
static enum shrunk merge_with(struct tree *tree, struct store_thread *thread,
                              const struct tree_place *p, int32_t neighbour)
{
    struct tree_node *other = node_at(node_child(p->parent, neighbour));
    uint64_t other_seen;
    if (!latch_same(p->parent_latch, p->parent_seen) || !latch_read(&other->latch, &other_seen)) {
        return SHRUNK_CHANGED;
    }
    bool is_right = neighbour > p->index;
    struct pair m = {
        .tree = tree,
        .thread = thread,
        .parent = p->parent,
        .parent_seen = p->parent_seen,
        .left = is_right ? p->node : other,
        .left_seen = is_right ? p->seen : other_seen,
        .right = is_right ? other : p->node,
        .right_seen = is_right ? other_seen : p->seen,
        .level = shape_level(p->shape),
        .right_index = (uint32_t)(is_right ? neighbour : p->index),
    };
    return pair_merge(&m);
}

/* A root without separators gives way to its only child. */
static enum shrunk shrink_root(struct tree *tree, struct store_thread *thread,
                               const struct tree_place *p)
{
    if (shape_level(p->shape) == 0 || shape_count(p->shape) > 0) {
        return latch_same(&p->node->latch, p->seen) ? SHRUNK_TOP : SHRUNK_CHANGED;
    }
    if (!lock_with_parent(p)) {
        return SHRUNK_CHANGED;
    }
    word_put(&tree->root, word_get(&p->node->link));
    latch_unlock_obsolete(&p->node->latch, p->seen);
    latch_unlock(p->parent_latch, p->parent_seen);
    retire_blob(&thread->retire, &p->node->retired);
    tree_count(&tree_counts_of(tree, thread)->inners, -1);
    return SHRUNK_CHANGED; /* the child may be another such root */
}

static enum shrunk shrink_once(struct tree *tree, struct store_thread *thread, struct bytes key,
                               uint32_t level)
{
    struct tree_place p;
    if (!tree_descend(tree, key, TREE_AT_MOST, level, &p)) {
        return SHRUNK_TOP;
    }
    if (p.parent == NULL) {
        return shrink_root(tree, thread, &p);
    }
    if (!tree_is_underfull(p.shape)) {
        return latch_same(&p.node->latch, p.seen) ? SHRUNK_NOTHING : SHRUNK_CHANGED;
    }
    int32_t count = (int32_t)shape_count(word_get(&p.parent->shape));
    if (count == 0) {
        return latch_same(p.parent_latch, p.parent_seen) ? SHRUNK_ALONE : SHRUNK_CHANGED;
    }
    enum shrunk shrunk = SHRUNK_NOTHING;
    if (p.index + 1 < count) {
        shrunk = merge_with(tree, thread, &p, p.index + 1);
    }
    if (shrunk == SHRUNK_NOTHING && p.index >= 0) {
        shrunk = merge_with(tree, thread, &p, p.index - 1);
    }
    return shrunk;
}

static enum shrunk shrink_level(struct tree *tree, struct store_thread *thread, struct bytes key,
                                uint32_t level)
{
    enum shrunk shrunk;
    uint32_t turns = 0;
    while ((shrunk = shrink_once(tree, thread, key, level)) == SHRUNK_CHANGED) {
        spin_wait(&turns);
    }
    return shrunk;
}

void tree_shrink(struct tree *tree, struct store_thread *thread, struct bytes key)
{
    bool again;
    do {
        /* A node that was alone has neighbours once its parent was merged. */
        bool alone = false;
        again = false;
        for (uint32_t level = 0;; level++) {
            enum shrunk shrunk = shrink_level(tree, thread, key, level);
            if (shrunk != SHRUNK_MERGED && shrunk != SHRUNK_ALONE) {
                break;
            }
            again = again || (alone && shrunk == SHRUNK_MERGED);
            alone = shrunk == SHRUNK_ALONE;
        }
    } while (again);
}
