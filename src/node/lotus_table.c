/* The table of a memory server's rows: its life, tries, and points. */
#include "node/lotus_table.h"

#include <stdlib.h>
#include <string.h>

#include "node/lotus_table_state.h"
#include "store/pages.h"

/* ---- Life ---- */

static void free_arrays(struct lotus_table *t)
{
    if (t->buckets_memory == NULL && t->buckets != NULL) {
        pages_unmap(t->buckets, t->buckets_n * sizeof(*t->buckets));
    }
    free(t->buckets_memory);
    free(t->lines_memory);
    free(t->locks.requests);
    free(t->locks.statuses);
    free(t->held);
    near_destroy(t);
    free(t);
}

/* Zeroed, in whole cache lines; pages that are never touched are not there. *memory_out: what to
 * free. */
static void *lines_of(size_t n, void **memory_out)
{
    *memory_out = calloc(n + 1u, 64);
    uintptr_t address = (uintptr_t)*memory_out;
    return address == 0 ? NULL : (uint8_t *)*memory_out + (64u - address % 64u) % 64u;
}

static bool make_arrays(struct lotus_table *t)
{
    /* Few enough to stay near: there are seldom as many requests as there may be, and if there
     * are, most are a scan's. */
    t->buckets_n = 64;
    while (t->buckets_n < t->lotus.locks_max / 32u) {
        t->buckets_n *= 2u;
    }
    size_t requests = (size_t)t->lotus.locks_max + 1u;
    size_t bytes = t->buckets_n * sizeof(*t->buckets);
    t->buckets = bytes < PAGES_HUGE_BYTES ? lines_of(t->buckets_n, &t->buckets_memory)
                                          : pages_map(bytes, PAGES_HUGE_BYTES, true);
    t->lines = lines_of((size_t)t->statuses_n * (sizeof(*t->lines) / 64u), &t->lines_memory);
    t->locks.requests = calloc(requests, sizeof(*t->locks.requests));
    t->locks.statuses = calloc(t->statuses_n, sizeof(*t->locks.statuses));
    t->held = calloc(requests, sizeof(*t->held));
    return t->buckets != NULL && t->lines != NULL && t->locks.requests != NULL &&
           t->locks.statuses != NULL && t->held != NULL;
}

int lotus_table_create(const struct lotus_table_config *config, struct store_thread *thread,
                       struct lotus_table **table_out)
{
    HK_ASSERT(config->statuses_n > 0 && config->lotus->locks_max > 0 &&
              config->lotus->locks_max < UINT32_MAX / 2u && config->lotus->try_locks_max > 0);
    struct lotus_table *t = aligned_alloc(64, sizeof(*t));
    if (t == NULL) {
        return HK_ERR_NOMEM;
    }
    memset(t, 0, sizeof(*t));
    t->lotus = *config->lotus;
    t->woken = config->woken;
    t->let_go = config->let_go;
    t->context = config->context;
    t->store = config->store;
    t->statuses_n = config->statuses_n;
    t->locks.config = &t->lotus.lock;
    t->never_used = 1;
    /* Half of all requests, at most, wait where only one holder gets them. */
    t->line_keeps = t->lotus.locks_max / 2u / t->statuses_n;
    t->line_keeps = t->line_keeps < 32u ? t->line_keeps : 32u;
    atomic_init(&t->due_us, UINT64_MAX);
    int err = make_arrays(t) ? HK_OK : HK_ERR_NOMEM;
    if (err == HK_OK && t->lotus.near_max != 0) {
        err = near_create(t);
    }
    if (err == HK_OK) {
        err = tree_create(t->store, thread, &t->tree);
    }
    if (err == HK_OK) {
        err = records_create(t->store, thread, &t->records);
        if (err != HK_OK) {
            tree_destroy(t->tree, thread);
        }
    }
    if (err != HK_OK) {
        free_arrays(t);
        return err;
    }
    *table_out = t;
    return HK_OK;
}

void lotus_table_destroy(struct lotus_table *table, struct store_thread *thread)
{
    if (table == NULL) {
        return;
    }
    ghosts_destroy(table, thread);
    tree_destroy(table->tree, thread);
    free_arrays(table);
}

/* ---- Tries ---- */

static struct try_status *status_of(const struct lotus_table *t, uint32_t status)
{
    return &t->locks.statuses[status];
}

void lotus_table_begin(struct lotus_table *table, struct lotus_holder *holder)
{
    HK_ASSERT(holder->status < table->statuses_n && holder->first == 0);
    holder->generation = try_begin(status_of(table, holder->status));
    holder->locks = 0;
    holder->waits = 0;
    holder->gap = 0;
}

enum try_state lotus_table_state(const struct lotus_table *table, const struct lotus_holder *holder)
{
    return try_state(status_of(table, holder->status), holder->generation);
}

bool lotus_table_prepare(struct lotus_table *table, struct lotus_holder *holder)
{
    return try_prepare(status_of(table, holder->status), holder->generation);
}

bool lotus_table_wound(struct lotus_table *table, uint32_t status, uint64_t generation)
{
    if (!try_wound(status_of(table, status), generation)) {
        return false;
    }
    table->woken(table->context, status, generation);
    return true;
}

void lotus_table_end(struct lotus_table *table, struct store_thread *thread,
                     struct lotus_holder *holder)
{
    lotus_let_all_go(table, thread, holder);
    try_end(status_of(table, holder->status), holder->generation);
    *holder = (struct lotus_holder){.status = holder->status};
}

/* ---- Points ---- */

void lotus_table_prefetch(const struct lotus_table *table, struct bytes key, uint64_t hint,
                          bool value)
{
    struct lotus_name name = lotus_name(table, false, key);
    __builtin_prefetch(lotus_bucket(table, &name), 1);
    if (hint != 0) {
        record_prefetch(table->records, hint, value);
    }
}

static void count_hint(struct lotus_table *t, const struct lotus_holder *h, uint64_t given,
                       const struct row_read *read)
{
    if (given != 0) {
        holder_count(t, h, given == read->hint ? COUNT_HINTS_GOOD : COUNT_HINTS_STALE, 1);
    }
}

enum table_word lotus_table_point(struct lotus_table *table, struct store_thread *thread,
                                  struct lotus_holder *holder, struct bytes key, uint64_t hint,
                                  enum lock_mode mode, bool values, void *buffer,
                                  struct lotus_row *row_out)
{
    struct lotus_item item = {
        .mode = (uint8_t)mode, .flags = values ? 0 : LOTUS_ITEM_KEYS, .hint = hint, .key = key};
    return lotus_table_item(table, thread, holder, &item, buffer, row_out);
}

enum table_word lotus_table_item(struct lotus_table *table, struct store_thread *thread,
                                 struct lotus_holder *holder, const struct lotus_item *item,
                                 void *buffer, struct lotus_row *row_out)
{
    bool values = (item->flags & LOTUS_ITEM_KEYS) == 0, writes = item->mode == LOCK_X;
    uint32_t number = 0;
    struct row_read read;
    enum table_word word = lotus_settle(table, holder);
    if (word == TABLE_DONE && (writes || lotus_rule_on(&table->lotus, LOTUS_RULE_READ_LOCK))) {
        word = lotus_lock(table, thread, holder, false, item->key, (enum lock_mode)item->mode,
                          &number);
    }
    if (word != TABLE_DONE) {
        return word;
    }
    bool found = row_find(table, thread, item->key, item->hint, values, buffer, &read);
    count_hint(table, holder, item->hint, &read);
    if (!found && writes) {
        word = lotus_insert(table, thread, holder, number, item, &read);
        if (word != TABLE_DONE) {
            return word;
        }
    }
    if (writes) {
        row_note(table, number, &read);
    }
    holder_far(table, holder, &read, values);
    row_tell(&read, values, row_out);
    return TABLE_DONE;
}
