/* What tests of an engine on real nodes begin with: a cluster of equal nodes, single calls and
 * transactions in space 0, and sums of counters. Keys and values are texts. */
#ifndef HORKOS_TESTS_SUPPORT_NODE_CALLS_H
#define HORKOS_TESTS_SUPPORT_NODE_CALLS_H

#include <stddef.h>

#include "support/node_cluster.h"

struct bytes calls_text(const char *s);

/* So many nodes of so many workers each, and an engine with its configuration, which stays good. */
struct cluster_config calls_config(uint32_t nodes, uint32_t workers, const struct engine_ops *ops,
                                   const void *engine);
/* A cluster that serves, 10 s of virtual time later at the latest. */
struct cluster *calls_start(const struct cluster_config *config);

/* At worker `node` of the node, modulo how many it has. */
struct cluster_answer calls_run(struct cluster *c, uint32_t node, uint8_t kind, const char *key,
                                const char *value);
/* A read there answers so; value NULL: that there is none. */
void calls_read(struct cluster *c, uint32_t node, const char *key, const char *value);
/* At worker 0; flags: enum txn_flag. */
struct cluster_txn_answer calls_transact(struct cluster *c, uint32_t node, const struct op *ops,
                                         uint32_t ops_n, uint32_t flags);

/* Over the first `nodes` nodes; offset: of a uint64_t in struct node_stats. */
uint64_t calls_sum(struct cluster *c, uint32_t nodes, size_t offset);
#define CALLS_SUM(c, nodes, name) calls_sum(c, nodes, offsetof(struct node_stats, name))

#endif
