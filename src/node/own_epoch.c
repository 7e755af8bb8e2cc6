/* A new epoch in the spaces whose objects have owners (docs/protocols/zeus.md, R8, R10, R11): all
 * workers say that nothing of the dead is left (RECOVERED), then that no arbitration from before is
 * (SETTLED); worker 0 gathers what they and the other members say. Meanwhile entries go to the
 * directory nodes that are new: shadows, and where the configured set changes, others. */
#include "node/own_internal.h"

#include "base/assert.h"

#define PUSH_BUCKETS 512u /* walked in one poll: worker 0 also sends heartbeats */

static uint8_t lowest(uint32_t spaces)
{
    return (uint8_t)__builtin_ctz(spaces);
}

static void raise_clock(struct worker *w, uint8_t space, uint64_t clock)
{
    _Atomic uint64_t *floor = &w->node->spaces[space].clock_floor;
    uint64_t known = atomic_load_explicit(floor, memory_order_relaxed);
    while (known < clock && !atomic_compare_exchange_weak_explicit(
                                floor, &known, clock, memory_order_relaxed, memory_order_relaxed)) {
    }
}

static void step_all(struct worker *w, uint8_t space, enum own_ev kind)
{
    list_each_safe(link, following, &w->own->records)
    {
        struct own_record *r = list_entry(link, struct own_record, all);
        if (r->space == space) {
            own_step_record(w, r, kind);
        }
    }
}

static void poke_all(struct worker *w)
{
    for (uint32_t i = 0; i < w->node->config.workers; i++) {
        worker_poke(&w->node->workers[i]);
    }
}

void own_epoch_adopt(struct worker *w)
{
    struct own *own = w->own;
    bool moved = own->base.epoch != 0 && (own->base.configured != w->view.configured ||
                                          own->base.configured_old != w->view.configured_old);
    if (!moved) {
        own->base = w->view;
    }
    for (uint32_t rest = w->node->owned; rest != 0; rest &= rest - 1) {
        uint8_t i = lowest(rest);
        struct own_space *mine = &own->spaces[i];
        mine->recovered = false;
        mine->settled = false;
        /* What has been sent since the sets changed counts. */
        bool purged = moved && mine->epoch.moved && mine->epoch.purged;
        mine->epoch = (struct own_epoch){.moved = moved, .purged = purged};
        step_all(w, i, OWN_EV_VIEW);
    }
    if (w->index == 0) {
        own_leave_adopt(w);
        own_walk_restart(w);
    }
}

void own_recovered(struct worker *w, uint8_t space)
{
    /* release: pairs with the acquire in all_said; what was stored of the dead is gone. */
    atomic_store_explicit(&w->own->spaces[space].recovered_epoch, w->view.epoch,
                          memory_order_release);
    if (w->index != 0) {
        worker_poke(&w->node->workers[0]);
    }
}

/* ---- Every worker ---- */

static void go_on(struct worker *w, uint8_t i)
{
    struct space *space = &w->node->spaces[i];
    struct own_space *mine = &w->own->spaces[i];
    uint32_t epoch = w->view.epoch;
    if (!mine->recovered &&
        atomic_load_explicit(&space->recovered_epoch, memory_order_acquire) == epoch) {
        mine->recovered = true;
        step_all(w, i, OWN_EV_GO);
    }
    if (mine->recovered && mine->pending == 0 &&
        atomic_load_explicit(&mine->quiet_epoch, memory_order_relaxed) != epoch) {
        /* release: pairs with the acquire in all_said. */
        atomic_store_explicit(&mine->quiet_epoch, epoch, memory_order_release);
        worker_poke(&w->node->workers[0]);
    }
    if (mine->recovered && !mine->settled &&
        atomic_load_explicit(&space->settled_epoch, memory_order_acquire) == epoch) {
        /* What worker 0 has passed on before it knew that all have settled comes first. */
        (void)aside_take(w, UINT32_MAX);
        if (w->view.epoch == epoch) {
            mine->settled = true;
            step_all(w, i, OWN_EV_GO);
        }
    }
}

/* ---- Entries that speak for nothing ---- */

struct purge {
    struct worker *w;
    uint8_t space;
    bool whole; /* there was room for all that was found */
};

/* This node was no directory node of the object before the configured sets changed, and is none of
 * its replicas: nobody has told it what became of the object. */
static bool is_left_over(const struct worker *w, struct bytes key, const struct own_entry *entry)
{
    uint8_t self = w->node->config.self;
    struct own_vector vector = own_masked(&entry->vector, &w->view);
    return vector.owner != self && !nodeset_has(vector.readers, self) &&
           !nodeset_has(own_directory(&w->own->base, own_portable(w, key)), self);
}

static void purge_visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                        struct bytes value)
{
    struct purge *p = context;
    struct own_entry entry = own_entry_of(meta, value);
    if (is_left_over(p->w, key, &entry) && !own_walk_note(p->w, key, hash)) {
        p->whole = false;
    }
}

static void forget(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    struct store_ref ref;
    uint64_t buffer[2];
    store_lock(w->node->spaces[space].directory, w->directories[space], key, hash, &ref);
    if (ref.object != NULL) {
        struct key_meta meta = store_meta(&ref);
        struct own_entry entry = own_entry_of(&meta, store_value_of(&ref, buffer, sizeof buffer));
        if (is_left_over(w, key, &entry)) {
            store_remove(&ref);
        }
    }
    store_unlock(&ref);
}

/* Before this node says RECOVERED, and so before anybody sends it entries. True: it is done. */
static bool purge(struct worker *w, uint8_t i)
{
    struct own_epoch *e = &w->own->spaces[i].epoch;
    struct own_walk *walk = &w->own->walk;
    for (uint32_t buckets = PUSH_BUCKETS; e->moved && !e->purged && buckets > 0; buckets--) {
        struct purge p = {.w = w, .space = i, .whole = true};
        walk->looks_n = 0;
        walk->bytes_n = 0;
        uint64_t next = store_walk(w->node->spaces[i].directory, w->directories[i], e->purge_cursor,
                                   purge_visit, &p);
        for (uint32_t at = 0; at < walk->looks_n; at++) {
            const struct own_look *look = &walk->looks[at];
            forget(w, i, bytes_of(walk->bytes + look->at, look->n), look->hash);
        }
        e->purge_cursor = p.whole ? next : e->purge_cursor;
        e->purged = p.whole && next == 0;
    }
    return e->purged || !e->moved;
}

/* ---- Pushing entries ---- */

struct push {
    struct worker *w;
    uint8_t space;
};

static void push_visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                       struct bytes value)
{
    (void)hash;
    struct push *p = context;
    struct worker *w = p->w;
    struct own_entry entry = own_entry_of(meta, value);
    struct own_body body = {.vector = own_masked(&entry.vector, &w->view)};
    nodeset to = own_pushes(&w->view, &w->own->base, own_portable(w, key), w->node->config.self,
                            &body.vector);
    if (to != 0) {
        own_send(w, p->space, to, OWN_MSG_ENTRY, entry.ts, key, &body, bytes_of(NULL, 0));
        w->stats.own_pushed += nodeset_count(to);
    }
}

/* There is a directory node that may not have its entries. */
static bool has_newcomers(const struct worker *w, const struct own_epoch *e)
{
    return w->view.live != w->view.operational || e->moved;
}

/* Begins, goes on, ends. */
static void push(struct worker *w, uint8_t i)
{
    struct own_space *mine = &w->own->spaces[i];
    struct own_epoch *e = &mine->epoch;
    struct push p = {.w = w, .space = i};
    uint32_t buckets = PUSH_BUCKETS;
    if (e->said_pushed || !has_newcomers(w, e)) {
        return;
    }
    while (buckets-- > 0 && w->moved < MOVED_MAX && !lanes_clogged(w)) {
        e->push_cursor = store_walk(w->node->spaces[i].directory, w->directories[i], e->push_cursor,
                                    push_visit, &p);
        if (e->push_cursor == 0) {
            e->said_pushed = true;
            own_say(w, i, OWN_MSG_PUSHED);
            return;
        }
    }
}

static bool pushing(const struct worker *w, uint8_t i)
{
    const struct own_epoch *e = &w->own->spaces[i].epoch;
    return e->all_quiet && !e->said_pushed && has_newcomers(w, e);
}

bool own_joined(const struct worker *w)
{
    for (uint32_t rest = w->node->owned; rest != 0; rest &= rest - 1) {
        const struct own_epoch *e = &w->own->spaces[lowest(rest)].epoch;
        if (!nodeset_within(w->view.live, e->pushed)) {
            return false;
        }
    }
    return true;
}

/* ---- What all workers, then all members, have said; worker 0 ---- */

static bool all_said(const struct worker *w, uint8_t space, bool recovered)
{
    const struct node *n = w->node;
    for (uint32_t i = 0; i < n->config.workers; i++) {
        const struct own_space *theirs = &n->workers[i].own->spaces[space];
        const _Atomic uint32_t *said = recovered ? &theirs->recovered_epoch : &theirs->quiet_epoch;
        /* acquire: pairs with own_recovered, go_on. */
        if (atomic_load_explicit(said, memory_order_acquire) != w->view.epoch) {
            return false;
        }
    }
    return true;
}

static void publish(struct worker *w, _Atomic uint32_t *epoch)
{
    if (atomic_load_explicit(epoch, memory_order_relaxed) != w->view.epoch) {
        /* release: pairs with the acquire in go_on. */
        atomic_store_explicit(epoch, w->view.epoch, memory_order_release);
        poke_all(w);
    }
}

static void lead(struct worker *w, uint8_t i)
{
    struct space *space = &w->node->spaces[i];
    struct own_epoch *e = &w->own->spaces[i].epoch;
    if (!e->said_recovered && all_said(w, i, true) && purge(w, i)) {
        e->said_recovered = true;
        own_say(w, i, OWN_MSG_RECOVERED);
    }
    if (!e->all_quiet && e->said_recovered && all_said(w, i, false)) {
        e->all_quiet = true;
    }
    if (e->all_quiet) {
        push(w, i);
    }
    if (e->all_quiet && !e->said_settled && (!e->moved || e->said_pushed)) {
        e->said_settled = true;
        own_say(w, i, OWN_MSG_SETTLED);
    }
    if (nodeset_within(w->view.live, e->recovered)) {
        publish(w, &space->recovered_epoch);
    }
    /* Entries that came before are with their workers. */
    if (nodeset_within(w->view.live, e->settled) && w->aside_pending == 0) {
        publish(w, &space->settled_epoch);
    }
}

void own_epoch_message(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct own_epoch *e = &w->own->spaces[msg->space].epoch;
    if (w->index != 0 || msg->epoch != w->view.epoch || msg->ts != w->view.epoch) {
        w->stats.engine_drops[ENGINE_DROP_EPOCH_OLD]++;
        return;
    }
    raise_clock(w, msg->space, msg->arg);
    if (msg->kind == OWN_MSG_RECOVERED) {
        e->recovered |= nodeset_of(from);
    } else if (msg->kind == OWN_MSG_SETTLED) {
        e->settled |= nodeset_of(from);
    } else {
        e->pushed |= nodeset_of(from);
    }
}

/* Whatever had to be sent to new directory nodes was sent before SETTLED. */
static void keep_base(struct worker *w)
{
    for (uint32_t rest = w->node->owned; rest != 0; rest &= rest - 1) {
        if (atomic_load_explicit(&w->node->spaces[lowest(rest)].settled_epoch,
                                 memory_order_relaxed) != w->view.epoch) {
            return;
        }
    }
    w->own->base = w->view;
}

void own_epoch_poll(struct worker *w)
{
    if (w->view.epoch == 0 || !nodeset_has(w->view.live, w->node->config.self)) {
        return;
    }
    for (uint32_t rest = w->node->owned; rest != 0; rest &= rest - 1) {
        if (w->index == 0) {
            lead(w, lowest(rest));
        }
        go_on(w, lowest(rest));
    }
    if (w->own->base.epoch != w->view.epoch) {
        keep_base(w);
    }
}

static bool is_published(const struct worker *w, const _Atomic uint32_t *epoch)
{
    return atomic_load_explicit(epoch, memory_order_acquire) == w->view.epoch;
}

/* What lead would say now. */
static bool would_say(const struct worker *w, uint8_t i)
{
    const struct own_epoch *e = &w->own->spaces[i].epoch;
    return (!e->said_recovered && all_said(w, i, true)) || (!e->all_quiet && all_said(w, i, false));
}

bool own_epoch_wanted(const struct worker *w)
{
    for (uint32_t rest = w->own != NULL && w->view.epoch != 0 ? w->node->owned : 0; rest != 0;
         rest &= rest - 1) {
        uint8_t i = lowest(rest);
        const struct space *space = &w->node->spaces[i];
        const struct own_space *mine = &w->own->spaces[i];
        if ((!mine->recovered && is_published(w, &space->recovered_epoch)) ||
            (!mine->settled && is_published(w, &space->settled_epoch)) ||
            (w->index == 0 && nodeset_has(w->view.live, w->node->config.self) && would_say(w, i))) {
            return true;
        }
    }
    return false;
}

uint64_t own_epoch_deadline(const struct worker *w)
{
    if (own_epoch_wanted(w)) {
        return w->now_us;
    }
    for (uint32_t rest = w->index == 0 && w->view.epoch != 0 ? w->node->owned : 0; rest != 0;
         rest &= rest - 1) {
        uint8_t i = lowest(rest);
        const struct own_epoch *e = &w->own->spaces[i].epoch;
        bool publishes = nodeset_within(w->view.live, e->settled) &&
                         atomic_load_explicit(&w->node->spaces[i].settled_epoch,
                                              memory_order_relaxed) != w->view.epoch;
        if (publishes || (pushing(w, i) && !lanes_clogged(w))) {
            return w->now_us;
        }
    }
    return UINT64_MAX;
}
