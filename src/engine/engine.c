#include "engine/engine.h"

#include <string.h>

#include "base/assert.h"

const char *const engine_drop_names[ENGINE_DROPS] = {
    [ENGINE_DROP_EPOCH_OLD] = "epoch_old", [ENGINE_DROP_EPOCH_NEW] = "epoch_new",
    [ENGINE_DROP_SENDER] = "sender",       [ENGINE_DROP_SLOT] = "slot",
    [ENGINE_DROP_STALE] = "stale",         [ENGINE_DROP_INVALID] = "invalid",
};

struct effect *effects_add(struct effects *fx, enum eff_kind kind)
{
    HK_ASSERT(fx->n < EFFECTS_MAX);
    struct effect *e = &fx->e[fx->n++];
    memset(e, 0, sizeof *e);
    e->kind = (uint8_t)kind;
    return e;
}
