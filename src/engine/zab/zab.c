#include "engine/zab/zab.h"

#include "engine/zab/machine.h"

const char *const zab_rule_names[ZAB_RULES] = {
    [ZAB_RULE_EPOCH] = "epoch",           [ZAB_RULE_MAJORITY] = "majority",
    [ZAB_RULE_COMMITTED] = "committed",   [ZAB_RULE_ALL_STATES] = "all_states",
    [ZAB_RULE_LONGEST] = "longest",       [ZAB_RULE_LEVEL] = "level",
    [ZAB_RULE_WITNESSES] = "witnesses",   [ZAB_RULE_LOST_READY] = "lost_ready",
    [ZAB_RULE_CONDITION] = "condition",   [ZAB_RULE_ROUND] = "round",
    [ZAB_RULE_TRIM_ALL] = "trim_all",     [ZAB_RULE_BASE] = "base",
    [ZAB_RULE_TOMBSTONES] = "tombstones", [ZAB_RULE_ITEM_NEWER] = "item_newer",
    [ZAB_RULE_READY] = "ready",           [ZAB_RULE_ROUNDS] = "rounds",
};

static void zab_item(const struct key_meta *meta, struct msg *msg_out)
{
    (void)meta;
    msg_out->kind = ZAB_ITEM;
    msg_out->flags = 0;
}

/* A key is readable always, and its ts is an entry's. */
static void zab_check(const struct key_meta *meta, const void *ext)
{
    (void)ext;
    HK_ASSERT((meta->flags & KEY_READABLE) != 0 && meta->owner == 0);
    HK_ASSERT((meta->flags & (KEY_ENGINE_0 | KEY_ENGINE_1 | KEY_ENGINE_2 | KEY_ENGINE_3)) == 0);
    HK_ASSERT(meta->ts == 0 || stamp_cid(meta->ts) == ZAB_CID);
    HK_ASSERT(meta->ts != 0 || (meta->flags & KEY_TOMBSTONE) != 0);
}

const struct engine_ops zab_ops = {
    .name = "zab",
    .ext_bytes = 0,
    .port_needs = PORT_ORDERED,
    .traits = ENGINE_READS_FOLLOW | ENGINE_WORKER_FLOW,
    .worker_bytes = sizeof(struct zab_worker),
    .blank = {.flags = KEY_READABLE | KEY_TOMBSTONE},
    .route = zab_route,
    .key = zab_key,
    .flow = zab_flow,
    .msg_invalid = zab_msg_invalid,
    .check = zab_check,
    .item = zab_item,
    .ready = zab_ready,
};
