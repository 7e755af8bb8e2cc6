/* Inside the server: one process around one node. docs/SERVER.md tells of its threads, the life of
 * a client and the life of the node.
 *
 * What is shared between threads is either atomic, or under a lock that is named here, or changes
 * only while every worker's thread stands at a meeting (wipe.c). Everything else of a worker
 * belongs to its thread. */
#ifndef HORKOS_SERVER_INTERNAL_H
#define HORKOS_SERVER_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <jansson.h>

#include "base/list.h"
#include "base/random.h"
#include "net/gate.h"
#include "net/loop.h"
#include "net/port.h"
#include "node/engines.h"
#include "node/node.h"
#include "resp/conn.h"
#include "server/config.h"
#include "server/log.h"
#include "server/places.h"
#include "server/registry.h"
#include "server/server.h"
#include "server/slowlog.h"

#define POLL_EVENTS 256u /* of each kind in one poll of the node */
#define POLLS_MAX 8u     /* polls of the node in one round, while clients have more to ask */
#define TURN_OPS 32u     /* operations of one client before the next one's turn */
#define ROUND_BYTES_MAX (1u << 20) /* values that are handed to the node in one round */
#define QUEUED_MAX (1u << 20)      /* replies that wait for a client: past it, it is not served */
#define CLIENT_LINGER_US 1000000u  /* to bring out the last replies */
#define SPEED_SAMPLE_US 500000u    /* between two samples of the commands' rate */
#define RUN_ID_BYTES 40u

struct server;
struct server_worker;
struct locals;
struct local_inbox;
struct local_session;

/* ---- Clients (client.c); a client belongs to one worker ---- */

struct client {
    struct server_worker *worker;
    struct list_link link;    /* in worker.clients */
    struct list_link run;     /* in worker.runnable, later or held; or in none */
    struct list_link touched; /* in worker.touched: its output, memory and pauses need a look */
    struct list_link asleep;  /* in worker.sleepers: it has a deadline */
    struct stream *stream;
    struct resp_conn *conn;
    struct registry_entry *entry;
    uint64_t id;
    uint64_t memory;    /* as counted in server.clients_memory */
    uint64_t commands;  /* as counted in worker.commands */
    uint64_t active_us; /* bytes came, an operation was answered, or replies were read */
    uint32_t session;
    uint32_t turn; /* operations since its turn began */
    bool waiting;  /* goes on when an operation is answered */
    bool paused;   /* receives nothing */
    bool stalled;  /* too much output waits: it is not served */
    bool ended;    /* sends nothing more; goes when all is served */
    bool closing;  /* its connection says that it is over */
};

/* A client that the gate hands to a worker. */
struct newcomer {
    struct newcomer *next;
    int fd;
    char address[GATE_ADDRESS_MAX];
    char local[GATE_ADDRESS_MAX];
};

/* ---- Configuration that may change at run time, as each worker reads it ---- */

struct settings {
    struct resp_limits limits;
    int64_t slowlog_us;
    uint64_t clients_memory_max;
    uint32_t timeout_s;
    uint32_t spin_us;
    uint32_t leave_ms;
    uint32_t handover_ms;
};

/* ---- A worker's thread (worker.c) ---- */

struct server_worker {
    struct server *server;
    uint32_t index;
    pthread_t thread;
    struct loop *loop;
    struct port *port;
    struct worker *node; /* its half in the node; another one after a meeting */
    struct resp_host host;
    struct settings settings;
    uint32_t settings_version;
    struct random random;
    uint64_t now_us;  /* of the round */
    uint64_t wall_ms; /* of the round */
    uint64_t busy_us; /* when something happened last */
    uint64_t idle_check_us;
    struct node_status status; /* as of status_us */
    uint64_t status_us;
    bool status_fresh; /* read in this round */
    uint32_t epoch_seen;
    bool updates;          /* new updates may be handed to the node at the moment */
    uint64_t handed_bytes; /* of values, in this round */
    uint32_t asked;        /* how often the node asked for a request, in this poll */
    uint32_t in_flight;    /* operations that the node has and has not answered */

    struct list_link clients;
    struct list_link runnable; /* have something to do, the next turn first */
    struct list_link later;    /* did a slice of long work: runnable in the next round */
    struct list_link held;     /* wait until updates are taken again */
    struct list_link touched;
    struct list_link sleepers;
    struct client **by_session;

    /* Sessions of this process's threads (local.c); NULL without them. */
    struct local_inbox *local_inbox;
    struct local_session **local_by_session;
    struct list_link locals;
    struct list_link locals_touched;
    struct list_link locals_held;
    uint32_t locals_until;   /* requests before this position came before now_us was read */
    uint64_t locals_idle_us; /* worker 0: when it looked for idle ones */
    bool locals_first;       /* whose turn to ask for a request it is */

    pthread_mutex_t inbox_lock;
    struct newcomer *inbox;  /* newest first */
    _Atomic bool inbox_full; /* not empty; release after the push, acquire before the pop */

    /* Read by other threads; relaxed, nobody's signal but for in_flight_told. */
    _Atomic uint64_t commands;
    _Atomic uint32_t clients_n;      /* those on their way in the inbox included */
    _Atomic uint32_t in_flight_told; /* release; LEAVE_DRAINING's count plus one, 0: not told yet */

    int start_error; /* HK_OK, or why loop or port could not be made */
    int start_errno;
};

/* ---- The process ---- */

/* docs/SERVER.md, "The life of a node". Moves forward only. */
enum server_phase {
    SERVER_RUNNING,
    SERVER_HANDING,  /* told to stop: serves on while its slots go to other nodes, or its
                        objects get replicas there */
    SERVER_DRAINING, /* told to stop: updates under way end, new ones wait */
    SERVER_LEAVING,  /* has given its lease up, waits to be dropped from the view */
    SERVER_STOPPING, /* clients are answered and closed, threads end */
};

/* How far start and end are. */
enum server_stage {
    SERVER_STARTING, /* workers make their loops and ports */
    SERVER_GOES,     /* ... and serve */
    SERVER_FAILED,   /* something is missing: threads end */
    SERVER_ENDING,   /* nobody offers connections any more: loops and ports may go */
};

struct server {
    struct config config; /* as the node was started; does not change any more */
    struct config live;   /* as CONFIG SET left it; under config_lock */
    pthread_rwlock_t config_lock;
    _Atomic uint32_t config_version; /* release after a change; workers take over their settings */
    struct server_options options;
    struct log *log;
    struct registry *registry;
    struct slowlog *slowlog;
    struct places *places;
    struct gate *gate; /* under gate_lock until the gate's first callback returns */
    pthread_mutex_t gate_lock;
    int state_lock_fd;
    int events_fd; /* eventfd: wakes the supervisor */
    int signals_fd;
    _Atomic uint32_t stop_signals;
    uint64_t started_us;
    uint64_t started_wall_ms;
    char run_id[RUN_ID_BYTES + 1];

    /* Changes only while all workers meet. */
    struct node *node;
    struct node_config node_config;
    union engines_config engines[SPACES_MAX];
    struct env env;
    uint64_t kept_generation; /* of the state file; worker 0's */
    uint32_t kept_epoch;

    struct server_worker *workers; /* workers_n of them */
    uint32_t workers_n;
    uint32_t threads_n;     /* threads that were started */
    pthread_barrier_t meet; /* of the workers */
    _Atomic bool meeting;   /* worker 0 calls all workers together to renew the node */
    pthread_mutex_t stage_lock;
    pthread_cond_t stage_changed;
    enum server_stage stage; /* under stage_lock, as is ... */
    uint32_t threads_up;     /* ... how many have their loop and port, or could not */
    struct locals *locals;   /* NULL: no sessions of this process's threads */

    _Atomic uint32_t phase;      /* enum server_phase */
    _Atomic bool stop_wanted;    /* by a signal or a client */
    _Atomic bool stop_now;       /* without leaving */
    _Atomic bool broken;         /* the node could not be made anew */
    _Atomic uint64_t recover;    /* nodeset that the operator named; 0: nothing to do */
    _Atomic uint32_t empty_lost; /* bit n: the operator gives up what lost slots of space n held */
    _Atomic uint32_t workers_done;

    _Atomic uint64_t next_client_id;
    _Atomic uint32_t clients_n;
    _Atomic uint32_t clients_max;
    _Atomic uint64_t clients_memory;
    _Atomic uint64_t clients_received, clients_refused, clients_overfull;
    _Atomic uint64_t memory_logged_us; /* when a client closed for memory was last logged */
    _Atomic uint64_t commands_before;  /* CONFIG RESETSTAT: what does not count any more */
    _Atomic uint64_t received_before, refused_before;
    _Atomic uint64_t speed; /* commands a second, as of the last sample */
    _Atomic uint32_t wipes;

    /* Worker 0's (control.c). */
    enum view_status told_status;
    enum view_status locals_status; /* as local sessions' threads were told */
    uint32_t told_epoch;
    nodeset told_live;
    nodeset asked_missing; /* configured here, not in the view; asked for in asked_epoch */
    uint32_t asked_epoch;
    bool told_any;
    uint64_t refusing_us; /* since when it refuses; 0: it does not */
    uint64_t joining_us;  /* since when it joins; 0: it does not */
    uint64_t leave_until_us;
    uint64_t drain_until_us; /* from then on what is not drained does not count */
    bool leave_alone;        /* there is nobody else in the view */
    uint64_t lost_look_us;
    uint32_t told_lost; /* slots */
    uint64_t lost_objects_look_us, told_lost_objects;
    uint64_t hand_until_us; /* SERVER_HANDING */
    uint64_t hand_able_us;  /* when the others could last do without this node */
    uint64_t hand_look_us;  /* when it looks again how many slots are left */
    uint64_t hand_told_us;  /* when it last told the log, ... */
    uint32_t hand_told;     /* ... and how many there were */
    uint64_t speed_us;
    uint64_t speed_commands;
};

/* ---- setup.c: from the configuration to what the parts below are made with ---- */

/* NULL, or why no node can be made of it (in error, size bytes). */
const char *server_setup_node(struct server *s, char *error, uint32_t size);
void server_setup_env(struct server *s);
/* A fresh process of the node: nonce and seeds; the state that was kept. */
void server_setup_incarnation(struct server *s);
void server_setup_gate(struct server *s, struct gate_config *gate_out);
/* The configuration has changed: workers take it over. Under config_lock, or before they run. */
void server_setup_apply(struct server *s);
void server_settings_read(struct server *s, struct settings *settings_out);

/* ---- server.c ---- */

/* Waits until start or end have come past `stage`; returns how far they are. */
enum server_stage server_await(struct server *s, enum server_stage stage);

/* ---- worker.c ---- */

void *server_worker_main(void *worker);
void server_wake_all(struct server *s);
/* The node's status in this round. */
const struct node_status *server_status(struct server_worker *w);

/* ---- client.c ---- */

/* On the gate's thread: takes over the socket. */
void server_client_arrived(void *server, int fd, const char *address, const char *local);
/* False: no memory. */
bool clients_init(struct server_worker *w) __attribute__((warn_unused_result));
void clients_deinit(struct server_worker *w);
/* Bytes of values that an operation, or a transaction, brings with it. */
uint64_t server_request_bytes(const struct request *request);
/* Takes up what arrived. */
void clients_adopt(struct server_worker *w);
/* The next request for the node, of the clients in turn. */
bool clients_request(struct server_worker *w, struct request *request_out);
void clients_reply(struct server_worker *w, const struct reply *reply);
/* Clients whose time has come, at the start of a round; CLIENT KILL; idle ones. */
void clients_due(struct server_worker *w);
/* After the polls: output goes to the streams, limits are looked after, who is over is closed. */
void clients_flush(struct server_worker *w);
/* When clients want a round although nothing happens. */
uint64_t clients_deadline(const struct server_worker *w);
/* After a meeting: sessions in the new node; or, without a node, an answer to all that came. */
void clients_reopen(struct server_worker *w);
void clients_refuse(struct server_worker *w);
/* Brings the output out under a bound, then closes everybody. */
void clients_close(struct server_worker *w);

/* ---- local.c: sessions of this process's threads. All but locals_release on the worker's thread;
 * without s->locals they do nothing ---- */

/* HK_ERR_NOMEM. Once workers and node are there. */
int locals_create(struct server *s) __attribute__((warn_unused_result));
/* The server's part is over; sessions may still be open. Any thread. */
void locals_release(struct locals *locals);
/* At a meeting, worker 0: no thread looks at the node any more; for good if it is the end. */
void locals_detach(struct server *s, bool end);
void locals_attach(struct server *s);
/* The node's status has changed: who waits for that looks. */
void locals_tell(struct server *s);
/* The same as the functions of clients. */
void locals_adopt(struct server_worker *w);
/* Only of those that had come when locals_look was called. */
bool locals_request(struct server_worker *w, struct request *request_out);
/* To be called right before the time is read. A lease that is valid at that time may have run out
 * by the time of a request that came later, so that one waits for the next look. Whether there is
 * one that the last look did not see. */
bool locals_look(struct server_worker *w);
/* False: it is no session of ours. */
bool locals_reply(struct server_worker *w, const struct reply *reply);
void locals_flush(struct server_worker *w);
void locals_reopen(struct server_worker *w);
void locals_refuse(struct server_worker *w);
/* Whether locals_request would find something, after another look. */
bool locals_waiting(const struct server_worker *w);
/* Worker 0, once a round. */
void locals_idle(struct server_worker *w);

/* ---- host.c ---- */

void server_host_init(struct server_worker *w);

/* ---- info.c ---- */

void server_info_line(struct resp_out *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* A counter of struct node_stats, by the name that people see. */
struct server_figure {
    const char *name;
    size_t offset;
};
void server_figures_lines(struct resp_out *text, const struct node_stats *stats,
                          const struct server_figure *figures, size_t n);
/* Adds them to an object. */
void server_figures_json(json_t *to, const struct node_stats *stats,
                         const struct server_figure *figures, size_t n);
bool server_info(void *worker, const char *section, struct resp_out *text);
const char *const *server_info_sections(void *worker, bool all);
uint64_t server_commands(const struct server *s);
void server_stats_reset(void *worker);

/* ---- status.c ---- */

bool server_horkos(void *worker, uint32_t space, uint32_t n, const struct bytes *args,
                   struct resp_out *out);
void server_port_stats(const struct server *s, struct port_stats *sum_out);
/* "operational", "shadow", or "none". */
const char *server_role(const struct view *view, uint8_t node);
/* The view as this process may tell of it: if its node's member is another process, one before it,
 * that one is dead, although the others have not dropped it yet. */
struct view server_view_of(const struct view *view, uint8_t self, uint64_t nonce);
/* Why these survivors do not fit, in a sentence; NULL: they do. */
const char *server_recover_invalid(const struct node_status *status, uint8_t self,
                                   nodeset configured, nodeset survivors);

/* ---- owned.c: spaces whose objects have owners ---- */

/* INFO's section, and the same figures as JSON. */
void server_owned_info(struct server_worker *w, struct resp_out *text);
json_t *server_owned_json(const struct node_stats *stats);
/* How many nodes have every acknowledged write of it, the owner counted. */
uint32_t server_owned_replicas(const struct server *s, uint32_t space, nodeset operational);
/* Whether there is such a space. */
bool server_any_owned(const struct server *s);

/* ---- tables.c: spaces whose rows are in ordered tables ---- */

/* INFO's section, and the same figures of the node as JSON. */
void server_tables_info(struct server_worker *w, struct resp_out *text);
json_t *server_tables_json(const struct node_stats *stats);
/* Whether there is such a space. */
bool server_any_ordered(const struct server *s);
/* HORKOS LOCKS [space], HORKOS KILL id [space]: n arguments behind the subcommand. */
void server_reply_locks(struct server_worker *w, uint32_t selected, uint32_t n,
                        const struct bytes *args, struct resp_out *out);
void server_reply_kill(struct server_worker *w, uint32_t selected, uint32_t n,
                       const struct bytes *args, struct resp_out *out);

/* ---- homed.c: spaces with a map of slots, and those whose keys have homes ---- */

/* INFO's section, and the same figures as JSON. */
void server_homed_info(struct server_worker *w, struct resp_out *text);
json_t *server_homed_json(const struct node_stats *stats);
/* Whether there is such a space; one with a map of slots. */
bool server_any_homed(const struct server *s);
bool server_any_mapped(const struct server *s);
/* Slots whose home this node is, of all spaces. */
uint32_t server_slots_here(const struct server *s);
/* Slots that are lost, of all spaces. */
uint32_t server_slots_lost(const struct server *s);

void server_reply_slots(struct server_worker *w, uint32_t n, const struct bytes *args,
                        struct resp_out *out);
void server_reply_empty_lost(struct server_worker *w, struct bytes space, struct resp_out *out);
/* What HORKOS STATUS tells of a space with a map of slots: adds to its object. */
void server_add_slots(const struct server *s, uint32_t space, json_t *to);
/* HORKOS OBJECT. */
void server_reply_object(struct server_worker *w, uint32_t space, struct bytes key,
                         struct resp_out *out);
/* HORKOS DEGREE. */
void server_reply_degree(struct server_worker *w, uint32_t space, struct bytes key,
                         struct bytes degree, struct resp_out *out);
/* {"epoch", "change"} of a map's version. */
json_t *server_map_json(uint64_t version);
/* A space's number in decimal. */
bool server_space_parse(struct bytes text, uint32_t *space_out);
/* Whether keys of the space have homes; whether it has a map of slots. */
bool server_space_homed(const struct server *s, uint32_t space);
bool server_space_mapped(const struct server *s, uint32_t space);
/* Why a space has no slots, in text; NULL: it has. */
const char *server_slots_refused(const struct server *s, uint32_t space, char text[128]);

/* ---- control.c: worker 0's duties around its polls ---- */

/* flags: of the polls of this round. */
void control_round(struct server_worker *w, uint32_t flags);
/* The operator gives up what lost slots of that space held. Any thread. */
void server_empty_lost(struct server *s, uint32_t space);
/* Asks for a stop: now without leaving. Any thread. */
void server_stop(struct server *s, bool now);
/* Whether the members that remain without `self` could decide a view. */
bool server_may_leave(const struct view *view, uint8_t self);

/* ---- wipe.c ---- */

/* All workers, when server.meeting is set: the node is destroyed and made anew. */
void server_meet(struct server_worker *w);
/* All workers, when the server stops: the node is destroyed, which answers what it still holds. */
void server_end_node(struct server_worker *w);

#endif
