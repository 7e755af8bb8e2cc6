/* What the two files of the io_uring backend share: its loop, and making one that works. */
#ifndef HORKOS_NET_LOOP_URING_H
#define HORKOS_NET_LOOP_URING_H

#include <liburing.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/loop_internal.h"

#define URING_SUBMISSIONS 512u
#define URING_COMPLETIONS 8192u

/* Buffers for what arrives, shared by all streams: each is back when its bytes were handed over, so
 * they only have to last for one round. A buffer begins a few cache lines further into its page
 * than the one before, for otherwise the first lines of all would fall on the same few sets of the
 * cache. */
#define URING_BUFFERS 256u
#define URING_BUFFER_BYTES (16u * 1024u)
#define URING_BUFFER_STRIDE (URING_BUFFER_BYTES + 3u * LOOP_LINE)
#define URING_BUFFER_GROUP 0
_Static_assert(URING_BUFFER_BYTES <= LOOP_RECEIVE_MAX, "a buffer is handed over whole");
_Static_assert((URING_BUFFERS & (URING_BUFFERS - 1)) == 0, "a ring of buffers is a power of two");

/* How a send is asked for that is over when it has been submitted: all that fits is taken at once
 * (without MSG_WAITALL the kernel may stop earlier), and it never waits. If everything fitted it is
 * silent, so it does not end the wait that is part of the same system call; else it completes with
 * what was taken, or with EAGAIN. */
#define URING_SEND_NOW (MSG_NOSIGNAL | MSG_DONTWAIT | MSG_WAITALL)
#define URING_SEND_PATIENT MSG_NOSIGNAL

struct uring_loop {
    struct loop base;
    struct io_uring ring;
    struct io_uring_buf_ring *buffer_ring;
    uint8_t *buffers;
    struct list_link quiet; /* streams with a send that says nothing if all went well */
    uint64_t wake_count;    /* the kernel reads wake_fd into it */
    bool wake_armed, wake_cancelled;
};

/* Sets up ring and buffers with these flags and tries out what the backend relies on. 0, or an
 * errno after which nothing is held: EOPNOTSUPP when this kernel does something else. */
int uring_open(struct uring_loop *u, unsigned setup_flags);
/* Nothing may be in the kernel's hands. */
void uring_close(struct uring_loop *u);

void uring_prepare_receive(struct io_uring_sqe *sqe, int fd);
/* quiet: with URING_SEND_NOW only. */
void uring_prepare_send(struct io_uring_sqe *sqe, int fd, struct bytes bytes, int flags,
                        bool quiet);
/* Silent if it finds something to cancel. */
void uring_prepare_cancel(struct io_uring_sqe *sqe, uint64_t target);

static inline uint8_t *uring_buffer(const struct uring_loop *u, uint32_t id)
{
    return u->buffers + (size_t)id * URING_BUFFER_STRIDE;
}

static inline void uring_give_buffer(struct uring_loop *u, uint32_t id)
{
    io_uring_buf_ring_add(u->buffer_ring, uring_buffer(u, id), URING_BUFFER_BYTES,
                          (unsigned short)id, (int)URING_BUFFERS - 1, 0);
    io_uring_buf_ring_advance(u->buffer_ring, 1);
}

#endif
