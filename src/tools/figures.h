/* What the files of `horkos figures` share: a figure is a list of points by series, made by a
 * function that plays clusters of the cost model. */
#ifndef HORKOS_TOOLS_FIGURES_H
#define HORKOS_TOOLS_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "node/engines.h"
#include "sim/cost_cluster.h"

struct figure;

struct figures_options {
    const char *out; /* folder, made if need be */
    const char
        *only; /* ids, with commas; of each the letter at its end may be missing. NULL: all */
    uint64_t seed;
    bool quick; /* few keys, workers and microseconds: to see that it works */
    bool json;
    bool markdown; /* prints the comparison with the papers as a table */
    bool list;
    bool progress;
};

/* Parses the command line; a status of commands.h. help_out: help was asked for and printed. */
int figures_options_parse(int argc, char **argv, struct figures_options *options_out,
                          bool *help_out);

#define FIGURE_SERIES_BYTES 48u

struct figure_point {
    char series[FIGURE_SERIES_BYTES]; /* "= ...": a number of its own, in no curve */
    double x, y;
};

/* A figure in the making. */
struct figure_run {
    const struct figures_options *options;
    const struct figure *figure;
    struct figure_point *points; /* in the order of their making */
    size_t points_n, points_capacity;
    char note[256]; /* what people have to know about it; "": nothing */
    int err;        /* the first that happened */
};

struct figure {
    const char *id;    /* as the thesis numbers it */
    const char *title; /* with unit of y */
    const char *by;    /* what has made it: "the cost model" */
    const char *x, *y; /* axes */
    bool x_log, y_log;
    void (*make)(struct figure_run *run);
};

/* Ended by an entry without an id. */
extern const struct figure figures[];
/* Whether --only leaves it in. */
bool figures_wants(const struct figures_options *options, const struct figure *figure);

void figure_add(struct figure_run *run, double x, double y, const char *series, ...)
    __attribute__((format(printf, 4, 5)));
/* False: there is no such point. */
bool figure_find(const struct figure_run *run, const char *series, double x, double *y_out);

/* ---- figures_play.c: clusters for figures ---- */

struct figure_cluster {
    struct figure_run *run;
    struct cost_machine machine;
    union engines_config config;
    struct cost_cluster *cluster;
    uint32_t nodes;
    double scale; /* of throughput: the whole machine's workers over those that are played */
};

struct figure_wish {
    const struct cost_machine *machine;
    const struct engine_ops *engine;
    uint32_t nodes;
    uint32_t workers; /* played, and the network in proportion; 0: all of the machine's */
    uint32_t value_bytes;
    uint32_t lease_us;
    uint32_t window_most; /* 0: the machine's */
    bool async_reads;
    bool lockstep; /* zab: total order in rounds */
    bool single;   /* one worker a node that has a core and the network to itself */
    uint64_t keys; /* 0: a million, or few for a quick figure */
    struct hot_config hot;
    uint32_t frame_messages_max;    /* as in cost_setup */
    const struct work_config *work; /* transactions, as in cost_setup; NULL: none */
    uint8_t degree;
    uint32_t memory;           /* nodes that are memory servers, as in cost_setup */
    double memory_slow;        /* as in cost_setup */
    struct lotus_config lotus; /* lotus */
};

/* False after an error, which the run keeps. */
bool figure_open(struct figure_run *run, const struct figure_wish *wish,
                 struct figure_cluster *cluster_out);
void figure_close(struct figure_cluster *cluster);
/* Runs the load for the usual time, unless it names one; ops_per_s is scaled to the machine. */
void figure_play(struct figure_cluster *cluster, struct cost_load load,
                 struct cost_result *result_out);
/* Tells on a terminal how far it is. */
void figure_progress(const struct figure_run *run, const char *what, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- The figures ---- */
void figure_hottest(struct figure_run *run);
void figure_hit_rate(struct figure_run *run);
void figure_homed_reads(struct figure_run *run);
void figure_homed_breakdown(struct figure_run *run);
void figure_homed_writes(struct figure_run *run);
void figure_homed_traffic(struct figure_run *run);
void figure_homed_sizes(struct figure_run *run);
void figure_homed_packets(struct figure_run *run);
void figure_homed_coalesced(struct figure_run *run);
void figure_homed_latency(struct figure_run *run);
void figure_servers(struct figure_run *run);
void figure_uniform(struct figure_run *run);
void figure_skew(struct figure_run *run);
void figure_scaling(struct figure_run *run);
void figure_latency_load(struct figure_run *run);
void figure_latency_uniform(struct figure_run *run);
void figure_latency_skew(struct figure_run *run);
void figure_sizes(struct figure_run *run);
void figure_tail(struct figure_run *run);
void figure_crash(struct figure_run *run);
void figure_async_writes(struct figure_run *run);
void figure_async_load(struct figure_run *run);
void figure_handovers(struct figure_run *run);
void figure_smallbank(struct figure_run *run);
void figure_tatp(struct figure_run *run);
void figure_voter(struct figure_run *run);
void figure_ycsb(struct figure_run *run);
void figure_moves(struct figure_run *run);
void figure_lotus_threads_a(struct figure_run *run);
void figure_lotus_threads_b(struct figure_run *run);
void figure_lotus_threads_c(struct figure_run *run);
void figure_lotus_latency_a(struct figure_run *run);
void figure_lotus_latency_b(struct figure_run *run);
void figure_lotus_latency_c(struct figure_run *run);
void figure_lotus_latency_4(struct figure_run *run);
void figure_lotus_latency_32(struct figure_run *run);
void figure_lotus_traffic(struct figure_run *run);
void figure_lotus_length_a(struct figure_run *run);
void figure_lotus_length_b(struct figure_run *run);
void figure_lotus_length_c(struct figure_run *run);
void figure_lotus_per_message(struct figure_run *run);
void figure_lotus_increments_a(struct figure_run *run);
void figure_lotus_increments_c(struct figure_run *run);
void figure_lotus_increments_latency_a(struct figure_run *run);
void figure_lotus_increments_latency_c(struct figure_run *run);
void figure_lotus_groups(struct figure_run *run);
void figure_lotus_parts_a(struct figure_run *run);
void figure_lotus_parts_c(struct figure_run *run);
void figure_lotus_memory(struct figure_run *run);

/* Of the Lotus paper: figures_partitioned.c. */
void figure_part_threads(struct figure_run *run);
void figure_part_traffic(struct figure_run *run);
void figure_part_cache(struct figure_run *run);
void figure_part_memory(struct figure_run *run);

/* ---- figures_paper.c: what the papers say about these figures ---- */

enum claim_kind {
    CLAIM_VALUE, /* ours shall be as the paper's */
    CLAIM_LEAST, /* ours shall be at least that: the paper says "at least" */
    CLAIM_MOST,
};

struct claim {
    const char *figure;
    const char *what;
    const char *series; /* y of this series at x ... */
    double x;
    const char *over; /* ... over y of that one at over_x; NULL: y itself */
    double over_x;
    double paper;
    enum claim_kind kind;
};
extern const struct claim claims[];

/* Ours for a claim; false: a point is missing (an engine that this program does not have). */
bool claim_ours(const struct claim *claim, const struct figure_run *run, double *ours_out);

/* ---- figures_write.c: files ---- */

/* OUT/figure-ID.csv. */
int figure_write_csv(const struct figure_run *run) __attribute__((warn_unused_result));
/* OUT/figure-ID.gp, and OUT/figure-ID.svg by gnuplot. drawn_out: whether there is a gnuplot. */
int figure_write_svg(const struct figure_run *run, bool *drawn_out)
    __attribute__((warn_unused_result));

#endif
