/* A machine of the world: a clock, a state file, and at most one process, whose workers are actors
 * of the simulation. The callbacks through which the node sees the world are here too. */
#ifndef HORKOS_SIM_MACHINE_H
#define HORKOS_SIM_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "node/engines.h"
#include "node/node.h"
#include "resp/host.h"
#include "sim/network.h"

#define NEVER UINT64_MAX
#define NO_OP UINT32_MAX
/* Machines beside those of the configured nodes: old processes of nodes that were taken over. */
#define ZOMBIES_MAX 2u
#define MACHINES_MAX (SIM_NODES_MAX + ZOMBIES_MAX)

struct world;

/* What a poll has put out: a frame to a peer, or an answer to an operation. */
struct output {
    struct parcel *parcel; /* NULL: an answer */
    uint32_t op;
    uint8_t to;
};

struct actor {
    struct parcel *inbox_first, **inbox_last; /* frames that have arrived */
    uint32_t inbox_n;
    struct parcel *given; /* the frame whose bytes the worker may still read */
    uint32_t queue_first; /* operations that have arrived, linked by next; NO_OP: none */
    uint32_t queue_last;
    uint32_t given_op; /* operations whose bytes the running poll may read, linked by next */
    uint32_t closing[CLIENTS_MAX + TRADERS_MAX + 2u * SIM_NODES_MAX]; /* sessions that were left */
    uint32_t closing_n;
    uint64_t poll_at_us; /* NEVER: nothing planned */
    uint32_t poll_token; /* only the entry of the heap that carries it counts */
    bool asleep;
    bool took;           /* the running poll was given a frame or an operation */
    uint32_t spins;      /* polls in a row with something to do, but no input and no output */
    uint32_t stalls;     /* faults that stop it at the moment */
    uint64_t stalled_us; /* when the latest of them began */
    uint64_t stale_us;   /* it read its clock then, and has not polled since; 0: not so */
    uint64_t stale_step;
    uint64_t held_until_us; /* its next poll is held up in its middle until then; 0: not so */
    bool busy;              /* it is held up now */
};

enum machine_state {
    MACHINE_DOWN,
    MACHINE_UP,
    MACHINE_PAUSED,
};

/* What the node of a process holds pointers to; the process may come to be elsewhere. */
struct process {
    struct machine *machine;
    struct engine_ops ops;
    union engines_config engine;
    struct resp_host host;    /* of its connections, ... */
    struct resp_host trading; /* ... and of those that ask for transactions */
};

/* A fault that waits for the next poll that puts something out. */
enum machine_trap {
    TRAP_NONE,
    TRAP_PAUSE,
    TRAP_CRASH,
    TRAP_ZOMBIE,
};

struct machine {
    struct world *world;
    uint8_t id;    /* of the node */
    uint8_t place; /* index in world.machines: id, or from SIM_NODES_MAX on */
    enum machine_state state;
    struct node *node; /* NULL: down */
    struct process *process;
    struct store_thread *eye; /* the simulator's own registration with the node's store, ... */
    struct store_thread *eye_entries; /* ... and with its directory, if it has one */
    uint64_t nonce;
    uint32_t incarnation;
    uint64_t started_us;
    int64_t clock_offset_us;
    uint64_t kept_generation; /* the state file */
    uint32_t kept_epoch;
    bool held;            /* outputs wait for the end of a pause */
    uint32_t pauses;      /* faults that stop it at the moment */
    uint32_t slow;        /* every poll takes so many times longer */
    uint32_t busy;        /* workers that are held up in the middle of a poll: it cannot end now */
    bool wipes;           /* it shall be wiped ... */
    bool left;            /* ... or has left, as soon as no worker is busy any more */
    bool mute;            /* it was killed: what its node still says is not heard */
    bool bootstrap;       /* the next process starts with the operator's --bootstrap */
    uint32_t workers;     /* of each of its processes */
    uint16_t version_max; /* the newest version of the frames that its process knows */
    nodeset hears;        /* an old process: the nodes whose frames reach it */
    bool leaving;
    uint32_t leaving_fault; /* index in the plan */
    enum machine_trap trap;
    uint32_t trap_fault;   /* index in the plan */
    uint64_t disturbed_us; /* when it last stood still or was slow */
    uint64_t poll_step;    /* begin of the operations that the running poll takes */
    uint64_t cutoff_step;  /* what arrived later is not seen by the running poll */
    struct output *outputs;
    size_t outputs_n, outputs_capacity;
    struct actor actors[SIM_WORKERS_MAX];
};

void machine_init(struct machine *machine, struct world *world, uint8_t id, uint8_t place);
void machine_deinit(struct machine *machine);
/* Starts a process on a machine that is down. */
void machine_start(struct machine *machine);
/* Ends it: by a kill, which nobody hears, or in good order, its last answers included. */
void machine_stop(struct machine *machine, bool kill);
/* A kill while a poll puts its outputs out: so many of a thousand have left. */
void machine_kill_midway(struct machine *machine, uint32_t permille);
/* It was dropped: a new incarnation follows at once (POLL_WIPE). */
void machine_wipe(struct machine *machine);
/* Its process, which is paused, moves to `zombie`, and the machine is down: another process can
 * take the node over. keeps_state: it will find the state file. */
void machine_split(struct machine *machine, struct machine *zombie, bool keeps_state);
bool machine_is_zombie(const struct machine *machine);
void machine_pause(struct machine *machine);
void machine_resume(struct machine *machine);

/* What the machine's clock shows at a virtual time; and the first virtual time at which it shows
 * at least local_us. */
uint64_t machine_clock(const struct machine *machine, uint64_t virtual_us);
uint64_t machine_virtual(const struct machine *machine, uint64_t local_us);

/* What its calendar shows now, in ms since 1970; also while it is down. */
uint64_t machine_wall_ms(const struct machine *machine);

/* Lets the worker be polled at the given time at the latest. */
void machine_schedule(struct machine *machine, uint32_t worker, uint64_t at_us);
/* As soon as something that has arrived can be noticed. */
void machine_notice(struct machine *machine, uint32_t worker);
void machine_poll(struct machine *machine, uint32_t worker);
/* The worker stood still and goes on. If it is the one that looks after the others, it can know
 * only from now on that they stand still. */
void machine_looks_again(struct machine *machine, uint32_t worker);
/* Its clock steps forward. */
void machine_step_clock(struct machine *machine, uint64_t by_us);
void machine_deliver(struct machine *machine, struct parcel *parcel);

#endif
