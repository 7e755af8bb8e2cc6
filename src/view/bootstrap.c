/* The first view (rule 5), and the view that an operator forces when a majority is lost. Both are
 * decided only when every process that they concern agrees, because no earlier view protects
 * them. */
#include "view/machine_state.h"

#include "base/assert.h"
#include "view/steps.h"

bool view_may_form(const struct view_machine *m)
{
    if (m->gone || m->leaving || m->view.epoch != 0 || m->peer_view) {
        return false;
    }
    /* Kept state tells a cut of all power from a first start: then a view existed, perhaps with
     * data in it, and only the operator may say that it is given up. */
    return m->config.kept_generation == 0 || m->bootstrap_said ||
           !view_rule(m, VIEW_RULE_KEPT_STATE);
}

bool view_may_repeat(const struct view_machine *m, const struct view *view)
{
    /* The predecessor kept the first view as decided and died before anybody else had learned it:
     * that very view cannot be wrong. Refused, it would block the others for ever. */
    return !m->gone && !m->leaving && m->view.epoch == 0 && !m->peer_view &&
           m->config.kept_epoch == 1 &&
           (view == NULL || view->generation == m->config.kept_generation);
}

/* Whether what a peer kept allows a first view: nothing kept, the operator's word, or just the view
 * that this process has accepted. */
static bool kept_allows(const struct view_machine *m, const struct view_peer *peer)
{
    const struct view_acceptor *a = &m->acceptor;
    bool repeats = !view_ballot_none(&a->accepted) && peer->kept_epoch == 1 &&
                   peer->kept_generation == a->accepted_view.generation;
    return peer->kept_generation == 0 || repeats || m->bootstrap_said ||
           !view_rule(m, VIEW_RULE_KEPT_STATE);
}

bool view_first_ready(const struct view_machine *m)
{
    if (!view_may_form(m)) {
        return false;
    }
    nodeset others = m->config.configured & ~nodeset_of(m->config.self);
    for (nodeset rest = others; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        const struct view_peer *peer = &m->candidate[node];
        if (!view_candidate_fresh(m, node) || peer->epoch != 0 || !kept_allows(m, peer) ||
            peer->configured != m->config.configured) {
            return false;
        }
    }
    return true;
}

static uint64_t draw_generation(struct random *random, uint64_t not_this)
{
    uint64_t generation;
    do {
        generation = random_next(random);
    } while (generation == 0 || generation == not_this);
    return generation;
}

void view_first_value(struct view_machine *m, struct view *next_out)
{
    const struct view_proposer *p = &m->proposer;

    memset(next_out, 0, sizeof *next_out);
    next_out->generation = draw_generation(&m->random, m->config.kept_generation);
    next_out->epoch = 1;
    next_out->next_cid = 1;
    next_out->configured = m->config.configured;
    next_out->live = m->config.configured;
    next_out->operational = m->config.configured;
    for (nodeset rest = next_out->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        next_out->members[node] = (struct view_member){
            .nonce = p->nonces[node] != 0 ? p->nonces[node] : m->candidate[node].nonce,
            .admitted = 1,
            .cid_first = next_out->next_cid,
            .cid_count = m->config.cids_per_member,
            .role = VIEW_ROLE_OPERATIONAL,
        };
        next_out->next_cid += m->config.cids_per_member;
    }
}

/* An order that could not be carried out is forgotten: should it fire when a partition has mended,
 * it would throw out members that live. */
#define RECOVER_LEASES 20u

void view_on_recover(struct view_machine *m, nodeset survivors)
{
    uint8_t self = m->config.self;
    bool fits = view_operational(&m->view, self, m->config.nonce) && !m->leaving &&
                nodeset_has(survivors, self) && nodeset_within(survivors, m->view.live);
    /* A lease is the word of a majority, so nothing is lost that would have to be recovered. */
    if (!fits || m->now_us < m->lease_until_us) {
        view_ignore(m, VIEW_IGNORED_OPERATOR);
        return;
    }
    view_proposer_reset(m);
    m->survivors = survivors;
    m->survivors_until_us = m->now_us + RECOVER_LEASES * (uint64_t)m->config.lease_us;
    /* Whoever is left out may hold a lease by grants of the dead, which no acceptor waits for. */
    m->proposer.not_before_us = m->now_us + m->config.lease_us;
    m->proposer.generation = draw_generation(&m->random, m->view.generation);
}

bool view_recover_value(const struct view_machine *m, const struct view *accepted,
                        struct view *next_out)
{
    nodeset staying = m->view.live & m->survivors;
    if (accepted != NULL) {
        /* That view may have been decided, and those whom it drops may have missed its writes:
         * they have to join again. */
        staying &= ~view_dropped(&m->view, accepted);
    }
    *next_out = m->view;
    next_out->generation_old = m->view.generation;
    next_out->generation = m->proposer.generation;
    next_out->epoch++;
    next_out->configured = staying;
    next_out->configured_old = 0;
    for (nodeset rest = m->view.live & ~staying; rest != 0; rest &= rest - 1) {
        memset(&next_out->members[nodeset_first(rest)], 0, sizeof next_out->members[0]);
    }
    next_out->live = staying;
    next_out->operational &= staying;
    return next_out->operational != 0;
}
