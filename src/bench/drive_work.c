/* Sessions that run transactions of a workload: each draws one, hands it to the node, and judges
 * the answer by the workload's rules. */
#include <stdlib.h>

#include "bench/internal.h"

int drive_work_open(struct bench_worker *w)
{
    uint32_t n = w->free_n;
    w->txn_memory = calloc(n, sizeof *w->txn_memory);
    if (w->txn_memory == NULL) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < n; i++) {
        w->sessions[i].txn = &w->txn_memory[i];
    }
    return HK_OK;
}

void drive_work_draw(struct bench_worker *w, struct bench_session *s)
{
    work_draw(w->cluster->work, w->number, &w->random, s->txn);
    s->kind = s->txn->updates ? LOAD_WRITE : LOAD_READ;
    s->tries = 0;
}

bool drive_work_fill(struct bench_worker *w, struct bench_session *s)
{
    const struct work *work = w->cluster->work;
    uint64_t n = work_fill_count(work);
    while (w->fill_next < n) {
        if (work_fill(work, w->number, w->fill_next++, s->txn)) {
            s->kind = LOAD_WRITE;
            return true;
        }
    }
    return false;
}

void drive_work_request(struct bench_worker *w, struct bench_session *s, struct request *out)
{
    const struct work_txn *t = s->txn;
    s->request = (struct txn_request){.ops = t->ops,
                                      .ops_n = t->ops_n,
                                      .watches = t->watches,
                                      .watches_n = t->watches_n,
                                      .flags = t->flags};
    *out = (struct request){.session = s->id, .since_us = s->since_us, .txn = &s->request};
    w->steps++;
}

/* The step has been answered as a step is; whether there is another one. */
static bool next_step(struct bench_worker *w, struct bench_session *s, const struct reply *reply)
{
    struct work *work = w->cluster->work;
    uint8_t kind = reply->answer.kind;
    enum work_step step =
        work_next(work, w->number, s->txn, kind != ANSWER_NIL, reply->answers, reply->versions);
    s->tries += step == WORK_AGAIN;
    if (step == WORK_OVER) {
        s->succeeded = work_succeeded(work, s->txn, kind == ANSWER_OK, reply->answers);
    }
    return step != WORK_OVER;
}

enum drive_answer drive_work_reply(struct bench_worker *w, struct bench_session *s,
                                   const struct reply *reply)
{
    uint8_t kind = reply->answer.kind;
    bool whole =
        ((kind == ANSWER_OK || kind == ANSWER_NUMBER) && reply->answers_n == s->txn->ops_n) ||
        (kind == ANSWER_NIL && s->txn->watches_n > 0);
    s->succeeded = false;
    if (s->refused) {
        return DRIVE_OVER;
    }
    if (s->fills) {
        return whole && reply->answers[0].kind == ANSWER_OK ? DRIVE_OVER : DRIVE_FAILED;
    }
    if (!whole) {
        return DRIVE_FAILED;
    }
    return next_step(w, s, reply) ? DRIVE_STEP : DRIVE_OVER;
}

void drive_work_book(struct bench_worker *w, const struct bench_session *s)
{
    work_done(w->cluster->work, w->number, s->txn, !s->refused);
    if (!s->refused) {
        w->txns[s->txn->type]++;
        w->succeeded[s->txn->type] += s->succeeded;
        w->remote += s->txn->remote;
        w->again += s->tries;
    }
}
