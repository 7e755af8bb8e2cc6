#include "support/net_port.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/link.h"
#include "wire/frame.h"

static void port_lost(void *context, uint8_t node, uint8_t remote_worker, uint8_t local_worker,
                      const char *why)
{
    struct net_port *p = context;

    HK_ASSERT(local_worker == p->worker);
    p->lost++;
    p->lost_node = node;
    p->lost_worker = remote_worker;
    (void)snprintf(p->why, sizeof(p->why), "%s", why);
}

static void port_fallback(void *context, uint8_t node, uint8_t remote_worker, const char *why)
{
    struct net_port *p = context;

    HK_ASSERT(node != p->node && remote_worker < NODES_MAX && why != NULL);
    p->fallbacks++;
}

void net_port_open(struct net_port *p, struct loop *loop, uint8_t node, uint8_t worker,
                   uint8_t workers)
{
    struct port_config config = {
        .self = node,
        .worker = worker,
        .window = LINK_WINDOW_MIN,
        .queue_max = FRAME_HEADER + FRAME_BODY_MAX,
        .congested_at = 1024 * 1024,
        .lost = port_lost,
        .fallback = port_fallback,
        .context = p,
    };

    *p = (struct net_port){.node = node, .worker = worker, .workers = workers};
    HK_ASSERT(port_create(&config, loop, &p->port) == HK_OK);
}

void net_port_close(struct net_port *p)
{
    port_destroy(p->port);
    p->port = NULL;
}

static void prepare(int fd)
{
    int one = 1;

    HK_ASSERT(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
    HK_ASSERT(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) == 0);
}

void net_socket_pair(int fds_out[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    HK_ASSERT(listener >= 0);
    HK_ASSERT(bind(listener, (struct sockaddr *)&address, length) == 0);
    HK_ASSERT(listen(listener, 1) == 0);
    HK_ASSERT(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    fds_out[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    HK_ASSERT(fds_out[0] >= 0);
    HK_ASSERT(connect(fds_out[0], (struct sockaddr *)&address, length) == 0);
    fds_out[1] = accept(listener, NULL, NULL);
    HK_ASSERT(fds_out[1] >= 0);
    HK_ASSERT(close(listener) == 0);
    prepare(fds_out[0]);
    prepare(fds_out[1]);
}

struct handshake_peer net_port_peer(const struct net_port *a, const struct net_port *b, bool as_b,
                                    uint8_t session)
{
    const struct net_port *self = as_b ? b : a, *other = as_b ? a : b;
    struct handshake_peer peer = {
        .node = other->node,
        .workers = other->workers,
        .worker = other->worker,
        .local_worker = self->worker,
        .version = FRAME_VERSION,
    };

    memset(as_b ? peer.keys.receive : peer.keys.send, session, SESSION_KEY_BYTES);
    memset(as_b ? peer.keys.send : peer.keys.receive, session + 100, SESSION_KEY_BYTES);
    return peer;
}

void net_port_join(struct net_port *a, struct net_port *b, uint8_t session)
{
    int fds[2];
    struct handshake_peer of_a = net_port_peer(a, b, false, session);
    struct handshake_peer of_b = net_port_peer(a, b, true, session);

    net_socket_pair(fds);
    port_offer(a->port, fds[0], &of_a);
    port_offer(b->port, fds[1], &of_b);
    port_adopt(a->port);
    port_adopt(b->port);
}

int net_port_offer_half(struct net_port *a, const struct net_port *b, uint8_t session)
{
    int fds[2];
    struct handshake_peer peer = net_port_peer(a, b, false, session);

    net_socket_pair(fds);
    port_offer(a->port, fds[0], &peer);
    return fds[1];
}
