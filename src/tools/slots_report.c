#include "tools/slots_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "node/node.h"

/* Runs of slots that are listed of one state; --json has them all. */
#define RUNS_SHOWN 16u

static uint64_t count_of(const json_t *space, const char *state)
{
    json_int_t n = json_integer_value(json_object_get(json_object_get(space, "slots"), state));
    return n > 0 ? (uint64_t)n : 0;
}

bool slots_report_parse(struct bytes text, struct slots_report *report_out)
{
    *report_out = (struct slots_report){.node = -1};
    json_t *json = json_loadb((const char *)text.at, text.n, 0, NULL);
    const json_t *spaces = json_object_get(json, "spaces");
    if (!json_is_array(spaces)) {
        json_decref(json);
        return false;
    }
    const json_t *node = json_object_get(json, "node");
    size_t i = 0;
    const json_t *space = NULL;
    json_array_foreach(spaces, i, space)
    {
        report_out->lost += count_of(space, "lost");
        report_out->emptying += count_of(space, "emptying");
        report_out->moving += count_of(space, "moving");
        report_out->none += count_of(space, "none");
    }
    report_out->json = json;
    report_out->node = json_is_integer(node) ? (int64_t)json_integer_value(node) : -1;
    return true;
}

void slots_report_deinit(struct slots_report *report)
{
    json_decref(report->json);
    report->json = NULL;
}

uint32_t slots_report_lost_spaces(const struct slots_report *report)
{
    uint32_t lost = 0;
    size_t i = 0;
    const json_t *space = NULL;
    json_array_foreach(json_object_get(report->json, "spaces"), i, space)
    {
        json_int_t number = json_integer_value(json_object_get(space, "space"));
        if (count_of(space, "lost") > 0 && number >= 0 && number < (json_int_t)SPACES_MAX) {
            lost |= 1u << number;
        }
    }
    return lost;
}

enum node_report_result slots_report_fetch(const struct node_address *address, uint32_t space,
                                           uint32_t timeout_ms, struct slots_report *report_out,
                                           char *why_out, uint32_t size)
{
    struct resp_client client;
    struct resp_client_reply reply;
    char number[8];
    struct bytes args[3] = {bytes_of("HORKOS", 6), bytes_of("SLOTS", 5)};
    uint32_t n = 2;
    if (space < SPACES_MAX) {
        args[n++] = bytes_of(number, (uint32_t)snprintf(number, sizeof number, "%u", space));
    }
    *report_out = (struct slots_report){.node = -1};
    resp_client_init(&client);
    enum node_report_result result = node_connect(&client, address, timeout_ms, why_out, size);
    if (result == NODE_REPORT_OK) {
        result = node_ask(&client, n, args, timeout_ms, &reply, why_out, size);
    }
    if (result == NODE_REPORT_OK && !slots_report_parse(reply.text, report_out)) {
        snprintf(why_out, size, "%s does not answer HORKOS SLOTS as a node of horkos does",
                 client.where);
        result = NODE_REPORT_STRANGER;
    }
    resp_client_deinit(&client);
    return result;
}

/* ---- For people ---- */

static int64_t number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

/* A number that was not said shows as "-". */
static void print_number(FILE *to, const char *format, int64_t number)
{
    char text[24] = "-";
    if (number >= 0) {
        snprintf(text, sizeof text, "%" PRId64, number);
    }
    fprintf(to, format, text);
}

static bool is_of(const json_t *run, const char *state)
{
    const char *text = json_string_value(json_object_get(run, "state"));
    return text != NULL && strcmp(text, state) == 0;
}

/* "lost      3 slots: 0-1, 7", if there are any. */
static void print_state(const json_t *space, const char *state, const char *title, FILE *to)
{
    uint64_t slots = count_of(space, state);
    uint64_t runs = 0;
    size_t i = 0;
    const json_t *run = NULL;
    if (slots == 0) {
        return;
    }
    fprintf(to, "%-8s  %" PRIu64 " slot%s: ", title, slots, slots == 1 ? "" : "s");
    json_array_foreach(json_object_get(space, "runs"), i, run)
    {
        if (!is_of(run, state) || ++runs > RUNS_SHOWN) {
            continue;
        }
        int64_t from = number_of(run, "from");
        int64_t last = number_of(run, "to");
        print_number(to, runs > 1 ? ", %s" : "%s", from);
        if (last != from) {
            print_number(to, "-%s", last);
        }
    }
    if (runs > RUNS_SHOWN) {
        fprintf(to, " and %" PRIu64 " more ranges (--json has all)", runs - RUNS_SHOWN);
    }
    fprintf(to, "\n");
}

static void print_space(const json_t *space, FILE *to)
{
    const json_t *map = json_object_get(space, "map");
    const char *engine = json_string_value(json_object_get(space, "engine"));
    char clean[32];
    node_error_text(engine == NULL ? bytes_of("?", 1) : bytes_of(engine, (uint32_t)strlen(engine)),
                    clean, sizeof clean);
    print_number(to, "space %s", number_of(space, "space"));
    fprintf(to, " (%s), ", clean);
    print_number(to, "map %s", number_of(map, "epoch"));
    print_number(to, ".%s\n\n", number_of(map, "change"));
    fprintf(to, "node     slots   gives    gets\n");
    size_t i = 0;
    const json_t *node = NULL;
    json_array_foreach(json_object_get(space, "nodes"), i, node)
    {
        print_number(to, "%-4s  ", number_of(node, "id"));
        print_number(to, "%8s", number_of(node, "slots"));
        print_number(to, "%8s", number_of(node, "gives"));
        print_number(to, "%8s\n", number_of(node, "gets"));
    }
    fprintf(to, "\n");
    print_state(space, "moving", "moving", to);
    print_state(space, "given", "given", to);
    print_state(space, "lost", "lost", to);
    print_state(space, "emptying", "emptying", to);
    print_state(space, "none", "nobody's", to);
    if (count_of(space, "lost") + count_of(space, "emptying") + count_of(space, "none") == 0) {
        fprintf(to, "all slots have a home\n");
    }
}

/* What a node that does not do both says of itself; it concerns spaces of engine lotus. */
static void print_role(const struct slots_report *report, FILE *to)
{
    const char *role = json_string_value(json_object_get(report->json, "role"));
    bool computes = role != NULL && strcmp(role, "compute") == 0;
    if (computes || (role != NULL && strcmp(role, "memory") == 0)) {
        print_number(to, "node %s ", report->node);
        fprintf(to, "has the role %s: in spaces of engine lotus it %s\n\n", role,
                computes ? "takes no slots" : "runs no transactions");
    }
}

void slots_report_print(const struct slots_report *report, FILE *to)
{
    size_t i = 0;
    const json_t *space = NULL;
    print_role(report, to);
    json_array_foreach(json_object_get(report->json, "spaces"), i, space)
    {
        fprintf(to, "%s", i > 0 ? "\n" : "");
        print_space(space, to);
    }
    if (i == 0) {
        fprintf(to, "no space has slots: that is for engines galene and lotus\n");
    }
}
