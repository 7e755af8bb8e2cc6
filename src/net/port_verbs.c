#include "net/port_verbs.h"

#include "base/assert.h"
#include "net/port_internal.h"

const char *const batch_end_texts[BATCH_ENDS] = {
    [BATCH_DONE] = "done",
    [BATCH_ADDRESS] = "an address lies outside of the region",
    [BATCH_UNCONNECTED] = "there is no connection",
    [BATCH_NOT_SHARED] = "verbs go through shared memory, and the connection is over tcp",
    [BATCH_NOT_EXPOSED] = "the peer exposes no memory",
};

/* ---- Exposing ---- */

static void expose_to(struct conn *conn, struct exposure *exposure)
{
    if (conn->channel != NULL) {
        hub_expose(conn, exposure);
    } else if (conn->segment != NULL) {
        segment_expose(conn, exposure);
    }
}

void port_expose(struct port *port, struct exposure *exposure)
{
    HK_ASSERT(port->exposure == NULL);
    exposure_hold(exposure);
    port->exposure = exposure;
    list_each(link, &port->all)
    {
        expose_to(list_entry(link, struct conn, all), exposure);
    }
}

void verbs_stand(struct conn *conn)
{
    if (conn->port->exposure != NULL) {
        expose_to(conn, conn->port->exposure);
    }
}

/* ---- Batches ---- */

static void complete(struct port *port, struct port_batch *batch, enum batch_end end)
{
    list_remove(&batch->link);
    batch->end = end;
    batch->conn = NULL;
    list_push_back(&port->completed, &batch->link);
}

void port_post(struct port *port, struct port_batch *batch)
{
    list_init(&batch->link);
    batch->conn = port_connection(port, batch->node, batch->worker);
    if (batch->conn == NULL) {
        complete(port, batch, BATCH_UNCONNECTED);
    } else if (batch->conn->transport != &transport_rings) {
        complete(port, batch, BATCH_NOT_SHARED);
    } else {
        list_push_back(&port->posted, &batch->link);
    }
}

struct port_batch *port_completed(struct port *port)
{
    struct list_link *link = list_pop_front(&port->completed);
    return link != NULL ? list_entry(link, struct port_batch, link) : NULL;
}

static struct exposure *exposed_by_peer(struct conn *conn)
{
    if (conn->exposed == NULL) {
        conn->exposed = conn->channel != NULL ? hub_exposed(conn) : segment_exposed(conn);
    }
    return conn->exposed;
}

static enum batch_end execute(const struct port_batch *batch)
{
    struct exposure *exposure = exposed_by_peer(batch->conn);
    if (exposure == NULL) {
        return BATCH_NOT_EXPOSED;
    }
    const struct region region = exposure_region(exposure);
    struct posting *posting = batch->posting;
    for (uint32_t i = 0; i < posting->n; i++) {
        struct verb *v = &posting->verbs[i];
        if (remote_node(v->at) == batch->node && !region_apply(&region, v)) {
            return BATCH_ADDRESS;
        }
    }
    return BATCH_DONE;
}

void verbs_flush(struct port *port)
{
    for (struct list_link *link; (link = list_pop_front(&port->posted)) != NULL;) {
        struct port_batch *batch = list_entry(link, struct port_batch, link);
        complete(port, batch, execute(batch));
    }
}

void verbs_ended(struct conn *conn)
{
    list_each_safe(link, following, &conn->port->posted)
    {
        struct port_batch *batch = list_entry(link, struct port_batch, link);
        if (batch->conn == conn) {
            complete(conn->port, batch, BATCH_UNCONNECTED);
        }
    }
    exposure_let_go(conn->exposed);
    conn->exposed = NULL;
}
