/* Operations of clients: taken up under a lease, evaluated on the readable local value, handed to
 * the engine as updates, parked, tried again, answered. */
#include "node/internal.h"

#include <string.h>

#include "base/assert.h"

#define TRY_AGAIN_US 2000u /* how soon a call without lease or slot looks again */
#define PROD_SHIFT_MAX 5u  /* prods of a parked call double up to 32 times parked_us */
#define QUICK_TRIES 2u     /* lost updates that are tried again without back-off */
#define BACK_OFF_SHIFT_MAX 7u

static const struct space *space_of(const struct worker *w, const struct call *c)
{
    return &w->node->spaces[c->op.space];
}

static uint32_t traits_of(const struct worker *w, const struct call *c)
{
    return space_of(w, c)->ops->traits;
}

static bool leased(const struct worker *w)
{
    return w->now_us < w->lease_until_us || !node_rule_on(w->node, NODE_RULE_LEASE);
}

static bool serves(const struct worker *w, uint8_t space)
{
    return w->operational && (w->node->spaces[space].async_reads || leased(w)) &&
           ordered_serves(w, space);
}

/* ---- A call's own bytes ---- */

static uint8_t *copy_bytes(struct worker *w, uint8_t space, struct bytes from, uint32_t *bytes_out)
{
    uint32_t n = from.n > 0 ? from.n : 1;
    /* Small, and a delete must go on when memory is short. */
    uint8_t *at = store_alloc(w->threads[space], n, true);
    if (at != NULL) {
        if (from.n > 0) {
            memcpy(at, from.at, from.n);
        }
        *bytes_out = n;
    }
    return at;
}

static bool own_key(struct worker *w, struct call *c)
{
    if (c->op.key.n <= CALL_KEY_SHORT) {
        if (c->op.key.n > 0 && c->op.key.at != c->short_key) {
            memcpy(c->short_key, c->op.key.at, c->op.key.n);
        }
        c->op.key.at = c->short_key;
        return true;
    }
    c->memory = copy_bytes(w, c->op.space, c->op.key, &c->memory_bytes);
    if (c->memory == NULL) {
        return false;
    }
    c->op.key.at = c->memory;
    return true;
}

/* Value and argument are the request's until the call has to outlive it. */
bool call_own(struct worker *w, struct call *c)
{
    uint32_t n = c->op.value.n + c->op.arg.n;
    if (c->txn != NULL && !txn_own(w, c->txn)) {
        return false;
    }
    if (c->brought != NULL) {
        c->brought->own(w, c);
        c->owned = true;
        return true;
    }
    if (c->owned || c->extra != NULL || n == 0) {
        c->owned = true;
        return true;
    }
    /* Values that wait must not eat the headroom that followers' writes need. */
    c->extra = store_alloc(w->threads[c->op.space], n, false);
    if (c->extra == NULL) {
        return false;
    }
    c->extra_bytes = n;
    if (c->op.value.n > 0) {
        memcpy(c->extra, c->op.value.at, c->op.value.n);
        c->op.value.at = c->extra;
    }
    if (c->op.arg.n > 0) {
        memcpy(c->extra + c->op.value.n, c->op.arg.at, c->op.arg.n);
        c->op.arg.at = c->extra + c->op.value.n;
    }
    c->owned = true;
    return true;
}

static void free_result(struct worker *w, struct call *c)
{
    if (c->result != NULL) {
        store_free(w->threads[c->op.space], c->result, c->result_bytes);
        c->result = NULL;
    }
}

/* Keeps the answer; its bytes may point into buffers that the next call uses. */
static bool keep_answer(struct worker *w, struct call *c, const struct answer *answer)
{
    if (answer->value.n > 0 && answer->value.at == c->result) {
        c->answer = *answer;
        return true;
    }
    uint8_t *bytes = NULL;
    uint32_t n = 0;
    if (answer->value.n > 0) {
        bytes = copy_bytes(w, c->op.space, answer->value, &n);
        if (bytes == NULL) {
            return false;
        }
    }
    free_result(w, c);
    c->answer = *answer;
    c->result = bytes;
    c->result_bytes = n;
    c->answer.value.at = bytes;
    return true;
}

/* Of the updates that wait for a key only the oldest is woken, for it makes the key unreadable to
 * all others again. It carries the baton: whatever becomes of it, the next one is woken then, and
 * either runs or parks (and so says that somebody waits). */
static void wake_update(struct worker *w, uint8_t space, uint64_t hash)
{
    list_each(link, &w->parked[hash % PARKED_LISTS])
    {
        struct call *c = list_entry(link, struct call, link);
        if (c->op.space == space && c->hash == hash && c->update) {
            c->baton = true;
            call_ready(w, c);
            return;
        }
    }
}

static void pass_baton(struct worker *w, struct call *c)
{
    if (c->baton) {
        c->baton = false;
        wake_update(w, c->op.space, c->hash);
    }
}

void call_release(struct worker *w, struct call *c)
{
    HK_ASSERT(c->flow == NULL && c->miss == NULL && c->state != CALL_FREE);
    pass_baton(w, c);
    if (c->txn != NULL) {
        txn_end(w, c->txn);
    }
    if (c->brought != NULL) {
        c->brought->end(w, c);
        c->brought = NULL;
    }
    w->own_calls -= c->own;
    struct store_thread *thread = w->threads[c->op.space];
    wheel_disarm(&w->wheel, &c->timer);
    list_remove(&c->link);
    list_remove(&c->session_link);
    free_result(w, c);
    if (c->memory != NULL) {
        store_free(thread, c->memory, c->memory_bytes);
        c->memory = NULL;
    }
    if (c->extra != NULL) {
        store_free(thread, c->extra, c->extra_bytes);
        c->extra = NULL;
    }
    c->state = CALL_FREE;
    if (c->remote) {
        forward_release(w, c);
        return;
    }
    list_push_front(&w->calls_free, &c->link);
    w->calls_free_n++;
}

/* ---- Answers ---- */

void call_reply(struct worker *w, const struct call *c, const struct answer *answer)
{
    struct reply reply = {
        .session = c->session, .tag = c->tag, .version = c->version, .answer = *answer};
    if (c->txn != NULL) {
        txn_fill(c->txn, &reply);
    } else if (c->brought != NULL) {
        c->brought->fill(w, c, &reply);
    }
    w->node->env.reply(w->node->env.context, w->index, &reply);
}

/* Keeps all that the client will hear when it is its turn. */
static void keep_reply(struct worker *w, struct call *c, const struct answer *answer)
{
    bool kept = keep_answer(w, c, answer);
    if (c->txn != NULL) {
        kept = txn_keep(w, c->txn) && kept;
        txn_settle(w, c->txn);
    }
    if (!kept) {
        c->answer = (struct answer){.kind = ANSWER_ERROR, .number = HK_ERR_NOMEM};
    }
}

void call_finish(struct worker *w, struct call *c, const struct answer *answer)
{
    if (c->txn != NULL && answer->kind == ANSWER_ERROR) {
        txn_settle(w, c->txn); /* by keys that are the client's again when it has its answer */
    }
    if (c->session == SESSION_NONE) {
        if (c->remote) {
            forward_reply(w, c, answer);
        }
        call_release(w, c);
        return;
    }
    struct session *session = &w->sessions[c->session];
    uint32_t index = c->session;
    struct answer named;
    if (answer->kind == ANSWER_ERROR && answer->number == HK_ERR_LOSTSLOT && c->brought == NULL) {
        named = *answer;
        named.slot = slot_of_key(c->op.key);
        answer = &named;
    }
    w->moved += answer->value.n;
    pass_baton(w, c);
    wheel_disarm(&w->wheel, &c->timer);
    list_remove(&c->link);
    if (session->calls.next == &c->session_link) {
        call_reply(w, c, answer);
        session->n--;
        call_release(w, c);
    } else {
        c->state = CALL_DONE;
        keep_reply(w, c, answer);
    }
    session_flush(w, index);
}

static void count_failure(struct worker *w, const struct call *c, int err)
{
    if (err == HK_ERR_LOSTSLOT || err == HK_ERR_LOST) {
        w->stats.lost_slot += !c->remote; /* where its client is */
    } else if (err == HK_ERR_UNKNOWN) {
        w->stats.unknown++;
    } else if (err == HK_ERR_UNAVAILABLE || err == HK_ERR_LOADING) {
        w->stats.unavailable++;
    }
}

void call_fail(struct worker *w, struct call *c, int err)
{
    err = c->brought != NULL && c->brought->error != NULL ? c->brought->error(w, c, err) : err;
    count_failure(w, c, err);
    struct answer answer = {.kind = ANSWER_ERROR, .number = err};
    c->version = 0;
    call_finish(w, c, &answer);
}

void call_lost(struct worker *w, struct call *c, uint16_t slot)
{
    struct answer answer = {.kind = ANSWER_ERROR, .slot = slot};
    answer.number =
        c->brought->error != NULL ? c->brought->error(w, c, HK_ERR_LOSTSLOT) : HK_ERR_LOSTSLOT;
    count_failure(w, c, (int)answer.number);
    c->version = 0;
    call_finish(w, c, &answer);
}

/* ---- Waiting ---- */

void call_ready(struct worker *w, struct call *c)
{
    wheel_disarm(&w->wheel, &c->timer);
    list_remove(&c->link);
    c->state = CALL_READY;
    list_push_back(&w->ready, &c->link);
}

void call_delay(struct worker *w, struct call *c, uint64_t until_us)
{
    if (!call_own(w, c)) {
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    pass_baton(w, c);
    list_remove(&c->link);
    c->state = CALL_DELAYED;
    wheel_arm(&w->wheel, &c->timer, until_us);
}

void call_again(struct worker *w, struct call *c)
{
    call_delay(w, c, w->now_us + TRY_AGAIN_US);
}

uint64_t call_due(const struct worker *w, const struct call *c)
{
    return c->arrived_us + w->node->config.answer_us;
}

void call_await(struct worker *w, struct call *c)
{
    pass_baton(w, c);
    list_remove(&c->link);
    c->state = CALL_FORWARDED;
    wheel_arm(&w->wheel, &c->timer, call_due(w, c));
}

static void arm_prod(struct worker *w, struct call *c)
{
    uint32_t shift = c->prods < PROD_SHIFT_MAX ? c->prods : PROD_SHIFT_MAX;
    uint64_t due = w->now_us + (w->node->config.parked_us << shift);
    uint64_t last = call_due(w, c);
    wheel_arm(&w->wheel, &c->timer, due < last ? due : last);
}

void call_park(struct worker *w, struct call *c)
{
    list_remove(&c->link);
    c->state = CALL_PARKED;
    c->prods = 0;
    if (c->baton) {
        c->baton = false; /* the key has been told: the next wake-up finds it where it was */
        list_push_front(&w->parked[c->hash % PARKED_LISTS], &c->link);
    } else {
        list_push_back(&w->parked[c->hash % PARKED_LISTS], &c->link);
    }
    w->stats.parked++;
    arm_prod(w, c);
}

void call_wake(struct worker *w, uint8_t space, uint64_t hash)
{
    list_each_safe(link, following, &w->parked[hash % PARKED_LISTS])
    {
        struct call *c = list_entry(link, struct call, link);
        if (c->op.space == space && c->hash == hash && !c->update) {
            call_ready(w, c);
        }
    }
    wake_update(w, space, hash);
    if (w->txns != NULL) {
        txn_woken(w, space, hash);
    }
}

void call_wake_all(struct worker *w)
{
    for (uint32_t i = 0; i < PARKED_LISTS; i++) {
        list_each_safe(link, following, &w->parked[i])
        {
            call_ready(w, list_entry(link, struct call, link));
        }
    }
    if (w->txns != NULL) {
        txn_woken_all(w);
    }
}

/* ---- Trying ---- */

/* Answers a call that changed nothing: at once, or when a majority has confirmed the read. */
static void answer_unchanged(struct worker *w, struct call *c, const struct answer *answer)
{
    if (!space_of(w, c)->async_reads || answer->kind == ANSWER_ERROR) {
        call_finish(w, c, answer);
        return;
    }
    if (!keep_answer(w, c, answer) || !call_own(w, c)) {
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    pass_baton(w, c);
    list_remove(&c->link);
    c->state = CALL_CHECKING;
    list_push_back(&w->checking, &c->link);
    wheel_arm(&w->wheel, &c->timer, call_due(w, c));
}

static void answer_error(struct worker *w, struct call *c, int err)
{
    struct answer answer = {.kind = ANSWER_ERROR, .number = err};
    c->version = 0;
    answer_unchanged(w, c, &answer);
}

static void call_update(struct worker *w, struct call *c);

/* The flags of the call's key; without an entry, what stands for it: at its home it is absent. */
static uint8_t flags_locked(const struct worker *w, const struct call *c,
                            const struct store_ref *ref)
{
    const struct space *space = space_of(w, c);
    return ref->object != NULL ? store_meta(ref).flags
           : space->homed      ? KEY_READABLE
                               : space->ops->blank.flags;
}

/* Whether the call was for another node, because its key has no entry here: then it is on its way
 * and the lock released. */
static bool went_away(struct worker *w, struct call *c, struct store_ref *ref)
{
    if (ref->object != NULL || !space_of(w, c)->homed) {
        return false;
    }
    struct forward_route route = forward_route(w, c);
    if (route.place == FORWARD_HERE) {
        return false;
    }
    store_unlock(ref);
    forward_go(w, c, route);
    return true;
}

/* Counts a client's operation where keys have homes: a hit if the key is cached on all nodes (then
 * its entry has a generation). */
static void count_here(struct worker *w, struct call *c, bool cached)
{
    if (!space_of(w, c)->homed || c->counted || c->own || c->remote) {
        return;
    }
    c->counted = true;
    if (cached) {
        w->stats.hits++;
    } else {
        w->stats.at_home++;
    }
}

/* Steps a call whose key is not readable: it parks, and may start a replay. */
static void step_unreadable(struct worker *w, struct call *c, enum ev_kind kind,
                            struct store_ref *ref)
{
    struct step s;
    if (!call_own(w, c)) {
        store_unlock(ref);
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    step_init(w, &s, c->op.space, kind);
    s.event.rmw = kind == EV_UPDATE && (c->rmw || c->expired_ms != 0);
    s.key = c->op.key;
    s.hash = c->hash;
    s.call = c;
    step_locked(w, &s, ref);
    if (s.lost) {
        call_fail(w, c, HK_ERR_LOSTSLOT);
    } else if (!s.parked && !s.asked) {
        call_again(w, c);
    }
}

/* Answers a read with a value, its own or another node's; its bytes may be anybody's. */
static void read_value(struct worker *w, struct call *c, struct bytes stored, uint8_t flags,
                       bool found)
{
    struct op_state old = {.present = false};
    if (found && op_state_from_stored(stored, flags, &old) != HK_OK) {
        call_fail(w, c, HK_ERR_CORRUPT);
        return;
    }
    if (op_state_expired(&old, w->wall_ms)) {
        c->expired_ms = old.deadline_ms;
        call_update(w, c);
        return;
    }
    struct op_state next;
    struct answer answer;
    bool changed = false;
    int err = op_evaluate(&c->op, &old, w->wall_ms, w->evaluated, w->node->evaluated_bytes, &next,
                          &answer, &changed);
    HK_ASSERT(!changed);
    w->stats.reads++;
    if (err != HK_OK) {
        answer_error(w, c, err);
    } else {
        answer_unchanged(w, c, &answer);
    }
}

void call_ask(struct worker *w, struct call *c, struct flow *f)
{
    pass_baton(w, c);
    list_remove(&c->link);
    list_push_back(&f->checking, &c->link);
    c->state = CALL_ASKED;
    f->key = bytes_of(NULL, 0);
    wheel_arm(&w->wheel, &c->timer, call_due(w, c));
}

void call_value(struct worker *w, struct call *c, const struct msg *msg)
{
    HK_ASSERT(c->state == CALL_ASKED);
    if (!serves(w, c->op.space)) {
        call_ready(w, c); /* which sees to it that it waits, or fails */
        return;
    }
    c->state = CALL_READY;
    wheel_disarm(&w->wheel, &c->timer);
    c->version = msg->ts;
    read_value(w, c, msg->value, msg->vflags, msg->ts != 0);
}

static void call_read(struct worker *w, struct call *c)
{
    const struct space *space = space_of(w, c);
    for (;;) {
        struct store_value v;
        int err = store_read(space->store, w->threads[c->op.space], c->op.key, c->hash, w->scratch,
                             STORE_INLINE_MAX, &v);
        HK_ASSERT(err == HK_OK);
        /* Whether an absent key's home is here is decided under the lock: it may be moving in. */
        uint8_t flags = v.found ? v.meta.flags : space->homed ? 0 : space->ops->blank.flags;
        if ((flags & KEY_READABLE) == 0) {
            struct store_ref ref;
            store_lock(space->store, w->threads[c->op.space], c->op.key, c->hash, &ref);
            if (went_away(w, c, &ref)) {
                return;
            }
            flags = flags_locked(w, c, &ref);
            if ((flags & KEY_READABLE) == 0) {
                step_unreadable(w, c, EV_READ, &ref);
                return;
            }
            bool absent = ref.object == NULL;
            store_unlock(&ref);
            if (!absent) {
                continue; /* it turned readable in between */
            }
            v.found = false;
            v.meta.flags = 0;
            v.value = bytes_of(NULL, 0);
        }
        c->version = v.found ? v.meta.ts : 0;
        count_here(w, c, v.found && v.meta.aux != 0);
        read_value(w, c, v.value, v.meta.flags, v.found);
        return;
    }
}

/* The stored form of a new state: a deadline stands before the value. Evaluation left 8 bytes free
 * in front of its scratch. */
static void set_payload(struct worker *w, struct step *s, const struct op_state *next)
{
    if (next->present && next->deadline_ms != 0) {
        uint32_t n = op_state_store(next, w->evaluated, &s->payload_flags);
        s->payload = bytes_of(w->evaluated, n);
    } else {
        s->payload_flags = next->present ? 0 : KEY_TOMBSTONE;
        s->payload = next->present ? next->value : bytes_of(NULL, 0);
    }
}

enum evaluated { EVALUATED_CHANGE, EVALUATED_ANSWERED, EVALUATED_EXPIRED };

/* Evaluates an update on the locked, readable value. Unless it changes the key, the lock is
 * released and the call answered. */
static enum evaluated evaluate_locked(struct worker *w, struct call *c, const struct op *op,
                                      struct step *s, struct store_ref *ref)
{
    struct op_state old = {.present = false};
    int err = HK_OK;
    if (ref->object != NULL && s->event.rmw) {
        struct bytes stored = store_value_of(ref, w->scratch, STORE_INLINE_MAX);
        if (stored.n > 0 && stored.n <= STORE_INLINE_MAX) {
            /* The new value may point into the old one, which is written over in place; values out
             * of line stay as they are. */
            memmove(w->scratch, stored.at, stored.n);
            stored.at = w->scratch;
        }
        err = op_state_from_stored(stored, store_meta(ref).flags, &old);
    }
    if (err == HK_OK && op->kind != OP_EXPIRED && op_state_expired(&old, w->wall_ms)) {
        store_unlock(ref);
        c->expired_ms = old.deadline_ms;
        return EVALUATED_EXPIRED;
    }
    struct op_state next;
    struct answer answer;
    bool changed = false;
    if (op->kind == OP_DELETE && (op->flags & OPF_BLIND) != 0 && ref->object == NULL &&
        (traits_of(w, c) & ENGINE_READS_FOLLOW) == 0) {
        answer = (struct answer){.kind = ANSWER_OK}; /* nothing to delete: not even a tombstone */
    } else if (err == HK_OK) {
        err = op_evaluate(op, &old, w->wall_ms, w->evaluated + 8, w->node->evaluated_bytes - 8,
                          &next, &answer, &changed);
    }
    if (err == HK_OK && changed && !keep_answer(w, c, &answer)) {
        err = HK_ERR_NOMEM;
    }
    c->version = ref->object != NULL ? store_meta(ref).ts : 0;
    if (err == HK_OK && changed) {
        set_payload(w, s, &next);
        return EVALUATED_CHANGE;
    }
    if (op->kind == OP_EXPIRED && op != &c->op) {
        /* Somebody else has deleted or replaced the expired value: now the operation itself. */
        store_unlock(ref);
        c->expired_ms = 0;
        call_ready(w, c);
        return EVALUATED_ANSWERED;
    }
    /* The answer may point into scratch, which nobody uses before it is sent or copied. */
    store_unlock(ref);
    w->stats.reads++;
    if (err != HK_OK) {
        answer_error(w, c, err);
    } else {
        answer_unchanged(w, c, &answer);
    }
    return EVALUATED_ANSWERED;
}

/* Whether somebody who would store the write has no memory for it: any member, or its home alone
 * if the key has one. */
static bool refused_for_memory(const struct worker *w, const struct op *op, bool home_alone)
{
    bool full = worker_full(w) ||
                (!home_alone && atomic_load_explicit(&w->node->full, memory_order_relaxed) != 0);
    return full && op->kind != OP_DELETE && op->kind != OP_DELETE_IF && op->kind != OP_GETDEL &&
           op->kind != OP_EXPIRED;
}

/* The same under the lock, where keys have homes and this node has a say. */
static bool refused_locked(const struct worker *w, const struct call *c, const struct op *op,
                           const struct store_ref *ref)
{
    bool cached = ref->object != NULL && store_meta(ref).aux != 0;
    return space_of(w, c)->homed && refused_for_memory(w, op, !cached);
}

static void issue_locked(struct worker *w, struct call *c, struct step *s, struct store_ref *ref)
{
    bool first = ref->object == NULL;
    s->key = c->op.key;
    s->hash = c->hash;
    s->call = c;
    list_remove(&c->link);
    step_locked(w, s, ref);
    if (s->err != HK_OK || s->lost) {
        c->expired_ms = 0;
        call_fail(w, c, s->lost ? HK_ERR_LOSTSLOT : s->err);
        return;
    }
    if (s->parked) {
        /* The key is busy although it is readable. The request's bytes do not last so long. */
        if (!call_own(w, c)) {
            call_fail(w, c, HK_ERR_NOMEM);
        }
        return;
    }
    if (!s->issued) {
        call_again(w, c); /* the engine cannot take it just now */
        return;
    }
    /* From here on c may be answered and gone: an update of a single member completes at once. */
    if (c->state == CALL_ISSUED && c->flow != NULL) {
        w->stats.updates++;
        pass_baton(w, c); /* the next one runs after this one */
        wheel_arm(&w->wheel, &c->timer, call_due(w, c));
        bool elsewhere = (traits_of(w, c) & ENGINE_READS_FOLLOW) != 0;
        if (!c->owned && (c->rmw || first || elsewhere)) {
            (void)call_own(w, c); /* without its bytes a lost update is not tried again */
        }
        if (c->session != SESSION_NONE) {
            session_pump(w, c->session); /* the next update waited for this one's issue */
        }
    }
}

static void call_update(struct worker *w, struct call *c)
{
    const struct space *space = space_of(w, c);
    struct op expire;
    const struct op *op = &c->op;
    if (c->expired_ms != 0) {
        expire = (struct op){.kind = OP_EXPIRED,
                             .space = c->op.space,
                             .key = c->op.key,
                             .number = (int64_t)c->expired_ms};
        op = &expire;
    }
    if (list_empty(&w->flows_free) || !ordered_issues(w, c->op.space) ||
        (space->lanes && lanes_clogged(w))) {
        call_again(w, c);
        return;
    }
    if (!space->homed && refused_for_memory(w, op, false)) {
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    struct store_ref ref;
    store_lock(space->store, w->threads[c->op.space], c->op.key, c->hash, &ref);
    if (went_away(w, c, &ref)) {
        return;
    }
    if (refused_locked(w, c, op, &ref)) {
        store_unlock(&ref);
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    uint8_t flags = flags_locked(w, c, &ref);
    bool rmw = op_is_rmw(op);
    bool anytime = (space->ops->traits & ENGINE_BLIND_ANYTIME) != 0 && !rmw;
    anytime = anytime && (!space->homed || ref.object != NULL); /* absent only at its home */
    if ((flags & KEY_READABLE) == 0 && !anytime) {
        step_unreadable(w, c, EV_UPDATE, &ref);
        return;
    }
    struct step s;
    step_init(w, &s, c->op.space, EV_UPDATE);
    s.event.rmw = rmw;
    s.event.taken = ordered_taken(w, c->op.space);
    s.event.handed = c->handed && ref.object == NULL;
    count_here(w, c, ref.object != NULL && store_meta(&ref).aux != 0);
    switch (evaluate_locked(w, c, op, &s, &ref)) {
    case EVALUATED_CHANGE:
        issue_locked(w, c, &s, &ref);
        break;
    case EVALUATED_EXPIRED:
        call_ready(w, c);
        if (!call_own(w, c)) {
            call_fail(w, c, HK_ERR_NOMEM);
        }
        break;
    case EVALUATED_ANSWERED:
        break;
    }
}

static int refusal(const struct worker *w, const struct call *c)
{
    if (w->operational && leased(w) && !ordered_serves(w, c->op.space)) {
        return HK_ERR_LOADING;
    }
    enum view_status status =
        (enum view_status)atomic_load_explicit(&w->node->status, memory_order_relaxed);
    return status == VIEW_STATUS_JOINING ? HK_ERR_LOADING : HK_ERR_UNAVAILABLE;
}

void call_run(struct worker *w, struct call *c)
{
    /* An update that waited for nearly all its time would likely end unknown: say "no" instead. */
    uint64_t needs_us = c->update ? w->node->config.answer_us / 8 : 0;
    if (w->now_us + needs_us >= call_due(w, c)) {
        call_fail(w, c, leased(w) ? HK_ERR_BUSY : HK_ERR_UNAVAILABLE);
        return;
    }
    if (!serves(w, c->op.space)) {
        int err = refusal(w, c);
        uint64_t until = c->arrived_us + w->node->config.no_lease_us;
        if ((err == HK_ERR_LOADING && !w->operational) || w->now_us >= until || c->own) {
            call_fail(w, c, err);
        } else {
            uint64_t soon = w->now_us + TRY_AGAIN_US;
            call_delay(w, c, soon < until ? soon : until);
        }
        return;
    }
    if ((traits_of(w, c) & ENGINE_OWNED) != 0) {
        txn_run(w, c);
        return;
    }
    if (c->brought != NULL) {
        c->brought->run(w, c);
        return;
    }
    if (forward_first(w, c)) {
        return;
    }
    if (c->remote && space_of(w, c)->lanes && lanes_clogged(w)) {
        call_again(w, c); /* its answer would be kept as well */
        return;
    }
    if ((traits_of(w, c) & ENGINE_READS_FOLLOW) != 0 && !session_may_start(w, c)) {
        /* An earlier update of its session was lost meanwhile and goes first. */
        list_remove(&c->link);
        c->state = CALL_QUEUED;
    } else if (c->update || c->expired_ms != 0) {
        call_update(w, c);
    } else {
        call_read(w, c);
    }
}

/* ---- Outcomes ---- */

static void retry(struct worker *w, struct call *c)
{
    c->tries++;
    w->stats.retries++;
    if (c->expired_ms != 0) {
        c->expired_ms = 0;
        call_ready(w, c);
    } else if (c->tries > w->node->config.rmw_tries_max || !c->owned) {
        call_fail(w, c, HK_ERR_BUSY);
    } else if (c->tries <= QUICK_TRIES) {
        call_ready(w, c);
    } else {
        uint32_t shift = c->tries < BACK_OFF_SHIFT_MAX ? c->tries : BACK_OFF_SHIFT_MAX;
        call_delay(w, c, w->now_us + random_below(&w->random, (uint64_t)128 << shift));
    }
}

/* A newer update committed, hence this one did. But when? If this process was dropped and does not
 * know it, the newer one may be older than this call. A lease would tell; without leases a majority
 * has to confirm that it is a member still, after the fact. */
static void await_confirmation(struct worker *w, struct call *c)
{
    list_remove(&c->link);
    c->state = CALL_CHECKING;
    c->decided = true;
    list_push_back(&w->checking, &c->link);
    wheel_arm(&w->wheel, &c->timer, call_due(w, c));
}

void call_outcome(struct worker *w, struct call *c, enum reply_code code)
{
    bool async = space_of(w, c)->async_reads;
    bool may_say = async || leased(w) || !node_rule_on(w->node, NODE_RULE_LEASE_ANSWER);
    if (c->state == CALL_ASKED) {
        call_ready(w, c); /* nobody could say: it starts anew */
        return;
    }
    if (c->state == CALL_CHECKING) {
        if (code == REPLY_DONE) {
            call_finish(w, c, &c->answer);
        } else if (c->decided) {
            await_confirmation(w, c);
        } else {
            call_ready(w, c); /* read again: the view changed */
        }
        return;
    }
    HK_ASSERT(c->state == CALL_ISSUED);
    c->gated = false;
    if (!may_say && c->expired_ms == 0) {
        call_fail(w, c, HK_ERR_UNKNOWN);
    } else if (code == REPLY_LOST) {
        retry(w, c);
    } else if (c->expired_ms != 0) {
        c->expired_ms = 0;
        call_ready(w, c);
    } else if (code == REPLY_UNKNOWN) {
        call_fail(w, c, HK_ERR_UNKNOWN);
    } else if (code == REPLY_OVERTAKEN && async) {
        await_confirmation(w, c);
    } else {
        struct answer answer = c->answer;
        call_finish(w, c, &answer);
    }
}

/* Parts a call from its flow, which goes on without a client. */
static void call_detach(struct worker *w, struct call *c)
{
    struct flow *f = c->flow;
    if (c->gated) {
        c->gated = false;
        worker_nudge(w, f); /* nobody waits for the order any more */
    }
    if (c->memory != NULL) {
        f->key_memory = c->memory;
        c->memory = NULL;
    } else {
        flow_copy_key(w, f, c->op.key);
    }
    f->call = NULL;
    c->flow = NULL;
}

static void issued_too_long(struct worker *w, struct call *c)
{
    call_detach(w, c);
    if (!node_rule_on(w->node, NODE_RULE_RETRY_DECIDED) && own_key(w, c) && c->owned) {
        c->arrived_us = w->now_us;
        call_ready(w, c);
        return;
    }
    /* An expiry's delete on the way to the operation changes nothing that the client asked for. */
    call_fail(w, c, c->expired_ms != 0 ? HK_ERR_UNAVAILABLE : HK_ERR_UNKNOWN);
}

/* A call that waits for another node's answer, or for its turn to be sent. */
static void forwarded_too_long(struct worker *w, struct call *c)
{
    bool sent = c->miss != NULL;
    forward_detach(w, c);
    call_fail(w, c, !sent ? HK_ERR_BUSY : c->update ? HK_ERR_UNKNOWN : HK_ERR_UNAVAILABLE);
}

static void prod_parked(struct worker *w, struct call *c)
{
    if (w->now_us >= call_due(w, c)) {
        call_fail(w, c, leased(w) ? HK_ERR_BUSY : HK_ERR_UNAVAILABLE);
        return;
    }
    c->prods++;
    arm_prod(w, c);
    struct step s;
    step_init(w, &s, c->op.space, EV_TIMER);
    s.key = c->op.key;
    s.hash = c->hash;
    step_key(w, &s);
}

void call_timer(struct worker *w, struct call *c)
{
    switch ((enum call_state)c->state) {
    case CALL_DELAYED:
        call_ready(w, c);
        break;
    case CALL_PARKED:
        prod_parked(w, c);
        break;
    case CALL_ISSUED:
        issued_too_long(w, c);
        break;
    case CALL_CHECKING:
    case CALL_ASKED:
        call_fail(w, c, c->decided ? HK_ERR_UNKNOWN : HK_ERR_UNAVAILABLE);
        break;
    case CALL_FORWARDED:
        forwarded_too_long(w, c);
        break;
    case CALL_WAITING:
    case CALL_COMMITTED:
        if (c->brought != NULL) {
            c->brought->timer(w, c);
        } else {
            txn_timer(w, c->txn);
        }
        break;
    case CALL_FREE:
    case CALL_QUEUED:
    case CALL_READY:
    case CALL_DONE:
        HK_ASSERT(false && "no timer in this state");
    }
}

/* ---- Arrival ---- */

static struct call *call_new(struct worker *w, const struct request *request)
{
    struct list_link *link = list_pop_front(&w->calls_free);
    HK_ASSERT(link != NULL);
    w->calls_free_n--;
    struct call *c = list_entry(link, struct call, link);
    memset(c, 0, sizeof *c);
    list_init(&c->link);
    list_init(&c->session_link);
    timer_init(&c->timer, TIMER_CALL);
    c->state = CALL_QUEUED;
    c->op = request->op;
    c->tag = request->tag;
    c->session = request->session;
    c->own = request->session == SESSION_NONE;
    c->arrived_us = w->now_us;
    c->since_us =
        request->since_us != 0 && request->since_us < w->now_us ? request->since_us : w->now_us;
    return c;
}

int call_refuses(const struct worker *w, const struct op *op)
{
    if (op->space >= SPACES_MAX || w->node->spaces[op->space].ops == NULL) {
        return HK_ERR_INVALID;
    }
    uint32_t most = w->node->config.spaces[op->space].store.value_bytes_max;
    if (op->value.n > most || op->arg.n > most) {
        return HK_ERR_TOOBIG;
    }
    return op_check(op, most);
}

int call_refuses_txn(const struct worker *w, uint8_t index, const struct txn_request *request)
{
    const struct space *space = &w->node->spaces[index];
    if (space->ops == NULL ||
        (space->ops->traits & (ENGINE_OWNED | ENGINE_SHARDED | ENGINE_TABLES)) == 0) {
        return HK_ERR_INVALID;
    }
    bool tables = (space->ops->traits & ENGINE_TABLES) != 0;
    for (uint32_t i = 0; i < request->ops_n && i < TXN_OPS_MAX; i++) {
        const struct op *op = &request->ops[i];
        if (op->space != index || (op->kind >= TXN_OP_RANGE && !tables)) {
            return HK_ERR_INVALID;
        }
    }
    for (uint32_t i = 0; i < request->watches_n && i < TXN_OBJECTS_MAX; i++) {
        if (request->watches[i].range && !tables) {
            return HK_ERR_INVALID;
        }
    }
    return txn_check(request, w->node->config.spaces[index].store.value_bytes_max);
}

/* Nobody knows how much a read moves before it is done: when this poll has moved enough, the rest
 * waits for the next one. */
static void start(struct worker *w, struct call *c, bool may_start)
{
    bool now = c->update || w->moved < MOVED_MAX;
    if (may_start && now) {
        call_run(w, c);
    } else if (!call_own(w, c)) {
        call_fail(w, c, HK_ERR_NOMEM);
    } else if (may_start) {
        call_ready(w, c);
    }
}

/* What of a request can be seen at once; HK_OK: it is the call now. */
static int take_op(struct worker *w, struct call *c)
{
    int err = call_refuses(w, &c->op);
    if (err == HK_OK) {
        bool owned = (traits_of(w, c) & ENGINE_OWNED) != 0;
        c->update = op_updates(&c->op);
        /* Of a transaction it makes no difference to what comes after. */
        c->rmw = c->update && !owned && op_is_rmw(&c->op);
        err = own_key(w, c) ? HK_OK : HK_ERR_NOMEM;
        if (err == HK_OK && space_of(w, c)->brought != NULL) {
            err = space_of(w, c)->brought->take(w, c, NULL);
        }
    }
    return err;
}

static int take_request(struct worker *w, struct call *c, const struct request *request)
{
    if (request->committed != NULL) {
        c->op = (struct op){.kind = OP_GET, .space = request->op.space};
        return txn_take_committed(w, c, request->committed);
    }
    if (request->txn == NULL) {
        return take_op(w, c);
    }
    c->op = (struct op){.kind = OP_GET, .space = request->op.space};
    if (c->op.space >= SPACES_MAX) {
        return HK_ERR_INVALID;
    }
    int err = call_refuses_txn(w, c->op.space, request->txn);
    if (err != HK_OK) {
        return err;
    }
    const struct brought_ops *brought = space_of(w, c)->brought;
    return brought != NULL ? brought->take(w, c, request->txn) : txn_take(w, c, request->txn);
}

void call_take(struct worker *w, const struct request *request, uint64_t hash)
{
    struct call *c = call_new(w, request);
    int err = take_request(w, c, request);
    if (c->op.space >= SPACES_MAX || w->node->spaces[c->op.space].ops == NULL) {
        c->op.space = w->node->first_space; /* where its memory would come from; it has none */
    }
    session_add(w, c);
    if (err != HK_OK) {
        call_fail(w, c, err);
        return;
    }
    if (request->committed != NULL) {
        txn_run_committed(w, c, request->committed);
        return;
    }
    c->hash = hash;
    if (!c->own && c->txn == NULL && request->txn == NULL) {
        hot_note(w->hot[c->op.space], c->op.key, hash, w->now_us);
    }
    start(w, c, session_may_start(w, c));
}

void call_take_remote(struct worker *w, struct call *c, uint64_t hash)
{
    list_init(&c->link);
    timer_init(&c->timer, TIMER_CALL);
    c->state = CALL_QUEUED;
    c->session = SESSION_NONE;
    c->remote = true;
    c->arrived_us = w->now_us;
    c->since_us = w->now_us;
    c->hash = hash;
    c->update = op_updates(&c->op);
    c->rmw = c->update && op_is_rmw(&c->op);
    if (!own_key(w, c)) {
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    start(w, c, true);
}

void call_cancel(struct worker *w, struct call *c)
{
    if (c->flow != NULL) {
        call_detach(w, c);
    }
    if (c->state == CALL_FORWARDED) {
        forward_detach(w, c);
    }
    call_release(w, c);
}
