/* Heartbeats, grants, the lease and suspicion (rules 3, 4 and 10; [H] 4.5.7 measures how long the
 * lease must be). A heartbeat asks every member for a grant. The holder counts from sending, the
 * granter from receipt and a margin longer, so the lease ends before the grants that carry it. */
#include "view/machine_state.h"

#include "base/assert.h"
#include "view/steps.h"

/* The epoch that a heartbeat must name to be granted: whoever accepted a value for the next
 * instance renews nobody's lease in this one, its own included (rule 4). */
static uint32_t grant_epoch(const struct view_machine *m)
{
    return m->view.epoch + (view_ballot_none(&m->acceptor.accepted) ? 0 : 1);
}

static bool may_grant(const struct view_machine *m, uint8_t node, uint32_t epoch)
{
    if (view_rule(m, VIEW_RULE_MEMBERS_GRANT) && !view_self_member(m)) {
        return false;
    }
    if (view_rule(m, VIEW_RULE_GRANT_EPOCH) && epoch < grant_epoch(m)) {
        return false;
    }
    return nodeset_has(m->view.live, node) && !m->member[node].left &&
           !nodeset_has(view_denied(m), node);
}

static nodeset heard_lately(const struct view_machine *m)
{
    nodeset heard = nodeset_of(m->config.self);
    for (uint8_t node = 0; node < NODES_MAX; node++) {
        const struct view_peer *peer = &m->member[node];
        bool member = peer->nonce != 0 && peer->sent_us != 0 &&
                      m->now_us <= peer->heard_us + m->config.suspect_us;
        if (member || view_candidate_fresh(m, node)) {
            heard |= nodeset_of(node);
        }
    }
    return heard;
}

static uint8_t heartbeat_flags(const struct view_machine *m)
{
    uint8_t flags = 0;
    bool adopted = m->adopted == m->view.epoch || !view_rule(m, VIEW_RULE_ADOPTED);
    if (m->copied && adopted && view_self_member(m)) {
        flags |= VIEW_HEARTBEAT_COPIED;
    }
    if (m->leaving) {
        flags |= VIEW_HEARTBEAT_LEAVING;
    }
    if (m->config.bootstrap) {
        flags |= VIEW_HEARTBEAT_BOOTSTRAP;
    }
    return flags;
}

void view_heartbeat_send(struct view_machine *m, struct view_effects *fx)
{
    uint8_t self = m->config.self;
    uint64_t number = m->heartbeat_sent_us + 1;

    m->heartbeat_sent_us = m->now_us > number ? m->now_us : number;
    if (may_grant(m, self, m->view.epoch)) {
        m->member[self].lease_until_us = m->now_us + m->config.lease_us - m->config.margin_us;
        view_lease_update(m);
    }
    for (nodeset rest = view_audience(m); rest != 0; rest &= rest - 1) {
        struct view_msg *msg = view_send(m, nodeset_first(rest), VIEW_MSG_HEARTBEAT, fx);
        if (msg == NULL) {
            return;
        }
        msg->heartbeat = (struct view_heartbeat){
            .sent_us = m->heartbeat_sent_us,
            .heard = heard_lately(m),
            .configured = m->config.configured,
            .kept_generation = m->config.kept_generation,
            .kept_epoch = m->config.kept_epoch,
            .admitted = view_self_member(m) ? m->view.members[self].admitted : 0,
            .flags = heartbeat_flags(m),
        };
    }
}

/* Rule 10: a wedged worker must not keep the lease, so without progress nothing is sent. */
void view_heartbeat_tick(struct view_machine *m, struct view_effects *fx)
{
    if (m->now_us < m->heartbeat_at_us) {
        return;
    }
    if (m->progress || !view_rule(m, VIEW_RULE_HEALTHY)) {
        m->progress = 0;
        m->heartbeat_at_us = m->now_us + m->config.heartbeat_us;
        view_heartbeat_send(m, fx);
    } else {
        m->heartbeat_at_us = m->now_us + m->config.heartbeat_us / 4 + 1;
    }
}

/* When each of the two last heard the other. A member whose heartbeats come but which does not hear
 * this one cannot acknowledge its updates either: in the end that is as bad as silence. */
static uint64_t both_heard_us(const struct view_peer *peer)
{
    return peer->heard_us < peer->hears_us ? peer->heard_us : peer->hears_us;
}

static void peer_note(struct view_machine *m, struct view_peer *peer, uint32_t epoch,
                      const struct view_heartbeat *heartbeat)
{
    if (peer->heard_us != 0 && m->now_us > both_heard_us(peer) + m->config.suspect_us) {
        peer->again_us = m->now_us;
        peer->suspected_until_us = 0; /* see view_on_suspect */
    }
    peer->sent_us = heartbeat->sent_us;
    peer->heard_us = m->now_us;
    if (nodeset_has(heartbeat->heard, m->config.self)) {
        peer->hears_us = m->now_us;
    }
    peer->kept_generation = heartbeat->kept_generation;
    peer->kept_epoch = heartbeat->kept_epoch;
    peer->heard = heartbeat->heard;
    peer->configured = heartbeat->configured;
    peer->epoch = epoch;
    peer->admitted = heartbeat->admitted;
    peer->flags = heartbeat->flags;
}

void view_on_heartbeat(struct view_machine *m, const struct view_event *event,
                       struct view_effects *fx)
{
    const struct view_heartbeat *heartbeat = &event->msg->heartbeat;
    uint8_t node = event->node;
    bool member = view_has(&m->view, node, event->nonce);
    struct view_peer *peer = member ? &m->member[node] : &m->candidate[node];

    if (peer->nonce != event->nonce) {
        memset(peer, 0, sizeof *peer);
        peer->nonce = event->nonce;
        peer->since_us = m->now_us;
    }
    if (heartbeat->sent_us <= peer->sent_us) {
        /* Late or twice: it says nothing about now, so neither grant nor liveness follows. */
        view_ignore(m, VIEW_IGNORED_OLD);
        return;
    }
    peer_note(m, peer, event->msg->epoch, heartbeat);
    if ((heartbeat->flags & VIEW_HEARTBEAT_BOOTSTRAP) != 0) {
        m->bootstrap_said = 1;
    }
    if (member && (heartbeat->flags & VIEW_HEARTBEAT_LEAVING) != 0) {
        /* It stopped serving before it said so, hence its grants protect nobody any more. */
        peer->left = 1;
        peer->granted_until_us = 0;
    }
    if (member && may_grant(m, node, event->msg->epoch)) {
        peer->granted_until_us = m->now_us + m->config.lease_us;
        struct view_msg *msg = view_send(m, node, VIEW_MSG_GRANT, fx);
        if (msg != NULL) {
            msg->grant = (struct view_grant){
                .holder = event->nonce,
                .sent_us = heartbeat->sent_us,
                .lease_us = m->config.lease_us,
            };
        }
    }
    if (event->msg->epoch < m->view.epoch) {
        view_send_view(m, node, fx);
    }
}

void view_on_grant(struct view_machine *m, const struct view_event *event)
{
    const struct view_grant *grant = &event->msg->grant;
    struct view_peer *peer = &m->member[event->node];
    uint32_t length = grant->lease_us < m->config.lease_us ? grant->lease_us : m->config.lease_us;

    if (view_rule(m, VIEW_RULE_GRANT_INCARNATION) && grant->holder != m->config.nonce) {
        view_ignore(m, VIEW_IGNORED_STRANGER);
        return;
    }
    if (view_rule(m, VIEW_RULE_GRANT_MEMBERS) && !view_has(&m->view, event->node, event->nonce)) {
        view_ignore(m, VIEW_IGNORED_STRANGER);
        return;
    }
    if (grant->sent_us > m->heartbeat_sent_us || length <= m->config.margin_us) {
        view_ignore(m, VIEW_IGNORED_INVALID);
        return;
    }
    uint64_t until = grant->sent_us + length - m->config.margin_us;
    if (until <= peer->lease_until_us) {
        view_ignore(m, VIEW_IGNORED_OLD);
        return;
    }
    peer->lease_until_us = until;
    view_lease_update(m);
}

/* Until when a majority of the set supports the lease: the k-th longest of its grants. */
static uint64_t supported_until(const struct view_machine *m, nodeset set)
{
    uint64_t longest[NODES_MAX];
    uint32_t n = 0;

    for (nodeset rest = set; rest != 0; rest &= rest - 1) {
        uint64_t until = m->member[nodeset_first(rest)].lease_until_us;
        uint32_t at = n++;
        while (at > 0 && longest[at - 1] < until) {
            longest[at] = longest[at - 1];
            at--;
        }
        longest[at] = until;
    }
    return n == 0 ? 0 : longest[n / 2];
}

void view_lease_update(struct view_machine *m)
{
    if (m->gone || m->leaving || !view_operational(&m->view, m->config.self, m->config.nonce)) {
        m->lease_until_us = 0;
        return;
    }
    m->lease_until_us = supported_until(m, m->view.configured);
    if (m->view.configured_old != 0 && view_rule(m, VIEW_RULE_JOINT_MAJORITY)) {
        uint64_t old = supported_until(m, m->view.configured_old);
        m->lease_until_us = old < m->lease_until_us ? old : m->lease_until_us;
    }
}

bool view_candidate_fresh(const struct view_machine *m, uint8_t node)
{
    const struct view_peer *peer = &m->candidate[node];
    return peer->nonce != 0 && m->now_us <= peer->heard_us + m->config.suspect_us;
}

/* A successor that asks to be admitted tells of its predecessor's death, but only if that has
 * missed its next heartbeat: two live processes that claim one node must not throw each other out
 * for ever. The successor must know the view that names the predecessor, else a late request of
 * the member itself would speak against it. */
static bool successor_waits(const struct view_machine *m, uint8_t node)
{
    const struct view_peer *peer = &m->candidate[node];
    return view_candidate_fresh(m, node) && peer->epoch == m->view.epoch && peer->admitted == 0 &&
           peer->since_us > m->member[node].heard_us;
}

/* The engine's word that a member acknowledges nothing. Whoever was silent and is heard again gets
 * one lease to answer what waited for it meanwhile: else a partition that ends would cost a live
 * member, and with the death of another one the majority. */
void view_on_suspect(struct view_machine *m, uint8_t node)
{
    if (!nodeset_has(m->view.live, node) || node == m->config.self) {
        return;
    }
    struct view_peer *peer = &m->member[node];
    if (m->now_us >= peer->again_us + m->config.lease_us || peer->again_us == 0) {
        peer->suspected_until_us = m->now_us + m->config.lease_us;
    }
}

/* Until when this member's silence is no reason to suspect it. */
static uint64_t silence_ends(const struct view_machine *m, uint8_t node)
{
    const struct view_peer *peer = &m->member[node];
    uint64_t ends = both_heard_us(peer) + m->config.suspect_us;
    if (successor_waits(m, node)) {
        uint64_t missed = peer->heard_us + 2 * (uint64_t)m->config.heartbeat_us;
        ends = missed < ends ? missed : ends;
    }
    return ends;
}

bool view_suspected(const struct view_machine *m, uint8_t node)
{
    if (node == m->config.self || !nodeset_has(m->view.live, node)) {
        return false;
    }
    return m->now_us > silence_ends(m, node) || m->now_us < m->member[node].suspected_until_us;
}

uint64_t view_suspicion_deadline(const struct view_machine *m)
{
    uint64_t deadline = UINT64_MAX;
    for (nodeset rest = m->view.live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (node != m->config.self && !view_suspected(m, node)) {
            uint64_t ends = silence_ends(m, node) + 1;
            deadline = ends < deadline ? ends : deadline;
        }
    }
    return deadline;
}

static uint64_t later(uint64_t time_us, uint64_t by_us, uint64_t bound_us)
{
    return time_us + by_us < bound_us ? time_us + by_us : bound_us;
}

/* A process that did not run heard nobody, and that is not their fault: what it missed counts as
 * no silence. Otherwise whoever resumes from a pause would begin by suspecting everybody. */
void view_silence_shift(struct view_machine *m, uint64_t now_us)
{
    uint64_t usual = 2 * (uint64_t)m->config.heartbeat_us;
    if (now_us - m->now_us <= usual) {
        return;
    }
    uint64_t by = now_us - m->now_us - usual;
    for (uint8_t node = 0; node < NODES_MAX; node++) {
        struct view_peer *peer = &m->member[node];
        peer->heard_us = later(peer->heard_us, by, now_us);
        peer->hears_us = later(peer->hears_us, by, now_us);
        if (m->candidate[node].nonce != 0) {
            m->candidate[node].heard_us = later(m->candidate[node].heard_us, by, now_us);
        }
    }
}
