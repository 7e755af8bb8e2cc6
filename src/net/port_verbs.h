/* One-sided verbs over a port: a node exposes a region of memory, and workers of its peers post
 * batches of verbs to it. Over shm they are executed by the poster's own loads, stores and atomics;
 * over tcp they are refused: nothing there could execute them without the peer's processor.
 * docs/NET.md, "Verbs". For the baselines (docs/ONE_SIDED.md): servers expose nothing.
 *
 * Trust. A node that exposes a region lets all its peers read and write all of it. An address is
 * checked against the region's true size, so a wrong one ends its batch and nothing else. */
#ifndef HORKOS_NET_PORT_VERBS_H
#define HORKOS_NET_PORT_VERBS_H

#include "base/list.h"
#include "net/exposure.h"
#include "net/port.h"
#include "net/verbs.h"

/* From here on the peers with which the port stands over shm, now or later, reach the region, for
 * as long as the connection stands. Once; the port takes a reference. */
void port_expose(struct port *port, struct exposure *exposure);

enum batch_end {
    BATCH_DONE,
    BATCH_ADDRESS, /* a verb lies outside of the region, or is none: those before it are executed */
    BATCH_UNCONNECTED, /* no connection; or it ended before the batch was executed */
    BATCH_NOT_SHARED,  /* the connection is over tcp */
    BATCH_NOT_EXPOSED, /* the peer exposes nothing, or nothing that this process can reach */
    BATCH_ENDS
};
extern const char *const batch_end_texts[BATCH_ENDS];

struct conn;

/* The verbs of a posting that address one node. Caller's memory, with the posting and the words
 * that its verbs name, until it is completed. */
struct port_batch {
    struct posting *posting;
    uint8_t node, worker; /* the worker of the peer by whose connection it goes */
    enum batch_end end;   /* out */
    /* The port's. */
    struct list_link link;
    struct conn *conn;
};

/* Posts it; it is executed with the next port_flush. Never blocks. */
void port_post(struct port *port, struct port_batch *batch);
/* One that is over, executed or not, in the order in which they ended. NULL: none. What is posted
 * when the port is destroyed is the caller's again and not executed. */
struct port_batch *port_completed(struct port *port);

#endif
