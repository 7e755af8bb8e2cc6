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
    (void)w;
    s->request =
        (struct txn_request){.ops = s->txn->ops, .ops_n = s->txn->ops_n, .flags = s->txn->flags};
    *out = (struct request){.session = s->id, .txn = &s->request};
}

bool drive_work_reply(struct bench_worker *w, struct bench_session *s, const struct reply *reply)
{
    const struct answer *a = &reply->answer;
    bool whole =
        (a->kind == ANSWER_OK || a->kind == ANSWER_NUMBER) && reply->answers_n == s->txn->ops_n;
    s->succeeded = false;
    if (s->refused) {
        return false;
    }
    if (s->fills) {
        return !whole || reply->answers[0].kind != ANSWER_OK;
    }
    if (whole) {
        s->succeeded =
            work_succeeded(w->cluster->work, s->txn, a->kind == ANSWER_OK, reply->answers);
    }
    return !whole;
}

void drive_work_book(struct bench_worker *w, const struct bench_session *s)
{
    work_done(w->cluster->work, w->number, s->txn, !s->refused);
    if (!s->refused) {
        w->txns[s->txn->type]++;
        w->succeeded[s->txn->type] += s->succeeded;
        w->remote += s->txn->remote;
    }
}
