/* Which tries began before the map was what it is (docs/protocols/lotus.md, M2). */
#include "node/lotus_home.h"

uint64_t lotus_home_oldest(const struct worker *w, uint8_t space)
{
    /* acquire: pairs with the release in home_look_at_map; who began before has ended. */
    return atomic_load_explicit(&w->lotus_home->spaces[space]->oldest, memory_order_acquire);
}

void home_look_at_map(struct worker *w, struct home_space *s)
{
    uint64_t version = node_map_version(w->node, s->space);
    uint64_t oldest = version;
    if (atomic_load_explicit(&s->oldest, memory_order_relaxed) == version) {
        return;
    }
    uint64_t wound_below = lotus_move_wounds(w, s->space);
    list_each_safe(link, following, &s->tries)
    {
        const struct home_try *t = list_entry(link, struct home_try, link);
        if (t->work == NULL) {
            continue;
        }
        oldest = t->began < oldest ? t->began : oldest;
        if (t->began < wound_below) {
            (void)lotus_table_wound(s->table, t->work->holder.status, t->work->holder.generation);
        }
    }
    atomic_store_explicit(&s->oldest, oldest, memory_order_release);
}
