/* The seam between a protocol and the node. An engine is two pure state machines: one per key
 * (stepped under the key's bucket lock, on whichever worker has the event) and one per flow: a
 * pending update, a replay, a check (its slot is stepped only on the worker that owns it). They do
 * no I/O, take no lock, read no clock and allocate nothing: an event comes in, effects go out.
 *
 * A key step may change *meta; the node publishes it together with EFF_APPLY's value, or not at all
 * if memory refuses the value (then no effect of the step happens and a slot taken from `spare` is
 * given back). Effects are carried out in order. */
#ifndef HORKOS_ENGINE_ENGINE_H
#define HORKOS_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/meta.h"
#include "base/nodeset.h"
#include "base/slot.h"
#include "view/view.h"
#include "wire/msg.h"

/* Plain memory: copied and hashed by the explorer. kind 0: free. The node sets ref and gen and
 * bumps gen when it frees a slot; everything else is the engine's. */
struct slot {
    uint64_t ts;
    uint64_t acked;       /* nodeset */
    uint64_t deadline_us; /* when the flow wants EV_TIMER; 0: never */
    uint32_t ref;         /* slot_ref of itself */
    uint32_t gen;
    uint32_t epoch;
    uint8_t kind;
    uint8_t state;
    uint8_t tries;
    uint8_t flags;
    uint8_t aux[16];
};
_Static_assert(sizeof(struct slot) == 56, "no padding");

enum ev_kind {
    EV_READ,   /* key: a local read that met a key which is not readable; flow (mine is a fresh
                  slot): confirm what asynchronous reads saw */
    EV_UPDATE, /* key: a local update. If the key is readable (or the update no rmw, with
                  ENGINE_BLIND_ANYTIME) the payload is the new value; spare is never NULL. If the
                  update is neither issued nor parked the node tries again soon */
    EV_MSG,    /* key or flow, as engine_ops.route says */
    EV_TIMER,  /* flow: its deadline passed; key (mine NULL): a parked operation waited long */
    EV_VIEW,   /* flow: the worker adopted event.view */
    EV_FLOW,   /* key: its flow machine emitted EFF_KEY with `code`; mine is that slot */
    EV_KEY,    /* flow: the key machine emitted EFF_FLOW with `code` */
    EV_SWEEP,  /* key: the background walk passes; at any moment, any number of times */
    EV_FLUSH,  /* worker-wide flow (mine NULL; ENGINE_WORKER_FLOW): everything that had arrived for
                  this poll has been stepped. Comes again as long as it has effects. EV_VIEW comes
                  to it as well */
    EV_HOT,    /* key, at its home (ENGINE_HOMED): it shall enter or leave the hot set, as `code`
                  (enum hot_code) says, generation `ts`. Either the spare slot is taken, whose end
                  says that it is done, or nothing was to be done, or EFF_LATER */
    EV_MOVE,   /* key (ENGINE_HOMED): its slot is moving away from here, or being emptied, as
                  event.home says. Spare slot and EFF_LATER as with EV_HOT */
    EV_SLOTS,  /* worker-wide flow (engine_has_map): something about slots, enum slots_code */
};

/* What a node is where nodes have roles (ENGINE_TABLES): whether it keeps rows, and whether it
 * runs transactions. */
enum node_role {
    NODE_ROLE_BOTH,
    NODE_ROLE_COMPUTE, /* becomes no home of slots */
    NODE_ROLE_MEMORY,  /* runs no transactions of clients */
};

enum hot_code { HOT_ENTER, HOT_LEAVE };

enum slots_code {
    SLOTS_MOVED,  /* under the map of version `ts` nothing is left here of any moving slot */
    SLOTS_PURGED, /* under the map of version `ts` nothing is left here of any emptying slot */
    SLOTS_LEAVE,  /* this member wants to leave: EFF_LEFT when it is the home of nothing */
    SLOTS_EMPTY,  /* the operator gives up all lost slots */
    SLOTS_LOST,   /* rows of slot `ts`, which is at home here, are lost */
    SLOTS_HOT,    /* `ts` 1: the hot set is about to change, 0: it is not. The leader's */
};

struct event {
    enum ev_kind kind;
    uint8_t code;
    uint8_t from;  /* EV_MSG: the sender's node id */
    uint8_t self;  /* this node's id */
    uint8_t role;  /* worker-wide flow: this node's, enum node_role */
    bool rmw;      /* EV_UPDATE: the new value, or the answer, depends on the old one */
    bool confirms; /* this process may confirm view->epoch (view_confirms) */
    uint64_t now_us;
    uint64_t ts;             /* EV_KEY: of the EFF_FLOW that steps this flow; else 0 */
    uint64_t random;         /* fresh for each event */
    struct slot_home home;   /* ENGINE_HOMED, key: of the key's slot, by this node's map */
    bool handed;             /* EV_UPDATE: the old home has sent it on: act as the home */
    uint8_t vflags;          /* EV_UPDATE, EV_FLOW: of the payload */
    uint64_t key_hash;       /* the same on every member; given with EV_SWEEP, ROUTE_WORKER, _ANY */
    uint64_t local_hash;     /* of the key in this node's store; given to key machines */
    uint64_t taken;          /* the log's entries up to here had stepped their keys before this step
                                began; given where the engine keeps a log */
    uint64_t log_bytes;      /* worker-wide flow: what the log's entries need */
    const struct view *view; /* the view that this worker has adopted */
    const struct msg *msg;   /* EV_MSG */
    const void *config;      /* the engine's own configuration of this space */
    void *worker;            /* engine_ops.worker_bytes of this worker, zeroed at first */
};

enum eff_kind {
    EFF_SEND,   /* message `code` to node `to` */
    EFF_BCAST,  /* message `code` to every node of `set` */
    EFF_APPLY,  /* key: the event's payload (EV_UPDATE, EV_MSG) becomes the stored value */
    EFF_FORGET, /* key: the entry is removed */
    EFF_PARK,   /* key: the operation waits until the key is readable again; the engine has set
                   KEY_WAITERS, unless it is readable already */
    EFF_WAKE,   /* key: it is readable: parked operations of all workers go on */
    EFF_KEY,    /* flow: step the key machine of this slot's key with EV_FLOW and `code` */
    EFF_FLOW,   /* key: step the flow machine of slot (slot, gen) with EV_KEY, `code`, `ts`. With
                   a gen slot and gen may come from a message: what names no flow that was opened by
                   EFF_ISSUE and still waits is ignored, and so is what comes a second time */
    EFF_REPLY,  /* flow: the slot's operation ends: `code` is an enum reply_code */
    EFF_CLOSE,  /* flow: the slot is free (after EFF_REPLY, if any) */
    EFF_DROP,   /* the message was ignored: `code` is an enum engine_drop; counted */
    EFF_BEHIND, /* the sender's epoch is older than ours: the view protocol shall tell it */
    EFF_ISSUE,  /* key, EV_UPDATE: the spare slot is this update's, although nothing is stored here
                   (EFF_APPLY says so by itself) */
    EFF_ASK,  /* key, EV_READ: the read waits for the spare slot's flow, which ends with EFF_REPLY:
                   REPLY_VALUE or REPLY_AGAIN */
    EFF_KEEP, /* worker-wide flow, EV_MSG: the message becomes entry `ts` of this node's log of the
                  space, as kind `code` with `flags`, ts and arg (`set`) of this effect, the rest as
                  it came; entries are numbered without gaps */
    EFF_TAKE, /* worker-wide flow: the log's entries up to `ts` that were not taken before step the
                  key machine, in their order, with EV_MSG; they stay in the log. The node may be
                  interrupted: event.taken says how far it came */
    EFF_TRIM, /* worker-wide flow: entries up to `ts`, all of them taken, are needed no more. A log
                  that has not reached `ts` begins behind it, and they count as taken */
    EFF_SEND_KEPT, /* worker-wide flow: `slot` entries of the log, from `ts` on, go to every node of
                      `set` as messages `code`, each as it was kept but for code and epoch */
    EFF_HOLD,      /* key, EV_UPDATE: the spare slot is this update's, and the payload is kept aside
                  with it: EV_FLOW steps of that slot have it as payload, for EFF_APPLY to store */
    EFF_LATER,     /* key, EV_HOT, EV_MOVE: not possible now; comes again */
    EFF_LOST,      /* key, EV_READ, EV_UPDATE: the operation ends with HK_ERR_LOSTSLOT */
    EFF_HOME,      /* worker-wide flow: `slot` slots from number `gen` on have the home `set`
                  (slot_home_pack); `ts`: the version of the map that says so. `flags`
                  HOME_FX_NOBODY: by the same map nobody could take slots that are lost */
    EFF_LEFT,      /* worker-wide flow: this member has given up all slots and may leave the view */
};

enum { HOME_FX_NOBODY = 1 };

/* Codes that the node knows; an engine's own start at CODE_ENGINE_FIRST. */
enum {
    KEY_CODE_COMPLETE = 1, /* EFF_KEY: the flow has all it waited for. The node may hold this step
                              back while an earlier command of the session is unfinished ... */
    FLOW_CODE_NUDGE = 1,   /* EV_KEY from the node: ... and nudges the flow later, which emits
                              KEY_CODE_COMPLETE again if it still holds in the current epoch */
    FLOW_CODE_READY = 2,   /* EV_KEY from the node: engine_ops.ready turned true in the adopted
                              view, and what key steps had told this flow before has been told */
    CODE_ENGINE_FIRST = 8,
};

enum reply_code {
    REPLY_DONE,      /* committed */
    REPLY_OVERTAKEN, /* the same, but only a newer update's commit shows it: that overlapped with
                        this one if this process was a member all the while. A lease says so;
                        without one a majority must */
    REPLY_LOST,      /* certainly did not and will not take effect; the node tries again */
    REPLY_UNKNOWN,   /* nobody can know any more */
    REPLY_VALUE, /* EFF_ASK: the event's message holds what the read shall answer: value, vflags,
                        and ts */
    REPLY_AGAIN, /* EFF_ASK: the read shall start anew */
};

enum engine_drop {
    ENGINE_DROP_EPOCH_OLD, /* message of an older epoch */
    ENGINE_DROP_EPOCH_NEW, /* message of a newer epoch (the node may park it) */
    ENGINE_DROP_SENDER,    /* not a live member */
    ENGINE_DROP_SLOT,      /* an answer to a flow that is gone */
    ENGINE_DROP_STALE,     /* its timestamp says nothing any more */
    ENGINE_DROP_INVALID,   /* fails msg_invalid */
    ENGINE_DROPS
};
extern const char *const engine_drop_names[ENGINE_DROPS];

/* A message effect's bytes: the node adds space, epoch of the worker, key (unless EFF_NO_KEY), and
 * with EFF_VALUE the value that the key holds after the step, with its vflags. */
enum {
    EFF_VALUE = 1,
    EFF_NO_KEY = 2,
    EFF_PAYLOAD = 4, /* the event's payload, whether it was stored or not */
};

struct effect {
    uint8_t kind; /* enum eff_kind */
    uint8_t code;
    uint8_t to;
    uint8_t flags; /* the message's flags */
    uint8_t with;  /* EFF_VALUE, EFF_NO_KEY */
    uint8_t reserved;
    uint16_t arg;  /* EFF_BCAST: msg.arg */
    uint32_t slot; /* of the message, or the slot that EFF_FLOW steps ... */
    uint32_t gen;  /* ... if it is still of this generation; 0: whatever its generation */
    uint64_t ts;
    uint64_t set; /* EFF_BCAST: nodeset; otherwise msg.arg */
};

#define EFFECTS_MAX 12u
struct effects {
    uint32_t n;
    struct effect e[EFFECTS_MAX];
};

/* Which machine a message goes to. */
enum engine_route {
    ROUTE_KEY,    /* the key machine of msg.key */
    ROUTE_SLOT,   /* the flow machine of slot msg.slot (if its generation is msg.gen) */
    ROUTE_WORKER, /* the flow machine with no slot (worker-wide state); the first worker's */
    ROUTE_ANY,    /* the flow machine with no slot, on whichever worker the message comes to */
};

/* What an engine asks of the node beyond the common way. */
enum engine_trait {
    ENGINE_BLIND_ANYTIME = 1, /* updates that do not depend on the old value are issued although the
                                 key is not readable, several of one key at a time */
    ENGINE_READS_FOLLOW = 2,  /* a session's read waits for all its earlier updates: where reads are
                                 local and not linearizable, program order needs it */
    ENGINE_WORKER_FLOW = 4,   /* worker 0's worker-wide flow machine gets EV_VIEW and EV_FLUSH */
    ENGINE_CONFIRMS = 8,      /* its flow machine can ask a majority to confirm asynchronous reads
                                 (EV_READ); without it a space reads under leases only */
    ENGINE_TOMBSTONES = 16,   /* it keeps them for ever */
    ENGINE_OWNED = 64,        /* objects have one owner, which moves to where transactions need it
                          (txn.h, zeus/own.h): no key or flow machine here; key and flow are NULL.
                          A key without data here says nothing about whether it exists */
    ENGINE_SHARDED = 128, /* objects stay where their slot says, and transactions go to them: the
                             baseline (engine/occ). No key or flow machine here */
    ENGINE_HOMED = 32, /* a key has one home, and most nodes no entry of it. A node without an entry
                          forwards the operation, unless it is the home: there the key is absent and
                          readable as such. `blank` is not readable. Joins copy nothing */
    ENGINE_TABLES = 256, /* rows are in ordered tables on memory servers, under locks, and
                            transactions go to them (engine/lotus, node/lotus.h). No key machine */
};

struct engine_ops {
    const char *name;
    uint16_t ext_bytes;    /* per key, beyond key_meta */
    uint16_t port_needs;   /* 0, or PORT_ORDERED */
    uint32_t traits;       /* enum engine_trait */
    uint32_t worker_bytes; /* per worker and space */
    struct key_meta blank; /* a key without an entry */
    enum engine_route (*route)(const struct msg *msg);
    void (*key)(struct key_meta *meta, void *ext, struct slot *mine, struct slot *spare,
                const struct event *event, struct effects *fx);
    void (*flow)(struct slot *mine, const struct event *event, struct effects *fx);
    /* Why the message cannot come from a correct member, or NULL. */
    const char *(*msg_invalid)(const struct msg *msg);
    /* Asserts the invariants of one key (after every step in simulation). */
    void (*check)(const struct key_meta *meta, const void *ext);
    /* How a stored item travels in a chunk of a join: fills msg->kind and msg->flags for EV_MSG at
     * the joiner. */
    void (*item)(const struct key_meta *meta, struct msg *msg_out);
    /* Whether this member is level with the others in the view that worker 0 adopted last, as its
     * worker-wide state says; NULL: always. Until then the node issues no update, is not in the
     * epoch (donates nothing, is not promoted), and, if it never was as an operational member,
     * serves no reads either. */
    bool (*ready)(const void *worker);
    /* ENGINE_HOMED: whether no slot moves, or is about to, if the worker-wide flow is told that the
     * hot set changes (SLOTS_HOT) before anything else; NULL: whenever the map says so. */
    bool (*quiet)(const void *worker);
};

enum { PORT_ORDERED = 1 };

/* Whether keys or rows have homes by a map of slots (engine/homes), which the engine's worker-wide
 * flow tells the node with EFF_HOME. */
static inline bool engine_has_map(const struct engine_ops *ops)
{
    return (ops->traits & (ENGINE_HOMED | ENGINE_TABLES)) != 0;
}

/* Appends an effect; asserts that there is room (engines emit a bounded number per step). */
struct effect *effects_add(struct effects *fx, enum eff_kind kind);

#endif
