/* Packing machines and messages into the states of an exploration, and unpacking them. This file
 * alone decides which differences between two machines count: it is a friend of src/view.
 *
 * Left out, because it changes no more than when something is proposed: how long ago something was
 * heard (the explorer suspects whom it pleases), how many ballots were lost in a row, when requests
 * are sent again (with every tick), the random generator (it starts afresh in every step), and the
 * counters of ignored messages. recover is not explored. */
#include "explore/view_state.h"

#include <string.h>

#include "base/assert.h"

/* Ages beyond which nothing changes any more: a patience, the turn of the last in rank, the time
 * after which a ballot of phase two is given up. */
#define PATIENCE_AGE 1u
#define NEED_AGE 2u
#define BALLOT_AGE 8u

static uint8_t ticks_until(uint64_t until_us)
{
    if (until_us <= VIEWS_NOW_US) {
        return 0;
    }
    uint64_t ticks = (until_us - VIEWS_NOW_US + VIEWS_TICK_US - 1) / VIEWS_TICK_US;
    HK_ASSERT(ticks <= UINT8_MAX);
    return (uint8_t)ticks;
}

static uint64_t us_until(uint8_t ticks)
{
    return ticks == 0 ? 0 : VIEWS_NOW_US + ticks * (uint64_t)VIEWS_TICK_US;
}

/* Ages are kept plus 1, so that 0 says "not at all". */
static uint8_t ticks_since(bool at_all, uint64_t since_us, uint8_t max)
{
    if (!at_all) {
        return 0;
    }
    uint64_t ticks = (VIEWS_NOW_US - since_us) / VIEWS_TICK_US;
    return (uint8_t)(1 + (ticks < max ? ticks : max));
}

static uint64_t us_since(uint8_t age)
{
    return age == 0 ? 0 : VIEWS_NOW_US - (age - 1) * (uint64_t)VIEWS_TICK_US;
}

uint64_t views_nonce(uint32_t place)
{
    return place + 1;
}

static uint8_t process_of(uint64_t nonce)
{
    return (uint8_t)nonce;
}

static struct views_ballot ballot_pack(const struct view_ballot *ballot)
{
    HK_ASSERT(ballot->round <= UINT8_MAX);
    return (struct views_ballot){(uint8_t)ballot->round, process_of(ballot->nonce)};
}

static struct view_ballot ballot_unpack(const struct views_state *state, struct views_ballot ballot)
{
    struct view_ballot out = {.round = ballot.round};
    if (ballot.round != 0) {
        out.nonce = ballot.process;
        out.node = state->process[ballot.process - 1].node;
    }
    return out;
}

/* The number of the view that belongs to the ballot, if there is one. */
static uint16_t number_of(struct view_book *book, const struct view_ballot *ballot,
                          const struct view *view, uint16_t hint)
{
    return view_ballot_none(ballot) ? 0 : view_book_number(book, view, hint);
}

static void peer_pack(const struct view_peer *peer, struct view_book *book, struct views_peer *out)
{
    memset(out, 0, sizeof *out);
    out->process = process_of(peer->nonce);
    out->heartbeats = peer->sent_us != 0;
    out->granted = ticks_until(peer->granted_until_us);
    out->lease = ticks_until(peer->lease_until_us);
    out->suspected = ticks_until(peer->suspected_until_us);
    out->heard = (uint8_t)peer->heard;
    out->configured = (uint8_t)peer->configured;
    out->epoch = (uint8_t)peer->epoch;
    out->admitted = (uint8_t)peer->admitted;
    out->flags = peer->flags;
    out->left = peer->left;
    out->kept_generation = view_book_generation(book, peer->kept_generation);
    out->kept_epoch = (uint8_t)peer->kept_epoch;
}

static void peer_unpack(const struct views_peer *peer, const struct view_book *book,
                        struct view_peer *out)
{
    out->nonce = peer->process;
    out->sent_us = peer->heartbeats;
    out->heard_us = peer->process != 0 ? VIEWS_NOW_US : 0;
    out->hears_us = out->heard_us;
    out->suspected_until_us = us_until(peer->suspected);
    out->granted_until_us = us_until(peer->granted);
    out->lease_until_us = us_until(peer->lease);
    out->kept_generation = book->generation[peer->kept_generation];
    out->heard = peer->heard;
    out->configured = peer->configured;
    out->kept_epoch = peer->kept_epoch;
    out->epoch = peer->epoch;
    out->admitted = peer->admitted;
    out->flags = peer->flags;
    out->left = peer->left;
}

static void acceptor_pack(const struct view_acceptor *a, struct view_book *book,
                          struct views_process *p)
{
    p->accepted_view = number_of(book, &a->accepted, &a->accepted_view, p->accepted_view);
    p->held_view = number_of(book, &a->held, &a->held_view, p->held_view);
    p->promised = ballot_pack(&a->promised);
    p->accepted = ballot_pack(&a->accepted);
    p->held = ballot_pack(&a->held);
    p->drops = (uint8_t)a->drops;
    p->quiet = ticks_until(a->quiet_until_us);
    p->accepted_age = ticks_since(!view_ballot_none(&a->accepted), a->accepted_us, PATIENCE_AGE);
    p->held_until = ticks_until(a->held_until_us);
}

static void proposer_pack(const struct view_proposer *o, struct view_book *book,
                          struct views_process *p)
{
    bool idle = o->phase == VIEW_PHASE_IDLE;

    HK_ASSERT(o->round_seen <= UINT8_MAX && o->generation == 0);
    p->round_seen = (uint8_t)o->round_seen;
    p->need_age = ticks_since(o->need_us != 0, o->need_us, NEED_AGE);
    p->not_before = ticks_until(o->not_before_us);
    p->phase = o->phase;
    /* A ballot that is over leaves nothing behind but its round. */
    p->value = idle ? 0 : view_book_number(book, &o->value, p->value);
    p->ballot = idle ? (struct views_ballot){0} : ballot_pack(&o->ballot);
    p->best = idle ? (struct views_ballot){0} : ballot_pack(&o->best);
    p->started_age = ticks_since(!idle, o->started_us, BALLOT_AGE);
    p->proposed_drops = idle ? 0 : (uint8_t)o->drops;
    p->everybody = idle ? 0 : (uint8_t)o->everybody;
    p->promises = idle ? 0 : (uint8_t)o->promised;
    p->acceptances = idle ? 0 : (uint8_t)o->accepted;
    p->refusals = idle ? 0 : (uint8_t)o->refused;
    p->flags = idle ? 0 : o->flags;
    for (uint8_t node = 0; node < VIEWS_NODES_MAX; node++) {
        p->nonces[node] = idle || o->everybody == 0 ? 0 : process_of(o->nonces[node]);
    }
}

void views_pack(const struct view_machine *m, struct view_book *book, struct views_process *p)
{
    HK_ASSERT(m->survivors == 0);
    p->view = view_book_number(book, &m->view, p->view);
    p->heartbeat = ticks_until(m->heartbeat_at_us);
    p->beaten = m->heartbeat_sent_us != 0;
    p->lease = ticks_until(m->lease_until_us);
    p->drops_from = ticks_until(m->drops_from_us);
    p->wanted = (uint8_t)m->wanted;
    p->adopted = (uint8_t)m->adopted;
    p->progress = m->progress;
    p->copied = m->copied;
    p->leaving = m->leaving;
    p->peer_view = m->peer_view;
    p->bootstrap_said = m->bootstrap_said;
    acceptor_pack(&m->acceptor, book, p);
    proposer_pack(&m->proposer, book, p);
    for (uint8_t node = 0; node < VIEWS_NODES_MAX; node++) {
        peer_pack(&m->member[node], book, &p->member[node]);
        peer_pack(&m->candidate[node], book, &p->candidate[node]);
    }
}

void views_config_fill(const struct views_state *state, uint32_t place, uint8_t configured,
                       const struct views_times *times, const struct view_book *book,
                       struct view_config *config_out)
{
    const struct views_process *p = &state->process[place];
    *config_out = (struct view_config){
        .self = p->node,
        .nonce = views_nonce(place),
        .configured = configured,
        .lease_us = times->lease_us,
        .margin_us = times->margin_us,
        .heartbeat_us = VIEWS_HEARTBEAT_US,
        .suspect_us = times->suspect_us,
        .cids_per_member = 1,
        .kept_generation = book->generation[p->kept_generation],
        .kept_epoch = p->kept_epoch,
        .seed = p->round_seen,
    };
}

static void acceptor_unpack(const struct views_state *state, const struct views_process *p,
                            const struct view_book *book, struct view_acceptor *a)
{
    a->promised = ballot_unpack(state, p->promised);
    a->accepted = ballot_unpack(state, p->accepted);
    a->held = ballot_unpack(state, p->held);
    a->drops = p->drops;
    a->quiet_until_us = us_until(p->quiet);
    a->accepted_us = us_since(p->accepted_age);
    a->held_until_us = us_until(p->held_until);
    a->accepted_view = *view_book_view(book, p->accepted_view);
    a->held_view = *view_book_view(book, p->held_view);
}

static void proposer_unpack(const struct views_state *state, const struct views_process *p,
                            const struct view_book *book, struct view_proposer *o)
{
    o->ballot = ballot_unpack(state, p->ballot);
    o->best = ballot_unpack(state, p->best);
    o->round_seen = p->round_seen;
    o->need_us = us_since(p->need_age);
    o->not_before_us = us_until(p->not_before);
    o->started_us = us_since(p->started_age);
    o->drops = p->proposed_drops;
    o->everybody = p->everybody;
    o->promised = p->promises;
    o->accepted = p->acceptances;
    o->refused = p->refusals;
    o->phase = p->phase;
    o->flags = p->flags;
    for (uint8_t node = 0; node < VIEWS_NODES_MAX; node++) {
        o->nonces[node] = p->nonces[node];
    }
    o->value = *view_book_view(book, p->value);
}

void views_unpack(const struct views_state *state, uint32_t place, const struct view_config *config,
                  uint64_t rules_off, const struct view_book *book, struct view_machine *m_out)
{
    const struct views_process *p = &state->process[place];

    view_init(m_out, config, VIEWS_NOW_US);
    m_out->rules_off = rules_off;
    m_out->view = *view_book_view(book, p->view);
    m_out->heartbeat_at_us = us_until(p->heartbeat);
    m_out->heartbeat_sent_us = p->beaten ? VIEWS_NOW_US : 0;
    m_out->lease_until_us = us_until(p->lease);
    m_out->drops_from_us = us_until(p->drops_from);
    m_out->wanted = p->wanted;
    m_out->adopted = p->adopted;
    m_out->progress = p->progress;
    m_out->copied = p->copied;
    m_out->leaving = p->leaving;
    m_out->peer_view = p->peer_view;
    m_out->bootstrap_said = p->bootstrap_said;
    acceptor_unpack(state, p, book, &m_out->acceptor);
    proposer_unpack(state, p, book, &m_out->proposer);
    for (uint8_t node = 0; node < VIEWS_NODES_MAX; node++) {
        peer_unpack(&p->member[node], book, &m_out->member[node]);
        peer_unpack(&p->candidate[node], book, &m_out->candidate[node]);
    }
}

static void one_less(uint8_t *ticks)
{
    *ticks = *ticks == 0 ? 0 : (uint8_t)(*ticks - 1);
}

static void one_more(uint8_t *age, uint8_t max)
{
    *age = *age == 0 || *age > max ? *age : (uint8_t)(*age + 1);
}

static void process_age(struct views_process *p)
{
    one_less(&p->heartbeat);
    one_less(&p->lease);
    one_less(&p->drops_from);
    one_less(&p->quiet);
    one_less(&p->held_until);
    one_less(&p->not_before);
    one_more(&p->accepted_age, PATIENCE_AGE);
    one_more(&p->need_age, NEED_AGE);
    one_more(&p->started_age, BALLOT_AGE);
    for (uint8_t node = 0; node < VIEWS_NODES_MAX; node++) {
        one_less(&p->member[node].granted);
        one_less(&p->member[node].lease);
        one_less(&p->member[node].suspected);
        one_less(&p->candidate[node].suspected);
    }
}

/* The node by whose clock the message is dated: the sender's of a heartbeat, which becomes the
 * holder's of a grant; NODE_NONE: it is not dated. */
static uint8_t dated_by(const struct views_state *state, const struct views_message *message)
{
    if (message->kind == VIEW_MSG_HEARTBEAT) {
        return state->process[message->from].node;
    }
    return message->kind == VIEW_MSG_GRANT ? state->process[message->holder - 1].node : NODE_NONE;
}

void views_age(struct views_state *state, const struct views_times *times, uint8_t slow)
{
    /* A heartbeat that is as old as a lease gives none, however old it is. */
    uint8_t old = (uint8_t)((times->lease_us - times->margin_us) / VIEWS_TICK_US);

    for (uint32_t i = 0; i < state->processes; i++) {
        if (state->process[i].node != slow) {
            process_age(&state->process[i]);
        }
    }
    for (uint32_t i = 0; i < state->messages; i++) {
        struct views_message *message = &state->message[i];
        uint8_t node = dated_by(state, message);
        if (node != NODE_NONE && node != slow && message->age < old) {
            message->age++;
        }
    }
}

static uint8_t age_of(uint64_t sent_us)
{
    /* A second heartbeat within one tick has a number that is a little ahead of the clock. */
    return sent_us >= VIEWS_NOW_US ? 0 : (uint8_t)((VIEWS_NOW_US - sent_us) / VIEWS_TICK_US);
}

void views_message_pack(const struct view_msg *msg, uint32_t from, uint8_t to, uint8_t generation,
                        struct view_book *book, struct views_message *out)
{
    memset(out, 0, sizeof *out);
    out->kind = msg->kind;
    out->from = (uint8_t)from;
    out->to = to;
    out->epoch = (uint8_t)msg->epoch;
    out->generation = generation;
    switch ((enum view_msg_kind)msg->kind) {
    case VIEW_MSG_HEARTBEAT:
        out->age = age_of(msg->heartbeat.sent_us);
        out->heard = (uint8_t)msg->heartbeat.heard;
        out->configured = (uint8_t)msg->heartbeat.configured;
        out->kept_generation = view_book_generation(book, msg->heartbeat.kept_generation);
        out->kept_epoch = (uint8_t)msg->heartbeat.kept_epoch;
        out->admitted = (uint8_t)msg->heartbeat.admitted;
        out->flags = msg->heartbeat.flags;
        return;
    case VIEW_MSG_GRANT:
        out->holder = process_of(msg->grant.holder);
        out->age = age_of(msg->grant.sent_us);
        return;
    case VIEW_MSG_VIEW:
        out->view = view_book_number(book, &msg->view, 0);
        return;
    case VIEW_MSG_ASK:
        return;
    case VIEW_MSG_PREPARE:
        out->ballot = ballot_pack(&msg->prepare.ballot);
        out->drops = (uint8_t)msg->prepare.drops;
        out->configured = (uint8_t)msg->prepare.configured;
        out->instance = (uint8_t)msg->prepare.instance;
        out->flags = msg->prepare.flags;
        return;
    case VIEW_MSG_PROMISE:
        out->ballot = ballot_pack(&msg->promise.ballot);
        out->other = ballot_pack(&msg->promise.accepted);
        out->instance = (uint8_t)msg->promise.instance;
        out->view = view_book_number(book, &msg->promise.view, 0);
        return;
    case VIEW_MSG_ACCEPT:
        out->ballot = ballot_pack(&msg->accept.ballot);
        out->instance = (uint8_t)msg->accept.instance;
        out->view = view_book_number(book, &msg->accept.view, 0);
        return;
    case VIEW_MSG_ACCEPTED:
        out->ballot = ballot_pack(&msg->accepted.ballot);
        out->instance = (uint8_t)msg->accepted.instance;
        return;
    case VIEW_MSG_REFUSE:
        out->ballot = ballot_pack(&msg->refuse.ballot);
        out->other = ballot_pack(&msg->refuse.promised);
        out->instance = (uint8_t)msg->refuse.instance;
        return;
    }
}

static void heartbeat_unpack(const struct views_message *message, const struct view_book *book,
                             struct view_heartbeat *out)
{
    out->sent_us = VIEWS_NOW_US - message->age * (uint64_t)VIEWS_TICK_US;
    out->heard = message->heard;
    out->configured = message->configured;
    out->kept_generation = book->generation[message->kept_generation];
    out->kept_epoch = message->kept_epoch;
    out->admitted = message->admitted;
    out->flags = message->flags;
}

void views_message_unpack(const struct views_state *state, const struct views_message *message,
                          const struct views_times *times, const struct view_book *book,
                          struct view_msg *out)
{
    struct view_ballot ballot = ballot_unpack(state, message->ballot);
    struct view_ballot other = ballot_unpack(state, message->other);

    memset(out, 0, sizeof *out);
    out->kind = message->kind;
    out->epoch = message->epoch;
    switch ((enum view_msg_kind)message->kind) {
    case VIEW_MSG_HEARTBEAT:
        heartbeat_unpack(message, book, &out->heartbeat);
        return;
    case VIEW_MSG_GRANT:
        out->grant.holder = message->holder;
        out->grant.sent_us = VIEWS_NOW_US - message->age * (uint64_t)VIEWS_TICK_US;
        out->grant.lease_us = times->lease_us;
        return;
    case VIEW_MSG_VIEW:
        out->view = *view_book_view(book, message->view);
        return;
    case VIEW_MSG_ASK:
        return;
    case VIEW_MSG_PREPARE:
        out->prepare.ballot = ballot;
        out->prepare.drops = message->drops;
        out->prepare.configured = message->configured;
        out->prepare.instance = message->instance;
        out->prepare.flags = message->flags;
        return;
    case VIEW_MSG_PROMISE:
        out->promise.ballot = ballot;
        out->promise.accepted = other;
        out->promise.instance = message->instance;
        out->promise.view = *view_book_view(book, message->view);
        return;
    case VIEW_MSG_ACCEPT:
        out->accept.ballot = ballot;
        out->accept.instance = message->instance;
        out->accept.view = *view_book_view(book, message->view);
        return;
    case VIEW_MSG_ACCEPTED:
        out->accepted.ballot = ballot;
        out->accepted.instance = message->instance;
        return;
    case VIEW_MSG_REFUSE:
        out->refuse.ballot = ballot;
        out->refuse.promised = other;
        out->refuse.instance = message->instance;
        return;
    }
}
