/* Commands on string values. Checks and their order, and the words of errors, are those of Redis
 * 7.0, because clients and their tests know them. */
#include "resp/answers.h"
#include "resp/internal.h"
#include "resp/options.h"
#include "resp/serve_data.h"

/* An operation of this kind on the key that is the first argument. */
static struct op on_key(const struct resp_conn *conn, enum op_kind kind)
{
    return (struct op){.kind = (uint8_t)kind, .key = conn_argument(conn, 1)};
}

static void serve_plain(struct resp_conn *conn, enum op_kind kind, resp_answer_fn *answered)
{
    struct op op = on_key(conn, kind);

    (void)conn_operation(conn, &op, answered);
}

/* ---- SET and its kin ---- */

void serve_set(struct resp_conn *conn)
{
    struct set_options options;
    struct op op = on_key(conn, OP_SET);

    op.value = conn_argument(conn, 2);
    if (conn_arguments(conn) > 3) {
        if (!set_options_read(conn, 3, OPTIONS_SET, &options)) {
            return;
        }
        op.flags = options.flags;
        op.arg = options.ifeq;
        if ((options.flags & OPF_DEADLINE) != 0) {
            enum deadline_read read =
                deadline_read(conn, options.deadline, options.from, options.unit, &op.number);

            if (read != DEADLINE_OK) {
                deadline_error(&conn->out, read, "set");
                return;
            }
        }
    }
    (void)conn_operation(conn, &op, answer_set);
}

static void set_with_deadline(struct resp_conn *conn, enum deadline_unit unit)
{
    struct op op = on_key(conn, OP_SET);
    enum deadline_read read =
        deadline_read(conn, conn_argument(conn, 2), DEADLINE_RELATIVE, unit, &op.number);

    if (read != DEADLINE_OK) {
        deadline_error(&conn->out, read, conn->command->name);
        return;
    }
    op.value = conn_argument(conn, 3);
    op.flags = OPF_DEADLINE;
    (void)conn_operation(conn, &op, answer_set);
}

void serve_setex(struct resp_conn *conn)
{
    set_with_deadline(conn, DEADLINE_SECONDS);
}

void serve_psetex(struct resp_conn *conn)
{
    set_with_deadline(conn, DEADLINE_MS);
}

void serve_setnx(struct resp_conn *conn)
{
    struct op op = on_key(conn, OP_SET);

    op.value = conn_argument(conn, 2);
    op.flags = OPF_NX;
    (void)conn_operation(conn, &op, answer_setnx);
}

void serve_delifeq(struct resp_conn *conn)
{
    struct op op = on_key(conn, OP_DELETE_IF);

    op.arg = conn_argument(conn, 2);
    (void)conn_operation(conn, &op, answer_number);
}

void serve_getset(struct resp_conn *conn)
{
    struct op op = on_key(conn, OP_GETSET);

    op.value = conn_argument(conn, 2);
    (void)conn_operation(conn, &op, answer_value);
}

static void make_mset(struct resp_conn *conn, uint32_t index, struct op *op_out)
{
    op_out->kind = OP_SET;
    op_out->key = conn_argument(conn, 1 + 2 * index);
    op_out->value = conn_argument(conn, 2 + 2 * index);
}

void serve_mset(struct resp_conn *conn)
{
    if (conn_arguments(conn) % 2 == 0) {
        conn_arity_error(conn);
        return;
    }
    conn_operations(conn, conn_arguments(conn) / 2, make_mset, answer_ok);
}

/* All in one row: they apply together or not at all. */
static void make_msetnx(struct resp_conn *conn, uint32_t index, struct op *op_out)
{
    bool last = index + 1 == conn_arguments(conn) / 2;

    make_mset(conn, index, op_out);
    op_out->flags = last ? OPF_NX : OPF_NX | TXN_OPF_ROW;
}

static void answer_msetnx(struct resp_conn *conn, struct resp_flight *flight,
                          const struct answer *answer)
{
    flight->a += answer->applied ? 1 : 0;
    if (flight->left == 0) {
        resp_out_number(&conn->out, flight->a == (int64_t)flight->all ? 1 : 0);
    }
}

void serve_msetnx(struct resp_conn *conn)
{
    if (conn_arguments(conn) % 2 == 0) {
        conn_arity_error(conn);
    } else if (conn_arguments(conn) == 3) {
        serve_setnx(conn);
    } else if (conn_has_transactions(conn)) {
        conn_operations(conn, conn_arguments(conn) / 2, make_msetnx, answer_msetnx);
    } else {
        conn_several_keys_error(conn);
    }
}

/* ---- GET and its kin ---- */

void serve_get(struct resp_conn *conn)
{
    serve_plain(conn, OP_GET, answer_value);
}

void serve_getdel(struct resp_conn *conn)
{
    serve_plain(conn, OP_GETDEL, answer_value);
}

void serve_strlen(struct resp_conn *conn)
{
    serve_plain(conn, OP_STRLEN, answer_number);
}

static void make_mget(struct resp_conn *conn, uint32_t index, struct op *op_out)
{
    op_out->kind = OP_GET;
    op_out->key = conn_argument(conn, 1 + index);
}

void serve_mget(struct resp_conn *conn)
{
    conn_operations(conn, conn_arguments(conn) - 1, make_mget, answer_each);
}

/* GETEX with a time that is wrong: only a key that exists gets to hear it. */
static void answer_getex_wrong(struct resp_conn *conn, struct resp_flight *flight,
                               const struct answer *answer)
{
    if (answer->kind == ANSWER_VALUE) {
        deadline_error(&conn->out, (enum deadline_read)flight->a, "getex");
    } else {
        resp_out_null(&conn->out);
    }
}

void serve_getex(struct resp_conn *conn)
{
    struct set_options options;
    struct op op = on_key(conn, OP_GETEX);

    if (!set_options_read(conn, 2, OPTIONS_GETEX, &options)) {
        return;
    }
    if ((options.flags & OPF_DEADLINE) != 0) {
        enum deadline_read read =
            deadline_read(conn, options.deadline, options.from, options.unit, &op.number);

        if (read != DEADLINE_OK) {
            op.kind = OP_GET;
            op.number = 0;
            conn_operation(conn, &op, answer_getex_wrong)->a = (int64_t)read;
            return;
        }
    } else if (!options.persist) {
        op.flags = OPF_KEEPTTL;
    }
    (void)conn_operation(conn, &op, answer_value);
}

/* Cuts a value as GETRANGE does: negative numbers count from the end. */
static struct bytes cut(struct bytes value, int64_t first, int64_t last)
{
    int64_t n = value.n;

    if (first < 0 && last < 0 && first > last) {
        return bytes_of(value.at, 0);
    }
    if (first < 0) {
        first = first + n < 0 ? 0 : first + n;
    }
    if (last < 0) {
        last = last + n < 0 ? 0 : last + n;
    }
    if (last >= n) {
        last = n - 1;
    }
    if (n == 0 || first > last) {
        return bytes_of(value.at, 0);
    }
    return bytes_of(value.at + first, (uint32_t)(last - first + 1));
}

static void answer_range(struct resp_conn *conn, struct resp_flight *flight,
                         const struct answer *answer)
{
    struct bytes value = answer->kind == ANSWER_VALUE ? answer->value : (struct bytes){NULL, 0};

    resp_out_bulk(&conn->out, cut(value, flight->a, flight->b));
}

void serve_getrange(struct resp_conn *conn)
{
    struct op op = on_key(conn, OP_GET);
    int64_t first = 0, last = 0;

    if (!conn_integer(conn, 2, &first) || !conn_integer(conn, 3, &last)) {
        return;
    }

    struct resp_flight *flight = conn_operation(conn, &op, answer_range);

    flight->a = first;
    flight->b = last;
}

/* ---- Changes of a value ---- */

static void add(struct resp_conn *conn, int64_t delta)
{
    struct op op = on_key(conn, OP_ADD);

    op.number = delta;
    (void)conn_operation(conn, &op, answer_number);
}

void serve_incr(struct resp_conn *conn)
{
    add(conn, 1);
}

void serve_decr(struct resp_conn *conn)
{
    add(conn, -1);
}

void serve_incrby(struct resp_conn *conn)
{
    int64_t delta = 0;

    if (conn_integer(conn, 2, &delta)) {
        add(conn, delta);
    }
}

void serve_decrby(struct resp_conn *conn)
{
    int64_t delta = 0;

    if (!conn_integer(conn, 2, &delta)) {
        return;
    }
    if (delta == INT64_MIN) {
        resp_out_error(&conn->out, "ERR decrement would overflow");
    } else {
        add(conn, -delta);
    }
}

void serve_incrbyfloat(struct resp_conn *conn)
{
    struct op op = on_key(conn, OP_ADD_FLOAT);

    op.arg = conn_argument(conn, 2);
    (void)conn_operation(conn, &op, answer_value);
}

void serve_append(struct resp_conn *conn)
{
    struct op op = on_key(conn, OP_APPEND);

    op.value = conn_argument(conn, 2);
    (void)conn_operation(conn, &op, answer_number);
}

void serve_setrange(struct resp_conn *conn)
{
    struct op op = on_key(conn, OP_SETRANGE);

    if (!conn_integer(conn, 2, &op.number)) {
        return;
    }
    if (op.number < 0) {
        resp_out_error(&conn->out, "ERR offset is out of range");
        return;
    }
    op.value = conn_argument(conn, 3);
    (void)conn_operation(conn, &op, answer_number);
}
