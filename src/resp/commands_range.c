/* RANGE, RANGECOUNT and DELRANGE: keys in their order, in spaces that keep one. The two bounds are
 *
 *     -        before the first key          +        behind the last key
 *     [key     the key and what follows      (key     without the key itself
 *     key      of a range's start: [key; of its end: (key
 *
 * so that RANGE a b has all that begins with a. Who puts any bytes there gives a prefix. */
#include "resp/answers.h"
#include "resp/commands.h"
#include "resp/multi.h"
#include "resp/serve_data.h"

#include "engine/txn.h"
#include "wire/msg.h"

struct bound {
    enum { BOUND_KEY, BOUND_FIRST, BOUND_LAST } kind;
    struct bytes key; /* the first that is behind the bound */
};

/* Arguments have a zero byte behind them: see conn_txn_queue. */
static struct bound read_bound(struct resp_conn *conn, uint32_t index, bool end)
{
    struct bytes word = conn_argument(conn, index);
    uint8_t sign = word.n > 0 ? word.at[0] : '\0';
    struct bound bound = {.kind = BOUND_KEY, .key = word};
    bool behind = false;

    if (word.n == 1 && (sign == '-' || sign == '+')) {
        bound.kind = sign == '-' ? BOUND_FIRST : BOUND_LAST;
        return bound;
    }
    if (sign == '[' || sign == '(') {
        behind = sign == (end ? '[' : '(');
        bound.key = bytes_of(word.at + 1, word.n - 1);
    }
    bound.key.n += behind ? 1 : 0;
    return bound;
}

/* The half-open range of an operation: an empty start is the first key, an empty end none. */
static void read_bounds(struct resp_conn *conn, struct op *op)
{
    static const uint8_t nothing[1] = {0};
    struct bound start = read_bound(conn, 1, false);
    struct bound end = read_bound(conn, 2, true);
    bool first = end.kind == BOUND_FIRST || (end.kind == BOUND_KEY && end.key.n == 0);

    op->key = start.kind == BOUND_KEY ? start.key : bytes_of(NULL, 0);
    op->arg = end.kind == BOUND_KEY ? end.key : bytes_of(NULL, 0);
    if (start.kind == BOUND_LAST || first) {
        /* No key is there: a range whose end is its start. */
        op->key = op->arg = bytes_of(nothing, 1);
    }
}

static bool read_limit(struct resp_conn *conn, uint32_t index, struct op *op)
{
    if (!conn_integer(conn, index, &op->number)) {
        return false;
    }
    if (op->number < 1 || op->number > (int64_t)TXN_SCANNED_MAX) {
        resp_out_errorf(&conn->out, "ERR LIMIT is from 1 to %u", TXN_SCANNED_MAX);
        return false;
    }
    return true;
}

static bool read_options(struct resp_conn *conn, struct op *op)
{
    bool limited = false;

    for (uint32_t i = 3; i < conn_arguments(conn); i++) {
        if (!limited && op->kind != TXN_OP_RANGE_COUNT && conn_argument_is(conn, i, "limit") &&
            i + 1 < conn_arguments(conn)) {
            if (!read_limit(conn, ++i, op)) {
                return false;
            }
            limited = true;
        } else if (op->kind == TXN_OP_RANGE && (op->flags & TXN_OPF_REVERSE) == 0 &&
                   conn_argument_is(conn, i, "rev")) {
            op->flags |= TXN_OPF_REVERSE;
        } else {
            conn_syntax_error(conn);
            return false;
        }
    }
    return true;
}

/* A command alone: its words are copied, and the operation's bytes are there. */
static void start_alone(struct resp_conn *conn, struct op *op, resp_answer_fn *answered)
{
    struct conn_txn *txn = conn_txn_create(TXN_SINGLE);
    bool fits = txn != NULL && conn_txn_queue(txn, conn);

    if (fits) {
        struct conn_words words = conn_txn_words(txn, &txn->commands[0]);

        conn->words = &words;
        read_bounds(conn, op);
        conn->words = NULL;
        fits = conn_txn_add(txn, op);
    }
    if (!fits) {
        conn_txn_destroy(txn);
        conn->out.failed = true;
        return;
    }
    txn->commands[0].ops_n = 1;
    conn_txn_seal(txn);
    multi_count(conn, txn);
    conn_transaction(conn, txn)->answered = answered;
}

static void serve_ordered(struct resp_conn *conn, enum txn_pair_kind kind, resp_answer_fn *answered)
{
    struct op op = {.kind = (uint8_t)kind, .space = (uint8_t)conn->space};

    if (!conn_is_ordered(conn, conn->space)) {
        conn_no_order_error(conn);
    } else if (conn_argument(conn, 1).n > MSG_KEY_MAX || conn_argument(conn, 2).n > MSG_KEY_MAX) {
        resp_out_errorf(&conn->out, "ERR a bound has at most %u bytes", MSG_KEY_MAX);
    } else if (!read_options(conn, &op)) {
        return;
    } else if (conn->collects != NULL) {
        read_bounds(conn, &op);
        (void)conn_operation(conn, &op, answered);
    } else {
        start_alone(conn, &op, answered);
    }
}

/* Keys and values by turns; in RESP3 pairs, as ZRANGE WITHSCORES has them. */
static void answer_pairs(struct resp_conn *conn, struct resp_flight *flight,
                         const struct answer *answer)
{
    struct resp_out *out = &conn->out;
    struct bytes rest = answer->value;
    struct bytes key, value;

    (void)flight;
    resp_out_array(out, (uint32_t)answer->number * (out->resp3 ? 1 : 2));
    while (txn_pair_take(&rest, &key, &value)) {
        if (out->resp3) {
            resp_out_array(out, 2);
        }
        resp_out_bulk(out, key);
        resp_out_bulk(out, value);
    }
}

void serve_range(struct resp_conn *conn)
{
    serve_ordered(conn, TXN_OP_RANGE, answer_pairs);
}

void serve_rangecount(struct resp_conn *conn)
{
    serve_ordered(conn, TXN_OP_RANGE_COUNT, answer_number);
}

void serve_delrange(struct resp_conn *conn)
{
    serve_ordered(conn, TXN_OP_RANGE_DELETE, answer_number);
}
