/* Reads, and transactions that only read: on any node that owns or reads all their objects. All
 * are read, then all are looked at again: each is still readable at the same version. An R-INV
 * invalidates all its objects here before this node acknowledges it, so at the second look no
 * transaction that was answered is missing, and none is seen in part. */
#include "node/txn_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define QUICK_TRIES 4u /* looks that failed before others go first */
#define NONE_TRIES 4u  /* times that did not do before what exists nowhere is created */

bool txn_committed_here(const struct key_meta *meta, uint32_t worker,
                        const struct txn_caller *caller)
{
    uint32_t pipe = txn_aux_pipe(meta->aux);
    return meta->state == ZEUS_WRITE && (meta->flags & ZEUS_OWNED) != 0 &&
           (pipe == worker || (caller != NULL && pipe == caller->pipe));
}

bool txn_read_one(struct worker *w, struct call *c)
{
    struct store *store = w->node->spaces[c->op.space].store;
    struct store_value v;
    struct op_state old = {.present = false};
    int err = store_read(store, w->threads[c->op.space], c->op.key, c->hash, w->scratch,
                         STORE_INLINE_MAX, &v);
    HK_ASSERT(err == HK_OK);
    if (!v.found || (v.meta.flags & KEY_READABLE) == 0) {
        return false;
    }
    if (op_state_from_stored(v.value, v.meta.flags, &old) != HK_OK) {
        call_fail(w, c, HK_ERR_CORRUPT);
        return true;
    }
    if (op_state_expired(&old, w->wall_ms)) {
        return false; /* it has to be deleted first */
    }
    struct op_state next;
    struct answer answer;
    bool changed = false;
    err = op_evaluate(&c->op, &old, w->wall_ms, w->evaluated, w->node->evaluated_bytes, &next,
                      &answer, &changed);
    HK_ASSERT(!changed);
    w->stats.reads++;
    c->version = old.present && err == HK_OK ? v.meta.ts : 0;
    call_finish(w, c, &answer);
    return true;
}

static bool reserve_buffers(struct txns *txns, uint32_t n)
{
    if (n <= txns->buffers_n) {
        return true;
    }
    uint32_t most = n < 16 ? 16 : n;
    uint8_t *at = aligned_alloc(64, (size_t)most * STORE_INLINE_MAX);
    if (at == NULL) {
        return false;
    }
    free(txns->buffers);
    txns->buffers = at;
    txns->buffers_n = most;
    return true;
}

/* What the first look found. */
enum look {
    LOOK_READABLE, /* all of them */
    LOOK_OWNED,    /* this node owns them all, and has commits under way over some */
    LOOK_LACKS,    /* data of some is not here */
    LOOK_WAITS,    /* the object *at is not readable now */
};

static enum look look(struct worker *w, struct txn *t, uint32_t *at)
{
    uint8_t space = t->call->op.space;
    struct store *store = w->node->spaces[space].store;
    uint32_t owned = 0;
    uint32_t readable = 0;
    uint32_t lacking = 0;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        struct txn_place *p = &t->places[i];
        struct store_value v;
        int err = store_read(store, w->threads[space], t->objects[i].key, t->objects[i].hash,
                             w->txns->buffers + (size_t)i * STORE_INLINE_MAX, STORE_INLINE_MAX, &v);
        HK_ASSERT(err == HK_OK);
        p->found = v.found;
        p->meta = v.found ? v.meta : (struct key_meta){.ts = 0};
        p->stored = v.found ? v.value : bytes_of(NULL, 0);
        p->lacks = !v.found;
        bool is_readable = (p->meta.flags & KEY_READABLE) != 0;
        lacking += p->lacks;
        owned += (p->meta.flags & ZEUS_OWNED) != 0;
        readable += is_readable;
        *at = v.found && !is_readable ? i : *at;
    }
    if (lacking > 0) {
        return LOOK_LACKS;
    }
    if (readable == t->objects_n) {
        return LOOK_READABLE;
    }
    return owned == t->objects_n ? LOOK_OWNED : LOOK_WAITS;
}

/* Whether all are as they were. */
static bool look_again(struct worker *w, const struct txn *t)
{
    uint8_t space = t->call->op.space;
    struct store *store = w->node->spaces[space].store;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        struct store_value v;
        int err = store_read(store, w->threads[space], t->objects[i].key, t->objects[i].hash,
                             w->scratch, STORE_INLINE_MAX, &v);
        HK_ASSERT(err == HK_OK);
        if (!v.found || (v.meta.flags & KEY_READABLE) == 0 || v.meta.ts != t->places[i].meta.ts) {
            return false;
        }
    }
    return true;
}

/* The object was not readable: it waits, unless it is by now. */
static void wait_for(struct worker *w, struct txn *t, uint32_t i)
{
    uint8_t space = t->call->op.space;
    struct store_ref ref;
    store_lock(w->node->spaces[space].store, w->threads[space], t->objects[i].key,
               t->objects[i].hash, &ref);
    bool waits = ref.object != NULL && (store_meta(&ref).flags & KEY_READABLE) == 0;
    if (waits) {
        struct key_meta meta = store_meta(&ref);
        meta.flags |= KEY_WAITERS;
        store_set_meta(&ref, &meta);
    }
    store_unlock(&ref);
    if (waits) {
        txn_wait(w, t, t->objects[i].hash);
    } else {
        call_ready(w, t->call);
        if (!call_own(w, t->call)) {
            call_fail(w, t->call, HK_ERR_NOMEM);
        }
    }
}

static void start_anew(struct worker *w, struct txn *t)
{
    call_ready(w, t->call);
    if (!call_own(w, t->call)) {
        call_fail(w, t->call, HK_ERR_NOMEM);
    }
}

static void evaluate(struct worker *w, struct txn *t)
{
    struct txn_memory memory = {.at = w->evaluated, .n = w->node->evaluated_bytes};
    bool expired = false;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (!txn_take_state(w, t, i)) {
            call_fail(w, t->call, HK_ERR_CORRUPT);
            return;
        }
        expired = expired || t->objects[i].expired;
    }
    if (expired) {
        /* By the calendar here. Another reader's may be behind: whoever says that an object is
         * absent deletes it. */
        t->updates = true;
        start_anew(w, t);
        return;
    }
    t->verdict = (uint8_t)txn_evaluate(&t->request, t->objects, t->objects_n, t->index, w->wall_ms,
                                       &memory, t->answers);
    HK_ASSERT(t->verdict != TXN_NO_MEMORY); /* reads need none */
    t->answers_n = t->request.ops_n;
    w->stats.reads += t->request.ops_n;
    w->stats.txn_reads++;
    txn_answer(w, t);
}

/* What exists nowhere is not here either, and the rest is readable and as before it asked. */
static bool is_as_before(const struct txn *t)
{
    for (uint32_t i = 0; i < t->objects_n; i++) {
        const struct txn_place *p = &t->places[i];
        bool same = (p->meta.flags & KEY_READABLE) != 0 && p->meta.ts == p->seen_ts;
        if (p->none ? p->found : !p->found || !same) {
            return false;
        }
    }
    return t->rest_readable;
}

static void note_asked(struct txn *t)
{
    t->rest_readable = true;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        struct txn_place *p = &t->places[i];
        p->seen_ts = p->meta.ts;
        p->none = false;
        t->rest_readable &= !p->found || (p->meta.flags & KEY_READABLE) != 0;
    }
}

/* All that it asked for exists nowhere. What had been written, and deleted, would be remembered for
 * a grace: so each object was absent from a grace before its answer until then, and that is true of
 * all of them at the moment of the first answer. If the others are now as they were before the
 * question, they were so at that moment, too. False: it has to go on. */
static bool answered_absent(struct worker *w, struct txn *t)
{
    uint64_t grace_us = w->node->config.spaces[t->call->op.space].owned.grace_us;
    bool all = t->nones > 0 && t->nones == t->asked;
    /* Graces are counted in milliseconds; and lost objects, given up, go without one. */
    bool soon = t->objects_n == 1 || (t->asked_epoch == w->view.epoch &&
                                      2 * (w->now_us - t->asked_us + 2000) < grace_us);
    t->nones = 0;
    if (all && soon && is_as_before(t)) {
        evaluate(w, t);
        return true;
    }
    t->none_tries += all;
    t->creates = t->none_tries >= NONE_TRIES;
    return false;
}

/* Data of some is not here. `unreadable`: an object that is, but cannot be read; or UINT32_MAX. */
static void go_without(struct worker *w, struct txn *t, uint32_t unreadable)
{
    if (answered_absent(w, t)) {
        return;
    }
    if (t->none_tries > 0 && !t->creates && unreadable != UINT32_MAX) {
        wait_for(w, t, unreadable); /* else the next time is for nothing, too */
        return;
    }
    note_asked(t);
    txn_want(w, t);
}

void txn_read(struct worker *w, struct txn *t)
{
    uint32_t at = UINT32_MAX;
    if (!reserve_buffers(w->txns, t->objects_n)) {
        call_fail(w, t->call, HK_ERR_NOMEM);
        return;
    }
    enum look found = look(w, t, &at);
    if (found == LOOK_LACKS) {
        go_without(w, t, at);
        return;
    }
    t->nones = 0;
    if (found == LOOK_OWNED) {
        txn_commit(w, t);
    } else if (found == LOOK_WAITS) {
        wait_for(w, t, at);
    } else if (t->objects_n == 1 || look_again(w, t)) {
        evaluate(w, t);
    } else if (++t->prods % QUICK_TRIES != 0) {
        call_ready(w, t->call);
        if (!call_own(w, t->call)) {
            call_fail(w, t->call, HK_ERR_NOMEM);
        }
    } else {
        call_again(w, t->call);
    }
}
