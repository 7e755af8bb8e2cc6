/* What local_session.c and local.c share: the two sides of the rings. */
#ifndef HORKOS_SERVER_LOCAL_INTERNAL_H
#define HORKOS_SERVER_LOCAL_INTERNAL_H

#include "base/ring.h"
#include "server/internal.h"
#include "server/local.h"

enum local_call { LOCAL_OUT, LOCAL_IN, LOCAL_PARKED };

/* What a session's state holds: the number of its thread's calls, and where that is. */
static inline uint64_t local_state(uint64_t turn, enum local_call call)
{
    return turn << 2 | call;
}

/* How far a session is with its worker; under the lock. */
enum local_stage {
    LOCAL_OPENING, /* in the worker's arrivals */
    LOCAL_OPEN,
    LOCAL_CLOSING, /* in the worker's arrivals */
    LOCAL_CLOSED,  /* the worker has forgotten it, or never took it */
};

/* A request on its way to the worker. */
struct local_ref {
    struct local_session *session;
    uint32_t slot;
};

struct local_session {
    struct locals *locals;
    struct local_inbox *inbox; /* of the worker that has it; NULL: none was chosen */
    struct server_worker *worker;
    uint32_t index; /* in locals.sessions */
    uint32_t slots_n;
    struct local_slot *slots;
    void *done_cells;

    /* Its thread's. */
    _Alignas(64) _Atomic uint64_t state; /* local.h has the table */
    uint64_t turn;
    struct node_reader *reader; /* who is IN has it, or who holds the lock while it is PARKED */

    struct ring_spsc done;      /* uint32_t: slots that are answered; room for all */
    _Atomic uint32_t sleeping;  /* a futex: its thread waits for an answer */
    uint64_t state_seen;        /* of the last look for idle ones; under the lock */
    enum local_stage stage;     /* under the lock */
    struct local_session *next; /* arrivals; under the lock */

    /* The worker's. */
    uint32_t session;         /* in the node */
    struct list_link link;    /* worker.locals */
    struct list_link touched; /* worker.locals_touched: has new answers */
    struct list_link holds;   /* worker.locals_held: has held requests */
    struct list_link held;    /* slots that wait until updates are taken again, in order */
};

/* One a worker. */
struct local_inbox {
    struct ring_mpsc ring; /* struct local_ref: room for every slot of every session */
    void *cells;
    struct server_worker *worker;
    _Atomic bool arrived; /* arrivals is not empty */

    /* Under the lock. */
    struct local_session *arrivals;
    uint32_t sessions_n;
    bool over; /* the worker has answered all and looks at nothing any more */
};

struct locals {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a session's stage, the node's status, the end */
    struct local_inbox *inboxes;
    uint32_t workers_n;
    uint32_t spin_us;

    /* Under the lock. */
    struct node *node; /* NULL: none at the moment */
    bool ended;
    uint32_t refs; /* the server and every session */
    uint32_t sessions_n;
    struct local_session *sessions[LOCAL_SESSIONS_MAX];
};

#endif
