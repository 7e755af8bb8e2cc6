/* The nodes of a torture as processes: their files, starting and ending them, and what each one
 * last said of itself, which is asked for all the time on a connection of its own. */
#ifndef HORKOS_TOOLS_TORTURE_CLUSTER_H
#define HORKOS_TOOLS_TORTURE_CLUSTER_H

#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/nodeset.h"
#include "tools/dev_ports.h"
#include "tools/dev_processes.h"
#include "tools/torture_net.h"
#include "tools/torture_options.h"
#include "tools/torture_plan.h"
#include "tools/torture_stream.h"

struct torture_node {
    struct dev_process process;
    struct sockaddr_in address; /* of its clients */
    bool up;                    /* it was started, and we did not end it */
    bool stopped;               /* by SIGSTOP */
    bool leaving;               /* SIGTERM was sent */
    uint32_t starts;
    /* What it said last. */
    struct torture_stream probe;
    uint64_t asked_us; /* the question that is under way; 0: none */
    uint64_t told_us;  /* when the question was asked that was answered last; 0: never */
    uint64_t epoch;
    nodeset operational; /* live members that hold the data, in its view */
    bool serves;
    uint64_t lost; /* slots that are lost, or being given up, where keys have homes */
    bool repaired; /* where objects have owners: all that it cares for have their replicas */
    char said[80];
};

struct torture_cluster {
    const struct torture_options *options;
    const struct torture_plan *plan;
    struct torture_net *net;
    char dir[DEV_DIR_MAX]; /* absolute */
    bool made_dir;
    struct dev_ports ports; /* without namespaces */
    nodeset nodes;
    struct torture_node node[TORTURE_NODES_MAX + 1]; /* from 1 */
    char ended[240]; /* "": no process has ended that should not have; else which, and how */
};

/* Makes folder, ports and configuration files. Errors are printed. */
bool torture_cluster_init(struct torture_cluster *cluster, const struct torture_options *options,
                          const struct torture_plan *plan, struct torture_net *net);
/* Kills all nodes that run. remove: their files go, and the folder if it was made here. */
void torture_cluster_deinit(struct torture_cluster *cluster, bool remove);

bool torture_cluster_start(struct torture_cluster *cluster, uint32_t node);
/* SIGKILL, and waits until it is gone. */
void torture_cluster_kill(struct torture_cluster *cluster, uint32_t node);
void torture_cluster_pause(struct torture_cluster *cluster, uint32_t node);
void torture_cluster_resume(struct torture_cluster *cluster, uint32_t node);
/* SIGTERM. The node is up until torture_cluster_watch has seen its end. */
void torture_cluster_leave(struct torture_cluster *cluster, uint32_t node);

/* Notices ends of processes; asks nodes again whose answer is older than every_us. */
void torture_cluster_watch(struct torture_cluster *cluster, uint64_t now_us, uint64_t every_us);
/* The probes in poll's terms, one entry a node from node 1 on; and what came of it. */
void torture_cluster_poll_set(const struct torture_cluster *cluster, struct pollfd *set_out);
void torture_cluster_polled(struct torture_cluster *cluster, const struct pollfd *set);

/* Nodes that said, at since_us or later, that they serve and hold the data, in the newest view that
 * any of them told of. */
nodeset torture_cluster_sound(const struct torture_cluster *cluster, uint64_t since_us);
/* Where objects have owners: all nodes are sound, and said since then that nothing has too few
 * replicas. */
bool torture_cluster_repaired(const struct torture_cluster *cluster, uint64_t since_us);
/* Whether some node said last that slots are lost, or being given up. */
bool torture_cluster_lost(const struct torture_cluster *cluster);
/* Whether a node can be given an order now; and the order to give up lost slots. */
bool torture_cluster_can_order(const struct torture_cluster *cluster, uint32_t node);
void torture_cluster_empty_lost(struct torture_cluster *cluster, uint32_t node, uint64_t now_us);
/* What the nodes said last, one a line, and the ends of logs of those that do not serve. */
void torture_cluster_tell(const struct torture_cluster *cluster, FILE *to);

#endif
