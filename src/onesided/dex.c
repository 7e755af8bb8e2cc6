/* Invariants.
 *
 * D1. A node in the cache is what memory holds, or newer (dirty). Nobody else writes it.
 * D2. A node is not read while it is in the cache or on its way (`busy`), nor while it is being
 *     written back (`leaving`): whoever needs it then looks again later. So no READ meets a WRITE
 *     of the same node, and one READ is a consistent node.
 * D3. An operation changes nodes only between two postings, whole: who looks for a key that a split
 *     has moved finds it by `next`, whether the separator has been put one level up or not.
 * D4. The root grows in the step that splits it, so that a separator has a level to go to. */
#include "onesided/dex.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "onesided/tree_node.h"

#define BUSY_NS 1000u /* before a node on its way is looked for again */

bool dex_open(struct dex *d, const struct one_tree *tree, const struct memory *memory,
              uint64_t room, uint64_t cache_bytes)
{
    HK_ASSERT(tree->node_words == ONE_NODE_WORDS_MAX && room % DEX_NODE_BYTES == 0);
    *d = (struct dex){.memories = tree->nodes};
    list_init(&d->leaving);
    struct verb root = {.kind = VERB_READ, .at = tree->root, .local = &d->root, .words = 1};
    memory_apply(memory, &root);
    for (uint32_t i = 0; i < tree->nodes; i++) {
        d->next[i] = one_tree_take(tree, memory, i, room);
        d->end[i] = d->next[i] + room;
    }
    if (!ways_open(&d->ways, cache_bytes / DEX_COPY_BYTES)) {
        return false;
    }
    d->nodes = malloc(d->ways.sets * WAYS * DEX_NODE_BYTES);
    return d->nodes != NULL;
}

void dex_close(struct dex *d)
{
    ways_close(&d->ways);
    free(d->nodes);
    d->nodes = NULL;
}

static uint64_t *node_of(const struct dex *d, const struct way *way)
{
    return d->nodes + (uint64_t)(way - d->ways.places) * ONE_NODE_WORDS_MAX;
}

/* ---- Coming and going ---- */

static void arrived(struct dex_op *op)
{
    for (uint32_t i = 0; i < op->outs; i++) {
        list_remove(&op->out[i].link);
    }
    op->outs = 0;
    if (op->coming != NULL) {
        op->coming->busy = false;
        op->coming = NULL;
    }
}

/* A place for a node; what stood there is written back if it was changed. NULL: not now. */
static struct way *admit(struct dex_op *op, remote at, struct posting *p)
{
    struct dex *d = op->dex;
    struct way left;
    if (op->outs == DEX_OUT) {
        return NULL;
    }
    struct way *way = ways_admit(&d->ways, at, false, &left);
    if (way == NULL || left.id == 0 || !left.dirty) {
        return way;
    }
    struct dex_out *out = &op->out[op->outs++];
    out->at = left.id - 1;
    memcpy(out->node, node_of(d, way), DEX_NODE_BYTES);
    list_push_back(&d->leaving, &out->link);
    (void)post_write(p, out->at, out->node, ONE_NODE_WORDS_MAX);
    d->stats.written_back++;
    return way;
}

static bool is_leaving(const struct dex *d, remote at)
{
    list_each(link, &d->leaving)
    {
        if (list_entry(link, struct dex_out, link)->at == at) {
            return true;
        }
    }
    return false;
}

static bool wait(struct dex_op *op, struct posting *p)
{
    op->dex->stats.waits++;
    p->delay_ns = BUSY_NS;
    (void)post_read(p, op->at, &op->word, 1);
    return false;
}

static bool read_node(struct dex_op *op, struct posting *p)
{
    struct way *way = is_leaving(op->dex, op->at) ? NULL : admit(op, op->at, p);
    if (way == NULL) {
        return wait(op, p);
    }
    op->dex->stats.misses++;
    op->coming = way;
    way->busy = true;
    (void)post_read(p, op->at, node_of(op->dex, way), ONE_NODE_WORDS_MAX);
    return false;
}

/* ---- Nodes ---- */

/* The first entry whose key is not below; the number of entries: none. */
static uint32_t lower_bound(const uint64_t *node, uint64_t key)
{
    uint32_t low = 0, high = one_count(node);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (node[ONE_SLOTS + 2 * middle] < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A place for a new node that nothing leads to yet; it stays until it is said otherwise. NULL: not
 * now, or op->full. */
static struct way *fresh_node(struct dex_op *op, struct posting *p)
{
    struct dex *d = op->dex;
    uint32_t turn = d->turn;
    while (d->next[turn] == d->end[turn]) {
        turn = (turn + 1) % d->memories;
        if (turn == d->turn) {
            op->full = true;
            return NULL;
        }
    }
    struct way *way = admit(op, d->next[turn], p);
    if (way != NULL) {
        d->next[turn] += DEX_NODE_BYTES;
        d->turn = (turn + 1) % d->memories;
        way->dirty = way->busy = true;
    }
    return way;
}

static void grow(struct dex *d, struct way *above, uint64_t separator, remote left, remote right)
{
    uint64_t *node = node_of(d, above);
    uint32_t level = one_level(node_of(d, ways_look(&d->ways, left))) + 1;
    memset(node, 0, DEX_NODE_BYTES);
    node[ONE_SHAPE] = one_shape(level, 2);
    node[ONE_HIGH] = UINT64_MAX;
    node[ONE_SLOTS + 1] = left;
    node[ONE_SLOTS + 2] = separator;
    node[ONE_SLOTS + 3] = right;
    d->root = above->id - 1;
}

enum split { SPLIT_DONE, SPLIT_UP, SPLIT_WAIT };

static enum split split(struct dex_op *op, struct way *way, struct posting *p)
{
    struct dex *d = op->dex;
    bool root = op->at == d->root;
    way->busy = true;
    struct way *right = fresh_node(op, p);
    struct way *above = root && right != NULL ? fresh_node(op, p) : NULL;
    if (right == NULL || (root && above == NULL)) {
        way->busy = false;
        if (right != NULL) {
            d->next[remote_node(right->id - 1)] = right->id - 1;
            *right = (struct way){.id = 0};
        }
        return SPLIT_WAIT;
    }
    uint64_t *node = node_of(d, way), *half = node_of(d, right);
    uint64_t separator = one_split(node, half, right->id - 1);
    one_node_put(op->put_key < separator ? node : half, op->put_key, op->put_value);
    way->dirty = true;
    way->busy = false;
    right->busy = false;
    if (root) {
        grow(d, above, separator, op->at, right->id - 1);
        above->busy = false;
        return SPLIT_DONE;
    }
    op->put_key = separator;
    op->put_value = right->id - 1;
    op->level++;
    op->at = d->root;
    return SPLIT_UP;
}

/* ---- The machine ---- */

void dex_begin(struct dex_op *op, struct dex *d, enum dex_kind kind, uint64_t key, uint64_t value)
{
    HK_ASSERT(key < UINT64_MAX);
    op->dex = d;
    op->kind = (uint8_t)kind;
    op->key = op->put_key = key;
    op->value = op->put_value = value;
    op->found = op->full = op->over = false;
    op->coming = NULL;
    op->at = d->root;
    op->level = 0;
    op->outs = 0;
}

static enum split put(struct dex_op *op, struct way *way, struct posting *p)
{
    uint64_t *node = node_of(op->dex, way);
    if (one_count(node) < (ONE_NODE_WORDS_MAX - ONE_SLOTS) / 2) {
        one_node_put(node, op->put_key, op->put_value);
        way->dirty = true;
        return SPLIT_DONE;
    }
    return split(op, way, p);
}

/* The node of op->level that covers the key is there. */
static enum split act(struct dex_op *op, struct way *way, struct posting *p)
{
    uint64_t *node = node_of(op->dex, way);
    if (op->level > 0) {
        return put(op, way, p);
    }
    uint32_t i = lower_bound(node, op->put_key);
    uint64_t *slot = node + ONE_SLOTS + 2 * i;
    op->found = i < one_count(node) && slot[0] == op->put_key;
    if (op->kind == DEX_GET) {
        op->value = op->found ? slot[1] : 0;
        return SPLIT_DONE;
    }
    if (op->found) {
        slot[1] = op->value;
        way->dirty = true;
        return SPLIT_DONE;
    }
    return put(op, way, p);
}

bool dex_step(struct dex_op *op, struct posting *p)
{
    struct dex *d = op->dex;
    uint32_t before = p->n;
    arrived(op);
    while (!op->over) {
        struct way *way = ways_look(&d->ways, op->at);
        if (way == NULL) {
            return read_node(op, p);
        }
        if (way->busy) {
            return wait(op, p);
        }
        d->stats.hits++;
        uint64_t *node = node_of(d, way);
        if (op->put_key >= node[ONE_HIGH]) {
            op->at = node[ONE_NEXT];
        } else if (one_level(node) > op->level) {
            op->at = one_child(node, op->put_key);
        } else {
            HK_ASSERT(one_level(node) == op->level && op->put_key >= node[ONE_LOW]);
            enum split end = act(op, way, p);
            if (end == SPLIT_WAIT && !op->full) {
                return wait(op, p);
            }
            op->over = end == SPLIT_DONE || op->full;
            op->full = op->full && op->level == 0; /* above, the key is there, by way of `next` */
        }
    }
    return p->n == before;
}

bool dex_flush(struct dex *d, struct posting *p)
{
    bool none = true;
    for (uint64_t i = 0; i < d->ways.sets * WAYS && p->n < VERBS_MAX; i++) {
        struct way *way = &d->ways.places[i];
        HK_ASSERT(!way->busy);
        if (way->id != 0 && way->dirty) {
            (void)post_write(p, way->id - 1, node_of(d, way), ONE_NODE_WORDS_MAX);
            way->dirty = false;
            none = false;
            d->stats.written_back++;
        }
    }
    return none;
}
