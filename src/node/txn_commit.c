/* Local commit: a transaction grasps all its objects, each under its bucket's lock, one at a time;
 * is evaluated on private copies; takes a slot of this worker's pipeline; and publishes what it
 * wrote. From then on the objects are in WRITE, what it only read as well (C12), until the slot is
 * done. A transaction that wrote nothing and saw nothing that is under way needs no slot. */
#include "node/txn_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define SCRATCH_MAX (256u << 20) /* of one evaluation */

/* ---- Grasping ---- */

enum grasp {
    GRASP_HELD,
    GRASP_LACKS, /* this node is not the owner */
    GRASP_TAKEN, /* somebody else's, or under way in another pipeline */
};

/* Whether the transaction that `owner` names keeps the object from this one: it commits just now,
 * or is older. */
static bool keeps(const struct worker *w, const struct txn *t, uint32_t owner)
{
    const struct worker *other = &w->node->workers[slot_ref_worker(owner)];
    const struct txn *u = &other->txns->table[slot_ref_index(owner) - 1];
    /* acquire: pairs with attach and txn_settle. */
    uint64_t age = atomic_load_explicit(&u->age, memory_order_acquire);
    uint64_t mine = atomic_load_explicit(&t->age, memory_order_relaxed);
    if (age == 0) {
        return false; /* it is over */
    }
    /* It set this before it locked the bucket for this try, or will find that it was taken over. */
    return atomic_load_explicit(&u->committing, memory_order_acquire) != 0 || age < mine ||
           (age == mine && owner < t->ref);
}

/* C4, C12: an object in WRITE is its pipeline's. From the first one on the transaction is bound. */
static bool may_touch(struct worker *w, struct txn *t, uint16_t aux)
{
    uint8_t space = t->call->op.space;
    uint32_t its = txn_aux_pipe(aux);
    struct txn_pipe *p = txn_pipe_own(w->txns->spaces[space], its);
    uint32_t mine = t->pipe != NULL ? t->pipe->commit.name.pipe : p != NULL ? its : w->index;
    bool may = commit_may_touch(txn_config(w, space), its, mine);
    if (may && t->pipe == NULL) {
        t->pipe = p;
    }
    return may;
}

static enum grasp grasp_locked(struct worker *w, struct txn *t, uint32_t i, struct store_ref *ref)
{
    struct txn_place *p = &t->places[i];
    p->held = false;
    p->lacks = true;
    if (ref->object == NULL) {
        return GRASP_LACKS;
    }
    struct key_meta meta = store_meta(ref);
    bool mine = meta.owner == t->ref;
    if (!mine && (meta.flags & ZEUS_OWNED) == 0) {
        return GRASP_LACKS;
    }
    p->lacks = false;
    bool kept = !mine && meta.owner != 0 && keeps(w, t, meta.owner);
    bool under_way =
        meta.state != ZEUS_VALID && (meta.state != ZEUS_WRITE || !may_touch(w, t, meta.aux));
    if (kept || under_way) {
        meta.flags |= KEY_WAITERS;
    }
    if (!kept) {
        meta.owner = t->ref;
        p->held = true;
    }
    store_set_meta(ref, &meta);
    p->meta = meta;
    p->found = true;
    p->stored = store_value_of(ref, w->scratch, STORE_INLINE_MAX);
    return kept || under_way ? GRASP_TAKEN : GRASP_HELD;
}

static enum grasp grasp(struct worker *w, struct txn *t, uint32_t i)
{
    uint8_t space = t->call->op.space;
    struct store_ref ref;
    store_lock(w->node->spaces[space].store, w->threads[space], t->objects[i].key,
               t->objects[i].hash, &ref);
    enum grasp result = grasp_locked(w, t, i, &ref);
    store_unlock(&ref);
    return result;
}

/* Lets go of an object, or only says that it could be had (what it has is a reservation again). */
static void let_go(struct worker *w, struct txn *t, uint32_t i, bool keep)
{
    uint8_t space = t->call->op.space;
    struct store_ref ref;
    bool wake = false;
    bool freed = false;
    store_lock(w->node->spaces[space].store, w->threads[space], t->objects[i].key,
               t->objects[i].hash, &ref);
    if (ref.object != NULL && store_meta(&ref).owner == t->ref) {
        struct key_meta meta = store_meta(&ref);
        wake = (meta.flags & KEY_WAITERS) != 0;
        meta.flags &= (uint8_t)~KEY_WAITERS;
        if (!keep) {
            meta.owner = 0;
            freed = (meta.flags & ZEUS_WANTED) != 0 && meta.state == ZEUS_VALID;
        }
        store_set_meta(&ref, &meta);
    }
    store_unlock(&ref);
    if (wake) {
        txn_wake(w, space, t->objects[i].hash);
    }
    if (freed) {
        own_freed(w, space, t->objects[i].key, t->objects[i].hash, t->used);
    }
}

static void commits(struct txn *t, bool on)
{
    /* seq_cst: before any bucket is locked for this try. */
    atomic_store_explicit(&t->committing, on ? 1 : 0, memory_order_seq_cst);
}

void txn_release(struct worker *w, struct txn *t)
{
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (t->places[i].held) {
            t->places[i].held = false;
            let_go(w, t, i, false);
        }
    }
    commits(t, false);
}

/* Says what it has reserved to older ones that found it committing; not of the object that it will
 * wait for itself, whose KEY_WAITERS is its own. */
static void offer(struct worker *w, struct txn *t, uint32_t awaited)
{
    commits(t, false);
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (t->places[i].held && i != awaited) {
            let_go(w, t, i, true);
        }
    }
}

/* Whether it may keep what it has while it waits for levels. Not between views: nobody gets a level
 * before all is settled, and nothing is settled while an owner owes an ACK for what is held. */
static bool may_hold(const struct worker *w, const struct txn *t)
{
    const struct space *space = &w->node->spaces[t->call->op.space];
    /* acquire: as own_epoch.c reads it. */
    return t->ordered &&
           atomic_load_explicit(&space->settled_epoch, memory_order_acquire) == w->view.epoch;
}

/* The pipeline that keeps the order of the call's session: that of the updates before it which are
 * not done, if there are any. All of them are in one. */
static struct txn_pipe *pipe_of_session(const struct worker *w, const struct call *c)
{
    struct txn_pipe *pipe = NULL;
    if (c->session == SESSION_NONE) {
        return NULL;
    }
    list_each(link, &w->sessions[c->session].calls)
    {
        const struct call *before = list_entry(link, struct call, session_link);
        if (before == c) {
            break;
        }
        if (before->state == CALL_COMMITTED && before->op.space == c->op.space) {
            pipe = before->txn->pipe;
        }
    }
    return pipe;
}

/* Grasps all; false: it waits for something. */
static bool grasp_all(struct worker *w, struct txn *t)
{
    uint32_t lacking = 0;
    uint32_t taken = UINT32_MAX;
    t->pipe = pipe_of_session(w, t->call);
    commits(t, true);
    for (uint32_t k = 0; k < t->objects_n; k++) {
        uint32_t i = t->order[k];
        enum grasp result = grasp(w, t, i);
        lacking += result == GRASP_LACKS;
        taken = result == GRASP_TAKEN && taken == UINT32_MAX ? i : taken;
        if (t->ordered && result != GRASP_HELD) {
            break;
        }
    }
    if (lacking == 0 && taken == UINT32_MAX) {
        return true;
    }
    if (lacking > 0 && !may_hold(w, t)) {
        txn_release(w, t);
        txn_want(w, t);
        return false;
    }
    offer(w, t, lacking > 0 ? UINT32_MAX : taken);
    if (lacking > 0) {
        txn_want(w, t);
    } else {
        txn_wait(w, t, t->objects[taken].hash);
    }
    return false;
}

/* ---- Evaluating ---- */

bool txn_take_state(const struct worker *w, struct txn *t, uint32_t i)
{
    struct txn_object *o = &t->objects[i];
    const struct txn_place *p = &t->places[i];
    o->state = (struct op_state){.present = false};
    o->version = 0;
    o->absence = p->found ? p->meta.ts : 0;
    o->expired = false;
    o->changed = false;
    if (!p->found) {
        return true;
    }
    if (op_state_from_stored(p->stored, p->meta.flags, &o->state) != HK_OK) {
        return false;
    }
    /* The node's own deletes say what they find expired. */
    o->expired = op_state_expired(&o->state, w->wall_ms) && t->request.ops_n > 0 &&
                 t->request.ops[0].kind != OP_EXPIRED;
    o->version = o->state.present && !o->expired ? p->meta.ts : 0;
    return true;
}

static bool take_states(const struct worker *w, struct txn *t)
{
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (!txn_take_state(w, t, i)) {
            return false;
        }
    }
    return true;
}

/* Evaluates, with as much memory as it takes: the worker's own, or *more_out, which is malloc's. */
static int evaluate(struct worker *w, struct txn *t, uint8_t **more_out)
{
    struct txn_memory memory = {
        .at = w->evaluated,
        .n = w->node->evaluated_bytes,
        .value_bytes_max = w->node->config.spaces[t->call->op.space].store.value_bytes_max,
    };
    for (;;) {
        if (!take_states(w, t)) {
            return HK_ERR_CORRUPT;
        }
        t->verdict = (uint8_t)txn_evaluate(&t->request, t->objects, t->objects_n, t->index,
                                           w->wall_ms, &memory, t->answers);
        if (t->verdict != TXN_NO_MEMORY) {
            break;
        }
        memory.n = memory.used > 2 * memory.n ? memory.used : 2 * memory.n;
        free(*more_out);
        *more_out = memory.n <= SCRATCH_MAX ? malloc(memory.n) : NULL;
        memory.at = *more_out;
        if (*more_out == NULL) {
            return memory.n <= SCRATCH_MAX ? HK_ERR_NOMEM : HK_ERR_TOOBIG;
        }
    }
    t->answers_n = t->verdict == TXN_CONFLICT ? 0 : t->request.ops_n;
    return HK_OK;
}

/* ---- The record of a slot: the R-INV's value, then the keys of what was only read, then the
 * hashes of all in that order ---- */

static bool under_way(const struct txn_place *p)
{
    return p->meta.state == ZEUS_WRITE;
}

static uint64_t new_version(const struct worker *w, const struct txn_place *p, uint64_t clock)
{
    uint64_t version = stamp_version(p->meta.ts);
    version = (version > clock ? version : clock) + 1;
    return stamp_make(version, w->view.members[w->node->config.self].cid_first);
}

static void measure(const struct txn *t, struct txn_record *r)
{
    uint64_t read = 0;
    r->inv_n = 0;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        const struct txn_object *o = &t->objects[i];
        if (o->changed) {
            struct commit_object object = {.key = o->key};
            r->inv_n += commit_object_bytes(&object) + op_state_stored_bytes(&o->state);
        } else {
            read += 4u + o->key.n;
        }
    }
    r->inv_n += r->inv_n > 0 ? COMMIT_INV_HEAD : 0;
    r->hashes_at = r->inv_n + read;
    r->n = r->hashes_at + t->objects_n * 8u;
}

uint8_t *txn_record_write(uint8_t *at, struct bytes key, uint64_t version,
                          const struct op_state *state, struct commit_object *object_out)
{
    *object_out = (struct commit_object){.key = key, .version = version};
    uint8_t *stored = at + commit_object_bytes(object_out);
    object_out->value = bytes_of(stored, op_state_store(state, stored, &object_out->vflags));
    return commit_object_put(at, object_out);
}

uint8_t *txn_record_read(uint8_t *at, struct bytes key)
{
    put_u32(at, key.n);
    if (key.n > 0) {
        memcpy(at + 4, key.at, key.n);
    }
    return at + 4 + key.n;
}

static uint8_t *write_object(struct worker *w, struct txn *t, uint32_t i, uint64_t clock,
                             uint8_t *at)
{
    struct txn_object *o = &t->objects[i];
    struct txn_place *p = &t->places[i];
    struct commit_object object;
    at = txn_record_write(at, o->key, new_version(w, p, clock), &o->state, &object);
    p->meta.ts = object.version;
    p->meta.flags = (uint8_t)((p->meta.flags & ~KEY_VALUE_FLAGS) | object.vflags);
    p->stored = object.value;
    o->version = o->state.present ? object.version : 0;
    o->absence = object.version;
    return at;
}

static void write_record(struct worker *w, struct txn *t, struct txn_record *r)
{
    uint64_t clock = own_clock(w, t->call->op.space);
    uint8_t *at = r->bytes + COMMIT_INV_HEAD;
    uint8_t *hash = r->bytes + r->hashes_at;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (t->objects[i].changed) {
            at = write_object(w, t, i, clock, at);
            put_u64(hash, t->objects[i].hash);
            hash += 8;
        }
    }
    at = r->bytes + r->inv_n;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (!t->objects[i].changed) {
            at = txn_record_read(at, t->objects[i].key);
            put_u64(hash, t->objects[i].hash);
            hash += 8;
        }
    }
    HK_ASSERT(at == r->bytes + r->hashes_at && hash == r->bytes + r->n);
}

/* ---- Publishing ---- */

static void publish(struct worker *w, struct txn *t, uint32_t i, uint16_t aux)
{
    uint8_t space = t->call->op.space;
    struct txn_place *p = &t->places[i];
    struct store_ref ref;
    store_lock(w->node->spaces[space].store, w->threads[space], t->objects[i].key,
               t->objects[i].hash, &ref);
    HK_ASSERT(ref.object != NULL);
    struct key_meta meta = store_meta(&ref);
    HK_ASSERT(meta.owner == t->ref);
    meta.owner = 0;
    meta.state = ZEUS_WRITE;
    meta.aux = aux;
    bool waiters = (meta.flags & KEY_WAITERS) != 0;
    meta.flags &= (uint8_t) ~(KEY_READABLE | KEY_WAITERS);
    if (t->objects[i].changed) {
        HK_ASSERT(p->meta.ts > meta.ts);
        meta.ts = p->meta.ts;
        meta.flags &= (uint8_t)~KEY_VALUE_FLAGS;
        meta.flags |= p->meta.flags & KEY_VALUE_FLAGS;
        int err = store_set(&ref, &meta, p->stored, true);
        /* Whether there is memory was asked before; only the operating system refuses now. */
        HK_ASSERT(err == HK_OK);
    } else {
        store_set_meta(&ref, &meta);
    }
    p->held = false;
    store_unlock(&ref);
    if (waiters) {
        /* Of this pipeline: they need not wait longer. Of others: the oldest had reserved it, was
         * older than nobody before this one, and reserves it again before younger ones come. */
        txn_wake(w, space, t->objects[i].hash);
    }
}

static nodeset followers_of(const struct txn *t)
{
    nodeset followers = 0;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (t->objects[i].changed) {
            followers |= t->places[i].followers;
        }
    }
    return followers;
}

static int make_record(struct worker *w, struct txn *t, struct txn_record *r)
{
    measure(t, r);
    if (r->n > MSG_VALUE_MAX) {
        return HK_ERR_TOOBIG;
    }
    r->bytes = store_alloc(w->threads[t->call->op.space], r->n, !t->spends);
    if (r->bytes == NULL) {
        return HK_ERR_NOMEM;
    }
    /* The answers may point to what is about to be written over. */
    if (!txn_keep(w, t)) {
        store_free(w->threads[t->call->op.space], r->bytes, r->n);
        return HK_ERR_NOMEM;
    }
    write_record(w, t, r);
    return HK_OK;
}

/* Everything is held and evaluated: it takes effect here. */
static void commit_local(struct worker *w, struct txn *t)
{
    struct call *c = t->call;
    uint8_t space = c->op.space;
    struct txn_pipe *pipe = t->pipe;
    struct txn_record r;
    int err = make_record(w, t, &r);
    if (err != HK_OK) {
        call_fail(w, c, err);
        return;
    }
    nodeset followers = followers_of(t);
    uint64_t slot = txn_pipe_begin(w, pipe, followers, &r);
    uint16_t aux = txn_aux(pipe->commit.name.pipe, slot);
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (t->objects[i].changed || txn_rule_on(w, space, COMMIT_RULE_READ)) {
            publish(w, t, i, aux);
        }
    }
    txn_release(w, t);
    w->stats.txn_commits += followers != 0 || r.inv_n > 0;
    w->stats.updates += r.inv_n > 0;
    list_remove(&c->link);
    c->state = CALL_COMMITTED;
    list_push_back(&txn_pipe_slot(pipe, slot)->calls, &c->link);
    wheel_arm(&w->wheel, &c->timer, call_due(w, c));
    uint32_t session = c->session;
    if (!txn_rule_on(w, space, COMMIT_RULE_DURABLE)) {
        txn_answer(w, t);
    }
    txn_pipe_go(w, pipe); /* which may answer the call */
    if (session != SESSION_NONE && w->sessions[session].open) {
        session_pump(w, session);
    }
}

static bool needs_slot(const struct txn *t)
{
    bool needs = false;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        needs |= t->objects[i].changed || under_way(&t->places[i]);
    }
    return needs;
}

/* Who follows what is to be written. Returns the first object of it that too few nodes have (R15);
 * objects_n: none. */
static uint32_t find_followers(struct worker *w, struct txn *t)
{
    uint8_t space = t->call->op.space;
    bool replicated = true;
    for (uint32_t i = 0; i < t->objects_n; i++) {
        const struct txn_object *o = &t->objects[i];
        if (o->changed) {
            t->places[i].followers = own_followers(w, space, o->key, o->hash, &replicated);
        }
        if (!replicated) {
            return i;
        }
    }
    return t->objects_n;
}

/* All that lack some get one more, and it starts anew when the first has it. */
static void wait_for_replicas(struct worker *w, struct txn *t, uint32_t first)
{
    uint8_t space = t->call->op.space;
    uint64_t hash = t->objects[first].hash;
    txn_release(w, t);
    for (uint32_t i = first; i < t->objects_n; i++) {
        struct txn_object *o = &t->objects[i];
        if (o->changed && !own_replicated(w, space, o->key, o->hash)) {
            own_replicate(w, space, o->key, o->hash);
        }
    }
    txn_wait(w, t, hash);
}

static void commit_in_pipe(struct worker *w, struct txn *t)
{
    uint32_t poor = find_followers(w, t);
    if (poor != t->objects_n) {
        wait_for_replicas(w, t, poor);
        return;
    }
    if (t->pipe == NULL) {
        t->pipe = txn_pipe_choose(w->txns->spaces[t->call->op.space], followers_of(t));
    }
    if (t->pipe != NULL && txn_pipe_room(t->pipe)) {
        commit_local(w, t);
    } else {
        txn_release(w, t);
        txn_wait_room(w, t);
    }
}

static bool full(const struct worker *w)
{
    return worker_full(w) || atomic_load_explicit(&w->node->full, memory_order_relaxed) != 0;
}

void txn_commit(struct worker *w, struct txn *t)
{
    struct call *c = t->call;
    struct txn_space *s = w->txns->spaces[c->op.space];
    if (t->spends && full(w)) {
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    if (w->node->spaces[c->op.space].lanes && lanes_clogged(w)) {
        call_again(w, c);
        return;
    }
    if (!txn_pipe_any_room(s) || (!list_empty(&s->room) && !t->turn)) {
        txn_release(w, t);
        txn_wait_room(w, t);
        return;
    }
    t->turn = false;
    if (!grasp_all(w, t)) {
        return;
    }
    if ((t->request.flags & TXN_ACQUIRE) != 0) {
        t->verdict = TXN_DONE;
        txn_release(w, t);
        txn_answer(w, t);
        return;
    }
    uint8_t *more = NULL;
    int err = evaluate(w, t, &more);
    if (err != HK_OK) {
        call_fail(w, c, err);
    } else if (needs_slot(t)) {
        commit_in_pipe(w, t);
    } else {
        t->used = true;
        w->stats.reads++;
        txn_answer(w, t);
    }
    free(more);
}
