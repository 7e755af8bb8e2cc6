/* TPC-C's rows (TPC Benchmark C, revision 5.11): keys, values, the population, and the conditions
 * of consistency. For the generator (work_tpcc.c) and tests.
 *
 * A key is `{ab}`, a letter for the table, and its columns, highest byte first: so the rows of a
 * district, the lines of an order, the customers of a name are neighbours, which ranges read. A
 * warehouse's rows have the tag of its place, and items, which every place has for itself, too.
 *
 *   W w                Warehouse             tax                           no transaction writes it
 *   Y w                its year to date      a number in decimal
 *   D w d              District              tax, next order
 *   E w d              its year to date      a number in decimal
 *   C w d c            Customer              discount, credit              no transaction writes it
 *   B w d c            its balance           balance, paid, counts, data
 *   N w d name first c index by last name    -
 *   O w d o            Order                 customer, carrier, lines, entry
 *   P w d c o          index by customer     -
 *   L w d o n          Order-Line            item, supplier, quantity, amount, delivery
 *   Q w d o            New-Order             -
 *   I i                Item                  price                         no transaction writes it
 *   S w i              Stock                 quantity, sum, counts
 *   H w p h            History               amount, district, customer; p, h: place and number of
 *                                            the payment
 *
 * Where columns that change stand beside ones that do not, the row is two (1.4.5 allows it). Values
 * are fixed-width and filled up to about the row's length by 1.2.1; amounts are in cents. */
#ifndef HORKOS_LOAD_WORK_TPCC_H
#define HORKOS_LOAD_WORK_TPCC_H

#include "load/work_internal.h"

#define TPCC_DISTRICTS 10u
#define TPCC_LINES_MIN 5u
#define TPCC_LINES_MAX 15u
#define TPCC_KEY_MAX 20u
#define TPCC_STOCK_OF_ORDERS 20u /* stock-level looks at the items of so many */

/* Of values: what is read and written of them. */
#define TPCC_HEAD_BYTES 32u
#define TPCC_WAREHOUSE_BYTES 81u
#define TPCC_DISTRICT_BYTES 87u
#define TPCC_CUSTOMER_BYTES 120u
#define TPCC_BALANCE_BYTES 535u
#define TPCC_ORDER_BYTES 24u
#define TPCC_LINE_BYTES 54u
#define TPCC_ITEM_BYTES 82u
#define TPCC_STOCK_BYTES 306u
#define TPCC_HISTORY_BYTES 46u

/* A row's columns; which of them count is the table's matter. */
struct tpcc_key {
    char table;
    uint32_t w; /* of the place */
    uint32_t d, c, o, n;
    uint32_t name, first; /* N */
    uint32_t i;
    uint32_t place; /* H */
    uint64_t h;
};
/* Its length, up to TPCC_KEY_MAX. */
uint32_t tpcc_key_put(const struct work *work, uint32_t home, const struct tpcc_key *key,
                      uint8_t *at);
/* False: it is none. tag_out: the two letters. */
bool tpcc_key_take(struct bytes bytes, struct tpcc_key *key_out, uint8_t tag_out[2]);
/* Its tag, its table and the first `columns` columns alone: what a range of rows begins with. */
uint32_t tpcc_prefix_put(const struct work *work, uint32_t home, const struct tpcc_key *key,
                         uint32_t columns, uint8_t *at);

struct tpcc_district {
    uint32_t tax_bp; /* of 10000 */
    uint32_t next_o;
};
struct tpcc_balance {
    int64_t balance, paid;
    uint32_t payments, deliveries;
};
struct tpcc_order {
    uint32_t c, carrier, lines; /* carrier 0: not delivered */
    uint64_t entry;
};
struct tpcc_line {
    uint32_t i, place;
    uint8_t w, quantity;
    int64_t amount;
    uint64_t delivery; /* 0: not delivered */
};
struct tpcc_stock {
    int32_t quantity;
    uint32_t sum, orders, remote;
};
struct tpcc_history {
    int64_t amount;
    uint32_t d, c_home, c_w, c_d, c;
};
/* Of a value's head (TPCC_HEAD_BYTES; order, line, history: all of it). False: too short. */
bool tpcc_district_take(struct bytes value, struct tpcc_district *out);
bool tpcc_balance_take(struct bytes value, struct tpcc_balance *out);
bool tpcc_order_take(struct bytes value, struct tpcc_order *out);
bool tpcc_line_take(struct bytes value, struct tpcc_line *out);
bool tpcc_stock_take(struct bytes value, struct tpcc_stock *out);
bool tpcc_history_take(struct bytes value, struct tpcc_history *out);
void tpcc_district_put(uint8_t at[TPCC_HEAD_BYTES], const struct tpcc_district *row);
void tpcc_balance_put(uint8_t at[TPCC_HEAD_BYTES], const struct tpcc_balance *row);
void tpcc_order_put(uint8_t at[TPCC_ORDER_BYTES], const struct tpcc_order *row);
void tpcc_line_put(uint8_t at[TPCC_LINE_BYTES], const struct tpcc_line *row);
void tpcc_stock_put(uint8_t at[TPCC_HEAD_BYTES], const struct tpcc_stock *row);
void tpcc_history_put(uint8_t at[TPCC_HISTORY_BYTES], const struct tpcc_history *row);

/* Functions of the seed: what the population is drawn from. */
uint32_t tpcc_names(const struct work *work); /* of customers, 1000 by the specification */
uint32_t tpcc_price(const struct work *work, uint32_t item);
uint32_t tpcc_nurand(const struct work *work, struct random *random, uint32_t a, uint32_t n);

int tpcc_open(struct work *work);
void tpcc_close(struct work *work);
uint64_t tpcc_fill_count(const struct work *work);
bool tpcc_fill(const struct work *work, uint32_t place, uint64_t number, struct work_txn *txn);

/* Bytes of the transaction's memory; asserts that there are any. */
uint8_t *tpcc_room(struct work_txn *txn, uint32_t bytes);
/* An operation on a row; its key goes into the transaction's memory. */
struct op *tpcc_op(const struct work *work, struct work_txn *txn, uint32_t place, uint32_t home,
                   uint8_t kind, const struct tpcc_key *key);
/* All rows whose key begins with `columns` of these; limit 0: all. */
struct op *tpcc_range(const struct work *work, struct work_txn *txn, uint32_t place, uint32_t home,
                      const struct tpcc_key *key, uint32_t columns, uint32_t limit);
/* The same from one beginning on, until another one. */
struct op *tpcc_between(const struct work *work, struct work_txn *txn, uint32_t place,
                        uint32_t home, const struct tpcc_key *from, uint32_t from_columns,
                        const struct tpcc_key *to, uint32_t to_columns, uint32_t limit);

/* ---- Consistency (3.3.2), of all rows of all warehouses at one moment ---- */

struct tpcc_check;
/* HK_ERR_NOMEM. */
int tpcc_check_create(const struct work *work, struct tpcc_check **check_out)
    __attribute__((warn_unused_result));
void tpcc_check_destroy(struct tpcc_check *check);
/* False: it is no row of TPC-C. Rows come in any order, each once. */
bool tpcc_check_row(struct tpcc_check *check, struct bytes key, struct bytes value);
/* NULL: all hold. Or which one does not, and *where_out: place * warehouses + w. */
const char *tpcc_check_end(struct tpcc_check *check, uint32_t *where_out);

#endif
