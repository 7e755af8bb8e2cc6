/* An established connection between two workers, without its socket: frames in and out as a byte
 * stream of records, each with a sequenced MAC; credits in bytes; large frames in fragments, so
 * that small ones (heartbeats above all) pass between them. Pure: bytes in, bytes out. docs/NET.md
 * has the format and the rules.
 *
 * Order. Small frames of a link arrive in the order in which they were sent; large ones (over
 * LINK_FRAGMENT bytes) among themselves, too, each when its last fragment is there.
 *
 * Bounds. At most window bytes of frames are under way unacknowledged by the receiver (view frames
 * are exempt: heartbeats must pass); the rest waits in the queue, at most queue_max bytes. The
 * receiver holds at most the window and what it consumes. */
#ifndef HORKOS_NET_LINK_H
#define HORKOS_NET_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "net/handshake.h"

#define LINK_FRAGMENT (128u * 1024u)
#define LINK_MAC_BYTES 16u

struct link;

struct link_config {
    struct session_keys keys;
    uint32_t window;    /* bytes; at least 4 * LINK_FRAGMENT; both sides use their own */
    uint64_t queue_max; /* bytes that may wait for credit; at least one largest frame */
};

enum link_fault {
    LINK_OK,
    LINK_RECORD,         /* a header that means nothing: length, kind, reserved bytes */
    LINK_MAC,            /* forged, damaged, replayed or out of order */
    LINK_FRAGMENT_FAULT, /* fragments that do not fit together */
    LINK_CREDIT,         /* credit for what was never sent, or more sent than credit allows */
    LINK_FRAME,          /* no frame inside (frame_length) */
    LINK_MEMORY,
    LINK_FAULTS
};
extern const char *const link_fault_names[LINK_FAULTS];

/* HK_ERR_NOMEM. */
int link_create(const struct link_config *config, struct link **link_out)
    __attribute__((warn_unused_result));
void link_destroy(struct link *link);

/* Queues one sealed frame (by copy). False when queue_max would be passed or there is no memory:
 * the frame is dropped, which protocols that resend can bear; the caller counts it. */
bool link_send(struct link *link, struct bytes frame) __attribute__((warn_unused_result));

/* The bytes that the next link_output can write at most: 0 when nothing may go out now. */
uint32_t link_output_ready(const struct link *link);
/* Writes whole records, at most capacity bytes (at least LINK_FRAGMENT + 64), returns how many. */
uint32_t link_output(struct link *link, uint8_t *out, uint32_t capacity);

/* Bytes from the stream, in order. After a fault the link is dead: close it. */
enum link_fault link_input(struct link *link, struct bytes bytes)
    __attribute__((warn_unused_result));
/* The next whole frame, good until the next call of link_receive or link_input. Taking it returns
 * its credit. False: none. */
bool link_receive(struct link *link, struct bytes *frame_out);

/* Bytes queued or under way that the receiver has not taken: how far the peer lags. */
uint64_t link_outstanding(const struct link *link);
/* Memory that this link holds, for accounts. */
uint64_t link_bytes_held(const struct link *link);

#endif
