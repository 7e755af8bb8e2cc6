/* Galene's slot map: the worker-wide flow of worker 0 that says which node is the home of which
 * slot. */
#ifndef HORKOS_ENGINE_GALENE_HOMES_H
#define HORKOS_ENGINE_GALENE_HOMES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/* Kinds of messages, on the wire: they keep their numbers. The key machine's are below. */
enum galene_homes_kind {
    GALENE_HOMES_FIRST = 32,
    GALENE_HOMES_END = 42,
};

/* The first map only: slots are given out evenly to the operational members of the first view that
 * is adopted, and are lost with their homes. */
struct galene_homes {
    uint32_t map[HASH_SLOTS];
    uint64_t version; /* 0: there is no map */
    uint32_t told;    /* slots of map below it were told to the node */
    uint32_t epoch;
};

/* EV_VIEW, EV_MSG (a valid one of the kinds above), EV_FLUSH and EV_SLOTS. */
void galene_homes_step(struct galene_homes *h, const struct event *event, uint64_t rules_off,
                       struct effects *fx);
/* Why the message, of one of the kinds above, cannot come from a correct member, or NULL. */
const char *galene_homes_invalid(const struct msg *msg);
/* engine_ops.ready. */
bool galene_homes_ready(const struct galene_homes *h);

#endif
