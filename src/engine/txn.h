/* Transactions as clients ask for them, and their pure evaluation: the second seam between
 * protocols and node, beside engine.h. A transaction is a list of operations on any objects of one
 * space, done in order, all or nothing, and a list of versions that must still hold when it takes
 * effect. How its objects come to be here (zeus: by ownership; the baseline: by locks at their
 * homes), and how the result is replicated, is the engine's and the node's matter. */
#ifndef HORKOS_ENGINE_TXN_H
#define HORKOS_ENGINE_TXN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/op.h"

#define TXN_OPS_MAX 1024u     /* operations of one transaction, ... */
#define TXN_OBJECTS_MAX 1024u /* ... and objects that it touches, watches included */

/* What was read before: the transaction takes effect only if the object still has that version. */
struct txn_watch {
    struct bytes key;
    uint64_t version; /* as struct reply had it; 0: it was absent */
    /* Of a range instead: op.arg, op.number and op.flags of the RANGE whose version it is. */
    bool range;
    uint16_t flags;
    uint32_t limit;
    struct bytes end;
};

enum txn_flag {
    TXN_ALL = 1 << 0,  /* nothing happens unless every operation that may change its object does so
                          (answer.applied): MSETNX */
    TXN_STOP = 1 << 1, /* nothing happens if an operation answers an error */
    TXN_ACQUIRE = 1 << 2, /* ownership of all its objects is brought here, and nothing is done */
    TXN_ABSENCE = 1 << 3, /* versions of absent objects are told: TXN_ABSENT and what is known */
};

/* In a version: the object was absent; the rest is the version of the deletion that made it so, or
 * 0. Held against it, an object is absent and nothing has come and gone since, as far as deletions
 * are remembered. A watch's version of just 0 is content with any absence. */
#define TXN_ABSENT (UINT64_C(1) << 63)

/* Operations between two objects: op.key is the source, op.arg the target. Values and deadlines go
 * along. */
enum txn_pair_kind {
    TXN_OP_RENAME = OP_KINDS, /* answers OK; HK_ERR_NOTFOUND without a source. OPF_NX: answers 1, or
                                 0 if the target exists */
    TXN_OP_COPY,              /* answers 1, or 0 without a source, or if the target exists and
                                 OPF_XX (REPLACE) is not given; HK_ERR_INVALID onto itself */
    /* Ranges, in spaces with ENGINE_TABLES: the present keys from op.key on (empty: the first) that
     * are less than op.arg (empty: no end), of them the first op.number (0: all) in their order, or
     * with TXN_OPF_REVERSE the last, from the last on. Their version is a digest of keys and
     * versions, for a watch. */
    TXN_OP_RANGE,        /* answers ANSWER_PAIRS; with TXN_OPF_KEYS their values are empty */
    TXN_OP_RANGE_COUNT,  /* answers how many */
    TXN_OP_RANGE_DELETE, /* deletes them; answers how many */
    TXN_OP_END
};

/* Keys and values of a range's answer (ANSWER_PAIRS), one behind the other in answer.value;
 * answer.number says how many. Takes the next off `rest`; false: there is none. */
bool txn_pair_take(struct bytes *rest, struct bytes *key_out, struct bytes *value_out);

/* Beside those of enum op_flag. SET with OPF_NX, and the operation behind it is one, too: all of
 * such a row apply, on objects as they were before the first of them, or none does (MSETNX). */
enum txn_op_flag { TXN_OPF_ROW = 1 << 9, TXN_OPF_REVERSE = 1 << 10, TXN_OPF_KEYS = 1 << 11 };

/* Rows that the ranges of one transaction may meet, and how many they may go over, each counted as
 * often; past that, and past MSG_VALUE_MAX bytes of pairs in all, they answer HK_ERR_TOOBIG. */
#define TXN_SCANNED_MAX 65535u
#define TXN_VISITED_MAX (1u << 20)

/* Its bytes stay good until worker_poll returns. */
struct txn_request {
    const struct op *ops; /* all of one space */
    const struct txn_watch *watches;
    uint32_t ops_n;
    uint32_t watches_n;
    uint32_t flags; /* enum txn_flag */
};

/* HK_ERR_INVALID, HK_ERR_TOOBIG: as op_check, for each operation and in all. */
int txn_check(const struct txn_request *txn, uint32_t value_bytes_max)
    __attribute__((warn_unused_result));
/* Whether it may change anything: then it needs ownership of everything that it touches. */
bool txn_updates(const struct txn_request *txn);

/* An object as the transaction sees it: what is stored, then what the operations so far made of it
 * (its private copy). */
struct txn_object {
    struct bytes key;
    uint64_t hash;    /* of the key, the caller's */
    uint64_t version; /* as stored; 0: absent, or a tombstone */
    uint64_t
        absence; /* then the version of the tombstone; 0: nothing is stored. Who only creates an
                         object, and writes nothing, leaves one whose version has cid 0 */
    struct op_state
        state;    /* in: as stored. out: as it shall be. Its bytes may be op's or memory's */
    bool expired; /* in: its deadline has passed: absent, and deleted whatever the verdict */
    bool changed; /* out */
};

/* Any function of the bytes: equal keys are found by it. One that clients cannot foresee, or they
 * could make it slow. */
typedef uint64_t txn_hash_fn(const void *context, struct bytes key);

/* The objects that it touches, each once, in the order of first mention: operations' keys, targets,
 * watches; of each, key and hash, the rest zero. Ranges mention none (UINT16_MAX). Returns how
 * many, at most `most` (up to TXN_OBJECTS_MAX); UINT32_MAX if there are more. index_out: for
 * operation i the object of its key at [2 i] and of its target at [2 i + 1] (UINT16_MAX: none);
 * then one for each watch. */
uint32_t txn_objects(const struct txn_request *txn, txn_hash_fn *hash, const void *context,
                     struct txn_object *objects_out, uint32_t most, uint16_t *index_out);

/* How many present rows have to be brought for the range that operation i is, so that its limit is
 * reached whatever the operations before it delete; 0: all. */
uint32_t txn_range_fetch(const struct txn_request *txn, uint32_t i);

/* Memory for values that operations make, and for ranges; at: the caller's. */
struct txn_memory {
    uint8_t *at;
    uint64_t n;
    uint64_t used;
    uint32_t value_bytes_max; /* a longer value is the operation's error (HK_ERR_TOOBIG) */
};

enum txn_verdict {
    TXN_DONE,      /* objects that changed are to be written, then the answers said */
    TXN_CONFLICT,  /* a watch does not hold: nothing happens */
    TXN_UNAPPLIED, /* TXN_ALL, TXN_STOP: nothing happens; the answers say why; behind the first
                      operation that did not apply they are NIL */
    TXN_NO_MEMORY, /* memory->used says how much was needed so far; nothing happened. Try again with
                      that and more, and with the objects as they were */
};
/* Evaluates all operations on the objects, whose states are as stored. Behind those of txn_objects
 * stand the ones that ranges have met, none of them twice: of each range enough present rows that
 * its limit is reached whatever the operations before it delete. An object that is expired is
 * absent, to watches too. answers_out: one for each operation, whose bytes point into objects,
 * operations or memory. Unless TXN_DONE no object is `changed`, and their states mean nothing. */
enum txn_verdict txn_evaluate(const struct txn_request *txn, struct txn_object *objects,
                              uint32_t objects_n, const uint16_t *index, uint64_t wall_ms,
                              struct txn_memory *memory, struct answer *answers_out);
/* After that, whatever the verdict but TXN_NO_MEMORY: the version of a range that is one of its
 * operations, for a watch: by the objects' versions, as they came. memory: the txn_memory.at that
 * it had, untouched. */
uint64_t txn_range_version(const struct op *range, struct txn_object *objects, uint32_t objects_n,
                           const uint8_t *memory);

#endif
