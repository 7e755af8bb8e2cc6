/* Rows whose values are far (docs/protocols/lotus.md, "far rows"): which rows are near, which of
 * them make room, and how a row becomes one or the other. What is far is asked for and stored by
 * lotus_far.c. */
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "node/lotus_table_state.h"

#define SAMPLE 8u /* rows of which one makes room, as LFU_WAYS */

/* The rows that are near, in no order. A row's lock word, which nothing else uses, has its place
 * here, and how often it was used since it came. */
struct near_set {
    _Alignas(64) struct spin latch; /* of the four, and of the places in lock words */
    uint64_t *hints;
    uint64_t n;
    uint64_t capacity;
    struct random random;
    _Atomic uint64_t bytes;
    _Atomic uint64_t rows;
};

#define USES_BITS 16u
#define USES_MASK ((UINT64_C(1) << USES_BITS) - 1u)
#define USES_MAX (USES_MASK / 2u) /* far from it: several count at once */

int near_create(struct lotus_table *t)
{
    t->near = aligned_alloc(64, (sizeof(*t->near) + 63u) / 64u * 64u);
    if (t->near == NULL) {
        return HK_ERR_NOMEM;
    }
    memset(t->near, 0, sizeof(*t->near));
    random_init(&t->near->random, 1);
    return HK_OK;
}

void near_destroy(struct lotus_table *t)
{
    if (t->near != NULL) {
        free(t->near->hints);
        free(t->near);
    }
}

uint64_t lotus_table_near_bytes(const struct lotus_table *table)
{
    /* relaxed: a number, as the next. */
    return table->near != NULL ? atomic_load_explicit(&table->near->bytes, memory_order_relaxed)
                               : 0;
}

uint64_t lotus_table_near_rows(const struct lotus_table *table)
{
    return table->near != NULL ? atomic_load_explicit(&table->near->rows, memory_order_relaxed) : 0;
}

/* ---- The set ---- */

uint64_t near_flags(const struct lotus_table *t, const struct lotus_row *row)
{
    bool counts = t->near != NULL && (row->flags & LOTUS_ROW_ABSENT) == 0 &&
                  row->value.n >= t->lotus.far_min && row->value.n > 0;
    return counts ? (uint64_t)row->value.n << ROW_NEAR_AT : 0;
}

static uint32_t near_bytes_of(const struct row_read *read)
{
    return read != NULL ? (uint32_t)(read->head.flags >> ROW_NEAR_AT) : 0;
}

static _Atomic uint64_t *word_of(const struct lotus_table *t, uint64_t hint)
{
    _Atomic uint64_t *word = record_lock(t->records, hint);
    HK_ASSERT(word != NULL);
    return word;
}

/* Under the set's latch. place: from 1. */
static void set_place(const struct lotus_table *t, uint64_t hint, uint64_t place)
{
    _Atomic uint64_t *word = word_of(t, hint);
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(word, &old,
                                                  place << USES_BITS | (old & USES_MASK),
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

/* A row that finds no memory here stays near for good, and is counted all the same. */
static void near_add(struct lotus_table *t, uint64_t hint)
{
    struct near_set *s = t->near;
    /* relaxed: the latch orders places; what was counted in the cell's former life is not this
     * row's. */
    atomic_store_explicit(word_of(t, hint), 1, memory_order_relaxed);
    if (s->n == s->capacity) {
        uint64_t capacity = s->capacity > 0 ? 2 * s->capacity : 1024;
        uint64_t *hints = realloc(s->hints, capacity * sizeof(*hints));
        if (hints == NULL) {
            return;
        }
        s->hints = hints;
        s->capacity = capacity;
    }
    s->hints[s->n++] = hint;
    set_place(t, hint, s->n);
}

static void near_drop(struct lotus_table *t, uint64_t hint)
{
    struct near_set *s = t->near;
    uint64_t place =
        atomic_exchange_explicit(word_of(t, hint), 0, memory_order_relaxed) >> USES_BITS;
    if (place == 0) {
        return;
    }
    HK_ASSERT(place <= s->n && s->hints[place - 1] == hint);
    s->hints[place - 1] = s->hints[--s->n];
    if (place - 1 < s->n) {
        set_place(t, s->hints[place - 1], place);
    }
}

static void count(struct near_set *s, const struct row_read *before, const struct row_read *after)
{
    uint32_t was = near_bytes_of(before), is = near_bytes_of(after);
    /* relaxed: numbers, changed under the latch. */
    atomic_fetch_add_explicit(&s->bytes, (uint64_t)is - was, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->rows, (uint64_t)(is != 0) - (was != 0), memory_order_relaxed);
}

void near_changed(struct lotus_table *t, struct store_thread *thread, const struct row_read *before,
                  const struct row_read *after)
{
    struct near_set *s = t->near;
    if (s == NULL) {
        return;
    }
    bool was = near_bytes_of(before) != 0, is = near_bytes_of(after) != 0;
    bool stays = was && is && before->hint == after->hint;
    if (was || is) {
        spin_lock(&s->latch);
        count(s, before, after);
        if (was && !stays) {
            near_drop(t, before->hint);
        }
        if (is && !stays) {
            near_add(t, after->hint);
        }
        spin_unlock(&s->latch);
    }
    uint64_t named = before != NULL ? before->far.id : 0;
    if (named != 0 && (after == NULL || after->far.id != named)) {
        t->let_go(t->context, thread, &before->far);
    }
}

void near_used(const struct lotus_table *t, uint64_t hint)
{
    _Atomic uint64_t *word = word_of(t, hint);
    if ((atomic_load_explicit(word, memory_order_relaxed) & USES_MASK) < USES_MAX) {
        atomic_fetch_add_explicit(word, 1, memory_order_relaxed);
    }
}

void near_met(const struct lotus_table *t, const struct row_read *read, struct near_sum *sum)
{
    (void)t;
    sum->rows += near_bytes_of(read) != 0;
    sum->bytes += near_bytes_of(read);
}

const char *near_broken(const struct lotus_table *t, const struct near_sum *sum)
{
    if (sum->rows != lotus_table_near_rows(t) || sum->bytes != lotus_table_near_bytes(t)) {
        return "rows that are near are not as many as counted";
    }
    for (uint64_t i = 0; t->near != NULL && i < t->near->n; i++) {
        if (atomic_load(word_of(t, t->near->hints[i])) >> USES_BITS != i + 1) {
            return "a row that is near does not know its place";
        }
    }
    return t->near != NULL && t->near->n > sum->rows ? "what is not near is among what is" : NULL;
}

/* ---- Who makes room ---- */

static uint32_t sample(struct near_set *s, uint64_t hints[SAMPLE])
{
    uint32_t n = 0;
    spin_lock(&s->latch);
    for (; n < SAMPLE && n < s->n; n++) {
        hints[n] = s->hints[random_below(&s->random, s->n)];
    }
    spin_unlock(&s->latch);
    return n;
}

static void halve(const struct lotus_table *t, uint64_t hint)
{
    _Atomic uint64_t *word = word_of(t, hint);
    uint64_t old = atomic_load_explicit(word, memory_order_relaxed);
    uint64_t halved = (old & ~USES_MASK) | (old & USES_MASK) / 2u;
    /* Who comes between counts for this time. */
    (void)atomic_compare_exchange_strong_explicit(word, &old, halved, memory_order_relaxed,
                                                  memory_order_relaxed);
}

bool lotus_table_victim(struct lotus_table *table, struct store_thread *thread, void *buffer,
                        struct lotus_victim *victim_out)
{
    uint64_t hints[SAMPLE], least = UINT64_MAX, chosen = 0;
    uint8_t *key_at = (uint8_t *)buffer + STORE_INLINE_MAX;
    uint32_t n = sample(table->near, hints);
    struct row_read read;
    struct bytes key;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t uses =
            atomic_load_explicit(word_of(table, hints[i]), memory_order_relaxed) & USES_MASK;
        chosen = uses < least ? hints[i] : chosen;
        least = uses < least ? uses : least;
    }
    for (uint32_t i = 0; i < n; i++) {
        halve(table, hints[i]);
    }
    if (n == 0 || record_key(table->records, thread, chosen, key_at, &key) != HK_OK ||
        !row_find(table, thread, key, chosen, true, buffer, &read) || near_bytes_of(&read) == 0) {
        return false;
    }
    *victim_out = (struct lotus_victim){
        .key = key, .value = read.value, .version = read.head.version, .far = read.far};
    return true;
}

/* ---- Near to far, and back ---- */

void entry_exchange(struct lotus_table *t, struct store_thread *thread, struct bytes key,
                    const struct row_read *before, const struct row_read *after)
{
    near_changed(t, thread, before, after);
    HK_ASSERT(tree_update(t->tree, thread, key, after->hint, NULL) == HK_OK);
    HK_ASSERT(record_free(t->records, thread, before->hint, key) == HK_OK);
}

/* A record with that front, which takes the place of that of `before`. HK_ERR_NOMEM. */
static int exchange(struct lotus_table *t, struct store_thread *thread, struct bytes key,
                    const struct row_read *before, const struct row_front *front,
                    struct bytes value, uint64_t *hint_out)
{
    struct row_read after = {.head = front->head, .far = front->far};
    struct record_value parts = {.head = row_front(front), .rest = value};
    int err = record_create_parts(t->records, thread, key, &parts, &after.hint);
    if (err == HK_OK) {
        entry_exchange(t, thread, key, before, &after);
        *hint_out = after.hint;
    }
    return err;
}

static enum table_word word_of_error(int err)
{
    return err == HK_OK ? TABLE_DONE : err == HK_ERR_NOMEM ? TABLE_NOMEM : TABLE_TOOBIG;
}

static bool same_cell(const struct lotus_far *a, const struct lotus_far *b)
{
    return a->id == b->id && a->life == b->life && a->node == b->node;
}

bool lotus_table_is_far(const struct lotus_table *table, struct store_thread *thread,
                        struct bytes key, uint64_t hint, struct lotus_far *far_out)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u];
    struct row_read read;
    bool found = row_find(table, thread, key, hint, false, buffer, &read);
    *far_out = read.far;
    return found && (read.head.flags & ROW_FAR) != 0;
}

enum table_word lotus_table_let_go(struct lotus_table *table, struct store_thread *thread,
                                   struct bytes key, uint64_t version, const struct lotus_far *far)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u], hint;
    bool as_stored = lotus_rule_on(&table->lotus, LOTUS_RULE_FAR_STORED);
    enum table_word word = TABLE_REFUSED;
    struct row_read read;
    struct unowned u;
    if (unowned_begin(table, key, false, &u) &&
        row_find(table, thread, key, 0, true, buffer, &read) && near_bytes_of(&read) != 0 &&
        (read.head.version == version || !as_stored) &&
        (read.far.id == 0 || same_cell(&read.far, far))) {
        uint64_t flags = read.head.flags & ((UINT64_C(1) << ROW_NEAR_AT) - 1u);
        struct row_front front = {
            .head = {.version = read.head.version, .flags = flags | ROW_CELL | ROW_FAR},
            .far = *far};
        uint32_t deadline = (flags & KEY_DEADLINE) != 0 ? 8 : 0;
        word = word_of_error(
            exchange(table, thread, key, &read, &front, bytes_of(read.value.at, deadline), &hint));
    }
    unowned_end(&u);
    return word;
}

/* The row is near: in the cell as well if the front says so. */
static int bring(struct lotus_table *t, struct store_thread *thread, struct bytes key,
                 const struct row_read *read, struct bytes value, uint64_t cell, uint64_t *hint_out)
{
    uint64_t flags = read->head.flags & ~((uint64_t)ROW_FAR | ROW_CELL);
    struct row_front front = {.head = {.version = read->head.version,
                                       .flags = flags | cell | (uint64_t)value.n << ROW_NEAR_AT}};
    if (cell != 0) {
        front.far = read->far;
    }
    return exchange(t, thread, key, read, &front, value, hint_out);
}

uint64_t lotus_table_bring(struct lotus_table *table, struct store_thread *thread,
                           struct lotus_holder *holder, struct bytes key,
                           const struct lotus_far *far, struct bytes value)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u], hint;
    struct lotus_name name = lotus_name(table, false, key);
    struct bucket *b = lotus_bucket(table, &name);
    struct row_read read;
    bool brought = false;
    spin_lock(&b->latch);
    uint32_t number = named_mine(table, named_find(b, &name), holder);
    const struct lock_request *r = &table->locks.requests[number];
    if (number != 0 && r->state == LOCK_OWNS &&
        row_find(table, thread, key, 0, false, buffer, &read) && (read.head.flags & ROW_FAR) != 0 &&
        same_cell(&read.far, far) &&
        bring(table, thread, key, &read, value, ROW_CELL, &hint) == HK_OK) {
        struct held *held = &table->held[number];
        held->hint = held->hint == read.hint ? hint : held->hint;
        brought = true;
    }
    spin_unlock(&b->latch);
    return brought ? hint : 0;
}

enum table_word lotus_table_home(struct lotus_table *table, struct store_thread *thread,
                                 struct bytes key, const struct lotus_far *far, struct bytes value)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u], hint;
    enum table_word word = TABLE_WAITS;
    struct row_read read;
    struct unowned u;
    if (unowned_begin(table, key, false, &u)) {
        word = TABLE_REFUSED;
        if (row_find(table, thread, key, 0, true, buffer, &read) && same_cell(&read.far, far)) {
            bool is_far = (read.head.flags & ROW_FAR) != 0;
            word = word_of_error(
                bring(table, thread, key, &read, is_far ? value : read.value, 0, &hint));
        }
    }
    unowned_end(&u);
    return word;
}
