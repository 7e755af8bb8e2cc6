/* A memory server alone, node 0, whose workers are spoken to by hand: other nodes are what the test
 * says, and what they hear is looked at. Views are made, not decided; time is virtual. */
#ifndef HORKOS_TESTS_NODE_TRIES_H
#define HORKOS_TESTS_NODE_TRIES_H

#include "node/lotus_home.h"

#define TRIES_NODES 5u
#define TRIES_HEARD_MAX 256u

struct tries_heard {
    uint8_t to;
    uint32_t worker; /* from which it came */
    struct msg msg;
    uint8_t *bytes;
};

struct tries {
    struct node *node;
    struct env env;
    struct lotus_config config;
    uint32_t workers;
    uint64_t now_us;
    uint64_t wall_ms;
    uint64_t map; /* version of the slot map, as the others know it */
    struct view view;
    struct tries_heard heard[TRIES_HEARD_MAX];
    uint32_t heard_n;
    uint32_t read; /* of them by the test */
    bool woken[WORKERS_MAX];
};

/* A try, as its coordinator names it. */
struct tries_try {
    uint8_t node;
    uint8_t worker;
    uint32_t slot;
    uint32_t gen;
    uint64_t age;
};

void tries_start(struct tries *t, const struct lotus_config *config, uint32_t workers);
void tries_stop(struct tries *t);
struct worker *tries_worker(struct tries *t, uint32_t worker);
struct home_space *tries_home(struct tries *t, uint32_t worker);

/* ---- What the others say. Texts: items "Xa" (row a, X), "Sa", "Ra-c" (the range, S; "R-": all),
 * rows "a=1", "a!" (deleted), one behind the other with a space between. ---- */

void tries_execute(struct tries *t, const struct tries_try *who, bool more, const char *items);
void tries_finish(struct tries *t, const struct tries_try *who, const char *rows);
void tries_prepare(struct tries *t, const struct tries_try *who, uint64_t number,
                   nodeset participants, const char *rows);
void tries_whole(struct tries *t, const struct tries_try *who, const struct op *ops, uint32_t n);
/* COMMIT, ABORT. done: as its coordinator says it. */
void tries_plain(struct tries *t, const struct tries_try *who, enum lotus_kind kind, uint64_t done);
/* ASK, TOLD, RESOLVED by another participant, of the epoch that all have adopted. */
void tries_about(struct tries *t, uint8_t from, const struct tries_try *who, enum lotus_kind kind,
                 uint64_t ts);
/* Any message, to worker msg->slot's try or not. */
void tries_say(struct tries *t, uint32_t worker, uint8_t from, struct msg *msg);

/* ---- What they hear ---- */

/* The next that was said is of that kind, to that node, about that try; its ts. */
uint64_t tries_hears(struct tries *t, uint8_t node, enum lotus_kind kind,
                     const struct tries_try *who);
/* EXECUTED and OK, with rows "1 .": a value or "-" (absent) for a point, "a=1" for those of a
 * range, "." for an item's end. */
void tries_hears_rows(struct tries *t, const struct tries_try *who, const char *rows);
void tries_hears_word(struct tries *t, const struct tries_try *who, enum lotus_kind kind,
                      enum lotus_word word);
/* What was heard last. */
const struct msg *tries_last(const struct tries *t);
/* All that was said so far is as good as heard. */
void tries_forget(struct tries *t);
/* Nothing more was said. */
void tries_silent(struct tries *t);

/* ---- Time and views ---- */

/* Polls all workers, us microseconds later, until nobody is woken any more. */
void tries_poll(struct tries *t, uint64_t us);
/* The slot is here, and at rest, or moves to node 2. */
void tries_move(struct tries *t, uint32_t slot, bool moves);
/* Another view: these nodes live. Who comes back is another process. */
void tries_view(struct tries *t, nodeset live);
/* A row's value as it is stored, "-": there is none. */
void tries_holds(struct tries *t, const char *key, const char *value);
/* Nobody owns or waits for a lock, and no try is known but those whose outcome is kept. */
void tries_idle(struct tries *t, uint64_t outcomes);

#endif
