/* Traders that speak: their deals are commands of the Redis protocol, MULTI and EXEC, WATCH,
 * MSETNX, RENAMENX, over a connection as a client's (redis.h). What the connection makes of them
 * has to be the deal's request, and its replies have to say what the node answered. Such a trader
 * has one deal under way, for EXEC ends what WATCH began. */
#ifndef HORKOS_SIM_TELLER_H
#define HORKOS_SIM_TELLER_H

#include <stdbool.h>

#include "sim/trader.h"

/* Each const char * is NULL, or what goes wrong. */

/* The trader has a session. */
const char *teller_connect(struct machine *machine, struct trader *trader);
void teller_hang_up(struct world *world, struct trader *trader);
/* Hands the deal's commands to the connection. Not within a poll. */
const char *teller_say(struct world *world, struct trader *trader, struct deal *deal);
/* Whether a request is to be run now, and which: of the deal itself, or ahead of it. */
bool teller_request(struct machine *machine, struct trader *trader, struct deal *deal,
                    struct request *request_out, bool *ahead_out, const char **wrong_out);
/* The answer to what was asked ahead; and to the deal itself, which the deal has understood. */
void teller_ahead(struct world *world, struct trader *trader, const struct reply *reply);
const char *teller_hear(struct world *world, struct trader *trader, const struct deal *deal,
                        const struct reply *reply);

#endif
