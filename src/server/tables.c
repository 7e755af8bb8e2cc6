/* What INFO and HORKOS tell of spaces whose rows are in ordered tables (engine lotus): how their
 * transactions fare, and who has which locks. */
#include "server/internal.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/clock.h"
#include "server/locks.h"

bool server_space_ordered(const struct server *s, uint32_t space)
{
    const struct engine_ops *ops = space < SPACES_MAX ? s->node_config.spaces[space].ops : NULL;
    return ops != NULL && (ops->traits & ENGINE_TABLES) != 0;
}

bool server_any_ordered(const struct server *s)
{
    bool any = false;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        any = any || server_space_ordered(s, i);
    }
    return any;
}

/* ---- INFO ---- */

/* Of the node, all such spaces together: first what it does as a coordinator, then (home_) as a
 * memory server. */
static const struct server_figure figures[] = {
#define FIGURE(name, of)                                                                           \
    {                                                                                              \
        name, offsetof(struct node_stats, of)                                                      \
    }
    FIGURE("transactions", lotus_transactions),
    FIGURE("tries", lotus_tries),
    FIGURE("tries_failed", txn_aborts),
    FIGURE("requests", lotus_requests),
    FIGURE("requests_whole", lotus_whole),
    FIGURE("items", lotus_items),
    FIGURE("hints", lotus_hints),
    FIGURE("hints_good", lotus_hints_good),
    FIGURE("batches", lotus_batches),
    FIGURE("batched", lotus_batched),
    FIGURE("home_executes", home_executes),
    FIGURE("home_wholes", home_wholes),
    FIGURE("home_items", home_items),
    FIGURE("home_waits", home_waits),
    FIGURE("home_refused", home_refused[LOTUS_REFUSED]),
    FIGURE("home_moved", home_refused[LOTUS_MOVED]),
    FIGURE("home_busy", home_refused[LOTUS_BUSY]),
    FIGURE("home_too_big", home_refused[LOTUS_TOOBIG]),
    FIGURE("home_no_memory", home_refused[LOTUS_NOMEM]),
    FIGURE("home_prepares", home_prepares),
    FIGURE("home_commits", home_commits),
    FIGURE("home_commits_alone", home_commits_alone),
    FIGURE("home_leases", home_leases),
    FIGURE("home_expired", home_expired),
    FIGURE("home_hints", home_hints),
    FIGURE("home_hints_good", home_hints_good),
    FIGURE("home_doubts", home_doubts),
    FIGURE("home_outcomes", home_outcomes),
    FIGURE("far_fetches", far_fetches),
    FIGURE("far_stores", far_stores),
    FIGURE("far_clean", far_clean),
    FIGURE("far_wasted", far_wasted),
    FIGURE("far_refused", far_refused),
    FIGURE("far_lost", far_lost),
#undef FIGURE
};

json_t *server_tables_json(const struct node_stats *stats)
{
    json_t *j = json_object();
    server_figures_json(j, stats, figures, sizeof figures / sizeof figures[0]);
    return j;
}

void server_tables_info(struct server_worker *w, struct resp_out *t)
{
    struct server *s = w->server;
    struct node_stats stats;
    struct lotus_table_stats table;
    node_stats(s->node, &stats);
    server_info_line(t, "# Lotus");
    server_figures_lines(t, &stats, figures, sizeof figures / sizeof figures[0]);
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        if (node_table_stats(s->node, i, &table)) {
            server_info_line(t,
                             "space%" PRIu32 ":rows=%" PRIu64 ",ghosts=%" PRIu64 ",locks=%" PRIu64
                             ",requests=%" PRIu64 ",granted=%" PRIu64 ",waited=%" PRIu64
                             ",died=%" PRIu64 ",wounded=%" PRIu64 ",looked_again=%" PRIu64,
                             i, table.rows, table.ghosts, table.locks, table.requests,
                             table.granted, table.waited, table.died, table.wounded,
                             table.looked_again);
        }
        if (s->config.spaces[i].exists && s->config.spaces[i].near_max > 0) {
            server_info_line(t,
                             "space%" PRIu32 "_far:near_rows=%" PRIu64 ",near_bytes=%" PRIu64
                             ",near_max=%" PRIu64 ",cells=%" PRIu64 ",cell_bytes=%" PRIu64,
                             i, table.near_rows, table.near_bytes, s->config.spaces[i].near_max,
                             table.cells, table.cell_bytes);
        }
    }
}

/* ---- HORKOS LOCKS, HORKOS KILL ---- */

/* The space of a command: its last argument, or the connection's. False: the error is written. */
static bool space_of(const struct server *s, uint32_t space, uint32_t n, const struct bytes *args,
                     uint32_t *space_out, struct resp_out *out)
{
    *space_out = space;
    if (n > 0 && !server_space_parse(args[0], space_out)) {
        resp_out_errorf(out, "ERR a space is a number from 0 to %u", SPACES_MAX - 1);
        return false;
    }
    if (!s->config.spaces[*space_out].exists) {
        resp_out_errorf(out, "ERR there is no space %" PRIu32, *space_out);
        return false;
    }
    if (!server_space_ordered(s, *space_out)) {
        resp_out_errorf(out,
                        "ERR space %" PRIu32
                        " has no locks: its engine is %s; give the number of a "
                        "space of the engine lotus",
                        *space_out, s->config.spaces[*space_out].engine);
        return false;
    }
    return true;
}

void server_reply_locks(struct server_worker *w, uint32_t selected, uint32_t n,
                        const struct bytes *args, struct resp_out *out)
{
    struct server *s = w->server;
    struct locks locks = {.n = 0};
    uint32_t space = 0;
    if (!space_of(s, selected, n, args, &space, out)) {
        return;
    }
    int err = w->node == NULL ? HK_ERR_UNAVAILABLE
                              : node_locks(s->node, space, LOCKS_MAX, locks_add, &locks);
    if (err != HK_OK) {
        resp_out_errorf(out, "ERR %s", hk_err_text(err));
        locks_deinit(&locks);
        return;
    }
    json_t *j = locks_json(&locks, clock_wall_ms() * 1000u);
    json_object_set_new(j, "node", json_integer(s->config.id));
    json_object_set_new(j, "space", json_integer(space));
    char *text = json_dumps(j, JSON_COMPACT);
    if (text == NULL) {
        resp_out_error(out, "ERR no memory for the report");
    } else {
        resp_out_text(out, text);
    }
    free(text);
    json_decref(j);
    locks_deinit(&locks);
}

void server_reply_kill(struct server_worker *w, uint32_t selected, uint32_t n,
                       const struct bytes *args, struct resp_out *out)
{
    struct server *s = w->server;
    uint64_t id = 0;
    uint32_t space = 0;
    if (!locks_id_parse(args[0], &id)) {
        resp_out_error(out, "ERR an id is 16 hexadecimal digits, as HORKOS LOCKS has it");
        return;
    }
    if (!space_of(s, selected, n - 1, args + 1, &space, out)) {
        return;
    }
    int err = w->node == NULL ? HK_ERR_UNAVAILABLE : node_kill(s->node, space, id);
    switch (err) {
    case HK_OK:
        resp_out_simple(out, "OK");
        break;
    case HK_ERR_NOTFOUND:
        resp_out_error(out, "ERR it has nothing here (any more): it is over, or another node has "
                            "its locks");
        break;
    case HK_ERR_CONDITION:
        resp_out_error(out, "ERR it is prepared: its client may have been answered, and it ends "
                            "with its outcome only");
        break;
    default:
        resp_out_errorf(out, "ERR %s", hk_err_text(err));
    }
}
