/* The structs behind lotus_table.h, and the locks by name, for the files of the table only.
 *
 * Latches. A bucket's latch guards the locks whose names fall into it, their requests, and what the
 * table keeps beside those. Inside it may be taken: the latches of the index and of the store, and
 * the pool's. Two buckets' latches at a time are taken by what needs both names unowned (the
 * cleaner, a row that goes), the lower bucket first; everybody else holds one. */
#ifndef HORKOS_NODE_LOTUS_TABLE_STATE_H
#define HORKOS_NODE_LOTUS_TABLE_STATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/assert.h"
#include "node/lotus_table.h"
#include "store/record.h"
#include "store/spin.h"
#include "store/tree.h"

/* ---- Locks by name ---- */

/* A gap without a key: the one behind the last. */
struct lotus_name {
    struct bytes key;
    uint64_t hash;
    bool gap;
};

/* One that somebody owns or waits for; the key follows. */
struct named_lock {
    struct lock lock;
    uint32_t hash; /* the half that does not choose the bucket */
    uint32_t kind; /* the key's length, and whether it is a gap in bit 0 */
    struct named_lock *next;
};

#define BUCKET_KEY_BYTES 32u
struct bucket {
    _Alignas(64) struct spin latch;
    uint32_t unused;
    struct named_lock first; /* free if nobody owns or waits; the others are the store's memory */
    uint8_t key[BUCKET_KEY_BYTES]; /* first's */
};
_Static_assert(sizeof(struct bucket) == 64, "an uncontended lock is one cache line");
_Static_assert(offsetof(struct bucket, key) ==
                   offsetof(struct bucket, first) + sizeof(struct named_lock),
               "as the key of every lock");

/* A ghost's entry in the cleaner's queue; the key follows. */
struct ghost {
    struct ghost *next;
    uint64_t since_us; /* 0: not known yet */
    uint32_t key_n;
    uint32_t unused;
};

enum held_flag {
    HELD_UPGRADE = 1,   /* it waits for X */
    HELD_ABSENT = 4,    /* X on a row: which is a ghost ... */
    HELD_QUEUED = 8,    /* ... or was one, and the cleaner's queue has it */
    HELD_RESERVED = 16, /* lotus_table_reserve has been here */
};

/* What the table keeps beside a request. */
struct held {
    struct named_lock *lock; /* good while the request is not IDLE */
    uint64_t hint;           /* of the row, 0: none known */
    uint64_t fresh;          /* a record that will take the row's place, 0: none */
    void *spare;             /* memory for the row's value */
    struct ghost *ghost;     /* for the cleaner, if the row is a ghost in the end */
    uint32_t bucket;
    uint32_t next; /* of the holder's, or of the free ones */
    uint8_t flags; /* enum held_flag */
};

_Static_assert(sizeof(struct lock_request) + sizeof(struct held) == 104,
               "what a lock of locks_max takes (docs/CONFIG.md)");

/* ---- Holders ---- */

enum holder_count {
    COUNT_GRANTED,
    COUNT_WAITED,
    COUNT_DIED,
    COUNT_WOUNDED,
    COUNT_LOOKED_AGAIN,
    COUNT_HINTS_GOOD,
    COUNT_HINTS_STALE,
    COUNT_LOCKS,    /* names made, less those forgotten */
    COUNT_REQUESTS, /* taken, less those given back */
    HOLDER_COUNTS
};

/* By status: free requests that need no latch, and counters. Written by the holder's worker. */
struct holder_line {
    _Alignas(64) uint32_t free; /* first of the list */
    uint32_t free_n;
    _Atomic uint64_t counts[HOLDER_COUNTS];
};

_Static_assert(sizeof(struct holder_line) % 64 == 0, "whole cache lines");

struct near_set;

struct lotus_table {
    struct lotus_config lotus;
    void (*woken)(void *context, uint32_t status, uint64_t generation);
    void (*let_go)(void *context, struct store_thread *thread, const struct lotus_far *far);
    void *context;
    struct store *store;
    struct tree *tree;
    struct records *records;
    struct near_set *near; /* NULL: no row can be far */

    struct bucket *buckets;
    uint32_t buckets_n; /* a power of two */
    uint32_t statuses_n;
    struct lock_table locks; /* its arrays are the table's */
    struct held *held;
    struct holder_line *lines;
    uint32_t line_keeps; /* free requests of a holder, at most */
    void *buckets_memory;
    void *lines_memory;

    _Alignas(64) struct spin pool; /* of the two */
    uint32_t free;
    uint32_t never_used; /* requests from here on */

    _Alignas(64) struct spin queue; /* of the four */
    struct ghost *coming;           /* those whose time is not known */
    struct ghost *first;            /* the others, in the order of time */
    struct ghost *last;
    _Atomic uint64_t due_us; /* when the first of all is due; UINT64_MAX: there is none */

    _Alignas(64) _Atomic int64_t ghosts; /* entries that are one */
    _Atomic uint64_t forgotten;          /* the newest version of a ghost that is gone */
};

static inline void holder_count(struct lotus_table *t, const struct lotus_holder *h,
                                enum holder_count which, uint64_t n)
{
    _Atomic uint64_t *count = &t->lines[h->status].counts[which];
    /* relaxed: the holder's worker is the only writer; readers want no more than a number. */
    uint64_t value = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, value + n, memory_order_relaxed);
}

/* ---- lotus_table_names.c ---- */

static inline struct lotus_name lotus_name(const struct lotus_table *t, bool gap, struct bytes key)
{
    uint64_t hash = store_hash(t->store, key);
    /* Another bucket than the row's. */
    return (struct lotus_name){
        .key = key, .gap = gap, .hash = gap ? hash * UINT64_C(0x9e3779b97f4a7c15) + 1u : hash};
}

static inline struct bucket *lotus_bucket(const struct lotus_table *t,
                                          const struct lotus_name *name)
{
    return &t->buckets[name->hash & (t->buckets_n - 1u)];
}

static inline bool named_is_free(const struct named_lock *l)
{
    return l->lock.owners == 0 && l->lock.waiters == 0;
}

static inline uint8_t *named_key(struct named_lock *l)
{
    return (uint8_t *)l + sizeof(*l);
}

/* Under its bucket's latch. NULL: nobody owns it or waits for it. */
struct named_lock *named_find(struct bucket *b, const struct lotus_name *name);
/* The holder's request for it, 0: none. Under the latch. */
uint32_t named_mine(const struct lotus_table *t, const struct named_lock *l,
                    const struct lotus_holder *h);

/* Tries that are to be told when the latch is let go. */
#define WAKES_MAX 32u
struct wakes {
    uint32_t n;
    uint32_t statuses[WAKES_MAX];
    uint64_t generations[WAKES_MAX];
};
/* What happened to others in a step; h takes it. Under the latch. */
void wakes_add(struct lotus_table *t, const struct lotus_holder *h, struct wakes *wakes,
               lock_chain chain);
void wakes_tell(const struct lotus_table *t, struct wakes *wakes);

/* A step on one lock, from its latch to the end. */
struct naming {
    struct lotus_name name;
    struct bucket *bucket;
    struct named_lock *lock; /* NULL: of nobody */
    uint32_t mine;           /* the holder's request; 0: none */
    struct wakes wakes;
};
/* Takes the latch. */
void naming_begin(struct lotus_table *t, const struct lotus_holder *h, struct naming *s,
                  const struct lotus_name *name);
/* DONE: s->mine owns it. WAITS: it is h->waits. */
enum table_word naming_ask(struct lotus_table *t, struct store_thread *thread,
                           struct lotus_holder *h, struct naming *s, enum lock_mode mode);
/* Lets s->mine go. */
void naming_release(struct lotus_table *t, struct store_thread *thread, struct lotus_holder *h,
                    struct naming *s);
/* Lets the latch go, and tells who is to be told. */
void naming_end(const struct lotus_table *t, struct naming *s);

/* The three in one. number_out may be NULL. */
enum table_word lotus_lock(struct lotus_table *t, struct store_thread *thread,
                           struct lotus_holder *h, bool gap, struct bytes key, enum lock_mode mode,
                           uint32_t *number_out);
/* Before a step: REFUSED, or what became of the request that waited. */
enum table_word lotus_settle(struct lotus_table *t, struct lotus_holder *h);
/* Releases a request of the holder's and forgets it. */
void lotus_let_go(struct lotus_table *t, struct store_thread *thread, struct lotus_holder *h,
                  uint32_t number);
/* All of them. */
void lotus_let_all_go(struct lotus_table *t, struct store_thread *thread, struct lotus_holder *h);

/* ---- lotus_table_row.c ---- */

/* The head of every row's value. */
struct row_head {
    uint64_t version;
    uint64_t flags; /* lotus_row.flags, and the below */
};
_Static_assert(sizeof(struct row_head) == LOTUS_ROW_HEAD, "as it is promised");
enum row_flag {
    ROW_QUEUED = 0x100, /* the cleaner's queue has it, or a holder that will give it there */
    ROW_COMING = 0x200, /* it will take the place of another record; its hint is no row's yet */
    ROW_CELL = 0x400,   /* the name of a cell (struct lotus_far) follows the head */
    ROW_FAR = 0x800,    /* and the value is only there: of it follows the deadline, if it has one */
};
/* From this bit on: bytes of the value, if it is near, and rows can be far. */
#define ROW_NEAR_AT 32u

/* What stands before a row's value, or its deadline. */
struct row_front {
    struct row_head head;
    struct lotus_far far; /* only with ROW_CELL */
};
static inline struct bytes row_front(const struct row_front *front)
{
    bool cell = (front->head.flags & ROW_CELL) != 0;
    return bytes_of(front, cell ? (uint32_t)sizeof *front : LOTUS_ROW_HEAD);
}

struct row_read {
    struct row_head head;
    uint64_t hint;        /* 0: no entry */
    struct lotus_far far; /* ROW_CELL; else id 0 */
    struct bytes value;
};
/* The row under its lock, or a moment's truth; by the hint if that is good. False: there is no
 * entry. values: as lotus_table_point has it. */
bool row_find(const struct lotus_table *t, struct store_thread *thread, struct bytes key,
              uint64_t hint, bool values, void *buffer, struct row_read *read_out);
/* What is to be told of it, but for the key. */
void row_tell(const struct row_read *read, bool values, struct lotus_row *row_out);
/* The holder's request, X on a row, learns what its row is. */
void row_note(struct lotus_table *t, uint32_t number, const struct row_read *read);
/* What a request kept for a write. */
void held_drop(struct lotus_table *t, struct store_thread *thread, struct held *held);
/* A new ghost's record, in a cell that the item's value stays in if it comes to no more than its
 * room: who has its hint from here has the row's. HK_ERR_NOMEM. */
int ghost_record(struct lotus_table *t, struct store_thread *thread, const struct lotus_item *item,
                 uint64_t *hint_out) __attribute__((warn_unused_result));

/* ---- lotus_table_far.c ---- */

/* HK_ERR_NOMEM. */
int near_create(struct lotus_table *t) __attribute__((warn_unused_result));
void near_destroy(struct lotus_table *t);
/* Flags that say how long a value that is near is; 0 where no row can be far. */
uint64_t near_flags(const struct lotus_table *t, const struct lotus_row *row);
/* An entry's record has become another one, or has other flags; before, after: NULL: there was
 * none, there is none. Its cell is let go if the row does not name it any more. Under the latch of
 * its lock, or its holder's; before the record of `before` is freed. */
void near_changed(struct lotus_table *t, struct store_thread *thread, const struct row_read *before,
                  const struct row_read *after);
/* The entry's record becomes another one, with all that follows from it; the old one is freed. */
void entry_exchange(struct lotus_table *t, struct store_thread *thread, struct bytes key,
                    const struct row_read *before, const struct row_read *after);
/* A row was read with its value. */
void near_used(const struct lotus_table *t, uint64_t hint);
/* The holder has read the row. */
static inline void holder_far(const struct lotus_table *t, struct lotus_holder *h,
                              const struct row_read *read, bool values)
{
    if (t->near == NULL || !values) {
        h->far.id = 0;
        return;
    }
    h->far = read->far;
    if ((read->head.flags & ROW_FAR) == 0) {
        h->far.id = 0;
    }
    if (read->head.flags >> ROW_NEAR_AT != 0) {
        near_used(t, read->hint);
    }
}
/* NULL, or which invariant is broken: what walks over all entries says what it meets. */
struct near_sum {
    uint64_t rows, bytes;
};
const char *near_broken(const struct lotus_table *t, const struct near_sum *sum);
void near_met(const struct lotus_table *t, const struct row_read *read, struct near_sum *sum);

/* ---- lotus_table_clean.c ---- */

struct ghost *ghost_create(struct store_thread *thread, struct bytes key);
void ghost_destroy(struct store_thread *thread, struct ghost *g);
/* To the cleaner. */
void ghost_push(struct lotus_table *t, struct ghost *g);
void ghosts_destroy(struct lotus_table *t, struct store_thread *thread);

/* Both latches of a key. */
struct unowned {
    struct bucket *low;
    struct bucket *high;
};
/* Takes them; whether nobody has the row's lock nor (gap) the gap's, or waits for it. */
bool unowned_begin(const struct lotus_table *t, struct bytes key, bool gap, struct unowned *u);
void unowned_end(struct unowned *u);
/* Out of the index, between the two. */
enum table_word entry_remove(struct lotus_table *t, struct store_thread *thread, struct bytes key);

/* ---- lotus_table_insert.c ---- */

/* X on the item's row is the holder's, as request number, and there is no entry: makes a ghost. */
enum table_word lotus_insert(struct lotus_table *t, struct store_thread *thread,
                             struct lotus_holder *h, uint32_t number, const struct lotus_item *item,
                             struct row_read *read_out);

#endif
