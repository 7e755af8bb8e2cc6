/* What the files of the Hermes model share; nobody else includes it. A world is N nodes with one
 * key, the messages that were ever sent and can still matter, the views decided so far, and the
 * clients' operations. The nodes run the real engine through struct engine_ops; what the node's
 * shell does around it is modelled here, small.
 *
 * hermes_world.c makes and normalises worlds, hermes_shell.c steps the engine, hermes_actions.c
 * lists what can happen next, hermes_judge.c says what is broken, hermes_print.c tells it in words,
 * hermes_configs.c has the configurations. */
#ifndef HORKOS_EXPLORE_HERMES_MODEL_H
#define HORKOS_EXPLORE_HERMES_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/hermes/machine.h"
#include "explore/explore.h"

#define MODEL_NODES 5u
#define MODEL_SLOTS 3u
#define MODEL_MESSAGES 112u
#define MODEL_VIEWS 7u
#define MODEL_OPS 5u
#define MODEL_TRIES 3u /* of one operation */
#define MODEL_UNLIMITED 255u
#define MODEL_GRACE_US 1600000u
/* One tick of the model: a little over a grace. */
#define MODEL_TICK_US (MODEL_GRACE_US + MODEL_GRACE_US / 16 + 1)

/* Values: 0 is "no entry", 1 what the key holds at the start, then one for each try of each
 * operation. */
#define VALUE_NONE 0u
#define VALUE_START 1u
#define VALUES (2u + MODEL_OPS * MODEL_TRIES)
_Static_assert(VALUES <= 32, "sets of values are 32 bits");

enum model_start {
    START_VALUE,
    START_TOMBSTONE, /* Valid, and stamped long ago */
    START_AGREED,    /* the same, and all have agreed to forget it */
    START_PARTLY,    /* all have reported it; A, which was told of the agreement, has forgotten */
    START_NOTHING,   /* no entry anywhere */
    START_TWICE,     /* no entry at the members; a dropped one replays what was forgotten */
};

enum op_type { TYPE_NONE, TYPE_WRITE, TYPE_RMW, TYPE_DELETE, TYPE_READ };

/* A configuration. */
struct hermes_setup {
    uint8_t nodes;
    uint8_t start;               /* enum model_start */
    uint8_t ops[MODEL_OPS];      /* enum op_type; any node, any time; the same types in order */
    uint8_t op_nodes[MODEL_OPS]; /* nodeset that may take it up; 0: any */
    uint8_t drops;      /* members that views may drop: they die, or with zombies live on */
    uint8_t drop_nodes; /* nodeset that may be dropped; 0: any */
    uint8_t admits;     /* of nodes that were dropped */
    uint8_t live_min;   /* of every view; 0: a majority */
    uint8_t replays;    /* how many, MODEL_UNLIMITED: any number */
    uint8_t ticks;      /* graces that may pass */
    uint8_t tries;      /* of an update that is lost; 0: 1 */
    uint8_t shadow;     /* 1 + the node that is a shadow at first; 0: none */
    uint8_t version;    /* of what the key holds at first; 0: 4 */
    bool zombies;
    bool o3;
    bool async;
};

enum op_phase {
    PHASE_WAITING = 0, /* not begun */
    PHASE_ISSUED,      /* an update under way */
    PHASE_AGAIN,       /* was lost, or its read was not confirmed: to be tried again */
    PHASE_CHECKING,    /* a majority is asked */
    PHASE_CONFIRM,     /* took effect; a majority has yet to be asked whether that was in time */
    PHASE_OK,          /* ended ... */
    PHASE_FAILED,
    PHASE_UNKNOWN,
};

struct model_op {
    uint8_t phase;
    uint8_t node;
    uint8_t value;  /* of an update: the value it writes, in this try */
    uint8_t out;    /* of a read and an RMW: the value seen */
    uint8_t before; /* set of operations that had ended when this one began */
    uint8_t tries;
};

/* A timestamp in 16 bits: version and c_id. */
struct model_message {
    uint16_t ts;
    uint8_t kind; /* enum hermes_kind, or MESSAGE_EMPTY */
    uint8_t flags;
    uint8_t from;
    uint8_t to;
    uint8_t from_born; /* incarnations: the epoch that admitted them */
    uint8_t to_born;
    uint8_t epoch;
    uint8_t slot;
    uint8_t gen;   /* 1: of the slot as it is now; 0: the slot has gone */
    uint8_t value; /* that it carries */
};
_Static_assert(sizeof(struct model_message) == 12, "no padding");
/* A chunk of a donor that has no entry. */
#define MESSAGE_EMPTY 0xf1u

struct model_view {
    uint8_t live;
    uint8_t operational;
    uint8_t born[MODEL_NODES];
    uint8_t cid[MODEL_NODES];
};

struct model_node {
    struct key_meta meta;
    struct slot slots[MODEL_SLOTS];
    uint8_t op_of[MODEL_SLOTS]; /* 1 + the operation that waits for the slot; 0: none */
    uint8_t value;
    uint8_t born; /* 0: no process */
    uint8_t epoch;
    uint8_t copied;     /* a shadow that has every chunk */
    uint8_t confirms;   /* has accepted no view after its own */
    uint8_t collects;   /* hermes_worker.collects */
    uint8_t early_from; /* hermes_worker.early, of the one key */
    uint8_t early_epoch;
    uint8_t reserved;
    uint16_t early_ts;
    uint8_t reserved2[2];
};
_Static_assert(sizeof(struct model_node) == 16 + MODEL_SLOTS * 56 + 16, "no padding");

struct model_world {
    struct model_node nodes[MODEL_NODES];
    uint32_t seen; /* values that could be read somewhere, at some time */
    uint32_t lost; /* values of updates that were called lost */
    struct model_op ops[MODEL_OPS];
    struct model_view views[MODEL_VIEWS]; /* views[0] has epoch 1 */
    uint8_t nviews;
    uint8_t last; /* the newest value that could be read */
    uint8_t ticks;
    uint8_t drops;
    uint8_t admits;
    uint8_t replays;
    uint16_t nmessages;
    uint8_t reserved[6];
    struct model_message messages[MODEL_MESSAGES]; /* sorted, all different */
};
_Static_assert(sizeof(struct model_world) == MODEL_NODES * sizeof(struct model_node) + 8 +
                                                 MODEL_OPS * 6 + MODEL_VIEWS * 12 + 14 +
                                                 MODEL_MESSAGES * 12,
               "no padding");

/* Histories that were found linearizable, by hash. */
struct histories {
    uint64_t *at;
    uint64_t n;
    uint64_t max;
};

/* A model: constant but for what `work` points to, which is no part of any state. */
struct hermes_work {
    struct histories histories;
    struct view views[MODEL_VIEWS]; /* of the world that is being expanded */
    uint32_t built;
    struct model_world next;
};

struct hermes_model {
    const struct hermes_setup *setup;
    struct hermes_config config;
    bool exact; /* what unchanged code certainly ignores is left out */
    struct hermes_work *work;
};

/* A world in the middle of a step. */
struct shell {
    const struct hermes_model *model;
    struct model_world *world;
    const char *broken; /* what the step violated; NULL */
};

/* ---- hermes_world.c ---- */
void hermes_begin(const void *self, void *state_out);
/* Brings a world into its one form: messages that nobody can take up any more are gone, dead fields
 * are zero. */
void world_normalise(const struct hermes_model *model, struct model_world *w);
/* A new view like the newest one, for the caller to change; NULL: no room. */
struct model_view *world_next_view(struct model_world *w);
/* A new process, blank, in the newest view. */
void world_new_process(const struct hermes_model *model, struct model_world *w, uint8_t node);
/* The process ends; its operations stay without an answer. */
void world_kill(struct model_world *w, uint8_t node);
void world_abandon(struct model_world *w, uint8_t node);
const struct model_view *world_newest(const struct model_world *w);
const struct model_view *world_view_of(const struct model_world *w, uint8_t node);
/* The process is an operational member, by its own view and by the newest: it may hold a lease. */
bool world_leased(const struct model_world *w, uint8_t node);
/* Whether the process may take up operations. */
bool world_serves(const struct hermes_model *model, const struct model_world *w, uint8_t node);
bool world_readable(const struct model_world *w, uint8_t node);
/* Adds to the set of messages. */
void world_send(struct shell *shell, const struct model_message *message);
bool value_is_nil(const struct hermes_model *model, uint8_t value);
uint8_t value_op(uint8_t value); /* whose it is; asserts that it is an operation's */
uint16_t ts_small(uint64_t ts);
uint64_t ts_large(uint16_t ts);
bool op_ended(const struct model_op *op);

/* ---- hermes_shell.c ---- */
/* Steps; the world is not normalised afterwards. */
void shell_deliver(struct shell *shell, const struct model_message *message);
/* Issues an operation's update, or reads; the key is readable. */
void shell_run(struct shell *shell, uint8_t op, uint8_t node);
void shell_key(struct shell *shell, uint8_t node, enum ev_kind kind);
void shell_flow(struct shell *shell, uint8_t node, uint8_t slot, enum ev_kind kind);
/* Asks a majority for a read of operation op; false: no slot is free. */
bool shell_check(struct shell *shell, uint8_t node, uint8_t op);
void shell_adopt(struct shell *shell, uint8_t node, uint8_t epoch);
void shell_chunk(struct shell *shell, uint8_t donor, uint8_t joiner);
bool shell_has_slot(const struct model_world *w, uint8_t node);

/* ---- hermes_actions.c ---- */
enum action_kind {
    ACTION_DELIVER, /* a: number of the message */
    ACTION_BEGIN,   /* a: operation, b: node */
    ACTION_AGAIN,   /* a: operation */
    ACTION_CONFIRM, /* a: operation */
    ACTION_TIMER,   /* a: node, b: slot */
    ACTION_WAITED,  /* a: node */
    ACTION_PARK,    /* a: node */
    ACTION_SWEEP,   /* a: node */
    ACTION_TICK,
    ACTION_DROP,    /* a: node */
    ACTION_ADMIT,   /* a: node */
    ACTION_PROMOTE, /* a: node */
    ACTION_ADOPT,   /* a: node, b: epoch */
    ACTION_CHUNK,   /* a: donor, b: joiner */
    ACTION_ACCEPT,  /* a: node */
    ACTION_NONE,
};
struct action {
    uint8_t kind;
    uint8_t a;
    uint8_t b;
};
struct action action_of(uint64_t number);
void hermes_expand(const void *self, const void *state, struct search *search);

/* ---- hermes_judge.c ---- */
/* Takes note of what can be read now. */
void judge_note(struct shell *shell);
const char *hermes_broken(const void *self, const void *state);
bool hermes_finished(const void *self, const void *state);
/* Whether all that was begun ended and all members hold the same. */
bool judge_settled(const struct hermes_model *model, const struct model_world *w);

/* ---- hermes_print.c ---- */
void hermes_describe(const void *self, const void *before, const void *after, uint64_t number,
                     FILE *to);

#endif
