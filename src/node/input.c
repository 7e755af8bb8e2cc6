/* What comes in from peers: frames are checked, their messages routed to key machines, flows or
 * the node. The keys of a burst are fetched together before the first is stepped. */
#include "engine/occ/occ.h"
#include "node/lotus.h"
#include "node/own.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

/* Beside enum engine_route: MSG_CALL, and where objects have owners, ownership and commit. */
#define ROUTE_CALL 0xffu
#define ROUTE_OWN 0xfeu
#define ROUTE_TXN 0xfdu
#define ROUTE_OCC 0xfcu
#define ROUTE_TABLES 0xfbu

struct burst {
    uint32_t n;
    struct msg msgs[BURST_MAX];
    uint64_t hashes[BURST_MAX];
    uint8_t routes[BURST_MAX];
    uint8_t from[BURST_MAX];
    bool keyed[BURST_MAX]; /* hashes[i] is of a key that will be looked up */
};

int input_step(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from)
{
    struct step s;
    step_init(w, &s, msg->space, EV_MSG);
    s.event.msg = msg;
    s.event.from = from;
    s.key = msg->key;
    s.hash = hash;
    s.payload = msg->value;
    s.payload_flags = msg->vflags & KEY_VALUE_FLAGS;
    s.force = true;
    step_key(w, &s);
    return s.err;
}

static void route_slot(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct flow *f = flow_of_ref(w, msg->slot);
    if (f == NULL || f->slot.gen != msg->gen || f->space != msg->space) {
        w->stats.engine_drops[ENGINE_DROP_SLOT]++;
        return;
    }
    step_flow(w, f, EV_MSG, 0, msg, from);
}

/* Of the first objects that a transaction's message carries, as fetched in run_burst. */
static void fetch_objects(const struct worker *w, const struct msg *msg, bool objects)
{
    const struct store *store = w->node->spaces[msg->space].store;
    bool sharded = w->node->spaces[msg->space].sharded;
    struct bytes rest = msg->value;
    struct commit_object object;
    struct occ_object shard;
    if (!sharded && msg->kind == COMMIT_MSG_INV) {
        rest.at += COMMIT_INV_HEAD;
        rest.n -= COMMIT_INV_HEAD;
    } else if (!sharded) {
        return;
    }
    for (uint32_t i = 0; i < BURST_MAX; i++) {
        if (sharded ? !occ_object_take(&rest, &shard) : !commit_object_take(&rest, &object)) {
            return;
        }
        uint64_t hash = store_hash(store, sharded ? shard.key : object.key);
        if (objects) {
            store_prefetch_object(store, hash);
        } else {
            store_prefetch_bucket(store, hash);
        }
    }
}

static bool of_transactions(uint32_t route)
{
    return route == ROUTE_TXN || route == ROUTE_OCC;
}

/* Where there are transactions; false: it is for a machine of another kind. */
static bool run_transactions(struct worker *w, const struct burst *b, uint32_t i)
{
    if (b->routes[i] == ROUTE_OWN) {
        own_message(w, &b->msgs[i], b->hashes[i], b->from[i]);
    } else if (b->routes[i] == ROUTE_TXN) {
        txn_message(w, &b->msgs[i], b->hashes[i], b->from[i]);
    } else if (b->routes[i] == ROUTE_OCC) {
        occ_message(w, &b->msgs[i], b->from[i]);
    } else if (b->routes[i] == ROUTE_TABLES) {
        lotus_message(w, &b->msgs[i], b->from[i]);
    } else {
        return false;
    }
    worker_run_ready(w);
    return true;
}

static void run_burst(struct worker *w, struct burst *b, uint8_t from)
{
    for (uint32_t i = 0; i < b->n; i++) {
        if (b->keyed[i] && b->n > 1) {
            store_prefetch_object(w->node->spaces[b->msgs[i].space].store, b->hashes[i]);
        } else if (b->n > 1 && of_transactions(b->routes[i])) {
            fetch_objects(w, &b->msgs[i], true);
        } else if (b->n > 1 && b->routes[i] == ROUTE_TABLES) {
            lotus_home_prefetch(w, &b->msgs[i]);
        }
    }
    for (uint32_t i = 0; i < b->n; i++) {
        const struct msg *msg = &b->msgs[i];
        if (b->routes[i] == ROUTE_CALL) {
            forward_take(w, msg, b->hashes[i], from);
            worker_run_ready(w);
            continue;
        }
        if (run_transactions(w, b, i)) {
            continue;
        }
        switch ((enum engine_route)b->routes[i]) {
        case ROUTE_KEY:
            (void)input_step(w, msg, b->hashes[i], from); /* refused: it will be sent again */
            break;
        case ROUTE_SLOT:
            route_slot(w, msg, from);
            break;
        case ROUTE_WORKER:
        case ROUTE_ANY:
            step_worker(w, msg, from);
            break;
        }
        /* Whom this message has woken comes before the next message: a peer that writes a popular
         * key again and again sends "valid" and its next invalidation side by side. */
        if (b->routes[i] != ROUTE_WORKER) {
            worker_run_ready(w);
        }
    }
    b->n = 0;
}

/* Whether the engine may see the message, and where it goes; counts why not. */
static bool admissible(struct worker *w, const struct msg *msg, uint32_t *route_out)
{
    if (msg->space >= SPACES_MAX || w->node->spaces[msg->space].ops == NULL) {
        w->stats.node_drops[NODE_DROP_SPACE]++;
        return false;
    }
    const struct engine_ops *ops = w->node->spaces[msg->space].ops;
    if (ops->msg_invalid(msg) != NULL) {
        w->stats.engine_drops[ENGINE_DROP_INVALID]++;
        return false;
    }
    if ((ops->traits & ENGINE_OWNED) != 0) {
        *route_out = msg->kind < COMMIT_MSG_INV ? ROUTE_OWN : ROUTE_TXN;
        return true;
    }
    if (w->node->spaces[msg->space].sharded) {
        *route_out = ROUTE_OCC;
        return true;
    }
    if ((ops->traits & ENGINE_TABLES) != 0 &&
        (msg->kind < LOTUS_MSG_MAP || msg->kind >= LOTUS_MSG_STORE)) {
        *route_out = ROUTE_TABLES;
        return true;
    }
    *route_out = ops->route(msg);
    return *route_out != ROUTE_WORKER || w->index == 0;
}

/* Adds the message that stands at msgs[n] already. */
static void burst_add(struct worker *w, struct burst *b, uint32_t route, uint8_t from)
{
    uint32_t i = b->n++;
    const struct msg *msg = &b->msgs[i];
    struct space *space = &w->node->spaces[msg->space];
    b->routes[i] = (uint8_t)route;
    b->from[i] = from;
    b->keyed[i] = route == ROUTE_KEY || route == ROUTE_CALL || route == ROUTE_OWN;
    if (b->keyed[i]) {
        b->hashes[i] = store_hash(space->store, msg->key);
    } else if (route == ROUTE_SLOT) {
        /* The last acknowledgement leads to the flow's key. */
        const struct flow *f = flow_of_ref(w, msg->slot);
        b->keyed[i] = f != NULL && f->space == msg->space && f->key.at != NULL;
        b->hashes[i] = b->keyed[i] ? f->hash : 0;
    }
    if (b->keyed[i]) {
        store_prefetch_bucket(space->store, b->hashes[i]);
    } else if (of_transactions(route)) {
        fetch_objects(w, msg, false);
    }
    if (b->n == BURST_MAX) {
        run_burst(w, b, from);
    }
}

/* Messages of the node itself. */
static void node_message(struct worker *w, struct burst *b, uint8_t from)
{
    const struct msg *msg = &b->msgs[b->n];
    bool homed = msg->space < SPACES_MAX && w->node->spaces[msg->space].homed;
    if (msg->kind == MSG_CALL && homed) {
        burst_add(w, b, ROUTE_CALL, from);
        return;
    }
    run_burst(w, b, from); /* which leaves msg where it is */
    if (msg->kind == MSG_ANSWER && homed) {
        forward_answered(w, msg, from);
    } else if (msg->kind == MSG_HOT) {
        hot_message(w, msg, from);
    } else if (msg->kind == MSG_OWN_EMPTY && nodeset_has(w->view.live, from)) {
        own_empty(w, msg->space);
    } else if ((msg->kind == MSG_OWN_LEAVE || msg->kind == MSG_OWN_SPARED) && w->own != NULL) {
        own_leave_message(w, msg, from);
    } else if (msg->kind == MSG_OWN_ASIDE && from == w->node->config.self && w->own != NULL) {
        own_aside(w, msg);
    } else {
        transfer_message(w, msg, from);
    }
}

/* Where objects have owners a message may come to another worker than the one that it is for, who
 * passes it on; it says from which node it came. */
void input_pass(struct worker *w, uint32_t to, const struct msg *msg, uint8_t from)
{
    struct msg m = *msg;
    m.flags = (uint8_t)(from + 1u);
    aside_add(w, to, &m);
}

/* Who has sent what comes from a worker of this node. */
static uint8_t passed_from(const struct worker *w, struct msg *msg)
{
    uint8_t from = w->node->config.self;
    if (msg->kind < MSG_NODE_FIRST && msg->space < SPACES_MAX &&
        (w->node->owned >> msg->space & 1) != 0 && msg->flags != 0) {
        from = (uint8_t)(msg->flags - 1u);
        msg->flags = 0;
    }
    return from;
}

void input_batch(struct worker *w, struct bytes body, uint8_t from)
{
    struct burst burst;
    burst.n = 0;
    while (body.n > 0) {
        struct msg *msg = &burst.msgs[burst.n];
        uint8_t source = from;
        uint32_t route;
        uint32_t used;
        if (msg_decode(body, msg, &used) != HK_OK) {
            w->stats.node_drops[NODE_DROP_MESSAGE]++;
            break;
        }
        body.at += used;
        body.n -= used;
        w->stats.messages_in++;
        if (from == w->node->config.self) {
            source = passed_from(w, msg);
        }
        if (msg->kind >= MSG_NODE_FIRST) {
            node_message(w, &burst, from);
        } else if (admissible(w, msg, &route)) {
            burst_add(w, &burst, route, source);
        }
    }
    run_burst(w, &burst, from);
}

/* A member advertises in each frame whether its memory is full. */
void input_note_full(struct worker *w, const struct frame *f)
{
    nodeset full = atomic_load_explicit(&w->node->full, memory_order_relaxed);
    if (nodeset_has(full, f->source) == f->full) {
        return;
    }
    if (f->full) {
        atomic_fetch_or_explicit(&w->node->full, nodeset_of(f->source), memory_order_relaxed);
    } else {
        atomic_fetch_and_explicit(&w->node->full, ~nodeset_of(f->source), memory_order_relaxed);
    }
}

/* Both buffers grow together. False: they may not, or there is no memory. */
static bool early_grow(struct worker *w, uint64_t need)
{
    uint64_t capacity = w->early_capacity;
    while (capacity < need) {
        capacity *= 2;
    }
    if (!w->node->env.ordered || capacity > EARLY_ORDERED_BYTES) {
        return false;
    }
    uint8_t *early = realloc(w->early, capacity);
    w->early = early != NULL ? early : w->early;
    uint8_t *spare = realloc(w->early_spare, capacity);
    w->early_spare = spare != NULL ? spare : w->early_spare;
    if (early == NULL || spare == NULL) {
        return false;
    }
    w->early_capacity = (uint32_t)capacity;
    return true;
}

/* A peer has adopted a view that this worker has not: its messages wait here, so that they need not
 * be sent again a time-out later. Past the bound they are lost, as a network may lose them; where
 * the port promises order nobody sends again, and the bound is far. */
static bool keep_early(struct worker *w, struct bytes frame)
{
    uint64_t need = 8 + (((uint64_t)frame.n + 7u) & ~(uint64_t)7u);
    if (need > w->early_capacity - w->early_bytes &&
        (w->early_reading || !early_grow(w, w->early_bytes + need))) {
        w->stats.node_drops[NODE_DROP_EARLY]++;
        return false;
    }
    put_u32(w->early + w->early_bytes, frame.n);
    memcpy(w->early + w->early_bytes + 8, frame.at, frame.n);
    w->early_bytes += (uint32_t)need;
    return true;
}

/* Whether a frame may belong to a view that this worker will adopt. */
static bool is_early(const struct worker *w, const struct frame *f)
{
    bool known = w->view.epoch != 0 && f->generation == w->view.generation;
    return f->epoch > w->view.epoch && (known || w->node->env.ordered);
}

static void batch_frame(struct worker *w, const struct frame *f, struct bytes in)
{
    if (is_early(w, f) && keep_early(w, in)) {
        return;
    }
    if (w->view.epoch == 0 || f->generation != w->view.generation) {
        w->stats.node_drops[NODE_DROP_GENERATION]++;
        return;
    }
    if (!view_has(&w->view, f->source, f->nonce)) {
        /* Not a member of this view: the engine sees that nobody vouches for the message, and the
         * sender may have to hear of the view. */
        w->stats.node_drops[NODE_DROP_SENDER]++;
        if (f->epoch < w->view.epoch) {
            atomic_fetch_or_explicit(&w->node->hints, nodeset_of(f->source), memory_order_relaxed);
        }
        input_batch(w, f->body, NODE_NONE);
        return;
    }
    input_note_full(w, f);
    input_batch(w, f->body, f->source);
}

/* Within a lane even what is early has its place, so it is kept there; here only if this worker
 * does not know the sender yet. */
static void lane_frame(struct worker *w, const struct frame *f, struct bytes in)
{
    bool known = w->view.epoch != 0 && f->generation == w->view.generation;
    if (known && view_has(&w->view, f->source, f->nonce)) {
        lanes_frame(w, f);
    } else if (is_early(w, f) && keep_early(w, in)) {
        return;
    } else if (!known) {
        w->stats.node_drops[NODE_DROP_GENERATION]++;
    } else {
        w->stats.node_drops[NODE_DROP_SENDER]++;
        if (f->epoch < w->view.epoch) {
            atomic_fetch_or_explicit(&w->node->hints, nodeset_of(f->source), memory_order_relaxed);
        }
    }
}

static void take_frame(struct worker *w, struct bytes in)
{
    struct node *n = w->node;
    struct frame f;
    uint64_t nonce = n->config.view.nonce;
    enum frame_drop drop = n->env.intact
                               ? frame_open_bare(in, n->config.cluster, n->config.self, nonce, &f)
                               : frame_open(in, n->config.cluster, n->config.self, nonce, &f);
    if (drop == FRAME_DROP_NONE && f.version > n->config.version_max) {
        drop = FRAME_DROP_VERSION;
    }
    if (drop != FRAME_DROP_NONE) {
        w->stats.frame_drops[drop]++;
    } else if (f.kind == FRAME_VIEW) {
        control_frame(w, &f);
        control_adopt(w);
    } else if (f.kind == FRAME_LANE) {
        lane_frame(w, &f, in);
    } else {
        batch_frame(w, &f, in);
    }
}

uint32_t input_frames(struct worker *w, uint32_t max)
{
    uint32_t count = 0;
    struct bytes in;
    while (count < max && w->moved < MOVED_MAX &&
           w->node->env.receive(w->node->env.context, w->index, &in)) {
        count++;
        w->moved += in.n;
        w->stats.frames_in++;
        w->stats.bytes_in += in.n;
        take_frame(w, in);
    }
    return count;
}

void input_early(struct worker *w)
{
    uint8_t *bytes = w->early;
    uint32_t end = w->early_bytes;
    w->early = w->early_spare;
    w->early_spare = bytes;
    w->early_bytes = 0;
    w->early_reading = true;
    for (uint32_t at = 0; at < end;) {
        uint32_t n = get_u32(bytes + at);
        take_frame(w, bytes_of(bytes + at + 8, n));
        at += 8 + ((n + 7u) & ~7u);
    }
    w->early_reading = false;
}

void input_self(struct worker *w)
{
    if (w->self.body == 0) {
        return;
    }
    /* What these messages cause goes to a new buffer: nothing is written under the reader. */
    struct outbox box = w->self;
    w->self = (struct outbox){.at = NULL};
    input_batch(w, bytes_of(box.at + FRAME_HEADER, box.body), w->node->config.self);
    if (w->self.at == NULL) {
        box.body = 0;
        w->self = box;
        return;
    }
    free(box.at);
}
