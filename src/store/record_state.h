/* The structs behind record.h, and its cells, for the files of the records only. */
#ifndef HORKOS_STORE_RECORD_STATE_H
#define HORKOS_STORE_RECORD_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "store/object.h"
#include "store/record.h"
#include "store/slab.h"
#include "store/spin.h"
#include "store/state.h"

/* At the start of every cell; the key and the value follow. */
struct record {
    _Atomic uint64_t version;
    _Atomic uint64_t lock;    /* of the lock table's; 0 in a cell that was never used */
    _Atomic uint64_t lengths; /* in a free cell: the slot of the next free one, and 1 */
};
#define RECORD_HEADER_WORDS 3u
_Static_assert(sizeof(struct record) == RECORD_HEADER_WORDS * 8u, "8 + 32 bytes fill a cache line");

/* A value of any length can become one out of line, address and length, where it is. */
#define RECORD_VALUE_WORDS_MIN 2u
#define RECORD_BYTES_MAX (sizeof(struct record) + RECORD_KEY_INLINE + STORE_INLINE_MAX)

/* ---- Hints and versions ---- */

#define RECORD_CELL_BITS 11u
#define RECORD_SLAB_BYTES 65536u
#define RECORD_PAGE_SLABS 4096u
#define RECORD_PAGES 4096u
#define RECORD_SLABS_MAX ((uint64_t)RECORD_PAGE_SLABS * RECORD_PAGES)
#define RECORD_GENERATION_MAX ((1u << RECORD_GENERATION_BITS) - 1u)
_Static_assert(RECORD_SLAB_BYTES / (sizeof(struct record) + 24u) <= 1u << RECORD_CELL_BITS,
               "every cell has a number");

/* Bit 0 a writer is at work, 1..38 a count, 39 live, 40..63 the generation, never 0 in a hint. */
#define VERSION_WRITING ((uint64_t)1)
#define VERSION_STEP ((uint64_t)2)
#define VERSION_LIVE ((uint64_t)1 << 39)
#define VERSION_GENERATION_AT 40u

static inline uint64_t hint_make(uint64_t slot, uint32_t generation)
{
    return slot << RECORD_GENERATION_BITS | generation;
}

static inline uint64_t hint_slot(uint64_t hint)
{
    return hint >> RECORD_GENERATION_BITS;
}

static inline uint32_t hint_generation(uint64_t hint)
{
    return (uint32_t)hint & RECORD_GENERATION_MAX;
}

static inline uint32_t version_generation(uint64_t version)
{
    return (uint32_t)(version >> VERSION_GENERATION_AT);
}

/* Whether the cell is in the life that the hint is of. */
static inline bool version_is_of(uint64_t version, uint64_t hint)
{
    return (version & VERSION_LIVE) != 0 && version_generation(version) == hint_generation(hint);
}

/* The count goes on, through all lives; it may come round, the other bits stay. */
static inline uint64_t version_next(uint64_t version)
{
    uint64_t count = VERSION_LIVE - 1u - VERSION_WRITING;
    return (version & ~(VERSION_LIVE - 1u)) | ((version + VERSION_STEP) & count);
}

/* ---- Slabs ---- */

#define RECORD_CLASSES 64u /* those of slab.h up to RECORD_BYTES_MAX */

struct record_class {
    _Alignas(64) struct spin lock;
    uint64_t free;      /* slot and 1; 0: none */
    uint64_t fresh;     /* the next slot that was never used */
    uint64_t fresh_end; /* of the class's last slab */
    _Atomic int64_t live;
    _Atomic uint64_t spent;
};

/* Of the root: the addresses of pages. Of a page: the addresses of slabs, each with its class in
 * the bits that are 0 in it. 0: none yet. */
struct record_page {
    _Atomic uint64_t entries[RECORD_PAGE_SLABS];
};
_Static_assert(RECORD_PAGES == RECORD_PAGE_SLABS, "the root is a page of pages");

struct records {
    struct store *store;
    struct record_class classes[RECORD_CLASSES];
    uint32_t cells_of[RECORD_CLASSES];
    _Alignas(64) struct spin lock; /* of what follows; taken inside a class's lock */
    uint8_t *span;                 /* what is left of it: span_left bytes from here */
    uint32_t span_left;
    _Atomic uint64_t slabs_n;
    _Atomic uint64_t cells_n;
    struct record_page *root; /* never changes */
};

/* A cell, as long as the records are. words is how many it has, header included. */
struct record_cell {
    struct record *record;
    uint32_t class;
    uint32_t words;
};

/* false: the slot names no cell. */
bool record_cell_at(const struct records *records, uint64_t slot, struct record_cell *cell_out);

/* A cell that nobody uses; its version is not live. HK_ERR_NOMEM. */
int record_cell_take(struct records *records, struct store_thread *thread, size_t bytes,
                     uint64_t *slot_out, struct record_cell *cell_out)
    __attribute__((warn_unused_result));
/* The version is not live any more. A cell that has had all its generations is left alone. */
void record_cell_give(struct records *records, uint64_t slot, const struct record_cell *cell);

static inline _Atomic uint64_t *record_words(struct record *r)
{
    return (_Atomic uint64_t *)(void *)(r + 1);
}

#endif
