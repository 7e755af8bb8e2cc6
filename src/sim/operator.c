#include "sim/operator.h"

#include <inttypes.h>

#include "sim/world.h"

void operator_init(struct world *world)
{
    world->operator.wanted =((nodeset)1 << world->setup.nodes) - 1;
}

void operator_wake(struct world *world)
{
    struct operator* o = & world->operator;
    if (!o->planned) {
        o->planned = true;
        world_plan(world, world->now_us + world->setup.lease_us / 4, HAPPENS_OPERATOR, 0, 0, 0,
                   NULL);
    }
}

void operator_start(struct world *world, uint8_t node)
{
    if (world->machines[node].node == NULL && nodeset_has(world->operator.wanted, node)) {
        machine_start(&world->machines[node]);
    }
}

void operator_resize(struct world *world, nodeset wanted)
{
    struct operator* o = & world->operator;
    nodeset added = wanted & ~o->wanted;
    trace_line(world, "the operator wants other nodes: %" PRIx64 " instead of %" PRIx64, wanted,
               o->wanted);
    o->wanted = wanted;
    o->settled_us = 0;
    for (nodeset rest = added; rest != 0; rest &= rest - 1) {
        operator_start(world, nodeset_first(rest));
    }
    operator_wake(world);
}

void operator_keep_rows(struct world *world)
{
    nodeset keepers = 0;
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        keepers |= world->setup.roles[i] == NODE_ROLE_COMPUTE ? 0 : nodeset_of(i);
    }
    if ((world->operator.wanted & keepers) == 0) {
        operator_resize(world, world->operator.wanted | nodeset_of(nodeset_first(keepers)));
    }
}

void operator_lost(struct world *world, nodeset survivors, uint64_t patience_us)
{
    struct operator* o = & world->operator;
    o->survivors = survivors;
    o->dark = survivors == 0;
    o->lost_generation = o->dark ? 0 : ghost_newest(world)->generation;
    o->lost_us = world->now_us;
    o->order_us = world->now_us + patience_us;
    o->settled_us = 0;
    for (nodeset rest = o->wanted & ~survivors; rest != 0; rest &= rest - 1) {
        uint64_t down_us = random_between(&world->chance_faults, 100, 3 * patience_us / 2);
        world_plan(world, world->now_us + down_us, HAPPENS_RETURN, nodeset_first(rest), 0, 0, NULL);
    }
    operator_wake(world);
}

/* ---- Orders ---- */

static bool can_hear(const struct machine *m)
{
    return m->node != NULL && m->state == MACHINE_UP && m->busy == 0 && m->trap == TRAP_NONE;
}

/* What the order made the node say leaves with its next poll. */
static void ordered(struct machine *m)
{
    ghost_polled(m, 0);
    machine_notice(m, 0);
}

/* One of the nodes whose process hears an order, and rather one that does not leave; NULL: none
 * does. */
static struct machine *choose(struct world *world, nodeset nodes)
{
    struct machine *candidates[SIM_NODES_MAX];
    uint32_t n = 0;
    for (nodeset rest = nodes; rest != 0; rest &= rest - 1) {
        struct machine *m = &world->machines[nodeset_first(rest)];
        if (can_hear(m) && !m->leaving) {
            candidates[n++] = m;
        }
    }
    for (nodeset rest = n == 0 ? nodes : 0; rest != 0; rest &= rest - 1) {
        struct machine *m = &world->machines[nodeset_first(rest)];
        if (can_hear(m)) {
            candidates[n++] = m;
        }
    }
    return n == 0 ? NULL : candidates[random_below(&world->chance_faults, n)];
}

/* Members of the newest view whose processes live. */
static nodeset members(const struct world *world, const struct view *view)
{
    nodeset living = 0;
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        if (m->node != NULL && view_has(view, i, m->nonce)) {
            living |= nodeset_of(i);
        }
    }
    return living;
}

static void order_bootstrap(struct world *world)
{
    struct operator* o = & world->operator;
    for (nodeset rest = o->wanted; rest != 0; rest &= rest - 1) {
        operator_start(world, nodeset_first(rest));
    }
    struct machine *m = choose(world, o->wanted);
    if (m == NULL) {
        return;
    }
    trace_line(world, "the operator restarts node %u with --bootstrap", m->id);
    machine_stop(m, true);
    m->bootstrap = true;
    world->ghost.generations_allowed = 1;
    machine_start(m);
    o->order_us = world->now_us + 8 * world->setup.lease_us;
}

static void order_recover(struct world *world, const struct view *newest)
{
    struct operator* o = & world->operator;
    nodeset left = o->survivors & members(world, newest) & newest->operational;
    struct machine *m = choose(world, left);
    if (m == NULL) {
        return;
    }
    trace_line(world, "the operator orders node %u to recover", m->id);
    world->ghost.generations_allowed = world->ghost.generations_n + 1;
    worker_recover(node_worker(m->node, 0), o->survivors);
    ordered(m);
    o->order_us = world->now_us + 3 * world->setup.lease_us;
}

/* True: the cluster is lost, and nobody but the operator can help. */
static bool look_after_loss(struct world *world)
{
    struct operator* o = & world->operator;
    const struct view *newest = ghost_newest(world);
    if (o->lost_us == 0) {
        return false;
    }
    bool begun = newest != NULL && (o->dark || newest->generation != o->lost_generation);
    if (begun) {
        trace_line(world, "the cluster has begun anew");
        o->lost_us = 0;
        o->survivors = 0;
        o->dark = false;
        return false;
    }
    if (world->now_us >= o->order_us && o->dark) {
        order_bootstrap(world);
    } else if (world->now_us >= o->order_us) {
        order_recover(world, newest);
    }
    return true;
}

/* ---- Sizes ---- */

static void order_configure(struct world *world, const struct view *newest)
{
    struct operator* o = & world->operator;
    nodeset living = members(world, newest);
    struct machine *m = choose(world, living & newest->operational);
    /* A member that has just died is none that a new set can count on. */
    if (m == NULL || living != newest->live) {
        return;
    }
    trace_line(world, "the operator orders node %u to configure %" PRIx64, m->id, o->wanted);
    worker_configure(node_worker(m->node, 0), o->wanted);
    ordered(m);
}

/* A process that does not notice that it is not configured any more is ended. True: one is left. */
static bool end_strays(struct world *world)
{
    struct operator* o = & world->operator;
    bool left = false;
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        struct machine *m = &world->machines[i];
        if (nodeset_has(o->wanted, i) || m->node == NULL) {
            continue;
        }
        if (world->now_us > o->settled_us + 4 * world->setup.lease_us && m->trap == TRAP_NONE &&
            m->busy == 0) {
            machine_stop(m, m->state != MACHINE_UP);
        } else {
            left = true;
        }
    }
    return left;
}

/* Who changes his mind says so to everybody, as soon as they can hear it: a node that could not
 * carry an earlier order out yet would do so when it can. True: some could not hear it yet. */
static bool withdraw_orders(struct world *world, const struct view *newest)
{
    nodeset *untold = &world->operator.untold;
    *untold &= members(world, newest);
    for (nodeset rest = *untold; rest != 0; rest &= rest - 1) {
        struct machine *m = &world->machines[nodeset_first(rest)];
        if (can_hear(m)) {
            *untold &= ~nodeset_of(m->id);
            worker_configure(node_worker(m->node, 0), world->operator.wanted);
            ordered(m);
        }
    }
    return *untold != 0;
}

static bool look_after_size(struct world *world)
{
    struct operator* o = & world->operator;
    const struct view *newest = ghost_newest(world);
    if (newest == NULL) {
        return false;
    }
    if (newest->configured != o->wanted || newest->configured_old != 0) {
        o->settled_us = 0;
        if (newest->configured_old == 0) {
            order_configure(world, newest);
        }
        return true;
    }
    if (o->settled_us == 0) {
        o->settled_us = world->now_us;
        o->untold = newest->live;
    }
    bool untold = withdraw_orders(world, newest);
    return end_strays(world) || untold;
}

void operator_round(struct world *world)
{
    world->operator.planned = false;
    bool busy = look_after_loss(world) || look_after_size(world);
    bool lost = world->operator.lost_us == 0 && homed_on(world) && homed_look(world);
    lost = (world->operator.lost_us == 0 && owned_on(world) && lost_look(world)) || lost;
    if (busy || lost) {
        operator_wake(world);
    }
}
