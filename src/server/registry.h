/* What every worker may know of every client of the node: for CLIENT LIST and CLIENT KILL, which
 * reach clients of other workers. A connection belongs to one worker, its owner; the owner says
 * here what others may see of it, and learns here whom it has to close.
 *
 * Threads. registry_list and registry_kill from any thread. The functions on an entry, and
 * registry_update and registry_kills, from the owner's alone. registry_touch takes no lock and is
 * for every command; the others take one, and are for what happens seldom.
 *
 * Bounds. One entry of less than 1 KiB for each connection: the server's limit of clients is the
 * registry's. */
#ifndef HORKOS_SERVER_REGISTRY_H
#define HORKOS_SERVER_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#include "resp/conn.h"
#include "resp/host.h"
#include "resp/out.h"

#define REGISTRY_WORKERS_MAX 64u

struct registry;
struct registry_entry;

/* HK_ERR_NOMEM. */
int registry_create(struct registry **registry_out) __attribute__((warn_unused_result));
/* Every entry must have been removed. */
void registry_destroy(struct registry *registry);

/* A connection of this worker. HK_ERR_NOMEM. */
int registry_add(struct registry *registry, const struct resp_conn *conn, uint32_t worker,
                 struct registry_entry **entry_out) __attribute__((warn_unused_result));
void registry_remove(struct registry *registry, struct registry_entry *entry);
/* Name, user, space, ... of this worker's connection changed (resp_host.changed); found by its
 * id. */
void registry_update(struct registry *registry, const struct resp_conn *conn);
/* What moves with every command: the command's name, when it was, buffers. */
void registry_touch(struct registry_entry *entry, const struct resp_conn *conn);

/* The clients that the filter lets through, oldest first, each by resp_client_line. now_us: of the
 * clock that the connections were given. */
void registry_list(struct registry *registry, const struct resp_client_filter *filter,
                   uint64_t now_us, struct resp_out *text);
/* Marks them; how many were not marked before. If there are any, the workers have to be woken. */
uint32_t registry_kill(struct registry *registry, const struct resp_client_filter *filter,
                       uint64_t now_us);
/* Whether clients of this worker were marked since it last asked: it then looks at its own. Cheap
 * when not. */
bool registry_kills(struct registry *registry, uint32_t worker);
bool registry_killed(const struct registry_entry *entry);

#endif
