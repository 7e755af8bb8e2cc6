#include "engine/hermes/hermes.h"

#include "engine/hermes/machine.h"

const char *const hermes_state_names[HERMES_STATES] = {
    [HERMES_VALID] = "Valid", [HERMES_INVALID] = "Invalid", [HERMES_WRITE] = "Write",
    [HERMES_TRANS] = "Trans", [HERMES_REPLAY] = "Replay",
};

const char *const hermes_rule_names[HERMES_RULES] = {
    [HERMES_RULE_EPOCH] = "epoch",
    [HERMES_RULE_VAL_ANY_EPOCH] = "val_any_epoch",
    [HERMES_RULE_ACK_SAME] = "ack_same",
    [HERMES_RULE_ACK_TS] = "ack_ts",
    [HERMES_RULE_ACK_SET] = "ack_set",
    [HERMES_RULE_ACK_RESET] = "ack_reset",
    [HERMES_RULE_NO_STALE] = "no_stale",
    [HERMES_RULE_CID_TRIGGER] = "cid_trigger",
    [HERMES_RULE_LOST_VALID] = "lost_valid",
    [HERMES_RULE_NO_OWN_ACK] = "no_own_ack",
    [HERMES_RULE_O3_WRITES] = "o3_writes",
    [HERMES_RULE_O3_EPOCH] = "o3_epoch",
    [HERMES_RULE_CID] = "cid",
    [HERMES_RULE_CHUNK_HIGHER] = "chunk_higher",
    [HERMES_RULE_CHUNK_STATE] = "chunk_state",
    [HERMES_RULE_ALL_ACKS] = "all_acks",
    [HERMES_RULE_ANSWER_VALID] = "answer_valid",
    [HERMES_RULE_FIRST] = "first",
    [HERMES_RULE_AGREED_FORGET] = "agreed_forget",
    [HERMES_RULE_SHADOW_FORGET] = "shadow_forget",
    [HERMES_RULE_STEP] = "step",
    [HERMES_RULE_READ_VALID] = "read_valid",
    [HERMES_RULE_VAL_TS] = "val_ts",
    [HERMES_RULE_REPLAY] = "replay",
    [HERMES_RULE_TRANS_REPLAY] = "trans_replay",
    [HERMES_RULE_WRITE_VAL] = "write_val",
    [HERMES_RULE_CHUNK_REPORTED] = "chunk_reported",
    [HERMES_RULE_VAL_MEMBER] = "val_member",
    [HERMES_RULE_CHECK] = "check",
};

void hermes_set_state(struct key_meta *meta, const struct hermes_config *config,
                      enum hermes_state next)
{
    bool allowed = (hermes_state_table[meta->state].next >> next & 1u) != 0;
    /* A rule that is off may make other changes: that is the fault it shows. */
    HK_ASSERT(allowed || !rules_all_on(config));
    meta->state = (uint8_t)next;
    bool readable = next == HERMES_VALID ||
                    (next == HERMES_INVALID && !rule_on(config, HERMES_RULE_READ_VALID));
    meta->flags = (uint8_t)((meta->flags & ~KEY_READABLE) | (readable ? KEY_READABLE : 0));
}

static void hermes_item(const struct key_meta *meta, struct msg *msg_out)
{
    msg_out->kind = HERMES_ITEM;
    msg_out->flags = (uint8_t)(((meta->flags & KEY_RMW) != 0 ? HERMES_F_RMW : 0) |
                               ((meta->flags & KEY_FIRST) != 0 ? HERMES_F_FIRST : 0) |
                               (meta->state == HERMES_VALID ? HERMES_F_VALID : 0) |
                               ((meta->flags & KEY_REPORTED) != 0 ? HERMES_F_REPORTED : 0));
}

/* I1 to I3 of key.c, as far as one key shows them. A build with mutants has faults on purpose;
 * its checkers shall see what clients see of them. */
static void hermes_check(const struct key_meta *meta, const void *ext)
{
    (void)ext;
#ifndef HK_MUTANTS
    bool valid = meta->state == HERMES_VALID;
    bool tombstone = (meta->flags & KEY_TOMBSTONE) != 0;
    HK_ASSERT(meta->state < HERMES_STATES);
    HK_ASSERT(((meta->flags & KEY_READABLE) != 0) == valid);
    switch ((enum hermes_state)meta->state) {
    case HERMES_VALID:
        HK_ASSERT(meta->owner == 0);
        break;
    case HERMES_INVALID:
        HK_ASSERT(meta->owner == 0 || pending_special(meta));
        break;
    case HERMES_WRITE:
        HK_ASSERT(meta->owner != 0);
        break;
    case HERMES_TRANS:
        HK_ASSERT(meta->owner != 0 && !pending_special(meta));
        break;
    case HERMES_REPLAY:
    case HERMES_STATES:
        break;
    }
    HK_ASSERT(meta->ts != 0 || (valid && tombstone && (meta->flags & KEY_REPORTED) == 0));
    HK_ASSERT((meta->flags & KEY_REPORTED) == 0 || (valid && tombstone));
    HK_ASSERT(!agreed(meta) || (meta->flags & KEY_REPORTED) != 0);
    HK_ASSERT(!valid || tombstone || meta->aux == 0);
#else
    (void)meta;
#endif
}

const struct engine_ops hermes_ops = {
    .name = "hermes",
    .ext_bytes = 0,
    .port_needs = 0,
    .traits = ENGINE_CONFIRMS,
    .worker_bytes = sizeof(struct hermes_worker),
    .blank = {.flags = KEY_READABLE | KEY_TOMBSTONE},
    .route = hermes_route,
    .key = hermes_key,
    .flow = hermes_flow,
    .msg_invalid = hermes_msg_invalid,
    .check = hermes_check,
    .item = hermes_item,
};
