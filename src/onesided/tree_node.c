#include "onesided/tree_node.h"

#include <string.h>

#include "base/assert.h"

bool one_leaf_find(const uint64_t *node, uint64_t key, uint64_t *value_out)
{
    uint32_t n = one_count(node);
    for (uint32_t i = 0; i < n; i++) {
        if (node[ONE_SLOTS + 2 * i] == key) {
            *value_out = node[ONE_SLOTS + 2 * i + 1];
            return true;
        }
    }
    return false;
}

/* The number of entries of an inner node that are not above the key. */
static uint32_t upper_bound(const uint64_t *node, uint64_t key)
{
    uint32_t low = 0, high = one_count(node);
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (node[ONE_SLOTS + 2 * middle] <= key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

remote one_child(const uint64_t *node, uint64_t key)
{
    uint32_t i = upper_bound(node, key);
    HK_ASSERT(i > 0); /* the first entry's key is the node's low fence */
    return node[ONE_SLOTS + 2 * (i - 1) + 1];
}

void one_inner_put(uint64_t *node, uint64_t key, uint64_t value)
{
    uint32_t i = upper_bound(node, key), n = one_count(node);
    uint64_t *slot = node + ONE_SLOTS + 2u * i;
    memmove(slot + 2, slot, (size_t)(n - i) * 16u);
    slot[0] = key;
    slot[1] = value;
}

void one_node_put(uint64_t *node, uint64_t key, uint64_t value)
{
    one_inner_put(node, key, value);
    node[ONE_SHAPE] = one_shape(one_level(node), one_count(node) + 1);
}

/* Few entries, nearly sorted: in place. */
static void sort(uint64_t *slots, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint64_t key = slots[2 * i], value = slots[2 * i + 1];
        uint32_t at = i;
        while (at > 0 && slots[2 * at - 2] > key) {
            slots[2 * at] = slots[2 * at - 2];
            slots[2 * at + 1] = slots[2 * at - 1];
            at--;
        }
        slots[2 * at] = key;
        slots[2 * at + 1] = value;
    }
}

uint64_t one_split(uint64_t *node, uint64_t *right, remote at)
{
    uint32_t n = one_count(node), left_n = n / 2;
    HK_ASSERT(n >= 2);
    sort(node + ONE_SLOTS, n);
    uint64_t separator = node[ONE_SLOTS + 2 * left_n];
    memset(right, 0, ONE_NODE_WORDS_MAX * sizeof *right);
    right[ONE_SHAPE] = one_shape(one_level(node), n - left_n);
    right[ONE_LOW] = separator;
    right[ONE_HIGH] = node[ONE_HIGH];
    right[ONE_NEXT] = node[ONE_NEXT];
    memcpy(right + ONE_SLOTS, node + ONE_SLOTS + 2u * left_n, (size_t)(n - left_n) * 16u);
    node[ONE_SHAPE] = one_shape(one_level(node), left_n);
    node[ONE_HIGH] = separator;
    node[ONE_NEXT] = at;
    return separator;
}
