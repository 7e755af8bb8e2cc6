/* Galene's slot map: the worker-wide flow of worker 0 that says which node is the home of which
 * slot. Pure; knows nothing of keys. Rules S1.., messages, table: docs/protocols/galene-slots.md.
 *
 * The machine lives in the worker's memory, zeroed at first. Everything is stepped by the one
 * function galene_homes_step; a step has at most EFFECTS_MAX effects, the rest waits for the next
 * EV_FLUSH, which comes until one has none. */
#ifndef HORKOS_ENGINE_GALENE_HOMES_H
#define HORKOS_ENGINE_GALENE_HOMES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/* Kinds of messages, on the wire: they keep their numbers. The key machine's are below. */
enum galene_homes_kind {
    GALENE_HOMES_FIRST = 32,
    GALENE_HOMES_STATE = GALENE_HOMES_FIRST,
    GALENE_HOMES_FETCH,
    GALENE_HOMES_RUN,
    GALENE_HOMES_MAP,
    GALENE_HOMES_HAVE,
    GALENE_HOMES_GO,
    GALENE_HOMES_MOVED,
    GALENE_HOMES_PURGED,
    GALENE_HOMES_WISH,
    GALENE_HOMES_FREE,
    GALENE_HOMES_END,
};
extern const char *const galene_homes_kind_names[GALENE_HOMES_END - GALENE_HOMES_FIRST];

enum galene_homes_flag {
    GALENE_HOMES_F_LEAVING = 1 << 0, /* STATE, WISH: the sender wants to leave */
    GALENE_HOMES_F_EMPTY = 1 << 1,   /* WISH: the operator gives up all lost slots */
    GALENE_HOMES_F_LAST = 1 << 2,    /* RUN, MAP: the map is complete with it */
};

/* Rules that a test can switch off in builds with HK_MUTANTS; bits of `rules_off`. */
enum galene_homes_rule {
    GALENE_HOMES_RULE_STATES,  /* S1: wait for all states */
    GALENE_HOMES_RULE_NEWEST,  /* S2: take the newest */
    GALENE_HOMES_RULE_LOST,    /* S3: a dead home's slots are lost */
    GALENE_HOMES_RULE_PROCESS, /* S4: the same process */
    GALENE_HOMES_RULE_WHOLE,   /* S5: a map is taken when it is complete */
    GALENE_HOMES_RULE_ONE,     /* S6: one change at a time */
    GALENE_HOMES_RULE_READY,   /* S7: ready when all have it */
    GALENE_HOMES_RULE_NAMED,   /* S8: an emptied slot has its home while it is emptied */
    GALENE_HOMES_RULE_PURGED,  /* S8: ... and is given out when all have purged it */
    GALENE_HOMES_RULE_MOVED,   /* S9: MOVED counts for the moves that its map knew */
    GALENE_HOMES_RULE_HOT,     /* S11: no move begins while the hot set changes */
    GALENE_HOMES_RULE_FREE,    /* S12: a leaving member is told when everybody has the map */
    GALENE_HOMES_RULES
};
extern const char *const galene_homes_rule_names[GALENE_HOMES_RULES];

/* S10: slots that may be on their way from one home at a time. */
#define GALENE_HOMES_MOVES_MAX 2048u

enum galene_homes_phase {
    GALENE_HOMES_OUT,
    GALENE_HOMES_FOLLOW,
    GALENE_HOMES_GATHER,
    GALENE_HOMES_FETCHING,
    GALENE_HOMES_ANNOUNCE,
    GALENE_HOMES_WAIT,
    GALENE_HOMES_QUIET,
    GALENE_HOMES_PHASES
};
extern const char *const galene_homes_phase_names[GALENE_HOMES_PHASES];

struct galene_homes {
    uint32_t map[HASH_SLOTS];  /* slot_home_pack; complete as of `version` */
    uint32_t next[HASH_SLOTS]; /* what is coming in, or being announced */
    uint64_t version;          /* 0: there is no map */
    uint64_t told_version;     /* by which the node acts */
    uint64_t said_version;     /* HAVE was said of it */
    uint64_t coming;           /* version of next while it comes in; 0: nothing does */
    uint32_t come;             /* slots of next below it have come */
    uint32_t told;             /* slots of map below it were told to the node */
    uint32_t answered;         /* fetched: slots of map below it were sent */
    uint32_t epoch;            /* of the adopted view */
    uint32_t ready_epoch;
    uint8_t phase; /* enum galene_homes_phase */
    bool answering;
    bool leaving; /* this member wants to leave ... */
    bool left;    /* ... and was told that it may */
    bool hot;     /* the hot set changes */

    /* The leader's. */
    bool look;   /* something was noted since it looked for a change */
    bool empty;  /* the operator's wish */
    bool moving; /* a slot of map is MOVING */
    nodeset heard, have;
    nodeset leavers, freed; /* members that want to leave; those that were told that they may */
    nodeset moved, purged;  /* have said so of what moves, or is emptied, now */
    uint64_t announced;     /* version of next while it is announced */
    uint64_t fetched;       /* version that was asked for */
    uint64_t moves_since;   /* version by which the moves under way began, at the latest */
    uint64_t empties_since; /* the same of emptying */
    uint32_t sent;          /* slots of next below it were announced */
    uint8_t fetch_from;
    uint64_t versions[NODES_MAX]; /* of the members' maps, by STATE */
};

/* EV_VIEW, EV_MSG (a valid one of the kinds above), EV_FLUSH and EV_SLOTS. */
void galene_homes_step(struct galene_homes *h, const struct event *event, uint64_t rules_off,
                       struct effects *fx);
/* Why the message, of one of the kinds above, cannot come from a correct member, or NULL. */
const char *galene_homes_invalid(const struct msg *msg);

/* S7: engine_ops.ready. */
bool galene_homes_ready(const struct galene_homes *h);
/* S11: whether this member leads, no slot moves, and everybody knows: the hot set may change, if
 * the flow is told so (SLOTS_HOT 1) before its next event. */
bool galene_homes_quiet(const struct galene_homes *h);

/* S10, for tests: marks slots of an even map as MOVING; whether any. All that is STABLE and has
 * more than its share gives to takers that have less. */
bool galene_homes_even(uint32_t map[HASH_SLOTS], nodeset takers);

#endif
