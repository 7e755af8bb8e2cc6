#include "store/tree_node.h"

#include <string.h>

#include "base/assert.h"

uint32_t fences_prefix(struct bytes low, struct bytes high)
{
    uint32_t n = low.n < high.n ? low.n : high.n, i = 0;
    while (i < n && low.at[i] == high.at[i]) {
        i++;
    }
    return i;
}

/* ---- Search ---- */

enum cell_order { CELL_LESS, CELL_EQUAL, CELL_MORE, CELL_CHANGED };

static enum cell_order order_of(uint64_t cell, uint64_t key)
{
    return cell < key ? CELL_LESS : cell > key ? CELL_MORE : CELL_EQUAL;
}

/* The cell's key is out of line. */
static enum cell_order cell_compare_long(const struct tree_node *n, uint64_t seen, uint64_t cell,
                                         uint32_t prefix, struct bytes key)
{
    uint64_t address = word_get(&n->words[cell_offset(cell)]);
    if (!latch_same(&n->latch, seen)) {
        return CELL_CHANGED;
    }
    struct bytes own = blob_bytes(address);
    int order = bytes_compare(bytes_of(own.at + prefix, own.n - prefix),
                              bytes_of(key.at + prefix, key.n - prefix));
    return order < 0 ? CELL_LESS : order > 0 ? CELL_MORE : CELL_EQUAL;
}

/* The heads are equal. */
static enum cell_order cell_compare_rest(const struct tree_node *n, uint64_t seen, uint64_t cell,
                                         uint32_t prefix, struct bytes key)
{
    uint32_t length = cell_length(cell), known = prefix + TREE_HEAD_BYTES;
    if (length <= known || key.n <= known) {
        /* One of them ends within the head, and is what the other begins with. */
        return order_of(length, key.n);
    }
    uint32_t words = cell_rest_words(length, prefix);
    if (cell_offset(cell) + words > TREE_NODE_WORDS) {
        return CELL_CHANGED;
    }
    if (length > TREE_KEY_INLINE) {
        return cell_compare_long(n, seen, cell, prefix, key);
    }
    const _Atomic uint64_t *rest = &n->words[cell_offset(cell)];
    for (uint32_t i = 0; i < words && known + 8u * i < key.n; i++) {
        uint64_t own = word_get(&rest[i]), other = key_word(key, known + 8u * i);
        if (own != other) {
            return order_of(own, other);
        }
    }
    return order_of(length, key.n);
}

bool node_search(const struct tree_node *n, uint64_t seen, uint64_t shape, struct bytes key,
                 struct node_place *place_out)
{
    uint32_t prefix = shape_prefix(shape);
    /* In a node that has changed since, the key may be shorter than that. */
    prefix = prefix < key.n ? prefix : key.n;
    uint32_t head = key_head(key, prefix);
    uint32_t low = 0, high = shape_count(shape);
    high = high < TREE_SLOTS_MAX ? high : TREE_SLOTS_MAX;
    while (low < high) {
        uint32_t middle = (low + high) / 2u;
        uint64_t cell = word_get(&n->words[TREE_SLOT_WORDS * middle]);
        enum cell_order order = order_of(cell_head(cell), head);
        if (order == CELL_EQUAL) {
            order = cell_compare_rest(n, seen, cell, prefix, key);
            if (order == CELL_CHANGED) {
                return false;
            }
            if (order == CELL_EQUAL) {
                *place_out = (struct node_place){.at = middle, .equal = true};
                return true;
            }
        }
        if (order == CELL_LESS) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    *place_out = (struct node_place){.at = low, .equal = false};
    return true;
}

/* ---- One slot ---- */

bool node_has_room(uint64_t shape, uint32_t length, bool packed)
{
    uint32_t words = TREE_SLOT_WORDS + cell_rest_words(length, shape_prefix(shape));
    return words <= shape_gap(shape) + (packed ? shape_dead(shape) : 0);
}

/* Writes the rest of a key, words of it, in front of the heap. Works for nodes and for plain copies
 * alike: store is how a word is written. */
static uint64_t rest_word(const struct tree_item *item, uint32_t prefix, uint32_t i)
{
    if (item->key.n > TREE_KEY_INLINE) {
        return item->blob;
    }
    return key_word(item->key, prefix + TREE_HEAD_BYTES + 8u * i);
}

void node_insert(struct tree_node *n, uint32_t at, const struct tree_item *item)
{
    /* relaxed reads, here and below: nobody else writes. */
    uint64_t shape = atomic_load_explicit(&n->shape, memory_order_relaxed);
    uint32_t count = shape_count(shape), prefix = shape_prefix(shape);
    uint32_t words = cell_rest_words(item->key.n, prefix);
    HK_ASSERT(at <= count && node_has_room(shape, item->key.n, false));
    uint32_t heap = shape_heap(shape) - words;
    for (uint32_t i = 0; i < words; i++) {
        word_put(&n->words[heap + i], rest_word(item, prefix, i));
    }
    for (uint32_t i = TREE_SLOT_WORDS * count; i > TREE_SLOT_WORDS * at; i--) {
        word_put(&n->words[i + 1u], atomic_load_explicit(&n->words[i - 1u], memory_order_relaxed));
    }
    word_put(&n->words[TREE_SLOT_WORDS * at],
             cell_make(key_head(item->key, prefix), item->key.n, heap));
    word_put(&n->words[TREE_SLOT_WORDS * at + 1u], item->value);
    word_put(&n->shape,
             shape_make(count + 1u, heap, shape_dead(shape), shape_level(shape), prefix));
}

uint64_t node_remove(struct tree_node *n, uint32_t at)
{
    uint64_t shape = atomic_load_explicit(&n->shape, memory_order_relaxed);
    uint32_t count = shape_count(shape), prefix = shape_prefix(shape);
    HK_ASSERT(at < count);
    uint64_t cell = atomic_load_explicit(&n->words[TREE_SLOT_WORDS * at], memory_order_relaxed);
    uint32_t words = cell_rest_words(cell_length(cell), prefix);
    uint64_t blob = 0;
    if (cell_length(cell) > TREE_KEY_INLINE) {
        blob = atomic_load_explicit(&n->words[cell_offset(cell)], memory_order_relaxed);
    }
    for (uint32_t i = TREE_SLOT_WORDS * at; i < TREE_SLOT_WORDS * (count - 1u); i++) {
        word_put(&n->words[i],
                 atomic_load_explicit(&n->words[i + TREE_SLOT_WORDS], memory_order_relaxed));
    }
    uint32_t heap = shape_heap(shape), dead = shape_dead(shape);
    if (count == 1) {
        heap = TREE_NODE_WORDS;
        dead = 0;
    } else if (words > 0 && cell_offset(cell) == heap) {
        heap += words;
    } else {
        dead += words;
    }
    word_put(&n->shape, shape_make(count - 1u, heap, dead, shape_level(shape), prefix));
    return blob;
}

/* ---- Whole nodes ---- */

static void put_key_word(uint8_t *at, uint64_t word, uint32_t n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(at, &word, n < 8u ? n : 8u);
}

/* The key of a cell in a node that stands still: of words, with a prefix taken from low. */
static struct bytes cell_key(uint64_t cell, const uint64_t *rest, uint32_t prefix, struct bytes low,
                             uint8_t *space)
{
    uint32_t length = cell_length(cell);
    if (length > TREE_KEY_INLINE) {
        return blob_bytes(rest[0]);
    }
    if (prefix > 0) {
        memcpy(space, low.at, prefix);
    }
    uint32_t left = length - prefix;
    put_key_word(space + prefix, (uint64_t)cell_head(cell) << 32,
                 left < TREE_HEAD_BYTES ? left : TREE_HEAD_BYTES);
    for (uint32_t at = prefix + TREE_HEAD_BYTES, i = 0; at < length; at += 8u, i++) {
        put_key_word(space + at, rest[i], length - at);
    }
    return bytes_of(space, length);
}

struct bytes copy_key(const uint64_t *words, uint64_t shape, struct bytes low, uint32_t i,
                      uint8_t *space)
{
    uint64_t cell = words[TREE_SLOT_WORDS * i];
    return cell_key(cell, &words[cell_offset(cell) % TREE_NODE_WORDS], shape_prefix(shape), low,
                    space);
}

struct tree_item node_item(const struct tree_node *n, uint32_t at, uint8_t *space)
{
    uint64_t shape = word_get(&n->shape), cell = word_get(&n->words[TREE_SLOT_WORDS * at]);
    uint32_t prefix = shape_prefix(shape), words = cell_rest_words(cell_length(cell), prefix);
    uint64_t rest[TREE_CELL_WORDS_MAX] = {0};
    for (uint32_t i = 0; i < words; i++) {
        rest[i] = word_get(&n->words[cell_offset(cell) + i]);
    }
    return (struct tree_item){
        .key = cell_key(cell, rest, prefix, blob_bytes(word_get(&n->low)), space),
        .value = word_get(&n->words[TREE_SLOT_WORDS * at + 1u]),
        .blob = cell_length(cell) > TREE_KEY_INLINE ? rest[0] : 0,
    };
}

void image_add(struct tree_image *image, const struct tree_item *item)
{
    HK_ASSERT(image->n < TREE_IMAGE_ITEMS);
    struct tree_item *own = &image->items[image->n++];
    *own = *item;
    if (item->blob == 0) {
        HK_ASSERT(item->key.n <= TREE_KEY_INLINE);
        uint8_t *at = image->bytes + image->used;
        memmove(at, item->key.at, item->key.n);
        own->key = bytes_of(at, item->key.n);
        image->used += item->key.n;
    }
}

void image_add_node(struct tree_image *image, const struct tree_node *n)
{
    uint32_t count = shape_count(word_get(&n->shape));
    for (uint32_t i = 0; i < count; i++) {
        /* The copy is made in place: image_add moves nothing then. */
        struct tree_item item = node_item(n, i, image->bytes + image->used);
        image_add(image, &item);
    }
}

uint32_t image_words(const struct tree_image *image, uint32_t from, uint32_t to, uint32_t prefix)
{
    uint32_t words = 0;
    for (uint32_t i = from; i < to; i++) {
        words += TREE_SLOT_WORDS + cell_rest_words(image->items[i].key.n, prefix);
    }
    return words;
}

void node_fill(struct tree_node *n, const struct tree_image *image, uint32_t from, uint32_t to,
               uint32_t level, uint32_t prefix)
{
    uint32_t heap = TREE_NODE_WORDS;
    HK_ASSERT(image_words(image, from, to, prefix) <= TREE_NODE_WORDS);
    for (uint32_t i = from; i < to; i++) {
        const struct tree_item *item = &image->items[i];
        uint32_t words = cell_rest_words(item->key.n, prefix), slot = TREE_SLOT_WORDS * (i - from);
        heap -= words;
        for (uint32_t j = 0; j < words; j++) {
            word_put(&n->words[heap + j], rest_word(item, prefix, j));
        }
        word_put(&n->words[slot], cell_make(key_head(item->key, prefix), item->key.n, heap));
        word_put(&n->words[slot + 1u], item->value);
    }
    word_put(&n->shape, shape_make(to - from, heap, 0, level, prefix));
}

void node_pack(struct tree_node *n)
{
    struct tree_image image;
    image.n = 0;
    image.used = 0;
    image_add_node(&image, n);
    uint64_t shape = word_get(&n->shape);
    node_fill(n, &image, 0, image.n, shape_level(shape), shape_prefix(shape));
}
