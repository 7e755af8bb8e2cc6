/* Frames between two workers through memory that both see: two bounded rings with one producer and
 * one consumer each, and what belongs to them on either side. No sockets, no threads and no system
 * calls here; who is to be woken is told by flags, and the transport does it (hub.c). docs/NET.md,
 * "Rings", has the layout and the rules.
 *
 * Promises, as long as both sides live: frames arrive as they were sent, each once. Small frames of
 * the view protocol (frame kind FRAME_VIEW, at most shm_small_max bytes) pass what waits in the
 * sender's queue and arrive in their own order; all others, large and small, arrive in the order in
 * which they were sent. Only a frame that shm_send or shm_give refused is missing.
 *
 * Trust. The memory may be shared with a process that lies. All that is read from it is checked:
 * positions against what they can be, lengths against what is there. A frame is handed out in place
 * only where the memory is private to this process (`foreign` is false); else it is copied first,
 * so that it cannot change once it was checked. A fault ends the connection, nothing else.
 *
 * Bounds. The ring; the sender's queue_max; one large frame that is being put together at the
 * receiver, whose memory follows what has arrived.
 *
 * Threads. Each end belongs to one thread. */
#ifndef HORKOS_NET_SHM_H
#define HORKOS_NET_SHM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/pieces.h"
#include "net/link_queue.h"
#include "net/link_state.h"

#define SHM_LINE 64u
#define SHM_RING_MIN 4096u
#define SHM_RING_MAX (64u * 1024u * 1024u)

/* What an end says of itself to the other: bits of shm_side.sleep. */
#define SHM_ASLEEP 1u     /* it wants to be woken when frames come */
#define SHM_WANTS_ROOM 2u /* and when its ring has room again */

/* What end i writes (tail, sleep) and what it has read of the other's ring (head). Positions count
 * bytes for ever and are multiples of 8; the lowest bit of tail says that nothing follows. */
struct shm_side {
    /* release (with a look at the other's sleep: sequentially consistent) by the producer; pairs
     * with the consumer's acquire: what stands before it may be read. */
    _Alignas(SHM_LINE) _Atomic uint64_t tail;
    /* release (or sequentially consistent, as tail) by the consumer; pairs with the producer's
     * acquire: what stands before it may be written again. */
    _Alignas(SHM_LINE) _Atomic uint64_t head;
    /* An end that lies down writes this, then looks at tail and head; the other writes those, then
     * looks at this. All four are sequentially consistent, so one of the two sees the other. */
    _Alignas(SHM_LINE) _Atomic uint32_t sleep;
};

/* The memory between two ends: side 0 and its ring, side 1 and its ring. */
struct shm_area {
    struct shm_side side[2];
    uint8_t rings[]; /* ring of side 0, ring of side 1 */
};
_Static_assert(sizeof(struct shm_area) == 6 * SHM_LINE, "the layout is in docs/NET.md");

/* Bytes of an area whose rings have ring_bytes each (a power of two, SHM_RING_MIN ..
 * SHM_RING_MAX). */
uint64_t shm_area_bytes(uint32_t ring_bytes);
/* Positions of an area whose bytes are zero are right already; this is for memory that is not. */
void shm_area_init(struct shm_area *area);

enum shm_fault {
    SHM_OK,
    SHM_POSITION, /* a position that cannot be */
    SHM_RECORD,   /* a record that does not fit, or of no kind */
    SHM_FRAGMENT, /* fragments that do not fit together */
    SHM_FRAME,    /* no frame inside */
    SHM_MEMORY,
    SHM_FAULTS
};
extern const char *const shm_fault_names[SHM_FAULTS];

/* One end. */
struct shm {
    struct shm_side *own, *other;
    uint32_t ring_bytes;
    bool foreign;
    enum shm_fault fault;

    /* Sending. */
    uint8_t *out;
    uint64_t tail, published; /* written so far; how much of it the other side may read */
    bool untold;              /* something was published without a look at its sleep */
    uint64_t head_seen;
    struct link_queue view, small;
    struct link_larges large;
    uint64_t small_in, small_out; /* bytes that ever came into and left `small` */
    uint64_t large_bytes, large_held;
    uint64_t large_end; /* the value of tail when the last large frame had gone */
    uint64_t queue_max;

    /* Receiving. */
    const uint8_t *in;
    uint64_t head, released; /* read so far; how much of it the other side may write again */
    uint64_t lent;           /* bytes at head that go with the next shm_receive */
    uint64_t tail_seen;
    uint8_t *copy; /* foreign: the small frame that was handed out */
    struct {
        uint8_t *at; /* NULL: none */
        uint32_t bytes, done, capacity;
    } building; /* a large frame, and when it is complete the one that was handed out */
    bool ended; /* the other side has said that nothing follows, and all has been received */
};

struct shm_config {
    uint32_t ring_bytes;
    uint64_t queue_max; /* bytes that may wait for room; at least one largest frame */
    bool foreign;       /* the area is shared with another process */
};

/* index: which side is ours. The area must outlive the end. HK_ERR_NOMEM. */
int shm_init(struct shm *shm, const struct shm_config *config, struct shm_area *area,
             uint32_t index) __attribute__((warn_unused_result));
void shm_deinit(struct shm *shm);

/* The largest frame that travels in one piece. */
uint32_t shm_small_max(const struct shm *shm);

/* Writes one sealed frame into the ring, or queues it. False when queue_max would be passed, there
 * is no memory, or the end is at fault: the frame is dropped, the caller counts it. */
bool shm_send(struct shm *shm, struct bytes frame) __attribute__((warn_unused_result));
/* The same for a frame whose pieces are the callee's from here on, whatever it answers. */
bool shm_give(struct shm *shm, struct pieces *frame) __attribute__((warn_unused_result));
/* Moves what waits into the ring and tells the other side of all that stands there. True: the other
 * side sleeps, and this end is the one that has to wake it. */
bool shm_flush(struct shm *shm) __attribute__((warn_unused_result));
/* Whether shm_flush may have something to do. */
bool shm_has_output(const struct shm *shm);
/* Drops what is queued and is no small view frame, except a large frame that is partly out. */
void shm_forget(struct shm *shm);
/* Nothing follows. True: wake the other side. */
bool shm_end(struct shm *shm) __attribute__((warn_unused_result));

/* Whether shm_receive would find something, a fault or the end included. */
bool shm_pending(struct shm *shm);
/* The next whole frame, good until the next call. False: none now (or an end, or a fault: see
 * there). Does a bounded amount of work, so it may also answer false while fragments of a large
 * frame follow; shm_pending then says so. *wake_out: the other side waits for room; wake it. */
bool shm_receive(struct shm *shm, struct bytes *frame_out, bool *wake_out);

/* Before its thread sleeps: false when there is something to do after all; then nothing has
 * changed. shm_awake undoes it. */
bool shm_sleep(struct shm *shm);
void shm_awake(struct shm *shm);

/* Bytes queued or in the ring that the other side has not taken, as far as it has said: it may be
 * silent about a quarter of the ring. */
uint64_t shm_outstanding(const struct shm *shm);
/* Whether a large frame (above shm_small_max) is queued or not yet taken. */
bool shm_large_under_way(const struct shm *shm);
/* Memory that this end holds, the area not included. */
uint64_t shm_bytes_held(const struct shm *shm);

#endif
