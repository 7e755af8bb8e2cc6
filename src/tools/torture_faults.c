#include "tools/torture_faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARGIN_US 50000u
#define FRESH_US 300000u   /* what a node said before that is not relied on */
#define WAIT_US 10000000u  /* for sound nodes, and 10 leases more */
#define LEAVE_US 20000000u /* more than a node may take to leave */

bool torture_faults_init(struct torture_faults *f, const struct torture_plan *plan,
                         struct torture_cluster *cluster, struct torture_net *net)
{
    *f = (struct torture_faults){.plan = plan, .cluster = cluster, .net = net};
    f->touched = cluster->nodes;
    f->runs = calloc(plan->n + 1, sizeof *f->runs);
    return f->runs != NULL;
}

void torture_faults_deinit(struct torture_faults *f)
{
    free(f->runs);
    f->runs = NULL;
}

bool torture_faults_wait(const struct torture_faults *f)
{
    return f->waits_since_us != 0;
}

static void check(struct torture_faults *f, bool good, const char *what)
{
    if (!good && f->wrong[0] == '\0') {
        snprintf(f->wrong, sizeof f->wrong, "%s: %.150s", what, f->net->why);
    }
}

static uint64_t lease_us(const struct torture_faults *f)
{
    return f->cluster->options->lease_ms * UINT64_C(1000);
}

static void notice_disturbed(struct torture_faults *f, uint64_t now_us)
{
    nodeset cut = torture_net_disturbed(f->net);
    for (nodeset left = f->cluster->nodes; left != 0; left &= left - 1) {
        uint8_t i = nodeset_first(left);
        const struct torture_node *node = &f->cluster->node[i];
        if (!node->up || node->stopped || node->leaving || nodeset_has(cut, i)) {
            f->disturbed_us[i] = now_us;
        }
    }
}

/* Who serves under a lease that a majority granted after the last disturbance cannot be dropped
 * before that has run out. */
static bool may_lose(const struct torture_faults *f, uint8_t node, uint64_t now_us)
{
    nodeset sound = torture_cluster_sound(f->cluster, now_us - FRESH_US) & ~nodeset_of(node);
    for (nodeset left = sound; left != 0; left &= left - 1) {
        uint8_t i = nodeset_first(left);
        if (f->cluster->node[i].told_us < f->disturbed_us[i] + lease_us(f) + MARGIN_US) {
            sound &= ~nodeset_of(i);
        }
    }
    return nodeset_majority(sound, f->cluster->nodes);
}

/* Where objects have owners: nobody was disturbed for more than a lease, and since then all nodes
 * have said that they are sound and nothing has too few replicas. */
static bool is_whole(const struct torture_faults *f, uint64_t now_us)
{
    bool whole = torture_cluster_repaired(f->cluster, now_us - FRESH_US);
    for (nodeset left = f->cluster->nodes; left != 0; left &= left - 1) {
        uint8_t i = nodeset_first(left);
        whole =
            whole && f->cluster->node[i].told_us >= f->disturbed_us[i] + lease_us(f) + MARGIN_US;
    }
    return whole;
}

/* Whom a fault may cost the membership. */
static nodeset victims_of(const struct torture_fault *fault)
{
    switch ((uint32_t)fault->kind) {
    case TORTURE_RESET_CLIENTS:
        return 0;
    case TORTURE_KILL:
    case TORTURE_LEAVE:
    case TORTURE_PAUSE:
    case TORTURE_ISOLATE:
        return nodeset_of(fault->node);
    case TORTURE_RESET_PEERS:
        return nodeset_of(fault->node) | fault->to;
    default:
        return fault->from | fault->to;
    }
}

/* Of an object all replicas but one may go, and no more than a minority is lost. */
static bool may_touch(const struct torture_faults *f, const struct torture_fault *fault)
{
    nodeset touched = f->touched | victims_of(fault);
    uint32_t minority = (nodeset_count(f->cluster->nodes) - 1) / 2;
    return f->cluster->options->engine != TORTURE_ZEUS || victims_of(fault) == 0 ||
           f->touched == 0 || nodeset_count(touched) <= minority;
}

static bool somebody_leaves(const struct torture_faults *f)
{
    for (nodeset left = f->cluster->nodes; left != 0; left &= left - 1) {
        if (f->cluster->node[nodeset_first(left)].leaving) {
            return true;
        }
    }
    return false;
}

static void change_resets(struct torture_faults *f, const struct torture_fault *fault, bool begin)
{
    struct torture_net *net = f->net;
    uint32_t more = begin ? 1 : UINT32_MAX;
    if (fault->kind == TORTURE_RESET_CLIENTS) {
        net->no_clients[fault->node] += more;
    } else {
        for (nodeset left = fault->to; left != 0; left &= left - 1) {
            net->no_peers[fault->node][nodeset_first(left)] += more;
        }
    }
    check(f, torture_net_apply_node(net, fault->node), "resets");
}

static void change_network(struct torture_faults *f, const struct torture_fault *fault, bool begin)
{
    if (fault->kind == TORTURE_RESET_PEERS || fault->kind == TORTURE_RESET_CLIENTS) {
        change_resets(f, fault, begin);
        return;
    }
    torture_net_cut(f->net, fault->from, fault->to, fault->both, begin);
    check(f, torture_net_apply(f->net), "partitions");
}

/* ---- Beginnings ---- */

enum chance { CHANCE_NOW, CHANCE_LATER, CHANCE_NEVER };

static enum chance chance_of(const struct torture_faults *f, const struct torture_fault *fault,
                             uint64_t now_us)
{
    const struct torture_node *node = &f->cluster->node[fault->node];
    if (!may_touch(f, fault)) {
        return CHANCE_LATER;
    }
    switch ((uint32_t)fault->kind) {
    case TORTURE_KILL:
        if (!node->up) {
            return CHANCE_NEVER;
        }
        return may_lose(f, fault->node, now_us) ? CHANCE_NOW : CHANCE_LATER;
    case TORTURE_LEAVE:
        if (!node->up || node->leaving) {
            return CHANCE_NEVER;
        }
        /* Who has not answered since its start may not take signals yet: one would just end it. */
        return !node->stopped && node->told_us != 0 && may_lose(f, fault->node, now_us)
                   ? CHANCE_NOW
                   : CHANCE_LATER;
    case TORTURE_PAUSE:
        return node->up && !node->stopped && !node->leaving ? CHANCE_NOW : CHANCE_NEVER;
    default:
        return CHANCE_NOW;
    }
}

static void begin(struct torture_faults *f, uint32_t i, uint64_t now_us)
{
    const struct torture_fault *fault = &f->plan->faults[i];
    struct torture_fault_run *run = &f->runs[i];
    *run = (struct torture_fault_run){
        .state = FAULT_BEGUN,
        .starts = f->cluster->node[fault->node].starts,
        .began_us = now_us,
        .end_us = now_us + (uint64_t)fault->for_ms * 1000,
    };
    f->touched |= victims_of(fault);
    switch ((uint32_t)fault->kind) {
    case TORTURE_KILL:
        torture_cluster_kill(f->cluster, fault->node);
        break;
    case TORTURE_PAUSE:
        torture_cluster_pause(f->cluster, fault->node);
        break;
    case TORTURE_LEAVE:
        torture_cluster_leave(f->cluster, fault->node);
        run->end_us = 0; /* it is down from when it has left */
        break;
    default:
        change_network(f, fault, true);
    }
}

static void begin_due(struct torture_faults *f, uint64_t now_us)
{
    while (f->next < f->plan->n && f->plan->faults[f->next].at_ms * UINT64_C(1000) <= f->clock_us) {
        enum chance chance = chance_of(f, &f->plan->faults[f->next], now_us);
        if (chance == CHANCE_LATER && f->waits_since_us == 0) {
            f->waits_since_us = now_us;
        }
        if (chance == CHANCE_LATER && now_us < f->waits_since_us + WAIT_US + 10 * lease_us(f)) {
            return;
        }
        f->waits_since_us = 0;
        if (chance == CHANCE_NOW) {
            begin(f, f->next, now_us);
        } else {
            f->runs[f->next].state = FAULT_SKIPPED;
        }
        f->next++;
        if (somebody_leaves(f)) {
            return;
        }
        notice_disturbed(f, now_us);
    }
}

/* ---- Ends ---- */

static void start_again(struct torture_faults *f, uint8_t node, uint32_t starts)
{
    const struct torture_node *of = &f->cluster->node[node];
    if (!of->up && of->starts == starts && !torture_cluster_start(f->cluster, node)) {
        snprintf(f->wrong, sizeof f->wrong, "node %u cannot be started again", node);
    }
}

/* False: it is not to end yet. */
static bool end_leave(struct torture_faults *f, uint32_t i, uint64_t now_us)
{
    const struct torture_fault *fault = &f->plan->faults[i];
    struct torture_fault_run *run = &f->runs[i];
    const struct torture_node *node = &f->cluster->node[fault->node];
    bool gone = !node->up || node->starts != run->starts;
    if (!gone && now_us > run->began_us + LEAVE_US && !f->stuck) {
        snprintf(f->wrong, sizeof f->wrong, "node %u does not end after SIGTERM", fault->node);
        f->stuck = true;
    }
    if (gone && run->end_us == 0) {
        run->end_us = now_us + (f->healing ? 0 : (uint64_t)fault->for_ms * 1000);
    }
    return gone && now_us >= run->end_us;
}

static void end(struct torture_faults *f, uint32_t i)
{
    const struct torture_fault *fault = &f->plan->faults[i];
    struct torture_fault_run *run = &f->runs[i];
    const struct torture_node *node = &f->cluster->node[fault->node];
    run->state = FAULT_ENDED;
    switch ((uint32_t)fault->kind) {
    case TORTURE_KILL:
    case TORTURE_LEAVE:
        start_again(f, fault->node, run->starts);
        break;
    case TORTURE_PAUSE:
        if (node->stopped && node->starts == run->starts) {
            torture_cluster_resume(f->cluster, fault->node);
        }
        break;
    default:
        change_network(f, fault, false);
    }
}

static void end_due(struct torture_faults *f, uint64_t now_us)
{
    for (uint32_t i = f->first_active; i < f->next; i++) {
        const struct torture_fault_run *run = &f->runs[i];
        bool leaves = f->plan->faults[i].kind == TORTURE_LEAVE;
        if (run->state == FAULT_BEGUN &&
            (leaves ? end_leave(f, i, now_us) : now_us >= run->end_us)) {
            end(f, i);
        }
    }
    while (f->first_active < f->next && f->runs[f->first_active].state != FAULT_BEGUN) {
        f->first_active++;
    }
}

void torture_faults_step(struct torture_faults *f, uint64_t now_us)
{
    bool held = f->waits_since_us != 0 || somebody_leaves(f);
    if (f->stepped_us != 0 && !held) {
        f->clock_us += now_us - f->stepped_us;
    }
    f->stepped_us = now_us;
    notice_disturbed(f, now_us);
    end_due(f, now_us);
    if (f->touched != 0 && f->first_active == f->next && is_whole(f, now_us)) {
        f->touched = 0;
    }
    if (!f->healing && !somebody_leaves(f)) {
        begin_due(f, now_us);
    }
}

void torture_faults_heal(struct torture_faults *f, uint64_t now_us)
{
    f->healing = true;
    f->waits_since_us = 0;
    for (uint32_t i = f->first_active; i < f->next; i++) {
        struct torture_fault_run *run = &f->runs[i];
        if (run->state == FAULT_BEGUN && run->end_us != 0) {
            run->end_us = now_us;
        }
    }
}

bool torture_faults_over(const struct torture_faults *f)
{
    bool all_up = true;
    for (nodeset left = f->cluster->nodes; left != 0; left &= left - 1) {
        const struct torture_node *node = &f->cluster->node[nodeset_first(left)];
        all_up = all_up && node->up && !node->stopped && !node->leaving;
    }
    return f->healing && f->first_active == f->next && all_up;
}
