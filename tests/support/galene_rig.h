/* Several pure Galene machines of several workers each, one key, and lanes between workers: the
 * test says which lane delivers when, which worker learns which view, which node learns which map,
 * who crashes, and when the key enters and leaves the hot set or moves. The rig does what the node
 * does with effects (docs/ENGINE.md), sends operations to the key's home, and keeps a history of
 * what clients saw, which is judged by the checker of linearizability. The slot map itself, which
 * has its own machine and tests, is an oracle here: a list of maps that nodes learn in order. */
#ifndef HORKOS_TESTS_SUPPORT_GALENE_RIG_H
#define HORKOS_TESTS_SUPPORT_GALENE_RIG_H

#include "base/random.h"
#include "check/history.h"
#include "engine/galene/machine.h"

#define RIG_NODES 4u
#define RIG_WORKERS 2u
#define RIG_SLOTS 10u
#define RIG_LANE 64u
#define RIG_OPS 96u
#define RIG_VIEWS 24u
#define RIG_MAPS 96u
#define RIG_MAILS 32u

enum rig_kind { RIG_READ, RIG_WRITE, RIG_DELETE, RIG_RMW };

enum rig_wait {
    RIG_OVER,   /* answered */
    RIG_READY,  /* to be tried where it is */
    RIG_PARKED, /* waits for the key there */
    RIG_ISSUED, /* its update is a flow there */
    RIG_AWAY,   /* on its way to another node */
};

struct rig_op {
    enum rig_kind kind;
    enum rig_wait wait;
    uint8_t node; /* the client's */
    uint8_t at;   /* where it is now, or is going to */
    uint8_t worker;
    uint8_t hops;
    bool handed;             /* the old home sent it on ... */
    uint32_t handed_version; /* ... by this map */
    uint32_t to_born;        /* RIG_AWAY */
    uint32_t base;           /* RMW: the value that it was computed on */
    uint32_t slot;
    bool done; /* with an answer */
    bool lost; /* the answer was that the slot, or the key, is lost */
    uint32_t tries;
    int64_t out;
};

struct rig_message {
    struct msg msg;
    uint32_t value; /* the operation whose value it carries; 0: none */
    uint32_t from_born;
    uint32_t to_born;
};

struct rig_lane {
    struct rig_message messages[RIG_LANE];
    uint32_t first, n;
};

/* A word of a key step to a flow of another worker. */
struct rig_mail {
    uint8_t worker;
    uint8_t code;
    uint32_t slot;
    uint64_t ts;
};

struct rig_worker {
    struct view view; /* the one that it has adopted */
    uint32_t ready;   /* the epoch in which it had a map of that epoch */
    struct slot slots[RIG_SLOTS];
    uint32_t op[RIG_SLOTS];   /* that waits for the slot */
    uint32_t held[RIG_SLOTS]; /* EFF_HOLD: the operation whose value waits */
};

struct rig_map {
    struct slot_home home;
    uint32_t epoch; /* in which it was announced */
};

struct rig_node {
    struct key_meta meta; /* blank: no entry */
    uint32_t value;       /* the operation that wrote it; 0: none */
    uint32_t map;         /* maps[map] is the node's; 0: none yet */
    struct rig_mail mails[RIG_MAILS];
    uint32_t nmails;
    struct rig_worker workers[RIG_WORKERS];
    bool crashed;
    bool later; /* what the last EV_HOT or EV_MOVE step said */
    bool begun;
};

struct rig {
    struct galene_config config;
    struct random random;
    uint64_t now_us;
    uint64_t clock; /* of the history */
    uint8_t n;
    uint8_t workers;
    struct rig_node nodes[RIG_NODES];
    struct view views[RIG_VIEWS]; /* views[0] has epoch 1 */
    uint32_t nviews;
    struct rig_map maps[RIG_MAPS]; /* maps[0]: none */
    uint32_t nmaps;
    struct rig_lane lanes[RIG_NODES][RIG_WORKERS][RIG_NODES][RIG_WORKERS];
    struct rig_op ops[RIG_OPS]; /* 0: none; 1: the value at the start */
    struct history_op history[RIG_OPS];
    uint32_t nops;
    uint32_t emptying; /* the operation that stands for the operator's giving up; 0: none */
    uint32_t drops[ENGINE_DROPS];
    uint32_t stray; /* words to slots that nobody waited for */
    uint64_t steps;
    uint32_t generation;                    /* the last that was given out */
    uint64_t entered, left, moved, rescued; /* how often a key turned Valid by ... */
};

/* n nodes of so many workers in epoch 1, all operational; node 0 is the home, and has the key, with
 * the value of operation 1, unless empty. */
void rig_init(struct rig *r, uint8_t n, uint8_t workers, bool empty, uint64_t rules_off,
              uint64_t seed);

/* ---- Clients: the operation's number ---- */
uint32_t rig_do(struct rig *r, uint8_t node, uint8_t worker, enum rig_kind kind);
/* An operation that is ready is tried; one that is parked prods its key; one that is on its way
 * arrives. */
void rig_push(struct rig *r, uint32_t op);
/* What a read saw, as the operation that wrote it; asserts that it has been answered. */
uint32_t rig_seen(const struct rig *r, uint32_t op);
bool rig_can_serve(const struct rig *r, uint8_t node, uint8_t worker);
/* Whether the node's worker takes up updates. */
bool rig_issues(const struct rig *r, uint8_t node, uint8_t worker);

/* ---- Lanes and mail ---- */
/* Delivers the oldest message of a lane; false if there is none, or it is early. */
bool rig_deliver(struct rig *r, uint8_t from, uint8_t fw, uint8_t to, uint8_t tw);
/* The same; asserts that it is of this kind. */
void rig_pass(struct rig *r, uint8_t from, uint8_t fw, uint8_t to, enum galene_kind kind);
bool rig_mail(struct rig *r, uint8_t node);
/* Delivers one message of a lane chosen at random, or a mail. */
bool rig_run_one(struct rig *r);
/* Delivers everything that can be, in no particular order; tries whatever is ready. */
void rig_run(struct rig *r);

/* ---- The key ---- */
/* False: this worker does not do it now (rules of step_hot and step_move). Otherwise the node's
 * later and begun say what came of it. */
bool rig_hot(struct rig *r, uint8_t node, uint8_t worker, enum hot_code code, uint32_t generation);
bool rig_move(struct rig *r, uint8_t node, uint8_t worker);
void rig_sweep(struct rig *r, uint8_t node, uint8_t worker);
/* The next instant at which some timer is due comes; false: none is. */
bool rig_timers(struct rig *r);

/* ---- Views and maps: decided globally, adopted worker by worker, node by node ---- */
const struct view *rig_newest(const struct rig *r);
const struct rig_map *rig_truth(const struct rig *r);
void rig_drop(struct rig *r, uint8_t node);
void rig_admit(struct rig *r, uint8_t node);                 /* a new incarnation */
void rig_adopt(struct rig *r, uint8_t node, uint8_t worker); /* the newest view */
void rig_adopt_all(struct rig *r);                           /* ... and map */
void rig_learn(struct rig *r, uint8_t node);                 /* the next map, if it may */
void rig_crash(struct rig *r, uint8_t node);
/* The leader: the slot begins to move; is there; is given up; is given out anew. False: not now. */
bool rig_map_move(struct rig *r, uint8_t to);
bool rig_map_moved(struct rig *r);
bool rig_map_empty(struct rig *r);
bool rig_map_purged(struct rig *r, uint8_t home);

/* Everybody adopts, everything is delivered, sweeps and timers run, moves end. NULL, or what is not
 * as it should be in the end. */
const char *rig_settle(struct rig *r);
/* Whether the history is linearizable. */
bool rig_sound(struct rig *r);
void rig_print(const struct rig *r);

/* ---- Between the rig's files ---- */
void rig_flow_step(struct rig *r, uint8_t node, uint8_t worker, uint32_t slot, enum ev_kind kind,
                   uint8_t code, const struct rig_message *m, uint8_t from, uint64_t ts);
void rig_key_step(struct rig *r, uint8_t node, uint8_t worker, struct event *event,
                  uint32_t payload, uint32_t op, uint32_t mine);
struct event rig_event(struct rig *r, uint8_t node, uint8_t worker, enum ev_kind kind);
void rig_op_end(struct rig *r, uint32_t op, enum history_outcome outcome, int64_t out);
uint32_t rig_op_new(struct rig *r, enum rig_kind kind, uint8_t node, uint8_t worker);
bool rig_wholly_in(const struct rig *r, uint8_t node, uint32_t epoch);

static inline uint32_t rig_born(const struct view *view, uint8_t node)
{
    return view->members[node].admitted;
}

#endif
