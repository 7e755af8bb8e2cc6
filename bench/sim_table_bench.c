/* What a memory server of Lotus does for a row, taken apart: one thread, a table of rows, holders
 * of `--requests` locks each. Figures are differences between runs that do one thing more, all in
 * rounds that go through all of them:
 *
 *   begin and end   a holder, per row
 *   lock            a lock by name taken and released, the row's header looked at, by its hint
 *   index           without a hint: the row is looked for
 *   data            the row's value read: handed out in place, and copied into a message
 *   write           the same row locked exclusively and written
 *
 *   sim_table_bench [--rows 100000] [--value 1000] [--requests 16] [--theta 0] [--ops 400000]
 *                   [--rounds 5]
 *
 * The prices of the cost model's memory servers (docs/COST_MODEL.md). */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/random.h"
#include "load/keys.h"
#include "node/lotus_table.h"

#define ROUNDS_MAX 51u
#define REQUESTS_MAX 1024u
#define KEY_BYTES 8u

enum part { BEGIN, LOCK, INDEX, DATA, WRITE, PARTS };
static const char *const names[PARTS] = {"begin and end", "lock, by hint", "lock, by index",
                                         "lock and read, by hint", "lock and write, by hint"};

struct bench {
    uint32_t rows, value_bytes, requests, ops, rounds;
    double theta;
    struct store *store;
    struct store_thread *thread;
    struct lotus_table *table;
    struct lotus_holder holder;
    uint64_t *hints;
    uint8_t *value, *out;
    uint64_t buffer[LOTUS_NEXT_BYTES / 8u];
    struct keys keys;
    struct random random;
    double ns[PARTS][ROUNDS_MAX];
};

static void woken(void *context, uint32_t status, uint64_t generation)
{
    (void)context, (void)status, (void)generation; /* there is one holder */
}

static uint64_t cpu_ns(void)
{
    struct timespec t;
    int err = clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    HK_ASSERT(err == 0);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void key_of(uint64_t number, uint8_t key[KEY_BYTES])
{
    for (uint32_t i = 0; i < KEY_BYTES; i++) {
        key[i] = (uint8_t)(number >> (56 - 8 * i));
    }
}

static void write_row(struct bench *b, const uint8_t *key)
{
    struct lotus_row row = {.version = 256,
                            .key = bytes_of(key, KEY_BYTES),
                            .value = bytes_of(b->value, b->value_bytes)};
    enum table_word word = lotus_table_write(b->table, b->thread, &b->holder, &row, 1);
    HK_ASSERT(word == TABLE_DONE);
}

static void open_table(struct bench *b)
{
    static struct lotus_config lotus;
    lotus = (struct lotus_config){.locks_max = 1u << 16, .try_locks_max = 1u << 12};
    struct store_config memory = {.keys_expected = b->rows, .value_bytes_max = 1u << 16};
    struct lotus_table_config config = {.lotus = &lotus, .statuses_n = 1, .woken = woken};
    int err = store_create(&memory, &b->store);
    HK_ASSERT(err == HK_OK);
    err = store_thread_register(b->store, &b->thread);
    HK_ASSERT(err == HK_OK);
    config.store = b->store;
    err = lotus_table_create(&config, b->thread, &b->table);
    HK_ASSERT(err == HK_OK);
    struct keys_config keys = {
        .n = b->rows, .exponent = b->theta, .scramble = b->theta > 0.0, .seed = 1};
    keys_init(&b->keys, &keys);
    for (uint32_t i = 0; i < b->rows; i++) {
        uint8_t key[KEY_BYTES];
        struct lotus_row row;
        key_of(i, key);
        b->holder.age.us++;
        lotus_table_begin(b->table, &b->holder);
        enum table_word word =
            lotus_table_point(b->table, b->thread, &b->holder, bytes_of(key, KEY_BYTES), 0, LOCK_X,
                              false, b->buffer, &row);
        HK_ASSERT(word == TABLE_DONE && lotus_table_prepare(b->table, &b->holder));
        write_row(b, key);
        lotus_table_end(b->table, b->thread, &b->holder);
        store_quiescent(b->thread);
    }
}

/* As a coordinator has them: from what it has read. */
static void learn_hints(struct bench *b)
{
    for (uint32_t i = 0; i < b->rows; i++) {
        uint8_t key[KEY_BYTES];
        struct lotus_row row;
        key_of(i, key);
        b->holder.age.us++;
        lotus_table_begin(b->table, &b->holder);
        enum table_word word =
            lotus_table_point(b->table, b->thread, &b->holder, bytes_of(key, KEY_BYTES), 0, LOCK_S,
                              false, b->buffer, &row);
        HK_ASSERT(word == TABLE_DONE && row.hint != 0);
        b->hints[i] = row.hint;
        lotus_table_end(b->table, b->thread, &b->holder);
        store_quiescent(b->thread);
    }
}

/* Distinct rows of a holder, as a transaction has them. */
static void draw(struct bench *b, uint64_t numbers[REQUESTS_MAX])
{
    for (uint32_t i = 0; i < b->requests; i++) {
        uint32_t k;
        do {
            numbers[i] = keys_draw(&b->keys, &b->random);
            for (k = 0; k < i && numbers[k] != numbers[i]; k++) {
            }
        } while (k < i);
    }
}

static void run_holder(struct bench *b, enum part part, const uint64_t *numbers)
{
    uint8_t keys[REQUESTS_MAX][KEY_BYTES];
    b->holder.age.us++;
    lotus_table_begin(b->table, &b->holder);
    for (uint32_t i = 0; part != BEGIN && i < b->requests; i++) {
        struct lotus_row row;
        key_of(numbers[i], keys[i]);
        enum table_word word =
            lotus_table_point(b->table, b->thread, &b->holder, bytes_of(keys[i], KEY_BYTES),
                              part == INDEX ? 0 : b->hints[numbers[i]],
                              part == WRITE ? LOCK_X : LOCK_S, part == DATA, b->buffer, &row);
        HK_ASSERT(word == TABLE_DONE);
        if (part == DATA) {
            memcpy(b->out, row.value.at, row.value.n);
        }
    }
    bool prepared = lotus_table_prepare(b->table, &b->holder);
    HK_ASSERT(prepared);
    for (uint32_t i = 0; part == WRITE && i < b->requests; i++) {
        write_row(b, keys[i]);
    }
    lotus_table_end(b->table, b->thread, &b->holder);
    store_quiescent(b->thread);
}

static double measure(struct bench *b, enum part part)
{
    static uint64_t numbers[64][REQUESTS_MAX];
    uint64_t spent = 0, done = 0;
    while (done < b->ops) {
        for (uint32_t i = 0; i < 64; i++) {
            draw(b, numbers[i]);
        }
        uint64_t begun = cpu_ns();
        for (uint32_t i = 0; i < 64; i++) {
            run_holder(b, part, numbers[i]);
        }
        spent += cpu_ns() - begun;
        done += 64u * b->requests;
    }
    return (double)spent / (double)done;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, uint32_t n)
{
    qsort(values, n, sizeof *values, compare);
    return values[n / 2];
}

static void report(struct bench *b)
{
    double m[PARTS];
    printf("%" PRIu32 " rows of %" PRIu32 " bytes, %" PRIu32 " requests a holder, ns a row:\n",
           b->rows, b->value_bytes, b->requests);
    for (uint32_t part = 0; part < PARTS; part++) {
        m[part] = median(b->ns[part], b->rounds);
        printf("  %-26s %8.1f   (%.1f to %.1f)\n", names[part], m[part], b->ns[part][0],
               b->ns[part][b->rounds - 1]);
    }
    printf("so: lock %.1f, index %.1f, read %.1f, write %.1f\n", m[LOCK] - m[BEGIN],
           m[INDEX] - m[LOCK], m[DATA] - m[LOCK], m[WRITE] - m[LOCK]);
}

static bool parse(int argc, char **argv, struct bench *b)
{
    static const struct option options[] = {{"rows", required_argument, NULL, 'r'},
                                            {"value", required_argument, NULL, 'v'},
                                            {"requests", required_argument, NULL, 'q'},
                                            {"ops", required_argument, NULL, 'o'},
                                            {"rounds", required_argument, NULL, 'n'},
                                            {"theta", required_argument, NULL, 't'},
                                            {NULL, 0, NULL, 0}};
    for (int id; (id = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        uint32_t *to = id == 'r'   ? &b->rows
                       : id == 'v' ? &b->value_bytes
                       : id == 'q' ? &b->requests
                       : id == 'o' ? &b->ops
                       : id == 'n' ? &b->rounds
                                   : NULL;
        if (id == 't') {
            b->theta = atof(optarg);
        } else if (to == NULL) {
            return false;
        } else {
            *to = (uint32_t)strtoul(optarg, NULL, 10);
        }
    }
    return optind == argc && b->rows >= 2 * b->requests && b->requests > 0 &&
           b->requests <= REQUESTS_MAX && b->rounds > 0 && b->rounds <= ROUNDS_MAX &&
           b->value_bytes <= 1u << 16;
}

int main(int argc, char **argv)
{
    static struct bench b = {
        .rows = 100000, .value_bytes = 1000, .requests = 16, .ops = 400000, .rounds = 5};
    if (!parse(argc, argv, &b)) {
        fprintf(stderr, "usage: the head of bench/sim_table_bench.c\n");
        return 2;
    }
    b.hints = calloc(b.rows, sizeof *b.hints);
    b.value = calloc(1, b.value_bytes + 1u);
    b.out = calloc(1, b.value_bytes + 1u);
    HK_ASSERT(b.hints != NULL && b.value != NULL && b.out != NULL);
    random_init(&b.random, 1);
    open_table(&b);
    learn_hints(&b);
    for (uint32_t round = 0; round < b.rounds; round++) {
        for (uint32_t part = 0; part < PARTS; part++) {
            b.ns[part][round] = measure(&b, (enum part)part);
        }
    }
    report(&b);
    lotus_table_destroy(b.table, b.thread);
    store_thread_unregister(b.thread);
    store_destroy(b.store);
    free(b.hints);
    free(b.value);
    free(b.out);
    return 0;
}
