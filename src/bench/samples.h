/* Where the thread that runs a cluster is, asked about a thousand times a second: what its nodes'
 * time goes to, without hardware counters and without a tool beside. A timer interrupts the thread,
 * and the interrupted instruction's address is noted, with the node whose worker has its round.
 * What an address belongs to says the program's debugging information (scripts/measure parts).
 *
 * One thread. One that is kept from running is asked once when it runs again. */
#ifndef HORKOS_BENCH_SAMPLES_H
#define HORKOS_BENCH_SAMPLES_H

#include <stdint.h>

#define SAMPLES_PERIOD_NS 997000u
/* Past it nothing more is noted. */
#define SAMPLES_MAX (1u << 20)

struct sample {
    uint64_t at;     /* as the program's symbols are numbered; 0: outside it */
    uint64_t caller; /* outside it: the nearest of its addresses on the stack; 0: none */
    uint64_t node;   /* SAMPLES_NOBODY: between two rounds */
};
#define SAMPLES_NOBODY UINT64_MAX

struct samples;

/* HK_ERR_NOMEM. */
int samples_create(struct samples **samples_out) __attribute__((warn_unused_result));
void samples_destroy(struct samples *samples);
/* The calling thread is asked from here on, until it stops. HK_ERR_IO: there is no
 * such timer, or this processor's registers are not known here. */
int samples_start(struct samples *samples) __attribute__((warn_unused_result));
void samples_stop(struct samples *samples);
/* Whose round begins. */
void samples_turn(struct samples *samples, uint64_t node);
/* What was noted so far; while it is stopped. */
const struct sample *samples_all(const struct samples *samples, uint32_t *n_out);

#endif
