/* Chapter 5: Zeus against a store that is sharded statically, on six nodes, at several remote
 * shares. The thesis at hand has no numbers of these figures but that of ownership's moves, so the
 * lines stand for themselves: where they cross is what they are for. */
#include <string.h>

#include "base/err.h"
#include "engine/zeus/commit.h"
#include "tools/figures.h"

#define MILLION 1e6
#define NODES 6u
#define DEGREE 3u
/* Workers of 40 that are played, the network in proportion. */
#define WORKERS 2u
/* Requests in flight a worker: where objects are hot more of them meet, where the network is far
 * fewer leave workers idle. Each design is drawn with the best number. */
static const uint32_t windows[] = {4, 16, 48};
#define WINDOWS (sizeof windows / sizeof windows[0])
/* Clients wait until they can begin this part of them at once, as in the figures of chapter 3: else
 * what comes alone leaves alone, and packets are the limit. */
#define BATCH_PART 3u
#define WINDOW_MOST 48u
#define WARM_NS 4000000u
#define RUN_NS 4000000u
#define QUICK_NS 1000000u
/* A quick figure's populations are so many times smaller. */
#define QUICK_PART 8u

static const double shares[] = {0, 1, 5, 20, 100};
#define SHARES (sizeof shares / sizeof shares[0])

enum design { ZEUS, STATIC, DESIGNS };
static const char *const names[DESIGNS] = {"zeus", "static"};

/* Objects a node: as many for each worker as the workloads' populations have for 40. */
static struct work_config population(const struct figure_run *run, enum work_kind kind)
{
    static const uint32_t objects[WORK_KINDS] = {[WORK_HANDOVERS] = 5000,
                                                 [WORK_SMALLBANK] = 5000,
                                                 [WORK_TATP] = 1000,
                                                 [WORK_VOTER] = 5000,
                                                 [WORK_YCSB] = 5000};
    struct work_config work = work_defaults(kind);
    uint32_t part = run->options->quick ? QUICK_PART : 1;
    work.objects = objects[kind] / part;
    work.hot = 200;
    work.objects = work.objects < 64 * WORKERS ? 64 * WORKERS : work.objects;
    work.remote = 0;
    return work;
}

static bool open_design(struct figure_run *run, enum design design, const struct work_config *work,
                        struct figure_cluster *cluster)
{
    struct figure_wish wish = {.machine = &cost_infiniband,
                               .engine = design == ZEUS ? &zeus_ops : &occ_ops,
                               .nodes = NODES,
                               .workers = WORKERS,
                               .window_most = WINDOW_MOST,
                               .work = work,
                               .degree = DEGREE};
    return figure_open(run, &wish, cluster);
}

/* Everything is steady within milliseconds: the time does not depend on what comes out. */
static void play(struct figure_cluster *c, uint32_t window, struct cost_result *r)
{
    bool quick = c->run->options->quick;
    struct cost_load load = {.window = window,
                             .batch = window / BATCH_PART,
                             .warm_ns = quick ? QUICK_NS : WARM_NS,
                             .run_ns = quick ? QUICK_NS : RUN_NS,
                             .seed = c->run->options->seed};
    cost_cluster_run(c->cluster, &load, r);
    r->ops_per_s *= c->scale;
}

/* At the best of the windows, which is answered. */
static uint32_t play_best(struct figure_cluster *c, struct cost_result *best)
{
    static struct cost_result r;
    uint32_t window = 0;
    for (size_t i = 0; i < WINDOWS; i++) {
        play(c, windows[i], &r);
        if (i == 0 || r.ops_per_s > best->ops_per_s) {
            *best = r;
            window = windows[i];
        }
    }
    return window;
}

static double latency_us(const struct cost_result *r, uint32_t ppm)
{
    struct histogram all = r->read;
    histogram_merge(&all, &r->write);
    return all.count > 0 ? (double)histogram_percentile(&all, ppm) / 1000 : 0;
}

/* Messages of ownership, or of reliable commit. */
static double owned_messages(const struct cost_result *r, bool of_ownership)
{
    double sum = 0;
    for (uint32_t kind = 0; kind < OWNED_KINDS; kind++) {
        if ((kind < COMMIT_MSG_INV) == of_ownership) {
            sum += (double)r->node.owned_messages[kind];
        }
    }
    return sum;
}

static void add_point(struct figure_run *run, enum design design, double share, uint32_t window,
                      const struct cost_result *r)
{
    double txns = (double)(r->reads + r->writes);
    const char *name = names[design];
    figure_add(run, share, r->ops_per_s / MILLION, "%s", name);
    if (txns == 0) {
        return;
    }
    figure_add(run, share, window, "= %s in flight a worker", name);
    figure_add(run, share, (double)r->messages / txns, "= %s messages a transaction", name);
    figure_add(run, share, (double)r->node.bytes_out / txns, "= %s bytes a transaction", name);
    figure_add(run, share, 100 * r->cpu_busy, "= %s workers busy (%%)", name);
    figure_add(run, share, 100 * r->wire_busy_most, "= %s network busy (%%)", name);
    figure_add(run, share, latency_us(r, 500000), "= %s median (us)", name);
    figure_add(run, share, latency_us(r, 990000), "= %s 99th percentile (us)", name);
    figure_add(run, share, (double)(r->node.txn_aborts + r->node.txn_retries) / txns,
               "= %s tries in vain a transaction", name);
    if (design == ZEUS) {
        figure_add(run, share, (double)r->node.own_counts[OWN_MOVES] / txns,
                   "= zeus moves a transaction");
        if (r->node.txn_commits > 0) {
            figure_add(run, share, owned_messages(r, false) / (double)r->node.txn_commits,
                       "= zeus messages of a commit");
        }
    }
}

/* Where the lines cross, between the shares that were played. */
static void add_crossings(struct figure_run *run)
{
    double before = 0;
    size_t at = 0;
    for (size_t i = 0; i < SHARES; i++) {
        double zeus, fixed;
        if (!figure_find(run, names[ZEUS], shares[i], &zeus) ||
            !figure_find(run, names[STATIC], shares[i], &fixed)) {
            return;
        }
        figure_add(run, shares[i], fixed > 0 ? zeus / fixed : 0, "= zeus over static");
        double ahead = zeus - fixed;
        if (i > 0 && ahead * before < 0) {
            double x = shares[i - 1] + (shares[i] - shares[i - 1]) * before / (before - ahead);
            figure_add(run, x, zeus, "= the lines cross");
            at = strlen(run->note);
            snprintf(run->note + at, sizeof run->note - at, "%s%.1f %%",
                     strstr(run->note, "cross") != NULL ? ", " : " The lines cross at ", x);
        }
        before = ahead;
    }
    at = strlen(run->note);
    if (strstr(run->note, "cross") == NULL) {
        snprintf(run->note + at, sizeof run->note - at, " %s is ahead everywhere",
                 before > 0 ? "Zeus" : "Static sharding");
    }
    at = strlen(run->note);
    snprintf(run->note + at, sizeof run->note - at, ".");
}

static void by_share(struct figure_run *run, enum work_kind kind)
{
    struct work_config work = population(run, kind);
    snprintf(run->note, sizeof run->note,
             "%u of 40 workers a node are played, the network in proportion; %u replicas.", WORKERS,
             DEGREE);
    for (enum design d = ZEUS; d < DESIGNS; d++) {
        struct figure_cluster cluster;
        figure_progress(run, "%s, filling %u stores", names[d], NODES);
        if (!open_design(run, d, &work, &cluster)) {
            return;
        }
        for (size_t i = 0; i < SHARES; i++) {
            static struct cost_result r;
            figure_progress(run, "%s, %.0f %% remote", names[d], shares[i]);
            int err = cost_cluster_remote(cluster.cluster, shares[i]);
            if (err != HK_OK) {
                run->err = err;
                break;
            }
            uint32_t window = play_best(&cluster, &r);
            add_point(run, d, shares[i], window, &r);
        }
        figure_close(&cluster);
    }
    add_crossings(run);
}

void figure_handovers(struct figure_run *run)
{
    by_share(run, WORK_HANDOVERS);
}

void figure_smallbank(struct figure_run *run)
{
    by_share(run, WORK_SMALLBANK);
}

void figure_tatp(struct figure_run *run)
{
    by_share(run, WORK_TATP);
}

void figure_voter(struct figure_run *run)
{
    by_share(run, WORK_VOTER);
}

void figure_ycsb(struct figure_run *run)
{
    by_share(run, WORK_YCSB);
}

/* Each transaction writes one object, of any other node's home. */
void figure_moves(struct figure_run *run)
{
    static const uint32_t in_flight[] = {1, 4, 16, 48};
    struct work_config work = population(run, WORK_YCSB);
    struct figure_cluster cluster;
    work.requests = 1;
    work.theta = 0;
    work.writes = 100;
    work.value_bytes = 200;
    work.remote = 100;
    snprintf(run->note, sizeof run->note,
             "%u of 40 workers a node are played, the network in proportion; values of 200 bytes.",
             WORKERS);
    if (!open_design(run, ZEUS, &work, &cluster)) {
        return;
    }
    for (size_t i = 0; i < sizeof in_flight / sizeof in_flight[0]; i++) {
        static struct cost_result r;
        figure_progress(run, "%u in flight", in_flight[i]);
        play(&cluster, in_flight[i], &r);
        double moves = (double)r.node.own_counts[OWN_MOVES];
        figure_add(run, in_flight[i], moves / r.seconds * cluster.scale / NODES / 1000, "zeus");
        figure_add(run, in_flight[i], moves / (double)(r.reads + r.writes),
                   "= moves a transaction");
        figure_add(run, in_flight[i], owned_messages(&r, true) / moves, "= messages a move");
        figure_add(run, in_flight[i], latency_us(&r, 500000), "= median of a transaction (us)");
        figure_add(run, in_flight[i], latency_us(&r, 990000), "= its 99th percentile (us)");
    }
    figure_close(&cluster);
}
