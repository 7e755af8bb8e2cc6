/* What the generators share. A key is `{ab}` and what stands behind it, mostly 4 bytes of table and
 * number: the tag is that of the home's place, so that the slots of Redis Cluster put it on that
 * place's node. */
#ifndef HORKOS_LOAD_WORK_INTERNAL_H
#define HORKOS_LOAD_WORK_INTERNAL_H

#include "engine/txn.h"
#include "load/keys.h"
#include "load/work.h"

#define WORK_TABLE_SHIFT 28u
#define WORK_ID_MAX ((1u << WORK_TABLE_SHIFT) - 1u)

struct handovers;

struct work_ops {
    const char *names[WORK_TYPES_MAX];
    double success[WORK_TYPES_MAX];
    uint32_t types;
    struct work_config defaults;
    int (*open)(struct work *work);
    void (*close)(struct work *work);
    uint64_t (*fill_count)(const struct work *work);
    bool (*fill)(const struct work *work, uint32_t place, uint64_t number, struct work_txn *txn);
    void (*draw)(struct work *work, uint32_t place, struct random *random, struct work_txn *txn);
    /* NULL: every transaction that took effect did. */
    bool (*succeeded)(const struct work_txn *txn, bool applied, const struct answer *answers);
    void (*done)(struct work *work, uint32_t place, const struct work_txn *txn, bool done);
    /* NULL: transactions have one step. */
    enum work_step (*next)(struct work *work, uint32_t place, struct work_txn *txn, bool watched,
                           const struct answer *answers, const uint64_t *versions);
    bool scans;
    bool nature; /* which of them are remote is the workload's own matter */
};
extern const struct work_ops work_handovers, work_smallbank, work_tatp, work_voter, work_ycsb,
    work_ycsb_a, work_ycsb_b, work_ycsb_c, work_ycsb_d, work_ycsb_e, work_ycsb_f, work_tpcc;

/* Records that a place may have inserted and not heard of yet. */
#define WORK_INSERTS_MAX 4096u

/* Each place's counters in cache lines of their own: places are drawn for by different threads. */
struct work_place {
    _Alignas(64) uint64_t drawn;
    uint64_t inserts;          /* numbers that were given out: records, rows of history */
    _Atomic uint64_t inserted; /* ycsb: all records below this one are there; read by all */
    uint64_t ended[WORK_INSERTS_MAX / 64]; /* ycsb: bit i % MAX: the i-th has been answered */
};

struct work {
    struct work_config config;
    const struct work_ops *ops;
    uint32_t places;
    uint32_t per_place; /* objects */
    uint8_t tags[WORK_PLACES_MAX][2];
    uint8_t value[WORK_VALUE_BYTES_MAX];
    struct keys keys;    /* ycsb; voter: contestants */
    uint32_t stride;     /* tpcc: which customer has which of the first orders, ... */
    uint32_t *delivered; /* ... and of each district which order was delivered last */
    struct work_place *at;
    struct handovers *handovers;
};

static inline uint32_t work_node_of(const struct work *w, uint32_t place)
{
    return place / w->config.workers;
}

/* A number that is the same for everybody, of whatever is put in. */
static inline uint64_t work_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static inline double work_unit(uint64_t x)
{
    return (double)(x >> 11) * 0x1p-53;
}

static inline bool work_percent(struct random *random, double percent)
{
    return work_unit(random_next(random)) * 100.0 < percent;
}

/* Begins a transaction of that type. */
void work_begin(struct work_txn *txn, uint32_t type);
/* Adds an operation on an object of `home`; drawn at `place`. */
struct op *work_op(const struct work *work, struct work_txn *txn, uint32_t place, uint32_t home,
                   enum op_kind kind, uint32_t table, uint32_t id);
void work_key(const struct work *work, uint32_t home, uint32_t table, uint32_t id,
              uint8_t key_out[WORK_KEY_BYTES]);
/* The same with a key that the caller has made, in memory that stays. */
struct op *work_op_on(const struct work *work, struct work_txn *txn, uint32_t place, uint32_t home,
                      uint8_t kind, struct bytes key);
struct bytes work_value(const struct work *work, uint32_t n);
/* A place of another node; with one node only, the same place. */
uint32_t work_elsewhere(const struct work *work, uint32_t place, struct random *random);
/* `place`, or with the configured probability a place of another node. */
uint32_t work_where(const struct work *work, uint32_t place, struct random *random);

#endif
