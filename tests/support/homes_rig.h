/* Several slot maps, the lanes between them, views, crashes, joins and leaves, drawn at
 * random. The rig stands for the rest of a node: it acts as the home of what its table says is
 * its own, moves and purges what each slot holds, hands operations on. It knows what every slot
 * really holds, and judges whoever acts by that. */
#ifndef HORKOS_TESTS_SUPPORT_HOMES_H
#define HORKOS_TESTS_SUPPORT_HOMES_H

#include "base/random.h"
#include "engine/homes/homes.h"

#define HOMES_NODES 5u
#define HOMES_LANE 4096u
#define HOMES_VIEWS 64u

struct homes_packet {
    struct msg msg;      /* of the slot map, unless ... */
    bool call;           /* ... it is an operation that was handed on */
    uint32_t slot;       /* of the operation ... */
    uint64_t by_version; /* ... and the version of the map by which it was */
    uint32_t from_born, to_born;
};

struct homes_lane {
    struct homes_packet packets[HOMES_LANE];
    uint32_t head, tail;
};

struct homes_node {
    struct homes homes;
    struct view view;
    uint32_t table[HASH_SLOTS];
    uint64_t map_version;
    uint32_t holds[HASH_SLOTS]; /* the number of the write that it holds; 0: nothing */
    uint32_t hot_epoch;         /* in which it was told that the hot set changes */
    uint32_t born;              /* epoch that admitted the process */
    bool alive, serves;
    bool left, alone; /* it was told that it may leave; for want of anybody who stays */

    /* The mover. */
    bool passing, found;
    uint32_t cursor;
    uint64_t pass_version, said_version;
};

struct homes_rig {
    struct random random;
    uint64_t rules_off;
    bool whole;        /* slots move as wholes */
    nodeset computers; /* members that take no slots */
    struct homes_node nodes[HOMES_NODES];
    struct homes_lane lanes[HOMES_NODES][HOMES_NODES];
    struct view views[HOMES_VIEWS];
    uint32_t nviews;
    uint32_t truth[HASH_SLOTS]; /* the last write that was acknowledged; 0: none since emptied */
    nodeset had[HASH_SLOTS];    /* who was its home, or was to be */
    nodeset died;               /* whose process ended without having been told that it may */
    uint32_t writes;
    uint64_t steps, moves, lost, handed, empties, leaves;
    const char *violation;
};

/* The first view, of n nodes (0: 3 to 5), which nobody has adopted. whole and computers may be set
 * afterwards. */
void homes_rig_init(struct homes_rig *r, uint32_t n, uint64_t rules_off, uint64_t seed);
/* One action at random. */
void homes_rig_step(struct homes_rig *r);
/* Faults end; everything that can happen happens. Then all must be well (violation). */
void homes_rig_settle(struct homes_rig *r);
/* The operator gives up what is lost, and it settles again: nothing is lost any more. */
void homes_rig_empty(struct homes_rig *r);

/* By which a node's map is stepped. */
struct homes_config homes_rig_config(const struct homes_rig *r, uint8_t node);

/* ---- By hand ---- */

/* Everything that can happen happens. */
void homes_rig_exhaust(struct homes_rig *r);
/* The next view: processes end, begin as shadows, or serve. */
void homes_rig_view(struct homes_rig *r, nodeset drops, nodeset admits, nodeset promotes);
/* The newest view. */
void homes_rig_adopt(struct homes_rig *r, uint8_t node);
bool homes_rig_deliver(struct homes_rig *r, uint8_t from, uint8_t to);
bool homes_rig_flush(struct homes_rig *r, uint8_t node, uint32_t times);
/* A part of a pass of the mover. Whether anything was done. */
bool homes_rig_move(struct homes_rig *r, uint8_t node, uint32_t slots);
void homes_rig_say(struct homes_rig *r, uint8_t node, enum slots_code code, uint64_t ts);
/* Writes every slot that the node is the home of. */
void homes_rig_write(struct homes_rig *r, uint8_t node);

#endif
