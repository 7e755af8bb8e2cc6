#include "sim/ghost.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/world.h"
#include "view/message.h"
#include "wire/msg.h"

void ghost_deinit(struct ghost *ghost)
{
    free(ghost->views);
    free(ghost->held_us);
}

void ghost_forget(struct world *world)
{
    ghost_deinit(&world->ghost);
    world->ghost = (struct ghost){0};
}

const struct view *ghost_newest(const struct world *world)
{
    const struct ghost *ghost = &world->ghost;
    return ghost->n == 0 ? NULL : &ghost->views[ghost->n - 1];
}

/* Which generation of the cluster it was: 0, 1, ... */
static uint32_t generation_of(const struct ghost *ghost, uint64_t generation)
{
    uint32_t i = 0;
    while (i < ghost->generations_n && ghost->generations[i] != generation) {
        i++;
    }
    return i;
}

static bool older(const struct ghost *ghost, const struct view *a, const struct view *b)
{
    return a->generation != b->generation
               ? generation_of(ghost, a->generation) < generation_of(ghost, b->generation)
               : a->epoch < b->epoch;
}

/* ---- Views ---- */

/* [H] O1: a c_id belongs to one process for ever. */
static void check_cids(struct world *world, const struct view *view)
{
    const struct ghost *ghost = &world->ghost;
    for (size_t v = 0; v < ghost->n; v++) {
        const struct view *other = &ghost->views[v];
        if (other->generation != view->generation) {
            continue; /* what a lost generation handed out in the end, nobody knows any more */
        }
        for (uint8_t a = 0; a < NODES_MAX; a++) {
            if (!nodeset_has(view->live, a)) {
                continue;
            }
            const struct view_member *mine = &view->members[a];
            for (uint8_t b = 0; b < NODES_MAX; b++) {
                const struct view_member *its = &other->members[b];
                if (!nodeset_has(other->live, b) || its->nonce == mine->nonce) {
                    continue;
                }
                if (mine->cid_first < its->cid_first + its->cid_count &&
                    its->cid_first < mine->cid_first + mine->cid_count) {
                    world_violation(world,
                                    "epoch %" PRIu32 " gives node %u c_ids that epoch %" PRIu32
                                    " gave another process",
                                    view->epoch, a, other->epoch);
                }
            }
        }
    }
}

/* No process may serve any longer that the view leaves out. */
static void check_leases(struct world *world)
{
    const struct view *newest = ghost_newest(world);
    if (world->setup.drift) {
        return; /* then leases say nothing, and nothing may depend on them */
    }
    for (uint32_t i = 0; i < MACHINES_MAX; i++) {
        const struct machine *m = &world->machines[i];
        if (newest == NULL || m->node == NULL || view_has(newest, m->id, m->nonce)) {
            continue;
        }
        uint64_t until_us = world->ghost.lease_until_us[i];
        uint64_t now_us = machine_clock(m, world->now_us);
        if (now_us < until_us) {
            world_violation(world,
                            "node %u holds a lease for another %" PRIu64 " us in epoch %" PRIu32
                            ", but epoch %" PRIu32 " is decided and leaves it out",
                            m->id, until_us - now_us, world->ghost.held_epoch[i], newest->epoch);
        }
    }
}

/* A first generation forms by itself, any other one by the operator's order only. */
static void check_generation(struct world *world, const struct view *view)
{
    struct ghost *ghost = &world->ghost;
    if (generation_of(ghost, view->generation) < ghost->generations_n) {
        return;
    }
    if (ghost->generations_n >= ghost->generations_allowed) {
        world_violation(world, "nodes form a new cluster by themselves, of generation %" PRIx64,
                        view->generation);
    }
    HK_ASSERT(ghost->generations_n < SIM_PLAN_MAX);
    ghost->generations[ghost->generations_n++] = view->generation;
}

static void give_cues(struct world *world, const struct view *before, const struct view *view)
{
    nodeset live = before == NULL ? view->live : before->live;
    faults_cue(world, CUE_VIEW);
    if ((live & ~view->live) != 0) {
        faults_cue(world, CUE_DROP);
    }
    if ((view->live & ~live) != 0) {
        faults_cue(world, CUE_ADMIT);
    }
    if (view->configured_old != 0) {
        faults_cue(world, CUE_JOINT);
    }
}

static void add_view(struct world *world, const struct view *view)
{
    struct ghost *ghost = &world->ghost;
    struct sim_stats *stats = &world->result->stats;
    check_generation(world, view);
    if (ghost->n == ghost->capacity) {
        ghost->capacity = ghost->capacity == 0 ? 16 : 2 * ghost->capacity;
        ghost->views = realloc(ghost->views, ghost->capacity * sizeof *ghost->views);
        ghost->held_us = realloc(ghost->held_us, ghost->capacity * sizeof *ghost->held_us);
        HK_ASSERT(ghost->views != NULL && ghost->held_us != NULL);
    }
    check_cids(world, view);
    size_t at = ghost->n++;
    for (; at > 0 && older(ghost, view, &ghost->views[at - 1]); at--) {
        ghost->views[at] = ghost->views[at - 1];
        ghost->held_us[at] = ghost->held_us[at - 1];
    }
    ghost->views[at] = *view;
    ghost->held_us[at] = world->now_us;
    crowd_stir(world);
    if (homed_on(world)) {
        operator_wake(world); /* a home may be gone */
    }
    give_cues(world, at == 0 ? NULL : &ghost->views[at - 1], view);
    if (at + 1 == ghost->n) {
        ghost->prepared_drops = ghost->accepted_drops = 0;
    }
    stats->view_changes += stats->views++ > 0;
    if (view->operational == 0) {
        world_violation(world, "epoch %" PRIu32 " has no operational member", view->epoch);
    }
}

static const struct view *find_view(const struct ghost *ghost, uint64_t generation, uint32_t epoch)
{
    for (size_t i = ghost->n; i > 0; i--) {
        const struct view *view = &ghost->views[i - 1];
        if (view->epoch == epoch && view->generation == generation) {
            return view;
        }
    }
    return NULL;
}

static void note_view(struct machine *m, const struct view *view)
{
    struct world *world = m->world;
    const struct view *known = find_view(&world->ghost, view->generation, view->epoch);
    if (world->ghost.held_epoch[m->place] != view->epoch) {
        trace_view(world, m->id, view);
        trace_note(&world->trace, view->generation ^ view->epoch);
    }
    if (known == NULL) {
        add_view(world, view);
    } else if (memcmp(known, view, sizeof *view) != 0) {
        world_violation(world, "node %u holds another view of epoch %" PRIu32 " than others", m->id,
                        view->epoch);
    }
    if (view->epoch < world->ghost.held_epoch[m->place]) {
        world_violation(world, "node %u goes back to epoch %" PRIu32, m->id, view->epoch);
    }
    world->ghost.held_epoch[m->place] = view->epoch;
}

/* ---- Acknowledged values ---- */

static struct store_value look_up(const struct machine *m, const struct sim_key *key, void *buffer,
                                  bool *corrupt_out)
{
    struct store_value value = {0};
    struct bytes bytes = bytes_of(key->bytes, key->n);
    struct store *store = node_store(m->node, 0);
    int err = store_read(store, m->eye, bytes, store_hash(store, bytes), buffer, STORE_INLINE_MAX,
                         &value);
    *corrupt_out = err != HK_OK;
    return value;
}

/* The timestamp of the value that the operation wrote, if the coordinator still holds just this
 * value as the newest; else 0. */
static uint64_t written_ts(struct machine *m, const struct sim_op *op)
{
    struct world *world = m->world;
    const struct sim_key *key = &world->clients.keys[op->key];
    _Alignas(8) uint8_t buffer[STORE_INLINE_MAX];
    int64_t wrote = op->h.kind == HISTORY_ADD ? op->h.out : op->h.in;
    int64_t holds = 0;
    bool corrupt = false;
    store_online(m->eye);
    struct store_value value = look_up(m, key, buffer, &corrupt);
    bool same = !corrupt && value.found && (value.meta.flags & KEY_READABLE) != 0 &&
                (value.meta.flags & KEY_VALUE_FLAGS) == 0 &&
                value_decode(key->class, world->setup.value_profile, value.value, &holds) &&
                holds == wrote;
    store_quiescent(m->eye);
    store_offline(m->eye);
    return same ? value.meta.ts : 0;
}

static bool sets_value(const struct sim_op *op)
{
    switch ((enum history_kind)op->h.kind) {
    case HISTORY_WRITE:
    case HISTORY_ADD:
    case HISTORY_GETSET:
    case HISTORY_RMW:
        return true;
    case HISTORY_SET_IF:
    case HISTORY_SET_ABSENT:
    case HISTORY_SET_PRESENT:
        return op->h.ok;
    case HISTORY_READ:
    case HISTORY_DELETE:
    case HISTORY_DELETE_IF:
    case HISTORY_DELETE_PRESENT:
    case HISTORY_GETDEL:
    case HISTORY_EXISTS:
    case HISTORY_EXPIRE:
    case HISTORY_PERSIST:
    case HISTORY_GETEX:
    case HISTORY_TTL:
        break;
    }
    return false;
}

/* An update that is answered is on every member that was one when it was taken and still is: it
 * was committed between the two, but nobody knows in which of the views. */
static void check_acknowledged(struct machine *m, const struct sim_op *op,
                               const struct node_status *status)
{
    struct world *world = m->world;
    if (world->setup.sequential || homed_on(world) || owned_on(world)) {
        return; /* a majority has it, or its home, or its replicas */
    }
    const struct view *taken = find_view(&world->ghost, status->view.generation, op->epoch);
    uint64_t ts = taken == NULL ? 0 : written_ts(m, op);
    for (uint32_t i = 0; ts != 0 && i < MACHINES_MAX; i++) {
        struct machine *other = &world->machines[i];
        if (other == m || other->node == NULL || !view_has(taken, other->id, other->nonce) ||
            !view_has(&status->view, other->id, other->nonce)) {
            continue;
        }
        _Alignas(8) uint8_t buffer[STORE_INLINE_MAX];
        bool corrupt = false;
        store_online(other->eye);
        struct store_value value = look_up(other, &world->clients.keys[op->key], buffer, &corrupt);
        store_quiescent(other->eye);
        store_offline(other->eye);
        if (corrupt || !value.found || value.meta.ts < ts) {
            char text[200];
            history_op_print(&op->h, text, sizeof text);
            world_violation(world, "node %u acknowledges what member %u does not have: %s", m->id,
                            other->id, text);
        }
    }
}

/* The newest version of each key that an answer has named. */
struct newest {
    uint64_t version;
    bool absent; /* it shows the key absent, ... */
    bool unsure; /* ... or somebody who did not hear the outcome may have deleted it */
};

static bool deletes(const struct history_op *h)
{
    return h->kind == HISTORY_DELETE || h->kind == HISTORY_DELETE_IF || h->kind == HISTORY_GETDEL ||
           h->kind == HISTORY_DELETE_PRESENT;
}

/* What was answered to a process that still holds the answer back may yet be heard. */
static void note_newest(struct newest *newest, const struct sim_op *op)
{
    uint64_t version = stamp_version(op->version);
    bool heard = op->state == SIM_OP_OVER ? op->h.outcome == HISTORY_OK
                                          : op->state == SIM_OP_ANSWERED && op->err == 0;
    bool perhaps =
        op->state == SIM_OP_OVER ? op->h.outcome == HISTORY_UNKNOWN : op->state == SIM_OP_TAKEN;
    newest->unsure = newest->unsure || (perhaps && deletes(&op->h));
    if (heard && version > newest->version) {
        newest->version = version;
        newest->absent = !sets_value(op) && op->h.kind != HISTORY_EXPIRE &&
                         op->h.kind != HISTORY_PERSIST &&
                         (op->h.kind != HISTORY_READ || op->h.out == HISTORY_ABSENT);
    }
}

/* The newest of each key that any answer of this life has named; the caller frees it. */
static struct newest *gather_newest(const struct world *world)
{
    const struct clients *cs = &world->clients;
    uint64_t from = 2 * world->lives[world->lives_n - 1];
    struct newest *newest = calloc((size_t)cs->keys_n + 1, sizeof *newest);
    HK_ASSERT(newest != NULL);
    for (size_t i = 0; i < cs->ops_n; i++) {
        const struct sim_op *op = &cs->ops[i];
        if (!op->extra && op->state != SIM_OP_QUEUED && op->h.begin_us > from) {
            note_newest(&newest[op->key], op);
        }
    }
    return newest;
}

/* Whether the node has what the answer named, or what came after it. */
static bool has_newest(const struct world *world, const struct machine *m, uint32_t key,
                       const struct newest *newest, uint64_t *version_out)
{
    _Alignas(8) uint8_t buffer[STORE_INLINE_MAX];
    bool corrupt = false;
    store_online(m->eye);
    struct store_value value = look_up(m, &world->clients.keys[key], buffer, &corrupt);
    store_quiescent(m->eye);
    store_offline(m->eye);
    *version_out = value.found ? stamp_version(value.meta.ts) : 0;
    bool gone = !value.found && !newest->absent && !newest->unsure;
    return !gone && !corrupt && (!value.found || *version_out >= newest->version);
}

void ghost_check_newest(struct world *world)
{
    struct newest *newest = gather_newest(world);
    for (uint32_t key = 0; key < world->clients.keys_n; key++) {
        for (nodeset rest = world->operator.wanted;
             newest[key].version > 0 && rest != 0 && !world_broken(world); rest &= rest - 1) {
            const struct machine *m = &world->machines[nodeset_first(rest)];
            uint64_t version = 0;
            if (!has_newest(world, m, key, &newest[key], &version)) {
                world_violation(world,
                                "node %u has lost an update: of key %" PRIu32
                                " it has version %" PRIu64 ", and somebody has heard of %" PRIu64,
                                m->id, key, version, newest[key].version);
            }
        }
    }
    free(newest);
}

/* Those of the nodes that have all that answers have named. */
static nodeset level_members(const struct world *world, nodeset nodes)
{
    struct newest *newest = gather_newest(world);
    nodeset level = nodes;
    for (nodeset rest = nodes; rest != 0; rest &= rest - 1) {
        const struct machine *m = &world->machines[nodeset_first(rest)];
        for (uint32_t key = 0; key < world->clients.keys_n; key++) {
            uint64_t version = 0;
            if (newest[key].version > 0 && !has_newest(world, m, key, &newest[key], &version)) {
                level &= ~nodeset_of(m->id);
                break;
            }
        }
    }
    free(newest);
    return level;
}

bool ghost_turned_over(const struct world *world)
{
    const struct ghost *ghost = &world->ghost;
    for (size_t last = ghost->n; last-- > 0;) {
        const struct view *view = &ghost->views[last];
        for (size_t i = last; i-- > 0 && ghost->views[i].generation == view->generation;) {
            nodeset since = 0;
            for (nodeset rest = view->live; rest != 0; rest &= rest - 1) {
                uint8_t node = nodeset_first(rest);
                since |=
                    view->members[node].admitted <= ghost->views[i].epoch ? nodeset_of(node) : 0;
            }
            if (!view_majority(view, since)) {
                return true;
            }
            if (ghost->held_us[i + 1] - ghost->held_us[i] > 2 * world->setup.lease_us) {
                break; /* long enough for everybody to become level */
            }
        }
    }
    return false;
}

/* ---- After each poll ---- */

/* Heartbeats leave only if every worker has made progress since the last one: a wedged worker does
 * not keep the lease. One heartbeat may have been on its way, one be due already. */
static void check_healthy(struct machine *m)
{
    struct world *world = m->world;
    const struct setup *s = &world->setup;
    for (uint32_t i = 1; i < m->workers; i++) {
        const struct actor *a = &m->actors[i];
        if (s->drift || a->stalls == 0 || a->stalled_us < m->started_us) {
            continue;
        }
        uint64_t last_us = machine_clock(m, a->stalled_us) + 3 * s->heartbeat_us + s->lease_us;
        if (world->ghost.lease_until_us[m->place] > last_us) {
            world_violation(world,
                            "node %u renews its lease, and its worker %u stands still since "
                            "%" PRIu64 " us",
                            m->id, i, world->now_us - a->stalled_us);
        }
    }
}

/* While a majority is lost nobody may serve: leases run out, and only the operator's word makes new
 * ones. So long after the loss the last lease of before has ended, by whichever clock. */
static bool must_refuse(const struct world *world)
{
    const struct operator* o = & world->operator;
    const struct view *newest = ghost_newest(world);
    bool begun = newest != NULL && newest->generation != o->lost_generation;
    return o->lost_us != 0 && !begun && !world->setup.drift &&
           world->now_us > o->lost_us + world->setup.lease_us * 6 / 5;
}

static void check_refuses(struct machine *m, const struct node_status *status)
{
    if (must_refuse(m->world) && machine_clock(m, m->world->now_us) < status->lease_until_us) {
        world_violation(m->world,
                        "node %u holds a lease, and a majority is lost since %" PRIu64 " us", m->id,
                        m->world->now_us - m->world->operator.lost_us);
    }
}

/* By an old clock it may still find the lease that it had; what it took before, it may have done
 * before; and an asynchronous read may have been confirmed by those who are dead now. */
static void check_silent(struct machine *m, const struct sim_op *op)
{
    struct world *world = m->world;
    uint64_t last_us = world->operator.lost_us + world->setup.lease_us * 6 / 5;
    if (must_refuse(world) && m->poll_step == world->step && !world->setup.async && op->err == 0 &&
        op->taken_us > last_us) {
        char text[200];
        history_op_print(&op->h, text, sizeof text);
        world_violation(world, "node %u answers, and a majority is lost: %s", m->id, text);
    }
}

static void check_silent_deal(struct machine *m, uint32_t index)
{
    struct world *world = m->world;
    const struct deal *deal = world->traders.deals[index];
    uint64_t last_us = world->operator.lost_us + world->setup.lease_us * 6 / 5;
    if (must_refuse(world) && m->poll_step == world->step && deal->state == DEAL_ANSWERED &&
        deal->err == 0 && deal->taken_us > last_us) {
        char text[300];
        deal_describe(deal, text, sizeof text);
        world_violation(world, "node %u answers, and a majority is lost: %s", m->id, text);
    }
}

void ghost_polled(struct machine *m, uint32_t worker)
{
    struct world *world = m->world;
    struct node_status status;
    bool known = false;
    if (worker == 0) {
        node_status(m->node, machine_clock(m, world->now_us), &status);
        known = true;
        if (status.view.epoch != 0) {
            note_view(m, &status.view);
        }
        world->ghost.lease_until_us[m->place] = status.lease_until_us;
        world->ghost.adopted_epoch[m->place] = status.epoch_adopted;
        check_leases(world);
        check_healthy(m);
        check_refuses(m, &status);
    }
    for (size_t i = 0; i < m->outputs_n; i++) {
        if (m->outputs[i].parcel != NULL) {
            continue;
        }
        if ((m->outputs[i].op & DEAL_TAG) != 0) {
            check_silent_deal(m, m->outputs[i].op & ~(DEAL_TAG | DEAL_AHEAD));
            continue;
        }
        const struct sim_op *op = &world->clients.ops[m->outputs[i].op];
        if (op->state == SIM_OP_ANSWERED) {
            check_silent(m, op);
        }
        if (op->state != SIM_OP_ANSWERED || op->err != 0 || op->extra || !sets_value(op)) {
            continue;
        }
        if (!known) {
            node_status(m->node, machine_clock(m, world->now_us), &status);
            known = true;
        }
        check_acknowledged(m, op, &status);
    }
    homed_polled(m, worker);
    owned_polled(m);
}

void ghost_ended(struct machine *m)
{
    m->world->ghost.lease_until_us[m->place] = 0;
    m->world->ghost.held_epoch[m->place] = 0;
    m->world->ghost.adopted_epoch[m->place] = 0;
}

void ghost_follow(const struct machine *from, const struct machine *to)
{
    struct ghost *ghost = &from->world->ghost;
    ghost->lease_until_us[to->place] = ghost->lease_until_us[from->place];
    ghost->held_epoch[to->place] = ghost->held_epoch[from->place];
    ghost->adopted_epoch[to->place] = ghost->adopted_epoch[from->place];
    ghost->lease_until_us[from->place] = 0;
    ghost->held_epoch[from->place] = 0;
    ghost->adopted_epoch[from->place] = 0;
}

/* ---- What the world can do without ---- */

/* Whether a joiner asks for a chunk. */
static bool asks_for_chunk(const struct frame *frame)
{
    struct msg msg;
    uint32_t used = 0;
    return frame->kind == FRAME_BATCH && msg_decode(frame->body, &msg, &used) == HK_OK &&
           msg.kind == MSG_CHUNK_ASK;
}

/* What somebody is asked to promise or to accept for the next instance. */
static void overhear_proposal(struct world *world, const struct view_msg *msg, uint32_t instance)
{
    struct ghost *ghost = &world->ghost;
    const struct view *newest = ghost_newest(world);
    if (msg->kind == VIEW_MSG_PREPARE && msg->prepare.instance == instance) {
        ghost->prepared_drops |= msg->prepare.drops;
        ghost->prepared_us = world->now_us;
        faults_cue(world, CUE_PREPARE);
    } else if (msg->kind == VIEW_MSG_ACCEPT && msg->accept.instance == instance) {
        ghost->accepted_drops |= newest == NULL ? 0 : newest->live & ~msg->accept.view.live;
        faults_cue(world, CUE_ACCEPT);
        if (ghost->stirred_epoch != instance) {
            ghost->stirred_epoch = instance;
            crowd_stir(world);
        }
    }
}

void ghost_overhear(struct world *world, const struct frame *frame)
{
    const struct view *newest = ghost_newest(world);
    struct view_msg msg;
    if (faults_listen(world) && asks_for_chunk(frame)) {
        faults_cue(world, CUE_CHUNK);
    }
    if (frame->kind != FRAME_VIEW) {
        return;
    }
    if (view_msg_decode(frame->body, &msg) != HK_OK) {
        world_violation(world, "node %u sends a view message that no peer takes", frame->source);
        return;
    }
    if (msg.kind == VIEW_MSG_PREPARE || msg.kind == VIEW_MSG_ACCEPT) {
        overhear_proposal(world, &msg, newest == NULL ? 1 : newest->epoch + 1);
    }
}

static nodeset pending_drops(const struct world *world)
{
    const struct ghost *ghost = &world->ghost;
    bool lapsed = world->now_us - ghost->prepared_us > 2 * world->setup.lease_us;
    return ghost->accepted_drops | (lapsed ? 0 : ghost->prepared_drops);
}

static bool is_member(const struct world *world, const struct view *view, uint8_t node)
{
    const struct machine *m = &world->machines[node];
    return m->node != NULL && view_has(view, node, m->nonce);
}

static bool is_cut_off(const struct world *world, uint8_t node)
{
    for (uint32_t i = 0; i < world->setup.machines; i++) {
        const struct link *out = &world->network.links[node][i];
        const struct link *in = &world->network.links[i][node];
        if (out->cuts + out->cuts_new > 0 || in->cuts + in->cuts_new > 0) {
            return true;
        }
    }
    return false;
}

static bool is_steady(const struct world *world, const struct view *view, uint8_t node)
{
    const struct machine *m = &world->machines[node];
    if (!is_member(world, view, node) || !nodeset_has(view->operational, node)) {
        return false;
    }
    for (uint32_t i = 0; i < m->workers; i++) {
        if (m->actors[i].stalls > 0) {
            return false;
        }
    }
    return m->state == MACHINE_UP && m->slow == 1 && m->busy == 0 && !m->leaving &&
           m->trap == TRAP_NONE && !is_cut_off(world, node);
}

/* Before the first view every node is needed, and one may be replaced: the view may name processes
 * that have gone meanwhile, and must have a majority without them. */
static bool may_lose_before_first(const struct world *world, uint8_t node)
{
    for (uint32_t i = 0; i < world->setup.nodes; i++) {
        const struct machine *m = &world->machines[i];
        if (m->incarnation != 1 || m->node == NULL || (i != node && m->leaving)) {
            return false;
        }
    }
    return world->setup.nodes > 2;
}

bool ghost_may_lose(const struct world *world, uint8_t node)
{
    const struct view *view = ghost_newest(world);
    if (view == NULL) {
        return may_lose_before_first(world, node);
    }
    if (!owned_may_lose(world, node)) {
        return false;
    }
    nodeset members = 0;
    nodeset steady = 0;
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        if (i != node && !nodeset_has(pending_drops(world), i)) {
            members |= is_member(world, view, i) ? nodeset_of(i) : 0;
            steady |= is_steady(world, view, i) ? nodeset_of(i) : 0;
        }
    }
    /* The view that changes the configured set may be decided before anybody notices. */
    bool changing = view->configured != world->operator.wanted && view->configured_old == 0;
    if (changing && !nodeset_majority(members, world->operator.wanted)) {
        return false;
    }
    return view_majority(view, members) && view_majority(view, steady) &&
           world->network.storms == 0;
}

nodeset ghost_whole_members(const struct world *world)
{
    const struct view *view = ghost_newest(world);
    nodeset whole = 0;
    if (view == NULL || view->configured_old != 0) {
        return 0;
    }
    for (uint8_t i = 0; i < world->setup.machines; i++) {
        const struct machine *m = &world->machines[i];
        if (is_member(world, view, i) && nodeset_has(view->operational, i) && !m->leaving &&
            world->ghost.held_epoch[i] == view->epoch) {
            whole |= nodeset_of(i);
        }
    }
    whole &= ~pending_drops(world);
    for (nodeset rest = owned_on(world) ? whole : 0; rest != 0; rest &= rest - 1) {
        whole = owned_whole(world, nodeset_first(rest)) ? whole : whole & ~(rest & -rest);
    }
    return world->setup.sequential ? level_members(world, whole) : whole;
}

bool ghost_stranded(const struct world *world)
{
    const struct view *view = ghost_newest(world);
    nodeset members = 0;
    for (uint8_t i = 0; view != NULL && i < world->setup.machines; i++) {
        members |= is_member(world, view, i) ? nodeset_of(i) : 0;
    }
    return view != NULL && world->operator.lost_us == 0 && !view_majority(view, members);
}
