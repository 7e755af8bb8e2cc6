/* What the files of the CRAQ engine share; nobody else includes it (but tests). */
#ifndef HORKOS_ENGINE_CRAQ_MACHINE_H
#define HORKOS_ENGINE_CRAQ_MACHINE_H

#include "base/assert.h"
#include "engine/craq/craq.h"
#include "engine/craq/messages.h"
#include "engine/craq/rules.h"
#include "engine/engine.h"

/* The engine's bits of key_meta.flags. */
enum {
    KEY_SEEN = KEY_ENGINE_0, /* a sweep has met it dirty; any message about it clears this */
};

/* slot.kind */
enum craq_flow {
    CRAQ_FLOW_FREE = 0,
    CRAQ_FLOW_UPDATE, /* at its origin */
    CRAQ_FLOW_ASK,    /* a read that asked the tail */
};

/* EFF_FLOW -> EV_KEY */
enum {
    CRAQ_CODE_DONE = CODE_ENGINE_FIRST, /* the update committed at event.ts */
};

/* ---- The chain: operational members by id, then shadows by id ---- */

static inline uint8_t craq_highest(nodeset set)
{
    return (uint8_t)(63 - __builtin_clzll(set));
}

static inline nodeset craq_shadows(const struct view *view)
{
    return view->live & ~view->operational;
}

static inline uint8_t craq_head(const struct view *view)
{
    return nodeset_first(view->operational);
}

/* The last that serves: it answers questions. */
static inline uint8_t craq_read_tail(const struct view *view)
{
    return craq_highest(view->operational);
}

/* Where updates commit. */
static inline uint8_t craq_last(const struct view *view)
{
    nodeset shadows = craq_shadows(view);
    return craq_highest(shadows != 0 ? shadows : view->operational);
}

/* Behind self, which must not be the last. */
static inline uint8_t craq_next(const struct view *view, uint8_t self)
{
    nodeset own = nodeset_has(view->operational, self) ? view->operational : craq_shadows(view);
    nodeset above = own & ~(nodeset_of(self) | (nodeset_of(self) - 1));
    return nodeset_first(above != 0 ? above : craq_shadows(view));
}

/* Before self; NODE_NONE for the head. */
static inline uint8_t craq_previous(const struct view *view, uint8_t self)
{
    bool serves = nodeset_has(view->operational, self);
    nodeset below = (serves ? view->operational : craq_shadows(view)) & (nodeset_of(self) - 1);
    if (below != 0) {
        return craq_highest(below);
    }
    return serves ? NODE_NONE : craq_highest(view->operational);
}

/* ---- key.c ---- */
void craq_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
              const struct event *event, struct effects *fx);

/* ---- flow.c ---- */
void craq_flow(struct slot *mine, const struct event *event, struct effects *fx);

/* Rule 1: whether a message of this epoch, from a live member, is taken; else drops it. */
bool craq_admitted(const struct event *event, struct effects *fx);
void craq_drop(struct effects *fx, enum engine_drop why);

#endif
