/* What a link consists of; for link*.c and shm*.c (the queue) only. docs/NET.md has the format.
 *
 * Bytes of frames in FRAMES and fragment records are counted (sent, received); small view frames
 * are not. Always: acked <= sent <= acked + the peer's window; reported <= consumed <= received <=
 * consumed + the own window. */
#ifndef HORKOS_NET_LINK_STATE_H
#define HORKOS_NET_LINK_STATE_H

#include "net/link.h"
#include "net/link_mac.h"
#include "net/link_queue.h"

/* A record: header, body, MAC over both. */
#define RECORD_HEADER 16u
#define RECORD_BODY_MAX LINK_FRAGMENT
#define RECORD_EXTRA (RECORD_HEADER + LINK_MAC_BYTES)
#define RECORD_MAX (RECORD_BODY_MAX + RECORD_EXTRA)
#define RECORD_OPEN_BODY 4u
_Static_assert(RECORD_MAX <= LINK_OUTPUT_MIN, "link_output always takes one record");

enum record_kind {
    RECORD_OPEN = 1, /* the first in each direction: the sender's window for what it receives */
    RECORD_FRAMES,   /* whole small frames */
    RECORD_VIEW,     /* whole small view frames */
    RECORD_FIRST,    /* the first LINK_FRAGMENT bytes of a large frame */
    RECORD_NEXT,     /* the next LINK_FRAGMENT bytes of it, or what is left */
    RECORD_CREDIT,   /* no body: the header says it */
};

enum {
    RECORD_AT_BODY_BYTES = 0,
    RECORD_AT_KIND = 4,
    RECORD_AT_RESERVED = 5,
    RECORD_AT_CONSUMED = 8,
};

/* Of a frame's header, docs/WIRE.md. */
#define FRAME_AT_KIND 14u

/* A large frame on its way out or in; in: all of it is in the first piece. */
struct link_large {
    struct link_large *next;
    struct pieces pieces;
    uint32_t bytes;      /* of the frame */
    uint32_t done;       /* of them are out, or have arrived */
    uint32_t capacity;   /* of the pieces */
    uint32_t uncredited; /* in: arrived and not yet consumed */
    uint64_t after;      /* in: the value of small_in when it was complete */
};

struct link_larges {
    struct link_large *first, *last;
};

struct link_out {
    struct link_mac mac;
    struct link_queue view, small;
    struct link_larges large;
    uint64_t large_bytes; /* not yet out */
    uint64_t large_held;
    uint64_t sent, acked;
    uint64_t large_sent; /* the value of sent when the last large frame had gone */
    uint64_t queue_max;
    uint32_t window; /* the peer's; 0: it has not said it yet */
    bool opened;     /* our OPEN is out */
    bool turn_large; /* whose turn it is among small and large frames, if both wait */
};

/* What link_receive handed out last: it goes when the next one is asked for. */
enum link_taken { TAKEN_NOTHING, TAKEN_VIEW, TAKEN_SMALL, TAKEN_LARGE };

struct link_in {
    struct link_mac mac;
    struct link_queue view, small;
    struct link_larges ready;    /* complete large frames */
    struct link_large *building; /* or NULL */
    struct link_large *lent;     /* handed out, TAKEN_LARGE */
    uint64_t large_held;
    uint64_t small_in, small_out; /* bytes that ever came into and left `small` */
    uint64_t received, consumed, reported;
    uint64_t dropped;
    uint8_t *partial; /* the start of a record whose end has not arrived */
    uint32_t partial_used, partial_capacity;
    uint32_t window;
    uint32_t lent_bytes; /* handed out, TAKEN_VIEW and TAKEN_SMALL */
    enum link_taken taken;
    bool opened; /* the peer's OPEN is here */
};

struct link {
    struct link_out out;
    struct link_in in;
    enum link_fault fault;
};

void link_larges_push(struct link_larges *larges, struct link_large *large);
struct link_large *link_larges_pop(struct link_larges *larges);
void link_large_free(struct link_large *large, uint64_t *held);

/* The peer says what it has consumed. */
enum link_fault link_out_credit(struct link_out *out, uint64_t consumed);
void link_out_clear(struct link_out *out);
void link_in_clear(struct link_in *in);

#endif
