/* Copies of inner nodes: a hash table by address. When it is full the least often used of a few
 * that a hand passes leaves; what the hand passes ages. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "onesided/tree_node.h"

#define LOOKED_AT 8u /* copies that the hand passes for each that leaves */

struct copy {
    remote at; /* 0: free */
    uint32_t uses;
    uint32_t next; /* in its list; number + 1 */
    uint64_t *node;
};

struct one_cache {
    uint32_t node_words;
    uint32_t max, n;
    uint32_t mask; /* of lists */
    uint32_t hand;
    uint32_t *lists;
    struct copy *copies;
    uint64_t *nodes;
    remote root;
    struct one_cache_stats stats;
};

struct one_cache *one_cache_new(const struct one_tree *tree, uint64_t nodes_max)
{
    struct one_cache *c = calloc(1, sizeof *c);
    HK_ASSERT(nodes_max < UINT32_MAX / 2);
    if (c == NULL) {
        return NULL;
    }
    c->node_words = tree->node_words;
    c->max = (uint32_t)nodes_max;
    c->mask = 1;
    while (c->mask < nodes_max) {
        c->mask *= 2;
    }
    c->mask--;
    c->lists = calloc((size_t)c->mask + 1, sizeof *c->lists);
    c->copies = calloc(nodes_max + 1, sizeof *c->copies);
    c->nodes = malloc((nodes_max + 1) * tree->node_words * sizeof *c->nodes);
    if (c->lists == NULL || c->copies == NULL || c->nodes == NULL) {
        one_cache_free(c);
        return NULL;
    }
    return c;
}

void one_cache_free(struct one_cache *c)
{
    if (c != NULL) {
        free(c->lists);
        free(c->copies);
        free(c->nodes);
        free(c);
    }
}

struct one_cache_stats one_cache_stats(const struct one_cache *c)
{
    return c->stats;
}

static uint32_t *list_of(const struct one_cache *c, remote at)
{
    uint64_t h = (at ^ at >> 29) * UINT64_C(0x9e3779b97f4a7c15);
    return &c->lists[(h >> 32) & c->mask];
}

static struct copy *find(const struct one_cache *c, remote at)
{
    for (uint32_t i = *list_of(c, at); i != 0; i = c->copies[i - 1].next) {
        if (c->copies[i - 1].at == at) {
            return &c->copies[i - 1];
        }
    }
    return NULL;
}

const uint64_t *one_cache_find(struct one_cache *c, remote at)
{
    struct copy *copy = find(c, at);
    if (copy == NULL) {
        c->stats.misses++;
        return NULL;
    }
    c->stats.hits++;
    copy->uses += copy->uses < UINT32_MAX;
    return copy->node;
}

static void unlink_copy(struct one_cache *c, struct copy *copy)
{
    uint32_t number = (uint32_t)(copy - c->copies) + 1;
    uint32_t *link = list_of(c, copy->at);
    while (*link != number) {
        link = &c->copies[*link - 1].next;
    }
    *link = copy->next;
}

static struct copy *make_room(struct one_cache *c)
{
    if (c->n < c->max) {
        struct copy *fresh = &c->copies[c->n];
        fresh->node = c->nodes + (size_t)c->n * c->node_words;
        c->n++;
        return fresh;
    }
    struct copy *victim = NULL;
    for (uint32_t i = 0; i < LOOKED_AT && i < c->n; i++) {
        struct copy *copy = &c->copies[c->hand];
        c->hand = (c->hand + 1) % c->n;
        if (victim == NULL || copy->uses < victim->uses) {
            victim = copy;
        }
        copy->uses /= 2;
    }
    unlink_copy(c, victim);
    return victim;
}

void one_cache_put(struct one_cache *c, remote at, const uint64_t *node)
{
    struct copy *copy = find(c, at);
    if (c->max == 0) {
        return;
    }
    if (copy == NULL) {
        copy = make_room(c);
        copy->at = at;
        copy->uses = 1;
        copy->next = *list_of(c, at);
        *list_of(c, at) = (uint32_t)(copy - c->copies) + 1;
    }
    memcpy(copy->node, node, (size_t)c->node_words * sizeof *node);
}

remote one_cache_root(const struct one_cache *c)
{
    return c->root;
}

void one_cache_set_root(struct one_cache *c, remote root)
{
    c->root = root;
}

void one_cache_stale(struct one_cache *c)
{
    c->stats.stale++;
}
