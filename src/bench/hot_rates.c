#include "bench/hot_rates.h"

#include <stdlib.h>
#include <time.h>

#include "base/err.h"
#include "base/hash.h"
#include "hot/tally.h"
#include "load/zipf.h"

#define KEY_BYTES 8u
#define KEY_BYTES_EACH 16u /* with what the sketch's log adds */

static double processor_seconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void count(const struct hot_rates_config *config, const struct zipf *z, struct hot_sketch *s)
{
    struct random random;
    struct random gaps;
    struct hash_secret secret;
    random_init(&random, config->seed);
    random_init(&gaps, config->seed + 1);
    hash_secret_init(&secret, config->seed);
    for (uint64_t i = 0; i < config->samples; i++) {
        uint64_t skip = random_below(&gaps, 2 * (uint64_t)config->sample - 1);
        uint8_t key[KEY_BYTES];
        for (; skip > 0; skip--) {
            (void)zipf_draw(z, &random);
        }
        put_u64(key, zipf_draw(z, &random));
        hot_sketch_add(s, bytes_of(key, KEY_BYTES), hash_bytes(&secret, bytes_of(key, KEY_BYTES)));
    }
}

static double share(const struct zipf *z, struct bytes key, double sum)
{
    return zipf_probability(z, get_u64(key.at), sum);
}

static double share_by_count(const struct zipf *z, const struct hot_sketch *s, uint32_t cache,
                             double sum)
{
    uint32_t at = HOT_FIRST;
    double all = 0;
    struct hot_count c;
    for (uint32_t i = 0; i < cache && hot_sketch_next(s, &at, &c); i++) {
        all += share(z, c.key, sum);
    }
    return all;
}

static double share_picked(const struct zipf *z, struct hot_tally *t, uint32_t cache, double sum)
{
    struct hot_ranking ranking = {.bonus = 1};
    uint32_t n = hot_tally_rank(t, cache, &ranking);
    double all = 0;
    for (uint32_t i = 0; i < n; i++) {
        all += share(z, hot_tally_ranked(t, i).key, sum);
    }
    return all;
}

int hot_rates_measure(const struct hot_rates_config *config, struct hot_rates *rates_out)
{
    uint32_t n = config->counters;
    struct hot_sketch s;
    struct hot_tally t;
    struct zipf z;
    size_t bytes = hot_sketch_bytes(n, n * KEY_BYTES_EACH);
    void *sketch = malloc(bytes);
    void *tally = malloc(hot_tally_bytes(n, n * KEY_BYTES));
    if (sketch == NULL || tally == NULL) {
        free(sketch);
        free(tally);
        return HK_ERR_NOMEM;
    }
    zipf_init(&z, config->keys, config->exponent);
    double sum = zipf_harmonic(config->keys, config->exponent);
    hot_sketch_init(&s, sketch, n, n * KEY_BYTES_EACH);
    double from = processor_seconds();
    count(config, &z, &s);
    *rates_out = (struct hot_rates){
        .best = zipf_hit_rate(config->cache, config->keys, config->exponent),
        .seconds = processor_seconds() - from,
        .bytes = bytes,
    };
    hot_tally_init(&t, tally, n, n * KEY_BYTES);
    hot_tally_sketch(&t, &s, 1, n, NULL, NULL);
    rates_out->by_count = share_by_count(&z, &s, config->cache, sum);
    rates_out->picked = share_picked(&z, &t, config->cache, sum);
    free(sketch);
    free(tally);
    return HK_OK;
}
