/* Clusters inside this process, under load, measured. Nodes, engines, view protocol and links are
 * the real ones; only clients are missing: each worker draws its operations itself, as in [H] 4.5.
 * One cluster may be paused while another runs (its clock stands still), so that two can be
 * compared in turn.
 *
 * Threads. All functions are called from one thread, the one that created the cluster. */
#ifndef HORKOS_BENCH_BENCH_H
#define HORKOS_BENCH_BENCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/histogram.h"
#include "bench/samples.h"
#include "engine/lotus/lotus.h"
#include "engine/engine.h"
#include "load/keys.h"
#include "load/mix.h"
#include "load/work.h"
#include "node/node.h"

#define BENCH_NODES_MAX 9u
#define BENCH_WORKERS_MAX 32u
#define BENCH_KEYS_MAX (1u << 30)
#define BENCH_KEY_BYTES_MIN 8u
#define BENCH_KEY_BYTES_MAX 256u
#define BENCH_VALUE_BYTES_MAX 65536u
#define BENCH_IN_FLIGHT_MAX 1024u

enum bench_port { BENCH_SHM, BENCH_TCP };
extern const char *const bench_port_names[];

enum bench_read_path {
    BENCH_READ_DIRECT, /* node_read on the worker's thread; what that leaves goes to the node */
    BENCH_READ_NODE,   /* a request like any other */
};
extern const char *const bench_read_path_names[];

struct bench_config {
    const struct engine_ops *engine;
    uint32_t nodes;   /* 1 .. BENCH_NODES_MAX */
    uint32_t workers; /* of each node, 1 .. BENCH_WORKERS_MAX */
    enum bench_port port;
    bool threads; /* a thread for each worker; otherwise the caller's thread runs all in turn */
    enum bench_read_path read_path;
    struct keys_config keys; /* n: 1 .. BENCH_KEYS_MAX; seed is derived from the one below */
    struct mix mix;
    uint32_t key_bytes;
    uint32_t value_bytes;
    uint32_t in_flight; /* sessions of each worker; each has one operation at a time */
    double rate;        /* operations a second of the whole cluster (open loop); 0: closed loop */
    bool even;          /* arrivals of the open loop at equal distances instead of Poisson's */
    bool ack_to_all;    /* hermes: [H] O3 */
    bool async_reads;
    struct hot_config hot;          /* engines whose keys have homes (ENGINE_HOMED) */
    const struct work_config *work; /* not NULL: transactions of this workload instead of single
                                       operations (keys, mix and lengths mean nothing); for engines
                                       with transactions. Copied */
    uint8_t degree;                 /* replicas of an object there; 0: as the engine has it */
    struct lotus_config lotus;      /* lotus: what it is configured with; ... */
    uint32_t memory; /* ... and how many of the nodes, the last ones, are memory servers alone and
                        the others compute servers alone; 0: all are both */
    /* Where the time goes is asked while runs count (samples.h); without threads. NULL: not. */
    struct samples *samples;
    uint64_t seed;
    /* How far the preparation is (done of all keys); may be NULL. */
    void (*progress)(void *context, uint64_t done, uint64_t all);
    void *context;
};

/* How many keys the nodes' caches hold with this configuration; 0: none are cached. */
uint64_t bench_cache_keys(const struct bench_config *config);
/* Which part of the operations is for the most popular keys that fit there: the hit rate of a cache
 * that holds just these. NAN: no engine with a cache. */
double bench_hit_rate(const struct bench_config *config);

/* Whether reads of this configuration can be answered on the caller's thread at all. */
bool bench_direct_possible(const struct bench_config *config);

struct bench_cluster;

/* Forms the cluster and writes every key. HK_ERR_NOMEM, HK_ERR_IO, HK_ERR_BUSY (it did not form or
 * load in time); why_out says more (static). The new cluster is paused. */
int bench_cluster_create(const struct bench_config *config, struct bench_cluster **cluster_out,
                         const char **why_out) __attribute__((warn_unused_result));
void bench_cluster_destroy(struct bench_cluster *cluster);

/* Everything of one run: sums over all workers. */
struct bench_run {
    double seconds;     /* on the clock */
    double cpu_seconds; /* of this process */
    uint64_t ops[LOAD_KINDS];
    uint64_t failed;       /* answered with an error, or a value that cannot be */
    uint64_t refused;      /* too many others were faster (HK_ERR_BUSY): not in ops, and no fault */
    uint64_t reads_passed; /* direct reads that had to be left to the node */
    uint64_t hits;         /* operations on keys that all nodes have (ENGINE_HOMED) */
    uint64_t cache_looks, cache_hits; /* of a baseline with a cache of index nodes; of values */
    uint64_t frames_dropped; /* by the links, for want of room: then a run says nothing either */
    uint64_t view_changes;   /* since the cluster was formed, and nodes that were thrown out; a run
                                with one says nothing */
    struct node_stats node;  /* the difference, of all nodes */
    /* Without threads: the time that each node's workers took, in all. */
    double node_seconds[BENCH_NODES_MAX];
    uint32_t nodes;
    uint32_t memory;         /* of them: memory servers, the last ones */
    bool homed;              /* its keys have homes */
    bool owned;              /* its objects have owners */
    bool tables;             /* its rows are in tables of memory servers */
    uint64_t compute_frames; /* node.frames_out, but for memory servers' */
    /* Of a workload: transactions by type, those of them that succeeded by its rules, and those
     * that touched an object whose home is another node. */
    uint64_t txns[WORK_TYPES_MAX], succeeded[WORK_TYPES_MAX], remote;
    uint64_t steps, again; /* handed to nodes; of them, such that found something changed */
    struct histogram latency_ns[LOAD_KINDS];
};

/* Loads the cluster for so long and pauses it again: first warmup_seconds that do not count.
 * Everything but `failed` and latencies concerns the same moment of beginning and end. */
void bench_cluster_run(struct bench_cluster *cluster, double warmup_seconds, double seconds,
                       struct bench_run *run_out);

/* Node 0's node and first worker, while the cluster is paused: for probes on its pages. now_us: the
 * cluster's time. */
struct node *bench_cluster_node(struct bench_cluster *cluster, uint64_t *now_us_out);
const struct bench_config *bench_cluster_config(const struct bench_cluster *cluster);
/* NULL: it runs no workload. */
const struct work *bench_cluster_work(const struct bench_cluster *cluster);

#endif
