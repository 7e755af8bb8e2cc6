#include "engine/homes/internal.h"

#include <stddef.h>

const char *const homes_kind_names[HOMES_KINDS] = {
    [HOMES_STATE] = "STATE", [HOMES_FETCH] = "FETCH",   [HOMES_RUN] = "RUN",
    [HOMES_MAP] = "MAP",     [HOMES_HAVE] = "HAVE",     [HOMES_GO] = "GO",
    [HOMES_MOVED] = "MOVED", [HOMES_PURGED] = "PURGED", [HOMES_WISH] = "WISH",
    [HOMES_FREE] = "FREE",   [HOMES_LOSE] = "LOSE",
};

const char *const homes_rule_names[HOMES_RULES] = {
    [HOMES_RULE_STATES] = "slots_states", [HOMES_RULE_NEWEST] = "slots_newest",
    [HOMES_RULE_LOST] = "slots_lost",     [HOMES_RULE_PROCESS] = "slots_process",
    [HOMES_RULE_WHOLE] = "slots_whole",   [HOMES_RULE_ONE] = "slots_one",
    [HOMES_RULE_READY] = "slots_ready",   [HOMES_RULE_NAMED] = "slots_named",
    [HOMES_RULE_PURGED] = "slots_purged", [HOMES_RULE_MOVED] = "slots_moved",
    [HOMES_RULE_HOT] = "slots_hot",       [HOMES_RULE_FREE] = "slots_free",
    [HOMES_RULE_ROLE] = "slots_role",     [HOMES_RULE_GIVEN] = "slots_given",
    [HOMES_RULE_KEPT] = "slots_kept",
};

const char *const homes_phase_names[HOMES_PHASES] = {
    [HOMES_OUT] = "Out",           [HOMES_FOLLOW] = "Follow",     [HOMES_GATHER] = "Gather",
    [HOMES_FETCHING] = "Fetching", [HOMES_ANNOUNCE] = "Announce", [HOMES_WAIT] = "Wait",
    [HOMES_QUIET] = "Quiet",
};

/* What a kind carries. */
struct shape {
    bool run;
    bool none;     /* its version may be 0, "no map" */
    bool wish;     /* its version is 0, and it says something */
    bool slot;     /* its version is 0, and it says which slot */
    uint8_t flags; /* that may be set */
};

static const struct shape shapes[HOMES_KINDS] = {
    [HOMES_STATE] = {.none = true, .flags = HOMES_F_LEAVING | HOMES_F_COMPUTE},
    [HOMES_RUN] = {.run = true, .flags = HOMES_F_LAST},
    [HOMES_MAP] = {.run = true, .flags = HOMES_F_LAST | HOMES_F_NOBODY},
    [HOMES_WISH] = {.wish = true, .flags = HOMES_F_LEAVING | HOMES_F_EMPTY},
    [HOMES_LOSE] = {.slot = true},
};

/* Whether a home is one that a map may hold. */
static const char *home_invalid(uint32_t packed, bool whole)
{
    struct slot_home h = slot_home_unpack(packed);
    if (slot_home_pack(h) != packed || h.state > (whole ? HOME_GIVEN : HOME_EMPTYING)) {
        return "a slot in no state";
    }
    if (h.state == HOME_NONE) {
        bool nobody = whole && h.home == NODE_NONE && h.to == NODE_NONE;
        return nobody ? NULL : "a slot in no state";
    }
    if (h.home >= NODES_MAX) {
        return "a home that cannot be";
    }
    if (h.state == HOME_MOVING) {
        return h.to >= NODES_MAX || h.to == h.home ? "moves to nobody" : NULL;
    }
    return h.to != NODE_NONE ? "moves although it stays" : NULL;
}

static const char *run_invalid(const struct msg *m, bool whole)
{
    uint32_t first = homes_run_first(m->slot);
    uint32_t count = homes_run_count(m->slot);
    if (m->slot >> (2 * HOMES_RUN_BITS) != 0 || count > HASH_SLOTS - first) {
        return "slots out of range";
    }
    return home_invalid(m->gen, whole);
}

static const char *version_invalid(const struct shape *shape, const struct msg *m,
                                   enum homes_kind kind)
{
    uint32_t epoch = homes_version_epoch(m->ts);
    if (shape->wish || shape->slot) {
        return m->ts != 0 ? "a version where none belongs" : NULL;
    }
    if (epoch == 0 && !(shape->none && m->ts == 0)) {
        return "no version";
    }
    bool old = kind == HOMES_STATE || kind == HOMES_FETCH || kind == HOMES_RUN;
    if (old ? epoch >= m->epoch : epoch != m->epoch) {
        return "a map of an epoch that does not belong here";
    }
    return kind == HOMES_GO && m->ts != homes_version(m->epoch, 0) ? "begins in the midst" : NULL;
}

const char *homes_msg_invalid(const struct msg *m, const struct homes_config *config)
{
    uint8_t first_kind = config->first_kind;
    if (m->kind < first_kind || m->kind >= first_kind + HOMES_KINDS) {
        return "unknown kind";
    }
    enum homes_kind kind = (enum homes_kind)(m->kind - first_kind);
    const struct shape *shape = &shapes[kind];
    if (m->epoch == 0) {
        return "from a sender without a view";
    }
    if (m->key.n != 0 || m->value.n != 0 || m->vflags != 0 || m->arg != 0) {
        return "more than this kind carries";
    }
    if ((m->flags & ~shape->flags) != 0 || (shape->wish && m->flags == 0)) {
        return "flags that this kind does not have";
    }
    if ((m->flags & (HOMES_F_NOBODY | HOMES_F_LAST)) == HOMES_F_NOBODY) {
        return "says who takes slots before the map is complete";
    }
    if (shape->slot && (!config->whole || m->slot >= HASH_SLOTS || m->gen != 0)) {
        return "no such slot";
    }
    if (!shape->run && !shape->slot && (m->slot != 0 || m->gen != 0)) {
        return "a run where none belongs";
    }
    const char *why = version_invalid(shape, m, kind);
    return why == NULL && shape->run ? run_invalid(m, config->whole) : why;
}
