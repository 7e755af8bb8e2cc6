/* Lotus's lock table: one lock as a pure machine, stepped under its latch. docs/protocols/
 * lotus-locks.md has the states and the rules L1 to L6. Requests and status words stand in arrays
 * of the caller's and are named by number, so that a table copies as plain memory; nothing here
 * allocates, and no step is longer than the lists of its lock.
 *
 * Threads. A lock and the requests on its lists are touched under the lock's latch only. Status
 * words are shared by all locks of a memory server: they change by one compare-and-swap each. */
#ifndef HORKOS_ENGINE_LOTUS_LOCK_H
#define HORKOS_ENGINE_LOTUS_LOCK_H

#include <stdbool.h>
#include <stdint.h>

enum lock_policy { LOCK_NO_WAIT, LOCK_WAIT_DIE, LOCK_WOUND_WAIT, LOCK_POLICIES };
extern const char *const lock_policy_names[LOCK_POLICIES]; /* "no_wait", ... */

struct lock_config {
    uint8_t policy;     /* enum lock_policy */
    uint64_t rules_off; /* HK_MUTANTS builds only: bits of enum lock_rule */
};

/* ---- Status words ---- */

enum try_state { TRY_FREE, TRY_RUNNING, TRY_WOUNDED, TRY_PREPARED, TRY_STATES };
extern const char *const try_state_names[TRY_STATES];

/* One try of a transaction on one memory server: generation and enum try_state. Zero: FREE. */
struct try_status {
    _Atomic uint64_t word;
};

/* Begins a try in a slot that is FREE; returns its generation (62 bits, never 0). */
uint64_t try_begin(struct try_status *status);
enum try_state try_state(const struct try_status *status, uint64_t generation);
/* RUNNING to WOUNDED. False: it was not RUNNING, or that try is over. */
bool try_wound(struct try_status *status, uint64_t generation);
/* RUNNING to PREPARED. False: it is WOUNDED. Only for a try that is not over. */
bool try_prepare(struct try_status *status, uint64_t generation);
/* The try is over, whatever became of it; all its requests are IDLE. */
void try_end(struct try_status *status, uint64_t generation);

/* ---- Requests ---- */

enum lock_mode { LOCK_S = 1, LOCK_X = 2 };

enum lock_state { LOCK_IDLE, LOCK_OWNS, LOCK_WAITS, LOCK_UPGRADES, LOCK_STATES };
extern const char *const lock_state_names[LOCK_STATES];

enum lock_answer {
    LOCK_NOTHING,
    LOCK_GRANTED, /* it owns what it asked for */
    LOCK_QUEUED,  /* it waits: a later step's chain has its answer */
    LOCK_DIED,    /* refused. An owner whose upgrade was refused owns S as before */
    LOCK_WOUNDED, /* its try is WOUNDED, and it owns nothing here any more */
    LOCK_ANSWERS
};
extern const char *const lock_answer_names[LOCK_ANSWERS];

/* Less is older; no two transactions have the same. */
struct lock_age {
    uint64_t us;  /* when its first try began, by its coordinator's clock */
    uint64_t who; /* coordinator, worker, and its number there */
};

/* What one try wants of one lock. Belongs to the try, which asks once and again as its needs
 * grow. Zero: of nobody. */
struct lock_request {
    struct lock_age age;
    uint64_t generation; /* of the try */
    uint32_t status;     /* number of its status word */
    uint32_t next;       /* numbers of requests; 0: none */
    uint32_t prev;
    uint32_t chain;   /* the next one to which something happened in the same step; 0: none */
    uint8_t mode;     /* enum lock_mode: what it owns, or waits for (UPGRADES: owns S) */
    uint8_t state;    /* enum lock_state */
    uint8_t happened; /* enum lock_answer: what did, to one in a chain */
    uint8_t zero;
};

/* Zero: free. */
struct lock {
    uint32_t owners;  /* first of the list, in no order */
    uint32_t waiters; /* first of the list, the oldest first */
};

struct lock_table {
    const struct lock_config *config;
    struct lock_request *requests; /* number 0 is nobody's */
    struct try_status *statuses;
};

/* A step's other victims and winners: number of the first, linked by `chain`; 0: none. WOUNDED:
 * what else its try waits for on this server is to be released and answered. */
typedef uint32_t lock_chain;

/* Request `number`, whose age, status and generation are set and whose try is RUNNING, asks for
 * the mode. One that owns as much already is GRANTED it. One that waits asks for the stronger of
 * both. */
enum lock_answer lock_ask(const struct lock_table *table, struct lock *lock, uint32_t number,
                          enum lock_mode mode, lock_chain *chain_out);
/* It owns and waits no more, for whatever reason. IDLE already: nothing happens. */
void lock_release(const struct lock_table *table, struct lock *lock, uint32_t number,
                  lock_chain *chain_out);
/* NULL, or the invariant that does not hold (a constant text). */
const char *lock_broken(const struct lock_table *table, const struct lock *lock);

/* Rules that a HK_MUTANTS build can switch off. */
enum lock_rule {
    LOCK_RULE_WAITERS,   /* L1: waiters are looked at as well as owners */
    LOCK_RULE_BEHIND,    /* L1: WAIT_DIE: who is younger than a conflicting waiter dies */
    LOCK_RULE_KILL,      /* L2: younger waiters die when an older request comes. Off: never ... */
    LOCK_RULE_KILL_LATE, /* ... unless KILL is off and this is not: when the older becomes owner */
    LOCK_RULE_OLDEST,    /* L3 */
    LOCK_RULE_IMMUNE,    /* L4: PREPARED is not wounded */
    LOCK_RULE_WOUNDED,   /* L4: who is WOUNDED loses its lock to anybody; liveness */
    LOCK_RULE_UPGRADE,   /* L5: an upgrade passes waiters; liveness */
    LOCK_RULE_PROMOTE,   /* L6: promotion after the removal of a waiter; liveness */
    LOCK_RULES
};
extern const char *const lock_rule_names[LOCK_RULES];

#endif
