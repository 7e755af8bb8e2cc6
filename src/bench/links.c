#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "bench/internal.h"
#include "net/link.h"
#include "wire/frame.h"

/* What may be under way on a connection, and wait for it; closed loops are far below. */
#define WINDOW_BYTES (16u * 1024u * 1024u)
#define QUEUE_BYTES (256u * 1024u * 1024u)

/* Nobody makes a new connection: it is counted as a failure when operations time out. */
static void connection_lost(void *context, uint8_t node, uint8_t remote_worker,
                            uint8_t local_worker, const char *why)
{
    (void)context;
    (void)node;
    (void)remote_worker;
    (void)local_worker;
    (void)why;
}

int links_open(struct bench_worker *w)
{
    const struct bench_config *c = &w->cluster->config;
    struct port_config port = {
        .self = w->node,
        .worker = w->index,
        .workers = (uint8_t)c->workers,
        .hub = w->cluster->hub,
        .window = WINDOW_BYTES,
        .queue_max = QUEUE_BYTES,
        .congested_at = QUEUE_BYTES / 16u,
        .lost = connection_lost,
        .context = w,
    };
    int err = loop_create(LOOP_AUTO, &w->loop);
    return err == HK_OK ? port_create(&port, w->loop, &w->port) : err;
}

void links_close(struct bench_worker *w)
{
    if (w->port != NULL) {
        port_destroy(w->port);
        w->port = NULL;
    }
    if (w->loop != NULL) {
        loop_destroy(w->loop);
        w->loop = NULL;
    }
}

static bool make_ready(int fd)
{
    int one = 1;
    return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
           setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) == 0;
}

int links_socket_pair(int fds_out[2])
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t n = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int caller = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int callee = -1;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    bool good = listener >= 0 && caller >= 0 && bind(listener, (struct sockaddr *)&at, n) == 0 &&
                listen(listener, 1) == 0 &&
                getsockname(listener, (struct sockaddr *)&at, &n) == 0 &&
                connect(caller, (struct sockaddr *)&at, n) == 0;
    if (good) {
        callee = accept(listener, NULL, NULL);
        good = callee >= 0 && make_ready(caller) && make_ready(callee);
    }
    if (listener >= 0) {
        (void)close(listener);
    }
    if (!good) {
        if (caller >= 0) {
            (void)close(caller);
        }
        if (callee >= 0) {
            (void)close(callee);
        }
        return HK_ERR_IO;
    }
    fds_out[0] = caller;
    fds_out[1] = callee;
    return HK_OK;
}

/* What a handshake would have agreed upon; the keys only have to be the same on both sides. */
static struct handshake_peer peer_of(const struct bench_worker *other,
                                     const struct bench_worker *self, bool first)
{
    struct handshake_peer peer = {
        .node = other->node,
        .workers = (uint8_t)other->cluster->config.workers,
        .worker = other->index,
        .local_worker = self->index,
        .version = FRAME_VERSION,
    };
    memset(peer.keys.send, first ? 1 : 2, SESSION_KEY_BYTES);
    memset(peer.keys.receive, first ? 2 : 1, SESSION_KEY_BYTES);
    return peer;
}

int links_connect(struct bench_cluster *c)
{
    if (c->hub != NULL) {
        return HK_OK; /* the ports meet there by themselves */
    }
    for (uint32_t i = 0; i < c->workers_n; i++) {
        for (uint32_t j = i + 1; j < c->workers_n; j++) {
            struct bench_worker *a = &c->workers[i], *b = &c->workers[j];
            int fds[2];
            if (a->node == b->node) {
                continue;
            }
            int err = links_socket_pair(fds);
            if (err != HK_OK) {
                return err;
            }
            struct handshake_peer of_b = peer_of(b, a, true), of_a = peer_of(a, b, false);
            port_offer(a->port, fds[0], &of_b);
            port_offer(b->port, fds[1], &of_a);
        }
    }
    return HK_OK;
}
