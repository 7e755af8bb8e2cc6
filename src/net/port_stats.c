/* Figures of a port. */
#include "net/port_internal.h"

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

void port_publish_stats(struct port *port)
{
    const struct port_stats *now = &port->now;
    struct port_counters *to = &port->published;
    uint64_t shared = 0, outstanding = 0, held = 0, dropped_view = now->dropped_view;
    list_each(link, &port->all)
    {
        const struct conn *conn = list_entry(link, struct conn, all);
        shared += conn->transport == &transport_rings;
        outstanding += conn->transport->outstanding(conn);
        held += conn->transport->held(conn);
        dropped_view += conn->transport->dropped(conn);
    }
    publish(&to->bytes_in, now->bytes_in);
    publish(&to->bytes_out, now->bytes_out);
    publish(&to->dropped_unconnected, now->dropped_unconnected);
    publish(&to->dropped_full, now->dropped_full);
    publish(&to->dropped_view, dropped_view);
    publish(&to->connections, now->connections);
    publish(&to->shared, shared);
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
        .shared = read_counter(&from->shared),
        .faults = read_counter(&from->faults),
        .ended = read_counter(&from->ended),
        .outstanding = read_counter(&from->outstanding),
        .held = read_counter(&from->held),
    };
}
