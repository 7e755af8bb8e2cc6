/* The acceptor of Paxos instance e+1, held by a process of view e (rules 1 to 4). Acceptance is
 * where leases are honoured: it waits until every grant to a member that the view drops has run
 * out, and since any two majorities meet, no dropped member can then hold a lease. */
#include "view/machine_state.h"

#include "base/assert.h"
#include "view/steps.h"

/* value: what is to be accepted; NULL: a promise. */
static bool may_vote(const struct view_machine *m, uint32_t instance, const struct view *value)
{
    if (instance != m->view.epoch + 1) {
        return false;
    }
    if (instance == 1) {
        return view_may_form(m) || view_may_repeat(m, value);
    }
    return view_self_member(m) || !view_rule(m, VIEW_RULE_MEMBERS_VOTE);
}

nodeset view_denied(const struct view_machine *m)
{
    const struct view_acceptor *a = &m->acceptor;
    nodeset denied = 0;
    if (view_rule(m, VIEW_RULE_PROMISE_DROPS) && m->now_us < a->quiet_until_us) {
        denied = a->drops;
    }
    if (!view_ballot_none(&a->accepted)) {
        denied |= view_dropped(&m->view, &a->accepted_view);
    }
    return denied;
}

static bool same_process(const struct view_ballot *a, const struct view_ballot *b)
{
    return a->node == b->node && a->nonce == b->nonce;
}

/* A ballot that waits for grants must not be overtaken by one that names others: two ends of a
 * partition would take turns for ever. Who is suspected, or silent for long, is waited for no
 * more; refusing a ballot is always safe. */
static bool busy(const struct view_machine *m, const struct view_ballot *other)
{
    const struct view_acceptor *a = &m->acceptor;
    if (view_ballot_none(&a->promised) || m->now_us >= a->quiet_until_us ||
        same_process(&a->promised, other)) {
        return false;
    }
    if (a->promised.node == m->config.self) {
        return m->proposer.phase != VIEW_PHASE_IDLE;
    }
    return !view_suspected(m, a->promised.node);
}

bool view_ballot_busy(const struct view_machine *m)
{
    struct view_ballot own = {.nonce = m->config.nonce, .node = m->config.self};
    return busy(m, &own);
}

enum view_verdict view_acceptor_prepare(struct view_machine *m, const struct view_prepare *prepare)
{
    struct view_acceptor *a = &m->acceptor;

    if (prepare->instance != m->view.epoch + 1) {
        view_ignore(m, VIEW_IGNORED_INSTANCE);
        return VIEW_VERDICT_NONE;
    }
    if (!may_vote(m, prepare->instance, NULL)) {
        view_ignore(m, VIEW_IGNORED_VOTER);
        return VIEW_VERDICT_NONE;
    }
    if (prepare->instance == 1 && prepare->configured != m->config.configured) {
        view_ignore(m, VIEW_IGNORED_INVALID);
        return VIEW_VERDICT_NONE;
    }
    if ((prepare->flags & VIEW_PREPARE_RECOVER) != 0 && m->now_us < m->lease_until_us) {
        /* This survivor has a majority's word: the operator is mistaken. */
        view_ignore(m, VIEW_IGNORED_OPERATOR);
        return VIEW_VERDICT_NONE;
    }
    int order = view_ballot_compare(&prepare->ballot, &a->promised);
    if (order < 0 || (order > 0 && busy(m, &prepare->ballot))) {
        return VIEW_VERDICT_REFUSED;
    }
    if (order > 0) {
        a->promised = prepare->ballot;
        a->drops = prepare->drops & m->view.live;
        a->quiet_until_us = 0;
        memset(&a->held, 0, sizeof a->held);
        a->held_until_us = 0;
    }
    uint64_t quiet = m->now_us + view_patience_us(m);
    a->quiet_until_us = a->quiet_until_us > quiet ? a->quiet_until_us : quiet;
    return VIEW_VERDICT_DONE;
}

/* Rules 1 and 3: the time before which a view that drops `out` is not accepted. The grant to
 * oneself is never waited for, because accepting ends one's lease (rule 4). */
static uint64_t accept_from(const struct view_machine *m, nodeset out)
{
    uint64_t from = 0;
    nodeset waits = 0;

    for (nodeset rest = out; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        const struct view_peer *peer = &m->member[node];
        if (node == m->config.self || peer->left) {
            continue;
        }
        waits |= nodeset_of(node);
        if (view_rule(m, VIEW_RULE_GRANTS_FIRST) && peer->granted_until_us > from) {
            from = peer->granted_until_us;
        }
    }
    if (waits != 0 && view_rule(m, VIEW_RULE_ADMISSION_WAIT) && m->drops_from_us > from) {
        from = m->drops_from_us;
    }
    return from;
}

static void accept(struct view_machine *m, const struct view_ballot *ballot,
                   const struct view *view, nodeset out)
{
    struct view_acceptor *a = &m->acceptor;

    a->accepted = *ballot;
    a->accepted_view = *view;
    a->accepted_us = m->now_us;
    a->drops = out;
    a->quiet_until_us = m->now_us + view_patience_us(m);
    memset(&a->held, 0, sizeof a->held);
    a->held_until_us = 0;
    if (nodeset_has(out, m->config.self) && view_rule(m, VIEW_RULE_ACCEPT_ENDS_LEASE)) {
        for (uint8_t node = 0; node < NODES_MAX; node++) {
            m->member[node].lease_until_us = 0;
        }
        view_lease_update(m);
    }
}

static bool view_acceptable(const struct view_machine *m, const struct view *view)
{
    if (view_succession_invalid(&m->view, view) != NULL) {
        return false;
    }
    if (view->epoch == 1 && view->configured != m->config.configured) {
        return false;
    }
    return view_quorum(m, view, view->live) || !view_rule(m, VIEW_RULE_LIVE_MAJORITY);
}

enum view_verdict view_acceptor_accept(struct view_machine *m, const struct view_ballot *ballot,
                                       const struct view *view)
{
    struct view_acceptor *a = &m->acceptor;

    if (view->epoch != m->view.epoch + 1) {
        view_ignore(m, VIEW_IGNORED_INSTANCE);
        return VIEW_VERDICT_NONE;
    }
    if (!may_vote(m, view->epoch, view)) {
        view_ignore(m, VIEW_IGNORED_VOTER);
        return VIEW_VERDICT_NONE;
    }
    if (!view_acceptable(m, view)) {
        view_ignore(m, VIEW_IGNORED_INVALID);
        return VIEW_VERDICT_NONE;
    }
    if (view_ballot_compare(ballot, &a->promised) < 0) {
        return VIEW_VERDICT_REFUSED;
    }
    if (view_ballot_compare(ballot, &a->accepted) == 0) {
        return VIEW_VERDICT_DONE;
    }
    nodeset out = view_dropped(&m->view, view);
    uint64_t from = accept_from(m, out);
    a->promised = *ballot;
    if (m->now_us >= from) {
        accept(m, ballot, view, out);
        return VIEW_VERDICT_DONE;
    }
    /* The view may be an earlier ballot's and drop others than phase one named, so the wait must
     * itself stop the grants that it waits for (rule 2). */
    a->held = *ballot;
    a->held_view = *view;
    a->held_until_us = from;
    a->drops = out;
    a->quiet_until_us = from + view_patience_us(m);
    return VIEW_VERDICT_NONE;
}

void view_on_prepare(struct view_machine *m, const struct view_event *event,
                     struct view_effects *fx)
{
    const struct view_prepare *prepare = &event->msg->prepare;
    const struct view_acceptor *a = &m->acceptor;

    if ((prepare->flags & VIEW_PREPARE_BOOTSTRAP) != 0) {
        m->bootstrap_said = 1;
    }
    enum view_verdict verdict = view_acceptor_prepare(m, prepare);
    if (verdict == VIEW_VERDICT_NONE) {
        return;
    }
    if (verdict == VIEW_VERDICT_REFUSED) {
        struct view_msg *refusal = view_send(m, event->node, VIEW_MSG_REFUSE, fx);
        if (refusal != NULL) {
            refusal->refuse.ballot = prepare->ballot;
            refusal->refuse.promised = a->promised;
            refusal->refuse.instance = prepare->instance;
        }
        return;
    }
    struct view_msg *msg = view_send(m, event->node, VIEW_MSG_PROMISE, fx);
    if (msg != NULL) {
        msg->promise.ballot = prepare->ballot;
        msg->promise.instance = prepare->instance;
        msg->promise.accepted = a->accepted;
        msg->promise.view = a->accepted_view;
    }
}

static void send_accepted(struct view_machine *m, const struct view_ballot *ballot,
                          struct view_effects *fx)
{
    struct view_msg *msg = view_send(m, ballot->node, VIEW_MSG_ACCEPTED, fx);
    if (msg != NULL) {
        msg->accepted.ballot = *ballot;
        msg->accepted.instance = m->view.epoch + 1;
    }
}

void view_on_accept(struct view_machine *m, const struct view_event *event, struct view_effects *fx)
{
    const struct view_accept *request = &event->msg->accept;
    enum view_verdict verdict = view_acceptor_accept(m, &request->ballot, &request->view);

    if (verdict == VIEW_VERDICT_DONE) {
        send_accepted(m, &request->ballot, fx);
    } else if (verdict == VIEW_VERDICT_REFUSED) {
        struct view_msg *msg = view_send(m, event->node, VIEW_MSG_REFUSE, fx);
        if (msg != NULL) {
            msg->refuse.ballot = request->ballot;
            msg->refuse.promised = m->acceptor.promised;
            msg->refuse.instance = request->instance;
        }
    }
}

void view_held_tick(struct view_machine *m, struct view_effects *fx)
{
    struct view_acceptor *a = &m->acceptor;
    if (view_ballot_none(&a->held) || m->now_us < a->held_until_us) {
        return;
    }
    struct view_ballot ballot = a->held;
    enum view_verdict verdict = view_acceptor_accept(m, &ballot, &a->held_view);
    if (verdict != VIEW_VERDICT_DONE && a->held_until_us <= m->now_us) {
        /* Overtaken by another ballot. */
        memset(&a->held, 0, sizeof a->held);
        a->held_until_us = 0;
    }
    if (verdict != VIEW_VERDICT_DONE) {
        return;
    }
    if (ballot.node == m->config.self && ballot.nonce == m->config.nonce) {
        view_accepted_own(m, &ballot, fx);
    } else {
        send_accepted(m, &ballot, fx);
    }
}

void view_acceptor_reset(struct view_machine *m)
{
    memset(&m->acceptor, 0, sizeof m->acceptor);
}
