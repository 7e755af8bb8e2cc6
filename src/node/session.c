/* A connection's commands: those on one key take effect in their order, an RMW is a barrier for
 * later updates, updates become readable in their order, and answers leave in theirs. Where reads
 * are local and not linearizable (ENGINE_READS_FOLLOW) a read waits for everything earlier, and an
 * update for all earlier reads: a read that still waits (for the lease, say) will see what others
 * write meanwhile, which stands behind what a later read that was quicker has seen, or behind the
 * update, in the one order of all.
 *
 * Where keys have homes (ENGINE_HOMED) commands on different keys go to different nodes, and take
 * effect in any order: only those on one key keep theirs.
 *
 * Where objects have owners (ENGINE_OWNED) a read waits for everything earlier, and an update for
 * all earlier reads and until all earlier updates have been committed here: from then on the
 * pipeline keeps their order.
 *
 * Issue order: an update is issued only after every earlier update of its session was, an RMW only
 * after every earlier update was answered. Completion order: an update that has all its
 * acknowledgements waits (is gated) until the earlier ones are done, so that others see a pipeline
 * in program order. Two sessions could gate each other across nodes when messages are lost; a
 * flow's first timer therefore ends its gating. */
#include "node/internal.h"

#include "base/assert.h"

void session_add(struct worker *w, struct call *c)
{
    if (c->session == SESSION_NONE) {
        return;
    }
    struct session *session = &w->sessions[c->session];
    HK_ASSERT(session->open);
    session->n++;
    list_push_back(&session->calls, &c->session_link);
}

static bool unfinished(const struct call *c)
{
    return c->state != CALL_DONE;
}

/* What the commands before a call have left open. */
struct before {
    bool update;   /* an update that is not answered */
    bool unissued; /* an update that is not even issued */
    bool rmw;      /* an RMW (or an expiry's delete) that is not decided */
    bool read;     /* a read that has not been done */
};

static void before_add(struct before *b, const struct call *c)
{
    b->read |= unfinished(c) && !c->update;
    if (unfinished(c) && (c->update || c->expired_ms != 0)) {
        b->update = true;
        b->unissued |= c->state != CALL_ISSUED && c->state != CALL_FORWARDED &&
                       c->state != CALL_COMMITTED && !c->decided;
        /* What comes behind a pipeline of its own is in another: it waits. */
        b->rmw |= c->rmw || c->expired_ms != 0 || c->ahead;
    }
}

static bool same_key_before(const struct session *session, const struct call *c)
{
    list_each(link, &session->calls)
    {
        const struct call *other = list_entry(link, struct call, session_link);
        if (other == c) {
            return false;
        }
        if (unfinished(other) && other->hash == c->hash && other->op.space == c->op.space) {
            return true;
        }
    }
    return false;
}

static bool may_start(const struct worker *w, const struct session *session, const struct before *b,
                      const struct call *c)
{
    uint32_t traits = w->node->spaces[c->op.space].ops->traits;
    bool owned = (traits & (ENGINE_OWNED | ENGINE_SHARDED | ENGINE_TABLES)) != 0;
    bool follows = owned || (traits & ENGINE_READS_FOLLOW) != 0;
    if (follows && (b->read || (!c->update && b->update))) {
        return false; /* a local read shows only what this node has taken */
    }
    if (c->update && (traits & ENGINE_HOMED) == 0) {
        if (node_rule_on(w->node, NODE_RULE_BARRIER) &&
            (b->rmw || b->unissued || (c->rmw && b->update))) {
            return false;
        }
    }
    return owned || !node_rule_on(w->node, NODE_RULE_ORDER) || !same_key_before(session, c);
}

bool session_may_start(struct worker *w, const struct call *c)
{
    if (c->session == SESSION_NONE) {
        return true;
    }
    const struct session *session = &w->sessions[c->session];
    if (session->calls.next == &c->session_link) {
        return true;
    }
    struct before b = {.update = false};
    list_each(link, &session->calls)
    {
        const struct call *other = list_entry(link, struct call, session_link);
        if (other == c) {
            break;
        }
        before_add(&b, other);
    }
    return may_start(w, session, &b, c);
}

void session_pump(struct worker *w, uint32_t index)
{
    struct session *session = &w->sessions[index];
    struct before b = {.update = false};
    list_each(link, &session->calls)
    {
        struct call *c = list_entry(link, struct call, session_link);
        if (c->state == CALL_QUEUED && may_start(w, session, &b, c)) {
            call_ready(w, c);
        }
        if (c->gated && !b.update && c->flow != NULL) {
            c->gated = false;
            worker_nudge(w, c->flow);
        }
        before_add(&b, c);
    }
}

void session_flush(struct worker *w, uint32_t index)
{
    struct session *session = &w->sessions[index];
    while (!list_empty(&session->calls)) {
        struct call *c = list_entry(session->calls.next, struct call, session_link);
        if (c->state != CALL_DONE) {
            break;
        }
        call_reply(w, c, &c->answer);
        session->n--;
        call_release(w, c);
    }
    if (!list_empty(&session->calls)) {
        session_pump(w, index);
    }
}

bool session_gates(struct worker *w, const struct call *c)
{
    if (c->session == SESSION_NONE || c->ungated ||
        (w->node->spaces[c->op.space].ops->traits & ENGINE_HOMED) != 0) {
        return false;
    }
    const struct session *session = &w->sessions[c->session];
    list_each(link, &session->calls)
    {
        const struct call *other = list_entry(link, struct call, session_link);
        if (other == c) {
            return false;
        }
        if (other->update && unfinished(other)) {
            return true;
        }
    }
    return false;
}

int worker_session_open(struct worker *w, uint32_t *session_out)
{
    for (uint32_t i = 0; i < w->node->config.sessions_max; i++) {
        if (!w->sessions[i].open) {
            w->sessions[i].open = true;
            w->sessions[i].n = 0;
            list_init(&w->sessions[i].calls);
            *session_out = i;
            return HK_OK;
        }
    }
    return HK_ERR_FULL;
}

void worker_session_close(struct worker *w, uint32_t index)
{
    struct session *session = &w->sessions[index];
    HK_ASSERT(session->open);
    struct list_link *link;
    while ((link = list_pop_front(&session->calls)) != NULL) {
        call_cancel(w, list_entry(link, struct call, session_link));
    }
    session->n = 0;
    session->open = false;
}

bool worker_session_ready(const struct worker *w, uint32_t index)
{
    return w->sessions[index].open && w->sessions[index].n < w->node->config.session_calls_max &&
           !list_empty(&w->calls_free);
}
