/* The table as it is: entries one by one, rows that move in and out, counts, who has which lock,
 * and what must hold. */
#include <string.h>

#include "node/lotus_table_state.h"

/* ---- Entries ---- */

bool lotus_table_next(const struct lotus_table *table, struct store_thread *thread,
                      struct bytes after, bool inclusive, void *buffer, struct lotus_row *row_out)
{
    struct lotus_far far;
    bool near;
    return lotus_table_next_far(table, thread, after, inclusive, buffer, row_out, &far, &near);
}

bool lotus_table_next_far(const struct lotus_table *table, struct store_thread *thread,
                          struct bytes after, bool inclusive, void *buffer,
                          struct lotus_row *row_out, struct lotus_far *far_out, bool *near_out)
{
    struct tree_cursor c;
    struct bytes key;
    uint64_t hint;
    uint8_t *key_at = (uint8_t *)buffer + STORE_INLINE_MAX;
    tree_seek(table->tree, thread, after, !inclusive, TREE_FORWARDS, &c);
    while (tree_next(&c, &key, &hint)) {
        struct row_read read;
        if (row_find(table, thread, key, hint, true, buffer, &read)) {
            row_tell(&read, true, row_out);
            *far_out = read.far;
            *near_out = (read.head.flags & ROW_FAR) == 0;
            /* A longer key is where it stays until the thread is quiescent. */
            if (key.n <= TREE_KEY_INLINE) {
                memcpy(key_at, key.at, key.n);
                key.at = key_at;
            }
            row_out->key = key;
            return true;
        }
    }
    return false;
}

/* The next key in the index. */
static struct bytes next_of(const struct lotus_table *t, struct store_thread *thread,
                            struct bytes key, struct tree_cursor *c)
{
    struct bytes next;
    uint64_t hint;
    tree_seek(t->tree, thread, key, true, TREE_FORWARDS, c);
    return tree_next(c, &next, &hint) ? next : bytes_of(NULL, 0);
}

/* A new entry, if nobody has the gap. */
static enum table_word put_new(struct lotus_table *t, struct store_thread *thread, struct bytes key,
                               const struct row_read *now)
{
    struct tree_cursor c, again;
    struct bytes next = next_of(t, thread, key, &c);
    struct lotus_name name = lotus_name(t, true, next);
    struct bucket *b = lotus_bucket(t, &name);
    enum table_word word = TABLE_WAITS;
    spin_lock(&b->latch);
    bool gap_free = named_find(b, &name) == NULL || !lotus_rule_on(&t->lotus, LOTUS_RULE_MOVE_GAP);
    if (gap_free && bytes_equal(next_of(t, thread, key, &again), next)) {
        word =
            tree_insert(t->tree, thread, key, now->hint, NULL) == HK_OK ? TABLE_DONE : TABLE_NOMEM;
    }
    if (word == TABLE_DONE) {
        near_changed(t, thread, NULL, now);
    }
    spin_unlock(&b->latch);
    return word;
}

/* Another record for an entry, if nobody has its row. What it has may have made room since it was
 * looked at. */
static enum table_word put_over(struct lotus_table *t, struct store_thread *thread,
                                struct bytes key, const struct row_read *now)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u];
    struct row_read old;
    struct unowned u;
    enum table_word word = TABLE_WAITS;
    if (unowned_begin(t, key, false, &u) && row_find(t, thread, key, 0, false, buffer, &old)) {
        entry_exchange(t, thread, key, &old, now);
        word = TABLE_DONE;
    }
    unowned_end(&u);
    return word;
}

enum table_word lotus_table_put(struct lotus_table *table, struct store_thread *thread,
                                const struct lotus_row *row)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u];
    struct row_read old;
    bool absent = (row->flags & LOTUS_ROW_ABSENT) != 0;
    bool found = row_find(table, thread, row->key, 0, false, buffer, &old);
    bool was_ghost = found && (old.head.flags & LOTUS_ROW_ABSENT) != 0;
    bool queued = found && (old.head.flags & ROW_QUEUED) != 0;
    struct ghost *ghost = absent && !queued ? ghost_create(thread, row->key) : NULL;
    if (absent && !queued && ghost == NULL) {
        return TABLE_NOMEM;
    }
    struct row_head head = {.version = row->version,
                            .flags = (row->flags & ~(uint64_t)LOTUS_ROW_END) |
                                     (absent || queued ? ROW_QUEUED : 0) | near_flags(table, row)};
    struct row_read now = {.head = head};
    struct record_value value = {.head = bytes_of(&head, LOTUS_ROW_HEAD),
                                 .rest = absent ? bytes_of(NULL, 0) : row->value};
    int err = record_create_parts(table->records, thread, row->key, &value, &now.hint);
    enum table_word word = err == HK_OK          ? TABLE_DONE
                           : err == HK_ERR_NOMEM ? TABLE_NOMEM
                                                 : TABLE_TOOBIG;
    if (word == TABLE_DONE) {
        word = found ? put_over(table, thread, row->key, &now)
                     : put_new(table, thread, row->key, &now);
        if (word != TABLE_DONE) {
            record_drop(table->records, thread, now.hint);
        }
    }
    if (word != TABLE_DONE) {
        ghost_destroy(thread, ghost);
        return word;
    }
    if (ghost != NULL) {
        ghost_push(table, ghost);
    }
    atomic_fetch_add_explicit(&table->ghosts, (absent ? 1 : 0) - (was_ghost ? 1 : 0),
                              memory_order_relaxed);
    return TABLE_DONE;
}

enum table_word lotus_table_remove(struct lotus_table *table, struct store_thread *thread,
                                   struct bytes key)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u];
    struct row_read read;
    struct unowned u;
    enum table_word word = TABLE_WAITS;
    if (unowned_begin(table, key, true, &u)) {
        word = TABLE_DONE;
        if (row_find(table, thread, key, 0, false, buffer, &read)) {
            entry_remove(table, thread, key);
            atomic_fetch_sub_explicit(&table->ghosts,
                                      (read.head.flags & LOTUS_ROW_ABSENT) != 0 ? 1 : 0,
                                      memory_order_relaxed);
        }
    }
    unowned_end(&u);
    return word;
}

/* ---- Counts ---- */

void lotus_table_stats(const struct lotus_table *table, struct lotus_table_stats *stats_out)
{
    uint64_t sums[HOLDER_COUNTS] = {0};
    for (uint32_t i = 0; i < table->statuses_n; i++) {
        for (uint32_t k = 0; k < HOLDER_COUNTS; k++) {
            /* relaxed: each number is right by itself. */
            sums[k] += atomic_load_explicit(&table->lines[i].counts[k], memory_order_relaxed);
        }
    }
    struct tree_stats tree;
    tree_stats(table->tree, &tree);
    int64_t ghosts = atomic_load_explicit(&table->ghosts, memory_order_relaxed);
    ghosts = ghosts > 0 ? ghosts : 0;
    *stats_out = (struct lotus_table_stats){
        .rows = tree.keys > (uint64_t)ghosts ? tree.keys - (uint64_t)ghosts : 0,
        .ghosts = (uint64_t)ghosts,
        .locks = (int64_t)sums[COUNT_LOCKS] > 0 ? sums[COUNT_LOCKS] : 0,
        .requests = (int64_t)sums[COUNT_REQUESTS] > 0 ? sums[COUNT_REQUESTS] : 0,
        .granted = sums[COUNT_GRANTED],
        .waited = sums[COUNT_WAITED],
        .died = sums[COUNT_DIED],
        .wounded = sums[COUNT_WOUNDED],
        .looked_again = sums[COUNT_LOOKED_AGAIN],
        .hints_good = sums[COUNT_HINTS_GOOD],
        .hints_stale = sums[COUNT_HINTS_STALE],
        .near_rows = lotus_table_near_rows(table),
        .near_bytes = lotus_table_near_bytes(table),
    };
}

/* ---- Who has what ---- */

static void list_each_of(const struct lotus_table *t, struct named_lock *l,
                         void (*each)(void *context, const struct lotus_lock_row *row),
                         void *context)
{
    const uint32_t firsts[2] = {l->lock.owners, l->lock.waiters};
    for (uint32_t list = 0; list < 2; list++) {
        for (uint32_t i = firsts[list]; i != 0; i = t->locks.requests[i].next) {
            const struct lock_request *r = &t->locks.requests[i];
            struct lotus_lock_row row = {.gap = (l->kind & 1u) != 0,
                                         .infinite = l->kind >> 1 == 0,
                                         .key = bytes_of(named_key(l), l->kind >> 1),
                                         .mode = r->mode,
                                         .state = r->state,
                                         .status = r->status,
                                         .generation = r->generation,
                                         .age = r->age};
            row.try_state = (uint8_t)try_state(&t->locks.statuses[r->status], r->generation);
            each(context, &row);
        }
    }
}

void lotus_table_locks(const struct lotus_table *table, uint32_t most,
                       void (*each)(void *context, const struct lotus_lock_row *row), void *context)
{
    uint32_t seen = 0;
    for (uint32_t i = 0; i < table->buckets_n && seen < most; i++) {
        struct bucket *b = &table->buckets[i];
        spin_lock(&b->latch);
        for (struct named_lock *l = &b->first; l != NULL && seen < most; l = l->next) {
            if (!named_is_free(l)) {
                list_each_of(table, l, each, context);
                seen++;
            }
        }
        spin_unlock(&b->latch);
    }
}

/* ---- What must hold ---- */

struct checked {
    uint64_t entries, ghosts, locks, requests;
    struct near_sum near;
};

static const char *entries_broken(const struct lotus_table *t, struct store_thread *thread,
                                  struct checked *sum)
{
    uint64_t buffer[STORE_INLINE_MAX / 8u];
    struct tree_cursor c;
    struct bytes key;
    uint64_t hint;
    tree_seek(t->tree, thread, bytes_of(NULL, 0), false, TREE_FORWARDS, &c);
    while (tree_next(&c, &key, &hint)) {
        struct row_read read;
        if (!row_find(t, thread, key, hint, false, buffer, &read) || read.hint != hint) {
            return "an entry's hint is of no row";
        }
        bool ghost = (read.head.flags & LOTUS_ROW_ABSENT) != 0;
        if (ghost && (read.head.flags & ROW_QUEUED) == 0) {
            return "the cleaner will not hear of a ghost";
        }
        sum->entries++;
        sum->ghosts += ghost;
        near_met(t, &read, &sum->near);
    }
    return near_broken(t, &sum->near);
}

static const char *lock_wrong(const struct lotus_table *t, uint32_t bucket, struct named_lock *l,
                              struct checked *sum)
{
    struct lotus_name name =
        lotus_name(t, (l->kind & 1u) != 0, bytes_of(named_key(l), l->kind >> 1));
    if (lotus_bucket(t, &name) != &t->buckets[bucket] ||
        named_find(&t->buckets[bucket], &name) != l) {
        return "a lock is not where its name says";
    }
    const uint32_t firsts[2] = {l->lock.owners, l->lock.waiters};
    for (uint32_t list = 0; list < 2; list++) {
        for (uint32_t i = firsts[list]; i != 0; i = t->locks.requests[i].next) {
            if (t->held[i].lock != l || t->held[i].bucket != bucket) {
                return "a request does not know its lock";
            }
            sum->requests++;
        }
    }
    sum->locks++;
    return lock_broken(&t->locks, &l->lock);
}

static const char *locks_broken(const struct lotus_table *t, struct checked *sum)
{
    const char *broken = NULL;
    for (uint32_t i = 0; i < t->buckets_n && broken == NULL; i++) {
        for (struct named_lock *l = &t->buckets[i].first; l != NULL && broken == NULL;
             l = l->next) {
            if (!named_is_free(l)) {
                broken = lock_wrong(t, i, l, sum);
            } else if (l != &t->buckets[i].first) {
                broken = "a lock of nobody is kept";
            }
        }
    }
    return broken;
}

/* Requests that are free, in the pool and with holders. */
static uint64_t free_requests(const struct lotus_table *t)
{
    uint64_t n = t->lotus.locks_max + 1u - t->never_used;
    for (uint32_t i = t->free; i != 0; i = t->held[i].next) {
        n++;
    }
    for (uint32_t i = 0; i < t->statuses_n; i++) {
        n += t->lines[i].free_n;
    }
    return n;
}

const char *lotus_table_check(const struct lotus_table *table, struct store_thread *thread)
{
    struct checked sum = {.entries = 0};
    struct lotus_table_stats stats;
    lotus_table_stats(table, &stats);
    const char *broken = tree_check(table->tree);
    if (broken == NULL) {
        broken = entries_broken(table, thread, &sum);
    }
    if (broken == NULL) {
        broken = locks_broken(table, &sum);
    }
    if (broken != NULL) {
        return broken;
    }
    if (sum.entries != stats.rows + stats.ghosts || sum.ghosts != stats.ghosts) {
        return "rows and ghosts are not as many as counted";
    }
    if (sum.locks != stats.locks || sum.requests > stats.requests) {
        return "locks and requests are not as many as counted";
    }
    if (free_requests(table) + stats.requests != table->lotus.locks_max) {
        return "a request is lost";
    }
    return NULL;
}
