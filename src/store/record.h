/* Records behind hints: lock word, key and value in cells that stay cells of their size for ever
 * (docs/ORDERED_INDEX.md, 8). A hint is checked before use: it never answers for another key, nor
 * for another life of the cell. Hints may come from anywhere: any 64 bits are safe, 0 is none.
 *
 * Threads. Any number, each with its store_thread, online. Reads take no lock. Writes of one record
 * never mix; whose turn it is the lock table says.
 *
 * Memory is the store's. Cells are counted against memory_max by slabs of 64 KiB, which stay with
 * the records; keys and values out of line come back (store_quiescent).
 *
 * Bounds. Keys of 1 to STORE_KEY_MAX bytes, values up to the store's maximum; others are
 * HK_ERR_INVALID and HK_ERR_TOOBIG. */
#ifndef HORKOS_STORE_RECORD_H
#define HORKOS_STORE_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "store/store.h"

#define RECORD_GENERATION_BITS 24u
#define RECORD_KEY_INLINE 128u

struct records;

/* The records end with the store. HK_ERR_NOMEM. */
int records_create(struct store *store, struct store_thread *thread, struct records **records_out)
    __attribute__((warn_unused_result));

/* A new record, and the hint that names it. HK_ERR_NOMEM: there is none. */
int record_create(struct records *records, struct store_thread *thread, struct bytes key,
                  struct bytes value, uint64_t *hint_out) __attribute__((warn_unused_result));

/* A value in two parts, one behind the other; the first a multiple of 8 bytes, STORE_INLINE_MAX at
 * most. room: of a new record, bytes that a later value is to find room for in its cell; no more
 * than STORE_INLINE_MAX. */
struct record_value {
    struct bytes head;
    struct bytes rest;
    uint32_t room;
};
int record_create_parts(struct records *records, struct store_thread *thread, struct bytes key,
                        const struct record_value *value, uint64_t *hint_out)
    __attribute__((warn_unused_result));

/* The value. Up to STORE_INLINE_MAX bytes it is copied to buffer (8-byte aligned; capacity a
 * multiple of 8), or, like any longer one, returned in place, good until the thread's next
 * store_quiescent. HK_ERR_NOTFOUND: the hint is not of a record with that key. HK_ERR_TOOBIG: the
 * value would have to be copied and is longer than capacity; value_out->n says how long. */
int record_read(const struct records *records, struct store_thread *thread, uint64_t hint,
                struct bytes key, void *buffer, uint32_t capacity, struct bytes *value_out)
    __attribute__((warn_unused_result));

/* The value's beginning, up to `most` bytes (a multiple of 8), as record_read. */
int record_read_head(const struct records *records, struct store_thread *thread, uint64_t hint,
                     struct bytes key, void *buffer, uint32_t most, struct bytes *head_out)
    __attribute__((warn_unused_result));

/* The key of the record that a hint names: copied to buffer (RECORD_KEY_INLINE bytes, aligned to
 * 8), or, a longer one, in place, good until the thread's next store_quiescent.
 * HK_ERR_NOTFOUND: the hint is of no record. */
int record_key(const struct records *records, struct store_thread *thread, uint64_t hint,
               void *buffer, struct bytes *key_out) __attribute__((warn_unused_result));

/* Brings the cell that a hint names, if it names one, towards the cache: its beginning, or also
 * what stands of the value in it. */
void record_prefetch(const struct records *records, uint64_t hint, bool value);

/* Another value. HK_ERR_NOTFOUND as above, HK_ERR_NOMEM: nothing changed. */
int record_write(struct records *records, struct store_thread *thread, uint64_t hint,
                 struct bytes key, struct bytes value) __attribute__((warn_unused_result));

/* Whether a value of so many bytes stays in the cell that the hint names: writing it needs no
 * memory. */
bool record_fits(const struct records *records, uint64_t hint, uint32_t key_bytes, uint32_t bytes);
/* Memory for a value that does not, to be written later; NULL: there is none. Given back by any
 * thread; NULL is none. */
void *record_spare_take(struct store_thread *thread, uint32_t bytes);
void record_spare_give(struct store_thread *thread, void *spare);
/* As record_write. What *spare has room for needs no other memory; it is NULL afterwards if it was
 * used. */
int record_write_parts(struct records *records, struct store_thread *thread, uint64_t hint,
                       struct bytes key, const struct record_value *value, void **spare)
    __attribute__((warn_unused_result));

/* The record is no more; all its hints are stale from now on. HK_ERR_NOTFOUND as above. */
int record_free(struct records *records, struct store_thread *thread, uint64_t hint,
                struct bytes key) __attribute__((warn_unused_result));

/* The same of a record whose hint nobody else was told. */
void record_drop(struct records *records, struct store_thread *thread, uint64_t hint);

/* Bytes that a value may have. */
uint32_t record_value_max(const struct records *records);

/* Whether the hint is of a record with that key, at this moment. */
bool record_is(const struct records *records, uint64_t hint, struct bytes key);

/* The lock word of the cell that a hint names, alive or not; NULL if it names none. It stays where
 * it is for ever, is 0 in a cell that was never used, and only its users change it: a record may
 * be freed, and its cell used again, while somebody holds the lock. After taking it, ask record_is.
 */
_Atomic uint64_t *record_lock(const struct records *records, uint64_t hint);

struct record_stats {
    uint64_t records;
    uint64_t cells; /* in slabs, used or not */
    uint64_t slabs;
    uint64_t spent; /* cells whose generations are used up */
};
/* Approximate while others write. */
void records_stats(const struct records *records, struct record_stats *stats_out);

#endif
