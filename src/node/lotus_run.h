/* What the files of Lotus's coordinator share: lotus.c (transactions and their ends), lotus_ask.c
 * (where to, and messages), lotus_batch.c, lotus_rows.c (what came, and what becomes of it). */
#ifndef HORKOS_NODE_LOTUS_RUN_H
#define HORKOS_NODE_LOTUS_RUN_H

#include "engine/lotus/batch.h"
#include "engine/lotus/hints.h"
#include "node/evaluate.h"
#include "node/lotus.h"

/* A row as a server sent it, beside struct txn_object. The first objects_n are those that the
 * request mentions, behind them those that only ranges have met. */
struct lotus_place {
    uint64_t version;
    uint64_t hint;
    uint32_t value_at, value_n;   /* in lotus_run.values */
    uint32_t record_at, record_n; /* in lotus_run.record: what it becomes */
    uint32_t room;                /* as lotus_item has it */
    uint8_t home;
    uint8_t flags; /* KEY_VALUE_FLAGS, LOTUS_ROW_ABSENT */
    bool write;    /* it may be written: X */
    bool due;      /* to be asked for in the next round ... */
    bool asked;    /* ... in this one */
};

/* A range of the request, or one that is watched. */
struct lotus_span {
    struct bytes start, end;
    nodeset homes;
    nodeset due, asked; /* as of places */
    nodeset more;       /* servers that may have more of it than they have sent */
    uint32_t need;      /* so many present rows are enough; 0: all of them */
    uint32_t limit;     /* what was asked for; 0: all */
    bool reverse, keys, write;
};

/* A row that a range has met: several times, if several did, or if it was asked for again. */
struct lotus_met {
    uint64_t version;
    uint32_t key_at, key_n; /* in lotus_run.values */
    uint32_t value_at, value_n;
    uint16_t span;
    uint8_t home;
    uint8_t flags;
    bool keys; /* without its value */
    bool write;
};

/* A transaction at its coordinator. Outlives its call: two-phase commit goes on. Or at a memory
 * server that has all of it (WHOLE; lotus_home_whole.c): only what is about places and rows counts.
 */
struct lotus_run {
    struct list_link link; /* lotuses.free, or .open */
    struct call *call;     /* NULL: nobody waits for it */
    struct lotus_txn machine;
    struct lock_age age;
    uint64_t number;   /* of its PREPARE; 0: none */
    uint64_t map;      /* version of the map by which its ranges were placed */
    uint64_t wall_ms;  /* at which it is evaluated */
    uint64_t until_us; /* its call is in lotuses.pauses: so long */
    uint32_t slot;     /* its name in messages */
    uint32_t gen;      /* of the try */
    uint32_t tries;
    uint32_t spans_n, met_n;
    nodeset homes; /* where its objects and ranges are */
    nodeset begun; /* servers that know this try */
    uint16_t lost; /* FAIL with LOSTSLOT: the slot */
    uint8_t space;
    bool used;
    bool own_bytes; /* nothing points into the client's request any more */
    bool answered;
    bool stepping;
    bool active;  /* counted in lotuses.active */
    bool whole;   /* its server evaluates it */
    bool garbled; /* ... and what it answers is none */
    bool here;    /* it is at that server */
    struct evaluation evaluation;
    struct lotus_place *places;
    struct lotus_span *spans;
    struct lotus_met *met;
    struct buffer placed, spanned, meetings, copy, values, record;
};

/* Of a worker; NULL: no space has tables. */
struct lotuses {
    struct lotus_run *runs;
    uint32_t runs_n;
    struct list_link free;
    struct list_link open;   /* runs with a number, in the order of their numbers */
    struct list_link pauses; /* calls that stand back, by lotus_run.until_us: a tick of the wheel
                                is a hundred times what they shall wait */
    struct buffer out;
    struct lotus_group *groups; /* by node (lotus_batch.c); NULL: no space batches */
    uint32_t active;            /* runs whose tries ask, or prepare */
    uint64_t brought;       /* bytes of all runs' values, and of those at the home; bounded ... */
    struct lotus_run *most; /* ... but for this one's, if any */
    struct hints hints[SPACES_MAX];
    void *hints_memory[SPACES_MAX];
    uint64_t number;          /* the last PREPARE's */
    uint64_t versions;        /* above all that this worker has seen */
    uint64_t ages_us;         /* the same of ages */
    uint64_t transactions;    /* for ages */
    uint32_t life[NODES_MAX]; /* of the pair with that node, as lanes_life */
    uint64_t nonces[NODES_MAX];
};

/* ---- lotus_ask.c ---- */

/* What was brought is forgotten, and memory given back that only a large one needs; all memory. */
void run_reset(struct worker *w, struct lotus_run *r);
void run_free(struct lotus_run *r);

/* The request's ranges and locks, once. HK_ERR_TOOBIG. */
int ask_prepare(struct lotus_run *r) __attribute__((warn_unused_result));
/* The request's bytes have moved. */
void ask_owned(struct lotus_run *r);
/* Where everything is; a try begins. LOTUS_LOST: r->lost says which slot. */
enum lotus_where ask_place(struct worker *w, struct lotus_run *r);
/* What is due next becomes `asked`; whose servers; 0: nothing is. */
nodeset ask_next(struct worker *w, struct lotus_run *r);
/* What is asked for of that server, as items behind what `out` has. */
void ask_items(struct worker *w, const struct lotus_run *r, uint8_t to, struct buffer *out);
/* Whether the request is not larger than a message may be. */
bool ask_fits_whole(const struct lotus_run *r);
void ask_whole(struct worker *w, struct lotus_run *r, uint8_t to);
void ask_execute(struct worker *w, struct lotus_run *r, uint8_t to);
/* FINISH, PREPARE (participants not 0): rows of that server in r->record. */
void ask_writes(struct worker *w, struct lotus_run *r, uint8_t to, enum lotus_kind kind,
                nodeset participants);
void ask_plain(struct worker *w, struct lotus_run *r, uint8_t to, enum lotus_kind kind);

/* WHOLE or EXECUTE, as the machine says. */
void ask_request(struct worker *w, struct lotus_run *r, uint8_t to);

/* ---- lotus_batch.c: only where a space batches across transactions ---- */

int groups_init(struct worker *w) __attribute__((warn_unused_result));
void groups_deinit(struct worker *w);
/* Whether the request waits, or has left, with others; false: it is to be sent. */
bool groups_take(struct worker *w, struct lotus_run *r, uint8_t to);
/* A try has taken effect, or was refused. */
void groups_ended(struct worker *w, const struct lotus_run *r, bool refused);
void groups_poll(struct worker *w);
uint64_t groups_due(const struct worker *w);

/* ---- lotus_rows.c ---- */

/* Takes what EXECUTED has brought. False: it is not what was asked for. HK_ERR_TOOBIG in err_out:
 * it is too much; HK_ERR_BUSY: it is too much as long as others have what they have brought. */
bool rows_take(struct worker *w, struct lotus_run *r, uint8_t from, struct bytes rest,
               int *err_out);
/* All that was asked for is here: whether more must be (it is due then). HK_ERR_TOOBIG. */
int rows_more(struct worker *w, struct lotus_run *r, bool *more_out);
/* Evaluates. HK_ERR_TOOBIG, HK_ERR_CORRUPT. */
int rows_evaluate(struct worker *w, struct lotus_run *r);
/* What changes, packed for its servers. HK_ERR_TOOBIG: for one of them it is too much. */
int rows_record(struct worker *w, struct lotus_run *r, nodeset *written_out);
/* What a server has answered to WHOLE. */
bool rows_answers(struct worker *w, struct lotus_run *r, struct bytes rest);
/* What was brought is forgotten. */
void rows_forget(struct worker *w, struct lotus_run *r);

#endif
