/* What the generators share. A key is `{ab}` and 4 bytes: the tag is that of the home's place, so
 * that the slots of Redis Cluster put it on that place's node; the 4 bytes are table and number. */
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
};
extern const struct work_ops work_handovers, work_smallbank, work_tatp, work_voter, work_ycsb;

/* Each place's counter in its own cache line: places are drawn for by different threads. */
struct work_place {
    _Alignas(64) uint64_t drawn;
};

struct work {
    struct work_config config;
    const struct work_ops *ops;
    uint32_t places;
    uint32_t per_place; /* objects */
    uint8_t tags[WORK_PLACES_MAX][2];
    uint8_t value[WORK_VALUE_BYTES_MAX];
    struct keys keys; /* ycsb; voter: contestants */
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
struct bytes work_value(const struct work *work, uint32_t n);
/* A place of another node; with one node only, the same place. */
uint32_t work_elsewhere(const struct work *work, uint32_t place, struct random *random);
/* `place`, or with the configured probability a place of another node. */
uint32_t work_where(const struct work *work, uint32_t place, struct random *random);

#endif
