#include "tools/server_options.h"

#include <stdint.h>
#include <stdio.h>

#include "tools/commands.h"
#include "tools/options.h"

static const char help[] =
    "usage: horkos server --config FILE [OPTION...]\n"
    "\n"
    "Runs one node until SIGTERM or SIGINT: it then leaves the cluster gracefully and ends; a\n"
    "second signal ends it at once. SIGHUP opens the log anew.\n"
    "Exit status: 0 it left, or the file is good; 1 it could not start, or the file is not good;\n"
    "2 a wrong option, or a second signal ended it.\n"
    "\n"
    "  --config FILE     the node's configuration\n"
    "  --check           only reads and checks the configuration\n"
    "  --bootstrap       forms a new, empty cluster although the nodes were members of an earlier\n"
    "                    one, all of which was lost; only then, and on one node\n"
    "  --options         prints what a configuration file may hold\n"
    "  --help            this text\n"
    "\n"
    "examples:\n"
    "  horkos server --config /etc/horkos/node-1.conf\n"
    "  horkos server --config node-1.conf --check\n";

enum option_id {
    OPTION_CONFIG = 256,
    OPTION_CHECK,
    OPTION_BOOTSTRAP,
    OPTION_OPTIONS,
    OPTION_HELP,
};

static const struct option long_options[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"bootstrap", no_argument, NULL, OPTION_BOOTSTRAP},
    {"options", no_argument, NULL, OPTION_OPTIONS},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool is_complete(const struct server_command_options *o)
{
    if (o->document) {
        return true;
    }
    if (o->config == NULL) {
        fprintf(stderr, "horkos server: --config FILE is missing; `horkos dev` needs none\n");
        return false;
    }
    if (o->check && o->bootstrap) {
        fprintf(stderr, "horkos server: --check starts nothing that --bootstrap could be for\n");
        return false;
    }
    return true;
}

int server_options_parse(int argc, char **argv, struct server_command_options *options_out,
                         bool *help_out)
{
    struct server_command_options *o = options_out;
    *o = (struct server_command_options){.config = NULL};
    *help_out = false;
    optind = 0;
    for (int id; (id = options_next(argc, argv, ":h", long_options)) != -1;) {
        switch (id) {
        case OPTION_CONFIG:
            o->config = optarg;
            break;
        case OPTION_CHECK:
            o->check = true;
            break;
        case OPTION_BOOTSTRAP:
            o->bootstrap = true;
            break;
        case OPTION_OPTIONS:
            o->document = true;
            break;
        case OPTION_HELP:
        case 'h':
            fputs(help, stdout);
            *help_out = true;
            return STATUS_OK;
        default:
            options_complain("server", id, argv, long_options);
            return STATUS_USAGE;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "horkos server: what does \"%s\" mean? See horkos server --help\n",
                argv[optind]);
        return STATUS_USAGE;
    }
    return is_complete(o) ? STATUS_OK : STATUS_USAGE;
}
