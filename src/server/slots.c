#include "server/slots.h"

#include <string.h>

#include "base/assert.h"

static const char *const state_names[] = {
    [HOME_NONE] = "none", [HOME_STABLE] = "stable",     [HOME_MOVING] = "moving",
    [HOME_LOST] = "lost", [HOME_EMPTYING] = "emptying", [HOME_GIVEN] = "given",
};
#define STATES (sizeof state_names / sizeof state_names[0])

const char *slots_state_name(uint8_t state)
{
    HK_ASSERT(state < STATES);
    return state_names[state];
}

void slots_sum(const struct slot_home *homes, struct slots_sum *sum_out)
{
    memset(sum_out, 0, sizeof *sum_out);
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        struct slot_home h = homes[i];
        HK_ASSERT(h.state < STATES);
        sum_out->by_state[h.state]++;
        bool homed = h.state == HOME_STABLE || h.state == HOME_MOVING || h.state == HOME_GIVEN;
        if (!homed || h.home >= NODES_MAX) {
            continue;
        }
        sum_out->homed[h.home]++;
        if (h.state == HOME_MOVING && h.to < NODES_MAX) {
            sum_out->gives[h.home]++;
            sum_out->gets[h.to]++;
        }
    }
}

json_t *slots_states_json(const struct slots_sum *sum)
{
    json_t *states = json_object();
    for (uint8_t i = 0; i < STATES; i++) {
        json_object_set_new(states, state_names[i], json_integer(sum->by_state[i]));
    }
    return states;
}

static json_t *nodes_json(const struct slots_sum *sum)
{
    json_t *nodes = json_array();
    for (uint32_t i = 0; i < NODES_MAX; i++) {
        if (sum->homed[i] == 0 && sum->gets[i] == 0) {
            continue;
        }
        json_t *node = json_object();
        json_object_set_new(node, "id", json_integer(i));
        json_object_set_new(node, "slots", json_integer(sum->homed[i]));
        json_object_set_new(node, "gives", json_integer(sum->gives[i]));
        json_object_set_new(node, "gets", json_integer(sum->gets[i]));
        json_array_append_new(nodes, node);
    }
    return nodes;
}

static json_t *run_json(uint32_t from, uint32_t to, struct slot_home h)
{
    json_t *run = json_object();
    json_object_set_new(run, "from", json_integer(from));
    json_object_set_new(run, "to", json_integer(to));
    json_object_set_new(run, "state", json_string(slots_state_name(h.state)));
    if (h.home < NODES_MAX) {
        json_object_set_new(run, "home", json_integer(h.home));
    }
    if (h.to < NODES_MAX) {
        json_object_set_new(run, "next", json_integer(h.to));
    }
    return run;
}

json_t *slots_json(const struct slot_home *homes)
{
    struct slots_sum sum;
    slots_sum(homes, &sum);
    json_t *runs = json_array();
    for (uint32_t from = 0; from < HASH_SLOTS;) {
        uint32_t to = from;
        while (to + 1 < HASH_SLOTS &&
               slot_home_pack(homes[to + 1]) == slot_home_pack(homes[from])) {
            to++;
        }
        json_array_append_new(runs, run_json(from, to, homes[from]));
        from = to + 1;
    }
    json_t *all = json_object();
    json_object_set_new(all, "slots", slots_states_json(&sum));
    json_object_set_new(all, "nodes", nodes_json(&sum));
    json_object_set_new(all, "runs", runs);
    return all;
}
