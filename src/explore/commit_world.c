/* Worlds of reliable commit: how one begins, and what can happen next. */
#include <string.h>

#include "base/assert.h"
#include "explore/commit_model.h"

static uint8_t newest(const struct commits_world *w)
{
    return w->live[w->nviews - 1];
}

bool commits_alive(const struct commits_world *w, uint8_t node)
{
    return w->nodes[node].epoch != 0 && nodeset_has(newest(w), node);
}

bool commits_rule(const struct commits_model *model, enum commit_rule rule)
{
    return (model->config.rules_off >> rule & 1) == 0;
}

void commits_begin(const void *self, void *state_out)
{
    const struct commits_model *model = self;
    struct commits_world *w = state_out;
    memset(w, 0, sizeof *w);
    w->nviews = 1;
    w->live[0] = (uint8_t)((1u << model->setup->nodes) - 1);
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
        w->nodes[i].epoch = 1;
        w->nodes[i].recovered = 1;
        for (uint8_t k = 0; k < COMMITS_OBJECTS; k++) {
            w->nodes[i].objects[k].have = nodeset_has(model->setup->replicas[k], i);
        }
    }
}

static void lose(struct commits_world *w, uint8_t live, uint8_t to)
{
    uint8_t kept = 0;
    for (uint8_t i = 0; i < w->nmessages; i++) {
        const struct commits_message m = w->messages[i];
        bool gone =
            to == NODE_NONE ? !nodeset_has(live, m.to) : m.to == to && !nodeset_has(live, m.from);
        if (!gone) {
            w->messages[kept++] = m;
        }
    }
    w->nmessages = kept;
}

uint8_t commits_next(const struct commits_world *w, uint8_t from, uint8_t to, uint8_t pipe)
{
    for (uint8_t i = 0; i < w->nmessages; i++) {
        const struct commits_message *m = &w->messages[i];
        if (m->from == from && m->to == to && m->pipe == pipe) {
            return m->epoch <= w->nodes[to].epoch ? i : COMMITS_MESSAGES;
        }
    }
    return COMMITS_MESSAGES;
}

/* ---- What can happen ---- */

struct expansion {
    struct commits_shell shell;
    const struct commits_world *from;
    struct search *search;
    bool moved; /* something that is bound to happen can */
};

static struct commits_world *start(struct expansion *x)
{
    *x->shell.world = *x->from;
    x->shell.broken = NULL;
    return x->shell.world;
}

static void emit(struct expansion *x, enum commits_action_kind kind, uint32_t a, uint32_t b)
{
    struct commits_world *w = x->shell.world;
    for (uint8_t i = w->nmessages; i < COMMITS_MESSAGES; i++) {
        memset(&w->messages[i], 0, sizeof w->messages[i]);
    }
    search_emit(x->search, w, (uint64_t)kind << 16 | a << 8 | b, x->shell.broken);
}

static void deliver_all(struct expansion *x)
{
    for (uint8_t i = 0; i < x->from->nmessages; i++) {
        const struct commits_message m = x->from->messages[i];
        if (commits_next(x->from, m.from, m.to, m.pipe) != i) {
            continue;
        }
        struct commits_world *w = start(x);
        w->nmessages--;
        memmove(&w->messages[i], &w->messages[i + 1],
                (size_t)(w->nmessages - i) * sizeof w->messages[0]);
        commits_shell_deliver(&x->shell, &m);
        x->moved = true;
        emit(x, COMMITS_ACT_DELIVER, i, 0);
    }
}

/* ---- Transactions ---- */

/* What the node's transactions that are not done yet have done to the object: the bits of pipes. */
static uint8_t bound_by(const struct commits_world *w, uint8_t node, uint8_t object, bool writes)
{
    uint8_t pipes = 0;
    for (uint32_t i = 0; i < COMMITS_TXS; i++) {
        const struct commits_tx *t = &w->txs[i];
        bool touched = writes ? t->wrote[object] != 0 : t->read[object] != 0;
        if (t->begun && t->node == node && !t->own_done && touched) {
            pipes |= (uint8_t)(1u << t->pipe);
        }
    }
    return pipes;
}

/* C4 */
static bool may_read(const struct expansion *x, uint8_t node, uint8_t pipe, uint8_t object)
{
    const struct commits_object *o = &x->from->nodes[node].objects[object];
    if (!o->have || x->from->owner[object] != node) {
        return false;
    }
    if (o->state == ZEUS_VALID) {
        return true;
    }
    uint8_t its = x->from->txs[o->tx - 1].pipe;
    return o->state == ZEUS_WRITE && commit_may_touch(&x->shell.model->config, its, pipe);
}

/* C12 */
static bool may_write(const struct expansion *x, uint8_t node, uint8_t pipe, uint8_t object)
{
    uint8_t others = (uint8_t)(bound_by(x->from, node, object, false) & ~(1u << pipe));
    return may_read(x, node, pipe, object) &&
           (others == 0 || !commits_rule(x->shell.model, COMMIT_RULE_READ));
}

/* It reads what it writes, or whatever it may: more can go wrong, but less is allowed. */
static void begin(struct expansion *x, uint8_t node, uint8_t pipe, uint8_t objects, bool reads_all)
{
    const struct commits_setup *setup = x->shell.model->setup;
    for (uint8_t i = 0; i < COMMITS_OBJECTS; i++) {
        if ((objects >> i & 1) != 0 && !may_write(x, node, pipe, i)) {
            return;
        }
    }
    struct commits_world *w = start(x);
    uint8_t number = w->begun++;
    struct commits_tx *t = &w->txs[number];
    uint8_t followers = 0;
    t->begun = 1;
    t->node = node;
    t->pipe = pipe;
    t->told = !commits_rule(x->shell.model, COMMIT_RULE_DURABLE);
    for (uint8_t i = 0; i < COMMITS_OBJECTS; i++) {
        struct commits_object *o = &w->nodes[node].objects[i];
        if (!may_read(x, node, pipe, i) || (!reads_all && (objects >> i & 1) == 0)) {
            continue;
        }
        t->read[i] = (uint8_t)(1 + o->version);
        t->seen |= (uint8_t)(o->tx == 0 ? 0 : 1u << (o->tx - 1));
        if ((objects >> i & 1) != 0) {
            o->version++;
            o->state = ZEUS_WRITE;
            o->tx = (uint8_t)(number + 1);
            t->wrote[i] = o->version;
            followers |= setup->replicas[i];
        }
    }
    commits_shell_begin(&x->shell, number, (uint8_t)(followers & ~nodeset_of(node)));
    emit(x, COMMITS_ACT_BEGIN, (uint32_t)node << 4 | pipe, objects);
}

static void begin_all(struct expansion *x, uint8_t node)
{
    const struct commits_setup *setup = x->shell.model->setup;
    if (x->from->begun == setup->txs) {
        return;
    }
    for (uint8_t objects = 1; objects < 4; objects++) {
        for (uint8_t pipe = 0; pipe < COMMITS_PIPES; pipe++) {
            bool usable = pipe < COMMITS_OWN_PIPES ? pipe < setup->pipes : node != 0;
            if ((setup->shapes >> objects & 1) != 0 && usable &&
                commits_coordinator(pipe) == node) {
                begin(x, node, pipe, objects, false);
                begin(x, node, pipe, objects, true);
            }
        }
    }
}

/* ---- Views ---- */

static void adopt(struct expansion *x, uint8_t node)
{
    uint8_t epoch = (uint8_t)(x->from->nodes[node].epoch + 1);
    if (epoch > x->from->nviews || !nodeset_has(x->from->live[epoch - 1], node)) {
        return;
    }
    struct commits_world *w = start(x);
    w->nodes[node].epoch = epoch;
    if (commits_rule(x->shell.model, COMMIT_RULE_INV_MEMBER)) {
        lose(w, w->live[epoch - 1], node);
    }
    commits_shell_view(&x->shell, node);
    x->moved = true;
    emit(x, COMMITS_ACT_ADOPT, node, 0);
}

static bool stores_of_dead(const struct commits_world *w, uint8_t node)
{
    for (uint8_t pipe = 0; pipe < COMMITS_PIPES; pipe++) {
        if (w->nodes[node].pipes[pipe].known && w->nodes[node].pipes[pipe].dead) {
            return true;
        }
    }
    return false;
}

static void recovered(struct expansion *x, uint8_t node)
{
    const struct commits_node *n = &x->from->nodes[node];
    bool may =
        !stores_of_dead(x->from, node) || !commits_rule(x->shell.model, COMMIT_RULE_RECOVERED);
    if (n->recovered != n->epoch && may) {
        struct commits_world *w = start(x);
        w->nodes[node].recovered = n->epoch;
        x->moved = true;
        emit(x, COMMITS_ACT_RECOVERED, node, 0);
    }
}

static void take_over(struct expansion *x, uint8_t node)
{
    uint8_t live = x->from->live[x->from->nodes[node].epoch - 1];
    for (nodeset rest = live; rest != 0; rest &= rest - 1) {
        if (x->from->nodes[nodeset_first(rest)].recovered < x->from->nodes[node].epoch) {
            return;
        }
    }
    for (uint8_t i = 0; i < COMMITS_OBJECTS; i++) {
        const struct commits_object *o = &x->from->nodes[node].objects[i];
        if (!nodeset_has(live, x->from->owner[i]) && o->have && o->state == ZEUS_VALID &&
            x->shell.model->setup->takes_over) {
            struct commits_world *w = start(x);
            w->owner[i] = node;
            emit(x, COMMITS_ACT_TAKE_OVER, node, i);
        }
    }
}

static void drop(struct expansion *x, uint8_t node)
{
    const struct commits_setup *setup = x->shell.model->setup;
    if (x->from->drops >= setup->drops || !nodeset_has(setup->drop_nodes, node) ||
        !commits_alive(x->from, node) || x->from->nviews == COMMITS_VIEWS) {
        return;
    }
    struct commits_world *w = start(x);
    w->live[w->nviews] = (uint8_t)(newest(w) & ~nodeset_of(node));
    w->nviews++;
    w->drops++;
    memset(&w->nodes[node], 0, sizeof w->nodes[node]);
    lose(w, newest(w), NODE_NONE);
    emit(x, COMMITS_ACT_DROP, node, 0);
}

void commits_expand(const void *self, const void *state, struct search *search)
{
    const struct commits_model *model = self;
    struct expansion x = {
        .shell = {.model = model, .world = &model->work->next}, .from = state, .search = search};
    deliver_all(&x);
    for (uint8_t node = 0; node < COMMITS_NODES; node++) {
        if (commits_alive(x.from, node)) {
            adopt(&x, node);
            recovered(&x, node);
            take_over(&x, node);
            begin_all(&x, node);
        }
        drop(&x, node);
    }
    if (!x.moved && !commits_at_rest(x.from)) {
        (void)start(&x);
        x.shell.broken = "nothing is under way, but something waits";
        emit(&x, COMMITS_ACT_STUCK, 0, 0);
    }
}
