/* How clients speak with a node: commands of the Redis protocol as bytes, and replies as answers.
 * Between the two runs the server's own struct resp_conn. */
#ifndef HORKOS_SIM_REDIS_H
#define HORKOS_SIM_REDIS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "engine/op.h"
#include "resp/conn.h"

/* The command of these words in bytes at *out (malloc; the caller frees), their number returned. */
uint32_t redis_command(const struct bytes *words, uint32_t n, uint8_t **out);

/* How many bytes the first reply takes; 0 if there is no whole one. */
uint32_t redis_reply_bytes(struct bytes replies);

/* Reads one whole reply that is no array. NULL, or what is wrong with it. A status other than OK is
 * a value; an error that no operation gives has the number HK_ERR_INVALID and its text as value.
 * What the answer points to lies in the reply. */
const char *redis_answer(struct bytes reply, struct answer *answer_out);

/* Cuts an array of n replies, none of them nested, into its parts. NULL, or what is wrong. */
const char *redis_array(struct bytes reply, uint32_t n, struct bytes *parts_out);

/* What a simulated process gives its connections: time and limits, no administration. wall_us is
 * called with the context that is set here. */
void redis_host_init(struct resp_host *host, uint64_t (*wall_us)(void *context), void *context);

#endif
