/* Every kind of operation, for the tests of nodes that answer for each other. */
#ifndef HORKOS_TESTS_SUPPORT_NODE_OPERATIONS_H
#define HORKOS_TESTS_SUPPORT_NODE_OPERATIONS_H

#include "support/node_cluster.h"

/* Every kind on one key that does not exist, each at the next of the first `nodes` nodes in turn,
 * and asserts what it answers. In the end the key does not exist. */
void cluster_every_operation(struct cluster *c, uint32_t nodes, const char *key);

#endif
