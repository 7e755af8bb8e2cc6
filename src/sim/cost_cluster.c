#include "sim/cost_cluster.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/cost_cluster_internal.h"

/* ---- Events: a binary heap by time, then by the order of planning ---- */

static bool earlier(const struct cost_event *a, const struct cost_event *b)
{
    return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->order < b->order;
}

void cost_plan(struct cost_cluster *c, struct cost_event event)
{
    if (c->heap_n == c->heap_capacity) {
        c->heap_capacity = c->heap_capacity == 0 ? 4096 : 2 * c->heap_capacity;
        c->heap = realloc(c->heap, c->heap_capacity * sizeof *c->heap);
        HK_ASSERT(c->heap != NULL);
    }
    event.order = c->order++;
    size_t at = c->heap_n++;
    while (at > 0 && earlier(&event, &c->heap[(at - 1) / 2])) {
        c->heap[at] = c->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    c->heap[at] = event;
}

static struct cost_event take_earliest(struct cost_cluster *c)
{
    struct cost_event first = c->heap[0];
    struct cost_event moved = c->heap[--c->heap_n];
    size_t at = 0;
    for (size_t child = 1; child < c->heap_n; child = 2 * at + 1) {
        if (child + 1 < c->heap_n && earlier(&c->heap[child + 1], &c->heap[child])) {
            child++;
        }
        if (!earlier(&c->heap[child], &moved)) {
            break;
        }
        c->heap[at] = c->heap[child];
        at = child;
    }
    if (c->heap_n > 0) {
        c->heap[at] = moved;
    }
    return first;
}

/* ---- Workers' clocks ---- */

void cost_wake(struct cost_worker *w, uint64_t at_ps)
{
    if (w->polling || at_ps >= w->wake_ps) {
        return;
    }
    w->wake_ps = at_ps;
    w->token++;
    cost_plan(w->side->cluster,
              (struct cost_event){
                  .at_ps = at_ps, .kind = COST_EVENT_WAKE, .worker = w, .token = w->token});
}

static void send_all(struct cost_worker *w, uint64_t at_ps)
{
    struct cost_cluster *c = w->side->cluster;
    struct cost_parcel *p = w->outbox.first;
    w->outbox = (struct cost_list){NULL, NULL};
    while (p != NULL) {
        struct cost_parcel *next = p->next;
        uint64_t reach_ps = cost_wire_leave(&c->wire, p->from, p->n, at_ps);
        if (c->load.delays_ppm > 0 && random_chance(&c->random_delay, c->load.delays_ppm)) {
            reach_ps += c->load.delay_ns * COST_PS_PER_NS;
        }
        cost_plan(c, (struct cost_event){.at_ps = reach_ps, .kind = COST_EVENT_REACH, .parcel = p});
        p = next;
    }
}

/* Whether the worker has a reason to poll at once. */
static bool has_work(const struct cost_worker *w)
{
    const struct cost_cluster *c = w->side->cluster;
    return (w->inbox.first != NULL && w->inbox.first->at_ps <= c->now_ps) || cost_offer(w) > 0 ||
           worker_deadline(w->worker) * COST_PS_PER_US <= c->now_ps;
}

/* Asleep until something comes, or until its own deadline; false: there is mail. */
static bool rest(struct cost_worker *w)
{
    if (!worker_sleep(w->worker)) {
        return false;
    }
    w->asleep = true;
    if (w->inbox.first != NULL) {
        cost_wake(w, w->inbox.first->at_ps);
    }
    uint64_t deadline_us = worker_deadline(w->worker);
    if (deadline_us < COST_NEVER / COST_PS_PER_US) {
        cost_wake(w, deadline_us * COST_PS_PER_US);
    }
    return true;
}

/* The worker's clock has come to now: what its last poll sent leaves, and it polls again or
 * rests. */
static void wake(struct cost_worker *w)
{
    struct cost_cluster *c = w->side->cluster;
    w->wake_ps = COST_NEVER;
    if (w->outbox.first != NULL) {
        send_all(w, c->now_ps);
    }
    if (w->asleep) {
        worker_awake(w->worker);
        w->asleep = false;
    } else if (!has_work(w) && rest(w)) {
        return;
    }
    w->polling = true;
    uint64_t end_ps = c->now_ps + cost_poll(w);
    w->polling = false;
    cost_wake(w, end_ps);
}

static void reach(struct cost_cluster *c, struct cost_parcel *p)
{
    struct cost_side *side = &c->sides[p->to];
    if (side->dead || c->sides[p->from].dead) {
        free(p);
        return;
    }
    struct cost_worker *w = &side->workers[p->worker];
    p->at_ps = cost_wire_arrive(&c->wire, p->to, p->n, c->now_ps);
    p->next = NULL;
    if (w->inbox.last == NULL) {
        w->inbox.first = p;
    } else {
        w->inbox.last->next = p;
    }
    w->inbox.last = p;
    if (w->asleep) {
        cost_wake(w, p->at_ps);
    }
}

void cost_advance(struct cost_cluster *c, uint64_t until_ps)
{
    while (c->heap_n > 0 && c->heap[0].at_ps <= until_ps) {
        struct cost_event e = take_earliest(c);
        HK_ASSERT(e.at_ps >= c->now_ps);
        c->now_ps = e.at_ps;
        if (e.kind == COST_EVENT_REACH) {
            reach(c, e.parcel);
        } else if (!e.worker->side->dead && e.token == e.worker->token &&
                   e.worker->wake_ps == e.at_ps) {
            wake(e.worker);
        }
    }
    c->now_ps = until_ps;
}

/* ---- Runs ---- */

struct totals {
    struct node_stats stats;
    uint64_t packets, bytes, compute_frames;
};

static void add_stats(struct node_stats *sum, const struct node_stats *more, bool subtract)
{
    uint64_t *to = (uint64_t *)(void *)sum;
    const uint64_t *from = (const uint64_t *)(const void *)more;
    _Static_assert(sizeof *sum % sizeof *to == 0, "nothing but counters");
    for (size_t i = 0; i < sizeof *sum / sizeof *to; i++) {
        to[i] = subtract ? to[i] - from[i] : to[i] + from[i];
    }
}

static void totals_of(const struct cost_cluster *c, struct totals *totals_out)
{
    memset(totals_out, 0, sizeof *totals_out);
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        struct node_stats s;
        node_stats(c->sides[i].node, &s);
        add_stats(&totals_out->stats, &s, false);
        if (c->setup.memory == 0 || !cost_is_memory(&c->sides[i])) {
            totals_out->compute_frames += s.frames_out;
        }
    }
    totals_out->packets = c->wire.packets;
    totals_out->bytes = c->wire.bytes;
}

static double busiest(const struct cost_queue *queues, uint32_t n, double most, double run_ps)
{
    for (uint32_t i = 0; i < n; i++) {
        double share = (double)queues[i].busy_ps / run_ps;
        most = share > most ? share : most;
    }
    return most;
}

static void forget_busy(struct cost_cluster *c)
{
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        c->wire.card_out[i].busy_ps = c->wire.card_in[i].busy_ps = 0;
        c->wire.port_in[i].busy_ps = c->wire.port_out[i].busy_ps = 0;
        for (uint32_t k = 0; k < c->setup.workers; k++) {
            c->sides[i].workers[k].busy_ps = 0;
            memset(c->sides[i].workers[k].part_ns, 0, sizeof c->sides[i].workers[k].part_ns);
        }
    }
}

/* What memory servers did. */
static void sum_memory(const struct cost_cluster *c, double run_ps, struct cost_result *r)
{
    double busy = 0;
    uint32_t workers = 0;
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        const struct cost_side *side = &c->sides[i];
        for (uint32_t k = 0; cost_is_memory(side) && !side->dead && k < c->setup.workers; k++) {
            const struct cost_worker *w = &side->workers[k];
            for (uint32_t part = 0; part < COST_PARTS; part++) {
                r->memory_ns[part] += w->part_ns[part];
            }
            busy += (double)w->busy_ps;
            workers++;
        }
    }
    r->memory_busy = workers > 0 ? busy / run_ps / workers : 0;
}

static void sum_up(const struct cost_cluster *c, const struct totals *before, struct cost_result *r)
{
    struct totals after;
    totals_of(c, &after);
    double run_ps = (double)c->load.run_ns * COST_PS_PER_NS;
    r->seconds = run_ps / 1e12;
    r->ops_per_s = (double)(r->reads + r->writes) / r->seconds;
    r->node = after.stats;
    add_stats(&r->node, &before->stats, true);
    r->messages = r->node.messages_out;
    r->frames = r->node.frames_out;
    r->packets = after.packets - before->packets;
    r->bytes = after.bytes - before->bytes;
    uint32_t alive = 0;
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        for (uint32_t k = 0; k < c->setup.workers && !c->sides[i].dead; k++) {
            double share = (double)c->sides[i].workers[k].busy_ps / run_ps;
            r->cpu_busy += share;
            r->cpu_busy_most = share > r->cpu_busy_most ? share : r->cpu_busy_most;
            alive++;
        }
    }
    r->cpu_busy /= alive;
    uint32_t n = c->setup.nodes;
    r->wire_busy_most = busiest(c->wire.card_out, n, 0, run_ps);
    r->wire_busy_most = busiest(c->wire.card_in, n, r->wire_busy_most, run_ps);
    r->wire_busy_most = busiest(c->wire.port_in, n, r->wire_busy_most, run_ps);
    r->wire_busy_most = busiest(c->wire.port_out, n, r->wire_busy_most, run_ps);
    r->compute_frames = after.compute_frames - before->compute_frames;
    sum_memory(c, run_ps, r);
}

void cost_cluster_run(struct cost_cluster *c, const struct cost_load *load,
                      struct cost_result *result_out)
{
    struct totals before;
    memset(result_out, 0, sizeof *result_out);
    histogram_init(&result_out->read);
    histogram_init(&result_out->write);
    c->load = *load;
    if (c->load.window == 0 || c->load.window > c->setup.window_most) {
        c->load.window = c->setup.window_most;
    }
    /* What memory adds to transactions is what it added where they were measured. */
    bool skewed = load->exponent > 0 || c->work != NULL;
    const struct cost_cpu *measured = c->work != NULL ? &cost_measured_txns : &cost_measured;
    c->cpu = cost_scale(c->setup.machine, measured, skewed);
    if (cost_homed(c) && !c->setup.hot.off && load->exponent > 0) {
        /* What comes to a home is on the keys that are in no cache. */
        c->cpu.home_miss = cost_scale(c->setup.machine, &cost_measured, false).read_miss;
    }
    struct keys_config keys = {.n = c->work != NULL ? 1 : c->setup.keys,
                               .exponent = load->exponent,
                               .scramble = true,
                               .seed = c->setup.seed,
                               .fold = load->fold};
    keys_init(&c->keys, &keys);
    random_init(&c->random, load->seed);
    random_init(&c->random_delay, load->seed ^ UINT64_C(0x9e3779b97f4a7c15));
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        for (uint32_t k = 0; k < c->setup.workers && !c->sides[i].dead; k++) {
            cost_sessions_reset(&c->sides[i].workers[k]);
        }
    }
    c->from_ps = c->now_ps + load->warm_ns * COST_PS_PER_NS;
    c->until_ps = c->from_ps + load->run_ns * COST_PS_PER_NS;
    c->result = result_out;
    cost_advance(c, c->from_ps);
    totals_of(c, &before);
    forget_busy(c);
    cost_advance(c, c->until_ps);
    c->result = NULL;
    sum_up(c, &before, result_out);
}

void cost_cluster_crash(struct cost_cluster *c, uint32_t node)
{
    HK_ASSERT(node < c->setup.nodes);
    c->sides[node].dead = true;
}

/* ---- Making and unmaking ---- */

static void free_list(struct cost_list *list)
{
    while (list->first != NULL) {
        struct cost_parcel *p = list->first;
        list->first = p->next;
        free(p);
    }
}

void cost_cluster_destroy(struct cost_cluster *c)
{
    c->result = NULL;
    for (size_t i = 0; i < c->heap_n; i++) {
        free(c->heap[i].parcel);
    }
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        struct cost_side *side = &c->sides[i];
        if (side->node != NULL) {
            node_destroy(side->node);
        }
        for (uint32_t k = 0; k < c->setup.workers && side->workers != NULL; k++) {
            free_list(&side->workers[k].inbox);
            free_list(&side->workers[k].outbox);
            free(side->workers[k].current);
            free(side->workers[k].txn_memory);
        }
        free(side->workers);
    }
    work_destroy(c->work);
    free(c->heap);
    free(c->value);
    free(c);
}

int cost_cluster_create(const struct cost_setup *setup, struct cost_cluster **cluster_out)
{
    struct cost_cluster *c = calloc(1, sizeof *c);
    if (c == NULL) {
        return HK_ERR_NOMEM;
    }
    c->setup = *setup;
    if (setup->workers == 0) {
        c->setup.workers = setup->machine->workers;
    }
    if (setup->window_most == 0) {
        c->setup.window_most = setup->machine->window;
    }
    if (setup->lease_us == 0) {
        c->setup.lease_us = 500000;
    }
    c->wire.limits = setup->machine->wire;
    c->cpu = cost_scale(setup->machine, &cost_measured, false);
    int err = cost_start(c);
    if (err != HK_OK) {
        cost_cluster_destroy(c);
        return err;
    }
    *cluster_out = c;
    return HK_OK;
}
