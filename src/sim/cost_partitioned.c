#include "sim/cost_partitioned.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "engine/lotus/lfu.h"
#include "load/keys.h"
#include "sim/heap.h"

#define PS_PER_NS 1000u
#define REQUESTS_MAX 32u
#define RECORD_BYTES 64u /* key, value, hash, counts */
#define NODE_BYTES 1024u
#define COPY_BYTES (NODE_BYTES + 32u)
#define NODE_ENTRIES 42u /* of 61, filled as random insertion fills them */
#define LEVELS_MAX 12u
#define ITEM_BYTES 24u    /* a key in a request, a value in an answer, with what goes with them */
#define MESSAGE_BYTES 64u /* header of a message in its frame */
#define READ_BYTES 16u    /* transport headers, as in onesided/verbs.c */
#define ACK_BYTES 4u
#define POST_NS 150.0 /* a thread: to post, and to see the end */

const char *const cost_part_names[COST_PART_CACHES] = {
    [COST_PART_RECORDS] = "records", [COST_PART_NODES] = "nodes"};

/* ---- A cache ---- */

/* A place's key and value are a number and 1; its mark says that it was changed. */
struct cache {
    struct lfu_place *places;
    uint64_t sets;
};

static struct lfu_place *set_of(const struct cache *c, uint64_t id)
{
    uint64_t h = (id ^ id >> 31) * UINT64_C(0x9e3779b97f4a7c15);
    return &c->places[(h >> 20) % c->sets * LFU_WAYS];
}

static struct lfu_place *look(const struct cache *c, uint64_t id)
{
    return lfu_use(set_of(c, id), id);
}

/* Returns whether one that was changed left for it, and which. */
static bool admit(struct cache *c, uint64_t id, bool dirty, uint64_t *left_out)
{
    struct lfu_place left;
    lfu_admit(set_of(c, id), id, 1, &left)->mark = dirty;
    *left_out = left.key;
    return left.value != 0 && left.mark != 0;
}

/* ---- The model ---- */

enum event_kind { EVENT_SEND, EVENT_PORT, EVENT_THERE, EVENT_SERVED, EVENT_RETURN, EVENT_DONE };

struct thread {
    struct random random;
    uint64_t keys[REQUESTS_MAX];
    bool writes[REQUESTS_MAX];
    uint64_t begun_ps;
    uint32_t server;
    uint32_t at;                                /* nodes: the request ... */
    uint32_t level;                             /* ... and the level that are searched */
    uint32_t parts;                             /* answers that are due */
    uint32_t there[NODES_MAX], back[NODES_MAX]; /* bytes of what is under way */
    uint32_t items[NODES_MAX];
    uint32_t flush[NODES_MAX]; /* records: changed ones that go with the next message there */
    bool missed[REQUESTS_MAX];
    double cpu_ns; /* since it was last busy with the network */
};

struct model {
    const struct cost_part_setup *setup;
    struct cost_wire wire;
    struct keys keys;
    struct cache caches[NODES_MAX];
    struct cost_queue memory[NODES_MAX];
    struct thread *threads;
    uint64_t spans[LEVELS_MAX];  /* keys below a node of the level */
    uint64_t firsts[LEVELS_MAX]; /* numbers of a level's nodes begin here */
    uint32_t levels;
    struct heap heap;
    uint64_t now_ps;
    bool measured;
    struct cost_part_result *result;
};

static void push(struct model *m, uint64_t at_ps, enum event_kind kind, uint32_t thread,
                 uint32_t node)
{
    heap_push(&m->heap, (struct heap_entry){.at_us = at_ps, .kind = kind, .a = thread, .b = node});
}

static void draw(struct model *m, struct thread *t)
{
    const struct cost_part_setup *s = m->setup;
    uint64_t base = t->server * (s->keys / s->computes);
    for (uint32_t i = 0; i < s->requests; i++) {
        t->keys[i] = base + keys_draw(&m->keys, &t->random);
        t->writes[i] = random_chance(&t->random, s->writes_ppm);
        t->missed[i] = false;
    }
    t->begun_ps = m->now_ps;
    t->at = 0;
    t->level = m->levels;
}

static void finish(struct model *m, struct thread *t)
{
    uint64_t end_ps = m->now_ps + (uint64_t)(t->cpu_ns * PS_PER_NS);
    if (m->measured) {
        m->result->committed++;
        histogram_record(&m->result->latency, (end_ps - t->begun_ps) / PS_PER_NS);
    }
}

static uint32_t node_of(const struct model *m, uint64_t id)
{
    return (uint32_t)(id % m->setup->memories);
}

static void put_part(struct thread *t, uint32_t node, uint32_t there, uint32_t back, uint32_t items)
{
    t->there[node] += there;
    t->back[node] += back;
    t->items[node] += items;
}

/* Records: what of the transaction is not cached is asked for, all at once. True: something is. */
static bool ask_records(struct model *m, struct thread *t)
{
    struct cache *c = &m->caches[t->server];
    bool any = false;
    for (uint32_t i = 0; i < m->setup->requests; i++) {
        struct lfu_place *there = look(c, t->keys[i]);
        t->cpu_ns += cost_measured.read;
        m->result->hits += m->measured && there != NULL;
        m->result->misses += m->measured && there == NULL;
        if (there != NULL) {
            there->mark |= t->writes[i];
            continue;
        }
        t->missed[i] = any = true;
        put_part(t, node_of(m, t->keys[i]), ITEM_BYTES, ITEM_BYTES, 1);
    }
    for (uint32_t i = 0; i < m->setup->memories; i++) {
        if (t->items[i] > 0) {
            put_part(t, i, MESSAGE_BYTES + t->flush[i] * ITEM_BYTES, MESSAGE_BYTES, t->flush[i]);
            t->flush[i] = 0;
        }
    }
    return any;
}

/* They have come. */
static void take_records(struct model *m, struct thread *t)
{
    struct cache *c = &m->caches[t->server];
    for (uint32_t i = 0; i < m->setup->requests; i++) {
        uint64_t left;
        if (!t->missed[i] || look(c, t->keys[i]) != NULL) {
            continue; /* twice in one transaction */
        }
        if (admit(c, t->keys[i], t->writes[i], &left)) {
            t->flush[node_of(m, left)]++;
            m->result->written_back += m->measured;
        }
    }
}

/* Nodes: goes on with the search; true: a node is to be read. */
static bool ask_node(struct model *m, struct thread *t)
{
    struct cache *c = &m->caches[t->server];
    while (t->at < m->setup->requests) {
        if (t->level == m->levels) {
            t->cpu_ns += cost_measured.read;
        }
        while (t->level > 0) {
            uint32_t level = t->level - 1;
            uint64_t id = m->firsts[level] + t->keys[t->at] / m->spans[level];
            struct lfu_place *copy = look(c, id);
            m->result->hits += m->measured && copy != NULL;
            m->result->misses += m->measured && copy == NULL;
            if (copy == NULL) {
                put_part(t, node_of(m, id), READ_BYTES, ACK_BYTES + NODE_BYTES, 0);
                return true;
            }
            copy->mark |= level == 0 && t->writes[t->at];
            t->level--;
        }
        t->at++;
        t->level = m->levels;
    }
    return false;
}

/* A node has come; a changed one that leaves for it is written, which nobody waits for. */
static void take_node(struct model *m, struct thread *t)
{
    uint32_t level = t->level - 1;
    uint64_t left, id = m->firsts[level] + t->keys[t->at] / m->spans[level];
    bool dirty = level == 0 && t->writes[t->at];
    if (look(&m->caches[t->server], id) != NULL) {
        return; /* another thread of this server was faster; searched again */
    }
    if (admit(&m->caches[t->server], id, dirty, &left)) {
        m->result->written_back += m->measured;
        (void)cost_wire_leave(&m->wire, (uint8_t)t->server, READ_BYTES + NODE_BYTES, m->now_ps);
        m->result->messages += m->measured;
    }
}

/* Goes on with transactions until something is to be sent. */
static void go_on(struct model *m, uint32_t number, bool resumed)
{
    struct thread *t = &m->threads[number];
    bool records = m->setup->cache == COST_PART_RECORDS;
    t->cpu_ns = 0;
    if (resumed) {
        records ? take_records(m, t) : take_node(m, t);
    }
    memset(t->there, 0, sizeof t->there);
    memset(t->back, 0, sizeof t->back);
    memset(t->items, 0, sizeof t->items);
    bool asks = resumed && !records && ask_node(m, t);
    if (!asks && resumed) {
        finish(m, t);
    }
    for (uint32_t i = 0; !asks; i++) {
        draw(m, t);
        t->begun_ps += (uint64_t)(t->cpu_ns * PS_PER_NS);
        asks = records ? ask_records(m, t) : ask_node(m, t);
        if (!asks) {
            finish(m, t);
        }
        if (!asks && i == 63) { /* all cached: time goes on now and then */
            break;
        }
    }
    double ns = t->cpu_ns + (asks ? POST_NS : 0);
    push(m, m->now_ps + (uint64_t)(ns * PS_PER_NS), asks ? EVENT_SEND : EVENT_DONE, number,
         NODES_MAX);
}

static void send(struct model *m, uint32_t number)
{
    struct thread *t = &m->threads[number];
    t->parts = 0;
    for (uint32_t i = 0; i < m->setup->memories; i++) {
        if (t->there[i] > 0) {
            uint64_t at = cost_wire_leave(&m->wire, (uint8_t)t->server, t->there[i], m->now_ps);
            t->parts++;
            m->result->messages += m->measured;
            push(m, at, EVENT_PORT, number, i);
        }
    }
}

/* The processor of a memory server: all its threads together. */
static uint64_t serve(struct model *m, const struct thread *t, uint32_t node)
{
    const struct cost_cpu *cpu = &cost_measured_txns;
    if (m->setup->cache == COST_PART_NODES) {
        return m->now_ps;
    }
    double ns = 2 * (cpu->frame + cpu->txn_message) + cpu->byte * (t->there[node] + t->back[node]) +
                cpu->txn_look * t->items[node];
    uint64_t service = (uint64_t)(ns * PS_PER_NS / m->setup->memory_threads);
    uint64_t alone = (uint64_t)(ns * PS_PER_NS) - service;
    return cost_queue_pass(&m->memory[node], m->now_ps + service, service) + alone;
}

static void handle(struct model *m, const struct heap_entry *e)
{
    struct thread *t = &m->threads[e->a];
    uint8_t card = (uint8_t)(m->setup->computes + e->b);
    switch ((enum event_kind)e->kind) {
    case EVENT_SEND:
        send(m, e->a);
        break;
    case EVENT_PORT:
        push(m, cost_wire_arrive(&m->wire, card, t->there[e->b], m->now_ps), EVENT_THERE, e->a,
             e->b);
        break;
    case EVENT_THERE:
        push(m, serve(m, t, e->b), EVENT_SERVED, e->a, e->b);
        break;
    case EVENT_SERVED:
        push(m, cost_wire_leave(&m->wire, card, t->back[e->b], m->now_ps), EVENT_RETURN, e->a,
             e->b);
        break;
    case EVENT_RETURN:
        push(m, cost_wire_arrive(&m->wire, (uint8_t)t->server, t->back[e->b], m->now_ps),
             EVENT_DONE, e->a, e->b);
        break;
    case EVENT_DONE:
        if (e->b == NODES_MAX) {
            go_on(m, e->a, false);
        } else if (--t->parts == 0) {
            go_on(m, e->a, true);
        }
        break;
    }
}

static void run_until(struct model *m, uint64_t until_ps)
{
    struct heap_entry e;
    while (m->now_ps < until_ps && heap_pop(&m->heap, &e)) {
        m->now_ps = e.at_us;
        handle(m, &e);
    }
}

/* ---- Making and measuring ---- */

static bool open_caches(struct model *m)
{
    const struct cost_part_setup *s = m->setup;
    uint32_t each = s->cache == COST_PART_RECORDS ? RECORD_BYTES : COPY_BYTES;
    for (uint32_t i = 0; i < s->computes; i++) {
        struct cache *c = &m->caches[i];
        c->sets = s->cache_bytes / each / LFU_WAYS;
        c->sets = c->sets == 0 ? 1 : c->sets;
        c->places = calloc(c->sets * LFU_WAYS, sizeof *c->places);
        if (c->places == NULL) {
            return false;
        }
    }
    return true;
}

static void number_nodes(struct model *m)
{
    uint64_t first = 0, span = 1, nodes;
    m->levels = 0;
    do {
        HK_ASSERT(m->levels < LEVELS_MAX);
        span *= NODE_ENTRIES;
        nodes = (m->setup->keys + span - 1) / span;
        m->spans[m->levels] = span;
        m->firsts[m->levels++] = first;
        first += nodes;
    } while (nodes > 1);
}

static uint64_t most_busy(const struct model *m, uint64_t *memory_out)
{
    uint64_t most = 0;
    *memory_out = 0;
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        const uint64_t busy[] = {m->wire.card_out[i].busy_ps, m->wire.port_in[i].busy_ps,
                                 m->wire.port_out[i].busy_ps, m->wire.card_in[i].busy_ps};
        for (uint32_t j = 0; j < 4; j++) {
            most = busy[j] > most ? busy[j] : most;
        }
        *memory_out = m->memory[i].busy_ps > *memory_out ? m->memory[i].busy_ps : *memory_out;
    }
    return most;
}

static void measure(struct model *m)
{
    const struct cost_part_setup *s = m->setup;
    for (uint32_t i = 0; i < s->computes * s->threads; i++) {
        struct thread *t = &m->threads[i];
        t->server = i / s->threads;
        random_init(&t->random, s->seed * 1000003u + i);
        go_on(m, i, false);
    }
    run_until(m, s->warm_ns * PS_PER_NS);
    uint64_t memory_before, memory_after, bytes = m->wire.bytes;
    uint64_t before = most_busy(m, &memory_before);
    m->measured = true;
    run_until(m, (s->warm_ns + s->run_ns) * PS_PER_NS);
    uint64_t after = most_busy(m, &memory_after);
    double run_ps = (double)s->run_ns * PS_PER_NS;
    m->result->txns_per_s = (double)m->result->committed / ((double)s->run_ns / 1e9);
    m->result->bytes = m->wire.bytes - bytes;
    m->result->wire_busy_most = (double)(after - before) / run_ps;
    m->result->memory_busy_most = (double)(memory_after - memory_before) / run_ps;
}

int cost_part_run(const struct cost_part_setup *s, struct cost_part_result *result_out)
{
    if (s->computes == 0 || s->memories == 0 || s->computes + s->memories > NODES_MAX ||
        s->threads == 0 || s->memory_threads == 0 || s->requests == 0 ||
        s->requests > REQUESTS_MAX || s->keys / s->computes == 0 || s->cache >= COST_PART_CACHES) {
        return HK_ERR_INVALID;
    }
    struct model *m = calloc(1, sizeof *m);
    if (m == NULL) {
        return HK_ERR_NOMEM;
    }
    memset(result_out, 0, sizeof *result_out);
    histogram_init(&result_out->latency);
    m->setup = s;
    m->result = result_out;
    m->wire.limits = s->wire;
    struct keys_config keys = {
        .n = s->keys / s->computes, .exponent = s->exponent, .scramble = true, .seed = s->seed};
    keys_init(&m->keys, &keys);
    number_nodes(m);
    m->threads = calloc((size_t)s->computes * s->threads, sizeof *m->threads);
    int err = m->threads != NULL && open_caches(m) ? HK_OK : HK_ERR_NOMEM;
    if (err == HK_OK) {
        measure(m);
    }
    for (uint32_t i = 0; i < s->computes; i++) {
        free(m->caches[i].places);
    }
    free(m->threads);
    heap_deinit(&m->heap);
    free(m);
    return err;
}
