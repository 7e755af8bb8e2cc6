#include "onesided/tree.h"

#include <string.h>

#include "base/assert.h"
#include "onesided/tree_node.h"

#define BUSY_NS 1000u /* before a node that is being written, or locked, is looked at again */

/* ---- Reading a node ---- */

static void post_node(struct one_walk *w, const struct one_tree *tree, struct posting *p)
{
    (void)post_read(p, w->at, &w->before, 1);
    (void)post_read(p, w->at, w->node, tree->node_words);
    (void)post_read(p, w->at, &w->after, 1);
}

static bool consistent(const struct one_walk *w, const struct one_tree *tree)
{
    uint32_t n = one_count(w->node);
    return (w->before & 1u) == 0 && w->before == w->after && n <= one_fanout(tree) &&
           one_level(w->node) < ONE_LEVELS_MAX;
}

void one_walk_begin(struct one_walk *w, uint64_t key, uint32_t level)
{
    w->key = key;
    w->level = level;
    w->state = ONE_WALK_BEGIN;
    w->fresh = false;
    w->found = false;
    w->at = 0;
    w->value = 0;
    w->root_level = 0;
}

/* Down through copies as far as they reach; then w->at is to be read. */
static void descend(struct one_walk *w, const struct one_tree *tree, struct one_cache *cache)
{
    const uint64_t *copy;
    while (!w->fresh && (copy = one_cache_find(cache, w->at)) != NULL) {
        if (one_level(copy) <= w->level || !one_covers(copy, w->key)) {
            return;
        }
        w->at = one_child(copy, w->key);
    }
    (void)tree;
}

static void finish(struct one_walk *w)
{
    w->state = ONE_WALK_DONE;
    if (w->level == 0) {
        w->found = one_leaf_find(w->node, w->key, &w->value);
    }
}

/* The node at w->at has been read. True: it is the one. */
static bool arrived(struct one_walk *w, const struct one_tree *tree, struct one_cache *cache)
{
    if (w->key < w->node[ONE_LOW] || one_level(w->node) < w->level) {
        /* A copy led astray, or the root has grown. */
        one_cache_stale(cache);
        w->fresh = true;
        w->state = ONE_WALK_BEGIN;
        return false;
    }
    if (w->key >= w->node[ONE_HIGH]) {
        w->at = w->node[ONE_NEXT];
        return false;
    }
    if (one_level(w->node) == w->level) {
        finish(w);
        return true;
    }
    one_cache_put(cache, w->at, w->node);
    w->at = one_child(w->node, w->key);
    descend(w, tree, cache);
    return false;
}

bool one_walk_step(struct one_walk *w, const struct one_tree *tree, struct one_cache *cache,
                   struct posting *p)
{
    if (w->state == ONE_WALK_ROOT) {
        one_cache_set_root(cache, w->root);
        w->at = w->root;
        w->state = ONE_WALK_NODE;
        descend(w, tree, cache);
        post_node(w, tree, p);
        return false;
    }
    if (w->state == ONE_WALK_NODE) {
        if (!consistent(w, tree)) {
            p->delay_ns = BUSY_NS;
            post_node(w, tree, p);
            return false;
        }
        if (arrived(w, tree, cache)) {
            return true;
        }
        if (w->state == ONE_WALK_NODE) {
            post_node(w, tree, p);
            return false;
        }
    }
    HK_ASSERT(w->state == ONE_WALK_BEGIN);
    w->at = one_cache_root(cache);
    if (w->at == 0 || w->fresh) {
        (void)post_read(p, tree->root, &w->root, 1);
        w->state = ONE_WALK_ROOT;
        return false;
    }
    descend(w, tree, cache);
    w->state = ONE_WALK_NODE;
    post_node(w, tree, p);
    return false;
}

/* ---- Insertion ---- */

void one_insert_begin(struct one_insert *in, uint64_t key, uint64_t value)
{
    in->key = key;
    in->value = value;
    in->level = 0;
    in->state = ONE_INSERT_WALK;
    in->exists = false;
    in->split = false;
    one_walk_begin(&in->walk, key, 0);
}

static bool post_lock(struct one_insert *in, const struct one_tree *tree, struct posting *p)
{
    in->first = post_cas(p, in->walk.at + 8u * ONE_LOCK, 0, 1);
    (void)post_read(p, in->walk.at, in->walk.node, tree->node_words);
    in->state = ONE_INSERT_LOCK;
    return false;
}

static void post_unlock(struct one_insert *in, struct posting *p)
{
    in->words[2] = 0;
    (void)post_write(p, in->walk.at + 8u * ONE_LOCK, &in->words[2], 1);
}

/* What was changed of the node, from word `from` on, between two versions. */
static void post_begin(struct one_insert *in, struct posting *p)
{
    in->words[0] = in->walk.node[ONE_VERSION] + 1;
    in->words[1] = in->walk.node[ONE_VERSION] + 2;
    (void)post_write(p, in->walk.at, &in->words[0], 1);
}

static void post_end(struct one_insert *in, struct posting *p)
{
    (void)post_write(p, in->walk.at, &in->words[1], 1);
    post_unlock(in, p);
}

/* There is a free slot: a leaf's next one alone is written, an inner node whole. */
static bool put(struct one_insert *in, struct posting *p)
{
    uint64_t *node = in->walk.node;
    uint32_t n = one_count(node);
    post_begin(in, p);
    if (in->level == 0) {
        uint64_t *slot = node + ONE_SLOTS + 2u * n;
        slot[0] = in->key;
        slot[1] = in->value;
        (void)post_write(p, in->walk.at + 8u * (ONE_SLOTS + 2u * n), slot, 2);
    } else {
        one_inner_put(node, in->key, in->value);
        (void)post_write(p, in->walk.at + 8u * ONE_SLOTS, node + ONE_SLOTS, 2u * (n + 1));
    }
    node[ONE_SHAPE] = one_shape(in->level, n + 1);
    (void)post_write(p, in->walk.at + 8u * ONE_SHAPE, node + ONE_SHAPE, 1);
    post_end(in, p);
    in->state = ONE_INSERT_WRITE;
    return false;
}

static bool post_room(struct one_insert *in, const struct one_tree *tree, struct posting *p,
                      uint8_t state)
{
    in->turn = (in->turn + 1) % tree->nodes;
    in->first = post_add(p, tree->bump[in->turn], 8u * tree->node_words);
    in->state = state;
    return false;
}

static void take_room(struct one_insert *in, const struct posting *p)
{
    in->fresh = remote_of(in->turn, p->verbs[in->first].seen);
}

/* The upper half goes to a node of its own, which is there before anything leads to it. */
static bool split(struct one_insert *in, const struct one_tree *tree, struct posting *p)
{
    uint64_t *node = in->walk.node;
    uint64_t separator = one_split(node, in->right, in->fresh);
    uint64_t *side = in->key < separator ? node : in->right;
    one_node_put(side, in->key, in->value);
    (void)post_write(p, in->fresh, in->right, tree->node_words);
    post_begin(in, p);
    (void)post_write(p, in->walk.at + 8u * ONE_SHAPE, node + ONE_SHAPE,
                     tree->node_words - ONE_SHAPE);
    post_end(in, p);
    in->key = separator;
    in->value = in->fresh;
    in->split = true;
    in->state = ONE_INSERT_SPLIT;
    return false;
}

/* After a split: the separator goes one level up, or there is no such level yet. */
static bool go_up(struct one_insert *in, const struct one_tree *tree, struct posting *p)
{
    bool was_root = in->walk.node[ONE_LOW] == 0 && in->right[ONE_HIGH] == UINT64_MAX;
    if (was_root) {
        return post_room(in, tree, p, ONE_INSERT_ROOT);
    }
    in->level++;
    in->state = ONE_INSERT_WALK;
    one_walk_begin(&in->walk, in->key, in->level);
    return false;
}

/* Two nodes alone on their level get a root above them. */
static bool grow(struct one_insert *in, const struct one_tree *tree, struct posting *p)
{
    uint64_t *root = in->right;
    memset(root, 0, sizeof in->right);
    root[ONE_SHAPE] = one_shape(in->level + 1, 2);
    root[ONE_HIGH] = UINT64_MAX;
    root[ONE_SLOTS] = 0;
    root[ONE_SLOTS + 1] = in->walk.at;
    root[ONE_SLOTS + 2] = in->key;
    root[ONE_SLOTS + 3] = in->value;
    (void)post_write(p, in->fresh, root, tree->node_words);
    (void)post_cas(p, tree->root, in->walk.at, in->fresh);
    in->state = ONE_INSERT_GROW;
    return false;
}

static bool locked(struct one_insert *in, const struct one_tree *tree, const struct posting *done,
                   struct posting *p)
{
    uint64_t *node = in->walk.node;
    uint64_t value;
    if (done->verbs[in->first].seen != 0) {
        p->delay_ns = BUSY_NS;
        return post_lock(in, tree, p);
    }
    if (in->key >= node[ONE_HIGH]) {
        post_unlock(in, p);
        in->walk.at = node[ONE_NEXT];
        return post_lock(in, tree, p); /* behind the unlocking, in one batch */
    }
    if (in->level == 0 && one_leaf_find(node, in->key, &value)) {
        in->exists = true;
        post_unlock(in, p);
        in->state = ONE_INSERT_UNLOCK;
        return false;
    }
    return one_count(node) < one_fanout(tree) ? put(in, p)
                                              : post_room(in, tree, p, ONE_INSERT_ROOM);
}

static bool go_on(struct one_insert *in, const struct one_tree *tree, const struct posting *done,
                  struct posting *p)
{
    switch ((enum one_insert_state)in->state) {
    case ONE_INSERT_LOCK:
        return locked(in, tree, done, p);
    case ONE_INSERT_ROOM:
        take_room(in, done);
        return split(in, tree, p);
    case ONE_INSERT_SPLIT:
        return go_up(in, tree, p);
    case ONE_INSERT_ROOT:
        take_room(in, done);
        return grow(in, tree, p);
    case ONE_INSERT_WRITE:
    case ONE_INSERT_GROW:
    case ONE_INSERT_UNLOCK:
    case ONE_INSERT_WALK:
    case ONE_INSERT_DONE:
        break;
    }
    in->state = ONE_INSERT_DONE;
    return true;
}

bool one_insert_step(struct one_insert *in, const struct one_tree *tree, struct one_cache *cache,
                     const struct posting *done, struct posting *p)
{
    HK_ASSERT(in->state != ONE_INSERT_DONE);
    if (in->state != ONE_INSERT_WALK && go_on(in, tree, done, p)) {
        return true;
    }
    if (in->state == ONE_INSERT_WALK) {
        if (one_walk_step(&in->walk, tree, cache, p)) {
            return post_lock(in, tree, p);
        }
    }
    return false;
}
