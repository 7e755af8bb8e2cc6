/* What step.c and the files of commands share about transactions. multi.c: commands are queued,
 * become operations at EXEC, and replies when they are answered. */
#ifndef HORKOS_RESP_MULTI_H
#define HORKOS_RESP_MULTI_H

#include <stdbool.h>
#include <stdint.h>

#include "resp/conn.h"
#include "resp/transaction.h"

/* Counts the memory of a transaction anew, after it grew. */
void multi_count(struct resp_conn *conn, struct conn_txn *txn);
/* Destroys a transaction of this connection; NULL is ignored. */
void multi_free(struct resp_conn *conn, struct conn_txn *txn);
/* It is over, but the node may still look at its bytes. */
void multi_over(struct resp_conn *conn, struct conn_txn *txn);
/* Destroys those that are over: the poll that they belonged to is. */
void multi_forget(struct resp_conn *conn);

/* Whether the command is not to be queued between MULTI and EXEC but served at once. */
bool multi_serves(const struct resp_command *command);
/* Queues the command that is served; writes QUEUED, or an error after which EXEC will refuse. */
void multi_queue(struct resp_conn *conn);
/* A command between MULTI and EXEC was refused. */
void multi_abort(struct resp_conn *conn);

/* While conn->collects: in place of conn_operation and conn_operations. */
struct resp_flight *multi_collect(struct resp_conn *conn, const struct op *op,
                                  resp_answer_fn *answered);
void multi_collect_all(struct resp_conn *conn, uint32_t n, resp_operation_fn *make,
                       resp_answer_fn *answered);
/* EXEC. Writes the replies at once if no node is needed for them. */
void multi_execute(struct resp_conn *conn);
/* The command that is handed out is one request: makes it. False: no memory. */
bool multi_gather(struct resp_conn *conn, struct resp_flight *flight)
    __attribute__((warn_unused_result));
/* The answer to a transaction, no error: writes its reply. */
void multi_answer(struct resp_conn *conn, const struct resp_flight *flight,
                  const struct answer *answer, const struct resp_results *results);
/* The words for an error of a transaction as a whole. */
void multi_error(struct resp_conn *conn, const struct answer *answer, uint8_t op_kind);

#endif
