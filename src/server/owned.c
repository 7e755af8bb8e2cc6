/* What INFO and HORKOS tell of spaces whose objects have owners (engine zeus): how often objects
 * move, what hinders them, what is repaired. */
#include "server/internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "engine/op_number.h"

/* Of the node, all such spaces together. */
static const struct server_figure figures[] = {
#define FIGURE(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct node_stats, name)                                                   \
    }
#define COUNT(name, of)                                                                            \
    {                                                                                              \
        name, offsetof(struct node_stats, own_counts[of])                                          \
    }
    FIGURE(txn_reads),
    FIGURE(txn_commits),
    FIGURE(txn_commits_ahead),
    FIGURE(txn_conflicts),
    FIGURE(txn_aborts),
    FIGURE(txn_waits),
    FIGURE(txn_retries),
    COUNT("own_moves", OWN_MOVES),
    COUNT("own_reads", OWN_READS),
    COUNT("own_nacks", OWN_NACKS),
    COUNT("own_deferred", OWN_DEFERRED),
    COUNT("own_replays", OWN_REPLAYS),
    COUNT("own_stale", OWN_STALE),
    FIGURE(own_wants),
    FIGURE(own_waits),
    FIGURE(own_refused),
    FIGURE(own_held),
    FIGURE(own_queued),
    FIGURE(own_pushed),
    FIGURE(own_invites),
    FIGURE(own_trims),
    FIGURE(own_destroyed),
    FIGURE(own_lost),
    FIGURE(own_poor),
    FIGURE(own_walked),
    FIGURE(own_records),
    FIGURE(own_records_most),
#undef COUNT
#undef FIGURE
};

/* "messages_own_req", "messages_r_inv": of ownership or of reliable commit, as sent; NULL: there is
 * no such kind. */
static const char *kind_name(uint32_t kind, char text[40])
{
    const char *name = engines_owned_kind(kind);
    if (name == NULL) {
        return NULL;
    }
    int n = snprintf(text, 40, "messages_%s%s", kind < COMMIT_MSG_INV ? "own_" : "", name);
    for (int i = 0; i < n; i++) {
        text[i] = text[i] == '-' ? '_' : (char)tolower((unsigned char)text[i]);
    }
    return text;
}

json_t *server_owned_json(const struct node_stats *stats)
{
    char name[40];
    json_t *j = json_object();
    server_figures_json(j, stats, figures, sizeof figures / sizeof figures[0]);
    for (uint32_t i = 0; i < OWNED_KINDS; i++) {
        if (stats->owned_messages[i] > 0 && kind_name(i, name) != NULL) {
            json_object_set_new(j, name, json_integer((json_int_t)stats->owned_messages[i]));
        }
    }
    return j;
}

void server_owned_info(struct server_worker *w, struct resp_out *t)
{
    struct node_stats stats;
    char name[40];
    node_stats(w->server->node, &stats);
    server_info_line(t, "# Zeus");
    server_figures_lines(t, &stats, figures, sizeof figures / sizeof figures[0]);
    for (uint32_t i = 0; i < OWNED_KINDS; i++) {
        if (stats.owned_messages[i] > 0 && kind_name(i, name) != NULL) {
            server_info_line(t, "%s:%" PRIu64, name, stats.owned_messages[i]);
        }
    }
}

/* ---- HORKOS OBJECT ---- */

static json_t *nodes_json(nodeset nodes)
{
    json_t *j = json_array();
    for (; nodes != 0; nodes &= nodes - 1) {
        json_array_append_new(j, json_integer(nodeset_first(nodes)));
    }
    return j;
}

/* Of o_ts, or of a value's version, which names its process instead of a node. */
static void add_stamp(json_t *to, const char *name, const char *by, uint64_t ts)
{
    json_t *j = json_object();
    json_object_set_new(j, "version", json_integer((json_int_t)stamp_version(ts)));
    json_object_set_new(j, by, json_integer((json_int_t)stamp_cid(ts)));
    json_object_set_new(to, name, j);
}

static json_t *entry_json(const struct owned_object *object)
{
    const struct own_vector *vector = &object->vector;
    json_t *j = json_object();
    add_stamp(j, "o_ts", "node", object->entry.ts);
    json_object_set_new(j, "epoch", json_integer(object->entry.vector.epoch));
    json_object_set_new(j, "owner",
                        vector->owner == NODE_NONE ? json_null() : json_integer(vector->owner));
    json_object_set_new(j, "readers", nodes_json(vector->readers));
    json_object_set_new(j, "degree", json_integer(object->degree));
    json_object_set_new(j, "lost", json_boolean(object->lost));
    return j;
}

static json_t *data_json(const struct key_meta *meta)
{
    static const char *const states[] = {"valid", "write", "invalid"};
    json_t *j = json_object();
    add_stamp(j, "t_version", "process", meta->ts);
    json_object_set_new(j, "state", json_string(states[meta->state]));
    json_object_set_new(j, "owned", json_boolean((meta->flags & ZEUS_OWNED) != 0));
    json_object_set_new(j, "readable", json_boolean((meta->flags & KEY_READABLE) != 0));
    json_object_set_new(j, "wanted", json_boolean((meta->flags & ZEUS_WANTED) != 0));
    json_object_set_new(j, "deleted", json_boolean((meta->flags & KEY_TOMBSTONE) != 0));
    return j;
}

static json_t *object_json(const struct server *s, uint32_t space,
                           const struct owned_object *object)
{
    json_t *j = json_object();
    json_object_set_new(j, "node", json_integer(s->config.id));
    json_object_set_new(j, "space", json_integer(space));
    json_object_set_new(j, "directory", nodes_json(object->directory));
    json_object_set_new(j, "entry", object->entry.ts != 0 ? entry_json(object) : json_null());
    json_object_set_new(j, "data", object->have ? data_json(&object->meta) : json_null());
    return j;
}

void server_reply_object(struct server_worker *w, uint32_t space, struct bytes key,
                         struct resp_out *out)
{
    struct owned_object object;
    if (!server_space_owned(w->server, space)) {
        resp_out_errorf(out, "ERR no key of space %" PRIu32 " has an owner: its engine is %s",
                        space, w->server->config.spaces[space].engine);
        return;
    }
    if (w->node == NULL || worker_owned_object(w->node, space, key, &object) != HK_OK) {
        resp_out_error(out, w->node == NULL ? "ERR the node stops" : "ERR the key is too long");
        return;
    }
    json_t *j = object_json(w->server, space, &object);
    char *text = json_dumps(j, JSON_COMPACT);
    if (text != NULL) {
        resp_out_text(out, text);
    } else {
        resp_out_error(out, "ERR no memory for the object");
    }
    free(text);
    json_decref(j);
}

/* ---- Spaces ---- */

bool server_space_owned(const struct server *s, uint32_t space)
{
    const struct engine_ops *ops = space < SPACES_MAX ? s->node_config.spaces[space].ops : NULL;
    return ops != NULL && (ops->traits & ENGINE_OWNED) != 0;
}

uint32_t server_owned_replicas(const struct server *s, uint32_t space, nodeset operational)
{
    uint32_t nodes = nodeset_count(s->config.nodes);
    uint32_t degree = s->config.spaces[space].degree;
    uint32_t least = (nodes - 1) / 2 + 1; /* zeus.md, R14 */
    degree = degree > 0 ? degree : least > 3 ? least : 3;
    uint32_t live = nodeset_count(operational);
    return live < degree ? live : degree;
}

bool server_any_owned(const struct server *s)
{
    bool any = false;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        any = any || server_space_owned(s, i);
    }
    return any;
}

/* ---- HORKOS DEGREE ---- */

void server_reply_degree(struct server_worker *w, uint32_t space, struct bytes key,
                         struct bytes degree, struct resp_out *out)
{
    struct owned_object object;
    uint32_t nodes = nodeset_count(w->server->config.nodes);
    int64_t copies = 0;
    if (!server_space_owned(w->server, space)) {
        resp_out_errorf(out, "ERR no key of space %" PRIu32 " has an owner: its engine is %s",
                        space, w->server->config.spaces[space].engine);
    } else if (!op_integer_parse(degree, &copies) || copies < 0 || copies > nodes) {
        resp_out_errorf(out, "ERR copies are a number, 0 (as the space) to %" PRIu32, nodes);
    } else if (w->node == NULL || worker_owned_object(w->node, space, key, &object) != HK_OK) {
        resp_out_error(out, w->node == NULL ? "ERR the node stops" : "ERR the key is too long");
    } else if (!object.have || (object.meta.flags & KEY_TOMBSTONE) != 0) {
        resp_out_error(out, "ERR this node has no such key: HORKOS OBJECT at a node of its "
                            "directory tells who owns it");
    } else if (object.vector.owner != w->server->config.id) {
        resp_out_errorf(out, "ERR node %u owns the key: tell it", object.vector.owner);
    } else {
        int err = worker_owned_degree(w->node, space, key, (uint32_t)copies);
        HK_ASSERT(err == HK_OK);
        resp_out_text(out, "OK");
    }
}
