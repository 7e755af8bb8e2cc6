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
