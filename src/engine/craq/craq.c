#include "engine/craq/craq.h"

#include "engine/craq/machine.h"

const char *const craq_state_names[CRAQ_STATES] = {
    [CRAQ_CLEAN] = "Clean",
    [CRAQ_DIRTY] = "Dirty",
};

const char *const craq_rule_names[CRAQ_RULES] = {
    [CRAQ_RULE_EPOCH] = "epoch",
    [CRAQ_RULE_END] = "end",
    [CRAQ_RULE_ACK_TS] = "ack_ts",
    [CRAQ_RULE_NOT_DECLARED] = "not_declared",
    [CRAQ_RULE_REPAIR] = "repair",
    [CRAQ_RULE_QUERY_CLEAN] = "query_clean",
    [CRAQ_RULE_READ_CLEAN] = "read_clean",
    [CRAQ_RULE_CONDITION] = "condition",
    [CRAQ_RULE_HIGHER] = "higher",
    [CRAQ_RULE_TS_EPOCH] = "ts_epoch",
    [CRAQ_RULE_LATE_WRITE] = "late_write",
    [CRAQ_RULE_LATE_HEAD] = "late_head",
    [CRAQ_RULE_REPAIR_TS] = "repair_ts",
    [CRAQ_RULE_UNKNOWN] = "unknown",
    [CRAQ_RULE_CHUNK_HIGHER] = "chunk_higher",
    [CRAQ_RULE_CHUNK_STATE] = "chunk_state",
    [CRAQ_RULE_AGAIN] = "again",
};

static void craq_item(const struct key_meta *meta, struct msg *msg_out)
{
    msg_out->kind = CRAQ_ITEM;
    msg_out->flags = meta->state == CRAQ_CLEAN ? CRAQ_F_CLEAN : 0;
}

/* I1 to I3 of docs/protocols/craq.md, as far as one key shows them. A build with mutants has faults
 * on purpose. */
static void craq_check(const struct key_meta *meta, const void *ext)
{
    (void)ext;
#ifndef HK_MUTANTS
    bool clean = meta->state == CRAQ_CLEAN;
    HK_ASSERT(meta->state < CRAQ_STATES);
    HK_ASSERT(((meta->flags & KEY_READABLE) != 0) == clean);
    HK_ASSERT(meta->owner == 0);
    HK_ASSERT(meta->ts != 0 || (clean && (meta->flags & KEY_TOMBSTONE) != 0));
    HK_ASSERT(!clean || (meta->flags & (KEY_SEEN | KEY_WAITERS)) == 0);
#else
    (void)meta;
#endif
}

const struct engine_ops craq_ops = {
    .name = "craq",
    .ext_bytes = 0,
    .port_needs = PORT_ORDERED,
    .traits = ENGINE_BLIND_ANYTIME | ENGINE_TOMBSTONES,
    .worker_bytes = 0,
    .blank = {.state = CRAQ_CLEAN, .flags = KEY_READABLE | KEY_TOMBSTONE},
    .route = craq_route,
    .key = craq_key,
    .flow = craq_flow,
    .msg_invalid = craq_msg_invalid,
    .check = craq_check,
    .item = craq_item,
};
