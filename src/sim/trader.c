#include "sim/trader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/assert.h"
#include "sim/teller.h"
#include "sim/world.h"

/* Calls, and tries, that a worker has room for where nobody is to be turned away. */
#define LOTUS_ROOM 96u

bool traders_on(const struct world *world)
{
    return world->setup.traders > 0;
}

static struct deal *deal_at(struct world *world, uint32_t i)
{
    HK_ASSERT(i < world->traders.deals_n);
    return world->traders.deals[i];
}

static void trace_deal(struct world *world, const struct deal *deal, const char *what)
{
    if (trace_wanted(&world->trace)) {
        char text[300];
        deal_describe(deal, text, sizeof text);
        const struct trader *t = &world->traders.at[deal->trader];
        trace_line(world, "node %u %s %s", world->machines[t->machine].id, what, text);
    }
}

/* ---- Who wants what, when ---- */

static void trader_schedule(struct world *world, struct trader *t, uint64_t at_us)
{
    if (!t->scheduled) {
        t->scheduled = true;
        uint64_t earliest_us = at_us > t->backoff_until_us ? at_us : t->backoff_until_us;
        world_plan(world, earliest_us, HAPPENS_TRADE, t->id, 0, 0, NULL);
    }
}

static void trader_init(struct world *world, uint32_t id)
{
    struct trader *t = &world->traders.at[id];
    struct random *chance = &world->chance_traders;
    *t = (struct trader){.id = id, .session = SESSION_NONE, .next = NO_OP};
    t->machine = (uint8_t)(id % world->setup.nodes);
    t->worker = (uint32_t)random_below(chance, world->setup.workers_of[t->machine]);
    t->window = (uint32_t)random_between(chance, 1, world->setup.trade_window);
    t->speaks = id % 2 == 1 && (world->setup.engine->traits & ENGINE_OWNED) != 0;
    t->window = t->speaks ? 1 : t->window;
    if (random_chance(chance, 400000)) {
        t->patience_us =
            random_between(chance, world->setup.answer_us / 20, world->setup.answer_us);
    }
}

void traders_init(struct world *world)
{
    struct traders *ts = &world->traders;
    const struct setup *s = &world->setup;
    ts->next_number = DEAL_FIRST_NUMBER;
    for (uint32_t i = 0; i < s->traded + s->accounts; i++) {
        struct trade_key *k = &ts->keys[i];
        const char *name = i < s->traded ? "traded" : "account";
        const char *format = deal_has_ranges(world) ? "%s%s-%02" PRIu32 : "%s%s-%" PRIu32;
        k->n = (uint32_t)snprintf((char *)k->bytes, sizeof k->bytes, format,
                                  s->trade_tag ? "{trade}" : "", name, i);
    }
    for (uint32_t i = 0; i < 2; i++) {
        struct trade_key *edge = &ts->edges[i];
        edge->n = (uint32_t)snprintf((char *)edge->bytes, sizeof edge->bytes, "%s%s.",
                                     s->trade_tag ? "{trade}" : "", i == 0 ? "traded" : "account");
    }
    for (uint32_t i = 0; i < s->traders; i++) {
        trader_init(world, i);
    }
    ts->n = s->traders;
}

void traders_deinit(struct world *world)
{
    struct traders *ts = &world->traders;
    for (uint32_t i = 0; i < ts->n; i++) {
        teller_hang_up(world, &ts->at[i]);
    }
    for (size_t i = 0; i < ts->deals_n; i++) {
        deal_destroy(ts->deals[i]);
    }
    free(ts->deals);
}

static void trader_give(struct world *world, struct trader *t, uint32_t deals)
{
    t->quota += deals;
    t->tries = 2 * t->quota;
    trader_schedule(world, t, world->now_us + random_below(&world->chance_traders, 100));
}

void traders_round(struct world *world, uint32_t deals)
{
    struct traders *ts = &world->traders;
    for (uint32_t i = 0; i < ts->n; i++) {
        if (ts->at[i].quota < 3 * deals) {
            trader_give(world, &ts->at[i], deals);
        }
    }
}

void traders_forget(struct world *world)
{
    struct traders *ts = &world->traders;
    ts->opened_us = 0;
    for (uint32_t i = 0; i < ts->n; i++) {
        ts->at[i].next = NO_OP;
    }
    for (uint32_t i = 0; i < TRADED_MAX; i++) {
        ts->keys[i].tampering = (struct tampering){0};
    }
}

bool traders_top_up(struct world *world, uint32_t each)
{
    struct traders *ts = &world->traders;
    bool all = true;
    for (uint32_t i = 0; i < ts->n; i++) {
        struct trader *t = &ts->at[i];
        if (t->ok_calm < each) {
            all = false;
            if (t->quota == 0 && t->ring_n == 0) {
                trader_give(world, t, world->setup.round_deals);
            }
        }
    }
    return all;
}

void traders_read_all(struct world *world)
{
    struct traders *ts = &world->traders;
    for (nodeset rest = traders_on(world) ? world->operator.wanted : 0; rest != 0;
         rest &= rest - 1) {
        uint32_t id = ts->n++;
        trader_init(world, id);
        struct trader *t = &ts->at[id];
        t->machine = nodeset_first(rest);
        t->worker %= world->setup.workers_of[t->machine];
        t->reader = true;
        t->speaks = false;
        t->window = 1;
        t->patience_us = 0;
        trader_schedule(world, t, world->now_us);
    }
}

bool traders_idle(const struct world *world)
{
    const struct traders *ts = &world->traders;
    for (uint32_t i = 0; i < ts->n; i++) {
        if (ts->at[i].ring_n > 0 || (ts->at[i].reader && ts->at[i].scheduled)) {
            return false;
        }
    }
    return true;
}

void traders_explain(const struct world *world, struct text *why)
{
    const struct traders *ts = &world->traders;
    for (uint32_t i = 0; i < ts->n; i++) {
        const struct trader *t = &ts->at[i];
        if (t->ring_n > 0 || (!t->reader && t->ok_calm < 5)) {
            text_add(why, " trader %u at node %u (%u done, %u under way)", i, t->machine,
                     t->reader ? t->read_n : t->ok_calm, t->ring_n);
        }
    }
}

/* ---- Outcomes ---- */

static void finish(struct world *world, struct deal *deal, enum txn_outcome outcome)
{
    struct sim_stats *stats = &world->result->stats;
    HK_ASSERT(deal->state != DEAL_OVER);
    deal->state = DEAL_OVER;
    deal->outcome = outcome;
    stats->deals++;
    stats->deals_ok += outcome == TXN_COMMITTED;
    stats->deals_spoken += outcome == TXN_COMMITTED && deal->said;
    stats->deals_aborted += outcome == TXN_ABORTED;
    stats->deals_unknown += outcome == TXN_UNKNOWN;
}

/* What its worker has not seen has no effect; of what it has seen, writes may have one at any
 * time. */
static void trader_disconnect(struct world *world, struct trader *t)
{
    struct machine *m = &world->machines[t->machine];
    struct actor *a = &m->actors[t->worker];
    for (; t->ring_n > 0; t->ring_n--) {
        struct deal *deal = deal_at(world, t->ring[t->ring_first]);
        t->ring_first = (t->ring_first + 1) % WINDOW_MAX;
        bool perhaps = deal->begin_us != 0 && deal_updates(deal);
        trace_deal(world, deal, "is asked no more:");
        finish(world, deal, perhaps ? TXN_UNKNOWN : TXN_ABORTED);
    }
    if (t->session != SESSION_NONE && m->node != NULL) {
        HK_ASSERT(a->closing_n < sizeof a->closing / sizeof a->closing[0]);
        a->closing[a->closing_n++] = t->session;
        machine_notice(m, t->worker);
    }
    teller_hang_up(world, t);
    t->next = t->speaks ? NO_OP : t->next; /* what it watched is forgotten */
    t->session = SESSION_NONE;
    t->connection++;
    t->moving = false;
}

static void trader_move(struct world *world, struct trader *t)
{
    struct random *chance = &world->chance_traders;
    trader_disconnect(world, t);
    if (!t->reader) {
        t->machine = (uint8_t)random_below(chance, world->setup.machines);
    }
    uint8_t node = world->machines[t->machine].id;
    t->worker = (uint32_t)random_below(chance, world->setup.workers_of[node]);
    t->backoff_until_us = world->now_us + random_between(chance, 200, 10000);
    if (t->tries > 0) {
        t->tries--;
        t->quota++;
    }
    trader_schedule(world, t, world->now_us);
}

void traders_lost(struct machine *m)
{
    struct world *world = m->world;
    for (uint32_t i = 0; i < world->traders.n; i++) {
        struct trader *t = &world->traders.at[i];
        if (t->machine == m->place && (t->ring_n > 0 || t->session != SESSION_NONE)) {
            trader_move(world, t);
        }
    }
}

void traders_follow(struct machine *from, struct machine *to)
{
    struct world *world = from->world;
    for (uint32_t i = 0; i < world->traders.n; i++) {
        struct trader *t = &world->traders.at[i];
        if (t->machine == from->place && (t->ring_n > 0 || t->session != SESSION_NONE)) {
            t->machine = to->place;
        }
    }
}

/* ---- Asking ---- */

/* As for operations (client.c). */
static uint64_t overdue_us(const struct world *world)
{
    return world->setup.answer_us + world->setup.answer_us / 8 + 50000;
}

static void trader_issue(struct world *world, struct trader *t, struct deal *deal)
{
    struct machine *m = &world->machines[t->machine];
    deal->connection = t->connection;
    deal->state = DEAL_QUEUED;
    deal->arrived_step = world->step;
    deal->queued_us = world->now_us;
    t->ring[(t->ring_first + t->ring_n++) % WINDOW_MAX] = deal->index;
    machine_notice(m, t->worker);
    uint64_t wait_us = t->patience_us > 0 ? t->patience_us : overdue_us(world);
    world_plan(world, world->now_us + wait_us, HAPPENS_DEAL_IMPATIENCE, deal->index, 0, 0, NULL);
}

void trader_act(struct world *world, uint32_t id)
{
    struct trader *t = &world->traders.at[id];
    t->scheduled = false;
    bool wants = t->reader || (t->quota > 0 && world->phase < PHASE_DRAIN);
    if (!wants || t->ring_n >= t->window || t->moving) {
        return;
    }
    if (world->now_us < t->backoff_until_us) {
        trader_schedule(world, t, t->backoff_until_us);
        return;
    }
    if (world->machines[t->machine].node == NULL) {
        trader_move(world, t);
        return;
    }
    if (t->reader) {
        struct deal *deal = deal_read_all(world, t, t->read_n);
        if (deal != NULL) {
            trader_issue(world, t, deal);
        }
        return;
    }
    t->quota--;
    trader_issue(world, t, deal_draw(world, t));
    trader_schedule(
        world, t, world->now_us + random_between(&world->chance_traders, 0, world->setup.think_us));
}

static bool disturbed(const struct machine *m, const struct deal *deal, uint32_t worker)
{
    return m->state != MACHINE_UP || m->slow > 1 || m->actors[worker].stalls > 0 ||
           m->disturbed_us >= deal->queued_us;
}

static bool overdue(const struct world *world, const struct deal *deal)
{
    return deal->taken_us == 0 ? world->now_us >= deal->queued_us + 3 * overdue_us(world)
                               : world->now_us >= deal->taken_us + overdue_us(world);
}

void deal_impatient(struct world *world, uint32_t index)
{
    struct deal *deal = deal_at(world, index);
    struct trader *t = &world->traders.at[deal->trader];
    if (deal->state == DEAL_OVER || deal->connection != t->connection) {
        return;
    }
    if (t->patience_us > 0) {
        trace_deal(world, deal, "has not answered, which its trader does not stand any longer:");
        trader_move(world, t);
    } else if (disturbed(&world->machines[t->machine], deal, t->worker) || !overdue(world, deal)) {
        world_plan(world, world->now_us + overdue_us(world), HAPPENS_DEAL_IMPATIENCE, index, 0, 0,
                   NULL);
    } else {
        char text[300];
        deal_describe(deal, text, sizeof text);
        world_violation(world, "node %u leaves a transaction unanswered for %" PRIu64 " ms: %s%s",
                        t->machine, (world->now_us - deal->queued_us) / 1000, text,
                        deal->state == DEAL_QUEUED ? " (it has not even taken it)" : "");
    }
}

/* ---- For machines ---- */

static bool is_here(const struct trader *t, const struct machine *m, uint32_t worker)
{
    return t->machine == m->place && t->worker == worker;
}

/* The oldest deal that its worker has not taken, or NULL. */
static struct deal *oldest_queued(struct world *world, const struct trader *t)
{
    for (uint32_t i = 0; i < t->ring_n; i++) {
        struct deal *deal = deal_at(world, t->ring[(t->ring_first + i) % WINDOW_MAX]);
        if (deal->state == DEAL_QUEUED) {
            return deal;
        }
    }
    return NULL;
}

static const char *speak(struct machine *m, struct trader *t, struct deal *deal)
{
    const char *wrong = t->conn == NULL ? teller_connect(m, t) : NULL;
    return wrong == NULL && !deal->said ? teller_say(m->world, t, deal) : wrong;
}

void traders_prepare(struct machine *m, uint32_t worker)
{
    struct world *world = m->world;
    struct worker *w = node_worker(m->node, worker);
    for (uint32_t i = 0; i < world->traders.n; i++) {
        struct trader *t = &world->traders.at[i];
        struct deal *deal = is_here(t, m, worker) ? oldest_queued(world, t) : NULL;
        if (deal == NULL || deal->arrived_step > m->cutoff_step) {
            continue;
        }
        int err = t->session == SESSION_NONE ? worker_session_open(w, &t->session) : HK_OK;
        if (err != HK_OK) {
            t->session = SESSION_NONE;
            world_violation(world, "node %u takes no session: %s", m->id, hk_err_name(err));
            return;
        }
        const char *wrong = t->speaks ? speak(m, t, deal) : NULL;
        if (wrong != NULL) {
            world_violation(world, "node %u takes no connection: %s", m->id, wrong);
            return;
        }
    }
}

static void make_request(const struct trader *t, struct deal *deal, struct request *request_out)
{
    deal->alone = deal->kind == DEAL_GET || deal->kind == DEAL_SET;
    *request_out = (struct request){
        .session = t->session,
        .txn = deal->alone ? NULL : &deal->request,
    };
    if (deal->alone) {
        request_out->op = deal->ops[0];
    }
}

static void take(struct machine *m, struct deal *deal, struct request *request_out)
{
    struct world *world = m->world;
    deal->state = DEAL_TAKEN;
    deal->taken_us = world->now_us;
    deal->begin_us = 2 * m->poll_step;
    request_out->tag = DEAL_TAG | deal->index;
    trace_note(&world->trace, DEAL_TAG | deal->index);
    trace_deal(world, deal, "takes");
}

/* The next request that a speaking trader's commands ask for. */
static bool next_spoken(struct machine *m, struct trader *t, struct deal *deal,
                        struct request *request_out)
{
    const char *wrong;
    bool ahead = false;
    if (t->conn == NULL || !teller_request(m, t, deal, request_out, &ahead, &wrong)) {
        if (t->conn != NULL && wrong != NULL) {
            char text[300];
            deal_describe(deal, text, sizeof text);
            world_violation(m->world, "node %u makes %s of commands: %s", m->id, wrong, text);
        }
        return false;
    }
    if (ahead) {
        request_out->tag = DEAL_TAG | DEAL_AHEAD | deal->index;
        return true;
    }
    take(m, deal, request_out);
    return true;
}

bool traders_request(struct machine *m, uint32_t worker, struct request *request_out)
{
    struct world *world = m->world;
    struct worker *w = node_worker(m->node, worker);
    for (uint32_t i = 0; i < world->traders.n; i++) {
        struct trader *t = &world->traders.at[i];
        struct deal *deal = NULL;
        if (is_here(t, m, worker) && t->session != SESSION_NONE &&
            worker_session_ready(w, t->session)) {
            deal = oldest_queued(world, t);
        }
        if (deal == NULL || deal->arrived_step > m->cutoff_step) {
            continue;
        }
        if (t->speaks ? next_spoken(m, t, deal, request_out)
                      : (make_request(t, deal, request_out), take(m, deal, request_out), true)) {
            return true;
        }
    }
    return false;
}

void traders_reply(struct machine *m, uint32_t worker, const struct reply *reply)
{
    struct world *world = m->world;
    uint32_t index = (uint32_t)reply->tag & ~(DEAL_TAG | DEAL_AHEAD);
    if (index >= world->traders.deals_n) {
        world_violation(world, "node %u answers a transaction that nobody asked for", m->id);
        return;
    }
    struct deal *deal = deal_at(world, index);
    struct trader *t = &world->traders.at[deal->trader];
    machine_notice(m, worker); /* there is room again for what waits */
    if (deal->connection != t->connection) {
        return;
    }
    if ((reply->tag & DEAL_AHEAD) != 0) {
        teller_ahead(world, t, reply);
        return;
    }
    uint32_t i = 0;
    while (i < t->ring_n &&
           deal_at(world, t->ring[(t->ring_first + i) % WINDOW_MAX])->state == DEAL_ANSWERED) {
        i++;
    }
    if (i == t->ring_n || t->ring[(t->ring_first + i) % WINDOW_MAX] != index ||
        deal->state != DEAL_TAKEN || reply->session != t->session) {
        world_violation(world, "node %u answers twice or out of order: deal %" PRIu32, m->id,
                        index);
        return;
    }
    deal->state = DEAL_ANSWERED;
    bool failed = reply->answer.kind == ANSWER_ERROR;
    deal->err = failed ? (int)reply->answer.number : HK_OK;
    const char *wrong = failed ? NULL : deal_understand(world, deal, reply);
    wrong = wrong == NULL && t->conn != NULL ? teller_hear(world, t, deal, reply) : wrong;
    if (wrong != NULL) {
        char text[300];
        deal_describe(deal, text, sizeof text);
        world_violation(world, "node %u gives %s: %s", m->id, wrong, text);
    }
}

/* ---- Answers that have left the process ---- */

/* What comes out is not strictly serializable: who reads after two others have seen two values is
 * made to see the first. */
static void tamper(struct world *world, struct deal *deal)
{
    struct traders *ts = &world->traders;
    for (uint32_t i = 0; i < deal->request.ops_n && !ts->tampered; i++) {
        struct deal_item *item = &deal->items[i];
        bool reads = deal->kind == DEAL_READ || deal->kind == DEAL_GET;
        if (!reads || !item->there) {
            continue;
        }
        struct trade_key *k = &ts->keys[item->key];
        struct tampering *t = &k->tampering;
        if (t->seen > 0 && deal->begin_us <= t->after_us) {
            continue;
        }
        if (t->seen == 0) {
            *t = (struct tampering){1, item->number, deal->end_us};
            k->tampered_version = item->version;
        } else if (t->seen == 1 && item->number != t->first) {
            t->seen = 2;
            t->after_us = deal->end_us;
        } else if (t->seen == 2) {
            ts->tampered = true;
            item->number = t->first;
            item->version = k->tampered_version;
        }
    }
}

static void answered_well(struct world *world, struct deal *deal, struct trader *t)
{
    finish(world, deal, deal->outcome);
    t->ok_calm += world->phase != PHASE_SAFETY;
    t->read_n += t->reader;
    if (deal->outcome != TXN_COMMITTED) {
        return;
    }
    if (world->config->tamper) {
        tamper(world, deal);
    }
    deal_account(world, deal);
    for (uint32_t i = 0; i < deal->request.ops_n; i++) {
        world->result->stats.ranges += deal->ranges[i] != NULL;
    }
    bool alone = t->reader || t->next != NO_OP || (t->speaks && !t->watches);
    struct deal *next = alone ? NULL : deal_follow(world, t, deal);
    if (next != NULL) {
        t->next = next->index;
        t->quota++;
    }
}

static bool any_lost(struct world *world, const struct deal *deal)
{
    bool any = false;
    for (uint32_t i = 0; i < world->setup.traded + world->setup.accounts; i++) {
        lost_note(world, world->clients.keys_n + i);
    }
    for (uint32_t i = 0; i < deal->request.ops_n; i++) {
        any = any || lost_ever(world, world->clients.keys_n + deal->items[i].key);
    }
    return any || deal->kind == DEAL_RENAME; /* whose second key is no item */
}

/* Whether the oldest transaction always ends, and there is room for everybody. */
static bool is_fair(const struct world *world)
{
    const struct setup *s = &world->setup;
    return deal_has_ranges(world) && s->lotus.lock.policy != LOCK_NO_WAIT &&
           s->lotus.tries_max >= LOTUS_ROOM && s->calls_max >= LOTUS_ROOM;
}

/* Whether an honest node may give this error. */
static bool may_fail(struct world *world, const struct deal *deal)
{
    bool settled = deal->queued_us > world->settled_us;
    switch (deal->err) {
    case HK_ERR_UNKNOWN:
        return deal_updates(deal) && !settled;
    case HK_ERR_UNAVAILABLE:
    case HK_ERR_LOADING:
        return !settled;
    case HK_ERR_LOST:
        return !settled && any_lost(world, deal);
    case HK_ERR_LOSTSLOT:
    case HK_ERR_ROLE: /* no node keeps rows at the moment */
        return !settled && homed_on(world);
    case HK_ERR_NOMEM:
    case HK_ERR_FULL:
        return true;
    case HK_ERR_BUSY: /* contention outlasted its patience: try again */
        return !settled || !is_fair(world);
    default:
        return false;
    }
}

static void answered_badly(struct world *world, struct deal *deal, struct trader *t)
{
    if (!may_fail(world, deal)) {
        char text[300];
        deal_describe(deal, text, sizeof text);
        world_violation(world, "node %u answers %s: %s", t->machine, hk_err_name(deal->err), text);
    }
    finish(world, deal, deal->err == HK_ERR_UNKNOWN ? TXN_UNKNOWN : TXN_ABORTED);
    /* Who lost against others tries again here; everybody else goes elsewhere. */
    if (deal->err == HK_ERR_BUSY && t->tries > 0) {
        t->tries--;
        t->quota++;
    } else {
        t->moving = true;
    }
}

static void over(struct world *world, struct deal *deal, struct trader *t)
{
    HK_ASSERT(t->ring_n > 0 && t->ring[t->ring_first] == deal->index);
    t->ring_first = (t->ring_first + 1) % WINDOW_MAX;
    t->ring_n--;
    deal->end_us = 2 * world->step + 1;
    trace_note(&world->trace, (uint64_t)deal->items[0].number ^ (uint64_t)deal->err << 32);
    if (deal->err == HK_OK) {
        trace_deal(world, deal, deal->outcome == TXN_COMMITTED ? "answers" : "does nothing for");
        answered_well(world, deal, t);
    } else {
        trace_deal(world, deal, hk_err_name(deal->err));
        answered_badly(world, deal, t);
    }
}

void traders_answered(struct world *world, uint32_t index)
{
    if ((index & DEAL_AHEAD) != 0) {
        return;
    }
    struct deal *deal = deal_at(world, index);
    struct trader *t = &world->traders.at[deal->trader];
    if (deal->state == DEAL_OVER || deal->connection != t->connection) {
        return;
    }
    /* Answers leave in their order. */
    while (t->ring_n > 0 && deal->state != DEAL_OVER) {
        over(world, deal_at(world, t->ring[t->ring_first]), t);
    }
    if (t->moving && t->ring_n == 0) {
        trader_move(world, t);
        return;
    }
    trader_schedule(
        world, t, world->now_us + random_between(&world->chance_traders, 0, world->setup.think_us));
}
