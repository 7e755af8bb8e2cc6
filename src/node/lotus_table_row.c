/* Rows: what stands behind a key of the index, and how it is read and written. */
#include <string.h>

#include "node/lotus_table_state.h"

/* Behind the head may stand the name of a cell, then a deadline. */
#define HEAD_AND_DEADLINE (LOTUS_ROW_HEAD + (uint32_t)sizeof(struct lotus_far) + 8u)

/* False: the hint is of no such row. */
static bool read_by_hint(const struct lotus_table *t, struct store_thread *thread, struct bytes key,
                         uint64_t hint, bool values, void *buffer, struct row_read *read_out)
{
    struct bytes all;
    int err =
        values ? record_read(t->records, thread, hint, key, buffer, STORE_INLINE_MAX, &all)
               : record_read_head(t->records, thread, hint, key, buffer, HEAD_AND_DEADLINE, &all);
    if (err != HK_OK) {
        return false;
    }
    HK_ASSERT(all.n >= LOTUS_ROW_HEAD);
    memcpy(&read_out->head, all.at, LOTUS_ROW_HEAD);
    uint32_t head = LOTUS_ROW_HEAD;
    read_out->far.id = 0;
    if ((read_out->head.flags & ROW_CELL) != 0) {
        memcpy(&read_out->far, all.at + head, sizeof read_out->far);
        head += (uint32_t)sizeof read_out->far;
    }
    read_out->hint = hint;
    read_out->value = bytes_of(all.at + head, all.n - head);
    return (read_out->head.flags & ROW_COMING) == 0;
}

bool row_find(const struct lotus_table *t, struct store_thread *thread, struct bytes key,
              uint64_t hint, bool values, void *buffer, struct row_read *read_out)
{
    /* An entry's record may be exchanged between the two looks, where no lock is held. */
    while (hint == 0 || !read_by_hint(t, thread, key, hint, values, buffer, read_out)) {
        if (tree_find(t->tree, thread, key, &hint) != HK_OK) {
            *read_out = (struct row_read){.head.flags = LOTUS_ROW_ABSENT};
            return false;
        }
    }
    return true;
}

void row_tell(const struct row_read *read, bool values, struct lotus_row *row_out)
{
    uint32_t deadline = (read->head.flags & KEY_DEADLINE) != 0 ? 8 : 0;
    struct bytes value = read->value;
    if (!values && value.n > deadline) {
        value.n = deadline;
    }
    *row_out = (struct lotus_row){
        .flags = (uint8_t)read->head.flags,
        .version = read->head.version,
        .hint = read->hint,
        .value = value,
    };
}

void row_note(struct lotus_table *t, uint32_t number, const struct row_read *read)
{
    struct held *held = &t->held[number];
    held->hint = read->hint;
    held->flags &= (uint8_t) ~(HELD_ABSENT | HELD_QUEUED);
    held->flags |= (read->head.flags & LOTUS_ROW_ABSENT) != 0 ? HELD_ABSENT : 0;
    held->flags |= (read->head.flags & ROW_QUEUED) != 0 ? HELD_QUEUED : 0;
}

void held_drop(struct lotus_table *t, struct store_thread *thread, struct held *held)
{
    record_spare_give(thread, held->spare);
    if (held->fresh != 0) {
        record_drop(t->records, thread, held->fresh);
    }
    if (held->ghost != NULL && (held->flags & HELD_QUEUED) != 0) {
        ghost_push(t, held->ghost);
    } else if (held->ghost != NULL) {
        ghost_destroy(thread, held->ghost);
    }
    held->spare = NULL;
    held->fresh = 0;
    held->ghost = NULL;
}

/* ---- Writing ---- */

static struct record_value value_of(const struct row_head *head, const struct lotus_row *row)
{
    bool absent = (row->flags & LOTUS_ROW_ABSENT) != 0;
    return (struct record_value){.head = bytes_of(head, LOTUS_ROW_HEAD),
                                 .rest = absent ? bytes_of(NULL, 0) : row->value};
}

int ghost_record(struct lotus_table *t, struct store_thread *thread, const struct lotus_item *item,
                 uint64_t *hint_out)
{
    struct row_head head = {.flags = LOTUS_ROW_ABSENT | ROW_QUEUED};
    struct record_value value = {.head = bytes_of(&head, LOTUS_ROW_HEAD)};
    /* What is longer will be out of line, and leaves the cell where it is. */
    if (item->room <= STORE_INLINE_MAX - LOTUS_ROW_HEAD) {
        value.room = item->room + LOTUS_ROW_HEAD;
    }
    return record_create_parts(t->records, thread, item->key, &value, hint_out);
}

/* The holder's request that owns X on the row; 0: none. */
static uint32_t owned(const struct lotus_table *t, const struct lotus_holder *h, struct bytes key)
{
    struct lotus_name name = lotus_name(t, false, key);
    struct bucket *b = lotus_bucket(t, &name);
    spin_lock(&b->latch);
    uint32_t number = named_mine(t, named_find(b, &name), h);
    const struct lock_request *r = &t->locks.requests[number];
    bool owns = number != 0 && r->state == LOCK_OWNS && r->mode == LOCK_X;
    spin_unlock(&b->latch);
    return owns ? number : 0;
}

bool lotus_table_owns(const struct lotus_table *table, const struct lotus_holder *holder,
                      struct bytes key)
{
    return owned(table, holder, key) != 0;
}

/* A row stays in a cell where it can: a cell that is too small for it gives way to another. */
static bool outgrows(const struct lotus_table *t, const struct held *held,
                     const struct lotus_row *row)
{
    return row->value.n + LOTUS_ROW_HEAD <= STORE_INLINE_MAX &&
           !record_fits(t->records, held->hint, row->key.n, row->value.n + LOTUS_ROW_HEAD);
}

static int make_fresh(struct lotus_table *t, struct store_thread *thread, struct held *held,
                      const struct lotus_row *row)
{
    struct row_head head = {.flags = ROW_COMING};
    struct record_value value = value_of(&head, row);
    if (held->fresh != 0) {
        record_drop(t->records, thread, held->fresh);
        held->fresh = 0;
    }
    return record_create_parts(t->records, thread, row->key, &value, &held->fresh);
}

/* What the write will need besides the cell that there is. */
static enum table_word make_sure(struct lotus_table *t, struct store_thread *thread,
                                 struct held *held, const struct lotus_row *row)
{
    bool made = true;
    if ((row->flags & LOTUS_ROW_ABSENT) != 0) {
        if (held->ghost == NULL && (held->flags & HELD_QUEUED) == 0) {
            held->ghost = ghost_create(thread, row->key);
            made = held->ghost != NULL;
        }
    } else if ((uint64_t)row->value.n + LOTUS_ROW_HEAD > record_value_max(t->records)) {
        return TABLE_TOOBIG;
    } else if (outgrows(t, held, row)) {
        bool good = held->fresh != 0 &&
                    record_fits(t->records, held->fresh, row->key.n, row->value.n + LOTUS_ROW_HEAD);
        made = good || make_fresh(t, thread, held, row) == HK_OK;
    } else if (row->value.n + LOTUS_ROW_HEAD > STORE_INLINE_MAX) {
        record_spare_give(thread, held->spare);
        held->spare = record_spare_take(thread, row->value.n + LOTUS_ROW_HEAD);
        made = held->spare != NULL;
    }
    return made ? TABLE_DONE : TABLE_NOMEM;
}

enum table_word lotus_table_reserve(struct lotus_table *table, struct store_thread *thread,
                                    struct lotus_holder *holder, const struct lotus_row *row)
{
    uint32_t number = owned(table, holder, row->key);
    struct held *held = &table->held[number];
    if (number == 0 || held->hint == 0 || (held->flags & HELD_RESERVED) != 0) {
        return TABLE_REFUSED;
    }
    enum table_word word = make_sure(table, thread, held, row);
    held->flags |= word == TABLE_DONE ? HELD_RESERVED : 0;
    return word;
}

/* The row's record, as the row is to be; memory is there. */
static void write_record(struct lotus_table *t, struct store_thread *thread, struct held *held,
                         const struct lotus_row *row, const struct row_head *head)
{
    struct record_value value = value_of(head, row);
    bool moves = (row->flags & LOTUS_ROW_ABSENT) == 0 && outgrows(t, held, row);
    uint64_t hint = moves ? held->fresh : held->hint;
    struct row_read before, after = {.head = *head, .hint = hint};
    uint64_t buffer[HEAD_AND_DEADLINE / 8u];
    if (t->near != NULL) {
        bool found = read_by_hint(t, thread, row->key, held->hint, false, buffer, &before);
        HK_ASSERT(found);
    }
    int err = record_write_parts(t->records, thread, hint, row->key, &value, &held->spare);
    HK_ASSERT(err == HK_OK);
    if (t->near != NULL) {
        near_changed(t, thread, &before, &after);
    }
    if (moves) {
        HK_ASSERT(tree_update(t->tree, thread, row->key, hint, NULL) == HK_OK);
        HK_ASSERT(record_free(t->records, thread, held->hint, row->key) == HK_OK);
        held->hint = hint;
        held->fresh = 0;
    }
}

enum table_word lotus_table_write(struct lotus_table *table, struct store_thread *thread,
                                  struct lotus_holder *holder, const struct lotus_row *row,
                                  uint64_t now_us)
{
    uint32_t number = owned(table, holder, row->key);
    if (number == 0 || table->held[number].hint == 0) {
        return TABLE_REFUSED;
    }
    struct held *held = &table->held[number];
    bool large = row->value.n + LOTUS_ROW_HEAD > STORE_INLINE_MAX;
    enum table_word word =
        large && held->spare != NULL ? TABLE_DONE : make_sure(table, thread, held, row);
    if (word != TABLE_DONE) {
        return word;
    }
    bool was_absent = (held->flags & HELD_ABSENT) != 0;
    bool absent = (row->flags & LOTUS_ROW_ABSENT) != 0;
    if (!absent && held->ghost != NULL) {
        /* Nobody else knows of it. */
        ghost_destroy(thread, held->ghost);
        held->ghost = NULL;
        held->flags &= (uint8_t)~HELD_QUEUED;
    } else if (absent) {
        held->flags |= HELD_QUEUED;
        if (held->ghost != NULL) {
            held->ghost->since_us = now_us;
        }
    }
    struct row_head head = {.version = row->version,
                            .flags = (row->flags & ~(uint64_t)LOTUS_ROW_END) |
                                     ((held->flags & HELD_QUEUED) != 0 ? ROW_QUEUED : 0) |
                                     near_flags(table, row)};
    write_record(table, thread, held, row, &head);
    held->flags &= (uint8_t) ~(HELD_ABSENT | HELD_RESERVED);
    held->flags |= absent ? HELD_ABSENT : 0;
    if (absent != was_absent) {
        atomic_fetch_add_explicit(&table->ghosts, absent ? 1 : -1, memory_order_relaxed);
    }
    return TABLE_DONE;
}
