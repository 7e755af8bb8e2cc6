/* Sessions of this process's own threads: what a node inside an application has beside clients, or
 * in place of them. A session's thread reads in the node's store itself (local_enter), and hands
 * everything else by ring to the one worker that has its session; answers come back by another
 * ring. No lock is taken and no system call made as long as nobody sleeps and the node stays.
 *
 * A session's state says what others may do with its reader:
 *
 *     OUT     its thread is in no call; the reader is online   -> IN [local_enter], PARKED [parker]
 *     IN      its thread reads or submits                      -> OUT [local_leave]
 *     PARKED  the reader is offline, or there is none          -> IN [enter_slowly, under the lock]
 *
 * A parker is worker 0's thread: it parks a session whose thread has not called for a while, so
 * that its reader holds no memory back, and all of them before a node is destroyed (it waits for
 * those that are in: they wait for nobody). The state carries the number of calls, so that a look
 * tells whether there was one since the last.
 *
 * The end. `ended` is set under the lock, then all are parked: a thread that comes later finds it
 * and submits nothing, so what the workers find in their rings afterwards is all there is.
 *
 * Threads. local_* functions run on the session's thread, locals_* as they say. */
#ifndef HORKOS_SERVER_LOCAL_H
#define HORKOS_SERVER_LOCAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "engine/txn.h"
#include "node/commit_here.h"
#include "node/read.h"

#define LOCAL_SESSIONS_MAX 128u
#define LOCAL_SLOTS_MAX 128u

struct locals;
struct local_session;

/* An operation. Its thread fills the first part before local_submit and leaves all alone until
 * local_take gives the slot back. */
struct local_slot {
    struct op op;                  /* its bytes stay good until then */
    const struct txn_request *txn; /* not NULL: as in struct request; stays good as well */
    bool single; /* it has one operation, whose answer and version are told instead of its own */
    struct node_committed committed; /* local_commit's; nonce 0: it is none of these */
    uint64_t since_us;               /* as in struct request */
    void *buffer;                    /* where the answer's bytes are put ... */
    uint64_t capacity;               /* ... if they are no more than that */

    uint64_t version;     /* as reply.version */
    struct answer answer; /* value.at is buffer, or NULL when they were more than fit */

    struct list_link held; /* the worker's */
};

/* HK_ERR_FULL past LOCAL_SESSIONS_MAX; HK_ERR_NOMEM; HK_ERR_UNAVAILABLE: the node has ended. Waits
 * for a round of the worker. slots_n: 1 to LOCAL_SLOTS_MAX. */
int local_open(struct locals *locals, uint32_t slots_n, struct local_session **session_out)
    __attribute__((warn_unused_result));
/* Nothing is in flight. */
void local_close(struct local_session *session);
struct local_slot *local_slot(struct local_session *session, uint32_t index);

/* The reader, until local_leave (soon, and without waiting for anything); NULL: the node is being
 * made anew, or has ended, or has no room for another reader. */
struct node_reader *local_enter(struct local_session *session);
void local_leave(struct local_session *session);

/* Hands the slot's operation to the worker. HK_ERR_UNAVAILABLE: the node has ended. */
int local_submit(struct local_session *session, uint32_t slot) __attribute__((warn_unused_result));
/* Commits a transaction on this thread, as node_commit, in a space. NODE_COMMIT_SLOT: the slot's,
 * whose `op` names the space; it is handed to the worker, and answered when it is reliable. */
enum node_commit_answer local_commit(struct local_session *session, uint32_t slot, uint64_t now_us,
                                     uint32_t n, struct node_commit_key *keys);
/* The next slot that is answered. */
bool local_take(struct local_session *session, uint32_t *slot_out);
/* Whether local_take would find one, after waiting for at most wait_us. */
bool local_wait(struct local_session *session, uint64_t wait_us);

#endif
