/* What connections ask of the server (resp/host.h). Called on the worker's thread, within its poll;
 * nothing here waits for anything but short locks. */
#include "server/internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

static struct server *server_of(void *context)
{
    return ((struct server_worker *)context)->server;
}

static uint64_t wall_us(void *context)
{
    (void)context;
    return clock_wall_ms() * 1000u;
}

static uint64_t random_number(void *context)
{
    return random_next(&((struct server_worker *)context)->random);
}

static const struct resp_limits *limits(void *context)
{
    return &((struct server_worker *)context)->settings.limits;
}

/* ---- Users ---- */

static bool auth_required(void *context)
{
    struct server *s = server_of(context);
    pthread_rwlock_rdlock(&s->config_lock);
    bool required = config_auth_required(&s->live);
    pthread_rwlock_unlock(&s->config_lock);
    return required;
}

static enum resp_auth auth(void *context, struct bytes user, struct bytes secret)
{
    struct server *s = server_of(context);
    pthread_rwlock_rdlock(&s->config_lock);
    bool right = config_auth(&s->live, user, secret);
    pthread_rwlock_unlock(&s->config_lock);
    return right ? RESP_AUTH_OK : RESP_AUTH_WRONG;
}

/* ---- The node ---- */

static uint32_t spaces(void *context)
{
    const struct server *s = server_of(context);
    uint32_t set = 0;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        set |= s->config.spaces[i].exists ? 1u << i : 0;
    }
    return set;
}

static const char *engine(void *context, uint32_t space)
{
    const struct server *s = server_of(context);
    return space < SPACES_MAX && s->config.spaces[space].exists ? s->config.spaces[space].engine
                                                                : NULL;
}

static bool transactions(void *context, uint32_t space)
{
    const struct server *s = server_of(context);
    return server_space_owned(s, space) || server_space_ordered(s, space);
}

static bool ordered(void *context, uint32_t space)
{
    return server_space_ordered(server_of(context), space);
}

static uint64_t place_keep(void *context, uint64_t cursor, struct bytes key)
{
    return places_keep(server_of(context)->places, cursor, key);
}

static bool place_find(void *context, uint64_t cursor, struct resp_out *key)
{
    return places_find(server_of(context)->places, cursor, key);
}

static int node_number(void *context)
{
    return server_of(context)->config.id;
}

static uint32_t replicas(void *context, uint32_t space)
{
    struct server_worker *w = context;
    if (w->node == NULL || server_space_mapped(w->server, space)) {
        return 0;
    }
    nodeset operational = server_status(w)->view.operational;
    uint32_t n = server_space_owned(w->server, space)
                     ? server_owned_replicas(w->server, space, operational)
                     : nodeset_count(operational);
    return n > 0 ? n - 1 : 0;
}

static int serving(void *context)
{
    struct server_worker *w = context;
    if (w->node == NULL) {
        return HK_ERR_UNAVAILABLE;
    }
    /* Nearly every command asks. A round's idea that is less than STATUS_US old is good enough to
     * go on, for the node itself refuses what it must; who is refused here gets a fresh look. */
    enum view_status status = w->status.status;
    if (status != VIEW_STATUS_SERVING) {
        status = server_status(w)->status;
    }
    switch (status) {
    case VIEW_STATUS_SERVING:
        return HK_OK;
    case VIEW_STATUS_JOINING:
        return HK_ERR_LOADING;
    case VIEW_STATUS_FORMING:
    case VIEW_STATUS_REFUSING:
    case VIEW_STATUS_NO_LEASE:
    case VIEW_STATUS_LEAVING:
    case VIEW_STATUS_LOST:
        break;
    }
    return HK_ERR_UNAVAILABLE;
}

static uint64_t walk(void *context, uint32_t space, uint64_t cursor, resp_key_fn *emit,
                     void *emit_to)
{
    struct server_worker *w = context;
    return w->node != NULL ? worker_walk(w->node, space, cursor, emit, emit_to) : 0;
}

static uint64_t keys(void *context, uint32_t space)
{
    struct server_worker *w = context;
    struct store_stats stats;
    if (w->node == NULL || !node_space_stats(w->server->node, space, &stats)) {
        return 0;
    }
    return stats.keys > stats.tombstones ? stats.keys - stats.tombstones : 0;
}

_Static_assert(RESP_HOTKEYS_MAX <= NODE_HOTKEYS_MAX, "the node lists as many");

static int hotkeys(void *context, uint32_t space, uint32_t count, resp_hotkey_fn *emit,
                   void *emit_to)
{
    struct server_worker *w = context;
    if (w->node == NULL) {
        return HK_ERR_UNAVAILABLE;
    }
    return node_hotkeys(w->server->node, space, w->now_us, count, emit, emit_to);
}

/* ---- Configuration ---- */

static uint32_t get_config(void *context, struct bytes pattern, resp_emit_fn *emit, void *emit_to)
{
    struct server *s = server_of(context);
    pthread_rwlock_rdlock(&s->config_lock);
    uint32_t n = config_get(&s->live, pattern, emit, emit_to);
    pthread_rwlock_unlock(&s->config_lock);
    return n;
}

/* All or none: the changes are made to a copy, which replaces the configuration if all fit. */
static const char *set_config(void *context, uint32_t n, const struct bytes *names,
                              const struct bytes *values)
{
    struct server *s = server_of(context);
    struct config *copy = malloc(sizeof *copy);
    const char *why = NULL;
    if (copy == NULL) {
        return "no memory";
    }
    pthread_rwlock_wrlock(&s->config_lock);
    *copy = s->live;
    for (uint32_t i = 0; i < n && why == NULL; i++) {
        why = config_set(copy, names[i], values[i]);
    }
    if (why == NULL && copy->clients_max > s->config.clients_max) {
        why = "maxclients cannot be raised above what the node was started with (and what its "
              "limit of open files allowed); change the file and start the node again";
    }
    if (why == NULL) {
        s->live = *copy;
        server_setup_apply(s);
    }
    pthread_rwlock_unlock(&s->config_lock);
    free(copy);
    return why;
}

static const char *rewrite_config(void *context)
{
    struct server *s = server_of(context);
    pthread_rwlock_rdlock(&s->config_lock);
    const char *why = config_rewrite(&s->live);
    pthread_rwlock_unlock(&s->config_lock);
    return why;
}

/* ---- Clients ---- */

static void list_clients(void *context, const struct resp_client_filter *filter,
                         struct resp_out *text)
{
    struct server_worker *w = context;
    registry_list(w->server->registry, filter, w->now_us, text);
}

static uint32_t kill_clients(void *context, const struct resp_client_filter *filter)
{
    struct server_worker *w = context;
    uint32_t n = registry_kill(w->server->registry, filter, w->now_us);
    if (n > 0) {
        server_wake_all(w->server);
    }
    return n;
}

static void changed(void *context, const struct resp_conn *conn)
{
    struct server_worker *w = context;
    registry_update(w->server->registry, conn);
}

/* ---- SLOWLOG ---- */

static void slow_add(void *context, const struct resp_slow *slow)
{
    slowlog_add(server_of(context)->slowlog, slow);
}

static int64_t slow_threshold_us(void *context)
{
    return ((struct server_worker *)context)->settings.slowlog_us;
}

static void slow_get(void *context, int64_t n, struct resp_out *out)
{
    slowlog_get(server_of(context)->slowlog, n, out);
}

static uint64_t slow_length(void *context)
{
    return slowlog_length(server_of(context)->slowlog);
}

static void slow_reset(void *context)
{
    slowlog_reset(server_of(context)->slowlog);
}

/* ---- SHUTDOWN ---- */

static const char *shut_down(void *context, bool now)
{
    server_stop(server_of(context), now);
    return NULL;
}

void server_host_init(struct server_worker *w)
{
    w->host = (struct resp_host){
        .context = w,
        .wall_us = wall_us,
        .random = random_number,
        .limits = limits,
        .auth_required = auth_required,
        .auth = auth,
        .spaces = spaces,
        .engine = engine,
        .transactions = transactions,
        .ordered = ordered,
        .place_keep = place_keep,
        .place_find = place_find,
        .node = node_number,
        .replicas = replicas,
        .serving = serving,
        .info = server_info,
        .info_sections = server_info_sections,
        .config_get = get_config,
        .config_set = set_config,
        .config_rewrite = rewrite_config,
        .reset_stats = server_stats_reset,
        .client_list = list_clients,
        .client_kill = kill_clients,
        .slow_add = slow_add,
        .slow_threshold_us = slow_threshold_us,
        .slow_get = slow_get,
        .slow_length = slow_length,
        .slow_reset = slow_reset,
        .walk = walk,
        .keys = keys,
        .hotkeys = hotkeys,
        .shutdown = shut_down,
        .horkos = server_horkos,
        .changed = changed,
    };
}
