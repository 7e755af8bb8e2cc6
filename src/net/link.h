/* An established connection between two workers, without its socket: frames in and out as a byte
 * stream of records, each with a sequenced MAC; credits in bytes; large frames in fragments, so
 * that small ones (heartbeats above all) pass between them. Pure: bytes in, bytes out. docs/NET.md
 * has the format and the rules.
 *
 * Order. Small frames (at most LINK_FRAGMENT bytes) of the view protocol (frame kind FRAME_VIEW)
 * pass everything else and arrive in their own order. The other small ones arrive in the order in
 * which they were sent; large ones, of any kind, among themselves, too, each when its last fragment
 * is there.
 *
 * Bounds. At most the receiver's window of bytes of frames is under way unacknowledged (small view
 * frames are exempt: heartbeats must pass); the rest waits in the queue, at most queue_max bytes.
 * The receiver holds at most its window, a quarter of it again of view frames (more are dropped and
 * counted), one large frame that is whole or being put together, and the one that was taken last;
 * memory follows what has arrived, never what was announced. */
#ifndef HORKOS_NET_LINK_H
#define HORKOS_NET_LINK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/pieces.h"
#include "net/handshake.h"

#define LINK_FRAGMENT (128u * 1024u)
#define LINK_MAC_BYTES 16u
#define LINK_WINDOW_MIN (4u * LINK_FRAGMENT)
#define LINK_WINDOW_MAX (1024u * 1024u * 1024u)
/* A receiver that has taken all and has nothing to say may leave less than this unacknowledged. */
#define LINK_CREDIT_LAG (16u * 1024u)
/* An output of this many bytes always takes a record. */
#define LINK_OUTPUT_MIN (LINK_FRAGMENT + 64u)

struct link;

struct link_config {
    struct session_keys keys;
    uint32_t window;    /* bytes that the peer may have under way: LINK_WINDOW_MIN .. _MAX; the two
                           sides tell each other theirs */
    uint64_t queue_max; /* bytes that may wait for credit; at least one largest frame */
};

enum link_fault {
    LINK_OK,
    LINK_RECORD,         /* a header that means nothing: length, kind, reserved bytes; no opening */
    LINK_MAC,            /* forged, damaged, replayed or out of order */
    LINK_FRAGMENT_FAULT, /* fragments that do not fit together */
    LINK_CREDIT,         /* credit for what was never sent, or more sent than credit allows */
    LINK_FRAME,          /* no frame inside (frame_length), or not of the kind that may be there */
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
/* The same for a large frame, which is not copied: its pieces are the link's from here on, whatever
 * it answers. The whole header is in the first. */
bool link_give(struct link *link, struct pieces *frame) __attribute__((warn_unused_result));
/* Drops what is queued and no small view frame, except a large frame that is partly out. */
void link_forget(struct link *link);

/* A bound of the bytes that the next link_output can write: 0 when nothing may go out now. */
uint32_t link_output_ready(const struct link *link);
/* Writes whole records, at most capacity bytes, returns how many. If something is ready and the
 * capacity at least the lesser of link_output_ready() and LINK_OUTPUT_MIN, it writes at least one.
 * Call it until nothing is ready. */
uint32_t link_output(struct link *link, uint8_t *out, uint32_t capacity);

/* Bytes from the stream, in order. After a fault the link is dead (the same fault again, nothing to
 * receive or send): close it. */
enum link_fault link_input(struct link *link, struct bytes bytes)
    __attribute__((warn_unused_result));
/* The next whole frame, good until the next call of link_receive or link_input. Taking it returns
 * its credit. False: none. */
bool link_receive(struct link *link, struct bytes *frame_out);

/* Bytes queued or under way that the receiver has not taken, as far as is known: how far the peer
 * lags. Up to LINK_CREDIT_LAG of it may have been taken. */
uint64_t link_outstanding(const struct link *link);
/* Whether a large frame is queued, or the receiver is not known to have taken the last one. Nobody
 * knows of one whose last fragment is not above LINK_CREDIT_LAG. */
bool link_large_under_way(const struct link *link);
/* Memory that this link holds, for accounts. */
uint64_t link_bytes_held(const struct link *link);
/* View frames that were dropped on arrival because too many waited to be received. */
uint64_t link_dropped(const struct link *link);

#endif
