/* What things cost on the machines of the cost model: the clusters that the papers measured on, and
 * this program's own steps. docs/COST_MODEL.md gives the source of every number. None of them
 * comes from a result of the papers that the model is compared with, but for the read-only
 * throughput, which says how fast a core is. */
#ifndef HORKOS_SIM_COST_MACHINE_H
#define HORKOS_SIM_COST_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/cost_wire.h"

/* Nanoseconds of a worker. `miss`: what it takes longer when the key is in no cache. */
struct cost_cpu {
    double poll;    /* a poll, whatever it finds */
    double frame;   /* a frame sealed and sent, or received and opened */
    double byte;    /* a byte of it */
    double message; /* a message encoded, or decoded and routed */
    double read;    /* a read: request, look-up, copy, answer */
    double read_miss;
    double home_miss; /* the same of an operation at its key's home, if only these miss */
    double update;    /* an update's request, evaluation and answer, without the engine's steps */
    double step;      /* a step of a key machine (lock, publish) or of a flow machine */
    double step_miss;
    double packet; /* a packet posted to the card, or taken from it; not part of what is measured */
    /* Where objects have owners, or are sharded: instead of message, read, update and step. */
    double txn;         /* a transaction: request, session, answer */
    double txn_op;      /* an operation of it: hash, order, evaluation, record, answer */
    double txn_look;    /* an object or an entry looked up, with its bucket locked or not, once */
    double txn_message; /* a message encoded, or decoded, routed and carried out */
    /* Memory servers, a row each: instead of look-ups. */
    double row_lock;  /* a lock by name, taken and released, and the row's header */
    double row_index; /* looked for, as there was no hint that is right */
    double row_read;  /* its value read and copied into a message */
    double row_write; /* written */
};

struct cost_machine {
    const char *name;
    const char *what;
    uint32_t workers; /* hardware threads that serve, a node */
    uint32_t threads_per_core;
    uint32_t window; /* requests in flight a worker at full load */
    /* The papers' reads a second and core, nothing but reads: what cores are calibrated by. */
    double reads_uniform, reads_skewed;
    double packets_per_core; /* a second: posted plus taken */
    struct cost_wire_limits wire;
};

/* This program's steps, measured by bench/sim_cost_bench on the machine it was built on. */
extern const struct cost_cpu cost_measured;
/* The same of transactions (--transactions), with Zeus and with the statically sharded baseline
 * alike; rows by bench/sim_table_bench. `read` is there for the scale only. */
extern const struct cost_cpu cost_measured_txns;

/* Seven nodes of thesis 4.5, and the five of 4.5.8. */
extern const struct cost_machine cost_infiniband;
extern const struct cost_machine cost_cloudlab;

/* The four of [L] 7.1, whose cards are priced as the others but for their link. */
extern const struct cost_machine cost_disaggregated;

/* The machine with only so many of its workers, and its network in proportion: what one of them can
 * use stays the same. For long stretches of virtual time; results are multiplied back. */
struct cost_machine cost_share(const struct cost_machine *machine, uint32_t workers);
/* The machine with one worker a node, which has a core to itself, and the whole network. */
struct cost_machine cost_single(const struct cost_machine *machine);

/* A worker of the machine: what was measured, scaled by the machine's read-only throughput alone:
 * what a core does by its skewed one (keys in caches), what memory adds by the difference to its
 * uniform one. skewed: keys are mostly in caches. */
struct cost_cpu cost_scale(const struct cost_machine *machine, const struct cost_cpu *measured,
                           bool skewed);

#endif
