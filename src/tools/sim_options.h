/* The command line of `horkos sim`. */
#ifndef HORKOS_TOOLS_SIM_OPTIONS_H
#define HORKOS_TOOLS_SIM_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sim.h"

struct sim_options {
    struct sim_config config;
    uint64_t from;
    uint64_t seeds;
    bool json;
    bool progress;
    bool replay;         /* one seed, in this process */
    bool shrink;         /* what violates something */
    bool waver;          /* for tests: second runs of seeds differ */
    bool all_mutants;    /* --mutants ... */
    const char *mutants; /* ... of the rules whose names begin so */
    const char *records; /* ... a file: only what it records; NULL: look for them */
    uint32_t jobs;       /* of --mutants */
};

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. */
int sim_options_parse(int argc, char **argv, struct sim_options *options_out, bool *help_out);

#endif
