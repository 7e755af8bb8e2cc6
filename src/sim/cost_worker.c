/* A worker's surroundings in the cost model: frames come from its inbox and go to its outbox,
 * requests from its sessions; what it does is counted and priced. */
#include "sim/cost_cluster_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define EVENTS_MAX 64u /* of a kind, a poll: as the server's */

/* What the poll has cost so far; of transactions also by its parts. */
static uint64_t spent_ps_of(const struct cost_worker *w, double parts[COST_PARTS])
{
    const struct cost_cpu *cpu = &w->side->cluster->cpu;
    const struct node_stats *now = worker_stats(w->worker);
    const struct node_stats *then = &w->before;
    double ns = cpu->poll;
    ns += cpu->frame *
          (double)(now->frames_in - then->frames_in + now->frames_out - then->frames_out);
    ns += cpu->byte * (double)(now->bytes_in - then->bytes_in + now->bytes_out - then->bytes_out);
    ns += cpu->packet * (double)w->packets;
    if (w->side->cluster->work != NULL) {
        parts[COST_NETWORK] = ns;
        return (uint64_t)(cost_work_ns(w, parts) * COST_PS_PER_NS);
    }
    ns += cpu->message *
          (double)(now->messages_in - then->messages_in + now->messages_out - then->messages_out);
    /* A node that has an operation forwarded does all that a read takes but the copy. */
    ns += cpu->read * (double)(now->reads - then->reads + now->misses - then->misses);
    ns += cpu->update * (double)(now->updates - then->updates);
    ns += (cpu->step + cpu->step_miss) *
          (double)(now->key_steps - then->key_steps + now->flow_steps - then->flow_steps);
    ns += cpu->read_miss * (double)(now->reads - then->reads);
    ns += cpu->home_miss *
          (double)(now->at_home - then->at_home + now->forwarded_in - then->forwarded_in);
    return (uint64_t)(ns * COST_PS_PER_NS);
}

static uint64_t spent_ps(const struct cost_worker *w)
{
    double parts[COST_PARTS] = {0};
    return spent_ps_of(w, parts);
}

static struct cost_worker *worker_of(void *context, uint32_t worker)
{
    return &((struct cost_side *)context)->workers[worker];
}

static bool env_receive(void *context, uint32_t worker, struct bytes *frame_out)
{
    struct cost_worker *w = worker_of(context, worker);
    struct cost_parcel *p = w->inbox.first;
    free(w->current);
    w->current = NULL;
    if (p == NULL || p->at_ps > w->now_ps) {
        return false;
    }
    w->inbox.first = p->next;
    if (p->next == NULL) {
        w->inbox.last = NULL;
    }
    w->current = p;
    w->packets += cost_wire_packets(&w->side->cluster->wire.limits, p->n);
    *frame_out = bytes_of(p->bytes, p->n);
    return true;
}

static void env_send(void *context, uint32_t worker, uint8_t to, struct bytes frame)
{
    struct cost_worker *w = worker_of(context, worker);
    struct frame f;
    struct cost_parcel *p = malloc(sizeof *p + frame.n);
    HK_ASSERT(p != NULL);
    memcpy(p->bytes, frame.at, frame.n);
    p->next = NULL;
    p->n = frame.n;
    p->from = w->side->index;
    p->to = to;
    HK_ASSERT(to < w->side->cluster->setup.nodes);
    enum frame_drop drop = frame_open(frame, COST_CLUSTER_ID, to, cost_nonce(to), &f);
    HK_ASSERT(drop == FRAME_DROP_NONE);
    p->worker = (uint8_t)(f.target_worker % w->side->cluster->setup.workers);
    w->packets += cost_wire_packets(&w->side->cluster->wire.limits, p->n);
    if (w->outbox.last == NULL) {
        w->outbox.first = p;
    } else {
        w->outbox.last->next = p;
    }
    w->outbox.last = p;
}

static bool env_request(void *context, uint32_t worker, struct request *request_out)
{
    struct cost_worker *w = worker_of(context, worker);
    struct cost_cluster *c = w->side->cluster;
    if (w->offered == 0 || (c->filling && c->work == NULL && c->fill_next == c->setup.keys)) {
        return false;
    }
    uint32_t i = w->idle[w->idle_first];
    struct cost_session *s = &w->sessions[i];
    if (c->work != NULL && !cost_work_request(w, s, request_out)) {
        return false;
    }
    w->idle_first = (w->idle_first + 1) % COST_WINDOW_MAX;
    w->idle_n--;
    w->offered--;
    s->busy = true;
    if (!s->goes_on) {
        s->issued_ps = w->now_ps + spent_ps(w);
    }
    s->goes_on = false;
    if (c->work != NULL) {
        request_out->tag = i;
        return true;
    }
    s->key = c->filling ? c->fill_next++ : keys_draw(&c->keys, &c->random);
    s->write = c->filling || random_chance(&c->random, c->load.writes_ppm);
    *request_out = (struct request){
        .session = s->session,
        .tag = i,
        .op = {.kind = s->write ? OP_SET : OP_GET, .key = bytes_of(&s->key, sizeof s->key)},
    };
    if (s->write) {
        request_out->op.value = bytes_of(c->value, c->setup.value_bytes);
    }
    return true;
}

static void record(struct cost_cluster *c, const struct cost_session *s, uint64_t end_ps,
                   bool failed, bool refused)
{
    struct cost_result *r = c->result;
    /* A poll is carried out when it begins: what it does may end in another part of the run. */
    if (end_ps < c->from_ps || end_ps >= c->until_ps) {
        return;
    }
    if (failed || refused) {
        r->failed += failed;
        r->refused += refused;
        return;
    }
    r->remote += s->txn != NULL && s->txn->remote;
    uint64_t ns = (end_ps - s->issued_ps) / COST_PS_PER_NS;
    histogram_record(s->write ? &r->write : &r->read, ns);
    r->writes += s->write;
    r->reads += !s->write;
    if (c->load.slice_ns > 0) {
        uint64_t slice = (end_ps - c->from_ps) / (c->load.slice_ns * COST_PS_PER_NS);
        if (slice < COST_SLICES_MAX) {
            r->slices[slice]++;
            r->slices_n = slice >= r->slices_n ? (uint32_t)slice + 1 : r->slices_n;
        }
    }
}

static void env_reply(void *context, uint32_t worker, const struct reply *reply)
{
    struct cost_worker *w = worker_of(context, worker);
    struct cost_cluster *c = w->side->cluster;
    struct cost_session *s = &w->sessions[reply->tag];
    bool failed = reply->answer.kind == ANSWER_ERROR;
    bool refused = false;
    s->goes_on = c->work != NULL && cost_work_reply(w, s, reply, &failed, &refused);
    s->busy = s->goes_on;
    c->filled += c->filling && !failed && !refused;
    if (s->goes_on || (reply->tag < c->load.window && cost_is_client(w->side))) {
        w->idle[(w->idle_first + w->idle_n) % COST_WINDOW_MAX] = (uint32_t)reply->tag;
        w->idle_n++;
    }
    if (c->result != NULL && !s->goes_on) {
        record(c, s, w->now_ps + spent_ps(w), failed, refused);
    }
}

static void env_wake(void *context, uint32_t worker)
{
    struct cost_worker *w = worker_of(context, worker);
    cost_wake(w, w->side->cluster->now_ps);
}

static uint64_t env_wall_ms(void *context)
{
    const struct cost_side *side = context;
    return 1 + side->cluster->now_ps / (1000 * (uint64_t)COST_PS_PER_US);
}

static void env_persist(void *context, uint64_t generation, uint32_t epoch)
{
    (void)context; /* nobody comes back here */
    (void)generation;
    (void)epoch;
}

void cost_env(struct cost_side *side, struct env *env_out)
{
    *env_out = (struct env){
        .context = side,
        .receive = env_receive,
        .send = env_send,
        .request = env_request,
        .reply = env_reply,
        .wake = env_wake,
        .wall_ms = env_wall_ms,
        .persist = env_persist,
        .ordered = true, /* one path, on which nothing is lost */
    };
}

/* How many times as long things take at the worker's node. */
static double slowness(const struct cost_worker *w)
{
    double slow = w->side->cluster->setup.memory_slow;
    return slow > 0 && cost_is_memory(w->side) ? slow : 1;
}

uint64_t cost_poll(struct cost_worker *w)
{
    struct cost_cluster *c = w->side->cluster;
    w->now_ps = c->now_ps;
    w->before = *worker_stats(w->worker);
    w->packets = 0;
    w->txns = w->txn_ops = 0;
    w->looks_before = worker_looks(w->worker, 0);
    w->offered = cost_offer(w);
    (void)worker_poll(w->worker, c->now_ps / COST_PS_PER_US, EVENTS_MAX);
    double parts[COST_PARTS] = {0};
    double slow = slowness(w);
    uint64_t ps = (uint64_t)(slow * (double)spent_ps_of(w, parts));
    w->busy_ps += ps;
    for (uint32_t i = 0; i < COST_PARTS; i++) {
        w->part_ns[i] += slow * parts[i];
    }
    return ps;
}

void cost_sessions_reset(struct cost_worker *w)
{
    const struct cost_cluster *c = w->side->cluster;
    uint32_t window = cost_is_client(w->side) ? c->load.window : 0;
    w->idle_first = 0;
    w->idle_n = 0;
    for (uint32_t i = 0; i < c->setup.window_most; i++) {
        if (w->sessions[i].goes_on || (i < window && !w->sessions[i].busy)) {
            w->idle[w->idle_n++] = i;
        }
    }
    if (cost_offer(w) > 0 && w->asleep) {
        cost_wake(w, c->now_ps);
    }
}
