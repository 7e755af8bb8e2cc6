/* The functions that serve commands on keys (commands_string.c, commands_key.c,
 * commands_range.c, commands_walk.c).
 * The flags that each needs in the table of command.c are said here, beyond what COMMAND tells. */
#ifndef HORKOS_RESP_SERVE_DATA_H
#define HORKOS_RESP_SERVE_DATA_H

#include "resp/command.h"

/* RESP_DATA: these start operations or answer an error. */
resp_command_fn serve_set, serve_delifeq, serve_get, serve_getdel, serve_getex, serve_getset,
    serve_setex, serve_psetex, serve_setnx, serve_mget, serve_mset, serve_msetnx, serve_incr,
    serve_decr, serve_incrby, serve_decrby, serve_incrbyfloat, serve_append, serve_strlen,
    serve_getrange /* and SUBSTR */, serve_setrange;
resp_command_fn serve_del /* and UNLINK */, serve_exists /* and TOUCH */, serve_expire,
    serve_pexpire, serve_expireat, serve_pexpireat, serve_expiretime, serve_pexpiretime, serve_ttl,
    serve_pttl, serve_persist, serve_type, serve_rename, serve_renamenx, serve_copy,
    serve_object_encoding, serve_object_freq, serve_object_idletime, serve_object_refcount,
    serve_memory_usage;
resp_command_fn serve_range, serve_rangecount, serve_delrange;

/* Not RESP_DATA: barriers. */
resp_command_fn serve_keys, serve_scan, serve_randomkey, serve_flushdb, serve_flushall,
    serve_dbsize, serve_object_help, serve_wait, serve_debug_sleep;

#endif
