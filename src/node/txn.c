/* Transactions of sessions, in spaces whose objects have owners: a call that is more than a read of
 * what is here becomes one, be it a single operation or a list of them.
 *
 * Its way: it looks at its objects; asks for all levels that it lacks at once and waits; looks
 * again; commits locally (txn_commit.c) or reads (txn_read.c); hears that its pipeline's slot is
 * done (txn_pipe.c) and answers. Nothing has happened before the local commit, so until then it may
 * be refused, and tried again.
 *
 * Who holds an object is in key_meta.owner: a reference to the transaction. While it commits (an
 * instant, on its worker's thread) nobody takes it away; between two tries it is a reservation,
 * that an older transaction may take over. So the oldest of a node is never kept from its objects
 * by younger ones, and it waits for nobody but commits that are under way: no deadlock, no
 * livelock. Levels may be lost again while others are awaited. Whom that has happened to several
 * times asks for one after the other, in the order of keys, and holds what it has: the order is the
 * same on all nodes. */
#include "node/txn_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define ROUNDS_MAX 3u      /* levels lost so often: ordered from then on */
#define PRODS_MAX 4u       /* a read that waited so often wants to own */
#define PROD_SHIFT_MAX 5u  /* waits double up to 32 times parked_us */
#define HOLDS_US 20000u    /* so long it keeps what it has while it waits for a level */
#define COUNT_US 1000u     /* between two looks at what callers have committed alone */
#define AGE_BITS 18u       /* of an age, below its time */
#define AGE_WORKER_BITS 6u /* of these, above the sequence */

_Static_assert(WORKERS_MAX <= 1u << AGE_WORKER_BITS, "ages name their worker");

/* ---- Making ---- */

/* Numbers of pipelines above those of workers that are this worker's on all nodes. */
static uint32_t numbers_n(const struct worker *w)
{
    uint32_t workers = w->node->config.workers;
    uint32_t residues = (WORKERS_MAX - w->index + workers - 1) / workers;
    return residues * (TXN_PIPES_MAX / WORKERS_MAX - 1);
}

static uint32_t number_of(const struct worker *w, uint32_t i)
{
    uint32_t workers = w->node->config.workers;
    uint32_t residues = (WORKERS_MAX - w->index + workers - 1) / workers;
    return WORKERS_MAX * (1 + i / residues) + w->index + workers * (i % residues);
}

/* The first of them are the worker's own beside its first one; no more than half. */
static uint32_t own_numbers_n(const struct worker *w)
{
    uint32_t n = numbers_n(w) / 2;
    return n < TXN_OWN_PIPES - 1 ? n : TXN_OWN_PIPES - 1;
}

static bool make_space(struct worker *w, uint8_t space)
{
    struct commit_name name = {.pipe = w->index, .node = w->node->config.self};
    struct txn_space *s = calloc(1, sizeof *s);
    if (s == NULL) {
        return false;
    }
    w->txns->spaces[space] = s;
    list_init(&s->follows);
    list_init(&s->pipes);
    list_init(&s->room);
    for (uint32_t i = 0; i < TXN_PIPE_LISTS; i++) {
        list_init(&s->named[i]);
    }
    for (uint32_t i = 0; i <= own_numbers_n(w); i++) {
        struct txn_pipe *p = txn_pipe_new(space, &name, true);
        if (p == NULL) {
            return false;
        }
        p->bit = 1u << i;
        s->own_numbers[i] = name.pipe;
        s->own[s->own_n++] = p;
        txn_pipe_add(s, p);
        name.pipe = number_of(w, i);
    }
    return true;
}

static bool make_callers(struct worker *w)
{
    struct txns *txns = w->txns;
    uint32_t first = own_numbers_n(w);
    uint32_t n = numbers_n(w) - first;
    txns->callers_n = n < TXN_CALLERS_MAX ? n : TXN_CALLERS_MAX;
    txns->callers = calloc(txns->callers_n, sizeof *txns->callers);
    for (uint32_t i = 0; txns->callers != NULL && i < txns->callers_n; i++) {
        struct txn_caller *c = &txns->callers[i];
        struct txn *t = &txns->table[w->node->config.calls_max + i];
        c->index = i;
        c->pipe = number_of(w, first + i);
        c->ref = t->ref;
        /* Whoever finds its mark waits: it stands for an instant. */
        atomic_init(&t->age, 1);
        for (uint32_t k = 0; k < SPACES_MAX; k++) {
            c->next[k] = 1;
            atomic_init(&c->first[k], 1);
        }
    }
    return txns->callers != NULL;
}

int txn_init(struct worker *w)
{
    const struct node *n = w->node;
    struct txns *txns = NULL;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (n->spaces[i].ops == NULL || (n->spaces[i].ops->traits & ENGINE_OWNED) == 0) {
            continue;
        }
        if (txns == NULL) {
            txns = w->txns = calloc(1, sizeof *txns);
            if (txns == NULL) {
                return HK_ERR_NOMEM;
            }
        }
        if (!make_space(w, (uint8_t)i)) {
            return HK_ERR_NOMEM;
        }
    }
    if (txns == NULL) {
        return HK_OK;
    }
    list_init(&txns->dirty);
    for (uint32_t i = 0; i < TXN_WAIT_LISTS; i++) {
        list_init(&txns->waiting[i]);
    }
    uint32_t table_n = n->config.calls_max + TXN_CALLERS_MAX;
    txns->table = calloc(table_n, sizeof *txns->table);
    if (txns->table == NULL) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < table_n; i++) {
        txns->table[i].ref = slot_ref((uint8_t)w->index, i + 1);
        list_init(&txns->table[i].waiting);
    }
    return make_callers(w) ? HK_OK : HK_ERR_NOMEM;
}

/* The stores go with the node, and what transactions and slots have in them. */
void txn_deinit(struct worker *w)
{
    struct txns *txns = w->txns;
    if (txns == NULL) {
        return;
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        struct txn_space *s = txns->spaces[i];
        struct list_link *link;
        while (s != NULL && (link = list_pop_front(&s->follows)) != NULL) {
            free(list_entry(link, struct txn_pipe, link));
        }
        for (uint32_t k = 0; s != NULL && k < s->own_n; k++) {
            free(s->own[k]);
        }
        free(s);
    }
    for (uint32_t i = 0; txns->callers != NULL && i < txns->callers_n; i++) {
        for (uint32_t k = 0; k < SPACES_MAX; k++) {
            free(txns->callers[i].pipes[k]);
        }
    }
    free(txns->callers);
    free(txns->buffers);
    free(txns->table);
    free(txns);
}

/* ---- Beginning ---- */

static uint64_t next_age(struct worker *w, const struct call *c)
{
    uint64_t low = (uint64_t)w->index << (AGE_BITS - AGE_WORKER_BITS);
    low |= w->txns->sequence++ & ((1u << (AGE_BITS - AGE_WORKER_BITS)) - 1u);
    return c->since_us << AGE_BITS | low;
}

static struct txn *attach(struct worker *w, struct call *c)
{
    struct txn *t = &w->txns->table[c - w->calls_memory];
    HK_ASSERT(c->txn == NULL && atomic_load_explicit(&t->age, memory_order_relaxed) == 0);
    uint32_t ref = t->ref;
    uint32_t gen = t->gen;
    memset(&t->waiting, 0, sizeof *t - offsetof(struct txn, waiting));
    t->ref = ref;
    t->gen = gen;
    t->call = c;
    list_init(&t->waiting);
    c->txn = t;
    /* release: pairs with the acquire in older_holds (txn_commit.c). */
    atomic_store_explicit(&t->age, next_age(w, c), memory_order_release);
    return t;
}

/* Whether it writes anything that needs memory. */
static bool op_spends(const struct op *op)
{
    return op->kind >= OP_KINDS ||
           (op_updates(op) && op->kind != OP_DELETE && op->kind != OP_DELETE_IF &&
            op->kind != OP_GETDEL && op->kind != OP_EXPIRED);
}

struct txn *txn_begin(struct worker *w, struct call *c)
{
    if (c->txn != NULL) {
        return c->txn;
    }
    struct txn *t = attach(w, c);
    t->request = (struct txn_request){.ops = &c->op, .ops_n = 1};
    t->objects = &t->one_object;
    t->places = &t->one_place;
    t->index = t->one_index;
    t->order = &t->one_order;
    t->answers = &t->one_answer;
    t->versions = &t->one_version;
    t->objects_n = 1;
    t->one_object = (struct txn_object){.key = c->op.key, .hash = c->hash};
    t->one_index[1] = UINT16_MAX;
    t->updates = op_updates(&c->op);
    t->spends = op_spends(&c->op);
    return t;
}

static uint64_t hash_of(const void *context, struct bytes key)
{
    return store_hash(context, key);
}

static uint8_t *take(uint8_t **rest, size_t bytes)
{
    uint8_t *at = *rest;
    *rest += (bytes + 7u) & ~(size_t)7u;
    return at;
}

/* How often it names an object. */
static uint32_t mentions(const struct txn_request *r)
{
    uint32_t n = r->ops_n + r->watches_n;
    for (uint32_t i = 0; i < r->ops_n; i++) {
        n += r->ops[i].kind >= OP_KINDS; /* a pair */
    }
    return n;
}

/* The arrays of a transaction of several operations; the largest alignment comes first. */
static bool make_arrays(struct worker *w, struct txn *t, uint8_t space)
{
    const struct txn_request *r = &t->request;
    uint32_t most = mentions(r);
    most = most < TXN_OBJECTS_MAX ? most : TXN_OBJECTS_MAX;
    uint32_t index_n = 2 * r->ops_n + r->watches_n;
    size_t bytes = most * (sizeof *t->objects + sizeof *t->places) +
                   r->ops_n * (sizeof *t->answers + sizeof *t->versions) +
                   (index_n + most) * sizeof *t->index + 6 * 8;
    uint8_t *rest = t->few;
    if (bytes > sizeof t->few) {
        rest = t->arrays = store_alloc(w->threads[space], bytes, true);
        t->arrays_bytes = (uint32_t)bytes;
    }
    if (rest == NULL) {
        return false;
    }
    memset(rest, 0, bytes);
    t->objects = (struct txn_object *)(void *)take(&rest, most * sizeof *t->objects);
    t->places = (struct txn_place *)(void *)take(&rest, most * sizeof *t->places);
    t->answers = (struct answer *)(void *)take(&rest, r->ops_n * sizeof *t->answers);
    t->versions = (uint64_t *)(void *)take(&rest, r->ops_n * sizeof *t->versions);
    t->index = (uint16_t *)(void *)take(&rest, index_n * sizeof *t->index);
    t->order = (uint16_t *)(void *)take(&rest, most * sizeof *t->order);
    t->objects_n =
        txn_objects(r, hash_of, w->node->spaces[space].store, t->objects, most, t->index);
    t->objects_n = t->objects_n == UINT32_MAX ? 0 : t->objects_n; /* too many */
    for (uint32_t i = 0; i < t->objects_n; i++) {
        t->order[i] = (uint16_t)i;
    }
    return true;
}

int txn_take(struct worker *w, struct call *c, const struct txn_request *request)
{
    struct txn *t = attach(w, c);
    t->request = *request;
    t->several = true;
    t->updates = txn_updates(request);
    c->update = t->updates;
    for (uint32_t i = 0; i < request->ops_n; i++) {
        t->spends |= op_spends(&request->ops[i]);
    }
    if (!make_arrays(w, t, c->op.space)) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < t->objects_n; i++) {
        hot_note(w->hot[c->op.space], t->objects[i].key, t->objects[i].hash, w->now_us);
    }
    return t->objects_n > 0 ? HK_OK : HK_ERR_TOOBIG;
}

/* ---- Committed by its client's thread ---- */

int txn_take_committed(struct worker *w, struct call *c, const struct node_committed *committed)
{
    if (committed->nonce != w->node->config.view.nonce) {
        return HK_ERR_UNKNOWN; /* and its record is gone with that node's memory */
    }
    struct txn *t = attach(w, c);
    t->several = true;
    t->verdict = TXN_DONE;
    c->update = committed->inv_n > 0;
    c->ahead = true;
    return HK_OK;
}

/* Its objects are in WRITE: nobody becomes a reader of any before the slot is done. */
static nodeset followers_of(struct worker *w, uint8_t space, const struct txn_record *r)
{
    const uint8_t *hash = r->bytes + r->hashes_at;
    nodeset followers = 0;
    if (r->inv_n > 0) {
        struct commit_object object;
        struct bytes rest =
            bytes_of(r->bytes + COMMIT_INV_HEAD, (uint32_t)(r->inv_n - COMMIT_INV_HEAD));
        for (; commit_object_take(&rest, &object); hash += 8) {
            followers |= own_readers(w, space, object.key, get_u64(hash));
        }
    }
    return followers;
}

void txn_run_committed(struct worker *w, struct call *c, const struct node_committed *committed)
{
    struct txn_caller *caller = &w->txns->callers[committed->caller];
    uint8_t space = c->op.space;
    struct txn_space *s = w->txns->spaces[space];
    struct txn_pipe *pipe = caller->pipes[space];
    struct txn_record r = {.bytes = committed->record,
                           .inv_n = committed->inv_n,
                           .hashes_at = committed->hashes_at,
                           .n = committed->n};
    if (!nodeset_has(w->view.live, w->node->config.self)) {
        call_fail(w, c, HK_ERR_UNKNOWN); /* nobody listens any more, and this node will end */
        return;
    }
    if (list_empty(&pipe->link)) {
        txn_pipe_add(s, pipe);
    }
    nodeset followers = followers_of(w, space, &r);
    uint64_t slot = txn_pipe_begin(w, pipe, followers, &r);
    HK_ASSERT(slot == committed->slot);
    w->stats.txn_commits += followers != 0 || r.inv_n > 0;
    w->stats.txn_commits_ahead++;
    w->stats.updates += r.inv_n > 0;
    list_remove(&c->link);
    c->state = CALL_COMMITTED;
    list_push_back(&txn_pipe_slot(pipe, slot)->calls, &c->link);
    wheel_arm(&w->wheel, &c->timer, call_due(w, c));
    if (!txn_rule_on(w, space, COMMIT_RULE_DURABLE)) {
        txn_answer(w, c->txn);
    }
    txn_pipe_go(w, pipe); /* which may answer the call */
}

/* ---- Memory of its own ---- */

static uint64_t request_bytes(const struct txn_request *r)
{
    uint64_t n = r->ops_n * sizeof *r->ops + r->watches_n * sizeof *r->watches;
    for (uint32_t i = 0; i < r->ops_n; i++) {
        n += (uint64_t)r->ops[i].key.n + r->ops[i].value.n + r->ops[i].arg.n;
    }
    for (uint32_t i = 0; i < r->watches_n; i++) {
        n += r->watches[i].key.n;
    }
    return n;
}

static void move_bytes(struct bytes *b, uint8_t **rest)
{
    if (b->n > 0) {
        memcpy(*rest, b->at, b->n);
        b->at = *rest;
        *rest += b->n;
    }
}

bool txn_own(struct worker *w, struct txn *t)
{
    uint64_t n = request_bytes(&t->request);
    if (!t->several || t->own_bytes) {
        return true;
    }
    /* As of a single operation: what waits must not eat the headroom of followers. */
    t->copy = n <= UINT32_MAX ? store_alloc(w->threads[t->call->op.space], n, !t->spends) : NULL;
    if (t->copy == NULL) {
        return false;
    }
    t->copy_bytes = (uint32_t)n;
    t->own_bytes = true;
    struct txn_request *r = &t->request;
    struct op *ops = (struct op *)(void *)t->copy;
    struct txn_watch *watches = (struct txn_watch *)(void *)(ops + r->ops_n);
    uint8_t *rest = (uint8_t *)(watches + r->watches_n);
    for (uint32_t i = 0; i < r->ops_n; i++) {
        ops[i] = r->ops[i];
        move_bytes(&ops[i].key, &rest);
        move_bytes(&ops[i].value, &rest);
        move_bytes(&ops[i].arg, &rest);
        t->objects[t->index[2 * i]].key = ops[i].key;
        if (t->index[2 * i + 1] != UINT16_MAX) {
            t->objects[t->index[2 * i + 1]].key = ops[i].arg;
        }
    }
    for (uint32_t i = 0; i < r->watches_n; i++) {
        watches[i] = r->watches[i];
        move_bytes(&watches[i].key, &rest);
        t->objects[t->index[2 * r->ops_n + i]].key = watches[i].key;
    }
    r->ops = ops;
    r->watches = watches;
    return true;
}

bool txn_keep(struct worker *w, struct txn *t)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < t->answers_n; i++) {
        n += t->answers[i].value.n;
    }
    if (n == 0 || t->kept != NULL) {
        return true;
    }
    t->kept = n <= UINT32_MAX ? store_alloc(w->threads[t->call->op.space], n, true) : NULL;
    if (t->kept == NULL) {
        return false;
    }
    t->kept_bytes = (uint32_t)n;
    uint8_t *rest = t->kept;
    for (uint32_t i = 0; i < t->answers_n; i++) {
        move_bytes(&t->answers[i].value, &rest);
    }
    return true;
}

static void free_memory(struct store_thread *thread, uint8_t **at, uint32_t bytes)
{
    if (*at != NULL) {
        store_free(thread, *at, bytes);
        *at = NULL;
    }
}

/* ---- Ending ---- */

void txn_settle(struct worker *w, struct txn *t)
{
    txn_release(w, t);
    list_remove(&t->waiting);
    t->gen++;
    /* release: who sees that it is over may take what it held. */
    atomic_store_explicit(&t->age, 0, memory_order_release);
}

void txn_end(struct worker *w, struct txn *t)
{
    struct store_thread *thread = w->threads[t->call->op.space];
    txn_settle(w, t);
    free_memory(thread, &t->arrays, t->arrays_bytes);
    free_memory(thread, &t->copy, t->copy_bytes);
    free_memory(thread, &t->kept, t->kept_bytes);
    t->call->txn = NULL;
    t->call = NULL;
}

void txn_fill(const struct txn *t, struct reply *reply)
{
    uint8_t kind = reply->answer.kind;
    if (t->several && (kind == ANSWER_OK || kind == ANSWER_NUMBER)) {
        reply->answers = t->answers;
        reply->versions = t->versions;
        reply->answers_n = t->answers_n;
    }
}

/* What each operation read or wrote; of a pair, its target. */
static void fill_versions(struct txn *t)
{
    for (uint32_t i = 0; i < t->answers_n; i++) {
        uint16_t at = t->index[2 * i + 1];
        const struct txn_object *o = &t->objects[at != UINT16_MAX ? at : t->index[2 * i]];
        bool absent = o->version == 0 && (t->request.flags & TXN_ABSENCE) != 0;
        t->versions[i] = absent ? TXN_ABSENT | o->absence : o->version;
    }
}

static bool holds_any(const struct txn *t)
{
    for (uint32_t i = 0; i < t->objects_n; i++) {
        if (t->places[i].held) {
            return true;
        }
    }
    return false;
}

void txn_answer(struct worker *w, struct txn *t)
{
    struct call *c = t->call;
    /* The answers may point into what it holds, so that is let go when they are said, by keys; and
     * the request's are the client's again by then. Whoever still holds has changed nothing. */
    if (holds_any(t) && !txn_own(w, t)) {
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    struct answer answer = {.kind = ANSWER_OK};
    fill_versions(t);
    if (t->verdict == TXN_CONFLICT) {
        w->stats.txn_conflicts++;
        answer.kind = ANSWER_NIL;
    } else if (t->verdict == TXN_UNAPPLIED) {
        answer.kind = ANSWER_NUMBER;
    } else if (!t->several) {
        answer = t->answers[0];
        c->version = answer.kind == ANSWER_ERROR ? 0 : t->versions[0];
    }
    call_finish(w, c, &answer);
}

/* ---- Waiting ---- */

static void resume(struct worker *w, struct txn *t)
{
    list_remove(&t->waiting);
    call_ready(w, t->call);
}

/* False: it has failed. */
static bool begin_wait(struct worker *w, struct txn *t)
{
    struct call *c = t->call;
    if (!call_own(w, c)) {
        call_fail(w, c, HK_ERR_NOMEM);
        return false;
    }
    list_remove(&c->link);
    c->state = CALL_WAITING;
    w->stats.txn_waits++;
    return true;
}

void txn_wait(struct worker *w, struct txn *t, uint64_t hash)
{
    uint32_t shift = t->prods < PROD_SHIFT_MAX ? t->prods : PROD_SHIFT_MAX;
    uint64_t due = w->now_us + (w->node->config.parked_us << shift);
    uint64_t last = call_due(w, t->call);
    if (begin_wait(w, t)) {
        t->wait_hash = hash;
        list_push_back(&w->txns->waiting[hash % TXN_WAIT_LISTS], &t->waiting);
        wheel_arm(&w->wheel, &t->call->timer, due < last ? due : last);
    }
}

void txn_wait_room(struct worker *w, struct txn *t)
{
    if (begin_wait(w, t)) {
        list_push_back(&w->txns->spaces[t->call->op.space]->room, &t->waiting);
        wheel_arm(&w->wheel, &t->call->timer, call_due(w, t->call));
    }
}

void txn_roomy(struct worker *w, uint8_t space)
{
    struct txn_space *s = w->txns->spaces[space];
    struct list_link *link;
    /* Some wait for room in another pipeline, to which they are bound: they wait again. */
    for (uint32_t i = 0; i < COMMIT_SLOTS && (link = list_pop_front(&s->room)) != NULL; i++) {
        struct txn *t = list_entry(link, struct txn, waiting);
        t->turn = true;
        resume(w, t);
    }
}

/* The order of keys, as all nodes have it: Shell's sort. */
static void sort_objects(struct txn *t)
{
    for (uint32_t gap = t->objects_n / 2; gap > 0; gap /= 2) {
        for (uint32_t i = gap; i < t->objects_n; i++) {
            uint16_t moved = t->order[i];
            struct bytes key = t->objects[moved].key;
            uint32_t at = i;
            for (; at >= gap; at -= gap) {
                struct bytes other = t->objects[t->order[at - gap]].key;
                uint32_t n = other.n < key.n ? other.n : key.n;
                int less = n > 0 ? memcmp(other.at, key.at, n) : 0;
                if (less < 0 || (less == 0 && other.n <= key.n)) {
                    break;
                }
                t->order[at] = t->order[at - gap];
            }
            t->order[at] = moved;
        }
    }
}

/* One more time it has waited for levels and has not all of them. */
static void count_round(struct worker *w, struct txn *t)
{
    t->rounds++;
    w->stats.txn_retries += t->rounds > 1;
    if (t->rounds > ROUNDS_MAX && t->objects_n > 1 && !t->ordered) {
        t->ordered = true;
        sort_objects(t);
    }
}

void txn_want(struct worker *w, struct txn *t)
{
    enum own_type type = t->updates || t->creates ? OWN_OWNER : OWN_READER;
    struct own_waiter waiter = {
        .since_us = t->call->since_us, .worker = w->index, .index = slot_ref_index(t->ref) - 1};
    count_round(w, t);
    if (!begin_wait(w, t)) {
        return;
    }
    uint64_t due = call_due(w, t->call);
    uint64_t held_due = w->now_us + HOLDS_US;
    wheel_arm(&w->wheel, &t->call->timer, t->ordered && held_due < due ? held_due : due);
    waiter.gen = ++t->gen;
    t->wants = 1; /* until all are under way */
    t->asked = t->nones = 0;
    t->asked_us = w->now_us;
    t->asked_epoch = w->view.epoch;
    for (uint32_t k = 0; k < t->objects_n; k++) {
        uint32_t i = t->order[k];
        if (t->places[i].lacks) {
            t->wants++;
            t->asked++;
            t->places[i].none = false;
            waiter.object = i;
            own_want(w, t->call->op.space, t->objects[i].key, t->objects[i].hash, type, waiter);
            if (t->ordered) {
                break;
            }
        }
    }
    if (--t->wants == 0) {
        resume(w, t);
    }
}

void txn_told(struct worker *w, struct own_waiter waiter, uint8_t code)
{
    struct txn *t = &w->txns->table[waiter.index];
    if (waiter.index >= w->node->config.calls_max || t->gen != waiter.gen || t->wants == 0) {
        return; /* it is over, or has gone on without it */
    }
    if (code == OWN_NACK_NONE) {
        t->places[waiter.object].none = true;
        t->nones++;
    }
    t->lost |= code == OWN_NACK_LOST;
    t->refused |= code != 0 && code != OWN_NACK_NONE && code != OWN_NACK_LOST;
    if (--t->wants == 0) {
        resume(w, t);
    }
}

void txn_timer(struct worker *w, struct txn *t)
{
    struct call *c = t->call;
    if (c->state == CALL_COMMITTED) {
        call_fail(w, c, c->update ? HK_ERR_UNKNOWN : HK_ERR_UNAVAILABLE);
        return;
    }
    HK_ASSERT(c->state == CALL_WAITING);
    if (w->now_us >= call_due(w, c)) {
        w->stats.txn_aborts++;
        call_fail(w, c, w->now_us < w->lease_until_us ? HK_ERR_BUSY : HK_ERR_UNAVAILABLE);
        return;
    }
    /* A reader may find an object that is written all the time never readable: who owns it stops
     * the others. */
    t->prods++;
    t->updates |= t->prods > PRODS_MAX;
    if (t->wants > 0) {
        txn_release(w, t);
        t->wants = 0;
        call_again(w, c);
        return;
    }
    resume(w, t);
}

void txn_woken(struct worker *w, uint8_t space, uint64_t hash)
{
    list_each_safe(link, following, &w->txns->waiting[hash % TXN_WAIT_LISTS])
    {
        struct txn *t = list_entry(link, struct txn, waiting);
        if (t->wait_hash == hash && t->call->op.space == space) {
            resume(w, t);
        }
    }
}

void txn_woken_all(struct worker *w)
{
    for (uint32_t i = 0; i < TXN_WAIT_LISTS; i++) {
        list_each_safe(link, following, &w->txns->waiting[i])
        {
            resume(w, list_entry(link, struct txn, waiting));
        }
    }
}

void txn_wake(struct worker *w, uint8_t space, uint64_t hash)
{
    wake_everywhere(w, space, hash);
}

/* ---- Running ---- */

/* What own.c has said since it waited; false: that was the end, or it waits again. */
static bool heard(struct worker *w, struct txn *t)
{
    bool lost = t->lost;
    bool refused = t->refused;
    t->lost = false;
    t->refused = false;
    if (lost) {
        call_fail(w, t->call, HK_ERR_LOST);
        return false;
    }
    if (refused) {
        txn_release(w, t);
        call_again(w, t->call);
        return false;
    }
    return true;
}

void txn_run(struct worker *w, struct call *c)
{
    if (c->txn == NULL && !c->update && txn_read_one(w, c)) {
        return;
    }
    struct txn *t = txn_begin(w, c);
    t->wants = 0;
    if (!heard(w, t)) {
        return;
    }
    if (t->updates) {
        txn_commit(w, t);
    } else {
        txn_read(w, t);
    }
}

/* ---- A worker's poll ---- */

/* Who waits for levels lets go: the levels come when all is settled, and that waits for what is
 * held. */
static void let_go_all(struct worker *w)
{
    for (uint32_t i = 0; i < w->node->config.calls_max; i++) {
        struct txn *t = &w->txns->table[i];
        if (t->call != NULL && t->call->state == CALL_WAITING && t->wants > 0) {
            txn_release(w, t);
        }
    }
}

void txn_adopt(struct worker *w)
{
    if (w->txns != NULL) {
        let_go_all(w);
    }
    for (uint32_t i = 0; w->txns != NULL && i < SPACES_MAX; i++) {
        if (w->txns->spaces[i] != NULL) {
            txn_pipe_adopt(w, (uint8_t)i);
        }
    }
}

/* What callers have committed without this worker. */
static void count_alone(struct worker *w)
{
    for (uint32_t i = 0; i < w->txns->callers_n; i++) {
        struct txn_caller *c = &w->txns->callers[i];
        uint64_t alone = atomic_load_explicit(&c->alone, memory_order_relaxed);
        uint64_t more = alone - c->alone_seen;
        c->alone_seen = alone;
        w->stats.txn_commits += more;
        w->stats.txn_commits_ahead += more;
        w->stats.updates += more;
    }
}

void txn_poll(struct worker *w)
{
    if (w->txns != NULL) {
        txn_pipe_flush(w);
        atomic_store_explicit(&w->txns->clogged, lanes_clogged(w), memory_order_relaxed);
    }
    if (w->txns != NULL && atomic_load_explicit(&w->txns->callers_used, memory_order_relaxed) &&
        w->now_us - w->txns->counted_us >= COUNT_US) {
        w->txns->counted_us = w->now_us;
        count_alone(w);
    }
}

uint64_t txn_deadline(const struct worker *w)
{
    return w->txns != NULL && !list_empty(&w->txns->dirty) ? w->now_us : UINT64_MAX;
}

uint32_t txn_under_way(const struct worker *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; w->txns != NULL && i < SPACES_MAX; i++) {
        const struct txn_space *s = w->txns->spaces[i];
        if (s == NULL) {
            continue;
        }
        list_each(link, &s->pipes)
        {
            const struct commit_pipe *p = &list_entry(link, struct txn_pipe, link)->commit;
            n += (uint32_t)(p->next - p->first);
        }
    }
    return n;
}

/* ---- Checking ---- */

void txn_check_worker(const struct worker *w)
{
    const struct txns *txns = w->txns;
    if (txns == NULL) {
        return;
    }
    HK_ASSERT(!txns->stepping && list_empty(&txns->dirty));
    for (uint32_t i = 0; i < w->node->config.calls_max; i++) {
        const struct txn *t = &txns->table[i];
        const struct call *c = t->call;
        HK_ASSERT(c == NULL || (c->txn == t && c->state != CALL_FREE));
        HK_ASSERT(atomic_load_explicit(&t->committing, memory_order_relaxed) == 0);
        HK_ASSERT(c != NULL || list_empty(&t->waiting));
        for (uint32_t k = 0; c != NULL && k < t->objects_n; k++) {
            HK_ASSERT(!t->places[k].held || c->state == CALL_WAITING || c->state == CALL_READY ||
                      c->state == CALL_DELAYED);
        }
    }
}
