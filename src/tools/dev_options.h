/* The command line of `horkos dev`. */
#ifndef HORKOS_TOOLS_DEV_OPTIONS_H
#define HORKOS_TOOLS_DEV_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/dev_folder.h"

#define DEV_SETS_MAX 64u
#define DEV_PEER_PORTS_ABOVE 10000u /* peer ports lie so far above the client ports */

enum dev_action {
    DEV_RUN,   /* a new cluster, in the foreground or detached */
    DEV_STOP,  /* all nodes of the folder */
    DEV_START, /* one node that is dead */
    DEV_KILL,  /* one node, as a crash would */
};

/* One --set section.option=value. The parts lie in the command line. */
struct dev_set {
    const char *section;
    uint32_t section_n;
    const char *option;
    uint32_t option_n;
    const char *value;
};

struct dev_options {
    enum dev_action action;
    uint32_t nodes;
    uint32_t node;      /* of --start and --kill */
    uint16_t base_port; /* 0: free ports are looked for */
    char dir[DEV_DIR_MAX];
    bool detach;
    uint32_t lease_ms; /* 0: the server's default */
    uint32_t wait_s;   /* how long nodes may take until they serve */
    struct dev_set sets[DEV_SETS_MAX];
    uint32_t sets_n;
};

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. */
int dev_options_parse(int argc, char **argv, struct dev_options *options_out, bool *help_out);

/* Reads "section.option=value"; NULL, or what is wrong with it. The section is what stands before
 * the last full stop of the name: "user app.password=x". */
const char *dev_set_parse(const char *text, struct dev_set *set_out);

#endif
