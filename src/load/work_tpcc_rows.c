#include "load/work_tpcc.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"

/* ---- Keys ---- */

enum column { OF_W, OF_D, OF_C, OF_O, OF_N, OF_NAME, OF_FIRST, OF_I, OF_PLACE, OF_H, COLUMN_END };

#define COLUMNS_MAX 6u

static const struct {
    uint8_t column, bytes;
} shapes[][COLUMNS_MAX] = {
    ['W' - 'A'] = {{OF_W, 1}, {COLUMN_END, 0}},
    ['Y' - 'A'] = {{OF_W, 1}, {COLUMN_END, 0}},
    ['D' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {COLUMN_END, 0}},
    ['E' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {COLUMN_END, 0}},
    ['C' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {OF_C, 2}, {COLUMN_END, 0}},
    ['B' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {OF_C, 2}, {COLUMN_END, 0}},
    ['N' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {OF_NAME, 2}, {OF_FIRST, 2}, {OF_C, 2}, {COLUMN_END, 0}},
    ['O' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {OF_O, 4}, {COLUMN_END, 0}},
    ['P' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {OF_C, 2}, {OF_O, 4}, {COLUMN_END, 0}},
    ['L' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {OF_O, 4}, {OF_N, 1}, {COLUMN_END, 0}},
    ['Q' - 'A'] = {{OF_W, 1}, {OF_D, 1}, {OF_O, 4}, {COLUMN_END, 0}},
    ['I' - 'A'] = {{OF_I, 4}, {COLUMN_END, 0}},
    ['S' - 'A'] = {{OF_W, 1}, {OF_I, 4}, {COLUMN_END, 0}},
    ['H' - 'A'] = {{OF_W, 1}, {OF_PLACE, 2}, {OF_H, 8}, {COLUMN_END, 0}},
};

static uint64_t column_of(const struct tpcc_key *k, enum column column)
{
    const uint64_t all[COLUMN_END] = {
        [OF_W] = k->w,         [OF_D] = k->d,       [OF_C] = k->c,         [OF_O] = k->o,
        [OF_N] = k->n,         [OF_NAME] = k->name, [OF_FIRST] = k->first, [OF_I] = k->i,
        [OF_PLACE] = k->place, [OF_H] = k->h,
    };
    return all[column];
}

static void set_column(struct tpcc_key *k, enum column column, uint64_t x)
{
    uint32_t *const all[COLUMN_END] = {
        [OF_W] = &k->w,         [OF_D] = &k->d, [OF_C] = &k->c,
        [OF_O] = &k->o,         [OF_N] = &k->n, [OF_NAME] = &k->name,
        [OF_FIRST] = &k->first, [OF_I] = &k->i, [OF_PLACE] = &k->place,
    };
    if (column == OF_H) {
        k->h = x;
    } else {
        *all[column] = (uint32_t)x;
    }
}

uint32_t tpcc_prefix_put(const struct work *w, uint32_t home, const struct tpcc_key *key,
                         uint32_t columns, uint8_t *at)
{
    uint8_t tagged[WORK_KEY_BYTES];
    uint32_t n = 5;
    work_key(w, home, 0, 0, tagged);
    memcpy(at, tagged, 4);
    at[4] = (uint8_t)key->table;
    for (uint32_t i = 0; i < columns; i++) {
        uint32_t bytes = shapes[key->table - 'A'][i].bytes;
        if (shapes[key->table - 'A'][i].column == COLUMN_END) {
            break;
        }
        uint64_t x = column_of(key, (enum column)shapes[key->table - 'A'][i].column);
        for (uint32_t k = 0; k < bytes; k++) {
            at[n++] = (uint8_t)(x >> (8 * (bytes - 1 - k)));
        }
    }
    return n;
}

uint32_t tpcc_key_put(const struct work *w, uint32_t home, const struct tpcc_key *key, uint8_t *at)
{
    return tpcc_prefix_put(w, home, key, COLUMNS_MAX, at);
}

bool tpcc_key_take(struct bytes bytes, struct tpcc_key *key_out, uint8_t tag_out[2])
{
    uint32_t n = 5;
    memset(key_out, 0, sizeof *key_out);
    if (bytes.n < n || bytes.at[4] < 'A' || bytes.at[4] > 'Y' ||
        shapes[bytes.at[4] - 'A'][0].bytes == 0) {
        return false;
    }
    memcpy(tag_out, bytes.at + 1, 2);
    key_out->table = (char)bytes.at[4];
    for (uint32_t i = 0; shapes[key_out->table - 'A'][i].column != COLUMN_END; i++) {
        uint32_t width = shapes[key_out->table - 'A'][i].bytes;
        uint64_t x = 0;
        if (n + width > bytes.n) {
            return false;
        }
        for (uint32_t k = 0; k < width; k++) {
            x = x << 8 | bytes.at[n++];
        }
        set_column(key_out, (enum column)shapes[key_out->table - 'A'][i].column, x);
    }
    return n == bytes.n;
}

/* ---- Values ---- */

bool tpcc_district_take(struct bytes v, struct tpcc_district *out)
{
    if (v.n < TPCC_HEAD_BYTES) {
        return false;
    }
    *out = (struct tpcc_district){get_u32(v.at), get_u32(v.at + 4)};
    return true;
}

void tpcc_district_put(uint8_t at[TPCC_HEAD_BYTES], const struct tpcc_district *row)
{
    memset(at, 0, TPCC_HEAD_BYTES);
    put_u32(at, row->tax_bp);
    put_u32(at + 4, row->next_o);
}

bool tpcc_balance_take(struct bytes v, struct tpcc_balance *out)
{
    if (v.n < TPCC_HEAD_BYTES) {
        return false;
    }
    *out = (struct tpcc_balance){(int64_t)get_u64(v.at), (int64_t)get_u64(v.at + 8),
                                 get_u32(v.at + 16), get_u32(v.at + 20)};
    return true;
}

void tpcc_balance_put(uint8_t at[TPCC_HEAD_BYTES], const struct tpcc_balance *row)
{
    memset(at, 0, TPCC_HEAD_BYTES);
    put_u64(at, (uint64_t)row->balance);
    put_u64(at + 8, (uint64_t)row->paid);
    put_u32(at + 16, row->payments);
    put_u32(at + 20, row->deliveries);
}

bool tpcc_order_take(struct bytes v, struct tpcc_order *out)
{
    if (v.n < TPCC_ORDER_BYTES) {
        return false;
    }
    *out = (struct tpcc_order){get_u32(v.at), get_u32(v.at + 4), get_u32(v.at + 8),
                               get_u64(v.at + 16)};
    return true;
}

void tpcc_order_put(uint8_t at[TPCC_ORDER_BYTES], const struct tpcc_order *row)
{
    memset(at, 0, TPCC_ORDER_BYTES);
    put_u32(at, row->c);
    put_u32(at + 4, row->carrier);
    put_u32(at + 8, row->lines);
    put_u64(at + 16, row->entry);
}

bool tpcc_line_take(struct bytes v, struct tpcc_line *out)
{
    if (v.n < TPCC_LINE_BYTES) {
        return false;
    }
    *out = (struct tpcc_line){.i = get_u32(v.at),
                              .place = get_u16(v.at + 4),
                              .w = v.at[6],
                              .quantity = v.at[7],
                              .amount = (int64_t)get_u64(v.at + 8),
                              .delivery = get_u64(v.at + 16)};
    return true;
}

void tpcc_line_put(uint8_t at[TPCC_LINE_BYTES], const struct tpcc_line *row)
{
    memset(at, 'l', TPCC_LINE_BYTES);
    put_u32(at, row->i);
    put_u16(at + 4, (uint16_t)row->place);
    at[6] = row->w;
    at[7] = row->quantity;
    put_u64(at + 8, (uint64_t)row->amount);
    put_u64(at + 16, row->delivery);
}

bool tpcc_stock_take(struct bytes v, struct tpcc_stock *out)
{
    if (v.n < TPCC_HEAD_BYTES) {
        return false;
    }
    *out = (struct tpcc_stock){(int32_t)get_u32(v.at), get_u32(v.at + 4), get_u32(v.at + 8),
                               get_u32(v.at + 12)};
    return true;
}

void tpcc_stock_put(uint8_t at[TPCC_HEAD_BYTES], const struct tpcc_stock *row)
{
    memset(at, 0, TPCC_HEAD_BYTES);
    put_u32(at, (uint32_t)row->quantity);
    put_u32(at + 4, row->sum);
    put_u32(at + 8, row->orders);
    put_u32(at + 12, row->remote);
}

bool tpcc_history_take(struct bytes v, struct tpcc_history *out)
{
    if (v.n < TPCC_HISTORY_BYTES) {
        return false;
    }
    *out = (struct tpcc_history){.amount = (int64_t)get_u64(v.at),
                                 .d = v.at[8],
                                 .c_home = get_u16(v.at + 12),
                                 .c_w = v.at[9],
                                 .c_d = v.at[10],
                                 .c = get_u16(v.at + 14)};
    return true;
}

void tpcc_history_put(uint8_t at[TPCC_HISTORY_BYTES], const struct tpcc_history *row)
{
    memset(at, 'h', TPCC_HISTORY_BYTES);
    put_u64(at, (uint64_t)row->amount);
    at[8] = (uint8_t)row->d;
    at[9] = (uint8_t)row->c_w;
    at[10] = (uint8_t)row->c_d;
    put_u16(at + 12, (uint16_t)row->c_home);
    put_u16(at + 14, (uint16_t)row->c);
}

/* ---- Operations ---- */

uint8_t *tpcc_room(struct work_txn *txn, uint32_t bytes)
{
    HK_ASSERT(txn->memory_n + bytes <= WORK_MEMORY_BYTES);
    uint8_t *at = txn->memory + txn->memory_n;
    txn->memory_n += bytes;
    return at;
}

struct op *tpcc_op(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                   uint8_t kind, const struct tpcc_key *key)
{
    uint8_t bytes[TPCC_KEY_MAX];
    uint32_t n = tpcc_key_put(w, home, key, bytes);
    uint8_t *at = tpcc_room(txn, n);
    memcpy(at, bytes, n);
    return work_op_on(w, txn, place, home, kind, bytes_of(at, n));
}

struct op *tpcc_between(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                        const struct tpcc_key *from, uint32_t from_columns,
                        const struct tpcc_key *to, uint32_t to_columns, uint32_t limit)
{
    uint8_t bytes[2 * TPCC_KEY_MAX];
    uint32_t from_n = tpcc_prefix_put(w, home, from, from_columns, bytes);
    uint32_t to_n = tpcc_prefix_put(w, home, to, to_columns, bytes + from_n);
    uint8_t *at = tpcc_room(txn, from_n + to_n);
    memcpy(at, bytes, from_n + to_n);
    struct op *op = work_op_on(w, txn, place, home, TXN_OP_RANGE, bytes_of(at, from_n));
    op->arg = bytes_of(at + from_n, to_n);
    op->number = limit;
    return op;
}

struct op *tpcc_range(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                      const struct tpcc_key *key, uint32_t columns, uint32_t limit)
{
    uint32_t before = txn->memory_n;
    struct op *op = tpcc_between(w, txn, place, home, key, columns, key, columns, limit);
    uint32_t i = txn->memory_n - before - op->arg.n;
    HK_ASSERT(i == op->arg.n);
    /* One more than the last column: no column here is all ones. */
    for (uint8_t *end = txn->memory + before + i; i > 0 && ++end[i - 1] == 0; i--) {
    }
    return op;
}

/* ---- What the population is drawn from ---- */

static uint64_t drawn(const struct work *w, uint32_t home, char table, uint64_t id)
{
    return work_mix(work_mix(w->config.seed << 24 ^ home << 8 ^ (uint64_t)table) ^ id);
}

uint32_t tpcc_names(const struct work *w)
{
    return w->config.customers / 3;
}

uint32_t tpcc_price(const struct work *w, uint32_t item)
{
    return 100 + (uint32_t)(drawn(w, 0, 'I', item) % 9901);
}

/* 2.1.6: of 0 .. n - 1. */
static uint32_t nurand(const struct work *w, uint64_t x, uint64_t y, uint32_t a, uint32_t n)
{
    uint32_t c = (uint32_t)(drawn(w, 0, 'C', a) % (a + 1));
    return (((uint32_t)(x % (a + 1)) | (uint32_t)(y % n)) + c) % n;
}

uint32_t tpcc_nurand(const struct work *w, struct random *random, uint32_t a, uint32_t n)
{
    uint64_t x = random_next(random);
    return nurand(w, x, random_next(random), a, n);
}

/* ---- The population: slots of a warehouse, of a district, of a customer ---- */

enum {
    SLOT_CUSTOMER,
    SLOT_BALANCE,
    SLOT_NAME,
    SLOT_HISTORY,
    SLOT_ORDER,
    SLOT_OF_CUSTOMER,
    SLOT_NEW,
    SLOT_LINES,
    SLOTS = SLOT_LINES + TPCC_LINES_MAX
};
#define FIRST_CENTS 1000 /* that each customer has paid */
#define TAX_MOST_BP 2000u

static uint64_t district_slots(const struct work *w)
{
    return 2 + SLOTS * (uint64_t)w->config.customers;
}

static uint64_t warehouse_slots(const struct work *w)
{
    return 2 + TPCC_DISTRICTS * district_slots(w) + w->config.objects / w->config.workers;
}

uint64_t tpcc_fill_count(const struct work *w)
{
    return w->per_place + w->config.warehouses * warehouse_slots(w);
}

static void put_row(const struct work *w, struct work_txn *txn, uint32_t place,
                    const struct tpcc_key *key, const uint8_t *head, uint32_t head_n,
                    uint32_t bytes)
{
    uint8_t *at = tpcc_room(txn, bytes);
    memset(at, key->table, bytes);
    if (head_n > 0) {
        memcpy(at, head, head_n);
    }
    tpcc_op(w, txn, place, place, OP_SET, key)->value = bytes_of(at, bytes);
}

static void put_number(const struct work *w, struct work_txn *txn, uint32_t place,
                       const struct tpcc_key *key, uint64_t cents)
{
    char text[24];
    int n = snprintf(text, sizeof text, "%llu", (unsigned long long)cents);
    put_row(w, txn, place, key, (const uint8_t *)text, (uint32_t)n, (uint32_t)n);
}

/* The customer of an order of the population: each has one. */
static uint32_t first_customer(const struct work *w, uint32_t order)
{
    return (uint32_t)((uint64_t)order * w->stride + 1) % w->config.customers;
}

static uint32_t first_lines(uint64_t h)
{
    return TPCC_LINES_MIN + (uint32_t)(h % (TPCC_LINES_MAX - TPCC_LINES_MIN + 1));
}

static bool fill_order(const struct work *w, uint32_t place, struct tpcc_key *key, uint32_t slot,
                       struct work_txn *txn)
{
    uint64_t h = drawn(w, place, 'O', (uint64_t)key->w << 40 | (uint64_t)key->d << 32 | key->c);
    uint32_t o = key->c, lines = first_lines(h);
    bool delivered = o < w->config.customers * 7 / 10;
    uint8_t bytes[TPCC_LINE_BYTES];
    key->o = o + 1;
    key->c = first_customer(w, o);
    if (slot == SLOT_ORDER) {
        key->table = 'O';
        tpcc_order_put(bytes,
                       &(struct tpcc_order){.c = key->c,
                                            .carrier = delivered ? 1 + (uint32_t)(h >> 32) % 10 : 0,
                                            .lines = lines,
                                            .entry = 1});
        put_row(w, txn, place, key, bytes, TPCC_ORDER_BYTES, TPCC_ORDER_BYTES);
        return true;
    }
    if (slot == SLOT_OF_CUSTOMER || slot == SLOT_NEW) {
        key->table = slot == SLOT_NEW ? 'Q' : 'P';
        put_row(w, txn, place, key, NULL, 0, 1);
        return slot != SLOT_NEW || !delivered;
    }
    key->table = 'L';
    key->n = slot - SLOT_LINES + 1;
    uint64_t line = work_mix(h + key->n);
    tpcc_line_put(bytes,
                  &(struct tpcc_line){.i = (uint32_t)(line % w->per_place),
                                      .place = place,
                                      .w = (uint8_t)key->w,
                                      .quantity = 5,
                                      .amount = delivered ? 0 : (int64_t)(line >> 32) % 999999 + 1,
                                      .delivery = delivered});
    put_row(w, txn, place, key, bytes, TPCC_LINE_BYTES, TPCC_LINE_BYTES);
    return key->n <= lines;
}

static bool fill_customer(const struct work *w, uint32_t place, struct tpcc_key *key, uint32_t slot,
                          struct work_txn *txn)
{
    uint64_t h = drawn(w, place, 'N', (uint64_t)key->w << 40 | (uint64_t)key->d << 32 | key->c);
    uint8_t head[TPCC_HEAD_BYTES] = {0}, history[TPCC_HISTORY_BYTES];
    if (slot >= SLOT_ORDER) {
        return fill_order(w, place, key, slot, txn);
    }
    switch (slot) {
    case SLOT_CUSTOMER:
        key->table = 'C';
        put_u32(head, (uint32_t)(h % 5001));
        head[4] = (h >> 32 & 0xff) < 26; /* a tenth has bad credit */
        put_row(w, txn, place, key, head, sizeof head, TPCC_CUSTOMER_BYTES);
        break;
    case SLOT_BALANCE:
        key->table = 'B';
        tpcc_balance_put(head, &(struct tpcc_balance){
                                   .balance = -FIRST_CENTS, .paid = FIRST_CENTS, .payments = 1});
        put_row(w, txn, place, key, head, sizeof head, TPCC_BALANCE_BYTES);
        break;
    case SLOT_NAME:
        key->table = 'N';
        key->name = key->c < tpcc_names(w) ? key->c : nurand(w, h, h >> 16, 255, tpcc_names(w));
        key->first = (uint32_t)(h >> 48);
        put_row(w, txn, place, key, NULL, 0, 1);
        break;
    default:
        key->table = 'H';
        key->place = place;
        key->h = (uint64_t)key->d << 32 | key->c;
        tpcc_history_put(history, &(struct tpcc_history){.amount = FIRST_CENTS,
                                                         .d = key->d,
                                                         .c_home = place,
                                                         .c_w = key->w,
                                                         .c_d = key->d,
                                                         .c = key->c});
        put_row(w, txn, place, key, history, sizeof history, TPCC_HISTORY_BYTES);
        break;
    }
    return true;
}

static bool fill_district(const struct work *w, uint32_t place, struct tpcc_key *key,
                          uint64_t number, struct work_txn *txn)
{
    uint8_t head[TPCC_HEAD_BYTES];
    if (number > 1) {
        key->c = (uint32_t)((number - 2) / SLOTS);
        return fill_customer(w, place, key, (uint32_t)((number - 2) % SLOTS), txn);
    }
    key->table = number == 0 ? 'D' : 'E';
    if (number == 0) {
        uint64_t h = drawn(w, place, 'D', key->w << 8 | key->d);
        tpcc_district_put(head, &(struct tpcc_district){(uint32_t)(h % (TAX_MOST_BP + 1)),
                                                        w->config.customers + 1});
        put_row(w, txn, place, key, head, sizeof head, TPCC_DISTRICT_BYTES);
    } else {
        put_number(w, txn, place, key, FIRST_CENTS * (uint64_t)w->config.customers);
    }
    return true;
}

bool tpcc_fill(const struct work *w, uint32_t place, uint64_t number, struct work_txn *txn)
{
    struct tpcc_key key = {.table = 'I'};
    uint8_t head[TPCC_HEAD_BYTES] = {0};
    work_begin(txn, 0);
    if (number < w->per_place) {
        key.i = (uint32_t)number;
        put_u32(head, tpcc_price(w, key.i));
        put_row(w, txn, place, &key, head, sizeof head, TPCC_ITEM_BYTES);
        return true;
    }
    number -= w->per_place;
    key.w = (uint32_t)(number / warehouse_slots(w));
    number %= warehouse_slots(w);
    if (number < w->per_place) {
        key.table = 'S';
        key.i = (uint32_t)number;
        uint64_t h = drawn(w, place, 'S', (uint64_t)key.w << 32 | key.i);
        tpcc_stock_put(head, &(struct tpcc_stock){.quantity = 10 + (int32_t)(h % 91)});
        put_row(w, txn, place, &key, head, sizeof head, TPCC_STOCK_BYTES);
        return true;
    }
    number -= w->per_place;
    if (number == 0) {
        key.table = 'W';
        put_u32(head, (uint32_t)(drawn(w, place, 'W', key.w) % (TAX_MOST_BP + 1)));
        put_row(w, txn, place, &key, head, sizeof head, TPCC_WAREHOUSE_BYTES);
        return true;
    }
    if (number == 1) {
        key.table = 'Y';
        put_number(w, txn, place, &key,
                   FIRST_CENTS * (uint64_t)w->config.customers * TPCC_DISTRICTS);
        return true;
    }
    key.d = (uint32_t)((number - 2) / district_slots(w));
    return fill_district(w, place, &key, (number - 2) % district_slots(w), txn);
}

static uint32_t divisor(uint32_t a, uint32_t b)
{
    return b == 0 ? a : divisor(b, a % b);
}

int tpcc_open(struct work *w)
{
    w->stride = w->config.customers * 5 / 8 + 1;
    while (divisor(w->stride, w->config.customers) != 1) {
        w->stride++;
    }
    for (uint32_t i = 0; i < w->places; i++) {
        w->at[i].inserts = UINT64_C(1) << 40; /* behind the population's history */
    }
    w->delivered =
        calloc((size_t)w->places * w->config.warehouses * TPCC_DISTRICTS, sizeof *w->delivered);
    return w->delivered != NULL ? HK_OK : HK_ERR_NOMEM;
}

void tpcc_close(struct work *w)
{
    free(w->delivered);
}
