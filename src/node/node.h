/* The node: the shell that lets pure protocols touch a store and the world. It locks an object,
 * steps its engine, publishes the result and turns effects into frames, replies and timers. It
 * makes no system call itself: ports, client requests, wake-ups and time reach it through struct
 * env and worker_poll's arguments, so that the server's threads and the simulator run the same
 * code.
 *
 * Threads. node_create and node_destroy run alone. worker_* functions run on the thread that owns
 * the worker, one at a time; workers run concurrently. node_* queries may run on any thread. */
#ifndef HORKOS_NODE_NODE_H
#define HORKOS_NODE_NODE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/pieces.h"
#include "base/nodeset.h"
#include "engine/engine.h"
#include "engine/lotus/lotus.h"
#include "engine/op.h"
#include "engine/txn.h"
#include "engine/zeus/own.h"
#include "node/commit_here.h"
#include "store/store.h"
#include "view/machine.h"
#include "wire/frame.h"

#define WORKERS_MAX 64u
#define SPACES_MAX 16u
#define SESSION_NONE UINT32_MAX
#define FRAME_GIVEN (256u * 1024u)

struct node;
struct worker;

/* One operation of a client's session; tag is the caller's, echoed by the reply. */
struct request {
    uint32_t session;
    uint64_t tag;
    uint64_t since_us;             /* when that began of which it is a part or a repetition, by the
                                      worker's clock; 0: now. In spaces with ENGINE_OWNED the older
                                      gets its objects first */
    struct op op;                  /* its bytes stay good until worker_poll returns */
    const struct txn_request *txn; /* not NULL: this instead of op, of which only the space counts.
                                      In a space whose engine has transactions (ENGINE_OWNED), else
                                      HK_ERR_INVALID */
    const struct node_committed *committed; /* not NULL: neither, but what node_commit has
                                               committed; of op the space counts. NULL
                                               before env.request fills the rest in */
};

struct reply {
    uint32_t session;
    uint64_t tag;
    uint64_t version;     /* timestamp of what was read or written; 0: nothing was stored, or an
                             error */
    struct answer answer; /* its bytes are good during the call only. Of a transaction: OK; NIL: a
                             watch did not hold, nothing happened; NUMBER 0: TXN_ALL or TXN_STOP, an
                             operation did not apply, nothing happened; ERROR */
    const struct answer
        *answers;             /* of a transaction that is OK or NUMBER: one for each operation */
    const uint64_t *versions; /* ... and what each read, or wrote */
    uint32_t answers_n;
};

/* What a worker needs from outside. Callbacks run on the worker's thread, inside worker_poll (send
 * and persist also inside worker_leave, worker_configure and worker_recover, reply also inside
 * node_destroy), except wake, which any worker's thread may call, and wall_ms; threads of readers
 * may call both as well (node/read.h, node/commit_here.h). None may call back into the node, and
 * send must not block: a bucket may be locked meanwhile. */
struct env {
    void *context;
    /* The next frame that has arrived for this worker, false when there is none. The bytes stay
     * good until the next call. */
    bool (*receive)(void *context, uint32_t worker, struct bytes *frame_out);
    /* Sends one sealed frame to the node that its header names as the target; the bytes are good
     * during the call only. */
    void (*send)(void *context, uint32_t worker, uint8_t to, struct bytes frame);
    /* The next request that has arrived, false when there is none. Only for open sessions. */
    bool (*request)(void *context, uint32_t worker, struct request *request_out);
    /* Every request is answered exactly once, in each session in the order of its requests. */
    void (*reply)(void *context, uint32_t worker, const struct reply *reply);
    /* The worker has mail and is asleep. */
    void (*wake)(void *context, uint32_t worker);
    /* Wall clock, ms since 1970: for expiry only. */
    uint64_t (*wall_ms)(void *context);
    /* Keeps {generation, epoch} durably before it returns (docs/protocols/view.md, rule 5). */
    void (*persist)(void *context, uint64_t generation, uint32_t epoch);
    /* As send, for a frame above FRAME_GIVEN bytes, whose pieces are the callee's from here on; it
     * may keep them longer than the node exists. NULL: send does it, and all is copied. */
    void (*give)(void *context, uint32_t worker, uint8_t to, struct pieces *frame);
    /* Whether a large frame is still on its way to the same worker of that node: what it carries
     * need not be sent again yet, and cannot be answered. NULL: nobody knows. */
    bool (*under_way)(void *context, uint32_t worker, uint8_t to);
    /* The version of the frames that was agreed upon with that node, at most version_max. NULL:
     * FRAME_VERSION. */
    uint16_t (*version)(void *context, uint32_t worker, uint8_t to);
    /* Frames from a worker to a worker arrive in order, none lost or doubled, as long as both
     * processes live: then engines that need order (PORT_ORDERED) need no lanes. */
    bool ordered;
    /* Frames arrive as they were sent, or not at all: memory, not a network. They carry no
     * checksum, and none is looked at. The same at all nodes. */
    bool intact;
};

/* The hot set of a space whose engine caches keys everywhere (docs/protocols/galene.md). */
struct hot_config {
    bool off;            /* none: every miss goes to the home ([G]'s Base) */
    bool exclusive;      /* a key's home lets one worker touch it ([G]'s Base-EREW) */
    uint32_t cache_keys; /* 0: a thousandth of all keys, at least 64 */
    uint64_t epoch_us;   /* 0: 1 s */
    uint32_t sample;     /* one operation in so many is counted; 0: 16 */
    uint32_t misses_max; /* unanswered forwarded operations of one worker at one node; 0: 256 */
};

/* A space whose objects have owners (ENGINE_OWNED; docs/protocols/zeus.md). */
struct owned_config {
    uint32_t busy_max;   /* objects a worker on which something goes on; past it requests wait; 0:
                          8192 */
    uint32_t quantum_us; /* so long a new owner keeps an object whatever others want; 0: 200 us */
    uint32_t quantum_most_us; /* the same for one that goes back and forth, at the most; 0: 3.2 ms
                               */
    uint32_t window_us; /* an object that comes back this soon goes back and forth; 0: 20 ms */
    uint64_t grace_us;  /* an object that is deleted is forgotten so much later; 0: 10 s */
    uint64_t walk_us;   /* one pass over all entries, for repair and forgetting; 0: 1 s */
};

struct space_config {
    const struct engine_ops *ops; /* NULL: the space does not exist */
    const void *engine;           /* the engine's configuration; must outlive the node */
    bool async_reads;             /* reads are confirmed by a majority instead of a lease; only for
                                     engines that can (ENGINE_CONFIRMS) */
    struct hot_config hot;
    struct owned_config owned;
    struct store_config store;
};

struct node_config {
    uint8_t self;
    uint8_t role;                /* enum node_role: where nodes have roles (ENGINE_TABLES) */
    uint32_t workers;            /* 1 .. WORKERS_MAX */
    uint16_t version_max;        /* newest version of the frames that it takes; 0: FRAME_VERSION */
    uint64_t cluster;            /* id: strangers are told apart */
    uint64_t seed;               /* of back-off, O1, cursors */
    uint32_t calls_max;          /* operations in progress a worker; 0: 4096 */
    uint32_t flows_max;          /* pending updates and replays a worker; 0: 4096 */
    uint32_t sessions_max;       /* open sessions a worker; 0: 1024 */
    uint32_t session_calls_max;  /* unanswered requests a session; 0: 128 */
    uint64_t parked_us;          /* a parked operation prods its key (mlt); 0: 10 ms */
    uint64_t answer_us;          /* no operation stays unanswered longer; 0: 5 s */
    uint64_t no_lease_us;        /* how long an operation waits for a lease; 0: the lease time */
    uint32_t rmw_tries_max;      /* how often a lost RMW is tried again; 0: 64 */
    uint32_t chunk_bytes;        /* of a join's transfer; 0: 64 KiB */
    uint32_t frame_messages_max; /* messages in one frame, outside of lanes; 0: as many as fit.
                                    For comparisons: what gathering them is worth */
    uint64_t sweep_us;           /* one pass of the background sweep over a store; 0: 1 s */
    struct view_config view;     /* self, nonce and configured included */
    struct space_config spaces[SPACES_MAX];
    uint64_t rules_off;      /* HK_MUTANTS builds only: bits of enum node_rule, ... */
    uint64_t view_rules_off; /* ... and of enum view_rule */
};

int node_create(const struct node_config *config, const struct env *env, uint64_t now_us,
                struct node **node_out) __attribute__((warn_unused_result));
/* Answers every open request (HK_ERR_UNKNOWN for updates in flight, HK_ERR_UNAVAILABLE for the
 * rest) through env.reply, then frees everything. */
void node_destroy(struct node *node);

struct worker *node_worker(struct node *node, uint32_t index);

enum poll_flag {
    POLL_WIPE = 1, /* this incarnation was dropped: destroy the node, create a new one with a
                      fresh nonce (docs/protocols/view.md, rule 8) */
    POLL_LEFT = 2, /* the same after worker_leave: the process may exit */
    POLL_LONG = 4, /* large values took long: read the time again before the next poll; what is left
                      waits for it (worker_deadline) */
};

struct poll_result {
    uint32_t events; /* what was handled; 0: idle */
    uint32_t flags;  /* enum poll_flag */
};

/* Handles up to max_events of each kind of input, then flushes what goes out. now_us was read
 * after the inputs arrived (CLOCK_BOOTTIME). */
struct poll_result worker_poll(struct worker *worker, uint64_t now_us, uint32_t max_events);

/* When the worker wants to be polled next although nothing arrives. */
uint64_t worker_deadline(const struct worker *worker);

/* Before sleeping: false if mail has come meanwhile (then poll instead). After sleeping: awake. */
bool worker_sleep(struct worker *worker);
void worker_awake(struct worker *worker);

/* Sessions: one client connection each, on one worker. HK_ERR_FULL past sessions_max. Closing
 * forgets what is unanswered; its updates stay in flight. The worker is awake: what a transaction
 * holds is let go. */
int worker_session_open(struct worker *worker, uint32_t *session_out)
    __attribute__((warn_unused_result));
void worker_session_close(struct worker *worker, uint32_t session);
/* Whether the session (and the worker) can take another request. */
bool worker_session_ready(const struct worker *worker, uint32_t session);

/* Where keys have homes: the operations of other nodes that this worker executes, and its updates
 * that are not decided, whether or not their client is still there. What a node leaves undecided of
 * a cached key is lost for everybody: before worker_leave it lets its updates end, and takes up no
 * more. Where objects have owners: its commits that are not done. On the worker's thread. */
uint32_t worker_under_way(const struct worker *worker);
/* Before worker_leave, where keys have homes: this node wants to be the home of none any more, and
 * serves on meanwhile. Where objects have owners, others get replicas of what this node has
 * (docs/protocols/zeus.md, R18). node_handed_over (any thread): it is, in all such spaces; true
 * also if there are none. Only worker 0. */
void worker_hand_over(struct worker *control);
bool node_handed_over(const struct node *node);
/* Whether all live members have been told to leave, as far as this one knows, which has owned
 * objects: nobody would take them. Any thread. */
bool node_nobody_stays(const struct node *node);
/* The operator gives up what lost slots of a space held, whose keys have homes (forgotten if the
 * view changes before it is done), or its lost objects, where they have owners. Only worker 0. */
void worker_empty_lost(struct worker *control, uint32_t space);

/* SIGTERM: serves nothing more and asks to be dropped. */
void worker_leave(struct worker *control);
/* The operator's new configured set. Only worker 0. */
void worker_configure(struct worker *control, nodeset configured);
/* The operator says that only these of the configured nodes are left. Only worker 0. */
void worker_recover(struct worker *control, nodeset survivors);

/* Keys of a space that exist here (no tombstones, nothing past its deadline by env.wall_ms; where
 * keys have homes, those whose home this node is or is about to be; where they have owners, those
 * that this node owns): emits
 * those of one bucket, or of a few as long as they are empty, and returns the next cursor; 0 is
 * both the start and the end, and the answer for a space that does not exist. Every key that exists
 * during a whole walk is emitted at least once. emit runs under the bucket's lock and may not touch
 * the node. The one function that may also be called from within env.request. */
typedef void worker_key_fn(void *context, struct bytes key);
uint64_t worker_walk(struct worker *worker, uint32_t space, uint64_t cursor, worker_key_fn *emit,
                     void *context);

/* The keys of a space that clients of this node ask for the most: at most count (up to
 * NODE_HOTKEYS_MAX) of them, the hottest first, and how many operations a second each takes: at
 * least that, from a random sample of hot_config.sample (docs/HOTSET.md). now_us: the clock as in
 * worker_poll. emit may not touch the node. Any thread, also from within env.request.
 * HK_ERR_INVALID: no such space, or count is too large; HK_ERR_NOMEM. */
#define NODE_HOTKEYS_MAX 128u
typedef void node_hotkey_fn(void *context, struct bytes key, uint64_t rate);
int node_hotkeys(struct node *node, uint32_t space, uint64_t now_us, uint32_t count,
                 node_hotkey_fn *emit, void *context) __attribute__((warn_unused_result));

/* What this node knows of an object of a space whose objects have owners (docs/protocols/zeus.md):
 * its entry, if the node is a directory node or has a replica, and its data, if it has that. */
struct owned_object {
    nodeset directory;        /* by the worker's view */
    struct own_entry entry;   /* ts 0: none */
    struct own_vector vector; /* the entry's, of which only live nodes are left */
    uint32_t degree;          /* replicas that it shall have */
    bool lost;                /* all that had it are gone, until the operator gives it up */
    bool have;                /* data is here: */
    struct key_meta meta;     /* docs/protocols/zeus.md; engine/zeus/zeus.h */
};
/* HK_ERR_INVALID: no such space, or the key is too long. Entry and data are looked at one after the
 * other, so of an object that is just moving they may not fit. May also be called from within
 * env.request. */
int worker_owned_object(struct worker *worker, uint32_t space, struct bytes key,
                        struct owned_object *object_out) __attribute__((warn_unused_result));
/* If this node owns the object, it asks for another degree (replicas; 0: the space's), once;
 * worker_owned_object tells when it is so. The next walk adds readers or trims them.
 * HK_ERR_INVALID: no such space, the key is too long, or the degree is above NODES_MAX. May also
 * be called from within env.request. */
int worker_owned_degree(struct worker *worker, uint32_t space, struct bytes key, uint32_t degree)
    __attribute__((warn_unused_result));

enum node_drop {
    NODE_DROP_GENERATION, /* frame of another generation of the cluster */
    NODE_DROP_SENDER,     /* from a process that is no member of the view */
    NODE_DROP_MESSAGE,    /* a message that does not decode, or that the engine calls invalid */
    NODE_DROP_SPACE,      /* a space that is not configured here */
    NODE_DROP_MEMORY,     /* no memory for a follower's value, even with headroom */
    NODE_DROP_CHUNK,      /* a chunk that nobody waits for, or a request for one in a wrong epoch */
    NODE_DROP_EARLY,      /* of a newer epoch, and no room to keep it until that is adopted */
    NODE_DROP_LANE,       /* a lane frame whose head is wrong, or not of the lane that is */
    NODE_DROP_AHEAD,      /* of a lane, and too far ahead to be kept; it will be sent again */
    NODE_DROPS
};
extern const char *const node_drop_names[NODE_DROPS];

#define HOMED_KINDS 24u
#define OWNED_KINDS 40u /* of ownership and of reliable commit */

struct node_stats {
    uint64_t frames_in, frames_out, messages_in, messages_out, bytes_in, bytes_out;
    uint64_t key_steps, flow_steps; /* of the engines' machines */
    uint64_t reads, updates, parked, other_flows, retries, unknown, unavailable;
    uint64_t asks; /* reads for whose answer an engine asked another node */
    uint64_t chunks_in, chunk_items;
    uint64_t lane_again, lane_early, lane_duplicates; /* frames of lanes: sent once more; kept until
                                                         it is their turn; consumed before */
    /* Of spaces whose keys have homes. Operations of clients here: on keys that are cached on all
     * nodes, on keys whose home this node is, and sent to another node (or worker) for their home
     * (of them, by the old home to the new one: handed). */
    uint64_t hits, at_home, misses, handed;
    uint64_t forwarded_in, sent_on; /* calls of others: executed here; sent to yet another node */
    uint64_t answers_in;            /* to calls from here, ... */
    uint64_t answers_again;         /* ... of those: nothing was done, start anew */
    uint64_t answers_late;          /* to calls that are gone */
    uint64_t credit_waits;          /* calls that waited for an earlier one's answer to be sent */
    uint64_t credit_excess;         /* calls of others beyond what they may have unanswered */
    uint64_t moves, purged, move_passes; /* keys on their way to another home, to the end of one
                                            stretch of it; keys of slots that the operator gave up;
                                            walks over the store for either */
    /* The hot set (docs/HOTSET.md): keys in it, as the leader said last; and the leader's own: keys
     * that entered and left, epochs. */
    uint64_t hot_keys, hot_enters, hot_leaves, hot_epochs;
    uint64_t lost_slot; /* operations that ended with HK_ERR_LOSTSLOT, or HK_ERR_LOST */
    uint64_t call_messages, call_bytes, answer_messages, answer_bytes; /* sent */
    uint64_t homed_messages[HOMED_KINDS], homed_bytes[HOMED_KINDS]; /* sent, by the engine's kind;
                                                                       the last: that and higher */
    /* Of spaces whose objects have owners (docs/protocols/zeus.md). */
    uint64_t own_counts[OWN_COUNTERS]; /* of the machine */
    uint64_t own_wants, own_waits;     /* levels that were asked for; that took a wait */
    uint64_t own_refused;              /* of them: too many objects were busy */
    uint64_t own_full;                 /* messages that found no record left */
    uint64_t own_held;                 /* quanta that an owed ACK waited for */
    uint64_t own_queued;               /* requests that waited for their turn at a driver */
    uint64_t own_pushed;               /* entries sent to new directory nodes */
    uint64_t own_invites, own_trims, own_destroyed; /* begun by walks */
    uint64_t own_lost;                              /* lost objects that the last whole pass met */
    uint64_t own_poor, own_walked; /* objects with too few replicas that the last whole pass met,
                                      and the epoch that it began in */
    uint64_t own_records, own_records_most; /* busy records now, and at the most */
    /* Transactions: read-only ones; local commits that took a slot; those that a watch ended; that
     * ended busy; times that one waited, and that it had lost a level again when it was its
     * turn. */
    uint64_t txn_commits_ahead; /* of txn_commits: on their clients' own threads */
    uint64_t txn_reads, txn_commits, txn_conflicts, txn_aborts, txn_waits, txn_retries;
    /* Of spaces whose rows are in tables (docs/protocols/lotus.md), at coordinators: transactions
     * that have taken effect, their tries; requests sent, of them whole transactions; items, and
     * hints that went along and that were right. Tries that failed: txn_aborts. The most of one
     * transaction (of a worker; the sum of these says nothing). */
    uint64_t lotus_tries_most;
    uint64_t lotus_transactions, lotus_tries, lotus_requests, lotus_whole, lotus_items;
    uint64_t lotus_hints, lotus_hints_good;
    uint64_t lotus_batches, lotus_batched; /* across transactions; requests in them */
    uint64_t owned_messages[OWNED_KINDS], owned_bytes[OWNED_KINDS]; /* sent, by the engine's kind */
    /* Memory servers (docs/protocols/lotus.md): requests of transactions of several servers, and
     * of this one alone; items, those that waited; tries that ended with a word that is not
     * LOTUS_OK, by that word; PREPAREs, commits, those without a PREPARE; leases that were over,
     * expired rows that were deleted, hints that were given and were of use. The last: tries that
     * are in doubt, outcomes that are kept, as of now. */
    uint64_t home_executes, home_wholes, home_items, home_waits;
    uint64_t home_refused[LOTUS_WORDS];
    uint64_t home_prepares, home_commits, home_commits_alone;
    uint64_t home_read, home_written; /* rows: values that were handed out, and written */
    uint64_t home_leases, home_expired, home_hints, home_hints_good;
    uint64_t home_doubts, home_outcomes;
    /* Where rows can be far: values asked for, values stored, rows let go that were in a cell,
     * cells that were stored for nothing, those that nobody took, rows that were lost. */
    uint64_t far_fetches, far_stores, far_clean, far_wasted, far_refused, far_lost;
    uint64_t frame_drops[FRAME_DROPS], engine_drops[ENGINE_DROPS], node_drops[NODE_DROPS];
};
/* Sums the workers' counters as of their last polls. */
void node_stats(const struct node *node, struct node_stats *stats_out);
/* One worker's counters as they stand, also in the midst of a poll. On its own thread only. */
const struct node_stats *worker_stats(const struct worker *worker);

/* A copy of the newest decided view, its lease and the node's status. Any thread. */
struct node_status {
    struct view view;
    enum view_status status;
    uint64_t lease_until_us;
    uint32_t epoch_adopted; /* all workers are in this epoch */
};
void node_status(const struct node *node, uint64_t now_us, struct node_status *status_out);

/* Which node is the home of which slot of a space, as this node's map says: HASH_SLOTS entries, of
 * two maps if it changes meanwhile. version_out: of the map, 0: there is none yet. False: keys of
 * this space have no homes. Any thread. */
bool node_homes(const struct node *node, uint32_t space, struct slot_home *homes_out,
                uint64_t *version_out) __attribute__((warn_unused_result));

/* The store of a space: for tests and the simulator's comparison of replicas. */
struct store *node_store(struct node *node, uint32_t space);
/* Keys and memory of a space here; rows are keys, and ghosts tombstones. False: there is no such
 * space. Any thread. */
bool node_space_stats(struct node *node, uint32_t space, struct store_stats *stats_out);
struct store_thread *worker_store_thread(struct worker *worker, uint32_t space);
/* How often the worker has looked for a key or an entry of a space (store_thread_looks): what
 * transactions do is counted by it. On its own thread only, also in the midst of a poll. */
uint64_t worker_looks(const struct worker *worker, uint32_t space);

/* Of a space whose objects have owners, likewise: the store of entries (NULL: there is none), and
 * what a node knows of one object. The threads are registered with the two stores and offline. No
 * worker may be in a poll. */
struct owned_look {
    struct own_entry entry; /* ts 0: none */
    struct own_busy busy;   /* what is going on */
    struct key_meta meta;   /* of the data, ... */
    bool have;              /* ... if there is any */
    nodeset directory;      /* by the view that worker 0 has adopted */
};
struct store *node_directory(struct node *node, uint32_t space);
void node_owned_look(struct node *node, uint32_t space, struct store_thread *data,
                     struct store_thread *entries, struct bytes key, struct owned_look *look_out);
/* Slots of the pipelines of such a space on all workers. */
struct pipes_look {
    uint32_t held, sent, part;    /* own; part: SENT, and some have ACKed */
    uint32_t stored;              /* followed, the coordinator lives */
    uint32_t replay, replay_part; /* the same, it is dead */
};
void node_pipes_look(struct node *node, uint32_t space, struct pipes_look *look_out);

/* Of a space whose rows are in tables, when nothing is under way: NULL, or what is not as it must
 * be: an invariant of the table, a lock that somebody has, a row that belongs elsewhere. The thread
 * is registered with the space's store, and online. No worker may be in a poll. */
const char *node_table_check(struct node *node, uint32_t space, struct store_thread *thread);

/* The home of a slot of a space whose keys have homes, by this node's map, and that map's version;
 * 0: it has none yet. Any thread. */
struct slot_home node_home(const struct node *node, uint32_t space, uint32_t slot);
uint64_t node_map_version(const struct node *node, uint32_t space);
/* Whether nobody could take lost slots of such a space, by what this node's map says: all members
 * only compute, or leave (docs/protocols/slots.md, S16). worker_empty_lost does nothing then. Any
 * thread. */
bool node_no_taker(const struct node *node, uint32_t space);

/* What a memory server has of such a space, and what became of requests for locks there. */
struct lotus_table_stats {
    uint64_t rows, ghosts; /* entries of the index */
    uint64_t locks;        /* names that somebody owns or waits for */
    uint64_t requests;     /* owners and waiters */
    uint64_t granted, waited, died, wounded, looked_again, hints_good, hints_stale;
    uint64_t near_rows, near_bytes; /* where rows can be far: values that are here, ... */
    uint64_t cells, cell_bytes;     /* ... and cells of others */
};
/* Any thread. False: the space's rows are in no tables. */
bool node_table_stats(const struct node *node, uint32_t space, struct lotus_table_stats *stats_out);

/* Who owns and who waits for which lock at this memory server, in a space whose rows are in tables
 * (docs/protocols/lotus.md): calls `each` for every request of up to `most` locks, those of a lock
 * one after the other, owners and waiters. `each` may not touch the node: the lock is latched. A
 * moment's truth of each lock, not of all. Any thread. HK_ERR_INVALID: no such space. */
struct node_lock {
    bool gap;            /* the interval below the key, and not the row */
    bool infinite;       /* the one behind the last row: no key */
    struct bytes key;    /* good during the call only */
    uint8_t mode;        /* enum lock_mode: that it owns, or waits for ... */
    uint8_t state;       /* ... as enum lock_state says */
    uint8_t try_state;   /* enum try_state, of the whole try at this server */
    uint8_t coordinator; /* its node, ... */
    uint8_t worker;      /* ... and worker there */
    struct lock_age age; /* of the transaction: less is older */
    uint64_t id;         /* of the try, for node_kill */
};
typedef void node_lock_fn(void *context, const struct node_lock *lock);
int node_locks(struct node *node, uint32_t space, uint32_t most, node_lock_fn *each, void *context)
    __attribute__((warn_unused_result));
/* Ends a try that is not prepared, as an older transaction may: its coordinator begins another one.
 * Any thread. HK_ERR_INVALID: no such space; HK_ERR_NOTFOUND: it is over; HK_ERR_CONDITION: it is
 * prepared, and ends with its outcome only. */
int node_kill(struct node *node, uint32_t space, uint64_t id) __attribute__((warn_unused_result));

/* Asserts the invariants of everything that this worker holds, and of the view machine on worker
 * 0 (after every poll in simulation). */
void worker_check(const struct worker *worker);

/* Rules that a HK_MUTANTS build can switch off (node_config.rules_off). */
enum node_rule {
    NODE_RULE_LEASE,         /* operations are taken up only under a lease */
    NODE_RULE_LEASE_ANSWER,  /* "done" is said only under a lease */
    NODE_RULE_ORDER,         /* a session's commands on one key take effect in its order */
    NODE_RULE_BARRIER,       /* an RMW is a barrier for later updates of its session */
    NODE_RULE_COPY_FIRST,    /* a shadow says COPIED only when every chunk came */
    NODE_RULE_DONOR_EPOCH,   /* donors answer only in their epoch */
    NODE_RULE_RETRY_DECIDED, /* an update is tried again only when it is certainly lost */
    NODE_RULE_FORWARD_ONCE,  /* F2: a forwarded update whose holder is gone is not sent anew */
    NODE_RULE_HANDED_MAP,    /* F3: a handed call is executed only if no newer map knows better */
    NODE_RULE_MOVING_GATE,   /* F3: the old home makes no entry for a key that may have moved */
    NODE_RULES
};
extern const char *const node_rule_names[NODE_RULES];

#endif
