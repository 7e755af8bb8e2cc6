/* YCSB's core workloads A to F in transactions (B. F. Cooper et al., "Benchmarking cloud serving
 * systems with YCSB", 2010; [L] 7.2): each of the requests is for a record of the whole table, by
 * popularity, no record twice. Number i of the table is number i / places of the place i % places,
 * so popular records are spread over all places, neighbours or not. Partitioned, each node has a
 * table of its own, of its places.
 *
 * A record's key ends with its number, highest byte first: the records of a place are a run of
 * neighbours, which a scan reads in order; it ends where the run does. */
#include <stdatomic.h>

#include "base/assert.h"
#include "load/work_internal.h"

enum { RECORDS };

#define INSERT_PERCENT 5.0
#define NUMBER_AT 4u /* of a key, behind the tag */

/* That share a table. */
static uint32_t places_of_table(const struct work *w)
{
    return w->config.partitioned ? w->config.workers : w->places;
}

static int core_open(struct work *w)
{
    struct keys_config config = {.n = (uint64_t)w->per_place * places_of_table(w),
                                 .exponent = w->config.theta,
                                 .scramble = w->config.theta > 0.0 && !w->config.neighbours &&
                                             w->config.kind != WORK_YCSB_D,
                                 .seed = w->config.seed,
                                 .fold = w->config.fold};
    keys_init(&w->keys, &config);
    return 0;
}

static uint64_t core_fill_count(const struct work *w)
{
    return w->per_place;
}

static struct op *record_op(const struct work *w, struct work_txn *txn, uint32_t place,
                            uint32_t home, uint8_t kind, uint32_t id)
{
    uint8_t *key = txn->keys[txn->ops_n];
    work_key(w, home, RECORDS, 0, key);
    for (uint32_t i = 0; i < 4; i++) {
        key[NUMBER_AT + i] = (uint8_t)(id >> (24 - 8 * i));
    }
    return work_op_on(w, txn, place, home, kind, bytes_of(key, WORK_KEY_BYTES));
}

static void add_record(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                       uint32_t id)
{
    record_op(w, txn, place, home, OP_SET, id)->value = work_value(w, w->config.value_bytes);
}

static bool core_fill(const struct work *w, uint32_t place, uint64_t number, struct work_txn *txn)
{
    work_begin(txn, 0);
    add_record(w, txn, place, place, (uint32_t)number);
    return true;
}

/* ---- Requests ---- */

/* One column, whichever is drawn, or all of the record. */
static void add_write(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                      uint32_t id, struct random *random)
{
    uint32_t columns = w->config.columns, bytes = w->config.value_bytes / columns;
    if (columns == 1) {
        add_record(w, txn, place, home, id);
        return;
    }
    struct op *op = record_op(w, txn, place, home, OP_SETRANGE, id);
    op->value = work_value(w, bytes);
    op->number = (int64_t)(random_below(random, columns) * bytes);
}

static void add_scan(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                     uint32_t id, struct random *random)
{
    struct op *op = record_op(w, txn, place, home, TXN_OP_RANGE, id);
    uint8_t *end = txn->memory + txn->memory_n;
    txn->memory_n += WORK_KEY_BYTES;
    HK_ASSERT(txn->memory_n <= WORK_MEMORY_BYTES);
    work_key(w, home, RECORDS, 0, end);
    memset(end + NUMBER_AT, 0xff, WORK_KEY_BYTES - NUMBER_AT);
    op->arg = bytes_of(end, WORK_KEY_BYTES);
    op->number = 1 + (int64_t)random_below(random, w->config.scan);
}

/* The place's next number: own[0] says how many of the transaction there are, own[1] the first.
 * While too many are unanswered, or numbers have run out, an older one is written again. */
static void add_insert(struct work *w, struct work_txn *txn, uint32_t place)
{
    struct work_place *at = &w->at[place];
    uint64_t there = atomic_load_explicit(&at->inserted, memory_order_relaxed);
    uint64_t number = at->inserts;
    if (number - there < WORK_INSERTS_MAX && w->per_place + number < WORK_ID_MAX) {
        txn->own[1] = txn->own[0]++ == 0 ? (uint32_t)number : txn->own[1];
        at->ended[number % WORK_INSERTS_MAX / 64] &= ~(UINT64_C(1) << number % 64);
        at->inserts++;
        add_record(w, txn, place, place, w->per_place + (uint32_t)number);
    } else {
        add_record(w, txn, place, place, w->per_place - 1 - txn->ops_n);
    }
}

static void core_done(struct work *w, uint32_t place, const struct work_txn *txn, bool done)
{
    struct work_place *at = &w->at[place];
    (void)done; /* a number that was given up is a gap, which readers may find */
    for (uint64_t i = txn->own[1]; i < (uint64_t)txn->own[1] + txn->own[0]; i++) {
        at->ended[i % WORK_INSERTS_MAX / 64] |= UINT64_C(1) << i % 64;
    }
    uint64_t there = atomic_load_explicit(&at->inserted, memory_order_relaxed);
    while (there < at->inserts &&
           (at->ended[there % WORK_INSERTS_MAX / 64] >> there % 64 & 1u) != 0) {
        there++;
    }
    /* relaxed: nothing is read by way of it but how popular a number is. */
    atomic_store_explicit(&at->inserted, there, memory_order_relaxed);
}

/* ---- Transactions ---- */

/* A record that the transaction has not drawn before. latest: ranks count from what was
 * inserted last, which is at any place, as each inserts as much. */
static void draw_record(const struct work *w, uint32_t place, struct random *random, uint32_t drawn,
                        bool latest, struct work_txn *txn, uint32_t *home_out, uint32_t *id_out)
{
    uint32_t places = places_of_table(w);
    uint32_t first = w->config.partitioned ? work_node_of(w, place) * places : 0;
    uint64_t at, record;
    do {
        record = keys_draw(&w->keys, random);
        uint64_t home = first + record % places, id = record / places;
        if (latest) {
            home = random_below(random, w->places);
            id = w->per_place - 1 - id % w->per_place +
                 atomic_load_explicit(&w->at[home].inserted, memory_order_relaxed);
        }
        record = home << 32 | id;
        for (at = 0; at < drawn && txn->kept.records[at] != record; at++) {
        }
    } while (at < drawn);
    txn->kept.records[drawn] = record;
    *home_out = (uint32_t)(record >> 32);
    *id_out = (uint32_t)record;
}

static void draw_mixed(struct work *w, uint32_t place, struct random *random, struct work_txn *txn,
                       double writes, bool reads_first)
{
    work_begin(txn, 0);
    for (uint32_t i = 0; i < w->config.requests; i++) {
        uint32_t home, id;
        draw_record(w, place, random, i, false, txn, &home, &id);
        bool write = work_percent(random, writes);
        if (!write || reads_first) {
            (void)record_op(w, txn, place, home, OP_GET, id);
        }
        if (write) {
            add_write(w, txn, place, home, id, random);
        }
    }
}

static void draw_a_to_c(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    draw_mixed(w, place, random, txn, w->config.writes, false);
}

static void draw_f(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    draw_mixed(w, place, random, txn, w->config.writes, true);
}

static void draw_d(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    work_begin(txn, 0);
    for (uint32_t i = 0; i < w->config.requests; i++) {
        uint32_t home, id;
        draw_record(w, place, random, i, true, txn, &home, &id);
        if (work_percent(random, w->config.writes)) {
            add_insert(w, txn, place);
        } else {
            (void)record_op(w, txn, place, home, OP_GET, id);
        }
    }
}

static void draw_e(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    work_begin(txn, 0);
    for (uint32_t i = 0; i < w->config.requests; i++) {
        uint32_t home, id;
        draw_record(w, place, random, i, false, txn, &home, &id);
        if (work_percent(random, w->config.writes)) {
            add_insert(w, txn, place);
        } else {
            add_scan(w, txn, place, home, id, random);
        }
    }
}

/* A scan finds its first record: nobody deletes any. */
static bool scans_succeeded(const struct work_txn *txn, bool applied, const struct answer *answers)
{
    for (uint32_t i = 0; applied && i < txn->ops_n; i++) {
        if (txn->ops[i].kind == TXN_OP_RANGE &&
            (answers[i].kind != ANSWER_PAIRS || answers[i].number < 1 ||
             answers[i].number > txn->ops[i].number)) {
            return false;
        }
    }
    return applied;
}

#define CORE                                                                                       \
    .names = {"requests"}, .success = {1.0}, .types = 1, .open = core_open,                        \
    .fill_count = core_fill_count, .fill = core_fill, .nature = true
#define TABLE(writes_percent, n)                                                                   \
    {                                                                                              \
        .objects = 10000, .requests = n, .value_bytes = 1000, .columns = 10, .scan = 100,          \
        .theta = 0.9, .writes = writes_percent, .remote = -1.0                                     \
    }

const struct work_ops work_ycsb_a = {CORE, .defaults = TABLE(50.0, 16), .draw = draw_a_to_c};
const struct work_ops work_ycsb_b = {CORE, .defaults = TABLE(5.0, 16), .draw = draw_a_to_c};
const struct work_ops work_ycsb_c = {CORE, .defaults = TABLE(0.0, 16), .draw = draw_a_to_c};
const struct work_ops work_ycsb_d = {CORE, .defaults = TABLE(INSERT_PERCENT, 16), .draw = draw_d,
                                     .done = core_done};
const struct work_ops work_ycsb_e = {CORE,
                                     .defaults = TABLE(INSERT_PERCENT, 1),
                                     .draw = draw_e,
                                     .done = core_done,
                                     .succeeded = scans_succeeded,
                                     .scans = true};
const struct work_ops work_ycsb_f = {CORE, .defaults = TABLE(50.0, 16), .draw = draw_f};
