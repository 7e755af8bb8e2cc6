/* horkos inside your own process: a node of a cluster, without a server beside it.
 *
 * A program opens a node, and a session for each of its threads that uses it. A read of a key is
 * answered on the calling thread out of the node's memory, without a lock and without a message,
 * and is never older than what any node acknowledged before. An update goes to the node's workers,
 * and from there to the other nodes; it is acknowledged when every live node has it.
 *
 *     struct hk_config config = {.id = 0, .dir = "/var/lib/app"};
 *     struct hk_node *node;
 *     struct hk_session *session;
 *     if (hk_open(&config, &node) != HK_OK || hk_wait_serving(node, 5000) != HK_OK ||
 *         hk_session_open(node, NULL, &session) != HK_OK) {
 *         ...
 *     }
 *     int64_t visits;
 *     int err = hk_add(session, hk_text("visits"), 1, &visits);
 *     hk_session_close(session);
 *     hk_close(node);
 *
 * Threads. Functions of a node may be called on any thread. A session belongs to one thread at a
 * time: handing it over needs the program's own synchronization.
 *
 * Errors. Functions that can fail return HK_OK or a negative enum hk_err. HK_ERR_UNKNOWN says that
 * an update may or may not have taken effect; every other error says that nothing changed.
 * HK_ERR_INVALID is the answer to an argument that makes no sense, such as NULL.
 *
 * Memory. Bytes that are passed in are read during the call and copied if they are needed longer.
 * Buffers for results are written until the operation has completed.
 *
 * Compatibility. Before version 1.0 structs may grow at their end: compile with the header of the
 * library that you run with, and zero what you do not set (an initializer does). Link with
 * pkg-config horkos. */
#ifndef HORKOS_H
#define HORKOS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "horkos_err.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HK_VERSION "0.1.0"

/* The version of the library that runs, which may be newer than HK_VERSION of the header. */
const char *hk_version(void);

/* ---- Bytes ---- */

#define HK_KEY_MAX 65536u      /* bytes of a key */
#define HK_VALUE_MAX 67108864u /* bytes of a value: 64 MiB */

/* A key or a value: any bytes, none included. Owned by whoever made it. */
struct hk_bytes {
    const void *at;
    size_t n;
};

static inline struct hk_bytes hk_bytes(const void *at, size_t n)
{
    struct hk_bytes bytes;
    bytes.at = at;
    bytes.n = n;
    return bytes;
}

/* A string without its zero. */
static inline struct hk_bytes hk_text(const char *text)
{
    size_t n = 0;
    while (text[n] != '\0') {
        n++;
    }
    return hk_bytes(text, n);
}

/* ---- Nodes ---- */

#define HK_KEY_BYTES 32u /* of a cluster's shared key */
#define HK_NODES_MAX 64u

/* Where a node listens for the others. */
struct hk_peer {
    uint32_t id;         /* 0 to 63 */
    const char *address; /* host:port */
};

/* What a node is made with. Either `file` or `text` is a configuration as `horkos server --config`
 * takes it (docs/CONFIG.md); then of the other fields only `key`, where that names no key_file, and
 * those from `clients` on count.
 * Or both are NULL, and the fields say what matters most. Everything is copied. */
struct hk_config {
    const char *file;
    const char *text;

    uint32_t id;                 /* of this node, 0 to 63 */
    const char *cluster;         /* name; NULL: "horkos" */
    const struct hk_peer *peers; /* every node of the cluster, this one included ... */
    size_t peers_n;              /* ... or none: a cluster of one */
    const uint8_t *key;          /* HK_KEY_BYTES secret bytes, the same for all nodes; needed with
                                    other nodes */
    const char *dir;             /* an existing folder for the node's small state file; NULL: the
                                    current one */
    uint32_t workers;            /* threads that take updates and serve the other nodes; 0: 1 */
    uint64_t memory_max;         /* bytes of keys and values; 0: no limit */
    uint64_t keys_expected;      /* makes room at the start, so that it need not grow; 0: little */
    uint32_t lease_ms;           /* 0: 500. How long the others wait for a node that died */
    uint32_t leave_ms;           /* 0: 5000. The longest that hk_close waits to leave in order */
    uint32_t spin_us;            /* how long a worker without work, and a thread that waits for an
                                    answer, look for it before they sleep; 0: not at all */
    const char *log_file;        /* NULL: warnings and errors, on standard error */

    bool clients;       /* serves Redis clients too: at `listen`, or where the configuration says */
    const char *listen; /* host:port or unix:PATH; NULL: 127.0.0.1:6379 */
    bool bootstrap;     /* forms a new, empty cluster although the state file knows of an old one */
    char *error;        /* where hk_open puts a sentence about its failure; NULL: nowhere */
    size_t error_bytes;
    bool transactions; /* a second space, HK_SPACE_TRANSACTIONS, that has transactions */
    bool ordered;      /* another one, HK_SPACE_ORDERED, that has transactions and ranges; what it
                          keeps is lost with the node that has it */
};

#define HK_SPACE_TRANSACTIONS 1u /* the spaces that hk_config.transactions ... */
#define HK_SPACE_ORDERED 3u      /* ... and hk_config.ordered make */

struct hk_node;

/* Starts a node with its threads; they block all signals. Returns when its listeners stand; it
 * serves once it has found the others (hk_wait_serving). Several nodes may live in one process.
 * HK_ERR_INVALID: the configuration; HK_ERR_IO: a port, a file or a thread could not be had;
 * HK_ERR_NOMEM. One thing ends the process (abort): that a running node cannot write its state
 * file, since a node that forgot its cluster could found a second one. */
int hk_open(const struct hk_config *config, struct hk_node **node_out);

/* Waits until the node serves, at most timeout_ms. HK_OK; HK_ERR_TIMEOUT; HK_ERR_UNAVAILABLE when
 * it was stopped. */
int hk_wait_serving(struct hk_node *node, uint32_t timeout_ms);

/* Stops the node and frees it: updates under way are finished, then it leaves the cluster, which
 * goes on without a gap; after leave_ms at most it stops anyway. All operations in flight are
 * answered. Sessions that are still open stay valid, answer HK_ERR_UNAVAILABLE to what comes, and
 * are closed by hk_session_close as ever. No other thread may be in a call with this node; calls
 * with its sessions may go on. */
void hk_close(struct hk_node *node);
/* The same without leaving: for the others it is a crash. */
void hk_close_now(struct hk_node *node);

enum hk_state {
    HK_STATE_FORMING,  /* waits for all configured nodes, to form the first view */
    HK_STATE_JOINING,  /* is let in, then copies all keys */
    HK_STATE_SERVING,  /* reads and updates are served */
    HK_STATE_NO_LEASE, /* cannot hear a majority in time; comes back by itself */
    HK_STATE_LOST,     /* too few members are left */
    HK_STATE_REFUSING, /* was part of a cluster that it cannot find: see the log */
    HK_STATE_LEAVING,  /* gave its lease up, waits to be dropped */
    HK_STATE_STOPPED,
};
/* "forming", "joining", ... */
const char *hk_state_name(enum hk_state state);

struct hk_status {
    enum hk_state state;
    uint32_t id;
    uint32_t epoch;         /* of the newest view; 0: none yet */
    uint64_t generation;    /* of the cluster */
    uint64_t members;       /* bit i: node i is a live member */
    uint64_t configured;    /* bit i: node i belongs to the cluster */
    bool member;            /* this node is a live member ... */
    bool operational;       /* ... and holds every key */
    uint64_t lease_left_us; /* how long it may serve without hearing from anybody; 0: it may not */
    uint64_t keys;          /* of all spaces, approximately while they change */
    uint64_t bytes;         /* that keys, values and index take */
    uint32_t sessions;      /* open */
    const char *version;
};
void hk_status(struct hk_node *node, struct hk_status *status_out);

/* ---- Sessions ---- */

#define HK_SESSIONS_MAX 128u  /* of a node */
#define HK_IN_FLIGHT_MAX 127u /* operations of a session that have not completed */

struct hk_session;

struct hk_session_options {
    uint32_t in_flight_max; /* 0: 64; at most HK_IN_FLIGHT_MAX */
    uint32_t space;         /* as hk_session_space */
};

/* options may be NULL. HK_ERR_FULL past HK_SESSIONS_MAX, HK_ERR_NOMEM, HK_ERR_UNAVAILABLE when the
 * node has stopped. */
int hk_session_open(struct hk_node *node, const struct hk_session_options *options,
                    struct hk_session **session_out);

/* Waits for what is in flight (each operation is answered within seconds), runs its callbacks, and
 * frees the session. Not from within a callback. */
void hk_session_close(struct hk_session *session);

/* From now on operations are about keys of this space (0 at first). A space that is not configured
 * makes them answer HK_ERR_INVALID. */
void hk_session_space(struct hk_session *session, uint32_t space);

/* ---- Operations that wait ----
 *
 * An operation has taken effect, or failed, when it returns. HK_ERR_UNAVAILABLE and HK_ERR_LOADING:
 * this node serves nothing at the moment, not even reads; an operation waits a lease for that to
 * change. HK_ERR_BUSY: others changed the key all the time. HK_ERR_NOMEM: some node's memory is
 * full. HK_ERR_TOOBIG: key, value or result is over its limit. */

/* Copies the value into value (capacity bytes); *n_out is its length. HK_ERR_NOTFOUND: there is no
 * such key. HK_ERR_TOOBIG: the value is longer than capacity; *n_out says how long. n_out may be
 * NULL. */
int hk_get(struct hk_session *session, struct hk_bytes key, void *value, size_t capacity,
           size_t *n_out);

/* A key of a batch. */
struct hk_read {
    struct hk_bytes key;
    void *value; /* capacity bytes */
    size_t capacity;
    size_t n;         /* out: as *n_out of hk_get */
    int err;          /* out: as hk_get answers */
    uint64_t version; /* out: as hk_result.version */
};

/* Any number of keys at once, many times as fast as one by one: their cache misses overlap. Each is
 * read on its own, so the batch is no snapshot. HK_OK if every key was found or is absent (err:
 * HK_OK or HK_ERR_NOTFOUND), else the first other error. */
int hk_get_batch(struct hk_session *session, struct hk_read *reads, size_t n);

enum hk_put_flag {
    HK_PUT_IF_ABSENT = 1,  /* else HK_ERR_CONDITION */
    HK_PUT_IF_PRESENT = 2, /* else HK_ERR_CONDITION */
    HK_PUT_KEEP_TTL = 4,   /* the key goes on to expire when it would have */
};

struct hk_put_options {
    uint32_t flags;  /* enum hk_put_flag */
    uint64_t ttl_ms; /* the key is gone after that long; 0: never, unless HK_PUT_KEEP_TTL */
};

/* Sets a key. options may be NULL. */
int hk_put(struct hk_session *session, struct hk_bytes key, struct hk_bytes value,
           const struct hk_put_options *options);

/* HK_ERR_NOTFOUND: there was nothing to delete. */
int hk_delete(struct hk_session *session, struct hk_bytes key);

/* Sets a key whose value is `expected`. HK_ERR_CONDITION: it is another, or there is none. options
 * may be NULL; of the flags only HK_PUT_KEEP_TTL makes sense. */
int hk_compare_and_set(struct hk_session *session, struct hk_bytes key, struct hk_bytes expected,
                       struct hk_bytes value, const struct hk_put_options *options);

/* Deletes a key whose value is `expected`. HK_ERR_CONDITION: it is another, or there is none. */
int hk_compare_and_delete(struct hk_session *session, struct hk_bytes key,
                          struct hk_bytes expected);

/* Adds to a number that is kept as decimal text, as Redis's INCRBY does; a key that does not exist
 * counts as 0. *sum_out, if not NULL, is the sum. HK_ERR_TYPE: the value is no number;
 * HK_ERR_OVERFLOW: the sum would not fit. */
int hk_add(struct hk_session *session, struct hk_bytes key, int64_t delta, int64_t *sum_out);

/* ---- Operations that do not wait ----
 *
 * They are begun and return; hk_session_poll calls `done` when they have completed. Completions
 * come in any order. Updates of one key take effect in the order in which they were begun, a read
 * after those that were begun before it and before those that were begun after; of two reads that
 * are in flight together either may see the newer value. HK_ERR_FULL: in_flight_max operations have
 * not completed yet, or their `done` has not been called; poll first. Every operation that was
 * begun completes, if need be with HK_ERR_UNKNOWN or HK_ERR_UNAVAILABLE.
 *
 * Reads beside updates: hk_get, hk_get_batch and hk_get_async see every update of this session that
 * was begun before them on the same key, completed or not; a key with such an update is read by the
 * worker that has it. */

struct hk_result {
    int err;          /* as the waiting form answers */
    size_t n;         /* hk_get_async: length of the value */
    int64_t number;   /* hk_add_async: the sum */
    uint64_t version; /* of what was read or written: larger for every later update of the key, and
                         the same on all nodes; 0: there was nothing, or it is not known */
};

/* Runs inside hk_session_poll, on its thread; may use the session. */
typedef void hk_done(void *context, const struct hk_result *result);

/* value is written until the operation has completed. done may be NULL, here and below. */
int hk_get_async(struct hk_session *session, struct hk_bytes key, void *value, size_t capacity,
                 hk_done *done, void *context);
int hk_put_async(struct hk_session *session, struct hk_bytes key, struct hk_bytes value,
                 const struct hk_put_options *options, hk_done *done, void *context);
int hk_delete_async(struct hk_session *session, struct hk_bytes key, hk_done *done, void *context);
int hk_compare_and_set_async(struct hk_session *session, struct hk_bytes key,
                             struct hk_bytes expected, struct hk_bytes value,
                             const struct hk_put_options *options, hk_done *done, void *context);
int hk_compare_and_delete_async(struct hk_session *session, struct hk_bytes key,
                                struct hk_bytes expected, hk_done *done, void *context);
int hk_add_async(struct hk_session *session, struct hk_bytes key, int64_t delta, hk_done *done,
                 void *context);

/* ---- Transactions ----
 *
 * Reads and writes of any keys of a space whose engine has transactions (zeus and lotus:
 * docs/CONFIG.md, hk_config.transactions, hk_config.ordered), all or nothing, strictly
 * serializable: as if each that committed was done at one moment between its begin and the return
 * of its commit.
 *
 *     static int pay(struct hk_txn *txn, void *context)
 *     {
 *         const struct payment *p = context;
 *         int64_t from, to;
 *         int err = balance(txn, p->from, &from);
 *         err = err == HK_OK ? balance(txn, p->to, &to) : err;
 *         err = err == HK_OK ? set_balance(txn, p->from, from - p->amount) : err;
 *         return err == HK_OK ? set_balance(txn, p->to, to + p->amount) : err;
 *     }
 *     int err = hk_txn_run(session, NULL, pay, &payment);
 *
 * Reads are of this node's memory, on the calling thread; what is written stays with the
 * transaction until it commits. A key that belongs to another node is brought here the first time
 * that a transaction touches it, which is when a call may wait, and stays until another node works
 * on it: transactions over keys that this node has need no messages before they commit.
 * docs/TRANSACTIONS.md says more. That is so in a space of the engine zeus. In one of the engine
 * lotus keys stay at the memory servers that have them: each first read of a key is a message there
 * and back, and what was read at different times may not fit together before the commit says so.
 *
 * HK_ERR_ABORTED: something that the transaction has read was changed by another one meanwhile;
 * nothing happened, and it may be tried again. HK_ERR_TIMEOUT: the same, its time is over.
 * HK_ERR_UNKNOWN, from a commit: it may or may not have happened. Once a call has answered another
 * error than HK_ERR_NOTFOUND, HK_ERR_TOOBIG and HK_ERR_INVALID, the transaction will not commit.
 *
 * Operations without a transaction (hk_get, hk_put, ...) on such a space are transactions of one
 * operation each. */

#define HK_TXN_KEYS_MAX 1024u /* that a transaction touches */

struct hk_txn;

enum hk_txn_flag {
    HK_TXN_READ_ONLY = 1, /* it writes nothing: keys of other nodes are copied, not taken */
};

struct hk_txn_options {
    uint32_t flags;      /* enum hk_txn_flag */
    uint32_t timeout_ms; /* for all that it waits for, the commit included; 0: 5000 */
};

/* A transaction over the session's space, of the session's thread. options may be NULL.
 * HK_ERR_INVALID: the space has no transactions. */
int hk_txn_begin(struct hk_session *session, const struct hk_txn_options *options,
                 struct hk_txn **txn_out);

/* As hk_get; sees what the transaction itself has written. Reads of one key answer the same. */
int hk_txn_get(struct hk_txn *txn, struct hk_bytes key, void *value, size_t capacity,
               size_t *n_out);
/* options: as of hk_put, of the flags HK_PUT_KEEP_TTL alone. HK_ERR_FULL: over HK_TXN_KEYS_MAX. */
int hk_txn_put(struct hk_txn *txn, struct hk_bytes key, struct hk_bytes value,
               const struct hk_put_options *options);
/* HK_OK, whether there is such a key or not. */
int hk_txn_delete(struct hk_txn *txn, struct hk_bytes key);

/* Ends the transaction, whatever it answers. HK_OK: it has happened, and every live replica of what
 * it wrote has it. One that wrote nothing commits without a message if all it read is here. */
int hk_txn_commit(struct hk_txn *txn);
/* The same without waiting: `done` gets HK_OK, or what went wrong, from hk_session_poll. Commits of
 * a session take effect in their order. HK_ERR_FULL: in_flight_max operations have not completed
 * yet; the transaction stays as it is. With any other error it has ended, and `done` is not called.
 */
int hk_txn_commit_async(struct hk_txn *txn, hk_done *done, void *context);
/* Nothing happened. NULL is ignored. */
void hk_txn_abort(struct hk_txn *txn);

/* Waits until all commits that were begun in this session are over, and calls `done` of what has
 * completed meanwhile, as hk_session_poll does. HK_ERR_TIMEOUT: some are not. Not from within a
 * callback. */
int hk_txn_fence(struct hk_session *session, uint32_t timeout_ms);

/* ---- Ranges ----
 *
 * Of spaces whose keys have an order (engine lotus, hk_config.ordered; others answer
 * HK_ERR_INVALID): keys from `start` on (none: the first) that are less than `end` (none: no end),
 * compared byte by byte. A range is one step, of at most HK_RANGE_ROWS_MAX keys and 64 MiB, its
 * answer is in memory as a whole, and one that is wider answers HK_ERR_TOOBIG: then give a limit,
 * and go on behind the last key. Who has to go through everything and need not have it as it was at
 * one moment does the same with a limit of some thousand. */

#define HK_RANGE_ROWS_MAX 65535u
#define HK_TXN_RANGES_MAX 64u /* that a transaction reads; each counts as a key, too */

enum hk_range_flag {
    HK_RANGE_REVERSE = 1, /* from the last key on, downwards */
    HK_RANGE_KEYS = 2,    /* values are not wanted, and are empty */
};

struct hk_range_options {
    uint32_t flags; /* enum hk_range_flag */
    uint32_t limit; /* so many keys at the most, from where it begins; 0: all */
};

/* A key of a range and its value; the bytes are good during the call only. May use the session and
 * the transaction. HK_OK: the next one; anything else ends the reading and is its answer. */
typedef int hk_row(void *context, struct hk_bytes key, struct hk_bytes value);

/* options may be NULL. HK_ERR_BUSY: others were in the way all the time. */
int hk_range(struct hk_session *session, struct hk_bytes start, struct hk_bytes end,
             const struct hk_range_options *options, hk_row *row, void *context);
/* How many keys there are. */
int hk_range_count(struct hk_session *session, struct hk_bytes start, struct hk_bytes end,
                   uint64_t *n_out);
/* Deletes the first `limit` of them (0: all) in one step; *n_out, if not NULL, is how many. */
int hk_range_delete(struct hk_session *session, struct hk_bytes start, struct hk_bytes end,
                    uint32_t limit, uint64_t *n_out);

/* The same in a transaction: what it has written itself is seen, and it commits only if no other
 * has changed a key of the range, or put one there or taken one away. Where a limit ended it that
 * is the range as far as it was read. HK_ERR_FULL: over HK_TXN_RANGES_MAX or HK_TXN_KEYS_MAX. */
int hk_txn_range(struct hk_txn *txn, struct hk_bytes start, struct hk_bytes end,
                 const struct hk_range_options *options, hk_row *row, void *context);
/* As hk_txn_delete of each; they count as keys that it touches. */
int hk_txn_range_delete(struct hk_txn *txn, struct hk_bytes start, struct hk_bytes end,
                        uint32_t limit, uint64_t *n_out);

/* What is done in a transaction; may run several times, each time from the beginning, so it keeps
 * nothing of an earlier one. Returns what it was answered, or an error of its own; neither commits
 * nor aborts. */
typedef int hk_txn_body(struct hk_txn *txn, void *context);

/* Runs the body and commits; if that is aborted, again after a short, random while, until
 * options->timeout_ms are over: of transactions that want the same keys the one whose first try is
 * the oldest goes first. What body answers other than HK_OK and HK_ERR_ABORTED ends it
 * without effect, and is the answer. */
int hk_txn_run(struct hk_session *session, const struct hk_txn_options *options, hk_txn_body *body,
               void *context);

/* ---- Completions ---- */

/* Calls `done` of at most max operations that have completed; does not wait. Returns how many. */
uint32_t hk_session_poll(struct hk_session *session, uint32_t max);

/* Waits until hk_session_poll would find something: HK_OK. HK_ERR_TIMEOUT: nothing did within
 * timeout_ms. HK_ERR_NOTFOUND: nothing is in flight. */
int hk_session_wait(struct hk_session *session, uint32_t timeout_ms);

/* Operations that were begun and whose `done` was not called. */
uint32_t hk_session_in_flight(const struct hk_session *session);

#ifdef __cplusplus
}
#endif

#endif
