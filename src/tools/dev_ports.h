/* The ports of a cluster on 127.0.0.1: two a node, for clients and for peers. They are held, by
 * sockets that are bound and do not listen, from the moment they are chosen until the node that
 * gets them listens: two `horkos dev` at the same moment never choose the same one. */
#ifndef HORKOS_TOOLS_DEV_PORTS_H
#define HORKOS_TOOLS_DEV_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/dev_folder.h"

struct dev_port {
    uint16_t port;
    int held; /* socket; -1: not held */
};

struct dev_ports {
    uint32_t nodes;
    struct dev_port client[DEV_NODES_MAX + 1]; /* by node, from 1 */
    struct dev_port peer[DEV_NODES_MAX + 1];
};

/* base: the first client port; the peers' begin peers_above higher. 0: free ports outside the range
 * that the kernel gives to outgoing connections, so that none is taken while a node is down. False
 * after an error, which was printed. */
bool dev_ports_hold(struct dev_ports *ports, uint32_t nodes, uint16_t base, uint16_t peers_above);
/* Gives up a node's ports, or everybody's. */
void dev_ports_release_node(struct dev_ports *ports, uint32_t node);
void dev_ports_release(struct dev_ports *ports);

/* Ports that may be chosen: those from 10000 up outside [low, high], the kernel's range; if these
 * are less than 1000, all from 1024 up. The index-th of them, counted round; 0: none. Pure. */
uint16_t dev_port_at(uint32_t index, uint32_t low, uint32_t high);
uint32_t dev_port_count(uint32_t low, uint32_t high);

#endif
