/* The rows of the commands on string values. */
#include "resp/command_rows.h"
#include "resp/serve_data.h"

/* Most commands of this file: one key, one operation. */
#define READS (RESP_READONLY | RESP_DATA)
#define READS_FAST (READS | RESP_FAST)
#define WRITES (RESP_WRITE | RESP_DATA)
#define GROWS (RESP_WRITE | RESP_DENYOOM | RESP_DATA)
#define GROWS_FAST (GROWS | RESP_FAST)

#define KEY_READ (RESP_KEY_RO | RESP_KEY_ACCESS)
#define KEY_CHANGE (RESP_KEY_RW | RESP_KEY_ACCESS | RESP_KEY_UPDATE)

#define DEADLINE                                                                                   \
    "EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds"

const struct resp_command resp_command_append = {
    .name = "append",
    .arity = 3,
    .flags = GROWS_FAST,
    .serve = serve_append,
    RESP_KEY_ONE(RESP_KEY_RW | RESP_KEY_INSERT),
    .group = "string",
    .since = "2.0.0",
    .complexity = "O(N), N the length of the new value",
    .summary = "Adds bytes to the end of a value; an absent key begins empty.",
    .arguments = "key value",
};

const struct resp_command resp_command_decr = {
    .name = "decr",
    .arity = 2,
    .flags = GROWS_FAST,
    .serve = serve_decr,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Takes one from an integer; an absent key counts as 0.",
    .arguments = "key",
};

const struct resp_command resp_command_decrby = {
    .name = "decrby",
    .arity = 3,
    .flags = GROWS_FAST,
    .serve = serve_decrby,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Subtracts from an integer; an absent key counts as 0.",
    .arguments = "key decrement",
};

const struct resp_command resp_command_delifeq = {
    .name = "delifeq",
    .arity = 3,
    .flags = WRITES | RESP_FAST,
    .serve = serve_delifeq,
    RESP_KEY_ONE(RESP_KEY_RM | RESP_KEY_ACCESS | RESP_KEY_DELETE),
    .group = "string",
    .since = "9.0.0",
    .complexity = "O(1)",
    .summary = "Deletes a key if its value is the one given: releases a lock in one step.",
    .arguments = "key value",
};

const struct resp_command resp_command_get = {
    .name = "get",
    .arity = 2,
    .flags = READS_FAST,
    .serve = serve_get,
    RESP_KEY_ONE(KEY_READ),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Answers the value of a key.",
    .arguments = "key",
};

const struct resp_command resp_command_getdel = {
    .name = "getdel",
    .arity = 2,
    .flags = WRITES | RESP_FAST,
    .serve = serve_getdel,
    RESP_KEY_ONE(RESP_KEY_RW | RESP_KEY_ACCESS | RESP_KEY_DELETE),
    .group = "string",
    .since = "6.2.0",
    .complexity = "O(1)",
    .summary = "Answers the value of a key and deletes the key.",
    .arguments = "key",
};

const struct resp_command resp_command_getex = {
    .name = "getex",
    .arity = -2,
    .flags = WRITES | RESP_FAST,
    .serve = serve_getex,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "string",
    .since = "6.2.0",
    .complexity = "O(1)",
    .summary = "Answers the value of a key and sets or removes its deadline.",
    .arguments = "key [" DEADLINE " | PERSIST]",
};

const struct resp_command resp_command_getrange = {
    .name = "getrange",
    .arity = 4,
    .flags = READS,
    .serve = serve_getrange,
    RESP_KEY_ONE(KEY_READ),
    .group = "string",
    .since = "2.4.0",
    .complexity = "O(N), N the length of the answer",
    .summary = "Answers a part of a value; negative positions count from its end.",
    .arguments = "key start end",
};

const struct resp_command resp_command_getset = {
    .name = "getset",
    .arity = 3,
    .flags = GROWS_FAST,
    .serve = serve_getset,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Sets a value and answers the old one. SET with GET does the same.",
    .arguments = "key value",
};

const struct resp_command resp_command_incr = {
    .name = "incr",
    .arity = 2,
    .flags = GROWS_FAST,
    .serve = serve_incr,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Adds one to an integer; an absent key counts as 0.",
    .arguments = "key",
};

const struct resp_command resp_command_incrby = {
    .name = "incrby",
    .arity = 3,
    .flags = GROWS_FAST,
    .serve = serve_incrby,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Adds to an integer; an absent key counts as 0.",
    .arguments = "key increment",
};

const struct resp_command resp_command_incrbyfloat = {
    .name = "incrbyfloat",
    .arity = 3,
    .flags = GROWS_FAST,
    .serve = serve_incrbyfloat,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "string",
    .since = "2.6.0",
    .complexity = "O(1)",
    .summary = "Adds to a number with a fraction; an absent key counts as 0.",
    .arguments = "key decimal",
};

const struct resp_command resp_command_mget = {
    .name = "mget",
    .arity = -2,
    .flags = READS_FAST,
    .serve = serve_mget,
    RESP_KEY_ALL(KEY_READ),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(N), N the number of keys",
    .summary = "Answers the values of several keys; in one step if the space has transactions.",
    .arguments = "key...",
};

const struct resp_command resp_command_mset = {
    .name = "mset",
    .arity = -3,
    .flags = GROWS,
    .serve = serve_mset,
    RESP_KEY_PAIRS(RESP_KEY_OW | RESP_KEY_UPDATE),
    .group = "string",
    .since = "1.0.1",
    .complexity = "O(N), N the number of keys",
    .summary = "Sets several keys; in one step if the space has transactions.",
    .arguments = "(key value)...",
};

const struct resp_command resp_command_msetnx = {
    .name = "msetnx",
    .arity = -3,
    .flags = GROWS,
    .serve = serve_msetnx,
    RESP_KEY_PAIRS(RESP_KEY_OW | RESP_KEY_INSERT),
    .group = "string",
    .since = "1.0.1",
    .complexity = "O(1)",
    .summary = "Sets one key if it is absent; several keys need a space with transactions.",
    .arguments = "(key value)...",
};

const struct resp_command resp_command_psetex = {
    .name = "psetex",
    .arity = 4,
    .flags = GROWS,
    .serve = serve_psetex,
    RESP_KEY_ONE(RESP_KEY_OW | RESP_KEY_UPDATE),
    .group = "string",
    .since = "2.6.0",
    .complexity = "O(1)",
    .summary = "Sets a value that lives for some milliseconds. SET with PX does the same.",
    .arguments = "key milliseconds value",
};

const struct resp_command resp_command_set = {
    .name = "set",
    .arity = -3,
    .flags = GROWS,
    .serve = serve_set,
    RESP_KEY_ONE(RESP_KEY_RW | RESP_KEY_ACCESS | RESP_KEY_UPDATE | RESP_KEY_VARIABLE),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Sets the value of a key, on conditions and with a deadline if asked.",
    .arguments = "key value [NX | XX | IFEQ comparison-value] [GET] [" DEADLINE " | KEEPTTL]",
};

const struct resp_command resp_command_setex = {
    .name = "setex",
    .arity = 4,
    .flags = GROWS,
    .serve = serve_setex,
    RESP_KEY_ONE(RESP_KEY_OW | RESP_KEY_UPDATE),
    .group = "string",
    .since = "2.0.0",
    .complexity = "O(1)",
    .summary = "Sets a value that lives for some seconds. SET with EX does the same.",
    .arguments = "key seconds value",
};

const struct resp_command resp_command_setnx = {
    .name = "setnx",
    .arity = 3,
    .flags = GROWS_FAST,
    .serve = serve_setnx,
    RESP_KEY_ONE(RESP_KEY_OW | RESP_KEY_INSERT),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Sets a key only if it is absent. SET with NX does the same.",
    .arguments = "key value",
};

const struct resp_command resp_command_setrange = {
    .name = "setrange",
    .arity = 4,
    .flags = GROWS,
    .serve = serve_setrange,
    RESP_KEY_ONE(RESP_KEY_RW | RESP_KEY_UPDATE),
    .group = "string",
    .since = "2.2.0",
    .complexity = "O(N), N the length of the new value",
    .summary = "Overwrites a part of a value; zero bytes fill a gap before it.",
    .arguments = "key offset value",
};

const struct resp_command resp_command_strlen = {
    .name = "strlen",
    .arity = 2,
    .flags = READS_FAST,
    .serve = serve_strlen,
    RESP_KEY_ONE(RESP_KEY_RO),
    .group = "string",
    .since = "2.2.0",
    .complexity = "O(1)",
    .summary = "Answers the length of a value in bytes.",
    .arguments = "key",
};

const struct resp_command resp_command_substr = {
    .name = "substr",
    .arity = 4,
    .flags = READS,
    .serve = serve_getrange,
    RESP_KEY_ONE(KEY_READ),
    .group = "string",
    .since = "1.0.0",
    .complexity = "O(N), N the length of the answer",
    .summary = "The old name of GETRANGE.",
    .arguments = "key start end",
};
