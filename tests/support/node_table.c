#include "support/node_table.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void woken(void *context, uint32_t status, uint64_t generation)
{
    struct table_rig *rig = context;
    assert_true(status < TABLE_HOLDERS);
    if (rig->holders[status].generation == generation) {
        rig->woken[status]++;
    }
    void (*between)(struct table_rig *) = rig->between;
    rig->between = NULL;
    if (between != NULL) {
        between(rig);
    }
}

static struct bytes text_of(const char *text)
{
    return bytes_of(text, (uint32_t)strlen(text));
}

void table_open(struct table_rig *rig)
{
    struct lotus_config *l = &rig->lotus;
    l->locks_max = l->locks_max != 0 ? l->locks_max : 1024;
    l->try_locks_max = l->try_locks_max != 0 ? l->try_locks_max : 512;
    l->grace_us = l->grace_us != 0 ? l->grace_us : 1000;
    rig->now_us = 1000000;
    assert_int_equal(store_create(&rig->memory, &rig->store), HK_OK);
    assert_int_equal(store_thread_register(rig->store, &rig->thread), HK_OK);
    struct lotus_table_config config = {.lotus = l,
                                        .store = rig->store,
                                        .statuses_n = TABLE_HOLDERS,
                                        .woken = woken,
                                        .context = rig};
    assert_int_equal(lotus_table_create(&config, rig->thread, &rig->table), HK_OK);
    for (uint32_t i = 0; i < TABLE_HOLDERS; i++) {
        rig->holders[i] = (struct lotus_holder){.status = i};
    }
}

void table_check(struct table_rig *rig)
{
    const char *broken = lotus_table_check(rig->table, rig->thread);
    if (broken != NULL) {
        fail_msg("%s", broken);
    }
}

void table_close(struct table_rig *rig)
{
    struct lotus_table_stats stats;
    table_check(rig);
    lotus_table_stats(rig->table, &stats);
    assert_int_equal(stats.locks, 0);
    assert_int_equal(stats.requests, 0);
    lotus_table_destroy(rig->table, rig->thread);
    store_thread_unregister(rig->thread);
    store_destroy(rig->store);
}

void table_begin(struct table_rig *rig, uint32_t holder, uint64_t age)
{
    struct lotus_holder *h = &rig->holders[holder];
    h->age = (struct lock_age){.us = age, .who = holder + 1u};
    lotus_table_begin(rig->table, h);
    rig->woken[holder] = 0;
}

static enum table_word point(struct table_rig *rig, uint32_t holder, const char *key,
                             enum lock_mode mode)
{
    return lotus_table_point(rig->table, rig->thread, &rig->holders[holder], text_of(key), 0, mode,
                             true, rig->buffer, &rig->row);
}

enum table_word table_read(struct table_rig *rig, uint32_t holder, const char *key)
{
    return point(rig, holder, key, LOCK_S);
}

enum table_word table_take(struct table_rig *rig, uint32_t holder, const char *key)
{
    return point(rig, holder, key, LOCK_X);
}

bool table_prepare(struct table_rig *rig, uint32_t holder)
{
    return lotus_table_prepare(rig->table, &rig->holders[holder]);
}

void table_write(struct table_rig *rig, uint32_t holder, const char *key, const char *value)
{
    struct lotus_row row = {.key = text_of(key), .version = ++rig->now_us};
    if (value == NULL) {
        row.flags = LOTUS_ROW_ABSENT;
    } else {
        row.value = text_of(value);
    }
    assert_int_equal(
        lotus_table_write(rig->table, rig->thread, &rig->holders[holder], &row, rig->now_us),
        TABLE_DONE);
}

void table_end(struct table_rig *rig, uint32_t holder)
{
    lotus_table_end(rig->table, rig->thread, &rig->holders[holder]);
    store_quiescent(rig->thread);
}

void table_set(struct table_rig *rig, const char *key, const char *value)
{
    table_begin(rig, 0, 1);
    assert_int_equal(table_take(rig, 0, key), TABLE_DONE);
    assert_true(table_prepare(rig, 0));
    table_write(rig, 0, key, value);
    table_end(rig, 0);
}

const char *table_get(struct table_rig *rig, const char *key)
{
    static char value[512];
    table_begin(rig, 0, 1);
    assert_int_equal(table_read(rig, 0, key), TABLE_DONE);
    bool absent = (rig->row.flags & LOTUS_ROW_ABSENT) != 0;
    snprintf(value, sizeof(value), "%.*s", (int)rig->row.value.n, (const char *)rig->row.value.at);
    table_end(rig, 0);
    return absent ? NULL : value;
}

/* ---- Scans ---- */

void table_scan_init(struct table_scan *scan, const char *from, const char *to, uint32_t limit,
                     bool reverse)
{
    *scan = (struct table_scan){
        .scan.item = {.mode = LOCK_S,
                      .flags = (uint8_t)(LOTUS_ITEM_RANGE | (reverse ? LOTUS_ITEM_REVERSE : 0)),
                      .limit = limit,
                      .key = text_of(from),
                      .end = text_of(to)}};
}

static void append(char *at, size_t size, const struct lotus_row *row)
{
    size_t n = strlen(at);
    if ((row->flags & LOTUS_ROW_ABSENT) != 0) {
        snprintf(at + n, size - n, "%.*s(%llu) ", (int)row->key.n, (const char *)row->key.at,
                 (unsigned long long)row->version);
        return;
    }
    snprintf(at + n, size - n, "%.*s=%.*s ", (int)row->key.n, (const char *)row->key.at,
             (int)row->value.n, (const char *)row->value.at);
}

enum table_word table_scan(struct table_rig *rig, uint32_t holder, struct table_scan *scan)
{
    bool more = true;
    enum table_word word = TABLE_DONE;
    while (word == TABLE_DONE && more) {
        word = lotus_table_scan(rig->table, rig->thread, &rig->holders[holder], &scan->scan,
                                rig->buffer, &rig->row, &more);
        if (word == TABLE_DONE && more) {
            append(scan->rows, sizeof(scan->rows), &rig->row);
        }
    }
    return word;
}

void table_scan_end(struct table_rig *rig, struct table_scan *scan)
{
    lotus_scan_end(&scan->scan, rig->thread);
}

const char *table_entries(struct table_rig *rig)
{
    static char entries[1024];
    uint8_t after[STORE_INLINE_MAX];
    uint32_t n = 0;
    entries[0] = '\0';
    while (lotus_table_next(rig->table, rig->thread, bytes_of(after, n), n == 0, rig->buffer,
                            &rig->row)) {
        append(entries, sizeof(entries), &rig->row);
        n = rig->row.key.n;
        memcpy(after, rig->row.key.at, n);
    }
    return entries;
}
