/* Connections over rings in memory that both sides see, be it of this process (hub.c) or shared
 * with another one (port_segment.c). */
#include "net/port_internal.h"

static bool port_lies_down(void *context)
{
    struct port *port = context;
    bool quiet = list_empty(&port->over);
    struct list_link *link = port->polled.next;
    while (quiet && link != &port->polled) {
        quiet = shm_sleep(&list_entry(link, struct conn, polled)->shm);
        link = quiet ? link->next : link;
    }
    if (!quiet) {
        for (struct list_link *back = port->polled.next; back != link; back = back->next) {
            shm_awake(&list_entry(back, struct conn, polled)->shm);
        }
    }
    return quiet;
}

static void port_gets_up(void *context)
{
    struct port *port = context;
    list_each(link, &port->polled)
    {
        shm_awake(&list_entry(link, struct conn, polled)->shm);
    }
}

void rings_watch(struct port *port)
{
    port->sleeper.sleep = port_lies_down;
    port->sleeper.awake = port_gets_up;
    port->sleeper.context = port;
    loop_add_sleeper(port->loop, &port->sleeper);
}

/* ---- The transport ---- */

static void rings_wake(const struct conn *conn)
{
    if (conn->channel != NULL) {
        hub_ring(conn);
    } else {
        segment_wake(conn);
    }
}

static bool rings_sent(struct conn *conn, bool sent, uint32_t bytes)
{
    if (sent) {
        conn->port->now.bytes_out += bytes;
    } else if (conn->shm.fault != SHM_OK) {
        conn_make_over(conn);
    }
    return sent;
}

static bool rings_send(struct conn *conn, struct bytes frame)
{
    return rings_sent(conn, shm_send(&conn->shm, frame), frame.n);
}

static bool rings_give(struct conn *conn, struct pieces *frame)
{
    uint32_t bytes = frame->head_bytes + frame->tail.n;
    return rings_sent(conn, shm_give(&conn->shm, frame), bytes);
}

static bool rings_pending(struct conn *conn)
{
    return shm_pending(&conn->shm);
}

static bool rings_receive(struct conn *conn, struct bytes *frame_out)
{
    bool wake = false;
    bool received = shm_receive(&conn->shm, frame_out, &wake);
    if (wake) {
        rings_wake(conn);
    }
    if (received) {
        conn->port->now.bytes_in += frame_out->n;
    } else if (conn->shm.ended || conn->shm.fault != SHM_OK) {
        conn_make_over(conn);
    }
    return received;
}

static bool rings_has_output(const struct conn *conn)
{
    return shm_has_output(&conn->shm);
}

static void rings_flush(struct conn *conn)
{
    list_remove(&conn->dirty);
    if (shm_flush(&conn->shm)) {
        rings_wake(conn);
    }
    if (conn->shm.fault != SHM_OK) {
        conn_make_over(conn);
    } else {
        conn_make_dirty(conn); /* what has no room yet */
    }
}

static void rings_drop(struct conn *conn)
{
    shm_forget(&conn->shm);
}

static uint64_t rings_outstanding(const struct conn *conn)
{
    return shm_outstanding(&conn->shm);
}

static bool rings_large_under_way(const struct conn *conn)
{
    return shm_large_under_way(&conn->shm);
}

static uint64_t rings_held(const struct conn *conn)
{
    return shm_bytes_held(&conn->shm);
}

static uint64_t rings_dropped(const struct conn *conn)
{
    (void)conn; /* a ring holds what it was given */
    return 0;
}

static void rings_detach(struct conn *conn)
{
    bool wake = shm_end(&conn->shm);
    if (conn->stream != NULL) {
        stream_close(conn->stream); /* which wakes the other side, too */
        conn->stream = NULL;
    } else if (wake && conn->channel != NULL) {
        hub_ring(conn);
    }
}

static void rings_deinit(struct conn *conn)
{
    shm_deinit(&conn->shm);
    if (conn->channel != NULL) {
        hub_let_go(conn);
    } else {
        segment_close(conn);
    }
}

const struct transport transport_rings = {
    .send = rings_send,
    .give = rings_give,
    .receive = rings_receive,
    .pending = rings_pending,
    .has_output = rings_has_output,
    .flush = rings_flush,
    .forget = rings_drop,
    .outstanding = rings_outstanding,
    .silent_bytes = 0,
    .large_under_way = rings_large_under_way,
    .held = rings_held,
    .dropped = rings_dropped,
    .detach = rings_detach,
    .deinit = rings_deinit,
};

void rings_over(struct conn *conn)
{
    if (conn->shm.fault != SHM_OK) {
        conn_fault(conn, shm_fault_names[conn->shm.fault]);
    } else {
        conn_ended(conn, "the other side has left");
    }
}
