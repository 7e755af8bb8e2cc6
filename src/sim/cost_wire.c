#include "sim/cost_wire.h"

#include "base/assert.h"

#define PS_PER_S 1e12
#define PS_PER_NS 1000u

uint32_t cost_wire_packets(const struct cost_wire_limits *limits, uint32_t frame_bytes)
{
    return frame_bytes == 0 ? 1 : (frame_bytes - 1) / limits->packet_bytes_max + 1;
}

uint64_t cost_queue_pass(struct cost_queue *queue, uint64_t at_ps, uint64_t service_ps)
{
    uint64_t behind = queue->free_ps + service_ps;
    queue->free_ps = behind > at_ps ? behind : at_ps;
    queue->busy_ps += service_ps;
    return queue->free_ps;
}

static uint64_t larger(double bytes, double bytes_per_s, double packets, double packets_per_s)
{
    double by_bytes = bytes / bytes_per_s;
    double by_packets = packets / packets_per_s;
    return (uint64_t)(PS_PER_S * (by_bytes > by_packets ? by_bytes : by_packets));
}

static uint64_t card_ps(const struct cost_wire_limits *l, double bytes, double packets)
{
    return larger(bytes, l->link_bytes_per_s, packets, l->card_packets_per_s);
}

static uint64_t port_ps(const struct cost_wire_limits *l, double bytes, double packets)
{
    return larger(bytes, l->link_bytes_per_s, packets, l->switch_packets_per_s);
}

uint64_t cost_wire_leave(struct cost_wire *wire, uint8_t from, uint32_t frame_bytes, uint64_t at_ps)
{
    const struct cost_wire_limits *l = &wire->limits;
    HK_ASSERT(from < NODES_MAX);
    uint32_t packets = cost_wire_packets(l, frame_bytes);
    uint64_t bytes = frame_bytes + (uint64_t)packets * l->packet_header_bytes;
    wire->packets += packets;
    wire->bytes += bytes;
    /* The card begins when it has the frame, and the last byte is late by the frame's length. */
    uint64_t card = card_ps(l, (double)bytes, packets);
    uint64_t out = cost_queue_pass(&wire->card_out[from], at_ps + card, card);
    uint64_t in = cost_queue_pass(&wire->port_in[from], out, port_ps(l, (double)bytes, packets));
    uint64_t fetch_ns = frame_bytes > l->inline_bytes ? l->fetch_ns : 0;
    return in + (l->latency_ns + fetch_ns + l->switch_ns) * (uint64_t)PS_PER_NS;
}

uint64_t cost_wire_arrive(struct cost_wire *wire, uint8_t to, uint32_t frame_bytes, uint64_t at_ps)
{
    const struct cost_wire_limits *l = &wire->limits;
    HK_ASSERT(to < NODES_MAX);
    uint32_t packets = cost_wire_packets(l, frame_bytes);
    double bytes = (double)frame_bytes + (double)packets * l->packet_header_bytes;
    uint64_t out = cost_queue_pass(&wire->port_out[to], at_ps, port_ps(l, bytes, packets));
    return cost_queue_pass(&wire->card_in[to], out, card_ps(l, bytes, packets));
}
