/* Frames: what a port carries between a worker of one process and a worker of another. The header
 * says from whom, to whom, and in which cluster, generation and epoch; a checksum covers all.
 * A frame that fails a check is dropped and counted by reason. */
#ifndef HORKOS_WIRE_FRAME_H
#define HORKOS_WIRE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define FRAME_HEADER 64u
#define FRAME_BODY_MAX (64u * 1024u * 1024u + 256u * 1024u)
#define FRAME_MAGIC 0x534f4b48u /* "HKOS" in little-endian order */
#define FRAME_VERSION 1u        /* what a node speaks unless it is told otherwise */
/* The newest one that is known here: as 1 but for its number, so that an upgrade of a running
 * cluster can be tried out before there is a need for one. */
#define FRAME_VERSION_MAX 2u

enum frame_kind {
    FRAME_VIEW = 1,  /* body: one view message */
    FRAME_BATCH = 2, /* body: messages (msg.h), one after another */
    FRAME_LANE = 3,  /* body: a lane's head (lane.h), then messages */
};

struct frame {
    uint16_t version; /* 1 .. FRAME_VERSION_MAX, as negotiated with the peer */
    uint8_t kind;     /* enum frame_kind */
    uint8_t source;   /* node ids */
    uint8_t target;
    uint8_t source_worker;
    uint8_t target_worker; /* the receiver reduces it modulo its number of workers */
    bool bare;             /* for frame_seal: no checksum, 0 stands in its place */
    bool full;             /* the sender has no memory for new writes: nobody shall take one up */
    uint32_t epoch;        /* the sender's view when it wrote the body */
    uint64_t cluster;      /* id from the configuration: strangers are told apart */
    uint64_t generation;   /* of the sender's view; 0 while it has none */
    uint64_t nonce;        /* the sender's incarnation */
    uint64_t target_nonce; /* the incarnation that it is meant for; 0: whichever (view messages) */
    struct bytes body;
};

enum frame_drop {
    FRAME_DROP_NONE,
    FRAME_DROP_SHORT, /* shorter than its header or its length */
    FRAME_DROP_MAGIC,
    FRAME_DROP_VERSION,
    FRAME_DROP_KIND,
    FRAME_DROP_LENGTH, /* longer than allowed, or trailing bytes */
    FRAME_DROP_CHECKSUM,
    FRAME_DROP_CLUSTER,
    FRAME_DROP_TARGET,   /* meant for another node, or for another incarnation */
    FRAME_DROP_SOURCE,   /* a node id that is out of range, this node itself, or no nonce */
    FRAME_DROP_RESERVED, /* bytes that must be zero are not */
    FRAME_DROPS
};
extern const char *const frame_drop_names[FRAME_DROPS];

/* Writes the header for the body that already stands at out + FRAME_HEADER (f->body.n bytes;
 * f->body.at is ignored), checksum included. Returns the frame's length. Asserts what frame_open
 * would refuse at every receiver: a body over FRAME_BODY_MAX, a version or kind that is unknown, a
 * node id out of range, a frame to its own sender, no nonce, messages for whichever incarnation. */
uint32_t frame_seal(const struct frame *f, uint8_t *out);
/* The same for a body whose end, tail, lies elsewhere. */
uint32_t frame_seal_pieces(const struct frame *f, uint8_t *out, struct bytes tail);

/* For streams, where frames follow each other: the length of the frame whose header starts at
 * header.at. Checks only what makes the length worth waiting for (FRAME_DROP_SHORT, _MAGIC,
 * _VERSION, _LENGTH); after any of these but SHORT the stream cannot be followed any further. */
enum frame_drop frame_length(struct bytes header, uint32_t *length_out)
    __attribute__((warn_unused_result));

/* Checks one whole frame, in the order of docs/WIRE.md. cluster, self and nonce are the
 * receiver's. f_out is written only if the answer is FRAME_DROP_NONE; its body points into in. */
enum frame_drop frame_open(struct bytes in, uint64_t cluster, uint8_t self, uint64_t nonce,
                           struct frame *f_out) __attribute__((warn_unused_result));
/* The same but for the checksum, which is not looked at: for ports that promise to hand over what
 * was sent (env.intact), and whose frames may be bare. */
enum frame_drop frame_open_bare(struct bytes in, uint64_t cluster, uint8_t self, uint64_t nonce,
                                struct frame *f_out) __attribute__((warn_unused_result));

#endif
