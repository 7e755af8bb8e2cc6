/* The table of commands: what COMMAND tells, how many arguments each takes, where its keys are, and
 * which function serves it. One row a command or subcommand. Names of Redis that horkos does not
 * serve are in a second table, each with the reason; COMMAND does not list them. */
#ifndef HORKOS_RESP_COMMAND_H
#define HORKOS_RESP_COMMAND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "resp/out.h"

struct resp_conn;

enum resp_command_flag {
    RESP_WRITE = 1 << 0,
    RESP_READONLY = 1 << 1,
    RESP_DENYOOM = 1 << 2,
    RESP_ADMIN = 1 << 3,
    RESP_FAST = 1 << 4,
    RESP_NOAUTH = 1 << 5,    /* allowed before AUTH */
    RESP_LOADING = 1 << 6,   /* answered while the node serves no data */
    RESP_DATA = 1 << 7,      /* made of operations on keys: may be in flight with others */
    RESP_REFUSED = 1 << 8,   /* known to Redis, not horkos's job: its refusal says why */
    RESP_DANGEROUS = 1 << 9, /* reaches beyond one client's keys; RESP_ADMIN implies it */
    RESP_MULTI = 1 << 10,    /* may stand between MULTI and EXEC although it is not RESP_DATA */
};

/* What a command does to a key, in Redis's words for key specifications. */
enum resp_key_flag {
    RESP_KEY_RO = 1 << 0,
    RESP_KEY_RW = 1 << 1,
    RESP_KEY_OW = 1 << 2,
    RESP_KEY_RM = 1 << 3,
    RESP_KEY_ACCESS = 1 << 4,
    RESP_KEY_UPDATE = 1 << 5,
    RESP_KEY_INSERT = 1 << 6,
    RESP_KEY_DELETE = 1 << 7,
    RESP_KEY_VARIABLE = 1 << 8, /* the exact flags depend on the arguments */
};

/* Serves one command whose arguments have the right number. */
typedef void resp_command_fn(struct resp_conn *conn);

struct resp_command {
    const char *name;                       /* lower case */
    const struct resp_command *parent;      /* of a subcommand */
    const struct resp_command *subcommands; /* NULL; else subcommands_n of them */
    uint32_t subcommands_n;
    int arity; /* as Redis counts: with the name; negative: at least */
    uint32_t flags;
    /* Positions in the command; first_key 0: no keys; last_key -1: to the end. */
    int first_key, last_key, key_step;
    /* Of each key; [1] is not 0 only if the second key is used in another way than the first. */
    uint16_t key_flags[2];
    resp_command_fn *serve; /* NULL only of containers, which have subcommands */
    const char *summary, *since, *group, *complexity;
    /* Syntax, as "key value [NX | XX]", in the language of command_arguments.c; NULL: none. */
    const char *arguments;
    const char *refusal; /* of RESP_REFUSED: the error's text behind "ERR " */
};

/* The command of this name (any case), or NULL. Refused ones are found too. */
const struct resp_command *resp_command_find(struct bytes name);
/* NULL also if the command has no subcommands. */
const struct resp_command *resp_subcommand_find(const struct resp_command *parent,
                                                struct bytes name);
/* The command whose name is written as in COMMAND LIST: "get", "client|list" (any case), or NULL.
 * Refused ones are not found. */
const struct resp_command *resp_command_find_full(struct bytes name);
/* All that are served, in the order of their names; NULL past the end. */
const struct resp_command *resp_command_at(uint32_t index);
uint32_t resp_command_count(void);
/* All that are refused, likewise: those with RESP_REFUSED have the reason in their row, the others
 * a function that finds it. */
const struct resp_command *resp_refused_at(uint32_t index);

/* Whether a command of n words, its name counted, fits the arity. */
bool resp_command_arity_fits(const struct resp_command *command, uint32_t n);

/* The names of a command's flags and access categories, as COMMAND INFO gives them. Writes up to
 * RESP_WORDS_MAX pointers and returns how many. */
#define RESP_WORDS_MAX 12u
uint32_t resp_command_flag_words(const struct resp_command *command,
                                 const char *words_out[RESP_WORDS_MAX]);
uint32_t resp_command_category_words(const struct resp_command *command,
                                     const char *words_out[RESP_WORDS_MAX]);
uint32_t resp_key_flag_words(uint16_t key_flags, const char *words_out[RESP_WORDS_MAX]);

/* Writes the "arguments" of COMMAND DOCS, an array of maps, from a syntax text. Returns how many
 * arguments the outermost array has; writes nothing and returns 0 if the text is not in the
 * language. */
uint32_t resp_arguments_write(const char *syntax, struct resp_out *out);

#endif
