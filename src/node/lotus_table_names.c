/* Locks by name: buckets of locks that exist while somebody owns them or waits, and the requests
 * of holders. Every step is one turn of the lock machine under the latch of the name's bucket. */
#include <string.h>

#include "node/lotus_table_state.h"

/* ---- Locks ---- */

static uint32_t name_kind(const struct lotus_name *name)
{
    return name->key.n << 1 | (name->gap ? 1u : 0u);
}

struct named_lock *named_find(struct bucket *b, const struct lotus_name *name)
{
    uint32_t hash = (uint32_t)(name->hash >> 32), kind = name_kind(name);
    for (struct named_lock *l = &b->first; l != NULL; l = l->next) {
        if (l->hash == hash && l->kind == kind && !named_is_free(l) &&
            (name->key.n == 0 || memcmp(named_key(l), name->key.at, name->key.n) == 0)) {
            return l;
        }
    }
    return NULL;
}

static uint32_t list_mine(const struct lotus_table *t, uint32_t first, const struct lotus_holder *h)
{
    for (uint32_t i = first; i != 0; i = t->locks.requests[i].next) {
        const struct lock_request *r = &t->locks.requests[i];
        if (r->status == h->status && r->generation == h->generation) {
            return i;
        }
    }
    return 0;
}

uint32_t named_mine(const struct lotus_table *t, const struct named_lock *l,
                    const struct lotus_holder *h)
{
    if (l == NULL || h->locks == 0) {
        return 0;
    }
    uint32_t mine = list_mine(t, l->lock.owners, h);
    return mine != 0 ? mine : list_mine(t, l->lock.waiters, h);
}

static size_t named_bytes(uint32_t kind)
{
    return sizeof(struct named_lock) + (kind >> 1);
}

/* A lock of nobody yet. NULL: no memory. */
static struct named_lock *named_add(struct store_thread *thread, struct bucket *b,
                                    const struct lotus_name *name)
{
    struct named_lock *l = &b->first;
    uint32_t kind = name_kind(name);
    if (!named_is_free(l) || name->key.n > BUCKET_KEY_BYTES) {
        l = store_alloc(thread, named_bytes(kind), false);
        if (l == NULL) {
            return NULL;
        }
        l->lock = (struct lock){.owners = 0};
        l->next = b->first.next;
        b->first.next = l;
    }
    l->hash = (uint32_t)(name->hash >> 32);
    l->kind = kind;
    if (name->key.n > 0) {
        memcpy(named_key(l), name->key.at, name->key.n);
    }
    return l;
}

/* If nobody owns it or waits any more. */
static void named_drop(struct store_thread *thread, struct bucket *b, struct named_lock *l)
{
    if (l == &b->first) {
        return;
    }
    struct named_lock *before = &b->first;
    while (before->next != l) {
        before = before->next;
    }
    before->next = l->next;
    store_free(thread, l, named_bytes(l->kind));
}

/* ---- Requests ---- */

static void pool_take(struct lotus_table *t, struct holder_line *line)
{
    uint32_t most = t->line_keeps / 2u + 1u;
    spin_lock(&t->pool);
    while (line->free_n < most && (t->free != 0 || t->never_used <= t->lotus.locks_max)) {
        uint32_t number = t->free;
        if (number != 0) {
            t->free = t->held[number].next;
        } else {
            number = t->never_used++;
        }
        t->held[number].next = line->free;
        line->free = number;
        line->free_n++;
    }
    spin_unlock(&t->pool);
}

static void pool_give(struct lotus_table *t, struct holder_line *line)
{
    spin_lock(&t->pool);
    while (line->free_n > t->line_keeps / 2u) {
        uint32_t number = line->free;
        line->free = t->held[number].next;
        line->free_n--;
        t->held[number].next = t->free;
        t->free = number;
    }
    spin_unlock(&t->pool);
}

static enum table_word request_take(struct lotus_table *t, struct lotus_holder *h,
                                    uint32_t *number_out)
{
    struct holder_line *line = &t->lines[h->status];
    if (h->locks >= t->lotus.try_locks_max) {
        return TABLE_TOOBIG;
    }
    if (line->free == 0) {
        pool_take(t, line);
        if (line->free == 0) {
            return TABLE_BUSY;
        }
    }
    uint32_t number = line->free;
    struct held *held = &t->held[number];
    line->free = held->next;
    line->free_n--;
    *held = (struct held){.next = h->first};
    t->locks.requests[number] =
        (struct lock_request){.age = h->age, .generation = h->generation, .status = h->status};
    h->first = number;
    h->locks++;
    holder_count(t, h, COUNT_REQUESTS, 1);
    *number_out = number;
    return TABLE_DONE;
}

/* Its request is IDLE. What it kept for a write goes. */
static void request_give(struct lotus_table *t, struct store_thread *thread, struct lotus_holder *h,
                         uint32_t number)
{
    struct holder_line *line = &t->lines[h->status];
    struct held *held = &t->held[number];
    uint32_t *link = &h->first;
    while (*link != number) {
        link = &t->held[*link].next;
    }
    *link = held->next;
    h->locks--;
    h->waits = h->waits == number ? 0 : h->waits;
    h->gap = h->gap == number ? 0 : h->gap;
    held_drop(t, thread, held);
    held->next = line->free;
    line->free = number;
    if (++line->free_n > t->line_keeps) {
        pool_give(t, line);
    }
    holder_count(t, h, COUNT_REQUESTS, UINT64_MAX);
}

/* ---- Who is told ---- */

void wakes_add(struct lotus_table *t, const struct lotus_holder *h, struct wakes *wakes,
               lock_chain chain)
{
    for (uint32_t i = chain; i != 0; i = t->locks.requests[i].chain) {
        const struct lock_request *r = &t->locks.requests[i];
        if (r->happened != LOCK_GRANTED) {
            holder_count(t, h, r->happened == LOCK_DIED ? COUNT_DIED : COUNT_WOUNDED, 1);
        }
        if (wakes->n == WAKES_MAX) {
            t->woken(t->context, r->status, r->generation);
            continue;
        }
        wakes->statuses[wakes->n] = r->status;
        wakes->generations[wakes->n++] = r->generation;
    }
}

void wakes_tell(const struct lotus_table *t, struct wakes *wakes)
{
    for (uint32_t i = 0; i < wakes->n; i++) {
        t->woken(t->context, wakes->statuses[i], wakes->generations[i]);
    }
    wakes->n = 0;
}

/* ---- Steps ---- */

void naming_begin(struct lotus_table *t, const struct lotus_holder *h, struct naming *s,
                  const struct lotus_name *name)
{
    s->name = *name;
    s->bucket = lotus_bucket(t, name);
    s->wakes.n = 0;
    spin_lock(&s->bucket->latch);
    s->lock = named_find(s->bucket, name);
    s->mine = named_mine(t, s->lock, h);
}

void naming_end(const struct lotus_table *t, struct naming *s)
{
    spin_unlock(&s->bucket->latch);
    wakes_tell(t, &s->wakes);
}

static void release(struct lotus_table *t, struct store_thread *thread,
                    const struct lotus_holder *h, struct naming *s, uint32_t number)
{
    struct named_lock *l = t->held[number].lock;
    lock_chain chain;
    if (t->locks.requests[number].state == LOCK_IDLE) {
        return;
    }
    lock_release(&t->locks, &l->lock, number, &chain);
    wakes_add(t, h, &s->wakes, chain);
    if (named_is_free(l)) {
        holder_count(t, h, COUNT_LOCKS, UINT64_MAX);
        named_drop(thread, s->bucket, l);
    }
}

void naming_release(struct lotus_table *t, struct store_thread *thread, struct lotus_holder *h,
                    struct naming *s)
{
    release(t, thread, h, s, s->mine);
    request_give(t, thread, h, s->mine);
    s->mine = 0;
    s->lock = NULL;
}

/* A lock and a request of its name. */
static enum table_word naming_make(struct lotus_table *t, struct store_thread *thread,
                                   struct lotus_holder *h, struct naming *s)
{
    if (s->mine == 0) {
        enum table_word word = request_take(t, h, &s->mine);
        if (word != TABLE_DONE) {
            return word;
        }
    }
    if (s->lock == NULL) {
        s->lock = named_add(thread, s->bucket, &s->name);
        if (s->lock == NULL) {
            request_give(t, thread, h, s->mine);
            s->mine = 0;
            return TABLE_NOMEM;
        }
        holder_count(t, h, COUNT_LOCKS, 1);
    }
    t->held[s->mine].lock = s->lock;
    t->held[s->mine].bucket = (uint32_t)(s->bucket - t->buckets);
    return TABLE_DONE;
}

enum table_word naming_ask(struct lotus_table *t, struct store_thread *thread,
                           struct lotus_holder *h, struct naming *s, enum lock_mode mode)
{
    lock_chain chain;
    enum table_word word = naming_make(t, thread, h, s);
    if (word != TABLE_DONE) {
        return word;
    }
    bool owns = t->locks.requests[s->mine].state == LOCK_OWNS;
    enum lock_answer answer = lock_ask(&t->locks, &s->lock->lock, s->mine, mode, &chain);
    wakes_add(t, h, &s->wakes, chain);
    if (answer == LOCK_GRANTED) {
        holder_count(t, h, COUNT_GRANTED, 1);
        return TABLE_DONE;
    }
    if (answer == LOCK_DIED) {
        holder_count(t, h, COUNT_DIED, 1);
        return TABLE_REFUSED;
    }
    HK_ASSERT(answer == LOCK_QUEUED);
    holder_count(t, h, COUNT_WAITED, 1);
    t->held[s->mine].flags |= owns ? HELD_UPGRADE : 0;
    h->waits = s->mine;
    return TABLE_WAITS;
}

enum table_word lotus_lock(struct lotus_table *t, struct store_thread *thread,
                           struct lotus_holder *h, bool gap, struct bytes key, enum lock_mode mode,
                           uint32_t *number_out)
{
    struct lotus_name name = lotus_name(t, gap, key);
    struct naming s;
    naming_begin(t, h, &s, &name);
    enum table_word word = naming_ask(t, thread, h, &s, mode);
    naming_end(t, &s);
    if (number_out != NULL) {
        *number_out = s.mine;
    }
    return word;
}

enum table_word lotus_settle(struct lotus_table *t, struct lotus_holder *h)
{
    if (try_state(&t->locks.statuses[h->status], h->generation) != TRY_RUNNING) {
        return TABLE_REFUSED;
    }
    if (h->waits == 0) {
        return TABLE_DONE;
    }
    struct held *held = &t->held[h->waits];
    struct bucket *b = &t->buckets[held->bucket];
    spin_lock(&b->latch);
    enum lock_state state = t->locks.requests[h->waits].state;
    bool exclusive = t->locks.requests[h->waits].mode == LOCK_X;
    spin_unlock(&b->latch);
    if (state == LOCK_WAITS || state == LOCK_UPGRADES) {
        return TABLE_WAITS;
    }
    if (state == LOCK_IDLE || ((held->flags & HELD_UPGRADE) != 0 && !exclusive)) {
        return TABLE_REFUSED;
    }
    held->flags &= (uint8_t)~HELD_UPGRADE;
    h->waits = 0;
    holder_count(t, h, COUNT_GRANTED, 1);
    return TABLE_DONE;
}

void lotus_let_go(struct lotus_table *t, struct store_thread *thread, struct lotus_holder *h,
                  uint32_t number)
{
    struct naming s = {.bucket = &t->buckets[t->held[number].bucket], .wakes.n = 0};
    spin_lock(&s.bucket->latch);
    release(t, thread, h, &s, number);
    naming_end(t, &s);
    request_give(t, thread, h, number);
}

void lotus_let_all_go(struct lotus_table *t, struct store_thread *thread, struct lotus_holder *h)
{
    while (h->first != 0) {
        lotus_let_go(t, thread, h, h->first);
    }
}
