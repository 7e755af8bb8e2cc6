/* Any message taken for a call, and for an answer: what is accepted says the same when it is
 * encoded again, and points into the message. Input: one message, as docs/WIRE.md has it. */
#include "fuzz/fuzz.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/nodeset.h"
#include "engine/op_msg.h"

static bool same(const struct msg *a, const struct msg *b)
{
    return a->kind == b->kind && a->flags == b->flags && a->slot == b->slot && a->gen == b->gen &&
           a->ts == b->ts && a->arg == b->arg && bytes_equal(a->key, b->key) &&
           bytes_equal(a->value, b->value);
}

static bool within(struct bytes part, struct bytes whole)
{
    return part.n == 0 || (part.at >= whole.at && part.at + part.n <= whole.at + whole.n);
}

static void try_call(const struct msg *m)
{
    struct op_call call;
    if (op_call_decode(m, &call) != NULL) {
        return;
    }
    HK_ASSERT(call.origin < NODES_MAX && call.hops <= CALL_HOPS_MAX && call.op.kind < OP_KINDS);
    HK_ASSERT(within(call.op.value, m->value) && within(call.op.arg, m->value));
    uint64_t bytes = op_call_room(&call);
    HK_ASSERT(bytes <= MSG_VALUE_MAX);
    uint8_t *room = bytes > 0 ? malloc(bytes) : NULL;
    HK_ASSERT(bytes == 0 || room != NULL);
    struct msg again;
    op_call_encode(&call, room, &again);
    HK_ASSERT(same(m, &again));
    int err = op_check(&call.op, 1024);
    HK_ASSERT(err == HK_OK || err == HK_ERR_INVALID || err == HK_ERR_TOOBIG);
    free(room);
}

static void try_answer(const struct msg *m)
{
    struct op_reply reply;
    if (op_reply_decode(m, &reply) != NULL) {
        return;
    }
    if (reply.kind != OP_REPLY_ANSWER) {
        HK_ASSERT(reply.kind == OP_REPLY_AGAIN || reply.to < NODES_MAX);
        return; /* what else its header says means nothing */
    }
    struct msg again;
    op_reply_encode(&reply, &again);
    HK_ASSERT(same(m, &again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct msg m;
    uint32_t used;
    if (size > UINT32_MAX || msg_decode(bytes_of(data, (uint32_t)size), &m, &used) != 0) {
        return 0;
    }
    try_call(&m);
    try_answer(&m);
    m.kind = MSG_CALL;
    try_call(&m);
    m.kind = MSG_ANSWER;
    try_answer(&m);
    return 0;
}
