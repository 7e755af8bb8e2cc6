/* Newcomers: clients are handed on as they are, those on the peer port begin a handshake. */
#include "net/gate_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Newcomers in one go, so that handshakes and calls get their turn in a flood. */
#define ACCEPTS 64u
#define PAUSE_US UINT64_C(100000)

/* The nodes that may call this one: the lower id calls. */
static nodeset callers_of(const struct gate *gate)
{
    return gate->config.nodes & (nodeset_of(gate->config.self.node) - 1);
}

static void take_client(struct gate *gate, int fd, const struct sockaddr_storage *from, socklen_t n)
{
    struct sockaddr_storage at;
    socklen_t at_n = sizeof at;
    char address[ADDRESS_TEXT_MAX], local[ADDRESS_TEXT_MAX];
    int yes = 1;
    if (getsockname(fd, (struct sockaddr *)&at, &at_n) != 0) {
        (void)close(fd);
        return;
    }
    address_text(&at, at_n, local);
    if (at.ss_family == AF_UNIX) {
        /* Clients of a unix socket have no address of their own. */
        (void)snprintf(address, sizeof address, "%s", local);
    } else {
        address_text(from, n, address);
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    }
    gate_count(&gate->count.clients);
    gate->config.client(gate->config.context, fd, address, local);
}

/* Who has been silent longest makes room: a node has proved itself within a few round trips, and
 * those who only sit there must not keep it out. */
static void make_room(struct gate *gate, uint64_t now_us)
{
    if (gate->strangers_n >= gate->config.handshakes_max) {
        struct gate_session *oldest = list_entry(gate->strangers.next, struct gate_session, link);
        gate_crowded(gate, oldest->address, now_us);
        gate_session_destroy(gate, oldest);
    }
}

static void take_stranger(struct gate *gate, int fd, const struct sockaddr_storage *from,
                          socklen_t n, uint64_t now_us)
{
    uint8_t nonce[HANDSHAKE_NONCE_BYTES];
    char address[ADDRESS_TEXT_MAX];
    int yes = 1;
    address_text(from, n, address);
    make_room(gate, now_us);
    struct gate_session *session = gate_session_create(gate, fd, address, now_us);
    if (session == NULL) {
        (void)close(fd);
        gate_crowded(gate, address, now_us);
        return;
    }
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    randombytes_buf(nonce, sizeof nonce);
    handshake_listen(&session->handshake, &gate->config.self, nonce, callers_of(gate));
    list_push_back(&gate->strangers, &session->link);
    gate->strangers_n++;
    if (!gate_session_watch(gate, session)) {
        gate_session_destroy(gate, session);
    }
}

/* Without descriptors the newcomer stays in the kernel's queue and the listener stays readable: to
 * ask again at once would only burn a processor. */
static void pause_accepting(struct gate *gate, struct gate_listener *listener, int error,
                            uint64_t now_us)
{
    struct epoll_event event = {.events = 0, .data.ptr = listener};
    (void)epoll_ctl(gate->epoll_fd, EPOLL_CTL_MOD, listener->fd, &event);
    listener->paused = true;
    gate->resume_us = now_us + PAUSE_US;
    if (gate->starved_us == 0 || now_us - gate->starved_us >= GATE_SUMMARY_US) {
        gate->starved_us = now_us;
        gate_report(
            gate,
            "cannot accept connections on %s: %s; raise the limit of open files (ulimit -n, "
            "LimitNOFILE), or lower clients_max",
            listener->address.text, strerror(error));
    }
}

void gate_resume(struct gate *gate, uint64_t now_us)
{
    if (now_us < gate->resume_us) {
        return;
    }
    gate->resume_us = UINT64_MAX;
    for (uint32_t i = 0; i < gate->listeners_n; i++) {
        struct gate_listener *listener = &gate->listeners[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = listener};
        if (listener->fd >= 0 && listener->paused) {
            listener->paused = false;
            (void)epoll_ctl(gate->epoll_fd, EPOLL_CTL_MOD, listener->fd, &event);
        }
    }
}

void gate_accept(struct gate *gate, struct gate_listener *listener, uint64_t now_us)
{
    for (uint32_t i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage from;
        socklen_t n = sizeof from;
        int fd = accept4(listener->fd, (struct sockaddr *)&from, &n, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0 && listener->peers) {
            take_stranger(gate, fd, &from, n, now_us);
        } else if (fd >= 0) {
            take_client(gate, fd, &from, n);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            pause_accepting(gate, listener, errno, now_us);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED) {
            /* EAGAIN: all are here. Errors of a connection that is gone already wake us again. */
            return;
        }
    }
}
