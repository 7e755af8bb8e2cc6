/* One client connection of the Redis protocol as a pure state machine: bytes in, operations on keys
 * out, their answers in, reply bytes out. No socket, no clock, no lock; time comes with the calls,
 * everything else from struct resp_host. The server and the simulator run the same.
 *
 * A command's operations are handed out one by one by resp_conn_next, in order; each is answered
 * once by resp_conn_answer, in the same order. A transaction counts as one operation. Data commands
 * may be in flight together; every other command waits until all before it are answered, and
 * nothing passes it (so INFO behind a SET counts it). Replies leave in the order of the commands.
 * docs/RESP.md has the state table.
 *
 * While more than a MiB of replies has not been taken (or half of what may wait at all), no new
 * command is served and no operation handed out: who does not read is not answered, and soon not
 * listened to. Operations that answer values are in flight together only as far as their answers,
 * if they are like the last ones, come to no more than 16 MiB. */
#ifndef HORKOS_RESP_CONN_H
#define HORKOS_RESP_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/op.h"
#include "engine/txn.h"
#include "resp/host.h"
#include "resp/out.h"

#define RESP_NAME_MAX 128u
#define RESP_USER_MAX 128u
#define RESP_IN_FLIGHT_MAX 128u /* operations handed out and not answered */

struct resp_conn;

enum resp_next {
    RESP_INPUT, /* nothing to do before more bytes come; operations may be in flight */
    RESP_OP,    /* run *txn_out or *op_out and answer it */
    RESP_WAIT,  /* nothing to do before an operation is answered, output is taken, updates are
                   allowed again, resp_conn_deadline has come or, between two commands, more
                   bytes come */
    RESP_AGAIN, /* a slice of long work, or many commands, are done; others first, then call again,
                   and not in the same poll of the node */
    RESP_CLOSE, /* no more: send the output, then close; operations that are still in flight may be
                   answered or not */
};

/* id: of the connection, unique in the process, rising. address, local: for CLIENT LIST. host must
 * outlive the connection. HK_ERR_NOMEM. */
int resp_conn_create(const struct resp_host *host, uint64_t id, const char *address,
                     const char *local, uint64_t now_us, struct resp_conn **conn_out)
    __attribute__((warn_unused_result));
/* Operations may be in flight; they must not be answered any more, and their bytes are gone, so not
 * between resp_conn_next and the end of the poll that its operation belongs to. NULL is ignored. */
void resp_conn_destroy(struct resp_conn *conn);

/* Takes bytes that arrived. Not between resp_conn_next and the end of the poll that its operation
 * belongs to: the operation's bytes lie in the input. False when the input is over its limits (a
 * command too large is reported by resp_conn_next; this means that the caller fed on although the
 * connection is full) or memory is short: close. Behind the end of the stream (RESP_CLOSE) bytes
 * are dropped. */
bool resp_conn_feed(struct resp_conn *conn, struct bytes bytes) __attribute__((warn_unused_result));
/* Whether it is worth receiving more: false while much lies unparsed. */
bool resp_conn_hungry(const struct resp_conn *conn);

/* The next thing to do. The operation's bytes are good until the next resp_conn_feed; those of a
 * transaction until that, or the call after one that answered RESP_AGAIN.
 * txn_out: with RESP_OP NULL, or the transaction that is to be run, of op_out->space.
 * updates: whether an operation that updates may be handed out at the moment; if not, such a one is
 * held back and the answer is RESP_WAIT. */
enum resp_next resp_conn_next(struct resp_conn *conn, uint64_t now_us, bool updates,
                              struct op *op_out, const struct txn_request **txn_out);

/* When that began of which the operations that resp_conn_next hands out are a part: the first WATCH
 * since an EXEC was done, or given up. 0: they stand alone. */
uint64_t resp_conn_since(const struct resp_conn *conn);

/* What a transaction's operations answered, and the version of what each read or wrote. */
struct resp_results {
    const struct answer *answers;
    const uint64_t *versions;
    uint32_t n;
};
/* The answer to the oldest operation that is unanswered. results: of a transaction that is OK or
 * NUMBER (node/node.h, struct reply); else NULL. */
void resp_conn_answer(struct resp_conn *conn, const struct answer *answer,
                      const struct resp_results *results, uint64_t now_us);

/* When resp_conn_next has something to do although nothing came (it answers RESP_WAIT until then);
 * UINT64_MAX: never. */
uint64_t resp_conn_deadline(const struct resp_conn *conn);
/* Reply bytes that may leave: those of finished commands. Good until the next call that is not
 * const; taken by resp_conn_sent, in part or whole. That may free the input, so like
 * resp_conn_feed it is for between the polls. After it resp_conn_next may have something to do. */
struct bytes resp_conn_output(const struct resp_conn *conn);
void resp_conn_sent(struct resp_conn *conn, uint32_t bytes);
/* Operations handed out and not answered yet. */
uint32_t resp_conn_in_flight(const struct resp_conn *conn);
/* Memory that it holds. */
uint64_t resp_conn_bytes_held(const struct resp_conn *conn);

/* What others may see of it. Strings are good until the connection's next call. */
struct resp_conn_info {
    uint64_t id, created_us, last_us;
    const char *address, *local, *name, *user, *library, *library_version;
    const char *command; /* the last one, lower case, subcommand behind a bar: "client|list" */
    uint32_t space;
    uint32_t resp; /* 2 or 3 */
    uint64_t commands;
    uint64_t input_bytes, output_bytes; /* waiting */
    int64_t queued;                     /* commands since MULTI; -1: none came */
    bool no_evict, no_touch;
};
void resp_conn_info(const struct resp_conn *conn, struct resp_conn_info *info_out);

#endif
