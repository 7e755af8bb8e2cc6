/* Thesis figures 4.7a, 4.7b and 4.7c: latency. */
#include <string.h>

#include "tools/figures.h"

#define MILLION 1e6

static double percentile_us(const struct histogram *h, uint32_t parts)
{
    return (double)histogram_percentile(h, parts) / 1000;
}

/* A curve's y at x between two of its neighbouring points; false: x is outside of it. */
static bool between_points(const struct figure_run *run, const char *series, double x,
                           double *y_out)
{
    const struct figure_point *before = NULL;
    for (size_t i = 0; i < run->points_n; i++) {
        const struct figure_point *p = &run->points[i];
        if (strcmp(p->series, series) != 0) {
            continue;
        }
        if (before != NULL && before->x <= x && x <= p->x && before->x < p->x) {
            *y_out = before->y + (p->y - before->y) * (x - before->x) / (p->x - before->x);
            return true;
        }
        before = p;
    }
    return false;
}

/* The thesis compares tails at the same throughput: over all points of the engine that lie on
 * Hermes' curve, the least that its tail is longer. */
static void add_least_tail(struct figure_run *run, const char *name)
{
    char series[FIGURE_SERIES_BYTES];
    double least = 0;
    snprintf(series, sizeof series, "%s 99th", name);
    for (size_t i = 0; i < run->points_n; i++) {
        double hermes;
        if (strcmp(run->points[i].series, series) == 0 &&
            between_points(run, "hermes 99th", run->points[i].x, &hermes) &&
            (least <= 0 || run->points[i].y / hermes < least)) {
            least = run->points[i].y / hermes;
        }
    }
    if (least > 0) {
        figure_add(run, 0, least, "= %s over hermes, least 99th", name);
    }
}

void figure_latency_load(struct figure_run *run)
{
    static const uint32_t windows[] = {1, 2, 4, 8, 12, 16, 24, 32, 50};
    const struct engine_ops *engine;
    for (uint32_t e = 0; (engine = engines_at(e)) != NULL; e++) {
        struct figure_wish wish = {.machine = &cost_infiniband, .engine = engine, .nodes = 7};
        if ((engine->traits & (ENGINE_OWNED | ENGINE_TABLES)) != 0) {
            continue; /* chapter 5 has figures of its own */
        }
        struct figure_cluster cluster;
        if (!figure_open(run, &wish, &cluster)) {
            return;
        }
        for (uint32_t i = 0; i < sizeof windows / sizeof windows[0]; i++) {
            static struct cost_result r;
            figure_progress(run, "%s, %u in flight a worker", engine->name, windows[i]);
            figure_play(&cluster, (struct cost_load){.writes_ppm = 50000, .window = windows[i]},
                        &r);
            histogram_merge(&r.read, &r.write);
            figure_add(run, r.ops_per_s / MILLION, percentile_us(&r.read, 500000), "%s median",
                       engine->name);
            figure_add(run, r.ops_per_s / MILLION, percentile_us(&r.read, 990000), "%s 99th",
                       engine->name);
            if (windows[i] == windows[sizeof windows / sizeof windows[0] - 1]) {
                figure_add(run, 0, percentile_us(&r.read, 990000), "= %s 99th at peak",
                           engine->name);
                figure_add(run, 0, percentile_us(&r.read, 500000), "= %s median at peak",
                           engine->name);
            }
            if (i == 0) {
                figure_add(run, 0, percentile_us(&r.read, 990000), "= %s 99th at lowest load",
                           engine->name);
            }
        }
        figure_close(&cluster);
    }
    add_least_tail(run, "craq");
    add_least_tail(run, "zab");
}

static void add_latencies(struct figure_run *run, const char *name, double writes,
                          const struct cost_result *r)
{
    figure_add(run, writes, percentile_us(&r->read, 500000), "%s read median", name);
    figure_add(run, writes, percentile_us(&r->read, 990000), "%s read 99th", name);
    figure_add(run, writes, percentile_us(&r->write, 500000), "%s write median", name);
    figure_add(run, writes, percentile_us(&r->write, 990000), "%s write 99th", name);
    figure_add(run, writes, r->ops_per_s / MILLION, "= %s MReq/s", name);
}

/* The smallest window whose throughput comes up to the wanted one; the largest if none does. */
static void play_at(struct figure_cluster *cluster, struct cost_load load, double ops_per_s,
                    struct cost_result *result_out)
{
    uint32_t low = 1;
    uint32_t high = cluster->machine.window;
    while (low < high) {
        load.window = (low + high) / 2;
        figure_play(cluster, load, result_out);
        if (result_out->ops_per_s < ops_per_s) {
            low = load.window + 1;
        } else {
            high = load.window;
        }
    }
    load.window = low;
    figure_play(cluster, load, result_out);
}

/* The thesis compares both where CRAQ has its peak; without CRAQ, Hermes at 70 % of its own. */
static void at_craqs_peak(struct figure_run *run, double exponent)
{
    static const double writes[] = {1, 5, 20, 50, 100};
    const struct engine_ops *craq = engines_find("craq");
    struct figure_wish wish = {
        .machine = &cost_infiniband, .engine = engines_find("hermes"), .nodes = 7};
    struct figure_cluster ours;
    struct figure_cluster theirs;
    static struct cost_result r;
    if (!figure_open(run, &wish, &ours)) {
        return;
    }
    wish.engine = craq;
    if (craq != NULL && !figure_open(run, &wish, &theirs)) {
        figure_close(&ours);
        return;
    }
    for (uint32_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        struct cost_load load = {.writes_ppm = (uint32_t)(writes[i] * 10000), .exponent = exponent};
        double peak;
        figure_progress(run, "%.0f %% writes", writes[i]);
        if (craq != NULL) {
            figure_play(&theirs, load, &r);
            peak = r.ops_per_s;
            add_latencies(run, "craq", writes[i], &r);
        } else {
            figure_play(&ours, load, &r);
            peak = 0.7 * r.ops_per_s;
        }
        play_at(&ours, load, peak, &r);
        add_latencies(run, "hermes", writes[i], &r);
    }
    if (craq != NULL) {
        figure_close(&theirs);
    } else {
        snprintf(run->note, sizeof run->note,
                 "Without CRAQ: Hermes at 70 %% of its own peak throughput.");
    }
    figure_close(&ours);
}

void figure_latency_uniform(struct figure_run *run)
{
    at_craqs_peak(run, 0);
}

void figure_latency_skew(struct figure_run *run)
{
    at_craqs_peak(run, 0.99);
}
