/* The rows of the commands on the process and its figures. */
#include "resp/command_rows.h"
#include "resp/serve_admin.h"
#include "resp/serve_data.h"

#define ALWAYS (RESP_LOADING | RESP_MULTI)
#define ALWAYS_FAST (ALWAYS | RESP_FAST)
#define ADMIN (RESP_LOADING | RESP_ADMIN)

/* A subcommand's first fields. */
#define OF(parent_, name_, arity_, flags_, serve_, since_)                                         \
    .name = (name_), .parent = &resp_command_##parent_, .arity = (arity_), .flags = (flags_),      \
    .serve = (serve_), .group = "server", .since = (since_), .complexity = "O(1)"
#define CONTAINER(name_, array_, since_)                                                           \
    .name = (name_), .arity = -2, RESP_SUBCOMMANDS(array_), .group = "server", .since = (since_),  \
    .complexity = "Depends on the subcommand"

#define ACL_REFUSED(name_)                                                                         \
    {                                                                                              \
        OF(acl, name_, -2, ADMIN | RESP_REFUSED, serve_refused, "6.0.0"),                          \
            .refusal = "'acl|" name_ "' is not supported: users are in the configuration file"     \
    }

static const struct resp_command of_acl[] = {
    ACL_REFUSED("cat"),
    ACL_REFUSED("deluser"),
    ACL_REFUSED("dryrun"),
    ACL_REFUSED("genpass"),
    ACL_REFUSED("getuser"),
    RESP_HELP_ROW(resp_command_acl, serve_acl_help, "server", "6.0.0"),
    ACL_REFUSED("list"),
    ACL_REFUSED("load"),
    ACL_REFUSED("log"),
    ACL_REFUSED("save"),
    ACL_REFUSED("setuser"),
    ACL_REFUSED("users"),
    {OF(acl, "whoami", 2, ALWAYS, serve_acl_whoami, "6.0.0"),
     .summary = "Answers the name of the connection's user."},
};
const struct resp_command resp_command_acl = {
    CONTAINER("acl", of_acl, "6.0.0"),
    .summary = "Tells who the connection's user is.",
};

static const struct resp_command of_command[] = {
    {OF(command, "count", 2, ALWAYS, serve_command_count, "2.8.13"),
     .summary = "Answers how many commands there are."},
    {OF(command, "docs", -2, ALWAYS, serve_command_docs, "7.0.0"),
     .summary = "Answers summary, group and syntax of commands.", .arguments = "[command-name...]"},
    {OF(command, "getkeys", -3, ALWAYS, serve_command_getkeys, "2.8.13"),
     .summary = "Answers which arguments of a whole command are keys.",
     .arguments = "command [arg...]"},
    {OF(command, "getkeysandflags", -3, ALWAYS, serve_command_getkeysandflags, "7.0.0"),
     .summary = "Answers the keys of a whole command and what it does to each.",
     .arguments = "command [arg...]"},
    RESP_HELP_ROW(resp_command_command, serve_command_help, "server", "5.0.0"),
    {OF(command, "info", -2, ALWAYS, serve_command_info, "2.8.13"),
     .summary = "Answers arity, flags and key positions of commands.",
     .arguments = "[command-name...]"},
    {OF(command, "list", -2, ALWAYS, serve_command_list, "7.0.0"),
     .summary = "Answers the names of commands, of all or of those that match.",
     .arguments = "[FILTERBY (MODULE module-name | ACLCAT category | PATTERN pattern)]"},
};
const struct resp_command resp_command_command = {
    .name = "command",
    .arity = -1,
    .flags = ALWAYS,
    .serve = serve_command,
    RESP_SUBCOMMANDS(of_command),
    .group = "server",
    .since = "2.8.13",
    .complexity = "O(N), N the number of commands",
    .summary = "Answers arity, flags and key positions of all commands.",
};

static const struct resp_command of_config[] = {
    {OF(config, "get", -3, ADMIN, serve_config_get, "2.0.0"),
     .summary = "Answers the options whose names match.", .arguments = "parameter..."},
    RESP_HELP_ROW(resp_command_config, serve_config_help, "server", "5.0.0"),
    {OF(config, "resetstat", 2, ADMIN, serve_config_resetstat, "2.0.0"),
     .summary = "Sets the counters of INFO to 0."},
    {OF(config, "rewrite", 2, ADMIN, serve_config_rewrite, "2.8.0"),
     .summary = "Writes the options in force to the configuration file."},
    {OF(config, "set", -4, ADMIN, serve_config_set, "2.0.0"),
     .summary = "Changes options while the node runs: all that are given, or none.",
     .arguments = "(parameter value)..."},
};
const struct resp_command resp_command_config = {
    CONTAINER("config", of_config, "2.0.0"),
    .summary = "Reads and changes the configuration.",
};

static const struct resp_command of_debug[] = {
    RESP_HELP_ROW(resp_command_debug, serve_debug_help, "server", "1.0.0"),
    {OF(debug, "sleep", 3, ADMIN, serve_debug_sleep, "1.0.0"),
     .summary = "Answers after some seconds; only this connection waits.", .arguments = "seconds"},
};
const struct resp_command resp_command_debug = {
    CONTAINER("debug", of_debug, "1.0.0"),
    .summary = "Helps to test clients.",
};

const struct resp_command resp_command_horkos = {
    .name = "horkos",
    .arity = -2,
    .flags = ADMIN,
    .serve = serve_horkos,
    .group = "server",
    .since = "0.1.0",
    .complexity = "Depends on the subcommand",
    .summary = "Tells about the cluster: see docs/SERVER.md.",
    .arguments = "subcommand [arg...]",
};

const struct resp_command resp_command_hotkeys = {
    .name = "hotkeys",
    .arity = -1,
    .flags = ALWAYS | RESP_DANGEROUS,
    .serve = serve_hotkeys,
    .group = "server",
    .since = "0.1.0",
    .complexity = "O(N log N), N the keys that this node's threads count: a few thousand",
    .summary =
        "Answers the keys that this node's clients ask for the most, and how often a second.",
    .arguments = "[count]",
};

const struct resp_command resp_command_info = {
    .name = "info",
    .arity = -1,
    .flags = ALWAYS | RESP_DANGEROUS,
    .serve = serve_info,
    .group = "server",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Answers figures of this node, by sections.",
    .arguments = "[section...]",
};

static const struct resp_command of_latency[] = {
    {OF(latency, "doctor", 2, ADMIN, serve_latency_doctor, "2.8.13"),
     .summary = "Says where to look for slow commands."},
    {OF(latency, "graph", 3, ADMIN, serve_latency_graph, "2.8.13"),
     .summary = "Answers that there are no samples of the event.", .arguments = "event"},
    RESP_HELP_ROW(resp_command_latency, serve_latency_help, "server", "2.8.13"),
    {OF(latency, "histogram", -2, ADMIN, serve_latency_histogram, "7.0.0"),
     .summary = "Answers an empty map: latency is not kept for each command.",
     .arguments = "[command...]"},
    {OF(latency, "history", 3, ADMIN, serve_latency_history, "2.8.13"),
     .summary = "Answers an empty list: there are no samples.", .arguments = "event"},
    {OF(latency, "latest", 2, ADMIN, serve_latency_latest, "2.8.13"),
     .summary = "Answers an empty list: there are no samples."},
    {OF(latency, "reset", -2, ADMIN, serve_latency_reset, "2.8.13"),
     .summary = "Answers 0: there are no samples to drop.", .arguments = "[event...]"},
};
const struct resp_command resp_command_latency = {
    CONTAINER("latency", of_latency, "2.8.13"),
    .summary = "Answers what Redis's latency monitor answers when it is off.",
};

static const struct resp_command of_memory[] = {
    {OF(memory, "doctor", 2, ALWAYS, serve_memory_doctor, "4.0.0"),
     .summary = "Says where the figures of memory are."},
    RESP_HELP_ROW(resp_command_memory, serve_memory_help, "server", "4.0.0"),
    {OF(memory, "malloc-stats", 2, ALWAYS, serve_memory_malloc_stats, "4.0.0"),
     .summary = "Answers that the allocator keeps no statistics."},
    {OF(memory, "purge", 2, ALWAYS, serve_memory_purge, "4.0.0"),
     .summary = "Changes nothing: the store gives memory back by itself."},
    {OF(memory, "stats", 2, ALWAYS, serve_memory_stats, "4.0.0"),
     .summary = "Answers INFO's figures of memory as a map."},
    {.name = "usage",
     .parent = &resp_command_memory,
     .arity = -3,
     .flags = RESP_READONLY | RESP_DATA,
     .serve = serve_memory_usage,
     RESP_KEY_SUB(RESP_KEY_RO),
     .group = "server",
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "Answers about how many bytes a key and its value take.",
     .arguments = "key [SAMPLES count]"},
};
const struct resp_command resp_command_memory = {
    CONTAINER("memory", of_memory, "4.0.0"),
    .summary = "Tells about memory.",
};

const struct resp_command resp_command_role = {
    .name = "role",
    .arity = 1,
    .flags = ALWAYS_FAST | RESP_DANGEROUS,
    .serve = serve_role,
    .group = "server",
    .since = "2.8.12",
    .complexity = "O(1)",
    .summary = "Answers master: every node takes reads and writes.",
};

const struct resp_command resp_command_shutdown = {
    .name = "shutdown",
    .arity = -1,
    .flags = ADMIN,
    .serve = serve_shutdown,
    .group = "server",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Ends the node: it leaves the cluster first, or goes at once with NOW.",
    .arguments = "[NOSAVE | SAVE] [NOW] [FORCE] [ABORT]",
};

static const struct resp_command of_slowlog[] = {
    {OF(slowlog, "get", -2, ADMIN, serve_slowlog_get, "2.2.12"),
     .summary = "Answers the newest slow commands: 10, or so many.", .arguments = "[count]"},
    RESP_HELP_ROW(resp_command_slowlog, serve_slowlog_help, "server", "6.2.0"),
    {OF(slowlog, "len", 2, ADMIN, serve_slowlog_len, "2.2.12"),
     .summary = "Answers how many slow commands are kept."},
    {OF(slowlog, "reset", 2, ADMIN, serve_slowlog_reset, "2.2.12"),
     .summary = "Forgets the slow commands."},
};
const struct resp_command resp_command_slowlog = {
    CONTAINER("slowlog", of_slowlog, "2.2.12"),
    .summary = "Tells which commands were slow.",
};

const struct resp_command resp_command_time = {
    .name = "time",
    .arity = 1,
    .flags = ALWAYS_FAST,
    .serve = serve_time,
    .group = "server",
    .since = "2.6.0",
    .complexity = "O(1)",
    .summary = "Answers this node's clock: seconds since 1970, and microseconds.",
};
