/* A meeting place of the workers of several nodes in one process: a port that is made with a hub
 * (port_config.hub) is connected with the ports of all other nodes that are there or come later,
 * through rings in private memory. No handshake, no keys: whoever holds the hub is trusted.
 *
 * Threads. hub_create and hub_destroy run alone; ports come and go on their own threads. */
#ifndef HORKOS_NET_HUB_H
#define HORKOS_NET_HUB_H

#include <stdint.h>

struct hub;

#define HUB_RING_DEFAULT (256u * 1024u)

/* ring_bytes: of each direction between two workers; a power of two, SHM_RING_MIN .. SHM_RING_MAX
 * (shm.h). Frames up to a quarter of it travel in one piece. HK_ERR_NOMEM. */
int hub_create(uint32_t ring_bytes, struct hub **hub_out) __attribute__((warn_unused_result));
/* All ports have left (port_destroy). */
void hub_destroy(struct hub *hub);

#endif
