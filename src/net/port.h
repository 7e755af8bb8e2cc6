/* A worker's connections with the workers of all peers: env.send and env.receive of one worker.
 * Below are transports: streams of the worker's loop with links in them (tcp), or rings in memory
 * that both workers see (shm). Connections arrive ready made, from the gate (gate.h) or from a hub
 * of this process (hub.h); a frame for a worker pair that is not connected is dropped and counted,
 * as a network would drop it.
 *
 * Order. On a connection over shm all frames but view frames arrive in the order in which they were
 * sent, each once and intact, except those that dropped_full counts; what is lost besides goes with
 * the connection. Over tcp large frames may be passed by small ones.
 *
 * Threads. All of it belongs to the worker's thread, except port_offer. */
#ifndef HORKOS_NET_PORT_H
#define HORKOS_NET_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/pieces.h"
#include "base/nodeset.h"
#include "net/handshake.h"
#include "net/loop.h"

struct port;
struct hub;

struct port_config {
    uint8_t self;
    uint8_t worker;
    uint8_t workers;       /* of this node; needed with a hub */
    struct hub *hub;       /* where the workers of other nodes in this process are; NULL: nowhere */
    uint32_t window;       /* bytes a connection (link.h); not used by a hub's */
    uint64_t queue_max;    /* bytes a connection */
    uint64_t congested_at; /* bytes outstanding towards one peer from which on new updates shall
                              wait; LINK_CREDIT_LAG a connection does not count, the peer may have
                              taken that without saying so yet */
    /* A connection to a peer's worker is gone: the gate shall make a new one. On the worker's
     * thread, from within loop_poll, port_adopt or port_flush; may not call the port. */
    void (*lost)(void *context, uint8_t node, uint8_t remote_worker, uint8_t local_worker,
                 const char *why);
    /* Shared memory was wished for and cannot be had with that peer. As lost; may be NULL. */
    void (*fallback)(void *context, uint8_t node, uint8_t remote_worker, const char *why);
    void *context;
};

/* On the loop's thread, as port_destroy; not from within loop_poll. HK_ERR_NOMEM. */
int port_create(const struct port_config *config, struct loop *loop, struct port **port_out)
    __attribute__((warn_unused_result));
void port_destroy(struct port *port);

/* A connection that has finished its handshake, from any thread; the port owns the socket from here
 * on, and peer->local_worker is the port's. It takes the place of an older one of the same worker
 * pair, adopted or still offered, of which nobody is told. What waits is bounded by the number of
 * worker pairs. Wakes the loop. */
void port_offer(struct port *port, int fd, const struct handshake_peer *peer);
/* Takes up what was offered. Once a round, before the worker's poll. */
void port_adopt(struct port *port);

/* Sends one sealed frame; node and target worker are read from its header (reduced modulo the
 * number of the peer's workers). Never blocks. */
void port_send(struct port *port, struct bytes frame);
/* The same for a large frame (above LINK_FRAGMENT), which is not copied: its pieces are the port's
 * from here on. The whole header is in the first. */
void port_give(struct port *port, struct pieces *frame);
/* Whether a large frame (above LINK_FRAGMENT) that was sent to that worker is on its way, as far as
 * is known (link_large_under_way). */
bool port_large_under_way(const struct port *port, uint8_t node, uint8_t worker);
/* The version of the frames that the newest connection with that node has agreed upon;
 * FRAME_VERSION if there was none yet. */
uint16_t port_version(const struct port *port, uint8_t node);
/* The next frame that arrived, from one connection after the other; good until the next call of
 * this, port_adopt or loop_poll. What a connection had brought before it ended still comes. */
bool port_receive(struct port *port, struct bytes *frame_out);
/* Hands what was sent to the streams, as far as little enough is queued there for view frames to
 * get past. Once a round, after the worker's poll. */
void port_flush(struct port *port);

/* Whether some node of `members` lags so far that new updates shall wait. */
bool port_congested(const struct port *port, nodeset members);
/* Drops what waits for nodes that are no members any more (their queue would only grow old), but
 * for view frames: such a node may be about to join. */
void port_members(struct port *port, nodeset members);
/* The nodes with which at least one connection stands. */
nodeset port_connected(const struct port *port);

struct port_stats {
    uint64_t bytes_in, bytes_out;
    uint64_t dropped_unconnected; /* sent while there was no connection */
    uint64_t dropped_full;        /* sent while the queue was full (or there was no memory) */
    uint64_t dropped_view;        /* view frames that arrived faster than they were received */
    uint64_t connections;         /* open now */
    uint64_t shared;              /* of them through shared memory */
    uint64_t faults;              /* connections closed because of what came over them */
    uint64_t ended;               /* connections that the other side or the network ended */
    uint64_t outstanding;         /* bytes queued or under way */
    uint64_t held;                /* bytes of memory, streams not included */
};
/* Any thread; as of the last port_flush. */
void port_stats(const struct port *port, struct port_stats *stats_out);

#endif
