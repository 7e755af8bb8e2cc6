/* What must hold between two polls of a worker. */
#include "base/assert.h"
#include "node/internal.h"
#include "node/lotus.h"

static void check_call(const struct worker *w, const struct call *c)
{
    switch ((enum call_state)c->state) {
    case CALL_ISSUED:
        HK_ASSERT(c->flow != NULL && c->flow->call == c && c->flow->used);
        break;
    case CALL_FORWARDED:
        HK_ASSERT(c->miss == NULL || c->miss->call == c);
        HK_ASSERT(c->timer.place != TIMER_IDLE && c->flow == NULL);
        break;
    case CALL_PARKED:
    case CALL_DELAYED:
        HK_ASSERT(c->timer.place != TIMER_IDLE && c->flow == NULL);
        break;
    case CALL_WAITING:
    case CALL_COMMITTED:
        HK_ASSERT(c->flow == NULL && (c->txn != NULL || c->brought != NULL));
        HK_ASSERT((c->brought != NULL && c->brought->timer == NULL) ||
                  c->timer.place != TIMER_IDLE);
        break;
    case CALL_DONE:
        HK_ASSERT(c->session != SESSION_NONE && c->flow == NULL);
        break;
    case CALL_QUEUED:
    case CALL_READY:
    case CALL_CHECKING:
    case CALL_ASKED:
        HK_ASSERT(c->flow == NULL);
        break;
    case CALL_FREE:
        HK_ASSERT(false && "a free call in a session");
    }
    HK_ASSERT(c->session == SESSION_NONE || c->session < w->node->config.sessions_max);
}

static void check_sessions(const struct worker *w)
{
    for (uint32_t i = 0; i < w->node->config.sessions_max; i++) {
        const struct session *session = &w->sessions[i];
        if (!session->open) {
            continue;
        }
        uint32_t n = 0;
        list_each(link, &session->calls)
        {
            const struct call *c = list_entry(link, struct call, session_link);
            HK_ASSERT(c->session == i);
            check_call(w, c);
            n++;
        }
        HK_ASSERT(n == session->n);
        /* Answers that are due have left. */
        HK_ASSERT(n == 0 ||
                  list_entry(session->calls.next, struct call, session_link)->state != CALL_DONE);
    }
}

static void check_flows(const struct worker *w)
{
    list_each(link, &w->flows)
    {
        const struct flow *f = list_entry(link, struct flow, link);
        HK_ASSERT(f->used && f->slot.kind != 0);
        HK_ASSERT(f->slot.epoch <= w->view.epoch);
        HK_ASSERT(f->call == NULL || f->call->flow == f);
        HK_ASSERT(f->slot.deadline_us == 0 || f->timer.place != TIMER_IDLE);
    }
    list_each(link, &w->flows_free)
    {
        const struct flow *f = list_entry(link, struct flow, link);
        HK_ASSERT(!f->used && f->slot.kind == 0 && f->call == NULL && list_empty(&f->checking));
        HK_ASSERT(!f->claimed && !f->owed);
    }
}

void worker_check(const struct worker *w)
{
    check_sessions(w);
    check_flows(w);
    lanes_check(w);
    forward_check(w);
    own_check_worker(w);
    txn_check_worker(w);
    lotus_check(w);
    lotus_home_check(w);
    if (w->index == 0) {
        view_check(&w->node->machine);
    }
}
