/* Worlds: how one begins, the one form of each, and what can happen next. */
#include "explore/galene_model.h"

#include <string.h>

#include "base/assert.h"

uint8_t galene_value_of(uint8_t op)
{
    return (uint8_t)(GALENE_VALUE_START + 1 + op);
}

static uint8_t newest(const struct galene_world *w)
{
    return w->live[w->nviews - 1];
}

bool galene_alive(const struct galene_world *w, uint8_t node)
{
    return w->nodes[node].epoch != 0 && nodeset_has(newest(w), node);
}

bool galene_readable(const struct galene_world *w, uint8_t node)
{
    return galene_alive(w, node) && (w->nodes[node].meta.flags & KEY_READABLE) != 0;
}

static void process_begins(struct galene_node *n, uint8_t epoch)
{
    memset(n, 0, sizeof *n);
    n->meta = galene_ops.blank;
    n->epoch = epoch;
    for (uint32_t i = 0; i < GALENE_SLOTS; i++) {
        n->slots[i] = (struct slot){.ref = slot_ref(0, i + 1), .gen = 1};
    }
}

/* The key's timestamp is the second node's: it was cached before, or had another home. */
void galene_begin(const void *self, void *state_out)
{
    const struct galene_model *model = self;
    struct galene_world *w = state_out;
    memset(w, 0, sizeof *w);
    w->nviews = 1;
    w->live[0] = model->setup->joins ? 3 : 7;
    w->last = GALENE_VALUE_START;
    w->seen = 1u << GALENE_VALUE_START;
    for (uint8_t i = 0; i < GALENE_NODES; i++) {
        struct galene_node *n = &w->nodes[i];
        bool home = i == GALENE_HOME_NODE;
        if (!nodeset_has(w->live[0], i)) {
            continue;
        }
        process_begins(n, 1);
        if (!home && !model->setup->cached) {
            continue;
        }
        n->value = GALENE_VALUE_START;
        n->meta = (struct key_meta){.ts = stamp_make(4, 2),
                                    .state = model->setup->cached ? GALENE_VALID : GALENE_HOME,
                                    .flags = KEY_READABLE,
                                    .aux = model->setup->cached ? 1 : 0};
        if (home && model->setup->cached) {
            n->meta.flags |= KEY_KEEPER;
        }
    }
}

/* ---- The one form of a world ---- */

static void normalise(struct galene_world *w)
{
    for (uint8_t i = 1; i < w->nmessages; i++) {
        struct galene_message m = w->messages[i];
        uint8_t at = i;
        while (at > 0 && memcmp(&w->messages[at - 1], &m, sizeof m) > 0) {
            w->messages[at] = w->messages[at - 1];
            at--;
        }
        w->messages[at] = m;
    }
    for (uint8_t i = w->nmessages; i < GALENE_MESSAGES; i++) {
        memset(&w->messages[i], 0, sizeof w->messages[i]);
    }
}

/* Drops messages from nodes outside `live` to `to`; with to == NODE_NONE all to nodes outside. */
static void lose(struct galene_world *w, uint8_t live, uint8_t to)
{
    uint8_t kept = 0;
    for (uint8_t i = 0; i < w->nmessages; i++) {
        const struct galene_message m = w->messages[i];
        bool gone =
            to == NODE_NONE ? !nodeset_has(live, m.to) : m.to == to && !nodeset_has(live, m.from);
        if (!gone) {
            w->messages[kept++] = m;
        }
    }
    w->nmessages = kept;
}

/* ---- What can happen ---- */

struct expansion {
    struct galene_shell shell;
    const struct galene_world *from;
    struct search *search;
    bool moved; /* something that is bound to happen can */
};

static struct galene_world *start(struct expansion *x)
{
    *x->shell.world = *x->from;
    x->shell.broken = NULL;
    x->shell.later = false;
    x->shell.parked = false;
    return x->shell.world;
}

static void emit(struct expansion *x, enum galene_action_kind kind, uint32_t a, uint32_t b)
{
    normalise(x->shell.world);
    search_emit(x->search, x->shell.world, (uint64_t)kind << 16 | a << 8 | b, x->shell.broken);
}

static void deliver_all(struct expansion *x)
{
    for (uint8_t i = 0; i < x->from->nmessages; i++) {
        const struct galene_message m = x->from->messages[i];
        if (m.epoch > x->from->nodes[m.to].epoch ||
            (i > 0 && memcmp(&m, &x->from->messages[i - 1], sizeof m) == 0)) {
            continue;
        }
        struct galene_world *w = start(x);
        w->nmessages--;
        memmove(&w->messages[i], &w->messages[i + 1],
                (size_t)(w->nmessages - i) * sizeof w->messages[0]);
        galene_shell_deliver(&x->shell, &m);
        x->moved = true;
        emit(x, GALENE_ACT_DELIVER, i, 0);
    }
}

static void begin_at(struct expansion *x, uint8_t op, uint8_t node)
{
    const struct galene_setup *setup = x->shell.model->setup;
    bool readable = galene_readable(x->from, node);
    if (!galene_alive(x->from, node) || x->from->nodes[node].meta.state == GALENE_NONE ||
        (setup->ops[op] != OP_WRITE && !readable)) {
        return;
    }
    struct galene_world *w = start(x);
    struct galene_op *o = &w->ops[op];
    o->node = node;
    for (uint8_t i = 0; i < GALENE_OPS; i++) {
        o->before |= (uint8_t)(w->ops[i].phase == OP_OK ? 1u << i : 0u);
    }
    o->out = setup->ops[op] == OP_WRITE ? GALENE_VALUE_NONE : w->nodes[node].value;
    o->phase = setup->ops[op] == OP_READ ? OP_OK : OP_ISSUED;
    if (setup->ops[op] != OP_READ) {
        galene_shell_update(&x->shell, op, node);
    }
    if (!x->shell.parked) {
        emit(x, GALENE_ACT_BEGIN, op, node);
    }
}

/* Where there is no entry an operation travels to the home, which runs it like its own. */
static void begin_all(struct expansion *x)
{
    const struct galene_setup *setup = x->shell.model->setup;
    for (uint8_t op = 0; op < GALENE_OPS; op++) {
        bool before = op > 0 && setup->ops[op] == setup->ops[op - 1] &&
                      setup->op_nodes[op] == setup->op_nodes[op - 1] &&
                      x->from->ops[op - 1].phase == OP_WAITING;
        if (setup->ops[op] == OP_NONE || x->from->ops[op].phase != OP_WAITING || before) {
            continue;
        }
        for (uint8_t node = 0; node < GALENE_NODES; node++) {
            if (setup->op_nodes[op] == 0 || nodeset_has(setup->op_nodes[op], node)) {
                begin_at(x, op, node);
            }
        }
    }
}

/* Whether what this flow has asked for is under way. */
static bool asked(const struct galene_world *w, uint8_t node, uint8_t slot)
{
    for (uint8_t i = 0; i < w->nmessages; i++) {
        const struct galene_message *m = &w->messages[i];
        bool answer = m->kind == GALENE_ACK || m->kind == GALENE_REPORT || m->kind == GALENE_NOPE;
        if (m->slot == slot && (answer ? m->to : m->from) == node) {
            return true;
        }
        if (m->kind == GALENE_UPD && m->to == node) {
            return true;
        }
    }
    return false;
}

static void timers(struct expansion *x, uint8_t node)
{
    for (uint8_t i = 0; i < GALENE_SLOTS; i++) {
        const struct slot *slot = &x->from->nodes[node].slots[i];
        if (slot->kind != GALENE_FLOW_FREE && slot->deadline_us != 0 &&
            !asked(x->from, node, (uint8_t)(i + 1))) {
            (void)start(x);
            galene_shell_flow(&x->shell, node, (uint8_t)(i + 1), EV_TIMER);
            emit(x, GALENE_ACT_TIMER, node, i + 1u);
        }
    }
}

/* Before anybody has died a sweep finds only what others are about to make Valid. */
static void sweep(struct expansion *x, uint8_t node)
{
    const struct galene_node *n = &x->from->nodes[node];
    if (x->from->drops > 0 && n->meta.state == GALENE_INVALID &&
        (n->meta.flags & KEY_ASKING) == 0) {
        (void)start(x);
        galene_shell_sweep(&x->shell, node);
        emit(x, GALENE_ACT_SWEEP, node, 0);
    }
}

static void adopt(struct expansion *x, uint8_t node)
{
    uint8_t epoch = (uint8_t)(x->from->nodes[node].epoch + 1);
    if (epoch > x->from->nviews || !nodeset_has(x->from->live[epoch - 1], node)) {
        return;
    }
    struct galene_world *w = start(x);
    w->nodes[node].epoch = epoch;
    lose(w, w->live[epoch - 1], node);
    for (uint8_t i = 0; i < GALENE_SLOTS; i++) {
        if (w->nodes[node].slots[i].kind != GALENE_FLOW_FREE) {
            galene_shell_flow(&x->shell, node, (uint8_t)(i + 1), EV_VIEW);
        }
    }
    galene_note(&x->shell);
    x->moved = true;
    emit(x, GALENE_ACT_ADOPT, node, 0);
}

static void drop(struct expansion *x, uint8_t node)
{
    const struct galene_setup *setup = x->shell.model->setup;
    if (x->from->drops >= setup->drops || !nodeset_has(setup->drop_nodes, node) ||
        !galene_alive(x->from, node) || x->from->nviews == GALENE_VIEWS) {
        return;
    }
    struct galene_world *w = start(x);
    w->live[w->nviews] = (uint8_t)(newest(w) & ~nodeset_of(node));
    w->nviews++;
    w->drops++;
    memset(&w->nodes[node], 0, sizeof w->nodes[node]);
    lose(w, newest(w), NODE_NONE);
    for (uint8_t i = 0; i < GALENE_OPS; i++) {
        if (w->ops[i].phase == OP_ISSUED && w->ops[i].node == node) {
            w->ops[i].phase = OP_UNKNOWN;
        }
    }
    emit(x, GALENE_ACT_DROP, node, 0);
}

static void join(struct expansion *x)
{
    if (!x->shell.model->setup->joins || x->from->admitted != 0) {
        return;
    }
    struct galene_world *w = start(x);
    w->live[w->nviews] = (uint8_t)(newest(w) | nodeset_of(GALENE_NODES - 1));
    w->nviews++;
    w->admitted = w->nviews;
    process_begins(&w->nodes[GALENE_NODES - 1], w->nviews);
    emit(x, GALENE_ACT_JOIN, GALENE_NODES - 1, 0);
}

static void order(struct expansion *x)
{
    const struct galene_order *o = &x->shell.model->setup->orders[x->from->orders];
    if (x->from->orders == GALENE_ORDERS || o->generation == 0 ||
        !galene_alive(x->from, GALENE_HOME_NODE)) {
        return;
    }
    struct galene_world *w = start(x);
    galene_shell_order(&x->shell, o);
    w->orders = (uint8_t)(w->orders + (x->shell.later ? 0 : 1));
    emit(x, GALENE_ACT_ORDER, 0, 0);
}

void galene_expand(const void *self, const void *state, struct search *search)
{
    const struct galene_model *model = self;
    struct expansion x = {
        .shell = {.model = model, .world = &model->work->next}, .from = state, .search = search};
    deliver_all(&x);
    for (uint8_t node = 0; node < GALENE_NODES; node++) {
        if (galene_alive(x.from, node)) {
            adopt(&x, node);
            timers(&x, node);
            sweep(&x, node);
        }
        drop(&x, node);
    }
    begin_all(&x);
    join(&x);
    order(&x);
    if (!x.moved && x.from->drops == 0 && !galene_at_rest(x.from)) {
        (void)start(&x);
        x.shell.broken = "nothing is under way, but something waits";
        emit(&x, GALENE_ACT_ADOPT, 0, 0);
    }
}
