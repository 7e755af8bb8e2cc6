/* Clients at worker 0 of the nodes of a cluster (node_cluster.h), in virtual time: requests are
 * handed in one after the other, in any session, and the test looks at answers when it likes. */
#ifndef HORKOS_TESTS_NODE_DESK_H
#define HORKOS_TESTS_NODE_DESK_H

#include "support/node_cluster.h"

#define DESK_TAGS 256u

struct desk {
    struct cluster *cluster;
    uint32_t sessions[CLUSTER_NODES_MAX]; /* desk_start's, by node */
    struct request waiting[DESK_TAGS];
    uint8_t nodes[DESK_TAGS]; /* at which they wait */
    bool given[DESK_TAGS];
    uint32_t n; /* tags so far */
    struct answer answers[DESK_TAGS];
    bool answered[DESK_TAGS];
    uint32_t order[DESK_TAGS]; /* tags as they were answered */
    uint32_t order_n;
};

/* A cluster that serves, whose client is the desk (config->client is filled in), and a session at
 * each node. */
void desk_start(struct desk *desk, struct cluster_config *config);
uint32_t desk_session(struct desk *desk, uint32_t node);
/* Its bytes stay good until it is answered. Returns its tag. */
uint32_t desk_hand(struct desk *desk, uint32_t node, uint32_t session,
                   const struct request *request);
/* Waits for the answer. */
struct answer desk_answer(struct desk *desk, uint32_t tag);
struct bytes desk_text(const char *s);
struct op desk_set(const char *key, const char *value);
/* Whether a client of the node finds that value at once, on its own thread. */
bool desk_holds(struct desk *desk, uint32_t node, const char *key, const char *value);
/* Waits until it does. */
void desk_until(struct desk *desk, uint32_t node, const char *key, const char *value);
/* Whether the node owns the key, and can be asked for it at once. */
bool desk_owns(struct desk *desk, uint32_t node, const char *key);

#endif
