/* The operator of the cluster: says which nodes are configured, starts and stops machines, and
 * gives the orders that only a person may give: configure, recover, --bootstrap. */
#ifndef HORKOS_SIM_OPERATOR_H
#define HORKOS_SIM_OPERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"

struct world;

struct operator
{
    nodeset wanted;    /* nodes that shall be configured in the end */
    nodeset survivors; /* while a majority is lost: who is left of the members */
    uint64_t lost_us;  /* a majority, or all, were killed then, and the cluster has not begun anew;
                            0: not so */
    uint64_t lost_generation;
    uint64_t order_us;   /* then recover or --bootstrap is said, again and again until it works */
    uint64_t settled_us; /* the configured set is the wanted one since then; 0: it is not */
    nodeset untold;      /* nodes that must still hear that it is: they may hold an older order */
    bool dark;           /* all were killed */
    bool planned;        /* its next round is in the heap */
};

void operator_init(struct world *world);
/* The new configured set; machines that are new in it start. */
void operator_resize(struct world *world, nodeset wanted);
/* If all wanted nodes only compute, one that does not is wanted as well: as long as nobody may be a
 * home, slots stay lost, or nobody's, whatever the nodes do. */
void operator_keep_rows(struct world *world);
/* All processes but those of the survivors have been killed; 0: all. They come back some time, and
 * after patience_us the operator says what shall become of the cluster. */
void operator_lost(struct world *world, nodeset survivors, uint64_t patience_us);
/* Looks after what is not yet as wanted; see HAPPENS_OPERATOR. */
void operator_round(struct world *world);
/* There may be something to look after. */
void operator_wake(struct world *world);
/* Starts the node if it is down and wanted. */
void operator_start(struct world *world, uint8_t node);

#endif
