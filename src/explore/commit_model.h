/* What the files of the model of reliable commit share; nobody else includes it. A world is up to
 * four nodes with two objects that the first one owns, its pipelines, the messages under way, and
 * the views decided so far. The nodes run the real machine (engine/zeus/commit.h); what the node
 * does around it is modelled here, small. When the owner is dead and all have RECOVERED, another
 * replica takes the objects over.
 *
 * commit_shell.c steps the machine, commit_world.c makes worlds and lists what can happen next,
 * commit_judge.c says what is broken, commit_configs.c has the configurations and tells traces in
 * words. */
#ifndef HORKOS_EXPLORE_COMMIT_MODEL_H
#define HORKOS_EXPLORE_COMMIT_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/zeus/zeus.h"
#include "explore/explore.h"

#define COMMITS_NODES 4u
#define COMMITS_OBJECTS 2u
#define COMMITS_TXS 3u
#define COMMITS_SLOTS 3u
#define COMMITS_MESSAGES 28u
#define COMMITS_VIEWS 4u
#define COMMITS_OWN_PIPES 2u                              /* of the first owner */
#define COMMITS_PIPES (COMMITS_OWN_PIPES + COMMITS_NODES) /* and one of each that takes over */

/* A configuration. */
struct commits_setup {
    uint8_t nodes;
    uint8_t replicas[COMMITS_OBJECTS]; /* nodesets; the first node is in each */
    uint8_t pipes;
    uint8_t txs;        /* how many are begun */
    uint8_t shapes;     /* bit i: sets of objects that they may write, i = 1, 2, 3 */
    uint8_t drops;      /* members that views may drop: they die */
    uint8_t drop_nodes; /* nodeset that may be dropped */
    bool takes_over;    /* whether transactions are begun by who takes over */
};

/* Those of one lane, of a pipe between two nodes, stand in the order in which they were sent. */
struct commits_message {
    uint8_t to;
    uint8_t from;
    uint8_t pipe;
    uint8_t kind; /* enum commit_kind */
    uint8_t epoch;
    uint8_t slot;
    uint8_t first;
    uint8_t followers;
    uint8_t objects; /* set of those that an R-INV brings */
};

/* struct commit_pipe, packed. */
struct commits_pipe {
    uint8_t known; /* the node has a record of it */
    uint8_t next;
    uint8_t first;
    uint8_t unsent;
    uint8_t common;
    uint8_t epoch;
    uint8_t dead;
    uint8_t acked[COMMITS_NODES];
    uint8_t followers[COMMITS_SLOTS];
    uint8_t state[COMMITS_SLOTS];
    uint8_t stored[COMMITS_SLOTS];
    uint8_t objects[COMMITS_SLOTS]; /* that the node has kept of the slot's R-INV */
};

struct commits_object {
    uint8_t have;
    uint8_t state; /* enum zeus_state */
    uint8_t version;
    uint8_t tx; /* 1 + the transaction that wrote it; 0: none */
};

struct commits_node {
    uint8_t epoch; /* 0: no process */
    uint8_t recovered;
    struct commits_object objects[COMMITS_OBJECTS];
    struct commits_pipe pipes[COMMITS_PIPES];
};

struct commits_tx {
    uint8_t begun;
    uint8_t node;
    uint8_t pipe;
    uint8_t slot;
    uint8_t wrote[COMMITS_OBJECTS]; /* version; 0: not written */
    uint8_t read[COMMITS_OBJECTS];  /* 1 + version; 0: not read */
    uint8_t seen;                   /* set of transactions that it read from */
    uint8_t own_done;               /* its coordinator knows that it is done */
    uint8_t done;                   /* some driver, or one told by it, knows */
    uint8_t told;                   /* its client knows */
};

struct commits_world {
    struct commits_node nodes[COMMITS_NODES];
    struct commits_tx txs[COMMITS_TXS];
    uint8_t owner[COMMITS_OBJECTS];
    uint8_t live[COMMITS_VIEWS]; /* of each epoch, from 1 on */
    uint8_t nviews;
    uint8_t drops;
    uint8_t begun;
    uint8_t nmessages;
    struct commits_message messages[COMMITS_MESSAGES]; /* sorted by receiver, sender, pipe */
};

/* Constant but for what `work` points to, which is no part of any state. */
struct commits_work {
    struct view view; /* of the event that is being stepped */
    struct commit_pipe pipe;
    struct commit_effects fx;
    struct commits_world next;
};

struct commits_model {
    const struct commits_setup *setup;
    struct commit_config config;
    struct commits_work *work;
};

/* A world in the middle of a step. */
struct commits_shell {
    const struct commits_model *model;
    struct commits_world *world;
    const char *broken; /* what the step violated; NULL */
};

/* ---- commit_world.c ---- */
void commits_begin(const void *self, void *state_out);
void commits_expand(const void *self, const void *state, struct search *search);
/* The process runs, and is a member of the newest view. */
bool commits_alive(const struct commits_world *w, uint8_t node);
/* The number of the first message of a lane that its receiver may take; COMMITS_MESSAGES: none. */
uint8_t commits_next(const struct commits_world *w, uint8_t from, uint8_t to, uint8_t pipe);
bool commits_rule(const struct commits_model *model, enum commit_rule rule);

enum commits_action_kind {
    COMMITS_ACT_DELIVER, /* a: message */
    COMMITS_ACT_BEGIN,   /* a: node and pipe, b: set of objects */
    COMMITS_ACT_DROP,    /* a: node */
    COMMITS_ACT_ADOPT,   /* a: node */
    COMMITS_ACT_RECOVERED,
    COMMITS_ACT_TAKE_OVER, /* a: node, b: object */
    COMMITS_ACT_STUCK,
};

/* ---- commit_shell.c ---- */
void commits_shell_deliver(struct commits_shell *shell, const struct commits_message *m);
/* The transaction is committed locally. */
void commits_shell_begin(struct commits_shell *shell, uint8_t tx, uint8_t followers);
void commits_shell_view(struct commits_shell *shell, uint8_t node);
uint8_t commits_coordinator(uint8_t pipe);

/* ---- commit_judge.c ---- */
bool commits_readable(const struct commits_world *w, uint8_t node, uint8_t object);
const char *commits_broken(const void *self, const void *state);
bool commits_finished(const void *self, const void *state);
/* Nothing is stored, and all objects are reliable. */
bool commits_at_rest(const struct commits_world *w);

/* ---- commit_configs.c ---- */
void commits_describe(const void *self, const void *before, const void *after, uint64_t number,
                      FILE *to);

#endif
