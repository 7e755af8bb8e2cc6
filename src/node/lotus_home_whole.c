/* WHOLE: a transaction all of whose rows are here. It is one of a coordinator's (lotus_run.h),
 * whose only server is this one: rows come from the table instead of messages, and what becomes of
 * them is written at once. */
#include "node/lotus_home.h"
#include "node/lotus_run.h"

#include <stdlib.h>

#include "base/assert.h"

static struct lotus_run *take_run(struct worker *w, struct home_space *s)
{
    struct lotus_home *home = w->lotus_home;
    struct list_link *link = list_pop_front(&home->runs);
    struct lotus_run *r =
        link != NULL ? list_entry(link, struct lotus_run, link) : calloc(1, sizeof *r);
    if (r != NULL) {
        list_init(&r->link);
        r->space = s->space;
        r->here = true;
    }
    return r;
}

void home_run_give(struct worker *w, struct lotus_run *r)
{
    run_reset(w, r);
    list_push_front(&w->lotus_home->runs, &r->link);
}

void home_runs_free(struct worker *w)
{
    struct list_link *link;
    while ((link = list_pop_front(&w->lotus_home->runs)) != NULL) {
        struct lotus_run *r = list_entry(link, struct lotus_run, link);
        run_free(r);
        free(r);
    }
}

/* What is due next becomes items. False: nothing is. */
static bool next_items(struct worker *w, struct home_work *work)
{
    uint8_t self = w->node->config.self;
    if (ask_next(w, work->run) == 0) {
        return false;
    }
    work->items.n = 0;
    home_rows_clear(w, work);
    ask_items(w, work->run, self, &work->items);
    work->rest = bytes_of(work->items.at, work->items.n);
    work->kept = true;
    return true;
}

/* All that can be known is known: evaluated, written, answered. */
static void evaluate(struct worker *w, struct home_space *s, struct home_try *t)
{
    struct home_work *work = t->work;
    struct lotus_run *r = work->run;
    struct evaluation *e = &r->evaluation;
    struct buffer *out = &w->lotus_home->out;
    nodeset written;
    lotus_versions_above(w, lotus_table_forgotten(s->table));
    int err = rows_evaluate(w, r);
    err = err != HK_OK ? err : rows_record(w, r, &written);
    if (err != HK_OK) {
        home_refuse(w, s, t, LOTUS_MSG_DONE, LOTUS_TOOBIG);
        return;
    }
    evaluation_versions(e);
    uint64_t bytes =
        lotus_answers_bytes((enum txn_verdict)e->verdict, e->answers, e->request.ops_n);
    struct bytes rows = bytes_of(r->record.at, r->record.n);
    enum lotus_word word = bytes > MSG_VALUE_MAX ? LOTUS_TOOBIG : home_reserve(w, s, work, rows);
    if (word != LOTUS_OK) {
        home_refuse(w, s, t, LOTUS_MSG_DONE, word);
        return;
    }
    out->n = 0;
    (void)lotus_answers_put(buffer_add(out, (uint32_t)bytes), (enum txn_verdict)e->verdict,
                            e->answers, e->versions, e->request.ops_n);
    home_finish(w, s, t, rows, bytes_of(out->at, out->n));
}

/* The message's bytes will be gone. */
static void park(struct worker *w, struct home_space *s, struct home_work *work)
{
    struct lotus_run *r = work->run;
    if (!r->own_bytes) {
        evaluation_own(&r->evaluation, &r->copy);
        ask_owned(r);
        r->own_bytes = true;
    }
    home_parked(w, s, work);
}

void home_whole_go_on(struct worker *w, struct home_space *s, struct home_try *t)
{
    struct home_work *work = t->work;
    for (;;) {
        bool more = false;
        int err = HK_OK;
        uint32_t word = home_items(w, s, work);
        if (word == LOTUS_WORDS) {
            park(w, s, work);
            return;
        }
        if (word != LOTUS_OK) {
            home_refuse(w, s, t, LOTUS_MSG_DONE, (enum lotus_word)word);
            return;
        }
        bool whole = rows_take(w, work->run, w->node->config.self,
                               bytes_of(work->rows.at, work->rows.n), &err);
        HK_ASSERT(whole);
        if (err == HK_ERR_BUSY) {
            home_refuse(w, s, t, LOTUS_MSG_DONE, LOTUS_BUSY);
            return;
        }
        err = err != HK_OK ? err : rows_more(w, work->run, &more);
        if (err != HK_OK || (more && !next_items(w, work))) {
            home_refuse(w, s, t, LOTUS_MSG_DONE, LOTUS_TOOBIG);
            return;
        }
        if (!more) {
            evaluate(w, s, t);
            return;
        }
    }
}

/* All of it is here: what a coordinator finds out by the map. */
static void place_here(struct worker *w, struct lotus_run *r)
{
    uint8_t self = w->node->config.self;
    for (uint32_t i = 0; i < r->evaluation.objects_n; i++) {
        r->places[i].home = self;
        r->places[i].due = true;
    }
    for (uint32_t i = 0; i < r->spans_n; i++) {
        r->spans[i].homes = r->spans[i].due = nodeset_of(self);
        r->spans[i].limit = r->spans[i].need < UINT32_MAX ? (uint32_t)r->spans[i].need : 0;
    }
}

void home_whole(struct worker *w, struct home_space *s, struct home_try *t, struct bytes request)
{
    struct lotus_home *home = w->lotus_home;
    const struct space *space = &w->node->spaces[s->space];
    struct home_work *work = t->work;
    struct lotus_run *r = work->run = take_run(w, s);
    struct txn_request q;
    if (r == NULL) {
        home_refuse(w, s, t, LOTUS_MSG_DONE, LOTUS_NOMEM);
        return;
    }
    lotus_request_take(request, s->space, home->ops, home->watches, &q);
    if (txn_check(&q, w->node->config.spaces[s->space].store.value_bytes_max) != HK_OK ||
        evaluation_begin(&r->evaluation, &q, NULL, space->store) != HK_OK) {
        home_refuse(w, s, t, LOTUS_MSG_DONE, LOTUS_TOOBIG);
        return;
    }
    if (ask_prepare(r) != HK_OK) {
        home_refuse(w, s, t, LOTUS_MSG_DONE, LOTUS_TOOBIG);
        return;
    }
    place_here(w, r);
    if (!next_items(w, work)) {
        home_refuse(w, s, t, LOTUS_MSG_DONE, LOTUS_TOOBIG);
        return;
    }
    home_whole_go_on(w, s, t);
}
