/* Thesis figures 3.1 and 3.3, and what the analytical model says in those of chapter 3.8
 * (docs/GALENE_MODEL.md): sums, no cluster is played. */
#include "tools/figures_galene.h"

#include <stdlib.h>

#include "base/assert.h"
#include "load/zipf.h"
#include "sim/galene_model.h"

#define MILLION 1e6
#define PERCENT 100

static const double exponents[] = {0.90, 0.99, 1.01};
#define EXPONENTS (sizeof exponents / sizeof exponents[0])
static const uint32_t sizes[] = {40, 128, 256, 512, 1024};
#define SIZES (sizeof sizes / sizeof sizes[0])

/* ---- Where the load is ---- */

#define HOT_SERVERS 128u
#define HOT_SEEDS 100u
#define HOT_PLACED 1000000u
#define QUICK_PLACED 100000u

static int descending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* All keys are placed one by one, but for a quick figure. */
static void shares_of(const struct figure_run *run, double exponent, uint32_t parts, double *out)
{
    uint64_t placed = run->options->quick ? QUICK_PLACED : GALENE_PAPER_KEYS;
    figure_progress(run, "%.2f, placing %llu keys", exponent, (unsigned long long)placed);
    galene_shares(GALENE_PAPER_KEYS, placed, exponent, run->options->seed, parts, out);
}

void figure_hottest(struct figure_run *run)
{
    double shares[HOT_SERVERS];
    double sum = 0;
    uint32_t above = 0;
    snprintf(run->note, sizeof run->note, "250 M keys, placed by a hash with seed %llu.",
             (unsigned long long)run->options->seed);
    shares_of(run, 0.99, HOT_SERVERS, shares);
    qsort(shares, HOT_SERVERS, sizeof shares[0], descending);
    for (uint32_t i = 0; i < HOT_SERVERS; i++) {
        figure_add(run, i + 1, shares[i] * HOT_SERVERS, "zipf 0.99");
    }
    /* Another hash gives the hottest key other company. */
    uint64_t placed = run->options->quick ? QUICK_PLACED / 10 : HOT_PLACED;
    for (uint64_t i = 0; i < HOT_SEEDS; i++) {
        galene_shares(GALENE_PAPER_KEYS, placed, 0.99, run->options->seed + i, HOT_SERVERS, shares);
        double most = galene_most(shares, HOT_SERVERS) * HOT_SERVERS;
        sum += most;
        above += most > 7;
    }
    figure_add(run, HOT_SERVERS, sum / HOT_SEEDS, "= hottest server in the mean of %u seeds",
               HOT_SEEDS);
    figure_add(run, HOT_SERVERS, above, "= placements of %u with more than 7", HOT_SEEDS);
}

void figure_hit_rate(struct figure_run *run)
{
    static const double percent[] = {0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1,
                                     0.2,   0.5,   1,     2,    5,    10};
    snprintf(run->note, sizeof run->note,
             "A cache of the most popular of 250 M keys, by harmonic sums.");
    for (size_t e = 0; e < EXPONENTS; e++) {
        for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
            uint64_t cached = (uint64_t)(GALENE_PAPER_KEYS / 100.0 * percent[i] + 0.5);
            figure_add(run, percent[i],
                       PERCENT * zipf_hit_rate(cached, GALENE_PAPER_KEYS, exponents[e]),
                       "zipf %.2f", exponents[e]);
        }
    }
}

/* ---- The analytical model's curves in figures 3.8 to 3.14 ---- */

static struct galene_model model_of(double hit_rate, double percent)
{
    return (struct galene_model){
        .nodes = GALENE_PAPER_NODES,
        .hit_rate = hit_rate,
        .write_ratio = percent / PERCENT,
        .request_reply_bytes = galene_request_reply_bytes(&galene_paper_sizes),
        .write_bytes = galene_write_bytes(&galene_paper_sizes),
        .bytes_per_s = GALENE_PAPER_SMALL_BYTES_PER_S,
    };
}

/* Base: no cache, and the server that the hash gave most is what limits. */
static struct galene_load base_of(double hottest, double percent, double coalesced)
{
    return (struct galene_load){.nodes = GALENE_PAPER_NODES,
                                .write_ratio = percent / PERCENT,
                                .hottest = hottest,
                                .coalesced = coalesced};
}

static struct galene_load cache_of(double percent, double coalesced)
{
    return (struct galene_load){.nodes = GALENE_PAPER_NODES,
                                .hit_rate = galene_paper_hit_rate(0.99),
                                .write_ratio = percent / PERCENT,
                                .hottest = 1.0 / GALENE_PAPER_NODES,
                                .coalesced = coalesced};
}

static double mreq(const struct galene_load *load, const struct galene_sizes *s)
{
    struct galene_network network = galene_paper_network();
    return galene_limited(load, s, &network, NULL) / MILLION;
}

static double hottest_of(const struct figure_run *run, double exponent)
{
    double shares[GALENE_PAPER_NODES];
    shares_of(run, exponent, GALENE_PAPER_NODES, shares);
    return galene_most(shares, GALENE_PAPER_NODES);
}

void galene_curves_read_only(struct figure_run *run)
{
    for (size_t e = 0; e < EXPONENTS; e++) {
        double x = exponents[e];
        struct galene_model m = model_of(galene_paper_hit_rate(x), 0);
        struct galene_model exact =
            model_of(zipf_hit_rate(GALENE_PAPER_CACHED, GALENE_PAPER_KEYS, x), 0);
        double hottest = hottest_of(run, x);
        struct galene_load base = base_of(hottest, 0, 1);
        figure_add(run, x, mreq(&base, &galene_paper_sizes), "base by sums");
        figure_add(run, x, galene_uniform_throughput(&m) / MILLION, "uniform by equation 3.5");
        figure_add(run, x, galene_throughput(&m) / MILLION, "ccKVS by equation 3.3");
        figure_add(run, x, galene_throughput(&exact) / MILLION, "ccKVS by 3.3 with computed hits");
        figure_add(run, x, hottest * GALENE_PAPER_NODES, "= hottest of 9 servers over the mean");
    }
}

void galene_curves_breakdown(struct figure_run *run)
{
    for (size_t e = 0; e < EXPONENTS; e++) {
        struct galene_model m = model_of(galene_paper_hit_rate(exponents[e]), 0);
        double all = galene_throughput(&m) / MILLION;
        figure_add(run, exponents[e], all * m.hit_rate, "hits by equation 3.3");
        figure_add(run, exponents[e], all * (1 - m.hit_rate), "misses by equation 3.3");
        figure_add(run, exponents[e], galene_uniform_throughput(&m) / MILLION,
                   "uniform by equation 3.5");
    }
}

void galene_curves_writes(struct figure_run *run)
{
    static const double percent[] = {0, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 7, 10};
    double hottest = hottest_of(run, 0.99);
    struct galene_model m;
    struct galene_load base;
    for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
        m = model_of(galene_paper_hit_rate(0.99), percent[i]);
        base = base_of(hottest, percent[i], 1);
        figure_add(run, percent[i], mreq(&base, &galene_paper_sizes), "base by sums");
        figure_add(run, percent[i], galene_uniform_throughput(&m) / MILLION,
                   "uniform by equation 3.5");
        figure_add(run, percent[i], galene_throughput(&m) / MILLION, "ccKVS by equation 3.3");
    }
    base = base_of(hottest, 0, 1);
    figure_add(run, 0, PERCENT * galene_break_even(&m), "= writes (%%) that make ccKVS uniform");
    figure_add(run, 0, PERCENT * galene_writes_at(&m, MILLION * mreq(&base, &galene_paper_sizes)),
               "= writes (%%) that make ccKVS base");
}

void galene_curves_traffic(struct figure_run *run)
{
    static const double percent[] = {0, 0.2, 1, 2, 5};
    for (size_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
        struct galene_load load = cache_of(percent[i], 1);
        struct galene_passes p = galene_out(&load, &galene_paper_sizes);
        double all = galene_bytes(&p) / PERCENT;
        figure_add(run, percent[i], (p.miss_headers + p.miss_payload) / all, "misses by sums");
        figure_add(run, percent[i], p.inv / all, "invalidations by sums");
        figure_add(run, percent[i], p.ack / all, "acknowledgements by sums");
        figure_add(run, percent[i], p.upd / all, "updates by sums");
    }
}

static void by_size(struct figure_run *run, bool full)
{
    static const double percent[] = {0, 1};
    double hottest = hottest_of(run, 0.99);
    for (size_t w = 0; w < 2; w++) {
        for (size_t i = 0; i < SIZES; i++) {
            struct galene_sizes s = galene_paper_sizes;
            s.value = sizes[i];
            double coalesced = full ? GALENE_PAPER_PACKET_BYTES / (s.value + s.key) : 1;
            struct galene_load base = base_of(hottest, percent[w], coalesced);
            struct galene_load cache = cache_of(percent[w], coalesced);
            figure_add(run, sizes[i], mreq(&base, &s), "base by sums %.0f%%", percent[w]);
            figure_add(run, sizes[i], mreq(&cache, &s), "ccKVS by sums %.0f%%", percent[w]);
        }
    }
}

void galene_curves_sizes(struct figure_run *run)
{
    by_size(run, false);
}

/* What full packets allow: an upper bound of coalescing. */
void galene_curves_coalesced(struct figure_run *run)
{
    by_size(run, true);
}

void galene_curves_packets(struct figure_run *run)
{
    double hottest = hottest_of(run, 0.99);
    for (uint32_t coalesced = 1; coalesced <= 64; coalesced *= 2) {
        struct galene_load base = base_of(hottest, 0, coalesced);
        struct galene_load cache = cache_of(0, coalesced);
        struct galene_load writes = cache_of(1, coalesced);
        struct galene_passes p = galene_out(&cache, &galene_paper_sizes);
        double rate = mreq(&cache, &galene_paper_sizes);
        figure_add(run, coalesced, mreq(&base, &galene_paper_sizes), "base by sums 0%%");
        figure_add(run, coalesced, rate, "ccKVS by sums 0%%");
        figure_add(run, coalesced, mreq(&writes, &galene_paper_sizes), "ccKVS by sums 1%%");
        figure_add(run, coalesced, rate * MILLION * p.miss_headers * 8e-9,
                   "= headers (Gb/s) of ccKVS by sums 0%%");
        figure_add(run, coalesced, rate * MILLION * p.miss_payload * 8e-9,
                   "= payload (Gb/s) of ccKVS by sums 0%%");
    }
}

void figure_servers(struct figure_run *run)
{
    static const double percent[] = {0, 0.2, 1, 5};
    static const uint32_t nodes[] = {2, 3, 5, 9, 16, 32, 48, 64, 96, 128, 192, 256};
    snprintf(run->note, sizeof run->note,
             "Equations 3.3 and 3.5, 65 %% hits, 40 B values, 21.5 Gb/s.");
    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        struct galene_model m;
        for (size_t w = 0; w < sizeof percent / sizeof percent[0]; w++) {
            m = model_of(galene_paper_hit_rate(0.99), percent[w]);
            m.nodes = nodes[i];
            figure_add(run, nodes[i], galene_throughput(&m) / MILLION, "ccKVS %g%%", percent[w]);
        }
        figure_add(run, nodes[i], galene_uniform_throughput(&m) / MILLION, "uniform");
        figure_add(run, nodes[i], PERCENT * galene_break_even(&m),
                   "= writes (%%) that make ccKVS uniform");
    }
}
