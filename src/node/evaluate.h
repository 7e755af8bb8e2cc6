/* A transaction that is evaluated on rows that were brought to it: its objects, what was found of
 * them, and the answers. What the baseline (occ.c), Lotus's coordinator (lotus.c) and its memory
 * servers (lotus_home.c, of requests that are theirs alone) have in common. Only files of node
 * include it. */
#ifndef HORKOS_NODE_EVALUATE_H
#define HORKOS_NODE_EVALUATE_H

#include "engine/txn.h"
#include "node/internal.h"

/* Memory that is kept from one use to the next. Zero: empty. */
struct buffer {
    uint8_t *at;
    uint32_t n, capacity;
};
/* Makes room for that many bytes more, and returns it: what was there before may have moved.
 * Asserts: bounded by its users, and nothing goes on without it. */
uint8_t *buffer_add(struct buffer *b, uint32_t bytes);
/* Gives back what a single large use has left behind. */
void buffer_trim(struct buffer *b, uint32_t capacity_max);
void buffer_free(struct buffer *b);

/* Zero: none. From one transaction to the next only the buffers are kept. */
struct evaluation {
    struct txn_request request; /* several operations, or `one` */
    struct op one;
    struct txn_object *objects; /* in `met` */
    uint16_t *index;            /* as txn_objects has it */
    struct answer *answers;
    uint64_t *versions;
    uint32_t objects_n;
    uint32_t scanned_n; /* objects behind objects_n, which only ranges have met */
    uint8_t verdict;    /* enum txn_verdict */
    bool several;
    struct buffer arrays, met, memory;
};

/* The request, all of one space (NULL: the operation, whose copy is `one`): arrays for it, and the
 * objects that it mentions, of which only key and hash (of that store) are set. The request's bytes
 * stay the caller's. HK_ERR_TOOBIG: more than TXN_OBJECTS_MAX. */
int evaluation_begin(struct evaluation *e, const struct txn_request *request, const struct op *op,
                     const struct store *store) __attribute__((warn_unused_result));
void evaluation_free(struct evaluation *e);

/* Copies the request's bytes to `copy`: request and objects point there. */
void evaluation_own(struct evaluation *e, struct buffer *copy);

/* Whether an operation may write the object of its key; that of its target (txn_pair_kind) it
 * always may. */
bool evaluation_writes_key(const struct op *op);

/* One more object, which a range has met and nothing else mentions; objects may move. NULL: there
 * are TXN_SCANNED_MAX. */
struct txn_object *evaluation_scanned(struct evaluation *e, struct bytes key);
/* The objects that ranges have met are forgotten. */
void evaluation_rescan(struct evaluation *e);

/* What is stored of an object. absent: version is that of its deletion, or 0. vflags, value: as
 * stored. HK_ERR_CORRUPT. */
int evaluation_fill(struct txn_object *object, bool absent, uint64_t version, uint8_t vflags,
                    struct bytes value, uint64_t wall_ms) __attribute__((warn_unused_result));

/* Evaluates: e->verdict and e->answers, and the objects as they shall be. fill sets all of them as
 * stored (evaluation_fill), perhaps more than once. HK_ERR_CORRUPT, HK_ERR_TOOBIG. */
typedef int evaluation_fill_fn(void *context);
int evaluation_run(struct evaluation *e, uint32_t value_bytes_max, uint64_t wall_ms,
                   evaluation_fill_fn *fill, void *context) __attribute__((warn_unused_result));

/* After it, when objects that change have their new versions (version, or absence): e->versions. */
void evaluation_versions(struct evaluation *e);
/* What the client hears; version_out: of a single operation. */
void evaluation_answer(const struct evaluation *e, struct answer *answer_out,
                       uint64_t *version_out);
/* What a reply with that answer says beside it. */
void evaluation_reply(const struct evaluation *e, struct reply *reply);

#endif
