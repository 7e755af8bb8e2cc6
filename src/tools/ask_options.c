#include "tools/ask_options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "node/node.h"
#include "tools/commands.h"
#include "tools/options.h"

#define PORT_DEFAULT 6379u
#define WAIT_S 60u

static const char status_help[] =
    "usage: horkos status [OPTION...]\n"
    "\n"
    "What a node says of itself: its role, the epoch of its view, what is left of its lease, the\n"
    "members of the cluster, and what its spaces hold.\n"
    "Exit status: 0 the node can serve, 1 it answers and cannot serve, 2 nobody answers, it wants\n"
    "a password, or a wrong option.\n"
    "\n";

static const char recover_help[] =
    "usage: horkos recover [OPTION...] [ID...]\n"
    "\n"
    "After a majority of the nodes was lost for good: lets those that are left (their IDs; "
    "without\n"
    "any, only the node that is asked) form a new cluster from what they hold, and serve again.\n"
    "This can lose writes that were acknowledged, and must not be done while the others live; it\n"
    "says so, and asks.\n"
    "Exit status: 0 the node serves again, 1 it does not, or the answer was no, 2 nobody answers,\n"
    "it wants a password, or a wrong option.\n"
    "\n";

static const char slots_help[] =
    "usage: horkos slots [OPTION...]\n"
    "\n"
    "Which node is the home of which hash slots, in spaces of engines galene and lotus: how many\n"
    "each node has, which are moving, and which are lost because their home died. With\n"
    "--empty-lost: gives up what lost slots held, so that their keys can be written again. It\n"
    "says so, and asks.\n"
    "Exit status: 0 all slots have a home, 1 some have none, or the answer was no, 2 nobody\n"
    "answers, it wants a password, or a wrong option.\n"
    "\n";

static const char common_help[] =
    "  -p, --port P      the node's port for clients (6379)\n"
    "  --host H          its host (127.0.0.1)\n"
    "  --socket PATH     its unix socket, instead of host and port\n"
    "  --user U          authenticates as this user (default)\n"
    "  --password-file F with the password that is this file's first line\n";

static const char status_more[] = "  --json            prints all of it as JSON\n"
                                  "  --help            this text\n"
                                  "\n"
                                  "examples:\n"
                                  "  horkos status -p 7001\n"
                                  "  until horkos status -p 7001 >/dev/null; do sleep 1; done\n"
                                  "  horkos status -p 7001 --json | jq .epoch\n";

static const char recover_more[] =
    "  --yes             does not ask\n"
    "  --wait SECONDS    how long to wait until the node serves (60)\n"
    "  --help            this text\n"
    "\n"
    "examples:\n"
    "  horkos recover -p 7001          node 1 is all that is left of three\n"
    "  horkos recover -p 7001 1 4      nodes 1 and 4 are what is left of five\n";

static const char slots_more[] =
    "  --space N         only this space\n"
    "  --empty-lost      empties the lost slots and gives each a home again\n"
    "  --yes             with --empty-lost: does not ask\n"
    "  --wait SECONDS    with --empty-lost: how long to wait until it is done (60)\n"
    "  --json            prints all of it as JSON\n"
    "  --help            this text\n"
    "\n"
    "examples:\n"
    "  horkos slots -p 7001\n"
    "  horkos slots -p 7001 --json | jq '.spaces[].runs[] | select(.state == \"lost\")'\n"
    "  horkos slots -p 7001 --empty-lost\n";

enum option_id {
    OPTION_HOST = 256,
    OPTION_SOCKET,
    OPTION_USER,
    OPTION_PASSWORD_FILE,
    OPTION_JSON,
    OPTION_YES,
    OPTION_WAIT,
    OPTION_SPACE,
    OPTION_EMPTY_LOST,
    OPTION_HELP,
};

static const struct option status_options[] = {
    {"port", required_argument, NULL, 'p'},
    {"host", required_argument, NULL, OPTION_HOST},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"user", required_argument, NULL, OPTION_USER},
    {"password-file", required_argument, NULL, OPTION_PASSWORD_FILE},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static const struct option recover_options[] = {
    {"port", required_argument, NULL, 'p'},
    {"host", required_argument, NULL, OPTION_HOST},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"user", required_argument, NULL, OPTION_USER},
    {"password-file", required_argument, NULL, OPTION_PASSWORD_FILE},
    {"yes", no_argument, NULL, OPTION_YES},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static const struct option slots_options[] = {
    {"port", required_argument, NULL, 'p'},
    {"host", required_argument, NULL, OPTION_HOST},
    {"socket", required_argument, NULL, OPTION_SOCKET},
    {"user", required_argument, NULL, OPTION_USER},
    {"password-file", required_argument, NULL, OPTION_PASSWORD_FILE},
    {"space", required_argument, NULL, OPTION_SPACE},
    {"empty-lost", no_argument, NULL, OPTION_EMPTY_LOST},
    {"yes", no_argument, NULL, OPTION_YES},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"json", no_argument, NULL, OPTION_JSON},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static const struct {
    const char *name;
    const char *help, *more; /* before and after what is common */
    const struct option *options;
} asks[] = {
    [ASK_STATUS] = {"status", status_help, status_more, status_options},
    [ASK_RECOVER] = {"recover", recover_help, recover_more, recover_options},
    [ASK_SLOTS] = {"slots", slots_help, slots_more, slots_options},
};

static void print_help(enum ask_command command)
{
    fputs(asks[command].help, stdout);
    fputs(common_help, stdout);
    fputs(asks[command].more, stdout);
}

static bool read_password(const char *name, const char *path, struct ask_options *o)
{
    o->address.password = o->password;
    return options_password(name, path, o->password);
}

static bool parse_one(const char *name, int id, const char *text, struct ask_options *o)
{
    uint64_t number = 0;
    switch (id) {
    case 'p':
        if (!options_number(name, "--port", text, 1, 65535, &number)) {
            return false;
        }
        o->address.target.port = (uint16_t)number;
        return true;
    case OPTION_HOST:
        o->address.target.host = text;
        return true;
    case OPTION_SOCKET:
        o->address.target.socket_path = text;
        return true;
    case OPTION_USER:
        o->address.user = text;
        return true;
    case OPTION_PASSWORD_FILE:
        return read_password(name, text, o);
    case OPTION_JSON:
        o->json = true;
        return true;
    case OPTION_YES:
        o->yes = true;
        return true;
    case OPTION_WAIT:
        if (!options_number(name, "--wait", text, 1, 86400, &number)) {
            return false;
        }
        o->wait_s = (uint32_t)number;
        return true;
    case OPTION_SPACE:
        if (!options_number(name, "--space", text, 0, SPACES_MAX - 1, &number)) {
            return false;
        }
        o->space = (uint32_t)number;
        return true;
    case OPTION_EMPTY_LOST:
        o->empty_lost = true;
        return true;
    default:
        return false;
    }
}

static bool parse_ids(const char *name, int n, char **ids, struct ask_options *o)
{
    for (int i = 0; i < n; i++) {
        uint64_t id = 0;
        if (!options_number(name, "ID", ids[i], 0, NODES_MAX - 1, &id)) {
            return false;
        }
        o->survivors |= nodeset_of((uint8_t)id);
    }
    return true;
}

static bool is_complete(const char *name, const struct ask_options *o, bool port_or_host)
{
    if (o->address.target.socket_path != NULL && port_or_host) {
        fprintf(stderr, "horkos %s: either --socket, or --host and --port\n", name);
        return false;
    }
    if (o->address.user != NULL && o->address.password == NULL) {
        fprintf(stderr, "horkos %s: --user needs --password-file\n", name);
        return false;
    }
    if (o->empty_lost && o->json) {
        fprintf(stderr, "horkos %s: either --empty-lost or --json\n", name);
        return false;
    }
    return true;
}

int ask_options_parse(enum ask_command command, int argc, char **argv,
                      struct ask_options *options_out, bool *help_out)
{
    struct ask_options *o = options_out;
    const char *name = asks[command].name;
    const struct option *options = asks[command].options;
    const char *for_order = NULL;
    bool port_or_host = false;
    *o = (struct ask_options){.wait_s = WAIT_S, .space = SPACES_MAX};
    o->address.target = (struct resp_client_target){.host = "127.0.0.1", .port = PORT_DEFAULT};
    *help_out = false;
    optind = 0;
    for (int id; (id = options_next(argc, argv, ":hp:", options)) != -1;) {
        if (id == OPTION_HELP || id == 'h') {
            print_help(command);
            *help_out = true;
            return STATUS_OK;
        }
        if (id == '?' || id == ':') {
            options_complain(name, id, argv, options);
            return STATUS_USAGE;
        }
        if (!parse_one(name, id, optarg, o)) {
            return STATUS_USAGE;
        }
        port_or_host = port_or_host || id == 'p' || id == OPTION_HOST;
        for_order = id == OPTION_YES ? "--yes" : id == OPTION_WAIT ? "--wait" : for_order;
    }
    if (command == ASK_SLOTS && for_order != NULL && !o->empty_lost) {
        fprintf(stderr, "horkos slots: %s is for --empty-lost\n", for_order);
        return STATUS_USAGE;
    }
    if (command != ASK_RECOVER && optind < argc) {
        fprintf(stderr, "horkos %s: what does \"%s\" mean? See horkos %s --help\n", name,
                argv[optind], name);
        return STATUS_USAGE;
    }
    if (!parse_ids(name, argc - optind, argv + optind, o)) {
        return STATUS_USAGE;
    }
    return is_complete(name, o, port_or_host) ? STATUS_OK : STATUS_USAGE;
}
