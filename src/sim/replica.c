#include "sim/replica.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/meta.h"
#include "base/slot.h"
#include "engine/galene/galene.h"
#include "sim/world.h"

struct entry {
    struct key_meta meta;
    uint64_t value_hash;
    uint32_t value_n;
    uint32_t key_n;
    uint8_t *key; /* owned */
};

struct replica {
    struct entry *at;
    size_t n, capacity;
    const struct hash_secret *secret;
    uint8_t node;
};

static int compare_keys(const struct entry *a, const struct entry *b)
{
    uint32_t n = a->key_n < b->key_n ? a->key_n : b->key_n;
    int order = memcmp(a->key, b->key, n);
    return order != 0 ? order : (a->key_n > b->key_n) - (a->key_n < b->key_n);
}

static int compare_entries(const void *a, const void *b)
{
    return compare_keys(a, b);
}

static void visit(void *context, struct bytes key, uint64_t hash, const struct key_meta *meta,
                  struct bytes value)
{
    struct replica *r = context;
    (void)hash;
    if (r->n == r->capacity) {
        r->capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        r->at = realloc(r->at, r->capacity * sizeof *r->at);
        HK_ASSERT(r->at != NULL);
    }
    struct entry *e = &r->at[r->n++];
    *e = (struct entry){.meta = *meta, .value_n = value.n, .key_n = key.n};
    e->value_hash = hash_bytes(r->secret, value);
    e->key = malloc((size_t)key.n + 1);
    HK_ASSERT(e->key != NULL);
    memcpy(e->key, key.at, key.n);
}

static void collect(struct machine *m, struct replica *r)
{
    *r = (struct replica){.secret = &m->world->trace.secret};
    store_online(m->eye);
    uint64_t cursor = 0;
    do {
        cursor = store_walk(node_store(m->node, 0), m->eye, cursor, visit, r);
    } while (cursor != 0);
    store_quiescent(m->eye);
    store_offline(m->eye);
    if (r->n == 0) {
        return;
    }
    qsort(r->at, r->n, sizeof *r->at, compare_entries);
    /* A walk may visit a key twice. */
    size_t kept = 1;
    for (size_t i = 1; i < r->n; i++) {
        if (compare_keys(&r->at[i], &r->at[kept - 1]) == 0) {
            free(r->at[i].key);
        } else {
            r->at[kept++] = r->at[i];
        }
    }
    r->n = kept;
}

static void replica_deinit(struct replica *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->at[i].key);
    }
    free(r->at);
}

static void print_entry(struct text *to, uint8_t node, const struct entry *e)
{
    if (e == NULL) {
        text_add(to, " node %u: nothing;", node);
        return;
    }
    text_add(to, " node %u: ts %" PRIu64 ".%" PRIu32 " state %u flags %x, %" PRIu32 " bytes", node,
             stamp_version(e->meta.ts), stamp_cid(e->meta.ts), e->meta.state, e->meta.flags,
             e->value_n);
    text_add(to, " of hash %08" PRIx32 ";", (uint32_t)e->value_hash);
}

static bool is_tombstone(const struct entry *e)
{
    return (e->meta.flags & KEY_TOMBSTONE) != 0;
}

static bool same(const struct entry *a, const struct entry *b)
{
    return a->meta.ts == b->meta.ts && a->value_n == b->value_n && a->value_hash == b->value_hash &&
           ((a->meta.flags ^ b->meta.flags) & KEY_VALUE_FLAGS) == 0;
}

static void print_differences(const struct entry *const *at, const struct replica *replicas,
                              uint32_t nodes, const struct entry *first, struct text *why)
{
    uint32_t printable = 0;
    while (printable < first->key_n && first->key[printable] > ' ' &&
           first->key[printable] < 0x7f) {
        printable++;
    }
    text_add(why, "key %.*s:", (int)printable, (const char *)first->key);
    for (uint32_t i = 0; i < nodes; i++) {
        print_entry(why, replicas[i].node, at[i]);
    }
}

/* The entries of one key at all nodes, NULL where there is none. */
static bool key_equal(const struct entry *const *at, const struct replica *replicas, uint32_t nodes,
                      bool forgotten, struct text *why)
{
    const struct entry *first = NULL;
    bool missing = false;
    bool equal = true;
    for (uint32_t i = 0; i < nodes; i++) {
        if (at[i] == NULL) {
            missing = true;
            continue;
        }
        first = first == NULL ? at[i] : first;
        equal = equal && same(first, at[i]) && (at[i]->meta.flags & KEY_READABLE) != 0;
    }
    HK_ASSERT(first != NULL);
    if (equal && (is_tombstone(first) ? !forgotten : !missing)) {
        return true;
    }
    print_differences(at, replicas, nodes, first, why);
    return false;
}

/* The same of a key that has a home: it is there, and, if it is cached, may be elsewhere as well.
 * What can be read is equal. Some may have seen the beginning of a write whose writer died, and
 * cannot read it. Who joined since it entered has no entry before the hot set changes. */
static bool key_homed(const struct world *world, const struct entry *const *at,
                      const struct replica *replicas, uint32_t nodes, struct text *why)
{
    const struct entry *first = NULL;
    const struct entry *readable = NULL;
    uint8_t home = NODE_NONE;
    bool good = true;
    bool there = false;
    for (uint32_t i = 0; i < nodes; i++) {
        const struct entry *e = at[i];
        if (e == NULL) {
            continue;
        }
        const struct machine *m = &world->machines[replicas[i].node];
        first = first == NULL ? e : first;
        home = node_home(m->node, 0, slot_of_key(bytes_of(first->key, first->key_n))).home;
        there = there || replicas[i].node == home;
        good = good && e->meta.aux == first->meta.aux &&
               (e->meta.aux != 0 || replicas[i].node == home);
        if (e->meta.state == GALENE_LOST) {
            continue;
        }
        readable = readable == NULL ? e : readable;
        good = good && same(readable, e) &&
               e->meta.state == (e->meta.aux != 0 ? GALENE_VALID : GALENE_HOME);
    }
    HK_ASSERT(first != NULL);
    if (good && there) {
        return true;
    }
    print_differences(at, replicas, nodes, first, why);
    text_add(why, " home %u", home);
    return false;
}

static bool compare_replicas(const struct world *world, struct replica *replicas, uint32_t nodes,
                             bool forgotten, struct text *why)
{
    size_t next[SIM_NODES_MAX] = {0};
    for (;;) {
        const struct entry *least = NULL;
        for (uint32_t i = 0; i < nodes; i++) {
            const struct replica *r = &replicas[i];
            if (next[i] < r->n && (least == NULL || compare_keys(&r->at[next[i]], least) < 0)) {
                least = &r->at[next[i]];
            }
        }
        if (least == NULL) {
            return true;
        }
        const struct entry *at[SIM_NODES_MAX] = {NULL};
        for (uint32_t i = 0; i < nodes; i++) {
            const struct replica *r = &replicas[i];
            if (next[i] < r->n && compare_keys(&r->at[next[i]], least) == 0) {
                at[i] = &r->at[next[i]++];
            }
        }
        if (homed_on(world) ? !key_homed(world, at, replicas, nodes, why)
                            : !key_equal(at, replicas, nodes, forgotten, why)) {
            return false;
        }
    }
}

/* Rows are at one node each. */
static bool tables_whole(struct world *world, struct text *why)
{
    for (nodeset rest = world->operator.wanted; rest != 0; rest &= rest - 1) {
        struct machine *m = &world->machines[nodeset_first(rest)];
        store_online(m->eye);
        const char *broken = node_table_check(m->node, 0, m->eye);
        store_quiescent(m->eye);
        store_offline(m->eye);
        if (broken != NULL) {
            text_add(why, " node %u: %s;", m->id, broken);
            return false;
        }
    }
    return true;
}

bool replicas_equal(struct world *world, struct text *why_out)
{
    if ((world->setup.engine->traits & ENGINE_TABLES) != 0) {
        return tables_whole(world, why_out);
    }
    if (owned_on(world)) {
        return owned_equal(world, why_out);
    }
    struct replica replicas[SIM_NODES_MAX];
    uint32_t n = 0;
    for (nodeset rest = world->operator.wanted; rest != 0; rest &= rest - 1) {
        struct machine *m = &world->machines[nodeset_first(rest)];
        HK_ASSERT(m->node != NULL);
        collect(m, &replicas[n]);
        replicas[n++].node = m->id;
    }
    const struct setup *s = &world->setup;
    bool keeps = (s->engine->traits & ENGINE_TOMBSTONES) != 0;
    bool forgotten = s->gentle && s->grace_us <= s->lease_us && !keeps;
    bool equal = compare_replicas(world, replicas, n, forgotten, why_out);
    for (uint32_t i = 0; i < n; i++) {
        replica_deinit(&replicas[i]);
    }
    return equal;
}
