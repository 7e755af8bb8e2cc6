/* The machine of one lock. A step changes the lists, then looks who can be granted. What happened
 * to others is put on a chain through their requests: a request is on one list at most, and
 * nothing happens to it twice in a step, so one link each is enough. */
#include "engine/lotus/lock.h"

#include <stdatomic.h>
#include <stddef.h>

#include "base/assert.h"

const char *const lock_policy_names[LOCK_POLICIES] = {"no_wait", "wait_die", "wound_wait"};
const char *const try_state_names[TRY_STATES] = {"free", "running", "wounded", "prepared"};
const char *const lock_state_names[LOCK_STATES] = {"idle", "owns", "waits", "upgrades"};
const char *const lock_answer_names[LOCK_ANSWERS] = {"nothing", "granted", "queued", "died",
                                                     "wounded"};
const char *const lock_rule_names[LOCK_RULES] = {
    [LOCK_RULE_WAITERS] = "waiters", [LOCK_RULE_BEHIND] = "behind",
    [LOCK_RULE_KILL] = "kill",       [LOCK_RULE_KILL_LATE] = "kill_late",
    [LOCK_RULE_OLDEST] = "oldest",   [LOCK_RULE_IMMUNE] = "immune",
    [LOCK_RULE_WOUNDED] = "wounded", [LOCK_RULE_UPGRADE] = "upgrade",
    [LOCK_RULE_PROMOTE] = "promote",
};

static inline bool rule_on(const struct lock_table *t, enum lock_rule rule)
{
#ifdef HK_MUTANTS
    return (t->config->rules_off >> rule & 1) == 0;
#else
    (void)t;
    (void)rule;
    return true;
#endif
}

/* ---- Status words ---- */

enum { STATE_BITS = 2 };
_Static_assert(TRY_STATES <= 1 << STATE_BITS, "a state fits its bits");

static uint64_t word_of(uint64_t generation, enum try_state state)
{
    return generation << STATE_BITS | (uint64_t)state;
}

uint64_t try_begin(struct try_status *status)
{
    uint64_t word = atomic_load_explicit(&status->word, memory_order_relaxed);
    HK_ASSERT((word & ((1 << STATE_BITS) - 1)) == TRY_FREE);
    uint64_t generation = (word >> STATE_BITS) + 1;
    atomic_store_explicit(&status->word, word_of(generation, TRY_RUNNING), memory_order_release);
    return generation;
}

enum try_state try_state(const struct try_status *status, uint64_t generation)
{
    uint64_t word = atomic_load_explicit(&status->word, memory_order_acquire);
    return word >> STATE_BITS == generation ? (enum try_state)(word & ((1 << STATE_BITS) - 1))
                                            : TRY_FREE;
}

static bool try_leave_running(struct try_status *status, uint64_t generation, enum try_state to)
{
    uint64_t expected = word_of(generation, TRY_RUNNING);
    return atomic_compare_exchange_strong_explicit(&status->word, &expected,
                                                   word_of(generation, to), memory_order_acq_rel,
                                                   memory_order_acquire);
}

bool try_wound(struct try_status *status, uint64_t generation)
{
    return try_leave_running(status, generation, TRY_WOUNDED);
}

bool try_prepare(struct try_status *status, uint64_t generation)
{
    return try_leave_running(status, generation, TRY_PREPARED);
}

void try_end(struct try_status *status, uint64_t generation)
{
    HK_ASSERT(try_state(status, generation) != TRY_FREE);
    atomic_store_explicit(&status->word, word_of(generation, TRY_FREE), memory_order_release);
}

/* ---- Lists ---- */

static struct lock_request *at(const struct lock_table *t, uint32_t number)
{
    return &t->requests[number];
}

static bool older(const struct lock_request *a, const struct lock_request *b)
{
    return a->age.us != b->age.us ? a->age.us < b->age.us : a->age.who < b->age.who;
}

static bool conflict(uint8_t a, uint8_t b)
{
    return a == LOCK_X || b == LOCK_X;
}

/* What it has of the lock, and what it waits for; 0: nothing. */
static uint8_t has(const struct lock_request *r)
{
    return r->state == LOCK_OWNS ? r->mode : r->state == LOCK_UPGRADES ? LOCK_S : 0;
}

static uint8_t wants(const struct lock_request *r)
{
    return r->state == LOCK_WAITS ? r->mode : r->state == LOCK_UPGRADES ? LOCK_X : 0;
}

static void link_behind(const struct lock_table *t, uint32_t *first, uint32_t before,
                        uint32_t number)
{
    struct lock_request *r = at(t, number);
    r->prev = before;
    r->next = before == 0 ? *first : at(t, before)->next;
    if (r->next != 0) {
        at(t, r->next)->prev = number;
    }
    *(before == 0 ? first : &at(t, before)->next) = number;
}

static void unlink_from(const struct lock_table *t, uint32_t *first, uint32_t number)
{
    struct lock_request *r = at(t, number);
    *(r->prev == 0 ? first : &at(t, r->prev)->next) = r->next;
    if (r->next != 0) {
        at(t, r->next)->prev = r->prev;
    }
    r->next = 0;
    r->prev = 0;
}

static void leave(const struct lock_table *t, struct lock *lock, uint32_t number)
{
    struct lock_request *r = at(t, number);
    if (r->state != LOCK_IDLE) {
        unlink_from(t, r->state == LOCK_WAITS ? &lock->waiters : &lock->owners, number);
    }
    r->state = LOCK_IDLE;
    r->mode = 0;
}

static void own(const struct lock_table *t, struct lock *lock, uint32_t number, uint8_t mode)
{
    struct lock_request *r = at(t, number);
    if (has(r) == 0) {
        leave(t, lock, number);
        link_behind(t, &lock->owners, 0, number);
    }
    r->state = LOCK_OWNS;
    r->mode = mode;
}

/* Behind all that are older. */
static void queue(const struct lock_table *t, struct lock *lock, uint32_t number, uint8_t mode)
{
    struct lock_request *r = at(t, number);
    if (has(r) != 0) {
        r->state = LOCK_UPGRADES;
        return;
    }
    uint32_t before = 0;
    for (uint32_t w = lock->waiters; w != 0 && older(at(t, w), r); w = at(t, w)->next) {
        before = w;
    }
    r->state = LOCK_WAITS;
    r->mode = mode;
    link_behind(t, &lock->waiters, before, number);
}

/* ---- Who can be granted ---- */

/* Whether a waiter that is older than request `number` (younger, if OLDEST is off) conflicts with
 * the mode. */
static bool passes_over(const struct lock_table *t, const struct lock *lock, uint32_t number,
                        uint8_t mode)
{
    const struct lock_request *r = at(t, number);
    const uint32_t firsts[2] = {lock->waiters, lock->owners};
    for (uint32_t list = 0; list < 2; list++) {
        for (uint32_t i = firsts[list]; i != 0; i = at(t, i)->next) {
            uint8_t other = wants(at(t, i));
            if (list == 0 && rule_on(t, LOCK_RULE_OLDEST) && !older(at(t, i), r)) {
                break; /* nor is any waiter behind it */
            }
            if (i != number && other != 0 && conflict(mode, other) &&
                older(at(t, i), r) == rule_on(t, LOCK_RULE_OLDEST)) {
                return true;
            }
        }
    }
    return false;
}

static bool owners_allow(const struct lock_table *t, const struct lock *lock, uint32_t number,
                         uint8_t mode)
{
    for (uint32_t i = lock->owners; i != 0; i = at(t, i)->next) {
        if (i != number && conflict(mode, has(at(t, i)))) {
            return false;
        }
    }
    return true;
}

static bool grantable(const struct lock_table *t, const struct lock *lock, uint32_t number)
{
    uint8_t mode = wants(at(t, number));
    bool passes = at(t, number)->state == LOCK_UPGRADES && rule_on(t, LOCK_RULE_UPGRADE);
    return owners_allow(t, lock, number, mode) &&
           (passes || !rule_on(t, LOCK_RULE_WAITERS) || !passes_over(t, lock, number, mode));
}

/* Whether none behind the first waiter can be granted where it cannot: what keeps it out, or itself
 * if it wants X, keeps out whoever is younger. */
static bool first_decides(const struct lock_table *t)
{
    return rule_on(t, LOCK_RULE_OLDEST) && rule_on(t, LOCK_RULE_WAITERS);
}

/* The next waiter that can be granted: upgrades, then the others from the oldest on; 0: none. */
static uint32_t next_grant(const struct lock_table *t, const struct lock *lock)
{
    for (uint32_t i = lock->owners; i != 0; i = at(t, i)->next) {
        if (at(t, i)->state == LOCK_UPGRADES && grantable(t, lock, i)) {
            return i;
        }
    }
    uint32_t found = 0;
    for (uint32_t i = lock->waiters; i != 0; i = at(t, i)->next) {
        if (first_decides(t) && older(at(t, lock->waiters), at(t, i))) {
            break;
        }
        if (grantable(t, lock, i)) {
            found = i;
            if (rule_on(t, LOCK_RULE_OLDEST)) {
                break;
            }
        }
    }
    return found;
}

/* ---- A step ---- */

struct step {
    const struct lock_table *t;
    struct lock *lock;
    lock_chain *chain;
};

static void happened(struct step *s, uint32_t number, enum lock_answer what)
{
    struct lock_request *r = at(s->t, number);
    r->happened = (uint8_t)what;
    r->chain = *s->chain;
    *s->chain = number;
}

/* Whether the owner loses the lock to a request of that age. */
static bool loses(const struct step *s, const struct lock_request *owner,
                  const struct lock_request *to)
{
    struct try_status *status = &s->t->statuses[owner->status];
    if (s->t->config->policy == LOCK_WOUND_WAIT && older(to, owner)) {
        if (try_wound(status, owner->generation)) {
            return true;
        }
        if (!rule_on(s->t, LOCK_RULE_IMMUNE)) {
            return true;
        }
    }
    return try_state(status, owner->generation) == TRY_WOUNDED && rule_on(s->t, LOCK_RULE_WOUNDED);
}

/* What stands against a request. */
struct obstacles {
    bool owner;       /* an owner conflicts with it ... */
    bool older_owner; /* ... and one of them is older */
    bool waiter;      /* an older waiter does */
};

static void look_at_owners(struct step *s, uint32_t number, uint8_t mode, struct obstacles *o)
{
    const struct lock_request *r = at(s->t, number);
    uint32_t next = 0;
    for (uint32_t i = s->lock->owners; i != 0; i = next) {
        next = at(s->t, i)->next;
        if (i == number || !conflict(mode, has(at(s->t, i)))) {
            continue;
        }
        if (loses(s, at(s->t, i), r)) {
            leave(s->t, s->lock, i);
            happened(s, i, LOCK_WOUNDED);
            continue;
        }
        o->owner = true;
        o->older_owner = o->older_owner || older(at(s->t, i), r);
    }
}

/* L2. An upgrade that dies owns S as before. */
static void kill_younger(struct step *s, uint32_t number, uint8_t mode)
{
    uint32_t next = 0;
    for (uint32_t i = s->lock->waiters; i != 0; i = next) {
        next = at(s->t, i)->next;
        if (i != number && conflict(mode, wants(at(s->t, i))) &&
            older(at(s->t, number), at(s->t, i))) {
            leave(s->t, s->lock, i);
            happened(s, i, LOCK_DIED);
        }
    }
    for (uint32_t i = s->lock->owners; i != 0; i = at(s->t, i)->next) {
        struct lock_request *r = at(s->t, i);
        if (i != number && r->state == LOCK_UPGRADES && older(at(s->t, number), r)) {
            r->state = LOCK_OWNS;
            happened(s, i, LOCK_DIED);
        }
    }
}

static void promote(struct step *s)
{
    for (uint32_t i = next_grant(s->t, s->lock); i != 0; i = next_grant(s->t, s->lock)) {
        own(s->t, s->lock, i, wants(at(s->t, i)));
        happened(s, i, LOCK_GRANTED);
        if (!rule_on(s->t, LOCK_RULE_KILL) && rule_on(s->t, LOCK_RULE_KILL_LATE) &&
            s->t->config->policy == LOCK_WAIT_DIE) {
            kill_younger(s, i, at(s->t, i)->mode);
        }
    }
}

/* What becomes of a request that conflicts. */
static enum lock_answer refused(const struct step *s, const struct obstacles *o)
{
    switch ((enum lock_policy)s->t->config->policy) {
    case LOCK_WAIT_DIE:
        return o->older_owner || (o->waiter && rule_on(s->t, LOCK_RULE_BEHIND)) ? LOCK_DIED
                                                                                : LOCK_QUEUED;
    case LOCK_WOUND_WAIT:
        return LOCK_QUEUED;
    case LOCK_NO_WAIT:
    case LOCK_POLICIES:
        break;
    }
    return LOCK_DIED;
}

enum lock_answer lock_ask(const struct lock_table *table, struct lock *lock, uint32_t number,
                          enum lock_mode mode, lock_chain *chain_out)
{
    struct step s = {.t = table, .lock = lock, .chain = chain_out};
    struct lock_request *r = at(table, number);
    uint8_t wanted = (uint8_t)mode;
    *chain_out = 0;
    if (has(r) >= wanted) {
        return LOCK_GRANTED;
    }
    if (r->state == LOCK_UPGRADES) {
        return LOCK_QUEUED;
    }
    if (r->state == LOCK_WAITS) {
        wanted = r->mode > wanted ? r->mode : wanted;
        leave(table, lock, number);
    }
    struct obstacles o = {.owner = false};
    look_at_owners(&s, number, wanted, &o);
    bool passes = r->state == LOCK_OWNS && rule_on(table, LOCK_RULE_UPGRADE);
    o.waiter =
        !passes && rule_on(table, LOCK_RULE_WAITERS) && passes_over(table, lock, number, wanted);
    enum lock_answer answer = o.owner || o.waiter ? refused(&s, &o) : LOCK_GRANTED;
    if (answer == LOCK_GRANTED) {
        own(table, lock, number, wanted);
    } else if (answer == LOCK_QUEUED) {
        queue(table, lock, number, wanted);
    }
    bool kills = rule_on(table, LOCK_RULE_KILL) ||
                 (answer == LOCK_GRANTED && rule_on(table, LOCK_RULE_KILL_LATE));
    if (answer != LOCK_DIED && table->config->policy == LOCK_WAIT_DIE && kills) {
        kill_younger(&s, number, wanted);
    }
    promote(&s);
    return answer;
}

void lock_release(const struct lock_table *table, struct lock *lock, uint32_t number,
                  lock_chain *chain_out)
{
    struct step s = {.t = table, .lock = lock, .chain = chain_out};
    bool waited = wants(at(table, number)) != 0;
    *chain_out = 0;
    if (at(table, number)->state == LOCK_IDLE) {
        return;
    }
    leave(table, lock, number);
    if (!waited || rule_on(table, LOCK_RULE_PROMOTE)) {
        promote(&s);
    }
}

/* ---- What must hold ---- */

static const char *pair_broken(const struct lock_table *t, const struct lock_request *owner,
                               const struct lock_request *waiter)
{
    if (t->config->policy == LOCK_WAIT_DIE && !older(waiter, owner)) {
        return "WAIT_DIE: a waiter is younger than an owner that it conflicts with";
    }
    if (t->config->policy == LOCK_WOUND_WAIT && older(waiter, owner) &&
        try_state(&t->statuses[owner->status], owner->generation) == TRY_RUNNING) {
        return "WOUND_WAIT: a waiter is older than a running owner that it conflicts with";
    }
    return NULL;
}

static const char *owner_broken(const struct lock_table *t, const struct lock *lock, uint32_t i)
{
    const struct lock_request *owner = at(t, i);
    const uint32_t firsts[2] = {lock->waiters, lock->owners};
    const char *broken = has(owner) == 0 ? "an owner has nothing" : NULL;
    for (uint32_t list = 0; list < 2 && broken == NULL; list++) {
        for (uint32_t k = firsts[list]; k != 0 && broken == NULL; k = at(t, k)->next) {
            const struct lock_request *other = at(t, k);
            if (k != i && has(other) != 0 && conflict(has(other), has(owner))) {
                broken = "two owners conflict";
            } else if (k != i && wants(other) != 0 && conflict(wants(other), has(owner))) {
                broken = pair_broken(t, owner, other);
            }
        }
    }
    return broken;
}

/* All are asked, also those that next_grant need not look at. */
static bool somebody_grantable(const struct lock_table *t, const struct lock *lock)
{
    const uint32_t firsts[2] = {lock->waiters, lock->owners};
    for (uint32_t list = 0; list < 2; list++) {
        for (uint32_t i = firsts[list]; i != 0; i = at(t, i)->next) {
            if (wants(at(t, i)) != 0 && grantable(t, lock, i)) {
                return true;
            }
        }
    }
    return false;
}

const char *lock_broken(const struct lock_table *table, const struct lock *lock)
{
    const char *broken = NULL;
    for (uint32_t i = lock->owners; i != 0 && broken == NULL; i = at(table, i)->next) {
        broken = owner_broken(table, lock, i);
    }
    for (uint32_t i = lock->waiters; i != 0 && broken == NULL; i = at(table, i)->next) {
        uint32_t next = at(table, i)->next;
        if (wants(at(table, i)) == 0 || (next != 0 && older(at(table, next), at(table, i)))) {
            broken = "waiters are not in the order of their age";
        }
    }
    return broken == NULL && somebody_grantable(table, lock) ? "a waiter could be granted" : broken;
}
