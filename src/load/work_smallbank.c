/* Smallbank (M. Cahill, U. Rohm and A. Fekete, "Serializable isolation for snapshot databases",
 * 2008), with the mix and the hot set that FaSST and [Z] measure with. Amounts are drawn, not read:
 * what is read and written is the same, but nothing is refused for want of money.
 *
 * The payment graph: accounts stand on a circle, cut into as many arcs as there are places. An
 * account pays a few friends, whose distance follows a power law, as a fraction of the circle: most
 * are near, and the parts that leave an arc grow with the number of arcs as they do in the graph
 * that [Z] measured. */
#include <math.h>

#include "load/work_internal.h"

enum { SAVINGS, CHECKING };
enum { AMALGAMATE, BALANCE, DEPOSIT, PAYMENT, SAVE, CHECK };
static const uint32_t mix[] = {
    [AMALGAMATE] = 15, [BALANCE] = 15, [DEPOSIT] = 15, [PAYMENT] = 25, [SAVE] = 15, [CHECK] = 15};

#define HOT_PERCENT 90.0
#define AMOUNT_MAX 100u
#define FRIENDS 8u
/* Fitted to 0.81, 1.40 and 1.88 % of all transactions at 3, 6 and 9 arcs. */
#define DISTANCE_LEAST 2.149e-4
#define DISTANCE_EXPONENT 0.60

static uint64_t smallbank_fill_count(const struct work *w)
{
    return 2 * (uint64_t)w->per_place;
}

static bool smallbank_fill(const struct work *w, uint32_t place, uint64_t number,
                           struct work_txn *txn)
{
    work_begin(txn, 0);
    work_op(w, txn, place, place, OP_SET, number % 2 == 0 ? SAVINGS : CHECKING,
            (uint32_t)(number / 2))
        ->value = bytes_of("1000000", 7);
    return true;
}

/* Hot accounts are spread evenly over the arc. */
static uint32_t draw_account(const struct work *w, struct random *random)
{
    uint32_t hot = w->config.hot / w->config.workers;
    if (work_percent(random, HOT_PERCENT)) {
        uint64_t i = random_below(random, hot);
        return (uint32_t)(i * w->per_place / hot);
    }
    return (uint32_t)random_below(random, w->per_place);
}

/* One of the account's friends, on the whole circle. */
static uint64_t friend_of(const struct work *w, uint64_t account, struct random *random)
{
    uint64_t all = (uint64_t)w->per_place * w->places;
    uint64_t which = random_below(random, FRIENDS);
    uint64_t h = work_mix(work_mix(account ^ w->config.seed << 40) + which);
    /* The distance's distribution, inverted: between the least and half of the circle. */
    double far = pow(2.0 * DISTANCE_LEAST, DISTANCE_EXPONENT);
    double u = far + (1.0 - far) * work_unit(h);
    double distance = DISTANCE_LEAST * pow(u, -1.0 / DISTANCE_EXPONENT);
    uint64_t steps = (uint64_t)(distance * (double)all) + 1;
    return (h & 1) != 0 ? (account + steps) % all : (account + all - steps % all) % all;
}

static uint32_t draw_type(struct random *random)
{
    uint32_t x = (uint32_t)random_below(random, 100), type = 0;
    while (x >= mix[type]) {
        x -= mix[type++];
    }
    return type;
}

/* Whom the first account pays. */
static void draw_other(const struct work *w, uint32_t place, uint32_t from, struct random *random,
                       uint32_t *place_out, uint32_t *account_out)
{
    if (w->config.remote < 0.0) {
        uint64_t to = friend_of(w, (uint64_t)place * w->per_place + from, random);
        *place_out = (uint32_t)(to / w->per_place);
        *account_out = (uint32_t)(to % w->per_place);
        return;
    }
    *place_out = work_where(w, place, random);
    *account_out = draw_account(w, random);
    if (*place_out == place && *account_out == from) {
        *account_out = (from + 1) % w->per_place;
    }
}

static void smallbank_draw(struct work *w, uint32_t place, struct random *random,
                           struct work_txn *txn)
{
    uint32_t type = draw_type(random), a = draw_account(w, random), b = 0;
    bool two = type == AMALGAMATE || type == PAYMENT;
    uint32_t at = two || w->config.remote < 0.0 ? place : work_where(w, place, random);
    uint32_t to = place;
    int64_t x = 1 + (int64_t)random_below(random, AMOUNT_MAX);
    int64_t y = 1 + (int64_t)random_below(random, AMOUNT_MAX);
    if (two) {
        draw_other(w, place, a, random, &to, &b);
    }
    work_begin(txn, type);
    switch (type) {
    case AMALGAMATE:
        work_op(w, txn, place, at, OP_ADD, SAVINGS, a)->number = -x;
        work_op(w, txn, place, at, OP_ADD, CHECKING, a)->number = -y;
        work_op(w, txn, place, to, OP_ADD, CHECKING, b)->number = x + y;
        break;
    case BALANCE:
        (void)work_op(w, txn, place, at, OP_GET, SAVINGS, a);
        (void)work_op(w, txn, place, at, OP_GET, CHECKING, a);
        break;
    case DEPOSIT:
        work_op(w, txn, place, at, OP_ADD, CHECKING, a)->number = x;
        break;
    case PAYMENT:
        work_op(w, txn, place, at, OP_ADD, CHECKING, a)->number = -x;
        work_op(w, txn, place, to, OP_ADD, CHECKING, b)->number = x;
        break;
    case SAVE:
        work_op(w, txn, place, at, OP_ADD, SAVINGS, a)->number = x;
        break;
    default:
        (void)work_op(w, txn, place, at, OP_GET, SAVINGS, a);
        work_op(w, txn, place, at, OP_ADD, CHECKING, a)->number = -x;
        break;
    }
}

const struct work_ops work_smallbank = {
    .names = {"amalgamate", "balance", "deposit_checking", "send_payment", "transact_savings",
              "write_check"},
    .success = {1.0, 1.0, 1.0, 1.0, 1.0, 1.0},
    .types = 6,
    .defaults = {.objects = 100000, .hot = 4000, .remote = -1.0},
    .fill_count = smallbank_fill_count,
    .fill = smallbank_fill,
    .draw = smallbank_draw,
};
