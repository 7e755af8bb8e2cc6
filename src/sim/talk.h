/* A client's connection with its node: what is said, and what a reply to it means. */
#ifndef HORKOS_SIM_TALK_H
#define HORKOS_SIM_TALK_H

#include <stdint.h>

#include "base/bytes.h"
#include "node/node.h"
#include "sim/client.h"

/* Says HELLO 3 on a new connection. False: it is not answered as it should. */
bool talk_greet(struct resp_conn *conn, uint64_t now_us);

/* Each returns NULL, or what goes wrong. */

/* Opens the client's session, and its connection if it speaks. */
const char *talk_connect(struct machine *machine, struct worker *worker, struct client *client);
/* Hands the command of an operation, the first of its parts, over to the client's connection, in
 * two pieces. */
const char *talk_say(struct world *world, struct client *client, uint32_t op);
/* Understands a whole reply to the command that begins with this operation, in all its parts. It
 * leaves the process together with the answer of `carrier`; NO_OP: by itself. */
const char *talk_hear(struct machine *machine, struct sim_op *op, struct bytes reply,
                      uint32_t carrier);

#endif
