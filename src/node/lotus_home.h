/* Tries at a memory server, on the worker that their coordinators' workers speak to
 * (docs/protocols/lotus.md, "Memory server: a try"). Only the files lotus_home*.c include it.
 *
 * A try that asks for locks, or keeps writes, has a home_work, of which a worker has a fixed
 * number; it carries the status word. One whose outcome is kept needs none. What is said here of
 * one worker is touched by that worker alone, but for home_work.woken and home_space.woken. */
#ifndef HORKOS_NODE_LOTUS_HOME_H
#define HORKOS_NODE_LOTUS_HOME_H

#include "node/evaluate.h"
#include "node/lotus.h"

struct lotus_run;

/* Outcomes that are kept, for each try that there may be at a time; past it new ones are BUSY. */
#define HOME_OUTCOMES 16u
/* Rows of ranges that are met in one go; then others have their turn. */
#define HOME_ROWS_MAX 512u
/* Bytes towards a coordinator that it has not consumed, above which nothing more is read for it. */
#define HOME_BEHIND_MAX (64u << 20)
/* Bytes that all tries of a worker have read and not answered; what comes beyond is BUSY. */
#define HOME_READ_MAX (256u << 20)

/* Who a try is: the worker is this one's number. */
struct home_name {
    uint64_t nonce; /* of its coordinator's process */
    uint32_t slot;
    uint32_t gen;
    uint8_t node;
    uint8_t reserved[7];
};

enum home_doing {
    HOME_IDLE,    /* its coordinator has heard all, and will ask for more, or PREPARE */
    HOME_EXECUTE, /* items of an EXECUTE are left: it waits, or has had its turn */
    HOME_WHOLE,   /* the same, of a WHOLE */
};

/* A cell's bytes that were asked for: by a work, by the mover, or to bring a row home. */
enum home_fetch_state { FETCH_FREE, FETCH_SENT, FETCH_HERE, FETCH_GONE, FETCH_NOMEM };
struct home_fetch {
    struct list_link
        link; /* home_work.fetches, home_space.moving, .homing, or lotus_home.fetches */
    struct home_work *work; /* or NULL */
    struct lotus_far far;
    uint32_t gen;
    uint8_t state; /* enum home_fetch_state */
    uint8_t space;
    uint8_t reserved[2];
    uint8_t *bytes; /* HERE: far.bytes of them; .homing: the row's key */
    uint32_t key_n;
};

/* A row that is being stored, by its key. */
struct home_store {
    uint8_t *key;
    uint32_t key_n;
    uint32_t gen;
    uint64_t version;
    struct lotus_far far;
};
#define HOME_STORES 64u

/* What a worker keeps of a space where rows can be far: the owner's side (lotus_far.c), and cells
 * of others (lotus_cells.c). */
struct home_far {
    struct home_store stores[HOME_STORES];
    uint64_t storing;  /* which of them are under way */
    uint64_t ids;      /* of cells, so far */
    uint64_t again_us; /* nothing is stored before */
    nodeset refused;   /* members that keep no cells, as of this view */
    nodeset full;      /* ... that had no room, until again_us */
    uint32_t lives[NODES_MAX];
    struct list_link moving; /* fetches of the mover; worker 0 */
    struct list_link homing; /* ... of rows that come home; worker 0 */
    uint32_t moving_n, homing_n;
    /* Worker 0: the walk for rows whose cells are gone, or are to come home. */
    bool walks, walk_begun, walk_again;
    uint8_t *walk_at;
    uint32_t walk_n, walk_capacity;
    uint64_t walk_us;    /* not before */
    uint64_t lost_us;    /* lost slots are told again then; worker 0 */
    bool buries;         /* there are dying cells */
    struct buffer later; /* struct lotus_far: to be forgotten, in a view that is to come */
    struct home_cells *cells[NODES_MAX];
    struct home_cells *dying;
};

struct home_work {
    struct list_link link; /* home_space.free, .leases or .behind */
    struct home_try *t;    /* NULL: free */
    struct lotus_holder holder;
    uint64_t heard_us; /* the lease begins */
    uint8_t doing;     /* enum home_doing */
    bool open;         /* `item` is under way */
    bool kept;         /* what is left of the items stands in `items` */
    bool behind;       /* its coordinator is: it goes on when that has caught up */

    /* While it does something: */
    struct lotus_item item;
    struct bytes rest;      /* items behind it */
    const uint8_t *item_at; /* where it stands */
    struct lotus_scan scan;
    uint32_t met;             /* rows of ranges in this turn */
    uint32_t read;            /* bytes of `rows` that are counted in lotus_home.read */
    uint64_t map;             /* as lotus_head */
    struct lotus_far awaited; /* id 0: no; else the value of ... */
    struct lotus_row pending; /* ... this row, whose key is scan.at, or empty */
    struct list_link fetches;
    struct buffer items;
    struct buffer rows;    /* what is to be answered; PREPARED: what is to be written */
    struct lotus_run *run; /* WHOLE's; or NULL */

    /* Any worker: whoever sets it puts the work on home_space.woken. */
    _Atomic bool woken;
    struct home_work *woken_next;
};

struct home_try {
    struct list_link link;    /* home_space.tries */
    struct list_link outcome; /* home_peer.outcomes, or none */
    struct home_try *next;    /* with the same hash; or home_space.spare */
    struct home_work *work;   /* NULL: COMMITTED */
    struct home_name name;
    struct lotus_part part;
    uint8_t counted;   /* its state as of the statistics */
    uint32_t admitted; /* epoch that admitted its coordinator's process */
    uint32_t epoch;    /* in which PREPARE was sent: its participants were members then */
    uint64_t began;    /* version of the map then */
};

/* What is known of a coordinator: a worker of a node. */
struct home_peer {
    uint64_t nonce;
    uint64_t done;             /* outcomes below are known to all */
    struct list_link outcomes; /* kept, by number */
};

struct home_space {
    const struct lotus_config *config;
    struct lotus_table *table;
    struct home_work *works; /* tries_max */
    struct list_link free;
    struct list_link leases; /* works of tries that run and are not parked, longest unheard first */
    struct list_link behind; /* works that wait until their coordinators have caught up */
    struct list_link tries;
    struct home_try **buckets;
    struct home_try *spare;
    struct buffer late; /* HK_MUTANTS: rows that are written after all (P6 off) */
    uint32_t buckets_n; /* a power of two */
    uint32_t tries_n;
    struct home_peer *peers; /* home_peer_of */
    struct home_far *far;    /* NULL: rows are near */
    /* The walk for expired rows; worker 0's. */
    uint8_t *walk_at; /* the last key */
    uint32_t walk_n, walk_capacity;
    bool walk_deadlines; /* this pass has met one */
    uint64_t walk_due_us;
    uint8_t space;
    _Atomic uint64_t oldest;           /* lotus_home_oldest */
    _Atomic(struct home_work *) woken; /* a stack; pushed by any worker, emptied by this one */
};

/* Of a worker. */
struct lotus_home {
    struct home_space *spaces[SPACES_MAX];
    uint8_t *value;         /* of a row: LOTUS_NEXT_BYTES bytes */
    uint64_t read;          /* HOME_READ_MAX bounds it ... */
    struct home_work *most; /* ... but for this work's: somebody always comes to an end */
    /* Of WHOLE: */
    struct list_link runs; /* struct lotus_run, free ones */
    struct op *ops;        /* TXN_OPS_MAX */
    struct txn_watch *watches;
    struct buffer out; /* answers */
    /* Where rows can be far: */
    struct home_fetch *all_fetches; /* HOME_FETCHES; NULL: nowhere */
    struct list_link fetches;       /* free ones */
    uint64_t fetching;              /* bytes that are asked for, or are here and not used yet */
};
#define HOME_FETCHES 4096u

/* ---- lotus_home.c ---- */
/* What becomes of it now: answered by a message of that kind if it says so (0: it cannot), told to
 * the asker if that. writes: what INSTALL writes. It may be gone afterwards. */
struct home_event {
    bool given; /* writes are; else those that were kept */
    struct bytes writes;
    struct bytes value; /* of the answer, if its word is LOTUS_OK */
    uint8_t answer;     /* enum lotus_kind */
    uint8_t asker;
};
void home_carry_out(struct worker *w, struct home_space *s, struct home_try *t,
                    const struct part_effects *fx, const struct home_event *event);
/* RUNNING: it ends here, and its coordinator hears the word in a message of that kind. */
void home_refuse(struct worker *w, struct home_space *s, struct home_try *t, enum lotus_kind kind,
                 enum lotus_word word);
void home_answer(struct worker *w, const struct home_space *s, const struct home_name *name,
                 enum lotus_kind kind, enum lotus_word word, struct bytes value);
/* It waits, or has had its turn. */
void home_parked(struct worker *w, struct home_space *s, struct home_work *work);
/* What it has read is answered, or for nothing. */
void home_rows_clear(struct worker *w, struct home_work *work);
/* Heard of: its lease begins anew. */
void home_heard(struct worker *w, struct home_space *s, struct home_work *work);
/* A work and a status word for a try, RUNNING; NULL: there is none. */
struct home_work *home_work_take(struct home_space *s, struct lock_age age);
void home_work_give(struct worker *w, struct home_space *s, struct home_work *work);
/* Memory for the rows is made sure of, and that it may write them: it has X on each. Else why
 * not. */
enum lotus_word home_reserve(struct worker *w, struct home_space *s, struct home_work *work,
                             struct bytes rows);
/* RUNNING: the rows are written and the try ends, or it was wounded; answers: of a WHOLE. */
void home_finish(struct worker *w, struct home_space *s, struct home_try *t, struct bytes rows,
                 struct bytes answers);

/* ---- lotus_home_items.c ---- */
/* A lotus_word; TABLE_WAITS: LOTUS_WORDS. */
uint32_t home_word(enum table_word word);
/* Goes on with its items; LOTUS_OK: all are done, their rows in work->rows. LOTUS_WORDS: it waits,
 * or has had its turn, and is woken. */
uint32_t home_items(struct worker *w, struct home_space *s, struct home_work *work);
/* Whether its coordinator has too much to consume for it to go on. */
bool home_behind(const struct worker *w, const struct home_work *work);
/* Behind those that it has. LOTUS_OK, or TOOBIG: the answer would be too long; BUSY: there is no
 * room for it now. */
uint32_t home_add_row(struct worker *w, struct home_work *work, const struct lotus_row *row);
/* The work is to be gone on with in the next poll. Any worker. */
void home_wake(struct worker *owner, struct home_space *s, struct home_work *work);

/* ---- lotus_far.c: the owner of far rows ---- */
int home_far_init(struct worker *w, struct home_space *s) __attribute__((warn_unused_result));
void home_far_deinit(struct worker *w, struct home_space *s);
/* The row was read, but for its value, which work->holder.far has: home_items' words; LOTUS_OK: the
 * row is among the work's. */
uint32_t home_far_row(struct worker *w, struct home_space *s, struct home_work *work,
                      const struct lotus_row *row);
/* The same, of the row that is awaited. */
uint32_t home_far_go_on(struct worker *w, struct home_space *s, struct home_work *work);
/* FORGET, if the cell is alive. */
void home_forget(struct worker *w, uint8_t space, const struct lotus_far *far);
/* What was asked for is not wanted any more. */
void home_far_drop(struct worker *w, struct home_work *work);
void home_far_adopt(struct worker *w, struct home_space *s);
void home_far_poll(struct worker *w, struct home_space *s);
uint64_t home_far_due(const struct worker *w, const struct home_space *s);
/* STORED, FETCHED, RECALL. */
void home_far_message(struct worker *w, struct home_space *s, const struct msg *msg, uint8_t from);
/* For the mover: the value of a row that is far. */
enum far_word { FAR_HERE, FAR_COMES, FAR_LOST };
enum far_word home_far_value(struct worker *w, uint8_t space, struct bytes key,
                             const struct lotus_far *far, struct bytes *value_out);
/* ... and it has gone on: that, or (NULL) nothing that it asked for, is wanted any more. */
void home_far_moved(struct worker *w, uint8_t space, const struct lotus_far *far);
/* Slots of which far rows are lost: the map's leader hears of them (F7). Worker 0. */
void home_far_tell_lost(struct worker *w, uint8_t space);

/* ---- lotus_cells.c: cells of others ---- */
/* STORE, FETCH, FORGET. */
void home_cells_message(struct worker *w, struct home_space *s, const struct msg *msg,
                        uint8_t from);
/* Those of a life that is over go, a few with each poll. */
void home_cells_gone(struct worker *w, struct home_space *s, uint8_t node);
/* Whether there may be more to do at once. */
bool home_cells_poll(struct worker *w, struct home_space *s);
void home_cells_free(struct worker *w, struct home_space *s);

/* ---- lotus_home_whole.c ---- */
/* The request (behind the head) begins; then, and whenever it was woken: it goes on. */
void home_whole(struct worker *w, struct home_space *s, struct home_try *t, struct bytes request);
void home_whole_go_on(struct worker *w, struct home_space *s, struct home_try *t);

void home_run_give(struct worker *w, struct lotus_run *run);
void home_runs_free(struct worker *w);

/* ---- lotus_home_map.c ---- */
/* Says which of its tries began before the map was what it is. */
void home_look_at_map(struct worker *w, struct home_space *s);

/* ---- lotus_home_walk.c: the cleaner, expired rows; worker 0 ---- */
void home_walk(struct worker *w, struct home_space *s);
uint64_t home_walk_due(const struct home_space *s);

#endif
