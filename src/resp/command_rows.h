/* The rows of the command table: one struct a command, in the file of its group. The list below is
 * the table's order, which is the order of the names. */
#ifndef HORKOS_RESP_COMMAND_ROWS_H
#define HORKOS_RESP_COMMAND_ROWS_H

#include "resp/command.h"

/* clang-format off */
#define RESP_COMMANDS(X)                                                                           \
    X(acl) X(append) X(auth)                                                                       \
    X(client) X(command) X(config) X(copy)                                                         \
    X(dbsize) X(debug) X(decr) X(decrby) X(del) X(delifeq) X(delrange) X(discard)                  \
    X(echo) X(exec) X(exists) X(expire) X(expireat) X(expiretime)                                  \
    X(flushall) X(flushdb)                                                                         \
    X(get) X(getdel) X(getex) X(getrange) X(getset)                                                \
    X(hello) X(horkos) X(hotkeys)                                                                  \
    X(incr) X(incrby) X(incrbyfloat) X(info)                                                       \
    X(keys)                                                                                        \
    X(latency)                                                                                     \
    X(memory) X(mget) X(mset) X(msetnx) X(multi)                                                   \
    X(object)                                                                                      \
    X(persist) X(pexpire) X(pexpireat) X(pexpiretime) X(ping) X(psetex) X(pttl)                    \
    X(quit)                                                                                        \
    X(randomkey) X(range) X(rangecount) X(readonly) X(readwrite) X(rename) X(renamenx)             \
    X(reset) X(role)                                                                               \
    X(scan) X(select) X(set) X(setex) X(setnx) X(setrange) X(shutdown) X(slowlog) X(strlen)        \
    X(substr)                                                                                      \
    X(time) X(touch) X(ttl) X(type)                                                                \
    X(unlink) X(unwatch)                                                                           \
    X(wait) X(watch)
/* clang-format on */

#define RESP_COMMAND_DECLARE(name_) extern const struct resp_command resp_command_##name_;
RESP_COMMANDS(RESP_COMMAND_DECLARE)
#undef RESP_COMMAND_DECLARE

/* Keys at one position, from one to the end, and in pairs with values. */
#define RESP_KEY_ONE(flags_)                                                                       \
    .first_key = 1, .last_key = 1, .key_step = 1, .key_flags = {(flags_), 0}
#define RESP_KEY_ALL(flags_)                                                                       \
    .first_key = 1, .last_key = -1, .key_step = 1, .key_flags = {(flags_), 0}
#define RESP_KEY_PAIRS(flags_)                                                                     \
    .first_key = 1, .last_key = -1, .key_step = 2, .key_flags = {(flags_), 0}
#define RESP_KEY_FROM_TO(from_, to_)                                                               \
    .first_key = 1, .last_key = 2, .key_step = 1, .key_flags = {(from_), (to_)}
/* The key of a subcommand. */
#define RESP_KEY_SUB(flags_)                                                                       \
    .first_key = 2, .last_key = 2, .key_step = 1, .key_flags = {(flags_), 0}
#define RESP_SUBCOMMANDS(array_)                                                                   \
    .subcommands = (array_), .subcommands_n = (uint32_t)(sizeof(array_) / sizeof(array_)[0])
#define RESP_HELP_ROW(parent_, serve_, group_, since_)                                             \
    {                                                                                              \
        .name = "help", .parent = &(parent_), .arity = 2, .flags = RESP_LOADING,                   \
        .serve = (serve_), .since = (since_), .group = (group_), .complexity = "O(1)",             \
        .summary = "Lists the subcommands."                                                        \
    }

#endif
