/* Transactions that are committed on the caller's thread, which is no worker's: an application's.
 * All objects are here and at rest, or in commits that are under way in the caller's own pipeline;
 * then nothing has to be asked or waited for. The pipeline's messages are its worker's: what this
 * committed is handed to the worker as a request (struct request, committed), which answers when it
 * is reliable. What cannot be done this way is left as it was, for a worker to do.
 * docs/protocols/zeus-commit.md, "On the caller's thread".
 *
 * Threads. As node/read.h: one caller has the reader, and worker_poll runs beside it. */
#ifndef HORKOS_NODE_COMMIT_HERE_H
#define HORKOS_NODE_COMMIT_HERE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/op.h"

#define NODE_COMMIT_KEYS_MAX 64u
#define NODE_COMMIT_BYTES_MAX (64u * 1024u) /* of a transaction's record */

struct node_reader;

/* A key of the transaction; each once. */
struct node_commit_key {
    struct bytes key;
    const struct op *op; /* OP_SET or OP_DELETE, checked; NULL: the key is only read */
    uint64_t version;    /* watched: that it must have; 0: absent */
    bool watched;

    /* node_commit's own: */
    bool held, changed, under_way;
    uint64_t hash;
    uint64_t ts;           /* as found, then as written */
    struct op_state state; /* as it shall be */
};

enum node_commit_answer {
    NODE_COMMIT_ASK,      /* nothing has happened; a worker can tell */
    NODE_COMMIT_CONFLICT, /* nothing has happened: something watched has changed */
    NODE_COMMIT_DONE,     /* it has taken effect, and nobody else keeps anything of it: reliable */
    NODE_COMMIT_SLOT,     /* it has taken effect, and is reliable when the worker says so */
};

/* NODE_COMMIT_SLOT: what the worker needs. Plain memory; goes into one request, and means nothing
 * to another node than the one that made it (then the answer is HK_ERR_UNKNOWN). */
struct node_committed {
    uint64_t nonce; /* of the node; 0: none */
    uint64_t slot;
    uint8_t *record; /* the node's */
    uint64_t inv_n, hashes_at, n;
    uint32_t caller;
};

/* Commits a transaction of n keys (1 to NODE_COMMIT_KEYS_MAX) in a space, of a reader that has a
 * worker (node_reader_worker). now_us: the clock (CLOCK_BOOTTIME) as read after the call that this
 * serves began. What it hands out goes to that worker in the order of these calls. */
enum node_commit_answer node_commit(struct node_reader *reader, uint32_t space, uint64_t now_us,
                                    uint32_t n, struct node_commit_key *keys,
                                    struct node_committed *committed_out);

#endif
