/* How fast one thread looks keys up, beside what this machine's memory allows, and how many bytes a
 * key costs. The limit is measured in the same run on the same pages: for the same sequence of
 * keys, the key's index line and then, through what stands there, its object's line; rolling, 16 in
 * flight. It is a lookup without hash, comparison, seqlock and copy. */
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/random.h"
#include "store/state.h"
#include "store/store.h"

#define IN_FLIGHT 16u
#define ZIPF_ALPHA 0.99

struct options {
    uint64_t keys;
    uint64_t memory_keys;
    uint64_t lookups;
    uint64_t seed;
    uint32_t value_bytes;
    uint32_t rounds;
};

struct bench {
    struct options options;
    struct store *store;
    struct store_thread *thread;
    uint64_t *stream;                 /* keys in the order of lookup: lookups, and IN_FLIGHT more */
    const _Atomic uint64_t **entries; /* the index entry of each */
};

/* This thread's CPU time: others on the machine disturb it less. */
static double now(void)
{
    struct timespec t;
    HK_ASSERT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *allocate(size_t bytes)
{
    void *at = malloc(bytes);
    if (at == NULL) {
        fprintf(stderr, "store_lookup_bench: out of memory\n");
        exit(1);
    }
    return at;
}

/* ---- Filling ---- */

static void fill(struct bench *b, uint64_t keys, uint32_t key_bytes)
{
    uint8_t key[16] = {0};
    uint8_t value[1024] = {0};
    for (uint64_t i = 0; i < keys; i++) {
        put_u64(key, i);
        put_u64(value, i);
        struct bytes k = bytes_of(key, key_bytes);
        struct key_meta meta = {.ts = stamp_make(1, 1), .flags = KEY_READABLE};
        struct store_ref ref;
        store_lock(b->store, b->thread, k, store_hash(b->store, k), &ref);
        int err = store_set(&ref, &meta, bytes_of(value, b->options.value_bytes), false);
        store_unlock(&ref);
        if (err != HK_OK) {
            fprintf(stderr, "store_lookup_bench: %s\n", hk_err_text(err));
            exit(1);
        }
        store_quiescent(b->thread);
    }
}

static void open_store(struct bench *b, uint64_t keys_expected)
{
    struct store_config config = {.keys_expected = keys_expected, .seed = b->options.seed};
    HK_ASSERT(store_create(&config, &b->store) == HK_OK);
    HK_ASSERT(store_thread_register(b->store, &b->thread) == HK_OK);
}

static void close_store(struct bench *b)
{
    store_thread_unregister(b->thread);
    store_destroy(b->store);
}

/* ---- The sequence of keys ---- */

static void make_uniform(struct bench *b)
{
    struct random r;
    random_init(&r, b->options.seed);
    for (uint64_t i = 0; i < b->options.lookups + IN_FLIGHT; i++) {
        b->stream[i] = random_below(&r, b->options.keys);
    }
}

/* Zipf by rejection-free inversion (Gray et al., 1994), ranks scattered over the keys. */
static void make_zipf(struct bench *b)
{
    struct random r;
    random_init(&r, b->options.seed + 1);
    double n = (double)b->options.keys, zeta = 0.0;
    for (uint64_t i = 1; i <= b->options.keys; i++) {
        zeta += pow((double)i, -ZIPF_ALPHA);
    }
    double theta = 1.0 / (1.0 - ZIPF_ALPHA);
    double zeta2 = 1.0 + pow(0.5, ZIPF_ALPHA);
    double eta = (1.0 - pow(2.0 / n, 1.0 - ZIPF_ALPHA)) / (1.0 - zeta2 / zeta);
    for (uint64_t i = 0; i < b->options.lookups + IN_FLIGHT; i++) {
        double u = (double)(random_next(&r) >> 11) * 0x1p-53;
        double uz = u * zeta;
        uint64_t rank = uz < 1.0     ? 0
                        : uz < zeta2 ? 1
                                     : (uint64_t)(n * pow(eta * u - eta + 1.0, theta));
        rank = rank < b->options.keys ? rank : b->options.keys - 1;
        b->stream[i] = rank * 0x9e3779b97f4a7c15u % b->options.keys;
    }
}

static void find_entries(struct bench *b)
{
    for (uint64_t i = 0; i < b->options.lookups + IN_FLIGHT; i++) {
        uint8_t key[8];
        put_u64(key, b->stream[i]);
        struct bytes k = bytes_of(key, 8);
        struct store_ref ref;
        store_lock(b->store, b->thread, k, store_hash(b->store, k), &ref);
        b->entries[i] = index_locate(ref.bucket, k, ref.hash);
        store_unlock(&ref);
    }
}

/* ---- What is measured; each returns millions a second ---- */

static double measure_limit(const struct bench *b)
{
    const struct object *ring[IN_FLIGHT] = {NULL};
    uint64_t n = b->options.lookups, sum = 0;
    double start = now();
    for (uint64_t i = 0; i < IN_FLIGHT; i++) {
        __builtin_prefetch((const void *)b->entries[i]);
    }
    for (uint64_t i = 0; i < IN_FLIGHT / 2; i++) {
        ring[i] = entry_object(atomic_load_explicit(b->entries[i], memory_order_relaxed));
        __builtin_prefetch(ring[i]);
    }
    for (uint64_t i = 0; i < n; i++) {
        __builtin_prefetch((const void *)b->entries[i + IN_FLIGHT]);
        uint64_t j = i + IN_FLIGHT / 2;
        const struct object *o =
            entry_object(atomic_load_explicit(b->entries[j], memory_order_relaxed));
        __builtin_prefetch(o);
        ring[j % IN_FLIGHT] = o;
        sum += atomic_load_explicit(&ring[i % IN_FLIGHT]->ts, memory_order_relaxed);
    }
    double seconds = now() - start;
    HK_ASSERT(sum == n * stamp_make(1, 1));
    return (double)n / seconds * 1e-6;
}

static double measure_hash(const struct bench *b)
{
    uint64_t n = b->options.lookups, sum = 0;
    double start = now();
    for (uint64_t i = 0; i < n; i++) {
        uint8_t key[8];
        put_u64(key, b->stream[i]);
        sum += store_hash(b->store, bytes_of(key, 8));
    }
    double seconds = now() - start;
    HK_ASSERT(sum != 0);
    return (double)n / seconds * 1e-6;
}

static double measure_single(const struct bench *b)
{
    uint64_t n = b->options.lookups, wrong = 0;
    uint64_t buffer[128];
    double start = now();
    for (uint64_t i = 0; i < n; i++) {
        uint8_t key[8];
        put_u64(key, b->stream[i]);
        struct bytes k = bytes_of(key, 8);
        struct store_value v;
        int err =
            store_read(b->store, b->thread, k, store_hash(b->store, k), buffer, sizeof(buffer), &v);
        wrong += err != HK_OK || !v.found || buffer[0] != b->stream[i];
        if (i % IN_FLIGHT == 0) {
            store_quiescent(b->thread);
        }
    }
    double seconds = now() - start;
    HK_ASSERT(wrong == 0);
    return (double)n / seconds * 1e-6;
}

static double measure_batch(const struct bench *b, uint32_t batch)
{
    uint64_t n = b->options.lookups / batch * batch, wrong = 0;
    /* A line more than the longest value, or all buffers would compete for a few sets of the
     * cache. */
    static uint64_t space[STORE_BATCH_MAX][STORE_INLINE_MAX / 8 + 8];
    struct bytes keys[STORE_BATCH_MAX];
    uint64_t hashes[STORE_BATCH_MAX];
    void *buffers[STORE_BATCH_MAX];
    struct store_value values[STORE_BATCH_MAX];
    int errs[STORE_BATCH_MAX];
    for (uint32_t j = 0; j < batch; j++) {
        buffers[j] = space[j];
    }
    double start = now();
    for (uint64_t i = 0; i < n; i += batch) {
        for (uint32_t j = 0; j < batch; j++) {
            struct bytes k = bytes_of(&b->stream[i + j], 8);
            hashes[j] = store_hash(b->store, k);
            keys[j] = k;
        }
        store_read_batch(b->store, b->thread, batch, keys, hashes, buffers, STORE_INLINE_MAX,
                         values, errs);
        for (uint32_t j = 0; j < batch; j++) {
            wrong += errs[j] != HK_OK || !values[j].found || space[j][0] != b->stream[i + j];
        }
        store_quiescent(b->thread);
    }
    double seconds = now() - start;
    HK_ASSERT(wrong == 0);
    return (double)n / seconds * 1e-6;
}

/* Values overwritten in place, the buckets and objects of a batch on their way before its first. */
static double measure_set(const struct bench *b)
{
    uint64_t n = b->options.lookups / IN_FLIGHT * IN_FLIGHT;
    uint64_t hashes[IN_FLIGHT], value[128] = {0};
    struct key_meta meta = {.ts = stamp_make(1, 1), .flags = KEY_READABLE};
    double start = now();
    for (uint64_t i = 0; i < n; i += IN_FLIGHT) {
        for (uint32_t j = 0; j < IN_FLIGHT; j++) {
            hashes[j] = store_hash(b->store, bytes_of(&b->stream[i + j], 8));
            store_prefetch_bucket(b->store, hashes[j]);
        }
        for (uint32_t j = 0; j < IN_FLIGHT; j++) {
            store_prefetch_object(b->store, hashes[j]);
        }
        for (uint32_t j = 0; j < IN_FLIGHT; j++) {
            struct store_ref ref;
            value[0] = b->stream[i + j];
            store_lock(b->store, b->thread, bytes_of(&b->stream[i + j], 8), hashes[j], &ref);
            HK_ASSERT(store_set(&ref, &meta, bytes_of(value, b->options.value_bytes), false) ==
                      HK_OK);
            store_unlock(&ref);
        }
        store_quiescent(b->thread);
    }
    double seconds = now() - start;
    return (double)n / seconds * 1e-6;
}

static double best(double a, double b)
{
    return a > b ? a : b;
}

static void print_rate(const char *what, double rate, double limit)
{
    printf("  %-29s %7.1f M/s  %5.2f\n", what, rate, rate / limit);
}

/* The rounds alternate, so that a disturbance of the machine meets all of them. */
static void measure(struct bench *b, const char *name)
{
    find_entries(b);
    double limit = 0, hash = 0, single = 0, batch_16 = 0, batch = 0, set = 0;
    for (uint32_t i = 0; i < b->options.rounds; i++) {
        limit = best(limit, measure_limit(b));
        single = best(single, measure_single(b));
        batch_16 = best(batch_16, measure_batch(b, 16));
        batch = best(batch, measure_batch(b, STORE_BATCH_MAX));
        set = best(set, measure_set(b));
        hash = best(hash, measure_hash(b));
    }
    printf("%s\n", name);
    print_rate("limit", limit, limit);
    print_rate("reads, one at a time", single, limit);
    print_rate("reads, batches of 16", batch_16, limit);
    print_rate("reads, batches of 64", batch, limit);
    print_rate("sets in place, 16 prefetched", set, limit);
    print_rate("hashes alone", hash, limit);
}

static void measure_lookups(struct bench *b)
{
    open_store(b, b->options.keys);
    fill(b, b->options.keys, 8);
    size_t n = b->options.lookups + IN_FLIGHT;
    b->stream = allocate(n * sizeof(*b->stream));
    b->entries = allocate(n * sizeof(*b->entries));
    printf("%" PRIu64 " keys of 8 + %" PRIu32 " bytes, %" PRIu64 " lookups, best of %" PRIu32
           " rounds of CPU time; then the part of the limit\n",
           b->options.keys, b->options.value_bytes, b->options.lookups, b->options.rounds);
    make_uniform(b);
    measure(b, "uniform");
    make_zipf(b);
    measure(b, "zipf 0.99");
    free(b->stream);
    free(b->entries);
    close_store(b);
}

/* Resident bytes of this process, by the kernel's account. */
static uint64_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    char line[256];
    uint64_t kib = 0;
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "VmRSS: %" SCNu64, &kib) == 1) {
            break;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return kib * 1024u;
}

static void measure_memory(struct bench *b)
{
    uint64_t before = resident_bytes(), keys = b->options.memory_keys;
    open_store(b, 0);
    double start = now();
    fill(b, keys, 16);
    double seconds = now() - start;
    struct store_stats s;
    store_stats(b->store, &s);
    double n = (double)keys, payload = 16.0 + b->options.value_bytes;
    printf("%" PRIu64 " keys of 16 + %" PRIu32 " bytes, from a tiny index: %.2f M inserts/s\n"
           "  bytes a key beyond key and value: %.1f used, %.1f mapped, %.1f resident\n"
           "  %" PRIu64 " buckets, %" PRIu64 " overflow buckets\n",
           keys, b->options.value_bytes, n / seconds * 1e-6, (double)s.bytes_used / n - payload,
           (double)s.bytes_mapped / n - payload, (double)(resident_bytes() - before) / n - payload,
           s.buckets, s.overflow_buckets);
    close_store(b);
}

/* ---- Options ---- */

static void print_help(void)
{
    puts("store_lookup_bench: lookups a second beside the machine's limit, and bytes a key\n"
         "  --keys N         keys for lookups (1000000)\n"
         "  --lookups N      lookups in a round (1000000)\n"
         "  --rounds N       rounds; the best counts (10)\n"
         "  --memory-keys N  keys for the measurement of memory, 0 for none (10000000)\n"
         "  --value-bytes N  bytes of a value, 8 to 1024 (32)\n"
         "  --seed N         of the random sequences and the hash (1)\n"
         "  --help           this text");
}

static uint64_t parse_number(const char *text, uint64_t low, uint64_t high)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n < low || n > high) {
        fprintf(stderr, "store_lookup_bench: %s is not a number from %" PRIu64 " to %" PRIu64 "\n",
                text, low, high);
        exit(2);
    }
    return n;
}

static struct options parse_options(int argc, char **argv)
{
    static const struct option table[] = {
        {"keys", required_argument, NULL, 'k'},
        {"lookups", required_argument, NULL, 'l'},
        {"rounds", required_argument, NULL, 'r'},
        {"memory-keys", required_argument, NULL, 'm'},
        {"value-bytes", required_argument, NULL, 'v'},
        {"seed", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {1000000, 10000000, 1000000, 1, 32, 10};
    int c;
    while ((c = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        switch (c) {
        case 'k':
            o.keys = parse_number(optarg, 2, 1000000000u);
            break;
        case 'l':
            o.lookups = parse_number(optarg, STORE_BATCH_MAX, 1000000000u);
            break;
        case 'r':
            o.rounds = (uint32_t)parse_number(optarg, 1, 1000);
            break;
        case 'm':
            o.memory_keys = parse_number(optarg, 0, 1000000000u);
            break;
        case 'v':
            o.value_bytes = (uint32_t)parse_number(optarg, 8, 1024);
            break;
        case 's':
            o.seed = parse_number(optarg, 0, UINT64_MAX);
            break;
        case 'h':
            print_help();
            exit(0);
        default:
            exit(2);
        }
    }
    return o;
}

int main(int argc, char **argv)
{
    struct bench bench = {.options = parse_options(argc, argv)};
    measure_lookups(&bench);
    if (bench.options.memory_keys > 0) {
        measure_memory(&bench);
    }
    return 0;
}
