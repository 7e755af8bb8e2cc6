/* What the locks of a memory server's table cost: reads, writes, insertions and scans under locks
 * that nobody contends for, beside the bare index and records; in one run by one thread, in rounds
 * that go through all of them, so that a disturbance of the machine meets all. */
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/random.h"
#include "node/lotus_table.h"
#include "store/record.h"
#include "store/tree.h"

#define ROUNDS_MAX 99u
#define TRY_REQUESTS_MAX 64u
#define SCAN_ROWS 100u
#define VALUE_BYTES 100u

enum figure {
    BARE_TREE,
    BARE_HINT,
    READ_KEY,
    READ_HINT,
    READ_AHEAD,
    WRITE_HINT,
    INSERT,
    BARE_SCAN,
    SCAN,
    FIGURES
};

static const char *const names[FIGURES] = {
    [BARE_TREE] = "read: index and record, bare",
    [BARE_HINT] = "read: record by its hint, bare",
    [READ_KEY] = "read under S: by key",
    [READ_HINT] = "read under S: by hint",
    [READ_AHEAD] = "read under S: by hint, all of a try on their way first",
    [WRITE_HINT] = "write: X by hint, reserve, prepare, write, end",
    [INSERT] = "insert: X, ghost, reserve, prepare, write, end",
    [BARE_SCAN] = "row of a scan of 100: index and records, bare",
    [SCAN] = "row of a scan of 100: under S of rows and gaps",
};

struct bench {
    uint64_t keys, operations, seed;
    uint32_t rounds, requests;
    struct store *store;
    struct store_thread *thread;
    struct lotus_table *table;
    struct lotus_holder holder;
    struct tree *tree;
    struct records *records;
    uint64_t *hints;     /* of the bare ones, by key number */
    uint64_t *row_hints; /* of the table's */
    uint64_t inserted;   /* keys behind those */
    struct random random;
    double ns[FIGURES][ROUNDS_MAX];
    uint64_t buffer[STORE_INLINE_MAX / 8u];
};

/* This thread's CPU time: others on the machine disturb it less. */
static double now_ns(void)
{
    struct timespec t;
    HK_ASSERT(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

struct key {
    uint8_t at[8];
};

/* Spread over the whole range, the same number always the same. */
static struct bytes key_of(struct key *k, uint64_t number)
{
    uint64_t v = number * UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < 8; i++) {
        k->at[i] = (uint8_t)(v >> (56u - 8u * i));
    }
    return bytes_of(k->at, 8);
}

static void woken(void *context, uint32_t status, uint64_t generation)
{
    (void)context, (void)status, (void)generation;
}

static void load(struct bench *b)
{
    struct store_config memory = {.keys_expected = 0};
    struct lotus_config lotus = {.locks_max = 1u << 20, .try_locks_max = 65536, .grace_us = 1};
    HK_ASSERT(store_create(&memory, &b->store) == HK_OK);
    HK_ASSERT(store_thread_register(b->store, &b->thread) == HK_OK);
    struct lotus_table_config config = {
        .lotus = &lotus, .store = b->store, .statuses_n = 4096, .woken = woken};
    HK_ASSERT(lotus_table_create(&config, b->thread, &b->table) == HK_OK);
    HK_ASSERT(tree_create(b->store, b->thread, &b->tree) == HK_OK);
    HK_ASSERT(records_create(b->store, b->thread, &b->records) == HK_OK);
    uint8_t value[VALUE_BYTES] = {1};
    for (uint64_t i = 0; i < b->keys; i++) {
        struct key k;
        struct bytes key = key_of(&k, i);
        HK_ASSERT(record_create(b->records, b->thread, key, bytes_of(value, VALUE_BYTES),
                                &b->hints[i]) == HK_OK);
        HK_ASSERT(tree_insert(b->tree, b->thread, key, b->hints[i], NULL) == HK_OK);
        struct lotus_row row = {.key = key, .version = 1, .value = bytes_of(value, VALUE_BYTES)};
        HK_ASSERT(lotus_table_put(b->table, b->thread, &row) == TABLE_DONE);
    }
    for (uint64_t i = 0; i < b->keys; i++) {
        struct key k;
        struct lotus_row row;
        lotus_table_begin(b->table, &b->holder);
        HK_ASSERT(lotus_table_point(b->table, b->thread, &b->holder, key_of(&k, i), 0, LOCK_S,
                                    false, b->buffer, &row) == TABLE_DONE);
        b->row_hints[i] = row.hint;
        lotus_table_end(b->table, b->thread, &b->holder);
    }
    b->inserted = b->keys;
}

/* ---- One operation of each kind, or a try of them ---- */

static void bare(struct bench *b, bool by_hint)
{
    struct key k;
    struct bytes value;
    uint64_t number = random_below(&b->random, b->keys), hint = b->hints[number];
    struct bytes key = key_of(&k, number);
    if (!by_hint) {
        HK_ASSERT(tree_find(b->tree, b->thread, key, &hint) == HK_OK);
    }
    HK_ASSERT(record_read(b->records, b->thread, hint, key, b->buffer, STORE_INLINE_MAX, &value) ==
              HK_OK);
}

static void write_all(struct bench *b, struct bytes *keys)
{
    uint8_t value[VALUE_BYTES] = {2};
    for (uint32_t pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < b->requests; i++) {
            struct lotus_row row = {
                .key = keys[i], .version = 2, .value = bytes_of(value, VALUE_BYTES)};
            enum table_word word =
                pass == 0 ? lotus_table_reserve(b->table, b->thread, &b->holder, &row)
                          : lotus_table_write(b->table, b->thread, &b->holder, &row, 1);
            HK_ASSERT(word == TABLE_DONE);
        }
        HK_ASSERT(pass == 1 || lotus_table_prepare(b->table, &b->holder));
    }
}

static void try_of(struct bench *b, enum figure figure)
{
    struct key space[TRY_REQUESTS_MAX];
    struct bytes keys[TRY_REQUESTS_MAX];
    uint64_t hints[TRY_REQUESTS_MAX];
    struct lotus_row row;
    bool writes = figure == WRITE_HINT || figure == INSERT;
    for (uint32_t i = 0; i < b->requests; i++) {
        /* Distinct: each from a part of its own. */
        uint64_t part = b->keys / b->requests;
        uint64_t number =
            figure == INSERT ? b->inserted++ : part * i + random_below(&b->random, part);
        keys[i] = key_of(&space[i], number);
        hints[i] = figure == READ_KEY || figure == INSERT ? 0 : b->row_hints[number];
        if (figure == READ_AHEAD) {
            lotus_table_prefetch(b->table, keys[i], hints[i], true);
        }
    }
    lotus_table_begin(b->table, &b->holder);
    for (uint32_t i = 0; i < b->requests; i++) {
        HK_ASSERT(lotus_table_point(b->table, b->thread, &b->holder, keys[i], hints[i],
                                    writes ? LOCK_X : LOCK_S, true, b->buffer, &row) == TABLE_DONE);
    }
    if (writes) {
        write_all(b, keys);
    }
    lotus_table_end(b->table, b->thread, &b->holder);
}

static void bare_scan(struct bench *b)
{
    struct tree_cursor c;
    struct key k;
    struct bytes key, value;
    uint64_t hint, number = random_below(&b->random, b->keys);
    tree_seek(b->tree, b->thread, key_of(&k, number), false, TREE_FORWARDS, &c);
    for (uint32_t i = 0; i < SCAN_ROWS && tree_next(&c, &key, &hint); i++) {
        HK_ASSERT(record_read(b->records, b->thread, hint, key, b->buffer, STORE_INLINE_MAX,
                              &value) == HK_OK);
    }
}

static void scan(struct bench *b)
{
    struct key k;
    uint64_t number = random_below(&b->random, b->keys);
    struct lotus_scan s = {.item = {.mode = LOCK_S,
                                    .flags = LOTUS_ITEM_RANGE,
                                    .limit = SCAN_ROWS,
                                    .key = key_of(&k, number)}};
    struct lotus_row row;
    lotus_table_begin(b->table, &b->holder);
    for (bool more = true; more;) {
        HK_ASSERT(lotus_table_scan(b->table, b->thread, &b->holder, &s, b->buffer, &row, &more) ==
                  TABLE_DONE);
    }
    lotus_scan_end(&s, b->thread);
    lotus_table_end(b->table, b->thread, &b->holder);
}

static void measure(struct bench *b, enum figure figure, uint32_t round)
{
    bool scans = figure == SCAN || figure == BARE_SCAN;
    bool one = figure == BARE_TREE || figure == BARE_HINT;
    uint64_t unit = scans ? SCAN_ROWS : one ? 1u : b->requests;
    uint64_t n = b->operations / unit;
    double begin = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        if (scans) {
            (figure == SCAN ? scan : bare_scan)(b);
        } else if (one) {
            bare(b, figure == BARE_HINT);
        } else {
            try_of(b, figure);
        }
        store_quiescent(b->thread);
    }
    b->ns[figure][round] = (now_ns() - begin) / (double)(n * unit);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static void report(struct bench *b)
{
    printf("%" PRIu64
           " keys of 8 bytes, values of %u; %u requests a try; ns of CPU each, median of "
           "%u rounds\n",
           b->keys, VALUE_BYTES, b->requests, b->rounds);
    for (uint32_t i = 0; i < FIGURES; i++) {
        qsort(b->ns[i], b->rounds, sizeof(double), by_size);
        printf("%6.0f  %s\n", b->ns[i][b->rounds / 2u], names[i]);
    }
}

static void usage(void)
{
    fprintf(stderr, "usage: node_lotus_table_bench [--keys N] [--operations N] [--requests N] "
                    "[--rounds N] [--seed N]\n");
    exit(2);
}

static void options(struct bench *b, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"keys", required_argument, NULL, 'k'},     {"operations", required_argument, NULL, 'o'},
        {"requests", required_argument, NULL, 'n'}, {"rounds", required_argument, NULL, 'r'},
        {"seed", required_argument, NULL, 's'},     {NULL, 0, NULL, 0}};
    for (int c; (c = getopt_long(argc, argv, "", long_options, NULL)) != -1;) {
        uint64_t v = c == '?' ? 0 : strtoull(optarg, NULL, 10);
        switch (c) {
        case 'k':
            b->keys = v;
            break;
        case 'o':
            b->operations = v;
            break;
        case 'n':
            b->requests = (uint32_t)v;
            break;
        case 'r':
            b->rounds = (uint32_t)v;
            break;
        case 's':
            b->seed = v;
            break;
        default:
            usage();
        }
    }
    if (b->requests == 0 || b->requests > TRY_REQUESTS_MAX || b->rounds == 0 ||
        b->rounds > ROUNDS_MAX || b->keys < b->requests || b->operations < SCAN_ROWS) {
        usage();
    }
}

int main(int argc, char **argv)
{
    struct bench *b = calloc(1, sizeof(*b));
    HK_ASSERT(b != NULL);
    *b = (struct bench){
        .keys = 1000000, .operations = 400000, .requests = 16, .rounds = 5, .seed = 1};
    options(b, argc, argv);
    b->hints = calloc(b->keys, sizeof(*b->hints));
    b->row_hints = calloc(b->keys, sizeof(*b->row_hints));
    HK_ASSERT(b->hints != NULL && b->row_hints != NULL);
    b->holder.age = (struct lock_age){.us = 1, .who = 1};
    random_init(&b->random, b->seed);
    load(b);
    for (uint32_t round = 0; round < b->rounds; round++) {
        for (uint32_t i = 0; i < FIGURES; i++) {
            b->holder.age = (struct lock_age){.us = 1, .who = 1};
            measure(b, (enum figure)i, round);
        }
    }
    report(b);
    lotus_table_destroy(b->table, b->thread);
    store_thread_unregister(b->thread);
    store_destroy(b->store);
    free(b->hints);
    free(b->row_hints);
    free(b);
    return 0;
}
