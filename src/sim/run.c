/* One run: builds a world, lets things happen until the end, and has its history checked. */
#include "sim/sim.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/assert.h"
#include "base/flips.h"
#include "sim/judge.h"
#include "sim/replica.h"
#include "sim/world.h"

/* Successes that each client must have after faults have ended. */
#define CALM_OPS 5u

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
    result->rule = format;
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

void world_end(struct world *world, enum sim_verdict verdict, const char *format, ...)
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

/* All wanted nodes serve, in one view that holds all of them as operational; NULL, or what is
 * missing. */
static const char *not_serving(struct world *world, uint8_t i)
{
    const struct view *newest = ghost_newest(world);
    struct machine *m = &world->machines[i];
    if (m->node == NULL) {
        return "is down";
    }
    struct node_status status;
    node_status(m->node, machine_clock(m, world->now_us), &status);
    if (newest == NULL || status.view.epoch != newest->epoch ||
        status.view.generation != newest->generation) {
        return "does not hold the newest view";
    }
    if (!view_operational(newest, i, m->nonce)) {
        return "is not operational";
    }
    if (newest->configured != world->operator.wanted || newest->configured_old != 0) {
        return "holds another configured set than is wanted";
    }
    if (status.epoch_adopted != newest->epoch) {
        return "has a worker in an older epoch";
    }
    if (status.status != VIEW_STATUS_SERVING) {
        return "does not serve";
    }
    return homed_on(world) ? homed_unsettled(m) : NULL;
}

static const char *not_whole(struct world *world, uint8_t *node_out)
{
    for (uint32_t i = 0; i < MACHINES_MAX; i++) {
        const struct machine *m = &world->machines[i];
        bool wanted = i < SIM_NODES_MAX && nodeset_has(world->operator.wanted, (uint8_t)i);
        if (m->node != NULL && !wanted) {
            *node_out = m->id;
            return "still has a process of old";
        }
    }
    if (owned_on(world) && lost_any(world)) {
        *node_out = nodeset_first(world->operator.wanted);
        return "knows of lost objects, as others do";
    }
    for (nodeset rest = world->operator.wanted; rest != 0; rest &= rest - 1) {
        *node_out = nodeset_first(rest);
        const char *missing = not_serving(world, *node_out);
        if (missing != NULL) {
            return missing;
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
    bool clients = crowd_top_up(world, CALM_OPS);
    bool traders = traders_top_up(world, CALM_OPS);
    if (clients && traders && world->settled_us != NEVER) {
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
    traders_explain(world, &why);
    if (world->phase == PHASE_EQUAL) {
        (void)replicas_equal(world, &why);
    }
    if (ghost_stranded(world) || (world->setup.sequential && ghost_turned_over(world))) {
        world_end(world, SIM_STRANDED, "a majority of the members is gone:%s", text_string(&why));
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
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        operator_start(world, i);
    }
}

/* The ghost notices if somebody forms a view. */
static void look_dark(struct world *world)
{
    if (world->now_us - world->dark_us > 4 * world->setup.lease_us) {
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
        if (crowd_idle(world) && traders_idle(world)) {
            enter_phase(world, PHASE_READ);
            crowd_read_all(world);
            traders_read_all(world);
        }
        break;
    case PHASE_READ:
        if (crowd_idle(world) && traders_idle(world)) {
            enter_phase(world, PHASE_EQUAL);
        }
        break;
    case PHASE_EQUAL:
        if (replicas_equal(world, &why)) {
            if (world->setup.sequential) {
                ghost_check_newest(world);
            }
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
    case HAPPENS_TRADE:
        trader_act(world, entry->a);
        break;
    case HAPPENS_DEAL_IMPATIENCE:
        deal_impatient(world, entry->a);
        break;
    case HAPPENS_ROUND:
        crowd_round(world, entry->a);
        traders_round(world, world->setup.round_deals);
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
    case HAPPENS_CUE_TIMEOUT:
        fault_cue_timeout(world, entry->a);
        break;
    case HAPPENS_RETURN:
        operator_start(world, (uint8_t)entry->a);
        break;
    case HAPPENS_HAND_OVER:
        fault_hand_over(world, entry->a);
        break;
    case HAPPENS_OPERATOR:
        operator_round(world);
        break;
    case HAPPENS_HEALING:
        heal(world);
        break;
    case HAPPENS_LOOK:
        look(world);
        break;
    }
}

static bool ends_early(const struct world *world)
{
    return world->config->until != 0 && world->step + 1 >= world->config->until;
}

/* Lets the next thing happen; false: the end. */
static bool go_on(struct world *world)
{
    struct heap_entry entry;
    if (world->phase == PHASE_OVER || world_broken(world) || ends_early(world) ||
        !heap_pop(&world->heap, &entry)) {
        return false;
    }
    world->now_us = entry.at_us;
    world->step++;
    happen(world, &entry);
    return true;
}

/* A thread may be held up between any two of its instructions; here it is between two inputs of one
 * poll. What it has not taken yet when the poll began, it does not see, for its clock is as old. */
void world_hold_up(struct world *world, struct machine *m, uint32_t worker)
{
    struct actor *a = &m->actors[worker];
    uint64_t poll_step = m->poll_step;
    uint64_t cutoff_step = m->cutoff_step;
    trace_line(world, "node %u worker %u is held up in the middle of a poll", m->id, worker);
    a->busy = true;
    m->busy++;
    while ((world->now_us < a->held_until_us || m->state != MACHINE_UP || a->stalls > 0) &&
           go_on(world)) {
    }
    trace_line(world, "node %u worker %u goes on with its poll", m->id, worker);
    m->disturbed_us = world->now_us;
    machine_looks_again(m, worker);
    m->busy--;
    a->busy = false;
    a->held_until_us = 0;
    m->poll_step = poll_step;
    m->cutoff_step = cutoff_step;
    machine_notice(m, worker);
}

static void live(struct world *world)
{
    for (uint32_t i = 0; i < world->setup.rounds_n; i++) {
        world_plan(world, world->setup.rounds[i], HAPPENS_ROUND, world->setup.round_ops, 0, 0,
                   NULL);
    }
    world_plan(world, world->setup.horizon_us, HAPPENS_HEALING, 0, 0, 0, NULL);
    faults_init(world);
    while (go_on(world)) {
    }
    HK_ASSERT(world->phase == PHASE_OVER || world_broken(world) || ends_early(world));
}

void world_new_life(struct world *world)
{
    HK_ASSERT(world->lives_n < sizeof world->lives / sizeof world->lives[0]);
    trace_line(world, "all data is gone");
    world->lives[world->lives_n++] = world->step;
    ghost_forget(world);
    crowd_forget(world);
    traders_forget(world);
    lost_forget(world);
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
    result->plan_n = world->setup.plan_n;
    result->drawn = world->setup.drawn;
    struct random root;
    random_init(&root, seed ^ 0x5eedu);
    random_init(&world->chance_network, random_next(&root));
    random_init(&world->chance_schedule, random_next(&root));
    random_init(&world->chance_clients, random_next(&root));
    random_init(&world->chance_machines, random_next(&root));
    random_init(&world->chance_faults, random_next(&root));
    random_init(&world->chance_traders, random_next(&root));
    trace_init(&world->trace, config->trace);
    if (config->trace != NULL) {
        fputs(text_string(&result->plan), config->trace);
    }
    world->lives_n = 1;
    world->ghost.generations_allowed = 1;
    operator_init(world);
    for (uint32_t i = 0; i < MACHINES_MAX; i++) {
        machine_init(&world->machines[i], world, (uint8_t)(i < SIM_NODES_MAX ? i : 0), (uint8_t)i);
    }
    crowd_init(world);
    traders_init(world);
    death_init(world);
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
    traders_deinit(world);
    death_deinit(world);
    ghost_deinit(&world->ghost);
    homed_deinit(&world->homed);
    lost_deinit(world);
}

static void sum_up(struct world *world)
{
    struct sim_stats *stats = &world->result->stats;
    stats->virtual_us = world->now_us;
    stats->faults[SIM_FAULT_CLOCK] += world->setup.clocks_differ;
    stats->faults[SIM_FAULT_DRIFT] += world->setup.drift;
    stats->faults[SIM_FAULT_VERSIONS] += world->setup.versions;
    for (uint32_t i = 0; i < SIM_FAULTS; i++) {
        stats->fault_kinds += stats->faults[i] > 0;
    }
    world->result->steps = world->step;
    world->result->hash = world->trace.hash ^ world->config->waver;
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
        judge_histories(world);
    }
    world_deinit(world);
    sum_up(world);
    free(world);
}

void sim_result_deinit(struct sim_result *result)
{
    text_deinit(&result->plan);
    text_deinit(&result->report);
    free(result->refused.ops);
}
