/* What a cache of hot keys can do for a load, by computation. */
#include <math.h>

#include "bench/bench.h"
#include "load/zipf.h"

/* As node_config has it when nothing is said (struct hot_config). */
#define PART 1000u
#define LEAST 64u

uint64_t bench_cache_keys(const struct bench_config *config)
{
    if ((config->engine->traits & ENGINE_HOMED) == 0 || config->hot.off) {
        return 0;
    }
    uint64_t n = config->hot.cache_keys;
    if (n == 0) {
        n = config->keys.n / PART > LEAST ? config->keys.n / PART : LEAST;
    }
    return n < config->keys.n ? n : config->keys.n;
}

double bench_hit_rate(const struct bench_config *config)
{
    uint64_t cached = bench_cache_keys(config);
    if ((config->engine->traits & ENGINE_HOMED) == 0) {
        return NAN;
    }
    return config->keys.exponent > 0.0
               ? zipf_hit_rate(cached, config->keys.n, config->keys.exponent)
               : (double)cached / (double)config->keys.n;
}
