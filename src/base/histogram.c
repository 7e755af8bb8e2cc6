#include "base/histogram.h"

#include <string.h>

#include "base/assert.h"

uint32_t histogram_range_of(uint64_t value)
{
    if (value < HISTOGRAM_STEPS) {
        return (uint32_t)value;
    }
    uint32_t power = 63u - (uint32_t)__builtin_clzll(value);
    uint32_t shift = power - HISTOGRAM_STEPS_LOG2;
    uint32_t step = (uint32_t)(value >> shift) & (HISTOGRAM_STEPS - 1u);
    return (shift + 1u) * HISTOGRAM_STEPS + step;
}

uint64_t histogram_range_low(uint32_t range)
{
    HK_ASSERT(range < HISTOGRAM_RANGES);
    if (range < HISTOGRAM_STEPS) {
        return range;
    }
    uint32_t shift = range / HISTOGRAM_STEPS - 1u;
    return (uint64_t)(HISTOGRAM_STEPS + range % HISTOGRAM_STEPS) << shift;
}

uint64_t histogram_range_high(uint32_t range)
{
    return range + 1u == HISTOGRAM_RANGES ? UINT64_MAX : histogram_range_low(range + 1u) - 1u;
}

void histogram_init(struct histogram *h)
{
    memset(h, 0, sizeof(*h));
    h->min = UINT64_MAX;
}

void histogram_record(struct histogram *h, uint64_t value)
{
    histogram_record_n(h, value, 1);
}

void histogram_record_n(struct histogram *h, uint64_t value, uint64_t n)
{
    if (n == 0) {
        return;
    }
    h->count += n;
    h->sum += value * n;
    h->min = value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
    h->ranges[histogram_range_of(value)] += n;
}

void histogram_merge(struct histogram *target, const struct histogram *source)
{
    target->count += source->count;
    target->sum += source->sum;
    target->min = source->min < target->min ? source->min : target->min;
    target->max = source->max > target->max ? source->max : target->max;
    for (uint32_t i = 0; i < HISTOGRAM_RANGES; i++) {
        target->ranges[i] += source->ranges[i];
    }
}

uint64_t histogram_percentile(const struct histogram *h, uint32_t ppm)
{
    HK_ASSERT(ppm <= 1000000u);
    if (h->count == 0) {
        return 0;
    }
    /* The rank, rounded up and at least 1: p0 is the smallest value. Split so that it cannot
     * overflow. */
    uint64_t rank = h->count / 1000000u * ppm + (h->count % 1000000u * ppm + 999999u) / 1000000u;
    rank = rank == 0 ? 1 : rank;
    uint64_t seen = 0;
    for (uint32_t i = 0; i < HISTOGRAM_RANGES; i++) {
        seen += h->ranges[i];
        if (seen >= rank) {
            uint64_t high = histogram_range_high(i);
            return high < h->max ? high : h->max;
        }
    }
    return h->max;
}

double histogram_mean(const struct histogram *h)
{
    return h->count == 0 ? 0.0 : (double)h->sum / (double)h->count;
}
