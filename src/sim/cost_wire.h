/* The network of the cost model: a network card a node, one switch between them. Pure arithmetic of
 * queues over virtual time in picoseconds; nothing is lost and nothing overtakes on one path.
 *
 *   worker -> card out -> switch port in -> (latency) -> switch port out -> card in -> worker
 *
 * A card and a switch port each pass so many bytes and so many packets a second, in each direction.
 * A frame that finds a queue empty is cut through: it is late by its own length once, not at every
 * station. */
#ifndef HORKOS_SIM_COST_WIRE_H
#define HORKOS_SIM_COST_WIRE_H

#include <stdint.h>

#include "base/nodeset.h"

struct cost_wire_limits {
    double link_bytes_per_s;     /* a card, each direction */
    double card_packets_per_s;   /* a card, each direction */
    double switch_packets_per_s; /* a port of the switch, each direction */
    uint32_t packet_bytes_max;   /* payload of one packet */
    uint32_t packet_header_bytes;
    uint32_t inline_bytes; /* a payload up to this travels with its work request ... */
    uint32_t latency_ns;   /* ... and is this long under way, card to card, without the switch */
    uint32_t fetch_ns;     /* a longer one is fetched by the card first: so much longer */
    uint32_t switch_ns;    /* port to port */
};

/* One station: when it has passed everything that it has been given so far. */
struct cost_queue {
    uint64_t free_ps;
    uint64_t busy_ps; /* in all */
};

struct cost_wire {
    struct cost_wire_limits limits;
    struct cost_queue card_out[NODES_MAX], port_in[NODES_MAX], port_out[NODES_MAX],
        card_in[NODES_MAX];
    uint64_t packets, bytes; /* that have left cards, headers included */
};

/* How many packets a frame of that many bytes takes; at least one. */
uint32_t cost_wire_packets(const struct cost_wire_limits *limits, uint32_t frame_bytes);

/* The last byte of something reaches a station at at_ps and takes it service_ps: when it has
 * passed. Calls must come in the order of at_ps. */
uint64_t cost_queue_pass(struct cost_queue *queue, uint64_t at_ps, uint64_t service_ps);

/* A frame is given to the card at at_ps: when it reaches the switch's port towards the target. */
uint64_t cost_wire_leave(struct cost_wire *wire, uint8_t from, uint32_t frame_bytes,
                         uint64_t at_ps);
/* From there on: when the target's worker can see it. */
uint64_t cost_wire_arrive(struct cost_wire *wire, uint8_t to, uint32_t frame_bytes, uint64_t at_ps);

#endif
