/* The command lines of the commands that ask a node: `horkos status`, `horkos recover` and
 * `horkos slots`. */
#ifndef HORKOS_TOOLS_ASK_OPTIONS_H
#define HORKOS_TOOLS_ASK_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/nodeset.h"
#include "tools/node_report.h"
#include "tools/options.h"

enum ask_command { ASK_STATUS, ASK_RECOVER, ASK_SLOTS };

struct ask_options {
    struct node_address address; /* lies in the command line and in `password` */
    char password[PASSWORD_MAX];
    bool json;         /* status, slots */
    bool yes;          /* recover, slots */
    uint32_t wait_s;   /* recover, slots: how long until it is done */
    uint32_t space;    /* slots; SPACES_MAX: all */
    bool empty_lost;   /* slots */
    nodeset survivors; /* recover; 0: the node itself */
};

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. A password file is read. */
int ask_options_parse(enum ask_command command, int argc, char **argv,
                      struct ask_options *options_out, bool *help_out);

#endif
