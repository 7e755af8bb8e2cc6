/* Counts of values by size, log-linear as HdrHistogram's: every power of two is cut into
 * HISTOGRAM_STEPS equal ranges, so a percentile is off by less than 1 / HISTOGRAM_STEPS of itself,
 * whatever the unit. Fixed size, no allocation; one writer. */
#ifndef HORKOS_BASE_HISTOGRAM_H
#define HORKOS_BASE_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_STEPS_LOG2 6u
#define HISTOGRAM_STEPS (1u << HISTOGRAM_STEPS_LOG2)
/* Values below HISTOGRAM_STEPS have a range each; then follow the powers 2^6 to 2^63. */
#define HISTOGRAM_RANGES (HISTOGRAM_STEPS * (64u - HISTOGRAM_STEPS_LOG2 + 1u))

struct histogram {
    uint64_t count;
    uint64_t sum; /* of all values, modulo 2^64 */
    uint64_t min; /* UINT64_MAX while empty */
    uint64_t max;
    uint64_t ranges[HISTOGRAM_RANGES];
};

void histogram_init(struct histogram *h);
void histogram_record(struct histogram *h, uint64_t value);
/* The same value n times. */
void histogram_record_n(struct histogram *h, uint64_t value, uint64_t n);
/* Adds all of source to target. */
void histogram_merge(struct histogram *target, const struct histogram *source);

/* The smallest recorded size below or at which ppm millionths of the values lie (500,000 is the
 * median, 999,000 is p99.9): the upper end of its range, and never above max. 0 while empty. */
uint64_t histogram_percentile(const struct histogram *h, uint32_t ppm);
/* 0 while empty. */
double histogram_mean(const struct histogram *h);

/* For printing the whole distribution: the range that a value falls into, and a range's ends, both
 * included. */
uint32_t histogram_range_of(uint64_t value);
uint64_t histogram_range_low(uint32_t range);
uint64_t histogram_range_high(uint32_t range);

#endif
