/* The view protocol: leased reliable membership, kept by the replicas themselves ([H] 4.3.3,
 * "Network partitions", "Membership reconfiguration after a failure", "Recovery"; [H] 4.5.7 for the
 * length of leases). docs/protocols/view.md has the rules by number, the whole state table and the
 * timers; this comment is the map of the code.
 *
 * Faults: processes stop, restart without memory, or pause for any time and go on; messages are
 * lost, doubled, reordered and delayed for any time; links fail one way or both. Clocks run on
 * while a process is paused and differ in rate by less than the margin allows. Nobody lies.
 *
 *   D1  The paper takes a leased membership service for granted; here the replicas are it: Paxos,
 *       an instance an epoch, with leases honoured by the acceptors.
 *   D2  A member is a process (node, boot nonce, admitting epoch), because restarts forget.
 *   D3  Promises lapse when their proposer is silent, and an acceptor refuses other ballots while
 *       one waits for grants: both concern progress, neither safety.
 *
 *   step                               spec/View.tla          function (file)
 *   heartbeat, grant                   Grant, Arrive          view_on_heartbeat (heartbeat.c)
 *   lease                              HoldsLease             view_lease_update (heartbeat.c)
 *   phase one                          Prepare, Promise       view_ballot_start (proposer.c),
 *                                                             view_acceptor_prepare (acceptor.c)
 *   phase two                          Propose, Hold, Accept  phase_two (proposer.c),
 *                                                             view_acceptor_accept (acceptor.c)
 *   which view to propose              Choices, Plans         view_plan_make (membership.c)
 *   m-update                           Decide, Learn          view_learn (membership.c)
 *   first view, recover                Firsts, Recover        bootstrap.c
 *
 *   I1  The view held is a valid one; it only ever moves to later epochs.
 *   I2  What is accepted was promised, is of the next instance, and follows the view held.
 *   I3  Only an operational member that does not leave holds a lease.
 *   I4  Whoever waits for grants to run out gives none of these meanwhile.
 *   I5  What is known of members belongs to the processes that the view names; no grant reaches
 *       further than one lease from now, and none is left to a member that gave its lease up.
 */
#include "view/machine.h"

#include <stddef.h>

#include "base/assert.h"
#include "view/machine_state.h"
#include "view/steps.h"

const char *const view_rule_names[VIEW_RULES] = {
    [VIEW_RULE_GRANTS_FIRST] = "grants-first",
    [VIEW_RULE_PROMISE_DROPS] = "promise-drops",
    [VIEW_RULE_MEMBERS_VOTE] = "members-vote",
    [VIEW_RULE_MEMBERS_GRANT] = "members-grant",
    [VIEW_RULE_ADMISSION_WAIT] = "admission-wait",
    [VIEW_RULE_GRANT_EPOCH] = "grant-epoch",
    [VIEW_RULE_GRANT_INCARNATION] = "grant-incarnation",
    [VIEW_RULE_GRANT_MEMBERS] = "grant-members",
    [VIEW_RULE_ACCEPT_ENDS_LEASE] = "accept-ends-lease",
    [VIEW_RULE_FIRST_VIEW_ALL] = "first-view-all",
    [VIEW_RULE_KEPT_STATE] = "kept-state",
    [VIEW_RULE_JOINT_MAJORITY] = "joint-majority",
    [VIEW_RULE_LIVE_MAJORITY] = "live-majority",
    [VIEW_RULE_CONFIRM] = "confirm",
    [VIEW_RULE_WIPE] = "wipe",
    [VIEW_RULE_NO_READMIT] = "no-readmit",
    [VIEW_RULE_ADOPTED] = "adopted",
    [VIEW_RULE_HEALTHY] = "healthy",
};

#ifdef HK_MUTANTS
void view_switch_off(struct view_machine *m, enum view_rule rule)
{
    m->rules_off |= (uint64_t)1 << rule;
}
#endif

bool view_self_member(const struct view_machine *m)
{
    return !m->gone && view_has(&m->view, m->config.self, m->config.nonce);
}

bool view_quorum(const struct view_machine *m, const struct view *view, nodeset part)
{
    return view_rule(m, VIEW_RULE_JOINT_MAJORITY) ? view_majority(view, part)
                                                  : nodeset_majority(part, view->configured);
}

uint64_t view_patience_us(const struct view_machine *m)
{
    return 2 * (uint64_t)m->config.heartbeat_us;
}

nodeset view_audience(const struct view_machine *m)
{
    nodeset all = m->config.configured | m->view.configured | m->view.configured_old |
                  m->view.live | m->wanted;
    return all & ~nodeset_of(m->config.self);
}

void view_ignore(struct view_machine *m, enum view_ignored why)
{
    m->ignored[why]++;
}

/* The last few places are for effects that must not be lost. */
#define EFFECTS_KEPT 4u

bool view_room(const struct view_effects *fx, uint32_t n)
{
    return fx->n + n <= VIEW_EFFECTS_MAX - EFFECTS_KEPT;
}

void view_effect(struct view_effects *fx, enum view_effect_kind kind)
{
    HK_ASSERT(fx->n < VIEW_EFFECTS_MAX);
    struct view_effect *effect = &fx->e[fx->n++];
    memset(effect, 0, sizeof *effect);
    effect->kind = kind;
}

struct view_msg *view_send(const struct view_machine *m, uint8_t to, enum view_msg_kind kind,
                           struct view_effects *fx)
{
    if (!view_room(fx, 1)) {
        return NULL;
    }
    view_effect(fx, VIEW_EFFECT_SEND);
    struct view_effect *effect = &fx->e[fx->n - 1];
    effect->to = to;
    effect->msg.kind = (uint8_t)kind;
    effect->msg.epoch = m->view.epoch;
    return &effect->msg;
}

void view_send_view(const struct view_machine *m, uint8_t to, struct view_effects *fx)
{
    if (m->view.epoch == 0) {
        return;
    }
    struct view_msg *msg = view_send(m, to, VIEW_MSG_VIEW, fx);
    if (msg != NULL) {
        msg->view = m->view;
    }
}

const char *view_config_invalid(const struct view_config *config)
{
    if (config->nonce == 0 || !nodeset_has(config->configured, config->self)) {
        return "no nonce, or a node that is not among those configured";
    }
    if (config->margin_us >= config->lease_us || config->suspect_us >= config->lease_us) {
        return "margin and silence must be shorter than the lease";
    }
    if (config->heartbeat_us == 0 || config->heartbeat_us >= config->suspect_us) {
        return "heartbeats must be more frequent than silence is long";
    }
    if (config->cids_per_member == 0) {
        return "a member needs a c_id";
    }
    if ((config->kept_generation == 0) != (config->kept_epoch == 0)) {
        return "kept generation without an epoch, or an epoch without a generation";
    }
    return NULL;
}

void view_init(struct view_machine *m, const struct view_config *config, uint64_t now_us)
{
    HK_ASSERT(view_config_invalid(config) == NULL);
    memset(m, 0, sizeof *m);
    /* Field by field, so that the padding stays zero and machines compare as bytes. */
    m->config.self = config->self;
    m->config.nonce = config->nonce;
    m->config.configured = config->configured;
    m->config.lease_us = config->lease_us;
    m->config.margin_us = config->margin_us;
    m->config.heartbeat_us = config->heartbeat_us;
    m->config.suspect_us = config->suspect_us;
    m->config.cids_per_member = config->cids_per_member;
    m->config.bootstrap = config->bootstrap;
    m->config.kept_generation = config->kept_generation;
    m->config.kept_epoch = config->kept_epoch;
    m->config.seed = config->seed;
    random_init(&m->random, config->seed ^ config->nonce);
    m->bootstrap_said = config->bootstrap;
    m->now_us = now_us;
    m->heartbeat_at_us = now_us;
    m->proposer.start_us = UINT64_MAX;
}

/* Frames of another generation say nothing here, but for one thing: whoever was left behind by
 * `recover` must learn of it. True: the message is done with. */
static bool other_generation(struct view_machine *m, const struct view_event *event,
                             struct view_effects *fx)
{
    const struct view_msg *msg = event->msg;
    if (m->view.epoch == 0 || event->generation == 0 || event->generation == m->view.generation) {
        return false;
    }
    if (msg->kind == VIEW_MSG_VIEW && msg->view.generation_old == m->view.generation) {
        view_learn(m, &msg->view, fx);
    } else if (msg->kind == VIEW_MSG_HEARTBEAT && event->generation == m->view.generation_old) {
        view_send_view(m, event->node, fx);
    } else {
        view_ignore(m, VIEW_IGNORED_GENERATION);
    }
    return true;
}

/* Whoever is behind asks for the view; whoever talks to somebody behind sends it. */
static void catch_up(struct view_machine *m, const struct view_event *event,
                     struct view_effects *fx)
{
    const struct view_msg *msg = event->msg;
    bool request = msg->kind == VIEW_MSG_PREPARE || msg->kind == VIEW_MSG_ACCEPT;

    if (msg->epoch > m->view.epoch && (request || msg->kind == VIEW_MSG_HEARTBEAT)) {
        m->peer_view = 1;
        (void)view_send(m, event->node, VIEW_MSG_ASK, fx);
    } else if (msg->epoch < m->view.epoch && (request || msg->kind == VIEW_MSG_ASK)) {
        view_send_view(m, event->node, fx);
    }
}

static void on_message(struct view_machine *m, const struct view_event *event,
                       struct view_effects *fx)
{
    const struct view_msg *msg = event->msg;

    HK_ASSERT(msg != NULL);
    if (event->node == m->config.self || event->node >= NODES_MAX || event->nonce == 0) {
        view_ignore(m, VIEW_IGNORED_GENERATION);
        return;
    }
    if (other_generation(m, event, fx)) {
        return;
    }
    catch_up(m, event, fx);
    const struct view_ballot *ballot = msg->kind == VIEW_MSG_PREPARE  ? &msg->prepare.ballot
                                       : msg->kind == VIEW_MSG_ACCEPT ? &msg->accept.ballot
                                                                      : NULL;
    if (ballot != NULL && (ballot->node != event->node || ballot->nonce != event->nonce)) {
        view_ignore(m, VIEW_IGNORED_INVALID);
        return;
    }
    switch ((enum view_msg_kind)msg->kind) {
    case VIEW_MSG_HEARTBEAT:
        view_on_heartbeat(m, event, fx);
        return;
    case VIEW_MSG_GRANT:
        view_on_grant(m, event);
        return;
    case VIEW_MSG_VIEW:
        view_learn(m, &msg->view, fx);
        return;
    case VIEW_MSG_ASK:
        return;
    case VIEW_MSG_PREPARE:
        view_on_prepare(m, event, fx);
        return;
    case VIEW_MSG_PROMISE:
        view_on_promise(m, event, fx);
        return;
    case VIEW_MSG_ACCEPT:
        view_on_accept(m, event, fx);
        return;
    case VIEW_MSG_ACCEPTED:
        view_on_accepted(m, event, fx);
        return;
    case VIEW_MSG_REFUSE:
        view_on_refuse(m, event);
        return;
    }
    view_ignore(m, VIEW_IGNORED_INVALID);
}

/* The lease ends here and now, and for good: only after that are the grants given back. */
static void on_leave(struct view_machine *m, struct view_effects *fx)
{
    m->leaving = 1;
    view_lease_update(m);
    if (!view_self_member(m) || m->view.live == nodeset_of(m->config.self)) {
        m->gone = 1;
        view_effect(fx, VIEW_EFFECT_LEFT);
        return;
    }
    view_heartbeat_send(m, fx);
}

static void on_event(struct view_machine *m, const struct view_event *event,
                     struct view_effects *fx)
{
    switch (event->kind) {
    case VIEW_EVENT_TICK:
        m->progress |= event->healthy;
        m->keeps = event->keeps;
        view_heartbeat_tick(m, fx);
        view_proposer_tick(m, fx);
        return;
    case VIEW_EVENT_MESSAGE:
        on_message(m, event, fx);
        return;
    case VIEW_EVENT_SUSPECT:
        view_on_suspect(m, event->node);
        return;
    case VIEW_EVENT_COPIED:
        m->copied = view_self_member(m);
        return;
    case VIEW_EVENT_ADOPTED:
        m->adopted = event->epoch > m->adopted ? event->epoch : m->adopted;
        return;
    case VIEW_EVENT_LEAVE:
        on_leave(m, fx);
        return;
    case VIEW_EVENT_CONFIGURE:
        view_on_configure(m, event->configured);
        return;
    case VIEW_EVENT_RECOVER:
        view_on_recover(m, event->configured);
        return;
    case VIEW_EVENT_HINT:
        if (event->node < NODES_MAX && event->node != m->config.self) {
            view_send_view(m, event->node, fx);
        }
        return;
    }
}

void view_step(struct view_machine *m, const struct view_event *event, struct view_effects *fx)
{
    HK_ASSERT(event->now_us >= m->now_us);
    if (m->gone) {
        return;
    }
    view_silence_shift(m, event->now_us);
    m->now_us = event->now_us;
    on_event(m, event, fx);
    if (!m->gone) {
        view_held_tick(m, fx);
    }
    if (!m->gone) {
        view_duties_tick(m, fx);
    }
    HK_CHECK((view_check(m), true));
}

const struct view *view_current(const struct view_machine *m)
{
    return &m->view;
}

uint64_t view_lease_until(const struct view_machine *m)
{
    return m->lease_until_us;
}

bool view_confirms(const struct view_machine *m, uint32_t epoch)
{
    bool undecided = view_ballot_none(&m->acceptor.accepted) || !view_rule(m, VIEW_RULE_CONFIRM);
    return view_self_member(m) && epoch == m->view.epoch && undecided;
}

uint64_t view_deadline(const struct view_machine *m)
{
    uint64_t deadline = m->heartbeat_at_us;
    uint64_t others[5] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};

    if (m->gone) {
        return UINT64_MAX;
    }
    if (!view_ballot_none(&m->acceptor.held)) {
        others[0] = m->acceptor.held_until_us;
    }
    if (m->proposer.phase != VIEW_PHASE_IDLE) {
        others[1] = m->proposer.resend_us;
    } else {
        others[2] = m->proposer.start_us;
    }
    others[3] = view_suspicion_deadline(m);
    uint64_t pending = m->acceptor.accepted_us + view_patience_us(m);
    if (!view_ballot_none(&m->acceptor.accepted) && m->now_us < pending) {
        others[4] = pending;
    }
    for (uint32_t i = 0; i < 5; i++) {
        deadline = others[i] < deadline ? others[i] : deadline;
    }
    return deadline;
}

static bool majority_heard(const struct view_machine *m)
{
    nodeset heard = 0;
    for (nodeset rest = m->view.live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        heard |= view_suspected(m, node) ? 0 : nodeset_of(node);
    }
    return view_majority(&m->view, heard);
}

enum view_status view_status(const struct view_machine *m, uint64_t now_us)
{
    if (m->leaving) {
        return VIEW_STATUS_LEAVING;
    }
    if (m->view.epoch == 0 && !m->peer_view) {
        return view_may_form(m) ? VIEW_STATUS_FORMING : VIEW_STATUS_REFUSING;
    }
    if (!view_self_member(m)) {
        return VIEW_STATUS_JOINING;
    }
    if (now_us >= m->lease_until_us && !majority_heard(m)) {
        return VIEW_STATUS_LOST;
    }
    if (!nodeset_has(m->view.operational, m->config.self)) {
        return VIEW_STATUS_JOINING;
    }
    return now_us < m->lease_until_us ? VIEW_STATUS_SERVING : VIEW_STATUS_NO_LEASE;
}

const char *view_status_name(enum view_status status)
{
    static const char *const names[] = {
        [VIEW_STATUS_FORMING] = "forming",   [VIEW_STATUS_REFUSING] = "refusing",
        [VIEW_STATUS_JOINING] = "joining",   [VIEW_STATUS_SERVING] = "serving",
        [VIEW_STATUS_NO_LEASE] = "no-lease", [VIEW_STATUS_LEAVING] = "leaving",
        [VIEW_STATUS_LOST] = "lost",
    };
    return names[status];
}

uint64_t view_ignored_count(const struct view_machine *m, enum view_ignored why)
{
    return m->ignored[why];
}

const char *view_broken(const struct view_machine *m)
{
    const struct view_acceptor *a = &m->acceptor;

    if (m->view.epoch != 0 && view_invalid(&m->view) != NULL) {
        return "I1: the view held is not a valid one";
    }
    if (view_ballot_compare(&a->accepted, &a->promised) > 0 ||
        (!view_ballot_none(&a->held) && view_ballot_compare(&a->held, &a->promised) != 0)) {
        return "I2: accepted or held what was not promised";
    }
    if (!view_ballot_none(&a->accepted) &&
        view_succession_invalid(&m->view, &a->accepted_view) != NULL) {
        return "I2: accepted a view that does not follow the one held";
    }
    if (m->lease_until_us != 0 &&
        (m->leaving || !view_operational(&m->view, m->config.self, m->config.nonce))) {
        return "I3: a lease without being an operational member that stays";
    }
    if (view_rule(m, VIEW_RULE_PROMISE_DROPS) && !view_ballot_none(&a->held) &&
        m->now_us < a->quiet_until_us &&
        !nodeset_within(view_dropped(&m->view, &a->held_view), view_denied(m))) {
        return "I4: waits for grants that it may give again";
    }
    for (nodeset rest = m->view.live & ~nodeset_of(m->config.self); rest != 0; rest &= rest - 1) {
        const struct view_peer *peer = &m->member[nodeset_first(rest)];
        if (peer->nonce != m->view.members[nodeset_first(rest)].nonce) {
            return "I5: what is known of a member belongs to another process";
        }
        if (peer->granted_until_us > m->now_us + m->config.lease_us ||
            (peer->left && peer->granted_until_us != 0)) {
            return "I5: a grant too long, or to a member that gave its lease up";
        }
    }
    return NULL;
}

void view_check(const struct view_machine *m)
{
    HK_ASSERT(view_broken(m) == NULL);
}
