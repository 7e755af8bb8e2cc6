/* One run: builds a world, lets things happen until the end, and has its history checked. */
#include "sim/sim.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/flips.h"
#include "check/history.h"
#include "sim/replica.h"
#include "sim/world.h"

/* Successes that each client must have after faults have ended. */
#define CALM_OPS 5u
/* States that the checker may visit for each key. */
#define STATES_MAX 3000000u

const char *const sim_verdict_names[SIM_VERDICTS] = {
    [SIM_SOUND] = "sound",
    [SIM_VIOLATION] = "violation",
    [SIM_STRANDED] = "stranded",
    [SIM_TOO_HARD] = "too hard",
};

void world_plan(struct world *world, uint64_t at_us, enum happening kind, uint32_t a, uint32_t b,
                uint32_t token, void *what)
{
    HK_ASSERT(at_us >= world->now_us);
    heap_push(&world->heap,
              (struct heap_entry){
                  .at_us = at_us, .kind = kind, .a = a, .b = b, .token = token, .what = what});
}

static void give_verdict(struct world *world, enum sim_verdict verdict, const char *format,
                         va_list list)
{
    struct sim_result *result = world->result;
    if (result->verdict == SIM_VIOLATION || result->verdict == verdict) {
        return;
    }
    result->verdict = verdict;
    text_add(&result->report, "step %" PRIu64 ", %" PRIu64 ".%03" PRIu64 " ms: ", world->step,
             world->now_us / 1000, world->now_us % 1000);
    text_add_list(&result->report, format, list);
    text_add(&result->report, "\n");
    trace_line(world, "%s: %s", sim_verdict_names[verdict], text_string(&result->report));
}

void world_violation(struct world *world, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    give_verdict(world, SIM_VIOLATION, format, list);
    va_end(list);
}

static void __attribute__((format(printf, 3, 4)))
end_otherwise(struct world *world, enum sim_verdict verdict, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    give_verdict(world, verdict, format, list);
    va_end(list);
}

void world_befell(struct world *world, enum sim_fault kind)
{
    world->result->stats.faults[kind]++;
}

/* ---- After faults have ended ---- */

/* All nodes serve, in one view that holds all of them as operational; NULL, or what is missing. */
static const char *not_whole(struct world *world, uint8_t *node_out)
{
    const struct view *newest = ghost_newest(world);
    for (uint32_t i = SIM_NODES_MAX; i < MACHINES_MAX; i++) {
        if (world->machines[i].node != NULL) {
            *node_out = world->machines[i].id;
            return "still has an old process";
        }
    }
    for (uint8_t i = 0; i < world->setup.nodes; i++) {
        struct machine *m = &world->machines[i];
        *node_out = i;
        if (m->node == NULL) {
            return "is down";
        }
        struct node_status status;
        node_status(m->node, machine_clock(m, world->now_us), &status);
        if (newest == NULL || status.view.epoch != newest->epoch) {
            return "does not hold the newest view";
        }
        if (!view_operational(newest, i, m->nonce)) {
            return "is not operational";
        }
        if (status.epoch_adopted != newest->epoch) {
            return "has a worker in an older epoch";
        }
        if (status.status != VIEW_STATUS_SERVING) {
            return "does not serve";
        }
    }
    return NULL;
}

static void enter_phase(struct world *world, enum phase phase)
{
    static const char *const names[] = {"safety", "calm",     "drain", "read",
                                        "equal",  "blackout", "over"};
    world->phase = phase;
    trace_line(world, "phase: %s", names[phase]);
    trace_note(&world->trace, phase);
}

/* Once the world has settled, it stays as it is: nothing gives anybody a reason to suspect. */
static void look_settled(struct world *world)
{
    uint8_t node = 0;
    const char *missing = not_whole(world, &node);
    if (missing != NULL && world->settled_us != NEVER) {
        world_violation(world, "all was well for %" PRIu64 " ms, and now node %u %s",
                        (world->now_us - world->whole_since_us) / 1000, node, missing);
    } else if (missing != NULL) {
        world->whole_since_us = NEVER;
    } else if (world->whole_since_us == NEVER) {
        world->whole_since_us = world->now_us;
    } else if (world->settled_us == NEVER &&
               world->now_us - world->whole_since_us > 2 * world->setup.lease_us &&
               world->now_us - world->healed_us > world->setup.life_us) {
        trace_line(world, "the world has settled");
        world->settled_us = world->now_us;
    }
}

static void look_calm(struct world *world)
{
    if (crowd_top_up(world, CALM_OPS) && world->settled_us != NEVER) {
        enter_phase(world, PHASE_DRAIN);
    }
}

static void explain_clients(struct world *world, struct text *why)
{
    for (uint32_t i = 0; i < world->clients.n; i++) {
        const struct client *c = &world->clients.at[i];
        if (c->ring_n > 0 || (c->reader && c->next_key < world->clients.keys_n) ||
            (!c->reader && c->ok_calm < CALM_OPS)) {
            text_add(why, " client %u at node %u (%u done, %u under way)", i, c->machine,
                     c->reader ? c->next_key : c->ok_calm, c->ring_n);
        }
    }
}

/* Time is up: says what is still not well. */
static void not_well(struct world *world)
{
    static const char *const wants[] = {"", "come back", "end", "answer every read", "become equal",
                                        "", ""};
    struct text why = {0};
    uint8_t node = 0;
    const char *missing = not_whole(world, &node);
    if (missing != NULL) {
        text_add(&why, " node %u %s;", node, missing);
    }
    explain_clients(world, &why);
    if (world->phase == PHASE_EQUAL) {
        (void)replicas_equal(world, &why);
    }
    if (ghost_stranded(world)) {
        end_otherwise(world, SIM_STRANDED, "a majority of the members is gone:%s",
                      text_string(&why));
    } else {
        world_violation(world, "faults ended %" PRIu64 " ms ago, and the world does not %s:%s",
                        (world->now_us - world->healed_us) / 1000, wants[world->phase],
                        text_string(&why));
    }
    text_deinit(&why);
}

/* In some runs the power of all nodes fails at the end. Their data is gone, and their state files
 * are not: they must refuse to begin a new cluster. */
static void black_out(struct world *world)
{
    if (!world->setup.blackout) {
        enter_phase(world, PHASE_OVER);
        return;
    }
    enter_phase(world, PHASE_BLACKOUT);
    world->dark_us = world->now_us;
    for (uint32_t i = 0; i < MACHINES_MAX; i++) {
        if (world->machines[i].node == NULL) {
            continue;
        }
        machine_stop(&world->machines[i], true);
    }
    ghost_forget(world);
    for (uint32_t i = 0; i < world->setup.nodes; i++) {
        machine_start(&world->machines[i]);
    }
}

static void look_dark(struct world *world)
{
    if (ghost_newest(world) != NULL) {
        world_violation(world, "after a loss of all power the nodes form a new cluster by "
                               "themselves");
    } else if (world->now_us - world->dark_us > 4 * world->setup.lease_us) {
        enter_phase(world, PHASE_OVER);
    }
}

static void look(struct world *world)
{
    struct text why = {0};
    if (world->phase != PHASE_BLACKOUT) {
        look_settled(world);
    }
    switch (world->phase) {
    case PHASE_CALM:
        look_calm(world);
        break;
    case PHASE_DRAIN:
        if (crowd_idle(world)) {
            enter_phase(world, PHASE_READ);
            crowd_read_all(world);
        }
        break;
    case PHASE_READ:
        if (crowd_idle(world)) {
            enter_phase(world, PHASE_EQUAL);
        }
        break;
    case PHASE_EQUAL:
        if (replicas_equal(world, &why)) {
            black_out(world);
        }
        break;
    case PHASE_BLACKOUT:
        look_dark(world);
        break;
    case PHASE_SAFETY:
    case PHASE_OVER:
        break;
    }
    text_deinit(&why);
    if (world->phase == PHASE_OVER || world_broken(world)) {
        return;
    }
    uint64_t calm_us = world->now_us - world->healed_us;
    if (world->phase == PHASE_BLACKOUT) {
        calm_us = 0;
    }
    bool hopeless =
        ghost_stranded(world) && calm_us > world->setup.life_us + 8 * world->setup.lease_us;
    if (hopeless || calm_us > world->setup.liveness_us) {
        not_well(world);
        return;
    }
    world_plan(world, world->now_us + world->setup.lease_us / 16, HAPPENS_LOOK, 0, 0, 0, NULL);
}

static void heal(struct world *world)
{
    faults_heal(world);
    world->healed_us = world->now_us;
    enter_phase(world, PHASE_CALM);
    world_plan(world, world->now_us, HAPPENS_LOOK, 0, 0, 0, NULL);
}

/* ---- The loop ---- */

static void happen(struct world *world, const struct heap_entry *entry)
{
    switch ((enum happening)entry->kind) {
    case HAPPENS_POLL:
        if (world->machines[entry->a].actors[entry->b].poll_token == entry->token) {
            machine_poll(&world->machines[entry->a], entry->b);
        }
        break;
    case HAPPENS_ARRIVAL:
        network_arrive(world, (uint8_t)entry->a, entry->what);
        break;
    case HAPPENS_ACT:
        client_act(world, entry->a);
        break;
    case HAPPENS_IMPATIENCE:
        client_impatient(world, entry->a);
        break;
    case HAPPENS_ROUND:
        crowd_round(world, entry->a);
        break;
    case HAPPENS_FAULT:
        fault_begin(world, entry->a);
        break;
    case HAPPENS_TRAP_TIMEOUT:
        fault_trap_timeout(world, entry->a);
        break;
    case HAPPENS_FAULT_END:
        fault_end(world, entry->a);
        break;
    case HAPPENS_HEALING:
        heal(world);
        break;
    case HAPPENS_LOOK:
        look(world);
        break;
    }
}

static void live(struct world *world)
{
    for (uint32_t i = 0; i < world->setup.rounds_n; i++) {
        world_plan(world, world->setup.rounds[i], HAPPENS_ROUND, world->setup.round_ops, 0, 0,
                   NULL);
    }
    world_plan(world, world->setup.horizon_us, HAPPENS_HEALING, 0, 0, 0, NULL);
    faults_init(world);
    struct heap_entry entry;
    while (world->phase != PHASE_OVER && !world_broken(world) && heap_pop(&world->heap, &entry)) {
        world->now_us = entry.at_us;
        world->step++;
        happen(world, &entry);
    }
    HK_ASSERT(world->phase == PHASE_OVER || world_broken(world));
}

/* ---- The history ---- */

static struct history gather(const struct world *world, bool registers_only)
{
    const struct clients *cs = &world->clients;
    struct history history = {.ops = calloc(cs->ops_n + 1, sizeof *history.ops)};
    HK_ASSERT(history.ops != NULL);
    for (size_t i = 0; i < cs->ops_n; i++) {
        const struct sim_op *op = &cs->ops[i];
        bool wanted = !registers_only || cs->keys[op->key].class == KEY_REGISTER;
        /* What no worker ever saw has no effect, and no beginning. */
        if (op->extra || !wanted || op->h.begin_us == 0) {
            continue;
        }
        struct history_op h = op->h;
        if (op->state != SIM_OP_OVER || h.outcome != HISTORY_OK) {
            h.out = HISTORY_ABSENT;
            h.ok = false;
        }
        const char *invalid = history_op_invalid(&h);
        if (invalid != NULL) {
            char text[200];
            history_op_print(&h, text, sizeof text);
            fprintf(stderr, "history: %s: %s\n", invalid, text);
            HK_ASSERT(invalid == NULL);
        }
        history.ops[history.n++] = h;
    }
    return history;
}

/* When somebody first read the value that the operation wrote; UINT64_MAX: nobody did. */
static uint64_t first_seen(const struct clients *cs, const struct sim_op *op)
{
    uint64_t seen = UINT64_MAX;
    for (size_t i = 0; i < cs->ops_n; i++) {
        const struct history_op *h = &cs->ops[i].h;
        if (!cs->ops[i].extra && cs->ops[i].key == op->key && h->outcome == HISTORY_OK &&
            h->kind == HISTORY_READ && h->out == op->h.in && h->end_us < seen) {
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
        if (op->extra || op->h.in == HISTORY_ABSENT || op->h.begin_us == 0 ||
            cs->keys[op->key].class == KEY_COUNTER) {
            continue;
        }
        uint64_t seen = UINT64_MAX;
        for (uint32_t before = op->before; before != NO_OP; before = cs->ops[before].before) {
            struct sim_op *earlier = &cs->ops[before];
            if (earlier->extra || !op_is_rmw(&earlier->op) || earlier->h.outcome != HISTORY_OK ||
                earlier->h.end_us < op->h.begin_us) {
                continue;
            }
            seen = seen == UINT64_MAX ? first_seen(cs, op) : seen;
            if (seen < earlier->h.end_us) {
                earlier->h.end_us = seen;
            }
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
        static const char *const classes[] = {"register", "counter", "general", "extra"};
        world_violation(world,
                        "the history of key %" PRIu64 " (a %s) is not linearizable; times "
                        "are steps, doubled:\n%s",
                        report->key, classes[world->clients.keys[report->key].class], report->text);
        if (trace_wanted(&world->trace)) {
            history_print(history, world->trace.to);
        }
        break;
    }
    case CHECK_TOO_HARD:
        end_otherwise(world, SIM_TOO_HARD, "the history of key %" PRIu64 " is too hard to check",
                      report->key);
        break;
    case CHECK_NOMEM:
        end_otherwise(world, SIM_TOO_HARD, "no memory to check the history");
        break;
    }
}

static void check_histories(struct world *world)
{
    tighten(world);
    struct history registers = gather(world, true);
    struct check_report report = {0};
    judge(world, &registers, check_registers(&registers, &report), &report);
    free(registers.ops);
    struct history all = gather(world, false);
    report = (struct check_report){0};
    judge(world, &all, check_linearizable(&all, STATES_MAX, &report), &report);
    free(all.ops);
}

/* ---- Beginning and end ---- */

static void world_init(struct world *world, const struct sim_config *config, uint64_t seed,
                       struct sim_result *result)
{
    world->config = config;
    world->result = result;
    world->whole_since_us = world->settled_us = NEVER;
    setup_draw(config, seed, &world->setup);
    setup_print(&world->setup, &result->plan);
    struct random root;
    random_init(&root, seed ^ 0x5eedu);
    random_init(&world->chance_network, random_next(&root));
    random_init(&world->chance_schedule, random_next(&root));
    random_init(&world->chance_clients, random_next(&root));
    random_init(&world->chance_machines, random_next(&root));
    random_init(&world->chance_faults, random_next(&root));
    trace_init(&world->trace, config->trace);
    if (config->trace != NULL) {
        fputs(text_string(&result->plan), config->trace);
    }
    for (uint32_t i = 0; i < MACHINES_MAX; i++) {
        machine_init(&world->machines[i], world, (uint8_t)(i < SIM_NODES_MAX ? i : 0), (uint8_t)i);
    }
    crowd_init(world);
}

static void world_deinit(struct world *world)
{
    for (uint32_t i = 0; i < MACHINES_MAX; i++) {
        machine_deinit(&world->machines[i]);
    }
    struct heap_entry entry;
    while (heap_pop(&world->heap, &entry)) {
        if (entry.kind == HAPPENS_ARRIVAL) {
            parcel_destroy(entry.what);
        }
    }
    heap_deinit(&world->heap);
    crowd_deinit(world);
    ghost_deinit(&world->ghost);
}

static void sum_up(struct world *world)
{
    struct sim_stats *stats = &world->result->stats;
    stats->virtual_us = world->now_us;
    if (world->setup.clocks_differ) {
        stats->faults[SIM_FAULT_CLOCK] = 1;
    }
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        stats->fault_kinds += stats->faults[i] > 0;
    }
    world->result->hash = world->trace.hash;
    if (world_broken(world)) {
        text_add(&world->result->report, "%s", text_string(&world->result->plan));
    }
}

void sim_run(const struct sim_config *config, uint64_t seed, struct sim_result *result_out)
{
#ifdef HK_MUTANTS
    hk_flips_on = config->flips_on;
#endif
    *result_out = (struct sim_result){.verdict = SIM_SOUND};
    struct world *world = calloc(1, sizeof *world);
    HK_ASSERT(world != NULL);
    world_init(world, config, seed, result_out);
    live(world);
    if (result_out->verdict != SIM_VIOLATION) {
        check_histories(world);
    }
    world_deinit(world);
    sum_up(world);
    free(world);
}

void sim_result_deinit(struct sim_result *result)
{
    text_deinit(&result->plan);
    text_deinit(&result->report);
}
