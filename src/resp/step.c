/* The connection's state machine. docs/RESP.md has its table; every state is written here only.
 *
 * I1  Operations are answered in the order in which they were handed out, so only the oldest
 *     command in flight writes replies, always behind `ready`. When it is finished, `ready` is
 *     moved behind its reply, which may leave from then on.
 * I2  A command that is no data command is served only when no command is in flight: then
 *     out.n == ready, and what it writes is its reply.
 * I3  Every command in flight has an operation that is handed out and not answered, except the
 *     last one in CONN_OPERATIONS, which may have handed out none yet. So commands are as bounded
 *     as operations.
 * I4  No byte in front of `at` is needed after the next resp_conn_feed; no byte behind it moves
 *     before. */
#include "resp/multi.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "resp/serve_admin.h"
#include "resp/walk.h"

/* Commands that one call serves before it lets others run. */
#define COMMANDS_A_CALL 128u
/* Replies that wait to be taken; above it no new command is served. */
#define UNREAD_MAX (1024u * 1024u)
#define FLIGHTS_FIRST 4u /* a power of two, as all sizes of the ring */
/* Answers that are expected of the operations in flight. */
#define VALUES_IN_FLIGHT_BYTES (16u * 1024u * 1024u)
/* Transactions that are over and whose bytes the node may still look at. */
#define OVER_BYTES_MAX (1024u * 1024u)
/* How long a connection whose MULTI was refused stays open for the EXEC that belongs to it. */
#define MULTI_REFUSED_US 1000000u

static const struct resp_limits default_limits = {
    .bulk_bytes_max = 64u * 1024 * 1024,
    .arguments_max = 1024 * 1024,
    .query_bytes_max = 128u * 1024 * 1024,
    .output_bytes_max = 256u * 1024 * 1024,
};

const struct resp_limits *conn_limits(const struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;

    if (!conn->authenticated) {
        return &resp_limits_stranger;
    }
    return host->limits != NULL ? host->limits(host->context) : &default_limits;
}

bool conn_has_room(const struct resp_conn *conn)
{
    return conn->in_flight < RESP_IN_FLIGHT_MAX;
}

/* Whether so much waits to be taken that nothing new is begun. */
static bool is_unread(const struct resp_conn *conn)
{
    uint32_t unread = conn->ready - conn->sent;

    return unread > UNREAD_MAX || unread > conn->out.max / 2;
}

/* ---- Values in flight: how much output they may become is known only when they come ---- */

bool conn_op_updates(const struct op *op)
{
    return op->kind >= OP_KINDS ? op->kind != TXN_OP_RANGE && op->kind != TXN_OP_RANGE_COUNT
                                : op_updates(op);
}

bool conn_answers_value(const struct op *op)
{
    return op->kind == OP_GET || op->kind == OP_GETEX || op->kind == OP_GETDEL ||
           op->kind == OP_GETSET || op->kind == TXN_OP_RANGE ||
           (op->kind == OP_SET && (op->flags & OPF_GET) != 0);
}

static bool values_have_room(const struct resp_conn *conn)
{
    return conn->values_in_flight == 0 ||
           (conn->values_in_flight + 1) * (uint64_t)conn->value_expected <= VALUES_IN_FLIGHT_BYTES;
}

/* The first answers may be of any size, so few are asked for until some are known. */
void conn_expect_any(struct resp_conn *conn)
{
    conn->value_expected = VALUES_IN_FLIGHT_BYTES / 3;
}

/* Larger ones count at once, smaller ones bit by bit. */
static void expect_values(struct resp_conn *conn, uint32_t bytes)
{
    uint32_t expected = conn->value_expected;

    conn->value_expected = bytes >= expected ? bytes : expected - (expected - bytes + 15) / 16;
}

/* ---- Commands in flight ---- */

static struct resp_flight *flight_at(struct resp_conn *conn, uint32_t index)
{
    return &conn->flights[(conn->flights_at + index) & (conn->flights_capacity - 1)];
}

/* Makes room for one more. False: no memory. */
static bool reserve_flight(struct resp_conn *conn)
{
    if (conn->flights_n < conn->flights_capacity) {
        return true;
    }

    uint32_t capacity = conn->flights_capacity == 0 ? FLIGHTS_FIRST : conn->flights_capacity * 2;
    struct resp_flight *flights = malloc(capacity * sizeof *flights);

    if (flights == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < conn->flights_n; i++) {
        flights[i] = *flight_at(conn, i);
    }
    free(conn->flights);
    conn->flights = flights;
    conn->flights_capacity = capacity;
    conn->flights_at = 0;
    return true;
}

static struct resp_flight *push_flight(struct resp_conn *conn, uint32_t operations,
                                       resp_answer_fn *answered)
{
    HK_ASSERT(operations > 0 && conn->flights_n < conn->flights_capacity);

    struct resp_flight *flight = flight_at(conn, conn->flights_n++);

    flight->command = conn->command;
    flight->answered = answered;
    flight->started_us = conn->now_us;
    flight->a = flight->b = 0;
    flight->txn = NULL;
    flight->together = 0;
    flight->left = flight->all = operations;
    flight->arguments = conn_arguments(conn);
    flight->error = HK_OK;
    flight->silent = conn->silent;
    flight->partly = false;
    return flight;
}

static void note_key(struct resp_flight *flight, const struct op *op)
{
    flight->kind = op->kind;
    flight->values = conn_answers_value(op);
    flight->key_bytes = op->key.n;
    flight->key_n = (uint8_t)(op->key.n < FLIGHT_KEY_MAX ? op->key.n : FLIGHT_KEY_MAX);
    if (flight->key_n > 0) {
        memcpy(flight->key, op->key.at, flight->key_n);
    }
}

struct resp_flight *conn_operation(struct resp_conn *conn, const struct op *op,
                                   resp_answer_fn *answered)
{
    if (conn->collects != NULL) {
        return multi_collect(conn, op, answered);
    }

    struct resp_flight *flight = push_flight(conn, 1, answered);

    flight->together = op->kind >= OP_KINDS ? 1 : 0;
    conn->op = *op;
    conn->op.space = (uint8_t)conn->space;
    conn->op_made = true;
    conn->op_index = 0;
    conn->make = NULL;
    conn->state = CONN_OPERATIONS;
    note_key(flight, op);
    return flight;
}

void conn_operations(struct resp_conn *conn, uint32_t n, resp_operation_fn *make,
                     resp_answer_fn *answered)
{
    bool together = n > 1 && conn_has_transactions(conn);

    if (conn->collects != NULL) {
        multi_collect_all(conn, n, make, answered);
        return;
    }
    if (together && n > TXN_OPS_MAX) {
        resp_out_errorf(&conn->out, "ERR '%s' takes at most %u keys in this space: it is one step",
                        conn->command->name, TXN_OPS_MAX);
        return;
    }

    struct resp_flight *flight = push_flight(conn, together ? 1 : n, answered);

    flight->together = together ? n : 0;
    conn->op = (struct op){.space = (uint8_t)conn->space};
    make(conn, 0, &conn->op);
    conn->op_made = true;
    conn->op_index = 0;
    conn->make = make;
    conn->state = CONN_OPERATIONS;
    note_key(flight, &conn->op);
}

struct resp_flight *conn_transaction(struct resp_conn *conn, struct conn_txn *txn)
{
    struct resp_flight *flight = push_flight(conn, 1, NULL);

    flight->txn = txn;
    conn->op = (struct op){.space = (uint8_t)conn->space};
    conn->op_made = true;
    conn->op_index = 0;
    conn->make = NULL;
    conn->state = CONN_OPERATIONS;
    note_key(flight, txn->ops_n > 0 ? &txn->ops[0] : &conn->op);
    flight->values = txn->values;
    return flight;
}

/* ---- The end of a command ---- */

static void add_slow(struct resp_conn *conn, uint64_t started_us, uint32_t arguments,
                     const struct bytes *args, uint32_t args_n)
{
    const struct resp_host *host = conn->host;
    uint64_t took_us = conn->now_us - started_us;
    struct resp_slow slow = {
        .started_s = (host->wall_us(host->context) - took_us) / 1000000u,
        .took_us = took_us,
        .arguments = arguments,
        .args = args,
        .args_n = args_n,
        .address = conn->address,
        .name = conn->name,
    };

    host->slow_add(host->context, &slow);
}

static bool is_slow(const struct resp_conn *conn, uint64_t started_us)
{
    const struct resp_host *host = conn->host;

    if (host->slow_add == NULL || host->slow_threshold_us == NULL) {
        return false;
    }

    int64_t threshold_us = host->slow_threshold_us(host->context);

    return threshold_us >= 0 && conn->now_us - started_us >= (uint64_t)threshold_us;
}

static void log_slow_flight(struct resp_conn *conn, const struct resp_flight *flight)
{
    const char *name = flight->command->name;

    if (!is_slow(conn, flight->started_us)) {
        return;
    }

    /* The arguments are gone since the operations were handed out, but for a piece of a key. */
    char text[RESP_SLOW_WORD_MAX];
    struct bytes args[] = {
        bytes_of(name, (uint32_t)strlen(name)),
        resp_slow_word(bytes_of(flight->key, flight->key_n), flight->key_bytes, text)};

    add_slow(conn, flight->started_us, flight->arguments, args, 2);
}

/* Secrets of clients are not for whoever reads SLOWLOG; nor are those of commands that are only
 * refused, or misspelt. */
static bool has_secrets(const struct resp_command *command)
{
    static const char *const names[] = {"auth", "hello", "config", "acl", "migrate"};
    const char *name = command->parent != NULL ? command->parent->name : command->name;

    for (uint32_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

static void log_slow_command(struct resp_conn *conn)
{
    if (conn->command == NULL || !is_slow(conn, conn->started_us)) {
        return;
    }

    struct bytes args[RESP_SLOW_ARGUMENTS];
    char texts[RESP_SLOW_ARGUMENTS][RESP_SLOW_WORD_MAX];
    uint32_t n = 0;

    for (; n < conn_arguments(conn) && n < RESP_SLOW_ARGUMENTS; n++) {
        args[n] = conn_argument(conn, n);
        args[n] = n > 0 && has_secrets(conn->command)
                      ? bytes_of("(redacted)", sizeof "(redacted)" - 1)
                      : resp_slow_word(args[n], args[n].n, texts[n]);
    }
    add_slow(conn, conn->started_us, conn_arguments(conn), args, n);
}

/* The reply that begins at `ready` is whole. */
static void end_reply(struct resp_conn *conn, bool silent)
{
    if (silent) {
        resp_out_rewind(&conn->out, conn->ready);
        if (conn->out.n == conn->sent) {
            conn_empty_output(conn);
        }
    }
    conn->ready = conn->out.n;
}

/* Steps over the command's bytes: nobody needs its arguments any more, except the operations that
 * are handed out, until the next feed (I4). */
static void leave_command(struct resp_conn *conn, enum conn_state state)
{
    conn->at += conn->used;
    conn->used = 0;
    resp_parser_reset(&conn->parser);
    conn->state = state;
}

static void finish_command(struct resp_conn *conn)
{
    log_slow_command(conn);
    end_reply(conn, conn->silent);
    leave_command(conn, conn->close ? CONN_CLOSING : CONN_READY);
}

static void finish_flight(struct resp_conn *conn, struct resp_flight *flight)
{
    if (flight->error != HK_OK) {
        resp_out_rewind(&conn->out, conn->ready);
        struct answer failed = {
            .kind = ANSWER_ERROR, .number = flight->error, .slot = flight->error_slot};
        if (flight->txn != NULL) {
            multi_error(conn, &failed, flight->kind);
        } else {
            conn_answer_error(conn, &failed, flight->kind, flight->partly);
        }
    }
    log_slow_flight(conn, flight);
    end_reply(conn, flight->silent);
    if (flight->txn != NULL) {
        multi_over(conn, flight->txn);
        flight->txn = NULL;
    }
    conn->flights_at = (conn->flights_at + 1) & (conn->flights_capacity - 1);
    conn->flights_n--;
}

/* ---- Serving ---- */

void conn_work(struct resp_conn *conn, conn_step_fn *step)
{
    HK_ASSERT(conn->flights_n == 0);
    conn->state = CONN_WORK;
    conn->work = (struct conn_work){.step = step};
    resp_out_init(&conn->work.keys, conn->out.max);
    resp_out_init(&conn->work.place, UINT32_MAX / 2);
    resp_out_init(&conn->work.piece, UINT32_MAX / 2);
}

void conn_sleep(struct resp_conn *conn, uint64_t until_us, void (*woken)(struct resp_conn *conn))
{
    HK_ASSERT(conn->flights_n == 0);
    conn->state = CONN_SLEEPING;
    conn->wake_us = until_us;
    conn->woken = woken;
}

static void find_command(struct resp_conn *conn)
{
    const struct resp_command *command = resp_command_find(conn_argument(conn, 0));

    conn->unknown_subcommand = false;
    if (command != NULL && command->subcommands != NULL && conn_arguments(conn) > 1) {
        const struct resp_command *sub = resp_subcommand_find(command, conn_argument(conn, 1));

        conn->unknown_subcommand = sub == NULL;
        if (sub != NULL) {
            command = sub;
            conn->command = sub;
            (void)conn_command_name(conn, sub);
        }
    }
    conn->command = command;
}

/* "POST" and "Host:" begin the lines of a browser that somebody lured here. */
static bool is_http(const struct resp_conn *conn)
{
    return bytes_are(conn_argument(conn, 0), "post") || bytes_are(conn_argument(conn, 0), "host:");
}

/* Only time may close the connection, and only these let commands run again: bytes that come later
 * may have been on their way before the client knew of the refusal. */
void conn_refuse_multi(struct resp_conn *conn)
{
    conn->multi_refused = true;
    conn->multi_until_us = conn->now_us + MULTI_REFUSED_US;
}

static bool ends_refused_multi(const struct resp_command *command)
{
    return command != NULL && (command->serve == serve_exec || command->serve == serve_discard ||
                               command->serve == serve_reset || command->serve == serve_quit);
}

/* An EXEC that is refused ends what it was meant to run. */
static void refuse_arity(struct resp_conn *conn)
{
    if (conn->command->serve != serve_exec) {
        conn_arity_error(conn);
        return;
    }
    conn_end_multi(conn);
    resp_out_error(&conn->out, "EXECABORT Transaction discarded because of: wrong number of "
                               "arguments for 'exec' command");
}

/* Whether the command may be served, in the order in which Redis checks; if not, says why. */
static bool check_command(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    const struct resp_command *command = conn->command;

    if (command == NULL && is_http(conn)) {
        conn->close = conn->silent = true;
    }
    if (conn->multi_refused && !ends_refused_multi(command)) {
        resp_out_error(&conn->out, "ERR not run: the MULTI before it was refused");
        return false;
    }
    if (command == NULL) {
        conn_unknown_error(conn);
        return false;
    }
    if (conn->unknown_subcommand) {
        conn_subcommand_error(conn);
        return false;
    }
    if (!resp_command_arity_fits(command, conn_arguments(conn))) {
        refuse_arity(conn);
        return false;
    }
    if (!conn->authenticated && (command->flags & RESP_NOAUTH) == 0) {
        resp_out_error(&conn->out, "NOAUTH Authentication required.");
        return false;
    }
    if ((command->flags & RESP_LOADING) == 0 && host->serving != NULL &&
        host->serving(host->context) == HK_ERR_LOADING) {
        conn_operation_error(&conn->out, HK_ERR_LOADING, 0, false);
        return false;
    }
    return true;
}

/* Serves the command whose turn it is: at once (I2), or as the last one in flight. One that turns
 * out to need no operations, because it is wrong, must wait for those before it: what it wrote is
 * taken back, and it is served again later. */
static void serve(struct resp_conn *conn)
{
    uint32_t before = conn->out.n;
    uint32_t flights = conn->flights_n;

    conn->started_us = conn->now_us;
    if (conn->malformed) {
        resp_out_errorf(&conn->out, "ERR %s", conn->parser.error);
        conn->close = true;
        conn->command = NULL;
        conn->silent = false;
        finish_command(conn);
        return;
    }
    if (!reserve_flight(conn)) {
        conn->out.failed = true;
        return;
    }
    conn->state = CONN_READY;
    if (!check_command(conn)) {
        if (conn->multi != NULL) {
            multi_abort(conn);
        }
    } else if (conn->multi != NULL && !multi_serves(conn->command)) {
        multi_queue(conn);
    } else {
        HK_ASSERT(conn->command->serve != NULL);
        conn->command->serve(conn);
    }
    if (conn->state != CONN_READY) {
        return;
    }
    if (flights > 0) {
        resp_out_rewind(&conn->out, before);
        conn->state = CONN_HELD;
        return;
    }
    finish_command(conn);
}

enum taken {
    TAKEN_NONE,    /* no whole command is there */
    TAKEN_COMMAND, /* one was served, or its turn has not come */
    TAKEN_FULL     /* nothing is served before output has left, or operations are answered */
};

static enum taken take_command(struct resp_conn *conn)
{
    const struct resp_limits *limits = conn_limits(conn);

    if (is_unread(conn) || !conn_has_room(conn)) {
        return TAKEN_FULL;
    }

    enum resp_parsed parsed = RESP_PARTIAL;

    if (conn->at < conn->input_n) {
        parsed = resp_parse(&conn->parser, limits, conn->input + conn->at, conn->input_n - conn->at,
                            &conn->used);
    }
    if (parsed == RESP_PARTIAL) {
        return TAKEN_NONE;
    }
    conn->out.max = limits->output_bytes_max;
    conn->last_us = conn->now_us;
    conn->state = CONN_HELD;
    conn->malformed = parsed == RESP_MALFORMED;
    if (conn->malformed) {
        if (conn->flights_n == 0) {
            serve(conn);
        }
        return TAKEN_COMMAND;
    }
    if (conn_arguments(conn) == 0) {
        leave_command(conn, CONN_READY);
        return TAKEN_COMMAND;
    }
    conn->commands++;
    conn->silent = conn->reply_off || conn->reply_skip;
    conn->reply_skip = false;
    find_command(conn);
    if (conn->flights_n == 0 ||
        (conn->command != NULL && (conn->command->flags & RESP_DATA) != 0)) {
        serve(conn);
    }
    return TAKEN_COMMAND;
}

/* ---- Handing out ---- */

static bool may_hand_out(const struct resp_conn *conn, const struct op *op)
{
    return conn_has_room(conn) && (conn->may_update || !conn_op_updates(op));
}

/* The next operation of the data command that is served, or its transaction. False: not now. */
static bool hand_out(struct resp_conn *conn, struct op *op_out, const struct txn_request **txn_out)
{
    struct resp_flight *flight = flight_at(conn, conn->flights_n - 1);

    if (!conn->op_made) {
        conn->op = (struct op){.space = (uint8_t)conn->space};
        conn->make(conn, conn->op_index, &conn->op);
        conn->op_made = true;
    }
    if (!may_hand_out(conn, &conn->op) || (flight->values && !values_have_room(conn)) ||
        is_unread(conn)) {
        return false;
    }
    if (flight->txn != NULL && flight->txn->updates && !conn->may_update) {
        return false;
    }
    if (flight->together > 0 && !multi_gather(conn, flight)) {
        conn->out.failed = true;
        return false;
    }
    *txn_out = flight->txn != NULL ? &flight->txn->request : NULL;
    *op_out = conn->op;
    conn->values_in_flight += flight->values ? 1 : 0;
    conn->op_made = false;
    conn->op_index++;
    conn->in_flight++;
    if (conn->op_index == flight->all) {
        leave_command(conn, CONN_READY);
    }
    return true;
}

static enum resp_next rest(struct resp_conn *conn)
{
    conn->rested = true;
    return RESP_AGAIN;
}

/* One slice of long work; RESP_INPUT means that it is done. */
static enum resp_next work(struct resp_conn *conn, struct op *op_out,
                           const struct txn_request **txn_out)
{
    switch (conn->work.step(conn, op_out)) {
    case STEP_OPERATION:
        HK_ASSERT(may_hand_out(conn, op_out));
        conn->in_flight++;
        return RESP_OP;
    case STEP_TRANSACTION:
        HK_ASSERT(conn->in_flight == 0 && (conn->may_update || !conn->work.txn->updates));
        *op_out = (struct op){.space = (uint8_t)conn->work.space};
        *txn_out = &conn->work.txn->request;
        conn->in_flight++;
        return RESP_OP;
    case STEP_WAIT:
        HK_ASSERT(conn->in_flight > 0 || !conn->may_update);
        return RESP_WAIT;
    case STEP_AGAIN:
        return rest(conn);
    case STEP_DONE:
        break;
    }
    HK_ASSERT(conn->in_flight == 0);
    walk_forget(conn);
    conn->state = CONN_READY;
    finish_command(conn);
    return RESP_INPUT;
}

/* The output is over its limit, or memory is short: all that is left is to close. The input stays
 * until the connection is destroyed, for operations that point into it. */
static enum resp_next give_up(struct resp_conn *conn)
{
    resp_out_deinit(&conn->out);
    resp_out_deinit(&conn->work.keys);
    resp_out_deinit(&conn->work.place);
    resp_out_deinit(&conn->work.piece);
    conn->out.failed = true;
    conn->sent = conn->ready = 0;
    conn->state = CONN_CLOSING;
    return RESP_CLOSE;
}

enum resp_next resp_conn_next(struct resp_conn *conn, uint64_t now_us, bool updates,
                              struct op *op_out, const struct txn_request **txn_out)
{
    uint32_t served = 0;
    enum taken taken = TAKEN_NONE;

    *txn_out = NULL;
    conn->now_us = now_us;
    conn->may_update = updates;
    if (conn->rested) {
        multi_forget(conn);
        conn->rested = false;
    }
    for (;;) {
        if (conn->out.failed) {
            return give_up(conn);
        }
        switch (conn->state) {
        case CONN_READY:
            if (served++ == COMMANDS_A_CALL || conn->over_bytes > OVER_BYTES_MAX) {
                return rest(conn);
            }
            if (conn->multi_refused && now_us >= conn->multi_until_us) {
                conn->state = CONN_CLOSING;
                break;
            }
            taken = take_command(conn);
            if (taken == TAKEN_NONE) {
                return conn->multi_refused ? RESP_WAIT : RESP_INPUT;
            }
            if (taken == TAKEN_FULL) {
                return RESP_WAIT;
            }
            break;
        case CONN_HELD:
            if (conn->flights_n > 0) {
                return RESP_WAIT;
            }
            serve(conn);
            break;
        case CONN_OPERATIONS:
            if (hand_out(conn, op_out, txn_out)) {
                return RESP_OP;
            }
            if (conn->out.failed) {
                break;
            }
            return RESP_WAIT;
        case CONN_WORK: {
            enum resp_next next = work(conn, op_out, txn_out);

            if (next != RESP_INPUT) {
                return next;
            }
            break;
        }
        case CONN_SLEEPING:
            if (now_us < conn->wake_us) {
                return RESP_WAIT;
            }
            conn->woken(conn);
            finish_command(conn);
            break;
        case CONN_CLOSING:
            return conn->flights_n > 0 ? RESP_WAIT : RESP_CLOSE;
        }
    }
}

/* After an error the rest of a command's operations is not handed out. */
static void stop_handing_out(struct resp_conn *conn, struct resp_flight *flight)
{
    if (conn->state != CONN_OPERATIONS || flight != flight_at(conn, conn->flights_n - 1)) {
        return;
    }
    flight->left -= flight->all - conn->op_index;
    conn->op_made = false;
    leave_command(conn, CONN_READY);
}

void resp_conn_answer(struct resp_conn *conn, const struct answer *answer,
                      const struct resp_results *results, uint64_t now_us)
{
    HK_ASSERT(conn->in_flight > 0);
    conn->in_flight--;
    conn->now_us = now_us;
    if (conn->out.failed) {
        return;
    }
    if (conn->flights_n == 0) {
        HK_ASSERT(conn->state == CONN_WORK);
        conn->work.answered(conn, answer, results);
        if (conn->work.txn != NULL) {
            multi_over(conn, conn->work.txn);
            conn->work.txn = NULL;
        }
        return;
    }

    struct resp_flight *flight = flight_at(conn, 0);
    bool first = flight->error == HK_OK;
    uint32_t before = conn->out.n;

    flight->left--;
    if (answer->kind == ANSWER_ERROR && first) {
        flight->error = (int)answer->number;
        flight->error_slot = answer->slot;
        flight->partly = flight->all > 1 && (flight->command->flags & RESP_WRITE) != 0;
        stop_handing_out(conn, flight);
    } else if (flight->txn != NULL) {
        multi_answer(conn, flight, answer, results);
    } else if (first && !flight->silent) {
        flight->answered(conn, flight, answer);
    }
    if (flight->values) {
        conn->values_in_flight--;
        if (!conn->out.failed && !flight->silent) {
            expect_values(conn, conn->out.n - before);
        }
    }
    if (flight->left == 0) {
        finish_flight(conn, flight);
    }
}

uint64_t resp_conn_since(const struct resp_conn *conn)
{
    return conn->since_us;
}

uint64_t resp_conn_deadline(const struct resp_conn *conn)
{
    if (conn->state == CONN_SLEEPING) {
        return conn->wake_us;
    }
    return conn->state == CONN_READY && conn->multi_refused ? conn->multi_until_us : UINT64_MAX;
}
