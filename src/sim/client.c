#include "sim/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/redis.h"
#include "sim/workload.h"
#include "sim/world.h"

static struct sim_op *op_at(struct world *world, uint32_t op)
{
    HK_ASSERT(op < world->clients.ops_n);
    return &world->clients.ops[op];
}

static bool updates(const struct sim_op *op)
{
    return op_updates(&op->op);
}

static void describe_op(const struct sim_op *op, char *to, size_t size)
{
    if (op->extra) {
        snprintf(to, size, "client %" PRIu32 " key %" PRIu32 ": operation %u", op->client, op->key,
                 op->op.kind);
    } else {
        history_op_print(&op->h, to, size);
    }
}

static void trace_op(struct world *world, const struct sim_op *op, const char *what)
{
    if (trace_wanted(&world->trace)) {
        char text[200];
        describe_op(op, text, sizeof text);
        const struct client *c = &world->clients.at[op->client];
        trace_line(world, "node %u %s %s", world->machines[c->machine].id, what, text);
    }
}

/* ---- Who wants what, when ---- */

static void client_schedule(struct world *world, struct client *c, uint64_t at_us)
{
    if (!c->scheduled) {
        c->scheduled = true;
        uint64_t earliest_us = at_us > c->backoff_until_us ? at_us : c->backoff_until_us;
        world_plan(world, earliest_us, HAPPENS_ACT, c->id, 0, 0, NULL);
    }
}

static void client_init(struct world *world, uint32_t id)
{
    struct client *c = &world->clients.at[id];
    struct random *chance = &world->chance_clients;
    *c = (struct client){.id = id, .session = SESSION_NONE, .private_key = NO_OP};
    c->machine = (uint8_t)(id % world->setup.nodes);
    c->worker = (uint32_t)random_below(chance, world->setup.workers);
    c->window = (uint32_t)random_between(chance, 1, world->setup.window_max);
    c->embedded = id % 4 == 3;
    if (random_chance(chance, 500000)) {
        c->patience_us =
            random_between(chance, world->setup.answer_us / 20, world->setup.answer_us);
    }
}

void crowd_init(struct world *world)
{
    struct clients *cs = &world->clients;
    const struct setup *s = &world->setup;
    cs->next_value = 1000;
    for (uint32_t i = 0; i < s->keys; i++) {
        cs->shared[i] = workload_add_key(world, i < s->registers                 ? KEY_REGISTER
                                                : i < s->registers + s->counters ? KEY_COUNTER
                                                                                 : KEY_GENERAL);
    }
    cs->extra_first = cs->keys_n;
    for (uint32_t i = 0; i < 3 + s->filler_keys; i++) {
        workload_add_key(world, KEY_EXTRA);
    }
    for (uint32_t i = 0; i < s->clients; i++) {
        client_init(world, i);
    }
    cs->n = s->clients;
}

static void hang_up(struct client *c)
{
    if (c->conn != NULL) {
        resp_conn_destroy(c->conn);
        c->conn = NULL;
    }
}

void crowd_deinit(struct world *world)
{
    struct clients *cs = &world->clients;
    for (uint32_t i = 0; i < cs->n; i++) {
        hang_up(&cs->at[i]);
    }
    for (size_t i = 0; i < cs->ops_n; i++) {
        free(cs->ops[i].bytes);
    }
    free(cs->ops);
    free(cs->keys);
}

static void client_give(struct world *world, struct client *c, uint32_t ops)
{
    c->quota += ops;
    c->tries = 2 * c->quota;
    client_schedule(world, c, world->now_us + random_below(&world->chance_clients, 100));
}

void crowd_round(struct world *world, uint32_t ops)
{
    struct clients *cs = &world->clients;
    for (uint32_t i = 0; i < cs->n; i++) {
        if (cs->at[i].quota < 3 * ops) {
            client_give(world, &cs->at[i], ops);
        }
    }
}

void crowd_stir(struct world *world)
{
    struct random *chance = &world->chance_clients;
    if (world->phase == PHASE_SAFETY && random_chance(chance, 700000)) {
        world_plan(world, world->now_us + random_between(chance, 0, 300), HAPPENS_ROUND, 2, 0, 0,
                   NULL);
    }
}

bool crowd_top_up(struct world *world, uint32_t each)
{
    struct clients *cs = &world->clients;
    bool enough = world->result->stats.ops_ok >= world->setup.ops;
    bool all = true;
    for (uint32_t i = 0; i < cs->n; i++) {
        struct client *c = &cs->at[i];
        if (c->ok_calm < each || !enough) {
            all = false;
            if (c->quota == 0 && c->ring_n == 0) {
                client_give(world, c, world->setup.round_ops);
            }
        }
    }
    return all;
}

void crowd_read_all(struct world *world)
{
    struct clients *cs = &world->clients;
    for (uint32_t i = 0; i < world->setup.nodes; i++) {
        uint32_t id = cs->n++;
        client_init(world, id);
        struct client *c = &cs->at[id];
        c->machine = (uint8_t)i;
        c->reader = true;
        c->window = 1;
        c->patience_us = 0;
        client_schedule(world, c, world->now_us);
    }
}

bool crowd_idle(const struct world *world)
{
    const struct clients *cs = &world->clients;
    for (uint32_t i = 0; i < cs->n; i++) {
        const struct client *c = &cs->at[i];
        if (c->ring_n > 0 || (c->reader && c->next_key < cs->keys_n)) {
            return false;
        }
    }
    return true;
}

/* ---- Outcomes ---- */

/* A sequential reading of the client's private key ends here: what is unknown, or was refused
 * while later operations were under way, breaks it. */
static void abandon_private(struct client *c)
{
    c->private_key = NO_OP;
    c->life++;
}

static void finish(struct world *world, struct sim_op *op, enum history_outcome outcome)
{
    struct sim_stats *stats = &world->result->stats;
    struct client *c = &world->clients.at[op->client];
    HK_ASSERT(op->state != SIM_OP_OVER);
    op->state = SIM_OP_OVER;
    op->h.outcome = (uint8_t)outcome;
    if (outcome != HISTORY_OK && op->forecast.given && op->forecast.life == c->life) {
        abandon_private(c);
    }
    if (op->extra) {
        stats->ops_extra++;
        return;
    }
    if (outcome == HISTORY_UNKNOWN) {
        workload_doubt(world, op->key);
    }
    stats->ops++;
    stats->ops_ok += outcome == HISTORY_OK;
    stats->reads_ok += outcome == HISTORY_OK && op->h.kind == HISTORY_READ;
    stats->ops_failed += outcome == HISTORY_FAILED;
    stats->ops_unknown += outcome == HISTORY_UNKNOWN;
}

static void queue_remove(struct world *world, struct actor *a, uint32_t op)
{
    uint32_t before = NO_OP;
    for (uint32_t i = a->queue_first; i != op; i = op_at(world, i)->next) {
        HK_ASSERT(i != NO_OP);
        before = i;
    }
    uint32_t next = op_at(world, op)->next;
    if (before == NO_OP) {
        a->queue_first = next;
    } else {
        op_at(world, before)->next = next;
    }
    if (a->queue_last == op) {
        a->queue_last = before;
    }
}

/* The connection breaks, or the client gives it up. What its worker has not seen has no effect; of
 * what it has seen, updates may have one at any time. */
static void client_disconnect(struct world *world, struct client *c)
{
    struct machine *m = &world->machines[c->machine];
    struct actor *a = &m->actors[c->worker];
    for (; c->ring_n > 0; c->ring_n--) {
        uint32_t index = c->ring[c->ring_first];
        struct sim_op *op = op_at(world, index);
        c->ring_first = (c->ring_first + 1) % WINDOW_MAX;
        if (op->state == SIM_OP_QUEUED) {
            queue_remove(world, a, index);
            finish(world, op, HISTORY_FAILED);
        } else {
            finish(world, op, updates(op) ? HISTORY_UNKNOWN : HISTORY_FAILED);
            trace_op(world, op, "is asked no more:");
        }
    }
    if (c->session != SESSION_NONE && m->node != NULL) {
        HK_ASSERT(a->closing_n < sizeof a->closing / sizeof a->closing[0]);
        a->closing[a->closing_n++] = c->session;
        machine_notice(m, c->worker);
    }
    hang_up(c);
    c->session = SESSION_NONE;
    c->connection++;
    c->moving = false;
}

static void client_move(struct world *world, struct client *c)
{
    struct random *chance = &world->chance_clients;
    client_disconnect(world, c);
    if (!c->reader) {
        c->machine = (uint8_t)random_below(chance, world->setup.nodes);
    }
    c->worker = (uint32_t)random_below(chance, world->setup.workers);
    c->backoff_until_us = world->now_us + random_between(chance, 200, 10000);
    if (c->tries > 0) {
        c->tries--;
        c->quota++;
    }
    client_schedule(world, c, world->now_us);
}

void crowd_lost(struct machine *m)
{
    struct world *world = m->world;
    for (uint32_t i = 0; i < world->clients.n; i++) {
        struct client *c = &world->clients.at[i];
        if (c->machine == m->place && (c->ring_n > 0 || c->session != SESSION_NONE)) {
            client_move(world, c);
        }
    }
}

void crowd_follow(struct machine *from, struct machine *to)
{
    struct world *world = from->world;
    for (uint32_t i = 0; i < world->clients.n; i++) {
        struct client *c = &world->clients.at[i];
        if (c->machine == from->place && (c->ring_n > 0 || c->session != SESSION_NONE)) {
            c->machine = to->place;
        }
    }
}

/* ---- Asking ---- */

/* No operation may stay unanswered for longer than answer_us after its node took it, unless that
 * stood still. A node whose table is full takes nothing, but that empties within answer_us. */
static uint64_t overdue_us(const struct world *world)
{
    return world->setup.answer_us + world->setup.answer_us / 8 + 50000;
}

static void client_issue(struct world *world, struct client *c, uint32_t index)
{
    struct machine *m = &world->machines[c->machine];
    struct actor *a = &m->actors[c->worker];
    struct sim_op *op = op_at(world, index);
    op->state = SIM_OP_QUEUED;
    op->arrived_step = world->step;
    op->begin_us = world->now_us;
    op->taken_us = 0;
    op->before = c->ring_n == 0 ? NO_OP : c->ring[(c->ring_first + c->ring_n - 1) % WINDOW_MAX];
    c->ring[(c->ring_first + c->ring_n++) % WINDOW_MAX] = index;
    if (a->queue_first == NO_OP) {
        a->queue_first = index;
    } else {
        op_at(world, a->queue_last)->next = index;
    }
    a->queue_last = index;
    machine_notice(m, c->worker);
    uint64_t wait_us = c->patience_us > 0 ? c->patience_us : overdue_us(world);
    world_plan(world, world->now_us + wait_us, HAPPENS_IMPATIENCE, index, 0, 0, NULL);
}

void client_act(struct world *world, uint32_t id)
{
    struct client *c = &world->clients.at[id];
    c->scheduled = false;
    bool wants = c->reader ? c->next_key < world->clients.keys_n
                           : c->quota > 0 && world->phase < PHASE_DRAIN;
    if (!wants || c->ring_n >= c->window || c->moving) {
        return;
    }
    if (world->now_us < c->backoff_until_us) {
        client_schedule(world, c, c->backoff_until_us);
        return;
    }
    if (world->machines[c->machine].node == NULL) {
        client_move(world, c);
        return;
    }
    if (c->reader) {
        client_issue(world, c, workload_read(world, c, c->next_key));
        return;
    }
    c->quota--;
    client_issue(world, c, workload_draw(world, c));
    client_schedule(
        world, c, world->now_us + random_between(&world->chance_clients, 0, world->setup.think_us));
}

static bool disturbed(const struct machine *m, const struct sim_op *op, uint32_t worker)
{
    return m->state != MACHINE_UP || m->slow > 1 || m->actors[worker].stalls > 0 ||
           m->disturbed_us >= op->begin_us;
}

static bool overdue(const struct world *world, const struct sim_op *op)
{
    return op->taken_us == 0 ? world->now_us >= op->begin_us + 3 * overdue_us(world)
                             : world->now_us >= op->taken_us + overdue_us(world);
}

void client_impatient(struct world *world, uint32_t index)
{
    struct sim_op *op = op_at(world, index);
    struct client *c = &world->clients.at[op->client];
    if (op->state == SIM_OP_OVER || op->connection != c->connection) {
        return;
    }
    if (c->patience_us > 0) {
        trace_op(world, op, "has not answered, which its client does not stand any longer:");
        client_move(world, c);
    } else if (disturbed(&world->machines[c->machine], op, c->worker) || !overdue(world, op)) {
        world_plan(world, world->now_us + overdue_us(world), HAPPENS_IMPATIENCE, index, 0, 0, NULL);
    } else {
        char text[200];
        describe_op(op, text, sizeof text);
        world_violation(world, "node %u leaves an operation unanswered for %" PRIu64 " ms: %s%s",
                        c->machine, (world->now_us - op->begin_us) / 1000, text,
                        op->state == SIM_OP_QUEUED ? " (it has not even taken it)" : "");
    }
}

/* ---- For machines ---- */

/* Half of the clients speak RESP3. */
static bool greet(struct client *c, uint64_t now_us)
{
    static const char hello[] = "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n";
    struct op op;
    if (!resp_conn_feed(c->conn, bytes_of(hello, sizeof hello - 1)) ||
        resp_conn_next(c->conn, now_us, true, &op) != RESP_INPUT) {
        return false;
    }
    struct bytes reply = resp_conn_output(c->conn);
    bool map = reply.n > 0 && reply.at[0] == '%';
    resp_conn_sent(c->conn, reply.n);
    return map;
}

/* NULL, or what goes wrong. */
static const char *connect(struct machine *m, struct worker *w, struct client *c)
{
    uint64_t now_us = m->world->now_us;
    int err = worker_session_open(w, &c->session);
    if (err != HK_OK) {
        c->session = SESSION_NONE;
        return hk_err_name(err);
    }
    if (c->embedded) {
        return NULL;
    }
    err = resp_conn_create(&m->process->host, c->id + 1, "", "", now_us, &c->conn);
    if (err != HK_OK) {
        return hk_err_name(err);
    }
    return c->id % 2 == 0 || greet(c, now_us) ? NULL : "HELLO 3 is not answered with a map";
}

/* Hands an operation over to the client's connection, in two pieces. */
static bool say(struct client *c, struct sim_op *op)
{
    uint8_t *command;
    uint32_t n = redis_command(&op->op, &command);
    uint32_t first = (uint32_t)op->arrived_step % n;
    bool taken = resp_conn_feed(c->conn, bytes_of(command, first)) &&
                 resp_conn_feed(c->conn, bytes_of(command + first, n - first));
    free(command);
    op->said = true;
    return taken;
}

static bool speaks(const struct client *c, const struct sim_op *op)
{
    return c->conn != NULL && redis_can_say(&op->op);
}

void crowd_prepare(struct machine *m, uint32_t worker)
{
    struct world *world = m->world;
    struct actor *a = &m->actors[worker];
    struct worker *w = node_worker(m->node, worker);
    for (uint32_t i = 0; i < a->closing_n; i++) {
        worker_session_close(w, a->closing[i]);
    }
    a->closing_n = 0;
    for (uint32_t i = a->queue_first; i != NO_OP; i = op_at(world, i)->next) {
        struct sim_op *op = op_at(world, i);
        struct client *c = &world->clients.at[op->client];
        if (c->session == SESSION_NONE) {
            const char *wrong = connect(m, w, c);
            if (wrong != NULL) {
                world_violation(world, "node %u takes no connection: %s", m->id, wrong);
                return;
            }
        }
        if (speaks(c, op) && !op->said && !say(c, op)) {
            world_violation(world, "node %u does not take a command's bytes", m->id);
        }
        c->ready = worker_session_ready(w, c->session);
    }
}

/* The oldest command that the client has said and that its node has not taken, as an operation.
 * False: not at the moment, because too many of its answers are under way. */
static bool next_operation(struct machine *m, struct client *c, struct op *op_out)
{
    enum resp_next next = resp_conn_next(c->conn, m->world->now_us, true, op_out);
    if (next != RESP_OP) {
        c->ready = false;
    }
    if (next != RESP_OP && (next != RESP_WAIT || resp_conn_in_flight(c->conn) == 0)) {
        world_violation(m->world, "node %u makes no operation of a command", m->id);
    }
    return next == RESP_OP;
}

bool crowd_request(struct machine *m, uint32_t worker, struct request *request_out)
{
    struct world *world = m->world;
    struct actor *a = &m->actors[worker];
    for (uint32_t i = a->queue_first; i != NO_OP; i = op_at(world, i)->next) {
        struct sim_op *op = op_at(world, i);
        struct client *c = &world->clients.at[op->client];
        if (op->arrived_step > m->cutoff_step) {
            return false;
        }
        struct op asked = op->op;
        if (!c->ready || (op->said && !next_operation(m, c, &asked))) {
            continue;
        }
        queue_remove(world, a, i);
        op->next = a->given_op;
        a->given_op = i;
        op->state = SIM_OP_TAKEN;
        op->taken_us = world->now_us;
        op->h.begin_us = 2 * m->poll_step;
        op->epoch = world->ghost.adopted_epoch[m->place];
        *request_out = (struct request){.session = c->session, .tag = i, .op = asked};
        trace_note(&world->trace, i);
        trace_op(world, op, "takes");
        return true;
    }
    return false;
}

void crowd_polled(struct machine *m, uint32_t worker)
{
    struct actor *a = &m->actors[worker];
    while (a->given_op != NO_OP) {
        struct sim_op *op = op_at(m->world, a->given_op);
        free(op->bytes);
        op->bytes = NULL;
        a->given_op = op->next;
    }
    for (uint32_t i = 0; i < m->world->clients.n; i++) {
        struct client *c = &m->world->clients.at[i];
        if (c->conn != NULL && c->machine == m->place && c->worker == worker) {
            resp_conn_sent(c->conn, resp_conn_output(c->conn).n);
        }
    }
}

/* The answer as the client reads it from its connection. NULL, or what is wrong with it. */
static const char *hear(struct world *world, struct client *c, struct answer *answer)
{
    uint32_t before = resp_conn_output(c->conn).n;
    resp_conn_answer(c->conn, answer, world->now_us);
    struct bytes output = resp_conn_output(c->conn);
    return redis_answer(bytes_of(output.at + before, output.n - before), answer);
}

void crowd_reply(struct machine *m, uint32_t worker, const struct reply *reply)
{
    struct world *world = m->world;
    if (reply->tag >= world->clients.ops_n) {
        world_violation(world, "node %u answers what nobody asked", m->id);
        return;
    }
    struct sim_op *op = op_at(world, (uint32_t)reply->tag);
    struct client *c = &world->clients.at[op->client];
    if (m->actors[worker].queue_first != NO_OP) {
        machine_notice(m, worker); /* there is room again for what waits */
    }
    if (op->connection != c->connection) {
        return;
    }
    uint32_t i = 0;
    while (i < c->ring_n &&
           op_at(world, c->ring[(c->ring_first + i) % WINDOW_MAX])->state == SIM_OP_ANSWERED) {
        i++;
    }
    if (i == c->ring_n || c->ring[(c->ring_first + i) % WINDOW_MAX] != reply->tag ||
        op->state != SIM_OP_TAKEN || reply->session != c->session) {
        world_violation(world, "node %u answers twice or out of order: operation %" PRIu64, m->id,
                        reply->tag);
        return;
    }
    op->state = SIM_OP_ANSWERED;
    struct answer answer = reply->answer;
    const char *wrong = op->said ? hear(world, c, &answer) : NULL;
    if (wrong == NULL && answer.kind == ANSWER_ERROR) {
        op->err = (int)answer.number;
    } else if (wrong == NULL) {
        wrong = workload_understand(world, op, &answer);
    }
    if (wrong != NULL) {
        char text[200];
        describe_op(op, text, sizeof text);
        world_violation(world, "node %u gives %s: %s", m->id, wrong, text);
    }
}

/* ---- Answers that have left the process ---- */

static void check_forecast(struct world *world, const struct sim_op *op, const struct client *c)
{
    const struct forecast *f = &op->forecast;
    if (!f->given || f->life != c->life || (op->h.ok == f->ok && op->h.out == f->out)) {
        return;
    }
    char text[200];
    describe_op(op, text, sizeof text);
    world_violation(world,
                    "a client's own key does not follow the client's order: %s "
                    "(expected ok %d, out %" PRId64 ")",
                    text, f->ok, f->out);
}

/* What comes out is not linearizable, whatever happened meanwhile: values are written once. */
static void tamper(struct world *world, struct sim_op *op)
{
    struct tampering *t = &world->clients.tampering;
    struct history_op *h = &op->h;
    const struct sim_key *key = &world->clients.keys[op->key];
    if (h->kind != HISTORY_READ || key->private || key->class == KEY_COUNTER ||
        (t->seen > 0 && (op->key != t->key || h->begin_us <= t->after_us))) {
        return;
    }
    if (t->seen == 0 && h->out != HISTORY_ABSENT) {
        *t = (struct tampering){1, op->key, h->out, h->end_us};
    } else if (t->seen == 1 && h->out != t->first) {
        t->seen = 2;
        t->after_us = h->end_us;
    } else if (t->seen == 2) {
        t->seen = 3;
        h->out = t->first;
    }
}

static void answered_well(struct world *world, struct sim_op *op, struct client *c)
{
    finish(world, op, HISTORY_OK);
    c->ok_calm += world->phase != PHASE_SAFETY;
    if (c->reader) {
        c->next_key++;
    }
    if (op->extra) {
        return;
    }
    if (world->config->tamper) {
        tamper(world, op);
    }
    struct sim_key *key = &world->clients.keys[op->key];
    if (op->h.kind == HISTORY_READ) {
        key->value_known = true;
        key->value = op->h.out;
    } else if (op->h.in != HISTORY_ABSENT && op->h.kind != HISTORY_ADD && op->h.ok) {
        key->value_known = true;
        key->value = op->h.in;
    }
    check_forecast(world, op, c);
}

/* Whether an honest node may give this error. */
static bool may_fail(const struct world *world, const struct sim_op *op)
{
    bool settled = op->begin_us > world->settled_us;
    switch (op->err) {
    case HK_ERR_UNKNOWN:
        return updates(op) && !settled;
    case HK_ERR_UNAVAILABLE:
    case HK_ERR_LOADING:
        return !settled;
    case HK_ERR_NOMEM:
    case HK_ERR_FULL:
    case HK_ERR_BUSY:
        return true;
    default:
        return op->extra;
    }
}

static void answered_badly(struct world *world, struct sim_op *op, struct client *c)
{
    if (!may_fail(world, op)) {
        char text[200];
        describe_op(op, text, sizeof text);
        world_violation(world, "node %u answers %s: %s", c->machine, hk_err_name(op->err), text);
    }
    finish(world, op, op->err == HK_ERR_UNKNOWN ? HISTORY_UNKNOWN : HISTORY_FAILED);
    bool about_op = op->err == HK_ERR_TYPE || op->err == HK_ERR_OVERFLOW ||
                    op->err == HK_ERR_TOOBIG || op->err == HK_ERR_INVALID;
    c->moving = c->moving || !about_op;
    if (c->reader && about_op) {
        c->next_key++;
    }
}

/* What stands in the history has the form that the checkers know. */
static void normalize(struct history_op *h)
{
    if (h->kind == HISTORY_READ || h->kind == HISTORY_WRITE || h->kind == HISTORY_DELETE ||
        h->kind == HISTORY_ADD || h->kind == HISTORY_GETSET) {
        h->ok = true;
    }
}

void crowd_answered(struct world *world, uint32_t index)
{
    struct sim_op *op = op_at(world, index);
    struct client *c = &world->clients.at[op->client];
    if (op->state == SIM_OP_OVER) {
        return;
    }
    HK_ASSERT(c->ring_n > 0 && c->ring[c->ring_first] == index);
    c->ring_first = (c->ring_first + 1) % WINDOW_MAX;
    c->ring_n--;
    op->h.end_us = 2 * world->step + 1;
    normalize(&op->h);
    trace_note(&world->trace, (uint64_t)op->h.out ^ (uint64_t)op->err << 32);
    if (op->err == 0) {
        answered_well(world, op, c);
    } else {
        answered_badly(world, op, c);
    }
    if (trace_wanted(&world->trace)) {
        trace_op(world, op, op->err == 0 ? "answers" : hk_err_name(op->err));
    }
    if (c->moving && c->ring_n == 0) {
        client_move(world, c);
        return;
    }
    client_schedule(
        world, c, world->now_us + random_between(&world->chance_clients, 0, world->setup.think_us));
}
