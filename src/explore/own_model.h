/* What the files of the ownership model share; nobody else includes it. A world is up to four nodes
 * with one object, the messages under way, the views decided so far, and what is asked of it. The
 * nodes run the real machine (own_step); what the node does around it is modelled here, small, and
 * so is reliable commit: one at a time, its R-INVs taken one by one, its R-VALs at once.
 *
 * own_shell.c steps the machine, own_world.c makes worlds and lists what can happen next,
 * own_judge.c says what is broken, own_configs.c has the configurations and tells traces in words.
 */
#ifndef HORKOS_EXPLORE_OWN_MODEL_H
#define HORKOS_EXPLORE_OWN_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/zeus/zeus.h"
#include "explore/explore.h"

#define OWNS_NODES 4u
#define OWNS_MESSAGES 28u
#define OWNS_VIEWS 4u
#define OWNS_WANTS 3u

/* Values: 0 is that of an object that was just created, 1 what it has at the start, then one for
 * each commit. */
#define OWNS_VALUE_NEW 0u
#define OWNS_VALUE_START 1u

struct owns_want {
    uint8_t type; /* enum own_type */
    uint8_t node;
    uint8_t target; /* of TRIM; of DEGREE the degree */
};

/* A configuration. */
struct owns_setup {
    struct owns_want wants[OWNS_WANTS];
    uint8_t nodes;
    uint8_t directory;  /* nodeset */
    uint8_t owner;      /* at the start; NODE_NONE: nobody has heard of the object */
    uint8_t readers;    /* nodeset, at the start */
    uint8_t commits;    /* how many are begun */
    uint8_t commit_at;  /* nodeset of those who begin them */
    uint8_t drops;      /* members that views may drop: they die */
    uint8_t drop_nodes; /* nodeset that may be dropped */
    uint8_t timers;     /* how often a timer may run out */
    bool deleted;       /* at the start: the object is a tombstone */
    bool enough;        /* two replicas are needed to write (R15), while two nodes live */
};

/* Those of one lane stand in the order in which they were sent. */
struct owns_message {
    uint64_t ts;
    uint64_t clock;
    uint8_t body[OWN_BODY_BYTES];
    uint8_t to;
    uint8_t from;
    uint8_t kind; /* enum own_kind */
    uint8_t epoch;
    uint8_t value; /* that it carries */
    uint8_t reserved[3];
};
_Static_assert(sizeof(struct owns_message) == 88, "no padding");

struct owns_node {
    struct own_entry entry;
    struct own_busy busy;
    uint64_t clock;
    uint64_t forgot;
    uint64_t version;      /* of the data */
    uint64_t kept_version; /* of the value kept beside the busy record; 0: none */
    uint32_t seq;
    uint8_t epoch; /* 0: no process */
    bool have;
    uint8_t state; /* enum zeus_state */
    uint8_t value;
    uint8_t kept;
    bool owned; /* ZEUS_OWNED */
    bool shut;
    uint8_t recovered; /* the last epoch of which it said so */
    uint8_t settled;   /* the same */
    uint8_t hears;     /* 1: all have RECOVERED its epoch; 2: and SETTLED it */
    uint8_t reserved[2];
};

enum owns_phase { WANT_WAITING, WANT_OPEN, WANT_ENDED };

struct owns_world {
    struct owns_node nodes[OWNS_NODES];
    uint64_t won[OWNS_WANTS]; /* o_ts at which a want was carried out; 0: not yet */
    uint64_t commit_version;  /* of the commit under way; 0: none */
    uint32_t seqs[OWNS_WANTS];
    uint8_t phase[OWNS_WANTS]; /* enum owns_phase */
    uint8_t live[OWNS_VIEWS];  /* of each epoch, from 1 on */
    uint8_t nviews;
    uint8_t drops;
    uint8_t timers;
    uint8_t commits; /* begun */
    uint8_t commit_node;
    uint8_t commit_left;      /* followers that have not taken it yet */
    uint8_t commit_taken;     /* those that have */
    uint8_t commit_epoch;     /* the coordinator's when it died; 0: it lives */
    uint8_t base[OWNS_WANTS]; /* of each commit: the value that it replaced */
    uint8_t last;             /* the newest value that could be read */
    uint8_t seen;             /* set of values that could be read somewhere, at some time */
    uint8_t nmessages;
    uint8_t reserved[3];
    struct owns_message messages[OWNS_MESSAGES]; /* sorted by receiver and sender */
};

/* Constant but for what `work` points to, which is no part of any state. */
struct owns_work {
    struct view view; /* of the event that is being stepped */
    struct owns_world next;
};

struct owns_model {
    const struct owns_setup *setup;
    struct own_config config;
    struct owns_work *work;
};

/* A world in the middle of a step. */
struct owns_shell {
    const struct owns_model *model;
    struct owns_world *world;
    const char *broken; /* what the step violated; NULL */
    uint64_t random;
};

/* ---- own_world.c ---- */
void owns_begin(const void *self, void *state_out);
void owns_expand(const void *self, const void *state, struct search *search);
/* The process runs, and is a member of the newest view. */
bool owns_alive(const struct owns_world *w, uint8_t node);
/* The number of the first message of a lane that its receiver may take; OWNS_MESSAGES: none. */
uint8_t owns_next(const struct owns_world *w, uint8_t from, uint8_t to);

enum owns_action_kind {
    OWNS_ACT_DELIVER,   /* a: sender, b: receiver */
    OWNS_ACT_WANT,      /* a: want */
    OWNS_ACT_TIMER,     /* a: node */
    OWNS_ACT_DROP,      /* a: node */
    OWNS_ACT_ADOPT,     /* a: node */
    OWNS_ACT_RECOVERED, /* a: node says so */
    OWNS_ACT_SETTLED,   /* a: node says so */
    OWNS_ACT_HEAR,      /* a: node */
    OWNS_ACT_COMMIT,    /* a: node begins one */
    OWNS_ACT_TAKE,      /* a: follower takes its R-INV */
    OWNS_ACT_DONE,      /* it is reliable */
    OWNS_ACT_REPLAY,    /* what a dead owner left is finished, or was lost with it */
    OWNS_ACT_STUCK,
};

/* ---- own_shell.c ---- */
/* The view of an epoch. */
const struct view *owns_view(const struct owns_model *model, const struct owns_world *w,
                             uint8_t epoch);
void owns_shell_deliver(struct owns_shell *shell, const struct owns_message *m);
void owns_shell_want(struct owns_shell *shell, uint8_t want);
void owns_shell_event(struct owns_shell *shell, uint8_t node, enum own_ev kind);

/* ---- own_judge.c ---- */
bool owns_readable(const struct owns_world *w, uint8_t node);
/* Transactions may begin on the object here. */
bool owns_writable(const struct owns_world *w, uint8_t node);
/* Takes note of what can be read now. */
void owns_note(struct owns_shell *shell);
const char *owns_broken(const void *self, const void *state);
bool owns_finished(const void *self, const void *state);
/* Where nobody waits: the directory's entries are the same, and true. */
bool owns_directory_agrees(const struct owns_model *model, const struct owns_world *w);
/* ... and they say that the object is lost, but no value was ever written to it. */
bool owns_never_was(const struct owns_model *model, const struct owns_world *w);
/* Nobody waits for anything, nor for time to pass if that is so wanted. */
bool owns_at_rest(const struct owns_world *w, bool timers_count);

/* ---- own_configs.c ---- */
void owns_describe(const void *self, const void *before, const void *after, uint64_t number,
                   FILE *to);

#endif
