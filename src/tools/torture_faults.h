/* Carries a plan out: begins and ends faults when their time has come.
 *
 * A fault that takes a node's memory away (kill, leave) waits until so many others are sound that
 * no majority is lost: more than half of all configured nodes must, without it, hold the data and
 * serve, and not have been disturbed for more than a lease, so that no drop of one of them can be
 * under way. Where objects have owners a node that is dropped is replaced only when its objects
 * have new replicas, so there every fault that may drop a node waits until all nodes are sound and
 * nothing has too few replicas, unless with those that came since then it concerns no more than a
 * minority. While it waits, and until a node that was told to leave has ended, nothing else begins
 * and the plan's clock stands; what waits for too long is skipped. All other faults take no memory,
 * and may befall any number of nodes. */
#ifndef HORKOS_TOOLS_TORTURE_FAULTS_H
#define HORKOS_TOOLS_TORTURE_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/torture_cluster.h"
#include "tools/torture_plan.h"

enum torture_fault_state {
    FAULT_TO_COME,
    FAULT_BEGUN,
    FAULT_ENDED,
    FAULT_SKIPPED, /* it made no sense, or could not be risked */
};

struct torture_fault_run {
    enum torture_fault_state state;
    uint32_t starts;   /* of its node: a later process is another one */
    uint64_t began_us; /* 0: not yet */
    uint64_t end_us;   /* when it is to end; 0: when it will is not known yet */
};

struct torture_faults {
    const struct torture_plan *plan;
    struct torture_cluster *cluster;
    struct torture_net *net;
    struct torture_fault_run *runs; /* one for each of the plan */
    uint32_t next;
    uint32_t first_active;                        /* all before it are over */
    uint64_t stepped_us;                          /* 0: not yet */
    uint64_t clock_us;                            /* the plan's */
    uint64_t waits_since_us;                      /* the next fault waits; 0: it does not */
    uint64_t disturbed_us[TORTURE_NODES_MAX + 1]; /* when a node was last disturbed */
    nodeset touched; /* nodes that may have been dropped since all had all their replicas */
    bool healing;    /* nothing begins any more */
    char wrong[200]; /* "": what went wrong in doing all this */
    bool stuck;      /* a node did not end after SIGTERM: wrong says which */
};

bool torture_faults_init(struct torture_faults *faults, const struct torture_plan *plan,
                         struct torture_cluster *cluster, struct torture_net *net);
void torture_faults_deinit(struct torture_faults *faults);
/* Does what is due. Call it often. */
void torture_faults_step(struct torture_faults *faults, uint64_t now_us);
/* From now on faults only end, at once. */
void torture_faults_heal(struct torture_faults *faults, uint64_t now_us);
/* After torture_faults_heal: nothing is active, and all nodes are up. */
bool torture_faults_over(const struct torture_faults *faults);
/* A fault waits for sound nodes: what they say should be fresh. */
bool torture_faults_wait(const struct torture_faults *faults);

#endif
