/* The walk of worker 0 over the entries of its node (docs/protocols/zeus.md, R12, R13): owners see
 * to it that an object has as many replicas as it shall have, and forget tombstones that have been
 * idle for a grace; of an object without an owner the first live directory node invites a reader,
 * or, if nobody has it any more and the operator gives such objects up, has it forgotten. Everybody
 * forgets entries that say nothing, or are none of its business any more.
 * The walk only finds what is to be done; the object's own worker looks again and begins it. A pass
 * takes about walk_us; after a change of view it does not pause. What could not be begun is met
 * again in the next pass. */
#include "node/own_internal.h"

#include <string.h>

#include "base/assert.h"

#define STEP_US 1000u    /* between two steps, at the least */
#define STEP_BUCKETS 64u /* buckets a step, when the store is small enough for that */
#define STEP_BUCKETS_MAX 1024u

static uint8_t lowest(uint32_t spaces)
{
    return (uint8_t)__builtin_ctz(spaces);
}

/* ---- What an object needs ---- */

enum task {
    TASK_NONE,
    TASK_INVITE,
    TASK_TRIM,
    TASK_STAMP,
    TASK_DESTROY,
    TASK_ELECT,
    TASK_LOST,
    TASK_FORGET
};

/* An object as it stands here. */
struct seen {
    struct own_entry entry;
    struct own_vector vector; /* masked */
    struct key_meta meta; /* of the entry, which says for how long a tombstone is idle: owner: ms
                                 since when, 0: not yet; aux: the lowest bits of its version.
                                 state: the owner before this one, and 1 */
    struct key_meta data;
    bool has_data;
};

uint32_t own_degree_in(const struct node *n, const struct view *view, uint8_t space,
                       const struct own_vector *vector)
{
    const struct zeus_config *config = n->spaces[space].engine;
    uint32_t nodes = nodeset_count(view->configured);
    uint32_t own = own_degree_of(vector);
    uint32_t degree = own != 0 ? own : config->own.degree;
    if (degree == 0) {
        degree = (nodes - 1) / 2 + 1;
        degree = degree < 3 ? 3 : degree;
    }
    return degree < nodes ? degree : nodes;
}

uint32_t own_degree(const struct worker *w, uint8_t space, const struct own_vector *vector)
{
    return own_degree_in(w->node, &w->view, space, vector);
}

static uint32_t clock_ms(const struct worker *w)
{
    return (uint32_t)(w->now_us / 1000) | 1u; /* never 0 */
}

static uint16_t version_mark(const struct seen *o)
{
    return (uint16_t)stamp_version(o->data.ts);
}

/* Nothing is destroyed then (R13), and tombstones are kept whole like anything else. */
static bool is_changing(const struct view *view)
{
    return view->live != view->operational || view->configured_old != 0;
}

static enum task tombstone_task(const struct worker *w, uint8_t space, const struct seen *o)
{
    uint64_t grace_ms = w->node->config.spaces[space].owned.grace_us / 1000;
    bool idle = o->data.state == ZEUS_VALID && o->data.owner == 0 &&
                (o->data.flags & ZEUS_OWNED) != 0 && (o->data.flags & ZEUS_WANTED) == 0;
    if (!idle) {
        return TASK_NONE;
    }
    if (o->meta.owner == 0 || o->meta.aux != version_mark(o)) {
        return TASK_STAMP;
    }
    bool due = clock_ms(w) - o->meta.owner >= grace_ms && !is_changing(&w->view);
    return due ? TASK_DESTROY : TASK_NONE;
}

static nodeset replicas_of(const struct seen *o)
{
    nodeset owner = o->vector.owner == NODE_NONE ? 0 : nodeset_of(o->vector.owner);
    return o->vector.readers | owner;
}

/* It was created and never written (R17). */
static bool is_fresh(const struct own_vector *unmasked)
{
    return unmasked->readers == 0 && (unmasked->degree & OWN_FRESH) != 0;
}

bool own_is_lost(const struct own_entry *entry, const struct view *view)
{
    struct own_vector left = own_masked(&entry->vector, view);
    return left.owner == NODE_NONE && left.readers == 0 && !is_fresh(&entry->vector);
}

static enum task task_of(const struct worker *w, uint8_t space, const struct seen *o,
                         nodeset directory)
{
    uint8_t self = w->node->config.self;
    if (o->vector.owner == self) {
        if (!o->has_data) {
            return TASK_NONE;
        }
        nodeset going = own_going(w);
        uint32_t have = nodeset_count(replicas_of(o) & ~going);
        uint32_t shall = own_degree(w, space, &o->vector);
        if ((o->data.flags & KEY_TOMBSTONE) != 0) {
            enum task task = tombstone_task(w, space, o);
            if (task != TASK_NONE) {
                return task;
            }
        }
        bool room = (w->view.live & ~going & ~replicas_of(o)) != 0;
        return have < shall && room ? TASK_INVITE : have > shall ? TASK_TRIM : TASK_NONE;
    }
    bool nobody = replicas_of(o) == 0;
    if (nodeset_has(directory, self) ? nobody && is_fresh(&o->entry.vector)
                                     : !nodeset_has(o->vector.readers, self)) {
        return TASK_FORGET;
    }
    if (o->vector.owner == NODE_NONE && nodeset_first(directory & w->view.operational) == self) {
        return nobody ? TASK_LOST : TASK_ELECT;
    }
    return TASK_NONE;
}

/* Whether something is to be done for the object, which is this node's to do, before those that go
 * may; or only to be waited for. */
static bool is_needy(const struct worker *w, uint8_t space, const struct seen *o, enum task task)
{
    if (o->vector.owner != w->node->config.self) {
        return task == TASK_ELECT;
    }
    nodeset stay = w->view.live & ~own_going(w);
    uint32_t have = nodeset_count(replicas_of(o) & stay);
    bool poor = have < own_degree(w, space, &o->vector) && (stay & ~replicas_of(o)) != 0;
    return !o->has_data || have == 0 || poor;
}

/* Under the entry's lock, or of a copy. */
static struct seen see(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                       const struct key_meta *meta, struct bytes value)
{
    struct seen o = {.entry = own_entry_of(meta, value), .meta = *meta};
    struct store_value v;
    uint64_t buffer[2];
    int err = store_read(w->node->spaces[space].store, w->threads[space], key, hash, buffer,
                         sizeof buffer, &v);
    o.vector = own_masked(&o.entry.vector, &w->view);
    o.has_data = (err == HK_OK || err == HK_ERR_TOOBIG) && v.found;
    o.data = v.meta;
    return o;
}

/* ---- The object's worker ---- */

/* One of the nodes, any of them over all objects. */
static uint8_t pick(nodeset nodes, uint64_t portable)
{
    for (uint64_t skip = portable % nodeset_count(nodes); skip > 0; skip--) {
        nodes &= nodes - 1;
    }
    return nodeset_first(nodes);
}

/* The next one behind this node: objects of one owner shall have the same readers, or each slot of
 * its pipelines waits for the R-ACKs of the one before (zeus-commit.md, C3). */
static uint8_t behind(const struct worker *w, nodeset nodes)
{
    nodeset above = nodes & ~((nodeset_of(w->node->config.self) << 1) - 1u);
    return nodeset_first(above != 0 ? above : nodes);
}

static void invite(struct worker *w, uint8_t space, struct bytes key, nodeset candidates,
                   enum own_type type)
{
    uint64_t portable = own_portable(w, key);
    nodeset directory = own_directory(&w->view, portable);
    nodeset best = candidates & directory;
    if (candidates == 0) {
        return;
    }
    uint8_t to =
        type == OWN_READER ? behind(w, candidates) : pick(best != 0 ? best : candidates, portable);
    struct own_body body = {
        .vector = {.owner = NODE_NONE},
        .request = {.type = (uint8_t)type,
                    .requester = to,
                    .target = NODE_NONE,
                    .admitted = w->view.members[to].admitted},
    };
    own_send(w, space, nodeset_of(to), OWN_MSG_INVITE, 0, key, &body, bytes_of(NULL, 0));
    w->stats.own_invites++;
}

static void stamp(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                  const struct seen *o)
{
    struct store_ref ref;
    store_lock(w->node->spaces[space].directory, w->directories[space], key, hash, &ref);
    if (ref.object != NULL && store_meta(&ref).ts == o->entry.ts) {
        struct key_meta meta = store_meta(&ref);
        meta.owner = clock_ms(w);
        meta.aux = version_mark(o);
        store_set_meta(&ref, &meta);
    }
    store_unlock(&ref);
}

static void ask_for(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                    const struct own_request *request)
{
    struct own_record *r = own_record_get(w, space, key, hash, false);
    if (r == NULL) {
        return;
    }
    if (r->busy.mine.type == OWN_NONE && r->busy.ts == 0) {
        w->stats.own_trims += request->type == OWN_TRIM;
        w->stats.own_destroyed += request->type == OWN_DESTROY;
        own_step_want(w, r, request);
    } else {
        own_record_settle(w, r);
    }
}

static void want(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                 enum own_type type, uint8_t target)
{
    struct own_request request = {.type = (uint8_t)type, .target = target};
    ask_for(w, space, key, hash, &request);
}

void own_walk_degree(struct worker *w, uint8_t space, struct bytes key, uint64_t hash,
                     uint8_t degree)
{
    struct own_request request = {.type = OWN_DEGREE, .target = NODE_NONE, .degree = degree};
    ask_for(w, space, key, hash, &request);
    own_tell_all(w);
}

/* What is going on on the object goes on: the next pass meets it again. */
static void forget(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    struct own_step s;
    own_step_init(w, &s, space, OWN_EV_LOOK, key, hash);
    s.record = own_record_find(w, space, key, hash);
    own_step_run(w, &s);
}

/* Whom an object can spare: the owner before this one last, for it may want it back. */
static uint8_t spare_reader(const struct worker *w, struct bytes key, const struct seen *o,
                            nodeset going)
{
    nodeset readers = o->vector.readers & ~going;
    nodeset others =
        o->meta.state > 0 ? readers & ~nodeset_of((uint8_t)(o->meta.state - 1)) : readers;
    nodeset idle = others & ~own_directory(&w->view, own_portable(w, key));
    return pick(idle != 0 ? idle : others != 0 ? others : readers, own_portable(w, key));
}

void own_walk_look(struct worker *w, uint8_t space, struct bytes key, uint64_t hash, bool give_up)
{
    struct store_value v;
    uint64_t buffer[2];
    int err = store_read(w->node->spaces[space].directory, w->directories[space], key, hash, buffer,
                         sizeof buffer, &v);
    HK_ASSERT(err == HK_OK);
    if (!v.found || !w->own->spaces[space].settled) {
        return;
    }
    struct seen o = see(w, space, key, hash, &v.meta, v.value);
    nodeset directory = own_directory(&w->view, own_portable(w, key));
    nodeset going = own_going(w);
    nodeset heirs = o.vector.readers & w->view.operational;
    switch (task_of(w, space, &o, directory)) {
    case TASK_INVITE:
        invite(w, space, key, w->view.live & ~going & ~replicas_of(&o), OWN_READER);
        break;
    case TASK_ELECT:
        invite(w, space, key, (heirs & ~going) != 0 ? heirs & ~going : heirs, OWN_OWNER);
        break;
    case TASK_TRIM:
        if ((o.vector.readers & ~going) != 0 && own_trims_begin(w, going)) {
            want(w, space, key, hash, OWN_TRIM, spare_reader(w, key, &o, going));
            own_trims_end(w);
        }
        break;
    case TASK_STAMP:
        stamp(w, space, key, hash, &o);
        break;
    case TASK_DESTROY:
        want(w, space, key, hash, OWN_DESTROY, NODE_NONE);
        break;
    case TASK_LOST:
        if (give_up) {
            want(w, space, key, hash, OWN_DESTROY, NODE_NONE);
        }
        break;
    case TASK_FORGET:
        forget(w, space, key, hash);
        break;
    case TASK_NONE:
        break;
    }
    own_tell_all(w);
}

void own_invite(struct worker *w, uint8_t space, struct bytes key, uint64_t hash)
{
    nodeset replicas = own_readers(w, space, key, hash) | nodeset_of(w->node->config.self);
    if (w->own->spaces[space].settled) {
        invite(w, space, key, w->view.live & ~own_going(w) & ~replicas, OWN_READER);
    }
}

/* ---- The walk ---- */

bool own_walk_note(struct worker *w, struct bytes key, uint64_t hash)
{
    struct own_walk *walk = &w->own->walk;
    if (walk->looks_n == OWN_LOOKS_MAX || key.n > OWN_LOOK_BYTES - walk->bytes_n) {
        return false;
    }
    walk->looks[walk->looks_n++] = (struct own_look){.hash = hash, .at = walk->bytes_n, .n = key.n};
    if (key.n > 0) {
        memcpy(walk->bytes + walk->bytes_n, key.at, key.n);
    }
    walk->bytes_n += key.n;
    return true;
}

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct worker *w = context;
    struct own_walk *walk = &w->own->walk;
    struct seen o = see(w, walk->space, key, hash, meta, value);
    nodeset directory = own_directory(&w->view, own_portable(w, key));
    enum task task = task_of(w, walk->space, &o, directory);
    walk->lost += task == TASK_LOST;
    walk->poor += task == TASK_LOST || task == TASK_INVITE || task == TASK_ELECT;
    walk->needy += is_needy(w, walk->space, &o, task);
    if (task == TASK_NONE || (task == TASK_LOST && !walk->giving_up)) {
        return;
    }
    if (!own_walk_note(w, key, hash)) {
        walk->whole = false;
    }
}

static void look(struct worker *w, const struct own_look *look)
{
    struct own_walk *walk = &w->own->walk;
    struct bytes key = bytes_of(walk->bytes + look->at, look->n);
    uint32_t to = own_worker(w, own_portable(w, key));
    if (to == w->index) {
        own_walk_look(w, walk->space, key, look->hash, walk->giving_up);
        return;
    }
    struct msg m = {.space = walk->space,
                    .kind = MSG_OWN_ASIDE,
                    .flags = OWN_ASIDE_LOOK,
                    .epoch = w->view.epoch,
                    .arg = walk->giving_up,
                    .key = key};
    aside_add(w, to, &m);
}

void own_walk_restart(struct worker *w)
{
    struct own_walk *walk = &w->own->walk;
    walk->cursor = 0;
    walk->space = lowest(w->node->owned);
    walk->soon = true;
    walk->giving_up = false;
    walk->lost = 0;
    walk->poor = 0;
    walk->needy = 0;
    walk->going = own_going(w);
    walk->epoch = w->view.epoch;
    walk->due_us = w->now_us;
}

void own_empty(struct worker *w, uint8_t space)
{
    if (w->index == 0 && space < SPACES_MAX && (w->node->owned >> space & 1) != 0) {
        w->own->walk.give_up |= 1u << space;
        own_walk_restart(w);
    }
}

static void next_space(struct worker *w)
{
    struct own_walk *walk = &w->own->walk;
    uint32_t later = w->node->owned & ~((2u << walk->space) - 1u);
    if (walk->giving_up && walk->whole) {
        walk->give_up &= ~(1u << walk->space);
    }
    walk->cursor = 0;
    walk->space = lowest(later != 0 ? later : w->node->owned);
    if (later == 0) {
        w->stats.own_lost = walk->lost;
        w->stats.own_poor = walk->poor;
        w->stats.own_walked = walk->epoch;
        if (walk->needy == 0) {
            own_leave_walked(w, walk->going);
        }
        walk->going = own_going(w);
        walk->soon = walk->going != w->own->leave.said; /* somebody waits */
        walk->lost = 0;
        walk->poor = 0;
        walk->needy = 0;
        walk->epoch = w->view.epoch;
    }
}

/* How many buckets now, and when to go on, so that a pass takes about walk_us. */
static uint32_t pace(struct worker *w)
{
    struct own_walk *walk = &w->own->walk;
    struct store_stats stats;
    store_stats(w->node->spaces[walk->space].directory, &stats);
    uint64_t pass_us = w->node->config.spaces[walk->space].owned.walk_us;
    uint64_t pause_us = pass_us / (stats.buckets / STEP_BUCKETS + 1);
    uint64_t buckets = STEP_BUCKETS;
    if (pause_us < STEP_US || walk->soon) {
        pause_us = STEP_US;
        buckets = walk->soon ? STEP_BUCKETS_MAX : stats.buckets * STEP_US / pass_us + 1;
    }
    walk->due_us = w->now_us + pause_us;
    return (uint32_t)(buckets < STEP_BUCKETS_MAX ? buckets : STEP_BUCKETS_MAX);
}

/* Nothing is begun that would have to wait, and half of all records are for clients. */
static bool may_begin(const struct worker *w)
{
    const struct own *own = w->own;
    return w->operational && own->spaces[own->walk.space].settled &&
           own->records_n <= own->records_most / 2;
}

void own_walk_poll(struct worker *w)
{
    struct own_walk *walk = &w->own->walk;
    if (!may_begin(w) || w->now_us < walk->due_us) {
        return;
    }
    uint32_t buckets = pace(w);
    if (walk->cursor == 0) {
        walk->giving_up = (walk->give_up >> walk->space & 1) != 0;
        walk->whole = true;
    }
    walk->looks_n = 0;
    walk->bytes_n = 0;
    do {
        walk->cursor = store_walk(w->node->spaces[walk->space].directory,
                                  w->directories[walk->space], walk->cursor, visit, w);
        buckets--;
    } while (walk->cursor != 0 && buckets > 0 && walk->looks_n < OWN_LOOKS_MAX);
    for (uint32_t i = 0; i < walk->looks_n; i++) {
        look(w, &walk->looks[i]);
    }
    if (walk->cursor == 0) {
        next_space(w);
    }
}

uint64_t own_walk_deadline(const struct worker *w)
{
    return may_begin(w) ? w->own->walk.due_us : UINT64_MAX;
}
