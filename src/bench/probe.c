#include "bench/probe.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "base/assert.h"
#include "bench/internal.h"
#include "bench/probe_trips.h"
#include "store/state.h"

#define IN_FLIGHT 16u
#define LOOKUPS (1u << 20)
/* Limit and reads alternate, so that a disturbance meets both; the best of each counts, since
 * nothing makes a machine faster than it is. */
#define ROUNDS 7u

struct probe_keys {
    uint64_t *stream;                 /* LOOKUPS keys, and IN_FLIGHT more */
    const _Atomic uint64_t **entries; /* the index entry of each */
    uint32_t key_bytes;
};

/* This thread's CPU time: others on the machine disturb it less. */
static double now(void)
{
    struct timespec t;
    int err = clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    HK_ASSERT(err == 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void draw_keys(struct probe_keys *k, const struct bench_config *config, bool uniform)
{
    struct keys keys;
    struct random random;
    struct keys_config where = config->keys;
    where.seed = config->seed;
    where.exponent = uniform ? 0.0 : where.exponent;
    keys_init(&keys, &where);
    random_init(&random, config->seed);
    for (uint32_t i = 0; i < LOOKUPS + IN_FLIGHT; i++) {
        k->stream[i] = keys_draw(&keys, &random);
    }
}

static void find_entries(struct probe_keys *k, struct store *store, struct store_thread *thread)
{
    uint8_t key[BENCH_KEY_BYTES_MAX] = {0};
    for (uint32_t i = 0; i < LOOKUPS + IN_FLIGHT; i++) {
        struct store_ref ref;
        put_u64(key, k->stream[i]);
        struct bytes at = bytes_of(key, k->key_bytes);
        store_lock(store, thread, at, store_hash(store, at), &ref);
        HK_ASSERT(ref.object != NULL);
        k->entries[i] = index_locate(ref.bucket, at, ref.hash);
        store_unlock(&ref);
    }
}

static double measure_pairs(const struct probe_keys *k)
{
    const struct object *ring[IN_FLIGHT] = {NULL};
    uint64_t sum = 0;
    double start = now();
    for (uint32_t i = 0; i < IN_FLIGHT; i++) {
        __builtin_prefetch((const void *)k->entries[i]);
    }
    for (uint32_t i = 0; i < IN_FLIGHT / 2; i++) {
        ring[i] = entry_object(atomic_load_explicit(k->entries[i], memory_order_relaxed));
        __builtin_prefetch(ring[i]);
    }
    for (uint32_t i = 0; i < LOOKUPS; i++) {
        __builtin_prefetch((const void *)k->entries[i + IN_FLIGHT]);
        uint32_t j = i + IN_FLIGHT / 2;
        const struct object *o =
            entry_object(atomic_load_explicit(k->entries[j], memory_order_relaxed));
        __builtin_prefetch(o);
        ring[j % IN_FLIGHT] = o;
        sum += atomic_load_explicit(&ring[i % IN_FLIGHT]->ts, memory_order_relaxed);
    }
    double seconds = now() - start;
    HK_ASSERT(sum != 0); /* every key was written */
    return LOOKUPS / seconds;
}

static double measure_direct(const struct probe_keys *k, struct node_reader *reader,
                             uint64_t now_us)
{
    static uint8_t memory[NODE_READ_MAX][BENCH_KEY_BYTES_MAX];
    struct node_read reads[NODE_READ_MAX];
    uint64_t wrong = 0;
    for (uint32_t i = 0; i < NODE_READ_MAX; i++) {
        reads[i].key = bytes_of(memory[i], k->key_bytes);
    }
    double start = now();
    for (uint32_t i = 0; i < LOOKUPS; i += NODE_READ_MAX) {
        for (uint32_t j = 0; j < NODE_READ_MAX; j++) {
            put_u64(memory[j], k->stream[i + j]);
        }
        node_read(reader, 0, now_us, NODE_READ_MAX, reads);
        for (uint32_t j = 0; j < NODE_READ_MAX; j++) {
            wrong += reads[j].answer != NODE_READ_FOUND;
        }
    }
    double seconds = now() - start;
    return wrong == 0 ? LOOKUPS / seconds : NAN;
}

static void measure_reads(struct bench_cluster *cluster, struct probe_keys *k, bool uniform,
                          struct node_reader *reader, struct bench_probe_reads *out)
{
    uint64_t now_us;
    struct node *node = bench_cluster_node(cluster, &now_us);
    draw_keys(k, bench_cluster_config(cluster), uniform);
    find_entries(k, node_store(node, 0), worker_store_thread(node_worker(node, 0), 0));
    *out = (struct bench_probe_reads){.direct = NAN};
    for (uint32_t i = 0; i < ROUNDS; i++) {
        out->dependent_pairs = fmax(out->dependent_pairs, measure_pairs(k));
        if (reader != NULL) {
            out->direct = fmax(out->direct, measure_direct(k, reader, now_us));
        }
    }
}

static int probe_store(struct bench_cluster *cluster, struct bench_probe *out)
{
    const struct bench_config *config = bench_cluster_config(cluster);
    const size_t n = LOOKUPS + IN_FLIGHT;
    struct node_reader *reader = NULL;
    struct probe_keys k = {
        .stream = malloc(n * sizeof *k.stream),
        .entries = malloc(n * sizeof *k.entries),
        .key_bytes = config->key_bytes,
    };
    uint64_t now_us;
    int err = k.stream != NULL && k.entries != NULL ? HK_OK : HK_ERR_NOMEM;
    if (err == HK_OK && bench_direct_possible(config)) {
        err = node_reader_open(bench_cluster_node(cluster, &now_us), &reader);
    }
    if (err == HK_OK) {
        measure_reads(cluster, &k, true, reader, &out->uniform);
        out->load = out->uniform;
        if (config->keys.exponent > 0.0) {
            measure_reads(cluster, &k, false, reader, &out->load);
        }
    }
    if (reader != NULL) {
        node_reader_close(reader);
    }
    free(k.stream);
    free(k.entries);
    return err;
}

int bench_probe(struct bench_cluster *cluster, struct bench_probe *probe_out)
{
    int err = probe_store(cluster, probe_out);
    return err == HK_OK ? probe_trips(probe_out) : err;
}
