/* One lane between a worker of one incarnation and a worker of another, as its sender and as its
 * receiver keep it (docs/WIRE.md). Frames may be lost, doubled and reordered on the way; they are
 * consumed once and in order. Neither half does I/O or reads a clock; node/lanes.c seals, sends and
 * delivers.
 *
 * The sender keeps every frame, in one piece and with room for its headers, until it is
 * acknowledged. They stand in a ring of bytes that grows when it must and is kept; only frames
 * above LANE_FRAME_FULL have memory of their own. The receiver keeps a bounded number of frames
 * that it cannot consume yet. */
#ifndef HORKOS_NODE_LANE_H
#define HORKOS_NODE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "node/wheel.h"
#include "wire/frame.h"
#include "wire/lane.h"

#define LANE_FRAME_HEAD (FRAME_HEADER + LANE_HEAD) /* in front of the messages */
#define LANE_FRAME_FULL (60u * 1024u)              /* of messages: then a frame is closed */
#define LANE_KEPT_MAX (4u << 20) /* bytes unacknowledged, above which no new update is begun */
#define LANE_AGAIN_FRAMES 16u    /* so many are sent again before one is acknowledged */
#define LANE_RTO_FIRST_US 20000u
#define LANE_RTO_MIN_US 10000u
#define LANE_RTO_MAX_US 640000u
#define LANE_WINDOW 64u              /* how far ahead a frame is kept by the receiver, ... */
#define LANE_WINDOW_BYTES (1u << 20) /* ... and how much of them */
#define LANE_ACK_FRAMES 16u /* consumed, after which an acknowledgement leaves alone, ... */
#define LANE_ACK_BYTES (256u * 1024u) /* ... or bytes of them, ... */
#define LANE_ACK_US 2000u             /* ... or so much later */

/* ---- Sender ---- */

struct lane_kept {
    uint8_t *large;   /* memory of its own, or NULL: in the ring, at `at` */
    uint64_t at;      /* position: offset in the ring is its remainder */
    uint64_t sent_us; /* last */
    uint32_t bytes;   /* of the frame, headers included */
    uint32_t epoch;   /* in which it was written */
    bool again;       /* sent more than once: says nothing about the round trip */
};

struct lane_out {
    struct list_link pending; /* the worker's lanes with an open frame */
    struct timer timer;
    uint8_t to;            /* node */
    uint8_t target_worker; /* as the frames name it */
    uint64_t acked;        /* frames up to it are consumed, those up to `last` are kept */
    uint64_t last;
    uint64_t bytes;       /* of the kept frames */
    uint64_t progress_us; /* when the receiver last consumed something, or began to owe it */
    uint64_t again_next;  /* frames from here to again_end are being sent again */
    uint64_t again_end;
    uint64_t gap_answered; /* the frame that was sent again because it was missed */
    uint64_t open_at;      /* the open frame's position, ... */
    uint32_t open_bytes;   /* ... and bytes so far, headers included; 0: none */
    uint32_t srtt_us;      /* round trip, 0: not known yet, ... */
    uint32_t rttvar_us;    /* ... its deviation, and ... */
    uint32_t rto_us;       /* ... how long an acknowledgement is waited for (RFC 6298) */
    uint8_t *ring;
    uint32_t ring_bytes; /* a power of two, or 0 */
    uint32_t kept_max;   /* a power of two, or 0 */
    uint64_t head;       /* position behind the newest frame */
    uint64_t tail;       /* position of the oldest */
    struct lane_kept *kept;
};

void lane_out_init(struct lane_out *lane, uint8_t to, uint8_t target_worker, uint8_t timer_kind);
void lane_out_deinit(struct lane_out *lane);

/* Whether the open frame should be closed before n more bytes of messages. */
static inline bool lane_out_full(const struct lane_out *lane, uint32_t n)
{
    return lane->open_bytes > 0 && lane->open_bytes + n > LANE_FRAME_HEAD + LANE_FRAME_FULL;
}
/* Room for n bytes at the end of the open frame, which begins if there is none. */
uint8_t *lane_out_room(struct lane_out *lane, uint32_t n);
/* Ends the open frame, which is kept from now on. Returns its sequence. */
uint64_t lane_out_close(struct lane_out *lane, uint32_t epoch, uint64_t now_us);
/* A frame of its own for n bytes of messages, which are written to *room_out before anything else
 * is asked of the lane; none may be open. Returns its sequence. */
uint64_t lane_out_large(struct lane_out *lane, uint32_t n, uint32_t epoch, uint64_t now_us,
                        uint8_t **room_out);
/* A kept frame, and its bytes. */
struct lane_kept *lane_out_kept(const struct lane_out *lane, uint64_t sequence);
uint8_t *lane_out_frame(const struct lane_out *lane, const struct lane_kept *kept);

/* The receiver has consumed everything up to `acked`. False: that was never sent. */
bool lane_out_ack(struct lane_out *lane, uint64_t acked, uint64_t now_us)
    __attribute__((warn_unused_result));
/* The receiver misses the first kept frame. Returns its sequence if it shall be sent again; 0: that
 * was done already. */
uint64_t lane_out_gap(struct lane_out *lane, uint64_t now_us);
/* When the oldest kept frame counts as lost; UINT64_MAX: nothing is kept. */
uint64_t lane_out_due(const struct lane_out *lane);
/* It does: lane_out_again names what shall be sent again. */
void lane_out_timeout(struct lane_out *lane);
/* The next frame to send again now; 0: none. */
uint64_t lane_out_again(struct lane_out *lane, uint64_t now_us);
void lane_out_check(const struct lane_out *lane);

/* ---- Receiver ---- */

struct lane_early {
    uint8_t *bytes; /* NULL: none */
    uint32_t n;
    uint32_t epoch;
};

struct lane_in {
    struct lane_in *next;     /* of the same source worker */
    struct list_link pending; /* the worker's lanes that owe an acknowledgement */
    struct timer timer;
    uint8_t from; /* node */
    uint8_t source_worker;
    uint8_t lane;  /* target worker as the frames name it */
    bool at_once;  /* the acknowledgement shall not wait */
    uint32_t owed; /* frames consumed and not yet acknowledged, ... */
    uint32_t owed_bytes;
    uint64_t delivered; /* consumed up to here */
    uint32_t early_n;
    uint32_t early_bytes;
    struct lane_early *early; /* by sequence modulo LANE_WINDOW; NULL: none yet */
};

enum lane_verdict {
    LANE_DELIVER,   /* consume the messages now, then lane_in_done */
    LANE_KEPT,      /* later: lane_in_next will give it */
    LANE_DUPLICATE, /* it was consumed, or is kept already */
    LANE_AHEAD,     /* no room to keep it: it will be sent again */
};

void lane_in_init(struct lane_in *lane, uint8_t from, uint8_t source_worker, uint8_t target_worker,
                  uint8_t timer_kind);
void lane_in_deinit(struct lane_in *lane);
/* What becomes of a frame with these messages, written in `epoch`; the receiver is in view_epoch.
 * Whatever it is, an acknowledgement is owed. */
enum lane_verdict lane_in_take(struct lane_in *lane, uint64_t sequence, uint32_t epoch,
                               uint32_t view_epoch, struct bytes messages);
/* The frame that may be consumed next has been, bytes of messages. */
void lane_in_done(struct lane_in *lane, uint32_t bytes);
/* A kept frame that may be consumed now; its bytes are good until lane_in_done. */
bool lane_in_next(const struct lane_in *lane, uint32_t view_epoch, struct bytes *messages_out);
/* Whether the next frame is missing although later ones came. */
bool lane_in_gap(const struct lane_in *lane);
/* Whether the acknowledgement should leave now although nothing else does. */
static inline bool lane_in_urgent(const struct lane_in *lane)
{
    return lane->at_once || lane->owed >= LANE_ACK_FRAMES || lane->owed_bytes >= LANE_ACK_BYTES;
}
void lane_in_acked(struct lane_in *lane);
void lane_in_check(const struct lane_in *lane);

#endif
