#include "explore/lotus_locks.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "explore/explore.h"

#define TXNS 3u
#define LOCKS 3u
#define ASKS 3u
#define PROGRAMS 64u

struct ask {
    uint8_t lock;
    uint8_t mode; /* enum lock_mode */
};

struct program {
    uint8_t n;
    struct ask asks[ASKS];
};

enum txn_state { RUNS, PARKED, PREPARES, RELEASES, ENDED };

struct txn {
    uint8_t program;
    uint8_t at; /* RUNS, PARKED: the ask. PREPARES, RELEASES: the lock */
    uint8_t state;
    uint8_t aborted;
};

/* A transaction has one request for each lock, and one status word on each lock's server (servers)
 * or one for all of them. */
struct world {
    struct lock locks[LOCKS];
    struct lock_request requests[1 + TXNS * LOCKS];
    struct try_status statuses[TXNS * LOCKS];
    struct txn txns[TXNS];
    uint8_t zero[4];
};

struct model {
    const struct locks_setup *setup;
    struct lock_config config;
    struct program programs[PROGRAMS];
    uint32_t programs_n;
    uint8_t chosen[TXNS];
    bool invariants;
};

/* ---- Programs ---- */

static bool asked(const struct program *p, uint8_t lock)
{
    for (uint8_t i = 0; i < p->n; i++) {
        if (p->asks[i].lock == lock) {
            return true;
        }
    }
    return false;
}

/* All continuations of a program, itself included if it asks for anything. */
static void add_programs(struct model *m, const struct program *so_far)
{
    if (so_far->n > 0) {
        HK_ASSERT(m->programs_n < PROGRAMS);
        m->programs[m->programs_n++] = *so_far;
    }
    if (so_far->n == m->setup->asks) {
        return;
    }
    for (uint8_t lock = 0; lock < m->setup->locks; lock++) {
        for (uint8_t mode = m->setup->shared ? LOCK_S : LOCK_X; mode <= LOCK_X; mode++) {
            if (m->setup->again || !asked(so_far, lock)) {
                struct program longer = *so_far;
                longer.asks[longer.n++] = (struct ask){.lock = lock, .mode = mode};
                add_programs(m, &longer);
            }
        }
    }
}

/* ---- Worlds ---- */

static uint32_t request_of(uint32_t txn, uint32_t lock)
{
    return 1 + txn * LOCKS + lock;
}

static uint32_t status_of(const struct model *m, uint32_t txn, uint32_t lock)
{
    return txn * LOCKS + (m->setup->servers ? lock : 0);
}

static struct lock_table table_of(const struct model *m, const struct world *w)
{
    struct world *mine = (struct world *)(uintptr_t)w;
    return (struct lock_table){
        .config = &m->config, .requests = mine->requests, .statuses = mine->statuses};
}

static void begin(const void *self, void *state_out)
{
    const struct model *m = self;
    struct world *w = state_out;
    memset(w, 0, sizeof *w);
    for (uint32_t t = 0; t < TXNS; t++) {
        w->txns[t].state = t < m->setup->txns ? RUNS : ENDED;
        w->txns[t].program = m->chosen[t];
        for (uint32_t l = 0; l < m->setup->locks && t < m->setup->txns; l++) {
            uint32_t status = status_of(m, t, l);
            uint64_t generation = l == 0 || m->setup->servers ? try_begin(&w->statuses[status]) : 1;
            w->requests[request_of(t, l)] =
                (struct lock_request){.age = {.us = t}, .status = status, .generation = generation};
        }
    }
}

static enum try_state status(const struct model *m, const struct world *w, uint32_t txn,
                             uint32_t lock)
{
    return try_state(&w->statuses[status_of(m, txn, lock)], 1);
}

static void abort_txn(struct txn *t)
{
    t->state = RELEASES;
    t->at = 0;
    t->aborted = 1;
}

/* What the node does with a step's chain: tells winners and victims. A wounded transaction that
 * waits on the same server is answered at once, which can make room for more. */
static void follow(const struct model *m, struct world *w, lock_chain chain)
{
    struct lock_table table = table_of(m, w);
    uint32_t withdraw = 0;
    while (chain != 0) {
        struct lock_request *r = &w->requests[chain];
        uint32_t number = (chain - 1) / LOCKS;
        struct txn *t = &w->txns[number];
        uint8_t waits_for = m->programs[t->program].asks[t->state == PARKED ? t->at : 0].lock;
        if (r->happened == LOCK_GRANTED && t->state == PARKED) {
            t->state = RUNS;
            t->at++;
        } else if (r->happened == LOCK_DIED && t->state == PARKED) {
            abort_txn(t);
        } else if (r->happened == LOCK_WOUNDED && t->state == PARKED &&
                   status(m, w, number, waits_for) == TRY_WOUNDED) {
            withdraw = withdraw | 1u << number;
        }
        chain = r->chain;
        r->chain = 0;
        r->happened = 0;
    }
    for (uint32_t i = 0; i < TXNS; i++) {
        struct txn *t = &w->txns[i];
        if ((withdraw >> i & 1) != 0 && t->state == PARKED) {
            uint8_t lock = m->programs[t->program].asks[t->at].lock;
            lock_chain more;
            abort_txn(t);
            lock_release(&table, &w->locks[lock], request_of(i, lock), &more);
            follow(m, w, more);
        }
    }
}

/* ---- What can happen ---- */

static void ask(const struct model *m, struct world *w, uint32_t i)
{
    struct txn *t = &w->txns[i];
    const struct ask *a = &m->programs[t->program].asks[t->at];
    struct lock_table table = table_of(m, w);
    lock_chain chain = 0;
    if (status(m, w, i, a->lock) == TRY_WOUNDED) {
        abort_txn(t);
        return;
    }
    enum lock_answer answer = lock_ask(&table, &w->locks[a->lock], request_of(i, a->lock),
                                       (enum lock_mode)a->mode, &chain);
    if (answer == LOCK_GRANTED) {
        t->at++;
    } else if (answer == LOCK_QUEUED) {
        t->state = PARKED;
    } else {
        abort_txn(t);
    }
    follow(m, w, chain);
}

/* On one server after the other; a program prepares where it has not asked as well, which takes
 * nothing from anybody. */
static void prepare(const struct model *m, struct world *w, uint32_t i)
{
    struct txn *t = &w->txns[i];
    uint8_t servers = m->setup->servers ? m->setup->locks : 1;
    if (!try_prepare(&w->statuses[status_of(m, i, t->at)], 1)) {
        abort_txn(t);
        return;
    }
    t->at++;
    if (t->at == servers) {
        t->state = RELEASES;
        t->at = 0;
    }
}

static void release(const struct model *m, struct world *w, uint32_t i)
{
    struct txn *t = &w->txns[i];
    struct lock_table table = table_of(m, w);
    lock_chain chain;
    lock_release(&table, &w->locks[t->at], request_of(i, t->at), &chain);
    t->at++;
    if (t->at == m->setup->locks) {
        t->state = ENDED;
        t->at = 0;
        for (uint32_t l = 0; l < (m->setup->servers ? m->setup->locks : 1u); l++) {
            try_end(&w->statuses[status_of(m, i, l)], 1);
        }
    }
    follow(m, w, chain);
}

static bool step(const struct model *m, struct world *w, uint32_t i)
{
    struct txn *t = &w->txns[i];
    if (t->state == RUNS && t->at == m->programs[t->program].n) {
        t->state = PREPARES;
        t->at = 0;
    }
    switch ((enum txn_state)t->state) {
    case RUNS:
        ask(m, w, i);
        return true;
    case PREPARES:
        prepare(m, w, i);
        return true;
    case RELEASES:
        release(m, w, i);
        return true;
    case PARKED:
    case ENDED:
        break;
    }
    return false;
}

static bool finished(const void *self, const void *state)
{
    const struct world *w = state;
    (void)self;
    for (uint32_t i = 0; i < TXNS; i++) {
        if (w->txns[i].state != ENDED) {
            return false;
        }
    }
    return true;
}

static void expand(const void *self, const void *state, struct search *search)
{
    const struct model *m = self;
    bool any = false;
    for (uint32_t i = 0; i < m->setup->txns; i++) {
        struct world next = *(const struct world *)state;
        if (step(m, &next, i)) {
            any = true;
            search_emit(search, &next, i, NULL);
        }
    }
    if (!any && !finished(m, state)) {
        search_emit(search, state, TXNS, "transactions wait for ever");
    }
}

static const char *broken(const void *self, const void *state)
{
    const struct model *m = self;
    const struct world *w = state;
    struct lock_table table = table_of(m, w);
    const char *what = NULL;
    for (uint32_t i = 0; i < m->setup->locks && what == NULL && m->invariants; i++) {
        what = lock_broken(&table, &w->locks[i]);
    }
    if (what == NULL && m->invariants && m->config.policy != LOCK_NO_WAIT && w->txns[0].aborted) {
        what = "the oldest transaction was refused";
    }
    return what;
}

/* ---- Traces ---- */

static void print_asks(const struct model *m, uint8_t program, FILE *to)
{
    const struct program *p = &m->programs[program];
    for (uint8_t i = 0; i < p->n; i++) {
        fprintf(to, " %c(%c)", p->asks[i].mode == LOCK_X ? 'X' : 'S', 'A' + p->asks[i].lock);
    }
}

static void describe(const void *self, const void *before, const void *after, uint64_t action,
                     FILE *to)
{
    static const char *const words[] = {[RUNS] = "runs",
                                        [PARKED] = "waits",
                                        [PREPARES] = "prepares",
                                        [RELEASES] = "releases",
                                        [ENDED] = "has ended"};
    const struct model *m = self;
    const struct world *old = before;
    const struct world *w = after;
    if (action == TXNS) {
        fputs("nothing can happen:", to);
        for (uint32_t i = 0; i < m->setup->txns; i++) {
            fprintf(to, " t%u asks", i + 1);
            print_asks(m, w->txns[i].program, to);
            fprintf(to, " and %s;", words[w->txns[i].state]);
        }
        return;
    }
    fprintf(to, "t%u of", (uint32_t)action + 1);
    print_asks(m, old->txns[action].program, to);
    for (uint32_t i = 0; i < m->setup->txns; i++) {
        const struct txn *t = &w->txns[i];
        if (memcmp(t, &old->txns[i], sizeof *t) != 0) {
            fprintf(to, "; t%u %s%s", i + 1, words[t->state], t->aborted ? ", refused" : "");
        }
    }
}

/* ---- All programs ---- */

static void search_one(const struct model *m, const struct search_bounds *bounds,
                       struct locks_count *count, struct search_result *sum)
{
    struct search_model searched = {.self = m,
                                    .state_bytes = sizeof(struct world),
                                    .begin = begin,
                                    .expand = expand,
                                    .broken = broken,
                                    .finished = finished,
                                    .describe = describe};
    struct search_result one;
    search_run(&searched, bounds, NULL, NULL, &one);
    count->programs++;
    sum->states += one.states;
    sum->steps += one.steps;
    sum->finished += one.finished;
    sum->seconds += one.seconds;
    sum->depth = one.depth > sum->depth ? one.depth : sum->depth;
    if (one.end == SEARCH_VIOLATION) {
        bool stuck = strcmp(one.broken, "transactions wait for ever") == 0;
        count->stuck += stuck;
        count->broken += !stuck;
    }
    if (one.end != SEARCH_COMPLETE && sum->end == SEARCH_COMPLETE) {
        sum->end = one.end;
        sum->broken = one.broken;
        sum->trace = one.trace;
        one.trace = NULL;
    }
    search_result_deinit(&one);
}

struct locks_count locks_search(const struct locks_setup *setup, uint64_t rules_off,
                                bool invariants, const struct search_bounds *bounds,
                                struct search_result *result_out)
{
    struct locks_count count = {.programs = 0};
    struct model m = {.setup = setup,
                      .config = {.policy = setup->policy, .rules_off = rules_off},
                      .invariants = invariants};
    struct program none = {.n = 0};
    add_programs(&m, &none);
    *result_out = (struct search_result){.end = SEARCH_COMPLETE};
    uint32_t third = setup->txns == 3 ? m.programs_n : 1;
    for (uint32_t i = 0; i < m.programs_n * m.programs_n * third; i++) {
        m.chosen[0] = (uint8_t)(i % m.programs_n);
        m.chosen[1] = (uint8_t)(i / m.programs_n % m.programs_n);
        m.chosen[2] = (uint8_t)(i / m.programs_n / m.programs_n);
        search_one(&m, bounds, &count, result_out);
    }
    return count;
}

/* ---- The configurations ---- */

static void run(const struct explore_config *config, const struct explore_request *request,
                struct search_result *result_out)
{
    (void)locks_search(config->setup, request->rules_off, true, &request->bounds, result_out);
}

static void print(const struct explore_config *config, FILE *to)
{
    const struct locks_setup *s = config->setup;
    fprintf(to, "%s, %u transactions, %u locks, up to %u asks%s%s%s", lock_policy_names[s->policy],
            s->txns, s->locks, s->asks, s->shared ? "" : ", X only", s->again ? ", upgrades" : "",
            s->servers ? ", a server each" : "");
}

#define SETUP(...) (&(const struct locks_setup){__VA_ARGS__})
#define LOCKS_OF(config_name, in_words, is_fast, ...)                                              \
    {                                                                                              \
        .name = config_name, .what = in_words, .family = EXPLORE_LOCKS, .fast = is_fast,           \
        .setup = SETUP(__VA_ARGS__), .print = print, .run = run                                    \
    }

const struct explore_config explore_locks_configs[] = {
    LOCKS_OF("locks-no-wait", "all programs of three transactions and two locks", true,
             .policy = LOCK_NO_WAIT, .txns = 3, .locks = 2, .asks = 2, .shared = true),
    LOCKS_OF("locks-wait-die", "the same", true, .policy = LOCK_WAIT_DIE, .txns = 3, .locks = 2,
             .asks = 2, .shared = true),
    LOCKS_OF("locks-wound-wait", "the same, on one server: the wounded learn it at once", true,
             .policy = LOCK_WOUND_WAIT, .txns = 3, .locks = 2, .asks = 2, .shared = true),
    LOCKS_OF("locks-wound-lazy", "the same, on two servers: they learn it when they ask", true,
             .policy = LOCK_WOUND_WAIT, .txns = 3, .locks = 2, .asks = 2, .shared = true,
             .servers = true),
    LOCKS_OF("locks-die-upgrade", "programs that ask for the same lock twice", false,
             .policy = LOCK_WAIT_DIE, .txns = 3, .locks = 2, .asks = 2, .shared = true,
             .again = true),
    LOCKS_OF("locks-wound-upgrade", "the same", false, .policy = LOCK_WOUND_WAIT, .txns = 3,
             .locks = 2, .asks = 2, .shared = true, .again = true, .servers = true),
    LOCKS_OF("locks-die-three", "three locks, all X", false, .policy = LOCK_WAIT_DIE, .txns = 3,
             .locks = 3, .asks = 3),
    LOCKS_OF("locks-wound-three", "the same, on three servers", false, .policy = LOCK_WOUND_WAIT,
             .txns = 3, .locks = 3, .asks = 3, .servers = true),
    {.name = NULL},
};
