/* CLIENT: what the connection is called, which others there are, and whether it wants replies. */
#include "resp/commands.h"

#include <string.h>

#include "engine/op_number.h"
#include "resp/serve_admin.h"

/* Client ids in one command. */
#define IDS_MAX 256u
#define ADDRESS_MAX 128u

void serve_client_help(struct resp_conn *conn)
{
    static const char *const lines[] = {
        "CLIENT",
        "GETNAME",
        "    Answers the name of the connection.",
        "GETREDIR",
        "    Answers -1: what clients cache is not tracked.",
        "ID",
        "    Answers the number of the connection.",
        "INFO",
        "    Answers the connection's line of CLIENT LIST.",
        "KILL <ip:port>",
        "    Closes the connection that comes from <ip:port>.",
        "KILL <option> <value> [<option> <value> [...]]",
        "    Closes the connections that fit all options:",
        "    * ADDR <ip:port>: it comes from this address.",
        "    * LADDR <ip:port>: it goes to this address.",
        "    * ID <client-id>: it has this number; may be given more than once.",
        "    * MAXAGE <seconds>: it is at least so old.",
        "    * TYPE (NORMAL|MASTER|REPLICA|PUBSUB): only NORMAL ones exist.",
        "    * USER <username>: it belongs to this user.",
        "    * SKIPME (YES|NO): leave this connection alone (default: yes).",
        "LIST [TYPE (NORMAL|MASTER|REPLICA|PUBSUB)] [ID <client-id> [...]]",
        "    Answers a line for each connection.",
        "NO-EVICT (ON|OFF)",
        "    Marks the connection; none is evicted for memory.",
        "NO-TOUCH (ON|OFF)",
        "    Marks the connection; reads leave no trace in any case.",
        "REPLY (ON|OFF|SKIP)",
        "    Switches replies off and on, or off for the next command.",
        "SETINFO (LIB-NAME|LIB-VER) <value>",
        "    Tells which client library this is.",
        "SETNAME <name>",
        "    Names the connection.",
        "TRACKINGINFO",
        "    Answers that tracking is off.",
        NULL};
    command_help(conn, lines);
}

void serve_client_id(struct resp_conn *conn)
{
    resp_out_number(&conn->out, (int64_t)conn->id);
}

void serve_client_getname(struct resp_conn *conn)
{
    if (conn->name[0] == '\0') {
        resp_out_null(&conn->out);
    } else {
        resp_out_text(&conn->out, conn->name);
    }
}

void serve_client_setname(struct resp_conn *conn)
{
    struct bytes name = conn_argument(conn, 2);
    if (command_name_fits(conn, name, "Client names")) {
        command_set_name(conn->name, name);
        command_changed(conn);
        resp_out_simple(&conn->out, "OK");
    }
}

void serve_client_setinfo(struct resp_conn *conn)
{
    struct bytes value = conn_argument(conn, 3);
    bool name = conn_argument_is(conn, 2, "lib-name");
    if (!name && !conn_argument_is(conn, 2, "lib-ver")) {
        struct bytes option = command_printable(conn_argument(conn, 2), COMMAND_WORD_MAX);
        resp_out_errorf(&conn->out, "ERR Unrecognized option '%.*s'", (int)option.n,
                        (const char *)option.at);
    } else if (command_name_fits(conn, value, name ? "lib-name" : "lib-ver")) {
        command_set_name(name ? conn->library : conn->library_version, value);
        command_changed(conn);
        resp_out_simple(&conn->out, "OK");
    }
}

static void serve_switch(struct resp_conn *conn, bool *flag)
{
    bool on = conn_argument_is(conn, 2, "on");
    if (!on && !conn_argument_is(conn, 2, "off")) {
        conn_syntax_error(conn);
        return;
    }
    *flag = on;
    command_changed(conn);
    resp_out_simple(&conn->out, "OK");
}

void serve_client_no_evict(struct resp_conn *conn)
{
    serve_switch(conn, &conn->no_evict);
}

void serve_client_no_touch(struct resp_conn *conn)
{
    serve_switch(conn, &conn->no_touch);
}

/* Neither OFF nor SKIP is answered; ON is, although the command before it was not. */
void serve_client_reply(struct resp_conn *conn)
{
    if (conn_argument_is(conn, 2, "on")) {
        conn->reply_off = false;
        conn->reply_skip = false;
        conn->silent = false;
        resp_out_simple(&conn->out, "OK");
    } else if (conn_argument_is(conn, 2, "off")) {
        conn->reply_off = true;
        conn->silent = true;
    } else if (conn_argument_is(conn, 2, "skip")) {
        conn->reply_skip = !conn->reply_off;
        conn->silent = true;
    } else {
        conn_syntax_error(conn);
    }
}

void serve_client_getredir(struct resp_conn *conn)
{
    resp_out_number(&conn->out, -1);
}

void serve_client_trackinginfo(struct resp_conn *conn)
{
    resp_out_map(&conn->out, 3);
    resp_out_text(&conn->out, "flags");
    resp_out_set(&conn->out, 1);
    resp_out_text(&conn->out, "off");
    resp_out_text(&conn->out, "redirect");
    resp_out_number(&conn->out, -1);
    resp_out_text(&conn->out, "prefixes");
    resp_out_array(&conn->out, 0);
}

void serve_client_info(struct resp_conn *conn)
{
    struct resp_conn_info info;
    struct resp_out text;
    resp_conn_info(conn, &info);
    resp_out_init(&text, conn->out.max);
    resp_client_line(&info, conn->now_us, &text);
    command_text_reply(conn, &text);
}

/* What the options of LIST and KILL ask for, with the storage that the filter points to. */
struct asked {
    struct resp_client_filter filter;
    uint64_t ids[IDS_MAX];
    char address[ADDRESS_MAX], local[ADDRESS_MAX], user[RESP_USER_MAX + 1];
    bool nobody; /* a value that no connection has */
    bool skip_me;
};

static bool ask_type(struct resp_conn *conn, uint32_t at, struct asked *asked)
{
    static const char *const others[] = {"master", "replica", "slave", "pubsub"};
    if (conn_argument_is(conn, at, "normal")) {
        return true;
    }
    for (uint32_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (conn_argument_is(conn, at, others[i])) {
            asked->nobody = true;
            return true;
        }
    }
    struct bytes type = command_printable(conn_argument(conn, at), COMMAND_WORD_MAX);
    resp_out_errorf(&conn->out, "ERR Unknown client type '%.*s'", (int)type.n,
                    (const char *)type.at);
    return false;
}

static bool ask_id(struct resp_conn *conn, uint32_t at, int64_t least, const char *error,
                   struct asked *asked)
{
    int64_t id;
    if (!op_integer_parse(conn_argument(conn, at), &id) || id < least) {
        resp_out_errorf(&conn->out, "ERR %s", error);
        return false;
    }
    if (asked->filter.ids_n == IDS_MAX) {
        resp_out_errorf(&conn->out, "ERR more than %u client ids", IDS_MAX);
        return false;
    }
    asked->ids[asked->filter.ids_n++] = (uint64_t)id;
    return true;
}

static void ask_text(struct bytes text, char *storage, uint32_t capacity, const char **field,
                     struct asked *asked)
{
    if (command_text(text, storage, capacity)) {
        *field = storage;
    } else {
        asked->nobody = true;
    }
}

void serve_client_list(struct resp_conn *conn)
{
    const struct resp_host *host = conn->host;
    struct asked asked = {0};
    struct resp_out text;
    uint32_t n = conn_arguments(conn);
    if (n == 4 && conn_argument_is(conn, 2, "type")) {
        if (!ask_type(conn, 3, &asked)) {
            return;
        }
    } else if (n > 3 && conn_argument_is(conn, 2, "id")) {
        for (uint32_t i = 3; i < n; i++) {
            if (!ask_id(conn, i, 0, "Invalid client ID", &asked)) {
                return;
            }
        }
    } else if (n > 2) {
        conn_syntax_error(conn);
        return;
    }
    if (host->client_list == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    asked.filter.ids = asked.ids;
    resp_out_init(&text, conn->out.max);
    command_changed(conn); /* its own line shows this command */
    if (!asked.nobody) {
        host->client_list(host->context, &asked.filter, &text);
    }
    command_text_reply(conn, &text);
}

static bool ask_kill(struct resp_conn *conn, uint32_t at, struct asked *asked)
{
    struct resp_client_filter *filter = &asked->filter;
    struct bytes value = conn_argument(conn, at + 1);
    int64_t age;
    if (conn_argument_is(conn, at, "id")) {
        return ask_id(conn, at + 1, 1, "client-id should be greater than 0", asked);
    }
    if (conn_argument_is(conn, at, "type")) {
        return ask_type(conn, at + 1, asked);
    }
    if (conn_argument_is(conn, at, "addr")) {
        ask_text(value, asked->address, sizeof asked->address, &filter->address, asked);
    } else if (conn_argument_is(conn, at, "laddr")) {
        ask_text(value, asked->local, sizeof asked->local, &filter->local, asked);
    } else if (conn_argument_is(conn, at, "user")) {
        ask_text(value, asked->user, sizeof asked->user, &filter->user, asked);
    } else if (conn_argument_is(conn, at, "maxage")) {
        if (!op_integer_parse(value, &age) || age <= 0) {
            resp_out_error(&conn->out, "ERR maxage is not an integer or out of range");
            return false;
        }
        filter->maxage_s = (uint64_t)age;
    } else if (conn_argument_is(conn, at, "skipme") &&
               (conn_argument_is(conn, at + 1, "yes") || conn_argument_is(conn, at + 1, "no"))) {
        asked->skip_me = conn_argument_is(conn, at + 1, "yes");
    } else {
        conn_syntax_error(conn);
        return false;
    }
    return true;
}

/* This connection is closed by itself, so that its reply still leaves. */
static uint32_t kill_asked(struct resp_conn *conn, struct asked *asked)
{
    const struct resp_host *host = conn->host;
    struct resp_conn_info info;
    uint32_t killed;
    asked->filter.ids = asked->ids;
    if (asked->nobody) {
        return 0;
    }
    resp_conn_info(conn, &info);
    bool me = !asked->skip_me && resp_client_matches(&asked->filter, &info, conn->now_us);
    asked->filter.skip = conn->id;
    killed = host->client_kill(host->context, &asked->filter);
    conn->close = conn->close || me;
    return killed + (me ? 1 : 0);
}

void serve_client_kill(struct resp_conn *conn)
{
    struct asked asked = {.skip_me = true};
    uint32_t n = conn_arguments(conn);
    if (conn->host->client_kill == NULL) {
        conn_unavailable_error(conn);
        return;
    }
    if (n == 3) {
        asked.skip_me = false;
        ask_text(conn_argument(conn, 2), asked.address, sizeof asked.address, &asked.filter.address,
                 &asked);
        if (kill_asked(conn, &asked) > 0) {
            resp_out_simple(&conn->out, "OK");
        } else {
            resp_out_error(&conn->out, "ERR No such client");
        }
        return;
    }
    if (n % 2 != 0) {
        conn_syntax_error(conn);
        return;
    }
    for (uint32_t i = 2; i < n; i += 2) {
        if (!ask_kill(conn, i, &asked)) {
            return;
        }
    }
    resp_out_number(&conn->out, kill_asked(conn, &asked));
}
