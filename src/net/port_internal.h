/* Inside a port: its connections, and the table that a transport is. For port*.c and hub.c only.
 *
 * A connection is in these states:
 *
 *     offered -> standing        port_adopt: it has a transport and its place in the map
 *     offered -> opening         port_adopt: the two sides agree on a segment first
 *     opening -> standing        they have agreed, on a segment or on tcp
 *     opening -> gone            the connection ended, or a newer one took its place
 *     standing -> draining       the other side ended it, or a newer one took its place, while
 *                                frames that it brought wait to be received
 *     standing, draining -> gone nothing waits any more, or its bytes were at fault
 *
 * Only standing ones are in the map; `ready` holds those from which a frame may be received,
 * `dirty` those that may have something to say, `over` those of which port_receive has found out
 * that they are at their end, until the next port_adopt or port_flush. */
#ifndef HORKOS_NET_PORT_INTERNAL_H
#define HORKOS_NET_PORT_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "net/link.h"
#include "net/loop.h"
#include "net/port.h"
#include "net/shm.h"

struct conn;
struct exposure;

/* How frames of one connection travel. */
struct transport {
    /* As port_send, port_give, port_receive. False: dropped, or none. */
    bool (*send)(struct conn *conn, struct bytes frame);
    bool (*give)(struct conn *conn, struct pieces *frame);
    bool (*receive)(struct conn *conn, struct bytes *frame_out);
    /* Whether receive would find something; NULL: it says so itself (conn_make_ready). */
    bool (*pending)(struct conn *conn);
    /* Whether flush has something to do; and doing it. */
    bool (*has_output)(const struct conn *conn);
    void (*flush)(struct conn *conn);
    /* Drops what waits. */
    void (*forget)(struct conn *conn);
    /* Bytes that the peer has not taken, of which it may have taken silent_bytes without a word. */
    uint64_t (*outstanding)(const struct conn *conn);
    uint32_t silent_bytes;
    bool (*large_under_way)(const struct conn *conn);
    uint64_t (*held)(const struct conn *conn);
    uint64_t (*dropped)(const struct conn *conn); /* view frames, on arrival */
    /* Leaves the other side; what it brought may still be received. */
    void (*detach)(struct conn *conn);
    void (*deinit)(struct conn *conn);
};
extern const struct transport transport_tcp;
extern const struct transport transport_rings;

struct hub_channel;

struct conn {
    struct list_link all;    /* among the standing ones, or in port.opening */
    struct list_link ready;  /* in port.ready, or alone */
    struct list_link dirty;  /* in port.dirty, or alone */
    struct list_link polled; /* in port.polled, or alone */
    struct list_link over;   /* in port.over, or alone */
    struct port *port;
    const struct transport *transport;
    uint8_t node, worker; /* the peer's */
    bool standing;

    struct stream *stream; /* of a socket; NULL: draining, or a hub's */
    struct link *link;     /* tcp */

    struct shm shm;              /* rings */
    struct hub_channel *channel; /* rings of a hub */
    uint32_t side;               /* of the channel */
    struct segment *segment;     /* rings that are shared with another process */
    struct opening *opening;     /* while the two sides agree on a segment */
    struct exposure *exposed;    /* the peer's region, once a batch was posted; or NULL */
};

/* A connection that waits to be adopted: a socket, or one side of a channel. */
struct offer {
    struct offer *next;
    int fd;                      /* -1: a channel */
    struct hub_channel *channel; /* or NULL */
    uint32_t side;
    struct handshake_peer peer;
};

struct port_peer {
    struct conn *conns[HANDSHAKE_WORKERS_MAX];
    uint32_t standing;
    /* As its newest connection said: the version of the frames, and how many workers it has; 0:
     * there was none yet. */
    uint16_t version;
    uint8_t workers;
};

/* What other threads may read; each is written by the worker's thread alone, and nothing hangs on
 * the order in which they are seen. */
struct port_counters {
    _Atomic uint64_t bytes_in, bytes_out, dropped_unconnected, dropped_full, dropped_view;
    _Atomic uint64_t connections, shared, faults, ended, outstanding, held;
};

/* By which the ports at the other ends of channels wake a port's thread; it outlives the port. */
struct hub_bell {
    _Atomic uint32_t references;
    pthread_mutex_t mutex;
    struct loop *loop; /* under mutex; NULL: the port is gone */
};

struct port {
    struct port_config config;
    struct loop *loop;
    struct port_peer peers[NODES_MAX];
    struct list_link all, ready, dirty, over;
    struct list_link
        polled;        /* standing connections that do not say by themselves that frames came */
    struct conn *lent; /* whose frame was handed out last */
    struct port_stats now;
    struct port_counters published;

    struct loop_sleeper sleeper;
    struct list_link opening; /* connections that will be over a segment or, if not, over tcp */

    struct exposure *exposure;          /* what peers may reach; or NULL */
    struct list_link posted, completed; /* struct port_batch */

    struct hub_bell *bell;   /* in a hub */
    struct list_link in_hub; /* the hub's, under its mutex */

    pthread_mutex_t mutex; /* what follows */
    struct offer *offers;
    nodeset refused[HANDSHAKE_WORKERS_MAX]; /* by remote worker: no memory for their offers */
};

/* ---- port.c, for the transports ---- */

void conn_make_dirty(struct conn *conn);
void conn_make_ready(struct conn *conn);
/* Out of the map, without its transport; goes when what it brought has been received. */
void conn_detach(struct conn *conn);
/* The same for one whose bytes are at fault: nothing more is received. Tells the owner. */
void conn_fault(struct conn *conn, const char *why);
/* The same for one that the other side ended. */
void conn_ended(struct conn *conn, const char *why);
/* In the map, in the place of an older one. */
void conn_stand(struct conn *conn, const struct handshake_peer *peer);
/* One that never stood is gone. Tells the owner. */
void conn_failed(struct conn *conn, const char *why);
/* port_receive found the end or a fault; what is to be said of it is said later. */
void conn_make_over(struct conn *conn);

/* Puts an offer in the place of an older one of the same worker pair; wakes the loop. Any thread.
 * The offer is the port's. */
void port_add_offer(struct port *port, struct offer *offer);
void offer_free(struct offer *offer);

/* NULL: there is none. */
struct conn *port_connection(const struct port *port, uint8_t node, uint8_t worker);

/* ---- port_verbs.c ---- */

/* A connection stands: the peer learns what is exposed. */
void verbs_stand(struct conn *conn);
/* Executes what was posted. */
void verbs_flush(struct port *port);
/* A connection does not stand any more: what was posted by it ends. */
void verbs_ended(struct conn *conn);

/* ---- port_stats.c ---- */

void port_publish_stats(struct port *port);

/* ---- port_tcp.c ---- */

/* A link in the connection's stream, which is opened from fd unless it is open already.
 * HK_ERR_NOMEM, HK_ERR_IO: the socket is still the caller's. */
int tcp_open(struct conn *conn, const struct handshake_peer *peer, int fd)
    __attribute__((warn_unused_result));
void tcp_received(struct conn *conn, struct bytes bytes);
void tcp_flush(struct conn *conn);

/* ---- port_rings.c ---- */

/* The port's loop asks for its rings before it sleeps. */
void rings_watch(struct port *port);
/* Ended or at fault: tells the owner. */
void rings_over(struct conn *conn);

/* ---- port_segment.c ---- */

/* Begins to agree with the peer. HK_ERR_NOMEM, HK_ERR_IO: the socket is still the caller's. */
int segment_open(struct conn *conn, const struct handshake_peer *peer, int fd)
    __attribute__((warn_unused_result));
void segment_wake(const struct conn *conn);
void segment_expose(const struct conn *conn, const struct exposure *exposure);
/* What the peer exposes, with one reference; NULL: nothing, or nothing that can be had. */
struct exposure *segment_exposed(const struct conn *conn);
/* Lets go of memory, and of what was under way while it opened. */
void segment_close(struct conn *conn);

/* ---- hub.c ---- */

/* The port is visible to others from here on. HK_ERR_NOMEM. */
int hub_enter(struct port *port) __attribute__((warn_unused_result));
/* No offers from others any more. */
void hub_leave(struct port *port);
/* The last: nobody wakes the port's loop from here on. */
void hub_forget(struct port *port);
/* HK_ERR_NOMEM: the side is still the caller's. */
int hub_open(struct conn *conn, const struct offer *offer) __attribute__((warn_unused_result));
/* The side says that nothing follows, and lets go of the channel. */
void hub_refuse(struct hub_channel *channel, uint32_t side);
/* Wakes the other side; lets go of the channel. */
void hub_ring(const struct conn *conn);
void hub_let_go(struct conn *conn);
/* As segment_expose and segment_exposed. */
void hub_expose(const struct conn *conn, struct exposure *exposure);
struct exposure *hub_exposed(const struct conn *conn);

#endif
