/* The command line of `horkos server`. */
#ifndef HORKOS_TOOLS_SERVER_OPTIONS_H
#define HORKOS_TOOLS_SERVER_OPTIONS_H

#include <stdbool.h>

struct server_command_options {
    const char *config; /* lies in the command line; NULL with `document` only */
    bool bootstrap;
    bool check;
    bool document; /* --options */
};

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. */
int server_options_parse(int argc, char **argv, struct server_command_options *options_out,
                         bool *help_out);

#endif
