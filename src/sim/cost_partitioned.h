/* The cost model of co-partitioned memory ([L] 5.3, 7.9): every compute server has a part of the
 * keys to itself and caches what it reads and writes; memory servers keep the whole. Only the index
 * is looked at: transactions of reads and writes of 8-byte values, without locks.
 *
 * Two caches of the same size:
 *   - of records, as Lotus has it: what a transaction misses goes to each memory server in one
 *     message, together with the changed records that have left the cache;
 *   - of index nodes, as DEX has it (ours, not theirs): a search reads every node that it misses,
 *     one after the other, and a changed leaf is written when it leaves.
 * Both replace as the server's own cache does (engine/lotus/lfu.h). A partition has one writer, so
 * one READ of a node suffices. What a memory server's processor does is priced as measured steps
 * are (cost_machine.h); its threads are one queue. */
#ifndef HORKOS_SIM_COST_PARTITIONED_H
#define HORKOS_SIM_COST_PARTITIONED_H

#include <stdbool.h>

#include "base/histogram.h"
#include "sim/cost_machine.h"

enum cost_part_cache { COST_PART_RECORDS, COST_PART_NODES, COST_PART_CACHES };
extern const char *const cost_part_names[COST_PART_CACHES]; /* "records", "nodes" */

struct cost_part_setup {
    struct cost_wire_limits wire;
    uint8_t cache;               /* enum cost_part_cache */
    uint32_t computes, memories; /* servers, with a card each; together up to NODES_MAX */
    uint32_t threads;            /* of a compute server */
    uint32_t memory_threads;     /* of a memory server */
    uint32_t requests;           /* of a transaction: 1 .. 32 */
    uint32_t writes_ppm;
    uint64_t keys;        /* in all; a compute server's are keys / computes */
    double exponent;      /* of Zipf's law over a server's keys, which are scattered */
    uint64_t cache_bytes; /* of a compute server: a record takes 64 bytes, a node 1 KB and 32 */
    uint64_t warm_ns, run_ns;
    uint64_t seed;
};

struct cost_part_result {
    uint64_t committed;
    double txns_per_s;
    struct histogram latency; /* ns */
    uint64_t hits, misses;    /* of records, or of nodes */
    uint64_t written_back;
    uint64_t messages; /* and their answers; READs and WRITEs */
    uint64_t bytes;    /* that cards sent, headers included */
    double wire_busy_most, memory_busy_most;
};

/* HK_ERR_NOMEM, HK_ERR_INVALID. Deterministic. */
int cost_part_run(const struct cost_part_setup *setup, struct cost_part_result *result_out)
    __attribute__((warn_unused_result));

#endif
