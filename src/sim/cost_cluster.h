/* The cost model: a cluster of real nodes (src/node, their engines and stores) under virtual time.
 * Each worker is a server with a clock. A poll of it is carried out at once; then what it did is
 * counted (struct node_stats), priced (struct cost_cpu), and the worker is busy for so long. What
 * it sent leaves when it is done, through the network of cost_wire.h. So batches are the real ones:
 * a busy worker finds more when it polls next.
 *
 * Clients are closed loops on the workers, as the papers have them: a worker has so many sessions,
 * each with one request in flight.
 *
 * One thread. The same setup, loads and seed give the same results, on every machine whose floating
 * point is IEEE 754. */
#ifndef HORKOS_SIM_COST_CLUSTER_H
#define HORKOS_SIM_COST_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "engine/engine.h"
#include "load/keys.h"
#include "load/work.h"
#include "node/node.h"
#include "sim/cost_machine.h"

#define COST_WINDOW_MAX 256u

struct cost_setup {
    const struct cost_machine *machine;
    const struct engine_ops *engine;
    const void *engine_config; /* outlives the cluster */
    uint32_t nodes;
    uint32_t workers;     /* a node; 0: the machine's */
    uint32_t window_most; /* sessions a worker; 0: the machine's */
    uint64_t keys;        /* all of them exist from the start */
    uint32_t value_bytes;
    /* Transactions instead of single operations, and their population instead of keys; nodes,
     * workers and seed are the setup's. The engine is one whose objects have owners
     * (ENGINE_OWNED), are sharded (ENGINE_SHARDED) or rows of tables (ENGINE_TABLES). NULL: none.
     */
    const struct work_config *work;
    uint32_t degree; /* replicas that each object has before anything is measured */
    uint32_t memory; /* engines with tables: so many nodes, the last ones, are memory servers, and
                        the others, where transactions run, compute servers; 0: all are both */
    double memory_slow;    /* so many times as long whatever memory servers do takes; 0: once */
    struct hot_config hot; /* engines whose keys have homes (ENGINE_HOMED) */
    uint32_t frame_messages_max; /* 0: as many messages share a packet as there are; 1: none do */
    bool async_reads;
    uint32_t lease_us; /* 0: 500 ms */
    uint64_t seed;
};

struct cost_load {
    uint32_t writes_ppm;
    double exponent; /* of Zipf's law; 0: uniform, no key is in a cache */
    struct keys_fold fold;
    uint32_t window;     /* requests in flight a worker; 0: the setup's */
    uint32_t clients;    /* nodes whose clients do anything, the first ones; 0: all */
    uint32_t batch;      /* its clients wait until they can begin so many at once; 0: they do not */
    uint32_t delays_ppm; /* so many frames are held back ... */
    uint64_t delay_ns;   /* ... for so long */
    uint64_t warm_ns, run_ns;
    uint64_t slice_ns; /* of result.slices; 0: none */
    uint64_t seed;
};

#define COST_SLICES_MAX 1024u

/* What memory servers spend their time on ([L] 7.7.2). */
enum cost_part {
    COST_NETWORK, /* polls, frames, their bytes, packets */
    COST_LOCK,
    COST_INDEX,
    COST_DATA,
    COST_OTHER, /* messages taken apart and made */
    COST_PARTS
};

struct cost_result {
    uint64_t reads, writes, failed; /* of transactions: writes are those that may write */
    uint64_t remote;                /* transactions with objects of other nodes' homes */
    uint64_t refused;               /* transactions that others were too often faster than */
    double seconds;                 /* of virtual time */
    double ops_per_s;               /* reads and writes that were answered well */
    struct histogram read;          /* latencies in ns, from when a worker takes a request up */
    struct histogram write;
    uint64_t messages, frames, packets, bytes;
    struct node_stats node;       /* what all nodes counted */
    uint64_t compute_frames;      /* of frames: those of compute servers, or of all nodes */
    double memory_ns[COST_PARTS]; /* of all memory servers, or of all nodes if all are both */
    double memory_busy;           /* share of the time of their workers */
    double cpu_busy;              /* of all workers that live: share of their time */
    double cpu_busy_most;         /* of the busiest worker */
    double wire_busy_most;        /* of the busiest card or port in one direction */
    uint32_t slices_n;
    uint64_t slices[COST_SLICES_MAX]; /* operations that ended in each slice */
};

struct cost_cluster;

/* Creates the nodes, lets them form their first view, and fills their stores. HK_ERR_NOMEM, or
 * HK_ERR_INVALID when the setup's bounds do not hold; HK_ERR_UNAVAILABLE when no view forms. */
int cost_cluster_create(const struct cost_setup *setup, struct cost_cluster **cluster_out)
    __attribute__((warn_unused_result));
void cost_cluster_destroy(struct cost_cluster *cluster);

/* From now on another part of the transactions is remote (work_config.remote); what is in flight
 * ends first. HK_ERR_UNAVAILABLE: it does not end. */
int cost_cluster_remote(struct cost_cluster *cluster, double percent)
    __attribute__((warn_unused_result));

/* Goes on with virtual time under a load, where the run before has stopped; its operations in
 * flight go on too. */
void cost_cluster_run(struct cost_cluster *cluster, const struct cost_load *load,
                      struct cost_result *result_out);

/* The node stops for good, with everything that is on its way from or to it. */
void cost_cluster_crash(struct cost_cluster *cluster, uint32_t node);

#endif
