/* What is reported of a run of a workload (work.h). Pure. */
#ifndef HORKOS_BENCH_WORK_FIGURES_H
#define HORKOS_BENCH_WORK_FIGURES_H

#include "bench/bench.h"

enum work_figure {
    WORK_TXNS_PER_S,
    WORK_CPU_NS_PER_TXN, /* of all nodes */
    WORK_TXNS_PER_S_APART,
    WORK_COMPUTE_CPU_NS_PER_TXN, /* where memory servers are nodes of their own: of the others, */
    WORK_MEMORY_CPU_NS_PER_TXN,  /* and of these */
    WORK_STEPS_PER_TXN,          /* that were handed to nodes, those of before it began again too */
    WORK_AGAIN_PER_TXN,          /* times that it began again: what it had read has changed */
    WORK_TRIES_PER_TXN,          /* its own try counted, and each of what began again */
    WORK_WRITES,                 /* the part of the transactions that may write */
    WORK_REMOTE,                 /* the part that touches objects of other nodes' homes */
    WORK_ABORTS_PER_TXN,         /* tries that came to nothing, of those that ended well */
    WORK_REFUSED_PER_TXN,        /* given up: others were faster too often */
    WORK_REQUESTS_PER_MESSAGE,   /* lotus: rows and ranges that a message asks for ... */
    WORK_REQUESTS_PER_FRAME,     /* ... and, where memory servers are nodes of their own, a frame of
                                  the others */
    WORK_ONE_TRIP,               /* lotus: the part that one server did as a whole */
    WORK_ROWS_PER_TXN,           /* lotus: rows and ranges that were got, of tries that ended too */
    WORK_WAITS_PER_TXN,          /* lotus: times that a try waited for a lock */
    WORK_HINTS,                  /* lotus: the part of what is asked for that has a hint, ... */
    WORK_HINTS_GOOD,             /* ... one that is right, ... */
    WORK_HINTS_STALE,            /* ... and one that is not */
    WORK_CACHE_HITS,             /* dex: the part of the nodes that were in the cache */
    WORK_MOVES_PER_TXN,          /* zeus: objects that changed their owner */
    WORK_MOVES_PER_S,            /* zeus */
    WORK_READERS_PER_TXN,        /* zeus: replicas that were added */
    WORK_NACKS_PER_MOVE,         /* zeus: requests for ownership that met another one */
    WORK_MESSAGES_PER_MOVE,   /* zeus: of ownership, for an object that moved or was replicated */
    WORK_MESSAGES_PER_COMMIT, /* zeus: of reliable commit, for a transaction that wrote */
    WORK_MESSAGES_PER_TXN,    /* all between nodes */
    WORK_FRAMES_PER_TXN,
    WORK_BYTES_PER_TXN,
    WORK_P50_US,
    WORK_P99_US,
    WORK_P999_US,
    WORK_P9999_US,
    WORK_MEAN_US,
    WORK_WRITES_P50_US,
    WORK_WRITES_P99_US,
    WORK_SUCCESS,                               /* of the first type; the others follow */
    WORK_SHARE = WORK_SUCCESS + WORK_TYPES_MAX, /* of all transactions, by type */
    WORK_FIGURES = WORK_SHARE + WORK_TYPES_MAX
};

/* NULL: it is of a type (WORK_SUCCESS and WORK_SHARE on). */
const char *work_figure_name(uint32_t figure);
/* A figure that means nothing for this run is NAN. */
void work_figures_of(const struct bench_run *run, double figures_out[WORK_FIGURES]);

#endif
