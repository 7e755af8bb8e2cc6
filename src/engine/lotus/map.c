#include "engine/lotus/map.h"

#include "base/assert.h"

_Static_assert(LOTUS_MSG_MAP + HOMES_KINDS <= LOTUS_MSG_ROWS, "the map's kinds have room");

static const struct homes_config everywhere = {.first_kind = LOTUS_MSG_MAP, .whole = true};

void lotus_map_flow(struct slot *mine, const struct event *event, struct effects *fx)
{
    struct lotus_worker *worker = event->worker;
    struct homes_config homes = everywhere;
    HK_ASSERT(mine == NULL);
    const struct lotus_config *config = event->config;
    bool far = config != NULL && config->near_max != 0;
    homes.compute = event->role == (far ? NODE_ROLE_MEMORY : NODE_ROLE_COMPUTE);
#ifdef HK_MUTANTS
    homes.rules_off = config != NULL ? config->rules_off >> LOTUS_RULES : 0;
#endif
    homes_step(&worker->homes, event, &homes, fx);
}

bool lotus_map_ready(const void *worker)
{
    return homes_ready(&((const struct lotus_worker *)worker)->homes);
}

const char *lotus_map_msg_invalid(const struct msg *msg)
{
    return homes_msg_invalid(msg, &everywhere);
}
