#include "engine/hermes/messages.h"

#include <stddef.h>

const char *const hermes_kind_names[HERMES_KIND_END] = {
    [HERMES_INV] = "INV",
    [HERMES_ACK] = "ACK",
    [HERMES_ACK_ALL] = "ACK_ALL",
    [HERMES_VAL] = "VAL",
    [HERMES_CHECK] = "CHECK",
    [HERMES_CHECK_OK] = "CHECK_OK",
    [HERMES_ITEM] = "ITEM",
    [HERMES_FORGET_ASK] = "FORGET_ASK",
    [HERMES_FORGET_REPORT] = "FORGET_REPORT",
    [HERMES_FORGET] = "FORGET",
};

/* What a kind carries. */
struct shape {
    bool key;
    bool value;
    bool ts;
    enum { SLOT_NONE, SLOT_ALWAYS, SLOT_UNLESS_ANSWER } slot;
    uint8_t flags; /* that may be set */
    uint8_t route; /* enum engine_route */
};

static const struct shape shapes[HERMES_KIND_END] = {
    [HERMES_INV] = {.key = true,
                    .value = true,
                    .ts = true,
                    .slot = SLOT_UNLESS_ANSWER,
                    .flags = HERMES_F_RMW | HERMES_F_FIRST | HERMES_F_ANSWER | HERMES_F_VALID |
                             HERMES_F_ACK_ALL,
                    .route = ROUTE_KEY},
    [HERMES_ACK] = {.ts = true, .slot = SLOT_ALWAYS, .route = ROUTE_SLOT},
    [HERMES_ACK_ALL] = {.key = true, .ts = true, .route = ROUTE_KEY},
    [HERMES_VAL] = {.key = true, .ts = true, .route = ROUTE_KEY},
    [HERMES_CHECK] = {.slot = SLOT_ALWAYS, .route = ROUTE_ANY},
    [HERMES_CHECK_OK] = {.slot = SLOT_ALWAYS, .route = ROUTE_SLOT},
    [HERMES_ITEM] = {.key = true,
                     .value = true,
                     .ts = true,
                     .flags = HERMES_F_RMW | HERMES_F_FIRST | HERMES_F_VALID | HERMES_F_REPORTED,
                     .route = ROUTE_KEY},
    [HERMES_FORGET_ASK] = {.key = true, .ts = true, .slot = SLOT_ALWAYS, .route = ROUTE_KEY},
    [HERMES_FORGET_REPORT] = {.ts = true, .slot = SLOT_ALWAYS, .route = ROUTE_SLOT},
    [HERMES_FORGET] = {.key = true, .ts = true, .route = ROUTE_KEY},
};

enum engine_route hermes_route(const struct msg *msg)
{
    return (enum engine_route)shapes[msg->kind].route;
}

static const char *ts_invalid(const struct shape *shape, uint64_t ts)
{
    if (!shape->ts) {
        return ts == 0 ? NULL : "a timestamp where none belongs";
    }
    if (stamp_version(ts) == 0 || stamp_version(ts) > HERMES_VERSION_MAX) {
        return "version out of range";
    }
    return stamp_cid(ts) == 0 ? "a c_id that nobody owns" : NULL;
}

static const char *value_invalid(const struct shape *shape, const struct msg *m)
{
    if (!shape->value) {
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

static const char *flags_invalid(const struct shape *shape, const struct msg *m)
{
    bool answer = (m->flags & HERMES_F_ANSWER) != 0;
    if ((m->flags & ~shape->flags) != 0) {
        return "flags that this kind does not have";
    }
    if (m->kind == HERMES_INV && (m->flags & HERMES_F_VALID) != 0 && !answer) {
        return "a Valid INV that is no answer";
    }
    if (answer && (m->flags & HERMES_F_ACK_ALL) != 0) {
        return "an answer that asks for acknowledgements";
    }
    if ((m->flags & HERMES_F_REPORTED) != 0 &&
        ((m->flags & HERMES_F_VALID) == 0 || (m->vflags & KEY_TOMBSTONE) == 0)) {
        return "a reported item that is no Valid tombstone";
    }
    bool wants_slot = shape->slot == SLOT_ALWAYS || (shape->slot == SLOT_UNLESS_ANSWER && !answer);
    if (wants_slot != (slot_ref_index(m->slot) != 0) || (!wants_slot && m->slot != 0)) {
        return wants_slot ? "no slot to answer to" : "a slot where none belongs";
    }
    return NULL;
}

/* Whether all of what follows would find nothing wrong with a message that is neither an answer nor
 * an item, and whose value, if it has one, is plain: nearly all are. */
static bool plainly_valid(const struct shape *shape, const struct msg *m)
{
    uint8_t flags = shape->flags & (HERMES_F_RMW | HERMES_F_FIRST | HERMES_F_ACK_ALL);
    uint64_t version = stamp_version(m->ts);
    return shape->ts && m->epoch != 0 && m->arg == 0 && (m->flags & ~flags) == 0 &&
           (shape->key || m->key.n == 0) && (shape->value || m->value.n == 0) && m->vflags == 0 &&
           version - 1 < HERMES_VERSION_MAX && stamp_cid(m->ts) != 0 &&
           (shape->slot != SLOT_NONE ? slot_ref_index(m->slot) != 0 : m->slot == 0);
}

const char *hermes_msg_invalid(const struct msg *msg)
{
    if (msg->kind == 0 || msg->kind >= HERMES_KIND_END) {
        return "unknown kind";
    }
    const struct shape *shape = &shapes[msg->kind];
    if (plainly_valid(shape, msg)) {
        return NULL;
    }
    if (msg->epoch == 0) {
        return "from a sender without a view";
    }
    if (!shape->key && msg->key.n != 0) {
        return "a key where none belongs";
    }
    if (msg->arg != 0) {
        return "an argument where none belongs";
    }
    const char *why = flags_invalid(shape, msg);
    if (why == NULL) {
        why = ts_invalid(shape, msg->ts);
    }
    return why != NULL ? why : value_invalid(shape, msg);
}
