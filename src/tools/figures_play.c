/* Clusters of the cost model, as figures want them. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "tools/figures.h"

#define KEYS 1000000u
#define QUICK_KEYS 20000u
#define QUICK_WORKERS 4u
#define WARM_NS 400000u
#define RUN_NS 1000000u
#define QUICK_WARM_NS 150000u
#define QUICK_RUN_NS 150000u
#define RUNS_MAX 6u
#define STEADY 0.03
#define TURNS 2

bool figure_open(struct figure_run *run, const struct figure_wish *wish,
                 struct figure_cluster *cluster_out)
{
    struct figure_cluster *c = cluster_out;
    bool quick = run->options->quick;
    uint32_t all = wish->machine->workers;
    uint32_t workers = wish->workers == 0 ? all : wish->workers;
    if (quick && workers > QUICK_WORKERS) {
        workers = QUICK_WORKERS;
    }
    c->run = run;
    c->cluster = NULL;
    c->nodes = wish->nodes;
    c->machine = wish->single ? cost_single(wish->machine) : cost_share(wish->machine, workers);
    c->scale = wish->single ? 1 : (double)all / workers;
    engines_configure(wish->engine,
                      &(struct engines_options){.mlt_us = 10000,
                                                .grace_us = 10000000,
                                                .lockstep = wish->lockstep,
                                                .degree = wish->degree,
                                                .lotus = wish->lotus},
                      &c->config);
    struct cost_setup setup = {
        .machine = &c->machine,
        .engine = wish->engine,
        .engine_config = &c->config,
        .nodes = wish->nodes,
        .keys = wish->keys > 0 ? wish->keys
                : quick        ? QUICK_KEYS
                               : KEYS,
        .hot = wish->hot,
        .frame_messages_max = wish->frame_messages_max,
        .value_bytes = wish->value_bytes == 0 ? 32 : wish->value_bytes,
        .window_most = wish->window_most,
        .async_reads = wish->async_reads,
        .lease_us = wish->lease_us,
        .work = wish->work,
        .degree = wish->degree,
        .memory = wish->memory,
        .memory_slow = wish->memory_slow,
        .seed = run->options->seed,
    };
    int err = cost_cluster_create(&setup, &c->cluster);
    if (err != HK_OK && run->err == HK_OK) {
        run->err = err;
    }
    return err == HK_OK;
}

void figure_close(struct figure_cluster *cluster)
{
    cost_cluster_destroy(cluster->cluster);
}

/* Goes on, each time for longer, until a run shows what the one before it showed, and lasted for
 * several times a request: sessions that wait for a slow leader fill up only by and by. */
static void play_until_steady(struct figure_cluster *c, struct cost_load *load,
                              struct cost_result *result)
{
    double in_flight = (double)load->window * c->machine.workers * c->nodes;
    for (uint32_t i = 0; i < RUNS_MAX; i++) {
        double before = result->ops_per_s;
        load->warm_ns = 0;
        cost_cluster_run(c->cluster, load, result);
        double change = before > 0 ? result->ops_per_s / before - 1 : 1;
        double turns = (double)load->run_ns * 1e-9 * result->ops_per_s / in_flight;
        if (change < STEADY && change > -STEADY && turns > TURNS) {
            return;
        }
        load->run_ns *= 2;
    }
}

void figure_play(struct figure_cluster *cluster, struct cost_load load,
                 struct cost_result *result_out)
{
    bool quick = cluster->run->options->quick;
    if (load.run_ns == 0) {
        load.warm_ns = quick ? QUICK_WARM_NS : WARM_NS;
        load.run_ns = quick ? QUICK_RUN_NS : RUN_NS;
    }
    if (load.window == 0) {
        load.window = cluster->machine.window;
    }
    load.seed = cluster->run->options->seed;
    cost_cluster_run(cluster->cluster, &load, result_out);
    if (!quick && load.slice_ns == 0) {
        play_until_steady(cluster, &load, result_out);
    }
    result_out->ops_per_s *= cluster->scale;
}

void figure_progress(const struct figure_run *run, const char *what, ...)
{
    va_list list;
    if (!run->options->progress) {
        return;
    }
    fprintf(stderr, "\rfigure %s: ", run->figure->id);
    va_start(list, what);
    vfprintf(stderr, what, list);
    va_end(list);
    fputs("\033[K", stderr);
}

void figure_add(struct figure_run *run, double x, double y, const char *series, ...)
{
    va_list list;
    if (run->points_n == run->points_capacity) {
        run->points_capacity = run->points_capacity == 0 ? 64 : 2 * run->points_capacity;
        run->points = realloc(run->points, run->points_capacity * sizeof *run->points);
        HK_ASSERT(run->points != NULL);
    }
    struct figure_point *p = &run->points[run->points_n++];
    va_start(list, series);
    vsnprintf(p->series, sizeof p->series, series, list);
    va_end(list);
    p->x = x;
    p->y = y;
}

bool figure_find(const struct figure_run *run, const char *series, double x, double *y_out)
{
    for (size_t i = 0; i < run->points_n; i++) {
        if (strcmp(run->points[i].series, series) == 0 && run->points[i].x == x) {
            *y_out = run->points[i].y;
            return true;
        }
    }
    return false;
}
