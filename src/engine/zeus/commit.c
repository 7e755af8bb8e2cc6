/* Reliable commit, [Z] 5.5 and 5.5.1. Fault model: crashes of a minority, lanes between live
 * members that are ordered and reliable.
 *
 * | [Z]                                      | function                              |
 * |------------------------------------------|---------------------------------------|
 * | coordinator: R-INV                       | commit_begin, release                 |
 * | follower: R-INV, R-ACK                   | commit_inv                            |
 * | coordinator: all R-ACKs, R-VAL           | commit_ack, complete                  |
 * | follower: R-VAL                          | commit_val                            |
 * | replay under failures                    | commit_view: `drives`                 |
 *
 * Who drives a pipe is its coordinator, or, if that is dead, every follower that has stored slots
 * of it. Invariants, which commit_check asserts:
 * I1. first <= unsent <= next, and next - first <= COMMIT_SLOTS.
 * I2. Between first and unsent no slot is HELD, from unsent on none is SENT.
 * I3. The first slot, if there is one, is not done.
 * I4. `common` is within what each SENT slot that is not ACKed by all was sent to.
 * I5. Only a driver has slots SENT or HELD, and a follower only stored ones. */
#include "engine/zeus/commit.h"

#include "base/assert.h"
#include "engine/zeus/commit_rules.h"

_Static_assert((COMMIT_SLOTS & (COMMIT_SLOTS - 1)) == 0, "a power of 2");

#define EVERYBODY (~(nodeset)0)

const char *const commit_rule_names[COMMIT_RULES] = {
    [COMMIT_RULE_VAL_ANY_EPOCH] = "val_any_epoch",
    [COMMIT_RULE_INV_EPOCH] = "inv_epoch",
    [COMMIT_RULE_INV_MEMBER] = "inv_member",
    [COMMIT_RULE_PARTIAL] = "partial",
    [COMMIT_RULE_OWN_PIPE] = "own_pipe",
    [COMMIT_RULE_DURABLE] = "durable",
    [COMMIT_RULE_WHOLE] = "whole",
    [COMMIT_RULE_VERSION] = "version",
    [COMMIT_RULE_VAL_VERSION] = "val_version",
    [COMMIT_RULE_ALL_ACKS] = "all_acks",
    [COMMIT_RULE_REPLAY] = "replay",
    [COMMIT_RULE_ORDER] = "order",
    [COMMIT_RULE_MASK] = "mask",
    [COMMIT_RULE_RECOVERED] = "recovered",
    [COMMIT_RULE_AGAIN] = "again",
    [COMMIT_RULE_READ] = "read",
};

/* ---- Small helpers ---- */

static struct commit_slot *slot_at(struct commit_pipe *pipe, uint64_t slot)
{
    return &pipe->slots[slot & (COMMIT_SLOTS - 1)];
}

static const struct commit_slot *slot_of(const struct commit_pipe *pipe, uint64_t slot)
{
    return &pipe->slots[slot & (COMMIT_SLOTS - 1)];
}

static void add(struct commit_effects *fx, enum commit_fx kind, nodeset to, uint64_t slot)
{
    HK_ASSERT(fx->n < COMMIT_EFFECTS_MAX);
    fx->e[fx->n++] = (struct commit_effect){.kind = (uint8_t)kind, .to = to, .slot = slot};
}

static bool coordinator_lives(const struct commit_pipe *pipe, const struct view *view)
{
    return nodeset_has(view->live, pipe->name.node) &&
           view->members[pipe->name.node].admitted == pipe->name.admitted;
}

static bool is_mine(const struct commit_pipe *pipe, const struct commit_context *cx)
{
    return pipe->name.node == cx->self && coordinator_lives(pipe, cx->view);
}

static bool drives(const struct commit_pipe *pipe, const struct commit_context *cx)
{
    return pipe->dead || is_mine(pipe, cx);
}

/* To whom the driver sends the slot. */
static nodeset peers_of(const struct commit_pipe *pipe, const struct commit_context *cx,
                        uint64_t slot)
{
    return slot_of(pipe, slot)->followers & ~nodeset_of(cx->self);
}

static bool all_acked(const struct commit_pipe *pipe, const struct commit_context *cx,
                      uint64_t slot)
{
    nodeset peers = peers_of(pipe, cx, slot);
    bool some = false;
    for (nodeset rest = peers; rest != 0; rest &= rest - 1) {
        if (pipe->acked[nodeset_first(rest)] >= slot) {
            some = true;
        } else if (commit_rule_on(cx->config, COMMIT_RULE_ALL_ACKS)) {
            return false;
        }
    }
    return some || peers == 0;
}

/* ---- Driver ---- */

/* C3: whether the slot may go out, all before it having gone out. The common case is that all slots
 * have the same followers; only when the remembered bound does not do, it is found anew. */
static bool may_send(struct commit_pipe *pipe, const struct commit_context *cx, uint64_t slot)
{
    nodeset peers = peers_of(pipe, cx, slot);
    if (nodeset_within(peers, pipe->common) || !commit_rule_on(cx->config, COMMIT_RULE_PARTIAL)) {
        return true;
    }
    pipe->common = EVERYBODY;
    for (uint64_t s = pipe->first; s < slot; s++) {
        if (slot_of(pipe, s)->state == COMMIT_SENT && !all_acked(pipe, cx, s)) {
            pipe->common &= peers_of(pipe, cx, s);
        }
    }
    return nodeset_within(peers, pipe->common);
}

static void send_slot(struct commit_pipe *pipe, const struct commit_context *cx, uint64_t slot,
                      struct commit_effects *fx)
{
    nodeset peers = peers_of(pipe, cx, slot);
    slot_at(pipe, slot)->state = COMMIT_SENT;
    if (peers != 0) {
        pipe->common &= peers;
        add(fx, COMMIT_FX_INV, peers, slot);
    }
}

/* What is HELD goes out as far as it may. */
static void release(struct commit_pipe *pipe, const struct commit_context *cx,
                    struct commit_effects *fx)
{
    for (; pipe->unsent < pipe->next; pipe->unsent++) {
        if (slot_of(pipe, pipe->unsent)->state != COMMIT_HELD) {
            continue; /* a follower that another one sent it drives it not before the next view */
        }
        if (!may_send(pipe, cx, pipe->unsent)) {
            return;
        }
        send_slot(pipe, cx, pipe->unsent, fx);
    }
}

static void forget_first(struct commit_pipe *pipe)
{
    *slot_at(pipe, pipe->first) = (struct commit_slot){.state = COMMIT_FREE};
    pipe->first++;
    pipe->unsent = pipe->unsent < pipe->first ? pipe->first : pipe->unsent;
    if (pipe->first == pipe->unsent) {
        pipe->common = EVERYBODY;
    }
}

/* The first slots that all have ACKed are done. A follower's slots that were not sent to it were
 * ACKed by all before anything behind them was sent to it (C3): they are done. */
static void complete(struct commit_pipe *pipe, const struct commit_context *cx,
                     struct commit_effects *fx)
{
    nodeset told = 0;
    uint64_t last = 0;
    while (pipe->first < pipe->next) {
        const struct commit_slot *s = slot_of(pipe, pipe->first);
        if (s->state == COMMIT_SENT && all_acked(pipe, cx, pipe->first)) {
            told |= peers_of(pipe, cx, pipe->first);
            last = pipe->first;
            add(fx, COMMIT_FX_DONE, 0, last);
        } else if (s->state != COMMIT_FREE || s->stored) {
            break;
        }
        forget_first(pipe);
    }
    if (told != 0) {
        add(fx, COMMIT_FX_VAL, told, last);
    }
}

/* Something has been ACKed, or is done. */
static void go_on(struct commit_pipe *pipe, const struct commit_context *cx,
                  struct commit_effects *fx)
{
    complete(pipe, cx, fx);
    if (pipe->unsent < pipe->next) {
        release(pipe, cx, fx);
        complete(pipe, cx, fx); /* what nobody else follows */
    }
}

void commit_pipe_init(struct commit_pipe *pipe, const struct commit_name *name)
{
    *pipe = (struct commit_pipe){
        .name = *name, .next = 1, .first = 1, .unsent = 1, .common = EVERYBODY};
}

bool commit_room(const struct commit_pipe *pipe)
{
    return pipe->next - pipe->first < COMMIT_SLOTS;
}

enum commit_fit commit_fit(const struct commit_pipe *pipe, nodeset followers)
{
    if (commit_pipe_empty(pipe)) {
        return COMMIT_FIT_FIRST;
    }
    if (pipe->unsent != pipe->next || !nodeset_within(followers, pipe->common)) {
        return COMMIT_FIT_HELD;
    }
    return followers == pipe->common ? COMMIT_FIT_SAME : COMMIT_FIT_FEWER;
}

uint64_t commit_begin(struct commit_pipe *pipe, const struct commit_context *cx, nodeset followers,
                      struct commit_effects *fx)
{
    HK_ASSERT(commit_room(pipe) && is_mine(pipe, cx));
    HK_ASSERT(commit_pipe_empty(pipe) || pipe->epoch == cx->view->epoch);
    uint64_t slot = pipe->next++;
    pipe->epoch = cx->view->epoch;
    *slot_at(pipe, slot) = (struct commit_slot){
        .followers = followers & cx->view->live & ~nodeset_of(cx->self), .state = COMMIT_HELD};
    go_on(pipe, cx, fx);
    return slot;
}

void commit_ack(struct commit_pipe *pipe, const struct commit_context *cx, uint8_t from,
                uint64_t slot, bool alive, struct commit_effects *fx)
{
    if (!alive || from >= NODES_MAX || !drives(pipe, cx) || slot >= pipe->unsent) {
        return;
    }
    if (slot < pipe->first) {
        if (commit_rule_on(cx->config, COMMIT_RULE_AGAIN)) {
            add(fx, COMMIT_FX_VAL, nodeset_of(from), pipe->first - 1);
        }
        return;
    }
    if (slot > pipe->acked[from]) {
        pipe->acked[from] = slot;
        go_on(pipe, cx, fx);
    }
}

/* ---- Views ---- */

/* C9: who of the followers is still the process that it was when the slot was sent. */
static nodeset still_there(const struct commit_pipe *pipe, const struct commit_context *cx)
{
    nodeset there = 0;
    for (nodeset rest = cx->view->live; rest != 0; rest &= rest - 1) {
        uint8_t node = nodeset_first(rest);
        if (cx->view->members[node].admitted <= pipe->epoch) {
            there |= nodeset_of(node);
        }
    }
    return commit_rule_on(cx->config, COMMIT_RULE_MASK) ? there : EVERYBODY;
}

/* All that this node drives is to be sent again, in order. */
static void hold_all(struct commit_pipe *pipe, const struct commit_context *cx,
                     struct commit_effects *fx)
{
    for (uint64_t s = pipe->first; s < pipe->next; s++) {
        struct commit_slot *slot = slot_at(pipe, s);
        slot->state = !pipe->dead || slot->stored ? COMMIT_HELD : COMMIT_FREE;
    }
    pipe->unsent = pipe->first;
    pipe->common = EVERYBODY;
    if (pipe->dead && !commit_rule_on(cx->config, COMMIT_RULE_ORDER)) {
        for (uint64_t s = pipe->next; s-- > pipe->first;) {
            if (slot_of(pipe, s)->stored) {
                send_slot(pipe, cx, s, fx);
            }
        }
        pipe->unsent = pipe->next;
    }
}

void commit_view(struct commit_pipe *pipe, const struct commit_context *cx,
                 struct commit_effects *fx)
{
    if (!nodeset_has(cx->view->live, cx->self)) {
        return; /* nobody listens any more */
    }
    nodeset there = still_there(pipe, cx);
    for (uint64_t s = pipe->first; s < pipe->next; s++) {
        slot_at(pipe, s)->followers &= there;
    }
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        pipe->acked[i] = 0;
    }
    pipe->epoch = cx->view->epoch;
    pipe->dead = !coordinator_lives(pipe, cx->view);
    bool replays = pipe->dead && commit_rule_on(cx->config, COMMIT_RULE_REPLAY);
    if (replays || is_mine(pipe, cx)) {
        hold_all(pipe, cx, fx);
        go_on(pipe, cx, fx);
    }
}

/* ---- Follower ---- */

/* R-VAL up to the slot. What never came is not forgotten: it would never be stored. */
static void validate(struct commit_pipe *pipe, uint64_t up_to, struct commit_effects *fx)
{
    while (pipe->first < pipe->next && pipe->first <= up_to) {
        if (slot_of(pipe, pipe->first)->stored) {
            add(fx, COMMIT_FX_DROP, 0, pipe->first);
        }
        forget_first(pipe);
    }
    while (pipe->first < pipe->next && !slot_of(pipe, pipe->first)->stored) {
        forget_first(pipe);
    }
}

/* C2 */
static bool inv_counts(const struct commit_pipe *pipe, const struct commit_context *cx,
                       uint8_t from, const struct commit_inv *inv, bool alive)
{
    bool lives = coordinator_lives(pipe, cx->view);
    if (is_mine(pipe, cx) || !nodeset_has(inv->followers, cx->self) || inv->first == 0 ||
        inv->slot < inv->first || inv->slot - inv->first >= COMMIT_SLOTS) {
        return false;
    }
    /* Nobody replays for a coordinator that lives. */
    bool member = nodeset_has(cx->view->live, from) && (from == pipe->name.node) == lives;
    if (!member) {
        return !commit_rule_on(cx->config, COMMIT_RULE_INV_MEMBER);
    }
    return alive || !commit_rule_on(cx->config, COMMIT_RULE_INV_EPOCH);
}

static void store(struct commit_pipe *pipe, const struct commit_context *cx,
                  const struct commit_inv *inv, struct commit_effects *fx)
{
    for (; pipe->next <= inv->slot; pipe->next++) {
        *slot_at(pipe, pipe->next) = (struct commit_slot){.state = COMMIT_FREE};
    }
    *slot_at(pipe, inv->slot) =
        (struct commit_slot){.followers = inv->followers & cx->view->live, .stored = true};
    add(fx, COMMIT_FX_APPLY, 0, inv->slot);
}

bool commit_inv(struct commit_pipe *pipe, const struct commit_context *cx, uint8_t from,
                const struct commit_inv *inv, bool alive, struct commit_effects *fx)
{
    if (!inv_counts(pipe, cx, from, inv, alive)) {
        if (!alive && nodeset_has(cx->view->live, from)) {
            add(fx, COMMIT_FX_BEHIND, nodeset_of(from), inv->slot);
        }
        return false;
    }
    pipe->dead = !coordinator_lives(pipe, cx->view);
    pipe->epoch = cx->view->epoch;
    validate(pipe, inv->first - 1, fx);
    if (commit_pipe_empty(pipe) && pipe->first < inv->first) {
        pipe->first = pipe->unsent = pipe->next = inv->first;
    }
    if (inv->slot >= pipe->first &&
        (inv->slot >= pipe->next || !slot_of(pipe, inv->slot)->stored)) {
        store(pipe, cx, inv, fx);
        validate(pipe, 0, fx);
    }
    add(fx, COMMIT_FX_ACK, nodeset_of(from), inv->slot);
    if (pipe->dead) {
        go_on(pipe, cx, fx);
    }
    return true;
}

void commit_val(struct commit_pipe *pipe, const struct commit_context *cx, uint64_t slot,
                bool alive, struct commit_effects *fx)
{
    if (is_mine(pipe, cx) || (!alive && !commit_rule_on(cx->config, COMMIT_RULE_VAL_ANY_EPOCH))) {
        return;
    }
    validate(pipe, slot, fx);
    if (pipe->dead) {
        go_on(pipe, cx, fx);
    }
}

bool commit_pipe_empty(const struct commit_pipe *pipe)
{
    return pipe->first == pipe->next;
}

struct commit_inv commit_inv_of(const struct commit_pipe *pipe, uint64_t slot)
{
    HK_ASSERT(slot >= pipe->first && slot < pipe->next);
    return (struct commit_inv){
        .slot = slot, .first = pipe->first, .followers = slot_of(pipe, slot)->followers};
}

/* ---- Objects ---- */

bool commit_takes(const struct commit_config *config, uint64_t held, uint64_t version)
{
    return version > held || !commit_rule_on(config, COMMIT_RULE_VERSION);
}

bool commit_validates(const struct commit_config *config, uint64_t held, uint64_t version)
{
    return version == held || !commit_rule_on(config, COMMIT_RULE_VAL_VERSION);
}

bool commit_may_touch(const struct commit_config *config, uint32_t its, uint32_t mine)
{
    return its == mine || !commit_rule_on(config, COMMIT_RULE_OWN_PIPE);
}

/* ---- Check ---- */

void commit_check(const struct commit_pipe *pipe, const struct commit_context *cx)
{
    HK_ASSERT(pipe->first >= 1 && pipe->first <= pipe->unsent && pipe->unsent <= pipe->next);
    HK_ASSERT(pipe->next - pipe->first <= COMMIT_SLOTS);
    for (uint64_t s = pipe->first; s < pipe->next; s++) {
        const struct commit_slot *slot = slot_of(pipe, s);
        HK_ASSERT(slot->state != (s < pipe->unsent ? COMMIT_HELD : COMMIT_SENT));
        HK_ASSERT(slot->state == COMMIT_FREE || drives(pipe, cx));
        HK_ASSERT(is_mine(pipe, cx) ? !slot->stored : slot->stored || slot->state == COMMIT_FREE);
        if (s == pipe->first) {
            HK_ASSERT(slot->stored || slot->state != COMMIT_FREE);
            HK_ASSERT(slot->state != COMMIT_SENT || !all_acked(pipe, cx, s));
        }
        if (slot->state == COMMIT_SENT && !all_acked(pipe, cx, s)) {
            HK_ASSERT(nodeset_within(pipe->common, peers_of(pipe, cx, s)));
        }
    }
}
