/* Engines whose objects have owners (ENGINE_OWNED): what somebody who sees all nodes at once may
 * demand of them. At any time at most one member owns an object, and what members can read of it is
 * the same. In the end the directory agrees, its vector names just those who have the object, all
 * of them have the same of it, there are as many as there shall be, and nobody else has an
 * entry. */
#ifndef HORKOS_SIM_OWNED_H
#define HORKOS_SIM_OWNED_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "sim/machine.h"
#include "sim/text.h"

struct world;

struct owned {
    uint32_t next_key; /* that is looked at */
};

/* What members of the newest view say of an object. */
enum owned_fate {
    OWNED_UNSEEN, /* not all of them can be looked at now */
    OWNED_NEVER,  /* nothing was written, or everything about it is forgotten */
    OWNED_HELD,   /* its newest vector names live members */
    OWNED_LOST,   /* it names nobody who lives */
};

bool owned_on(const struct world *world);
/* Clients' keys, then traders': how many; the bytes of one. */
uint32_t owned_keys(const struct world *world);
struct bytes owned_key(const struct world *world, uint32_t key);
/* After each poll. */
void owned_polled(struct machine *machine);
/* Whether every object would still have a replica without that node. */
bool owned_may_lose(const struct world *world, uint8_t node);
/* Whether the member has a replica of every object. */
bool owned_whole(const struct world *world, uint8_t node);
/* holders_out: of HELD, who has it. */
enum owned_fate owned_fate(const struct world *world, struct bytes key, nodeset *holders_out);
/* Whether the machine's node may answer at all. */
bool owned_may_answer(const struct world *world, const struct view *view,
                      const struct machine *machine);
/* When all is over. why_out: of the first object that is not as it should be. */
bool owned_equal(const struct world *world, struct text *why_out);

#endif
