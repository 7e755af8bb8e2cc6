/* What the files of the view machine call in each other. Nobody outside src/view includes this. */
#ifndef HORKOS_VIEW_STEPS_H
#define HORKOS_VIEW_STEPS_H

#include "view/machine_state.h"
#include "view/rules.h"

static inline bool view_rule(const struct view_machine *m, enum view_rule rule)
{
    return view_rule_in(m->rules_off, (unsigned)rule);
}

/* Small questions (machine.c). */
bool view_self_member(const struct view_machine *m);
/* Majority of the view's configured nodes, as the rules have it. */
bool view_quorum(const struct view_machine *m, const struct view *view, nodeset part);
/* How long a proposer that is silent still keeps others waiting, and the unit of back-off. */
uint64_t view_patience_us(const struct view_machine *m);
/* The live members' nodes, configured ones and this node's own configuration, without self. */
nodeset view_audience(const struct view_machine *m);
void view_ignore(struct view_machine *m, enum view_ignored why);

/* Effects (machine.c). Each fills one effect; the message is zeroed but for kind and epoch. */
bool view_room(const struct view_effects *fx, uint32_t n);
void view_effect(struct view_effects *fx, enum view_effect_kind kind);
struct view_msg *view_send(const struct view_machine *m, uint8_t to, enum view_msg_kind kind,
                           struct view_effects *fx);
void view_send_view(const struct view_machine *m, uint8_t to, struct view_effects *fx);

/* Heartbeats, grants, lease and suspicion (heartbeat.c). */
void view_heartbeat_tick(struct view_machine *m, struct view_effects *fx);
void view_heartbeat_send(struct view_machine *m, struct view_effects *fx);
void view_on_heartbeat(struct view_machine *m, const struct view_event *event,
                       struct view_effects *fx);
void view_on_grant(struct view_machine *m, const struct view_event *event);
void view_lease_update(struct view_machine *m);
void view_on_suspect(struct view_machine *m, uint8_t node);
bool view_suspected(const struct view_machine *m, uint8_t node);
/* When somebody who is not suspected now will be, unless heard from; UINT64_MAX: nobody. */
uint64_t view_suspicion_deadline(const struct view_machine *m);
/* A process of the node that the view does not name, and that was heard lately. */
bool view_candidate_fresh(const struct view_machine *m, uint8_t node);
void view_silence_shift(struct view_machine *m, uint64_t now_us);

/* Acceptor (acceptor.c). The first two are also what the own proposer calls. */
enum view_verdict {
    VIEW_VERDICT_NONE,    /* no answer: no vote here, not yet, or not acceptable */
    VIEW_VERDICT_DONE,    /* promised; accepted */
    VIEW_VERDICT_REFUSED, /* a higher ballot is promised, or another is under way */
};
enum view_verdict view_acceptor_prepare(struct view_machine *m, const struct view_prepare *prepare);
enum view_verdict view_acceptor_accept(struct view_machine *m, const struct view_ballot *ballot,
                                       const struct view *view);
void view_on_prepare(struct view_machine *m, const struct view_event *event,
                     struct view_effects *fx);
void view_on_accept(struct view_machine *m, const struct view_event *event,
                    struct view_effects *fx);
/* A held request whose grants have run out is accepted. */
void view_held_tick(struct view_machine *m, struct view_effects *fx);
/* Whether another process's ballot is under way, so that a ballot of one's own would disturb. */
bool view_ballot_busy(const struct view_machine *m);
/* Whom nothing is granted: rule 2, and whom the accepted view drops. */
nodeset view_denied(const struct view_machine *m);
void view_acceptor_reset(struct view_machine *m);

/* Proposer (proposer.c). */
void view_ballot_start(struct view_machine *m, nodeset drops, struct view_effects *fx);
void view_proposer_tick(struct view_machine *m, struct view_effects *fx);
void view_on_promise(struct view_machine *m, const struct view_event *event,
                     struct view_effects *fx);
void view_on_accepted(struct view_machine *m, const struct view_event *event,
                      struct view_effects *fx);
void view_on_refuse(struct view_machine *m, const struct view_event *event);
/* The own acceptor accepted what it had held. */
void view_accepted_own(struct view_machine *m, const struct view_ballot *ballot,
                       struct view_effects *fx);
void view_proposer_reset(struct view_machine *m);
const char *view_phase_name(enum view_phase phase);

/* Membership: what should change, and the view that changes it (membership.c). */
void view_duties_tick(struct view_machine *m, struct view_effects *fx);
uint64_t view_duties_deadline(const struct view_machine *m);
/* False: there is nothing to change. Only members of `droppable` are dropped. */
bool view_plan_make(const struct view_machine *m, nodeset droppable, struct view_plan *plan_out);
void view_plan_apply(const struct view_machine *m, const struct view_plan *plan,
                     struct view *next_out);
/* A decided view was learned: adopts it if it is newer (m-update), or ends this incarnation. */
void view_learn(struct view_machine *m, const struct view *view, struct view_effects *fx);
void view_on_configure(struct view_machine *m, nodeset configured);

/* First views and recovery (bootstrap.c). */
/* Whether this process may take part in forming a first view (rule 5). */
bool view_may_form(const struct view_machine *m);
/* Whether this process may vote for the first view that its predecessor kept as decided; view NULL:
 * promise a ballot that may turn out to carry it. */
bool view_may_repeat(const struct view_machine *m, const struct view *view);
/* Whether all configured nodes were heard lately and may form a first view together. */
bool view_first_ready(const struct view_machine *m);
void view_first_value(struct view_machine *m, struct view *next_out);
void view_on_recover(struct view_machine *m, nodeset survivors);
/* False: recover is impossible, for nobody who may serve is left. `accepted` is the view that a
 * survivor accepted for this instance, NULL if none did. */
bool view_recover_value(const struct view_machine *m, const struct view *accepted,
                        struct view *next_out);

#endif
