/* Thesis figures 4.5, 4.6, 4.8, 4.9 and 4.10: throughput. */
#include "tools/figures.h"

#define MILLION 1e6

static const double ratios[] = {0, 1, 2, 5, 10, 20, 50, 75, 100};
#define RATIOS (sizeof ratios / sizeof ratios[0])

/* The i-th engine that keeps every key on all nodes: those that chapter 4 compares. */
static const struct engine_ops *replicated(uint32_t i)
{
    const struct engine_ops *engine;
    for (uint32_t e = 0; (engine = engines_at(e)) != NULL; e++) {
        if ((engine->traits & (ENGINE_HOMED | ENGINE_OWNED | ENGINE_TABLES)) == 0 && i-- == 0) {
            break;
        }
    }
    return engine;
}

static uint32_t ppm(double percent)
{
    return (uint32_t)(percent * 10000 + 0.5);
}

static void by_ratio(struct figure_run *run, double exponent)
{
    const struct engine_ops *engine;
    for (uint32_t e = 0; (engine = replicated(e)) != NULL; e++) {
        struct figure_wish wish = {.machine = &cost_infiniband, .engine = engine, .nodes = 7};
        struct figure_cluster cluster;
        figure_progress(run, "%s, filling 7 stores", engine->name);
        if (!figure_open(run, &wish, &cluster)) {
            return;
        }
        for (size_t i = 0; i < RATIOS; i++) {
            static struct cost_result r;
            figure_progress(run, "%s, %.0f %% writes", engine->name, ratios[i]);
            figure_play(&cluster,
                        (struct cost_load){.writes_ppm = ppm(ratios[i]), .exponent = exponent}, &r);
            figure_add(run, ratios[i], r.ops_per_s / MILLION, "%s", engine->name);
            figure_add(run, ratios[i], 100 * r.cpu_busy, "= %s workers busy (%%)", engine->name);
            figure_add(run, ratios[i], 100 * r.cpu_busy_most, "= %s busiest worker (%%)",
                       engine->name);
            figure_add(run, ratios[i], 100 * r.wire_busy_most, "= %s network busy (%%)",
                       engine->name);
            if (r.packets > 0) {
                figure_add(run, ratios[i], (double)r.messages / (double)r.packets,
                           "= %s messages a packet", engine->name);
            }
        }
        figure_close(&cluster);
    }
}

void figure_uniform(struct figure_run *run)
{
    by_ratio(run, 0);
}

void figure_skew(struct figure_run *run)
{
    by_ratio(run, 0.99);
}

void figure_scaling(struct figure_run *run)
{
    static const uint32_t nodes[] = {3, 5, 7};
    static const double writes[] = {1, 20};
    const struct engine_ops *engine;
    for (uint32_t e = 0; (engine = replicated(e)) != NULL; e++) {
        for (uint32_t i = 0; i < 3; i++) {
            struct figure_wish wish = {
                .machine = &cost_infiniband, .engine = engine, .nodes = nodes[i]};
            struct figure_cluster cluster;
            figure_progress(run, "%s, %u nodes", engine->name, nodes[i]);
            if (!figure_open(run, &wish, &cluster)) {
                return;
            }
            for (uint32_t k = 0; k < 2; k++) {
                static struct cost_result r;
                figure_play(&cluster, (struct cost_load){.writes_ppm = ppm(writes[k])}, &r);
                figure_add(run, nodes[i], r.ops_per_s / MILLION, "%s %.0f%%", engine->name,
                           writes[k]);
            }
            figure_close(&cluster);
        }
    }
}

/* One point of figure 4.9. */
static void size_point(struct figure_run *run, const struct engine_ops *engine, bool lockstep,
                       uint32_t bytes)
{
    struct figure_wish wish = {.machine = &cost_infiniband,
                               .engine = engine,
                               .nodes = 5,
                               .value_bytes = bytes,
                               .lockstep = lockstep,
                               .single = true};
    struct figure_cluster cluster;
    static struct cost_result r;
    figure_progress(run, "%s, %u bytes", engine->name, bytes);
    if (figure_open(run, &wish, &cluster)) {
        figure_play(&cluster, (struct cost_load){.writes_ppm = 1000000}, &r);
        figure_add(run, bytes, r.ops_per_s / MILLION, "%s%s", engine->name,
                   lockstep ? "-lockstep" : "");
        figure_close(&cluster);
    }
}

void figure_sizes(struct figure_run *run)
{
    const struct engine_ops *zab = engines_find("zab");
    const struct engine_ops *engine;
    snprintf(run->note, sizeof run->note,
             "zab-lockstep, total order in rounds of all members, stands in for Derecho.");
    for (uint32_t bytes = 32; bytes <= 1024; bytes *= 2) {
        for (uint32_t e = 0; (engine = replicated(e)) != NULL; e++) {
            size_point(run, engine, false, bytes);
        }
        if (zab != NULL) {
            size_point(run, zab, true, bytes);
        }
    }
}

/* Frames are held back at random, as if they had been lost and sent again: of the dozen that carry
 * a write's INVs and ACKs among seven nodes, one in 8000 delays 1.5 writes of a thousand, that is
 * the 99.9th percentile. */
#define TAIL_FRAMES_PPM 125u

void figure_tail(struct figure_run *run)
{
    static const double writes[] = {1, 5, 20};
    static const double delays_us[] = {0, 50, 100, 200, 500, 1000};
    struct figure_wish wish = {
        .machine = &cost_infiniband, .engine = engines_find("hermes"), .nodes = 7, .workers = 4};
    struct figure_cluster cluster;
    snprintf(run->note, sizeof run->note,
             "4 of 40 workers a node are played, the network in proportion.");
    if (!figure_open(run, &wish, &cluster)) {
        return;
    }
    for (uint32_t i = 0; i < 3; i++) {
        for (uint32_t k = 0; k < sizeof delays_us / sizeof delays_us[0]; k++) {
            static struct cost_result r;
            struct cost_load load = {.writes_ppm = ppm(writes[i]),
                                     .delays_ppm = delays_us[k] > 0 ? TAIL_FRAMES_PPM : 0,
                                     .delay_ns = (uint64_t)(1000 * delays_us[k])};
            if (!run->options->quick) {
                load.warm_ns = 2000000;
                load.run_ns = 5000000;
            }
            figure_progress(run, "%.0f %% writes, %.0f us", writes[i], delays_us[k]);
            figure_play(&cluster, load, &r);
            figure_add(run, delays_us[k], r.ops_per_s / MILLION, "hermes %.0f%%", writes[i]);
            figure_add(run, delays_us[k], (double)histogram_percentile(&r.write, 999000) / 1000,
                       "= p99.9 of writes at %.0f%% (us)", writes[i]);
        }
    }
    figure_close(&cluster);
}
