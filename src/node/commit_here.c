/* Transactions that a thread beside the workers commits itself. It grasps what it touches as a
 * worker does (txn_commit.c), under one bucket's lock at a time, with a mark of its own in
 * key_meta.owner; but it never waits: whatever is not at rest, or not its own pipeline's, whoever
 * waits for it or holds it, leaves everything as it was, and a worker does it all. So nobody is
 * passed who was there before. What it has published is in WRITE, and handed to the worker, which
 * looks for followers, sends, and wakes who came meanwhile when the slot is done.
 *
 * Where nobody follows (one replica) and nothing is under way, there is no slot: the objects become
 * unreadable, then new and readable, so that no reader sees a part. */
#include "node/commit_here.h"

#include <string.h>

#include "base/assert.h"
#include "node/read_internal.h"
#include "node/txn_internal.h"

struct attempt {
    struct node_reader *reader;
    struct node *node;
    struct store *store;
    struct store_thread *thread;
    struct txn_caller *caller;
    struct node_commit_key *keys;
    uint32_t n;
    uint8_t space;
    uint64_t wall_ms; /* 0: not asked yet */
    uint64_t slot;
    uint64_t clock;
    nodeset followers;
    struct txn_record record;
    bool waiters, wanted; /* somebody is to be told that something is free */
    uint64_t waited_hash;
};

/* ---- The reader's pipeline ---- */

static void release_caller(struct node_reader *r)
{
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (r->entries[i] != NULL) {
            store_thread_unregister(r->entries[i]);
            r->entries[i] = NULL;
        }
    }
    /* release: its numbers are the next one's. */
    atomic_store_explicit(&r->caller->taken, false, memory_order_release);
    r->caller = NULL;
}

static bool prepare_space(struct node_reader *r, uint8_t space)
{
    struct node *n = r->node;
    struct txn_caller *c = r->caller;
    struct commit_name name = {.pipe = c->pipe, .node = n->config.self};
    if (c->pipes[space] == NULL) {
        c->pipes[space] = txn_pipe_new(space, &name, true);
        if (c->pipes[space] == NULL) {
            return false;
        }
        c->pipes[space]->caller = c;
    }
    return store_thread_register(n->spaces[space].directory, &r->entries[space]) == HK_OK;
}

void commit_here_open(struct node_reader *r)
{
    struct txns *txns = r->node->workers[r->worker].txns;
    for (uint32_t i = 0; txns != NULL && r->caller == NULL && i < txns->callers_n; i++) {
        bool taken = false;
        /* acquire: pairs with release_caller. */
        if (atomic_compare_exchange_strong_explicit(&txns->callers[i].taken, &taken, true,
                                                    memory_order_acquire, memory_order_relaxed)) {
            r->caller = &txns->callers[i];
        }
    }
    for (uint32_t i = 0; i < SPACES_MAX && r->caller != NULL; i++) {
        if ((r->node->owned >> i & 1u) != 0 && !prepare_space(r, (uint8_t)i)) {
            release_caller(r);
        }
    }
    if (r->caller != NULL) {
        atomic_store_explicit(&txns->callers_used, true, memory_order_relaxed);
    }
}

void commit_here_close(struct node_reader *r)
{
    if (r->caller != NULL) {
        release_caller(r);
    }
}

/* ---- Grasping ---- */

static uint64_t wall_ms(struct attempt *a)
{
    if (a->wall_ms == 0) {
        a->wall_ms = a->node->env.wall_ms(a->node->env.context);
    }
    return a->wall_ms;
}

static int apply(struct attempt *a, struct node_commit_key *k, const struct op_state *old)
{
    struct answer answer;
    bool timed = (k->op->flags & OPF_DEADLINE) != 0;
    return op_evaluate(k->op, old, timed ? wall_ms(a) : 0, NULL, 0, &k->state, &answer,
                       &k->changed);
}

/* At rest, or this pipeline's, and nobody's business: nobody waits, holds it, or wants it. */
static bool is_free(const struct attempt *a, const struct key_meta *meta)
{
    bool mine = meta->state == ZEUS_WRITE && txn_aux_pipe(meta->aux) == a->caller->pipe;
    return (meta->flags & (ZEUS_OWNED | ZEUS_WANTED | ZEUS_SHUT | KEY_WAITERS)) == ZEUS_OWNED &&
           meta->owner == 0 && (meta->state == ZEUS_VALID || mine);
}

static enum node_commit_answer evaluate(struct attempt *a, struct node_commit_key *k,
                                        const struct key_meta *meta, struct bytes stored)
{
    struct op_state old = {.present = false};
    if (op_state_from_stored(stored, meta->flags, &old) != HK_OK ||
        (old.deadline_ms != 0 && op_state_expired(&old, wall_ms(a)))) {
        return NODE_COMMIT_ASK;
    }
    if (k->watched && (!old.present || k->version != meta->ts)) {
        /* Of absence a worker knows more. */
        return old.present && k->version != 0 ? NODE_COMMIT_CONFLICT : NODE_COMMIT_ASK;
    }
    k->under_way = meta->state == ZEUS_WRITE;
    k->ts = meta->ts;
    return k->op == NULL || apply(a, k, &old) == HK_OK ? NODE_COMMIT_SLOT : NODE_COMMIT_ASK;
}

/* NODE_COMMIT_SLOT: it is held. */
static enum node_commit_answer grasp(struct attempt *a, struct node_commit_key *k)
{
    enum node_commit_answer result = NODE_COMMIT_ASK;
    struct store_ref ref;
    store_lock(a->store, a->thread, k->key, k->hash, &ref);
    if (ref.object != NULL) {
        struct key_meta meta = store_meta(&ref);
        if (is_free(a, &meta)) {
            result = evaluate(a, k, &meta, store_value_of(&ref, NULL, 0));
        }
        if (result == NODE_COMMIT_SLOT) {
            k->held = true;
            meta.owner = a->caller->ref;
            store_set_meta(&ref, &meta);
        }
    }
    store_unlock(&ref);
    return result;
}

/* What an object that is let go at rest says of those who came meanwhile. */
static void note_left(struct attempt *a, const struct node_commit_key *k, struct key_meta *meta)
{
    meta->owner = 0;
    if (meta->state != ZEUS_VALID) {
        return; /* the end of its slot tells them */
    }
    if ((meta->flags & KEY_WAITERS) != 0) {
        meta->flags &= (uint8_t)~KEY_WAITERS;
        a->waiters = true;
        a->waited_hash = k->hash;
    }
    a->wanted = a->wanted || (meta->flags & ZEUS_WANTED) != 0;
}

/* Once no lock is held. Of several objects only the last is named. */
static void tell(struct attempt *a, bool several)
{
    struct node *n = a->node;
    struct mail mail = {.kind = MAIL_WAKE, .space = a->space, .hash = a->waited_hash};
    for (uint32_t i = 0; a->waiters && i < n->config.workers; i++) {
        if (several) {
            /* release: as in worker_post. */
            atomic_store_explicit(&n->workers[i].wake_all, true, memory_order_release);
        }
        worker_post(&n->workers[i], i, &mail);
    }
    if (a->wanted) {
        own_freed_elsewhere(n);
    }
}

static void release(struct attempt *a)
{
    uint32_t let_go = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        struct node_commit_key *k = &a->keys[i];
        struct store_ref ref;
        if (!k->held) {
            continue;
        }
        k->held = false;
        store_lock(a->store, a->thread, k->key, k->hash, &ref);
        HK_ASSERT(ref.object != NULL);
        struct key_meta meta = store_meta(&ref);
        HK_ASSERT(meta.owner == a->caller->ref);
        note_left(a, k, &meta);
        store_set_meta(&ref, &meta);
        store_unlock(&ref);
        let_go++;
    }
    tell(a, let_go > 1);
}

static enum node_commit_answer grasp_all(struct attempt *a)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct node_commit_key *k = &a->keys[i];
        k->held = k->changed = k->under_way = false;
        k->hash = store_hash(a->store, k->key);
        store_prefetch_bucket(a->store, k->hash);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        enum node_commit_answer result = grasp(a, &a->keys[i]);
        if (result != NODE_COMMIT_SLOT) {
            release(a);
            return result;
        }
    }
    return NODE_COMMIT_SLOT;
}

/* ---- Committing ---- */

/* False: some of what is to be written has too few replicas (R15). */
static bool find_followers(struct attempt *a)
{
    struct node_reader *r = a->reader;
    struct own_eyes eyes = {.node = a->node, .entries = r->entries[a->space], .view = &r->view};
    bool replicated = true;
    if (atomic_load_explicit(&a->node->published_epoch, memory_order_acquire) != r->view.epoch) {
        control_published(a->node, &r->view);
    }
    for (uint32_t i = 0; i < a->n && replicated; i++) {
        const struct node_commit_key *k = &a->keys[i];
        if (k->changed) {
            a->followers |= own_followers_seen(&eyes, a->space, k->key, k->hash, &replicated);
        }
    }
    return replicated;
}

static uint64_t new_version(const struct attempt *a, uint64_t ts)
{
    uint64_t version = stamp_version(ts);
    version = (version > a->clock ? version : a->clock) + 1;
    return stamp_make(version, a->reader->view.members[a->node->config.self].cid_first);
}

static uint64_t measure(struct attempt *a)
{
    struct txn_record *r = &a->record;
    uint64_t read = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct node_commit_key *k = &a->keys[i];
        if (k->changed) {
            struct commit_object object = {.key = k->key};
            r->inv_n += commit_object_bytes(&object) + op_state_stored_bytes(&k->state);
        } else {
            read += 4u + k->key.n;
        }
    }
    r->inv_n += r->inv_n > 0 ? COMMIT_INV_HEAD : 0;
    r->hashes_at = r->inv_n + read;
    r->n = r->hashes_at + a->n * 8u;
    return r->n;
}

static void bind(const struct attempt *a, struct key_meta *meta)
{
    meta->owner = 0;
    meta->state = ZEUS_WRITE;
    meta->aux = txn_aux(a->caller->pipe, a->slot);
    meta->flags &= (uint8_t)~KEY_READABLE;
}

static void put(struct store_ref *ref, struct key_meta *meta, uint64_t version, uint8_t vflags,
                struct bytes stored)
{
    HK_ASSERT(version > meta->ts);
    meta->ts = version;
    meta->flags = (uint8_t)((meta->flags & ~KEY_VALUE_FLAGS) | vflags);
    int err = store_set(ref, meta, stored, true);
    HK_ASSERT(err == HK_OK); /* as in txn_commit.c: there is memory */
}

/* The object goes into WRITE, new if it was written; its bytes are the record's. */
static void publish(struct attempt *a, struct node_commit_key *k,
                    const struct commit_object *object)
{
    struct store_ref ref;
    store_lock(a->store, a->thread, k->key, k->hash, &ref);
    HK_ASSERT(ref.object != NULL);
    struct key_meta meta = store_meta(&ref);
    HK_ASSERT(meta.owner == a->caller->ref);
    bind(a, &meta);
    if (object != NULL) {
        put(&ref, &meta, object->version, object->vflags, object->value);
    } else {
        store_set_meta(&ref, &meta);
    }
    store_unlock(&ref);
    k->held = false;
}

static uint8_t *publish_written(struct attempt *a, uint8_t *at, uint8_t **hash)
{
    for (uint32_t i = 0; i < a->n; i++) {
        struct node_commit_key *k = &a->keys[i];
        struct commit_object object;
        if (k->changed) {
            at = txn_record_write(at, k->key, new_version(a, k->ts), &k->state, &object);
            publish(a, k, &object);
            put_u64(*hash, k->hash);
            *hash += 8;
        }
    }
    return at;
}

/* Takes the next slot. The record stays good: the worker learns of it later. */
static void commit_in_slot(struct attempt *a, struct node_committed *committed_out)
{
    struct txn_record *r = &a->record;
    uint8_t *hash = r->bytes + r->hashes_at;
    uint8_t *at = publish_written(a, r->bytes + COMMIT_INV_HEAD, &hash);
    HK_ASSERT(r->inv_n == 0 || at == r->bytes + r->inv_n);
    at = r->bytes + r->inv_n;
    for (uint32_t i = 0; i < a->n; i++) {
        struct node_commit_key *k = &a->keys[i];
        if (!k->changed) {
            at = txn_record_read(at, k->key);
            publish(a, k, NULL);
            put_u64(hash, k->hash);
            hash += 8;
        }
    }
    HK_ASSERT(at == r->bytes + r->hashes_at && hash == r->bytes + r->n);
    a->caller->next[a->space]++;
    *committed_out = (struct node_committed){.nonce = a->node->config.view.nonce,
                                             .slot = a->slot,
                                             .record = r->bytes,
                                             .inv_n = r->inv_n,
                                             .hashes_at = r->hashes_at,
                                             .n = r->n,
                                             .caller = a->caller->index};
}

/* Nobody else keeps anything of it, and it is new, or only read. */
static void finish(struct attempt *a, struct node_commit_key *k, uint8_t *scratch)
{
    struct store_ref ref;
    store_lock(a->store, a->thread, k->key, k->hash, &ref);
    HK_ASSERT(ref.object != NULL);
    struct key_meta meta = store_meta(&ref);
    meta.state = ZEUS_VALID;
    meta.aux = 0;
    meta.flags |= (meta.flags & ZEUS_SHUT) == 0 ? KEY_READABLE : 0;
    note_left(a, k, &meta);
    if (k->changed) {
        uint8_t vflags;
        struct bytes stored = bytes_of(scratch, op_state_store(&k->state, scratch, &vflags));
        put(&ref, &meta, new_version(a, k->ts), vflags, stored);
    } else {
        store_set_meta(&ref, &meta);
    }
    store_unlock(&ref);
    k->held = false;
}

static void hide(struct attempt *a, struct node_commit_key *k)
{
    struct store_ref ref;
    store_lock(a->store, a->thread, k->key, k->hash, &ref);
    HK_ASSERT(ref.object != NULL);
    struct key_meta meta = store_meta(&ref);
    uint32_t owner = meta.owner;
    HK_ASSERT(owner == a->caller->ref);
    bind(a, &meta);
    meta.owner = owner;
    store_set_meta(&ref, &meta);
    store_unlock(&ref);
}

static void commit_alone(struct attempt *a)
{
    for (uint32_t i = 0; a->n > 1 && i < a->n; i++) {
        hide(a, &a->keys[i]);
    }
    for (uint32_t i = 0; i < a->n; i++) {
        finish(a, &a->keys[i], a->record.bytes);
    }
    tell(a, a->n > 1);
    uint64_t alone = atomic_load_explicit(&a->caller->alone, memory_order_relaxed);
    atomic_store_explicit(&a->caller->alone, alone + 1, memory_order_relaxed);
}

/* Whether the pipeline has a free slot; and whether it has nothing but free ones. */
static bool has_room(const struct attempt *a, bool *empty_out)
{
    /* acquire: pairs with fx_run (txn_pipe.c). */
    uint64_t first = atomic_load_explicit(&a->caller->first[a->space], memory_order_acquire);
    *empty_out = first == a->slot;
    return a->slot - first < COMMIT_SLOTS;
}

static bool needs_slot(const struct attempt *a, bool empty)
{
    bool needs = a->followers != 0 || !empty;
    for (uint32_t i = 0; i < a->n && !needs; i++) {
        needs = a->keys[i].under_way;
    }
    return needs;
}

/* Everything is held and evaluated. */
static enum node_commit_answer commit(struct attempt *a, bool empty,
                                      struct node_committed *committed_out)
{
    if (!find_followers(a) || measure(a) > NODE_COMMIT_BYTES_MAX) {
        release(a);
        return NODE_COMMIT_ASK;
    }
    a->record.bytes = store_alloc(a->thread, a->record.n, false);
    if (a->record.bytes == NULL) {
        release(a);
        return NODE_COMMIT_ASK;
    }
    a->clock = own_clock(&a->node->workers[a->reader->worker], a->space);
    if (needs_slot(a, empty)) {
        commit_in_slot(a, committed_out);
        return NODE_COMMIT_SLOT;
    }
    commit_alone(a);
    store_free(a->thread, a->record.bytes, a->record.n);
    return NODE_COMMIT_DONE;
}

static bool may_commit(const struct node_reader *r, uint32_t space, uint64_t now_us)
{
    const struct node *n = r->node;
    return r->caller != NULL && space < SPACES_MAX && r->entries[space] != NULL &&
           node_reader_leased(r, now_us) && !worker_full(&n->workers[r->worker]) &&
           atomic_load_explicit(&n->full, memory_order_relaxed) == 0 &&
           !atomic_load_explicit(&n->workers[r->worker].txns->clogged, memory_order_relaxed);
}

enum node_commit_answer node_commit(struct node_reader *r, uint32_t space, uint64_t now_us,
                                    uint32_t n, struct node_commit_key *keys,
                                    struct node_committed *committed_out)
{
    bool empty;
    HK_ASSERT(n > 0 && n <= NODE_COMMIT_KEYS_MAX);
    if (!may_commit(r, space, now_us)) {
        return NODE_COMMIT_ASK;
    }
    struct attempt a = {.reader = r,
                        .node = r->node,
                        .store = r->node->spaces[space].store,
                        .thread = r->threads[space],
                        .caller = r->caller,
                        .keys = keys,
                        .n = n,
                        .space = (uint8_t)space,
                        .slot = r->caller->next[space]};
    /* What earlier calls returned is not used any more. */
    store_quiescent(a.thread);
    store_quiescent(r->entries[space]);
    if (!has_room(&a, &empty)) {
        return NODE_COMMIT_ASK;
    }
    enum node_commit_answer result = grasp_all(&a);
    if (result == NODE_COMMIT_SLOT) {
        result = commit(&a, empty, committed_out);
    }
    for (uint32_t i = 0; i < n && result != NODE_COMMIT_ASK; i++) {
        hot_note(r->hot[space], keys[i].key, keys[i].hash, now_us);
    }
    return result;
}
