/* Reads on a thread that is no worker's: an application's, or a benchmark's. A read is one look at
 * the lease and one seqlock read of the store: no hop, no lock, no write to a line that another
 * thread reads often. What it cannot answer that way it leaves to a worker.
 *
 * Why it is right. The caller reads the clock after the call began, then this looks at the lease
 * (acquire), then at the store. The lease says: at a moment between the call's beginning and the
 * look no view without this node as an operational member was decided, so every update committed
 * before that moment was in this store, and its key not readable at an older value. Whatever is
 * readable afterwards is committed, and as new as that. The view that a worker has adopted does not
 * matter: an update of a newer view commits only with this node's acknowledgement, hence after its
 * key stopped being readable here. control.c takes the lease back before any message leaves that
 * could let others decide without this node.
 *
 * Threads. A reader belongs to one thread at a time; handing it over needs the caller's
 * synchronization. Open, close and use lie between node_create and node_destroy: whoever destroys
 * the node sees to it that every reader was closed before.
 *
 * Reclamation. An online reader that makes no call keeps what the store replaces from being freed:
 * who does not read for a while goes offline. */
#ifndef HORKOS_NODE_READ_H
#define HORKOS_NODE_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define NODE_READ_MAX 64u /* keys of one call */

struct node;
struct node_reader;

/* Registers with the stores of all spaces, online. HK_ERR_NOMEM; HK_ERR_FULL when a store has as
 * many threads as it can (STORE_THREADS_MAX, workers included). */
int node_reader_open(struct node *node, struct node_reader **reader_out)
    __attribute__((warn_unused_result));
void node_reader_close(struct node_reader *reader);
/* The worker that does the session's transactions: what that has committed, and what is not
 * replicated yet, node_read_early answers. */
void node_reader_worker(struct node_reader *reader, uint32_t worker);
/* Offline a reader holds nothing back and may not read; online again it may. */
void node_reader_offline(struct node_reader *reader);
void node_reader_online(struct node_reader *reader);

/* The caller promises that a read begins only when every earlier update of the session that it is
 * for has been answered. With it, spaces whose engine asks for that order (ENGINE_READS_FOLLOW) are
 * read here too, as soon as they serve; without it only a worker can tell. */
void node_reader_follow(struct node_reader *reader);

enum node_read_answer {
    NODE_READ_FOUND,
    NODE_READ_ABSENT,
    NODE_READ_ASK, /* only a worker can tell: no lease, a key with an update or an expiry under way,
                      a space whose reads take more than a look, or bytes that make no sense */
};

struct node_read {
    struct bytes key;   /* in */
    uint8_t answer;     /* enum node_read_answer */
    bool cached;        /* where keys have homes: it is a key that all nodes have */
    bool owned;         /* where objects have owners: this node is its owner */
    bool early;         /* node_read_early: it may be lost with this node */
    uint64_t version;   /* timestamp of what was read; 0: there was no entry */
    struct bytes value; /* FOUND: the reader's memory or the store's, good until its next call */
};

/* Reads n (1 to NODE_READ_MAX) keys of a space, their cache misses overlapped. now_us: the clock
 * (CLOCK_BOOTTIME) as read after the call that this serves began. Asks env.wall_ms, on this thread,
 * if a value has a deadline. Each key is read on its own: a batch is no snapshot. */
void node_read(struct node_reader *reader, uint32_t space, uint64_t now_us, uint32_t n,
               struct node_read *reads);

/* The same for a transaction of the reader's worker: what that has committed will do. */
void node_read_early(struct node_reader *reader, uint32_t space, uint64_t now_us, uint32_t n,
                     struct node_read *reads);

#endif
