/* Makes the ring of a loop, or says why this system cannot have one. Kernels tell of few of their
 * abilities, and some have had them wrong, so what the backend relies on is tried out: a few dozen
 * microseconds for each loop. */
#include "net/loop_uring.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define RING_BYTES (URING_BUFFERS * sizeof(struct io_uring_buf))
#define MAPPED_BYTES (RING_BYTES + (size_t)URING_BUFFERS * URING_BUFFER_STRIDE)
#define FEATURES                                                                                   \
    (IORING_FEAT_NODROP | IORING_FEAT_FAST_POLL | IORING_FEAT_EXT_ARG | IORING_FEAT_CQE_SKIP)

void uring_prepare_receive(struct io_uring_sqe *sqe, int fd)
{
    io_uring_prep_recv_multishot(sqe, fd, NULL, 0, 0);
    sqe->flags |= IOSQE_BUFFER_SELECT;
    sqe->buf_group = URING_BUFFER_GROUP;
}

void uring_prepare_send(struct io_uring_sqe *sqe, int fd, struct bytes bytes, int flags, bool quiet)
{
    io_uring_prep_send(sqe, fd, bytes.at, bytes.n, flags);
    if (quiet) {
        sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
    }
}

void uring_prepare_cancel(struct io_uring_sqe *sqe, uint64_t target)
{
    io_uring_prep_cancel64(sqe, target, 0);
    sqe->flags |= IOSQE_CQE_SKIP_SUCCESS;
}

static int uring_map_buffers(struct uring_loop *u)
{
    void *at = mmap(NULL, MAPPED_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) {
        return errno;
    }
    u->buffer_ring = (struct io_uring_buf_ring *)at;
    u->buffers = (uint8_t *)at + RING_BYTES;
    struct io_uring_buf_reg reg = {
        .ring_addr = (uintptr_t)at,
        .ring_entries = URING_BUFFERS,
        .bgid = URING_BUFFER_GROUP,
    };
    int error = -io_uring_register_buf_ring(&u->ring, &reg, 0);
    if (error != 0) {
        (void)munmap(at, MAPPED_BYTES);
        return error;
    }
    io_uring_buf_ring_init(u->buffer_ring);
    for (uint32_t i = 0; i < URING_BUFFERS; i++) {
        uring_give_buffer(u, i);
    }
    return 0;
}

/* ---- Trying out ---- */

enum trial { TRIAL_RECEIVE = 1, TRIAL_SEND, TRIAL_CANCEL };

static struct io_uring_sqe *trial_sqe(struct uring_loop *u, enum trial trial)
{
    /* The ring is new and larger than the whole trial. */
    struct io_uring_sqe *sqe = io_uring_get_sqe(&u->ring);
    io_uring_sqe_set_data64(sqe, trial);
    return sqe;
}

/* Submits, and waits for the one completion that is due; false if it is another or none. */
static bool trial_completes(struct uring_loop *u, enum trial trial, struct io_uring_cqe *cqe_out)
{
    struct __kernel_timespec t = {.tv_sec = 1};
    struct io_uring_cqe *cqe = NULL;
    (void)io_uring_submit_and_wait_timeout(&u->ring, &cqe, 1, &t, NULL);
    if (io_uring_cq_ready(&u->ring) != 1) {
        return false;
    }
    cqe = &u->ring.cq.cqes[*u->ring.cq.khead & u->ring.cq.ring_mask];
    cqe_out->user_data = cqe->user_data;
    cqe_out->res = cqe->res;
    cqe_out->flags = cqe->flags;
    io_uring_cq_advance(&u->ring, 1);
    return cqe_out->user_data == (uint64_t)trial;
}

/* A receive that stays armed and takes one of our buffers; a send that says nothing. */
static bool trial_receive(struct uring_loop *u, const int fds[2])
{
    struct io_uring_cqe cqe;
    uring_prepare_receive(trial_sqe(u, TRIAL_RECEIVE), fds[0]);
    uint8_t byte = 1;
    for (uint32_t i = 0; i < 2; i++) {
        uring_prepare_send(trial_sqe(u, TRIAL_SEND), fds[1], bytes_of(&byte, 1), URING_SEND_NOW,
                           true);
        if (!trial_completes(u, TRIAL_RECEIVE, &cqe) || cqe.res != 1 ||
            (cqe.flags & IORING_CQE_F_MORE) == 0 || (cqe.flags & IORING_CQE_F_BUFFER) == 0) {
            return false;
        }
        uring_give_buffer(u, cqe.flags >> IORING_CQE_BUFFER_SHIFT);
    }
    return true;
}

/* A send that does not fit says how much did, and never waits. */
static bool trial_send(struct uring_loop *u, const int fds[2])
{
    struct io_uring_cqe cqe;
    int small = 1;
    if (setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) != 0) {
        return false;
    }
    struct bytes large = bytes_of(u->buffers, SEND_MAX);
    uring_prepare_send(trial_sqe(u, TRIAL_SEND), fds[0], large, URING_SEND_NOW, true);
    if (!trial_completes(u, TRIAL_SEND, &cqe) || cqe.res <= 0 || cqe.res >= (int)SEND_MAX) {
        return false;
    }
    uring_prepare_send(trial_sqe(u, TRIAL_SEND), fds[0], large, URING_SEND_NOW, true);
    return trial_completes(u, TRIAL_SEND, &cqe) && cqe.res == -EAGAIN;
}

static bool trial_cancel(struct uring_loop *u)
{
    struct io_uring_cqe cqe;
    uring_prepare_cancel(trial_sqe(u, TRIAL_CANCEL), TRIAL_RECEIVE);
    return trial_completes(u, TRIAL_RECEIVE, &cqe) && cqe.res == -ECANCELED &&
           (cqe.flags & IORING_CQE_F_MORE) == 0;
}

static int uring_try(struct uring_loop *u)
{
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0) {
        return errno;
    }
    bool works = trial_receive(u, fds) && trial_send(u, fds) && trial_cancel(u);
    (void)close(fds[0]);
    (void)close(fds[1]);
    return works ? 0 : EOPNOTSUPP;
}

/* ---- Opening and closing ---- */

int uring_open(struct uring_loop *u, unsigned setup_flags)
{
    struct io_uring_params p = {
        .flags = setup_flags | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CLAMP | IORING_SETUP_CQSIZE,
        .cq_entries = URING_COMPLETIONS,
    };
    int error = -io_uring_queue_init_params(URING_SUBMISSIONS, &u->ring, &p);
    if (error != 0) {
        return error;
    }
    error = (p.features & FEATURES) == FEATURES ? uring_map_buffers(u) : EOPNOTSUPP;
    if (error != 0) {
        io_uring_queue_exit(&u->ring);
        return error;
    }
    error = uring_try(u);
    if (error != 0) {
        uring_close(u);
        return error;
    }
    /* Saves the kernel a look-up in each call; it works without. */
    (void)io_uring_register_ring_fd(&u->ring);
    return 0;
}

void uring_close(struct uring_loop *u)
{
    (void)io_uring_unregister_buf_ring(&u->ring, URING_BUFFER_GROUP);
    io_uring_queue_exit(&u->ring);
    (void)munmap(u->buffer_ring, MAPPED_BYTES);
}
