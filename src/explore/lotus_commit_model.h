/* What the files of the model of Lotus's two-phase commit share; nobody else includes it. A world
 * is a coordinator, two or three memory servers, the messages under way, and the views decided so
 * far. All run the real machines (engine/lotus/commit.h); what the node does around them is
 * modelled here, small: there are no rows, and a lock is lost when its try is wounded.
 *
 * lotus_commit_shell.c steps the machines, lotus_commit_world.c lists what can happen next and
 * judges it, lotus_commit_configs.c has the configurations and tells traces in words. */
#ifndef HORKOS_EXPLORE_LOTUS_COMMIT_MODEL_H
#define HORKOS_EXPLORE_LOTUS_COMMIT_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/lotus/commit.h"
#include "explore/explore.h"

#define PHASES_NODES 4u /* the first is the coordinator, the others are servers */
#define PHASES_TXNS 2u
#define PHASES_TRIES 2u
#define PHASES_MESSAGES 28u
#define PHASES_VIEWS 5u

/* A configuration. */
struct phases_setup {
    uint8_t nodes;
    uint8_t txns;                 /* they run side by side, with locks that do not meet */
    uint8_t tries;                /* of a transaction, before its client hears an error */
    uint8_t homes[PHASES_TXNS];   /* nodesets: where it reads and writes */
    uint8_t written[PHASES_TXNS]; /* of these, where it writes */
    uint8_t wounds;               /* of running tries, at any moment */
    uint8_t refusals;             /* of EXECUTE */
    uint8_t cancels;              /* clients that go away */
    uint8_t drops;                /* members that views may drop: they die */
    uint8_t drop_nodes;           /* nodeset that may be dropped */
    uint8_t joins;                /* new processes that views may admit where one has died */
};

/* Those of one lane, between two nodes, stand in the order in which they were sent. */
struct phases_message {
    uint8_t to;
    uint8_t from;
    uint8_t kind; /* enum lotus_kind */
    uint8_t txn;
    uint8_t gen; /* number of the try, from 1 */
    uint8_t epoch;
    uint8_t ts;           /* as in struct msg */
    uint8_t number;       /* PREPARE */
    uint8_t participants; /* the same */
};

enum phases_told { PHASES_NOTHING, PHASES_ANSWERED, PHASES_FAILED, PHASES_UNKNOWN };

struct phases_txn {
    struct lotus_txn machine; /* the coordinator's */
    uint8_t gen;              /* of its try; 0: not begun */
    uint8_t number;           /* of its PREPARE; 0: none */
    uint8_t due;              /* another try is to begin */
    uint8_t ended;
    uint8_t told;                    /* enum phases_told: what its client heard */
    uint8_t installed[PHASES_TRIES]; /* nodesets of servers, by try: written and released ... */
    uint8_t released[PHASES_TRIES];  /* ... or only released; processes that live */
    uint8_t lost[PHASES_TRIES];      /* installed by processes that have died since */
    uint8_t zero[5];
};
_Static_assert(sizeof(struct phases_txn) == 56, "no padding");

struct phases_part {
    struct lotus_part machine;
    uint8_t gen;   /* 0: free */
    uint8_t epoch; /* in which its last request was sent: it is about processes of that view */
    uint8_t zero[6];
};

struct phases_world {
    struct phases_txn txns[PHASES_TXNS];
    struct phases_part parts[PHASES_NODES][PHASES_TXNS];
    uint8_t epoch[PHASES_NODES];                  /* 0: no process */
    uint8_t live[PHASES_VIEWS];                   /* of each epoch, from 1 on */
    uint8_t admitted[PHASES_VIEWS][PHASES_NODES]; /* the same: epoch that let the process in */
    uint8_t nviews;
    uint8_t drops, joins, wounds, refusals, cancels; /* how many there were */
    uint8_t next;                                    /* number of the next PREPARE */
    uint8_t nmessages;
    uint8_t zero[7];
    struct phases_message messages[PHASES_MESSAGES]; /* sorted by receiver and sender */
};
_Static_assert(sizeof(struct phases_world) == 728, "no padding");

struct phases_model {
    const struct phases_setup *setup;
    struct lotus_config config;
    struct phases_world *next; /* no part of any state */
};

/* A world in the middle of a step. */
struct phases_shell {
    const struct phases_model *model;
    struct phases_world *world;
    const char *broken; /* what the step violated; NULL */
};

/* ---- lotus_commit_world.c ---- */
void phases_begin(const void *self, void *state_out);
void phases_expand(const void *self, const void *state, struct search *search);
const char *phases_broken(const void *self, const void *state);
bool phases_finished(const void *self, const void *state);
/* The process runs, and is a member of the newest view. */
bool phases_alive(const struct phases_world *w, uint8_t node);
/* Of `nodes`, those whose process of the earlier epoch is no member of the later one. */
nodeset phases_gone(const struct phases_world *w, nodeset nodes, uint8_t earlier, uint8_t later);

enum phases_action_kind {
    PHASES_ACT_DELIVER, /* a: message, b: whether an EXECUTE is refused */
    PHASES_ACT_BEGIN,   /* a: transaction; a try */
    PHASES_ACT_CANCEL,  /* a: transaction */
    PHASES_ACT_WOUND,   /* a: node, b: transaction */
    PHASES_ACT_TIMEOUT, /* the same; P1 is off */
    PHASES_ACT_DROP,    /* a: node */
    PHASES_ACT_JOIN,    /* a: node */
    PHASES_ACT_ADOPT,   /* a: node, b: epoch */
    PHASES_ACT_STUCK,
};

/* ---- lotus_commit_shell.c ---- */
void phases_shell_begin(struct phases_shell *shell, uint8_t txn);
void phases_shell_cancel(struct phases_shell *shell, uint8_t txn);
void phases_shell_deliver(struct phases_shell *shell, const struct phases_message *m, bool refuse);
/* A running try has lost its locks; a prepared one has timed out. */
void phases_shell_wound(struct phases_shell *shell, uint8_t node, uint8_t txn);
void phases_shell_timeout(struct phases_shell *shell, uint8_t node, uint8_t txn);
/* The node has adopted a view; `before`: the epoch that it was in. */
void phases_shell_view(struct phases_shell *shell, uint8_t node, uint8_t before);

/* ---- lotus_commit_configs.c ---- */
void phases_describe(const void *self, const void *before, const void *after, uint64_t number,
                     FILE *to);

#endif
