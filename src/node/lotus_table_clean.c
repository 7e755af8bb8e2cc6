/* Ghosts and their cleaner (N1). A ghost is queued when the try that made it, or that found it, is
 * over; when it is due and nobody has its row's lock nor its gap's, or waits for them, its entry
 * goes. A row that was written again meanwhile stays, and may be queued again. */
#include <string.h>

#include "node/lotus_table_state.h"

struct ghost *ghost_create(struct store_thread *thread, struct bytes key)
{
    struct ghost *g = store_alloc(thread, sizeof(*g) + key.n, false);
    if (g != NULL) {
        *g = (struct ghost){.key_n = key.n};
        memcpy(g + 1, key.at, key.n);
    }
    return g;
}

void ghost_destroy(struct store_thread *thread, struct ghost *g)
{
    if (g != NULL) {
        store_free(thread, g, sizeof(*g) + g->key_n);
    }
}

static void list_destroy(struct store_thread *thread, struct ghost *g)
{
    while (g != NULL) {
        struct ghost *next = g->next;
        ghost_destroy(thread, g);
        g = next;
    }
}

void ghosts_destroy(struct lotus_table *t, struct store_thread *thread)
{
    list_destroy(thread, t->coming);
    list_destroy(thread, t->first);
}

/* ---- The queue ---- */

void ghost_push(struct lotus_table *t, struct ghost *g)
{
    spin_lock(&t->queue);
    g->next = t->coming;
    t->coming = g;
    /* relaxed: a time to look, no more. 0: the cleaner is to see when it came. */
    atomic_store_explicit(&t->due_us, 0, memory_order_relaxed);
    spin_unlock(&t->queue);
}

/* Under the queue's latch, as the two below. */
static void append(struct lotus_table *t, struct ghost *g)
{
    g->next = NULL;
    *(t->first == NULL ? &t->first : &t->last->next) = g;
    t->last = g;
}

static void take_coming(struct lotus_table *t, uint64_t now_us)
{
    while (t->coming != NULL) {
        struct ghost *g = t->coming;
        t->coming = g->next;
        g->since_us = g->since_us == 0 ? now_us : g->since_us;
        append(t, g);
    }
}

static uint64_t due_of(const struct lotus_table *t)
{
    return t->first != NULL ? t->first->since_us + t->lotus.grace_us : UINT64_MAX;
}

/* The first that is due, off the queue; NULL: none is. */
static struct ghost *pop_due(struct lotus_table *t, uint64_t now_us)
{
    spin_lock(&t->queue);
    take_coming(t, now_us);
    struct ghost *g = t->first;
    if (g != NULL && due_of(t) <= now_us) {
        t->first = g->next;
    } else {
        g = NULL;
    }
    atomic_store_explicit(&t->due_us, due_of(t), memory_order_relaxed);
    spin_unlock(&t->queue);
    return g;
}

static void put_back(struct lotus_table *t, struct ghost *g, uint64_t now_us)
{
    spin_lock(&t->queue);
    g->since_us = now_us;
    append(t, g);
    /* Something may be coming. */
    if (atomic_load_explicit(&t->due_us, memory_order_relaxed) == UINT64_MAX) {
        atomic_store_explicit(&t->due_us, due_of(t), memory_order_relaxed);
    }
    spin_unlock(&t->queue);
}

uint64_t lotus_table_clean_due(const struct lotus_table *table)
{
    /* relaxed: a time to look, no more. */
    return atomic_load_explicit(&table->due_us, memory_order_relaxed);
}

/* ---- Cleaning ---- */

uint64_t lotus_table_forgotten(const struct lotus_table *table)
{
    /* acquire: pairs with the release below. Who finds that a row is not there, under its lock,
     * knows of its deletion's version. */
    return atomic_load_explicit(&table->forgotten, memory_order_acquire);
}

void lotus_table_forget(struct lotus_table *table, uint64_t version)
{
    uint64_t before = lotus_table_forgotten(table);
    while (before < version &&
           !atomic_compare_exchange_weak_explicit(&table->forgotten, &before, version,
                                                  memory_order_release, memory_order_acquire)) {
    }
}

bool unowned_begin(const struct lotus_table *t, struct bytes key, bool gap, struct unowned *u)
{
    struct lotus_name row = lotus_name(t, false, key), below = lotus_name(t, true, key);
    struct bucket *a = lotus_bucket(t, &row), *b = lotus_bucket(t, &below);
    u->low = a < b ? a : b;
    u->high = a < b ? b : a;
    spin_lock(&u->low->latch);
    if (u->high != u->low) {
        spin_lock(&u->high->latch);
    }
    return named_find(a, &row) == NULL && (!gap || named_find(b, &below) == NULL);
}

void unowned_end(struct unowned *u)
{
    if (u->high != u->low) {
        spin_unlock(&u->high->latch);
    }
    spin_unlock(&u->low->latch);
}

enum table_word entry_remove(struct lotus_table *t, struct store_thread *thread, struct bytes key)
{
    uint64_t hint, buffer[STORE_INLINE_MAX / 8u];
    struct row_read before;
    if (t->near != NULL && row_find(t, thread, key, 0, false, buffer, &before)) {
        near_changed(t, thread, &before, NULL);
    }
    if (tree_delete(t->tree, thread, key, &hint) == HK_OK) {
        HK_ASSERT(record_free(t->records, thread, hint, key) == HK_OK);
    }
    return TABLE_DONE;
}

/* A row that was a ghost is to be queued again when it becomes one. */
static enum table_word forget_queue(struct lotus_table *t, struct store_thread *thread,
                                    struct bytes key, struct row_read *read)
{
    read->head.flags &= ~(uint64_t)ROW_QUEUED;
    struct row_front front = {.head = read->head, .far = read->far};
    struct record_value value = {.head = row_front(&front), .rest = read->value};
    void *spare = NULL;
    int err = record_write_parts(t->records, thread, read->hint, key, &value, &spare);
    return err == HK_OK ? TABLE_DONE : TABLE_NOMEM;
}

/* DONE: the queue is over with it. */
static enum table_word clean(struct lotus_table *t, struct store_thread *thread, struct bytes key)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u];
    struct row_read read;
    struct unowned u;
    bool gap = lotus_rule_on(&t->lotus, LOTUS_RULE_CLEANER);
    enum table_word word = TABLE_WAITS;
    if (unowned_begin(t, key, gap, &u)) {
        word = TABLE_DONE;
        if (row_find(t, thread, key, 0, true, buffer, &read)) {
            if ((read.head.flags & LOTUS_ROW_ABSENT) == 0) {
                word = forget_queue(t, thread, key, &read);
            } else {
                lotus_table_forget(t, read.head.version);
                word = entry_remove(t, thread, key);
                atomic_fetch_sub_explicit(&t->ghosts, 1, memory_order_relaxed);
            }
        }
    }
    unowned_end(&u);
    return word;
}

bool lotus_table_clean(struct lotus_table *table, struct store_thread *thread, uint64_t now_us,
                       uint32_t most)
{
    for (uint32_t i = 0; i < most; i++) {
        struct ghost *g = pop_due(table, now_us);
        if (g == NULL) {
            return false;
        }
        if (clean(table, thread, bytes_of(g + 1, g->key_n)) == TABLE_DONE) {
            ghost_destroy(thread, g);
        } else {
            put_back(table, g, now_us);
        }
    }
    return lotus_table_clean_due(table) <= now_us;
}
