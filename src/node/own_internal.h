/* What the files of own*.c share. Nobody else includes it. */
#ifndef HORKOS_NODE_OWN_INTERNAL_H
#define HORKOS_NODE_OWN_INTERNAL_H

#include "node/own.h"

#define OWN_KEY_SHORT 24u
#define OWN_SOON_MAX 4096u /* entries of own.back; a power of 2 */

/* A transaction that waits for a level, or is about to be told. */
struct own_wait {
    struct list_link link; /* record.waits, own.told or own.waits_free */
    struct own_waiter waiter;
    uint8_t type; /* enum own_type */
    uint8_t code; /* told: how it ended */
    uint8_t space;
};

#define OWN_QUEUE_MAX 4u

/* A REQ that waits for its turn (own_queue.c). */
struct own_kept_req {
    struct own_request request;
    uint64_t since_us; /* since then somebody waits for it, by this member's clock */
    uint64_t clock;    /* the sender's: msg.arg */
};

/* An object on which something is going on, on the worker that it belongs to. */
struct own_record {
    struct list_link chain; /* own.table, or own.free */
    struct list_link all;   /* own.records */
    struct list_link holds; /* own.holds, if hold_until_us is not 0 */
    struct list_link waits; /* struct own_wait */
    struct timer timer;
    struct own_busy busy;
    uint64_t hash;          /* of the key, in the stores of its space */
    uint64_t portable;      /* the same on all nodes */
    uint64_t hold_until_us; /* its quantum is over then; 0: it is */
    uint64_t hold_most_us;  /* and not later, however much it is used */
    uint64_t gained_us;     /* its quantum began then */
    uint64_t holder_us;     /* since_us of the oldest that it was brought for; UINT64_MAX: that is
                               done */
    uint64_t gained_ts;     /* its version when the quantum began: another one, it has been used */
    uint64_t began_us;      /* the own request, when there is one */
    struct own_kept_req queue[OWN_QUEUE_MAX];
    struct bytes key; /* in short_key or key_memory */
    uint8_t short_key[OWN_KEY_SHORT];
    uint8_t *key_memory; /* store memory, key.n bytes */
    uint8_t *kept;       /* OWN_FX_KEEP: store memory, kept_bytes */
    uint64_t kept_version;
    uint32_t kept_bytes;
    uint32_t kept_n;
    uint8_t kept_flags;
    uint8_t queue_n;
    bool has_kept;
    bool spare;     /* not of own.memory */
    bool contested; /* its quantum was lengthened: it goes back and forth */
    bool revoke;    /* when the quantum is over, local transactions may begin on it no more */
    uint8_t space;
};

/* An object that was here not long ago: where it comes back to. Several may share one. */
struct own_back {
    uint64_t hash;
    uint64_t left_us;
    uint32_t times; /* that it came back within the window, in a row */
    uint32_t reserved;
};

/* ---- The walk over entries (own_walk.c); worker 0's ---- */

#define OWN_LOOKS_MAX 64u
#define OWN_LOOK_BYTES (64u * 1024u)

struct own_look {
    uint64_t hash;
    uint32_t at, n;
};
struct own_walk {
    uint64_t cursor;
    uint64_t due_us;
    uint64_t lost;    /* lost objects that this pass has met */
    uint64_t poor;    /* those, and others with too few replicas, of all spaces */
    uint32_t epoch;   /* of its beginning */
    uint32_t give_up; /* bits: spaces whose lost objects the operator gives up */
    uint8_t space;
    nodeset going;  /* own_going at its beginning, of all spaces, ... */
    uint64_t needy; /* ... and objects that are not whole without these */
    bool soon;      /* the view changed: this pass does not pause */
    bool giving_up; /* this pass does so, ... */
    bool whole;     /* ... and has had room for all that it found */
    uint32_t looks_n;
    uint32_t bytes_n;
    struct own_look looks[OWN_LOOKS_MAX];
    uint8_t *bytes;
};

/* Of one space, worker 0's: what members said of the adopted epoch. */
struct own_epoch {
    nodeset recovered, settled, pushed;
    uint64_t push_cursor, purge_cursor;
    bool said_recovered, said_settled, said_pushed;
    bool purged;    /* no entry is left that a change of the configured sets would make count */
    bool all_quiet; /* all workers here have settled */
    bool moved;     /* the configured sets have changed since own.base */
};

/* What members have said of those that go; worker 0's, of the adopted epoch. */
struct own_leave {
    uint32_t admitted[NODES_MAX]; /* of those that go */
    nodeset spared_by;            /* who needs this node no more */
    nodeset without_by;           /* who needs none of those that are configured no more */
    nodeset said;                 /* what this node has said last */
    bool wanted;                  /* it shall leave; whatever the epoch */
};

struct own_space {
    uint64_t clock;
    uint64_t forgot;
    uint32_t seq;
    uint32_t pending; /* records with an arbitration */
    bool recovered;   /* told EV_GO of the adopted epoch */
    bool settled;
    _Atomic uint64_t clock_told;      /* read by own_clock */
    _Atomic uint32_t recovered_epoch; /* txn.c of this worker has said so */
    _Atomic uint32_t quiet_epoch;     /* nothing is pending here from before */
    struct own_epoch epoch;
};

struct own {
    _Atomic bool freed; /* own_freed_elsewhere */
    struct own_record *memory;
    struct list_link free;
    struct list_link records;
    struct list_link holds;
    struct list_link *table;
    uint32_t table_mask;
    uint32_t records_n;
    uint32_t records_most;
    struct own_wait *waits_memory;
    struct list_link waits_free;
    struct list_link told;
    bool telling;
    struct own_back *back; /* OWN_SOON_MAX */
    uint8_t *value;        /* a message's value: body and data */
    uint64_t value_bytes;
    struct own_walk walk;
    struct own_leave leave;
    _Atomic uint32_t trims; /* requests to TRIM that are open here, or about to be */
    struct view base; /* the last one by whose configured sets all directory nodes have entries */
    struct own_space spaces[SPACES_MAX];
};

/* What the workers of a node say to each other (MSG_OWN_ASIDE). */
enum own_aside {
    OWN_ASIDE_WANT = 1, /* key; slot, gen, ts (since_us): the waiter; arg: enum own_type, and of
                           the waiter the worker from bit 8, the object from bit 32 on */
    OWN_ASIDE_TOLD,     /* slot, gen: the waiter; arg: the code, its object from bit 32 on */
    OWN_ASIDE_FREED,    /* key; arg: it was used */
    OWN_ASIDE_LOOK,     /* key: a walk has found something to do; arg: lost objects are given up */
    OWN_ASIDE_INVITE,   /* key: a transaction needs another replica of it (R15) */
    OWN_ASIDE_DEGREE,   /* key; arg: the degree that its owner asks for (R14) */
};

/* ---- own.c ---- */
/* The object's record, made if it has none; NULL: none is left. must: nobody can get on without
 * (INV, RESP). */
struct own_record *own_record_get(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                                  bool must);
struct own_record *own_record_find(struct worker *w, uint8_t space, struct bytes key,
                                   uint64_t hash);
/* The record is free again if nothing is going on any more. */
void own_record_settle(struct worker *w, struct own_record *r);
/* Whether there is a record for a request of this node's own. */
bool own_has_room(const struct worker *w);
void own_release_kept(struct worker *w, struct own_record *r);
uint64_t own_portable(const struct worker *w, struct bytes key);
/* The worker that an object belongs to. */
uint32_t own_worker(const struct worker *w, uint64_t portable);
/* All waits of the record that this end concerns are told. */
void own_done(struct worker *w, struct own_record *r, enum own_type type, uint8_t code);
void own_tell_all(struct worker *w);
/* A request has ended: what is still waited for is wanted; the record may be free afterwards. */
void own_want_again(struct worker *w, struct own_record *r);

/* ---- own_step.c ---- */
struct own_step {
    struct own_event event;
    struct bytes key;
    uint64_t hash;
    uint8_t space;
    struct own_record *record; /* NULL: none is left */
    bool done;                 /* out: a request of the record has ended */
};
void own_step_init(struct worker *w, struct own_step *s, uint8_t space, enum own_ev kind,
                   struct bytes key, uint64_t hash);
/* Steps the machine and carries out what it says, then lets who waits in the record's queue come,
 * if it may; the record may be free afterwards, and who was told of the end of a request waits in
 * own.told. */
void own_step_run(struct worker *w, struct own_step *s);
/* Only the step: no record becomes free, and nobody comes from the queue. */
void own_step_one(struct worker *w, struct own_step *s);
/* One step of a record. */
void own_step_record(struct worker *w, struct own_record *r, enum own_ev kind);
/* The object wants `type`. */
void own_step_want(struct worker *w, struct own_record *r, const struct own_request *want);
/* Sends a message about an object; value follows the body. */
void own_send(struct worker *w, uint8_t space, nodeset to, uint8_t kind, uint64_t ts,
              struct bytes key, const struct own_body *body, struct bytes value);
/* Says to all members something of the adopted epoch. */
void own_say(struct worker *w, uint8_t space, enum own_kind kind);
/* The entry, from its store; ts 0: there is none. */
struct own_entry own_entry_of(const struct key_meta *meta, struct bytes value);

/* ---- own_epoch.c ---- */
void own_epoch_adopt(struct worker *w);
void own_epoch_poll(struct worker *w);
uint64_t own_epoch_deadline(const struct worker *w);
/* RECOVERED, SETTLED, PUSHED. */
void own_epoch_message(struct worker *w, const struct msg *msg, uint8_t from);

/* ---- own_leave.c ---- */
/* Live members whose replicas do not count, since they will be gone. Any worker. */
nodeset own_going(const struct worker *w);
/* The same in a view. Any thread. */
nodeset own_going_in(const struct node *node, const struct view *view);
/* Worker 0: a view was adopted; a pass over all entries has found nothing that is not whole without
 * those that were going when it began. */
void own_leave_adopt(struct worker *w);
void own_leave_walked(struct worker *w, nodeset going);
/* Before a TRIM is wanted that counts on others than those that go; false: they are others by now.
 * After it, own_trims_end; an open request counts by itself. */
bool own_trims_begin(struct worker *w, nodeset going);
void own_trims_end(struct worker *w);

/* ---- own_policy.c ---- */
/* This node has become the owner, of the data of that version, for somebody who has waited since
 * holder_us; it keeps the object for a quantum. */
void own_policy_gained(struct worker *w, struct own_record *r, uint64_t version,
                       uint64_t holder_us);
/* Another node wants to own it, for somebody who has waited since asker_us. */
void own_policy_asked(struct worker *w, struct own_record *r, uint64_t asker_us);
/* A transaction here has done with an object that others want, or (at their asking) had before. */
void own_policy_used(struct worker *w, struct own_record *r);
/* It is the owner no more. */
void own_policy_left(struct worker *w, uint64_t hash);
/* Whether others want it as well: it left here a moment ago. */
bool own_policy_contended(const struct worker *w, uint8_t space, uint64_t hash);
/* Whether an ACK of such a request must wait. */
bool own_policy_holds(const struct worker *w, const struct own_record *r, uint8_t type);
/* Quanta that are over. */
void own_policy_poll(struct worker *w);
uint64_t own_policy_deadline(const struct worker *w);

/* ---- own_queue.c ---- */
/* A REQ for a record on which another is pending waits for its turn; false: it does not, the
 * machine shall say what becomes of it. */
bool own_queue_take(struct worker *w, struct own_record *r, const struct own_step *s);
/* Nothing may be pending any more: the oldest that waits comes. */
void own_queue_next(struct worker *w, struct own_record *r);
/* own_request.waited of who has waited since then; and the other way round. */
uint16_t own_waited(const struct worker *w, uint64_t since_us);
uint64_t own_since(const struct worker *w, const struct own_request *q);

/* ---- own_walk.c ---- */
uint32_t own_degree(const struct worker *w, uint8_t space, const struct own_vector *vector);
uint32_t own_degree_in(const struct node *n, const struct view *view, uint8_t space,
                       const struct own_vector *vector);
/* Of an entry: nobody is left of those that had the object, and it had been written. */
bool own_is_lost(const struct own_entry *entry, const struct view *view);
void own_walk_restart(struct worker *w);
/* Notes a key that was met on a walk over entries, in walk.looks; false: there is no room. */
bool own_walk_note(struct worker *w, struct bytes key, uint64_t hash);
void own_walk_poll(struct worker *w);
/* This node, the owner, asks for another degree, unless something is under way on the object. */
void own_walk_degree(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                     uint8_t degree);
uint64_t own_walk_deadline(const struct worker *w);
/* OWN_ASIDE_INVITE, on the object's worker. */
void own_invite(struct worker *w, uint8_t space, struct bytes key, uint64_t hash);
/* OWN_ASIDE_LOOK, on the object's worker. */
void own_walk_look(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, bool give_up);

#endif
