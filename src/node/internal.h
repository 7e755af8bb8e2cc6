/* What the files of node share. Nobody else includes it. */
#ifndef HORKOS_NODE_INTERNAL_H
#define HORKOS_NODE_INTERNAL_H

#include <stdatomic.h>

#include "base/hash.h"
#include "base/list.h"
#include "base/random.h"
#include "base/ring.h"
#include "hot/tally.h"
#include "node/lane.h"
#include "node/log.h"
#include "node/node.h"
#include "node/wheel.h"
#include "store/spin.h"
#include "view/machine_state.h"

#define PARKED_LISTS 1024u         /* lists of parked calls, by hash */
#define WAKE_RING 1024u            /* wake-ups in flight to a worker; past it: wake everything */
#define BURST_MAX 16u              /* messages whose cache misses overlap */
#define EARLY_BYTES (128u * 1024u) /* frames of a newer epoch that wait for its adoption */
#define EARLY_ORDERED_BYTES (64u << 20) /* the same where the port alone keeps the order */
#define FRAME_FULL (60u * 1024u)        /* a frame that has grown to this is sent at once */
#define MOVED_MAX (8u << 20) /* bytes, after which a poll begins nothing more of a kind */

/* ---- Operations of clients ---- */

enum call_state {
    CALL_FREE,
    CALL_QUEUED,    /* waits for earlier commands of its session */
    CALL_READY,     /* in worker.ready: to be tried */
    CALL_PARKED,    /* waits for its key, in worker.parked */
    CALL_DELAYED,   /* waits for its timer: a lease, a slot, or back-off */
    CALL_ISSUED,    /* its update is a flow */
    CALL_CHECKING,  /* read, waits for a majority's confirmation */
    CALL_ASKED,     /* a read that another node answers: waits for a flow's REPLY_VALUE */
    CALL_FORWARDED, /* for the key's home: waits for its answer, or (miss NULL) in a line for its
                       turn to be sent */
    CALL_WAITING, /* a transaction that has not taken effect: waits for levels, an object, a slot */
    CALL_COMMITTED, /* a transaction that has taken effect here: waits for its slot, in whose list
                       of calls it is */
    CALL_DONE,      /* answered, or waits for earlier commands to be answered first */
};

#define CALL_KEY_SHORT 24u

/* Where an operation goes whose key has no entry here. */
enum forward_place {
    FORWARD_HERE, /* this node is the home: the key is absent */
    FORWARD_AWAY, /* to that worker of that node */
    FORWARD_LOST, /* the slot's home is gone */
    FORWARD_WAIT, /* there is no map yet */
};
struct forward_route {
    uint64_t version; /* hand: of the map that says so */
    uint8_t place;    /* enum forward_place */
    uint8_t to;
    uint8_t to_worker;
    bool hand; /* this node is the old home and has the key no more */
};

/* Who asked for a remote call, as op_msg.h has it. */
struct call_origin {
    uint32_t slot, gen, nonce;
    uint8_t node;
    uint8_t hops;
};

struct call {
    struct list_link link;         /* free, ready, parked or checking list */
    struct list_link session_link; /* the session's commands in order */
    struct timer timer;
    struct op op;  /* the key's bytes are its own, the rest once owned */
    uint64_t hash; /* of the key, in its space's store */
    uint64_t tag;
    uint64_t arrived_us;
    uint64_t since_us;   /* as struct request has it; never 0 */
    uint64_t expired_ms; /* not 0: first delete the value with this deadline */
    uint8_t *memory;     /* the key, unless it fits short_key */
    uint8_t short_key[CALL_KEY_SHORT];
    uint8_t *extra;  /* value and arg, once the call has outlived its request */
    uint8_t *result; /* the answer's bytes */
    uint32_t memory_bytes;
    uint32_t extra_bytes;
    uint32_t result_bytes;
    struct answer answer;
    uint64_t version; /* of what was read or written, as struct reply has it */
    uint32_t session; /* SESSION_NONE: the node's own, or closed by the client */
    uint32_t tries;   /* lost updates so far */
    uint32_t prods;   /* of a parked call */
    bool baton;       /* the one update that was woken; passes it on to the next that waits */
    struct flow *flow;
    struct txn *txn;                   /* txn_internal.h: it is one; or NULL */
    const struct brought_ops *brought; /* it is a transaction of such a kind; or NULL */
    struct lotus_run *lotus;           /* lotus_run.h: it is this one's; or NULL */
    struct miss *miss;                 /* CALL_FORWARDED: as it was sent */
    struct forward_route route;        /* CALL_FORWARDED: where it goes */
    struct call_origin origin;         /* remote: who asks */
    uint64_t handed_version;           /* handed: the map of the old home that says so */
    uint8_t state;                     /* enum call_state */
    bool update;
    bool rmw;
    bool gated;   /* could complete, but an earlier command of its session has not */
    bool ungated; /* a timer passed: complete in whichever order */
    bool own;     /* the node's own operation, for no client */
    bool remote;  /* another node's (or worker's) call, executed here */
    bool handed;  /* remote: by the old home of its key (F3) */
    bool counted; /* as a hit, a local operation or a miss */
    bool decided; /* its update took effect; the answer waits for a confirmation */
    bool owned;   /* value and arg are its own: it can be tried again */
    bool ahead;   /* it was committed by its client's thread, in a pipeline of its own */
};

struct session {
    struct list_link calls;
    uint32_t n;
    bool open;
};

/* ---- Flows: the node's side of an engine's slots ---- */

struct flow {
    struct slot slot;
    struct timer timer;
    struct list_link link;     /* worker.flows in issue order, or worker.flows_free */
    struct list_link checking; /* calls that wait for an asynchronous read's confirmation, or for
                                  the value that was asked for */
    struct call *call;         /* whose update it is; NULL: a replay or a check */
    struct bytes key;          /* the call's, or in key_memory */
    uint64_t hash;
    uint64_t waiting_us; /* since when its members owe an acknowledgement */
    uint8_t *key_memory;
    uint8_t *held; /* EFF_HOLD: a payload that waits to be stored, in store memory; or NULL */
    uint32_t held_n;
    uint8_t held_flags;
    bool moves; /* begun by step_move: the mover hears of its end */
    uint8_t space;
    bool key_heap; /* key_memory is malloc's: the store had no room */
    bool check;    /* asks for the confirmation of reads */
    bool used;
    bool claimed; /* opened by EFF_ISSUE: key steps on any worker may name it by its generation */
    bool owed; /* closed, but a mail to it is in the mailbox: not free before that is taken out */
    _Atomic uint32_t claim; /* the generation that waits for an outcome; whoever sets it to 0 may
                               post one mail. So the mailbox holds at most one a flow */
};

/* ---- Forwarded operations (forward.c) ---- */

/* A call that was sent and is not answered. Outlives its call when the client is gone or was told
 * that nobody knows: until the answer comes, or cannot come any more, it holds its credit. */
struct miss {
    struct list_link link; /* forward.open, or forward.free */
    struct call *call;     /* NULL: nobody waits */
    uint32_t gen;
    uint32_t nonce; /* the lower half of its holder's ... */
    uint32_t epoch; /* ... which was a member, as this process was, when it was sent there */
    uint8_t holder; /* the node that has it now ... */
    uint8_t hops;   /* ... after it was sent on so often */
    uint8_t space;
    uint8_t to; /* the line whose credit it holds */
    uint8_t to_worker;
    bool used;
};

/* From this worker to one of another node's, and back. */
struct forward_line {
    struct list_link waiting; /* calls that have no credit yet, in order */
    uint32_t open;            /* sent and unanswered: at most hot_config.misses_max */
    uint32_t in;              /* that worker's calls, unanswered here: no more either */
};
struct forward_peer {
    struct forward_line lines[WORKERS_MAX];
};

struct remote_block;
struct lotus_moves;

struct forward {
    struct miss *misses;                   /* calls_max of them; NULL: no space has homes */
    struct list_link free;                 /* misses */
    struct list_link open;                 /* misses, in the order of sending */
    struct forward_peer *peers[NODES_MAX]; /* made when first needed */
    struct list_link remotes;              /* calls of others, by session_link */
    struct list_link remotes_free;
    struct remote_block *blocks; /* their memory */
    uint32_t remotes_n;          /* in blocks */
};

/* What a timer belongs to. */
enum {
    TIMER_CALL = 1,
    TIMER_FLOW = 2,
    TIMER_LANE_OUT = 3,
    TIMER_LANE_IN = 4,
    TIMER_OWN = 5,
};

/* So long a large value may be on its way before it counts as lost. */
#define HELD_LEASES 20u

/* A flow whose completion was gated and may go on. */
struct nudge {
    uint32_t ref;
    uint32_t gen;
};

/* ---- Output: one buffer a peer; several sealed frames and the open one stand in it ---- */

struct outbox {
    uint8_t *at;
    uint32_t capacity;
    uint32_t sealed;   /* bytes of finished frames */
    uint32_t body;     /* bytes in the open frame's body; 0: none open */
    uint32_t messages; /* in it, if it is for another node */
    uint8_t target_worker;
};

/* ---- Lanes (lanes.c) ---- */

struct lane_peer;

struct lanes {
    struct lane_peer *peers[NODES_MAX]; /* NULL: no lane with that node */
    struct list_link open;              /* lanes with an open frame, in the order of opening */
    struct list_link owing;             /* lanes that owe an acknowledgement since this poll */
    uint32_t clogged;                   /* lanes that keep more than LANE_KEPT_MAX */
};

/* The last chunk that was donated; bytes 0: none yet. */
struct donated {
    uint64_t cursor, after; /* as the joiner asked */
    uint32_t bytes;
    uint8_t space, to;
};

/* ---- Mail between workers ---- */

enum mail_kind {
    MAIL_FLOW, /* step flow `ref` with EV_KEY `code`; gen 0: it waits for nothing else */
    MAIL_WAKE, /* the key with `hash` in `space` is readable */
};

struct mail {
    uint64_t hash;
    uint64_t ts;
    uint32_t ref;
    uint32_t gen;
    uint8_t kind;
    uint8_t space;
    uint8_t code;
    uint8_t reserved[5];
};

/* ---- What one thread's operations on one space teach of its hot keys (hot.c) ---- */

#define HOT_COUNTERS 1024u       /* of a worker's sketch */
#define HOT_READER_COUNTERS 512u /* of a reader's */
#define HOT_READER_SAMPLE 16u    /* a reader takes one sample where a worker takes so many */

struct hot_sampler {
    /* The thread's: */
    _Alignas(64) struct random random;
    uint32_t left; /* operations until the next sample */
    uint32_t sample;
    /* Whoever holds the lock, which the thread only tries to get: */
    struct spin lock;
    uint8_t space;
    struct hot_sketch sketch;
    void *memory;
    uint64_t window_us;    /* in which its counts were counted, up to ... */
    uint64_t since_us;     /* ... this moment; 0: nothing was */
    struct list_link link; /* node.samplers */
};

/* ---- The walk over keys whose home changes (move.c) ---- */

struct mover {
    uint64_t cursor;
    uint64_t version;      /* of the map when the pass began */
    uint64_t done_version; /* of the newest map under which a pass found nothing */
    uint64_t due_us;
    uint32_t open;             /* keys on their way */
    uint32_t moving, emptying; /* slots that the pass is for */
    bool passing;
    bool found; /* the pass met a key */
    bool begun; /* ... and did something about it */
};

/* ---- Spaces ---- */

struct space {
    const struct engine_ops *ops;
    const void *engine;
    struct store *store;
    bool async_reads;
    bool ordered;                      /* its engine needs order ... */
    bool lanes;                        /* ... and the port does not give it */
    bool sharded;                      /* ENGINE_SHARDED (occ.c) */
    const struct brought_ops *brought; /* ... or ENGINE_TABLES (lotus.c); else NULL */
    bool homed; /* ENGINE_HOMED: operations go to their keys' homes (forward.c) */

    /* Of engines whose rows are in tables (ENGINE_TABLES; lotus.h); else NULL. */
    struct lotus_table *table;
    struct lotus_space *lotus;

    /* Of engines with worker-wide flows (ordered.c). Worker 0's: */
    struct log log;
    uint64_t take_due_us; /* when it goes on with entries that it could not take */
    /* What it tells the others: */
    _Atomic uint64_t taken;       /* log.taken, after its keys have their values */
    _Atomic uint32_t ready_epoch; /* the last epoch in which ops->ready held */
    _Atomic bool serves;          /* it held in one in which this process was operational */

    /* Of engines with a map of slots (engine_has_map; homes.c): HASH_SLOTS entries, slot_home_pack.
     * Written by worker 0, read by all; where keys have homes (`homed`) under the lock of a key's
     * bucket where it decides. */
    _Atomic uint32_t *homes;
    struct lotus_moves *moves; /* lotus_move.h: where slots move as wholes (ENGINE_TABLES) */
    bool exclusive;            /* one worker of the home touches a key (hot_config) */
    uint32_t misses_max;       /* as hot_config has it */
    _Atomic uint64_t map_version;
    _Atomic bool no_taker; /* by that map nobody could take slots that are lost */
    _Atomic bool left;     /* EFF_LEFT has come */

    /* Of engines whose objects have owners (ENGINE_OWNED; own.c): entries, under the same hashes.
     * Who locks both an entry's bucket and its object's locks the entry's first. */
    struct store *directory;
    _Atomic uint32_t recovered_epoch; /* all members have said RECOVERED in it, ... */
    _Atomic uint32_t settled_epoch;   /* ... and SETTLED */
    _Atomic uint64_t clock_floor;     /* what other members said of their clocks */

    /* Worker 0's. */
    struct mover mover;
    uint64_t decay_due_us; /* the next epoch of hot.c; 0: there was none */
    struct hot_epoch *hot; /* hot_epoch.c; NULL: no hot set */
    uint32_t hot_keys;     /* that it may have */
};

/* ---- Joining: worker 0 of a shadow copies every space from a donor (transfer.c) ---- */

struct transfer {
    uint64_t cursor;
    uint64_t after;    /* hash up to which the bucket at cursor has come */
    uint64_t asked_us; /* 0: nothing asked */
    uint64_t donor_nonce;
    uint32_t tries; /* requests since the last chunk */
    uint32_t epoch; /* in which the chunk was asked for */
    uint8_t donor;  /* NODE_NONE: choose one */
    uint8_t space;  /* the one being copied */
    bool copied;    /* every chunk of every space has come */
    bool done;
};

/* ---- The background walk of worker 0 (sweep.c) ---- */

#define SWEEP_KEYS_MAX 64u         /* keys that one step of the sweep takes from the walk */
#define SWEEP_BYTES (128u * 1024u) /* and their bytes */

struct sweep_key {
    uint64_t hash;
    uint32_t at; /* of its bytes */
    uint32_t n;
    int64_t expired_ms; /* 0: not a matter of expiry */
};

struct sweep {
    uint64_t cursor;
    uint64_t due_us;
    uint64_t wall_ms;
    uint8_t space;
    bool soon;    /* the view changed: look for keys left Invalid without pausing */
    bool owned;   /* the space's objects have owners */
    bool brought; /* ... or come to transactions */
    uint32_t keys_n;
    uint32_t bytes_n;
    struct sweep_key keys[SWEEP_KEYS_MAX];
    uint8_t *bytes;
};

struct worker {
    struct node *node;
    uint32_t index;
    uint64_t now_us;
    uint64_t wall_ms;
    uint64_t lease_until_us; /* as read at the start of the poll */
    struct view view;        /* the view this worker has adopted */
    bool operational;        /* this incarnation is an operational member of it */
    struct random random;
    struct store_thread *threads[SPACES_MAX];
    struct store_thread *directories[SPACES_MAX]; /* of their entries, where objects have owners */
    void *engine_state[SPACES_MAX];
    struct hot_sampler *hot[SPACES_MAX];
    uint32_t ready_told[SPACES_MAX]; /* the epoch in which its flows were told FLOW_CODE_READY */

    struct flow *flows_memory;
    struct list_link flows; /* in issue order */
    struct list_link flows_free;
    struct nudge *adopt; /* the flows, while a view is adopted */
    struct nudge *nudge; /* flows_max + 1 of them */
    uint32_t nudges;
    struct call *calls_memory;
    struct list_link calls_free;
    uint32_t calls_free_n;
    uint32_t own_calls; /* of the node itself, in progress */
    struct list_link ready;
    struct list_link checking; /* reads of this poll that want confirmation */
    struct list_link parked[PARKED_LISTS];
    struct session *sessions;
    struct wheel wheel;

    uint8_t *scratch;   /* a stored value that is kept inline: STORE_INLINE_MAX bytes */
    uint8_t *evaluated; /* a new value: node.evaluated_bytes */
    struct outbox out[NODES_MAX];
    nodeset out_pending; /* peers whose outbox is not empty */
    struct outbox self;  /* messages to this worker itself */
    struct lanes lanes;
    struct forward forward;
    struct own *own;               /* own_internal.h; NULL: no space has owners */
    struct txns *txns;             /* txn_internal.h; the same */
    struct occs *occs;             /* occ.h; NULL: no space is sharded */
    struct lotuses *lotus;         /* lotus_run.h; NULL: no space has tables */
    struct lotus_home *lotus_home; /* lotus_home.h; the same */

    /* Messages to and from the node's other workers (aside.c). */
    struct outbox *aside;   /* by worker */
    uint64_t aside_pending; /* workers whose outbox is not empty */
    bool aside_ready;
    void *parcel_cells;
    void *parcel_back_cells;

    uint64_t moved;  /* bytes of frames, messages and answers in this part of the poll */
    bool unfinished; /* the last poll moved so much that it may have left something */

    uint8_t *early;       /* whole frames of newer epochs, each behind its length */
    uint8_t *early_spare; /* the other buffer, while the first is emptied */
    uint32_t early_bytes;
    uint32_t early_capacity; /* of both */
    bool early_reading;      /* the spare one is being emptied; what is kept again fits */
    struct sweep sweep;
    uint8_t *chunk; /* of a join, being packed */
    uint32_t chunk_bytes;
    uint32_t chunk_capacity;
    struct donated donated;
    struct transfer transfer;

    struct node_stats stats;
    struct node_stats stats_told; /* as of the last publication */

    /* Written by others. */
    struct ring_mpsc mail; /* outcomes of flows: room for every flow, so never full */
    struct ring_mpsc wakes;
    struct ring_mpsc parcels;      /* from other workers */
    struct ring_mpsc parcels_back; /* buffers that they have emptied */
    void *mail_cells;
    void *wake_cells;
    _Atomic bool wake_all; /* a wake-up found no room */
    _Atomic bool asleep;   /* pairs with the posters' exchange in worker_poke */
    _Atomic bool ping;     /* the control worker wants to see progress */

    /* Read by others. */
    _Atomic uint64_t published[sizeof(struct node_stats) / sizeof(uint64_t)]; /* stats, relaxed */
    _Atomic uint32_t adopted;                                                 /* epoch of view */
    _Atomic uint64_t progress; /* polls so far that answered a ping */
};

struct node {
    struct node_config config;
    struct env env;
    struct space spaces[SPACES_MAX];
    struct worker *workers; /* config.workers of them */
    uint32_t evaluated_bytes;
    uint8_t first_space;          /* the lowest that exists */
    uint32_t wide;                /* bits: spaces whose engine has ENGINE_WORKER_FLOW ... */
    uint32_t gated;               /* ... and those whose engine says when it is ready */
    uint32_t owned;               /* bits: spaces whose engine has ENGINE_OWNED, ... */
    uint32_t tables;              /* ... and ENGINE_TABLES */
    _Atomic uint64_t going;       /* nodeset: members that have said that they leave */
    _Atomic bool nobody_stays;    /* that is all live members, this one among them */
    _Atomic bool spared;          /* all say that nothing of theirs needs this node, which leaves */
    struct hash_secret placement; /* of their objects: the same on every node of the cluster */
    struct hash_secret portable;  /* the same on every member of a generation */
    uint64_t portable_generation;

    /* hot.c: of all threads and spaces. */
    struct spin hot_lock;
    struct list_link samplers;

    /* Worker 0's. */
    struct view_machine machine;
    struct view_effects *effects;
    uint64_t progress_seen[WORKERS_MAX];
    uint64_t pinged_us;
    bool wipe;
    bool left;
    uint32_t adopted_told; /* the epoch of the last VIEW_EVENT_ADOPTED */

    /* Published by worker 0 under publish_lock, copied by the others. */
    _Atomic bool publish_lock;
    struct view published;
    _Atomic uint32_t published_epoch; /* release after published; pairs with adopt's acquire */
    _Alignas(64) _Atomic uint64_t lease_until_us; /* readers on other threads look at every call */
    _Atomic bool confirms;                        /* view_confirms of the published epoch */
    _Atomic uint32_t status;                      /* enum view_status */
    _Atomic uint32_t adopted;                     /* all workers are in this epoch */

    /* Posted by any worker for the control worker. */
    _Alignas(64) _Atomic uint64_t hints; /* nodeset: senders of older epochs */
    _Atomic uint64_t suspects;           /* nodeset: left INVs unacknowledged for a lease */
    _Atomic uint64_t full;               /* nodeset: members that said that they are full */
    _Atomic bool out_of_memory;          /* this node is: advertised in every frame */
};

#ifdef HK_MUTANTS
static inline bool node_rule_on(const struct node *n, enum node_rule rule)
{
    return (n->config.rules_off >> rule & 1) == 0;
}
#else
static inline bool node_rule_on(const struct node *n, enum node_rule rule)
{
    (void)n;
    (void)rule;
    return true;
}
#endif

/* ---- worker.c ---- */
void worker_poke(struct worker *w);
/* Lets operations that were woken go on. Between two messages. */
void worker_run_ready(struct worker *w);
void worker_post(struct worker *from, uint32_t to, const struct mail *mail);
/* Steps the flow again, later in this poll, so that it can complete. */
void worker_nudge(struct worker *w, const struct flow *f);
/* Whether this node has no memory for new writes: it says so in every frame. */
bool worker_full(const struct worker *w);

/* ---- own.c: what the rest of the node needs of it (own.h has more) ---- */
int own_init(struct worker *w) __attribute__((warn_unused_result));
void own_deinit(struct worker *w);
void own_timer(struct worker *w, struct timer *timer);
/* MSG_OWN_ASIDE: another worker of this node says something. */
void own_aside(struct worker *w, const struct msg *msg);
/* Worker 0: the operator gives up the lost objects of the space. */
void own_empty(struct worker *w, uint8_t space);
/* Worker 0: this node shall leave: from now on what it has does not count as a replica. */
void own_leave(struct worker *w);
/* MSG_OWN_LEAVE, MSG_OWN_SPARED. */
void own_leave_message(struct worker *w, const struct msg *msg, uint8_t from);
/* Worker 0: members that are configured no more hold replicas that are missing elsewhere. */
bool own_keeps_removed(const struct worker *w);
/* Worker 0: whether all operational members have sent this one the entries that it shall have. */
bool own_joined(const struct worker *w);
/* Whether others have said something of the epoch that this worker has not taken up. */
bool own_epoch_wanted(const struct worker *w);
/* Whether other threads have let go of what this worker may owe an ACK for. */
bool own_freed_wanted(const struct worker *w);
void own_check_worker(const struct worker *w);

/* ---- txn.c: what calls need of it (own.h has more) ---- */
struct txn_caller;
/* What is stored is committed locally by a transaction of that worker, or of that caller (if not
 * NULL), or was read by one, and this node owns it: transactions of the same pipeline may build on
 * it before it is replicated (C4). */
bool txn_committed_here(const struct key_meta *meta, uint32_t worker,
                        const struct txn_caller *caller);
/* The call was committed on its client's thread. HK_ERR_UNKNOWN: by another node than this. */
int txn_take_committed(struct worker *w, struct call *c, const struct node_committed *committed)
    __attribute__((warn_unused_result));
void txn_run_committed(struct worker *w, struct call *c, const struct node_committed *committed);
int txn_init(struct worker *w) __attribute__((warn_unused_result));
void txn_deinit(struct worker *w);
/* The call is that request; HK_ERR_NOMEM, HK_ERR_TOOBIG. */
int txn_take(struct worker *w, struct call *c, const struct txn_request *request)
    __attribute__((warn_unused_result));
/* What the request points to becomes its own, so that it can wait; false: there is no memory. */
bool txn_own(struct worker *w, struct txn *t);
/* The answers' bytes become its own; false: there is no memory. */
bool txn_keep(struct worker *w, struct txn *t);
/* Takes up, or goes on with, a call of a space whose objects have owners. */
void txn_run(struct worker *w, struct call *c);
void txn_timer(struct worker *w, struct txn *t);
/* What a reply says beside its answer. */
void txn_fill(const struct txn *t, struct reply *reply);
/* It is over, but for its answers (a second time it does nothing); then: it is forgotten. */
void txn_settle(struct worker *w, struct txn *t);
void txn_end(struct worker *w, struct txn *t);
/* Who waits for the object on this worker may try again; all who wait for any. */
void txn_woken(struct worker *w, uint8_t space, uint64_t hash);
void txn_woken_all(struct worker *w);
/* Slots that are not done. */
uint32_t txn_under_way(const struct worker *w);
void txn_check_worker(const struct worker *w);

/* ---- Transactions whose objects are brought to where they are evaluated: occ.c, lotus.c ---- */
struct brought_ops {
    /* The call is that request, of which call_refuses_txn had nothing to say; NULL: its one
     * operation. HK_ERR_TOOBIG, HK_ERR_BUSY, HK_ERR_INVALID. */
    int (*take)(struct worker *w, struct call *c, const struct txn_request *request);
    /* What the request points to becomes its own. */
    void (*own)(struct worker *w, struct call *c);
    void (*run)(struct worker *w, struct call *c);
    /* CALL_WAITING, and its time is over. NULL: no timer is armed then. */
    void (*timer)(struct worker *w, struct call *c);
    /* What a client hears instead of that error: HK_ERR_UNKNOWN if it may have taken effect, or
     * may yet, although it is not answered. NULL: the same. */
    int (*error)(const struct worker *w, const struct call *c, int err);
    /* What a reply says beside its answer; then: it is forgotten. */
    void (*fill)(struct worker *w, const struct call *c, struct reply *reply);
    void (*end)(struct worker *w, struct call *c);
};
extern const struct brought_ops occ_brought;

/* ---- occ.c: transactions of the baseline ---- */
int occ_init(struct worker *w) __attribute__((warn_unused_result));
void occ_deinit(struct worker *w);
void occ_message(struct worker *w, const struct msg *msg, uint8_t from);
void occ_adopt(struct worker *w);

/* ---- step.c ---- */
struct step {
    struct event event;
    struct bytes key;
    uint64_t hash;
    uint8_t space;
    struct flow *mine;    /* the flow on whose behalf the key is stepped */
    struct call *call;    /* the operation that is stepped; parked if the engine says so */
    struct bytes payload; /* what EFF_APPLY stores */
    uint8_t payload_flags;
    bool force;  /* a follower's write may use the headroom */
    int err;     /* out: memory refused the payload; nothing happened */
    bool parked; /* out: call waits for the key */
    bool issued; /* out: call's update is under way */
    bool asked;  /* out: call waits for a value from elsewhere */
    bool lost;   /* out: EFF_LOST */
    bool later;  /* out: EFF_LATER */
    bool begun;  /* out: the spare slot is a flow now */
    bool moves;  /* the flow that the step may open is the mover's */
};
void step_init(struct worker *w, struct step *s, uint8_t space, enum ev_kind kind);
/* Steps the key machine under ref's lock, and releases it. */
void step_locked(struct worker *w, struct step *s, struct store_ref *ref);
void step_key(struct worker *w, struct step *s);
/* The object can be tried again: calls of all workers that wait for it go on. */
void wake_everywhere(struct worker *w, uint8_t space, uint64_t hash);
enum step_word {
    STEP_NOTHING, /* the key is as it should be */
    STEP_LATER,   /* not possible now: ask again */
    STEP_BEGUN,   /* a flow is open. Ask again later: there may be more to do. Of step_move the
                     flow's end calls move_done, perhaps before this function returns */
};
/* At the key's home: it shall enter or leave the hot set, at generation gen, of which the remainder
 * by 65535 counts: not that of an earlier one that may still be about. Any worker. */
enum step_word step_hot(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                        enum hot_code code, uint64_t gen);
/* Its slot is moving away from here, or is being emptied, as this node's map says. Any worker. */
enum step_word step_move(struct worker *w, uint8_t space, struct bytes key, uint64_t hash);
/* Steps a flow; it may be gone afterwards. */
void step_flow(struct worker *w, struct flow *f, enum ev_kind kind, uint8_t code,
               const struct msg *msg, uint8_t from);
/* A message effect of a flow machine, and one about an ignored message. */
void step_send(struct worker *w, uint8_t space, const struct effect *e, struct bytes key);
void step_ignored(struct worker *w, const struct effect *e, uint8_t from);
/* A mail of kind MAIL_FLOW has come. */
void step_mail(struct worker *w, const struct mail *mail);
struct flow *flow_reserve(struct worker *w);
void flow_give_back(struct worker *w, struct flow *f);
void flow_open(struct worker *w, struct flow *f, const struct step *s);
/* Gives a flow a key of its own. */
void flow_copy_key(struct worker *w, struct flow *f, struct bytes key);
/* Ends a flow that nobody waits for. */
void flow_close(struct worker *w, struct flow *f);
struct flow *flow_of_ref(struct worker *w, uint32_t ref);
/* Opens a flow that asks a majority to confirm the reads in worker.checking. */
void flow_check_reads(struct worker *w);
uint64_t portable_hash(struct worker *w, struct bytes key);

/* ---- What a flow that step_move has begun calls at its end, on its worker, before its key's bytes
 * are gone. ---- */
void move_done(struct worker *w, const struct flow *f);

/* ---- ordered.c ---- */
/* Steps the flow machine of the whole worker (ROUTE_WORKER). Worker 0. */
void step_worker(struct worker *w, const struct msg *msg, uint8_t from);
/* A view was adopted; the poll's input has been stepped. Worker 0. */
void ordered_view(struct worker *w);
void ordered_flush(struct worker *w);
uint64_t ordered_deadline(const struct worker *w);
/* Whether every engine that is not always ready is so in that epoch. */
bool ordered_all_ready(const struct node *n, uint32_t epoch);
/* The log's entries up to there have stepped their keys. */
uint64_t ordered_taken(const struct worker *w, uint8_t space);
/* Whether the space may be read here, and whether updates of it may be issued. */
bool ordered_serves(const struct worker *w, uint8_t space);
bool ordered_issues(const struct worker *w, uint8_t space);
/* Spaces that turned ready, but this worker's flows were not told; they may be told when all mail
 * that had come before this look has been taken. */
uint32_t ordered_look(const struct worker *w);
void ordered_tell(struct worker *w, uint32_t spaces);
/* Worker 0: EV_SLOTS, for engines with a map of slots. Its effects may send; flush afterwards. */
void ordered_slots(struct worker *w, uint8_t space, enum slots_code code, uint64_t ts);

/* ---- homes.c ---- */
int homes_init(struct space *space) __attribute__((warn_unused_result));
void homes_deinit(struct space *space);
/* EFF_HOME. */
void homes_set(struct worker *w, uint8_t space, const struct effect *e);
/* Whether no slot moves, as far as this member and its engine know. Worker 0. */
bool homes_rest(struct worker *w, uint8_t space);
/* The home of a key, by this node's map. */
struct slot_home homes_of(const struct space *space, struct bytes key);

/* ---- lotus_map.c: what homes.c calls where slots move as wholes ---- */
int lotus_map_init(struct space *space) __attribute__((warn_unused_result));
void lotus_map_deinit(struct space *space);
/* Worker 0: the map is about to say `after` of the slot; it has said all of that version. */
void lotus_map_changes(struct worker *w, uint8_t space, uint32_t slot, struct slot_home before,
                       struct slot_home after);
void lotus_map_told(struct worker *w, uint8_t space, uint64_t version);

/* ---- forward.c ---- */
int forward_init(struct worker *w) __attribute__((warn_unused_result));
void forward_deinit(struct worker *w);
/* Where the call goes if its key has no entry, by this node's map. Under the key's bucket's lock,
 * where the space has homes. */
struct forward_route forward_route(const struct worker *w, const struct call *c);
/* Sends the call there, or says what else becomes of it; not FORWARD_HERE. No lock is held. */
void forward_go(struct worker *w, struct call *c, struct forward_route route);
/* Takes the call elsewhere before anybody looks for its key: to the one worker here that touches
 * it, or to its home if this node is about to leave. */
bool forward_first(struct worker *w, struct call *c);
/* The call waits no more for its answer, nor for its turn. */
void forward_detach(struct worker *w, struct call *c);
/* The answer of a remote call; its end. */
void forward_reply(struct worker *w, struct call *c, const struct answer *answer);
void forward_release(struct worker *w, struct call *c);
/* MSG_CALL, hash: of its key in its space's store; MSG_ANSWER. */
void forward_take(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from);
void forward_answered(struct worker *w, const struct msg *msg, uint8_t from);
/* A view was adopted. */
void forward_adopt(struct worker *w);
void forward_check(const struct worker *w);

/* ---- hot.c ---- */
/* Makes the sampler of a thread, which takes one operation of `sample`; NULL: no memory. thread: a
 * number for its chance. */
struct hot_sampler *hot_open(struct node *n, uint8_t space, uint32_t thread, uint32_t sample,
                             uint32_t counters);
void hot_close(struct node *n, struct hot_sampler *h);
/* This operation is one that is counted. On the thread that owns the sampler. */
void hot_take(struct hot_sampler *h, struct bytes key, uint64_t hash, uint64_t now_us);
/* An operation: hash is its key's in the store of the space. */
static inline void hot_note(struct hot_sampler *h, struct bytes key, uint64_t hash, uint64_t now_us)
{
    if (--h->left == 0) {
        hot_take(h, key, hash, now_us);
    }
}
/* Adds what all threads know, in operations a second: `most` keys of each. Any thread. */
void hot_tally_samplers(struct node *n, uint8_t space, uint64_t now_us, uint32_t most,
                        struct hot_tally *t);
/* How many threads have a sampler of the space. */
uint32_t hot_samplers(struct node *n, uint8_t space);
/* Worker 0. */
/* What was counted so far matters less from now on; so again after next_us. */
void hot_age(struct worker *w, uint8_t space, uint64_t next_us);
void hot_poll(struct worker *w);
uint64_t hot_deadline(const struct worker *w);

/* ---- hot_epoch.c: worker 0 ---- */
int hot_epoch_init(struct space *space, const struct hot_config *config)
    __attribute__((warn_unused_result));
void hot_epoch_deinit(struct space *space);
void hot_epoch_poll(struct worker *w);
uint64_t hot_epoch_deadline(const struct worker *w);
/* MSG_HOT. */
void hot_message(struct worker *w, const struct msg *msg, uint8_t from);

/* ---- aside.c ---- */
int aside_init(struct worker *w) __attribute__((warn_unused_result));
void aside_deinit(struct worker *w);
void aside_add(struct worker *w, uint32_t to, const struct msg *msg);
void aside_flush(struct worker *w);
bool aside_wanted(struct worker *w);
uint32_t aside_take(struct worker *w, uint32_t max);

/* ---- call.c ---- */
/* Takes one request of a client (or, with SESSION_NONE, of the node); hash is its key's. */
void call_take(struct worker *w, const struct request *request, uint64_t hash);
void call_run(struct worker *w, struct call *c);
void call_park(struct worker *w, struct call *c);
void call_wake(struct worker *w, uint8_t space, uint64_t hash);
void call_wake_all(struct worker *w);
void call_timer(struct worker *w, struct call *c);
/* The flow of an update, or of a check, has ended. */
void call_outcome(struct worker *w, struct call *c, enum reply_code code);
/* The read waits for that flow, which no step has seen yet. */
void call_ask(struct worker *w, struct call *c, struct flow *f);
/* What the read shall answer has come. */
void call_value(struct worker *w, struct call *c, const struct msg *msg);
void call_finish(struct worker *w, struct call *c, const struct answer *answer);
void call_fail(struct worker *w, struct call *c, int err);
/* With HK_ERR_LOSTSLOT, of that slot. */
void call_lost(struct worker *w, struct call *c, uint16_t slot);
void call_ready(struct worker *w, struct call *c);
void call_release(struct worker *w, struct call *c);
/* Makes a call of another node, whose operation and origin are set, and runs it. */
void call_take_remote(struct worker *w, struct call *c, uint64_t hash);
/* Why no store of this node could execute the operation, or HK_OK. */
int call_refuses(const struct worker *w, const struct op *op);
/* The same of a request of several operations in that space. Only tables have ranges. */
int call_refuses_txn(const struct worker *w, uint8_t space, const struct txn_request *request);
/* Value and argument become the call's own; false: there is no memory. */
bool call_own(struct worker *w, struct call *c);
/* When it is to be answered at the latest. */
uint64_t call_due(const struct worker *w, const struct call *c);
/* What the client hears, on its way. */
void call_reply(struct worker *w, const struct call *c, const struct answer *answer);
/* It waits for an answer from elsewhere (CALL_FORWARDED), or starts anew after a while. */
void call_await(struct worker *w, struct call *c);
void call_again(struct worker *w, struct call *c);
void call_delay(struct worker *w, struct call *c, uint64_t until_us);
/* The client is gone: the call ends without an answer, its update stays in flight. */
void call_cancel(struct worker *w, struct call *c);

/* ---- session.c ---- */
void session_add(struct worker *w, struct call *c);
bool session_may_start(struct worker *w, const struct call *c);
/* Lets every command start that no earlier one forbids. */
void session_pump(struct worker *w, uint32_t session);
/* Sends the answers that are due, in order, then pumps. */
void session_flush(struct worker *w, uint32_t session);
/* Whether a finished update must wait for an earlier command of its session. */
bool session_gates(struct worker *w, const struct call *c);

/* ---- output.c ---- */
void output_message(struct worker *w, uint8_t to, uint8_t target_worker, const struct msg *msg);
/* The same; ref, if not NULL, is the locked object whose value in the store the message carries. */
void output_value(struct worker *w, uint8_t to, uint8_t target_worker, const struct msg *msg,
                  const struct store_ref *ref);
/* The same to every node of the set. */
void output_values(struct worker *w, nodeset set, uint8_t target_worker, const struct msg *msg,
                   const struct store_ref *ref);
/* An entry of the space's log, as a message `kind` of the adopted epoch, to the worker 0 there. */
void output_kept(struct worker *w, uint8_t space, uint8_t to, struct bytes entry, uint8_t kind);
void output_box_add(struct outbox *box, const struct msg *msg);
void output_flush(struct worker *w);
/* Whether a value of that length need not be sent again yet: it is large, and a large one is still
 * on its way to that node. */
bool output_under_way(const struct worker *w, uint8_t to, uint32_t value_bytes);
void output_view(struct worker *w, uint8_t to, const struct view_msg *msg);
/* What every frame to that node says; lengths, target worker and incarnation are the caller's. */
void output_frame(const struct worker *w, struct frame *f, uint8_t kind, uint8_t to);
void output_deinit(struct worker *w);

/* ---- input.c ---- */
uint32_t input_frames(struct worker *w, uint32_t max);
void input_self(struct worker *w);
/* Hands a message to another worker of this node, where objects have owners. */
void input_pass(struct worker *w, uint32_t to, const struct msg *msg, uint8_t from);
/* After a view was adopted: frames that came too early. */
void input_early(struct worker *w);
void input_note_full(struct worker *w, const struct frame *f);
/* Steps the key of a message that routes to it; HK_ERR_NOMEM: memory refused its value. */
int input_step(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from);
void input_batch(struct worker *w, struct bytes body, uint8_t from);

/* ---- lanes.c ---- */
void lanes_init(struct worker *w);
void lanes_deinit(struct worker *w);
/* Adds a message for a live member to its lane; the value is copied. */
void lanes_message(struct worker *w, uint8_t to, uint8_t target_worker, const struct msg *msg);
/* The same for a message that is encoded, and gets this kind and the adopted epoch. */
void lanes_encoded(struct worker *w, uint8_t to, uint8_t target_worker, struct bytes encoded,
                   uint8_t kind);
/* A lane frame of a member of the adopted view. */
void lanes_frame(struct worker *w, const struct frame *f);
/* Sends what is open, and the acknowledgements that are due. */
void lanes_flush(struct worker *w);
void lanes_timer(struct worker *w, struct timer *timer);
/* A view was adopted: ends the lanes of who is gone; then, when the flows have been stepped,
 * delivers what waited for it. */
void lanes_adopt(struct worker *w);
void lanes_drain(struct worker *w);
/* The epoch since which that node's process and this one are members, so that nothing which they
 * have said to each other is lost; 0: they are not. */
uint32_t lanes_life(const struct worker *w, uint8_t node);
/* Whether so much is unacknowledged that no new update should begin. */
bool lanes_clogged(const struct worker *w);
/* Bytes sent to that worker of that node that it has not acknowledged; 0: there is no lane. */
uint64_t lanes_kept(const struct worker *w, uint8_t to, uint8_t target_worker);
void lanes_check(const struct worker *w);

/* ---- control.c: worker 0 ---- */
/* The newest published view; any thread. */
void control_published(struct node *n, struct view *view_out);
void control_poll(struct worker *w);
void control_frame(struct worker *w, const struct frame *frame);
void control_event(struct worker *w, struct view_event *event);
uint64_t control_deadline(const struct worker *w);
/* Whether workers have told the control worker something that it has not taken up. */
bool control_wanted(const struct worker *w);
/* Every worker: adopts the published view if it is newer. */
void control_adopt(struct worker *w);

/* ---- transfer.c: worker 0 ---- */
void transfer_poll(struct worker *w);
void transfer_restart(struct worker *w);
void transfer_message(struct worker *w, const struct msg *msg, uint8_t from);
uint64_t transfer_deadline(const struct worker *w);

/* ---- move.c: worker 0 ---- */
void move_poll(struct worker *w);
uint64_t move_deadline(const struct worker *w);

/* ---- lotus_move.c: worker 0; the same where slots move as wholes ---- */
void lotus_move_poll(struct worker *w);
uint64_t lotus_move_deadline(const struct worker *w);
/* LOTUS_MSG_ROWS, LOTUS_MSG_TAKEN. */
void lotus_move_message(struct worker *w, const struct msg *msg, uint8_t from);
void lotus_move_deinit(struct lotus_moves *m);

/* ---- sweep.c: worker 0 ---- */
void sweep_poll(struct worker *w);
void sweep_restart(struct worker *w);
uint64_t sweep_deadline(const struct worker *w);

#endif
