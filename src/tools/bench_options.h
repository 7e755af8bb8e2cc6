/* The command line of `horkos bench`. */
#ifndef HORKOS_TOOLS_BENCH_OPTIONS_H
#define HORKOS_TOOLS_BENCH_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/bench.h"

#define BENCH_ENGINES_MAX 8u
#define BENCH_RUNS_MAX 1000u

/* Of an engine whose keys have homes ([G] 3.7). */
enum bench_mode {
    BENCH_MODE_CACHE,     /* the hottest keys are cached on all nodes */
    BENCH_MODE_BASE,      /* every key is at its home alone */
    BENCH_MODE_BASE_EREW, /* ... and there only one worker touches it */
    BENCH_MODE_UNIFORM,   /* base, and all keys are equally popular */
    BENCH_MODES
};
extern const char *const bench_mode_names[BENCH_MODES];

struct bench_options {
    struct bench_config config; /* but for the engine */
    const struct engine_ops *engines[BENCH_ENGINES_MAX];
    uint32_t engines_n; /* more than one: they are compared with the first */
    enum bench_mode mode;
    double seconds;
    double warmup;
    uint32_t runs;
    bool probe;
    bool json;
};

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. */
int bench_options_parse(int argc, char **argv, struct bench_options *options_out, bool *help_out);

#endif
