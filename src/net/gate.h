/* The gate: one thread that makes connections and does nothing else. It listens for clients and
 * hands their sockets on; it listens for peers, lets those in that prove themselves (handshake.h),
 * and calls the peers that this node has to call, with back-off. Between two nodes the one with the
 * lower id calls, one connection for each pair of workers. A stranger on the peer port costs a
 * bounded number of sockets for a bounded time, is counted by reason, and is named in the log once
 * a minute.
 *
 * Threads. gate_start and gate_stop by the owner; gate_lost and gate_stats from any thread. The
 * callbacks run on the gate's thread, the first perhaps before gate_start has returned; none may
 * call gate_stop. */
#ifndef HORKOS_NET_GATE_H
#define HORKOS_NET_GATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "net/handshake.h"

#define GATE_ADDRESS_MAX 280u

struct gate;

/* "host:port", "[v6]:port" or "unix:/path". A name to listen on is looked up once, in gate_start; a
 * peer's name again now and then while calls fail, on a thread of its own. */
struct gate_address {
    char text[GATE_ADDRESS_MAX];
};
/* NULL, or why the text is no address (port 1 .. 65535). */
const char *gate_address_invalid(const char *text);

struct gate_config {
    struct handshake_self self;
    const struct gate_address *client_listen; /* client_listens of them */
    uint32_t client_listens;
    struct gate_address peer_listen;      /* empty: no peers come in */
    struct gate_address peers[NODES_MAX]; /* of the nodes in `nodes`; empty for self */
    nodeset nodes;
    uint32_t backoff_min_us, backoff_max_us; /* of calls; doubled with jitter */
    uint32_t handshake_us;                   /* a handshake that takes longer is given up */
    uint32_t handshakes_max;  /* of strangers, at one time; beyond, the oldest goes */
    uint32_t user_timeout_ms; /* a connection whose bytes stay unacknowledged longer is broken */
    /* A new client; the socket (non-blocking, TCP_NODELAY) is the callee's. address: of the client
     * and of the listener, as text. */
    void (*client)(void *context, int fd, const char *address, const char *local);
    /* A peer that has proved itself; the socket is the callee's. */
    void (*peer)(void *context, int fd, const struct handshake_peer *peer);
    /* Something that an operator should know; the gate sees to it that this stays rare. */
    void (*report)(void *context, const char *text);
    void *context;
};

/* Binds and listens, then starts the thread. HK_ERR_IO: error_out (size bytes) says what failed and
 * what to do about it. HK_ERR_NOMEM. */
int gate_start(const struct gate_config *config, char *error_out, uint32_t size,
               struct gate **gate_out) __attribute__((warn_unused_result));
/* Closes the listeners for clients, in the gate's next round: no new clients, peers as before (a
 * node that drains). Any thread. */
void gate_refuse_clients(struct gate *gate);
/* Ends the thread, closes listeners and handshakes; what was handed on stays with who has it. */
void gate_stop(struct gate *gate);
/* The connection of this pair of workers is gone; if it is ours to make, it is made anew. */
void gate_lost(struct gate *gate, uint8_t node, uint8_t remote_worker, uint8_t local_worker);

struct gate_stats {
    uint64_t clients, peers; /* handed on */
    uint64_t calls, calls_failed;
    uint64_t refused[HANDSHAKE_REFUSALS]; /* HANDSHAKE_MAGIC: also those who hung up */
    uint64_t timed_out, crowded;          /* strangers given up; those that made room for others */
};
void gate_stats(const struct gate *gate, struct gate_stats *stats_out);

#endif
