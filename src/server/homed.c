/* What INFO and HORKOS tell of spaces with a map of hash slots (engines galene, lotus): the map;
 * and of those whose keys have homes (galene): the hot set, operations that travel. */
#include "server/internal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/slots.h"

/* ---- Figures of the node, of all such spaces together ---- */

static const struct {
    const char *name;
    size_t offset; /* in struct node_stats */
} figures[] = {
#define FIGURE(name)                                                                               \
    {                                                                                              \
#name, offsetof(struct node_stats, name)                                                   \
    }
    FIGURE(hits),          FIGURE(at_home),         FIGURE(misses),        FIGURE(handed),
    FIGURE(forwarded_in),  FIGURE(sent_on),         FIGURE(answers_in),    FIGURE(answers_again),
    FIGURE(answers_late),  FIGURE(credit_waits),    FIGURE(credit_excess), FIGURE(lost_slot),
    FIGURE(call_messages), FIGURE(answer_messages), FIGURE(moves),         FIGURE(purged),
    FIGURE(move_passes),   FIGURE(hot_keys),        FIGURE(hot_enters),    FIGURE(hot_leaves),
    FIGURE(hot_epochs),
#undef FIGURE
};

static uint64_t figure(const struct node_stats *stats, size_t i)
{
    uint64_t value;
    memcpy(&value, (const char *)stats + figures[i].offset, sizeof value);
    return value;
}

/* Of the operations of this node's clients, those on keys that are cached on all nodes; 0 to 1. */
static double hit_rate(const struct node_stats *stats)
{
    uint64_t all = stats->hits + stats->at_home + stats->misses;
    return all > 0 ? (double)stats->hits / (double)all : 0;
}

/* "messages_inv": of the engine, as sent. */
static const char *kind_name(uint32_t kind, char text[40])
{
    const char *name = engines_homed_kind(kind);
    if (name == NULL) {
        snprintf(text, 40, "messages_%" PRIu32, kind);
        return text;
    }
    int n = snprintf(text, 40, "messages_%s", name);
    for (int i = 0; i < n; i++) {
        text[i] = (char)tolower((unsigned char)text[i]);
    }
    return text;
}

json_t *server_homed_json(const struct node_stats *stats)
{
    char name[40];
    json_t *j = json_object();
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        json_object_set_new(j, figures[i].name, json_integer((json_int_t)figure(stats, i)));
    }
    json_object_set_new(j, "hit_rate", json_real(hit_rate(stats)));
    for (uint32_t i = 0; i < HOMED_KINDS; i++) {
        if (stats->homed_messages[i] > 0) {
            json_object_set_new(j, kind_name(i, name),
                                json_integer((json_int_t)stats->homed_messages[i]));
        }
    }
    return j;
}

static void space_line(const struct server *s, uint32_t space, struct resp_out *t)
{
    struct slots_sum sum;
    struct slot_home *homes = malloc(HASH_SLOTS * sizeof *homes);
    uint64_t version = 0;
    if (homes != NULL && node_homes(s->node, space, homes, &version)) {
        slots_sum(homes, &sum);
        server_info_line(t,
                         "space%" PRIu32 ":homed=%" PRIu32 ",stable=%" PRIu32 ",moving=%" PRIu32
                         ",lost=%" PRIu32 ",emptying=%" PRIu32 ",given=%" PRIu32 ",none=%" PRIu32,
                         space, sum.homed[s->config.id], sum.by_state[HOME_STABLE],
                         sum.by_state[HOME_MOVING], sum.by_state[HOME_LOST],
                         sum.by_state[HOME_EMPTYING], sum.by_state[HOME_GIVEN],
                         sum.by_state[HOME_NONE]);
    }
    free(homes);
}

void server_homed_info(struct server_worker *w, struct resp_out *t)
{
    const struct server *s = w->server;
    struct node_stats stats;
    char name[40];
    node_stats(s->node, &stats);
    server_info_line(t, "# Galene");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        server_info_line(t, "%s:%" PRIu64, figures[i].name, figure(&stats, i));
    }
    server_info_line(t, "hit_rate:%.4f", hit_rate(&stats));
    for (uint32_t i = 0; i < HOMED_KINDS; i++) {
        if (stats.homed_messages[i] > 0) {
            server_info_line(t, "%s:%" PRIu64, kind_name(i, name), stats.homed_messages[i]);
        }
    }
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (server_space_homed(s, i)) {
            space_line(s, i, t);
        }
    }
}

/* All spaces together. */
static void sum_slots(const struct server *s, uint32_t *here_out, uint32_t *lost_out)
{
    struct slots_sum sum;
    struct slot_home *homes = malloc(HASH_SLOTS * sizeof *homes);
    uint64_t version = 0;
    *here_out = *lost_out = 0;
    for (uint32_t i = 0; homes != NULL && i < SPACES_MAX; i++) {
        if (node_homes(s->node, i, homes, &version)) {
            slots_sum(homes, &sum);
            *here_out += sum.homed[s->config.id];
            *lost_out += sum.by_state[HOME_LOST];
        }
    }
    free(homes);
}

uint32_t server_slots_here(const struct server *s)
{
    uint32_t here;
    uint32_t lost;
    sum_slots(s, &here, &lost);
    return here;
}

uint32_t server_slots_lost(const struct server *s)
{
    uint32_t here;
    uint32_t lost;
    sum_slots(s, &here, &lost);
    return lost;
}

bool server_any_homed(const struct server *s)
{
    bool any = false;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        any = any || server_space_homed(s, i);
    }
    return any;
}

bool server_any_mapped(const struct server *s)
{
    bool any = false;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        any = any || server_space_mapped(s, i);
    }
    return any;
}

/* ---- Slots ---- */

json_t *server_map_json(uint64_t version)
{
    json_t *map = json_object();
    json_object_set_new(map, "epoch", json_integer((json_int_t)(version >> 32)));
    json_object_set_new(map, "change", json_integer((json_int_t)(version & UINT32_MAX)));
    return map;
}

/* One space, or NULL: its keys have no homes, or there is no memory. */
static json_t *space_json(const struct server *s, uint32_t space)
{
    struct slot_home *homes = malloc(HASH_SLOTS * sizeof *homes);
    uint64_t version = 0;
    json_t *j = NULL;
    if (homes != NULL && node_homes(s->node, space, homes, &version)) {
        j = slots_json(homes);
        json_object_set_new(j, "space", json_integer(space));
        json_object_set_new(j, "engine", json_string(s->config.spaces[space].engine));
        json_object_set_new(j, "map", server_map_json(version));
    }
    free(homes);
    return j;
}

void server_add_slots(const struct server *s, uint32_t space, json_t *to)
{
    struct slots_sum sum;
    struct slot_home *homes = malloc(HASH_SLOTS * sizeof *homes);
    uint64_t version = 0;
    if (homes != NULL && node_homes(s->node, space, homes, &version)) {
        slots_sum(homes, &sum);
        json_object_set_new(to, "map", server_map_json(version));
        json_object_set_new(to, "slots", slots_states_json(&sum));
        json_object_set_new(to, "homed", json_integer(sum.homed[s->config.id]));
    }
    free(homes);
}

bool server_space_parse(struct bytes text, uint32_t *space_out)
{
    uint32_t space = 0;
    if (text.n == 0 || text.n > 2) {
        return false;
    }
    for (uint32_t i = 0; i < text.n; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') {
            return false;
        }
        space = space * 10 + (uint32_t)(text.at[i] - '0');
    }
    *space_out = space;
    return space < SPACES_MAX;
}

bool server_space_homed(const struct server *s, uint32_t space)
{
    const struct engine_ops *ops = s->node_config.spaces[space].ops;
    return ops != NULL && (ops->traits & ENGINE_HOMED) != 0;
}

bool server_space_mapped(const struct server *s, uint32_t space)
{
    const struct engine_ops *ops = s->node_config.spaces[space].ops;
    return ops != NULL && engine_has_map(ops);
}

const char *server_slots_refused(const struct server *s, uint32_t space, char text[128])
{
    if (!s->config.spaces[space].exists) {
        snprintf(text, 128, "there is no space %u", space);
        return text;
    }
    if (!server_space_mapped(s, space)) {
        snprintf(text, 128, "space %u (engine %s) has no slots: every node has all its keys", space,
                 s->config.spaces[space].engine);
        return text;
    }
    return NULL;
}

void server_reply_slots(struct server_worker *w, uint32_t n, const struct bytes *args,
                        struct resp_out *out)
{
    struct server *s = w->server;
    uint32_t only = SPACES_MAX;
    char why[128];
    if (n > 0 && !server_space_parse(args[0], &only)) {
        resp_out_errorf(out, "ERR a space is a number, 0 to %u", SPACES_MAX - 1);
        return;
    }
    if (n > 0 && server_slots_refused(s, only, why) != NULL) {
        resp_out_errorf(out, "ERR %s", why);
        return;
    }
    json_t *spaces = json_array();
    for (uint32_t i = 0; w->node != NULL && i < SPACES_MAX; i++) {
        if (server_space_mapped(s, i) && (n == 0 || i == only)) {
            json_array_append_new(spaces, space_json(s, i));
        }
    }
    json_t *j = json_object();
    json_object_set_new(j, "node", json_integer(s->config.id));
    json_object_set_new(j, "role", json_string(config_role_names[s->config.role]));
    json_object_set_new(j, "spaces", spaces);
    char *text = json_dumps(j, JSON_COMPACT);
    if (text != NULL) {
        resp_out_text(out, text);
    } else {
        resp_out_error(out, "ERR no memory for the slots");
    }
    free(text);
    json_decref(j);
}

void server_reply_empty_lost(struct server_worker *w, struct bytes text, struct resp_out *out)
{
    struct server *s = w->server;
    uint32_t space = 0;
    char why[128];
    if (!server_space_parse(text, &space)) {
        resp_out_errorf(out, "ERR a space is a number, 0 to %u", SPACES_MAX - 1);
    } else if (!server_space_owned(s, space) && server_slots_refused(s, space, why) != NULL) {
        resp_out_errorf(out, "ERR %s", why);
    } else if (w->node == NULL || server_status(w)->status != VIEW_STATUS_SERVING) {
        resp_out_error(out, "ERR this node does not serve: tell one that does");
    } else if (!server_space_owned(s, space) && node_no_taker(s->node, space)) {
        resp_out_error(out, "ERR nobody could have the lost slots, and nothing was done: all "
                            "members only compute, or leave. Start one that may have them, and "
                            "say it again");
    } else {
        server_empty_lost(s, space);
        resp_out_simple(out, "OK");
    }
}
