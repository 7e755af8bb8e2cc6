/* The view protocol as a model for explore/search.h: the real src/view, on a network that delivers
 * what was sent in any order, repeatedly or never, with time that passes in ticks and processes
 * that crash, come back as others, and pause. What may happen is bounded by a configuration, and
 * begins where its moves lead, since the interesting states are far from the first one.
 * docs/EXPLORER.md tells what is abstracted and lists the configurations. */
#ifndef HORKOS_EXPLORE_VIEW_MODEL_H
#define HORKOS_EXPLORE_VIEW_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "explore/explore.h"
#include "explore/search.h"
#include "explore/view_state.h"

/* Kinds of messages as a set. */
#define VIEWS_KIND(k) (1u << VIEW_MSG_##k)

enum views_move_kind {
    VIEWS_MOVE_END = 0,
    VIEWS_MOVE_TIME,    /* a ticks pass; nobody runs */
    VIEWS_MOVE_TICK,    /* process a runs */
    VIEWS_MOVE_DELIVER, /* to process b what process a sent it, of the kinds; then it is gone */
    VIEWS_MOVE_SUSPECT, /* process a suspects node b */
    VIEWS_MOVE_HINT,    /* process a sends node b its view */
    VIEWS_MOVE_START,   /* a new process of node a */
    VIEWS_MOVE_PAUSE,   /* process a */
    VIEWS_MOVE_CRASH,
    VIEWS_MOVE_COPIED,    /* process a has adopted its view and copied everything */
    VIEWS_MOVE_CONFIGURE, /* process a is told the configured set b */
    VIEWS_MOVE_LOSE,      /* everything that is on its way is lost */
};

struct views_move {
    uint8_t kind; /* enum views_move_kind */
    uint8_t a;
    uint8_t b;
    uint16_t kinds; /* of messages */
};

/* What makes a state worth counting: it shows that the configuration reaches what it is about. */
enum views_goal {
    VIEWS_GOAL_NONE,
    VIEWS_GOAL_DECIDED,  /* a view of the last epoch is decided */
    VIEWS_GOAL_SERVES,   /* ... and a member of it, in it, holds a lease */
    VIEWS_GOAL_PROMOTED, /* a process that started later is operational */
};

struct views_config {
    uint8_t nodes;
    uint8_t lease_ticks;  /* that a granter counts */
    uint8_t margin_ticks; /* that a holder counts less */
    uint8_t epochs_max;   /* what is sent for the instance of a later epoch is lost */
    uint8_t rounds_max;   /* of ballots; the same */
    uint8_t formed;       /* nodes of the first view; 0: all */
    uint8_t kept_epoch;   /* not 0: all nodes start without a view, but with kept state */
    bool boots;           /* starts without a view; else in a formed cluster */
    bool in_time; /* progress is asked for: messages and suspicion are not left to chance (who
                             is cut off from somebody suspects him all the time), only the order in
                             which processes run is; a second view must be there when time is used
                             up */
    uint8_t beats[VIEWS_NODES_MAX];    /* by node: the nodes that its heartbeats reach */
    uint8_t suspects[VIEWS_NODES_MAX]; /* by node: whom it may suspect */
    uint8_t cut[VIEWS_NODES_MAX];      /* by node: whom it cannot reach */
    uint8_t faulty;                    /* nodes that crash, start again and pause */
    uint8_t runs;                      /* nodes that may run between two ticks */
    uint8_t leaves;                    /* nodes that may leave */
    uint8_t configured;                /* VIEWS_BUDGET_CONFIGURES: the new set */
    uint16_t prompt;                   /* kinds that arrive at once, or never */
    uint16_t lost;                     /* kinds that never arrive */
    uint8_t budget[VIEWS_BUDGETS];
    enum views_goal goal;
    const struct views_move *moves; /* up to VIEWS_MOVE_END; NULL: none */
};

/* Explores it. */
void views_explore(const struct views_config *config, const struct explore_request *request,
                   struct search_result *result_out);
/* Its bounds, on one line. */
void views_config_print(const struct views_config *config, FILE *to);

#endif
