/* YCSB in transactions: each of the requests reads or writes a record of the place, by popularity.
 * A remote transaction has one request for a record of another node. */
#include "load/work_internal.h"

enum { RECORDS };

static int ycsb_open(struct work *w)
{
    struct keys_config config = {.n = w->per_place,
                                 .exponent = w->config.theta,
                                 .scramble = w->config.theta > 0.0,
                                 .seed = w->config.seed};
    keys_init(&w->keys, &config);
    return 0;
}

static uint64_t ycsb_fill_count(const struct work *w)
{
    return w->per_place;
}

static bool ycsb_fill(const struct work *w, uint32_t place, uint64_t number, struct work_txn *txn)
{
    work_begin(txn, 0);
    work_op(w, txn, place, place, OP_SET, RECORDS, (uint32_t)number)->value =
        work_value(w, w->config.value_bytes);
    return true;
}

static void ycsb_draw(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    uint32_t other = work_where(w, place, random);
    work_begin(txn, 0);
    for (uint32_t i = 0; i < w->config.requests; i++) {
        uint32_t id = (uint32_t)keys_draw(&w->keys, random);
        bool write = work_percent(random, w->config.writes);
        struct op *op = work_op(w, txn, place, i + 1 == w->config.requests ? other : place,
                                write ? OP_SET : OP_GET, RECORDS, id);
        if (write) {
            op->value = work_value(w, w->config.value_bytes);
        }
    }
}

const struct work_ops work_ycsb = {
    .names = {"requests"},
    .success = {1.0},
    .types = 1,
    .defaults = {.objects = 10000,
                 .requests = 16,
                 .value_bytes = 1000,
                 .theta = 0.9,
                 .writes = 50.0,
                 .remote = 0.0},
    .open = ycsb_open,
    .fill_count = ycsb_fill_count,
    .fill = ycsb_fill,
    .draw = ycsb_draw,
};
