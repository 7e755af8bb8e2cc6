/* The owner of far rows (docs/protocols/lotus.md, "far rows"): values that items wait for, rows
 * that make room, rows whose cells are gone or are to come home. What a row is says its record
 * (lotus_table_far.c); here is only what is on its way. */
#include "node/lotus_home.h"

#include <stdlib.h>
#include <string.h>

#include "base/assert.h"
#include "base/slot.h"

#define AHEAD_MOST 64u                    /* fetches of one work, or of the mover, at a time */
#define AHEAD_BYTES (UINT64_C(16) << 20)  /* of a worker's fetches, ahead */
#define FETCH_BYTES (UINT64_C(256) << 20) /* ... and of all; but one may always be more */
#define SCAN_AHEAD 32u                    /* rows of a range that are looked at ahead */
#define VICTIMS_MOST 16u                  /* tried in one poll */
#define BLOCKED_US 200u                   /* nothing could make room: again then */
#define NOBODY_US 100000u                 /* nobody takes cells: again then */
#define WALK_ROWS 256u                    /* looked at in one poll */
#define WALK_AGAIN_US 10000u
#define LOST_US 50000u /* lost slots are told again then */

/* ---- Life ---- */

int home_far_init(struct worker *w, struct home_space *s)
{
    struct lotus_home *home = w->lotus_home;
    if (s->config->near_max == 0) {
        return HK_OK;
    }
    s->far = calloc(1, sizeof *s->far);
    if (s->far == NULL) {
        return HK_ERR_NOMEM;
    }
    list_init(&s->far->moving);
    list_init(&s->far->homing);
    if (home->all_fetches != NULL) {
        return HK_OK;
    }
    home->all_fetches = calloc(HOME_FETCHES, sizeof *home->all_fetches);
    if (home->all_fetches == NULL) {
        return HK_ERR_NOMEM;
    }
    for (uint32_t i = 0; i < HOME_FETCHES; i++) {
        list_push_back(&home->fetches, &home->all_fetches[i].link);
    }
    return HK_OK;
}

static bool alive(const struct worker *w, const struct lotus_far *far)
{
    return far->life == lanes_life(w, far->node);
}

/* Its pair of processes is no more. A cell of a life that this worker has not heard of yet, since
 * another one was first with the view, is neither (F4). */
static bool gone(const struct worker *w, const struct lotus_far *far)
{
    return !alive(w, far) && far->life <= w->view.epoch;
}

static bool recalled(const struct worker *w, uint8_t space, uint8_t node)
{
    /* relaxed: a wish. */
    return nodeset_has(
        atomic_load_explicit(&w->node->spaces[space].lotus->recalled, memory_order_relaxed), node);
}

static void send(struct worker *w, uint8_t space, const struct lotus_far *far, enum lotus_kind kind,
                 uint32_t i, uint32_t gen, struct bytes value)
{
    struct msg m = {
        .space = space,
        .kind = (uint8_t)kind,
        .slot = lotus_slot(w->index, i),
        .gen = gen,
        .epoch = w->view.epoch,
        .arg = far->id,
        .value = value,
    };
    output_message(w, far->node, (uint8_t)lotus_cell_worker(far->id), &m);
}

void home_forget(struct worker *w, uint8_t space, const struct lotus_far *far)
{
    struct buffer *later = &w->lotus_home->spaces[space]->far->later;
    if (alive(w, far)) {
        send(w, space, far, LOTUS_MSG_FORGET, 0, 0, bytes_of(NULL, 0));
    } else if (!gone(w, far)) {
        memcpy(buffer_add(later, sizeof *far), far, sizeof *far);
    }
}

/* What could not be forgotten before this view. */
static void forget_later(struct worker *w, struct home_space *s)
{
    struct lotus_far *all = (struct lotus_far *)(void *)s->far->later.at;
    uint32_t n = s->far->later.n / (uint32_t)sizeof *all, kept = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (alive(w, &all[i])) {
            send(w, s->space, &all[i], LOTUS_MSG_FORGET, 0, 0, bytes_of(NULL, 0));
        } else if (!gone(w, &all[i])) {
            all[kept++] = all[i];
        }
    }
    s->far->later.n = kept * (uint32_t)sizeof *all;
}

/* ---- Fetches ---- */

static void fetch_give(struct worker *w, struct home_fetch *f)
{
    free(f->bytes);
    w->lotus_home->fetching -= f->far.bytes;
    *f = (struct home_fetch){.link = f->link, .gen = f->gen + 1};
    list_remove(&f->link);
    list_push_back(&w->lotus_home->fetches, &f->link);
}

static struct home_fetch *fetch_find(struct list_link *list, const struct lotus_far *far)
{
    list_each(link, list)
    {
        struct home_fetch *f = list_entry(link, struct home_fetch, link);
        if (f->far.id == far->id && f->far.node == far->node) {
            return f;
        }
    }
    return NULL;
}

/* Asks for what the cell has; NULL: there is no room for another one, or of so many bytes. */
static struct home_fetch *fetch_begin(struct worker *w, struct home_space *s,
                                      struct list_link *list, struct home_work *work,
                                      const struct lotus_far *far)
{
    struct lotus_home *home = w->lotus_home;
    bool room = home->fetching == 0 || home->fetching + far->bytes <= FETCH_BYTES;
    struct list_link *link = room ? list_pop_front(&home->fetches) : NULL;
    if (link == NULL) {
        return NULL;
    }
    home->fetching += far->bytes;
    struct home_fetch *f = list_entry(link, struct home_fetch, link);
    f->work = work;
    f->far = *far;
    f->space = s->space;
    f->state = FETCH_SENT;
    list_push_back(list, &f->link);
    w->stats.far_fetches++;
    send(w, s->space, far, LOTUS_MSG_FETCH, (uint32_t)(f - w->lotus_home->all_fetches), f->gen,
         bytes_of(NULL, 0));
    return f;
}

void home_far_drop(struct worker *w, struct home_work *work)
{
    struct list_link *link;
    while ((link = list_pop_front(&work->fetches)) != NULL) {
        fetch_give(w, list_entry(link, struct home_fetch, link));
    }
    work->awaited.id = 0;
}

/* ---- What is lost ---- */

/* F7. The map is told by worker 0. */
static void lose(struct worker *w, uint8_t space, uint32_t slot)
{
    struct lotus_space *l = w->node->spaces[space].lotus;
    atomic_fetch_or_explicit(&l->lost_slots[slot / 64], UINT64_C(1) << slot % 64,
                             memory_order_relaxed);
    /* release: pairs with the acquire in home_far_tell_lost. */
    if (!atomic_exchange_explicit(&l->lost_any, true, memory_order_release)) {
        w->stats.far_lost++;
        worker_poke(&w->node->workers[0]);
    }
}

void home_far_tell_lost(struct worker *w, uint8_t space)
{
    struct lotus_space *l = w->node->spaces[space].lotus;
    if (!atomic_exchange_explicit(&l->lost_any, false, memory_order_acquire)) {
        return;
    }
    for (uint32_t i = 0; i < HASH_SLOTS; i++) {
        uint64_t bit = UINT64_C(1) << i % 64;
        if ((atomic_load_explicit(&l->lost_slots[i / 64], memory_order_relaxed) & bit) == 0) {
            continue;
        }
        struct slot_home home = node_home(w->node, space, i);
        if (home.home != w->node->config.self || home.state == HOME_LOST ||
            home.state == HOME_EMPTYING) {
            atomic_fetch_and_explicit(&l->lost_slots[i / 64], ~bit, memory_order_relaxed);
            continue;
        }
        ordered_slots(w, space, SLOTS_LOST, i);
        atomic_store_explicit(&l->lost_any, true, memory_order_relaxed);
    }
    w->lotus_home->spaces[space]->far->lost_us = w->now_us + LOST_US;
}

static uint32_t lost_row(struct worker *w, struct home_space *s, struct home_work *work)
{
    bool range = (work->item.flags & LOTUS_ITEM_RANGE) != 0;
    work->awaited.id = 0;
    if (!lotus_rule_on(s->config, LOTUS_RULE_FAR_LOST)) {
        struct lotus_row none = {.flags = LOTUS_ROW_ABSENT};
        return range ? LOTUS_OK : home_add_row(w, work, &none);
    }
    lose(w, s->space, slot_of_key(range ? work->pending.key : work->item.key));
    return LOTUS_MOVED;
}

/* ---- Items that wait ---- */

/* Fetches of a work are few. */
static bool may_ask(struct worker *w, const struct home_work *work, const struct lotus_far *far,
                    uint32_t *n)
{
    return *n < AHEAD_MOST && w->lotus_home->fetching + far->bytes <= AHEAD_BYTES &&
           alive(w, far) && fetch_find((struct list_link *)(uintptr_t)&work->fetches, far) == NULL;
}

/* Rows of the range behind the one that is awaited. */
static void ahead_in_range(struct worker *w, struct home_space *s, struct home_work *work,
                           uint32_t *n)
{
    _Alignas(8) uint8_t buffers[2][LOTUS_NEXT_BYTES];
    struct bytes after = work->pending.key;
    struct lotus_row row;
    struct lotus_far far;
    bool near;
    uint32_t left = work->item.limit == 0 ? SCAN_AHEAD : work->item.limit - work->scan.found;
    if ((work->item.flags & LOTUS_ITEM_REVERSE) != 0 || work->scan.ended) {
        return;
    }
    for (uint32_t i = 0; i < left && i < SCAN_AHEAD; i++) {
        if (!lotus_table_next_far(s->table, w->threads[s->space], after, false, buffers[i % 2],
                                  &row, &far, &near) ||
            (work->item.end.n > 0 && bytes_compare(row.key, work->item.end) >= 0)) {
            return;
        }
        if (!near && may_ask(w, work, &far, n) &&
            fetch_begin(w, s, &work->fetches, work, &far) != NULL) {
            (*n)++;
        }
        after = row.key;
    }
}

/* What the work will want next is asked for along with what it wants now: a moment's truth, looked
 * at again under the lock. */
static void ahead(struct worker *w, struct home_space *s, struct home_work *work)
{
    struct bytes rest = work->rest;
    struct lotus_item item;
    struct lotus_far far;
    uint32_t n = 1;
    if ((work->item.flags & LOTUS_ITEM_RANGE) != 0) {
        ahead_in_range(w, s, work, &n);
    }
    while (n < AHEAD_MOST && lotus_item_take(&rest, &item)) {
        if ((item.flags & (LOTUS_ITEM_RANGE | LOTUS_ITEM_KEYS)) == 0 &&
            lotus_table_is_far(s->table, w->threads[s->space], item.key, item.hint, &far) &&
            may_ask(w, work, &far, &n) && fetch_begin(w, s, &work->fetches, work, &far) != NULL) {
            n++;
        }
    }
}

uint32_t home_far_row(struct worker *w, struct home_space *s, struct home_work *work,
                      const struct lotus_row *row)
{
    work->pending = *row;
    work->awaited = work->holder.far;
    return home_far_go_on(w, s, work);
}

/* It is here. */
static uint32_t add_value(struct worker *w, struct home_space *s, struct home_work *work,
                          struct home_fetch *f)
{
    bool range = (work->item.flags & LOTUS_ITEM_RANGE) != 0;
    struct lotus_row row = work->pending;
    row.value = bytes_of(f->bytes, f->far.bytes);
    uint64_t hint = lotus_table_bring(s->table, w->threads[s->space], &work->holder,
                                      range ? row.key : work->item.key, &f->far, row.value);
    row.hint = hint != 0 ? hint : row.hint;
    uint32_t word = home_add_row(w, work, &row);
    work->awaited.id = 0;
    fetch_give(w, f);
    return word;
}

uint32_t home_far_go_on(struct worker *w, struct home_space *s, struct home_work *work)
{
    struct home_fetch *f = fetch_find(&work->fetches, &work->awaited);
    if (lotus_table_state(s->table, &work->holder) == TRY_WOUNDED) {
        return LOTUS_REFUSED;
    }
    if (f == NULL && gone(w, &work->awaited)) {
        return lost_row(w, s, work);
    }
    if (f == NULL && !alive(w, &work->awaited)) {
        return LOTUS_MOVED; /* not in this view: again soon */
    }
    if (f == NULL) {
        f = fetch_begin(w, s, &work->fetches, work, &work->awaited);
        if (f == NULL) {
            return LOTUS_BUSY;
        }
        ahead(w, s, work);
        return LOTUS_WORDS;
    }
    switch ((enum home_fetch_state)f->state) {
    case FETCH_HERE:
        return add_value(w, s, work, f);
    case FETCH_GONE:
        fetch_give(w, f);
        return lost_row(w, s, work);
    case FETCH_NOMEM:
        fetch_give(w, f);
        return LOTUS_NOMEM;
    case FETCH_SENT:
    case FETCH_FREE:
        break;
    }
    return LOTUS_WORDS;
}

/* ---- The mover ---- */

/* What it will meet next, if it is far. */
static void ahead_of_mover(struct worker *w, struct home_space *s, struct bytes key)
{
    _Alignas(8) uint8_t buffers[2][LOTUS_NEXT_BYTES];
    struct bytes after = key;
    struct lotus_row row;
    struct lotus_far far;
    bool near;
    for (uint32_t i = 0; i < AHEAD_MOST && s->far->moving_n < AHEAD_MOST; i++) {
        if (!lotus_table_next_far(s->table, w->threads[s->space], after, false, buffers[i % 2],
                                  &row, &far, &near)) {
            return;
        }
        bool room = w->lotus_home->fetching + far.bytes <= AHEAD_BYTES;
        if (!near && room && alive(w, &far) && !lotus_stays(w, s->space, slot_of_key(row.key)) &&
            fetch_find(&s->far->moving, &far) == NULL &&
            fetch_begin(w, s, &s->far->moving, NULL, &far) != NULL) {
            s->far->moving_n++;
        }
        after = row.key;
    }
}

enum far_word home_far_value(struct worker *w, uint8_t space, struct bytes key,
                             const struct lotus_far *far, struct bytes *value_out)
{
    struct home_space *s = w->lotus_home->spaces[space];
    struct home_fetch *f = fetch_find(&s->far->moving, far);
    if (f != NULL ? f->state == FETCH_GONE : gone(w, far)) {
        lose(w, space, slot_of_key(key));
        return FAR_LOST;
    }
    if (f == NULL && !alive(w, far)) {
        return FAR_COMES;
    }
    if (f != NULL && f->state == FETCH_NOMEM) {
        home_far_moved(w, space, far); /* again */
        f = NULL;
    }
    if (f == NULL) {
        f = fetch_begin(w, s, &s->far->moving, NULL, far);
        s->far->moving_n += f != NULL;
        ahead_of_mover(w, s, key);
        return FAR_COMES;
    }
    *value_out = bytes_of(f->bytes, f->far.bytes);
    return f->state == FETCH_HERE ? FAR_HERE : FAR_COMES;
}

void home_far_moved(struct worker *w, uint8_t space, const struct lotus_far *far)
{
    struct home_space *s = w->lotus_home->spaces[space];
    struct home_fetch *f;
    while (s->far != NULL && (f = far != NULL ? fetch_find(&s->far->moving, far)
                                  : !list_empty(&s->far->moving)
                                      ? list_entry(s->far->moving.next, struct home_fetch, link)
                                      : NULL) != NULL) {
        s->far->moving_n--;
        fetch_give(w, f);
    }
}

/* ---- Making room ---- */

/* Who takes a cell; NODE_NONE: nobody. */
static uint8_t choose(struct worker *w, struct home_space *s)
{
    nodeset may =
        w->view.operational & ~nodeset_of(w->node->config.self) & ~s->far->refused & ~s->far->full;
    nodeset rest = 0;
    for (; may != 0; may &= may - 1) {
        uint8_t node = nodeset_first(may);
        bool good = lanes_life(w, node) != 0 && !recalled(w, s->space, node);
        rest |= good ? nodeset_of(node) : 0;
    }
    for (uint64_t skip = rest != 0 ? random_below(&w->random, nodeset_count(rest)) : 0; skip > 0;
         skip--) {
        rest &= rest - 1;
    }
    return rest != 0 ? nodeset_first(rest) : NODE_NONE;
}

static void storing(struct worker *w, const struct home_space *s, uint64_t bytes)
{
    /* relaxed: a number. */
    atomic_fetch_add_explicit(&w->node->spaces[s->space].lotus->storing, bytes,
                              memory_order_relaxed);
}

static void store_end(struct worker *w, struct home_space *s, struct home_store *store)
{
    storing(w, s, (uint64_t)0 - store->far.bytes);
    s->far->storing &= ~(UINT64_C(1) << (store - s->far->stores));
    free(store->key);
    store->key = NULL;
    store->gen++;
}

static bool store_begin(struct worker *w, struct home_space *s, const struct lotus_victim *v)
{
    struct home_far *far = s->far;
    uint8_t to = choose(w, s);
    uint8_t *key = to != NODE_NONE ? malloc(v->key.n) : NULL;
    if (key == NULL) {
        far->again_us = w->now_us + NOBODY_US;
        far->full = 0;
        return false;
    }
    struct home_store *store = &far->stores[__builtin_ctzll(~far->storing)];
    memcpy(key, v->key.at, v->key.n);
    store->key = key;
    store->key_n = v->key.n;
    store->version = v->version;
    store->far = (struct lotus_far){
        .id = lotus_cell_id(w->index, ++far->ids),
        .life = lanes_life(w, to),
        .bytes = v->value.n,
        .node = to,
    };
    far->storing |= UINT64_C(1) << (store - far->stores);
    storing(w, s, v->value.n);
    w->stats.far_stores++;
    send(w, s->space, &store->far, LOTUS_MSG_STORE, (uint32_t)(store - far->stores), store->gen,
         v->value);
    return true;
}

/* Whether a row is about to make room. */
static bool make_room(struct worker *w, struct home_space *s)
{
    struct store_thread *thread = w->threads[s->space];
    struct lotus_victim v;
    if (!lotus_table_victim(s->table, thread, w->lotus_home->value, &v) ||
        v.value.n > MSG_VALUE_MAX || !lotus_stays(w, s->space, slot_of_key(v.key))) {
        return false;
    }
    if (v.far.id != 0 && alive(w, &v.far) && !recalled(w, s->space, v.far.node)) {
        bool goes = lotus_table_let_go(s->table, thread, v.key, v.version, &v.far) == TABLE_DONE;
        w->stats.far_clean += goes;
        return goes;
    }
    if (v.far.id != 0 && !alive(w, &v.far) && !gone(w, &v.far)) {
        return false;
    }
    if (v.far.id != 0 &&
        lotus_table_home(s->table, thread, v.key, &v.far, bytes_of(NULL, 0)) != TABLE_DONE) {
        return false;
    }
    return store_begin(w, s, &v);
}

static bool too_near(const struct worker *w, const struct home_space *s)
{
    uint64_t on_their_way =
        atomic_load_explicit(&w->node->spaces[s->space].lotus->storing, memory_order_relaxed);
    return lotus_table_near_bytes(s->table) > s->config->near_max + on_their_way &&
           s->far->storing != UINT64_MAX;
}

static void make_rooms(struct worker *w, struct home_space *s)
{
    bool any = false, tried = false;
    for (uint32_t i = 0; i < VICTIMS_MOST && w->now_us >= s->far->again_us && too_near(w, s); i++) {
        tried = true;
        any = make_room(w, s) || any;
    }
    if (tried && !any && s->far->again_us <= w->now_us) {
        s->far->again_us = w->now_us + BLOCKED_US;
    }
}

/* ---- Rows whose cells are gone, or are to come home ---- */

static bool walk_to(struct home_far *far, struct bytes key)
{
    if (key.n > far->walk_capacity) {
        uint8_t *at = realloc(far->walk_at, key.n);
        if (at == NULL) {
            return false;
        }
        far->walk_at = at;
        far->walk_capacity = key.n;
    }
    memcpy(far->walk_at, key.at, key.n);
    far->walk_n = key.n;
    far->walk_begun = true;
    return true;
}

/* F10. False: not now. */
static bool bring_home(struct worker *w, struct home_space *s, struct bytes key,
                       const struct lotus_far *far, bool near)
{
    if (near) {
        enum table_word word =
            lotus_table_home(s->table, w->threads[s->space], key, far, bytes_of(NULL, 0));
        s->far->walk_again = s->far->walk_again || word == TABLE_WAITS || word == TABLE_NOMEM;
        return true;
    }
    if (s->far->homing_n == AHEAD_MOST) {
        return false;
    }
    uint8_t *copy = malloc(key.n);
    struct home_fetch *f = copy != NULL ? fetch_begin(w, s, &s->far->homing, NULL, far) : NULL;
    if (f == NULL) {
        free(copy);
        return false;
    }
    memcpy(copy, key.at, key.n);
    f->bytes = copy;
    f->key_n = key.n;
    s->far->homing_n++;
    return true;
}

static void walk_ends(struct worker *w, struct home_far *far)
{
    far->walks = far->walk_again || far->homing_n > 0;
    far->walk_again = false;
    far->walk_begun = false;
    far->walk_us = w->now_us + WALK_AGAIN_US;
}

static void walk(struct worker *w, struct home_space *s)
{
    struct home_far *far = s->far;
    _Alignas(8) uint8_t buffer[LOTUS_NEXT_BYTES];
    struct lotus_row row;
    struct lotus_far cell;
    bool near;
    for (uint32_t i = 0; i < WALK_ROWS; i++) {
        struct bytes after = bytes_of(far->walk_at, far->walk_begun ? far->walk_n : 0);
        if (!lotus_table_next_far(s->table, w->threads[s->space], after, !far->walk_begun, buffer,
                                  &row, &cell, &near)) {
            walk_ends(w, far);
            return;
        }
        bool mine = cell.id != 0 && lotus_stays(w, s->space, slot_of_key(row.key));
        if (mine && !near && gone(w, &cell)) {
            lose(w, s->space, slot_of_key(row.key));
        } else if (mine && recalled(w, s->space, cell.node) &&
                   !bring_home(w, s, row.key, &cell, near)) {
            far->walk_us = w->now_us + BLOCKED_US;
            return;
        }
        if (!walk_to(far, row.key)) {
            return;
        }
    }
}

/* F5: all workers are in this view. */
static bool may_walk(const struct worker *w, const struct home_space *s)
{
    return w->index == 0 && s->far->walks &&
           atomic_load_explicit(&w->node->adopted, memory_order_acquire) == w->view.epoch;
}

/* ---- Polls, views ---- */

void home_far_poll(struct worker *w, struct home_space *s)
{
    if (w->index == 0 && w->now_us >= s->far->lost_us) {
        home_far_tell_lost(w, s->space);
    }
    if (may_walk(w, s) && w->now_us >= s->far->walk_us) {
        walk(w, s);
    }
    make_rooms(w, s);
    s->far->buries = home_cells_poll(w, s);
}

uint64_t home_far_due(const struct worker *w, const struct home_space *s)
{
    const struct home_far *far = s->far;
    const struct lotus_space *l = w->node->spaces[s->space].lotus;
    uint64_t due = far->buries ? w->now_us : UINT64_MAX;
    if (too_near(w, s)) {
        due = far->again_us < due ? far->again_us : due;
    }
    if (may_walk(w, s)) {
        due = far->walk_us < due ? far->walk_us : due;
    }
    if (w->index == 0 && atomic_load_explicit(&l->lost_any, memory_order_relaxed)) {
        due = far->lost_us < due ? far->lost_us : due;
    }
    return due;
}

static void recall(struct worker *w, uint8_t space)
{
    for (nodeset rest = w->view.live & ~nodeset_of(w->node->config.self); rest != 0;
         rest &= rest - 1) {
        struct lotus_far all = {.node = nodeset_first(rest)};
        if (lanes_life(w, all.node) != 0) {
            send(w, space, &all, LOTUS_MSG_RECALL, 0, 0, bytes_of(NULL, 0));
        }
    }
}

/* Nothing comes any more from those nodes, of what was asked before. */
static void strangers(struct worker *w, struct home_space *s, nodeset gone)
{
    for (uint32_t i = 0; i < HOME_STORES; i++) {
        struct home_store *store = &s->far->stores[i];
        if ((s->far->storing >> i & 1) != 0 && nodeset_has(gone, store->far.node)) {
            store_end(w, s, store);
        }
    }
    for (uint32_t i = 0; i < HOME_FETCHES; i++) {
        struct home_fetch *f = &w->lotus_home->all_fetches[i];
        if (f->state != FETCH_SENT || f->space != s->space || !nodeset_has(gone, f->far.node)) {
            continue;
        }
        if (f->key_n > 0) {
            s->far->homing_n--;
            fetch_give(w, f);
            continue;
        }
        f->state = FETCH_GONE;
        if (f->work != NULL) {
            home_wake(w, s, f->work);
        }
    }
}

void home_far_adopt(struct worker *w, struct home_space *s)
{
    struct lotus_space *l = w->node->spaces[s->space].lotus;
    struct home_far *far = s->far;
    nodeset gone = 0;
    for (uint8_t i = 0; i < NODES_MAX; i++) {
        uint32_t life = i != w->node->config.self ? lanes_life(w, i) : 0;
        if (life != far->lives[i]) {
            gone |= far->lives[i] != 0 ? nodeset_of(i) : 0;
            far->lives[i] = life;
            home_cells_gone(w, s, i);
        }
    }
    far->refused = far->full = 0;
    far->again_us = 0;
    forget_later(w, s);
    if (gone != 0) {
        strangers(w, s, gone);
    }
    if (w->index != 0) {
        return;
    }
    atomic_fetch_and_explicit(&l->recalled, ~gone, memory_order_relaxed);
    far->walks = far->walks || gone != 0;
    far->walk_begun = far->walk_begun && gone == 0;
    if (atomic_load_explicit(&l->leaves, memory_order_relaxed)) {
        recall(w, s->space);
    }
}

void lotus_home_leave(struct worker *w)
{
    for (uint8_t i = 0; w->lotus_home != NULL && i < SPACES_MAX; i++) {
        const struct home_space *s = w->lotus_home->spaces[i];
        if (s != NULL && s->far != NULL) {
            atomic_store_explicit(&w->node->spaces[i].lotus->leaves, true, memory_order_relaxed);
            recall(w, i);
        }
    }
}

bool lotus_home_left(const struct node *n)
{
    bool left = true;
    for (uint32_t i = 0; i < SPACES_MAX; i++) {
        const struct lotus_space *l = n->spaces[i].lotus;
        left = left && (l == NULL || atomic_load_explicit(&l->cells, memory_order_relaxed) == 0);
    }
    return left;
}

void home_far_deinit(struct worker *w, struct home_space *s)
{
    if (s->far == NULL) {
        return;
    }
    home_cells_free(w, s);
    for (uint32_t i = 0; i < HOME_STORES; i++) {
        free(s->far->stores[i].key);
    }
    for (uint32_t i = 0; w->lotus_home->all_fetches != NULL && i < HOME_FETCHES; i++) {
        struct home_fetch *f = &w->lotus_home->all_fetches[i];
        if (f->space == s->space) {
            free(f->bytes);
            f->bytes = NULL;
        }
    }
    buffer_free(&s->far->later);
    free(s->far->walk_at);
    free(s->far);
    s->far = NULL;
}

/* ---- Messages ---- */

static void stored(struct worker *w, struct home_space *s, const struct msg *msg, uint8_t from)
{
    struct home_far *far = s->far;
    uint32_t i = lotus_slot_index(msg->slot);
    struct home_store *store = i < HOME_STORES ? &far->stores[i] : NULL;
    if (store == NULL || (far->storing >> i & 1) == 0 || store->gen != msg->gen ||
        store->far.id != msg->arg || store->far.node != from || !alive(w, &store->far)) {
        w->stats.engine_drops[ENGINE_DROP_STALE]++;
        return;
    }
    switch ((enum lotus_stored)msg->ts) {
    case LOTUS_STORED:
        /* F2, F6. */
        if (lotus_table_let_go(s->table, w->threads[s->space], bytes_of(store->key, store->key_n),
                               store->version, &store->far) != TABLE_DONE) {
            w->stats.far_wasted++;
            home_forget(w, s->space, &store->far);
        }
        break;
    case LOTUS_STORED_NO_ROLE:
        far->refused |= nodeset_of(from);
        w->stats.far_refused++;
        break;
    case LOTUS_STORED_NOMEM:
    case LOTUS_STOREDS:
        far->full |= nodeset_of(from);
        w->stats.far_refused++;
        break;
    }
    store_end(w, s, store);
}

/* It comes home. */
static void homed(struct worker *w, struct home_space *s, struct home_fetch *f,
                  const struct msg *msg)
{
    struct bytes key = bytes_of(f->bytes, f->key_n);
    if (msg->ts == 0) {
        enum table_word word =
            lotus_table_home(s->table, w->threads[s->space], key, &f->far, msg->value);
        s->far->walk_again = s->far->walk_again || word == TABLE_WAITS || word == TABLE_NOMEM;
    }
    s->far->homing_n--;
    fetch_give(w, f);
}

static void fetched(struct worker *w, struct home_space *s, const struct msg *msg, uint8_t from)
{
    uint32_t i = lotus_slot_index(msg->slot);
    struct home_fetch *f = i < HOME_FETCHES ? &w->lotus_home->all_fetches[i] : NULL;
    if (f == NULL || f->state != FETCH_SENT || f->gen != msg->gen || f->space != s->space ||
        f->far.id != msg->arg || f->far.node != from || !alive(w, &f->far) ||
        (msg->ts == 0 && msg->value.n != f->far.bytes)) {
        w->stats.engine_drops[ENGINE_DROP_STALE]++;
        return;
    }
    if (f->key_n > 0) {
        homed(w, s, f, msg);
        return;
    }
    uint8_t *bytes = msg->ts == 0 ? malloc(msg->value.n + 1) : NULL;
    f->state = bytes != NULL ? FETCH_HERE : msg->ts == 0 ? FETCH_NOMEM : FETCH_GONE;
    f->bytes = bytes;
    if (bytes != NULL && msg->value.n > 0) {
        memcpy(bytes, msg->value.at, msg->value.n);
    }
    if (f->work != NULL && f->work->awaited.id == f->far.id) {
        home_wake(w, s, f->work);
    }
}

void home_far_message(struct worker *w, struct home_space *s, const struct msg *msg, uint8_t from)
{
    struct lotus_space *l = w->node->spaces[s->space].lotus;
    if (msg->kind == LOTUS_MSG_STORED) {
        stored(w, s, msg, from);
    } else if (msg->kind == LOTUS_MSG_FETCHED) {
        fetched(w, s, msg, from);
    } else if (w->index == 0) {
        atomic_fetch_or_explicit(&l->recalled, nodeset_of(from), memory_order_relaxed);
        s->far->walks = true;
        s->far->walk_begun = false;
    }
}
