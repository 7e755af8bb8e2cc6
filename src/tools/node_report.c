#include "tools/node_report.h"

#include <inttypes.h>
#include <string.h>

#include "base/err.h"

/* Text for messages and tables: whatever is no printable ASCII becomes a question mark. */
static void copy_clean(char *to, uint32_t size, struct bytes text)
{
    uint32_t n = text.n < size - 1 ? text.n : size - 1;
    for (uint32_t i = 0; i < n; i++) {
        to[i] = text.at[i] >= ' ' && text.at[i] <= '~' ? (char)text.at[i] : '?';
    }
    to[n] = '\0';
}

static const char *string_of(const json_t *object, const char *name)
{
    const char *value = json_string_value(json_object_get(object, name));
    return value == NULL ? "?" : value;
}

static int64_t number_of(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    return json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
}

bool node_report_parse(struct bytes text, struct node_report *report_out)
{
    *report_out = (struct node_report){.node = -1, .role = "?", .status = "?"};
    json_t *json = json_loadb((const char *)text.at, text.n, 0, NULL);
    if (!json_is_object(json) || !json_is_boolean(json_object_get(json, "can_serve"))) {
        json_decref(json);
        return false;
    }
    report_out->json = json;
    report_out->can_serve = json_is_true(json_object_get(json, "can_serve"));
    report_out->node = number_of(json, "node");
    report_out->role = string_of(json, "role");
    report_out->status = string_of(json, "status");
    return true;
}

void node_report_deinit(struct node_report *report)
{
    json_decref(report->json);
    report->json = NULL;
}

void node_error_text(struct bytes error, char *text_out, uint32_t size)
{
    copy_clean(text_out, size, error);
}

/* What kind of answer an error is. */
static enum node_report_result error_means(struct bytes error)
{
    static const char *const denials[] = {"NOAUTH", "WRONGPASS", "NOPERM"};
    for (uint32_t i = 0; i < sizeof denials / sizeof denials[0]; i++) {
        uint32_t n = (uint32_t)strlen(denials[i]);
        if (error.n >= n && memcmp(error.at, denials[i], n) == 0) {
            return NODE_REPORT_DENIED;
        }
    }
    return NODE_REPORT_STRANGER;
}

static enum node_report_result say_error(const struct resp_client *client, struct bytes error,
                                         char *why_out, uint32_t size)
{
    char text[200];
    copy_clean(text, sizeof text, error);
    size_t n = strlen(text);
    text[n > 0 && text[n - 1] == '.' ? n - 1 : n] = '\0'; /* we go on behind it */
    snprintf(why_out, size, "%s answers: %s", client->where, text);
    return error_means(error);
}

/* A failed call: a connection that broke, or bytes that are no RESP. */
static enum node_report_result say_failure(const struct resp_client *client, int err, char *why_out,
                                           uint32_t size)
{
    snprintf(why_out, size, "%s", client->why);
    return err == HK_ERR_CORRUPT ? NODE_REPORT_STRANGER : NODE_REPORT_UNREACHABLE;
}

static enum node_report_result authenticate(struct resp_client *client,
                                            const struct node_address *address, uint32_t timeout_ms,
                                            char *why_out, uint32_t size)
{
    struct resp_client_reply reply;
    struct bytes args[3] = {bytes_of("AUTH", 4)};
    uint32_t n = 1;
    if (address->user != NULL) {
        args[n++] = bytes_of(address->user, (uint32_t)strlen(address->user));
    }
    args[n++] = bytes_of(address->password, (uint32_t)strlen(address->password));
    int err = resp_client_call(client, n, args, timeout_ms, &reply);
    if (err != HK_OK) {
        return say_failure(client, err, why_out, size);
    }
    if (reply.kind == RESP_CLIENT_ERROR) {
        (void)say_error(client, reply.text, why_out, size);
        return NODE_REPORT_DENIED;
    }
    return NODE_REPORT_OK;
}

enum node_report_result node_connect(struct resp_client *client, const struct node_address *address,
                                     uint32_t timeout_ms, char *why_out, uint32_t size)
{
    int err = resp_client_connect(client, &address->target, timeout_ms);
    if (err != HK_OK) {
        return say_failure(client, err, why_out, size);
    }
    if (address->password == NULL) {
        return NODE_REPORT_OK;
    }
    return authenticate(client, address, timeout_ms, why_out, size);
}

enum node_report_result node_ask(struct resp_client *client, uint32_t n, const struct bytes *args,
                                 uint32_t timeout_ms, struct resp_client_reply *reply_out,
                                 char *why_out, uint32_t size)
{
    int err = resp_client_call(client, n, args, timeout_ms, reply_out);
    if (err != HK_OK) {
        return say_failure(client, err, why_out, size);
    }
    if (reply_out->kind == RESP_CLIENT_ERROR) {
        return say_error(client, reply_out->text, why_out, size);
    }
    return NODE_REPORT_OK;
}

static enum node_report_result ask(struct resp_client *client, uint32_t timeout_ms,
                                   struct node_report *report_out, char *why_out, uint32_t size)
{
    static const char command[] = "HORKOS";
    static const char subcommand[] = "STATUS";
    struct bytes args[2] = {bytes_of(command, sizeof command - 1),
                            bytes_of(subcommand, sizeof subcommand - 1)};
    struct resp_client_reply reply;
    enum node_report_result result = node_ask(client, 2, args, timeout_ms, &reply, why_out, size);
    if (result != NODE_REPORT_OK) {
        return result;
    }
    if (reply.kind != RESP_CLIENT_BULK || !node_report_parse(reply.text, report_out)) {
        snprintf(why_out, size, "%s does not answer HORKOS STATUS as a node of horkos does",
                 client->where);
        return NODE_REPORT_STRANGER;
    }
    return NODE_REPORT_OK;
}

enum node_report_result node_report_fetch(const struct node_address *address, uint32_t timeout_ms,
                                          struct node_report *report_out, char *why_out,
                                          uint32_t size)
{
    struct resp_client client;
    *report_out = (struct node_report){.node = -1, .role = "?", .status = "?"};
    resp_client_init(&client);
    enum node_report_result result = node_connect(&client, address, timeout_ms, why_out, size);
    if (result == NODE_REPORT_OK) {
        result = ask(&client, timeout_ms, report_out, why_out, size);
    }
    resp_client_deinit(&client);
    return result;
}

static void print_text(FILE *to, const char *format, const char *text)
{
    char clean[300];
    copy_clean(clean, sizeof clean, bytes_of(text, (uint32_t)strlen(text)));
    fprintf(to, format, clean);
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

static void print_members(const json_t *members, FILE *to)
{
    fprintf(to, "\nmember  role         live  address\n");
    size_t i = 0;
    const json_t *member = NULL;
    json_array_foreach(members, i, member)
    {
        print_number(to, "%-6s  ", number_of(member, "id"));
        print_text(to, "%-11s  ", string_of(member, "role"));
        fprintf(to, "%-4s  ", json_is_true(json_object_get(member, "live")) ? "yes" : "no");
        print_text(to, "%s\n", string_of(member, "address"));
    }
}

static void print_spaces(const json_t *spaces, FILE *to)
{
    fprintf(to, "\nspace  engine    %12s  %15s\n", "keys", "bytes");
    size_t i = 0;
    const json_t *space = NULL;
    json_array_foreach(spaces, i, space)
    {
        print_number(to, "%-5s  ", number_of(space, "space"));
        print_text(to, "%-8s  ", string_of(space, "engine"));
        print_number(to, "%12s  ", number_of(space, "keys"));
        print_number(to, "%15s\n", number_of(space, "bytes"));
    }
}

/* Of spaces whose keys have homes: "space 2: home of 5461 slots; moving 12, lost 3". */
static void print_homes(const json_t *spaces, FILE *to)
{
    static const char *const states[] = {"moving", "lost", "emptying", "none"};
    size_t i = 0;
    bool any = false;
    const json_t *space = NULL;
    json_array_foreach(spaces, i, space)
    {
        const json_t *slots = json_object_get(space, "slots");
        if (!json_is_object(slots)) {
            continue;
        }
        fprintf(to, "%s", any ? "" : "\n");
        any = true;
        print_number(to, "space %s: ", number_of(space, "space"));
        print_number(to, "home of %s slots", number_of(space, "homed"));
        const char *glue = "; of all slots";
        for (size_t j = 0; j < sizeof states / sizeof states[0]; j++) {
            if (number_of(slots, states[j]) > 0) {
                fprintf(to, "%s %s ", glue, states[j]);
                print_number(to, "%s", number_of(slots, states[j]));
                glue = ",";
            }
        }
        fprintf(to, "\n");
    }
}

/* "hit rate 64.8 %: 1200 hits, 300 at home, 350 misses". */
static void print_hits(const json_t *galene, FILE *to)
{
    const json_t *rate = json_object_get(galene, "hit_rate");
    if (!json_is_number(rate)) {
        return;
    }
    fprintf(to, "hit rate %.1f %%: ", 100 * json_number_value(rate));
    print_number(to, "%s hits, ", number_of(galene, "hits"));
    print_number(to, "%s at home, ", number_of(galene, "at_home"));
    print_number(to, "%s misses\n", number_of(galene, "misses"));
}

/* "zeus   5 transactions read, 7 wrote, 1 found a change; 12 keys came here, 3 as copies; ..." */
static void print_owned(const json_t *zeus, FILE *to)
{
    if (!json_is_object(zeus)) {
        return;
    }
    print_number(to, "zeus   %s transactions read, ", number_of(zeus, "txn_reads"));
    print_number(to, "%s wrote, ", number_of(zeus, "txn_commits"));
    print_number(to, "%s found a change; ", number_of(zeus, "txn_conflicts"));
    print_number(to, "%s keys came here, ", number_of(zeus, "own_moves"));
    print_number(to, "%s as copies; ", number_of(zeus, "own_reads"));
    print_number(to, "%s requests refused, ", number_of(zeus, "own_nacks"));
    print_number(to, "%s waited; ", number_of(zeus, "own_waits"));
    print_number(to, "%s keys lost\n", number_of(zeus, "own_lost"));
}

/* "lotus  5 transactions in 7 tries, 12 messages to memory servers; here 3 waits for locks, ..." */
static void print_tables(const json_t *lotus, FILE *to)
{
    if (!json_is_object(lotus)) {
        return;
    }
    print_number(to, "lotus  %s transactions ", number_of(lotus, "transactions"));
    print_number(to, "in %s tries, ", number_of(lotus, "tries"));
    print_number(to, "%s messages to memory servers; ", number_of(lotus, "requests"));
    print_number(to, "here %s waits for locks, ", number_of(lotus, "home_waits"));
    print_number(to, "%s refused, ", number_of(lotus, "home_refused"));
    print_number(to, "%s in doubt\n", number_of(lotus, "home_doubts"));
}

void node_report_print(const struct node_report *report, FILE *to)
{
    print_number(to, "node   %s: ", report->node);
    print_text(to, "%s", report->role);
    if (strcmp(report->status, "?") != 0) {
        print_text(to, " (%s)", report->status);
    }
    fprintf(to, ", %s\n", report->can_serve ? "serves" : "does not serve");
    print_number(to, "epoch  %s\n", number_of(report->json, "epoch"));
    print_number(to, "lease  %s ms left\n", number_of(report->json, "lease_ms_left"));
    print_members(json_object_get(report->json, "members"), to);
    print_spaces(json_object_get(report->json, "spaces"), to);
    print_homes(json_object_get(report->json, "spaces"), to);
    print_hits(json_object_get(report->json, "galene"), to);
    print_owned(json_object_get(report->json, "zeus"), to);
    print_tables(json_object_get(report->json, "lotus"), to);
}
