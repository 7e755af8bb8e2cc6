/* The rows of the commands on the connection itself, CLIENT among them. */
#include "resp/command_rows.h"
#include "resp/serve_admin.h"

/* What a client may ask at any time once it is authenticated; and before that. */
#define ALWAYS (RESP_LOADING | RESP_MULTI)
#define ALWAYS_FAST (ALWAYS | RESP_FAST)
#define STRANGERS (RESP_LOADING | RESP_FAST | RESP_NOAUTH)
#define ADMIN (RESP_LOADING | RESP_ADMIN)

const struct resp_command resp_command_auth = {
    .name = "auth",
    .arity = -2,
    .flags = STRANGERS,
    .serve = serve_auth,
    .group = "connection",
    .since = "1.0.0",
    .complexity = "O(N), N the passwords of the user",
    .summary = "Proves who the client is.",
    .arguments = "[username] password",
};

const struct resp_command resp_command_echo = {
    .name = "echo",
    .arity = 2,
    .flags = ALWAYS_FAST,
    .serve = serve_echo,
    .group = "connection",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Answers its argument.",
    .arguments = "message",
};

const struct resp_command resp_command_hello = {
    .name = "hello",
    .arity = -1,
    .flags = STRANGERS,
    .serve = serve_hello,
    .group = "connection",
    .since = "6.0.0",
    .complexity = "O(1)",
    .summary = "Picks RESP2 or RESP3, authenticates and names the connection.",
    .arguments = "[protover [AUTH username password] [SETNAME clientname]]",
};

/* Not RESP_LOADING, as in Redis: who checks a node by PING learns that it is still joining. */
const struct resp_command resp_command_ping = {
    .name = "ping",
    .arity = -1,
    .flags = RESP_FAST | RESP_MULTI,
    .serve = serve_ping,
    .group = "connection",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Answers PONG, or its argument, unless this node is joining.",
    .arguments = "[message]",
};

const struct resp_command resp_command_quit = {
    .name = "quit",
    .arity = -1,
    .flags = STRANGERS,
    .serve = serve_quit,
    .group = "connection",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Closes the connection after all replies before it.",
};

const struct resp_command resp_command_readonly = {
    .name = "readonly",
    .arity = 1,
    .flags = ALWAYS_FAST,
    .serve = serve_ok,
    .group = "cluster",
    .since = "3.0.0",
    .complexity = "O(1)",
    .summary = "Changes nothing: every node serves reads and writes.",
};

const struct resp_command resp_command_readwrite = {
    .name = "readwrite",
    .arity = 1,
    .flags = ALWAYS_FAST,
    .serve = serve_ok,
    .group = "cluster",
    .since = "3.0.0",
    .complexity = "O(1)",
    .summary = "Changes nothing: every node serves reads and writes.",
};

const struct resp_command resp_command_reset = {
    .name = "reset",
    .arity = 1,
    .flags = STRANGERS,
    .serve = serve_reset,
    .group = "connection",
    .since = "6.2.0",
    .complexity = "O(1)",
    .summary = "Makes the connection as new: RESP2, space 0, no name, not authenticated.",
};

const struct resp_command resp_command_select = {
    .name = "select",
    .arity = 2,
    .flags = ALWAYS_FAST,
    .serve = serve_select,
    .group = "connection",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Picks the space that the connection's commands work on.",
    .arguments = "index",
};

#define CLIENT(name_, arity_, flags_, serve_, since_)                                              \
    .name = (name_), .parent = &resp_command_client, .arity = (arity_), .flags = (flags_),         \
    .serve = (serve_), .group = "connection", .since = (since_), .complexity = "O(1)"
#define CLIENT_REFUSED(name_, since_, why_)                                                        \
    {                                                                                              \
        CLIENT(name_, -2, RESP_LOADING | RESP_REFUSED, serve_refused, since_),                     \
            .refusal = "'client|" name_ "' is not supported: " why_                                \
    }

static const struct resp_command of_client[] = {
    CLIENT_REFUSED("caching", "6.0.0", "horkos does not track what clients cache"),
    {CLIENT("getname", 2, ALWAYS, serve_client_getname, "2.6.9"),
     .summary = "Answers the connection's name."},
    {CLIENT("getredir", 2, ALWAYS, serve_client_getredir, "6.0.0"),
     .summary = "Answers -1: nothing is tracked, so nothing is redirected."},
    RESP_HELP_ROW(resp_command_client, serve_client_help, "connection", "5.0.0"),
    {CLIENT("id", 2, ALWAYS, serve_client_id, "5.0.0"),
     .summary = "Answers the connection's number, unique in this process."},
    {CLIENT("info", 2, ALWAYS, serve_client_info, "6.2.0"),
     .summary = "Answers the connection's line of CLIENT LIST."},
    {.name = "kill",
     .parent = &resp_command_client,
     .arity = -3,
     .flags = ADMIN,
     .serve = serve_client_kill,
     .group = "connection",
     .since = "2.4.0",
     .complexity = "O(N), N the number of connections",
     .summary = "Closes the connections that match.",
     .arguments = "(ip:port | ([ID client-id] [TYPE client-type] [USER username] [ADDR ip:port] "
                  "[LADDR ip:port] [SKIPME yes/no] [MAXAGE seconds])...)"},
    {.name = "list",
     .parent = &resp_command_client,
     .arity = -2,
     .flags = ADMIN,
     .serve = serve_client_list,
     .group = "connection",
     .since = "2.4.0",
     .complexity = "O(N), N the number of connections",
     .summary = "Answers a line for each connection, or for those that match.",
     .arguments = "[TYPE client-type] [ID client-id...]"},
    CLIENT_REFUSED("maint_notifications", "8.4.0", "horkos announces no maintenance"),
    {CLIENT("no-evict", 3, ADMIN, serve_client_no_evict, "7.0.0"),
     .summary = "Marks the connection as one to keep; none is ever evicted for memory.",
     .arguments = "(ON | OFF)"},
    {CLIENT("no-touch", 3, ALWAYS, serve_client_no_touch, "7.2.0"),
     .summary = "Marks the connection as one whose reads leave no trace; no read ever does.",
     .arguments = "(ON | OFF)"},
    CLIENT_REFUSED("pause", "2.9.50", "the other nodes would go on meanwhile"),
    {CLIENT("reply", 3, RESP_LOADING, serve_client_reply, "3.2.0"),
     .summary = "Switches replies off, on, or off for the next command.",
     .arguments = "(ON | OFF | SKIP)"},
    {CLIENT("setinfo", 4, ALWAYS, serve_client_setinfo, "7.2.0"),
     .summary = "Tells the client library's name or version, for CLIENT LIST.",
     .arguments = "(LIB-NAME libname | LIB-VER libver)"},
    {CLIENT("setname", 3, ALWAYS, serve_client_setname, "2.6.9"),
     .summary = "Names the connection, for CLIENT LIST.", .arguments = "connection-name"},
    CLIENT_REFUSED("tracking", "6.0.0", "horkos does not track what clients cache"),
    {CLIENT("trackinginfo", 2, ALWAYS, serve_client_trackinginfo, "6.2.0"),
     .summary = "Answers that tracking is off."},
    CLIENT_REFUSED("unblock", "5.0.0", "no command of horkos blocks its connection"),
    CLIENT_REFUSED("unpause", "6.2.0", "CLIENT PAUSE is not supported, so nobody is paused"),
};

const struct resp_command resp_command_client = {
    .name = "client",
    .arity = -2,
    RESP_SUBCOMMANDS(of_client),
    .group = "connection",
    .since = "2.4.0",
    .complexity = "Depends on the subcommand",
    .summary = "Looks at connections, and names, lists or closes them.",
};
