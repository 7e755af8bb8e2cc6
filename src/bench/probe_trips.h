/* The part of the probe that has nothing to do with a store. */
#ifndef HORKOS_BENCH_PROBE_TRIPS_H
#define HORKOS_BENCH_PROBE_TRIPS_H

#include "bench/probe.h"

/* HK_ERR_NOMEM: no thread; HK_ERR_IO. */
int probe_trips(struct bench_probe *probe_out) __attribute__((warn_unused_result));

#endif
