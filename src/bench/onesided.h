/* The one-sided baselines (docs/ONE_SIDED.md) on this machine: verbs go over ports in shared memory
 * (verbs.h), so that what is measured is the compute servers' processors alone. No network is in
 * it: the cost model has that (sim/cost_onesided.h). One thread runs all transactions in turn, a
 * batch of verbs at a time.
 *
 * A write counts the first word of the record that it has read up by one, so that what is in memory
 * at the end says whether any was lost (bench_onesided_settle).
 *
 * With `inserts` (YCSB D) a write is of a new key of its compute server, and others read what was
 * inserted last, by whichever server, of what transactions have ended. When a server has used up
 * its keys, a write is of one that it drew before. */
#ifndef HORKOS_BENCH_ONESIDED_H
#define HORKOS_BENCH_ONESIDED_H

#include "base/histogram.h"
#include "bench/verbs.h"
#include "onesided/records.h"

struct bench_onesided_config {
    struct one_config config;
    uint32_t memories;  /* memory servers */
    uint32_t computes;  /* compute servers: each has a cache of its own */
    uint32_t in_flight; /* transactions of a compute server */
    uint32_t requests;  /* of a transaction: 1 .. ONE_REQUESTS_MAX, of different keys */
    uint32_t writes_ppm;
    struct keys_config keys; /* n: at least twice `requests`; with inserts a multiple of computes
                                that is at least so much for each, and not scrambled */
    uint32_t inserts;        /* new keys of each compute server; 0: none */
    double cache;            /* as cost_one_setup has it */
    uint64_t seed;
};

struct bench_onesided_run {
    uint64_t committed[2]; /* that only read, and that write */
    uint64_t aborted;
    double seconds, cpu_ns;      /* of this thread */
    struct histogram latency[2]; /* of the same, ns: from the first start to the commit */
    struct bench_verbs_count count;
};

struct bench_onesided;

/* Lays out tree and records. NULL: HK_ERR_NOMEM, or HK_ERR_INVALID in err_out. */
struct bench_onesided *bench_onesided_open(const struct bench_onesided_config *config,
                                           int *err_out);
void bench_onesided_close(struct bench_onesided *bench);
/* Goes on where the run before has stopped. */
void bench_onesided_run(struct bench_onesided *bench, double warmup_s, double seconds,
                        struct bench_onesided_run *run_out);
/* Lets what is in flight end; whether memory holds what all transactions have written, and nothing
 * is locked. No run may follow. */
bool bench_onesided_settle(struct bench_onesided *bench) __attribute__((warn_unused_result));

#endif
