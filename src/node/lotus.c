/* A compute server of Lotus: transactions of its clients. Effects of the machine (commit.h) become
 * messages, answers and new tries. Where things are and what is sent: lotus_ask.c; what comes:
 * lotus_rows.c. docs/protocols/lotus.md has the states and the rules C1 to C7. */
#include "node/lotus.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/lotus_run.h"

#define NO_MAP_US 2000u /* how soon a transaction without a map looks again */
#define MOVED_US 500u   /* ... one that met a slot which moves */
#define BUSY_US 200u    /* the first pause after BUSY; it doubles */
#define REFUSED_US 16u  /* ... after a refusal, where the older wait: at most, it doubles */
#define NO_WAIT_US 8u   /* ... where nobody waits */
#define BACK_OFF_SHIFT_MAX 8u

static const struct lotus_config *config_of(const struct worker *w, uint8_t space)
{
    return w->node->spaces[space].engine;
}

/* ---- Making ---- */

static int make_hints(struct worker *w, uint8_t space)
{
    const struct lotus_config *config = config_of(w, space);
    uint32_t most = config->hints_max != 0 ? config->hints_max : 65536;
    if (config->hints_off) {
        return HK_OK;
    }
    w->lotus->hints_memory[space] = malloc(hints_bytes(most));
    if (w->lotus->hints_memory[space] == NULL) {
        return HK_ERR_NOMEM;
    }
    hints_init(&w->lotus->hints[space], w->lotus->hints_memory[space], most);
    return HK_OK;
}

int lotus_init(struct worker *w)
{
    const struct node *n = w->node;
    if (n->tables == 0) {
        return HK_OK;
    }
    struct lotuses *l = w->lotus = calloc(1, sizeof *l);
    if (l == NULL) {
        return HK_ERR_NOMEM;
    }
    list_init(&l->free);
    list_init(&l->open);
    list_init(&l->pauses);
    /* A commit goes on when its call is answered, and the call is somebody else's then. */
    l->runs_n = 2 * n->config.calls_max;
    l->transactions = random_next(&w->random);
    l->runs = calloc(l->runs_n, sizeof *l->runs);
    if (l->runs == NULL) {
        l->runs_n = 0;
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < l->runs_n; i++) {
        l->runs[i].slot = lotus_slot(w->index, i + 1);
        list_push_back(&l->free, &l->runs[i].link);
    }
    int err = HK_OK;
    bool across = false;
    for (uint32_t rest = n->tables; rest != 0 && err == HK_OK; rest &= rest - 1) {
        uint8_t space = (uint8_t)__builtin_ctz(rest);
        across = across || config_of(w, space)->across;
        err = make_hints(w, space);
    }
    return err != HK_OK || !across ? err : groups_init(w);
}

void lotus_deinit(struct worker *w)
{
    struct lotuses *l = w->lotus;
    if (l == NULL) {
        return;
    }
    for (uint32_t i = 0; i < l->runs_n; i++) {
        run_free(&l->runs[i]);
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        free(l->hints_memory[i]);
    }
    groups_deinit(w);
    buffer_free(&l->out);
    free(l->runs);
    free(l);
}

/* ---- Clocks ---- */

uint64_t lotus_version(struct worker *w, uint64_t seen)
{
    struct lotuses *l = w->lotus;
    uint64_t above = stamp_version(seen);
    /* From the calendar at first, so that those of another incarnation are behind it, but for one
     * that wrote more than a row in a millisecond. A row's own are behind it in any case (N8). */
    above = above > l->versions ? above : l->versions;
    above = above > w->wall_ms ? above : w->wall_ms;
    l->versions = above + 1;
    /* Never 0: that would mean that nothing was written (txn.h, absence). */
    return stamp_make(l->versions, ((uint32_t)w->node->config.self << 6 | w->index) + 1);
}

void lotus_versions_above(struct worker *w, uint64_t version)
{
    uint64_t above = stamp_version(version);
    w->lotus->versions = above > w->lotus->versions ? above : w->lotus->versions;
}

void lotus_saw(struct worker *w, const struct lock_age *age)
{
    w->lotus->ages_us = age->us > w->lotus->ages_us ? age->us : w->lotus->ages_us;
}

/* When it began: by the calendar, and never behind an age that was seen. Who repeats a transaction
 * of its own may say that it is older. */
static struct lock_age age_now(struct worker *w, const struct call *c)
{
    struct lotuses *l = w->lotus;
    uint64_t wall_us = w->wall_ms * 1000;
    l->ages_us = wall_us > l->ages_us ? wall_us : l->ages_us + 1;
    uint64_t since_us = w->now_us - c->since_us;
    return (struct lock_age){
        .us = l->ages_us > since_us ? l->ages_us - since_us : 0,
        .who = lotus_who(w->node->config.self, (uint8_t)w->index, ++l->transactions),
    };
}

/* ---- Beginning ---- */

static struct lotus_run *run_of(const struct call *c)
{
    return c->lotus;
}

static struct lotus_run *attach(struct worker *w, struct call *c)
{
    struct list_link *link = list_pop_front(&w->lotus->free);
    if (link == NULL) {
        return NULL;
    }
    struct lotus_run *r = list_entry(link, struct lotus_run, link);
    HK_ASSERT(!r->used && r->machine.state == LOTUS_IDLE);
    list_init(&r->link);
    r->used = true;
    r->call = c;
    c->lotus = r;
    c->brought = &lotus_brought;
    r->space = c->op.space;
    r->machine = (struct lotus_txn){.state = LOTUS_IDLE};
    r->number = 0;
    r->tries = 0;
    r->own_bytes = r->answered = r->stepping = r->whole = r->garbled = false;
    r->age = age_now(w, c);
    return r;
}

/* An empty key names no row: in the index and in messages it is where a range begins, or ends. */
static bool names_rows(const struct evaluation *e)
{
    for (uint32_t i = 0; i < e->objects_n; i++) {
        if (e->objects[i].key.n == 0) {
            return false;
        }
    }
    return true;
}

static int lotus_take(struct worker *w, struct call *c, const struct txn_request *request)
{
    if (request != NULL && (request->flags & TXN_ACQUIRE) != 0) {
        return HK_ERR_INVALID; /* rows stay where they are */
    }
    if (w->node->config.role == NODE_ROLE_MEMORY) {
        return HK_ERR_ROLE;
    }
    struct lotus_run *r = attach(w, c);
    if (r == NULL) {
        return HK_ERR_BUSY;
    }
    int err = evaluation_begin(&r->evaluation, request, &c->op, w->node->spaces[r->space].store);
    if (err != HK_OK) {
        return err;
    }
    if (!names_rows(&r->evaluation)) {
        return HK_ERR_INVALID;
    }
    const struct evaluation *e = &r->evaluation;
    for (uint32_t i = 0; request != NULL && i < e->objects_n; i++) {
        hot_note(w->hot[r->space], e->objects[i].key, e->objects[i].hash, w->now_us);
    }
    c->update = txn_updates(&e->request);
    return ask_prepare(r);
}

static void lotus_own(struct worker *w, struct call *c)
{
    struct lotus_run *r = run_of(c);
    (void)w;
    if (!r->own_bytes) {
        evaluation_own(&r->evaluation, &r->copy);
        ask_owned(r);
        r->own_bytes = true;
    }
}

/* ---- Ends ---- */

static void release(struct worker *w, struct lotus_run *r)
{
    HK_ASSERT(r->used && r->call == NULL && r->machine.state == LOTUS_IDLE);
    list_remove(&r->link);
    r->used = false;
    r->gen++;
    run_reset(w, r);
    list_push_front(&w->lotus->free, &r->link);
}

static void carry_out(struct worker *w, struct lotus_run *r, const struct lotus_effects *fx);

static void lotus_end(struct worker *w, struct call *c)
{
    struct lotus_run *r = run_of(c);
    struct lotus_effects fx = {.n = 0};
    r->call = NULL;
    c->lotus = NULL;
    if (!r->answered && r->machine.state != LOTUS_IDLE) {
        (void)lotus_cancel(&r->machine, &fx);
    }
    carry_out(w, r, &fx);
}

static void lotus_fill(struct worker *w, const struct call *c, struct reply *reply)
{
    const struct lotus_run *r = run_of(c);
    (void)w;
    if (r->answered) {
        evaluation_reply(&r->evaluation, reply);
    }
}

/* The call that is to be answered. */
static struct call *waiting(const struct lotus_run *r)
{
    return r->answered ? NULL : r->call;
}

static int lotus_says(const struct worker *w, const struct call *c, int err)
{
    const struct lotus_run *r = run_of(c);
    bool open = c->update && (r->machine.state == LOTUS_WHOLE || r->machine.state == LOTUS_PREPARE);
    return open && !r->answered ? HK_ERR_UNKNOWN
                                : lotus_error(&r->machine, config_of(w, r->space), err);
}

static void answer(struct worker *w, struct lotus_run *r)
{
    struct call *c = waiting(r);
    struct answer answer;
    if (c == NULL) {
        return;
    }
    r->answered = true;
    if (r->garbled) {
        call_fail(w, c, c->update ? HK_ERR_UNKNOWN : HK_ERR_UNAVAILABLE);
        return;
    }
    w->stats.txn_conflicts += r->evaluation.verdict == TXN_CONFLICT;
    w->stats.lotus_transactions++;
    groups_ended(w, r, false);
    if (r->tries >= w->stats.lotus_tries_most) {
        w->stats.lotus_tries_most = r->tries + 1;
    }
    evaluation_answer(&r->evaluation, &answer, &c->version);
    call_finish(w, c, &answer);
}

static void fail(struct worker *w, struct lotus_run *r, int err)
{
    struct call *c = waiting(r);
    if (c == NULL) {
        return;
    }
    r->answered = true;
    if (err == HK_ERR_LOSTSLOT) {
        call_lost(w, c, r->lost);
    } else {
        call_fail(w, c, err);
    }
}

/* ---- Tries ---- */

static uint64_t pause_of(struct worker *w, const struct lotus_run *r)
{
    const struct lotus_config *config = config_of(w, r->space);
    uint32_t shift = r->tries < BACK_OFF_SHIFT_MAX ? r->tries : BACK_OFF_SHIFT_MAX;
    switch ((enum lotus_word)r->machine.word) {
    case LOTUS_MOVED:
        return MOVED_US + random_below(&w->random, MOVED_US);
    case LOTUS_BUSY:
        return random_below(&w->random, (uint64_t)BUSY_US << shift);
    case LOTUS_OK:
    case LOTUS_REFUSED:
    case LOTUS_TOOBIG:
    case LOTUS_NOMEM:
    case LOTUS_WORDS:
        break;
    }
    if (config->lock.policy == LOCK_NO_WAIT) {
        return random_below(&w->random, (uint64_t)NO_WAIT_US << shift);
    }
    /* It is older with every try, so it need not stand back for long. */
    return random_below(&w->random, (uint64_t)REFUSED_US << shift);
}

/* The call stands back; its timer fires at the tick after, if nothing else does. */
static void pause(struct worker *w, struct lotus_run *r, struct call *c, uint64_t until_us)
{
    call_delay(w, c, until_us);
    if (c->state != CALL_DELAYED) {
        return; /* it has failed */
    }
    struct list_link *before = w->lotus->pauses.prev;
    r->until_us = until_us;
    while (before != &w->lotus->pauses &&
           run_of(list_entry(before, struct call, link))->until_us > until_us) {
        before = before->prev;
    }
    list_insert_after(before, &c->link);
}

/* Nothing has happened, and all is let go. */
static void again(struct worker *w, struct lotus_run *r)
{
    struct call *c = waiting(r);
    w->stats.txn_aborts++;
    groups_ended(w, r, true);
    if (c != NULL) {
        uint64_t until = w->now_us + pause_of(w, r), due = call_due(w, c);
        r->tries++;
        pause(w, r, c, until < due ? until : due);
    }
}

static void wait(struct worker *w, struct lotus_run *r)
{
    struct call *c = r->call;
    if (c == NULL || c->state == CALL_WAITING) {
        return;
    }
    lotus_own(w, c);
    list_remove(&c->link);
    c->state = CALL_WAITING;
    wheel_arm(&w->wheel, &c->timer, call_due(w, c));
}

/* All that was asked for is here. */
static void next(struct worker *w, struct lotus_run *r, struct lotus_effects *fx)
{
    nodeset written = 0;
    bool more = false;
    int err = rows_more(w, r, &more);
    if (err == HK_OK && more) {
        lotus_ask(&r->machine, ask_next(w, r), fx);
        return;
    }
    err = err != HK_OK ? err : rows_evaluate(w, r);
    err = err != HK_OK ? err : rows_record(w, r, &written);
    if (err != HK_OK) {
        lotus_give_up(&r->machine, config_of(w, r->space), err, fx);
        return;
    }
    evaluation_versions(&r->evaluation);
    lotus_evaluated(&r->machine, config_of(w, r->space), written, fx);
}

/* The first slot of it that one of these servers had. */
static void note_lost(struct lotus_run *r, nodeset gone)
{
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        if (nodeset_has(gone, r->places[i].home)) {
            r->lost = slot_of_key(r->evaluation.objects[i].key);
            return;
        }
    }
    for (uint32_t i = 0; i < r->spans_n; i++) {
        if ((r->spans[i].homes & gone) != 0) {
            r->lost = slot_of_key(r->spans[i].start);
        }
    }
}

/* ---- Effects ---- */

static void number(struct worker *w, struct lotus_run *r)
{
    HK_ASSERT(r->number == 0);
    r->number = ++w->lotus->number;
    list_push_back(&w->lotus->open, &r->link);
}

static void forget_number(struct lotus_run *r)
{
    r->number = 0;
    list_remove(&r->link);
}

static void send_one(struct worker *w, struct lotus_run *r, const struct lotus_effect *e,
                     uint8_t to)
{
    switch ((enum lotus_fx)e->kind) {
    case LOTUS_FX_WHOLE:
    case LOTUS_FX_EXECUTE:
        if (!groups_take(w, r, to)) {
            ask_request(w, r, to);
        }
        break;
    case LOTUS_FX_FINISH:
        ask_writes(w, r, to, LOTUS_MSG_FINISH, 0);
        break;
    case LOTUS_FX_PREPARE:
        ask_writes(w, r, to, LOTUS_MSG_PREPARE, e->to);
        break;
    case LOTUS_FX_COMMIT:
        ask_plain(w, r, to, LOTUS_MSG_COMMIT);
        break;
    case LOTUS_FX_ABORT:
        ask_plain(w, r, to, LOTUS_MSG_ABORT);
        break;
    case LOTUS_FX_NEXT:
    case LOTUS_FX_ANSWER:
    case LOTUS_FX_AGAIN:
    case LOTUS_FX_FAIL:
    case LOTUS_FX_END:
        HK_ASSERT(false && "nobody is told");
    }
}

static void send_all(struct worker *w, struct lotus_run *r, const struct lotus_effect *e)
{
    for (nodeset to = e->to; to != 0; to &= to - 1) {
        send_one(w, r, e, nodeset_first(to));
    }
}

static void one_effect(struct worker *w, struct lotus_run *r, const struct lotus_effect *e,
                       struct lotus_effects *more)
{
    switch ((enum lotus_fx)e->kind) {
    case LOTUS_FX_WHOLE:
    case LOTUS_FX_EXECUTE:
        wait(w, r);
        send_all(w, r, e);
        break;
    case LOTUS_FX_PREPARE:
        number(w, r);
        send_all(w, r, e);
        break;
    case LOTUS_FX_FINISH:
    case LOTUS_FX_COMMIT:
    case LOTUS_FX_ABORT:
        send_all(w, r, e);
        break;
    case LOTUS_FX_NEXT:
        next(w, r, more);
        break;
    case LOTUS_FX_ANSWER:
        answer(w, r);
        break;
    case LOTUS_FX_AGAIN:
        again(w, r);
        break;
    case LOTUS_FX_FAIL:
        fail(w, r, e->err);
        break;
    case LOTUS_FX_END:
        break;
    }
}

static void note_active(struct worker *w, struct lotus_run *r)
{
    bool active = r->machine.state != LOTUS_IDLE && r->machine.state != LOTUS_COMMIT;
    w->lotus->active += active && !r->active;
    w->lotus->active -= !active && r->active;
    r->active = active;
}

/* A call that ends on the way comes back here for what its machine says to that. */
static void carry_out(struct worker *w, struct lotus_run *r, const struct lotus_effects *fx)
{
    struct lotus_effects now = *fx;
    bool outer = !r->stepping;
    r->stepping = true;
    while (now.n > 0) {
        struct lotus_effects more = {.n = 0};
        for (uint32_t i = 0; i < now.n; i++) {
            HK_ASSERT(more.n == 0); /* what has consequences comes last */
            one_effect(w, r, &now.e[i], &more);
        }
        now = more;
    }
    lotus_txn_check(&r->machine);
    note_active(w, r);
    if (!outer) {
        return;
    }
    r->stepping = false;
    if (r->machine.state == LOTUS_IDLE) {
        forget_number(r);
        if (r->call == NULL && r->used) {
            release(w, r);
        }
    }
}

static void lotus_run(struct worker *w, struct call *c)
{
    const struct lotus_config *config = config_of(w, c->op.space);
    struct lotus_run *r = run_of(c);
    struct lotus_effects fx = {.n = 0};
    HK_ASSERT(r->machine.state == LOTUS_IDLE && r->number == 0);
    if (lotus_rule_on(config, LOTUS_RULE_FRESH)) {
        rows_forget(w, r);
        r->meetings.n = r->met_n = 0;
    }
    r->gen++;
    if (!lotus_rule_on(config, LOTUS_RULE_AGE_KEPT) && r->tries > 0) {
        r->age = age_now(w, c);
    }
    enum lotus_where where = ask_place(w, r);
    if (where == LOTUS_LOST) {
        call_lost(w, c, r->lost);
        return;
    }
    if (where == LOTUS_NOBODY) {
        call_fail(w, c, HK_ERR_ROLE);
        return;
    }
    if (where == LOTUS_WAIT) {
        call_delay(w, c, w->now_us + NO_MAP_US);
        return;
    }
    w->stats.lotus_tries++;
    r->whole = nodeset_count(r->homes) == 1 && !config->one_trip_off && ask_fits_whole(r);
    if (r->whole) {
        lotus_whole(&r->machine, nodeset_first(r->homes), c->update, &fx);
    } else {
        lotus_ask(&r->machine, ask_next(w, r), &fx);
    }
    carry_out(w, r, &fx);
}

static void lotus_timer(struct worker *w, struct call *c)
{
    struct lotus_run *r = run_of(c);
    struct lotus_effects fx = {.n = 0};
    HK_ASSERT(!r->answered && r->machine.state != LOTUS_IDLE);
    bool open = c->update && r->machine.state != LOTUS_EXECUTE;
    (void)lotus_cancel(&r->machine, &fx);
    r->answered = true; /* lotus_end has nothing to cancel any more */
    carry_out(w, r, &fx);
    call_fail(w, c, open ? HK_ERR_UNKNOWN : HK_ERR_BUSY);
}

const struct brought_ops lotus_brought = {
    .take = lotus_take,
    .own = lotus_own,
    .run = lotus_run,
    .timer = lotus_timer,
    .error = lotus_says,
    .fill = lotus_fill,
    .end = lotus_end,
};

/* ---- Messages ---- */

static enum lotus_word take_rows(struct worker *w, struct lotus_run *r, const struct msg *msg,
                                 uint8_t from)
{
    enum lotus_word word = (enum lotus_word)msg->ts;
    int err = HK_OK;
    lotus_versions_above(w, msg->arg);
    if (word == LOTUS_OK && !rows_take(w, r, from, msg->value, &err)) {
        w->stats.engine_drops[ENGINE_DROP_INVALID]++;
        word = LOTUS_REFUSED;
    }
    word = err == HK_ERR_BUSY ? LOTUS_BUSY : err != HK_OK ? LOTUS_TOOBIG : word;
    if (msg->ts == LOTUS_OK && word != LOTUS_OK) {
        /* It has not refused, and shall not keep its locks. */
        ask_plain(w, r, from, LOTUS_MSG_ABORT);
    }
    return word;
}

static void answer_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct lotuses *l = w->lotus;
    struct lotus_effects fx = {.n = 0};
    uint32_t i = lotus_slot_index(msg->slot);
    struct lotus_run *r = i == 0 || i > l->runs_n ? NULL : &l->runs[i - 1];
    if (r == NULL || !r->used || r->gen != msg->gen || r->space != msg->space ||
        !nodeset_has(r->machine.waits, from)) {
        w->stats.engine_drops[ENGINE_DROP_SLOT]++;
        return;
    }
    enum lotus_word word = (enum lotus_word)msg->ts;
    enum lotus_state phase = LOTUS_COMMIT;
    if (msg->kind == LOTUS_MSG_EXECUTED && r->machine.state == LOTUS_EXECUTE) {
        phase = LOTUS_EXECUTE;
        word = take_rows(w, r, msg, from);
    } else if (msg->kind == LOTUS_MSG_DONE && r->machine.state == LOTUS_WHOLE) {
        phase = LOTUS_WHOLE;
        r->garbled = r->whole && word == LOTUS_OK && !rows_answers(w, r, msg->value);
    } else if (msg->kind == LOTUS_MSG_PREPARED && r->machine.state == LOTUS_PREPARE) {
        phase = LOTUS_PREPARE;
    } else if (msg->kind != LOTUS_MSG_COMMITTED || r->machine.state != LOTUS_COMMIT) {
        w->stats.engine_drops[ENGINE_DROP_SLOT]++;
        return;
    }
    lotus_answered(&r->machine, config_of(w, r->space), phase, from, word, &fx);
    carry_out(w, r, &fx);
}

void lotus_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    if (from == NODE_NONE) {
        w->stats.engine_drops[ENGINE_DROP_SENDER]++;
    } else if (msg->kind == LOTUS_MSG_EXECUTED || msg->kind == LOTUS_MSG_DONE ||
               msg->kind == LOTUS_MSG_PREPARED || msg->kind == LOTUS_MSG_COMMITTED) {
        answer_message(w, msg, from);
    } else {
        lotus_home_message(w, msg, from);
    }
}

/* ---- Views ---- */

/* Nodes with which messages may have been lost: another process is there now, or it was out of the
 * view in between. Lanes keep what members say to each other, whatever the epoch. */
static nodeset strangers(struct worker *w)
{
    struct lotuses *l = w->lotus;
    nodeset gone = 0;
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        uint32_t life = lanes_life(w, i);
        uint64_t nonce = life != 0 ? w->view.members[i].nonce : 0;
        if (life != l->life[i] || nonce != l->nonces[i]) {
            gone |= nodeset_of(i);
        }
        l->life[i] = life;
        l->nonces[i] = nonce;
    }
    return gone;
}

/* C8. Whether nothing that this try or one before it has asked for can have an effect. */
static bool changed_nothing(const struct lotus_txn *t)
{
    bool reads = t->state == LOTUS_WHOLE && !t->writes;
    return (t->state == LOTUS_EXECUTE || reads) && t->unsure == 0;
}

static void server_gone(struct worker *w, struct lotus_run *r, nodeset gone)
{
    struct lotus_effects fx = {.n = 0};
    bool may_again = changed_nothing(&r->machine);
    note_lost(r, gone);
    lotus_gone(&r->machine, config_of(w, r->space), gone, &fx);
    for (uint32_t i = 0; i < fx.n; i++) {
        if (may_again && fx.e[i].kind == LOTUS_FX_FAIL && fx.e[i].err == HK_ERR_LOSTSLOT) {
            fx.e[i].kind = LOTUS_FX_AGAIN;
        }
    }
    carry_out(w, r, &fx);
}

void lotus_adopt(struct worker *w)
{
    nodeset gone = w->lotus != NULL ? strangers(w) : 0;
    for (uint32_t i = 0; gone != 0 && i < w->lotus->runs_n; i++) {
        struct lotus_run *r = &w->lotus->runs[i];
        if (r->used && r->machine.state != LOTUS_IDLE && (r->machine.homes & gone) != 0) {
            server_gone(w, r, gone);
        }
    }
}

void lotus_check(const struct worker *w)
{
    const struct lotuses *l = w->lotus;
    uint64_t before = 0, brought = 0;
    uint32_t open = 0;
    if (l == NULL) {
        return;
    }
    for (uint32_t i = 0; i < l->runs_n; i++) {
        const struct lotus_run *r = &l->runs[i];
        lotus_txn_check(&r->machine);
        HK_ASSERT(!r->stepping);
        HK_ASSERT(r->used || (r->machine.state == LOTUS_IDLE && r->call == NULL));
        HK_ASSERT(r->call == NULL || r->call->lotus == r);
        HK_ASSERT((r->machine.state == LOTUS_PREPARE || r->machine.state == LOTUS_COMMIT) ==
                  (r->number != 0));
        open += r->number != 0;
        brought += r->values.n;
    }
    HK_ASSERT(brought <= l->brought); /* the home's are among them */
    list_each(link, &l->open)
    {
        const struct lotus_run *r = list_entry(link, struct lotus_run, link);
        HK_ASSERT(r->number > before);
        before = r->number;
        open--;
    }
    HK_ASSERT(open == 0);
}

/* ---- Polls ---- */

static uint64_t pauses_due(const struct worker *w)
{
    const struct list_link *pauses = &w->lotus->pauses;
    return list_empty(pauses) ? UINT64_MAX
                              : run_of(list_entry(pauses->next, struct call, link))->until_us;
}

void lotus_poll(struct worker *w)
{
    while (pauses_due(w) <= w->now_us) {
        call_ready(w, list_entry(w->lotus->pauses.next, struct call, link));
    }
    groups_poll(w);
}

uint64_t lotus_deadline(const struct worker *w)
{
    uint64_t pauses = pauses_due(w), groups = groups_due(w);
    return pauses < groups ? pauses : groups;
}
