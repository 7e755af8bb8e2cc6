/* What worker 0 of a memory server does beside: ghosts leave the index (the table's cleaner), and
 * rows whose deadline has passed become ghosts, each in a transaction of its own that waits for
 * nobody. */
#include "node/lotus_home.h"

#include <stdlib.h>
#include <string.h>

#include "base/slot.h"

#define CLEAN_MOST 64u
#define WALK_ROWS 64u     /* looked at in one step */
#define WALK_US 10000u    /* between steps */
#define PASS_US 1000000u  /* between passes, ... */
#define BARE_US 10000000u /* ... if no row had a deadline */

static bool expired(const struct lotus_row *row, uint64_t wall_ms)
{
    struct op_state state;
    return (row->flags & LOTUS_ROW_ABSENT) == 0 && (row->flags & KEY_DEADLINE) != 0 &&
           op_state_from_stored(row->value, row->flags & KEY_VALUE_FLAGS, &state) == HK_OK &&
           op_state_expired(&state, wall_ms);
}

/* Under X, if nobody else has the row; else in another pass. */
static void expire(struct worker *w, struct home_space *s, struct bytes key)
{
    struct store_thread *thread = w->threads[s->space];
    uint8_t self = w->node->config.self;
    /* Younger than all: nobody is wounded for it. */
    struct lock_age age = {.us = UINT64_MAX, .who = lotus_who(self, (uint8_t)w->index, 0)};
    struct home_work *work = home_work_take(s, age);
    struct lotus_row row = {.flags = 0};
    if (work == NULL) {
        return;
    }
    if (lotus_table_point(s->table, thread, &work->holder, key, 0, LOCK_X, true,
                          w->lotus_home->value, &row) == TABLE_DONE &&
        expired(&row, w->wall_ms) && lotus_here(w, s->space, slot_of_key(key))) {
        struct lotus_row ghost = {
            .flags = LOTUS_ROW_ABSENT,
            .version = lotus_version(w, row.version),
            .hint = row.hint,
            .key = key,
        };
        if (lotus_table_reserve(s->table, thread, &work->holder, &ghost) == TABLE_DONE &&
            lotus_table_prepare(s->table, &work->holder)) {
            enum table_word word =
                lotus_table_write(s->table, thread, &work->holder, &ghost, w->now_us);
            w->stats.home_expired += word == TABLE_DONE;
        }
    }
    lotus_table_end(s->table, thread, &work->holder);
    home_work_give(w, s, work);
}

/* The key is copied: it is the store's, which changes. False: there is no memory. */
static bool walk_to(struct home_space *s, struct bytes key)
{
    if (key.n > s->walk_capacity) {
        uint8_t *at = realloc(s->walk_at, key.n);
        if (at == NULL) {
            return false;
        }
        s->walk_at = at;
        s->walk_capacity = key.n;
    }
    memcpy(s->walk_at, key.at, key.n);
    s->walk_n = key.n;
    return true;
}

static void walk_rows(struct worker *w, struct home_space *s)
{
    struct lotus_row row;
    for (uint32_t i = 0; i < WALK_ROWS; i++) {
        if (!lotus_table_next(s->table, w->threads[s->space], bytes_of(s->walk_at, s->walk_n),
                              s->walk_n == 0, w->lotus_home->value, &row) ||
            !walk_to(s, row.key)) {
            s->walk_n = 0;
            s->walk_due_us = w->now_us + (s->walk_deadlines ? PASS_US : BARE_US);
            s->walk_deadlines = false;
            return;
        }
        s->walk_deadlines = s->walk_deadlines || (row.flags & KEY_DEADLINE) != 0;
        if (expired(&row, w->wall_ms)) {
            expire(w, s, bytes_of(s->walk_at, s->walk_n));
        }
    }
    s->walk_due_us = w->now_us + WALK_US;
}

void home_walk(struct worker *w, struct home_space *s)
{
    if (lotus_table_clean_due(s->table) <= w->now_us) {
        (void)lotus_table_clean(s->table, w->threads[s->space], w->now_us, CLEAN_MOST);
    }
    if (s->walk_due_us <= w->now_us) {
        walk_rows(w, s);
    }
}

uint64_t home_walk_due(const struct home_space *s)
{
    uint64_t clean = lotus_table_clean_due(s->table);
    return clean < s->walk_due_us ? clean : s->walk_due_us;
}
