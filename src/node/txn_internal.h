/* What the files of txn*.c share. Nobody else includes it. */
#ifndef HORKOS_NODE_TXN_INTERNAL_H
#define HORKOS_NODE_TXN_INTERNAL_H

#include "engine/zeus/commit_rules.h"
#include "node/own.h"

#define TXN_WAIT_LISTS 256u /* of transactions that wait for an object, by hash */
#define TXN_PIPES_MAX 512u  /* pipelines of a node */
/* What a pipeline's unfinished slots keep, in bytes; past it no other commit begins. */
#define TXN_PIPE_BYTES (16u << 20)
#define TXN_OWN_PIPES                                                                              \
    16u /* of a worker in a space, at the most: by followers, so that few wait (C3) */
#define TXN_FEW_BYTES 1024u
#define TXN_PIPE_LISTS 64u
#define TXN_CALLERS_MAX 64u /* of a worker: threads beside it that commit by themselves */

/* ---- key_meta.aux of an object in WRITE: the pipeline and, mod COMMIT_SLOTS, the last slot of it
 * that wrote or read the object (C4, C12). ---- */

#define TXN_AUX_SLOT_BITS 7u
_Static_assert(1u << TXN_AUX_SLOT_BITS == COMMIT_SLOTS, "every unfinished slot has its own number");
_Static_assert(TXN_PIPES_MAX << TXN_AUX_SLOT_BITS <= 1u << 16, "both fit key_meta.aux");

static inline uint16_t txn_aux(uint32_t pipe, uint64_t slot)
{
    return (uint16_t)(pipe << TXN_AUX_SLOT_BITS | (slot & (COMMIT_SLOTS - 1)));
}

static inline uint32_t txn_aux_pipe(uint16_t aux)
{
    return aux >> TXN_AUX_SLOT_BITS;
}

/* ---- Transactions in progress: one for each call that needs it ---- */

/* What was found of an object, beside struct txn_object. */
struct txn_place {
    struct key_meta meta; /* of the data here; as of the last look */
    struct bytes stored; /* the value in the store: good while the object is held, or in a buffer */
    nodeset followers;   /* of what is to be written: its live readers */
    bool found;          /* there is data */
    bool held;           /* key_meta.owner was this transaction when it last looked */
    bool lacks;          /* the level that it needs */
    bool none;           /* it was asked for last, and exists nowhere */
    uint64_t seen_ts;    /* meta.ts of the look before it asked */
};

struct txn {
    /* Looked at by other workers, who find the transaction's reference in key_meta.owner. */
    _Atomic uint64_t age;        /* smaller is older; 0: nothing is in progress */
    _Atomic uint32_t committing; /* what it holds cannot be taken from it: for an instant */

    /* The arrays of several operations, if they are few. */
    _Alignas(16) uint8_t few[TXN_FEW_BYTES];

    /* What is behind is as good as new for the next transaction. */
    struct list_link waiting; /* for an object, or for a slot */
    struct call *call;
    struct txn_pipe *pipe; /* to which it is bound, or in which it is committed; NULL: any */
    uint32_t ref;          /* slot_ref of worker and index + 1 */
    uint32_t gen;          /* names it in own_waiter */
    struct txn_request request;
    struct txn_object *objects;
    struct txn_place *places;
    uint16_t *index;
    uint16_t *order; /* in which objects are grasped */
    struct answer *answers;
    uint64_t *versions;
    uint32_t objects_n;
    uint32_t answers_n; /* that the reply has */

    /* Arrays of a transaction of one operation. */
    struct txn_object one_object;
    struct txn_place one_place;
    uint16_t one_index[2];
    uint16_t one_order;
    struct answer one_answer;
    uint64_t one_version;

    uint8_t *arrays; /* of several, if they are not few; store memory */
    uint8_t *copy;   /* what the request pointed to, once it has outlived it; store memory */
    uint8_t *kept;   /* the answers' bytes; store memory */
    uint32_t arrays_bytes, copy_bytes, kept_bytes;

    uint64_t wait_hash;  /* of the object that it waits for */
    uint32_t wants;      /* levels that own.c has not answered yet */
    uint32_t rounds;     /* times that levels were there, and gone again */
    uint32_t prods;      /* times that a wait was too long */
    uint32_t asked;      /* levels that it asked for last, ... */
    uint32_t nones;      /* ... and of them those of objects that exist nowhere */
    uint32_t none_tries; /* times that all did, and it could not be answered */
    uint32_t asked_epoch;
    uint64_t asked_us;
    uint8_t verdict;    /* enum txn_verdict, when it has been evaluated */
    bool several;       /* a request of operations, not one operation */
    bool own_bytes;     /* nothing points into the request any more */
    bool updates;       /* it needs ownership: it may write, or reading did not do */
    bool spends;        /* it may need memory */
    bool creates;       /* an object that it only reads and that exists nowhere is created */
    bool rest_readable; /* when it asked, all others were */
    bool lost;          /* an object's replicas are all gone */
    bool refused;       /* own.c has no room */
    bool turn;          /* it waited for a slot, and others behind it still do */
    bool ordered;       /* it waits for one level at a time, and holds what it has */
    bool used;          /* it has been done, and is about to let go of what it held */
};

/* ---- Pipelines: one's own, and those of others that this worker follows ---- */

/* What a slot keeps until it is done. */
struct txn_record {
    uint8_t *bytes; /* the R-INV's value, the keys of what was only read, and the hashes of all in
                       that order (8 bytes each); store memory */
    uint64_t inv_n; /* bytes of the R-INV's value; 0: there is none */
    uint64_t hashes_at;
    uint64_t n; /* bytes in all */
};

struct txn_slot {
    struct txn_record record;
    struct list_link calls; /* own: who hears that it is done; struct call's link */
};

struct txn_pipe {
    struct commit_pipe commit;
    struct list_link link;  /* txn_space.pipes or .follows */
    struct list_link chain; /* txn_space.named */
    struct list_link dirty; /* txns.dirty: something is to be said when the poll ends */
    uint64_t bytes;         /* that its slots keep */
    uint32_t bit;           /* a worker's own: in txn_space.busy */
    uint8_t space;
    bool own;
    struct txn_caller *caller; /* own: whose commits these are; NULL: the worker's */
    uint8_t ack_to;            /* follower: an R-ACK is due; NODE_NONE: none */
    uint64_t ack_slot;
    nodeset val_to; /* driver: R-VALs are due */
    uint64_t val_slot;
    struct txn_slot slots[COMMIT_SLOTS];
};

/* A thread that is no worker's, with pipelines of its own that this worker steps (commit_here.c).
 * Its numbers stay when the thread goes: the next one goes on with its slots. */
struct txn_caller {
    _Atomic bool taken; /* a reader has it: acquire, release */
    uint32_t index;     /* of txns.callers */
    uint32_t ref;       /* what it writes into key_meta.owner */
    uint32_t pipe;

    /* By space. Made by the thread before it commits anything there, and the worker's from then. */
    struct txn_pipe *pipes[SPACES_MAX];
    uint64_t next[SPACES_MAX];          /* the thread's: its next slot */
    _Atomic uint64_t first[SPACES_MAX]; /* the worker's: the first slot that is not done */
    _Atomic uint64_t alone;             /* the thread's: commits that the worker has not seen */
    uint64_t alone_seen;                /* the worker's: those that it has counted */
};

/* Of a space with ENGINE_OWNED. */
struct txn_space {
    struct txn_pipe *own[TXN_OWN_PIPES]; /* own_n of them: this worker's transactions' */
    uint32_t own_n;
    uint32_t busy; /* bits, by index of own: those that have slots under way */
    uint32_t own_numbers[TXN_OWN_PIPES];
    struct list_link pipes; /* of this node: those, and of callers that have committed anything */
    struct list_link named[TXN_PIPE_LISTS]; /* all that are in pipes or follows, by name */
    struct list_link follows;
    struct list_link room;    /* transactions that wait for a slot */
    uint32_t recovered_epoch; /* in which own_recovered was said last */
};

struct txns {
    struct txn *table; /* calls_max of them, as worker.calls_memory; behind them one for each
                          caller, of which only the age counts */
    struct txn_caller *callers; /* callers_n of them */
    uint32_t callers_n;
    _Atomic bool callers_used; /* there was one: relaxed, for counting */
    uint64_t counted_us;
    _Atomic bool clogged; /* the worker says to callers that a lane is */
    struct list_link waiting[TXN_WAIT_LISTS];
    struct list_link dirty;
    struct txn_space *spaces[SPACES_MAX];
    uint8_t *buffers;   /* inline values that a read-only transaction sees */
    uint32_t buffers_n; /* STORE_INLINE_MAX bytes each */
    uint32_t sequence;  /* of ages */
    struct commit_effects fx;
    bool stepping; /* fx is in use */
};

static inline const struct commit_config *txn_config(const struct worker *w, uint8_t space)
{
    return &((const struct zeus_config *)w->node->spaces[space].engine)->commit;
}

static inline bool txn_rule_on(const struct worker *w, uint8_t space, enum commit_rule rule)
{
    return commit_rule_on(txn_config(w, space), rule);
}

/* ---- txn.c ---- */
/* The call's transaction, begun if it is not; NULL: no memory, the call has failed. */
struct txn *txn_begin(struct worker *w, struct call *c);
/* Ends the call with what the evaluation said. */
void txn_answer(struct worker *w, struct txn *t);
/* It waits until the object is free or readable (KEY_WAITERS is set). */
void txn_wait(struct worker *w, struct txn *t, uint64_t hash);
/* It waits for a slot of the pipeline. */
void txn_wait_room(struct worker *w, struct txn *t);
/* It waits for the levels that its places lack. */
void txn_want(struct worker *w, struct txn *t);
/* Lets all go that it holds. */
void txn_release(struct worker *w, struct txn *t);
/* There is room in a pipeline: who has waited for it may try. */
void txn_roomy(struct worker *w, uint8_t space);
/* Whoever waits for the object may try again; others' workers too. */
void txn_wake(struct worker *w, uint8_t space, uint64_t hash);

/* ---- txn_read.c ---- */
/* A call that only reads one key, without a transaction; false: there must be one. */
bool txn_read_one(struct worker *w, struct call *c);
void txn_read(struct worker *w, struct txn *t);

/* ---- txn_commit.c ---- */
void txn_commit(struct worker *w, struct txn *t);
/* What is stored becomes the object's state. False: it makes no sense. */
bool txn_take_state(const struct worker *w, struct txn *t, uint32_t i);

/* What is written, in the form in which it is stored, behind its head: where commit_object_put
 * finds it. Returns what is behind. */
uint8_t *txn_record_write(uint8_t *at, struct bytes key, uint64_t version,
                          const struct op_state *state, struct commit_object *object_out);
/* The key of what was only read. */
uint8_t *txn_record_read(uint8_t *at, struct bytes key);

/* ---- txn_pipe.c ---- */
struct txn_pipe *txn_pipe_new(uint8_t space, const struct commit_name *name, bool own);
void txn_pipe_free(struct worker *w, struct txn_pipe *p);
/* It is a pipeline of this node from here on. */
void txn_pipe_add(struct txn_space *s, struct txn_pipe *p);
/* This worker's own pipeline of that number; NULL: it is none. */
struct txn_pipe *txn_pipe_own(const struct txn_space *s, uint32_t number);
/* Where a transaction with such followers is best committed; NULL: there is no room. */
struct txn_pipe *txn_pipe_choose(const struct txn_space *s, nodeset followers);
/* Whether another transaction may commit in it; in any of this worker's own. */
bool txn_pipe_room(const struct txn_pipe *p);
bool txn_pipe_any_room(const struct txn_space *s);
/* The next slot is that transaction's: its record, whose bytes are the pipe's from here on.
 * Effects wait in txns.fx until txn_pipe_go, which may answer calls. */
uint64_t txn_pipe_begin(struct worker *w, struct txn_pipe *p, nodeset followers,
                        const struct txn_record *record);
void txn_pipe_go(struct worker *w, struct txn_pipe *p);
struct txn_slot *txn_pipe_slot(struct txn_pipe *p, uint64_t slot);
void txn_pipe_adopt(struct worker *w, uint8_t space);
void txn_pipe_flush(struct worker *w);

#endif
