/* What the files of the Galene model share; nobody else includes it. A world is three nodes with
 * one key whose home is the first, the messages under way, the views decided so far, the orders to
 * enter and to leave the hot set, and the clients' operations. The nodes run the real engine
 * through struct engine_ops; what the node's shell does around it is modelled here, small.
 *
 * galene_shell.c steps the engine, galene_world.c makes and normalises worlds and lists what can
 * happen next, galene_judge.c says what is broken, galene_configs.c has the configurations and
 * tells traces in words. */
#ifndef HORKOS_EXPLORE_GALENE_MODEL_H
#define HORKOS_EXPLORE_GALENE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "engine/galene/machine.h"
#include "explore/explore.h"

#define GALENE_NODES 3u
#define GALENE_SLOTS 4u
#define GALENE_MESSAGES 32u
#define GALENE_VIEWS 4u
#define GALENE_OPS 4u
#define GALENE_ORDERS 4u
#define GALENE_HOME_NODE 0u

/* Values: 0 is "none", 1 what the key holds at the start, then one for each operation. */
#define GALENE_VALUE_NONE 0u
#define GALENE_VALUE_START 1u

enum galene_op_type { OP_NONE, OP_WRITE, OP_RMW, OP_READ };

/* An order of the leader: its generation, and whether to leave. */
struct galene_order {
    uint8_t generation; /* 0: no order */
    bool leave;
};

/* A configuration. */
struct galene_setup {
    uint8_t ops[GALENE_OPS];      /* enum galene_op_type; the same types in order */
    uint8_t op_nodes[GALENE_OPS]; /* nodeset that may take it up; 0: any */
    struct galene_order orders[GALENE_ORDERS];
    uint8_t drops;      /* members that views may drop: they die */
    uint8_t drop_nodes; /* nodeset that may be dropped */
    bool cached;        /* at the start, everywhere */
    bool joins;         /* the last node is no member at the start */
};

enum galene_op_phase { OP_WAITING = 0, OP_ISSUED, OP_OK, OP_FAILED, OP_UNKNOWN };

struct galene_op {
    uint8_t phase;
    uint8_t node;
    uint8_t out;    /* of a read and an RMW: the value seen */
    uint8_t before; /* set of operations that had ended when this one began */
};

/* A timestamp in 16 bits: version and c_id. Several that are the same are kept several times. */
struct galene_message {
    uint16_t ts;
    uint8_t kind; /* enum galene_kind */
    uint8_t flags;
    uint8_t from;
    uint8_t to;
    uint8_t epoch;
    uint8_t slot;
    uint8_t gen;   /* 1: of the slot as it is now; 2: its flow has ended */
    uint8_t value; /* that it carries */
    uint8_t arg;
    uint8_t reserved;
};
_Static_assert(sizeof(struct galene_message) == 12, "no padding");

struct galene_node {
    struct key_meta meta; /* blank: no entry */
    struct slot slots[GALENE_SLOTS];
    uint8_t op_of[GALENE_SLOTS]; /* 1 + the operation that waits for the slot; 0: none */
    uint8_t held[GALENE_SLOTS];  /* EFF_HOLD: the value kept aside */
    uint8_t value;
    uint8_t epoch; /* 0: no process */
    uint8_t reserved[6];
};
_Static_assert(sizeof(struct galene_node) == 16 + GALENE_SLOTS * 56 + GALENE_SLOTS * 2 + 8,
               "no padding");

struct galene_world {
    struct galene_node nodes[GALENE_NODES];
    struct galene_op ops[GALENE_OPS];
    uint8_t live[GALENE_VIEWS]; /* of each epoch, from 1 on */
    uint8_t admitted;           /* the epoch in which the last node joined; 0: not yet */
    uint8_t nviews;
    uint8_t orders; /* carried out */
    uint8_t drops;
    uint8_t last; /* the newest value that could be read */
    uint8_t seen; /* set of values that could be read somewhere, at some time */
    uint8_t lost; /* set of values of RMWs that were called lost */
    uint8_t nmessages;
    uint8_t reserved[4];
    struct galene_message messages[GALENE_MESSAGES]; /* sorted */
};
_Static_assert(sizeof(struct galene_world) == GALENE_NODES * sizeof(struct galene_node) +
                                                  GALENE_OPS * 4 + GALENE_VIEWS + 12 +
                                                  GALENE_MESSAGES * 12,
               "no padding");

/* Constant but for what `work` points to, which is no part of any state. */
struct galene_work {
    struct view view; /* of the event that is being stepped */
    struct galene_world next;
};

struct galene_model {
    const struct galene_setup *setup;
    struct galene_config config;
    struct galene_work *work;
};

/* A world in the middle of a step. */
struct galene_shell {
    const struct galene_model *model;
    struct galene_world *world;
    const char *broken; /* what the step violated; NULL */
    bool later;         /* EFF_LATER */
    bool parked;        /* EFF_PARK or EFF_LOST: the operation was not taken up */
};

/* ---- galene_world.c ---- */
void galene_begin(const void *self, void *state_out);
void galene_expand(const void *self, const void *state, struct search *search);
/* The process runs, and is a member of the newest view. */
bool galene_alive(const struct galene_world *w, uint8_t node);
bool galene_readable(const struct galene_world *w, uint8_t node);
uint8_t galene_value_of(uint8_t op);

enum galene_action_kind {
    GALENE_ACT_DELIVER, /* a: number of the message */
    GALENE_ACT_BEGIN,   /* a: operation, b: node */
    GALENE_ACT_TIMER,   /* a: node, b: slot */
    GALENE_ACT_SWEEP,   /* a: node */
    GALENE_ACT_ORDER,
    GALENE_ACT_DROP,  /* a: node */
    GALENE_ACT_JOIN,  /* the last node */
    GALENE_ACT_ADOPT, /* a: node */
};

/* ---- galene_shell.c ---- */
void galene_shell_deliver(struct galene_shell *shell, const struct galene_message *m);
void galene_shell_update(struct galene_shell *shell, uint8_t op, uint8_t node);
void galene_shell_order(struct galene_shell *shell, const struct galene_order *order);
void galene_shell_sweep(struct galene_shell *shell, uint8_t node);
void galene_shell_flow(struct galene_shell *shell, uint8_t node, uint8_t slot, enum ev_kind kind);

/* ---- galene_judge.c ---- */
/* Takes note of what can be read now. */
void galene_note(struct galene_shell *shell);
const char *galene_broken(const void *self, const void *state);
bool galene_finished(const void *self, const void *state);
/* Whether no flow is under way and no key waits for anything. */
bool galene_at_rest(const struct galene_world *w);

/* ---- galene_configs.c ---- */
void galene_describe(const void *self, const void *before, const void *after, uint64_t number,
                     FILE *to);

#endif
