/* Transactions of a connection, from the first command that is queued to the last reply.
 *
 * A queued command is kept as its arguments. At EXEC each is served for the operations that it
 * starts, as if it had just come: so relative deadlines count from EXEC, and what is wrong with its
 * arguments is its reply and nobody else's, as in Redis. All operations are one request. When that
 * is answered the replies are written in the order of the commands, each by the function that would
 * have written it alone; commands without operations are served then. */
#include "resp/multi.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "engine/op_number.h"
#include "resp/commands.h"
#include "resp/serve_admin.h"
#include "wire/msg.h"

/* ---- Memory ---- */

void multi_count(struct resp_conn *conn, struct conn_txn *txn)
{
    uint64_t bytes = conn_txn_bytes(txn);

    conn->txn_bytes += bytes - txn->counted;
    txn->counted = bytes;
}

void multi_free(struct resp_conn *conn, struct conn_txn *txn)
{
    if (txn != NULL) {
        conn->txn_bytes -= txn->counted;
        conn_txn_destroy(txn);
    }
}

void multi_over(struct resp_conn *conn, struct conn_txn *txn)
{
    txn->next = conn->over;
    conn->over = txn;
    conn->over_bytes += txn->counted;
}

void multi_forget(struct resp_conn *conn)
{
    while (conn->over != NULL) {
        struct conn_txn *txn = conn->over;

        conn->over = txn->next;
        multi_free(conn, txn);
    }
    conn->over_bytes = 0;
}

void conn_end_multi(struct resp_conn *conn)
{
    multi_free(conn, conn->multi);
    conn->multi = NULL;
    if (conn->watches != NULL) {
        txn_watches_clear(conn->watches);
    }
}

/* ---- Queueing ---- */

bool conn_has_transactions(const struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;

    return host->transactions != NULL && host->transactions(host->context, conn->space);
}

bool conn_is_ordered(const struct resp_conn *conn, uint32_t space)
{
    const struct resp_host *host = conn->host;

    return host->ordered != NULL && host->ordered(host->context, space);
}

bool multi_serves(const struct resp_command *command)
{
    return command->serve == serve_exec || command->serve == serve_discard ||
           command->serve == serve_multi || command->serve == serve_watch ||
           command->serve == serve_quit || command->serve == serve_reset;
}

void multi_abort(struct resp_conn *conn)
{
    struct conn_txn *txn = conn->multi;

    /* What was queued is not needed any more. */
    multi_free(conn, txn);
    conn->multi = conn_txn_create(TXN_EXEC);
    if (conn->multi == NULL) {
        conn->out.failed = true;
        return;
    }
    conn->multi->aborted = true;
    multi_count(conn, conn->multi);
}

/* SELECT of another space that exists: what follows would be meant for that one. */
static bool selects_another(const struct resp_conn *conn)
{
    int64_t space = 0;

    return conn->command->serve == serve_select &&
           op_integer_parse(conn_argument(conn, 1), &space) && space != (int64_t)conn->space &&
           space >= 0 && space < 32 && (command_spaces(conn) >> space & 1u) != 0;
}

/* Why the command cannot stand between MULTI and EXEC; writes the error. */
static bool may_queue(struct resp_conn *conn)
{
    const struct resp_command *command = conn->command;
    const struct conn_txn *txn = conn->multi;

    if ((command->flags & RESP_REFUSED) != 0 || command->serve == serve_no_cluster) {
        command->serve(conn);
        return false;
    }
    if ((command->flags & (RESP_DATA | RESP_MULTI)) == 0) {
        resp_out_errorf(&conn->out, "ERR '%s' cannot stand between MULTI and EXEC",
                        conn_command_name(conn, command));
        return false;
    }
    if (selects_another(conn)) {
        resp_out_error(&conn->out, "ERR SELECT of another space cannot stand between MULTI and "
                                   "EXEC: a transaction is of one space");
        return false;
    }
    if (txn->commands_n == TXN_OPS_MAX) {
        resp_out_errorf(&conn->out, "ERR a transaction has at most %u commands", TXN_OPS_MAX);
        return false;
    }
    if ((uint64_t)txn->queued_bytes + conn->used > conn_limits(conn)->query_bytes_max) {
        resp_out_error(&conn->out, "ERR the transaction is larger than a command may be "
                                   "(client-query-buffer-limit)");
        return false;
    }
    return true;
}

void multi_queue(struct resp_conn *conn)
{
    struct conn_txn *txn = conn->multi;

    if (!may_queue(conn)) {
        multi_abort(conn);
        return;
    }
    if (!txn->aborted) {
        if (!conn_txn_queue(txn, conn)) {
            conn->out.failed = true;
            return;
        }
        txn->queued_bytes += conn->used;
        multi_count(conn, txn);
    }
    resp_out_simple(&conn->out, "QUEUED");
}

/* ---- Collecting ---- */

/* The numbers of a flight of a command, as long as it is collected. */
static struct resp_flight *begin_collected(struct resp_conn *conn, resp_answer_fn *answered)
{
    struct conn_txn *txn = conn->collects;

    txn->commands[txn->collected].answered = answered;
    conn->collected = (struct resp_flight){.command = conn->command, .answered = answered};
    return &conn->collected;
}

/* What no node would take: of a command alone it would be the answer, so here it is its reply. */
static int check_operation(const struct op *op)
{
    struct op alone = *op;

    if (op->kind >= OP_KINDS) {
        return op->key.n > MSG_KEY_MAX || op->arg.n > MSG_KEY_MAX ? HK_ERR_TOOBIG : HK_OK;
    }
    alone.flags &= (uint16_t)~TXN_OPF_ROW;
    return op_check(&alone, MSG_VALUE_MAX);
}

/* False: the command needs no more of them. */
static bool collect_operation(struct resp_conn *conn, struct op *op)
{
    struct conn_txn *txn = conn->collects;
    struct txn_command *command = &txn->commands[txn->collected];
    int err = check_operation(op);

    if (err != HK_OK) {
        conn_operation_error(&conn->out, err, op->kind, false);
        txn->ops_n -= command->ops_n;
        command->ops_n = 0;
        return false;
    }
    op->space = (uint8_t)conn->space;
    if (!conn_txn_add(txn, op)) {
        txn->overfull = true;
        return false;
    }
    command->ops_n++;
    return true;
}

struct resp_flight *multi_collect(struct resp_conn *conn, const struct op *op,
                                  resp_answer_fn *answered)
{
    struct op copy = *op;
    struct resp_flight *flight = begin_collected(conn, answered);

    (void)collect_operation(conn, &copy);
    return flight;
}

void multi_collect_all(struct resp_conn *conn, uint32_t n, resp_operation_fn *make,
                       resp_answer_fn *answered)
{
    (void)begin_collected(conn, answered);
    for (uint32_t i = 0; i < n; i++) {
        struct op op = {.space = (uint8_t)conn->space};

        make(conn, i, &op);
        if (!collect_operation(conn, &op)) {
            return;
        }
    }
}

/* Serves one queued command for its operations, or for the error that it writes. */
static void collect_command(struct resp_conn *conn, struct conn_txn *txn, uint32_t index)
{
    struct txn_command *command = &txn->commands[index];
    struct conn_words words = conn_txn_words(txn, command);
    uint32_t before = conn->out.n;

    if ((command->command->flags & RESP_DATA) == 0) {
        command->direct = true;
        return;
    }
    txn->collected = index;
    conn->words = &words;
    conn->collects = txn;
    conn->command = command->command;
    command->command->serve(conn);
    conn->words = NULL;
    conn->collects = NULL;
    command->a = conn->collected.a;
    command->b = conn->collected.b;
    if (conn->out.n > before) {
        command->text_at = txn->texts.n;
        command->text_n = conn->out.n - before;
        resp_out_raw(&txn->texts, bytes_of(conn->out.at + before, command->text_n));
        resp_out_rewind(&conn->out, before);
        conn->out.failed = conn->out.failed || txn->texts.failed;
    }
    HK_ASSERT(command->ops_n > 0 || command->text_n > 0 || txn->overfull || conn->out.failed);
}

/* ---- Replies ---- */

/* Its part of the answers makes a command's reply, as if it had come alone. */
static void write_operations(struct resp_conn *conn, const struct conn_txn *txn,
                             const struct txn_command *command, uint32_t first,
                             const struct resp_results *results)
{
    uint32_t before = conn->out.n;
    struct resp_flight flight = {
        .command = command->command,
        .a = command->a,
        .b = command->b,
        .left = command->ops_n,
        .all = command->ops_n,
    };

    for (uint32_t i = first; i < first + command->ops_n; i++) {
        const struct answer *answer = &results->answers[i];

        flight.left--;
        if (answer->kind == ANSWER_ERROR) {
            resp_out_rewind(&conn->out, before);
            conn_answer_error(conn, answer, txn->ops[i].kind, false);
            return;
        }
        command->answered(conn, &flight, answer);
    }
}

/* A command without operations, which writes its reply and does no more. */
static void write_direct(struct resp_conn *conn, const struct conn_txn *txn,
                         const struct txn_command *command)
{
    struct conn_words words = conn_txn_words(txn, command);
    const struct resp_command *served = conn->command;
    enum conn_state state = conn->state;

    conn->words = &words;
    conn->command = command->command;
    command->command->serve(conn);
    conn->words = NULL;
    conn->command = served;
    HK_ASSERT(conn->state == state && !conn->close);
}

static void write_replies(struct resp_conn *conn, const struct conn_txn *txn,
                          const struct resp_results *results)
{
    uint32_t first = 0;

    resp_out_array(&conn->out, txn->commands_n);
    for (uint32_t i = 0; i < txn->commands_n; i++) {
        const struct txn_command *command = &txn->commands[i];

        if (command->text_n > 0) {
            resp_out_raw(&conn->out, bytes_of(txn->texts.at + command->text_at, command->text_n));
        } else if (command->direct) {
            write_direct(conn, txn, command);
        } else {
            write_operations(conn, txn, command, first, results);
        }
        first += command->ops_n;
    }
}

/* What was seen is remembered until EXEC. */
static void keep_watches(struct resp_conn *conn, const struct conn_txn *txn,
                         const struct resp_results *results)
{
    struct txn_watches *watches = conn->watches;

    for (uint32_t i = 0; i < txn->ops_n; i++) {
        if (!txn_watches_add(watches, txn->ops[i].key, results->versions[i])) {
            conn->out.failed = true;
            return;
        }
    }
    resp_out_simple(&conn->out, "OK");
}

void multi_answer(struct resp_conn *conn, const struct resp_flight *flight,
                  const struct answer *answer, const struct resp_results *results)
{
    const struct conn_txn *txn = flight->txn;

    if (answer->kind == ANSWER_NIL) {
        resp_out_null_array(&conn->out); /* it will be tried again, and is as old then as now */
        return;
    }
    HK_ASSERT(txn->ops_n == 0 || (results != NULL && results->n == txn->ops_n));
    switch (txn->kind) {
    case TXN_SINGLE: {
        struct txn_command command = txn->commands[0];

        command.answered = flight->answered;
        command.a = flight->a;
        command.b = flight->b;
        write_operations(conn, txn, &command, 0, results);
        break;
    }
    case TXN_EXEC:
        conn->since_us = 0;
        write_replies(conn, txn, results);
        break;
    case TXN_WATCH:
        keep_watches(conn, txn, results);
        break;
    }
}

/* A transaction's time is over, whatever it was that took so long. */
#define TOO_LATE                                                                                   \
    "TRYAGAIN others worked with these keys all the time, or it is more than can be done in time " \
    "now; nothing changed"

void multi_error(struct resp_conn *conn, const struct answer *answer, uint8_t op_kind)
{
    struct resp_out *out = &conn->out;

    switch (answer->number) {
    case HK_ERR_TOOBIG:
        if (op_kind >= TXN_OP_RANGE) {
            conn_answer_error(conn, answer, op_kind, false);
            break;
        }
        resp_out_error(out, "ERR the transaction is too large: it writes more than 64 MiB, or more "
                            "than 1024 keys; nothing changed");
        break;
    case HK_ERR_BUSY:
        resp_out_error(out, TOO_LATE);
        break;
    default:
        conn_answer_error(conn, answer, op_kind, false);
    }
}

/* ---- Requests ---- */

/* EXEC's transaction is the connection's no more, nor are the watches. */
static struct conn_txn *take_multi(struct resp_conn *conn)
{
    struct conn_txn *txn = conn->multi;

    if (conn->watches != NULL && !conn_txn_watch(txn, conn->watches)) {
        conn->out.failed = true;
    }
    conn->multi = NULL;
    return txn;
}

void multi_execute(struct resp_conn *conn)
{
    struct conn_txn *txn = take_multi(conn);
    const struct resp_command *exec = conn->command;

    for (uint32_t i = 0; i < txn->commands_n && !txn->overfull && !conn->out.failed; i++) {
        collect_command(conn, txn, i);
    }
    conn->command = exec;
    multi_count(conn, txn);
    if (txn->overfull) {
        resp_out_errorf(&conn->out,
                        "EXECABORT Transaction discarded because of: it has more than %u "
                        "operations on keys",
                        TXN_OPS_MAX);
        multi_free(conn, txn);
    } else if (conn->out.failed || txn->ops_n + txn->watched.n == 0) {
        write_replies(conn, txn, NULL);
        multi_free(conn, txn);
    } else {
        conn_txn_seal(txn);
        conn_transaction(conn, txn);
    }
}

bool multi_gather(struct resp_conn *conn, struct resp_flight *flight)
{
    struct conn_txn *txn = conn_txn_create(TXN_SINGLE);
    bool fits = txn != NULL && conn_txn_command(txn, flight->command) != NULL;

    for (uint32_t i = 0; i < flight->together && fits; i++) {
        struct op op = {.space = (uint8_t)conn->space};

        if (i == 0) {
            op = conn->op;
        } else {
            conn->make(conn, i, &op);
        }
        fits = conn_txn_add(txn, &op);
    }
    if (!fits) {
        conn_txn_destroy(txn);
        return false;
    }
    txn->commands[0].ops_n = txn->ops_n;
    conn_txn_seal(txn);
    multi_count(conn, txn);
    flight->txn = txn;
    return true;
}
