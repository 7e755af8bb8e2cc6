/* The end of a torture: every key is read on every node. A key whose last value is known must have
 * it everywhere; of any other one, all nodes must show the same, and these reads go into its
 * history, which is judged once more. */
#ifndef HORKOS_TOOLS_TORTURE_FINAL_H
#define HORKOS_TOOLS_TORTURE_FINAL_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tools/torture_cluster.h"
#include "tools/torture_judge.h"
#include "tools/torture_keys.h"

#define TORTURE_READS_MAX 32u /* under way with one node */

struct torture_reader {
    struct torture_stream stream;
    size_t next;                          /* index of a key */
    uint64_t begun_us[TORTURE_READS_MAX]; /* of the reads under way, oldest first from `first` */
    uint32_t first, n;
    uint64_t act_us;
    int64_t *values; /* by key */
};

struct torture_final {
    const struct torture_options *options;
    struct torture_cluster *cluster;
    struct torture_keys *keys;
    uint32_t rounds; /* done */
    bool over;       /* all nodes agree, or will not */
    bool no_memory;
    char wrong[600]; /* "": all is well */
    uint64_t wrong_key;
    uint64_t reads;
    struct torture_reader reader[TORTURE_NODES_MAX + 1]; /* by node, from 1 */
};

/* All keys must be closed and judged. False: no memory. */
bool torture_final_init(struct torture_final *final, const struct torture_options *options,
                        struct torture_cluster *cluster, struct torture_keys *keys);
void torture_final_deinit(struct torture_final *final);
void torture_final_step(struct torture_final *final, uint64_t now_us);
void torture_final_poll_set(const struct torture_final *final, struct pollfd *set_out);
void torture_final_polled(struct torture_final *final, const struct pollfd *set);
/* Once it is over: gives the judge the histories that have grown. */
void torture_final_judge(struct torture_final *final, struct torture_judge *judge);

#endif
