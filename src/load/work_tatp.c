/* TATP (Telecom Application Transaction Processing Benchmark, 1.0): a home location register. All
 * seven transactions in the standard mix, the population with its gaps: a subscriber has 1 to 4 of
 * 4 types of access info and of special facilities, each facility 0 to 3 of 3 call forwardings. So
 * 62.5 % of the rows that are asked for exist, and of the call forwardings half of that.
 *
 * A destination is found if the facility exists and is active, and a forwarding that has begun at a
 * random one of the three hours ends after a random hour of the day: 14.8 % of all by this
 * population, enumerated.
 *
 * Whether a row exists at first, and what a facility or a forwarding says, are functions of its
 * number, so that whoever writes a row writes what it says. */
#include "load/work_internal.h"

enum { SUBSCRIBERS, ACCESS, FACILITIES, FORWARDINGS };
enum {
    GET_SUBSCRIBER,
    GET_DESTINATION,
    GET_ACCESS,
    UPDATE_SUBSCRIBER,
    UPDATE_LOCATION,
    INSERT_FORWARDING,
    DELETE_FORWARDING,
    TYPES
};
static const uint32_t mix[TYPES] = {35, 10, 35, 2, 14, 2, 2};

#define SUBSCRIBER_BYTES 80u
#define ACCESS_BYTES 16u
#define FACILITY_BYTES 16u
#define LOCATION_AT 8u /* of a subscriber's vlr_location */
#define BIT_AT 0u
#define ROWS 21u /* that a subscriber may have: itself, 4, 4, 12 */
#define ACTIVE_PERCENT 85.0
#define STARTS 3u

/* `count` of n members, each as likely as any other: bit i says that the i-th is one. `h` is
 * uniform. */
static uint32_t draw_subset(uint64_t h, uint32_t n, uint32_t count)
{
    uint32_t taken = 0;
    for (uint32_t left = count; left > 0; left--) {
        uint32_t pick = (uint32_t)(h % n);
        h /= n;
        while ((taken >> pick & 1u) != 0) {
            pick = (pick + 1) % n;
        }
        taken |= 1u << pick;
    }
    return taken;
}

static uint64_t row_hash(const struct work *w, uint32_t home, uint32_t table, uint64_t id)
{
    return work_mix(work_mix(w->config.seed << 32 ^ home) ^ ((uint64_t)table << 40 | id));
}

static bool row_exists(const struct work *w, uint32_t home, uint32_t table, uint32_t subscriber,
                       uint32_t type)
{
    uint64_t h = row_hash(w, home, table, subscriber);
    return (draw_subset(h >> 8, 4, 1 + (uint32_t)(h & 3u)) >> type & 1u) != 0;
}

static bool facility_active(const struct work *w, uint32_t home, uint32_t facility)
{
    return work_unit(row_hash(w, home, FACILITIES + 8u, facility)) * 100.0 < ACTIVE_PERCENT;
}

/* 1 to 8 hours after it begins. */
static uint32_t forwarding_end(const struct work *w, uint32_t home, uint32_t forwarding)
{
    return forwarding % STARTS * 8 + 1 +
           (uint32_t)(row_hash(w, home, FORWARDINGS + 8u, forwarding) % 8);
}

static struct bytes facility_value(const struct work *w, uint32_t home, uint32_t facility)
{
    static const uint8_t active[FACILITY_BYTES] = "active", idle[FACILITY_BYTES] = "idle";
    return bytes_of(facility_active(w, home, facility) ? active : idle, FACILITY_BYTES);
}

static uint64_t tatp_fill_count(const struct work *w)
{
    return ROWS * (uint64_t)w->per_place;
}

static bool tatp_fill(const struct work *w, uint32_t place, uint64_t number, struct work_txn *txn)
{
    uint32_t s = (uint32_t)(number / ROWS), row = (uint32_t)(number % ROWS);
    work_begin(txn, 0);
    if (row == 0) {
        work_op(w, txn, place, place, OP_SET, SUBSCRIBERS, s)->value =
            work_value(w, SUBSCRIBER_BYTES);
        return true;
    }
    if (row <= 4) {
        work_op(w, txn, place, place, OP_SET, ACCESS, s * 4 + row - 1)->value =
            work_value(w, ACCESS_BYTES);
        return row_exists(w, place, ACCESS, s, row - 1);
    }
    if (row <= 8) {
        work_op(w, txn, place, place, OP_SET, FACILITIES, s * 4 + row - 5)->value =
            facility_value(w, place, s * 4 + row - 5);
        return row_exists(w, place, FACILITIES, s, row - 5);
    }
    uint32_t type = (row - 9) / STARTS, start = (row - 9) % STARTS;
    uint32_t facility = s * 4 + type;
    uint64_t h = row_hash(w, place, FORWARDINGS, facility);
    work_op(w, txn, place, place, OP_SET, FORWARDINGS, facility * STARTS + start)->value =
        facility_value(w, place, facility);
    return row_exists(w, place, FACILITIES, s, type) &&
           (draw_subset(h >> 8, STARTS, (uint32_t)(h & 3u)) >> start & 1u) != 0;
}

static uint32_t draw_type(struct random *random)
{
    uint32_t x = (uint32_t)random_below(random, 100), type = 0;
    while (x >= mix[type]) {
        x -= mix[type++];
    }
    return type;
}

/* The forwardings of a facility that have begun at the hour, and when each ends: own[0] how many,
 * then their ends; own[7]: when the call ends. */
static void draw_destination(const struct work *w, uint32_t place, uint32_t home, uint32_t facility,
                             struct random *random, struct work_txn *txn)
{
    uint32_t start = (uint32_t)random_below(random, STARTS);
    (void)work_op(w, txn, place, home, OP_GET, FACILITIES, facility);
    for (uint32_t i = 0; i <= start; i++) {
        uint32_t forwarding = facility * STARTS + i;
        (void)work_op(w, txn, place, home, OP_GET, FORWARDINGS, forwarding);
        txn->own[1 + i] = forwarding_end(w, home, forwarding);
    }
    txn->own[0] = start + 1;
    txn->own[6] = facility_active(w, home, facility);
    txn->own[7] = 1 + (uint32_t)random_below(random, 24);
}

/* The new row is a copy of the facility's: so there is none without it, and none is overwritten. */
static void draw_insert(const struct work *w, uint32_t place, uint32_t home, uint32_t facility,
                        uint32_t start, struct work_txn *txn)
{
    struct op *op = work_op(w, txn, place, home, OP_GET, FACILITIES, facility);
    uint8_t *target = txn->keys[WORK_OPS_MAX];
    work_key(w, home, FORWARDINGS, facility * STARTS + start, target);
    op->kind = TXN_OP_COPY;
    op->arg = bytes_of(target, WORK_KEY_BYTES);
    txn->updates = true;
}

static void tatp_draw(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    static const uint8_t location[4] = {1, 2, 3, 4}, bit[1] = {1};
    uint32_t type = draw_type(random), home = work_where(w, place, random);
    uint32_t s = (uint32_t)random_below(random, w->per_place);
    uint32_t of = s * 4 + (uint32_t)random_below(random, 4);
    uint32_t start = (uint32_t)random_below(random, STARTS);
    work_begin(txn, type);
    switch (type) {
    case GET_SUBSCRIBER:
        (void)work_op(w, txn, place, home, OP_GET, SUBSCRIBERS, s);
        break;
    case GET_DESTINATION:
        draw_destination(w, place, home, of, random, txn);
        break;
    case GET_ACCESS:
        (void)work_op(w, txn, place, home, OP_GET, ACCESS, of);
        break;
    case UPDATE_SUBSCRIBER: {
        struct op *op = work_op(w, txn, place, home, OP_SETRANGE, SUBSCRIBERS, s);
        op->number = BIT_AT;
        op->value = bytes_of(bit, sizeof bit);
        op = work_op(w, txn, place, home, OP_SET, FACILITIES, of);
        op->flags = OPF_XX;
        op->value = facility_value(w, home, of);
        txn->flags = TXN_ALL;
        break;
    }
    case UPDATE_LOCATION: {
        struct op *op = work_op(w, txn, place, home, OP_SETRANGE, SUBSCRIBERS, s);
        op->number = LOCATION_AT;
        op->value = bytes_of(location, sizeof location);
        break;
    }
    case INSERT_FORWARDING:
        (void)work_op(w, txn, place, home, OP_GET, SUBSCRIBERS, s);
        draw_insert(w, place, home, of, start, txn);
        break;
    default:
        (void)work_op(w, txn, place, home, OP_GET, SUBSCRIBERS, s);
        (void)work_op(w, txn, place, home, OP_DELETE, FORWARDINGS, of * STARTS + start);
        break;
    }
}

static bool destination_found(const struct work_txn *txn, const struct answer *answers)
{
    if (answers[0].kind != ANSWER_VALUE || txn->own[6] == 0) {
        return false;
    }
    for (uint32_t i = 1; i <= txn->own[0]; i++) {
        if (answers[i].kind == ANSWER_VALUE && txn->own[i] > txn->own[7]) {
            return true;
        }
    }
    return false;
}

static bool tatp_succeeded(const struct work_txn *txn, bool applied, const struct answer *answers)
{
    if (!applied) {
        return false;
    }
    switch (txn->type) {
    case GET_SUBSCRIBER:
    case GET_ACCESS:
        return answers[0].kind == ANSWER_VALUE;
    case GET_DESTINATION:
        return destination_found(txn, answers);
    case INSERT_FORWARDING:
    case DELETE_FORWARDING:
        return answers[1].number == 1;
    default:
        return true;
    }
}

const struct work_ops work_tatp = {
    .names = {"get_subscriber_data", "get_new_destination", "get_access_data",
              "update_subscriber_data", "update_location", "insert_call_forwarding",
              "delete_call_forwarding"},
    .success = {1.0, 0.148, 0.625, 0.625, 1.0, 0.3125, 0.3125},
    .types = TYPES,
    .defaults = {.objects = 20000, .remote = 0.0},
    .fill_count = tatp_fill_count,
    .fill = tatp_fill,
    .draw = tatp_draw,
    .succeeded = tatp_succeeded,
};
