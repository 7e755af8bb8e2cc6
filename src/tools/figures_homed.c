/* Thesis figures 3.8 to 3.13: nine nodes whose keys have homes, played by the cost model beside the
 * analytical model's curves. docs/COST_MODEL.md says how 250 M keys are scaled down. */
#include "engine/galene/galene.h"
#include "engine/galene/messages.h"
#include "sim/galene_model.h"
#include "tools/figures.h"
#include "tools/figures_galene.h"
#include "wire/frame.h"

#define MILLION 1e6
#define PERCENT 100

/* 100,000 keys stand for 250 M: the 256 most popular ones for themselves, 768 for what else the
 * thesis' cache holds, the others for the rest. */
#define KEYS 100000u
#define HOT_KEYS 1024u
#define WHOLE 256u
/* Workers of 40 that are played, the network in proportion: each worker speaks with one at every
 * other node, so what they make of a packet does not depend on their number. Only Base-EREW needs
 * all, for its hottest worker is what limits it. */
#define WORKERS 8u
/* ccKVS' clients wait until they can begin so many requests at once. */
#define BATCH 16u
#define EPOCH_US 5000u
#define EPOCHS_MAX 16u
#define QUICK_EPOCHS_MAX 4u
#define SETTLED 0.003

enum homed_mode { HOMED_CACHE, HOMED_BASE, HOMED_EREW };

struct homed_wish {
    enum homed_mode mode;
    double exponent; /* 0: uniform */
    bool coalesced;
    uint32_t value_bytes;
};

struct homed {
    struct figure_cluster cluster;
    double exponent;
    struct keys_fold fold;
    struct cost_result result;
};

static uint32_t ppm(double percent)
{
    return (uint32_t)(percent * 10000 + 0.5);
}

static double hit_share(const struct cost_result *r)
{
    double all = (double)(r->node.hits + r->node.at_home + r->node.misses);
    return all > 0 ? (double)r->node.hits / all : 0;
}

/* The hot set comes from the nodes' own counting: the load runs, reads only, until its part of the
 * operations stays what it was an epoch before. */
static void settle(struct homed *h)
{
    double before = -1;
    struct cost_load load = {.exponent = h->exponent,
                             .fold = h->fold,
                             .batch = BATCH,
                             .run_ns = 1000 * (uint64_t)EPOCH_US,
                             .slice_ns = 1000 * (uint64_t)EPOCH_US};
    uint32_t most = h->cluster.run->options->quick ? QUICK_EPOCHS_MAX : EPOCHS_MAX;
    for (uint32_t i = 0; i < most; i++) {
        figure_play(&h->cluster, load, &h->result);
        double share = hit_share(&h->result);
        if (share > 0 && share - before < SETTLED && before - share < SETTLED) {
            return;
        }
        before = share;
    }
}

static bool open_homed(struct figure_run *run, const struct homed_wish *wish, struct homed *h)
{
    struct figure_wish cluster = {
        .machine = &cost_infiniband,
        .engine = &galene_ops,
        .nodes = GALENE_PAPER_NODES,
        .workers = wish->mode == HOMED_EREW ? 0 : WORKERS,
        .value_bytes = wish->value_bytes,
        .keys = KEYS,
        .hot = {.off = wish->mode != HOMED_CACHE,
                .exclusive = wish->mode == HOMED_EREW,
                .cache_keys = HOT_KEYS,
                .epoch_us = EPOCH_US,
                .sample = 1},
        .frame_messages_max = wish->coalesced ? 0 : 1,
    };
    static const char *const names[] = {
        [HOMED_CACHE] = "ccKVS", [HOMED_BASE] = "base", [HOMED_EREW] = "base-erew"};
    h->exponent = wish->exponent;
    h->fold = (struct keys_fold){.ranks = 0};
    if (wish->exponent > 0) {
        h->fold = (struct keys_fold){.ranks = GALENE_PAPER_KEYS,
                                     .whole = WHOLE,
                                     .hot = galene_paper_cached(wish->exponent),
                                     .hot_keys = HOT_KEYS};
    }
    figure_progress(run, "%s, exponent %.2f, %u bytes", names[wish->mode], wish->exponent,
                    wish->value_bytes);
    if (!figure_open(run, &cluster, &h->cluster)) {
        return false;
    }
    if (wish->mode == HOMED_CACHE) {
        settle(h);
    }
    return true;
}

static double play(struct homed *h, double percent, uint32_t window)
{
    struct cost_load load = {.writes_ppm = ppm(percent),
                             .exponent = h->exponent,
                             .fold = h->fold,
                             .window = window,
                             .batch = window > 0 && window < BATCH ? window : BATCH};
    figure_play(&h->cluster, load, &h->result);
    return h->result.ops_per_s / MILLION;
}

/* One point of a cluster made for it alone. */
static bool point(struct figure_run *run, const struct homed_wish *wish, double percent,
                  struct homed *h)
{
    if (!open_homed(run, wish, h)) {
        return false;
    }
    (void)play(h, percent, 0);
    figure_close(&h->cluster);
    return true;
}

static void add_busy(struct figure_run *run, double x, const struct homed *h, const char *name)
{
    const struct cost_result *r = &h->result;
    figure_add(run, x, PERCENT * r->cpu_busy, "= %s workers busy (%%)", name);
    figure_add(run, x, PERCENT * r->cpu_busy_most, "= %s busiest worker (%%)", name);
    figure_add(run, x, PERCENT * r->wire_busy_most, "= %s network busy (%%)", name);
    figure_add(run, x, (double)r->bytes / (double)r->packets, "= %s bytes a packet", name);
    figure_add(run, x, (double)r->messages / (double)r->packets, "= %s messages a packet", name);
}

static const struct {
    enum homed_mode mode;
    const char *name;
} modes[] = {{HOMED_EREW, "base-erew"}, {HOMED_BASE, "base"}, {HOMED_CACHE, "ccKVS"}};
/* The last two are left out of quick figures. */
static const double exponents[] = {0.99, 0.90, 1.01};

static uint32_t exponents_of(const struct figure_run *run)
{
    return run->options->quick ? 1 : 3;
}

void figure_homed_reads(struct figure_run *run)
{
    static struct homed h;
    galene_curves_read_only(run);
    for (uint32_t m = 0; m < 3; m++) {
        for (uint32_t e = 0; e < exponents_of(run); e++) {
            struct homed_wish wish = {
                .mode = modes[m].mode, .exponent = exponents[e], .value_bytes = 40};
            if (!point(run, &wish, 0, &h)) {
                return;
            }
            figure_add(run, exponents[e], h.result.ops_per_s / MILLION, "%s", modes[m].name);
            add_busy(run, exponents[e], &h, modes[m].name);
            if (modes[m].mode == HOMED_CACHE) {
                figure_add(run, exponents[e], PERCENT * hit_share(&h.result), "= ccKVS hits (%%)");
            }
        }
    }
    struct homed_wish uniform = {.mode = HOMED_BASE, .value_bytes = 40};
    if (!point(run, &uniform, 0, &h)) {
        return;
    }
    for (uint32_t e = 0; e < exponents_of(run); e++) {
        figure_add(run, exponents[e], h.result.ops_per_s / MILLION, "uniform");
    }
    add_busy(run, 0, &h, "uniform");
}

void figure_homed_breakdown(struct figure_run *run)
{
    static struct homed h;
    galene_curves_breakdown(run);
    for (uint32_t e = 0; e < exponents_of(run); e++) {
        struct homed_wish wish = {.mode = HOMED_CACHE, .exponent = exponents[e], .value_bytes = 40};
        if (!point(run, &wish, 0, &h)) {
            return;
        }
        double all = h.result.ops_per_s / MILLION;
        figure_add(run, exponents[e], all * hit_share(&h.result), "hits");
        figure_add(run, exponents[e], all * (1 - hit_share(&h.result)), "misses");
    }
    struct homed_wish uniform = {.mode = HOMED_BASE, .value_bytes = 40};
    for (uint32_t e = 0; e < exponents_of(run) && (e > 0 || point(run, &uniform, 0, &h)); e++) {
        figure_add(run, exponents[e], h.result.ops_per_s / MILLION, "uniform");
    }
}

void figure_homed_writes(struct figure_run *run)
{
    static const double percent[] = {0, 0.2, 1, 2, 3, 5};
    static struct homed h;
    galene_curves_writes(run);
    for (uint32_t m = 0; m < 3; m++) {
        struct homed_wish wish = {.mode = modes[m].mode, .exponent = 0.99, .value_bytes = 40};
        if (!open_homed(run, &wish, &h)) {
            return;
        }
        for (uint32_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
            /* What is not cached takes the same traffic whatever it does. */
            if (wish.mode != HOMED_CACHE && percent[i] > 0 && percent[i] < 5) {
                continue;
            }
            figure_progress(run, "%s, %.1f %% writes", modes[m].name, percent[i]);
            figure_add(run, percent[i], play(&h, percent[i], 0), "%s", modes[m].name);
            add_busy(run, percent[i], &h, modes[m].name);
        }
        figure_close(&h.cluster);
    }
}

/* Each message travels in a frame and a packet of its own, whose headers are its own as well. */
static double travelled(uint64_t messages, uint64_t bytes)
{
    double heads = FRAME_HEADER + cost_infiniband.wire.packet_header_bytes;
    return (double)bytes + (double)messages * heads;
}

static void add_traffic(struct figure_run *run, double x, const struct homed *h)
{
    const struct node_stats *s = &h->result.node;
    double inv = travelled(s->homed_messages[GALENE_INV], s->homed_bytes[GALENE_INV]);
    double ack = travelled(s->homed_messages[GALENE_ACK], s->homed_bytes[GALENE_ACK]);
    double upd = travelled(s->homed_messages[GALENE_UPD], s->homed_bytes[GALENE_UPD]);
    double misses =
        travelled(s->call_messages + s->answer_messages, s->call_bytes + s->answer_bytes);
    double all = travelled(s->frames_out, s->bytes_out - s->frames_out * FRAME_HEADER) / PERCENT;
    figure_add(run, x, misses / all, "misses");
    figure_add(run, x, inv / all, "invalidations");
    figure_add(run, x, ack / all, "acknowledgements");
    figure_add(run, x, upd / all, "updates");
    figure_add(run, x, PERCENT - (misses + inv + ack + upd) / all, "= all else");
}

void figure_homed_traffic(struct figure_run *run)
{
    static const double percent[] = {0, 0.2, 1, 2, 5};
    static struct homed h;
    struct homed_wish wish = {.mode = HOMED_CACHE, .exponent = 0.99, .value_bytes = 40};
    galene_curves_traffic(run);
    if (!open_homed(run, &wish, &h)) {
        return;
    }
    for (uint32_t i = 0; i < sizeof percent / sizeof percent[0]; i++) {
        (void)play(&h, percent[i], 0);
        add_traffic(run, percent[i], &h);
    }
    figure_close(&h.cluster);
}

/* ---- Sizes, coalescing, latency ---- */

static const uint32_t sizes[] = {40, 256, 1024};
#define SIZES (sizeof sizes / sizeof sizes[0])

static void by_size(struct figure_run *run, bool coalesced)
{
    static struct homed h;
    for (uint32_t m = 1; m < 3; m++) {
        for (uint32_t i = 0; i < SIZES; i++) {
            struct homed_wish wish = {.mode = modes[m].mode,
                                      .exponent = 0.99,
                                      .coalesced = coalesced,
                                      .value_bytes = sizes[i]};
            if (!open_homed(run, &wish, &h)) {
                return;
            }
            for (uint32_t percent = 0; percent <= 1; percent++) {
                figure_add(run, sizes[i], play(&h, percent, 0), "%s %u%%", modes[m].name, percent);
                add_busy(run, sizes[i], &h, percent == 0 ? modes[m].name : "1%");
            }
            figure_close(&h.cluster);
        }
    }
}

void figure_homed_sizes(struct figure_run *run)
{
    galene_curves_sizes(run);
    by_size(run, false);
}

/* What the network of a node carries with and without coalescing; the sums beside it show what
 * other numbers of requests a packet would do. */
void figure_homed_packets(struct figure_run *run)
{
    static struct homed h;
    galene_curves_packets(run);
    for (uint32_t coalesced = 0; coalesced <= 1; coalesced++) {
        struct homed_wish wish = {
            .mode = HOMED_CACHE, .exponent = 0.99, .coalesced = coalesced == 1, .value_bytes = 40};
        if (!point(run, &wish, 0, &h)) {
            return;
        }
        const struct cost_result *r = &h.result;
        double x = (double)r->messages / (double)r->packets;
        double node = h.cluster.scale / (r->seconds * GALENE_PAPER_NODES) * 8e-9;
        double heads = (double)r->packets * cost_infiniband.wire.packet_header_bytes;
        figure_add(run, x, r->ops_per_s / MILLION, "ccKVS");
        figure_add(run, coalesced, x, "= ccKVS messages a packet");
        figure_add(run, coalesced, node * heads, "= ccKVS packet headers (Gb/s)");
        figure_add(run, coalesced, node * (double)r->bytes, "= ccKVS network (Gb/s)");
        figure_add(run, coalesced, node * (double)(r->node.frames_out * FRAME_HEADER),
                   "= ccKVS frame headers (Gb/s)");
    }
}

void figure_homed_coalesced(struct figure_run *run)
{
    galene_curves_coalesced(run);
    by_size(run, true);
}

static void add_latencies(struct figure_run *run, const struct homed *h, double percent)
{
    static struct histogram all;
    histogram_init(&all);
    histogram_merge(&all, &h->result.read);
    histogram_merge(&all, &h->result.write);
    double x = h->result.ops_per_s / MILLION;
    figure_add(run, x, histogram_mean(&all) / 1000, "average %.0f%%", percent);
    figure_add(run, x, (double)histogram_percentile(&all, 950000) / 1000, "95th %.0f%%", percent);
}

void figure_homed_latency(struct figure_run *run)
{
    static const uint32_t windows[] = {1, 2, 5, 10, 20, 50};
    static struct homed h;
    struct homed_wish wish = {
        .mode = HOMED_CACHE, .exponent = 0.99, .coalesced = true, .value_bytes = 40};
    if (!open_homed(run, &wish, &h)) {
        return;
    }
    for (uint32_t percent = 0; percent <= 1; percent++) {
        for (uint32_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
            figure_progress(run, "%u %% writes, %u in flight", percent, windows[i]);
            (void)play(&h, percent, windows[i]);
            add_latencies(run, &h, percent);
        }
        double most =
            (double)histogram_percentile(percent == 0 ? &h.result.read : &h.result.write, 950000);
        figure_add(run, percent, most / 1000, "= 95th of %s at full load (us)",
                   percent == 0 ? "reads" : "writes");
    }
    figure_close(&h.cluster);
}
