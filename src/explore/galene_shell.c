/* The node's shell around the engine, as far as one key needs it (src/node/step.c, call.c): what
 * becomes of effects, and when an operation has ended. */
#include "explore/galene_model.h"

#include <string.h>

#include "base/assert.h"

#define TS_CID_BITS 4u

static uint16_t ts_small(uint64_t ts)
{
    HK_ASSERT(stamp_cid(ts) < 1u << TS_CID_BITS && stamp_version(ts) < 1u << 12);
    return (uint16_t)(stamp_version(ts) << TS_CID_BITS | stamp_cid(ts));
}

static uint64_t ts_large(uint16_t ts)
{
    return ts == 0 ? 0 : stamp_make(ts >> TS_CID_BITS, ts & ((1u << TS_CID_BITS) - 1u));
}

/* ---- Events ---- */

static const struct view *build_view(struct galene_shell *shell, uint8_t epoch)
{
    const struct galene_world *w = shell->world;
    struct view *view = &shell->model->work->view;
    memset(view, 0, sizeof *view);
    view->epoch = epoch;
    view->live = w->live[epoch - 1];
    view->operational = view->live;
    view->next_cid = 1;
    for (uint8_t i = 0; i < GALENE_NODES; i++) {
        bool joined = i == GALENE_NODES - 1 && shell->model->setup->joins;
        uint8_t admitted = joined ? w->admitted : 1;
        view->configured |= nodeset_of(i);
        if (admitted != 0 && admitted <= epoch) {
            view->next_cid = i + 2u;
        }
        if (nodeset_has(view->live, i)) {
            view->members[i] = (struct view_member){.nonce = i + 1u,
                                                    .admitted = admitted,
                                                    .cid_first = i + 1u,
                                                    .cid_count = 1,
                                                    .role = VIEW_ROLE_OPERATIONAL};
        }
    }
    return view;
}

static struct event event_of(struct galene_shell *shell, uint8_t node, enum ev_kind kind)
{
    const struct view *view = build_view(shell, shell->world->nodes[node].epoch);
    bool lost = !nodeset_has(view->live, GALENE_HOME_NODE);
    return (struct event){.kind = kind,
                          .from = NODE_NONE,
                          .self = node,
                          .now_us = 1000,
                          .home = {.home = GALENE_HOME_NODE,
                                   .to = NODE_NONE,
                                   .state = lost ? HOME_LOST : HOME_STABLE},
                          .view = view,
                          .config = &shell->model->config};
}

/* ---- Messages ---- */

static bool is_answer(uint8_t kind)
{
    return kind == GALENE_ACK || kind == GALENE_REPORT || kind == GALENE_NOPE;
}

static struct msg message_large(const struct galene_message *m)
{
    static const uint8_t bytes[1];
    bool valued = m->kind == GALENE_UPD;
    return (struct msg){.kind = m->kind,
                        .flags = m->flags,
                        .slot = m->slot == 0 ? 0 : slot_ref(0, m->slot),
                        .gen = m->gen,
                        .epoch = m->epoch,
                        .arg = m->arg,
                        .ts = ts_large(m->ts),
                        .key = bytes_of("k", is_answer(m->kind) ? 0 : 1),
                        .value = bytes_of(bytes, valued ? 1 : 0)};
}

static int compare(const struct galene_message *a, const struct galene_message *b)
{
    return memcmp(a, b, sizeof *a);
}

/* What is said to nobody, or to a flow that has ended, is left out. */
static void post(struct galene_shell *shell, uint8_t from, uint8_t to, const struct effect *e,
                 uint8_t value)
{
    struct galene_world *w = shell->world;
    struct galene_message m = {.ts = ts_small(e->ts),
                               .kind = e->code,
                               .flags = e->flags,
                               .from = from,
                               .to = to,
                               .epoch = w->nodes[from].epoch,
                               .slot = (uint8_t)slot_ref_index(e->slot),
                               .gen = (uint8_t)e->gen,
                               .value = value,
                               .arg = (uint8_t)(e->kind == EFF_SEND ? e->set : e->arg)};
    struct msg large = message_large(&m);
    if (to == from || to >= GALENE_NODES || galene_ops.msg_invalid(&large) != NULL) {
        shell->broken = "a message that no correct member sends";
        return;
    }
    if (w->nodes[to].epoch == 0 || (is_answer(m.kind) && m.gen != 1)) {
        return;
    }
    HK_ASSERT(w->nmessages < GALENE_MESSAGES);
    uint8_t at = w->nmessages++;
    while (at > 0 && compare(&w->messages[at - 1], &m) > 0) {
        w->messages[at] = w->messages[at - 1];
        at--;
    }
    w->messages[at] = m;
}

static void send_effect(struct galene_shell *shell, uint8_t node, const struct effect *e,
                        uint8_t payload)
{
    uint8_t value = GALENE_VALUE_NONE;
    if ((e->with & EFF_VALUE) != 0) {
        value = shell->world->nodes[node].value;
    } else if ((e->with & EFF_PAYLOAD) != 0) {
        value = payload;
    }
    nodeset set = e->kind == EFF_SEND ? nodeset_of(e->to) : e->set;
    for (; set != 0; set &= set - 1) {
        post(shell, node, nodeset_first(set), e, value);
    }
}

/* ---- Steps ---- */

static void flow_step(struct galene_shell *shell, uint8_t node, uint8_t slot, struct event *event);

static struct slot *free_slot(struct galene_node *n)
{
    for (uint32_t i = 0; i < GALENE_SLOTS; i++) {
        if (n->slots[i].kind == GALENE_FLOW_FREE) {
            return &n->slots[i];
        }
    }
    HK_ASSERT(false && "too few slots");
    return NULL;
}

static void key_effect(struct galene_shell *shell, uint8_t node, const struct effect *e,
                       uint8_t payload)
{
    struct galene_node *n = &shell->world->nodes[node];
    switch ((enum eff_kind)e->kind) {
    case EFF_SEND:
    case EFF_BCAST:
        send_effect(shell, node, e, payload);
        break;
    case EFF_FORGET:
        n->meta = galene_ops.blank;
        n->value = GALENE_VALUE_NONE;
        break;
    case EFF_LATER:
        shell->later = true;
        break;
    case EFF_PARK:
    case EFF_LOST:
        shell->parked = true;
        break;
    case EFF_APPLY:
        n->value = payload;
        break;
    case EFF_FLOW: /* after the bucket is unlocked */
    case EFF_WAKE:
    case EFF_HOLD:
    case EFF_ISSUE:
    case EFF_DROP:
        break;
    case EFF_KEY:
    case EFF_REPLY:
    case EFF_CLOSE:
    case EFF_BEHIND:
    case EFF_ASK:
    case EFF_KEEP:
    case EFF_TAKE:
    case EFF_TRIM:
    case EFF_SEND_KEPT:
    case EFF_HOME:
    case EFF_LEFT:
        HK_ASSERT(false && "no effect of this machine");
    }
}

static bool has_effect(const struct effects *fx, enum eff_kind kind)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        if (fx->e[i].kind == kind) {
            return true;
        }
    }
    return false;
}

/* payload: the value that EFF_APPLY stores; op: 1 + the operation whose update it is, or 0. */
static void key_step(struct galene_shell *shell, uint8_t node, struct event *event,
                     struct slot *mine, uint8_t payload, uint8_t op)
{
    struct galene_node *n = &shell->world->nodes[node];
    struct slot *spare = event->kind == EV_MSG ? NULL : free_slot(n);
    struct effects fx = {.n = 0};
    galene_ops.key(&n->meta, NULL, mine, spare, event, &fx);
    if (has_effect(&fx, EFF_APPLY)) {
        n->value = payload; /* before what carries it is sent */
    }
    for (uint32_t i = 0; i < fx.n; i++) {
        key_effect(shell, node, &fx.e[i], payload);
    }
    if (n->meta.state != GALENE_NONE) {
        galene_ops.check(&n->meta, NULL);
    }
    if (spare != NULL && spare->kind != GALENE_FLOW_FREE) {
        uint32_t at = slot_ref_index(spare->ref) - 1;
        n->op_of[at] = op;
        n->held[at] = has_effect(&fx, EFF_HOLD) ? payload : GALENE_VALUE_NONE;
    }
    galene_note(shell);
    for (uint32_t i = 0; i < fx.n; i++) {
        const struct effect *e = &fx.e[i];
        if (e->kind == EFF_FLOW) {
            struct event told = event_of(shell, node, EV_KEY);
            told.code = e->code;
            flow_step(shell, node, (uint8_t)slot_ref_index(e->slot), &told);
        }
    }
}

static void operation_ends(struct galene_shell *shell, uint8_t node, uint8_t slot, uint8_t code)
{
    uint8_t number = shell->world->nodes[node].op_of[slot - 1];
    if (number == 0) {
        return;
    }
    struct galene_op *op = &shell->world->ops[number - 1];
    uint8_t value = galene_value_of((uint8_t)(number - 1));
    op->phase = code == REPLY_DONE ? OP_OK : OP_FAILED;
    if (code == REPLY_LOST) {
        shell->world->lost |= (uint8_t)(1u << value);
        if (((uint32_t)shell->world->seen >> value & 1u) != 0) {
            shell->broken = "an update that could be read is called lost";
        }
    }
}

/* The slot is as new: answers to its flow are gone, and will not be sent. */
static void close_slot(struct galene_world *w, uint8_t node, uint8_t slot)
{
    struct galene_node *n = &w->nodes[node];
    uint32_t ref = n->slots[slot - 1].ref;
    uint8_t kept = 0;
    n->op_of[slot - 1] = 0;
    n->held[slot - 1] = GALENE_VALUE_NONE;
    n->slots[slot - 1] = (struct slot){.ref = ref, .gen = 1};
    for (uint8_t i = 0; i < w->nmessages; i++) {
        struct galene_message *m = &w->messages[i];
        if (is_answer(m->kind) && m->to == node && m->slot == slot) {
            continue;
        }
        if (!is_answer(m->kind) && m->from == node && m->slot == slot) {
            m->gen = 2;
        }
        w->messages[kept++] = *m;
    }
    w->nmessages = kept;
}

static void flow_effects(struct galene_shell *shell, uint8_t node, uint8_t slot,
                         const struct effects *fx)
{
    struct galene_node *n = &shell->world->nodes[node];
    struct slot *mine = &n->slots[slot - 1];
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        if (e->kind == EFF_KEY) {
            struct event event = event_of(shell, node, EV_FLOW);
            event.code = e->code;
            key_step(shell, node, &event, mine, n->held[slot - 1], 0);
            if (mine->kind == GALENE_FLOW_FREE) {
                return; /* the flow is gone */
            }
        } else if (e->kind == EFF_REPLY) {
            operation_ends(shell, node, slot, e->code);
        } else if (e->kind == EFF_CLOSE) {
            close_slot(shell->world, node, slot);
            return;
        } else if (e->kind == EFF_SEND || e->kind == EFF_BCAST) {
            send_effect(shell, node, e, GALENE_VALUE_NONE);
        } else {
            HK_ASSERT(e->kind == EFF_DROP);
        }
    }
}

static void flow_step(struct galene_shell *shell, uint8_t node, uint8_t slot, struct event *event)
{
    struct effects fx = {.n = 0};
    galene_ops.flow(&shell->world->nodes[node].slots[slot - 1], event, &fx);
    flow_effects(shell, node, slot, &fx);
}

void galene_shell_flow(struct galene_shell *shell, uint8_t node, uint8_t slot, enum ev_kind kind)
{
    struct event event = event_of(shell, node, kind);
    flow_step(shell, node, slot, &event);
}

void galene_shell_sweep(struct galene_shell *shell, uint8_t node)
{
    struct event event = event_of(shell, node, EV_SWEEP);
    key_step(shell, node, &event, NULL, GALENE_VALUE_NONE, 0);
}

void galene_shell_order(struct galene_shell *shell, const struct galene_order *order)
{
    struct event event = event_of(shell, GALENE_HOME_NODE, EV_HOT);
    event.code = order->leave ? HOT_LEAVE : HOT_ENTER;
    event.ts = order->generation;
    key_step(shell, GALENE_HOME_NODE, &event, NULL, GALENE_VALUE_NONE, 0);
}

void galene_shell_update(struct galene_shell *shell, uint8_t op, uint8_t node)
{
    struct event event = event_of(shell, node, EV_UPDATE);
    event.rmw = shell->model->setup->ops[op] == OP_RMW;
    key_step(shell, node, &event, NULL, galene_value_of(op), (uint8_t)(op + 1));
}

void galene_shell_deliver(struct galene_shell *shell, const struct galene_message *m)
{
    struct galene_node *n = &shell->world->nodes[m->to];
    struct msg msg = message_large(m);
    struct event event = event_of(shell, m->to, EV_MSG);
    event.from = m->from;
    event.msg = &msg;
    if (galene_ops.route(&msg) == ROUTE_KEY) {
        key_step(shell, m->to, &event, NULL, m->value, 0);
    } else if (n->slots[m->slot - 1].kind != GALENE_FLOW_FREE && m->gen == 1) {
        flow_step(shell, m->to, m->slot, &event);
    }
}
