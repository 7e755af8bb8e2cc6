/* The command line of `horkos explore`. */
#ifndef HORKOS_TOOLS_EXPLORE_OPTIONS_H
#define HORKOS_TOOLS_EXPLORE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "explore/explore.h"

enum {
    STATUS_BOUND = 3
}; /* no violation, but a bound was reached before all states were visited */

struct explore_options {
    const char *config; /* a name, "all" or "fast" */
    const char *engine; /* NULL: any */
    struct search_bounds bounds;
    uint64_t rules_off[EXPLORE_FAMILIES];
    uint64_t flips_on;
    bool list;
    bool json;
    bool trace; /* --mutants: print the traces too */
    bool progress;
    bool all_mutants;    /* --mutants ... */
    const char *mutants; /* ... of the names that begin so */
};

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. */
int explore_options_parse(int argc, char **argv, struct explore_options *options_out,
                          bool *help_out);
/* Whether the configuration is one of those asked for. */
bool explore_options_want(const struct explore_options *options,
                          const struct explore_config *config);
/* Switches mutant i (sim/mutants.h) off in what rules_off and flips_on say; false: it is of no
 * family that can be explored. */
bool explore_options_mutate(uint32_t i, struct explore_options *options);

/* explore_mutants.c: each mutant in turn. Returns the program's exit status. */
int explore_mutants_command(const struct explore_options *options);

#endif
