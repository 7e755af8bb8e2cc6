/* Points of the one-sided baselines for the figures of Lotus, played by their cost model. */
#ifndef HORKOS_TOOLS_FIGURES_ONESIDED_H
#define HORKOS_TOOLS_FIGURES_ONESIDED_H

#include "sim/cost_onesided.h"
#include "tools/figures.h"

/* The paper's workloads: 16 requests of 1 KB records, Zipf 0.9, four machines. */
enum { LOTUS_MACHINES = 4, LOTUS_THREADS = 40, LOTUS_MEMORY_THREADS = 8, LOTUS_REQUESTS = 16 };
#define LOTUS_EXPONENT 0.9
#define LOTUS_CACHE 0.08                   /* of a compute server, as a part of the index's bytes */
extern const uint32_t lotus_writes_ppm[3]; /* A, B, C */

struct one_sided {
    uint8_t policy;
    bool overlap;     /* all requests of a transaction at once */
    bool small_nodes; /* Deft's segments */
    bool no_cache;
    uint32_t workload; /* 0: A, 1: B, 2: C */
    uint32_t threads;  /* of each of four compute servers */
    uint32_t requests;
};
/* The name of its curve. */
const char *one_sided_name(const struct one_sided *one);
/* False after an error, which the run keeps. */
bool one_sided_play(struct figure_run *run, const struct one_sided *one,
                    struct cost_one_result *result_out);

/* How many records stand for the paper's hundred million: the most popular for themselves, the
 * others for the rest. */
struct keys_config lotus_keys(const struct figure_run *run);

#endif
