#include "node/read.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "engine/zeus/zeus.h"
#include "node/read_internal.h"

_Static_assert(NODE_READ_MAX == STORE_BATCH_MAX, "one batch of the store");

void node_reader_close(struct node_reader *r)
{
    commit_here_close(r);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (r->threads[i] != NULL) {
            store_thread_unregister(r->threads[i]);
        }
        hot_close(r->node, r->hot[i]);
    }
    free(r->memory);
    free(r);
}

/* A read here takes a tenth of the time that it takes on a worker. */
static uint32_t reader_sample(const struct node *n, uint32_t space)
{
    uint64_t sample = (uint64_t)HOT_READER_SAMPLE * n->config.spaces[space].hot.sample;
    return sample < UINT32_MAX ? (uint32_t)sample : UINT32_MAX;
}

int node_reader_open(struct node *node, struct node_reader **reader_out)
{
    struct node_reader *r = calloc(1, sizeof *r);
    if (r == NULL) {
        return HK_ERR_NOMEM;
    }
    r->node = node;
    r->worker = UINT32_MAX;
    r->memory = aligned_alloc(64, (size_t)NODE_READ_MAX * BUFFER_BYTES);
    int err = r->memory != NULL ? HK_OK : HK_ERR_NOMEM;
    for (uint32_t i = 0; i < NODE_READ_MAX && err == HK_OK; i++) {
        r->buffers[i] = r->memory + (size_t)i * BUFFER_BYTES;
    }
    for (uint32_t i = 0; i < SPACES_MAX && err == HK_OK; i++) {
        if (node->spaces[i].store != NULL) {
            err = store_thread_register(node->spaces[i].store, &r->threads[i]);
            r->hot[i] = hot_open(node, (uint8_t)i, WORKERS_MAX, reader_sample(node, i),
                                 HOT_READER_COUNTERS);
            err = err == HK_OK && r->hot[i] == NULL ? HK_ERR_NOMEM : err;
        }
    }
    if (err != HK_OK) {
        node_reader_close(r);
        return err;
    }
    *reader_out = r;
    return HK_OK;
}

void node_reader_offline(struct node_reader *r)
{
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (r->threads[i] != NULL) {
            store_offline(r->threads[i]);
        }
        if (r->entries[i] != NULL) {
            store_offline(r->entries[i]);
        }
    }
}

void node_reader_online(struct node_reader *r)
{
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (r->threads[i] != NULL) {
            store_online(r->threads[i]);
        }
        if (r->entries[i] != NULL) {
            store_online(r->entries[i]);
        }
    }
}

void node_reader_worker(struct node_reader *r, uint32_t worker)
{
    r->worker = worker;
    commit_here_open(r);
}

void node_reader_follow(struct node_reader *r)
{
    r->follows = true;
}

/* Whether a look at the store is enough: not where a majority confirms reads, nor where an engine
 * has to be asked first, or a session's order to be looked at, nor where rows are read under locks.
 */
static bool local_space(const struct node_reader *r, uint32_t space)
{
    const struct space *s = space < SPACES_MAX ? &r->node->spaces[space] : NULL;
    if (s == NULL || s->ops == NULL || s->async_reads || s->exclusive ||
        (s->ops->traits & ENGINE_TABLES) != 0 ||
        ((s->ops->traits & ENGINE_READS_FOLLOW) != 0 && !r->follows)) {
        return false;
    }
    /* acquire: pairs with publish_ready; what had to be taken before is in the store. */
    return s->ops->ready == NULL || atomic_load_explicit(&s->serves, memory_order_acquire);
}

static bool leased_at(const struct node *n, uint64_t now_us)
{
    /* acquire: pairs with publish_lease; everything that is read in the store is read later. It is
     * 0 while this node is no operational member. */
    return now_us < atomic_load_explicit(&n->lease_until_us, memory_order_acquire) ||
           !node_rule_on(n, NODE_RULE_LEASE);
}

bool node_reader_leased(const struct node_reader *r, uint64_t now_us)
{
    return leased_at(r->node, now_us);
}

static void ask_for_all(uint32_t n, struct node_read *reads)
{
    for (uint32_t i = 0; i < n; i++) {
        reads[i].answer = NODE_READ_ASK;
        reads[i].owned = false;
        reads[i].early = false;
    }
}

static bool expired(const struct node *n, const struct op_state *state)
{
    return state->deadline_ms != 0 && op_state_expired(state, n->env.wall_ms(n->env.context));
}

static inline void judge(const struct node_reader *r, const struct space *space,
                         const struct store_value *v, struct node_read *read)
{
    const struct node *n = r->node;
    uint8_t flags = v->found ? v->meta.flags : space->ops->blank.flags;
    bool homed = space->homed;
    read->version = v->found ? v->meta.ts : 0;
    read->cached = homed && v->found && v->meta.aux != 0;
    read->owned = v->found && (space->ops->traits & ENGINE_OWNED) != 0 && (flags & ZEUS_OWNED) != 0;
    read->answer = NODE_READ_ASK;
    read->early = r->early && read->owned && (flags & KEY_READABLE) == 0 &&
                  txn_committed_here(&v->meta, r->worker, r->caller);
    if ((flags & KEY_READABLE) == 0 && !read->early) {
        return;
    }
    if (!v->found || (flags & KEY_TOMBSTONE) != 0) {
        read->answer = NODE_READ_ABSENT;
    } else if ((flags & KEY_DEADLINE) == 0) {
        read->value = v->value;
        read->answer = NODE_READ_FOUND;
    } else {
        struct op_state state;
        if (op_state_from_stored(v->value, flags, &state) == HK_OK && !expired(n, &state)) {
            read->value = state.value;
            read->answer = NODE_READ_FOUND;
        }
    }
}

/* Each read of a batch is counted as often as any other: where the next sample falls was drawn
 * before. */
static inline void note(struct node_reader *r, uint32_t space, uint64_t now_us, uint32_t n,
                        const struct node_read *reads)
{
    struct hot_sampler *h = r->hot[space];
    uint32_t at = 0;
    while (h->left <= n - at) {
        struct bytes key = reads[at + h->left - 1].key;
        at += h->left;
        hot_take(h, key, store_hash(r->node->spaces[space].store, key), now_us);
    }
    h->left -= n - at;
}

static void read_one(struct node_reader *r, uint32_t space, struct node_read *read)
{
    struct node *n = r->node;
    struct store *store = n->spaces[space].store;
    struct store_value v;
    int err = store_read(store, r->threads[space], read->key, store_hash(store, read->key),
                         r->memory, STORE_INLINE_MAX, &v);
    HK_ASSERT(err == HK_OK);
    judge(r, &n->spaces[space], &v, read);
}

static void read_several(struct node_reader *r, uint32_t space, uint32_t count,
                         struct node_read *reads)
{
    struct node *n = r->node;
    struct store *store = n->spaces[space].store;
    for (uint32_t i = 0; i < count; i++) {
        r->keys[i] = reads[i].key;
        r->hashes[i] = store_hash(store, reads[i].key);
    }
    store_read_batch(store, r->threads[space], count, r->keys, r->hashes, r->buffers,
                     STORE_INLINE_MAX, r->values, r->errs);
    for (uint32_t i = 0; i < count; i++) {
        HK_ASSERT(r->errs[i] == HK_OK);
        judge(r, &n->spaces[space], &r->values[i], &reads[i]);
    }
}

void node_read(struct node_reader *r, uint32_t space, uint64_t now_us, uint32_t n,
               struct node_read *reads)
{
    HK_ASSERT(n > 0 && n <= NODE_READ_MAX);
    if (!local_space(r, space)) {
        ask_for_all(n, reads);
        return;
    }
    /* What the last call returned is not used any more. */
    store_quiescent_reader(r->threads[space]);
    if (!leased_at(r->node, now_us)) {
        ask_for_all(n, reads);
        return;
    }
    note(r, space, now_us, n, reads);
    if (n == 1) {
        read_one(r, space, reads);
    } else {
        read_several(r, space, n, reads);
    }
}

void node_read_early(struct node_reader *r, uint32_t space, uint64_t now_us, uint32_t n,
                     struct node_read *reads)
{
    r->early = true;
    node_read(r, space, now_us, n, reads);
    r->early = false;
}
