/* The sockets of one thread: bytes in by callback, bytes out from a queue, a wake-up from any
 * thread. Two backends with one behaviour: io_uring (multishot receive into provided buffers, all
 * submissions and waiting in one system call a round) and epoll where io_uring is missing or
 * switched off.
 *
 * Threads. Everything belongs to the thread that created the loop, except loop_wake.
 *
 * Bounds. What is queued for output is the caller's to bound (stream_queued); what arrives is
 * handed over at once, at most LOOP_RECEIVE_MAX bytes a call. */
#ifndef HORKOS_NET_LOOP_H
#define HORKOS_NET_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"

#define LOOP_RECEIVE_MAX (64u * 1024u)
/* Output below this that the kernel takes at the first attempt is not reported by `drained`. */
#define LOOP_DRAINED_MIN (16u * 1024u)
/* How long output that was queued when the other side closed may take to get there. */
#define LOOP_END_LINGER_US 1000000u

struct loop;
struct stream;

enum loop_kind {
    LOOP_AUTO, /* io_uring if this system has what the backend needs, else epoll */
    LOOP_URING,
    LOOP_EPOLL,
};
const char *loop_kind_name(enum loop_kind kind);

/* HK_ERR_NOMEM; HK_ERR_IO if the system refuses (with LOOP_URING: or lacks what is needed), errno
 * then says why. */
int loop_create(enum loop_kind kind, struct loop **loop_out) __attribute__((warn_unused_result));
/* Closes every stream without a callback. Not from within one. */
void loop_destroy(struct loop *loop);
/* Which backend it is: LOOP_URING or LOOP_EPOLL. */
enum loop_kind loop_kind(const struct loop *loop);

/* Hands queued output to the kernel, waits until something happens, somebody wakes the loop, or
 * timeout_us has passed (0: does not wait; UINT64_MAX: for ever), then calls back for all that
 * happened. Returns how many callbacks it made, which may be none before the time is over: a
 * signal, a wake-up of the past, or something that concerns only the loop also ends a wait. With 0
 * and nothing to do the io_uring backend makes no system call, so a busy thread may call it often.
 * Not from within a callback. */
uint32_t loop_poll(struct loop *loop, uint64_t timeout_us);

/* Ends the present or the next wait of loop_poll (a call with timeout 0 is no wait). What the
 * caller wrote before is seen by the loop's thread after that wait. Any thread, as long as the loop
 * exists. Makes no system call when nobody waits. */
void loop_wake(struct loop *loop);

/* Somebody whose work comes by other ways than streams: memory that another thread writes. */
struct loop_sleeper {
    struct list_link link; /* the loop's */
    /* The loop is about to wait. False: there is work, and it shall not. True: whoever makes work
     * for it from now on calls loop_wake (or sends bytes to one of the loop's streams). May call
     * nothing of the loop's. */
    bool (*sleep)(void *context);
    /* After each sleep that answered true. */
    void (*awake)(void *context);
    void *context;
};
/* From its own thread, not from within loop_poll. The caller's memory, until it is removed. */
void loop_add_sleeper(struct loop *loop, struct loop_sleeper *sleeper);
void loop_remove_sleeper(struct loop_sleeper *sleeper);

struct stream_ops {
    /* Bytes have arrived; they are good during the call. Not called while the stream is paused, but
     * for what was under way when it was. */
    void (*received)(void *owner, struct bytes bytes);
    /* All that was queued has gone to the kernel. Called if that took more than one attempt or was
     * an output of LOOP_DRAINED_MIN bytes and more; so who stops at a bound of stream_queued and
     * waits for this call must not choose a bound below LOOP_DRAINED_MIN. May be NULL. */
    void (*drained)(void *owner);
    /* The other side has shut its half: nothing more arrives. True: the owner may still send, and
     * ends the stream itself by stream_finish or stream_close (also within this call); `closed`
     * comes only if a send finds the connection broken. False, or no such function: `closed` comes
     * at once. May be NULL. */
    bool (*ended)(void *owner);
    /* The other side closed (error 0), or the connection broke (errno). Once, the last call; the
     * stream is gone afterwards, and in this call it takes only stream_close (which is not needed).
     * Not called for stream_close. Output that was queued when the other side closed is still
     * delivered if it takes it within LOOP_END_LINGER_US. */
    void (*closed)(void *owner, int error);
};

/* Takes over a connected, non-blocking stream socket and starts to receive. On an error the fd is
 * still the caller's. HK_ERR_NOMEM, HK_ERR_IO. ops must outlive the stream. No callback before the
 * next loop_poll. */
int stream_open(struct loop *loop, int fd, const struct stream_ops *ops, void *owner,
                struct stream **stream_out) __attribute__((warn_unused_result));

/* Forgets the stream at once, queued output with it, and closes the socket (io_uring: by the end of
 * the next loop_poll, for the kernel has to let go of it); no more callbacks. May be called from
 * within a callback, its own included. */
void stream_close(struct stream *stream);
/* The same once all output is out, or after linger_us; what arrives is thrown away. To let the
 * other side read the last bytes before the connection goes, our side is shut down first, and the
 * socket closed when the other has closed its own or linger_us is over. No more callbacks; the
 * stream is not the caller's any more. */
void stream_finish(struct stream *stream, uint64_t linger_us);

/* Room for bytes at the end of the output; valid until the next call on the stream or loop_poll.
 * stream_commit says how many were written there. NULL: no memory; the queue is as it was. */
uint8_t *stream_reserve(struct stream *stream, uint32_t bytes);
void stream_commit(struct stream *stream, uint32_t bytes);
/* Both in one, by copy. False: no memory. */
bool stream_write(struct stream *stream, struct bytes bytes) __attribute__((warn_unused_result));
/* Bytes that the kernel has not taken yet. */
uint64_t stream_queued(const struct stream *stream);

/* Receive nothing for a while: the kernel's buffers fill, and the other side notices. Takes effect
 * with the next loop_poll, so a pause that ends before costs nothing. A paused stream may learn
 * that its connection is gone only when it is resumed. */
void stream_pause(struct stream *stream);
void stream_resume(struct stream *stream);

int stream_fd(const struct stream *stream);

#endif
