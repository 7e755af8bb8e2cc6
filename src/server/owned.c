/* What INFO and HORKOS tell of spaces whose objects have owners (engine zeus): how often objects
 * move, what hinders them, what is repaired. */
#include "server/internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Of the node, all such spaces together. */
static const struct {
    const char *name;
    size_t offset; /* in struct node_stats */
} figures[] = {
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

static uint64_t figure(const struct node_stats *stats, size_t i)
{
    uint64_t value;
    memcpy(&value, (const char *)stats + figures[i].offset, sizeof value);
    return value;
}

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
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        json_object_set_new(j, figures[i].name, json_integer((json_int_t)figure(stats, i)));
    }
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
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        server_info_line(t, "%s:%" PRIu64, figures[i].name, figure(&stats, i));
    }
    for (uint32_t i = 0; i < OWNED_KINDS; i++) {
        if (stats.owned_messages[i] > 0 && kind_name(i, name) != NULL) {
            server_info_line(t, "%s:%" PRIu64, name, stats.owned_messages[i]);
        }
    }
}

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
