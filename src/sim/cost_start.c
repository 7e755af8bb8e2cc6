/* How a modelled cluster comes into being: its nodes form a view by themselves, one key is written
 * through the protocol, and all others are put into the stores as that one is there. */
#include "sim/cost_cluster_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"

#define VIEW_WAIT_US 20000000u
#define SLICE_US 10000u
#define WRITE_US 5000u
#define FILL_WAIT_US 10000000u
#define FILL_SLICE_US 100u

static int create_node(struct cost_cluster *c, uint8_t i)
{
    const struct cost_setup *setup = &c->setup;
    struct cost_side *side = &c->sides[i];
    struct env env;
    struct node_config config = {
        .self = i,
        .role = setup->memory == 0                  ? NODE_ROLE_BOTH
                : i >= setup->nodes - setup->memory ? NODE_ROLE_MEMORY
                                                    : NODE_ROLE_COMPUTE,
        .workers = setup->workers,
        .cluster = COST_CLUSTER_ID,
        .seed = setup->seed + i,
        .calls_max = 2 * setup->window_most + 64,
        .flows_max = 4096,
        .sessions_max = setup->window_most,
        .frame_messages_max = setup->frame_messages_max,
        .sweep_us = 1000000000, /* the papers' systems have no such walk */
        .view = {.self = i,
                 .nonce = cost_nonce(i),
                 .configured = nodeset_of((uint8_t)setup->nodes) - 1,
                 .lease_us = setup->lease_us,
                 .margin_us = setup->lease_us / 10,
                 .heartbeat_us = setup->lease_us / 6,
                 .suspect_us = setup->lease_us / 2,
                 .cids_per_member = 4,
                 .seed = setup->seed + i},
    };
    config.spaces[0] = (struct space_config){
        .ops = setup->engine,
        .engine = setup->engine_config,
        .async_reads = setup->async_reads,
        .hot = setup->hot,
        .store = {.keys_expected = c->work != NULL ? c->objects : setup->keys,
                  .seed = setup->seed + i,
                  .value_bytes_max = 4096},
    };
    side->cluster = c;
    side->index = i;
    side->workers = calloc(setup->workers, sizeof *side->workers);
    if (side->workers == NULL) {
        return HK_ERR_NOMEM;
    }
    cost_env(side, &env);
    return node_create(&config, &env, c->now_ps / COST_PS_PER_US, &side->node);
}

static int open_worker(struct cost_side *side, uint32_t index)
{
    struct cost_worker *w = &side->workers[index];
    w->side = side;
    w->index = index;
    w->worker = node_worker(side->node, index);
    w->wake_ps = COST_NEVER;
    for (uint32_t i = 0; i < side->cluster->setup.window_most; i++) {
        int err = worker_session_open(w->worker, &w->sessions[i].session);
        if (err != HK_OK) {
            return err;
        }
    }
    return side->cluster->work != NULL ? cost_work_open(w) : HK_OK;
}

static bool all_serve(const struct cost_cluster *c)
{
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        struct node_status s;
        node_status(c->sides[i].node, c->now_ps / COST_PS_PER_US, &s);
        if (s.status != VIEW_STATUS_SERVING) {
            return false;
        }
    }
    return true;
}

static int form_view(struct cost_cluster *c)
{
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        for (uint32_t k = 0; k < c->setup.workers; k++) {
            cost_wake(&c->sides[i].workers[k], c->now_ps);
        }
    }
    uint64_t until_ps = c->now_ps + VIEW_WAIT_US * (uint64_t)COST_PS_PER_US;
    while (!all_serve(c)) {
        if (c->now_ps >= until_ps) {
            return HK_ERR_UNAVAILABLE;
        }
        cost_advance(c, c->now_ps + SLICE_US * (uint64_t)COST_PS_PER_US);
    }
    return HK_OK;
}

/* Key 0 is written by node 0 alone until everybody has heard of it. */
static void write_first(struct cost_cluster *c)
{
    struct cost_worker *w = &c->sides[0].workers[0];
    struct keys_config first = {.n = 1};
    keys_init(&c->keys, &first);
    random_init(&c->random, c->setup.seed);
    c->load = (struct cost_load){.writes_ppm = 1000000, .window = 1};
    w->idle[0] = 0;
    w->idle_first = 0;
    w->idle_n = 1;
    cost_wake(w, c->now_ps);
    cost_advance(c, c->now_ps + WRITE_US * (uint64_t)COST_PS_PER_US);
    c->load.window = 0;
    cost_advance(c, c->now_ps + WRITE_US * (uint64_t)COST_PS_PER_US);
}

static int fill(struct cost_cluster *c, struct store *store, struct store_thread *thread)
{
    struct key_meta meta = {0};
    struct store_ref ref;
    for (uint64_t key = 0; key < c->setup.keys; key++) {
        struct bytes bytes = bytes_of(&key, sizeof key);
        store_lock(store, thread, bytes, store_hash(store, bytes), &ref);
        if (key == 0) {
            bool written = ref.object != NULL;
            meta = written ? store_meta(&ref) : meta;
            store_unlock(&ref);
            if (!written || (meta.flags & KEY_READABLE) == 0 || meta.owner != 0) {
                return HK_ERR_UNAVAILABLE;
            }
            continue;
        }
        int err = store_set(&ref, &meta, bytes_of(c->value, c->setup.value_bytes), false);
        store_unlock(&ref);
        if (err != HK_OK) {
            return err;
        }
    }
    return HK_OK;
}

/* Keys that have homes are all written, by all sessions: which node is whose home is the nodes'
 * business. */
static int fill_homes(struct cost_cluster *c)
{
    uint64_t until_ps = c->now_ps + FILL_WAIT_US * (uint64_t)COST_PS_PER_US;
    c->load = (struct cost_load){.window = c->setup.window_most};
    c->filling = true;
    for (uint32_t i = 0; i < c->setup.nodes; i++) {
        for (uint32_t k = 0; k < c->setup.workers; k++) {
            cost_sessions_reset(&c->sides[i].workers[k]);
        }
    }
    while (c->filled < c->setup.keys && c->now_ps < until_ps) {
        cost_advance(c, c->now_ps + FILL_SLICE_US * (uint64_t)COST_PS_PER_US);
    }
    c->filling = false;
    return c->filled == c->setup.keys ? HK_OK : HK_ERR_UNAVAILABLE;
}

/* The workers may be asleep, and so offline: the fill is a thread of its own. */
static int fill_side(struct cost_cluster *c, struct cost_side *side)
{
    struct store *store = node_store(side->node, 0);
    struct store_thread *thread = NULL;
    int err = store_thread_register(store, &thread);
    if (err == HK_OK) {
        err = fill(c, store, thread);
        store_thread_unregister(thread);
    }
    return err;
}

int cost_start(struct cost_cluster *c)
{
    const struct cost_setup *s = &c->setup;
    bool single = s->work == NULL;
    if (s->nodes < 1 || s->memory >= s->nodes || s->nodes > NODES_MAX || s->workers < 1 ||
        s->workers > WORKERS_MAX || s->window_most < 1 || s->window_most > COST_WINDOW_MAX ||
        (single && s->keys == 0) || (single && s->value_bytes == 0) || s->value_bytes > 4096) {
        c->setup.nodes = 0;
        return HK_ERR_INVALID;
    }
    c->now_ps = 1000 * (uint64_t)COST_PS_PER_US;
    c->value = calloc(1, s->value_bytes + 1u);
    int err = c->value != NULL ? HK_OK : HK_ERR_NOMEM;
    err = err == HK_OK && !single ? cost_work_create(c) : err;
    for (uint8_t i = 0; err == HK_OK && i < s->nodes; i++) {
        err = create_node(c, i);
        for (uint32_t k = 0; err == HK_OK && k < s->workers; k++) {
            err = open_worker(&c->sides[i], k);
        }
    }
    err = err == HK_OK ? form_view(c) : err;
    if (err == HK_OK && c->work != NULL) {
        return cost_work_fill(c);
    }
    if (err == HK_OK && cost_homed(c)) {
        return fill_homes(c);
    }
    if (err == HK_OK) {
        write_first(c);
    }
    for (uint32_t i = 0; err == HK_OK && i < s->nodes; i++) {
        err = fill_side(c, &c->sides[i]);
    }
    return err;
}
