/* `horkos bench --workload`: see bench_work_options.c for its command line. */
#include "tools/bench_work.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "node/engines.h"
#include "tools/commands.h"

/* Of a compute server of the baselines, percent of the index ([L] 7.1). */
#define CACHE_PERCENT 8.0
/* New keys of each compute server: memory is taken when they are used. */
#define INSERTS (1u << 18)

struct session {
    struct bench_work_options options;
    struct bench_cluster *clusters[BENCH_DESIGNS_MAX];  /* or ... */
    struct bench_onesided *onesided[BENCH_DESIGNS_MAX]; /* ... of BENCH_ONE_SIDED */
    struct bench_dex *dexes[BENCH_DESIGNS_MAX];         /* ... or of BENCH_DEX */
    struct bench_onesided_run onesided_run;             /* of both */
    struct work *work;                                  /* if there is no cluster */
    struct bench_work_series *series;                   /* one for each design */
    struct bench_run *run;
    struct samples *samples; /* NULL: none were asked for */
};

bool bench_work_asked(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--workload") == 0 || strncmp(argv[i], "--workload=", 11) == 0) {
            return true;
        }
    }
    return false;
}

static double cache_part(const struct bench_work_options *o)
{
    return (o->cache > 0.0 ? o->cache : CACHE_PERCENT) / 100.0;
}

static uint32_t memories_of(const struct bench_work_options *o)
{
    return o->config.memory > 0 ? o->config.memory : o->config.nodes;
}

static int not_made(const struct session *s, uint32_t design, int err)
{
    fprintf(stderr, "horkos bench: no %s: %s\n", s->options.designs[design].name, hk_err_text(err));
    return STATUS_FAILED;
}

/* As many servers and transactions as the clusters have; records of whole words. */
static int make_onesided(struct session *s, uint32_t design)
{
    const struct bench_work_options *o = &s->options;
    bool latest = o->work.kind == WORK_YCSB_D;
    const struct bench_onesided_config config = {
        .config = {.policy = o->designs[design].one_sided,
                   .overlap = o->overlap,
                   .value_words = (o->work.value_bytes + 7) / 8},
        .memories = memories_of(o),
        .computes = o->work.nodes,
        .in_flight = o->config.in_flight * o->config.workers,
        .requests = o->work.requests,
        .writes_ppm = (uint32_t)(o->work.writes * 1e4),
        .keys = {.n = (uint64_t)o->work.objects * o->work.nodes,
                 .exponent = o->work.theta,
                 .scramble = !o->work.neighbours && !latest,
                 .seed = o->config.seed},
        .inserts = latest ? INSERTS : 0,
        .cache = o->lotus.hints_off ? 0 : cache_part(o),
        .seed = o->config.seed,
    };
    int err;
    s->onesided[design] = bench_onesided_open(&config, &err);
    return s->onesided[design] != NULL ? STATUS_OK : not_made(s, design, err);
}

static int make_dex(struct session *s, uint32_t design)
{
    const struct bench_work_options *o = &s->options;
    const struct bench_dex_config config = {
        .memories = memories_of(o),
        .computes = o->work.nodes,
        .in_flight = o->config.in_flight * o->config.workers,
        .requests = o->work.requests,
        .writes_ppm = (uint32_t)(o->work.writes * 1e4),
        .reads_first = o->work.kind == WORK_YCSB_F,
        .keys = {.n = o->work.objects,
                 .exponent = o->work.theta,
                 .scramble = !o->work.neighbours,
                 .seed = o->config.seed},
        .cache = cache_part(o),
        .seed = o->config.seed,
    };
    int err;
    s->dexes[design] = bench_dex_open(&config, &err);
    return s->dexes[design] != NULL ? STATUS_OK : not_made(s, design, err);
}

/* The same figures as a cluster's: a verb is a message, a batch is a frame. */
static void run_baseline(struct session *s, uint32_t design)
{
    struct bench_onesided_run *r = &s->onesided_run;
    memset(s->run, 0, sizeof *s->run);
    if (s->onesided[design] != NULL) {
        bench_onesided_run(s->onesided[design], s->options.warmup, s->options.seconds, r);
    } else {
        struct dex_stats stats;
        bench_dex_run(s->dexes[design], s->options.warmup, s->options.seconds, r, &stats);
        s->run->cache_looks = stats.hits; /* all that were looked for are found in the end */
        s->run->cache_hits = stats.hits - stats.misses;
    }
    s->run->seconds = r->seconds;
    s->run->cpu_seconds = s->run->node_seconds[0] = r->cpu_ns * 1e-9;
    s->run->nodes = 1;
    s->run->steps = r->committed[0] + r->committed[1];
    s->run->ops[LOAD_READ] = r->committed[0];
    s->run->ops[LOAD_WRITE] = r->committed[1];
    s->run->txns[0] = s->run->succeeded[0] = r->committed[0] + r->committed[1];
    s->run->node.txn_aborts = r->aborted;
    s->run->node.frames_out = r->count.batches;
    s->run->node.bytes_out = r->count.bytes;
    for (uint32_t i = 0; i < VERB_KINDS; i++) {
        s->run->node.messages_out += r->count.verbs[i];
    }
    s->run->latency_ns[LOAD_READ] = r->latency[0];
    s->run->latency_ns[LOAD_WRITE] = r->latency[1];
}

static int make_clusters(struct session *s)
{
    const struct bench_work_options *o = &s->options;
    for (uint32_t i = 0; i < o->designs_n; i++) {
        if (bench_protocol_engine(o->designs[i].protocol) == NULL) {
            int status = o->designs[i].protocol == BENCH_DEX ? make_dex(s, i) : make_onesided(s, i);
            if (status != STATUS_OK) {
                return status;
            }
            continue;
        }
        struct bench_config config = o->config;
        const char *why = NULL;
        config.engine = bench_protocol_engine(o->designs[i].protocol);
        config.lotus = o->designs[i].lotus;
        if (o->partitioned) {
            double bytes = cache_part(o) * o->work.objects * o->work.value_bytes;
            config.lotus.near_max = bytes > 1.0 ? (uint64_t)bytes : 1;
            config.lotus.far_min = 1;
        }
        config.work = &o->work;
        config.samples = s->samples;
        if (bench_cluster_create(&config, &s->clusters[i], &why) != HK_OK) {
            fprintf(stderr, "horkos bench: no cluster of %s: %s\n", o->designs[i].name, why);
            return STATUS_FAILED;
        }
    }
    return STATUS_OK;
}

static void keep(struct bench_work_series *series, uint32_t run, const struct bench_run *result)
{
    double figures[WORK_FIGURES];
    work_figures_of(result, figures);
    for (uint32_t i = 0; i < WORK_FIGURES; i++) {
        series->figures[i][run] = figures[i];
    }
    series->txns += result->ops[LOAD_READ] + result->ops[LOAD_WRITE];
    series->failed += result->failed;
    series->refused += result->refused;
    series->frames_dropped += result->frames_dropped;
    series->view_changes += result->view_changes;
}

/* Values that homes were asked for, and that they had. */
static void near_values(struct session *s)
{
    if (s->options.partitioned) {
        uint64_t looks = s->run->node.home_read, misses = s->run->node.far_fetches;
        s->run->cache_looks = looks;
        s->run->cache_hits = looks > misses ? looks - misses : 0;
    }
}

/* All in turn, every second round backwards: whatever slows the machine down slows all. */
static void run_all(struct session *s)
{
    const struct bench_work_options *o = &s->options;
    for (uint32_t run = 0; run < o->runs; run++) {
        for (uint32_t i = 0; i < o->designs_n; i++) {
            uint32_t design = run % 2 == 0 ? i : o->designs_n - 1 - i;
            if (s->clusters[design] == NULL) {
                run_baseline(s, design);
            } else {
                bench_cluster_run(s->clusters[design], o->warmup, o->seconds, s->run);
                near_values(s);
            }
            keep(&s->series[design], run, s->run);
        }
    }
}

/* A line for each: its node, or -1; its place in the program, or 0; if that is 0, who called what
 * is outside it, or 0. */
static int write_samples(const struct session *s)
{
    const char *path = s->options.samples;
    FILE *to = fopen(path, "w");
    uint32_t n;
    const struct sample *all = samples_all(s->samples, &n);
    for (uint32_t i = 0; to != NULL && i < n; i++) {
        fprintf(to, "%" PRId64 " %#" PRIx64 " %#" PRIx64 "\n", (int64_t)all[i].node, all[i].at,
                all[i].caller);
    }
    bool wrong = to == NULL || ferror(to) != 0;
    if (to != NULL) {
        wrong = fclose(to) != 0 || wrong;
    }
    if (wrong) {
        fprintf(stderr, "horkos bench: %s: %s\n", path, strerror(errno));
    }
    return wrong ? STATUS_FAILED : STATUS_OK;
}

/* Writes that are not there, or locks that are, are transactions that failed. */
static void settle_baselines(struct session *s)
{
    for (uint32_t i = 0; i < s->options.designs_n; i++) {
        bool sound = (s->onesided[i] == NULL || bench_onesided_settle(s->onesided[i])) &&
                     (s->dexes[i] == NULL || bench_dex_settle(s->dexes[i]));
        s->series[i].failed += !sound;
    }
}

/* A measurement of transactions that fail is none. */
static int judge(const struct session *s)
{
    int status = STATUS_OK;
    for (uint32_t i = 0; i < s->options.designs_n; i++) {
        const struct bench_work_series *x = &s->series[i];
        const char *name = s->options.designs[i].name;
        if (x->failed > 0 || x->frames_dropped > 0 || x->view_changes > 0 || x->txns == 0) {
            fprintf(stderr,
                    "horkos bench: %s: of %" PRIu64 " transactions %" PRIu64
                    " failed or did not end; %" PRIu64 " frames were dropped, and the view "
                    "changed %" PRIu64 " times\n",
                    name, x->txns, x->failed, x->frames_dropped, x->view_changes);
            status = STATUS_FAILED;
        }
    }
    return status;
}

static int measure(struct session *s)
{
    struct bench_machine machine;
    int status = make_clusters(s);
    if (status != STATUS_OK) {
        return status;
    }
    if (s->clusters[0] == NULL && work_create(&s->options.work, &s->work) != HK_OK) {
        fprintf(stderr, "horkos bench: out of memory\n");
        return STATUS_FAILED;
    }
    run_all(s);
    settle_baselines(s);
    status = s->samples != NULL ? write_samples(s) : STATUS_OK;
    bench_machine_read(&machine);
    struct bench_work_report report = {
        .options = &s->options,
        .series = s->series,
        .machine = &machine,
        .work = s->work != NULL ? s->work : bench_cluster_work(s->clusters[0]),
    };
    if (!s->options.json) {
        bench_work_text(&report, stdout);
    } else if (bench_work_json(&report, stdout) != HK_OK) {
        fprintf(stderr, "horkos bench: out of memory\n");
        return STATUS_FAILED;
    }
    fflush(stdout);
    return status == STATUS_OK ? judge(s) : status;
}

int bench_work_command(int argc, char **argv)
{
    static struct session s; /* large */
    bool help = false;
    memset(&s, 0, sizeof s);
    int status = bench_work_options_parse(argc, argv, &s.options, &help);
    if (status != STATUS_OK || help) {
        return status;
    }
    s.run = malloc(sizeof *s.run);
    s.series = calloc(s.options.designs_n, sizeof *s.series);
    bool sampled = s.options.samples == NULL || samples_create(&s.samples) == HK_OK;
    if (s.run != NULL && s.series != NULL && sampled) {
        status = measure(&s);
    } else {
        fprintf(stderr, "horkos bench: out of memory\n");
        status = STATUS_FAILED;
    }
    for (uint32_t i = 0; i < s.options.designs_n; i++) {
        bench_cluster_destroy(s.clusters[i]);
        if (s.onesided[i] != NULL) {
            bench_onesided_close(s.onesided[i]);
        }
        if (s.dexes[i] != NULL) {
            bench_dex_close(s.dexes[i]);
        }
    }
    work_destroy(s.work);
    samples_destroy(s.samples);
    free(s.series);
    free(s.run);
    return status;
}
