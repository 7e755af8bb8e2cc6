#include "sim/client.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/phrase.h"
#include "sim/redis.h"
#include "sim/talk.h"
#include "sim/understand.h"
#include "sim/workload.h"
#include "sim/world.h"

struct sim_op *crowd_op(struct world *world, uint32_t op)
{
    HK_ASSERT(op < world->clients.ops_n);
    return &world->clients.ops[op];
}

static bool updates(const struct sim_op *op)
{
    return !op->quiet && op_updates(&op->op);
}

void crowd_describe(const struct sim_op *op, char *to, size_t size)
{
    if (op->extra) {
        snprintf(to, size, "client %" PRIu32 " key %" PRIu32 ": %s", op->client, op->key,
                 phrases[op->phrase].words);
    } else {
        history_op_print(&op->h, to, size);
    }
}

static void trace_op(struct world *world, const struct sim_op *op, const char *what)
{
    if (trace_wanted(&world->trace)) {
        char text[200];
        crowd_describe(op, text, sizeof text);
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
    *c = (struct client){.id = id, .session = SESSION_NONE, .private_key = NO_OP, .doubt = NO_OP};
    c->machine = (uint8_t)(id % world->setup.nodes);
    c->worker = (uint32_t)random_below(chance, world->setup.workers_of[c->machine]);
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
    workload_add_keys(world);
    for (uint32_t i = 0; i < s->clients; i++) {
        client_init(world, i);
    }
    cs->n = s->clients;
}

void crowd_close(struct world *world, struct resp_conn *conn, uint8_t machine, uint32_t worker)
{
    struct clients *cs = &world->clients;
    if (conn != NULL && world->machines[machine].actors[worker].busy) {
        HK_ASSERT(cs->closed_n < sizeof cs->closed / sizeof cs->closed[0]);
        cs->closed[cs->closed_n++] = (struct closed){conn, machine, worker};
    } else {
        resp_conn_destroy(conn);
    }
}

static void hang_up(struct world *world, struct client *c)
{
    crowd_close(world, c->conn, c->machine, c->worker);
    c->conn = NULL;
}

/* Closes for good what was kept for this worker; of every one if machine is NULL. */
static void bury(struct world *world, const struct machine *m, uint32_t worker)
{
    struct clients *cs = &world->clients;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < cs->closed_n; i++) {
        if (m == NULL || (cs->closed[i].machine == m->place && cs->closed[i].worker == worker)) {
            resp_conn_destroy(cs->closed[i].conn);
        } else {
            cs->closed[kept++] = cs->closed[i];
        }
    }
    cs->closed_n = kept;
}

void crowd_deinit(struct world *world)
{
    struct clients *cs = &world->clients;
    for (uint32_t i = 0; i < cs->n; i++) {
        hang_up(world, &cs->at[i]);
    }
    bury(world, NULL, 0);
    for (size_t i = 0; i < cs->ops_n; i++) {
        free(cs->ops[i].bytes);
        free(cs->ops[i].command);
    }
    calendar_deinit(&cs->calendar);
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

/* A sequential reading of the client's private key ends here: what is unknown, or was refused
 * while later operations were under way, breaks it. */
static void abandon_private(struct client *c)
{
    c->private_key = NO_OP;
    c->life++;
}

void crowd_forget(struct world *world)
{
    struct clients *cs = &world->clients;
    for (uint32_t i = 0; i < cs->n; i++) {
        abandon_private(&cs->at[i]);
    }
    for (uint32_t i = 0; i < cs->keys_n; i++) {
        cs->keys[i].value_known = false;
    }
}

void crowd_forget_key(struct world *world, uint32_t key)
{
    struct clients *cs = &world->clients;
    for (uint32_t i = 0; i < cs->n; i++) {
        if (cs->at[i].private_key == key) {
            abandon_private(&cs->at[i]);
        }
    }
    cs->keys[key].value_known = false;
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
    for (nodeset rest = world->operator.wanted; rest != 0; rest &= rest - 1) {
        uint32_t id = cs->n++;
        client_init(world, id);
        struct client *c = &cs->at[id];
        c->machine = nodeset_first(rest);
        c->worker %= world->setup.workers_of[c->machine];
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
    if (op->extra || op->weak) {
        stats->ops_extra++;
        return;
    }
    if (outcome == HISTORY_UNKNOWN) {
        workload_doubt(world, op->key);
        c->doubt = op->key;
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
    for (uint32_t i = a->queue_first; i != op; i = crowd_op(world, i)->next) {
        HK_ASSERT(i != NO_OP);
        before = i;
    }
    uint32_t next = crowd_op(world, op)->next;
    if (before == NO_OP) {
        a->queue_first = next;
    } else {
        crowd_op(world, before)->next = next;
    }
    if (a->queue_last == op) {
        a->queue_last = before;
    }
}

/* The connection breaks, or the client gives it up. What its worker has not seen has no effect; of
 * what it has seen, updates may have one at any time. */
static void client_disconnect(struct world *world, struct client *c)
{
    if (world->setup.sequential) {
        abandon_private(c); /* another session may be behind this one */
    }
    struct machine *m = &world->machines[c->machine];
    struct actor *a = &m->actors[c->worker];
    for (; c->ring_n > 0; c->ring_n--) {
        uint32_t index = c->ring[c->ring_first];
        struct sim_op *op = crowd_op(world, index);
        c->ring_first = (c->ring_first + 1) % WINDOW_MAX;
        if (op->state == SIM_OP_QUEUED) {
            queue_remove(world, a, index);
            finish(world, op, HISTORY_FAILED);
        } else {
            bool begun = op->h.begin_us != 0;
            finish(world, op, begun && updates(op) ? HISTORY_UNKNOWN : HISTORY_FAILED);
            trace_op(world, op, "is asked no more:");
        }
    }
    if (c->session != SESSION_NONE && m->node != NULL) {
        HK_ASSERT(a->closing_n < sizeof a->closing / sizeof a->closing[0]);
        a->closing[a->closing_n++] = c->session;
        machine_notice(m, c->worker);
    }
    hang_up(world, c);
    c->session = SESSION_NONE;
    c->heard = 0;
    c->connection++;
    c->moving = false;
}

static void client_move(struct world *world, struct client *c)
{
    struct random *chance = &world->chance_clients;
    client_disconnect(world, c);
    if (!c->reader) {
        uint8_t before = c->machine;
        c->machine = (uint8_t)random_below(chance, world->setup.machines);
        if (c->machine == before && c->doubt != NO_OP) {
            /* Whoever lost its answer here asks elsewhere. */
            c->machine = (uint8_t)((before + 1) % world->setup.machines);
        }
    }
    uint8_t node = world->machines[c->machine].id;
    c->worker = (uint32_t)random_below(chance, world->setup.workers_of[node]);
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
    struct sim_op *op = crowd_op(world, index);
    op->state = SIM_OP_QUEUED;
    op->arrived_step = world->step;
    op->begin_us = world->now_us;
    op->taken_us = 0;
    op->before = c->ring_n == 0 ? NO_OP : c->ring[(c->ring_first + c->ring_n - 1) % WINDOW_MAX];
    c->ring[(c->ring_first + c->ring_n++) % WINDOW_MAX] = index;
    if (a->queue_first == NO_OP) {
        a->queue_first = index;
    } else {
        crowd_op(world, a->queue_last)->next = index;
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
    uint32_t first = workload_draw(world, c);
    for (uint32_t i = 0; i < world->clients.ops[first].parts; i++) {
        client_issue(world, c, first + i);
    }
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
    struct sim_op *op = crowd_op(world, index);
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
        crowd_describe(op, text, sizeof text);
        world_violation(world, "node %u leaves an operation unanswered for %" PRIu64 " ms: %s%s",
                        c->machine, (world->now_us - op->begin_us) / 1000, text,
                        op->state == SIM_OP_QUEUED ? " (it has not even taken it)" : "");
    }
}

/* ---- For machines ---- */

static void client_go_on(struct world *world, struct client *c);

static void note_calendars(struct world *world)
{
    uint64_t least_ms = UINT64_MAX;
    uint64_t most_ms = 0;
    for (uint32_t i = 0; i < SIM_NODES_MAX; i++) {
        uint64_t wall_ms = machine_wall_ms(&world->machines[i]);
        least_ms = wall_ms < least_ms ? wall_ms : least_ms;
        most_ms = wall_ms > most_ms ? wall_ms : most_ms;
    }
    calendar_note(&world->clients.calendar, world->step, least_ms, most_ms);
}

void crowd_prepare(struct machine *m, uint32_t worker)
{
    struct world *world = m->world;
    struct actor *a = &m->actors[worker];
    struct worker *w = node_worker(m->node, worker);
    note_calendars(world);
    for (uint32_t i = 0; i < a->closing_n; i++) {
        worker_session_close(w, a->closing[i]);
    }
    a->closing_n = 0;
    for (uint32_t i = a->queue_first; i != NO_OP; i = crowd_op(world, i)->next) {
        struct sim_op *op = crowd_op(world, i);
        struct client *c = &world->clients.at[op->client];
        const char *wrong = NULL;
        if (op->arrived_step > m->cutoff_step) {
            return;
        }
        if (c->session == SESSION_NONE) {
            wrong = talk_connect(m, w, c);
        }
        if (wrong == NULL && c->conn != NULL && op->part == 0 && !op->said) {
            wrong = talk_say(world, c, i);
        }
        if (wrong != NULL) {
            world_violation(world, "node %u takes no connection: %s", m->id, wrong);
            return;
        }
        c->ready = worker_session_ready(w, c->session);
    }
}

/* Takes the reply to one command, or one of them, which is whole. */
static void heard(struct machine *m, struct client *c, struct bytes reply, uint32_t carrier)
{
    struct world *world = m->world;
    struct sim_op *op = NULL;
    for (uint32_t i = 0; i < c->ring_n && (op == NULL || op->replied); i++) {
        op = crowd_op(world, c->ring[(c->ring_first + i) % WINDOW_MAX]);
    }
    const char *wrong = op == NULL || op->replied ? "a reply that nobody waits for"
                                                  : talk_hear(m, op, reply, carrier);
    if (wrong != NULL) {
        char text[200] = "";
        if (op != NULL) {
            crowd_describe(op, text, sizeof text);
        }
        world_violation(world, "node %u gives %s: %s", m->id, wrong, text);
        return;
    }
    if (op->quiet && op->replied) {
        queue_remove(world, &m->actors[c->worker], (uint32_t)(op - world->clients.ops));
        op->state = SIM_OP_ANSWERED;
    }
}

/* What the connection has said since the last look. */
static void listen(struct machine *m, struct client *c, uint32_t carrier)
{
    for (;;) {
        struct bytes output = resp_conn_output(c->conn);
        struct bytes rest = bytes_of(output.at + c->heard, output.n - c->heard);
        uint32_t n = rest.n == 0 ? 0 : redis_reply_bytes(rest);
        if (n == 0 || world_broken(m->world)) {
            if (rest.n > 0 && n == 0) {
                world_violation(m->world, "node %u sends a part of a reply", m->id);
            }
            return;
        }
        c->heard += n;
        heard(m, c, bytes_of(rest.at, n), carrier);
    }
}

/* The oldest operation of the client that its node has not taken, or NO_OP. */
static uint32_t oldest_queued(struct world *world, const struct client *c)
{
    for (uint32_t i = 0; i < c->ring_n; i++) {
        uint32_t index = c->ring[(c->ring_first + i) % WINDOW_MAX];
        const struct sim_op *op = crowd_op(world, index);
        if (op->state == SIM_OP_QUEUED) {
            return index;
        }
    }
    return NO_OP;
}

/* The next operation that the client's commands ask for, and as which of its own; NO_OP: none at
 * the moment, because too many answers are under way. Commands without operations are over on the
 * way. */
static uint32_t next_operation(struct machine *m, struct client *c, struct op *op_out)
{
    struct world *world = m->world;
    const struct txn_request *txn;
    enum resp_next next = resp_conn_next(c->conn, world->now_us, true, op_out, &txn);
    listen(m, c, NO_OP);
    uint32_t index = oldest_queued(world, c);
    const struct sim_op *op = index == NO_OP ? NULL : crowd_op(world, index);
    c->ready = false;
    if (next == RESP_AGAIN) {
        machine_notice(m, c->worker);
        return NO_OP;
    }
    if (next == RESP_OP && txn == NULL && op != NULL && op->said && !op->quiet &&
        op->op.kind == op_out->kind && op->op.flags == op_out->flags &&
        bytes_equal(op->op.key, op_out->key)) {
        c->ready = true;
        return index;
    }
    bool waits = next == RESP_WAIT && resp_conn_in_flight(c->conn) > 0;
    bool rests = next == RESP_INPUT && (op == NULL || !op->said);
    if (!waits && !rests && !world_broken(world)) {
        char text[200] = "nothing";
        if (op != NULL) {
            crowd_describe(op, text, sizeof text);
        }
        world_violation(world, "node %u makes %s of a command: %s", m->id,
                        next == RESP_OP ? "another operation" : "no operation", text);
    }
    return NO_OP;
}

/* What its deadline will be: relative ones are reckoned by the calendar of the node. */
static void note_deadline(struct sim_op *op, const struct op *asked)
{
    const struct phrase *phrase = &phrases[op->phrase];
    if (phrase_has_deadline(phrase)) {
        op->h.deadline = (uint64_t)asked->number;
    } else if ((op->op.kind == OP_SET && (op->op.flags & OPF_KEEPTTL) != 0) ||
               op->op.kind == OP_SETRANGE) {
        op->h.deadline = HISTORY_KEEP;
    }
}

static void take(struct machine *m, struct actor *a, uint32_t index, const struct op *asked,
                 struct request *request_out)
{
    struct world *world = m->world;
    struct sim_op *op = crowd_op(world, index);
    queue_remove(world, a, index);
    op->next = a->given_op;
    a->given_op = index;
    op->state = SIM_OP_TAKEN;
    op->taken_us = world->now_us;
    op->h.begin_us = 2 * m->poll_step;
    op->epoch = world->ghost.adopted_epoch[m->place];
    note_deadline(op, asked);
    *request_out = (struct request){
        .session = world->clients.at[op->client].session, .tag = index, .op = *asked};
    trace_note(&world->trace, index);
    trace_op(world, op, "takes");
}

bool crowd_request(struct machine *m, uint32_t worker, struct request *request_out)
{
    struct world *world = m->world;
    struct actor *a = &m->actors[worker];
    uint32_t i = a->queue_first;
    while (i != NO_OP) {
        struct sim_op *op = crowd_op(world, i);
        struct client *c = &world->clients.at[op->client];
        if (op->arrived_step > m->cutoff_step) {
            return false;
        }
        if (!c->ready) {
            i = op->next;
            continue;
        }
        struct op asked = op->op;
        uint32_t index = c->conn == NULL ? i : next_operation(m, c, &asked);
        if (index != NO_OP) {
            take(m, a, index, &asked, request_out);
            return true;
        }
        /* The queue may have changed, but the client is not ready any more. */
        i = a->queue_first;
    }
    return false;
}

void crowd_polled(struct machine *m, uint32_t worker)
{
    struct world *world = m->world;
    struct actor *a = &m->actors[worker];
    while (a->given_op != NO_OP) {
        struct sim_op *op = crowd_op(world, a->given_op);
        free(op->bytes);
        op->bytes = NULL;
        a->given_op = op->next;
    }
    bury(world, m, worker);
    for (uint32_t i = 0; i < world->clients.n; i++) {
        struct client *c = &world->clients.at[i];
        if (c->conn != NULL && c->machine == m->place && c->worker == worker) {
            resp_conn_sent(c->conn, resp_conn_output(c->conn).n);
            c->heard = 0;
            client_go_on(world, c);
        }
    }
}

/* A part of a command has failed: those parts that were not handed out never will be. */
static void skip_parts(struct world *world, struct machine *m, uint32_t index)
{
    const struct sim_op *op = crowd_op(world, index);
    for (uint32_t i = op->part + 1u; i < op->parts; i++) {
        struct sim_op *later = crowd_op(world, index - op->part + i);
        if (later->state == SIM_OP_QUEUED) {
            queue_remove(world, &m->actors[world->clients.at[op->client].worker],
                         index - op->part + i);
            later->state = SIM_OP_ANSWERED;
            later->hidden = true;
        }
    }
}

void crowd_reply(struct machine *m, uint32_t worker, const struct reply *reply)
{
    struct world *world = m->world;
    if (reply->tag >= world->clients.ops_n) {
        world_violation(world, "node %u answers what nobody asked", m->id);
        return;
    }
    struct sim_op *op = crowd_op(world, (uint32_t)reply->tag);
    struct client *c = &world->clients.at[op->client];
    if (m->actors[worker].queue_first != NO_OP) {
        machine_notice(m, worker); /* there is room again for what waits */
    }
    if (op->connection != c->connection) {
        return;
    }
    uint32_t i = 0;
    while (i < c->ring_n &&
           crowd_op(world, c->ring[(c->ring_first + i) % WINDOW_MAX])->state == SIM_OP_ANSWERED) {
        i++;
    }
    if (i == c->ring_n || c->ring[(c->ring_first + i) % WINDOW_MAX] != reply->tag ||
        op->state != SIM_OP_TAKEN || reply->session != c->session) {
        world_violation(world, "node %u answers twice or out of order: operation %" PRIu64, m->id,
                        reply->tag);
        return;
    }
    op->state = SIM_OP_ANSWERED;
    op->number = reply->answer.number;
    op->version = reply->version;
    bool failed = reply->answer.kind == ANSWER_ERROR;
    op->err = failed ? (int)reply->answer.number : HK_OK;
    if (c->conn != NULL) {
        if (failed) {
            skip_parts(world, m, (uint32_t)reply->tag);
        }
        resp_conn_answer(c->conn, &reply->answer, NULL, world->now_us);
        listen(m, c, (uint32_t)reply->tag);
        return;
    }
    op->replied = true;
    op->carrier = (uint32_t)reply->tag;
    const char *wrong = failed ? NULL : understand(m, op, &reply->answer);
    if (wrong != NULL) {
        char text[200];
        crowd_describe(op, text, sizeof text);
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
    crowd_describe(op, text, sizeof text);
    world_violation(world,
                    "a client's own key does not follow the client's order: %s "
                    "(expected ok %d, out %" PRId64 ")",
                    text, f->ok, f->out);
}

/* What comes out is not linearizable, whatever happened meanwhile: values are written once. */
static void tamper(struct world *world, struct sim_op *op)
{
    struct clients *cs = &world->clients;
    struct sim_key *key = &cs->keys[op->key];
    struct tampering *t = &key->tampering;
    struct history_op *h = &op->h;
    bool unique = key->class == KEY_REGISTER || key->class == KEY_GENERAL;
    if (h->kind != HISTORY_READ || !unique || key->private || cs->tampered ||
        (t->seen > 0 && h->begin_us <= t->after_us)) {
        return;
    }
    if (t->seen == 0 && h->out != HISTORY_ABSENT) {
        *t = (struct tampering){1, h->out, h->end_us};
    } else if (t->seen == 1 && h->out != t->first) {
        t->seen = 2;
        t->after_us = h->end_us;
    } else if (t->seen == 2) {
        cs->tampered = true;
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
    if (op->extra || op->weak) {
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
static bool may_fail(struct world *world, const struct sim_op *op)
{
    bool settled = op->begin_us > world->settled_us;
    switch (op->err) {
    case HK_ERR_UNKNOWN:
        return updates(op) && !settled;
    case HK_ERR_UNAVAILABLE:
    case HK_ERR_LOADING:
    case HK_ERR_ROLE: /* no node keeps rows at the moment */
        return !settled;
    case HK_ERR_LOST:
    case HK_ERR_LOSTSLOT:
        if (owned_on(world)) {
            lost_note(world, op->key);
            return !settled && lost_ever(world, op->key);
        }
        return homed_on(world) && (!settled || homed_key_lost(world, op->key));
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
        crowd_describe(op, text, sizeof text);
        world_violation(world, "node %u answers %s: %s", c->machine, hk_err_name(op->err), text);
    }
    bool unknown = op->err == HK_ERR_UNKNOWN;
    finish(world, op, unknown ? HISTORY_UNKNOWN : HISTORY_FAILED);
    bool about_op = op->err == HK_ERR_TYPE || op->err == HK_ERR_OVERFLOW ||
                    op->err == HK_ERR_TOOBIG || op->err == HK_ERR_INVALID;
    c->moving = c->moving || !about_op;
    if (c->reader && (about_op || op->err == HK_ERR_LOSTSLOT)) {
        c->next_key++;
    }
}

/* What stands in the history has the form that the checkers know. */
static void normalize(struct history_op *h)
{
    bool asks = h->kind == HISTORY_DELETE_IF || h->kind == HISTORY_SET_IF ||
                h->kind == HISTORY_SET_ABSENT || h->kind == HISTORY_SET_PRESENT ||
                h->kind == HISTORY_DELETE_PRESENT || h->kind == HISTORY_EXISTS ||
                h->kind == HISTORY_EXPIRE || h->kind == HISTORY_PERSIST;
    h->ok = h->ok || !asks;
}

/* The oldest operation of the client is over, its answer on its way or none to come. */
static void over(struct world *world, struct sim_op *op, struct client *c)
{
    HK_ASSERT(c->ring_n > 0 && c->ring[c->ring_first] == (uint32_t)(op - world->clients.ops));
    c->ring_first = (c->ring_first + 1) % WINDOW_MAX;
    c->ring_n--;
    op->h.end_us = 2 * world->step + 1;
    normalize(&op->h);
    trace_note(&world->trace, (uint64_t)op->h.out ^ (uint64_t)op->err << 32);
    if (op->hidden) {
        finish(world, op, updates(op) && op->h.begin_us != 0 ? HISTORY_UNKNOWN : HISTORY_FAILED);
    } else if (op->err == HK_OK) {
        answered_well(world, op, c);
    } else {
        answered_badly(world, op, c);
    }
    if (trace_wanted(&world->trace)) {
        trace_op(world, op,
                 op->hidden         ? "answers, but not to the client:"
                 : op->err == HK_OK ? "answers"
                                    : hk_err_name(op->err));
    }
}

/* What the client has heard of is over, in its order. */
static void client_go_on(struct world *world, struct client *c)
{
    while (c->ring_n > 0) {
        struct sim_op *op = crowd_op(world, c->ring[c->ring_first]);
        if (op->state != SIM_OP_ANSWERED || !op->replied ||
            (op->carrier != NO_OP && !crowd_op(world, op->carrier)->left)) {
            return;
        }
        over(world, op, c);
        if (c->moving && c->ring_n == 0) {
            client_move(world, c);
            return;
        }
        client_schedule(world, c,
                        world->now_us +
                            random_between(&world->chance_clients, 0, world->setup.think_us));
    }
}

void crowd_answered(struct world *world, uint32_t index)
{
    struct sim_op *op = crowd_op(world, index);
    op->left = true;
    if (op->state != SIM_OP_OVER) {
        client_go_on(world, &world->clients.at[op->client]);
    }
}
