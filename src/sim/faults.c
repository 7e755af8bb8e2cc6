#include "sim/faults.h"

#include "base/assert.h"
#include "sim/world.h"

/* A fault that would take the majority away is put off so often before it is skipped. */
#define DEFERRALS_MAX 12u
#define TRAP_US 20000u

static struct fault *fault_at(struct world *world, uint32_t i)
{
    HK_ASSERT(i < world->setup.plan_n);
    return &world->setup.plan[i];
}

static nodeset all_nodes(const struct world *world)
{
    return ((nodeset)1 << world->setup.machines) - 1;
}

void faults_init(struct world *world)
{
    nodeset late = 0;
    for (uint32_t i = 0; i < world->setup.plan_n; i++) {
        const struct fault *f = &world->setup.plan[i];
        if (f->off) {
            continue;
        }
        if (f->kind == SIM_FAULT_LATE) {
            late |= nodeset_of(f->node);
        }
        world_plan(world, f->at_us, HAPPENS_FAULT, i, 0, 0, NULL);
    }
    for (uint8_t i = 0; i < world->setup.nodes; i++) {
        if (!nodeset_has(late, i)) {
            machine_start(&world->machines[i]);
        }
    }
}

static void activate(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    world->faults[i].phase = FAULT_ACTIVE;
    world_befell(world, f->kind);
    if (trace_wanted(&world->trace)) {
        struct text text = {0};
        fault_print(f, &text);
        trace_line(world, "fault %u begins, planned at %s", i, text_string(&text));
        text_deinit(&text);
    }
    world_plan(world, world->now_us + f->lasts_us, HAPPENS_FAULT_END, i, 0, 0, NULL);
}

static void defer(struct world *world, uint32_t i)
{
    struct fault_run *run = &world->faults[i];
    run->phase = FAULT_WAITING;
    if (run->deferred++ < DEFERRALS_MAX) {
        world_plan(world, world->now_us + world->setup.lease_us / 4, HAPPENS_FAULT, i, 0, 0, NULL);
    } else {
        run->phase = FAULT_SKIPPED;
        world->result->stats.faults_skipped++;
    }
}

/* Links from `from` to `to`, and with both also back. */
static void change_links(struct world *world, const struct fault *f, nodeset from, nodeset to,
                         bool both, int by)
{
    for (uint8_t a = 0; a < world->setup.machines; a++) {
        for (uint8_t b = 0; b < world->setup.machines; b++) {
            bool there = nodeset_has(from, a) && nodeset_has(to, b);
            bool back = both && nodeset_has(from, b) && nodeset_has(to, a);
            if (a != b && (there || back)) {
                network_cut(world, a, b, f->spares_old, by);
            }
        }
    }
}

static bool is_cut(const struct fault *f)
{
    return f->kind == SIM_FAULT_PARTITION || f->kind == SIM_FAULT_BRIDGE ||
           f->kind == SIM_FAULT_ONEWAY;
}

static void change_partition(struct world *world, const struct fault *f, int by)
{
    nodeset node = nodeset_of(f->node);
    if (f->kind == SIM_FAULT_PARTITION) {
        change_links(world, f, f->side, all_nodes(world) & ~f->side, true, by);
    } else if (f->kind == SIM_FAULT_BRIDGE) {
        change_links(world, f, node, nodeset_of(f->other), true, by);
    } else if (f->outwards) {
        change_links(world, f, node, f->side, false, by);
    } else {
        change_links(world, f, f->side, node, false, by);
    }
}

/* ---- Faults of processes ---- */

static void set_trap(struct world *world, uint32_t i, enum machine_trap trap)
{
    struct machine *m = &world->machines[fault_at(world, i)->node];
    m->trap = trap;
    m->trap_fault = i;
    world->faults[i].phase = FAULT_TRAPPED;
    world_plan(world, world->now_us + TRAP_US, HAPPENS_TRAP_TIMEOUT, i, 0, 0, NULL);
}

static void begin_crash(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    struct machine *m = &world->machines[f->node];
    if (m->node == NULL || m->leaving || m->busy > 0 || !ghost_may_lose(world, f->node)) {
        defer(world, i);
    } else if (f->mid && m->state == MACHINE_UP && m->trap == TRAP_NONE) {
        set_trap(world, i, TRAP_CRASH);
    } else {
        activate(world, i);
        machine_stop(m, true);
    }
}

static void begin_pause(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    struct machine *m = &world->machines[f->node];
    if (m->state != MACHINE_UP) {
        defer(world, i);
    } else if (f->mid && m->trap == TRAP_NONE) {
        set_trap(world, i, TRAP_PAUSE);
    } else {
        activate(world, i);
        machine_pause(m);
    }
}

/* Whether nothing else befalls the machine, so that its process can be moved. */
static bool is_untouched(const struct machine *m)
{
    for (uint32_t i = 0; i < SIM_WORKERS_MAX; i++) {
        if (m->actors[i].stalls > 0) {
            return false;
        }
    }
    return m->state == MACHINE_UP && m->slow == 1 && m->busy == 0 && !m->leaving;
}

static struct machine *free_place(struct world *world)
{
    for (uint32_t i = SIM_NODES_MAX; i < MACHINES_MAX; i++) {
        if (world->machines[i].node == NULL) {
            return &world->machines[i];
        }
    }
    return NULL;
}

static bool may_split(struct world *world, const struct fault *f)
{
    struct machine *m = &world->machines[f->node];
    return is_untouched(m) && ghost_may_lose(world, f->node) && free_place(world) != NULL;
}

static void split(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    struct machine *m = &world->machines[f->node];
    struct machine *zombie = free_place(world);
    struct fault_run *run = &world->faults[i];
    activate(world, i);
    machine_pause(m);
    machine_split(m, zombie, !f->reboot);
    run->place = zombie->place;
    zombie->hears = f->deaf ? 0 : ~(nodeset)0;
    run->nonce = zombie->nonce;
    operator_start(world, f->node);
}

static void begin_zombie(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    if (world->machines[f->node].trap != TRAP_NONE || !may_split(world, f)) {
        defer(world, i);
    } else if (f->mid) {
        set_trap(world, i, TRAP_ZOMBIE);
    } else {
        split(world, i);
    }
}

/* The old process goes on, but nobody lets two processes pass for one node for long. */
static void end_zombie(struct world *world, uint32_t i)
{
    struct machine *zombie = &world->machines[world->faults[i].place];
    if (zombie->node != NULL && zombie->nonce == world->faults[i].nonce) {
        zombie->hears = fault_at(world, i)->deaf ? fault_at(world, i)->side : ~(nodeset)0;
        machine_resume(zombie);
        world_plan(world, world->now_us + 6 * world->setup.lease_us, HAPPENS_TRAP_TIMEOUT, i, 0, 0,
                   NULL);
    }
}

static void bury_zombie(struct world *world, uint32_t i)
{
    struct machine *zombie = &world->machines[world->faults[i].place];
    if (zombie->node == NULL || zombie->nonce != world->faults[i].nonce) {
        return;
    }
    const struct view *newest = ghost_newest(world);
    bool member = newest != NULL && view_has(newest, zombie->id, zombie->nonce);
    /* Once the faults are over nothing else goes, and two for one node hold a change up. */
    bool needed = member && !ghost_may_lose(world, zombie->id) &&
                  (world->phase == PHASE_SAFETY || newest->configured_old != 0);
    if (zombie->busy > 0 || needed) {
        world_plan(world, world->now_us + world->setup.lease_us, HAPPENS_TRAP_TIMEOUT, i, 0, 0,
                   NULL);
    } else {
        machine_stop(zombie, true);
    }
}

static void begin_stall(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    struct machine *m = &world->machines[f->node];
    struct actor *a = &m->actors[f->worker];
    activate(world, i);
    if (f->within) {
        a->held_until_us = world->now_us + f->lasts_us;
        return;
    }
    if (a->stalls++ == 0) {
        a->stalled_us = world->now_us;
    }
    a->poll_at_us = NEVER;
    a->poll_token++;
    m->disturbed_us = world->now_us;
    if (f->stale && m->state == MACHINE_UP && a->stale_us == 0) {
        a->stale_us = world->now_us;
        a->stale_step = world->step;
    }
}

/* A process that may not leave yet, because too few would remain, is killed some time; but not if
 * that strands the others. */
static void plan_patience(struct world *world, uint32_t i)
{
    world_plan(world, world->now_us + 4 * world->setup.lease_us, HAPPENS_TRAP_TIMEOUT, i, 0, 0,
               NULL);
}

/* Whether a process that is no member yet may be counted on already. */
static bool is_forming(const struct world *world)
{
    const struct view *newest = ghost_newest(world);
    return newest == NULL || newest->configured_old != 0 ||
           newest->configured != world->operator.wanted;
}

static void tell_to_leave(struct world *world, uint32_t i)
{
    struct machine *m = &world->machines[fault_at(world, i)->node];
    trace_line(world, "node %u is told to leave", m->id);
    m->leaving = true;
    m->leaving_fault = i;
    world->faults[i].phase = FAULT_TRAPPED;
    worker_leave(node_worker(m->node, 0));
    ghost_polled(m, 0); /* its lease ends before anybody hears of it */
    machine_notice(m, 0);
    plan_patience(world, i);
}

/* As the server does: keys that have their home there go elsewhere before it leaves, if there is
 * time enough; or what it holds gets other replicas. */
static void begin_hand_over(struct world *world, uint32_t i)
{
    struct fault_run *run = &world->faults[i];
    struct machine *m = &world->machines[fault_at(world, i)->node];
    trace_line(world, "node %u is told to hand its keys over", m->id);
    run->phase = FAULT_TRAPPED;
    run->nonce = m->nonce;
    run->until_us =
        world->now_us + random_between(&world->chance_faults, 0, 6 * world->setup.lease_us);
    worker_hand_over(node_worker(m->node, 0));
    machine_notice(m, 0);
    world_plan(world, world->now_us, HAPPENS_HAND_OVER, i, 0, 0, NULL);
}

static void begin_leave(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    struct machine *m = &world->machines[f->node];
    if (world->setup.nodes < 3) {
        /* Of two none can go: what remained would be no majority, and the leaver serves no more. */
        world->faults[i].phase = FAULT_SKIPPED;
        return;
    }
    if (m->state != MACHINE_UP || m->leaving || m->trap != TRAP_NONE || m->busy > 0 ||
        (is_forming(world) && !ghost_may_lose(world, f->node)) || world->operator.lost_us != 0) {
        defer(world, i);
        return;
    }
    if (homed_on(world) || owned_on(world)) {
        begin_hand_over(world, i);
    } else {
        tell_to_leave(world, i);
    }
}

void fault_hand_over(struct world *world, uint32_t i)
{
    struct fault_run *run = &world->faults[i];
    struct machine *m = &world->machines[fault_at(world, i)->node];
    if (m->node == NULL || m->nonce != run->nonce || m->leaving) {
        run->phase = FAULT_SKIPPED; /* it has ended otherwise, or leaves already */
        return;
    }
    bool hears = m->state == MACHINE_UP && m->trap == TRAP_NONE && m->busy == 0;
    bool late = world->now_us >= run->until_us || world->phase != PHASE_SAFETY;
    bool spared = node_handed_over(m->node);
    /* Objects that are not whole without it go as in a crash. */
    bool may = (!is_forming(world) && (spared || homed_on(world))) || ghost_may_lose(world, m->id);
    bool over = hears && (late || spared);
    if (over && may && world->operator.lost_us == 0) {
        trace_line(world, "node %u has handed %s over", m->id, spared ? "everything" : "something");
        if (owned_on(world) && spared) {
            lost_check_leave(world, m);
        }
        tell_to_leave(world, i);
    } else {
        world_plan(world, world->now_us + world->setup.lease_us / 8, HAPPENS_HAND_OVER, i, 0, 0,
                   NULL);
    }
}

void fault_left(struct machine *m)
{
    struct world *world = m->world;
    if (!m->leaving) {
        world_violation(world, "node %u says that it left, and nobody told it to", m->id);
        return;
    }
    activate(world, m->leaving_fault);
    machine_stop(m, false);
}

bool fault_snap(struct machine *m)
{
    struct world *world = m->world;
    uint32_t i = m->trap_fault;
    if (m->busy > 0 || !random_chance(&world->chance_faults, 400000)) {
        return false;
    }
    enum machine_trap trap = m->trap;
    m->trap = TRAP_NONE;
    if (trap == TRAP_PAUSE) {
        activate(world, i);
        machine_pause(m);
        return true;
    }
    if (trap == TRAP_ZOMBIE) {
        bool may = may_split(world, fault_at(world, i));
        if (may) {
            split(world, i);
        } else {
            defer(world, i);
        }
        return may;
    }
    if (!ghost_may_lose(world, m->id)) {
        defer(world, i);
        return false;
    }
    activate(world, i);
    machine_kill_midway(m, fault_at(world, i)->permille);
    return true;
}

void fault_trap_timeout(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    struct machine *m = &world->machines[f->node];
    if (f->kind == SIM_FAULT_ZOMBIE && world->faults[i].phase == FAULT_OVER) {
        bury_zombie(world, i);
        return;
    }
    if (world->faults[i].phase != FAULT_TRAPPED) {
        return;
    }
    if (f->kind == SIM_FAULT_LEAVE) {
        if (m->node == NULL || !m->leaving || m->leaving_fault != i) {
            world->faults[i].phase = FAULT_OVER; /* it crashed meanwhile */
        } else if (m->busy == 0 && ghost_may_lose(world, f->node)) {
            fault_left(m);
        } else {
            plan_patience(world, i);
        }
        return;
    }
    m->trap = TRAP_NONE;
    if (f->kind == SIM_FAULT_ZOMBIE) {
        world->faults[i].phase = FAULT_WAITING;
        if (may_split(world, f)) {
            split(world, i);
        } else {
            defer(world, i);
        }
        return;
    }
    if (f->kind == SIM_FAULT_CRASH &&
        (m->node == NULL || m->busy > 0 || !ghost_may_lose(world, f->node))) {
        defer(world, i);
    } else if (f->kind == SIM_FAULT_CRASH) {
        activate(world, i);
        machine_stop(m, true);
    } else {
        activate(world, i);
        machine_pause(m);
    }
}

/* ---- Faults that concern the operator ---- */

/* Fewer nodes than this tolerate no crash, so that nothing else could happen to them. */
#define NODES_LEAST 3u

static void begin_resize(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    const struct operator* o = & world->operator;
    nodeset target = (o->wanted | f->adds) & ~f->removes;
    uint32_t least = world->setup.nodes < NODES_LEAST ? world->setup.nodes : NODES_LEAST;
    for (nodeset rest = all_nodes(world) & ~target; nodeset_count(target) < least;) {
        target |= nodeset_of(nodeset_first(rest)); /* somebody else comes instead */
        rest &= rest - 1;
    }
    if (ghost_newest(world) == NULL || o->lost_us != 0) {
        defer(world, i);
    } else if (target == o->wanted) {
        world->faults[i].phase = FAULT_SKIPPED;
        world->result->stats.faults_skipped++;
    } else {
        activate(world, i);
        operator_resize(world, target);
    }
}

static void kill_others(struct world *world, nodeset survivors)
{
    for (uint32_t i = 0; i < MACHINES_MAX; i++) {
        struct machine *m = &world->machines[i];
        bool survives = i < SIM_NODES_MAX && nodeset_has(survivors, (uint8_t)i);
        if (m->node != NULL && !survives) {
            machine_stop(m, true);
        }
    }
}

/* Those who are left hold everything that was acknowledged, or recover would lose it. */
static nodeset survivors_of(const struct world *world, nodeset drawn)
{
    const struct view *view = ghost_newest(world);
    nodeset whole = ghost_whole_members(world);
    nodeset left = whole & drawn;
    if (left == 0 && whole != 0) {
        left = nodeset_of(nodeset_first(whole));
    }
    while (left != 0 && nodeset_majority(left, view->configured)) {
        left &= left - 1;
    }
    return left;
}

/* Whether some process is in the middle of a poll, so that it cannot end now. */
static bool anybody_busy(const struct world *world)
{
    for (uint32_t i = 0; i < MACHINES_MAX; i++) {
        if (world->machines[i].busy > 0) {
            return true;
        }
    }
    return false;
}

static void begin_majority(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    nodeset left = survivors_of(world, f->side);
    if (left == 0 || world->operator.lost_us != 0 || anybody_busy(world)) {
        defer(world, i);
        return;
    }
    activate(world, i);
    kill_others(world, left);
    operator_lost(world, left, f->lasts_us);
}

static void begin_blackout(struct world *world, uint32_t i)
{
    if (ghost_newest(world) == NULL || world->operator.lost_us != 0 || anybody_busy(world)) {
        defer(world, i);
        return;
    }
    activate(world, i);
    kill_others(world, 0);
    world_new_life(world);
    operator_lost(world, 0, fault_at(world, i)->lasts_us);
}

/* ---- Beginning and end of all kinds ---- */

bool faults_listen(const struct world *world)
{
    for (uint32_t i = 0; i < world->setup.plan_n; i++) {
        if (world->faults[i].phase == FAULT_CUED) {
            return true;
        }
    }
    return false;
}

static void end_wait(struct world *world, uint32_t i, uint64_t by_us)
{
    world->faults[i].phase = FAULT_WAITING;
    world->faults[i].cued = true;
    world_plan(world, world->now_us + by_us, HAPPENS_FAULT, i, 0, 0, NULL);
}

void faults_cue(struct world *world, enum fault_cue cue)
{
    for (uint32_t i = 0; i < world->setup.plan_n; i++) {
        const struct fault *f = fault_at(world, i);
        if (world->faults[i].phase == FAULT_CUED && f->cue == cue) {
            trace_line(world, "fault %u hears its cue: %s", i, fault_cue_names[cue]);
            end_wait(world, i, f->after_us);
            if (f->after_us == 0 && is_cut(f)) {
                /* What this very poll puts out is cut already. */
                fault_begin(world, i);
            }
        }
    }
}

void fault_cue_timeout(struct world *world, uint32_t i)
{
    if (world->faults[i].phase == FAULT_CUED) {
        end_wait(world, i, 0);
    }
}

/* Whether the fault waits for something else than its time. */
static bool waits_for_cue(struct world *world, uint32_t i)
{
    struct fault_run *run = &world->faults[i];
    if (fault_at(world, i)->cue == CUE_NONE || run->cued) {
        return false;
    }
    run->phase = FAULT_CUED;
    world_plan(world, world->now_us + 2 * world->setup.lease_us, HAPPENS_CUE_TIMEOUT, i, 0, 0,
               NULL);
    return true;
}

void fault_begin(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    struct machine *m = &world->machines[f->node];
    if (world->phase != PHASE_SAFETY || world->faults[i].phase != FAULT_WAITING ||
        waits_for_cue(world, i)) {
        return;
    }
    switch ((uint32_t)f->kind) {
    case SIM_FAULT_CRASH:
        begin_crash(world, i);
        break;
    case SIM_FAULT_PAUSE:
        begin_pause(world, i);
        break;
    case SIM_FAULT_LEAVE:
        begin_leave(world, i);
        break;
    case SIM_FAULT_ZOMBIE:
        begin_zombie(world, i);
        break;
    case SIM_FAULT_STALL:
        begin_stall(world, i);
        break;
    case SIM_FAULT_SLOW:
        activate(world, i);
        m->slow = f->factor;
        break;
    case SIM_FAULT_STORM:
        activate(world, i);
        world->network.storms++;
        world->network.storm_permille = f->permille;
        break;
    case SIM_FAULT_LATE:
        activate(world, i);
        break;
    case SIM_FAULT_RESIZE:
        begin_resize(world, i);
        break;
    case SIM_FAULT_MAJORITY:
        begin_majority(world, i);
        break;
    case SIM_FAULT_BLACKOUT:
        begin_blackout(world, i);
        break;
    case SIM_FAULT_CLOCK:
    case SIM_FAULT_DRIFT:
        activate(world, i);
        machine_step_clock(m, f->step_us);
        break;
    default:
        activate(world, i);
        change_partition(world, f, 1);
    }
}

static void return_machine(struct world *world, const struct fault *f)
{
    struct machine *m = &world->machines[f->node];
    if (m->node != NULL) {
        return;
    }
    if (f->reboot && f->kind != SIM_FAULT_LATE) {
        /* The clock that counts since boot starts again, at some small value. */
        uint64_t shows_us = random_between(&world->chance_faults, 1000, 5000000);
        m->clock_offset_us += (int64_t)shows_us - (int64_t)machine_clock(m, world->now_us);
    }
    operator_start(world, f->node);
}

void fault_end(struct world *world, uint32_t i)
{
    const struct fault *f = fault_at(world, i);
    struct machine *m = &world->machines[f->node];
    if (world->faults[i].phase != FAULT_ACTIVE) {
        return;
    }
    world->faults[i].phase = FAULT_OVER;
    trace_line(world, "fault %u ends: %s", i, sim_fault_names[f->kind]);
    switch ((uint32_t)f->kind) {
    case SIM_FAULT_CRASH:
    case SIM_FAULT_LEAVE:
    case SIM_FAULT_LATE:
        return_machine(world, f);
        break;
    case SIM_FAULT_PAUSE:
        machine_resume(m);
        break;
    case SIM_FAULT_ZOMBIE:
        end_zombie(world, i);
        break;
    case SIM_FAULT_STALL:
        m->disturbed_us = world->now_us;
        if (f->within) {
            m->actors[f->worker].held_until_us = 0;
        } else if (--m->actors[f->worker].stalls == 0) {
            machine_looks_again(m, f->worker);
            machine_notice(m, f->worker);
        }
        break;
    case SIM_FAULT_SLOW:
        m->disturbed_us = world->now_us;
        m->slow = 1;
        break;
    case SIM_FAULT_STORM:
        world->network.storms--;
        break;
    case SIM_FAULT_RESIZE:
    case SIM_FAULT_MAJORITY:
    case SIM_FAULT_BLACKOUT:
    case SIM_FAULT_CLOCK:
    case SIM_FAULT_DRIFT:
        break;
    default:
        change_partition(world, f, -1);
    }
}

void faults_heal(struct world *world)
{
    for (uint32_t i = 0; i < world->setup.plan_n; i++) {
        struct fault_run *run = &world->faults[i];
        if (run->phase == FAULT_ACTIVE) {
            fault_end(world, i);
        } else if (run->phase == FAULT_TRAPPED && fault_at(world, i)->kind != SIM_FAULT_LEAVE) {
            world->machines[fault_at(world, i)->node].trap = TRAP_NONE;
            run->phase = FAULT_SKIPPED;
        }
    }
    for (uint32_t i = SIM_NODES_MAX; i < MACHINES_MAX; i++) {
        world->machines[i].hears = ~(nodeset)0;
    }
    network_calm(world);
    operator_keep_rows(world);
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        operator_start(world, i);
    }
    operator_wake(world);
}
