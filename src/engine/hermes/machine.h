/* What the files of the Hermes engine share; nobody else includes it (but tests and the explorer's
 * model). The key machine is in key.c (dispatcher, coordinator, replay), follower.c and forget.c;
 * the flow machine in flow.c. */
#ifndef HORKOS_ENGINE_HERMES_MACHINE_H
#define HORKOS_ENGINE_HERMES_MACHINE_H

#include "base/assert.h"
#include "engine/engine.h"
#include "engine/hermes/hermes.h"
#include "engine/hermes/messages.h"
#include "engine/hermes/rules.h"
#include "engine/hermes/table.h"

/* The engine's bits of key_meta.flags. */
enum {
    KEY_RMW = KEY_ENGINE_0,   /* the stored value is an RMW's */
    KEY_FIRST = KEY_ENGINE_1, /* the stored value was issued where no entry existed */
    /* While an update is pending (owner != 0): it is an RMW or a first update, so that being
     * overtaken means being lost. On a Valid tombstone: all members agreed to forget it. */
    KEY_SPECIAL = KEY_ENGINE_2,
    KEY_AGREED = KEY_ENGINE_2,
    KEY_REPORTED = KEY_ENGINE_3, /* a Valid tombstone: this node told a member that it may go */
};

/* slot.kind. A slot's ts, epoch, acked and deadline mean the same in all of them; CHECK has no key
 * and no ts. */
enum hermes_flow {
    FLOW_FREE = 0,
    FLOW_UPDATE,  /* the pending update that key_meta.owner names */
    FLOW_REPLAY,  /* a replay of the ts that the key holds, if it still does */
    FLOW_CHECK,   /* asynchronous reads wait for a majority */
    FLOW_COLLECT, /* a tombstone waits for the members' reports */
};

/* slot.flags */
enum { SLOT_RESENT = 1 }; /* its INV was sent more than once, so O3 does not spare the VAL */

/* Bytes of slot.aux; only rules that are switched off look at them. */
enum {
    SLOT_COUNT, /* ACKs, counted as if they were no set */
    SLOT_FLAGS, /* KEY_RMW and KEY_FIRST of the update, for sending it when it is overtaken */
};

/* EFF_KEY -> EV_FLOW beside KEY_CODE_COMPLETE. */
enum {
    KEY_CODE_RESEND = CODE_ENGINE_FIRST, /* the deadline passed */
    KEY_CODE_VIEW,                       /* the view changed; all ACKs are gone */
};

/* EFF_FLOW -> EV_KEY beside FLOW_CODE_NUDGE. */
enum {
    FLOW_CODE_DONE = CODE_ENGINE_FIRST, /* the update took effect */
    FLOW_CODE_OVERTAKEN,                /* the same, shown by a newer update that committed */
    FLOW_CODE_LOST,                     /* it did not and never will */
    FLOW_CODE_GONE,                     /* nobody waits for this flow any more */
};

/* engine_ops.worker_bytes: what a worker keeps beside keys and slots. */
#define EARLY_ACKS 64u
#define COLLECTS_MAX 128u

struct early_ack { /* O3: ACKs that came before their INV */
    uint64_t hash; /* event.local_hash of the key */
    uint64_t ts;
    nodeset from;
    uint32_t epoch;
    uint32_t reserved;
};

struct hermes_worker {
    uint32_t collects; /* FLOW_COLLECT slots in use */
    uint32_t reserved;
    struct early_ack early[EARLY_ACKS]; /* by hash; a newer one replaces an older one */
};

/* One step of the key machine. */
struct key_step {
    struct key_meta *meta;
    struct slot *mine;
    struct slot *spare;
    const struct event *event;
    const struct view *view;
    const struct hermes_config *config;
    struct hermes_worker *worker;
    struct effects *fx;
};

/* ---- table.c ---- */
/* The only writer of key_meta.state and of KEY_READABLE; asserts that the table has the change. */
void hermes_set_state(struct key_meta *meta, const struct hermes_config *config,
                      enum hermes_state next);

/* ---- key.c ---- */
void hermes_key(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
                const struct event *event, struct effects *fx);
/* [H] C_VAL and F_VAL: the key turns Valid at its ts, which is committed. A pending update at this
 * ts is done, an older pending write too; an older RMW or first update is lost. */
void hermes_turn_valid(struct key_step *s);
/* Ends the pending update with this outcome (enum of FLOW_CODE_). */
void hermes_end_pending(struct key_step *s, uint8_t outcome);
/* What a follower's state is called: Trans says that an own write is pending beneath. */
enum hermes_state hermes_invalid_state(const struct key_meta *meta);
/* Whether the member that issued the stored ts is gone, so that nobody will finish it. */
bool hermes_orphaned(const struct key_step *s);
/* Starts a replay of the stored ts if the key is Invalid or Trans and a slot is to be had. */
void hermes_replay(struct key_step *s);
/* The stored value as an answering INV. */
void hermes_send_answer(struct key_step *s, uint8_t to);
/* The key machine tells the flow that it was stepped for. */
void hermes_tell_mine(struct key_step *s, uint8_t code);
void hermes_drop(struct effects *fx, enum engine_drop why);
/* Rule 2: whether a message of this epoch, from this sender, is taken; else drops it. */
bool hermes_admitted(const struct event *event, struct effects *fx);

/* ---- follower.c ---- */
void hermes_follower_message(struct key_step *s);

/* ---- forget.c ---- */
/* Whether msg is a first update that proves that its sender forgot the tombstone reported here. */
bool hermes_forgettable(const struct key_step *s, const struct msg *msg);
void hermes_forget_message(struct key_step *s);
void hermes_forget_sweep(struct key_step *s);
void hermes_forget_flow(struct key_step *s);

/* ---- flow.c ---- */
void hermes_flow(struct slot *mine, const struct event *event, struct effects *fx);
/* Fills a spare slot. */
void hermes_slot_open(struct slot *slot, enum hermes_flow kind, uint64_t ts,
                      const struct event *event);
/* Rules 1, 5, 10: whether every other live member has acknowledged, in the current epoch. */
bool hermes_acks_complete(const struct slot *slot, const struct event *event);

/* ---- Small helpers ---- */

static inline nodeset others_of(const struct event *event)
{
    return event->view->live & ~nodeset_of(event->self);
}

static inline bool has_shadow(const struct view *view)
{
    return view->live != view->operational;
}

static inline bool pending_special(const struct key_meta *meta)
{
    return meta->owner != 0 && (meta->flags & KEY_SPECIAL) != 0;
}

static inline bool agreed(const struct key_meta *meta)
{
    return meta->owner == 0 && (meta->flags & KEY_AGREED) != 0;
}

static inline nodeset configured_of(const struct view *view)
{
    return view->configured | view->configured_old;
}

/* [H] O3 keeps sets of nodes in key_meta.aux (follower.c). */
#define O3_NODES_MAX 12u

static inline bool o3_possible(const struct view *view)
{
    return nodeset_count(configured_of(view)) <= O3_NODES_MAX;
}

/* A key without an entry: readable, and what is read is "absent". */
#define HERMES_BLANK ((struct key_meta){.flags = KEY_READABLE | KEY_TOMBSTONE})

#endif
