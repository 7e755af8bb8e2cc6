#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"
#include "bench/internal.h"

const char *const bench_port_names[] = {[BENCH_SHM] = "shm", [BENCH_TCP] = "tcp"};
const char *const bench_read_path_names[] = {
    [BENCH_READ_DIRECT] = "direct", [BENCH_READ_NODE] = "node"};

/* Nobody crashes here; a busy machine may keep a thread from running for a while. */
#define LEASE_US 4000000u
#define MARGIN_US 400000u
#define HEARTBEAT_US 500000u
#define SUSPECT_US 3000000u
/* As a server's: each pass over the store costs as much as reading every key once. */
#define SWEEP_US 30000000u
/* The walk over entries that adds replicas, after the first writes above all: so many us an object
 * of the cluster, and a least. */
#define WALK_OBJECT_US 50u
#define WALK_US 100000u
#define FORM_NS UINT64_C(30000000000)
/* Writing all keys makes some progress within this time. */
#define STALL_NS UINT64_C(20000000000)

bool bench_direct_possible(const struct bench_config *config)
{
    bool one_worker_a_key = (config->engine->traits & ENGINE_HOMED) != 0 && config->hot.exclusive;
    return !config->async_reads && !one_worker_a_key;
}

const struct bench_config *bench_cluster_config(const struct bench_cluster *cluster)
{
    return &cluster->config;
}

/* ---- What a node asks ---- */

static struct bench_worker *worker_of(void *context, uint32_t worker)
{
    struct bench_node *n = context;
    return &n->cluster->workers[n->id * n->cluster->config.workers + worker];
}

static bool env_receive(void *context, uint32_t worker, struct bytes *frame_out)
{
    return port_receive(worker_of(context, worker)->port, frame_out);
}

static void env_send(void *context, uint32_t worker, uint8_t to, struct bytes frame)
{
    (void)to;
    port_send(worker_of(context, worker)->port, frame);
}

static void env_give(void *context, uint32_t worker, uint8_t to, struct pieces *frame)
{
    (void)to;
    port_give(worker_of(context, worker)->port, frame);
}

static bool env_under_way(void *context, uint32_t worker, uint8_t to)
{
    return port_large_under_way(worker_of(context, worker)->port, to, (uint8_t)worker);
}

static uint16_t env_version(void *context, uint32_t worker, uint8_t to)
{
    return port_version(worker_of(context, worker)->port, to);
}

static bool env_request(void *context, uint32_t worker, struct request *request_out)
{
    return drive_request(worker_of(context, worker), request_out);
}

static void env_reply(void *context, uint32_t worker, const struct reply *reply)
{
    drive_reply(worker_of(context, worker), reply);
}

static void env_wake(void *context, uint32_t worker)
{
    loop_wake(worker_of(context, worker)->loop);
}

static uint64_t env_wall_ms(void *context)
{
    (void)context;
    return clock_wall_ms();
}

/* A benchmark's cluster is never started a second time. */
static void env_persist(void *context, uint64_t generation, uint32_t epoch)
{
    (void)context;
    (void)generation;
    (void)epoch;
}

/* ---- Making ---- */

static void configure(struct bench_cluster *c, uint8_t id)
{
    const struct bench_config *b = &c->config;
    struct node_config *n = &c->nodes[id].config;
    *n = (struct node_config){
        .self = id,
        .role = b->memory == 0               ? NODE_ROLE_BOTH
                : id >= b->nodes - b->memory ? NODE_ROLE_MEMORY
                                             : NODE_ROLE_COMPUTE,
        .workers = b->workers,
        .cluster = 1,
        .seed = b->seed * 64u + id,
        .sweep_us = SWEEP_US,
        .sessions_max = BENCH_IN_FLIGHT_MAX + 1u,
        .view = {.self = id,
                 .nonce = id + 1u,
                 .configured = ((nodeset)1 << b->nodes) - 1u,
                 .lease_us = LEASE_US,
                 .margin_us = MARGIN_US,
                 .heartbeat_us = HEARTBEAT_US,
                 .suspect_us = SUSPECT_US,
                 .cids_per_member = 4,
                 .seed = b->seed * 64u + id},
    };
    n->spaces[0] = (struct space_config){
        .ops = b->engine,
        .engine = &c->engine,
        .async_reads = b->async_reads,
        .hot = b->hot,
        .owned = {.walk_us = WALK_US + WALK_OBJECT_US * c->objects_n},
        .store = {.keys_expected = c->objects_n,
                  .value_bytes_max = BENCH_VALUE_BYTES_MAX,
                  .seed = b->seed * 64u + id},
    };
}

static int make_nodes(struct bench_cluster *c)
{
    struct engines_options options = {
        .mlt_us = LEASE_US / 10u,
        .grace_us = 100u * LEASE_US,
        .ack_to_all = c->config.ack_to_all,
        .degree = c->config.degree,
        .lotus = c->config.lotus,
    };
    engines_configure(c->config.engine, &options, &c->engine);
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        struct env env = {
            .context = &c->nodes[i],
            .receive = env_receive,
            .send = env_send,
            .request = env_request,
            .reply = env_reply,
            .wake = env_wake,
            .wall_ms = env_wall_ms,
            .persist = env_persist,
            .give = env_give,
            .under_way = env_under_way,
            .version = env_version,
            /* No connection ends here, and a run that drops a frame is none. Large frames over
             * tcp may be passed by small ones. */
            .ordered = c->config.port == BENCH_SHM,
            .intact = c->config.port == BENCH_SHM,
        };
        configure(c, (uint8_t)i);
        int err = node_create(&c->nodes[i].config, &env, (bench_clock_ns() - c->pauses_ns) / 1000u,
                              &c->nodes[i].node);
        if (err != HK_OK) {
            return err;
        }
    }
    return HK_OK;
}

static uint64_t sum_filled(const struct bench_cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->workers_n; i++) {
        sum += atomic_load_explicit(&c->workers[i].counters.filled, memory_order_relaxed);
    }
    return sum;
}

static uint64_t sum_failed(const struct bench_cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->workers_n; i++) {
        sum += atomic_load_explicit(&c->workers[i].counters.failed, memory_order_relaxed);
    }
    return sum;
}

static bool all_serve(const struct bench_cluster *c)
{
    uint64_t now_us = (bench_clock_ns() - c->pauses_ns) / 1000u;
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        struct node_status s;
        node_status(c->nodes[i].node, now_us, &s);
        if (s.status != VIEW_STATUS_SERVING || nodeset_count(s.view.live) != c->config.nodes ||
            s.epoch_adopted != s.view.epoch) {
            return false;
        }
    }
    return true;
}

/* How many workers know that their node was thrown out. */
static uint64_t sum_dropped(const struct bench_cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->workers_n; i++) {
        sum += atomic_load_explicit(&c->workers[i].counters.dropped, memory_order_relaxed);
    }
    return sum;
}

static uint32_t newest_epoch(const struct bench_cluster *c)
{
    uint32_t newest = 0;
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        struct node_status s;
        node_status(c->nodes[i].node, (bench_clock_ns() - c->pauses_ns) / 1000u, &s);
        newest = s.view.epoch > newest ? s.view.epoch : newest;
    }
    return newest;
}

static int form(struct bench_cluster *c, const char **why_out)
{
    uint64_t until_ns = bench_clock_ns() + FORM_NS;
    while (!all_serve(c)) {
        if (bench_clock_ns() > until_ns) {
            *why_out = "the nodes did not form a view within 30 seconds";
            return HK_ERR_BUSY;
        }
        crew_work(c, bench_clock_ns() + 1000000u);
    }
    return HK_OK;
}

/* Keys that the nodes have, summed; config.keys.n a node when each has all. Local reads that are
 * not linearizable find only what their own node has taken. */
static uint64_t sum_stored(const struct bench_cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        struct store_stats stats;
        store_stats(node_store(c->nodes[i].node, 0), &stats);
        sum += stats.keys;
    }
    return sum;
}

/* On how many nodes an object is when nothing is missing: replicas are added behind the writes. */
static uint64_t copies_of(const struct bench_config *b)
{
    uint32_t traits = b->engine->traits;
    if ((traits & (ENGINE_OWNED | ENGINE_SHARDED)) != 0) {
        return b->degree;
    }
    return (traits & (ENGINE_HOMED | ENGINE_TABLES)) != 0 ? 0 : b->nodes;
}

static bool filled_everywhere(const struct bench_cluster *c, uint64_t filled, uint64_t stored)
{
    return filled >= c->objects_n && stored >= c->objects_n * copies_of(&c->config);
}

static int fill(struct bench_cluster *c, const char **why_out)
{
    uint64_t filled = 0, stored = 0, stalled_ns = bench_clock_ns();
    crew_enter(c, PHASE_FILL);
    while (!filled_everywhere(c, filled, stored)) {
        crew_work(c, bench_clock_ns() + 1000000u);
        uint64_t now = sum_filled(c);
        uint64_t there = sum_stored(c);
        if (now > filled || there > stored) {
            filled = now;
            stored = there;
            stalled_ns = bench_clock_ns();
        } else if (bench_clock_ns() - stalled_ns > STALL_NS) {
            *why_out = "writing the keys came to a standstill";
            return HK_ERR_BUSY;
        }
        if (c->config.progress != NULL) {
            c->config.progress(c->config.context, filled, c->objects_n);
        }
    }
    if (sum_failed(c) > 0) {
        *why_out = "some keys could not be written";
        return HK_ERR_BUSY;
    }
    return HK_OK;
}

/* The workload, and how many objects it has at first. */
static int make_work(struct bench_cluster *c)
{
    const struct bench_config *b = &c->config;
    c->objects_n = b->keys.n;
    if (b->work == NULL) {
        return HK_OK;
    }
    int err = work_create(b->work, &c->work);
    struct work_txn *txn = malloc(sizeof *txn);
    if (err != HK_OK || txn == NULL) {
        free(txn);
        return err != HK_OK ? err : HK_ERR_NOMEM;
    }
    c->objects_n = 0;
    for (uint32_t place = 0; place < (b->nodes - b->memory) * b->workers; place++) {
        for (uint64_t i = 0; i < work_fill_count(c->work); i++) {
            c->objects_n += work_fill(c->work, place, i, txn);
        }
    }
    free(txn);
    return HK_OK;
}

static int make(struct bench_cluster *c, const char **why_out)
{
    const struct bench_config *b = &c->config;
    int err = make_work(c);
    if (err != HK_OK) {
        return err;
    }
    c->workers_n = b->nodes * b->workers;
    c->workers = aligned_alloc(64, c->workers_n * sizeof *c->workers);
    c->value = malloc(b->value_bytes + 1u);
    if (c->workers == NULL || c->value == NULL) {
        return HK_ERR_NOMEM;
    }
    memset(c->workers, 0, c->workers_n * sizeof *c->workers);
    memset(c->value, 'v', b->value_bytes + 1u);
    for (uint32_t i = 0; i < c->workers_n; i++) {
        c->workers[i].cluster = c;
        c->workers[i].node = (uint8_t)(i / b->workers);
        c->workers[i].index = (uint8_t)(i % b->workers);
        c->workers[i].number = i;
    }
    for (uint32_t i = 0; i < b->nodes; i++) {
        c->nodes[i].cluster = c;
        c->nodes[i].id = (uint8_t)i;
    }
    err = b->port == BENCH_SHM ? hub_create(HUB_RING_DEFAULT, &c->hub) : HK_OK;
    err = err == HK_OK ? crew_start(c) : err;
    err = err == HK_OK ? make_nodes(c) : err;
    err = err == HK_OK ? links_connect(c) : err;
    err = err == HK_OK ? crew_open(c) : err;
    err = err == HK_OK ? form(c, why_out) : err;
    err = err == HK_OK ? fill(c, why_out) : err;
    if (err == HK_OK && !crew_pause(c)) {
        *why_out = "the last writes of the keys did not end";
        err = HK_ERR_BUSY;
    }
    return err;
}

int bench_cluster_create(const struct bench_config *config, struct bench_cluster **cluster_out,
                         const char **why_out)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    struct bench_cluster *c = calloc(1, sizeof *c);
    *why_out = NULL;
    if (c == NULL) {
        return HK_ERR_NOMEM;
    }
    c->config = *config;
    c->yields = (long)(config->nodes * config->workers) > processors;
    atomic_init(&c->phase, PHASE_STOP);
    int err = make(c, why_out);
    if (err != HK_OK) {
        *why_out = *why_out != NULL ? *why_out : hk_err_text(err);
        bench_cluster_destroy(c);
        return err;
    }
    c->epoch = newest_epoch(c);
    *cluster_out = c;
    return HK_OK;
}

void bench_cluster_destroy(struct bench_cluster *c)
{
    if (c == NULL) {
        return;
    }
    crew_halt(c);
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        if (c->nodes[i].node != NULL) {
            node_destroy(c->nodes[i].node);
        }
    }
    crew_end(c);
    if (c->hub != NULL) {
        hub_destroy(c->hub);
    }
    work_destroy(c->work);
    free(c->workers);
    free(c->value);
    free(c);
}

const struct work *bench_cluster_work(const struct bench_cluster *c)
{
    return c->work;
}

struct node *bench_cluster_node(struct bench_cluster *c, uint64_t *now_us_out)
{
    HK_ASSERT(atomic_load_explicit(&c->phase, memory_order_acquire) == PHASE_PAUSED);
    *now_us_out = (c->paused_at_ns - c->pauses_ns) / 1000u;
    return c->nodes[0].node;
}

/* ---- A run ---- */

/* Everything that only grows, at one moment. */
struct reading {
    double cpu_seconds;
    uint64_t now_ns;
    uint64_t ops[LOAD_KINDS];
    uint64_t passed;
    uint64_t hits;
    uint64_t refused;
    uint64_t txns[WORK_TYPES_MAX], succeeded[WORK_TYPES_MAX], remote, steps, again;
    uint64_t frames_dropped, compute_frames;
    uint64_t spent_ns[BENCH_NODES_MAX];
    struct node_stats node;
};

static void add_stats(struct node_stats *sum, const struct node_stats *more, bool subtract)
{
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)more;
    _Static_assert(sizeof *sum % sizeof *to == 0, "nothing but counters");
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) {
        to[i] = subtract ? to[i] - from[i] : to[i] + from[i];
    }
}

static void read_all(const struct bench_cluster *c, struct reading *r)
{
    struct timespec cpu;
    memset(r, 0, sizeof *r);
    int err = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    HK_ASSERT(err == 0);
    r->cpu_seconds = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec;
    r->now_ns = bench_clock_ns();
    for (uint32_t i = 0; i < c->workers_n; i++) {
        const struct bench_counters *w = &c->workers[i].counters;
        for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
            r->ops[kind] += atomic_load_explicit(&w->ops[kind], memory_order_relaxed);
        }
        struct port_stats links;
        /* Only this thread has written it, if anybody has. */
        r->spent_ns[c->workers[i].node] += c->workers[i].spent_ns;
        port_stats(c->workers[i].port, &links);
        r->frames_dropped += links.dropped_full + links.dropped_unconnected + links.dropped_view;
        r->refused += atomic_load_explicit(&w->refused, memory_order_relaxed);
        r->passed += atomic_load_explicit(&w->passed, memory_order_relaxed);
        r->hits += atomic_load_explicit(&w->hits, memory_order_relaxed);
        r->remote += atomic_load_explicit(&w->remote, memory_order_relaxed);
        r->steps += atomic_load_explicit(&w->steps, memory_order_relaxed);
        r->again += atomic_load_explicit(&w->again, memory_order_relaxed);
        for (uint32_t k = 0; k < WORK_TYPES_MAX; k++) {
            r->txns[k] += atomic_load_explicit(&w->txns[k], memory_order_relaxed);
            r->succeeded[k] += atomic_load_explicit(&w->succeeded[k], memory_order_relaxed);
        }
    }
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        struct node_stats s;
        node_stats(c->nodes[i].node, &s);
        add_stats(&r->node, &s, false);
        r->compute_frames += i < c->config.nodes - c->config.memory ? s.frames_out : 0;
    }
}

static void work_for(struct bench_cluster *c, double seconds)
{
    uint64_t until_ns = bench_clock_ns() + (uint64_t)(seconds * 1e9);
    while (bench_clock_ns() < until_ns) {
        crew_work(c, until_ns);
    }
}

/* False: it cannot be. */
static bool start_samples(struct bench_cluster *c)
{
    return c->config.samples == NULL || samples_start(c->config.samples) == HK_OK;
}

static void stop_samples(struct bench_cluster *c)
{
    if (c->config.samples != NULL) {
        samples_stop(c->config.samples);
    }
}

void bench_cluster_run(struct bench_cluster *c, double warmup_seconds, double seconds,
                       struct bench_run *run_out)
{
    struct reading before, after;
    uint64_t failed = sum_failed(c);
    memset(run_out, 0, sizeof *run_out);
    crew_enter(c, PHASE_LOAD);
    work_for(c, warmup_seconds);
    atomic_fetch_add_explicit(&c->run, 1, memory_order_relaxed);
    read_all(c, &before);
    bool asked = start_samples(c);
    work_for(c, seconds);
    stop_samples(c);
    read_all(c, &after);
    bool ended = crew_pause(c);
    run_out->seconds = 1e-9 * (double)(after.now_ns - before.now_ns);
    run_out->cpu_seconds = after.cpu_seconds - before.cpu_seconds;
    run_out->reads_passed = after.passed - before.passed;
    run_out->failed = sum_failed(c) - failed + !ended + !asked;
    run_out->refused = after.refused - before.refused;
    run_out->frames_dropped = after.frames_dropped - before.frames_dropped;
    run_out->view_changes = newest_epoch(c) - c->epoch + sum_dropped(c);
    run_out->node = after.node;
    add_stats(&run_out->node, &before.node, true);
    run_out->homed = (c->config.engine->traits & ENGINE_HOMED) != 0;
    run_out->hits = run_out->homed ? after.hits - before.hits + run_out->node.hits : 0;
    run_out->nodes = c->config.nodes;
    run_out->memory = c->config.memory;
    run_out->owned = (c->config.engine->traits & ENGINE_OWNED) != 0;
    run_out->tables = (c->config.engine->traits & ENGINE_TABLES) != 0;
    run_out->compute_frames = after.compute_frames - before.compute_frames;
    run_out->remote = after.remote - before.remote;
    run_out->steps = after.steps - before.steps;
    run_out->again = after.again - before.again;
    for (uint32_t i = 0; i < WORK_TYPES_MAX; i++) {
        run_out->txns[i] = after.txns[i] - before.txns[i];
        run_out->succeeded[i] = after.succeeded[i] - before.succeeded[i];
    }
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        run_out->node_seconds[i] = 1e-9 * (double)(after.spent_ns[i] - before.spent_ns[i]);
    }
    for (uint32_t kind = 0; kind < LOAD_KINDS; kind++) {
        run_out->ops[kind] = after.ops[kind] - before.ops[kind];
        histogram_init(&run_out->latency_ns[kind]);
        for (uint32_t i = 0; i < c->workers_n; i++) {
            histogram_merge(&run_out->latency_ns[kind], &c->workers[i].latency_ns[kind]);
        }
    }
}
