/* One message of an engine (or of the node's own transfers) between two members: a fixed header of
 * MSG_HEADER bytes, the key's bytes, the value's bytes. Several travel in one frame (frame.h). */
#ifndef HORKOS_WIRE_MSG_H
#define HORKOS_WIRE_MSG_H

#include <stdint.h>

#include "base/bytes.h"

#define MSG_HEADER 40u
#define MSG_KEY_MAX 65536u
/* The largest stored value (64 MiB and a deadline), packed with its key in a chunk of a join. */
#define MSG_VALUE_MAX (64u * 1024u * 1024u + 64u + MSG_KEY_MAX + 64u)

/* Kinds below MSG_NODE_FIRST belong to the engine of the message's space; from there on to the
 * node, and mean the same in every space. */
enum { MSG_NODE_FIRST = 0xf0 };
enum msg_node_kind {
    MSG_CHUNK_ASK = MSG_NODE_FIRST, /* arg: cursor, ts: position inside its bucket; a joiner asks a
                                       donor for a chunk */
    MSG_CHUNK,                      /* arg: cursor asked for; ts: next cursor, 0 at the end;
                                       slot, gen: the position inside a bucket that
                                       was asked for; value: the next such position, then packed
                                       items (node/transfer.c) */
    MSG_CALL, /* an operation for the key's home (node/forward.c): slot, gen: of the asking call */
    MSG_ANSWER,     /* its answer: slot, gen as they came */
    MSG_HOT,        /* hot sets (node/hot.c) */
    MSG_OWN_EMPTY,  /* the operator gives up the lost objects of a space (node/own_walk.c) */
    MSG_OWN_LEAVE,  /* the sender will go: its replicas count no more (node/own_leave.c) */
    MSG_OWN_SPARED, /* arg: nodes without which all of the sender's objects are whole */
    MSG_OWN_ASIDE,  /* what the workers of one node tell each other of objects that have owners
                      (node/own.h); never between nodes. flags: enum own_aside */
};

struct msg {
    uint8_t space;  /* which space of the cluster's configuration */
    uint8_t kind;   /* the engine's, or enum msg_node_kind */
    uint8_t flags;  /* the engine's */
    uint8_t vflags; /* KEY_VALUE_FLAGS of the value */
    uint32_t slot;  /* slot of the coordinator: an INV carries it, its ACK echoes it; 0: none */
    uint32_t gen;   /* that slot's generation, echoed as well */
    uint32_t epoch; /* of the sender when it sent the message */
    uint64_t ts;
    uint64_t arg; /* the engine's */
    struct bytes key;
    struct bytes value;
};

/* Bytes that msg_encode writes. */
static inline uint32_t msg_size(const struct msg *m)
{
    return MSG_HEADER + m->key.n + m->value.n;
}

/* Writes msg_size(m) bytes. Asserts what msg_decode would refuse. The value may stand in place
 * already, at out + MSG_HEADER + m->key.n. */
void msg_encode(const struct msg *m, uint8_t *out);
/* All but the value, which is the message's end. */
void msg_encode_head(const struct msg *m, uint8_t *out);
/* Changes kind and epoch of an encoded message. */
void msg_readdress(uint8_t *encoded, uint8_t kind, uint32_t epoch);
/* Decodes the message at the start of in; key and value point into in. HK_ERR_CORRUPT when it is
 * truncated, a length is over its limit, or vflags contradict the value (docs/WIRE.md); nothing
 * is written then. used_out: bytes consumed. Says nothing about kind, flags, slot or space: their
 * meaning is the engine's and the node's. */
int msg_decode(struct bytes in, struct msg *m_out, uint32_t *used_out)
    __attribute__((warn_unused_result));

#endif
