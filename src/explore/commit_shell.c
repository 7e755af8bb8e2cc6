/* The node around the machine of reliable commit, as far as two objects need it
 * (src/node/txn_pipe.c): events, and what becomes of effects. */
#include <string.h>

#include "base/assert.h"
#include "explore/commit_model.h"

uint8_t commits_coordinator(uint8_t pipe)
{
    return pipe < COMMITS_OWN_PIPES ? 0 : (uint8_t)(pipe - COMMITS_OWN_PIPES);
}

static const struct view *build_view(const struct commits_shell *shell, uint8_t epoch)
{
    const struct commits_world *w = shell->world;
    struct view *view = &shell->model->work->view;
    memset(view, 0, sizeof *view);
    view->epoch = epoch;
    view->live = w->live[epoch - 1];
    view->operational = view->live;
    view->next_cid = shell->model->setup->nodes + 1u;
    for (uint8_t i = 0; i < shell->model->setup->nodes; i++) {
        view->configured |= nodeset_of(i);
        if (nodeset_has(view->live, i)) {
            view->members[i] = (struct view_member){.nonce = i + 1u,
                                                    .admitted = 1,
                                                    .cid_first = i + 1u,
                                                    .cid_count = 1,
                                                    .role = VIEW_ROLE_OPERATIONAL};
        }
    }
    return view;
}

static struct commit_context context_of(const struct commits_shell *shell, uint8_t node)
{
    return (struct commit_context){.view = build_view(shell, shell->world->nodes[node].epoch),
                                   .config = &shell->model->config,
                                   .self = node};
}

/* ---- Pipes ---- */

static void unpack(const struct commits_pipe *p, uint8_t pipe, struct commit_pipe *out)
{
    struct commit_name name = {.pipe = pipe, .admitted = 1, .node = commits_coordinator(pipe)};
    commit_pipe_init(out, &name);
    if (p->known == 0) {
        return;
    }
    out->next = p->next;
    out->first = p->first;
    out->unsent = p->unsent;
    out->common = p->common == UINT8_MAX ? ~(nodeset)0 : p->common;
    out->epoch = p->epoch;
    out->dead = p->dead != 0;
    for (uint32_t i = 0; i < COMMITS_NODES; i++) {
        out->acked[i] = p->acked[i];
    }
    for (uint32_t i = 0; i < COMMITS_SLOTS; i++) {
        out->slots[i + 1] = (struct commit_slot){
            .followers = p->followers[i], .state = p->state[i], .stored = p->stored[i] != 0};
    }
}

/* A pipe that is forgotten, or as new, is all zeros. */
static void pack(const struct commit_pipe *pipe, bool own, struct commits_pipe *out)
{
    if (!own && commit_pipe_empty(pipe) && pipe->dead) {
        memset(out, 0, sizeof *out);
        return;
    }
    out->known = 1;
    out->next = (uint8_t)pipe->next;
    out->first = (uint8_t)pipe->first;
    out->unsent = (uint8_t)pipe->unsent;
    out->common = (uint8_t)(pipe->common & UINT8_MAX);
    out->epoch = (uint8_t)pipe->epoch;
    out->dead = pipe->dead;
    for (uint32_t i = 0; i < COMMITS_NODES; i++) {
        out->acked[i] = (uint8_t)pipe->acked[i];
    }
    for (uint32_t i = 0; i < COMMITS_SLOTS; i++) {
        const struct commit_slot *slot = &pipe->slots[i + 1];
        bool gone = i + 1 < pipe->first || i + 1 >= pipe->next;
        out->followers[i] = gone ? 0 : (uint8_t)slot->followers;
        out->state[i] = gone ? 0 : slot->state;
        out->stored[i] = gone ? 0 : slot->stored;
        out->objects[i] = gone ? 0 : out->objects[i];
    }
}

/* ---- Effects ---- */

static struct commits_tx *tx_of(struct commits_world *w, uint8_t pipe, uint64_t slot)
{
    for (uint32_t i = 0; i < COMMITS_TXS; i++) {
        if (w->txs[i].begun && w->txs[i].pipe == pipe && w->txs[i].slot == slot) {
            return &w->txs[i];
        }
    }
    HK_ASSERT(false && "no such slot");
    return NULL;
}

static int compare(const struct commits_message *a, const struct commits_message *b)
{
    return memcmp(a, b, 3); /* receiver, sender, pipe */
}

/* Behind all of its lane. */
static void post(struct commits_shell *shell, const struct commits_message *m)
{
    struct commits_world *w = shell->world;
    if (m->to >= shell->model->setup->nodes || m->to == m->from) {
        shell->broken = "a message to nobody";
        return;
    }
    if (!commits_alive(w, m->to)) {
        return;
    }
    if (w->nmessages == COMMITS_MESSAGES) {
        shell->broken = "too many messages: the model has no room";
        return;
    }
    uint8_t at = w->nmessages++;
    for (; at > 0 && compare(&w->messages[at - 1], m) > 0; at--) {
        w->messages[at] = w->messages[at - 1];
    }
    w->messages[at] = *m;
}

static void send(struct commits_shell *shell, uint8_t node, uint8_t pipe, enum commit_kind kind,
                 nodeset to, uint64_t slot)
{
    const struct commits_node *n = &shell->world->nodes[node];
    struct commits_message m = {.from = node,
                                .pipe = pipe,
                                .kind = (uint8_t)kind,
                                .epoch = n->epoch,
                                .slot = (uint8_t)slot};
    if (kind == COMMIT_MSG_INV) {
        struct commit_inv inv = commit_inv_of(&shell->model->work->pipe, slot);
        m.first = (uint8_t)inv.first;
        m.followers = (uint8_t)inv.followers;
        m.objects = n->pipes[pipe].objects[slot - 1];
    }
    for (; to != 0; to &= to - 1) {
        m.to = nodeset_first(to);
        post(shell, &m);
    }
}

/* R-INV's objects. */
static void apply(struct commits_shell *shell, uint8_t node, const struct commits_message *m)
{
    struct commits_node *n = &shell->world->nodes[node];
    struct commits_tx *tx = tx_of(shell->world, m->pipe, m->slot);
    uint8_t kept = 0;
    for (uint8_t i = 0; i < COMMITS_OBJECTS; i++) {
        struct commits_object *o = &n->objects[i];
        if ((m->objects >> i & 1) == 0) {
            continue;
        }
        bool whole = commits_rule(shell->model, COMMIT_RULE_WHOLE);
        kept |= (uint8_t)(o->have || whole ? 1u << i : 0);
        if (o->have && commit_takes(&shell->model->config, o->version, tx->wrote[i])) {
            o->version = tx->wrote[i];
            o->state = ZEUS_INVALID;
            o->tx = (uint8_t)(1 + (tx - shell->world->txs));
        }
    }
    n->pipes[m->pipe].objects[m->slot - 1] = kept;
}

static void finish(struct commits_shell *shell, uint8_t node, uint8_t pipe, uint64_t slot)
{
    struct commits_node *n = &shell->world->nodes[node];
    struct commits_tx *tx = tx_of(shell->world, pipe, slot);
    for (uint8_t i = 0; i < COMMITS_OBJECTS; i++) {
        struct commits_object *o = &n->objects[i];
        if (o->have && tx->wrote[i] != 0 &&
            commit_validates(&shell->model->config, o->version, tx->wrote[i])) {
            o->state = ZEUS_VALID;
        }
    }
    tx->done = 1;
    if (tx->node == node) {
        tx->own_done = 1;
        tx->told = 1;
    }
}

static void carry_out(struct commits_shell *shell, uint8_t node, uint8_t pipe,
                      const struct commit_effect *e, const struct commits_message *m)
{
    switch ((enum commit_fx)e->kind) {
    case COMMIT_FX_INV:
        send(shell, node, pipe, COMMIT_MSG_INV, e->to, e->slot);
        break;
    case COMMIT_FX_ACK:
        send(shell, node, pipe, COMMIT_MSG_ACK, e->to, e->slot);
        break;
    case COMMIT_FX_VAL:
        send(shell, node, pipe, COMMIT_MSG_VAL, e->to, e->slot);
        break;
    case COMMIT_FX_DONE:
    case COMMIT_FX_DROP:
        finish(shell, node, pipe, e->slot);
        break;
    case COMMIT_FX_APPLY:
        apply(shell, node, m);
        break;
    case COMMIT_FX_BEHIND:
        break;
    }
}

static void run(struct commits_shell *shell, uint8_t node, uint8_t pipe,
                const struct commits_message *m)
{
    struct commits_work *work = shell->model->work;
    for (uint32_t i = 0; i < work->fx.n; i++) {
        carry_out(shell, node, pipe, &work->fx.e[i], m);
    }
    struct commit_context cx = context_of(shell, node);
    if (shell->model->config.rules_off == 0) { /* else the judge shall see it */
        commit_check(&work->pipe, &cx);
    }
    pack(&work->pipe, commits_coordinator(pipe) == node, &shell->world->nodes[node].pipes[pipe]);
}

/* ---- Events ---- */

static struct commit_pipe *load(struct commits_shell *shell, uint8_t node, uint8_t pipe)
{
    struct commits_work *work = shell->model->work;
    work->fx.n = 0;
    unpack(&shell->world->nodes[node].pipes[pipe], pipe, &work->pipe);
    return &work->pipe;
}

void commits_shell_deliver(struct commits_shell *shell, const struct commits_message *m)
{
    struct commits_work *work = shell->model->work;
    struct commits_node *n = &shell->world->nodes[m->to];
    bool alive = m->epoch == n->epoch;
    bool known = n->pipes[m->pipe].known != 0;
    struct commit_pipe *pipe = load(shell, m->to, m->pipe);
    struct commit_context cx = context_of(shell, m->to);
    if (m->kind == COMMIT_MSG_INV) {
        struct commit_inv inv = {.slot = m->slot, .first = m->first, .followers = m->followers};
        if (!commit_inv(pipe, &cx, m->from, &inv, alive, &work->fx)) {
            return;
        }
    } else if (m->kind == COMMIT_MSG_ACK && !known) {
        if (alive && commits_rule(shell->model, COMMIT_RULE_AGAIN)) {
            send(shell, m->to, m->pipe, COMMIT_MSG_VAL, nodeset_of(m->from), m->slot); /* C11 */
        }
        return;
    } else if (m->kind == COMMIT_MSG_ACK) {
        commit_ack(pipe, &cx, m->from, m->slot, alive, &work->fx);
    } else if (known) {
        commit_val(pipe, &cx, m->slot, alive, &work->fx);
    } else {
        return;
    }
    run(shell, m->to, m->pipe, m);
}

void commits_shell_begin(struct commits_shell *shell, uint8_t tx, uint8_t followers)
{
    struct commits_tx *t = &shell->world->txs[tx];
    struct commits_work *work = shell->model->work;
    struct commit_pipe *pipe = load(shell, t->node, t->pipe);
    struct commit_context cx = context_of(shell, t->node);
    uint8_t objects = 0;
    t->slot = (uint8_t)pipe->next;
    HK_ASSERT(t->slot <= COMMITS_SLOTS);
    for (uint8_t i = 0; i < COMMITS_OBJECTS; i++) {
        objects |= (uint8_t)(t->wrote[i] != 0 ? 1u << i : 0);
    }
    shell->world->nodes[t->node].pipes[t->pipe].objects[t->slot - 1] = objects;
    (void)commit_begin(pipe, &cx, followers, &work->fx);
    run(shell, t->node, t->pipe, NULL);
}

void commits_shell_view(struct commits_shell *shell, uint8_t node)
{
    for (uint8_t pipe = 0; pipe < COMMITS_PIPES; pipe++) {
        const struct commits_pipe *p = &shell->world->nodes[node].pipes[pipe];
        bool own = commits_coordinator(pipe) == node;
        if (p->known == 0 || (own && p->first == p->next)) {
            continue;
        }
        struct commit_context cx = context_of(shell, node);
        commit_view(load(shell, node, pipe), &cx, &shell->model->work->fx);
        run(shell, node, pipe, NULL);
    }
}
