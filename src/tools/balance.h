/* `horkos balance`: a proxy of the Redis protocol that sends each command to the node that works on
 * its key ([Z] 5.3). Keys fall into groups, by their {tag} or as a whole; each group has a node, at
 * random at first, and moves when that node has much more to do than another. The mapping is one
 * value in a hermes space of the cluster, so any number of balancers share it, and none keeps
 * anything. A client has a thread and a connection of its own to each node that it needs. */
#ifndef HORKOS_TOOLS_BALANCE_H
#define HORKOS_TOOLS_BALANCE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/random.h"
#include "tools/node_report.h"
#include "tools/options.h"

#define BALANCE_NODES_MAX 64u
#define BALANCE_GROUPS 1024u
#define BALANCE_NOBODY UINT8_MAX

struct balance_node {
    char host[256];
    uint16_t port;
    char name[280];    /* host:port */
    _Atomic bool down; /* the last try failed */
    _Atomic uint64_t commands;
};

struct balance {
    struct balance_node nodes[BALANCE_NODES_MAX]; /* in the order of their names */
    uint32_t nodes_n;
    struct node_address address; /* user and password of the balancer itself, at all nodes */
    char password[PASSWORD_MAX];
    uint32_t space; /* of the mapping */
    uint32_t clients_max;
    uint32_t command_bytes_max;
    uint32_t period_ms; /* between two looks at load and mapping */

    _Atomic uint8_t groups[BALANCE_GROUPS];   /* the node; BALANCE_NOBODY */
    _Atomic uint64_t counted[BALANCE_GROUPS]; /* commands */
    _Atomic bool mapped;                      /* groups is what the cluster says */
    _Atomic bool stop;
    _Atomic uint32_t clients;
    _Atomic uint64_t accepted, refused, commands, moves, lost;
};

/* ---- balance_reply.c: where a reply ends (RESP2 and RESP3), as its bytes come ---- */

struct balance_reply {
    uint64_t left;    /* elements that are still to come, of one reply; 0: at its beginning */
    uint64_t skip;    /* bytes of a bulk string and its end */
    bool in_line;     /* of a header or a simple reply: its end has not come */
    uint8_t kind;     /* of that line */
    uint8_t number_n; /* bytes of number */
    char number[24];
};
enum balance_fed { BALANCE_MORE, BALANCE_WHOLE, BALANCE_BROKEN };
/* Takes bytes up to the end of one reply. */
enum balance_fed balance_reply_feed(struct balance_reply *reply, struct bytes in,
                                    uint32_t *used_out);

/* ---- balance_map.c ---- */

/* What is between the first { and the next }, if anything is; else the whole key. */
struct bytes balance_tag(struct bytes key);
uint32_t balance_group(struct bytes key);
/* The node to ask; one at random for groups of which nothing is known, or whose node is down. */
uint32_t balance_route(struct balance *b, uint32_t group, struct random *random);
/* A node that is up, at random. */
uint32_t balance_any(struct balance *b, struct random *random);
/* Which groups shall move, and to whom: at most `most`. load: commands of each group since the last
 * look. groups: changed in place. Returns how many have moved. Pure. */
uint32_t balance_plan(uint8_t groups[BALANCE_GROUPS], const uint64_t load[BALANCE_GROUPS],
                      uint32_t nodes_n, uint64_t down, uint32_t most, struct random *random);
/* The thread that keeps mapping and nodes' state fresh. */
void *balance_keep(void *balance);

/* ---- balance_client.c ---- */

/* Serves the connection until it ends, on a thread of its own. False: none could be made. */
bool balance_serve(struct balance *b, int fd);
/* What INFO says. Returns the bytes. */
uint32_t balance_info(struct balance *b, char *text, uint32_t size);

#endif
