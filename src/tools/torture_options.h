/* The command line of `horkos torture`. */
#ifndef HORKOS_TOOLS_TORTURE_OPTIONS_H
#define HORKOS_TOOLS_TORTURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "tools/dev_folder.h"

#define TORTURE_NODES_MAX 9u
#define TORTURE_CLIENTS_MAX 256u
#define TORTURE_KEYS_MAX 256u

/* For tests: a lie that the checkers must find. */
enum torture_tamper {
    TORTURE_TAMPER_NONE,
    TORTURE_TAMPER_READ,     /* a read of one key is recorded as one of an older value */
    TORTURE_TAMPER_REPLICA,  /* one node is taken to hold another value of a key at the end */
    TORTURE_TAMPER_TRANSFER, /* a transfer that nobody made is recorded as acknowledged */
    TORTURE_TAMPER_ORDER,    /* nobody hears that lost slots were given up: a silent loss */
};

enum torture_engine {
    TORTURE_HERMES,
    TORTURE_GALENE,
    TORTURE_ZEUS,
    TORTURE_LOTUS,
    TORTURE_ENGINES
};
extern const char *const torture_engine_names[TORTURE_ENGINES];

struct torture_options {
    uint64_t seed;
    uint32_t seconds; /* how long faults befall the nodes */
    uint32_t nodes;
    uint32_t clients;
    uint32_t keys; /* in use at the same time */
    uint32_t lease_ms;
    enum torture_engine engine; /* of the space */
    uint32_t heal_s;       /* how long the cluster may take, after the faults, until all is well */
    uint32_t faults;       /* bits by enum torture_kind */
    char dir[DEV_DIR_MAX]; /* "": a new folder for temporary files */
    char program[DEV_DIR_MAX]; /* that the nodes run */
    bool json;
    bool keep;     /* the folder stays in any case */
    bool plan;     /* prints the plan and does nothing else */
    bool loopback; /* no namespaces, even where they are possible */
    enum torture_tamper tamper;
};

/* Whether slots of the space have homes, and are lost with them. */
bool torture_homed(const struct torture_options *options);
/* Whether it has transactions over any keys. */
bool torture_transacts(const struct torture_options *options);

/* STATUS_OK; STATUS_USAGE after an error, which was printed. help_out: --help was asked for, and
 * printed. */
int torture_options_parse(int argc, char **argv, struct torture_options *options_out,
                          bool *help_out);

#endif
