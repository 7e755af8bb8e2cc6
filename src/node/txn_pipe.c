/* Pipelines of reliable commit in the node: the bytes of unfinished slots, the messages of the
 * machine (engine/zeus/commit.h), what a follower applies, and what happens to objects and calls
 * when a slot is done. A pipeline of this node is stepped by its own worker, one of another node by
 * worker `pipe mod workers`. R-ACKs and R-VALs of a poll leave together when it ends. */
#include "node/txn_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

static uint8_t worker_of(const struct worker *w, uint32_t pipe)
{
    return (uint8_t)(pipe % WORKERS_MAX % w->node->config.workers);
}

static struct commit_context context_of(const struct worker *w, uint8_t space)
{
    return (struct commit_context){
        .view = &w->view, .config = txn_config(w, space), .self = w->node->config.self};
}

struct txn_slot *txn_pipe_slot(struct txn_pipe *p, uint64_t slot)
{
    return &p->slots[slot & (COMMIT_SLOTS - 1)];
}

struct txn_pipe *txn_pipe_new(uint8_t space, const struct commit_name *name, bool own)
{
    struct txn_pipe *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return NULL;
    }
    commit_pipe_init(&p->commit, name);
    list_init(&p->link);
    list_init(&p->chain);
    list_init(&p->dirty);
    p->space = space;
    p->own = own;
    p->ack_to = NODE_NONE;
    for (uint32_t i = 0; i < COMMIT_SLOTS; i++) {
        list_init(&p->slots[i].calls);
    }
    return p;
}

static struct list_link *chain_of(struct txn_space *s, const struct commit_name *name)
{
    return &s->named[(name->pipe + 7u * name->node) % TXN_PIPE_LISTS];
}

void txn_pipe_add(struct txn_space *s, struct txn_pipe *p)
{
    list_push_back(p->own ? &s->pipes : &s->follows, &p->link);
    list_push_back(chain_of(s, &p->commit.name), &p->chain);
}

struct txn_pipe *txn_pipe_own(const struct txn_space *s, uint32_t number)
{
    for (uint32_t i = 0; i < s->own_n; i++) {
        if (s->own_numbers[i] == number) {
            return s->own[i];
        }
    }
    return NULL;
}

bool txn_pipe_room(const struct txn_pipe *p)
{
    return commit_room(&p->commit) && p->bytes < TXN_PIPE_BYTES;
}

bool txn_pipe_any_room(const struct txn_space *s)
{
    uint32_t i = 0;
    while (i < s->own_n && !txn_pipe_room(s->own[i])) {
        i++;
    }
    return i < s->own_n;
}

struct txn_pipe *txn_pipe_choose(const struct txn_space *s, nodeset followers)
{
    struct txn_pipe *best = NULL;
    enum commit_fit fit = COMMIT_FIT_HELD;
    uint32_t empty = ~s->busy & (uint32_t)((UINT64_C(1) << s->own_n) - 1u);
    if (empty != 0) {
        best = s->own[__builtin_ctz(empty)];
        fit = COMMIT_FIT_FIRST;
    }
    for (uint32_t rest = s->busy; rest != 0 && fit != COMMIT_FIT_SAME; rest &= rest - 1) {
        struct txn_pipe *p = s->own[__builtin_ctz(rest)];
        enum commit_fit mine = commit_fit(&p->commit, followers);
        if (txn_pipe_room(p) && (best == NULL || mine < fit)) {
            best = p;
            fit = mine;
        }
    }
    return best;
}

/* ---- What is said ---- */

static void send(struct worker *w, const struct txn_pipe *p, nodeset to, struct msg *m)
{
    uint32_t n = nodeset_count(to & w->view.live);
    m->space = p->space;
    m->epoch = w->view.epoch;
    w->stats.owned_messages[m->kind] += n;
    w->stats.owned_bytes[m->kind] += (uint64_t)n * msg_size(m);
    output_values(w, to, (uint8_t)(p->commit.name.pipe % WORKERS_MAX), m, NULL);
}

static void send_inv(struct worker *w, struct txn_pipe *p, nodeset to, uint64_t slot)
{
    struct txn_slot *s = txn_pipe_slot(p, slot);
    struct commit_inv inv = commit_inv_of(&p->commit, slot);
    struct msg m;
    const struct txn_record *r = &s->record;
    HK_ASSERT(r->inv_n >= COMMIT_INV_HEAD);
    put_u64(r->bytes, inv.followers);
    commit_msg_make(COMMIT_MSG_INV, &p->commit.name, slot, inv.first, &m);
    m.value = bytes_of(r->bytes, (uint32_t)r->inv_n);
    send(w, p, to, &m);
}

static void mark(struct worker *w, struct txn_pipe *p)
{
    if (list_empty(&p->dirty)) {
        list_push_back(&w->txns->dirty, &p->dirty);
    }
}

static void say_ack(struct worker *w, struct txn_pipe *p)
{
    struct msg m;
    if (p->ack_to == NODE_NONE) {
        return;
    }
    commit_msg_make(COMMIT_MSG_ACK, &p->commit.name, p->ack_slot, 0, &m);
    send(w, p, nodeset_of(p->ack_to), &m);
    p->ack_to = NODE_NONE;
    p->ack_slot = 0;
}

static void owe_ack(struct worker *w, struct txn_pipe *p, nodeset to, uint64_t slot)
{
    uint8_t node = nodeset_first(to);
    if (p->ack_to != node) {
        say_ack(w, p);
        p->ack_to = node;
    }
    p->ack_slot = slot > p->ack_slot ? slot : p->ack_slot;
    mark(w, p);
}

static void say_val(struct worker *w, struct txn_pipe *p)
{
    struct msg m;
    if (p->val_to != 0) {
        commit_msg_make(COMMIT_MSG_VAL, &p->commit.name, p->val_slot, 0, &m);
        send(w, p, p->val_to, &m);
        p->val_to = 0;
    }
}

/* All before the slot is done as well, whoever followed it. */
static void owe_val(struct worker *w, struct txn_pipe *p, nodeset to, uint64_t slot)
{
    p->val_to |= to;
    p->val_slot = slot > p->val_slot ? slot : p->val_slot;
    mark(w, p);
}

void txn_pipe_flush(struct worker *w)
{
    struct list_link *link;
    while ((link = list_pop_front(&w->txns->dirty)) != NULL) {
        struct txn_pipe *p = list_entry(link, struct txn_pipe, dirty);
        say_ack(w, p);
        say_val(w, p);
    }
}

/* ---- Objects ---- */

static bool was_involved(const struct worker *w, const struct txn_pipe *p,
                         const struct key_meta *meta, uint64_t slot, uint64_t version)
{
    if (p->own) {
        return meta->state == ZEUS_WRITE && meta->aux == txn_aux(p->commit.name.pipe, slot);
    }
    return meta->state == ZEUS_INVALID &&
           commit_validates(txn_config(w, p->space), meta->ts, version);
}

/* The slot is done: an object that nothing later has touched is reliably committed. */
static void validate(struct worker *w, const struct txn_pipe *p, struct bytes key, uint64_t hash,
                     uint64_t slot, uint64_t version)
{
    struct store *store = w->node->spaces[p->space].store;
    struct store_ref ref;
    bool wake = false;
    bool freed = false;
    store_lock(store, w->threads[p->space], key, hash, &ref);
    if (ref.object != NULL) {
        struct key_meta meta = store_meta(&ref);
        if (was_involved(w, p, &meta, slot, version)) {
            meta.state = ZEUS_VALID;
            meta.aux = 0;
            wake = (meta.flags & KEY_WAITERS) != 0;
            freed = (meta.flags & ZEUS_WANTED) != 0 && meta.owner == 0;
            meta.flags &= (uint8_t)~KEY_WAITERS;
            meta.flags |= (meta.flags & ZEUS_SHUT) == 0 ? KEY_READABLE : 0;
            store_set_meta(&ref, &meta);
        }
    }
    store_unlock(&ref);
    if (wake) {
        txn_wake(w, p->space, hash);
    }
    if (freed) {
        own_freed(w, p->space, key, hash, true);
    }
}

static void validate_all(struct worker *w, const struct txn_pipe *p, uint64_t slot,
                         const struct txn_record *r)
{
    struct commit_object object;
    const uint8_t *hash = r->bytes + r->hashes_at;
    if (r->inv_n > 0) {
        struct bytes rest =
            bytes_of(r->bytes + COMMIT_INV_HEAD, (uint32_t)(r->inv_n - COMMIT_INV_HEAD));
        for (; commit_object_take(&rest, &object); hash += 8) {
            validate(w, p, object.key, get_u64(hash), slot, object.version);
        }
    }
    for (uint64_t at = r->inv_n; p->own && at < r->hashes_at; hash += 8) {
        struct bytes key = bytes_of(r->bytes + at + 4, get_u32(r->bytes + at));
        validate(w, p, key, get_u64(hash), slot, 0);
        at += 4 + key.n;
    }
}

static void finish(struct worker *w, struct txn_pipe *p, uint64_t slot)
{
    struct txn_slot *s = txn_pipe_slot(p, slot);
    struct list_link calls;
    struct list_link *link;
    if (s->record.bytes != NULL) {
        validate_all(w, p, slot, &s->record);
        store_free(w->threads[p->space], s->record.bytes, s->record.n);
    }
    list_init(&calls);
    list_append(&calls, &s->calls);
    p->bytes -= s->record.n;
    s->record = (struct txn_record){.bytes = NULL};
    while ((link = list_pop_front(&calls)) != NULL) {
        struct call *c = list_entry(link, struct call, link);
        txn_answer(w, c->txn);
    }
}

/* An object of an R-INV, if this node holds it. False: it does not. */
static bool apply(struct worker *w, const struct txn_pipe *p, const struct commit_object *object,
                  uint64_t hash)
{
    struct store *store = w->node->spaces[p->space].store;
    struct store_ref ref;
    store_lock(store, w->threads[p->space], object->key, hash, &ref);
    bool held = ref.object != NULL;
    if (held && commit_takes(txn_config(w, p->space), store_meta(&ref).ts, object->version)) {
        struct key_meta meta = store_meta(&ref);
        meta.ts = object->version;
        meta.state = ZEUS_INVALID;
        meta.aux = 0;
        meta.flags &= (uint8_t) ~(KEY_READABLE | KEY_VALUE_FLAGS);
        meta.flags |= object->vflags;
        int err = store_set(&ref, &meta, object->value, true);
        /* Nobody sends it again, and only the operating system can refuse it. */
        HK_ASSERT(err == HK_OK);
    }
    store_unlock(&ref);
    return held;
}

static uint32_t count_objects(struct bytes objects)
{
    struct commit_object object;
    uint32_t n = 0;
    while (commit_object_take(&objects, &object)) {
        n++;
    }
    return n;
}

static void keep_inv(struct worker *w, struct txn_pipe *p, uint64_t slot, const struct msg *msg)
{
    const struct store *store = w->node->spaces[p->space].store;
    struct txn_record *r = &txn_pipe_slot(p, slot)->record;
    struct bytes rest = commit_msg_objects(msg);
    struct commit_object object;
    HK_ASSERT(r->bytes == NULL);
    r->hashes_at = msg->value.n;
    r->n = r->hashes_at + 8u * count_objects(rest);
    r->bytes = store_alloc(w->threads[p->space], r->n, true);
    HK_ASSERT(r->bytes != NULL); /* as in apply */
    p->bytes += r->n;
    memcpy(r->bytes, msg->value.at, COMMIT_INV_HEAD);
    uint8_t *at = r->bytes + COMMIT_INV_HEAD;
    uint8_t *hashes = r->bytes + r->hashes_at;
    while (commit_object_take(&rest, &object)) {
        uint64_t hash = store_hash(store, object.key);
        bool held = apply(w, p, &object, hash);
        if (held || txn_rule_on(w, p->space, COMMIT_RULE_WHOLE)) {
            at = commit_object_put(at, &object);
            put_u64(hashes, hash);
            hashes += 8;
        }
    }
    r->inv_n = (uint64_t)(at - r->bytes);
}

/* ---- Effects ---- */

static void carry_out(struct worker *w, struct txn_pipe *p, const struct commit_effect *e,
                      const struct msg *msg, uint8_t from)
{
    switch ((enum commit_fx)e->kind) {
    case COMMIT_FX_INV:
        send_inv(w, p, e->to, e->slot);
        break;
    case COMMIT_FX_ACK:
        owe_ack(w, p, e->to, e->slot);
        break;
    case COMMIT_FX_VAL:
        owe_val(w, p, e->to, e->slot);
        break;
    case COMMIT_FX_DONE:
    case COMMIT_FX_DROP:
        finish(w, p, e->slot);
        break;
    case COMMIT_FX_APPLY:
        keep_inv(w, p, e->slot, msg);
        break;
    case COMMIT_FX_BEHIND:
        if (from < NODES_MAX) {
            atomic_fetch_or_explicit(&w->node->hints, nodeset_of(from), memory_order_relaxed);
        }
        break;
    }
}

/* Steps of the machine, one at a time; what one causes never steps it again before it is over:
 * answers only queue what comes next. */
static struct commit_effects *fx_begin(struct worker *w)
{
    HK_ASSERT(!w->txns->stepping);
    w->txns->stepping = true;
    w->txns->fx.n = 0;
    return &w->txns->fx;
}

static void fx_run(struct worker *w, struct txn_pipe *p, const struct msg *msg, uint8_t from)
{
    const struct commit_effects *fx = &w->txns->fx;
    if (commit_pipe_empty(&p->commit)) {
        w->txns->spaces[p->space]->busy &= ~p->bit;
    }
    if (p->caller != NULL) {
        /* release: pairs with the acquire in has_room (commit_here.c); before any call is
         * answered, or the thread would find its pipeline full. */
        atomic_store_explicit(&p->caller->first[p->space], p->commit.first, memory_order_release);
    }
    for (uint32_t i = 0; i < fx->n; i++) {
        carry_out(w, p, &fx->e[i], msg, from);
    }
    w->txns->stepping = false;
#ifdef HK_DEBUG
    struct commit_context cx = context_of(w, p->space);
    commit_check(&p->commit, &cx);
#endif
    if (p->own && !list_empty(&w->txns->spaces[p->space]->room) && txn_pipe_room(p)) {
        txn_roomy(w, p->space);
    }
}

uint64_t txn_pipe_begin(struct worker *w, struct txn_pipe *p, nodeset followers,
                        const struct txn_record *record)
{
    struct commit_context cx = context_of(w, p->space);
    struct txn_slot *s = txn_pipe_slot(p, p->commit.next);
    HK_ASSERT(s->record.bytes == NULL && list_empty(&s->calls));
    p->commit.name.admitted = w->view.members[w->node->config.self].admitted;
    s->record = *record;
    p->bytes += record->n;
    w->txns->spaces[p->space]->busy |= p->bit;
    return commit_begin(&p->commit, &cx, followers, fx_begin(w));
}

void txn_pipe_go(struct worker *w, struct txn_pipe *p)
{
    fx_run(w, p, NULL, NODE_NONE);
}

/* ---- Pipelines of others ---- */

static bool same_name(const struct commit_name *a, const struct commit_name *b)
{
    return a->pipe == b->pipe && a->admitted == b->admitted && a->node == b->node;
}

static struct txn_pipe *find(struct worker *w, uint8_t space, const struct commit_name *name)
{
    struct txn_space *s = w->txns->spaces[space];
    list_each(link, chain_of(s, name))
    {
        struct txn_pipe *p = list_entry(link, struct txn_pipe, chain);
        if (same_name(&p->commit.name, name)) {
            return p;
        }
    }
    return NULL;
}

void txn_pipe_free(struct worker *w, struct txn_pipe *p)
{
    say_ack(w, p);
    say_val(w, p);
    list_remove(&p->dirty);
    list_remove(&p->link);
    list_remove(&p->chain);
    free(p);
}

/* Nothing of the dead is left here: said once in each epoch. */
static void look_recovered(struct worker *w, uint8_t space)
{
    struct txn_space *s = w->txns->spaces[space];
    if (s->recovered_epoch == w->view.epoch) {
        return;
    }
    list_each(link, &s->follows)
    {
        const struct txn_pipe *p = list_entry(link, struct txn_pipe, link);
        if (p->commit.dead && txn_rule_on(w, space, COMMIT_RULE_RECOVERED)) {
            return;
        }
    }
    s->recovered_epoch = w->view.epoch;
    own_recovered(w, space);
}

/* A dead coordinator's pipeline of which nothing is left is forgotten. */
static void look_empty(struct worker *w, struct txn_pipe *p)
{
    uint8_t space = p->space;
    if (!p->own && p->commit.dead && commit_pipe_empty(&p->commit)) {
        txn_pipe_free(w, p);
        look_recovered(w, space);
    }
}

static void adopt_own(struct worker *w, struct txn_pipe *p)
{
    struct commit_context cx = context_of(w, p->space);
    if (!commit_pipe_empty(&p->commit)) {
        commit_view(&p->commit, &cx, fx_begin(w));
        fx_run(w, p, NULL, NODE_NONE);
    }
}

void txn_pipe_adopt(struct worker *w, uint8_t space)
{
    struct txn_space *s = w->txns->spaces[space];
    struct commit_context cx = context_of(w, space);
    list_each_safe(link, following, &s->follows)
    {
        struct txn_pipe *p = list_entry(link, struct txn_pipe, link);
        p->ack_to = NODE_NONE; /* R-INVs come again, if their coordinator lives */
        p->ack_slot = 0;
        commit_view(&p->commit, &cx, fx_begin(w));
        fx_run(w, p, NULL, NODE_NONE);
        look_empty(w, p);
    }
    list_each(link, &s->pipes)
    {
        adopt_own(w, list_entry(link, struct txn_pipe, link));
    }
    if (w->view.epoch != 0) {
        look_recovered(w, space);
    }
}

/* ---- Messages ---- */

static void take_inv(struct worker *w, struct txn_pipe *p, const struct msg *msg, uint8_t from)
{
    struct commit_context cx = context_of(w, msg->space);
    struct commit_name name = commit_msg_name(msg);
    struct commit_inv inv = commit_msg_inv(msg);
    struct txn_pipe *made = NULL;
    if (p == NULL && name.node != w->node->config.self && name.pipe < TXN_PIPES_MAX) {
        p = made = txn_pipe_new(msg->space, &name, false);
        HK_ASSERT(made != NULL); /* as in apply */
        txn_pipe_add(w->txns->spaces[msg->space], made);
    }
    if (p == NULL) {
        w->stats.engine_drops[ENGINE_DROP_STALE]++;
        return;
    }
    struct commit_effects *fx = fx_begin(w);
    bool taken = commit_inv(&p->commit, &cx, from, &inv, msg->epoch == w->view.epoch, fx);
    w->stats.engine_drops[ENGINE_DROP_EPOCH_OLD] += !taken;
    fx_run(w, p, msg, from);
    if (!taken && made != NULL) {
        txn_pipe_free(w, made);
    } else {
        look_empty(w, p);
    }
}

/* What has no record here is done: whoever asks may forget it too. */
static void answer_done(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct commit_name name = commit_msg_name(msg);
    struct msg m;
    commit_msg_make(COMMIT_MSG_VAL, &name, msg->ts, 0, &m);
    m.space = msg->space;
    m.epoch = w->view.epoch;
    w->stats.owned_messages[m.kind]++;
    output_message(w, from, (uint8_t)(name.pipe % WORKERS_MAX), &m);
}

static void take_ack(struct worker *w, struct txn_pipe *p, const struct msg *msg, uint8_t from)
{
    struct commit_context cx = context_of(w, msg->space);
    bool alive = msg->epoch == w->view.epoch;
    if (p == NULL) {
        if (alive && txn_rule_on(w, msg->space, COMMIT_RULE_AGAIN)) {
            answer_done(w, msg, from);
        }
        return;
    }
    commit_ack(&p->commit, &cx, from, msg->ts, alive, fx_begin(w));
    fx_run(w, p, msg, from);
    look_empty(w, p);
}

static void take_val(struct worker *w, struct txn_pipe *p, const struct msg *msg)
{
    struct commit_context cx = context_of(w, msg->space);
    if (p == NULL || p->own) {
        return;
    }
    commit_val(&p->commit, &cx, msg->ts, msg->epoch == w->view.epoch, fx_begin(w));
    fx_run(w, p, msg, NODE_NONE);
    look_empty(w, p);
}

void txn_message(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from)
{
    struct commit_name name = commit_msg_name(msg);
    uint32_t to = worker_of(w, name.pipe);
    (void)hash;
    if (!nodeset_has(w->view.live, from)) {
        w->stats.engine_drops[ENGINE_DROP_SENDER]++;
        return;
    }
    if (to != w->index) {
        input_pass(w, to, msg, from);
        return;
    }
    struct txn_pipe *p = find(w, msg->space, &name);
    switch ((enum commit_kind)msg->kind) {
    case COMMIT_MSG_INV:
        take_inv(w, p, msg, from);
        break;
    case COMMIT_MSG_ACK:
        take_ack(w, p, msg, from);
        break;
    case COMMIT_MSG_VAL:
        take_val(w, p, msg);
        break;
    case COMMIT_MSG_END:
        break;
    }
}
