/* A memory server's rows: an ordered index, records, and locks by name, shared by all workers of
 * the node (docs/protocols/lotus.md, "Locks have names"). Only files of node include it.
 *
 * Steps are taken for a holder (one try), whose own worker calls them, one at a time; other workers
 * touch only its status word and its requests, under the latch of the lock's bucket. A step that
 * must wait returns TABLE_WAITS; when the holder may go on, or has lost, lotus_table_config.woken
 * is called, on whichever worker; the same step is then taken again. No step blocks. */
#ifndef HORKOS_NODE_LOTUS_TABLE_H
#define HORKOS_NODE_LOTUS_TABLE_H

#include "engine/lotus/lotus.h"
#include "node/node.h"
#include "store/store.h"

struct lotus_table;

/* A row's value in the store begins with so many bytes of the table's own: the store's
 * value_bytes_max counts them. */
#define LOTUS_ROW_HEAD 16u

/* The name of a cell that has a row's value (docs/protocols/lotus.md, "far rows"). */
struct lotus_far {
    uint64_t id;    /* lotus_cell_id; 0: none */
    uint32_t life;  /* of the pair of processes, as lanes_life */
    uint32_t bytes; /* in it */
    uint8_t node;
    uint8_t reserved[7];
};

struct lotus_table_config {
    const struct lotus_config *lotus; /* defaults filled in */
    struct store *store;
    uint32_t statuses_n; /* holders that there may be at a time, of all workers */
    /* The holder with that status is to step again, or to learn that it is WOUNDED. Perhaps more
     * than once, perhaps for nothing, perhaps before the step that waits has returned; never for
     * the one that steps. Only makes a note for the holder's worker: it calls nothing of the
     * table, since of a step that wakes many the last are called under a latch. */
    void (*woken)(void *context, uint32_t status, uint64_t generation);
    /* Where rows can be far: no row names that cell any more. Under a latch: only makes a note, or
     * sends. The thread is that of the step. */
    void (*let_go)(void *context, struct store_thread *thread, const struct lotus_far *far);
    void *context;
};

/* HK_ERR_NOMEM. Ends before its store does. */
int lotus_table_create(const struct lotus_table_config *config, struct store_thread *thread,
                       struct lotus_table **table_out) __attribute__((warn_unused_result));
void lotus_table_destroy(struct lotus_table *table, struct store_thread *thread);

/* One try. Zero but for status: over. */
struct lotus_holder {
    struct lock_age age;
    uint64_t generation; /* of its status word */
    uint32_t status;     /* number of its status word, from 0: fixed */
    uint32_t first;      /* the table's: its requests */
    uint32_t locks;      /* how many */
    uint32_t waits;      /* the request that waits; 0: none */
    uint32_t gap;        /* of a gap, while an insertion into it lasts; 0: none */
    /* Of the row that the last item or scan read with its value: not id 0: it is there, and what
     * was read has no more than the 8 bytes of a deadline. */
    struct lotus_far far;
};

/* Age set: a try begins. */
void lotus_table_begin(struct lotus_table *table, struct lotus_holder *holder);
enum try_state lotus_table_state(const struct lotus_table *table,
                                 const struct lotus_holder *holder);
/* RUNNING to PREPARED; false: it is WOUNDED. */
bool lotus_table_prepare(struct lotus_table *table, struct lotus_holder *holder);
/* RUNNING to WOUNDED, by the view, a lease, KILL. False: it is not RUNNING, or another try. Any
 * worker: woken is called. */
bool lotus_table_wound(struct lotus_table *table, uint32_t status, uint64_t generation);
/* All its locks, waiting ones too; the try is over. */
void lotus_table_end(struct lotus_table *table, struct store_thread *thread,
                     struct lotus_holder *holder);

/* Whether it owns X on that row: it may write it. */
bool lotus_table_owns(const struct lotus_table *table, const struct lotus_holder *holder,
                      struct bytes key);

enum table_word {
    TABLE_DONE,
    TABLE_WAITS,
    TABLE_REFUSED, /* died, or wounded: lotus_table_end is due */
    TABLE_BUSY,    /* no lock request is free */
    TABLE_TOOBIG,  /* try_locks_max */
    TABLE_NOMEM,
};

/* Brings the lock and (hint not 0) the row, with its value or without, towards the cache: for all
 * items of a batch, before the first is stepped. */
void lotus_table_prefetch(const struct lotus_table *table, struct bytes key, uint64_t hint,
                          bool value);

/* Locks the row and reads it: *row_out without its key, its value in place (good until the thread's
 * next store_quiescent or the holder's next lotus_table_write) or in `buffer` (STORE_INLINE_MAX
 * bytes, aligned to 8). With LOCK_X a row that is not there has a ghost afterwards. values: false:
 * version, flags and hint, and of the value no more than the 8 bytes of a deadline. */
enum table_word lotus_table_point(struct lotus_table *table, struct store_thread *thread,
                                  struct lotus_holder *holder, struct bytes key, uint64_t hint,
                                  enum lock_mode mode, bool values, void *buffer,
                                  struct lotus_row *row_out);
/* The same, as an item asks for it (values: without LOTUS_ITEM_KEYS). A ghost that it makes has
 * room for a value of item->room bytes: written then, the row keeps the hint of the ghost. */
enum table_word lotus_table_item(struct lotus_table *table, struct store_thread *thread,
                                 struct lotus_holder *holder, const struct lotus_item *item,
                                 void *buffer, struct lotus_row *row_out);

/* A scan under way, across waits. Zero and lotus_scan.item: at its beginning. The item's bytes stay
 * good. */
struct lotus_scan {
    struct lotus_item item;
    uint32_t found;
    bool begun;
    bool ended;
    uint8_t *at; /* the last key that was dealt with; store memory */
    uint32_t at_n;
    uint32_t at_capacity;
    struct lotus_look *look; /* where it is in the index; store memory */
};
/* The next row (with its key) that is no ghost, locked: TABLE_DONE and *more_out; or the end. */
enum table_word lotus_table_scan(struct lotus_table *table, struct store_thread *thread,
                                 struct lotus_holder *holder, struct lotus_scan *scan, void *buffer,
                                 struct lotus_row *row_out, bool *more_out);
void lotus_scan_end(struct lotus_scan *scan, struct store_thread *thread);

/* Makes sure that lotus_table_write of that row will find memory: before lotus_table_prepare. Good
 * for one write; what is not used goes with the try. TABLE_REFUSED: the holder does not own X on
 * it, or has reserved for it already (no transaction writes a row twice). TABLE_TOOBIG: the store
 * takes no such value; TABLE_NOMEM. */
enum table_word lotus_table_reserve(struct lotus_table *table, struct store_thread *thread,
                                    struct lotus_holder *holder, const struct lotus_row *row);
/* Writes a row (key, value, flags, version; LOTUS_ROW_ABSENT: it becomes a ghost) that the holder
 * has X on: PREPARED. TABLE_DONE, and nothing else after lotus_table_reserve; without it also what
 * that answers. now_us: for the ghost's grace. */
enum table_word lotus_table_write(struct lotus_table *table, struct store_thread *thread,
                                  struct lotus_holder *holder, const struct lotus_row *row,
                                  uint64_t now_us);

/* ---- Far rows: where lotus_config.near_max is not 0 ---- */

/* Whether the row is far, and where. A moment's truth. */
bool lotus_table_is_far(const struct lotus_table *table, struct store_thread *thread,
                        struct bytes key, uint64_t hint, struct lotus_far *far_out);
/* If the row, which holder has a lock of, is still far in that cell: its value, which that has, is
 * near again, and in the cell. Its hint then; 0: it was not, or there is no memory. */
uint64_t lotus_table_bring(struct lotus_table *table, struct store_thread *thread,
                           struct lotus_holder *holder, struct bytes key,
                           const struct lotus_far *far, struct bytes value);
/* Bytes of values of lotus_config.far_min or more that are near, and how many. Any thread. */
uint64_t lotus_table_near_bytes(const struct lotus_table *table);
uint64_t lotus_table_near_rows(const struct lotus_table *table);
/* One that may make room: of eight that are near the one that was used least; the others' uses are
 * halved. false: there is none, or it has just changed. A moment's truth; what it points to is in
 * buffer (LOTUS_NEXT_BYTES, aligned to 8), or in place until store_quiescent. */
struct lotus_victim {
    struct bytes key, value;
    uint64_t version;
    struct lotus_far far; /* a cell that has the value as well; id 0: none has */
};
bool lotus_table_victim(struct lotus_table *table, struct store_thread *thread, void *buffer,
                        struct lotus_victim *victim_out);
/* The row becomes far: the cell has the value that it had as of that version. TABLE_REFUSED: it has
 * another now, or is in a cell that is not this one, or somebody has or waits for its lock (F6);
 * TABLE_NOMEM. */
enum table_word lotus_table_let_go(struct lotus_table *table, struct store_thread *thread,
                                   struct bytes key, uint64_t version, const struct lotus_far *far);
/* The row names that cell, and no more from here on: it is near, with that value (what the cell
 * has; looked at only if the row is far). TABLE_WAITS: somebody has or waits for its lock;
 * TABLE_REFUSED: it does not name that cell; TABLE_NOMEM. */
enum table_word lotus_table_home(struct lotus_table *table, struct store_thread *thread,
                                 struct bytes key, const struct lotus_far *far, struct bytes value);

/* The cleaner: looks at up to `most` ghosts that are due; whether there may be more at once. */
bool lotus_table_clean(struct lotus_table *table, struct store_thread *thread, uint64_t now_us,
                       uint32_t most);
/* Versions that were forgotten with their ghosts are no newer than this: a row that is not there
 * becomes one with a newer version than it ever had (N8). Any thread. */
uint64_t lotus_table_forgotten(const struct lotus_table *table);
/* ... and no older than that: of slots that come here. */
void lotus_table_forget(struct lotus_table *table, uint64_t version);
/* When it is due next; UINT64_MAX: never. Any thread. */
uint64_t lotus_table_clean_due(const struct lotus_table *table);

/* ---- Without locks: for counting, moving and checking ---- */

#define LOTUS_NEXT_BYTES (STORE_INLINE_MAX + 128u)
/* The next entry in order behind `after` (inclusive: or at it; empty and inclusive: the first);
 * ghosts have LOTUS_ROW_ABSENT. false: there is none. A moment's truth. buffer: LOTUS_NEXT_BYTES,
 * aligned to 8, for key and value; what is longer is in place, good until store_quiescent. */
bool lotus_table_next(const struct lotus_table *table, struct store_thread *thread,
                      struct bytes after, bool inclusive, void *buffer, struct lotus_row *row_out);
/* The same, and which cell has the row's value; id 0: none. *near_out: the row has it as well. */
bool lotus_table_next_far(const struct lotus_table *table, struct store_thread *thread,
                          struct bytes after, bool inclusive, void *buffer,
                          struct lotus_row *row_out, struct lotus_far *far_out, bool *near_out);
/* Puts a row in without a lock, or takes its entry out: of a slot that nobody else touches.
 * TABLE_WAITS: somebody has a lock of the gap that it comes into (or of the row or gap that goes):
 * again later. The gap may be another slot's, and have been scanned before the slot came here: the
 * row would halve it, and what was scanned would be guarded by nobody (N3). */
enum table_word lotus_table_put(struct lotus_table *table, struct store_thread *thread,
                                const struct lotus_row *row);
enum table_word lotus_table_remove(struct lotus_table *table, struct store_thread *thread,
                                   struct bytes key);

void lotus_table_stats(const struct lotus_table *table, struct lotus_table_stats *stats_out);

/* Who owns what and who waits for whom (LOCKS): calls `each` for every request of up to `most`
 * locks, a lock's together, under its latch. */
struct lotus_lock_row {
    bool gap;
    bool infinite; /* GAP(+inf): no key */
    struct bytes key;
    uint8_t mode, state; /* enum lock_mode, lock_state */
    uint8_t try_state;   /* enum try_state, of its status word */
    uint32_t status;
    uint64_t generation; /* of the try, as lotus_table_wound takes it */
    struct lock_age age;
};
void lotus_table_locks(const struct lotus_table *table, uint32_t most,
                       void (*each)(void *context, const struct lotus_lock_row *row),
                       void *context);
/* Walks everything while nobody else is in it. NULL, or which invariant is broken. */
const char *lotus_table_check(const struct lotus_table *table, struct store_thread *thread);

#endif
