/* Ownership in the node: records of the objects on which something is going on, who waits for
 * which level, and the ways between workers. All that concerns an object happens on one worker, its
 * portable hash mod workers; the others pass on what they have. */
#include "node/own.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/own_internal.h"

#define STILL_WAITS UINT8_MAX
#define WAITS_EACH 2u /* waiting transactions a record, on the average */

uint64_t own_portable(const struct worker *w, struct bytes key)
{
    return hash_bytes(&w->node->placement, key);
}

uint32_t own_worker(const struct worker *w, uint64_t portable)
{
    return (uint32_t)(portable % w->node->config.workers);
}

/* ---- Making ---- */

static uint32_t busy_max(const struct node *n)
{
    uint32_t most = 0;
    for (uint32_t rest = n->owned; rest != 0; rest &= rest - 1) {
        most += n->config.spaces[__builtin_ctz(rest)].owned.busy_max;
    }
    return most;
}

int own_init(struct worker *w)
{
    struct own *own;
    uint32_t most = busy_max(w->node);
    if (most == 0) {
        return HK_OK;
    }
    own = w->own = calloc(1, sizeof *own);
    if (own == NULL) {
        return HK_ERR_NOMEM;
    }
    uint32_t lists = 2;
    while (lists < most) {
        lists *= 2;
    }
    own->table_mask = lists - 1;
    own->records_most = most;
    own->memory = calloc(most, sizeof *own->memory);
    own->table = calloc(lists, sizeof *own->table);
    own->waits_memory = calloc((size_t)WAITS_EACH * most, sizeof *own->waits_memory);
    own->back = calloc(OWN_SOON_MAX, sizeof *own->back);
    own->walk.bytes = w->index == 0 ? malloc(OWN_LOOK_BYTES) : NULL;
    if (own->memory == NULL || own->table == NULL || own->waits_memory == NULL ||
        own->back == NULL || (w->index == 0 && own->walk.bytes == NULL)) {
        return HK_ERR_NOMEM;
    }
    list_init(&own->free);
    list_init(&own->records);
    list_init(&own->holds);
    list_init(&own->waits_free);
    list_init(&own->told);
    for (uint32_t i = 0; i < lists; i++) {
        list_init(&own->table[i]);
    }
    for (uint32_t i = 0; i < most; i++) {
        list_push_back(&own->free, &own->memory[i].chain);
    }
    for (uint32_t i = 0; i < WAITS_EACH * most; i++) {
        list_push_back(&own->waits_free, &own->waits_memory[i].link);
    }
    return HK_OK;
}

static void free_spares(struct own *own)
{
    for (uint32_t i = 0; own->table != NULL && i <= own->table_mask; i++) {
        struct list_link *link;
        while (own->table[i].next != NULL && (link = list_pop_front(&own->table[i])) != NULL) {
            struct own_record *r = list_entry(link, struct own_record, chain);
            if (r->spare) {
                free(r);
            }
        }
    }
}

/* The stores go with the node, and what records have in them. */
void own_deinit(struct worker *w)
{
    if (w->own != NULL) {
        free_spares(w->own);
        free(w->own->memory);
        free(w->own->table);
        free(w->own->waits_memory);
        free(w->own->back);
        free(w->own->value);
        free(w->own->walk.bytes);
        free(w->own);
    }
}

/* ---- Records ---- */

struct own_record *own_record_find(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    list_each(link, &w->own->table[hash & w->own->table_mask])
    {
        struct own_record *r = list_entry(link, struct own_record, chain);
        if (r->hash == hash && r->space == space && bytes_equal(r->key, key)) {
            return r;
        }
    }
    return NULL;
}

static bool copy_key(struct worker *w, struct own_record *r, struct bytes key)
{
    uint8_t *at = r->short_key;
    if (key.n > OWN_KEY_SHORT) {
        at = r->key_memory = store_alloc(w->threads[r->space], key.n, true);
        if (at == NULL) {
            return false;
        }
    }
    if (key.n > 0) {
        memcpy(at, key.at, key.n);
    }
    r->key = bytes_of(at, key.n);
    return true;
}

/* An arbiter that refuses an INV for want of a record keeps others Invalid, whose records others
 * want: so for these there is memory. They are no more than the requests that are open on all
 * nodes, which own_has_room bounds. */
static struct own_record *spare_record(struct worker *w)
{
    struct own *own = w->own;
    if (own->records_n >= own->records_most * (1 + nodeset_count(w->view.live))) {
        return NULL;
    }
    return malloc(sizeof(struct own_record));
}

static void give_back(struct worker *w, struct own_record *r)
{
    if (r->spare) {
        free(r);
    } else {
        list_push_front(&w->own->free, &r->chain);
    }
}

struct own_record *own_record_get(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                                  bool must)
{
    struct own *own = w->own;
    struct own_record *r = own_record_find(w, space, key, hash);
    if (r != NULL) {
        return r;
    }
    bool spare = false;
    struct list_link *link = list_pop_front(&own->free);
    if (link != NULL) {
        r = list_entry(link, struct own_record, chain);
    } else {
        spare = true;
        r = must ? spare_record(w) : NULL;
    }
    if (r == NULL) {
        w->stats.own_full++;
        return NULL;
    }
    memset(r, 0, sizeof *r);
    r->spare = spare;
    r->space = space;
    r->hash = hash;
    r->portable = own_portable(w, key);
    if (!copy_key(w, r, key)) {
        give_back(w, r);
        w->stats.own_full++;
        return NULL;
    }
    list_init(&r->waits);
    list_init(&r->holds);
    timer_init(&r->timer, TIMER_OWN);
    list_push_back(&own->table[hash & own->table_mask], &r->chain);
    list_push_back(&own->records, &r->all);
    own->records_n++;
    w->stats.own_records = own->records_n;
    if (own->records_n > w->stats.own_records_most) {
        w->stats.own_records_most = own->records_n;
    }
    return r;
}

/* A part of the records is for what others ask: were all taken by this node's own requests, and all
 * of the others' by theirs, each would refuse what the other needs. */
bool own_has_room(const struct worker *w)
{
    return w->own->records_n < w->own->records_most / 4 * 3;
}

void own_release_kept(struct worker *w, struct own_record *r)
{
    if (r->has_kept && r->kept != NULL) {
        store_free(w->threads[r->space], r->kept, r->kept_bytes);
    }
    r->kept = NULL;
    r->has_kept = false;
}

void own_record_settle(struct worker *w, struct own_record *r)
{
    struct own *own = w->own;
    if (!own_idle(&r->busy) || !list_empty(&r->waits) || r->hold_until_us != 0 || r->queue_n > 0) {
        return;
    }
    own_release_kept(w, r);
    wheel_disarm(&w->wheel, &r->timer);
    list_remove(&r->chain);
    list_remove(&r->all);
    list_remove(&r->holds);
    if (r->key_memory != NULL) {
        store_free(w->threads[r->space], r->key_memory, r->key.n);
    }
    give_back(w, r);
    own->records_n--;
    w->stats.own_records = own->records_n;
}

void own_timer(struct worker *w, struct timer *timer)
{
    own_step_record(w, list_entry(timer, struct own_record, timer), OWN_EV_TIMER);
    own_tell_all(w);
}

/* ---- From worker to worker ---- */

static void to_worker(struct worker *w, uint32_t to, const struct msg *msg)
{
    struct msg m = *msg;
    m.kind = MSG_OWN_ASIDE;
    m.epoch = w->view.epoch;
    aside_add(w, to, &m);
}

void own_aside(struct worker *w, const struct msg *msg)
{
    if (msg->space >= SPACES_MAX || (w->node->owned >> msg->space & 1) == 0) {
        w->stats.node_drops[NODE_DROP_SPACE]++;
        return;
    }
    struct own_waiter waiter = {.worker = (uint32_t)msg->ts,
                                .index = msg->slot,
                                .gen = msg->gen,
                                .object = (uint32_t)(msg->arg >> 32)};
    struct own_waiter wanting = {.since_us = msg->ts,
                                 .worker = (uint8_t)(msg->arg >> 8),
                                 .index = msg->slot,
                                 .gen = msg->gen,
                                 .object = (uint32_t)(msg->arg >> 32)};
    uint64_t hash = store_hash(w->node->spaces[msg->space].store, msg->key);
    switch ((enum own_aside)msg->flags) {
    case OWN_ASIDE_WANT:
        own_want(w, msg->space, msg->key, hash, (enum own_type)(msg->arg & 0xff), wanting);
        break;
    case OWN_ASIDE_TOLD:
        txn_told(w, waiter, (uint8_t)msg->arg);
        break;
    case OWN_ASIDE_FREED:
        own_freed(w, msg->space, msg->key, hash, msg->arg != 0);
        break;
    case OWN_ASIDE_LOOK:
        own_walk_look(w, msg->space, msg->key, hash, msg->arg != 0);
        break;
    case OWN_ASIDE_INVITE:
        own_invite(w, msg->space, msg->key, hash);
        break;
    case OWN_ASIDE_DEGREE:
        own_walk_degree(w, msg->space, msg->key, hash, (uint8_t)msg->arg);
        break;
    }
}

int worker_owned_degree(struct worker *w, uint32_t space, struct bytes key, uint32_t degree)
{
    if (space >= SPACES_MAX || node_directory(w->node, space) == NULL || key.n > STORE_KEY_MAX ||
        degree > NODES_MAX) {
        return HK_ERR_INVALID;
    }
    uint32_t to = own_worker(w, own_portable(w, key));
    if (to == w->index) {
        uint64_t hash = store_hash(w->node->spaces[space].store, key);
        own_walk_degree(w, (uint8_t)space, key, hash, (uint8_t)degree);
    } else {
        struct msg m = {
            .space = (uint8_t)space, .flags = OWN_ASIDE_DEGREE, .arg = degree, .key = key};
        to_worker(w, to, &m);
    }
    return HK_OK;
}

void own_message(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from)
{
    if (!nodeset_has(w->view.live, from)) {
        w->stats.engine_drops[ENGINE_DROP_SENDER]++;
        return;
    }
    if (msg->kind >= OWN_MSG_RECOVERED) {
        own_epoch_message(w, msg, from);
        return;
    }
    uint32_t to = own_worker(w, own_portable(w, msg->key));
    if (to != w->index) {
        input_pass(w, to, msg, from);
        return;
    }
    struct own_step s;
    own_step_init(w, &s, msg->space, OWN_EV_MSG, msg->key, hash);
    s.event.msg = msg;
    s.event.from = from;
    s.event.alive = msg->epoch == w->view.epoch;
    bool must = msg->kind == OWN_MSG_INV || msg->kind == OWN_MSG_RESP;
    s.record = own_record_get(w, msg->space, msg->key, hash, must);
    if (s.record == NULL || msg->kind != OWN_MSG_REQ || !own_queue_take(w, s.record, &s)) {
        own_step_run(w, &s);
    }
    own_tell_all(w);
}

/* ---- Who waits ---- */

static void tell(struct worker *w, const struct own_wait *wait)
{
    if (wait->waiter.worker == w->index) {
        txn_told(w, wait->waiter, wait->code);
        return;
    }
    struct msg m = {
        .space = wait->space,
        .flags = OWN_ASIDE_TOLD,
        .slot = wait->waiter.index,
        .gen = wait->waiter.gen,
        .ts = wait->waiter.worker,
        .arg = (uint64_t)wait->waiter.object << 32 | wait->code,
    };
    to_worker(w, wait->waiter.worker, &m);
}

/* What transactions do when they are told may ask for more: that is told after, not within. */
void own_tell_all(struct worker *w)
{
    struct own *own = w->own;
    struct list_link *link;
    if (own->telling) {
        return;
    }
    own->telling = true;
    while ((link = list_pop_front(&own->told)) != NULL) {
        struct own_wait wait = *list_entry(link, struct own_wait, link);
        list_push_front(&own->waits_free, link);
        tell(w, &wait);
    }
    own->telling = false;
}

static bool concerns(const struct own_wait *wait, enum own_type type, uint8_t code)
{
    if (code == OWN_NACK_LOST) {
        return true;
    }
    /* Who owns may read; nothing to read is no matter for who wants to create. */
    return type == OWN_OWNER ? code == 0 || wait->type == OWN_OWNER : wait->type == type;
}

void own_done(struct worker *w, struct own_record *r, enum own_type type, uint8_t code)
{
    list_each_safe(link, following, &r->waits)
    {
        struct own_wait *wait = list_entry(link, struct own_wait, link);
        if (concerns(wait, type, code)) {
            wait->code = code;
            list_remove(link);
            list_push_back(&w->own->told, link);
        }
    }
}

/* The highest level that anybody still waits for. */
static enum own_type wanted(const struct own_record *r)
{
    enum own_type type = OWN_NONE;
    list_each(link, &r->waits)
    {
        const struct own_wait *wait = list_entry(link, struct own_wait, link);
        if (wait->type == OWN_OWNER) {
            return OWN_OWNER;
        }
        type = (enum own_type)wait->type;
    }
    return type;
}

static struct own_request level_want(enum own_type type)
{
    return (struct own_request){
        .type = (uint8_t)type, .target = NODE_NONE, .create = type == OWN_OWNER};
}

void own_want_again(struct worker *w, struct own_record *r)
{
    enum own_type type = wanted(r);
    if (type != OWN_NONE && r->busy.mine.type == OWN_NONE) {
        struct own_request want = level_want(type);
        own_step_want(w, r, &want);
    } else {
        own_record_settle(w, r);
    }
}

void own_want(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, enum own_type type,
              struct own_waiter waiter)
{
    struct own *own = w->own;
    uint32_t to = own_worker(w, own_portable(w, key));
    HK_ASSERT(type == OWN_OWNER || type == OWN_READER);
    if (to != w->index) {
        struct msg m = {
            .space = space,
            .flags = OWN_ASIDE_WANT,
            .slot = waiter.index,
            .gen = waiter.gen,
            .ts = waiter.since_us,
            .arg = (uint64_t)waiter.object << 32 | waiter.worker << 8 | type,
            .key = key,
        };
        to_worker(w, to, &m);
        return;
    }
    w->stats.own_wants++;
    struct list_link *link = list_pop_front(&own->waits_free);
    struct own_wait unlisted = {
        .waiter = waiter, .type = (uint8_t)type, .space = space, .code = OWN_NACK_BUSY};
    if (link == NULL) {
        w->stats.own_refused++;
        tell(w, &unlisted);
        return;
    }
    struct own_wait *wait = list_entry(link, struct own_wait, link);
    unlisted.link = wait->link;
    *wait = unlisted;
    list_init(&wait->link);
    struct own_record *r = own_record_find(w, space, key, hash);
    if (r == NULL && own_has_room(w)) {
        r = own_record_get(w, space, key, hash, false);
    }
    if (r == NULL) {
        w->stats.own_refused++;
        list_push_back(&own->told, &wait->link);
    } else {
        list_push_back(&r->waits, &wait->link);
        struct own_request want = level_want(type);
        wait->code = STILL_WAITS;
        own_step_want(w, r, &want);
        w->stats.own_waits += wait->code == STILL_WAITS;
    }
    own_tell_all(w);
}

void own_freed(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, bool used)
{
    uint32_t to = own_worker(w, own_portable(w, key));
    if (to != w->index) {
        struct msg m = {.space = space, .flags = OWN_ASIDE_FREED, .arg = used, .key = key};
        to_worker(w, to, &m);
        return;
    }
    struct own_record *r = own_record_find(w, space, key, hash);
    if (r != NULL) {
        if (used) {
            own_policy_used(w, r); /* what it was brought for is done */
        }
        own_step_record(w, r, OWN_EV_FREE);
        own_tell_all(w);
    }
}

void own_freed_elsewhere(struct node *n)
{
    for (uint32_t i = 0; i < n->config.workers; i++) {
        /* release: pairs with the exchange in look_freed. */
        atomic_store_explicit(&n->workers[i].own->freed, true, memory_order_release);
        worker_poke(&n->workers[i]);
    }
}

bool own_freed_wanted(const struct worker *w)
{
    return w->own != NULL && atomic_load_explicit(&w->own->freed, memory_order_acquire);
}

/* Threads that are no workers have let go of something: every ACK that is owed may go. */
static void look_freed(struct worker *w)
{
    struct own *own = w->own;
    if (!atomic_load_explicit(&own->freed, memory_order_relaxed) ||
        !atomic_exchange_explicit(&own->freed, false, memory_order_acquire)) {
        return;
    }
    list_each_safe(link, following, &own->records)
    {
        struct own_record *r = list_entry(link, struct own_record, all);
        if (r->busy.owes) {
            own_step_record(w, r, OWN_EV_FREE);
        }
    }
}

/* ---- Looking ---- */

/* By the entry here, masked; without one nobody is anything. */
static struct own_vector vector_seen(const struct own_eyes *eyes, uint8_t space, struct bytes key,
                                     uint64_t hash)
{
    struct store_value v;
    uint64_t buffer[2];
    int err = store_read(eyes->node->spaces[space].directory, eyes->entries, key, hash, buffer,
                         sizeof buffer, &v);
    HK_ASSERT(err == HK_OK);
    if (!v.found) {
        return (struct own_vector){.owner = NODE_NONE};
    }
    struct own_entry entry = own_entry_of(&v.meta, v.value);
    return own_masked(&entry.vector, eyes->view);
}

#ifdef HK_MUTANTS
static bool rule_on(const struct node *n, uint8_t space, enum own_rule rule)
{
    const struct zeus_config *config = n->spaces[space].engine;
    return (config->own.rules_off >> rule & 1) == 0;
}
#else
static bool rule_on(const struct node *n, uint8_t space, enum own_rule rule)
{
    (void)n;
    (void)space;
    (void)rule;
    return true;
}
#endif

static bool is_replicated(const struct own_eyes *eyes, uint8_t space,
                          const struct own_vector *vector)
{
    if (!rule_on(eyes->node, space, OWN_RULE_ENOUGH)) {
        return true;
    }
    nodeset self = nodeset_of(eyes->node->config.self);
    nodeset stay = eyes->view->live & ~own_going_in(eyes->node, eyes->view);
    uint32_t have = nodeset_count((vector->readers | self) & stay);
    uint32_t shall = own_degree_in(eyes->node, eyes->view, space, vector);
    uint32_t most = nodeset_count(stay);
    uint32_t enough = (nodeset_count(eyes->view->configured) - 1) / 2 + 1;
    enough = shall < enough ? shall : enough;
    if ((vector->degree & OWN_FRESH) != 0 && nodeset_count(eyes->view->live) > 1) {
        return false; /* while it is marked as never written, it is not (R17) */
    }
    return have >= (most < enough ? most : enough);
}

nodeset own_followers_seen(const struct own_eyes *eyes, uint8_t space, struct bytes key,
                           uint64_t hash, bool *replicated_out)
{
    struct own_vector vector = vector_seen(eyes, space, key, hash);
    *replicated_out = is_replicated(eyes, space, &vector);
    return vector.readers & ~nodeset_of(eyes->node->config.self);
}

nodeset own_followers(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                      bool *replicated_out)
{
    struct own_eyes eyes = {.node = w->node, .entries = w->directories[space], .view = &w->view};
    return own_followers_seen(&eyes, space, key, hash, replicated_out);
}

nodeset own_readers(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    bool replicated;
    return own_followers(w, space, key, hash, &replicated);
}

bool own_replicated(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    bool replicated;
    (void)own_followers(w, space, key, hash, &replicated);
    return replicated;
}

void own_replicate(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    struct msg m = {.space = space, .flags = OWN_ASIDE_INVITE, .key = key};
    uint32_t to = own_worker(w, own_portable(w, key));
    if (to == w->index) {
        own_invite(w, space, key, hash);
    } else {
        to_worker(w, to, &m);
    }
}

uint64_t own_clock(const struct worker *w, uint8_t space)
{
    const struct node *n = w->node;
    uint64_t clock = atomic_load_explicit(&n->spaces[space].clock_floor, memory_order_relaxed);
    for (uint32_t i = 0; i < n->config.workers; i++) {
        uint64_t told = atomic_load_explicit(&n->workers[i].own->spaces[space].clock_told,
                                             memory_order_relaxed);
        clock = told > clock ? told : clock;
    }
    return clock;
}

/* ---- A worker's poll ---- */

void own_adopt(struct worker *w)
{
    if (w->own != NULL) {
        own_epoch_adopt(w);
        own_tell_all(w);
    }
}

void own_poll(struct worker *w)
{
    if (w->own == NULL) {
        return;
    }
    look_freed(w);
    own_policy_poll(w);
    own_epoch_poll(w);
    if (w->index == 0) {
        own_walk_poll(w);
    }
    own_tell_all(w);
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t own_deadline(const struct worker *w)
{
    uint64_t due = UINT64_MAX;
    if (w->own != NULL) {
        due = sooner(own_policy_deadline(w), own_epoch_deadline(w));
        due = w->index == 0 ? sooner(due, own_walk_deadline(w)) : due;
    }
    return due;
}

/* ---- Checking ---- */

void own_check_worker(const struct worker *w)
{
    if (w->own == NULL) {
        return;
    }
    uint32_t n = 0;
    uint32_t pending[SPACES_MAX] = {0};
    list_each(link, &w->own->records)
    {
        const struct own_record *r = list_entry(link, struct own_record, all);
        HK_ASSERT(!own_idle(&r->busy) || !list_empty(&r->waits) || r->hold_until_us != 0);
        HK_ASSERT(r->queue_n == 0 || r->busy.state != OWN_VALID);
        HK_ASSERT(r->busy.due_us == 0 || r->timer.place != TIMER_IDLE);
        HK_ASSERT(own_worker(w, r->portable) == w->index);
        pending[r->space] += r->busy.ts != 0;
        n++;
    }
    HK_ASSERT(n == w->own->records_n && list_empty(&w->own->told));
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        HK_ASSERT(pending[i] == w->own->spaces[i].pending);
    }
}
