/* What an operation does, and when it is meant to begin. */
#ifndef HORKOS_LOAD_MIX_H
#define HORKOS_LOAD_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"

enum load_kind { LOAD_READ, LOAD_WRITE, LOAD_RMW, LOAD_KINDS };
extern const char *const load_kind_names[LOAD_KINDS];

/* Percentages of all operations; what is left over are reads. writes + rmws <= 100. */
struct mix {
    double writes;
    double rmws;
};
enum load_kind mix_draw(const struct mix *mix, struct random *random);

/* The intended starts of an open loop: as a Poisson process, or evenly. */
struct schedule {
    double gap_ns; /* mean distance of two starts */
    double next_ns;
    bool even;
};
/* rate: operations a second, > 0. The first start comes after from_ns. */
void schedule_init(struct schedule *s, double rate, bool even, uint64_t from_ns,
                   struct random *random);
/* When the next operation is meant to begin. */
uint64_t schedule_due_ns(const struct schedule *s);
/* It has been taken up: on to the one after it. */
void schedule_advance(struct schedule *s, struct random *random);

#endif
