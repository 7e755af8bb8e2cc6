#include "tools/commands.h"

#include <stdio.h>
#include <string.h>

#include "server/server.h"

const struct command commands[] = {
    {"server", "one node, from a configuration file", server_command},
    {"dev", "a whole cluster on this machine, for trying and developing", dev_command},
    {"status", "what a node says about itself and its cluster", status_command},
    {"recover", "lets the survivors go on after a majority was lost for good", recover_command},
    {"slots", "which node is the home of which keys, and giving up lost ones (galene)",
     slots_command},
    {"balance",
     "a proxy for Redis clients that sends commands to the node which works on their keys",
     balance_command},
    {"sim", "the deterministic simulator: seeds, faults, checkers", sim_command},
    {"explore", "every state of small models of the protocols, the shortest violation",
     explore_command},
    {"torture", "a real cluster under kill, pause and partition, its history judged",
     torture_command},
    {"bench", "engines in this process under load: throughput, CPU time, messages, latency",
     bench_command},
    {"hotset", "how good a hot set a sketch finds in a stream of Zipf's law", hotset_command},
    {"figures", "the papers' figures again, by a model of their clusters", figures_command},
    {NULL, NULL, NULL},
};

static void print_help(FILE *to)
{
    fprintf(to, "usage: horkos COMMAND [OPTION...]\n\ncommands:\n");
    for (const struct command *c = commands; c->name != NULL; c++) {
        fprintf(to, "  %-10s %s\n", c->name, c->summary);
    }
    fprintf(to, "\n`horkos COMMAND --help` tells more. `horkos --version` prints the version.\n");
}

int commands_main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return STATUS_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_help(stdout);
        return STATUS_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("horkos %s\n", HORKOS_VERSION);
        return STATUS_OK;
    }
    for (const struct command *c = commands; c->name != NULL; c++) {
        if (strcmp(argv[1], c->name) == 0) {
            return c->run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "horkos: there is no command \"%s\"; see horkos --help\n", argv[1]);
    return STATUS_USAGE;
}
