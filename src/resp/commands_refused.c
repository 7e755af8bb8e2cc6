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
    const struct resp_host *host = conn->host;
    const char *engine = host->engine != NULL ? host->engine(host->context, conn->space) : NULL;
    resp_out_errorf(
        &conn->out,
        "ERR '%s' is not supported in space %u (engine %s): transactions are for spaces "
        "of the engines zeus and lotus",
        conn->command->name, conn->space, engine != NULL ? engine : "unknown");
}

/* MULTI never succeeds, so these two never follow one. */
void serve_exec(struct resp_conn *conn)
{
    resp_out_error(&conn->out, "ERR EXEC without MULTI");
}

void serve_discard(struct resp_conn *conn)
{
    resp_out_error(&conn->out, "ERR DISCARD without MULTI");
}
