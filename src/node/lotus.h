/* Lotus in the node (docs/protocols/lotus.md): compute servers (lotus.c), memory servers
 * (lotus_home.c), and which of them has which slot (lotus_map.c). Only files of node include it. */
#ifndef HORKOS_NODE_LOTUS_H
#define HORKOS_NODE_LOTUS_H

#include "engine/lotus/commit.h"
#include "node/internal.h"
#include "node/lotus_table.h"

/* What a space with ENGINE_TABLES has beside its table. */
struct lotus_space {
    struct node *node;
    struct lotus_config config; /* defaults filled in */
    uint8_t space;
    uint8_t reserved[7];

    /* Where rows can be far (lotus_far.h). Any worker: */
    _Atomic uint64_t storing;           /* bytes that are on their way to cells */
    _Atomic uint64_t cells, cell_bytes; /* that are kept here */
    _Atomic uint64_t recalled;          /* nodeset: members whose cells are to come home */
    _Atomic uint64_t lost_slots[HASH_SLOTS / 64u]; /* of which a far row is lost, ... */
    _Atomic bool lost_any;                         /* ... of any */
    _Atomic bool leaves;                           /* this node does */
};

/* Messages go through output_message to the worker with the sender's number, to this very worker
 * as well; what comes is given to lotus_message by input.c. */
void lotus_message(struct worker *w, const struct msg *msg, uint8_t from);

/* ---- lotus_map.c ---- */

enum lotus_where {
    LOTUS_AT,     /* *node_out has it */
    LOTUS_LOST,   /* its memory server is gone, and its rows */
    LOTUS_WAIT,   /* there is no map yet */
    LOTUS_NOBODY, /* no node keeps rows */
};
/* Of a slot, by this node's map. Any worker. */
enum lotus_where lotus_where(const struct worker *w, uint8_t space, uint32_t slot,
                             uint8_t *node_out);
/* All nodes that have slots, and the version of the map that says so; false: a slot is lost
 * (*lost_out, else left alone), or moving, or there is no map; or this node has not let go of rows
 * of slots that have moved away. */
bool lotus_servers(const struct worker *w, uint8_t space, nodeset *servers_out,
                   uint64_t *version_out, uint32_t *lost_out);
/* At a memory server: whether the slot is here, and at rest. */
bool lotus_here(const struct worker *w, uint8_t space, uint32_t slot);
/* Whether rows of the slot belong here, or come here, and nobody moves them away. */
bool lotus_stays(const struct worker *w, uint8_t space, uint32_t slot);

/* Tries that began before that version of the map, and are not prepared, have kept a slot from
 * moving for too long. Any worker. */
uint64_t lotus_move_wounds(const struct worker *w, uint8_t space);

/* ---- lotus.c: the coordinator's side of calls ---- */

extern const struct brought_ops lotus_brought;

int lotus_init(struct worker *w) __attribute__((warn_unused_result));
void lotus_deinit(struct worker *w);
void lotus_adopt(struct worker *w);
void lotus_check(const struct worker *w);
/* A version above `seen`, and above all that this worker gave or has heard of (N8): no other write
 * of this incarnation has it. */
uint64_t lotus_version(struct worker *w, uint64_t seen);
/* From here on its versions are above that one (N8). */
void lotus_versions_above(struct worker *w, uint64_t version);
/* Somebody's transaction is so old: this worker's clock is not behind it. */
void lotus_saw(struct worker *w, const struct lock_age *age);
/* End of a poll: batches that are due; when the next is. */
void lotus_poll(struct worker *w);
uint64_t lotus_deadline(const struct worker *w);

/* ---- lotus_home.c: the memory server's side ---- */

int lotus_home_init(struct worker *w) __attribute__((warn_unused_result));
void lotus_home_deinit(struct worker *w);
/* Of the whole node and space: before the first worker is made, after the last is gone. */
int lotus_tables_init(struct node *n, uint8_t space) __attribute__((warn_unused_result));
void lotus_tables_deinit(struct node *n, uint8_t space);
void lotus_home_message(struct worker *w, const struct msg *msg, uint8_t from);
/* What a message will touch, towards the cache. */
void lotus_home_prefetch(const struct worker *w, const struct msg *msg);
void lotus_home_adopt(struct worker *w);
/* Tries that were woken, leases, the cleaner, expired rows; when it wants the next. */
void lotus_home_poll(struct worker *w);
uint64_t lotus_home_deadline(const struct worker *w);
/* Whether other workers have woken tries of this one. */
bool lotus_home_wanted(const struct worker *w);
void lotus_home_check(const struct worker *w);
/* This node leaves: cells that others have here are to go home. Worker 0. */
void lotus_home_leave(struct worker *w);
/* Whether nobody has cells here. Any thread. */
bool lotus_home_left(const struct node *n);
/* Of the tries of that worker whose outcome is open the oldest version of the map by which one
 * began, as of its last poll; none: of the map that it saw then. Any thread. */
uint64_t lotus_home_oldest(const struct worker *w, uint8_t space);

#endif
