/* Lotus as the node sees it, and names. */
#include "engine/lotus/lotus.h"

#include "base/assert.h"
#include "engine/lotus/map.h"

const char *const lotus_rule_names[LOTUS_RULES] = {
    [LOTUS_RULE_CLEANER] = "cleaner",
    [LOTUS_RULE_AGAIN] = "again",
    [LOTUS_RULE_GAP_INSERT] = "gap_insert",
    [LOTUS_RULE_GAP_OWN] = "gap_own",
    [LOTUS_RULE_GAP_STEP] = "gap_step",
    [LOTUS_RULE_GAP_SCAN] = "gap_scan",
    [LOTUS_RULE_ROW_SCAN] = "row_scan",
    [LOTUS_RULE_READ_LOCK] = "read_lock",
    [LOTUS_RULE_PREPARE_READ] = "prepare_read",
    [LOTUS_RULE_AGE_KEPT] = "age_kept",
    [LOTUS_RULE_ABORT_ALL] = "abort_all",
    [LOTUS_RULE_ALL_PREPARED] = "all_prepared",
    [LOTUS_RULE_FRESH] = "fresh",
    [LOTUS_RULE_NO_TIMEOUT] = "no_timeout",
    [LOTUS_RULE_OUTCOMES] = "outcomes",
    [LOTUS_RULE_EPOCH] = "epoch",
    [LOTUS_RULE_DOUBT_ALL] = "doubt_all",
    [LOTUS_RULE_DOUBT] = "doubt",
    [LOTUS_RULE_PREPARED] = "prepared",
    [LOTUS_RULE_WRITE_FIRST] = "write_first",
    [LOTUS_RULE_GONE] = "gone",
    [LOTUS_RULE_GOES_ON] = "goes_on",
    [LOTUS_RULE_WOUND_TOLD] = "wound_told",
    [LOTUS_RULE_SCAN_MAP] = "scan_map",
    [LOTUS_RULE_UNSURE] = "unsure",
    [LOTUS_RULE_PROCESS] = "process",
    [LOTUS_RULE_MOVE_ASKED] = "move_asked",
    [LOTUS_RULE_MOVE_TRIES] = "move_tries",
    [LOTUS_RULE_MOVE_GAP] = "move_gap",
    [LOTUS_RULE_MOVE_KEPT] = "move_kept",
    [LOTUS_RULE_MOVE_LEFT] = "move_left",
    [LOTUS_RULE_MOVE_BACK] = "move_back",
    [LOTUS_RULE_FAR_STORED] = "far_stored",
    [LOTUS_RULE_FAR_LOST] = "far_lost",
    [LOTUS_RULE_FAR_MOVED] = "far_moved",
};

/* A try is its coordinator's worker's, and is spoken to by that worker's number, a cell by that of
 * its id; the map is worker 0's. */
static enum engine_route lotus_route(const struct msg *msg)
{
    bool any = msg->kind < LOTUS_MSG_MAP || msg->kind >= LOTUS_MSG_STORE;
    return any ? ROUTE_ANY : ROUTE_WORKER;
}

static void lotus_check_key(const struct key_meta *meta, const void *ext)
{
    (void)ext;
    /* Only transactions read, under locks. */
    HK_ASSERT((meta->flags & KEY_READABLE) == 0);
}

const struct engine_ops lotus_ops = {
    .name = "lotus",
    .port_needs = PORT_ORDERED,
    .traits = ENGINE_TABLES | ENGINE_WORKER_FLOW,
    .worker_bytes = sizeof(struct lotus_worker),
    .blank = {.flags = 0},
    .route = lotus_route,
    .flow = lotus_map_flow,
    .msg_invalid = lotus_msg_invalid,
    .check = lotus_check_key,
    .ready = lotus_map_ready,
};
