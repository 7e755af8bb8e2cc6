/* What the rules promise, asked in every state and of every step. The checks know of a decision
 * when enough processes have accepted, before anybody learns it. */
#include "explore/view_run.h"

#include <string.h>

#include "base/assert.h"
#include "view/rules.h"

static void fault(struct views_model *model, const char *what)
{
    if (model->broken == NULL) {
        model->broken = what;
    }
}

bool views_leased(const struct views_state *state, uint32_t place)
{
    const struct views_process *p = &state->process[place];
    bool alive = p->fate == VIEWS_FATE_UP || p->fate == VIEWS_FATE_PAUSED;
    return alive && p->lease > 0;
}

/* Whether the process that `base` names at the node is a member of the other view, too. */
static bool stays(const struct view *base, const struct view *other, uint8_t node)
{
    return nodeset_has(other->live, node) &&
           other->members[node].nonce == base->members[node].nonce &&
           other->members[node].admitted == base->members[node].admitted;
}

/* ---- Decisions ---- */

/* A c_id never has two owners, in whatever epochs. */
static bool cids_again(const struct views_model *model, const struct view *view)
{
    for (uint32_t epoch = 1; epoch <= VIEWS_EPOCHS_MAX; epoch++) {
        const struct view *other = view_book_view(&model->book, model->state.decided[epoch]);
        for (nodeset rest = other->live; rest != 0; rest &= rest - 1) {
            const struct view_member *was = &other->members[nodeset_first(rest)];
            for (uint32_t i = 0; i < was->cid_count; i++) {
                uint8_t now = view_cid_owner(view, was->cid_first + i);
                if (now != NODE_NONE && view->members[now].nonce != was->nonce) {
                    return true;
                }
            }
        }
    }
    return false;
}

/* Rule 5: kept state says that there was a cluster, and nobody said that it is given up. */
static bool over_kept_state(const struct views_model *model, const struct view *view)
{
    if (view->epoch != 1) {
        return false;
    }
    for (uint32_t i = 0; i < model->state.processes; i++) {
        const struct views_process *p = &model->state.process[i];
        if (p->kept_epoch != 0 && model->book.generation[p->kept_generation] != view->generation) {
            return true;
        }
    }
    return false;
}

void views_decided(struct views_model *model, const struct view *view)
{
    uint16_t number = view_book_number(&model->book, view, 0);

    HK_ASSERT(view->epoch <= VIEWS_EPOCHS_MAX);
    uint16_t *decided = &model->state.decided[view->epoch];
    if (*decided == number) {
        return;
    }
    if (*decided != 0) {
        fault(model, "two views of one epoch");
        return;
    }
    if (!view_majority(view, view->live)) {
        fault(model, "live members without a majority");
    }
    if (cids_again(model, view)) {
        fault(model, "a c_id with two owners");
    }
    if (over_kept_state(model, view)) {
        fault(model, "a first view although state was kept");
    }
    *decided = number;
}

static bool enough(const struct views_model *model, const struct view *base,
                   const struct view *value, nodeset by)
{
    if (base->epoch == 0) {
        return view_rule_in(model->rules_off, VIEW_RULE_FIRST_VIEW_ALL)
                   ? nodeset_within(value->configured, by)
                   : nodeset_majority(by, value->configured);
    }
    return view_rule_in(model->rules_off, VIEW_RULE_JOINT_MAJORITY)
               ? view_majority(base, by)
               : nodeset_majority(by, base->configured);
}

static void accepted_note(struct views_model *model, const struct views_process *p,
                          const struct view_machine *m)
{
    struct views_state *state = &model->state;
    struct views_accept *entry = NULL;

    if (p->accepted.round == 0) {
        return;
    }
    for (uint32_t i = 0; i < state->accepts && entry == NULL; i++) {
        struct views_accept *other = &state->accept[i];
        if (other->view == p->accepted_view && other->ballot.round == p->accepted.round &&
            other->ballot.process == p->accepted.process) {
            entry = other;
        }
    }
    if (entry == NULL) {
        if (state->accepts == VIEWS_ACCEPTS_MAX) {
            model->overflows++;
            return;
        }
        entry = &state->accept[state->accepts++];
        *entry = (struct views_accept){.view = p->accepted_view, .ballot = p->accepted};
    }
    entry->by |= (uint8_t)nodeset_of(p->node);
    if (enough(model, &m->view, &m->acceptor.accepted_view, entry->by)) {
        views_decided(model, &m->acceptor.accepted_view);
    }
}

/* ---- A process's life ---- */

/* What a process may never experience: to go on after it was dropped, to come back with its old
 * store, to serve before its workers had adopted the view in which it copied, to renew its lease
 * with a wedged worker. */
static void life_check(struct views_model *model, struct views_process *p,
                       const struct view_machine *m)
{
    bool member = view_has(&m->view, p->node, m->config.nonce);
    uint8_t since = member && !m->gone ? (uint8_t)m->view.members[p->node].admitted : 0;
    bool shadow = since != 0 && !nodeset_has(m->view.operational, p->node);

    if (!m->gone && p->member_since != 0 && since == 0) {
        fault(model, "a dropped process lives on");
    } else if (!m->gone && p->member_since != 0 && since != p->member_since) {
        fault(model, "a process was dropped and let in again unawares");
    }
    if (p->was_shadow && since != 0 && !shadow && m->adopted < p->last_epoch) {
        fault(model, "a shadow was promoted before it had adopted its view");
    }
    p->member_since = since;
    p->was_shadow = shadow;
    p->last_epoch = shadow ? (uint8_t)m->view.epoch : 0;
}

static void messages_check(struct views_model *model, struct views_process *p)
{
    bool beats = false;
    for (uint32_t i = 0; i < model->fx.n; i++) {
        const struct view_effect *effect = &model->fx.e[i];
        if (effect->kind != VIEW_EFFECT_SEND) {
            continue;
        }
        if (view_msg_invalid(&effect->msg) != NULL) {
            fault(model, "a message that no peer takes");
        }
        beats |= effect->msg.kind == VIEW_MSG_HEARTBEAT;
    }
    /* One heartbeat may tell of progress that was made before. */
    if (p->wedged && beats && !p->leaving && ++p->wedged_beats > 1) {
        fault(model, "heartbeats with a wedged worker");
    }
}

void views_check_step(struct views_model *model, uint32_t place, const struct view_machine *m)
{
    struct views_process *p = &model->state.process[place];

    const char *broken = view_broken(m);
    if (broken != NULL) {
        fault(model, broken);
    }
    accepted_note(model, p, m);
    life_check(model, p, m);
    messages_check(model, p);
    p->confirms = view_confirms(m, m->view.epoch);
}

/* ---- States ---- */

/* No process holds a lease while a later view without it is decided. */
static const char *lease_broken(const struct views_model *model, const struct views_state *state,
                                uint32_t place)
{
    const struct views_process *p = &state->process[place];
    const struct view *own = view_book_view(&model->book, p->view);

    for (uint32_t epoch = own->epoch + 1; epoch <= VIEWS_EPOCHS_MAX; epoch++) {
        const struct view *view = view_book_view(&model->book, state->decided[epoch]);
        if (view->epoch != 0 && !stays(own, view, p->node)) {
            return "a lease beside a later view without its holder";
        }
    }
    return NULL;
}

/* Rule 7: once a view is decided, no majority confirms the one before it. */
static bool confirmed(const struct views_model *model, const struct views_state *state,
                      uint32_t epoch)
{
    const struct view *before = view_book_view(&model->book, state->decided[epoch - 1]);
    nodeset confirm = 0;

    for (uint32_t i = 0; i < state->processes; i++) {
        const struct views_process *p = &state->process[i];
        if (p->confirms && p->fate != VIEWS_FATE_OVER && p->view == state->decided[epoch - 1]) {
            confirm |= nodeset_of(p->node);
        }
    }
    return before->epoch != 0 && view_majority(before, confirm);
}

/* Progress, where a configuration asks for it: with all messages that its links let through on
 * time, a member that was given up is dropped before time is used up. */
static bool overdue(const struct views_model *model, const struct views_state *state)
{
    const struct view *second = view_book_view(&model->book, state->decided[2]);
    return model->config->in_time && state->left[VIEWS_BUDGET_TICKS] == 0 && second->epoch == 0;
}

const char *views_check_state(const struct views_model *model, const struct views_state *state)
{
    for (uint32_t i = 0; i < state->processes; i++) {
        const char *broken = views_leased(state, i) ? lease_broken(model, state, i) : NULL;
        if (broken != NULL) {
            return broken;
        }
    }
    for (uint32_t epoch = 2; epoch <= VIEWS_EPOCHS_MAX; epoch++) {
        if (state->decided[epoch] != 0 && confirmed(model, state, epoch)) {
            return "a majority confirms a view that is over";
        }
    }
    return overdue(model, state) ? "nobody is dropped, for ever" : NULL;
}

/* ---- Goals ---- */

static bool serves(const struct views_model *model, const struct views_state *state, uint32_t epoch)
{
    for (uint32_t i = 0; i < state->processes; i++) {
        const struct views_process *p = &state->process[i];
        if (views_leased(state, i) && view_book_view(&model->book, p->view)->epoch == epoch) {
            return true;
        }
    }
    return false;
}

static bool promoted(const struct views_model *model, const struct views_state *state)
{
    for (uint32_t i = model->config->nodes; i < state->processes; i++) {
        const struct views_process *p = &state->process[i];
        if (view_operational(view_book_view(&model->book, p->view), p->node, views_nonce(i))) {
            return true;
        }
    }
    return false;
}

bool views_check_goal(const struct views_model *model, const struct views_state *state)
{
    uint32_t last = model->config->epochs_max;
    switch (model->config->goal) {
    case VIEWS_GOAL_NONE:
        return false;
    case VIEWS_GOAL_DECIDED:
        return state->decided[last] != 0;
    case VIEWS_GOAL_SERVES:
        return state->decided[last] != 0 && serves(model, state, last);
    case VIEWS_GOAL_PROMOTED:
        return promoted(model, state);
    }
    return false;
}
