/* The table of a memory server's rows, rule by rule: each test is an execution of two or three
 * holders that breaks without the rule. node_lotus_serial_test looks for executions of its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "store/record.h"
#include "support/node_table.h"

static void open_with(struct table_rig *rig, enum lock_policy policy)
{
    *rig = (struct table_rig){.lotus.lock.policy = (uint8_t)policy};
    table_open(rig);
}

static void assert_read(struct table_rig *rig, uint32_t holder, const char *key, const char *value)
{
    assert_int_equal(table_read(rig, holder, key), TABLE_DONE);
    if (value == NULL) {
        assert_true((rig->row.flags & LOTUS_ROW_ABSENT) != 0);
        return;
    }
    assert_true((rig->row.flags & LOTUS_ROW_ABSENT) == 0);
    assert_int_equal(rig->row.value.n, strlen(value));
    assert_memory_equal(rig->row.value.at, value, strlen(value));
}

/* Prepares, writes one row and ends. */
static void commit(struct table_rig *rig, uint32_t holder, const char *key, const char *value)
{
    assert_true(table_prepare(rig, holder));
    table_write(rig, holder, key, value);
    table_end(rig, holder);
}

static uint64_t ghosts(const struct table_rig *rig)
{
    struct lotus_table_stats stats;
    lotus_table_stats(rig->table, &stats);
    return stats.ghosts;
}

/* ---- Points ---- */

static void test_rows_are_read_as_they_were_written(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WOUND_WAIT);
    assert_null(table_get(&rig, "k"));
    assert_string_equal(table_entries(&rig), "");
    table_set(&rig, "k", "1");
    assert_string_equal(table_get(&rig, "k"), "1");
    table_set(&rig, "k", "a longer value, which does not fit where the first one was");
    assert_string_equal(table_get(&rig, "k"),
                        "a longer value, which does not fit where the first one was");
    table_set(&rig, "k", NULL);
    assert_null(table_get(&rig, "k"));
    assert_int_equal(ghosts(&rig), 1);
    table_set(&rig, "k", "2");
    assert_int_equal(ghosts(&rig), 0);
    assert_string_equal(table_entries(&rig), "k=2 ");
    table_close(&rig);
}

/* A deletion's version stays with its ghost. */
static void test_a_ghost_tells_its_version(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    table_set(&rig, "k", "1");
    table_set(&rig, "k", NULL);
    table_begin(&rig, 1, 1);
    assert_read(&rig, 1, "k", NULL);
    assert_int_equal(rig.row.version, rig.now_us);
    assert_read(&rig, 1, "other", NULL);
    assert_int_equal(rig.row.version, 0);
    table_end(&rig, 1);
    table_close(&rig);
}

/* N8. */
static void test_a_forgotten_version_is_told(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    table_set(&rig, "k", "1");
    table_set(&rig, "k", NULL);
    assert_int_equal(lotus_table_forgotten(rig.table), 0);
    uint64_t version = rig.now_us;
    (void)lotus_table_clean(rig.table, rig.thread, rig.now_us, 10);
    rig.now_us += rig.lotus.grace_us + 1;
    (void)lotus_table_clean(rig.table, rig.thread, rig.now_us, 10);
    assert_int_equal(ghosts(&rig), 0);
    assert_int_equal(lotus_table_forgotten(rig.table), version);
    /* What goes with a slot that comes here counts, and less than is known does not. */
    lotus_table_forget(rig.table, version + 5);
    lotus_table_forget(rig.table, version + 3);
    assert_int_equal(lotus_table_forgotten(rig.table), version + 5);
    table_close(&rig);
}

static void test_values_and_keys_of_all_sizes(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WAIT_DIE);
    static const uint32_t sizes[] = {1, 31, 32, 33, 127, 128, 129, 300, 1000, 1008, 1009, 5000};
    char *key = calloc(1, 6000), *value = calloc(1, 6000);
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint32_t j = 0; j < sizeof(sizes) / sizeof(sizes[0]); j++) {
            memset(key, 'a' + (int)i, 6000);
            memset(value, 'a' + (int)j, 6000);
            key[sizes[i]] = value[sizes[j]] = '\0';
            table_set(&rig, key, value);
            table_begin(&rig, 1, 1);
            assert_read(&rig, 1, key, value);
            table_end(&rig, 1);
        }
        table_check(&rig);
    }
    free(key);
    free(value);
    table_close(&rig);
}

static void test_a_key_may_be_asked_for_twice(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    table_set(&rig, "k", "1");
    table_begin(&rig, 1, 1);
    assert_read(&rig, 1, "k", "1");
    assert_read(&rig, 1, "k", "1");
    assert_int_equal(rig.holders[1].locks, 1);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    assert_read(&rig, 1, "k", "1");
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    assert_int_equal(rig.holders[1].locks, 1);
    commit(&rig, 1, "k", "2");
    assert_string_equal(table_get(&rig, "k"), "2");
    table_close(&rig);
}

static void test_hints_are_checked(void **state)
{
    (void)state;
    struct table_rig rig;
    struct lotus_table_stats stats;
    open_with(&rig, LOCK_NO_WAIT);
    table_set(&rig, "a", "1");
    table_set(&rig, "b", "2");
    table_begin(&rig, 1, 1);
    assert_read(&rig, 1, "a", "1");
    uint64_t hint = rig.row.hint;
    assert_int_not_equal(hint, 0);
    /* The right one; another row's; one of nothing; none. */
    const char *keys[] = {"a", "b", "b", "b"};
    uint64_t hints[] = {hint, hint, UINT64_MAX, 0};
    for (uint32_t i = 0; i < 4; i++) {
        struct bytes key = bytes_of(keys[i], 1);
        assert_int_equal(lotus_table_point(rig.table, rig.thread, &rig.holders[1], key, hints[i],
                                           LOCK_S, true, rig.buffer, &rig.row),
                         TABLE_DONE);
        assert_int_equal(rig.row.value.at[0], i == 0 ? '1' : '2');
    }
    lotus_table_stats(rig.table, &stats);
    assert_int_equal(stats.hints_good, 1);
    assert_int_equal(stats.hints_stale, 2);
    table_end(&rig, 1);
    table_close(&rig);
}

static enum table_word take_item(struct table_rig *rig, struct lotus_item item)
{
    return lotus_table_item(rig->table, rig->thread, &rig->holders[1], &item, rig->buffer,
                            &rig->row);
}

/* A transaction that writes so many bytes, by the hint; the row's hint before it. */
static uint64_t write_sized(struct table_rig *rig, const char *key, uint64_t hint, uint32_t room,
                            uint32_t bytes)
{
    static uint8_t value[4096];
    struct bytes k = bytes_of(key, 1);
    struct lotus_row row = {.key = k, .version = ++rig->now_us, .value = bytes_of(value, bytes)};
    table_begin(rig, 1, 1);
    assert_int_equal(
        take_item(rig, (struct lotus_item){.mode = LOCK_X, .hint = hint, .room = room, .key = k}),
        TABLE_DONE);
    uint64_t met = rig->row.hint;
    assert_int_equal(lotus_table_reserve(rig->table, rig->thread, &rig->holders[1], &row),
                     TABLE_DONE);
    assert_true(table_prepare(rig, 1));
    assert_int_equal(
        lotus_table_write(rig->table, rig->thread, &rig->holders[1], &row, rig->now_us),
        TABLE_DONE);
    table_end(rig, 1);
    return met;
}

static uint64_t read_sized(struct table_rig *rig, const char *key, uint64_t hint, uint32_t bytes)
{
    table_begin(rig, 1, 1);
    assert_int_equal(
        take_item(rig, (struct lotus_item){.mode = LOCK_S, .hint = hint, .key = bytes_of(key, 1)}),
        TABLE_DONE);
    assert_int_equal(rig->row.value.n, bytes);
    uint64_t met = rig->row.hint;
    table_end(rig, 1);
    return met;
}

static uint64_t stale_hints(const struct table_rig *rig)
{
    struct lotus_table_stats stats;
    lotus_table_stats(rig->table, &stats);
    return stats.hints_stale;
}

/* Whoever made the ghost has been told its hint: the row is there, as long as it fits its cell. */
static void test_a_row_stays_where_its_ghost_was(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {0, 1, 8, 40, 100, 999, 1008, 1009, 4000};
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char key[2] = {(char)('a' + i), 0};
        uint64_t hint = write_sized(&rig, key, 0, sizes[i], sizes[i]);
        assert_int_equal(read_sized(&rig, key, hint, sizes[i]), hint);
        assert_int_equal(write_sized(&rig, key, hint, 0, sizes[i]), hint);
        /* What is out of line stays so: it has no cell to come back to. */
        uint32_t less = sizes[i] > STORE_INLINE_MAX - LOTUS_ROW_HEAD ? 2000 : sizes[i] / 2u;
        assert_int_equal(write_sized(&rig, key, hint, 0, less), hint);
        assert_int_equal(read_sized(&rig, key, hint, less), hint);
    }
    assert_int_equal(stale_hints(&rig), 0);
    table_close(&rig);
}

/* Of any room that a peer may say; nothing is written. */
static void test_any_room_is_good(void **state)
{
    (void)state;
    static const uint32_t rooms[] = {1, STORE_INLINE_MAX, UINT32_MAX - LOTUS_ROW_HEAD, UINT32_MAX};
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    for (uint32_t i = 0; i < sizeof(rooms) / sizeof(rooms[0]); i++) {
        char key[2] = {(char)('a' + i), 0};
        table_begin(&rig, 1, 1);
        assert_int_equal(take_item(&rig, (struct lotus_item){.mode = LOCK_X,
                                                             .room = rooms[i],
                                                             .key = bytes_of(key, 1)}),
                         TABLE_DONE);
        assert_int_equal(rig.row.flags, LOTUS_ROW_ABSENT);
        table_end(&rig, 1);
    }
    table_close(&rig);
}

/* A row that outgrows its cell has another hint, and the old one is refused. */
static void test_a_row_that_outgrows_its_cell_moves(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    uint64_t old = write_sized(&rig, "k", 0, 8, 8);
    assert_int_equal(write_sized(&rig, "k", old, 8, 200), old);
    assert_int_equal(stale_hints(&rig), 0);
    uint64_t hint = read_sized(&rig, "k", old, 200);
    assert_int_not_equal(hint, old);
    assert_int_equal(stale_hints(&rig), 1);
    assert_int_equal(read_sized(&rig, "k", hint, 200), hint);
    assert_int_equal(stale_hints(&rig), 1);
    table_close(&rig);
}

/* The record of a row that does not fit its cell any more is another one; before it is, its hint
 * is none. */
static void test_a_reserved_record_is_no_row_yet(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    table_set(&rig, "k", "1");
    table_begin(&rig, 1, 1);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    uint64_t old = rig.row.hint;
    static const char longer[] = "much longer than it was before, so that it has to move";
    struct lotus_row row = {.key = bytes_of("k", 1), .value = bytes_of(longer, sizeof(longer) - 1)};
    assert_int_equal(lotus_table_reserve(rig.table, rig.thread, &rig.holders[1], &row), TABLE_DONE);
    /* The first cells of the first slabs, in their first lives. */
    bool old_met = false;
    for (uint64_t i = 0; i < 4u * 4u * 2u; i++) {
        uint64_t hint = (i / 8u << 11 | i / 2u % 4u) << RECORD_GENERATION_BITS | (i % 2u + 1u);
        assert_int_equal(lotus_table_point(rig.table, rig.thread, &rig.holders[1], bytes_of("k", 1),
                                           hint, LOCK_S, true, rig.buffer, &rig.row),
                         TABLE_DONE);
        assert_int_equal(rig.row.value.n, 1);
        old_met |= hint == old;
    }
    assert_true(old_met);
    table_end(&rig, 1);
    assert_string_equal(table_get(&rig, "k"), "1");
    table_close(&rig);
}

/* Without its value a row still tells its deadline. */
static void test_rows_without_values(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    table_begin(&rig, 1, 1);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    assert_true(table_prepare(&rig, 1));
    struct lotus_row row = {.key = bytes_of("k", 1),
                            .version = 7,
                            .flags = KEY_DEADLINE,
                            .value = bytes_of("deadlinevalue", 13)};
    assert_int_equal(lotus_table_write(rig.table, rig.thread, &rig.holders[1], &row, 1),
                     TABLE_DONE);
    table_end(&rig, 1);
    table_set(&rig, "l", "value");
    table_begin(&rig, 1, 1);
    assert_int_equal(lotus_table_point(rig.table, rig.thread, &rig.holders[1], bytes_of("k", 1), 0,
                                       LOCK_S, false, rig.buffer, &rig.row),
                     TABLE_DONE);
    assert_int_equal(rig.row.value.n, 8);
    assert_memory_equal(rig.row.value.at, "deadline", 8);
    assert_int_equal(rig.row.version, 7);
    assert_int_equal(lotus_table_point(rig.table, rig.thread, &rig.holders[1], bytes_of("l", 1), 0,
                                       LOCK_S, false, rig.buffer, &rig.row),
                     TABLE_DONE);
    assert_int_equal(rig.row.value.n, 0);
    table_end(&rig, 1);
    table_close(&rig);
}

/* ---- Waiting, dying, wounding ---- */

static void test_no_wait_refuses(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    table_begin(&rig, 1, 2);
    table_begin(&rig, 2, 1);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    assert_int_equal(table_read(&rig, 2, "k"), TABLE_REFUSED);
    table_end(&rig, 2);
    commit(&rig, 1, "k", "1");
    assert_string_equal(table_get(&rig, "k"), "1");
    table_close(&rig);
}

static void test_wait_die(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WAIT_DIE);
    table_begin(&rig, 1, 2);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    table_begin(&rig, 2, 3);
    assert_int_equal(table_read(&rig, 2, "k"), TABLE_REFUSED);
    table_end(&rig, 2);
    table_begin(&rig, 2, 1);
    assert_int_equal(table_read(&rig, 2, "k"), TABLE_WAITS);
    assert_int_equal(table_read(&rig, 2, "k"), TABLE_WAITS);
    assert_int_equal(rig.woken[2], 0);
    commit(&rig, 1, "k", "1");
    assert_int_equal(rig.woken[2], 1);
    assert_read(&rig, 2, "k", "1");
    table_end(&rig, 2);
    table_close(&rig);
}

/* A waiter that dies because an older one comes learns of it (L2). */
static void test_a_waiter_dies(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WAIT_DIE);
    table_begin(&rig, 1, 3);
    table_begin(&rig, 2, 2);
    table_begin(&rig, 3, 1);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    assert_int_equal(table_take(&rig, 2, "k"), TABLE_WAITS);
    assert_int_equal(table_take(&rig, 3, "k"), TABLE_WAITS);
    assert_int_equal(rig.woken[2], 1);
    assert_int_equal(table_take(&rig, 2, "k"), TABLE_REFUSED);
    assert_int_equal(table_take(&rig, 2, "k"), TABLE_REFUSED);
    table_end(&rig, 2);
    table_end(&rig, 1);
    assert_int_equal(table_take(&rig, 3, "k"), TABLE_DONE);
    table_end(&rig, 3);
    table_close(&rig);
}

static void test_wound_wait(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WOUND_WAIT);
    table_begin(&rig, 1, 2);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    table_begin(&rig, 2, 1);
    assert_int_equal(table_take(&rig, 2, "k"), TABLE_DONE);
    assert_int_equal(rig.woken[1], 1);
    assert_int_equal(lotus_table_state(rig.table, &rig.holders[1]), TRY_WOUNDED);
    assert_int_equal(table_read(&rig, 1, "other"), TABLE_REFUSED);
    assert_false(table_prepare(&rig, 1));
    assert_false(lotus_table_owns(rig.table, &rig.holders[1], bytes_of("k", 1)));
    assert_true(lotus_table_owns(rig.table, &rig.holders[2], bytes_of("k", 1)));
    table_end(&rig, 1);
    commit(&rig, 2, "k", "1");
    assert_string_equal(table_get(&rig, "k"), "1");
    table_close(&rig);
}

/* A prepared owner is waited for, whatever the ages (L4). */
static void test_prepared_is_immune(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WOUND_WAIT);
    table_begin(&rig, 1, 2);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    assert_true(table_prepare(&rig, 1));
    assert_false(lotus_table_wound(rig.table, 1, rig.holders[1].generation));
    table_begin(&rig, 2, 1);
    assert_int_equal(table_take(&rig, 2, "k"), TABLE_WAITS);
    table_write(&rig, 1, "k", "1");
    table_end(&rig, 1);
    assert_int_equal(rig.woken[2], 1);
    assert_int_equal(table_take(&rig, 2, "k"), TABLE_DONE);
    table_end(&rig, 2);
    table_close(&rig);
}

/* A try that waits elsewhere is told when it is wounded: it would wait for ever (P7). */
static void test_a_wounded_waiter_is_told(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WOUND_WAIT);
    table_begin(&rig, 1, 1);
    table_begin(&rig, 2, 3);
    table_begin(&rig, 3, 2);
    assert_int_equal(table_take(&rig, 1, "a"), TABLE_DONE);
    assert_int_equal(table_take(&rig, 2, "b"), TABLE_DONE);
    assert_int_equal(table_take(&rig, 2, "a"), TABLE_WAITS);
    assert_int_equal(table_take(&rig, 3, "b"), TABLE_DONE);
    assert_int_equal(rig.woken[2], 1);
    assert_int_equal(table_take(&rig, 2, "a"), TABLE_REFUSED);
    table_end(&rig, 2);
    table_end(&rig, 1);
    table_end(&rig, 3);
    table_close(&rig);
}

static void test_wounds_from_outside(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_NO_WAIT);
    table_begin(&rig, 1, 1);
    uint64_t generation = rig.holders[1].generation;
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    assert_true(lotus_table_wound(rig.table, 1, generation));
    assert_int_equal(rig.woken[1], 1);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_REFUSED);
    table_end(&rig, 1);
    table_begin(&rig, 1, 1);
    assert_false(lotus_table_wound(rig.table, 1, generation));
    assert_int_equal(lotus_table_state(rig.table, &rig.holders[1]), TRY_RUNNING);
    table_end(&rig, 1);
    table_close(&rig);
}

static void test_upgrades(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WAIT_DIE);
    table_set(&rig, "k", "1");
    /* The younger of two dies, and the older gets it when that has ended. */
    table_begin(&rig, 1, 1);
    table_begin(&rig, 2, 2);
    assert_read(&rig, 1, "k", "1");
    assert_read(&rig, 2, "k", "1");
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_WAITS);
    assert_int_equal(table_take(&rig, 2, "k"), TABLE_REFUSED);
    assert_int_equal(rig.woken[1], 0);
    table_end(&rig, 2);
    assert_int_equal(rig.woken[1], 1);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
    commit(&rig, 1, "k", "2");
    /* The other way round: the one that waited is told that it died. */
    table_begin(&rig, 1, 1);
    table_begin(&rig, 2, 2);
    table_begin(&rig, 3, 3);
    assert_read(&rig, 1, "k", "2");
    assert_read(&rig, 2, "k", "2");
    assert_read(&rig, 3, "k", "2");
    assert_int_equal(table_take(&rig, 2, "k"), TABLE_REFUSED);
    table_end(&rig, 2);
    table_begin(&rig, 4, 0);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_WAITS);
    assert_int_equal(table_take(&rig, 4, "k"), TABLE_WAITS);
    assert_int_equal(rig.woken[1], 1);
    assert_int_equal(table_take(&rig, 1, "k"), TABLE_REFUSED);
    table_end(&rig, 1);
    table_end(&rig, 3);
    assert_int_equal(table_take(&rig, 4, "k"), TABLE_DONE);
    table_end(&rig, 4);
    table_close(&rig);
}

/* More waiters are granted at once than are noted outside the latch; all are told. */
static void test_many_are_woken(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WOUND_WAIT);
    table_begin(&rig, 0, 0);
    assert_int_equal(table_take(&rig, 0, "k"), TABLE_DONE);
    for (uint32_t i = 1; i < TABLE_HOLDERS; i++) {
        table_begin(&rig, i, i);
        assert_int_equal(table_read(&rig, i, "k"), TABLE_WAITS);
    }
    table_end(&rig, 0);
    for (uint32_t i = 1; i < TABLE_HOLDERS; i++) {
        assert_int_equal(rig.woken[i], 1);
        assert_read(&rig, i, "k", NULL);
        table_end(&rig, i);
    }
    table_close(&rig);
}

/* ---- Limits ---- */

static void test_limits(void **state)
{
    (void)state;
    struct table_rig rig = {.lotus.locks_max = 4, .lotus.try_locks_max = 3};
    table_open(&rig);
    table_begin(&rig, 1, 1);
    table_begin(&rig, 2, 2);
    assert_read(&rig, 1, "a", NULL);
    assert_read(&rig, 1, "b", NULL);
    assert_read(&rig, 1, "c", NULL);
    assert_int_equal(table_read(&rig, 1, "d"), TABLE_TOOBIG);
    assert_read(&rig, 1, "a", NULL);
    assert_read(&rig, 2, "a", NULL);
    assert_int_equal(table_read(&rig, 2, "b"), TABLE_BUSY);
    table_check(&rig);
    table_end(&rig, 1);
    assert_read(&rig, 2, "b", NULL);
    table_end(&rig, 2);
    table_close(&rig);
}

/* Whatever the memory is refused for, nothing is left behind, and what was promised is kept. */
static void test_no_memory(void **state)
{
    (void)state;
    struct table_rig rig = {.memory.memory_max = 4u << 20};
    static char value[3000];
    memset(value, 'v', sizeof(value) - 1);
    table_open(&rig);
    bool refused = false;
    uint32_t n = 0;
    for (; !refused && n < 10000; n++) {
        char key[200];
        snprintf(key, sizeof(key), "%05u%0150u", n, n);
        struct lotus_row row = {.key = bytes_of(key, (uint32_t)strlen(key)),
                                .version = 1,
                                .value = bytes_of(value, n % 2 == 0 ? 2999 : 500)};
        table_begin(&rig, 1, 1);
        enum table_word word = table_take(&rig, 1, key);
        if (word == TABLE_DONE) {
            word = lotus_table_reserve(rig.table, rig.thread, &rig.holders[1], &row);
        }
        refused = word != TABLE_DONE;
        if (refused) {
            assert_int_equal(word, TABLE_NOMEM);
        } else {
            assert_true(table_prepare(&rig, 1));
            assert_int_equal(lotus_table_write(rig.table, rig.thread, &rig.holders[1], &row, 1),
                             TABLE_DONE);
        }
        table_end(&rig, 1);
    }
    assert_true(refused && n > 100);
    table_check(&rig);
    /* Rows that are there can be deleted, and cleaned. */
    for (uint32_t i = 0; i < 200; i++) {
        store_quiescent(rig.thread);
    }
    table_close(&rig);
}

/* A write that was reserved for needs nothing more. */
static void test_what_is_reserved_is_there(void **state)
{
    (void)state;
    struct table_rig rig = {.memory.memory_max = 4u << 20};
    static char value[3000];
    static const uint32_t sizes[] = {100, 2999, 0};
    memset(value, 'v', sizeof(value) - 1);
    table_open(&rig);
    table_set(&rig, "100", "1");
    table_set(&rig, "2999", "1");
    table_set(&rig, "0", "1");
    table_begin(&rig, 1, 1);
    struct lotus_row rows[3];
    for (uint32_t i = 0; i < 3; i++) {
        static const char *const keys[] = {"100", "2999", "0"};
        rows[i] = (struct lotus_row){.key = bytes_of(keys[i], (uint32_t)strlen(keys[i])),
                                     .flags = i == 2 ? LOTUS_ROW_ABSENT : 0,
                                     .version = 9,
                                     .value = bytes_of(value, sizes[i])};
        assert_int_equal(table_take(&rig, 1, keys[i]), TABLE_DONE);
        assert_int_equal(lotus_table_reserve(rig.table, rig.thread, &rig.holders[1], &rows[i]),
                         TABLE_DONE);
    }
    assert_true(table_prepare(&rig, 1));
    /* All that is left goes elsewhere. */
    for (size_t bytes = 65536; bytes >= 8; bytes /= 2) {
        while (store_alloc(rig.thread, bytes, false) != NULL) {
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lotus_table_write(rig.table, rig.thread, &rig.holders[1], &rows[i], 1),
                         TABLE_DONE);
    }
    table_end(&rig, 1);
    table_begin(&rig, 1, 1);
    assert_int_equal(table_read(&rig, 1, "2999"), TABLE_DONE);
    assert_int_equal(rig.row.value.n, 2999);
    assert_int_equal(table_read(&rig, 1, "100"), TABLE_DONE);
    assert_int_equal(rig.row.value.n, 100);
    assert_read(&rig, 1, "0", NULL);
    table_end(&rig, 1);
    table_close(&rig);
}

/* What was reserved and not written leaves no trace; what is not owned is not written. */
static void test_reservations_end_with_the_try(void **state)
{
    (void)state;
    struct table_rig rig;
    open_with(&rig, LOCK_WOUND_WAIT);
    static char value[3000];
    memset(value, 'v', sizeof(value));
    table_set(&rig, "k", "1");
    struct lotus_row row = {.key = bytes_of("k", 1), .value = bytes_of(value, 3000)};
    table_begin(&rig, 1, 1);
    assert_int_equal(lotus_table_reserve(rig.table, rig.thread, &rig.holders[1], &row),
                     TABLE_REFUSED);
    assert_read(&rig, 1, "k", "1");
    assert_int_equal(lotus_table_reserve(rig.table, rig.thread, &rig.holders[1], &row),
                     TABLE_REFUSED);
    table_end(&rig, 1);
    struct store_stats before, after;
    store_stats(rig.store, &before);
    for (uint32_t i = 0; i < 3; i++) {
        row.value.n = i == 0 ? 3000 : 500;
        row.flags = i == 2 ? LOTUS_ROW_ABSENT : 0;
        table_begin(&rig, 1, 1);
        assert_int_equal(table_take(&rig, 1, "k"), TABLE_DONE);
        assert_int_equal(lotus_table_reserve(rig.table, rig.thread, &rig.holders[1], &row),
                         TABLE_DONE);
        /* No transaction writes a row twice. */
        assert_int_equal(lotus_table_reserve(rig.table, rig.thread, &rig.holders[1], &row),
                         TABLE_REFUSED);
        table_end(&rig, 1);
    }
    assert_int_equal(ghosts(&rig), 0);
    for (uint32_t i = 0; i < 100; i++) {
        store_quiescent(rig.thread);
    }
    store_stats(rig.store, &after);
    /* A slab of records of another size has come, and stays. */
    assert_true(after.bytes_used == before.bytes_used ||
                after.bytes_used == before.bytes_used + 65536);
    assert_string_equal(table_get(&rig, "k"), "1");
    table_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_are_read_as_they_were_written),
        cmocka_unit_test(test_a_ghost_tells_its_version),
        cmocka_unit_test(test_a_forgotten_version_is_told),
        cmocka_unit_test(test_values_and_keys_of_all_sizes),
        cmocka_unit_test(test_a_key_may_be_asked_for_twice),
        cmocka_unit_test(test_hints_are_checked),
        cmocka_unit_test(test_a_row_stays_where_its_ghost_was),
        cmocka_unit_test(test_any_room_is_good),
        cmocka_unit_test(test_a_row_that_outgrows_its_cell_moves),
        cmocka_unit_test(test_a_reserved_record_is_no_row_yet),
        cmocka_unit_test(test_rows_without_values),
        cmocka_unit_test(test_no_wait_refuses),
        cmocka_unit_test(test_wait_die),
        cmocka_unit_test(test_a_waiter_dies),
        cmocka_unit_test(test_wound_wait),
        cmocka_unit_test(test_prepared_is_immune),
        cmocka_unit_test(test_a_wounded_waiter_is_told),
        cmocka_unit_test(test_wounds_from_outside),
        cmocka_unit_test(test_upgrades),
        cmocka_unit_test(test_many_are_woken),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_what_is_reserved_is_there),
        cmocka_unit_test(test_reservations_end_with_the_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
