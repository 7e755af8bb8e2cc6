/* What the examples share: three nodes in this process, in a folder that is removed again. */
#ifndef HORKOS_EXAMPLES_CLUSTER_H
#define HORKOS_EXAMPLES_CLUSTER_H

#include <horkos.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLUSTER_NODES 3

struct cluster {
    char folder[64];
    char addresses[CLUSTER_NODES][32];
    struct hk_peer peers[CLUSTER_NODES];
    struct hk_node *nodes[CLUSTER_NODES];
    bool transactions, ordered;
};

static inline void check(int err, const char *what)
{
    if (err != HK_OK) {
        fprintf(stderr, "cannot %s: %s\n", what, hk_err_text(err));
        exit(1);
    }
}

/* For operations that do not wait: context says what was done. */
static inline void check_done(void *context, const struct hk_result *result)
{
    check(result->err, context);
}

/* A port that nobody uses at the moment. A real cluster has fixed ones. */
static inline int free_port(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof a;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)(void *)&a, n) != 0 ||
        getsockname(fd, (struct sockaddr *)(void *)&a, &n) != 0) {
        perror("cannot find a port");
        exit(1);
    }
    (void)close(fd);
    return ntohs(a.sin_port);
}

static inline void cluster_start(struct cluster *c, int node)
{
    /* The same on all nodes. A real one is random and secret. */
    static const uint8_t key[HK_KEY_BYTES] = "an example, and no secret";
    char error[512] = "";
    const struct hk_config config = {
        .id = (uint32_t)node,
        .peers = c->peers,
        .peers_n = CLUSTER_NODES,
        .key = key,
        .dir = c->folder,
        .log_file = "/dev/null",
        .error = error,
        .error_bytes = sizeof error,
        .transactions = c->transactions,
        .ordered = c->ordered,
    };
    if (hk_open(&config, &c->nodes[node]) != HK_OK) {
        fprintf(stderr, "cannot start node %d: %s\n", node, error);
        exit(1);
    }
}

static inline void cluster_open_as(struct cluster *c, bool transactions, bool ordered)
{
    memset(c, 0, sizeof *c);
    c->transactions = transactions;
    c->ordered = ordered;
    (void)snprintf(c->folder, sizeof c->folder, "/tmp/horkos-example-XXXXXX");
    if (mkdtemp(c->folder) == NULL) {
        perror("cannot make a folder");
        exit(1);
    }
    for (int i = 0; i < CLUSTER_NODES; i++) {
        (void)snprintf(c->addresses[i], sizeof c->addresses[i], "127.0.0.1:%d", free_port());
        c->peers[i] = (struct hk_peer){.id = (uint32_t)i, .address = c->addresses[i]};
    }
    for (int i = 0; i < CLUSTER_NODES; i++) {
        cluster_start(c, i);
    }
    for (int i = 0; i < CLUSTER_NODES; i++) {
        check(hk_wait_serving(c->nodes[i], 60000), "serve");
    }
}

/* Returns when all nodes serve. */
static inline void cluster_open(struct cluster *c)
{
    cluster_open_as(c, false, false);
}

/* The same, with space HK_SPACE_TRANSACTIONS. */
static inline void cluster_open_transactions(struct cluster *c)
{
    cluster_open_as(c, true, false);
}

/* The same, with space HK_SPACE_ORDERED. */
static inline void cluster_open_ordered(struct cluster *c)
{
    cluster_open_as(c, false, true);
}

static inline void cluster_close(struct cluster *c)
{
    for (int i = 0; i < CLUSTER_NODES; i++) {
        char path[128];
        hk_close_now(c->nodes[i]); /* there is nobody left to leave in order for */
        (void)snprintf(path, sizeof path, "%s/horkos-%d.state", c->folder, i);
        (void)unlink(path);
        (void)snprintf(path, sizeof path, "%s/horkos-%d.state.lock", c->folder, i);
        (void)unlink(path);
    }
    (void)rmdir(c->folder);
}

#endif
