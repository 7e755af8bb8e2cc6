/* The functions that serve everything but keys: commands_connection.c (the connection itself),
 * commands_client.c (CLIENT), commands_command.c (COMMAND), commands_server.c (the process) and
 * commands_refused.c (what horkos does not do). */
#ifndef HORKOS_RESP_SERVE_ADMIN_H
#define HORKOS_RESP_SERVE_ADMIN_H

#include "resp/command.h"

resp_command_fn serve_ping, serve_echo, serve_quit, serve_reset, serve_hello, serve_auth,
    serve_select, serve_ok /* READONLY, READWRITE */;

resp_command_fn serve_client_help, serve_client_id, serve_client_info, serve_client_list,
    serve_client_kill, serve_client_setname, serve_client_getname, serve_client_setinfo,
    serve_client_no_evict, serve_client_no_touch, serve_client_reply, serve_client_getredir,
    serve_client_trackinginfo;

resp_command_fn serve_command, serve_command_count, serve_command_docs, serve_command_getkeys,
    serve_command_getkeysandflags, serve_command_help, serve_command_info, serve_command_list;

resp_command_fn serve_acl_help, serve_acl_whoami, serve_config_get, serve_config_help,
    serve_config_resetstat, serve_config_rewrite, serve_config_set, serve_debug_help, serve_horkos,
    serve_hotkeys, serve_info, serve_latency_doctor, serve_latency_graph, serve_latency_help,
    serve_latency_histogram, serve_latency_history, serve_latency_latest, serve_latency_reset,
    serve_memory_doctor, serve_memory_help, serve_memory_malloc_stats, serve_memory_purge,
    serve_memory_stats, serve_role, serve_shutdown, serve_slowlog_get, serve_slowlog_help,
    serve_slowlog_len, serve_slowlog_reset, serve_time;

/* Each writes one error: the refusal of the row, or one that depends on more. */
resp_command_fn serve_refused, serve_no_cluster;

/* commands_transaction.c. Barriers; EXEC and WATCH start transactions. */
resp_command_fn serve_multi, serve_exec, serve_discard, serve_watch, serve_unwatch;

#endif
