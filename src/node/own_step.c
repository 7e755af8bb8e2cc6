/* Steps of ownership: the entry's bucket is locked, then the data's; the machine judges; what it
 * says is done while both are locked, so that a value that travels is the one of its version. */
#include "node/own_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define VALUE_FIRST 4096u

/* An object under its two locks. */
struct locked {
    struct store_ref entry_ref;
    struct store_ref data_ref;
    struct own_entry entry;
    struct key_meta meta; /* of the data, if there is any */
    bool woken;           /* somebody waits for this object, and it has changed */
};

/* ---- Entries and data in their stores ---- */

#define VECTOR_BYTES 16u

struct own_entry own_entry_of(const struct key_meta *meta, struct bytes value)
{
    struct own_entry entry = {.ts = meta->ts};
    HK_ASSERT(value.n == VECTOR_BYTES);
    entry.vector.readers = get_u64(value.at);
    entry.vector.epoch = get_u32(value.at + 8);
    entry.vector.owner = value.at[12];
    entry.vector.degree = value.at[13];
    return entry;
}

static void publish_entry(struct locked *o, const struct own_entry *before)
{
    if (memcmp(before, &o->entry, sizeof *before) == 0) {
        return;
    }
    if (o->entry.ts == 0) {
        if (o->entry_ref.object != NULL) {
            store_remove(&o->entry_ref);
        }
        return;
    }
    uint8_t value[VECTOR_BYTES] = {0};
    put_u64(value, o->entry.vector.readers);
    put_u32(value + 8, o->entry.vector.epoch);
    value[12] = o->entry.vector.owner;
    value[13] = o->entry.vector.degree;
    /* own_walk.c: who had it before; a tombstone is not idle. */
    struct key_meta meta = {.ts = o->entry.ts};
    if (o->entry_ref.object != NULL && before->vector.owner == o->entry.vector.owner) {
        meta.state = store_meta(&o->entry_ref).state;
    } else if (before->vector.owner != NODE_NONE) {
        meta.state = (uint8_t)(before->vector.owner + 1);
    }
    int err = store_set(&o->entry_ref, &meta, bytes_of(value, VECTOR_BYTES), true);
    /* Nobody sends this again, and only the operating system can refuse it: there is no honest way
     * on. */
    HK_ASSERT(err == HK_OK);
}

static void lock(struct worker *w, const struct own_step *s, struct locked *o)
{
    const struct space *space = &w->node->spaces[s->space];
    store_lock(space->directory, w->directories[s->space], s->key, s->hash, &o->entry_ref);
    store_lock(space->store, w->threads[s->space], s->key, s->hash, &o->data_ref);
    o->entry = (struct own_entry){.ts = 0};
    if (o->entry_ref.object != NULL) {
        struct key_meta meta = store_meta(&o->entry_ref);
        o->entry = own_entry_of(&meta, store_value_of(&o->entry_ref, w->scratch, STORE_INLINE_MAX));
    }
    if (o->data_ref.object != NULL) {
        o->meta = store_meta(&o->data_ref);
    }
    o->woken = false;
}

static void unlock(struct worker *w, const struct own_step *s, struct locked *o)
{
    store_unlock(&o->data_ref);
    store_unlock(&o->entry_ref);
    if (o->woken) {
        wake_everywhere(w, s->space, s->hash);
    }
}

static void set_meta(struct locked *o, uint8_t set, uint8_t clear)
{
    struct key_meta meta = o->meta;
    HK_ASSERT(o->data_ref.object != NULL);
    meta.flags = (uint8_t)((meta.flags | set) & ~clear & ~KEY_READABLE);
    if (meta.state == ZEUS_VALID && (meta.flags & ZEUS_SHUT) == 0) {
        meta.flags |= KEY_READABLE;
    }
    if (meta.flags == o->meta.flags) {
        return;
    }
    if ((meta.flags & KEY_WAITERS) != 0) {
        meta.flags &= (uint8_t)~KEY_WAITERS;
        o->woken = true;
    }
    o->meta = meta;
    store_set_meta(&o->data_ref, &meta);
}

static struct own_data data_of(const struct worker *w, const struct own_step *s,
                               const struct locked *o, uint8_t type)
{
    struct own_data data = {.have = o->data_ref.object != NULL};
    if (data.have) {
        data.version = o->meta.ts;
        data.tombstone = (o->meta.flags & KEY_TOMBSTONE) != 0;
        data.busy = o->meta.state == ZEUS_WRITE || o->meta.owner != 0 ||
                    own_policy_holds(w, s->record, type);
    }
    return data;
}

/* ---- Effects on the data ---- */

static void keep(struct worker *w, struct own_record *r, const struct msg *msg, uint64_t ts)
{
    struct bytes value = own_msg_value(msg);
    struct own_body body;
    HK_ASSERT(r != NULL);
    own_body_decode(msg, &body);
    own_release_kept(w, r);
    r->kept = NULL;
    if (value.n > 0) {
        r->kept = store_alloc(w->threads[r->space], value.n, true);
        HK_ASSERT(r->kept != NULL); /* as in publish_entry */
        memcpy(r->kept, value.at, value.n);
    }
    r->kept_bytes = value.n;
    r->kept_n = value.n;
    r->kept_version = ts;
    r->kept_flags = body.vflags;
    r->has_kept = true;
}

static void install(const struct own_step *s, struct locked *o, uint64_t ts)
{
    const struct own_record *r = s->record;
    struct bytes value = bytes_of(NULL, 0);
    uint8_t vflags = KEY_TOMBSTONE;
    if (o->data_ref.object != NULL && o->meta.ts >= ts) {
        return;
    }
    if (r != NULL && r->has_kept && r->kept_version == ts) {
        value = bytes_of(r->kept, r->kept_n);
        vflags = r->kept_flags;
    }
    struct key_meta meta = {.ts = ts, .state = ZEUS_VALID};
    if (o->data_ref.object != NULL) {
        meta = o->meta;
        meta.ts = ts;
        meta.state = ZEUS_VALID;
        meta.aux = 0;
        o->woken = (meta.flags & KEY_WAITERS) != 0;
    }
    meta.flags &= ZEUS_OWNED | ZEUS_WANTED | ZEUS_SHUT;
    meta.flags |= vflags | ((meta.flags & ZEUS_SHUT) == 0 ? KEY_READABLE : 0);
    int err = store_set(&o->data_ref, &meta, value, true);
    HK_ASSERT(err == HK_OK); /* as in publish_entry */
    o->meta = meta;
}

static void drop(struct locked *o)
{
    if (o->data_ref.object != NULL) {
        o->woken = (o->meta.flags & KEY_WAITERS) != 0;
        store_remove(&o->data_ref);
    }
}

static void grant(struct locked *o, enum own_type type)
{
    if (type == OWN_OWNER) {
        set_meta(o, ZEUS_OWNED, ZEUS_WANTED | ZEUS_SHUT);
    } else {
        set_meta(o, 0, ZEUS_OWNED | ZEUS_WANTED);
    }
}

/* Since when somebody has waited for the object; nobody has: now. */
static uint64_t waits_since(const struct worker *w, const struct own_record *r)
{
    uint64_t since_us = w->now_us;
    list_each(link, &r->waits)
    {
        const struct own_wait *wait = list_entry(link, struct own_wait, link);
        since_us = wait->waiter.since_us < since_us ? wait->waiter.since_us : since_us;
    }
    return since_us;
}

/* Whether the object has come here, or left. */
static void note_move(struct worker *w, const struct own_step *s, const struct locked *o,
                      const struct own_entry *before)
{
    const struct own_entry *after = &o->entry;
    uint8_t self = w->node->config.self;
    bool was = before->ts != 0 && before->vector.owner == self;
    bool is = after->ts != 0 && after->vector.owner == self;
    if (was && !is) {
        own_policy_left(w, s->hash);
    } else if (is && !was && s->record != NULL) {
        own_policy_gained(w, s->record, o->data_ref.object != NULL ? o->meta.ts : 0,
                          waits_since(w, s->record));
    }
}

/* Whether an object of this node has a new reader, for which a transaction may wait (R15). */
static bool has_gained_readers(const struct worker *w, const struct own_entry *before,
                               const struct own_entry *after)
{
    return after->vector.owner == w->node->config.self &&
           (after->vector.readers & ~before->vector.readers) != 0;
}

/* ---- Messages ---- */

static uint8_t *value_room(struct worker *w, uint64_t bytes)
{
    struct own *own = w->own;
    if (bytes > own->value_bytes) {
        uint64_t most = bytes > VALUE_FIRST ? bytes : VALUE_FIRST;
        free(own->value);
        own->value = malloc(most);
        HK_ASSERT(own->value != NULL); /* bounded, and there is no honest way on */
        own->value_bytes = most;
    }
    return own->value;
}

static void count(struct worker *w, nodeset to, const struct msg *m)
{
    uint32_t kind = m->kind < OWNED_KINDS ? m->kind : OWNED_KINDS - 1;
    uint32_t n = nodeset_count(to & w->view.live & ~nodeset_of(w->node->config.self));
    w->stats.owned_messages[kind] += n;
    w->stats.owned_bytes[kind] += (uint64_t)n * msg_size(m);
}

void own_send(struct worker *w, uint8_t space, nodeset to, uint8_t kind, uint64_t ts,
              struct bytes key, const struct own_body *body, struct bytes value)
{
    uint8_t *at = value_room(w, OWN_BODY_BYTES + (uint64_t)value.n);
    own_body_encode(body, at);
    if (value.n > 0) {
        memcpy(at + OWN_BODY_BYTES, value.at, value.n);
    }
    struct msg m = {
        .space = space,
        .kind = kind,
        .epoch = w->view.epoch,
        .ts = ts,
        .arg = w->own->spaces[space].clock,
        .key = key,
        .value = bytes_of(at, OWN_BODY_BYTES + value.n),
    };
    count(w, to, &m);
    output_values(w, to, (uint8_t)w->index, &m, NULL);
    if (w->own->value_bytes > FRAME_GIVEN) {
        free(w->own->value);
        w->own->value = NULL;
        w->own->value_bytes = 0;
    }
}

void own_say(struct worker *w, uint8_t space, enum own_kind kind)
{
    struct msg m = {
        .space = space,
        .kind = (uint8_t)kind,
        .epoch = w->view.epoch,
        .ts = w->view.epoch,
        .arg = own_clock(w, space),
    };
    count(w, w->view.live, &m);
    output_values(w, w->view.live, 0, &m, NULL);
}

static void send_effect(struct worker *w, const struct own_step *s, struct locked *o,
                        const struct own_effect *e)
{
    const struct own_record *r = s->record;
    struct own_body body = e->body;
    struct bytes value = bytes_of(NULL, 0);
    if (body.value && r != NULL && r->has_kept && r->kept_version == body.version) {
        value = bytes_of(r->kept, r->kept_n);
        body.vflags = r->kept_flags;
    } else if (body.value) {
        value = store_value_of(&o->data_ref, w->scratch, STORE_INLINE_MAX);
        body.vflags = (uint8_t)(o->meta.flags & KEY_VALUE_FLAGS);
    }
    own_send(w, s->space, e->to, e->code, e->ts, s->key, &body, value);
}

/* ---- The step ---- */

/* Until the epoch has settled, whom a change of the configured sets made a directory node may not
 * have been sent all entries: its word that it knows nothing of an object counts for nothing. */
static nodeset drivers(const struct worker *w, uint64_t portable)
{
    const struct view *base = &w->own->base;
    nodeset set = own_drivers(&w->view, portable);
    bool complete = base->epoch == 0 || base->epoch == w->view.epoch;
    return complete ? set : set & own_directory(base, portable);
}

void own_step_init(struct worker *w, struct own_step *s, uint8_t space, enum own_ev kind,
                   struct bytes key, uint64_t hash)
{
    const struct node *n = w->node;
    struct own_space *mine = &w->own->spaces[space];
    const struct zeus_config *config = n->spaces[space].engine;
    uint64_t floor = atomic_load_explicit(&n->spaces[space].clock_floor, memory_order_relaxed);
    uint64_t portable = own_portable(w, key);
    mine->clock = floor > mine->clock ? floor : mine->clock;
    s->key = key;
    s->hash = hash;
    s->space = space;
    s->record = NULL;
    s->event = (struct own_event){
        .kind = kind,
        .from = NODE_NONE,
        .self = n->config.self,
        .recovered = mine->recovered,
        .settled = mine->settled,
        .now_us = w->now_us,
        .random = random_next(&w->random),
        .view = &w->view,
        .directory = own_directory(&w->view, portable),
        .drivers = drivers(w, portable),
        .contended = own_policy_contended(w, space, hash),
        .clock = &mine->clock,
        .forgot = &mine->forgot,
        .seq = &mine->seq,
        .config = &config->own,
    };
    s->event.chief = own_chief(s->event.drivers, portable);
}

/* Of which request an owed ACK, or the message's, is. */
static uint8_t type_asked(const struct own_step *s)
{
    struct own_body body;
    if (s->event.msg == NULL) {
        return s->record != NULL ? s->record->busy.request.type : OWN_NONE;
    }
    own_body_decode(s->event.msg, &body);
    return body.request.type;
}

/* A new owner that was asked for the object before its transactions came to run would have it for
 * nothing: as long as its quantum lasts they may begin (the ACK waits for that, and for them). */
static void revoke(struct worker *w, const struct own_step *s, struct locked *o)
{
    bool asked = s->event.kind == OWN_EV_MSG;
    if (asked && own_policy_holds(w, s->record, type_asked(s))) {
        s->record->revoke = true;
        if (s->record->contested && o->meta.ts != s->record->gained_ts) {
            own_policy_used(w, s->record);
        }
    } else if (o->data_ref.object != NULL) {
        set_meta(o, 0, ZEUS_OWNED);
    }
}

static void forget_revoke(struct own_record *r)
{
    if (r != NULL) {
        r->revoke = false;
    }
}

/* The quantum is over, or what is pending is another matter from now on. */
static void revoke_late(struct worker *w, const struct own_step *s, struct locked *o)
{
    struct own_record *r = s->record;
    if (r == NULL || !r->revoke ||
        (s->event.kind != OWN_EV_VIEW && own_policy_holds(w, r, OWN_OWNER))) {
        return;
    }
    r->revoke = false;
    if (o->data_ref.object != NULL) {
        set_meta(o, 0, ZEUS_OWNED);
    }
}

static void carry_out(struct worker *w, const struct own_step *s, struct locked *o,
                      const struct own_effect *e)
{
    switch ((enum own_fx)e->kind) {
    case OWN_FX_SEND:
        send_effect(w, s, o, e);
        break;
    case OWN_FX_REVOKE:
        revoke(w, s, o);
        break;
    case OWN_FX_GRANT:
        grant(o, (enum own_type)e->code);
        forget_revoke(s->record);
        break;
    case OWN_FX_SHUT:
    case OWN_FX_OPEN:
        if (o->data_ref.object != NULL) {
            bool shut = e->kind == OWN_FX_SHUT;
            set_meta(o, shut ? ZEUS_SHUT : 0, shut ? 0 : ZEUS_SHUT);
        }
        break;
    case OWN_FX_KEEP:
        keep(w, s->record, s->event.msg, e->ts);
        break;
    case OWN_FX_INSTALL:
        install(s, o, e->ts);
        break;
    case OWN_FX_DROP:
        drop(o);
        forget_revoke(s->record);
        break;
    case OWN_FX_BEHIND:
        if (s->event.from < NODES_MAX) {
            atomic_fetch_or_explicit(&w->node->hints, nodeset_of(s->event.from),
                                     memory_order_relaxed);
        }
        break;
    case OWN_FX_COUNT:
        w->stats.own_counts[e->code]++;
        break;
    case OWN_FX_DONE:
        break; /* when the locks are released */
    }
}

/* The type of the request whose end the step may say. */
static enum own_type own_kind_ending(const struct own_step *s)
{
    if (s->event.kind == OWN_EV_WANT) {
        return (enum own_type)s->event.want.type;
    }
    return s->record != NULL ? (enum own_type)s->record->busy.mine.type : OWN_NONE;
}

/* For how long somebody has waited for what the record's own request is for. */
static uint16_t waited(const struct worker *w, const struct own_record *r)
{
    uint64_t since_us = waits_since(w, r);
    bool older = r->busy.mine.type != OWN_NONE && r->began_us < since_us;
    return own_waited(w, older ? r->began_us : since_us);
}

/* Somebody wants to own what may be here for a quantum. */
static void note_asked(struct worker *w, const struct own_step *s)
{
    const struct msg *msg = s->event.msg;
    struct own_body body;
    if (s->record == NULL || s->record->hold_until_us == 0 || msg == NULL ||
        (msg->kind != OWN_MSG_INV && msg->kind != OWN_MSG_REQ)) {
        return;
    }
    own_body_decode(msg, &body);
    if (body.request.type == OWN_OWNER) {
        own_policy_asked(w, s->record, own_since(w, &body.request));
    }
}

/* What is due when both locks are released. */
static void afterwards(struct worker *w, struct own_step *s, const struct own_effects *fx,
                       enum own_type ending)
{
    struct own_record *r = s->record;
    s->done = false;
    for (uint32_t i = 0; i < fx->n; i++) {
        if (fx->e[i].kind == OWN_FX_DONE && r != NULL) {
            own_done(w, r, ending, fx->e[i].code);
            s->done = true;
        }
    }
    if (r == NULL) {
        return;
    }
    if (r->busy.due_us == 0) {
        wheel_disarm(&w->wheel, &r->timer);
    } else if (r->timer.place == TIMER_IDLE || r->timer.due_us != r->busy.due_us) {
        wheel_arm(&w->wheel, &r->timer, r->busy.due_us);
    }
    if (r->busy.mine.type == OWN_NONE && r->busy.ts == 0) {
        own_release_kept(w, r);
    }
}

void own_step_run(struct worker *w, struct own_step *s)
{
    struct own_record *r = s->record;
    own_step_one(w, s);
    if (r == NULL) {
        return;
    }
    if (s->event.kind == OWN_EV_VIEW) {
        r->queue_n = 0; /* their requesters ask anew */
    }
    own_queue_next(w, r);
    if (s->done && s->event.kind != OWN_EV_WANT) {
        own_want_again(w, r);
    } else {
        own_record_settle(w, r);
    }
}

/* Whoever goes waits for the ends of all TRIMs that may count on it (own_leave.c). */
static void count_trims(struct worker *w, bool before, bool now)
{
    if (now && !before) {
        atomic_fetch_add_explicit(&w->own->trims, 1, memory_order_seq_cst);
    } else if (before && !now) {
        atomic_fetch_sub_explicit(&w->own->trims, 1, memory_order_seq_cst);
    }
}

void own_step_one(struct worker *w, struct own_step *s)
{
    struct own_record *r = s->record;
    struct own_busy *busy = r != NULL ? &r->busy : NULL;
    struct own_space *mine = &w->own->spaces[s->space];
    struct locked o;
    struct own_effects fx = {.n = 0};
    enum own_type ending = own_kind_ending(s);
    bool wanted = busy != NULL && busy->mine.type != OWN_NONE;
    bool pending = busy != NULL && busy->ts != 0;
    bool owed = busy != NULL && busy->owes;
    if (r != NULL) {
        s->event.waited = waited(w, r);
    }
    bool trims = busy != NULL && busy->mine.type == OWN_TRIM;
    lock(w, s, &o);
    struct own_entry before = o.entry;
    note_asked(w, s);
    revoke_late(w, s, &o);
    s->event.data = data_of(w, s, &o, type_asked(s));
    own_step(&o.entry, busy, &s->event, &fx);
    for (uint32_t i = 0; i < fx.n; i++) {
        carry_out(w, s, &o, &fx.e[i]);
    }
    publish_entry(&o, &before);
    note_move(w, s, &o, &before);
    o.woken |= has_gained_readers(w, &before, &o.entry);
    if (busy != NULL && busy->owes != owed && o.data_ref.object != NULL) {
        set_meta(&o, busy->owes ? ZEUS_WANTED : 0, busy->owes ? 0 : ZEUS_WANTED);
    }
#ifdef HK_DEBUG
    if (busy != NULL) {
        s->event.data = data_of(w, s, &o, OWN_NONE);
        own_check(&o.entry, busy, &s->event.data, &w->view, w->node->config.self);
    }
#endif
    unlock(w, s, &o);
    atomic_store_explicit(&mine->clock_told, mine->clock, memory_order_relaxed);
    if (r != NULL && !wanted) {
        r->began_us = w->now_us;
    }
    mine->pending += busy != NULL && busy->ts != 0;
    mine->pending -= pending;
    count_trims(w, trims, busy != NULL && busy->mine.type == OWN_TRIM);
    afterwards(w, s, &fx, ending);
}

void own_step_record(struct worker *w, struct own_record *r, enum own_ev kind)
{
    struct own_step s;
    own_step_init(w, &s, r->space, kind, r->key, r->hash);
    s.record = r;
    own_step_run(w, &s);
}

void own_step_want(struct worker *w, struct own_record *r, const struct own_request *want)
{
    struct own_step s;
    own_step_init(w, &s, r->space, OWN_EV_WANT, r->key, r->hash);
    s.event.want = *want;
    s.record = r;
    own_step_run(w, &s);
}
