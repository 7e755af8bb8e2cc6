/* The ordered index and its records beside the hash index and, where it was found when this was
 * built, LMDB: insertions, lookups, scans of 100 keys, bytes a key; all in one run by one thread,
 * in rounds that go through all of them, so that a disturbance of the machine meets all. */
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#ifdef HORKOS_LMDB
#include <lmdb.h>
#endif

#include "base/assert.h"
#include "base/random.h"
#include "store/record.h"
#include "store/store.h"
#include "store/tree.h"

#define ROUNDS_MAX 99u
#define SCAN_KEYS 100u
#define SCAN_AHEAD 12u /* records on their way while one is read */
#define VALUE_BYTES 32u

/* ---- What is measured ---- */

enum figure {
    INSERT_TREE,
    INSERT_BOTH,
    INSERT_HASH,
    INSERT_LMDB,
    FIND_TREE,
    FIND_BOTH,
    FIND_RECORD,
    FIND_HASH,
    FIND_LMDB,
    SCAN_TREE,
    SCAN_BACK,
    SCAN_BOTH,
    SCAN_LMDB,
    FIGURES,
};

/* base is the figure that a ratio is taken to. */
static const struct {
    const char *name;
    enum figure base;
} figures[FIGURES] = {
    [INSERT_TREE] = {"insert: tree", INSERT_HASH},
    [INSERT_BOTH] = {"insert: record and tree", INSERT_HASH},
    [INSERT_HASH] = {"insert: hash index", INSERT_HASH},
    [INSERT_LMDB] = {"insert: LMDB", INSERT_HASH},
    [FIND_TREE] = {"lookup: tree (hint)", FIND_HASH},
    [FIND_BOTH] = {"lookup: tree and record", FIND_HASH},
    [FIND_RECORD] = {"lookup: record by its hint", FIND_HASH},
    [FIND_HASH] = {"lookup: hash index", FIND_HASH},
    [FIND_LMDB] = {"lookup: LMDB", FIND_HASH},
    [SCAN_TREE] = {"scan of 100: tree (hints)", SCAN_LMDB},
    [SCAN_BACK] = {"scan of 100: tree, backwards", SCAN_LMDB},
    [SCAN_BOTH] = {"scan of 100: tree and records", SCAN_LMDB},
    [SCAN_LMDB] = {"scan of 100: LMDB", SCAN_LMDB},
};

enum kind { KIND_RANDOM, KIND_ASCENDING, KIND_TEXT, KINDS };

static const char *const kind_names[KINDS] = {
    [KIND_RANDOM] = "random 8-byte keys",
    [KIND_ASCENDING] = "8-byte keys, inserted in ascending order",
    [KIND_TEXT] = "20-byte keys (user and a number), in random order",
};

struct options {
    uint64_t keys;
    uint64_t lookups;
    uint64_t scans;
    uint64_t seed;
    uint32_t rounds;
    uint32_t batch;
    const char *folder;
};

struct bench {
    struct options options;
    enum kind kind;
    uint32_t *order; /* of insertion: key numbers */
    struct store *store;
    struct store_thread *thread;
    struct tree *tree;
    struct records *records;
    uint64_t *hints;
    struct store *hash;
    struct store_thread *hash_thread;
    double bytes_tree, bytes_hash;
    double seconds[FIGURES][ROUNDS_MAX];
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
        fprintf(stderr, "store_tree_bench: out of memory\n");
        exit(1);
    }
    return at;
}

/* ---- Keys ---- */

#define KEY_BYTES_MAX 24u

static void put_big(uint8_t *at, uint64_t v)
{
    for (uint32_t i = 0; i < 8; i++) {
        at[i] = (uint8_t)(v >> (56u - 8u * i));
    }
}

/* Key number i; numbers in order are keys in order, except of random ones. */
static struct bytes key_make(const struct bench *b, uint8_t *at, uint64_t i)
{
    if (b->kind == KIND_TEXT) {
        char text[KEY_BYTES_MAX];
        snprintf(text, sizeof(text), "user%016" PRIu64, i);
        memcpy(at, text, 20);
        return bytes_of(at, 20);
    }
    if (b->kind == KIND_RANDOM) {
        i *= 0x9e3779b97f4a7c15u; /* odd: every number once */
        i ^= i >> 32;
        i *= 0xd6e8feb86659fd93u;
    }
    put_big(at, i);
    return bytes_of(at, 8);
}

static struct bytes value_make(uint8_t *at, uint64_t i)
{
    memset(at, 0, VALUE_BYTES);
    put_u64(at, i);
    return bytes_of(at, VALUE_BYTES);
}

static void make_order(struct bench *b)
{
    struct random r;
    random_init(&r, b->options.seed);
    for (uint64_t i = 0; i < b->options.keys; i++) {
        b->order[i] = (uint32_t)i;
    }
    for (uint64_t i = b->options.keys - 1; b->kind != KIND_ASCENDING && i > 0; i--) {
        uint64_t j = random_below(&r, i + 1);
        uint32_t t = b->order[i];
        b->order[i] = b->order[j];
        b->order[j] = t;
    }
}

/* ---- The tree and its records ---- */

static void open_store(uint64_t seed, struct store **store_out, struct store_thread **thread_out)
{
    struct store_config config = {.seed = seed};
    HK_ASSERT(store_create(&config, store_out) == HK_OK);
    HK_ASSERT(store_thread_register(*store_out, thread_out) == HK_OK);
}

static double fill_tree(struct bench *b)
{
    uint8_t at[KEY_BYTES_MAX];
    double start = now();
    for (uint64_t i = 0; i < b->options.keys; i++) {
        uint64_t id = b->order[i];
        HK_ASSERT(tree_insert(b->tree, b->thread, key_make(b, at, id), b->hints[id], NULL) ==
                  HK_OK);
        store_quiescent(b->thread);
    }
    return now() - start;
}

static double fill_records(struct bench *b)
{
    uint8_t at[KEY_BYTES_MAX], value[VALUE_BYTES];
    double start = now();
    for (uint64_t i = 0; i < b->options.keys; i++) {
        uint64_t id = b->order[i];
        HK_ASSERT(record_create(b->records, b->thread, key_make(b, at, id), value_make(value, id),
                                &b->hints[id]) == HK_OK);
    }
    return now() - start;
}

static uint64_t used_bytes(const struct store *store)
{
    struct store_stats stats;
    store_stats(store, &stats);
    return stats.bytes_used;
}

static void open_tree(struct bench *b, uint32_t round)
{
    open_store(b->options.seed, &b->store, &b->thread);
    HK_ASSERT(records_create(b->store, b->thread, &b->records) == HK_OK);
    double records = fill_records(b);
    uint64_t before = used_bytes(b->store);
    HK_ASSERT(tree_create(b->store, b->thread, &b->tree) == HK_OK);
    double tree = fill_tree(b);
    b->bytes_tree = (double)(used_bytes(b->store) - before) / (double)b->options.keys;
    b->seconds[INSERT_TREE][round] = tree;
    b->seconds[INSERT_BOTH][round] = tree + records;
}

/* with_record: what the hint names is read as well; with_tree: the hint is looked up. */
static double find_in_tree(struct bench *b, bool with_tree, bool with_record)
{
    struct random r;
    uint8_t at[KEY_BYTES_MAX];
    uint64_t buffer[STORE_INLINE_MAX / 8], wrong = 0;
    random_init(&r, b->options.seed + 1);
    double start = now();
    for (uint64_t i = 0; i < b->options.lookups; i++) {
        uint64_t id = random_below(&r, b->options.keys), hint = b->hints[id];
        struct bytes key = key_make(b, at, id), value;
        if (with_tree) {
            wrong += tree_find(b->tree, b->thread, key, &hint) != HK_OK || hint != b->hints[id];
        }
        if (with_record) {
            wrong += record_read(b->records, b->thread, hint, key, buffer, sizeof(buffer),
                                 &value) != HK_OK ||
                     buffer[0] != id;
        }
        store_quiescent(b->thread);
    }
    double seconds = now() - start;
    HK_ASSERT(wrong == 0);
    return seconds;
}

static double scan_tree(struct bench *b, enum tree_direction direction, bool with_record)
{
    struct random r;
    uint8_t at[KEY_BYTES_MAX];
    uint64_t buffer[STORE_INLINE_MAX / 8], wrong = 0, met = 0;
    random_init(&r, b->options.seed + 2);
    double start = now();
    for (uint64_t i = 0; i < b->options.scans; i++) {
        struct tree_cursor c;
        struct bytes key, value;
        uint64_t hint;
        tree_seek(b->tree, b->thread, key_make(b, at, random_below(&r, b->options.keys)), false,
                  direction, &c);
        for (uint32_t j = 0; with_record && j < SCAN_AHEAD && tree_peek(&c, j, &hint); j++) {
            record_prefetch(b->records, hint, false);
        }
        for (uint32_t j = 0; j < SCAN_KEYS && tree_next(&c, &key, &hint); j++) {
            met++;
            if (with_record) {
                uint64_t later;
                wrong += record_read(b->records, b->thread, hint, key, buffer, sizeof(buffer),
                                     &value) != HK_OK;
                if (tree_peek(&c, SCAN_AHEAD, &later)) {
                    record_prefetch(b->records, later, false);
                }
            }
        }
        store_quiescent(b->thread);
    }
    double seconds = now() - start;
    HK_ASSERT(wrong == 0 && met > b->options.scans);
    return seconds;
}

static void close_tree(struct bench *b)
{
    HK_ASSERT(tree_check(b->tree) == NULL);
    store_thread_unregister(b->thread);
    store_destroy(b->store);
}

/* ---- The hash index ---- */

static double fill_hash(struct bench *b)
{
    uint8_t at[KEY_BYTES_MAX], value[VALUE_BYTES];
    struct key_meta meta = {.ts = stamp_make(1, 1), .flags = KEY_READABLE};
    open_store(b->options.seed, &b->hash, &b->hash_thread);
    double start = now();
    for (uint64_t i = 0; i < b->options.keys; i++) {
        struct store_ref ref;
        struct bytes key = key_make(b, at, b->order[i]);
        store_lock(b->hash, b->hash_thread, key, store_hash(b->hash, key), &ref);
        HK_ASSERT(store_set(&ref, &meta, value_make(value, b->order[i]), false) == HK_OK);
        store_unlock(&ref);
        store_quiescent(b->hash_thread);
    }
    double seconds = now() - start;
    b->bytes_hash = (double)used_bytes(b->hash) / (double)b->options.keys;
    return seconds;
}

static double find_in_hash(struct bench *b)
{
    struct random r;
    uint8_t at[KEY_BYTES_MAX];
    uint64_t buffer[STORE_INLINE_MAX / 8], wrong = 0;
    random_init(&r, b->options.seed + 1);
    double start = now();
    for (uint64_t i = 0; i < b->options.lookups; i++) {
        uint64_t id = random_below(&r, b->options.keys);
        struct bytes key = key_make(b, at, id);
        struct store_value v;
        int err = store_read(b->hash, b->hash_thread, key, store_hash(b->hash, key), buffer,
                             sizeof(buffer), &v);
        wrong += err != HK_OK || !v.found || buffer[0] != id;
        store_quiescent(b->hash_thread);
    }
    double seconds = now() - start;
    HK_ASSERT(wrong == 0);
    return seconds;
}

static void close_hash(struct bench *b)
{
    store_thread_unregister(b->hash_thread);
    store_destroy(b->hash);
}

/* ---- LMDB: no waiting for a disk, one reader's transaction for all reads ---- */

#ifdef HORKOS_LMDB
struct lmdb {
    char folder[256];
    MDB_env *env;
    MDB_dbi dbi;
    MDB_txn *reader;
};

static void must(int err)
{
    if (err != 0) {
        fprintf(stderr, "store_tree_bench: LMDB: %s\n", mdb_strerror(err));
        exit(1);
    }
}

static double fill_lmdb(struct bench *b, struct lmdb *l)
{
    uint8_t at[KEY_BYTES_MAX], value[VALUE_BYTES];
    MDB_txn *txn = NULL;
    snprintf(l->folder, sizeof(l->folder), "%s/store_tree_bench.XXXXXX", b->options.folder);
    if (mkdtemp(l->folder) == NULL) {
        fprintf(stderr, "store_tree_bench: no folder in %s\n", b->options.folder);
        exit(1);
    }
    must(mdb_env_create(&l->env));
    must(mdb_env_set_mapsize(l->env, (size_t)1 << 34));
    must(mdb_env_open(l->env, l->folder,
                      MDB_NOSYNC | MDB_WRITEMAP | MDB_NOLOCK | MDB_NORDAHEAD | MDB_NOMEMINIT,
                      0600));
    double start = now();
    for (uint64_t i = 0; i < b->options.keys; i++) {
        if (txn == NULL) {
            must(mdb_txn_begin(l->env, NULL, 0, &txn));
            must(mdb_dbi_open(txn, NULL, 0, &l->dbi));
        }
        struct bytes key = key_make(b, at, b->order[i]), v = value_make(value, b->order[i]);
        MDB_val k = {key.n, at}, data = {v.n, value};
        must(mdb_put(txn, l->dbi, &k, &data,
                     b->kind == KIND_ASCENDING ? MDB_APPEND : MDB_NOOVERWRITE));
        if (i % b->options.batch == b->options.batch - 1u || i == b->options.keys - 1u) {
            must(mdb_txn_commit(txn));
            txn = NULL;
        }
    }
    double seconds = now() - start;
    must(mdb_txn_begin(l->env, NULL, MDB_RDONLY, &l->reader));
    return seconds;
}

static double find_in_lmdb(struct bench *b, struct lmdb *l)
{
    struct random r;
    uint8_t at[KEY_BYTES_MAX];
    uint64_t wrong = 0;
    random_init(&r, b->options.seed + 1);
    double start = now();
    for (uint64_t i = 0; i < b->options.lookups; i++) {
        uint64_t id = random_below(&r, b->options.keys);
        MDB_val k = {key_make(b, at, id).n, at}, data;
        wrong += mdb_get(l->reader, l->dbi, &k, &data) != 0 || get_u64(data.mv_data) != id;
    }
    double seconds = now() - start;
    HK_ASSERT(wrong == 0);
    return seconds;
}

static double scan_lmdb(struct bench *b, struct lmdb *l)
{
    struct random r;
    uint8_t at[KEY_BYTES_MAX];
    uint64_t met = 0, sum = 0;
    MDB_cursor *c;
    random_init(&r, b->options.seed + 2);
    must(mdb_cursor_open(l->reader, l->dbi, &c));
    double start = now();
    for (uint64_t i = 0; i < b->options.scans; i++) {
        MDB_val k = {key_make(b, at, random_below(&r, b->options.keys)).n, at}, data;
        int err = mdb_cursor_get(c, &k, &data, MDB_SET_RANGE);
        for (uint32_t j = 0; j < SCAN_KEYS && err == 0; j++) {
            met++;
            sum += get_u64(data.mv_data);
            err = mdb_cursor_get(c, &k, &data, MDB_NEXT);
        }
    }
    double seconds = now() - start;
    mdb_cursor_close(c);
    HK_ASSERT(met > b->options.scans && sum > 0);
    return seconds;
}

static void close_lmdb(struct lmdb *l)
{
    char file[300];
    mdb_txn_abort(l->reader);
    mdb_env_close(l->env);
    snprintf(file, sizeof(file), "%s/data.mdb", l->folder);
    unlink(file);
    rmdir(l->folder);
}

static void measure_lmdb(struct bench *b, uint32_t round)
{
    struct lmdb l;
    b->seconds[INSERT_LMDB][round] = fill_lmdb(b, &l);
    b->seconds[FIND_LMDB][round] = find_in_lmdb(b, &l);
    b->seconds[SCAN_LMDB][round] = scan_lmdb(b, &l);
    close_lmdb(&l);
}
#else
static void measure_lmdb(struct bench *b, uint32_t round)
{
    (void)b;
    (void)round;
}
#endif

/* ---- Rounds and what comes of them ---- */

static void measure_round(struct bench *b, uint32_t round)
{
    open_tree(b, round);
    b->seconds[INSERT_HASH][round] = fill_hash(b);
    b->seconds[FIND_TREE][round] = find_in_tree(b, true, false);
    b->seconds[FIND_HASH][round] = find_in_hash(b);
    b->seconds[FIND_BOTH][round] = find_in_tree(b, true, true);
    b->seconds[FIND_RECORD][round] = find_in_tree(b, false, true);
    b->seconds[SCAN_TREE][round] = scan_tree(b, TREE_FORWARDS, false);
    b->seconds[SCAN_BACK][round] = scan_tree(b, TREE_BACKWARDS, false);
    b->seconds[SCAN_BOTH][round] = scan_tree(b, TREE_FORWARDS, true);
    close_hash(b);
    close_tree(b);
    measure_lmdb(b, round);
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(const double *values, uint32_t n)
{
    double sorted[ROUNDS_MAX];
    memcpy(sorted, values, n * sizeof(*values));
    qsort(sorted, n, sizeof(*sorted), compare_doubles);
    return n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0;
}

static double operations(const struct bench *b, enum figure f)
{
    uint64_t n = f <= INSERT_LMDB ? b->options.keys
                 : f <= FIND_LMDB ? b->options.lookups
                                  : b->options.scans;
    return (double)n;
}

/* Medians of the rounds; a ratio is the median of each round's own, rate over rate. */
static void print_figures(const struct bench *b)
{
    uint32_t n = b->options.rounds;
    printf("%s\n", kind_names[b->kind]);
    for (uint32_t f = 0; f < FIGURES; f++) {
        enum figure base = figures[f].base;
        double ratios[ROUNDS_MAX], seconds = median(b->seconds[f], n);
        if (seconds == 0.0) {
            continue;
        }
        for (uint32_t i = 0; i < n; i++) {
            ratios[i] = b->seconds[base][i] / b->seconds[f][i];
        }
        printf("  %-30s %8.0f ns", figures[f].name, seconds * 1e9 / operations(b, (enum figure)f));
        if (b->seconds[base][0] > 0.0) {
            printf("  %5.2f", median(ratios, n));
        }
        printf("\n");
    }
    printf("  bytes a key: tree %.1f, hash index with key and value %.1f\n", b->bytes_tree,
           b->bytes_hash);
    fflush(stdout);
}

/* ---- Options ---- */

static void print_help(void)
{
    puts("store_tree_bench: the ordered index beside the hash index and LMDB, CPU time of each\n"
         "operation, and rates as parts of the hash index's (scans: of LMDB's)\n"
         "  --keys N     keys (1000000)\n"
         "  --lookups N  lookups in a round (1000000)\n"
         "  --scans N    scans of 100 keys in a round (50000)\n"
         "  --rounds N   rounds; the median counts (5)\n"
         "  --batch N    insertions in a transaction of LMDB (1000)\n"
         "  --dir D      where LMDB's file is for a while (/dev/shm)\n"
         "  --seed N     of the random sequences (1)\n"
         "  --help       this text");
}

static uint64_t parse_number(const char *text, uint64_t low, uint64_t high)
{
    char *end;
    unsigned long long n = strtoull(text, &end, 10);
    if (*text == '\0' || *end != '\0' || n < low || n > high) {
        fprintf(stderr, "store_tree_bench: %s is not a number from %" PRIu64 " to %" PRIu64 "\n",
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
        {"scans", required_argument, NULL, 'c'},
        {"rounds", required_argument, NULL, 'r'},
        {"batch", required_argument, NULL, 'b'},
        {"dir", required_argument, NULL, 'd'},
        {"seed", required_argument, NULL, 's'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    struct options o = {.keys = 1000000,
                        .lookups = 1000000,
                        .scans = 50000,
                        .rounds = 5,
                        .batch = 1000,
                        .folder = "/dev/shm",
                        .seed = 1};
    int c;
    while ((c = getopt_long(argc, argv, "h", table, NULL)) != -1) {
        switch (c) {
        case 'k':
            o.keys = parse_number(optarg, 1000, 1000000000u);
            break;
        case 'l':
            o.lookups = parse_number(optarg, 1, 1000000000u);
            break;
        case 'c':
            o.scans = parse_number(optarg, 1, 1000000000u);
            break;
        case 'r':
            o.rounds = (uint32_t)parse_number(optarg, 1, ROUNDS_MAX);
            break;
        case 'b':
            o.batch = (uint32_t)parse_number(optarg, 1, 1000000000u);
            break;
        case 'd':
            o.folder = optarg;
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
    static struct bench b;
    b.options = parse_options(argc, argv);
    b.order = allocate(b.options.keys * sizeof(*b.order));
    b.hints = allocate(b.options.keys * sizeof(*b.hints));
    printf("%" PRIu64 " keys, values of %u bytes, %" PRIu64 " lookups, %" PRIu64
           " scans; median CPU time of %" PRIu32 " rounds, and the rate as a part\n",
           b.options.keys, VALUE_BYTES, b.options.lookups, b.options.scans, b.options.rounds);
#ifndef HORKOS_LMDB
    printf("without LMDB: liblmdb-dev was not there when this was built\n");
#endif
    for (uint32_t kind = 0; kind < KINDS; kind++) {
        b.kind = (enum kind)kind;
        make_order(&b);
        memset(b.seconds, 0, sizeof(b.seconds));
        for (uint32_t round = 0; round < b.options.rounds; round++) {
            measure_round(&b, round);
        }
        print_figures(&b);
    }
    free(b.order);
    free(b.hints);
    return 0;
}
