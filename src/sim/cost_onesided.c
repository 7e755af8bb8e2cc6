#include "sim/cost_onesided.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "sim/heap.h"

#define PS_PER_NS 1000u
#define POST_NS 150.0
#define VERB_NS 30.0

enum event_kind {
    EVENT_POST,   /* a thread's posting leaves its card */
    EVENT_PORT,   /* the part for one memory server is at the switch's port to it */
    EVENT_APPLY,  /* it is there */
    EVENT_RETURN, /* its answer is at the port to the compute server */
    EVENT_DONE,   /* it is there */
};

struct thread {
    struct one_txn txn;
    struct posting post, done;
    struct random random;
    uint64_t begun_ps;
    uint32_t parts; /* of its posting that are under way */
    uint32_t server;
    bool running;
};

struct model {
    const struct cost_one_setup *setup;
    struct cost_wire wire;
    struct one_records records;
    struct keys keys;
    struct thread *threads;
    struct one_server servers[NODES_MAX];
    struct heap heap;
    uint64_t now_ps, age;
    bool measured;
    struct cost_one_result *result;
};

/* ---- What is there at the start ---- */

static int open_servers(struct model *m)
{
    const struct cost_one_setup *s = m->setup;
    if (!one_records_open(&m->records, s->memories, s->keys.n, s->config.value_words, s->node_words,
                          false)) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < s->computes; i++) {
        if (!one_server_open(&m->servers[i], &m->records, s->cache)) {
            return HK_ERR_NOMEM;
        }
    }
    return HK_OK;
}

static int open_threads(struct model *m)
{
    const struct cost_one_setup *s = m->setup;
    m->threads = calloc((size_t)s->computes * s->threads, sizeof *m->threads);
    if (m->threads == NULL) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < s->computes * s->threads; i++) {
        struct thread *t = &m->threads[i];
        t->server = i / s->threads;
        random_init(&t->random, s->seed * 1000003u + i);
        t->txn = (struct one_txn){.config = &s->config,
                                  .tree = &m->records.tree,
                                  .cache = m->servers[t->server].cache,
                                  .hints = &m->servers[t->server].hints,
                                  .random = &t->random};
    }
    return HK_OK;
}

static void close_model(struct model *m)
{
    for (uint32_t i = 0; i < m->setup->computes; i++) {
        one_server_close(&m->servers[i]);
    }
    one_records_close(&m->records);
    free(m->threads);
    heap_deinit(&m->heap);
}

/* ---- Transactions ---- */

static void draw(struct model *m, struct thread *t)
{
    const struct cost_one_setup *s = m->setup;
    one_txn_draw(&t->txn, ++m->age, s->requests, s->writes_ppm, &m->keys);
    t->begun_ps = m->now_ps;
    t->running = true;
}

static void finished(struct model *m, struct thread *t)
{
    t->running = false;
    HK_ASSERT(!t->txn.absent);
    if (m->measured) {
        m->result->committed++;
        m->result->aborted += t->txn.tries;
        histogram_record(&m->result->latency, (m->now_ps - t->begun_ps) / PS_PER_NS);
    }
}

static void push(struct model *m, uint64_t at_ps, enum event_kind kind, uint32_t thread,
                 uint32_t node)
{
    heap_push(&m->heap, (struct heap_entry){.at_us = at_ps, .kind = kind, .a = thread, .b = node});
}

/* Steps until something is posted. */
static void go_on(struct model *m, uint32_t number)
{
    struct thread *t = &m->threads[number];
    t->done = t->post;
    t->post.n = 0;
    t->post.delay_ns = 0;
    for (;;) {
        if (!t->running) {
            draw(m, t);
        }
        enum one_step step = one_txn_step(&t->txn, &t->done, &t->post);
        if (step == ONE_POSTED) {
            break;
        }
        if (step == ONE_FINISHED) {
            finished(m, t);
        }
    }
    const struct cost_one_setup *s = m->setup;
    double post_ns = s->post_ns > 0 ? s->post_ns : POST_NS;
    double verb_ns = s->verb_ns > 0 ? s->verb_ns : VERB_NS;
    double ns = post_ns + verb_ns * t->post.n + (double)t->post.delay_ns;
    push(m, m->now_ps + (uint64_t)(ns * PS_PER_NS), EVENT_POST, number, 0);
}

/* ---- The network ---- */

static void post(struct model *m, uint32_t number)
{
    struct thread *t = &m->threads[number];
    uint64_t at[NODES_MAX] = {0};
    for (uint32_t i = 0; i < t->post.n; i++) {
        const struct verb *v = &t->post.verbs[i];
        uint32_t node = remote_node(v->at);
        uint64_t there =
            cost_wire_leave(&m->wire, (uint8_t)t->server, verb_bytes_there(v), m->now_ps);
        at[node] = there > at[node] ? there : at[node];
        m->result->verbs[v->kind] += m->measured;
    }
    m->result->batches += m->measured;
    t->parts = 0;
    for (uint32_t i = 0; i < m->setup->memories; i++) {
        if (at[i] != 0) {
            t->parts++;
            push(m, at[i], EVENT_PORT, number, i);
        }
    }
}

/* The same for each verb of a posting to one memory server: when the last has passed. */
static uint64_t pass(struct model *m, uint32_t number, uint32_t node, enum event_kind kind)
{
    struct thread *t = &m->threads[number];
    uint8_t card = (uint8_t)(m->setup->computes + node);
    uint64_t last = m->now_ps;
    for (uint32_t i = 0; i < t->post.n; i++) {
        struct verb *v = &t->post.verbs[i];
        uint64_t at = 0;
        if (remote_node(v->at) != node) {
            continue;
        }
        switch (kind) {
        case EVENT_PORT:
            at = cost_wire_arrive(&m->wire, card, verb_bytes_there(v), m->now_ps);
            break;
        case EVENT_APPLY:
            memory_apply(&m->records.memory, v);
            at = cost_wire_leave(&m->wire, card, verb_bytes_back(v), m->now_ps);
            break;
        case EVENT_RETURN:
            at = cost_wire_arrive(&m->wire, (uint8_t)t->server, verb_bytes_back(v), m->now_ps);
            break;
        case EVENT_POST:
        case EVENT_DONE:
            HK_ASSERT(false);
        }
        last = at > last ? at : last;
    }
    return last;
}

static void handle(struct model *m, const struct heap_entry *e)
{
    enum event_kind kind = (enum event_kind)e->kind;
    switch (kind) {
    case EVENT_POST:
        post(m, e->a);
        break;
    case EVENT_PORT:
    case EVENT_APPLY:
    case EVENT_RETURN:
        push(m, pass(m, e->a, e->b, kind), kind + 1, e->a, e->b);
        break;
    case EVENT_DONE:
        if (--m->threads[e->a].parts == 0) {
            go_on(m, e->a);
        }
        break;
    }
}

static void run_until(struct model *m, uint64_t until_ps)
{
    struct heap_entry e;
    while (heap_pop(&m->heap, &e)) {
        m->now_ps = e.at_us;
        handle(m, &e);
        if (m->now_ps >= until_ps) {
            return;
        }
    }
}

static double busiest(const struct model *m, const uint64_t *before)
{
    uint64_t most = 0;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        const uint64_t busy[] = {m->wire.card_out[i].busy_ps, m->wire.port_in[i].busy_ps,
                                 m->wire.port_out[i].busy_ps, m->wire.card_in[i].busy_ps};
        for (uint32_t j = 0; j < 4; j++) {
            uint64_t spent = busy[j] - before[4 * i + j];
            most = spent > most ? spent : most;
        }
    }
    return (double)most / ((double)m->setup->run_ns * PS_PER_NS);
}

static void measure(struct model *m)
{
    const struct cost_one_setup *s = m->setup;
    struct cost_one_result *r = m->result;
    uint64_t before[4 * NODES_MAX];
    for (uint32_t i = 0; i < s->computes * s->threads; i++) {
        go_on(m, i);
    }
    run_until(m, s->warm_ns * PS_PER_NS);
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        before[4 * i] = m->wire.card_out[i].busy_ps;
        before[4 * i + 1] = m->wire.port_in[i].busy_ps;
        before[4 * i + 2] = m->wire.port_out[i].busy_ps;
        before[4 * i + 3] = m->wire.card_in[i].busy_ps;
    }
    uint64_t bytes = m->wire.bytes;
    m->measured = true;
    run_until(m, (s->warm_ns + s->run_ns) * PS_PER_NS);
    r->txns_per_s = (double)r->committed / ((double)s->run_ns / 1e9);
    r->bytes = m->wire.bytes - bytes;
    r->value_bytes_per_txn = 8.0 * s->requests * (s->config.value_words + s->config.value_more) *
                             (1 + s->writes_ppm / 1e6);
    r->wire_busy_most = busiest(m, before);
    for (uint32_t i = 0; i < s->computes; i++) {
        struct one_cache_stats c = one_cache_stats(m->servers[i].cache);
        r->copies.hits += c.hits;
        r->copies.misses += c.misses;
        r->copies.stale += c.stale;
        r->hints_good += m->servers[i].hints.good;
        r->hints_absent += m->servers[i].hints.absent;
    }
}

int cost_one_run(const struct cost_one_setup *setup, struct cost_one_result *result_out)
{
    if (setup->computes == 0 || setup->memories == 0 || setup->threads == 0 ||
        setup->computes + setup->memories > NODES_MAX || setup->requests == 0 ||
        setup->requests > ONE_REQUESTS_MAX || setup->keys.n < 2 * (uint64_t)setup->requests ||
        setup->config.value_words == 0 || setup->config.value_words > ONE_VALUE_WORDS_MAX) {
        return HK_ERR_INVALID;
    }
    struct model *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return HK_ERR_NOMEM;
    }
    memset(result_out, 0, sizeof *result_out);
    histogram_init(&result_out->latency);
    m->setup = setup;
    m->result = result_out;
    m->wire.limits = setup->wire;
    keys_init(&m->keys, &setup->keys);
    int err = open_servers(m);
    err = err != HK_OK ? err : open_threads(m);
    if (err == HK_OK) {
        measure(m);
    }
    close_model(m);
    free(m);
    return err;
}
