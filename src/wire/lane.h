/* The head of a lane frame's body (FRAME_LANE, docs/WIRE.md): which place its messages have among
 * those of their lane, and what has come of the lane that leads back. A lane is one direction from
 * a worker of one incarnation to a worker of another; its messages are delivered once and in order
 * (node/lane.h). */
#ifndef HORKOS_WIRE_LANE_H
#define HORKOS_WIRE_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

#define LANE_HEAD 24u
#define LANE_WORKERS 64u /* lanes of one worker towards one node */

struct lane_head {
    uint64_t sequence;  /* from 1 on; 0: an acknowledgement alone, no message follows */
    uint64_t acked;     /* everything up to it has been consumed */
    uint32_t life;      /* the epoch that admitted the younger of the two processes: the lane began
                          with it */
    uint8_t acked_lane; /* which lane `acked` is about: the target worker as its frames name it */
    bool acks;          /* acked and acked_lane mean something */
    bool gap;           /* what follows acked is missing, although later frames came */
};

void lane_head_encode(const struct lane_head *head, uint8_t out[LANE_HEAD]);
/* The head of a lane frame's whole body. NULL and *head_out, or why no correct member writes it:
 * then nothing is written. */
const char *lane_head_decode(struct bytes body, struct lane_head *head_out)
    __attribute__((warn_unused_result));

#endif
