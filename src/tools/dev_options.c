#include "tools/dev_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/commands.h"
#include "tools/options.h"

#define WAIT_CLUSTER_S 15u
#define WAIT_START_S 120u /* a node that starts again copies everything */

static const char help[] =
    "usage: horkos dev [OPTION...]\n"
    "\n"
    "Runs a whole cluster on this machine, one process a node, for trying and developing. What\n"
    "the nodes need is made in a folder: configuration, key, logs, process ids. Nothing of the\n"
    "data is on disk: when all nodes have stopped, it is gone.\n"
    "Exit status: 0 done, 1 it failed, 2 a wrong option.\n"
    "\n"
    "  --nodes N         nodes of the cluster, 1 to 16 (3); their ids are 1 to N\n"
    "  --base-port P     clients of node n connect to port P+n-1 of 127.0.0.1 (7001), its peers\n"
    "                    to a port 10000 above; 0 looks for free ports and prints them\n"
    "  --dir D           the folder ($XDG_STATE_HOME/horkos-dev, else\n"
    "                    ~/.local/state/horkos-dev, else ./horkos-dev)\n"
    "  --lease MS        length of leases: after a crash the others go on that much later\n"
    "  --set S.O=VALUE   option O of section S for all nodes, as space 0.memory_max=1gb;\n"
    "                    `horkos server --options` lists them; may be given often\n"
    "  --detach          returns when all nodes serve and leaves them running; otherwise they\n"
    "                    run until Ctrl-C\n"
    "  --stop            stops all nodes of the folder\n"
    "  --start N         starts node N of the folder again, which crashed or was stopped, and\n"
    "                    waits until it has copied everything and serves\n"
    "  --kill N          kills node N of the folder, to see what a crash does\n"
    "  --wait SECONDS    how long the nodes may take until they serve (15; --start: 120)\n"
    "  --help            this text\n"
    "\n"
    "The folder holds, for each node: node-N.conf, node-N.log, node-N.state, and node-N.pid, "
    "whose\n"
    "first line is the process id. Its file `ports` has a line \"node client-port peer-port\" for\n"
    "each node.\n"
    "\n"
    "examples:\n"
    "  horkos dev                              three nodes on ports 7001 to 7003, until Ctrl-C\n"
    "  horkos dev --detach --base-port 0 --dir /tmp/try\n"
    "  horkos dev --kill 2 --dir /tmp/try      a crash; the others go on\n"
    "  horkos dev --start 2 --dir /tmp/try     and back again\n"
    "  horkos dev --stop --dir /tmp/try\n";

enum option_id {
    OPTION_NODES = 256,
    OPTION_BASE_PORT,
    OPTION_DIR,
    OPTION_LEASE,
    OPTION_SET,
    OPTION_DETACH,
    OPTION_STOP,
    OPTION_START,
    OPTION_KILL,
    OPTION_WAIT,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"base-port", required_argument, NULL, OPTION_BASE_PORT},
    {"dir", required_argument, NULL, OPTION_DIR},
    {"lease", required_argument, NULL, OPTION_LEASE},
    {"set", required_argument, NULL, OPTION_SET},
    {"detach", no_argument, NULL, OPTION_DETACH},
    {"stop", no_argument, NULL, OPTION_STOP},
    {"start", required_argument, NULL, OPTION_START},
    {"kill", required_argument, NULL, OPTION_KILL},
    {"wait", required_argument, NULL, OPTION_WAIT},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool span_is(const char *at, uint32_t n, const char *word)
{
    return strlen(word) == n && memcmp(at, word, n) == 0;
}

/* Options that would no longer fit what dev itself writes and relies on. */
static bool is_ours(const struct dev_set *set)
{
    static const char *const ours[][2] = {
        {"node", "id"},          {"node", "state_file"},  {"node", "log_file"},
        {"node", "peer_listen"}, {"cluster", "key_file"}, {"clients", "listen"},
    };
    if (span_is(set->section, set->section_n, "peers")) {
        return true;
    }
    for (uint32_t i = 0; i < sizeof ours / sizeof ours[0]; i++) {
        if (span_is(set->section, set->section_n, ours[i][0]) &&
            span_is(set->option, set->option_n, ours[i][1])) {
            return true;
        }
    }
    return false;
}

const char *dev_set_parse(const char *text, struct dev_set *set_out)
{
    const char *equals = strchr(text, '=');
    const char *stop = equals == NULL ? NULL : memrchr(text, '.', (size_t)(equals - text));
    if (stop == NULL || stop == text || stop + 1 == equals) {
        return "it has the form section.option=value";
    }
    for (const char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < ' ') {
            return "it holds a line break or another control character";
        }
        if (c < equals && (*c == '[' || *c == ']' || *c == '#' || *c == ';')) {
            return "no section or option has such a name";
        }
    }
    *set_out = (struct dev_set){
        .section = text,
        .section_n = (uint32_t)(stop - text),
        .option = stop + 1,
        .option_n = (uint32_t)(equals - stop - 1),
        .value = equals + 1,
    };
    return is_ours(set_out) ? "horkos dev sets it itself" : NULL;
}

static bool parse_set(const char *text, struct dev_options *o)
{
    if (o->sets_n == DEV_SETS_MAX) {
        fprintf(stderr, "horkos dev: at most %u --set\n", DEV_SETS_MAX);
        return false;
    }
    const char *wrong = dev_set_parse(text, &o->sets[o->sets_n]);
    if (wrong != NULL) {
        fprintf(stderr, "horkos dev: --set %s: %s\n", text, wrong);
        return false;
    }
    o->sets_n++;
    return true;
}

static bool parse_dir(const char *text, struct dev_options *o)
{
    if (text[0] == '\0' || strlen(text) >= sizeof o->dir) {
        fprintf(stderr, "horkos dev: --dir needs a path of at most %zu bytes\n", sizeof o->dir - 1);
        return false;
    }
    memcpy(o->dir, text, strlen(text) + 1);
    return true;
}

static bool parse_number(const char *option, const char *text, uint32_t low, uint32_t high,
                         uint32_t *number_out)
{
    uint64_t number = 0;
    if (!options_number("dev", option, text, low, high, &number)) {
        return false;
    }
    *number_out = (uint32_t)number;
    return true;
}

static bool parse_action(enum dev_action action, struct dev_options *o)
{
    if (o->action != DEV_RUN) {
        fprintf(stderr, "horkos dev: only one of --stop, --start and --kill at a time\n");
        return false;
    }
    o->action = action;
    return true;
}

static bool parse_one(int id, const char *text, struct dev_options *o)
{
    uint32_t port = 0;
    switch (id) {
    case OPTION_NODES:
        return parse_number("--nodes", text, 1, DEV_NODES_MAX, &o->nodes);
    case OPTION_BASE_PORT:
        if (!parse_number("--base-port", text, 0, 65535 - DEV_PEER_PORTS_ABOVE, &port)) {
            return false;
        }
        o->base_port = (uint16_t)port;
        return true;
    case OPTION_DIR:
        return parse_dir(text, o);
    case OPTION_LEASE:
        return parse_number("--lease", text, 50, 60000, &o->lease_ms);
    case OPTION_SET:
        return parse_set(text, o);
    case OPTION_DETACH:
        o->detach = true;
        return true;
    case OPTION_STOP:
        return parse_action(DEV_STOP, o);
    case OPTION_START:
        return parse_action(DEV_START, o) &&
               parse_number("--start", text, 1, DEV_NODES_MAX, &o->node);
    case OPTION_KILL:
        return parse_action(DEV_KILL, o) &&
               parse_number("--kill", text, 1, DEV_NODES_MAX, &o->node);
    case OPTION_WAIT:
        return parse_number("--wait", text, 1, 86400, &o->wait_s);
    default:
        return false;
    }
}

/* What only a new cluster can be told. */
static bool is_for_run(int id)
{
    return id == OPTION_NODES || id == OPTION_BASE_PORT || id == OPTION_LEASE || id == OPTION_SET ||
           id == OPTION_DETACH;
}

static bool complete(struct dev_options *o, const char *for_run)
{
    if (o->action != DEV_RUN && for_run != NULL) {
        fprintf(stderr,
                "horkos dev: %s is for a new cluster, not for one that is there: edit its "
                "node-N.conf\n",
                for_run);
        return false;
    }
    if (o->base_port != 0 && o->base_port + o->nodes - 1 + DEV_PEER_PORTS_ABOVE > 65535) {
        fprintf(stderr, "horkos dev: --base-port: %u nodes need a port of at most %u\n", o->nodes,
                65535 - DEV_PEER_PORTS_ABOVE - o->nodes + 1);
        return false;
    }
    if (o->dir[0] == '\0' && !dev_default_dir(getenv("XDG_STATE_HOME"), getenv("HOME"), o->dir)) {
        fprintf(stderr, "horkos dev: the path of the default folder is too long; give --dir\n");
        return false;
    }
    if (o->wait_s == 0) {
        o->wait_s = o->action == DEV_START ? WAIT_START_S : WAIT_CLUSTER_S;
    }
    return true;
}

int dev_options_parse(int argc, char **argv, struct dev_options *options_out, bool *help_out)
{
    struct dev_options *o = options_out;
    const char *for_run = NULL;
    *o = (struct dev_options){.nodes = 3, .base_port = 7001};
    *help_out = false;
    optind = 0;
    for (int id; (id = options_next(argc, argv, ":h", long_options)) != -1;) {
        if (id == OPTION_HELP || id == 'h') {
            fputs(help, stdout);
            *help_out = true;
            return STATUS_OK;
        }
        if (id == '?' || id == ':') {
            options_complain("dev", id, argv, long_options);
            return STATUS_USAGE;
        }
        if (!parse_one(id, optarg, o)) {
            return STATUS_USAGE;
        }
        for (uint32_t i = 0; is_for_run(id) && long_options[i].name != NULL; i++) {
            for_run = long_options[i].val == id ? long_options[i].name : for_run;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "horkos dev: what does \"%s\" mean? See horkos dev --help\n", argv[optind]);
        return STATUS_USAGE;
    }
    return complete(o, for_run) ? STATUS_OK : STATUS_USAGE;
}
