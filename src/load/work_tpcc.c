/* TPC-C's five transactions in the mix of 5.2.3, from terminals without keying and think times.
 *
 * Each reads in one or more steps, then writes in one that watches the versions of what it has read
 * and what transactions change: a row that was changed meanwhile begins it again, with what was
 * drawn for it. Sums of a year are added to without being read. Stock-level watches nothing:
 * 2.8.2.3 asks no more of it than reading what is committed.
 *
 *   new-order     W D C I.. S..           -> D O P Q S.. L..          D, S.. are watched
 *   payment       [N] -> W D C B          -> Y E B H                  B
 *   order-status  [N] -> C B P            -> O L..                    B, the range of P
 *   delivery      Q x 10 -> Q O L.. -> B  -> Q O L.. B                Q, B
 *   stock-level   D -> L.. -> S..
 *
 * Delivery takes all districts at once, and looks for the oldest new order behind the one that was
 * delivered last: rows that are deleted may stay in an index for a while. */
#include "load/work_tpcc.h"

#include <stddef.h>

#include "base/assert.h"

enum { NEW_ORDER, PAYMENT, ORDER_STATUS, DELIVERY, STOCK_LEVEL, TYPES };
static const uint32_t mix[TYPES] = {45, 43, 4, 4, 4};

#define ROLLED_BACK_PERCENT 1.0
#define BY_NAME_PERCENT 60.0
#define REMOTE_ITEM_PERCENT 1.0
#define REMOTE_PAYMENT_PERCENT 15.0
#define AMOUNT_MIN 100u /* cents */
#define AMOUNT_MAX 500000u
#define DATA_BYTES 200u /* that a payment of bad credit writes beside the balance */

/* own[] of a transaction: why it is none of those that succeed; stock-level's answer. */
enum { OWN_ROLLED_BACK, OWN_BROKEN, OWN_LOW };

static struct tpcc_key row(char table, uint32_t w, uint32_t d)
{
    return (struct tpcc_key){.table = table, .w = w, .d = d};
}

static void watch(struct work_txn *txn, struct bytes key, uint64_t version)
{
    HK_ASSERT(txn->watches_n < WORK_WATCHES_MAX);
    txn->watches[txn->watches_n++] = (struct txn_watch){.key = key, .version = version};
}

static void begin_step(struct work_txn *txn)
{
    txn->ops_n = 0;
    txn->watches_n = 0;
    txn->memory_n = 0;
    txn->kept.tpcc.step++;
}

/* What must be there is not. */
static enum work_step broken(struct work_txn *txn)
{
    txn->own[OWN_BROKEN] = 1;
    return WORK_OVER;
}

static void get(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                struct tpcc_key key)
{
    (void)tpcc_op(w, txn, place, home, OP_GET, &key);
}

/* Overwrites the head of a row. */
static struct op *put_head(const struct work *w, struct work_txn *txn, uint32_t place,
                           uint32_t home, struct tpcc_key key, const uint8_t head[TPCC_HEAD_BYTES])
{
    uint8_t *at = tpcc_room(txn, TPCC_HEAD_BYTES);
    memcpy(at, head, TPCC_HEAD_BYTES);
    struct op *op = tpcc_op(w, txn, place, home, OP_SETRANGE, &key);
    op->value = bytes_of(at, TPCC_HEAD_BYTES);
    return op;
}

static struct op *put_whole(const struct work *w, struct work_txn *txn, uint32_t place,
                            struct tpcc_key key, const void *bytes, uint32_t n)
{
    uint8_t *at = tpcc_room(txn, n);
    memcpy(at, bytes, n);
    struct op *op = tpcc_op(w, txn, place, place, OP_SET, &key);
    op->value = bytes_of(at, n);
    return op;
}

/* ---- New-order ---- */

static uint32_t warehouses(const struct work *w)
{
    return w->places * w->config.warehouses;
}

/* Another warehouse of all, if there is one. */
static void other_warehouse(const struct work *w, uint32_t place, uint32_t warehouse,
                            struct random *random, uint32_t *place_out, uint32_t *w_out)
{
    uint32_t mine = place * w->config.warehouses + warehouse, other = mine;
    if (warehouses(w) > 1) {
        other = (uint32_t)random_below(random, warehouses(w) - 1u);
        other += other >= mine;
    }
    *place_out = other / w->config.warehouses;
    *w_out = other % w->config.warehouses;
}

static bool line_is_new(const struct work_tpcc *t, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (t->lines[i].i == t->lines[n].i) {
            return false;
        }
    }
    return true;
}

static void draw_new_order(const struct work *w, uint32_t place, struct random *random,
                           struct work_tpcc *t)
{
    t->c = tpcc_nurand(w, random, 1023, w->config.customers);
    t->lines_n =
        TPCC_LINES_MIN + (uint32_t)random_below(random, TPCC_LINES_MAX - TPCC_LINES_MIN + 1);
    for (uint32_t i = 0; i < t->lines_n; i++) {
        do {
            t->lines[i].i = tpcc_nurand(w, random, 8191, w->per_place);
        } while (!line_is_new(t, i));
        t->lines[i].place = place;
        t->lines[i].w = t->w;
        t->lines[i].quantity = 1 + (uint32_t)random_below(random, 10);
        if (work_percent(random, REMOTE_ITEM_PERCENT)) {
            other_warehouse(w, place, t->w, random, &t->lines[i].place, &t->lines[i].w);
        }
    }
    if (work_percent(random, ROLLED_BACK_PERCENT)) {
        t->lines[t->lines_n - 1].i = w->per_place; /* there is no such item */
    }
}

static struct tpcc_key stock_of(const struct work_tpcc *t, uint32_t line)
{
    return (struct tpcc_key){.table = 'S', .w = t->lines[line].w, .i = t->lines[line].i};
}

static void begin_new_order(const struct work *w, uint32_t place, struct work_txn *txn)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_key customer = row('C', t->w, t->d);
    customer.c = t->c;
    get(w, txn, place, place, row('W', t->w, 0));
    get(w, txn, place, place, row('D', t->w, t->d));
    get(w, txn, place, place, customer);
    for (uint32_t i = 0; i < t->lines_n; i++) {
        get(w, txn, place, place, (struct tpcc_key){.table = 'I', .i = t->lines[i].i});
    }
    for (uint32_t i = 0; i < t->lines_n; i++) {
        get(w, txn, place, t->lines[i].place, stock_of(t, i));
    }
    txn->updates = true;
}

static void put_stock(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t line,
                      struct tpcc_stock stock, uint64_t version)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    uint8_t head[TPCC_HEAD_BYTES];
    int32_t ordered = (int32_t)t->lines[line].quantity;
    stock.quantity -= ordered;
    stock.quantity += stock.quantity < 10 ? 91 : 0;
    stock.sum += (uint32_t)ordered;
    stock.orders++;
    stock.remote += t->lines[line].place != place || t->lines[line].w != t->w;
    tpcc_stock_put(head, &stock);
    watch(txn, put_head(w, txn, place, t->lines[line].place, stock_of(t, line), head)->key,
          version);
}

static void put_order(const struct work *w, struct work_txn *txn, uint32_t place, uint64_t entry)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_key key = row('O', t->w, t->d);
    uint8_t bytes[TPCC_LINE_BYTES];
    key.o = t->o;
    key.c = t->c;
    tpcc_order_put(bytes, &(struct tpcc_order){.c = t->c, .lines = t->lines_n, .entry = entry});
    (void)put_whole(w, txn, place, key, bytes, TPCC_ORDER_BYTES);
    key.table = 'P';
    (void)put_whole(w, txn, place, key, "P", 1);
    key.table = 'Q';
    (void)put_whole(w, txn, place, key, "Q", 1);
    key.table = 'L';
    for (uint32_t i = 0; i < t->lines_n; i++) {
        key.n = i + 1;
        tpcc_line_put(bytes,
                      &(struct tpcc_line){
                          .i = t->lines[i].i,
                          .place = t->lines[i].place,
                          .w = (uint8_t)t->lines[i].w,
                          .quantity = (uint8_t)t->lines[i].quantity,
                          .amount = (int64_t)t->lines[i].quantity * tpcc_price(w, t->lines[i].i),
                      });
        (void)put_whole(w, txn, place, key, bytes, TPCC_LINE_BYTES);
    }
}

static enum work_step next_new_order(struct work *w, uint32_t place, struct work_txn *txn,
                                     const struct answer *answers, const uint64_t *versions)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_district district;
    struct tpcc_stock stocks[TPCC_LINES_MAX];
    uint64_t stock_versions[TPCC_LINES_MAX], version = versions[1];
    const struct answer *items = answers + 3, *found = items + t->lines_n;
    uint8_t head[TPCC_HEAD_BYTES];
    if (t->step > 0) {
        return WORK_OVER;
    }
    if (items[t->lines_n - 1].kind == ANSWER_NIL) {
        txn->own[OWN_ROLLED_BACK] = 1;
        return WORK_OVER;
    }
    bool good = answers[0].kind == ANSWER_VALUE && answers[2].kind == ANSWER_VALUE &&
                answers[1].kind == ANSWER_VALUE && tpcc_district_take(answers[1].value, &district);
    for (uint32_t i = 0; good && i < t->lines_n; i++) {
        good = items[i].kind == ANSWER_VALUE && found[i].kind == ANSWER_VALUE &&
               items[i].value.n >= 4 &&
               get_u32(items[i].value.at) == tpcc_price(w, t->lines[i].i) &&
               tpcc_stock_take(found[i].value, &stocks[i]);
        stock_versions[i] = versions[3 + t->lines_n + i];
    }
    if (!good) {
        return broken(txn);
    }
    begin_step(txn);
    t->o = district.next_o++;
    tpcc_district_put(head, &district);
    watch(txn, put_head(w, txn, place, place, row('D', t->w, t->d), head)->key, version);
    put_order(w, txn, place, 1 + w->at[place].drawn);
    for (uint32_t i = 0; i < t->lines_n; i++) {
        put_stock(w, txn, place, i, stocks[i], stock_versions[i]);
    }
    return WORK_MORE;
}

/* ---- Customers by their last names ---- */

static void draw_customer(const struct work *w, struct random *random, struct work_tpcc *t)
{
    t->by_name = work_percent(random, BY_NAME_PERCENT);
    t->name = tpcc_nurand(w, random, 255, tpcc_names(w));
    t->c = tpcc_nurand(w, random, 1023, w->config.customers);
}

static void begin_by_name(const struct work *w, uint32_t place, struct work_txn *txn)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_key key = row('N', t->c_w, t->c_d);
    key.name = t->name;
    tpcc_range(w, txn, place, t->c_home, &key, 3, 0)->flags = TXN_OPF_KEYS;
}

/* Of all with that name the middle one by first name (2.5.2.2). */
static bool take_by_name(struct work_tpcc *t, const struct answer *answer)
{
    struct bytes rest = answer->value, key, value;
    struct tpcc_key found;
    uint8_t tag[2];
    if (answer->kind != ANSWER_PAIRS || answer->number < 1) {
        return false;
    }
    for (int64_t i = 0; i < (answer->number + 1) / 2; i++) {
        if (!txn_pair_take(&rest, &key, &value)) {
            return false;
        }
    }
    t->c = tpcc_key_take(key, &found, tag) ? found.c : UINT32_MAX;
    return t->c != UINT32_MAX;
}

static struct tpcc_key customer_row(char table, const struct work_tpcc *t)
{
    struct tpcc_key key = row(table, t->c_w, t->c_d);
    key.c = t->c;
    return key;
}

/* ---- Payment ---- */

static void draw_payment(const struct work *w, uint32_t place, struct random *random,
                         struct work_tpcc *t)
{
    draw_customer(w, random, t);
    t->amount = AMOUNT_MIN + (int64_t)random_below(random, AMOUNT_MAX - AMOUNT_MIN + 1);
    if (work_percent(random, REMOTE_PAYMENT_PERCENT)) {
        other_warehouse(w, place, t->w, random, &t->c_home, &t->c_w);
        t->c_d = (uint32_t)random_below(random, TPCC_DISTRICTS);
    }
}

static void read_payment(const struct work *w, uint32_t place, struct work_txn *txn)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    get(w, txn, place, place, row('W', t->w, 0));
    get(w, txn, place, place, row('D', t->w, t->d));
    get(w, txn, place, t->c_home, customer_row('C', t));
    get(w, txn, place, t->c_home, customer_row('B', t));
    txn->updates = true;
}

static void put_balance(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                        struct tpcc_key key, const struct tpcc_balance *balance, bool bad,
                        uint64_t version)
{
    uint32_t n = TPCC_HEAD_BYTES + (bad ? DATA_BYTES : 0);
    uint8_t *at = tpcc_room(txn, n);
    memset(at, 'd', n);
    tpcc_balance_put(at, balance);
    struct op *op = tpcc_op(w, txn, place, home, OP_SETRANGE, &key);
    op->value = bytes_of(at, n);
    watch(txn, op->key, version);
}

static enum work_step write_payment(struct work *w, uint32_t place, struct work_txn *txn,
                                    const struct answer *answers, const uint64_t *versions)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_balance balance;
    uint8_t history[TPCC_HISTORY_BYTES];
    for (uint32_t i = 0; i < 4; i++) {
        if (answers[i].kind != ANSWER_VALUE || answers[i].value.n < TPCC_HEAD_BYTES) {
            return broken(txn);
        }
    }
    bool bad = answers[2].value.at[4] != 0;
    uint64_t version = versions[3];
    (void)tpcc_balance_take(answers[3].value, &balance);
    balance.balance -= t->amount;
    balance.paid += t->amount;
    balance.payments++;
    begin_step(txn);
    const struct tpcc_key year = row('Y', t->w, 0), of_district = row('E', t->w, t->d);
    tpcc_op(w, txn, place, place, OP_ADD, &year)->number = t->amount;
    tpcc_op(w, txn, place, place, OP_ADD, &of_district)->number = t->amount;
    put_balance(w, txn, place, t->c_home, customer_row('B', t), &balance, bad, version);
    tpcc_history_put(history, &(struct tpcc_history){.amount = t->amount,
                                                     .d = t->d,
                                                     .c_home = t->c_home,
                                                     .c_w = t->c_w,
                                                     .c_d = t->c_d,
                                                     .c = t->c});
    struct tpcc_key key = row('H', t->w, 0);
    key.place = place;
    key.h = w->at[place].inserts++;
    (void)put_whole(w, txn, place, key, history, sizeof history);
    return WORK_MORE;
}

static enum work_step next_payment(struct work *w, uint32_t place, struct work_txn *txn,
                                   const struct answer *answers, const uint64_t *versions)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    uint32_t step = t->step + !t->by_name;
    if (step == 0) {
        if (!take_by_name(t, &answers[0])) {
            return broken(txn);
        }
        begin_step(txn);
        read_payment(w, place, txn);
        return WORK_MORE;
    }
    return step == 1 ? write_payment(w, place, txn, answers, versions) : WORK_OVER;
}

/* ---- Order-status ---- */

static void read_status(const struct work *w, uint32_t place, struct work_txn *txn)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_key orders = customer_row('P', t);
    get(w, txn, place, place, customer_row('C', t));
    get(w, txn, place, place, customer_row('B', t));
    tpcc_range(w, txn, place, place, &orders, 3, 1)->flags = TXN_OPF_REVERSE | TXN_OPF_KEYS;
}

static enum work_step read_last_order(const struct work *w, uint32_t place, struct work_txn *txn,
                                      const struct answer *answers, const uint64_t *versions)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    struct bytes rest = answers[2].value, key, value;
    struct tpcc_key last, orders = customer_row('P', t);
    uint8_t tag[2];
    if (answers[0].kind != ANSWER_VALUE || answers[1].kind != ANSWER_VALUE ||
        answers[2].kind != ANSWER_PAIRS || !txn_pair_take(&rest, &key, &value) ||
        !tpcc_key_take(key, &last, tag)) {
        return broken(txn);
    }
    uint64_t balance = versions[1], range = versions[2];
    t->o = last.o;
    begin_step(txn);
    last = row('O', t->w, t->d);
    last.o = t->o;
    get(w, txn, place, place, last);
    last.table = 'L';
    (void)tpcc_range(w, txn, place, place, &last, 3, 0);
    /* The range is only a watch: it is no operation of this step. */
    struct op *op = tpcc_range(w, txn, place, place, &orders, 3, 1);
    txn->ops_n--;
    txn->watches[txn->watches_n++] = (struct txn_watch){.key = op->key,
                                                        .version = range,
                                                        .range = true,
                                                        .flags = TXN_OPF_REVERSE,
                                                        .limit = 1,
                                                        .end = op->arg};
    last = customer_row('B', t);
    op = tpcc_op(w, txn, place, place, OP_GET, &last);
    txn->ops_n--;
    watch(txn, op->key, balance);
    return WORK_MORE;
}

static enum work_step next_status(struct work *w, uint32_t place, struct work_txn *txn,
                                  const struct answer *answers, const uint64_t *versions)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_order order;
    uint32_t step = t->step + !t->by_name;
    if (step == 0) {
        if (!take_by_name(t, &answers[0])) {
            return broken(txn);
        }
        begin_step(txn);
        read_status(w, place, txn);
        return WORK_MORE;
    }
    if (step == 1) {
        return read_last_order(w, place, txn, answers, versions);
    }
    bool good = answers[0].kind == ANSWER_VALUE && tpcc_order_take(answers[0].value, &order) &&
                order.c == t->c && answers[1].kind == ANSWER_PAIRS &&
                answers[1].number == order.lines;
    return good ? WORK_OVER : broken(txn);
}

/* ---- Delivery ---- */

static uint32_t *last_delivered(const struct work *w, uint32_t place, uint32_t warehouse,
                                uint32_t d)
{
    return &w->delivered[(place * w->config.warehouses + warehouse) * TPCC_DISTRICTS + d];
}

static void begin_delivery(const struct work *w, uint32_t place, struct work_txn *txn)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    for (uint32_t d = 0; d < TPCC_DISTRICTS; d++) {
        struct tpcc_key from = row('Q', t->w, d), to = row('Q', t->w, d + 1);
        from.o = *last_delivered(w, place, t->w, d);
        tpcc_between(w, txn, place, place, &from, 3, &to, 2, 1)->flags = TXN_OPF_KEYS;
    }
    txn->updates = true;
}

static enum work_step read_due(const struct work *w, uint32_t place, struct work_txn *txn,
                               const struct answer *answers)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    bool any = false;
    for (uint32_t d = 0; d < TPCC_DISTRICTS; d++) {
        struct bytes rest = answers[d].value, bytes, value;
        struct tpcc_key key;
        uint8_t tag[2];
        t->due[d].o = 0;
        if (answers[d].kind != ANSWER_PAIRS) {
            return broken(txn);
        }
        if (answers[d].number > 0) {
            bool good = txn_pair_take(&rest, &bytes, &value) && tpcc_key_take(bytes, &key, tag);
            HK_ASSERT(good);
            t->due[d].o = key.o;
            any = true;
        }
    }
    if (!any) {
        return WORK_OVER;
    }
    begin_step(txn);
    for (uint32_t d = 0; d < TPCC_DISTRICTS; d++) {
        struct tpcc_key key = row('Q', t->w, d);
        key.o = t->due[d].o;
        if (key.o > 0) {
            get(w, txn, place, place, key);
            key.table = 'O';
            get(w, txn, place, place, key);
            key.table = 'L';
            (void)tpcc_range(w, txn, place, place, &key, 3, 0);
        }
    }
    return WORK_MORE;
}

/* The first step again: somebody else has delivered what was found. */
static enum work_step again(struct work *w, uint32_t place, struct work_txn *txn);

static enum work_step read_balances(struct work *w, uint32_t place, struct work_txn *txn,
                                    const struct answer *answers, const uint64_t *versions)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    for (uint32_t d = 0, i = 0; d < TPCC_DISTRICTS; d++) {
        struct tpcc_order order;
        struct tpcc_line line;
        struct bytes key, value;
        if (t->due[d].o == 0) {
            continue;
        }
        if (answers[i].kind == ANSWER_NIL) {
            return again(w, place, txn);
        }
        if (answers[i + 1].kind != ANSWER_VALUE || !tpcc_order_take(answers[i + 1].value, &order) ||
            order.lines != answers[i + 2].number || order.lines > TPCC_LINES_MAX ||
            answers[i + 2].kind != ANSWER_PAIRS) {
            return broken(txn);
        }
        t->due[d].version = versions[i];
        t->due[d].c = order.c;
        t->due[d].lines = order.lines;
        t->due[d].amount = 0;
        for (struct bytes rest = answers[i + 2].value; txn_pair_take(&rest, &key, &value);) {
            t->due[d].amount += tpcc_line_take(value, &line) ? line.amount : 0;
        }
        i += 3;
    }
    begin_step(txn);
    for (uint32_t d = 0; d < TPCC_DISTRICTS; d++) {
        if (t->due[d].o > 0) {
            struct tpcc_key key = row('B', t->w, d);
            key.c = t->due[d].c;
            get(w, txn, place, place, key);
        }
    }
    return WORK_MORE;
}

static void deliver(const struct work *w, uint32_t place, struct work_txn *txn, uint32_t d,
                    struct bytes carrier, struct bytes date)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_key key = row('Q', t->w, d);
    key.o = t->due[d].o;
    watch(txn, tpcc_op(w, txn, place, place, OP_DELETE, &key)->key, t->due[d].version);
    key.table = 'O';
    struct op *op = tpcc_op(w, txn, place, place, OP_SETRANGE, &key);
    op->number = 4; /* tpcc_order_put */
    op->value = carrier;
    key.table = 'L';
    for (key.n = 1; key.n <= t->due[d].lines; key.n++) {
        op = tpcc_op(w, txn, place, place, OP_SETRANGE, &key);
        op->number = 16; /* tpcc_line_put */
        op->value = date;
    }
}

static enum work_step write_delivery(const struct work *w, uint32_t place, struct work_txn *txn,
                                     const struct answer *answers, const uint64_t *versions)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_balance balances[TPCC_DISTRICTS];
    uint64_t read[TPCC_DISTRICTS];
    for (uint32_t d = 0, i = 0; d < TPCC_DISTRICTS; d++) {
        if (t->due[d].o > 0) {
            read[d] = versions[i];
            if (answers[i].kind != ANSWER_VALUE ||
                !tpcc_balance_take(answers[i++].value, &balances[d])) {
                return broken(txn);
            }
        }
    }
    begin_step(txn);
    uint8_t *at = tpcc_room(txn, 12);
    put_u32(at, t->number);
    put_u64(at + 4, 2 + w->at[place].drawn);
    for (uint32_t d = 0; d < TPCC_DISTRICTS; d++) {
        if (t->due[d].o > 0) {
            struct tpcc_key key = row('B', t->w, d);
            key.c = t->due[d].c;
            balances[d].balance += t->due[d].amount;
            balances[d].deliveries++;
            deliver(w, place, txn, d, bytes_of(at, 4), bytes_of(at + 4, 8));
            put_balance(w, txn, place, place, key, &balances[d], false, read[d]);
        }
    }
    return WORK_MORE;
}

static enum work_step next_delivery(struct work *w, uint32_t place, struct work_txn *txn,
                                    const struct answer *answers, const uint64_t *versions)
{
    const struct work_tpcc *t = &txn->kept.tpcc;
    switch (t->step) {
    case 0:
        return read_due(w, place, txn, answers);
    case 1:
        return read_balances(w, place, txn, answers, versions);
    case 2:
        return write_delivery(w, place, txn, answers, versions);
    default:
        for (uint32_t d = 0; d < TPCC_DISTRICTS; d++) {
            uint32_t *last = last_delivered(w, place, t->w, d);
            *last = t->due[d].o > *last ? t->due[d].o : *last;
        }
        return WORK_OVER;
    }
}

/* ---- Stock-level ---- */

static void read_stocks(const struct work *w, uint32_t place, struct work_txn *txn)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    begin_step(txn);
    for (; t->stocks_at < t->stocks_n && txn->ops_n < WORK_OPS_MAX; t->stocks_at++) {
        get(w, txn, place, place,
            (struct tpcc_key){.table = 'S', .w = t->w, .i = t->stocks[t->stocks_at]});
    }
}

static bool add_stock(struct work_tpcc *t, uint32_t item)
{
    for (uint32_t i = 0; i < t->stocks_n; i++) {
        if (t->stocks[i] == item) {
            return true;
        }
    }
    if (t->stocks_n == WORK_STOCKS_MAX) {
        return false;
    }
    t->stocks[t->stocks_n++] = item;
    return true;
}

static enum work_step next_level(const struct work *w, uint32_t place, struct work_txn *txn,
                                 const struct answer *answers)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    struct tpcc_district district;
    struct tpcc_line line;
    struct tpcc_stock stock;
    struct bytes key, value;
    if (t->step == 0) {
        if (answers[0].kind != ANSWER_VALUE || !tpcc_district_take(answers[0].value, &district)) {
            return broken(txn);
        }
        begin_step(txn);
        struct tpcc_key from = row('L', t->w, t->d), to = from;
        to.o = district.next_o;
        from.o = to.o > TPCC_STOCK_OF_ORDERS ? to.o - TPCC_STOCK_OF_ORDERS : 1;
        (void)tpcc_between(w, txn, place, place, &from, 3, &to, 3, 0);
        return WORK_MORE;
    }
    if (t->step == 1) {
        for (struct bytes rest = answers[0].value;
             answers[0].kind == ANSWER_PAIRS && txn_pair_take(&rest, &key, &value);) {
            if (!tpcc_line_take(value, &line) || !add_stock(t, line.i)) {
                return broken(txn);
            }
        }
    }
    for (uint32_t i = 0; t->step > 1 && i < txn->ops_n; i++) {
        if (answers[i].kind != ANSWER_VALUE || !tpcc_stock_take(answers[i].value, &stock)) {
            return broken(txn);
        }
        txn->own[OWN_LOW] += stock.quantity < (int32_t)t->number;
    }
    if (t->stocks_at == t->stocks_n) {
        return t->stocks_n > 0 ? WORK_OVER : broken(txn);
    }
    read_stocks(w, place, txn);
    return WORK_MORE;
}

/* ---- All of them ---- */

static void first_step(const struct work *w, uint32_t place, struct work_txn *txn)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    txn->ops_n = 0;
    txn->watches_n = 0;
    txn->memory_n = 0;
    t->step = 0;
    t->stocks_n = t->stocks_at = 0;
    txn->own[OWN_LOW] = 0;
    switch (txn->type) {
    case NEW_ORDER:
        begin_new_order(w, place, txn);
        break;
    case PAYMENT:
        if (t->by_name) {
            begin_by_name(w, place, txn);
        } else {
            read_payment(w, place, txn);
        }
        break;
    case ORDER_STATUS:
        if (t->by_name) {
            begin_by_name(w, place, txn);
        } else {
            read_status(w, place, txn);
        }
        break;
    case DELIVERY:
        begin_delivery(w, place, txn);
        break;
    default:
        get(w, txn, place, place, row('D', t->w, t->d));
        break;
    }
}

static enum work_step again(struct work *w, uint32_t place, struct work_txn *txn)
{
    first_step(w, place, txn);
    return WORK_AGAIN;
}

static void tpcc_draw(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    struct work_tpcc *t = &txn->kept.tpcc;
    uint32_t x = (uint32_t)random_below(random, 100), type = 0;
    while (x >= mix[type]) {
        x -= mix[type++];
    }
    work_begin(txn, type);
    memset(t, 0, offsetof(struct work_tpcc, stocks));
    t->w = t->c_w = (uint32_t)random_below(random, w->config.warehouses);
    t->d = t->c_d = (uint32_t)random_below(random, TPCC_DISTRICTS);
    t->c_home = place;
    if (type == NEW_ORDER) {
        draw_new_order(w, place, random, t);
    } else if (type == PAYMENT) {
        draw_payment(w, place, random, t);
        txn->updates = true;
    } else if (type == ORDER_STATUS) {
        draw_customer(w, random, t);
    } else {
        t->number = type == DELIVERY ? 1 + (uint32_t)random_below(random, 10)
                                     : 10 + (uint32_t)random_below(random, 11);
    }
    first_step(w, place, txn);
}

static enum work_step tpcc_next(struct work *w, uint32_t place, struct work_txn *txn, bool watched,
                                const struct answer *answers, const uint64_t *versions)
{
    if (!watched) {
        return again(w, place, txn);
    }
    switch (txn->type) {
    case NEW_ORDER:
        return next_new_order(w, place, txn, answers, versions);
    case PAYMENT:
        return next_payment(w, place, txn, answers, versions);
    case ORDER_STATUS:
        return next_status(w, place, txn, answers, versions);
    case DELIVERY:
        return next_delivery(w, place, txn, answers, versions);
    default:
        return next_level(w, place, txn, answers);
    }
}

static bool tpcc_succeeded(const struct work_txn *txn, bool applied, const struct answer *answers)
{
    (void)answers;
    return applied && txn->own[OWN_ROLLED_BACK] == 0 && txn->own[OWN_BROKEN] == 0;
}

const struct work_ops work_tpcc = {
    .names = {"new_order", "payment", "order_status", "delivery", "stock_level"},
    .success = {1.0 - ROLLED_BACK_PERCENT / 100.0, 1.0, 1.0, 1.0, 1.0},
    .types = TYPES,
    .defaults = {.objects = 1000, .warehouses = 2, .customers = 300, .remote = -1.0},
    .open = tpcc_open,
    .close = tpcc_close,
    .fill_count = tpcc_fill_count,
    .fill = tpcc_fill,
    .draw = tpcc_draw,
    .next = tpcc_next,
    .succeeded = tpcc_succeeded,
    .scans = true,
    .nature = true,
};
