/* The walk through all keys of a space, for commands that work in slices (conn->work): by the host
 * where keys have no order, else by ranges of a few keys each, which are transactions of their
 * own. */
#ifndef HORKOS_RESP_WALK_H
#define HORKOS_RESP_WALK_H

#include <stdbool.h>

#include "resp/internal.h"

/* Keys of one range, at the most. */
#define WALK_PIECE_MAX 1024u

/* Whether the command can walk the space; writes the error if not. */
bool walk_possible(struct resp_conn *conn);
/* Whether walk_step has keys; if not, *step_out is what the slice is to return. After an error that
 * is STEP_DONE, and the error is written; `partly`: some of the keys may be changed. */
bool walk_ready(struct resp_conn *conn, bool partly, enum conn_step *step_out);
/* Emits the next keys; work.ending behind the last ones. */
void walk_step(struct resp_conn *conn, resp_key_fn *emit);
/* For conn->work.answered: the keys that were asked for, or the error. */
void walk_answered(struct resp_conn *conn, const struct answer *answer,
                   const struct resp_results *results);
/* One key of an ordered space by chance, or null; conn_step_fn. */
enum conn_step walk_random(struct resp_conn *conn, struct op *op_out);
/* Memory of the walk, to be freed with its command. */
void walk_forget(struct resp_conn *conn);

#endif
