/* One key and its value in memory: layout, seqlock and blobs. The memory order is argued in
 * docs/STORE.md, S1 to S3. Writers hold the lock of the key's bucket; readers hold nothing. */
#ifndef HORKOS_STORE_OBJECT_H
#define HORKOS_STORE_OBJECT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/meta.h"
#include "store/spin.h"
#include "store/store.h"

struct object {
    _Atomic uint32_t version; /* odd: being written; OBJECT_DEAD: retired */
    _Atomic uint32_t lengths; /* key length, and value length or OBJECT_BLOB */
    _Atomic uint64_t ts;      /* struct key_meta, first half; of the dead: link of a retire list */
    _Atomic uint64_t rest;    /* struct key_meta, second half */
    /* key, padded to 8; value, padded to 8, or struct blob_ref */
};
_Static_assert(sizeof(struct object) == 24, "8-byte key + 32-byte value fill one cache line");

#define OBJECT_DEAD UINT32_MAX
#define OBJECT_KEY_BITS 17u
#define OBJECT_KEY_MASK ((1u << OBJECT_KEY_BITS) - 1u)
#define OBJECT_BLOB ((1u << (32u - OBJECT_KEY_BITS)) - 1u)
_Static_assert(STORE_KEY_MAX <= OBJECT_KEY_MASK, "the key length fits its bits");
_Static_assert(STORE_INLINE_MAX < OBJECT_BLOB, "no inline length means a blob");

/* An immutable value out of line. bytes and link are before the value, at a multiple of 8. */
struct blob {
    uint64_t link; /* of the retired: the next on a retire list; readers never look */
    uint64_t bytes;
};
_Static_assert(sizeof(struct blob) == 16, "the value behind it stays aligned");

/* What an object holds in place of a value that is out of line: two words under the seqlock. */
struct blob_ref {
    uint64_t at; /* address of the value's first byte */
    uint64_t bytes;
};
#define BLOB_REF_BYTES 16u
_Static_assert(sizeof(struct blob_ref) == BLOB_REF_BYTES, "two words");

static inline size_t object_padded(size_t n)
{
    return (n + 7u) & ~(size_t)7u;
}

static inline bool object_value_is_blob(size_t value_bytes)
{
    return value_bytes > STORE_INLINE_MAX;
}

/* Bytes to allocate for an object. */
static inline size_t object_bytes(size_t key_bytes, size_t value_bytes)
{
    size_t value = object_value_is_blob(value_bytes) ? BLOB_REF_BYTES : object_padded(value_bytes);
    return sizeof(struct object) + object_padded(key_bytes) + value;
}

static inline uint32_t object_lengths(const struct object *o)
{
    /* relaxed: the key's part never changes; for the value's part, see object_read. */
    return atomic_load_explicit(&o->lengths, memory_order_relaxed);
}

static inline uint32_t object_key_bytes(const struct object *o)
{
    return object_lengths(o) & OBJECT_KEY_MASK;
}

static inline struct bytes object_key(const struct object *o)
{
    return bytes_of(o + 1, object_key_bytes(o));
}

static inline _Atomic uint64_t *object_words(const struct object *o, uint32_t key_bytes)
{
    return (_Atomic uint64_t *)((uintptr_t)(o + 1) + object_padded(key_bytes));
}

/* Whether the object's key is key. Written out for short keys: a call costs as much as the rest of
 * a lookup. */
static inline bool object_has_key(const struct object *o, struct bytes key)
{
    if (object_key_bytes(o) != key.n) {
        return false;
    }
    const uint8_t *mine = (const uint8_t *)(o + 1);
    if (key.n == 8) {
        return get_u64(mine) == get_u64(key.at);
    }
    return key.n == 0 || memcmp(mine, key.at, key.n) == 0;
}

enum object_answer {
    OBJECT_OK,
    OBJECT_RETIRED, /* look the key up again */
    OBJECT_TOOBIG,  /* longer than capacity; the length is in value.n */
};

/* One seqlock read. */
static inline __attribute__((always_inline)) enum object_answer object_read(
    const struct object *o, void *buffer, uint32_t capacity, struct store_value *value_out)
{
    const _Atomic uint64_t *words = object_words(o, object_key_bytes(o));
    uint64_t meta[2], *copy = (uint64_t *)buffer;
    struct bytes value;
    enum object_answer answer;
    uint32_t before, turns = 0;
    for (;;) {
        /* acquire: pairs with the release in object_write_end; all of that write is visible. */
        before = atomic_load_explicit(&o->version, memory_order_acquire);
        if (__builtin_expect((before & 1u) != 0, 0)) {
            if (before == OBJECT_DEAD) {
                return OBJECT_RETIRED;
            }
            spin_wait(&turns);
            continue;
        }
        /* acquire, here and below: pairs with the releases of object_put; who sees a later write's
         * word also sees that write's odd version. */
        uint32_t value_bytes =
            atomic_load_explicit(&o->lengths, memory_order_acquire) >> OBJECT_KEY_BITS;
        meta[0] = atomic_load_explicit(&o->ts, memory_order_acquire);
        meta[1] = atomic_load_explicit(&o->rest, memory_order_acquire);
        answer = OBJECT_OK;
        value = bytes_of(buffer, value_bytes);
        uint32_t n = (value_bytes + 7u) / 8u;
        if (__builtin_expect(n * 8u <= capacity && value_bytes != OBJECT_BLOB, 1)) {
            /* Whatever length this is, the cell had or has it: the words are in it. */
            for (uint32_t i = 0; i < n; i++) {
                copy[i] = atomic_load_explicit(&words[i], memory_order_acquire);
            }
        } else if (value_bytes == OBJECT_BLOB) {
            uint64_t at = atomic_load_explicit(&words[0], memory_order_acquire);
            uint64_t bytes = atomic_load_explicit(&words[1], memory_order_acquire);
            value = bytes_of((const void *)(uintptr_t)at, (uint32_t)bytes);
        } else {
            value.at = NULL;
            answer = OBJECT_TOOBIG;
        }
        /* relaxed: the acquires above keep it behind them. */
        if (__builtin_expect(atomic_load_explicit(&o->version, memory_order_relaxed) == before,
                             1)) {
            break;
        }
    }
    memcpy(&value_out->meta, meta, sizeof(meta));
    value_out->value = value;
    value_out->found = true;
    return answer;
}

/* ---- Under the bucket's lock ---- */

/* Fills new memory with a whole object that nobody can see yet. value is copied if it goes inline;
 * if it is a blob, blob is its place and this takes it over. */
void object_fill(struct object *o, struct bytes key, const struct key_meta *meta,
                 struct bytes value, struct blob *blob);

/* Publishes metadata alone, or metadata and value in place: the caller knows that the new value
 * stays in the cell's class. value may lie in the object itself. */
void object_write_meta(struct object *o, const struct key_meta *meta);
void object_write(struct object *o, const struct key_meta *meta, struct bytes value,
                  struct blob *blob);

struct key_meta object_meta(const struct object *o);
/* The value, in place. */
struct bytes object_value(const struct object *o);
/* The value's blob; NULL when it is inline. */
struct blob *object_blob(const struct object *o);
/* Bytes that the object was allocated with, its blob not included. */
size_t object_allocated(const struct object *o);

/* The object is no longer in the index: readers that still come by look again. link is kept for
 * object_link. */
void object_kill(struct object *o, uint64_t link);
uint64_t object_link(const struct object *o);

static inline size_t blob_allocated(size_t value_bytes)
{
    return sizeof(struct blob) + value_bytes;
}

static inline uint8_t *blob_at(struct blob *blob)
{
    return (uint8_t *)(blob + 1);
}

#endif
