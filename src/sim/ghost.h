/* What somebody who sees all nodes at once may demand of them: at most one view an epoch; no lease
 * under a view that a decided one has replaced without its holder; acknowledged values on every
 * member. */
#ifndef HORKOS_SIM_GHOST_H
#define HORKOS_SIM_GHOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/machine.h"
#include "view/view.h"
#include "wire/frame.h"

struct world;

struct ghost {
    struct view *views; /* every decided view that some node held, by (generation, epoch) */
    uint64_t *held_us;  /* when somebody first held each of them */
    size_t n, capacity;
    uint64_t generations[SIM_PLAN_MAX]; /* of the cluster, in the order of their coming */
    uint32_t generations_n;
    uint32_t generations_allowed; /* a first one, and one more for each order of the operator */
    uint64_t lease_until_us[MACHINES_MAX]; /* by the holder's clock, of the process at a place */
    uint32_t held_epoch[MACHINES_MAX];     /* of the view that it holds ... */
    uint32_t adopted_epoch[MACHINES_MAX];  /* ... and that all its workers have adopted */
    nodeset prepared_drops;                /* members that proposals for the next view name ... */
    uint64_t prepared_us;                  /* ... of which the latest was made then */
    uint32_t stirred_epoch;                /* the latest that somebody was asked to accept */
    nodeset accepted_drops; /* members that a view lacks which somebody has accepted */
};

void ghost_deinit(struct ghost *ghost);
/* All data is gone: views of old say nothing any more, and only the operator can make a new one. */
void ghost_forget(struct world *world);
/* The newest decided view that anybody held; NULL before the first. */
const struct view *ghost_newest(const struct world *world);
/* After each poll of the machine. */
void ghost_polled(struct machine *machine, uint32_t worker);
/* A frame that was sent: what the view protocol is about to do. */
void ghost_overhear(struct world *world, const struct frame *frame);
/* In the end every member must hold the newest of all that answers have named, or what came after
 * it. For engines that check_acknowledged cannot follow: who answers there is no matter of all. */
void ghost_check_newest(struct world *world);
/* A process ended: its lease is nobody's. */
void ghost_ended(struct machine *machine);
/* A process is at another place now. */
void ghost_follow(const struct machine *from, const struct machine *to);
/* Whether a majority of members of the newest view would still be there, and a majority of nodes
 * still operational and undisturbed, without the given node. */
bool ghost_may_lose(const struct world *world, uint8_t node);
/* The operational members of the newest view that live, hold it, are not about to leave, and that
 * no view under way leaves out: each holds all that was acknowledged. Of an engine that commits by
 * majorities these need not, nor of one whose objects have owners, so there only those that do are
 * meant. 0 while it has two configured
 * sets. */
nodeset ghost_whole_members(const struct world *world);
/* Whether a majority of processes has been replaced, view after view, faster than a log can be
 * passed on: then an engine that commits by majorities may rightly stand still
 * (docs/protocols/zab.md, rule 6). */
bool ghost_turned_over(const struct world *world);
/* Whether the processes that still live can decide nothing ever again. */
bool ghost_stranded(const struct world *world);

#endif
