/* MULTI, EXEC, DISCARD, WATCH and UNWATCH. A space whose engine has no transactions refuses them;
 * what follows a MULTI that was refused does not run. */
#include "resp/commands.h"

#include <stdlib.h>

#include "base/assert.h"
#include "resp/multi.h"
#include "resp/serve_admin.h"

/* After so long a transaction that was not done is taken for given up: what is tried then is
 * another one, and as old as any that begins. */
#define TRIES_MAX_US UINT64_C(10000000)

static void refuse(struct resp_conn *conn)
{
    resp_out_errorf(&conn->out,
                    "ERR '%s' is not supported in space %u (engine %s): transactions are for "
                    "spaces of the engines zeus and lotus",
                    conn->command->name, conn->space, command_engine(conn, conn->space));
}

/* Most libraries send MULTI, the commands and EXEC together, without a look at MULTI's reply. What
 * follows must not run outside the transaction that it was meant for. */
void serve_multi(struct resp_conn *conn)
{
    if (conn->multi != NULL) {
        resp_out_error(&conn->out, "ERR MULTI calls can not be nested");
        return;
    }
    if (!conn_has_transactions(conn)) {
        refuse(conn);
        conn_refuse_multi(conn);
        return;
    }
    conn->multi = conn_txn_create(TXN_EXEC);
    if (conn->multi == NULL) {
        conn->out.failed = true;
        return;
    }
    multi_count(conn, conn->multi);
    resp_out_simple(&conn->out, "OK");
}

static bool watches_elsewhere(const struct resp_conn *conn)
{
    return conn->watches != NULL && conn->watches->n > 0 && conn->watches->space != conn->space;
}

/* After a MULTI that was refused EXEC is answered as if that had succeeded and had then met an
 * error: libraries know that answer, and report the error of MULTI with it. */
void serve_exec(struct resp_conn *conn)
{
    bool aborted = conn->multi_refused || (conn->multi != NULL && conn->multi->aborted);

    if (conn->multi == NULL && !conn->multi_refused) {
        resp_out_error(&conn->out, "ERR EXEC without MULTI");
    } else if (aborted) {
        resp_out_error(&conn->out, "EXECABORT Transaction discarded because of previous errors.");
        conn_end_multi(conn);
    } else if (watches_elsewhere(conn)) {
        resp_out_errorf(&conn->out,
                        "EXECABORT Transaction discarded because of: keys of space %u are watched, "
                        "and a transaction is of one space",
                        conn->watches->space);
        conn_end_multi(conn);
    } else {
        multi_execute(conn);
    }
    conn->multi_refused = false;
}

void serve_discard(struct resp_conn *conn)
{
    if (conn->multi == NULL && !conn->multi_refused) {
        resp_out_error(&conn->out, "ERR DISCARD without MULTI");
        return;
    }
    resp_out_simple(&conn->out, "OK");
    conn_end_multi(conn);
    conn->multi_refused = false;
    conn->since_us = 0;
}

/* One read of all keys that are not watched yet; their bytes outlive the input. */
static struct conn_txn *look_at(struct resp_conn *conn)
{
    struct conn_txn *txn = conn_txn_create(TXN_WATCH);
    bool fits = txn != NULL && conn_txn_command(txn, conn->command) != NULL;
    uint32_t n = 0;

    for (uint32_t i = 1; i < conn_arguments(conn) && fits; i++) {
        struct bytes key = conn_argument(conn, i);

        if (!txn_watches_have(conn->watches, key)) {
            struct op op = {.kind = OP_EXISTS, .space = (uint8_t)conn->space, .key = {NULL, key.n}};

            fits = conn_txn_keep(txn, key) != UINT32_MAX && conn_txn_add(txn, &op);
        }
    }
    if (!fits) {
        conn_txn_destroy(txn);
        return NULL;
    }
    for (uint32_t i = 0; i < txn->ops_n; i++) {
        txn->ops[i].key.at = txn->bytes.at + n;
        n += txn->ops[i].key.n;
    }
    conn_txn_seal(txn);
    multi_count(conn, txn);
    return txn;
}

static bool may_watch(struct resp_conn *conn)
{
    const struct txn_watches *watches = conn->watches;
    uint32_t n = conn_arguments(conn) - 1;

    if (watches_elsewhere(conn)) {
        resp_out_errorf(&conn->out,
                        "ERR keys of space %u are watched already, and a transaction is of one "
                        "space",
                        watches->space);
        return false;
    }
    if (n > TXN_OPS_MAX || watches->n + n > TXN_OBJECTS_MAX ||
        (uint64_t)watches->keys.n + conn->used > conn_limits(conn)->query_bytes_max) {
        resp_out_errorf(&conn->out,
                        "ERR a connection watches at most %u keys, and no more bytes "
                        "of them than a command may have",
                        TXN_OBJECTS_MAX);
        return false;
    }
    return true;
}

void serve_watch(struct resp_conn *conn)
{
    if (conn->multi != NULL) {
        resp_out_error(&conn->out, "ERR WATCH inside MULTI is not allowed");
        return;
    }
    if (!conn_has_transactions(conn)) {
        refuse(conn);
        return;
    }
    if (conn->watches == NULL) {
        conn->watches = calloc(1, sizeof *conn->watches);
        if (conn->watches == NULL) {
            conn->out.failed = true;
            return;
        }
    }
    if (!may_watch(conn)) {
        return;
    }
    conn->watches->space = conn->space;
    if (conn->since_us == 0 || conn->now_us - conn->since_us > TRIES_MAX_US) {
        conn->since_us = conn->now_us;
    }

    struct conn_txn *txn = look_at(conn);

    if (txn == NULL) {
        conn->out.failed = true;
    } else if (txn->ops_n == 0) {
        multi_free(conn, txn);
        resp_out_simple(&conn->out, "OK");
    } else {
        conn_transaction(conn, txn);
    }
}

/* Between MULTI and EXEC it is queued, and then comes too late to matter, as in Redis. Who watches
 * keys of a space may say it in another, too. */
void serve_unwatch(struct resp_conn *conn)
{
    bool watches = conn->watches != NULL && conn->watches->n > 0;
    if (!conn_has_transactions(conn) && !watches) {
        refuse(conn);
        return;
    }
    if (conn->watches != NULL) {
        txn_watches_clear(conn->watches);
    }
    conn->since_us = 0;
    resp_out_simple(&conn->out, "OK");
}
