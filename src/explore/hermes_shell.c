/* The node's shell around the engine, as far as one key needs it (src/node/step.c, call.c, input.c,
 * control.c, transfer.c): what becomes of effects, when an operation may be answered, what is tried
 * again, and in which order flows learn of a view. */
#include "explore/hermes_model.h"

#include <string.h>

/* ---- Events ---- */

static const struct view *build_view(struct shell *shell, uint8_t epoch)
{
    struct hermes_work *work = shell->model->work;
    struct view *view = &work->views[epoch - 1];
    if ((work->built >> epoch & 1u) != 0) {
        return view;
    }
    const struct model_view *small = &shell->world->views[epoch - 1];
    memset(view, 0, sizeof *view);
    view->epoch = epoch;
    view->live = small->live;
    view->operational = small->operational;
    for (uint8_t i = 0; i < shell->model->setup->nodes; i++) {
        view->configured |= nodeset_of(i);
        if (nodeset_has(small->live, i)) {
            bool operational = nodeset_has(small->operational, i);
            view->members[i] = (struct view_member){.nonce = small->born[i],
                                                    .admitted = small->born[i],
                                                    .cid_first = small->cid[i],
                                                    .cid_count = 1,
                                                    .role = operational ? VIEW_ROLE_OPERATIONAL
                                                                        : VIEW_ROLE_SHADOW};
        }
    }
    work->built |= 1u << epoch;
    return view;
}

static struct event event_of(struct shell *shell, uint8_t node, enum ev_kind kind)
{
    const struct model_node *n = &shell->world->nodes[node];
    return (struct event){.kind = kind,
                          .from = NODE_NONE,
                          .self = node,
                          .confirms = n->confirms != 0,
                          .now_us = (1000u + shell->world->ticks) * (uint64_t)MODEL_TICK_US,
                          .view = build_view(shell, n->epoch),
                          .config = &shell->model->config};
}

/* The engine's memory of a worker, of which one key uses one cell: local_hash is 0. */
static void load_worker(const struct model_node *n, struct hermes_worker *worker)
{
    worker->collects = n->collects;
    worker->early[0] = (struct early_ack){
        .ts = ts_large(n->early_ts), .from = n->early_from, .epoch = n->early_epoch};
}

static void save_worker(struct model_node *n, const struct hermes_worker *worker)
{
    n->collects = (uint8_t)worker->collects;
    n->early_ts = ts_small(worker->early[0].ts);
    n->early_from = (uint8_t)worker->early[0].from;
    n->early_epoch = (uint8_t)worker->early[0].epoch;
}

/* ---- Messages ---- */

static uint8_t value_flags(const struct shell *shell, uint8_t value)
{
    return value_is_nil(shell->model, value) ? KEY_TOMBSTONE : 0;
}

/* A message carries the value that the key holds. The mutant that sends an old update once more
 * would have kept its value, which is found in what was sent of it before. */
static uint8_t value_of_ts(const struct shell *shell, uint8_t node, uint64_t ts)
{
    const struct model_world *w = shell->world;
    if (ts == w->nodes[node].meta.ts) {
        return w->nodes[node].value;
    }
    for (uint32_t i = 0; i < w->nmessages; i++) {
        const struct model_message *m = &w->messages[i];
        if (m->kind == HERMES_INV && m->from == node && ts_large(m->ts) == ts) {
            return m->value;
        }
    }
    return VALUE_NONE;
}

static struct msg message_large(const struct shell *shell, const struct model_message *m)
{
    static const uint8_t bytes[1];
    struct msg msg = {.kind = m->kind,
                      .flags = m->flags,
                      .slot = m->slot == 0 ? 0 : slot_ref(0, m->slot),
                      .gen = m->gen,
                      .epoch = m->epoch,
                      .ts = ts_large(m->ts)};
    bool keyed = m->kind == HERMES_INV || m->kind == HERMES_ACK_ALL || m->kind == HERMES_VAL ||
                 m->kind == HERMES_ITEM || m->kind == HERMES_FORGET_ASK || m->kind == HERMES_FORGET;
    msg.key = bytes_of("k", keyed ? 1 : 0);
    msg.value = bytes_of(bytes, 0);
    if (m->kind == HERMES_INV || m->kind == HERMES_ITEM) {
        msg.vflags = value_flags(shell, m->value);
        msg.value.n = (msg.vflags & KEY_TOMBSTONE) != 0 ? 0 : 1;
    }
    return msg;
}

static void post(struct shell *shell, uint8_t from, uint8_t to, const struct effect *e,
                 uint8_t value)
{
    const struct model_world *w = shell->world;
    const struct model_view *view = world_view_of(w, from);
    struct model_message m = {.ts = ts_small(e->ts),
                              .kind = e->code,
                              .flags = e->flags,
                              .from = from,
                              .to = to,
                              .from_born = w->nodes[from].born,
                              .to_born = view->born[to],
                              .epoch = w->nodes[from].epoch,
                              .slot = (uint8_t)slot_ref_index(e->slot),
                              .gen = (uint8_t)e->gen,
                              .value = value};
    struct msg large = message_large(shell, &m);
    if (to == from || to >= shell->model->setup->nodes || hermes_ops.msg_invalid(&large) != NULL) {
        shell->broken = "a message that no correct member sends";
        return;
    }
    world_send(shell, &m);
}

static void send_effect(struct shell *shell, uint8_t node, const struct effect *e)
{
    uint8_t value = (e->with & EFF_VALUE) != 0 ? value_of_ts(shell, node, e->ts) : VALUE_NONE;
    nodeset set = e->kind == EFF_SEND ? nodeset_of(e->to) : e->set;
    for (; set != 0; set &= set - 1) {
        post(shell, node, nodeset_first(set), e, value);
    }
}

/* ---- Steps ---- */

static void flow_step(struct shell *shell, uint8_t node, uint8_t slot, struct event *event);

static struct slot *free_slot(struct model_node *n)
{
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        if (n->slots[i].kind == FLOW_FREE) {
            return &n->slots[i];
        }
    }
    return NULL;
}

bool shell_has_slot(const struct model_world *w, uint8_t node)
{
    for (uint32_t i = 0; i < MODEL_SLOTS; i++) {
        if (w->nodes[node].slots[i].kind == FLOW_FREE) {
            return true;
        }
    }
    return false;
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

/* What waits until the bucket is unlocked. */
static void after_unlock(struct shell *shell, uint8_t node, const struct effects *fx)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        if (e->kind == EFF_FLOW) {
            struct event event = event_of(shell, node, EV_KEY);
            event.code = e->code;
            flow_step(shell, node, (uint8_t)slot_ref_index(e->slot), &event);
        }
    }
}

/* payload: the value that EFF_APPLY stores; op: 1 + the operation whose update it is, or 0. */
static void key_step(struct shell *shell, uint8_t node, struct event *event, struct slot *mine,
                     uint8_t payload, uint8_t op)
{
    struct model_node *n = &shell->world->nodes[node];
    struct slot *spare = event->kind == EV_MSG ? NULL : free_slot(n);
    struct hermes_worker worker;
    struct effects fx = {.n = 0};
    load_worker(n, &worker);
    event->worker = &worker;
    hermes_ops.key(&n->meta, NULL, mine, spare, event, &fx);
    save_worker(n, &worker);
    if (has_effect(&fx, EFF_FORGET)) {
        n->value = VALUE_NONE;
    } else if (has_effect(&fx, EFF_APPLY)) {
        n->value = payload;
        n->meta.flags = (uint8_t)((n->meta.flags & ~KEY_VALUE_FLAGS) | value_flags(shell, payload));
    }
    if (op != 0 && spare != NULL && spare->kind == FLOW_UPDATE) {
        n->op_of[slot_ref_index(spare->ref) - 1] = op;
    }
    hermes_ops.check(&n->meta, NULL);
    judge_note(shell);
    for (uint32_t i = 0; i < fx.n; i++) {
        if (fx.e[i].kind == EFF_SEND || fx.e[i].kind == EFF_BCAST) {
            send_effect(shell, node, &fx.e[i]);
        }
    }
    after_unlock(shell, node, &fx);
}

/* ---- The ends of operations ---- */

static void end_update(struct shell *shell, struct model_op *op, uint8_t node, uint8_t code)
{
    bool async = shell->model->setup->async;
    uint8_t tries = shell->model->setup->tries;
    if (code == REPLY_LOST) {
        shell->world->lost |= 1u << op->value;
        if ((shell->world->seen >> op->value & 1u) != 0) {
            shell->broken = "an update that could be read is called lost";
        }
    }
    if (!async && !world_leased(shell->world, node)) {
        op->phase = PHASE_UNKNOWN;
    } else if (code == REPLY_LOST) {
        op->tries++;
        op->phase = op->tries < tries ? PHASE_AGAIN : PHASE_FAILED;
    } else if (code == REPLY_OVERTAKEN && async) {
        op->phase = PHASE_CONFIRM;
    } else {
        op->phase = PHASE_OK;
    }
}

static void operation_ends(struct shell *shell, uint8_t node, uint8_t slot, uint8_t code)
{
    struct model_node *n = &shell->world->nodes[node];
    uint8_t number = n->op_of[slot - 1];
    if (number == 0) {
        return;
    }
    struct model_op *op = &shell->world->ops[number - 1];
    n->op_of[slot - 1] = 0;
    if (op_ended(op) || op->node != node) {
        return; /* its client is gone */
    }
    if (op->phase == PHASE_ISSUED) {
        end_update(shell, op, node, code);
    } else if (code == REPLY_DONE) {
        op->phase = PHASE_OK;
    } else {
        bool read = shell->model->setup->ops[number - 1] == TYPE_READ;
        op->phase = read ? PHASE_AGAIN : PHASE_CONFIRM;
    }
}

static void close_slot(struct model_node *n, uint8_t slot)
{
    uint32_t ref = n->slots[slot - 1].ref;
    uint32_t gen = n->slots[slot - 1].gen + 1;
    n->op_of[slot - 1] = 0;
    n->slots[slot - 1] = (struct slot){.ref = ref, .gen = gen};
}

static void flow_effects(struct shell *shell, uint8_t node, uint8_t slot, const struct effects *fx)
{
    struct model_node *n = &shell->world->nodes[node];
    struct slot *mine = slot == 0 ? NULL : &n->slots[slot - 1];
    uint32_t gen = mine == NULL ? 0 : mine->gen;
    for (uint32_t i = 0; i < fx->n; i++) {
        const struct effect *e = &fx->e[i];
        switch ((enum eff_kind)e->kind) {
        case EFF_KEY: {
            struct event event = event_of(shell, node, EV_FLOW);
            event.code = e->code;
            key_step(shell, node, &event, mine, VALUE_NONE, 0);
            if (mine->gen != gen) {
                return; /* the flow is gone */
            }
            break;
        }
        case EFF_REPLY:
            operation_ends(shell, node, slot, e->code);
            break;
        case EFF_CLOSE:
            close_slot(n, slot);
            return;
        case EFF_SEND:
        case EFF_BCAST:
            send_effect(shell, node, e);
            break;
        case EFF_DROP:
        case EFF_BEHIND:
            break;
        case EFF_APPLY:
        case EFF_FORGET:
        case EFF_PARK:
        case EFF_WAKE:
        case EFF_FLOW:
        case EFF_ISSUE:
        case EFF_ASK:
        case EFF_KEEP:
        case EFF_TAKE:
        case EFF_TRIM:
        case EFF_SEND_KEPT:
        case EFF_HOLD:
        case EFF_LATER:
        case EFF_LOST:
        case EFF_HOME:
        case EFF_LEFT:
            HK_ASSERT(false && "no effect of this machine");
        }
    }
}

/* slot 0: the flow machine of the worker. */
static void flow_step(struct shell *shell, uint8_t node, uint8_t slot, struct event *event)
{
    struct model_node *n = &shell->world->nodes[node];
    struct slot *mine = slot == 0 ? NULL : &n->slots[slot - 1];
    struct hermes_worker worker;
    struct effects fx = {.n = 0};
    load_worker(n, &worker);
    event->worker = &worker;
    hermes_ops.flow(mine, event, &fx);
    save_worker(n, &worker);
    flow_effects(shell, node, slot, &fx);
}

void shell_key(struct shell *shell, uint8_t node, enum ev_kind kind)
{
    struct event event = event_of(shell, node, kind);
    key_step(shell, node, &event, NULL, VALUE_NONE, 0);
}

void shell_flow(struct shell *shell, uint8_t node, uint8_t slot, enum ev_kind kind)
{
    struct event event = event_of(shell, node, kind);
    flow_step(shell, node, slot, &event);
}

/* ---- Clients ---- */

bool shell_check(struct shell *shell, uint8_t node, uint8_t op)
{
    struct model_node *n = &shell->world->nodes[node];
    struct slot *slot = free_slot(n);
    if (slot == NULL) {
        return false;
    }
    uint8_t index = (uint8_t)slot_ref_index(slot->ref);
    n->op_of[index - 1] = (uint8_t)(op + 1);
    shell->world->ops[op].phase = PHASE_CHECKING;
    shell_flow(shell, node, index, EV_READ);
    return true;
}

static void run_read(struct shell *shell, uint8_t number, uint8_t node)
{
    struct model_op *op = &shell->world->ops[number];
    op->out = shell->world->nodes[node].value;
    if (!shell->model->setup->async) {
        op->phase = PHASE_OK;
    } else if (!shell_check(shell, node, number)) {
        op->phase = PHASE_AGAIN;
    }
}

void shell_run(struct shell *shell, uint8_t number, uint8_t node)
{
    struct model_world *w = shell->world;
    struct model_op *op = &w->ops[number];
    uint8_t type = shell->model->setup->ops[number];
    HK_ASSERT(world_readable(w, node));
    if (op->phase == PHASE_WAITING) {
        op->node = node;
        for (uint32_t i = 0; i < MODEL_OPS; i++) {
            op->before |= (uint8_t)(w->ops[i].phase == PHASE_OK ? 1u << i : 0u);
        }
    }
    if (type == TYPE_READ) {
        run_read(shell, number, node);
        return;
    }
    if (type == TYPE_DELETE && w->nodes[node].meta.ts == 0) {
        op->phase = PHASE_OK; /* nothing to delete, not even a tombstone is written */
        return;
    }
    op->phase = PHASE_ISSUED;
    op->value = (uint8_t)(VALUE_START + 1 + number * MODEL_TRIES + op->tries);
    op->out = type == TYPE_RMW ? w->nodes[node].value : VALUE_NONE;
    struct event event = event_of(shell, node, EV_UPDATE);
    event.rmw = type == TYPE_RMW;
    key_step(shell, node, &event, NULL, op->value, (uint8_t)(number + 1));
}

/* ---- Messages out of the network ---- */

static void route(struct shell *shell, const struct model_message *m)
{
    struct model_world *w = shell->world;
    const struct model_view *view = world_view_of(w, m->to);
    bool member = nodeset_has(view->live, m->from) && view->born[m->from] == m->from_born;
    struct msg msg = message_large(shell, m);
    struct event event = event_of(shell, m->to, EV_MSG);
    event.from = member ? m->from : NODE_NONE;
    event.msg = &msg;
    switch (hermes_ops.route(&msg)) {
    case ROUTE_KEY:
        key_step(shell, m->to, &event, NULL, m->value, 0);
        break;
    case ROUTE_WORKER:
    case ROUTE_ANY:
        flow_step(shell, m->to, 0, &event);
        break;
    case ROUTE_SLOT: {
        const struct slot *slot = &w->nodes[m->to].slots[m->slot - 1];
        if (slot->kind != FLOW_FREE && slot->gen == m->gen) {
            flow_step(shell, m->to, m->slot, &event);
        }
        break;
    }
    }
}

void shell_deliver(struct shell *shell, const struct model_message *m)
{
    struct model_node *to = &shell->world->nodes[m->to];
    bool chunk = m->kind == HERMES_ITEM || m->kind == MESSAGE_EMPTY;
    if (to->born != m->to_born) {
        return;
    }
    if (chunk && (to->copied || m->epoch != to->epoch ||
                  nodeset_has(world_view_of(shell->world, m->to)->operational, m->to))) {
        return; /* not awaited */
    }
    if (m->kind != MESSAGE_EMPTY) {
        route(shell, m);
    }
    to->copied |= (uint8_t)chunk;
}

/* ---- Views ---- */

/* Flows learn of the view in the order of their issue: a key has one pending update, and that of
 * the rest does not matter. */
void shell_adopt(struct shell *shell, uint8_t node, uint8_t epoch)
{
    struct model_node *n = &shell->world->nodes[node];
    n->epoch = epoch;
    n->confirms = 1;
    for (uint8_t i = 1; i <= MODEL_SLOTS; i++) {
        if (n->slots[i - 1].kind != FLOW_FREE) {
            shell_flow(shell, node, i, EV_VIEW);
        }
    }
    judge_note(shell);
}

void shell_chunk(struct shell *shell, uint8_t donor, uint8_t joiner)
{
    const struct model_world *w = shell->world;
    const struct model_node *n = &w->nodes[donor];
    struct model_message m = {.kind = MESSAGE_EMPTY,
                              .from = donor,
                              .to = joiner,
                              .from_born = n->born,
                              .to_born = w->nodes[joiner].born,
                              .epoch = n->epoch};
    if (n->meta.ts != 0) {
        struct msg item = {.ts = n->meta.ts};
        hermes_ops.item(&n->meta, &item);
        m.kind = item.kind;
        m.flags = item.flags;
        m.ts = ts_small(n->meta.ts);
        m.value = n->value;
    }
    world_send(shell, &m);
}
