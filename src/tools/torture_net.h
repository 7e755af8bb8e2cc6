/* The network of a torture: each node in a network namespace of its own, linked by a veth pair
 * with a bridge that stands in the namespace of the clients. Partitions are rules of nftables
 * between the bridge's ports, so they cut nodes from each other and never from clients. Resets
 * are rules in a node's own namespace.
 *
 * The namespaces have no names: they, their links and rules vanish when the last process in them
 * has ended, whatever ends it. Nothing outside is touched. */
#ifndef HORKOS_TOOLS_TORTURE_NET_H
#define HORKOS_TOOLS_TORTURE_NET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "tools/torture_options.h"

#define TORTURE_PORT_CLIENTS 6379u
#define TORTURE_PORT_PEERS 16379u

struct torture_net {
    bool separate; /* there are namespaces */
    char why[300]; /* why there are none */
    uint32_t nodes;
    int home;                                                        /* descriptors of namespaces */
    int of[TORTURE_NODES_MAX + 1];                                   /* by node, from 1 */
    uint32_t cut[TORTURE_NODES_MAX + 1][TORTURE_NODES_MAX + 1];      /* [from][to]: how often */
    uint32_t no_peers[TORTURE_NODES_MAX + 1][TORTURE_NODES_MAX + 1]; /* [node][peer]: resets */
    uint32_t no_clients[TORTURE_NODES_MAX + 1];                      /* resets */
};

/* Moves this process, which must have one thread, into a namespace of its own and makes those of
 * the nodes. If that is not possible, net->separate is false, net->why says why, and the process
 * has a loopback in any case. */
void torture_net_open(struct torture_net *net, uint32_t nodes, bool wanted);
void torture_net_close(struct torture_net *net);

/* What the thread starts from here on lives in the node's namespace, until torture_net_leave. */
bool torture_net_enter(const struct torture_net *net, uint32_t node);
bool torture_net_leave(const struct torture_net *net);

/* "10.77.0.1" with namespaces, else "127.0.0.1". */
void torture_net_host(const struct torture_net *net, uint32_t node, char host_out[16]);

/* Counts, so that cuts may overlap; torture_net_apply makes the rules. */
void torture_net_cut(struct torture_net *net, nodeset from, nodeset to, bool both, bool cut);
/* Nodes that are cut from some other in some direction, or whose connections with peers are
 * reset. */
nodeset torture_net_disturbed(const struct torture_net *net);

/* Puts the rules between the nodes, or those of a node, into force. False: net->why. */
bool torture_net_apply(struct torture_net *net);
bool torture_net_apply_node(struct torture_net *net, uint32_t node);

#endif
