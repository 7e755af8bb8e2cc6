#include "engine/craq/messages.h"

#include <stddef.h>

const char *const craq_kind_names[CRAQ_KIND_END] = {
    [CRAQ_FORWARD] = "FORWARD", [CRAQ_WRITE] = "WRITE", [CRAQ_ACK] = "ACK",
    [CRAQ_LOST] = "LOST",       [CRAQ_QUERY] = "QUERY", [CRAQ_ANSWER] = "ANSWER",
    [CRAQ_REPAIR] = "REPAIR",   [CRAQ_ITEM] = "ITEM",
};

enum ts_shape { TS_NONE, TS_ALWAYS, TS_OR_ZERO };
enum slot_shape { SLOT_NONE, SLOT_ALWAYS, SLOT_OR_NONE };

/* What a kind carries. */
struct shape {
    bool key;
    bool value;
    bool origin;   /* arg names the slot's node */
    uint8_t ts;    /* enum ts_shape */
    uint8_t slot;  /* enum slot_shape */
    uint8_t flags; /* that may be set */
    uint8_t route; /* enum engine_route */
};

static const struct shape shapes[CRAQ_KIND_END] = {
    [CRAQ_FORWARD] = {.key = true,
                      .value = true,
                      .ts = TS_OR_ZERO,
                      .slot = SLOT_ALWAYS,
                      .flags = CRAQ_F_RMW,
                      .route = ROUTE_KEY},
    [CRAQ_WRITE] = {.key = true,
                    .value = true,
                    .origin = true,
                    .ts = TS_ALWAYS,
                    .slot = SLOT_OR_NONE,
                    .route = ROUTE_KEY},
    [CRAQ_ACK] = {.key = true,
                  .origin = true,
                  .ts = TS_ALWAYS,
                  .slot = SLOT_OR_NONE,
                  .flags = CRAQ_F_HOP,
                  .route = ROUTE_KEY},
    [CRAQ_LOST] = {.slot = SLOT_ALWAYS, .route = ROUTE_SLOT},
    [CRAQ_QUERY] = {.key = true, .slot = SLOT_ALWAYS, .route = ROUTE_KEY},
    [CRAQ_ANSWER] = {.value = true,
                     .ts = TS_OR_ZERO,
                     .slot = SLOT_ALWAYS,
                     .flags = CRAQ_F_BUSY,
                     .route = ROUTE_SLOT},
    [CRAQ_REPAIR] =
        {.key = true, .value = true, .ts = TS_ALWAYS, .flags = CRAQ_F_AGAIN, .route = ROUTE_KEY},
    [CRAQ_ITEM] =
        {.key = true, .value = true, .ts = TS_ALWAYS, .flags = CRAQ_F_CLEAN, .route = ROUTE_KEY},
};

enum engine_route craq_route(const struct msg *msg)
{
    return (enum engine_route)shapes[msg->kind].route;
}

static const char *ts_invalid(const struct shape *shape, const struct msg *m)
{
    if (shape->ts == TS_NONE) {
        return m->ts == 0 ? NULL : "a timestamp where none belongs";
    }
    if (m->ts == 0) {
        return shape->ts == TS_OR_ZERO ? NULL : "no timestamp";
    }
    if (craq_ts_epoch(m->ts) == 0 || (m->ts & CRAQ_NUMBER_MAX) == 0) {
        return "a timestamp that no head gives";
    }
    return craq_ts_epoch(m->ts) <= m->epoch ? NULL : "a timestamp of a later epoch";
}

static const char *value_invalid(const struct shape *shape, const struct msg *m)
{
    bool none = !shape->value || (m->kind == CRAQ_ANSWER && m->ts == 0);
    if (none) {
        return m->value.n == 0 && m->vflags == 0 ? NULL : "a value where none belongs";
    }
    if ((m->vflags & ~KEY_VALUE_FLAGS) != 0) {
        return "unknown value flags";
    }
    if ((m->vflags & KEY_TOMBSTONE) != 0 && (m->value.n != 0 || m->vflags != KEY_TOMBSTONE)) {
        return "a tombstone with a value";
    }
    if ((m->vflags & KEY_DEADLINE) != 0 && m->value.n < 8) {
        return "a value too short for its deadline";
    }
    return NULL;
}

static const char *slot_invalid(const struct shape *shape, const struct msg *m)
{
    bool slot = m->slot != 0;
    if (slot ? shape->slot == SLOT_NONE : shape->slot == SLOT_ALWAYS) {
        return slot ? "a slot where none belongs" : "no slot to answer to";
    }
    if (slot ? slot_ref_index(m->slot) == 0 || m->gen == 0 : m->gen != 0) {
        return "a slot that nobody has";
    }
    if (m->arg != 0 && (!shape->origin || !slot || m->arg >= NODES_MAX)) {
        return "an argument where none belongs";
    }
    return NULL;
}

const char *craq_msg_invalid(const struct msg *msg)
{
    if (msg->kind == 0 || msg->kind >= CRAQ_KIND_END) {
        return "unknown kind";
    }
    const struct shape *shape = &shapes[msg->kind];
    if (msg->epoch == 0) {
        return "from a sender without a view";
    }
    if (!shape->key && msg->key.n != 0) {
        return "a key where none belongs";
    }
    if ((msg->flags & ~shape->flags) != 0) {
        return "flags that this kind does not have";
    }
    if (msg->kind == CRAQ_FORWARD && msg->ts != 0 && (msg->flags & CRAQ_F_RMW) == 0) {
        return "a condition on a plain write";
    }
    if (msg->kind == CRAQ_ANSWER && msg->ts != 0 && (msg->flags & CRAQ_F_BUSY) != 0) {
        return "a busy answer with a value";
    }
    const char *why = slot_invalid(shape, msg);
    if (why == NULL) {
        why = ts_invalid(shape, msg);
    }
    return why != NULL ? why : value_invalid(shape, msg);
}
