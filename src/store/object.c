#include "store/object.h"

#include <string.h>

#include "base/assert.h"

static uint32_t lengths_of(uint32_t key_bytes, size_t value_bytes)
{
    uint32_t value = object_value_is_blob(value_bytes) ? OBJECT_BLOB : (uint32_t)value_bytes;
    return value << OBJECT_KEY_BITS | key_bytes;
}

static struct blob_ref blob_ref_of(struct blob *blob)
{
    return (struct blob_ref){(uint64_t)(uintptr_t)blob_at(blob), blob->bytes};
}

/* Plain stores all: the entry's release publishes them (S2). */
void object_fill(struct object *o, struct bytes key, const struct key_meta *meta,
                 struct bytes value, struct blob *blob)
{
    uint64_t words[2];
    memcpy(words, meta, sizeof(words));
    atomic_init(&o->version, 0);
    atomic_init(&o->lengths, lengths_of(key.n, value.n));
    atomic_init(&o->ts, words[0]);
    atomic_init(&o->rest, words[1]);

    uint8_t *at = (uint8_t *)(o + 1);
    size_t padded = object_padded(key.n);
    memset(at + key.n, 0, padded - key.n);
    if (key.n > 0) {
        memcpy(at, key.at, key.n);
    }
    at += padded;
    if (blob != NULL) {
        struct blob_ref ref = blob_ref_of(blob);
        memcpy(at, &ref, sizeof(ref));
        return;
    }
    memset(at + value.n, 0, object_padded(value.n) - value.n);
    if (value.n > 0) {
        memcpy(at, value.at, value.n);
    }
}

/* A word of the data, inside object_write_begin and _end. */
static void object_put(_Atomic uint64_t *word, uint64_t v)
{
    /* release: pairs with the acquires in object_read; a reader of this word sees the odd
     * version. */
    atomic_store_explicit(word, v, memory_order_release);
}

static uint32_t object_write_begin(struct object *o)
{
    /* relaxed both: only the holder of the bucket's lock writes; the data's releases order the odd
     * version before the data. */
    uint32_t version = atomic_load_explicit(&o->version, memory_order_relaxed);
    HK_CHECK((version & 1u) == 0);
    atomic_store_explicit(&o->version, version + 1, memory_order_relaxed);
    return version + 2;
}

static void object_write_end(struct object *o, uint32_t version)
{
    /* release: pairs with the acquire in object_read. */
    atomic_store_explicit(&o->version, version, memory_order_release);
}

static void object_put_meta(struct object *o, const struct key_meta *meta)
{
    uint64_t words[2];
    memcpy(words, meta, sizeof(words));
    object_put(&o->ts, words[0]);
    object_put(&o->rest, words[1]);
}

void object_write_meta(struct object *o, const struct key_meta *meta)
{
    uint32_t version = object_write_begin(o);
    object_put_meta(o, meta);
    object_write_end(o, version);
}

/* value may be a piece of the old one: the words are written from the first on, and none is read
 * after one behind it was written. */
static void object_put_inline(_Atomic uint64_t *words, struct bytes value)
{
    uint32_t whole = value.n / 8u;
    for (uint32_t i = 0; i < whole; i++) {
        uint64_t word;
        memcpy(&word, value.at + (size_t)i * 8u, 8);
        object_put(&words[i], word);
    }
    if (value.n % 8u != 0) {
        uint64_t word = 0;
        memcpy(&word, value.at + (size_t)whole * 8u, value.n % 8u);
        object_put(&words[whole], word);
    }
}

void object_write(struct object *o, const struct key_meta *meta, struct bytes value,
                  struct blob *blob)
{
    uint32_t key_bytes = object_key_bytes(o);
    _Atomic uint64_t *words = object_words(o, key_bytes);
    uint32_t version = object_write_begin(o);
    object_put_meta(o, meta);
    /* release: as in object_put. */
    atomic_store_explicit(&o->lengths, lengths_of(key_bytes, value.n), memory_order_release);
    if (blob != NULL) {
        struct blob_ref ref = blob_ref_of(blob);
        object_put(&words[0], ref.at);
        object_put(&words[1], ref.bytes);
    } else {
        object_put_inline(words, value);
    }
    object_write_end(o, version);
}

struct key_meta object_meta(const struct object *o)
{
    /* relaxed: no other thread writes while the bucket is locked. */
    uint64_t words[2] = {atomic_load_explicit(&o->ts, memory_order_relaxed),
                         atomic_load_explicit(&o->rest, memory_order_relaxed)};
    struct key_meta meta;
    memcpy(&meta, words, sizeof(meta));
    return meta;
}

static bool object_has_blob(const struct object *o)
{
    return object_lengths(o) >> OBJECT_KEY_BITS == OBJECT_BLOB;
}

struct bytes object_value(const struct object *o)
{
    const _Atomic uint64_t *words = object_words(o, object_key_bytes(o));
    if (object_has_blob(o)) {
        /* relaxed: no other thread writes while the bucket is locked. */
        uint64_t at = atomic_load_explicit(&words[0], memory_order_relaxed);
        uint64_t bytes = atomic_load_explicit(&words[1], memory_order_relaxed);
        return bytes_of((const void *)(uintptr_t)at, (uint32_t)bytes);
    }
    return bytes_of((const void *)(uintptr_t)words, object_lengths(o) >> OBJECT_KEY_BITS);
}

struct blob *object_blob(const struct object *o)
{
    if (!object_has_blob(o)) {
        return NULL;
    }
    return (struct blob *)((uintptr_t)object_value(o).at - sizeof(struct blob));
}

size_t object_allocated(const struct object *o)
{
    uint32_t lengths = object_lengths(o);
    uint32_t value = lengths >> OBJECT_KEY_BITS;
    size_t padded = value == OBJECT_BLOB ? BLOB_REF_BYTES : object_padded(value);
    return sizeof(struct object) + object_padded(lengths & OBJECT_KEY_MASK) + padded;
}

void object_kill(struct object *o, uint64_t link)
{
    /* release: pairs with the acquire in object_read; who sees the object dead sees the index
     * without it. */
    atomic_store_explicit(&o->version, OBJECT_DEAD, memory_order_release);
    object_put(&o->ts, link);
}

uint64_t object_link(const struct object *o)
{
    /* relaxed: written by this thread, or handed over with the list. */
    return atomic_load_explicit(&o->ts, memory_order_relaxed);
}
