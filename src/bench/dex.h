/* The index in co-partitioned memory (onesided/dex.h, docs/ONE_SIDED.md) on this machine: every
 * compute server has its own part of the keys, and a cache of nodes; verbs go over ports in shared
 * memory (verbs.h). As onesided.h has it, no network is in what is measured. One thread runs all
 * transactions in turn.
 *
 * DEX is an index, whose operations are atomic one by one. A transaction of one owner's keys that
 * has several of them takes locks in the owner's own memory, all before its first operation and in
 * the order of the keys, so none is aborted. Locks are no part of the cache.
 *
 * A value is its key and, in the lower 32 bits, a number; what is found is looked at. */
#ifndef HORKOS_BENCH_DEX_H
#define HORKOS_BENCH_DEX_H

#include "bench/onesided.h"
#include "onesided/dex.h"

struct bench_dex_config {
    uint32_t memories;  /* memory servers */
    uint32_t computes;  /* compute servers */
    uint32_t in_flight; /* transactions of a compute server */
    uint32_t requests;  /* of a transaction: 1 .. ONE_REQUESTS_MAX, of different keys */
    uint32_t writes_ppm;
    bool reads_first;        /* a write counts up the number that it has read (YCSB F) */
    struct keys_config keys; /* of each compute server; n: twice `requests` .. 2^32 */
    double cache;            /* of a compute server, as a part of the bytes of its index */
    uint64_t seed;
};

struct bench_dex;

/* Lays out the trees. NULL: HK_ERR_NOMEM, HK_ERR_IO, or HK_ERR_INVALID in err_out. */
struct bench_dex *bench_dex_open(const struct bench_dex_config *config, int *err_out);
void bench_dex_close(struct bench_dex *bench);
/* Goes on where the run before has stopped. stats_out: of all compute servers, while it counts. */
void bench_dex_run(struct bench_dex *bench, double warmup_s, double seconds,
                   struct bench_onesided_run *run_out, struct dex_stats *stats_out);
/* Lets what is in flight end, and reads all keys; whether each was there with a value of its own
 * whenever it was read, and with reads_first whether all writes are in them. No run may follow. */
bool bench_dex_settle(struct bench_dex *bench) __attribute__((warn_unused_result));

#endif
