/* Memory that a node exposes to the verbs of its peers (port_verbs.h), in this process or another
 * one of the same user and host. References are counted; a region goes with the last one.
 *
 * Threads. Any. */
#ifndef HORKOS_NET_EXPOSURE_H
#define HORKOS_NET_EXPOSURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "net/verbs.h"

#define EXPOSURE_TOKEN_BYTES 16u

struct exposure;

/* Zeroed; bytes: a multiple of 8, above 0. With one reference. NULL: the system refuses. */
struct exposure *exposure_create(uint64_t bytes);
void exposure_hold(struct exposure *exposure);
void exposure_let_go(struct exposure *exposure); /* may be NULL */
struct region exposure_region(const struct exposure *exposure);

/* In memory that two processes share: where one of them has an exposure. */
struct exposure_place {
    /* release by who exposes, when the rest stands; pairs with acquire by who looks. 0: nothing. */
    _Atomic uint32_t there;
    uint32_t process, descriptor;
    uint32_t reserved;
    uint8_t token[EXPOSURE_TOKEN_BYTES];
};
_Static_assert(sizeof(struct exposure_place) == 32, "the layout is in docs/NET.md");

void exposure_say(const struct exposure *exposure, struct exposure_place *place);
/* The same memory in this process, with one reference: nothing that stands in the place is believed
 * before it has been looked at. NULL: there is none, or none that can be had. */
struct exposure *exposure_find(const struct exposure_place *place);

#endif
