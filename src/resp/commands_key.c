/* Commands on keys that look at one key at a time; those that walk through all are in
 * commands_walk.c. Checks, their order and the words of errors are those of Redis 7.0. */
#include "resp/answers.h"
#include "resp/commands.h"
#include "resp/internal.h"
#include "resp/options.h"
#include "resp/serve_data.h"

#include "engine/op_number.h"

/* What Redis keeps inside an object header of its own; OBJECT ENCODING tells it apart. */
#define EMBSTR_MAX 44u

/* What a key costs beside its bytes: object and slot of the index (docs/STORE.md), about. */
#define KEY_OVERHEAD 64u

static void make_delete(struct resp_conn *conn, uint32_t index, struct op *op_out)
{
    op_out->kind = OP_DELETE;
    op_out->key = conn_argument(conn, 1 + index);
}

void serve_del(struct resp_conn *conn)
{
    conn_operations(conn, conn_arguments(conn) - 1, make_delete, answer_sum);
}

static void make_exists(struct resp_conn *conn, uint32_t index, struct op *op_out)
{
    op_out->kind = OP_EXISTS;
    op_out->key = conn_argument(conn, 1 + index);
}

void serve_exists(struct resp_conn *conn)
{
    conn_operations(conn, conn_arguments(conn) - 1, make_exists, answer_sum);
}

static void answer_type(struct resp_conn *conn, struct resp_flight *flight,
                        const struct answer *answer)
{
    (void)flight;
    resp_out_simple(&conn->out, answer->number != 0 ? "string" : "none");
}

void serve_type(struct resp_conn *conn)
{
    struct op op = {.kind = OP_EXISTS, .key = conn_argument(conn, 1)};

    (void)conn_operation(conn, &op, answer_type);
}

/* ---- Deadlines ---- */

static void set_deadline(struct resp_conn *conn, enum deadline_from from, enum deadline_unit unit)
{
    struct op op = {.kind = OP_EXPIRE, .key = conn_argument(conn, 1)};

    if (!expire_options_read(conn, 3, &op.flags)) {
        return;
    }

    enum deadline_read read =
        deadline_read_expire(conn, conn_argument(conn, 2), from, unit, &op.number);

    if (read != DEADLINE_OK) {
        deadline_error(&conn->out, read, conn->command->name);
    } else {
        (void)conn_operation(conn, &op, answer_number);
    }
}

void serve_expire(struct resp_conn *conn)
{
    set_deadline(conn, DEADLINE_RELATIVE, DEADLINE_SECONDS);
}

void serve_pexpire(struct resp_conn *conn)
{
    set_deadline(conn, DEADLINE_RELATIVE, DEADLINE_MS);
}

void serve_expireat(struct resp_conn *conn)
{
    set_deadline(conn, DEADLINE_ABSOLUTE, DEADLINE_SECONDS);
}

void serve_pexpireat(struct resp_conn *conn)
{
    set_deadline(conn, DEADLINE_ABSOLUTE, DEADLINE_MS);
}

void serve_persist(struct resp_conn *conn)
{
    struct op op = {.kind = OP_PERSIST, .key = conn_argument(conn, 1)};

    (void)conn_operation(conn, &op, answer_number);
}

/* flight->a: an enum deadline_from, b: an enum deadline_unit. */
static void answer_deadline(struct resp_conn *conn, struct resp_flight *flight,
                            const struct answer *answer)
{
    int64_t ms = answer->number;

    if (ms >= 0 && flight->a == DEADLINE_RELATIVE) {
        ms -= conn_wall_ms(conn);
        if (ms < 0) {
            ms = 0;
        }
    }
    if (ms >= 0 && flight->b == DEADLINE_SECONDS) {
        ms = ms / 1000 + (ms % 1000 >= 500 ? 1 : 0);
    }
    resp_out_number(&conn->out, ms);
}

static void tell_deadline(struct resp_conn *conn, enum deadline_from from, enum deadline_unit unit)
{
    struct op op = {.kind = OP_DEADLINE, .key = conn_argument(conn, 1)};
    struct resp_flight *flight = conn_operation(conn, &op, answer_deadline);

    flight->a = from;
    flight->b = unit;
}

void serve_ttl(struct resp_conn *conn)
{
    tell_deadline(conn, DEADLINE_RELATIVE, DEADLINE_SECONDS);
}

void serve_pttl(struct resp_conn *conn)
{
    tell_deadline(conn, DEADLINE_RELATIVE, DEADLINE_MS);
}

void serve_expiretime(struct resp_conn *conn)
{
    tell_deadline(conn, DEADLINE_ABSOLUTE, DEADLINE_SECONDS);
}

void serve_pexpiretime(struct resp_conn *conn)
{
    tell_deadline(conn, DEADLINE_ABSOLUTE, DEADLINE_MS);
}

/* ---- Two keys ---- */

/* Renamed to itself: its existence was asked for. */
static void answer_renamed(struct resp_conn *conn, struct resp_flight *flight,
                           const struct answer *answer)
{
    if (answer->number == 0) {
        resp_out_error(&conn->out, "ERR no such key");
    } else if (flight->a != 0) {
        resp_out_number(&conn->out, 0); /* RENAMENX: the target exists */
    } else {
        resp_out_simple(&conn->out, "OK");
    }
}

static void answer_pair(struct resp_conn *conn, struct resp_flight *flight,
                        const struct answer *answer)
{
    (void)flight;
    if (answer->kind == ANSWER_OK) {
        resp_out_simple(&conn->out, "OK");
    } else {
        resp_out_number(&conn->out, answer->number);
    }
}

static void rename_key(struct resp_conn *conn, bool nx)
{
    struct op op = {.kind = OP_EXISTS, .key = conn_argument(conn, 1)};

    if (bytes_equal(conn_argument(conn, 1), conn_argument(conn, 2))) {
        conn_operation(conn, &op, answer_renamed)->a = nx ? 1 : 0;
    } else if (conn_has_transactions(conn)) {
        op.kind = TXN_OP_RENAME;
        op.flags = nx ? OPF_NX : 0;
        op.arg = conn_argument(conn, 2);
        (void)conn_operation(conn, &op, answer_pair);
    } else {
        conn_several_keys_error(conn);
    }
}

void serve_rename(struct resp_conn *conn)
{
    rename_key(conn, false);
}

void serve_renamenx(struct resp_conn *conn)
{
    rename_key(conn, true);
}

/* COPY source target [DB n] [REPLACE] never has one key only: it is refused when it would. */
void serve_copy(struct resp_conn *conn)
{
    struct op op = {
        .kind = TXN_OP_COPY, .key = conn_argument(conn, 1), .arg = conn_argument(conn, 2)};
    int64_t space = conn->space;

    for (uint32_t i = 3; i < conn_arguments(conn); i++) {
        if (conn_argument_is(conn, i, "replace")) {
            op.flags = OPF_XX;
            continue;
        }
        if (!conn_argument_is(conn, i, "db") || i + 1 == conn_arguments(conn)) {
            conn_syntax_error(conn);
            return;
        }
        if (!conn_integer(conn, ++i, &space)) {
            return;
        }
        if (space < INT32_MIN || space > INT32_MAX) {
            resp_out_error(&conn->out, "ERR value is out of range, value must between -2147483648 "
                                       "and 2147483647");
            return;
        }
        if (space < 0 || space >= 32 || (command_spaces(conn) >> space & 1) == 0) {
            resp_out_error(&conn->out, "ERR DB index is out of range");
            return;
        }
    }
    if (space == (int64_t)conn->space &&
        bytes_equal(conn_argument(conn, 1), conn_argument(conn, 2))) {
        resp_out_error(&conn->out, "ERR source and destination objects are the same");
    } else if (!conn_has_transactions(conn)) {
        conn_several_keys_error(conn);
    } else if (space != (int64_t)conn->space) {
        resp_out_error(&conn->out, "ERR COPY to another space is not supported: a transaction is "
                                   "of one space");
    } else {
        (void)conn_operation(conn, &op, answer_pair);
    }
}

/* ---- OBJECT, MEMORY ---- */

static void answer_encoding(struct resp_conn *conn, struct resp_flight *flight,
                            const struct answer *answer)
{
    int64_t number = 0;

    (void)flight;
    if (answer->kind != ANSWER_VALUE) {
        resp_out_null(&conn->out);
    } else if (op_integer_parse(answer->value, &number)) {
        resp_out_text(&conn->out, "int");
    } else {
        resp_out_text(&conn->out, answer->value.n <= EMBSTR_MAX ? "embstr" : "raw");
    }
}

static void answer_freq(struct resp_conn *conn, struct resp_flight *flight,
                        const struct answer *answer)
{
    (void)flight;
    if (answer->number == 0) {
        resp_out_null(&conn->out);
    } else {
        resp_out_error(&conn->out,
                       "ERR An LFU maxmemory policy is not selected, access frequency not tracked. "
                       "Please note that when switching between policies at runtime LRU and LFU "
                       "data will take some time to adjust.");
    }
}

static void answer_idletime(struct resp_conn *conn, struct resp_flight *flight,
                            const struct answer *answer)
{
    (void)flight;
    if (answer->number == 0) {
        resp_out_null(&conn->out);
    } else {
        resp_out_error(&conn->out, "ERR idle times are not tracked: no key is ever evicted");
    }
}

static void answer_refcount(struct resp_conn *conn, struct resp_flight *flight,
                            const struct answer *answer)
{
    (void)flight;
    if (answer->number == 0) {
        resp_out_null(&conn->out);
    } else {
        resp_out_number(&conn->out, 1);
    }
}

static void ask_object(struct resp_conn *conn, enum op_kind kind, resp_answer_fn *answered)
{
    struct op op = {.kind = (uint8_t)kind, .key = conn_argument(conn, 2)};

    (void)conn_operation(conn, &op, answered);
}

void serve_object_encoding(struct resp_conn *conn)
{
    ask_object(conn, OP_GET, answer_encoding);
}

void serve_object_freq(struct resp_conn *conn)
{
    ask_object(conn, OP_EXISTS, answer_freq);
}

void serve_object_idletime(struct resp_conn *conn)
{
    ask_object(conn, OP_EXISTS, answer_idletime);
}

void serve_object_refcount(struct resp_conn *conn)
{
    ask_object(conn, OP_EXISTS, answer_refcount);
}

void serve_object_help(struct resp_conn *conn)
{
    static const char *const lines[] = {
        "OBJECT",
        "ENCODING <key>",
        "    How Redis would keep the value: int, embstr or raw.",
        "FREQ <key>",
        "    Not tracked: an error if there is such a key.",
        "IDLETIME <key>",
        "    Not tracked: an error if there is such a key.",
        "REFCOUNT <key>",
        "    1 if there is such a key.",
        NULL,
    };

    command_help(conn, lines);
}

/* flight->a: bytes of the key. */
static void answer_usage(struct resp_conn *conn, struct resp_flight *flight,
                         const struct answer *answer)
{
    if (answer->kind != ANSWER_VALUE) {
        resp_out_null(&conn->out);
    } else {
        resp_out_number(&conn->out, flight->a + answer->value.n + KEY_OVERHEAD);
    }
}

/* MEMORY USAGE key [SAMPLES n]: a string has nothing to be sampled, but clients send it. */
void serve_memory_usage(struct resp_conn *conn)
{
    struct op op = {.kind = OP_GET, .key = conn_argument(conn, 2)};
    int64_t samples = 0;

    for (uint32_t i = 3; i < conn_arguments(conn); i += 2) {
        if (!conn_argument_is(conn, i, "samples") || i + 1 == conn_arguments(conn)) {
            conn_syntax_error(conn);
            return;
        }
        if (!conn_integer(conn, i + 1, &samples)) {
            return;
        }
        if (samples < 0) {
            conn_syntax_error(conn);
            return;
        }
    }
    conn_operation(conn, &op, answer_usage)->a = op.key.n;
}

/* ---- DBSIZE, WAIT, DEBUG SLEEP ---- */

void serve_dbsize(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;

    if (host->keys == NULL) {
        conn_unavailable_error(conn);
    } else if (command_may_look(conn)) {
        resp_out_number(&conn->out, (int64_t)host->keys(host->context, conn->space));
    }
}

/* Every write that was acknowledged is wherever it will be, so there is nothing to wait for. */
void serve_wait(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    int64_t replicas = 0, timeout_ms = 0;

    if (!conn_integer(conn, 1, &replicas)) {
        return;
    }
    if (!op_integer_parse(conn_argument(conn, 2), &timeout_ms)) {
        resp_out_error(&conn->out, "ERR timeout is not an integer or out of range");
    } else if (timeout_ms < 0) {
        resp_out_error(&conn->out, "ERR timeout is negative");
    } else if (host->replicas == NULL) {
        conn_unavailable_error(conn);
    } else {
        resp_out_number(&conn->out, host->replicas(host->context, conn->space));
    }
}

/* Seconds with up to six digits behind the point, as microseconds. */
static bool read_seconds(struct bytes text, uint64_t *us_out)
{
    uint64_t us = 0, unit = 1000000u;
    bool point = false;

    for (uint32_t i = 0; i < text.n; i++) {
        uint8_t c = text.at[i];

        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (c < '0' || c > '9' || us > UINT64_MAX / 100u) {
            return false;
        }
        if (!point) {
            us = us * 10u + (uint64_t)(c - '0') * 1000000u;
        } else {
            unit /= 10u;
            us += (uint64_t)(c - '0') * unit;
        }
    }
    *us_out = us;
    return text.n > (point ? 1u : 0u);
}

static void woken(struct resp_conn *conn)
{
    resp_out_simple(&conn->out, "OK");
}

/* Unlike Redis, which stops altogether, only this connection sleeps. */
void serve_debug_sleep(struct resp_conn *conn)
{
    uint64_t us = 0;

    if (!read_seconds(conn_argument(conn, 2), &us) || us > UINT64_MAX / 4u) {
        resp_out_error(&conn->out, "ERR value is not a valid float");
    } else {
        conn_sleep(conn, conn->now_us + us, woken);
    }
}
