/* Worlds of two-phase commit: how one begins, what can happen next, and what must hold:
 *
 *   agree     no server installs a try that a living one has released without it
 *   once      of a transaction one try is installed
 *   durable   of what a client was answered no living server has let go
 *   truth     of what a client was told did not happen nothing is installed where somebody lives
 *   locks     who is answered has all its locks (lotus_commit_shell.c)
 *   rest      when nothing is under way all has ended: nobody runs, is prepared or in doubt, and
 *             without a coordinator no outcome is kept */
#include <string.h>

#include "base/assert.h"
#include "explore/lotus_commit_model.h"

#define COORDINATOR 0u

static uint8_t newest(const struct phases_world *w)
{
    return w->live[w->nviews - 1];
}

bool phases_alive(const struct phases_world *w, uint8_t node)
{
    return w->epoch[node] != 0 && nodeset_has(newest(w), node);
}

nodeset phases_gone(const struct phases_world *w, nodeset nodes, uint8_t earlier, uint8_t later)
{
    nodeset gone = 0;
    for (; nodes != 0; nodes &= nodes - 1) {
        uint8_t node = nodeset_first(nodes);
        if (!nodeset_has(w->live[later - 1], node) || w->admitted[later - 1][node] > earlier) {
            gone |= nodeset_of(node);
        }
    }
    return gone;
}

static bool rule(const struct phases_model *model, enum lotus_rule which)
{
    return lotus_rule_on(&model->config, which);
}

void phases_begin(const void *self, void *state_out)
{
    const struct phases_model *model = self;
    struct phases_world *w = state_out;
    memset(w, 0, sizeof *w);
    w->nviews = 1;
    w->next = 1;
    w->live[0] = (uint8_t)((1u << model->setup->nodes) - 1);
    for (uint8_t i = 0; i < model->setup->nodes; i++) {
        w->epoch[i] = 1;
        w->admitted[0][i] = 1;
    }
}

/* ---- What can happen ---- */

struct expansion {
    struct phases_shell shell;
    const struct phases_world *from;
    struct search *search;
    bool moved; /* something that is bound to happen can */
};

static struct phases_world *start(struct expansion *x)
{
    *x->shell.world = *x->from;
    x->shell.broken = NULL;
    return x->shell.world;
}

static void emit(struct expansion *x, enum phases_action_kind kind, uint32_t a, uint32_t b)
{
    struct phases_world *w = x->shell.world;
    for (uint8_t i = w->nmessages; i < PHASES_MESSAGES; i++) {
        memset(&w->messages[i], 0, sizeof w->messages[i]);
    }
    search_emit(x->search, w, (uint64_t)kind << 16 | a << 8 | b, x->shell.broken);
}

/* P3: of the participants' messages one of an earlier epoch is ignored. One of a later epoch waits,
 * whatever it is. */
static bool counts_in_one_epoch(const struct expansion *x, const struct phases_message *m)
{
    bool between =
        m->kind == LOTUS_MSG_ASK || m->kind == LOTUS_MSG_TOLD || m->kind == LOTUS_MSG_RESOLVED;
    return between && rule(x->shell.model, LOTUS_RULE_EPOCH);
}

static bool first_of_lane(const struct phases_world *w, uint8_t i)
{
    const struct phases_message *m = &w->messages[i];
    return i == 0 || w->messages[i - 1].to != m->to || w->messages[i - 1].from != m->from;
}

static void deliver(struct expansion *x, uint8_t i, bool refuse)
{
    const struct phases_message m = x->from->messages[i];
    struct phases_world *w = start(x);
    w->nmessages--;
    memmove(&w->messages[i], &w->messages[i + 1],
            (size_t)(w->nmessages - i) * sizeof w->messages[0]);
    w->refusals = (uint8_t)(w->refusals + refuse);
    if (!counts_in_one_epoch(x, &m) || m.epoch == w->epoch[m.to]) {
        phases_shell_deliver(&x->shell, &m, refuse);
    }
    emit(x, PHASES_ACT_DELIVER, i, refuse);
}

static void deliver_all(struct expansion *x)
{
    for (uint8_t i = 0; i < x->from->nmessages; i++) {
        const struct phases_message *m = &x->from->messages[i];
        bool waits = m->epoch > x->from->epoch[m->to];
        if (!first_of_lane(x->from, i) || waits) {
            continue;
        }
        x->moved = true;
        deliver(x, i, false);
        if (m->kind == LOTUS_MSG_EXECUTE && x->from->refusals < x->shell.model->setup->refusals) {
            deliver(x, i, true);
        }
    }
}

static void coordinate(struct expansion *x, uint8_t txn)
{
    const struct phases_txn *t = &x->from->txns[txn];
    if (t->ended || !phases_alive(x->from, COORDINATOR)) {
        return;
    }
    if (t->gen == 0 || t->due) {
        (void)start(x);
        phases_shell_begin(&x->shell, txn);
        x->moved = true;
        emit(x, PHASES_ACT_BEGIN, txn, 0);
    }
    if (t->gen > 0 && !t->machine.orphan && x->from->cancels < x->shell.model->setup->cancels) {
        start(x)->cancels++;
        phases_shell_cancel(&x->shell, txn);
        emit(x, PHASES_ACT_CANCEL, txn, 0);
    }
}

static void serve(struct expansion *x, uint8_t node, uint8_t txn)
{
    uint8_t state = x->from->parts[node][txn].machine.state;
    if (state == PART_RUNNING && x->from->wounds < x->shell.model->setup->wounds) {
        start(x)->wounds++;
        phases_shell_wound(&x->shell, node, txn);
        emit(x, PHASES_ACT_WOUND, node, txn);
    }
    if (state == PART_PREPARED && !rule(x->shell.model, LOTUS_RULE_NO_TIMEOUT)) {
        (void)start(x);
        phases_shell_timeout(&x->shell, node, txn);
        emit(x, PHASES_ACT_TIMEOUT, node, txn);
    }
}

/* ---- Views ---- */

/* What nobody will take any more: of the dead to who has adopted their death, and to the dead. */
static void lose(struct phases_world *w)
{
    uint8_t kept = 0;
    for (uint8_t i = 0; i < w->nmessages; i++) {
        const struct phases_message m = w->messages[i];
        uint8_t epoch = w->epoch[m.to] > m.epoch ? w->epoch[m.to] : m.epoch;
        if (phases_alive(w, m.to) && phases_gone(w, nodeset_of(m.from), m.epoch, epoch) == 0) {
            w->messages[kept++] = m;
        }
    }
    w->nmessages = kept;
}

/* One of the views that have the node's process, not always the next. */
static void adopt(struct expansion *x, uint8_t node, uint8_t epoch)
{
    uint8_t before = x->from->epoch[node];
    if (!phases_alive(x->from, node) || epoch <= before || epoch > x->from->nviews) {
        return;
    }
    struct phases_world *w = start(x);
    w->epoch[node] = epoch;
    lose(w);
    phases_shell_view(&x->shell, node, before);
    x->moved = true;
    emit(x, PHASES_ACT_ADOPT, node, epoch);
}

static struct phases_world *next_view(struct expansion *x)
{
    struct phases_world *w = start(x);
    w->live[w->nviews] = newest(w);
    memcpy(w->admitted[w->nviews], w->admitted[w->nviews - 1], PHASES_NODES);
    w->nviews++;
    return w;
}

static void drop(struct expansion *x, uint8_t node)
{
    const struct phases_setup *setup = x->shell.model->setup;
    if (x->from->drops >= setup->drops || !nodeset_has(setup->drop_nodes, node) ||
        !phases_alive(x->from, node) || x->from->nviews == PHASES_VIEWS) {
        return;
    }
    struct phases_world *w = next_view(x);
    uint8_t others = (uint8_t)~nodeset_of(node);
    w->live[w->nviews - 1] &= others;
    w->admitted[w->nviews - 1][node] = 0;
    w->drops++;
    w->epoch[node] = 0;
    memset(w->parts[node], 0, sizeof w->parts[node]);
    for (uint8_t i = 0; i < PHASES_TXNS; i++) {
        struct phases_txn *t = &w->txns[i];
        for (uint8_t k = 0; k < PHASES_TRIES; k++) {
            t->lost[k] |= (uint8_t)(t->installed[k] & ~others);
            t->installed[k] &= others;
            t->released[k] &= others;
        }
        if (node == COORDINATOR) {
            t->machine = (struct lotus_txn){.state = LOTUS_IDLE};
            t->number = t->due = 0;
            t->ended = 1;
        }
    }
    lose(w);
    emit(x, PHASES_ACT_DROP, node, 0);
}

/* A new process at a node that has none. */
static void join(struct expansion *x, uint8_t node)
{
    if (x->from->joins >= x->shell.model->setup->joins || x->from->epoch[node] != 0 ||
        x->from->nviews == PHASES_VIEWS) {
        return;
    }
    struct phases_world *w = next_view(x);
    w->joins++;
    w->live[w->nviews - 1] |= (uint8_t)nodeset_of(node);
    w->admitted[w->nviews - 1][node] = w->epoch[node] = w->nviews;
    emit(x, PHASES_ACT_JOIN, node, 0);
}

/* ---- The judge ---- */

static bool at_rest(const struct phases_model *model, const struct phases_world *w)
{
    bool coordinated = phases_gone(w, nodeset_of(COORDINATOR), 1, w->nviews) == 0;
    for (uint8_t i = 0; i < model->setup->txns; i++) {
        if (!w->txns[i].ended) {
            return false;
        }
        for (uint8_t node = 1; node < PHASES_NODES; node++) {
            uint8_t state = w->parts[node][i].machine.state;
            bool kept = state == PART_COMMITTED && coordinated;
            if (phases_alive(w, node) && state != PART_FREE && !kept) {
                return false;
            }
        }
    }
    return true;
}

void phases_expand(const void *self, const void *state, struct search *search)
{
    const struct phases_model *model = self;
    struct expansion x = {
        .shell = {.model = model, .world = model->next}, .from = state, .search = search};
    deliver_all(&x);
    for (uint8_t i = 0; i < model->setup->txns; i++) {
        coordinate(&x, i);
        for (uint8_t node = 1; node < model->setup->nodes; node++) {
            serve(&x, node, i);
        }
    }
    for (uint8_t node = 0; node < model->setup->nodes; node++) {
        for (uint8_t epoch = 2; epoch <= x.from->nviews; epoch++) {
            adopt(&x, node, epoch);
        }
        drop(&x, node);
        join(&x, node);
    }
    if (!x.moved && !at_rest(model, x.from)) {
        (void)start(&x);
        x.shell.broken = "nothing is under way, but something waits";
        emit(&x, PHASES_ACT_STUCK, 0, 0);
    }
}

/* Without C1 who is only read at is not asked to prepare, and lets go in any case. */
static const char *txn_broken(const struct phases_model *model, const struct phases_world *w,
                              uint8_t txn)
{
    const struct phases_txn *t = &w->txns[txn];
    uint32_t tries = 0;
    uint8_t written = model->setup->written[txn];
    uint8_t bound = rule(model, LOTUS_RULE_PREPARE_READ) ? model->setup->homes[txn] : written;
    for (uint8_t i = 0; i < PHASES_TRIES; i++) {
        uint8_t installed = t->installed[i] & written;
        uint8_t released = t->released[i] & bound;
        if (((installed | t->lost[i]) & written) != 0 && released != 0) {
            return "a server has committed what a living one has given up";
        }
        if (t->told == PHASES_FAILED && installed != 0) {
            return "a client was told that nothing changed, but something did";
        }
        if (t->told == PHASES_ANSWERED && i + 1 == t->gen && released != 0) {
            return "a client was answered, and a living server has given it up";
        }
        tries += (t->installed[i] | t->lost[i]) != 0 ? 1 : 0;
    }
    return tries > 1 ? "a transaction was done twice" : NULL;
}

const char *phases_broken(const void *self, const void *state)
{
    const struct phases_model *model = self;
    const struct phases_world *w = state;
    const char *broken = NULL;
    for (uint8_t i = 0; i < model->setup->txns && broken == NULL; i++) {
        broken = txn_broken(model, w, i);
    }
    return broken;
}

bool phases_finished(const void *self, const void *state)
{
    const struct phases_world *w = state;
    return w->nmessages == 0 && at_rest(self, w);
}
