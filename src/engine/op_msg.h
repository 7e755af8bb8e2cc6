/* Operations that travel: MSG_CALL carries one to a node that can execute it, MSG_ANSWER brings its
 * answer to the node that asked (docs/protocols/galene.md, Misses; docs/WIRE.md has the bytes).
 * Pure: who sends what to whom is node/forward.c's. */
#ifndef HORKOS_ENGINE_OP_MSG_H
#define HORKOS_ENGINE_OP_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/op.h"
#include "wire/msg.h"

#define CALL_HOPS_MAX 8u /* how often a call may be sent on */

struct op_call {
    struct op op;
    uint32_t slot;  /* what the asking node knows the call by ... */
    uint32_t gen;   /* ... and its generation; echoed by the answer */
    uint32_t nonce; /* the lower half of the asking process's */
    uint8_t origin; /* the asking node */
    uint8_t hops;   /* how often it was sent on */
    bool handed;    /* by the old home of the key, which has it no more: act as the home ... */
    uint64_t handed_version; /* ... unless your map is not older than this one and says otherwise */
};

/* The bytes that the message's value needs in one piece; 0: none beyond op.value, which travels
 * from where it stands. UINT64_MAX: no message can carry so much. */
uint64_t op_call_room(const struct op_call *call);
/* The message but for space and epoch. room: op_call_room bytes, which the message's value then
 * is; NULL if there are none. */
void op_call_encode(const struct op_call *call, uint8_t *room, struct msg *msg_out);
/* Why the message is no call, or NULL. key, value and arg point into the message's. Whether the
 * operation makes sense is op_check's to say, with the store's limits. */
const char *op_call_decode(const struct msg *msg, struct op_call *call_out);

enum op_reply_kind {
    OP_REPLY_ANSWER,
    OP_REPLY_AGAIN,   /* nothing was done, nor will be: start anew after a while */
    OP_REPLY_SENT_ON, /* another node has it now, and will answer */
};

struct op_reply {
    uint8_t kind; /* enum op_reply_kind */
    uint32_t slot;
    uint32_t gen;

    struct answer answer; /* OP_REPLY_ANSWER */
    uint64_t version;     /* of what was read or written; 0: of nothing */

    uint8_t to;     /* OP_REPLY_SENT_ON: the node that has it, ... */
    uint8_t hops;   /* ... how often it was sent on then, ... */
    uint32_t nonce; /* ... and the lower half of that process's nonce */
};

/* The message but for space and epoch; its value is the answer's. */
void op_reply_encode(const struct op_reply *reply, struct msg *msg_out);
/* Why the message is no answer, or NULL. */
const char *op_reply_decode(const struct msg *msg, struct op_reply *reply_out);

#endif
