/* How clients speak with a node: an operation as a command of the Redis protocol, and a reply as an
 * answer. Between the two runs the server's own struct resp_conn. */
#ifndef HORKOS_SIM_REDIS_H
#define HORKOS_SIM_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/op.h"
#include "resp/conn.h"

/* The bytes of the operation's command at *out (malloc; the caller frees), their number returned.
 * Asserts an operation that no command asks for (redis_can_say). */
uint32_t redis_command(const struct op *op, uint8_t **out);
/* False for operations that only the embedded node offers: blind deletions. */
bool redis_can_say(const struct op *op);

/* Reads one whole reply. NULL, or what is wrong with the bytes. The answer's value points into
 * reply. */
const char *redis_answer(struct bytes reply, struct answer *answer_out);

/* What a simulated process gives its connections: time and limits, no administration. wall_us is
 * called with the context that is set here. */
void redis_host_init(struct resp_host *host, uint64_t (*wall_us)(void *context), void *context);

#endif
