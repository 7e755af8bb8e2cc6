/* Membership: what the next view should change, who proposes it and when, and what learning a
 * decided view does ([H] calls that the m-update). Drops, admissions and promotions that are due
 * together go into one view. */
#include "view/machine_state.h"

#include "base/assert.h"
#include "view/steps.h"

/* Whether the view may go on with only these of its members: a majority (rule 7), and somebody
 * who has all data. */
static bool remain_enough(const struct view_machine *m, nodeset rest)
{
    bool majority = view_quorum(m, &m->view, rest) || !view_rule(m, VIEW_RULE_LIVE_MAJORITY);
    return majority && (m->view.operational & rest) != 0;
}

static nodeset plan_drops(const struct view_machine *m, nodeset droppable)
{
    const struct view *view = &m->view;
    nodeset drops = 0;

    for (nodeset rest = view->live & droppable; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (view_suspected(m, node)) {
            drops |= nodeset_of(node);
        }
    }
    if (!remain_enough(m, view->live & ~drops)) {
        drops = 0;
    }
    for (nodeset rest = view->live & droppable & ~drops; rest != 0; rest &= rest - 1) {
        nodeset more = drops | nodeset_of(nodeset_first(rest));
        if (m->member[nodeset_first(rest)].left && remain_enough(m, view->live & ~more)) {
            drops = more;
        }
    }
    return drops;
}

/* The members that stay in the new configured set. A shadow that leaves will never be operational;
 * the old set may need it, so that it is not dropped either, and it must not be waited for. */
static nodeset staying_members(const struct view_machine *m, nodeset drops)
{
    const struct view *view = &m->view;
    nodeset staying = view->live & view->configured & ~drops;
    for (nodeset rest = staying & ~view->operational; rest != 0; rest &= rest - 1) {
        if (m->member[nodeset_first(rest)].left) {
            staying &= ~nodeset_of(nodeset_first(rest));
        }
    }
    return staying;
}

/* Rule 6: the old configured set is let go when every live member holds a view that names both,
 * and only operational ones are left in the new set, so that no data depends on the others. */
static bool configuration_settled(const struct view_machine *m, nodeset drops)
{
    const struct view *view = &m->view;
    nodeset staying = staying_members(m, drops);

    if (view->configured_old == 0 || m->keeps != 0 || !nodeset_within(staying, view->operational) ||
        !nodeset_majority(staying, view->configured)) {
        return false;
    }
    for (nodeset rest = view->live & ~drops; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (node != m->config.self && m->member[node].epoch != view->epoch) {
            return false;
        }
    }
    return true;
}

/* Whether a process asks to be admitted and has never been a member: it must say so knowing the
 * present view, for what it said earlier may have been overtaken by its admission (rule 8). */
static bool asks_to_join(const struct view_machine *m, uint8_t node)
{
    const struct view_peer *peer = &m->candidate[node];
    if (!view_candidate_fresh(m, node) || (peer->flags & VIEW_HEARTBEAT_LEAVING) != 0) {
        return false;
    }
    return !view_rule(m, VIEW_RULE_NO_READMIT) ||
           (peer->epoch == m->view.epoch && peer->admitted == 0);
}

/* Every member must be able to talk with a newcomer, since each write needs each member's
 * acknowledgement: else it would be admitted, suspected and dropped in turns. */
static bool heard_by_all(const struct view_machine *m, uint8_t node, nodeset members)
{
    for (nodeset rest = members & ~nodeset_of(m->config.self); rest != 0; rest &= rest - 1) {
        if (!nodeset_has(m->member[nodeset_first(rest)].heard, node)) {
            return false;
        }
    }
    return true;
}

static nodeset plan_admits(const struct view_machine *m, nodeset drops, nodeset configured)
{
    nodeset staying = m->view.live & ~drops;
    nodeset admits = 0;
    uint64_t cids = VIEW_CIDS_MAX - m->view.next_cid;

    for (nodeset rest = configured & ~staying; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        /* Running out of c_ids refuses joins, for a c_id is never handed out twice. */
        if (asks_to_join(m, node) && heard_by_all(m, node, staying) &&
            cids >= m->config.cids_per_member) {
            admits |= nodeset_of(node);
            cids -= m->config.cids_per_member;
        }
    }
    return admits;
}

static nodeset plan_promotes(const struct view_machine *m, nodeset drops)
{
    nodeset promotes = 0;
    for (nodeset rest = m->view.live & ~m->view.operational & ~drops; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        const struct view_peer *peer = &m->member[node];
        if (peer->epoch == m->view.epoch && (peer->flags & VIEW_HEARTBEAT_COPIED) != 0 &&
            !peer->left) {
            promotes |= nodeset_of(node);
        }
    }
    return promotes;
}

/* Whether the live members of the planned view hold the majorities that it will ask for. */
static bool plan_fits(const struct view_machine *m, const struct view_plan *plan)
{
    nodeset live = (m->view.live & ~plan->drops) | plan->admits;
    struct view sets = {.configured = plan->configured, .configured_old = plan->configured_old};
    return view_quorum(m, &sets, live) || !view_rule(m, VIEW_RULE_LIVE_MAJORITY);
}

bool view_plan_make(const struct view_machine *m, nodeset droppable, struct view_plan *plan_out)
{
    const struct view *view = &m->view;
    nodeset drops = plan_drops(m, droppable);

    *plan_out = (struct view_plan){.drops = drops,
                                   .promotes = plan_promotes(m, drops),
                                   .configured = view->configured,
                                   .configured_old = view->configured_old};
    if (configuration_settled(m, drops) &&
        nodeset_within(view->live & ~view->configured, droppable)) {
        plan_out->configured_old = 0;
        plan_out->drops |= view->live & ~view->configured;
        plan_out->promotes &= ~plan_out->drops;
    } else if (m->wanted != 0 && view->configured_old == 0 && m->wanted != view->configured) {
        plan_out->configured = m->wanted;
        plan_out->configured_old = view->configured;
        plan_out->admits = plan_admits(m, plan_out->drops, m->wanted);
        if (plan_fits(m, plan_out)) {
            return true;
        }
        plan_out->configured = view->configured;
        plan_out->configured_old = 0;
    }
    plan_out->admits = plan_admits(m, plan_out->drops, plan_out->configured);
    return plan_fits(m, plan_out) &&
           ((plan_out->drops | plan_out->admits | plan_out->promotes) != 0 ||
            plan_out->configured_old != view->configured_old);
}

void view_plan_apply(const struct view_machine *m, const struct view_plan *plan,
                     struct view *next_out)
{
    *next_out = m->view;
    next_out->epoch++;
    next_out->configured = plan->configured;
    next_out->configured_old = plan->configured_old;
    for (nodeset rest = plan->drops; rest != 0; rest &= rest - 1) {
        memset(&next_out->members[nodeset_first(rest)], 0, sizeof next_out->members[0]);
    }
    next_out->live &= ~plan->drops;
    next_out->operational &= ~plan->drops;
    for (nodeset rest = plan->admits; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        next_out->members[node] = (struct view_member){
            .nonce = m->candidate[node].nonce,
            .admitted = next_out->epoch,
            .cid_first = next_out->next_cid,
            .cid_count = m->config.cids_per_member,
            .role = VIEW_ROLE_SHADOW,
        };
        next_out->next_cid += m->config.cids_per_member;
        next_out->live |= nodeset_of(node);
    }
    for (nodeset rest = plan->promotes; rest != 0; rest &= rest - 1) {
        next_out->members[nodeset_first(rest)].role = VIEW_ROLE_OPERATIONAL;
    }
    next_out->operational |= plan->promotes;
}

/* Proposers take turns: operational members that are not suspected, those of the new configured
 * set first, the lowest id first; then whoever else must finish what it accepted. */
static uint32_t rank(const struct view_machine *m)
{
    uint8_t self = m->config.self;
    nodeset below = nodeset_of(self) - 1;
    if (m->view.epoch == 0) {
        return nodeset_count(m->config.configured & below);
    }
    nodeset able = 0;
    for (nodeset rest = m->view.operational; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        bool leaves = node == self ? m->leaving != 0 : m->member[node].left != 0;
        if (!view_suspected(m, node) && !leaves) {
            able |= nodeset_of(node);
        }
    }
    nodeset first = able & m->view.configured;
    if (nodeset_has(first, self)) {
        return nodeset_count(first & below);
    }
    return nodeset_count(first) + nodeset_count((m->view.live & ~first) & below);
}

/* Whether something must be decided and this process may propose it; what phase one is to name. */
static bool need(const struct view_machine *m, nodeset *drops_out)
{
    *drops_out = 0;
    if (m->view.epoch == 0) {
        return view_first_ready(m);
    }
    if (!view_self_member(m)) {
        return false;
    }
    if (m->survivors != 0) {
        *drops_out = m->view.live & ~m->survivors;
        return true;
    }
    /* What was accepted but not decided stops the renewal of leases, so somebody finishes it. */
    bool pending = !view_ballot_none(&m->acceptor.accepted) &&
                   m->now_us >= m->acceptor.accepted_us + view_patience_us(m);
    bool changes = false;
    /* Who leaves goes on with these duties until it is dropped, after all others by rank: if it is
     * the last operational member, nobody else could let anybody in. */
    if (nodeset_has(m->view.operational, m->config.self)) {
        struct view_plan plan;
        changes = view_plan_make(m, ~(nodeset)0, &plan);
        *drops_out = plan.drops;
    }
    return changes || pending;
}

void view_duties_tick(struct view_machine *m, struct view_effects *fx)
{
    struct view_proposer *p = &m->proposer;
    uint64_t patience = view_patience_us(m);
    nodeset drops;

    p->start_us = UINT64_MAX;
    if (m->survivors != 0 && m->now_us >= m->survivors_until_us) {
        m->survivors = 0;
        view_proposer_reset(m);
        view_ignore(m, VIEW_IGNORED_OPERATOR);
    }
    if (p->phase != VIEW_PHASE_IDLE) {
        return;
    }
    if (!need(m, &drops)) {
        p->need_us = 0;
        return;
    }
    if (p->need_us == 0) {
        p->need_us = m->now_us;
    }
    uint64_t turn = m->survivors != 0 || m->wanted != 0 ? 0 : rank(m) * patience;
    uint64_t start = p->need_us + turn;
    start = start > p->not_before_us ? start : p->not_before_us;
    if (view_ballot_busy(m) && m->acceptor.quiet_until_us + turn > start) {
        start = m->acceptor.quiet_until_us + turn;
    }
    if (m->now_us >= start && view_room(fx, NODES_MAX)) {
        view_ballot_start(m, drops, fx);
    } else {
        p->start_us = start;
    }
}

void view_on_configure(struct view_machine *m, nodeset configured)
{
    if (configured == 0 || m->view.epoch == 0 || !view_self_member(m)) {
        view_ignore(m, VIEW_IGNORED_OPERATOR);
        return;
    }
    m->wanted = configured;
}

/* What is known of processes follows their identity: a new process of a node starts afresh. */
static void peers_follow(struct view_machine *m, const struct view *view)
{
    for (uint8_t node = 0; node < NODES_MAX; node++) {
        struct view_peer *member = &m->member[node];
        struct view_peer *candidate = &m->candidate[node];
        uint64_t nonce = view->members[node].nonce;
        uint64_t lease = member->lease_until_us;
        bool known = nodeset_has(view->live, node) && candidate->nonce == nonce;
        if (nodeset_has(view->live, node) && nodeset_has(m->view.live, node) &&
            m->view.members[node].nonce == nonce &&
            m->view.members[node].admitted == view->members[node].admitted) {
            continue;
        }
        memset(member, 0, sizeof *member);
        if (known) {
            *member = *candidate;
            memset(candidate, 0, sizeof *candidate);
        }
        if (nodeset_has(view->live, node)) {
            member->nonce = nonce;
            member->heard_us = m->now_us;
            member->hears_us = m->now_us;
        }
        if (!view_rule(m, VIEW_RULE_GRANT_MEMBERS)) {
            member->lease_until_us = lease;
        }
    }
}

static void adopt(struct view_machine *m, const struct view *view, struct view_effects *fx)
{
    bool admitted_now = view_has(view, m->config.self, m->config.nonce) && !view_self_member(m);

    if (admitted_now && view->epoch > 1) {
        m->drops_from_us = m->now_us + m->config.lease_us;
    }
    peers_follow(m, view);
    /* Once the configured set changes, what the operator asked of this node is done, or was said
     * before he said something else to another. */
    if (m->wanted == view->configured || view->configured != m->view.configured ||
        view->generation != m->view.generation) {
        m->wanted = 0;
    }
    /* The operator spoke about the view that is over now: another recover needs another word. */
    m->survivors = 0;
    m->view = *view;
    view_acceptor_reset(m);
    view_proposer_reset(m);
    view_lease_update(m);
    /* Leases are renewed only by heartbeats that name the new epoch: one is due at once. */
    m->heartbeat_at_us = m->now_us;
    view_effect(fx, VIEW_EFFECT_PERSIST);
    view_effect(fx, VIEW_EFFECT_INSTALL);
}

void view_learn(struct view_machine *m, const struct view *view, struct view_effects *fx)
{
    uint8_t self = m->config.self;

    if (m->view.epoch != 0 && view->epoch <= m->view.epoch) {
        return;
    }
    if (m->view.epoch != 0 && view->generation != m->view.generation &&
        view->generation_old != m->view.generation) {
        view_ignore(m, VIEW_IGNORED_GENERATION);
        return;
    }
    bool was = view_self_member(m);
    bool is = view_has(view, self, m->config.nonce);
    if (was && is && view->members[self].admitted != m->view.members[self].admitted) {
        /* It was dropped and let in again without knowing: its store missed the views between. */
        is = !view_rule(m, VIEW_RULE_NO_READMIT);
    }
    if (was && !is && view_rule(m, VIEW_RULE_WIPE)) {
        m->gone = 1;
        view_lease_update(m);
        view_acceptor_reset(m);
        view_proposer_reset(m);
        view_effect(fx, m->leaving ? VIEW_EFFECT_LEFT : VIEW_EFFECT_WIPE);
        return;
    }
    adopt(m, view, fx);
}
