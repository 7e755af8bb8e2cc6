#include "net/port.h"

#include <stdlib.h>
#include <unistd.h>

#include <sodium.h>

#include "base/assert.h"
#include "base/err.h"
#include "net/exposure.h"
#include "net/port_internal.h"
#include "wire/frame.h"

/* Of a frame's header, docs/WIRE.md. */
#define FRAME_AT_TARGET 16u
#define FRAME_AT_TARGET_WORKER 18u

int port_create(const struct port_config *config, struct loop *loop, struct port **port_out)
{
    HK_ASSERT(config->self < NODES_MAX && config->worker < HANDSHAKE_WORKERS_MAX);
    struct port *port = calloc(1, sizeof(*port));
    if (port == NULL) {
        return HK_ERR_NOMEM;
    }
    if (pthread_mutex_init(&port->mutex, NULL) != 0) {
        free(port);
        return HK_ERR_NOMEM;
    }
    port->config = *config;
    port->loop = loop;
    list_init(&port->all);
    list_init(&port->ready);
    list_init(&port->dirty);
    list_init(&port->over);
    list_init(&port->polled);
    list_init(&port->in_hub);
    list_init(&port->opening);
    list_init(&port->posted);
    list_init(&port->completed);
    rings_watch(port);
    if (config->hub != NULL && hub_enter(port) != HK_OK) {
        port_destroy(port);
        return HK_ERR_NOMEM;
    }
    *port_out = port;
    return HK_OK;
}

/* ---- The life of a connection ---- */

static void conn_destroy(struct conn *conn)
{
    if (conn->port->lent == conn) {
        conn->port->lent = NULL;
    }
    conn->port->now.dropped_view += conn->transport->dropped(conn);
    list_remove(&conn->ready);
    list_remove(&conn->dirty);
    list_remove(&conn->over);
    conn->transport->deinit(conn);
    free(conn);
}

void conn_detach(struct conn *conn)
{
    struct port_peer *peer = &conn->port->peers[conn->node];
    HK_ASSERT(conn->standing && peer->conns[conn->worker] == conn);
    peer->conns[conn->worker] = NULL;
    peer->standing--;
    conn->port->now.connections--;
    conn->standing = false;
    list_remove(&conn->all);
    list_remove(&conn->dirty);
    list_remove(&conn->polled);
    list_remove(&conn->over);
    verbs_ended(conn);
    conn->transport->detach(conn);
    if (list_empty(&conn->ready)) {
        conn_destroy(conn);
    }
}

static void port_lost(struct port *port, uint8_t node, uint8_t worker, const char *why)
{
    port->config.lost(port->config.context, node, worker, port->config.worker, why);
}

void conn_fault(struct conn *conn, const char *why)
{
    struct port *port = conn->port;
    uint8_t node = conn->node, worker = conn->worker;
    port->now.faults++;
    list_remove(&conn->ready); /* nothing is received from one at fault */
    conn_detach(conn);
    port_lost(port, node, worker, why);
}

void conn_ended(struct conn *conn, const char *why)
{
    struct port *port = conn->port;
    uint8_t node = conn->node, worker = conn->worker;
    port->now.ended++;
    conn_detach(conn);
    port_lost(port, node, worker, why);
}

void conn_make_over(struct conn *conn)
{
    if (conn->standing && list_empty(&conn->over)) {
        list_push_back(&conn->port->over, &conn->over);
    }
}

/* One that never stood. */
static void conn_abandon(struct conn *conn)
{
    list_remove(&conn->all);
    if (conn->stream != NULL) {
        stream_close(conn->stream);
    }
    segment_close(conn);
    free(conn);
}

void conn_failed(struct conn *conn, const char *why)
{
    struct port *port = conn->port;
    uint8_t node = conn->node, worker = conn->worker;
    conn_abandon(conn);
    port->now.ended++;
    port_lost(port, node, worker, why);
}

static void port_end_those_over(struct port *port)
{
    for (struct list_link *link; (link = list_pop_front(&port->over)) != NULL;) {
        rings_over(list_entry(link, struct conn, over));
    }
}

void conn_make_dirty(struct conn *conn)
{
    if (conn->standing && list_empty(&conn->dirty) && conn->transport->has_output(conn)) {
        list_push_back(&conn->port->dirty, &conn->dirty);
    }
}

void conn_make_ready(struct conn *conn)
{
    if (list_empty(&conn->ready)) {
        list_push_back(&conn->port->ready, &conn->ready);
    }
}

void port_destroy(struct port *port)
{
    if (port == NULL) {
        return;
    }
    hub_leave(port);
    loop_remove_sleeper(&port->sleeper);
    for (struct list_link *link; (link = list_pop_front(&port->opening)) != NULL;) {
        conn_abandon(list_entry(link, struct conn, all));
    }
    list_each_safe(link, following, &port->all)
    {
        struct conn *conn = list_entry(link, struct conn, all);
        list_remove(&conn->ready);
        conn_detach(conn);
    }
    for (struct list_link *link; (link = list_pop_front(&port->ready)) != NULL;) {
        conn_destroy(list_entry(link, struct conn, ready));
    }
    while (port->offers != NULL) {
        struct offer *offer = port->offers;
        port->offers = offer->next;
        offer_free(offer);
    }
    exposure_let_go(port->exposure);
    hub_forget(port);
    (void)pthread_mutex_destroy(&port->mutex);
    free(port);
}

/* ---- Connections come in ---- */

void offer_free(struct offer *offer)
{
    if (offer->fd >= 0) {
        (void)close(offer->fd);
    }
    if (offer->channel != NULL) {
        hub_refuse(offer->channel, offer->side);
    }
    sodium_memzero(offer, sizeof(*offer));
    free(offer);
}

/* Takes an older offer of the same worker pair out of the list; NULL: there is none. Under the
 * mutex. */
static struct offer *offer_replaced(struct port *port, const struct handshake_peer *peer)
{
    for (struct offer **at = &port->offers; *at != NULL; at = &(*at)->next) {
        struct offer *offer = *at;
        if (offer->peer.node == peer->node && offer->peer.worker == peer->worker) {
            *at = offer->next;
            return offer;
        }
    }
    return NULL;
}

void port_add_offer(struct port *port, struct offer *offer)
{
    (void)pthread_mutex_lock(&port->mutex);
    struct offer *replaced = offer_replaced(port, &offer->peer);
    offer->next = port->offers;
    port->offers = offer;
    (void)pthread_mutex_unlock(&port->mutex);
    if (replaced != NULL) {
        offer_free(replaced);
    }
    loop_wake(port->loop);
}

void port_offer(struct port *port, int fd, const struct handshake_peer *peer)
{
    HK_ASSERT(peer->node < NODES_MAX && peer->node != port->config.self);
    HK_ASSERT(peer->workers <= HANDSHAKE_WORKERS_MAX && peer->worker < peer->workers);
    HK_ASSERT(peer->local_worker == port->config.worker);
    struct offer *offer = malloc(sizeof(*offer));
    if (offer != NULL) {
        *offer = (struct offer){.fd = fd, .peer = *peer};
        port_add_offer(port, offer);
        return;
    }
    (void)pthread_mutex_lock(&port->mutex);
    port->refused[peer->worker] |= nodeset_of(peer->node);
    (void)pthread_mutex_unlock(&port->mutex);
    (void)close(fd);
    loop_wake(port->loop);
}

static int conn_make(struct port *port, const struct offer *offer, struct conn **conn_out)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    if (conn == NULL) {
        return HK_ERR_NOMEM;
    }
    conn->port = port;
    conn->node = offer->peer.node;
    conn->worker = offer->peer.worker;
    list_init(&conn->all);
    list_init(&conn->ready);
    list_init(&conn->dirty);
    list_init(&conn->polled);
    list_init(&conn->over);
    const struct handshake_peer *peer = &offer->peer;
    int err = HK_OK;
    if (offer->channel != NULL) {
        err = hub_open(conn, offer);
    } else if (peer->shm) {
        err = segment_open(conn, peer, offer->fd);
    } else {
        err = tcp_open(conn, peer, offer->fd);
    }
    if (err != HK_OK) {
        free(conn);
        return err;
    }
    *conn_out = conn;
    return HK_OK;
}

/* A newer connection takes the place of those of the same pair of workers. */
static void forget_older(struct port *port, const struct handshake_peer *peer)
{
    struct conn *older = port->peers[peer->node].conns[peer->worker];
    if (older != NULL) {
        conn_detach(older);
    }
    list_each_safe(link, following, &port->opening)
    {
        struct conn *conn = list_entry(link, struct conn, all);
        if (conn->node == peer->node && conn->worker == peer->worker) {
            conn_abandon(conn);
        }
    }
}

void conn_stand(struct conn *conn, const struct handshake_peer *from)
{
    struct port *port = conn->port;
    struct port_peer *peer = &port->peers[conn->node];
    list_remove(&conn->all);
    peer->conns[conn->worker] = conn;
    peer->standing++;
    peer->workers = from->workers;
    peer->version = from->version;
    port->now.connections++;
    conn->standing = true;
    verbs_stand(conn);
    list_push_back(&port->all, &conn->all);
    if (conn->transport->pending != NULL) {
        list_push_back(&port->polled, &conn->polled);
    }
    conn_make_dirty(conn);
}

/* False: the offer is still the caller's. */
static bool adopt(struct port *port, const struct offer *offer)
{
    struct conn *conn = NULL;
    forget_older(port, &offer->peer);
    if (conn_make(port, offer, &conn) != HK_OK) {
        return false;
    }
    if (conn->opening != NULL) {
        list_push_back(&port->opening, &conn->all);
    } else {
        conn_stand(conn, &offer->peer);
    }
    return true;
}

static void adopt_or_refuse(struct port *port, struct offer *offer)
{
    if (adopt(port, offer)) {
        offer->fd = -1;
        offer->channel = NULL;
    } else {
        port_lost(port, offer->peer.node, offer->peer.worker, "no memory for a connection");
    }
    offer_free(offer);
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

    port_end_those_over(port);
    while (offers != NULL) {
        struct offer *offer = offers;
        offers = offer->next;
        adopt_or_refuse(port, offer);
    }
    for (uint32_t worker = 0; worker < HANDSHAKE_WORKERS_MAX; worker++) {
        for (nodeset left = refused[worker]; left != 0; left &= left - 1) {
            port_lost(port, nodeset_first(left), (uint8_t)worker, "no memory for a connection");
        }
    }
}

/* ---- Frames ---- */

struct conn *port_connection(const struct port *port, uint8_t node, uint8_t worker)
{
    HK_ASSERT(node < NODES_MAX);
    const struct port_peer *peer = &port->peers[node];
    return peer->workers > 0 ? peer->conns[worker % peer->workers] : NULL;
}

static struct conn *conn_for(struct port *port, struct bytes frame)
{
    HK_ASSERT(frame.n >= FRAME_HEADER);
    struct conn *conn =
        port_connection(port, frame.at[FRAME_AT_TARGET], frame.at[FRAME_AT_TARGET_WORKER]);
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
    if (!conn->transport->give(conn, frame)) {
        port->now.dropped_full++;
    }
    conn_make_dirty(conn);
}

void port_send(struct port *port, struct bytes frame)
{
    struct conn *conn = conn_for(port, frame);
    if (conn == NULL) {
        return;
    }
    if (!conn->transport->send(conn, frame)) {
        port->now.dropped_full++;
    }
    conn_make_dirty(conn);
}

bool port_large_under_way(const struct port *port, uint8_t node, uint8_t worker)
{
    const struct conn *conn = port_connection(port, node, worker);
    return conn != NULL && conn->transport->large_under_way(conn);
}

uint16_t port_version(const struct port *port, uint8_t node)
{
    const struct port_peer *peer = &port->peers[node];
    return peer->workers > 0 ? peer->version : FRAME_VERSION;
}

/* From whom something has come without a word. False: nobody. */
static bool port_look(struct port *port)
{
    list_each(link, &port->polled)
    {
        struct conn *conn = list_entry(link, struct conn, polled);
        if (conn->transport->pending(conn)) {
            conn_make_ready(conn);
        }
    }
    return !list_empty(&port->ready);
}

static bool receive_ready(struct port *port, struct bytes *frame_out)
{
    while (!list_empty(&port->ready)) {
        struct conn *conn = list_entry(port->ready.next, struct conn, ready);
        if (conn->transport->receive(conn, frame_out)) {
            port->lent = conn;
            return true;
        }
        list_remove(&conn->ready);
        if (!conn->standing) {
            conn_destroy(conn);
        }
    }
    return false;
}

bool port_receive(struct port *port, struct bytes *frame_out)
{
    /* Whose frame was taken last goes to the end. The frame lives in its connection until that is
     * asked again, and one that is drained must live as long. */
    if (port->lent != NULL) {
        list_remove(&port->lent->ready);
        list_push_back(&port->ready, &port->lent->ready);
        port->lent = NULL;
    }
    return receive_ready(port, frame_out) || (port_look(port) && receive_ready(port, frame_out));
}

void port_flush(struct port *port)
{
    verbs_flush(port);
    struct list_link dirty;
    list_init(&dirty);
    list_append(&dirty, &port->dirty);
    for (struct list_link *link; (link = list_pop_front(&dirty)) != NULL;) {
        struct conn *conn = list_entry(link, struct conn, dirty);
        conn->transport->flush(conn);
    }
    port_end_those_over(port);
    port_publish_stats(port);
}

/* ---- Members ---- */

static uint64_t peer_lag(const struct port_peer *peer)
{
    uint64_t lag = 0;
    uint32_t left = peer->standing;
    for (uint32_t i = 0; left > 0; i++) {
        const struct conn *conn = peer->conns[i];
        if (conn == NULL) {
            continue;
        }
        uint64_t outstanding = conn->transport->outstanding(conn);
        uint32_t silent = conn->transport->silent_bytes;
        lag += outstanding > silent ? outstanding - silent : 0;
        left--;
    }
    return lag;
}

bool port_congested(const struct port *port, nodeset members)
{
    for (; members != 0; members &= members - 1) {
        if (peer_lag(&port->peers[nodeset_first(members)]) >= port->config.congested_at) {
            return true;
        }
    }
    return false;
}

void port_members(struct port *port, nodeset members)
{
    list_each(link, &port->all)
    {
        struct conn *conn = list_entry(link, struct conn, all);
        if (!nodeset_has(members, conn->node)) {
            conn->transport->forget(conn);
        }
    }
}

nodeset port_connected(const struct port *port)
{
    nodeset connected = 0;
    for (uint8_t node = 0; node < NODES_MAX; node++) {
        if (port->peers[node].standing > 0) {
            connected |= nodeset_of(node);
        }
    }
    return connected;
}
