#include "node/node.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "node/lotus.h"

const char *const node_drop_names[NODE_DROPS] = {
    [NODE_DROP_GENERATION] = "generation", [NODE_DROP_SENDER] = "sender",
    [NODE_DROP_MESSAGE] = "message",       [NODE_DROP_SPACE] = "space",
    [NODE_DROP_MEMORY] = "memory",         [NODE_DROP_CHUNK] = "chunk",
    [NODE_DROP_EARLY] = "early",           [NODE_DROP_LANE] = "lane",
    [NODE_DROP_AHEAD] = "ahead",
};

const char *const node_rule_names[NODE_RULES] = {
    [NODE_RULE_LEASE] = "lease",
    [NODE_RULE_LEASE_ANSWER] = "lease-answer",
    [NODE_RULE_ORDER] = "order",
    [NODE_RULE_BARRIER] = "barrier",
    [NODE_RULE_COPY_FIRST] = "copy-first",
    [NODE_RULE_DONOR_EPOCH] = "donor-epoch",
    [NODE_RULE_RETRY_DECIDED] = "retry-decided",
    [NODE_RULE_FORWARD_ONCE] = "forward-once",
    [NODE_RULE_HANDED_MAP] = "handed-map",
    [NODE_RULE_MOVING_GATE] = "moving-gate",
};

/* ---- Making ---- */

static void default_u32(uint32_t *field, uint32_t value)
{
    *field = *field != 0 ? *field : value;
}

static void default_u64(uint64_t *field, uint64_t value)
{
    *field = *field != 0 ? *field : value;
}

/* A stored value may carry its deadline in front, and its evaluation leaves room for that. */
#define VALUE_SPARE 64u
#define CHUNK_BYTES_MAX (16u * 1024u * 1024u)

static void set_defaults(struct node_config *c)
{
    c->version_max = c->version_max != 0 ? c->version_max : FRAME_VERSION;
    default_u32(&c->calls_max, 4096);
    default_u32(&c->flows_max, 4096);
    default_u32(&c->sessions_max, 1024);
    default_u32(&c->session_calls_max, 128);
    default_u32(&c->rmw_tries_max, 64);
    default_u32(&c->chunk_bytes, 64u * 1024u);
    default_u64(&c->parked_us, 10000);
    default_u64(&c->answer_us, 5000000);
    default_u64(&c->no_lease_us, c->view.lease_us);
    default_u64(&c->sweep_us, 1000000);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        default_u32(&c->spaces[i].store.value_bytes_max, STORE_VALUE_MAX - VALUE_SPARE);
        default_u32(&c->spaces[i].hot.misses_max, 256);
        default_u64(&c->spaces[i].hot.epoch_us, 1000000);
        default_u32(&c->spaces[i].hot.sample, 16);
        struct owned_config *owned = &c->spaces[i].owned;
        default_u32(&owned->busy_max, 8192);
        default_u32(&owned->quantum_us, 200);
        default_u32(&owned->quantum_most_us, 3200);
        default_u32(&owned->window_us, 20000);
        default_u64(&owned->grace_us, 10000000);
        default_u64(&owned->walk_us, 1000000);
    }
}

static bool config_valid(const struct node_config *c)
{
    bool any = false;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        any |= c->spaces[i].ops != NULL;
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct space_config *space = &c->spaces[i];
        any &=
            space->ops == NULL ||
            (space->store.value_bytes_max <= STORE_VALUE_MAX - VALUE_SPARE &&
             (!space->async_reads || (space->ops->traits & ENGINE_CONFIRMS) != 0) &&
             ((space->ops->traits &
               (ENGINE_HOMED | ENGINE_OWNED | ENGINE_SHARDED | ENGINE_TABLES)) == 0 ||
              (space->ops->port_needs & PORT_ORDERED) != 0) &&
             ((space->ops->traits & (ENGINE_OWNED | ENGINE_TABLES)) == 0 || space->engine != NULL));
    }
    return any && view_config_invalid(&c->view) == NULL && c->chunk_bytes <= CHUNK_BYTES_MAX &&
           c->version_max <= FRAME_VERSION_MAX && c->workers > 0 && c->workers <= WORKERS_MAX &&
           c->self < NODES_MAX && c->view.self == c->self && c->view.nonce != 0 &&
           c->flows_max < SLOT_INDEX_MAX;
}

static const struct brought_ops *brought_of(const struct engine_ops *ops)
{
    return (ops->traits & ENGINE_SHARDED) != 0  ? &occ_brought
           : (ops->traits & ENGINE_TABLES) != 0 ? &lotus_brought
                                                : NULL;
}

static int make_spaces(struct node *n)
{
    n->first_space = SPACES_MAX;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct space_config *config = &n->config.spaces[i];
        struct space *space = &n->spaces[i];
        if (config->ops == NULL) {
            continue;
        }
        if (n->first_space == SPACES_MAX) {
            n->first_space = (uint8_t)i;
        }
        struct store_config store = config->store;
        /* A stored value may carry its deadline in front. */
        uint32_t most = store.value_bytes_max + 8;
        bool tables = (config->ops->traits & ENGINE_TABLES) != 0;
        store.value_bytes_max = most + (tables ? LOTUS_ROW_HEAD : 0);
        n->evaluated_bytes = most + 8 > n->evaluated_bytes ? most + 8 : n->evaluated_bytes;
        space->ordered = (config->ops->port_needs & PORT_ORDERED) != 0;
        space->lanes = space->ordered && !n->env.ordered;
        space->sharded = (config->ops->traits & ENGINE_SHARDED) != 0;
        space->homed = (config->ops->traits & ENGINE_HOMED) != 0;
        space->brought = brought_of(config->ops);
        store.force_any = space->ordered;
        int err = store_create(&store, &space->store);
        if (err != HK_OK) {
            return err;
        }
        space->ops = config->ops;
        if ((config->ops->traits & ENGINE_OWNED) != 0) {
            /* The same seed: a key has the same hash in both. */
            store.memory_max = 0;
            err = store_create(&store, &space->directory);
            n->owned |= 1u << i;
        }
        err = err != HK_OK ? err : homes_init(space);
        err = err != HK_OK ? err : hot_epoch_init(space, &config->hot);
        if (err != HK_OK) {
            return err;
        }
        space->engine = config->engine;
        space->async_reads = config->async_reads;
        space->exclusive = space->homed && config->hot.exclusive;
        space->misses_max = config->hot.misses_max;
        log_init(&space->log);
        space->take_due_us = UINT64_MAX;
        if (tables) {
            n->tables |= 1u << i;
            err = lotus_tables_init(n, (uint8_t)i);
            if (err != HK_OK) {
                return err;
            }
        }
        n->wide |= (config->ops->traits & ENGINE_WORKER_FLOW) != 0 ? 1u << i : 0;
        n->gated |= config->ops->ready != NULL ? 1u << i : 0;
    }
    return HK_OK;
}

static uint32_t power_of_two(uint32_t at_least)
{
    uint32_t p = 2;
    while (p < at_least) {
        p *= 2;
    }
    return p;
}

static int make_rings(struct worker *w)
{
    uint32_t mail = power_of_two(w->node->config.flows_max + 1);
    w->mail_cells = calloc(mail, RING_MPSC_CELL_BYTES(sizeof(struct mail)));
    w->wake_cells = calloc(WAKE_RING, RING_MPSC_CELL_BYTES(sizeof(struct mail)));
    if (w->mail_cells == NULL || w->wake_cells == NULL) {
        return HK_ERR_NOMEM;
    }
    ring_mpsc_init(&w->mail, w->mail_cells, mail, sizeof(struct mail));
    ring_mpsc_init(&w->wakes, w->wake_cells, WAKE_RING, sizeof(struct mail));
    return HK_OK;
}

static int make_tables(struct worker *w)
{
    const struct node_config *c = &w->node->config;
    w->flows_memory = calloc(c->flows_max + 1, sizeof *w->flows_memory);
    w->adopt = calloc(c->flows_max + 1, sizeof *w->adopt);
    w->nudge = calloc(c->flows_max + 1, sizeof *w->nudge);
    w->calls_memory = calloc(c->calls_max, sizeof *w->calls_memory);
    w->sessions = calloc(c->sessions_max, sizeof *w->sessions);
    w->scratch = aligned_alloc(64, STORE_INLINE_MAX);
    w->evaluated = malloc(w->node->evaluated_bytes);
    w->early = malloc(EARLY_BYTES);
    w->early_spare = malloc(EARLY_BYTES);
    w->early_capacity = EARLY_BYTES;
    w->sweep.bytes = w->index == 0 ? malloc(SWEEP_BYTES) : NULL;
    if (w->flows_memory == NULL || w->adopt == NULL || w->nudge == NULL ||
        w->calls_memory == NULL || w->sessions == NULL || w->scratch == NULL ||
        w->evaluated == NULL || w->early == NULL || w->early_spare == NULL ||
        (w->index == 0 && w->sweep.bytes == NULL)) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 1; i <= c->flows_max; i++) {
        struct flow *f = &w->flows_memory[i];
        f->slot.ref = slot_ref((uint8_t)w->index, i);
        f->slot.gen = 1;
        timer_init(&f->timer, TIMER_FLOW);
        list_init(&f->checking);
        list_push_back(&w->flows_free, &f->link);
    }
    for (uint32_t i = 0; i < c->calls_max; i++) {
        list_push_back(&w->calls_free, &w->calls_memory[i].link);
    }
    w->calls_free_n = c->calls_max;
    return make_rings(w);
}

static int make_threads(struct worker *w)
{
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct space *space = &w->node->spaces[i];
        if (space->ops == NULL) {
            continue;
        }
        int err = store_thread_register(space->store, &w->threads[i]);
        if (err == HK_OK && space->directory != NULL) {
            err = store_thread_register(space->directory, &w->directories[i]);
        }
        if (err != HK_OK) {
            return err;
        }
        w->engine_state[i] = calloc(1, space->ops->worker_bytes > 0 ? space->ops->worker_bytes : 1);
        if (w->engine_state[i] == NULL) {
            return HK_ERR_NOMEM;
        }
        w->hot[i] = hot_open(w->node, (uint8_t)i, w->index, w->node->config.spaces[i].hot.sample,
                             HOT_COUNTERS);
        if (w->hot[i] == NULL) {
            return HK_ERR_NOMEM;
        }
    }
    return HK_OK;
}

static int make_worker(struct worker *w, uint64_t now_us)
{
    list_init(&w->flows);
    list_init(&w->flows_free);
    list_init(&w->calls_free);
    list_init(&w->ready);
    list_init(&w->checking);
    lanes_init(w);
    for (uint32_t i = 0; i < PARKED_LISTS; i++) {
        list_init(&w->parked[i]);
    }
    wheel_init(&w->wheel, now_us);
    random_init(&w->random, w->node->config.seed + w->index);
    w->now_us = now_us;
    w->transfer.donor = NODE_NONE;
    w->sweep.space = w->node->first_space;
    int err = make_tables(w);
    err = err != HK_OK ? err : aside_init(w);
    err = err != HK_OK ? err : forward_init(w);
    err = err != HK_OK ? err : own_init(w);
    err = err != HK_OK ? err : txn_init(w);
    err = err != HK_OK ? err : occ_init(w);
    err = err != HK_OK ? err : lotus_init(w);
    err = err != HK_OK ? err : lotus_home_init(w);
    return err != HK_OK ? err : make_threads(w);
}

int node_create(const struct node_config *config, const struct env *env, uint64_t now_us,
                struct node **node_out)
{
    struct node *n = aligned_alloc(64, sizeof *n);
    int err = HK_ERR_NOMEM;
    if (n == NULL) {
        return err;
    }
    memset(n, 0, sizeof *n);
    n->config = *config;
    n->env = *env;
    spin_init(&n->hot_lock);
    list_init(&n->samplers);
    set_defaults(&n->config);
    hash_secret_init(&n->placement, n->config.cluster);
    if (!config_valid(&n->config)) {
        free(n);
        return HK_ERR_INVALID;
    }
    n->workers = aligned_alloc(64, n->config.workers * sizeof *n->workers);
    n->effects = calloc(1, sizeof *n->effects);
    if (n->workers == NULL || n->effects == NULL) {
        goto out;
    }
    memset(n->workers, 0, n->config.workers * sizeof *n->workers);
    view_init(&n->machine, &n->config.view, now_us);
#ifdef HK_MUTANTS
    for (uint32_t i = 0; i < VIEW_RULES; i++) {
        if ((n->config.view_rules_off >> i & 1) != 0) {
            view_switch_off(&n->machine, (enum view_rule)i);
        }
    }
#endif
    atomic_init(&n->status, (uint32_t)view_status(&n->machine, now_us));
    err = make_spaces(n);
    for (uint32_t i = 0; i < n->config.workers && err == HK_OK; i++) {
        n->workers[i].node = n;
        n->workers[i].index = i;
        err = make_worker(&n->workers[i], now_us);
    }
out:
    if (err != HK_OK) {
        node_destroy(n);
        return err;
    }
    *node_out = n;
    return HK_OK;
}

/* ---- Unmaking ---- */

static void answer_open(struct worker *w)
{
    for (uint32_t i = 0; w->sessions != NULL && i < w->node->config.sessions_max; i++) {
        struct session *session = &w->sessions[i];
        if (!session->open) {
            continue;
        }
        list_each(link, &session->calls)
        {
            const struct call *c = list_entry(link, struct call, session_link);
            struct answer answer = c->answer;
            if (c->state != CALL_DONE) {
                bool sent = c->state == CALL_FORWARDED && c->miss != NULL && c->update;
                bool unknown = (c->state == CALL_ISSUED && c->expired_ms == 0) || c->decided ||
                               sent || (c->state == CALL_COMMITTED && c->update);
                answer = (struct answer){
                    .kind = ANSWER_ERROR,
                    .number = unknown ? HK_ERR_UNKNOWN : HK_ERR_UNAVAILABLE,
                };
                if (c->brought != NULL && c->brought->error != NULL) {
                    answer.number = c->brought->error(w, c, (int)answer.number);
                }
            }
            call_reply(w, c, &answer);
        }
    }
}

static void free_worker(struct worker *w)
{
    lotus_home_deinit(w);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (w->threads[i] != NULL) {
            store_thread_unregister(w->threads[i]);
        }
        if (w->directories[i] != NULL) {
            store_thread_unregister(w->directories[i]);
        }
        free(w->engine_state[i]);
        hot_close(w->node, w->hot[i]);
    }
    for (uint32_t i = 1; w->flows_memory != NULL && i <= w->node->config.flows_max; i++) {
        if (w->flows_memory[i].key_heap) {
            free(w->flows_memory[i].key_memory);
        }
    }
    output_deinit(w);
    lanes_deinit(w);
    aside_deinit(w);
    forward_deinit(w);
    own_deinit(w);
    txn_deinit(w);
    occ_deinit(w);
    lotus_deinit(w);
    free(w->chunk);
    free(w->early);
    free(w->early_spare);
    free(w->sweep.bytes);
    free(w->flows_memory);
    free(w->adopt);
    free(w->nudge);
    free(w->calls_memory);
    free(w->sessions);
    free(w->scratch);
    free(w->evaluated);
    free(w->mail_cells);
    free(w->wake_cells);
}

void node_destroy(struct node *n)
{
    for (uint32_t i = 0; n->workers != NULL && i < n->config.workers; i++) {
        if (n->workers[i].node != NULL) {
            answer_open(&n->workers[i]);
        }
    }
    for (uint32_t i = 0; n->workers != NULL && i < n->config.workers; i++) {
        if (n->workers[i].node != NULL) {
            free_worker(&n->workers[i]);
        }
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (n->spaces[i].store != NULL) {
            lotus_tables_deinit(n, (uint8_t)i);
            store_destroy(n->spaces[i].store);
            if (n->spaces[i].directory != NULL) {
                store_destroy(n->spaces[i].directory);
            }
            log_deinit(&n->spaces[i].log);
            homes_deinit(&n->spaces[i]);
            hot_epoch_deinit(&n->spaces[i]);
        }
    }
    free(n->effects);
    free(n->workers);
    free(n);
}

/* ---- Looking ---- */

struct worker *node_worker(struct node *node, uint32_t index)
{
    HK_ASSERT(index < node->config.workers);
    return &node->workers[index];
}

void node_stats(const struct node *node, struct node_stats *stats_out)
{
    /* struct node_stats is nothing but counters. */
    uint64_t *sum = (uint64_t *)(void *)stats_out;
    memset(stats_out, 0, sizeof *stats_out);
    for (uint32_t i = 0; i < node->config.workers; i++) {
        for (size_t k = 0; k < sizeof *stats_out / sizeof *sum; k++) {
            sum[k] += atomic_load_explicit(&node->workers[i].published[k], memory_order_relaxed);
        }
    }
}

void node_status(const struct node *node, uint64_t now_us, struct node_status *status_out)
{
    struct node *n = (struct node *)(uintptr_t)node; /* only its lock is written */
    control_published(n, &status_out->view);
    status_out->lease_until_us = atomic_load_explicit(&n->lease_until_us, memory_order_acquire);
    status_out->epoch_adopted = atomic_load_explicit(&n->adopted, memory_order_acquire);
    status_out->status = (enum view_status)atomic_load_explicit(&n->status, memory_order_acquire);
    if (status_out->status == VIEW_STATUS_SERVING && now_us >= status_out->lease_until_us) {
        status_out->status = VIEW_STATUS_NO_LEASE;
    }
}

struct store *node_store(struct node *node, uint32_t space)
{
    return space < SPACES_MAX ? node->spaces[space].store : NULL;
}

struct store_thread *worker_store_thread(struct worker *worker, uint32_t space)
{
    return space < SPACES_MAX ? worker->threads[space] : NULL;
}

uint64_t worker_looks(const struct worker *worker, uint32_t space)
{
    uint64_t looks = 0;
    if (space < SPACES_MAX && worker->threads[space] != NULL) {
        looks += store_thread_looks(worker->threads[space]);
    }
    if (space < SPACES_MAX && worker->directories[space] != NULL) {
        looks += store_thread_looks(worker->directories[space]);
    }
    return looks;
}
