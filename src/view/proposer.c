/* The proposer of Paxos instance e+1: runs one ballot at a time, sends again what was lost, and
 * backs off when another ballot is under way. Which process proposes what, and when, is decided in
 * membership.c; safety does not depend on it. */
#include "view/machine_state.h"

#include "base/assert.h"
#include "view/steps.h"

/*   IDLE --view_ballot_start--> PREPARE --phase_two--> ACCEPT --decide--> IDLE, in the next view
 *                                  |                     |
 *                                  +---- ballot_lost ----+---> IDLE, after a pause */
static const struct {
    const char *name;
    uint32_t next; /* bits: the phases that may follow */
} phases[] = {
    [VIEW_PHASE_IDLE] = {"idle", 1u << VIEW_PHASE_PREPARE},
    [VIEW_PHASE_PREPARE] = {"prepare", 1u << VIEW_PHASE_IDLE | 1u << VIEW_PHASE_ACCEPT},
    [VIEW_PHASE_ACCEPT] = {"accept", 1u << VIEW_PHASE_IDLE},
};

/* The only writer of the phase, but for the reset when a view is adopted. */
static void set_phase(struct view_machine *m, enum view_phase phase)
{
    HK_ASSERT((phases[m->proposer.phase].next >> phase & 1) != 0);
    m->proposer.phase = (uint8_t)phase;
    m->proposer.started_us = m->now_us;
    m->proposer.refused = 0;
}

const char *view_phase_name(enum view_phase phase)
{
    return phases[phase].name;
}

static uint64_t resend_after_us(const struct view_machine *m)
{
    return m->config.heartbeat_us / 2 + 1;
}

void view_proposer_reset(struct view_machine *m)
{
    uint64_t round = m->proposer.round_seen;
    memset(&m->proposer, 0, sizeof m->proposer);
    m->proposer.round_seen = round;
    m->proposer.start_us = UINT64_MAX;
}

/* The ballot is given up: a random pause, longer each time, lets somebody else finish. */
static void ballot_lost(struct view_machine *m)
{
    struct view_proposer *p = &m->proposer;
    uint64_t patience = view_patience_us(m);
    uint64_t times = p->lost < 6 ? p->lost + 1 : 6;

    set_phase(m, VIEW_PHASE_IDLE);
    p->lost++;
    p->not_before_us = m->now_us + random_between(&m->random, patience / 2, patience * times);
}

/* Phase one: every decided or decidable value of this instance must show among the promises. */
static bool promised_enough(const struct view_machine *m, nodeset part)
{
    const struct view_proposer *p = &m->proposer;
    if (p->everybody == 0) {
        return view_quorum(m, &m->view, part);
    }
    if (m->view.epoch == 0 && !view_rule(m, VIEW_RULE_FIRST_VIEW_ALL)) {
        return nodeset_majority(part, p->everybody);
    }
    return nodeset_within(p->everybody, part);
}

/* Phase two: as many as the value itself asks for. */
static bool accepted_enough(const struct view_machine *m, nodeset part)
{
    const struct view *value = &m->proposer.value;
    if (m->view.epoch == 0 && !view_rule(m, VIEW_RULE_FIRST_VIEW_ALL)) {
        return nodeset_majority(part, value->configured);
    }
    if (value->generation != m->view.generation) {
        return nodeset_within(value->configured, part);
    }
    return view_quorum(m, &m->view, part);
}

static bool enough(const struct view_machine *m, nodeset part)
{
    return m->proposer.phase == VIEW_PHASE_PREPARE ? promised_enough(m, part)
                                                   : accepted_enough(m, part);
}

static void prepare_fill(const struct view_machine *m, struct view_prepare *prepare)
{
    const struct view_proposer *p = &m->proposer;
    prepare->ballot = p->ballot;
    prepare->drops = p->drops;
    prepare->configured = p->everybody;
    prepare->instance = m->view.epoch + 1;
    prepare->flags = p->flags;
}

/* Sends the phase's request to all who have not answered it. */
static void request_send(struct view_machine *m, struct view_effects *fx)
{
    struct view_proposer *p = &m->proposer;
    bool first = p->phase == VIEW_PHASE_PREPARE;
    nodeset to = view_audience(m) & ~(first ? p->promised : p->accepted);

    p->resend_us = m->now_us + resend_after_us(m);
    for (; to != 0; to &= to - 1) {
        struct view_msg *msg =
            view_send(m, nodeset_first(to), first ? VIEW_MSG_PREPARE : VIEW_MSG_ACCEPT, fx);
        if (msg == NULL) {
            return;
        }
        if (first) {
            prepare_fill(m, &msg->prepare);
        } else {
            msg->accept.ballot = p->ballot;
            msg->accept.instance = p->value.epoch;
            msg->accept.view = p->value;
        }
    }
}

/* A quorum accepted: the view is decided. It is learned before it is told, because it must be
 * kept in the state file before anything that depends on it leaves the node. */
static void decide(struct view_machine *m, struct view_effects *fx)
{
    struct view value = m->proposer.value;
    nodeset to = (view_audience(m) | value.live) & ~nodeset_of(m->config.self);

    view_learn(m, &value, fx);
    for (; to != 0; to &= to - 1) {
        struct view_msg *msg = view_send(m, nodeset_first(to), VIEW_MSG_VIEW, fx);
        if (msg == NULL) {
            return;
        }
        msg->epoch = value.epoch;
        msg->view = value;
    }
}

static void accepted_count(struct view_machine *m, uint8_t node, struct view_effects *fx)
{
    struct view_proposer *p = &m->proposer;
    p->accepted |= nodeset_of(node);
    if (accepted_enough(m, p->accepted)) {
        decide(m, fx);
    }
}

/* Members that the ballot drops for their silence, yet promised it: they live. That says nothing
 * about those that leave, that SUSPECT speaks of, or that are no longer configured. */
static nodeset promised_alive(const struct view_machine *m)
{
    const struct view_proposer *p = &m->proposer;
    nodeset alive = 0;
    nodeset silent = p->drops & m->view.configured;
    for (nodeset rest = silent & p->promised; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        const struct view_peer *peer = &m->member[node];
        if (!peer->left && peer->suspected_until_us <= m->now_us) {
            alive |= nodeset_of(node);
        }
    }
    return alive;
}

/* Members that a new value would keep without having heard from them in this ballot. A view that
 * lists a dead member and drops a live one, who then wipes itself or leaves, can be left without a
 * majority: so nobody is kept unheard when somebody is dropped (progress only; a bound value is
 * proposed as it is). */
static nodeset kept_unheard(const struct view_machine *m)
{
    const struct view_proposer *p = &m->proposer;
    bool drops = (p->drops & m->view.configured) != 0;
    if (!view_ballot_none(&p->best) || !drops || m->survivors != 0) {
        return 0;
    }
    return m->view.live & ~p->drops & ~p->promised;
}

/* The value of phase two: what the highest ballot accepted, else what is to be changed now. */
static bool value_choose(struct view_machine *m)
{
    struct view_proposer *p = &m->proposer;
    bool bound = !view_ballot_none(&p->best);
    /* An earlier recover's view asks for all whom it names, so it binds only while all of them
     * survive. Else it can never be decided, or the dead alone know that it was: nobody was
     * served in it, for that takes the grants of others who hold it. */
    bool binds = bound && p->value.generation != m->view.generation &&
                 nodeset_within(p->value.configured, m->survivors);

    if (m->survivors != 0 && !binds) {
        struct view accepted = p->value;
        bool fits = view_recover_value(m, bound ? &accepted : NULL, &p->value);
        if (!fits) {
            m->survivors = 0;
            view_ignore(m, VIEW_IGNORED_OPERATOR);
        }
        return fits;
    }
    if (bound) {
        return true;
    }
    if (m->view.epoch == 0) {
        view_first_value(m, &p->value);
        return true;
    }
    struct view_plan plan;
    if (!view_plan_make(m, p->drops & ~promised_alive(m), &plan)) {
        return false;
    }
    view_plan_apply(m, &plan, &p->value);
    return true;
}

static void phase_two(struct view_machine *m, struct view_effects *fx)
{
    struct view_proposer *p = &m->proposer;

    if (!value_choose(m)) {
        /* What was to be changed has mended itself; the promises lapse by themselves. */
        set_phase(m, VIEW_PHASE_IDLE);
        return;
    }
    set_phase(m, VIEW_PHASE_ACCEPT);
    request_send(m, fx);
    if (view_acceptor_accept(m, &p->ballot, &p->value) == VIEW_VERDICT_DONE) {
        accepted_count(m, m->config.self, fx);
    }
}

static void promise_count(struct view_machine *m, uint8_t node, uint64_t nonce,
                          const struct view_ballot *accepted, const struct view *view,
                          struct view_effects *fx)
{
    struct view_proposer *p = &m->proposer;

    p->promised |= nodeset_of(node);
    p->nonces[node] = nonce;
    if (view_ballot_compare(accepted, &p->best) > 0) {
        p->best = *accepted;
        p->value = *view;
    }
    if (promised_enough(m, p->promised) && kept_unheard(m) == 0) {
        phase_two(m, fx);
    }
}

/* A member that the ballot would keep fell silent meanwhile: another ballot names it. */
static bool kept_suspected(const struct view_machine *m)
{
    for (nodeset rest = kept_unheard(m); rest != 0; rest &= rest - 1) {
        if (view_suspected(m, nodeset_first(rest))) {
            return true;
        }
    }
    return false;
}

void view_ballot_start(struct view_machine *m, nodeset drops, struct view_effects *fx)
{
    struct view_proposer *p = &m->proposer;
    const struct view_acceptor *a = &m->acceptor;
    uint64_t round = p->round_seen > a->promised.round ? p->round_seen : a->promised.round;

    set_phase(m, VIEW_PHASE_PREPARE);
    p->round_seen = round + 1;
    p->ballot = (struct view_ballot){
        .round = p->round_seen, .nonce = m->config.nonce, .node = m->config.self};
    memset(&p->best, 0, sizeof p->best);
    memset(&p->value, 0, sizeof p->value);
    memset(p->nonces, 0, sizeof p->nonces);
    p->drops = drops;
    p->everybody = m->view.epoch == 0 ? m->config.configured : m->survivors;
    p->flags = 0;
    if (m->view.epoch == 0 && m->bootstrap_said) {
        p->flags |= VIEW_PREPARE_BOOTSTRAP;
    }
    if (m->survivors != 0) {
        p->flags |= VIEW_PREPARE_RECOVER;
    }
    p->promised = 0;
    p->accepted = 0;
    request_send(m, fx);

    struct view_prepare prepare = {0};
    prepare_fill(m, &prepare);
    if (view_acceptor_prepare(m, &prepare) == VIEW_VERDICT_DONE) {
        promise_count(m, m->config.self, m->config.nonce, &a->accepted, &a->accepted_view, fx);
    }
}

/* Whether the sender's answer counts: it is to this ballot, and comes from a process that votes. */
static bool answer_counts(struct view_machine *m, const struct view_event *event,
                          const struct view_ballot *ballot, uint32_t instance,
                          enum view_phase phase)
{
    const struct view_proposer *p = &m->proposer;
    if (p->phase != phase || instance != m->view.epoch + 1 ||
        view_ballot_compare(ballot, &p->ballot) != 0) {
        view_ignore(m, VIEW_IGNORED_BALLOT);
        return false;
    }
    bool votes = m->view.epoch == 0 ? nodeset_has(m->config.configured, event->node)
                                    : view_has(&m->view, event->node, event->nonce) ||
                                          !view_rule(m, VIEW_RULE_MEMBERS_VOTE);
    if (!votes) {
        view_ignore(m, VIEW_IGNORED_VOTER);
    }
    return votes;
}

void view_on_promise(struct view_machine *m, const struct view_event *event,
                     struct view_effects *fx)
{
    const struct view_promise *promise = &event->msg->promise;
    if (answer_counts(m, event, &promise->ballot, promise->instance, VIEW_PHASE_PREPARE)) {
        promise_count(m, event->node, event->nonce, &promise->accepted, &promise->view, fx);
    }
}

void view_on_accepted(struct view_machine *m, const struct view_event *event,
                      struct view_effects *fx)
{
    const struct view_accepted *accepted = &event->msg->accepted;
    if (answer_counts(m, event, &accepted->ballot, accepted->instance, VIEW_PHASE_ACCEPT)) {
        accepted_count(m, event->node, fx);
    }
}

void view_accepted_own(struct view_machine *m, const struct view_ballot *ballot,
                       struct view_effects *fx)
{
    const struct view_proposer *p = &m->proposer;
    if (p->phase == VIEW_PHASE_ACCEPT && view_ballot_compare(ballot, &p->ballot) == 0) {
        accepted_count(m, m->config.self, fx);
    }
}

void view_on_refuse(struct view_machine *m, const struct view_event *event)
{
    struct view_proposer *p = &m->proposer;
    const struct view_refuse *refuse = &event->msg->refuse;

    if (refuse->promised.round > p->round_seen && refuse->instance == m->view.epoch + 1) {
        p->round_seen = refuse->promised.round;
    }
    if (p->phase == VIEW_PHASE_IDLE || refuse->instance != m->view.epoch + 1 ||
        view_ballot_compare(&refuse->ballot, &p->ballot) != 0) {
        view_ignore(m, VIEW_IGNORED_BALLOT);
        return;
    }
    p->refused |= nodeset_of(event->node);
    nodeset possible = view_audience(m) | nodeset_of(m->config.self);
    if (!enough(m, possible & ~p->refused)) {
        ballot_lost(m);
    }
}

void view_proposer_tick(struct view_machine *m, struct view_effects *fx)
{
    struct view_proposer *p = &m->proposer;
    if (p->phase == VIEW_PHASE_IDLE) {
        return;
    }
    /* Phase two may have to wait for grants, and for a member that was admitted just now. */
    uint64_t limit =
        4 * view_patience_us(m) + (p->phase == VIEW_PHASE_ACCEPT ? m->config.lease_us : 0);
    bool kept_silent = p->phase == VIEW_PHASE_PREPARE && kept_suspected(m);
    struct view_plan plan;
    if (m->now_us >= p->started_us + limit) {
        ballot_lost(m);
    } else if (kept_silent && view_plan_make(m, ~(nodeset)0, &plan) && plan.drops != p->drops) {
        set_phase(m, VIEW_PHASE_IDLE);
    } else if (kept_silent) {
        /* The next ballot could not name it either: at once, it would keep all others quiet. */
        ballot_lost(m);
    } else if (m->now_us >= p->resend_us && view_room(fx, NODES_MAX)) {
        request_send(m, fx);
    }
}
