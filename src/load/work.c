#include "load/work.h"

#include <stdlib.h>

#include "base/assert.h"
#include "base/err.h"
#include "base/slot.h"
#include "load/work_internal.h"

const char *const work_kind_names[WORK_KINDS] = {
    [WORK_HANDOVERS] = "handovers", [WORK_SMALLBANK] = "smallbank", [WORK_TATP] = "tatp",
    [WORK_VOTER] = "voter",         [WORK_YCSB] = "ycsb",           [WORK_YCSB_A] = "ycsb-a",
    [WORK_YCSB_B] = "ycsb-b",       [WORK_YCSB_C] = "ycsb-c",       [WORK_YCSB_D] = "ycsb-d",
    [WORK_YCSB_E] = "ycsb-e",       [WORK_YCSB_F] = "ycsb-f",       [WORK_TPCC] = "tpcc",
};

static const struct work_ops *const all[WORK_KINDS] = {
    [WORK_HANDOVERS] = &work_handovers, [WORK_SMALLBANK] = &work_smallbank,
    [WORK_TATP] = &work_tatp,           [WORK_VOTER] = &work_voter,
    [WORK_YCSB] = &work_ycsb,           [WORK_YCSB_A] = &work_ycsb_a,
    [WORK_YCSB_B] = &work_ycsb_b,       [WORK_YCSB_C] = &work_ycsb_c,
    [WORK_YCSB_D] = &work_ycsb_d,       [WORK_YCSB_E] = &work_ycsb_e,
    [WORK_YCSB_F] = &work_ycsb_f,       [WORK_TPCC] = &work_tpcc,
};

struct work_config work_defaults(enum work_kind kind)
{
    struct work_config config = all[kind]->defaults;
    config.kind = kind;
    config.nodes = 3;
    config.workers = 1;
    config.seed = 1;
    return config;
}

bool work_scans(enum work_kind kind)
{
    return all[kind]->scans;
}

/* What only some of the workloads look at. */
static const char *own_wrong(const struct work_config *c)
{
    bool ycsb = c->kind >= WORK_YCSB && c->kind <= WORK_YCSB_F;
    if (ycsb && (c->requests == 0 || c->requests > WORK_REQUESTS_MAX)) {
        return "a transaction has 1 to 32 requests";
    }
    if (all[c->kind]->nature && c->remote >= 0.0) {
        return "which transactions are remote is this workload's own matter";
    }
    if (ycsb && c->kind != WORK_YCSB &&
        (c->columns == 0 || c->columns > c->value_bytes || c->requests > c->objects)) {
        return "a record has a column at least, and a column a byte";
    }
    if (c->kind == WORK_YCSB_E && (c->scan == 0 || c->scan > WORK_SCAN_MAX)) {
        return "a scan has 1 to 1000 records";
    }
    if (c->kind == WORK_SMALLBANK && (c->hot < 2 * c->workers || c->hot > c->objects)) {
        return "the hot accounts are two a worker at least, and not more than there are";
    }
    if (c->kind == WORK_TPCC && (c->warehouses == 0 || c->warehouses > WORK_WAREHOUSES_MAX ||
                                 c->customers < 30 || c->customers > WORK_CUSTOMERS_MAX)) {
        return "1 to 200 warehouses a worker, 30 to 3000 customers a district";
    }
    return NULL;
}

const char *work_config_wrong(const struct work_config *c)
{
    if (c->kind >= WORK_KINDS || c->nodes == 0 || c->workers == 0 ||
        c->nodes * (uint64_t)c->workers > WORK_PLACES_MAX) {
        return "there is no such workload, or too many workers";
    }
    if (c->objects < 64 * c->workers || c->objects > WORK_OBJECTS_MAX) {
        return "64 objects a worker are the least, 4,000,000 a node the most";
    }
    if (c->value_bytes > WORK_VALUE_BYTES_MAX) {
        return "values of a workload have at most 4096 bytes";
    }
    if (c->remote > 100.0 || c->writes < 0.0 || c->writes > 100.0 || c->handovers < 0.0 ||
        c->handovers > 100.0 || !(c->theta >= 0.0)) {
        return "a percentage is between 0 and 100, an exponent at least 0";
    }
    return own_wrong(c);
}

uint8_t work_home(struct bytes key, uint32_t nodes)
{
    return (uint8_t)((uint32_t)slot_of_key(key) * nodes / HASH_SLOTS);
}

/* Tags of two letters, each on its place's node; with 26^2 of them each node has more than it
 * needs, up to WORK_PLACES_MAX. */
static bool find_tags(struct work *w)
{
    uint32_t next = 0;
    for (uint32_t place = 0; place < w->places; place++) {
        bool found = false;
        next = place % w->config.workers == 0 ? 0 : next;
        for (; next < 52u * 52u && !found; next++) {
            static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
            uint8_t key[4] = {'{', (uint8_t)letters[next / 52u], (uint8_t)letters[next % 52u], '}'};
            found = work_home(bytes_of(key, 4), w->config.nodes) == work_node_of(w, place);
            memcpy(w->tags[place], key + 1, 2);
        }
        if (!found) {
            return false;
        }
    }
    return true;
}

int work_create(const struct work_config *config, struct work **work_out)
{
    if (work_config_wrong(config) != NULL) {
        return HK_ERR_INVALID;
    }
    struct work *w = calloc(1, sizeof *w);
    if (w == NULL) {
        return HK_ERR_NOMEM;
    }
    w->config = *config;
    w->ops = all[config->kind];
    w->places = config->nodes * config->workers;
    w->per_place = config->objects / config->workers;
    memset(w->value, 'v', sizeof w->value);
    w->at = aligned_alloc(64, w->places * sizeof *w->at);
    int err = w->at == NULL ? HK_ERR_NOMEM : find_tags(w) ? HK_OK : HK_ERR_INVALID;
    if (err == HK_OK) {
        memset(w->at, 0, w->places * sizeof *w->at);
        err = w->ops->open != NULL ? w->ops->open(w) : HK_OK;
    }
    if (err != HK_OK) {
        work_destroy(w);
        return err;
    }
    *work_out = w;
    return HK_OK;
}

void work_destroy(struct work *w)
{
    if (w == NULL) {
        return;
    }
    if (w->ops->close != NULL) {
        w->ops->close(w);
    }
    free(w->at);
    free(w);
}

const struct work_config *work_config(const struct work *w)
{
    return &w->config;
}

uint32_t work_types(const struct work *w)
{
    return w->ops->types;
}

const char *work_type_name(const struct work *w, uint32_t type)
{
    HK_ASSERT(type < w->ops->types);
    return w->ops->names[type];
}

double work_type_success(const struct work *w, uint32_t type)
{
    HK_ASSERT(type < w->ops->types);
    return w->ops->success[type];
}

uint64_t work_fill_count(const struct work *w)
{
    return w->ops->fill_count(w);
}

bool work_fill(const struct work *w, uint32_t place, uint64_t number, struct work_txn *txn)
{
    return w->ops->fill(w, place, number, txn);
}

void work_draw(struct work *w, uint32_t place, struct random *random, struct work_txn *txn)
{
    w->ops->draw(w, place, random, txn);
    w->at[place].drawn++;
}

enum work_step work_next(struct work *w, uint32_t place, struct work_txn *txn, bool watched,
                         const struct answer *answers, const uint64_t *versions)
{
    return w->ops->next != NULL ? w->ops->next(w, place, txn, watched, answers, versions)
                                : WORK_OVER;
}

bool work_succeeded(const struct work *w, const struct work_txn *txn, bool applied,
                    const struct answer *answers)
{
    return w->ops->succeeded != NULL ? w->ops->succeeded(txn, applied, answers) : applied;
}

void work_done(struct work *w, uint32_t place, const struct work_txn *txn, bool done)
{
    if (w->ops->done != NULL) {
        w->ops->done(w, place, txn, done);
    }
}

/* ---- For the generators ---- */

void work_begin(struct work_txn *txn, uint32_t type)
{
    txn->ops_n = 0;
    txn->watches_n = 0;
    txn->memory_n = 0;
    txn->flags = 0;
    txn->type = (uint8_t)type;
    txn->remote = false;
    txn->updates = false;
    memset(txn->own, 0, sizeof txn->own);
}

void work_key(const struct work *w, uint32_t home, uint32_t table, uint32_t id,
              uint8_t key[WORK_KEY_BYTES])
{
    key[0] = '{';
    memcpy(key + 1, w->tags[home], 2);
    key[3] = '}';
    put_u32(key + 4, table << WORK_TABLE_SHIFT | id);
}

struct op *work_op(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                   enum op_kind kind, uint32_t table, uint32_t id)
{
    HK_ASSERT(txn->ops_n < WORK_OPS_MAX && id <= WORK_ID_MAX);
    uint8_t *key = txn->keys[txn->ops_n];
    work_key(w, home, table, id, key);
    return work_op_on(w, txn, place, home, (uint8_t)kind, bytes_of(key, WORK_KEY_BYTES));
}

struct op *work_op_on(const struct work *w, struct work_txn *txn, uint32_t place, uint32_t home,
                      uint8_t kind, struct bytes key)
{
    HK_ASSERT(txn->ops_n < WORK_OPS_MAX);
    struct op *op = &txn->ops[txn->ops_n++];
    *op = (struct op){.kind = kind, .key = key};
    txn->remote = txn->remote || work_node_of(w, home) != work_node_of(w, place);
    txn->updates = txn->updates || (kind != OP_GET && kind != TXN_OP_RANGE);
    return op;
}

struct bytes work_value(const struct work *w, uint32_t n)
{
    HK_ASSERT(n <= sizeof w->value);
    return bytes_of(w->value, n);
}

uint32_t work_elsewhere(const struct work *w, uint32_t place, struct random *random)
{
    if (w->config.nodes == 1) {
        return place;
    }
    uint32_t node = (uint32_t)random_below(random, w->config.nodes - 1u);
    node += node >= work_node_of(w, place);
    return node * w->config.workers + (uint32_t)random_below(random, w->config.workers);
}

uint32_t work_where(const struct work *w, uint32_t place, struct random *random)
{
    return work_percent(random, w->config.remote) ? work_elsewhere(w, place, random) : place;
}
