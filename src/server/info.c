/* INFO: Redis's sections, with Redis's names where the meaning is the same, and our own. */
#include "server/internal.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sys/resource.h>
#include <sys/utsname.h>

#include "base/clock.h"

#define LINE_MAX_BYTES 1024u

static void write_line(struct resp_out *text, const char *format, va_list args)
{
    char buffer[LINE_MAX_BYTES];
    int n = vsnprintf(buffer, sizeof buffer - 2, format, args);
    uint32_t length = n < 0 ? 0 : (uint32_t)n;
    length = length < sizeof buffer - 3 ? length : (uint32_t)sizeof buffer - 3;
    buffer[length] = '\r';
    buffer[length + 1] = '\n';
    resp_out_raw(text, bytes_of(buffer, length + 2));
}

static void line(struct resp_out *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void line(struct resp_out *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(text, format, args);
    va_end(args);
}

void server_info_line(struct resp_out *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    write_line(text, format, args);
    va_end(args);
}

/* ---- Figures that several sections use ---- */

uint64_t server_commands(const struct server *s)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->workers_n; i++) {
        sum += atomic_load_explicit(&s->workers[i].commands, memory_order_relaxed);
    }
    return sum;
}

void server_stats_reset(void *worker)
{
    struct server *s = ((struct server_worker *)worker)->server;
    atomic_store_explicit(&s->commands_before, server_commands(s), memory_order_relaxed);
    atomic_store_explicit(&s->received_before, atomic_load(&s->clients_received),
                          memory_order_relaxed);
    atomic_store_explicit(&s->refused_before, atomic_load(&s->clients_refused),
                          memory_order_relaxed);
}

static uint64_t resident_bytes(void)
{
    unsigned long long total = 0;
    unsigned long long resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f == NULL) {
        return 0;
    }
    int n = fscanf(f, "%llu %llu", &total, &resident);
    (void)fclose(f);
    return n == 2 ? resident * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void store_sum(const struct server *s, struct store_stats *sum, uint64_t *max_out)
{
    memset(sum, 0, sizeof *sum);
    *max_out = 0;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        struct store_stats one;
        if (node_space_stats(s->node, i, &one)) {
            sum->keys += one.keys - one.tombstones;
            sum->tombstones += one.tombstones;
            sum->bytes_used += one.bytes_used;
            sum->bytes_mapped += one.bytes_mapped;
            *max_out += s->node_config.spaces[i].store.memory_max;
        }
    }
}

static const char *human(uint64_t bytes, char text[16])
{
    static const char units[] = "BKMGT";
    double n = (double)bytes;
    uint32_t unit = 0;
    while (n >= 1024 && unit < 4) {
        n /= 1024;
        unit++;
    }
    snprintf(text, 16, unit == 0 ? "%.0f%c" : "%.2f%c", n, units[unit]);
    return text;
}

/* ---- Sections ---- */

static uint32_t tcp_port(const struct server *s)
{
    for (uint32_t i = 0; i < s->config.listens_n; i++) {
        const char *at = strrchr(s->config.listens[i].text, ':');
        unsigned port = 0;
        if (strncmp(s->config.listens[i].text, "unix:", 5) != 0 && at != NULL &&
            sscanf(at + 1, "%u", &port) == 1) {
            return port;
        }
    }
    return 0;
}

static void section_server(struct server_worker *w, struct resp_out *t)
{
    struct server *s = w->server;
    struct utsname os;
    uint64_t up_s = (w->now_us - s->started_us) / 1000000u;
    memset(&os, 0, sizeof os);
    (void)uname(&os);
    line(t, "# Server");
    line(t, "redis_version:%s", RESP_REDIS_VERSION);
    line(t, "horkos_version:%s", HORKOS_VERSION);
    line(t, "redis_mode:standalone");
    line(t, "os:%s %s %s", os.sysname, os.release, os.machine);
    line(t, "arch_bits:%u", (unsigned)(8 * sizeof(void *)));
    line(t, "multiplexing_api:%s", loop_kind_name(loop_kind(w->loop)));
    line(t, "process_id:%ld", (long)getpid());
    line(t, "run_id:%s", s->run_id);
    line(t, "tcp_port:%u", tcp_port(s));
    line(t, "server_time_usec:%" PRIu64, clock_wall_ms() * 1000u);
    line(t, "uptime_in_seconds:%" PRIu64, up_s);
    line(t, "uptime_in_days:%" PRIu64, up_s / 86400u);
    line(t, "io_threads_active:%u", s->workers_n > 1 ? 1u : 0u);
    line(t, "config_file:%s", s->config.path);
}

static void section_clients(struct server_worker *w, struct resp_out *t)
{
    struct server *s = w->server;
    line(t, "# Clients");
    line(t, "connected_clients:%u", atomic_load(&s->clients_n));
    line(t, "maxclients:%u", atomic_load(&s->clients_max));
    line(t, "blocked_clients:0");
    line(t, "tracking_clients:0");
}

static void section_memory(struct server_worker *w, struct resp_out *t)
{
    struct server *s = w->server;
    struct store_stats sum;
    uint64_t max;
    uint64_t rss = resident_bytes();
    char text[16];
    store_sum(s, &sum, &max);
    uint64_t clients = atomic_load(&s->clients_memory);
    uint64_t used = sum.bytes_used + clients;
    line(t, "# Memory");
    line(t, "used_memory:%" PRIu64, used);
    line(t, "used_memory_human:%s", human(used, text));
    line(t, "used_memory_rss:%" PRIu64, rss);
    line(t, "used_memory_rss_human:%s", human(rss, text));
    line(t, "used_memory_dataset:%" PRIu64, sum.bytes_used);
    line(t, "mem_clients_normal:%" PRIu64, clients);
    line(t, "maxmemory:%" PRIu64, max);
    line(t, "maxmemory_human:%s", human(max, text));
    line(t, "maxmemory_policy:noeviction");
    line(t, "mem_fragmentation_ratio:%.2f", used > 0 ? (double)rss / (double)used : 0.0);
}

static void section_persistence(struct server_worker *w, struct resp_out *t)
{
    bool loading = server_status(w)->status == VIEW_STATUS_JOINING;
    line(t, "# Persistence");
    line(t, "loading:%d", loading ? 1 : 0);
    line(t, "rdb_changes_since_last_save:0");
    line(t, "rdb_bgsave_in_progress:0");
    line(t, "aof_enabled:0");
    line(t, "aof_rewrite_in_progress:0");
}

static void section_stats(struct server_worker *w, struct resp_out *t)
{
    struct server *s = w->server;
    line(t, "# Stats");
    line(t, "total_connections_received:%" PRIu64,
         atomic_load(&s->clients_received) - atomic_load(&s->received_before));
    line(t, "total_commands_processed:%" PRIu64,
         server_commands(s) - atomic_load(&s->commands_before));
    line(t, "instantaneous_ops_per_sec:%" PRIu64, atomic_load(&s->speed));
    line(t, "rejected_connections:%" PRIu64,
         atomic_load(&s->clients_refused) - atomic_load(&s->refused_before));
    line(t, "evicted_keys:0");
    line(t, "evicted_clients:%" PRIu64, atomic_load(&s->clients_overfull));
}

static void section_replication(struct server_worker *w, struct resp_out *t)
{
    struct server *s = w->server;
    const struct view *view = &server_status(w)->view;
    nodeset others = view->live & ~nodeset_of(s->config.id);
    uint32_t i = 0;
    line(t, "# Replication");
    line(t, "role:master"); /* every node takes writes */
    line(t, "connected_slaves:%u", nodeset_count(others));
    for (; others != 0; others &= others - 1) {
        uint8_t node = nodeset_first(others);
        line(t, "slave%u:id=%u,peer=%s,state=%s", i++, node, s->config.peers[node].text,
             nodeset_has(view->operational, node) ? "online" : "wait_bgsave");
    }
    line(t, "master_failover_state:no-failover");
    line(t, "master_replid:%016" PRIx64 "%016" PRIx64 "%08x", view->generation,
         s->config.cluster_id, 0u);
    line(t, "master_repl_offset:0");
}

static double seconds_of(struct timeval tv)
{
    return (double)tv.tv_sec + (double)tv.tv_usec / 1e6;
}

static void section_cpu(struct server_worker *w, struct resp_out *t)
{
    struct rusage self;
    (void)w;
    memset(&self, 0, sizeof self);
    (void)getrusage(RUSAGE_SELF, &self);
    line(t, "# CPU");
    line(t, "used_cpu_sys:%.6f", seconds_of(self.ru_stime));
    line(t, "used_cpu_user:%.6f", seconds_of(self.ru_utime));
}

static void section_cluster(struct server_worker *w, struct resp_out *t)
{
    (void)w;
    line(t, "# Cluster");
    line(t, "cluster_enabled:0");
}

static void section_keyspace(struct server_worker *w, struct resp_out *t)
{
    line(t, "# Keyspace");
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        struct store_stats stats;
        if (node_space_stats(w->server->node, i, &stats) && stats.keys > stats.tombstones) {
            line(t, "db%u:keys=%" PRIu64 ",expires=0,avg_ttl=0", i, stats.keys - stats.tombstones);
        }
    }
}

static void drop_lines(struct resp_out *t, const char *kind, const uint64_t *counts,
                       const char *const *names, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (names[i] != NULL && counts[i] > 0) {
            line(t, "dropped_%s_%s:%" PRIu64, kind, names[i], counts[i]);
        }
    }
}

static void node_lines(const struct server *s, struct resp_out *t)
{
    struct node_stats n;
    node_stats(s->node, &n);
    line(t, "frames_in:%" PRIu64, n.frames_in);
    line(t, "frames_out:%" PRIu64, n.frames_out);
    line(t, "messages_in:%" PRIu64, n.messages_in);
    line(t, "messages_out:%" PRIu64, n.messages_out);
    line(t, "bytes_out:%" PRIu64, n.bytes_out);
    line(t, "reads:%" PRIu64, n.reads);
    line(t, "updates:%" PRIu64, n.updates);
    line(t, "parked:%" PRIu64, n.parked);
    line(t, "retries:%" PRIu64, n.retries);
    line(t, "answered_unknown:%" PRIu64, n.unknown);
    line(t, "answered_unavailable:%" PRIu64, n.unavailable);
    line(t, "chunks_in:%" PRIu64, n.chunks_in);
    line(t, "chunk_items:%" PRIu64, n.chunk_items);
    drop_lines(t, "frame", n.frame_drops, frame_drop_names, FRAME_DROPS);
    drop_lines(t, "engine", n.engine_drops, engine_drop_names, ENGINE_DROPS);
    drop_lines(t, "node", n.node_drops, node_drop_names, NODE_DROPS);
}

static uint64_t figure_of(const struct node_stats *stats, const struct server_figure *figure)
{
    uint64_t value;
    memcpy(&value, (const char *)stats + figure->offset, sizeof value);
    return value;
}

void server_figures_lines(struct resp_out *t, const struct node_stats *stats,
                          const struct server_figure *figures, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        line(t, "%s:%" PRIu64, figures[i].name, figure_of(stats, &figures[i]));
    }
}

void server_figures_json(json_t *to, const struct node_stats *stats,
                         const struct server_figure *figures, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        json_t *value = json_integer((json_int_t)figure_of(stats, &figures[i]));
        json_object_set_new(to, figures[i].name, value);
    }
}

static void section_horkos(struct server_worker *w, struct resp_out *t)
{
    struct server *s = w->server;
    const struct node_status *status = server_status(w);
    const struct view *view = &status->view;
    bool leased = w->now_us < status->lease_until_us;
    struct port_stats port;
    server_port_stats(s, &port);
    line(t, "# Horkos");
    line(t, "node:%u", s->config.id);
    line(t, "node_role:%s", config_role_names[s->config.role]);
    line(t, "status:%s", view_status_name(status->status));
    line(t, "epoch:%" PRIu32, view->epoch);
    line(t, "epoch_adopted:%" PRIu32, status->epoch_adopted);
    line(t, "generation:%016" PRIx64, view->generation);
    line(t, "lease_ms_left:%" PRIu64,
         leased ? (status->lease_until_us - w->now_us) / 1000u : (uint64_t)0);
    line(t, "configured:%u", nodeset_count(s->config.nodes));
    line(t, "live:%u", nodeset_count(view->live));
    line(t, "operational:%u", nodeset_count(view->operational));
    line(t, "workers:%u", s->workers_n);
    line(t, "wipes:%u", atomic_load(&s->wipes));
    node_lines(s, t);
    line(t, "peer_connections:%" PRIu64, port.connections);
    line(t, "peer_connections_shared:%" PRIu64, port.shared);
    line(t, "peer_bytes_in:%" PRIu64, port.bytes_in);
    line(t, "peer_bytes_out:%" PRIu64, port.bytes_out);
    line(t, "peer_outstanding:%" PRIu64, port.outstanding);
    line(t, "peer_dropped_unconnected:%" PRIu64, port.dropped_unconnected);
    line(t, "peer_dropped_full:%" PRIu64, port.dropped_full);
    line(t, "peer_dropped_view:%" PRIu64, port.dropped_view);
    line(t, "peer_faults:%" PRIu64, port.faults);
    line(t, "peer_ended:%" PRIu64, port.ended);
    line(t, "peer_memory:%" PRIu64, port.held);
}

static const struct {
    const char *name;
    void (*write)(struct server_worker *w, struct resp_out *text);
} sections[] = {
    {"server", section_server},     {"clients", section_clients},
    {"memory", section_memory},     {"persistence", section_persistence},
    {"stats", section_stats},       {"replication", section_replication},
    {"cpu", section_cpu},           {"cluster", section_cluster},
    {"keyspace", section_keyspace}, {"horkos", section_horkos},
    {"galene", server_homed_info},  {"zeus", server_owned_info},
    {"lotus", server_tables_info},
};

bool server_info(void *worker, const char *section, struct resp_out *text)
{
    struct server_worker *w = worker;
    if (w->node == NULL) {
        return false; /* the server stops */
    }
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (strcmp(sections[i].name, section) == 0) {
            if ((sections[i].write == server_homed_info && !server_any_homed(w->server)) ||
                (sections[i].write == server_owned_info && !server_any_owned(w->server)) ||
                (sections[i].write == server_tables_info && !server_any_ordered(w->server))) {
                return false;
            }
            sections[i].write(w, text);
            return true;
        }
    }
    return false;
}

const char *const *server_info_sections(void *worker, bool all)
{
    static const char *const names[] = {
        "server",  "clients",  "memory", "persistence", "stats", "replication", "cpu",
        "cluster", "keyspace", "horkos", "galene",      "zeus",  "lotus",       NULL};
    (void)worker;
    (void)all;
    return names;
}
