/* Transactions of the workloads that Zeus is measured with ([Z] 5.2, 5.8): pure generators. A
 * *place* is where transactions run: one worker of one node, numbered node by node. Each object has
 * a place at which it is at home, where a balancer that knows the application sends what concerns
 * it; a transaction is *remote* if it touches an object whose home is another node. docs/BENCH.md
 * describes each workload and says where it leaves the published one.
 *
 * Threads: each place is drawn for by one thread at a time; different places at the same time. */
#ifndef HORKOS_LOAD_WORK_H
#define HORKOS_LOAD_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "engine/op.h"

#define WORK_KEY_BYTES 8u
#define WORK_OPS_MAX 32u
#define WORK_TYPES_MAX 8u
#define WORK_PLACES_MAX 512u
#define WORK_VALUE_BYTES_MAX 4096u
#define WORK_OBJECTS_MAX 4000000u

enum work_kind { WORK_HANDOVERS, WORK_SMALLBANK, WORK_TATP, WORK_VOTER, WORK_YCSB, WORK_KINDS };
extern const char *const work_kind_names[WORK_KINDS];

struct work_config {
    enum work_kind kind;
    uint32_t nodes;
    uint32_t workers;     /* of each node */
    double remote;        /* percent; handovers: of the handovers, else of the transactions.
                             Negative: as the workload itself has it (mobility; the payment graph;
                             voters that follow a contestant; otherwise none) */
    uint32_t objects;     /* of each node: phones, accounts, subscribers, voters, records */
    uint32_t hot;         /* smallbank: accounts of each node that 90 % of the transactions take */
    uint32_t requests;    /* ycsb: of a transaction */
    uint32_t value_bytes; /* handovers: contexts; ycsb: records */
    double theta;         /* ycsb: exponent of the records' popularity; 0: uniform */
    double writes;        /* ycsb: percent of the requests */
    double handovers;     /* handovers, in percent of service and release requests */
    uint32_t shift;       /* voter: a place's transactions until popularity moves on; 0: never */
    uint64_t seed;
};
/* The published parameters (TATP, Smallbank, [Z]), populations as far as they fit a small machine.
 */
struct work_config work_defaults(enum work_kind kind);
/* Why it cannot be, or NULL. */
const char *work_config_wrong(const struct work_config *config);

/* One transaction. It points into itself: it stays where it was drawn. */
struct work_txn {
    struct op ops[WORK_OPS_MAX];
    uint8_t keys[WORK_OPS_MAX + 1][WORK_KEY_BYTES]; /* the last: of a pair's target */
    uint32_t ops_n;
    uint32_t flags; /* enum txn_flag */
    uint8_t type;   /* below work_types */
    bool remote;
    bool updates;    /* some operation may write */
    uint32_t own[8]; /* the generator's */
};

struct work;

/* HK_ERR_NOMEM, HK_ERR_INVALID (work_config_wrong). */
int work_create(const struct work_config *config, struct work **work_out)
    __attribute__((warn_unused_result));
void work_destroy(struct work *work);
const struct work_config *work_config(const struct work *work);

uint32_t work_types(const struct work *work);
const char *work_type_name(const struct work *work, uint32_t type);
/* Which part of that type's transactions succeed by the workload's own rules; 1 for most. */
double work_type_success(const struct work *work, uint32_t type);

/* What exists at first: each place writes its own objects, 0 .. work_fill_count - 1. False: there
 * is nothing under this number. */
uint64_t work_fill_count(const struct work *work);
bool work_fill(const struct work *work, uint32_t place, uint64_t number, struct work_txn *txn_out);

/* The next transaction of a place. */
void work_draw(struct work *work, uint32_t place, struct random *random, struct work_txn *txn_out);
/* Whether an answered transaction did what it was meant to. applied: it took effect (its answer is
 * OK, not NUMBER 0); answers: of its operations. */
bool work_succeeded(const struct work *work, const struct work_txn *txn, bool applied,
                    const struct answer *answers);
/* It was answered, or is given up (done false): to be said once of every transaction drawn, at its
 * place. */
void work_done(struct work *work, uint32_t place, const struct work_txn *txn, bool done);

/* The node at which an object is at home, by its key's tag: slot_of_key * nodes / HASH_SLOTS, as a
 * store that is sharded statically has it. */
uint8_t work_home(struct bytes key, uint32_t nodes);

#endif
