/* Thesis figures 4.12 (a crash), 4.13 and 4.14 (reads without loosely synchronized clocks). */
#include "tools/figures.h"

#define MILLION 1e6
#define MS 1000000u
#define LEASE_US 150000u

static void add_slices(struct figure_run *run, const struct cost_result *r, double scale,
                       double from_ms, double slice_ms, double writes)
{
    for (uint32_t i = 0; i < r->slices_n; i++) {
        figure_add(run, from_ms + (i + 0.5) * slice_ms,
                   (double)r->slices[i] * scale / (slice_ms * 1e-3) / MILLION, "hermes %.0f%%",
                   writes);
    }
}

/* How long nothing ended after the crash, and what is served before and afterwards. */
static void add_outage(struct figure_run *run, const struct cost_result *before,
                       const struct cost_result *after, double slice_ms, double writes)
{
    double rate_before = (double)(before->reads + before->writes) / before->seconds;
    double per_slice = rate_before * slice_ms * 1e-3;
    uint32_t quiet = 0;
    uint32_t last = 0;
    for (uint32_t i = 0; i < after->slices_n; i++) {
        if ((double)after->slices[i] < 0.05 * per_slice) {
            quiet++;
            last = i;
        }
    }
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = last + 2; i + 1 < after->slices_n; i++) {
        sum += (double)after->slices[i];
        n++;
    }
    figure_add(run, writes, quiet * slice_ms, "= outage (ms)");
    figure_add(run, writes, n == 0 ? 0 : sum / n / per_slice, "= throughput after over before");
}

void figure_crash(struct figure_run *run)
{
    static const double writes[] = {1, 5, 20};
    bool quick = run->options->quick;
    uint64_t slice_ms = 5;
    snprintf(run->note, sizeof run->note,
             "2 of 40 workers a node are played, the network in proportion; the crash is at 0 ms.");
    for (uint32_t i = 0; i < 3; i++) {
        struct figure_wish wish = {.machine = &cost_infiniband,
                                   .engine = engines_find("hermes"),
                                   .nodes = 5,
                                   .workers = 2,
                                   .lease_us = LEASE_US};
        struct figure_cluster cluster;
        static struct cost_result before;
        static struct cost_result after;
        struct cost_load load = {.writes_ppm = (uint32_t)(writes[i] * 10000),
                                 .window = quick ? 2 : 0,
                                 .slice_ns = slice_ms * MS};
        figure_progress(run, "%.0f %% writes", writes[i]);
        if (!figure_open(run, &wish, &cluster)) {
            return;
        }
        load.warm_ns = MS;
        load.run_ns = (quick ? 5 : 50) * (uint64_t)MS;
        figure_play(&cluster, load, &before);
        add_slices(run, &before, cluster.scale, quick ? -5 : -50, (double)slice_ms, writes[i]);
        cost_cluster_crash(cluster.cluster, 4);
        load.warm_ns = 0;
        load.run_ns = (quick ? 200 : 250) * (uint64_t)MS;
        figure_play(&cluster, load, &after);
        add_slices(run, &after, cluster.scale, 0, (double)slice_ms, writes[i]);
        add_outage(run, &before, &after, (double)slice_ms, writes[i]);
        figure_close(&cluster);
    }
}

/* Requests in flight a worker where reads wait for a round trip. */
#define WINDOW_MANY 200u

static void async_cluster(struct figure_run *run, bool async,
                          void (*play)(struct figure_run *, struct figure_cluster *, const char *))
{
    struct figure_wish wish = {.machine = &cost_cloudlab,
                               .engine = engines_find("hermes"),
                               .nodes = 5,
                               .window_most = WINDOW_MANY,
                               .async_reads = async};
    struct figure_cluster cluster;
    if (figure_open(run, &wish, &cluster)) {
        play(run, &cluster, async ? "hermes-async" : "hermes");
        figure_close(&cluster);
    }
}

static void play_writes(struct figure_run *run, struct figure_cluster *cluster, const char *name)
{
    static const double writes[] = {1, 2, 5, 10, 20, 50, 100};
    static struct cost_result r;
    for (uint32_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        struct cost_load load = {.writes_ppm = (uint32_t)(writes[i] * 10000),
                                 .window = cluster->machine.window};
        figure_progress(run, "%s, %.0f %% writes", name, writes[i]);
        figure_play(cluster, load, &r);
        figure_add(run, writes[i], r.ops_per_s / MILLION, "%s", name);
        figure_add(run, writes[i], (double)r.messages / (double)(r.reads + r.writes),
                   "= %s messages an operation", name);
        figure_add(run, writes[i], 100 * r.cpu_busy, "= %s workers busy (%%)", name);
        load.window = WINDOW_MANY;
        figure_play(cluster, load, &r);
        figure_add(run, writes[i], r.ops_per_s / MILLION, "%s, %u in flight", name, WINDOW_MANY);
    }
}

void figure_async_writes(struct figure_run *run)
{
    snprintf(run->note, sizeof run->note,
             "With 50 requests in flight a worker as everywhere, and with %u: where reads wait "
             "for a round trip, that is what limits them.",
             WINDOW_MANY);
    async_cluster(run, false, play_writes);
    async_cluster(run, true, play_writes);
}

static void play_load(struct figure_run *run, struct figure_cluster *cluster, const char *name)
{
    static const uint32_t windows[] = {1, 2, 4, 8, 16, 32, 50, 100, 200};
    static struct cost_result r;
    for (uint32_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
        figure_progress(run, "%s, %u in flight a worker", name, windows[i]);
        figure_play(cluster, (struct cost_load){.writes_ppm = 20000, .window = windows[i]}, &r);
        double mean_us = histogram_mean(&r.read) / 1000;
        figure_add(run, r.ops_per_s / MILLION, mean_us, "%s average", name);
        figure_add(run, r.ops_per_s / MILLION, (double)histogram_percentile(&r.read, 990000) / 1000,
                   "%s 99th", name);
        if (i + 1 == sizeof windows / sizeof windows[0]) {
            figure_add(run, 0, mean_us, "= %s average at peak", name);
        }
    }
}

void figure_async_load(struct figure_run *run)
{
    async_cluster(run, false, play_load);
    async_cluster(run, true, play_load);
}
