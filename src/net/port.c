/* Connections of one worker. A connection is in these states:
 *
 *     offered -> standing        port_adopt: it has a link, a stream and its place in the map
 *     standing -> draining       the other side ended it, or a newer one took its place, while
 *                                frames that it brought wait to be received
 *     standing, draining -> gone nothing waits any more, or its bytes were at fault
 *
 * Only standing ones have a stream and are in the map; `ready` holds those from which a frame may
 * be received, `dirty` those that may have something to say. */
#include "net/port.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include <sodium.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/list.h"
#include "net/link.h"
#include "wire/frame.h"

/* A view frame waits at most behind this much in its stream. */
#define STREAM_QUEUED_MAX (512u * 1024u)
/* What a stream is asked to take at one time. */
#define OUTPUT_STEP (2u * LINK_FRAGMENT)

/* Of a frame's header, docs/WIRE.md. */
#define FRAME_AT_TARGET 16u
#define FRAME_AT_TARGET_WORKER 18u

struct conn {
    struct list_link all;   /* among the standing ones */
    struct list_link ready; /* in port.ready, or alone */
    struct list_link dirty; /* in port.dirty, or alone */
    struct port *port;
    struct stream *stream; /* NULL: draining */
    struct link *link;
    uint8_t node, worker; /* the peer's */
};

struct offer {
    struct offer *next;
    int fd;
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
    _Atomic uint64_t connections, faults, ended, outstanding, held;
};

struct port {
    struct port_config config;
    struct loop *loop;
    struct port_peer peers[NODES_MAX];
    struct list_link all, ready, dirty;
    struct conn *lent; /* whose frame was handed out last */
    struct port_stats now;
    struct port_counters published;

    pthread_mutex_t mutex; /* what follows */
    struct offer *offers;
    nodeset refused[HANDSHAKE_WORKERS_MAX]; /* by remote worker: no memory for their offers */
};

static void conn_received(void *owner, struct bytes bytes);
static void conn_drained(void *owner);
static void conn_closed(void *owner, int error);
static const struct stream_ops conn_ops = {
    .received = conn_received, .drained = conn_drained, .closed = conn_closed};

int port_create(const struct port_config *config, struct loop *loop, struct port **port_out)
{
    HK_ASSERT(config->self < NODES_MAX && config->worker < HANDSHAKE_WORKERS_MAX);

    struct port *port = calloc(1, sizeof(*port));

    if (port == NULL)
        return HK_ERR_NOMEM;
    if (pthread_mutex_init(&port->mutex, NULL) != 0) {
        free(port);
        return HK_ERR_NOMEM;
    }
    port->config = *config;
    port->loop = loop;
    list_init(&port->all);
    list_init(&port->ready);
    list_init(&port->dirty);
    *port_out = port;
    return HK_OK;
}

static struct conn *conn_of(struct list_link *link, size_t offset)
{
    return (struct conn *)(void *)((uint8_t *)link - offset);
}

#define CONN(link, member) conn_of(link, offsetof(struct conn, member))

static void conn_destroy(struct conn *conn)
{
    if (conn->port->lent == conn)
        conn->port->lent = NULL;
    conn->port->now.dropped_view += link_dropped(conn->link);
    list_remove(&conn->ready);
    list_remove(&conn->dirty);
    link_destroy(conn->link);
    free(conn);
}

/* Out of the map, without its stream; what it brought may still be received. */
static void conn_detach(struct conn *conn)
{
    struct port_peer *peer = &conn->port->peers[conn->node];

    HK_ASSERT(peer->conns[conn->worker] == conn);
    peer->conns[conn->worker] = NULL;
    peer->standing--;
    conn->port->now.connections--;
    list_remove(&conn->all);
    list_remove(&conn->dirty);
    conn->stream = NULL;
    if (list_empty(&conn->ready))
        conn_destroy(conn);
}

static void port_lost(struct port *port, uint8_t node, uint8_t worker, const char *why)
{
    port->config.lost(port->config.context, node, worker, port->config.worker, why);
}

static void conn_fault(struct conn *conn, const char *why)
{
    struct port *port = conn->port;
    uint8_t node = conn->node, worker = conn->worker;

    port->now.faults++;
    stream_close(conn->stream);
    list_remove(&conn->ready); /* nothing is received from a link at fault */
    conn_detach(conn);
    port_lost(port, node, worker, why);
}

static void make_dirty(struct conn *conn)
{
    if (conn->stream != NULL && list_empty(&conn->dirty) && link_output_ready(conn->link) > 0)
        list_push_back(&conn->port->dirty, &conn->dirty);
}

/* Moves what the link has to say to the stream. What does not fit now goes when the stream has
 * drained. */
static void conn_flush(struct conn *conn)
{
    uint32_t ready = 0;

    list_remove(&conn->dirty);
    while (stream_queued(conn->stream) < STREAM_QUEUED_MAX &&
           (ready = link_output_ready(conn->link)) > 0) {
        uint32_t room = ready < OUTPUT_STEP ? ready : OUTPUT_STEP;
        uint8_t *out = stream_reserve(conn->stream, room);

        if (out == NULL) {
            list_push_back(&conn->port->dirty, &conn->dirty); /* perhaps in the next round */
            return;
        }

        uint32_t n = link_output(conn->link, out, room);

        stream_commit(conn->stream, n);
        conn->port->now.bytes_out += n;
    }
}

static void conn_received(void *owner, struct bytes bytes)
{
    struct conn *conn = owner;
    struct port *port = conn->port;

    port->now.bytes_in += bytes.n;
    if (port->lent == conn)
        port->lent = NULL;

    enum link_fault fault = link_input(conn->link, bytes);

    if (fault != LINK_OK) {
        conn_fault(conn, link_fault_names[fault]);
        return;
    }
    if (list_empty(&conn->ready))
        list_push_back(&port->ready, &conn->ready);
    make_dirty(conn); /* credit may have come */
}

static void conn_drained(void *owner)
{
    conn_flush(owner);
}

static void conn_closed(void *owner, int error)
{
    struct conn *conn = owner;
    struct port *port = conn->port;
    uint8_t node = conn->node, worker = conn->worker;
    const char *why = error == 0 ? "closed by the peer" : strerrordesc_np(error);

    port->now.ended++;
    conn_detach(conn);
    port_lost(port, node, worker, why != NULL ? why : "broken");
}

static void counters_publish(struct port *port);

void port_destroy(struct port *port)
{
    if (port == NULL)
        return;
    list_each_safe(link, following, &port->all)
    {
        struct conn *conn = CONN(link, all);

        stream_close(conn->stream);
        list_remove(&conn->ready);
        conn_detach(conn);
    }
    for (struct list_link *link; (link = list_pop_front(&port->ready)) != NULL;)
        conn_destroy(CONN(link, ready));
    while (port->offers != NULL) {
        struct offer *offer = port->offers;

        port->offers = offer->next;
        (void)close(offer->fd);
        sodium_memzero(offer, sizeof(*offer));
        free(offer);
    }
    (void)pthread_mutex_destroy(&port->mutex);
    free(port);
}

/* ---- Connections come in ---- */

/* Takes an older offer of the same worker pair out of the list; -1: there is none. Under the
 * mutex. */
static int offer_replaced(struct port *port, const struct handshake_peer *peer)
{
    for (struct offer **at = &port->offers; *at != NULL; at = &(*at)->next) {
        struct offer *offer = *at;

        if (offer->peer.node == peer->node && offer->peer.worker == peer->worker) {
            int fd = offer->fd;

            *at = offer->next;
            sodium_memzero(offer, sizeof(*offer));
            free(offer);
            return fd;
        }
    }
    return -1;
}

void port_offer(struct port *port, int fd, const struct handshake_peer *peer)
{
    HK_ASSERT(peer->node < NODES_MAX && peer->node != port->config.self);
    HK_ASSERT(peer->workers <= HANDSHAKE_WORKERS_MAX && peer->worker < peer->workers);
    HK_ASSERT(peer->local_worker == port->config.worker);

    struct offer *offer = malloc(sizeof(*offer));
    int unused = fd;

    (void)pthread_mutex_lock(&port->mutex);
    if (offer != NULL) {
        unused = offer_replaced(port, peer);
        *offer = (struct offer){.next = port->offers, .fd = fd, .peer = *peer};
        port->offers = offer;
    } else {
        port->refused[peer->worker] |= nodeset_of(peer->node);
    }
    (void)pthread_mutex_unlock(&port->mutex);
    if (unused >= 0)
        (void)close(unused);
    loop_wake(port->loop);
}

static int conn_make(struct port *port, const struct offer *offer, struct conn **conn_out)
{
    struct link_config config = {
        .keys = offer->peer.keys,
        .window = port->config.window,
        .queue_max = port->config.queue_max,
    };
    struct conn *conn = calloc(1, sizeof(*conn));
    int err = HK_ERR_NOMEM;

    if (conn == NULL)
        goto out;
    conn->port = port;
    conn->node = offer->peer.node;
    conn->worker = offer->peer.worker;
    list_init(&conn->all);
    list_init(&conn->ready);
    list_init(&conn->dirty);
    err = link_create(&config, &conn->link);
    if (err != HK_OK)
        goto out;
    err = stream_open(port->loop, offer->fd, &conn_ops, conn, &conn->stream);
    if (err != HK_OK)
        goto out;
    *conn_out = conn;
    conn = NULL;
out:
    if (conn != NULL)
        link_destroy(conn->link);
    free(conn);
    sodium_memzero(&config.keys, sizeof(config.keys));
    return err;
}

static void adopt(struct port *port, const struct offer *offer)
{
    struct port_peer *peer = &port->peers[offer->peer.node];
    struct conn *older = peer->conns[offer->peer.worker];
    struct conn *conn = NULL;

    if (older != NULL) {
        stream_close(older->stream);
        conn_detach(older);
    }
    if (conn_make(port, offer, &conn) != HK_OK) {
        (void)close(offer->fd);
        port_lost(port, offer->peer.node, offer->peer.worker, "no memory for a connection");
        return;
    }
    peer->conns[conn->worker] = conn;
    peer->standing++;
    peer->workers = offer->peer.workers;
    peer->version = offer->peer.version;
    port->now.connections++;
    list_push_back(&port->all, &conn->all);
    make_dirty(conn);
}

void port_adopt(struct port *port)
{
    nodeset refused[HANDSHAKE_WORKERS_MAX];

    (void)pthread_mutex_lock(&port->mutex);
    struct offer *offers = port->offers;
    port->offers = NULL;
    memcpy(refused, port->refused, sizeof(refused));
    memset(port->refused, 0, sizeof(port->refused));
    (void)pthread_mutex_unlock(&port->mutex);

    while (offers != NULL) {
        struct offer *offer = offers;

        offers = offer->next;
        adopt(port, offer);
        sodium_memzero(offer, sizeof(*offer));
        free(offer);
    }
    for (uint32_t worker = 0; worker < HANDSHAKE_WORKERS_MAX; worker++)
        for (nodeset left = refused[worker]; left != 0; left &= left - 1)
            port_lost(port, nodeset_first(left), (uint8_t)worker, "no memory for a connection");
}

/* ---- Frames ---- */

static struct conn *conn_towards(const struct port *port, uint8_t node, uint8_t worker)
{
    HK_ASSERT(node < NODES_MAX);

    const struct port_peer *peer = &port->peers[node];

    return peer->workers > 0 ? peer->conns[worker % peer->workers] : NULL;
}

static struct conn *conn_for(struct port *port, struct bytes frame)
{
    HK_ASSERT(frame.n >= FRAME_HEADER);

    struct conn *conn =
        conn_towards(port, frame.at[FRAME_AT_TARGET], frame.at[FRAME_AT_TARGET_WORKER]);

    port->now.dropped_unconnected += conn == NULL;
    return conn;
}

void port_give(struct port *port, struct pieces *frame)
{
    struct conn *conn = conn_for(port, bytes_of(frame->head, frame->head_bytes));

    if (conn == NULL) {
        pieces_free(frame);
        return;
    }
    if (!link_give(conn->link, frame))
        port->now.dropped_full++;
    make_dirty(conn);
}

bool port_large_under_way(const struct port *port, uint8_t node, uint8_t worker)
{
    const struct conn *conn = conn_towards(port, node, worker);

    return conn != NULL && link_large_under_way(conn->link);
}

uint16_t port_version(const struct port *port, uint8_t node)
{
    const struct port_peer *peer = &port->peers[node];

    return peer->workers > 0 ? peer->version : FRAME_VERSION;
}

void port_send(struct port *port, struct bytes frame)
{
    struct conn *conn = conn_for(port, frame);

    if (conn == NULL)
        return;
    if (!link_send(conn->link, frame))
        port->now.dropped_full++;
    make_dirty(conn);
}

bool port_receive(struct port *port, struct bytes *frame_out)
{
    /* Whose frame was taken last goes to the end. The frame lives in its link until that is asked
     * again, and a connection that is drained must live as long. */
    if (port->lent != NULL) {
        list_remove(&port->lent->ready);
        list_push_back(&port->ready, &port->lent->ready);
        port->lent = NULL;
    }
    while (!list_empty(&port->ready)) {
        struct conn *conn = CONN(port->ready.next, ready);

        if (link_receive(conn->link, frame_out)) {
            port->lent = conn;
            make_dirty(conn); /* credit may have fallen due */
            return true;
        }
        list_remove(&conn->ready);
        if (conn->stream == NULL)
            conn_destroy(conn);
    }
    return false;
}

void port_flush(struct port *port)
{
    struct list_link dirty;

    list_init(&dirty);
    list_append(&dirty, &port->dirty);
    for (struct list_link *link; (link = list_pop_front(&dirty)) != NULL;)
        conn_flush(CONN(link, dirty));
    counters_publish(port);
}

/* ---- Members and figures ---- */

static uint64_t peer_lag(const struct port_peer *peer)
{
    uint64_t lag = 0;
    uint32_t left = peer->standing;

    for (uint32_t i = 0; left > 0; i++) {
        if (peer->conns[i] == NULL)
            continue;
        uint64_t outstanding = link_outstanding(peer->conns[i]->link);

        lag += outstanding > LINK_CREDIT_LAG ? outstanding - LINK_CREDIT_LAG : 0;
        left--;
    }
    return lag;
}

bool port_congested(const struct port *port, nodeset members)
{
    for (; members != 0; members &= members - 1)
        if (peer_lag(&port->peers[nodeset_first(members)]) >= port->config.congested_at)
            return true;
    return false;
}

void port_members(struct port *port, nodeset members)
{
    list_each(link, &port->all)
    {
        struct conn *conn = CONN(link, all);

        if (!nodeset_has(members, conn->node))
            link_forget(conn->link);
    }
}

nodeset port_connected(const struct port *port)
{
    nodeset connected = 0;

    for (uint8_t node = 0; node < NODES_MAX; node++)
        if (port->peers[node].standing > 0)
            connected |= nodeset_of(node);
    return connected;
}

static void publish(_Atomic uint64_t *counter, uint64_t value)
{
    /* relaxed: pairs with read_counter; each figure stands for itself. */
    atomic_store_explicit(counter, value, memory_order_relaxed);
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
    /* relaxed: pairs with publish. */
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void counters_publish(struct port *port)
{
    const struct port_stats *now = &port->now;
    struct port_counters *to = &port->published;
    uint64_t outstanding = 0, held = 0, dropped_view = now->dropped_view;

    list_each(link, &port->all)
    {
        const struct link *one = CONN(link, all)->link;

        outstanding += link_outstanding(one);
        held += link_bytes_held(one);
        dropped_view += link_dropped(one);
    }
    publish(&to->bytes_in, now->bytes_in);
    publish(&to->bytes_out, now->bytes_out);
    publish(&to->dropped_unconnected, now->dropped_unconnected);
    publish(&to->dropped_full, now->dropped_full);
    publish(&to->dropped_view, dropped_view);
    publish(&to->connections, now->connections);
    publish(&to->faults, now->faults);
    publish(&to->ended, now->ended);
    publish(&to->outstanding, outstanding);
    publish(&to->held, held);
}

void port_stats(const struct port *port, struct port_stats *stats_out)
{
    const struct port_counters *from = &port->published;

    *stats_out = (struct port_stats){
        .bytes_in = read_counter(&from->bytes_in),
        .bytes_out = read_counter(&from->bytes_out),
        .dropped_unconnected = read_counter(&from->dropped_unconnected),
        .dropped_full = read_counter(&from->dropped_full),
        .dropped_view = read_counter(&from->dropped_view),
        .connections = read_counter(&from->connections),
        .faults = read_counter(&from->faults),
        .ended = read_counter(&from->ended),
        .outstanding = read_counter(&from->outstanding),
        .held = read_counter(&from->held),
    };
}
