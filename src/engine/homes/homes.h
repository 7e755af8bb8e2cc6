/* The slot map: the worker-wide flow of worker 0 that says which node is the home of which slot.
 * Pure; knows nothing of keys. Rules S1.., messages, table: docs/protocols/slots.md. Engines whose
 * keys or rows have homes step it within their own flow.
 *
 * The machine lives in the worker's memory, zeroed at first. Everything is stepped by the one
 * function homes_step; a step has at most EFFECTS_MAX effects, the rest waits for the next
 * EV_FLUSH, which comes until one has none. */
#ifndef HORKOS_ENGINE_HOMES_HOMES_H
#define HORKOS_ENGINE_HOMES_HOMES_H

#include <stdbool.h>
#include <stdint.h>

#include "engine/engine.h"

/* Kinds of messages. On the wire they count from homes_config.first_kind and keep their numbers. */
enum homes_kind {
    HOMES_STATE,
    HOMES_FETCH,
    HOMES_RUN,
    HOMES_MAP,
    HOMES_HAVE,
    HOMES_GO,
    HOMES_MOVED,
    HOMES_PURGED,
    HOMES_WISH,
    HOMES_FREE,
    HOMES_LOSE,
    HOMES_KINDS,
};
extern const char *const homes_kind_names[HOMES_KINDS];

enum homes_flag {
    HOMES_F_LEAVING = 1 << 0, /* STATE, WISH: the sender wants to leave */
    HOMES_F_EMPTY = 1 << 1,   /* WISH: the operator gives up all lost slots */
    HOMES_F_LAST = 1 << 2,    /* RUN, MAP: the map is complete with it */
    HOMES_F_COMPUTE = 1 << 3, /* STATE: the sender takes no slots */
    HOMES_F_NOBODY = 1 << 4,  /* MAP, with LAST: nobody could take slots that are lost (S16) */
};

/* Rules that a test can switch off in builds with HK_MUTANTS; bits of `rules_off`. */
enum homes_rule {
    HOMES_RULE_STATES,  /* S1: wait for all states */
    HOMES_RULE_NEWEST,  /* S2: take the newest */
    HOMES_RULE_LOST,    /* S3: a dead home's slots are lost */
    HOMES_RULE_PROCESS, /* S4: the same process */
    HOMES_RULE_WHOLE,   /* S5: a map is taken when it is complete */
    HOMES_RULE_ONE,     /* S6: one change at a time */
    HOMES_RULE_READY,   /* S7: ready when all have it */
    HOMES_RULE_NAMED,   /* S8: an emptied slot has its home while it is emptied */
    HOMES_RULE_PURGED,  /* S8: ... and is given out when all have purged it */
    HOMES_RULE_MOVED,   /* S9: MOVED counts for the moves that its map knew */
    HOMES_RULE_HOT,     /* S11: no move begins while the hot set changes */
    HOMES_RULE_FREE,    /* S12: a leaving member is told when everybody has the map */
    HOMES_RULES_COMMON,
    HOMES_RULE_ROLE = HOMES_RULES_COMMON, /* S13: who only computes takes no slots */
    HOMES_RULE_GIVEN,                     /* S14: nobody serves a slot that has moved until ... */
    HOMES_RULE_KEPT,                      /* S15: a slot whose next home is gone stays; liveness */
    HOMES_RULES
};
extern const char *const homes_rule_names[HOMES_RULES];

/* S10: slots that may be on their way from one home at a time. */
#define HOMES_MOVES_MAX 2048u

enum homes_phase {
    HOMES_OUT,
    HOMES_FOLLOW,
    HOMES_GATHER,
    HOMES_FETCHING,
    HOMES_ANNOUNCE,
    HOMES_WAIT,
    HOMES_QUIET,
    HOMES_PHASES
};
extern const char *const homes_phase_names[HOMES_PHASES];

/* The same at every step, and on every member but for `compute`. */
struct homes_config {
    uint8_t first_kind; /* of its messages, on the wire */
    bool compute;       /* this member takes no slots */
    bool whole;         /* a slot moves as a whole: its home has all of it until the next one has,
                           and nobody serves it meanwhile (S14). Else keys move one by one */
    uint64_t rules_off; /* HK_MUTANTS builds only: bits of enum homes_rule */
};

struct homes {
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
    uint8_t phase; /* enum homes_phase */
    bool answering;
    bool leaving; /* this member wants to leave ... */
    bool left;    /* ... and was told that it may */
    bool hot;     /* the hot set changes */
    bool nobody;  /* could take slots that are lost, by what the leader said with the map (S16) */

    /* The leader's. */
    bool look;   /* something was noted since it looked for a change */
    bool empty;  /* the operator's wish */
    bool moving; /* a slot of map is MOVING */
    nodeset heard, have;
    nodeset computers;          /* members that take no slots */
    nodeset leavers, freed;     /* members that want to leave; those that were told that they may */
    nodeset moved, purged;      /* have said so of what moves, or is emptied, now */
    bool lose;                  /* a home has lost rows: of these slots */
    uint8_t losers[HASH_SLOTS]; /* who said so, NODE_NONE: nobody; only if `lose` */
    uint64_t announced;         /* version of next while it is announced */
    uint64_t fetched;           /* version that was asked for */
    uint64_t moves_since;       /* version by which the moves under way began, at the latest */
    uint64_t empties_since;     /* the same of emptying */
    uint32_t sent;              /* slots of next below it were announced */
    uint8_t fetch_from;
    uint64_t versions[NODES_MAX]; /* of the members' maps, by STATE */
};

/* EV_VIEW, EV_MSG (a valid one of the kinds above), EV_FLUSH and EV_SLOTS. */
void homes_step(struct homes *h, const struct event *event, const struct homes_config *config,
                struct effects *fx);
/* Why the message, of one of the kinds above, cannot come from a correct member, or NULL. */
const char *homes_msg_invalid(const struct msg *msg, const struct homes_config *config);

/* S7: engine_ops.ready. */
bool homes_ready(const struct homes *h);
/* S11: whether this member leads, no slot moves, and everybody knows: the hot set may change, if
 * the flow is told so (SLOTS_HOT 1) before its next event. */
bool homes_quiet(const struct homes *h);

/* S10, for tests: marks slots of an even map as MOVING; whether any. All that is STABLE and has
 * more than its share gives to takers that have less. */
bool homes_even(uint32_t map[HASH_SLOTS], nodeset takers);

#endif
