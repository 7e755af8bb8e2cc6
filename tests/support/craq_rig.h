/* Several pure CRAQ machines of several workers each, one key, and lanes between workers: the test
 * says which lane delivers when, which worker learns which view, who crashes. The rig does what the
 * node does with effects (docs/ENGINE.md) and keeps a history of what clients saw, which is judged
 * by the checker of linearizability. */
#ifndef HORKOS_TESTS_SUPPORT_CRAQ_RIG_H
#define HORKOS_TESTS_SUPPORT_CRAQ_RIG_H

#include "base/random.h"
#include "check/history.h"
#include "engine/craq/machine.h"

#define RIG_NODES 4u
#define RIG_WORKERS 2u
#define RIG_SLOTS 8u
#define RIG_LANE 64u
#define RIG_OPS 96u
#define RIG_VIEWS 24u

enum rig_kind { RIG_READ, RIG_WRITE, RIG_DELETE, RIG_RMW };

struct rig_op {
    enum rig_kind kind;
    uint8_t node;
    uint8_t worker;
    uint32_t base; /* RMW: the value that it was computed on */
    uint32_t slot; /* of the worker; 0: none */
    bool parked;
    bool open;
    bool done; /* with an answer */
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

struct rig_worker {
    struct view view; /* the one that it has adopted */
    struct slot slots[RIG_SLOTS];
    uint32_t op[RIG_SLOTS]; /* that waits for the slot */
};

struct rig_node {
    struct key_meta meta;
    uint32_t value;     /* the operation that wrote it; 0: none */
    uint32_t published; /* epoch of the newest view that any of its workers has heard of */
    struct rig_worker workers[RIG_WORKERS];
    bool crashed;
    bool copied;  /* a shadow that has every chunk */
    bool refuses; /* has no memory for a peer's value */
};

struct rig {
    struct craq_config config;
    struct random random;
    uint64_t now_us;
    uint64_t clock; /* of the history */
    uint8_t n;
    uint8_t workers;
    struct rig_node nodes[RIG_NODES];
    struct view views[RIG_VIEWS]; /* views[0] has epoch 1 */
    uint32_t nviews;
    struct rig_lane lanes[RIG_NODES][RIG_WORKERS][RIG_NODES][RIG_WORKERS];
    struct rig_op ops[RIG_OPS]; /* 0: none; 1: the value at the start */
    struct history_op history[RIG_OPS];
    uint32_t nops;
    uint32_t drops[ENGINE_DROPS];
    uint32_t refused; /* steps that memory refused */
    uint32_t stray;   /* words to slots that nobody waited for */
    uint64_t steps;
};

/* n nodes of so many workers in epoch 1, all operational; everywhere the start value (operation 1)
 * is clean, or nothing is stored. */
void rig_init(struct rig *r, uint8_t n, uint8_t workers, bool empty, uint64_t rules_off,
              uint64_t seed);

/* ---- Clients: the operation's number ---- */
uint32_t rig_do(struct rig *r, uint8_t node, uint8_t worker, enum rig_kind kind);
/* A parked operation has waited long. */
void rig_prod(struct rig *r, uint32_t op);
/* What a read saw, as the operation that wrote it; asserts that it has been answered. */
uint32_t rig_seen(const struct rig *r, uint32_t op);
bool rig_can_serve(const struct rig *r, uint8_t node, uint8_t worker);

/* ---- Lanes ---- */
/* Delivers the oldest message of a lane; false if there is none, or it is early. */
bool rig_deliver(struct rig *r, uint8_t from, uint8_t fw, uint8_t to, uint8_t tw);
/* The same between workers 0; asserts that it is of this kind. */
void rig_pass(struct rig *r, uint8_t from, uint8_t to, enum craq_kind kind);
/* Delivers everything that can be, in no particular order. */
void rig_run(struct rig *r);
/* Delivers one message of a lane chosen at random. */
bool rig_run_one(struct rig *r);

/* ---- Views: decided globally, adopted worker by worker ---- */
const struct view *rig_newest(const struct rig *r);
void rig_drop(struct rig *r, uint8_t node);
void rig_admit(struct rig *r, uint8_t node);                 /* a new incarnation, as a shadow */
bool rig_promote(struct rig *r, uint8_t node);               /* false: it may not be yet */
void rig_adopt(struct rig *r, uint8_t node, uint8_t worker); /* the newest view */
void rig_adopt_all(struct rig *r);
void rig_crash(struct rig *r, uint8_t node);
/* A donor sends its chunk to a shadow, if both are wholly in the same epoch. */
bool rig_chunk(struct rig *r, uint8_t donor, uint8_t shadow);
void rig_sweep(struct rig *r, uint8_t node);
void rig_timers(struct rig *r);

/* Everybody adopts, everything is delivered, sweeps and timers run: whether all members are clean
 * at the same value and no operation is open. */
bool rig_settle(struct rig *r);
/* Whether the history is linearizable. */
bool rig_sound(struct rig *r);
void rig_print(const struct rig *r);

#endif
