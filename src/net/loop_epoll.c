/* The loop on epoll, level-triggered: each round sends what is queued, waits, then receives once
 * from each socket that has something. */
#include "net/loop_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/assert.h"

#define EPOLL_EVENTS 256
/* The data of the event of wake_fd; streams have their slot in the upper half. */
#define EPOLL_WAKE UINT64_MAX

struct epoll_loop {
    struct loop base;
    int fd;
    bool coarse; /* the kernel has no epoll_pwait2: waits are whole milliseconds */
    struct epoll_event events[EPOLL_EVENTS];
    uint8_t received[LOOP_RECEIVE_MAX];
};

static struct epoll_loop *epoll_of(struct loop *loop)
{
    return (struct epoll_loop *)loop;
}

static int epoll_init(struct loop *loop)
{
    struct epoll_loop *e = epoll_of(loop);
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = EPOLL_WAKE};
    e->fd = epoll_create1(EPOLL_CLOEXEC);
    loop->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (e->fd >= 0 && loop->wake_fd >= 0 &&
        epoll_ctl(e->fd, EPOLL_CTL_ADD, loop->wake_fd, &event) == 0) {
        return 0;
    }
    int error = errno;
    if (e->fd >= 0) {
        (void)close(e->fd);
    }
    if (loop->wake_fd >= 0) {
        (void)close(loop->wake_fd);
    }
    return error;
}

static void epoll_deinit(struct loop *loop)
{
    (void)close(epoll_of(loop)->fd);
    (void)close(loop->wake_fd);
}

/* Registers the socket for what the stream waits for now. 0 or an errno. A socket that waits for
 * nothing is taken out: it would report a hang-up again and again. */
static int epoll_register(struct stream *s)
{
    uint32_t events = (stream_wants_input(s) ? (uint32_t)EPOLLIN : 0) |
                      (s->epoll.full && s->error == 0 ? (uint32_t)EPOLLOUT : 0);
    if (events == s->epoll.events) {
        return 0;
    }
    struct epoll_event event = {
        .events = events,
        .data.u64 = (uint64_t)s->slot << 32 | stream_generation(s),
    };
    int op = EPOLL_CTL_MOD;
    if (s->epoll.events == 0) {
        op = EPOLL_CTL_ADD;
    } else if (events == 0) {
        op = EPOLL_CTL_DEL;
    }
    if (epoll_ctl(epoll_of(s->loop)->fd, op, s->fd, &event) != 0) {
        return errno;
    }
    s->epoll.events = events;
    return 0;
}

static int epoll_attach(struct stream *s)
{
    return epoll_register(s);
}

static void epoll_detach(struct stream *s)
{
    /* Explicitly: another process may hold a duplicate of the socket, and then its end here would
     * not take it out. */
    if (s->epoll.events != 0) {
        struct epoll_event none = {0};
        (void)epoll_ctl(epoll_of(s->loop)->fd, EPOLL_CTL_DEL, s->fd, &none);
    }
    stream_release(s);
}

/* Hands over what the kernel takes, at most SEND_MAX bytes. */
static void epoll_send(struct stream *s)
{
    size_t left = SEND_MAX;
    s->epoll.full = false;
    while (left > 0 && s->error == 0) {
        struct bytes out = stream_next_output(s);
        size_t n = out.n < left ? out.n : left;
        if (n == 0) {
            return;
        }
        if (n >= LOOP_DRAINED_MIN) {
            s->owed = true;
        }
        ssize_t sent = send(s->fd, out.at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            stream_failed(s, errno);
            return;
        }
        size_t taken = sent < 0 ? 0 : (size_t)sent;
        if (taken < n) {
            s->owed = true;
            s->epoll.full = true;
            left = 0;
        } else {
            left -= n;
        }
        stream_sent(s, taken);
    }
    s->owed = s->owed || stream_queued(s) > 0;
}

static void epoll_settle(struct stream *s)
{
    if (s->error == 0 && stream_queued(s) > 0 && !s->epoll.full) {
        epoll_send(s);
    }
    if (s->epoll.full) {
        /* The kernel says when there is room; stream_sent wants the next round. */
        list_remove(&s->touched);
    }
    int error = epoll_register(s);
    if (error != 0 && s->error == 0) {
        stream_failed(s, error);
    }
}

static void epoll_settle_touched(struct loop *loop)
{
    struct list_link touched;
    list_init(&touched);
    list_append(&touched, &loop->touched);
    struct list_link *link;
    while ((link = list_pop_front(&touched)) != NULL) {
        epoll_settle(list_entry(link, struct stream, touched));
    }
}

static int epoll_wait_us(struct epoll_loop *e, uint64_t timeout_us)
{
    struct timespec t = {
        .tv_sec = (time_t)(timeout_us / 1000000u),
        .tv_nsec = (long)(timeout_us % 1000000u * 1000u),
    };
    if (timeout_us == 0) {
        return epoll_wait(e->fd, e->events, EPOLL_EVENTS, 0);
    }
    if (!e->coarse) {
        int n = epoll_pwait2(e->fd, e->events, EPOLL_EVENTS, timeout_us == UINT64_MAX ? NULL : &t,
                             NULL);
        if (n >= 0 || errno != ENOSYS) {
            return n;
        }
        e->coarse = true;
    }
    if (timeout_us == UINT64_MAX) {
        return epoll_wait(e->fd, e->events, EPOLL_EVENTS, -1);
    }
    /* Rounded up: rounding down would spin through the last millisecond. */
    uint64_t ms = timeout_us / 1000u + (timeout_us % 1000u != 0);
    return epoll_wait(e->fd, e->events, EPOLL_EVENTS, ms < INT32_MAX ? (int)ms : INT32_MAX);
}

static void epoll_receive(struct epoll_loop *e, struct stream *s)
{
    ssize_t n = recv(s->fd, e->received, sizeof(e->received), MSG_DONTWAIT);
    if (n > 0) {
        stream_arrived(s, bytes_of(e->received, (uint32_t)n));
    } else if (n == 0) {
        stream_ended(s, 0);
    } else if (errno != EAGAIN && errno != EINTR) {
        stream_ended(s, errno);
    }
}

static void epoll_take_event(struct epoll_loop *e, const struct epoll_event *event)
{
    if (event->data.u64 == EPOLL_WAKE) {
        uint64_t count;
        /* It fails only if there is nothing to read. */
        ssize_t n = read(e->base.wake_fd, &count, sizeof(count));
        (void)n;
        return;
    }
    uint32_t slot = (uint32_t)(event->data.u64 >> 32);
    uint32_t generation = (uint32_t)event->data.u64;
    struct stream *s = loop_stream(&e->base, slot, generation);
    if (s == NULL) {
        return;
    }
    if (s->epoll.full && (event->events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) != 0) {
        s->epoll.full = false;
        stream_touch(s);
    }
    if (stream_wants_input(s) && (event->events & (EPOLLIN | EPOLLERR | EPOLLHUP)) != 0) {
        epoll_receive(e, s);
    }
}

static void epoll_poll(struct loop *loop, uint64_t timeout_us)
{
    struct epoll_loop *e = epoll_of(loop);
    epoll_settle_touched(loop);
    /* Something is left to do or to tell at once. */
    if (!list_empty(&loop->touched) || !list_empty(&loop->drained) || !list_empty(&loop->broken)) {
        timeout_us = 0;
    }
    bool sleeps = timeout_us > 0 && loop_sleep_begin(loop);
    int n = epoll_wait_us(e, sleeps ? timeout_us : 0);
    if (sleeps) {
        loop_sleep_end(loop);
    }
    loop_report_drained(loop);
    for (int i = 0; i < n; i++) {
        epoll_take_event(e, &e->events[i]);
    }
}

const struct loop_backend loop_backend_epoll = {
    .kind = LOOP_EPOLL,
    .loop_bytes = sizeof(struct epoll_loop),
    .init = epoll_init,
    .deinit = epoll_deinit,
    .attach = epoll_attach,
    .detach = epoll_detach,
    .poll = epoll_poll,
};
