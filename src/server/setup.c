/* From the configuration to what node, gate and workers are made with. */
#include "server/internal.h"
#include "server/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/assert.h"
#include "base/clock.h"
#include "server/state_file.h"

/* A pass over every store takes as long. It only frees what is expired already, or deleted; each
 * pass costs as much as reading every key once. */
#define SWEEP_US 30000000u

static uint64_t random_word(void)
{
    uint64_t word;
    randombytes_buf(&word, sizeof word);
    return word;
}

static uint32_t at_least(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* ---- The node ---- */

static struct hot_config hot_of(const struct config_space *space)
{
    return (struct hot_config){
        .off = space->mode != CONFIG_CACHE,
        .exclusive = space->mode == CONFIG_BASE_EREW,
        .cache_keys = space->cache_keys,
        .epoch_us = space->hot_epoch_ms * UINT64_C(1000),
        .sample = space->hot_sample,
        .misses_max = space->misses_max,
    };
}

static struct owned_config owned_of(const struct config_space *space)
{
    return (struct owned_config){
        .busy_max = space->moving_max,
        .quantum_us = space->quantum_us,
        .quantum_most_us = space->quantum_most_us,
        .window_us = space->pingpong_us,
        .grace_us = space->forget_ms * UINT64_C(1000),
        .walk_us = space->repair_ms * UINT64_C(1000),
    };
}

static struct lotus_config lotus_of(const struct config_space *space)
{
    return (struct lotus_config){
        .lock = {.policy = (uint8_t)space->cc},
        .one_at_a_time = !space->batch_inside,
        .one_trip_off = !space->one_trip,
        .hints_off = space->hints_max == 0,
        .across = space->batch_across,
        .hints_max = space->hints_max,
        .tries_max = space->txns_max,
        .locks_max = space->locks_max,
        .try_locks_max = space->txn_locks_max,
        .lease_us = space->txn_lease_ms * UINT64_C(1000),
        .grace_us = space->forget_ms * UINT64_C(1000),
        .near_max = space->near_max,
    };
}

static const char *setup_spaces(struct server *s, char *error, uint32_t size)
{
    uint32_t lease_us = s->config.lease_ms * 1000u;
    bool any = false;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct config_space *space = &s->config.spaces[i];
        if (!space->exists) {
            continue;
        }
        const struct engine_ops *ops = engines_find(space->engine);
        if (ops == NULL) {
            snprintf(error, size,
                     "[space %u]: there is no engine \"%s\" in this version; use engine = hermes",
                     i, space->engine);
            return error;
        }
        if (space->async_reads && (ops->traits & ENGINE_CONFIRMS) == 0) {
            snprintf(error, size, "[space %u]: async_reads is not for engine %s", i, ops->name);
            return error;
        }
        /* Links are reliable while they last: what is lost goes with a connection, and the view
         * says more about that than a short time-out. */
        struct engines_options options = {
            .mlt_us = at_least(lease_us / 10u, 20000u),
            .grace_us = at_least(20u * lease_us, 10000000u),
            .ack_to_all = space->ack_all,
            .degree = space->degree,
            .lotus = lotus_of(space),
        };
        engines_configure(ops, &options, &s->engines[i]);
        if (space->backoff_us > 0 && (ops->traits & ENGINE_OWNED) != 0) {
            s->engines[i].zeus.own.backoff_us = space->backoff_us;
        }
        s->node_config.spaces[i] = (struct space_config){
            .ops = ops,
            .engine = &s->engines[i],
            .async_reads = space->async_reads,
            .hot = hot_of(space),
            .owned = owned_of(space),
            .store = {.memory_max = space->memory_max, .keys_expected = space->keys_expected},
        };
        any = true;
    }
    return any ? NULL : "no space is configured; add the section [space 0]";
}

const char *server_setup_node(struct server *s, char *error, uint32_t size)
{
    const struct config *c = &s->config;
    uint32_t lease_us = c->lease_ms * 1000u;
    s->node_config = (struct node_config){
        .self = c->id,
        .role = (uint8_t)c->role,
        .workers = c->workers,
        .cluster = c->cluster_id,
        .sessions_max = c->clients_max + 16u + (s->options.locals ? LOCAL_SESSIONS_MAX : 0),
        .session_calls_max = RESP_IN_FLIGHT_MAX,
        .parked_us = at_least(lease_us / 10u, 20000u),
        .sweep_us = SWEEP_US,
        .view =
            {
                .self = c->id,
                .configured = c->nodes,
                .lease_us = lease_us,
                .margin_us = config_margin_us(c),
                .heartbeat_us = lease_us / 6u,
                .suspect_us = lease_us / 3u * 2u,
                .cids_per_member = 4,
                .bootstrap = s->options.bootstrap,
            },
    };
    const char *why = setup_spaces(s, error, size);
    if (why != NULL) {
        return why;
    }
    server_setup_incarnation(s);
    why = view_config_invalid(&s->node_config.view);
    if (why != NULL) {
        snprintf(error, size,
                 "lease_ms = %u with drift_ppm = %u cannot work (%s); raise lease_ms or lower "
                 "drift_ppm",
                 c->lease_ms, c->drift_ppm, why);
        return error;
    }
    return NULL;
}

void server_setup_incarnation(struct server *s)
{
    s->node_config.seed = random_word();
    s->node_config.view.seed = random_word();
    s->node_config.view.nonce = random_word() | 1u;
    s->node_config.view.kept_generation = s->kept_generation;
    s->node_config.view.kept_epoch = s->kept_epoch;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        s->node_config.spaces[i].store.seed = random_word();
    }
}

/* ---- What the node asks of us ---- */

static bool env_receive(void *context, uint32_t worker, struct bytes *frame_out)
{
    struct server *s = context;
    return port_receive(s->workers[worker].port, frame_out);
}

static void env_send(void *context, uint32_t worker, uint8_t to, struct bytes frame)
{
    struct server *s = context;
    (void)to;
    port_send(s->workers[worker].port, frame);
}

static void env_give(void *context, uint32_t worker, uint8_t to, struct pieces *frame)
{
    struct server *s = context;
    (void)to;
    port_give(s->workers[worker].port, frame);
}

static bool env_under_way(void *context, uint32_t worker, uint8_t to)
{
    struct server *s = context;
    return port_large_under_way(s->workers[worker].port, to, (uint8_t)worker);
}

static uint16_t env_version(void *context, uint32_t worker, uint8_t to)
{
    struct server *s = context;
    return port_version(s->workers[worker].port, to);
}

static bool env_request(void *context, uint32_t worker, struct request *request_out)
{
    struct server *s = context;
    struct server_worker *w = &s->workers[worker];
    w->asked++;
    /* In turn, so that neither waits for the other to have nothing to ask. */
    w->locals_first = !w->locals_first;
    if (w->locals_first) {
        return locals_request(w, request_out) || clients_request(w, request_out);
    }
    return clients_request(w, request_out) || locals_request(w, request_out);
}

static void env_reply(void *context, uint32_t worker, const struct reply *reply)
{
    struct server *s = context;
    if (!locals_reply(&s->workers[worker], reply)) {
        clients_reply(&s->workers[worker], reply);
    }
}

static void env_wake(void *context, uint32_t worker)
{
    struct server *s = context;
    loop_wake(s->workers[worker].loop);
}

static uint64_t env_wall_ms(void *context)
{
    (void)context;
    return clock_wall_ms();
}

static void env_persist(void *context, uint64_t generation, uint32_t epoch)
{
    struct server *s = context;
    if (state_file_write(s->config.state_file, generation, epoch) != HK_OK) {
        /* To go on would be a promise that nobody keeps: after a restart this node might found a
         * second cluster. */
        log_write(s->log, LOG_ERROR,
                  "cannot write the state file %s: %m; stopping at once, since a node must not "
                  "forget its cluster. Mend the folder or its disk and start the node again",
                  s->config.state_file);
        abort();
    }
    s->kept_generation = generation;
    s->kept_epoch = epoch;
}

void server_setup_env(struct server *s)
{
    s->env = (struct env){
        .context = s,
        .receive = env_receive,
        .send = env_send,
        .request = env_request,
        .reply = env_reply,
        .wake = env_wake,
        .wall_ms = env_wall_ms,
        .persist = env_persist,
        .give = env_give,
        .under_way = env_under_way,
        .version = env_version,
    };
}

/* ---- The gate ---- */

static void peer_arrived(void *context, int fd, const struct handshake_peer *peer)
{
    struct server *s = context;
    pthread_mutex_lock(&s->gate_lock); /* only once gate_start has returned */
    pthread_mutex_unlock(&s->gate_lock);
    log_write(s->log, LOG_DEBUG, "node %u worker %u is connected with worker %u", peer->node,
              peer->worker, peer->local_worker);
    port_offer(s->workers[peer->local_worker].port, fd, peer);
}

static void report(void *context, const char *text)
{
    struct server *s = context;
    log_write(s->log, LOG_WARN, "%s", text);
}

void server_setup_gate(struct server *s, struct gate_config *g)
{
    const struct config *c = &s->config;
    memset(g, 0, sizeof *g);
    g->self.cluster = c->cluster_id;
    g->self.node = c->id;
    g->self.workers = (uint8_t)c->workers;
    g->self.shm = c->peer_transport == CONFIG_SHM;
    memcpy(g->self.key, c->key, sizeof g->self.key);
    g->client_listen = s->config.listens;
    g->client_listens = c->listens_n;
    if (nodeset_count(c->nodes) > 1) {
        g->peer_listen = c->peer_listen;
        memcpy(g->peers, c->peers, sizeof g->peers);
        memset(&g->peers[c->id], 0, sizeof g->peers[c->id]);
    }
    g->nodes = c->nodes;
    g->backoff_min_us = 10000;
    g->backoff_max_us = 500000;
    g->handshake_us = 3000000;
    g->handshakes_max = 64;
    g->user_timeout_ms = at_least(4u * c->lease_ms, 2000u);
    g->client = server_client_arrived;
    g->peer = peer_arrived;
    g->report = report;
    g->context = s;
}

/* ---- What may change at run time ---- */

void server_setup_apply(struct server *s)
{
    atomic_store_explicit(&s->clients_max, s->live.clients_max, memory_order_relaxed);
    log_set_level(s->log, s->live.log_level);
    slowlog_set_max(s->slowlog, s->live.slowlog_max);
    /* release: pairs with the acquire in take_settings (worker.c). */
    atomic_fetch_add_explicit(&s->config_version, 1, memory_order_release);
}

void server_settings_read(struct server *s, struct settings *settings_out)
{
    pthread_rwlock_rdlock(&s->config_lock);
    *settings_out = (struct settings){
        .limits =
            {
                .bulk_bytes_max = s->live.bulk_bytes_max,
                .arguments_max = s->live.arguments_max,
                .query_bytes_max = s->live.query_bytes_max,
                .output_bytes_max = s->live.output_bytes_max,
            },
        .slowlog_us = s->live.slowlog_us,
        .clients_memory_max = s->live.clients_memory_max,
        .timeout_s = s->live.timeout_s,
        .spin_us = s->live.spin_us,
        .leave_ms = s->live.leave_ms,
        .handover_ms = s->live.handover_ms,
    };
    pthread_rwlock_unlock(&s->config_lock);
}
