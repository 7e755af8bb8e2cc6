#include "engine/galene/galene.h"

#include "engine/galene/machine.h"

const char *const galene_state_names[GALENE_STATES] = {
    [GALENE_NONE] = "none",         [GALENE_HOME] = "Home",       [GALENE_ENTERING] = "Entering",
    [GALENE_VALID] = "Valid",       [GALENE_INVALID] = "Invalid", [GALENE_WRITE] = "Write",
    [GALENE_DROPPING] = "Dropping", [GALENE_MOVING] = "Moving",   [GALENE_LOST] = "Lost",
};

const char *const galene_rule_names[GALENE_RULES] = {
    [GALENE_RULE_ACK_ALWAYS] = "ack_always",
    [GALENE_RULE_LOSER_DONE] = "loser_done",
    [GALENE_RULE_OVERTAKEN] = "overtaken",
    [GALENE_RULE_ALL_ACKS] = "all_acks",
    [GALENE_RULE_HIGHER] = "higher",
    [GALENE_RULE_READ_VALID] = "read_valid",
    [GALENE_RULE_RMW_STEP] = "rmw_step",
    [GALENE_RULE_NACK] = "nack",
    [GALENE_RULE_NAMED] = "named",
    [GALENE_RULE_NEWCOMERS] = "newcomers",
    [GALENE_RULE_UPD_TS] = "upd_ts",
    [GALENE_RULE_UPD_GENERATION] = "upd_generation",
    [GALENE_RULE_INV_GENERATION] = "inv_generation",
    [GALENE_RULE_CID] = "cid",
    [GALENE_RULE_ENTER_ALL] = "enter_all",
    [GALENE_RULE_REPORT_IDLE] = "report_idle",
    [GALENE_RULE_LEAVING] = "leaving",
    [GALENE_RULE_REPORTED] = "reported",
    [GALENE_RULE_DROPPED_ALL] = "dropped_all",
    [GALENE_RULE_REENTER] = "reenter",
    [GALENE_RULE_KEEPER] = "keeper",
    [GALENE_RULE_MOVE_STALL] = "move_stall",
    [GALENE_RULE_MOVE_DEAD] = "move_dead",
    [GALENE_RULE_RESCUE] = "rescue",
    [GALENE_RULE_RESCUE_ALL] = "rescue_all",
    [GALENE_RULE_RESCUE_VALID] = "rescue_valid",
};

/* Joins copy nothing. An item that was packed all the same has no slot, which makes it invalid. */
static void galene_item(const struct key_meta *meta, struct msg *msg_out)
{
    (void)meta;
    msg_out->kind = GALENE_ITEM;
}

static bool galene_ready(const void *worker)
{
    return homes_ready(&((const struct galene_worker *)worker)->homes);
}

static bool galene_quiet(const void *worker)
{
    return homes_quiet(&((const struct galene_worker *)worker)->homes);
}

/* What one key shows of docs/protocols/galene.md. A build with mutants has faults on purpose. */
static void galene_check(const struct key_meta *meta, const void *ext)
{
    (void)ext;
#ifndef HK_MUTANTS
    bool readable = meta->state == GALENE_HOME || meta->state == GALENE_VALID;
    bool owned = meta->state == GALENE_ENTERING || meta->state == GALENE_WRITE ||
                 meta->state == GALENE_DROPPING || meta->state == GALENE_MOVING;
    bool plain = meta->state == GALENE_HOME || meta->state == GALENE_MOVING;
    HK_ASSERT(meta->state > GALENE_NONE && meta->state < GALENE_STATES);
    HK_ASSERT(((meta->flags & KEY_READABLE) != 0) == readable);
    HK_ASSERT(!owned || meta->owner != 0);
    HK_ASSERT(meta->state != GALENE_HOME || meta->owner == 0);
    HK_ASSERT((meta->aux == 0) == plain || (meta->aux == 0 && meta->state == GALENE_LOST));
    HK_ASSERT(meta->ts != 0);
    HK_ASSERT(!plain || (meta->flags & (KEY_TOMBSTONE | KEY_LEAVING | KEY_KEEPER)) == 0);
    HK_ASSERT((meta->flags & KEY_RMW) == 0 || meta->owner != 0);
#else
    (void)meta;
#endif
}

const struct engine_ops galene_ops = {
    .name = "galene",
    .ext_bytes = 0,
    .port_needs = PORT_ORDERED,
    .traits = ENGINE_HOMED | ENGINE_WORKER_FLOW | ENGINE_BLIND_ANYTIME,
    .worker_bytes = sizeof(struct galene_worker),
    .blank = {.state = GALENE_NONE},
    .route = galene_route,
    .key = galene_key,
    .flow = galene_flow,
    .msg_invalid = galene_msg_invalid,
    .check = galene_check,
    .item = galene_item,
    .ready = galene_ready,
    .quiet = galene_quiet,
};
