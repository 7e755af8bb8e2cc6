/* Two-phase locking on one-sided verbs: transactions of reads and writes of records that a tree
 * leads to, each with a lock word in front. NO_WAIT and WAIT_DIE, after what [L] 2.3.2 describes,
 * with fewer round trips where the verbs allow it (docs/ONE_SIDED.md). Ours, not theirs. A machine,
 * as tree.h has them. */
#ifndef HORKOS_ONESIDED_TXN_H
#define HORKOS_ONESIDED_TXN_H

#include "base/random.h"
#include "onesided/tree.h"

#define ONE_REQUESTS_MAX 32u
#define ONE_VALUE_WORDS_MAX 128u

/* A record: the lock word, the key, the value. With ONE_GHOST the key, which is below it, has no
 * value: it was read, or is being inserted, or was not in the end. */
#define ONE_RECORD_HEAD 2u
#define ONE_GHOST (UINT64_C(1) << 63)

/* The lock word: bit 63: exclusive; 15 bits from 48 on: how many share it; below: the age of an
 * owner that is no younger than any (WAIT_DIE). Free: no bit above the age. */
#define ONE_LOCK_X (UINT64_C(1) << 63)
#define ONE_LOCK_S (UINT64_C(1) << 48)
#define ONE_LOCK_AGE (ONE_LOCK_S - 1)

enum one_policy { ONE_NO_WAIT, ONE_WAIT_DIE, ONE_POLICIES };
extern const char *const one_policy_names[ONE_POLICIES]; /* "one_sided_no_wait", ... */

struct one_config {
    uint8_t policy;
    bool overlap;             /* all requests of a transaction at once; else one after the other */
    uint32_t value_words;     /* of a record's value that are kept ... */
    uint32_t value_more;      /* ... and that only travel, where time is a model's */
    uint64_t poll_ns;         /* WAIT_DIE: between two looks at a lock; 0: 2 us */
    uint64_t back_off_ns;     /* the first pause after an abort, at most; doubles; 0: 16 us ... */
    uint32_t back_off_shifts; /* ... so often; 0: 8 */
};

/* Addresses of records that were found, by key: of one thread, or of threads that step one after
 * the other. slots: a power of two; NULL memory: none. */
struct one_hints {
    struct {
        uint64_t key;
        remote at;
    } * slots;
    uint64_t n;
    uint64_t good, stale, absent;
};
bool one_hints_open(struct one_hints *hints, uint64_t slots);
void one_hints_close(struct one_hints *hints);

/* Of a compute server: zeroed records that nothing leads to, at each memory server. */
struct one_room {
    remote next[NODES_MAX], end[NODES_MAX];
    uint64_t record_bytes;
    uint32_t nodes, turn;
};

struct one_request {
    uint64_t key; /* below ONE_GHOST */
    bool write;
    bool ghost; /* out: there was no value */
    /* The machine's. */
    uint8_t state;
    bool hinted;
    remote at;      /* of the record */
    uint64_t held;  /* the lock word with which it was taken: S or X; 0: not held */
    uint64_t guess; /* what the lock word is taken for */
    uint32_t first;
    remote fresh; /* a record that is in no tree yet; 0: none */
    union {
        struct one_walk walk;
        struct one_insert insert;
    };
    uint64_t record[ONE_RECORD_HEAD + ONE_VALUE_WORDS_MAX]; /* as read; then what it becomes */
};

enum one_txn_state { ONE_TXN_RUN, ONE_TXN_READY, ONE_TXN_COMMIT, ONE_TXN_ABORT, ONE_TXN_OVER };

struct one_txn {
    const struct one_config *config;
    const struct one_tree *tree;
    struct one_cache *cache;
    struct one_hints *hints;
    uint64_t age; /* less is older; no two are equal; 1 .. ONE_LOCK_AGE. Kept over tries */
    uint32_t n;
    uint32_t tries; /* that were aborted */
    uint8_t state;
    bool dies;
    bool absent;           /* out: a key has no record, and there is no `room` for any */
    bool full;             /* out: `room` had not enough */
    struct one_room *room; /* for records of keys that have none; NULL: they are not made */
    struct random *random;
    struct one_request requests[ONE_REQUESTS_MAX];
};

/* Keys are different from each other; requests' key and write are set. */
void one_txn_begin(struct one_txn *txn, uint64_t age, uint32_t n);

enum one_step {
    ONE_POSTED,   /* p holds what is to be done, then step again */
    ONE_READY,    /* all is locked and read: requests' records may be changed; step again */
    ONE_FINISHED, /* committed, or absent */
};
enum one_step one_txn_step(struct one_txn *txn, const struct posting *done, struct posting *p);

#endif
