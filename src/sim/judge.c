#include "sim/judge.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/meta.h"
#include "check/history.h"
#include "check/sequential.h"
#include "engine/hermes/hermes.h"
#include "sim/phrase.h"
#include "sim/world.h"

/* States that the checker may visit for each key. */
#define STATES_MAX 3000000u

/* A calendar that has not shown a time by the end of the run has not shown it to anybody. */
static void bound_deadline(const struct world *world, struct history_op *h)
{
    if (h->kind == HISTORY_TTL || h->deadline == 0 || h->deadline == HISTORY_KEEP) {
        return;
    }
    const struct calendar *calendar = &world->clients.calendar;
    uint64_t earliest = calendar_earliest(calendar, h->deadline);
    uint64_t latest = calendar_latest(calendar, h->deadline);
    h->not_before_us = 2 * (earliest == UINT64_MAX ? world->step + 1 : earliest);
    h->not_after_us = latest == UINT64_MAX ? 0 : 2 * latest - 1;
    if (h->not_after_us != 0 && h->not_after_us < h->not_before_us) {
        h->not_after_us = h->not_before_us;
    }
}

/* Whether the operation belongs into the history of that life. What no worker ever saw has no
 * effect, and no beginning. */
static bool is_wanted(const struct world *world, const struct sim_op *op, uint32_t life)
{
    uint64_t from = world->lives[life];
    uint64_t to = life + 1 < world->lives_n ? world->lives[life + 1] : UINT64_MAX / 2;
    return !op->extra && !op->weak && op->h.begin_us > 2 * from && op->h.begin_us <= 2 * to;
}

static struct history_op history_of(const struct world *world, const struct sim_op *op)
{
    struct history_op h = op->h;
    if (op->state != SIM_OP_OVER || h.outcome != HISTORY_OK) {
        h.out = HISTORY_ABSENT;
        h.ok = false;
    }
    bound_deadline(world, &h);
    const char *invalid = history_op_invalid(&h);
    if (invalid != NULL) {
        char text[200];
        history_op_print(&h, text, sizeof text);
        fprintf(stderr, "history: %s: %s\n", invalid, text);
        HK_ASSERT(invalid == NULL);
    }
    return h;
}

static struct history gather(const struct world *world, bool registers_only, uint32_t life)
{
    const struct clients *cs = &world->clients;
    size_t most = cs->ops_n + world->homed.n + world->losses.n + 1;
    struct history history = {.ops = calloc(most, sizeof *history.ops)};
    HK_ASSERT(history.ops != NULL);
    for (size_t i = 0; i < cs->ops_n; i++) {
        const struct sim_op *op = &cs->ops[i];
        bool only_register = cs->keys[op->key].class == KEY_REGISTER &&
                             !homed_emptied(world, op->key, life) &&
                             !lost_emptied(world, op->key, life);
        if (is_wanted(world, op, life) && (!registers_only || only_register)) {
            history.ops[history.n++] = history_of(world, op);
        }
    }
    if (!registers_only) {
        history.n += homed_deletions(world, life, cs->n, history.ops + history.n);
        history.n += lost_deletions(world, life, cs->n, history.ops + history.n);
    }
    return history;
}

/* When somebody first read the value that the operation wrote; UINT64_MAX: nobody did. */
static uint64_t first_seen(const struct clients *cs, const struct sim_op *op)
{
    uint64_t seen = UINT64_MAX;
    for (size_t i = 0; i < cs->ops_n; i++) {
        const struct history_op *h = &cs->ops[i].h;
        if (!cs->ops[i].extra && !cs->ops[i].weak && cs->ops[i].key == op->key &&
            h->outcome == HISTORY_OK && h->kind == HISTORY_READ && h->out == op->h.in &&
            h->end_us < seen) {
            seen = h->end_us;
        }
    }
    return seen;
}

/* A read-modify-write is decided before later updates of its session begin (docs/protocols/
 * hermes.md, rule 13). So whoever sees what such an update wrote knows that the read-modify-write
 * has taken effect, though its answer may come later: it ends, at the latest, there. */
static void tighten(const struct world *world)
{
    const struct clients *cs = &world->clients;
    for (size_t i = 0; i < cs->ops_n; i++) {
        const struct sim_op *op = &cs->ops[i];
        /* Sums may equal what somebody wrote; elsewhere each value is written once. */
        if (op->extra || op->weak || op->h.in == HISTORY_ABSENT || op->h.begin_us == 0 ||
            cs->keys[op->key].class == KEY_COUNTER || cs->keys[op->key].class == KEY_LENGTH) {
            continue;
        }
        uint64_t seen = UINT64_MAX;
        for (uint32_t before = op->before; before != NO_OP; before = cs->ops[before].before) {
            struct sim_op *earlier = &cs->ops[before];
            if (earlier->extra || earlier->weak || !op_is_rmw(&earlier->op) ||
                earlier->h.outcome != HISTORY_OK || earlier->h.end_us < op->h.begin_us) {
                continue;
            }
            seen = seen == UINT64_MAX ? first_seen(cs, op) : seen;
            if (seen < earlier->h.end_us) {
                earlier->h.end_us = seen;
            }
        }
    }
}

/* Each connection of a client is a session. */
static struct sequential_history gather_sequential(const struct world *world, uint32_t life)
{
    const struct clients *cs = &world->clients;
    struct sequential_history history = {.ops = calloc(cs->ops_n + 1, sizeof *history.ops)};
    uint32_t first[CLIENTS_MAX + SIM_NODES_MAX];
    uint32_t sessions = 0;
    HK_ASSERT(history.ops != NULL);
    for (uint32_t i = 0; i < cs->n; i++) {
        first[i] = sessions;
        sessions += cs->at[i].connection + 1;
    }
    for (size_t i = 0; i < cs->ops_n; i++) {
        const struct sim_op *op = &cs->ops[i];
        if (is_wanted(world, op, life)) {
            history.ops[history.n++] = (struct sequential_op){
                .h = history_of(world, op),
                .version = op->h.outcome == HISTORY_OK ? stamp_version(op->version) : 0,
                .session = first[op->client] + op->connection,
                .perhaps = op_updates(&op->op), /* a SETRANGE within the value, say */
            };
        }
    }
    return history;
}

static void judge_sequential(struct world *world, uint32_t life)
{
    struct sequential_history history = gather_sequential(world, life);
    struct check_report report = {0};
    enum check_result result = check_sequential(&history, &report);
    world->result->stats.states += report.states;
    HK_ASSERT(result != CHECK_NOMEM);
    if (result == CHECK_REFUSED) {
        world_violation(world,
                        "the history is not sequentially consistent; times are steps, "
                        "doubled:\n%s",
                        report.text);
    }
    free(history.ops);
}

static void keep_refused(struct world *world, const struct history *history, uint64_t key)
{
    struct history *refused = &world->result->refused;
    free(refused->ops);
    *refused = (struct history){.ops = calloc(history->n, sizeof *refused->ops)};
    HK_ASSERT(refused->ops != NULL);
    for (size_t i = 0; i < history->n; i++) {
        if (history->ops[i].key == key) {
            refused->ops[refused->n++] = history->ops[i];
        }
    }
}

static void judge(struct world *world, const struct history *history, enum check_result result,
                  const struct check_report *report)
{
    world->result->stats.states += report->states;
    switch (result) {
    case CHECK_ACCEPTED:
        break;
    case CHECK_REFUSED: {
        world_violation(world,
                        "the history of key %" PRIu64 " (a %s) is not linearizable; times "
                        "are steps, doubled:\n%s",
                        report->key, key_class_names[world->clients.keys[report->key].class],
                        report->text);
        keep_refused(world, history, report->key);
        if (trace_wanted(&world->trace)) {
            history_print(history, world->trace.to);
        }
        break;
    }
    case CHECK_TOO_HARD:
        world_end(world, SIM_TOO_HARD, "the history of key %" PRIu64 " is too hard to check",
                  report->key);
        break;
    case CHECK_NOMEM:
        world_end(world, SIM_TOO_HARD, "no memory to check the history");
        break;
    }
}

/* The cluster may have begun more than once. Between two lives no process of the first is left, so
 * what had an unknown outcome then cannot happen any more: each life has a history of its own. */
void judge_histories(struct world *world)
{
    if (world->setup.engine == &hermes_ops) {
        tighten(world);
    }
    /* What was seen counts in stranded runs as well; and what is too hard hides no other fault. */
    for (uint32_t life = 0; life < world->lives_n && world->result->verdict != SIM_VIOLATION;
         life++) {
        if (traders_on(world)) {
            deal_judge(world, life);
        }
        if (world->setup.sequential) {
            judge_sequential(world, life);
            continue;
        }
        struct history registers = gather(world, true, life);
        struct check_report report = {0};
        judge(world, &registers, check_registers(&registers, &report), &report);
        free(registers.ops);
        struct history all = gather(world, false, life);
        report = (struct check_report){0};
        judge(world, &all, check_linearizable(&all, STATES_MAX, &report), &report);
        free(all.ops);
    }
}
