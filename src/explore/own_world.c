/* Worlds of ownership: how one begins, and what can happen next. */
#include <string.h>

#include "base/assert.h"
#include "explore/own_model.h"

static uint8_t newest(const struct owns_world *w)
{
    return w->live[w->nviews - 1];
}

bool owns_alive(const struct owns_world *w, uint8_t node)
{
    return w->nodes[node].epoch != 0 && nodeset_has(newest(w), node);
}

void owns_begin(const void *self, void *state_out)
{
    const struct owns_model *model = self;
    const struct owns_setup *setup = model->setup;
    struct owns_world *w = state_out;
    bool known = setup->owner != NODE_NONE;
    uint8_t replicas = known ? (uint8_t)(setup->readers | nodeset_of(setup->owner)) : 0;
    memset(w, 0, sizeof *w);
    w->nviews = 1;
    w->live[0] = (uint8_t)((1u << setup->nodes) - 1);
    uint8_t value = known && !setup->deleted ? OWNS_VALUE_START : OWNS_VALUE_NEW;
    w->last = value;
    w->seen = (uint8_t)(known ? 1u << value : 0u);
    for (uint8_t i = 0; i < setup->nodes; i++) {
        struct owns_node *n = &w->nodes[i];
        n->epoch = 1;
        n->hears = 2;
        n->recovered = 1;
        n->settled = 1;
        if (known && nodeset_has(setup->directory | replicas, i)) {
            n->entry.ts = stamp_make(4, setup->owner);
            n->entry.vector.readers = setup->readers;
            n->entry.vector.epoch = 1;
            n->entry.vector.owner = setup->owner;
        }
        if (nodeset_has(replicas, i)) {
            n->have = true;
            n->version = stamp_make(3, 0);
            n->value = value;
            n->owned = i == setup->owner;
        }
        n->clock = known ? 4 : 0;
    }
}

/* Drops messages from nodes outside `live` to `to`; with to == NODE_NONE all to nodes outside. */
static void lose(struct owns_world *w, uint8_t live, uint8_t to)
{
    uint8_t kept = 0;
    for (uint8_t i = 0; i < w->nmessages; i++) {
        const struct owns_message m = w->messages[i];
        bool gone =
            to == NODE_NONE ? !nodeset_has(live, m.to) : m.to == to && !nodeset_has(live, m.from);
        if (!gone) {
            w->messages[kept++] = m;
        }
    }
    w->nmessages = kept;
}

uint8_t owns_next(const struct owns_world *w, uint8_t from, uint8_t to)
{
    for (uint8_t i = 0; i < w->nmessages; i++) {
        if (w->messages[i].from == from && w->messages[i].to == to) {
            return w->messages[i].epoch <= w->nodes[to].epoch ? i : OWNS_MESSAGES;
        }
    }
    return OWNS_MESSAGES;
}

/* ---- What can happen ---- */

struct expansion {
    struct owns_shell shell;
    const struct owns_world *from;
    struct search *search;
    bool moved; /* something that is bound to happen can */
};

static struct owns_world *start(struct expansion *x, uint64_t random)
{
    *x->shell.world = *x->from;
    x->shell.broken = NULL;
    x->shell.random = random;
    return x->shell.world;
}

static void emit(struct expansion *x, enum owns_action_kind kind, uint32_t a, uint32_t b)
{
    struct owns_world *w = x->shell.world;
    if (x->shell.broken == NULL) {
        owns_note(&x->shell);
    }
    for (uint8_t i = w->nmessages; i < OWNS_MESSAGES; i++) {
        memset(&w->messages[i], 0, sizeof w->messages[i]);
    }
    search_emit(x->search, w, (uint64_t)kind << 16 | a << 8 | b, x->shell.broken);
}

static void deliver_all(struct expansion *x)
{
    for (uint8_t to = 0; to < OWNS_NODES; to++) {
        for (uint8_t from = 0; from < OWNS_NODES; from++) {
            uint8_t i = owns_next(x->from, from, to);
            if (i == OWNS_MESSAGES) {
                continue;
            }
            struct owns_world *w = start(x, 0);
            struct owns_message m = w->messages[i];
            w->nmessages--;
            memmove(&w->messages[i], &w->messages[i + 1],
                    (size_t)(w->nmessages - i) * sizeof w->messages[0]);
            owns_shell_deliver(&x->shell, &m);
            x->moved = true;
            emit(x, OWNS_ACT_DELIVER, from, to);
        }
    }
}

/* Drivers are drawn: each of them is tried. */
static void draw(struct expansion *x, enum owns_action_kind kind, uint8_t a, uint8_t node,
                 enum own_ev event)
{
    uint32_t drivers = nodeset_count(x->shell.model->setup->directory);
    for (uint64_t random = 0; random < drivers; random++) {
        struct owns_world *w = start(x, random);
        if (kind == OWNS_ACT_WANT) {
            owns_shell_want(&x->shell, a);
        } else {
            w->timers = (uint8_t)(w->timers + (kind == OWNS_ACT_TIMER));
            w->nodes[node].hears = (uint8_t)(w->nodes[node].hears + (kind == OWNS_ACT_HEAR));
            owns_shell_event(&x->shell, node, event);
        }
        emit(x, kind, a, (uint32_t)random);
    }
}

static void wants(struct expansion *x)
{
    const struct owns_setup *setup = x->shell.model->setup;
    for (uint8_t i = 0; i < OWNS_WANTS; i++) {
        uint8_t node = setup->wants[i].node;
        bool open = setup->wants[i].type == OWN_NONE || x->from->phase[i] != WANT_WAITING ||
                    !owns_alive(x->from, node) || !own_idle(&x->from->nodes[node].busy);
        if (!open) {
            draw(x, OWNS_ACT_WANT, i, node, OWN_EV_WANT);
        }
    }
}

static bool anything_under_way(const struct owns_world *w)
{
    for (uint8_t to = 0; to < OWNS_NODES; to++) {
        for (uint8_t from = 0; from < OWNS_NODES; from++) {
            if (owns_next(w, from, to) != OWNS_MESSAGES) {
                return true;
            }
        }
    }
    return false;
}

/* Time passes when nothing is under way: timers are long. */
static void timer(struct expansion *x, uint8_t node)
{
    if (x->from->timers < x->shell.model->setup->timers && x->from->nodes[node].busy.due_us != 0 &&
        !anything_under_way(x->from)) {
        draw(x, OWNS_ACT_TIMER, node, node, OWN_EV_TIMER);
    }
}

/* ---- Views ---- */

static void adopt(struct expansion *x, uint8_t node)
{
    uint8_t epoch = (uint8_t)(x->from->nodes[node].epoch + 1);
    if (epoch > x->from->nviews || !nodeset_has(x->from->live[epoch - 1], node)) {
        return;
    }
    struct owns_world *w = start(x, 0);
    w->nodes[node].epoch = epoch;
    w->nodes[node].hears = 0;
    lose(w, w->live[epoch - 1], node);
    owns_shell_event(&x->shell, node, OWN_EV_VIEW);
    x->moved = true;
    emit(x, OWNS_ACT_ADOPT, node, 0);
}

/* Whether the node stores what a dead owner began to commit (C10). */
static bool stores(const struct owns_world *w, uint8_t node)
{
    return w->commit_version != 0 && w->commit_epoch != 0 && nodeset_has(w->commit_taken, node);
}

static void says(struct expansion *x, uint8_t node)
{
    const struct owns_node *n = &x->from->nodes[node];
    if (n->recovered != n->epoch && !stores(x->from, node)) {
        struct owns_world *w = start(x, 0);
        w->nodes[node].recovered = n->epoch;
        x->moved = true;
        emit(x, OWNS_ACT_RECOVERED, node, 0);
    }
    if (n->settled != n->epoch && n->hears >= 1 && n->busy.ts == 0) {
        struct owns_world *w = start(x, 0);
        w->nodes[node].settled = n->epoch;
        x->moved = true;
        emit(x, OWNS_ACT_SETTLED, node, 0);
    }
}

static void hear(struct expansion *x, uint8_t node)
{
    const struct owns_node *n = &x->from->nodes[node];
    for (nodeset rest = x->from->live[n->epoch - 1]; rest != 0; rest &= rest - 1) {
        const struct owns_node *other = &x->from->nodes[nodeset_first(rest)];
        if ((n->hears == 0 ? other->recovered : other->settled) < n->epoch) {
            return;
        }
    }
    if (n->hears < 2) {
        x->moved = true;
        draw(x, OWNS_ACT_HEAR, node, node, OWN_EV_GO);
    }
}

static void drop(struct expansion *x, uint8_t node)
{
    const struct owns_setup *setup = x->shell.model->setup;
    if (x->from->drops >= setup->drops || !nodeset_has(setup->drop_nodes, node) ||
        !owns_alive(x->from, node) || x->from->nviews == OWNS_VIEWS) {
        return;
    }
    struct owns_world *w = start(x, 0);
    w->live[w->nviews] = (uint8_t)(newest(w) & ~nodeset_of(node));
    w->nviews++;
    w->drops++;
    if (w->commit_version != 0 && w->commit_node == node && w->commit_epoch == 0) {
        w->commit_epoch = w->nodes[node].epoch;
    }
    w->commit_left &= (uint8_t)~nodeset_of(node);
    w->commit_taken &= (uint8_t)~nodeset_of(node);
    memset(&w->nodes[node], 0, sizeof w->nodes[node]);
    lose(w, newest(w), NODE_NONE);
    emit(x, OWNS_ACT_DROP, node, 0);
}

/* ---- Commits ---- */

/* R15, as own_replicated of the node has it. */
static bool has_enough(const struct owns_model *model, const struct owns_world *w, uint8_t node)
{
    const struct owns_node *n = &w->nodes[node];
    const struct view *view = owns_view(model, w, n->epoch);
    struct own_vector v = own_masked(&n->entry.vector, view);
    bool alone = nodeset_count(view->operational) == 1;
    return !model->setup->enough || (model->config.rules_off >> OWN_RULE_ENOUGH & 1) != 0 ||
           alone || v.readers != 0;
}

static void commit(struct expansion *x, uint8_t node)
{
    const struct owns_setup *setup = x->shell.model->setup;
    const struct owns_node *old = &x->from->nodes[node];
    if (x->from->commits == setup->commits || !nodeset_has(setup->commit_at, node) ||
        x->from->commit_version != 0 || !owns_writable(x->from, node) || old->state != ZEUS_VALID ||
        !has_enough(x->shell.model, x->from, node)) {
        return;
    }
    struct owns_world *w = start(x, 0);
    struct owns_node *n = &w->nodes[node];
    const struct view *view = owns_view(x->shell.model, w, n->epoch);
    struct own_vector v = own_masked(&n->entry.vector, view);
    w->base[w->commits] = n->value;
    n->value = (uint8_t)(OWNS_VALUE_START + 1 + w->commits);
    n->version = stamp_make(stamp_version(n->version) + 1, 0);
    n->state = ZEUS_WRITE;
    w->commits++;
    w->commit_version = n->version;
    w->commit_node = node;
    w->commit_left = (uint8_t)v.readers & newest(w);
    w->commit_taken = 0;
    emit(x, OWNS_ACT_COMMIT, node, 0);
}

static uint8_t commit_value(const struct owns_world *w)
{
    return (uint8_t)(OWNS_VALUE_START + w->commits);
}

static void take(struct owns_world *w, uint8_t node)
{
    struct owns_node *n = &w->nodes[node];
    w->commit_left &= (uint8_t)~nodeset_of(node);
    w->commit_taken |= (uint8_t)nodeset_of(node);
    if (n->have && n->version < w->commit_version) {
        n->version = w->commit_version;
        n->value = commit_value(w);
        n->state = ZEUS_INVALID;
    }
}

/* R-INV counts in its epoch only; a dead coordinator's until its follower knows. */
static void takes(struct expansion *x, uint8_t node)
{
    const struct owns_world *from = x->from;
    uint8_t epoch =
        from->commit_epoch != 0 ? from->commit_epoch : from->nodes[from->commit_node].epoch;
    if (from->commit_version == 0 || !nodeset_has(from->commit_left, node) ||
        from->nodes[node].epoch != epoch) {
        return;
    }
    struct owns_world *w = start(x, 0);
    take(w, node);
    x->moved = true;
    emit(x, OWNS_ACT_TAKE, node, 0);
}

static void commit_ends(struct expansion *x, struct owns_world *w)
{
    uint64_t version = w->commit_version;
    bool lives = w->commit_epoch == 0;
    uint8_t coordinator = w->commit_node;
    w->commit_version = 0;
    w->commit_taken = 0;
    w->commit_left = 0;
    w->commit_node = 0;
    w->commit_epoch = 0;
    for (uint8_t i = 0; i < OWNS_NODES; i++) {
        if (w->nodes[i].have && w->nodes[i].version == version) {
            w->nodes[i].state = ZEUS_VALID;
        }
    }
    owns_note(&x->shell);
    if (lives) {
        owns_shell_event(&x->shell, coordinator, OWN_EV_FREE);
    }
}

static void commit_done(struct expansion *x)
{
    if (x->from->commit_version == 0 || x->from->commit_epoch != 0 || x->from->commit_left != 0) {
        return;
    }
    struct owns_world *w = start(x, 0);
    commit_ends(x, w);
    x->moved = true;
    emit(x, OWNS_ACT_DONE, 0, 0);
}

/* All who live have adopted a view without the coordinator: who stores it finishes it. */
static void replay(struct expansion *x)
{
    const struct owns_world *from = x->from;
    if (from->commit_version == 0 || from->commit_epoch == 0) {
        return;
    }
    for (uint8_t i = 0; i < OWNS_NODES; i++) {
        if (owns_alive(from, i) && nodeset_has(from->commit_left | from->commit_taken, i) &&
            from->nodes[i].epoch <= from->commit_epoch) {
            return;
        }
    }
    struct owns_world *w = start(x, 0);
    if (w->commit_taken != 0) {
        for (nodeset rest = w->commit_left; rest != 0; rest &= rest - 1) {
            take(w, nodeset_first(rest));
        }
    }
    commit_ends(x, w);
    x->moved = true;
    emit(x, OWNS_ACT_REPLAY, 0, 0);
}

void owns_expand(const void *self, const void *state, struct search *search)
{
    const struct owns_model *model = self;
    struct expansion x = {
        .shell = {.model = model, .world = &model->work->next}, .from = state, .search = search};
    deliver_all(&x);
    for (uint8_t node = 0; node < OWNS_NODES; node++) {
        if (owns_alive(x.from, node)) {
            adopt(&x, node);
            says(&x, node);
            hear(&x, node);
            timer(&x, node);
            commit(&x, node);
            takes(&x, node);
        }
        drop(&x, node);
    }
    commit_done(&x);
    replay(&x);
    wants(&x);
    const char *wrong =
        !owns_at_rest(x.from, false)            ? "nothing is under way, but something waits"
        : !owns_at_rest(x.from, true)           ? NULL
        : !owns_directory_agrees(model, x.from) ? "the directory does not know who has the object"
        : owns_never_was(model, x.from)         ? "an object that was never written counts as lost"
                                                : NULL;
    if (!x.moved && wrong != NULL) {
        (void)start(&x, 0);
        x.shell.broken = wrong;
        emit(&x, OWNS_ACT_STUCK, 0, 0);
    }
}
