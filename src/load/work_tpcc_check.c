/* The conditions of 3.3.2 that sums over all rows can tell, 1 to 10 and 12, and that nothing else
 * is there: each line has its order, each new order, too. */
#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "load/work_tpcc.h"

struct order {
    struct tpcc_order row;
    bool there, fresh, of_customer;
    uint32_t lines, delivered;
    int64_t amount; /* of delivered lines */
};

struct customer {
    struct tpcc_balance row;
    bool there;
    int64_t delivered, paid;
};

struct district {
    struct tpcc_district row;
    bool there;
    uint64_t year;
    int64_t paid;
    struct order *orders; /* by number */
    uint32_t orders_n;
    struct customer *customers;
};

struct warehouse {
    uint64_t year;
    int64_t paid;
    struct district districts[TPCC_DISTRICTS];
};

struct tpcc_check {
    const struct work *work;
    struct warehouse *warehouses;
    uint32_t warehouses_n;
    bool out_of_memory;
};

int tpcc_check_create(const struct work *w, struct tpcc_check **check_out)
{
    struct tpcc_check *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return HK_ERR_NOMEM;
    }
    c->work = w;
    c->warehouses_n = w->places * w->config.warehouses;
    c->warehouses = calloc(c->warehouses_n, sizeof *c->warehouses);
    bool good = c->warehouses != NULL;
    for (uint32_t i = 0; good && i < c->warehouses_n * TPCC_DISTRICTS; i++) {
        struct district *d = &c->warehouses[i / TPCC_DISTRICTS].districts[i % TPCC_DISTRICTS];
        d->customers = calloc(w->config.customers, sizeof *d->customers);
        good = d->customers != NULL;
    }
    if (!good) {
        tpcc_check_destroy(c);
        return HK_ERR_NOMEM;
    }
    *check_out = c;
    return HK_OK;
}

void tpcc_check_destroy(struct tpcc_check *c)
{
    for (uint32_t i = 0; c->warehouses != NULL && i < c->warehouses_n * TPCC_DISTRICTS; i++) {
        struct district *d = &c->warehouses[i / TPCC_DISTRICTS].districts[i % TPCC_DISTRICTS];
        free(d->customers);
        free(d->orders);
    }
    free(c->warehouses);
    free(c);
}

static struct order *order_of(struct tpcc_check *c, struct district *d, uint32_t o)
{
    if (o >= d->orders_n) {
        uint32_t n = o + 1 + o / 2;
        struct order *more = realloc(d->orders, n * sizeof *more);
        if (more == NULL) {
            c->out_of_memory = true;
            return NULL;
        }
        memset(more + d->orders_n, 0, (n - d->orders_n) * sizeof *more);
        d->orders = more;
        d->orders_n = n;
    }
    return &d->orders[o];
}

static bool find_warehouse(struct tpcc_check *c, uint32_t place, uint32_t w, struct warehouse **out)
{
    if (place >= c->work->places || w >= c->work->config.warehouses) {
        return false;
    }
    *out = &c->warehouses[place * c->work->config.warehouses + w];
    return true;
}

static bool decimal(struct bytes value, uint64_t *out)
{
    *out = 0;
    for (uint32_t i = 0; i < value.n; i++) {
        if (value.at[i] < '0' || value.at[i] > '9') {
            return false;
        }
        *out = *out * 10 + value.at[i] - '0';
    }
    return value.n > 0;
}

static bool add_history(struct tpcc_check *c, struct warehouse *w, struct bytes value)
{
    struct tpcc_history h;
    struct warehouse *of_customer;
    if (!tpcc_history_take(value, &h) || h.d >= TPCC_DISTRICTS || h.c_d >= TPCC_DISTRICTS ||
        h.c >= c->work->config.customers || !find_warehouse(c, h.c_home, h.c_w, &of_customer)) {
        return false;
    }
    w->paid += h.amount;
    w->districts[h.d].paid += h.amount;
    of_customer->districts[h.c_d].customers[h.c].paid += h.amount;
    return true;
}

static bool add_of_order(struct tpcc_check *c, struct district *d, const struct tpcc_key *key,
                         struct bytes value)
{
    struct order *order = order_of(c, d, key->o);
    struct tpcc_line line;
    if (order == NULL) {
        return true;
    }
    switch (key->table) {
    case 'O':
        order->there = true;
        return tpcc_order_take(value, &order->row);
    case 'Q':
        order->fresh = true;
        return true;
    case 'P':
        order->of_customer = true;
        return key->c < c->work->config.customers;
    default:
        if (!tpcc_line_take(value, &line)) {
            return false;
        }
        order->lines++;
        order->delivered += line.delivery != 0;
        order->amount += line.delivery != 0 ? line.amount : 0;
        return true;
    }
}

static uint32_t place_of(const struct work *w, const uint8_t tag[2])
{
    uint32_t place = 0;
    while (place < w->places && memcmp(w->tags[place], tag, 2) != 0) {
        place++;
    }
    return place;
}

bool tpcc_check_row(struct tpcc_check *c, struct bytes bytes, struct bytes value)
{
    struct tpcc_key key;
    struct warehouse *w;
    uint8_t tag[2];
    if (!tpcc_key_take(bytes, &key, tag) || !find_warehouse(c, place_of(c->work, tag), key.w, &w) ||
        key.d >= TPCC_DISTRICTS) {
        return false;
    }
    struct district *d = &w->districts[key.d];
    switch (key.table) {
    case 'Y':
        return decimal(value, &w->year);
    case 'E':
        return decimal(value, &d->year);
    case 'D':
        d->there = true;
        return tpcc_district_take(value, &d->row);
    case 'B':
        if (key.c >= c->work->config.customers) {
            return false;
        }
        d->customers[key.c].there = true;
        return tpcc_balance_take(value, &d->customers[key.c].row);
    case 'H':
        return add_history(c, w, value);
    case 'O':
    case 'P':
    case 'Q':
    case 'L':
        return add_of_order(c, d, &key, value);
    default:
        return true; /* what no transaction changes, and stocks */
    }
}

static const char *order_wrong(struct district *d, const struct order *o)
{
    if (!o->there) {
        return o->lines > 0 || o->fresh || o->of_customer ? "6: a line without its order" : NULL;
    }
    if (!o->of_customer) {
        return "an order that its customer's index does not have";
    }
    if (o->row.lines != o->lines) {
        return "6: an order has not as many lines as it says";
    }
    if ((o->row.carrier == 0) != o->fresh) {
        return "5: an order is new, or has a carrier";
    }
    if (o->delivered != (o->fresh ? 0 : o->lines)) {
        return "7: lines are delivered with their order";
    }
    d->customers[o->row.c].delivered += o->amount;
    return NULL;
}

static const char *orders_wrong(const struct work *w, struct district *d)
{
    uint32_t last = 0, first_new = 0, last_new = 0, fresh = 0;
    for (uint32_t o = 0; o < d->orders_n; o++) {
        if (d->orders[o].there && d->orders[o].row.c >= w->config.customers) {
            return "an order of nobody";
        }
        const char *wrong = order_wrong(d, &d->orders[o]);
        if (wrong != NULL) {
            return wrong;
        }
        if (o > 0 && d->orders[o].there && o != last + 1) {
            return "2: an order's number is missing";
        }
        last = d->orders[o].there ? o : last;
        first_new = d->orders[o].fresh && fresh == 0 ? o : first_new;
        last_new = d->orders[o].fresh ? o : last_new;
        fresh += d->orders[o].fresh;
    }
    if (!d->there || d->row.next_o != last + 1 || (fresh > 0 && last_new != last)) {
        return "2: the next order is one more than the last";
    }
    return fresh > 0 && last_new - first_new + 1 != fresh ? "3: new orders are in one piece" : NULL;
}

static const char *customer_wrong(const struct customer *c)
{
    if (!c->there) {
        return "a customer without a balance";
    }
    if (c->row.balance != c->delivered - c->paid) {
        return "10: a balance is what was delivered less what was paid";
    }
    return c->row.balance + c->row.paid != c->delivered
               ? "12: balance and payments are what was delivered"
               : NULL;
}

static const char *district_wrong(const struct work *w, struct district *d)
{
    const char *wrong = orders_wrong(w, d);
    for (uint32_t i = 0; wrong == NULL && i < w->config.customers; i++) {
        wrong = customer_wrong(&d->customers[i]);
    }
    if (wrong == NULL && (int64_t)d->year != d->paid) {
        wrong = "9: a district's year is its history";
    }
    return wrong;
}

const char *tpcc_check_end(struct tpcc_check *c, uint32_t *where_out)
{
    const char *wrong = c->out_of_memory ? "out of memory" : NULL;
    for (uint32_t i = 0; wrong == NULL && i < c->warehouses_n; i++) {
        struct warehouse *w = &c->warehouses[i];
        uint64_t years = 0;
        *where_out = i;
        for (uint32_t d = 0; wrong == NULL && d < TPCC_DISTRICTS; d++) {
            wrong = district_wrong(c->work, &w->districts[d]);
            years += w->districts[d].year;
        }
        if (wrong == NULL && w->year != years) {
            wrong = "1: a warehouse's year is its districts'";
        }
        if (wrong == NULL && (int64_t)w->year != w->paid) {
            wrong = "8: a warehouse's year is its history";
        }
    }
    return wrong;
}
