/* One node as a process, or inside another program: threads, sockets, clients, signals around the
 * node's workers. */
#ifndef HORKOS_SERVER_SERVER_H
#define HORKOS_SERVER_SERVER_H

#include <stdbool.h>

#include "server/config.h"

#define HORKOS_VERSION "0.1.0"

struct server;
struct locals;

struct server_options {
    bool bootstrap; /* the operator's: form a first view although state was kept */
    int ready_fd;   /* one line is written there once the listeners stand; -1: nobody waits */
    bool locals;    /* sessions for this process's threads (local.h), and no signal is taken */
    char *error;    /* where to say why it cannot start; NULL: standard error */
    uint32_t error_bytes;
};

/* Runs until the node was told to stop. Returns the exit status: 0 after a clean stop, 1 when it
 * could not start (said on standard error and in the log), 2 when forced. Takes over SIGTERM,
 * SIGINT (leave gracefully; a second one forces), SIGHUP (opens the log anew), ignores SIGPIPE. */
int server_run(const struct config *config, const struct server_options *options);

/* A node inside another program, with options.locals: returns once its listeners stand. Its threads
 * take no signals. HK_ERR_NOMEM; HK_ERR_IO: options.error says what is wrong. */
int server_open(const struct config *config, const struct server_options *options,
                struct server **server_out) __attribute__((warn_unused_result));
/* Stops it (now: without leaving the cluster first), answers what is open, and frees it; sessions
 * are closed by themselves, before or after. */
void server_close(struct server *server, bool now);
struct locals *server_locals(struct server *server);
/* Whether the space's objects have owners: then transactions may touch them. */
bool server_space_owned(const struct server *s, uint32_t space);
/* Whether they are in ordered tables (ENGINE_TABLES): then it has transactions, too, and ranges. */
bool server_space_ordered(const struct server *s, uint32_t space);

/* What its program may know of a node; any thread. */
struct server_look {
    bool stopped; /* it serves no more, and never will */
    bool away;    /* it is being made anew: what follows is empty */
    struct node_status status;
    uint64_t now_us; /* when that was looked at */
    uint64_t keys, bytes;
    uint32_t sessions;
};
void server_look(struct server *server, struct server_look *look_out);
/* Waits until the node serves, at most timeout_us. HK_OK, HK_ERR_TIMEOUT, HK_ERR_UNAVAILABLE: it
 * has stopped. */
int server_wait_serving(struct server *server, uint64_t timeout_us)
    __attribute__((warn_unused_result));

#endif
