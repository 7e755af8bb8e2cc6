#include "support/node_cluster.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/random.h"

struct parcel {
    struct parcel *next;
    uint32_t n;
    uint8_t bytes[];
};

struct place {
    struct cluster *cluster;
    uint32_t node;
    uint32_t worker;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    struct parcel *first;
    struct parcel **last;
    struct parcel *current; /* handed to the worker */
    bool wake;
    pthread_t thread;
    _Atomic bool halt;
    bool running;
    bool stall;
};

struct member {
    struct node *node;
    struct env env;
    uint64_t nonce;
    uint64_t generation; /* its state file */
    uint32_t epoch;
    _Atomic bool alive;
    _Atomic(cluster_order_fn *) order; /* for worker 0's thread */
};

struct cluster {
    struct cluster_config config;
    struct member members[CLUSTER_NODES_MAX];
    struct place places[CLUSTER_NODES_MAX][CLUSTER_WORKERS_MAX];
    bool cut[CLUSTER_NODES_MAX][CLUSTER_NODES_MAX];
    uint64_t now_us;
    uint64_t wall_ms;
    uint64_t ahead_ms; /* modulo 2^64 */
    bool threads;
    struct random random;
    /* cluster_call */
    const struct op *op;
    const struct txn_request *txn;
    uint32_t op_node;
    uint32_t op_worker;
    uint32_t sessions[CLUSTER_NODES_MAX][CLUSTER_WORKERS_MAX];
    bool opened[CLUSTER_NODES_MAX][CLUSTER_WORKERS_MAX];
    bool answered;
    struct cluster_answer answer;
    struct cluster_txn_answer txn_answer;
    /* cluster_config.gives */
    struct given *given;
    uint32_t given_n;
    bool delay_large;
    struct cluster_faults faults;
};

/* A frame that was given away, and what it was then. */
struct given {
    struct given *next;
    struct pieces pieces;
    uint32_t n;
    uint8_t copy[];
};

_Thread_local bool cluster_in_node;

/* ---- env: each callback leaves the node and comes back to it ---- */

static bool take_parcel(void *context, uint32_t worker, struct bytes *frame_out)
{
    struct place *places = context;
    struct place *p = &places[worker];
    free(p->current);
    pthread_mutex_lock(&p->lock);
    p->current = p->first;
    if (p->current != NULL) {
        p->first = p->current->next;
        if (p->first == NULL) {
            p->last = &p->first;
        }
    }
    pthread_mutex_unlock(&p->lock);
    if (p->current == NULL) {
        return false;
    }
    *frame_out = bytes_of(p->current->bytes, p->current->n);
    return true;
}

static bool env_receive(void *context, uint32_t worker, struct bytes *frame_out)
{
    cluster_in_node = false;
    bool found = take_parcel(context, worker, frame_out);
    cluster_in_node = true;
    return found;
}

static void wake_place(struct place *p)
{
    pthread_mutex_lock(&p->lock);
    p->wake = true;
    pthread_cond_signal(&p->woken);
    pthread_mutex_unlock(&p->lock);
}

static void put_parcel(struct place *p, struct bytes frame, bool hasty)
{
    struct parcel *parcel = malloc(sizeof *parcel + frame.n);
    assert_non_null(parcel);
    parcel->next = NULL;
    parcel->n = frame.n;
    memcpy(parcel->bytes, frame.at, frame.n);
    pthread_mutex_lock(&p->lock);
    if (hasty && p->first != NULL) {
        parcel->next = p->first;
        p->first = parcel;
    } else {
        *p->last = parcel;
        p->last = &parcel->next;
    }
    p->wake = true;
    pthread_cond_signal(&p->woken);
    pthread_mutex_unlock(&p->lock);
}

static void send_parcel(void *context, uint32_t worker, uint8_t to, struct bytes frame)
{
    struct place *from = &((struct place *)context)[worker];
    struct cluster *c = from->cluster;
    assert_true(to < c->config.nodes);
    if (!atomic_load(&c->members[to].alive) || c->cut[from->node][to]) {
        return;
    }
    /* Kind and target worker stand at fixed places of the header (docs/WIRE.md). */
    struct place *p = &c->places[to][frame.at[18] % c->config.workers[to]];
    if (c->threads || frame.at[14] != FRAME_LANE) {
        put_parcel(p, frame, false);
        return;
    }
    if (random_below(&c->random, 1000) < c->faults.lost) {
        return;
    }
    put_parcel(p, frame, random_below(&c->random, 1000) < c->faults.hasty);
    if (random_below(&c->random, 1000) < c->faults.doubled) {
        put_parcel(p, frame, false);
    }
}

static void env_send(void *context, uint32_t worker, uint8_t to, struct bytes frame)
{
    cluster_in_node = false;
    send_parcel(context, worker, to, frame);
    cluster_in_node = true;
}

static void env_give(void *context, uint32_t worker, uint8_t to, struct pieces *frame)
{
    struct cluster *c = ((struct place *)context)[worker].cluster;
    uint32_t n = frame->head_bytes + frame->tail.n;
    cluster_in_node = false;
    struct given *given = malloc(sizeof *given + n);
    assert_non_null(given);
    *given = (struct given){.next = c->given, .pieces = *frame, .n = n};
    pieces_copy(frame, 0, given->copy, n);
    c->given = given;
    c->given_n++;
    if (!c->delay_large) {
        send_parcel(context, worker, to, bytes_of(given->copy, n));
    }
    cluster_in_node = true;
}

static bool env_under_way(void *context, uint32_t worker, uint8_t to)
{
    (void)to;
    return ((struct place *)context)[worker].cluster->delay_large;
}

static void end_given(struct cluster *c)
{
    while (c->given != NULL) {
        struct given *given = c->given;
        uint8_t *now = malloc(given->n);
        assert_non_null(now);
        pieces_copy(&given->pieces, 0, now, given->n);
        assert_memory_equal(now, given->copy, given->n);
        pieces_free(&given->pieces);
        c->given = given->next;
        free(now);
        free(given);
    }
}

void cluster_disturb(struct cluster *c, struct cluster_faults faults)
{
    c->faults = faults;
}

uint32_t cluster_given(const struct cluster *c)
{
    return c->given_n;
}

void cluster_delay_large(struct cluster *c, bool delay)
{
    c->delay_large = delay;
}

static bool env_request(void *context, uint32_t worker, struct request *request_out)
{
    struct place *p = &((struct place *)context)[worker];
    struct cluster *c = p->cluster;
    if (c->config.client.request != NULL) {
        return c->config.client.request(c->config.client.context, p->node, worker, request_out);
    }
    if (c->op == NULL || p->node != c->op_node || worker != c->op_worker) {
        return false;
    }
    *request_out =
        (struct request){.session = c->sessions[p->node][worker], .tag = 7, .op = *c->op};
    request_out->txn = c->txn;
    c->op = NULL;
    return true;
}

static void take_txn_answer(struct cluster *c, const struct reply *reply)
{
    c->txn_answer.kind = reply->answer.kind;
    c->txn_answer.number = reply->answer.number;
    c->txn_answer.n = reply->answers_n;
    for (uint32_t i = 0; i < reply->answers_n && i < CLUSTER_OPS_MAX; i++) {
        struct cluster_op_answer *a = &c->txn_answer.answers[i];
        a->kind = reply->answers[i].kind;
        a->number = reply->answers[i].number;
        a->version = reply->versions[i];
        a->n = reply->answers[i].value.n;
        if (a->n > 0) {
            memcpy(a->value, reply->answers[i].value.at,
                   a->n < sizeof a->value ? a->n : sizeof a->value - 1);
        }
    }
}

static void env_reply(void *context, uint32_t worker, const struct reply *reply)
{
    struct place *p = &((struct place *)context)[worker];
    struct cluster *c = p->cluster;
    if (!atomic_load(&c->members[p->node].alive)) {
        return; /* it is being killed: nobody hears it */
    }
    if (c->config.client.reply != NULL) {
        c->config.client.reply(c->config.client.context, p->node, worker, reply);
        return;
    }
    assert_int_equal(reply->tag, 7);
    c->answered = true;
    take_txn_answer(c, reply);
    c->answer.kind = reply->answer.kind;
    c->answer.applied = reply->answer.applied;
    c->answer.number = reply->answer.number;
    c->answer.version = reply->version;
    c->answer.n = reply->answer.value.n;
    if (c->answer.n > 0 && c->answer.n <= sizeof c->answer.value) {
        memcpy(c->answer.value, reply->answer.value.at, c->answer.n);
    }
}

static void env_wake(void *context, uint32_t worker)
{
    wake_place(&((struct place *)context)[worker]);
}

static uint64_t env_wall_ms(void *context)
{
    struct cluster *c = ((struct place *)context)[0].cluster;
    return c->threads ? clock_wall_ms() : c->wall_ms;
}

static void env_persist(void *context, uint64_t generation, uint32_t epoch)
{
    struct place *p = context;
    p->cluster->members[p->node].generation = generation;
    p->cluster->members[p->node].epoch = epoch;
}

/* ---- Nodes ---- */

static void start_node(struct cluster *c, uint32_t i)
{
    struct member *m = &c->members[i];
    uint32_t lease_us = c->config.lease_us != 0 ? c->config.lease_us : 200000;
    bool last = i + 1 == c->config.nodes && c->config.memory_max_last != 0;
    uint32_t sessions_max = c->config.sessions_max != 0 ? c->config.sessions_max : 16;
    m->nonce = random_next(&c->random) | 1;
    struct node_config config = {
        .self = (uint8_t)i,
        .workers = c->config.workers[i],
        .cluster = 77,
        .seed = random_next(&c->random),
        .calls_max = sessions_max > 64 ? 4 * sessions_max : 256,
        .flows_max = 256,
        .sessions_max = sessions_max,
        .rules_off = c->config.rules_off,
        .view =
            {
                .self = (uint8_t)i,
                .nonce = m->nonce,
                .configured = (nodeset_of((uint8_t)c->config.nodes) - 1),
                .lease_us = lease_us,
                .margin_us = lease_us / 10,
                .heartbeat_us = lease_us / 5,
                .suspect_us = lease_us * 3 / 5,
                .cids_per_member = 4,
                .kept_generation = m->generation,
                .kept_epoch = m->epoch,
                .seed = random_next(&c->random),
            },
    };
    config.spaces[0] = (struct space_config){
        .ops = c->config.ops != NULL ? c->config.ops : &hermes_ops,
        .engine = c->config.engine != NULL ? c->config.engine : &c->config.hermes,
        .async_reads = c->config.async_reads,
        .hot = c->config.hot,
        .store = {.memory_max = last ? c->config.memory_max_last : c->config.memory_max,
                  .keys_expected = c->config.keys_expected,
                  .value_bytes_max = 1u << 20,
                  .seed = random_next(&c->random)},
    };
    m->env = (struct env){
        .context = c->places[i],
        .receive = env_receive,
        .send = env_send,
        .request = env_request,
        .reply = env_reply,
        .wake = env_wake,
        .wall_ms = env_wall_ms,
        .persist = env_persist,
        .give = c->config.gives ? env_give : NULL,
        .under_way = c->config.gives ? env_under_way : NULL,
        .ordered = c->config.ordered,
        .intact = c->config.ordered,
    };
    memset(c->opened[i], 0, sizeof c->opened[i]);
    if (c->config.adjust != NULL) {
        c->config.adjust(&config, i);
    }
    assert_int_equal(node_create(&config, &m->env, cluster_now(c), &m->node), HK_OK);
    atomic_store(&m->alive, true);
}

struct cluster *cluster_create(const struct cluster_config *config)
{
    struct cluster *c = calloc(1, sizeof *c);
    assert_non_null(c);
    c->config = *config;
    c->now_us = 1000000;
    c->wall_ms = 1700000000000u;
    random_init(&c->random, config->seed);
    for (uint32_t i = 0; i < config->nodes; i++) {
        for (uint32_t k = 0; k < CLUSTER_WORKERS_MAX; k++) {
            struct place *p = &c->places[i][k];
            p->cluster = c;
            p->node = i;
            p->worker = k;
            p->last = &p->first;
            pthread_mutex_init(&p->lock, NULL);
            pthread_cond_init(&p->woken, NULL);
        }
        start_node(c, i);
    }
    return c;
}

static void empty_place(struct place *p)
{
    while (p->first != NULL) {
        struct parcel *next = p->first->next;
        free(p->first);
        p->first = next;
    }
    p->last = &p->first;
    free(p->current);
    p->current = NULL;
}

void cluster_destroy(struct cluster *c)
{
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        if (c->members[i].node != NULL) {
            node_destroy(c->members[i].node);
        }
    }
    end_given(c);
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        for (uint32_t k = 0; k < CLUSTER_WORKERS_MAX; k++) {
            empty_place(&c->places[i][k]);
            pthread_mutex_destroy(&c->places[i][k].lock);
            pthread_cond_destroy(&c->places[i][k].woken);
        }
    }
    free(c);
}

struct node *cluster_node(struct cluster *c, uint32_t node)
{
    return c->members[node].node;
}

uint32_t cluster_workers(const struct cluster *c, uint32_t node)
{
    return c->config.workers[node];
}

bool cluster_alive(const struct cluster *c, uint32_t node)
{
    return atomic_load(&c->members[node].alive);
}

uint64_t cluster_now(const struct cluster *c)
{
    return c->threads ? clock_boot_us() : c->now_us;
}

uint64_t *cluster_wall_ms(struct cluster *c)
{
    return &c->wall_ms;
}

void cluster_calendar(struct cluster *c, int64_t ms)
{
    c->ahead_ms += (uint64_t)ms;
    c->wall_ms += (uint64_t)ms;
}

/* ---- Virtual time ---- */

static void poll_node(struct cluster *c, uint32_t i)
{
    struct member *m = &c->members[i];
    for (uint32_t k = 0; k < c->config.workers[i]; k++) {
        struct worker *w = node_worker(m->node, k);
        if (c->places[i][k].stall) {
            continue;
        }
        cluster_in_node = true;
        struct poll_result r = worker_poll(w, c->now_us, 16);
        cluster_in_node = false;
        worker_check(w);
        if ((r.flags & POLL_WIPE) != 0) {
            cluster_kill(c, i);
            cluster_restart(c, i);
            return;
        }
        if ((r.flags & POLL_LEFT) != 0) {
            cluster_kill(c, i);
            return;
        }
    }
}

void cluster_step(struct cluster *c, uint64_t us)
{
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        if (cluster_alive(c, i)) {
            poll_node(c, i);
        }
    }
    c->now_us += us;
    c->wall_ms = 1700000000000u + c->now_us / 1000 + c->ahead_ms;
}

void cluster_until(struct cluster *c, bool (*done)(struct cluster *c, void *context), void *context,
                   uint64_t bound_us)
{
    uint64_t end = c->now_us + bound_us;
    while (!done(c, context)) {
        assert_true(c->now_us < end);
        cluster_step(c, 100);
    }
}

bool cluster_serving(struct cluster *c, void *context)
{
    uint32_t epoch = 0;
    (void)context;
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        if (!cluster_alive(c, i)) {
            continue;
        }
        struct node_status s;
        node_status(c->members[i].node, cluster_now(c), &s);
        if (s.status != VIEW_STATUS_SERVING || s.epoch_adopted != s.view.epoch ||
            (epoch != 0 && s.view.epoch != epoch)) {
            return false;
        }
        for (uint32_t k = 0; k < c->config.nodes; k++) {
            if (nodeset_has(s.view.live, (uint8_t)k) != cluster_alive(c, k)) {
                return false;
            }
        }
        epoch = s.view.epoch;
    }
    return true;
}

void cluster_kill(struct cluster *c, uint32_t node)
{
    struct member *m = &c->members[node];
    atomic_store(&m->alive, false);
    c->op = NULL;
    node_destroy(m->node);
    m->node = NULL;
    for (uint32_t k = 0; k < CLUSTER_WORKERS_MAX; k++) {
        empty_place(&c->places[node][k]);
    }
}

void cluster_restart(struct cluster *c, uint32_t node)
{
    start_node(c, node);
}

void cluster_cut(struct cluster *c, uint32_t from, uint32_t to, bool cut)
{
    c->cut[from][to] = cut;
}

void cluster_stall(struct cluster *c, uint32_t node, uint32_t worker, bool stall)
{
    c->places[node][worker].stall = stall;
}

static bool has_answer(struct cluster *c, void *context)
{
    (void)context;
    return c->answered;
}

struct cluster_answer cluster_call(struct cluster *c, uint32_t node, const struct op *op)
{
    return cluster_call_at(c, node, 0, op);
}

void cluster_begin(struct cluster *c, uint32_t node, uint32_t worker, const struct op *op,
                   const struct txn_request *txn)
{
    if (!c->opened[node][worker]) {
        int err = worker_session_open(node_worker(c->members[node].node, worker),
                                      &c->sessions[node][worker]);
        assert_int_equal(err, HK_OK);
        c->opened[node][worker] = true;
    }
    c->op = op;
    c->txn = txn;
    c->op_node = node;
    c->op_worker = worker;
    c->answered = false;
    memset(&c->answer, 0, sizeof c->answer);
    memset(&c->txn_answer, 0, sizeof c->txn_answer);
}

struct cluster_answer cluster_end(struct cluster *c)
{
    cluster_until(c, has_answer, NULL, 20000000);
    c->txn = NULL;
    return c->answer;
}

struct cluster_answer cluster_call_at(struct cluster *c, uint32_t node, uint32_t worker,
                                      const struct op *op)
{
    cluster_begin(c, node, worker, op, NULL);
    return cluster_end(c);
}

struct cluster_txn_answer cluster_transact(struct cluster *c, uint32_t node, uint32_t worker,
                                           const struct txn_request *txn)
{
    struct op op = {.kind = OP_GET};
    cluster_begin(c, node, worker, &op, txn);
    (void)cluster_end(c);
    return c->txn_answer;
}

void cluster_inject(struct cluster *c, uint32_t node, uint32_t worker, struct bytes frame)
{
    put_parcel(&c->places[node][worker], frame, false);
}

uint64_t cluster_nonce(const struct cluster *c, uint32_t node)
{
    return c->members[node].nonce;
}

/* ---- Threads ---- */

static void wait_place(struct place *p, uint64_t us)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + us * 1000;
    until.tv_sec += (time_t)(ns / 1000000000u);
    until.tv_nsec = (long)(ns % 1000000000u);
    pthread_mutex_lock(&p->lock);
    if (!p->wake && p->first == NULL) {
        pthread_cond_timedwait(&p->woken, &p->lock, &until);
    }
    p->wake = false;
    pthread_mutex_unlock(&p->lock);
}

static void *run_worker(void *argument)
{
    struct place *p = argument;
    struct worker *w = node_worker(p->cluster->members[p->node].node, p->worker);
    struct member *m = &p->cluster->members[p->node];
    while (!atomic_load(&p->halt)) {
        cluster_order_fn *order = p->worker == 0 ? atomic_exchange(&m->order, NULL) : NULL;
        if (order != NULL) {
            order(w);
        }
        struct poll_result r = worker_poll(w, clock_boot_us(), 32);
        assert_int_equal(r.flags, 0);
        if (r.events > 0) {
            continue;
        }
        uint64_t now = clock_boot_us();
        uint64_t due = worker_deadline(w);
        if (due > now && worker_sleep(w)) {
            wait_place(p, due - now < 5000 ? due - now : 5000);
            worker_awake(w);
        }
    }
    return NULL;
}

void cluster_threads(struct cluster *c)
{
    c->threads = true;
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        for (uint32_t k = 0; k < c->config.workers[i]; k++) {
            struct place *p = &c->places[i][k];
            p->running = true;
            assert_int_equal(pthread_create(&p->thread, NULL, run_worker, p), 0);
        }
    }
}

void cluster_order(struct cluster *c, uint32_t node, cluster_order_fn *order)
{
    atomic_store(&c->members[node].order, order);
    wake_place(&c->places[node][0]);
}

void cluster_halt(struct cluster *c, uint32_t node)
{
    atomic_store(&c->members[node].alive, false);
    for (uint32_t k = 0; k < c->config.workers[node]; k++) {
        struct place *p = &c->places[node][k];
        if (p->running) {
            atomic_store(&p->halt, true);
            wake_place(p);
            pthread_join(p->thread, NULL);
            p->running = false;
        }
    }
}

void cluster_join(struct cluster *c)
{
    for (uint32_t i = 0; i < c->config.nodes; i++) {
        cluster_halt(c, i);
    }
}
