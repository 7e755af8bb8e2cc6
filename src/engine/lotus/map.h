/* Which memory server has which slot: the slot map (engine/homes) as Lotus's worker-wide flow.
 * Slots move as wholes, and members that only compute take none (docs/protocols/slots.md, S13 to
 * S15). */
#ifndef HORKOS_ENGINE_LOTUS_MAP_H
#define HORKOS_ENGINE_LOTUS_MAP_H

#include "engine/homes/homes.h"
#include "engine/lotus/lotus.h"

/* engine_ops.worker_bytes. */
struct lotus_worker {
    struct homes homes; /* worker 0's */
};

/* engine_ops.flow; there are no slots of flows, so mine is NULL. */
void lotus_map_flow(struct slot *mine, const struct event *event, struct effects *fx);
/* engine_ops.ready. */
bool lotus_map_ready(const void *worker);
/* lotus_msg_invalid of kinds from LOTUS_MSG_MAP on that are the map's. */
const char *lotus_map_msg_invalid(const struct msg *msg);

#endif
