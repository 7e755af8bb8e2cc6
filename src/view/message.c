/* Encoding and checks of the view protocol's messages. Every kind is a fixed part, and three of
 * them end with a view; nothing is optional but the view of a promise that accepted nothing. */
#include "view/message.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/err.h"

#define HEAD_BYTES 8u
#define BALLOT_BYTES 17u

int view_ballot_compare(const struct view_ballot *a, const struct view_ballot *b)
{
    if (a->round != b->round) {
        return a->round < b->round ? -1 : 1;
    }
    if (a->node != b->node) {
        return a->node < b->node ? -1 : 1;
    }
    return a->nonce == b->nonce ? 0 : a->nonce < b->nonce ? -1 : 1;
}

/* The length of the fixed part after the head, and the name; 0: no such kind. */
static const struct {
    uint32_t fixed;
    const char *name;
} kinds[] = {
    [VIEW_MSG_HEARTBEAT] = {41, "HEARTBEAT"},
    [VIEW_MSG_GRANT] = {20, "GRANT"},
    [VIEW_MSG_VIEW] = {0, "VIEW"},
    [VIEW_MSG_ASK] = {0, "ASK"},
    [VIEW_MSG_PREPARE] = {BALLOT_BYTES + 21, "PREPARE"},
    [VIEW_MSG_PROMISE] = {2 * BALLOT_BYTES + 4, "PROMISE"},
    [VIEW_MSG_ACCEPT] = {BALLOT_BYTES + 4, "ACCEPT"},
    [VIEW_MSG_ACCEPTED] = {BALLOT_BYTES + 4, "ACCEPTED"},
    [VIEW_MSG_REFUSE] = {2 * BALLOT_BYTES + 4, "REFUSE"},
};
#define KINDS (sizeof kinds / sizeof kinds[0])
_Static_assert(HEAD_BYTES + 2 * BALLOT_BYTES + 4 + VIEW_ENCODED_MAX <= VIEW_MSG_ENCODED_MAX,
               "the longest message fits its bound");

const char *view_msg_name(uint8_t kind)
{
    return kind < KINDS && kinds[kind].name != NULL ? kinds[kind].name : "?";
}

/* Rounds rise by one a ballot: a huge one is a fault, and the next would overflow. */
#define ROUND_MAX (UINT64_MAX / 2)

static bool ballot_bad(const struct view_ballot *b)
{
    return b->round == 0 || b->round > ROUND_MAX || b->nonce == 0 || b->node >= NODES_MAX;
}

static const char *heartbeat_invalid(const struct view_msg *msg)
{
    const struct view_heartbeat *heartbeat = &msg->heartbeat;
    if (heartbeat->sent_us == 0 || (heartbeat->flags & ~VIEW_HEARTBEAT_FLAGS) != 0) {
        return "heartbeat without a number, or with unknown flags";
    }
    if ((heartbeat->kept_generation == 0) != (heartbeat->kept_epoch == 0)) {
        return "kept generation without an epoch, or an epoch without a generation";
    }
    if (heartbeat->configured == 0) {
        return "heartbeat of a node without a configuration";
    }
    if (heartbeat->admitted > msg->epoch) {
        return "admitted by a view that the sender does not hold";
    }
    if ((heartbeat->flags & VIEW_HEARTBEAT_COPIED) != 0 && heartbeat->admitted == 0) {
        return "copied, but no member";
    }
    return NULL;
}

static const char *prepare_invalid(const struct view_prepare *prepare)
{
    if (ballot_bad(&prepare->ballot) || prepare->instance == 0) {
        return "prepare without a ballot or an instance";
    }
    if ((prepare->flags & ~VIEW_PREPARE_FLAGS) != 0) {
        return "prepare with unknown flags";
    }
    bool all_agree = prepare->instance == 1 || (prepare->flags & VIEW_PREPARE_RECOVER) != 0;
    return all_agree != (prepare->configured != 0) ? "prepare names configured nodes wrongly"
                                                   : NULL;
}

static const char *promise_invalid(const struct view_promise *promise)
{
    if (ballot_bad(&promise->ballot) || promise->instance == 0) {
        return "promise without a ballot or an instance";
    }
    if (view_ballot_none(&promise->accepted)) {
        return promise->accepted.nonce == 0 && promise->accepted.node == 0 ? NULL : "half a ballot";
    }
    if (ballot_bad(&promise->accepted) || promise->view.epoch != promise->instance) {
        return "promise with an accepted view of another instance";
    }
    return view_invalid(&promise->view);
}

const char *view_msg_invalid(const struct view_msg *msg)
{
    switch ((enum view_msg_kind)msg->kind) {
    case VIEW_MSG_HEARTBEAT:
        return heartbeat_invalid(msg);
    case VIEW_MSG_GRANT:
        return msg->grant.holder == 0 || msg->grant.sent_us == 0 || msg->grant.lease_us == 0
                   ? "grant without holder, heartbeat or length"
                   : NULL;
    case VIEW_MSG_VIEW:
        return msg->view.epoch != msg->epoch ? "a view that the sender does not hold"
                                             : view_invalid(&msg->view);
    case VIEW_MSG_ASK:
        return NULL;
    case VIEW_MSG_PREPARE:
        return prepare_invalid(&msg->prepare);
    case VIEW_MSG_PROMISE:
        return promise_invalid(&msg->promise);
    case VIEW_MSG_ACCEPT:
        if (ballot_bad(&msg->accept.ballot) || msg->accept.view.epoch != msg->accept.instance) {
            return "accept without a ballot, or of another instance";
        }
        return view_invalid(&msg->accept.view);
    case VIEW_MSG_ACCEPTED:
        return ballot_bad(&msg->accepted.ballot) || msg->accepted.instance == 0
                   ? "accepted without a ballot or an instance"
                   : NULL;
    case VIEW_MSG_REFUSE:
        return ballot_bad(&msg->refuse.ballot) || ballot_bad(&msg->refuse.promised) ||
                       msg->refuse.instance == 0
                   ? "refusal without ballots or an instance"
                   : NULL;
    }
    return "unknown kind";
}

static uint8_t *put_ballot(uint8_t *p, const struct view_ballot *b)
{
    put_u64(p, b->round);
    put_u64(p + 8, b->nonce);
    p[16] = b->node;
    return p + BALLOT_BYTES;
}

static const uint8_t *get_ballot(const uint8_t *p, struct view_ballot *b)
{
    b->round = get_u64(p);
    b->nonce = get_u64(p + 8);
    b->node = p[16];
    return p + BALLOT_BYTES;
}

static uint8_t *put_heartbeat(uint8_t *p, const struct view_heartbeat *heartbeat)
{
    put_u64(p, heartbeat->sent_us);
    put_u64(p + 8, heartbeat->heard);
    put_u64(p + 16, heartbeat->configured);
    put_u64(p + 24, heartbeat->kept_generation);
    put_u32(p + 32, heartbeat->kept_epoch);
    put_u32(p + 36, heartbeat->admitted);
    p[40] = heartbeat->flags;
    return p + 41;
}

static void get_heartbeat(const uint8_t *p, struct view_heartbeat *heartbeat)
{
    heartbeat->sent_us = get_u64(p);
    heartbeat->heard = get_u64(p + 8);
    heartbeat->configured = get_u64(p + 16);
    heartbeat->kept_generation = get_u64(p + 24);
    heartbeat->kept_epoch = get_u32(p + 32);
    heartbeat->admitted = get_u32(p + 36);
    heartbeat->flags = p[40];
}

uint32_t view_msg_encode(const struct view_msg *msg, uint8_t out[VIEW_MSG_ENCODED_MAX])
{
    uint8_t *p = out + HEAD_BYTES;

    HK_CHECK(view_msg_invalid(msg) == NULL);
    put_u32(out, msg->kind);
    put_u32(out + 4, msg->epoch);
    switch ((enum view_msg_kind)msg->kind) {
    case VIEW_MSG_HEARTBEAT:
        p = put_heartbeat(p, &msg->heartbeat);
        break;
    case VIEW_MSG_GRANT:
        put_u64(p, msg->grant.holder);
        put_u64(p + 8, msg->grant.sent_us);
        put_u32(p + 16, msg->grant.lease_us);
        p += 20;
        break;
    case VIEW_MSG_VIEW:
        p += view_encode(&msg->view, p);
        break;
    case VIEW_MSG_ASK:
        break;
    case VIEW_MSG_PREPARE:
        p = put_ballot(p, &msg->prepare.ballot);
        put_u64(p, msg->prepare.drops);
        put_u64(p + 8, msg->prepare.configured);
        put_u32(p + 16, msg->prepare.instance);
        p[20] = msg->prepare.flags;
        p += 21;
        break;
    case VIEW_MSG_PROMISE:
        p = put_ballot(p, &msg->promise.ballot);
        p = put_ballot(p, &msg->promise.accepted);
        put_u32(p, msg->promise.instance);
        p += 4;
        if (!view_ballot_none(&msg->promise.accepted)) {
            p += view_encode(&msg->promise.view, p);
        }
        break;
    case VIEW_MSG_ACCEPT:
        p = put_ballot(p, &msg->accept.ballot);
        put_u32(p, msg->accept.instance);
        p += 4;
        p += view_encode(&msg->accept.view, p);
        break;
    case VIEW_MSG_ACCEPTED:
        p = put_ballot(p, &msg->accepted.ballot);
        put_u32(p, msg->accepted.instance);
        p += 4;
        break;
    case VIEW_MSG_REFUSE:
        p = put_ballot(p, &msg->refuse.ballot);
        p = put_ballot(p, &msg->refuse.promised);
        put_u32(p, msg->refuse.instance);
        p += 4;
        break;
    }
    return (uint32_t)(p - out);
}

/* Reads the fixed part, whose length was checked. Gives where a view follows, NULL if none does. */
static struct view *get_fixed(const uint8_t *p, struct view_msg *msg)
{
    switch ((enum view_msg_kind)msg->kind) {
    case VIEW_MSG_HEARTBEAT:
        get_heartbeat(p, &msg->heartbeat);
        return NULL;
    case VIEW_MSG_GRANT:
        msg->grant.holder = get_u64(p);
        msg->grant.sent_us = get_u64(p + 8);
        msg->grant.lease_us = get_u32(p + 16);
        return NULL;
    case VIEW_MSG_VIEW:
        return &msg->view;
    case VIEW_MSG_ASK:
        return NULL;
    case VIEW_MSG_PREPARE:
        p = get_ballot(p, &msg->prepare.ballot);
        msg->prepare.drops = get_u64(p);
        msg->prepare.configured = get_u64(p + 8);
        msg->prepare.instance = get_u32(p + 16);
        msg->prepare.flags = p[20];
        return NULL;
    case VIEW_MSG_PROMISE:
        p = get_ballot(p, &msg->promise.ballot);
        p = get_ballot(p, &msg->promise.accepted);
        msg->promise.instance = get_u32(p);
        return view_ballot_none(&msg->promise.accepted) ? NULL : &msg->promise.view;
    case VIEW_MSG_ACCEPT:
        p = get_ballot(p, &msg->accept.ballot);
        msg->accept.instance = get_u32(p);
        return &msg->accept.view;
    case VIEW_MSG_ACCEPTED:
        p = get_ballot(p, &msg->accepted.ballot);
        msg->accepted.instance = get_u32(p);
        return NULL;
    case VIEW_MSG_REFUSE:
        p = get_ballot(p, &msg->refuse.ballot);
        p = get_ballot(p, &msg->refuse.promised);
        msg->refuse.instance = get_u32(p);
        return NULL;
    }
    return NULL;
}

int view_msg_decode(struct bytes in, struct view_msg *msg_out)
{
    if (in.n < HEAD_BYTES) {
        return HK_ERR_CORRUPT;
    }
    uint32_t kind = get_u32(in.at);
    if (kind >= KINDS || kinds[kind].name == NULL || in.n - HEAD_BYTES < kinds[kind].fixed) {
        return HK_ERR_CORRUPT;
    }
    memset(msg_out, 0, sizeof *msg_out);
    msg_out->kind = (uint8_t)kind;
    msg_out->epoch = get_u32(in.at + 4);
    uint32_t used = HEAD_BYTES + kinds[kind].fixed;
    struct view *view = get_fixed(in.at + HEAD_BYTES, msg_out);
    if (view != NULL) {
        uint32_t more = 0;
        if (view_decode(bytes_of(in.at + used, in.n - used), view, &more) != HK_OK) {
            return HK_ERR_CORRUPT;
        }
        used += more;
    }
    if (used != in.n || view_msg_invalid(msg_out) != NULL) {
        return HK_ERR_CORRUPT;
    }
    return HK_OK;
}
