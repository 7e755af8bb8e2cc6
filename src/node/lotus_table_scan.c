/* Scans: which locks they take, in which order, and when they look again (N2, N4). A step that has
 * to wait begins again from where the scan is: what it has it is granted again. */
#include <string.h>

#include "node/lotus_table_state.h"

/* A scan of one holder, for the time of a call. */
struct scanning {
    struct lotus_table *t;
    struct store_thread *thread;
    struct lotus_holder *h;
    struct lotus_scan *scan;
    void *buffer;
    struct lotus_row *row_out;
    bool found; /* row_out is the next row */
};

/* a < b */
static bool before(struct bytes a, struct bytes b)
{
    uint32_t n = a.n < b.n ? a.n : b.n;
    int order = n == 0 ? 0 : memcmp(a.at, b.at, n);
    return order != 0 ? order < 0 : a.n < b.n;
}

static struct bytes dealt_with(const struct lotus_scan *scan)
{
    return bytes_of(scan->at, scan->at_n);
}

/* key becomes the last one that was dealt with. */
static bool remember(struct store_thread *thread, struct lotus_scan *scan, struct bytes key)
{
    if (key.n > scan->at_capacity) {
        uint32_t capacity = (key.n + 63u) & ~63u;
        uint8_t *at = store_alloc(thread, capacity, false);
        if (at == NULL) {
            return false;
        }
        if (scan->at != NULL) {
            store_free(thread, scan->at, scan->at_capacity);
        }
        scan->at = at;
        scan->at_capacity = capacity;
    }
    memcpy(scan->at, key.at, key.n);
    scan->at_n = key.n;
    return true;
}

/* What comes next in the index, as it was when it was looked at. */
struct lotus_look {
    struct tree_cursor cursor;
    struct bytes key; /* empty: there is none */
    uint64_t hint;
    uint64_t epoch; /* of the thread: the cursor is good as long */
    bool follows;   /* the next one of the cursor follows what was dealt with */
};

void lotus_scan_end(struct lotus_scan *scan, struct store_thread *thread)
{
    if (scan->at != NULL) {
        store_free(thread, scan->at, scan->at_capacity);
    }
    if (scan->look != NULL) {
        store_free(thread, scan->look, sizeof(*scan->look));
    }
    scan->at = NULL;
    scan->at_n = 0;
    scan->at_capacity = 0;
    scan->look = NULL;
}

/* ---- Looking ---- */

/* Records that are on their way while one is read. */
#define ROWS_AHEAD 8u

static void look_at(const struct scanning *s, struct bytes from, bool exclusive,
                    enum tree_direction direction, struct lotus_look *l)
{
    uint64_t epoch = store_thread_epoch(s->thread), ahead;
    if (!l->follows || l->epoch != epoch) {
        tree_seek(s->t->tree, s->thread, from, exclusive, direction, &l->cursor);
        l->epoch = epoch;
    }
    l->follows = false;
    if (!tree_next(&l->cursor, &l->key, &l->hint)) {
        l->key = bytes_of(NULL, 0);
        l->hint = 0;
    }
    if (tree_peek(&l->cursor, ROWS_AHEAD, &ahead)) {
        record_prefetch(s->t->records, ahead, false);
    }
}

/* The same look finds the same key. Mostly the leaf is as it was. */
static bool look_holds(const struct scanning *s, struct bytes from, bool exclusive,
                       enum tree_direction direction, const struct lotus_look *l)
{
    if (!lotus_rule_on(&s->t->lotus, LOTUS_RULE_AGAIN) || tree_holds(&l->cursor)) {
        return true;
    }
    struct lotus_look now;
    now.follows = false;
    look_at(s, from, exclusive, direction, &now);
    if (bytes_equal(now.key, l->key)) {
        return true;
    }
    holder_count(s->t, s->h, COUNT_LOOKED_AGAIN, 1);
    return false;
}

static enum table_word lock_row(const struct scanning *s, struct bytes key, uint32_t *number_out)
{
    *number_out = 0;
    if (!lotus_rule_on(&s->t->lotus, LOTUS_RULE_ROW_SCAN)) {
        return TABLE_DONE;
    }
    return lotus_lock(s->t, s->thread, s->h, false, key, (enum lock_mode)s->scan->item.mode,
                      number_out);
}

static enum table_word lock_gap(const struct scanning *s, struct bytes key)
{
    if (!lotus_rule_on(&s->t->lotus, LOTUS_RULE_GAP_SCAN)) {
        return TABLE_DONE;
    }
    return lotus_lock(s->t, s->thread, s->h, true, key, LOCK_S, NULL);
}

/* ---- A row that is locked ---- */

static bool read_locked(const struct scanning *s, const struct lotus_look *l, uint32_t number,
                        struct row_read *read_out)
{
    bool values = (s->scan->item.flags & LOTUS_ITEM_KEYS) == 0;
    bool found = row_find(s->t, s->thread, l->key, l->hint, values, s->buffer, read_out);
    if (number != 0 && s->scan->item.mode == LOCK_X) {
        row_note(s->t, number, read_out);
    }
    return found && (read_out->head.flags & LOTUS_ROW_ABSENT) == 0;
}

/* It is dealt with: a result, or a ghost. */
static enum table_word pass(struct scanning *s, const struct lotus_look *l,
                            const struct row_read *read, bool result)
{
    struct lotus_scan *scan = s->scan;
    if (!remember(s->thread, scan, l->key)) {
        return TABLE_NOMEM;
    }
    scan->begun = true;
    scan->look->follows = true;
    if (result) {
        scan->found++;
        scan->ended = scan->found == scan->item.limit;
        holder_far(s->t, s->h, read, (scan->item.flags & LOTUS_ITEM_KEYS) == 0);
        row_tell(read, (scan->item.flags & LOTUS_ITEM_KEYS) == 0, s->row_out);
        s->row_out->key = dealt_with(scan);
        s->found = true;
    }
    return TABLE_DONE;
}

/* ---- Steps: each deals with one key, or finds that it has to look again, or the end ---- */

static enum table_word forwards(struct scanning *s)
{
    struct lotus_scan *scan = s->scan;
    struct bytes from = scan->begun ? dealt_with(scan) : scan->item.key;
    struct lotus_look *l = scan->look;
    struct row_read read;
    uint32_t number = 0;
    enum table_word word = TABLE_DONE;
    look_at(s, from, scan->begun, TREE_FORWARDS, l);
    bool past = l->key.n == 0 || (scan->item.end.n > 0 && !before(l->key, scan->item.end));
    if (!past) {
        word = lock_row(s, l->key, &number);
    }
    if (word == TABLE_DONE) {
        word = lock_gap(s, l->key);
    }
    if (word != TABLE_DONE || !look_holds(s, from, scan->begun, TREE_FORWARDS, l)) {
        return word;
    }
    if (past) {
        scan->ended = true;
        return TABLE_DONE;
    }
    bool result = read_locked(s, l, number, &read);
    return pass(s, l, &read, result);
}

/* The gap that the range's end lies in. From then on nothing comes between its last key and its
 * end. */
static enum table_word backwards_begin(struct scanning *s)
{
    struct lotus_scan *scan = s->scan;
    struct bytes end = scan->item.end;
    struct lotus_look *l = scan->look;
    l->key = bytes_of(NULL, 0);
    if (end.n > 0) {
        look_at(s, end, false, TREE_FORWARDS, l);
    }
    enum table_word word = lock_gap(s, l->key);
    if (word == TABLE_DONE && (end.n == 0 || look_holds(s, end, false, TREE_FORWARDS, l))) {
        scan->begun = true;
    }
    return word;
}

static enum table_word backwards(struct scanning *s)
{
    struct lotus_scan *scan = s->scan;
    struct bytes from = scan->at_n > 0 ? dealt_with(scan) : scan->item.end;
    struct lotus_look *l = scan->look;
    struct row_read read;
    uint32_t number;
    if (!scan->begun) {
        return backwards_begin(s);
    }
    look_at(s, from, true, TREE_BACKWARDS, l);
    if (l->key.n == 0 || before(l->key, scan->item.key)) {
        /* The look may be from before the gap was locked. */
        scan->ended = look_holds(s, from, true, TREE_BACKWARDS, l);
        return TABLE_DONE;
    }
    enum table_word word = lock_row(s, l->key, &number);
    /* What came before the gap was locked, and what has gone. */
    if (word != TABLE_DONE || !look_holds(s, from, true, TREE_BACKWARDS, l)) {
        return word;
    }
    bool result = read_locked(s, l, number, &read);
    if (!result || scan->found + 1u != scan->item.limit) {
        word = lock_gap(s, l->key);
    }
    return word == TABLE_DONE ? pass(s, l, &read, result) : word;
}

enum table_word lotus_table_scan(struct lotus_table *table, struct store_thread *thread,
                                 struct lotus_holder *holder, struct lotus_scan *scan, void *buffer,
                                 struct lotus_row *row_out, bool *more_out)
{
    struct scanning s = {.t = table,
                         .thread = thread,
                         .h = holder,
                         .scan = scan,
                         .buffer = buffer,
                         .row_out = row_out};
    enum table_word word = lotus_settle(table, holder);
    if (word == TABLE_DONE && scan->look == NULL) {
        scan->look = store_alloc(thread, sizeof(*scan->look), false);
        if (scan->look == NULL) {
            return TABLE_NOMEM;
        }
        scan->look->follows = false;
    }
    while (word == TABLE_DONE && !s.found && !scan->ended) {
        word = (scan->item.flags & LOTUS_ITEM_REVERSE) != 0 ? backwards(&s) : forwards(&s);
    }
    *more_out = s.found;
    return word;
}
