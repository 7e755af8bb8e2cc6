/* HORKOS KEYSLOT and HORKOS SLOTS: hash slots of spaces whose keys have homes. */
#include "server/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/slots.h"

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

const char *server_slots_refused(const struct server *s, uint32_t space, char text[128])
{
    if (!s->config.spaces[space].exists) {
        snprintf(text, 128, "there is no space %u", space);
        return text;
    }
    if (!server_space_homed(s, space)) {
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
        if (server_space_homed(s, i) && (n == 0 || i == only)) {
            json_array_append_new(spaces, space_json(s, i));
        }
    }
    json_t *j = json_object();
    json_object_set_new(j, "node", json_integer(s->config.id));
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
