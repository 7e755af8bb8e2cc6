/* The errors of commands that horkos does not serve. */
#include "resp/commands.h"

#include "resp/serve_admin.h"

void serve_refused(struct resp_conn *conn)
{
    resp_out_errorf(&conn->out, "ERR %s", conn->command->refusal);
}

/* In Redis's words: cluster clients look for them, and then go on as for a single server. */
void serve_no_cluster(struct resp_conn *conn)
{
    resp_out_error(&conn->out, "ERR This instance has cluster support disabled");
}

void serve_no_transactions(struct resp_conn *conn)
{
    resp_out_errorf(
        &conn->out,
        "ERR '%s' is not supported in space %u (engine %s): transactions are for spaces "
        "of the engines zeus and lotus, which this version does not have yet",
        conn->command->name, conn->space, command_engine(conn, conn->space));
}

/* Most libraries send MULTI, the commands and EXEC together, without a look at MULTI's reply. What
 * follows must not run outside the transaction that it was meant for. */
void serve_multi(struct resp_conn *conn)
{
    serve_no_transactions(conn);
    conn_refuse_multi(conn);
}

/* MULTI never succeeds; after one that was refused these are answered as if it had, and had then
 * met an error: libraries know that answer, and report the error of MULTI with it. */
void serve_exec(struct resp_conn *conn)
{
    if (conn->multi_refused) {
        resp_out_error(&conn->out, "EXECABORT Transaction discarded because of previous errors.");
    } else {
        resp_out_error(&conn->out, "ERR EXEC without MULTI");
    }
    conn->multi_refused = false;
}

void serve_discard(struct resp_conn *conn)
{
    if (conn->multi_refused) {
        resp_out_simple(&conn->out, "OK");
    } else {
        resp_out_error(&conn->out, "ERR DISCARD without MULTI");
    }
    conn->multi_refused = false;
}
