/* The configuration files of a cluster that `horkos dev` runs: making them, and reading from one
 * what dev needs to speak with its node. */
#ifndef HORKOS_TOOLS_DEV_CONFIG_H
#define HORKOS_TOOLS_DEV_CONFIG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "tools/dev_options.h"
#include "tools/dev_ports.h"

/* Writes node-N.conf as text. A --set replaces what dev would write itself; several --set of one
 * option stay several lines. Pure but for `to`. */
void dev_config_write(const struct dev_options *options, const struct dev_ports *ports,
                      uint32_t node, FILE *to);

struct dev_contact {
    char host[256];
    uint16_t port;
    char socket_path[128]; /* "": host and port */
    char password[256];    /* of user "default", in clear; "": none is known */
};

/* Where the clients of the node of this file connect. False, after an error that was printed, if
 * the file cannot be read or says nothing of it. */
bool dev_config_contact(const char *path, struct dev_contact *contact_out);

/* Reads "host:port", "[v6]:port" or "unix:/path"; false if it is none. */
bool dev_contact_parse(const char *text, struct dev_contact *contact_out);

#endif
