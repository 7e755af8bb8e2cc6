/* One node as a process: threads, sockets, clients, signals around the node's workers. */
#ifndef HORKOS_SERVER_SERVER_H
#define HORKOS_SERVER_SERVER_H

#include <stdbool.h>

#include "server/config.h"

#define HORKOS_VERSION "0.1.0"

struct server_options {
    bool bootstrap; /* the operator's: form a first view although state was kept */
    int ready_fd;   /* one line is written there once the listeners stand; -1: nobody waits */
};

/* Runs until the node was told to stop. Returns the exit status: 0 after a clean stop, 1 when it
 * could not start (said on standard error and in the log), 2 when forced. Takes over SIGTERM,
 * SIGINT (leave gracefully; a second one forces), SIGHUP (opens the log anew), ignores SIGPIPE. */
int server_run(const struct config *config, const struct server_options *options);

#endif
