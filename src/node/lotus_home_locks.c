/* What a memory server tells: who holds what, and how an operator ends it (LOCKS, KILL); what it
 * has. Any thread: only the table is looked at, and status words. */
#include "node/lotus.h"

/* A try's number is its status word's, and how often that was used before. */
static uint64_t statuses_n(const struct node *n, const struct space *space)
{
    return (uint64_t)space->lotus->config.tries_max * n->config.workers;
}

struct looking {
    node_lock_fn *each;
    void *context;
    uint64_t statuses_n;
};

static void look(void *context, const struct lotus_lock_row *row)
{
    const struct looking *l = context;
    struct node_lock lock = {
        .gap = row->gap,
        .infinite = row->infinite,
        .key = row->key,
        .mode = row->mode,
        .state = row->state,
        .try_state = row->try_state,
        .coordinator = (uint8_t)(row->age.who >> 56),
        .worker = (uint8_t)(row->age.who >> 48),
        .age = row->age,
        .id = row->generation * l->statuses_n + row->status,
    };
    l->each(l->context, &lock);
}

static const struct space *space_of(const struct node *n, uint32_t space)
{
    return space < SPACES_MAX && n->spaces[space].table != NULL ? &n->spaces[space] : NULL;
}

int node_locks(struct node *n, uint32_t space, uint32_t most, node_lock_fn *each, void *context)
{
    const struct space *s = space_of(n, space);
    if (s == NULL) {
        return HK_ERR_INVALID;
    }
    struct looking l = {.each = each, .context = context, .statuses_n = statuses_n(n, s)};
    lotus_table_locks(s->table, most, look, &l);
    return HK_OK;
}

int node_kill(struct node *n, uint32_t space, uint64_t id)
{
    const struct space *s = space_of(n, space);
    if (s == NULL) {
        return HK_ERR_INVALID;
    }
    struct lotus_holder holder = {.status = (uint32_t)(id % statuses_n(n, s)),
                                  .generation = id / statuses_n(n, s)};
    if (lotus_table_wound(s->table, holder.status, holder.generation)) {
        return HK_OK;
    }
    return lotus_table_state(s->table, &holder) == TRY_PREPARED ? HK_ERR_CONDITION
                                                                : HK_ERR_NOTFOUND;
}

bool node_table_stats(const struct node *n, uint32_t space, struct lotus_table_stats *stats_out)
{
    const struct space *s = space_of(n, space);
    if (s != NULL) {
        lotus_table_stats(s->table, stats_out);
        stats_out->cells = atomic_load_explicit(&s->lotus->cells, memory_order_relaxed);
        stats_out->cell_bytes = atomic_load_explicit(&s->lotus->cell_bytes, memory_order_relaxed);
    }
    return s != NULL;
}

bool node_space_stats(struct node *n, uint32_t space, struct store_stats *stats_out)
{
    struct store *store = node_store(n, space);
    struct lotus_table_stats table;
    if (store == NULL) {
        return false;
    }
    store_stats(store, stats_out);
    if (node_table_stats(n, space, &table)) {
        stats_out->keys = table.rows + table.ghosts;
        stats_out->tombstones = table.ghosts;
    }
    return true;
}
