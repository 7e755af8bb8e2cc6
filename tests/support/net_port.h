/* For the tests of ports: ports of several workers on one loop, joined by TCP over loopback, and
 * a record of what they said to have lost. */
#ifndef HORKOS_TESTS_NET_PORT_H
#define HORKOS_TESTS_NET_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "net/loop.h"
#include "net/port.h"

struct net_port {
    struct port *port;
    uint8_t node, worker, workers;
    uint32_t lost;
    uint32_t fallbacks;
    char why[64]; /* of the last one */
    uint8_t lost_node, lost_worker;
};

/* queue_max is the least that a link takes, congested_at 1 MiB, window the least. */
void net_port_open(struct net_port *p, struct loop *loop, uint8_t node, uint8_t worker,
                   uint8_t workers);
void net_port_close(struct net_port *p);

/* A pair of connected TCP sockets; non-blocking, without delay. */
void net_socket_pair(int fds_out[2]);
/* What a handshake between the two would have agreed upon, as a sees it (as_b: as b does). session
 * makes other keys. */
struct handshake_peer net_port_peer(const struct net_port *a, const struct net_port *b, bool as_b,
                                    uint8_t session);
/* Joins two ports by a new connection. Adopts on both sides. */
void net_port_join(struct net_port *a, struct net_port *b, uint8_t session);
/* Offers a one end of a new connection; the other is the caller's. */
int net_port_offer_half(struct net_port *a, const struct net_port *b, uint8_t session);

#endif
