#include <stdlib.h>

#include "bench/internal.h"

/* At most; two for each key are enough, for the laps of uniform keys differ. */
#define DRAWN_MAX (1u << 21)
#define DRAWN_MIN (1u << 14)

_Static_assert(BENCH_KEYS_MAX - 1 <= DRAWN_KEY_MASK, "keys fit beside the kind");
_Static_assert(LOAD_KINDS <= 4, "two bits");

int drawn_init(struct drawn *drawn, const struct bench_config *config, uint32_t worker)
{
    struct keys keys;
    struct random random;
    struct keys_config where = config->keys;
    uint64_t n = 2 * config->keys.n;
    n = n < DRAWN_MIN ? DRAWN_MIN : n > DRAWN_MAX ? DRAWN_MAX : n;
    *drawn = (struct drawn){
        .ops = malloc(n * sizeof *drawn->ops),
        .n = (uint32_t)n,
        .shifts = config->keys.exponent == 0.0,
        .keys = (uint32_t)config->keys.n,
    };
    if (drawn->ops == NULL) {
        return HK_ERR_NOMEM;
    }
    where.seed = config->seed;
    keys_init(&keys, &where);
    random_init(&random, config->seed + 0x10001u * (worker + 1u));
    for (uint64_t i = 0; i < n; i++) {
        uint32_t kind = mix_draw(&config->mix, &random);
        drawn->ops[i] = (uint32_t)keys_draw(&keys, &random) | kind << DRAWN_KIND_SHIFT;
    }
    return HK_OK;
}

void drawn_deinit(struct drawn *drawn)
{
    free(drawn->ops);
    drawn->ops = NULL;
}
