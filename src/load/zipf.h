/* Ranks by Zipf's law: rank k of 1 .. n has probability k^-exponent / H, H the sum of these powers.
 * Exact for every exponent above 0, one included, without tables: rejection from the
 * inverted integral of a hat function (W. Hormann and G. Derflinger, "Rejection-inversion to
 * generate variates from monotone discrete distributions", 1996). About 1.1 draws a rank. */
#ifndef HORKOS_LOAD_ZIPF_H
#define HORKOS_LOAD_ZIPF_H

#include <stdint.h>

#include "base/random.h"

struct zipf {
    uint64_t n;
    double exponent;
    double first;  /* of the hat's integral: where rank 1 begins ... */
    double last;   /* ... and where rank n ends */
    double accept; /* a rank that is as close above its draw is taken without a further look */
};

/* n > 0, exponent > 0. */
void zipf_init(struct zipf *z, uint64_t n, double exponent);
/* 1 .. n. */
uint64_t zipf_draw(const struct zipf *z, struct random *random);
/* The probability of a rank; sum is zipf_sum of the same n and exponent. */
double zipf_probability(const struct zipf *z, uint64_t rank, double sum);
/* H: takes n steps. */
double zipf_sum(const struct zipf *z);
/* The same sum over ranks 1 .. n of any n, to the precision of a double, in about a thousand steps:
 * the first are added, the others are an integral and its corrections (Euler and Maclaurin). */
double zipf_harmonic(uint64_t n, double exponent);
/* Which part of all requests is for the `cached` most popular of n keys: the hit rate of a cache
 * that holds just these. 0 <= cached <= n, n > 0. */
double zipf_hit_rate(uint64_t cached, uint64_t n, double exponent);

#endif
