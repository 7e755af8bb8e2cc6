/* `horkos hotset`: how good a hot set a sketch finds in a stream of samples (bench/hot_rates.h). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "bench/hot_rates.h"
#include "hot/sketch.h"
#include "tools/commands.h"
#include "tools/options.h"

#define NAME "hotset"
#define COUNTERS_EACH 8u /* as node/hot.c */
#define SAMPLES_EACH 100u
#define POINT 0.01

static const char help[] =
    "usage: horkos hotset [OPTION...]\n"
    "\n"
    "Draws keys by Zipf's law, counts a sample of them in a sketch as nodes do, and compares the\n"
    "share of all operations that the keys which it picks take with that of the best keys.\n"
    "Exit status: 0 all are within one point, 1 one is not, 2 a wrong option.\n"
    "\n"
    "  --keys N       different keys (1000000)\n"
    "  --cache N      keys of the hot set (a thousandth)\n"
    "  --counters N   of the sketch (8 for each key of the hot set)\n"
    "  --samples N    counted (100 for each key of the hot set)\n"
    "  --sample N     one of so many operations is counted (1)\n"
    "  --exponent A   only this one (0.90, 0.99, 1.01)\n"
    "  --seed N       (1)\n"
    "  --help         this text\n";

enum option_id {
    OPTION_KEYS = 256,
    OPTION_CACHE,
    OPTION_COUNTERS,
    OPTION_SAMPLES,
    OPTION_SAMPLE,
    OPTION_EXPONENT,
    OPTION_SEED,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"keys", required_argument, NULL, OPTION_KEYS},
    {"cache", required_argument, NULL, OPTION_CACHE},
    {"counters", required_argument, NULL, OPTION_COUNTERS},
    {"samples", required_argument, NULL, OPTION_SAMPLES},
    {"sample", required_argument, NULL, OPTION_SAMPLE},
    {"exponent", required_argument, NULL, OPTION_EXPONENT},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

/* 0: not given. */
static bool take(int id, const char *text, struct hot_rates_config *c)
{
    switch (id) {
    case OPTION_KEYS:
        return options_number(NAME, "--keys", text, 2, UINT64_C(1) << 40, &c->keys);
    case OPTION_CACHE:
        return options_u32(NAME, "--cache", text, 1, HOT_COUNTERS_MAX, &c->cache);
    case OPTION_COUNTERS:
        return options_u32(NAME, "--counters", text, 16, HOT_COUNTERS_MAX, &c->counters);
    case OPTION_SAMPLES:
        return options_number(NAME, "--samples", text, 1, UINT64_C(1) << 40, &c->samples);
    case OPTION_SAMPLE:
        return options_u32(NAME, "--sample", text, 1, 1000000, &c->sample);
    case OPTION_EXPONENT:
        return options_real(NAME, "--exponent", text, 0.01, 10, &c->exponent);
    default:
        return options_number(NAME, "--seed", text, 1, UINT64_MAX, &c->seed);
    }
}

static bool complete(struct hot_rates_config *c)
{
    c->keys = c->keys != 0 ? c->keys : 1000000;
    uint64_t cache = c->cache != 0 ? c->cache : c->keys / 1000 + (c->keys < 1000);
    uint64_t counters = c->counters != 0 ? c->counters : COUNTERS_EACH * cache;
    counters = counters > 16 ? counters : 16;
    if (cache > c->keys || counters < cache || counters > HOT_COUNTERS_MAX) {
        fprintf(stderr,
                "horkos hotset: a hot set of %" PRIu64 " of %" PRIu64 " keys needs as many "
                "counters, and there may be %u\n",
                cache, c->keys, HOT_COUNTERS_MAX);
        return false;
    }
    c->cache = (uint32_t)cache;
    c->counters = (uint32_t)counters;
    c->samples = c->samples != 0 ? c->samples : SAMPLES_EACH * cache;
    c->sample = c->sample != 0 ? c->sample : 1;
    c->seed = c->seed != 0 ? c->seed : 1;
    return true;
}

static int compare(struct hot_rates_config c, double exponent)
{
    struct hot_rates r;
    c.exponent = exponent;
    int err = hot_rates_measure(&c, &r);
    if (err != HK_OK) {
        fprintf(stderr, "horkos hotset: %s\n", hk_err_text(err));
        return STATUS_FAILED;
    }
    bool near = fabs(r.picked - r.best) <= POINT;
    printf("%8.2f  %7.2f %%  %7.2f %%  %7.2f %%  %8.1f  %7.1f  %s\n", exponent, 100 * r.best,
           100 * r.picked, 100 * r.by_count, r.seconds, (double)r.bytes / 1e6,
           near ? "" : "more than a point off");
    (void)fflush(stdout);
    return near ? STATUS_OK : STATUS_FAILED;
}

int hotset_command(int argc, char **argv)
{
    struct hot_rates_config c = {.keys = 0};
    int id;
    optind = 0;
    while ((id = options_next(argc, argv, ":h", long_options)) != -1) {
        if (id == OPTION_HELP || id == 'h') {
            (void)fputs(help, stdout);
            return STATUS_OK;
        }
        if (id == '?' || id == ':') {
            options_complain(NAME, id, argv, long_options);
            return STATUS_USAGE;
        }
        if (!take(id, optarg, &c)) {
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "horkos hotset: \"%s\" is no option\n", argv[optind]);
        return STATUS_USAGE;
    }
    if (!complete(&c)) {
        return STATUS_USAGE;
    }
    static const double usual[] = {0.90, 0.99, 1.01};
    uint32_t n = c.exponent > 0 ? 1 : 3;
    int status = STATUS_OK;
    printf("%" PRIu64 " keys, %" PRIu32 " of them hot; %" PRIu32 " counters, %" PRIu64
           " samples, 1 in %" PRIu32 "\n",
           c.keys, c.cache, c.counters, c.samples, c.sample);
    printf("exponent   computed     picked   by count   seconds       MB\n");
    for (uint32_t i = 0; i < n; i++) {
        int one = compare(c, n == 1 ? c.exponent : usual[i]);
        status = one != STATUS_OK ? one : status;
    }
    return status;
}
