/* HORKOS ...: the node's own commands, for `horkos status`, `horkos recover` and people. */
#include "server/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <jansson.h>

#include "base/clock.h"

/* ---- HORKOS STATUS: JSON, one object ---- */

static json_t *number(uint64_t n)
{
    return json_integer((json_int_t)n);
}

const char *server_role(const struct view *view, uint8_t node)
{
    return nodeset_has(view->operational, node) ? "operational"
           : nodeset_has(view->live, node)      ? "shadow"
                                                : "none";
}

struct view server_view_of(const struct view *view, uint8_t self, uint64_t nonce)
{
    struct view seen = *view;
    if (!view_has(view, self, nonce)) {
        seen.live &= ~nodeset_of(self);
        seen.operational &= ~nodeset_of(self);
    }
    return seen;
}

static json_t *members_of(const struct server *s, const struct view *view)
{
    json_t *members = json_array();
    nodeset all = s->config.nodes | view->configured | view->live;
    for (; all != 0; all &= all - 1) {
        uint8_t node = nodeset_first(all);
        json_t *member = json_object();
        json_object_set_new(member, "id", number(node));
        json_object_set_new(member, "role", json_string(server_role(view, node)));
        json_object_set_new(member, "live", json_boolean(nodeset_has(view->live, node)));
        json_object_set_new(member, "address", json_string(s->config.peers[node].text));
        json_array_append_new(members, member);
    }
    return members;
}

static json_t *spaces_of(const struct server *s)
{
    json_t *spaces = json_array();
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        struct store_stats stats;
        if (!node_space_stats(s->node, i, &stats)) {
            continue;
        }
        json_t *space = json_object();
        json_object_set_new(space, "space", number(i));
        json_object_set_new(space, "engine", json_string(s->config.spaces[i].engine));
        json_object_set_new(space, "keys", number(stats.keys - stats.tombstones));
        json_object_set_new(space, "tombstones", number(stats.tombstones));
        json_object_set_new(space, "bytes", number(stats.bytes_used));
        json_object_set_new(space, "bytes_mapped", number(stats.bytes_mapped));
        server_add_slots(s, i, space);
        json_array_append_new(spaces, space);
    }
    return spaces;
}

static void add_drops(json_t *drops, const char *kind, const uint64_t *counts,
                      const char *const *names, uint32_t n)
{
    char key[64];
    for (uint32_t i = 0; i < n; i++) {
        if (counts[i] > 0 && names[i] != NULL) {
            snprintf(key, sizeof key, "%s.%s", kind, names[i]);
            json_object_set_new(drops, key, number(counts[i]));
        }
    }
}

static json_t *drops_of(const struct node_stats *stats)
{
    json_t *drops = json_object();
    add_drops(drops, "frame", stats->frame_drops, frame_drop_names, FRAME_DROPS);
    add_drops(drops, "engine", stats->engine_drops, engine_drop_names, ENGINE_DROPS);
    add_drops(drops, "node", stats->node_drops, node_drop_names, NODE_DROPS);
    return drops;
}

static json_t *node_figures(const struct node_stats *stats)
{
    json_t *node = json_object();
    json_object_set_new(node, "reads", number(stats->reads));
    json_object_set_new(node, "updates", number(stats->updates));
    json_object_set_new(node, "parked", number(stats->parked));
    json_object_set_new(node, "retries", number(stats->retries));
    json_object_set_new(node, "unknown", number(stats->unknown));
    json_object_set_new(node, "unavailable", number(stats->unavailable));
    json_object_set_new(node, "frames_in", number(stats->frames_in));
    json_object_set_new(node, "frames_out", number(stats->frames_out));
    json_object_set_new(node, "messages_in", number(stats->messages_in));
    json_object_set_new(node, "messages_out", number(stats->messages_out));
    json_object_set_new(node, "bytes_in", number(stats->bytes_in));
    json_object_set_new(node, "bytes_out", number(stats->bytes_out));
    json_object_set_new(node, "key_steps", number(stats->key_steps));
    json_object_set_new(node, "flow_steps", number(stats->flow_steps));
    json_object_set_new(node, "chunks_in", number(stats->chunks_in));
    return node;
}

void server_port_stats(const struct server *s, struct port_stats *sum)
{
    memset(sum, 0, sizeof *sum);
    for (uint32_t i = 0; i < s->workers_n; i++) {
        struct port_stats one;
        port_stats(s->workers[i].port, &one);
        sum->bytes_in += one.bytes_in;
        sum->bytes_out += one.bytes_out;
        sum->dropped_unconnected += one.dropped_unconnected;
        sum->dropped_full += one.dropped_full;
        sum->dropped_view += one.dropped_view;
        sum->connections += one.connections;
        sum->shared += one.shared;
        sum->faults += one.faults;
        sum->ended += one.ended;
        sum->outstanding += one.outstanding;
        sum->held += one.held;
    }
}

static json_t *port_figures(const struct server *s)
{
    struct port_stats sum;
    server_port_stats(s, &sum);
    json_t *port = json_object();
    json_object_set_new(port, "connections", number(sum.connections));
    json_object_set_new(port, "shared", number(sum.shared));
    json_object_set_new(port, "bytes_in", number(sum.bytes_in));
    json_object_set_new(port, "bytes_out", number(sum.bytes_out));
    json_object_set_new(port, "outstanding", number(sum.outstanding));
    json_object_set_new(port, "dropped_unconnected", number(sum.dropped_unconnected));
    json_object_set_new(port, "held", number(sum.held));
    json_object_set_new(port, "dropped_full", number(sum.dropped_full));
    json_object_set_new(port, "dropped_view", number(sum.dropped_view));
    json_object_set_new(port, "faults", number(sum.faults));
    json_object_set_new(port, "ended", number(sum.ended));
    return port;
}

static json_t *gate_figures(const struct server *s)
{
    struct gate_stats stats;
    gate_stats(s->gate, &stats);
    json_t *gate = json_object();
    json_object_set_new(gate, "clients", number(stats.clients));
    json_object_set_new(gate, "peers", number(stats.peers));
    json_object_set_new(gate, "calls", number(stats.calls));
    json_object_set_new(gate, "calls_failed", number(stats.calls_failed));
    json_object_set_new(gate, "timed_out", number(stats.timed_out));
    json_object_set_new(gate, "crowded", number(stats.crowded));
    json_t *refused = json_object();
    for (uint32_t i = 1; i < HANDSHAKE_REFUSALS; i++) {
        json_object_set_new(refused, handshake_refusal_names[i], number(stats.refused[i]));
    }
    json_object_set_new(gate, "refused", refused);
    return gate;
}

static json_t *status_of(struct server_worker *w)
{
    struct server *s = w->server;
    const struct node_status *status = server_status(w);
    struct view view = server_view_of(&status->view, s->config.id, s->node_config.view.nonce);
    bool leased = w->now_us < status->lease_until_us;
    char generation[32];
    struct node_stats stats;
    node_stats(s->node, &stats);
    snprintf(generation, sizeof generation, "%016llx", (unsigned long long)view.generation);
    json_t *j = json_object();
    json_object_set_new(j, "version", json_string(HORKOS_VERSION));
    json_object_set_new(j, "node", number(s->config.id));
    json_object_set_new(j, "status", json_string(view_status_name(status->status)));
    json_object_set_new(j, "role", json_string(server_role(&view, s->config.id)));
    json_object_set_new(j, "epoch", number(view.epoch));
    json_object_set_new(j, "generation", json_string(generation));
    json_object_set_new(j, "lease_ms_left",
                        number(leased ? (status->lease_until_us - w->now_us) / 1000u : 0));
    json_object_set_new(j, "can_serve", json_boolean(status->status == VIEW_STATUS_SERVING));
    json_object_set_new(j, "members", members_of(s, &view));
    json_object_set_new(j, "spaces", spaces_of(s));
    json_object_set_new(j, "clients", number(atomic_load(&s->clients_n)));
    json_object_set_new(j, "workers", number(s->workers_n));
    json_object_set_new(j, "io", json_string(loop_kind_name(loop_kind(w->loop))));
    json_object_set_new(j, "uptime_s", number((w->now_us - s->started_us) / 1000000u));
    json_object_set_new(j, "wipes", number(atomic_load(&s->wipes)));
    json_object_set_new(j, "drops", drops_of(&stats));
    json_object_set_new(j, "figures", node_figures(&stats));
    if (server_any_homed(s)) {
        json_object_set_new(j, "galene", server_homed_json(&stats));
    }
    if (server_any_owned(s)) {
        json_object_set_new(j, "zeus", server_owned_json(&stats));
    }
    if (server_any_ordered(s)) {
        json_object_set_new(j, "lotus", server_tables_json(&stats));
    }
    json_object_set_new(j, "port", port_figures(s));
    json_object_set_new(j, "gate", gate_figures(s));
    return j;
}

static void reply_status(struct server_worker *w, struct resp_out *out)
{
    json_t *j = w->node != NULL ? status_of(w) : NULL;
    char *text = j != NULL ? json_dumps(j, JSON_COMPACT) : NULL;
    if (text != NULL) {
        resp_out_text(out, text);
    } else {
        resp_out_error(out, "ERR no memory for the status, or the node stops");
    }
    free(text);
    json_decref(j);
}

/* ---- HORKOS RECOVER ---- */

const char *server_recover_invalid(const struct node_status *status, uint8_t self,
                                   nodeset configured, nodeset survivors)
{
    if (survivors == 0 || !nodeset_within(survivors, configured)) {
        return "name the nodes that are left, each one of those configured";
    }
    if (!nodeset_has(survivors, self)) {
        return "the node that is told must be one of those that are left";
    }
    if (status->view.epoch == 0) {
        return "this node holds no view to recover from; a cluster that has lost all its memory "
               "begins again with --bootstrap";
    }
    if (!nodeset_has(status->view.operational, self)) {
        return "this node has no complete copy of the data; tell one whose role is operational";
    }
    if (!nodeset_within(survivors, status->view.live)) {
        return "only members of the present view can be left; the others join again by themselves";
    }
    if (status->status == VIEW_STATUS_SERVING) {
        return "this node serves: a majority lives, and there is nothing to recover";
    }
    if (status->status != VIEW_STATUS_LOST && status->status != VIEW_STATUS_NO_LEASE) {
        return "this node is about to leave or to join";
    }
    return NULL;
}

/* A node id in decimal, or NODE_NONE. */
static uint8_t node_of(struct bytes text)
{
    uint32_t node = 0;
    if (text.n == 0 || text.n > 2) {
        return NODE_NONE;
    }
    for (uint32_t i = 0; i < text.n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return NODE_NONE;
        }
        node = node * 10 + (uint32_t)(text.at[i] - '0');
    }
    return node < NODES_MAX ? (uint8_t)node : NODE_NONE;
}

static void reply_recover(struct server_worker *w, uint32_t n, const struct bytes *ids,
                          struct resp_out *out)
{
    struct server *s = w->server;
    nodeset survivors = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t node = node_of(ids[i]);
        if (node == NODE_NONE) {
            resp_out_error(out, "ERR a node id is a number from 0 to 63");
            return;
        }
        survivors |= nodeset_of(node);
    }
    const char *why = w->node == NULL ? "the node stops"
                                      : server_recover_invalid(server_status(w), s->config.id,
                                                               s->config.nodes, survivors);
    if (why != NULL) {
        resp_out_errorf(out, "ERR %s", why);
        return;
    }
    atomic_store_explicit(&s->recover, survivors, memory_order_release);
    loop_wake(s->workers[0].loop);
    resp_out_simple(out, "OK");
}

/* ---- The command ---- */

static void reply_help(struct resp_out *out)
{
    static const char *const lines[] = {
        "HORKOS <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "STATUS",
        "    The node's view of the cluster, its spaces and figures, as JSON.",
        "RECOVER <id> [<id> ...]",
        "    The operator's word that only these nodes are left: they form a new generation.",
        "    Writes that only the others knew are lost. `horkos recover` asks first.",
        "SLOTS [<space>]",
        "    Which node is the home of which hash slot, as JSON; engines galene and lotus.",
        "EMPTY-LOST <space>",
        "    The operator's word that what lost slots held may be forgotten: all nodes remove it,",
        "    and the slots get homes again. `horkos slots --empty-lost` asks first, and waits.",
        "    The same of objects that are lost, in a space of engine zeus.",
        "DEGREE <key> <copies>",
        "    Its owner asks for so many copies of the key (space of engine zeus; 0: as the space).",
        "OBJECT <key>",
        "    What this node knows of a key of the selected space: who owns it, who has copies.",
        "    As JSON; engine zeus only.",
        "LOCKS [<space>]",
        "    Who owns which locks at this memory server, and who waits for whom, as JSON.",
        "    Of the selected space, or that one; engine lotus only.",
        "KILL <id> [<space>]",
        "    A transaction that HORKOS LOCKS lists begins again; not one that is prepared.",
        "KEYSLOT <key>",
        "    The hash slot of a key, as Redis Cluster computes it.",
        "LEAVE",
        "    Leaves the cluster gracefully and stops the process, as SIGTERM does.",
        "HELP",
        "    Prints this help.",
    };
    resp_out_array(out, sizeof lines / sizeof lines[0]);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        resp_out_simple(out, lines[i]);
    }
}

static bool is(struct bytes text, const char *name)
{
    return text.n == strlen(name) && strncasecmp((const char *)text.at, name, text.n) == 0;
}

bool server_horkos(void *worker, uint32_t space, uint32_t n, const struct bytes *args,
                   struct resp_out *out)
{
    struct server_worker *w = worker;
    if (n == 1 && is(args[0], "status")) {
        reply_status(w, out);
    } else if (n >= 2 && is(args[0], "recover")) {
        reply_recover(w, n - 1, args + 1, out);
    } else if (n <= 2 && is(args[0], "slots")) {
        server_reply_slots(w, n - 1, args + 1, out);
    } else if (n == 2 && is(args[0], "empty-lost")) {
        server_reply_empty_lost(w, args[1], out);
    } else if (n == 3 && is(args[0], "degree")) {
        server_reply_degree(w, space, args[1], args[2], out);
    } else if (n == 2 && is(args[0], "object")) {
        server_reply_object(w, space, args[1], out);
    } else if (n <= 2 && is(args[0], "locks")) {
        server_reply_locks(w, space, n - 1, args + 1, out);
    } else if ((n == 2 || n == 3) && is(args[0], "kill")) {
        server_reply_kill(w, space, n - 1, args + 1, out);
    } else if (n == 2 && is(args[0], "keyslot")) {
        resp_out_number(out, slot_of_key(args[1]));
    } else if (n == 1 && is(args[0], "leave")) {
        server_stop(w->server, false);
        resp_out_simple(out, "OK");
    } else if (n == 1 && is(args[0], "help")) {
        reply_help(out);
    } else {
        return false;
    }
    return true;
}
