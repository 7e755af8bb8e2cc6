/* Steps the machines of a world and carries their effects out, as node/lotus.c does at the
 * coordinator and node/lotus_home.c at a memory server. */
#include <string.h>

#include "base/assert.h"
#include "base/err.h"
#include "explore/lotus_commit_model.h"

#define COORDINATOR 0u

/* ---- Messages ---- */

/* Behind all of its lane. */
static void post(struct phases_shell *shell, const struct phases_message *m)
{
    struct phases_world *w = shell->world;
    if (m->to >= shell->model->setup->nodes || m->to == m->from) {
        shell->broken = "a message to nobody";
        return;
    }
    if (!phases_alive(w, m->to) || phases_gone(w, nodeset_of(m->to), m->epoch, w->nviews) != 0) {
        return; /* its lane leads to a process that is no more */
    }
    if (w->nmessages == PHASES_MESSAGES) {
        shell->broken = "too many messages: the model has no room";
        return;
    }
    uint8_t at = w->nmessages++;
    for (; at > 0 && memcmp(&w->messages[at - 1], m, 2) > 0; at--) { /* receiver, sender */
        w->messages[at] = w->messages[at - 1];
    }
    w->messages[at] = *m;
}

static void send(struct phases_shell *shell, struct phases_message m, nodeset to)
{
    m.epoch = shell->world->epoch[m.from];
    for (; to != 0; to &= to - 1) {
        m.to = nodeset_first(to);
        post(shell, &m);
    }
}

/* ---- The coordinator ---- */

/* Numbers below are of transactions whose outcome all know. */
static uint8_t done_of(const struct phases_world *w)
{
    uint8_t done = w->next;
    for (uint8_t i = 0; i < PHASES_TXNS; i++) {
        uint8_t number = w->txns[i].number;
        done = number != 0 && number < done ? number : done;
    }
    return done;
}

static void ask(struct phases_shell *shell, uint8_t txn, enum lotus_kind kind, nodeset to)
{
    const struct phases_txn *t = &shell->world->txns[txn];
    struct phases_message m = {.from = COORDINATOR,
                               .kind = (uint8_t)kind,
                               .txn = txn,
                               .gen = t->gen,
                               .ts = done_of(shell->world)};
    if (kind == LOTUS_MSG_PREPARE) {
        m.number = t->number;
        m.participants = (uint8_t)to;
    }
    send(shell, m, to);
}

/* C1: when its client is answered it has all its locks, where the server lives. */
static bool has_locks(const struct phases_shell *shell, uint8_t txn)
{
    const struct phases_world *w = shell->world;
    for (uint8_t i = 1; i < PHASES_NODES; i++) {
        bool home = nodeset_has(shell->model->setup->homes[txn], i) && phases_alive(w, i) &&
                    phases_gone(w, nodeset_of(i), w->epoch[COORDINATOR], w->nviews) == 0;
        if (home && w->parts[i][txn].gen != w->txns[txn].gen) {
            return false;
        }
    }
    return true;
}

/* Its number's outcome is known to all: they commit, or hear ABORT before anything later. */
static void end(struct phases_txn *t, enum phases_told told)
{
    t->number = 0;
    t->due = 0;
    t->ended = 1;
    t->told = (uint8_t)(t->told == PHASES_NOTHING ? told : (enum phases_told)t->told);
}

static void fail(struct phases_txn *t, int err)
{
    end(t, err == HK_ERR_UNKNOWN ? PHASES_UNKNOWN : PHASES_FAILED);
}

static void again(struct phases_shell *shell, struct phases_txn *t)
{
    t->number = 0;
    t->due = t->gen < shell->model->setup->tries;
    if (!t->due) {
        fail(t, lotus_error(&t->machine, &shell->model->config, HK_ERR_BUSY));
    }
}

static void carry_out(struct phases_shell *shell, uint8_t txn, const struct lotus_effects *fx);

static void evaluate(struct phases_shell *shell, uint8_t txn)
{
    struct lotus_effects fx = {.n = 0};
    lotus_evaluated(&shell->world->txns[txn].machine, &shell->model->config,
                    shell->model->setup->written[txn], &fx);
    carry_out(shell, txn, &fx);
}

static void carry_out_one(struct phases_shell *shell, uint8_t txn, const struct lotus_effect *e)
{
    struct phases_txn *t = &shell->world->txns[txn];
    switch ((enum lotus_fx)e->kind) {
    case LOTUS_FX_EXECUTE:
        ask(shell, txn, LOTUS_MSG_EXECUTE, e->to);
        break;
    case LOTUS_FX_NEXT:
        evaluate(shell, txn);
        break;
    case LOTUS_FX_PREPARE:
        t->number = shell->world->next++;
        ask(shell, txn, LOTUS_MSG_PREPARE, e->to);
        break;
    case LOTUS_FX_ANSWER:
        t->told = PHASES_ANSWERED;
        if (!has_locks(shell, txn)) {
            shell->broken = "a client is answered by what has lost a lock";
        }
        break;
    case LOTUS_FX_COMMIT:
        ask(shell, txn, LOTUS_MSG_COMMIT, e->to);
        break;
    case LOTUS_FX_ABORT:
        ask(shell, txn, LOTUS_MSG_ABORT, e->to);
        break;
    case LOTUS_FX_AGAIN:
        again(shell, t);
        break;
    case LOTUS_FX_FAIL:
        fail(t, e->err);
        break;
    case LOTUS_FX_END:
        end(t, PHASES_NOTHING);
        break;
    case LOTUS_FX_WHOLE:
    case LOTUS_FX_FINISH:
        shell->broken = "one server is asked for what several have";
        break;
    }
}

static void carry_out(struct phases_shell *shell, uint8_t txn, const struct lotus_effects *fx)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        carry_out_one(shell, txn, &fx->e[i]);
    }
    lotus_txn_check(&shell->world->txns[txn].machine);
}

void phases_shell_begin(struct phases_shell *shell, uint8_t txn)
{
    struct phases_txn *t = &shell->world->txns[txn];
    struct lotus_effects fx = {.n = 0};
    nodeset homes = shell->model->setup->homes[txn];
    t->due = 0;
    t->gen++;
    if (!nodeset_within(homes, shell->world->live[shell->world->epoch[COORDINATOR] - 1])) {
        fail(t, lotus_error(&t->machine, &shell->model->config, HK_ERR_LOSTSLOT));
        return;
    }
    lotus_ask(&t->machine, homes, &fx);
    carry_out(shell, txn, &fx);
}

/* Between tries nothing of it is anywhere. */
void phases_shell_cancel(struct phases_shell *shell, uint8_t txn)
{
    struct phases_txn *t = &shell->world->txns[txn];
    struct lotus_effects fx = {.n = 0};
    bool over = lotus_cancel(&t->machine, &fx);
    carry_out(shell, txn, &fx);
    if (over) {
        end(t, PHASES_NOTHING);
    }
}

static void answered(struct phases_shell *shell, const struct phases_message *m)
{
    struct phases_txn *t = &shell->world->txns[m->txn];
    enum lotus_state phase = m->kind == LOTUS_MSG_EXECUTED   ? LOTUS_EXECUTE
                             : m->kind == LOTUS_MSG_PREPARED ? LOTUS_PREPARE
                                                             : LOTUS_COMMIT;
    struct lotus_effects fx = {.n = 0};
    if (m->gen == t->gen) {
        lotus_answered(&t->machine, &shell->model->config, phase, m->from, (enum lotus_word)m->ts,
                       &fx);
        carry_out(shell, m->txn, &fx);
    }
}

/* ---- A memory server ---- */

/* What happens at a server: to which try, and who is answered. */
struct occasion {
    uint8_t node;
    uint8_t txn;
    uint8_t gen;
    uint8_t answer; /* enum lotus_kind */
    uint8_t asker;
};

static void released(struct phases_shell *shell, const struct occasion *event, bool installed)
{
    struct phases_txn *t = &shell->world->txns[event->txn];
    uint8_t self = (uint8_t)nodeset_of(event->node);
    if (installed) {
        t->installed[event->gen - 1] |= self;
    } else if ((t->installed[event->gen - 1] & self) == 0) {
        t->released[event->gen - 1] |= self;
    }
}

static void do_effect(struct phases_shell *shell, const struct occasion *event,
                      const struct part_effect *e)
{
    struct phases_message m = {
        .from = event->node, .txn = event->txn, .gen = event->gen, .ts = e->code};
    switch ((enum part_fx)e->kind) {
    case PART_FX_ANSWER:
        m.kind = event->answer;
        send(shell, m, nodeset_of(COORDINATOR));
        break;
    case PART_FX_INSTALL:
        released(shell, event, true);
        break;
    case PART_FX_RELEASE:
        released(shell, event, false);
        break;
    case PART_FX_ASK:
        m.kind = LOTUS_MSG_ASK;
        send(shell, m, e->to);
        break;
    case PART_FX_RESOLVED:
        m.kind = LOTUS_MSG_RESOLVED;
        send(shell, m, e->to);
        break;
    case PART_FX_TOLD:
        m.kind = LOTUS_MSG_TOLD;
        send(shell, m, nodeset_of(event->asker));
        break;
    case PART_FX_FREE:
        shell->world->parts[event->node][event->txn].gen = 0;
        shell->world->parts[event->node][event->txn].epoch = 0;
        break;
    }
}

static void do_all(struct phases_shell *shell, const struct occasion *event,
                   const struct part_effects *fx, const struct lotus_part *p)
{
    for (uint32_t i = 0; i < fx->n; i++) {
        do_effect(shell, event, &fx->e[i]);
    }
    if (shell->model->config.rules_off == 0) { /* else the judge shall see it */
        part_check(p);
    }
}

static void execute(struct phases_shell *shell, const struct phases_message *m, bool refuse)
{
    struct phases_part *part = &shell->world->parts[m->to][m->txn];
    struct occasion event = {.node = m->to, .txn = m->txn, .gen = part->gen};
    struct part_effects fx = {.n = 0};
    if (part->machine.state == PART_RUNNING) {
        part_drop(&part->machine, &fx); /* replaced by a later try */
        do_all(shell, &event, &fx, &part->machine);
    }
    if (part->gen != 0) {
        shell->broken = "a later try comes before the outcome of a prepared one";
        return;
    }
    if (!refuse) {
        part_begin(&part->machine);
        part->gen = m->gen;
        part->epoch = m->epoch;
    }
    struct phases_message answer = {.from = m->to,
                                    .kind = LOTUS_MSG_EXECUTED,
                                    .txn = m->txn,
                                    .gen = m->gen,
                                    .ts = refuse ? LOTUS_REFUSED : LOTUS_OK};
    send(shell, answer, nodeset_of(COORDINATOR));
}

/* P10. */
static nodeset gone_since(const struct phases_shell *shell, nodeset nodes, uint8_t since,
                          uint8_t now)
{
    bool processes = lotus_rule_on(&shell->model->config, LOTUS_RULE_PROCESS);
    return processes ? phases_gone(shell->world, nodes, since, now)
                     : nodes & ~(nodeset)shell->world->live[now - 1];
}

static void part_message(struct lotus_part *p, const struct phases_message *m, nodeset gone,
                         struct part_effects *fx)
{
    switch (m->kind) {
    case LOTUS_MSG_PREPARE:
        part_prepare(p, p->state == PART_RUNNING, m->number, m->participants & ~gone, m->to, fx);
        break;
    case LOTUS_MSG_COMMIT:
        part_commit(p, fx);
        break;
    case LOTUS_MSG_ABORT:
        part_abort(p, fx);
        break;
    case LOTUS_MSG_ASK:
        part_asked(p, fx);
        break;
    case LOTUS_MSG_TOLD:
        part_told(p, m->from, (enum lotus_told)m->ts, fx);
        break;
    default:
        part_resolved(p, m->from, m->ts == 1, fx);
        break;
    }
}

/* Every message of the coordinator says which outcomes all know. */
static void heard_done(struct phases_shell *shell, const struct phases_message *m)
{
    for (uint8_t i = 0; i < PHASES_TXNS; i++) {
        struct phases_part *part = &shell->world->parts[m->to][i];
        struct occasion event = {.node = m->to, .txn = i, .gen = part->gen};
        struct part_effects fx = {.n = 0};
        part_done(&part->machine, &shell->model->config, m->ts, &fx);
        do_all(shell, &event, &fx, &part->machine);
    }
}

static void at_server(struct phases_shell *shell, const struct phases_message *m, bool refuse)
{
    struct phases_world *w = shell->world;
    if (m->from == COORDINATOR) {
        heard_done(shell, m);
    }
    if (m->kind == LOTUS_MSG_EXECUTE) {
        execute(shell, m, refuse);
        return;
    }
    struct phases_part *part = &w->parts[m->to][m->txn];
    struct lotus_part unknown = {.state = PART_FREE};
    struct lotus_part *p = part->gen == m->gen ? &part->machine : &unknown;
    struct part_effects fx = {.n = 0};
    struct occasion event = {
        .node = m->to,
        .txn = m->txn,
        .gen = m->gen,
        .answer = m->kind == LOTUS_MSG_PREPARE ? LOTUS_MSG_PREPARED : LOTUS_MSG_COMMITTED,
        .asker = m->from,
    };
    if (m->kind == LOTUS_MSG_PREPARE && p == &part->machine) {
        part->epoch = m->epoch;
    }
    part_message(p, m, gone_since(shell, m->participants, m->epoch, w->epoch[m->to]), &fx);
    do_all(shell, &event, &fx, p);
}

void phases_shell_deliver(struct phases_shell *shell, const struct phases_message *m, bool refuse)
{
    if (m->to == COORDINATOR) {
        answered(shell, m);
    } else {
        at_server(shell, m, refuse);
    }
}

void phases_shell_wound(struct phases_shell *shell, uint8_t node, uint8_t txn)
{
    struct phases_part *part = &shell->world->parts[node][txn];
    struct occasion event = {.node = node, .txn = txn, .gen = part->gen};
    struct part_effects fx = {.n = 0};
    part_drop(&part->machine, &fx);
    do_all(shell, &event, &fx, &part->machine);
}

void phases_shell_timeout(struct phases_shell *shell, uint8_t node, uint8_t txn)
{
    struct phases_part *part = &shell->world->parts[node][txn];
    struct occasion event = {.node = node, .txn = txn, .gen = part->gen};
    struct part_effects fx = {.n = 0};
    part_abort(&part->machine, &fx);
    do_all(shell, &event, &fx, &part->machine);
}

void phases_shell_view(struct phases_shell *shell, uint8_t node, uint8_t before)
{
    struct phases_world *w = shell->world;
    uint8_t now = w->epoch[node];
    for (uint8_t i = 0; i < PHASES_TXNS; i++) {
        if (node == COORDINATOR) {
            struct lotus_effects fx = {.n = 0};
            nodeset gone = phases_gone(w, shell->model->setup->homes[i], before, now);
            lotus_gone(&w->txns[i].machine, &shell->model->config, gone, &fx);
            carry_out(shell, i, &fx);
            continue;
        }
        struct phases_part *part = &w->parts[node][i];
        struct occasion event = {.node = node, .txn = i, .gen = part->gen};
        struct part_effects fx = {.n = 0};
        uint8_t since = part->epoch != 0 ? part->epoch : now;
        part_adopt(&part->machine, &shell->model->config,
                   phases_gone(w, nodeset_of(COORDINATOR), since, now) != 0,
                   gone_since(shell, part->machine.others, since, now), &fx);
        do_all(shell, &event, &fx, &part->machine);
    }
}
