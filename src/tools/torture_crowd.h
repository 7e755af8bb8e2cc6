/* The clients of a torture: connections that speak RESP with any node, each with a few operations
 * under way, and what they make of the answers. A client that loses its connection, or its
 * patience, or is refused, turns to another node, or tries the same one again: somebody always asks
 * nodes that are cut off. */
#ifndef HORKOS_TOOLS_TORTURE_CROWD_H
#define HORKOS_TOOLS_TORTURE_CROWD_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "tools/torture_cluster.h"
#include "tools/torture_judge.h"
#include "tools/torture_keys.h"

#define TORTURE_WINDOW_MAX 8u
#define TORTURE_HISTORY_KINDS 32u

struct torture_call {
    struct history_op h;
    struct torture_key *key;
    bool closing; /* the closing read of its key */
};

struct torture_client {
    uint32_t id;
    uint32_t node; /* that it speaks with */
    struct torture_stream stream;
    struct torture_call ring[TORTURE_WINDOW_MAX]; /* under way, oldest first */
    uint32_t first, n;
    uint32_t window;
    bool reader;          /* only reads: on a node that is cut off, whoever updates is soon stuck */
    uint64_t act_us;      /* does nothing before */
    uint64_t deadline_us; /* of connecting, or of what is under way */
    uint64_t ok_calm;     /* successes since the faults ended */
};

/* The longest time between two successes. */
struct torture_gap {
    uint64_t last_us; /* the latest success; 0: none yet */
    uint64_t longest_us, longest_at_us;
};

struct torture_crowd {
    const struct torture_options *options;
    struct torture_cluster *cluster;
    struct torture_keys *keys;
    struct torture_judge *judge;
    struct random random;
    uint32_t think_us;
    bool calm;   /* the faults have ended */
    bool drains; /* asks for nothing but closing reads */
    bool tampered;
    bool no_memory;
    char wrong[400];    /* "": no reply was wrong in itself; else which */
    bool wrong_has_key; /* it was about one key */
    uint64_t wrong_key;
    uint64_t ok, failed, unknown, moves;
    uint64_t ok_of[TORTURE_HISTORY_KINDS];
    struct torture_gap gap, update_gap;
    uint32_t n;
    struct torture_client at[TORTURE_CLIENTS_MAX];
};

void torture_crowd_init(struct torture_crowd *crowd, const struct torture_options *options,
                        uint32_t think_us, struct torture_cluster *cluster,
                        struct torture_keys *keys, struct torture_judge *judge);
void torture_crowd_deinit(struct torture_crowd *crowd);

/* Lets everybody act whose time has come; returns when the next one's will, at the latest. */
uint64_t torture_crowd_step(struct torture_crowd *crowd, uint64_t now_us);
void torture_crowd_poll_set(const struct torture_crowd *crowd, struct pollfd *set_out);
void torture_crowd_polled(struct torture_crowd *crowd, const struct pollfd *set);
/* From now on successes count as those after the faults. */
void torture_crowd_calm(struct torture_crowd *crowd);
/* The fewest successes of a client since then. */
uint64_t torture_crowd_least_calm(const struct torture_crowd *crowd);
bool torture_crowd_idle(const struct torture_crowd *crowd);
/* The gaps so far, up to now, count. */
void torture_crowd_end_gaps(struct torture_crowd *crowd, uint64_t now_us);

#endif
