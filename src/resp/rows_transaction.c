/* The rows of transactions. */
#include "resp/command_rows.h"
#include "resp/serve_admin.h"

#define TRANSACTION(name_, since_) .name = (name_), .group = "transactions", .since = (since_)

const struct resp_command resp_command_discard = {
    TRANSACTION("discard", "2.0.0"),
    .arity = 1,
    .flags = RESP_LOADING | RESP_FAST,
    .serve = serve_discard,
    .complexity = "O(N), N the commands that are queued",
    .summary = "Drops what is queued since MULTI, and all watches.",
};

const struct resp_command resp_command_exec = {
    TRANSACTION("exec", "1.2.0"),
    .arity = 1,
    .flags = RESP_LOADING,
    .serve = serve_exec,
    .complexity = "That of the commands that are queued",
    .summary = "Runs the commands queued since MULTI in one step, unless a watched key changed.",
};

const struct resp_command resp_command_multi = {
    TRANSACTION("multi", "1.2.0"),
    .arity = 1,
    .flags = RESP_LOADING | RESP_FAST,
    .serve = serve_multi,
    .complexity = "O(1)",
    .summary = "Queues the commands that follow until EXEC; needs a space with transactions.",
};

const struct resp_command resp_command_unwatch = {
    TRANSACTION("unwatch", "2.2.0"),
    .arity = 1,
    .flags = RESP_LOADING | RESP_FAST | RESP_MULTI,
    .serve = serve_unwatch,
    .complexity = "O(N), N the keys that are watched",
    .summary = "Forgets all watches.",
};

const struct resp_command resp_command_watch = {
    TRANSACTION("watch", "2.2.0"),
    .arity = -2,
    .flags = RESP_LOADING | RESP_FAST,
    RESP_KEY_ALL(RESP_KEY_RO),
    .serve = serve_watch,
    .complexity = "O(N), N the keys",
    .summary = "Lets the next EXEC do nothing if one of the keys changes before it.",
    .arguments = "key...",
};
