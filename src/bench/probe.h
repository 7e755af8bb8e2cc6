/* This machine's limits, measured in the same run as the figures that are held against them. */
#ifndef HORKOS_BENCH_PROBE_H
#define HORKOS_BENCH_PROBE_H

#include "bench/bench.h"

/* Reads a second of one thread, on the store of a paused cluster's node 0: with uniform keys, and
 * with the distribution of its load. */
struct bench_probe_reads {
    double dependent_pairs; /* two random cache lines, the second's address in the first: a key's
                               index line, then its object; rolling, 16 in flight. A lookup without
                               hash, comparison, seqlock and copy */
    double direct;          /* node_read in batches of 64, of the same keys; NAN: not possible */
};

struct bench_probe {
    struct bench_probe_reads uniform, load;
    double ring_round_trip_ns;       /* 64 bytes there and back, between two threads */
    double ring_round_trip_alone_ns; /* the same within one thread */
    double loopback_round_trip_ns;   /* 64 bytes over TCP on the loopback interface, two threads */
    double system_call_ns;           /* one that does next to nothing */
    double clock_read_ns;            /* CLOCK_BOOTTIME, as it is read once a round */
};

/* Takes about a second. HK_ERR_NOMEM, HK_ERR_IO. */
int bench_probe(struct bench_cluster *cluster, struct bench_probe *probe_out)
    __attribute__((warn_unused_result));

#endif
