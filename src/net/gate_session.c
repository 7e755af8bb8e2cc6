/* Connections whose handshake is under way: exactly the bytes of the handshake are read, so that
 * what follows is there for whoever gets the socket. */
#include "net/gate_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"

struct gate_session *gate_session_create(struct gate *gate, int fd, const char *address,
                                         uint64_t now_us)
{
    struct gate_session *session = calloc(1, sizeof *session);
    if (session == NULL) {
        return NULL;
    }
    session->source = SOURCE_SESSION;
    session->fd = fd;
    session->deadline_us = now_us + gate->config.handshake_us;
    list_init(&session->link);
    (void)snprintf(session->address, sizeof session->address, "%s", address);
    return session;
}

static uint32_t wanted_events(const struct gate_session *session)
{
    return session->connecting || session->out_at < session->out_n ? EPOLLOUT : EPOLLIN;
}

bool gate_session_watch(struct gate *gate, struct gate_session *session)
{
    struct epoll_event event = {.events = wanted_events(session), .data.ptr = session};
    return epoll_ctl(gate->epoll_fd, EPOLL_CTL_ADD, session->fd, &event) == 0;
}

void gate_session_destroy(struct gate *gate, struct gate_session *session)
{
    if (session->fd >= 0) {
        (void)close(session->fd);
    }
    if (!session->calls) {
        gate->strangers_n--;
    }
    list_remove(&session->link);
    sodium_memzero(session, sizeof *session); /* keys */
    free(session);
}

/* The end of a session that leads nowhere. refusal HANDSHAKE_OK: the connection broke. */
static void fail(struct gate *gate, struct gate_session *session, enum handshake_refusal refusal,
                 const char *why, uint64_t now_us)
{
    uint8_t node = session->node;
    uint32_t pair = session->pair;
    bool calls = session->calls;
    if (!calls && refusal != HANDSHAKE_OK) {
        gate_refused(gate, refusal, session->address, now_us);
    } else if (!calls) {
        /* Who hangs up in the middle is no node of ours, or one that refuses us. */
        gate_refused(gate, HANDSHAKE_MAGIC, session->address, now_us);
    } else if (refusal != HANDSHAKE_OK) {
        gate_count(&gate->count.refused[refusal]);
    }
    gate_session_destroy(gate, session);
    if (calls) {
        gate_call_ended(gate, node, pair, why, 0, now_us);
    }
}

/* While a link was cut the other side may have given the connection up without our hearing of it.
 * Only the side that calls makes a new one, and it may have nothing to send that would tell it. So
 * the system asks on connections that are silent, both ways; who does not answer is gone after
 * user_timeout_ms as well. */
static void watch_over_peer(const struct gate *gate, int fd)
{
    unsigned timeout_ms = gate->config.user_timeout_ms;
    int yes = 1, interval_s = 1;
    int idle_s = timeout_ms < 4000u ? 1 : (int)(timeout_ms / 4000u);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof interval_s);
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

static void hand_on(struct gate *gate, struct gate_session *session, uint64_t now_us)
{
    struct handshake_peer peer = session->handshake.peer;
    uint8_t node = session->node;
    uint32_t pair = session->pair;
    int fd = session->fd;
    bool calls = session->calls;
    (void)epoll_ctl(gate->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    watch_over_peer(gate, fd);
    session->fd = -1;
    gate_session_destroy(gate, session);
    if (calls) {
        gate_call_ended(gate, node, pair, NULL, peer.workers, now_us);
    }
    gate_count(&gate->count.peers);
    gate->config.peer(gate->config.context, fd, &peer);
    sodium_memzero(&peer, sizeof peer);
}

static const char *refusal_text(enum handshake_refusal refusal)
{
    switch (refusal) {
    case HANDSHAKE_MAGIC:
        return "what answers there is no horkos node";
    case HANDSHAKE_VERSION:
        return "it speaks no version of the protocol that this node knows: bring both up to date";
    case HANDSHAKE_CLUSTER:
        return "it belongs to another cluster: compare [cluster] name on both nodes";
    case HANDSHAKE_PROOF:
        return "it has another key: compare [cluster] key_file on both nodes";
    case HANDSHAKE_NODE:
        return "another node answers at this address: compare [node] id and [peers] on both nodes";
    case HANDSHAKE_WORKER:
        return "it answers for another worker";
    case HANDSHAKE_OK:
    case HANDSHAKE_REFUSALS:
        break;
    }
    return "the connection broke";
}

/* Ours and theirs may both be at fault: the one that refuses hangs up without a word. */
static const char *broken_text(int error)
{
    return error == 0 ? "it hung up during the handshake: compare [cluster] name and key_file, and "
                        "[peers], on both nodes; its log says more"
                      : strerror(error);
}

/* Reads what the next message still lacks. False: the session is over. */
static bool receive(struct gate *gate, struct gate_session *session, uint64_t now_us, bool *more)
{
    uint32_t wants = handshake_wants(&session->handshake);
    *more = false;
    HK_ASSERT(wants > session->in_n && wants <= sizeof session->in);
    ssize_t n = recv(session->fd, session->in + session->in_n, wants - session->in_n, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return true;
    }
    if (n <= 0) {
        fail(gate, session, HANDSHAKE_OK, broken_text(n == 0 ? 0 : errno), now_us);
        return false;
    }
    session->in_n += (uint32_t)n;
    if (session->in_n < wants) {
        return true;
    }
    session->out_n = handshake_input(&session->handshake, session->in, session->out);
    session->out_at = 0;
    session->in_n = 0;
    *more = true;
    if (session->handshake.state == HANDSHAKE_REFUSED) {
        enum handshake_refusal refusal = session->handshake.refusal;
        fail(gate, session, refusal, refusal_text(refusal), now_us);
        return false;
    }
    return true;
}

static bool send_out(struct gate *gate, struct gate_session *session, uint64_t now_us)
{
    while (session->out_at < session->out_n) {
        ssize_t n = send(session->fd, session->out + session->out_at,
                         session->out_n - session->out_at, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0 && errno == EAGAIN) {
            return true;
        }
        if (n < 0) {
            fail(gate, session, HANDSHAKE_OK, broken_text(errno), now_us);
            return false;
        }
        session->out_at += (uint32_t)n;
    }
    return true;
}

/* Whether a connect has succeeded: 0, or errno. */
static int connect_result(int fd)
{
    struct sockaddr_storage own, other;
    socklen_t own_n = sizeof own, other_n = sizeof other;
    int error = 0;
    socklen_t n = sizeof error;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &n) != 0) {
        return errno;
    }
    if (error != 0) {
        return error;
    }
    /* A port of our own range that nobody listens on may connect to itself. */
    if (getsockname(fd, (struct sockaddr *)&own, &own_n) != 0 ||
        getpeername(fd, (struct sockaddr *)&other, &other_n) != 0) {
        return errno;
    }
    return own_n == other_n && memcmp(&own, &other, own_n) == 0 ? ECONNREFUSED : 0;
}

static void watch_again(struct gate *gate, struct gate_session *session)
{
    struct epoll_event event = {.events = wanted_events(session), .data.ptr = session};
    HK_ASSERT(epoll_ctl(gate->epoll_fd, EPOLL_CTL_MOD, session->fd, &event) == 0);
}

void gate_session_event(struct gate *gate, struct gate_session *session, uint32_t events,
                        uint64_t now_us)
{
    uint32_t wanted = wanted_events(session);
    if (session->connecting) {
        int error = connect_result(session->fd);
        if (error != 0) {
            fail(gate, session, HANDSHAKE_OK, strerror(error), now_us);
            return;
        }
        session->connecting = false;
    }
    bool more = (events & (uint32_t)(EPOLLIN | EPOLLHUP | EPOLLERR)) != 0;
    for (;;) {
        if (!send_out(gate, session, now_us)) {
            return;
        }
        if (session->out_at < session->out_n) {
            break;
        }
        if (session->handshake.state == HANDSHAKE_DONE) {
            hand_on(gate, session, now_us);
            return;
        }
        if (!more) {
            break;
        }
        if (!receive(gate, session, now_us, &more)) {
            return;
        }
    }
    if (wanted_events(session) != wanted) {
        watch_again(gate, session);
    }
}

static void expire(struct gate *gate, struct list_link *sessions, uint64_t now_us)
{
    list_each_safe(link, following, sessions)
    {
        struct gate_session *session = list_entry(link, struct gate_session, link);
        if (now_us < session->deadline_us) {
            continue;
        }
        if (session->calls) {
            fail(gate, session, HANDSHAKE_OK,
                 session->connecting ? "no answer" : "it took the connection and said nothing",
                 now_us);
        } else {
            gate_timed_out(gate, session->address, now_us);
            gate_session_destroy(gate, session);
        }
    }
}

void gate_sessions_expire(struct gate *gate, uint64_t now_us)
{
    expire(gate, &gate->callers, now_us);
    expire(gate, &gate->strangers, now_us);
}

static uint64_t earliest(const struct list_link *sessions, uint64_t next_us)
{
    list_each(link, sessions)
    {
        const struct gate_session *session = list_entry(link, struct gate_session, link);
        next_us = session->deadline_us < next_us ? session->deadline_us : next_us;
    }
    return next_us;
}

uint64_t gate_sessions_deadline(const struct gate *gate)
{
    return earliest(&gate->strangers, earliest(&gate->callers, UINT64_MAX));
}
