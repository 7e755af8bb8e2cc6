/* What the files of the Galene engine share; nobody else includes it (but tests). The key machine
 * is in key.c (clients, reads and writes of cached keys) and stay.c (a key's coming and going); the
 * flow machine in flow.c; the worker-wide flow of worker 0 is the slot map's (engine/homes). */
#ifndef HORKOS_ENGINE_GALENE_MACHINE_H
#define HORKOS_ENGINE_GALENE_MACHINE_H

#include <string.h>

#include "base/assert.h"
#include "engine/engine.h"
#include "engine/galene/galene.h"
#include "engine/galene/messages.h"
#include "engine/galene/rules.h"
#include "engine/homes/homes.h"

/* The engine's bits of key_meta.flags. */
enum {
    KEY_LEAVING = KEY_ENGINE_0, /* starts no write any more */
    KEY_RMW = KEY_ENGINE_1,     /* the own pending write is an RMW */
    KEY_ASKING = KEY_ENGINE_2,  /* a question about this orphan is under way */
    KEY_KEEPER = KEY_ENGINE_3,  /* cached: this node, its home, let it enter */
};

/* slot.kind */
enum galene_flow {
    GALENE_FLOW_FREE = 0,
    GALENE_FLOW_PLAIN,  /* an update at the home: ends in the step that opens it */
    GALENE_FLOW_WRITE,  /* a cached key's; key_meta.owner names it */
    GALENE_FLOW_ENTER,  /* likewise ... */
    GALENE_FLOW_LEAVE,  /* ... */
    GALENE_FLOW_MOVE,   /* ... */
    GALENE_FLOW_RESCUE, /* named by nobody: it may find that the key has changed meanwhile */
};

/* slot.state of a GALENE_FLOW_LEAVE */
enum { LEAVE_REPORTS, LEAVE_DROPS };

/* slot.flags */
enum {
    SLOT_RMW = 1,
    SLOT_HOME = 2, /* a RESCUE that asks the home alone whether it still wants the key to leave */
};

/* slot.ts: the write's; the highest reported one (LEAVE); the one asked about, then the newer one
 * that somebody knows (RESCUE). slot.acked: who has answered. slot.epoch: of the view that counts.
 * slot.aux holds this: */
struct galene_aux {
    union {
        nodeset want;   /* who shall answer, unless it is gone; of a WRITE all others shall */
        uint64_t known; /* WRITE: the higher timestamp that the last refusal named */
    };
    uint16_t generation; /* of the key's stay in the hot set */
    uint16_t reserved[3];
};
_Static_assert(sizeof(struct galene_aux) == 16, "slot.aux");

static inline struct galene_aux galene_aux_get(const struct slot *slot)
{
    struct galene_aux aux;
    memcpy(&aux, slot->aux, sizeof aux);
    return aux;
}

static inline void galene_aux_set(struct slot *slot, struct galene_aux aux)
{
    memcpy(slot->aux, &aux, sizeof aux);
}

/* EFF_KEY -> EV_FLOW, beside KEY_CODE_COMPLETE: all have answered. */
enum {
    KEY_CODE_HIGHER = CODE_ENGINE_FIRST, /* somebody knows the higher timestamp aux.known */
    KEY_CODE_UNWANTED,                   /* the home knows nothing of a leave */
    KEY_CODE_NEWER,                      /* slot.ts: what somebody knows about the orphan */
    KEY_CODE_ABORT,                      /* nobody is left who could answer, or it took too long */
};

/* EFF_FLOW -> EV_KEY, beside the node's. */
enum {
    FLOW_CODE_DONE = CODE_ENGINE_FIRST, /* it took effect */
    FLOW_CODE_LOST,                     /* it did not, and never will */
    FLOW_CODE_GONE,                     /* nobody waits for this flow any more */
};

/* engine_ops.worker_bytes. */
struct galene_worker {
    struct homes homes; /* worker 0's */
};

/* One step of the key machine. */
struct key_step {
    struct key_meta *meta;
    struct slot *mine;
    struct slot *spare;
    const struct event *event;
    const struct view *view;
    const struct galene_config *config;
    struct effects *fx;
    uint8_t self;
};

/* ---- key.c ---- */
void galene_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
                const struct event *event, struct effects *fx);
/* The only writer of key_meta.state and of KEY_READABLE. Who waits is woken where that helps. */
void galene_set_state(struct key_step *s, enum galene_state next);
void galene_wake(struct key_step *s);
/* The entry goes; the flow that owner names ends with `outcome`. */
void galene_forget(struct key_step *s, uint8_t outcome);
/* Ends the flow that owner names. */
void galene_end(struct key_step *s, uint8_t outcome);
/* Tells the flow that this step is for. */
void galene_tell_mine(struct key_step *s, uint8_t code);
struct effect *galene_send(struct key_step *s, uint8_t to, enum galene_kind kind);
struct effect *galene_bcast(struct key_step *s, nodeset set, enum galene_kind kind);
/* Answers the message of this step. */
struct effect *galene_answer(struct key_step *s, enum galene_kind kind);
/* Fills the spare slot, or another one anew. */
void galene_slot_open(struct slot *slot, enum galene_flow kind, const struct key_step *s,
                      nodeset want);
bool galene_cached(const struct key_meta *meta);
/* Whether the message is about the stay in the hot set that the entry is of. */
bool galene_same_stay(const struct key_step *s);

/* ---- stay.c ---- */
void galene_stay_message(struct key_step *s);
void galene_stay_flow(struct key_step *s);
void galene_hot(struct key_step *s);
void galene_move(struct key_step *s);
/* The key is Invalid for long, or its writer or home is gone: asks the others, if it may. */
void galene_rescue(struct key_step *s);
/* The key is to leave, its slot is lost, and a member has the home's number: asks it, if it may. */
void galene_ask_home(struct key_step *s);
/* Whether nobody is left who would make the key Valid without being asked. */
bool galene_orphaned(const struct key_step *s);
bool galene_leaving(struct key_step *s);
/* Whether the timestamp is of a process that is no member any more. */
bool galene_is_dead(const struct key_step *s, uint64_t ts);

/* ---- flow.c ---- */
void galene_flow(struct slot *mine, const struct event *event, struct effects *fx);
/* Whether all who shall answer have, in the current view. */
bool galene_complete(const struct slot *slot, const struct event *event);
/* Whether a message from a live member, of this epoch or an older one, is taken; else drops it. */
bool galene_admitted(const struct event *event, struct effects *fx);
void galene_drop(struct effects *fx, enum engine_drop why);

/* ---- Small helpers ---- */

static inline nodeset galene_others(const struct event *event)
{
    return event->view->live & ~nodeset_of(event->self);
}

#endif
