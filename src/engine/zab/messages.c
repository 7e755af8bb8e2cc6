#include "engine/zab/messages.h"

#include <stddef.h>

#include "base/nodeset.h"

const char *const zab_kind_names[ZAB_KIND_END] = {
    [ZAB_FORWARD] = "FORWARD", [ZAB_PROPOSE] = "PROPOSE", [ZAB_ACK] = "ACK",
    [ZAB_COMMIT] = "COMMIT",   [ZAB_REFUSED] = "REFUSED", [ZAB_STATE] = "STATE",
    [ZAB_FETCH] = "FETCH",     [ZAB_START] = "START",     [ZAB_SYNCED] = "SYNCED",
    [ZAB_ITEM] = "ITEM",
};

/* What a kind carries. */
struct shape {
    bool value; /* and a key */
    bool entry; /* ts numbers an entry, which exists */
    bool stamp; /* ts is a stored key's */
    bool slot;
    bool arg;
    bool lag;      /* slot counts entries, gen is 0 */
    bool level;    /* gen is an epoch, slot is 0 */
    bool origin;   /* flags are a node id */
    uint8_t flags; /* that may be set */
    uint8_t route; /* enum engine_route */
};

static const struct shape shapes[ZAB_KIND_END] = {
    [ZAB_FORWARD] =
        {.value = true, .slot = true, .arg = true, .flags = ZAB_F_RMW, .route = ROUTE_WORKER},
    [ZAB_PROPOSE] =
        {.value = true, .entry = true, .slot = true, .origin = true, .route = ROUTE_WORKER},
    [ZAB_ACK] = {.arg = true, .route = ROUTE_WORKER},
    [ZAB_COMMIT] = {.lag = true, .route = ROUTE_WORKER},
    [ZAB_REFUSED] = {.slot = true, .flags = ZAB_F_ROUND, .route = ROUTE_SLOT},
    [ZAB_STATE] = {.arg = true, .level = true, .flags = ZAB_F_FRESH, .route = ROUTE_WORKER},
    [ZAB_FETCH] = {.entry = true, .arg = true, .route = ROUTE_WORKER},
    [ZAB_START] = {.route = ROUTE_WORKER},
    [ZAB_SYNCED] = {.route = ROUTE_WORKER},
    [ZAB_ITEM] = {.value = true, .stamp = true, .route = ROUTE_KEY},
};

enum engine_route zab_route(const struct msg *msg)
{
    return (enum engine_route)shapes[msg->kind].route;
}

static const char *ts_invalid(const struct shape *shape, const struct msg *m)
{
    uint64_t entry = shape->stamp ? stamp_version(m->ts) : m->ts;
    if (entry > ZAB_ENTRY_MAX || m->arg > ZAB_ENTRY_MAX) {
        return "an entry out of range";
    }
    if ((shape->entry || shape->stamp) && entry == 0) {
        return "no entry";
    }
    if (shape->stamp && stamp_cid(m->ts) != ZAB_CID) {
        return "a c_id that this protocol does not use";
    }
    if (!shape->arg && m->arg != 0) {
        return "an argument where none belongs";
    }
    if (m->kind == ZAB_FETCH && m->arg < m->ts) {
        return "asks for entries that end before they begin";
    }
    return (m->kind == ZAB_ACK || m->kind == ZAB_STATE) && m->arg > m->ts ? "took more than it has"
                                                                          : NULL;
}

static const char *slot_invalid(const struct shape *shape, const struct msg *m)
{
    if (shape->slot) {
        return slot_ref_index(m->slot) == 0 || slot_ref_worker(m->slot) >= ZAB_WORKERS_MAX
                   ? "no slot to answer to"
                   : NULL;
    }
    if (shape->lag) {
        return m->gen != 0 || m->slot > m->ts ? "needs entries that never were" : NULL;
    }
    return m->slot != 0 || (m->gen != 0 && !shape->level) ? "a slot where none belongs" : NULL;
}

static const char *flags_invalid(const struct shape *shape, const struct msg *m)
{
    if (shape->origin) {
        return m->flags >= NODES_MAX ? "from a node that cannot be" : NULL;
    }
    if ((m->flags & ~shape->flags) != 0) {
        return "flags that this kind does not have";
    }
    if (m->kind == ZAB_FORWARD && (m->flags & ZAB_F_RMW) == 0 && m->ts != 0) {
        return "a plain write with a condition";
    }
    return (m->flags & ZAB_F_FRESH) != 0 && (m->ts != 0 || m->gen != 0)
               ? "a fresh member with a past"
               : NULL;
}

/* What msg_decode refuses as well; items of a chunk do not pass through it. */
static const char *value_invalid(const struct shape *shape, const struct msg *m)
{
    if (!shape->value) {
        return m->key.n != 0 || m->value.n != 0 || m->vflags != 0 ? "a value where none belongs"
                                                                  : NULL;
    }
    if ((m->vflags & ~KEY_VALUE_FLAGS) != 0) {
        return "unknown value flags";
    }
    if ((m->vflags & KEY_TOMBSTONE) != 0 && (m->value.n != 0 || m->vflags != KEY_TOMBSTONE)) {
        return "a tombstone with a value";
    }
    return (m->vflags & KEY_DEADLINE) != 0 && m->value.n < 8 ? "a value too short for its deadline"
                                                             : NULL;
}

const char *zab_msg_invalid(const struct msg *msg)
{
    if (msg->kind == 0 || msg->kind >= ZAB_KIND_END) {
        return "unknown kind";
    }
    const struct shape *shape = &shapes[msg->kind];
    if (msg->epoch == 0) {
        return "from a sender without a view";
    }
    const char *why = flags_invalid(shape, msg);
    if (why == NULL) {
        why = ts_invalid(shape, msg);
    }
    if (why == NULL) {
        why = slot_invalid(shape, msg);
    }
    return why != NULL ? why : value_invalid(shape, msg);
}
