/* What clients ask for: an operation as an entry of a history and as a command, and what the reply
 * to it says. */
#ifndef HORKOS_TOOLS_TORTURE_OPS_H
#define HORKOS_TOOLS_TORTURE_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/torture_keys.h"
#include "tools/torture_stream.h"

/* Draws an operation that fits the key's class. Its times and client are left to the caller. */
void torture_op_draw(struct torture_keys *keys, const struct torture_key *key,
                     struct random *random, struct history_op *op_out);
void torture_op_read(const struct torture_key *key, struct history_op *op_out);

/* Says it as a command. False: no memory. */
bool torture_op_say(const struct torture_key *key, const struct history_op *op,
                    struct torture_stream *stream);

/* Fills in the outcome and the answer. NULL, or what is wrong with the reply: nobody may ever
 * answer so. */
const char *torture_op_understand(const struct torture_key *key, struct history_op *op,
                                  const struct resp_client_reply *reply);

/* Whether an error says that nothing was changed, for now. */
bool torture_op_refuses(struct bytes text);
/* Whether it says that nobody has the key any more. */
bool torture_op_lost(const struct resp_client_reply *reply);
/* Whether it may change its key. */
bool torture_op_updates(const struct history_op *op);

#endif
