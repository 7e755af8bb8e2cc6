/* Nodes of one cluster in this process, by the public API, in a folder of their own. */
#ifndef HORKOS_TESTS_SUPPORT_EMBED_CLUSTER_H
#define HORKOS_TESTS_SUPPORT_EMBED_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "horkos.h"

#define EMBED_NODES_MAX 3u
#define EMBED_BOUND_MS 60000u /* generous: sanitizers, other tests beside it */

struct embed_cluster {
    char folder[64];
    uint32_t nodes_n;
    uint32_t workers;
    const char *engine; /* of space 0, embed_cluster_open_engine */
    struct hk_peer peers[EMBED_NODES_MAX];
    char addresses[EMBED_NODES_MAX][32];
    struct hk_node *nodes[EMBED_NODES_MAX];
};

/* All serve when it returns. */
void embed_cluster_open(struct embed_cluster *c, uint32_t nodes, uint32_t workers);
/* The same, space 0 kept by that engine. */
void embed_cluster_open_engine(struct embed_cluster *c, uint32_t nodes, uint32_t workers,
                               const char *engine);
/* Closes what is open, and removes the folder. */
void embed_cluster_close(struct embed_cluster *c);
void embed_cluster_start(struct embed_cluster *c, uint32_t node);
/* Makes the node find itself dropped: it forgets everything and joins anew. */
void embed_cluster_wipe(struct embed_cluster *c, uint32_t node);
/* How often it did. */
uint32_t embed_cluster_wipes(struct embed_cluster *c, uint32_t node);
struct hk_session *embed_cluster_session(struct embed_cluster *c, uint32_t node);

#endif
