/* How good the hot set is that a sketch picks from the samples of a stream with Zipf's law, next to
 * the best one there is. Only the sketch is at work: no node holds the keys, so there may be more
 * of them than would fit. */
#ifndef HORKOS_BENCH_HOT_RATES_H
#define HORKOS_BENCH_HOT_RATES_H

#include <stdint.h>

struct hot_rates_config {
    uint64_t keys;
    double exponent;
    uint32_t cache;    /* keys of the hot set, at most `counters` */
    uint32_t counters; /* of the sketch */
    uint64_t samples;  /* that it counts */
    uint32_t sample;   /* one of so many operations is counted, drawn as node/hot.c does; 1: all.
                          Operations are drawn independently, so the samples of a stream are a
                          stream of the same law: this costs time and changes nothing */
    uint64_t seed;
};

struct hot_rates {
    double best;     /* computed: the share of operations on the `cache` most frequent keys */
    double picked;   /* the same of the keys that the sketch picks, by what is certain of them */
    double by_count; /* by their counts, whatever the errors */
    double seconds;  /* of this thread's processor, for drawing and counting */
    uint64_t bytes;  /* of the sketch */
};

/* HK_ERR_NOMEM. */
int hot_rates_measure(const struct hot_rates_config *config, struct hot_rates *rates_out)
    __attribute__((warn_unused_result));

#endif
