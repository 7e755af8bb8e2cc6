/* Breadth-first search over all states of a model, so that the first violation found has the
 * shortest execution. States are plain memory of one size: compared, hashed and copied as bytes, so
 * a model writes every byte of them, and puts what does not matter into one canonical form.
 *
 * What is kept of a visited state is a fingerprint of 128 bits, its parent and which successor of
 * it it was; whole states only of the depth that is being expanded and the next one. An execution
 * is found again by expanding from the beginning. */
#ifndef HORKOS_EXPLORE_SEARCH_H
#define HORKOS_EXPLORE_SEARCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct search;

struct search_model {
    const void *self; /* passed to all functions below */
    size_t state_bytes;
    /* The only initial state. */
    void (*begin)(const void *self, void *state_out);
    /* Emits every successor, always in the same order, by search_emit. */
    void (*expand)(const void *self, const void *state, struct search *search);
    /* NULL, or the invariant that the state breaks (a constant text). Asked once a state. */
    const char *(*broken)(const void *self, const void *state);
    /* Whether an execution may end here with all that was begun finished (counted, no more). */
    bool (*finished)(const void *self, const void *state);
    /* In words, for a trace: what the step from `before` to `after`, which is successor number
     * `action` as given to search_emit, was; one line, without a newline. */
    void (*describe)(const void *self, const void *before, const void *after, uint64_t action,
                     FILE *to);
};

/* Called by expand: `state` (state_bytes, copied) follows by `action`, a number of the model's own
 * that describe understands. broken: NULL, or what the step itself violated (a constant text). */
void search_emit(struct search *search, const void *state, uint64_t action, const char *broken);

struct search_bounds {
    uint64_t states_max;  /* 0: no bound */
    uint64_t memory_max;  /* bytes, of visited set and frontier together; 0: 4 GiB */
    uint32_t depth_max;   /* 0: no bound */
    uint64_t seconds_max; /* 0: no bound; only a run that ends within it is reproducible */
};

enum search_end {
    SEARCH_COMPLETE,  /* every reachable state was visited */
    SEARCH_VIOLATION, /* the shortest one is in the trace */
    SEARCH_BOUND,     /* a bound was reached first: a lower bound, no proof */
    SEARCH_NOMEM,
};
extern const char *const search_end_names[4];

struct search_result {
    enum search_end end;
    uint64_t states;   /* different ones, visited */
    uint64_t steps;    /* successors emitted */
    uint64_t finished; /* states in which everything begun was finished */
    uint64_t frontier; /* states not expanded when it ended */
    uint32_t depth;    /* of the last state that was expanded */
    double seconds;
    const char *broken; /* VIOLATION: what, else NULL */
    char *trace;        /* VIOLATION: numbered lines, malloced; else NULL */
};

/* progress: called about once a second with the counts so far; NULL: never. */
void search_run(const struct search_model *model, const struct search_bounds *bounds,
                void (*progress)(const struct search_result *so_far, void *context), void *context,
                struct search_result *result_out);
void search_result_deinit(struct search_result *result);

#endif
