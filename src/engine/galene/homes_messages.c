#include "engine/galene/homes_internal.h"

#include <stddef.h>

#define KIND(kind) (GALENE_HOMES_##kind - GALENE_HOMES_FIRST)

const char *const galene_homes_kind_names[GALENE_HOMES_END - GALENE_HOMES_FIRST] = {
    [KIND(STATE)] = "STATE", [KIND(FETCH)] = "FETCH",   [KIND(RUN)] = "RUN",
    [KIND(MAP)] = "MAP",     [KIND(HAVE)] = "HAVE",     [KIND(GO)] = "GO",
    [KIND(MOVED)] = "MOVED", [KIND(PURGED)] = "PURGED", [KIND(WISH)] = "WISH",
    [KIND(FREE)] = "FREE",
};

const char *const galene_homes_rule_names[GALENE_HOMES_RULES] = {
    [GALENE_HOMES_RULE_STATES] = "slots_states", [GALENE_HOMES_RULE_NEWEST] = "slots_newest",
    [GALENE_HOMES_RULE_LOST] = "slots_lost",     [GALENE_HOMES_RULE_PROCESS] = "slots_process",
    [GALENE_HOMES_RULE_WHOLE] = "slots_whole",   [GALENE_HOMES_RULE_ONE] = "slots_one",
    [GALENE_HOMES_RULE_READY] = "slots_ready",   [GALENE_HOMES_RULE_NAMED] = "slots_named",
    [GALENE_HOMES_RULE_PURGED] = "slots_purged", [GALENE_HOMES_RULE_MOVED] = "slots_moved",
    [GALENE_HOMES_RULE_HOT] = "slots_hot",       [GALENE_HOMES_RULE_FREE] = "slots_free",
};

const char *const galene_homes_phase_names[GALENE_HOMES_PHASES] = {
    [GALENE_HOMES_OUT] = "Out",           [GALENE_HOMES_FOLLOW] = "Follow",
    [GALENE_HOMES_GATHER] = "Gather",     [GALENE_HOMES_FETCHING] = "Fetching",
    [GALENE_HOMES_ANNOUNCE] = "Announce", [GALENE_HOMES_WAIT] = "Wait",
    [GALENE_HOMES_QUIET] = "Quiet",
};

/* What a kind carries. */
struct shape {
    bool run;
    bool none;     /* its version may be 0, "no map" */
    bool wish;     /* its version is 0, and it says something */
    uint8_t flags; /* that may be set */
};

static const struct shape shapes[GALENE_HOMES_END - GALENE_HOMES_FIRST] = {
    [KIND(STATE)] = {.none = true, .flags = GALENE_HOMES_F_LEAVING},
    [KIND(RUN)] = {.run = true, .flags = GALENE_HOMES_F_LAST},
    [KIND(MAP)] = {.run = true, .flags = GALENE_HOMES_F_LAST},
    [KIND(WISH)] = {.wish = true, .flags = GALENE_HOMES_F_LEAVING | GALENE_HOMES_F_EMPTY},
};

/* Whether a home is one that a map may hold. */
static const char *home_invalid(uint32_t packed)
{
    struct slot_home h = slot_home_unpack(packed);
    if (slot_home_pack(h) != packed || h.state < HOME_STABLE || h.state > HOME_EMPTYING) {
        return "a slot in no state";
    }
    if (h.home >= NODES_MAX) {
        return "a home that cannot be";
    }
    if (h.state == HOME_MOVING) {
        return h.to >= NODES_MAX || h.to == h.home ? "moves to nobody" : NULL;
    }
    return h.to != NODE_NONE ? "moves although it stays" : NULL;
}

static const char *run_invalid(const struct msg *m)
{
    uint32_t first = homes_run_first(m->slot);
    uint32_t count = homes_run_count(m->slot);
    if (m->slot >> (2 * HOMES_RUN_BITS) != 0 || count > HASH_SLOTS - first) {
        return "slots out of range";
    }
    return home_invalid(m->gen);
}

static const char *version_invalid(const struct shape *shape, const struct msg *m)
{
    uint32_t epoch = homes_version_epoch(m->ts);
    if (shape->wish) {
        return m->ts != 0 ? "a version where none belongs" : NULL;
    }
    if (epoch == 0 && !(shape->none && m->ts == 0)) {
        return "no version";
    }
    bool old = m->kind == GALENE_HOMES_STATE || m->kind == GALENE_HOMES_FETCH ||
               m->kind == GALENE_HOMES_RUN;
    if (old ? epoch >= m->epoch : epoch != m->epoch) {
        return "a map of an epoch that does not belong here";
    }
    return m->kind == GALENE_HOMES_GO && m->ts != homes_version(m->epoch, 0) ? "begins in the midst"
                                                                             : NULL;
}

const char *galene_homes_invalid(const struct msg *m)
{
    if (m->kind < GALENE_HOMES_FIRST || m->kind >= GALENE_HOMES_END) {
        return "unknown kind";
    }
    const struct shape *shape = &shapes[m->kind - GALENE_HOMES_FIRST];
    if (m->epoch == 0) {
        return "from a sender without a view";
    }
    if (m->key.n != 0 || m->value.n != 0 || m->vflags != 0 || m->arg != 0) {
        return "more than this kind carries";
    }
    if ((m->flags & ~shape->flags) != 0 || (shape->wish && m->flags == 0)) {
        return "flags that this kind does not have";
    }
    if (!shape->run && (m->slot != 0 || m->gen != 0)) {
        return "a run where none belongs";
    }
    const char *why = version_invalid(shape, m);
    return why == NULL && shape->run ? run_invalid(m) : why;
}
