/* The cost model of the one-sided baselines (docs/ONE_SIDED.md): compute servers whose threads run
 * transactions one after the other, by verbs on the memory of memory servers, whose processors do
 * nothing. The network is cost_wire.h's, the machines are src/onesided's own. In the baselines'
 * favour an atomic costs a card no more than any other packet, and threads have a core each. */
#ifndef HORKOS_SIM_COST_ONESIDED_H
#define HORKOS_SIM_COST_ONESIDED_H

#include "base/histogram.h"
#include "onesided/records.h"
#include "sim/cost_wire.h"

struct cost_one_setup {
    struct cost_wire_limits wire;
    struct one_config config;
    uint32_t computes, memories; /* servers, with a card each; together up to NODES_MAX */
    uint32_t threads;            /* of a compute server */
    uint32_t requests;           /* of a transaction: 1 .. ONE_REQUESTS_MAX, of different keys */
    uint32_t writes_ppm;
    struct keys_config keys; /* n records, 0 .. n - 1 */
    uint32_t node_words;     /* 0: 128 */
    double cache;            /* of a compute server, as a part of the index's bytes: copies of inner
                                nodes first, hints in what is left */
    double post_ns;          /* a thread: to post a batch and to see its end; 0: 150 ... */
    double verb_ns;          /* ... and for each verb of it; 0: 30 */
    uint64_t warm_ns, run_ns;
    uint64_t seed;
};

struct cost_one_result {
    uint64_t committed, aborted; /* in run_ns */
    double txns_per_s;
    struct histogram latency; /* ns, from the first start to the commit, retries included */
    uint64_t verbs[VERB_KINDS];
    uint64_t batches;
    uint64_t bytes; /* that cards sent, headers included, without values of committed writes */
    double value_bytes_per_txn; /* of a committed transaction, both ways */
    double wire_busy_most;      /* of the busiest station */
    struct one_cache_stats copies;
    uint64_t hints_good, hints_absent;
};

/* HK_ERR_NOMEM, HK_ERR_INVALID. Deterministic. */
int cost_one_run(const struct cost_one_setup *setup, struct cost_one_result *result_out)
    __attribute__((warn_unused_result));

#endif
