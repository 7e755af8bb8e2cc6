/* Reliable commit ([Z] 5.5) as a pure machine: pipelines of slots at their coordinator, and what a
 * follower keeps of them. docs/protocols/zeus-commit.md has the states and the rules C1 to C10.
 * What a slot wrote (its R-INV's bytes) is the node's; the machine says when it travels and when it
 * may be forgotten. Stepped by the worker of the pipeline. */
#ifndef HORKOS_ENGINE_ZEUS_COMMIT_H
#define HORKOS_ENGINE_ZEUS_COMMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "view/view.h"
#include "wire/msg.h"

#define COMMIT_SLOTS 128u /* that a pipeline has under way; a power of 2 */

enum commit_kind {                      /* msg.kind, behind those of ownership */
                   COMMIT_MSG_INV = 32, /* ts: slot; slot: pipe; gen: the coordinator process's
                                         admitted epoch; arg: its node in the lowest 8 bits, the
                                         pipeline's first unfinished slot above (of the replayer's
                                         own node when it replays); value: followers, objects */
                   COMMIT_MSG_ACK,      /* the same names; ts: cumulative */
                   COMMIT_MSG_VAL,      /* the same; ts: cumulative */
                   COMMIT_MSG_END
};
extern const char *const commit_kind_names[COMMIT_MSG_END - COMMIT_MSG_INV];

struct commit_name {
    uint32_t pipe;
    uint32_t admitted; /* of the coordinator's process */
    uint8_t node;
};

enum commit_slot_state { COMMIT_FREE, COMMIT_HELD, COMMIT_SENT, COMMIT_ACKED };

struct commit_slot {
    nodeset followers; /* that still count: live ones, masked (C9) */
    nodeset acked;
    uint8_t state; /* enum commit_slot_state */
    bool stored;   /* follower: its R-INV is here */
};

/* One pipeline, as its coordinator or as a replaying follower drives it. Slots are at [id mod
 * COMMIT_SLOTS]. Plain memory. */
struct commit_pipe {
    struct commit_name name;
    uint64_t next;  /* the slot that the next commit gets; 1 at first */
    uint64_t first; /* the first slot that is not done */
    uint32_t epoch; /* of the view in which SENT slots were sent */
    bool dead;      /* follower: its coordinator is no member any more: REPLAY */
    nodeset told;   /* VAL: who has been sent anything of it in this epoch */
    struct commit_slot slots[COMMIT_SLOTS];
};

enum commit_fx {
    COMMIT_FX_INV,  /* slot `slot`, to every node of `to` */
    COMMIT_FX_ACK,  /* up to `slot`, to `to` */
    COMMIT_FX_VAL,  /* up to `slot`, to every node of `to` */
    COMMIT_FX_DONE, /* `slot` is done: its objects turn VALID here if still at its versions, whoever
                       waits for it is told, its bytes are freed. In order */
    COMMIT_FX_APPLY,  /* follower: the message's slot is new: store its bytes, apply its objects */
    COMMIT_FX_DROP,   /* follower: `slot`'s objects turn VALID if still at its versions and INVALID,
                        and its bytes are freed. In order */
    COMMIT_FX_BEHIND, /* the sender's epoch is old */
};
struct commit_effect {
    uint8_t kind;
    nodeset to;
    uint64_t slot;
};
#define COMMIT_EFFECTS_MAX (2u * COMMIT_SLOTS + 8u)
struct commit_effects {
    uint32_t n;
    struct commit_effect e[COMMIT_EFFECTS_MAX];
};

struct commit_config {
    uint64_t rules_off; /* HK_MUTANTS builds only: bits of enum commit_rule */
};

struct commit_context {
    const struct view *view; /* adopted by this worker */
    const struct commit_config *config;
    uint8_t self;
};

/* ---- Coordinator ---- */
void commit_pipe_init(struct commit_pipe *pipe, const struct commit_name *name);
/* Whether another transaction may commit locally: there is a slot. */
bool commit_room(const struct commit_pipe *pipe);
/* The slot of a transaction that is committed locally, whose bytes the node has stored. followers:
 * the readers of what it wrote (this node not among them). Returns its number. */
uint64_t commit_begin(struct commit_pipe *pipe, const struct commit_context *cx, nodeset followers,
                      struct commit_effects *fx);
/* A view was adopted: what is under way goes out again. Also for a follower's pipeline whose
 * coordinator died (then it turns REPLAY). */
void commit_view(struct commit_pipe *pipe, const struct commit_context *cx,
                 struct commit_effects *fx);
/* R-ACK from a member; alive: of the adopted epoch. */
void commit_ack(struct commit_pipe *pipe, const struct commit_context *cx, uint8_t from,
                uint64_t slot, bool alive, struct commit_effects *fx);

/* ---- Follower: a pipe of another process; commit_pipe_init when its first R-INV comes ---- */
/* R-INV of `slot`; followers: as its message says. Effects: APPLY if it is new, and an ACK. False:
 * it is ignored (C2), nothing happened. */
bool commit_inv(struct commit_pipe *pipe, const struct commit_context *cx, uint8_t from,
                uint64_t slot, nodeset followers, bool alive, struct commit_effects *fx);
/* R-VAL up to `slot` (C1). */
void commit_val(struct commit_pipe *pipe, const struct commit_context *cx, uint8_t from,
                uint64_t slot, struct commit_effects *fx);
/* Nothing of it is stored. */
bool commit_pipe_empty(const struct commit_pipe *pipe);
void commit_check(const struct commit_pipe *pipe, const struct commit_context *cx);

/* Why a message of these kinds cannot come from a correct member, or NULL. */
const char *commit_msg_invalid(const struct msg *msg);

/* The objects of an R-INV: packed one behind the other in msg.value behind 8 bytes of followers. */
struct commit_object {
    struct bytes key;
    struct bytes value; /* as stored */
    uint64_t version;
    uint8_t vflags; /* KEY_VALUE_FLAGS */
};
uint32_t commit_object_bytes(const struct commit_object *object);
uint8_t *commit_object_put(uint8_t *at, const struct commit_object *object);
/* Takes the next one off `rest`; false: there is none. Of a message that is valid. */
bool commit_object_take(struct bytes *rest, struct commit_object *object_out);

enum commit_rule {
    COMMIT_RULE_VAL_ANY_EPOCH, /* C1 */
    COMMIT_RULE_INV_EPOCH,     /* C2 */
    COMMIT_RULE_INV_MEMBER,    /* C2 */
    COMMIT_RULE_PARTIAL,       /* C3 */
    COMMIT_RULE_OWN_PIPE,      /* C4: the node's */
    COMMIT_RULE_DURABLE,       /* C5: the node's */
    COMMIT_RULE_WHOLE,         /* C6: the node's */
    COMMIT_RULE_VERSION,       /* C7: the node's */
    COMMIT_RULE_VAL_VERSION,   /* C7: the node's */
    COMMIT_RULE_ACKS_ANEW,     /* the change of view forgets R-ACKs */
    COMMIT_RULE_ALL_ACKS,      /* every follower's */
    COMMIT_RULE_REPLAY,        /* C8: a dead coordinator's slots are replayed; liveness and loss */
    COMMIT_RULE_ORDER,         /* C8: in order */
    COMMIT_RULE_MASK,          /* C9 */
    COMMIT_RULE_RECOVERED,     /* C10: the node's */
    COMMIT_RULES
};
extern const char *const commit_rule_names[COMMIT_RULES];

#endif
