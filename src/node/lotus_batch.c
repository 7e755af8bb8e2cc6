/* Batches across transactions: requests that wait for others to the same memory server
 * (engine/lotus/batch.h). They are messages of their own, which leave in one frame; a request that
 * has waited in vain, since its try has ended meanwhile, is not sent. */
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/lotus_run.h"

struct kept {
    uint32_t run; /* its number */
    uint32_t gen;
};

struct lotus_group {
    struct batch batch;
    struct buffer kept;
};

int groups_init(struct worker *w)
{
    struct lotuses *l = w->lotus;
    l->groups = calloc(NODES_MAX, sizeof *l->groups);
    for (uint32_t i = 0; l->groups != NULL && i < NODES_MAX; i++) {
        batch_init(&l->groups[i].batch);
    }
    return l->groups != NULL ? HK_OK : HK_ERR_NOMEM;
}

void groups_deinit(struct worker *w)
{
    struct lotuses *l = w->lotus;
    for (uint32_t i = 0; l->groups != NULL && i < NODES_MAX; i++) {
        buffer_free(&l->groups[i].kept);
    }
    free(l->groups);
}

static bool waits_for(const struct lotus_run *r, uint32_t gen, uint8_t to)
{
    return r->used && r->gen == gen && nodeset_has(r->machine.waits, to) &&
           (r->machine.state == LOTUS_EXECUTE || r->machine.state == LOTUS_WHOLE);
}

static void leave(struct worker *w, uint8_t to)
{
    struct lotuses *l = w->lotus;
    struct lotus_group *g = &l->groups[to];
    uint32_t n = g->kept.n / (uint32_t)sizeof(struct kept), sent = 0;
    for (uint32_t i = 0; i < n; i++) {
        struct kept kept;
        memcpy(&kept, g->kept.at + i * sizeof kept, sizeof kept);
        struct lotus_run *r = &l->runs[kept.run];
        if (waits_for(r, kept.gen, to)) {
            ask_request(w, r, to);
            sent++;
        }
    }
    g->kept.n = 0;
    batch_left(&g->batch, w->now_us);
    w->stats.lotus_batches += sent > 1;
    w->stats.lotus_batched += sent > 1 ? sent : 0;
}

bool groups_take(struct worker *w, struct lotus_run *r, uint8_t to)
{
    struct lotuses *l = w->lotus;
    const struct lotus_config *config = w->node->spaces[r->space].engine;
    if (!config->across || to == w->node->config.self) {
        return false;
    }
    struct lotus_group *g = &l->groups[to];
    enum batch_word word =
        batch_add(&g->batch, &batch_standard, l->active + !r->active, r->slot, w->now_us);
    if (word == BATCH_ALONE) {
        return false;
    }
    struct kept kept = {.run = (uint32_t)(r - l->runs), .gen = r->gen};
    memcpy(buffer_add(&g->kept, (uint32_t)sizeof kept), &kept, sizeof kept);
    if (word == BATCH_SEND) {
        leave(w, to);
    }
    return true;
}

void groups_ended(struct worker *w, const struct lotus_run *r, bool refused)
{
    const struct lotus_config *config = w->node->spaces[r->space].engine;
    for (nodeset rest = config->across ? r->homes : 0; rest != 0; rest &= rest - 1) {
        struct batch *b = &w->lotus->groups[nodeset_first(rest)].batch;
        if (refused) {
            batch_refused(b, r->slot);
        } else {
            batch_done(b);
        }
    }
}

void groups_poll(struct worker *w)
{
    struct lotuses *l = w->lotus;
    for (uint8_t i = 0; l->groups != NULL && i < NODES_MAX; i++) {
        const struct batch *b = &l->groups[i].batch;
        /* Or whoever could have come has ended meanwhile. */
        if (b->due_us != UINT64_MAX && (b->due_us <= w->now_us || b->requests >= l->active)) {
            leave(w, i);
        }
    }
}

uint64_t groups_due(const struct worker *w)
{
    const struct lotuses *l = w->lotus;
    uint64_t due = UINT64_MAX;
    for (uint32_t i = 0; l->groups != NULL && i < NODES_MAX; i++) {
        due = l->groups[i].batch.due_us < due ? l->groups[i].batch.due_us : due;
    }
    return due;
}
