/* The virtual network: copies each frame when it is sent, and lets it arrive at a worker of its
 * target later, never, twice, out of order or damaged. */
#ifndef HORKOS_SIM_NETWORK_H
#define HORKOS_SIM_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/nodeset.h"
#include "sim/setup.h"

struct world;

/* A frame on its way or waiting at its worker; or one that a poll has put out. */
struct parcel {
    struct parcel *next;
    uint64_t sent_step;
    uint64_t arrived_step;
    uint32_t n;
    uint8_t worker; /* of the target */
    uint8_t from;   /* the sender's node */
    bool only_old;  /* reaches old processes of the target only */
    uint8_t bytes[];
};

struct link {
    uint64_t last_us;  /* when the latest frame arrives: order is kept unless a fault breaks it */
    uint32_t cuts;     /* faults that cut it at the moment ... */
    uint32_t cuts_new; /* ... but for old processes of nodes that were taken over */
};

struct network {
    struct link links[SIM_NODES_MAX][SIM_NODES_MAX]; /* [from][to] */
    uint32_t storms;                                 /* at the moment */
    uint32_t storm_permille;                         /* frames lost in a storm */
    bool calm;                                       /* faults are over */
};

struct parcel *parcel_create(struct bytes frame);
void parcel_destroy(struct parcel *parcel);

/* Takes the parcel over. from_old: the sender is an old process of a node that was taken over. */
void network_send(struct world *world, uint8_t from, bool from_old, uint8_t to,
                  struct parcel *parcel);
void network_arrive(struct world *world, uint8_t to, struct parcel *parcel);
/* by: 1 or -1. spares_old: old processes do not notice. */
void network_cut(struct world *world, uint8_t from, uint8_t to, bool spares_old, int by);
/* From now on every frame that no link's cut stops arrives, once, whole, in order and soon. */
void network_calm(struct world *world);

#endif
