/* The table of commands: what COMMAND tells, how many arguments each takes, where its keys are, and
 * which function serves it. One row a command or subcommand; unknown ones get Redis's error. */
#ifndef HORKOS_RESP_COMMAND_H
#define HORKOS_RESP_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct resp_conn;

enum resp_command_flag {
    RESP_WRITE = 1 << 0,
    RESP_READONLY = 1 << 1,
    RESP_DENYOOM = 1 << 2,
    RESP_ADMIN = 1 << 3,
    RESP_FAST = 1 << 4,
    RESP_NOAUTH = 1 << 5,  /* allowed before AUTH */
    RESP_LOADING = 1 << 6, /* answered while the node serves no data */
    RESP_DATA = 1 << 7,    /* made of operations on keys: may be in flight with others */
    RESP_REFUSED = 1 << 8, /* known to Redis, not horkos's job: its refusal says why */
};

/* Serves one command whose arguments have the right number. Implemented in commands_*.c. */
typedef void resp_command_fn(struct resp_conn *conn);

struct resp_command {
    const char *name;                       /* lower case */
    const struct resp_command *parent;      /* of a subcommand */
    const struct resp_command *subcommands; /* NULL; else subcommands_n of them */
    uint32_t subcommands_n;
    int arity; /* as Redis counts: with the name; negative: at least */
    uint32_t flags;
    int first_key, last_key, key_step;
    resp_command_fn *serve;
    const char *summary, *since, *group, *complexity;
    const char *arguments; /* syntax, as in "key value [NX | XX]" */
    const char *refusal;   /* of RESP_REFUSED */
};

/* The command of this name (any case), or NULL. */
const struct resp_command *resp_command_find(struct bytes name);
const struct resp_command *resp_subcommand_find(const struct resp_command *parent,
                                                struct bytes name);
/* All of them, in the order of their names. */
const struct resp_command *resp_command_at(uint32_t index); /* NULL past the end */
uint32_t resp_command_count(void);

#endif
