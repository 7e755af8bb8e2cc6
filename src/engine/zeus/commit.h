/* Reliable commit ([Z] 5.5) as a pure machine: pipelines of slots at their coordinator, and what a
 * follower keeps of them. docs/protocols/zeus-commit.md has the states and the rules C1 to C12.
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

/* msg.kind, behind those of ownership; ACK and VAL are cumulative. */
enum commit_kind { COMMIT_MSG_INV = 32, COMMIT_MSG_ACK, COMMIT_MSG_VAL, COMMIT_MSG_END };
extern const char *const commit_kind_names[COMMIT_MSG_END - COMMIT_MSG_INV];

struct commit_name {
    uint32_t pipe;
    uint32_t admitted; /* of the coordinator's process */
    uint8_t node;
};

enum commit_slot_state {
    COMMIT_FREE, /* nothing, or stored by a follower that does not drive it */
    COMMIT_HELD, /* waits for earlier ones (C3) */
    COMMIT_SENT,
};

struct commit_slot {
    nodeset followers; /* that still count: live ones, masked (C9); a follower's own bit included */
    uint8_t state;     /* enum commit_slot_state */
    bool stored;       /* follower: its R-INV is here */
};

/* One pipeline, as its coordinator or as a follower has it. Slots are at [id mod COMMIT_SLOTS].
 * Plain memory. */
struct commit_pipe {
    struct commit_name name;
    uint64_t next;   /* the slot that the next commit gets; 1 at first. Follower: behind the last
                        that came */
    uint64_t first;  /* the first slot that is not done; all before it are, everywhere */
    uint64_t unsent; /* driver: slots from here on are HELD */
    nodeset common;  /* driver: some of the nodes that every SENT slot went to, or that ACKed it */
    uint32_t epoch;  /* of the view by which followers are masked */
    bool dead;       /* follower: its coordinator is no member any more: REPLAY */
    uint64_t acked[NODES_MAX]; /* driver: the last slot that the node ACKed in this epoch */
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
    COMMIT_FX_BEHIND, /* the epoch of the sender, `to`, is old: the view protocol shall tell it */
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
/* How a slot with such followers would go behind what is under way: with the same ones, so that all
 * are acknowledged together; as the first; with fewer; or it would be HELD. The smaller the better:
 * whoever has several pipelines may choose, unless a transaction is bound to one (C4). */
enum commit_fit { COMMIT_FIT_SAME, COMMIT_FIT_FIRST, COMMIT_FIT_FEWER, COMMIT_FIT_HELD };
enum commit_fit commit_fit(const struct commit_pipe *pipe, nodeset followers);
/* The slot of a transaction that is committed locally, whose bytes the node has stored. followers:
 * the readers of what it wrote (this node not among them). Returns its number. */
uint64_t commit_begin(struct commit_pipe *pipe, const struct commit_context *cx, nodeset followers,
                      struct commit_effects *fx);
/* A view was adopted: what is under way goes out again. To be called for every pipe that is not
 * empty, before anything else in that view; also for a follower's pipe, which turns REPLAY if its
 * coordinator is no member any more. */
void commit_view(struct commit_pipe *pipe, const struct commit_context *cx,
                 struct commit_effects *fx);
/* R-ACK from a member, to who drives the pipe; alive: of the adopted epoch. One for a slot that is
 * done already is answered with a VAL: the follower has stored it anew. One for a pipe that has no
 * record here any more is answered by the node with R-VAL up to the same slot, for this reason. */
void commit_ack(struct commit_pipe *pipe, const struct commit_context *cx, uint8_t from,
                uint64_t slot, bool alive, struct commit_effects *fx);

/* ---- Follower: a pipe of another process; commit_pipe_init when its first R-INV comes ---- */

/* What an R-INV says of itself beside its objects. */
struct commit_inv {
    uint64_t slot;
    uint64_t first;    /* the sender's: R-VAL up to the slot before it */
    nodeset followers; /* all of the slot, this node among them */
};
/* R-INV. Effects: DROP of what is done, APPLY if it is new, and an ACK. False: it is ignored (C2):
 * nothing happened, but perhaps a BEHIND. */
bool commit_inv(struct commit_pipe *pipe, const struct commit_context *cx, uint8_t from,
                const struct commit_inv *inv, bool alive, struct commit_effects *fx);
/* R-VAL up to `slot`; alive: of the adopted epoch (C1: it counts in any). */
void commit_val(struct commit_pipe *pipe, const struct commit_context *cx, uint64_t slot,
                bool alive, struct commit_effects *fx);
/* Nothing of it is stored or under way: a follower may forget the pipe. */
bool commit_pipe_empty(const struct commit_pipe *pipe);
/* COMMIT_FX_INV: what its message says; slot: not done. */
struct commit_inv commit_inv_of(const struct commit_pipe *pipe, uint64_t slot);
/* Asserts the invariants. */
void commit_check(const struct commit_pipe *pipe, const struct commit_context *cx);

/* ---- Objects: what the node asks about each of them ---- */

/* R-INV: its version replaces the one that this node holds (C7). */
bool commit_takes(const struct commit_config *config, uint64_t held, uint64_t version);
/* DONE, DROP: the object that is held turns VALID by it (C7). */
bool commit_validates(const struct commit_config *config, uint64_t held, uint64_t version);
/* A transaction of pipe `mine` may touch an object that is in WRITE, of pipe `its` (C4). */
bool commit_may_touch(const struct commit_config *config, uint32_t its, uint32_t mine);

/* ---- Messages ---- */

/* msg.slot: the pipe; gen: the coordinator process's admitted epoch; ts: the slot, cumulative in
 * ACK and VAL; arg: the coordinator's node in the lowest 8 bits, `first` above (0 but for INV). No
 * key. INV's value: COMMIT_INV_HEAD bytes of followers, then the objects. */
#define COMMIT_INV_HEAD 8u
#define COMMIT_SLOT_MAX ((UINT64_C(1) << 56) - 1u)
/* The message but for space, epoch and value; first: INV's, else 0. */
void commit_msg_make(enum commit_kind kind, const struct commit_name *name, uint64_t slot,
                     uint64_t first, struct msg *msg_out);
/* Why a message of these kinds cannot come from a correct member, or NULL. */
const char *commit_msg_invalid(const struct msg *msg);
/* Of messages that are valid. */
struct commit_name commit_msg_name(const struct msg *msg);
struct commit_inv commit_msg_inv(const struct msg *msg);
struct bytes commit_msg_objects(const struct msg *msg);

/* The objects of an R-INV stand packed one behind the other. */
struct commit_object {
    struct bytes key;
    struct bytes value; /* as stored */
    uint64_t version;
    uint8_t vflags; /* KEY_VALUE_FLAGS */
};
uint32_t commit_object_bytes(const struct commit_object *object);
/* Writes commit_object_bytes; returns what is behind them. */
uint8_t *commit_object_put(uint8_t *at, const struct commit_object *object);
/* Takes the next one off `rest`; false: there is none, or it is cut. */
bool commit_object_take(struct bytes *rest, struct commit_object *object_out);

enum commit_rule {
    COMMIT_RULE_VAL_ANY_EPOCH, /* C1 */
    COMMIT_RULE_INV_EPOCH,     /* C2 */
    COMMIT_RULE_INV_MEMBER,    /* C2 */
    COMMIT_RULE_PARTIAL,       /* C3 */
    COMMIT_RULE_OWN_PIPE,      /* C4 */
    COMMIT_RULE_DURABLE,       /* C5: the node's */
    COMMIT_RULE_WHOLE,         /* C6: the node's */
    COMMIT_RULE_VERSION,       /* C7: commit_takes */
    COMMIT_RULE_VAL_VERSION,   /* C7: commit_validates */
    COMMIT_RULE_ALL_ACKS,      /* every follower's */
    COMMIT_RULE_REPLAY,        /* C8: a dead coordinator's slots are replayed; liveness and loss */
    COMMIT_RULE_ORDER,         /* C8: in order */
    COMMIT_RULE_MASK,          /* C9 */
    COMMIT_RULE_RECOVERED,     /* C10: the node's */
    COMMIT_RULE_AGAIN,         /* C11: an ACK for what is done is answered; liveness */
    COMMIT_RULE_READ,          /* C12: the node's */
    COMMIT_RULES
};
extern const char *const commit_rule_names[COMMIT_RULES];

#endif
