/* The loop on io_uring. A round is one system call: it hands over all sends and other requests,
 * runs what the kernel has put off for us, and waits.
 *
 * Sends. A reply normally fits into the socket's buffer, so it is asked for as URING_SEND_NOW: over
 * by the time the call has submitted it, and silent. That such a send has no completion when the
 * call has returned means that all was taken (uring_conclude_quiet). What did not fit is sent
 * again without the flags; then the kernel waits for room, and the completion ends our wait.
 *
 * Receives. One multishot request a stream. It ends when the buffers run out, and at times for no
 * reason that concerns us; whatever the cause, the stream is touched and uring_settle arms it again
 * if it still wants input. All buffers are back by the end of a round, before anything is armed.
 *
 * Closing. The kernel holds the socket as long as a request is under way, so these are cancelled,
 * and the last completion releases the stream. What completes later for a number that is in no use
 * any more (a cancellation that found nothing) is ignored.
 *
 * With timeout 0, nothing to submit, and neither a completion nor put-off work (IORING_SQ_TASKRUN),
 * a round is no system call at all: the flags are in memory that the kernel shares with us. */
#include "net/loop_uring.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

enum uring_op {
    URING_RECEIVE = 1,
    URING_SEND,
    URING_CANCEL_RECEIVE,
    URING_CANCEL_SEND,
    URING_WAKE
};

/* Of what a completion tells: the request, and slot and generation of its stream. */
static uint64_t uring_data(enum uring_op op, uint32_t slot, uint32_t generation)
{
    return (uint64_t)op << 56 | (uint64_t)slot << 32 | generation;
}

static uint64_t uring_stream_data(const struct stream *s, enum uring_op op)
{
    return uring_data(op, s->slot, stream_generation(s));
}

static struct uring_loop *uring_of(struct loop *loop)
{
    return (struct uring_loop *)loop;
}

/* ---- Calling the kernel ---- */

/* Anything else would mean that completions are lost, that another thread is at work here, or that
 * the ring is damaged. */
static void uring_check(int result)
{
    HK_ASSERT(result >= 0 || result == -ETIME || result == -EINTR || result == -EAGAIN ||
              result == -EBUSY || result == -ENOMEM);
}

static unsigned uring_flags(const struct uring_loop *u)
{
    return IO_URING_READ_ONCE(*u->ring.sq.kflags);
}

static void uring_wait(struct uring_loop *u, uint64_t timeout_us)
{
    struct __kernel_timespec t = {
        .tv_sec = (long long)(timeout_us / 1000000u),
        .tv_nsec = (long long)(timeout_us % 1000000u * 1000u),
    };
    struct io_uring_cqe *cqe = NULL;
    uring_check(io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1,
                                                 timeout_us == UINT64_MAX ? NULL : &t, NULL));
}

/* NULL: the queue is full and the kernel takes nothing now. */
static struct io_uring_sqe *uring_sqe(struct uring_loop *u, uint64_t data)
{
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    if (sqe == NULL) {
        uring_check(io_uring_submit(&u->ring));
        sqe = io_uring_get_sqe(&u->ring);
    }
    if (sqe != NULL) {
        io_uring_sqe_set_data64(sqe, data);
    }
    return sqe;
}

/* ---- From a stream's state to requests ---- */

static bool uring_idle(const struct stream *s)
{
    return !s->uring.receiving && !s->uring.sending;
}

static bool uring_cancel(struct uring_loop *u, struct stream *s, enum uring_op op, bool *done)
{
    if (*done) {
        return true;
    }
    enum uring_op target = op == URING_CANCEL_RECEIVE ? URING_RECEIVE : URING_SEND;
    struct io_uring_sqe *sqe = uring_sqe(u, uring_stream_data(s, op));
    if (sqe == NULL) {
        return false;
    }
    uring_prepare_cancel(sqe, uring_stream_data(s, target));
    *done = true;
    return true;
}

static bool uring_receive(struct uring_loop *u, struct stream *s)
{
    struct io_uring_sqe *sqe = uring_sqe(u, uring_stream_data(s, URING_RECEIVE));
    if (sqe == NULL) {
        return false;
    }
    uring_prepare_receive(sqe, s->fd);
    s->uring.receiving = true;
    return true;
}

static bool uring_send(struct uring_loop *u, struct stream *s)
{
    struct bytes out = stream_next_output(s);
    if (out.n == 0) {
        return true;
    }
    struct io_uring_sqe *sqe = uring_sqe(u, uring_stream_data(s, URING_SEND));
    if (sqe == NULL) {
        return false;
    }
    bool waits = s->uring.send_waits;
    if (out.n >= LOOP_DRAINED_MIN || out.n < stream_queued(s) || waits) {
        s->owed = true;
    }
    bool quiet = !s->owed;
    uring_prepare_send(sqe, s->fd, out, waits ? URING_SEND_PATIENT : URING_SEND_NOW, quiet);
    s->uring.sending = true;
    s->uring.send_quiet = quiet;
    s->uring.send_bytes = out.n;
    if (quiet) {
        s->uring.send_position = u->ring.sq.sqe_tail;
        list_push_back(&u->quiet, &s->uring.quiet_link);
    }
    return true;
}

/* Asks the kernel for what this stream's state calls for. False: it took no more requests; again
 * later. */
static bool uring_settle(struct uring_loop *u, struct stream *s)
{
    struct stream_uring *k = &s->uring;
    if (stream_wants_input(s)) {
        if (!k->receiving && !uring_receive(u, s)) {
            return false;
        }
    } else if (k->receiving && !uring_cancel(u, s, URING_CANCEL_RECEIVE, &k->receive_cancelled)) {
        return false;
    }
    if (s->state != STREAM_GONE) {
        return k->sending || s->error != 0 || uring_send(u, s);
    }
    if (k->sending && !uring_cancel(u, s, URING_CANCEL_SEND, &k->send_cancelled)) {
        return false;
    }
    if (uring_idle(s)) {
        stream_release(s);
    }
    return true;
}

static bool uring_settle_touched(struct uring_loop *u)
{
    struct list_link touched;
    list_init(&touched);
    list_append(&touched, &u->base.touched);
    bool settled = true;
    while (settled && !list_empty(&touched)) {
        struct stream *s = list_entry(touched.next, struct stream, touched);
        list_remove(&s->touched);
        settled = uring_settle(u, s);
        if (!settled) {
            stream_touch(s);
        }
    }
    list_append(&u->base.touched, &touched);
    return settled;
}

static bool uring_arm_wake(struct uring_loop *u)
{
    if (u->wake_armed) {
        return true;
    }
    struct io_uring_sqe *sqe = uring_sqe(u, uring_data(URING_WAKE, 0, 0));
    if (sqe == NULL) {
        return false;
    }
    io_uring_prep_read(sqe, u->base.wake_fd, &u->wake_count, sizeof(u->wake_count), 0);
    u->wake_armed = true;
    return true;
}

/* ---- From completions to streams ---- */

/* A request of this stream is over. */
static void uring_over(struct stream *s)
{
    if (s->state != STREAM_GONE) {
        stream_touch(s);
    } else if (uring_idle(s)) {
        stream_release(s);
    }
}

static void uring_take_send(struct stream *s, int result)
{
    struct stream_uring *k = &s->uring;
    if (k->send_quiet) {
        list_remove(&k->quiet_link);
    }
    k->sending = k->send_quiet = k->send_cancelled = false;
    if (result >= 0) {
        k->send_waits = (uint32_t)result < k->send_bytes;
        s->owed = s->owed || k->send_waits;
        stream_sent(s, (size_t)result);
    } else if (result == -EAGAIN || result == -EINTR || result == -ECANCELED) {
        k->send_waits = result == -EAGAIN;
    } else if (s->state != STREAM_GONE) {
        stream_failed(s, -result);
    }
    uring_over(s);
}

/* The quiet sends that were submitted and have not completed have sent everything. To be called
 * when all completions so far have been seen. */
static void uring_conclude_quiet(struct uring_loop *u)
{
    unsigned head = io_uring_smp_load_acquire(u->ring.sq.khead);
    while (!list_empty(&u->quiet)) {
        struct stream *s = list_entry(u->quiet.next, struct stream, uring.quiet_link);
        if ((int32_t)(head - s->uring.send_position) < 0) {
            return;
        }
        uring_take_send(s, (int)s->uring.send_bytes);
    }
}

static void uring_take_receive(struct uring_loop *u, uint32_t slot, uint32_t generation,
                               const struct io_uring_cqe *cqe)
{
    struct stream *s = loop_stream(&u->base, slot, generation);
    bool over = (cqe->flags & IORING_CQE_F_MORE) == 0;
    if (s != NULL && over) {
        s->uring.receiving = s->uring.receive_cancelled = false;
    }
    int result = cqe->res;
    if ((cqe->flags & IORING_CQE_F_BUFFER) != 0) {
        uint32_t id = cqe->flags >> IORING_CQE_BUFFER_SHIFT;
        if (s != NULL && result > 0) {
            stream_arrived(s, bytes_of(uring_buffer(u, id), (uint32_t)result));
        }
        uring_give_buffer(u, id);
    }
    /* The owner may have closed it. */
    s = loop_stream(&u->base, slot, generation);
    if (s == NULL || !over) {
        return;
    }
    if (result <= 0 && result != -ENOBUFS && result != -ECANCELED && result != -EAGAIN &&
        result != -EINTR) {
        stream_ended(s, -result);
        s = loop_stream(&u->base, slot, generation);
    }
    if (s != NULL) {
        uring_over(s);
    }
}

static void uring_take(struct uring_loop *u, const struct io_uring_cqe *cqe)
{
    enum uring_op op = (enum uring_op)(cqe->user_data >> 56);
    uint32_t slot = (uint32_t)(cqe->user_data >> 32) & (STREAM_SLOTS_MAX - 1);
    uint32_t generation = (uint32_t)cqe->user_data;
    struct stream *s;
    switch (op) {
    case URING_RECEIVE:
        uring_take_receive(u, slot, generation, cqe);
        break;
    case URING_SEND:
        break; /* uring_take_sends had it */
    case URING_CANCEL_RECEIVE:
    case URING_CANCEL_SEND:
        /* It found nothing that it could cancel: the request has completed, or is about to go on in
         * a way that cannot be stopped just now. If it still exists, again. */
        s = loop_stream(&u->base, slot, generation);
        if (s != NULL) {
            *(op == URING_CANCEL_SEND ? &s->uring.send_cancelled : &s->uring.receive_cancelled) =
                false;
            stream_touch(s);
        }
        break;
    case URING_WAKE:
        u->wake_armed = u->wake_cancelled = false;
        break;
    }
}

/* Sends first, so that whoever is called about what arrived finds stream_queued as it is. */
static uint32_t uring_take_sends(struct uring_loop *u)
{
    struct io_uring_cqe *cqe;
    unsigned head;
    uint32_t count = 0;
    /* Read before the completions: while some wait for room in the queue, the absence of one says
     * nothing. */
    bool all = (uring_flags(u) & IORING_SQ_CQ_OVERFLOW) == 0;
    io_uring_for_each_cqe(&u->ring, head, cqe)
    {
        count++;
        if (cqe->user_data >> 56 == URING_SEND) {
            uint32_t slot = (uint32_t)(cqe->user_data >> 32) & (STREAM_SLOTS_MAX - 1);
            struct stream *s = loop_stream(&u->base, slot, (uint32_t)cqe->user_data);
            /* A stream outlives its requests. */
            HK_ASSERT(s != NULL && s->uring.sending);
            uring_take_send(s, cqe->res);
        }
    }
    if (all) {
        uring_conclude_quiet(u);
    }
    return count;
}

static void uring_reap(struct uring_loop *u)
{
    uint32_t count = uring_take_sends(u);
    loop_report_drained(&u->base);
    unsigned head = *u->ring.cq.khead;
    for (uint32_t i = 0; i < count; i++) {
        uring_take(u, &u->ring.cq.cqes[(head + i) & u->ring.cq.ring_mask]);
    }
    io_uring_cq_advance(&u->ring, count);
}

/* ---- The backend ---- */

static void uring_poll(struct loop *loop, uint64_t timeout_us)
{
    struct uring_loop *u = uring_of(loop);
    bool settled = uring_settle_touched(u);
    if (!settled || io_uring_cq_ready(&u->ring) > 0 || !list_empty(&loop->broken) ||
        !list_empty(&loop->drained)) {
        timeout_us = 0;
    }
    if (timeout_us > 0 && uring_arm_wake(u) && loop_sleep_begin(loop)) {
        uring_wait(u, timeout_us);
        loop_sleep_end(loop);
    } else if (io_uring_sq_ready(&u->ring) > 0 ||
               (uring_flags(u) & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0) {
        uring_check(io_uring_submit_and_get_events(&u->ring));
    }
    uring_reap(u);
}

static int uring_attach(struct stream *s)
{
    list_init(&s->uring.quiet_link);
    stream_touch(s);
    return 0;
}

static void uring_detach(struct stream *s)
{
    if (uring_idle(s)) {
        stream_release(s);
    } else {
        stream_touch(s);
    }
}

static int uring_init_with(struct loop *loop, unsigned setup_flags)
{
    struct uring_loop *u = uring_of(loop);
    list_init(&u->quiet);
    /* Blocking: for a non-blocking one the kernel would answer EAGAIN instead of waiting. */
    loop->wake_fd = eventfd(0, EFD_CLOEXEC);
    if (loop->wake_fd < 0) {
        return errno;
    }
    int error = uring_open(u, setup_flags);
    if (error != 0) {
        (void)close(loop->wake_fd);
    }
    return error;
}

/* Completions are worked out inside our own calls, never by interrupting us; the flag says when
 * there is something to work out. */
static int uring_init_coop(struct loop *loop)
{
    return uring_init_with(loop, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_COOP_TASKRUN |
                                     IORING_SETUP_TASKRUN_FLAG);
}

static int uring_init(struct loop *loop)
{
    /* Kernel 6.1: only in io_uring_enter, all at once. */
    int error = uring_init_with(loop, IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN |
                                          IORING_SETUP_TASKRUN_FLAG);
    return error == EINVAL || error == EOPNOTSUPP ? uring_init_coop(loop) : error;
}

static void uring_deinit(struct loop *loop)
{
    struct uring_loop *u = uring_of(loop);
    while (!list_empty(&loop->streams) || u->wake_armed) {
        (void)uring_settle_touched(u);
        if (u->wake_armed && !u->wake_cancelled) {
            struct io_uring_sqe *sqe = uring_sqe(u, 0);
            if (sqe != NULL) {
                uring_prepare_cancel(sqe, uring_data(URING_WAKE, 0, 0));
                u->wake_cancelled = true;
            }
        }
        if (!list_empty(&loop->streams) || u->wake_armed) {
            uring_wait(u, 10000);
            uring_reap(u);
        }
    }
    uring_close(u);
    (void)close(loop->wake_fd);
}

const struct loop_backend loop_backend_uring = {
    .kind = LOOP_URING,
    .loop_bytes = sizeof(struct uring_loop),
    .init = uring_init,
    .deinit = uring_deinit,
    .attach = uring_attach,
    .detach = uring_detach,
    .poll = uring_poll,
};

const struct loop_backend loop_backend_uring_coop = {
    .kind = LOOP_URING,
    .loop_bytes = sizeof(struct uring_loop),
    .init = uring_init_coop,
    .deinit = uring_deinit,
    .attach = uring_attach,
    .detach = uring_detach,
    .poll = uring_poll,
};
