/* The node around the machine of ownership, as far as one object needs it (src/node/own_step.c):
 * events, and what becomes of effects. */
#include <string.h>

#include "base/assert.h"
#include "explore/own_model.h"

#define NOW 1u
#define LATER 2u /* any time that is not over yet */

/* ---- Events ---- */

const struct view *owns_view(const struct owns_model *model, const struct owns_world *w,
                             uint8_t epoch)
{
    struct view *view = &model->work->view;
    memset(view, 0, sizeof *view);
    view->epoch = epoch;
    view->live = w->live[epoch - 1];
    view->operational = view->live;
    view->next_cid = model->setup->nodes + 1u;
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
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

static struct own_event event_of(struct owns_shell *shell, uint8_t node, enum own_ev kind)
{
    struct owns_node *n = &shell->world->nodes[node];
    const struct view *view = owns_view(shell->model, shell->world, n->epoch);
    return (struct own_event){.kind = kind,
                              .from = NODE_NONE,
                              .self = node,
                              .recovered = n->hears >= 1,
                              .settled = n->hears >= 2,
                              .now_us = kind == OWN_EV_TIMER ? LATER : NOW,
                              .random = shell->random,
                              .view = view,
                              .directory = shell->model->setup->directory,
                              .drivers = shell->model->setup->directory & view->operational,
                              .data = {.version = n->version,
                                       .have = n->have,
                                       .busy = n->state == ZEUS_WRITE,
                                       .tombstone = n->have && n->value == OWNS_VALUE_NEW},
                              .clock = &n->clock,
                              .forgot = &n->forgot,
                              .seq = &n->seq,
                              .config = &shell->model->config};
}

/* ---- Messages ---- */

static struct msg message_large(const struct owns_message *m, uint8_t bytes[OWN_BODY_BYTES + 1])
{
    struct own_body body;
    struct msg msg = {.kind = m->kind,
                      .epoch = m->epoch,
                      .ts = m->ts,
                      .arg = m->clock,
                      .key = bytes_of("k", 1),
                      .value = bytes_of(m->body, OWN_BODY_BYTES)};
    own_body_decode(&msg, &body);
    memcpy(bytes, m->body, OWN_BODY_BYTES);
    bytes[OWN_BODY_BYTES] = m->value;
    bool valued = body.value && m->value != OWNS_VALUE_NEW;
    msg.value = bytes_of(bytes, OWN_BODY_BYTES + (valued ? 1u : 0u));
    return msg;
}

/* Behind all of its lane. */
static void post(struct owns_shell *shell, const struct owns_message *m)
{
    struct owns_world *w = shell->world;
    uint8_t bytes[OWN_BODY_BYTES + 1];
    struct msg large = message_large(m, bytes);
    if (m->to >= shell->model->setup->nodes || own_msg_invalid(&large) != NULL) {
        shell->broken = "a message that no correct member sends";
        return;
    }
    if (!owns_alive(w, m->to)) {
        return;
    }
    if (w->nmessages == OWNS_MESSAGES) {
        shell->broken = "too many messages: the model has no room";
        return;
    }
    uint8_t at = w->nmessages++;
    for (; at > 0; at--) {
        const struct owns_message *before = &w->messages[at - 1];
        if (before->to < m->to || (before->to == m->to && before->from <= m->from)) {
            break;
        }
        w->messages[at] = *before;
    }
    w->messages[at] = *m;
}

/* A request that is carried out twice has two timestamps. */
static void note_won(struct owns_shell *shell, const struct own_effect *e)
{
    struct owns_world *w = shell->world;
    for (uint8_t i = 0; i < OWNS_WANTS; i++) {
        const struct owns_want *want = &shell->model->setup->wants[i];
        if (e->code == OWN_MSG_VAL && e->body.request.type != OWN_NONE && w->seqs[i] != 0 &&
            e->body.request.requester == want->node && e->body.request.seq == w->seqs[i]) {
            if (w->won[i] != 0 && w->won[i] != e->ts) {
                shell->broken = "a request is carried out twice";
            }
            w->won[i] = e->ts;
        }
    }
}

static void send_effect(struct owns_shell *shell, uint8_t node, const struct own_effect *e)
{
    struct owns_node *n = &shell->world->nodes[node];
    struct own_body body = e->body;
    struct owns_message m = {
        .ts = e->ts, .clock = n->clock, .from = node, .kind = e->code, .epoch = n->epoch};
    if (body.value) {
        bool kept = n->kept_version != 0 && n->kept_version == body.version;
        if (!kept && !n->have) {
            shell->broken = "a value is sent by who has none";
            return;
        }
        m.value = kept ? n->kept : n->value;
        body.vflags = m.value == OWNS_VALUE_NEW ? KEY_TOMBSTONE : 0;
    }
    own_body_encode(&body, m.body);
    note_won(shell, e);
    for (nodeset rest = e->to; rest != 0; rest &= rest - 1) {
        m.to = nodeset_first(rest);
        post(shell, &m);
    }
}

/* ---- Effects ---- */

static void install(struct owns_node *n, uint64_t ts)
{
    if (n->have && n->version >= ts) {
        return;
    }
    n->value = n->kept_version == ts ? n->kept : OWNS_VALUE_NEW;
    n->version = ts;
    n->have = true;
    n->state = ZEUS_VALID;
}

static void drop(struct owns_node *n)
{
    n->have = false;
    n->version = 0;
    n->value = 0;
    n->state = 0;
    n->owned = false;
    n->shut = false;
}

static void want_ends(struct owns_shell *shell, uint8_t node)
{
    for (uint8_t i = 0; i < OWNS_WANTS; i++) {
        if (shell->model->setup->wants[i].node == node && shell->world->phase[i] == WANT_OPEN) {
            shell->world->phase[i] = WANT_ENDED;
        }
    }
}

static void carry_out(struct owns_shell *shell, uint8_t node, const struct own_effect *e,
                      const struct owns_message *m)
{
    struct owns_node *n = &shell->world->nodes[node];
    switch ((enum own_fx)e->kind) {
    case OWN_FX_SEND:
        send_effect(shell, node, e);
        break;
    case OWN_FX_REVOKE:
        n->owned = false;
        break;
    case OWN_FX_GRANT:
        n->owned = e->code == OWN_OWNER;
        n->shut = false;
        break;
    case OWN_FX_SHUT:
    case OWN_FX_OPEN:
        n->shut = n->have && e->kind == OWN_FX_SHUT;
        break;
    case OWN_FX_KEEP:
        n->kept = m->value;
        n->kept_version = e->ts;
        break;
    case OWN_FX_INSTALL:
        install(n, e->ts);
        break;
    case OWN_FX_DROP:
        drop(n);
        break;
    case OWN_FX_DONE:
        want_ends(shell, node);
        break;
    case OWN_FX_BEHIND:
    case OWN_FX_COUNT:
        break;
    }
}

/* How long a wait still is makes no difference, only that it is not over. */
static void forget_time(struct owns_node *n)
{
    struct own_busy *b = &n->busy;
    b->due_us = b->due_us == 0 ? 0 : LATER;
    b->mine_due_us = b->mine_due_us == 0 ? 0 : LATER;
    b->replay_due_us = b->replay_due_us == 0 ? 0 : LATER;
    if (own_idle(b)) {
        memset(b, 0, sizeof *b);
        n->kept = 0;
        n->kept_version = 0;
    }
}

static void step(struct owns_shell *shell, uint8_t node, struct own_event *event,
                 const struct owns_message *m)
{
    struct owns_node *n = &shell->world->nodes[node];
    struct own_effects fx;
    own_step(&n->entry, &n->busy, event, &fx);
    for (uint32_t i = 0; i < fx.n; i++) {
        carry_out(shell, node, &fx.e[i], m);
    }
    forget_time(n);
    struct own_data data = {.version = n->version, .have = n->have};
    if (shell->model->config.rules_off == 0) { /* else the judge shall see it */
        own_check(&n->entry, &n->busy, &data, event->view, node);
    }
    owns_note(shell);
}

/* What a node says to itself it hears at once. */
static void hear_self(struct owns_shell *shell, uint8_t node)
{
    struct owns_world *w = shell->world;
    for (uint8_t i = owns_next(w, node, node); i < OWNS_MESSAGES; i = owns_next(w, node, node)) {
        struct owns_message m = w->messages[i];
        w->nmessages--;
        memmove(&w->messages[i], &w->messages[i + 1],
                (size_t)(w->nmessages - i) * sizeof w->messages[0]);
        owns_shell_deliver(shell, &m);
    }
}

void owns_shell_deliver(struct owns_shell *shell, const struct owns_message *m)
{
    uint8_t bytes[OWN_BODY_BYTES + 1];
    struct msg msg = message_large(m, bytes);
    struct own_event event = event_of(shell, m->to, OWN_EV_MSG);
    event.from = m->from;
    event.msg = &msg;
    event.alive = m->epoch == shell->world->nodes[m->to].epoch;
    step(shell, m->to, &event, m);
    hear_self(shell, m->to);
}

void owns_shell_want(struct owns_shell *shell, uint8_t want)
{
    const struct owns_want *asked = &shell->model->setup->wants[want];
    struct own_event event = event_of(shell, asked->node, OWN_EV_WANT);
    event.want = (struct own_request){.type = asked->type,
                                      .target = asked->type == OWN_TRIM ? asked->target : NODE_NONE,
                                      .degree = asked->type == OWN_DEGREE ? asked->target : 0,
                                      .create = asked->type == OWN_OWNER};
    shell->world->phase[want] = WANT_OPEN;
    uint32_t before = shell->world->nodes[asked->node].seq;
    step(shell, asked->node, &event, NULL);
    if (shell->world->nodes[asked->node].seq != before) {
        shell->world->seqs[want] = shell->world->nodes[asked->node].seq;
    }
    hear_self(shell, asked->node);
}

void owns_shell_event(struct owns_shell *shell, uint8_t node, enum own_ev kind)
{
    struct own_event event = event_of(shell, node, kind);
    step(shell, node, &event, NULL);
    hear_self(shell, node);
}
