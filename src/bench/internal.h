/* What the files of bench share. Nobody else includes it.
 *
 * A cluster's threads meet at a barrier whenever its phase changes in a way that matters to all:
 * when loops and ports are made, before nodes are destroyed, before ports are. Between these the
 * phase is an atomic that every worker reads once a round; while it is PHASE_PAUSED the threads
 * wait on a condition. Without threads the same functions run on the caller's thread, one worker
 * after the other, and nothing waits. */
#ifndef HORKOS_BENCH_INTERNAL_H
#define HORKOS_BENCH_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "net/hub.h"
#include "net/loop.h"
#include "net/port.h"
#include "node/engines.h"
#include "node/read.h"

/* Operations that a worker takes up in one round, and messages of one poll. */
#define ROUND_OPS 256u
#define POLL_EVENTS 256u

enum bench_phase {
    PHASE_FORM,  /* views are formed, nobody asks for anything */
    PHASE_FILL,  /* every key is written once */
    PHASE_LOAD,  /* the configured load */
    PHASE_DRAIN, /* nothing new; what is in flight ends */
    PHASE_PAUSED,
    PHASE_STOP,
};

/* An operation as it was drawn in advance: drawing may cost more than a read. */
#define DRAWN_KIND_SHIFT 30u
#define DRAWN_KEY_MASK ((1u << DRAWN_KIND_SHIFT) - 1u)
struct drawn {
    uint32_t *ops; /* key, and its kind in the two upper bits */
    uint32_t n;
    uint32_t at;
    uint32_t offset; /* added to the keys of this lap, if every key is as likely as any other */
    bool shifts;
    uint32_t keys;
};

struct bench_session {
    uint64_t start_ns; /* when its operation began, or was meant to */
    uint32_t id;       /* the node's */
    uint8_t kind;      /* enum load_kind */
    bool refused;
    bool succeeded;
    bool fills;        /* it writes an object for the first time */
    uint32_t tries;    /* of its transaction, that ended as something had changed */
    uint64_t since_us; /* when that began, by the worker's clock; 0: it has not yet */
    uint8_t *key;
    struct work_txn *txn; /* of a workload */
    struct txn_request request;
};

/* Written by the worker, read by whoever measures; nothing hangs on their order. */
struct bench_counters {
    _Atomic uint64_t ops[LOAD_KINDS];
    _Atomic uint64_t failed, refused, passed, hits, filled, in_flight, remote, steps, again;
    _Atomic uint64_t txns[WORK_TYPES_MAX], succeeded[WORK_TYPES_MAX];
    _Atomic bool dropped;
};

struct bench_worker {
    struct bench_cluster *cluster;
    uint8_t node, index;
    uint32_t number; /* among all workers of the cluster */
    pthread_t thread;
    bool has_thread;
    int error;

    struct loop *loop;
    struct port *port;
    struct worker *worker;
    struct node_reader *reader;

    struct drawn drawn;
    struct random random;
    struct schedule schedule;
    uint64_t schedule_base_ns; /* the clock when the schedule began */
    uint64_t fill_next;

    /* Sessions by their index: free ones, those whose operation the node shall take, those whose
     * operation has been answered in this round, those of them that have another step. */
    struct bench_session *sessions;
    uint8_t *key_memory;
    uint32_t *free, *queue, *done, *more;
    uint32_t free_n, queue_at, queue_n, done_n, more_n;

    /* Reads of a batch. */
    struct node_read reads[NODE_READ_MAX];
    uint64_t read_starts[NODE_READ_MAX];
    uint8_t *read_keys;
    uint32_t batch_n;

    enum bench_phase phase;
    uint32_t run;      /* latencies are those of this run */
    uint64_t begun_ns; /* the present round */
    uint64_t spent_ns; /* without threads: in all rounds */
    uint64_t now_ns;
    uint64_t busy_ns;
    uint32_t rounds;
    uint64_t ops[LOAD_KINDS], failed, refused, passed, filled;
    uint64_t hits; /* of direct reads; the node counts its own */
    uint64_t txns[WORK_TYPES_MAX], succeeded[WORK_TYPES_MAX], remote, steps, again;
    struct work_txn *txn_memory;
    bool dropped; /* the others have thrown this node out */
    struct histogram latency_ns[LOAD_KINDS];

    _Alignas(64) struct bench_counters counters;
};

struct bench_node {
    struct bench_cluster *cluster;
    uint8_t id;
    struct node *node;
    struct node_config config;
};

struct bench_cluster {
    struct bench_config config;
    union engines_config engine;
    uint32_t workers_n; /* of all nodes */
    struct bench_node nodes[BENCH_NODES_MAX];
    struct bench_worker *workers; /* node by node */
    struct hub *hub;
    struct work *work;  /* NULL: single operations */
    uint64_t objects_n; /* that are written at first */
    uint8_t *value;
    bool yields; /* more threads than processors: who has nothing to do gives way */
    uint32_t epoch;

    /* Time of the cluster: the clock less what it was paused for. Changed only in a pause. */
    uint64_t pauses_ns, paused_at_ns;

    _Atomic uint32_t phase; /* enum bench_phase */
    _Atomic uint32_t run;
    bool started;              /* crew_start was called: crew_end is due */
    uint32_t threads_n;        /* that were made */
    pthread_barrier_t barrier; /* all threads of workers, and the caller's */
    pthread_mutex_t mutex;
    pthread_cond_t resumed; /* the phase is not PHASE_PAUSED any more */
    pthread_cond_t waits;   /* waiting has changed */
    uint32_t waiting;       /* under mutex: threads that wait for `resumed` */
};

/* CLOCK_BOOTTIME in ns: leases and latencies from one reading. */
uint64_t bench_clock_ns(void);

/* ---- links.c: loops and ports ---- */

/* On the worker's own thread. */
int links_open(struct bench_worker *w) __attribute__((warn_unused_result));
void links_close(struct bench_worker *w);
/* Connects all pairs of workers of different nodes, once all links are open. */
int links_connect(struct bench_cluster *c) __attribute__((warn_unused_result));
/* Two ends of a connection over the loopback interface, not blocking. */
int links_socket_pair(int fds_out[2]) __attribute__((warn_unused_result));

/* ---- drawn.c ---- */

int drawn_init(struct drawn *drawn, const struct bench_config *config, uint32_t worker)
    __attribute__((warn_unused_result));
void drawn_deinit(struct drawn *drawn);
static inline uint32_t drawn_next(struct drawn *t, enum load_kind *kind_out)
{
    if (t->at == t->n) {
        t->at = 0;
        t->offset = t->shifts ? (t->offset + t->keys / 3u + 1u) % t->keys : 0;
    }
    uint32_t op = t->ops[t->at++];
    uint32_t key = (op & DRAWN_KEY_MASK) + t->offset;
    *kind_out = (enum load_kind)(op >> DRAWN_KIND_SHIFT);
    return key < t->keys ? key : key - t->keys;
}

/* ---- drive.c: what a worker does ---- */

/* Memory, sessions and reader of a worker whose node exists; the reader has to be closed before the
 * node is destroyed, the rest after. */
int drive_open(struct bench_worker *w) __attribute__((warn_unused_result));
void drive_close_reader(struct bench_worker *w);
void drive_close(struct bench_worker *w);
/* One round: takes up operations, polls, sends. Returns whether it had anything to do. */
bool drive_round(struct bench_worker *w);
/* A thread that has nothing to do waits: spins for a while, then sleeps. */
void drive_idle(struct bench_worker *w);
bool drive_request(struct bench_worker *w, struct request *request_out);
void drive_reply(struct bench_worker *w, const struct reply *reply);

/* ---- drive_work.c: transactions of a workload ---- */

int drive_work_open(struct bench_worker *w) __attribute__((warn_unused_result));
/* Draws the next transaction, or the next one that writes an object for the first time, into the
 * session. False: all are written. */
void drive_work_draw(struct bench_worker *w, struct bench_session *s);
bool drive_work_fill(struct bench_worker *w, struct bench_session *s);
void drive_work_request(struct bench_worker *w, struct bench_session *s, struct request *out);
enum drive_answer {
    DRIVE_OVER,
    DRIVE_STEP,  /* the session's transaction has become its next step */
    DRIVE_FAILED /* the answer is an error */
};
enum drive_answer drive_work_reply(struct bench_worker *w, struct bench_session *s,
                                   const struct reply *reply);
void drive_work_book(struct bench_worker *w, const struct bench_session *s);

/* ---- crew.c: the threads, and the phases ---- */

/* Makes the threads, if any, and opens all links; ... */
int crew_start(struct bench_cluster *c) __attribute__((warn_unused_result));
/* ... then the nodes are made, then this: memory and sessions of all workers. The cluster is in
 * PHASE_FORM afterwards. */
int crew_open(struct bench_cluster *c) __attribute__((warn_unused_result));
/* No worker is polled any more, and no reader is open; ... */
void crew_halt(struct bench_cluster *c);
/* ... then the nodes are destroyed, then this. */
void crew_end(struct bench_cluster *c);
/* Enters a phase, and lets time go on if it was paused. */
void crew_enter(struct bench_cluster *c, enum bench_phase phase);
/* Lets what is in flight end, then pauses. False: something did not end. */
bool crew_pause(struct bench_cluster *c);
/* Runs the workers, or lets them run, for some milliseconds, but not past until_ns by more than a
 * round. */
void crew_work(struct bench_cluster *c, uint64_t until_ns);

#endif
