/* The items of a try, in their order: locks are asked for, rows read and gathered for the answer. A
 * lock that must be waited for parks the try, and whatever came behind it goes on (P8). */
#include "node/lotus_home.h"

#include "base/slot.h"

uint32_t home_word(enum table_word word)
{
    static const uint8_t words[] = {
        [TABLE_DONE] = LOTUS_OK,   [TABLE_WAITS] = LOTUS_WORDS,   [TABLE_REFUSED] = LOTUS_REFUSED,
        [TABLE_BUSY] = LOTUS_BUSY, [TABLE_TOOBIG] = LOTUS_TOOBIG, [TABLE_NOMEM] = LOTUS_NOMEM,
    };
    return words[word];
}

void home_wake(struct worker *owner, struct home_space *s, struct home_work *work)
{
    if (atomic_exchange_explicit(&work->woken, true, memory_order_acq_rel)) {
        return; /* it stands there already */
    }
    struct home_work *first = atomic_load_explicit(&s->woken, memory_order_relaxed);
    do {
        work->woken_next = first;
        /* release: pairs with the exchange in take_woken (lotus_home.c). */
    } while (!atomic_compare_exchange_weak_explicit(&s->woken, &first, work, memory_order_release,
                                                    memory_order_relaxed));
    worker_poke(owner);
}

/* P11: who has read the most that is not answered may go on, and so comes to an end. */
static bool has_room(struct worker *w, struct home_work *work, uint32_t bytes)
{
    struct lotus_home *home = w->lotus_home;
    if (home->read + bytes > HOME_READ_MAX && home->most == NULL) {
        home->most = work;
    }
    return home->read + bytes <= HOME_READ_MAX || home->most == work;
}

uint32_t home_add_row(struct worker *w, struct home_work *work, const struct lotus_row *row)
{
    uint32_t bytes = lotus_row_bytes(row);
    if (bytes > MSG_VALUE_MAX - work->rows.n) {
        return LOTUS_TOOBIG;
    }
    if (!has_room(w, work, bytes)) {
        return LOTUS_BUSY;
    }
    (void)lotus_row_put(buffer_add(&work->rows, bytes), row);
    work->read += bytes;
    w->lotus_home->read += bytes;
    w->moved += bytes;
    return LOTUS_OK;
}

/* The value that comes after this one: it arrives while this one is copied. */
static void prefetch_next(const struct home_space *s, const struct home_work *work)
{
    struct bytes rest = work->rest;
    struct lotus_item next;
    if (lotus_item_take(&rest, &next) && next.hint != 0 && (next.flags & LOTUS_ITEM_KEYS) == 0) {
        lotus_table_prefetch(s->table, next.key, next.hint, true);
    }
}

static bool take_next(struct home_work *work)
{
    work->item_at = work->rest.at;
    work->open = lotus_item_take(&work->rest, &work->item);
    if (work->open && (work->item.flags & LOTUS_ITEM_RANGE) != 0) {
        work->scan = (struct lotus_scan){.item = work->item};
    }
    return work->open;
}

/* The message's bytes will be gone: what is left of the items becomes the work's own. */
static void keep(struct home_work *work)
{
    if (work->kept) {
        return;
    }
    uint32_t n = (uint32_t)(work->rest.at + work->rest.n - work->item_at);
    work->items.n = 0;
    memcpy(buffer_add(&work->items, n), work->item_at, n);
    work->rest = bytes_of(work->items.at, n);
    work->item_at = work->items.at;
    (void)lotus_item_take(&work->rest, &work->item);
    work->scan.item.key = work->item.key;
    work->scan.item.end = work->item.end;
    work->kept = true;
}

/* ---- Points ---- */

/* M1. */
static bool point_here(const struct worker *w, const struct home_space *s, uint32_t slot)
{
    return !lotus_rule_on(s->config, LOTUS_RULE_MOVE_ASKED) || lotus_here(w, s->space, slot);
}

/* A slot's rows do not go before the tries that began by an earlier map have ended (M2): looking at
 * the map again after the lock is only so that those end soon. */
static uint32_t run_point(struct worker *w, struct home_space *s, struct home_work *work)
{
    const struct lotus_item *item = &work->item;
    uint32_t slot = slot_of_key(item->key);
    struct lotus_row row = {.flags = 0};
    if (!point_here(w, s, slot)) {
        return LOTUS_MOVED;
    }
    bool values = (item->flags & LOTUS_ITEM_KEYS) == 0;
    uint32_t word = home_word(lotus_table_item(s->table, w->threads[s->space], &work->holder, item,
                                               w->lotus_home->value, &row));
    if ((word == LOTUS_OK || word == LOTUS_WORDS) && !point_here(w, s, slot)) {
        return LOTUS_MOVED;
    }
    if (word != LOTUS_OK) {
        return word;
    }
    row.key = bytes_of(NULL, 0);
    w->stats.home_read += values && (row.flags & LOTUS_ROW_ABSENT) == 0;
    w->stats.home_hints += item->hint != 0;
    w->stats.home_hints_good += item->hint != 0 && item->hint == row.hint;
    if (work->holder.far.id != 0) {
        return home_far_row(w, s, work, &row);
    }
    return home_add_row(w, work, &row);
}

/* ---- Ranges ---- */

/* R1: by one version of the map, all slots at rest; or it is of one slot, which is. */
static bool range_here(const struct worker *w, const struct home_space *s,
                       const struct home_work *work)
{
    nodeset servers;
    uint64_t version;
    uint32_t lost;
    uint16_t slot;
    if (lotus_range_slot(work->item.key, work->item.end, &slot)) {
        return lotus_here(w, s->space, slot);
    }
    return !lotus_rule_on(s->config, LOTUS_RULE_SCAN_MAP) ||
           (lotus_servers(w, s->space, &servers, &version, &lost) && version == work->map);
}

static uint32_t scan_on(struct worker *w, struct home_space *s, struct home_work *work)
{
    for (bool more = true;;) {
        struct lotus_row row = {.flags = 0};
        if (work->met++ == HOME_ROWS_MAX || w->moved >= MOVED_MAX) {
            home_wake(w, s, work);
            return LOTUS_WORDS;
        }
        uint32_t word = home_word(lotus_table_scan(s->table, w->threads[s->space], &work->holder,
                                                   &work->scan, w->lotus_home->value, &row, &more));
        if (word != LOTUS_OK || !more) {
            return word;
        }
        w->stats.home_read++;
        word =
            work->holder.far.id != 0 ? home_far_row(w, s, work, &row) : home_add_row(w, work, &row);
        if (word != LOTUS_OK) {
            return word;
        }
    }
}

static uint32_t run_range(struct worker *w, struct home_space *s, struct home_work *work)
{
    if (!range_here(w, s, work)) {
        return LOTUS_MOVED;
    }
    uint32_t word = scan_on(w, s, work);
    if ((word == LOTUS_OK || word == LOTUS_WORDS) && !range_here(w, s, work)) {
        return LOTUS_MOVED;
    }
    if (word == LOTUS_OK) {
        lotus_scan_end(&work->scan, w->threads[s->space]);
    }
    return word;
}

/* ---- Items ---- */

bool home_behind(const struct worker *w, const struct home_work *work)
{
    const struct home_name *name = &work->t->name;
    return lanes_kept(w, name->node, (uint8_t)lotus_slot_worker(name->slot)) > HOME_BEHIND_MAX;
}

/* P11: it reads nothing more for now. Who is wounded goes on, and so hears of it. */
static bool rests(struct worker *w, struct home_space *s, struct home_work *work)
{
    if (work->behind) {
        list_remove(&work->link);
    }
    work->behind =
        home_behind(w, work) && lotus_table_state(s->table, &work->holder) != TRY_WOUNDED;
    if (!work->behind && w->moved >= MOVED_MAX) {
        home_wake(w, s, work);
        return true;
    }
    return work->behind;
}

static uint32_t run_item(struct worker *w, struct home_space *s, struct home_work *work)
{
    static const struct lotus_row end = {.flags = LOTUS_ROW_END};
    if (rests(w, s, work)) {
        return LOTUS_WORDS;
    }
    prefetch_next(s, work);
    bool range = (work->item.flags & LOTUS_ITEM_RANGE) != 0, awaited = work->awaited.id != 0;
    uint32_t word = awaited ? home_far_go_on(w, s, work) : LOTUS_OK;
    if (word == LOTUS_OK && (range || !awaited)) {
        word = range ? run_range(w, s, work) : run_point(w, s, work);
    }
    return word == LOTUS_OK ? home_add_row(w, work, &end) : word;
}

uint32_t home_items(struct worker *w, struct home_space *s, struct home_work *work)
{
    work->met = 0;
    while (work->open || take_next(work)) {
        uint32_t word = run_item(w, s, work);
        if (word == LOTUS_WORDS) {
            keep(work);
        }
        if (word != LOTUS_OK) {
            return word;
        }
        work->open = false;
        w->stats.home_items++;
    }
    return LOTUS_OK;
}
