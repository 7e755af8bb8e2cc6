/* Transactions of the workloads that Zeus ([Z] 5.2, 5.8) and Lotus ([L] 7.2) are measured with, and
 * TPC-C: pure generators. A *place* is where transactions run: one worker of one node, numbered
 * node by node. Each object has a place at which it is at home, where a balancer that knows the
 * application sends what concerns it; a transaction is *remote* if it touches an object whose home
 * is another node. docs/BENCH.md describes each workload and says where it leaves the published
 * one.
 *
 * A transaction has steps: lists of operations that are handed to the node one after the other. All
 * workloads but TPC-C have one. What a later step writes holds only if what it was read from is
 * still so: it watches the versions of the earlier steps, and begins again if one has changed.
 *
 * Threads: each place is drawn for by one thread at a time; different places at the same time. */
#ifndef HORKOS_LOAD_WORK_H
#define HORKOS_LOAD_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/random.h"
#include "engine/op.h"
#include "engine/txn.h"
#include "load/keys.h"

#define WORK_KEY_BYTES 8u /* of most workloads: TPC-C's are longer */
#define WORK_OPS_MAX 192u
#define WORK_REQUESTS_MAX 32u
#define WORK_WATCHES_MAX 24u
#define WORK_MEMORY_BYTES 12288u
#define WORK_STOCKS_MAX 300u
#define WORK_SCAN_MAX 1000u
#define WORK_WAREHOUSES_MAX 200u
#define WORK_CUSTOMERS_MAX 3000u
#define WORK_TYPES_MAX 8u
#define WORK_PLACES_MAX 512u
#define WORK_VALUE_BYTES_MAX 4096u
#define WORK_OBJECTS_MAX 4000000u

enum work_kind {
    WORK_HANDOVERS,
    WORK_SMALLBANK,
    WORK_TATP,
    WORK_VOTER,
    WORK_YCSB,   /* records of the place */
    WORK_YCSB_A, /* records of all places: half of the requests are writes */
    WORK_YCSB_B, /* 5 % are */
    WORK_YCSB_C, /* none are */
    WORK_YCSB_D, /* 5 % insert, the others read what was inserted last */
    WORK_YCSB_E, /* 5 % insert, the others scan */
    WORK_YCSB_F, /* half read, change and write */
    WORK_TPCC,
    WORK_KINDS
};
/* Of the kinds below it work_config.remote says which part is remote. */
#define WORK_REMOTE_KINDS WORK_YCSB_A
extern const char *const work_kind_names[WORK_KINDS];

struct work_config {
    enum work_kind kind;
    uint32_t nodes;
    uint32_t workers;      /* of each node */
    double remote;         /* percent; handovers: of the handovers, else of the transactions.
                             Negative: as the workload itself has it (mobility; the payment graph;
                             voters that follow a contestant; otherwise none) */
    uint32_t objects;      /* of each node: phones, accounts, subscribers, voters, records; tpcc:
                             items, of which each warehouse has a stock */
    uint32_t hot;          /* smallbank: accounts of each node that 90 % of the transactions take */
    uint32_t requests;     /* ycsb: of a transaction */
    uint32_t value_bytes;  /* handovers: contexts; ycsb: records */
    double theta;          /* ycsb: exponent of the records' popularity; 0: uniform */
    double writes;         /* ycsb: percent of the requests */
    double handovers;      /* handovers, in percent of service and release requests */
    uint32_t shift;        /* voter: a place's transactions until popularity moves on; 0: never */
    struct keys_fold fold; /* ycsb-a to -f: of a table that is larger than this one (load/keys.h) */
    bool neighbours;       /* ycsb-a to -f: popular records lie side by side, not scattered */
    bool partitioned;      /* ycsb-a, -b, -c, -f: transactions are of records of their own node */
    uint32_t columns;      /* ycsb-a to -f: a write is of one of them; 1: of the whole record */
    uint32_t scan;         /* ycsb-e: records of a scan, at the most */
    uint32_t warehouses;   /* tpcc: of each place */
    uint32_t customers;    /* tpcc: of a district */
    uint64_t seed;
};
/* The published parameters (TATP, Smallbank, [Z]), populations as far as they fit a small machine.
 */
struct work_config work_defaults(enum work_kind kind);
/* Why it cannot be, or NULL. */
const char *work_config_wrong(const struct work_config *config);

/* Whether any of its transactions reads ranges: for engines with ordered tables (ENGINE_TABLES). */
bool work_scans(enum work_kind kind);

/* What a transaction of TPC-C knows over its steps: what was drawn, and what has been read. */
struct work_tpcc {
    uint32_t step, w, d, c, name;
    bool by_name;
    uint32_t c_home, c_w, c_d; /* payment: the customer's */
    int64_t amount;
    uint32_t number; /* carrier; threshold */
    uint32_t o;      /* order's, or the next one's */
    uint32_t lines_n;
    struct {
        uint32_t i, place, w, quantity;
    } lines[15];
    struct {
        uint32_t o, c, lines; /* o 0: nothing to be delivered */
        int64_t amount;
        uint64_t version;
    } due[10];
    uint64_t balance, orders; /* versions */
    uint32_t stocks_n, stocks_at;
    uint32_t stocks[WORK_STOCKS_MAX];
};

/* One transaction, as its present step. It points into itself: it stays where it was drawn. */
struct work_txn {
    uint32_t ops_n;
    uint32_t watches_n;
    uint32_t flags; /* enum txn_flag */
    uint8_t type;   /* below work_types */
    bool remote;
    bool updates;    /* some operation of some step may write */
    uint32_t own[8]; /* the generator's, as what follows */
    uint32_t memory_n;
    struct op ops[WORK_OPS_MAX];
    uint8_t keys[WORK_OPS_MAX + 1][WORK_KEY_BYTES]; /* the last: of a pair's target */
    struct txn_watch watches[WORK_WATCHES_MAX];
    union {
        uint64_t records[WORK_REQUESTS_MAX]; /* ycsb-a to -f: that it has drawn */
        struct work_tpcc tpcc;
    } kept;
    uint8_t memory[WORK_MEMORY_BYTES]; /* keys and values of the step */
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
enum work_step {
    WORK_OVER,
    WORK_MORE,  /* the transaction has become its next step */
    WORK_AGAIN, /* something that it read has changed: it is its first step again */
};
/* What comes after an answered step: its answers, and the versions of what they are of; watched
 * false: a watch did not hold. To be asked at its place. */
enum work_step work_next(struct work *work, uint32_t place, struct work_txn *txn, bool watched,
                         const struct answer *answers, const uint64_t *versions);
/* Whether an answered transaction did what it was meant to. applied: it took effect (its answer is
 * OK, not NUMBER 0); answers: of its last step's operations. */
bool work_succeeded(const struct work *work, const struct work_txn *txn, bool applied,
                    const struct answer *answers);
/* It was answered, or is given up (done false): to be said once of every transaction drawn, at its
 * place. */
void work_done(struct work *work, uint32_t place, const struct work_txn *txn, bool done);

/* The node at which an object is at home, by its key's tag: slot_of_key * nodes / HASH_SLOTS, as a
 * store that is sharded statically has it. */
uint8_t work_home(struct bytes key, uint32_t nodes);

#endif
