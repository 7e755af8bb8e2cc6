/* Transactions in the cost model: each worker is a place of a workload (load/work.h), whose
 * sessions draw there and hand over to the node. */
#include "sim/cost_cluster_internal.h"

#include <stdlib.h>

#define FILL_SLICE_US 1000u
#define FILL_WAIT_US 60000000u
/* Replicas beyond the second are added by walks over all entries. */
#define COPIES_SLICE_US 20000u
#define DRAIN_SLICE_US 100u
#define DRAIN_WAIT_US 20000000u

static double since(uint64_t now, uint64_t then)
{
    return (double)(now - then);
}

/* Rows of memory servers, by what it is that takes the time. */
static void add_rows(const struct cost_worker *w, double parts[COST_PARTS])
{
    const struct cost_cpu *cpu = &w->side->cluster->cpu;
    const struct node_stats *now = worker_stats(w->worker), *then = &w->before;
    double items = since(now->home_items, then->home_items);
    double hinted = since(now->home_hints_good, then->home_hints_good);
    parts[COST_LOCK] += cpu->row_lock * items;
    parts[COST_INDEX] += cpu->row_index * (items - hinted);
    parts[COST_DATA] += cpu->row_read * since(now->home_read, then->home_read) +
                        cpu->row_write * since(now->home_written, then->home_written);
}

double cost_work_ns(const struct cost_worker *w, double parts[COST_PARTS])
{
    const struct cost_cpu *cpu = &w->side->cluster->cpu;
    const struct node_stats *now = worker_stats(w->worker);
    const struct node_stats *then = &w->before;
    parts[COST_OTHER] += cpu->txn * (double)w->txns + cpu->txn_op * (double)w->txn_ops +
                         cpu->txn_message * since(now->messages_in + now->messages_out,
                                                  then->messages_in + then->messages_out);
    if (cost_tables(w->side->cluster)) {
        add_rows(w, parts);
    } else {
        parts[COST_DATA] += cpu->txn_look * since(worker_looks(w->worker, 0), w->looks_before);
    }
    double ns = 0;
    for (uint32_t i = 0; i < COST_PARTS; i++) {
        ns += parts[i];
    }
    return ns;
}

static uint32_t place_of(const struct cost_worker *w)
{
    return w->side->index * w->side->cluster->setup.workers + w->index;
}

/* ---- Making ---- */

int cost_work_create(struct cost_cluster *c)
{
    struct work_config config = *c->setup.work;
    uint32_t traits = c->setup.engine->traits;
    bool tables = cost_tables(c);
    if ((!tables && (traits & (ENGINE_OWNED | ENGINE_SHARDED)) == 0) || c->setup.degree < 1 ||
        c->setup.degree > c->setup.nodes || (tables && c->setup.degree != 1) ||
        (!tables && (c->setup.memory > 0 || work_scans(config.kind)))) {
        return HK_ERR_INVALID;
    }
    config.nodes = c->setup.nodes - c->setup.memory;
    config.workers = c->setup.workers;
    config.seed = c->setup.seed;
    int err = work_create(&config, &c->work);
    struct work_txn *txn = malloc(sizeof *txn);
    if (err != HK_OK || txn == NULL) {
        free(txn);
        return err != HK_OK ? err : HK_ERR_NOMEM;
    }
    for (uint32_t place = 0; place < config.nodes * config.workers; place++) {
        for (uint64_t i = 0; i < work_fill_count(c->work); i++) {
            c->objects += work_fill(c->work, place, i, txn);
        }
    }
    free(txn);
    return HK_OK;
}

int cost_work_open(struct cost_worker *w)
{
    uint32_t n = w->side->cluster->setup.window_most;
    w->txn_memory = calloc(n, sizeof *w->txn_memory);
    if (w->txn_memory == NULL) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        w->sessions[i].txn = &w->txn_memory[i];
    }
    return HK_OK;
}

static void reset_all(struct cost_cluster *c)
{
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        for (uint32_t k = 0; k < c->setup.workers; k++) {
            cost_sessions_reset(&c->sides[i].workers[k]);
        }
    }
}

static uint64_t stored(const struct cost_cluster *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        struct store_stats stats;
        store_stats(node_store(c->sides[i].node, 0), &stats);
        sum += stats.keys;
    }
    return sum;
}

int cost_work_fill(struct cost_cluster *c)
{
    uint64_t until_ps = c->now_ps + FILL_WAIT_US * (uint64_t)COST_PS_PER_US;
    uint64_t copies = cost_tables(c) ? 0 : c->objects * c->setup.degree;
    c->load = (struct cost_load){.window = c->setup.window_most};
    c->filling = true;
    reset_all(c);
    while (c->filled < c->objects && c->now_ps < until_ps) {
        cost_advance(c, c->now_ps + FILL_SLICE_US * (uint64_t)COST_PS_PER_US);
    }
    c->filling = false;
    c->load.window = 0;
    reset_all(c);
    while (stored(c) < copies && c->now_ps < until_ps) {
        cost_advance(c, c->now_ps + COPIES_SLICE_US * (uint64_t)COST_PS_PER_US);
    }
    return c->filled == c->objects && stored(c) >= copies ? HK_OK : HK_ERR_UNAVAILABLE;
}

/* ---- Clients ---- */

static bool fill_in(struct cost_worker *w, struct cost_session *s)
{
    const struct work *work = w->side->cluster->work;
    while (w->fill_next < work_fill_count(work)) {
        if (work_fill(work, place_of(w), w->fill_next++, s->txn)) {
            return true;
        }
    }
    return false;
}

bool cost_work_request(struct cost_worker *w, struct cost_session *s, struct request *out)
{
    struct cost_cluster *c = w->side->cluster;
    if (c->filling && !fill_in(w, s)) {
        return false;
    }
    if (!c->filling && !s->goes_on) {
        work_draw(c->work, place_of(w), &c->random, s->txn);
    }
    s->write = s->txn->updates;
    s->request = (struct txn_request){.ops = s->txn->ops,
                                      .ops_n = s->txn->ops_n,
                                      .watches = s->txn->watches,
                                      .watches_n = s->txn->watches_n,
                                      .flags = s->txn->flags};
    w->txns++;
    w->txn_ops += s->txn->ops_n;
    *out = (struct request){.session = s->session,
                            .since_us = s->goes_on ? s->issued_ps / COST_PS_PER_US : 0,
                            .txn = &s->request};
    return true;
}

bool cost_work_reply(struct cost_worker *w, struct cost_session *s, const struct reply *reply,
                     bool *failed_out, bool *refused_out)
{
    struct cost_cluster *c = w->side->cluster;
    const struct answer *a = &reply->answer;
    bool held = a->kind == ANSWER_OK || a->kind == ANSWER_NUMBER;
    bool whole = (held && reply->answers_n == s->txn->ops_n) ||
                 (a->kind == ANSWER_NIL && s->txn->watches_n > 0);
    *refused_out = !c->filling && a->kind == ANSWER_ERROR && a->number == HK_ERR_BUSY;
    *failed_out = !whole && !*refused_out;
    if (c->filling) {
        return false;
    }
    if (whole && work_next(c->work, place_of(w), s->txn, held, reply->answers, reply->versions) !=
                     WORK_OVER) {
        return true;
    }
    work_done(c->work, place_of(w), s->txn, !*refused_out);
    return false;
}

/* ---- Another part of them is remote ---- */

static bool idle(const struct cost_cluster *c)
{
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        for (uint32_t k = 0; k < c->setup.workers; k++) {
            for (uint32_t n = 0; n < c->setup.window_most; n++) {
                if (c->sides[i].workers[k].sessions[n].busy) {
                    return false;
                }
            }
        }
    }
    return true;
}

int cost_cluster_remote(struct cost_cluster *c, double percent)
{
    uint64_t until_ps = c->now_ps + DRAIN_WAIT_US * (uint64_t)COST_PS_PER_US;
    struct work_config config = *work_config(c->work);
    struct work *work;
    config.remote = percent;
    c->load.window = 0;
    reset_all(c);
    while (!idle(c) && c->now_ps < until_ps) {
        cost_advance(c, c->now_ps + DRAIN_SLICE_US * (uint64_t)COST_PS_PER_US);
    }
    if (!idle(c)) {
        return HK_ERR_UNAVAILABLE;
    }
    int err = work_create(&config, &work);
    if (err == HK_OK) {
        work_destroy(c->work);
        c->work = work;
    }
    return err;
}
