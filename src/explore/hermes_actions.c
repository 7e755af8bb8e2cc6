/* All that can happen next in a world. Messages are never used up: one that was delivered can be
 * delivered again, and one that never is was lost. A step that changes nothing is left out. */
#include "explore/hermes_model.h"

#include <string.h>

struct expansion {
    const struct hermes_model *model;
    const struct model_world *world;
    struct search *search;
    bool any; /* something could happen */
};

static uint64_t number_of(enum action_kind kind, uint8_t a, uint8_t b)
{
    return (uint64_t)kind << 16 | (uint64_t)a << 8 | b;
}

struct action action_of(uint64_t number)
{
    return (struct action){
        .kind = (uint8_t)(number >> 16), .a = (uint8_t)(number >> 8), .b = (uint8_t)number};
}

static uint32_t replays_in(const struct model_world *w)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < MODEL_NODES; i++) {
        for (uint32_t k = 0; k < MODEL_SLOTS; k++) {
            n += w->nodes[i].slots[k].kind == FLOW_REPLAY;
        }
    }
    return n;
}

/* The shell on a copy of the world, for one step. */
static struct shell begin_step(const struct expansion *x)
{
    struct model_world *next = &x->model->work->next;
    *next = *x->world;
    return (struct shell){.model = x->model, .world = next};
}

static void end_step(struct expansion *x, struct shell *shell, uint64_t number)
{
    struct model_world *next = shell->world;
    uint8_t replays_max = x->model->setup->replays;
    judge_note(shell);
    if (replays_max != MODEL_UNLIMITED && replays_in(next) > replays_in(x->world)) {
        if (next->replays == replays_max) {
            return;
        }
        next->replays++;
    }
    world_normalise(x->model, next);
    if (shell->broken == NULL && memcmp(next, x->world, sizeof *next) == 0) {
        return;
    }
    x->any = true;
    search_emit(x->search, next, number, shell->broken);
}

/* ---- The network ---- */

static void deliver_all(struct expansion *x)
{
    for (uint32_t i = 0; i < x->world->nmessages; i++) {
        struct shell shell = begin_step(x);
        shell_deliver(&shell, &x->world->messages[i]);
        end_step(x, &shell, number_of(ACTION_DELIVER, (uint8_t)i, 0));
    }
}

/* ---- Clients ---- */

static bool may_run(const struct expansion *x, uint8_t node)
{
    return world_serves(x->model, x->world, node) && world_readable(x->world, node) &&
           shell_has_slot(x->world, node);
}

/* Operations of the same type that may start at the same nodes begin in order. */
static bool is_next(const struct expansion *x, uint8_t op)
{
    const struct hermes_setup *setup = x->model->setup;
    for (uint32_t i = 0; i < op; i++) {
        if (setup->ops[i] == setup->ops[op] && setup->op_nodes[i] == setup->op_nodes[op] &&
            x->world->ops[i].phase == PHASE_WAITING) {
            return false;
        }
    }
    return setup->ops[op] != TYPE_NONE && x->world->ops[op].phase == PHASE_WAITING;
}

static void begin_one(struct expansion *x, uint8_t op)
{
    const struct hermes_setup *setup = x->model->setup;
    for (uint8_t node = 0; node < setup->nodes; node++) {
        bool allowed = setup->op_nodes[op] == 0 || nodeset_has(setup->op_nodes[op], node);
        if (allowed && may_run(x, node)) {
            struct shell shell = begin_step(x);
            shell_run(&shell, op, node);
            end_step(x, &shell, number_of(ACTION_BEGIN, op, node));
        }
    }
}

static void run_operations(struct expansion *x)
{
    for (uint8_t i = 0; i < MODEL_OPS; i++) {
        const struct model_op *op = &x->world->ops[i];
        if (is_next(x, i)) {
            begin_one(x, i);
        } else if (op->phase == PHASE_AGAIN && may_run(x, op->node)) {
            struct shell shell = begin_step(x);
            shell_run(&shell, i, op->node);
            end_step(x, &shell, number_of(ACTION_AGAIN, i, 0));
        } else if (op->phase == PHASE_CONFIRM && shell_has_slot(x->world, op->node)) {
            struct shell shell = begin_step(x);
            (void)shell_check(&shell, op->node, i);
            end_step(x, &shell, number_of(ACTION_CONFIRM, i, 0));
        }
    }
}

/* ---- Time ---- */

static void run_timers(struct expansion *x, uint8_t node)
{
    const struct model_world *w = x->world;
    for (uint8_t k = 1; k <= MODEL_SLOTS; k++) {
        if (w->nodes[node].slots[k - 1].kind != FLOW_FREE) {
            struct shell shell = begin_step(x);
            shell_flow(&shell, node, k, EV_TIMER);
            end_step(x, &shell, number_of(ACTION_TIMER, node, k));
        }
    }
}

static void run_waiting(struct expansion *x, uint8_t node)
{
    const struct model_world *w = x->world;
    bool operational = nodeset_has(world_view_of(w, node)->operational, node);
    if (operational && !world_readable(w, node)) {
        struct shell shell = begin_step(x);
        shell_key(&shell, node, EV_TIMER);
        end_step(x, &shell, number_of(ACTION_WAITED, node, 0));
    }
    if (!world_readable(w, node) && world_serves(x->model, w, node)) {
        struct shell shell = begin_step(x);
        shell_key(&shell, node, EV_READ);
        end_step(x, &shell, number_of(ACTION_PARK, node, 0));
    }
    if (operational && w->nodes[node].meta.ts != 0) {
        struct shell shell = begin_step(x);
        shell_key(&shell, node, EV_SWEEP);
        end_step(x, &shell, number_of(ACTION_SWEEP, node, 0));
    }
}

/* A grace passes: what is in the network is lost, but for what already waits in the queue of a
 * process that sleeps and was dropped, and chunks, which may be long. */
static void pass_grace(struct expansion *x)
{
    if (x->world->ticks == x->model->setup->ticks) {
        return;
    }
    struct shell shell = begin_step(x);
    struct model_world *w = shell.world;
    const struct model_view *newest = world_newest(w);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < w->nmessages; i++) {
        const struct model_message *m = &w->messages[i];
        bool chunk = m->kind == HERMES_ITEM || m->kind == MESSAGE_EMPTY;
        if (chunk || !nodeset_has(newest->live, m->to) || newest->born[m->to] != m->to_born) {
            w->messages[kept++] = *m;
        }
    }
    memset(&w->messages[kept], 0, (w->nmessages - kept) * sizeof w->messages[0]);
    w->nmessages = (uint16_t)kept;
    w->ticks++;
    end_step(x, &shell, number_of(ACTION_TICK, 0, 0));
}

/* ---- Views ---- */

/* Without leases a view needs members that have stopped confirming the one before it. */
static bool may_decide(const struct expansion *x)
{
    const struct model_world *w = x->world;
    uint32_t accepted = 0;
    if (!x->model->setup->async) {
        return true;
    }
    for (uint8_t i = 0; i < x->model->setup->nodes; i++) {
        accepted +=
            w->nodes[i].born != 0 && w->nodes[i].epoch == w->nviews && w->nodes[i].confirms == 0;
    }
    return 2 * accepted > x->model->setup->nodes;
}

static bool may_drop(const struct expansion *x, uint8_t node)
{
    const struct hermes_setup *setup = x->model->setup;
    const struct model_view *newest = world_newest(x->world);
    uint32_t least = setup->live_min == 0 ? setup->nodes / 2u + 1 : setup->live_min;
    nodeset operational = newest->operational & ~nodeset_of(node);
    if (setup->drop_nodes != 0 && !nodeset_has(setup->drop_nodes, node)) {
        return false;
    }
    return x->world->drops < setup->drops && nodeset_has(newest->live, node) && operational != 0 &&
           nodeset_count(newest->live) > least;
}

static void drop(struct expansion *x, uint8_t node)
{
    struct shell shell = begin_step(x);
    struct model_world *w = shell.world;
    struct model_view *view = world_next_view(w);
    if (view == NULL) {
        return;
    }
    view->live &= (uint8_t)~nodeset_of(node);
    view->operational &= (uint8_t)~nodeset_of(node);
    view->born[node] = 0;
    view->cid[node] = 0;
    w->drops++;
    if (!x->model->setup->zombies) {
        world_kill(w, node);
    } else if (!x->model->setup->async) {
        /* What it would have tried again it can no longer begin. */
        for (uint32_t i = 0; i < MODEL_OPS; i++) {
            if (w->ops[i].phase == PHASE_AGAIN && w->ops[i].node == node) {
                w->ops[i].phase = PHASE_UNKNOWN;
            }
        }
    }
    end_step(x, &shell, number_of(ACTION_DROP, node, 0));
}

static uint8_t next_cid(const struct model_world *w)
{
    uint8_t most = 0;
    for (uint32_t e = 0; e < w->nviews; e++) {
        for (uint32_t i = 0; i < MODEL_NODES; i++) {
            most = w->views[e].cid[i] > most ? w->views[e].cid[i] : most;
        }
    }
    return (uint8_t)(most + 1);
}

static void admit(struct expansion *x, uint8_t node)
{
    struct shell shell = begin_step(x);
    struct model_world *w = shell.world;
    uint8_t cid = next_cid(w);
    struct model_view *view = world_next_view(w);
    if (view == NULL) {
        return;
    }
    view->live |= (uint8_t)nodeset_of(node);
    view->born[node] = w->nviews;
    view->cid[node] = cid;
    w->admits++;
    world_kill(w, node);
    world_new_process(x->model, w, node);
    end_step(x, &shell, number_of(ACTION_ADMIT, node, 0));
}

static void promote(struct expansion *x, uint8_t node)
{
    struct shell shell = begin_step(x);
    struct model_view *view = world_next_view(shell.world);
    if (view == NULL) {
        return;
    }
    view->operational |= (uint8_t)nodeset_of(node);
    end_step(x, &shell, number_of(ACTION_PROMOTE, node, 0));
}

static void decide(struct expansion *x)
{
    const struct model_world *w = x->world;
    const struct model_view *newest = world_newest(w);
    if (!may_decide(x)) {
        return;
    }
    for (uint8_t i = 0; i < x->model->setup->nodes; i++) {
        if (may_drop(x, i)) {
            drop(x, i);
        }
        if (!nodeset_has(newest->live, i) && w->admits < x->model->setup->admits) {
            admit(x, i);
        }
        bool shadow = nodeset_has(newest->live & (nodeset)~newest->operational, i);
        if (shadow && w->nodes[i].born == newest->born[i] && w->nodes[i].copied) {
            promote(x, i);
        }
    }
}

static void adopt(struct expansion *x, uint8_t node)
{
    const struct model_world *w = x->world;
    const struct model_node *n = &w->nodes[node];
    for (uint8_t epoch = (uint8_t)(n->epoch + 1); epoch <= w->nviews; epoch++) {
        const struct model_view *view = &w->views[epoch - 1];
        if (nodeset_has(view->live, node) && view->born[node] == n->born) {
            struct shell shell = begin_step(x);
            shell_adopt(&shell, node, epoch);
            end_step(x, &shell, number_of(ACTION_ADOPT, node, epoch));
        }
    }
}

/* An operational member answers a shadow of its own epoch. */
static void copy_to(struct expansion *x, uint8_t joiner)
{
    const struct model_world *w = x->world;
    const struct model_node *n = &w->nodes[joiner];
    if (nodeset_has(world_view_of(w, joiner)->operational, joiner) || n->copied) {
        return;
    }
    for (uint8_t donor = 0; donor < x->model->setup->nodes; donor++) {
        if (w->nodes[donor].born != 0 && w->nodes[donor].epoch == n->epoch &&
            nodeset_has(world_view_of(w, donor)->operational, donor)) {
            struct shell shell = begin_step(x);
            shell_chunk(&shell, donor, joiner);
            end_step(x, &shell, number_of(ACTION_CHUNK, donor, joiner));
        }
    }
}

static void accept_next(struct expansion *x, uint8_t node)
{
    const struct hermes_setup *setup = x->model->setup;
    const struct model_world *w = x->world;
    bool more = w->drops < setup->drops || w->admits < setup->admits;
    if (setup->async && more && w->nodes[node].confirms != 0 && w->nodes[node].epoch == w->nviews) {
        struct shell shell = begin_step(x);
        shell.world->nodes[node].confirms = 0;
        end_step(x, &shell, number_of(ACTION_ACCEPT, node, 0));
    }
}

/* Whether a state in which nothing can happen has to be a good end: no bound forbids a replay, and
 * nobody waits who was dropped and does not know. */
static bool must_settle(const struct expansion *x)
{
    const struct hermes_setup *setup = x->model->setup;
    return !setup->zombies &&
           (setup->replays == MODEL_UNLIMITED || x->world->replays < setup->replays);
}

void hermes_expand(const void *self, const void *state, struct search *search)
{
    const struct hermes_model *model = self;
    struct expansion x = {.model = model, .world = state, .search = search};
    model->work->built = 0;
    deliver_all(&x);
    run_operations(&x);
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
        if (x.world->nodes[i].born != 0) {
            run_timers(&x, i);
            run_waiting(&x, i);
            adopt(&x, i);
            copy_to(&x, i);
            accept_next(&x, i);
        }
    }
    pass_grace(&x);
    decide(&x);
    if (!x.any && must_settle(&x) && !judge_settled(model, x.world)) {
        search_emit(search, state, number_of(ACTION_NONE, 0, 0),
                    "nothing can happen any more, and not all is well");
    }
}
