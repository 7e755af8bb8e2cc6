/* A cluster of real nodes in one process for the tests of node: links are queues in memory, time is
 * virtual (cluster_step) or real (cluster_threads). What clients do comes from the test. */
#ifndef HORKOS_TESTS_SUPPORT_NODE_CLUSTER_H
#define HORKOS_TESTS_SUPPORT_NODE_CLUSTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/hermes/hermes.h"
#include "node/node.h"

#define CLUSTER_NODES_MAX 5u
#define CLUSTER_WORKERS_MAX 4u

struct cluster;

/* The test's side: called inside worker_poll, on the worker's thread. */
struct cluster_client {
    void *context;
    bool (*request)(void *context, uint32_t node, uint32_t worker, struct request *request_out);
    void (*reply)(void *context, uint32_t node, uint32_t worker, const struct reply *reply);
};

struct cluster_config {
    uint32_t nodes;
    uint32_t workers[CLUSTER_NODES_MAX]; /* by node */
    bool ordered;                        /* as env.ordered and env.intact */
    struct hermes_config hermes;
    const struct engine_ops *ops; /* NULL: hermes_ops */
    const void *engine;           /* its configuration; NULL: hermes, above */
    bool async_reads;
    uint32_t lease_us;      /* 0: 200 ms */
    uint64_t keys_expected; /* of the stores: 0 starts small, so that they grow */
    uint64_t memory_max;
    uint64_t memory_max_last; /* of the last node; 0: as the others */
    uint32_t sessions_max;    /* a worker; 0: 16. It can have 256 calls, or 4 a session */
    uint64_t rules_off;       /* HK_MUTANTS builds only */
    struct cluster_client client;
    bool gives; /* large frames are given away (env.give); virtual time only */
    struct hot_config hot;
    /* May change a node's configuration before it is created; NULL: nobody does. */
    void (*adjust)(struct node_config *config, uint32_t node);
    uint64_t seed;
};

/* Nodes start with the clock at 1 s. */
struct cluster *cluster_create(const struct cluster_config *config);
void cluster_destroy(struct cluster *c);

struct node *cluster_node(struct cluster *c, uint32_t node);
uint32_t cluster_workers(const struct cluster *c, uint32_t node);
bool cluster_alive(const struct cluster *c, uint32_t node);

/* True while this thread is inside worker_poll and not in one of our callbacks: what is allocated
 * then was allocated by the node. */
extern _Thread_local bool cluster_in_node;

/* ---- Virtual time, one thread ---- */

/* Polls every worker of every live node once, then lets us microseconds pass. */
void cluster_step(struct cluster *c, uint64_t us);
/* Steps until done says so; asserts that it does within bound_us of virtual time. */
void cluster_until(struct cluster *c, bool (*done)(struct cluster *c, void *context), void *context,
                   uint64_t bound_us);
/* All configured, live nodes serve in one view. */
bool cluster_serving(struct cluster *c, void *context);
uint64_t cluster_now(const struct cluster *c);
/* Good until the next step; cluster_calendar moves it for longer, forwards or backwards. */
uint64_t *cluster_wall_ms(struct cluster *c);
void cluster_calendar(struct cluster *c, int64_t ms);

/* The process dies: its frames are lost, its clients hear nothing. */
void cluster_kill(struct cluster *c, uint32_t node);
/* A new incarnation without memory. */
void cluster_restart(struct cluster *c, uint32_t node);
/* Frames from one node to another are lost while cut. */
void cluster_cut(struct cluster *c, uint32_t from, uint32_t to, bool cut);
/* Of a thousand lane frames so many are lost, doubled, or overtake everything that waits at their
 * target. Virtual time only. */
struct cluster_faults {
    uint32_t lost, doubled, hasty;
};
void cluster_disturb(struct cluster *c, struct cluster_faults faults);
/* The worker is not polled while it stalls. */
void cluster_stall(struct cluster *c, uint32_t node, uint32_t worker, bool stall);

/* Large frames that were given away so far. Their pieces are held until cluster_destroy, which
 * asserts, when the nodes are gone, that they have not changed. */
uint32_t cluster_given(const struct cluster *c);
/* Large frames stay on their way: they arrive nowhere, and env.under_way says so. */
void cluster_delay_large(struct cluster *c, bool delay);

/* ---- Real time, a thread a worker ---- */

void cluster_threads(struct cluster *c);
/* Before its next poll worker 0's thread calls it. */
typedef void cluster_order_fn(struct worker *control);
void cluster_order(struct cluster *c, uint32_t node, cluster_order_fn *order);
/* Ends and joins the threads of a node (of all: cluster_join). */
void cluster_halt(struct cluster *c, uint32_t node);
void cluster_join(struct cluster *c);

/* ---- One operation at a time, in virtual time ---- */

struct cluster_answer {
    uint8_t kind; /* enum answer_kind */
    bool applied;
    int64_t number;
    uint64_t version; /* of the reply */
    uint32_t n;
    uint8_t value[4096];
};
/* Runs one operation at a node (its worker 0) to its answer; asserts that one comes in 20 s. Only
 * with a zeroed client in the configuration. */
struct cluster_answer cluster_call(struct cluster *c, uint32_t node, const struct op *op);
/* The same at another worker. */
struct cluster_answer cluster_call_at(struct cluster *c, uint32_t node, uint32_t worker,
                                      const struct op *op);
/* The same in two parts: it is taken up by the next steps; cluster_end waits for its answer. The
 * operation stays good until then. */
void cluster_begin(struct cluster *c, uint32_t node, uint32_t worker, const struct op *op,
                   const struct txn_request *txn);
struct cluster_answer cluster_end(struct cluster *c);
/* A transaction in space 0, as cluster_call. Of each operation's answer a piece is kept. */
#define CLUSTER_OPS_MAX 32u
struct cluster_txn_answer {
    uint8_t kind;
    int64_t number;
    uint32_t n; /* answers */
    struct cluster_op_answer {
        uint8_t kind;
        int64_t number;
        uint64_t version;
        uint32_t n;
        char value[512];
    } answers[CLUSTER_OPS_MAX];
};
struct cluster_txn_answer cluster_transact(struct cluster *c, uint32_t node, uint32_t worker,
                                           const struct txn_request *txn);
/* Puts a frame at a worker's door, as if a peer had sent it. */
void cluster_inject(struct cluster *c, uint32_t node, uint32_t worker, struct bytes frame);
/* The incarnation of a node. */
uint64_t cluster_nonce(const struct cluster *c, uint32_t node);

#endif
