/* The rows of the commands on keys of any kind and on whole spaces. */
#include "resp/command_rows.h"
#include "resp/serve_data.h"

#define READS (RESP_READONLY | RESP_DATA)
#define READS_FAST (READS | RESP_FAST)
#define WRITES (RESP_WRITE | RESP_DATA)
#define WRITES_FAST (WRITES | RESP_FAST)
#define WALKS RESP_READONLY

#define KEY_READ (RESP_KEY_RO | RESP_KEY_ACCESS)
#define KEY_CHANGE (RESP_KEY_RW | RESP_KEY_UPDATE)
#define KEY_REMOVE (RESP_KEY_RM | RESP_KEY_DELETE)
#define KEY_MOVE (RESP_KEY_RW | RESP_KEY_ACCESS | RESP_KEY_DELETE)
#define KEY_REPLACE (RESP_KEY_OW | RESP_KEY_UPDATE)

#define EXPIRE_CONDITION " [NX | XX | GT | LT]"

const struct resp_command resp_command_copy = {
    .name = "copy",
    .arity = -3,
    .flags = WRITES | RESP_DENYOOM,
    .serve = serve_copy,
    RESP_KEY_FROM_TO(KEY_READ, KEY_REPLACE),
    .group = "generic",
    .since = "6.2.0",
    .complexity = "O(1)",
    .summary = "Copies a value to another key; needs a space with transactions.",
    .arguments = "source destination [DB destination-db] [REPLACE]",
};

const struct resp_command resp_command_dbsize = {
    .name = "dbsize",
    .arity = 1,
    .flags = WALKS | RESP_FAST | RESP_MULTI,
    .serve = serve_dbsize,
    .group = "server",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Answers about how many keys the space holds.",
};

const struct resp_command resp_command_del = {
    .name = "del",
    .arity = -2,
    .flags = WRITES,
    .serve = serve_del,
    RESP_KEY_ALL(KEY_REMOVE),
    .group = "generic",
    .since = "1.0.0",
    .complexity = "O(N), N the number of keys",
    .summary = "Deletes keys and answers how many there were.",
    .arguments = "key...",
};

const struct resp_command resp_command_delrange = {
    .name = "delrange",
    .arity = -3,
    .flags = WRITES,
    .serve = serve_delrange,
    .group = "generic",
    .since = "0.1.0",
    .complexity = "O(log(N) + M), M the keys that it deletes",
    .summary = "Deletes the keys between two bounds; needs a space whose keys have an order.",
    .arguments = "min max [LIMIT count]",
};

const struct resp_command resp_command_exists = {
    .name = "exists",
    .arity = -2,
    .flags = READS_FAST,
    .serve = serve_exists,
    RESP_KEY_ALL(RESP_KEY_RO),
    .group = "generic",
    .since = "1.0.0",
    .complexity = "O(N), N the number of keys",
    .summary = "Answers how many of the keys exist.",
    .arguments = "key...",
};

const struct resp_command resp_command_expire = {.name = "expire",
                                                 .arity = -3,
                                                 .flags = WRITES_FAST,
                                                 .serve = serve_expire,
                                                 RESP_KEY_ONE(KEY_CHANGE),
                                                 .group = "generic",
                                                 .since = "1.0.0",
                                                 .complexity = "O(1)",
                                                 .summary = "Gives a key some seconds to live.",
                                                 .arguments = "key seconds" EXPIRE_CONDITION};

const struct resp_command resp_command_expireat = {
    .name = "expireat",
    .arity = -3,
    .flags = WRITES_FAST,
    .serve = serve_expireat,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "generic",
    .since = "1.2.0",
    .complexity = "O(1)",
    .summary = "Gives a key a deadline, in seconds since 1970.",
    .arguments = "key unix-time-seconds" EXPIRE_CONDITION};

const struct resp_command resp_command_expiretime = {
    .name = "expiretime",
    .arity = 2,
    .flags = READS_FAST,
    .serve = serve_expiretime,
    RESP_KEY_ONE(KEY_READ),
    .group = "generic",
    .since = "7.0.0",
    .complexity = "O(1)",
    .summary = "Answers a key's deadline in seconds since 1970.",
    .arguments = "key",
};

const struct resp_command resp_command_flushall = {
    .name = "flushall",
    .arity = -1,
    .flags = RESP_WRITE | RESP_DANGEROUS,
    .serve = serve_flushall,
    .group = "server",
    .since = "1.0.0",
    .complexity = "O(N), N the number of keys",
    .summary = "Deletes the keys of all spaces, one after another.",
    .arguments = "[ASYNC | SYNC]",
};

const struct resp_command resp_command_flushdb = {
    .name = "flushdb",
    .arity = -1,
    .flags = RESP_WRITE | RESP_DANGEROUS,
    .serve = serve_flushdb,
    .group = "server",
    .since = "1.0.0",
    .complexity = "O(N), N the number of keys",
    .summary = "Deletes the keys of the space, one after another.",
    .arguments = "[ASYNC | SYNC]",
};

const struct resp_command resp_command_keys = {
    .name = "keys",
    .arity = 2,
    .flags = WALKS | RESP_DANGEROUS,
    .serve = serve_keys,
    .group = "generic",
    .since = "1.0.0",
    .complexity = "O(N), N the number of keys of the space",
    .summary = "Answers all keys that match a pattern. SCAN does it in portions.",
    .arguments = "pattern",
};

const struct resp_command resp_command_persist = {
    .name = "persist",
    .arity = 2,
    .flags = WRITES_FAST,
    .serve = serve_persist,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "generic",
    .since = "2.2.0",
    .complexity = "O(1)",
    .summary = "Removes a key's deadline.",
    .arguments = "key",
};

const struct resp_command resp_command_pexpire = {.name = "pexpire",
                                                  .arity = -3,
                                                  .flags = WRITES_FAST,
                                                  .serve = serve_pexpire,
                                                  RESP_KEY_ONE(KEY_CHANGE),
                                                  .group = "generic",
                                                  .since = "2.6.0",
                                                  .complexity = "O(1)",
                                                  .summary =
                                                      "Gives a key some milliseconds to live.",
                                                  .arguments = "key milliseconds" EXPIRE_CONDITION};

const struct resp_command resp_command_pexpireat = {
    .name = "pexpireat",
    .arity = -3,
    .flags = WRITES_FAST,
    .serve = serve_pexpireat,
    RESP_KEY_ONE(KEY_CHANGE),
    .group = "generic",
    .since = "2.6.0",
    .complexity = "O(1)",
    .summary = "Gives a key a deadline, in milliseconds since 1970.",
    .arguments = "key unix-time-milliseconds" EXPIRE_CONDITION};

const struct resp_command resp_command_pexpiretime = {
    .name = "pexpiretime",
    .arity = 2,
    .flags = READS_FAST,
    .serve = serve_pexpiretime,
    RESP_KEY_ONE(KEY_READ),
    .group = "generic",
    .since = "7.0.0",
    .complexity = "O(1)",
    .summary = "Answers a key's deadline in milliseconds since 1970.",
    .arguments = "key",
};

const struct resp_command resp_command_pttl = {
    .name = "pttl",
    .arity = 2,
    .flags = READS_FAST,
    .serve = serve_pttl,
    RESP_KEY_ONE(KEY_READ),
    .group = "generic",
    .since = "2.6.0",
    .complexity = "O(1)",
    .summary = "Answers the milliseconds that a key has left to live.",
    .arguments = "key",
};

const struct resp_command resp_command_randomkey = {
    .name = "randomkey",
    .arity = 1,
    .flags = WALKS,
    .serve = serve_randomkey,
    .group = "generic",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Answers some key of the space.",
};

const struct resp_command resp_command_range = {
    .name = "range",
    .arity = -3,
    .flags = READS,
    .serve = serve_range,
    .group = "generic",
    .since = "0.1.0",
    .complexity = "O(log(N) + M), M the keys that it answers",
    .summary =
        "Answers keys and values between two bounds, in order; needs a space whose keys have one.",
    .arguments = "min max [LIMIT count] [REV]",
};

const struct resp_command resp_command_rangecount = {
    .name = "rangecount",
    .arity = 3,
    .flags = READS,
    .serve = serve_rangecount,
    .group = "generic",
    .since = "0.1.0",
    .complexity = "O(log(N) + M), M the keys that it counts",
    .summary =
        "Answers how many keys are between two bounds; needs a space whose keys have an order.",
    .arguments = "min max",
};

const struct resp_command resp_command_rename = {
    .name = "rename",
    .arity = 3,
    .flags = WRITES,
    .serve = serve_rename,
    RESP_KEY_FROM_TO(KEY_MOVE, KEY_REPLACE),
    .group = "generic",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Renames a key; needs a space with transactions.",
    .arguments = "key newkey",
};

const struct resp_command resp_command_renamenx = {
    .name = "renamenx",
    .arity = 3,
    .flags = WRITES_FAST,
    .serve = serve_renamenx,
    RESP_KEY_FROM_TO(KEY_MOVE, RESP_KEY_OW | RESP_KEY_INSERT),
    .group = "generic",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Renames a key if the new name is free; needs a space with transactions.",
    .arguments = "key newkey",
};

const struct resp_command resp_command_scan = {
    .name = "scan",
    .arity = -2,
    .flags = WALKS,
    .serve = serve_scan,
    .group = "generic",
    .since = "2.8.0",
    .complexity = "O(1) a call, O(N) for all N keys of the space",
    .summary = "Answers some keys and the cursor for the next call; cursor 0 begins and ends.",
    .arguments = "cursor [MATCH pattern] [COUNT count] [TYPE type]",
};

const struct resp_command resp_command_touch = {
    .name = "touch",
    .arity = -2,
    .flags = READS_FAST,
    .serve = serve_exists,
    RESP_KEY_ALL(RESP_KEY_RO),
    .group = "generic",
    .since = "3.2.1",
    .complexity = "O(N), N the number of keys",
    .summary = "Answers how many of the keys exist; there are no times of access to change.",
    .arguments = "key...",
};

const struct resp_command resp_command_ttl = {
    .name = "ttl",
    .arity = 2,
    .flags = READS_FAST,
    .serve = serve_ttl,
    RESP_KEY_ONE(KEY_READ),
    .group = "generic",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Answers the seconds that a key has left to live.",
    .arguments = "key",
};

const struct resp_command resp_command_type = {
    .name = "type",
    .arity = 2,
    .flags = READS_FAST,
    .serve = serve_type,
    RESP_KEY_ONE(RESP_KEY_RO),
    .group = "generic",
    .since = "1.0.0",
    .complexity = "O(1)",
    .summary = "Answers string if the key exists, else none.",
    .arguments = "key",
};

const struct resp_command resp_command_unlink = {
    .name = "unlink",
    .arity = -2,
    .flags = WRITES_FAST,
    .serve = serve_del,
    RESP_KEY_ALL(KEY_REMOVE),
    .group = "generic",
    .since = "4.0.0",
    .complexity = "O(N), N the number of keys",
    .summary = "The same as DEL: a key never takes long to delete here.",
    .arguments = "key...",
};

const struct resp_command resp_command_wait = {
    .name = "wait",
    .arity = 3,
    .flags = RESP_MULTI,
    .serve = serve_wait,
    .group = "generic",
    .since = "3.0.0",
    .complexity = "O(1)",
    .summary = "Answers at once on how many other replicas the acknowledged writes are: all.",
    .arguments = "numreplicas timeout",
};

static const struct resp_command of_object[] = {
    {.name = "encoding",
     .parent = &resp_command_object,
     .arity = 3,
     .flags = READS,
     .serve = serve_object_encoding,
     RESP_KEY_SUB(RESP_KEY_RO),
     .group = "generic",
     .since = "2.2.3",
     .complexity = "O(1)",
     .summary = "Answers how Redis would hold the value: int, embstr or raw.",
     .arguments = "key"},
    {.name = "freq",
     .parent = &resp_command_object,
     .arity = 3,
     .flags = READS,
     .serve = serve_object_freq,
     RESP_KEY_SUB(RESP_KEY_RO),
     .group = "generic",
     .since = "4.0.0",
     .complexity = "O(1)",
     .summary = "Answers that accesses are not counted.",
     .arguments = "key"},
    RESP_HELP_ROW(resp_command_object, serve_object_help, "generic", "6.2.0"),
    {.name = "idletime",
     .parent = &resp_command_object,
     .arity = 3,
     .flags = READS,
     .serve = serve_object_idletime,
     RESP_KEY_SUB(RESP_KEY_RO),
     .group = "generic",
     .since = "2.2.3",
     .complexity = "O(1)",
     .summary = "Answers that idle times are not tracked.",
     .arguments = "key"},
    {.name = "refcount",
     .parent = &resp_command_object,
     .arity = 3,
     .flags = READS,
     .serve = serve_object_refcount,
     RESP_KEY_SUB(RESP_KEY_RO),
     .group = "generic",
     .since = "2.2.3",
     .complexity = "O(1)",
     .summary = "Answers 1: values are not shared between keys.",
     .arguments = "key"},
};

const struct resp_command resp_command_object = {
    .name = "object",
    .arity = -2,
    RESP_SUBCOMMANDS(of_object),
    .group = "generic",
    .since = "2.2.3",
    .complexity = "Depends on the subcommand",
    .summary = "Looks at how a value is held.",
};
