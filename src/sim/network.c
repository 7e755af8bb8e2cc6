#include "sim/network.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "sim/world.h"

struct parcel *parcel_create(struct bytes frame)
{
    struct parcel *parcel = malloc(sizeof *parcel + frame.n);
    HK_ASSERT(parcel != NULL);
    parcel->next = NULL;
    parcel->sent_step = 0;
    parcel->arrived_step = 0;
    parcel->n = frame.n;
    parcel->worker = 0;
    parcel->from = 0;
    parcel->only_old = false;
    memcpy(parcel->bytes, frame.at, frame.n);
    return parcel;
}

void parcel_destroy(struct parcel *parcel)
{
    free(parcel);
}

static bool befalls(struct world *world, enum sim_fault kind, uint32_t ppm)
{
    if (ppm == 0 || world->network.calm || !random_chance(&world->chance_network, ppm)) {
        return false;
    }
    world_befell(world, kind);
    return true;
}

/* Damages the frame; its checks must notice, whatever the damage is. */
static struct parcel *corrupt(struct world *world, uint8_t to, struct parcel *parcel)
{
    struct random *chance = &world->chance_network;
    uint64_t way = random_below(chance, 4);
    if (way == 0) {
        parcel->n = (uint32_t)random_below(chance, parcel->n);
    } else if (way == 1) {
        uint32_t more = 1 + (uint32_t)random_below(chance, 20);
        struct parcel *longer = malloc(sizeof *longer + parcel->n + more);
        HK_ASSERT(longer != NULL);
        memcpy(longer, parcel, sizeof *parcel + parcel->n);
        memset(longer->bytes + parcel->n, 0, more);
        longer->n = parcel->n + more;
        free(parcel);
        parcel = longer;
    } else {
        uint64_t at = random_below(chance, parcel->n);
        for (uint64_t i = 0; i < 3 && at + i < parcel->n; i++) {
            parcel->bytes[at + i] ^= (uint8_t)random_between(chance, i == 0 ? 1 : 0, 255);
        }
    }
    struct frame frame;
    const struct machine *target = &world->machines[to];
    if (frame_open(bytes_of(parcel->bytes, parcel->n), world->setup.seed, to, target->nonce,
                   &frame) == FRAME_DROP_NONE) {
        world_violation(world, "a damaged frame passes its checks");
    }
    return parcel;
}

/* When a frame that leaves now arrives. */
static uint64_t arrival(struct world *world, uint8_t from, uint8_t to, bool again)
{
    const struct weather *w = &world->setup.weather;
    struct random *chance = &world->chance_network;
    struct link *link = &world->network.links[from][to];
    uint64_t slowness = world->network.calm ? 1 : w->slowness[from][to];
    uint64_t at_us =
        world->now_us + slowness * w->base_us + random_between(chance, 0, slowness * w->jitter_us);
    if (befalls(world, SIM_FAULT_DELAY, w->spike_ppm)) {
        at_us += random_between(chance, 0, w->spike_us);
    }
    if (world->network.storms > 0 && random_chance(chance, 300000)) {
        at_us += random_between(chance, 0, world->setup.lease_us);
    }
    if (again || befalls(world, SIM_FAULT_REORDER, w->reorder_ppm)) {
        return at_us + random_between(chance, 0, w->late_us);
    }
    if (at_us < link->last_us) {
        at_us = link->last_us;
    }
    link->last_us = at_us;
    return at_us;
}

static void plan_arrival(struct world *world, uint8_t from, uint8_t to, struct parcel *parcel,
                         bool again)
{
    uint64_t at_us = arrival(world, from, to, again);
    if (befalls(world, SIM_FAULT_CORRUPT, world->setup.weather.corrupt_ppm)) {
        parcel = corrupt(world, to, parcel);
    }
    world_plan(world, at_us, HAPPENS_ARRIVAL, to, 0, 0, parcel);
}

/* Reads the header, which must be sound: it comes from a node. */
static const char *look_at(struct world *world, uint8_t from, uint8_t to, struct parcel *parcel,
                           struct frame *frame_out)
{
    enum frame_drop drop = FRAME_DROP_TARGET;
    for (uint32_t i = 0; i < MACHINES_MAX && drop == FRAME_DROP_TARGET; i++) {
        const struct machine *m = &world->machines[i];
        if (m->id == to && (m->node != NULL || m->place == to)) {
            drop = frame_open(bytes_of(parcel->bytes, parcel->n), world->setup.seed, to, m->nonce,
                              frame_out);
        }
    }
    if (drop == FRAME_DROP_TARGET) {
        return "to a process that is gone";
    }
    if (drop != FRAME_DROP_NONE || frame_out->source != from || frame_out->target != to) {
        world_violation(world, "node %u sends node %u a frame that fails its checks: %s", from, to,
                        frame_drop_names[drop]);
        return "unsound";
    }
    parcel->worker = frame_out->target_worker;
    return NULL;
}

void network_send(struct world *world, uint8_t from, bool from_old, uint8_t to,
                  struct parcel *parcel)
{
    struct frame frame = {.source = from, .target = to};
    const char *fate = look_at(world, from, to, parcel, &frame);
    const struct network *network = &world->network;
    ghost_overhear(world, &frame);
    trace_note(&world->trace, (uint64_t)from << 8 | to);
    trace_note_bytes(&world->trace, bytes_of(parcel->bytes, parcel->n));
    world->result->stats.frames++;
    world->result->stats.bytes += parcel->n;
    bool lost = false;
    parcel->from = from;
    parcel->only_old = !from_old && network->links[from][to].cuts_new > 0;
    if (network->links[from][to].cuts > 0) {
        fate = "cut off";
        lost = true;
    } else if (network->storms > 0 &&
               random_chance(&world->chance_network, 1000 * network->storm_permille)) {
        fate = "lost in a storm";
        lost = true;
    } else if (befalls(world, SIM_FAULT_LOSS, world->setup.weather.loss_ppm)) {
        fate = "lost";
        lost = true;
    }
    if (trace_wanted(&world->trace) && frame.body.at != NULL) {
        trace_frame(world, fate == NULL ? "sent" : fate, &frame);
    }
    if (lost) {
        parcel_destroy(parcel);
        return;
    }
    if (befalls(world, SIM_FAULT_DUPLICATE, world->setup.weather.duplicate_ppm)) {
        struct parcel *copy = parcel_create(bytes_of(parcel->bytes, parcel->n));
        copy->worker = parcel->worker;
        copy->sent_step = world->step;
        copy->only_old = parcel->only_old;
        copy->from = parcel->from;
        plan_arrival(world, from, to, copy, true);
    }
    parcel->sent_step = world->step;
    plan_arrival(world, from, to, parcel, false);
}

/* What a node is sent reaches all processes that pass for it. */
void network_arrive(struct world *world, uint8_t to, struct parcel *parcel)
{
    if (parcel->sent_step <= world->lives[world->lives_n - 1]) {
        /* No connection outlives both of its ends. */
        parcel_destroy(parcel);
        return;
    }
    for (uint32_t i = SIM_NODES_MAX; i < MACHINES_MAX; i++) {
        const struct machine *old = &world->machines[i];
        if (old->id == to && old->node != NULL && nodeset_has(old->hears, parcel->from)) {
            struct parcel *copy = parcel_create(bytes_of(parcel->bytes, parcel->n));
            copy->worker = parcel->worker;
            machine_deliver(&world->machines[i], copy);
        }
    }
    if (parcel->only_old) {
        parcel_destroy(parcel);
    } else {
        machine_deliver(&world->machines[to], parcel);
    }
}

void network_cut(struct world *world, uint8_t from, uint8_t to, bool spares_old, int by)
{
    struct link *link = &world->network.links[from][to];
    uint32_t *cuts = spares_old ? &link->cuts_new : &link->cuts;
    HK_ASSERT(by > 0 || *cuts > 0);
    *cuts += (uint32_t)by;
}

void network_calm(struct world *world)
{
    world->network.calm = true;
    world->network.storms = 0;
}
