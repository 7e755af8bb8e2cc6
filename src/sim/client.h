/* Clients: sessions with workers of any node, their operations, and what they learn of the outcome.
 * Times in a history are steps of the simulation: an operation begins when a worker takes it and
 * ends when its answer leaves the process. That is tighter than what a client across a network
 * could see, so the checkers see more. */
#ifndef HORKOS_SIM_CLIENT_H
#define HORKOS_SIM_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "check/history.h"
#include "engine/op.h"
#include "node/node.h"
#include "resp/conn.h"
#include "sim/calendar.h"
#include "sim/machine.h"
#include "sim/setup.h"
#include "sim/value.h"

struct world;

enum sim_op_state {
    SIM_OP_QUEUED, /* at its worker, which has not seen it */
    SIM_OP_TAKEN,
    SIM_OP_ANSWERED, /* by a poll whose output is not out yet */
    SIM_OP_OVER,
};

/* What a sequential reading of the client's own key expects of an operation. */
struct forecast {
    bool given;
    bool ok;
    uint32_t life; /* of the client's private key; another one: says nothing */
    int64_t out;
};

/* One operation on one key. A command over several keys is several of them, its parts, one after
 * the other in every list; the first one carries the bytes. */
struct sim_op {
    struct history_op h;
    struct op op;     /* as it is asked for, or as the command should turn out */
    uint8_t *bytes;   /* key, value and argument of op; freed once the worker may not read them */
    uint8_t *command; /* of a client that speaks, until it is said */
    uint32_t command_n;
    uint16_t phrase; /* index in phrases */
    uint8_t part, parts;
    uint8_t replies;  /* quiet: that are still to come */
    int64_t number;   /* that the node answered, before it was spoken */
    uint64_t version; /* likewise: the timestamp of what was read or written */
    uint32_t client;
    uint32_t connection; /* of the client */
    uint32_t key;        /* index of a sim_key */
    uint32_t next;
    uint32_t carrier;  /* replied: the operation with whose answer the reply leaves; NO_OP: none */
    uint32_t before;   /* the operation before it on the same connection, if that was still under
                            way; else NO_OP */
    uint32_t epoch;    /* that its node was in when it took the operation */
    uint64_t begin_us; /* virtual */
    uint64_t taken_us; /* when its node took it; 0: not yet */
    uint64_t arrived_step;
    enum sim_op_state state;
    bool extra;   /* only the form of its answer is checked: no history holds it */
    bool quiet;   /* its command asks for no operation */
    bool weak;    /* its answer says nothing that a history could hold */
    bool said;    /* its command was fed to the connection */
    bool replied; /* the reply to its command has come */
    bool left;    /* its own answer has left the process */
    bool hidden;  /* another part of its command failed: its client never hears of it */
    int err;      /* of the answer */
    struct forecast forecast;
};

struct client {
    uint32_t id;
    uint8_t machine;
    uint32_t worker;
    uint32_t session;       /* SESSION_NONE: not open yet */
    bool embedded;          /* a thread of the process itself: operations, not commands */
    struct resp_conn *conn; /* NULL: no session, or embedded */
    uint32_t connection;    /* rises with each reconnect */
    uint32_t heard;         /* bytes of its connection's output that were understood */
    uint32_t window;
    uint32_t ring[WINDOW_MAX]; /* its operations under way, oldest first */
    uint32_t ring_first, ring_n;
    uint32_t quota;       /* operations that it still has to do */
    uint32_t tries;       /* failures that may still be made good */
    uint64_t patience_us; /* waits no longer for an answer; 0: for ever */
    uint64_t backoff_until_us;
    bool scheduled;
    bool ready;  /* its session can take an operation */
    bool moving; /* asks for nothing more here, and then goes elsewhere */
    bool reader; /* reads every key once, at the end */
    uint32_t next_key;
    uint32_t ok_calm; /* successes since faults ended */
    uint32_t doubt;   /* a key of which it does not know what became of its last update; NO_OP */
    uint32_t private_key;
    uint32_t life; /* of the private key */
    int64_t private_value;
    bool private_lasts; /* it has no deadline */
};

/* A connection that is closed while its worker is held up in a poll, in which it may still read the
 * connection's input. */
struct closed {
    struct resp_conn *conn;
    uint8_t machine;
    uint32_t worker;
};

struct clients {
    struct client at[CLIENTS_MAX + SIM_NODES_MAX];
    uint32_t n;
    struct sim_op *ops;
    size_t ops_n, ops_capacity;
    struct sim_key *keys;
    uint32_t keys_n, keys_capacity;
    uint32_t shared[KEYS_MAX]; /* the keys that all clients use at the moment */
    uint32_t extra_first;      /* keys of which no history knows; fillers follow */
    uint32_t fillers_done;
    struct calendar calendar;
    /* One a client, or a trader, at most. */
    struct closed closed[CLIENTS_MAX + TRADERS_MAX + 2 * SIM_NODES_MAX];
    uint32_t closed_n;
    bool tampered;      /* for tests: an answer was recorded wrongly */
    int64_t next_value; /* every value that is written is new */
};

void crowd_init(struct world *world);
void crowd_deinit(struct world *world);
/* Closes a connection of a client or of a trader, as soon as its worker is in no poll. */
void crowd_close(struct world *world, struct resp_conn *conn, uint8_t machine, uint32_t worker);
/* Everybody has something to do. */
void crowd_round(struct world *world, uint32_t ops);
/* All data is gone: what clients knew of keys is not so any more. */
void crowd_forget(struct world *world);
/* The same of one key. */
void crowd_forget_key(struct world *world, uint32_t key);
/* Now is a good moment for operations: a view is changing. */
void crowd_stir(struct world *world);
void client_act(struct world *world, uint32_t client);
/* The answer has been waited for long enough. */
void client_impatient(struct world *world, uint32_t op);
/* Who has not yet had `each` successes since faults ended gets more to do; everybody does while
 * the run as a whole has too few. True if nobody needed any. */
bool crowd_top_up(struct world *world, uint32_t each);
/* Adds one reader for each node. */
void crowd_read_all(struct world *world);
/* Nothing is under way; for readers: and every key was read. */
bool crowd_idle(const struct world *world);

struct sim_op *crowd_op(struct world *world, uint32_t op);
/* "client 3 key 7: GET ..." */
void crowd_describe(const struct sim_op *op, char *to, size_t size);

/* ---- For machines ---- */

/* Before a poll: opens and closes the sessions that want it. */
void crowd_prepare(struct machine *machine, uint32_t worker);
/* After it: the worker may no longer read the bytes of what it took. */
void crowd_polled(struct machine *machine, uint32_t worker);
/* env.request and env.reply. */
bool crowd_request(struct machine *machine, uint32_t worker, struct request *request_out);
void crowd_reply(struct machine *machine, uint32_t worker, const struct reply *reply);
/* The answer has left the process. */
void crowd_answered(struct world *world, uint32_t op);
/* The process is now at another place, and those who are connected with it, too. */
void crowd_follow(struct machine *from, struct machine *to);
/* The process is gone, and every session with it. */
void crowd_lost(struct machine *machine);

#endif
