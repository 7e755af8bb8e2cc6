#include "engine/op_msg.h"

#include <stddef.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/nodeset.h"

/* MSG_CALL, flags. */
#define CALL_HOPS 0x0fu
#define CALL_ARG 0x10u    /* behind the value: the argument and its length */
#define CALL_HANDED 0x20u /* behind that: the version of the map */
#define CALL_FLAGS (CALL_HOPS | CALL_ARG | CALL_HANDED)

/* MSG_ANSWER, flags: an enum answer_kind, or one of these, and perhaps APPLIED. */
#define REPLY_KIND 0x0fu
#define REPLY_AGAIN_KIND 8u
#define REPLY_SENT_ON_KIND 9u
#define REPLY_APPLIED 0x10u

#define ARG_LENGTH ((uint32_t)sizeof(uint32_t))
#define VERSION ((uint32_t)sizeof(uint64_t))

_Static_assert(CALL_HOPS_MAX <= CALL_HOPS, "fits its bits");
_Static_assert(NODES_MAX <= UINT8_MAX, "a node fits its byte");

/* ---- Calls ---- */

uint64_t op_call_room(const struct op_call *call)
{
    uint64_t arg = call->op.arg.n > 0 ? (uint64_t)call->op.arg.n + ARG_LENGTH : 0;
    uint64_t more = arg + (call->handed ? VERSION : 0);
    if (call->op.value.n + more > MSG_VALUE_MAX) {
        return UINT64_MAX;
    }
    return more == 0 ? 0 : call->op.value.n + more;
}

static uint8_t *append(uint8_t *at, struct bytes b)
{
    if (b.n > 0) {
        memcpy(at, b.at, b.n);
    }
    return at + b.n;
}

void op_call_encode(const struct op_call *call, uint8_t *room, struct msg *msg_out)
{
    const struct op *op = &call->op;
    uint64_t bytes = op_call_room(call);
    HK_ASSERT(bytes <= MSG_VALUE_MAX && (bytes == 0 || room != NULL));
    HK_ASSERT(call->hops <= CALL_HOPS_MAX);
    *msg_out = (struct msg){
        .kind = MSG_CALL,
        .flags = (uint8_t)(call->hops | (op->arg.n > 0 ? CALL_ARG : 0u) |
                           (call->handed ? CALL_HANDED : 0u)),
        .slot = call->slot,
        .gen = call->gen,
        .ts = (uint64_t)op->number,
        .arg = call->nonce | (uint64_t)op->kind << 32 | (uint64_t)call->origin << 40 |
               (uint64_t)op->flags << 48,
        .key = op->key,
        .value = op->value,
    };
    if (bytes == 0) {
        return;
    }
    uint8_t *at = append(room, op->value);
    if (op->arg.n > 0) {
        at = append(at, op->arg);
        put_u32(at, op->arg.n);
        at += ARG_LENGTH;
    }
    if (call->handed) {
        put_u64(at, call->handed_version);
    }
    msg_out->value = bytes_of(room, (uint32_t)bytes);
}

/* Cuts n bytes off the end; false: there are not so many. */
static bool cut(struct bytes *b, uint32_t n, struct bytes *end_out)
{
    if (n > b->n) {
        return false;
    }
    b->n -= n;
    *end_out = bytes_of(b->at + b->n, n);
    return true;
}

static const char *decode_behind(const struct msg *msg, struct op_call *call)
{
    struct bytes end;
    call->op.value = msg->value;
    call->op.arg = bytes_of(NULL, 0);
    call->handed = (msg->flags & CALL_HANDED) != 0;
    call->handed_version = 0;
    if (call->handed) {
        if (!cut(&call->op.value, VERSION, &end)) {
            return "a map's version is cut";
        }
        call->handed_version = get_u64(end.at);
    }
    if ((msg->flags & CALL_ARG) != 0) {
        if (!cut(&call->op.value, ARG_LENGTH, &end)) {
            return "an argument's length is cut";
        }
        uint32_t n = get_u32(end.at);
        if (n == 0 || !cut(&call->op.value, n, &call->op.arg)) {
            return "an argument is cut, or has no bytes";
        }
    }
    return NULL;
}

const char *op_call_decode(const struct msg *msg, struct op_call *call_out)
{
    struct op_call call = {
        .op = {.kind = (uint8_t)(msg->arg >> 32),
               .space = msg->space,
               .flags = (uint16_t)(msg->arg >> 48),
               .key = msg->key,
               .number = (int64_t)msg->ts},
        .slot = msg->slot,
        .gen = msg->gen,
        .nonce = (uint32_t)msg->arg,
        .origin = (uint8_t)(msg->arg >> 40),
        .hops = msg->flags & CALL_HOPS,
    };
    if (msg->kind != MSG_CALL) {
        return "not a call";
    }
    if ((msg->flags & ~CALL_FLAGS) != 0 || msg->vflags != 0 || call.hops > CALL_HOPS_MAX) {
        return "unknown flags";
    }
    if (call.origin >= NODES_MAX) {
        return "no such node";
    }
    if (call.op.kind >= OP_KINDS || call.op.kind == OP_EXPIRED) {
        return "no operation of a client";
    }
    const char *wrong = decode_behind(msg, &call);
    if (wrong == NULL) {
        *call_out = call;
    }
    return wrong;
}

/* ---- Answers ---- */

void op_reply_encode(const struct op_reply *reply, struct msg *msg_out)
{
    *msg_out = (struct msg){.kind = MSG_ANSWER, .slot = reply->slot, .gen = reply->gen};
    switch ((enum op_reply_kind)reply->kind) {
    case OP_REPLY_ANSWER:
        HK_ASSERT(reply->answer.kind <= ANSWER_ERROR);
        msg_out->flags =
            (uint8_t)(reply->answer.kind | (reply->answer.applied ? REPLY_APPLIED : 0u));
        msg_out->ts = reply->version;
        msg_out->arg = (uint64_t)reply->answer.number;
        if (reply->answer.kind == ANSWER_VALUE) {
            msg_out->value = reply->answer.value;
        }
        break;
    case OP_REPLY_AGAIN:
        msg_out->flags = REPLY_AGAIN_KIND;
        break;
    case OP_REPLY_SENT_ON:
        msg_out->flags = REPLY_SENT_ON_KIND;
        msg_out->arg = reply->to | (uint64_t)reply->hops << 8 | (uint64_t)reply->nonce << 32;
        break;
    }
}

static bool is_error(int64_t number)
{
    return number < 0 && number >= HK_ERR_LOST;
}

static const char *decode_answer(const struct msg *msg, struct op_reply *reply)
{
    uint8_t kind = msg->flags & REPLY_KIND;
    reply->kind = OP_REPLY_ANSWER;
    reply->version = msg->ts;
    reply->answer = (struct answer){.kind = kind,
                                    .applied = (msg->flags & REPLY_APPLIED) != 0,
                                    .number = (int64_t)msg->arg,
                                    .value = msg->value};
    if (kind != ANSWER_VALUE && msg->value.n > 0) {
        return "a value where none belongs";
    }
    if (kind == ANSWER_ERROR && (!is_error(reply->answer.number) || reply->answer.applied)) {
        return "an error that is none";
    }
    return NULL;
}

const char *op_reply_decode(const struct msg *msg, struct op_reply *reply_out)
{
    struct op_reply reply = {.slot = msg->slot, .gen = msg->gen};
    uint8_t kind = msg->flags & REPLY_KIND;
    const char *wrong = NULL;
    if (msg->kind != MSG_ANSWER) {
        return "not an answer";
    }
    if ((msg->flags & ~(REPLY_KIND | REPLY_APPLIED)) != 0 || msg->vflags != 0 || msg->key.n > 0) {
        return "unknown flags, or a key";
    }
    if (kind <= ANSWER_ERROR) {
        wrong = decode_answer(msg, &reply);
    } else if ((kind != REPLY_AGAIN_KIND && kind != REPLY_SENT_ON_KIND) || msg->flags != kind ||
               msg->value.n > 0) {
        wrong = "an answer of no kind";
    } else if (kind == REPLY_AGAIN_KIND) {
        reply.kind = OP_REPLY_AGAIN;
    } else {
        reply.kind = OP_REPLY_SENT_ON;
        reply.to = (uint8_t)msg->arg;
        reply.hops = (uint8_t)(msg->arg >> 8);
        reply.nonce = (uint32_t)(msg->arg >> 32);
        if (reply.to >= NODES_MAX || reply.hops == 0 || reply.hops > CALL_HOPS_MAX) {
            wrong = "sent on to nobody";
        }
    }
    if (wrong == NULL) {
        *reply_out = reply;
    }
    return wrong;
}
