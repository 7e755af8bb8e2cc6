/* The nodes of a folder of `horkos dev`, together: which run, starting one, waiting until they
 * serve, stopping them. While a function waits, SIGINT, SIGTERM and SIGHUP are answers like others:
 * dev_signals_take must have been called. */
#ifndef HORKOS_TOOLS_DEV_CLUSTER_H
#define HORKOS_TOOLS_DEV_CLUSTER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "tools/dev_config.h"
#include "tools/dev_folder.h"
#include "tools/dev_ports.h"
#include "tools/dev_processes.h"

struct dev_node {
    struct dev_process process;
    struct dev_contact contact;
    bool answers;   /* to HORKOS STATUS, since it was started */
    char said[100]; /* what it said of itself last, or why it does not answer */
    char how[80];   /* its end, if it was our child: "exit status 1"; else "" */
};

struct dev_cluster {
    char dir[DEV_DIR_MAX];
    nodeset nodes;           /* 1 .. DEV_NODES_MAX */
    struct dev_ports *ports; /* held for nodes that do not listen yet; NULL: none are */
    struct dev_node node[DEV_NODES_MAX + 1];
};

enum dev_outcome {
    DEV_SERVES,
    DEV_DIED,        /* a node ended meanwhile */
    DEV_LATE,        /* the time is up */
    DEV_INTERRUPTED, /* by a signal */
};

/* Blocks the signals that tell dev to end, or that a child has ended, so that dev_pause can return
 * them. A signal that was ignored stays ignored. */
void dev_signals_take(void);
/* Waits until time is up or a signal comes. True: one that tells dev to end. */
bool dev_pause(uint32_t ms);

/* What is known from the files of a folder. */
void dev_cluster_load(struct dev_cluster *cluster, const char *dir);
/* Which of the nodes run. */
nodeset dev_cluster_running(struct dev_cluster *cluster);
/* Starts the node's process, with the program that we are, and keeps its pid file. */
bool dev_cluster_launch(struct dev_cluster *cluster, uint32_t node, bool ends_with_us);
/* Whether one of these nodes, which run, serves at the moment. */
bool dev_cluster_serves(struct dev_cluster *cluster, nodeset running);
/* Waits until all of `which` serve; lacks_out: those that do not. `progress`: says on standard
 * error what they say of themselves, when it changes. */
enum dev_outcome dev_cluster_wait(struct dev_cluster *cluster, nodeset which, uint32_t wait_s,
                                  bool progress, nodeset *lacks_out);
/* Waits until the node answers, whatever it says. */
enum dev_outcome dev_cluster_wait_answer(struct dev_cluster *cluster, uint32_t node,
                                         uint32_t wait_s);
/* SIGKILL to one node, until it is gone; its pid file stays, as after any crash. False: it is not
 * gone in time. */
bool dev_cluster_kill(struct dev_cluster *cluster, uint32_t node);
/* Ends all of the nodes that run and removes their pid files: SIGTERM, more of them if that is not
 * enough (to go at once), SIGKILL. False if even then one runs, which was printed. */
bool dev_cluster_stop(struct dev_cluster *cluster);

#endif
