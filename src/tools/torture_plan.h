/* The plan of a torture: which faults befall which nodes, and when. It is drawn from the seed
 * before anything starts, so that the same seed and options give the same plan. Pure. */
#ifndef HORKOS_TOOLS_TORTURE_PLAN_H
#define HORKOS_TOOLS_TORTURE_PLAN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>

#include "base/nodeset.h"
#include "tools/torture_options.h"

enum torture_kind {
    TORTURE_KILL,          /* SIGKILL, and a new process later */
    TORTURE_PAUSE,         /* SIGSTOP, SIGCONT */
    TORTURE_LEAVE,         /* SIGTERM, and a new process later */
    TORTURE_ISOLATE,       /* one node and all others do not reach each other */
    TORTURE_ONE_WAY,       /* what some nodes send does not reach some others */
    TORTURE_SPLIT,         /* two sides that do not reach each other */
    TORTURE_BRIDGE,        /* two sides that meet only in one node, which reaches all */
    TORTURE_SHATTER,       /* nobody reaches anybody */
    TORTURE_RESET_PEERS,   /* connections of a node with others are reset, and so are new ones */
    TORTURE_RESET_CLIENTS, /* the same for its clients */
    TORTURE_KINDS,
};

#define TORTURE_FAULTS_ALL ((1u << TORTURE_KINDS) - 1u)
/* Those that need network namespaces. */
#define TORTURE_FAULTS_NETWORK                                                                     \
    (TORTURE_FAULTS_ALL & ~((1u << TORTURE_KILL) | (1u << TORTURE_PAUSE) | (1u << TORTURE_LEAVE)))

/* "kill", "one-way", ... */
extern const char *const torture_kind_names[TORTURE_KINDS];

struct torture_fault {
    uint32_t at_ms; /* by the plan's clock, which stands while a fault has to wait */
    uint32_t for_ms;
    enum torture_kind kind;
    uint8_t node; /* of KILL, PAUSE, LEAVE and the resets; the bridge of BRIDGE */
    nodeset from; /* of what ONE_WAY, SPLIT, ... cut: these do not reach */
    nodeset to;   /* those; SHATTER: everybody here */
    bool both;    /* nor the other way round */
};

struct torture_plan {
    struct torture_fault *faults;
    uint32_t n;
    uint32_t gap_ms;           /* between two faults, on average */
    uint32_t think_us;         /* of clients between two requests, at most */
    uint32_t workers;          /* of each node */
    bool ack_all, async_reads; /* of a space of hermes, as in the configuration file */
    uint32_t cache_keys;       /* of a space of galene, likewise */
    uint32_t epoch_ms;
    const char *cc;  /* of a space of lotus, likewise */
    nodeset compute; /* nodes that have none of its rows */
};

/* `kinds`: bits of those that may occur. False: no memory. */
bool torture_plan_draw(const struct torture_options *options, uint32_t kinds,
                       struct torture_plan *plan_out);
void torture_plan_deinit(struct torture_plan *plan);

/* One fault as "1200 ms: split 1,2 | 3 for 480 ms", at most size bytes. */
void torture_fault_print(const struct torture_fault *fault, char *to, size_t size);
void torture_plan_print(const struct torture_plan *plan, const struct torture_options *options,
                        FILE *to);
/* An array of the faults. */
json_t *torture_plan_json(const struct torture_plan *plan);

#endif
