/* Connections over sockets: a stream of the loop with a link in it. */
#include <string.h>

#include <sodium.h>

#include "base/err.h"
#include "net/port_internal.h"

/* A view frame waits at most behind this much in its stream. */
#define STREAM_QUEUED_MAX (512u * 1024u)
/* What a stream is asked to take at one time. */
#define OUTPUT_STEP (2u * LINK_FRAGMENT)

static bool tcp_has_output(const struct conn *conn)
{
    return link_output_ready(conn->link) > 0;
}

/* Moves what the link has to say to the stream. What does not fit now goes when the stream has
 * drained. */
void tcp_flush(struct conn *conn)
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

/* ---- The stream's callbacks ---- */

void tcp_received(struct conn *conn, struct bytes bytes)
{
    struct port *port = conn->port;
    port->now.bytes_in += bytes.n;
    if (port->lent == conn) {
        port->lent = NULL;
    }
    enum link_fault fault = link_input(conn->link, bytes);
    if (fault != LINK_OK) {
        conn_fault(conn, link_fault_names[fault]);
        return;
    }
    conn_make_ready(conn);
    conn_make_dirty(conn); /* credit may have come */
}

static void stream_received(void *owner, struct bytes bytes)
{
    tcp_received(owner, bytes);
}

static void tcp_drained(void *owner)
{
    tcp_flush(owner);
}

static void tcp_closed(void *owner, int error)
{
    struct conn *conn = owner;
    const char *why = error == 0 ? "closed by the peer" : strerrordesc_np(error);
    conn->stream = NULL;
    conn_ended(conn, why != NULL ? why : "broken");
}

static const struct stream_ops tcp_ops = {
    .received = stream_received, .drained = tcp_drained, .closed = tcp_closed};

/* ---- The transport ---- */

static bool tcp_send(struct conn *conn, struct bytes frame)
{
    return link_send(conn->link, frame);
}

static bool tcp_give(struct conn *conn, struct pieces *frame)
{
    return link_give(conn->link, frame);
}

static bool tcp_receive(struct conn *conn, struct bytes *frame_out)
{
    bool received = link_receive(conn->link, frame_out);
    if (received) {
        conn_make_dirty(conn); /* credit may have fallen due */
    }
    return received;
}

static void tcp_forget(struct conn *conn)
{
    link_forget(conn->link);
}

static uint64_t tcp_outstanding(const struct conn *conn)
{
    return link_outstanding(conn->link);
}

static bool tcp_large_under_way(const struct conn *conn)
{
    return link_large_under_way(conn->link);
}

static uint64_t tcp_held(const struct conn *conn)
{
    return link_bytes_held(conn->link);
}

static uint64_t tcp_dropped(const struct conn *conn)
{
    return link_dropped(conn->link);
}

static void tcp_detach(struct conn *conn)
{
    if (conn->stream != NULL) {
        stream_close(conn->stream);
        conn->stream = NULL;
    }
}

static void tcp_deinit(struct conn *conn)
{
    link_destroy(conn->link);
}

const struct transport transport_tcp = {
    .send = tcp_send,
    .give = tcp_give,
    .receive = tcp_receive,
    .has_output = tcp_has_output,
    .flush = tcp_flush,
    .forget = tcp_forget,
    .outstanding = tcp_outstanding,
    .silent_bytes = LINK_CREDIT_LAG,
    .large_under_way = tcp_large_under_way,
    .held = tcp_held,
    .dropped = tcp_dropped,
    .detach = tcp_detach,
    .deinit = tcp_deinit,
};

int tcp_open(struct conn *conn, const struct handshake_peer *peer, int fd)
{
    struct link_config config = {
        .keys = peer->keys,
        .window = conn->port->config.window,
        .queue_max = conn->port->config.queue_max,
    };
    int err = link_create(&config, &conn->link);
    sodium_memzero(&config.keys, sizeof(config.keys));
    if (err != HK_OK) {
        return err;
    }
    conn->transport = &transport_tcp;
    if (conn->stream == NULL) {
        err = stream_open(conn->port->loop, fd, &tcp_ops, conn, &conn->stream);
    }
    if (err != HK_OK) {
        link_destroy(conn->link);
    }
    return err;
}
