/* The command line of `horkos bench --resp`. */
#ifndef HORKOS_TOOLS_BENCH_RESP_OPTIONS_H
#define HORKOS_TOOLS_BENCH_RESP_OPTIONS_H

#include "bench/resp_load.h"

#define BENCH_RESP_RUNS_MAX 1000u
#define BENCH_RESP_SERVERS_BYTES 4096u

struct bench_resp_options {
    struct resp_load_config config;
    char servers[BENCH_RESP_SERVERS_BYTES]; /* what config.servers points into */
    double seconds, warmup;
    uint32_t runs;
    bool json;
};

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. */
int bench_resp_options_parse(int argc, char **argv, struct bench_resp_options *options_out,
                             bool *help_out);

#endif
