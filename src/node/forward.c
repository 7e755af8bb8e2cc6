/* Operations on keys whose home is elsewhere (docs/protocols/galene.md, Misses). A call that finds
 * no entry goes to the home as MSG_CALL, and MSG_ANSWER comes back. Both travel in the space's
 * lanes: many share a frame, and none is lost as long as both processes are members; when one is
 * not any more, forward_adopt ends what was between them.
 *
 *   origin                                   holder
 *   forward_go -- miss, credit --> MSG_CALL  forward_take -> a remote call, run as a client's
 *   forward_answered <------- MSG_ANSWER <-- forward_reply
 *
 * F1: a holder that is not the home sends the call on, and tells the origin who has it now. After
 *     CALL_HOPS_MAX times it answers "again".
 * F2: a call that was sent is sent anew only after "again". Updates whose holder is gone end with
 *     HK_ERR_UNKNOWN.
 * F3: a handed call is executed where there is no entry, unless this node's map knows better.
 *
 * Bounds: misses, and so everything that is sent and unanswered, number calls_max; of these
 * misses_max at one worker of one node. There as many of each worker's are executed; what is more
 * is answered "again". */
#include "node/internal.h"

#include <stdlib.h>

#include "base/assert.h"
#include "engine/op_msg.h"

#define BLOCK_CALLS 64u
#define REMOTES_MAX 65536u /* calls of others in progress, whoever they are */

struct remote_block {
    struct remote_block *next;
    struct call calls[BLOCK_CALLS];
};

static const struct space *space_of(const struct worker *w, const struct call *c)
{
    return &w->node->spaces[c->op.space];
}

/* ---- Making ---- */

int forward_init(struct worker *w)
{
    struct forward *fw = &w->forward;
    uint32_t n = w->node->config.calls_max;
    bool homed = false;
    list_init(&fw->free);
    list_init(&fw->open);
    list_init(&fw->remotes);
    list_init(&fw->remotes_free);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        homed |= w->node->spaces[i].homed;
    }
    if (!homed) {
        return HK_OK;
    }
    fw->misses = calloc(n, sizeof *fw->misses);
    if (fw->misses == NULL) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        fw->misses[i].gen = 1;
        list_push_back(&fw->free, &fw->misses[i].link);
    }
    return HK_OK;
}

void forward_deinit(struct worker *w)
{
    struct forward *fw = &w->forward;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        free(fw->peers[i]);
    }
    while (fw->blocks != NULL) {
        struct remote_block *next = fw->blocks->next;
        free(fw->blocks);
        fw->blocks = next;
    }
    free(fw->misses);
}

static struct forward_line *line_of(struct worker *w, uint8_t node, uint8_t worker)
{
    struct forward_peer **peer = &w->forward.peers[node];
    if (*peer == NULL) {
        *peer = calloc(1, sizeof **peer);
        HK_ASSERT(*peer != NULL); /* small, and one a node */
        for (uint32_t i = 0; i < WORKERS_MAX; i++) {
            list_init(&(*peer)->lines[i].waiting);
        }
    }
    return &(*peer)->lines[worker];
}

/* ---- Where to ---- */

/* The worker that touches the key at its home, where only one does. All keys of a slot go to the
 * same one; the multiplier shares out what a map gives to one node, whatever its pattern. */
static uint8_t owner_of(const struct worker *w, struct bytes key)
{
    uint32_t mixed = (slot_of_key(key) * 0x9e3779b1u) >> 16;
    return (uint8_t)(mixed % w->node->config.workers);
}

static uint8_t worker_there(const struct worker *w, const struct call *c)
{
    return space_of(w, c)->exclusive ? owner_of(w, c->op.key) : (uint8_t)w->index;
}

/* Whether a call that the old home of its key handed on is executed here, although the map does not
 * say that this node is the home: not if it is newer than that of the old home, for then the key
 * may have moved on. The map's entry was read before its version. */
static bool takes_handed(const struct node *n, const struct call *c, struct slot_home home)
{
    bool moving_here = home.state == HOME_MOVING && home.to == n->config.self;
    uint64_t version =
        atomic_load_explicit(&n->spaces[c->op.space].map_version, memory_order_acquire);
    return c->handed &&
           (moving_here || version < c->handed_version || !node_rule_on(n, NODE_RULE_HANDED_MAP));
}

struct forward_route forward_route(const struct worker *w, const struct call *c)
{
    const struct space *space = space_of(w, c);
    uint8_t self = w->node->config.self;
    struct slot_home home = homes_of(space, c->op.key);
    struct forward_route route = {.place = FORWARD_AWAY, .to = home.home};
    bool mine = slot_home_is(home, self);
    bool gate = mine && home.state == HOME_MOVING && node_rule_on(w->node, NODE_RULE_MOVING_GATE);
    if (takes_handed(w->node, c, home) || (mine && !gate)) {
        route.place = FORWARD_HERE;
    } else if (gate) {
        route.to = home.to;
        route.hand = true;
        route.version = atomic_load_explicit(&space->map_version, memory_order_acquire);
    } else if (home.state == HOME_LOST || home.state == HOME_EMPTYING) {
        route.place = FORWARD_LOST;
    } else if (home.state == HOME_NONE || home.home >= NODES_MAX) {
        route.place = FORWARD_WAIT;
    }
    route.to_worker = worker_there(w, c);
    return route;
}

/* ---- Calls from here ---- */

static struct miss *miss_of(struct worker *w, uint32_t slot)
{
    uint32_t index = slot_ref_index(slot);
    bool here = slot_ref_worker(slot) == w->index && index > 0 &&
                index <= w->node->config.calls_max && w->forward.misses != NULL;
    return here && w->forward.misses[index - 1].used ? &w->forward.misses[index - 1] : NULL;
}

static uint32_t slot_of_miss(const struct worker *w, const struct miss *m)
{
    return slot_ref((uint8_t)w->index, (uint32_t)(m - w->forward.misses) + 1);
}

static uint32_t nonce_of(const struct worker *w, uint8_t node)
{
    return (uint32_t)w->view.members[node].nonce;
}

/* Sends a call in one piece. HK_ERR_NOMEM, HK_ERR_TOOBIG: nothing was sent. */
static int send_call(struct worker *w, const struct op_call *call, uint8_t to, uint8_t to_worker)
{
    struct store_thread *thread = w->threads[call->op.space];
    uint64_t bytes = op_call_room(call);
    uint8_t *room = NULL;
    struct msg m;
    if (bytes > MSG_VALUE_MAX) {
        return HK_ERR_TOOBIG;
    }
    if (bytes > 0) {
        room = store_alloc(thread, bytes, false);
        if (room == NULL) {
            return HK_ERR_NOMEM;
        }
    }
    op_call_encode(call, room, &m);
    m.space = call->op.space;
    m.epoch = w->view.epoch;
    output_message(w, to, to_worker, &m);
    if (room != NULL) {
        store_free(thread, room, bytes);
    }
    return HK_OK;
}

/* Sends a call of this worker; there is a credit and a miss. */
static void send_own(struct worker *w, struct call *c, struct forward_line *line)
{
    struct miss *m = list_entry(list_pop_front(&w->forward.free), struct miss, link);
    const struct forward_route *route = &c->route;
    struct op_call call = {.op = c->op,
                           .slot = slot_of_miss(w, m),
                           .gen = m->gen,
                           .nonce = (uint32_t)w->node->config.view.nonce,
                           .origin = w->node->config.self,
                           .handed = route->hand,
                           .handed_version = route->version};
    int err = send_call(w, &call, route->to, route->to_worker);
    if (err != HK_OK) {
        list_push_front(&w->forward.free, &m->link);
        call_fail(w, c, err);
        return;
    }
    m->used = true;
    m->call = c;
    m->holder = route->to;
    m->nonce = nonce_of(w, route->to);
    m->epoch = w->view.epoch;
    m->hops = 0;
    m->space = c->op.space;
    m->to = route->to;
    m->to_worker = route->to_worker;
    c->miss = m;
    line->open++;
    list_push_back(&w->forward.open, &m->link);
    w->stats.handed += route->hand;
    w->stats.misses += !c->counted;
    c->counted = true;
}

/* Sends what has waited, as far as there are credits. */
static void send_waiting(struct worker *w, struct forward_line *line)
{
    while (!list_empty(&line->waiting) && !list_empty(&w->forward.free)) {
        struct call *c = list_entry(line->waiting.next, struct call, link);
        if (line->open >= space_of(w, c)->misses_max) {
            return;
        }
        list_remove(&c->link);
        send_own(w, c, line);
    }
}

static void go_own(struct worker *w, struct call *c, const struct forward_route *route)
{
    struct forward_line *line = line_of(w, route->to, route->to_worker);
    bool may = line->open < space_of(w, c)->misses_max && list_empty(&line->waiting);
    uint32_t session = c->session;
    if (list_empty(&w->forward.free)) {
        call_again(w, c);
        return;
    }
    /* Without its bytes it cannot wait, but be sent once. */
    if (!call_own(w, c) && !may) {
        call_fail(w, c, HK_ERR_NOMEM);
        return;
    }
    c->expired_ms = 0; /* the home sees for itself */
    c->route = *route;
    call_await(w, c);
    if (may) {
        send_own(w, c, line);
    } else {
        w->stats.credit_waits++;
        list_push_back(&line->waiting, &c->link);
    }
    if (session != SESSION_NONE && w->sessions[session].open) {
        session_pump(w, session); /* to later commands it is issued */
    }
}

/* ---- Calls of others ---- */

static void reply_to(struct worker *w, uint8_t space, const struct call_origin *origin,
                     const struct op_reply *reply)
{
    struct msg m;
    op_reply_encode(reply, &m);
    m.space = space;
    m.epoch = w->view.epoch;
    output_message(w, origin->node, slot_ref_worker(origin->slot), &m);
}

void forward_reply(struct worker *w, struct call *c, const struct answer *answer)
{
    struct op_reply reply = {.kind = OP_REPLY_ANSWER,
                             .slot = c->origin.slot,
                             .gen = c->origin.gen,
                             .answer = *answer,
                             .version = c->version};
    reply_to(w, c->op.space, &c->origin, &reply);
}

static void reply_again(struct worker *w, uint8_t space, const struct call_origin *origin)
{
    struct op_reply reply = {.kind = OP_REPLY_AGAIN, .slot = origin->slot, .gen = origin->gen};
    reply_to(w, space, origin, &reply);
}

static void reply_error(struct worker *w, uint8_t space, const struct call_origin *origin, int err)
{
    struct op_reply reply = {.kind = OP_REPLY_ANSWER,
                             .slot = origin->slot,
                             .gen = origin->gen,
                             .answer = {.kind = ANSWER_ERROR, .number = err}};
    reply_to(w, space, origin, &reply);
}

/* F1. Whatever becomes of it, the call ends here. */
static void send_on(struct worker *w, struct call *c, const struct forward_route *route)
{
    const struct call_origin *origin = &c->origin;
    struct op_call call = {.op = c->op,
                           .slot = origin->slot,
                           .gen = origin->gen,
                           .nonce = origin->nonce,
                           .origin = origin->node,
                           .hops = (uint8_t)(origin->hops + 1),
                           .handed = route->hand,
                           .handed_version = route->version};
    if (origin->hops >= CALL_HOPS_MAX ||
        send_call(w, &call, route->to, route->to_worker) != HK_OK) {
        reply_again(w, c->op.space, origin);
    } else {
        struct op_reply told = {.kind = OP_REPLY_SENT_ON,
                                .slot = origin->slot,
                                .gen = origin->gen,
                                .to = route->to,
                                .hops = call.hops,
                                .nonce = nonce_of(w, route->to)};
        reply_to(w, c->op.space, origin, &told);
        w->stats.sent_on++;
        w->stats.handed += route->hand;
    }
    call_release(w, c);
}

static struct call *remote_new(struct worker *w)
{
    struct forward *fw = &w->forward;
    if (list_empty(&fw->remotes_free)) {
        struct remote_block *block = fw->remotes_n < REMOTES_MAX ? calloc(1, sizeof *block) : NULL;
        if (block == NULL) {
            return NULL;
        }
        block->next = fw->blocks;
        fw->blocks = block;
        fw->remotes_n += BLOCK_CALLS;
        for (uint32_t i = 0; i < BLOCK_CALLS; i++) {
            list_push_back(&fw->remotes_free, &block->calls[i].link);
        }
    }
    struct call *c = list_entry(list_pop_front(&fw->remotes_free), struct call, link);
    memset(c, 0, sizeof *c);
    return c;
}

void forward_release(struct worker *w, struct call *c)
{
    line_of(w, c->origin.node, slot_ref_worker(c->origin.slot))->in--;
    list_push_front(&w->forward.remotes_free, &c->link);
}

/* Whether that process is a member, and the worker that it names can be one. */
static bool origin_known(const struct worker *w, const struct op_call *call)
{
    uint8_t worker = slot_ref_worker(call->slot);
    bool self = call->origin == w->node->config.self;
    return nodeset_has(w->view.live, call->origin) && nonce_of(w, call->origin) == call->nonce &&
           worker < (self ? w->node->config.workers : WORKERS_MAX);
}

static void execute(struct worker *w, const struct op_call *call, uint64_t hash,
                    const struct call_origin *origin)
{
    uint8_t space = call->op.space;
    struct forward_line *line = line_of(w, origin->node, slot_ref_worker(origin->slot));
    bool room = line->in < w->node->spaces[space].misses_max;
    struct call *c = room ? remote_new(w) : NULL;
    if (c == NULL) {
        w->stats.credit_excess++;
        reply_again(w, space, origin);
        return;
    }
    line->in++;
    w->stats.forwarded_in++;
    c->op = call->op;
    c->origin = *origin;
    c->handed = call->handed;
    c->handed_version = call->handed_version;
    list_push_back(&w->forward.remotes, &c->session_link);
    call_take_remote(w, c, hash);
}

void forward_take(struct worker *w, const struct msg *msg, uint64_t hash, uint8_t from)
{
    struct op_call call;
    if (from >= NODES_MAX) {
        return; /* counted as its frame came */
    }
    if (op_call_decode(msg, &call) != NULL) {
        w->stats.node_drops[NODE_DROP_MESSAGE]++;
        return;
    }
    if (!origin_known(w, &call)) {
        w->stats.node_drops[NODE_DROP_SENDER]++;
        return;
    }
    struct call_origin origin = {.slot = call.slot,
                                 .gen = call.gen,
                                 .nonce = call.nonce,
                                 .node = call.origin,
                                 .hops = call.hops};
    int err = call_refuses(w, &call.op);
    uint8_t owner =
        w->node->spaces[call.op.space].exclusive ? owner_of(w, call.op.key) : (uint8_t)w->index;
    if (err != HK_OK) {
        reply_error(w, call.op.space, &origin, err);
    } else if (owner != w->index) {
        output_message(w, w->node->config.self, owner, msg); /* another number of workers there */
    } else {
        execute(w, &call, hash, &origin);
    }
}

uint32_t worker_under_way(const struct worker *w)
{
    uint32_t n = 0;
    list_each(link, &w->forward.remotes)
    {
        n++;
    }
    list_each(link, &w->flows)
    {
        n += w->node->spaces[list_entry(link, struct flow, link)->space].homed;
    }
    return n + txn_under_way(w);
}

/* ---- Both ---- */

void forward_go(struct worker *w, struct call *c, struct forward_route route)
{
    bool there = route.place == FORWARD_AWAY && nodeset_has(w->view.live, route.to);
    if (route.place == FORWARD_LOST) {
        call_fail(w, c, HK_ERR_LOSTSLOT);
    } else if (c->own) {
        call_fail(w, c, HK_ERR_UNAVAILABLE); /* its home does it */
    } else if (!there) {
        call_again(w, c); /* a map will come that knows better */
    } else if (c->remote) {
        send_on(w, c, &route);
    } else {
        go_own(w, c, &route);
    }
}

/* A node that has given all its slots away executes nothing for others, not even on a cached key:
 * it is about to leave, and nobody would decide the update. */
static bool sends_all_on(struct worker *w, struct call *c)
{
    if (!c->remote || !atomic_load_explicit(&space_of(w, c)->left, memory_order_acquire)) {
        return false;
    }
    struct forward_route route = forward_route(w, c);
    if (route.place == FORWARD_HERE) {
        return false;
    }
    forward_go(w, c, route);
    return true;
}

bool forward_first(struct worker *w, struct call *c)
{
    const struct space *space = space_of(w, c);
    uint8_t self = w->node->config.self;
    if (!space->homed) {
        return false;
    }
    if (sends_all_on(w, c)) {
        return true;
    }
    if (!space->exclusive || c->own || c->remote ||
        !slot_home_is(homes_of(space, c->op.key), self) || owner_of(w, c->op.key) == w->index) {
        return false;
    }
    struct forward_route route = {
        .place = FORWARD_AWAY, .to = self, .to_worker = owner_of(w, c->op.key)};
    forward_go(w, c, route);
    return true;
}

/* ---- Answers ---- */

static void end_miss(struct worker *w, struct miss *m)
{
    struct forward_line *line = line_of(w, m->to, m->to_worker);
    HK_ASSERT(line->open > 0);
    line->open--;
    if (m->call != NULL) {
        m->call->miss = NULL;
        m->call = NULL;
    }
    m->used = false;
    m->gen = m->gen + 1 != 0 ? m->gen + 1 : 1;
    list_remove(&m->link);
    list_push_front(&w->forward.free, &m->link);
}

void forward_detach(struct worker *w, struct call *c)
{
    (void)w;
    if (c->miss != NULL) {
        c->miss->call = NULL;
        c->miss = NULL;
    } else {
        list_remove(&c->link);
    }
}

/* Whether the process that has the call, or this one, was no member for a time since it was sent:
 * then its answer may not come any more. */
static bool is_gone(const struct worker *w, const struct miss *m)
{
    const struct view *view = &w->view;
    uint8_t self = w->node->config.self;
    return !nodeset_has(view->live, m->holder) || nonce_of(w, m->holder) != m->nonce ||
           view->members[m->holder].admitted > m->epoch ||
           !view_has(view, self, w->node->config.view.nonce) ||
           view->members[self].admitted > m->epoch;
}

/* F2. */
static void miss_gone(struct worker *w, struct miss *m)
{
    struct call *c = m->call;
    end_miss(w, m);
    if (c == NULL) {
        return;
    }
    if (c->update && node_rule_on(w->node, NODE_RULE_FORWARD_ONCE)) {
        call_fail(w, c, HK_ERR_UNKNOWN);
    } else {
        call_ready(w, c);
    }
}

static void take_reply(struct worker *w, struct miss *m, const struct op_reply *reply)
{
    struct call *c = m->call;
    struct forward_line *line = line_of(w, m->to, m->to_worker);
    end_miss(w, m);
    w->stats.answers_in++;
    w->stats.answers_again += reply->kind == OP_REPLY_AGAIN;
    if (c == NULL) {
        send_waiting(w, line);
        return;
    }
    if (reply->kind == OP_REPLY_ANSWER) {
        const struct answer *answer = &reply->answer;
        c->version = reply->version;
        if (answer->kind == ANSWER_ERROR) {
            call_fail(w, c, (int)answer->number);
        } else {
            call_finish(w, c, answer);
        }
    } else if (c->owned) {
        call_again(w, c);
    } else {
        call_fail(w, c, HK_ERR_BUSY); /* there was no memory to keep its bytes */
    }
    send_waiting(w, line);
}

void forward_answered(struct worker *w, const struct msg *msg, uint8_t from)
{
    struct op_reply reply;
    if (from >= NODES_MAX) {
        return; /* counted as its frame came */
    }
    if (op_reply_decode(msg, &reply) != NULL) {
        w->stats.node_drops[NODE_DROP_MESSAGE]++;
        return;
    }
    struct miss *m = miss_of(w, reply.slot);
    if (m == NULL || m->gen != reply.gen || m->space != msg->space) {
        w->stats.answers_late++;
        return;
    }
    if (reply.kind != OP_REPLY_SENT_ON) {
        take_reply(w, m, &reply);
    } else if (reply.hops > m->hops) {
        m->holder = reply.to;
        m->hops = reply.hops;
        m->nonce = reply.nonce;
        m->epoch = msg->epoch;
        if (is_gone(w, m)) {
            miss_gone(w, m);
        }
    }
}

/* ---- Views ---- */

/* Calls that wait for a credit at a node that is gone start anew. */
static void end_waiting(struct worker *w, uint8_t node)
{
    struct forward_peer *peer = w->forward.peers[node];
    for (uint32_t i = 0; peer != NULL && i < WORKERS_MAX; i++) {
        struct forward_line *line = &peer->lines[i];
        if (nodeset_has(w->view.live, node)) {
            send_waiting(w, line);
            continue;
        }
        list_each_safe(link, following, &line->waiting)
        {
            call_ready(w, list_entry(link, struct call, link));
        }
    }
}

static bool origin_gone(const struct worker *w, const struct call *c)
{
    return !nodeset_has(w->view.live, c->origin.node) ||
           nonce_of(w, c->origin.node) != c->origin.nonce;
}

void forward_adopt(struct worker *w)
{
    list_each_safe(link, following, &w->forward.open)
    {
        struct miss *m = list_entry(link, struct miss, link);
        if (is_gone(w, m)) {
            miss_gone(w, m);
        }
    }
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        end_waiting(w, i);
    }
    list_each_safe(link, following, &w->forward.remotes)
    {
        struct call *c = list_entry(link, struct call, session_link);
        if (origin_gone(w, c)) {
            call_cancel(w, c); /* nobody hears its answer */
        }
    }
}

void forward_check(const struct worker *w)
{
    uint32_t open = 0;
    uint32_t in = 0;
    list_each(link, &w->forward.open)
    {
        const struct miss *m = list_entry(link, struct miss, link);
        HK_ASSERT(m->call == NULL || (m->call->miss == m && m->call->state == CALL_FORWARDED));
        open++;
    }
    list_each(link, &w->forward.remotes)
    {
        const struct call *c = list_entry(link, struct call, session_link);
        HK_ASSERT(c->remote && c->state != CALL_FREE && c->miss == NULL);
        in++;
    }
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        const struct forward_peer *peer = w->forward.peers[i];
        for (uint32_t k = 0; peer != NULL && k < WORKERS_MAX; k++) {
            open -= peer->lines[k].open;
            in -= peer->lines[k].in;
        }
    }
    HK_ASSERT(open == 0 && in == 0);
}
