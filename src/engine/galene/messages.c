#include "engine/galene/messages.h"

#include <stddef.h>

#include "engine/galene/machine.h"

const char *const galene_kind_names[GALENE_KEY_END] = {
    [GALENE_INV] = "INV",     [GALENE_ACK] = "ACK",     [GALENE_UPD] = "UPD",
    [GALENE_ENTER] = "ENTER", [GALENE_LEAVE] = "LEAVE", [GALENE_REPORT] = "REPORT",
    [GALENE_DROP] = "DROP",   [GALENE_ITEM] = "ITEM",   [GALENE_QUERY] = "QUERY",
    [GALENE_NOPE] = "NOPE",
};

enum ts_shape { TS_NONE, TS_ALWAYS, TS_OR_ZERO };

/* What a kind carries. */
struct shape {
    bool key; /* routed to it; else to a slot */
    bool value;
    bool slot;
    bool generation;
    uint8_t ts;    /* enum ts_shape */
    uint8_t flags; /* that may be set */
};

static const struct shape shapes[GALENE_KEY_END] = {
    [GALENE_INV] =
        {.key = true, .slot = true, .generation = true, .ts = TS_ALWAYS, .flags = GALENE_F_RMW},
    [GALENE_ACK] = {.slot = true, .ts = TS_OR_ZERO, .flags = GALENE_F_HIGHER},
    [GALENE_UPD] = {.key = true, .value = true, .generation = true, .ts = TS_ALWAYS},
    [GALENE_ENTER] = {.key = true, .slot = true, .generation = true, .ts = TS_ALWAYS},
    [GALENE_LEAVE] = {.key = true, .slot = true, .generation = true},
    [GALENE_REPORT] = {.slot = true, .ts = TS_OR_ZERO},
    [GALENE_DROP] = {.key = true, .slot = true, .generation = true},
    [GALENE_ITEM] =
        {.key = true, .value = true, .slot = true, .ts = TS_ALWAYS, .flags = GALENE_F_LOST},
    [GALENE_QUERY] = {.key = true, .slot = true, .generation = true, .ts = TS_ALWAYS},
    [GALENE_NOPE] = {.slot = true, .ts = TS_OR_ZERO, .flags = GALENE_F_HIGHER | GALENE_F_ABSENT},
};

enum engine_route galene_route(const struct msg *msg)
{
    if (msg->kind >= GALENE_HOMES_FIRST) {
        return ROUTE_WORKER;
    }
    return shapes[msg->kind].key ? ROUTE_KEY : ROUTE_SLOT;
}

static const char *ts_invalid(const struct shape *shape, const struct msg *m)
{
    if (m->ts == 0) {
        bool wanted = shape->ts == TS_ALWAYS || (m->flags & GALENE_F_HIGHER) != 0;
        return wanted ? "no timestamp" : NULL;
    }
    if (shape->ts == TS_NONE) {
        return "a timestamp where none belongs";
    }
    if (stamp_version(m->ts) == 0 || stamp_version(m->ts) > GALENE_VERSION_MAX) {
        return "version out of range";
    }
    return stamp_cid(m->ts) == 0 ? "a c_id that nobody owns" : NULL;
}

static const char *value_invalid(const struct shape *shape, const struct msg *m)
{
    if (!shape->value || (m->flags & GALENE_F_LOST) != 0) {
        return m->value.n == 0 && m->vflags == 0 ? NULL : "a value where none belongs";
    }
    if ((m->vflags & ~KEY_VALUE_FLAGS) != 0) {
        return "unknown value flags";
    }
    if ((m->vflags & KEY_TOMBSTONE) != 0 && (m->value.n != 0 || m->vflags != KEY_TOMBSTONE)) {
        return "a tombstone with a value";
    }
    if ((m->vflags & KEY_TOMBSTONE) != 0 && m->kind == GALENE_ITEM) {
        return "a tombstone that moves";
    }
    if ((m->vflags & KEY_DEADLINE) != 0 && m->value.n < 8) {
        return "a value too short for its deadline";
    }
    return NULL;
}

const char *galene_msg_invalid(const struct msg *msg)
{
    if (msg->epoch == 0) {
        return "from a sender without a view";
    }
    if (msg->kind >= GALENE_HOMES_FIRST && msg->kind < GALENE_HOMES_END) {
        const struct homes_config homes = {.first_kind = GALENE_HOMES_FIRST};
        return homes_msg_invalid(msg, &homes);
    }
    if (msg->kind == 0 || msg->kind >= GALENE_KEY_END) {
        return "unknown kind";
    }
    const struct shape *shape = &shapes[msg->kind];
    if (!shape->key && msg->key.n != 0) {
        return "a key where none belongs";
    }
    if ((msg->flags & ~shape->flags) != 0) {
        return "flags that this kind does not have";
    }
    if (shape->slot ? slot_ref_index(msg->slot) == 0 || msg->gen == 0
                    : msg->slot != 0 || msg->gen != 0) {
        return shape->slot ? "no slot to answer to" : "a slot where none belongs";
    }
    if (shape->generation ? msg->arg == 0 || msg->arg > UINT16_MAX : msg->arg != 0) {
        return shape->generation ? "no generation" : "an argument where none belongs";
    }
    const char *why = ts_invalid(shape, msg);
    return why != NULL ? why : value_invalid(shape, msg);
}
