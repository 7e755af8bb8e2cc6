/* LATENCY, MEMORY (but USAGE) and DEBUG: tools ask for them, and what is not measured is empty. */
#include "resp/commands.h"

#include <string.h>

#include "base/err.h"
#include "engine/op_number.h"
#include "resp/serve_admin.h"

static void reply_text(struct resp_conn *conn, const char *text)
{
    resp_out_verbatim(&conn->out, bytes_of(text, (uint32_t)strlen(text)));
}

void serve_debug_help(struct resp_conn *conn)
{
    static const char *const lines[] = {
        "DEBUG", "SLEEP <seconds>",
        "    Answers after so many seconds (a fraction is fine). Only this connection waits.",
        NULL};
    command_help(conn, lines);
}

void serve_latency_help(struct resp_conn *conn)
{
    static const char *const lines[] = {"LATENCY",
                                        "DOCTOR",
                                        "    Says where to look for slow commands.",
                                        "GRAPH <event>",
                                        "    Answers that there are no samples.",
                                        "HISTOGRAM [<command> ...]",
                                        "    Answers an empty map.",
                                        "HISTORY <event>",
                                        "    Answers an empty list.",
                                        "LATEST",
                                        "    Answers an empty list.",
                                        "RESET [<event> ...]",
                                        "    Answers 0.",
                                        NULL};
    command_help(conn, lines);
}

void serve_latency_doctor(struct resp_conn *conn)
{
    reply_text(conn,
               "horkos does not sample latency by event. SLOWLOG GET has the commands that took "
               "longer than slowlog-log-slower-than.\n");
}

void serve_latency_graph(struct resp_conn *conn)
{
    struct bytes event = command_printable(conn_argument(conn, 2), COMMAND_WORD_MAX);
    resp_out_errorf(&conn->out, "ERR No samples available for event '%.*s'", (int)event.n,
                    (const char *)event.at);
}

void serve_latency_histogram(struct resp_conn *conn)
{
    resp_out_map(&conn->out, 0);
}

void serve_latency_history(struct resp_conn *conn)
{
    resp_out_array(&conn->out, 0);
}

void serve_latency_latest(struct resp_conn *conn)
{
    resp_out_array(&conn->out, 0);
}

void serve_latency_reset(struct resp_conn *conn)
{
    resp_out_number(&conn->out, 0);
}

void serve_memory_help(struct resp_conn *conn)
{
    static const char *const lines[] = {
        "MEMORY",
        "DOCTOR",
        "    Says where the figures of memory are.",
        "MALLOC-STATS",
        "    Answers that the allocator keeps no statistics.",
        "PURGE",
        "    Changes nothing: the store gives memory back by itself.",
        "STATS",
        "    Answers INFO's figures of memory as a map.",
        "USAGE <key> [SAMPLES <count>]",
        "    Answers about how many bytes the key and its value take. SAMPLES changes nothing.",
        NULL};
    command_help(conn, lines);
}

void serve_memory_doctor(struct resp_conn *conn)
{
    reply_text(conn,
               "horkos does not judge its use of memory. INFO memory and MEMORY STATS have the "
               "figures; maxmemory bounds them.\n");
}

void serve_memory_malloc_stats(struct resp_conn *conn)
{
    reply_text(conn, "The allocator keeps no statistics that it could print.\n");
}

void serve_memory_purge(struct resp_conn *conn)
{
    resp_out_simple(&conn->out, "OK");
}

/* The next line of text without its end; false when there is none. */
static bool next_line(struct bytes *text, struct bytes *line_out)
{
    if (text->n == 0) {
        return false;
    }
    const uint8_t *end = memchr(text->at, '\n', text->n);
    uint32_t n = end == NULL ? text->n : (uint32_t)(end - text->at);
    uint32_t used = end == NULL ? n : n + 1;
    *line_out = bytes_of(text->at, n > 0 && text->at[n - 1] == '\r' ? n - 1 : n);
    *text = bytes_of(text->at + used, text->n - used);
    return true;
}

/* "name:value" */
static bool split_line(struct bytes line, struct bytes *name_out, struct bytes *value_out)
{
    const uint8_t *colon = line.n == 0 || line.at[0] == '#' ? NULL : memchr(line.at, ':', line.n);
    if (colon == NULL) {
        return false;
    }
    uint32_t n = (uint32_t)(colon - line.at);
    *name_out = bytes_of(line.at, n);
    *value_out = bytes_of(colon + 1, line.n - n - 1);
    return true;
}

static uint32_t count_figures(struct bytes text)
{
    struct bytes line, name, value;
    uint32_t n = 0;
    while (next_line(&text, &line)) {
        n += split_line(line, &name, &value) ? 1 : 0;
    }
    return n;
}

/* ---- HOTKEYS ---- */

#define HOTKEYS_DEFAULT 10

/* Pairs, ready to be sent. */
struct hotkeys {
    struct resp_out pairs;
    uint32_t n;
};

static void add_hotkey(void *context, struct bytes key, uint64_t rate)
{
    struct hotkeys *found = context;
    resp_out_array(&found->pairs, 2);
    resp_out_bulk(&found->pairs, key);
    resp_out_number(&found->pairs, rate < INT64_MAX ? (int64_t)rate : INT64_MAX);
    found->n++;
}

/* More than RESP_HOTKEYS_MAX are never listed, however many are asked for. */
void serve_hotkeys(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    int64_t count = HOTKEYS_DEFAULT;
    if (conn_arguments(conn) > 2) {
        conn_syntax_error(conn);
        return;
    }
    if (conn_arguments(conn) == 2 && !conn_integer(conn, 1, &count)) {
        return;
    }
    if (count < 1) {
        resp_out_error(&conn->out, "ERR value is out of range, must be positive");
        return;
    }
    if (host->hotkeys == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    struct hotkeys found = {.n = 0};
    resp_out_init(&found.pairs, conn->out.max);
    uint32_t most = count < RESP_HOTKEYS_MAX ? (uint32_t)count : RESP_HOTKEYS_MAX;
    int err = host->hotkeys(host->context, conn->space, most, add_hotkey, &found);
    if (err == HK_OK && found.pairs.failed) {
        err = HK_ERR_NOMEM;
    }
    if (err != HK_OK) {
        conn_operation_error(&conn->out, err, 0, false);
    } else {
        resp_out_array(&conn->out, found.n);
        resp_out_raw(&conn->out, bytes_of(found.pairs.at, found.pairs.n));
    }
    resp_out_deinit(&found.pairs);
}

/* ---- MEMORY STATS ---- */

/* The names are INFO's: Redis's MEMORY STATS counts things that are not here. */
void serve_memory_stats(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    struct resp_out text;
    struct bytes line, name, value;
    if (host->info == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    resp_out_init(&text, conn->out.max);
    if (!host->info(host->context, "memory", &text)) {
        resp_out_reset(&text);
    }
    if (text.failed) {
        conn_operation_error(&conn->out, HK_ERR_NOMEM, 0, false);
    } else {
        struct bytes rest = bytes_of(text.at, text.n);
        int64_t number;
        resp_out_map(&conn->out, count_figures(rest));
        while (next_line(&rest, &line)) {
            if (split_line(line, &name, &value)) {
                resp_out_bulk(&conn->out, name);
                if (op_integer_parse(value, &number)) {
                    resp_out_number(&conn->out, number);
                } else {
                    resp_out_bulk(&conn->out, value);
                }
            }
        }
    }
    resp_out_deinit(&text);
}
