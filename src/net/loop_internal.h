/* What the files of the loop share: the stream and the loop without the system, and the table that
 * a backend is. For loop*.c and their tests only.
 *
 * A stream's life, and who moves it on:
 *
 *     OPEN      -> FINISHING  stream_finish; the peer ended while output was queued
 *     OPEN      -> GONE       stream_close; the peer ended or the connection broke
 *     FINISHING -> DRAINING   all output out: our side is shut down
 *     FINISHING -> GONE       broken, lingered too long, or out and the peer had ended before
 *     DRAINING  -> GONE       the peer ended, broken, or lingered too long
 *
 * I1. Only an OPEN stream has an owner that is called. I2. A GONE stream is in no list but the
 * loop's own and `touched`, and its memory and socket last until the backend calls stream_release.
 * I3. Whatever the kernel has to be told of a stream is derived from its state when the backend
 * settles it, so a stream whose state has changed only has to be in `touched`. */
#ifndef HORKOS_NET_LOOP_INTERNAL_H
#define HORKOS_NET_LOOP_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "net/loop.h"

#define LOOP_LINE 64
/* Buffers for output: powers of two from this on. The smallest OUTPUT_CLASSES of them are kept by
 * the loop for the next that needs one, at most LOOP_SPARE_MAX bytes together. */
#define OUTPUT_MIN (16u * 1024u)
#define OUTPUT_CLASSES 7u
#define LOOP_SPARE_MAX (4u * 1024u * 1024u)
/* The most that one attempt to send hands over: other streams want their turn. */
#define SEND_MAX (256u * 1024u)

#define STREAM_SLOTS_MAX (1u << 24)
#define STREAM_SLOT_NONE UINT32_MAX

enum stream_state { STREAM_OPEN, STREAM_FINISHING, STREAM_DRAINING, STREAM_GONE };

/* Bytes begin .. end wait to be sent; capacity 0: no memory is held. */
struct output {
    uint8_t *at;
    size_t capacity, begin, end;
};

/* The part of a stream that io_uring needs: what the kernel has in hand. */
struct stream_uring {
    bool receiving;         /* a multishot receive is armed */
    bool receive_cancelled; /* and is being cancelled */
    bool sending;           /* a send is under way */
    bool send_cancelled;
    bool send_quiet; /* it must be finished when submitted, and says nothing if all went well */
    bool send_waits; /* the kernel was full: let it wait for room */
    uint32_t send_bytes;
    uint32_t send_position;      /* in the submission queue */
    struct list_link quiet_link; /* among the quiet sends, in the order of submission */
};

struct stream_epoll {
    uint32_t events; /* what the socket is registered for; 0: it is not */
    bool full;       /* the kernel took less than it was given */
};

struct stream {
    struct loop *loop;
    const struct stream_ops *ops;
    void *owner;
    int fd;
    int error; /* why sending failed; 0: it did not */
    uint32_t slot;
    enum stream_state state;
    bool paused;
    bool ended; /* the peer will send nothing more */
    bool owed;  /* somebody wants to know when the output is out */
    uint64_t deadline_us;
    struct output filling; /* what is being written; begin is 0 */
    struct output sending; /* what is being sent: it neither moves nor grows */
    struct list_link link;
    struct list_link touched; /* among those that the backend has to settle */
    struct list_link news;    /* in loop.drained or loop.broken */
    struct list_link finishing;
    union {
        struct stream_uring uring;
        struct stream_epoll epoll;
    };
};

/* Streams have numbers, so that what the kernel says about one that is gone is not taken for
 * another. */
struct stream_slot {
    struct stream *stream; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

struct loop_backend;

struct loop {
    const struct loop_backend *backend;
    struct stream_slot *slots;
    uint32_t slots_count, slot_free;
    struct list_link streams;
    struct list_link touched;
    struct list_link drained; /* all their output is out and somebody wants to know */
    struct list_link broken;
    struct list_link finishing;
    struct list_link sleepers;
    uint64_t deadline_us; /* no later than the first of `finishing` */
    uint32_t callbacks;   /* of this loop_poll */
    bool polling;
    void *spares[OUTPUT_CLASSES]; /* each points to the next */
    size_t spare_bytes;
    int wake_fd;

    /* The owner says that it sleeps, then looks at woken; a waker sets woken, then looks at
     * sleeping. All four are sequentially consistent, so one of the two sees the other. */
    _Alignas(LOOP_LINE) _Atomic bool sleeping;
    _Atomic bool woken;
};

/* A backend's loop begins with struct loop and has loop_bytes. */
struct loop_backend {
    enum loop_kind kind;
    size_t loop_bytes;
    /* 0, or an errno after which nothing is held. Sets wake_fd. */
    int (*init)(struct loop *loop);
    /* All streams are GONE; waits until the last has been released. */
    void (*deinit)(struct loop *loop);
    /* 0 or an errno. */
    int (*attach)(struct stream *stream);
    /* The stream is GONE: lets it be released as soon as the kernel uses nothing of it. */
    void (*detach)(struct stream *stream);
    void (*poll)(struct loop *loop, uint64_t timeout_us);
};
extern const struct loop_backend loop_backend_uring;      /* the best that the kernel has */
extern const struct loop_backend loop_backend_uring_coop; /* as on kernels before 6.1 */
extern const struct loop_backend loop_backend_epoll;

int loop_create_backend(const struct loop_backend *backend, struct loop **loop_out)
    __attribute__((warn_unused_result));

/* ---- For backends: loop.c ---- */

/* Whether to wait: says that the loop sleeps unless somebody has woken it. If true, loop_sleep_end
 * must follow. */
bool loop_sleep_begin(struct loop *loop);
void loop_sleep_end(struct loop *loop);

/* The stream of this slot, NULL if that one is gone. */
struct stream *loop_stream(const struct loop *loop, uint32_t slot, uint32_t generation);
static inline uint32_t stream_generation(const struct stream *stream)
{
    return stream->loop->slots[stream->slot].generation;
}

void stream_touch(struct stream *stream);
/* Whether the kernel shall be asked for what arrives. */
bool stream_wants_input(const struct stream *stream);
void stream_arrived(struct stream *stream, struct bytes bytes);
/* error: 0 for the end of what the peer sends. */
void stream_ended(struct stream *stream, int error);
/* A send failed; the owner learns it when all that had arrived is handed over. */
void stream_failed(struct stream *stream, int error);
/* Calls those whose output is out. */
void loop_report_drained(struct loop *loop);
/* Closes the socket and frees the stream. */
void stream_release(struct stream *stream);

/* ---- Output: loop_output.c ---- */

/* The bytes to send next, at most SEND_MAX; stay in place until stream_sent. n is 0: none. */
struct bytes stream_next_output(struct stream *stream);
/* The kernel has taken n more bytes. */
void stream_sent(struct stream *stream, size_t n);
void stream_drop_output(struct stream *stream);
void loop_free_spares(struct loop *loop);

#endif
