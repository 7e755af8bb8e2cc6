/* Runs of seeds in a process of their own, so that a failed assertion of the code under test ends
 * neither the report nor the search for mutants. */
#ifndef HORKOS_TOOLS_SIM_RUNS_H
#define HORKOS_TOOLS_SIM_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/report.h"
#include "tools/sim_options.h"

/* Shared by the process that watches and the one that runs. */
struct sim_watch {
    uint64_t seed;   /* that runs, or ran last */
    uint64_t next;   /* mutants: where to go on */
    uint64_t caught; /* mutants: the first seed that shows the rule, if done */
    uint64_t ran;    /* seeds that came to an end */
    bool done;       /* it came to an end */
    bool found;      /* ... with a violation */
};

/* Zeroed memory that children share with their parent; NULL if there is none. */
void *sim_share(size_t bytes);
void sim_unshare(void *at, size_t bytes);

/* For a process that is about to run many seeds. */
void sim_prepare_process(void);
/* The calling process, a child, ends when its parent does. */
void sim_end_with_parent(void);
/* Says in words how a child ended, given its status from waitpid. */
void sim_describe_end(int wait_status, char *to, size_t size);

/* Tries smaller runs, each in a process of its own, for a bounded time. False: the seed violates
 * nothing, or there is no process to be had. shrunk_out must go through sim_shrunk_deinit. */
bool sim_shrink(const struct sim_config *config, uint64_t seed, struct sim_shrunk *shrunk_out);
/* The shortest history, if the run has a refused one. */
void sim_shrink_history(struct sim_result *result, struct sim_shrunk *shrunk);

/* Each rule in turn. Returns the program's exit status. */
int sim_mutants_command(const struct sim_options *options);

#endif
